//! One client's connection: requests in, answers out when their time has come.

use std::collections::VecDeque;

use base::{Chunk, Instant};

use crate::{PeerMisbehaved, Prepared, Protocol};

enum Engine {
    Http1(Box<http1::server::Connection>),
    Spdy(Box<spdy::Session>),
}

/// An answer that is being thought about.
struct Due {
    /// When it is ready; `None` while its request is not complete.
    at: Option<Instant>,
    /// The SPDY stream; HTTP/1.1 has none.
    stream: Option<spdy::StreamId>,
    answer: Prepared,
    /// The request was HEAD.
    head_only: bool,
}

pub(crate) struct Connection {
    engine: Engine,
    /// In the order of the requests, which for HTTP/1.1 is the order of the responses.
    due: VecDeque<Due>,
}

impl Connection {
    pub(crate) fn new(protocol: &Protocol) -> Self {
        let engine = match protocol {
            Protocol::Http1 => Engine::Http1(Box::new(http1::server::Connection::new())),
            Protocol::Spdy(config) => Engine::Spdy(Box::new(spdy::Session::server(config.clone()))),
        };
        Self { engine, due: VecDeque::new() }
    }

    pub(crate) fn handle_input(
        &mut self,
        now: Instant,
        chunk: Chunk,
        find: impl FnMut(&[u8], &[u8]) -> Prepared,
    ) -> Result<(), PeerMisbehaved> {
        match &mut self.engine {
            Engine::Http1(http) => {
                http.handle_input(now, chunk).map_err(|e| PeerMisbehaved(e.to_string()))?
            }
            Engine::Spdy(session) => {
                session.handle_input(now, chunk).map_err(|e| PeerMisbehaved(e.to_string()))?;
            }
        }
        match &self.engine {
            Engine::Http1(_) => self.drain_http1(now, find),
            Engine::Spdy(_) => self.drain_spdy(now, find),
        }
        self.answer(now);
        Ok(())
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match self.engine {
            Engine::Http1(_) => self.due.front().and_then(|d| d.at),
            Engine::Spdy(_) => self.due.iter().filter_map(|d| d.at).min(),
        }
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant, max: u64) -> Option<Chunk> {
        match &mut self.engine {
            Engine::Http1(http) => http.poll_transmit(max),
            Engine::Spdy(session) => session.poll_transmit(now, max),
        }
    }

    pub(crate) fn wants_close(&self) -> bool {
        match &self.engine {
            Engine::Http1(http) => http.should_close(),
            Engine::Spdy(_) => false,
        }
    }

    fn drain_http1(&mut self, now: Instant, mut find: impl FnMut(&[u8], &[u8]) -> Prepared) {
        let Engine::Http1(http) = &mut self.engine else { unreachable!("called for HTTP/1.1") };
        while let Some(event) = http.poll_event() {
            match event {
                http1::server::Event::Request { head, .. } => {
                    let answer = find(&head.method, &head.path);
                    let head_only = head.method.as_ref() == b"HEAD";
                    self.due.push_back(Due { at: None, stream: None, answer, head_only });
                }
                http1::server::Event::RequestComplete => {
                    if let Some(due) = self.due.back_mut() {
                        due.at = Some(now + due.answer.think);
                    }
                }
                http1::server::Event::Body(_) | http1::server::Event::Trailers(_) => {}
            }
        }
    }

    fn drain_spdy(&mut self, now: Instant, mut find: impl FnMut(&[u8], &[u8]) -> Prepared) {
        let Engine::Spdy(session) = &mut self.engine else { unreachable!("called for SPDY") };
        while let Some(event) = session.poll_event() {
            match event {
                spdy::Event::Request { id, head, fin, .. } => {
                    let answer = find(&head.method, &head.path);
                    let head_only = head.method.as_ref() == b"HEAD";
                    let at = fin.then_some(now + answer.think);
                    self.due.push_back(Due { at, stream: Some(id), answer, head_only });
                }
                spdy::Event::Data { id, chunk, fin } => {
                    session.consume(id, chunk.len());
                    if fin {
                        complete(&mut self.due, id, now);
                    }
                }
                spdy::Event::Headers { id, fin: true, .. } => complete(&mut self.due, id, now), // trailers
                spdy::Event::Reset { id, .. } => self.due.retain(|d| d.stream != Some(id)),
                _ => {}
            }
        }
    }

    /// Hands the engine every answer whose time has come.
    pub(crate) fn answer(&mut self, now: Instant) {
        let ready = |due: &Due| due.at.is_some_and(|at| at <= now);
        match &self.engine {
            Engine::Http1(_) => {
                while self.due.front().is_some_and(ready) {
                    let due = self.due.pop_front().expect("just seen");
                    self.respond(due);
                }
            }
            Engine::Spdy(_) => {
                let mut at = 0;
                while at < self.due.len() {
                    if ready(&self.due[at]) {
                        let due = self.due.remove(at).expect("within the queue");
                        self.respond(due);
                    } else {
                        at += 1;
                    }
                }
            }
        }
    }

    fn respond(&mut self, due: Due) {
        let Prepared { head, body, .. } = due.answer;
        // An engine refuses only what a connection that is gone, or a stream that was reset, can no longer carry. Then
        // there is nobody left to answer, which is no fault of ours.
        let _ = match &mut self.engine {
            Engine::Http1(http) => {
                let begun = http.respond(&head, Some(body.len));
                begun
                    .and_then(|()| http.send_body(Chunk::Body(body)))
                    .and_then(|()| http.finish())
                    .map_err(drop)
            }
            Engine::Spdy(session) => {
                let bodiless = due.head_only || body.len == 0 || matches!(head.status, 204 | 304);
                let stream = due.stream.expect("a SPDY answer has a stream");
                let begun = session.respond(stream, &head, bodiless);
                let rest = |()| if bodiless { Ok(()) } else { session.send(stream, Chunk::Body(body), true) };
                begun.and_then(rest).map_err(drop)
            }
        };
    }
}

/// The request of a SPDY stream is complete: the server begins to think.
fn complete(due: &mut VecDeque<Due>, stream: spdy::StreamId, now: Instant) {
    if let Some(due) = due.iter_mut().find(|d| d.stream == Some(stream)) {
        due.at = Some(now + due.answer.think);
    }
}
