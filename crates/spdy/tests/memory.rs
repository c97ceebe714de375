//! What a hostile peer can make a session hold, measured at the allocator, stays below what `Config::peer_memory` says.
//! Each attack goes on until the session refuses or a multiple of the bound was sent, and must reach what it is after: a
//! measurement of nothing would stay below any bound.

mod common;

use base::Instant;
use bytes::Bytes;
use common::*;
use spdy::frame::{Control, Head, Setting, kind};
use spdy::{
    Config, Error, Event, Limits, Mapping, Misbehaviour, Opening, Priority, Session, Status, Version,
    WindowPolicy,
};

/// Bytes given to the session at once.
const INPUT: usize = 16 * 1024;

/// More than an inflater holds.
const CONTEXT: u64 = 100 << 10;

/// Limits small enough that what is not theirs would stand out.
fn small() -> Limits {
    Limits {
        control_frame: 16 << 10,
        block: 32 << 10,
        headers: 100,
        answers: 8 << 10,
        heads: 64 << 10,
        push_target: 1 << 10,
        ..Limits::default()
    }
}

/// What an attack came to.
struct Outcome {
    /// The most that the session held at any moment, in bytes.
    peak: u64,
    /// What it was ended with.
    end: Option<Misbehaviour>,
    events: usize,
}

/// Gives a session the frames by pieces of `INPUT` bytes; see [`attack_by`].
fn attack(make: impl FnOnce() -> Session, frames: &[Bytes], consumes: bool, reads: bool) -> Outcome {
    attack_by(INPUT, make, frames, consumes, reads)
}

/// Gives a session the frames, all events taken and dropped after each piece. Whether they are consumed, and whether what
/// the session says is read, is the attack's choice.
fn attack_by(
    piece: usize,
    make: impl FnOnce() -> Session,
    frames: &[Bytes],
    consumes: bool,
    reads: bool,
) -> Outcome {
    let wire: Bytes = frames.concat().into();
    let inputs: Vec<Bytes> =
        (0..wire.len()).step_by(piece).map(|at| wire.slice(at..wire.len().min(at + piece))).collect();
    // What all sessions share is made by the first.
    Session::client(Config::new(Version::V3_1)).request(&get("/"), Priority::HIGHEST, true).unwrap();
    let (mut end, mut events) = (None, 0);
    let info = allocation_counter::measure(|| {
        let mut session = make();
        for input in &inputs {
            let outcome = session.handle_input(Instant::ZERO, input.clone().into());
            while let Some(event) = session.poll_event() {
                events += 1;
                if let (Event::Data { id, chunk, .. }, true) = (&event, consumes) {
                    session.consume(*id, chunk.len());
                }
            }
            while reads && session.poll_transmit(Instant::ZERO, u64::MAX).is_some() {}
            if let Err(Error::PeerMisbehaved(what)) = outcome {
                end = Some(what);
                break;
            }
        }
    });
    assert_eq!(info.bytes_current, 0, "everything is given back");
    Outcome { peak: info.bytes_max, end, events }
}

/// Both sets of limits, and a server of bare streams under each, where every head is lawful.
fn configs() -> [Config; 2] {
    [Limits::default(), small()].map(|limits| Config {
        limits,
        mapping: Mapping::Streams,
        ..Config::new(Version::V3_1)
    })
}

fn bound(config: &Config) -> u64 {
    config.peer_memory(INPUT as u64)
}

fn number(n: usize) -> [u8; 4] {
    (n as u32).to_be_bytes()
}

fn raw_block(pairs: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut raw = number(pairs.len()).to_vec();
    for (name, value) in pairs {
        raw.extend(number(name.len()));
        raw.extend_from_slice(name);
        raw.extend(number(value.len()));
        raw.extend_from_slice(value);
    }
    raw
}

/// A peer's compressor: zlib as it comes.
struct Zlib(zlib_rs::Deflate);

impl Zlib {
    fn new() -> Self {
        let mut deflate = zlib_rs::Deflate::new(6, true, 15);
        deflate.set_dictionary(spdy::dictionary::V3.bytes).unwrap();
        Self(deflate)
    }

    fn block(&mut self, raw: &[u8]) -> Vec<u8> {
        let mut out = vec![0; raw.len() + 1_024];
        let before = self.0.total_out();
        self.0.compress(raw, &mut out, zlib_rs::DeflateFlush::SyncFlush).unwrap();
        out.truncate((self.0.total_out() - before) as usize);
        out
    }
}

fn syn(id: u32, associated: u32, fin: bool, block: &[u8]) -> Bytes {
    let unidirectional = associated != 0;
    let priority = Priority::HIGHEST;
    bytes_of(
        Version::V3_1,
        Control::SynStream { id, associated, priority, slot: 0, fin, unidirectional, block },
    )
}

#[test]
fn a_control_frame_that_never_ends() {
    for config in configs() {
        let len = config.limits.control_frame;
        let head = Head::Control { version: 3, kind: kind::HEADERS, flags: 0, len }.emit().to_vec();
        let frame = [head.into(), Bytes::from(vec![0; len as usize - 1])];
        let outcome = attack(|| Session::server(config.clone()), &frame, true, true);
        assert_eq!(outcome.end, None);
        assert!((u64::from(len)..=bound(&config)).contains(&outcome.peak), "{} bytes", outcome.peak);
    }
}

/// The largest lawful block: inflated, cut into as many fields as are allowed, told.
#[test]
fn blocks_as_large_as_they_may_be() {
    for config in configs() {
        let limits = config.limits;
        let mut zlib = Zlib::new();
        let names: Vec<String> = (0..limits.headers - 1).map(|i| format!("n{i}")).collect();
        let mut pairs: Vec<(&[u8], &[u8])> = names.iter().map(|n| (n.as_bytes(), &b"v"[..])).collect();
        // Noise that deflate makes a quarter of.
        let mut rng = base::Rng::new(3);
        let bulk: Vec<u8> = (0..limits.block as usize - raw_block(&pairs).len() - 9)
            .map(|_| b"0123"[rng.below(4) as usize])
            .collect();
        let bulk = &bulk[..bulk.len().min(limits.header_field as usize)];
        pairs.push((b"x", bulk));
        let frames: Vec<Bytes> =
            (0..4).map(|i| syn(2 * i + 1, 0, false, &zlib.block(&raw_block(&pairs)))).collect();
        let frames: Vec<Bytes> =
            frames.into_iter().filter(|f| f.len() <= limits.control_frame as usize).collect();
        assert!(!frames.is_empty());
        let outcome = attack_by(4_096, || Session::server(config.clone()), &frames, true, true);
        assert_eq!((outcome.end, outcome.events), (None, frames.len()));
        assert!((bulk.len() as u64..=bound(&config)).contains(&outcome.peak), "{} bytes", outcome.peak);
    }
}

/// Few bytes on the wire become many fields: a value of many parts, again and again in one input.
#[test]
fn heads_that_come_faster_than_they_can_be_taken() {
    for config in configs() {
        let mut zlib = Zlib::new();
        let value = "a\0".repeat(config.limits.headers as usize - 1) + "a";
        let raw = raw_block(&[(b"n", value.as_bytes())]);
        let mut frames = vec![syn(1, 0, false, &zlib.block(&raw))];
        for _ in 0..200 {
            let block = zlib.block(&raw);
            frames.push(bytes_of(Version::V3_1, Control::Headers { id: 1, fin: false, block: &block[..] }));
        }
        let outcome = attack(|| Session::server(config.clone()), &frames, true, true);
        assert_eq!(outcome.end, Some(Misbehaviour::TooManyHeads));
        let heads = u64::from(config.limits.heads);
        assert!((heads / 2..=bound(&config)).contains(&outcome.peak), "{} bytes", outcome.peak);
        // One more part than is allowed is that stream's error.
        let value = value + "\0a";
        let over = syn(1, 0, false, &Zlib::new().block(&raw_block(&[(b"n", value.as_bytes())])));
        let mut server = Session::server(config);
        all_bytes(&mut server);
        server.handle_input(Instant::ZERO, over.into()).unwrap();
        let status = Status::FRAME_TOO_LARGE;
        assert_eq!(all_bytes(&mut server), bytes_of(Version::V3_1, Control::RstStream { id: 1, status }));
    }
}

/// PINGs and refusals that the peer provokes and never reads.
#[test]
fn answers_that_pile_up() {
    for config in configs() {
        let answers = u64::from(config.limits.answers);
        let pings = vec![bytes_of(Version::V3_1, Control::Ping { id: 1 }); 100_000];
        let resets: Vec<Bytes> = (0..100_000).map(|i| data_frame(2 * i + 1, false, b"")).collect();
        for frames in [pings, resets] {
            let outcome = attack(|| Session::server(config.clone()), &frames, true, false);
            assert_eq!(outcome.end, Some(Misbehaviour::TooManyAnswers));
            assert!((answers..=bound(&config)).contains(&outcome.peak), "{} bytes", outcome.peak);
        }
        // Windows that return every byte at once, and bytes that come one by one: the credit grows, not its frames.
        let eager = WindowPolicy { eager_below: 1 << 20, ..WindowPolicy::half(1 << 20) };
        let config = Config { stream_window: eager, session_window: eager, ..config };
        let mut frames = vec![data_frame(1, false, b"x"); 40_000];
        frames[0] = syn(1, 0, false, &Zlib::new().block(&raw_block(&[])));
        let outcome = attack_by(9, || Session::server(config.clone()), &frames, true, false);
        assert_eq!(outcome.end, None);
        assert!(outcome.peak < CONTEXT, "{} bytes", outcome.peak);
    }
}

/// Requests that are answered at once, and answers that nobody reads: the streams are over, and their heads wait.
#[test]
fn answered_streams_whose_answers_are_not_read() {
    for config in configs() {
        let limit = u64::from(config.limits.answers);
        let mut zlib = Zlib::new();
        let frames: Vec<Bytes> =
            (0..150_000).map(|i| syn(2 * i + 1, 0, true, &zlib.block(&raw_block(&[(b"a", b"b")])))).collect();
        let (mut accepted, mut end) = (0, None);
        let info = allocation_counter::measure(|| {
            let mut server = Session::server(config.clone());
            for frame in &frames {
                let outcome = server.handle_input(Instant::ZERO, frame.clone().into());
                while let Some(event) = server.poll_event() {
                    let Event::Opened { id, .. } = event else { continue };
                    server.accept(id, &base::Fields::new(), true).unwrap();
                    accepted += 1;
                }
                if let Err(Error::PeerMisbehaved(what)) = outcome {
                    end = Some(what);
                    break;
                }
            }
        });
        // A SYN_REPLY is 12 bytes and its block; a RST_STREAM 16.
        assert!((limit / 40..=limit / 16).contains(&accepted), "{accepted} accepted");
        assert_eq!(end, Some(Misbehaviour::TooManyAnswers));
        assert!((2 * limit..=config.peer_memory(64)).contains(&info.bytes_max), "{} bytes", info.bytes_max);
    }
}

/// Streams that are opened and left, and streams that are over and have an unread byte.
#[test]
fn streams_that_are_opened_and_left() {
    for config in configs() {
        let mut zlib = Zlib::new();
        let frames: Vec<Bytes> =
            (0..5_000).map(|i| syn(2 * i + 1, 0, false, &zlib.block(&raw_block(&[(b"a", b"b")])))).collect();
        let outcome = attack_by(1_024, || Session::server(config.clone()), &frames, false, true);
        assert_eq!((outcome.end, outcome.events as u32), (None, config.max_concurrent_streams));
        assert!(outcome.peak <= bound(&config), "{} bytes", outcome.peak);

        // A caller that accepts, says all it has to say, and does not read.
        let mut server = Session::server(config.clone());
        let mut client = Session::client(Config { assumed_streams: 5_000, ..config.clone() });
        let (mut accepted, mut refused) = (0, 0);
        for _ in 0..1_000 {
            let Ok(id) = client.open(&fields(&[]), Opening::default()) else { break };
            client.send(id, Bytes::from_static(b"x").into(), true).unwrap();
            while let Some(chunk) = client.poll_transmit(Instant::ZERO, u64::MAX) {
                server.handle_input(Instant::ZERO, chunk).unwrap();
            }
            for event in events(&mut server) {
                if let Event::Opened { id, .. } = event {
                    server.accept(id, &fields(&[]), true).unwrap();
                    accepted += 1;
                }
            }
            while let Some(chunk) = server.poll_transmit(Instant::ZERO, u64::MAX) {
                client.handle_input(Instant::ZERO, chunk).unwrap();
            }
            refused += events(&mut client)
                .iter()
                .filter(|e| matches!(e, Event::Reset { status: Status::REFUSED_STREAM, .. }))
                .count();
        }
        assert_eq!(
            (accepted, refused),
            (config.max_concurrent_streams, 1_000 - config.max_concurrent_streams as usize)
        );
    }
}

/// A client keeps the targets of pushes, and of their blocks nothing else.
#[test]
fn pushes_with_long_names_and_blocks() {
    for limits in [Limits::default(), small()] {
        let config = Config { limits, ..Config::new(Version::V3_1) };
        let mut zlib = Zlib::new();
        let mut rng = base::Rng::new(4);
        let mut noise =
            |n: usize| -> Vec<u8> { (0..n).map(|_| b"0123456789abcdef"[rng.below(16) as usize]).collect() };
        let bulk = noise(limits.control_frame as usize / 2);
        let mut push = |id: u32, path: usize| {
            let path = [&b"/"[..], &noise(path)].concat();
            let pairs = [
                (&b":scheme"[..], &b"https"[..]),
                (b":host", b"example.org"),
                (b":path", &path),
                (b"x", &bulk),
            ];
            syn(id, 1, false, &zlib.block(&raw_block(&pairs)))
        };
        let fits = limits.push_target as usize - 5 - 11 - 1;
        let mut frames: Vec<Bytes> = (1..=20).map(|i| push(2 * i, fits)).collect();
        frames.push(push(42, fits + 1));
        let make = || {
            let mut client = Session::client(config.clone());
            client.request(&get("/"), Priority::HIGHEST, true).unwrap();
            client
        };
        let outcome = attack_by(1_024, make, &frames, true, true);
        assert_eq!((outcome.end, outcome.events), (None, 20), "one target too long");
        assert!((20 * fits as u64..=bound(&config)).contains(&outcome.peak), "{} bytes", outcome.peak);
    }
}

#[test]
fn settings_to_be_kept_and_frames_of_one_byte() {
    for config in configs() {
        let entries = |from: u32| {
            (from..from + 256).map(|id| Setting { id, flags: Setting::PERSIST, value: 1 }).collect()
        };
        let settings: Vec<Bytes> = (0..500)
            .map(|i| {
                bytes_of(Version::V3_1, Control::Settings { clear: false, entries: entries(1_000 + 256 * i) })
            })
            .collect();
        let mut drips = vec![syn(1, 0, false, &Zlib::new().block(&raw_block(&[])))];
        drips.extend(vec![data_frame(1, false, b"x"); 100_000]);
        let goaways =
            vec![
                bytes_of(Version::V3_1, Control::GoAway { last_good_id: 0, status: spdy::GoAwayStatus::OK });
                10_000
            ];
        let empty =
            vec![bytes_of(Version::V3_1, Control::Settings { clear: false, entries: vec![] }); 20_000];
        let heads = settings.len();
        let outcome = attack(|| Session::client(config.clone()), &settings, true, true);
        assert_eq!((outcome.end, outcome.events), (None, heads));
        assert!(outcome.peak <= bound(&config), "{} bytes", outcome.peak);
        for frames in [drips, goaways, empty] {
            let outcome = attack(|| Session::server(config.clone()), &frames, true, true);
            assert!(outcome.end.is_none() && outcome.events + 1 >= frames.len());
            assert!(outcome.peak <= bound(&config), "{} bytes", outcome.peak);
        }
    }
}

/// The figure that the README gives.
#[test]
fn the_default_bound_is_what_the_readme_says() {
    let bound = Config::new(Version::V3_1).peer_memory(INPUT as u64);
    assert_eq!(bound.div_ceil(1 << 20), 23, "{bound} bytes");
    let readme = include_str!("../README.md");
    assert!(readme.contains("23 MiB"), "the README states the default bound, rounded up");
}
