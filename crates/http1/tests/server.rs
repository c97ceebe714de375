//! The server's reading of requests and its answers, rule by rule.

mod fuzz;

use base::{BodyRange, Chunk, Fields, Instant, ResponseHead};
use fuzz::play_server;
use http1::server::{Connection, Event};
use http1::{CallerError, Error, Limits, PeerError};

/// Plays `wire` whole and byte by byte; what was read and the status lines that were sent.
fn play(wire: &str) -> (String, String) {
    let whole = play_server([Chunk::from(wire.as_bytes().to_vec())]);
    assert_eq!(play_server(wire.bytes().map(|b| Chunk::from(vec![b]))), whole, "{wire:?} byte by byte");
    let out = String::from_utf8(whole.1).unwrap();
    let statuses: Vec<_> = out.split("HTTP/1.1 ").skip(1).map(|l| &l[..3]).collect();
    (whole.0, statuses.join(" "))
}

#[test]
fn a_request_is_read_as_rfc_9112_says() {
    let rows: &[(&str, &str, &str, &str)] = &[
        ("3", "GET /a?b HTTP/1.1\r\nHost: h:1\r\nA: b\r\n\r\n", "GET http://h:1/a?b Empty A=b | done", "200"),
        (
            "2.2: empty lines before it",
            "\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET http://h/ Empty | done",
            "200",
        ),
        ("2.3: a later version", "GET / HTTP/1.9\r\nHost: h\r\n\r\n", "GET http://h/ Empty | done", "200"),
        (
            "3.2.2: the absolute form overrides Host",
            "GET http://a/b HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET http://a/b Empty | done",
            "200",
        ),
        (
            "3.2.2: and may lack a path",
            "GET https://a?q HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET https://a/?q Empty | done",
            "200",
        ),
        (
            "3.2.3",
            "CONNECT h:1 HTTP/1.1\r\nHost: x\r\n\r\nraw",
            "CONNECT http://h:1 Empty | done | body raw",
            "200",
        ),
        ("3.2.4", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS http://h* Empty | done", "200"),
        ("3.2: HTTP/1.0 needs no Host", "GET / HTTP/1.0\r\n\r\n", "GET http:/// Empty | done", "200"),
        ("3.2: Host may be empty", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "GET http:/// Empty | done", "200"),
        (
            "6.3: length, and the next request after it",
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: h\r\n\r\n",
            "POST http://h/ Length(3) Content-Length=3 | body abc | done | GET http://h/ Empty | done",
            "200 200",
        ),
        (
            "7.1: chunked, with trailers",
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n",
            "POST http://h/ Chunked | body abc | trailers A=b | done",
            "200",
        ),
        (
            "9.6: nothing is read after Connection: close",
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET http://h/ Empty | done",
            "200",
        ),
        (
            "9.3: nor after HTTP/1.0 without keep-alive",
            "GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n",
            "GET http:/// Empty | done",
            "200",
        ),
        (
            "9.3: HTTP/1.0 with it",
            "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n",
            "GET http:/// Empty | done | GET http:/// Empty | done",
            "200 200",
        ),
        ("8: the end in a head", "GET / HTTP/1.1\r\nHo", "Peer(HeadTruncated)", "400"),
        (
            "8: the end in a body",
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\na",
            "POST http://h/ Length(3) Content-Length=3 | body a | Peer(BodyTruncated { missing: 2 })",
            "400",
        ),
    ];
    for (rule, wire, read, sent) in rows {
        assert_eq!(play(wire), (read.to_string(), sent.to_string()), "{rule}");
    }
}

/// RFC 9112 §11.2. A good request comes first: it is answered, the bad one is refused, and what is hidden behind it
/// is never seen.
#[test]
fn what_two_parsers_could_read_in_two_ways_is_refused() {
    use PeerError::*;
    let hidden = "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n";
    let post = |fields: &str, body: &str| format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n{body}");
    let chunked = |body: &str| post("Transfer-Encoding: chunked\r\n", body);
    let rows: &[(&str, String, PeerError, u16)] = &[
        (
            "CL.TE",
            post("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\nG"),
            LengthAndTransferEncoding,
            400,
        ),
        (
            "TE.CL",
            post("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "8\r\nSMUGGLED\r\n0\r\n\r\n"),
            LengthAndTransferEncoding,
            400,
        ),
        ("two lengths", post("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd"), BadLength, 400),
        ("two lengths in a list", post("Content-Length: 3, 4\r\n", "abcd"), BadLength, 400),
        ("a length with a sign", post("Content-Length: +3\r\n", "abc"), BadLength, 400),
        ("a length in hexadecimal", post("Content-Length: 0x3\r\n", "abc"), BadLength, 400),
        ("a length with a blank inside", post("Content-Length: 1 0\r\n", "abc"), BadLength, 400),
        ("a negative length", post("Content-Length: -1\r\n", ""), BadLength, 400),
        ("an unknown coding", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"), BadTransferEncoding, 400),
        (
            "chunked not last",
            post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"),
            BadTransferEncoding,
            400,
        ),
        (
            "chunked twice",
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", ""),
            BadTransferEncoding,
            400,
        ),
        (
            "a coding before chunked",
            post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
            UnknownTransferCoding,
            501,
        ),
        (
            "a vertical tab before the coding",
            post("Transfer-Encoding: \u{b}chunked\r\n", "0\r\n\r\n"),
            BadField,
            400,
        ),
        ("a blank before the colon", post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), BadField, 400),
        ("a folded coding", post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"), FoldedField, 400),
        ("a blank before the first field", "GET / HTTP/1.1\r\n Host: h\r\n\r\n".into(), BadField, 400),
        ("LF alone after a field", "GET / HTTP/1.1\r\nHost: h\nA: b\r\n\r\n".into(), BareLf, 400),
        ("LF alone as the empty line", "GET / HTTP/1.1\r\nHost: h\r\n\n".into(), BareLf, 400),
        ("CR alone in a field", post("A: b\rContent-Length: 3\r\n", ""), BadField, 400),
        ("NUL in a field", post("A: b\0\r\n", ""), BadField, 400),
        ("no colon", post("Content-Length\r\n", ""), BadField, 400),
        (
            "TE in HTTP/1.0",
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".into(),
            BadTransferEncoding,
            400,
        ),
        ("two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n".into(), BadHost, 400),
        ("no Host", "GET / HTTP/1.1\r\n\r\n".into(), BadHost, 400),
        ("a Host that is none", "GET / HTTP/1.1\r\nHost: a/b@c\r\n\r\n".into(), BadHost, 400),
        ("two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n".into(), BadHost, 400),
        ("HTTP/0.9", "GET /\r\n\r\n".into(), BadStartLine, 400),
        ("two blanks", "GET  / HTTP/1.1\r\nHost: h\r\n\r\n".into(), BadStartLine, 400),
        ("a tab for a blank", "GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n".into(), BadStartLine, 400),
        ("a blank in the target", "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n".into(), BadStartLine, 400),
        ("a blank after the version", "GET / HTTP/1.1 \r\nHost: h\r\n\r\n".into(), BadStartLine, 400),
        ("a method that is no token", "G@T / HTTP/1.1\r\nHost: h\r\n\r\n".into(), BadStartLine, 400),
        ("another major version", "GET / HTTP/2.0\r\nHost: h\r\n\r\n".into(), BadVersion, 505),
        ("a relative target", "GET a HTTP/1.1\r\nHost: h\r\n\r\n".into(), BadTarget, 400),
        ("a user in the target", "GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n".into(), BadTarget, 400),
        (
            "a body to a CONNECT",
            "CONNECT h:1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc".into(),
            BadTarget,
            400,
        ),
        ("a chunk size with a prefix", chunked("0x3\r\nabc\r\n0\r\n\r\n"), BadChunk, 400),
        ("a chunk size with a blank after", chunked("3 \r\nabc\r\n0\r\n\r\n"), BadChunk, 400),
        ("a chunk size beyond 64 bits", chunked("fffffffffffffffff\r\nabc\r\n0\r\n\r\n"), BadChunk, 400),
        ("a chunk longer than its size", chunked("2\r\nabc\r\n0\r\n\r\n"), BadChunk, 400),
        ("LF alone after a chunk size", chunked("3\nabc\r\n0\r\n\r\n"), BareLf, 400),
        ("LF alone after an extension", chunked("3;x\nabc\r\n0\r\n\r\n"), BareLf, 400),
        ("CR alone in an extension", chunked("3;\rx\r\nabc\r\n0\r\n\r\n"), BadChunk, 400),
    ];
    for (name, wire, error, status) in rows {
        let (read, sent) = play(&format!("GET /first HTTP/1.1\r\nHost: h\r\n\r\n{wire}{hidden}"));
        assert!(read.starts_with("GET http://h/first Empty | done"), "{name}: {read}");
        assert!(read.ends_with(&format!("{:?}", Error::Peer(*error))), "{name}: {read}");
        assert!(!read.contains("hidden Empty"), "{name}: {read}");
        assert_eq!(sent, format!("200 {status}"), "{name}");
    }
}

fn text(s: &str) -> Chunk {
    Chunk::from(s.as_bytes().to_vec())
}

fn status(status: u16) -> ResponseHead {
    ResponseHead { status, fields: Fields::new() }
}

fn sent(server: &mut Connection) -> String {
    let mut out = Vec::new();
    while let Some(chunk) = server.poll_transmit(u64::MAX) {
        match chunk {
            Chunk::Bytes(b) => out.extend_from_slice(&b),
            Chunk::Body(r) => out.extend_from_slice(format!("[{} of {}]", r.len, r.source).as_bytes()),
        }
    }
    String::from_utf8(out).unwrap()
}

fn asked(wire: &str) -> Connection {
    let mut server = Connection::new();
    server.handle_input(Instant::ZERO, text(wire)).unwrap();
    server
}

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn a_response_is_framed_for_its_request() {
    let ten = "GET / HTTP/1.0\r\n\r\n";
    let ten_alive = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    let head = "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n";
    // The request, the response's status and announced length, what goes out, whether it is the last.
    type Row<'a> = (&'a str, &'a str, u16, Option<u64>, &'a str, bool);
    let rows: &[Row] = &[
        ("length", GET, 200, Some(3), "200 OK\r\nContent-Length: 3\r\n\r\nabc", false),
        ("length 0", GET, 404, Some(0), "404 Not Found\r\nContent-Length: 0\r\n\r\n", false),
        (
            "chunked",
            GET,
            200,
            None,
            "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            false,
        ),
        ("HEAD, length", head, 200, Some(3), "200 OK\r\nContent-Length: 3\r\n\r\n", false),
        ("HEAD, chunked", head, 200, None, "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false),
        ("204", GET, 204, Some(3), "204 No Content\r\n\r\n", false),
        ("304", GET, 304, None, "304 Not Modified\r\n\r\n", false),
        (
            "HTTP/1.0, length",
            ten,
            200,
            Some(3),
            "200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
            true,
        ),
        ("HTTP/1.0, no length", ten, 200, None, "200 OK\r\nConnection: close\r\n\r\nabc", true),
        (
            "HTTP/1.0 keep-alive, length",
            ten_alive,
            200,
            Some(3),
            "200 OK\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\nabc",
            false,
        ),
        (
            "HTTP/1.0 keep-alive, no length",
            ten_alive,
            200,
            None,
            "200 OK\r\nConnection: close\r\n\r\nabc",
            true,
        ),
        ("an unknown status", GET, 299, Some(0), "299 \r\nContent-Length: 0\r\n\r\n", false),
    ];
    for (rule, wire, code, len, expected, closes) in rows {
        let mut server = asked(wire);
        server.respond(&status(*code), *len).unwrap();
        if *len != Some(0) {
            server.send_body(text("abc")).unwrap();
        }
        server.finish().unwrap();
        assert!(!server.should_close(), "{rule}: not before all is sent");
        assert_eq!(sent(&mut server), format!("HTTP/1.1 {expected}"), "{rule}");
        assert_eq!(server.should_close(), *closes, "{rule}");
    }
}

#[test]
fn the_framing_fields_are_the_engines_and_close_is_obeyed() {
    let mut server = asked(&GET.repeat(3));
    let mut head = status(200);
    for (name, value) in
        [("A", "b"), ("Content-Length", "99"), ("Transfer-Encoding", "x"), ("Connection", "keep-alive")]
    {
        head.fields.push(name, value);
    }
    server.respond(&head, Some(0)).unwrap();
    assert_eq!(
        sent(&mut server),
        "HTTP/1.1 200 OK\r\nA: b\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n"
    );
    let mut head = status(200);
    head.fields.push("Connection", "foo, close");
    server.respond(&head, Some(0)).unwrap();
    assert_eq!(sent(&mut server), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    assert!(server.should_close());
    // RFC 9112 §9.6: requests after it are not processed.
    assert_eq!(server.respond(&status(200), None), Err(Error::Caller(CallerError::Closing)));
    assert_eq!(server.outstanding(), 0);
}

#[test]
fn a_wrong_call_changes_nothing() {
    let caller = |e| Err(Error::Caller(e));
    let mut server = Connection::new();
    assert_eq!(server.respond(&status(200), None), caller(CallerError::NothingToAnswer));
    assert_eq!(server.inform(&status(103)), caller(CallerError::NothingToAnswer));
    server.handle_input(Instant::ZERO, text(&GET.repeat(2))).unwrap();
    assert_eq!(server.respond(&status(100), None), caller(CallerError::BadStatus));
    assert_eq!(server.respond(&status(101), None), caller(CallerError::BadStatus));
    assert_eq!(server.respond(&status(1000), None), caller(CallerError::BadStatus));
    assert_eq!(server.inform(&status(200)), caller(CallerError::BadStatus));
    let mut split = status(200);
    split.fields.push("Location", "/\r\n\r\nHTTP/1.1 200 OK");
    assert_eq!(server.respond(&split, None), caller(CallerError::BadField));
    assert_eq!(server.poll_transmit(1), None);
    server.respond(&status(200), Some(2)).unwrap();
    assert_eq!(server.respond(&status(200), None), caller(CallerError::BodyUnfinished));
    assert_eq!(server.inform(&status(103)), caller(CallerError::BodyUnfinished));
    assert_eq!(server.finish(), caller(CallerError::BodyTooShort { missing: 2 }));
    assert_eq!(server.send_body(text("abc")), caller(CallerError::BodyTooLong));
    server.send_body(Chunk::Body(BodyRange { source: 4, start: 0, len: 2 })).unwrap();
    assert_eq!(server.outstanding(), 1);
    assert_eq!(sent(&mut server), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[2 of 4]");
}

const WAITS: &str = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";

#[test]
fn a_client_that_waits_gets_a_100_or_a_final_response_that_closes() {
    let mut server = asked(WAITS);
    assert!(matches!(server.poll_event(), Some(Event::Request { expects_continue: true, .. })));
    server.inform(&status(100)).unwrap();
    assert_eq!(sent(&mut server), "HTTP/1.1 100 Continue\r\n\r\n");
    server.respond(&status(200), Some(0)).unwrap();
    assert_eq!(sent(&mut server), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");

    let mut server = asked(&format!("{WAITS}a"));
    server.respond(&status(200), Some(0)).unwrap();
    assert!(!sent(&mut server).contains("close"), "it did not wait");

    // RFC 9110 §10.1.1: whether the body still comes cannot be known.
    let mut server = asked(WAITS);
    server.respond(&status(417), Some(0)).unwrap();
    assert_eq!(
        sent(&mut server),
        "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    assert!(server.should_close());

    let mut server = asked("POST / HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    assert!(matches!(server.poll_event(), Some(Event::Request { expects_continue: false, .. })));
    server.inform(&status(100)).unwrap();
    assert_eq!(sent(&mut server), "", "RFC 9110 §15.2: HTTP/1.0 knows no interim responses");
}

#[test]
fn input_waits_while_the_limit_of_outstanding_requests_is_reached() {
    let limits = Limits { outstanding: 2, held_bytes: 40, ..Limits::default() };
    let mut server = Connection::with("https".into(), limits);
    server.handle_input(Instant::ZERO, text(&GET.repeat(4))).unwrap();
    let requests = |server: &mut Connection| {
        std::iter::from_fn(|| server.poll_event()).filter(|e| matches!(e, Event::Request { .. })).count()
    };
    assert_eq!((server.outstanding(), requests(&mut server), server.wants_input()), (2, 2, false));
    assert_eq!(server.handle_input(Instant::ZERO, text("x")), Err(Error::Caller(CallerError::NotReading)));
    server.respond(&status(200), Some(1)).unwrap();
    assert_eq!((server.outstanding(), requests(&mut server)), (2, 0), "a response begun is not complete");
    server.send_body(text("a")).unwrap();
    assert_eq!((server.outstanding(), requests(&mut server)), (2, 1));
    server.respond(&status(204), None).unwrap();
    assert_eq!((server.outstanding(), requests(&mut server), server.wants_input()), (2, 1, false));
    server.respond(&status(204), None).unwrap();
    assert!(server.wants_input());
}

#[test]
fn a_connect_is_answered_before_anything_after_it_is_read() {
    let wire = "CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n";
    let mut server = asked(&format!("{wire}{GET}"));
    server.poll_event();
    assert_eq!((server.poll_event(), server.poll_event()), (Some(Event::RequestComplete), None));
    server.respond(&status(403), Some(0)).unwrap();
    assert!(matches!(server.poll_event(), Some(Event::Request { .. })), "refused, it is HTTP that follows");

    let mut server = asked(&format!("{wire}raw"));
    server.respond(&status(200), None).unwrap();
    server.poll_event();
    server.poll_event();
    assert_eq!(server.poll_event(), Some(Event::Body(text("raw"))));
    server.handle_input(Instant::ZERO, Chunk::Body(BodyRange::filler(5))).unwrap();
    assert_eq!(server.poll_event(), Some(Event::Body(BodyRange::filler(5).into())));
    server.send_body(text("back")).unwrap();
    assert_eq!(sent(&mut server), "HTTP/1.1 200 OK\r\n\r\nback");
    assert!(!server.should_close());
    server.finish().unwrap();
    assert!(server.should_close());
}

#[test]
fn an_upgrade_is_taken_or_passed_over() {
    let wire = "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: spdy/3.1\r\nConnection: Upgrade\r\n\r\n";
    let mut server = asked(&format!("{wire}\u{1}\u{2}"));
    let mut head = status(101);
    head.fields.push("Upgrade", "spdy/3.1");
    server.respond(&head, None).unwrap();
    server.poll_event();
    server.poll_event();
    assert_eq!(server.poll_event(), Some(Event::Body(text("\u{1}\u{2}"))));
    assert_eq!(
        sent(&mut server),
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: spdy/3.1\r\nConnection: Upgrade\r\n\r\n"
    );
    let mut server = asked(&format!("{wire}{GET}"));
    server.respond(&status(200), Some(0)).unwrap();
    server.respond(&status(200), Some(0)).unwrap();
    assert!(!sent(&mut server).contains("Connection"));
}

#[test]
fn a_fault_in_a_body_is_refused_unless_the_answer_has_begun() {
    let wire = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    let bad = Err(Error::Peer(PeerError::BadChunk));
    let mut server = asked(wire);
    assert_eq!(server.handle_input(Instant::ZERO, text("zz\r\n")), bad);
    assert_eq!(server.respond(&status(200), None), Err(Error::Caller(CallerError::NothingToAnswer)));
    assert_eq!(
        sent(&mut server),
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    assert!(server.should_close());

    let mut server = asked(wire);
    server.respond(&status(200), Some(1)).unwrap();
    assert_eq!(server.handle_input(Instant::ZERO, text("zz\r\n")), bad);
    assert!(!server.should_close());
    server.send_body(text("a")).unwrap();
    assert_eq!(sent(&mut server), "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
    assert!(server.should_close());
}

#[test]
fn a_body_range_stands_only_where_body_bytes_are_due() {
    let range = |len| Chunk::Body(BodyRange { source: 1, start: 0, len });
    let post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n";
    let mut server = asked(post);
    server.handle_input(Instant::ZERO, range(5)).unwrap();
    server.poll_event();
    assert_eq!(
        (server.poll_event(), server.poll_event()),
        (Some(Event::Body(range(5))), Some(Event::RequestComplete))
    );
    let fault = Err(Error::Peer(PeerError::BodyRangeInFraming));
    assert_eq!(server.handle_input(Instant::ZERO, range(1)), fault);
    assert_eq!(asked(post).handle_input(Instant::ZERO, range(6)), fault);
    assert_eq!(asked("GET /").handle_input(Instant::ZERO, range(6)), fault);
}

#[test]
fn the_last_answer_after_the_clients_end_closes() {
    let mut server = asked(&GET.repeat(2));
    server.handle_eof().unwrap();
    server.respond(&status(204), None).unwrap();
    server.respond(&status(204), None).unwrap();
    assert_eq!(
        sent(&mut server),
        "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"
    );
    assert!(server.should_close());
    let mut idle = Connection::new();
    idle.handle_eof().unwrap();
    assert!(idle.should_close());
}

#[test]
fn too_long_gets_its_own_status() {
    let limits = Limits { head_bytes: 60, fields: 2, ..Limits::default() };
    let refused = |wire: &str| {
        let mut server = Connection::with("http".into(), limits);
        server.handle_input(Instant::ZERO, text(wire)).unwrap_err();
        sent(&mut server)[9..12].to_string()
    };
    assert_eq!(refused(&format!("GET /{} HTTP/1.1\r\n", "a".repeat(60))), "414");
    assert_eq!(refused(&format!("GET / HTTP/1.1\r\nHost: {}\r\n", "a".repeat(60))), "431");
    assert_eq!(refused("GET / HTTP/1.1\r\nHost: h\r\nA:\r\nB:\r\n\r\n"), "431");
}

#[test]
fn requests_cut_at_any_byte_are_an_error_or_complete() {
    let wire = format!(
        "{GET}POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nT: u\r\n\r\n\
         POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nxyz"
    );
    let second = GET.len();
    let third = wire.rfind("POST").unwrap();
    let clean: Vec<_> =
        (0..=wire.len()).filter(|n| !play_server([text(&wire[..*n])]).0.contains("Peer(")).collect();
    assert_eq!(clean, [0, second, third, wire.len()]);
}
