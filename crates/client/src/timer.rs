//! What the client waits for, by the clock: one ordered set of deadlines, each named for what it wakes.
//!
//! A deadline that is set anew moves; the world asks for the first one only.

use std::collections::{BTreeMap, BTreeSet};

use base::{Duration, Instant};

use crate::connection::{ConnectionId, State};
use crate::{Client, RequestId, Transport};

/// How long the client waits for what may never come. `None` waits for ever, as the client did before it had a clock.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Timeouts {
    /// From the start of connecting until the TCP handshake is complete.
    pub connect: Option<Duration>,
    /// From there until the TLS handshake is far enough along to carry requests.
    pub tls: Option<Duration>,
    /// How long an HTTP/1.1 connection that has never carried a request stays open.
    pub idle_unused: Option<Duration>,
    /// How long an HTTP/1.1 connection that has carried one stays open after the last.
    pub idle_used: Option<Duration>,
    /// How long a connection with requests under way may be silent, either way, before it is given up. A session that carries other
    /// answers is not silent. As long as other connections bring something, this limit and those on connecting are
    /// [`PATIENCE`](Self::PATIENCE) times as long: a line that is full makes everybody wait.
    pub silence: Option<Duration>,
}

impl Timeouts {
    /// How many times as long somebody is waited for while others bring something, if there is a limit on silence. A guess.
    pub const PATIENCE: u64 = 4;

    /// No limit on anything.
    pub const NONE: Self =
        Self { connect: None, tls: None, idle_unused: None, idle_used: None, silence: None };

    /// Chrome's: `kTransportConnectTimeoutInSeconds` 240 s (transport_client_socket_pool.cc),
    /// `kSSLHandshakeTimeoutInSeconds` 30 s (ssl_connect_job.cc), unused sockets 60 s and used ones 300 s
    /// (`g_unused_idle_socket_timeout_s`, `g_used_idle_socket_timeout_s` of client_socket_pool_base.cc). Sessions are
    /// not the socket pool's to close.
    pub const CHROME: Self = Self {
        connect: Some(Duration::from_secs(240)),
        tls: Some(Duration::from_secs(30)),
        idle_unused: Some(Duration::from_secs(60)),
        idle_used: Some(Duration::from_secs(300)),
        silence: None,
    };

    /// For [`Retry::RELOADING`](crate::Retry::RELOADING), a client that gives up on a connection where its user would on the page. After 10 s
    /// of waiting users turn to something else (Nielsen, "Usability Engineering", 1993, §5.5). Whatever waits for another time waits
    /// twice as long, as a network may be only slow. Idle connections as in Chrome.
    pub const RELOADING: Self = Self {
        connect: Some(Duration::from_secs(10)),
        tls: Some(Duration::from_secs(10)),
        silence: Some(Duration::from_secs(10)),
        ..Self::CHROME
    };

    /// Firefox's `network.http.connection-timeout` of 90 s, which holds until TCP is connected. Its limits on idle
    /// connections are not here: they come from each response's `Keep-Alive`, which the engine takes away.
    pub const FIREFOX: Self = Self { connect: Some(Duration::from_secs(90)), ..Self::NONE };
}

/// What is said of a connection that was given up before TCP was connected.
const NO_CONNECTION: &str = "no connection";

/// What a deadline wakes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Timer {
    /// A connection has been connecting, or securing itself, for too long.
    Connecting(ConnectionId),
    /// A connection has been idle for too long.
    Idle(ConnectionId),
    /// A connection takes long to be made: it gets company.
    Race(ConnectionId),
    /// The first request of this host waits long for a connection.
    RaceHost(u32),
    /// A dial tries its next address.
    Dial(u32),
    /// The addresses of this name, known by its first host, need wait no longer for the other family's.
    Resolution(u32),
    /// What was learned loses weight.
    Decay,
    /// A request that failed is sent again.
    Retry(RequestId),
    /// A pipeline is silent.
    Pipeline(ConnectionId),
    /// An authority has not answered this request.
    Check(RequestId),
    /// A connection with requests under way may have been silent for too long.
    Silence(ConnectionId),
}

/// Deadlines, the earliest first; of those at one moment, in the order of their names.
#[derive(Default)]
pub(crate) struct Timers {
    queue: BTreeSet<(Instant, Timer)>,
    set: BTreeMap<Timer, Instant>,
}

impl Timers {
    /// Sets a deadline, in the place of an earlier one of this name.
    pub(crate) fn set(&mut self, timer: Timer, at: Instant) {
        self.cancel(timer);
        self.set.insert(timer, at);
        self.queue.insert((at, timer));
    }

    /// Sets a deadline unless there is one of this name.
    pub(crate) fn set_first(&mut self, timer: Timer, at: Instant) {
        if !self.set.contains_key(&timer) {
            self.set(timer, at);
        }
    }

    pub(crate) fn cancel(&mut self, timer: Timer) {
        // Nothing is set as long as no limit is configured, and then nothing is looked for.
        if !self.set.is_empty()
            && let Some(at) = self.set.remove(&timer)
        {
            self.queue.remove(&(at, timer));
        }
    }

    fn next(&self) -> Option<Instant> {
        self.queue.first().map(|(at, _)| *at)
    }

    fn pop_due(&mut self, now: Instant) -> Option<Timer> {
        let &(at, timer) = self.queue.first().filter(|(at, _)| *at <= now)?;
        self.queue.remove(&(at, timer));
        self.set.remove(&timer);
        Some(timer)
    }
}

impl Client {
    /// When the client next wants [`Client::handle_timeout`]; `None` if it waits for nothing by the clock.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Time has passed: does what was due by `now`. A call too early is harmless. Drain the `poll_*`s afterwards, as
    /// after any other input.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.pop_due(now) {
            match timer {
                Timer::Connecting(id) => self.give_up_connecting(now, id),
                Timer::Idle(id) => self.close_and_go_on(now, id),
                Timer::Race(id) => self.race(now, id),
                Timer::RaceHost(host) => self.race_for_host(now, host),
                Timer::Dial(dial) => self.try_beside(now, dial),
                Timer::Resolution(host) => self.handle_resolved(now, host, true),
                Timer::Decay => self.decay(now),
                Timer::Retry(id) => self.retry(now, id),
                Timer::Pipeline(id) => self.watch_silence(now, id),
                Timer::Check(id) => self.give_up_check(now, id),
                Timer::Silence(id) => self.mind_silence(now, id),
            }
        }
    }

    /// A connection has begun a phase of being made that must not take longer than `limit`.
    pub(crate) fn limit_connecting(&mut self, now: Instant, id: ConnectionId, limit: Option<Duration>) {
        match limit {
            Some(limit) => self.timers.set(Timer::Connecting(id), now + limit),
            None => self.timers.cancel(Timer::Connecting(id)),
        }
    }

    /// How many times as long as the first time somebody waits who waits because of these requests: twice, once one of them was sent
    /// again, and no longer the third time, or a page whose scripts are on several hosts that are gone would be waited for forever.
    pub(crate) fn patience(&self, requests: impl Iterator<Item = RequestId>) -> u64 {
        let retries = requests.filter_map(|id| self.request(id)).map(|request| request.retries);
        if retries.max().unwrap_or(0) > 0 { 2 } else { 1 }
    }

    /// A limit on a connection that is being made for those who wait at a host.
    pub(crate) fn limit_for(&self, host: u32, limit: Option<Duration>) -> Option<Duration> {
        let waiting = self.pools[host as usize].waiting.iter().map(|(.., id)| *id);
        limit.map(|limit| limit * self.patience(waiting))
    }

    /// A request goes out on a connection, which must not be silent for too long from now on. Input and output do not move the
    /// deadline: who it wakes looks when there was some last.
    pub(crate) fn limit_silence(&mut self, now: Instant, id: ConnectionId) {
        if let Some(limit) = self.config.timeouts.silence {
            self.connections[id as usize].stirred = now;
            self.timers.set_first(Timer::Silence(id), now + limit);
        }
    }

    /// When somebody who has been waited for since a moment is to be given up, if that is not now.
    fn due_for_silence(&self, now: Instant, since: Instant, limit: Duration) -> Option<Instant> {
        let heard = self.heard.unwrap_or(since).max(since);
        Some((heard + limit).min(since + limit * Timeouts::PATIENCE)).filter(|due| *due > now)
    }

    /// A connection that has been silent for too long is given up, as if the peer had closed it.
    fn mind_silence(&mut self, now: Instant, id: ConnectionId) {
        let (Some(limit), connection) = (self.config.timeouts.silence, &self.connections[id as usize]) else {
            return;
        };
        if connection.state != State::Ready || connection.active.is_empty() {
            return;
        }
        let limit = limit * self.patience(connection.active.iter().map(|active| active.request));
        let since = connection.stirred;
        if let Some(due) = self.due_for_silence(now, since, limit) {
            return self.timers.set(Timer::Silence(id), due);
        }
        self.actions.push_back(crate::Action::Close { connection: id });
        self.lose(now, id, &format!("silent for {} s", tenths(now.since(since))));
    }

    /// A connection has come to rest, or may have: from now on it is open for nobody.
    pub(crate) fn limit_idle(&mut self, now: Instant, id: ConnectionId) {
        let connection = &self.connections[id as usize];
        if !connection.is_idle() || self.transport(connection.record.host) != Transport::Http1 {
            return;
        }
        let timeouts = &self.config.timeouts;
        let used = connection.record.requests > 0;
        if let Some(limit) = if used { timeouts.idle_used } else { timeouts.idle_unused } {
            self.timers.set(Timer::Idle(id), now + limit);
        }
    }

    /// The world is told to stop trying; whoever waited for this connection fails as if it had been refused.
    fn give_up_connecting(&mut self, now: Instant, id: ConnectionId) {
        let connection = &self.connections[id as usize];
        debug_assert_eq!(connection.state, State::Connecting, "the deadline went with the state");
        let host = connection.record.host;
        let (phase, since) = match connection.record.connected {
            None => (NO_CONNECTION, connection.record.opened),
            // Who waited for another's handshake did so for no longer than that took.
            Some(connected) => ("no TLS session", connection.record.handshake.unwrap_or(connected)),
        };
        let limits = &self.config.timeouts;
        let limit = if phase == NO_CONNECTION { limits.connect } else { limits.tls };
        if limits.silence.is_some()
            && let Some(limit) = self.limit_for(host, limit)
            && let Some(due) = self.due_for_silence(now, since, limit)
        {
            return self.timers.set(Timer::Connecting(id), due);
        }
        let seconds = tenths(now.since(since));
        self.actions.push_back(crate::Action::Close { connection: id });
        self.lose(now, id, &format!("{phase} after {seconds} s"));
    }
}

/// Seconds as people read them.
fn tenths(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}
