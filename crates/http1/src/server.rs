//! The server's end: requests in, responses out.

use std::collections::VecDeque;

use base::{Chunk, Fields, Instant, RequestHead, ResponseHead};
use bytes::Bytes;

use crate::body::{Body, Step};
use crate::emit::{self, Output};
use crate::head::{Length, Lines, Meta, Section, Version, is_authority, request_line};
use crate::{CallerError, Error, Framing, Limits, PeerError, Stats};

/// What came from the client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A request has begun. It is to be answered after all before it.
    Request {
        /// The request, without `Host` and the fields that the connection owns (RFC 9110 §7.6.1).
        head: RequestHead,
        /// How the body's end is found.
        body: Framing,
        /// Whether the client waits with the body until [`Connection::inform`] sends a 100 (RFC 9110 §10.1.1).
        expects_continue: bool,
        /// Bytes of the head.
        head_len: u64,
    },
    /// Bytes of the youngest request's body, as they came; or of a tunnel.
    Body(Chunk),
    /// The fields after a chunked body; only if there are any.
    Trailers(Fields),
    /// The youngest request is complete.
    RequestComplete,
}

/// A request to be answered.
#[derive(Clone, Copy, Debug)]
struct Request {
    version: Version,
    head: bool,
    connect: bool,
    upgrade: bool,
    /// Whether the client means to send more after it (RFC 9112 §9.3).
    persists: bool,
    /// Whether the client waits for a 100.
    waits: bool,
}

/// What the next bytes are.
#[derive(Debug)]
enum Expect {
    Head,
    Body(Body),
}

/// One server connection.
///
/// Commands are [`handle_input`](Self::handle_input), [`respond`](Self::respond), [`send_body`](Self::send_body) and
/// [`finish`](Self::finish); after each, drain [`poll_event`](Self::poll_event) and, when there is room,
/// [`poll_transmit`](Self::poll_transmit), and close when [`should_close`](Self::should_close) says so.
#[derive(Debug)]
pub struct Connection {
    scheme: Bytes,
    limits: Limits,
    /// Requests whose response has not begun.
    waiting: VecDeque<Request>,
    expect: Expect,
    lines: Lines,
    out: Output,
    /// Input that came while nothing was parsed.
    held: VecDeque<Chunk>,
    held_bytes: u64,
    events: VecDeque<Event>,
    /// Whether the last request has been read; what follows is dropped.
    complete: bool,
    /// Whether the last response has begun.
    closing: bool,
    /// Whether the connection carries another protocol once the request being read is complete.
    tunnel: bool,
    /// Whether the client has ended its stream.
    eof: bool,
    failed: Option<PeerError>,
    /// The status with which to refuse the faulty request, after all before it.
    refusal: Option<u16>,
    last_input: Option<Instant>,
    stats: Stats,
}

impl Default for Connection {
    fn default() -> Self {
        Self::new()
    }
}

impl Connection {
    /// A fresh connection for `http` with the usual limits.
    pub fn new() -> Self {
        Self::with(Bytes::from_static(b"http"), Limits::default())
    }

    /// A fresh connection; `scheme` is that of its requests, `http` or `https`, which their bytes do not tell.
    pub fn with(scheme: Bytes, limits: Limits) -> Self {
        Self {
            scheme,
            limits,
            waiting: VecDeque::new(),
            expect: Expect::Head,
            lines: Lines::default(),
            out: Output::default(),
            held: VecDeque::new(),
            held_bytes: 0,
            events: VecDeque::new(),
            complete: false,
            closing: false,
            tunnel: false,
            eof: false,
            failed: None,
            refusal: None,
            last_input: None,
            stats: Stats::default(),
        }
    }

    /// Number of requests whose response is not complete.
    pub fn outstanding(&self) -> usize {
        self.waiting.len() + usize::from(self.is_responding())
    }

    /// Whether input is parsed as it comes. If not, as many requests are outstanding as the limit allows, or one
    /// that may change the protocol: leave what arrives in the transport until a response has been given.
    pub fn wants_input(&self) -> bool {
        !self.is_paused()
    }

    /// Whether all has been sent and the connection is to be closed. Close in two steps, as RFC 9112 §9.6 asks: a
    /// reset would take the response along.
    pub fn should_close(&self) -> bool {
        let last = self.closing || self.failed.is_some() || (self.eof && self.held.is_empty());
        last && self.outstanding() == 0 && !self.out.is_sending() && self.out.is_empty()
    }

    /// The fault that ended the reading of requests. Bytes held back are parsed when a response makes room, so this
    /// may become known outside [`handle_input`](Self::handle_input).
    pub fn failure(&self) -> Option<PeerError> {
        self.failed
    }

    /// When input last came: what idle and slow connections are told by.
    pub fn last_input(&self) -> Option<Instant> {
        self.last_input
    }

    /// What went over the connection so far.
    pub fn stats(&self) -> Stats {
        let Stats { bytes_out, head_bytes_out, body_bytes_out, .. } = self.out.stats;
        Stats { bytes_out, head_bytes_out, body_bytes_out, ..self.stats }
    }

    /// Takes bytes from the client.
    ///
    /// # Errors
    /// [`Error::Peer`] if they are no request: requests before it can still be answered, the refusal is queued
    /// behind them. [`CallerError::NotReading`] if too much came while [`wants_input`](Self::wants_input) was false;
    /// the input is lost and with it the connection.
    pub fn handle_input(&mut self, now: Instant, input: Chunk) -> Result<(), Error> {
        if let Some(e) = self.failed {
            return Err(e.into());
        }
        if self.held_bytes > self.limits.held_bytes {
            return Err(CallerError::NotReading.into());
        }
        self.last_input = Some(now);
        self.stats.bytes_in += input.len();
        self.hold(input);
        self.read_held();
        self.failed.map_or(Ok(()), |e| Err(e.into()))
    }

    /// Takes the end of the client's stream. What is outstanding can still be answered.
    ///
    /// # Errors
    /// [`Error::Peer`] if it ended inside a request.
    pub fn handle_eof(&mut self) -> Result<(), Error> {
        self.eof = true;
        self.read_held();
        self.failed.map_or(Ok(()), |e| Err(e.into()))
    }

    /// Takes the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Takes the next bytes to send, at most `max` and in one piece.
    pub fn poll_transmit(&mut self, max: u64) -> Option<Chunk> {
        self.out.poll(max)
    }

    /// Queues an interim response (1xx other than 101) to the oldest request not yet answered. An HTTP/1.0 client is
    /// not sent any (RFC 9110 §15.2).
    ///
    /// # Errors
    /// [`Error::Caller`] if there is no such request, the response before is unfinished, or the head is wrong.
    pub fn inform(&mut self, head: &ResponseHead) -> Result<(), Error> {
        if self.is_responding() {
            return Err(CallerError::BodyUnfinished.into());
        }
        let request = self.waiting.front_mut().ok_or(CallerError::NothingToAnswer)?;
        if !(100..200).contains(&head.status) || head.status == 101 {
            return Err(CallerError::BadStatus.into());
        }
        if request.version == Version::Http11 {
            self.out.head(Framing::Length(0), |out| emit::response(out, head, Framing::Empty, None))?;
            request.waits &= head.status != 100;
        }
        Ok(())
    }

    /// Begins the response to the oldest request not yet answered, with a body of `body_len` bytes or one whose
    /// length is not known: that goes out chunked, or to an HTTP/1.0 client until the connection closes.
    ///
    /// The fields go out in order, but for `Content-Length` and `Transfer-Encoding`, which are the engine's.
    /// `Connection: close` among them is obeyed. To a HEAD, and with 204 and 304, no body is sent: it may be
    /// given all the same, and is dropped. With 101, or 2xx to a CONNECT, the connection becomes a
    /// [`Framing::Tunnel`].
    ///
    /// # Errors
    /// [`Error::Caller`] if there is no such request, the response before is unfinished, or the head is wrong.
    pub fn respond(&mut self, head: &ResponseHead, body_len: Option<u64>) -> Result<(), Error> {
        if self.is_responding() {
            return Err(CallerError::BodyUnfinished.into());
        }
        let Some(&request) = self.waiting.front() else {
            let none = if self.closing { CallerError::Closing } else { CallerError::NothingToAnswer };
            return Err(none.into());
        };
        let status = head.status;
        let is_final = (200..1000).contains(&status) || (status == 101 && request.upgrade);
        if !is_final {
            return Err(CallerError::BadStatus.into());
        }
        let (announced, body) = response_framing(request, status, body_len);
        let last = self.waiting.len() == 1;
        // A client that waits for a 100 may or may not send the body now: nobody could tell where it ends.
        let closes = !request.persists
            || emit::has_option(&head.fields, "close")
            || body == Framing::UntilClose
            || (last && (request.waits || (self.eof && self.held.is_empty())));
        let connection = match (closes, request.version) {
            _ if body == Framing::Tunnel => (status == 101).then_some("Upgrade"),
            (true, _) => Some("close"),
            (false, Version::Http10) => Some("keep-alive"),
            (false, Version::Http11) => None,
        };
        self.out.head(body, |out| emit::response(out, head, announced, connection))?;
        self.waiting.pop_front();
        if body == Framing::Tunnel {
            self.tunnel = true;
        } else if closes {
            // RFC 9112 §9.6: requests after it are not processed, those already read included.
            (self.complete, self.closing) = (true, true);
            self.waiting.clear();
            self.refusal = None;
        }
        self.after_response();
        Ok(())
    }

    /// Queues the next part of the response's body, or of what goes through a tunnel.
    ///
    /// # Errors
    /// [`CallerError::BodyTooLong`] if there is more of it than was announced; nothing is queued.
    pub fn send_body(&mut self, chunk: Chunk) -> Result<(), Error> {
        self.out.body(chunk)?;
        self.after_response();
        Ok(())
    }

    /// Ends the response's body; needed if its length was not announced, harmless otherwise.
    ///
    /// # Errors
    /// [`CallerError::BodyTooShort`] if bytes are still to come.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.out.finish()?;
        self.closing |= self.tunnel;
        self.after_response();
        Ok(())
    }

    /// Whether the response begun is unfinished; a tunnel is no response.
    fn is_responding(&self) -> bool {
        self.out.is_sending() && !self.tunnel
    }

    fn is_paused(&self) -> bool {
        let may_change = |r: &Request| r.connect || r.upgrade;
        matches!(self.expect, Expect::Head)
            && !self.tunnel
            && !self.closing
            && (self.outstanding() >= self.limits.outstanding || self.waiting.back().is_some_and(may_change))
    }

    /// A response may just have become complete: the refusal's turn, or room for another request.
    fn after_response(&mut self) {
        if self.outstanding() == 0
            && let Some(status) = self.refusal.take()
        {
            let head = ResponseHead { status, fields: Fields::new() };
            let written = self
                .out
                .head(Framing::Empty, |out| emit::response(out, &head, Framing::Length(0), Some("close")));
            debug_assert!(written.is_ok(), "a head of ours without fields");
        }
        self.read_held();
    }

    fn hold(&mut self, chunk: Chunk) {
        if !chunk.is_empty() {
            self.held_bytes += chunk.len();
            self.held.push_back(chunk);
        }
    }

    /// Parses what is held until it is used up or too much is outstanding.
    fn read_held(&mut self) {
        while self.failed.is_none()
            && let Some(mut chunk) = self.held.pop_front()
        {
            self.held_bytes -= chunk.len();
            if let Err(e) = self.read(&mut chunk) {
                return self.fail(e);
            }
            if !chunk.is_empty() {
                self.held_bytes += chunk.len();
                return self.held.push_front(chunk);
            }
        }
        if self.eof && self.failed.is_none() && !self.closing {
            let end = match &self.expect {
                Expect::Body(body) => body.eof(),
                Expect::Head if self.lines.is_open() => Err(PeerError::HeadTruncated),
                Expect::Head => Ok(()),
            };
            if let Err(e) = end {
                self.fail(e);
            }
        }
    }

    fn fail(&mut self, e: PeerError) {
        self.failed = Some(e);
        self.held.clear();
        self.held_bytes = 0;
        // The fault is in the youngest request. If its head was good it is in `waiting` until its answer begins;
        // once that has begun it is too late to refuse.
        let in_body = matches!(self.expect, Expect::Body(_));
        if !self.closing && (!in_body || self.waiting.pop_back().is_some()) {
            self.refusal = Some(e.status());
        }
        self.after_response();
    }

    /// Parses `input`; what is left of it is not to be parsed yet.
    fn read(&mut self, input: &mut Chunk) -> Result<(), PeerError> {
        loop {
            if let Expect::Body(body) = &mut self.expect {
                match body.step(input, &mut self.lines, &self.limits, true)? {
                    Step::More => return Ok(()),
                    Step::Data(chunk) => {
                        if let Some(request) = self.waiting.back_mut() {
                            request.waits = false;
                        }
                        self.stats.body_bytes_in += chunk.len();
                        self.events.push_back(Event::Body(chunk));
                    }
                    Step::Done(trailers) => {
                        if !trailers.is_empty() {
                            self.events.push_back(Event::Trailers(trailers));
                        }
                        self.events.push_back(Event::RequestComplete);
                        self.expect = Expect::Head;
                    }
                }
                continue;
            }
            if input.is_empty() || self.is_paused() {
                return Ok(());
            }
            if self.tunnel || self.complete {
                let rest = input.split_to(input.len());
                if self.tunnel {
                    self.stats.body_bytes_in += rest.len();
                    self.events.push_back(Event::Body(rest));
                }
                return Ok(());
            }
            let Chunk::Bytes(bytes) = input else { return Err(PeerError::BodyRangeInFraming) };
            if let Some(head) = self.lines.take(bytes, Section::Head, &self.limits, true)? {
                self.read_head(&head)?;
            }
        }
    }

    fn read_head(&mut self, bytes: &Bytes) -> Result<(), PeerError> {
        let (method, target, version) = request_line(&bytes.slice(self.lines.line(bytes, 0)))?;
        let (fields, meta) = self.lines.fields(bytes, 1, true)?;
        let connect = method == "CONNECT";
        let (scheme, authority, path) = self.target(&method, target, version, &meta)?;
        let body = request_framing(version, &meta)?;
        if connect && body != Framing::Empty {
            return Err(PeerError::BadTarget);
        }
        let expects_continue = meta.expects_continue && version == Version::Http11 && body != Framing::Empty;
        let persists = !meta.close && (version == Version::Http11 || meta.keep_alive);
        self.complete = !persists;
        let head_len = (bytes.len() - self.lines.skipped()) as u64;
        self.stats.head_bytes_in += head_len;
        self.waiting.push_back(Request {
            version,
            head: method == "HEAD",
            connect,
            // RFC 9110 §7.8: in an HTTP/1.0 request it is to be ignored, and without the option it is not meant
            // for us.
            upgrade: meta.upgrade && meta.upgrade_option && version == Version::Http11,
            persists,
            waits: expects_continue,
        });
        let head = RequestHead { method, scheme, authority, path, fields };
        self.events.push_back(Event::Request { head, body, expects_continue, head_len });
        match Body::new(body) {
            Some(body) => self.expect = Expect::Body(body),
            None => self.events.push_back(Event::RequestComplete),
        }
        Ok(())
    }

    /// Scheme, authority and path from the request target's form (RFC 9112 §3.2) and `Host`.
    fn target(
        &self,
        method: &[u8],
        target: Bytes,
        version: Version,
        meta: &Meta,
    ) -> Result<(Bytes, Bytes, Bytes), PeerError> {
        let host = match (&meta.host, meta.hosts) {
            (None, _) if version == Version::Http10 => Bytes::new(),
            (Some(host), 1) if is_authority(host) => host.clone(),
            _ => return Err(PeerError::BadHost),
        };
        let scheme = self.scheme.clone();
        if method == b"CONNECT" {
            return if is_authority(&target) {
                Ok((scheme, target, Bytes::new()))
            } else {
                Err(PeerError::BadTarget)
            };
        }
        if target.starts_with(b"/") || (target == "*" && method == b"OPTIONS") {
            return Ok((scheme, host, target));
        }
        // The absolute form, whose authority overrides Host.
        let colon = target.iter().position(|b| *b == b':').ok_or(PeerError::BadTarget)?;
        let scheme = target.slice(..colon);
        let rest = target.slice(colon..);
        if !scheme.iter().all(u8::is_ascii_alphanumeric) || !rest.starts_with(b"://") {
            return Err(PeerError::BadTarget);
        }
        let end = rest[3..].iter().position(|b| matches!(b, b'/' | b'?')).map_or(rest.len(), |i| i + 3);
        let authority = rest.slice(3..end);
        if authority.is_empty() || !is_authority(&authority) {
            return Err(PeerError::BadTarget);
        }
        let path = match rest.get(end) {
            None => Bytes::from_static(b"/"),
            Some(b'/') => rest.slice(end..),
            Some(_) => [b"/", &rest[end..]].concat().into(),
        };
        Ok((scheme, authority, path))
    }
}

/// How a request's body ends (RFC 9112 §6.3); whatever two servers could read in two ways is refused.
fn request_framing(version: Version, meta: &Meta) -> Result<Framing, PeerError> {
    if !meta.coded {
        return match meta.length {
            Length::Absent => Ok(Framing::Empty),
            Length::Is(n) => Ok(Framing::Length(n)),
            Length::Invalid => Err(PeerError::BadLength),
        };
    }
    if meta.length != Length::Absent {
        return Err(PeerError::LengthAndTransferEncoding);
    }
    if version == Version::Http10 || !meta.is_chunked() {
        return Err(PeerError::BadTransferEncoding);
    }
    if meta.other_coding { Err(PeerError::UnknownTransferCoding) } else { Ok(Framing::Chunked) }
}

/// The framing that the response states, and how its body really goes out.
fn response_framing(request: Request, status: u16, body_len: Option<u64>) -> (Framing, Framing) {
    if status == 101 || (request.connect && status < 300) {
        return (Framing::Empty, Framing::Tunnel);
    }
    let stated = match body_len {
        // RFC 9110 §8.6 forbids a length with 204; with 304 it would be that of the 200, which is not known here.
        _ if status == 204 || status == 304 => Framing::Empty,
        Some(n) => Framing::Length(n),
        None if request.version == Version::Http10 => Framing::UntilClose,
        None => Framing::Chunked,
    };
    if request.head { (stated, Framing::Empty) } else { (stated, stated) }
}
