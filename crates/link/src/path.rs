//! The chain of nodes, and its counters.

use base::{Duration, Instant, Rng};

use crate::bottleneck::drop_packet;
use crate::{Bottleneck, Delay, DropCause, Dropped, Fate, Mark, Node, Outage, Packet, PathConfig};

/// One direction of a path: loss, then a queue and a line, then delay.
///
/// After a `push` or a `pop`, ask [`next_time`](Path::next_time) when to come back; once a packet is enough.
#[derive(Clone, Debug)]
pub struct Path<P> {
    fate: Fate,
    outages: Vec<Outage>,
    bottleneck: Bottleneck<P>,
    delay: Delay<P>,
}

/// What a path has counted. Bytes are wire bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PathStats {
    /// Packets pushed, lost ones included.
    pub packets_in: u64,
    /// Bytes pushed.
    pub bytes_in: u64,
    /// Packets popped.
    pub packets_out: u64,
    /// Bytes popped.
    pub bytes_out: u64,
    /// Packets that random loss took.
    pub dropped_loss: u64,
    /// Packets that an outage took.
    pub dropped_outage: u64,
    /// Packets that the queue dropped, for want of room or by its discipline.
    pub dropped_queue: u64,
    /// Most bytes that waited at once, without the packet on the line.
    pub queue_bytes_max: u64,
    /// Longest time that a packet which was sent waited for the line.
    pub wait_max: Duration,
    /// Sum of these times over all packets sent.
    pub wait_sum: Duration,
    /// Time for which the line had a packet to send, the one it has just begun counted to its end.
    pub busy: Duration,
}

impl PathStats {
    /// What this path has counted, and then the one that took its place; of waits and queues the greater.
    pub fn and_then(&self, next: &Self) -> Self {
        Self {
            packets_in: self.packets_in + next.packets_in,
            bytes_in: self.bytes_in + next.bytes_in,
            packets_out: self.packets_out + next.packets_out,
            bytes_out: self.bytes_out + next.bytes_out,
            dropped_loss: self.dropped_loss + next.dropped_loss,
            dropped_outage: self.dropped_outage + next.dropped_outage,
            dropped_queue: self.dropped_queue + next.dropped_queue,
            queue_bytes_max: self.queue_bytes_max.max(next.queue_bytes_max),
            wait_max: self.wait_max.max(next.wait_max),
            wait_sum: self.wait_sum + next.wait_sum,
            busy: self.busy + next.busy,
        }
    }

    pub(crate) fn note_wait(&mut self, wait: Duration) {
        self.wait_sum += wait;
        self.wait_max = self.wait_max.max(wait);
    }
}

impl<P: Packet> Path<P> {
    /// A path, empty and idle. Its nodes draw from the substreams `loss`, `jitter` and `flows` of `rng`, so that
    /// changing one impairment moves no draw of another.
    pub fn new(config: &PathConfig, rng: Rng) -> Self {
        Self {
            fate: Fate::new(config.loss, rng.substream("loss")),
            outages: config.outages.clone(),
            bottleneck: Bottleneck::new(&config.rate, &config.queue, rng.substream("flows")),
            delay: Delay::new(config.delay, config.jitter, rng.substream("jitter")),
        }
    }

    /// Replaces the path's outages, for who learns when they are only once it is there.
    pub fn set_outages(&mut self, outages: Vec<Outage>) {
        self.outages = outages;
    }

    /// From now on, packets that are lost or dropped are kept for [`poll_dropped`](Path::poll_dropped), which must be
    /// called or they pile up.
    pub fn keep_dropped(&mut self) {
        self.bottleneck.kept.get_or_insert_default();
    }

    /// Takes the next packet that was lost or dropped, in the order in which that happened; `None` if there is none,
    /// or they are not kept.
    pub fn poll_dropped(&mut self) -> Option<Dropped<P>> {
        self.bottleneck.kept.as_mut()?.pop_front()
    }

    /// A packet enters at `now`. It may be lost or dropped: only the counters tell, unless the dropped are
    /// [kept](Path::keep_dropped).
    pub fn push(&mut self, now: Instant, packet: P) {
        let stats = &mut self.bottleneck.stats;
        stats.packets_in += 1;
        stats.bytes_in += u64::from(packet.wire_len());
        let why = match self.fate.next_is_lost() {
            _ if self.outages.iter().any(|outage| outage.is_on(now)) => Some(DropCause::Outage),
            true => Some(DropCause::Loss),
            false => None,
        };
        if let Some(why) = why {
            drop_packet(stats, &mut self.bottleneck.kept, now, packet, why);
            return;
        }
        self.bottleneck.push(now, packet);
        self.settle();
    }

    /// Takes the next packet that has arrived by `now`.
    pub fn pop(&mut self, now: Instant) -> Option<P> {
        self.bottleneck.advance(now);
        self.settle();
        let packet = self.delay.pop(now)?;
        let stats = &mut self.bottleneck.stats;
        stats.packets_out += 1;
        stats.bytes_out += u64::from(packet.wire_len());
        Some(packet)
    }

    /// The earliest moment at which a packet can arrive if none enters before; `None` when the path is empty.
    pub fn next_time(&self) -> Option<Instant> {
        // What is still in the queue arrives after what is in flight.
        self.delay.next_time().or_else(|| self.bottleneck.next_time().map(|at| at + self.delay.min()))
    }

    /// What was counted so far. The queue's part is as of the last `push` or `pop`.
    pub fn stats(&self) -> &PathStats {
        &self.bottleneck.stats
    }

    /// Bytes that wait for the line, as of the last `push` or `pop`.
    pub fn queue_bytes(&self) -> u64 {
        self.bottleneck.queue_bytes()
    }

    /// Packets on the path: in the queue, on the line, or on their way.
    pub fn len(&self) -> usize {
        self.bottleneck.len() + self.delay.len()
    }

    /// Whether no packet is on the path.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Moves what the line has taken to the propagation delay, which it enters when its last bit has left.
    fn settle(&mut self) {
        while let Some((at, mut packet)) = self.bottleneck.take_settled() {
            packet.mark(Mark::Sent, at);
            self.delay.push_with(at, packet, |packet, leaves| packet.mark(Mark::Arrives, leaves));
        }
    }
}

impl<P: Packet> Node<P> for Path<P> {
    fn push(&mut self, now: Instant, packet: P) {
        Path::push(self, now, packet);
    }

    fn pop(&mut self, now: Instant) -> Option<P> {
        Path::pop(self, now)
    }

    fn next_time(&self) -> Option<Instant> {
        Path::next_time(self)
    }
}

#[cfg(test)]
mod tests;
