//! Carries a plan out: every load, on several threads, written in the plan's order.
//!
//! A load depends on its page, its network, its transport and its seed, and on nothing that another load does, so any
//! thread may do any load. Who finishes early waits in a bounded buffer for its turn to be written: the files are the
//! same bytes with one thread and with many, and what waits never exceeds a few loads a thread.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

use page::Page;

use crate::error::Error;
use crate::folder::{Folder, Rendered};
use crate::plan::Plan;
use crate::result::Key;

/// The loads of a plan, in order: by page, then network, then run, then transport, so that what an interruption leaves
/// is pairs.
#[derive(Clone, Copy, Debug)]
pub struct Jobs<'a> {
    plan: &'a Plan,
    pages: &'a [Page],
}

/// One load.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// What is loaded.
    pub page: &'a Page,
    /// Index into the plan's networks.
    pub network: usize,
    /// Index into the plan's transports.
    pub transport: usize,
    /// From 0.
    pub run: u32,
}

impl<'a> Jobs<'a> {
    /// The loads that `plan` asks for over `pages`.
    pub fn new(plan: &'a Plan, pages: &'a [Page]) -> Self {
        Self { plan, pages }
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.pages.len() as u64 * self.per_page()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn per_page(&self) -> u64 {
        self.plan.networks.len() as u64 * u64::from(self.plan.runs) * self.plan.transports.len() as u64
    }

    /// The `n`-th load.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn get(&self, n: u64) -> Job<'a> {
        let (page, n) = (n / self.per_page(), n % self.per_page());
        let transports = self.plan.transports.len() as u64;
        let (run, transport) = (n / transports, n % transports);
        let runs = u64::from(self.plan.runs);
        Job {
            page: &self.pages[page as usize],
            network: (run / runs) as usize,
            transport: transport as usize,
            run: (run % runs) as u32,
        }
    }

    /// What the rows of a load are known by.
    pub fn key(&self, job: &Job<'_>) -> Key {
        Key {
            page: job.page.id.clone(),
            network: self.plan.networks[job.network].name.clone(),
            transport: self.plan.transports[job.transport].clone(),
            run: job.run,
        }
    }

    /// The keys of all loads in order.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        (0..self.len()).map(|n| self.key(&self.get(n)))
    }
}

/// Loads that wait for their turn to be written, a thread.
const WINDOW: u64 = 16;

struct State<'a> {
    /// The next load that nobody has taken.
    next: u64,
    folder: &'a mut Folder,
    pending: BTreeMap<u64, Rendered>,
    /// Of the first load, in order, that went wrong.
    error: Option<(u64, Error)>,
}

/// Carries out what `folder` does not hold yet, on `threads` threads. `load` does one load, or says why the machine does not let it; `progress` hears, in order,
/// how many are written. `cancel` ends it early: loads that have begun are finished and written.
pub fn run(
    jobs: Jobs<'_>,
    folder: &mut Folder,
    threads: usize,
    cancel: &AtomicBool,
    load: &(dyn Fn(&Job<'_>) -> Result<Rendered, Error> + Sync),
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(), Error> {
    let threads = threads.max(1);
    let window = WINDOW * threads as u64;
    let state = State { next: folder.done(), folder, pending: BTreeMap::new(), error: None };
    let (state, turn) = (Mutex::new(state), Condvar::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(n) = claim(&state, &turn, jobs.len(), window, cancel) {
                    let job = jobs.get(n);
                    let rows = catch_unwind(AssertUnwindSafe(|| load(&job)))
                        .unwrap_or_else(|_| Err(Error::Invariant(jobs.key(&job))));
                    hand_in(&mut lock(&state), n, rows, progress);
                    turn.notify_all();
                }
            });
        }
    });
    let state = state.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    state.error.map_or(Ok(()), |(_, error)| Err(error))
}

/// The next load to do, once there is room for it; `None` when there is none, or no more should be done.
fn claim(
    state: &Mutex<State<'_>>,
    turn: &Condvar,
    total: u64,
    window: u64,
    cancel: &AtomicBool,
) -> Option<u64> {
    let mut state = lock(state);
    while state.error.is_none() && state.next >= state.folder.done() + window {
        state = turn.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
    }
    let n = state.next;
    if state.error.is_some() || n >= total || cancel.load(Ordering::Relaxed) {
        return None;
    }
    state.next += 1;
    Some(n)
}

fn hand_in(state: &mut State<'_>, n: u64, rows: Result<Rendered, Error>, progress: &(dyn Fn(u64) + Sync)) {
    let write = || {
        state.pending.insert(n, rows?);
        while let Some(rows) = state.pending.remove(&state.folder.done()) {
            state.folder.append(&rows)?;
            progress(state.folder.done());
        }
        Ok(())
    };
    if let Err(error) = write()
        && state.error.as_ref().is_none_or(|(first, _)| n < *first)
    {
        state.error = Some((n, error));
    }
}

/// A thread that panicked did so outside of what the lock guards.
fn lock<'a, 'b>(state: &'a Mutex<State<'b>>) -> MutexGuard<'a, State<'b>> {
    state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests;
