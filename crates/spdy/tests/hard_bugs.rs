//! The bugs that other implementations had, each with a test of its name. Sections are of SPDY/3.1 unless said.

mod common;

use base::{Duration, Instant};
use common::*;
use spdy::frame::{Control, Setting};
use spdy::{
    By, Compression, Config, Error, Event, Fairness, FlowControl, GoAwayStatus, Limits, Misbehaviour,
    OpenError, Policy, Priority, SendError, Session, Status, StreamId, Version, WindowPolicy,
};

/// §2.6.10.1: one zlib stream a direction a connection. An independent zlib reads all blocks of a direction with one
/// context, and the second request costs little as it repeats the first.
#[test]
fn one_zlib_context_a_stream_instead_of_a_connection() {
    let config = Config {
        compression: Compression { policy: Policy::Full, window_bits: 15 },
        ..Config::new(Version::V3_1)
    };
    let mut pair = Pair::with(config.clone(), config);
    for path in ["/a", "/b", "/c"] {
        let id = pair.get(path, 0);
        pair.settle();
        pair.answer(id, 0);
        pair.settle();
    }
    for wire in [&pair.client_wire, &pair.server_wire] {
        let mut zlib = zlib_rs::Inflate::new(true, 15);
        let mut sizes = Vec::new();
        for frame in wire.controls() {
            let (Control::SynStream { block, .. } | Control::SynReply { block, .. }) = frame else {
                continue;
            };
            let mut out = [0; 1_024];
            let mut rest = &block[..];
            if sizes.is_empty() {
                let before = zlib.total_in();
                zlib.decompress(rest, &mut out, zlib_rs::InflateFlush::SyncFlush).unwrap_err();
                rest = &rest[(zlib.total_in() - before) as usize..];
                zlib.set_dictionary(spdy::dictionary::V3.bytes).unwrap();
            }
            zlib.decompress(rest, &mut out, zlib_rs::InflateFlush::SyncFlush).unwrap();
            assert_eq!(out[..3], [0; 3], "a count of less than 256");
            sizes.push(block.len());
        }
        assert_eq!(sizes.len(), 3);
        assert!(sizes[1] * 2 < sizes[0] && sizes[2] * 2 < sizes[0], "{sizes:?}");
    }
}

/// §2.4.1: a block is inflated even if its stream is refused, or those after it come out wrong.
#[test]
fn blocks_decoded_out_of_order_or_not_at_all() {
    let client = Config { assumed_streams: 10, ..Config::new(Version::V3_1) };
    let server = Config { max_concurrent_streams: 1, announce_streams: false, ..Config::new(Version::V3_1) };
    let mut pair = Pair::with(client, server);
    let first = pair.get("/first", 0);
    let second = pair.get("/second", 0);
    pair.settle();
    assert_eq!(pair.server_wire.resets(), [(second.as_u32(), Status::REFUSED_STREAM)]);
    pair.answer(first, 0);
    pair.settle();
    let third = pair.get("/third", 0);
    pair.settle();
    let asked = |event: &Event| match event {
        Event::Request { id, head, .. } => Some((*id, head.clone())),
        _ => None,
    };
    let asked: Vec<_> = pair.server_events.iter().filter_map(asked).collect();
    assert_eq!(asked, [(first, get("/first")), (third, get("/third"))]);
}

/// §2.6.8: the session's window needs its own updates, however little each stream moves.
#[test]
fn session_window_update_forgotten() {
    let mut pair = Pair::with(Config::chrome_2012(Version::V3_1), Config::chrome_2012(Version::V3_1));
    for i in 0..20_u32 {
        let id = pair.get(&format!("/{i}"), 0);
        pair.settle();
        pair.answer(id, 10_000);
        pair.settle();
        assert_eq!(arrived(&pair.client_events, id), (10_000, true), "stream {i} stalled");
    }
    assert!(pair.client_wire.credits(0).len() >= 4);
}

/// Credit goes back long before the window is used up, or the sender stops for a round trip in each window.
#[test]
fn session_window_update_sent_only_at_zero() {
    let mut pair = Pair::with(Config::chrome_2012(Version::V3_1), Config::chrome_2012(Version::V3_1));
    let id = pair.get("/", 0);
    pair.settle();
    pair.answer(id, 1 << 20);
    let mut sent = 0;
    while pair.client_wire.credits(0).is_empty() {
        assert!(pair.down(), "stalled after {sent} bytes");
        sent = pair.server.stats().data_sent;
        pair.up();
    }
    assert!((32_768..65_536 - 2_852).contains(&sent), "credited after {sent} bytes");
}

/// Credit is what was consumed, once: not what was received, not both at reading and at closing.
#[test]
fn session_window_update_over_credited() {
    let mut pair = Pair::with(Config::chrome_2012(Version::V3_1), Config::chrome_2012(Version::V3_1));
    pair.reads = false;
    let id = pair.get("/", 0);
    pair.settle();
    pair.answer(id, 60_000);
    pair.settle();
    assert_eq!(pair.client_wire.credits(0), [0; 0], "nothing was read");
    pair.client.consume(id, 40_000);
    pair.client.consume(id, 1_000_000);
    pair.client.consume(id, 1_000_000);
    pair.client.reset(id, Status::CANCEL);
    let second = pair.get("/", 0);
    pair.settle();
    pair.answer(second, 30_000);
    pair.settle();
    pair.client.reset(second, Status::CANCEL);
    pair.client.consume(second, 30_000);
    pair.settle();
    let credited: u32 = pair.client_wire.credits(0).iter().sum();
    assert!(credited <= 90_000, "{credited} bytes credited of 90000 received");
    assert!(credited > 90_000 - 32_768);
}

/// §2.6.8: an empty FIN may be sent at window zero, and a body that just fills the window carries it.
#[test]
fn fin_lost_near_the_windows_edge() {
    for len in [1, 65_535, 65_536, 65_537, 131_072] {
        for late_fin in [false, true] {
            let mut pair = Pair::with(Config::chrome_2012(Version::V3_1), Config::chrome_2012(Version::V3_1));
            pair.reads = false;
            let id = pair.get("/", 0);
            pair.settle();
            pair.server.respond(id, &response(200), false).unwrap();
            pair.server.send(id, body(id.as_u32(), len), !late_fin).unwrap();
            pair.settle();
            if late_fin {
                pair.server.send(id, body(id.as_u32(), 0), true).unwrap();
                pair.settle();
            }
            let expected = (len.min(65_536), len <= 65_536);
            assert_eq!(arrived(&pair.client_events, id), expected, "{len} bytes, FIN late: {late_fin}");
            while pair.client.queued(id) + pair.server.queued(id) > 0 {
                pair.client.consume(id, u64::MAX);
                pair.settle();
            }
            assert_eq!(arrived(&pair.client_events, id), (len, true));
        }
    }
}

#[test]
fn uploads_of_more_than_64_kib_stall() {
    for version in VERSIONS {
        let mut pair = Pair::with(Config::chrome_2012(version), Config::chrome_2012(version));
        let id = pair.client.request(&post("/up"), Priority::HIGHEST, false).unwrap();
        pair.client.send(id, body(id.as_u32(), 400_000), true).unwrap();
        pair.settle();
        assert_eq!(arrived(&pair.server_events, id), (400_000, true), "{version}");
    }
}

/// §2.6.4 against SPDY/2, "SETTINGS": INITIAL_WINDOW_SIZE of 1 MiB with PERSIST in both layouts.
#[test]
fn version_2_settings_layout_used_in_3() {
    let three = [0, 0, 0, 1, 1, 0, 0, 7, 0, 0x10, 0, 0];
    let two = [0, 0, 0, 1, 7, 0, 0, 1, 0, 0x10, 0, 0];
    let setting = Setting { id: Setting::INITIAL_WINDOW_SIZE, flags: Setting::PERSIST, value: 1 << 20 };
    for (version, payload) in [(Version::V2, two), (Version::V3, three), (Version::V3_1, three)] {
        let frame = Control::Settings { clear: false, entries: vec![setting] };
        assert_eq!(bytes_of(version, frame)[8..], payload, "{version}");
        let parsed = Control::parse(version, 4, 0, payload.to_vec().into(), &Limits::default());
        assert_eq!(parsed, Ok(Control::Settings { clear: false, entries: vec![setting] }), "{version}");
    }
}

/// §2.6.6: 0 says that no stream was processed; it is not "no statement".
#[test]
fn goaway_last_id_0_read_as_none() {
    for version in VERSIONS {
        let mut client = Session::client(Config::new(version));
        let ids: Vec<StreamId> =
            (0..3).map(|_| client.request(&post("/"), Priority::HIGHEST, false).unwrap()).collect();
        let goaway = bytes_of(version, Control::GoAway { last_good_id: 0, status: GoAwayStatus::OK });
        client.handle_input(Instant::ZERO, goaway.into()).unwrap();
        let expected = Event::GoAway { last_good_id: 0, status: GoAwayStatus::OK, unprocessed: ids.clone() };
        assert_eq!(events(&mut client), [expected]);
        assert_eq!(client.send(ids[0], body(1, 1), true), Err(SendError::NotOpen));
        assert_eq!(client.request(&get("/"), Priority::HIGHEST, true), Err(OpenError::GoingAway));
    }
}

/// A second FIN that carries nothing tells nothing; answering it with RST_STREAM made a peer reconnect for ever. DATA with
/// payload after the FIN is another matter (§2.3.6).
#[test]
fn extra_empty_fin_after_a_half_close_answered_with_rst_9() {
    let mut pair = Pair::new(Version::V3_1);
    let id = pair.client.request(&post("/"), Priority::HIGHEST, false).unwrap();
    pair.client.send(id, body(id.as_u32(), 5), true).unwrap();
    pair.settle();
    let extra = data_frame(id.as_u32(), true, &[]);
    pair.server.handle_input(pair.now, extra.clone().into()).unwrap();
    pair.settle();
    assert_eq!(pair.server_wire.resets(), []);
    pair.answer(id, 10);
    pair.settle();
    assert_eq!(arrived(&pair.client_events, id), (10, true), "the answer still comes");
    // The stream is closed now on both sides.
    pair.server.handle_input(pair.now, extra.into()).unwrap();
    pair.settle();
    assert_eq!(pair.server_wire.resets(), []);

    let id = pair.client.request(&post("/"), Priority::HIGHEST, true).unwrap();
    pair.settle();
    pair.server.handle_input(pair.now, data_frame(id.as_u32(), false, b"more").into()).unwrap();
    pair.settle();
    assert_eq!(pair.server_wire.resets(), [(id.as_u32(), Status::STREAM_ALREADY_CLOSED)]);
}

/// §2.3.6: WINDOW_UPDATE is no part of any stream, and may cross its end.
#[test]
fn window_update_for_closed_ids_treated_as_an_error() {
    let mut pair = Pair::new(Version::V3_1);
    let id = pair.get("/", 0);
    pair.settle();
    // The client's side is half closed: its credit still counts.
    let update = |id| bytes_of(Version::V3_1, Control::WindowUpdate { id, delta: 1_000 });
    pair.server.handle_input(pair.now, update(id.as_u32()).into()).unwrap();
    pair.answer(id, 10);
    pair.settle();
    for id in [id.as_u32(), 99, 100] {
        pair.server.handle_input(pair.now, update(id).into()).unwrap();
        pair.client.handle_input(pair.now, update(id).into()).unwrap();
    }
    pair.settle();
    assert_eq!((pair.server_wire.resets(), pair.client_wire.resets()), (vec![], vec![]));
}

/// §2.6.1; SPDY/2, "SYN_STREAM": three bits in version 3, two in version 2.
#[test]
fn priority_shift_wrong_by_a_bit() {
    for level in 0..8 {
        for (version, byte) in
            [(Version::V2, level >> 1 << 6), (Version::V3, level << 5), (Version::V3_1, level << 5)]
        {
            let mut pair = Pair::new(version);
            pair.client.request(&get("/"), Priority::new(level), true).unwrap();
            let wire = all_bytes(&mut pair.client);
            let syn = wire
                .windows(4)
                .position(|w| w[1..] == [version.on_wire() as u8, 0, 1] && w[0] == 0x80)
                .unwrap();
            assert_eq!(wire[syn + 16], byte, "{version}, level {level}");
            pair.server.handle_input(pair.now, wire.into()).unwrap();
            let heard = events(&mut pair.server).into_iter().find_map(|event| match event {
                Event::Request { priority, .. } => Some(priority.level()),
                _ => None,
            });
            let expected = if version == Version::V2 { level & !1 } else { level };
            assert_eq!(heard, Some(expected), "{version}");
        }
    }
}

/// §2.3.3: 0 is the highest. (Version 2's text says 3 is; Chrome and spdylay wrote 0, and so does everyone.)
#[test]
fn priority_queue_reversed() {
    for version in VERSIONS {
        let mut pair = Pair::new(version);
        let ids: Vec<StreamId> = [6, 0, 4, 2].map(|level| pair.get("/", level)).to_vec();
        pair.settle();
        for id in &ids {
            pair.answer(*id, 30_000);
        }
        pair.settle();
        let ends: Vec<StreamId> = pair
            .client_events
            .iter()
            .filter_map(|event| match event {
                Event::Data { id, fin: true, .. } => Some(*id),
                _ => None,
            })
            .collect();
        assert_eq!(ends, [ids[1], ids[3], ids[2], ids[0]], "{version}");
    }
}

/// With the fairness rule off, as in Chrome, a low priority waits for ever; with it on it gets its share.
#[test]
fn starvation_of_low_priorities() {
    for (fairness, starves) in [(Fairness::Strict, true), (Fairness::Bounded { turns: 32 }, false)] {
        let huge = WindowPolicy::half(i32::MAX as u32);
        let config =
            Config { fairness, stream_window: huge, session_window: huge, ..Config::new(Version::V3_1) };
        let mut pair = Pair::with(config.clone(), config);
        let (low, high) = (pair.get("/low", 7), pair.get("/high", 0));
        pair.settle();
        pair.answer(low, 100_000);
        pair.answer(high, 1 << 30);
        for _ in 0..20_000 {
            pair.down();
        }
        assert_eq!(arrived(&pair.client_events, low).0 == 0, starves, "{fairness:?}");
        let share = arrived(&pair.client_events, high).0;
        assert!(share > 12_000_000, "the high priority got only {share} bytes");
    }
}

/// The count says more entries than the frame holds, or more than anyone needs.
#[test]
fn unchecked_settings_count() {
    let count = |n: u32| {
        let mut payload = n.to_be_bytes().to_vec();
        payload.extend_from_slice(&[0; 8]);
        let mut frame = vec![0x80, 3, 0, 4, 0, 0, 0, payload.len() as u8];
        frame.extend(payload);
        Session::server(Config::new(Version::V3_1)).handle_input(Instant::ZERO, frame.into())
    };
    assert_eq!(count(1), Ok(()));
    assert_eq!(count(2), Err(Error::PeerMisbehaved(Misbehaviour::FrameLength { kind: 4, len: 12 })));
    assert_eq!(count(257), Err(Error::PeerMisbehaved(Misbehaviour::TooManySettings(257))));
    assert_eq!(count(u32::MAX), Err(Error::PeerMisbehaved(Misbehaviour::TooManySettings(u32::MAX))));
}

/// CVE-2026-35469: counts and lengths of a header block are bounded before anything is made of them. The stream gets
/// FRAME_TOO_LARGE, and the session goes on.
#[test]
fn unchecked_header_count_and_lengths() {
    let block = |pairs: &[(&[u8], &[u8])], count: u32| {
        let mut raw = count.to_be_bytes().to_vec();
        for (name, value) in pairs {
            raw.extend((name.len() as u32).to_be_bytes());
            raw.extend_from_slice(name);
            raw.extend((value.len() as u32).to_be_bytes());
            raw.extend_from_slice(value);
        }
        raw
    };
    let names: Vec<String> = (0..1_001).map(|i| format!("n{i}")).collect();
    let many: Vec<(&[u8], &[u8])> = names.iter().map(|n| (n.as_bytes(), &b"v"[..])).collect();
    let large = vec![b'x'; (1 << 20) + 1];
    let mut lying = block(&[(b"a", b"b")], 1);
    lying[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
    let cases: [(Vec<u8>, Status); 6] = [
        (block(&many, 1_001), Status::FRAME_TOO_LARGE),
        (block(&[(b"a", &large)], 1), Status::FRAME_TOO_LARGE),
        (block(&[(&large, b"b")], 1), Status::FRAME_TOO_LARGE),
        (lying, Status::FRAME_TOO_LARGE),
        (block(&[(b"a", b"b")], 2), Status::PROTOCOL_ERROR),
        (block(&[(b"a", b"b"), (b"c", b"d")], 1), Status::PROTOCOL_ERROR),
    ];
    let limits = Limits { control_frame: 2 << 20, ..Limits::default() };
    let mut server = Session::server(Config { limits, ..Config::new(Version::V3_1) });
    all_bytes(&mut server);
    let mut zlib = Stored::new(Version::V3_1);
    for (i, (raw, status)) in cases.iter().enumerate() {
        let id = 2 * i as u32 + 1;
        let block = zlib.block(raw);
        let priority = Priority::HIGHEST;
        let syn = Control::SynStream {
            id,
            associated: 0,
            priority,
            slot: 0,
            fin: true,
            unidirectional: false,
            block: &block[..],
        };
        server.handle_input(Instant::ZERO, bytes_of(Version::V3_1, syn).into()).unwrap();
        let reset = bytes_of(Version::V3_1, Control::RstStream { id, status: *status });
        assert_eq!(all_bytes(&mut server), reset, "case {i}");
        assert_eq!(events(&mut server), [], "case {i}");
    }
}

/// A few kilobytes that inflate to a gigabyte end the session after a few.
#[test]
fn zlib_bombs() {
    let mut deflate = zlib_rs::Deflate::new(9, true, 15);
    deflate.set_dictionary(spdy::dictionary::V3.bytes).unwrap();
    let mut bomb = vec![0; 1 << 20];
    let zeros = vec![0; 1 << 24];
    deflate.compress(&zeros, &mut bomb, zlib_rs::DeflateFlush::SyncFlush).unwrap();
    bomb.truncate(deflate.total_out() as usize);
    assert!(bomb.len() < 20_000);
    let syn = Control::SynReply { id: 1, fin: true, block: &bomb[..] };
    let mut client = Session::client(Config::new(Version::V3_1));
    let outcome = client.handle_input(Instant::ZERO, bytes_of(Version::V3_1, syn).into());
    assert_eq!(outcome, Err(Error::PeerMisbehaved(Misbehaviour::BlockTooLarge)));
    assert_eq!(client.stats().blocks_received_raw, 0);
}

/// CRIME: an attacker who can choose the path tries to guess a cookie, and watches the frame's length. Compressed in full
/// a right guess is shorter than a wrong one; with cookies apart, or stored, they are alike.
#[test]
fn crime_a_shared_compression_context_leaks_cookies() {
    let length = |policy: Policy, guess: &str| {
        let compression = Compression { policy, window_bits: 15 };
        let mut client = Session::client(Config { compression, ..Config::new(Version::V3_1) });
        let mut head = get("/");
        head.fields.push("cookie", "theme=dark; secret=7f3a9c51e4; n=1");
        client.request(&head, Priority::HIGHEST, true).unwrap();
        all_bytes(&mut client);
        head.path = format!("/?{guess}").into();
        client.request(&head, Priority::HIGHEST, true).unwrap();
        all_bytes(&mut client).len()
    };
    let (right, wrong) = ("secret=7f3a9c51", "secret=b46d08e2");
    assert!(length(Policy::Full, right) < length(Policy::Full, wrong));
    for policy in [Policy::CookiesApart, Policy::Stored] {
        assert_eq!(length(policy, right), length(policy, wrong), "{policy:?}");
    }
    // And it is worth something: the cookies themselves are sent once.
    assert!(length(Policy::CookiesApart, wrong) + 20 < length(Policy::Stored, wrong));
}

/// §2.6.8: DATA that nobody wants any more still fills the session's window, and is credited back.
#[test]
fn data_for_a_failed_stream_not_credited() {
    let mut pair = Pair::with(Config::chrome_2012(Version::V3_1), Config::chrome_2012(Version::V3_1));
    pair.reads = false;
    for _ in 0..10 {
        let id = pair.get("/", 0);
        pair.settle();
        pair.answer(id, 50_000);
        // The client gives up while the answer is under way.
        let before = pair.server.stats().data_sent;
        while pair.server.stats().data_sent - before < 20_000 {
            assert!(pair.down(), "stalled");
        }
        pair.client.reset(id, Status::CANCEL);
        for _ in 0..8 {
            pair.down();
        }
        pair.settle();
    }
    let (sent, credited) = (pair.server.stats().data_sent, pair.client_wire.credits(0).iter().sum::<u32>());
    assert!(sent > 200_000 && sent - u64::from(credited) < 32_768, "{credited} of {sent} bytes credited");
    // Unknown streams too: those that never were.
    let mut server = Session::server(Config::chrome_2012(Version::V3_1));
    let frame = data_frame(99, false, &[0; 40_000]);
    server.handle_input(Instant::ZERO, frame.into()).unwrap();
    let mut expected =
        bytes_of(Version::V3_1, Control::RstStream { id: 99, status: Status::INVALID_STREAM }).to_vec();
    expected.extend(bytes_of(Version::V3_1, Control::WindowUpdate { id: 0, delta: 40_000 }));
    assert_eq!(all_bytes(&mut server), expected);
}

/// §2.6.5: an echo of an echo would go on for ever.
#[test]
fn ping_of_own_parity_echoed() {
    for (mut session, own, other) in
        [(Session::client(Config::new(Version::V3)), 1, 2), (Session::server(Config::new(Version::V3)), 2, 1)]
    {
        all_bytes(&mut session);
        let ping = |id| bytes_of(Version::V3, Control::Ping { id });
        session.handle_input(Instant::ZERO, ping(own).into()).unwrap();
        assert_eq!(all_bytes(&mut session), []);
        session.handle_input(Instant::ZERO, ping(other).into()).unwrap();
        assert_eq!(all_bytes(&mut session), ping(other));
        session.ping(Instant::ZERO);
        assert_eq!(all_bytes(&mut session), ping(own));
        let later = Instant::ZERO + Duration::from_millis(80);
        session.handle_input(later, ping(own).into()).unwrap();
        session.handle_input(later, ping(own).into()).unwrap();
        assert_eq!(events(&mut session), [Event::Pong { rtt: Duration::from_millis(80) }]);
    }
}

/// Go's spdystream speaks version 3 without flow control: it never sends a WINDOW_UPDATE.
#[test]
fn peers_without_flow_control_stall_at_64_kib() {
    let config = Config { flow_control: FlowControl::None, ..Config::new(Version::V3) };
    let mut pair = Pair::with(config.clone(), config);
    let id = pair.get("/", 0);
    pair.settle();
    pair.answer(id, 400_000);
    pair.settle();
    assert_eq!(arrived(&pair.client_events, id), (400_000, true));
    assert_eq!(pair.client_wire.credits(id.as_u32()), [0; 0]);
}

/// §2.3.2 and §2.4.2: what is wrong with one stream is told to one stream, once.
#[test]
fn second_syn_reply_and_syn_stream() {
    let mut pair = Pair::new(Version::V3_1);
    let id = pair.get("/", 0);
    pair.settle();
    pair.server.respond(id, &response(200), false).unwrap();
    let reply = all_bytes(&mut pair.server);
    pair.client.handle_input(pair.now, reply.into()).unwrap();
    assert!(matches!(events(&mut pair.client)[..], [Event::Response { .. }]));
    // The same reply again, from a server that lost its mind and kept its context.
    let mut zlib = Stored::new(Version::V3_1);
    let block = zlib.block(&0_u32.to_be_bytes())[6..].to_vec();
    let again = Control::SynReply { id: id.as_u32(), fin: false, block: &block[..] };
    pair.client.handle_input(pair.now, bytes_of(Version::V3_1, again).into()).unwrap();
    assert_eq!(events(&mut pair.client), [Event::Reset { id, status: Status::STREAM_IN_USE, by: By::Us }]);
}

/// Writes blocks uncompressed by hand, so that tests can say what the engine would not.
struct Stored {
    begun: bool,
    version: Version,
}

impl Stored {
    fn new(version: Version) -> Self {
        Self { begun: false, version }
    }

    fn block(&mut self, raw: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.begun {
            let dictionary =
                if self.version == Version::V2 { &spdy::dictionary::V2 } else { &spdy::dictionary::V3 };
            out.extend([0x78, 0xbb]);
            out.extend(dictionary.adler32.to_be_bytes());
            self.begun = true;
        }
        for piece in raw.chunks(65_535) {
            let len = piece.len() as u16;
            out.push(0);
            out.extend(len.to_le_bytes());
            out.extend((!len).to_le_bytes());
            out.extend_from_slice(piece);
        }
        out
    }
}
