//! HyStart: leaves slow start before the queue overflows. Ha and Rhee, "Taming the elephants: New TCP slow start", Computer Networks
//! 55, 2011, with the constants and the rules of Linux's CUBIC, which has had it since 2.6.29. (RFC 9406's HyStart++ is
//! another algorithm; Linux does not have it.)
//!
//! Slow start is watched in rounds, each of which ends when what was sent up to its beginning has been acknowledged. Two
//! things end it, and either is enough:
//!
//! * *the train*: acknowledgements have followed one another closely (2 ms) from the round's beginning on for more than half
//!   of the path's least delay. A queue can then be filling, as the window is about what the path holds. Linux adds up to 1 ms to
//!   the delay, for segments that leave in large pieces; it is all of 1 ms at any rate below 2 Gbit/s, so here it always is.
//! * *the delay*: the least of a round's first delays (nine samples at least) is above the path's least by an eighth, though
//!   no less than 4 ms nor more than 16.
//!
//! Nothing is concluded from a window below 16 segments. The first versions (2.6.29 to 2.6.38) read a clock of
//! milliseconds or coarser, which often ended slow start too early; that is not modelled.

use base::{Duration, Instant};

/// `hystart_low_window`.
const LOW_WINDOW: u32 = 16;
/// `hystart_ack_delta_us`: acknowledgements closer than that are one train. Linux counts 2,000 µs as close, too. Two full segments take
/// exactly that at 12 Mbit/s, where no real line is so even that a train of them lasts: half of all gaps are a little longer.
const ACK_DELTA: Duration = Duration::from_millis(2);
/// The most that `hystart_ack_delay` adds.
const ACK_DELAY: Duration = Duration::from_millis(1);
/// `HYSTART_MIN_SAMPLES`.
const SAMPLES_MIN: u32 = 8;
/// `HYSTART_DELAY_MIN` and `HYSTART_DELAY_MAX`.
const DELAY_MIN: Duration = Duration::from_millis(4);
const DELAY_MAX: Duration = Duration::from_millis(16);

/// What slow start knows of the path.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct HyStart {
    round: Option<Round>,
    found: bool,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    start: Instant,
    /// SND.NXT at the start.
    end: u64,
    /// When the last acknowledgement of the train came.
    last: Instant,
    /// The least delay of this round, and of how many samples.
    delay: Duration,
    samples: u32,
}

/// An acknowledgement, as HyStart sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub now: Instant,
    /// SND.UNA after it, and SND.NXT.
    pub una: u64,
    pub nxt: u64,
    pub cwnd: u32,
    pub slow_start: bool,
    /// Since the newest segment that it acknowledges was sent, so that no delay of the receiver's is part of it.
    pub delay: Duration,
}

impl HyStart {
    /// Whether slow start is to end at this window. `least` is the path's least delay, this sample included.
    pub fn on_ack(&mut self, sample: &Sample, least: Duration) -> bool {
        if self.found || !sample.slow_start {
            return false;
        }
        let now = sample.now;
        let new = Round { start: now, end: sample.nxt, last: now, delay: Duration::MAX, samples: 0 };
        let round = self.round.get_or_insert(new);
        if sample.una > round.end {
            *round = new;
        }
        if sample.cwnd < LOW_WINDOW {
            return false;
        }
        if now.since(round.last) < ACK_DELTA {
            round.last = now;
            self.found |= now.since(round.start) > (least + ACK_DELAY) / 2;
        }
        round.delay = round.delay.min(sample.delay);
        if round.samples < SAMPLES_MIN {
            round.samples += 1;
        } else {
            self.found |= round.delay > least + (least / 8).clamp(DELAY_MIN, DELAY_MAX);
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: f64) -> Duration {
        Duration::from_millis_f64(ms)
    }

    /// Rounds of `segments` over a path of 100 ms whose acknowledgements come `gap` ms apart, each `delays(i)` after its segment;
    /// gives the number of the acknowledgement in the last round that ended slow start.
    fn run(rounds: u64, segments: u64, gap: f64, delay: impl Fn(u64, u64) -> f64) -> Option<(u64, u64)> {
        let (mut hystart, mut least) = (HyStart::default(), Duration::MAX);
        for round in 0..rounds {
            for i in 0..segments {
                let now = Instant::ZERO + ms(100.0 * (round + 1) as f64 + gap * i as f64);
                let una = 1 + 1_000 * (round * segments + i + 1);
                let nxt = una + 1_000 * (segments - 1);
                let delay = ms(delay(round, i));
                least = least.min(delay);
                let cwnd = segments as u32;
                if hystart.on_ack(&Sample { now, una, nxt, cwnd, slow_start: true, delay }, least) {
                    return Some((round, i));
                }
            }
        }
        None
    }

    #[test]
    fn a_train_longer_than_half_of_the_least_delay_ends_slow_start() {
        // (100 + 1) / 2 = 50.5 ms: the first acknowledgement after that is the 51st gap of 1 ms.
        assert_eq!(run(1, 80, 1.0, |_, _| 100.0), Some((0, 51)));
        assert_eq!(run(3, 50, 1.0, |_, _| 100.0), None, "no train is so long");
    }

    #[test]
    fn a_train_has_no_gap_of_two_milliseconds() {
        assert_eq!(run(1, 80, 1.9, |_, _| 100.0), Some((0, 27)));
        assert_eq!(run(1, 80, 2.0, |_, _| 100.0), None);
    }

    #[test]
    fn nine_delays_an_eighth_above_the_least_end_slow_start() {
        let queueing = |extra: f64| move |round: u64, _| if round == 0 { 100.0 } else { 100.0 + extra };
        assert_eq!(run(2, 20, 0.1, queueing(12.6)), Some((1, 8)));
        assert_eq!(run(2, 20, 0.1, queueing(12.4)), None);
    }

    #[test]
    fn one_short_delay_in_a_round_clears_it() {
        let once = |round: u64, i: u64| if round == 0 || i == 3 { 100.0 } else { 150.0 };
        assert_eq!(run(2, 20, 0.1, once), None);
    }

    #[test]
    fn the_threshold_of_delay_is_4_ms_at_least_and_16_at_most() {
        let above = |base: f64, extra: f64| move |round: u64, _| if round == 0 { base } else { base + extra };
        assert_eq!(run(2, 20, 0.1, above(20.0, 3.9)), None);
        assert_eq!(run(2, 20, 0.1, above(20.0, 4.1)), Some((1, 8)));
        assert_eq!(run(2, 20, 0.1, above(400.0, 15.9)), None);
        assert_eq!(run(2, 20, 0.1, above(400.0, 16.1)), Some((1, 8)));
    }

    #[test]
    fn a_window_below_sixteen_is_left_alone() {
        assert_eq!(run(4, 15, 1.0, |round, _| 100.0 + 50.0 * round as f64), None);
        assert!(run(4, 16, 1.0, |round, _| 100.0 + 50.0 * round as f64).is_some());
    }
}
