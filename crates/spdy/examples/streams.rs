//! Streams without HTTP, as `kubectl exec` uses them: the client opens one for each of the remote program's standard
//! streams, and says by their fields which is which. Both ends in one process, every frame printed as it passes.
//!
//! `cargo run -p velodrome-spdy --example streams`

use base::{Chunk, Fields, Instant};
use bytes::Bytes;
use spdy::trace::Decoder;
use spdy::{Config, Event, Limits, Opening, Session, Status, StreamId, Version};

fn named(kind: &'static str) -> Fields {
    let mut fields = Fields::new();
    fields.push("streamType", kind);
    fields
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

/// The server's end: takes the two streams it knows, and runs `tr a-z A-Z` between them.
fn serve(server: &mut Session, stdout: &mut Option<StreamId>) {
    while let Some(event) = server.poll_event() {
        match event {
            Event::Opened { id, fields, .. } => match fields.get_str("streamtype") {
                Some("stdin") => server.accept(id, &Fields::new(), true).expect("just opened"),
                Some("stdout") => {
                    server.accept(id, &Fields::new(), false).expect("just opened");
                    *stdout = Some(id);
                }
                _ => server.reset(id, Status::REFUSED_STREAM),
            },
            Event::Data { id, chunk, fin } => {
                server.consume(id, chunk.len());
                let Chunk::Bytes(bytes) = chunk else { unreachable!("real bytes were sent") };
                let answer = Bytes::from(bytes.to_ascii_uppercase());
                server.send(stdout.expect("opened before any data"), answer.into(), fin).expect("still open");
            }
            _ => {}
        }
    }
}

fn main() {
    let mut client = Session::client(Config::spdystream());
    let mut server = Session::server(Config::spdystream());
    let [mut up, mut down] = [(); 2].map(|()| Decoder::new(Version::V3_1, Limits::default()));
    let mut stdout = None;

    let [stdin, _, _] = ["stdin", "stdout", "resize"]
        .map(|kind| client.open(&named(kind), Opening::default()).expect("a new session opens streams"));
    carry("client", &mut up, &mut client, &mut server);
    serve(&mut server, &mut stdout);
    carry("server", &mut down, &mut server, &mut client);

    while let Some(event) = client.poll_event() {
        println!("client hears {event:?}");
        if matches!(event, Event::Accepted { id, .. } if id == stdin) {
            // Not before: Go's spdystream drops what comes before its answer.
            client.send(stdin, Bytes::from_static(b"hello").into(), true).expect("open and accepted");
        }
    }
    carry("client", &mut up, &mut client, &mut server);
    serve(&mut server, &mut stdout);
    carry("server", &mut down, &mut server, &mut client);
    while let Some(event) = client.poll_event() {
        println!("client hears {event:?}");
    }
}
