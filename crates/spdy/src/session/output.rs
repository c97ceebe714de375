//! What goes out: control frames in the order they were made, and then, one data frame at a time, whose turn it is.

use base::{Chunk, Instant};
use bytes::Bytes;

use super::{Finish, MAX_WINDOW, PINGS_MAX, Ping, Session};
use crate::frame::{Control, HEADER_LEN, Head};
use crate::{GoAwayStatus, Misbehaviour};

/// A data frame is not made smaller than this to fit the transport's room; it goes out in pieces instead.
const SMALLEST: u64 = 128;

impl Session {
    /// The next bytes for the transport, at most `max`; `None` if there is nothing to send now. Control frames go first.
    /// A data frame is chosen, and made to fit `max`, only when the one before is out: ask when the transport has room.
    pub fn poll_transmit(&mut self, now: Instant, max: u64) -> Option<Chunk> {
        self.tell(now);
        if max == 0 {
            return None;
        }
        if self.data.is_empty() && self.control.is_empty() {
            self.tell_credit();
        }
        if self.data.is_empty() && self.control.is_empty() {
            self.frame_data(max);
        }
        if let Some(chunk) = self.data.pop(max) {
            return Some(chunk);
        }
        if self.control.is_empty() {
            return None;
        }
        let n = usize::try_from(max).unwrap_or(usize::MAX).min(self.control.len());
        let chunk = self.control.split_to(n).freeze();
        // What is left cannot hold more of them than it is long.
        self.answers = self.answers.min(self.control.len());
        Some(Chunk::Bytes(chunk))
    }

    /// Writes the credit that is owed, a frame for each window.
    fn tell_credit(&mut self) {
        for i in 0..self.owed_streams.len() {
            let id = self.owed_streams[i];
            let Some(stream) = self.streams.get_mut(&id) else {
                unreachable!("a stream takes its debt with it")
            };
            let delta = std::mem::take(&mut stream.owed);
            if stream.life.can_receive() {
                self.credit(id, delta);
            }
        }
        self.owed_streams.clear();
        let delta = std::mem::take(&mut self.owed);
        if delta > 0 {
            self.credit(0, delta);
        }
    }

    /// More than a window's largest size is owed only to a peer that has overrun it.
    fn credit(&mut self, id: u32, delta: u64) {
        self.emit(Control::WindowUpdate { id, delta: delta.min(MAX_WINDOW as u64) as u32 });
    }

    /// Makes a data frame of the stream whose turn it is, if one can send.
    fn frame_data(&mut self, max: u64) {
        let session = if self.has_session_window() { self.send_window.available() } else { u64::MAX };
        if session == 0 {
            return;
        }
        let Some(id) = self.ready.pop() else { return };
        let windows = self.has_stream_windows();
        let Some(stream) = self.streams.get_mut(&id) else {
            unreachable!("a stream leaves the scheduler first")
        };
        stream.scheduled = false;
        let room = max.saturating_sub(HEADER_LEN as u64).max(SMALLEST);
        let most = u64::from(self.config.max_data_frame.clamp(1, (1 << 24) - 1));
        let window = if windows { stream.send.available() } else { u64::MAX };
        let len = stream.body.len().min(window).min(session).min(room).min(most);
        let fin = len == stream.body.len() && matches!(stream.finish, Finish::AfterBody);
        let head = Head::Data { id, fin, compress: false, len: len as u32 };
        self.data.push(Bytes::copy_from_slice(&head.emit()).into());
        let mut left = len;
        while let Some(chunk) = stream.body.pop(left) {
            left -= chunk.len();
            self.data.push(chunk);
        }
        if windows {
            stream.send.take(len);
        }
        if self.has_session_window() {
            self.send_window.take(len);
        }
        self.stats.frames_sent += 1;
        self.stats.data_sent += len;
        if fin {
            self.end_send(id);
        } else {
            self.wake(id);
        }
    }

    /// Lets a stream's turn come if it can send; and ends it if it has nothing left but its end, which no window
    /// holds back (§2.6.8).
    pub(super) fn wake(&mut self, id: u32) {
        let windows = self.has_stream_windows();
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if !stream.life.can_send() || stream.scheduled {
            return;
        }
        if !stream.body.is_empty() {
            if !windows || stream.send.available() > 0 {
                stream.scheduled = true;
                self.ready.push(stream.priority.level(), id);
            }
            return;
        }
        match std::mem::replace(&mut stream.finish, Finish::Open) {
            Finish::Open => return,
            Finish::AfterBody => {
                self.control.extend_from_slice(&Head::Data { id, fin: true, compress: false, len: 0 }.emit());
                self.stats.frames_sent += 1;
            }
            Finish::Trailers(fields) => {
                let checked = self.put_fields(&fields);
                debug_assert_eq!(checked, Ok(()), "checked when they were queued");
                self.emit_block(|block| Control::Headers { id, fin: true, block });
            }
        }
        self.end_send(id);
    }

    /// This end's last frame on the stream is on its way.
    pub(super) fn end_send(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.life.end_send();
        }
        self.settle(id);
    }

    pub(super) fn emit(&mut self, frame: Control<&[u8]>) {
        frame.emit(self.config.version, &mut self.control);
        self.stats.frames_sent += 1;
    }

    /// As [`emit`](Self::emit), for frames that the peer provoked and must read.
    pub(super) fn answer(&mut self, frame: Control<&[u8]>) {
        let before = self.control.len();
        self.emit(frame);
        self.answers += self.control.len() - before;
    }

    /// Sends the frame that `make` builds around the block that was just written.
    pub(super) fn emit_block(&mut self, make: impl for<'a> FnOnce(&'a [u8]) -> Control<&'a [u8]>) {
        self.scratch.clear();
        self.compressor.compress(&self.block, &mut self.scratch);
        let before = self.control.len();
        make(&self.scratch).emit(self.config.version, &mut self.control);
        self.stats.frames_sent += 1;
        self.stats.heads_sent += (self.control.len() - before) as u64;
        self.stats.blocks_sent_raw += self.block.bytes().len() as u64;
    }

    pub(super) fn send_ping(&mut self, asked: bool) {
        let id = self.next_ping;
        self.next_ping = self.next_ping.wrapping_add(2);
        if self.pings.len() == PINGS_MAX {
            self.pings.pop_front();
        }
        self.pings.push_back(Ping { id, sent: self.now, asked });
        self.emit(Control::Ping { id });
    }

    pub(super) fn send_goaway(&mut self, status: GoAwayStatus) {
        self.goaway_sent = true;
        self.emit(Control::GoAway { last_good_id: self.peer_id, status });
    }

    /// Ends the session: everything is dropped but what is half sent, and the peer is told.
    pub(super) fn fail(&mut self, what: Misbehaviour) {
        self.failed = Some(what);
        self.input.clear();
        self.streams.clear();
        self.ready = mux::Scheduler::new(self.config.fairness);
        (self.open_ours, self.open_peers, self.unread_peers) = (0, 0, 0);
        self.owed = 0;
        self.owed_streams.clear();
        self.send_goaway(GoAwayStatus::PROTOCOL_ERROR);
    }
}
