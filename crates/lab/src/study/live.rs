//! A study's loads in the live world, beside the same loads in the virtual one.
//!
//! Live loads take the time that they take, so that a study with thousands of them is cut down to what a number of minutes holds: in
//! *rounds*, each a page (or, when all pages have had one, another run) in every arm, on every network, over every transport. The rounds are the study's
//! first; how many there are is reckoned from how long the virtual loads took, and so is known before a live one is
//! made. Every figure is measured by the study's own code, once on the live loads and once on the same loads of the virtual world.
//!
//! One round is planned in any case. It may be longer than the time, so that the clock ends it where it is: no load begins once the
//! time is up. Loads are made in such an order (each arm's first, each arm's second and so on; all of that before any is made again)
//! that what is there by then has about as many of each arm, and what all arms have is measured.
//!
//! No two live loads are alike. Where an arm is a few single loads, each is made [`REPEATS`] times, and the one with the median
//! page load time is kept.
//!
//! What is done is kept in `live.jsonl`, a line a load; an interrupted run goes on from there.

mod kept;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base::Instant;
use page::Page;

use super::measure::{ArmLoads, Picture, Sample};
use super::runner::{Course, collect, plan};
use super::{Arm, STUDIES, Study};
use crate::error::Error;
use crate::plan::Plan;
use crate::result::LiveRow;
use crate::stats;
use crate::world::Track;
use kept::{Kept, Row};

/// How often a load is made of which an arm has only a few.
pub const REPEATS: u32 = 3;

/// The most pages of an arm.
const PAGES_MAX: u64 = 50;

/// How much of the time is planned: live loads may take a little longer than virtual ones.
const PLANNED: f64 = 0.9;

/// What a live load takes beyond its own time, in seconds: networks, servers and certificates are made and taken down.
const OVERHEAD_S: f64 = 0.15;

/// How a study is carried out in the live world.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// The live world.
    pub track: &'a Track,
    /// Where what is done is kept.
    pub dir: &'a Path,
    /// Take up what is kept there.
    pub resume: bool,
    /// How long it may take, in minutes: what is planned is about as much, but one round at least.
    pub minutes: f64,
    /// Whether that time is up, by the clock of who calls: then no other load begins.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
    /// Live loads made at once. They share the processor.
    pub at_once: usize,
    /// Set from elsewhere to end it early; loads that have begun are finished and kept.
    pub cancel: &'a AtomicBool,
    /// Hears how many of how many live loads are done.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
}

/// What a study found in both worlds on the same loads.
#[derive(Clone, PartialEq, Debug)]
pub struct Findings {
    /// The study.
    pub study: Study,
    /// The virtual world's figures on these loads, in the order of [`Study::published`]; `None` where there was nothing to measure.
    pub modelled: Vec<Option<f64>>,
    /// The live world's.
    pub live: Vec<Option<f64>>,
    /// What is worth drawing: of the virtual world, and of the live one.
    pub pictures: [Vec<Picture>; 2],
    /// How the arms were carried out.
    pub arms: Vec<ArmReport>,
    /// Live loads planned.
    pub planned: u64,
    /// Of those, made.
    pub made: u64,
    /// Why not all were.
    pub cut: Option<Cut>,
}

/// What ended a study before all that was planned had been made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// Its time was up.
    Time,
    /// Somebody ended it.
    Interrupt,
}

/// How an arm was carried out in the live world.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct ArmReport {
    /// Its name.
    pub name: String,
    /// Loads that the study has.
    pub whole: u64,
    /// Of those, loads that were planned.
    pub planned: u64,
    /// Of those, loads that were made, once at least.
    pub made: u64,
    /// Of those, loads that all arms have and that are measured.
    pub measured: u64,
    /// Of those, loads that were not whole in the live world.
    pub incomplete: u64,
    /// How often each of these was made.
    pub repeats: u32,
    /// What of its conditions the live world did not have, in words, and in how many loads.
    pub unmet: Vec<(String, u64)>,
    /// Median page load times of the virtual and of the live loads, ms.
    pub plt_ms: [Option<f64>; 2],
    /// In the median load, by how much the emulator delivered 99 of 100 packets late at most, µs.
    pub late_us: Option<f64>,
    /// In the median load, for how long browser and servers together were ready to run while other programs had the processor, ms.
    pub waited_ms: Option<f64>,
}

/// One live load to be made. They are made in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Task {
    step: Step,
    arm: usize,
    /// Its number in the arm.
    n: u64,
}

/// What a load is made with: the loads of a step are one of each arm.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Step {
    round: u64,
    repeat: u32,
    /// Which of the arm's loads in this round.
    place: usize,
}

impl Task {
    /// Whether it is measured if `open` is the first step that was not made by all arms: with a round that is whole, or with a
    /// repetition; of the first round, if that is all there is, what all arms have of it.
    fn counts(&self, open: Option<Step>) -> bool {
        let Some(open) = open else { return true };
        let Step { round, repeat, place } = self.step;
        match (open.round, open.repeat) {
            (0, 0) => (round, repeat) == (0, 0) && place < open.place,
            (0, repeats) => round == 0 && repeat < repeats,
            (rounds, _) => round < rounds,
        }
    }
}

/// What is to be made, and what the virtual world says to it.
struct Work<'a> {
    courses: Vec<Course<'a>>,
    tasks: Vec<Task>,
    modelled: BTreeMap<(usize, u64), Sample>,
}

/// Carries a study out. If it is cancelled, the findings are those of the rounds that are whole.
///
/// # Errors
/// If the machine has no live world or the folder cannot be written; what was made until then is kept.
pub fn run(study: Study, options: Options<'_>) -> Result<Findings, Error> {
    let mut arms = Vec::new();
    for arm in &study.arms {
        arms.push((plan(&study, arm)?, collect(&study, arm)?));
    }
    let work = choose(&study, &arms, options)?;
    let file = STUDIES.iter().find(|b| b.name == study.name).map_or("", |b| b.file);
    let mut kept = Kept::open(options, &study.name, file, work.tasks.len() as u64)?;
    let cut = make(&work, &mut kept, options)?;
    Ok(Findings { cut, ..findings(study, &arms, &work, &kept.rows) })
}

/// The first rounds that the time holds, as far as the virtual world can tell.
fn choose<'a>(study: &Study, arms: &'a [(Plan, Vec<Page>)], options: Options<'_>) -> Result<Work<'a>, Error> {
    let mut courses = Vec::new();
    for ((plan, pages), arm) in arms.iter().zip(&study.arms) {
        courses.push(Course::new(plan, pages, arm)?);
    }
    let mut work = Work { courses, tasks: Vec::new(), modelled: BTreeMap::new() };
    let mut left_s = options.minutes * 60.0 * options.at_once as f64 * PLANNED;
    for round in 0.. {
        let (mut cost_s, mut tasks, mut samples) = (0.0, Vec::new(), Vec::new());
        for (arm, course) in work.courses.iter().enumerate() {
            for (place, n) in loads(&arms[arm], round).into_iter().enumerate() {
                let (setup, seed) = course.setup(n);
                let load = sim::load(course.jobs.get(n).page, &setup, seed);
                let repeats = repeats(&arms[arm].0, course);
                let took = load.ended.since(Instant::ZERO).as_secs_f64() + OVERHEAD_S;
                cost_s += took * f64::from(repeats);
                tasks.extend((0..repeats).map(|repeat| Task { step: Step { round, repeat, place }, arm, n }));
                samples.push(((arm, n), course.sample(n, &load)));
            }
        }
        let enough = round > 0 && cost_s > left_s;
        if tasks.is_empty() || enough || options.cancel.load(Ordering::Relaxed) {
            break;
        }
        left_s -= cost_s;
        tasks.sort_unstable();
        work.tasks.extend(tasks);
        work.modelled.extend(samples);
    }
    Ok(work)
}

fn repeats(plan: &Plan, course: &Course<'_>) -> u32 {
    if course.is_detailed() && plan.runs == 1 { REPEATS } else { 1 }
}

/// The loads of an arm in a round: on all networks, over all transports.
fn loads((plan, pages): &(Plan, Vec<Page>), round: u64) -> Vec<u64> {
    let pages = (pages.len() as u64).min(PAGES_MAX);
    let (page, run) = (round % pages.max(1), round / pages.max(1));
    if pages == 0 || run >= u64::from(plan.runs) {
        return Vec::new();
    }
    let (networks, transports) = (plan.networks.len() as u64, plan.transports.len() as u64);
    let runs = u64::from(plan.runs);
    let load =
        |network: u64, transport: u64| ((page * networks + network) * runs + run) * transports + transport;
    (0..networks).flat_map(|network| (0..transports).map(move |transport| load(network, transport))).collect()
}

/// Makes the live loads that are not kept yet, until something ends it.
fn make(work: &Work<'_>, kept: &mut Kept, options: Options<'_>) -> Result<Option<Cut>, Error> {
    let open: Vec<Task> = work.tasks.iter().filter(|t| !kept.rows.contains_key(t)).copied().collect();
    let total = work.tasks.len() as u64;
    (options.progress)(total - open.len() as u64, total);
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let ended = || match options.cancel.load(Ordering::Relaxed) {
        true => Some(Cut::Interrupt),
        false => (options.is_over)().then_some(Cut::Time),
    };
    let kept = Mutex::new((kept, None));
    std::thread::scope(|scope| {
        for _ in 0..options.at_once.max(1) {
            scope.spawn(|| {
                while !failed.load(Ordering::Relaxed) && ended().is_none() {
                    let Some(task) = open.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    let row = load(work, *task, options.track);
                    let mut kept = kept.lock().unwrap_or_else(|e| e.into_inner());
                    match row.and_then(|row| kept.0.keep(*task, row)) {
                        Ok(()) => (options.progress)(kept.0.rows.len() as u64, total),
                        Err(error) => {
                            failed.store(true, Ordering::Relaxed);
                            kept.1.get_or_insert(error);
                        }
                    }
                }
            });
        }
    });
    let (kept, error) = kept.into_inner().unwrap_or_else(|e| e.into_inner());
    let whole = kept.rows.len() as u64 == total;
    error.map_or(Ok(if whole { None } else { ended() }), Err)
}

fn load(work: &Work<'_>, task: Task, track: &Track) -> Result<Row, Error> {
    let course = &work.courses[task.arm];
    let (setup, seed) = course.setup(task.n);
    let job = course.jobs.get(task.n);
    let (load, live) = track.load(job.page, &setup, seed, &course.jobs.key(&job))?;
    let late = |live: &LiveRow| live.up.late_p99_us.into_iter().chain(live.down.late_p99_us).reduce(f64::max);
    Ok(Row {
        sample: course.sample(task.n, &load),
        late_us: live.as_ref().and_then(late),
        waited_ms: live.as_ref().and_then(|live| Some(live.browser_waited_ms? + live.servers_waited_ms?)),
        unmet: live.map(|live| live.unmet).unwrap_or_default(),
    })
}

fn findings(
    study: Study,
    arms: &[(Plan, Vec<Page>)],
    work: &Work<'_>,
    rows: &BTreeMap<Task, Row>,
) -> Findings {
    // What all arms have: pairs are pairs.
    let open = work.tasks.iter().filter(|t| !rows.contains_key(t)).map(|t| t.step).min();
    let (mut worlds, mut reports) = ([Vec::new(), Vec::new()], Vec::new());
    for (index, arm) in study.arms.iter().enumerate() {
        let mut by_load: BTreeMap<u64, Vec<&Row>> = BTreeMap::new();
        let own = || work.tasks.iter().filter(|t| t.arm == index && t.step.repeat == 0);
        let (planned, made) = (own().count() as u64, own().filter(|t| rows.contains_key(t)).count() as u64);
        for task in work.tasks.iter().filter(|t| t.arm == index && t.counts(open)) {
            by_load.entry(task.n).or_default().push(&rows[task]);
        }
        let live: Vec<&Row> = by_load.values().map(|rows| median(rows)).collect();
        let modelled: Vec<Sample> = by_load.keys().map(|n| work.modelled[&(index, *n)].clone()).collect();
        let live_samples: Vec<Sample> = live.iter().map(|row| row.sample.clone()).collect();
        let all = by_load.values().flatten();
        let report = report(arm, &arms[index], &live, [&modelled, &live_samples], all);
        reports.push(ArmReport { planned, made, ..report });
        for (world, samples) in worlds.iter_mut().zip([modelled, live_samples]) {
            let mut pages: Vec<_> = samples.iter().map(|s| s.page).collect();
            pages.dedup();
            let grid = arm.grid.as_ref().and_then(|name| study.grids.get(name)).cloned();
            let networks = arms[index].0.networks.clone();
            world.push(ArmLoads { arm: arm.clone(), grid, networks, pages: pages.len(), samples });
        }
    }
    let built_in = STUDIES.iter().find(|built_in| built_in.name == study.name);
    let measure = |loads: &[ArmLoads]| {
        let (measured, pictures) = built_in.map(|b| (b.measure)(loads)).unwrap_or_default();
        let figure = |key: &str| measured.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
        let ours = study.published.iter().map(|p| figure(&p.key).filter(|v| v.is_finite()));
        (ours.collect::<Vec<_>>(), pictures)
    };
    let [(modelled, virtual_pictures), (live, live_pictures)] = worlds.map(|loads| measure(&loads));
    let (planned, made) = (work.tasks.len() as u64, rows.len() as u64);
    let pictures = [virtual_pictures, live_pictures];
    Findings { study, modelled, live, pictures, arms: reports, planned, made, cut: None }
}

/// Of several loads of one kind the one with the median page load time; those that were not whole come last.
fn median<'a>(rows: &[&'a Row]) -> &'a Row {
    let mut sorted = rows.to_vec();
    let time = |row: &Row| row.sample.plt_ms.unwrap_or(f64::INFINITY);
    sorted.sort_by(|a, b| time(a).total_cmp(&time(b)));
    sorted[(sorted.len() - 1) / 2]
}

fn report<'a>(
    arm: &Arm,
    (plan, pages): &(Plan, Vec<Page>),
    live: &[&Row],
    samples: [&[Sample]; 2],
    all: impl Iterator<Item = &'a &'a Row> + Clone,
) -> ArmReport {
    let mut unmet: BTreeMap<&str, u64> = BTreeMap::new();
    for what in all.clone().flat_map(|row| &row.unmet) {
        *unmet.entry(what).or_default() += 1;
    }
    let middle = |values: Vec<f64>| stats::median(&values).map(|m| stats::round(m, 1));
    ArmReport {
        name: arm.name.clone(),
        whole: crate::run::Jobs::new(plan, pages).len(),
        measured: live.len() as u64,
        incomplete: live.iter().filter(|row| row.sample.plt_ms.is_none()).count() as u64,
        repeats: if live.is_empty() { 0 } else { (all.clone().count() / live.len()) as u32 },
        planned: 0,
        made: 0,
        unmet: unmet.into_iter().map(|(what, loads)| (what.to_owned(), loads)).collect(),
        plt_ms: samples.map(|s| middle(s.iter().filter_map(|s| s.plt_ms).collect())),
        late_us: middle(all.clone().filter_map(|row| row.late_us).collect()),
        waited_ms: middle(all.filter_map(|row| row.waited_ms).collect()),
    }
}

#[cfg(test)]
mod tests;
