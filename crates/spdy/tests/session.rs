//! A session's rules, one by one. Sections are of SPDY/3.1 unless said.

mod common;

use base::{BodyRange, Chunk, Duration, Fields, Instant, ResponseHead};
use bytes::Bytes;
use common::*;
use spdy::frame::{Control, Setting};
use spdy::{
    Announce, Config, Error, Event, FlowControl, GoAwayStatus, KeepAlive, Misbehaviour, OpenError, Priority,
    SendError, Session, Status, StreamId, Version, WindowPolicy,
};

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

/// Nor is it among those that a GOAWAY lists which nobody has looked at.
#[test]
fn a_reset_silences_the_stream_in_a_goaway_that_is_not_taken_yet() {
    let mut client = Session::client(Config::new(Version::V3_1));
    let ids = ["/a", "/b"].map(|path| client.request(&get(path), Priority::HIGHEST, true).unwrap());
    let goaway = Control::GoAway { last_good_id: 0, status: GoAwayStatus::OK };
    give(&mut client, Version::V3_1, goaway).unwrap();
    client.reset(ids[0], Status::CANCEL);
    let told = events(&mut client);
    let [Event::GoAway { unprocessed, .. }] = &told[..] else { panic!("{told:?}") };
    assert_eq!(unprocessed[..], [ids[1]]);
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
