//! A browser's network stack, without the network.
//!
//! The page loader asks for resources; this crate decides which name to resolve, when to open a connection, and
//! which request goes out on which connection. It opens no socket: the world (virtual or live) carries out its
//! [`Action`]s, brings it bytes and takes bytes away. TLS sits below it, in the world; what the client decides of
//! it is whether a handshake may resume an earlier session.
//!
//! Unless the [`Config`] says otherwise the rules are those of Chrome around 2012; each constant says where it is from:
//!
//! * Requests of a host wait in one queue, ordered by the class of their load, by priority and then by age. Sockets are
//!   bound late: whichever connection is ready first takes the request at the head of the queue, not the one for which it
//!   was opened.
//! * HTTP/1.1: as many connections a host as there are requests waiting, but never more than six, and 256 in all;
//!   past that an idle connection of another host is closed to make room, or a host waits until there is one; the
//!   host whose request is most urgent goes first. One request at a time on each.
//! * SPDY: one session a host; requests wait for it while it connects, then share it.
//! * A request that was sent on a reused connection and saw no byte of its response is sent again, once, when
//!   that connection turns out to be dead: the server closed it while the request was on its way. A connection that
//!   has received something, or that lay idle before the request, is a reused one. So is a request sent again that a
//!   SPDY server says it has not looked at (GOAWAY, REFUSED_STREAM). Chrome does so whatever the method.
//! * Names that are addresses need no look-up.
//! * What a SPDY server pushes waits until the page asks for it, and is then the answer.
//! * What the page does not read ([`Client::pause`]) is held back by flow control; where there is none, by [`Stalled`].
//!
//! What else browsers have tried is there to be switched on, each in a file of its own: limits on waiting and idling
//! ([`Timeouts`]), a second connection for one that takes long ([`Racing`]), addresses that race ([`HappyEyeballs`]),
//! connections ahead of need ([`Preconnect`]), TLS handshakes that wait for a session ([`Handshakes`]), sessions that serve
//! several hosts (`Config::pooling`) and hosts that have not upgraded ([`HostFacts`], [`Deployment`]), requests that are sent
//! again ([`Retry`]), pipelining ([`Pipelining`]), certificates that are asked about ([`Check`]), loads in the background
//! ([`LoadClass`]). Most of them need a clock:
//! [`Client::poll_timeout`].

mod check;
mod config;
mod connection;
mod deployment;
mod dial;
mod ending;
mod event;
mod load;
mod lookahead;
mod pipeline;
mod pool;
mod pooling;
mod preconnect;
mod predictor;
mod push;
mod race;
mod request;
mod resolver;
mod retry;
mod secure;
mod timer;
mod transport;
mod unread;

use base::{Chunk, Instant, RequestHead};

use check::Checks;
pub use check::{CHECK_PATIENCE_CHROME, CHECK_PATIENCE_FIREFOX, Check};
pub use config::{Config, Host, HostFacts};
use connection::{Connection, State};
pub use connection::{ConnectionId, ConnectionRecord, Progress, Purpose};
pub use deployment::{Deployment, Ownership, registrable_domain};
use dial::Dial;
pub use dial::{AddressOrder, Family, HappyEyeballs};
pub use event::{Action, Error, Event};
use load::Load;
pub use load::{LoadClass, LoadId};
use lookahead::Lookahead;
pub use pipeline::{Class, HostState, Pipelining, Standing};
use pool::Pool;
pub use preconnect::PreconnectTally;
use preconnect::Visit;
pub use predictor::{Expected, Learned, LearnedRow, Preconnect, Successor, SuccessorRow};
pub use push::PushTally;
pub use race::{RaceClock, Racing};
pub use request::{Ask, Priority, Request, RequestId, SentOn, Timing, priority};
use resolver::Resolver;
pub use resolver::literal;
pub use retry::{Failure, Interrupted, Left, Retry, StaleRule};
pub use secure::{Handshakes, Secure};
pub use timer::Timeouts;
use timer::{Timer, Timers};
pub use transport::{Transport, UnknownTransport};
pub use unread::Stalled;

/// A browser's network stack.
///
/// Call a command or a `handle_*`, then drain [`Client::poll_action`], [`Client::poll_event`] and, for every
/// connection in [`Client::poll_dirty`], [`Client::poll_transmit`]. [`Client::poll_timeout`] says when to come back without
/// input. [`Client::poll_secure`] says when a TLS handshake is to begin, [`Client::poll_verified`] when one may end, for a world
/// that asks; and a world whose handshakes wait for sessions says by [`Client::handle_session`] that one has come.
pub struct Client {
    config: Config,
    hosts: Vec<Host>,
    resolver: Resolver,
    pools: Vec<Pool>,
    connections: Vec<Connection>,
    dials: Vec<Dial>,
    /// Connections that are not closed.
    open: usize,
    /// Hosts that wait for a place under the limit on all connections.
    stalled: std::collections::BTreeSet<u32>,
    requests: Vec<Option<Request>>,
    /// Hosts with requests that came back, to be served.
    restless: Vec<u32>,
    /// Requests sent again after they had failed.
    retries: u32,
    /// A connection is being lost.
    losing: Option<retry::Charged>,
    /// When something last came, on any connection.
    heard: Option<Instant>,
    /// Requests made so far.
    made: u32,
    actions: std::collections::VecDeque<Action>,
    events: std::collections::VecDeque<Event>,
    dirty: std::collections::VecDeque<ConnectionId>,
    secures: std::collections::VecDeque<Secure>,
    /// Connections that are to be read again.
    readable: std::collections::VecDeque<ConnectionId>,
    timers: Timers,
    lookahead: Lookahead,
    learned: Learned,
    successor: Successor,
    visit: Option<Visit>,
    loads: std::collections::BTreeMap<LoadId, Load>,
    checks: Checks,
}

impl Client {
    /// A client that may talk to `hosts`; requests name them by index.
    pub fn new(config: Config, hosts: Vec<Host>) -> Self {
        let resolver = Resolver::new(hosts.iter().map(|h| h.name.as_str()));
        Self {
            resolver,
            pools: hosts.iter().map(|_| Pool::default()).collect(),
            connections: Vec::new(),
            dials: Vec::new(),
            open: 0,
            stalled: Default::default(),
            requests: Vec::new(),
            restless: Vec::new(),
            retries: 0,
            losing: None,
            heard: None,
            made: 0,
            actions: Default::default(),
            events: Default::default(),
            dirty: Default::default(),
            secures: Default::default(),
            readable: Default::default(),
            timers: Timers::default(),
            lookahead: Lookahead::default(),
            learned: Learned::new(),
            successor: Successor::new(),
            visit: None,
            loads: Default::default(),
            checks: Checks::default(),
            config,
            hosts,
        }
    }

    /// Tells what is known of a host besides its name. Of use before its first request.
    ///
    /// # Panics
    /// If `host` is not one of those given to [`Client::new`].
    pub fn describe(&mut self, host: u32, facts: HostFacts) {
        if !facts.addresses.is_empty() {
            self.resolver.set_addresses(host, &facts.addresses);
        }
        let pool = &mut self.pools[host as usize];
        (pool.transport, pool.port, pool.certificate) = (facts.transport, facts.port, facts.certificate);
        (pool.checks, pool.aside) = (facts.checks, facts.aside);
    }

    /// What carries the requests of a host.
    pub fn transport(&self, host: u32) -> Transport {
        self.pools[host as usize].transport.unwrap_or(self.config.transport)
    }

    /// Whether TLS secures the connections of a host.
    pub fn is_secured(&self, host: u32) -> bool {
        self.hosts[host as usize].tls
    }

    /// The request numbered `id`, if there is one.
    pub fn request(&self, id: RequestId) -> Option<&Request> {
        self.requests.get(id as usize)?.as_ref()
    }

    /// Begins with what a host's server has had the client keep (SPDY/3 §2.6.4): see [`Client::kept_settings`]. Before the host's first
    /// connection.
    pub fn set_kept_settings(&mut self, host: u32, settings: Vec<spdy::frame::Setting>) {
        self.pools[host as usize].settings = settings;
    }

    /// What a host's server has had the client keep, as its last session left it, and what the next one brings back. As in Chrome, it is
    /// kept until the server clears it, on whatever network.
    pub fn kept_settings(&self, host: u32) -> &[spdy::frame::Setting] {
        let mut own = self.connections.iter().rev().filter(|c| c.record.host == host);
        own.find_map(Connection::persisted_settings).unwrap_or(&self.pools[host as usize].settings)
    }

    /// What is known of every connection opened, in the order of their numbers.
    pub fn connections(&self) -> impl Iterator<Item = &ConnectionRecord> {
        self.connections.iter().map(|c| &c.record)
    }

    /// How far SPDY streams had come and might go on, at each of their pieces in the order of connections; nothing unless
    /// [`Config::keeps_progress`] is set.
    pub fn progress(&self) -> impl Iterator<Item = &Progress> {
        self.connections.iter().flat_map(|c| c.progress.iter().flatten())
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
        self.ask(now, id, Ask { body_len, ..Ask::new(host, head, priority) });
    }

    /// Asks for a resource, with all that may be said of it.
    ///
    /// # Panics
    /// As [`Client::fetch`].
    pub fn ask(&mut self, now: Instant, id: RequestId, ask: Ask) {
        let slot = id as usize;
        if self.requests.len() <= slot {
            self.requests.resize_with(slot + 1, || None);
        }
        assert!(self.requests[slot].is_none(), "request {id} was made before");
        let host = ask.host;
        if ask.blocks {
            self.loads.entry(ask.load).or_default().blockers += 1;
        }
        let class = match ask.class {
            Some(class) => class,
            None if self.config.pipelining.is_some() => Class::of(&ask.head, ask.body_len),
            None => Class::Solo, // nobody will ask
        };
        self.requests[slot] = Some(Request::new(ask, class, now, self.made));
        self.made += 1;
        self.enqueue(id);
        self.race_host(now, host);
        self.go_on(now, host);
        let place = self.place_of(id);
        if self.pools[host as usize].waiting.contains(&place) {
            self.note_queued(host, Some(place));
        }
    }

    /// A look-up that [`Action::Resolve`] asked for has ended; `found` says whether there is an address.
    pub fn handle_resolved(&mut self, now: Instant, host: u32, found: bool) {
        self.timers.cancel(Timer::Resolution(self.resolver.name(host)));
        let started = self.resolver.finish(host, found);
        for other in 0..self.hosts.len() as u32 {
            if !self.resolver.same_name(host, other) {
                continue;
            }
            // A world that answers unasked has kept nobody waiting.
            let waited = self.pools[other as usize].waiting.iter().filter(|_| started <= now);
            for &(.., id) in waited {
                let timing = &mut self.requests[id as usize].as_mut().expect("a request that waits").timing;
                timing.dns = Some((started.max(timing.queued), now));
            }
            self.go_on(now, other);
            self.note_queued(other, None);
            if found {
                self.open_ahead(now, other);
            }
        }
        self.looked_up(now, host);
    }

    /// A connection's TCP handshake is complete.
    pub fn handle_connected(&mut self, now: Instant, id: ConnectionId) {
        let connection = &mut self.connections[id as usize];
        if connection.state == State::Closed {
            return; // it crossed our close
        }
        connection.record.connected = Some(now);
        self.timers.cancel(Timer::Race(id));
        self.win_dial(now, id);
        let connection = &self.connections[id as usize];
        if self.hosts[connection.record.host as usize].tls {
            self.secure(now, id);
        } else {
            self.make_ready(now, id);
        }
    }

    /// A connection's TLS handshake is far enough along to carry requests.
    pub fn handle_secured(&mut self, now: Instant, id: ConnectionId) {
        let connection = &mut self.connections[id as usize];
        if connection.state == State::Closed {
            return; // it crossed our close
        }
        connection.record.secured = Some(now);
        self.pools[connection.record.host as usize].has_session = true;
        self.make_ready(now, id);
    }

    /// Bytes from a connection's peer.
    pub fn handle_input(&mut self, now: Instant, id: ConnectionId, chunk: Chunk) {
        self.watch_read(now, id);
        let host = self.connections[id as usize].record.host;
        (self.pools[host as usize].heard, self.heard) = (Some(now), Some(now));
        let outcome = self.connections[id as usize].handle_input(now, chunk);
        self.after_input(now, id, outcome);
    }

    /// The peer will send no more on this connection.
    pub fn handle_eof(&mut self, now: Instant, id: ConnectionId) {
        let outcome = self.connections[id as usize].handle_eof(now);
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
