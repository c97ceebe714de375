//! Every handshake over a pipe with a round-trip time of 100 ms: what is sent when, and when the server reads the
//! first byte of a request.
//!
//! ```text
//! cargo run -p velodrome-tls --example handshakes
//! ```

use base::{BodyRange, Chunk, Duration, Instant};
use tls::{Config, Mode, Session};

const RTT: Duration = Duration::from_millis(100);

/// Takes all that one end has to send, and says how much that is.
fn transmit(now: Instant, end: &mut Session, who: &str) -> Vec<Chunk> {
    let chunks: Vec<_> = std::iter::from_fn(|| end.poll_transmit(now, u64::MAX)).collect();
    let bytes: u64 = chunks.iter().map(Chunk::len).sum();
    if bytes > 0 {
        println!("  {:>3} ms  {who} sends {bytes} bytes", now.as_micros() / 1_000);
    }
    chunks
}

fn race(name: &str, config: Config) {
    println!("{name}");
    let mut now = Instant::ZERO;
    let mut client = Session::client(config.clone(), now);
    let mut server = Session::server(config, now);
    client.write(BodyRange { source: 0, start: 0, len: 400 }.into());
    loop {
        let up = transmit(now, &mut client, "client");
        let down = transmit(now, &mut server, "server");
        if up.is_empty() && down.is_empty() {
            break;
        }
        now += RTT / 2;
        for chunk in up {
            server.handle_input(now, chunk).expect("a client without fault");
        }
        for chunk in down {
            client.handle_input(now, chunk).expect("a server without fault");
        }
        while let Some(chunk) = server.read() {
            println!("  {:>3} ms  server reads {} bytes of data", now.as_micros() / 1_000, chunk.len());
        }
    }
}

fn main() {
    race("TLS 1.2, full", Config::new(Mode::Tls12Full));
    race("TLS 1.2, full, False Start", Config { false_start: true, ..Config::new(Mode::Tls12Full) });
    race("TLS 1.2, resumed", Config::new(Mode::Tls12Resumed));
    race("TLS 1.3, full", Config::new(Mode::Tls13Full));
    race("TLS 1.3, resumed", Config::new(Mode::Tls13Resumed));
    race("TLS 1.3, early data", Config { early_data: true, ..Config::new(Mode::Tls13Resumed) });
}
