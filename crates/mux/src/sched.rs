//! Who sends next.

use std::collections::VecDeque;

/// Number of priority levels: SPDY/3 has 0–7 (§2.3.3), so does RFC 9218's urgency (§4.1).
pub const LEVELS: usize = 8;

/// What becomes of a level that others keep from sending.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Fairness {
    /// Nothing: a level waits as long as a more urgent one has anything to send. What Chrome's SPDY did.
    #[default]
    Strict,
    /// A level that somebody waits in and that was passed over `turns` times in a row is served once, whatever
    /// waits above it. So every waiting level gets at least one turn in `turns` + 7, and the levels above keep all
    /// the others; of several levels whose time has come, the most urgent goes first.
    Bounded {
        /// How many turns of others a level sits out. A turn is what the caller sends between two calls of
        /// [`Scheduler::pop`]: one frame.
        turns: u32,
    },
    /// Levels count for nothing: all who wait take turns in one. What a sender does that does not look at priorities.
    Blind,
}

/// Keys that have something to send, in eight levels: 0 before 1 before … 7, in turn within a level.
///
/// The scheduler holds only those who *can* send. Whoever is popped and can send more is pushed again, and so goes
/// to the end of its level. Nothing here is decided before it must be: a key pushed between two frames at level 0 is
/// popped next.
#[derive(Clone, Debug)]
pub struct Scheduler<K> {
    levels: [VecDeque<K>; LEVELS],
    /// Turns each level has been passed over since it was last served or became non-empty.
    passed: [u32; LEVELS],
    fairness: Fairness,
}

impl<K: PartialEq> Scheduler<K> {
    /// A scheduler that nobody waits in.
    pub fn new(fairness: Fairness) -> Self {
        Self { levels: Default::default(), passed: [0; LEVELS], fairness }
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.levels.iter().all(VecDeque::is_empty)
    }

    /// Puts `key` at the end of its level; a level past the last is the last. The caller sees to it that a key is
    /// there once.
    pub fn push(&mut self, level: u8, key: K) {
        let level = self.level(level);
        self.levels[level].push_back(key);
    }

    /// Puts `key` at the front of its level, to be served again before its fellows: RFC 9218's non-incremental
    /// responses, which are best sent one after the other.
    pub fn push_front(&mut self, level: u8, key: K) {
        let level = self.level(level);
        self.levels[level].push_front(key);
    }

    /// Takes out the key whose turn it is.
    pub fn pop(&mut self) -> Option<K> {
        let first = self.levels.iter().position(|l| !l.is_empty())?;
        let overdue = |l: &usize| match self.fairness {
            Fairness::Strict | Fairness::Blind => false,
            Fairness::Bounded { turns } => self.passed[*l] >= turns,
        };
        let waiting = |l: &usize| !self.levels[*l].is_empty();
        let served = (first + 1..LEVELS).filter(waiting).find(overdue).unwrap_or(first);
        for level in first + 1..LEVELS {
            let passed = if self.levels[level].is_empty() { 0 } else { self.passed[level].saturating_add(1) };
            self.passed[level] = passed;
        }
        self.passed[served] = 0;
        self.levels[served].pop_front()
    }

    /// Takes `key` out of its level, if it is there.
    pub fn remove(&mut self, level: u8, key: &K) -> bool {
        let level = self.level(level);
        let level = &mut self.levels[level];
        let found = level.iter().position(|k| k == key);
        found.map(|at| level.remove(at)).is_some()
    }

    /// The level in which a key of this one waits.
    fn level(&self, asked: u8) -> usize {
        if self.fairness == Fairness::Blind { 0 } else { usize::from(asked).min(LEVELS - 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pops `n` times, putting everyone back who is popped.
    fn serve<K: PartialEq + Copy>(sched: &mut Scheduler<(u8, K)>, n: usize) -> Vec<(u8, K)> {
        let turn = |s: &mut Scheduler<(u8, K)>| {
            let key = s.pop().unwrap();
            s.push(key.0, key);
            key
        };
        (0..n).map(|_| turn(sched)).collect()
    }

    #[test]
    fn a_level_goes_before_the_next_and_takes_turns_within() {
        let mut sched = Scheduler::new(Fairness::Strict);
        for key in [(2, 'c'), (0, 'a'), (2, 'd'), (0, 'b')] {
            sched.push(key.0, key);
        }
        assert_eq!(serve(&mut sched, 4), [(0, 'a'), (0, 'b'), (0, 'a'), (0, 'b')]);
        assert!(sched.remove(0, &(0, 'a')) && sched.remove(0, &(0, 'b')) && !sched.remove(0, &(0, 'b')));
        assert_eq!(serve(&mut sched, 3), [(2, 'c'), (2, 'd'), (2, 'c')]);
    }

    #[test]
    fn who_does_not_look_at_levels_gives_everyone_a_turn() {
        let mut sched = Scheduler::new(Fairness::Blind);
        for key in [(7, 'c'), (0, 'a'), (2, 'b')] {
            sched.push(key.0, key);
        }
        assert_eq!(serve(&mut sched, 4), [(7, 'c'), (0, 'a'), (2, 'b'), (7, 'c')]);
        assert!(sched.remove(2, &(2, 'b')));
    }

    #[test]
    fn a_late_arrival_at_a_higher_level_is_served_next() {
        let mut sched = Scheduler::new(Fairness::Bounded { turns: 32 });
        sched.push(7, 'z');
        sched.push(7, 'y');
        assert_eq!(sched.pop(), Some('z'));
        sched.push(0, 'a');
        assert_eq!(sched.pop(), Some('a'));
        assert_eq!(sched.pop(), Some('y'));
        assert_eq!(sched.pop(), None);
    }

    #[test]
    fn strict_priorities_starve_and_bounded_ones_do_not() {
        for (fairness, low_turns) in [(Fairness::Strict, 0), (Fairness::Bounded { turns: 9 }, 100)] {
            let mut sched = Scheduler::new(fairness);
            sched.push(1, (1, 'a'));
            sched.push(6, (6, 'b'));
            let served = serve(&mut sched, 1_000);
            assert_eq!(served.iter().filter(|k| k.0 == 6).count(), low_turns, "{fairness:?}");
        }
    }

    #[test]
    fn with_all_levels_waiting_each_gets_its_turn_within_the_stated_bound_and_the_first_most_of_them() {
        let turns = 32;
        let mut sched = Scheduler::new(Fairness::Bounded { turns });
        (0..8).for_each(|level| sched.push(level, (level, ())));
        let served = serve(&mut sched, 10_000);
        for level in 0..8 {
            let at: Vec<usize> = (0..served.len()).filter(|i| served[*i].0 == level).collect();
            let gap = at.windows(2).map(|w| w[1] - w[0]).max().unwrap();
            assert!(gap <= turns as usize + 7, "level {level} waited {gap} turns");
        }
        let first = served.iter().filter(|k| k.0 == 0).count();
        assert!(first > 10_000 * 3 / 4, "level 0 got {first} turns of 10000");
    }

    #[test]
    fn a_level_that_empties_does_not_keep_a_grudge() {
        let mut sched = Scheduler::new(Fairness::Bounded { turns: 4 });
        sched.push(0, (0, 'a'));
        sched.push(5, (5, 'b'));
        serve(&mut sched, 4);
        sched.remove(5, &(5, 'b'));
        serve(&mut sched, 1);
        sched.push(5, (5, 'b'));
        assert_eq!(serve(&mut sched, 4), [(0, 'a'); 4]);
    }

    #[test]
    fn who_is_put_in_front_is_served_until_done() {
        let mut sched = Scheduler::new(Fairness::Strict);
        sched.push(3, 'a');
        sched.push(3, 'b');
        let key = sched.pop().unwrap();
        sched.push_front(3, key);
        assert_eq!(sched.pop(), Some('a'));
        assert!(!sched.is_empty());
    }
}
