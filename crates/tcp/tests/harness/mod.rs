//! Two endpoints and the wires between them, with checkers that stand outside: what was received is counted from the
//! segments that crossed the wire, not asked of the endpoints.

#![allow(dead_code, reason = "every test, bench and example uses a part of it")]

pub mod closed_form;
pub mod script;
pub mod table;

use std::collections::{BTreeMap, VecDeque};

use base::{Bitrate, Duration, Instant};
use tcp::{Config, Endpoint, Event, Segment};

/// Which packets vanish: asked with a packet's number, from 0.
pub type Rule = Box<dyn FnMut(u64, &Segment) -> bool>;

/// A direction: a rate, a queue without end, a propagation delay, and a rule that says which packets vanish.
pub struct Wire {
    pub rate: Option<Bitrate>,
    pub delay: Duration,
    /// A packet lost takes no time on the wire.
    pub lose: Rule,
    free_at: Instant,
    flying: VecDeque<(Instant, Segment)>,
    pub packets: u64,
}

impl Wire {
    pub fn new(rate: Option<Bitrate>, delay: Duration) -> Self {
        let lose = Box::new(|_, _: &Segment| false);
        Self { rate, delay, lose, free_at: Instant::ZERO, flying: VecDeque::new(), packets: 0 }
    }

    /// Says whether the segment was lost.
    fn push(&mut self, now: Instant, segment: Segment) -> bool {
        self.packets += 1;
        if (self.lose)(self.packets - 1, &segment) {
            return true;
        }
        let took = self.rate.map_or(Duration::ZERO, |rate| rate.time_to_send(u64::from(segment.wire_len())));
        self.free_at = self.free_at.max(now) + took;
        self.flying.push_back((self.free_at + self.delay, segment));
        false
    }

    fn next(&self) -> Option<Instant> {
        self.flying.front().map(|(at, _)| *at)
    }
}

/// Which end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Client,
    Server,
}
pub use Side::{Client, Server};

/// One end and its application.
pub struct Host {
    pub tcp: Endpoint,
    pub config: Config,
    /// The wire that leads away from it.
    pub wire: Wire,
    /// What the application still wants to write; it does so as soon as `writable` allows, once connected.
    pub to_write: u64,
    pub close_after_writing: bool,
    /// Whether the application reads at once all that is readable.
    pub reads: bool,
    pub read: u64,
    pub events: Vec<(Instant, Event)>,
    connected: bool,
    closed: bool,
    aborted: bool,
    /// From outside: the first sequence number not arrived, what arrived beyond it, the FIN's number; how far this end
    /// may send and has sent.
    prefix: u64,
    arrived: BTreeMap<u64, u64>,
    fin: Option<u64>,
    allowed: u64,
    sent_to: u64,
}

/// Both ends.
pub struct World {
    pub now: Instant,
    pub client: Host,
    pub server: Host,
    /// Everything sent, in order: when, by whom, what, lost or not.
    pub trace: Vec<(Instant, Side, Segment, bool)>,
    /// Off for benchmarks.
    pub checks: bool,
    started: bool,
}

/// A symmetrical path.
pub struct Path {
    pub down: Option<Bitrate>,
    pub up: Option<Bitrate>,
    pub rtt: Duration,
}

impl World {
    /// Timers are exact, whatever the configurations say.
    pub fn new(client: Config, server: Config, path: &Path) -> Self {
        let now = Instant::ZERO;
        let [client, server] = [client, server].map(|c| Config { timer_tick: Duration::ZERO, ..c });
        Self {
            now,
            client: Host::new(
                Endpoint::connect(client.clone(), now),
                client,
                Wire::new(path.up, path.rtt / 2),
            ),
            server: Host::new(
                Endpoint::accept(server.clone(), now),
                server,
                Wire::new(path.down, path.rtt / 2),
            ),
            trace: Vec::new(),
            checks: true,
            started: false,
        }
    }

    pub fn host(&mut self, side: Side) -> &mut Host {
        match side {
            Client => &mut self.client,
            Server => &mut self.server,
        }
    }

    /// Handles the next thing to happen; says whether there was any.
    pub fn step(&mut self) -> bool {
        if !self.started {
            self.started = true;
            self.drain(Client);
            return true;
        }
        let next = [
            (self.server.wire.next(), Client, true),
            (self.client.wire.next(), Server, true),
            (self.client.tcp.poll_timeout(), Client, false),
            (self.server.tcp.poll_timeout(), Server, false),
        ];
        let next = next.into_iter().filter_map(|(at, side, wire)| at.map(|at| (at, side, wire)));
        let Some((at, side, wire)) = next.min_by_key(|(at, ..)| *at) else { return false };
        self.require(at >= self.now, "no deadline lies in the past");
        self.now = at;
        if wire {
            let from = if side == Client { &mut self.server.wire } else { &mut self.client.wire };
            let (_, segment) = from.flying.pop_front().expect("it has a next time");
            self.deliver(side, &segment);
        } else {
            self.host(side).tcp.handle_timeout(at);
        }
        self.drain(side);
        true
    }

    /// Runs until nothing is left to do, or `end`.
    pub fn run_until(&mut self, end: Instant) {
        while self.next_time().is_some_and(|at| at <= end) && self.step() {}
    }

    pub fn next_time(&self) -> Option<Instant> {
        if !self.started {
            return Some(self.now);
        }
        let all = [
            self.server.wire.next(),
            self.client.wire.next(),
            self.client.tcp.poll_timeout(),
            self.server.tcp.poll_timeout(),
        ];
        all.into_iter().flatten().min()
    }

    /// Runs until `done` says so; fails if nothing is left to do before, or `limit` has passed.
    pub fn run_while(&mut self, limit: Instant, mut going: impl FnMut(&World) -> bool) {
        while going(self) {
            let stepped = self.step();
            self.require(stepped, "there is still something to do");
            self.require(self.now <= limit, "it does not take so long");
        }
    }

    fn deliver(&mut self, side: Side, segment: &Segment) {
        let (now, checks) = (self.now, self.checks);
        let host = self.host(side);
        host.tcp.handle_segment(now, segment);
        if checks && (segment.len > 0 || segment.flags.fin) && !segment.flags.syn {
            host.note_arrival(segment);
        }
        self.check_received(side);
    }

    /// The application gives up.
    pub fn abort(&mut self, side: Side) {
        self.host(side).aborted = true;
        self.host(side).tcp.abort();
        self.drain(side);
    }

    /// Lets the application and the endpoint do all they want to do now.
    pub fn drain(&mut self, side: Side) {
        let now = self.now;
        loop {
            let checks = self.checks;
            let host = self.host(side);
            host.run_application(now);
            let (cwnd, in_flight) = (host.tcp.stats().cwnd, host.tcp.segments_in_flight());
            let probes = host.tcp.stats().tlp_probes + host.tcp.stats().window_probes;
            let Some(segment) = host.tcp.poll_transmit(now) else { break };
            let lost = host.wire.push(now, segment);
            if checks {
                self.trace.push((now, side, segment, lost));
                let probe = self.host(side).tcp.stats();
                let probe = probe.tlp_probes + probe.window_probes > probes;
                let cwnd = cwnd.min(self.host(side).tcp.stats().cwnd);
                self.check_sent(side, &segment, in_flight < cwnd || probe);
            }
        }
    }

    fn check_received(&mut self, side: Side) {
        let checks = self.checks;
        let host = self.host(side);
        if !checks || host.aborted {
            return;
        }
        let in_order = host.in_order();
        let has = host.read + host.tcp.readable();
        self.require(has == in_order, &format!("{side:?} has {has} bytes and {in_order} arrived in order"));
    }

    fn check_sent(&mut self, side: Side, segment: &Segment, has_window: bool) {
        let peer_offer = segment.ack + segment.window;
        let host = self.host(side);
        let new = segment.end() > host.sent_to && !segment.flags.syn;
        let (end, allowed) = (segment.seq + u64::from(segment.len), host.allowed);
        host.sent_to = host.sent_to.max(segment.end());
        self.require(
            !new || end <= allowed,
            &format!("{segment:?} stays within the window, which ends at {allowed}"),
        );
        self.require(!new || has_window, &format!("{segment:?} had room in cwnd"));
        if segment.flags.rst {
            return;
        }
        let other = self.host(if side == Client { Server } else { Client });
        let offered = if segment.flags.ack { peer_offer } else { 1 + segment.window };
        let shrunk = offered < other.allowed;
        other.allowed = other.allowed.max(offered);
        self.require(!shrunk, &format!("{segment:?} does not take back what was offered"));
    }

    /// Fails with everything that has happened so far.
    pub fn require(&self, ok: bool, what: &str) {
        assert!(ok, "at {:?}: expected that {what}\n{}", self.now, self.story());
    }

    /// The trace, one line a segment.
    pub fn story(&self) -> String {
        let skip = self.trace.len().saturating_sub(200);
        let line = |(at, side, segment, lost): &(Instant, Side, Segment, bool)| {
            let (arrow, lost) = (if *side == Client { ">" } else { "<" }, if *lost { "   LOST" } else { "" });
            format!("{:>12.3} {arrow} {segment:?}{lost}\n", at.as_nanos() as f64 / 1e6)
        };
        self.trace.iter().skip(skip).map(line).collect()
    }

    /// When `side` sent segments that `which` picks, in whole milliseconds.
    pub fn times(&self, side: Side, which: impl Fn(&Segment) -> bool) -> Vec<u64> {
        let sent = self.trace.iter().filter(|(_, by, segment, _)| *by == side && which(segment));
        sent.map(|(at, ..)| at.as_micros() / 1000).collect()
    }

    /// When `side` saw `event` first.
    pub fn when(&self, side: Side, event: Event) -> Option<Instant> {
        let host = if side == Client { &self.client } else { &self.server };
        host.events.iter().find(|(_, e)| *e == event).map(|(at, _)| *at)
    }
}

impl Host {
    fn new(tcp: Endpoint, config: Config, wire: Wire) -> Self {
        Self {
            tcp,
            config,
            wire,
            to_write: 0,
            close_after_writing: false,
            reads: true,
            read: 0,
            events: Vec::new(),
            connected: false,
            closed: false,
            aborted: false,
            prefix: 1,
            arrived: BTreeMap::new(),
            fin: None,
            allowed: 0,
            sent_to: 0,
        }
    }

    fn run_application(&mut self, now: Instant) {
        while let Some(event) = self.tcp.poll_event() {
            self.connected |= event == Event::Connected;
            if !matches!(event, Event::Readable | Event::Writable) {
                self.events.push((now, event));
            }
        }
        if self.reads {
            let n = self.tcp.readable();
            if n > 0 {
                self.tcp.read(now, n);
                self.read += n;
            }
        }
        if !self.connected {
            return;
        }
        let n = self.tcp.writable().min(self.to_write);
        if n > 0 {
            self.tcp.write(n);
            self.to_write -= n;
        }
        if self.to_write == 0 && self.close_after_writing && !self.closed {
            self.closed = true;
            self.tcp.close();
        }
    }

    /// Puts what arrived together, without asking the endpoint.
    fn note_arrival(&mut self, segment: &Segment) {
        if segment.flags.fin {
            self.fin = Some(segment.end() - 1);
        }
        let longest = self.arrived.entry(segment.seq).or_insert(0);
        *longest = (*longest).max(segment.end());
        while let Some(first) = self.arrived.first_entry().filter(|first| *first.key() <= self.prefix) {
            self.prefix = self.prefix.max(first.remove());
        }
    }

    /// Bytes in order among what arrived, a FIN not counted.
    pub fn in_order(&self) -> u64 {
        self.prefix.min(self.fin.unwrap_or(u64::MAX)) - 1
    }
}
