//! Our side in memory: a client's and a server's session, with all that sessions do (streams, windows, priorities, limits).
//! Bytes go from one to the other through a buffer of 64 KiB into which they are copied, as a socket would have it.

use std::collections::BTreeMap;
use std::path::Path;

use base::{Chunk, Fields, Instant, RequestHead, ResponseHead};
use bytes::{Bytes, BytesMut};
use live::Clock;
use serde::Deserialize;
use spdy::{Config, Event, Priority, Session, Version};

use crate::Rates;

const SMALL_FRAMES: usize = 10_000;
const SMALL_LEN: usize = 100;
const EXCHANGES: usize = 100;
const DATA_FRAMES: usize = 512;
const DATA_LEN: usize = 16 << 10;
/// Bytes that are carried at a time.
const BUFFER: usize = 64 << 10;
/// Nanoseconds that a load is run before it counts, and while it does.
const WARM_NS: u64 = 200_000_000;
const RUN_NS: u64 = 1_000_000_000;

/// The fields of a request and of a response; `{}` in a value is the number of the exchange.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Heads {
    request: BTreeMap<String, String>,
    response: BTreeMap<String, String>,
}

impl Heads {
    /// Reads the file.
    ///
    /// # Errors
    /// If it cannot be read or understood.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    fn fields(of: &BTreeMap<String, String>, i: usize) -> Fields {
        let mut fields = Fields::new();
        for (name, value) in of.iter().filter(|(name, _)| !name.starts_with(':')) {
            fields.push(name.clone(), value.replace("{}", &i.to_string()));
        }
        fields
    }

    fn request(&self, i: usize) -> RequestHead {
        let value = |name: &str| Bytes::from(self.request[name].replace("{}", &i.to_string()));
        RequestHead {
            method: value(":method"),
            scheme: value(":scheme"),
            authority: value(":host"),
            path: value(":path"),
            fields: Self::fields(&self.request, i),
        }
    }

    fn response(&self, i: usize) -> ResponseHead {
        ResponseHead { status: 200, fields: Self::fields(&self.response, i) }
    }
}

/// All loads, a second each.
pub fn run(heads: &Heads) -> Rates {
    let mut small = Uploads::new(SMALL_FRAMES, SMALL_LEN);
    let mut large = Uploads::new(DATA_FRAMES, DATA_LEN);
    let mut exchanges = Exchanges::new(heads);
    Rates {
        frames: rate(SMALL_FRAMES, || small.run()),
        blocks: rate(2 * EXCHANGES, || exchanges.run()),
        bytes: rate(DATA_FRAMES * DATA_LEN, || large.run()),
    }
}

/// How many units a second `work` does, of which each call is `units`.
fn rate(units: usize, mut work: impl FnMut()) -> f64 {
    let mut until = |ns: u64| {
        let clock = Clock::start();
        let start = clock.now();
        let mut runs = 0;
        loop {
            work();
            runs += 1;
            let passed = clock.now().since(start).as_nanos();
            if passed >= ns {
                return (runs * units) as f64 / (passed as f64 / 1e9);
            }
        }
    };
    until(WARM_NS);
    until(RUN_NS)
}

/// Copies what there is from one end to the other.
fn carry(from: &mut Session, to: &mut Session) {
    loop {
        let mut buffer = BytesMut::with_capacity(BUFFER);
        while let Some(chunk) = from.poll_transmit(Instant::ZERO, (BUFFER - buffer.len()) as u64) {
            let Chunk::Bytes(bytes) = chunk else { unreachable!("only bytes were sent") };
            buffer.extend_from_slice(&bytes);
        }
        if buffer.is_empty() {
            return;
        }
        to.handle_input(Instant::ZERO, buffer.freeze().into())
            .expect("our own sessions understand each other");
    }
}

/// Uploads of `count` frames, each on a stream of its own.
struct Uploads {
    client: Session,
    server: Session,
    body: Bytes,
    head: RequestHead,
}

impl Uploads {
    fn new(count: usize, len: usize) -> Self {
        let config = Config { max_data_frame: len as u32, ..Config::new(Version::V3_1) };
        let head = RequestHead {
            method: "POST".into(),
            scheme: "http".into(),
            authority: "localhost".into(),
            path: "/".into(),
            fields: Fields::new(),
        };
        let (client, server) = (Session::client(config.clone()), Session::server(config));
        Self { client, server, body: Bytes::from(vec![0; count * len]), head }
    }

    fn run(&mut self) {
        let id = self.client.request(&self.head, Priority::new(0), false).expect("a stream is free");
        self.client.send(id, self.body.clone().into(), true).expect("the stream is open");
        let (mut seen, mut answered) = (0, false);
        while !answered {
            carry(&mut self.client, &mut self.server);
            while let Some(event) = self.server.poll_event() {
                let Event::Data { id, chunk, fin } = event else { continue };
                seen += chunk.len();
                self.server.consume(id, chunk.len());
                if fin {
                    let head = ResponseHead { status: 200, fields: Fields::new() };
                    self.server.respond(id, &head, true).expect("the stream is open");
                }
            }
            carry(&mut self.server, &mut self.client);
            while let Some(event) = self.client.poll_event() {
                answered |= matches!(event, Event::Response { fin: true, .. });
            }
        }
        assert_eq!(seen, self.body.len() as u64);
    }
}

/// Requests answered by their heads alone.
struct Exchanges<'h> {
    heads: &'h Heads,
    client: Session,
    server: Session,
    asked: usize,
    answered: usize,
}

impl<'h> Exchanges<'h> {
    fn new(heads: &'h Heads) -> Self {
        let config = Config::new(Version::V3_1);
        let (client, server) = (Session::client(config.clone()), Session::server(config));
        Self { heads, client, server, asked: 0, answered: 0 }
    }

    fn run(&mut self) {
        for _ in 0..EXCHANGES {
            let head = self.heads.request(self.asked);
            self.client.request(&head, Priority::new(0), true).expect("a stream is free");
            self.asked += 1;
        }
        let mut ended = 0;
        while ended < EXCHANGES {
            carry(&mut self.client, &mut self.server);
            while let Some(event) = self.server.poll_event() {
                if let Event::Request { id, head, .. } = event {
                    assert_eq!(head.fields.iter().count(), self.heads.request.len() - 5);
                    let response = self.heads.response(self.answered);
                    self.answered += 1;
                    self.server.respond(id, &response, true).expect("the stream is open");
                }
            }
            carry(&mut self.server, &mut self.client);
            while let Some(event) = self.client.poll_event() {
                if let Event::Response { head, fin: true, .. } = event {
                    assert_eq!(
                        (head.status, head.fields.iter().count()),
                        (200, self.heads.response.len() - 2)
                    );
                    ended += 1;
                }
            }
        }
    }
}
