//! Timers that are fast, precise and reliable: a period of 3.67 ms comes every 3.67 ms, over any span of time.
//!
//! Three things make them so:
//!
//! * A deadline is a moment and not a span. [`Timer::wait_until`] takes it on the machine's monotonic clock, and the kernel gets
//!   it unrounded, so that the error of one firing is not carried into the next: nothing drifts.
//! * The kernel may delay a sleeping thread by its *timer slack*, 50 µs unless it is told otherwise, to save wake-ups. A precise
//!   timer asks for 1 ns (`PR_SET_TIMERSLACK`, prctl(2)).
//! * Waking takes time: the interrupt, the processor leaving its idle state, the scheduler. A precise timer may wake early by what
//!   waking takes on this machine, which it [learns](Lead), and spins for the rest.
//!
//! Precision costs energy. Under [`Policy::Economical`] a timer wakes on a grid of whole milliseconds only, the same for every such
//! timer of the machine, so that processors wake together and sleep together; it still does not drift. [`Policy::choose`] takes
//! that one on battery.
//!
//! [`study`] measures this beside what the operating system and an async runtime offer.

mod policy;
pub mod study;

use std::io;
use std::marker::PhantomData;
use std::num::NonZeroU64;

use base::{Duration, Instant};

use crate::Clock;

pub(crate) use policy::on_grid;
pub use policy::{GRID, Policy, Power};

/// Asks the kernel to wake the calling thread when it is due and not up to 50 µs later. Holds until it is dropped.
///
/// The slack is a property of a thread, and new threads inherit it from the one that makes them; hence a guard that stays on its
/// thread.
#[derive(Debug)]
pub struct NoSlack {
    before: Option<NonZeroU64>,
    /// Not `Send`.
    thread: PhantomData<*const ()>,
}

impl NoSlack {
    /// Sets the calling thread's slack to 1 ns. Where the kernel has none, nothing happens.
    pub fn set() -> io::Result<Self> {
        let before = slack::replace(NonZeroU64::new(1))?;
        Ok(Self { before, thread: PhantomData })
    }
}

impl Drop for NoSlack {
    fn drop(&mut self) {
        // It was this before, so that the kernel takes it again.
        let _ = slack::replace(self.before);
    }
}

#[cfg(target_os = "linux")]
mod slack {
    use std::io;
    use std::num::NonZeroU64;

    use rustix::thread::{current_timer_slack, set_current_timer_slack};

    pub fn replace(slack: Option<NonZeroU64>) -> io::Result<Option<NonZeroU64>> {
        let before = NonZeroU64::new(current_timer_slack()?);
        set_current_timer_slack(slack)?;
        Ok(before)
    }
}

#[cfg(not(target_os = "linux"))]
mod slack {
    use std::io;
    use std::num::NonZeroU64;

    pub fn replace(_: Option<NonZeroU64>) -> io::Result<Option<NonZeroU64>> {
        Ok(None)
    }
}

/// How much earlier than a deadline to wake, so that what waking takes is over when it comes.
///
/// It follows the 95th percentile of what waking has taken: up by 19 steps when that was longer, down by one when it was not. A
/// machine that wakes at once spins for next to nothing.
#[derive(Clone, Copy, Debug)]
pub struct Lead {
    now: Duration,
    most: Duration,
}

impl Lead {
    /// What spinning at most costs a deadline when nobody says otherwise. A virtual processor takes about that long to leave its
    /// idle state.
    pub const MOST: Duration = Duration::from_micros(100);

    const STEP: Duration = Duration::from_nanos(500);

    /// A lead that is never above `most`; zero for none.
    pub fn up_to(most: Duration) -> Self {
        Self { now: most.min(Duration::from_micros(50)), most }
    }

    /// The lead as learned so far.
    pub fn get(&self) -> Duration {
        self.now
    }

    /// Takes note of how late a sleep ended.
    pub fn learn(&mut self, late: Duration) {
        self.now =
            if late > self.now { (self.now + Self::STEP * 19).min(self.most) } else { self.now - Self::STEP };
    }
}

/// Sleeps until moments, on the thread that made it.
#[derive(Debug)]
pub struct Timer {
    clock: Clock,
    policy: Policy,
    lead: Lead,
    _slack: Option<NoSlack>,
}

impl Timer {
    /// A timer for the calling thread. A precise one spins for up to [`Lead::MOST`] before a deadline.
    pub fn new(clock: Clock, policy: Policy) -> io::Result<Self> {
        let slack = match policy {
            Policy::Precise => Some(NoSlack::set()?),
            Policy::Economical => None,
        };
        Ok(Self { clock, policy, lead: Lead::up_to(Lead::MOST), _slack: slack })
    }

    /// The same timer, spinning for at most `most` before a deadline; zero for not at all. An economical one never does.
    pub fn spinning(mut self, most: Duration) -> Self {
        self.lead = Lead::up_to(most);
        self
    }

    /// How it trades precision for energy.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// How much earlier than a deadline it wakes now.
    pub fn lead(&self) -> Duration {
        match self.policy {
            Policy::Precise => self.lead.get(),
            Policy::Economical => Duration::ZERO,
        }
    }

    /// Sleeps until `deadline`, never less; gives the moment of waking. A deadline that has passed costs no sleep.
    pub fn wait_until(&mut self, deadline: Instant) -> io::Result<Instant> {
        match self.policy {
            Policy::Economical => {
                self.sleep(on_grid(self.clock, deadline))?;
                Ok(self.clock.now())
            }
            Policy::Precise => {
                let wake = Instant::ZERO + deadline.since(Instant::ZERO + self.lead.get());
                let mut now = self.clock.now();
                if now < wake {
                    self.sleep(wake)?;
                    now = self.clock.now();
                    self.lead.learn(now.since(wake));
                }
                while now < deadline {
                    std::hint::spin_loop();
                    now = self.clock.now();
                }
                Ok(now)
            }
        }
    }

    fn sleep(&self, until: Instant) -> io::Result<()> {
        loop {
            match sleep::until(self.clock, until) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                done => return done,
            }
        }
    }
}

#[cfg(target_os = "linux")]
mod sleep {
    use std::io;

    use base::Instant;
    use rustix::thread::{ClockId, clock_nanosleep_absolute};

    use crate::Clock;

    pub fn until(clock: Clock, at: Instant) -> io::Result<()> {
        Ok(clock_nanosleep_absolute(ClockId::Monotonic, &clock.to_kernel(at))?)
    }
}

#[cfg(not(target_os = "linux"))]
mod sleep {
    //! Where the kernel has no sleep until a moment, one for the span that is left serves; the moment still does not drift.

    use std::io;

    use base::Instant;

    use crate::Clock;

    #[allow(clippy::disallowed_methods, reason = "this crate may sleep, and here it is what it is for")]
    pub fn until(clock: Clock, at: Instant) -> io::Result<()> {
        loop {
            let left = at.since(clock.now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_nanos(left.as_nanos()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_never_fires_early_under_either_policy() {
        let clock = Clock::start();
        for policy in [Policy::Precise, Policy::Economical] {
            let mut timer = Timer::new(clock, policy).unwrap();
            for us in [0, 20, 130, 1_700] {
                let deadline = clock.now() + Duration::from_micros(us);
                let woke = timer.wait_until(deadline).unwrap();
                assert!(woke >= deadline && clock.now() >= deadline, "{policy}, {us} µs");
            }
        }
    }

    #[test]
    fn a_deadline_that_has_passed_is_over_at_once() {
        let clock = Clock::start();
        let mut timer = Timer::new(clock, Policy::Precise).unwrap();
        let lead = timer.lead();
        let woke = timer.wait_until(Instant::ZERO).unwrap();
        assert!(woke <= clock.now());
        assert_eq!(timer.lead(), lead, "no sleep, so that nothing was learned");
    }

    /// One in twenty sleeps ends later than the lead once it has settled.
    #[test]
    fn the_lead_settles_at_the_95th_percentile_of_what_waking_takes() {
        let mut rng = base::Rng::new(1);
        let mut lead = Lead::up_to(Duration::from_millis(1));
        let mut late = 0;
        for i in 0..40_000 {
            let took = Duration::from_micros(rng.below(200));
            late += u32::from(i >= 10_000 && took > lead.get());
            lead.learn(took);
        }
        assert!((1_200..1_800).contains(&late), "{late} of 30,000");
        assert!((165..=210).contains(&lead.get().as_micros()), "{:?}", lead.get());
    }

    #[test]
    fn the_lead_stays_within_its_bound_and_shrinks_to_nothing() {
        let mut lead = Lead::up_to(Duration::from_micros(80));
        (0..100).for_each(|_| lead.learn(Duration::from_millis(5)));
        assert_eq!(lead.get(), Duration::from_micros(80));
        (0..160).for_each(|_| lead.learn(Duration::ZERO));
        assert_eq!(lead.get(), Duration::ZERO);
        let mut none = Lead::up_to(Duration::ZERO);
        none.learn(Duration::from_millis(5));
        assert_eq!(none.get(), Duration::ZERO);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_slack_is_1_ns_while_a_precise_timer_lives_and_what_it_was_thereafter() {
        let slack = || rustix::thread::current_timer_slack().unwrap();
        let before = slack();
        let timer = Timer::new(Clock::start(), Policy::Precise).unwrap();
        assert_eq!(slack(), 1);
        drop(timer);
        assert_eq!(slack(), before);
    }
}
