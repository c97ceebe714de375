//! One origin of a page in the virtual world: a site and its clients' connections.

use base::{Chunk, Duration, Instant};
use bytes::Bytes;
use page::Page;

use crate::{Behaviour, Connection, Faults, PeerMisbehaved, Protocol, Recording};

/// How long a server takes from the end of a request to its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Think {
    /// As long as the recorded server did.
    Recorded,
    /// This long, every time.
    Fixed(Duration),
}

/// A connection's number at its server, densely from 0 in the order of [`Server::accept`].
pub type ConnectionId = u32;

/// One origin of a page and its clients' connections.
///
/// Feed a connection with [`Server::handle_input`], then drain [`Server::poll_transmit`] as far as its
/// transport has room, and come back at [`Server::poll_timeout`]. Each is as the [`Connection`]'s.
pub struct Server<'p> {
    site: Recording<&'p Page>,
    scheme: Bytes,
    connections: Vec<Connection<Recording<&'p Page>>>,
    behaviour: Behaviour,
    /// How many segments of a client's word for the congestion window are taken, if it is kept.
    kept_cwnd: Option<u32>,
}

impl<'p> Server<'p> {
    /// The server of host number `host` of `page`.
    pub fn new(page: &'p Page, host: u32, think: Think) -> Self {
        Self::serving(page, host, Recording::of_host(page, host, think))
    }

    /// The server that these hosts of `page` share; the first stands for their scheme.
    ///
    /// # Panics
    /// If there are none.
    pub fn of_hosts(page: &'p Page, hosts: Vec<u32>, think: Think) -> Self {
        Self::serving(page, hosts[0], Recording::of_hosts(page, hosts, think))
    }

    fn serving(page: &'p Page, host: u32, site: Recording<&'p Page>) -> Self {
        let scheme = Bytes::from_static(page.hosts[host as usize].scheme().as_bytes());
        Self { site, scheme, connections: Vec::new(), behaviour: Behaviour::default(), kept_cwnd: None }
    }

    /// The same, with its site changed: to one that pushes, or hints.
    pub fn map_site(self, change: impl FnOnce(Recording<&'p Page>) -> Recording<&'p Page>) -> Self {
        Self { site: change(self.site), ..self }
    }

    /// The same, with answers that break.
    pub fn with_faults(mut self, faults: Faults) -> Self {
        self.site = self.site.with_faults(faults);
        self
    }

    /// What was asked for more often than the page does, and how many times more; see [`Recording::repeats`].
    pub fn repeats(&self) -> impl Iterator<Item = (page::ResourceId, u32)> {
        self.site.repeats()
    }

    /// Whether the connection is to be reset; see [`Connection::wants_reset`].
    pub fn wants_reset(&self, id: ConnectionId) -> bool {
        self.connections[id as usize].wants_reset()
    }

    /// A client has connected and will speak `protocol`.
    pub fn accept(&mut self, protocol: &Protocol) -> ConnectionId {
        let connection = Connection::new(protocol, self.scheme.clone());
        self.connections.push(match self.kept_cwnd {
            Some(most) => connection.with_kept_cwnd(most),
            None => connection,
        });
        self.connections.len() as ConnectionId - 1
    }

    /// The same, having SPDY clients keep congestion windows; see [`Connection::with_kept_cwnd`].
    pub fn with_kept_cwnd(self, most: Option<u32>) -> Self {
        Self { kept_cwnd: most, ..self }
    }

    /// See [`Connection::note_cwnd`].
    pub fn note_cwnd(&mut self, id: ConnectionId, segments: u32, in_flight: u32) -> bool {
        self.connections[id as usize].note_cwnd(segments, in_flight)
    }

    /// See [`Connection::take_cwnd`].
    pub fn take_cwnd(&mut self, id: ConnectionId) -> Option<u32> {
        self.connections[id as usize].take_cwnd()
    }

    /// The same, behaving so at connections accepted by [`Server::accept_at`].
    pub fn with_behaviour(self, behaviour: Behaviour) -> Self {
        Self { behaviour, ..self }
    }

    /// A client has connected and will speak `protocol`; the server behaves as it was told to.
    pub fn accept_at(&mut self, now: Instant, protocol: &Protocol) -> ConnectionId {
        let id = self.accept(protocol);
        if self.behaviour != Behaviour::default() {
            let plain = self.connections.pop().expect("just accepted");
            self.connections.push(plain.with_behaviour(now, self.behaviour));
        }
        id
    }

    /// Bytes from a client.
    ///
    /// # Errors
    /// If they break the protocol.
    pub fn handle_input(
        &mut self,
        now: Instant,
        id: ConnectionId,
        chunk: Chunk,
    ) -> Result<(), PeerMisbehaved> {
        self.connections[id as usize].handle_input(now, chunk, &mut self.site)
    }

    /// The time has come that [`Server::poll_timeout`] named.
    pub fn handle_timeout(&mut self, now: Instant, id: ConnectionId) {
        self.connections[id as usize].handle_timeout(now, &mut self.site);
    }

    /// When the next answer on this connection will have been thought about.
    pub fn poll_timeout(&self, id: ConnectionId) -> Option<Instant> {
        self.connections[id as usize].poll_timeout()
    }

    /// The next piece to send, of `max` bytes at most (a frame's header may go past it).
    pub fn poll_transmit(&mut self, now: Instant, id: ConnectionId, max: u64) -> Option<Chunk> {
        self.connections[id as usize].poll_transmit(now, max)
    }

    /// Whether the connection is to be closed once all of it is sent.
    pub fn wants_close(&self, id: ConnectionId) -> bool {
        self.connections[id as usize].wants_close()
    }
}
