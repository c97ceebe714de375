//! Propagation delay and jitter.

use std::collections::VecDeque;

use base::{Duration, Instant, Rng};

use crate::Node;

/// A node that holds each packet for a fixed delay plus a jitter.
///
/// The jitter is drawn for each packet uniformly from 0 to its bound, and is applied *without reordering*: a packet
/// never leaves before the one that entered before it. So the delay is uniform for packets that enter further apart
/// than the bound; in a dense train most wait for a slow one ahead of them, and the train arrives in bunches, as it
/// does behind a radio scheduler. The packet's number decides its jitter, not what was drawn for others.
#[derive(Clone, Debug)]
pub struct Delay<P> {
    delay: Duration,
    jitter: Duration,
    rng: Rng,
    line: VecDeque<(Instant, P)>,
    last: Instant,
}

impl<P> Delay<P> {
    /// A node with a propagation delay and a bound on the jitter that `rng` draws.
    pub fn new(delay: Duration, jitter: Duration, rng: Rng) -> Self {
        Self { delay, jitter, rng, line: VecDeque::new(), last: Instant::ZERO }
    }

    /// The least time a packet spends here.
    pub fn min(&self) -> Duration {
        self.delay
    }

    /// Number of packets on the way.
    pub fn len(&self) -> usize {
        self.line.len()
    }

    /// Whether no packet is on the way.
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }
}

impl<P> Delay<P> {
    /// As [`push`](Node::push); the packet is shown the moment at which it will leave.
    pub(crate) fn push_with(&mut self, now: Instant, mut packet: P, show: impl FnOnce(&mut P, Instant)) {
        let mut leaves = now + self.delay;
        if !self.jitter.is_zero() {
            leaves += self.jitter.mul_f64(self.rng.unit());
        }
        self.last = self.last.max(leaves);
        show(&mut packet, self.last);
        self.line.push_back((self.last, packet));
    }
}

impl<P> Node<P> for Delay<P> {
    /// `now` may lie ahead of the time of other calls, as long as packets enter in order.
    fn push(&mut self, now: Instant, packet: P) {
        self.push_with(now, packet, |_, _| ());
    }

    fn pop(&mut self, now: Instant) -> Option<P> {
        if self.line.front()?.0 > now {
            return None;
        }
        self.line.pop_front().map(|(_, packet)| packet)
    }

    fn next_time(&self) -> Option<Instant> {
        self.line.front().map(|(at, _)| *at)
    }
}
