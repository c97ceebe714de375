//! A race from beginning to end: every load of a plan, and what they say.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::error::Error;
use crate::folder::{self, Environment, Folder};
use crate::pages::Collected;
use crate::plan::Plan;
use crate::record::{render, setup};
use crate::result::emit;
use crate::run::{Job, Jobs, run};
use crate::summary::{Summary, summarise};
use crate::technique;
use crate::world::Track;

/// How a plan is carried out; none of it shows in the results.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// The run folder.
    pub dir: &'a Path,
    /// Take up the run that the folder holds, if it holds one.
    pub resume: bool,
    /// Where the loads are made: the plan's world.
    pub track: &'a Track,
    /// Threads: loads made at once. In the live world they share the processor, and disturb each other if it is busy.
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
/// `plan` must be checked and sealed.
pub fn race(plan: &Plan, collected: &Collected, options: Options<'_>) -> Result<Summary, Error> {
    let Options { dir, resume, track, threads, environment, cancel, progress } = options;
    if track.world() != plan.world {
        return Err(Error::Asked(format!("the plan is for the {} world", plan.world)));
    }
    technique::check_pages(plan, &collected.pages)?;
    let transports = plan.transports();
    let memory = plan.memory()?;
    let mut setups = Vec::new();
    for network in &plan.networks {
        for transport in &transports {
            let setup = setup(network, *transport, &plan.techniques)?;
            setups.push(load::Setup { memory: memory.clone(), ..setup });
        }
    }
    let behind = technique::Behind::new(&plan.techniques, &collected.pages)?;
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
        let mut setup = technique::remembering(setup, &plan.techniques, job.page, seed);
        behind.put(&mut setup, job.page);
        let (load, live) = track.load(job.page, &setup, seed, &key)?;
        let mut rows = render(&key, seed, &setup, job.page, &load);
        live.iter().for_each(|row| emit(row, &mut rows.live));
        Ok(rows)
    };
    progress(folder.done());
    run(jobs, &mut folder, threads, cancel, &load, progress)?;
    let summary = summarise(dir)?;
    folder::write(dir, folder::SUMMARY, &folder::json(&summary))?;
    Ok(summary)
}
