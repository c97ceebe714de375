//! Random loss.

use std::collections::VecDeque;

use base::{Instant, Rng};

use crate::config::share_bad;
use crate::{LossConfig, Node};

/// Decides which packets are lost, by number: what happens to the n-th packet is a function of the seed and n alone,
/// because every packet takes the same number of draws whatever comes of them.
#[derive(Clone, Debug)]
pub struct Fate {
    config: LossConfig,
    rng: Rng,
    /// The state of a Gilbert–Elliott chain.
    bad: bool,
}

impl Fate {
    /// The fates that follow from `rng`. A chain starts in its stationary distribution, so that the first packet is
    /// as likely to be lost as any other.
    pub fn new(config: LossConfig, mut rng: Rng) -> Self {
        let bad = match config {
            LossConfig::GilbertElliott { to_bad, to_good, .. } => rng.chance(share_bad(to_bad, to_good)),
            _ => false,
        };
        Self { config, rng, bad }
    }

    /// Whether the next packet is lost.
    pub fn next_is_lost(&mut self) -> bool {
        match self.config {
            LossConfig::None => false,
            // The n-th draw is compared with p and not used otherwise: what is lost at p is lost at every p' > p.
            LossConfig::Bernoulli { p } => self.rng.chance(p),
            LossConfig::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                let (turn, fate) = (self.rng.unit(), self.rng.unit());
                self.bad = if self.bad { turn >= to_good } else { turn < to_bad };
                fate < if self.bad { loss_bad } else { loss_good }
            }
        }
    }
}

/// A node that loses packets at random and passes the others on at once.
#[derive(Clone, Debug)]
pub struct Loss<P> {
    fate: Fate,
    passed: VecDeque<P>,
    lost: u64,
    now: Instant,
}

impl<P> Loss<P> {
    /// A node that loses what `config` and `rng` say; see [`Fate`].
    pub fn new(config: LossConfig, rng: Rng) -> Self {
        Self { fate: Fate::new(config, rng), passed: VecDeque::new(), lost: 0, now: Instant::ZERO }
    }

    /// Packets lost so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

impl<P> Node<P> for Loss<P> {
    fn push(&mut self, now: Instant, packet: P) {
        self.now = now;
        if self.fate.next_is_lost() {
            self.lost += 1;
        } else {
            self.passed.push_back(packet);
        }
    }

    fn pop(&mut self, _now: Instant) -> Option<P> {
        self.passed.pop_front()
    }

    fn next_time(&self) -> Option<Instant> {
        (!self.passed.is_empty()).then_some(self.now)
    }
}
