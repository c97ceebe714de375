//! One direction of the emulated link: the path that all packets share, and a longer way for some.
//!
//! To a destination that is further away, a packet takes a *detour* of fixed length: beyond the path on the way up, before it on
//! the way down, so that the queue stands where the user's own line is. No clock is read here, and every packet moves on at the
//! moment it should, however late this is called.
//!
//! The path may be changed for another, as when a machine goes over to another network: what is on it is lost.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use base::{Duration, Instant, Rng};
use link::{Dropped, Outage, Path, PathConfig, PathStats};

use super::packet::Packet;

#[derive(Debug)]
pub(super) struct Way {
    path: Path<Packet>,
    /// What paths of before have counted.
    past: PathStats,
    detour: Detour,
    detour_first: bool,
}

/// Packets that wait for their moment, in order of it; those of one moment in order of coming.
#[derive(Debug, Default)]
struct Detour {
    heap: BinaryHeap<Reverse<Waiting>>,
    entered: u64,
}

#[derive(Debug)]
struct Waiting {
    until: Instant,
    order: u64,
    packet: Packet,
}

impl Waiting {
    fn key(&self) -> (Instant, u64) {
        (self.until, self.order)
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl Detour {
    fn push(&mut self, until: Instant, packet: Packet) {
        self.heap.push(Reverse(Waiting { until, order: self.entered, packet }));
        self.entered += 1;
    }

    fn pop(&mut self, now: Instant) -> Option<(Instant, Packet)> {
        self.next_time().filter(|until| *until <= now)?;
        self.heap.pop().map(|Reverse(waiting)| (waiting.until, waiting.packet))
    }

    fn next_time(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(waiting)| waiting.until)
    }
}

impl Way {
    pub fn new(config: &PathConfig, rng: Rng, detour_first: bool) -> Self {
        let (past, detour) = (PathStats::default(), Detour::default());
        Self { path: path(config, rng), past, detour, detour_first }
    }

    /// Takes another path. Gives what was on the first, and on the way to it; packets that have left it for their server still arrive.
    pub fn change(&mut self, config: &PathConfig, rng: Rng) -> Vec<Packet> {
        self.past = self.stats();
        let mut old = std::mem::replace(&mut self.path, path(config, rng));
        let mut lost: Vec<Packet> = std::iter::from_fn(|| old.pop(Instant::MAX)).collect();
        lost.extend(std::iter::from_fn(|| old.poll_dropped()).map(|dropped| dropped.packet));
        if self.detour_first {
            lost.extend(std::iter::from_fn(|| self.detour.pop(Instant::MAX)).map(|(_, packet)| packet));
        }
        lost
    }

    /// See [`Path::set_outages`].
    pub fn set_outages(&mut self, outages: Vec<Outage>) {
        self.path.set_outages(outages);
    }

    /// A packet comes.
    pub fn receive(&mut self, now: Instant, packet: Packet) {
        self.settle(now);
        if self.detour_first && packet.extra > Duration::ZERO {
            let until = now + packet.extra;
            self.detour.push(until, packet);
        } else {
            self.path.push(now, packet);
        }
    }

    /// The next packet that is due by `now`.
    pub fn deliver(&mut self, now: Instant) -> Option<Packet> {
        self.settle(now);
        if self.detour_first {
            return self.path.pop(now);
        }
        while let Some(mut packet) = self.path.pop(now) {
            if packet.extra == Duration::ZERO {
                return Some(packet);
            }
            packet.due += packet.extra;
            self.detour.push(packet.due, packet);
        }
        self.detour.pop(now).map(|(_, packet)| packet)
    }

    /// The earliest moment at which something moves on; `None` if there is nothing on the way.
    pub fn next_time(&self) -> Option<Instant> {
        self.path.next_time().into_iter().chain(self.detour.next_time()).min()
    }

    /// The next packet that was lost or dropped.
    pub fn poll_dropped(&mut self) -> Option<Dropped<Packet>> {
        self.path.poll_dropped()
    }

    /// What the path has counted, and those before it. Packets on a detour before it are not counted yet, those on one behind it are.
    pub fn stats(&self) -> PathStats {
        self.past.and_then(self.path.stats())
    }

    /// Bytes that wait for the line.
    pub fn queue_bytes(&self) -> u64 {
        self.path.queue_bytes()
    }

    /// Shows every packet that is still on the way, in no particular order, and forgets them.
    pub fn drain(&mut self, show: &mut impl FnMut(Packet)) {
        while let Some(packet) = self.deliver(Instant::MAX) {
            show(packet);
        }
    }

    /// Lets packets that have come to the end of their detour by `now` enter the path, each at its moment.
    fn settle(&mut self, now: Instant) {
        if self.detour_first {
            while let Some((until, packet)) = self.detour.pop(now) {
                self.path.push(until, packet);
            }
        }
    }
}

/// A path that keeps what it drops, so that the emulator has its buffers back.
fn path(config: &PathConfig, rng: Rng) -> Path<Packet> {
    let mut path = Path::new(config, rng);
    path.keep_dropped();
    path
}
