//! Connections ahead of need: when a page is about to be visited, what is expected of it is begun, and what it then uses is
//! learned.

use std::collections::BTreeSet;

use base::Instant;

use crate::connection::{ConnectionId, Purpose};
use crate::predictor::{Expected, Learned, Preconnect, Successor};
use crate::resolver::Answer;
use crate::timer::Timer;
use crate::{Action, Client, RequestId, Transport};

/// An hour of uptime (`kDurationBetweenTrimmingsHours`).
const DECAY_EVERY: base::Duration = base::Duration::from_secs(3_600);

/// The page being visited.
pub(crate) struct Visit {
    host: u32,
    /// The document, once it is sent: it is no sub-resource.
    document: Option<RequestId>,
    /// Connections that its requests have gone out on.
    connections: BTreeSet<ConnectionId>,
    /// Hosts that were asked for something.
    hosts: BTreeSet<u32>,
}

/// What speculation has cost and brought at one host.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PreconnectTally {
    /// The host's index.
    pub host: u32,
    /// Connections opened ahead of need.
    pub made: u32,
    /// Of those, connections that have carried a request.
    pub used: u32,
    /// The others.
    pub wasted: u32,
    /// Whether its name was looked up ahead of need.
    pub preresolved: bool,
}

impl Client {
    /// Replaces what [`Preconnect::Learned`] goes by, as kept from an earlier run.
    pub fn set_learned(&mut self, learned: Learned) {
        self.learned = learned;
    }

    /// What [`Preconnect::Learned`] goes by now. To keep it for the next run: [`Learned::decay`] once, as Chrome did when
    /// it saved, then [`Learned::rows`] and [`Learned::startup`].
    pub fn learned(&self) -> &Learned {
        &self.learned
    }

    /// Replaces what [`Preconnect::Successor`] goes by, as kept from an earlier run.
    pub fn set_successor(&mut self, successor: Successor) {
        self.successor = successor;
    }

    /// What [`Preconnect::Successor`] goes by now.
    pub fn successor(&self) -> &Successor {
        &self.successor
    }

    /// How a host is called in what is learned: scheme, name and, if the client was told of one, port.
    pub fn origin(&self, host: u32) -> String {
        let crate::Host { name, tls } = &self.hosts[host as usize];
        let scheme = if *tls { "https" } else { "http" };
        match self.pools[host as usize].port {
            Some(port) => format!("{scheme}://{name}:{port}"),
            None => format!("{scheme}://{name}"),
        }
    }

    /// A page of `page_host` is about to be visited, before its first request: opens what it is expected to need. What is
    /// asked for from now on is learned as that page's, until [`Client::finish_visit`] or the next visit. Hosts that were
    /// not given to [`Client::new`] are passed over.
    pub fn navigate(&mut self, now: Instant, page_host: u32) {
        self.finish_visit();
        let origin = self.origin(page_host);
        let expected = match self.config.preconnect {
            Preconnect::None | Preconnect::BlindTwo => return,
            Preconnect::Learned => {
                self.timers.set_first(Timer::Decay, now + DECAY_EVERY);
                for host in self.learned.take_last_start() {
                    if let Some(host) = self.host_of(&host) {
                        self.look_ahead(now, host);
                    }
                }
                self.learned.visit(&origin)
            }
            Preconnect::Successor => self.successor.visit(&origin),
        };
        let (connections, hosts) = (BTreeSet::new(), BTreeSet::new());
        self.visit = Some(Visit { host: page_host, document: None, connections, hosts });
        for Expected { host, connections } in expected {
            match self.host_of(&host) {
                Some(host) if connections > 0 => self.preconnect(now, host, connections),
                Some(host) => self.look_ahead(now, host),
                None => {}
            }
        }
    }

    /// The page being visited has all that it asks for by itself: what it used is learned. A next visit does this too.
    pub fn finish_visit(&mut self) {
        let Some(visit) = self.visit.take() else { return };
        if self.config.preconnect == Preconnect::Successor {
            let used: Vec<_> = visit.hosts.iter().map(|host| self.origin(*host)).collect();
            self.successor.finish(&self.origin(visit.host), used.iter().map(String::as_str));
        }
    }

    /// What speculation has cost and brought so far, for hosts where there was any.
    pub fn preconnect_tally(&self) -> Vec<PreconnectTally> {
        let tally = |host: u32| {
            let of_host = |c: &&crate::ConnectionRecord| c.host == host && c.purpose == Purpose::Speculative;
            let (mut made, mut used) = (0, 0);
            for record in self.connections().filter(of_host) {
                made += 1;
                used += u32::from(record.requests > 0);
            }
            let preresolved = self.pools[host as usize].preresolved;
            PreconnectTally { host, made, used, wasted: made - used, preresolved }
        };
        (0..self.hosts.len() as u32).map(tally).filter(|t| t.made > 0 || t.preresolved).collect()
    }

    fn host_of(&self, origin: &str) -> Option<u32> {
        (0..self.hosts.len() as u32).find(|host| self.origin(*host) == origin)
    }

    /// Sees to it that there are `connections` to a host, as far as the limits allow; nothing is closed to make room.
    pub(crate) fn preconnect(&mut self, now: Instant, host: u32, connections: u32) {
        self.pools[host as usize].preconnect = connections;
        match self.resolver.ask(now, host) {
            Answer::Found => self.open_ahead(now, host),
            Answer::Asking => {} // when it is found
            Answer::Ask => self.actions.push_back(Action::Resolve { host }),
            Answer::Missing => self.pools[host as usize].preconnect = 0,
        }
    }

    /// Opens what was to be opened ahead of need once the host's name was known.
    pub(crate) fn open_ahead(&mut self, now: Instant, host: u32) {
        let wanted = std::mem::take(&mut self.pools[host as usize].preconnect) as usize;
        let most = match self.transport(host) {
            Transport::Http1 => self.config.connections_per_host,
            Transport::Spdy(_) => usize::from(!self.has_shared_session(host)),
        };
        while self.pools[host as usize].connections.len() < wanted.min(most)
            && self.open < self.config.connections_max
        {
            self.open(now, host, Purpose::Speculative);
        }
    }

    /// A host is asked for something for the first time.
    pub(crate) fn greet(&mut self, now: Instant, host: u32) {
        let pool = &mut self.pools[host as usize];
        let first = !std::mem::replace(&mut pool.greeted, true);
        let blind = self.config.preconnect == Preconnect::BlindTwo;
        if first && blind && !self.pools[host as usize].aside && self.transport(host) == Transport::Http1 {
            self.preconnect(now, host, 2);
        }
    }

    /// A request is sent: what the page uses is learned.
    pub(crate) fn learn(&mut self, request: RequestId, host: u32, connection: ConnectionId) {
        let Some(visit) = self.visit.as_mut().filter(|_| !self.pools[host as usize].aside) else { return };
        visit.hosts.insert(host);
        let learns = self.config.preconnect == Preconnect::Learned;
        if learns {
            let origin = self.origin(host);
            self.learned.note_start(&origin);
        }
        let Some(visit) = &mut self.visit else { return };
        let first_seen = visit.connections.insert(connection);
        if visit.document.is_none() && host == visit.host {
            visit.document = Some(request); // whose connection is what the page's own host gets one more for
        }
        if visit.document == Some(request) || !first_seen {
            return;
        }
        let page = visit.host;
        if learns {
            let (page, host) = (self.origin(page), self.origin(host));
            self.learned.used(&page, &host);
        }
    }

    /// An hour has passed.
    pub(crate) fn decay(&mut self, now: Instant) {
        self.learned.decay();
        self.timers.set(Timer::Decay, now + DECAY_EVERY);
    }
}
