//! A session's rules, one by one. Sections are of SPDY/3.1 unless said.

mod common;

use base::{BodyRange, Chunk, Duration, Fields, Instant, ResponseHead};
use bytes::Bytes;
use common::*;
use spdy::frame::{Control, Setting, kind};
use spdy::{
    Announce, BadHead, By, Config, Error, Event, FlowControl, GoAwayStatus, KeepAlive, Limits, Misbehaviour,
    OpenError, Priority, SendError, Session, Status, StreamId, Version, WindowPolicy,
};

fn requests(events: &[Event]) -> Vec<StreamId> {
    let request = |event: &Event| match event {
        Event::Request { id, .. } => Some(*id),
        _ => None,
    };
    events.iter().filter_map(request).collect()
}

fn give(session: &mut Session, version: Version, frame: Control<&[u8]>) -> Result<(), Error> {
    session.handle_input(Instant::ZERO, bytes_of(version, frame).into())
}

fn misbehaved(what: Misbehaviour) -> Result<(), Error> {
    Err(Error::PeerMisbehaved(what))
}

#[test]
fn a_request_and_its_answer_are_told_with_their_size_on_the_wire() {
    for version in VERSIONS {
        let mut pair = Pair::new(version);
        let before = pair.client.stats().heads_sent;
        let id = pair.get("/a", 3);
        let sent = pair.client.stats().heads_sent - before;
        pair.settle();
        pair.answer(id, 1_000);
        pair.settle();
        let told = pair.server_events.iter().find_map(|event| match event {
            Event::Request { head, fin: true, wire_len, .. } if *head == get("/a") => {
                Some(u64::from(*wire_len))
            }
            _ => None,
        });
        assert_eq!(told, Some(sent), "{version}");
        assert_eq!(pair.server.stats().heads_received, sent);
        assert_eq!(pair.client.stats().heads_received, pair.server.stats().heads_sent);
        assert_eq!(pair.client.stats().blocks_received_raw, pair.server.stats().blocks_sent_raw);
        assert_eq!(arrived(&pair.client_events, id), (1_000, true));
        assert_eq!((pair.client.open_streams(), pair.server.open_streams()), (0, 0));
    }
}

/// A body range where a frame must stand is the peer's fault; as the payload of DATA it is the very thing.
#[test]
fn body_ranges_are_payload_and_nothing_else() {
    let range = |len| Chunk::from(BodyRange { source: 1, start: 0, len });
    let mut server = Session::server(Config::new(Version::V3_1));
    assert_eq!(server.handle_input(Instant::ZERO, range(8)), misbehaved(Misbehaviour::BodyInsteadOfFrame));
    assert_eq!(server.handle_input(Instant::ZERO, range(8)), Err(Error::AlreadyFailed));

    let mut server = Session::server(Config::new(Version::V3_1));
    let half = bytes_of(Version::V3_1, Control::Ping { id: 1 }).slice(..10);
    server.handle_input(Instant::ZERO, half.into()).unwrap();
    assert_eq!(server.handle_input(Instant::ZERO, range(1)), misbehaved(Misbehaviour::BodyInsteadOfFrame));

    // A frame of unknown type may hold anything.
    let mut server = Session::server(Config::new(Version::V3_1));
    all_bytes(&mut server);
    let head = spdy::frame::Head::Control { version: 3, kind: 0xf000, flags: 0, len: 1 << 20 }.emit();
    server.handle_input(Instant::ZERO, head.to_vec().into()).unwrap();
    server.handle_input(Instant::ZERO, range(1 << 20)).unwrap();
    give(&mut server, Version::V3_1, Control::Ping { id: 1 }).unwrap();
    assert_eq!(all_bytes(&mut server), bytes_of(Version::V3_1, Control::Ping { id: 1 }));
}

#[test]
fn data_is_told_as_it_arrives_and_not_when_its_frame_is_whole() {
    let mut pair = Pair::new(Version::V3_1);
    let id = pair.client.request(&post("/"), Priority::HIGHEST, false).unwrap();
    pair.settle();
    let frame = data_frame(id.as_u32(), true, b"hello");
    pair.server.handle_input(pair.now, frame.slice(..10).into()).unwrap();
    let part = |bytes: &'static [u8], fin| Event::Data { id, chunk: Bytes::from_static(bytes).into(), fin };
    assert_eq!(events(&mut pair.server), [part(b"he", false)]);
    pair.server.handle_input(pair.now, frame.slice(10..).into()).unwrap();
    assert_eq!(events(&mut pair.server), [part(b"llo", true)]);
}

#[test]
fn a_data_frame_fits_the_room_there_is_and_smaller_rooms_get_it_in_pieces() {
    let mut pair = Pair::new(Version::V3_1);
    let id = pair.get("/", 0);
    pair.settle();
    pair.answer(id, 50_000);
    while pair
        .server
        .poll_transmit(pair.now, 1 << 20)
        .is_some_and(|c| matches!(c, Chunk::Bytes(b) if b.len() > 8))
    {}
    let header = |session: &mut Session, room| -> u64 {
        let header = loop {
            match session.poll_transmit(Instant::ZERO, room) {
                Some(Chunk::Bytes(b)) => break b,
                Some(Chunk::Body(_)) => {}
                None => panic!("nothing to send"),
            }
        };
        u64::from(u32::from_be_bytes([0, header[5], header[6], header[7]]))
    };
    assert_eq!(header(&mut pair.server, 1_460), 1_452);
    assert_eq!(header(&mut pair.server, 1 << 20), 16_384, "at most max_data_frame");
    // The payload of that frame and then a header, byte by byte.
    while matches!(pair.server.poll_transmit(pair.now, 1 << 20), Some(Chunk::Bytes(_))) {}
    let mut bytes = 0;
    while let Some(chunk) = pair.server.poll_transmit(pair.now, 1) {
        assert_eq!(chunk.len(), 1);
        bytes += 1;
    }
    assert!(bytes > 10_000);
    assert_eq!(pair.server.poll_transmit(pair.now, 0), None);
}

/// §2.6.4 and §2.6.8: what each way of announcing windows puts on the wire first.
#[test]
fn windows_are_announced_as_each_client_does() {
    let first = |config: Config| {
        let mut session = Session::client(config);
        let id = session.request(&get("/"), Priority::HIGHEST, true).unwrap();
        let mut tap = Tap::new(Version::V3_1);
        let seen = tap.feed(Bytes::from(all_bytes(&mut session)).into());
        assert!(tap.is_clean());
        let told = seen.into_iter().filter_map(|seen| match seen {
            Seen::Control { frame: Control::SynStream { .. }, .. } | Seen::Data { .. } => None,
            Seen::Control { frame, .. } => Some(frame),
        });
        (id.as_u32(), told.collect::<Vec<_>>())
    };
    let settings = |entries| Control::Settings { clear: false, entries };
    let streams = Setting::new(Setting::MAX_CONCURRENT_STREAMS, 1_000);
    let window = Setting::new(Setting::INITIAL_WINDOW_SIZE, 10 << 20);
    assert_eq!(first(Config::chrome_2012(Version::V3_1)), (1, vec![]));
    let credit = Control::WindowUpdate { id: 0, delta: (10 << 20) - 65_536 };
    assert_eq!(first(Config::chrome_2013(Version::V3_1)), (1, vec![settings(vec![streams, window]), credit]));
    let credit = |id| Control::WindowUpdate { id, delta: (1 << 28) - 65_536 };
    let allowance = settings(vec![Setting::new(Setting::MAX_CONCURRENT_STREAMS, 100)]);
    assert_eq!(first(Config::firefox(Version::V3_1)), (1, vec![allowance, credit(0), credit(1)]));
    let nginx = first(Config::nginx(Version::V3_1)).1;
    assert_eq!(nginx[1], Control::WindowUpdate { id: 0, delta: 2_147_418_111 });
}

#[test]
fn a_window_lowered_under_way_goes_negative_and_recovers() {
    let client = Config { stream_window: WindowPolicy::half(16_384), ..Config::new(Version::V3) };
    let mut pair = Pair::with(client, Config::new(Version::V3));
    // The server answers before it hears of the client's SETTINGS.
    let settings = pair.client.poll_transmit(pair.now, u64::MAX).unwrap();
    pair.client_wire.sent(settings.clone());
    let id = pair.get("/", 0);
    pair.settle();
    pair.reads = false;
    pair.answer(id, 100_000);
    pair.settle();
    assert_eq!(arrived(&pair.client_events, id).0, 65_536);
    pair.server_wire.delivered(settings.clone());
    pair.server.handle_input(pair.now, settings).unwrap();
    let mut read = 0;
    while !arrived(&pair.client_events, id).1 {
        read += 8_192;
        pair.client.consume(id, 8_192);
        pair.settle();
        let ahead = arrived(&pair.client_events, id).0.saturating_sub(read);
        assert!(read < 57_344 || ahead <= 16_384, "{ahead} bytes ahead of the reader");
    }
    assert_eq!(arrived(&pair.client_events, id), (100_000, true));
}

#[test]
fn no_more_streams_than_the_peer_allows() {
    let mut pair = Pair::with(
        Config { assumed_streams: 2, ..Config::new(Version::V3) },
        Config { max_concurrent_streams: 3, ..Config::new(Version::V3) },
    );
    let first = pair.get("/", 0);
    pair.get("/", 0);
    assert!(!pair.client.can_open());
    let refused = pair.client.request(&get("/"), Priority::HIGHEST, true);
    assert_eq!(refused, Err(OpenError::TooManyStreams));
    pair.settle();
    pair.get("/", 0);
    assert!(!pair.client.can_open(), "three now");
    pair.settle();
    pair.answer(first, 0);
    pair.settle();
    assert!(pair.client.can_open());
}

/// §2.6.6: streams up to the last good one go on, those after it come back, and none is lost or doubled.
#[test]
fn goaway_in_mid_flight_loses_no_request_and_doubles_none() {
    for version in VERSIONS {
        let mut pair = Pair::new(version);
        let early: Vec<StreamId> = (0..3).map(|i| pair.get(&format!("/{i}"), 0)).collect();
        pair.settle();
        // These two cross the GOAWAY, one of them with an upload.
        let late = pair.get("/late", 0);
        let upload = pair.client.request(&post("/upload"), Priority::HIGHEST, false).unwrap();
        pair.client.send(upload, body(upload.as_u32(), 30_000), true).unwrap();
        pair.server.goaway();
        pair.settle();
        assert_eq!(requests(&pair.server_events), early, "{version}: late ones are not taken up");
        let goaway = pair.client_events.iter().find_map(|event| match event {
            Event::GoAway { last_good_id, unprocessed, .. } => Some((*last_good_id, unprocessed.clone())),
            _ => None,
        });
        assert_eq!(goaway, Some((early[2].as_u32(), vec![late, upload])));
        assert_eq!(pair.client.request(&get("/"), Priority::HIGHEST, true), Err(OpenError::GoingAway));
        for id in &early {
            pair.answer(*id, 10_000);
        }
        pair.settle();
        for id in early {
            assert_eq!(arrived(&pair.client_events, id), (10_000, true));
        }
        assert_eq!(pair.server_wire.resets(), []);
        assert!(pair.server.is_going_away() && pair.client.open_streams() == 0);
    }
}

#[test]
fn a_closed_connection_names_the_streams_it_interrupted() {
    let mut pair = Pair::new(Version::V3_1);
    let done = pair.get("/done", 0);
    let open = pair.get("/open", 0);
    pair.settle();
    pair.answer(done, 0);
    pair.settle();
    pair.client.handle_eof();
    assert_eq!(events(&mut pair.client), [Event::Closed { interrupted: vec![open] }]);
    assert_eq!(pair.client.poll_transmit(pair.now, 1_000), None);
    assert!(!pair.client.can_open());
}

/// §3.2.1: a request that lacks a part is answered 400, by the engine, and what follows it is dropped.
#[test]
fn a_request_that_lacks_a_part_is_answered_400() {
    for version in VERSIONS {
        let mut pair = Pair::new(version);
        pair.settle();
        // A real block, in a SYN_STREAM whose fields are a response's.
        let mut donor = Session::server(Config::new(version));
        let asked = {
            let mut asker = Session::client(Config::new(version));
            asker.request(&get("/"), Priority::HIGHEST, true).unwrap();
            all_bytes(&mut asker)
        };
        donor.handle_input(Instant::ZERO, asked.into()).unwrap();
        let id = requests(&events(&mut donor))[0];
        all_bytes(&mut donor);
        donor.respond(id, &response(200), true).unwrap();
        let reply = all_bytes(&mut donor);
        let block = &reply[if version == Version::V2 { 14 } else { 12 }..];
        let syn = Control::SynStream {
            id: 1,
            associated: 0,
            priority: Priority::HIGHEST,
            slot: 0,
            fin: false,
            unidirectional: false,
            block,
        };
        give(&mut pair.server, version, syn).unwrap();
        pair.server.handle_input(pair.now, data_frame(1, true, b"body").into()).unwrap();
        assert_eq!(events(&mut pair.server), [], "{version}");
        let mut client = Session::client(Config::new(version));
        client.request(&post("/"), Priority::HIGHEST, false).unwrap();
        client.handle_input(Instant::ZERO, all_bytes(&mut pair.server).into()).unwrap();
        let events = events(&mut client);
        assert!(
            matches!(&events[..], [Event::Response { head, fin: true, .. }] if head.status == 400),
            "{events:?}"
        );
    }
}

/// §2.2.2: DATA before the reply is a stream error; so is a reply without a status (§3.2.2).
#[test]
fn a_server_that_answers_out_of_order_gets_a_stream_error() {
    let mut client = Session::client(Config::new(Version::V3_1));
    let id = client.request(&get("/"), Priority::HIGHEST, true).unwrap();
    all_bytes(&mut client);
    client.handle_input(Instant::ZERO, data_frame(1, true, b"early").into()).unwrap();
    assert_eq!(events(&mut client), [Event::Reset { id, status: Status::PROTOCOL_ERROR, by: By::Us }]);
    let mut expected =
        bytes_of(Version::V3_1, Control::RstStream { id: 1, status: Status::PROTOCOL_ERROR }).to_vec();
    assert_eq!(all_bytes(&mut client), expected);
    // A reply to what never was asked.
    let block = [&[0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2, 0, 4, 0, 0xfb, 0xff][..], &[0; 4]].concat();
    give(&mut client, Version::V3_1, Control::SynReply { id: 99, fin: true, block: &block }).unwrap();
    expected =
        bytes_of(Version::V3_1, Control::RstStream { id: 99, status: Status::INVALID_STREAM }).to_vec();
    assert_eq!(all_bytes(&mut client), expected);
    let id = client.request(&get("/"), Priority::HIGHEST, true).unwrap();
    give(&mut client, Version::V3_1, Control::SynReply { id: id.as_u32(), fin: true, block: &block[6..] })
        .unwrap();
    assert_eq!(events(&mut client), [Event::Reset { id, status: Status::PROTOCOL_ERROR, by: By::Us }]);
}

#[test]
fn session_errors_send_goaway_and_end_everything() {
    let version = Version::V3_1;
    let syn = |id| Control::SynStream {
        id,
        associated: 0,
        priority: Priority::HIGHEST,
        slot: 0,
        fin: true,
        unidirectional: false,
        block: &b"not zlib"[..],
    };
    let raw = |kind, len: u32, payload: &[u8]| {
        let mut out = spdy::frame::Head::Control { version: 3, kind, flags: 0, len }.emit().to_vec();
        out.extend_from_slice(payload);
        Bytes::from(out)
    };
    let frame = |frame| bytes_of(version, frame);
    let empty = [0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2, 0, 0, 0, 0xff, 0xff];
    let even = Control::SynStream {
        id: 2,
        associated: 0,
        priority: Priority::HIGHEST,
        slot: 0,
        fin: true,
        unidirectional: false,
        block: &empty[..],
    };
    let window = Setting::new(Setting::INITIAL_WINDOW_SIZE, 1 << 31);
    let cases: [(Bytes, Misbehaviour); 12] = [
        (frame(syn(1)), Misbehaviour::BadCompression),
        (frame(even), Misbehaviour::StreamId(2)),
        (Bytes::from_static(b"\x80\x02\0\x06\0\0\0\x04\0\0\0\x01"), Misbehaviour::Version(2)),
        (raw(kind::PING, 5, b"12345"), Misbehaviour::FrameLength { kind: 6, len: 5 }),
        (raw(kind::HEADERS, (1 << 20) + 1, b""), Misbehaviour::FrameTooLarge { kind: 8, len: (1 << 20) + 1 }),
        (frame(Control::WindowUpdate { id: 0, delta: 0 }), Misbehaviour::EmptyWindowUpdate),
        (frame(Control::WindowUpdate { id: 0, delta: i32::MAX as u32 }), Misbehaviour::WindowOverflow),
        (frame(Control::Settings { clear: false, entries: vec![window] }), Misbehaviour::WindowOverflow),
        (data_frame(1, false, &vec![0; 65_537]), Misbehaviour::SessionWindowExceeded),
        (data_frame(0, false, b""), Misbehaviour::StreamZero),
        (frame(Control::RstStream { id: 0, status: Status::CANCEL }), Misbehaviour::StreamZero),
        (frame(Control::Headers { id: 0, fin: false, block: &empty }), Misbehaviour::StreamZero),
    ];
    for (input, what) in cases {
        let mut server = Session::server(Config::chrome_2012(version));
        all_bytes(&mut server);
        assert_eq!(server.handle_input(Instant::ZERO, input.into()), misbehaved(what));
        let status = GoAwayStatus::PROTOCOL_ERROR;
        let id = all_bytes(&mut server);
        assert_eq!(id[..8], bytes_of(version, Control::GoAway { last_good_id: 0, status })[..8], "{what}");
        assert_eq!(id[12..], [0, 0, 0, 1], "{what}");
        assert_eq!(server.handle_input(Instant::ZERO, Bytes::new().into()), Err(Error::AlreadyFailed));
        server.ping(Instant::ZERO);
        server.goaway();
        assert_eq!(all_bytes(&mut server), [], "nothing follows a failure");
    }
    let mut client = Session::client(Config::new(version));
    let syn = Control::SynStream {
        id: 2,
        associated: 0,
        priority: Priority::HIGHEST,
        slot: 0,
        fin: true,
        unidirectional: true,
        block: &empty[..],
    };
    assert_eq!(give(&mut client, version, syn), misbehaved(Misbehaviour::PushWithoutAssociation));
    assert_eq!(client.request(&get("/"), Priority::HIGHEST, true), Err(OpenError::Ended));
}

/// A stream that sends past its window is cut off; the session's window still holds.
#[test]
fn data_beyond_a_streams_window_resets_it() {
    let config = Config { session_window: WindowPolicy::half(1 << 20), ..Config::chrome_2012(Version::V3_1) };
    let mut pair = Pair::with(config.clone(), config);
    pair.reads = false;
    let id = pair.client.request(&post("/"), Priority::HIGHEST, false).unwrap();
    pair.settle();
    for n in [65_536, 1] {
        pair.server.handle_input(pair.now, data_frame(id.as_u32(), false, &vec![0; n]).into()).unwrap();
    }
    let last = events(&mut pair.server).pop();
    assert_eq!(last, Some(Event::Reset { id, status: Status::FLOW_CONTROL_ERROR, by: By::Us }));
    // A stream credited past 2^31 - 1 is cut off too.
    let id = pair.get("/", 0);
    pair.settle();
    let update = Control::WindowUpdate { id: id.as_u32(), delta: i32::MAX as u32 };
    give(&mut pair.server, Version::V3_1, update).unwrap();
    let last = events(&mut pair.server).pop();
    assert_eq!(last, Some(Event::Reset { id, status: Status::FLOW_CONTROL_ERROR, by: By::Us }));
}

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
        let Event::Pushed { id, associated, head, response: answer, priority, fin } =
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

/// §2.6.7: fields now, or trailers after the body.
#[test]
fn headers_go_ahead_of_the_body_and_trailers_after_it() {
    let mut fields = Fields::new();
    fields.push("x-note", "1");
    for len in [0, 100_000] {
        let mut pair = Pair::new(Version::V3_1);
        let id = pair.get("/", 0);
        pair.settle();
        pair.server.respond(id, &response(200), false).unwrap();
        if len > 0 {
            pair.server.send(id, body(id.as_u32(), len), false).unwrap();
        }
        pair.server.send_headers(id, &fields, false).unwrap();
        pair.server.send_headers(id, &fields, true).unwrap();
        let after = if len > 0 { SendError::Finished } else { SendError::NotOpen };
        assert_eq!(pair.server.send(id, body(1, 1), true), Err(after));
        pair.settle();
        let heads: Vec<bool> = pair
            .client_events
            .iter()
            .filter_map(|event| match event {
                Event::Headers { fin, .. } => Some(*fin),
                _ => None,
            })
            .collect();
        assert_eq!(heads, [false, true]);
        assert_eq!(arrived(&pair.client_events, id).0, len);
        assert!(matches!(pair.client_events.last(), Some(Event::Headers { fin: true, .. })));
        assert_eq!(pair.client.open_streams(), 0);
    }
}

#[test]
fn commands_at_the_wrong_time_are_refused() {
    let mut pair = Pair::new(Version::V3_1);
    let id = pair.get("/", 0);
    assert_eq!(
        pair.client.send(id, body(1, 1), true),
        Err(SendError::Finished),
        "its body was said to be none"
    );
    assert_eq!(pair.client.respond(id, &response(200), true), Err(SendError::Reply));
    pair.settle();
    assert_eq!(pair.server.send(id, body(1, 1), true), Err(SendError::Reply), "before the reply");
    let mut bad = response(200);
    bad.fields.push("x", "a\nb");
    assert_eq!(pair.server.respond(id, &bad, true), Err(SendError::Head(BadHead::Value)));
    pair.server.respond(id, &response(200), false).unwrap();
    assert_eq!(pair.server.respond(id, &response(200), true), Err(SendError::Reply));
    pair.server.send(id, body(1, 1), true).unwrap();
    assert_eq!(pair.server.send(id, body(1, 1), true), Err(SendError::Finished), "it is queued to its end");
    pair.settle();
    assert_eq!(pair.server.send(id, body(1, 1), true), Err(SendError::NotOpen), "it has ended");
    assert_eq!(pair.server.queued(id), 0);
    pair.server.reset(id, Status::CANCEL);
    pair.settle();
    assert_eq!(pair.server_wire.resets(), [], "there was nothing left to reset");
}

#[test]
fn a_reset_silences_the_stream() {
    let mut pair = Pair::new(Version::V3_1);
    let (gone, kept) = (pair.get("/gone", 0), pair.get("/kept", 0));
    pair.settle();
    pair.reads = false;
    pair.answer(gone, 50_000);
    pair.answer(kept, 50_000);
    // Both answers have arrived and nobody has looked.
    while let Some(chunk) = pair.server.poll_transmit(pair.now, 1_000) {
        pair.client.handle_input(pair.now, chunk).unwrap();
    }
    pair.client.reset(gone, Status::CANCEL);
    let told = events(&mut pair.client);
    assert!(told.iter().all(|event| event.stream() != Some(gone)));
    assert_eq!(arrived(&told, kept), (50_000, true));
}

/// §2.6.4: kept by the client, returned with PERSISTED, cleared on demand.
#[test]
fn settings_persist_across_sessions() {
    let keep = Setting { id: Setting::CURRENT_CWND, flags: Setting::PERSIST, value: 20 };
    let server = Config { settings: vec![keep], ..Config::new(Version::V3_1) };
    let mut pair = Pair::with(Config::new(Version::V3_1), server.clone());
    pair.settle();
    let kept = Setting { flags: Setting::PERSISTED, ..keep };
    assert_eq!(pair.client.persisted_settings(), [kept]);
    // Of two entries with one id the first counts; of two frames the last; and more add up.
    let entry = |id, value| Setting { id, flags: Setting::PERSIST, value };
    let entries = vec![entry(5, 30), entry(5, 31), entry(3, 80), Setting::new(2, 9)];
    give(&mut pair.client, Version::V3_1, Control::Settings { clear: false, entries }).unwrap();
    let persisted = [entry(5, 30), entry(3, 80)].map(|s| Setting { flags: Setting::PERSISTED, ..s });
    assert_eq!(pair.client.persisted_settings(), persisted);

    let next = Config { settings: persisted.to_vec(), ..Config::new(Version::V3_1) };
    let mut pair = Pair::with(next, server);
    pair.settle();
    let told = pair.server_events.iter().find_map(|event| match event {
        Event::Settings(entries) => Some(entries.clone()),
        _ => None,
    });
    let returned: Vec<Setting> =
        told.unwrap().into_iter().filter(|s| s.flags == Setting::PERSISTED).collect();
    assert_eq!(returned, [persisted[1], persisted[0]], "in order of their ids");
    assert_eq!(pair.server.persisted_settings(), [], "servers keep nothing");
    give(&mut pair.client, Version::V3_1, Control::Settings { clear: true, entries: vec![] }).unwrap();
    assert_eq!(pair.client.persisted_settings(), []);
}

/// CREDENTIAL is read and nothing is made of it: a stream that wants to use one is refused (SPDY/3 §2.6.9).
#[test]
fn credentials_are_refused_in_version_3_and_a_slot_is_nothing_in_the_others() {
    for version in VERSIONS {
        let mut asker = Session::client(Config::new(version));
        asker.request(&get("/"), Priority::HIGHEST, true).unwrap();
        let mut wire = all_bytes(&mut asker);
        let syn =
            (0..wire.len()).find(|i| wire[*i..].starts_with(&[0x80, version.on_wire() as u8, 0, 1])).unwrap();
        wire[syn + 17] = 1;
        let mut server = Session::server(Config::new(version));
        all_bytes(&mut server);
        give(&mut server, version, Control::Credential { slot: 1 }).unwrap();
        server.handle_input(Instant::ZERO, wire.into()).unwrap();
        let answered = all_bytes(&mut server);
        if version == Version::V3 {
            let status = Status::INVALID_CREDENTIALS;
            assert_eq!(answered, bytes_of(version, Control::RstStream { id: 1, status }));
        } else {
            assert_eq!(answered, []);
            assert_eq!(requests(&events(&mut server)).len(), 1);
        }
    }
}

/// Version 2 has fewer codes: what it lacks becomes PROTOCOL_ERROR.
#[test]
fn version_2_is_told_only_codes_it_knows() {
    let mut pair = Pair::new(Version::V2);
    let id = pair.client.request(&post("/"), Priority::HIGHEST, true).unwrap();
    pair.settle();
    pair.server.handle_input(pair.now, data_frame(id.as_u32(), false, b"late").into()).unwrap();
    pair.settle();
    assert_eq!(pair.server_wire.resets(), [(id.as_u32(), Status::PROTOCOL_ERROR)]);
}

/// A peer that asks and never reads the answers is cut off before they fill the memory.
#[test]
fn answers_that_are_not_read_are_bounded() {
    let limits = Limits { answers: 10_000, ..Limits::default() };
    let mut server = Session::server(Config { limits, ..Config::new(Version::V3_1) });
    let ping = bytes_of(Version::V3_1, Control::Ping { id: 1 });
    let outcome = (0..2_000).try_for_each(|_| server.handle_input(Instant::ZERO, ping.clone().into()));
    assert_eq!(outcome, misbehaved(Misbehaviour::TooManyAnswers));
    let mut server = Session::server(Config { limits, ..Config::new(Version::V3_1) });
    for _ in 0..2_000 {
        server.handle_input(Instant::ZERO, ping.clone().into()).unwrap();
        all_bytes(&mut server);
    }
}

#[test]
fn a_quiet_connection_is_probed_and_given_up() {
    let second = Duration::from_secs(1);
    let at = |s: u64| Instant::ZERO + second * s;
    let keep_alive = Some(KeepAlive { idle: second * 10, give_up: second * 5 });
    let mut pair =
        Pair::with(Config { keep_alive, ..Config::new(Version::V3_1) }, Config::new(Version::V3_1));
    assert_eq!(pair.client.poll_timeout(), None, "no stream is open");
    pair.get("/", 0);
    pair.settle();
    assert_eq!(pair.client.poll_timeout(), Some(at(10)));
    pair.client.handle_timeout(at(9));
    assert_eq!(pair.client.poll_transmit(at(9), 100), None, "too early");
    pair.client.handle_timeout(at(10));
    assert_eq!(pair.client.poll_timeout(), Some(at(15)));
    pair.now = at(11);
    pair.settle();
    assert_eq!(pair.client.poll_timeout(), Some(at(21)), "the echo came");
    assert!(!pair.client_events.iter().any(|e| matches!(e, Event::Pong { .. })), "nobody asked");
    pair.client.handle_timeout(at(21));
    pair.client.handle_timeout(at(26));
    assert_eq!(events(&mut pair.client), [Event::Unresponsive]);
}

/// An autotuned window learns the round-trip time by a ping of its own and grows.
#[test]
fn an_autotuned_window_grows_with_the_path() {
    let tuned = WindowPolicy::autotuned(65_536, 16 << 20);
    let client = Config { stream_window: tuned, session_window: tuned, ..Config::new(Version::V3_1) };
    let mut pair = Pair::with(client, Config::new(Version::V3_1));
    let id = pair.get("/", 0);
    pair.settle();
    pair.answer(id, 20 << 20);
    // A path of 100 ms and 1 MB a round trip: what leaves in one round arrives in the next.
    let mut rounds = 0;
    while !arrived(&pair.client_events, id).1 {
        pair.now += Duration::from_millis(50);
        let mut down = Vec::new();
        while down.iter().map(Chunk::len).sum::<u64>() < 1_000_000 {
            let Some(chunk) = pair.server.poll_transmit(pair.now, 1_460) else { break };
            pair.server_wire.sent(chunk.clone());
            down.push(chunk);
        }
        pair.now += Duration::from_millis(50);
        for chunk in down {
            pair.client_wire.delivered(chunk.clone());
            pair.client.handle_input(pair.now, chunk).unwrap();
            drain(&mut pair.client, &mut pair.client_events, true);
        }
        while pair.up() {}
        rounds += 1;
        assert!(rounds < 300, "64 KB a round would take 320 rounds");
    }
    assert!(rounds < 60, "{rounds} rounds for 20 MB at 1 MB a round");
}

#[test]
fn flow_control_can_be_what_the_peer_does_and_not_what_its_version_says() {
    let config = Config {
        flow_control: FlowControl::StreamsAndSession,
        announce: Announce::OnEachStream,
        ..Config::chrome_2012(Version::V2)
    };
    let mut pair = Pair::with(config.clone(), config);
    let id = pair.get("/", 0);
    pair.settle();
    pair.answer(id, 300_000);
    pair.settle();
    assert_eq!(arrived(&pair.client_events, id), (300_000, true));
    assert!(!pair.client_wire.credits(0).is_empty());
}

#[test]
fn a_priority_changed_here_counts_for_what_is_not_yet_sent() {
    let mut pair = Pair::new(Version::V3_1);
    let (a, b) = (pair.get("/a", 1), pair.get("/b", 2));
    pair.settle();
    for id in [a, b] {
        pair.answer(id, 100_000);
    }
    pair.down();
    pair.server.set_priority(b, Priority::HIGHEST);
    pair.settle();
    let ends: Vec<Option<StreamId>> = pair
        .client_events
        .iter()
        .filter(|event| matches!(event, Event::Data { fin: true, .. }))
        .map(Event::stream)
        .collect();
    assert_eq!(ends, [Some(b), Some(a)]);
}

#[test]
fn a_response_without_a_body_ends_with_its_head() {
    let mut pair = Pair::new(Version::V3);
    let id = pair.get("/", 0);
    pair.settle();
    pair.server.respond(id, &ResponseHead { status: 304, fields: Fields::new() }, true).unwrap();
    pair.settle();
    assert_eq!(arrived(&pair.client_events, id), (0, true));
    assert!(
        pair.client_wire
            .frames
            .iter()
            .chain(&pair.server_wire.frames)
            .all(|s| !matches!(s, Seen::Data { .. }))
    );
}
