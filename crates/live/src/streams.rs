//! SPDY streams without HTTP, over real sockets: what Kubernetes carries exec, attach and port-forward in.
//!
//! A connection begins as one HTTP/1.1 request that asks for `Upgrade: SPDY/3.1`, and offers protocols by
//! `X-Stream-Protocol-Version`; after the server's 101 either end opens streams, which mean what their fields say
//! ([`spdy::Mapping::Streams`]). The other end is usually Go's `moby/spdystream`, which knows no flow control, so this end
//! has none either; what is not read in time is held back by TCP, and with it everything else on the connection.
//!
//! * A [`Connection`] is one end, client or server: drive it when its socket is ready, take its [`Event`]s, give it
//!   commands. It holds a bounded number of bytes in each direction ([`Config::unread`], [`Config::queue`]).
//! * A [`Host`] drives any number of them on one thread, each with a [`Handler`], and accepts new ones.
//!
//! The HTTP mapping over the same upgrade is [`crate::fetch`]'s and [`crate::serve`]'s.

mod connection;
mod host;
mod upgrade;

use std::fmt;

use base::{Duration, Fields, RequestHead, ResponseHead};
use bytes::Bytes;
use spdy::{By, Opening, Status, StreamId};

pub use connection::Connection;
pub use host::{Handler, Host};
pub use upgrade::Request;
pub use url::Url;

/// The field by which a client offers protocols, one each or several with commas, and a server states its choice.
pub const PROTOCOL: &str = "X-Stream-Protocol-Version";
/// The field by which a server that takes none of them says which it would have taken.
pub const ACCEPTED_PROTOCOLS: &str = "X-Accepted-Stream-Protocol-Versions";

/// How a connection behaves.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// The session above the upgrade. Its mapping must be [`spdy::Mapping::Streams`], and its keep-alive is not used: see
    /// [`ping`](Self::ping).
    pub session: spdy::Config,
    /// How long TCP, TLS and the upgrade may take in all, from each address tried.
    pub handshake: Duration,
    /// After how long a silence of the peer's to send a PING. It keeps middleboxes from forgetting the connection, and TCP
    /// notices by it that a peer is gone.
    pub ping: Option<Duration>,
    /// How long after a PING a peer that stays silent is given up. spdystream answers none while a reader of one of its
    /// streams stalls, so that too short a time ends connections that only wait.
    pub give_up: Option<Duration>,
    /// How long a connection lives on which nothing happens but PINGs.
    pub idle: Option<Duration>,
    /// How long a peer that is being left may take nothing, and then say nothing, before it is cut off.
    pub linger: Duration,
    /// Bytes delivered and not [consumed](Connection::consume), of all streams together, at which reading pauses. One read
    /// more, at most 64 KiB, may come on top. A peer can make each byte cost 16 in memory by frames of 4 KiB whose
    /// neighbours are consumed, and about 100 by frames of one byte.
    pub unread: usize,
    /// Bytes that wait on one stream to be sent, at most.
    pub queue: usize,
}

impl Default for Config {
    /// For spdystream at the other end: 10 s to shake hands, a PING after 5 s of silence as kubectl sends them, nobody given
    /// up, no idle limit, 5 s to take leave; 256 KiB unread, 64 KiB queued a stream; 1000 streams, each opened with 100 fields
    /// in 16 KiB at most.
    fn default() -> Self {
        let limits = spdy::Limits {
            control_frame: 1 << 14,
            block: 1 << 14,
            headers: 100,
            header_field: 1 << 14,
            ..spdy::Limits::default()
        };
        Self {
            session: spdy::Config { limits, ..spdy::Config::spdystream() },
            handshake: Duration::from_secs(10),
            ping: Some(Duration::from_secs(5)),
            give_up: None,
            idle: None,
            linger: Duration::from_secs(5),
            unread: 1 << 18,
            queue: 1 << 16,
        }
    }
}

/// What happened on a connection, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Server: a client asks for streams. Answer with [`Connection::grant`] or [`Connection::refuse`].
    Asked {
        /// The request; its path and fields say what for.
        head: RequestHead,
        /// Protocols that the client offers, preferred first.
        protocols: Vec<String>,
    },
    /// Client: the server granted streams; they can be opened from here on.
    Granted {
        /// Its 101.
        head: ResponseHead,
        /// The protocol it chose; `None` if it does not say.
        protocol: Option<String>,
    },
    /// The peer opens a stream. [Accept](Connection::accept) it or [reset](Connection::reset) it.
    Opened {
        /// The stream.
        id: StreamId,
        /// What it is; names in lower case.
        fields: Fields,
        /// How it was opened; with `fin` the peer sends nothing on it.
        opening: Opening,
    },
    /// The peer accepts a stream of ours.
    Accepted {
        /// The stream.
        id: StreamId,
        /// Often none.
        fields: Fields,
        /// Whether the peer sends nothing on it.
        fin: bool,
    },
    /// More fields of a stream.
    Headers {
        /// The stream.
        id: StreamId,
        /// The fields.
        fields: Fields,
        /// Whether the peer has finished sending.
        fin: bool,
    },
    /// Bytes of a stream. [Consume](Connection::consume) each once, when it was used or thrown away, whatever has become of
    /// its stream since.
    Data {
        /// The stream.
        id: StreamId,
        /// They; none if there is only the end to tell.
        bytes: Bytes,
        /// Whether the peer has finished sending.
        fin: bool,
    },
    /// A stream ended before its time. Go's Kubernetes does this to every stream whose connection it closes, after its last
    /// byte: what came before is good.
    Reset {
        /// The stream.
        id: StreamId,
        /// Why.
        status: Status,
        /// Who did it.
        by: By,
    },
    /// The peer takes no more streams; spdystream reads nothing at all from here on.
    GoingAway {
        /// Streams of ours that it has not processed; they are gone.
        unprocessed: Vec<StreamId>,
    },
    /// The peer answered [`Connection::ping`], or the PING of a silence.
    Pong {
        /// Time since it was sent.
        rtt: Duration,
    },
    /// The last event: the connection is over. It is `Ok` if either end closed it in order.
    Closed(Result<(), Error>),
}

/// Why a connection ended, other than in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// TCP or TLS could not be established, or broke: what the system or the TLS library says.
    Transport(String),
    /// TCP, TLS or the upgrade took longer than [`Config::handshake`]; which of them.
    Timeout(&'static str),
    /// Client: the request cannot be sent as it stands.
    Request(http1::Error),
    /// Client: the server answered with something other than 101.
    Refused {
        /// Its status.
        status: u16,
        /// Its fields.
        fields: Fields,
        /// The beginning of its body: 4 KiB at most.
        body: Bytes,
    },
    /// Client: the server changes to another protocol, of this name.
    OtherProtocol(String),
    /// Server: the request asks for no upgrade to SPDY/3.1, or has a body. It was answered with 400.
    NotAsked,
    /// What the peer says before the upgrade is not HTTP/1.1.
    Http(http1::Error),
    /// The peer broke the protocol after it.
    Spdy(spdy::Error),
    /// The peer closed the connection without saying so before, while so many streams were open.
    Interrupted(usize),
    /// The peer did not answer a PING for as long as [`Config::give_up`] allows.
    Unresponsive,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Transport(why) => f.write_str(why),
            Error::Timeout(what) => write!(f, "{what} took too long"),
            Error::Request(e) => write!(f, "the request cannot be sent: {e}"),
            Error::Refused { status, body, .. } => {
                write!(f, "the server refused the upgrade to SPDY/3.1 with status {status}")?;
                let body = String::from_utf8_lossy(body);
                if body.trim().is_empty() { Ok(()) } else { write!(f, ": {}", body.trim()) }
            }
            Error::OtherProtocol(name) if name.is_empty() => {
                write!(f, "the server changes the protocol and does not say to which")
            }
            Error::OtherProtocol(name) => write!(f, "the server changes to {name} instead of SPDY/3.1"),
            Error::NotAsked => {
                write!(f, "the request does not ask for an upgrade to SPDY/3.1 without a body")
            }
            Error::Http(e) => write!(f, "HTTP/1.1 before the upgrade: {e}"),
            Error::Spdy(e) => e.fmt(f),
            Error::Interrupted(streams) => {
                write!(f, "the peer closed the connection with {streams} streams open")
            }
            Error::Unresponsive => write!(f, "the peer answers no PING"),
        }
    }
}

impl std::error::Error for Error {}

/// Why bytes were not taken for sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// More than [`Connection::room`] has; nothing was taken.
    Full,
    /// The stream takes none, now or ever.
    Stream(spdy::SendError),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Full => write!(f, "more than the stream's queue has room for: ask for its room first"),
            SendError::Stream(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for SendError {}
