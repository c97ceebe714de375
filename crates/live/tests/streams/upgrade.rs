//! From HTTP/1.1 to SPDY, or not.

use std::io::{Read, Write};

use base::Fields;
use bytes::Bytes;
use live::streams::{ACCEPTED_PROTOCOLS, Connection, Error, Event};
use spdy::Opening;

use crate::common::*;
use crate::echo::config;

#[test]
fn a_refusal_comes_with_its_status_fields_and_reason() {
    let mut host = host();
    let address = listen(&mut host, &config(), || {
        on(|event, connection: &mut Connection| {
            if let Event::Asked { .. } = event {
                let accepted = fields(&[(ACCEPTED_PROTOCOLS, "v9")]);
                connection.refuse(403, accepted, Bytes::from_static(b"unable to negotiate\n")).unwrap();
            }
        })
    });
    let log = connect_and_log(&mut host, address, config());
    until_over(&mut host, 2);
    let [Event::Closed(Err(e))] = &log.borrow()[..] else { panic!("{:?}", log.borrow()) };
    let text = "the server refused the upgrade to SPDY/3.1 with status 403: unable to negotiate";
    assert_eq!(e.to_string(), text);
    let Error::Refused { fields, .. } = e else { panic!("{e:?}") };
    assert_eq!(fields.get_str(ACCEPTED_PROTOCOLS), Some("v9"));
}

/// Whatever a server may say instead of 101, the client ends with an error that tells it.
#[test]
fn answers_other_than_101_are_reported() {
    let long = format!("HTTP/1.1 500 No\r\nContent-Length: 100000\r\n\r\n{}", "x".repeat(50_000));
    let cases = [
        ("HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\ngone", "SPDY/3.1 with status 404: gone"),
        ("HTTP/1.1 200 OK\r\n\r\nuntil the end", "SPDY/3.1 with status 200: until the end"),
        ("HTTP/1.1 302 No\r\nContent-Length: 9\r\n\r\ncut", "SPDY/3.1 with status 302: cut"),
        (&long, "SPDY/3.1 with status 500: xxxx"),
        (
            "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            "the server changes to websocket instead of SPDY/3.1",
        ),
        ("HTTP/1.1 101 Yes\r\n\r\n", "the server changes the protocol and does not say to which"),
        ("SSH-2.0-OpenSSH_9.9\r\n", "HTTP/1.1 before the upgrade: peer"),
        ("", "HTTP/1.1 before the upgrade: peer: closed before the response"),
    ];
    for (answer, expected) in cases {
        let answer = answer.to_owned();
        let peer = Peer::serving(move |mut tcp| {
            read_head(&mut tcp);
            tcp.write_all(answer.as_bytes()).unwrap();
        });
        let mut host = host();
        let log = connect_and_log(&mut host, peer.address, config());
        until_over(&mut host, 1);
        let end = log.borrow().last().cloned();
        let Some(Event::Closed(Err(e))) = end else { panic!("{expected}: {end:?}") };
        assert!(e.to_string().contains(expected), "{e}");
        peer.join();
    }
}

#[test]
fn a_request_that_asks_for_nothing_like_it_gets_400() {
    for request in [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: SPDY/3.1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 1\r\n\r\nx",
        "nonsense\r\n\r\n",
    ] {
        let mut host = host();
        let log = Log::default();
        let of_server = log.clone();
        let address = listen(&mut host, &config(), move || logger(of_server.clone()));
        let peer = Peer::calling(address, move |mut tcp| {
            tcp.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            tcp.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 400 "), "{request:?} got {answer:?}");
        });
        until_over(&mut host, 1);
        peer.join();
        let end = log.borrow().last().cloned();
        let expected = matches!(end, Some(Event::Closed(Err(Error::NotAsked | Error::Http(_)))));
        assert!(expected, "{request:?}: {end:?}");
        assert_eq!(log.borrow().len(), 1, "the handler was asked nothing");
    }
}

/// What a client sends before it has its 101 is not lost; and what is queued goes out before the GOAWAY of the end.
#[test]
fn spdy_begins_with_the_byte_behind_the_head_and_ends_with_goaway() {
    let mut early = spdy::Session::client(spdy::Config::spdystream());
    early.open(&fields(&[("a", "b")]), Opening::default()).unwrap();
    let mut bytes = ASK.as_bytes().to_vec();
    while let Some(base::Chunk::Bytes(more)) = early.poll_transmit(base::Instant::ZERO, 1 << 20) {
        bytes.extend_from_slice(&more);
    }
    let mut host = host();
    let address = listen(&mut host, &config(), || {
        on(|event, connection: &mut Connection| match event {
            Event::Asked { .. } => connection.grant(None).unwrap(),
            Event::Opened { id, .. } => {
                connection.accept(id, &Fields::new(), false).unwrap();
                connection.send(id, pattern(60_000), true).unwrap();
                connection.close();
            }
            _ => {}
        })
    });
    let peer = Peer::calling(address, move |mut tcp| {
        tcp.write_all(&bytes).unwrap();
        read_head(&mut tcp);
        let mut rest = Vec::new();
        tcp.read_to_end(&mut rest).unwrap();
        assert_eq!(goaway_at_end(&rest), Some(0));
        early.handle_input(base::Instant::ZERO, rest.into()).unwrap();
        let mut length = 0;
        while let Some(event) = early.poll_event() {
            if let spdy::Event::Data { chunk, .. } = event {
                length += chunk.len();
            }
        }
        assert_eq!(length, 60_000);
    });
    until_over(&mut host, 1);
    peer.join();
}
