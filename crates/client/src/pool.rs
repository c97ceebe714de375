//! A host's connections and the requests that wait for one, and the rules by which the two meet.

use std::collections::BTreeSet;
use std::net::IpAddr;

use base::Instant;

use crate::connection::{Connection, ConnectionId, ConnectionRecord, Purpose, State};
use crate::pipeline::{HostState, Standing};
use crate::request::SentOn;
use crate::resolver::Answer;
use crate::retry::Cut;
use crate::timer::Timer;
use crate::{Action, Client, Error, LoadClass, Priority, RaceClock, Request, RequestId, Timing, Transport};

/// A request's place in its host's queue: what somebody looks at first, then the most urgent, then the oldest; its number
/// comes last.
pub(crate) type Place = (LoadClass, Priority, u32, RequestId);

/// A host's connections and waiting requests.
#[derive(Default)]
pub(crate) struct Pool {
    pub(crate) waiting: BTreeSet<Place>,
    pub(crate) connections: Vec<ConnectionId>,
    /// A TLS handshake with this host is far enough along for connections that are opened from now on to resume its session.
    pub(crate) has_session: bool,
    /// What resumes it is there.
    pub(crate) has_ticket: bool,
    /// What carries its requests, if not what carries everybody's.
    pub(crate) transport: Option<Transport>,
    /// The port, if it was told.
    pub(crate) port: Option<u16>,
    /// Connections to have, ahead of need, once the name is known.
    pub(crate) preconnect: u32,
    /// Its name was looked up ahead of need.
    pub(crate) preresolved: bool,
    /// The TLS handshake that others wait for, and those that wait.
    pub(crate) handshake: Option<ConnectionId>,
    pub(crate) held: Vec<ConnectionId>,
    /// What pipelining has learned.
    pub(crate) pipelining: HostState,
    /// Its certificate, if it is known.
    pub(crate) certificate: Option<u32>,
    /// What is to be asked about it.
    pub(crate) checks: Vec<usize>,
    /// It is none of the page's.
    pub(crate) aside: bool,
    /// A server said that it does not serve this host, on a session of another's.
    pub(crate) unshared: bool,
    /// It was asked for something.
    pub(crate) greeted: bool,
    /// Whole answers that it has given.
    pub(crate) answers: u32,
    /// When something last came from it.
    pub(crate) heard: Option<Instant>,
    /// It is given up: what its last connection said.
    pub(crate) gone: Option<String>,
    /// What its server has had the client keep, in an earlier run.
    pub(crate) settings: Vec<spdy::frame::Setting>,
}

impl Client {
    pub(crate) fn request_mut(&mut self, id: RequestId) -> &mut Request {
        self.requests[id as usize].as_mut().expect("a request that was made")
    }

    /// Lets a request wait at its host. One that is sent again has kept its age, and so its place.
    pub(crate) fn enqueue(&mut self, id: RequestId) {
        let place = self.place_of(id);
        let host = self.request_mut(id).host;
        self.pools[host as usize].waiting.insert(place);
    }

    pub(crate) fn place_of(&self, id: RequestId) -> Place {
        let request = self.requests[id as usize].as_ref().expect("a request that was made");
        (self.load_class(id), request.priority, request.age, id)
    }

    /// Moves a host's waiting requests on as far as they can go now.
    pub(crate) fn service(&mut self, now: Instant, host: u32) {
        self.stalled.remove(&host);
        if self.pools[host as usize].waiting.is_empty() || self.give_up_with(now, host) {
            return;
        }
        match self.resolver.ask(now, host) {
            Answer::Found => {}
            Answer::Asking => return,
            Answer::Ask => return self.actions.push_back(Action::Resolve { host }),
            Answer::Missing => {
                for (.., id) in std::mem::take(&mut self.pools[host as usize].waiting) {
                    self.interrupt(now, id, Error::NameNotResolved, Cut::Refused);
                }
                return;
            }
        }
        if self.pipelines(host) {
            self.service_pipelined(now, host);
            return self.greet(now, host);
        }
        while let Some(connection) = self.free_connection(host) {
            let Some((.., id)) = self.pools[host as usize].waiting.pop_first() else { break };
            self.dispatch(now, id, connection);
        }
        while self.wants_connection(host) {
            if !self.make_room(now, host) {
                self.stalled.insert(host);
                return;
            }
            self.open(now, host, Purpose::Request);
        }
        self.greet(now, host);
    }

    /// Notes which waiting requests of a host, of those from place `from` on, count on no connection that is being made. With
    /// pipelining that is noted where they are served.
    pub(crate) fn note_queued(&mut self, host: u32, from: Option<Place>) {
        let found = self.resolver.is_found(host);
        if !found || self.transport(host) != Transport::Http1 || self.config.pipelining.is_some() {
            return;
        }
        let waiting = &self.pools[host as usize].waiting;
        let ahead = from.map_or(0, |from| waiting.range(..from).count());
        let count = if from.is_some() { 1 } else { waiting.len() };
        let counting = self.count_connecting(host).saturating_sub(ahead);
        let queued: Vec<_> = waiting.iter().skip(ahead).take(count).skip(counting).map(|p| p.3).collect();
        queued.into_iter().for_each(|id| self.request_mut(id).queued = true);
    }

    /// A ready connection of `host` that can take a request: the most recently used one, as its congestion
    /// window is the least likely to have been reset.
    pub(crate) fn free_connection(&self, host: u32) -> Option<ConnectionId> {
        let pool = &self.pools[host as usize];
        let free = pool.connections.iter().filter(|c| self.connections[**c as usize].can_take_request());
        let own = free.max_by_key(|c| (self.connections[**c as usize].idle_since, std::cmp::Reverse(**c)));
        own.copied().or_else(|| self.free_shared_session(host))
    }

    pub(crate) fn entries(&self, host: u32) -> impl Iterator<Item = &Connection> {
        self.pools[host as usize].connections.iter().map(|id| &self.connections[*id as usize])
    }

    /// Connections of a host, as its limit counts them.
    pub(crate) fn count_open(&self, host: u32) -> usize {
        let spares_count = self.config.racing.clock == RaceClock::Host;
        let counts = |c: &&Connection| !c.is_aside() || (spares_count && c.role == Purpose::Spare);
        self.entries(host).filter(counts).count()
    }

    /// Connections of a host that are being made, each for one request that waits.
    pub(crate) fn count_connecting(&self, host: u32) -> usize {
        self.entries(host).filter(|c| c.state == State::Connecting && !c.is_aside()).count()
    }

    /// Whether one more connection to `host` would serve a request that waits.
    fn wants_connection(&self, host: u32) -> bool {
        let pool = &self.pools[host as usize];
        let (open, connecting) = (self.count_open(host), self.count_connecting(host));
        match self.transport(host) {
            Transport::Http1 => connecting < pool.waiting.len() && open < self.config.connections_per_host,
            // One session a host; a second only once the first takes no new streams for good.
            Transport::Spdy(_) => {
                !pool.waiting.is_empty()
                    && !pool.connections.iter().any(|c| self.connections[*c as usize].will_take_requests())
                    && !self.has_shared_session(host)
            }
        }
    }

    /// Makes room for one more connection, at the cost of the connection of another host that has been idle for
    /// longest. False if every connection is busy.
    pub(crate) fn make_room(&mut self, now: Instant, host: u32) -> bool {
        if self.open < self.config.connections_max {
            return true;
        }
        let idle = self.connections.iter().filter(|c| c.is_idle() && c.record.host != host);
        let Some(victim) = idle.min_by_key(|c| c.idle_since).map(|c| c.record.id) else { return false };
        self.close(now, victim);
        true
    }

    /// Begins to make one connection in the world.
    pub(crate) fn connect(
        &mut self,
        now: Instant,
        host: u32,
        purpose: Purpose,
        address: Option<IpAddr>,
        dial: Option<u32>,
    ) -> ConnectionId {
        let id = self.connections.len() as ConnectionId;
        let resume = self.pools[host as usize].has_session;
        let record = ConnectionRecord {
            id,
            host,
            purpose,
            address,
            opened: now,
            connected: None,
            handshake: None,
            resumes: false,
            secured: None,
            closed: None,
            requests: 0,
        };
        let mut connection =
            Connection::new(record, self.transport(host), &self.config, self.kept_settings(host));
        (connection.dial, connection.resume) = (dial, resume);
        self.connections.push(connection);
        self.open += 1;
        self.pools[host as usize].connections.push(id);
        self.actions.push_back(Action::Connect { connection: id, host, resume });
        self.limit_connecting(now, id, self.limit_for(host, self.config.timeouts.connect));
        self.race_connection(now, id);
        id
    }

    pub(crate) fn make_ready(&mut self, now: Instant, id: ConnectionId) {
        let connection = &mut self.connections[id as usize];
        connection.state = State::Ready;
        connection.idle_since = now;
        let host = connection.record.host;
        connection.pipe.supports = self.pools[host as usize].pipelining.standing() != Standing::Red;
        self.limit_connecting(now, id, None);
        if self.is_redundant(id) {
            return self.close_and_go_on(now, id);
        }
        self.limit_idle(now, id);
        self.mark_dirty(id); // a SPDY session opens with its SETTINGS
        self.go_on(now, host);
        self.service_stalled_if_idle(now, id);
    }

    /// Whether a session came second in a race: one is enough.
    fn is_redundant(&self, id: ConnectionId) -> bool {
        let host = self.connections[id as usize].record.host;
        let serves = |other: &ConnectionId| {
            let connection = &self.connections[*other as usize];
            *other != id && connection.state == State::Ready && connection.will_take_requests()
        };
        self.transport(host) != Transport::Http1
            && (self.pools[host as usize].connections.iter().any(serves) || self.has_shared_session(host))
    }

    pub(crate) fn dispatch(&mut self, now: Instant, id: RequestId, connection: ConnectionId) {
        self.enter_pipeline(now, id, connection);
        let entry = &self.connections[connection as usize];
        let multiplexed = self.transport(entry.record.host) != Transport::Http1;
        let request = self.requests[id as usize].as_mut().expect("a request that waits");
        request.reused = entry.received || entry.idle_since < now;
        let record = &entry.record;
        // A request that is not an HTTP/1.1 connection's first waited for one to be free, whatever came before.
        let opened_for_it = multiplexed || record.requests == 0;
        let waited = |from: Instant, to: Option<Instant>| {
            to.filter(|to| opened_for_it && *to > request.timing.queued)
                .map(|to| (from.max(request.timing.queued), to))
        };
        let connect = waited(record.opened, record.connected);
        let tls = record.connected.and_then(|from| waited(from, record.secured));
        let head = request.timing.head.filter(|_| request.answered); // that of an answer to be resumed
        request.timing = Timing { connect, tls, sent: Some(now), head, complete: None, ..request.timing };
        request.connection = Some(connection);
        request.sent_on = match entry.record.requests {
            0 => SentOn::Fresh,
            _ if multiplexed => SentOn::Session,
            _ if entry.active.is_empty() => SentOn::Idle,
            _ => SentOn::Pipelined,
        };
        request.pooled = entry.record.host != request.host;
        let host = request.host;
        request.attempts += 1;
        self.timers.cancel(Timer::Idle(connection));
        let class = self.loads.get(&request.load).map_or(LoadClass::Foreground, |l| l.class);
        let priority = class.spdy_priority(request.priority);
        let ranged = self.range(id);
        let request = self.requests[id as usize].as_mut().expect("a request that waits");
        let head = ranged.as_ref().unwrap_or(&request.head);
        match self.connections[connection as usize].send_request(id, request, head, priority) {
            Ok(head_bytes) => request.head_bytes_up = head_bytes,
            Err(why) => self.fail(id, Error::Protocol(why)), // it would not be taken another time
        }
        self.note_positions(connection);
        self.limit_silence(now, connection);
        self.time_pipeline(connection);
        self.learn(id, host, connection);
        self.mark_dirty(connection);
        // Of a push there is an answer at once.
        while let Some(event) = self.connections[connection as usize].poll_event() {
            self.pass_on(now, event);
        }
    }

    pub(crate) fn mark_dirty(&mut self, id: ConnectionId) {
        let connection = &mut self.connections[id as usize];
        if !connection.dirty && connection.state == State::Ready {
            connection.dirty = true;
            self.dirty.push_back(id);
        }
    }

    /// If a connection is of no more use to its own host for now, another host may have its place.
    pub(crate) fn service_stalled_if_idle(&mut self, now: Instant, id: ConnectionId) {
        if self.connections[id as usize].is_idle() {
            self.service_stalled(now);
        }
    }

    /// A place under the limit on all connections may be free: for the hosts that wait for one, the most urgent
    /// request first.
    pub(crate) fn service_stalled(&mut self, now: Instant) {
        let first = |host: &u32| (self.pools[*host as usize].waiting.first().copied(), *host);
        let mut stalled: Vec<_> = self.stalled.iter().map(first).collect();
        stalled.sort();
        for (_, host) in stalled {
            self.go_on(now, host);
        }
    }
}
