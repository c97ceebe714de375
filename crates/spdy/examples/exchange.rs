//! A client and a server in one process: two requests at once, one answer pushed, and every frame printed as it passes.
//!
//! `cargo run -p velodrome-spdy --example exchange`

use base::{BodyRange, Chunk, ChunkQueue, Fields, Instant, RequestHead, ResponseHead};
use spdy::frame::{Control, HEADER_LEN, Head};
use spdy::{Config, Event, Limits, Priority, Session, Version};

const VERSION: Version = Version::V3_1;

fn get(path: &'static str) -> RequestHead {
    RequestHead {
        method: "GET".into(),
        scheme: "https".into(),
        authority: "example.org".into(),
        path: path.into(),
        fields: Fields::new(),
    }
}

/// Carries everything that `from` has to send, printing its frames.
fn carry(who: &str, from: &mut Session, to: &mut Session) {
    let mut seen = ChunkQueue::new();
    while let Some(chunk) = from.poll_transmit(Instant::ZERO, 1_460) {
        seen.push(chunk.clone());
        to.handle_input(Instant::ZERO, chunk).expect("our own peer behaves");
    }
    while let Some(head) = seen.peek::<HEADER_LEN>() {
        seen.take_bytes(HEADER_LEN);
        match Head::parse(head) {
            Head::Data { id, fin, len } => {
                println!("{who} DATA on {id}, {len} bytes{}", if fin { ", FIN" } else { "" });
                let mut left = u64::from(len);
                while let Some(payload) = seen.pop(left) {
                    left -= payload.len();
                }
            }
            Head::Control { kind, flags, len, .. } => {
                let payload = seen.take_bytes(len as usize).expect("whole frames were sent");
                let frame = Control::parse(VERSION, kind, flags, payload, &Limits::default());
                println!("{who} {:?}", frame.expect("our own frames parse"));
            }
        }
    }
}

fn main() {
    let mut client = Session::client(Config::chrome_2013(VERSION));
    let mut server = Session::server(Config::new(VERSION));
    client.request(&get("/"), Priority::HIGHEST, true).expect("a new session opens streams");
    client.request(&get("/logo.png"), Priority::new(3), true).expect("several at once");
    carry("client:", &mut client, &mut server);

    while let Some(event) = server.poll_event() {
        let Event::Request { id, head, .. } = event else { continue };
        let found = ResponseHead { status: 200, fields: Fields::new() };
        server.respond(id, &found, false).expect("asked and not yet answered");
        if head.path == "/" {
            let push =
                server.push(id, &get("/style.css"), &found, Priority::new(1)).expect("the page is open");
            server.send(push, Chunk::Bytes("body { color: red }".into()), true).expect("just opened");
        }
        // Nobody here looks into these bodies, so nobody makes them.
        let body = BodyRange { source: id.as_u32(), start: 0, len: 3_000 };
        server.send(id, body.into(), true).expect("just answered");
    }
    carry("server:", &mut server, &mut client);

    while let Some(event) = client.poll_event() {
        if let Event::Data { id, chunk, .. } = &event {
            client.consume(*id, chunk.len());
        }
        println!("client hears {event:?}");
    }
    println!("{:?}", client.stats());
}
