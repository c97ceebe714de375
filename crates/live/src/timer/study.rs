//! How good a timer is: a thousand firings, and what the intervals between them say.
//!
//! The claim is that a timer should be fast (a short period), precise (no drift over any span) and reliable (little deviation).
//! [`fire`] measures ours, under both policies, beside a loop around the operating system's sleep, which is what most programs do,
//! and the interval timer of an async runtime (tokio, with the feature `tokio`). All run on a thread of their own, one at a time.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use base::{Duration, Instant};

use super::{Policy, Timer};
use crate::Clock;

/// Whose timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// [`Timer`] under this policy.
    Ours(Policy),
    /// `std::thread::sleep` for a period, again and again.
    OsSleep,
    /// `tokio::time::interval`, its missed ticks made up for (its default), on a runtime of one thread.
    #[cfg(feature = "tokio")]
    Tokio,
}

impl Source {
    /// All that there are.
    pub const ALL: &[Source] = &[
        Source::Ours(Policy::Precise),
        Source::Ours(Policy::Economical),
        Source::OsSleep,
        #[cfg(feature = "tokio")]
        Source::Tokio,
    ];
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Source::Ours(Policy::Precise) => "precise",
            Source::Ours(Policy::Economical) => "economical",
            Source::OsSleep => "os-sleep",
            #[cfg(feature = "tokio")]
            Source::Tokio => "tokio",
        })
    }
}

/// When a timer fired.
#[derive(Clone, Debug)]
pub struct Firings {
    /// What was asked for.
    pub period: Duration,
    /// When it was started: the n-th firing is due n periods later.
    pub start: Instant,
    /// The firings, in order.
    pub at: Vec<Instant>,
    /// Processor time that the thread took for them.
    pub cpu: Duration,
}

/// What a number of firings comes to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figures {
    /// Mean interval, ms.
    pub mean_ms: f64,
    /// Standard deviation of the intervals, ms.
    pub deviation_ms: f64,
    /// The largest difference of an interval from the period, ms.
    pub worst_ms: f64,
    /// How far the last firing was behind where whole periods from the start had put it, ms.
    pub drift_ms: f64,
    /// Processor time as a share of the time it took, percent.
    pub cpu_pct: f64,
}

impl Firings {
    /// Lengths of the intervals, the first from the start.
    pub fn intervals(&self) -> impl Iterator<Item = Duration> {
        let before = std::iter::once(&self.start).chain(&self.at);
        self.at.iter().zip(before).map(|(at, before)| at.since(*before))
    }

    /// Its figures; `None` if it never fired.
    pub fn figures(&self) -> Option<Figures> {
        let last = *self.at.last()?;
        let n = self.at.len() as f64;
        let period = self.period.as_millis_f64();
        let took = last.since(self.start).as_millis_f64();
        let mean = took / n;
        let squares: f64 = self.intervals().map(|i| (i.as_millis_f64() - mean).powi(2)).sum();
        let off = |i: Duration| (i.as_millis_f64() - period).abs();
        Some(Figures {
            mean_ms: mean,
            deviation_ms: (squares / n).sqrt(),
            worst_ms: self.intervals().map(off).fold(0.0, f64::max),
            drift_ms: took - n * period,
            cpu_pct: if took > 0.0 { 100.0 * self.cpu.as_millis_f64() / took } else { 0.0 },
        })
    }
}

/// Lets a timer fire `count` times, on a new thread.
pub fn fire(source: Source, period: Duration, count: usize) -> io::Result<Firings> {
    let run = move || match source {
        Source::Ours(policy) => ours(policy, period, count),
        Source::OsSleep => Ok(os_sleep(period, count)),
        #[cfg(feature = "tokio")]
        Source::Tokio => tokio_interval(period, count),
    };
    let thread = thread::Builder::new().name("timer".into()).spawn(run)?;
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Notes the time of each firing.
struct Notes {
    clock: Clock,
    cpu: Duration,
    firings: Firings,
}

impl Notes {
    fn start(clock: Clock, period: Duration, count: usize) -> Self {
        let at = Vec::with_capacity(count);
        let cpu = crate::clock::thread_cpu();
        Self { clock, cpu, firings: Firings { period, start: clock.now(), at, cpu: Duration::ZERO } }
    }

    fn note(&mut self) {
        self.firings.at.push(self.clock.now());
    }

    fn end(mut self) -> Firings {
        self.firings.cpu = crate::clock::thread_cpu() - self.cpu;
        self.firings
    }
}

fn ours(policy: Policy, period: Duration, count: usize) -> io::Result<Firings> {
    let clock = Clock::start();
    let mut timer = Timer::new(clock, policy)?;
    let mut notes = Notes::start(clock, period, count);
    let mut due = notes.firings.start;
    for _ in 0..count {
        due += period;
        timer.wait_until(due)?;
        notes.note();
    }
    Ok(notes.end())
}

#[allow(clippy::disallowed_methods, reason = "the operating system's sleep is what is measured")]
fn os_sleep(period: Duration, count: usize) -> Firings {
    let span = std::time::Duration::from_nanos(period.as_nanos());
    let mut notes = Notes::start(Clock::start(), period, count);
    for _ in 0..count {
        thread::sleep(span);
        notes.note();
    }
    notes.end()
}

#[cfg(feature = "tokio")]
fn tokio_interval(period: Duration, count: usize) -> io::Result<Firings> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    Ok(runtime.block_on(async {
        let mut interval = tokio::time::interval(std::time::Duration::from_nanos(period.as_nanos()));
        interval.tick().await; // the first is at once
        let mut notes = Notes::start(Clock::start(), period, count);
        for _ in 0..count {
            interval.tick().await;
            notes.note();
        }
        notes.end()
    }))
}

/// A machine with something to do: one thread a processor that computes without pause, until this is dropped.
#[derive(Debug)]
pub struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
}

impl Load {
    /// Starts `threads` of them.
    pub fn start(threads: usize) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut load = Load { stop: stop.clone(), threads: Vec::new() };
        for seed in 0..threads as u64 {
            let stop = stop.clone();
            let compute = move || {
                let mut rng = base::Rng::new(seed);
                let mut sum = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    sum = (0..1_000).fold(sum, |sum, _| sum.wrapping_add(rng.next_u64()));
                }
                sum
            };
            load.threads.push(thread::Builder::new().name("load".into()).spawn(compute)?);
        }
        Ok(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            std::hint::black_box(thread.join().unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn firings(period_ms: u64, at_ms: &[u64]) -> Firings {
        let at = at_ms.iter().map(|ms| Instant::ZERO + Duration::from_millis(1_000 + ms)).collect();
        Firings {
            period: Duration::from_millis(period_ms),
            start: Instant::ZERO + Duration::from_millis(1_000),
            at,
            cpu: Duration::from_millis(1),
        }
    }

    #[test]
    fn a_perfect_timer_has_nothing_but_its_period() {
        let figures = firings(10, &[10, 20, 30, 40]).figures().unwrap();
        let expected =
            Figures { mean_ms: 10.0, deviation_ms: 0.0, worst_ms: 0.0, drift_ms: 0.0, cpu_pct: 2.5 };
        assert_eq!(figures, expected);
    }

    /// Each of four sleeps 1 ms too long: little deviates and all drifts. One that makes up for a late firing is the other way
    /// round.
    #[test]
    fn drift_and_deviation_are_different_faults() {
        let sleeper = firings(10, &[11, 22, 33, 44]).figures().unwrap();
        assert_eq!((sleeper.mean_ms, sleeper.deviation_ms, sleeper.drift_ms), (11.0, 0.0, 4.0));
        let late_once = firings(10, &[10, 24, 30, 40]).figures().unwrap();
        assert_eq!((late_once.mean_ms, late_once.worst_ms, late_once.drift_ms), (10.0, 4.0, 0.0));
        assert!((late_once.deviation_ms - 8f64.sqrt()).abs() < 1e-9, "{late_once:?}");
        assert!(firings(10, &[]).figures().is_none());
    }

    /// That the others drift is their business; ours may fire late under load and must catch up: no firing before its time, and
    /// all of them.
    #[test]
    fn every_source_fires_as_often_as_it_is_told_and_ours_never_early() {
        let period = Duration::from_micros(300);
        for source in Source::ALL {
            let firings = fire(*source, period, 20).unwrap();
            assert_eq!(firings.at.len(), 20, "{source}");
            assert!(firings.figures().unwrap().mean_ms > 0.0);
            if let Source::Ours(_) = source {
                for (n, at) in (1..).zip(&firings.at) {
                    assert!(*at >= firings.start + period * n, "{source}: firing {n} was early");
                }
            }
        }
    }

    #[test]
    fn a_load_ends_when_it_is_dropped() {
        let load = Load::start(2).unwrap();
        assert_eq!(load.threads.len(), 2);
        let stop = load.stop.clone();
        drop(load);
        assert!(stop.load(Ordering::Relaxed));
        assert_eq!(Arc::strong_count(&stop), 1, "its threads are gone");
    }
}
