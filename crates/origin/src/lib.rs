//! Serves recorded pages.
//!
//! A [`Server`] is one origin of a page: an index, made once, from method and path to the recorded responses,
//! and its clients' connections. It parses what arrives, finds the response, waits as long as the recorded
//! server thought, and lets the engine frame it. Like everything below the worlds it does no input or output of
//! its own.
//!
//! Matching is exact: method, path and query. Where a page asked for the same thing several times, its
//! responses are given in their recorded order, and the last one from then on. Anything else gets 404. The
//! `User-Agent` is never looked at.

mod connection;

use std::cmp::Ordering;
use std::fmt;

use base::{BodyRange, Chunk, Duration, Fields, Instant, ResponseHead};
use page::{Page, ResourceId};

use connection::Connection;

/// How long a server takes from the end of a request to its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Think {
    /// As long as the recorded server did.
    Recorded,
    /// This long, every time.
    Fixed(Duration),
}

/// What is spoken on a connection.
#[derive(Clone, PartialEq, Debug)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// SPDY, with the session's settings.
    Spdy(spdy::Config),
}

/// The peer broke the protocol: what the engine says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerMisbehaved(pub String);

impl fmt::Display for PeerMisbehaved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PeerMisbehaved {}

/// One recorded response.
struct Answer<'p> {
    resource: ResourceId,
    recorded: &'p page::Resource,
    think: Duration,
    /// In the first of several answers to the same request: how many of them were given.
    given: usize,
}

/// What a connection is to send, once `think` has passed.
struct Prepared {
    head: ResponseHead,
    body: BodyRange,
    think: Duration,
}

impl Answer<'_> {
    fn compare(&self, method: &[u8], path: &[u8]) -> Ordering {
        (&*self.recorded.path, &*self.recorded.method).cmp(&(path, method))
    }
}

/// A connection's number at its server, densely from 0 in the order of [`Server::accept`].
pub type ConnectionId = u32;

/// One origin of a page and its clients' connections.
///
/// Feed a connection with [`Server::handle_input`], then drain [`Server::poll_transmit`] as far as its
/// transport has room, and come back at [`Server::poll_timeout`].
pub struct Server<'p> {
    /// By path and method, then in recorded order.
    answers: Vec<Answer<'p>>,
    connections: Vec<Connection>,
}

impl<'p> Server<'p> {
    /// The server of host number `host` of `page`.
    pub fn new(page: &'p Page, host: u32, think: Think) -> Self {
        let resources = (0..).zip(&page.resources).filter(|(_, r)| r.host == host);
        let mut answers: Vec<_> = resources
            .map(|(resource, recorded)| {
                let think = match think {
                    Think::Recorded => recorded.think,
                    Think::Fixed(time) => time,
                };
                Answer { resource, recorded, think, given: 0 }
            })
            .collect();
        answers.sort_by(|a, b| a.compare(&b.recorded.method, &b.recorded.path)); // stable: recorded order stays
        Self { answers, connections: Vec::new() }
    }

    /// A client has connected and will speak `protocol`.
    pub fn accept(&mut self, protocol: &Protocol) -> ConnectionId {
        self.connections.push(Connection::new(protocol));
        self.connections.len() as ConnectionId - 1
    }

    /// Bytes from a client.
    pub fn handle_input(
        &mut self,
        now: Instant,
        id: ConnectionId,
        chunk: Chunk,
    ) -> Result<(), PeerMisbehaved> {
        let answers = &mut self.answers;
        let find = |method: &[u8], path: &[u8]| prepare(answers, method, path);
        self.connections[id as usize].handle_input(now, chunk, find)
    }

    /// The time has come that [`Server::poll_timeout`] named.
    pub fn handle_timeout(&mut self, now: Instant, id: ConnectionId) {
        self.connections[id as usize].answer(now);
    }

    /// When the next answer on this connection will have been thought about.
    pub fn poll_timeout(&self, id: ConnectionId) -> Option<Instant> {
        self.connections[id as usize].poll_timeout()
    }

    /// The next piece to send, of `max` bytes at most (a frame's header may go past it).
    pub fn poll_transmit(&mut self, now: Instant, id: ConnectionId, max: u64) -> Option<Chunk> {
        self.connections[id as usize].poll_transmit(now, max)
    }

    /// Whether the connection is to be closed once all of it is sent.
    pub fn wants_close(&self, id: ConnectionId) -> bool {
        self.connections[id as usize].wants_close()
    }
}

/// Looks up what to answer.
fn prepare(answers: &mut [Answer<'_>], method: &[u8], path: &[u8]) -> Prepared {
    let first = answers.partition_point(|a| a.compare(method, path) == Ordering::Less);
    let count = answers[first..].iter().take_while(|a| a.compare(method, path) == Ordering::Equal).count();
    if count == 0 {
        let head = ResponseHead { status: 404, fields: Fields::new() };
        return Prepared { head, body: BodyRange::filler(0), think: Duration::ZERO };
    }
    let given = answers[first].given;
    answers[first].given += 1;
    let answer = &answers[first + given.min(count - 1)];
    // What was recorded may be the length of another representation, or absent: the engine writes the true one.
    let recorded = answer.recorded;
    let fields =
        recorded.response.iter().filter(|f| !f.name.eq_ignore_ascii_case(b"content-length")).cloned();
    let head = ResponseHead { status: recorded.status, fields: fields.collect() };
    let body = BodyRange { source: answer.resource, start: 0, len: recorded.body_len };
    Prepared { head, body, think: answer.think }
}

#[cfg(test)]
mod tests;
