//! Two sessions over a pipe with a round-trip time, in virtual time.

use std::collections::VecDeque;

use base::{BodyRange, Chunk, ChunkQueue, Duration, Instant};

use crate::*;

const RTT: Duration = Duration::from_millis(100);

/// A client and a server with a lossless pipe between them that takes half an RTT, however much is sent.
struct Pair {
    client: Session,
    server: Session,
    now: Instant,
    /// Chunks on their way, with the time of arrival and whether they go up.
    wire: VecDeque<(Instant, bool, Chunk)>,
    /// Bytes of each flight, in the order of their sending; `true` is the client's.
    flights: Vec<(bool, u64)>,
    /// When the server first read a byte of data, and the client.
    first_byte: [Option<Instant>; 2],
}

impl Pair {
    fn new(config: Config) -> Self {
        let now = Instant::ZERO;
        Self {
            client: Session::client(config.clone(), now),
            server: Session::server(config, now),
            now,
            wire: VecDeque::new(),
            flights: Vec::new(),
            first_byte: [None; 2],
        }
    }

    /// Sends all there is to send.
    fn transmit(&mut self) {
        for up in [true, false] {
            let end = if up { &mut self.client } else { &mut self.server };
            let mut bytes = 0;
            while let Some(chunk) = end.poll_transmit(self.now, u64::MAX) {
                bytes += chunk.len();
                self.wire.push_back((self.now + RTT / 2, up, chunk));
            }
            if bytes > 0 {
                self.flights.push((up, bytes));
            }
        }
    }

    /// Runs until nothing is on the wire and nothing is held back.
    fn run(&mut self) {
        loop {
            self.transmit();
            let timers = [self.client.poll_timeout(), self.server.poll_timeout()];
            let arrival = self.wire.front().map(|(at, ..)| *at);
            let Some(next) = timers.into_iter().flatten().chain(arrival).min() else { return };
            self.now = next;
            while self.wire.front().is_some_and(|(at, ..)| *at <= next) {
                let (_, up, chunk) = self.wire.pop_front().unwrap();
                let end = if up { &mut self.server } else { &mut self.client };
                end.handle_input(next, chunk).unwrap();
            }
            for (up, end) in [(0, &mut self.server), (1, &mut self.client)] {
                while end.read().is_some() {
                    self.first_byte[up].get_or_insert(next);
                }
            }
        }
    }
}

fn body(len: u64) -> Chunk {
    BodyRange { source: 1, start: 0, len }.into()
}

#[test]
fn round_trips_before_the_first_byte_are_those_of_the_specifications() {
    let with = |mode, false_start| Config { false_start, ..Config::new(mode) };
    // Round trips before the request leaves, TCP's own not counted: RFC 5246 section 7.3, RFC 7918 section 1,
    // RFC 8446 section 2.
    for (config, round_trips) in [
        (with(Mode::Tls12Full, false), 2),
        (with(Mode::Tls12Full, true), 1),
        (with(Mode::Tls12Resumed, false), 1),
        (with(Mode::Tls12Resumed, true), 1),
        (with(Mode::Tls13Full, false), 1),
        (with(Mode::Tls13Resumed, false), 1),
        (Config { early_data: true, ..Config::new(Mode::Tls13Resumed) }, 0),
    ] {
        let mut pair = Pair::new(config.clone());
        pair.client.write(body(100));
        pair.run();
        let expected = Instant::ZERO + RTT * round_trips + RTT / 2;
        assert_eq!(pair.first_byte[0], Some(expected), "{config:?}");
        assert!(!pair.client.is_handshaking() && !pair.server.is_handshaking());
    }
    let _ = ChunkQueue::new();
}
