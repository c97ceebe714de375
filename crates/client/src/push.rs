//! What servers send unasked (SPDY/3.1 §3.3): it is kept until the page asks for it, and is then the answer.
//!
//! A push is looked for on the session that the request would go out on, by scheme, authority and path, as §3.3.2 has it: while the
//! server is still sending it, and, as in Chrome, as long after as the session lasts, for the first who asks. Nobody has read what
//! nobody has asked for: its bytes fill the stream's window, and the session's, until somebody does. So pushes that the page has no
//! use for can stop a session of 64 KiB; that is how it was.

use base::{Chunk, RequestHead, ResponseHead};
use bytes::Bytes;

use crate::Client;

/// The most that are kept. Clients allow some 100 streams; the rest is cancelled.
const KEPT_MAX: usize = 1_000;

/// A push that nobody has asked for yet.
pub(crate) struct Pushed {
    pub(crate) stream: spdy::StreamId,
    url: [Bytes; 3],
    /// Its head, and the bytes that this took on the wire.
    pub(crate) response: Option<(ResponseHead, u64)>,
    pub(crate) body: Vec<Chunk>,
    /// All of it is here.
    pub(crate) fin: bool,
}

/// The pushes of a session that nobody has asked for yet, and how many there were.
#[derive(Default)]
pub(crate) struct Pushes {
    kept: Vec<Pushed>,
    pushed: u32,
    claimed: u32,
}

/// What pushes have brought.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PushTally {
    /// How many there were.
    pub pushed: u32,
    /// Those that a request was answered by.
    pub claimed: u32,
    /// Bytes of those that nobody has asked for, as far as they have come: heads on the wire, and bodies.
    pub unclaimed_bytes: u64,
}

fn url(head: &RequestHead) -> [Bytes; 3] {
    [&head.scheme, &head.authority, &head.path].map(|part| Bytes::copy_from_slice(part))
}

impl Pushes {
    /// Takes what a session tells of a push; gives it back if it is about something else. A push that answers what another does
    /// already, or is one too many, is cancelled.
    pub(crate) fn take(&mut self, event: spdy::Event, session: &mut spdy::Session) -> Option<spdy::Event> {
        if let spdy::Event::Pushed { id, head, response, fin, wire_len, .. } = event {
            let url = url(&head);
            self.pushed += 1;
            if self.kept.len() == KEPT_MAX || self.kept.iter().any(|p| p.url == url) {
                session.reset(id, spdy::Status::CANCEL);
                return None;
            }
            let response = response.map(|head| (head, wire_len.into()));
            self.kept.push(Pushed { stream: id, url, response, body: Vec::new(), fin });
            return None;
        }
        if self.kept.is_empty() {
            return Some(event);
        }
        let stream = event.stream();
        let Some(at) = self.kept.iter().position(|p| Some(p.stream) == stream) else { return Some(event) };
        let pushed = &mut self.kept[at];
        match event {
            spdy::Event::Response { head, fin, wire_len, .. } => {
                pushed.response = Some((head, wire_len.into()));
                pushed.fin = fin;
            }
            spdy::Event::Data { chunk, fin, .. } => {
                if !chunk.is_empty() {
                    pushed.body.push(chunk);
                }
                pushed.fin = fin;
            }
            spdy::Event::Headers { fin, .. } => pushed.fin = fin,
            spdy::Event::Reset { .. } => {
                self.kept.remove(at);
            }
            _ => {}
        }
        None
    }

    /// The push that answers this request, if there is one: it is the caller's then.
    pub(crate) fn claim(&mut self, head: &RequestHead) -> Option<Pushed> {
        if self.kept.is_empty() || head.method != "GET" {
            return None;
        }
        let wanted = [&head.scheme, &head.authority, &head.path];
        let at = self.kept.iter().position(|p| p.url.iter().eq(wanted))?;
        self.claimed += 1;
        Some(self.kept.remove(at))
    }

    fn tally(&self) -> PushTally {
        let head = |pushed: &Pushed| pushed.response.as_ref().map_or(0, |(_, wire_len)| *wire_len);
        let bytes = |pushed: &Pushed| head(pushed) + pushed.body.iter().map(Chunk::len).sum::<u64>();
        let unclaimed_bytes = self.kept.iter().map(bytes).sum();
        PushTally { pushed: self.pushed, claimed: self.claimed, unclaimed_bytes }
    }
}

impl Client {
    /// What pushes have brought so far, on all sessions.
    pub fn push_tally(&self) -> PushTally {
        let add = |a: PushTally, b: PushTally| PushTally {
            pushed: a.pushed + b.pushed,
            claimed: a.claimed + b.claimed,
            unclaimed_bytes: a.unclaimed_bytes + b.unclaimed_bytes,
        };
        self.connections.iter().map(|c| c.pushes.tally()).fold(PushTally::default(), add)
    }
}
