//! Errors, by whose fault they are.

use std::fmt;

/// Why a session has ended. Everything that can go wrong while reading is the peer's fault; what the caller can get
/// wrong has its own types ([`OpenError`], [`SendError`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The peer broke a rule whose breach no single stream can answer for. A GOAWAY is queued; after it is sent, close
    /// the connection. All open streams are interrupted.
    PeerMisbehaved(Misbehaviour),
    /// The session has failed before, and takes no more input.
    AlreadyFailed,
}

/// What a peer did that ends the session. Sections are of SPDY/3.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misbehaviour {
    /// A body range arrived where a frame's header or a control frame's payload must stand.
    BodyInsteadOfFrame,
    /// A control frame of a version other than the session's.
    Version(u16),
    /// A control frame's length does not fit its type (§2.6).
    FrameLength {
        /// The frame's type.
        kind: u16,
        /// Its length field.
        len: u32,
    },
    /// A control frame longer than [`Limits::control_frame`](crate::Limits::control_frame).
    FrameTooLarge {
        /// The frame's type.
        kind: u16,
        /// Its length field.
        len: u32,
    },
    /// More SETTINGS entries than [`Limits::settings`](crate::Limits::settings).
    TooManySettings(u32),
    /// An INITIAL_WINDOW_SIZE, or a WINDOW_UPDATE of the session, that makes a window larger than 2³¹ − 1 (§2.6.8).
    WindowOverflow,
    /// A WINDOW_UPDATE of the session by zero (§2.6.8).
    EmptyWindowUpdate,
    /// DATA beyond the session's window (§2.6.8).
    SessionWindowExceeded,
    /// A header block that is no zlib stream, or ends it, or starts from another dictionary (§2.6.10.1).
    BadCompression,
    /// A header block that inflates past [`Limits::block`](crate::Limits::block) or
    /// [`Limits::inflate_ratio`](crate::Limits::inflate_ratio).
    BlockTooLarge,
    /// A SYN_STREAM whose id has the wrong parity, is zero, or does not rise (§2.3.2).
    StreamId(u32),
    /// A frame on stream 0 that belongs to a stream.
    StreamZero,
    /// A pushed stream associated with stream 0 (§3.3.1).
    PushWithoutAssociation,
    /// More answers to the peer's frames wait to be sent than [`Limits::answers`](crate::Limits::answers) allows: it
    /// asks and does not read.
    TooManyAnswers,
    /// More heads wait to be taken with [`poll_event`](crate::Session::poll_event) than
    /// [`Limits::heads`](crate::Limits::heads) allows. It is the caller's own fault if it does not take the events after
    /// each input.
    TooManyHeads,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::PeerMisbehaved(what) => write!(f, "the peer broke the protocol: {what}"),
            Error::AlreadyFailed => write!(f, "the session has failed before"),
        }
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Misbehaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BodyInsteadOfFrame => write!(f, "a body where a frame must stand"),
            Self::Version(v) => write!(f, "a frame of version {v}"),
            Self::FrameLength { kind, len } => write!(f, "a control frame of type {kind} and length {len}"),
            Self::FrameTooLarge { kind, len } => write!(f, "a control frame of type {kind} with {len} bytes"),
            Self::TooManySettings(n) => write!(f, "{n} SETTINGS entries"),
            Self::WindowOverflow => write!(f, "a window above 2^31 - 1"),
            Self::EmptyWindowUpdate => write!(f, "a session WINDOW_UPDATE by zero"),
            Self::SessionWindowExceeded => write!(f, "DATA beyond the session window"),
            Self::BadCompression => write!(f, "a header block that cannot be inflated"),
            Self::BlockTooLarge => write!(f, "a header block that inflates too far"),
            Self::StreamId(id) => write!(f, "SYN_STREAM with id {id}"),
            Self::StreamZero => write!(f, "a stream's frame on stream 0"),
            Self::PushWithoutAssociation => write!(f, "a push associated with stream 0"),
            Self::TooManyAnswers => write!(f, "more frames to answer than it reads answers"),
            Self::TooManyHeads => write!(f, "more header fields at once than can be taken"),
        }
    }
}

/// Why a stream could not be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// As many streams are open as the peer allows; wait for one to close.
    TooManyStreams,
    /// A GOAWAY was sent or received; use another session.
    GoingAway,
    /// The session's ids are used up (§2.3.2), or it has failed; use another session.
    Ended,
    /// Clients request, servers push.
    WrongRole,
    /// The session carries bare streams and was asked for HTTP, or the reverse: see [`Mapping`](crate::Mapping).
    WrongMapping,
    /// The stream to push beside is not open, or not a client's.
    NotAssociable,
    /// The head cannot be sent.
    Head(BadHead),
}

/// Why something could not be sent on a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// The stream is closed, was reset by either end, or never was. The usual reason is a race with the peer's
    /// RST_STREAM or GOAWAY: drop what was to be sent.
    NotOpen,
    /// This end has already finished the stream.
    Finished,
    /// The stream has not been replied to, or has been.
    Reply,
    /// The session carries bare streams and was asked for HTTP, or the reverse: see [`Mapping`](crate::Mapping).
    WrongMapping,
    /// The head cannot be sent.
    Head(BadHead),
}

/// Why a head cannot be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadHead {
    /// A name is empty, or holds white space, a control character or a byte that is not ASCII.
    Name,
    /// A value holds NUL, CR or LF, or a part that must be there is empty.
    Value,
    /// A name, a value or the whole is larger than a frame can say: 64 KiB in version 2, 16 MiB in 3.
    TooLarge,
}

impl From<BadHead> for OpenError {
    fn from(e: BadHead) -> Self {
        OpenError::Head(e)
    }
}

impl From<BadHead> for SendError {
    fn from(e: BadHead) -> Self {
        SendError::Head(e)
    }
}

const WRONG_MAPPING: &str = "the session's mapping, HTTP or bare streams, has no such command";

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyStreams => write!(f, "the peer allows no more streams"),
            Self::GoingAway => write!(f, "the session takes no new streams"),
            Self::Ended => write!(f, "the session has ended"),
            Self::WrongRole => write!(f, "clients request and servers push"),
            Self::WrongMapping => write!(f, "{WRONG_MAPPING}"),
            Self::NotAssociable => write!(f, "no open stream to push beside"),
            Self::Head(e) => write!(f, "{e}"),
        }
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOpen => write!(f, "the stream is not open"),
            Self::Finished => write!(f, "the stream is already finished"),
            Self::Reply => write!(f, "the stream is not waiting for this reply"),
            Self::WrongMapping => write!(f, "{WRONG_MAPPING}"),
            Self::Head(e) => write!(f, "{e}"),
        }
    }
}

impl fmt::Display for BadHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => write!(f, "a field name that SPDY cannot carry"),
            Self::Value => write!(f, "a field value that SPDY cannot carry"),
            Self::TooLarge => write!(f, "a head larger than a frame"),
        }
    }
}

impl std::error::Error for Misbehaviour {}
impl std::error::Error for OpenError {}
impl std::error::Error for SendError {}
impl std::error::Error for BadHead {}
