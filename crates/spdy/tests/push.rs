//! Server push, rule by rule. Sections are of SPDY/3.1 unless said.

mod common;

use common::*;
use spdy::frame::Control;
use spdy::{By, Config, Event, OpenError, Priority, Session, Status, StreamId, Version};

/// §3.3: a push has an even id, is unidirectional, and goes ahead of the content that refers to it.
#[test]
fn a_push_is_told_and_delivered_and_found() {
    for version in VERSIONS {
        let mut pair = Pair::new(version);
        let page = pair.get("/", 0);
        pair.settle();
        pair.server.respond(page, &response(200), false).unwrap();
        pair.server.send(page, body(page.as_u32(), 20_000), true).unwrap();
        let style = pair.server.push(page, &get("/style.css"), &response(200), Priority::new(2)).unwrap();
        assert_eq!(style.as_u32(), 2);
        pair.server.send(style, body(2, 5_000), true).unwrap();
        let mut found = None;
        while pair.down() {
            found = found.or(pair.client.find_push(b"https", b"example.org", b"/style.css"));
        }
        pair.settle();
        assert_eq!(found, Some(style), "{version}");
        assert_eq!(pair.client.find_push(b"https", b"example.org", b"/style.css"), None, "it is complete");
        let at = |want: &dyn Fn(&Event) -> bool| pair.client_events.iter().position(want).unwrap();
        let pushed = at(&|e| matches!(e, Event::Pushed { .. }));
        assert!(pushed < at(&|e| matches!(e, Event::Data { .. })));
        let Event::Pushed { id, associated, head, response: answer, priority, fin, .. } =
            &pair.client_events[pushed]
        else {
            unreachable!()
        };
        assert_eq!((*id, *associated, *fin, priority.level()), (style, page, false, 2));
        assert_eq!(
            (&head.path[..], &head.method[..], head.fields.len()),
            (&b"/style.css"[..], &b"GET"[..], 0)
        );
        assert_eq!(answer.as_ref(), Some(&response(200)));
        assert_eq!(arrived(&pair.client_events, style), (5_000, true));
        assert_eq!((pair.client.open_streams(), pair.server.open_streams()), (0, 0));
    }
}

#[test]
fn pushes_that_may_not_be_are_refused() {
    let push = |pair: &mut Pair, host: &'static str| {
        let page = pair.get("/", 0);
        pair.settle();
        pair.server.respond(page, &response(200), false).unwrap();
        let mut head = get("/x");
        head.authority = host.into();
        let id = pair.server.push(page, &head, &response(200), Priority::LOWEST);
        pair.settle();
        id.map(|id| pair.client_wire.resets().contains(&(id.as_u32(), Status::REFUSED_STREAM)))
    };
    let mut pair = Pair::new(Version::V3_1);
    assert_eq!(push(&mut pair, "example.org"), Ok(false));
    assert_eq!(push(&mut pair, "evil.example"), Ok(true), "another origin");
    let none = Config { max_concurrent_streams: 0, ..Config::new(Version::V3_1) };
    let mut pair = Pair::with(none.clone(), Config::new(Version::V3_1));
    pair.up();
    assert_eq!(push(&mut pair, "example.org"), Err(OpenError::TooManyStreams), "the server was told");
    let mut pair = Pair::with(Config { announce_streams: false, ..none }, Config::new(Version::V3_1));
    assert_eq!(push(&mut pair, "example.org"), Ok(true), "the server was not told");

    let mut pair = Pair::new(Version::V3_1);
    let page = pair.get("/", 0);
    pair.settle();
    pair.answer(page, 0);
    let push = pair.server.push(page, &get("/x"), &response(200), Priority::LOWEST);
    assert_eq!(push, Err(OpenError::NotAssociable), "beside a finished stream (§3.3.1)");
    assert_eq!(pair.server.request(&get("/"), Priority::LOWEST, true), Err(OpenError::WrongRole));
    assert_eq!(
        pair.client.push(page, &get("/"), &response(200), Priority::LOWEST),
        Err(OpenError::WrongRole)
    );
}

/// §3.3.2: a push can be cancelled alone, and all of a request's with it.
#[test]
fn cancelling_a_request_cancels_its_pushes() {
    let mut pair = Pair::new(Version::V3_1);
    let page = pair.get("/", 0);
    pair.settle();
    pair.server.respond(page, &response(200), false).unwrap();
    let pushes: Vec<StreamId> = (0..3)
        .map(|i| {
            let push =
                pair.server.push(page, &get(&format!("/{i}")), &response(200), Priority::LOWEST).unwrap();
            pair.server.send(push, body(push.as_u32(), 2_000_000), true).unwrap();
            push
        })
        .collect();
    for _ in 0..10 {
        pair.down();
    }
    pair.client.reset(pushes[0], Status::CANCEL);
    for _ in 0..10 {
        pair.up();
    }
    let reset = |id, by| Event::Reset { id, status: Status::CANCEL, by };
    assert_eq!(pair.server_events.last(), Some(&reset(pushes[0], By::Peer)));
    assert_eq!(pair.server.open_streams(), 3);
    pair.client.reset(page, Status::CANCEL);
    pair.settle();
    assert_eq!(pair.client_events[pair.client_events.len() - 2..], [1, 2].map(|i| reset(pushes[i], By::Us)));
    let last = [page, pushes[1], pushes[2]].map(|id| reset(id, By::Peer));
    assert_eq!(pair.server_events[pair.server_events.len() - 3..], last);
    assert_eq!((pair.client.open_streams(), pair.server.open_streams()), (0, 0));
}

/// §3.3.2: the server must stop a request's pushes when it is cancelled, even if by then it has sent all of the answer: the
/// client has forgotten them, and their windows would stay shut for ever. Found by fuzzing.
#[test]
fn pushes_end_with_their_request_even_if_the_cancel_comes_after_its_answer() {
    let mut pair = Pair::new(Version::V3_1);
    let page = pair.get("/", 0);
    pair.settle();
    let push = pair.server.push(page, &get("/x"), &response(200), Priority::LOWEST).unwrap();
    pair.server.send(push, body(push.as_u32(), 20_000_000), true).unwrap();
    pair.server.respond(page, &response(200), true).unwrap();
    // The push's head and the answer are out; the client cancels before it hears the answer.
    let out = pair.server.poll_transmit(pair.now, 1_400).unwrap();
    pair.client.reset(page, Status::CANCEL);
    pair.settle();
    pair.client.handle_input(pair.now, out).unwrap();
    pair.settle();
    assert_eq!(events(&mut pair.client), []);
    assert!(pair.server_events.contains(&Event::Reset { id: push, status: Status::CANCEL, by: By::Peer }));
    assert_eq!((pair.client.open_streams(), pair.server.open_streams()), (0, 0));
}

/// §3.3.2 speaks of the client. A server that resets a request says nothing of its pushes, and they go on. Found by fuzzing.
#[test]
fn pushes_outlive_a_request_that_the_server_resets() {
    let mut pair = Pair::new(Version::V3_1);
    let page = pair.get("/", 0);
    pair.settle();
    let push = pair.server.push(page, &get("/x"), &response(200), Priority::LOWEST).unwrap();
    pair.settle();
    pair.server.reset(page, Status::CANCEL);
    pair.server.send(push, body(push.as_u32(), 5_000), true).unwrap();
    pair.settle();
    assert_eq!(arrived(&pair.client_events, push), (5_000, true));
    assert_eq!((pair.client.open_streams(), pair.server.open_streams()), (0, 0));
}

/// §3.3.1: the response of a push may follow in HEADERS.
#[test]
fn a_push_may_name_itself_first_and_answer_later() {
    let version = Version::V3_1;
    let mut client = Session::client(Config::new(version));
    client.request(&get("/"), Priority::HIGHEST, true).unwrap();
    let pairs = |pairs: &[(&str, &str)]| {
        let mut raw = (pairs.len() as u32).to_be_bytes().to_vec();
        for text in pairs.iter().flat_map(|(n, v)| [n, v]) {
            raw.extend((text.len() as u32).to_be_bytes());
            raw.extend(text.as_bytes());
        }
        let len = raw.len() as u16;
        [&[0][..], &len.to_le_bytes(), &(!len).to_le_bytes(), &raw].concat()
    };
    let target = pairs(&[(":scheme", "https"), (":host", "example.org"), (":path", "/x")]);
    let block = [&[0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2][..], &target].concat();
    let syn = Control::SynStream {
        id: 2,
        associated: 1,
        priority: Priority::HIGHEST,
        slot: 0,
        fin: false,
        unidirectional: true,
        block: &block[..],
    };
    give(&mut client, version, syn).unwrap();
    let told = events(&mut client);
    let [Event::Pushed { id, response: None, .. }] = told[..] else { panic!("{told:?}") };
    let answer = pairs(&[(":status", "200"), (":version", "HTTP/1.1"), ("age", "1")]);
    give(&mut client, version, Control::Headers { id: 2, fin: true, block: &answer }).unwrap();
    let told = events(&mut client);
    let [Event::Response { id: of, head, fin: true, .. }] = &told[..] else { panic!("{told:?}") };
    assert_eq!((*of, head.status, head.fields.get_str("age")), (id, 200, Some("1")));
}
