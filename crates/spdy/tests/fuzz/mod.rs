//! What the fuzz targets assert, shared with the test that replays seeded inputs.

#![allow(dead_code, reason = "each fuzz target uses a part of this")]

#[path = "../common/mod.rs"]
mod common;

use base::{Chunk, Duration, Instant};
use common::*;
use spdy::frame::{Control, Head, Setting};
use spdy::trace::{Decoder, Frame};
use spdy::{
    Announce, Compression, Config, FlowControl, GoAwayStatus, KeepAlive, Limits, Misbehaviour, Policy,
    Priority, Session, Status, StreamId, Version, WindowPolicy,
};

/// Reads a script off the input; what is past its end is zero.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn number(&mut self) -> u32 {
        (0..4).fold(0, |n, _| n << 8 | u32::from(self.byte()))
    }

    /// A small number mostly, any sometimes.
    fn id(&mut self) -> u32 {
        match self.byte() {
            255 => self.number() & 0x7fff_ffff,
            small => u32::from(small % 16),
        }
    }

    fn bytes(&mut self) -> &'a [u8] {
        let n = usize::from(self.byte()).min(self.0.len());
        let (taken, rest) = self.0.split_at(n);
        self.0 = rest;
        taken
    }

    fn config(&mut self) -> Config {
        let version = VERSIONS[usize::from(self.byte() % 3)];
        let policies = [Policy::Full, Policy::CookiesApart, Policy::Stored];
        let windows = [
            WindowPolicy::FIXED_64K,
            WindowPolicy::FIREFOX_256M,
            WindowPolicy::half(1),
            WindowPolicy::half(1 << 20),
            WindowPolicy::autotuned(5_000, 1 << 20),
        ];
        let flows = [FlowControl::None, FlowControl::Streams, FlowControl::StreamsAndSession];
        let bits = self.byte();
        let second = Duration::from_secs(1);
        let base = Config::new(version);
        Config {
            flow_control: flows.get(usize::from(bits & 3)).copied().unwrap_or(base.flow_control),
            stream_window: windows[usize::from(self.byte()) % windows.len()],
            session_window: windows[usize::from(self.byte()) % windows.len()],
            announce: if bits & 4 == 0 { Announce::InSettings } else { Announce::OnEachStream },
            max_concurrent_streams: u32::from(bits >> 4),
            announce_streams: bits & 8 == 0,
            max_data_frame: 1 + 50 * u32::from(self.byte()),
            compression: Compression { policy: policies[usize::from(bits % 3)], window_bits: 8 + bits % 9 },
            // Small, that a few kilobytes can reach them.
            limits: Limits {
                control_frame: 8_192,
                block: 16_384,
                headers: 20,
                header_field: 1_000,
                answers: 4_096,
                ..Limits::default()
            },
            keep_alive: (bits & 64 != 0).then_some(KeepAlive { idle: second, give_up: second }),
            ..base
        }
    }
}

/// Takes out what a session has to say: `own` bytes of its own at most (a frame may carry one byte), and the rest in proportion to what it was given.
fn drain_all(session: &mut Session, own: u64, given: u64) {
    while let Some(event) = session.poll_event() {
        if let spdy::Event::Data { id, chunk, .. } = event {
            session.consume(id, chunk.len());
        }
    }
    let mut said = 0;
    while let Some(chunk) = session.poll_transmit(Instant::ZERO, 1 << 16) {
        said += chunk.len();
    }
    // An empty SYN_STREAM of 21 bytes can be answered 400 in 70; with a window of one byte, each of data in 32.
    assert!(said <= own + 64 * given + 10_000, "{said} bytes said to {given} given");
}

/// Every frame of `data`, and why there are no more.
fn decode(version: Version, limits: Limits, data: &[u8], cut: usize) -> (Vec<Frame>, Option<Misbehaviour>) {
    let mut decoder = Decoder::new(version, limits);
    let mut frames = Vec::new();
    for piece in data.chunks(cut) {
        decoder.handle_input(piece.to_vec().into());
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

/// A client with requests open, a server and a passive decoder, each given any bytes cut anywhere. The decoder sees the
/// same frames wherever the cuts are.
pub fn input(data: &[u8]) {
    let mut script = Script(data);
    let config = script.config();
    let cut = 1 + usize::from(script.byte()) * 8;
    let whole = decode(config.version, config.limits, script.0, script.0.len().max(1));
    assert_eq!(decode(config.version, config.limits, script.0, cut), whole);
    for frame in &whole.0 {
        assert!(!frame.to_string().contains('\n') && format!("{frame:#}").is_ascii());
    }
    let mut client = Session::client(config.clone());
    for i in 0..3 {
        if let Ok(id) = client.request(&post("/"), Priority::new(i), false) {
            let _ = client.send(id, body(1, 300), i == 0);
        }
    }
    for mut session in [client, Session::server(config)] {
        let given = script.0.len() as u64;
        for piece in script.0.chunks(cut) {
            if session.handle_input(Instant::ZERO, piece.to_vec().into()).is_err() {
                break;
            }
        }
        drain_all(&mut session, 10_000, given);
        session.handle_eof();
    }
}

/// A client with requests open, or a server, given frames that are whole, with anything in them. Header blocks are stored,
/// so that what is in them is the input's.
pub fn frames(data: &[u8]) {
    let mut script = Script(data);
    let config = script.config();
    let version = config.version;
    let is_client = script.byte() % 2 == 0;
    let mut session = if is_client { Session::client(config) } else { Session::server(config) };
    for i in 0..u32::from(script.byte() % 8) {
        let _ = session.request(&post("/"), Priority::new(i as u8), i % 2 == 0);
    }
    let (mut begun, mut given) = (false, 0);
    while !script.0.is_empty() {
        let frame = frame(&mut script, version, &mut begun);
        given += frame.len() as u64;
        if session.handle_input(Instant::ZERO, frame.into()).is_err() {
            break;
        }
        let id = script.byte();
        while let Some(event) = session.poll_event() {
            let Some(stream) = event.stream() else { continue };
            match id % 8 {
                0 => session.reset(stream, Status(u32::from(id))),
                1 => _ = session.respond(stream, &response(200), id & 8 == 0),
                2 => _ = session.send(stream, body(1, u64::from(id) * 100), id & 8 == 0),
                3 => _ = session.push(stream, &get("/p"), &response(200), Priority::LOWEST),
                4 => _ = session.send_headers(stream, &get("/").fields, id & 8 == 0),
                _ => session.consume(stream, u64::from(id) * 10),
            }
        }
    }
    drain_all(&mut session, 20_000_000, given);
}

fn frame(script: &mut Script<'_>, version: Version, begun: &mut bool) -> Vec<u8> {
    let mut out = Vec::new();
    let (kind, flags) = (script.byte() % 12, script.byte());
    let (id, fin) = (script.id(), flags & 1 != 0);
    let mut block = |script: &mut Script<'_>| {
        let raw = pairs(script, version);
        let mut out = Vec::new();
        if !std::mem::replace(begun, true) {
            let dictionary =
                if version == Version::V2 { &spdy::dictionary::V2 } else { &spdy::dictionary::V3 };
            out.extend([0x78, 0xbb]);
            out.extend(dictionary.adler32.to_be_bytes());
        }
        let len = raw.len() as u16;
        out.push(0);
        out.extend([len.to_le_bytes(), (!len).to_le_bytes()].concat());
        out.extend(raw);
        out
    };
    match kind {
        0 => {
            let payload = script.bytes();
            out.extend(Head::Data { id, fin, len: payload.len() as u32 }.emit());
            out.extend(payload);
        }
        1 | 2 => {
            let (associated, priority, slot) = (script.id(), Priority::new(flags >> 4), flags & 2);
            let block = block(script);
            let unidirectional = flags & 4 != 0;
            Control::SynStream { id, associated, priority, slot, fin, unidirectional, block }
                .emit(version, &mut out);
        }
        3 => Control::SynReply { id, fin, block: block(script) }.emit(version, &mut out),
        4 => Control::Headers { id, fin, block: block(script) }.emit(version, &mut out),
        5 => Control::<&[u8]>::RstStream { id, status: Status(script.id()) }.emit(version, &mut out),
        6 => {
            let entry = |script: &mut Script<'_>| Setting {
                id: script.id(),
                flags: flags >> 4,
                value: script.number(),
            };
            let entries = (0..script.byte() % 5).map(|_| entry(script)).collect();
            Control::<&[u8]>::Settings { clear: fin, entries }.emit(version, &mut out);
        }
        7 => Control::<&[u8]>::Ping { id }.emit(version, &mut out),
        8 => {
            let status = GoAwayStatus(u32::from(flags));
            Control::<&[u8]>::GoAway { last_good_id: id, status }.emit(version, &mut out);
        }
        9 => Control::<&[u8]>::WindowUpdate { id, delta: script.number() >> (flags % 32) }
            .emit(version, &mut out),
        10 => Control::<&[u8]>::Credential { slot: 1 }.emit(version, &mut out),
        _ => Control::<&[u8]>::Unknown { kind: u16::from(flags), len: id % 64 }.emit(version, &mut out),
    }
    out
}

/// The raw bytes of a block: a plausible one, or anything.
fn pairs(script: &mut Script<'_>, version: Version) -> Vec<u8> {
    let shape = script.byte();
    if shape == 255 {
        return script.bytes().to_vec();
    }
    let names: [&[u8]; 14] = match version {
        Version::V2 => [
            b"method", b"url", b"version", b"host", b"scheme", b"status", b"cookie", b"a", b"b", b"c", b"d",
            b"e", b"f", b"",
        ],
        _ => [
            b":method",
            b":path",
            b":version",
            b":host",
            b":scheme",
            b":status",
            b"cookie",
            b"a",
            b"b",
            b"c",
            b"d",
            b"e",
            b"F",
            b"",
        ],
    };
    let values: [&[u8]; 6] = [b"GET", b"/", b"HTTP/1.1", b"example.org", b"https", b"200 OK"];
    let count = if shape & 128 == 0 { 6 } else { script.byte() % 24 };
    let mut chosen = Vec::new();
    for i in 0..count {
        let name = if shape & 128 == 0 { i } else { script.byte() };
        let own = values.get(usize::from(i)).copied().filter(|_| shape & 1 == 0);
        chosen.push((names[usize::from(name) % names.len()], own.unwrap_or_else(|| script.bytes())));
    }
    let number = |n: usize, out: &mut Vec<u8>| match version {
        Version::V2 => out.extend((n as u16).to_be_bytes()),
        _ => out.extend((n as u32).to_be_bytes()),
    };
    let mut out = Vec::new();
    number(chosen.len(), &mut out);
    for text in chosen.iter().flat_map(|(name, value)| [name, value]) {
        number(text.len(), &mut out);
        out.extend_from_slice(text);
    }
    out
}

/// A client and a server that do any sequence of things, over a wire that cuts what it carries into pieces and, if the
/// script says so, loses some. As long as it loses none, neither may find fault with the other, and both must keep to
/// their windows.
pub fn pair(data: &[u8]) {
    let mut script = Script(data);
    let client = script.config();
    let server = Config { version: client.version, flow_control: client.flow_control, ..script.config() };
    let mut wires = (Checker::new(&client), Checker::new(&server));
    let mut ends = (Session::client(client), Session::server(server));
    let (mut now, mut lossy) = (Instant::ZERO, false);
    let mut ids: Vec<StreamId> = Vec::new();
    while !script.0.is_empty() {
        let (op, arg) = (script.byte(), script.byte());
        let at_client = arg & 1 == 0;
        let session = if at_client { &mut ends.0 } else { &mut ends.1 };
        let id = (!ids.is_empty()).then(|| ids[usize::from(arg >> 1) % ids.len()]);
        match (op % 16, id) {
            (0..=4, _) => {
                let room = 1 + u64::from(script.byte()).pow(2);
                let (from, to) =
                    if at_client { (&mut ends.0, &mut ends.1) } else { (&mut ends.1, &mut ends.0) };
                let (sends, hears) =
                    if at_client { (&mut wires.0, &mut wires.1) } else { (&mut wires.1, &mut wires.0) };
                lossy |= op == 0xf0;
                if !carry(from, to, (sends, hears), now, room, (arg, lossy)) {
                    return;
                }
            }
            (5 | 6, _) => {
                let fin = arg & 2 == 0;
                ids.extend(session.request(
                    &if fin { get("/") } else { post("/x") },
                    Priority::new(arg >> 5),
                    fin,
                ));
            }
            (7, Some(id)) => _ = session.respond(id, &response(200), arg & 16 != 0),
            (8 | 9, Some(id)) => {
                let len = u64::from(script.byte()).pow(2);
                _ = session.send(id, body(id.as_u32(), len), op & 16 != 0);
            }
            (10, Some(id)) => {
                ids.extend(session.push(id, &get("/p"), &response(200), Priority::new(arg >> 5)))
            }
            (11, Some(id)) => {
                session.reset(id, if op & 16 == 0 { Status::CANCEL } else { Status(u32::from(op)) })
            }
            (12, Some(id)) => session.consume(id, u64::from(script.byte()).pow(2)),
            (13, Some(id)) => _ = session.send_headers(id, &get("/").fields, op & 16 != 0),
            (14, Some(id)) => session.set_priority(id, Priority::new(op >> 4)),
            (15, _) if op & 16 == 0 => {
                now += Duration::from_millis(u64::from(arg) * 20);
                session.handle_timeout(now);
            }
            (15, _) if op == 255 => session.goaway(),
            (15, _) => session.ping(now),
            _ => {
                if let Some(event) = session.poll_event()
                    && let Some(id) = event.stream()
                    && !ids.contains(&id)
                {
                    ids.push(id);
                }
            }
        }
    }
}

/// Carries a chunk; false once a lossy wire has made nonsense of it.
fn carry(
    from: &mut Session,
    to: &mut Session,
    (sends, hears): (&mut Checker, &mut Checker),
    now: Instant,
    room: u64,
    (arg, lossy): (u8, bool),
) -> bool {
    let Some(mut chunk) = from.poll_transmit(now, room) else { return true };
    assert!(!chunk.is_empty() && chunk.len() <= room);
    if !lossy {
        sends.sent(chunk.clone());
    }
    let piece = 1 + u64::from(arg >> 1) * 4;
    while !chunk.is_empty() {
        let part = chunk.split_to(piece.min(chunk.len()));
        if lossy && arg & 8 == 0 {
            continue;
        }
        if !lossy {
            hears.delivered(part.clone());
        }
        match (to.handle_input(now, part), lossy) {
            (Ok(()), _) => {}
            (Err(_), true) => return false,
            (Err(e), false) => panic!("one engine finds fault with the other: {e}"),
        }
        while let Some(event) = to.poll_event() {
            if let spdy::Event::Data { id, chunk: Chunk::Body(range), .. } = &event {
                assert!(lossy || range.source == id.as_u32());
            }
        }
    }
    true
}
