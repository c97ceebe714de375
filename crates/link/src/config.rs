//! What a path is made from: plain values, so that a plan can hold them and print them.

use std::fmt;
use std::sync::Arc;

use base::{Bitrate, Duration, Instant};

use crate::Trace;

/// One direction of a path. The default is a perfect one: no delay, no limit, no loss.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PathConfig {
    /// How fast the bottleneck sends.
    pub rate: Rate,
    /// Propagation delay of this direction: half of the base round-trip time on a symmetrical path.
    pub delay: Duration,
    /// Extra delay, drawn for each packet uniformly from 0 to this; see [`Delay`](crate::Delay).
    pub jitter: Duration,
    /// Which packets vanish.
    pub loss: LossConfig,
    /// The queue before the bottleneck.
    pub queue: QueueConfig,
    /// When nothing gets in at all.
    pub outages: Vec<Outage>,
}

/// A time in which every packet that enters is lost: a tunnel, a lift, a router that starts anew. What is in the queue, on the
/// line or on its way goes on; a base station that keeps what it cannot deliver is not modelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outage {
    /// When it begins, on the clock that the path is driven with.
    pub from: Instant,
    /// How long it lasts; [`Duration::MAX`] for good.
    pub lasts: Duration,
}

impl Outage {
    /// Whether it is on at `now`. Its first moment belongs to it, its last does not.
    pub fn is_on(&self, now: Instant) -> bool {
        now >= self.from && now.since(self.from) < self.lasts
    }
}

/// How fast a bottleneck sends.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Rate {
    /// Without taking time: the queue is always empty.
    #[default]
    Unlimited,
    /// So many bits a second. A packet leaves when its last bit is sent.
    Constant(Bitrate),
    /// At recorded moments, as Mahimahi's `mm-link` does.
    Trace(Arc<Trace>),
}

impl Rate {
    /// The rate, or a trace's mean rate over its period; `None` if unlimited.
    pub fn mean(&self) -> Option<Bitrate> {
        match self {
            Rate::Unlimited => None,
            Rate::Constant(rate) => Some(*rate),
            Rate::Trace(trace) => Some(trace.mean_rate()),
        }
    }
}

/// Random loss on entry.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum LossConfig {
    /// No random loss.
    #[default]
    None,
    /// Each packet is lost with probability `p`, independently of all others.
    Bernoulli {
        /// Probability, 0 to 1.
        p: f64,
    },
    /// Loss in bursts: a chain of two states that moves once a packet, on the packet's entry, before its fate is
    /// drawn. Gilbert, "Capacity of a Burst-Noise Channel", Bell System Technical Journal, 1960; with loss in the good
    /// state too, Elliott, "Estimates of Error Rates for Codes on Burst-Noise Channels", ibid., 1963.
    GilbertElliott {
        /// Probability that a good state turns bad.
        to_bad: f64,
        /// Probability that a bad state turns good.
        to_good: f64,
        /// Probability of loss in the good state (Elliott's 1 − k).
        loss_good: f64,
        /// Probability of loss in the bad state (Gilbert's 1 − h).
        loss_bad: f64,
    },
}

impl LossConfig {
    /// Gilbert's chain in which everything is lost in the bad state and nothing in the good one, with the share
    /// `mean_loss` of all packets lost in runs of `mean_burst` packets on average.
    ///
    /// A share needs runs of a certain length: at a loss of one half and a mean run of one, the runs between must be
    /// of one packet too. [`ConfigError`] if there is no such chain.
    pub fn burst(mean_loss: f64, mean_burst: f64) -> Result<Self, ConfigError> {
        if !(0.0..1.0).contains(&mean_loss) {
            return Err(ConfigError::Probability { what: "mean loss", value: mean_loss });
        }
        // The chain is bad for the share to_bad / (to_bad + to_good) of the packets, for 1 / to_good at a time.
        let to_good = 1.0 / mean_burst;
        let to_bad = to_good * mean_loss / (1.0 - mean_loss);
        if !(mean_burst >= 1.0 && to_bad <= 1.0) {
            return Err(ConfigError::Burst { mean_loss, mean_burst });
        }
        Ok(LossConfig::GilbertElliott { to_bad, to_good, loss_good: 0.0, loss_bad: 1.0 })
    }

    /// The share of packets lost in the long run.
    pub fn mean(&self) -> f64 {
        match *self {
            LossConfig::None => 0.0,
            LossConfig::Bernoulli { p } => p,
            LossConfig::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                let bad = share_bad(to_bad, to_good);
                bad * loss_bad + (1.0 - bad) * loss_good
            }
        }
    }
}

/// The share of packets that find a Gilbert–Elliott chain in its bad state. A chain that never moves stays good.
pub(crate) fn share_bad(to_bad: f64, to_good: f64) -> f64 {
    if to_bad == 0.0 { 0.0 } else { to_bad / (to_bad + to_good) }
}

/// The queue before the bottleneck.
///
/// Limits count what *waits*. The packet on the line has left the queue (as in Linux's `tbf` and in Mahimahi), so a
/// limit of 0 still lets an idle line send. A packet that would lift the queue above a limit is dropped, or, under
/// FQ-CoDel, makes room at the expense of the fattest flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueConfig {
    /// Most bytes that may wait.
    pub limit_bytes: u64,
    /// Most packets that may wait, if that is limited too.
    pub limit_packets: Option<u32>,
    /// Which packet goes next, and which is dropped.
    pub discipline: Discipline,
}

/// Which packet goes next, and which is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Discipline {
    /// First in, first out; what does not fit is dropped on arrival.
    #[default]
    DropTail,
    /// RFC 8289: drops at the head while packets have waited too long.
    CoDel,
    /// RFC 8290: a CoDel queue a flow, served in turns, new flows first.
    FqCoDel,
}

impl QueueConfig {
    /// A queue without limit, first in, first out.
    pub const UNLIMITED: QueueConfig =
        QueueConfig { limit_bytes: u64::MAX, limit_packets: None, discipline: Discipline::DropTail };

    /// A drop-tail queue of `limit_bytes`.
    pub const fn drop_tail(limit_bytes: u64) -> Self {
        QueueConfig { limit_bytes, ..Self::UNLIMITED }
    }

    /// A drop-tail queue of the customary size: what the line sends in `rtt` (one bandwidth-delay product) or in
    /// 50 ms, whichever is more, but room for two full packets in any case, or a modem's line could not hold the
    /// three segments of TCP's old initial window.
    pub fn sized_for(rate: &Rate, rtt: Duration) -> Self {
        let span = rtt.max(Duration::from_millis(50));
        rate.mean().map_or(Self::UNLIMITED, |r| Self::drop_tail(r.bytes_in(span).max(2 * 1_500)))
    }
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self::UNLIMITED
    }
}

/// A configuration that means nothing. The caller's fault.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ConfigError {
    /// Not a probability.
    Probability {
        /// Which one.
        what: &'static str,
        /// What was given.
        value: f64,
    },
    /// No chain has this mean loss in runs of this mean length.
    Burst {
        /// Share of packets to lose.
        mean_loss: f64,
        /// Packets in a run.
        mean_burst: f64,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Probability { what, value } => write!(f, "{what} {value} is not between 0 and 1"),
            ConfigError::Burst { mean_loss, mean_burst } => {
                write!(f, "a loss of {mean_loss} cannot come in runs of {mean_burst} packets on average")
            }
        }
    }
}

impl std::error::Error for ConfigError {}

impl PathConfig {
    /// Whether every probability is one. [`Path::new`](crate::Path::new) does not ask: it would make do with the
    /// nearest probability.
    pub fn check(&self) -> Result<(), ConfigError> {
        let all: &[(&'static str, f64)] = match self.loss {
            LossConfig::None => &[],
            LossConfig::Bernoulli { p } => &[("loss", p)],
            LossConfig::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => &[
                ("loss.to_bad", to_bad),
                ("loss.to_good", to_good),
                ("loss.loss_good", loss_good),
                ("loss.loss_bad", loss_bad),
            ],
        };
        match all.iter().find(|(_, value)| !(0.0..=1.0).contains(value)) {
            Some(&(what, value)) => Err(ConfigError::Probability { what, value }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_customary_queue_is_a_bandwidth_delay_product_or_50_ms() {
        let size = |kbps, rtt_ms| {
            let rate = Rate::Constant(Bitrate::from_kbps(kbps).unwrap());
            QueueConfig::sized_for(&rate, Duration::from_millis(rtt_ms)).limit_bytes
        };
        assert_eq!(size(2_000, 100), 25_000);
        assert_eq!(size(20_000, 4), 125_000, "50 ms, as the RTT is shorter");
        assert_eq!(size(30, 120), 3_000, "two packets at least");
        assert_eq!(
            QueueConfig::sized_for(&Rate::Unlimited, Duration::from_millis(100)),
            QueueConfig::UNLIMITED
        );
    }

    #[test]
    fn a_probability_that_is_none_is_named() {
        let with = |loss| PathConfig { loss, ..PathConfig::default() }.check();
        assert_eq!(with(LossConfig::Bernoulli { p: 1.0 }), Ok(()));
        let error = with(LossConfig::Bernoulli { p: 1.5 }).unwrap_err();
        assert_eq!(error.to_string(), "loss 1.5 is not between 0 and 1");
        let bad =
            LossConfig::GilbertElliott { to_bad: 0.1, to_good: f64::NAN, loss_good: 0.0, loss_bad: 1.0 };
        assert!(matches!(with(bad), Err(ConfigError::Probability { what: "loss.to_good", .. })));
    }
}
