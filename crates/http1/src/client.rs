//! The client's end: requests out, responses in.

use std::collections::VecDeque;

use base::{Chunk, Fields, Instant, RequestHead, ResponseHead};
use bytes::Bytes;

use crate::body::{Body, Step};
use crate::emit::{self, Output};
use crate::head::{Length, Lines, Meta, Section, Version, status_line};
use crate::{CallerError, Error, Framing, Limits, PeerError, Stats};

/// What happened to the oldest outstanding request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// An interim response (1xx other than 101); the final one follows.
    Informational(ResponseHead),
    /// The final response has begun. After [`Framing::Tunnel`] the connection belongs to another protocol.
    Response {
        /// Status and fields, without those that the connection owns (RFC 9110 §7.6.1).
        head: ResponseHead,
        /// How the body's end is found.
        body: Framing,
        /// Bytes of the head.
        head_len: u64,
        /// The server's version is HTTP/1.0 (or HTTP/1.1).
        is_http10: bool,
        /// Whether the connection carries further messages after this one (RFC 9112 §9.3).
        persists: bool,
    },
    /// Bytes of its body, as they came.
    Body(Chunk),
    /// The fields after a chunked body; only if there are any.
    Trailers(Fields),
    /// The response is complete, and the next request outstanding becomes the oldest.
    Complete {
        /// Whether the connection carries further messages (RFC 9112 §9.3). If not, close it; the requests that
        /// are [`unanswered`](Connection::unanswered) will not be answered here.
        reusable: bool,
    },
}

/// A request without its response.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    method: Method,
    /// Whether it offers to change the protocol.
    upgrade: bool,
    /// Whether it says that it is the connection's last.
    close: bool,
    /// Where it begins in the stream of bytes sent.
    start: u64,
}

/// What a method means for the response's framing (RFC 9112 §6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Method {
    Head,
    Connect,
    Other,
}

/// What the next bytes are.
#[derive(Debug)]
enum Expect {
    Head,
    Body(Body),
    Tunnel,
    /// Nothing: the last response is complete.
    End,
}

/// One client connection.
///
/// Commands are [`request`](Self::request), [`send_body`](Self::send_body), [`finish`](Self::finish) and
/// [`handle_input`](Self::handle_input); after each, drain [`poll_event`](Self::poll_event) and, when there is room,
/// [`poll_transmit`](Self::poll_transmit).
#[derive(Debug)]
pub struct Connection {
    limits: Limits,
    out: Output,
    outstanding: VecDeque<Outstanding>,
    expect: Expect,
    lines: Lines,
    /// Whether an interim response to the oldest request has come.
    begun: bool,
    /// Whether the response in progress leaves the connection usable.
    reusable: bool,
    /// Whether no further request may be sent.
    closing: bool,
    failed: Option<PeerError>,
    events: VecDeque<Event>,
    last_input: Option<Instant>,
    stats: Stats,
}

impl Default for Connection {
    fn default() -> Self {
        Self::new()
    }
}

impl Connection {
    /// A fresh connection with the usual limits.
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    /// A fresh connection.
    pub fn with_limits(limits: Limits) -> Self {
        Self {
            limits,
            out: Output::default(),
            outstanding: VecDeque::new(),
            expect: Expect::Head,
            lines: Lines::default(),
            begun: false,
            reusable: true,
            closing: false,
            failed: None,
            events: VecDeque::new(),
            last_input: None,
            stats: Stats::default(),
        }
    }

    /// Number of requests whose response is not complete.
    pub fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// Number of requests of whose response nothing has come: the youngest ones. When the connection ends they may
    /// be sent again elsewhere, if their method is idempotent (RFC 9110 §9.2.2) or they are [`unsent`](Self::unsent).
    pub fn unanswered(&self) -> usize {
        let begun = self.begun || self.lines.is_open() || !matches!(self.expect, Expect::Head | Expect::End);
        self.outstanding.len() - usize::from(begun && !self.outstanding.is_empty())
    }

    /// Number of requests of which [`poll_transmit`](Self::poll_transmit) has given out nothing: the youngest ones.
    pub fn unsent(&self) -> usize {
        let taken = self.out.taken();
        self.outstanding.iter().rev().take_while(|o| o.start >= taken).count()
    }

    /// Whether [`request`](Self::request) takes a request now.
    pub fn can_request(&self) -> bool {
        self.check_request().is_ok()
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

    /// Queues a request; with a body of `body_len` bytes, given by [`send_body`](Self::send_body), or without one.
    ///
    /// `Host` comes first and the fields follow in order, but for `Host`, `Content-Length` and `Transfer-Encoding`,
    /// which are the engine's. `Connection: close` among them is obeyed; an `Upgrade` offers the protocol change
    /// that [`Framing::Tunnel`] reports, and the engine adds the `Connection` option that must go with it.
    ///
    /// # Errors
    /// [`Error::Caller`] if the head would break the stream or the connection takes no request now;
    /// [`Error::Peer`] if it has failed.
    pub fn request(&mut self, head: &RequestHead, body_len: Option<u64>) -> Result<(), Error> {
        self.send_head(head, body_len.filter(|n| *n > 0).map_or(Framing::Empty, Framing::Length))
    }

    /// Queues a request whose body's length is not known: it goes out chunked, one chunk for each
    /// [`send_body`](Self::send_body), until [`finish`](Self::finish). For servers known to speak HTTP/1.1
    /// (RFC 9112 §6.1). Otherwise as [`request`](Self::request).
    pub fn request_chunked(&mut self, head: &RequestHead) -> Result<(), Error> {
        self.send_head(head, Framing::Chunked)
    }

    fn check_request(&self) -> Result<(), Error> {
        if let Some(e) = self.failed {
            return Err(e.into());
        }
        let changing = |o: &Outstanding| o.upgrade || o.method == Method::Connect;
        Err(Error::Caller(if self.closing {
            CallerError::Closing
        } else if self.outstanding.len() >= self.limits.outstanding {
            CallerError::TooManyOutstanding
        } else if self.out.is_sending() {
            CallerError::BodyUnfinished
        } else if self.outstanding.back().is_some_and(changing) {
            CallerError::ProtocolChangePending
        } else {
            return Ok(());
        }))
    }

    fn send_head(&mut self, head: &RequestHead, framing: Framing) -> Result<(), Error> {
        self.check_request()?;
        let start = self.out.stats.bytes_out;
        self.out.head(framing, |out| emit::request(out, head, framing))?;
        let method = match &head.method[..] {
            b"HEAD" => Method::Head,
            b"CONNECT" => Method::Connect,
            _ => Method::Other,
        };
        let upgrade = head.fields.get("upgrade").is_some();
        let close = emit::has_option(&head.fields, "close");
        self.closing |= close;
        self.outstanding.push_back(Outstanding { method, upgrade, close, start });
        Ok(())
    }

    /// Queues the next part of the youngest request's body, or of what goes through a tunnel. Ignored if the response
    /// came to its end before the body did, as it leads nowhere then.
    ///
    /// # Errors
    /// [`CallerError::BodyTooLong`] if there is more of it than was announced; nothing is queued.
    pub fn send_body(&mut self, chunk: Chunk) -> Result<(), Error> {
        Ok(self.out.body(chunk)?)
    }

    /// Ends the youngest request's body; needed after [`request_chunked`](Self::request_chunked), harmless
    /// otherwise.
    ///
    /// # Errors
    /// [`CallerError::BodyTooShort`] if bytes are still to come.
    pub fn finish(&mut self) -> Result<(), Error> {
        Ok(self.out.finish()?)
    }

    /// Takes the next bytes to send, at most `max` and in one piece.
    pub fn poll_transmit(&mut self, max: u64) -> Option<Chunk> {
        self.out.poll(max)
    }

    /// Takes the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Takes bytes from the server.
    ///
    /// # Errors
    /// [`Error::Peer`] if they are no response to what is outstanding. What came before the fault has become events.
    pub fn handle_input(&mut self, now: Instant, mut input: Chunk) -> Result<(), Error> {
        if let Some(e) = self.failed {
            return Err(e.into());
        }
        self.last_input = Some(now);
        self.stats.bytes_in += input.len();
        self.read(&mut input).map_err(|e| self.fail(e))
    }

    /// Takes the end of the server's stream.
    ///
    /// # Errors
    /// [`Error::Peer`] if it is not the end of a response, or requests are outstanding: see
    /// [`unanswered`](Self::unanswered).
    pub fn handle_eof(&mut self) -> Result<(), Error> {
        if let Some(e) = self.failed {
            return Err(e.into());
        }
        self.closing = true;
        let end = match &self.expect {
            Expect::Body(body) => body.eof().map(|()| self.reusable = false),
            Expect::Tunnel => Ok(()),
            _ if self.lines.is_open() => Err(PeerError::HeadTruncated),
            _ if self.outstanding.is_empty() => return Ok(()),
            _ => Err(PeerError::ClosedBeforeResponse),
        };
        end.map_err(|e| self.fail(e))?;
        self.complete();
        if self.outstanding.is_empty() { Ok(()) } else { Err(self.fail(PeerError::ClosedBeforeResponse)) }
    }

    fn fail(&mut self, e: PeerError) -> Error {
        self.failed = Some(e);
        self.out.discard_body();
        e.into()
    }

    fn read(&mut self, input: &mut Chunk) -> Result<(), PeerError> {
        loop {
            match &mut self.expect {
                Expect::Body(body) => match body.step(input, &mut self.lines, &self.limits, false)? {
                    Step::More => return Ok(()),
                    Step::Data(chunk) => {
                        self.stats.body_bytes_in += chunk.len();
                        self.events.push_back(Event::Body(chunk));
                    }
                    Step::Done(trailers) => {
                        if !trailers.is_empty() {
                            self.events.push_back(Event::Trailers(trailers));
                        }
                        self.complete();
                    }
                },
                _ if input.is_empty() => return Ok(()),
                Expect::Tunnel => {
                    self.stats.body_bytes_in += input.len();
                    self.events.push_back(Event::Body(input.split_to(input.len())));
                }
                Expect::End => return Err(PeerError::UnexpectedBytes),
                Expect::Head => {
                    let Chunk::Bytes(bytes) = input else { return Err(PeerError::BodyRangeInFraming) };
                    // A response to what was never sent is as unexpected as one to nothing.
                    let taken = self.out.taken();
                    if self.outstanding.front().is_none_or(|o| o.start >= taken) {
                        let empty = bytes.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
                        if empty < bytes.len() {
                            return Err(PeerError::UnexpectedBytes);
                        }
                        bytes.clear();
                    } else if let Some(head) = self.lines.take(bytes, Section::Head, &self.limits, false)? {
                        self.read_head(&head)?;
                    }
                }
            }
        }
    }

    fn read_head(&mut self, bytes: &Bytes) -> Result<(), PeerError> {
        let request = *self.outstanding.front().expect("a head is read only if a request is outstanding");
        let (version, status) = status_line(&bytes[self.lines.line(bytes, 0)])?;
        let (mut fields, meta) = self.lines.fields(bytes, 1, false)?;
        let head_len = (bytes.len() - self.lines.skipped()) as u64;
        self.stats.head_bytes_in += head_len;
        if status < 200 && status != 101 {
            self.begun = true;
            self.events.push_back(Event::Informational(ResponseHead { status, fields }));
            return Ok(());
        }
        let (body, persists) = framing(request, status, version, &meta)?;
        if meta.coded {
            // RFC 9112 §6.3: Transfer-Encoding overrides, and an invalid length is not to be passed on.
            fields.remove("content-length");
        }
        self.reusable = persists && !request.close;
        self.closing |= !self.reusable;
        let (head, persists) = (ResponseHead { status, fields }, self.reusable);
        let is_http10 = version == Version::Http10;
        self.events.push_back(Event::Response { head, body, head_len, is_http10, persists });
        self.expect = match (body, Body::new(body)) {
            (Framing::Tunnel, _) => {
                self.out.tunnel();
                Expect::Tunnel
            }
            (_, Some(body)) => Expect::Body(body),
            (_, None) => {
                self.complete();
                return Ok(());
            }
        };
        Ok(())
    }

    fn complete(&mut self) {
        self.outstanding.pop_front();
        self.begun = false;
        if self.outstanding.is_empty() && self.out.is_sending() {
            // The server has answered before the body was complete; what it makes of the rest is unknown.
            self.reusable = false;
            self.out.discard_body();
        }
        self.closing |= !self.reusable;
        self.expect = if self.reusable { Expect::Head } else { Expect::End };
        self.events.push_back(Event::Complete { reusable: self.reusable });
    }
}

/// How the response's body ends (RFC 9112 §6.3, rule by rule), and whether the connection outlives it (§9.3).
fn framing(
    request: Outstanding,
    status: u16,
    version: Version,
    meta: &Meta,
) -> Result<(Framing, bool), PeerError> {
    let persists = !meta.close && (version == Version::Http11 || meta.keep_alive);
    if status == 101 {
        return if request.upgrade {
            Ok((Framing::Tunnel, false))
        } else {
            Err(PeerError::UnexpectedUpgrade)
        };
    }
    if request.method == Method::Head || status == 204 || status == 304 {
        return Ok((Framing::Empty, persists));
    }
    if request.method == Method::Connect && status < 300 {
        return Ok((Framing::Tunnel, false));
    }
    if meta.coded {
        // §6.1: in an HTTP/1.0 message the framing is faulty.
        if version == Version::Http10 || meta.is_chunked_twice() {
            return Err(PeerError::BadTransferEncoding);
        }
        if !meta.is_chunked() {
            return Ok((Framing::UntilClose, false));
        }
        return Ok((Framing::Chunked, persists && meta.length == Length::Absent));
    }
    match meta.length {
        Length::Is(n) => Ok((Framing::Length(n), persists)),
        Length::Invalid => Err(PeerError::BadLength),
        Length::Absent => Ok((Framing::UntilClose, false)),
    }
}
