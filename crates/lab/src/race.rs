//! A race from beginning to end: every load of a plan in the virtual world, and what they say.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::error::Error;
use crate::folder::{self, Environment, Folder};
use crate::pages::Collected;
use crate::plan::Plan;
use crate::record::{render, setup};
use crate::run::{Job, Jobs, run};
use crate::summary::{Summary, summarise};

/// How a plan is carried out; none of it shows in the results.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// The run folder.
    pub dir: &'a Path,
    /// Take up the run that the folder holds, if it holds one.
    pub resume: bool,
    /// Threads.
    pub threads: usize,
    /// What this is run by and on.
    pub environment: &'a Environment,
    /// Set from elsewhere to end the race early.
    pub cancel: &'a AtomicBool,
    /// Hears how many loads are done.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

/// Races `collected`, the pages of `plan`, and leaves everything in the run folder but the report.
///
/// `plan` must be checked, and its networks sealed.
pub fn race(plan: &Plan, collected: &Collected, options: Options<'_>) -> Result<Summary, Error> {
    let Options { dir, resume, threads, environment, cancel, progress } = options;
    let transports = plan.transports();
    let mut setups = Vec::new();
    for network in &plan.networks {
        for transport in &transports {
            setups.push(setup(network, *transport)?);
        }
    }
    let jobs = Jobs::new(plan, &collected.pages);
    let mut folder = if resume && dir.join(folder::PLAN).exists() {
        Folder::resume(dir, plan, collected, environment, jobs.keys())?
    } else {
        Folder::create(dir, plan, collected, environment)?
    };
    let load = |job: &Job<'_>| {
        let key = jobs.key(job);
        let seed = plan.load_seed(&key.page, &key.network, key.run);
        let setup = &setups[job.network * transports.len() + job.transport];
        render(&key, seed, setup.transport, job.page, &sim::load(job.page, setup, seed))
    };
    progress(folder.done());
    run(jobs, &mut folder, threads, cancel, &load, progress)?;
    let summary = summarise(dir)?;
    folder::write(dir, folder::SUMMARY, &folder::json(&summary))?;
    Ok(summary)
}
