//! One client's connection: requests in, answers out when their time has come.
//!
//! The engines know framing, the site knows answers; this knows what stands between them: which request an answer
//! belongs to, when it is due, what is pushed with it, when the connection may close. Read `Connection::run` first.

mod cwnd;

use std::collections::VecDeque;

use base::{Chunk, ChunkQueue, Fields, Instant, RequestHead, ResponseHead};
use bytes::Bytes;
use http1::server as http;
use spdy::{Event, Priority, Session, StreamId};

use self::cwnd::KeptCwnd;
use crate::behaviour::Conduct;
use crate::{Answer, Broken, PeerMisbehaved, Protocol, Push, Record, Site, Stats, Tier};

/// What may wait for a transport that does not take it, before no more requests are wanted: an answer is counted as
/// its body (over HTTP/1.1; SPDY's streams are few) and this much for its head.
const UNSENT_BYTES_MAX: u64 = 1 << 20;
const UNSENT_HEAD: u64 = 1 << 10;

enum Engine {
    Http1(Box<http::Connection>),
    Spdy(Box<Session>),
}

/// A request on its way to its answer.
pub(crate) struct Exchange<U> {
    /// The SPDY stream and its priority; HTTP/1.1 has none.
    stream: Option<(StreamId, Priority)>,
    pub(crate) request: RequestHead,
    received: Instant,
    /// It came while another had no answer.
    pub(crate) follows: bool,
    pub(crate) state: State<U>,
}

pub(crate) enum State<U> {
    /// The request offers an upgrade that is allowed. What it asks for is not looked at, unless the offer turns out to
    /// be none.
    Offer,
    /// Its body is arriving; the client may wait for a 100 before it sends that.
    Upload { upload: U, expects_continue: bool },
    /// The server thinks.
    Think { until: Instant, answer: Answer },
}

/// The site's head is none that can be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct BadHead;

/// What of an answer is logged.
struct Line<'a> {
    received: Instant,
    request: &'a RequestHead,
    status: u16,
    body_len: u64,
    stream: Option<StreamId>,
    pushed: bool,
    matched: Option<Tier>,
}

impl<U> Exchange<U> {
    fn due(&self) -> Option<Instant> {
        match self.state {
            State::Think { answer: Answer { broken: Some(Broken::Hang), .. }, .. } => None,
            State::Think { until, .. } => Some(until),
            State::Offer => Some(Instant::ZERO),
            State::Upload { .. } => None,
        }
    }
}

/// One client's connection to a [`Site`].
///
/// Feed it with [`handle_input`](Self::handle_input), [`handle_timeout`](Self::handle_timeout) and
/// [`handle_eof`](Self::handle_eof); after each, drain [`poll_transmit`](Self::poll_transmit) as far as the transport
/// has room, take the log with [`poll_record`](Self::poll_record) if there is one, close if
/// [`wants_close`](Self::wants_close) says so, and come back at [`poll_timeout`](Self::poll_timeout).
pub struct Connection<S: Site> {
    engine: Engine,
    /// As ALPN names it.
    protocol: &'static str,
    /// What an HTTP/1.1 connection may be upgraded to.
    upgrade: Option<spdy::Config>,
    /// What HTTP/1.1 still had to send when the connection was upgraded: it goes before anything of SPDY's.
    before_upgrade: ChunkQueue,
    /// In the order of the requests, which for HTTP/1.1 is the order of the responses.
    pub(crate) exchanges: VecDeque<Exchange<S::Upload>>,
    stats: Stats,
    log: Option<VecDeque<Record>>,
    /// No further requests are taken.
    closing: bool,
    /// Nobody is there any more.
    over: bool,
    /// Whether the engine had nothing to send when last asked, and nothing happened since.
    pub(crate) drained: bool,
    /// How it behaves, if not well.
    pub(crate) conduct: Option<Conduct>,
    /// What was given to the engine since it was last drained; see [`UNSENT_BYTES_MAX`].
    unsent: u64,
    /// The connection is reset as soon as what there is of this answer is sent: on its SPDY stream, or after all that HTTP/1.1 has.
    breaks: Option<Option<StreamId>>,
    /// The transport's congestion window, if clients are to keep it.
    kept_cwnd: Option<KeptCwnd>,
}

impl<S: Site> Connection<S> {
    /// A fresh connection that speaks `protocol`. `scheme` is that of its requests, `http` or `https`, which HTTP/1.1
    /// does not tell. A SPDY session carries HTTP, whatever its configuration says of the mapping.
    pub fn new(protocol: &Protocol, scheme: Bytes) -> Self {
        let (engine, upgrade) = match protocol {
            Protocol::Http1 { upgrade } => {
                let engine = http::Connection::with(scheme, http1::Limits::default());
                (Engine::Http1(Box::new(engine)), upgrade.clone())
            }
            Protocol::Spdy(config) => (Engine::Spdy(Box::new(session(config.clone()))), None),
        };
        Self {
            engine,
            protocol: protocol.id(),
            upgrade,
            before_upgrade: ChunkQueue::new(),
            exchanges: VecDeque::new(),
            stats: Stats::default(),
            log: None,
            closing: false,
            over: false,
            drained: false,
            conduct: None,
            unsent: 0,
            breaks: None,
            kept_cwnd: None,
        }
    }

    /// The same, keeping a [`Record`] of each answer: whoever asks for them must take them.
    pub fn with_log(mut self) -> Self {
        self.log = Some(VecDeque::new());
        self
    }

    /// What is spoken, as ALPN names it: `http/1.1`, `spdy/3.1`. An upgrade changes it.
    pub fn protocol(&self) -> &'static str {
        self.protocol
    }

    /// Counts so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Whether no request is under way and all that was to be sent has been taken: such a connection may be closed
    /// without harm.
    pub fn is_idle(&self) -> bool {
        let open = match &self.engine {
            Engine::Http1(http) => http.outstanding(),
            Engine::Spdy(session) => session.open_streams(),
        };
        open == 0 && self.exchanges.is_empty() && self.drained
    }

    /// Whether to read from the transport. If not, the client asks faster than it takes answers, or asks for no more
    /// that will be answered; read on when something has been sent.
    pub fn wants_input(&self) -> bool {
        let engine = match &self.engine {
            Engine::Http1(http) => {
                http.wants_input() && http.failure().is_none() && (!self.closing || self.is_uploading())
            }
            Engine::Spdy(_) => true,
        };
        engine && self.unsent < UNSENT_BYTES_MAX && !self.over && !self.is_cut()
    }

    /// Whether the connection is to be closed: all has been sent, and nothing will follow. Close in two steps (end the
    /// stream, then wait a little for the client's end), as RFC 9112 §9.6 asks: a reset would take the answer along.
    pub fn wants_close(&self) -> bool {
        let done = match &self.engine {
            Engine::Http1(http) => http.should_close(),
            Engine::Spdy(_) => false,
        };
        self.over || done || (self.closing && self.is_idle()) || (self.is_cut() && self.drained)
    }

    /// Whether the connection is to be reset once the client has all that was sent: an answer was cut off. Nothing more is sent
    /// from then on.
    pub fn wants_reset(&self) -> bool {
        match (self.breaks, &self.engine) {
            (None, _) => false,
            (Some(Some(id)), Engine::Spdy(session)) => session.queued(id) == 0 && session.is_between_frames(),
            (Some(_), _) => self.drained,
        }
    }

    /// Bytes from the client.
    ///
    /// # Errors
    /// If they break the protocol. What the engine has to say to that goes out all the same: drain
    /// [`poll_transmit`](Self::poll_transmit) until [`wants_close`](Self::wants_close).
    pub fn handle_input(&mut self, now: Instant, chunk: Chunk, site: &mut S) -> Result<(), PeerMisbehaved> {
        self.stats.bytes_in += chunk.len();
        if self.is_deaf() || self.wants_reset() {
            return Ok(()); // nobody reads any more
        }
        self.stir(now);
        let read = match &mut self.engine {
            Engine::Http1(http) => http.handle_input(now, chunk).map_err(|e| PeerMisbehaved(e.to_string())),
            Engine::Spdy(session) => {
                session.handle_input(now, chunk).map_err(|e| PeerMisbehaved(e.to_string()))
            }
        };
        self.run(now, site);
        if read.is_err() && matches!(self.engine, Engine::Spdy(_)) {
            self.fail_spdy();
        }
        read
    }

    /// The time has come that [`poll_timeout`](Self::poll_timeout) named.
    pub fn handle_timeout(&mut self, now: Instant, site: &mut S) {
        if let Engine::Spdy(session) = &mut self.engine {
            session.handle_timeout(now);
        }
        self.run(now, site);
    }

    /// The client has ended its stream. HTTP/1.1 still answers what was asked for; SPDY takes it as the end, as a
    /// session cannot go on without WINDOW_UPDATEs.
    ///
    /// # Errors
    /// If it ended inside a request.
    pub fn handle_eof(&mut self, now: Instant, site: &mut S) -> Result<(), PeerMisbehaved> {
        let read = match &mut self.engine {
            Engine::Http1(http) => http.handle_eof().map_err(|e| PeerMisbehaved(e.to_string())),
            Engine::Spdy(session) => {
                session.handle_eof();
                Ok(())
            }
        };
        self.run(now, site);
        read
    }

    /// Takes no further requests and closes when those that are here are answered: over SPDY a GOAWAY says so at once,
    /// over HTTP/1.1 the last answer does. [`wants_close`](Self::wants_close) tells when it is done.
    pub fn shutdown(&mut self) {
        self.closing = true;
        self.drained = false;
        if let Engine::Spdy(session) = &mut self.engine {
            session.goaway();
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called: an answer has then been thought about, or a SPDY
    /// session's PING is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.engine {
            Engine::Http1(_) => {
                self.exchanges.front().and_then(Exchange::due).or_else(|| self.idle_deadline())
            }
            Engine::Spdy(session) => {
                self.exchanges.iter().filter_map(Exchange::due).chain(session.poll_timeout()).min()
            }
        }
    }

    /// The next piece to send, of `max` bytes at most (a frame's header may go past it).
    pub fn poll_transmit(&mut self, now: Instant, max: u64) -> Option<Chunk> {
        if self.wants_reset() {
            return None;
        }
        let chunk = self.before_upgrade.pop(max).or_else(|| match &mut self.engine {
            Engine::Http1(http) => http.poll_transmit(max),
            Engine::Spdy(session) => session.poll_transmit(now, max),
        });
        let chunk = chunk.or_else(|| self.conduct.as_mut().filter(|_| max > 0)?.take_last_words());
        match &chunk {
            Some(chunk) => self.stats.bytes_out += chunk.len(),
            None if max > 0 => (self.drained, self.unsent) = (true, 0),
            None => {}
        }
        chunk
    }

    /// The next line of the log, if there is one.
    pub fn poll_record(&mut self) -> Option<Record> {
        self.log.as_mut()?.pop_front()
    }

    fn is_uploading(&self) -> bool {
        self.exchanges.back().is_some_and(|e| matches!(e.state, State::Upload { .. }))
    }

    /// The session has failed: its streams are gone.
    fn fail_spdy(&mut self) {
        self.closing = true;
        self.exchanges.clear();
    }

    /// Takes the engine's events and gives it the answers that are due. An answer may let an HTTP/1.1 engine read on.
    fn run(&mut self, now: Instant, site: &mut S) {
        self.drained = false;
        loop {
            self.take_events(now, site);
            self.permit_upload();
            if !self.answer_due(now, site) {
                break;
            }
        }
        if matches!(self.engine, Engine::Http1(_)) {
            self.mind_idleness(now);
        }
        // What the fault is in will never be complete; the engine refuses it, once all before it are answered.
        if let Engine::Http1(http) = &self.engine
            && http.failure().is_some()
            && self.is_uploading()
        {
            self.exchanges.pop_back();
        }
    }

    fn take_events(&mut self, now: Instant, site: &mut S) {
        loop {
            match &mut self.engine {
                Engine::Http1(http) => {
                    let Some(event) = http.poll_event() else { return };
                    self.handle_http1(now, event, site);
                }
                Engine::Spdy(session) => {
                    let Some(event) = session.poll_event() else { return };
                    self.handle_spdy(now, event, site);
                }
            }
        }
    }

    fn handle_http1(&mut self, now: Instant, event: http::Event, site: &mut S) {
        match event {
            http::Event::Request { head, body, expects_continue, .. } => {
                self.stats.requests += 1;
                let bodiless = matches!(body, http1::Framing::Empty | http1::Framing::Length(0));
                let state = if bodiless && offers(&self.upgrade, &head) {
                    State::Offer
                } else {
                    State::Upload { upload: site.begin(&head), expects_continue }
                };
                let follows = !self.exchanges.is_empty();
                let exchange = Exchange { stream: None, request: head, received: now, follows, state };
                self.exchanges.push_back(exchange);
            }
            http::Event::RequestComplete => {
                if let Some(exchange) = self.exchanges.back_mut() {
                    complete(exchange, now, site);
                }
                self.misorder();
            }
            http::Event::Body(chunk) => {
                if let Some(Exchange { state: State::Upload { upload, .. }, .. }) = self.exchanges.back_mut()
                {
                    site.upload(upload, &chunk);
                }
            }
            http::Event::Trailers(_) => {}
        }
    }

    fn handle_spdy(&mut self, now: Instant, event: Event, site: &mut S) {
        match event {
            Event::Request { id, head, priority, fin, .. } => {
                self.stats.requests += 1;
                let state = State::Upload { upload: site.begin(&head), expects_continue: false };
                let mut exchange = Exchange {
                    stream: Some((id, priority)),
                    request: head,
                    received: now,
                    follows: false,
                    state,
                };
                if fin {
                    complete(&mut exchange, now, site);
                }
                self.exchanges.push_back(exchange);
            }
            Event::Data { id, chunk, fin } => {
                let Engine::Spdy(session) = &mut self.engine else { return };
                session.consume(id, chunk.len());
                let Some(exchange) = on_stream(&mut self.exchanges, id) else { return };
                if let State::Upload { upload, .. } = &mut exchange.state {
                    site.upload(upload, &chunk);
                }
                if fin {
                    complete(exchange, now, site);
                }
            }
            Event::Headers { id, fin: true, .. } => {
                if let Some(exchange) = on_stream(&mut self.exchanges, id) {
                    complete(exchange, now, site); // trailers
                }
            }
            Event::Reset { id, .. } => {
                let before = self.exchanges.len();
                self.exchanges.retain(|e| e.stream.is_none_or(|(stream, _)| stream != id));
                self.breaks.take_if(|broken| *broken == Some(id)); // nobody waits for the rest of it
                self.stats.cancelled += (before - self.exchanges.len()) as u64;
            }
            Event::Closed { .. } | Event::Unresponsive => {
                self.stats.cancelled += self.exchanges.len() as u64;
                self.exchanges.clear();
                self.over = true;
            }
            Event::Settings(entries) => self.kept_cwnd.iter_mut().for_each(|kept| kept.read(&entries)),
            Event::Headers { .. } | Event::GoAway { .. } | Event::Pong { .. } => {}
            Event::Response { .. } | Event::Pushed { .. } => unreachable!("a server is not answered"),
            Event::Opened { .. } | Event::Accepted { .. } => unreachable!("the session carries HTTP"),
        }
    }

    /// Lets a client send the body that it holds back (RFC 9110 §10.1.1), once its request is the oldest.
    fn permit_upload(&mut self) {
        let Engine::Http1(http) = &mut self.engine else { return };
        if let Some(Exchange { state: State::Upload { expects_continue, .. }, .. }) =
            self.exchanges.front_mut()
            && std::mem::take(expects_continue)
        {
            // Refused if the body has turned out to be faulty by now.
            let _ = http.inform(&ResponseHead { status: 100, fields: Fields::new() });
        }
    }

    /// Hands the engine every answer whose time has come; whether there was one.
    fn answer_due(&mut self, now: Instant, site: &mut S) -> bool {
        let mut any = false;
        let mut at = 0;
        while let Some(exchange) = self.exchanges.get(at) {
            if exchange.due().is_some_and(|due| due <= now) {
                let exchange = self.exchanges.remove(at).expect("just seen");
                let http1 = exchange.stream.is_none();
                if http1 && self.withhold(&exchange) {
                    return false;
                }
                self.conclude(now, exchange, site);
                if http1 {
                    self.count_answer(now);
                }
                any = true;
            } else if exchange.stream.is_none() {
                break; // HTTP/1.1 answers in order
            } else {
                at += 1;
            }
        }
        any
    }

    fn conclude(&mut self, now: Instant, exchange: Exchange<S::Upload>, site: &mut S) {
        let Exchange { stream, request, received, follows, state } = exchange;
        let answer = match state {
            State::Think { answer, .. } => answer,
            State::Upload { .. } => unreachable!("an answer is due only after its request"),
            State::Offer => {
                if !self.switch(now, received, &request) {
                    // Its `Connection` does not name the upgrade, which is then not meant for us (RFC 9110 §7.8).
                    let upload = site.begin(&request);
                    let answer = site.answer(&request, upload);
                    let state = State::Think { until: now + answer.think, answer };
                    self.exchanges.push_front(Exchange { stream, request, received, follows, state });
                }
                return;
            }
        };
        let bodiless = |answer: &Answer| {
            answer.body.is_empty() || request.method == "HEAD" || matches!(answer.head.status, 204 | 304)
        };
        let mut line = Line {
            received,
            request: &request,
            status: answer.head.status,
            body_len: if bodiless(&answer) { 0 } else { answer.body.len() },
            stream: stream.map(|(id, _)| id),
            pushed: false,
            matched: answer.matched,
        };
        let refused = match stream {
            Some((id, priority)) => {
                let bodiless = bodiless(&answer);
                self.respond_spdy(now, received, id, priority, answer, bodiless)
            }
            None => self.respond_http1(answer),
        };
        if refused.is_err() {
            (line.status, line.body_len) = (500, 0);
            let sorry = Answer::bare(500);
            let answered = match stream {
                Some((id, priority)) => self.respond_spdy(now, received, id, priority, sorry, true),
                None => self.respond_http1(sorry),
            };
            debug_assert_eq!(answered, Ok(()), "a head without fields");
        }
        self.note(now, line);
    }

    // Below, what an engine refuses besides a bad head is what a connection that is gone, or a stream that was reset, can
    // no longer carry. Then there is nobody to answer.

    fn respond_http1(&mut self, mut answer: Answer) -> Result<(), BadHead> {
        let Engine::Http1(http) = &mut self.engine else { return Ok(()) };
        if self.closing && self.exchanges.is_empty() {
            answer.head.fields.push("Connection", "close");
        }
        use http1::CallerError::{BadField, BadStatus};
        match http.respond(&answer.head, Some(answer.body.len())) {
            Ok(()) => {
                self.unsent += UNSENT_HEAD + answer.body.len();
                if let Some(Broken::Reset(after)) = answer.broken {
                    let _ = http.send_body(answer.body.split_to(after));
                    self.breaks = Some(None);
                    return Ok(());
                }
                let _ = http.send_body(answer.body).and_then(|()| http.finish());
                Ok(())
            }
            Err(http1::Error::Caller(BadField | BadStatus)) => Err(BadHead),
            Err(_) => Ok(()),
        }
    }

    /// Pushes go first: they must be announced before the content that refers to them (SPDY/3.1 §3.3.1).
    fn respond_spdy(
        &mut self,
        now: Instant,
        received: Instant,
        id: StreamId,
        priority: Priority,
        answer: Answer,
        bodiless: bool,
    ) -> Result<(), BadHead> {
        let priority = answer.priority.unwrap_or(priority);
        // All go below the answer, and keep their order among themselves.
        let most_urgent = answer.pushes.iter().map(|p| p.priority.level()).min().unwrap_or(0);
        let down = (priority.level() + 1).saturating_sub(most_urgent);
        let mut bodies = Vec::with_capacity(answer.pushes.len());
        for push in answer.pushes {
            let priority = Priority::new(push.priority.level() + down);
            bodies.extend(self.announce(now, received, id, priority, push));
        }
        let Engine::Spdy(session) = &mut self.engine else { return Ok(()) };
        self.unsent += UNSENT_HEAD;
        session.set_priority(id, priority);
        let begun = session.respond(id, &answer.head, bodiless);
        if begun.is_ok() && !bodiless {
            let mut body = answer.body;
            let whole = match answer.broken {
                Some(Broken::Reset(after)) => {
                    body = body.split_to(after);
                    self.breaks = Some(Some(id));
                    false
                }
                _ => true,
            };
            let _ = session.send(id, body, whole);
        }
        for (id, body) in bodies {
            let _ = session.send(id, body, true);
        }
        if matches!(begun, Err(spdy::SendError::Head(_))) { Err(BadHead) } else { Ok(()) }
    }

    /// Announces a push that goes with the answer on stream `id`; `None` if the client takes no more streams.
    fn announce(
        &mut self,
        now: Instant,
        received: Instant,
        id: StreamId,
        priority: Priority,
        push: Push,
    ) -> Option<(StreamId, Chunk)> {
        let Engine::Spdy(session) = &mut self.engine else { return None };
        let Ok(stream) = session.push(id, &push.request, &push.head, priority) else {
            self.stats.pushes_withheld += 1;
            return None;
        };
        self.unsent += UNSENT_HEAD;
        let line = Line {
            received,
            request: &push.request,
            status: push.head.status,
            body_len: push.body.len(),
            stream: Some(stream),
            pushed: true,
            matched: None,
        };
        self.note(now, line);
        Some((stream, push.body))
    }

    /// Counts an answer and writes it into the log.
    fn note(&mut self, now: Instant, line: Line<'_>) {
        let Line { received, request, status, body_len, stream, pushed, matched } = line;
        let count = if pushed { &mut self.stats.pushes } else { &mut self.stats.answers };
        *count += 1;
        let Some(log) = &mut self.log else { return };
        log.push_back(Record {
            method: request.method.clone(),
            authority: request.authority.clone(),
            path: request.path.clone(),
            status,
            body_len,
            received,
            answered: now,
            protocol: self.protocol,
            stream,
            pushed,
            matched,
        });
    }

    /// Answers the oldest request with 101 and goes on as a SPDY server; false if the request did not ask for it.
    fn switch(&mut self, now: Instant, received: Instant, request: &RequestHead) -> bool {
        let Engine::Http1(http) = &mut self.engine else { return false };
        let Some(config) = self.upgrade.clone() else { return false };
        let protocol = config.version.protocol_id();
        let mut fields = Fields::new();
        fields.push("Upgrade", protocol.to_ascii_uppercase());
        if http.respond(&ResponseHead { status: 101, fields }, None).is_err() {
            return false;
        }
        while let Some(chunk) = http.poll_transmit(u64::MAX) {
            self.before_upgrade.push(chunk);
        }
        let mut session = session(config);
        while let Some(event) = http.poll_event() {
            if let http::Event::Body(chunk) = event
                && session.handle_input(now, chunk).is_err()
            {
                self.closing = true; // behind the GOAWAY that says why
            }
        }
        if self.closing {
            session.goaway();
        }
        self.engine = Engine::Spdy(Box::new(session));
        let line =
            Line { received, request, status: 101, body_len: 0, stream: None, pushed: false, matched: None };
        self.note(now, line);
        self.protocol = protocol;
        true
    }
}

fn session(config: spdy::Config) -> Session {
    Session::server(spdy::Config { mapping: spdy::Mapping::Http, ..config })
}

/// The request is complete: the site answers, and the server begins to think.
fn complete<S: Site>(exchange: &mut Exchange<S::Upload>, now: Instant, site: &mut S) {
    let waiting = State::Offer;
    exchange.state = match std::mem::replace(&mut exchange.state, waiting) {
        State::Upload { upload, .. } => {
            let answer = site.answer(&exchange.request, upload);
            State::Think { until: now + answer.think, answer }
        }
        other => other,
    };
}

fn on_stream<U>(exchanges: &mut VecDeque<Exchange<U>>, id: StreamId) -> Option<&mut Exchange<U>> {
    exchanges.iter_mut().find(|e| e.stream.is_some_and(|(stream, _)| stream == id))
}

/// Whether a request offers what the connection may be upgraded to (RFC 9110 §7.8).
fn offers(upgrade: &Option<spdy::Config>, head: &RequestHead) -> bool {
    let Some(config) = upgrade else { return false };
    let wanted = config.version.protocol_id().as_bytes();
    let fields = head.fields.iter().filter(|f| f.name.eq_ignore_ascii_case(b"upgrade"));
    let mut offered = fields.flat_map(|f| f.value.split(|b| *b == b','));
    offered.any(|o| o.trim_ascii().eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests;
