//! HTTP/1.1 pipelining as Firefox 4 and later had it: requests that follow each other on a connection without waiting for
//! answers, wherever the host has shown that it can be trusted with that.
//!
//! What makes pipelining hard is not sending: it is that answers come in order, so that a slow or large one holds up all
//! behind it, and that servers and what stands before them get it wrong in every way. So a host is watched ([`state`]), requests
//! are put in classes that do not mix ([`class`]), a pipeline is joined only where that is likely to gain ([`dispatch`]),
//! and one that stalls, breaks or turns out large gives back what it has not begun to answer ([`watch`]).
//!
//! The rules are those of nsHttpConnectionMgr.cpp, nsHttpConnection.cpp and nsHttpTransaction.cpp, Firefox 4 to 53. Not
//! modelled: `Keep-Alive: max=` (the engine takes that field away) and the rate pacing of later versions. An origin that
//! answers in the wrong order cannot be told from one that does not, by its client; Firefox could not either.

mod class;
mod dispatch;
mod state;
mod watch;

use base::{Duration, Instant};

pub use class::Class;
pub(crate) use state::Feedback;
pub use state::{HostState, Standing};

/// How pipelining is done, where [`Config::pipelining`](crate::Config::pipelining) has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pipelining {
    /// Requests of a connection without an answer, at most. At most 64, which is what the engine keeps.
    pub depth_max: u32,
    /// The same, for a request that joins a pipeline before other ways were tried.
    pub optimistic_depth: u32,
    /// A larger answer lets nothing wait behind it, in bytes.
    pub object_max: u64,
    /// A pipeline of which nothing was heard for so long gives back what waits behind the first answer.
    pub reschedule_after: Duration,
    /// One that was silent for so long is closed.
    pub read_timeout: Duration,
    /// Whether an XHR may be pipelined. Firefox's nsXMLHttpRequest.cpp sets INHIBIT_PIPELINE: answers that are held back on
    /// purpose are common among them.
    pub xhr: bool,
}

impl Pipelining {
    /// Firefox's: `network.http.pipelining.maxrequests` 32, `max-optimistic-requests` 4, `maxsize` 300,000,
    /// `reschedule-timeout` 1500 ms, `read-timeout` 30 s.
    pub const FIREFOX: Self = Self {
        depth_max: 32,
        optimistic_depth: 4,
        object_max: 300_000,
        reschedule_after: Duration::from_millis(1_500),
        read_timeout: Duration::from_secs(30),
        xhr: false,
    };
}

/// What pipelining keeps of a connection.
pub(crate) struct Pipe {
    /// That of the request last sent on it when it was idle: a pipeline carries one class.
    pub(crate) class: Class,
    /// Its last answer was of a kind to trust it with more than one request; before the first, whether its host was not red
    /// when it was ready (nsHttpConnection.cpp, Init).
    pub(crate) supports: bool,
    /// When something was last heard, or something was asked on it while it was idle (nsHttpConnection.cpp, Activate).
    pub(crate) last_read: Instant,
}

impl Default for Pipe {
    fn default() -> Self {
        Self { class: Class::Solo, supports: false, last_read: Instant::ZERO }
    }
}
