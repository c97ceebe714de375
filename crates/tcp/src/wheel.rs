//! When a timer fires. Linux counts time in ticks and, since 4.8, keeps timers on a wheel that does not sort what lies far ahead: a
//! timer is never early, but late by up to an eighth of its length (kernel/time/timer.c explains it at its beginning). At
//! 250 ticks a second a timer of less than a quarter of a second is up to 8 ms late, one of less than 2 s up to
//! 36 ms, one of less than 16 s up to 260 ms.

use base::{Duration, Instant};

/// Ticks that each level of the wheel but the first reaches beyond the one before it, in units of its own.
const REACH: u64 = 63;
/// Each level is so many times coarser, as a power of two, than the one before it.
const COARSER: u32 = 3;
const LEVELS: u32 = 8;

/// The timers of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wheel {
    tick: Duration,
}

impl Wheel {
    /// With that tick; zero for timers that are exact.
    pub fn new(tick: Duration) -> Self {
        Self { tick }
    }

    /// When a timer fires that is set at `now` for `at`.
    pub fn due(self, now: Instant, at: Instant) -> Instant {
        let tick = self.tick.as_nanos();
        if tick == 0 || at == Instant::MAX {
            return at;
        }
        let span = at.since(now).as_nanos().div_ceil(tick);
        let expires = now.as_nanos() / tick + span;
        let level = (1..LEVELS).take_while(|level| span >= REACH << (COARSER * (level - 1))).count() as u32;
        let shift = COARSER * level;
        // To the next boundary, even from one: the present tick may be nearly over.
        Instant::from_nanos((((expires >> shift) + 1) << shift).saturating_mul(tick))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_is_late_by_up_to_an_eighth_and_never_early() {
        let wheel = Wheel::new(Duration::from_millis(4));
        let at = |us: u64| Instant::ZERO + Duration::from_micros(us);
        for (now, span, due) in [
            (0, 40_000, 44_000),
            (3_999, 40_000, 44_000),
            (1, 39_000, 44_000),
            (0, 248_000, 252_000), // 62 ticks
            (0, 252_000, 256_000), // 63 ticks: the second level, 32 ms
            (100_000, 300_000, 416_000),
            (0, 1_000_000, 1_024_000),
            (0, 3_000_000, 3_072_000), // the third, 256 ms
        ] {
            assert_eq!(wheel.due(at(now), at(now + span)), at(due), "{now} + {span}");
        }
        for now in (0..100_000).step_by(777) {
            for span in (0..5_000_000).step_by(31_337) {
                let late = wheel.due(at(now), at(now + span)).since(at(now + span));
                assert!(late <= Duration::from_micros(8_000 + span / 7), "{now} + {span}: {late:?}");
            }
        }
    }

    #[test]
    fn without_a_tick_timers_are_exact() {
        let at = Instant::from_nanos(1_234_567);
        assert_eq!(Wheel::new(Duration::ZERO).due(Instant::ZERO, at), at);
    }
}
