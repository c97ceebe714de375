//! A browser's network stack, without the network.
//!
//! The page loader asks for resources; this crate decides which name to resolve, when to open a connection, and
//! which request goes out on which connection. It opens no socket: the world (virtual or live) carries out its
//! [`Action`]s, brings it bytes and takes bytes away. TLS sits below it, in the world; what the client decides of
//! it is whether a handshake may resume an earlier session.
//!
//! The rules are those of Chrome around 2012; `Config` holds their constants with sources:
//!
//! * Requests of a host wait in one queue, ordered by priority and then by age. Sockets are bound late: whichever
//!   connection is ready first takes the request at the head of the queue, not the one for which it was opened.
//! * HTTP/1.1: as many connections a host as there are requests waiting, but never more than six, and 256 in all;
//!   past that an idle connection of another host is closed to make room, or a host waits until there is one; the
//!   host whose request is most urgent goes first. One request at a time on each.
//! * SPDY: one session a host; requests wait for it while it connects, then share it.
//! * A request that was sent on a reused connection and saw no byte of its response is sent again, once, when
//!   that connection turns out to be dead: the server closed it while the request was on its way. A connection that
//!   has received something, or that lay idle before the request, is a reused one. So is a request sent again that a
//!   SPDY server says it has not looked at (GOAWAY, REFUSED_STREAM). Chrome does so whatever the method.
//! * Names that are addresses need no look-up.

mod connection;
mod pool;
mod resolver;
mod timer;

use std::fmt;
use std::str::FromStr;

use base::{Chunk, Instant, RequestHead, ResponseHead};

use connection::Connection;
pub use connection::{ConnectionId, ConnectionRecord};
use pool::Pool;
use resolver::Resolver;
pub use timer::Timeouts;
use timer::Timers;

/// What carries the requests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Transport {
    /// Persistent HTTP/1.1 connections, one request at a time on each.
    Http1,
    /// One SPDY session a host.
    Spdy(spdy::Version),
}

impl Transport {
    /// Every transport, in the order in which lists of them are printed.
    pub const ALL: [Transport; 4] = [
        Transport::Http1,
        Transport::Spdy(spdy::Version::V2),
        Transport::Spdy(spdy::Version::V3),
        Transport::Spdy(spdy::Version::V3_1),
    ];

    /// The name by which users ask for it.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Http1 => "http1",
            Transport::Spdy(spdy::Version::V2) => "spdy2",
            Transport::Spdy(spdy::Version::V3) => "spdy3",
            Transport::Spdy(spdy::Version::V3_1) => "spdy3.1",
        }
    }

    /// The version of SPDY, if it is SPDY.
    pub fn spdy_version(self) -> Option<spdy::Version> {
        match self {
            Transport::Http1 => None,
            Transport::Spdy(version) => Some(version),
        }
    }

    /// The protocol's name in ALPN and NPN.
    pub fn protocol(self) -> &'static str {
        match self {
            Transport::Http1 => "http/1.1",
            Transport::Spdy(spdy::Version::V2) => "spdy/2",
            Transport::Spdy(spdy::Version::V3) => "spdy/3",
            Transport::Spdy(spdy::Version::V3_1) => "spdy/3.1",
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A transport's name that is none of [`Transport::ALL`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownTransport(String);

impl fmt::Display for UnknownTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = Transport::ALL.iter().map(|t| t.name()).collect();
        write!(f, "unknown transport '{}'; known are {}", self.0, known.join(", "))
    }
}

impl std::error::Error for UnknownTransport {}

impl FromStr for Transport {
    type Err = UnknownTransport;
    fn from_str(s: &str) -> Result<Self, UnknownTransport> {
        Self::ALL.into_iter().find(|t| t.name() == s).ok_or_else(|| UnknownTransport(s.to_owned()))
    }
}

/// What the client is configured with.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// What carries the requests of every host.
    pub transport: Transport,
    /// HTTP/1.1 connections a host at most. Browsers since 2008: 6.
    pub connections_per_host: usize,
    /// Connections in all at most. Chrome: 256.
    pub connections_max: usize,
    /// How often a request is sent at most, counting the first time. Chrome: 2. At least 1.
    pub attempts_max: u32,
    /// The SPDY session's own settings, where SPDY is spoken. PINGs that keep a session alive are not supported here.
    pub spdy: spdy::Config,
    /// How long it waits for a peer, and keeps what nobody uses. [`Timeouts::NONE`] unless set; browsers':
    /// [`Timeouts::CHROME`].
    pub timeouts: Timeouts,
}

impl Config {
    /// Chrome's constants of around 2012 for `transport`.
    pub fn new(transport: Transport) -> Self {
        let version = transport.spdy_version().unwrap_or(spdy::Version::V3_1);
        Self {
            transport,
            connections_per_host: 6,
            connections_max: 256,
            attempts_max: 2,
            spdy: spdy::Config { keep_alive: None, ..spdy::Config::chrome_2013(version) },
            timeouts: Timeouts::NONE,
        }
    }
}

/// A host that requests may name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// The name to resolve. Hosts that differ only in scheme or port share a look-up.
    pub name: String,
    /// Whether its connections are secured by TLS.
    pub tls: bool,
}

/// A request's number; the caller chooses it, densely from 0.
pub type RequestId = u32;

/// How much a request matters; lower is more urgent, 0–7. [`priority`] has Chrome's levels.
pub type Priority = u8;

/// Chrome's request priorities of 2011, which are also its SPDY/3 priorities.
pub mod priority {
    use super::Priority;
    /// Documents and frames.
    pub const DOCUMENT: Priority = 0;
    /// Style sheets, scripts and fonts.
    pub const SCRIPT: Priority = 1;
    /// Sub-resources without a rule of their own: objects, media, XHR.
    pub const SUBRESOURCE: Priority = 2;
    /// Images.
    pub const IMAGE: Priority = 3;
    /// Prefetches.
    pub const PREFETCH: Priority = 4;
}

/// What the world must do for the client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Resolve the name of this host, then call [`Client::handle_resolved`].
    Resolve {
        /// Index of a host with this name.
        host: u32,
    },
    /// Open a connection, then call [`Client::handle_connected`] and, for TLS, [`Client::handle_secured`].
    Connect {
        /// The connection's number.
        connection: ConnectionId,
        /// The host to connect to.
        host: u32,
        /// Whether an earlier handshake with this host is complete, so that this one may resume its session.
        resume: bool,
    },
    /// Close a connection.
    Close {
        /// The connection's number.
        connection: ConnectionId,
    },
}

/// What happened to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The response's head has arrived.
    Head {
        /// The request.
        id: RequestId,
        /// The response.
        head: ResponseHead,
        /// Bytes that the head took on the wire.
        wire_len: u64,
    },
    /// A piece of the response's body has arrived.
    Data {
        /// The request.
        id: RequestId,
        /// The piece.
        chunk: Chunk,
    },
    /// The response is complete.
    Complete {
        /// The request.
        id: RequestId,
    },
    /// There will be no (complete) response.
    Failed {
        /// The request.
        id: RequestId,
        /// Why.
        error: Error,
    },
}

/// Why a request failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// The host's name did not resolve.
    NameNotResolved,
    /// No connection could be made: what the transport says.
    NotConnected(String),
    /// The connection ended before the response was complete: what the transport says.
    ConnectionLost(String),
    /// The peer broke the protocol: what the engine says.
    Protocol(String),
    /// The peer ended the stream: the SPDY status.
    StreamReset(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NameNotResolved => f.write_str("name not resolved"),
            Error::NotConnected(why) => write!(f, "not connected: {why}"),
            Error::ConnectionLost(why) => write!(f, "connection lost: {why}"),
            Error::Protocol(why) => write!(f, "protocol violated: {why}"),
            Error::StreamReset(why) => write!(f, "stream reset: {why}"),
        }
    }
}

impl std::error::Error for Error {}

/// When the phases of a request's life were. A phase that the request did not wait for is `None`, as in a HAR; a
/// phase that had begun before the request was made is counted from then.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Timing {
    /// The request was handed to the client.
    pub queued: Instant,
    /// It waited for a name to resolve: from, to.
    pub dns: Option<(Instant, Instant)>,
    /// It waited for its connection to be established: from, to.
    pub connect: Option<(Instant, Instant)>,
    /// It waited for its connection's TLS handshake: from, to.
    pub tls: Option<(Instant, Instant)>,
    /// It was handed to its connection's engine, for the last time.
    pub sent: Option<Instant>,
    /// The response's head was complete.
    pub head: Option<Instant>,
    /// The response was complete.
    pub complete: Option<Instant>,
}

/// What the client knows of a request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Index of the host asked.
    pub host: u32,
    /// How much it matters.
    pub priority: Priority,
    /// What is asked.
    pub head: RequestHead,
    /// Bytes of the request's body.
    pub body_len: u64,
    /// The connection it went out on, for the last time.
    pub connection: Option<ConnectionId>,
    /// When its phases were.
    pub timing: Timing,
    /// How often it was sent.
    pub attempts: u32,
    /// Bytes that its head took on the wire, the last time.
    pub head_bytes_up: u64,
    /// Bytes that the response's head took on the wire.
    pub head_bytes_down: u64,
    /// When it was made, among all requests: those of equal priority are sent in this order.
    age: u32,
    /// Its connection was no fresh one when it was sent.
    reused: bool,
    /// A part of a response has been passed on.
    answered: bool,
    done: bool,
}

/// A browser's network stack.
///
/// Call a command or a `handle_*`, then drain [`Client::poll_action`], [`Client::poll_event`] and, for every
/// connection in [`Client::poll_dirty`], [`Client::poll_transmit`]. [`Client::poll_timeout`] says when to come back without
/// input.
pub struct Client {
    config: Config,
    hosts: Vec<Host>,
    resolver: Resolver,
    pools: Vec<Pool>,
    connections: Vec<Connection>,
    /// Connections that are not closed.
    open: usize,
    /// Hosts that wait for a place under the limit on all connections.
    stalled: std::collections::BTreeSet<u32>,
    requests: Vec<Option<Request>>,
    /// Requests made so far.
    made: u32,
    actions: std::collections::VecDeque<Action>,
    events: std::collections::VecDeque<Event>,
    dirty: std::collections::VecDeque<ConnectionId>,
    timers: Timers,
}

impl Client {
    /// A client that may talk to `hosts`; requests name them by index.
    pub fn new(config: Config, hosts: Vec<Host>) -> Self {
        let resolver = Resolver::new(hosts.iter().map(|h| h.name.as_str()));
        Self {
            resolver,
            pools: hosts.iter().map(|_| Pool::default()).collect(),
            connections: Vec::new(),
            open: 0,
            stalled: Default::default(),
            requests: Vec::new(),
            made: 0,
            actions: Default::default(),
            events: Default::default(),
            dirty: Default::default(),
            timers: Timers::default(),
            config,
            hosts,
        }
    }

    /// The request numbered `id`, if there is one.
    pub fn request(&self, id: RequestId) -> Option<&Request> {
        self.requests.get(id as usize)?.as_ref()
    }

    /// What is known of every connection opened, in the order of their numbers.
    pub fn connections(&self) -> impl Iterator<Item = &ConnectionRecord> {
        self.connections.iter().map(|c| &c.record)
    }

    /// Names looked up so far.
    pub fn lookups(&self) -> u32 {
        self.resolver.lookups()
    }

    /// Asks for a resource.
    ///
    /// # Panics
    /// If `id` was used before or `host` is not one of those given to [`Client::new`].
    pub fn fetch(
        &mut self,
        now: Instant,
        id: RequestId,
        host: u32,
        head: RequestHead,
        body_len: u64,
        priority: Priority,
    ) {
        let slot = id as usize;
        if self.requests.len() <= slot {
            self.requests.resize_with(slot + 1, || None);
        }
        assert!(self.requests[slot].is_none(), "request {id} was made before");
        self.requests[slot] = Some(Request {
            host,
            priority,
            head,
            body_len,
            connection: None,
            timing: Timing { queued: now, ..Timing::default() },
            attempts: 0,
            head_bytes_up: 0,
            head_bytes_down: 0,
            age: self.made,
            reused: false,
            answered: false,
            done: false,
        });
        self.made += 1;
        self.enqueue(id);
        self.service(now, host);
    }

    /// A look-up that [`Action::Resolve`] asked for has ended; `found` says whether there is an address.
    pub fn handle_resolved(&mut self, now: Instant, host: u32, found: bool) {
        let started = self.resolver.finish(host, found);
        for other in 0..self.hosts.len() as u32 {
            if !self.resolver.same_name(host, other) {
                continue;
            }
            for &(_, _, id) in &self.pools[other as usize].waiting {
                let timing = &mut self.requests[id as usize].as_mut().expect("a request that waits").timing;
                timing.dns = Some((started.max(timing.queued), now));
            }
            self.service(now, other);
        }
    }

    /// A connection's TCP handshake is complete.
    pub fn handle_connected(&mut self, now: Instant, id: ConnectionId) {
        let connection = &mut self.connections[id as usize];
        connection.record.connected = Some(now);
        if self.hosts[connection.record.host as usize].tls {
            self.limit_connecting(now, id, self.config.timeouts.tls);
        } else {
            self.make_ready(now, id);
        }
    }

    /// A connection's TLS handshake is far enough along to carry requests.
    pub fn handle_secured(&mut self, now: Instant, id: ConnectionId) {
        let connection = &mut self.connections[id as usize];
        connection.record.secured = Some(now);
        self.pools[connection.record.host as usize].has_session = true;
        self.make_ready(now, id);
    }

    /// Bytes from a connection's peer.
    pub fn handle_input(&mut self, now: Instant, id: ConnectionId, chunk: Chunk) {
        let connection = &mut self.connections[id as usize];
        let outcome = connection.handle_input(now, chunk);
        self.after_input(now, id, outcome);
    }

    /// The peer will send no more on this connection.
    pub fn handle_eof(&mut self, now: Instant, id: ConnectionId) {
        let outcome = self.connections[id as usize].handle_eof();
        self.after_input(now, id, outcome);
        self.lose(now, id, "closed by the peer");
    }

    /// The connection failed, or could not be made: what the transport says.
    pub fn handle_failed(&mut self, now: Instant, id: ConnectionId, why: &str) {
        self.lose(now, id, why);
    }

    /// The next thing the world must do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The next thing that happened to a request.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// A connection that may have something to send since it was last asked, in the order in which they came to have it.
    pub fn poll_dirty(&mut self) -> Option<ConnectionId> {
        let id = self.dirty.pop_front()?;
        self.connections[id as usize].dirty = false;
        Some(id)
    }

    /// The next piece to send on a connection, of `max` bytes at most (a frame's header may go past it).
    pub fn poll_transmit(&mut self, now: Instant, id: ConnectionId, max: u64) -> Option<Chunk> {
        self.connections[id as usize].poll_transmit(now, max)
    }
}

#[cfg(test)]
mod tests;
