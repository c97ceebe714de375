//! A client and a server joined by a wire that cuts what it carries into pieces, and checkers that watch the wire from
//! outside the engines.

#![allow(dead_code, reason = "each test binary uses a part of this")]

use std::collections::BTreeMap;

use base::{BodyRange, Chunk, ChunkQueue, Fields, Instant, RequestHead, ResponseHead, Rng};
use bytes::Bytes;
use spdy::frame::{Control, Head, Setting};
use spdy::{Config, Error, Event, FlowControl, Limits, Misbehaviour, Priority, Session, StreamId, Version};

pub const VERSIONS: [Version; 3] = [Version::V2, Version::V3, Version::V3_1];

pub fn get(path: &str) -> RequestHead {
    let mut fields = Fields::new();
    fields.push("accept", "*/*");
    fields.push("user-agent", "Velodrome");
    RequestHead {
        method: "GET".into(),
        scheme: "https".into(),
        authority: "example.org".into(),
        path: Bytes::copy_from_slice(path.as_bytes()),
        fields,
    }
}

pub fn post(path: &str) -> RequestHead {
    RequestHead { method: "POST".into(), ..get(path) }
}

pub fn response(status: u16) -> ResponseHead {
    let mut fields = Fields::new();
    fields.push("content-type", "text/html");
    ResponseHead { status, fields }
}

/// `len` bytes of body number `source`.
pub fn body(source: u32, len: u64) -> Chunk {
    BodyRange { source, start: 0, len }.into()
}

/// A frame as seen on the wire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seen {
    Data { id: u32, fin: bool, len: u32 },
    Control { frame: Control<Bytes>, len: u32 },
}

/// Reads frames off a stream of chunks; what it cannot read is a failure of the engine that sent it.
pub struct Tap {
    version: Version,
    queue: ChunkQueue,
    payload_left: u64,
}

impl Tap {
    pub fn new(version: Version) -> Self {
        Self { version, queue: ChunkQueue::new(), payload_left: 0 }
    }

    pub fn feed(&mut self, chunk: Chunk) -> Vec<Seen> {
        self.queue.push(chunk);
        let mut seen = Vec::new();
        loop {
            while self.payload_left > 0 {
                let Some(piece) = self.queue.pop(self.payload_left) else { return seen };
                self.payload_left -= piece.len();
            }
            let Some(head) = self.queue.peek::<8>() else { return seen };
            match Head::parse(head) {
                Head::Data { id, fin, len, .. } => {
                    self.queue.take_bytes(8).unwrap();
                    self.payload_left = u64::from(len);
                    seen.push(Seen::Data { id, fin, len });
                }
                Head::Control { version, kind, flags, len } => {
                    assert_eq!(version, self.version.on_wire());
                    let Some(bytes) = self.queue.take_bytes(8 + len as usize) else { return seen };
                    let limits = Limits::default();
                    let frame = Control::parse(self.version, kind, flags, bytes.slice(8..), &limits).unwrap();
                    seen.push(Seen::Control { frame, len });
                }
            }
        }
    }

    /// Whether the stream ended between two frames.
    pub fn is_clean(&self) -> bool {
        self.payload_left == 0 && self.queue.is_empty()
    }
}

/// Watches one sender: what it has been told when it sends, it must obey.
pub struct Checker {
    flow: FlowControl,
    out: Tap,
    inward: Tap,
    initial: i64,
    session: i64,
    /// By stream: what may still be sent, and whether FIN was.
    streams: BTreeMap<u32, (i64, bool)>,
    last_opened: u32,
    /// What was delivered while a frame's header was partly out: the frame was chosen before.
    deferred: Vec<Chunk>,
    pub frames: Vec<Seen>,
}

impl Checker {
    pub fn new(config: &Config) -> Self {
        Self {
            flow: config.flow_control,
            out: Tap::new(config.version),
            inward: Tap::new(config.version),
            initial: 65_536,
            session: 65_536,
            streams: BTreeMap::new(),
            last_opened: 0,
            deferred: Vec::new(),
            frames: Vec::new(),
        }
    }

    pub fn sent(&mut self, chunk: Chunk) {
        for seen in self.out.feed(chunk) {
            match &seen {
                Seen::Data { id, fin, len } => self.data_sent(*id, *fin, i64::from(*len)),
                Seen::Control { frame, .. } => self.control_sent(frame),
            }
            self.frames.push(seen);
        }
        if self.out.is_clean() || self.out.payload_left > 0 {
            std::mem::take(&mut self.deferred).into_iter().for_each(|chunk| self.delivered(chunk));
        }
    }

    fn data_sent(&mut self, id: u32, fin: bool, len: i64) {
        let initial = self.initial;
        let stream = self.streams.entry(id).or_insert((initial, false));
        assert!(!stream.1, "DATA on stream {id} after its FIN");
        stream.1 |= fin;
        if self.flow != FlowControl::None && len > 0 {
            assert!(len <= stream.0, "{len} bytes on stream {id}, whose window is {}", stream.0);
            stream.0 -= len;
        }
        if self.flow == FlowControl::StreamsAndSession && len > 0 {
            assert!(len <= self.session, "{len} bytes, and the session's window is {}", self.session);
            self.session -= len;
        }
    }

    fn control_sent(&mut self, frame: &Control<Bytes>) {
        match frame {
            Control::SynStream { id, fin, .. } => {
                assert!(*id > self.last_opened, "stream {id} opened after {}", self.last_opened);
                self.last_opened = *id;
                self.streams.insert(*id, (self.initial, *fin));
            }
            Control::SynReply { id, fin, .. } | Control::Headers { id, fin, .. } => {
                let stream = self.streams.entry(*id).or_insert((self.initial, false));
                assert!(!stream.1, "a head on stream {id} after its FIN");
                stream.1 |= fin;
            }
            Control::WindowUpdate { delta, .. } => assert!(*delta > 0),
            _ => {}
        }
    }

    pub fn delivered(&mut self, chunk: Chunk) {
        if !self.out.is_clean() && self.out.payload_left == 0 {
            return self.deferred.push(chunk);
        }
        for seen in self.inward.feed(chunk) {
            let Seen::Control { frame, .. } = seen else { continue };
            match frame {
                Control::WindowUpdate { id: 0, delta } => self.session += i64::from(delta),
                Control::WindowUpdate { id, delta } => {
                    let stream = self.streams.entry(id).or_insert((self.initial, false));
                    stream.0 += i64::from(delta);
                }
                Control::Settings { entries, .. } => {
                    let wanted = |e: &&Setting| e.id == Setting::INITIAL_WINDOW_SIZE;
                    if let Some(entry) = entries.iter().find(wanted) {
                        let delta = i64::from(entry.value) - self.initial;
                        self.initial += delta;
                        self.streams.values_mut().for_each(|s| s.0 += delta);
                    }
                }
                // The server's side of a stream begins when it hears of it.
                Control::SynStream { id, .. } => {
                    self.streams.insert(id, (self.initial, false));
                }
                _ => {}
            }
        }
    }

    pub fn controls(&self) -> impl Iterator<Item = &Control<Bytes>> {
        self.frames.iter().filter_map(|seen| match seen {
            Seen::Control { frame, .. } => Some(frame),
            Seen::Data { .. } => None,
        })
    }

    pub fn resets(&self) -> Vec<(u32, spdy::Status)> {
        let reset = |frame: &Control<Bytes>| match frame {
            Control::RstStream { id, status } => Some((*id, *status)),
            _ => None,
        };
        self.controls().filter_map(reset).collect()
    }

    pub fn credits(&self, stream: u32) -> Vec<u32> {
        let credit = |frame: &Control<Bytes>| match frame {
            Control::WindowUpdate { id, delta } if *id == stream => Some(*delta),
            _ => None,
        };
        self.controls().filter_map(credit).collect()
    }
}

/// A client and a server, both watched.
pub struct Pair {
    pub client: Session,
    pub server: Session,
    pub client_wire: Checker,
    pub server_wire: Checker,
    pub client_events: Vec<Event>,
    pub server_events: Vec<Event>,
    pub now: Instant,
    /// Whether data is consumed as it arrives.
    pub reads: bool,
    pub rng: Rng,
    /// Most bytes handed to a transport at once.
    pub room: u64,
    /// Most bytes delivered at once.
    pub piece: u64,
}

impl Pair {
    pub fn new(version: Version) -> Self {
        Self::with(Config::new(version), Config::new(version))
    }

    pub fn with(client: Config, server: Config) -> Self {
        Self {
            client_wire: Checker::new(&client),
            server_wire: Checker::new(&server),
            client: Session::client(client),
            server: Session::server(server),
            client_events: Vec::new(),
            server_events: Vec::new(),
            now: Instant::ZERO,
            reads: true,
            rng: Rng::new(1),
            room: 1_460,
            piece: u64::MAX,
        }
    }

    /// Carries one chunk from the client to the server; false if there was none.
    pub fn up(&mut self) -> bool {
        let Some(mut chunk) = self.client.poll_transmit(self.now, self.room) else { return false };
        assert!(!chunk.is_empty() && chunk.len() <= self.room);
        self.client_wire.sent(chunk.clone());
        while !chunk.is_empty() {
            let n = chunk.len().min(1 + self.rng.below(self.piece));
            let piece = chunk.split_to(n);
            self.server_wire.delivered(piece.clone());
            self.server.handle_input(self.now, piece).unwrap();
            drain(&mut self.server, &mut self.server_events, self.reads);
        }
        true
    }

    /// Carries one chunk from the server to the client; false if there was none.
    pub fn down(&mut self) -> bool {
        let Some(mut chunk) = self.server.poll_transmit(self.now, self.room) else { return false };
        assert!(!chunk.is_empty() && chunk.len() <= self.room);
        self.server_wire.sent(chunk.clone());
        while !chunk.is_empty() {
            let n = chunk.len().min(1 + self.rng.below(self.piece));
            let piece = chunk.split_to(n);
            self.client_wire.delivered(piece.clone());
            self.client.handle_input(self.now, piece).unwrap();
            drain(&mut self.client, &mut self.client_events, self.reads);
        }
        true
    }

    /// Carries everything there is, in an order drawn by chance.
    pub fn settle(&mut self) {
        loop {
            let up_first = self.rng.chance(0.5);
            let moved = (up_first && self.up()) || self.down() || (!up_first && self.up());
            if !moved {
                drain(&mut self.client, &mut self.client_events, self.reads);
                drain(&mut self.server, &mut self.server_events, self.reads);
                return;
            }
        }
    }

    pub fn get(&mut self, path: &str, priority: u8) -> StreamId {
        self.client.request(&get(path), Priority::new(priority), true).unwrap()
    }

    /// Answers with a body of `len` bytes, numbered as the stream.
    pub fn answer(&mut self, id: StreamId, len: u64) {
        self.server.respond(id, &response(200), len == 0).unwrap();
        if len > 0 {
            self.server.send(id, body(id.as_u32(), len), true).unwrap();
        }
    }
}

pub fn drain(session: &mut Session, events: &mut Vec<Event>, reads: bool) {
    while let Some(event) = session.poll_event() {
        if let (Event::Data { id, chunk, .. }, true) = (&event, reads) {
            session.consume(*id, chunk.len());
        }
        events.push(event);
    }
}

/// What arrived of a stream's body: its length, checked to be the range it was sent as, and whether it ended.
pub fn arrived(events: &[Event], id: StreamId) -> (u64, bool) {
    let (mut len, mut ended) = (0, false);
    for event in events {
        match event {
            Event::Data { id: of, chunk, fin } if *of == id => {
                assert!(!ended, "data of stream {id} after its end");
                if let Chunk::Body(range) = chunk {
                    assert_eq!((range.source, range.start), (id.as_u32(), len));
                }
                len += chunk.len();
                ended = *fin;
            }
            Event::Response { id: of, fin: true, .. }
            | Event::Request { id: of, fin: true, .. }
            | Event::Accepted { id: of, fin: true, .. }
                if *of == id =>
            {
                ended = true;
            }
            Event::Opened { id: of, opening, .. } if *of == id => ended = opening.fin,
            _ => {}
        }
    }
    (len, ended)
}

/// Everything a session has to send, as bytes.
pub fn all_bytes(session: &mut Session) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(chunk) = session.poll_transmit(Instant::ZERO, u64::MAX) {
        let Chunk::Bytes(bytes) = chunk else { panic!("a body range") };
        out.extend_from_slice(&bytes);
    }
    out
}

/// A frame's bytes.
pub fn bytes_of(version: Version, frame: Control<&[u8]>) -> Bytes {
    let mut out = Vec::new();
    frame.emit(version, &mut out);
    out.into()
}

pub fn data_frame(id: u32, fin: bool, payload: &[u8]) -> Bytes {
    let mut out = Head::Data { id, fin, compress: false, len: payload.len() as u32 }.emit().to_vec();
    out.extend_from_slice(payload);
    out.into()
}

pub fn events(session: &mut Session) -> Vec<Event> {
    std::iter::from_fn(|| session.poll_event()).collect()
}

/// The streams of the requests among `events`.
pub fn requests(events: &[Event]) -> Vec<StreamId> {
    let request = |event: &Event| match event {
        Event::Request { id, .. } => Some(*id),
        _ => None,
    };
    events.iter().filter_map(request).collect()
}

/// The streams that the peer opened among `events`.
pub fn opened(events: &[Event]) -> Vec<StreamId> {
    let opened = |event: &Event| match event {
        Event::Opened { id, .. } => Some(*id),
        _ => None,
    };
    events.iter().filter_map(opened).collect()
}

pub fn fields(pairs: &[(&'static str, &'static str)]) -> Fields {
    let mut fields = Fields::new();
    pairs.iter().for_each(|(name, value)| fields.push(*name, *value));
    fields
}

/// Gives `session` a frame as its peer would send it.
pub fn give(session: &mut Session, version: Version, frame: Control<&[u8]>) -> Result<(), Error> {
    session.handle_input(Instant::ZERO, bytes_of(version, frame).into())
}

/// What a session says of a peer's fault that ends it.
pub fn misbehaved(what: Misbehaviour) -> Result<(), Error> {
    Err(Error::PeerMisbehaved(what))
}
