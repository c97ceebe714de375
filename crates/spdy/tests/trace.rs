//! What the passive decoder shows of a connection.

mod common;

use base::{Chunk, Instant, Rng};
use bytes::Bytes;
use common::*;
use spdy::frame::{Control, Head, Setting};
use spdy::trace::{Content, Decoder, Frame};
use spdy::{
    Config, Event, GoAwayStatus, Limits, Misbehaviour, Opening, Priority, Session, Status, Version,
    WindowPolicy,
};

/// Reads `wire` in pieces of at most `piece` bytes, until its end or an error.
fn decode(version: Version, wire: &[u8], piece: usize) -> (Vec<Frame>, Option<Misbehaviour>) {
    let mut decoder = Decoder::new(version, Limits::default());
    let mut frames = Vec::new();
    for piece in wire.chunks(piece) {
        decoder.handle_input(Bytes::copy_from_slice(piece).into());
        loop {
            match decoder.poll_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(why) => return (frames, Some(why)),
            }
        }
    }
    (frames, None)
}

fn lines(version: Version, wire: &[u8]) -> Vec<String> {
    let (frames, why) = decode(version, wire, usize::MAX);
    assert_eq!(why, None);
    frames.iter().map(Frame::to_string).collect()
}

/// Frames without a block, which look the same in all versions but for what each cannot say.
#[test]
fn every_frame_is_one_line_in_every_version() {
    for version in VERSIONS {
        let settings = vec![
            Setting { id: Setting::INITIAL_WINDOW_SIZE, flags: Setting::PERSIST, value: 65_536 },
            Setting { id: Setting::CURRENT_CWND, flags: Setting::PERSISTED, value: 10 },
            Setting { id: 99, flags: 7, value: 1 },
        ];
        let goaway = Control::GoAway { last_good_id: 5, status: GoAwayStatus::PROTOCOL_ERROR };
        let frames: [(Control<&[u8]>, &str); 8] = [
            (Control::RstStream { id: 3, status: Status::CANCEL }, "RST_STREAM id=3 status=CANCEL"),
            (Control::RstStream { id: 3, status: Status(77) }, "RST_STREAM id=3 status=Status(77)"),
            (
                Control::Settings { clear: true, entries: settings },
                "SETTINGS clear INITIAL_WINDOW_SIZE=65536(persist) CURRENT_CWND=10(persisted) 99=1(flags 7)",
            ),
            (Control::Ping { id: 7 }, "PING id=7"),
            (
                goaway,
                if version == Version::V2 {
                    "GOAWAY last=5 status=OK"
                } else {
                    "GOAWAY last=5 status=PROTOCOL_ERROR"
                },
            ),
            (Control::WindowUpdate { id: 0, delta: 1_000 }, "WINDOW_UPDATE id=0 delta=1000"),
            (
                Control::Credential { slot: 2, proof: "proof".into(), certificates: "\0\0\0\x01c".into() },
                if version == Version::V3 {
                    "CREDENTIAL slot=2 proof=5 certificates=5"
                } else {
                    "UNKNOWN type=10 len=16"
                },
            ),
            (Control::Noop, if version == Version::V2 { "NOOP" } else { "UNKNOWN type=5 len=0" }),
        ];
        for (frame, line) in frames {
            assert_eq!(lines(version, &bytes_of(version, frame)), [line], "{version}");
        }
        let data = [data_frame(9, true, b"payload"), data_frame(9, false, b"")].concat();
        assert_eq!(lines(version, &data), ["DATA id=9 len=7 fin", "DATA id=9 len=0"]);
        assert_eq!(lines(version, &[0, 0, 0, 9, 3, 0, 0, 0]), ["DATA id=9 len=0 fin compress"]);
    }
}

/// Frames with a block: its sizes in the line, its fields beneath it.
#[test]
fn header_blocks_are_inflated() {
    for version in VERSIONS {
        let mut client = Session::client(Config { announce_streams: false, ..Config::chrome_2012(version) });
        client.request(&get("/a"), Priority::new(6), true).unwrap();
        let wire = all_bytes(&mut client);
        let (frames, _) = decode(version, &wire, usize::MAX);
        let [frame] = &frames[..] else { panic!("{frames:?}") };
        let stats = client.stats();
        let block = frame.block().unwrap();
        assert_eq!((frame.offset, u64::from(frame.wire_len)), (0, stats.heads_sent));
        assert_eq!(u64::from(block.raw_len), stats.blocks_sent_raw);
        assert_eq!(block.wire_len, frame.wire_len - 18);
        let line = format!("SYN_STREAM id=1 pri=6 fin block={}/{}", block.wire_len, block.raw_len);
        assert_eq!(frame.to_string(), line);
        let colon = if version == Version::V2 { "" } else { ":" };
        let path = if version == Version::V2 { "url" } else { ":path" };
        let pairs = [
            format!("{colon}host: example.org"),
            format!("{path}: /a"),
            format!("{colon}scheme: https"),
            format!("{colon}method: GET"),
            format!("{colon}version: HTTP/1.1"),
            "accept: */*".to_owned(),
            "user-agent: Velodrome".to_owned(),
        ];
        assert_eq!(format!("{frame:#}"), format!("{line}\n    {}", pairs.join("\n    ")));
        assert_eq!(frame.fields().unwrap().get_str("accept"), Some("*/*"));
    }
    let mut server = Session::server(Config::spdystream());
    let opening = Opening { priority: Priority::new(1), associated: None, fin: false, unidirectional: true };
    let id = server.open(&fields(&[]), opening).unwrap();
    let opening = Opening { associated: Some(id), unidirectional: false, ..opening };
    server.open(&fields(&[("caf\u{e9}s", "x")]), opening).unwrap_err();
    server.open(&fields(&[("esc", "\u{e9}\t")]), opening).unwrap();
    let (frames, _) = decode(Version::V3_1, &all_bytes(&mut server), usize::MAX);
    let shown: Vec<String> = frames.iter().map(|frame| format!("{frame:#}")).collect();
    assert_eq!(shown[0], "SYN_STREAM id=2 pri=1 unidirectional block=16/4");
    assert_eq!(shown[1].lines().last(), Some("    esc: \\xc3\\xa9\\t"));
    assert!(shown[1].starts_with("SYN_STREAM id=4 assoc=2 pri=1 block="), "{}", shown[1]);
}

/// Carries what `from` has to say, records it on `wire`, and lets `to` read it all and answer what is asked.
fn carry(from: &mut Session, to: &mut Session, wire: &mut Vec<u8>) {
    while let Some(chunk) = from.poll_transmit(Instant::ZERO, 3_000) {
        let Chunk::Bytes(bytes) = &chunk else { panic!("real bytes were sent") };
        wire.extend_from_slice(bytes);
        to.handle_input(Instant::ZERO, chunk).unwrap();
    }
    for event in events(to) {
        match event {
            Event::Data { id, chunk, .. } => to.consume(id, chunk.len()),
            Event::Request { id, .. } => {
                to.respond(id, &response(200), false).unwrap();
                to.send(id, Bytes::from(vec![1; 5_000]).into(), true).unwrap();
            }
            _ => {}
        }
    }
}

/// Both directions of a conversation of two engines: every byte is in a frame, and wherever the bytes are cut the frames
/// are the same.
#[test]
fn frames_do_not_depend_on_where_the_bytes_were_cut() {
    for version in VERSIONS {
        let config = Config { stream_window: WindowPolicy::FIXED_64K, ..Config::new(version) };
        let mut pair = Pair::with(config.clone(), config);
        let mut wires = [Vec::new(), Vec::new()];
        let mut rng = Rng::new(7);
        for i in 0..6_u32 {
            let id = pair.client.request(&post(&format!("/{i}")), Priority::new(i as u8), false).unwrap();
            let payload = Bytes::from(vec![i as u8; rng.below(100_000) as usize]);
            pair.client.send(id, payload.into(), true).unwrap();
        }
        pair.client.ping(pair.now);
        loop {
            let before = wires[0].len() + wires[1].len();
            carry(&mut pair.client, &mut pair.server, &mut wires[0]);
            carry(&mut pair.server, &mut pair.client, &mut wires[1]);
            if wires[0].len() + wires[1].len() == before {
                break;
            }
        }
        for (wire, session) in wires.iter().zip([&pair.client, &pair.server]) {
            let (whole, why) = decode(version, wire, usize::MAX);
            assert_eq!(why, None);
            for piece in [1, 7, 1_460] {
                assert_eq!(decode(version, wire, piece).0, whole, "{version}, pieces of {piece}");
            }
            let stats = session.stats();
            assert_eq!(whole.len() as u64, stats.frames_sent);
            let blocks: u64 = whole.iter().filter_map(Frame::block).map(|b| u64::from(b.raw_len)).sum();
            assert_eq!(blocks, stats.blocks_sent_raw);
            let mut at = 0;
            for frame in &whole {
                assert_eq!(frame.offset, at);
                at += u64::from(frame.wire_len);
            }
            assert_eq!(at, wire.len() as u64);
        }
    }
}

#[test]
fn a_data_frame_is_shown_before_its_payload_which_may_be_a_range() {
    let mut decoder = Decoder::new(Version::V3, Limits::default());
    assert!(!decoder.is_amid_frame());
    let head = Head::Data { id: 1, fin: false, compress: false, len: 1 << 20 }.emit();
    decoder.handle_input(head.to_vec().into());
    let shown = Frame {
        offset: 0,
        wire_len: (1 << 20) + 8,
        content: Content::Data { id: 1, fin: false, compress: false, len: 1 << 20 },
    };
    assert_eq!(decoder.poll_frame(), Ok(Some(shown)));
    assert_eq!(decoder.poll_frame(), Ok(None));
    assert!(decoder.is_amid_frame());
    decoder.handle_input(body(1, 1 << 20));
    assert_eq!(decoder.poll_frame(), Ok(None));
    assert!(!decoder.is_amid_frame());
    decoder.handle_input(bytes_of(Version::V3, Control::Ping { id: 1 }).slice(..9).into());
    assert_eq!(decoder.poll_frame(), Ok(None));
    assert!(decoder.is_amid_frame());
}

/// What would reset a stream is shown and read past; what would end a session ends the decoding, with the reason.
#[test]
fn faults_are_told_and_only_those_that_lose_the_place_end_it() {
    let version = Version::V3_1;
    let mut client = Session::client(Config { announce_streams: false, ..Config::chrome_2012(version) });
    client.request(&get("/"), Priority::HIGHEST, true).unwrap();
    let good = all_bytes(&mut client);
    // Two pairs are announced, and one is there.
    let lying = [0, 12, 0, 0xf3, 0xff, 0, 0, 0, 2, 0, 0, 0, 1, b'a', 0, 0, 0];
    let lying = Control::SynReply { id: 1, fin: false, block: &lying[..] };
    let unknown = Control::Unknown { kind: 0xf000, len: 5 };
    let wire =
        [&good[..], &bytes_of(version, lying), &bytes_of(version, unknown), b"\x80\x02\0\x06\0\0\0\x04"]
            .concat();
    let mut decoder = Decoder::new(version, Limits::default());
    decoder.handle_input(wire.into());
    let mut shown = Vec::new();
    let why = loop {
        match decoder.poll_frame() {
            Ok(frame) => shown.push(frame.expect("it ends with an error").to_string()),
            Err(why) => break why,
        }
    };
    assert_eq!(shown.len(), 3);
    assert_eq!(
        shown[1..],
        ["SYN_REPLY id=1 block=17/12 unreadable=PROTOCOL_ERROR", "UNKNOWN type=61440 len=5"]
    );
    assert_eq!(why, Misbehaviour::Version(2));
    decoder.handle_input(bytes_of(version, Control::Ping { id: 1 }).into());
    assert_eq!(decoder.poll_frame(), Err(Misbehaviour::Version(2)));

    let small = Limits { control_frame: 10, ..Limits::default() };
    let mut decoder = Decoder::new(version, small);
    decoder.handle_input(good.into());
    assert!(matches!(decoder.poll_frame(), Err(Misbehaviour::FrameTooLarge { kind: 1, .. })));
}

/// A session's failure ends with a GOAWAY, which is seen like any other frame.
#[test]
fn a_failed_sessions_last_frame_is_seen() {
    let mut server = Session::server(Config::chrome_2012(Version::V3_1));
    server.handle_input(Instant::ZERO, data_frame(0, false, b"").into()).unwrap_err();
    let shown = lines(Version::V3_1, &all_bytes(&mut server));
    assert_eq!(shown, ["GOAWAY last=0 status=PROTOCOL_ERROR"]);
}
