//! A second connection when the first takes too long: a SYN that was lost is not sent again for a second or more, and a
//! second SYN is seldom lost too.
//!
//! Sockets are bound late: whichever is ready first takes the request that waits. The other becomes ready too, finishing
//! its TLS handshake, and is there for the next request.

use base::{Duration, Instant};

use crate::connection::{ConnectionId, Purpose, State};
use crate::timer::Timer;
use crate::{Client, Transport};

/// When a spare connection is opened beside one that is being made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Racing {
    /// How long the first connection is given. Zero: no spare is ever opened.
    pub delay: Duration,
    /// From when that is counted.
    pub clock: RaceClock,
    /// Whether the spare goes to an IPv4 address if the host has one.
    pub spare_prefers_ipv4: bool,
}

/// What a race's delay is counted from, and what becomes of the spare at the limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RaceClock {
    /// Each connection that a request asked for, from the start of connecting, after the look-up, until it is connected.
    /// The limit on a host's connections does not count the spare.
    Connection,
    /// The first request of a host that has no connection, from when it was made. While the name is being looked up, or
    /// the limits leave no room, it begins anew. One spare a host.
    Host,
}

impl Racing {
    /// No spare connections.
    pub const OFF: Self =
        Self { delay: Duration::ZERO, clock: RaceClock::Connection, spare_prefers_ipv4: false };

    /// Firefox's since version 4: `network.http.connection-retry-timeout` 250 ms from when the name is resolved
    /// (nsHttpConnectionMgr.cpp, SetupBackupTimer); the spare over IPv4 (`network.http.fast-fallback-to-IPv4`).
    pub const FIREFOX: Self =
        Self { delay: Duration::from_millis(250), clock: RaceClock::Connection, spare_prefers_ipv4: true };

    /// Chrome's: `kMaxConnectRetryIntervalMs` 250 ms (client_socket_pool.cc); the timer is a socket group's, begins if the
    /// group was empty, and is set again during the look-up and at the limits (client_socket_pool_base.cc,
    /// OnBackupJobTimerFired).
    pub const CHROME: Self =
        Self { delay: Duration::from_millis(250), clock: RaceClock::Host, spare_prefers_ipv4: false };

    fn is_on(&self) -> bool {
        !self.delay.is_zero()
    }
}

impl Client {
    /// A connection has begun to be made.
    pub(crate) fn race_connection(&mut self, now: Instant, id: ConnectionId) {
        let racing = self.config.racing;
        // Never for a speculative one, whose delay costs nobody anything yet.
        let wanted = self.connections[id as usize].role == Purpose::Request;
        if racing.is_on() && racing.clock == RaceClock::Connection && wanted {
            self.timers.set(Timer::Race(id), now + racing.delay);
        }
    }

    /// A host's first request waits.
    pub(crate) fn race_host(&mut self, now: Instant, host: u32) {
        let racing = self.config.racing;
        let pool = &self.pools[host as usize];
        let first = pool.waiting.len() == 1 && pool.connections.is_empty();
        if racing.is_on() && racing.clock == RaceClock::Host && first {
            self.timers.set(Timer::RaceHost(host), now + racing.delay);
        }
    }

    /// A connection is not there after the delay: another is begun, if the limit on all of them allows.
    pub(crate) fn race(&mut self, now: Instant, id: ConnectionId) {
        let connection = &self.connections[id as usize];
        let host = connection.record.host;
        if connection.record.connected.is_none() && self.open < self.config.connections_max {
            self.open(now, host, Purpose::Spare);
        }
    }

    /// The delay of a host's first request has passed.
    pub(crate) fn race_for_host(&mut self, now: Instant, host: u32) {
        let pool = &self.pools[host as usize];
        let again = now + self.config.racing.delay;
        let state = |id: &ConnectionId| self.connections[*id as usize].state;
        let connecting = pool.connections.iter().any(|c| state(c) == State::Connecting);
        if pool.waiting.is_empty() {
            return;
        }
        if self.resolver.is_asking(host) {
            return self.timers.set(Timer::RaceHost(host), again);
        }
        if !connecting {
            return;
        }
        let full = self.transport(host) == Transport::Http1
            && pool.connections.len() >= self.config.connections_per_host;
        if full || self.open >= self.config.connections_max {
            return self.timers.set(Timer::RaceHost(host), again);
        }
        self.open(now, host, Purpose::Spare);
    }
}
