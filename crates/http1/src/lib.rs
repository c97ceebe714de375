//! HTTP/1.1 without I/O: a client engine and a server engine.
//!
//! Read RFC 9112 first, §6 (how long is a body?) and §9 (who closes, and when?) above all; RFC 9110 has the methods,
//! the statuses and the fields. An engine is one end of one connection. It takes commands and the bytes that
//! arrived, and gives back events and the bytes to send; it opens no socket, reads no clock and never waits.
//!
//! * [`client::Connection`]: requests out, responses in, in order. Pipelining is a matter of calling
//!   [`request`](client::Connection::request) again; whether that is wise is the caller's policy.
//! * [`server::Connection`]: requests in, responses out, in order.
//!
//! A body is delivered as it arrives and sent as it was given, without a copy. It may be a
//! [`base::BodyRange`], bytes that exist only as a length; such a range is accepted where body bytes are due and
//! nowhere else. A head is parsed where it lies: its fields are slices of the bytes that arrived, and keep them
//! alive; copy what is to be kept for long.
//!
//! The two ends differ in temper. The server refuses whatever two parsers could read in two ways, because the
//! difference is how requests are smuggled (RFC 9112 §11.2). The client reads what old servers are known to
//! send where the RFC lets it: a bare LF after a line, folded fields, blanks around a chunk's size.
//!
//! After an error from the peer nothing more is read, and every later input returns the same error. A server
//! still answers what came before the fault, then refuses the faulty request by itself
//! ([`PeerError::status`]) and closes.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod body;
pub mod client;
mod emit;
mod error;
mod head;
pub mod server;

pub use error::{CallerError, Error, PeerError};

/// How the end of a body is found (RFC 9112 §6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// There is no body.
    Empty,
    /// Exactly so many bytes.
    Length(u64),
    /// Chunked transfer coding (RFC 9112 §7.1).
    Chunked,
    /// Whatever comes until the connection ends; responses only.
    UntilClose,
    /// The connection has left HTTP: a 101, or a 2xx to a CONNECT. What arrives from here on is delivered as
    /// body, what is sent as body goes out as it is.
    Tunnel,
}

/// What one connection may make us hold. Each default is at least what the widely used servers allow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a head with the empty lines before it: 65,536. Beyond: [`PeerError::StartLineTooLong`] (a server
    /// answers 414) or [`PeerError::HeadTooLarge`] (431).
    pub head_bytes: usize,
    /// Fields of a head, and of a trailer section: 256. Beyond: [`PeerError::TooManyFields`] (431).
    pub fields: usize,
    /// Bytes of the line that announces a chunk, its extensions included: 1,024. Beyond:
    /// [`PeerError::ChunkLineTooLong`] (400).
    pub chunk_line_bytes: usize,
    /// Bytes of chunk extensions in one message: 16,384. Nobody uses them, so more is an attempt to make us read
    /// much for little. Beyond: [`PeerError::ChunkLineTooLong`] (400).
    pub extension_bytes: usize,
    /// Bytes of a trailer section: 16,384. Beyond: [`PeerError::TrailersTooLarge`] (431).
    pub trailer_bytes: usize,
    /// Requests not yet answered in full: 64. A client's next request is refused
    /// ([`CallerError::TooManyOutstanding`]); a server parses no further until it has answered one.
    pub outstanding: usize,
    /// Bytes that a server which parses no further holds back: 65,536, and at most one chunk more. Input beyond is
    /// refused ([`CallerError::NotReading`]): ask [`server::Connection::wants_input`] before reading.
    pub held_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 65_536,
            fields: 256,
            chunk_line_bytes: 1_024,
            extension_bytes: 16_384,
            trailer_bytes: 16_384,
            outstanding: 64,
            held_bytes: 65_536,
        }
    }
}

/// What went over a connection so far, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Everything received.
    pub bytes_in: u64,
    /// Of that, heads; informational ones too.
    pub head_bytes_in: u64,
    /// Of that, bodies without chunk framing.
    pub body_bytes_in: u64,
    /// Everything queued to be sent.
    pub bytes_out: u64,
    /// Of that, heads.
    pub head_bytes_out: u64,
    /// Of that, bodies without chunk framing.
    pub body_bytes_out: u64,
}
