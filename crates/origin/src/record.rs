//! What a connection tells about itself: a line of an access log for each answer, and counters.

use base::Instant;
use bytes::Bytes;
use spdy::StreamId;

use crate::Tier;

/// An answer that was handed to the engine: a line of an access log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// `GET`, `POST`, …
    pub method: Bytes,
    /// Whom the request was for: host, and port if it was named.
    pub authority: Bytes,
    /// Path and query.
    pub path: Bytes,
    /// The answer's status; 101 for an upgrade.
    pub status: u16,
    /// Bytes of the body that goes out; 0 where none may follow.
    pub body_len: u64,
    /// When the request's head had come.
    pub received: Instant,
    /// When the answer was handed to the engine. Its bytes leave as priorities, windows and the transport let them.
    pub answered: Instant,
    /// What was spoken, as ALPN names it: `http/1.1`, `spdy/3.1`.
    pub protocol: &'static str,
    /// The SPDY stream.
    pub stream: Option<StreamId>,
    /// Whether it was pushed; `received` is then that of the request that it was pushed with.
    pub pushed: bool,
    /// How the request was recognised, if the answer was a recorded one.
    pub matched: Option<Tier>,
}

/// Counts of one connection.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Requests whose heads have come.
    pub requests: u64,
    /// Answers handed to the engine, pushes not counted.
    pub answers: u64,
    /// Pushes handed to the engine.
    pub pushes: u64,
    /// Pushes that were not sent: the client allows no more streams or is going away, or the head cannot be written.
    pub pushes_withheld: u64,
    /// Requests that the client took back before they were answered.
    pub cancelled: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes given to the transport.
    pub bytes_out: u64,
}
