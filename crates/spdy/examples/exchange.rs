//! A client and a server in one process: two requests at once, one answer pushed, and every frame printed as it passes.
//!
//! `cargo run -p velodrome-spdy --example exchange`

use base::{BodyRange, Chunk, Fields, Instant, RequestHead, ResponseHead};
use spdy::trace::Decoder;
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
fn carry(who: &str, decoder: &mut Decoder, from: &mut Session, to: &mut Session) {
    while let Some(chunk) = from.poll_transmit(Instant::ZERO, 1_460) {
        decoder.handle_input(chunk.clone());
        to.handle_input(Instant::ZERO, chunk).expect("our own peer behaves");
        while let Some(frame) = decoder.poll_frame().expect("our own frames can be read") {
            println!("{who}: {frame:#}");
        }
    }
}

fn main() {
    let mut client = Session::client(Config::chrome_2013(VERSION));
    let mut server = Session::server(Config::new(VERSION));
    let [mut up, mut down] = [(); 2].map(|()| Decoder::new(VERSION, Limits::default()));
    client.request(&get("/"), Priority::HIGHEST, true).expect("a new session opens streams");
    client.request(&get("/logo.png"), Priority::new(3), true).expect("several at once");
    carry("client", &mut up, &mut client, &mut server);

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
    carry("server", &mut down, &mut server, &mut client);

    while let Some(event) = client.poll_event() {
        if let Event::Data { id, chunk, .. } = &event {
            client.consume(*id, chunk.len());
        }
        println!("client hears {event:?}");
    }
    println!("{:?}", client.stats());
}
