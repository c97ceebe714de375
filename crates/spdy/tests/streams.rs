//! Streams without HTTP: either end opens them, with fields that mean nothing to the engine. Sections are of SPDY/3.1.

mod common;

use base::Instant;
use bytes::Bytes;
use common::*;
use proptest::prelude::*;
use spdy::frame::Control;
use spdy::{
    BadHead, By, Config, Event, Limits, Mapping, OpenError, Opening, Priority, SendError, Session, Status,
    Version,
};

fn bare(version: Version) -> Config {
    Config { mapping: Mapping::Streams, ..Config::new(version) }
}

fn configs() -> [Config; 4] {
    let [two, three, three_one] = VERSIONS.map(bare);
    [two, three, three_one, Config::spdystream()]
}

/// What `kubectl exec` does: a stream for each of error, stdin and stdout, with bytes in both directions.
#[test]
fn streams_carry_any_fields_and_bytes_both_ways_and_close_by_halves() {
    for config in configs() {
        let mut pair = Pair::with(config.clone(), config);
        let mut named =
            fields(&[("streamType", "stdin"), ("X-Many", "one"), ("port", ""), ("x-many", "two")]);
        named.push(":path", "no path at all");
        named.push("Connection", "means nothing here");
        let stdin = pair.client.open(&named, Opening::default()).unwrap();
        let stdout = pair.client.open(&fields(&[]), Opening { fin: true, ..Opening::default() }).unwrap();
        pair.settle();
        assert_eq!(opened(&pair.server_events), [stdin, stdout]);
        let Event::Opened { fields: told, .. } = &pair.server_events[pair.server_events.len() - 2] else {
            panic!("{:?}", pair.server_events)
        };
        let expected = [
            ("streamtype", "stdin"),
            ("x-many", "one"),
            ("x-many", "two"),
            ("port", ""),
            (":path", "no path at all"),
            ("connection", "means nothing here"),
        ];
        assert_eq!(*told, fields(&expected));
        pair.server.accept(stdin, &fields(&[("Hello", "there")]), false).unwrap();
        pair.server.accept(stdout, &fields(&[]), false).unwrap();
        pair.settle();
        let accepted = pair.client_events.iter().find_map(|event| match event {
            Event::Accepted { id, fields, fin, .. } if *id == stdin => Some((fields.clone(), *fin)),
            _ => None,
        });
        assert_eq!(accepted, Some((fields(&[("hello", "there")]), false)));

        pair.client.send(stdin, body(stdin.as_u32(), 100_000), true).unwrap();
        pair.server.send(stdout, body(stdout.as_u32(), 200_000), true).unwrap();
        pair.settle();
        assert_eq!(arrived(&pair.server_events, stdin), (100_000, true));
        assert_eq!(arrived(&pair.client_events, stdout), (200_000, true));
        assert_eq!((pair.client.open_streams(), pair.server.open_streams()), (1, 1), "stdin is half closed");
        pair.server.send(stdin, body(stdin.as_u32(), 3), true).unwrap();
        pair.settle();
        assert_eq!(arrived(&pair.client_events, stdin), (3, true));
        assert_eq!((pair.client.open_streams(), pair.server.open_streams()), (0, 0));
        assert_eq!((pair.client_wire.resets(), pair.server_wire.resets()), (vec![], vec![]));
    }
}

/// §2.3: "either endpoint may create a stream": the server's have even ids, and may belong to one of the client's.
#[test]
fn either_end_opens_streams() {
    for config in configs() {
        let version = config.version;
        let mut pair = Pair::with(config.clone(), config);
        let parent = pair.client.open(&fields(&[("n", "1")]), Opening::default()).unwrap();
        pair.settle();
        let opening = Opening { priority: Priority::new(6), associated: Some(parent), ..Opening::default() };
        let child = pair.server.open(&fields(&[("n", "2")]), opening).unwrap();
        pair.server.send(child, body(child.as_u32(), 10), false).unwrap();
        pair.settle();
        assert_eq!((parent.as_u32(), child.as_u32()), (1, 2));
        let told = pair.client_events.iter().find_map(|event| match event {
            Event::Opened { id, opening, .. } => Some((*id, *opening)),
            _ => None,
        });
        assert_eq!(told, Some((child, opening)), "{version}");
        assert_eq!(arrived(&pair.client_events, child), (10, false), "data may come before the answer");
        assert_eq!(pair.client.send(child, body(2, 1), true), Err(SendError::Reply), "but not the other way");
        // The parent's end is not the child's.
        pair.client.reset(parent, Status::CANCEL);
        pair.settle();
        pair.client.accept(child, &fields(&[]), false).unwrap();
        pair.client.send(child, body(child.as_u32(), 20), true).unwrap();
        pair.server.send(child, body(child.as_u32(), 0), true).unwrap();
        pair.settle();
        assert_eq!(arrived(&pair.server_events, child), (20, true));
        assert_eq!((pair.client.open_streams(), pair.server.open_streams()), (0, 0));
    }
}

/// §2.3.3 and §2.6.1: UNIDIRECTIONAL leaves nothing for the recipient to say.
#[test]
fn a_unidirectional_stream_wants_no_answer_and_takes_none() {
    for version in VERSIONS {
        let mut pair = Pair::with(bare(version), bare(version));
        let one_way = Opening { unidirectional: true, ..Opening::default() };
        let id = pair.server.open(&fields(&[("n", "1")]), one_way).unwrap();
        let nothing = pair.server.open(&fields(&[]), Opening { fin: true, ..one_way }).unwrap();
        pair.server.send(id, body(id.as_u32(), 5), true).unwrap();
        assert_eq!(pair.server.open_streams(), 1, "what says all at its beginning is over at once");
        pair.settle();
        assert_eq!(opened(&pair.client_events), [id, nothing]);
        assert_eq!(arrived(&pair.client_events, id), (5, true));
        assert_eq!((pair.client.open_streams(), pair.server.open_streams()), (0, 0));

        let id = pair.server.open(&fields(&[]), one_way).unwrap();
        pair.settle();
        assert_eq!(pair.client.accept(id, &fields(&[]), false), Err(SendError::Finished));
        // A peer that sends all the same broke a rule of this stream.
        let data = data_frame(id.as_u32(), false, b"x");
        pair.server.handle_input(pair.now, data.into()).unwrap();
        let last = events(&mut pair.server).pop();
        let status =
            if version == Version::V2 { Status::PROTOCOL_ERROR } else { Status::STREAM_ALREADY_CLOSED };
        assert_eq!(last, Some(Event::Reset { id, status, by: By::Us }), "{version}");
    }
}

#[test]
fn a_stream_is_declined_by_a_reset_at_either_end() {
    for config in configs() {
        let mut pair = Pair::with(config.clone(), config);
        let ids = [0, 1].map(|_| pair.client.open(&fields(&[("n", "1")]), Opening::default()).unwrap());
        pair.settle();
        pair.server.reset(ids[0], Status::REFUSED_STREAM);
        pair.client.reset(ids[1], Status::CANCEL);
        pair.settle();
        let reset = |id, status| Event::Reset { id, status, by: By::Peer };
        assert_eq!(pair.client_events.last(), Some(&reset(ids[0], Status::REFUSED_STREAM)));
        assert_eq!(pair.server_events.last(), Some(&reset(ids[1], Status::CANCEL)));
        assert_eq!(pair.server.accept(ids[1], &fields(&[]), true), Err(SendError::NotOpen));
        assert_eq!((pair.client.open_streams(), pair.server.open_streams()), (0, 0));
    }
}

/// The limits are those of HTTP: streams, fields, windows.
#[test]
fn limits_hold_without_http() {
    let limits = Limits { headers: 3, header_field: 100, ..Limits::default() };
    for version in VERSIONS {
        let server = Config { limits, max_concurrent_streams: 2, announce_streams: false, ..bare(version) };
        let mut pair = Pair::with(bare(version), server);
        let open = |pair: &mut Pair, fields: &base::Fields| {
            let id = pair.client.open(fields, Opening::default()).unwrap();
            pair.settle();
            pair.server_wire.resets().iter().find(|(of, _)| *of == id.as_u32()).map(|(_, status)| *status)
        };
        let too_large = if version == Version::V2 { Status::PROTOCOL_ERROR } else { Status::FRAME_TOO_LARGE };
        let four = fields(&[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]);
        assert_eq!(open(&mut pair, &four), Some(too_large), "{version}");
        let mut long = fields(&[]);
        long.push("a", "x".repeat(101));
        assert_eq!(open(&mut pair, &long), Some(too_large), "{version}");
        let good = fields(&[("a", "1")]);
        assert_eq!([0, 1, 2].map(|_| open(&mut pair, &good)), [None, None, Some(Status::REFUSED_STREAM)]);
        assert_eq!(opened(&pair.server_events).len(), 2);
    }
    let mut client = Session::client(Config { assumed_streams: 1, ..bare(Version::V3) });
    client.open(&fields(&[]), Opening::default()).unwrap();
    assert_eq!(client.open(&fields(&[]), Opening::default()), Err(OpenError::TooManyStreams));
}

/// §2.2.2: an end that was asked answers before it sends. §2.4.2: and answers once.
#[test]
fn data_before_the_answer_and_a_second_answer_are_stream_errors() {
    for (version, second) in [(Version::V2, Status::PROTOCOL_ERROR), (Version::V3_1, Status::STREAM_IN_USE)] {
        let mut pair = Pair::with(bare(version), bare(version));
        let ids = [0, 1].map(|_| pair.server.open(&fields(&[]), Opening::default()).unwrap());
        pair.settle();
        pair.server.handle_input(pair.now, data_frame(ids[0].as_u32(), false, b"early").into()).unwrap();
        let told = events(&mut pair.server);
        assert_eq!(told, [Event::Reset { id: ids[0], status: Status::PROTOCOL_ERROR, by: By::Us }]);

        pair.client.accept(ids[1], &fields(&[]), false).unwrap();
        let reply = all_bytes(&mut pair.client);
        pair.server.handle_input(pair.now, reply.into()).unwrap();
        assert!(matches!(events(&mut pair.server)[..], [Event::Accepted { .. }]));
        // A block that adds nothing to the context but an empty stored block of no pairs.
        let none = if version == Version::V2 {
            &[0, 2, 0, 0xfd, 0xff, 0, 0][..]
        } else {
            &[0, 4, 0, 0xfb, 0xff, 0, 0, 0, 0]
        };
        let again = Control::SynReply { id: ids[1].as_u32(), fin: false, block: none };
        give(&mut pair.server, version, again).unwrap();
        assert_eq!(events(&mut pair.server), [Event::Reset { id: ids[1], status: second, by: By::Us }]);
    }
}

/// §2.6.6: each end's GOAWAY names the last of the other's streams that it knows of.
#[test]
fn goaway_tells_both_ends_which_streams_were_not_processed() {
    let mut pair = Pair::with(bare(Version::V3_1), bare(Version::V3_1));
    let early = pair.server.open(&fields(&[]), Opening::default()).unwrap();
    pair.settle();
    pair.client.goaway();
    let late = pair.server.open(&fields(&[]), Opening::default()).unwrap();
    pair.settle();
    let told = pair.server_events.iter().find_map(|event| match event {
        Event::GoAway { last_good_id, unprocessed, .. } => Some((*last_good_id, unprocessed.clone())),
        _ => None,
    });
    assert_eq!(told, Some((early.as_u32(), vec![late])));
    assert_eq!(opened(&pair.client_events), [early]);
    assert_eq!(pair.server.open(&fields(&[]), Opening::default()), Err(OpenError::GoingAway));
    pair.client.accept(early, &fields(&[]), true).unwrap();
    pair.settle();
    assert!(pair.server_events.iter().any(|e| matches!(e, Event::Accepted { fin: true, .. })));
}

#[test]
fn a_session_takes_the_commands_of_its_mapping_alone() {
    let mut streams = Pair::with(bare(Version::V3_1), bare(Version::V3_1));
    assert_eq!(streams.client.request(&get("/"), Priority::HIGHEST, true), Err(OpenError::WrongMapping));
    let id = streams.client.open(&fields(&[]), Opening::default()).unwrap();
    streams.settle();
    assert_eq!(streams.server.respond(id, &response(200), true), Err(SendError::WrongMapping));
    let push = streams.server.push(id, &get("/"), &response(200), Priority::HIGHEST);
    assert_eq!(push, Err(OpenError::WrongMapping));
    let bad = streams.server.accept(id, &fields(&[("a b", "")]), true);
    assert_eq!(bad, Err(SendError::Head(BadHead::Name)));

    let mut http = Pair::new(Version::V3_1);
    assert_eq!(http.client.open(&fields(&[]), Opening::default()), Err(OpenError::WrongMapping));
    let id = http.get("/", 0);
    http.settle();
    assert_eq!(http.server.accept(id, &fields(&[]), true), Err(SendError::WrongMapping));
}

/// Fields of the caller's go on HEADERS too, whatever their names.
#[test]
fn headers_and_trailers_carry_any_fields() {
    let mut pair = Pair::with(Config::spdystream(), Config::spdystream());
    let id = pair.client.open(&fields(&[]), Opening::default()).unwrap();
    pair.settle();
    pair.client.send(id, Bytes::from_static(b"body").into(), false).unwrap();
    pair.client.send_headers(id, &fields(&[("host", "1")]), false).unwrap();
    pair.client.send_headers(id, &fields(&[(":status", "2"), ("Keep-Alive", "3")]), true).unwrap();
    pair.settle();
    let told: Vec<_> = pair
        .server_events
        .iter()
        .filter_map(|event| match event {
            Event::Headers { fields, fin, .. } => Some((fields.clone(), *fin)),
            _ => None,
        })
        .collect();
    assert_eq!(
        told,
        [(fields(&[("host", "1")]), false), (fields(&[(":status", "2"), ("keep-alive", "3")]), true)]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Streams from both ends at once, in any pieces: every byte arrives, and every stream ends.
    #[test]
    fn every_byte_arrives_from_both_ends_in_any_pieces(
        which in 0_usize..4,
        sizes in proptest::collection::vec((0_u64..90_000, 0_u64..90_000, any::<bool>()), 1..10),
        seed in any::<u64>(),
        room in prop_oneof![1_u64..600, 1_000_u64..20_000],
        piece in prop_oneof![1_u64..40, 1_000_u64..20_000],
    ) {
        let config = configs()[which].clone();
        let mut pair = Pair::with(config.clone(), config);
        pair.rng = base::Rng::new(seed);
        (pair.room, pair.piece) = (room, piece);
        let mut ids = Vec::new();
        for (there, _, by_client) in &sizes {
            let end = if *by_client { &mut pair.client } else { &mut pair.server };
            let id = end.open(&fields(&[("a", "b")]), Opening::default()).unwrap();
            end.send(id, body(id.as_u32(), *there), true).unwrap();
            ids.push(id);
        }
        pair.settle();
        for (id, (_, back, by_client)) in ids.iter().zip(&sizes) {
            let end = if *by_client { &mut pair.server } else { &mut pair.client };
            end.accept(*id, &fields(&[]), false).unwrap();
            end.send(*id, body(id.as_u32(), *back), true).unwrap();
        }
        pair.settle();
        for (id, (there, back, by_client)) in ids.iter().zip(&sizes) {
            let (near, far) = if *by_client {
                (&pair.client_events, &pair.server_events)
            } else {
                (&pair.server_events, &pair.client_events)
            };
            prop_assert_eq!(arrived(far, *id), (*there, true));
            prop_assert_eq!(arrived(near, *id), (*back, true));
        }
        prop_assert_eq!((pair.client.open_streams(), pair.server.open_streams()), (0, 0));
    }
}

/// The id that a peer gives must be of its parity and rise, with either mapping.
#[test]
fn ids_rise_and_have_their_openers_parity() {
    for version in VERSIONS {
        let mut donor = Session::client(Config { announce_streams: false, ..bare(version) });
        donor.open(&fields(&[]), Opening::default()).unwrap();
        let mut wire = all_bytes(&mut donor);
        let at =
            (0..wire.len()).find(|i| wire[*i..].starts_with(&[0x80, version.on_wire() as u8, 0, 1])).unwrap();
        wire[at + 11] = 2;
        let mut server = Session::server(bare(version));
        let outcome = server.handle_input(Instant::ZERO, wire.into());
        assert_eq!(outcome, misbehaved(spdy::Misbehaviour::StreamId(2)), "{version}");
    }
}
