//! The virtual world: one page load in virtual time, with no privileges and no clock.
//!
//! [`load`] builds a client, a server for every host of the page, and one access link that all of them share, and
//! runs events until the page is loaded. The same page, setup and seed give the same [`Load`], on any machine.
//!
//! ```text
//!            +--------- access link ---------+     +-- the host's own share of the round trip --+
//!   client --| up:   loss, queue, rate, delay |-----| delay only                                 |-- server
//!            | down: loss, queue, rate, delay |     |                                            |
//! ```
//!
//! # What is modelled, and how far
//!
//! * Each host has its own address and its own server; every connection is its own pair of TCP endpoints. All share
//!   the access link, whose queues are the only ones.
//! * A name look-up costs a fixed time, once a name; its packets do not travel the link.
//! * Servers are never short of processor time: a response is ready after its own thinking time, whatever else the
//!   server does. TLS costs the time that its configuration says.
//! * A connection is torn down with FIN when a rule of the client or server says so; at the end of the load, open
//!   connections are left as they are.
//!
//! # Common random numbers
//!
//! The seed does not depend on the transport, so that two transports are compared under the same luck: the n-th
//! packet to enter the link in either direction is lost for both or for neither; hosts have the same round trips,
//! look-ups and thinking times, the page the same computation. What is *not* the same is what the n-th packet
//! carries, since the transports send different packets.

mod connection;
mod queue;
mod setup;
mod world;

use base::{Duration, Instant};
use page::Page;

pub use setup::{HostRtt, Setup, TlsScope};

/// What came of one load.
#[derive(Clone, PartialEq, Debug)]
pub struct Load {
    /// Whether everything was loaded.
    pub outcome: Outcome,
    /// Moments of the load; the navigation starts at [`Instant::ZERO`].
    pub moments: browser::Moments,
    /// The page's resources, in its order.
    pub requests: Vec<Request>,
    /// Connections, in the order of their opening.
    pub connections: Vec<Connection>,
    /// Names looked up.
    pub lookups: u32,
    /// The access link towards the client.
    pub down: link::PathStats,
    /// The access link from the client.
    pub up: link::PathStats,
    /// Time for which the page's main thread was busy.
    pub computed: Duration,
    /// When the world stopped.
    pub ended: Instant,
}

impl Load {
    /// Page load time: from the navigation's start to `onload`.
    pub fn plt(&self) -> Option<Duration> {
        self.moments.load.map(|at| at.since(Instant::ZERO))
    }
}

/// How a load ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Every resource was fetched and used.
    Complete,
    /// Something is missing: the first reason.
    Incomplete(String),
}

/// One resource of the page in this load.
#[derive(Clone, PartialEq, Debug)]
pub struct Request {
    /// How far it came, and when it was discovered, complete and used.
    pub record: browser::Record,
    /// Phases of its last attempt; `None` if it was never asked for.
    pub timing: Option<client::Timing>,
    /// Priority asked for.
    pub priority: client::Priority,
    /// Index into [`Load::connections`] of the connection that carried it.
    pub connection: Option<u32>,
    /// Bytes that its head took on the wire.
    pub head_bytes_up: u64,
    /// Bytes that the response's head took on the wire.
    pub head_bytes_down: u64,
    /// Bytes of the response's body that arrived.
    pub body_bytes: u64,
}

/// One connection in this load.
#[derive(Clone, PartialEq, Debug)]
pub struct Connection {
    /// What the client knows of it.
    pub record: client::ConnectionRecord,
    /// The server's address.
    pub address: String,
    /// TCP at the client's end.
    pub client: tcp::Stats,
    /// TCP at the server's end.
    pub server: tcp::Stats,
}

/// Loads `page`, which must be valid, and says what came of it.
pub fn load(page: &Page, setup: &Setup, seed: u64) -> Load {
    world::World::new(page, setup, seed).run()
}
