//! What becomes of a request whose answer was cut off, or never came: it is sent again at once, sent again later, or it
//! fails, and the page is told why.
//!
//! Sending again at once is for what is no fault of the request's: the connection was an old one and had died, or the server
//! says that it never looked. Browsers do that silently. Sending again later, within a budget, is what their users do by
//! pressing "reload". What the page has seen of an answer it must not see twice: then the answer is fetched anew, compared
//! with what is known of the first, and passed on from where that ended.

use base::{Duration, Instant, RequestHead, ResponseHead};

use crate::connection::State;
use crate::request::Request;
use crate::timer::Timer;
use crate::{Client, ConnectionId, Error, Event, RequestId, Transport, priority};

/// When a request that went down with its connection is sent again.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum StaleRule {
    /// The connection was a reused one and nothing of an answer came back; any method (http_network_transaction.cc,
    /// ShouldResendRequest).
    #[default]
    Chrome,
    /// Nothing of an answer came back, and the connection was a reused one or nothing of the request had been sent
    /// (nsHttpTransaction.cpp, Close).
    Firefox,
    /// As Chrome's, but only if the method is idempotent, or nothing of the request had been sent: "a user agent MUST NOT
    /// automatically retry a request with a non-idempotent method" of which it does not know that it was never applied (RFC 9110
    /// §9.2.2). A network that changed is no exception.
    Idempotent,
}

/// What is done about answers that do not come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retry {
    /// When a request that went down with its connection is sent again.
    pub stale: StaleRule,
    /// Whether a 408 that comes within a second of the request, on a reused connection, means that the connection had been
    /// given up by its server, so that the request is sent again (nsHttpConnection.cpp, OnHeadersAvailable).
    pub resend_on_408: bool,
    /// Whether an answer to a GET that was cut off is fetched again, and what the page has of it skipped; where the server takes
    /// ranges, only what is missing is asked for. Needs budget.
    pub resume: bool,
    /// Whether documents are sent again too. Without it their failure is the page's.
    pub documents: bool,
    /// Whether a connection of a network that the machine has left is given up at once, though it has requests under way.
    pub leaves_old_network: bool,
    /// How many times requests that failed are sent again, all together; those that went down with one connection count once. Methods
    /// other than GET and HEAD never are: it might not be safe to repeat them.
    pub budget: u32,
    /// How many times one request is, in a row: it counts anew if more of its answer has come, or its host has answered others, since
    /// it failed last. On a session that breaks time and again most are bystanders.
    pub each: u32,
    /// How long after its failure; twice as long each time. The client waits for it by [`Client::poll_timeout`].
    pub backoff: Duration,
}

impl Retry {
    /// What browsers do without being asked: Chrome's rule, and no budget.
    pub const CHROME: Self = Self {
        stale: StaleRule::Chrome,
        resend_on_408: false,
        resume: false,
        documents: false,
        leaves_old_network: false,
        budget: 0,
        each: 0,
        backoff: Duration::ZERO,
    };

    /// Firefox's rules, and no budget. Its `network.http.request.max-attempts` is 10:
    /// [`Config::attempts_max`](crate::Config::attempts_max).
    pub const FIREFOX: Self = Self { stale: StaleRule::Firefox, resend_on_408: true, ..Self::CHROME };

    /// A client that does for its user what "reload" is pressed for. The figures are ours: three times each after 250 ms,
    /// 500 ms and 1 s, which outlasts a change of networks, and 100 in all, so that a server that is down is not stormed.
    /// It does not know of a server that never answers without [`Timeouts::RELOADING`](crate::Timeouts::RELOADING).
    pub const RELOADING: Self = Self {
        stale: StaleRule::Idempotent,
        resend_on_408: true,
        resume: true,
        documents: true,
        leaves_old_network: true,
        budget: 100,
        each: 3,
        backoff: Duration::from_millis(250),
    };
}

/// A 408 within this time of the request was sent before the request came.
const IS_STALE_408: Duration = Duration::from_secs(1);

/// Whether the budget was charged for the connection that is being lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Charged(pub bool);

/// How a request lost its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cut {
    /// The connection is gone; whether nothing of the request had been sent.
    Lost { unsent: bool },
    /// The server says that it never looked at it, or never will.
    Returned,
    /// The connection was given up as it belongs to a network that is no more there.
    Left,
    /// It was pipelined, and is not any more.
    Unpipelined,
    /// Anything else.
    Refused,
}

impl Client {
    /// A request has lost its answer, or its hope of one.
    pub(crate) fn interrupt(&mut self, now: Instant, id: RequestId, error: Error, cut: Cut) {
        self.note_progress(id);
        let attempts_max = self.config.attempts_max;
        let (stale, resumes) = (self.config.retry.stale, self.config.retry.resume);
        let request = self.request_mut(id);
        let unsent = matches!(error, Error::NotConnected(_) | Error::NameNotResolved);
        let connection = request.connection.filter(|_| !unsent);
        request.failures.push(Failure { at: now, connection, error: error.clone() });
        let repeatable = stale != StaleRule::Idempotent || request.is_idempotent();
        let fresh = !request.answered && request.attempts < attempts_max + request.retries;
        let again = match cut {
            Cut::Returned => fresh,
            Cut::Unpipelined => !request.answered || request.may_resume(),
            // It is no fault of its host's: no budget is spent on it.
            Cut::Left => (fresh && repeatable) || (resumes && request.answered && request.may_resume()),
            Cut::Lost { unsent: true } if stale != StaleRule::Chrome => fresh,
            Cut::Lost { .. } => fresh && request.reused && repeatable,
            Cut::Refused => false,
        };
        if again {
            self.resend(id);
        } else if self.may_retry(id) {
            self.retry_later(now, id, error);
        } else {
            self.lose_hope(id, &error);
            self.fail(id, error);
        }
    }

    /// Lets a request wait for a connection again. Its host is served by [`Client::go_on`].
    fn resend(&mut self, id: RequestId) {
        let request = self.request_mut(id);
        request.void = None;
        request.resuming = request.answered;
        request.skip = request.delivered;
        let host = request.host;
        self.enqueue(id);
        self.restless.push(host);
    }

    /// A request has failed: its failures are counted anew if anything has moved since the last one.
    fn note_progress(&mut self, id: RequestId) {
        let host = self.request_mut(id).host;
        let answers = self.pools[host as usize].answers;
        let request = self.request_mut(id);
        let mark = (request.delivered, answers);
        if request.mark.replace(mark).is_some_and(|before| before != mark) {
            request.retries = 0;
        }
    }

    fn may_retry(&mut self, id: RequestId) -> bool {
        let policy = self.config.retry;
        let left = self.retries < policy.budget || self.losing == Some(Charged(true));
        let request = self.request_mut(id);
        let repeatable = matches!(&request.head.method[..], b"GET" | b"HEAD");
        let unseen = !request.answered || (policy.resume && request.may_resume());
        left && request.retries < policy.each
            && repeatable
            && (policy.documents || request.priority != priority::DOCUMENT)
            && unseen
    }

    fn retry_later(&mut self, now: Instant, id: RequestId, error: Error) {
        match &mut self.losing {
            Some(Charged(true)) => {}
            Some(charged) => (*charged, self.retries) = (Charged(true), self.retries + 1),
            None => self.retries += 1,
        }
        let backoff = self.config.retry.backoff;
        let request = self.request_mut(id);
        let delay = backoff * (1u64 << request.retries.min(32));
        request.retries += 1;
        let host = request.host;
        if error == Error::NameNotResolved {
            self.resolver.forget(host);
        }
        self.timers.set(Timer::Retry(id), now + delay);
    }

    /// A request that failed is sent again.
    pub(crate) fn retry(&mut self, now: Instant, id: RequestId) {
        self.resend(id);
        let host = self.request_mut(id).host;
        self.go_on(now, host);
    }

    /// A request is given up. If nothing has come from its host since it was first in trouble, the host is given up with it: the
    /// others that wait would find out the same, one after the other.
    fn lose_hope(&mut self, id: RequestId, error: &Error) {
        let retry = self.config.retry;
        let request = self.request_mut(id);
        let (Error::NotConnected(why) | Error::ConnectionLost(why)) = error else { return };
        let (host, since) = (request.host, request.failures.first().map(|f| f.at));
        let tried = retry.budget > 0 && request.retries >= retry.each;
        let pool = &mut self.pools[host as usize];
        if tried && pool.heard < since {
            pool.gone = Some(why.clone());
        }
    }

    /// Whether a host was given up; then all that waits for it fails, until the network changes.
    pub(crate) fn give_up_with(&mut self, now: Instant, host: u32) -> bool {
        let pool = &mut self.pools[host as usize];
        let Some(why) = pool.gone.clone() else { return false };
        for (.., id) in std::mem::take(&mut pool.waiting) {
            let error = Error::NotConnected(why.clone());
            self.request_mut(id).failures.push(Failure { at: now, connection: None, error: error.clone() });
            self.fail(id, error);
        }
        true
    }

    /// What another run of the application is to know of a request, if this one ends now; nothing unless [`Retry::resume`] is on.
    pub fn leaves(&self, id: RequestId) -> Option<Left> {
        self.request(id).filter(|_| self.config.retry.resume)?.leaves()
    }

    /// How much of [`Retry::budget`] is spent.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// Requests that failed for good, with the reasons: what the page lacks.
    pub fn missing(&self) -> impl Iterator<Item = (RequestId, &Error)> {
        let requests = (0..).zip(&self.requests);
        requests.filter_map(|(id, request)| Some((id, request.as_ref()?.error.as_ref()?)))
    }

    /// The machine's addresses have changed. Sessions go away, as in Chrome (`SpdySessionPool::OnIPAddressChanged`), as do
    /// idle connections and those that are being made; names are looked up anew. Requests that lose their connection are
    /// sent again if the page has seen nothing of an answer, else they fail, or are resumed by [`Retry::resume`]. An
    /// HTTP/1.1 connection that is in use is left to the transport, which will say whether it has survived, unless
    /// [`Retry::leaves_old_network`].
    pub fn handle_network_change(&mut self, now: Instant) {
        self.resolver.forget_all();
        let leaves = self.config.retry.leaves_old_network;
        for id in 0..self.connections.len() as u32 {
            let connection = &mut self.connections[id as usize];
            let host = connection.record.host;
            let multiplexed = self.pools[host as usize].transport.unwrap_or(self.config.transport);
            let in_use = connection.state == State::Ready && !connection.active.is_empty();
            let left = in_use && multiplexed == Transport::Http1 && !leaves;
            if connection.state == State::Closed || left {
                continue;
            }
            let active = std::mem::take(&mut connection.active);
            self.give_up_dial(id);
            self.close(now, id);
            for active in active {
                self.interrupt(now, active.request, Error::NetworkChanged, Cut::Left);
            }
        }
        for pool in &mut self.pools {
            pool.gone = None;
        }
        for host in 0..self.hosts.len() as u32 {
            self.service(now, host);
        }
        self.go_on(now, 0);
    }

    /// What the page is told of an event that its connection reports; nothing if the client sees to it itself.
    pub(crate) fn pass_on(&mut self, now: Instant, event: Event) {
        match event {
            Event::Head { id, head, wire_len } => self.pass_head(now, id, head, wire_len),
            Event::Data { id, mut chunk } => {
                let request = self.request_mut(id);
                if request.void.is_some() {
                    return;
                }
                let skipped = request.skip.min(chunk.len());
                request.skip -= skipped;
                chunk.split_to(skipped);
                request.delivered += chunk.len();
                if !chunk.is_empty() {
                    self.events.push_back(Event::Data { id, chunk });
                }
            }
            Event::Complete { id } => {
                let request = self.request_mut(id);
                match request.void.take() {
                    Some(Void::SendAgain) => return self.resend(id),
                    Some(Void::Fail(error)) => return self.fail(id, error),
                    None if request.skip > 0 => {
                        let shorter = Error::Changed("it is shorter");
                        return self.fail(id, shorter);
                    }
                    None => {}
                }
                request.timing.complete = Some(now);
                request.done = true;
                let host = request.host;
                self.pools[host as usize].answers += 1;
                self.unblock(id);
                self.checks.note_end(id, true);
                self.events.push_back(Event::Complete { id });
            }
            Event::Failed { id, error } => self.interrupt(now, id, error, Cut::Refused),
        }
    }

    fn pass_head(&mut self, now: Instant, id: RequestId, head: ResponseHead, wire_len: u64) {
        let keeps_head = self.keeps_heads();
        let stale_408 = self.config.retry.resend_on_408 && head.status == 408;
        let attempts_max = self.config.attempts_max;
        let request = self.request_mut(id);
        request.head_bytes_down = wire_len;
        if stale_408
            && request.reused
            && request.attempts < attempts_max
            && request.timing.sent.is_some_and(|sent| now.since(sent) < IS_STALE_408)
        {
            request.void = Some(Void::SendAgain);
            return;
        }
        if head.status == 421 && request.pooled && !std::mem::replace(&mut request.misdirected, true) {
            request.void = Some(Void::SendAgain);
            let host = request.host;
            self.pools[host as usize].unshared = true;
            return;
        }
        if request.resuming {
            let known = request.response.as_ref().expect("kept for this");
            match continuation(known, &head, request.delivered, request.ranged) {
                Ok(skip) => request.skip = skip,
                Err(what) => request.void = Some(Void::Fail(Error::Changed(what))),
            }
            return;
        }
        request.timing.head = Some(now);
        request.answered = true;
        if keeps_head {
            request.response = Some(head.clone());
        }
        self.events.push_back(Event::Head { id, head, wire_len });
    }

    /// Whether answers may have to be compared with what came before.
    fn keeps_heads(&self) -> bool {
        self.config.retry.resume
            || self.config.pipelining.is_some()
            || self.config.stalled == crate::Stalled::Kill
    }

    /// What a request is sent with beyond what was asked for: the range that the page lacks, if the server gave to understand that
    /// it takes ranges, and a validator by which it can tell that it is still the same (RFC 9110 §13.1.5, §14.3).
    pub(crate) fn range(&mut self, id: RequestId) -> Option<RequestHead> {
        let request = self.request_mut(id);
        request.ranged = false;
        let known = request.response.as_ref().filter(|_| request.resuming && request.delivered > 0)?;
        let in_parts = known.fields.get_str("accept-ranges").is_some_and(|v| v.eq_ignore_ascii_case("bytes"));
        let validator = known.fields.get("etag").filter(|etag| !etag.starts_with(b"W/") && in_parts)?;
        let mut head = request.head.clone();
        head.fields.push("Range", format!("bytes={}-", request.delivered));
        head.fields.push("If-Range", validator.clone());
        request.ranged = true;
        Some(head)
    }

    pub(crate) fn fail(&mut self, id: RequestId, error: Error) {
        let request = self.request_mut(id);
        request.done = true;
        request.error = Some(error.clone());
        self.unblock(id);
        self.checks.note_end(id, false);
        self.events.push_back(Event::Failed { id, error });
    }
}

/// Why nothing of the answer that is coming is passed on, and what follows once it is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Void {
    SendAgain,
    Fail(Error),
}

impl Request {
    /// RFC 9110 §9.2.2.
    fn is_idempotent(&self) -> bool {
        matches!(&self.head.method[..], b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE" | b"PUT" | b"DELETE")
    }

    /// What another run of the application is to know of the request. An answer that says `no-store` (RFC 9111 §5.2.2.5) is not kept,
    /// unless asking for it again might not be safe.
    fn leaves(&self) -> Option<Left> {
        let storable = |head: &&ResponseHead| {
            let control = head.fields.get_str("cache-control").unwrap_or_default();
            !control.split(',').any(|word| word.trim().eq_ignore_ascii_case("no-store"))
        };
        let (whole, safe) = (self.done && self.error.is_none(), self.is_idempotent());
        let answer =
            |head: &ResponseHead| Interrupted { head: head.clone(), body_len: self.delivered, whole };
        match &self.response {
            Some(head) if whole && !safe => Some(Left::Answer(answer(head))),
            Some(head) if self.may_resume() && storable(&head) => Some(Left::Answer(answer(head))),
            _ => (!safe && self.attempts > 0).then_some(Left::Sent),
        }
    }

    /// Whether an answer begun may be continued by another: that to a plain GET which was a plain 200
    /// (nsHttpTransaction.cpp, RestartInProgress).
    fn may_resume(&self) -> bool {
        let plain = self.head.method == "GET" && self.body_len == 0;
        plain && self.response.as_ref().is_some_and(|head| head.status == 200)
    }
}

/// What of an answer has been passed on when the application ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interrupted {
    /// Its head.
    pub head: ResponseHead,
    /// Bytes of its body.
    pub body_len: u64,
    /// Whether that is all.
    pub whole: bool,
}

/// What an application that ends leaves of a request to the one that is started next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Left {
    /// An answer, or the beginning of one.
    Answer(Interrupted),
    /// It was sent and not answered, and must not be sent again, as it may have been applied.
    Sent,
}

/// Something that has befallen a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// When.
    pub at: Instant,
    /// On which connection, if it had been sent.
    pub connection: Option<ConnectionId>,
    /// What.
    pub error: Error,
}

/// How many bytes of an answer's body are there already, if it continues the one whose head is known and of which `delivered` are;
/// in which respect it is another, if it does not. `ranged`: the rest alone was asked for.
fn continuation(
    known: &ResponseHead,
    head: &ResponseHead,
    delivered: u64,
    ranged: bool,
) -> Result<u64, &'static str> {
    if !ranged || head.status != 206 {
        return difference(known, head).map_or(Ok(delivered), Err);
    }
    let range = head.fields.get_str("content-range").unwrap_or_default();
    let begins = range.strip_prefix("bytes ").and_then(|r| r.split('-').next());
    if begins.and_then(|n| n.parse().ok()) != Some(delivered) {
        return Err("content-range");
    }
    if head.fields.get("etag") != known.fields.get("etag") {
        return Err("etag");
    }
    Ok(0)
}

/// What distinguishes an answer from that which it is to continue (nsHttpTransaction.cpp, RestartVerifier::Verify).
fn difference(known: &ResponseHead, head: &ResponseHead) -> Option<&'static str> {
    if head.status != known.status {
        return Some("its status is another");
    }
    let fields = ["content-length", "etag", "last-modified", "content-range", "content-encoding"];
    fields.into_iter().find(|name| head.fields.get(name) != known.fields.get(name))
}
