//! What a tap at both ends of a load's connections sees: every segment, when it left and arrived, and what it carried.

use base::Instant;

/// A TCP segment of a load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Its connection: an index into [`Load::connections`](crate::Load::connections).
    pub connection: u32,
    /// Whether the client sent it.
    pub up: bool,
    /// When its sender's TCP let it go: what it waits for in the queue of the link comes after.
    pub left: Instant,
    /// When its receiver's TCP had it; `None` if it was lost, or on its way when the load ended.
    pub arrived: Option<Instant>,
    /// Numbers and control bits; the payload's bytes are told by [`Packet::carries`].
    pub segment: tcp::Segment,
    /// What it has a part of, in the order of its stream; nothing for a segment without payload. What is sent again is told again.
    pub carries: Vec<Carried>,
}

/// What a part of a connection's stream is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carried {
    /// A message of the TLS handshake.
    Handshake(tls::Message),
    /// A TLS alert.
    Alert,
    /// The head of a request: of HTTP/1.1, with its body if it has one; SPDY's SYN_STREAM.
    Request,
    /// The head of a response: of HTTP/1.1; SPDY's SYN_REPLY.
    ResponseHead,
    /// The body of an answer, or of a request over SPDY.
    Body,
    /// What SPDY says of the session or of a stream beside heads and bodies: SETTINGS, WINDOW_UPDATE, PING and their like.
    Control,
}
