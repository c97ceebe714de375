//! HTTP on a session: requests, responses and pushes, both ways (§3). What the heads look like in a block is in
//! `crate::http`.

use base::{Fields, RequestHead, ResponseHead};
use bytes::Bytes;

use super::input::Syn;
use super::{Role, Session, Stream};
use crate::frame::Control;
use crate::http::{self, Parts};
use crate::{Event, Mapping, OpenError, Opening, Priority, SendError, Status, StreamId};

impl Session {
    /// Client: the open push that answers a GET of this resource, if the server is already sending it: wait for that
    /// instead of asking (§3.3.2).
    pub fn find_push(&self, scheme: &[u8], authority: &[u8], path: &[u8]) -> Option<StreamId> {
        let wanted = [scheme, authority, path];
        let is = |s: &Stream| s.push_of != 0 && s.target.as_ref().is_some_and(|t| t.iter().eq(wanted));
        self.streams.iter().find(|(_, s)| is(s)).map(|(id, _)| StreamId(*id))
    }

    /// Client: asks for something; with `fin` there is no body, else [`send`](Self::send) it. The frame is ordered now,
    /// as ids must rise on the wire; its bytes come from [`poll_transmit`](Self::poll_transmit).
    pub fn request(
        &mut self,
        head: &RequestHead,
        priority: Priority,
        fin: bool,
    ) -> Result<StreamId, OpenError> {
        self.check_http(Role::Client)?;
        self.check_open()?;
        http::put_request(self.config.version, head, &mut self.block)?;
        let pushes = self.config.max_concurrent_streams > 0;
        let target = pushes.then(|| [head.scheme.clone(), head.authority.clone(), head.path.clone()]);
        Ok(self.start(Opening { priority, fin, ..Opening::default() }, target))
    }

    /// Server: sends what was not asked for, beside an open request (§3.3.1). `head` says what it is; its method is taken
    /// to be GET and its fields are not sent. Push before sending the content that refers to it.
    pub fn push(
        &mut self,
        associated: StreamId,
        head: &RequestHead,
        response: &ResponseHead,
        priority: Priority,
    ) -> Result<StreamId, OpenError> {
        self.check_http(Role::Server)?;
        self.check_open()?;
        let ours = self.is_ours(associated.0);
        if ours || !self.streams.get(&associated.0).is_some_and(|s| s.life.can_send()) {
            return Err(OpenError::NotAssociable);
        }
        http::put_push(self.config.version, head, response, &mut self.block)?;
        let opening = Opening { priority, associated: Some(associated), fin: false, unidirectional: true };
        Ok(self.start(opening, None))
    }

    fn check_http(&self, role: Role) -> Result<(), OpenError> {
        if self.config.mapping != Mapping::Http {
            Err(OpenError::WrongMapping)
        } else if self.role != role {
            Err(OpenError::WrongRole)
        } else {
            Ok(())
        }
    }

    /// Server: answers a request; with `fin` there is no body, else [`send`](Self::send) it.
    pub fn respond(&mut self, id: StreamId, head: &ResponseHead, fin: bool) -> Result<(), SendError> {
        self.check_reply(id, Mapping::Http)?;
        http::put_response(self.config.version, head, &mut self.block)?;
        self.reply(id, fin);
        Ok(())
    }

    /// A client asks. One that leaves out a part is answered 400 (§3.2.1); one that is unidirectional may not be answered
    /// (§2.3.2.1), and so asks nothing.
    pub(super) fn requested(&mut self, syn: Syn, parts: Parts) -> Result<(), Status> {
        let Syn { id, opening, wire_len, .. } = syn;
        let Opening { priority, fin, unidirectional, .. } = opening;
        if unidirectional {
            return Err(Status::PROTOCOL_ERROR);
        }
        let cost = parts.cost;
        let Some(head) = parts.request() else {
            // The stream is not kept: what else comes for it is discarded.
            let bad_request = ResponseHead { status: 400, fields: Fields::new() };
            let written = http::put_response(self.config.version, &bad_request, &mut self.block);
            debug_assert_eq!(written, Ok(()));
            let before = self.control.len();
            self.emit_block(|block| Control::SynReply { id, fin: true, block });
            self.answers += self.control.len() - before;
            return Ok(());
        };
        self.open_peers += 1;
        self.insert(id, opening.life_of_recipient(), priority);
        self.events.push_head(Event::Request { id: StreamId(id), head, priority, fin, wire_len }, cost);
        self.settle(id);
        Ok(())
    }

    /// A push must belong to an open request and to its origin. node-spdy's lack UNIDIRECTIONAL; they are taken as if
    /// they had it.
    pub(super) fn pushed(&mut self, syn: Syn, parts: Parts) -> Result<(), Status> {
        let Syn { id, opening, wire_len, .. } = syn;
        let opening = Opening { unidirectional: true, ..opening };
        let Opening { priority, associated, fin, .. } = opening;
        let cost = parts.cost;
        let (head, response) = parts.push_of().ok_or(Status::PROTOCOL_ERROR)?;
        let associated = associated.ok_or(Status::INVALID_STREAM)?;
        let ours = self.is_ours(associated.0);
        let request = self.streams.get(&associated.0).filter(|s| s.life.can_receive() && ours);
        let Some([scheme, authority, _]) = request.and_then(|s| s.target.as_ref()) else {
            return Err(Status::INVALID_STREAM);
        };
        if *scheme != head.scheme || *authority != head.authority {
            return Err(Status::REFUSED_STREAM);
        }
        // A copy, as the parts of the head keep all of its block in memory.
        let target = [&head.scheme, &head.authority, &head.path].map(|part| Bytes::copy_from_slice(part));
        if target.iter().map(Bytes::len).sum::<usize>() > self.config.limits.push_target as usize {
            return Err(Status::REFUSED_STREAM);
        }
        let has_response = response.is_some();
        self.open_peers += 1;
        let stream = self.insert(id, opening.life_of_recipient(), priority);
        stream.push_of = associated.0;
        stream.target = Some(target);
        stream.replied = has_response;
        let id = StreamId(id);
        self.events
            .push_head(Event::Pushed { id, associated, head, response, priority, fin, wire_len }, cost);
        self.settle(id.0);
        Ok(())
    }

    /// The response of a request, or of a push that had none yet. One without a status is the stream's error (§3.2.2).
    pub(super) fn responded(&mut self, id: u32, parts: Parts, fin: bool, wire_len: u32) {
        let cost = parts.cost;
        let Some(head) = parts.response() else {
            return self.stream_error(id, Status::PROTOCOL_ERROR);
        };
        self.replied(id, fin);
        self.events.push_head(Event::Response { id: StreamId(id), head, fin, wire_len }, cost);
        self.settle(id);
    }
}
