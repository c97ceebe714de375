//! A request: what it is, how much it matters, and what has become of it.

use base::{Instant, RequestHead, ResponseHead};

use crate::retry::Void;
use crate::{ConnectionId, Error};

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

/// What the client knows of a request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Index of the host asked.
    pub host: u32,
    /// How much it matters.
    pub priority: Priority,
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
    /// How often it was sent again after it had failed, within [`Retry::budget`](crate::Retry::budget).
    pub retries: u32,
    /// Whether its connection was opened to another host.
    pub pooled: bool,
    /// Why it failed for good.
    pub error: Option<Error>,
    /// When it was made, among all requests: those of equal priority are sent in this order.
    pub(crate) age: u32,
    /// Its connection was no fresh one when it was sent.
    pub(crate) reused: bool,
    /// A part of a response has been passed on.
    pub(crate) answered: bool,
    pub(crate) done: bool,
    /// Bytes of the answer's body that were passed on.
    pub(crate) delivered: u64,
    /// The answer under way continues one that was cut off, whose head this is.
    pub(crate) resuming: bool,
    pub(crate) response: Option<ResponseHead>,
    /// Bytes of it that were passed on before.
    pub(crate) skip: u64,
    /// Nothing of the answer under way is passed on.
    pub(crate) void: Option<Void>,
    /// It was sent to a server that does not serve its host.
    pub(crate) misdirected: bool,
}

impl Request {
    pub(crate) fn new(
        host: u32,
        priority: Priority,
        head: RequestHead,
        body_len: u64,
        now: Instant,
        age: u32,
    ) -> Self {
        Self {
            host,
            priority,
            head,
            body_len,
            connection: None,
            timing: Timing { queued: now, ..Timing::default() },
            attempts: 0,
            head_bytes_up: 0,
            head_bytes_down: 0,
            retries: 0,
            pooled: false,
            error: None,
            age,
            reused: false,
            answered: false,
            done: false,
            delivered: 0,
            resuming: false,
            response: None,
            skip: 0,
            void: None,
            misdirected: false,
        }
    }
}
