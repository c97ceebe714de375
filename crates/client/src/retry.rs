//! What becomes of a request whose answer was cut off, or never came: it is sent again at once, sent again later, or it
//! fails, and the page is told why.
//!
//! Sending again at once is for what is no fault of the request's: the connection was an old one and had died, or the server
//! says that it never looked. Browsers do that silently. Sending again later, within a budget, is what their users do by
//! pressing "reload". What the page has seen of an answer it must not see twice: then the answer is fetched anew, compared
//! with what is known of the first, and passed on from where that ended.

use base::{Duration, Instant, ResponseHead};

use crate::connection::State;
use crate::request::Request;
use crate::timer::Timer;
use crate::{Client, Error, Event, RequestId, Transport, priority};

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
}

/// What is done about answers that do not come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retry {
    /// When a request that went down with its connection is sent again.
    pub stale: StaleRule,
    /// Whether a 408 that comes within a second of the request, on a reused connection, means that the connection had been
    /// given up by its server, so that the request is sent again (nsHttpConnection.cpp, OnHeadersAvailable).
    pub resend_on_408: bool,
    /// Whether an answer to a GET that was cut off is fetched again, and what the page has of it skipped. Needs budget.
    pub resume: bool,
    /// How many times requests that failed are sent again, all together. Documents are not: their failure is the page's.
    /// Nor are methods other than GET and HEAD, which it might not be safe to repeat.
    pub budget: u32,
    /// How many times one request is.
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
        budget: 0,
        each: 0,
        backoff: Duration::ZERO,
    };

    /// Firefox's rules, and no budget. Its `network.http.request.max-attempts` is 10:
    /// [`Config::attempts_max`](crate::Config::attempts_max).
    pub const FIREFOX: Self = Self { stale: StaleRule::Firefox, resend_on_408: true, ..Self::CHROME };

    /// A client that does for its user what "reload" is pressed for. The figures are ours: three times each after 250 ms,
    /// 500 ms and 1 s, which outlasts a change of networks, and 100 in all, so that a server that is down is not stormed.
    pub const RELOADING: Self = Self {
        stale: StaleRule::Chrome,
        resend_on_408: true,
        resume: true,
        budget: 100,
        each: 3,
        backoff: Duration::from_millis(250),
    };
}

/// A 408 within this time of the request was sent before the request came.
const IS_STALE_408: Duration = Duration::from_secs(1);

/// How a request lost its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cut {
    /// The connection is gone; whether nothing of the request had been sent.
    Lost { unsent: bool },
    /// The server says that it never looked at it, or never will.
    Returned,
    /// It was pipelined, and is not any more.
    Unpipelined,
    /// Anything else.
    Refused,
}

impl Client {
    /// A request has lost its answer, or its hope of one.
    pub(crate) fn interrupt(&mut self, now: Instant, id: RequestId, error: Error, cut: Cut) {
        let attempts_max = self.config.attempts_max;
        let stale = self.config.retry.stale;
        let request = self.request_mut(id);
        let fresh = !request.answered && request.attempts < attempts_max + request.retries;
        let again = match cut {
            Cut::Returned => fresh,
            Cut::Unpipelined => !request.answered || request.may_resume(),
            Cut::Lost { unsent } => fresh && (request.reused || (unsent && stale == StaleRule::Firefox)),
            Cut::Refused => false,
        };
        if again {
            self.resend(id);
        } else if self.may_retry(id) {
            self.retry_later(now, id, error);
        } else {
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

    fn may_retry(&mut self, id: RequestId) -> bool {
        let policy = self.config.retry;
        let left = self.retries < policy.budget;
        let request = self.request_mut(id);
        let repeatable = matches!(&request.head.method[..], b"GET" | b"HEAD");
        let unseen = !request.answered || (policy.resume && request.may_resume());
        left && request.retries < policy.each
            && repeatable
            && request.priority != priority::DOCUMENT
            && unseen
    }

    fn retry_later(&mut self, now: Instant, id: RequestId, error: Error) {
        self.retries += 1;
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

    /// How many times requests that had failed were sent again within [`Retry::budget`].
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
    /// HTTP/1.1 connection that is in use is left to the transport, which will say whether it has survived.
    pub fn handle_network_change(&mut self, now: Instant) {
        self.resolver.forget_all();
        for id in 0..self.connections.len() as u32 {
            let connection = &mut self.connections[id as usize];
            let host = connection.record.host;
            let multiplexed = self.pools[host as usize].transport.unwrap_or(self.config.transport);
            let in_use = connection.state == State::Ready && !connection.active.is_empty();
            if connection.state == State::Closed || (in_use && multiplexed == Transport::Http1) {
                continue;
            }
            let active = std::mem::take(&mut connection.active);
            self.give_up_dial(id);
            self.close(now, id);
            for active in active {
                self.interrupt(now, active.request, Error::NetworkChanged, Cut::Returned);
            }
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
            if let Some(what) = difference(known, &head) {
                request.void = Some(Void::Fail(Error::Changed(what)));
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
        self.config.retry.resume || self.config.pipelining.is_some()
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
    /// Whether an answer begun may be continued by another: that to a plain GET which was a plain 200
    /// (nsHttpTransaction.cpp, RestartInProgress).
    fn may_resume(&self) -> bool {
        let plain = self.head.method == "GET" && self.body_len == 0;
        plain && self.response.as_ref().is_some_and(|head| head.status == 200)
    }
}

/// What distinguishes an answer from that which it is to continue (nsHttpTransaction.cpp, RestartVerifier::Verify).
fn difference(known: &ResponseHead, head: &ResponseHead) -> Option<&'static str> {
    if head.status != known.status {
        return Some("its status is another");
    }
    let fields = ["content-length", "etag", "last-modified", "content-range", "content-encoding"];
    fields.into_iter().find(|name| head.fields.get(name) != known.fields.get(name))
}
