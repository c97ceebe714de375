//! One end of a connection.
//!
//! What comes in is read in `input.rs`, what goes out is chosen in `output.rs`; `http.rs` and `streams.rs` are what the
//! session can carry. Here are the commands that both have, the events and the stream table that all work on.

mod http;
mod input;
mod output;
mod streams;
mod told;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use base::{Chunk, ChunkQueue, Fields, Instant};
use bytes::{Bytes, BytesMut};
use mux::{Lifecycle, RecvWindow, Scheduler, SendWindow};

use told::Told;

use crate::block::Block;
use crate::compress::{Compressor, Decompressor};
use crate::frame::{Control, Setting};
use crate::framer::Framer;
use crate::{
    Announce, BadHead, By, Config, DEFAULT_WINDOW, Event, FlowControl, GoAwayStatus, Mapping, Misbehaviour,
    OpenError, Opening, Priority, SendError, Stats, Status, StreamId,
};

/// No window may be larger (§2.6.8).
const MAX_WINDOW: i64 = i32::MAX as i64;
const MAX_ID: u32 = i32::MAX as u32;
/// Pings that may wait for their echo; the oldest is forgotten for the next.
const PINGS_MAX: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Client,
    Server,
}

/// How a stream's sending side ends.
#[derive(Debug)]
enum Finish {
    /// Not yet known.
    Open,
    /// With the last byte queued.
    AfterBody,
    /// With these after the last byte queued.
    Trailers(Fields),
}

#[derive(Debug)]
struct Stream {
    life: Lifecycle,
    priority: Priority,
    send: SendWindow,
    recv: RecvWindow,
    /// Queued and not yet framed.
    body: ChunkQueue,
    finish: Finish,
    /// Whether the scheduler has it.
    scheduled: bool,
    /// Whether the creator has its answer. A push is one, and what is unidirectional gets none.
    replied: bool,
    /// Whether it still counts among the open ones.
    counted: bool,
    /// Bytes handed up and not yet consumed.
    unconsumed: u64,
    /// Credit that is still to be told, in bytes.
    owed: u64,
    /// The request that a push belongs to; 0 for what is no push.
    push_of: u32,
    /// Scheme, authority and path: of requests, where pushes are matched against them, and of pushes.
    target: Option<[Bytes; 3]>,
}

#[derive(Clone, Copy, Debug)]
struct Ping {
    id: u32,
    sent: Instant,
    /// Whether the caller wants to hear of it.
    asked: bool,
}

/// One end of a SPDY connection. See the [crate's page](crate) for how to drive it.
pub struct Session {
    role: Role,
    config: Config,
    /// The latest time told.
    now: Instant,
    failed: Option<Misbehaviour>,
    events: Told,
    stats: Stats,

    streams: BTreeMap<u32, Stream>,
    next_id: u32,
    /// The highest id the peer has opened.
    peer_id: u32,
    open_ours: u32,
    open_peers: u32,
    /// Streams of the peer's that have ended and whose data is not all consumed.
    unread_peers: u32,
    goaway_sent: bool,
    goaway_received: bool,

    input: Framer,
    decompressor: Decompressor,
    recv_window: RecvWindow,

    /// Control frames, whole or with the first partly sent.
    control: BytesMut,
    /// Bytes in `control` that only answer the peer.
    answers: usize,
    /// The rest of the data frame that is being sent; it goes before `control`.
    data: ChunkQueue,
    /// Credit of the session's window that is still to be told; and the streams that are owed some. It is written once what
    /// goes before it is out, so that a peer that does not read it makes it larger and no more frames of it.
    owed: u64,
    owed_streams: VecDeque<u32>,
    ready: Scheduler<u32>,
    compressor: Compressor,
    block: Block,
    scratch: Vec<u8>,
    send_window: SendWindow,
    /// What the peer grants new streams.
    peer_initial_window: u32,
    peer_max_streams: u32,
    persisted: Vec<Setting>,

    pings: VecDeque<Ping>,
    next_ping: u32,
    /// When the peer was last heard of; `None` before any time was told.
    heard: Option<Instant>,
    /// When a keep-alive ping was sent that nothing has answered.
    probing: Option<Instant>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("role", &self.role)
            .field("version", &self.config.version)
            .field("open_streams", &self.open_streams())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// The end that opened the connection.
    pub fn client(config: Config) -> Self {
        Self::new(Role::Client, config)
    }

    /// The end that accepted it.
    pub fn server(config: Config) -> Self {
        Self::new(Role::Server, config)
    }

    fn new(role: Role, config: Config) -> Self {
        let (recv_window, credit) = RecvWindow::granting(config.session_window, DEFAULT_WINDOW);
        let mut session = Self {
            role,
            now: Instant::ZERO,
            failed: None,
            events: Told::default(),
            stats: Stats::default(),
            streams: BTreeMap::new(),
            next_id: if role == Role::Client { 1 } else { 2 },
            peer_id: 0,
            open_ours: 0,
            open_peers: 0,
            unread_peers: 0,
            goaway_sent: false,
            goaway_received: false,
            input: Framer::default(),
            decompressor: Decompressor::new(config.version),
            recv_window,
            control: BytesMut::new(),
            answers: 0,
            data: ChunkQueue::new(),
            owed: 0,
            owed_streams: VecDeque::new(),
            ready: Scheduler::new(config.fairness),
            compressor: Compressor::new(config.version, config.compression),
            block: Block::default(),
            scratch: Vec::new(),
            send_window: SendWindow::new(DEFAULT_WINDOW),
            peer_initial_window: DEFAULT_WINDOW,
            peer_max_streams: config.assumed_streams,
            persisted: config
                .settings
                .iter()
                .filter(|s| s.flags & Setting::PERSISTED != 0)
                .copied()
                .collect(),
            pings: VecDeque::new(),
            next_ping: if role == Role::Client { 1 } else { 2 },
            heard: None,
            probing: None,
            config,
        };
        session.introduce(credit);
        session
    }

    /// The first frames: SETTINGS if there is something to say, and the session's window.
    fn introduce(&mut self, credit: Option<u64>) {
        let mut entries = self.config.settings.clone();
        if self.config.announce_streams {
            entries.push(Setting::new(Setting::MAX_CONCURRENT_STREAMS, self.config.max_concurrent_streams));
        }
        let window = self.config.stream_window.size;
        let told = self.has_stream_windows() && self.config.announce == Announce::InSettings;
        if told && window != DEFAULT_WINDOW {
            entries.push(Setting::new(Setting::INITIAL_WINDOW_SIZE, window));
        }
        entries.sort_by_key(|e| e.id);
        if !entries.is_empty() {
            self.emit(Control::Settings { clear: false, entries });
        }
        if let Some(delta) = credit.filter(|_| self.has_session_window()) {
            self.emit(Control::WindowUpdate { id: 0, delta: delta as u32 });
        }
    }

    /// Whether [`request`](Self::request), [`push`](Self::push) or [`open`](Self::open) can open a stream now.
    pub fn can_open(&self) -> bool {
        self.check_open().is_ok()
    }

    /// Streams that are open in either direction.
    pub fn open_streams(&self) -> usize {
        (self.open_ours + self.open_peers) as usize
    }

    /// Whether a GOAWAY was sent or received, or the session has failed.
    pub fn is_going_away(&self) -> bool {
        self.goaway_sent || self.goaway_received || self.failed.is_some()
    }

    /// What has gone over the wire so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Bytes of body queued on a stream and not yet framed.
    pub fn queued(&self, id: StreamId) -> u64 {
        self.streams.get(&id.0).map_or(0, |s| s.body.len())
    }

    /// Whether every frame that was begun is out.
    pub fn is_between_frames(&self) -> bool {
        self.data.is_empty() && self.control.is_empty()
    }

    /// Bytes of DATA received on a stream, where a frame counts from its first byte on, and up to which the peer has been given credit;
    /// `None` if the stream is gone or has no window.
    pub fn recv_window(&self, id: StreamId) -> Option<(u64, u64)> {
        let recv = &self.streams.get(&id.0).filter(|_| self.has_stream_windows())?.recv;
        Some((recv.received(), recv.limit()))
    }

    /// Settings that the server asked to have back: put them in [`Config::settings`] of the next session with the same
    /// origin, address and port (§2.6.4), and forget them when cookies are cleared (§6.2).
    pub fn persisted_settings(&self) -> &[Setting] {
        &self.persisted
    }

    /// Asks the client to keep a setting and to bring it back at its next session (§2.6.4); a server's command. What the setting says must be
    /// for the server's own use: a limit that the client is to obey is not changed by it.
    pub fn persist(&mut self, id: u32, value: u32) {
        if self.failed.is_none() && self.role == Role::Server {
            let entries = vec![Setting { id, flags: Setting::PERSIST, value }];
            self.emit(Control::Settings { clear: false, entries });
        }
    }

    /// Opens a stream with the block that was just written.
    fn start(&mut self, opening: Opening, target: Option<[Bytes; 3]>) -> StreamId {
        let id = self.next_id;
        self.next_id += 2;
        self.open_ours += 1;
        let Opening { priority, associated, fin, unidirectional } = opening;
        let associated = associated.map_or(0, StreamId::as_u32);
        self.emit_block(|block| Control::SynStream {
            id,
            associated,
            priority,
            slot: 0,
            fin,
            unidirectional,
            block,
        });
        let is_http = self.config.mapping == Mapping::Http;
        let stream = self.insert(id, opening.life_of_creator(), priority);
        stream.replied = unidirectional;
        stream.push_of = if is_http { associated } else { 0 };
        stream.target = target;
        self.settle(id);
        StreamId(id)
    }

    /// Puts a stream into the table and tells the peer its window if nothing else does.
    fn insert(&mut self, id: u32, life: Lifecycle, priority: Priority) -> &mut Stream {
        let policy = self.config.stream_window;
        let (recv, credit) = match self.config.announce {
            Announce::InSettings => (RecvWindow::new(policy, DEFAULT_WINDOW), None),
            Announce::OnEachStream => RecvWindow::granting(policy, DEFAULT_WINDOW),
        };
        if let Some(delta) = credit.filter(|_| life.can_receive() && self.has_stream_windows()) {
            self.answer(Control::WindowUpdate { id, delta: delta as u32 });
        }
        let stream = Stream {
            life,
            priority,
            send: SendWindow::new(self.peer_initial_window),
            recv,
            body: ChunkQueue::new(),
            finish: Finish::Open,
            scheduled: false,
            replied: false,
            counted: true,
            unconsumed: 0,
            owed: 0,
            push_of: 0,
            target: None,
        };
        self.streams.entry(id).or_insert(stream)
    }

    fn check_open(&self) -> Result<(), OpenError> {
        if self.failed.is_some() || self.next_id > MAX_ID {
            Err(OpenError::Ended)
        } else if self.is_going_away() {
            Err(OpenError::GoingAway)
        } else if self.open_ours >= self.peer_max_streams {
            Err(OpenError::TooManyStreams)
        } else {
            Ok(())
        }
    }

    /// Whether the stream waits for this end's reply.
    fn check_reply(&self, id: StreamId, mapping: Mapping) -> Result<(), SendError> {
        if self.config.mapping != mapping {
            return Err(SendError::WrongMapping);
        }
        let stream = self.streams.get(&id.0).ok_or(SendError::NotOpen)?;
        if self.is_ours(id.0) || stream.replied {
            return Err(SendError::Reply);
        }
        if stream.life.can_send() { Ok(()) } else { Err(SendError::Finished) }
    }

    /// Replies with the block that was just written.
    fn reply(&mut self, id: StreamId, fin: bool) {
        if let Some(stream) = self.streams.get_mut(&id.0) {
            stream.replied = true;
        }
        let id = id.0;
        self.emit_block(|block| Control::SynReply { id, fin, block });
        if fin {
            self.end_send(id);
        }
    }

    /// Queues a part of a body; with `fin` it is the last. When it goes out is decided by priorities and windows. The
    /// queue is not bounded: see [`queued`](Self::queued).
    pub fn send(&mut self, id: StreamId, chunk: Chunk, fin: bool) -> Result<(), SendError> {
        let stream = self.sendable(id)?;
        stream.body.push(chunk);
        if fin {
            stream.finish = Finish::AfterBody;
        }
        self.wake(id.0);
        Ok(())
    }

    /// Sends more fields on a stream (§2.6.7): without `fin` now, ahead of the body queued; with `fin` after it, as
    /// trailers.
    pub fn send_headers(&mut self, id: StreamId, fields: &Fields, fin: bool) -> Result<(), SendError> {
        self.sendable(id)?;
        // Checked now, so that the caller hears of a bad field.
        self.put_fields(fields)?;
        if fin {
            self.sendable(id)?.finish = Finish::Trailers(fields.clone());
            self.wake(id.0);
        } else {
            let id = id.0;
            self.emit_block(|block| Control::Headers { id, fin, block });
        }
        Ok(())
    }

    /// Writes the block of a HEADERS frame.
    fn put_fields(&mut self, fields: &Fields) -> Result<(), BadHead> {
        match self.config.mapping {
            Mapping::Http => crate::http::put_fields(self.config.version, fields, &mut self.block),
            Mapping::Streams => streams::put(self.config.version, fields, &mut self.block),
        }
    }

    fn sendable(&mut self, id: StreamId) -> Result<&mut Stream, SendError> {
        let ours = self.is_ours(id.0);
        let stream = self.streams.get_mut(&id.0).ok_or(SendError::NotOpen)?;
        if !stream.life.can_send() || !matches!(stream.finish, Finish::Open) {
            return Err(SendError::Finished);
        }
        if !ours && !stream.replied {
            return Err(SendError::Reply);
        }
        Ok(stream)
    }

    /// Ends a stream at once; a client that no longer wants an answer says CANCEL. What it had queued is dropped, what
    /// arrives for it is discarded, and none of its events follow. With a client's CANCEL, the pushes that belong to it end
    /// too (§3.3.2). A stream that has ended needs no RST_STREAM and gets none.
    pub fn reset(&mut self, id: StreamId, status: Status) {
        self.events.forget(id);
        if self.remove(id.0) {
            let status = status.on(self.config.version);
            self.emit(Control::RstStream { id: id.0, status });
            // A server's says nothing of its pushes: the client waits for them.
            if status == Status::CANCEL && self.role == Role::Client {
                self.end_pushes(id.0, By::Us);
            }
        }
    }

    /// `n` bytes of a stream's data were read: credit may go back to the peer. More than were delivered count as all of
    /// them; a stream that is gone needs none.
    pub fn consume(&mut self, id: StreamId, n: u64) {
        let Some(stream) = self.streams.get_mut(&id.0) else { return };
        let n = n.min(stream.unconsumed);
        stream.unconsumed -= n;
        let rtt = self.stats.rtt_min;
        let credit = stream.recv.consume(self.now, n, rtt).filter(|_| stream.life.can_receive());
        if let Some(delta) = credit.filter(|_| self.config.flow_control != FlowControl::None) {
            if stream.owed == 0 {
                self.owed_streams.push_back(id.0);
            }
            stream.owed += delta;
        }
        self.credit_session(n);
        self.settle(id.0);
    }

    /// Changes what a stream's unsent data is worth here; the peer does not hear of it.
    pub fn set_priority(&mut self, id: StreamId, priority: Priority) {
        let Some(stream) = self.streams.get_mut(&id.0) else { return };
        let before = std::mem::replace(&mut stream.priority, priority);
        if stream.scheduled && self.ready.remove(before.level(), &id.0) {
            self.ready.push(priority.level(), id.0);
        }
    }

    /// Asks for an echo; [`Event::Pong`] tells the round-trip time. Of more than 64 that wait for theirs, the oldest are
    /// forgotten.
    pub fn ping(&mut self, now: Instant) {
        self.tell(now);
        if self.failed.is_none() {
            self.send_ping(true);
        }
    }

    /// Says that this end takes no more streams and opens none; those that are open go on. Do so before closing the
    /// connection, that the peer may know what was processed (§2.6.6).
    pub fn goaway(&mut self) {
        if self.failed.is_none() && !self.goaway_sent {
            self.send_goaway(GoAwayStatus::OK);
        }
    }

    /// The peer closed the connection: open streams are over.
    pub fn handle_eof(&mut self) {
        let interrupted = self.open_ids().map(StreamId).collect();
        self.streams.clear();
        self.ready = Scheduler::new(self.config.fairness);
        (self.open_ours, self.open_peers, self.unread_peers) = (0, 0, 0);
        self.data.clear();
        self.control.clear();
        self.owed = 0;
        self.owed_streams.clear();
        self.goaway_received = true;
        self.events.push(Event::Closed { interrupted });
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called; `None` without [`Config::keep_alive`] or while no
    /// stream is open.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let keep_alive = self.config.keep_alive.filter(|_| self.open_streams() > 0)?;
        match self.probing {
            Some(since) => Some(since + keep_alive.give_up),
            None => Some(self.heard? + keep_alive.idle),
        }
    }

    /// The time [`poll_timeout`](Self::poll_timeout) named has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.tell(now);
        if self.poll_timeout().is_none_or(|due| due > now) {
            return;
        }
        if self.probing.take().is_some() {
            self.heard = Some(now);
            self.events.push(Event::Unresponsive);
        } else {
            self.probing = Some(now);
            self.send_ping(false);
        }
    }

    /// What happened next. Take all there is after each input: [`Limits::heads`](crate::Limits::heads) bounds what waits.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    fn tell(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.heard.get_or_insert(now);
    }

    fn has_stream_windows(&self) -> bool {
        self.config.flow_control != FlowControl::None
    }

    fn has_session_window(&self) -> bool {
        self.config.flow_control == FlowControl::StreamsAndSession
    }

    fn is_ours(&self, id: u32) -> bool {
        (id % 2 == 1) == (self.role == Role::Client)
    }

    /// Whether the stream is or was.
    fn was_opened(&self, id: u32) -> bool {
        if self.is_ours(id) { id < self.next_id } else { id <= self.peer_id }
    }

    fn open_ids(&self) -> impl Iterator<Item = u32> {
        self.streams.iter().filter(|(_, s)| s.counted).map(|(id, _)| *id)
    }

    /// Drops a stream from the table, with what it holds. Gives false if it was no longer open.
    fn remove(&mut self, id: u32) -> bool {
        let Some(stream) = self.take_out(id) else { return false };
        if stream.scheduled {
            self.ready.remove(stream.priority.level(), &id);
        }
        if stream.counted {
            self.uncount(id);
        } else if !self.is_ours(id) {
            self.unread_peers -= 1;
        }
        self.credit_session(stream.unconsumed);
        stream.counted
    }

    fn uncount(&mut self, id: u32) {
        if self.is_ours(id) {
            self.open_ours -= 1;
        } else {
            self.open_peers -= 1;
        }
    }

    /// Lets a stream go whose directions have both ended, once everything it delivered is read.
    fn settle(&mut self, id: u32) {
        let peers = u32::from(!self.is_ours(id));
        let Some(stream) = self.streams.get_mut(&id).filter(|s| s.life.is_closed()) else { return };
        let is_read = stream.unconsumed == 0;
        if std::mem::replace(&mut stream.counted, false) {
            self.uncount(id);
            self.unread_peers += peers;
        }
        if is_read {
            self.unread_peers -= peers;
            self.take_out(id);
        }
    }

    fn take_out(&mut self, id: u32) -> Option<Stream> {
        let stream = self.streams.remove(&id)?;
        if stream.owed > 0 {
            self.owed_streams.retain(|owed| *owed != id);
        }
        Some(stream)
    }

    /// Ends the pushes that belong to a cancelled request.
    fn end_pushes(&mut self, request: u32, by: By) {
        let pushes: Vec<u32> =
            self.streams.iter().filter(|(_, s)| s.push_of == request).map(|(id, _)| *id).collect();
        for id in pushes {
            if self.remove(id) {
                self.events.push(Event::Reset { id: StreamId(id), status: Status::CANCEL, by });
            }
        }
    }

    /// `n` bytes no longer fill the session's window.
    fn credit_session(&mut self, n: u64) {
        if !self.has_session_window() {
            return;
        }
        self.owed += self.recv_window.consume(self.now, n, self.stats.rtt_min).unwrap_or(0);
    }
}
