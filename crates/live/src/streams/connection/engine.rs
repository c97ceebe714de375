//! What speaks on an established connection: HTTP until the upgrade, SPDY from there.

use std::collections::BTreeSet;

use base::{Chunk, Instant};
use bytes::BytesMut;
use spdy::{Session, StreamId};

use crate::streams::upgrade::{Asked, Asking};

pub(super) enum Engine {
    /// Client: the request is out or on its way.
    Asking(Box<Asking>),
    /// Server: the request is awaited, or its answer is on its way.
    Asked(Box<Asked>),
    Streams(Box<Streams>),
}

pub(super) struct Streams {
    pub session: Session,
    /// What HTTP still had to send goes first.
    pub before: BytesMut,
    /// Streams that bytes were queued on and may still be.
    pub queued: BTreeSet<StreamId>,
    /// The peer has said that it goes.
    pub going_away: bool,
    /// The last GOAWAY is queued.
    pub farewell: bool,
}

impl Engine {
    pub fn wants_input(&self, leaving: bool) -> bool {
        match self {
            Engine::Asking(_) => true,
            Engine::Asked(asked) => asked.wants_input() && !leaving,
            Engine::Streams(_) => true,
        }
    }

    /// Whether the peer has said that it goes.
    pub fn is_left(&self) -> bool {
        matches!(self, Engine::Streams(streams) if streams.going_away)
    }

    /// Appends about `max` bytes to send.
    pub fn transmit(&mut self, now: Instant, max: usize, out: &mut BytesMut) {
        let full = out.len() + max;
        if let Engine::Streams(streams) = self
            && !streams.before.is_empty()
        {
            out.extend_from_slice(&streams.before.split());
        }
        while out.len() < full {
            let left = (full - out.len()) as u64;
            let chunk = match self {
                Engine::Asking(asking) => asking.transmit(left),
                Engine::Asked(asked) => asked.transmit(left),
                Engine::Streams(streams) => streams.session.poll_transmit(now, left),
            };
            let Some(Chunk::Bytes(bytes)) = chunk else { break };
            out.extend_from_slice(&bytes);
        }
    }

    /// Whether nothing waits but what the peer's windows hold back; then not even that.
    pub fn is_flushed(&mut self) -> bool {
        let Engine::Streams(streams) = self else { return true };
        let session = &streams.session;
        streams.queued.retain(|id| session.queued(*id) > 0);
        streams.queued.is_empty()
    }

    /// Queues the GOAWAY that goes last: spdystream reads nothing behind it. Gives whether it was still to be said.
    pub fn say_farewell(&mut self) -> bool {
        let Engine::Streams(streams) = self else { return false };
        streams.session.goaway();
        !std::mem::replace(&mut streams.farewell, true)
    }
}

impl Streams {
    pub fn new(session: Session, before: BytesMut) -> Self {
        Self { session, before, queued: BTreeSet::new(), going_away: false, farewell: false }
    }
}
