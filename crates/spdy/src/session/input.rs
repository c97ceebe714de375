//! What comes in. Every header block is inflated, whatever becomes of its stream, or all that follow are lost (§2.4.1);
//! every byte of DATA counts against the session's window and is credited back, whoever it was for (§2.6.8).

use base::{Chunk, Instant};
use bytes::Bytes;

use super::{MAX_WINDOW, Role, Session, Stream};
use crate::frame::{Control, HEADER_LEN, Setting};
use crate::framer::Piece;
use crate::http::Parts;
use crate::{
    By, Config, Error, Event, GoAwayStatus, Mapping, Misbehaviour, Opening, Status, StreamId, Version, block,
};

/// A SYN_STREAM but for its block.
pub(super) struct Syn {
    pub(super) id: u32,
    pub(super) opening: Opening,
    slot: u8,
    pub(super) wire_len: u32,
}

/// A SYN_REPLY or HEADERS but for its block.
struct More {
    id: u32,
    fin: bool,
    wire_len: u32,
}

/// What a field holds beside its bytes: its place in a vector that has grown by doubling.
const FIELD_COST: u32 = 2 * size_of::<base::Field>() as u32;

impl Session {
    /// Takes bytes from the transport. On an error the session is over; what [`poll_transmit`](Self::poll_transmit) still
    /// gives should be sent before the connection is closed.
    pub fn handle_input(&mut self, now: Instant, chunk: Chunk) -> Result<(), Error> {
        if self.failed.is_some() {
            return Err(Error::AlreadyFailed);
        }
        self.tell(now);
        self.heard = Some(now);
        self.probing = None;
        self.input.push(chunk);
        self.read().map_err(|what| {
            self.fail(what);
            Error::PeerMisbehaved(what)
        })
    }

    /// Reads as far as there is input.
    fn read(&mut self) -> Result<(), Misbehaviour> {
        while let Some(piece) = self.input.next(self.config.version, &self.config.limits)? {
            match piece {
                Piece::Data { id, fin, compress, len } => {
                    self.stats.frames_received += 1;
                    self.data_head(id, len, compress)?;
                    if len == 0 && fin {
                        self.data(id, Bytes::new().into(), true);
                    }
                }
                Piece::Payload { id, chunk, fin } => self.data(id, chunk, fin),
                Piece::Control { frame, len } => {
                    self.stats.frames_received += 1;
                    self.control_frame(frame, len)?;
                }
            }
            self.check_backlog()?;
        }
        Ok(())
    }

    /// Whether the peer asks faster than it reads, or says more than can be taken.
    fn check_backlog(&self) -> Result<(), Misbehaviour> {
        let limits = &self.config.limits;
        if self.answers > limits.answers as usize {
            Err(Misbehaviour::TooManyAnswers)
        } else if self.events.heads() > u64::from(limits.heads) {
            Err(Misbehaviour::TooManyHeads)
        } else {
            Ok(())
        }
    }

    /// A data frame begins: windows count all of it now. A stream that may not have it is reset; the payload is then
    /// discarded as it arrives.
    fn data_head(&mut self, id: u32, len: u32, compress: bool) -> Result<(), Misbehaviour> {
        if id == 0 {
            return Err(Misbehaviour::StreamZero);
        }
        let n = u64::from(len);
        self.stats.data_received += n;
        if self.has_session_window() {
            self.recv_window.receive(n).map_err(|_| Misbehaviour::SessionWindowExceeded)?;
        }
        let (windows, ours) = (self.has_stream_windows(), self.is_ours(id));
        let is_compressed = compress && self.config.version == Version::V3;
        let Some(stream) = self.streams.get_mut(&id).filter(|s| s.counted) else {
            // After a GOAWAY the peer may have opened what was ignored here.
            if !self.was_opened(id) && !self.goaway_sent {
                self.answer(Control::RstStream { id, status: Status::INVALID_STREAM });
            }
            return Ok(());
        };
        if !stream.life.can_receive() {
            // An empty frame after the end says nothing, not even the second FIN that some send.
            if len > 0 {
                self.stream_error(id, Status::STREAM_ALREADY_CLOSED);
            }
        } else if !stream.replied && (ours || stream.push_of != 0) {
            // §2.2.2: what we asked for is answered first.
            self.stream_error(id, Status::PROTOCOL_ERROR);
        } else if is_compressed {
            // SPDY/3 §2.2.2 has a flag that no implementation had; better no body than one that is not it.
            self.stream_error(id, Status::PROTOCOL_ERROR);
        } else if windows && stream.recv.receive(n).is_err() {
            self.stream_error(id, Status::FLOW_CONTROL_ERROR);
        } else {
            self.measure_rtt();
        }
        Ok(())
    }

    /// An autotuned window needs to know the round-trip time: ask once.
    fn measure_rtt(&mut self) {
        let tuned = |policy: &mux::WindowPolicy| policy.autotune_max > 0;
        let wanted = tuned(&self.config.stream_window) || tuned(&self.config.session_window);
        if wanted && self.has_stream_windows() && self.stats.rtt_min.is_none() && self.pings.is_empty() {
            self.send_ping(false);
        }
    }

    /// Payload arrives.
    fn data(&mut self, id: u32, chunk: Chunk, fin: bool) {
        let Some(stream) = self.streams.get_mut(&id).filter(|s| s.life.can_receive()) else {
            return self.credit_session(chunk.len());
        };
        stream.unconsumed += chunk.len();
        if fin {
            stream.life.end_receive();
        }
        self.events.push(Event::Data { id: StreamId(id), chunk, fin });
        if fin {
            self.settle(id);
        }
    }

    fn control_frame(&mut self, frame: Control<Bytes>, len: u32) -> Result<(), Misbehaviour> {
        let wire_len = HEADER_LEN as u32 + len;
        match frame {
            Control::SynStream { id, associated, priority, slot, fin, unidirectional, block } => {
                let parts = self.read_block(&block, wire_len)?;
                let associated = (associated != 0).then_some(StreamId(associated));
                let opening = Opening { priority, associated, fin, unidirectional };
                self.syn_stream(Syn { id, opening, slot, wire_len }, parts)
            }
            Control::SynReply { id, fin, block } => {
                let parts = self.read_block(&block, wire_len)?;
                self.syn_reply(More { id, fin, wire_len }, parts)
            }
            Control::Headers { id, fin, block } => {
                let parts = self.read_block(&block, wire_len)?;
                self.headers(More { id, fin, wire_len }, parts)
            }
            Control::RstStream { id, status } => self.rst_stream(id, status),
            Control::Settings { clear, entries } => self.settings(clear, entries),
            Control::Ping { id } => {
                self.pinged(id);
                Ok(())
            }
            Control::GoAway { last_good_id, status } => {
                self.gone_away(last_good_id, status);
                Ok(())
            }
            Control::WindowUpdate { id, delta } => self.window_update(id, delta),
            // A stream that wants to use it is refused.
            Control::Credential { .. } | Control::Noop | Control::Unknown { .. } => Ok(()),
        }
    }

    /// Inflates and sorts a block. The inner error is its stream's.
    fn read_block(
        &mut self,
        compressed: &[u8],
        wire_len: u32,
    ) -> Result<Result<Parts, Status>, Misbehaviour> {
        let Config { version, mapping, limits, .. } = &self.config;
        let raw = self.decompressor.inflate(compressed, limits)?;
        self.stats.heads_received += u64::from(wire_len);
        self.stats.blocks_received_raw += raw.len() as u64;
        let mut parts = Parts::default();
        let read = block::parse(*version, &raw, limits, |name, value| match mapping {
            Mapping::Http => parts.push(*version, name, value),
            Mapping::Streams => parts.fields.push(name, value),
        });
        parts.cost = raw.len() as u32 + parts.fields.len() as u32 * FIELD_COST;
        Ok(read.map(|()| parts))
    }

    fn syn_stream(&mut self, syn: Syn, parts: Result<Parts, Status>) -> Result<(), Misbehaviour> {
        let id = syn.id;
        if id == 0 || self.is_ours(id) || id < self.peer_id {
            return Err(Misbehaviour::StreamId(id));
        }
        if id == self.peer_id {
            // §2.3.2: the second SYN_STREAM of a stream is that stream's error.
            self.stream_error(id, Status::PROTOCOL_ERROR);
            return Ok(());
        }
        if self.goaway_sent {
            return Ok(());
        }
        self.peer_id = id;
        let is_push = self.config.mapping == Mapping::Http && self.role == Role::Client;
        if is_push && syn.opening.associated.is_none() {
            return Err(Misbehaviour::PushWithoutAssociation);
        }
        let parts = match parts {
            Ok(_) if self.open_peers >= self.config.max_concurrent_streams => Err(Status::REFUSED_STREAM),
            // As many again may have ended before all they brought was read.
            Ok(_) if self.unread_peers >= self.config.max_concurrent_streams => Err(Status::REFUSED_STREAM),
            // It asks and does not read: what has ended no longer counts, and its answers still wait.
            Ok(_) if self.control.len() > self.config.limits.answers as usize => Err(Status::REFUSED_STREAM),
            Ok(_) if self.config.version == Version::V3 && syn.slot != 0 => Err(Status::INVALID_CREDENTIALS),
            parts => parts,
        };
        let opened = parts.and_then(|parts| match (self.config.mapping, self.role) {
            (Mapping::Http, Role::Client) => self.pushed(syn, parts),
            (Mapping::Http, Role::Server) => self.requested(syn, parts),
            (Mapping::Streams, _) => {
                self.opened(syn, parts);
                Ok(())
            }
        });
        if let Err(status) = opened {
            self.answer(Control::RstStream { id, status: status.on(self.config.version) });
        }
        Ok(())
    }

    fn syn_reply(&mut self, reply: More, parts: Result<Parts, Status>) -> Result<(), Misbehaviour> {
        let More { id, fin, wire_len } = reply;
        let ours = self.is_ours(id);
        let check = |stream: &Stream| match stream.replied {
            _ if !ours || !stream.life.can_receive() => Err(Status::PROTOCOL_ERROR),
            true => Err(Status::STREAM_IN_USE),
            false => Ok(()),
        };
        let Some(parts) = self.head(id, parts, check)? else { return Ok(()) };
        match self.config.mapping {
            Mapping::Streams => self.accepted(id, parts, fin, wire_len),
            Mapping::Http => self.responded(id, parts, fin, wire_len),
        }
        Ok(())
    }

    /// Notes that a stream's creator has its answer.
    pub(super) fn replied(&mut self, id: u32, fin: bool) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.replied = true;
        if fin {
            stream.life.end_receive();
        }
    }

    fn headers(&mut self, more: More, parts: Result<Parts, Status>) -> Result<(), Misbehaviour> {
        let More { id, fin, wire_len } = more;
        let check = |stream: &Stream| match stream.life.can_receive() {
            true => Ok(()),
            false => Err(Status::STREAM_ALREADY_CLOSED),
        };
        let Some(parts) = self.head(id, parts, check)? else { return Ok(()) };
        let Some(stream) = self.streams.get_mut(&id) else { unreachable!("it has just been checked") };
        // The rest of a push whose SYN_STREAM only named it (§3.3.1).
        if stream.push_of != 0 && !stream.replied && parts.has_status() {
            self.responded(id, parts, fin, wire_len);
            return Ok(());
        }
        if fin {
            stream.life.end_receive();
        }
        let Parts { fields, cost, .. } = parts;
        self.events.push_head(Event::Headers { id: StreamId(id), fields, fin }, cost);
        self.settle(id);
        Ok(())
    }

    /// What a SYN_REPLY or HEADERS holds, if its stream is open and neither `check` nor its block finds a fault, which is
    /// the stream's error.
    fn head(
        &mut self,
        id: u32,
        parts: Result<Parts, Status>,
        check: impl FnOnce(&Stream) -> Result<(), Status>,
    ) -> Result<Option<Parts>, Misbehaviour> {
        let Some(stream) = self.expect(id)? else { return Ok(None) };
        let parts = check(stream).and(parts);
        if let Err(status) = parts {
            self.stream_error(id, status);
        }
        Ok(parts.ok())
    }

    /// A frame's stream, if it is open. A frame for one that was is ignored, as it may have crossed our RST_STREAM; one
    /// for a stream that never was gets INVALID_STREAM.
    fn expect(&mut self, id: u32) -> Result<Option<&Stream>, Misbehaviour> {
        if id == 0 {
            return Err(Misbehaviour::StreamZero);
        }
        if self.streams.get(&id).is_some_and(|s| s.counted) {
            return Ok(self.streams.get(&id));
        }
        if !self.was_opened(id) && !self.goaway_sent {
            self.answer(Control::RstStream { id, status: Status::INVALID_STREAM });
        }
        Ok(None)
    }

    fn rst_stream(&mut self, id: u32, status: Status) -> Result<(), Misbehaviour> {
        if id == 0 {
            return Err(Misbehaviour::StreamZero);
        }
        if self.remove(id) {
            self.events.push(Event::Reset { id: StreamId(id), status, by: By::Peer });
        }
        // Also when the answer itself is all sent: its pushes need not be, and the client has forgotten them.
        if status == Status::CANCEL && self.role == Role::Server {
            self.end_pushes(id, By::Peer);
        }
        Ok(())
    }

    /// The stream is over by the peer's fault.
    pub(super) fn stream_error(&mut self, id: u32, status: Status) {
        let status = status.on(self.config.version);
        self.answer(Control::RstStream { id, status });
        if self.remove(id) {
            self.events.push(Event::Reset { id: StreamId(id), status, by: By::Us });
        }
    }

    /// §2.6.4: of two entries with one id the first counts; of two frames, the last.
    fn settings(&mut self, clear: bool, entries: Vec<Setting>) -> Result<(), Misbehaviour> {
        let client = self.role == Role::Client;
        if clear && client {
            self.persisted.clear();
        }
        for (i, entry) in entries.iter().enumerate() {
            if entries[..i].iter().any(|e| e.id == entry.id) {
                continue;
            }
            if client && entry.flags & Setting::PERSIST != 0 {
                self.persisted.retain(|e| e.id != entry.id);
                if self.persisted.len() < self.config.limits.settings as usize {
                    self.persisted.push(Setting { flags: Setting::PERSISTED, ..*entry });
                }
            }
            match entry.id {
                Setting::MAX_CONCURRENT_STREAMS => self.peer_max_streams = entry.value,
                Setting::INITIAL_WINDOW_SIZE => self.initial_window(entry.value)?,
                _ => {}
            }
        }
        self.events.push(Event::Settings(entries));
        Ok(())
    }

    /// Every stream's window moves by the difference (§2.6.8), and may become negative.
    fn initial_window(&mut self, size: u32) -> Result<(), Misbehaviour> {
        if !self.has_stream_windows() {
            return Ok(());
        }
        if i64::from(size) > MAX_WINDOW {
            return Err(Misbehaviour::WindowOverflow);
        }
        let delta = i64::from(size) - i64::from(self.peer_initial_window);
        self.peer_initial_window = size;
        let ids: Vec<u32> = self.open_ids().collect();
        for id in ids {
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            if stream.send.shift(delta, MAX_WINDOW).is_err() {
                return Err(Misbehaviour::WindowOverflow);
            }
            if stream.scheduled && stream.send.available() == 0 {
                stream.scheduled = false;
                self.ready.remove(stream.priority.level(), &id);
            }
            self.wake(id);
        }
        Ok(())
    }

    /// An id of our parity is an answer or nothing; any other is a question (§2.6.5).
    fn pinged(&mut self, id: u32) {
        if !self.is_ours(id) {
            return self.answer(Control::Ping { id });
        }
        let Some(at) = self.pings.iter().position(|p| p.id == id) else { return };
        let Some(ping) = self.pings.remove(at) else { return };
        let rtt = self.now.since(ping.sent);
        self.stats.rtt_min = Some(self.stats.rtt_min.map_or(rtt, |least| least.min(rtt)));
        if ping.asked {
            self.events.push(Event::Pong { rtt });
        }
    }

    fn gone_away(&mut self, last_good_id: u32, status: GoAwayStatus) {
        self.goaway_received = true;
        let lost = |id: &u32| self.is_ours(*id) && *id > last_good_id;
        let unprocessed: Vec<u32> = self.open_ids().filter(lost).collect();
        for id in &unprocessed {
            self.remove(*id);
        }
        let unprocessed = unprocessed.into_iter().map(StreamId).collect();
        self.events.push(Event::GoAway { last_good_id, status, unprocessed });
    }

    /// Streams that are closed or never were may be credited: the frame crossed something of ours (§2.3.6).
    fn window_update(&mut self, id: u32, delta: u32) -> Result<(), Misbehaviour> {
        if id == 0 {
            if !self.has_session_window() {
                return Ok(());
            }
            if delta == 0 {
                return Err(Misbehaviour::EmptyWindowUpdate);
            }
            return self
                .send_window
                .credit(u64::from(delta), MAX_WINDOW)
                .map_err(|_| Misbehaviour::WindowOverflow);
        }
        if !self.has_stream_windows() {
            return Ok(());
        }
        let Some(stream) = self.streams.get_mut(&id).filter(|s| s.counted) else { return Ok(()) };
        if delta == 0 {
            self.stream_error(id, Status::PROTOCOL_ERROR);
        } else if stream.send.credit(u64::from(delta), MAX_WINDOW).is_err() {
            self.stream_error(id, Status::FLOW_CONTROL_ERROR);
        } else {
            self.wake(id);
        }
        Ok(())
    }
}
