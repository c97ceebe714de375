//! The path between two hosts, one direction at a time.
//!
//! A path is a chain of nodes, each with one thing to do to a packet:
//!
//! ```text
//! push ─▶ Loss ─▶ Bottleneck(queue, rate) ─▶ Delay ─▶ pop
//! ```
//!
//! * [`Loss`] decides on entry, before the queue, as dummynet's `plr` and netem's `loss` do: a lost packet takes no
//!   place in the queue and no time on the line. What happens to the n-th packet to enter is a function of the seed
//!   and n alone, so two transports raced with one seed lose the same packets by number, and what is lost at some
//!   probability is lost at every higher one. An [`Outage`] takes whatever enters while it lasts, and moves no draw.
//! * [`Bottleneck`] queues packets, drop-tail, CoDel (read RFC 8289 first) or FQ-CoDel (RFC 8290), and sends them one
//!   after the other at a constant [`Rate`] or at the opportunities of a recorded [`Trace`].
//! * [`Delay`] holds each packet for the propagation delay, and for a random jitter that never reorders.
//!
//! [`Path`] is that chain with its counters. Nothing here reads a clock: a node learns the time from its caller, and
//! catches up *exactly*, however late it is called. What a queue does between two calls it does at the moments at
//! which the line became free, not at the moment of the call (Mahimahi's CoDel asks the clock while it catches up,
//! and so measures its own lateness).
//!
//! Who wants to know what became of each packet, and when, has the path tell: [`Packet::mark`] and [`Path::keep_dropped`].
//!
//! ```
//! use base::{Bitrate, Duration, Instant, Rng};
//! use link::{Packet, Path, PathConfig, QueueConfig, Rate};
//!
//! struct Datagram(u32);
//! impl Packet for Datagram {
//!     fn wire_len(&self) -> u32 {
//!         self.0
//!     }
//! }
//!
//! let rate = Rate::Constant(Bitrate::from_kbps(2_000).unwrap());
//! let rtt = Duration::from_millis(100);
//! let queue = QueueConfig::sized_for(&rate, rtt);
//! let config = PathConfig { rate, delay: rtt / 2, queue, ..PathConfig::default() };
//! let mut path = Path::new(&config, Rng::new(7));
//! path.push(Instant::ZERO, Datagram(1_500));
//! let at = path.next_time().unwrap();
//! assert_eq!(at, Instant::ZERO + Duration::from_millis(6 + 50)); // 1500 bytes at 2 Mbit/s, then half of the RTT
//! assert!(path.pop(at).is_some());
//! ```

mod bottleneck;
mod codel;
mod config;
mod delay;
mod fq_codel;
mod loss;
mod path;
mod queue;
mod trace;

pub use bottleneck::Bottleneck;
pub use config::{ConfigError, Discipline, LossConfig, Outage, PathConfig, QueueConfig, Rate};
pub use delay::Delay;
pub use loss::{Fate, Loss};
pub use path::{Path, PathStats};
pub use trace::{Trace, TraceError, TraceFault};

use base::Instant;

/// What a path must know of a packet.
pub trait Packet {
    /// Bytes the packet occupies in the queue and on the line: the IP packet, headers included. Must not change
    /// while the packet is on the path.
    fn wire_len(&self) -> u32;

    /// The flow the packet belongs to, for fair queueing: equal for packets of one connection and direction.
    fn flow(&self) -> u64 {
        0
    }

    /// Told by a [`Path`] when something in the packet's life is settled, with its moment, which may lie ahead of the call's.
    fn mark(&mut self, _mark: Mark, _at: Instant) {}
}

/// A moment in the life of a packet on a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// It leaves the queue for the line.
    Line,
    /// Its last bit has left the line.
    Sent,
    /// It leaves the path.
    Arrives,
}

/// A packet that will not arrive.
#[derive(Clone, Debug)]
pub struct Dropped<P> {
    /// When.
    pub at: Instant,
    /// The packet.
    pub packet: P,
    /// What took it.
    pub why: DropCause,
}

/// What takes a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropCause {
    /// Random loss.
    Loss,
    /// The path was out.
    Outage,
    /// Want of room in the queue.
    Full,
    /// The queue's discipline: it had waited too long.
    Discipline,
}

/// A thing that packets go through, first in, first out unless the node says otherwise.
///
/// The times of successive calls must not decrease.
pub trait Node<P> {
    /// A packet enters at `now`.
    fn push(&mut self, now: Instant, packet: P);

    /// Takes the next packet that has left the node by `now`; call again until it gives `None`.
    fn pop(&mut self, now: Instant) -> Option<P>;

    /// The earliest moment at which [`pop`](Node::pop) can give a packet if none enters before; `None` when the node
    /// is empty. An early call of `pop` does no harm. The moment changes with every `push` and `pop`.
    fn next_time(&self) -> Option<Instant>;
}
