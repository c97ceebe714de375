//! Links whose rate was recorded: Mahimahi's packet-delivery traces.
//!
//! A trace is text, one number a line: milliseconds since its start, in order, each an opportunity to deliver 1500
//! bytes. A number may stand on several lines. After its last line the trace starts again, its zero at that line's
//! time. (Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015, and `mm-link(1)`.)

use std::fmt;

use base::{Bitrate, Duration, Instant};

/// A recorded sequence of opportunities to deliver; never empty, and its period is not zero.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// In order. 32 bits span 49 days.
    at_ms: Vec<u32>,
}

/// Why a trace was refused, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    /// The offending line, counted from 1; the number of lines if it is the whole that is wrong.
    pub line: usize,
    /// What is wrong with it.
    pub fault: TraceFault,
}

/// What is wrong with a line of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceFault {
    /// Not a whole number of milliseconds, or one above 2³² − 1.
    NotMilliseconds,
    /// Before the line above it.
    Backwards,
    /// There is no line at all.
    Empty,
    /// The last line is at 0, so the trace would repeat without end in no time.
    NoPeriod,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.fault {
            TraceFault::NotMilliseconds => "not a whole number of milliseconds below 2^32",
            TraceFault::Backwards => "earlier than the line before it",
            TraceFault::Empty => "the trace is empty",
            TraceFault::NoPeriod => "the trace ends at 0 ms and cannot repeat",
        };
        write!(f, "line {}: {what}", self.line)
    }
}

impl std::error::Error for TraceError {}

impl Trace {
    /// Bytes that one opportunity delivers. Mahimahi counts 1504: its packets carry four bytes of tun header.
    pub const OPPORTUNITY_BYTES: u32 = 1_500;

    /// Reads a trace. White space around a number is no matter; an empty line is an error, but not at the end.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut at_ms: Vec<u32> = Vec::new();
        for (i, line) in text.trim_end().lines().enumerate() {
            let fault = |fault| TraceError { line: i + 1, fault };
            let ms = line.trim().parse().map_err(|_| fault(TraceFault::NotMilliseconds))?;
            if at_ms.last().is_some_and(|last| ms < *last) {
                return Err(fault(TraceFault::Backwards));
            }
            at_ms.push(ms);
        }
        match at_ms.last() {
            None => Err(TraceError { line: 0, fault: TraceFault::Empty }),
            Some(0) => Err(TraceError { line: at_ms.len(), fault: TraceFault::NoPeriod }),
            Some(_) => Ok(Self { at_ms }),
        }
    }

    /// After how long the trace starts again.
    pub fn period(&self) -> Duration {
        Duration::from_millis(u64::from(self.at_ms[self.at_ms.len() - 1]))
    }

    /// What the trace delivers over its period, at least one bit a second.
    pub fn mean_rate(&self) -> Bitrate {
        let bits = self.at_ms.len() as u128 * u128::from(Self::OPPORTUNITY_BYTES) * 8;
        let bps = bits * 1_000_000_000 / u128::from(self.period().as_nanos());
        Bitrate::from_bps((bps as u64).max(1)).expect("not zero")
    }

    /// The number of the first opportunity after `now`, counted from the world's start.
    pub(crate) fn first_after(&self, now: Instant) -> u64 {
        let period = self.period().as_nanos();
        let (cycle, within) = (now.as_nanos() / period, now.as_nanos() % period);
        // Opportunities are at whole milliseconds: one is after `now` if its millisecond is.
        let ms = within / 1_000_000;
        let index = self.at_ms.partition_point(|at| u64::from(*at) <= ms);
        cycle * self.at_ms.len() as u64 + index as u64
    }

    /// The moment of the n-th opportunity.
    pub(crate) fn at(&self, n: u64) -> Instant {
        let len = self.at_ms.len() as u64;
        let ms = u64::from(self.at_ms[(n % len) as usize]);
        Instant::ZERO + self.period() * (n / len) + Duration::from_millis(ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_its_line() {
        for (text, line, fault) in [
            ("", 0, TraceFault::Empty),
            ("\n\n", 0, TraceFault::Empty),
            ("0\n0\n", 2, TraceFault::NoPeriod),
            ("1\n\n2\n", 2, TraceFault::NotMilliseconds),
            ("1\n2.5\n", 2, TraceFault::NotMilliseconds),
            ("1\n2\n-3\n", 3, TraceFault::NotMilliseconds),
            ("4294967296\n", 1, TraceFault::NotMilliseconds),
            ("5\n9\n8\n", 3, TraceFault::Backwards),
        ] {
            assert_eq!(Trace::parse(text), Err(TraceError { line, fault }), "{text:?}");
        }
        let error = Trace::parse("5\n9\n8\n").unwrap_err();
        assert_eq!(error.to_string(), "line 3: earlier than the line before it");
    }

    #[test]
    fn white_space_and_the_last_line_end_do_not_matter() {
        assert_eq!(Trace::parse(" 1\r\n2 \r\n"), Trace::parse("1\n2"));
    }

    /// Three opportunities in 10 ms: 3.6 Mbit/s.
    #[test]
    fn a_trace_starts_again_after_its_last_line() {
        let trace = Trace::parse("0\n4\n10\n").unwrap();
        assert_eq!(trace.mean_rate().as_bps(), 3_600_000);
        let ms: Vec<_> = (0..7).map(|n| trace.at(n).as_nanos() / 1_000_000).collect();
        assert_eq!(ms, [0, 4, 10, 10, 14, 20, 20]);
        let after = |us| trace.first_after(Instant::ZERO + Duration::from_micros(us));
        let numbers = [0, 1, 3_999, 4_000, 9_999, 10_000, 13_999, 14_000].map(after);
        assert_eq!(numbers, [1, 1, 1, 2, 2, 4, 4, 5]);
    }
}
