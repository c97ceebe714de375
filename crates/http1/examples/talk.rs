//! A client and a server talk without a network: two requests in one pipeline, the second body chunked. What crosses
//! is printed as it is. Run with `cargo run -p velodrome-http1 --example talk`.

use base::{BodyRange, Chunk, Fields, Instant, RequestHead, ResponseHead};
use http1::{Error, client, server};

fn main() -> Result<(), Error> {
    let (mut client, mut server) = (client::Connection::new(), server::Connection::new());
    let now = Instant::ZERO;

    for path in ["/", "/style.css"] {
        let mut head = RequestHead {
            method: "GET".into(),
            scheme: "http".into(),
            authority: "example.com".into(),
            path: path.into(),
            fields: Fields::new(),
        };
        head.fields.push("Accept", "*/*");
        client.request(&head, None)?;
    }
    while let Some(chunk) = client.poll_transmit(1460) {
        show('>', &chunk);
        server.handle_input(now, chunk)?;
    }

    while let Some(event) = server.poll_event() {
        let server::Event::Request { head, .. } = event else { continue };
        let body = BodyRange { source: 0, start: 0, len: 5_000 };
        // One length is known, the other is not.
        server.respond(
            &ResponseHead { status: 200, fields: Fields::new() },
            (head.path == "/").then_some(5_000),
        )?;
        server.send_body(body.into())?;
        server.finish()?;
    }
    while let Some(chunk) = server.poll_transmit(1460) {
        show('<', &chunk);
        client.handle_input(now, chunk)?;
    }
    while let Some(event) = client.poll_event() {
        println!("{event:?}");
    }
    Ok(())
}

fn show(direction: char, chunk: &Chunk) {
    match chunk {
        Chunk::Bytes(bytes) => println!("{direction} {:?}", String::from_utf8_lossy(bytes)),
        Chunk::Body(range) => println!("{direction} [{} bytes of body {}]", range.len, range.source),
    }
}
