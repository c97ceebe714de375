//! What can go wrong, and whose fault it was.

use std::fmt;

/// A refusal to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The other end broke the protocol or a limit, or went away too early. The connection is over.
    Peer(PeerError),
    /// The call makes no sense in this state. It changed nothing.
    Caller(CallerError),
}

/// What the other end did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PeerError {
    /// The first line is neither a request line nor a status line (RFC 9112 §3, §4).
    BadStartLine,
    /// The version is not HTTP/1.x.
    BadVersion,
    /// A first line beyond [`Limits::head_bytes`](crate::Limits::head_bytes).
    StartLineTooLong,
    /// A head beyond [`Limits::head_bytes`](crate::Limits::head_bytes).
    HeadTooLarge,
    /// More fields than [`Limits::fields`](crate::Limits::fields).
    TooManyFields,
    /// A line that is no field: no colon, no name, a blank before the colon, or a byte that must not be there
    /// (RFC 9112 §5, RFC 9110 §5.5).
    BadField,
    /// A field that continues on a second line (RFC 9112 §5.2).
    FoldedField,
    /// A line ended by LF without CR (RFC 9112 §2.2).
    BareLf,
    /// A `Content-Length` that is no number, or several that differ (RFC 9112 §6.3).
    BadLength,
    /// A `Transfer-Encoding` in which chunked is not the last coding or occurs twice, or which stands in an
    /// HTTP/1.0 message (RFC 9112 §6.1).
    BadTransferEncoding,
    /// A transfer coding besides chunked in a request (RFC 9112 §6.1).
    UnknownTransferCoding,
    /// `Content-Length` and `Transfer-Encoding` in one request (RFC 9112 §6.1, §11.2).
    LengthAndTransferEncoding,
    /// No `Host` in an HTTP/1.1 request, several, or one that names no host (RFC 9112 §3.2).
    BadHost,
    /// A request target in none of the four forms (RFC 9112 §3.2), or a body announced for a CONNECT.
    BadTarget,
    /// A chunk's size is no hexadecimal number below 2⁶⁴, or the chunk does not end in CRLF (RFC 9112 §7.1).
    BadChunk,
    /// A chunk's line beyond [`Limits::chunk_line_bytes`](crate::Limits::chunk_line_bytes), or a message's extensions
    /// beyond [`Limits::extension_bytes`](crate::Limits::extension_bytes).
    ChunkLineTooLong,
    /// A trailer section beyond [`Limits::trailer_bytes`](crate::Limits::trailer_bytes).
    TrailersTooLarge,
    /// Body bytes of which only the length exists, where a head or chunk framing is due.
    BodyRangeInFraming,
    /// A 101 to a request that offered no other protocol (RFC 9110 §7.8).
    UnexpectedUpgrade,
    /// Bytes that answer no request.
    UnexpectedBytes,
    /// The connection ended with requests outstanding and no byte of the next response.
    ClosedBeforeResponse,
    /// The connection ended inside a head.
    HeadTruncated,
    /// The connection ended inside a body.
    BodyTruncated {
        /// How many bytes short; for a chunked body, of the chunk begun (0 between chunks: the rest is unknown).
        missing: u64,
    },
}

/// What the caller did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CallerError {
    /// A method, target or authority with bytes that would break the first line.
    BadRequestLine,
    /// A field whose name or value would break the head.
    BadField,
    /// A final response with a status below 200 (other than 101 to an upgrade), an interim one with any other, or a
    /// status beyond 999.
    BadStatus,
    /// As many requests are outstanding as [`Limits::outstanding`](crate::Limits::outstanding) allows.
    TooManyOutstanding,
    /// The body begun before is not finished.
    BodyUnfinished,
    /// More body than was announced, or a body where none was announced.
    BodyTooLong,
    /// The body ends before the announced length.
    BodyTooShort {
        /// How many bytes short.
        missing: u64,
    },
    /// A CONNECT or an upgrade is outstanding: what follows might not be HTTP.
    ProtocolChangePending,
    /// The connection carries no further message.
    Closing,
    /// There is no request to answer.
    NothingToAnswer,
    /// Input although [`wants_input`](crate::server::Connection::wants_input) is false.
    NotReading,
}

impl PeerError {
    /// The status with which a server refuses a request that has this fault.
    pub fn status(self) -> u16 {
        match self {
            PeerError::StartLineTooLong => 414,
            PeerError::HeadTooLarge | PeerError::TooManyFields | PeerError::TrailersTooLarge => 431,
            PeerError::UnknownTransferCoding => 501,
            PeerError::BadVersion => 505,
            _ => 400,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Peer(e) => write!(f, "peer: {e}"),
            Error::Caller(e) => write!(f, "caller: {e}"),
        }
    }
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PeerError::BadStartLine => "the first line is not HTTP",
            PeerError::BadVersion => "the version is not HTTP/1.x",
            PeerError::StartLineTooLong => "the first line is too long",
            PeerError::HeadTooLarge => "the head is too large",
            PeerError::TooManyFields => "too many fields",
            PeerError::BadField => "a line of the head is not a field",
            PeerError::FoldedField => "a field continues on a second line",
            PeerError::BareLf => "a line ends in LF without CR",
            PeerError::BadLength => "Content-Length is not one number",
            PeerError::BadTransferEncoding => "Transfer-Encoding does not frame the message",
            PeerError::UnknownTransferCoding => "unknown transfer coding",
            PeerError::LengthAndTransferEncoding => "both Content-Length and Transfer-Encoding",
            PeerError::BadHost => "not exactly one valid Host",
            PeerError::BadTarget => "the request target has no valid form",
            PeerError::BadChunk => "broken chunk",
            PeerError::ChunkLineTooLong => "a chunk's line, or all extensions, are too long",
            PeerError::TrailersTooLarge => "the trailer section is too large",
            PeerError::BodyRangeInFraming => "body bytes where a head or a chunk's line is due",
            PeerError::UnexpectedUpgrade => "101 to a request that offered no upgrade",
            PeerError::UnexpectedBytes => "bytes that answer no request",
            PeerError::ClosedBeforeResponse => "closed before the response",
            PeerError::HeadTruncated => "closed inside a head",
            PeerError::BodyTruncated { missing } => {
                return write!(f, "closed inside a body, {missing} bytes short");
            }
        })
    }
}

impl fmt::Display for CallerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CallerError::BadRequestLine => "the method, target or authority would break the first line",
            CallerError::BadField => "a field would break the head",
            CallerError::BadStatus => "not a status for this call",
            CallerError::TooManyOutstanding => "too many requests outstanding",
            CallerError::BodyUnfinished => "the body before is not finished",
            CallerError::BodyTooLong => "more body than announced",
            CallerError::BodyTooShort { missing } => {
                return write!(f, "body {missing} bytes shorter than announced");
            }
            CallerError::ProtocolChangePending => "a CONNECT or an upgrade is outstanding",
            CallerError::Closing => "the connection carries no further message",
            CallerError::NothingToAnswer => "no request to answer",
            CallerError::NotReading => "input while none is wanted",
        })
    }
}

impl std::error::Error for Error {}
impl std::error::Error for PeerError {}
impl std::error::Error for CallerError {}

impl From<PeerError> for Error {
    fn from(e: PeerError) -> Self {
        Error::Peer(e)
    }
}

impl From<CallerError> for Error {
    fn from(e: CallerError) -> Self {
        Error::Caller(e)
    }
}
