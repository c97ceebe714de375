//! The machine's monotonic clock.

use base::Instant;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Counts nanoseconds from its making.
///
/// It is the clock of the kernel's absolute timers, so that a deadline can be handed to them without rounding or drift.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// `CLOCK_MONOTONIC` at [`Instant::ZERO`], in nanoseconds.
    start: u64,
}

impl Default for Clock {
    fn default() -> Self {
        Self::start()
    }
}

impl Clock {
    /// A clock at zero.
    pub fn start() -> Self {
        Self { start: monotonic() }
    }

    /// The time now.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(monotonic().saturating_sub(self.start))
    }

    /// The moment on the kernel's own scale.
    pub(crate) fn to_kernel(self, at: Instant) -> Timespec {
        let nanos = self.start.saturating_add(at.as_nanos()).min(i64::MAX as u64);
        Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as _ }
    }
}

fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Processor time that the calling thread has taken.
pub(crate) fn thread_cpu() -> base::Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    base::Duration::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// How long the calling thread has waited for a processor that others had, since it began; `None` where the kernel does not count it.
#[cfg(target_os = "linux")]
pub(crate) fn thread_waited() -> Option<base::Duration> {
    waited(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Of the three figures of `/proc/PID/schedstat` (the kernel's scheduler/sched-stats.rst) the second, in nanoseconds.
#[cfg(target_os = "linux")]
fn waited(schedstat: &str) -> Option<base::Duration> {
    let mut figures = schedstat.split_whitespace().map(str::parse);
    let (Some(Ok(_)), Some(Ok(waited)), Some(Ok(_)), None) =
        (figures.next(), figures.next(), figures.next(), figures.next())
    else {
        return None;
    };
    Some(base::Duration::from_nanos(waited))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_thread_has_waited_is_the_second_of_three_figures() {
        assert_eq!(waited("123 4000 7\n"), Some(base::Duration::from_micros(4)));
        for other in ["", "123 4000", "123 4000 7 9", "123 x 7"] {
            assert_eq!(waited(other), None, "{other:?}");
        }
    }

    #[test]
    fn time_goes_forward_and_keeps_its_scale_in_the_kernels_terms() {
        let clock = Clock::start();
        let (a, b) = (clock.now(), clock.now());
        assert!(a <= b);
        let at = Instant::from_nanos(1_500_000_000);
        let (zero, kernel) = (clock.to_kernel(Instant::ZERO), clock.to_kernel(at));
        let nanos = |t: Timespec| t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64;
        assert_eq!(nanos(kernel) - nanos(zero), at.as_nanos());
    }
}
