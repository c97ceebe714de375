//! One session, and a peer that sends any whole frames while its caller does anything.

use base::{BodyRange, Chunk, Duration, Instant};
use spdy::frame::{Control, Head, Setting};
use spdy::{Config, Event, GoAwayStatus, Mapping, Opening, Priority, Session, Status, StreamId, Version};

use super::Script;
use super::common::{fields, get, post, response};
use super::model::{Act, Model};

/// A client or a server that is given frames that are whole, with anything in them, between commands of any kind. Header
/// blocks are stored, so that what is in them is the input's. Whatever happens, the session's streams are what its events
/// and commands say they are; and a session given the frames alone holds no more than it states.
pub fn frames(data: &[u8]) {
    let mut script = Script(data);
    let config = script.config();
    let (version, is_client) = (config.version, script.byte() % 2 == 0);
    let make = if is_client { Session::client } else { Session::server };
    let mut caller = Caller::new(make(config.clone()), &config);
    let mut peer = Peer { version, has_begun: false, given: [0; 16] };
    let mut frames: Vec<Vec<Chunk>> = Vec::new();
    let mut said = 0;
    while !script.0.is_empty() && !caller.has_failed {
        let op = script.byte();
        if op & 1 == 0 {
            let frame = peer.frame(&mut script);
            for chunk in &frame {
                caller.hears(chunk.clone());
            }
            frames.push(frame);
        } else {
            said += caller.does(op >> 1, &mut script);
        }
        if op & 0xc0 != 0x40 {
            caller.model.drain(&mut caller.session, u64::from(op >> 3 & 7) * 2, caller.has_failed);
        }
    }
    // Nothing is said without end.
    let given: u64 = frames.iter().flatten().map(Chunk::len).sum();
    let queued: u64 = caller.model.streams.values().map(|s| s.queued).sum();
    said += caller.says(u64::MAX, u64::MAX);
    let most = 10_000 + 64 * given + 9 * queued + 300 * data.len() as u64;
    assert!(said <= most, "{said} bytes said to {given}");
    caller.model.close(&mut caller.session, caller.has_failed);
    memory_is_bounded(&config, make, &frames);
}

/// The session's user, and what it knows.
struct Caller {
    session: Session,
    model: Model,
    mapping: Mapping,
    now: Instant,
    has_failed: bool,
    /// Bytes of body that may still be queued: no more than go out in a few hundred frames.
    budget: u64,
}

impl Caller {
    fn new(session: Session, config: &Config) -> Self {
        let (mapping, budget) = (config.mapping, 500 * u64::from(config.max_data_frame));
        Self { session, model: Model::default(), mapping, now: Instant::ZERO, has_failed: false, budget }
    }

    fn hears(&mut self, chunk: Chunk) {
        if !self.has_failed {
            self.has_failed = self.session.handle_input(self.now, chunk).is_err();
        }
    }

    /// Takes what the session says, at most `times` pieces of `room` bytes.
    fn says(&mut self, times: u64, room: u64) -> u64 {
        let mut said = 0;
        for _ in 0..times {
            let Some(chunk) = self.session.poll_transmit(self.now, room) else { break };
            assert!(!chunk.is_empty() && chunk.len() <= room);
            said += chunk.len();
        }
        said
    }

    /// One command, by numbers; gives the bytes that it took for the transport.
    fn does(&mut self, op: u8, script: &mut Script<'_>) -> u64 {
        let arg = script.byte();
        let (priority, fin) = (Priority::new(arg >> 5), arg & 16 != 0);
        let ids = &self.model.ids;
        let id = (!ids.is_empty()).then(|| ids[usize::from(arg & 15) % ids.len()]);
        match (op % 16, id) {
            (0 | 1, _) => return self.says(u64::from(arg % 8), 1 + script.squared()),
            (2, _) => self.opens(priority, fin, arg & 1 != 0, id),
            (3, Some(id)) => {
                let pushed = self.session.push(id, &get("/p"), &response(200), priority);
                if let Ok(id) = pushed {
                    self.model.open(id, true, false);
                }
            }
            (4, Some(id)) => self.model.consume(&mut self.session, id, u64::from(arg >> 4)),
            (5, Some(id)) => self.session.set_priority(id, priority),
            (6, _) => {
                self.now += Duration::from_millis(u64::from(arg) * 20);
                self.session.handle_timeout(self.now);
            }
            (7, _) if arg == 255 => self.session.goaway(),
            (7, _) => self.session.ping(self.now),
            (8.., Some(id)) => {
                let len = if op & 1 == 0 { script.squared() } else { u64::from(arg) }.min(self.budget);
                self.budget -= len;
                self.model.act(&mut self.session, Act { kind: op - 8, id, len, fin });
            }
            _ => {}
        }
        0
    }

    fn opens(&mut self, priority: Priority, fin: bool, unidirectional: bool, beside: Option<StreamId>) {
        let opened = match self.mapping {
            Mapping::Http => {
                let head = if fin { get("/") } else { post("/") };
                self.session.request(&head, priority, fin).map(|id| (id, false))
            }
            Mapping::Streams => {
                let opening = Opening { priority, associated: beside, fin, unidirectional };
                self.session.open(&fields(&[("a", "b")]), opening).map(|id| (id, unidirectional))
            }
        };
        if let Ok((id, heard_out)) = opened {
            self.model.open(id, heard_out, fin);
        }
    }
}

/// What a client's own commands are not part of: a session that is given the frames and does nothing but take its
/// events holds no more than it states.
fn memory_is_bounded(config: &Config, make: fn(Config) -> Session, frames: &[Vec<Chunk>]) {
    let longest = frames.iter().flatten().map(Chunk::len).max().unwrap_or(0);
    let info = allocation_counter::measure(|| {
        let mut session = make(config.clone());
        for chunk in frames.iter().flatten() {
            let outcome = session.handle_input(Instant::ZERO, chunk.clone());
            while let Some(event) = session.poll_event() {
                if let Event::Request { id, .. } = event {
                    _ = session.respond(id, &response(200), true);
                }
            }
            if outcome.is_err() {
                break;
            }
        }
    });
    // And the answers of streams that are open, as small as they are.
    let bound = config.peer_memory(longest) + 8_192;
    assert!(info.bytes_max <= bound, "{} bytes held, {bound} stated", info.bytes_max);
}

/// The other end: it makes frames.
struct Peer {
    version: Version,
    /// Whether its zlib stream has begun.
    has_begun: bool,
    /// Body bytes given so far to the streams with small ids, so that the ranges in DATA go on where they stopped.
    given: [u64; 16],
}

impl Peer {
    /// The next frame, by the script, in the pieces in which it arrives.
    fn frame(&mut self, script: &mut Script<'_>) -> Vec<Chunk> {
        let (kind, flags) = (script.byte() % 12, script.byte());
        let (id, fin) = (script.id(), flags & 1 != 0);
        let mut out = Vec::new();
        if kind == 0 {
            return self.data(id, fin, flags, script);
        } else if (1..=4).contains(&kind) {
            self.head(kind, flags, id, script, &mut out);
        } else {
            other(self.version, (kind, flags, id), script, &mut out);
        }
        vec![out.into()]
    }

    /// A data frame, of bytes or of a range that goes on where the last stopped.
    fn data(&mut self, id: u32, fin: bool, flags: u8, script: &mut Script<'_>) -> Vec<Chunk> {
        let compress = flags & 0xfc == 0xfc;
        if flags & 2 == 0 {
            let payload = script.bytes().to_vec();
            let head = Head::Data { id, fin, compress, len: payload.len() as u32 }.emit().to_vec();
            return vec![head.into(), payload.into()];
        }
        let len = script.squared();
        let head = Head::Data { id, fin, compress, len: len as u32 }.emit().to_vec();
        let start = &mut self.given[id as usize % 16];
        let range = BodyRange { source: id, start: *start, len };
        *start += len;
        vec![head.into(), range.into()]
    }

    /// A frame with a header block.
    fn head(&mut self, kind: u8, flags: u8, id: u32, script: &mut Script<'_>, out: &mut Vec<u8>) {
        let (version, fin) = (self.version, flags & 1 != 0);
        let frame = match kind {
            1 | 2 => {
                let (associated, priority) = (script.id(), Priority::new(flags >> 4));
                let (slot, unidirectional, block) = (flags & 2, flags & 4 != 0, self.block(script));
                Control::SynStream { id, associated, priority, slot, fin, unidirectional, block }
            }
            3 => Control::SynReply { id, fin, block: self.block(script) },
            _ => Control::Headers { id, fin, block: self.block(script) },
        };
        frame.emit(version, out);
    }

    /// A block, stored.
    fn block(&mut self, script: &mut Script<'_>) -> Vec<u8> {
        let raw = pairs(script, self.version);
        let mut out = Vec::new();
        if !std::mem::replace(&mut self.has_begun, true) {
            let dictionary =
                if self.version == Version::V2 { &spdy::dictionary::V2 } else { &spdy::dictionary::V3 };
            out.extend([0x78, 0xbb]);
            out.extend(dictionary.adler32.to_be_bytes());
        }
        let len = raw.len() as u16;
        out.push(0);
        out.extend([len.to_le_bytes(), (!len).to_le_bytes()].concat());
        out.extend(raw);
        out
    }
}

/// A frame without a block.
fn other(version: Version, (kind, flags, id): (u8, u8, u32), script: &mut Script<'_>, out: &mut Vec<u8>) {
    let frame = match kind {
        5 => Control::<&[u8]>::RstStream { id, status: Status(script.id()) },
        6 => {
            let entry = |script: &mut Script<'_>| Setting {
                id: script.id(),
                flags: flags >> 4,
                value: script.number(),
            };
            let entries = (0..script.byte() % 6).map(|_| entry(script)).collect();
            Control::Settings { clear: flags & 1 != 0, entries }
        }
        7 => Control::Ping { id },
        8 => Control::GoAway { last_good_id: id, status: GoAwayStatus(u32::from(flags)) },
        9 => Control::WindowUpdate { id, delta: script.number() >> (flags % 32) },
        10 => {
            let certificates = script.bytes().to_vec().into();
            Control::Credential { slot: 1, proof: script.bytes().to_vec().into(), certificates }
        }
        _ => Control::Unknown { kind: u16::from(flags), len: id % 64 },
    };
    frame.emit(version, out);
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
