//! Answers that the page does not read for a while, and how their streams end meanwhile.

use super::push::{asked, config, ok};
use super::*;

/// What the page is told of request 0, in order.
fn told(client: &mut Client) -> Vec<&'static str> {
    let name = |event: Event| match event {
        Event::Head { .. } => "head",
        Event::Data { .. } => "data",
        Event::Complete { .. } => "complete",
        Event::Failed { .. } => "failed",
    };
    events(client).into_iter().map(name).collect()
}

/// A session with an answer of which the page has read the head and 1,000 bytes, and reads no more; 500 more have come.
fn paused() -> (Client, spdy::Session, spdy::StreamId) {
    let (mut client, mut server, stream) = asked(config());
    let body = |start, len| base::BodyRange { source: 0, start, len }.into();
    server.respond(stream, &ok(), false).unwrap();
    server.send(stream, body(0, 1_000), false).unwrap();
    carry(&mut client, 0, &mut server);
    assert_eq!(told(&mut client), ["head", "data"]);
    client.pause(0);
    server.send(stream, body(1_000, 500), false).unwrap();
    carry(&mut client, 0, &mut server);
    assert!(told(&mut client).is_empty(), "nobody reads");
    (client, server, stream)
}

#[test]
fn a_paused_answer_that_ends_by_a_frame_without_data_is_told_so_behind_its_bytes() {
    for by_headers in [true, false] {
        let (mut client, mut server, stream) = paused();
        match by_headers {
            true => server.send_headers(stream, &Fields::new(), true).unwrap(),
            false => server.send(stream, Chunk::from(Vec::new()), true).unwrap(),
        }
        carry(&mut client, 0, &mut server);
        assert!(told(&mut client).is_empty(), "the end is not known before what comes before it");
        client.resume(at(50), 0);
        let told = told(&mut client);
        assert_eq!((told.first(), told.last()), (Some(&"data"), Some(&"complete")), "{told:?}");
    }
}

/// A refused stream was not processed at all (SPDY/3 §2.4.2); that one is refused behind bytes of it is the server's contradiction.
#[test]
fn a_paused_answer_that_is_reset_fails_behind_its_bytes() {
    for status in [spdy::Status::INTERNAL_ERROR, spdy::Status::REFUSED_STREAM] {
        let (mut client, mut server, stream) = paused();
        server.reset(stream, status);
        carry(&mut client, 0, &mut server);
        assert!(told(&mut client).is_empty());
        client.resume(at(50), 0);
        assert_eq!(told(&mut client), ["data", "failed"]);
    }
}
