//! The queue and the line behind it.

use std::collections::VecDeque;
use std::sync::Arc;

use base::{Bitrate, Duration, Instant, Rng};

use crate::queue::{Queue, Queued};
use crate::{DropCause, Dropped, Mark, Node, Packet, PathStats, QueueConfig, Rate, Trace};

/// A node that queues packets and sends them one after the other.
///
/// A packet leaves when its last bit is sent. At one and the same moment, the line first finishes what it sends and
/// takes the next packet, and only then does a new one enter.
///
/// When a packet goes on the line, the moment at which it leaves is settled; it is handed on with that moment, ahead
/// of time. That is why a [`Path`](crate::Path) needs to be woken once a packet and not once a node.
#[derive(Clone, Debug)]
pub struct Bottleneck<P> {
    queue: Queue<P>,
    config: QueueConfig,
    line: Line<P>,
    /// Packets with the moment at which they leave.
    sent: VecDeque<(Instant, P)>,
    pub(crate) kept: Kept<P>,
    pub(crate) stats: PathStats,
}

/// What was dropped, for who asks for it; `None` if nobody does.
pub(crate) type Kept<P> = Option<VecDeque<Dropped<P>>>;

/// Counts a packet that is dropped, and keeps it if that was asked for.
pub(crate) fn drop_packet<P>(
    stats: &mut PathStats,
    kept: &mut Kept<P>,
    at: Instant,
    packet: P,
    why: DropCause,
) {
    match why {
        DropCause::Loss => stats.dropped_loss += 1,
        DropCause::Outage => stats.dropped_outage += 1,
        DropCause::Full | DropCause::Discipline => stats.dropped_queue += 1,
    }
    if let Some(kept) = kept {
        kept.push_back(Dropped { at, packet, why });
    }
}

#[derive(Clone, Debug)]
enum Line<P> {
    Constant {
        /// `None`: takes no time.
        rate: Option<Bitrate>,
        /// When the line has sent what is on it, or, if later, when the last packet entered the queue.
        free_at: Instant,
    },
    Trace(TraceLine<P>),
}

#[derive(Clone, Debug)]
struct TraceLine<P> {
    trace: Arc<Trace>,
    /// Number of the next opportunity.
    next: u64,
    /// A packet of which a part is delivered, and how much is not.
    partial: Option<(Queued<P>, u32)>,
    /// Since when there has been something to send.
    busy_from: Instant,
}

impl<P: Packet> Bottleneck<P> {
    /// A line of the given rate behind a queue. `rng` salts FQ-CoDel's hash and serves nothing else.
    pub fn new(rate: &Rate, queue: &QueueConfig, rng: Rng) -> Self {
        let line = match rate {
            Rate::Unlimited => Line::Constant { rate: None, free_at: Instant::ZERO },
            Rate::Constant(rate) => Line::Constant { rate: Some(*rate), free_at: Instant::ZERO },
            Rate::Trace(trace) => Line::Trace(TraceLine {
                trace: trace.clone(),
                next: 0,
                partial: None,
                busy_from: Instant::ZERO,
            }),
        };
        Self {
            queue: Queue::new(queue.discipline, rng),
            config: *queue,
            line,
            sent: VecDeque::new(),
            kept: None,
            stats: PathStats::default(),
        }
    }

    /// Bytes that wait, without the packet on the line.
    pub fn queue_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// Packets in the queue, on the line, and sent but not yet taken.
    pub fn len(&self) -> usize {
        let partial = matches!(&self.line, Line::Trace(TraceLine { partial: Some(_), .. }));
        self.queue.len() + usize::from(partial) + self.sent.len()
    }

    /// Whether there are none of these.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the next packet whose moment of leaving is settled, with that moment, which may lie ahead of the last
    /// call's time.
    pub(crate) fn take_settled(&mut self) -> Option<(Instant, P)> {
        self.sent.pop_front()
    }

    /// Does all that the line and the queue do up to `now`.
    pub(crate) fn advance(&mut self, now: Instant) {
        let Self { queue, line, sent, kept, stats, .. } = self;
        match line {
            Line::Constant { rate, free_at } => {
                while *free_at <= now {
                    let at = *free_at;
                    let mut drop = |packet| drop_packet(stats, kept, at, packet, DropCause::Discipline);
                    let Some(mut next) = queue.pop(at, &mut drop) else { break };
                    stats.note_wait(at.since(next.at));
                    next.packet.mark(Mark::Line, at);
                    let takes = rate.map_or(Duration::ZERO, |r| r.time_to_send(u64::from(next.len)));
                    stats.busy += takes;
                    *free_at += takes;
                    sent.push_back((*free_at, next.packet));
                }
            }
            Line::Trace(line) => line.advance(now, queue, sent, (stats, kept)),
        }
    }
}

impl<P: Packet> TraceLine<P> {
    /// Skips the opportunities up to `now`, which came while there was nothing to send.
    fn restart(&mut self, now: Instant) {
        self.next = self.trace.first_after(now);
        self.busy_from = now;
    }

    fn advance(
        &mut self,
        now: Instant,
        queue: &mut Queue<P>,
        sent: &mut VecDeque<(Instant, P)>,
        (stats, kept): (&mut PathStats, &mut Kept<P>),
    ) {
        while self.partial.is_some() || queue.len() > 0 {
            let at = self.trace.at(self.next);
            if at > now {
                return;
            }
            self.next += 1;
            self.deliver(at, queue, sent, (&mut *stats, &mut *kept));
            stats.busy += at.since(self.busy_from);
            self.busy_from = at;
        }
    }

    /// Uses one opportunity. What it has left when the queue is empty is lost.
    fn deliver(
        &mut self,
        at: Instant,
        queue: &mut Queue<P>,
        sent: &mut VecDeque<(Instant, P)>,
        (stats, kept): (&mut PathStats, &mut Kept<P>),
    ) {
        let mut credit = Trace::OPPORTUNITY_BYTES;
        while credit > 0 {
            let (packet, left) = match self.partial.take() {
                Some(partial) => partial,
                None => {
                    let mut drop = |packet| drop_packet(stats, kept, at, packet, DropCause::Discipline);
                    let Some(mut next) = queue.pop(at, &mut drop) else { return };
                    stats.note_wait(at.since(next.at));
                    next.packet.mark(Mark::Line, at);
                    let len = next.len;
                    (next, len)
                }
            };
            if left > credit {
                self.partial = Some((packet, left - credit));
                return;
            }
            credit -= left;
            sent.push_back((at, packet.packet));
        }
    }
}

impl<P: Packet> Node<P> for Bottleneck<P> {
    fn push(&mut self, now: Instant, packet: P) {
        self.advance(now);
        let straight = match &mut self.line {
            Line::Constant { free_at, .. } if *free_at <= now => {
                *free_at = now;
                true
            }
            Line::Trace(line) if self.queue.len() == 0 && line.partial.is_none() => {
                line.restart(now);
                false
            }
            _ => false,
        };
        // An idle line takes the packet at once, whatever the queue could hold.
        let limit = if straight { &QueueConfig::UNLIMITED } else { &self.config };
        let len = packet.wire_len();
        let Self { stats, kept, .. } = self;
        let mut full = |packet| drop_packet(stats, kept, now, packet, DropCause::Full);
        self.queue.push(Queued { at: now, len, packet }, limit, &mut full);
        self.advance(now);
        self.stats.queue_bytes_max = self.stats.queue_bytes_max.max(self.queue.bytes());
    }

    fn pop(&mut self, now: Instant) -> Option<P> {
        self.advance(now);
        if self.sent.front()?.0 > now {
            return None;
        }
        self.sent.pop_front().map(|(_, packet)| packet)
    }

    fn next_time(&self) -> Option<Instant> {
        if let Some((at, _)) = self.sent.front() {
            return Some(*at);
        }
        // A constant line has a settled packet whenever something waits; a trace settles at its opportunities.
        match &self.line {
            Line::Trace(line) if line.partial.is_some() || self.queue.len() > 0 => {
                Some(line.trace.at(line.next))
            }
            _ => None,
        }
    }
}
