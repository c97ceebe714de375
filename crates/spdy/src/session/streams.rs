//! Bare streams on a session, without HTTP (§2.3): either end opens them, with any fields.

use base::Fields;

use super::Session;
use super::input::Syn;
use crate::block::Block;
use crate::http::Parts;
use crate::{BadHead, Event, Mapping, OpenError, Opening, SendError, StreamId, Version};

/// Writes a block of `fields` as they are. Names become lower-case; several of one name become one with all values.
pub(super) fn put(version: Version, fields: &Fields, block: &mut Block) -> Result<(), BadHead> {
    block.start(version);
    block.fields(fields, |_| Ok(true))?;
    block.finish()
}

impl Session {
    /// Opens a stream, from either end ([`Mapping::Streams`]). The frame is ordered now, as ids must rise on the wire;
    /// its bytes come from [`poll_transmit`](Self::poll_transmit). The peer answers with [`Event::Accepted`] or
    /// [`Event::Reset`]; a unidirectional stream it does not answer.
    ///
    /// Names go out in lower case. What is [sent](Self::send) before the answer is lawful (§2.3.1), but Go's spdystream
    /// drops it without a word: wait for [`Event::Accepted`] where the peer may be one.
    pub fn open(&mut self, fields: &Fields, opening: Opening) -> Result<StreamId, OpenError> {
        if self.config.mapping != Mapping::Streams {
            return Err(OpenError::WrongMapping);
        }
        self.check_open()?;
        put(self.config.version, fields, &mut self.block)?;
        Ok(self.start(opening, None))
    }

    /// Accepts a stream that the peer opened ([`Mapping::Streams`]); with `fin` this end sends nothing more, else
    /// [`send`](Self::send) follows. To decline, [`reset`](Self::reset) it with
    /// [`REFUSED_STREAM`](crate::Status::REFUSED_STREAM).
    pub fn accept(&mut self, id: StreamId, fields: &Fields, fin: bool) -> Result<(), SendError> {
        self.check_reply(id, Mapping::Streams)?;
        put(self.config.version, fields, &mut self.block)?;
        self.reply(id, fin);
        Ok(())
    }

    /// The peer opened a stream.
    pub(super) fn opened(&mut self, syn: Syn, parts: Parts) {
        let Syn { id, opening, wire_len, .. } = syn;
        let Parts { fields, cost, .. } = parts;
        self.open_peers += 1;
        self.insert(id, opening.life_of_recipient(), opening.priority);
        self.events.push_head(Event::Opened { id: StreamId(id), fields, opening, wire_len }, cost);
        self.settle(id);
    }

    /// The peer accepted one of ours.
    pub(super) fn accepted(&mut self, id: u32, parts: Parts, fin: bool, wire_len: u32) {
        let Parts { fields, cost, .. } = parts;
        self.replied(id, fin);
        self.events.push_head(Event::Accepted { id: StreamId(id), fields, fin, wire_len }, cost);
        self.settle(id);
    }
}
