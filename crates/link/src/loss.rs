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

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: u64 = 1_000_000;

    fn fates(config: LossConfig, seed: u64) -> Vec<bool> {
        let mut fate = Fate::new(config, Rng::new(seed));
        (0..PACKETS).map(|_| fate.next_is_lost()).collect()
    }

    fn count(fates: &[bool]) -> f64 {
        fates.iter().filter(|lost| **lost).count() as f64
    }

    /// Four standard deviations of the binomial distribution: a false alarm in 16,000, and the seed is fixed.
    #[test]
    fn measured_loss_is_the_loss_asked_for() {
        for p in [0.0, 0.0001, 0.0025, 0.01, 0.02, 0.5, 1.0] {
            let lost = count(&fates(LossConfig::Bernoulli { p }, 7));
            let expected = p * PACKETS as f64;
            let tolerance = 4.0 * (expected * (1.0 - p)).sqrt();
            assert!((lost - expected).abs() <= tolerance, "{lost} lost at {p}");
        }
    }

    #[test]
    fn what_is_lost_at_one_probability_is_lost_at_every_higher_one() {
        let less = fates(LossConfig::Bernoulli { p: 0.01 }, 7);
        let more = fates(LossConfig::Bernoulli { p: 0.025 }, 7);
        assert!(less.iter().zip(&more).all(|(less, more)| less <= more));
        assert_ne!(less, fates(LossConfig::Bernoulli { p: 0.01 }, 8), "the seed matters");
    }

    #[test]
    fn bursts_have_the_mean_loss_and_the_mean_length_asked_for() {
        for (mean_loss, mean_burst) in [(0.01, 1.0), (0.02, 4.0), (0.1, 10.0), (0.5, 2.0)] {
            let config = LossConfig::burst(mean_loss, mean_burst).unwrap();
            assert!((config.mean() - mean_loss).abs() < 1e-12);
            let fates = fates(config, 7);
            let lost = count(&fates);
            let bursts = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
            assert!((lost / PACKETS as f64 / mean_loss - 1.0).abs() < 0.05, "{lost} lost at {mean_loss}");
            assert!((lost / bursts / mean_burst - 1.0).abs() < 0.05, "runs of {}", lost / bursts);
        }
    }

    #[test]
    fn a_burst_that_cannot_be_is_refused() {
        for (mean_loss, mean_burst) in
            [(0.6, 1.0), (0.1, 0.5), (1.0, 2.0), (-0.1, 2.0), (f64::NAN, 2.0), (0.1, f64::NAN)]
        {
            assert!(LossConfig::burst(mean_loss, mean_burst).is_err(), "{mean_loss} {mean_burst}");
        }
    }

    /// Elliott's channel: 1 % in the good state, 30 % in the bad one, which is met by a packet in eleven.
    #[test]
    fn both_states_may_lose_some() {
        let config =
            LossConfig::GilbertElliott { to_bad: 0.01, to_good: 0.1, loss_good: 0.01, loss_bad: 0.3 };
        let expected = (0.3 + 10.0 * 0.01) / 11.0;
        assert!((config.mean() - expected).abs() < 1e-12);
        let measured = count(&fates(config, 7)) / PACKETS as f64;
        assert!((measured / expected - 1.0).abs() < 0.03, "{measured}");
    }

    /// The first packet meets the chain as any other does.
    #[test]
    fn a_chain_starts_in_its_long_run_distribution() {
        let config = LossConfig::burst(0.2, 5.0).unwrap();
        let lost = (0..10_000).filter(|seed| Fate::new(config, Rng::new(*seed)).next_is_lost()).count();
        assert!((1_840..2_160).contains(&lost), "{lost} of 10,000 first packets");
    }
}
