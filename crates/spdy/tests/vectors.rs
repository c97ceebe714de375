//! What other implementations wrote, read here. Recorded from a client of each library that asked for two things; the
//! files hold the bytes it wrote, as hexadecimal digits.
//!
//! * `spdystream-v0.5.1-version-3.hex`: Go's `github.com/moby/spdystream/spdy` framer.
//! * `spdy-transport-3.0.0-version-*.hex`: npm's `spdy-transport` on Node 20, which sends headers at level 0.

mod common;

use base::Instant;
use common::*;
use spdy::{By, Config, Event, FlowControl, GoAwayStatus, Session, Status, Version};

fn read(version: Version, flow_control: FlowControl, hex: &str) -> (Session, Vec<Event>) {
    let digit = |i: usize| u8::from_str_radix(&hex[i..i + 2], 16).unwrap();
    let wire: Vec<u8> = (0..hex.trim().len()).step_by(2).map(digit).collect();
    let mut session = Session::server(Config { flow_control, ..Config::new(version) });
    all_bytes(&mut session);
    session.handle_input(Instant::ZERO, wire.into()).unwrap();
    let events = events(&mut session);
    (session, events)
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
