//! What the streams of a session are by its events and its caller's commands alone, kept outside the session and held
//! against it: every stream ends once, nothing is told of it before it begins or after it ends, its data comes whole
//! and in order, and the session counts as open what is open.

use std::collections::BTreeMap;

use base::{BodyRange, Chunk};
use spdy::{Event, Session, Status, StreamId};

/// One stream, as one end has it.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Whether the peer has finished.
    pub(super) heard_out: bool,
    /// Whether this end has, but for what is queued.
    pub(super) finished: bool,
    /// Whether the peer never had anything to say.
    pub(super) is_one_way: bool,
    /// Whether it has ended, one way or the other.
    pub(super) is_over: bool,
    /// Whether it ended before its time.
    pub(super) is_broken: bool,
    /// Bytes of body queued so far, delivered, and of those not consumed.
    pub(super) queued: u64,
    pub(super) delivered: u64,
    unconsumed: u64,
    /// Where the next range of its body must start, once that is known.
    position: Option<u64>,
}

/// All streams of one end that it has told of or opened.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) streams: BTreeMap<u32, Stream>,
    /// The same, in the order in which they began; and those that had not ended when events were last taken.
    pub(super) ids: Vec<StreamId>,
    pub(super) live: Vec<StreamId>,
    /// Whether the peer counts a body from 0. It is without a gap in any case, unless the wire is damaged.
    pub(super) is_exact: bool,
    pub(super) is_damaged: bool,
}

impl Model {
    /// This end opened a stream.
    pub(super) fn open(&mut self, id: StreamId, heard_out: bool, finished: bool) {
        let stream = Stream { heard_out, finished, is_one_way: heard_out, ..Stream::default() };
        assert!(self.streams.insert(id.as_u32(), stream).is_none(), "stream {id} begins again");
        self.ids.push(id);
        self.live.push(id);
    }

    /// A command of this end's was obeyed: `len` bytes were queued, and `fin` if they are the last.
    pub(super) fn sent(&mut self, id: StreamId, len: u64, fin: bool) {
        let stream = self.live(id);
        assert!(!stream.finished, "stream {id} is sent on after its end");
        stream.queued += len;
        stream.finished = fin;
    }

    /// This end reset a stream, if it was one.
    pub(super) fn reset(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id.as_u32()) {
            (stream.is_over, stream.is_broken) = (true, true);
        }
    }

    fn live(&mut self, id: StreamId) -> &mut Stream {
        let stream = self.streams.get_mut(&id.as_u32()).expect("a stream that has begun");
        assert!(!stream.is_over, "stream {id} goes on after its end");
        stream
    }

    /// The peer says more on a stream.
    fn hear(&mut self, id: StreamId, fin: bool) -> &mut Stream {
        let stream = self.live(id);
        assert!(!stream.heard_out, "stream {id} is heard of after its FIN");
        stream.heard_out = fin;
        stream
    }

    /// A stream ends before its time.
    fn broken(&mut self, id: StreamId) {
        let stream = self.live(id);
        (stream.is_over, stream.is_broken) = (true, true);
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Request { id, fin, .. } => self.open(*id, *fin, false),
            Event::Pushed { id, fin, .. } => self.open(*id, *fin, true),
            Event::Opened { id, opening, .. } => self.open(*id, opening.fin, opening.unidirectional),
            Event::Response { id, fin, .. }
            | Event::Accepted { id, fin, .. }
            | Event::Headers { id, fin, .. } => _ = self.hear(*id, *fin),
            Event::Data { id, chunk, fin } => {
                let (first, is_damaged) = (self.is_exact.then_some(0), self.is_damaged);
                let stream = self.hear(*id, *fin);
                if let (Chunk::Body(BodyRange { source, start, len }), false) = (chunk, is_damaged) {
                    let expected = stream.position.or(first).unwrap_or(*start);
                    assert_eq!((*source, *start), (id.as_u32(), expected), "lost or doubled");
                    stream.position = Some(start + len);
                }
                stream.delivered += chunk.len();
                stream.unconsumed += chunk.len();
            }
            Event::Reset { id, .. } => self.broken(*id),
            Event::GoAway { unprocessed, .. } => unprocessed.iter().for_each(|id| self.broken(*id)),
            Event::Closed { interrupted } => {
                self.live.sort_unstable();
                assert_eq!(*interrupted, self.live, "those that were open");
                self.fail();
            }
            Event::Pong { .. } | Event::Settings(_) | Event::Unresponsive => {}
        }
    }

    /// The session has failed, and all its streams with it.
    fn fail(&mut self) {
        self.live.clone().into_iter().for_each(|id| self.reset(id));
    }

    /// Takes all events and consumes `share` eighths of their data. After that, the session must count as open what
    /// is; if it has failed, nothing.
    pub(super) fn drain(&mut self, session: &mut Session, share: u64, has_failed: bool) {
        while let Some(event) = session.poll_event() {
            self.event(&event);
            if let Event::Data { id, .. } = event {
                self.consume(session, id, share);
            }
        }
        if has_failed {
            self.fail();
        }
        let streams = &mut self.streams;
        self.live.retain(|id| {
            let Some(stream) = streams.get_mut(&id.as_u32()) else { unreachable!("it has begun") };
            stream.is_over |= stream.heard_out && stream.finished && session.queued(*id) == 0;
            !stream.is_over
        });
        assert_eq!(session.open_streams(), self.live.len(), "{:?}", self.streams);
    }

    /// Consumes `share` eighths of what a stream has delivered.
    pub(super) fn consume(&mut self, session: &mut Session, id: StreamId, share: u64) {
        let Some(stream) = self.streams.get_mut(&id.as_u32()) else { return };
        let n = stream.unconsumed * share.min(8) / 8;
        stream.unconsumed -= n;
        session.consume(id, n);
    }

    /// The connection closes: what is open is told to be interrupted, and nothing is left.
    pub(super) fn close(&mut self, session: &mut Session, has_failed: bool) {
        self.drain(session, 8, has_failed);
        session.handle_eof();
        self.drain(session, 8, has_failed);
        assert!(session.poll_transmit(base::Instant::ZERO, u64::MAX).is_none(), "nobody hears it");
        assert_eq!(session.open_streams(), 0);
    }

    /// What a caller may do with a stream, by numbers.
    pub(super) fn act(&mut self, session: &mut Session, act: Act) {
        use super::common::{fields, get, response};
        let Act { kind, id, len, fin } = act;
        let start = self.streams.get(&id.as_u32()).map_or(0, |s| s.queued);
        let done = match kind % 6 {
            0 => session.respond(id, &response(200), fin).map(|()| 0),
            1 => session.accept(id, &fields(&[("a", "b")]), fin).map(|()| 0),
            2 | 3 => {
                let range = BodyRange { source: id.as_u32(), start, len };
                session.send(id, range.into(), fin).map(|()| len)
            }
            4 => session.send_headers(id, &get("/").fields, fin).map(|()| 0),
            _ => {
                session.reset(id, if fin { Status::CANCEL } else { Status(u32::from(kind)) });
                return self.reset(id);
            }
        };
        if let Ok(len) = done {
            self.sent(id, len, fin);
        }
    }
}

/// A command, by numbers.
pub(super) struct Act {
    pub(super) kind: u8,
    pub(super) id: StreamId,
    pub(super) len: u64,
    pub(super) fin: bool,
}
