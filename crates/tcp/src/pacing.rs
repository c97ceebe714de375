//! Segments at an even pace: Linux's rules since 4.13, where TCP paces by itself what a socket asks to be paced (`SO_MAX_PACING_RATE`).
//!
//! The rate is a multiple of cwnd a round trip (`tcp_update_pacing_rate`). What leaves at once is a burst of a millisecond's worth, two
//! segments at least and 64 KB at most (`tcp_tso_autosize`, `tcp_min_tso_segs`); the first ten segments of a connection are not held
//! (`tcp_update_skb_after_send`). Timers are exact here, so that nothing has to be made up for one that came late; and probes go when
//! they are due.

use base::{Duration, Instant};

/// `tcp_pacing_ss_ratio` and `tcp_pacing_ca_ratio`, percent of cwnd a round trip.
const SLOW_START_PCT: u64 = 200;
const AVOIDANCE_PCT: u64 = 120;

/// Segments that go before any is held: as the `fq` discipline lets the first ten through.
const UNPACED: u32 = 10;

/// What a burst holds at most, bytes.
const BURST_MAX: u64 = 65_536;

/// When segments may go.
#[derive(Clone, Default, Debug)]
pub(crate) struct Pacer {
    /// From when on the next burst may leave.
    next: Instant,
    /// Bytes that the burst begun has left, and when it was begun.
    burst: (u64, Instant),
    /// Segments sent, as far as they matter.
    sent: u32,
    /// Somebody has asked and was told to wait.
    waits: bool,
}

impl Pacer {
    /// Whether the next segment has to wait; if so, [`Pacer::wakes`] says until when.
    pub fn is_held(&mut self, now: Instant) -> bool {
        let (left, since) = self.burst;
        self.waits = self.next > now && !(left > 0 && since == now);
        self.waits
    }

    /// When whoever was told to wait should ask again.
    pub fn wakes(&self) -> Option<Instant> {
        self.waits.then_some(self.next)
    }

    /// A segment of `len` bytes leaves now; a round trip of `srtt` carries `window` bytes.
    pub fn note(&mut self, now: Instant, len: u32, window: u64, slow_start: bool, srtt: Option<Duration>) {
        self.waits = false;
        if self.sent < UNPACED {
            self.sent += 1;
            return;
        }
        let Some(srtt) = srtt.filter(|srtt| !srtt.is_zero()) else { return };
        let pct = if slow_start { SLOW_START_PCT } else { AVOIDANCE_PCT };
        // Bytes in a burst of 1/1024 s, which is how Linux shifts it; two segments of this length at least.
        let in_burst =
            window as u128 * u128::from(pct) * 1_000_000_000 / (100 * 1_024 * u128::from(srtt.as_nanos()));
        let len = u64::from(len);
        if self.burst.0 == 0 || self.burst.1 != now {
            let bytes = u64::try_from(in_burst).unwrap_or(BURST_MAX).clamp(2 * len, BURST_MAX.max(2 * len));
            self.burst = (bytes, now);
        }
        // A segment goes whole; what does not fit the burst begins the next one.
        let left = self.burst.0.saturating_sub(len);
        self.burst.0 = if left < len { 0 } else { left };
        let takes = u128::from(srtt.as_nanos()) * u128::from(len) * 100
            / (u128::from(window.max(1)) * u128::from(pct));
        self.next = self.next.max(now) + Duration::from_nanos(u64::try_from(takes).unwrap_or(u64::MAX / 4));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);
    const LEN: u32 = 1_000;

    /// Sends as soon as it may for `ms` milliseconds; when each segment went.
    fn sent(slow_start: bool, window: u64, ms: u64) -> Vec<u64> {
        let (mut pacer, mut now, mut out) = (Pacer::default(), Instant::ZERO, Vec::new());
        let end = Instant::ZERO + Duration::from_millis(ms);
        while now < end {
            if pacer.is_held(now) {
                now = pacer.wakes().expect("it waits for something");
                continue;
            }
            pacer.note(now, LEN, window, slow_start, Some(RTT));
            out.push(now.as_micros());
        }
        out
    }

    /// `tcp_update_pacing_rate`: twice cwnd a round trip, or 1.2 times.
    #[test]
    fn the_rate_is_two_windows_a_round_trip_in_slow_start_and_one_and_a_fifth_after() {
        let unpaced = UNPACED as usize;
        assert!((sent(true, 20_000, 1_000).len() - unpaced).abs_diff(400) <= 2);
        assert!((sent(false, 20_000, 1_000).len() - unpaced).abs_diff(240) <= 2);
    }

    #[test]
    fn the_first_ten_go_at_once_and_then_two_at_a_time() {
        let at = sent(true, 20_000, 100);
        assert!(at[..12].iter().all(|at| *at == 0), "ten, and a burst: {at:?}");
        assert_eq!(at[12..18], [5_000, 5_000, 10_000, 10_000, 15_000, 15_000]);
    }

    #[test]
    fn a_fast_sender_bursts_a_millisecond_at_a_time() {
        let at = sent(true, 2_000_000, 10);
        let first = at[10..].iter().filter(|at| **at == 0).count();
        assert_eq!(first, 39, "40 MB/s are 39 kB in 1/1024 s");
    }

    #[test]
    fn without_a_round_trip_nothing_is_held() {
        let mut pacer = Pacer::default();
        for _ in 0..100 {
            assert!(!pacer.is_held(Instant::ZERO));
            pacer.note(Instant::ZERO, LEN, 1, true, None);
        }
    }
}
