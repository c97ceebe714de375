//! A request of 300 bytes and a response of 30 kB over 100 ms, one segment of which is lost: prints what crosses the
//! wire, in the manner of tcpdump.
//!
//!     cargo run -p velodrome-tcp --example transfer

use std::collections::VecDeque;

use base::{Duration, Instant};
use tcp::{Config, Endpoint, Event, Segment};

const ONE_WAY: Duration = Duration::from_millis(50);

/// An endpoint, the bytes that its application still has to write, and what flies towards it.
struct Host {
    name: &'static str,
    tcp: Endpoint,
    to_write: u64,
    closed: bool,
    incoming: VecDeque<(Instant, Segment)>,
}

impl Host {
    fn new(name: &'static str, tcp: Endpoint, to_write: u64) -> Self {
        Self { name, tcp, to_write, closed: false, incoming: VecDeque::new() }
    }

    fn next_time(&self) -> Option<Instant> {
        self.incoming.front().map(|(at, _)| *at).into_iter().chain(self.tcp.poll_timeout()).min()
    }

    /// One mutation, then drain. The application is asked before each segment, so that segments are full.
    fn step(&mut self, now: Instant, mut send: impl FnMut(Segment)) {
        match self.incoming.front() {
            Some((at, segment)) if *at <= now => {
                self.tcp.handle_segment(now, segment);
                self.incoming.pop_front();
            }
            _ => self.tcp.handle_timeout(now),
        }
        loop {
            self.serve(now);
            let Some(segment) = self.tcp.poll_transmit(now) else { break };
            println!("{:>8} {} {segment:?}", now.as_micros() / 1000, self.name);
            send(segment);
        }
    }

    fn serve(&mut self, now: Instant) {
        while let Some(event) = self.tcp.poll_event() {
            if !matches!(event, Event::Readable | Event::Writable) {
                println!("{:>8} {} {event:?}", now.as_micros() / 1000, self.name);
            }
        }
        self.tcp.read(now, self.tcp.readable());
        let n = self.tcp.writable().min(self.to_write);
        self.tcp.write(n);
        self.to_write -= n;
        if self.to_write == 0 && !self.closed {
            self.closed = true;
            self.tcp.close();
        }
    }
}

fn main() {
    let start = Instant::ZERO;
    let mut client = Host::new("client", Endpoint::connect(Config::linux_today(), start), 300);
    let mut server = Host::new("server", Endpoint::accept(Config::linux_today(), start), 30_000);
    let (mut now, mut count) = (start, 0);
    client.step(now, |segment| server.incoming.push_back((now + ONE_WAY, segment)));
    while let Some(at) = client.next_time().into_iter().chain(server.next_time()).min() {
        now = at;
        if client.next_time() == Some(now) {
            client.step(now, |segment| server.incoming.push_back((now + ONE_WAY, segment)));
        } else {
            server.step(now, |segment| {
                count += 1;
                if count == 5 {
                    println!("{:>8} the path loses {}", "", segment.seq);
                } else {
                    client.incoming.push_back((now + ONE_WAY, segment));
                }
            });
        }
    }
    println!("{:#?}", server.tcp.stats());
}
