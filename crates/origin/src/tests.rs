//! A server between scripted clients.

use base::{BodyRange, Chunk, ChunkQueue, Duration, Fields, Instant, RequestHead};
use page::{Cause, Host, Kind, Page, Resource};

use super::*;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn resource(method: &'static str, path: &'static str, body_len: u64, think_ms: u64) -> Resource {
    let mut response = Fields::new();
    response.push("Content-Length", "9999"); // of the decoded body: not what is served
    let (method, think) = (method.into(), Duration::from_millis(think_ms));
    let cause = Cause::Load { delay: Duration::ZERO };
    Resource { method, response, body_len, think, ..Resource::get(path, Kind::Other, cause) }
}

fn page(mut resources: Vec<Resource>) -> Page {
    resources[0].cause = Cause::Root;
    Page::new("test", vec![Host::new("a.example")], resources).expect("a valid page")
}

fn ask(server: &mut Server<'_>, now: Instant, id: ConnectionId, text: &str) {
    server.handle_input(now, id, text.as_bytes().to_vec().into()).expect("a sound request");
}

/// What the server sends: its heads as text, and which bodies.
fn sent(server: &mut Server<'_>, now: Instant, id: ConnectionId) -> (String, Vec<BodyRange>) {
    server.handle_timeout(now, id);
    let (mut text, mut bodies) = (String::new(), ChunkQueue::new());
    while let Some(chunk) = server.poll_transmit(now, id, u64::MAX) {
        match chunk {
            Chunk::Bytes(bytes) => text += std::str::from_utf8(&bytes).expect("heads are text"),
            Chunk::Body(_) => bodies.push(chunk),
        }
    }
    let body = |chunk: &Chunk| if let Chunk::Body(range) = chunk { Some(*range) } else { None };
    (text, bodies.iter().filter_map(body).collect())
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";

#[test]
fn the_same_request_gets_its_recorded_responses_in_turn_and_then_the_last_one() {
    let page =
        page(vec![resource("GET", "/", 5, 0), resource("GET", "/x", 6, 0), resource("GET", "/", 7, 0)]);
    let mut server = Server::new(&page, 0, Think::Recorded);
    let id = server.accept(&Protocol::HTTP1);
    let bodies = [0, 2, 2].map(|source| {
        ask(&mut server, at(0), id, GET);
        let (head, bodies) = sent(&mut server, at(0), id);
        let len = page.resources[source as usize].body_len;
        assert!(head.contains(&format!("Content-Length: {len}\r\n")), "the length is the one served: {head}");
        assert!(!head.contains("9999"), "{head}");
        assert_eq!(bodies, [BodyRange { source, start: 0, len }]);
    });
    assert_eq!(bodies.len(), 3);
}

#[test]
fn what_was_not_recorded_is_not_found() {
    let page = page(vec![resource("GET", "/", 5, 0)]);
    let mut server = Server::new(&page, 0, Think::Recorded);
    let id = server.accept(&Protocol::HTTP1);
    for request in ["GET /? HTTP/1.1\r\nHost: a\r\n\r\n", "PUT / HTTP/1.1\r\nHost: a\r\n\r\n"] {
        ask(&mut server, at(0), id, request);
        assert!(sent(&mut server, at(0), id).0.starts_with("HTTP/1.1 404 "));
    }
}

#[test]
fn a_server_thinks_from_the_end_of_the_request_on() {
    let page = page(vec![resource("POST", "/", 5, 30)]);
    for (think, answer_ms) in [(Think::Recorded, 40), (Think::Fixed(Duration::from_millis(1)), 11)] {
        let mut server = Server::new(&page, 0, think);
        let id = server.accept(&Protocol::HTTP1);
        ask(&mut server, at(0), id, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx");
        assert_eq!(server.poll_timeout(id), None, "the request is not complete");
        ask(&mut server, at(10), id, "y");
        assert_eq!(server.poll_timeout(id), Some(at(answer_ms)));
        assert_eq!(sent(&mut server, at(answer_ms - 1), id).1, []);
        assert_eq!(sent(&mut server, at(answer_ms), id).1.len(), 1);
    }
}

#[test]
fn pipelined_requests_are_answered_in_their_order_and_streams_when_they_are_ready() {
    let page = page(vec![resource("GET", "/", 5, 30), resource("GET", "/x", 6, 10)]);
    let mut server = Server::new(&page, 0, Think::Recorded);
    let id = server.accept(&Protocol::HTTP1);
    ask(&mut server, at(0), id, GET);
    ask(&mut server, at(0), id, "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n");
    assert_eq!(server.poll_timeout(id), Some(at(30)), "the second waits for the first");

    let config = spdy::Config::new(spdy::Version::V3_1);
    let id = server.accept(&Protocol::Spdy(config.clone()));
    let mut client = spdy::Session::client(config);
    for path in ["/", "/x"] {
        let head = RequestHead {
            method: "GET".into(),
            scheme: "http".into(),
            authority: "a.example".into(),
            path: path.into(),
            fields: Fields::new(),
        };
        client.request(&head, spdy::Priority::new(0), true).expect("a stream");
    }
    while let Some(chunk) = client.poll_transmit(at(0), u64::MAX) {
        server.handle_input(at(0), id, chunk).expect("sound frames");
    }
    assert_eq!(server.poll_timeout(id), Some(at(10)));
    server.handle_timeout(at(10), id);
    assert_eq!(server.poll_timeout(id), Some(at(30)));
}

#[test]
fn no_body_follows_where_http_allows_none() {
    let mut resources = vec![resource("HEAD", "/", 5, 0), resource("GET", "/", 5, 0)];
    resources[1].status = 304;
    let page = page(resources);
    let mut server = Server::new(&page, 0, Think::Recorded);
    let id = server.accept(&Protocol::HTTP1);
    for method in ["HEAD", "GET"] {
        ask(&mut server, at(0), id, &GET.replace("GET", method));
        let (head, bodies) = sent(&mut server, at(0), id);
        assert!(head.ends_with("\r\n\r\n"));
        assert_eq!(bodies, []);
    }
}

#[test]
fn whoever_breaks_the_protocol_is_told_so() {
    let page = page(vec![resource("GET", "/", 5, 0)]);
    let mut server = Server::new(&page, 0, Think::Recorded);
    let id = server.accept(&Protocol::HTTP1);
    assert!(server.handle_input(at(0), id, b"GET\r\n\r\n".to_vec().into()).is_err());
}
