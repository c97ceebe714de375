//! Handshakes over virtual TCP, on a link without loss or limit: the bytes of a flight against the initial window.

use std::collections::VecDeque;

use base::{BodyRange, ChunkQueue, Duration, Instant};
use tls::{Config, Mode, Session};

const RTT: Duration = Duration::from_millis(100);

struct End {
    tcp: tcp::Endpoint,
    tls: Session,
    /// Handed to TCP; the other end takes it as its TCP says that it has arrived.
    content: ChunkQueue,
    /// Bytes of the peer's content taken so far.
    taken: u64,
}

impl End {
    fn new(tcp: tcp::Endpoint, tls: Session) -> Self {
        Self { tcp, tls, content: ChunkQueue::new(), taken: 0 }
    }

    /// Hands TLS what has arrived, and TCP what TLS has to send.
    fn service(&mut self, now: Instant, peer: &mut ChunkQueue) {
        while let Some(chunk) = peer.pop(self.tcp.readable() - self.taken) {
            self.taken += chunk.len();
            self.tls.handle_input(now, chunk).expect("a peer without fault");
        }
        while let Some(chunk) = self.tls.poll_transmit(now, self.tcp.writable()) {
            self.tcp.write(chunk.len());
            self.content.push(chunk);
        }
    }
}

/// Round trips from the client's SYN to the server's first byte of a request.
fn round_trips(initial_cwnd: u32, config: Config) -> f64 {
    let mut now = Instant::ZERO;
    // The windows are wide enough to leave everything unread at TCP's door.
    let tcp = tcp::Config { initial_cwnd, mss: 1_460, timestamps: false, ..tcp::Config::linux_today() };
    let mut client = End::new(tcp::Endpoint::connect(tcp.clone(), now), Session::client(config.clone(), now));
    let mut server = End::new(tcp::Endpoint::accept(tcp, now), Session::server(config, now));
    client.tls.write(BodyRange { source: 0, start: 0, len: 400 }.into());
    let mut wire = VecDeque::new();
    loop {
        client.service(now, &mut server.content);
        server.service(now, &mut client.content);
        if server.tls.read().is_some() {
            return now.as_nanos() as f64 / RTT.as_nanos() as f64;
        }
        for (up, end) in [(true, &mut client), (false, &mut server)] {
            while let Some(segment) = end.tcp.poll_transmit(now) {
                wire.push_back((now + RTT / 2, up, segment));
            }
        }
        let timers = [client.tcp.poll_timeout(), server.tcp.poll_timeout()];
        let arrival = wire.front().map(|(at, ..)| *at);
        now = timers.into_iter().flatten().chain(arrival).min().expect("the request is on its way");
        client.tcp.handle_timeout(now);
        server.tcp.handle_timeout(now);
        while wire.front().is_some_and(|(at, ..)| *at <= now) {
            let (_, up, segment) = wire.pop_front().expect("just seen");
            let end = if up { &mut server } else { &mut client };
            end.tcp.handle_segment(now, &segment);
        }
    }
}

/// An initial window of three segments is 4,380 bytes, one of ten is 14,600. What does not fit waits for the client's
/// acknowledgements.
#[test]
fn a_chain_that_outgrows_the_initial_window_costs_a_round_trip() {
    let full = |chain_len| Config { chain_len, ..Config::new(Mode::Tls12Full) };
    // TCP 1, TLS 2, and the request's way up.
    assert_eq!(round_trips(3, full(3_963)), 3.5, "a flight of 4,380 bytes");
    assert_eq!(round_trips(3, full(3_964)), 4.5, "a byte more");
    assert_eq!(round_trips(10, full(14_183)), 3.5, "a flight of 14,600 bytes");
    assert_eq!(round_trips(10, full(14_184)), 4.5, "a byte more");
    // A resumption has no chain to send.
    assert_eq!(round_trips(3, full(100_000).resumed()), 2.5);
    assert_eq!(round_trips(3, Config::new(Mode::Tls13Full)), 3.5, "4,526 bytes outgrow three segments");
    assert_eq!(round_trips(10, Config::new(Mode::Tls13Full)), 2.5);
}
