//! What a peer or a caller does wrong, and what it gets for it. Sections are of SPDY/3.1 unless said.

mod common;

use base::Instant;
use bytes::Bytes;
use common::*;
use spdy::frame::{Control, Head, Setting, kind};
use spdy::{
    BadHead, By, Config, Error, Event, GoAwayStatus, Limits, Misbehaviour, OpenError, Priority, SendError,
    Session, Status, Version, WindowPolicy,
};

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

/// §2.3.2.1: nothing may be sent on a unidirectional stream that the peer opened, so a request in one cannot be answered. It
/// is no event that the server would have to answer, but a stream error. Found by fuzzing.
#[test]
fn a_request_that_may_not_be_answered_is_refused() {
    for version in VERSIONS {
        let mut asker = Session::client(Config { announce_streams: false, ..Config::new(version) });
        asker.request(&get("/"), Priority::HIGHEST, true).unwrap();
        let mut asked = all_bytes(&mut asker);
        let syn = asked.windows(4).position(|w| w[0] == 0x80 && w[2..] == [0, 1]).unwrap();
        asked[syn + 4] |= 2;
        let mut server = Session::server(Config::new(version));
        all_bytes(&mut server);
        server.handle_input(Instant::ZERO, asked.into()).unwrap();
        let told = events(&mut server);
        assert!(!told.iter().any(|e| matches!(e, Event::Request { .. })), "{version}: {told:?}");
        let status = Status::PROTOCOL_ERROR;
        assert_eq!(all_bytes(&mut server), bytes_of(version, Control::RstStream { id: 1, status }));
        assert_eq!(server.open_streams(), 0);
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
        let (proof, certificates) = (Bytes::from_static(b"proof"), Bytes::from_static(b"\0\0\0\x01c"));
        give(&mut server, version, Control::Credential { slot: 1, proof, certificates }).unwrap();
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

/// SPDY/3 §2.2.2 lets DATA be compressed, which nobody ever did: a body that is not what it seems is refused. In the other
/// versions the flag is nothing.
#[test]
fn compressed_data_is_refused_in_version_3_alone() {
    for version in VERSIONS {
        let mut pair = Pair::new(version);
        let id = pair.client.request(&post("/"), Priority::HIGHEST, false).unwrap();
        pair.settle();
        pair.server_events.clear();
        let head = Head::Data { id: id.as_u32(), fin: true, compress: true, len: 4 }.emit();
        pair.server.handle_input(pair.now, [&head[..], b"body"].concat().into()).unwrap();
        let refused = Event::Reset { id, status: Status::PROTOCOL_ERROR, by: By::Us };
        let taken = Event::Data { id, chunk: Bytes::from_static(b"body").into(), fin: true };
        let expected = if version == Version::V3 { refused } else { taken };
        assert_eq!(events(&mut pair.server), [expected], "{version}");
    }
}

/// §2.6.8: SETTINGS never changes the session's window; and credit for a stream whose other direction has ended counts.
#[test]
fn settings_leave_the_sessions_window_alone_and_half_closed_streams_are_credited() {
    let mut server = Session::server(Config::new(Version::V3_1));
    let mut asker = Session::client(Config {
        stream_window: WindowPolicy::half(1 << 20),
        session_window: WindowPolicy::FIXED_64K,
        ..Config::new(Version::V3_1)
    });
    asker.request(&get("/"), Priority::HIGHEST, true).unwrap();
    server.handle_input(Instant::ZERO, all_bytes(&mut asker).into()).unwrap();
    let id = requests(&events(&mut server))[0];
    server.respond(id, &response(200), false).unwrap();
    server.send(id, body(1, 3 << 20), true).unwrap();
    let sent = |server: &mut Session| {
        let before = server.stats().data_sent;
        while server.poll_transmit(Instant::ZERO, u64::MAX).is_some() {}
        server.stats().data_sent - before
    };
    let credit = |id, delta| bytes_of(Version::V3_1, Control::WindowUpdate { id, delta });
    assert_eq!(sent(&mut server), 65_536, "the stream's window is 1 MiB, the session's what it was");
    server.handle_input(Instant::ZERO, credit(0, 4 << 20).into()).unwrap();
    assert_eq!(sent(&mut server), (1 << 20) - 65_536, "now the stream's holds it back");
    server.handle_input(Instant::ZERO, credit(1, 4 << 20).into()).unwrap();
    assert_eq!(sent(&mut server), 2 << 20, "the request ended long ago");
    assert_eq!(server.open_streams(), 0);
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
    // A peer that reads as much as it asks for is none of those, even if it never reads all.
    for _ in 0..2_000 {
        server.handle_input(Instant::ZERO, ping.clone().into()).unwrap();
        server.handle_input(Instant::ZERO, ping.clone().into()).unwrap();
        server.poll_transmit(Instant::ZERO, 23).unwrap();
    }
}
