//! A scenario in virtual time: endpoints of the crate `tcp`.

use base::{Duration, Instant};
use tcp::{Endpoint, Event, Segment};

use crate::conformance::scenario::{Exchange, Outcome, Scenario};
use crate::conformance::track::{Client, Header, Server, Side, Track};

/// What an application does: the client asks and waits for the answer, the server the other way round.
struct Application {
    side: Side,
    script: Vec<Exchange>,
    at: usize,
    /// Bytes of the current message that are still to be read, and to be written.
    to_read: u64,
    to_write: u64,
    /// The client asks then.
    ask_at: Option<Instant>,
    over: bool,
}

struct Host {
    tcp: Endpoint,
    app: Application,
}

impl Application {
    fn new(side: Side, script: Vec<Exchange>) -> Self {
        let to_read = if side == Server { script[0].request } else { 0 };
        Self { side, script, at: 0, to_read, to_write: 0, ask_at: None, over: false }
    }

    fn on_event(&mut self, now: Instant, event: Event) {
        match event {
            Event::Connected if self.side == Client => self.ask_at = Some(now + self.script[0].pause),
            Event::PeerClosed => self.over = true,
            Event::Failed(error) => panic!("{error}"),
            _ => {}
        }
    }

    /// The bytes that were to be read have been.
    fn on_message(&mut self, now: Instant, tcp: &mut Endpoint) {
        let exchange = self.script[self.at];
        if self.side == Server {
            self.to_write += exchange.response;
            self.at += 1;
            self.to_read = self.script.get(self.at).map_or(0, |next| next.request);
            return;
        }
        self.at += 1;
        match self.script.get(self.at) {
            Some(next) => self.ask_at = Some(now + next.pause),
            None => {
                self.over = true;
                tcp.close();
            }
        }
    }
}

impl Host {
    fn new(tcp: Endpoint, side: Side, script: &[Exchange]) -> Self {
        Self { tcp, app: Application::new(side, script.to_vec()) }
    }

    fn next_time(&self) -> Option<Instant> {
        self.tcp.poll_timeout().into_iter().chain(self.app.ask_at).min()
    }

    /// Lets the application do what it wants to, and gives the next segment.
    fn poll(&mut self, now: Instant) -> Option<Segment> {
        let Self { tcp, app } = self;
        while let Some(event) = tcp.poll_event() {
            app.on_event(now, event);
        }
        if app.ask_at.is_some_and(|at| at <= now) {
            let exchange = app.script[app.at];
            (app.ask_at, app.to_write, app.to_read) = (None, exchange.request, exchange.response);
        }
        let n = tcp.readable();
        if n > 0 {
            tcp.read(now, n);
            app.to_read = app.to_read.checked_sub(n).expect("no more than was asked for");
            if app.to_read == 0 {
                app.on_message(now, tcp);
            }
        }
        let n = tcp.writable().min(app.to_write);
        tcp.write(n);
        app.to_write -= n;
        tcp.poll_transmit(now)
    }
}

fn header(segment: &Segment) -> Header {
    Header {
        syn: segment.flags.syn,
        fin: segment.flags.fin,
        rst: segment.flags.rst,
        psh: segment.flags.psh,
        seq: segment.seq,
        ack: if segment.flags.ack { segment.ack } else { 0 },
        window: segment.window,
        len: u64::from(segment.len),
        sacks: segment.sack.len(),
    }
}

/// Runs a scenario.
///
/// # Panics
/// As [`run_from`].
pub fn run(scenario: &Scenario) -> Outcome {
    run_from(scenario, Instant::ZERO)
}

/// Runs a scenario that begins then.
///
/// # Panics
/// If it comes to nothing, or lasts for more than an hour.
pub fn run_from(scenario: &Scenario, start: Instant) -> Outcome {
    let mut now = start;
    let mut track = Track::new(&scenario.network);
    let pair = |script: &Vec<Exchange>| {
        let client = Host::new(Endpoint::connect(scenario.client.clone(), now), Client, script);
        [client, Host::new(Endpoint::accept(scenario.server.clone(), now), Server, script)]
    };
    let mut hosts: Vec<_> = scenario.connections.iter().map(pair).collect();
    loop {
        for (connection, pair) in hosts.iter_mut().enumerate() {
            for (host, side) in pair.iter_mut().zip([Client, Server]) {
                while let Some(segment) = host.poll(now) {
                    track.send(now, connection, side, header(&segment), segment.wire_len(), segment);
                }
            }
        }
        if hosts.iter().flatten().all(|host| host.app.over) {
            break;
        }
        let next = hosts.iter().flatten().filter_map(Host::next_time).chain(track.next_time()).min();
        now = next.unwrap_or_else(|| panic!("{}: there is nothing left to do", scenario.name)).max(now);
        assert!(now < start + Duration::from_secs(3_600), "{}: it ends", scenario.name);
        // One packet at a time: what it causes comes before the next.
        if let Some((connection, from, segment)) = track.deliver(now) {
            hosts[connection][1 - from as usize].tcp.handle_segment(now, &segment);
        } else {
            hosts.iter_mut().flatten().for_each(|host| host.tcp.handle_timeout(now));
        }
    }
    let stats = hosts.iter().map(|pair| pair[1].tcp.stats().clone()).collect();
    Outcome::new(scenario, track.notes, stats)
}
