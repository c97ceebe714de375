//! What other implementations wrote, read here. Recorded from a client of each library that asked for two things; the
//! files hold the bytes it wrote, as hexadecimal digits.
//!
//! * `spdystream-v0.5.1-version-3.hex`: Go's `github.com/moby/spdystream/spdy` framer.
//! * `spdystream-v0.5.1-streams-*.hex`: what each end wrote when two of Go's `github.com/moby/spdystream` talked: a stream
//!   with fields, half-closed by both; one opened by the server beside it; one refused; a PING; one reset; GOAWAY.
//! * `spdy-transport-3.0.0-version-*.hex`: npm's `spdy-transport` on Node 20, which sends headers at level 0.

mod common;

use base::Instant;
use common::*;
use spdy::trace::Decoder;
use spdy::{By, Config, Event, FlowControl, GoAwayStatus, Limits, Opening, Session, Status, Version};

fn read(version: Version, flow_control: FlowControl, hex: &str) -> (Session, Vec<Event>) {
    let mut session = Session::server(Config { flow_control, ..Config::new(version) });
    all_bytes(&mut session);
    session.handle_input(Instant::ZERO, unhex(hex).into()).unwrap();
    let events = events(&mut session);
    (session, events)
}

fn unhex(hex: &str) -> Vec<u8> {
    let digit = |i: usize| u8::from_str_radix(&hex[i..i + 2], 16).unwrap();
    (0..hex.trim().len()).step_by(2).map(digit).collect()
}

fn paths(events: &[Event]) -> Vec<(String, u8)> {
    let path = |event: &Event| match event {
        Event::Request { head, priority, .. } => {
            Some((String::from_utf8_lossy(&head.path).into_owned(), priority.level()))
        }
        _ => None,
    };
    events.iter().filter_map(path).collect()
}

#[test]
fn gos_spdystream_is_understood() {
    let hex = include_str!("vectors/spdystream-v0.5.1-version-3.hex");
    let (mut session, events) = read(Version::V3, FlowControl::None, hex);
    assert_eq!(paths(&events), [("/index.html".to_owned(), 5), ("/style.css".to_owned(), 0)]);
    let Event::Request { head, .. } = &events[1] else { panic!("{events:?}") };
    let accepted: Vec<&[u8]> = head.fields.iter().map(|f| &f.value[..]).collect();
    assert_eq!(accepted, [&b"text/html"[..], b"*/*"]);
    assert!(matches!(&events[3], Event::Headers { fields, .. } if fields.get_str("x-late") == Some("1")));
    assert!(matches!(events[4], Event::Reset { status: Status::CANCEL, by: By::Peer, .. }));
    assert!(matches!(&events[5], Event::Data { chunk, fin: true, .. } if chunk.len() == 5));
    let status = GoAwayStatus::INTERNAL_ERROR;
    assert_eq!(events[6..], [Event::GoAway { last_good_id: 3, status, unprocessed: Vec::new() }]);
    assert_eq!(all_bytes(&mut session), bytes_of(Version::V3, spdy::frame::Control::Ping { id: 7 }));
}

#[test]
fn nodes_spdy_transport_is_understood_in_versions_2_and_3_1() {
    let two = include_str!("vectors/spdy-transport-3.0.0-version-2.hex");
    let three = include_str!("vectors/spdy-transport-3.0.0-version-3.1.hex");
    for (version, hex) in [(Version::V2, two), (Version::V3_1, three)] {
        let (_, events) = read(version, FlowControl::StreamsAndSession, hex);
        assert_eq!(paths(&events).iter().map(|p| p.0.as_str()).collect::<Vec<_>>(), ["/up?x=1", "/two"]);
        let upload: Vec<(u64, bool)> = events
            .iter()
            .filter_map(|event| match event {
                Event::Data { chunk, fin, .. } => Some((chunk.len(), *fin)),
                _ => None,
            })
            .collect();
        assert_eq!(upload, [(5, false), (0, true)], "{version}");
        let last = Event::GoAway { last_good_id: 3, status: GoAwayStatus::OK, unprocessed: Vec::new() };
        assert_eq!(events.last(), Some(&last));
    }
}

/// Each end's bytes are read by an end of ours in the other's place.
#[test]
fn gos_spdystream_streams_are_understood_by_either_end() {
    let by_client = unhex(include_str!("vectors/spdystream-v0.5.1-streams-client.hex"));
    let by_server = unhex(include_str!("vectors/spdystream-v0.5.1-streams-server.hex"));

    let mut server = Session::server(Config::spdystream());
    server.handle_input(Instant::ZERO, by_client.into()).unwrap();
    let told = events(&mut server);
    let ids = opened(&told);
    assert_eq!(ids.iter().map(|id| id.as_u32()).collect::<Vec<_>>(), [1, 3, 5]);
    let Event::Opened { fields, opening, .. } = &told[0] else { panic!("{told:?}") };
    assert_eq!(*opening, Opening::default());
    let mut pairs: Vec<_> = fields.iter().map(|f| (&f.name[..], &f.value[..])).collect();
    pairs.sort();
    let expected = [("port", ""), ("streamtype", "stdin"), ("x-many", "one"), ("x-many", "two")];
    assert_eq!(pairs, expected.map(|(n, v)| (n.as_bytes(), v.as_bytes())));
    assert_eq!(arrived(&told, ids[0]), (5, true));
    // What it says of the stream that a server of ours never opened is answered and nothing more.
    let Event::Opened { opening, .. } = &told[3] else { panic!("{told:?}") };
    assert_eq!(*opening, Opening { associated: Some(ids[0]), fin: true, ..Opening::default() });
    assert!(matches!(told[5], Event::Reset { status: Status::CANCEL, by: By::Peer, id } if id == ids[2]));
    let status = GoAwayStatus::OK;
    assert_eq!(told[6..], [Event::GoAway { last_good_id: 2, status, unprocessed: Vec::new() }]);

    let mut client = Session::client(Config::spdystream());
    let ids: Vec<_> = (0..3).map(|_| client.open(&fields_of("stdin"), Opening::default()).unwrap()).collect();
    client.ping(Instant::ZERO);
    all_bytes(&mut client);
    client.handle_input(Instant::ZERO, by_server.into()).unwrap();
    let told = events(&mut client);
    assert!(
        matches!(&told[0], Event::Accepted { id, fields, fin: false, .. } if *id == ids[0] && fields.is_empty())
    );
    assert_eq!(arrived(&told, ids[0]), (11, true));
    let Event::Opened { id, fields, opening, .. } = &told[3] else { panic!("{told:?}") };
    assert_eq!(
        (id.as_u32(), opening.associated, fields.get_str("streamtype")),
        (2, Some(ids[0]), Some("notice"))
    );
    assert!(matches!(told[4], Event::Reset { id, status: Status::REFUSED_STREAM, .. } if id == ids[1]));
    assert!(matches!(told[5], Event::Pong { .. }));
    assert!(matches!(&told[6], Event::Accepted { id, .. } if *id == ids[2]));
    client.accept(*id, &fields_of("seen"), true).unwrap();
}

fn fields_of(kind: &'static str) -> base::Fields {
    fields(&[("streamType", kind)])
}

/// The passive decoder reads the same bytes without being an end of anything.
#[test]
fn recorded_conversations_can_be_looked_at() {
    let look = |version, hex| {
        let mut decoder = Decoder::new(version, Limits::default());
        decoder.handle_input(unhex(hex).into());
        let mut shown = Vec::new();
        while let Some(frame) = decoder.poll_frame().unwrap() {
            assert_eq!(frame.block().and_then(|block| block.fault), None, "{frame:#}");
            shown.push(format!("{frame:#}"));
        }
        assert!(!decoder.is_amid_frame());
        shown
    };
    let shown = look(Version::V3_1, include_str!("vectors/spdystream-v0.5.1-streams-server.hex"));
    let expected = [
        "SYN_REPLY id=1 block=16/4",
        "DATA id=1 len=11",
        "DATA id=1 len=0 fin",
        "SYN_STREAM id=2 assoc=1 pri=0 block=27/28\n    streamtype: notice",
        "RST_STREAM id=3 status=REFUSED_STREAM",
        "PING id=1",
        "SYN_REPLY id=5 block=8/4",
    ];
    assert_eq!(shown, expected);
    let shown = look(Version::V2, include_str!("vectors/spdy-transport-3.0.0-version-2.hex"));
    assert_eq!(shown.last().unwrap(), "GOAWAY last=3 status=OK");
}
