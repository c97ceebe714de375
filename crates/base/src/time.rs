//! Time in whole nanoseconds, and rates that turn bytes into time.
//!
//! A `u64` of nanoseconds spans 584 years, compares in one instruction and prints the same on every machine.
//! Arithmetic saturates: an experiment that asks for an absurd delay gets the end of time, not a panic.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// A moment, in nanoseconds since the world's start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

/// A span of time in nanoseconds; never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl Instant {
    /// The world's start.
    pub const ZERO: Instant = Instant(0);
    /// The end of time, for "never".
    pub const MAX: Instant = Instant(u64::MAX);

    /// The moment `ns` nanoseconds after the world's start.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the world's start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds since the world's start, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// The span from `earlier` to this moment; zero if `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);
    /// The longest span.
    pub const MAX: Duration = Duration(u64::MAX);

    /// A span of `ns` nanoseconds.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// A span of `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// A span of `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// A span of `s` seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }

    /// A span of `ms` milliseconds, rounded to the nearest nanosecond; negative and NaN give zero.
    pub fn from_millis_f64(ms: f64) -> Self {
        // `as` saturates, and maps NaN to zero.
        Self((ms * 1e6).round() as u64)
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Milliseconds with a fraction.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Seconds with a fraction.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whether this is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// This span less `other`, or zero.
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }

    /// This span times a factor ≥ 0, rounded to the nearest nanosecond.
    pub fn mul_f64(self, factor: f64) -> Duration {
        Duration((self.0 as f64 * factor).round() as u64)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, d: Duration) -> Instant {
        Instant(self.0.saturating_add(d.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, d: Duration) -> Duration {
        Duration(self.0.saturating_add(d.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub for Duration {
    type Output = Duration;
    /// Saturates at zero, as spans are never negative.
    fn sub(self, d: Duration) -> Duration {
        self.saturating_sub(d)
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, n: u64) -> Duration {
        Duration(self.0.saturating_mul(n))
    }
}

impl Div<u64> for Duration {
    type Output = Duration;
    fn div(self, n: u64) -> Duration {
        Duration(self.0 / n)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{:?}", Duration(self.0))
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.as_millis_f64())
    }
}

/// A rate in bits a second. Never zero: a link that carries nothing is a fault, not a rate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Bitrate(u64);

impl Bitrate {
    /// `bps` bits a second; `None` for zero.
    pub const fn from_bps(bps: u64) -> Option<Self> {
        if bps == 0 { None } else { Some(Self(bps)) }
    }

    /// `kbps` thousand bits a second; `None` for zero.
    pub const fn from_kbps(kbps: u64) -> Option<Self> {
        Self::from_bps(kbps.saturating_mul(1_000))
    }

    /// Bits a second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// The time `bytes` take on this link, rounded up to a nanosecond, so that a link never exceeds its rate.
    pub const fn time_to_send(self, bytes: u64) -> Duration {
        let bit_ns = bytes as u128 * 8_000_000_000;
        let ns = bit_ns.div_ceil(self.0 as u128);
        Duration(if ns > u64::MAX as u128 { u64::MAX } else { ns as u64 })
    }

    /// The bytes this rate delivers in `d`, rounded down.
    pub const fn bytes_in(self, d: Duration) -> u64 {
        let bytes = self.0 as u128 * d.0 as u128 / 8_000_000_000;
        if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_packet_takes_six_milliseconds_at_two_megabits() {
        let rate = Bitrate::from_kbps(2_000).unwrap();
        assert_eq!(rate.time_to_send(1_500), Duration::from_millis(6));
        assert_eq!(rate.bytes_in(Duration::from_millis(6)), 1_500);
    }

    #[test]
    fn sending_time_rounds_up_and_delivered_bytes_round_down() {
        let rate = Bitrate::from_bps(3).unwrap();
        let took = rate.time_to_send(1);
        assert_eq!(took.as_nanos(), 2_666_666_667);
        assert_eq!(rate.bytes_in(Duration::from_nanos(2_666_666_666)), 0);
        assert_eq!(rate.bytes_in(took), 1);
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Instant::MAX + Duration::from_secs(1), Instant::MAX);
        assert_eq!(Instant::ZERO.since(Instant::MAX), Duration::ZERO);
        assert_eq!(Duration::from_millis(1) - Duration::from_millis(2), Duration::ZERO);
        assert_eq!(Duration::from_millis_f64(f64::NAN), Duration::ZERO);
        assert_eq!(Duration::from_millis_f64(-1.0), Duration::ZERO);
        assert_eq!(Bitrate::from_bps(1).unwrap().time_to_send(u64::MAX), Duration::MAX);
    }
}
