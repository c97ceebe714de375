//! One endpoint against a peer that is written down, in the manner of packetdrill: what arrives is given, what leaves is
//! expected, each with its millisecond. A failure prints the steps so far.

use std::collections::VecDeque;
use std::ops::Range;

use base::{Duration, Instant};
use tcp::{Config, Endpoint, Event, Flags, Segment, SynOptions, Timestamps};

pub struct Script {
    pub tcp: Endpoint,
    pub now: Instant,
    sent: VecDeque<(Instant, Segment)>,
    steps: String,
}

/// The peer's window unless a step says otherwise.
pub const WIDE: u64 = 1 << 20;

/// A segment of the peer's.
pub fn ack(ack: u64) -> Segment {
    let flags = Flags { ack: true, ..Flags::default() };
    Segment { seq: 1, ack, window: WIDE, flags, ..Segment::default() }
}

/// `ack`, with SACK blocks.
pub fn sack<const N: usize>(to: u64, blocks: [Range<u64>; N]) -> Segment {
    let mut segment = ack(to);
    for block in blocks {
        assert!(segment.sack.push(block));
    }
    segment
}

/// The peer's data from `range`, acknowledging `to`.
pub fn data(range: Range<u64>, to: u64) -> Segment {
    Segment { seq: range.start, len: (range.end - range.start) as u32, ..ack(to) }
}

/// The peer's FIN at `seq`.
pub fn fin(seq: u64, to: u64) -> Segment {
    let mut segment = Segment { seq, ..ack(to) };
    segment.flags.fin = true;
    segment
}

/// The peer's SYN, with all options.
pub fn syn(window: u64) -> Segment {
    Segment {
        window,
        syn_options: Some(SynOptions { mss: 1460, sack_permitted: true, window_scaling: true }),
        timestamps: Some(Timestamps::default()),
        flags: Flags { syn: true, ..Flags::default() },
        ..Segment::default()
    }
}

impl Script {
    pub fn new(tcp: Endpoint) -> Self {
        Self { tcp, now: Instant::ZERO, sent: VecDeque::new(), steps: String::new() }
    }

    /// A server whose handshake took from 0 to 100 ms, without timestamps so that a full segment has 1460 bytes, and with exact timers.
    pub fn server(config: Config) -> Self {
        let config = Config { timestamps: false, timer_tick: Duration::ZERO, ..config };
        let mut script = Self::new(Endpoint::accept(config, Instant::ZERO));
        script.get(0, syn(65_535));
        script.send_any(0);
        script.get(100, ack(1));
        assert_eq!(script.tcp.poll_event(), Some(Event::Connected));
        script
    }

    /// A client, likewise.
    pub fn client(config: Config) -> Self {
        let config = Config { timestamps: false, timer_tick: Duration::ZERO, ..config };
        let mut script = Self::new(Endpoint::connect(config, Instant::ZERO));
        script.send_any(0);
        let mut answer = Segment { ack: 1, ..syn(65_535) };
        answer.flags.ack = true;
        script.get(100, answer);
        script.send_any(100);
        assert_eq!(script.tcp.poll_event(), Some(Event::Connected));
        script
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn drain(&mut self) {
        while let Some(segment) = self.tcp.poll_transmit(self.now) {
            self.steps += &format!("{:>10.3}  sends {segment:?}\n", self.now.as_nanos() as f64 / 1e6);
            self.sent.push_back((self.now, segment));
        }
    }

    /// Lets time pass, timers included, up to `ms`.
    pub fn wait(&mut self, ms: u64) {
        while let Some(at) = self.tcp.poll_timeout().filter(|at| *at <= Self::at(ms)) {
            self.now = at;
            self.tcp.handle_timeout(at);
            self.drain();
        }
        self.now = Self::at(ms);
    }

    /// A segment arrives.
    pub fn get(&mut self, ms: u64, segment: Segment) {
        self.wait(ms);
        self.steps += &format!("{ms:>10.3}  gets  {segment:?}\n");
        self.tcp.handle_segment(self.now, &segment);
        self.drain();
    }

    /// The application does something.
    pub fn does(&mut self, ms: u64, what: &str, action: impl FnOnce(&mut Endpoint, Instant)) {
        self.wait(ms);
        self.steps += &format!("{ms:>10.3}  {what}\n");
        action(&mut self.tcp, self.now);
        self.drain();
    }

    pub fn write(&mut self, ms: u64, n: u64) {
        self.does(ms, &format!("writes {n}"), |tcp, _| tcp.write(n));
    }

    pub fn read(&mut self, ms: u64) {
        self.does(ms, "reads", |tcp, now| tcp.read(now, tcp.readable()));
    }

    /// The next segment out is this one, sent at `ms`: `Debug`'s line, or how it begins.
    pub fn send(&mut self, ms: u64, line: &str) {
        if self.sent.is_empty() {
            self.wait(ms);
        }
        let next = self.sent.pop_front();
        let ok = next.is_some_and(|(at, segment)| {
            at.as_micros() / 1000 == ms && format!("{segment:?}").starts_with(line)
        });
        assert!(ok, "at {ms}: expected `{line}`, got {next:?}\n{}", self.steps);
    }

    /// Full segments with data, in order, all sent at `ms`.
    pub fn send_full(&mut self, ms: u64, range: Range<u64>) {
        for seq in range.step_by(1460) {
            if self.sent.is_empty() {
                self.wait(ms);
            }
            let next = self.sent.pop_front();
            let ok = next.is_some_and(|(at, segment)| {
                at.as_micros() / 1000 == ms && segment.seq == seq && segment.len == 1460
            });
            assert!(ok, "at {ms}: expected the full segment {seq}, got {next:?}\n{}", self.steps);
        }
    }

    /// The next segment out, whatever it is.
    pub fn send_any(&mut self, ms: u64) -> Segment {
        self.drain();
        self.wait(ms);
        let steps = &self.steps;
        self.sent.pop_front().unwrap_or_else(|| panic!("at {ms}: expected a segment\n{steps}")).1
    }

    /// All that was sent and not yet expected, with its milliseconds.
    pub fn take_sent(&mut self) -> Vec<(u64, Segment)> {
        self.sent.drain(..).map(|(at, segment)| (at.as_micros() / 1000, segment)).collect()
    }

    /// Nothing (more) is sent up to `ms`.
    pub fn silent(&mut self, ms: u64) {
        self.wait(ms);
        assert!(self.sent.is_empty(), "up to {ms}: expected silence, got {:?}\n{}", self.sent, self.steps);
    }

    /// Fails with the steps so far unless `got` is `expected`.
    pub fn check<T: PartialEq + std::fmt::Debug>(&self, what: &str, got: T, expected: T) {
        assert!(got == expected, "{what}: expected {expected:?}, got {got:?}\n{}", self.steps);
    }
}
