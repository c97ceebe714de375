//! How the two ends of a load have the processor. Each stands for a machine of its own, which no other program of this one would hold
//! up; so each gets its turn before those where that is allowed, and says how long it has waited all the same.
//!
//! A millisecond late costs more than a millisecond: a sender that is late leaves its window unused while acknowledgements come in, so
//! that the window grows less, and a receiver that reads late has its own grow later. On a fast path that is a round trip, or several.

use base::Duration;

use crate::clock::thread_waited;
use crate::namespace::Turn;

/// How a thread has the processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Upkeep {
    /// How it is scheduled.
    pub turn: Turn,
    /// How long it was ready and others ran in its place; `None` where the kernel does not count that.
    pub waited: Option<Duration>,
}

impl Default for Upkeep {
    fn default() -> Self {
        Self { turn: Turn::Ordinary, waited: None }
    }
}

impl Upkeep {
    /// Gives the calling thread its turn. What it has waited is counted from here.
    pub(super) fn begin() -> Self {
        Self { turn: Turn::soon(), waited: thread_waited() }
    }

    /// To be said on the same thread at its end.
    pub(super) fn end(self) -> Self {
        let waited = thread_waited().zip(self.waited).map(|(end, begin)| end.saturating_sub(begin));
        Self { waited, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It gives way once, and it is counted: by what the kernel has for this thread, and not for another.
    #[test]
    fn what_a_thread_waits_is_counted_from_its_beginning() {
        let all = std::thread::spawn(|| {
            let begin = Upkeep::begin();
            let upkeep = begin.end();
            assert_eq!(upkeep.turn, begin.turn);
            (upkeep.waited, thread_waited())
        });
        let (own, whole) = all.join().unwrap();
        assert_eq!(own.is_some(), whole.is_some());
        assert!(own <= whole, "{own:?} of {whole:?}");
    }
}
