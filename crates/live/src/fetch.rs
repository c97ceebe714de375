//! Fetches URLs over real sockets: HTTP/1.1 and SPDY, several URLs on one connection.
//!
//! Every origin (scheme, name, port) gets one connection; what is asked of it shares that. SPDY sends all requests at
//! once, by priority; HTTP/1.1 one after another, or [`Config::pipeline`] of them ahead. Pushes are taken, and answer a
//! request for the same URL that has not been sent. Requests that a server says it did not process (GOAWAY,
//! REFUSED_STREAM) are sent again on a new connection; so are those that an idle connection swallowed, if their method
//! allows it (RFC 9110 §9.2.2). Everything that happens is told to an [`Observer`], with the time.
//!
//! What this is not: a browser. It follows no redirections, keeps no cookies and caches nothing beyond one call.

mod connection;
mod engine;
mod fetcher;

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use base::{Duration, Fields, Instant, ResponseHead};
use bytes::Bytes;

use crate::tls;

/// When the phases of an exchange were. A push is queued when it is announced.
pub use client::Timing;
pub use fetcher::fetch;
pub use url::{Position, Url};

/// What is spoken above TCP or TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// SPDY.
    Spdy(spdy::Version),
}

impl Protocol {
    /// Every protocol, newest first: what a client offers that takes anything.
    pub const ALL: [Protocol; 4] = [
        Protocol::Spdy(spdy::Version::V3_1),
        Protocol::Spdy(spdy::Version::V3),
        Protocol::Spdy(spdy::Version::V2),
        Protocol::Http1,
    ];

    /// The name by which ALPN and NPN know it.
    pub fn id(self) -> &'static str {
        match self {
            Protocol::Http1 => "http/1.1",
            Protocol::Spdy(version) => version.protocol_id(),
        }
    }

    /// The protocol that ALPN and NPN know by this name.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.id() == id)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// One thing to fetch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// `http` or `https`.
    pub url: Url,
    /// `GET`, `POST`, …
    pub method: Bytes,
    /// Fields besides those that the connection owns.
    pub fields: Fields,
    /// The body; empty for none.
    pub body: Bytes,
    /// 0 is the most urgent, 7 the least; on one SPDY connection it orders what the server sends.
    pub priority: u8,
}

impl Request {
    /// A plain GET.
    pub fn get(url: Url) -> Self {
        let method = Bytes::from_static(b"GET");
        Self { url, method, fields: Fields::new(), body: Bytes::new(), priority: 3 }
    }
}

/// How to fetch.
#[derive(Clone, Debug)]
pub struct Config {
    /// What may be spoken, preferred first. TLS negotiates among them; in clear text the first is spoken without asking.
    pub protocols: Vec<Protocol>,
    /// In clear text: ask for SPDY by `Upgrade: SPDY/3.1` in a HTTP/1.1 request, as Kubernetes does, instead of speaking it
    /// at once.
    pub upgrade: bool,
    /// TLS, of which the protocols are taken from above.
    pub tls: tls::ClientConfig,
    /// The settings of a SPDY session, of whose version they are asked.
    pub spdy: fn(spdy::Version) -> spdy::Config,
    /// Whether pushes are taken; if not, the server is told to send none, and those that come are cancelled.
    pub push: bool,
    /// HTTP/1.1 requests sent ahead of their turn; 1 waits for each response.
    pub pipeline: usize,
    /// SPDY requests under way on one connection at most; the server may allow fewer. 1 waits for each response.
    pub concurrent: usize,
    /// Names that are not looked up: host, port (any if `None`), address.
    pub resolve: Vec<(String, Option<u16>, IpAddr)>,
    /// How long one address may take to accept the connection, and TLS to shake hands.
    pub connect_timeout: Duration,
    /// How long a connection may be silent while something is asked of it.
    pub idle_timeout: Duration,
    /// Bytes of each response after which it is cancelled (SPDY) or its connection closed (HTTP/1.1).
    pub cancel_after: Option<u64>,
    /// How often one request is sent at most.
    pub attempts_max: u32,
    /// Whether to send GOAWAY once everything is asked, and let what is open finish.
    pub goaway: bool,
}

impl Config {
    /// Any protocol; TLS trusted by `trust`; pushes taken; 10 s to connect, 30 s of silence, three attempts.
    pub fn new(trust: tls::Trust) -> Self {
        Self {
            protocols: Protocol::ALL.to_vec(),
            upgrade: false,
            tls: tls::ClientConfig {
                common: tls::Common::new(Protocol::ALL.map(Protocol::id)),
                trust,
                false_start: true,
                ocsp: true,
            },
            spdy: spdy::Config::new,
            push: true,
            pipeline: 1,
            concurrent: usize::MAX,
            resolve: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(30),
            cancel_after: None,
            attempts_max: 3,
            goaway: false,
        }
    }

    fn session(&self, version: spdy::Version) -> spdy::Config {
        let mut session = (self.spdy)(version);
        if !self.push {
            session.max_concurrent_streams = 0;
            session.announce_streams = true;
        }
        session
    }
}

/// How an exchange ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It has not.
    Pending,
    /// With a whole response.
    Complete,
    /// By [`Config::cancel_after`].
    Cancelled,
    /// For this reason.
    Failed(String),
}

/// A request, or a push, and what became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// What was asked for.
    pub request: Request,
    /// For a push: the exchange beside which it came.
    pub pushed_with: Option<usize>,
    /// For a request: the push that answered it.
    pub answered_by: Option<usize>,
    /// The connection's number, in the order of opening.
    pub connection: Option<usize>,
    /// Its SPDY stream.
    pub stream: Option<u32>,
    /// The response, once its head is there.
    pub response: Option<ResponseHead>,
    /// Bytes that the response's head took on the wire.
    pub head_len: u64,
    /// Bytes of the response's body so far.
    pub body_len: u64,
    /// How often it was sent.
    pub attempts: u32,
    /// When its phases were.
    pub timing: Timing,
    /// How it ended.
    pub outcome: Outcome,
}

/// Which way bytes went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// To the server.
    Up,
    /// From it.
    Down,
}

/// What happened, for whoever watches.
#[derive(Clone, Debug)]
pub enum Event<'e> {
    /// A name was looked up.
    Resolved {
        /// The name.
        host: &'e str,
        /// What it stands for.
        addresses: &'e [SocketAddr],
    },
    /// A connection is being made.
    Connecting {
        /// Its number.
        connection: usize,
        /// To whom.
        address: SocketAddr,
    },
    /// An address could not be connected to; the next is tried.
    NotConnected {
        /// The connection's number.
        connection: usize,
        /// Which.
        address: SocketAddr,
        /// Why not.
        why: &'e str,
    },
    /// TCP is there.
    Connected {
        /// The connection's number.
        connection: usize,
    },
    /// TLS is there, at least as far as data can be sent.
    Secured {
        /// The connection's number.
        connection: usize,
        /// What was agreed on.
        negotiated: &'e tls::Negotiated,
        /// Data goes out before the server's Finished has come.
        false_start: bool,
    },
    /// A protocol is spoken from now on.
    Speaking {
        /// The connection's number.
        connection: usize,
        /// Which.
        protocol: Protocol,
    },
    /// Plaintext went over the connection. Bytes that came with the answer to an upgrade are shown twice: with it, and
    /// again once SPDY is spoken, whose first they are.
    Wire {
        /// The connection's number.
        connection: usize,
        /// Which way.
        direction: Direction,
        /// The bytes.
        bytes: &'e [u8],
    },
    /// A request was handed to its connection's engine; [`Exchange::connection`] and [`Exchange::stream`] tell where.
    Sent {
        /// Which.
        exchange: usize,
    },
    /// A server pushes.
    Pushed {
        /// The new exchange.
        exchange: usize,
    },
    /// A response's head is there; [`Exchange::response`] has it.
    Head {
        /// Whose.
        exchange: usize,
    },
    /// A part of a response's body.
    Data {
        /// Whose.
        exchange: usize,
        /// The part.
        bytes: &'e Bytes,
    },
    /// An exchange ended; [`Exchange::outcome`] says how.
    Done {
        /// Which.
        exchange: usize,
    },
    /// A request will be sent again.
    Again {
        /// Which.
        exchange: usize,
        /// Why.
        why: &'e str,
    },
    /// The server takes no more requests on this connection.
    GoAway {
        /// The connection's number.
        connection: usize,
        /// Requests that it says it has not processed.
        unprocessed: usize,
    },
    /// A connection is over.
    Closed {
        /// Its number.
        connection: usize,
        /// Why.
        why: &'e str,
    },
}

/// Watches.
pub trait Observer {
    /// Something happened; `exchanges` is how all stand after it.
    fn event(&mut self, now: Instant, event: &Event<'_>, exchanges: &[Exchange]);
}

/// Watches nothing.
impl Observer for () {
    fn event(&mut self, _: Instant, _: &Event<'_>, _: &[Exchange]) {}
}

/// Nothing could be fetched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// The URL's scheme is neither `http` nor `https`, or it has no host.
    Url(String),
    /// TLS could not be set up.
    Tls(tls::Error),
    /// The configuration contradicts itself.
    Config(&'static str),
    /// The operating system refused what is needed for any connection.
    System(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Url(url) => write!(f, "{url}: give an http or https URL with a host"),
            Error::Tls(e) => e.fmt(f),
            Error::Config(what) => f.write_str(what),
            Error::System(why) => write!(f, "sockets: {why}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<tls::Error> for Error {
    fn from(e: tls::Error) -> Self {
        Error::Tls(e)
    }
}
