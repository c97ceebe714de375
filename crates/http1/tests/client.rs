//! The client's reading of responses, rule by rule. Each row is played whole and byte by byte.

mod fuzz;

use base::{BodyRange, Chunk, Instant, RequestHead};
use bytes::Bytes;
use fuzz::{get, play_client};
use http1::client::{Connection, Event};
use http1::{CallerError, Error, Framing, Limits, PeerError};

/// What was asked, what came, what is made of it. The connection ends after it.
type Row = (&'static str, &'static [&'static str], &'static str, &'static str);

const GET: &[&str] = &["GET"];
const TWO: &[&str] = &["GET", "GET"];

fn check(rows: &[Row]) {
    for (rule, asked, wire, expected) in rows {
        let whole = Bytes::from_static(wire.as_bytes());
        let bytes = wire.bytes().map(|b| Chunk::from(vec![b]));
        assert_eq!(play_client(asked, [Chunk::Bytes(whole)]), *expected, "{rule}");
        assert_eq!(play_client(asked, bytes), *expected, "{rule}, byte by byte");
    }
}

#[test]
fn a_body_ends_where_rfc_9112_section_6_3_says() {
    check(&[
        (
            "1: HEAD has no body",
            &["HEAD", "GET"],
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
            "200 Empty Content-Length=5 | done | 200 Length(1) Content-Length=1 | body x | done",
        ),
        (
            "1: HEAD, chunked",
            &["HEAD"],
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "200 Empty | done",
        ),
        (
            "1: 204 has no body, whatever it says",
            TWO,
            "HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\nHTTP/1.1 304 Not Modified\r\n\r\n",
            "204 Empty Content-Length=9 | done | 304 Empty | done",
        ),
        (
            "1: interim responses have none",
            GET,
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 x\r\n\r\n",
            "100 | 103 Link=</a> | 204 Empty | done",
        ),
        (
            "2: 2xx to a CONNECT opens a tunnel, its framing fields mean nothing",
            &["CONNECT"],
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nanything",
            "200 Tunnel Content-Length=3 | body anything | last",
        ),
        (
            "2: another status to a CONNECT is a response",
            &["CONNECT"],
            "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno",
            "403 Length(2) Content-Length=2 | body no | done",
        ),
        (
            "3: Transfer-Encoding overrides Content-Length, and the connection is not used again",
            GET,
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
            "200 Chunked | body ab | last",
        ),
        (
            "4: chunked last",
            GET,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
            "200 Chunked Transfer-Encoding=gzip, chunked | body ab | done",
        ),
        (
            "4: chunked not last: until close",
            GET,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\nContent-Length: 1\r\n\r\nabc",
            "200 UntilClose Transfer-Encoding=chunked, gzip | body abc | last",
        ),
        (
            "4: chunked twice",
            GET,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
            "Peer(BadTransferEncoding)",
        ),
        (
            "6.1: Transfer-Encoding in HTTP/1.0 is faulty",
            GET,
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "Peer(BadTransferEncoding)",
        ),
        ("5: no number", GET, "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", "Peer(BadLength)"),
        ("5: empty", GET, "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", "Peer(BadLength)"),
        (
            "5: a number beyond 64 bits",
            GET,
            "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n",
            "Peer(BadLength)",
        ),
        (
            "5: differing",
            GET,
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "Peer(BadLength)",
        ),
        (
            "5: differing in one field",
            GET,
            "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n",
            "Peer(BadLength)",
        ),
        (
            "5: the same several times",
            GET,
            "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 02\r\n\r\nab",
            "200 Length(2) Content-Length=2, 2 Content-Length=02 | body ab | done",
        ),
        (
            "5: without a body, and with a transfer coding, a bad length is not looked at",
            TWO,
            "HTTP/1.1 304 x\r\nContent-Length: x\r\n\r\n\
             HTTP/1.1 200 OK\r\nContent-Length: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "304 Empty Content-Length=x | done | 200 Chunked | last",
        ),
        (
            "6: length",
            GET,
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "200 Length(0) Content-Length=0 | done",
        ),
        ("8: neither: until close", GET, "HTTP/1.1 200 OK\r\n\r\nabc", "200 UntilClose | body abc | last"),
        ("8: neither, and empty", GET, "HTTP/1.1 200 OK\r\n\r\n", "200 UntilClose | last"),
    ]);
}

#[test]
fn a_chunked_body_follows_rfc_9112_section_7_1() {
    const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let rows: &[(&str, &str, &str)] = &[
        (
            "sizes in either case",
            "A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n",
            "body 01234567890123456789 | done",
        ),
        ("leading zeros", "0002\r\nab\r\n000\r\n\r\n", "body ab | done"),
        ("7.1.1: extensions are skipped", "2;a=b;c=\"d\"\r\nab\r\n0;x\r\n\r\n", "body ab | done"),
        ("7.1.1: a blank before an extension", "2 ;a\r\nab\r\n0\r\n\r\n", "body ab | done"),
        ("sizes padded with blanks, as old servers do", "2   \r\nab\r\n0  \r\n\r\n", "body ab | done"),
        ("7.1.2: trailers", "0\r\nA: b\r\nContent-MD5: c\r\n\r\n", "trailers A=b Content-MD5=c | done"),
        ("no size", "\r\nab\r\n", "Peer(BadChunk)"),
        ("no number", "x\r\n", "Peer(BadChunk)"),
        ("a sign", "-1\r\n", "Peer(BadChunk)"),
        ("a prefix", "0x2\r\nab\r\n", "Peer(BadChunk)"),
        ("beyond 64 bits", "10000000000000000\r\n", "Peer(BadChunk)"),
        ("no CRLF after the data", "2\r\nabc\r\n", "body ab | Peer(BadChunk)"),
        ("LF after the data", "2\r\nab\n0\r\n\r\n", "body ab | Peer(BadChunk)"),
        ("LF after the size", "2\nab\r\n0\r\n\r\n", "Peer(BareLf)"),
        ("CR in an extension", "2;\rx\r\nab\r\n", "Peer(BadChunk)"),
        ("two CR", "2\r\r\nab\r\n", "Peer(BadChunk)"),
        ("the trailer section is cut", "0\r\n", "Peer(BodyTruncated { missing: 0 })"),
        ("a chunk is cut", "5\r\nab", "body ab | Peer(BodyTruncated { missing: 3 })"),
    ];
    for (rule, wire, expected) in rows {
        let wire = format!("{HEAD}{wire}");
        let expected = format!("200 Chunked | {expected}");
        assert_eq!(play_client(GET, [Chunk::from(wire.clone().into_bytes())]), expected, "{rule}");
        let bytes = wire.bytes().map(|b| Chunk::from(vec![b]));
        assert_eq!(play_client(GET, bytes), expected, "{rule}, byte by byte");
    }
}

#[test]
fn a_head_follows_rfc_9112_sections_2_to_5() {
    check(&[
        ("2.2: empty lines before it", GET, "\r\n\n\r\nHTTP/1.1 204 x\r\n\r\n", "204 Empty | done"),
        ("2.2: LF alone may end a line", GET, "HTTP/1.1 204 x\nA: b\n\n", "204 Empty A=b | done"),
        ("2.2: CR alone may not stand in one", GET, "HTTP/1.1 204 x\r\nA: b\rc\r\n\r\n", "Peer(BadField)"),
        ("2.2: nor at its end", GET, "HTTP/1.1 204 x\r\nA: b\r\r\n\r\n", "Peer(BadField)"),
        ("2.2: a blank before the first field", GET, "HTTP/1.1 204 x\r\n A: b\r\n\r\n", "Peer(BadField)"),
        ("2.3: a later minor version", GET, "HTTP/1.7 204 x\r\n\r\n", "204 Empty | done"),
        ("2.3: another major version", GET, "HTTP/2.0 204 x\r\n\r\n", "Peer(BadVersion)"),
        ("2.3: the name is in capitals", GET, "http/1.1 204 x\r\n\r\n", "Peer(BadStartLine)"),
        ("4: no reason", GET, "HTTP/1.1 204 \r\n\r\n", "204 Empty | done"),
        ("4: not even a blank", GET, "HTTP/1.1 204\r\n\r\n", "204 Empty | done"),
        ("4: a status of four digits", GET, "HTTP/1.1 2040\r\n\r\n", "Peer(BadStartLine)"),
        ("4: a status below 100", GET, "HTTP/1.1 099 x\r\n\r\n", "Peer(BadStartLine)"),
        ("4: not HTTP at all", GET, "SSH-2.0-x\r\n\r\n", "Peer(BadStartLine)"),
        (
            "5: blanks around the value",
            GET,
            "HTTP/1.1 204 x\r\nA: \t b c \t\r\nB:\r\n\r\n",
            "204 Empty A=b c B= | done",
        ),
        (
            "5.1: blanks before the colon are removed",
            GET,
            "HTTP/1.1 204 x\r\nA : b\r\n\r\n",
            "204 Empty A=b | done",
        ),
        ("5.1: a name with a blank", GET, "HTTP/1.1 204 x\r\nA B: c\r\n\r\n", "Peer(BadField)"),
        ("5.1: no name", GET, "HTTP/1.1 204 x\r\n: c\r\n\r\n", "Peer(BadField)"),
        ("5.1: no colon", GET, "HTTP/1.1 204 x\r\nA\r\n\r\n", "Peer(BadField)"),
        (
            "5.2: a fold becomes a blank",
            GET,
            "HTTP/1.1 204 x\r\nA: b\r\n  c\r\n\td\r\n\r\n",
            "204 Empty A=b   c \td | done",
        ),
        (
            "5.2: what is folded counts",
            GET,
            "HTTP/1.1 200 x\r\nContent-Length:\r\n 2\r\n\r\nab",
            "200 Length(2) Content-Length=2 | body ab | done",
        ),
    ]);
}

#[test]
fn a_connection_persists_as_rfc_9112_section_9_3_says() {
    check(&[
        (
            "close",
            TWO,
            "HTTP/1.1 204 x\r\nConnection: close\r\n\r\n",
            "204 Empty | last | Peer(ClosedBeforeResponse)",
        ),
        ("close in a list", GET, "HTTP/1.1 204 x\r\nConnection: foo, Close\r\n\r\n", "204 Empty | last"),
        ("HTTP/1.0", GET, "HTTP/1.0 204 x\r\n\r\n", "204 Empty | last"),
        (
            "HTTP/1.0 with keep-alive",
            GET,
            "HTTP/1.0 204 x\r\nConnection: Keep-Alive\r\n\r\n",
            "204 Empty | done",
        ),
        (
            "both",
            GET,
            "HTTP/1.1 204 x\r\nConnection: keep-alive\r\nConnection: close\r\nKeep-Alive: timeout=5\r\n\r\n",
            "204 Empty | last",
        ),
        (
            "bytes after the last response",
            GET,
            "HTTP/1.1 204 x\r\n\r\nHTTP/1.1 204 x\r\n\r\n",
            "204 Empty | done | Peer(UnexpectedBytes)",
        ),
        ("but for empty lines", GET, "HTTP/1.1 204 x\r\n\r\n\r\n", "204 Empty | done"),
        (
            "bytes after a response that closes",
            TWO,
            "HTTP/1.1 204 x\r\nConnection: close\r\n\r\nHTTP/1.1 204 x\r\n\r\n",
            "204 Empty | last | Peer(UnexpectedBytes)",
        ),
    ]);
}

#[test]
fn the_end_of_the_connection_is_told_apart_by_where_it_comes() {
    check(&[
        ("before any response", TWO, "", "Peer(ClosedBeforeResponse)"),
        ("between responses", TWO, "HTTP/1.1 204 x\r\n\r\n", "204 Empty | done | Peer(ClosedBeforeResponse)"),
        ("in a head", GET, "HTTP/1.1 2", "Peer(HeadTruncated)"),
        (
            "8: in a body of known length",
            GET,
            "HTTP/1.1 200 x\r\nContent-Length: 9\r\n\r\nabc",
            "200 Length(9) Content-Length=9 | body abc | Peer(BodyTruncated { missing: 6 })",
        ),
    ]);
}

#[test]
fn an_upgrade_needs_an_offer() {
    check(&[
        (
            "RFC 9110 §7.8",
            &["UPGRADE"],
            "HTTP/1.1 101 x\r\nUpgrade: spdy/3.1\r\nConnection: Upgrade\r\n\r\n\u{1}\u{2}",
            "101 Tunnel Upgrade=spdy/3.1 | body \u{1}\u{2} | last",
        ),
        ("declined", &["UPGRADE"], "HTTP/1.1 204 x\r\n\r\n", "204 Empty | done"),
        ("not offered", GET, "HTTP/1.1 101 x\r\nUpgrade: spdy/3.1\r\n\r\n", "Peer(UnexpectedUpgrade)"),
    ]);
}

fn sent(client: &mut Connection) -> String {
    let mut out = Vec::new();
    while let Some(chunk) = client.poll_transmit(u64::MAX) {
        match chunk {
            Chunk::Bytes(b) => out.extend_from_slice(&b),
            Chunk::Body(r) => out.extend_from_slice(format!("[{} of {}]", r.len, r.source).as_bytes()),
        }
    }
    String::from_utf8(out).unwrap()
}

fn with_fields(method: &str, fields: &[(&'static str, &'static str)]) -> RequestHead {
    let mut head = get(method);
    for (name, value) in fields {
        head.fields.push(*name, *value);
    }
    head
}

#[test]
fn a_request_is_written_as_rfc_9112_section_3_says() {
    let range = Chunk::Body(BodyRange { source: 7, start: 0, len: 300 });
    let mut client = Connection::new();
    let head = with_fields(
        "GET",
        &[("Accept", "*/*"), ("host", "other"), ("Transfer-Encoding", "x"), ("accept", "b")],
    );
    client.request(&head, None).unwrap();
    assert_eq!(sent(&mut client), "GET / HTTP/1.1\r\nHost: h\r\nAccept: */*\r\naccept: b\r\n\r\n");
    client.request(&get("POST"), None).unwrap();
    assert_eq!(sent(&mut client), "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    client.request(&get("POST"), Some(300)).unwrap();
    client.send_body(range.clone()).unwrap();
    assert_eq!(sent(&mut client), "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 300\r\n\r\n[300 of 7]");
    client.request_chunked(&get("PUT")).unwrap();
    client.send_body(range).unwrap();
    client.send_body(Chunk::from(b"ab".to_vec())).unwrap();
    client.finish().unwrap();
    assert_eq!(
        sent(&mut client),
        "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n12c\r\n[300 of 7]\r\n2\r\nab\r\n0\r\n\r\n"
    );
    let head = RequestHead { path: "*".into(), ..get("OPTIONS") };
    client.request(&head, None).unwrap();
    assert_eq!(sent(&mut client), "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    client.request(&with_fields("GET", &[("Upgrade", "spdy/3.1")]), None).unwrap();
    assert_eq!(
        sent(&mut client),
        "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: spdy/3.1\r\nConnection: Upgrade\r\n\r\n"
    );
    let mut client = Connection::new();
    client.request(&RequestHead { authority: "h:443".into(), ..get("CONNECT") }, None).unwrap();
    assert_eq!(sent(&mut client), "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n");
}

#[test]
fn a_head_that_would_break_the_stream_is_refused_and_leaves_no_trace() {
    let bad_line = [
        RequestHead { method: "GE T".into(), ..get("GET") },
        RequestHead { path: "/ HTTP/1.1\r\nA: b".into(), ..get("GET") },
        RequestHead { path: "".into(), ..get("GET") },
        RequestHead { path: "*".into(), ..get("GET") },
        RequestHead { authority: "h\r\nA: b".into(), ..get("GET") },
        RequestHead { authority: "user@h".into(), ..get("GET") },
        RequestHead { authority: "".into(), ..get("CONNECT") },
    ];
    let mut client = Connection::new();
    for head in bad_line {
        assert_eq!(client.request(&head, None), Err(Error::Caller(CallerError::BadRequestLine)), "{head:?}");
    }
    for (name, value) in [("A", "b\r\nC: d"), ("A", "b\0"), ("A:", "b"), ("", "b"), ("A B", "c")] {
        let head = with_fields("GET", &[(name, value)]);
        assert_eq!(client.request(&head, None), Err(Error::Caller(CallerError::BadField)), "{head:?}");
    }
    assert_eq!((client.outstanding(), client.poll_transmit(9), client.stats().bytes_out), (0, None, 0));
}

#[test]
fn a_request_is_refused_when_the_connection_cannot_carry_it() {
    let caller = |e| Err(Error::Caller(e));
    let mut client = Connection::with_limits(Limits { outstanding: 2, ..Limits::default() });
    client.request(&get("POST"), Some(3)).unwrap();
    assert_eq!(client.request(&get("GET"), None), caller(CallerError::BodyUnfinished));
    assert_eq!(client.finish(), caller(CallerError::BodyTooShort { missing: 3 }));
    assert_eq!(client.send_body(Chunk::from(vec![0; 4])), caller(CallerError::BodyTooLong));
    client.send_body(Chunk::from(vec![0; 3])).unwrap();
    assert_eq!(client.send_body(Chunk::from(vec![0])), caller(CallerError::BodyTooLong));
    client.request(&get("GET"), None).unwrap();
    assert!(!client.can_request());
    assert_eq!(client.request(&get("GET"), None), caller(CallerError::TooManyOutstanding));

    let mut client = Connection::new();
    client.request(&RequestHead { authority: "h:1".into(), ..get("CONNECT") }, None).unwrap();
    assert_eq!(client.request(&get("GET"), None), caller(CallerError::ProtocolChangePending));

    let mut client = Connection::new();
    client.request(&with_fields("GET", &[("Connection", "close")]), None).unwrap();
    assert_eq!(client.request(&get("GET"), None), caller(CallerError::Closing));
    sent(&mut client);
    client.handle_input(Instant::ZERO, Chunk::from(b"HTTP/1.1 204 x\r\n\r\n".to_vec())).unwrap();
    client.poll_event();
    assert_eq!(client.poll_event(), Some(Event::Complete { reusable: false }), "as we said ourselves");
}

#[test]
fn the_requests_that_may_be_sent_again_are_known() {
    let mut client = Connection::new();
    for _ in 0..3 {
        client.request(&get("GET"), None).unwrap();
    }
    let one = client.stats().bytes_out / 3;
    assert_eq!((client.unanswered(), client.unsent()), (3, 3));
    client.poll_transmit(one).unwrap();
    assert_eq!(client.unsent(), 2);
    client.poll_transmit(1).unwrap();
    assert_eq!(client.unsent(), 1);
    client.handle_input(Instant::from_nanos(5), Chunk::from(b"HTTP/1.1 1".to_vec())).unwrap();
    assert_eq!((client.outstanding(), client.unanswered()), (3, 2));
    assert_eq!(client.last_input(), Some(Instant::from_nanos(5)));
    client.handle_input(Instant::ZERO, Chunk::from(b"03 x\r\n\r\n".to_vec())).unwrap();
    assert_eq!(client.unanswered(), 2, "an interim response is an answer begun");
    client.handle_input(Instant::ZERO, Chunk::from(b"HTTP/1.1 204 x\r\n\r\n".to_vec())).unwrap();
    assert_eq!((client.outstanding(), client.unanswered()), (2, 2));
    assert_eq!(client.handle_eof(), Err(Error::Peer(PeerError::ClosedBeforeResponse)));
    assert_eq!((client.outstanding(), client.unanswered(), client.unsent()), (2, 2, 1));
}

#[test]
fn a_response_to_what_was_never_sent_is_unexpected() {
    let mut client = Connection::new();
    client.request(&get("GET"), None).unwrap();
    let early = client.handle_input(Instant::ZERO, Chunk::from(b"HTTP/1.1 204 x\r\n\r\n".to_vec()));
    assert_eq!(early, Err(Error::Peer(PeerError::UnexpectedBytes)));
    assert_eq!(client.request(&get("GET"), None), early, "nor is anything sent after");
}

/// RFC 9112 §9.3: the rest of the body may or may not be read as the next request.
#[test]
fn a_response_that_overtakes_its_request_ends_the_connection() {
    let mut client = Connection::new();
    client.request(&get("POST"), Some(10)).unwrap();
    client.send_body(Chunk::from(vec![0; 4])).unwrap();
    sent(&mut client);
    client
        .handle_input(Instant::ZERO, Chunk::from(b"HTTP/1.1 413 x\r\nContent-Length: 0\r\n\r\n".to_vec()))
        .unwrap();
    client.poll_event();
    assert_eq!(client.poll_event(), Some(Event::Complete { reusable: false }));
    client.send_body(Chunk::from(vec![0; 6])).unwrap();
    assert_eq!(client.poll_transmit(9), None, "the rest leads nowhere");
}

#[test]
fn a_body_range_stands_only_where_body_bytes_are_due() {
    let range = |len| Chunk::Body(BodyRange { source: 1, start: 0, len });
    let text = |s: &str| Chunk::from(s.as_bytes().to_vec());
    let length = "HTTP/1.1 200 x\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(play_client(GET, [text(length), range(5)]), "200 Length(5) Content-Length=5 | range 5 | done");
    assert_eq!(
        play_client(TWO, [text(length), range(6)]),
        "200 Length(5) Content-Length=5 | range 5 | done | Peer(BodyRangeInFraming)"
    );
    assert_eq!(play_client(GET, [range(1)]), "Peer(BodyRangeInFraming)");
    let chunked = "HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n";
    assert_eq!(
        play_client(GET, [text(chunked), range(5), text("\r\n0\r\n\r\n")]),
        "200 Chunked | range 5 | done"
    );
    assert_eq!(
        play_client(GET, [text(chunked), range(6)]),
        "200 Chunked | range 5 | Peer(BodyRangeInFraming)"
    );
    assert_eq!(
        play_client(GET, [text("HTTP/1.1 200 x\r\n\r\n"), range(6)]),
        "200 UntilClose | range 6 | last"
    );
    assert_eq!(
        play_client(&["CONNECT"], [text("HTTP/1.1 200 x\r\n\r\n"), range(6)]),
        "200 Tunnel | range 6 | last"
    );
}

#[test]
fn every_limit_is_enforced_at_its_edge() {
    let limits = Limits {
        head_bytes: 60,
        fields: 2,
        chunk_line_bytes: 6,
        extension_bytes: 5,
        trailer_bytes: 12,
        ..Limits::default()
    };
    let play = |wire: &str| {
        let mut client = Connection::with_limits(limits);
        client.request(&get("GET"), None).unwrap();
        sent(&mut client);
        client.handle_input(Instant::ZERO, Chunk::from(wire.as_bytes().to_vec()))
    };
    let peer = |e| Err(Error::Peer(e));
    let head = |fields: &str| format!("HTTP/1.1 204 x\r\n{fields}\r\n");
    assert_eq!(play(&head(&format!("A: {}\r\n", "b".repeat(37)))), Ok(()), "60 bytes");
    assert_eq!(play(&head(&format!("A: {}\r\n", "b".repeat(38)))), peer(PeerError::HeadTooLarge));
    assert_eq!(play(&format!("HTTP/1.1 204 {}\r\n\r\n", "x".repeat(60))), peer(PeerError::StartLineTooLong));
    assert_eq!(play(&"\r\n".repeat(30)), peer(PeerError::StartLineTooLong), "empty lines count");
    assert_eq!(play(&head("A:\r\nB:\r\n")), Ok(()));
    assert_eq!(play(&head("A:\r\nB:\r\nC:\r\n")), peer(PeerError::TooManyFields));
    let chunked = |rest: &str| play(&format!("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n{rest}"));
    assert_eq!(chunked("1;xx\r\nb\r\n"), Ok(()), "6 bytes");
    assert_eq!(chunked("1;xxx\r\nb\r\n"), peer(PeerError::ChunkLineTooLong));
    assert_eq!(chunked("1;xx\r\nb\r\n1;x\r\nb\r\n"), Ok(()), "extensions of 5 bytes");
    assert_eq!(chunked("1;xx\r\nb\r\n1;xx\r\nb\r\n"), peer(PeerError::ChunkLineTooLong));
    assert_eq!(chunked("0\r\nA:bcd\r\n\r\n"), Ok(()), "10 bytes");
    assert_eq!(chunked("0\r\nA:bcdefgh\r\n\r\n"), peer(PeerError::TrailersTooLarge));
    assert_eq!(chunked("0\r\nA:\r\nB:\r\n\r\n"), Ok(()));
}

#[test]
fn bodies_and_fields_are_slices_of_the_input() {
    let input = Bytes::from(b"HTTP/1.1 200 x\r\nContent-Length: 5\r\nA: bcd\r\n\r\nhello".to_vec());
    let within = |b: &Bytes| input.as_ptr_range().contains(&b.as_ptr());
    let mut client = Connection::new();
    client.request(&get("GET"), None).unwrap();
    sent(&mut client);
    client.handle_input(Instant::ZERO, Chunk::Bytes(input.clone())).unwrap();
    let Some(Event::Response {
        head,
        body: Framing::Length(5),
        head_len: 45,
        is_http10: false,
        persists: true,
    }) = client.poll_event()
    else {
        panic!("a response with a head of 45 bytes")
    };
    assert!(head.fields.iter().all(|f| within(&f.name) && within(&f.value)));
    let Some(Event::Body(Chunk::Bytes(body))) = client.poll_event() else { panic!("a body") };
    assert!(within(&body));
}

#[test]
fn a_response_cut_at_any_byte_is_an_error_or_complete() {
    let wire = "HTTP/1.1 103 x\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                3;x\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nT: u\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nxyz";
    let mut clean = Vec::new();
    for n in 0..=wire.len() {
        let outcome = play_client(TWO, [Chunk::from(wire.as_bytes()[..n].to_vec())]);
        if !outcome.contains("Peer(") {
            clean.push(n);
        }
    }
    assert_eq!(clean, [wire.len()]);
}

#[test]
fn fields_that_the_connection_owns_are_not_passed_on() {
    let wire =
        "HTTP/1.1 204 x\r\nConnection: keep-alive\r\nKeep-Alive: 5\r\nA: b\r\nProxy-Connection: x\r\n\r\n";
    assert_eq!(play_client(GET, [Chunk::from(wire.as_bytes().to_vec())]), "204 Empty A=b | done");
}
