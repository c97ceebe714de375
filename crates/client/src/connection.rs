//! One connection: its engine, and which request each stream of it belongs to.

use std::collections::VecDeque;
use std::net::IpAddr;

use base::{Chunk, Instant, RequestHead};

use crate::pipeline::{Class, Pipe};
use crate::push::Pushes;
use crate::{Config, Error, Event, Priority, Request, RequestId, Stalled, Transport};

/// A connection's number, densely from 0 in the order of opening.
pub type ConnectionId = u32;

/// What a connection was opened for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// A request that waits.
    Request,
    /// To race one that takes too long; see [`Racing`](crate::Racing).
    Spare,
    /// To try another address beside one that takes too long; see [`HappyEyeballs`](crate::HappyEyeballs).
    Alternate,
    /// Requests that are expected.
    Speculative,
}

/// What is known of a connection's life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionRecord {
    /// The connection's number.
    pub id: ConnectionId,
    /// Index of the host it was opened to.
    pub host: u32,
    /// Why it was opened.
    pub purpose: Purpose,
    /// The address it is to, where the client knows its hosts' addresses; the world chooses otherwise.
    pub address: Option<IpAddr>,
    /// Opening began.
    pub opened: Instant,
    /// The TCP handshake was complete.
    pub connected: Option<Instant>,
    /// The TLS handshake began; later than [`connected`](Self::connected) if it waited for another's session.
    pub handshake: Option<Instant>,
    /// That handshake had a session to resume, which an earlier one with this host had left.
    pub resumes: bool,
    /// The TLS handshake was far enough along to carry requests.
    pub secured: Option<Instant>,
    /// It was closed or lost.
    pub closed: Option<Instant>,
    /// Requests sent on it.
    pub requests: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Connecting,
    Ready,
    Closed,
}

/// A request on its way, with its SPDY stream.
#[derive(Clone, Copy)]
pub(crate) struct Active {
    pub(crate) request: RequestId,
    /// Its place in a pipeline when it was sent, from 1; 0 if nothing ever went before or behind it.
    pub(crate) position: u32,
    stream: Option<spdy::StreamId>,
    /// The page does not read its answer.
    paused: bool,
}

/// What has come of an answer that the page does not read.
struct Unread {
    request: RequestId,
    stream: spdy::StreamId,
    event: Event,
}

/// How far a SPDY stream had come when bytes of it came, and how far its window let it go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The request that it answers.
    pub request: RequestId,
    /// When the bytes came.
    pub at: Instant,
    /// Bytes of its body received by then; a frame counts from its first byte on.
    pub received: u64,
    /// The byte that the server may not pass until it hears of more credit.
    pub edge: u64,
}

/// How the last HTTP/1.1 answer was framed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Framed {
    pub(crate) is_http10: bool,
    pub(crate) persists: bool,
    pub(crate) until_close: bool,
}

enum Engine {
    Http1(Box<http1::client::Connection>),
    Spdy(Box<spdy::Session>),
}

pub(crate) struct Connection {
    pub(crate) record: ConnectionRecord,
    pub(crate) state: State,
    pub(crate) idle_since: Instant,
    pub(crate) dirty: bool,
    /// What it is for now, as long as it is being made: whose place it takes if that fails.
    pub(crate) role: Purpose,
    /// A TLS session was there to be resumed when it was opened.
    pub(crate) resume: bool,
    /// The dial it is part of, until that is decided.
    pub(crate) dial: Option<u32>,
    /// Something was last received or sent, as far as anybody minds.
    pub(crate) stirred: Instant,
    /// Something has arrived on it.
    pub(crate) received: bool,
    /// What has arrived may have given the engine something to send.
    pub(crate) wants_to_send: bool,
    /// Requests without a complete response, oldest first.
    pub(crate) active: Vec<Active>,
    /// Requests that the server says it never looked at: they may be sent again elsewhere.
    pub(crate) returned: Vec<(RequestId, Error)>,
    /// What pipelining keeps of it.
    pub(crate) pipe: Pipe,
    engine: Engine,
    pub(crate) pushes: Pushes,
    /// What is done about streams that nobody reads; `None` if they have windows.
    stalled: Option<Stalled>,
    unread: Vec<Unread>,
    /// Bytes of it, and the most there were.
    unread_bytes: u64,
    pub(crate) unread_max: u64,
    /// Requests whose streams were ended because nobody read them.
    killed: Vec<RequestId>,
    pub(crate) progress: Option<Vec<Progress>>,
    events: VecDeque<(Event, Framed)>,
    /// That of the event last taken, if it was a head.
    pub(crate) framed: Framed,
    /// The engine said that it takes no more requests, ever.
    spent: bool,
}

impl Connection {
    /// `kept` is what the host's server had the client keep.
    pub(crate) fn new(
        record: ConnectionRecord,
        transport: Transport,
        config: &Config,
        kept: &[spdy::frame::Setting],
    ) -> Self {
        let engine = match transport {
            Transport::Http1 => Engine::Http1(Box::new(http1::client::Connection::new())),
            Transport::Spdy(version) => {
                let mut config = spdy::Config { version, ..config.spdy.clone() };
                config.settings.extend_from_slice(kept);
                Engine::Spdy(Box::new(spdy::Session::client(config)))
            }
        };
        let opened = record.opened;
        let bounded = config.spdy.flow_control != spdy::FlowControl::None;
        let stalled = (!bounded).then_some(config.stalled);
        Self {
            state: State::Connecting,
            idle_since: opened,
            dirty: false,
            role: record.purpose,
            dial: None,
            resume: false,
            record,
            stirred: opened,
            received: false,
            wants_to_send: false,
            active: Vec::new(),
            returned: Vec::new(),
            pipe: Pipe::default(),
            engine,
            pushes: Pushes::default(),
            stalled,
            unread: Vec::new(),
            unread_bytes: 0,
            unread_max: 0,
            killed: Vec::new(),
            progress: config.keeps_progress.then(Vec::new),
            events: VecDeque::new(),
            framed: Framed::default(),
            spent: false,
        }
    }

    /// What the server of a SPDY session has asked to have back, now or before.
    pub(crate) fn persisted_settings(&self) -> Option<&[spdy::frame::Setting]> {
        match &self.engine {
            Engine::Http1(_) => None,
            Engine::Spdy(session) => Some(session.persisted_settings()),
        }
    }

    /// Whether a request may be sent now.
    pub(crate) fn can_take_request(&self) -> bool {
        self.state == State::Ready
            && !self.spent
            && match &self.engine {
                Engine::Http1(_) => self.active.is_empty(),
                Engine::Spdy(session) => session.can_open(),
            }
    }

    /// Whether a request may be sent now or when something that is under way has ended.
    pub(crate) fn will_take_requests(&self) -> bool {
        self.state != State::Closed && !self.spent
    }

    /// Ready, and nobody waits for anything from it.
    pub(crate) fn is_idle(&self) -> bool {
        self.state == State::Ready && self.active.is_empty()
    }

    /// Being made, and nobody's own: those who wait count on another.
    pub(crate) fn is_aside(&self) -> bool {
        self.state == State::Connecting && matches!(self.role, Purpose::Spare | Purpose::Alternate)
    }

    /// Nothing more will come of it.
    pub(crate) fn is_spent(&self) -> bool {
        self.spent && self.active.is_empty() && self.state != State::Closed
    }

    /// How many of its requests, the youngest, nothing was sent of. SPDY's go out at once.
    pub(crate) fn unsent(&self) -> usize {
        match &self.engine {
            Engine::Http1(http) => http.unsent(),
            Engine::Spdy(_) => 0,
        }
    }

    /// Hands a request to the engine; returns how many bytes its head takes on the wire. One that a push answers takes none, and
    /// what is here of its answer is told at once.
    pub(crate) fn send_request(
        &mut self,
        id: RequestId,
        request: &Request,
        head: &RequestHead,
        priority: Priority,
    ) -> Result<u64, String> {
        if request.body_len == 0 && !request.resuming && self.claim(id, &request.head) {
            return Ok(0);
        }
        self.record.requests += 1;
        let body = Chunk::Body(base::BodyRange { source: id, start: 0, len: request.body_len });
        let before = self.head_bytes_sent();
        let stream = match &mut self.engine {
            Engine::Http1(http) => send_http1(http, head, body).map(|()| None).map_err(|e| e.to_string())?,
            Engine::Spdy(session) => {
                let priority = spdy::Priority::new(priority);
                let bodiless = body.is_empty();
                let opened = session.request(head, priority, bodiless);
                let stream = opened.map_err(|e| e.to_string())?;
                if !bodiless {
                    session.send(stream, body, true).map_err(|e| e.to_string())?;
                }
                Some(stream)
            }
        };
        let behind = self.active.len() as u32;
        if let [first] = &mut self.active[..] {
            first.position = first.position.max(1);
        }
        let position = if behind > 0 && stream.is_none() { behind + 1 } else { 0 };
        self.active.push(Active { request: id, position, stream, paused: false });
        Ok(self.head_bytes_sent() - before)
    }

    /// Whether a push answers a request.
    fn claim(&mut self, id: RequestId, head: &RequestHead) -> bool {
        let Engine::Spdy(session) = &mut self.engine else { return false };
        let Some(pushed) = self.pushes.claim(head) else { return false };
        let mut tell = |event| self.events.push_back((event, Framed::default()));
        if let Some((head, wire_len)) = pushed.response {
            tell(Event::Head { id, head, wire_len });
        }
        for chunk in pushed.body {
            session.consume(pushed.stream, chunk.len());
            tell(Event::Data { id, chunk });
        }
        if pushed.fin {
            tell(Event::Complete { id });
        } else {
            let stream = Some(pushed.stream);
            self.active.push(Active { request: id, position: 0, stream, paused: false });
        }
        true
    }

    fn head_bytes_sent(&self) -> u64 {
        match &self.engine {
            Engine::Http1(http) => http.stats().head_bytes_out,
            Engine::Spdy(session) => session.stats().heads_sent,
        }
    }

    pub(crate) fn handle_input(&mut self, now: Instant, chunk: Chunk) -> Result<(), String> {
        if self.state == State::Closed {
            return Ok(()); // bytes that crossed our close
        }
        self.received = true;
        self.stirred = now;
        match &mut self.engine {
            Engine::Http1(http) => {
                let outcome = http.handle_input(now, chunk).map_err(|e| e.to_string());
                self.drain_http1();
                outcome
            }
            Engine::Spdy(session) => {
                let outcome = session.handle_input(now, chunk).map_err(|e| e.to_string());
                self.wants_to_send = true; // credit, a reset, a PING's echo
                self.drain_spdy(now);
                outcome
            }
        }
    }

    pub(crate) fn handle_eof(&mut self, now: Instant) -> Result<(), String> {
        if self.state == State::Closed {
            return Ok(());
        }
        self.spent = true;
        match &mut self.engine {
            Engine::Http1(http) => {
                // An error here says that a response was cut short: `lose` decides what becomes of its request.
                let _ = http.handle_eof();
                self.drain_http1();
            }
            Engine::Spdy(session) => {
                session.handle_eof();
                self.drain_spdy(now);
            }
        }
        Ok(())
    }

    fn drain_http1(&mut self) {
        let Engine::Http1(http) = &mut self.engine else { unreachable!("called for HTTP/1.1") };
        while let Some(event) = http.poll_event() {
            let Some(&Active { request: id, .. }) = self.active.first() else { return };
            match event {
                http1::client::Event::Response { head, head_len, body, is_http10, persists } => {
                    let until_close = body == http1::Framing::UntilClose;
                    let framed = Framed { is_http10, persists, until_close };
                    self.events.push_back((Event::Head { id, head, wire_len: head_len }, framed));
                }
                http1::client::Event::Body(chunk) => {
                    self.events.push_back((Event::Data { id, chunk }, Framed::default()))
                }
                http1::client::Event::Complete { reusable } => {
                    self.active.remove(0);
                    self.spent |= !reusable;
                    self.events.push_back((Event::Complete { id }, Framed::default()));
                }
                http1::client::Event::Informational(_) => self.wants_to_send = true, // a body that waited for 100
                http1::client::Event::Trailers(_) => {}
            }
        }
    }

    fn drain_spdy(&mut self, now: Instant) {
        loop {
            let Engine::Spdy(session) = &mut self.engine else { unreachable!("called for SPDY") };
            let Some(event) = session.poll_event() else { break };
            let Some(event) = self.pushes.take(event, session) else { continue };
            let at = event.stream().and_then(|s| self.active.iter().position(|a| a.stream == Some(s)));
            match &event {
                spdy::Event::Data { id, chunk, .. } => self.take_data(now, at, *id, chunk.len()),
                spdy::Event::GoAway { unprocessed, .. } => self.give_back(unprocessed),
                _ => {}
            }
            if let Some(at) = at {
                self.tell(at, event);
            }
        }
    }

    /// The page takes what arrives at once, unless it reads no more; how far its stream has come is noted.
    fn take_data(&mut self, now: Instant, at: Option<usize>, stream: spdy::StreamId, len: u64) {
        let Engine::Spdy(session) = &mut self.engine else { unreachable!("called for SPDY") };
        let before = session.recv_window(stream); // the stream is gone once its last bytes are consumed
        if !at.is_some_and(|at| self.active[at].paused) {
            session.consume(stream, len);
        }
        let window = session.recv_window(stream).or(before);
        if let (Some(at), Some(progress), Some((received, edge))) = (at, &mut self.progress, window) {
            progress.push(Progress { request: self.active[at].request, at: now, received, edge });
        }
    }

    /// The server is going away, and has not looked at these streams.
    fn give_back(&mut self, unprocessed: &[spdy::StreamId]) {
        self.spent = true;
        let unprocessed = |a: &mut Active| a.stream.is_some_and(|s| unprocessed.contains(&s));
        let returned = self.active.extract_if(.., unprocessed).map(|a| a.request);
        let why = || Error::ConnectionLost("the server is going away".to_owned());
        self.returned.extend(returned.map(|id| (id, why())));
    }

    /// Something has come of the stream of a request.
    fn tell(&mut self, at: usize, event: spdy::Event) {
        let Active { request: id, paused, .. } = self.active[at];
        let fin = match event {
            spdy::Event::Response { head, fin, wire_len, .. } => {
                let head = Event::Head { id, head, wire_len: wire_len.into() };
                self.events.push_back((head, Framed::default()));
                fin
            }
            spdy::Event::Data { id: stream, chunk, fin } if paused => {
                if self.keep(id, stream, chunk) && !fin {
                    return self.kill(at, stream);
                }
                fin
            }
            spdy::Event::Data { chunk, fin, .. } => {
                if !chunk.is_empty() {
                    self.events.push_back((Event::Data { id, chunk }, Framed::default()));
                }
                fin
            }
            spdy::Event::Headers { fin, .. } => fin,
            spdy::Event::Reset { status, .. } => {
                let error = Error::StreamReset(format!("{status:?}"));
                // Who refuses a stream behind bytes of it contradicts itself.
                let has_come = self.unread.iter().any(|u| u.request == id);
                if status.is_unprocessed() && !has_come {
                    self.active.remove(at);
                    self.returned.push((id, error));
                } else {
                    self.end(at, Event::Failed { id, error });
                }
                return;
            }
            _ => false,
        };
        if fin {
            self.end(at, Event::Complete { id });
        }
    }

    /// A stream is over, which a page that reads no more is told behind what it has not read.
    fn end(&mut self, at: usize, event: Event) {
        let Active { request, stream, paused, .. } = self.active.remove(at);
        match stream.filter(|_| paused) {
            Some(stream) => self.unread.push(Unread { request, stream, event }),
            None => self.events.push_back((event, Framed::default())),
        }
    }

    /// Bytes come that nobody reads. Whether that is more than may wait.
    fn keep(&mut self, request: RequestId, stream: spdy::StreamId, chunk: Chunk) -> bool {
        self.unread_bytes += chunk.len();
        self.unread_max = self.unread_max.max(self.unread_bytes);
        self.unread.push(Unread { request, stream, event: Event::Data { id: request, chunk } });
        self.stalled == Some(Stalled::Kill) && self.unread_bytes > Stalled::KILL_AT
    }

    /// Ends a stream that nobody reads.
    fn kill(&mut self, at: usize, stream: spdy::StreamId) {
        let Engine::Spdy(session) = &mut self.engine else { unreachable!("called for SPDY") };
        session.reset(stream, spdy::Status::CANCEL);
        self.killed.push(self.active.remove(at).request);
    }

    /// The page reads no more of an answer.
    pub(crate) fn pause(&mut self, id: RequestId) {
        self.active.iter_mut().filter(|a| a.request == id).for_each(|a| a.paused = true);
    }

    /// The page reads an answer on: what has come is told. Whether the rest will not come, as its stream was ended.
    pub(crate) fn resume(&mut self, id: RequestId) -> bool {
        self.active.iter_mut().filter(|a| a.request == id).for_each(|a| a.paused = false);
        for Unread { stream, event, .. } in self.unread.extract_if(.., |u| u.request == id) {
            if let (Engine::Spdy(session), Event::Data { chunk, .. }) = (&mut self.engine, &event) {
                self.unread_bytes -= chunk.len();
                session.consume(stream, chunk.len());
            }
            self.events.push_back((event, Framed::default()));
        }
        let before = self.killed.len();
        self.killed.retain(|killed| *killed != id);
        self.killed.len() < before
    }

    /// Whether to read from the transport.
    pub(crate) fn wants_input(&self) -> bool {
        let blocks = match &self.engine {
            Engine::Http1(_) => true,
            Engine::Spdy(_) => self.stalled == Some(Stalled::Block),
        };
        !blocks || !self.active.iter().any(|a| a.paused)
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        let (event, framed) = self.events.pop_front()?;
        self.framed = framed;
        Some(event)
    }

    /// Whether a request of `class` may follow those that are under way, of which there may be `depth` then.
    pub(crate) fn can_pipeline(&self, class: Class, depth: usize) -> bool {
        self.state == State::Ready
            && !self.spent
            && self.pipe.supports
            && self.pipe.class == class
            && !self.active.is_empty()
            && self.active.len() < depth
            && matches!(&self.engine, Engine::Http1(http) if http.can_request())
    }

    /// It takes no more requests.
    pub(crate) fn retire(&mut self) {
        self.spent = true;
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant, max: u64) -> Option<Chunk> {
        if self.state != State::Ready {
            return None;
        }
        let chunk = match &mut self.engine {
            Engine::Http1(http) => http.poll_transmit(max),
            Engine::Spdy(session) => session.poll_transmit(now, max),
        };
        if chunk.is_some() {
            self.stirred = self.stirred.max(now);
        }
        chunk
    }
}

fn send_http1(
    http: &mut http1::client::Connection,
    head: &RequestHead,
    body: Chunk,
) -> Result<(), http1::Error> {
    if body.is_empty() {
        return http.request(head, None);
    }
    http.request(head, Some(body.len()))?;
    http.send_body(body)
}
