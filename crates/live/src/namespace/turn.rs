//! How soon a thread gets its turn when it wakes, where others compute.

use std::fmt;

use super::sys;

/// How a thread is scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// In real time (`SCHED_FIFO`, sched(7)): before every program that is not. Takes root, or a limit that allows it (`RLIMIT_RTPRIO`).
    RealTime,
    /// As any program, but in slices that are short, so that it waits for nobody's longer one (Linux 6.12 and later).
    Short,
    /// As any program.
    Ordinary,
}

/// Linux's shortest slice.
const SLICE_NS: u64 = 100_000;

/// Real-time priorities: the lowest are above all ordinary programs, and below all that somebody has set on purpose.
const SOON: u32 = 1;
const SOONEST: u32 = 2;

const SCHED_OTHER: u32 = 0;
const SCHED_FIFO: u32 = 1;
const SCHED_IDLE: u32 = 5;

impl Turn {
    /// Gives the calling thread the soonest turn it may have.
    pub fn soonest() -> Self {
        if sys::schedule(SCHED_FIFO, SOONEST, 0).is_ok() { Turn::RealTime } else { Self::soon() }
    }

    /// Gives the calling thread the soonest turn behind those that have [the soonest](Self::soonest). For what stands for a machine
    /// of its own, which other programs of this one would not hold up.
    pub fn soon() -> Self {
        if sys::schedule(SCHED_FIFO, SOON, 0).is_ok() { Turn::RealTime } else { Self::short() }
    }

    /// Gives the calling thread short slices, if the kernel has them. For what need not be on time to the microsecond, and would
    /// interrupt whoever works for it at every packet.
    pub fn short() -> Self {
        if sys::schedule(SCHED_OTHER, 0, SLICE_NS).is_ok() { Turn::Short } else { Turn::Ordinary }
    }
}

/// Lets the calling thread, and the programs that it starts, run where nobody else of its group wants to (`SCHED_IDLE`, sched(7)).
pub(crate) fn idle() -> std::io::Result<()> {
    sys::schedule(SCHED_IDLE, 0, 0)
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Turn::RealTime => "in real time",
            Turn::Short => "in short slices",
            Turn::Ordinary => "as any program",
        })
    }
}
