//! One load of a page, in either world: the [`Setup`] it is made with, and the [`Load`] that came of it.
//!
//! The virtual world and the live one know nothing of each other. What they have in common is below them, in the engines, the
//! client and the browser; and here, in what they are told and what they tell. So a plan is carried out in either by the same
//! code, and two loads are compared without asking where they come from.
//!
//! What a world cannot do as the setup says, or not know of what a load asks, it says in its own documentation.

mod certificate;
mod fault;
mod foresight;
mod kept;
mod packet;
mod past;
mod servers;
mod setup;
mod tabs;
mod technique;
mod traffic;
mod wire;

use base::{Duration, Instant};

pub use certificate::{AUTHORITIES, Certificates, OCSP_LEN};
pub use fault::{Faults, NetworkChange};
pub use packet::{Carried, Packet};
pub use past::Past;
pub use servers::{BadPipeliners, Ipv6, Route, Servers, Which};
pub use setup::{HostRtt, Setup, TlsScope};
pub use tabs::Tabs;
pub use technique::{HostStanding, KeptSettings, KnownPage, Memory, Techniques};
pub use traffic::Traffic;
pub use wire::{Sighting, Stream, Wire};

/// What came of one load.
#[derive(Clone, PartialEq, Debug)]
pub struct Load {
    /// Whether everything was loaded.
    pub outcome: Outcome,
    /// Moments of the load; the navigation starts at [`Instant::ZERO`].
    pub moments: browser::Moments,
    /// The page's resources, in its order; behind them what else was asked for, as [`Setup::furnish`] has it.
    pub requests: Vec<browser::Request>,
    /// What became of the pages behind it, if [`Setup::tabs`] has any. Everything below is of all pages together.
    pub behind: Vec<browser::Behind>,
    /// Connections, in the order of their opening.
    pub connections: Vec<Connection>,
    /// Names looked up.
    pub lookups: u32,
    /// The access link towards the client.
    pub down: link::PathStats,
    /// The access link from the client.
    pub up: link::PathStats,
    /// Time for which the page's main thread was busy; of the page in front alone.
    pub computed: Duration,
    /// When the world stopped.
    pub ended: Instant,
    /// Bytes of answers that had come and the page had not read, at most.
    pub unread_max: u64,
    /// What asking for things before the page came to them, and pushing them, has cost and brought; see [`Techniques::hints`],
    /// [`Techniques::prefetch`] and [`Techniques::push`].
    pub ahead: browser::AheadTally,
    /// How far SPDY streams had come, and how far their windows let them go on, at each of their pieces; only if
    /// [`Setup::keeps_progress`] is set.
    pub progress: Vec<client::Progress>,
    /// Every segment of every connection, in the order in which they left; only if [`Setup::keeps_packets`] is set. Not known in the
    /// live world, where it is empty.
    pub packets: Vec<Packet>,
    /// What crossed, byte for byte and in order; only if [`Setup::keeps_bytes`] is set. Not known in the live world.
    pub wire: Option<Wire>,
    /// What the browser remembers of it, and of what [`Setup::memory`] held.
    pub memory: Memory,
    /// Resources that were not had at the first try, or not at all: what was tried, and what happened. In the page's order.
    pub troubles: Vec<browser::Trouble>,
    /// Requests that reached their servers more often than the page makes them: the resource, and how many times more.
    pub repeated: Vec<(page::ResourceId, u32)>,
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

/// One connection in a load.
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
