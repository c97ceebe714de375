//! What is spoken on a connection, and how a server that was not told finds out.

use std::fmt;

/// What is spoken on a connection.
#[derive(Clone, PartialEq, Debug)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1 {
        /// What a client may change to with `Upgrade` (RFC 9110 §7.8), if anything: as Kubernetes does it, the client
        /// sends a request without a body that has `Connection: Upgrade` and `Upgrade: SPDY/3.1`, the server answers
        /// 101, and both begin a SPDY session with the next byte. The request that asked gets no other answer: it is
        /// *not* stream 1 of the session, as HTTP/2 would have it (RFC 7540 §3.2).
        upgrade: Option<spdy::Config>,
    },
    /// SPDY, with the session's settings.
    Spdy(spdy::Config),
}

impl Protocol {
    /// HTTP/1.1, and nothing else.
    pub const HTTP1: Protocol = Protocol::Http1 { upgrade: None };

    /// The name by which ALPN and NPN know it.
    pub fn id(&self) -> &'static str {
        match self {
            Protocol::Http1 { .. } => "http/1.1",
            Protocol::Spdy(config) => config.version.protocol_id(),
        }
    }

    /// What a client that has prior knowledge speaks, by the first bytes that it sends in clear text; `None` if there are
    /// too few of them yet (two are always enough).
    ///
    /// A client's SPDY begins with a control frame: the bit 1, then 15 bits of version. No HTTP/1.1 request does, as a
    /// method is ASCII. What is neither is called HTTP/1.1, whose engine refuses it with 400.
    pub fn sniff(first: &[u8]) -> Option<Sniffed> {
        match first {
            [] | [0x80] => None,
            [0x80, 2, ..] => Some(Sniffed::Spdy2),
            [0x80, 3, ..] => Some(Sniffed::Spdy3),
            _ => Some(Sniffed::Http1),
        }
    }
}

/// What the first bytes of a connection show; see [`Protocol::sniff`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sniffed {
    /// Not SPDY.
    Http1,
    /// SPDY/2.
    Spdy2,
    /// SPDY/3 or SPDY/3.1: both write 3 (SPDY/3.1 §2.2.1), so that whoever serves has to say which it takes this for.
    Spdy3,
}

/// The peer broke the protocol: what the engine says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerMisbehaved(pub String);

impl fmt::Display for PeerMisbehaved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PeerMisbehaved {}
