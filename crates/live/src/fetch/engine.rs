//! HTTP/1.1 and SPDY behind one face: requests by number in, what happened to them out.

use std::collections::{BTreeMap, VecDeque};

use base::{Chunk, Fields, Instant, RequestHead, ResponseHead};
use bytes::{Bytes, BytesMut};
use http1::Framing;
use http1::client as http;
use spdy::{Priority, Session, Status, StreamId};

use super::Request;

/// What happened to an exchange, or to the connection.
#[derive(Debug)]
pub(super) enum Happening {
    Head {
        exchange: usize,
        head: ResponseHead,
        wire_len: u64,
    },
    Data {
        exchange: usize,
        bytes: Bytes,
    },
    Complete {
        exchange: usize,
    },
    /// `again`: the server has not processed it.
    Failed {
        exchange: usize,
        why: String,
        again: bool,
    },
    /// A push has begun. [`Engine::adopt`] gives it its number.
    Pushed {
        stream: StreamId,
        beside: Option<usize>,
        head: RequestHead,
        response: Option<ResponseHead>,
        fin: bool,
        priority: u8,
    },
    GoAway {
        unprocessed: usize,
    },
    /// The upgrade was granted: nothing more is HTTP/1.1.
    Upgraded {
        exchange: usize,
        rest: Vec<Bytes>,
    },
}

#[derive(Debug)]
pub(super) enum Engine {
    Http1(Box<Http1>),
    Spdy(Box<Spdy>),
}

#[derive(Debug)]
pub(super) struct Http1 {
    connection: http::Connection,
    /// Exchanges whose response is not complete, oldest first.
    outstanding: VecDeque<usize>,
    depth: usize,
    last: bool,
}

#[derive(Debug)]
pub(super) struct Spdy {
    session: Session,
    /// Exchanges that are not complete.
    streams: BTreeMap<StreamId, usize>,
    /// How many requests may be among them.
    concurrent: usize,
    /// What one event of the session came to beyond what was asked for yet.
    happened: VecDeque<Happening>,
}

impl Engine {
    pub fn http1(pipeline: usize) -> Self {
        let connection = http::Connection::new();
        Engine::Http1(Box::new(Http1 {
            connection,
            outstanding: VecDeque::new(),
            depth: pipeline.max(1),
            last: false,
        }))
    }

    pub fn spdy(config: spdy::Config, concurrent: usize) -> Self {
        Engine::Spdy(Box::new(Spdy {
            session: Session::client(config),
            streams: BTreeMap::new(),
            concurrent: concurrent.max(1),
            happened: VecDeque::new(),
        }))
    }

    /// Whether a request can be sent now.
    pub fn takes_requests(&self) -> bool {
        match self {
            Engine::Http1(h) => !h.last && h.outstanding.len() < h.depth && h.connection.can_request(),
            Engine::Spdy(s) => s.session.can_open() && s.has_turn(),
        }
    }

    /// Whether no request can be sent now or later.
    pub fn is_finished(&self) -> bool {
        match self {
            Engine::Http1(h) => h.last,
            Engine::Spdy(s) => s.session.is_going_away(),
        }
    }

    /// Whether a response is awaited.
    pub fn is_waiting(&self) -> bool {
        match self {
            Engine::Http1(h) => !h.outstanding.is_empty(),
            Engine::Spdy(s) => !s.streams.is_empty(),
        }
    }

    /// Exchanges that are not complete, in the order of sending.
    pub fn outstanding(&self) -> Vec<usize> {
        match self {
            Engine::Http1(h) => h.outstanding.iter().copied().collect(),
            Engine::Spdy(s) => s.streams.values().copied().collect(),
        }
    }

    /// Sends a request; gives its stream. `upgrade` asks a HTTP/1.1 server to speak SPDY from there on.
    pub fn send(&mut self, exchange: usize, request: &Request, upgrade: bool) -> Result<Option<u32>, String> {
        let mut head = head(request);
        let body = &request.body;
        match self {
            Engine::Http1(h) => {
                if upgrade {
                    head.fields.push("Upgrade", "SPDY/3.1");
                }
                let said = |e: http1::Error| e.to_string();
                h.connection.request(&head, (!body.is_empty()).then_some(body.len() as u64)).map_err(said)?;
                if !body.is_empty() {
                    h.connection.send_body(body.clone().into()).map_err(said)?;
                }
                h.outstanding.push_back(exchange);
                Ok(None)
            }
            Engine::Spdy(s) => {
                if !body.is_empty() && head.fields.get("content-length").is_none() {
                    head.fields.push("content-length", body.len().to_string());
                }
                let priority = Priority::new(request.priority);
                let id = s.session.request(&head, priority, body.is_empty()).map_err(|e| e.to_string())?;
                if !body.is_empty() {
                    s.session.send(id, body.clone().into(), true).map_err(|e| e.to_string())?;
                }
                s.streams.insert(id, exchange);
                Ok(Some(id.as_u32()))
            }
        }
    }

    /// Gives a push its number.
    pub fn adopt(&mut self, stream: StreamId, exchange: usize) {
        if let Engine::Spdy(s) = self {
            s.streams.insert(stream, exchange);
        }
    }

    /// Refuses a push.
    pub fn refuse(&mut self, stream: StreamId) {
        if let Engine::Spdy(s) = self {
            s.session.reset(stream, Status::CANCEL);
        }
    }

    /// Wants no more of an exchange. False if that takes the connection with it.
    pub fn cancel(&mut self, exchange: usize) -> bool {
        let Engine::Spdy(s) = self else { return false };
        let stream = s.streams.iter().find(|(_, e)| **e == exchange).map(|(id, _)| *id);
        if let Some(stream) = stream {
            s.session.reset(stream, Status::CANCEL);
            s.streams.remove(&stream);
        }
        true
    }

    /// Announces the end of the connection; what is open goes on.
    pub fn goaway(&mut self) {
        match self {
            Engine::Http1(h) => h.last = true,
            Engine::Spdy(s) => s.session.goaway(),
        }
    }

    /// Takes input; an error ends the connection.
    pub fn handle_input(&mut self, now: Instant, bytes: Bytes) -> Result<(), String> {
        match self {
            Engine::Http1(h) => h.connection.handle_input(now, bytes.into()).map_err(|e| e.to_string()),
            Engine::Spdy(s) => s.session.handle_input(now, bytes.into()).map_err(|e| e.to_string()),
        }
    }

    /// Takes the end of input. What is outstanding afterwards has no (whole) response.
    pub fn handle_eof(&mut self) -> Result<(), String> {
        match self {
            Engine::Http1(h) => h.connection.handle_eof().map_err(|e| e.to_string()),
            // What is interrupted stays in `streams`, for whoever asks what is outstanding.
            Engine::Spdy(s) => {
                s.session.handle_eof();
                Ok(())
            }
        }
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Engine::Http1(_) => None,
            Engine::Spdy(s) => s.session.poll_timeout(),
        }
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        if let Engine::Spdy(s) = self {
            s.session.handle_timeout(now);
        }
    }

    /// Appends about `max` bytes to send.
    pub fn transmit(&mut self, now: Instant, max: usize, out: &mut BytesMut) {
        let mut left = max as u64;
        while left > 0 {
            let chunk = match self {
                Engine::Http1(h) => h.connection.poll_transmit(left),
                Engine::Spdy(s) => s.session.poll_transmit(now, left),
            };
            let Some(Chunk::Bytes(bytes)) = chunk else { break };
            left = left.saturating_sub(bytes.len() as u64);
            out.extend_from_slice(&bytes);
        }
    }

    pub fn poll(&mut self) -> Option<Happening> {
        match self {
            Engine::Http1(h) => h.poll(),
            Engine::Spdy(s) => s.poll(),
        }
    }
}

impl Http1 {
    fn poll(&mut self) -> Option<Happening> {
        loop {
            let event = self.connection.poll_event()?;
            let exchange = *self.outstanding.front()?;
            return Some(match event {
                http::Event::Informational(_) | http::Event::Trailers(_) => continue,
                http::Event::Response { body: Framing::Tunnel, .. } => {
                    self.last = true;
                    self.outstanding.pop_front();
                    let rest = std::iter::from_fn(|| match self.connection.poll_event()? {
                        http::Event::Body(Chunk::Bytes(bytes)) => Some(bytes),
                        _ => None,
                    });
                    Happening::Upgraded { exchange, rest: rest.collect() }
                }
                http::Event::Response { head, head_len, .. } => {
                    Happening::Head { exchange, head, wire_len: head_len }
                }
                http::Event::Body(Chunk::Bytes(bytes)) => Happening::Data { exchange, bytes },
                http::Event::Body(Chunk::Body(_)) => unreachable!("sockets give bytes"),
                http::Event::Complete { reusable } => {
                    self.outstanding.pop_front();
                    self.last |= !reusable;
                    Happening::Complete { exchange }
                }
            });
        }
    }
}

impl Spdy {
    /// Whether one request more may be under way. Pushes, which have even numbers, are none.
    fn has_turn(&self) -> bool {
        self.streams.len() < self.concurrent
            || self.streams.keys().filter(|id| id.as_u32() % 2 == 1).count() < self.concurrent
    }

    fn poll(&mut self) -> Option<Happening> {
        while self.happened.is_empty() {
            let event = self.session.poll_event()?;
            self.translate(event);
        }
        self.happened.pop_front()
    }

    fn translate(&mut self, event: spdy::Event) {
        use spdy::Event;
        let happened = match event {
            Event::Response { id, head, fin, wire_len } => {
                let Some(&exchange) = self.streams.get(&id) else { return };
                self.happened.push_back(Happening::Head { exchange, head, wire_len: wire_len.into() });
                return self.end_if(fin, id);
            }
            Event::Data { id, chunk, fin } => {
                self.session.consume(id, chunk.len());
                let Some(&exchange) = self.streams.get(&id) else { return };
                if let Chunk::Bytes(bytes) = chunk
                    && !bytes.is_empty()
                {
                    self.happened.push_back(Happening::Data { exchange, bytes });
                }
                return self.end_if(fin, id);
            }
            Event::Headers { id, fin, .. } => return self.end_if(fin, id),
            Event::Pushed { id, associated, head, response, priority, fin, .. } => {
                let beside = self.streams.get(&associated).copied();
                Happening::Pushed { stream: id, beside, head, response, priority: priority.level(), fin }
            }
            Event::Reset { id, status, .. } => {
                let Some(exchange) = self.streams.remove(&id) else { return };
                let again = status == Status::REFUSED_STREAM;
                Happening::Failed { exchange, why: format!("the stream was reset: {status:?}"), again }
            }
            Event::GoAway { unprocessed, .. } => {
                self.happened.push_back(Happening::GoAway { unprocessed: unprocessed.len() });
                for id in unprocessed {
                    if let Some(exchange) = self.streams.remove(&id) {
                        let why = "the server went away before it".to_owned();
                        self.happened.push_back(Happening::Failed { exchange, why, again: true });
                    }
                }
                return;
            }
            // What was interrupted stays in `streams`, for whoever asks what is outstanding.
            _ => return,
        };
        self.happened.push_back(happened);
    }

    fn end_if(&mut self, fin: bool, id: StreamId) {
        if fin && let Some(exchange) = self.streams.remove(&id) {
            self.happened.push_back(Happening::Complete { exchange });
        }
    }
}

/// The head of a request, as the engines take it.
fn head(request: &Request) -> RequestHead {
    let url = &request.url;
    let host = url.host_str().unwrap_or_default();
    let authority = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let mut fields = Fields::new();
    for (name, value) in [("accept", "*/*"), ("user-agent", concat!("velodrome/", env!("CARGO_PKG_VERSION")))]
    {
        if request.fields.get(name).is_none() {
            fields.push(name, value);
        }
    }
    fields = fields.iter().chain(&request.fields).cloned().collect();
    RequestHead {
        method: request.method.clone(),
        scheme: url.scheme().to_owned().into(),
        authority: authority.into(),
        path: path.into(),
        fields,
    }
}
