//! A request: what it is, how much it matters, and what has become of it.

use base::{Instant, RequestHead, ResponseHead};

use crate::pipeline::Class;
use crate::retry::{Failure, Interrupted, Void};
use crate::{ConnectionId, Error, LoadId};

/// A request's number; the caller chooses it, densely from 0.
pub type RequestId = u32;

/// How much a request matters; lower is more urgent, 0–7. [`priority`] has Chrome's levels.
pub type Priority = u8;

/// Chrome's request priorities of 2011, which are also its SPDY/3 priorities.
pub mod priority {
    use super::Priority;
    /// Documents and frames.
    pub const DOCUMENT: Priority = 0;
    /// Style sheets, scripts and fonts.
    pub const SCRIPT: Priority = 1;
    /// Sub-resources without a rule of their own: objects, media, XHR.
    pub const SUBRESOURCE: Priority = 2;
    /// Images.
    pub const IMAGE: Priority = 3;
    /// Prefetches.
    pub const PREFETCH: Priority = 4;
}

/// When the phases of a request's life were. A phase that the request did not wait for is `None`, as in a HAR; a
/// phase that had begun before the request was made is counted from then.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Timing {
    /// The request was handed to the client.
    pub queued: Instant,
    /// It waited for a name to resolve: from, to.
    pub dns: Option<(Instant, Instant)>,
    /// It waited for its connection to be established: from, to.
    pub connect: Option<(Instant, Instant)>,
    /// It waited for its connection's TLS handshake: from, to.
    pub tls: Option<(Instant, Instant)>,
    /// It was handed to its connection's engine, for the last time.
    pub sent: Option<Instant>,
    /// The response's head was complete.
    pub head: Option<Instant>,
    /// The response was complete.
    pub complete: Option<Instant>,
}

/// How a request went out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SentOn {
    /// As the first on its connection.
    Fresh,
    /// On a connection that had served before and was idle.
    Idle,
    /// Behind others without an answer, on an HTTP/1.1 connection.
    Pipelined,
    /// On a session that had served before.
    Session,
}

/// All that may be said of a request when it is made; see [`Client::ask`](crate::Client::ask).
#[derive(Clone, Debug)]
pub struct Ask {
    /// Index of the host to ask.
    pub host: u32,
    /// What is asked.
    pub head: RequestHead,
    /// Bytes of the request's body.
    pub body_len: u64,
    /// How much it matters within its load.
    pub priority: Priority,
    /// The load that it belongs to.
    pub load: LoadId,
    /// Whether it is what its load's page waits with everything else for: a script or style sheet in the head. While
    /// such a request has no answer, those of its load that are neither such nor documents stay in the queue, where
    /// [`Config::pipelining`](crate::Config::pipelining) is on (Firefox's LOAD_AS_BLOCKING).
    pub blocks: bool,
    /// What it is to pipelining; [`Class::of`] its head if nothing is said. An XHR is [`Class::Solo`] in Firefox.
    pub class: Option<Class>,
    /// What another run of the application has of the answer, and has passed on: the rest is fetched, as after a connection that
    /// was lost. Of use with [`Retry::resume`](crate::Retry::resume).
    pub resume: Option<Interrupted>,
}

impl Ask {
    /// A request of load 0 without a body, that nothing waits for.
    pub fn new(host: u32, head: RequestHead, priority: Priority) -> Self {
        Self { host, head, body_len: 0, priority, load: 0, blocks: false, class: None, resume: None }
    }
}

/// What the client knows of a request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Index of the host asked.
    pub host: u32,
    /// How much it matters.
    pub priority: Priority,
    /// The load that it belongs to.
    pub load: LoadId,
    /// What is asked.
    pub head: RequestHead,
    /// Bytes of the request's body.
    pub body_len: u64,
    /// The connection it went out on, for the last time.
    pub connection: Option<ConnectionId>,
    /// When its phases were.
    pub timing: Timing,
    /// How often it was sent.
    pub attempts: u32,
    /// Bytes that its head took on the wire, the last time.
    pub head_bytes_up: u64,
    /// Bytes that the response's head took on the wire.
    pub head_bytes_down: u64,
    /// How it went out, for the last time.
    pub sent_on: SentOn,
    /// Whether, when its name was known, it had to wait for a connection that was in use: none was free, and the limits let
    /// none be made for it.
    pub queued: bool,
    /// How often it was sent again after it had failed, within [`Retry::budget`](crate::Retry::budget), since anything moved.
    pub retries: u32,
    /// Whether its connection was opened to another host.
    pub pooled: bool,
    /// Why it failed for good.
    pub error: Option<Error>,
    /// What befell it, each time that it lost its answer or the hope of one; what it got over is in it too.
    pub failures: Vec<Failure>,
    /// When it was made, among all requests: those of equal priority are sent in this order.
    pub(crate) age: u32,
    /// Its connection was no fresh one when it was sent.
    pub(crate) reused: bool,
    /// A part of a response has been passed on.
    pub(crate) answered: bool,
    pub(crate) done: bool,
    /// Others of its load wait for it.
    pub(crate) blocks: bool,
    /// Bytes of the answer's body that were passed on.
    pub(crate) delivered: u64,
    /// The answer under way continues one that was cut off, whose head this is.
    pub(crate) resuming: bool,
    pub(crate) response: Option<ResponseHead>,
    /// What it is to pipelining; it is out of the question if it was in a pipeline that broke.
    pub(crate) class: Class,
    pub(crate) solo: bool,
    /// A way to go was looked for before.
    pub(crate) looked_at: bool,
    /// Its place in a pipeline.
    pub(crate) position: u32,
    /// Bytes of the answer's body: that its head announces, and that have come.
    pub(crate) announced: Option<u64>,
    pub(crate) received: u64,
    /// Bytes of it that were passed on before.
    pub(crate) skip: u64,
    /// How far it and its host had come when it failed last.
    pub(crate) mark: Option<(u64, u32)>,
    /// Only what comes after those was asked for.
    pub(crate) ranged: bool,
    /// Nothing of the answer under way is passed on.
    pub(crate) void: Option<Void>,
    /// It was sent to a server that does not serve its host.
    pub(crate) misdirected: bool,
}

impl Request {
    pub(crate) fn new(ask: Ask, class: Class, now: Instant, age: u32) -> Self {
        let resumed = ask.resume.as_ref().map_or(0, |known| known.body_len);
        Self {
            class,
            solo: false,
            looked_at: false,
            position: 0,
            announced: None,
            received: 0,
            sent_on: SentOn::Fresh,
            queued: false,
            host: ask.host,
            priority: ask.priority,
            load: ask.load,
            head: ask.head,
            body_len: ask.body_len,
            blocks: ask.blocks,
            connection: None,
            timing: Timing { queued: now, head: ask.resume.as_ref().map(|_| now), ..Timing::default() },
            attempts: 0,
            head_bytes_up: 0,
            head_bytes_down: 0,
            retries: 0,
            pooled: false,
            error: None,
            failures: Vec::new(),
            age,
            reused: false,
            answered: ask.resume.is_some(),
            done: false,
            delivered: resumed,
            resuming: ask.resume.is_some(),
            response: ask.resume.map(|known| known.head),
            skip: resumed,
            ranged: false,
            mark: None,
            void: None,
            misdirected: false,
        }
    }
}
