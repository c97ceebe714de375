//! `velodrome race`: a plan from flags or a file, the race, the summary, the report.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use lab::Error;
use lab::folder::Environment;
use lab::network::Network;
use lab::pages::Collected;
use lab::plan::{FORMAT, Plan, StateFile};
use lab::setting::World;
use lab::world::Track;

use crate::args::{PlanArgs, RaceArgs};
use crate::{Exit, print};

/// Runs where loss makes runs differ and nobody said how many: as many as the SPDY whitepaper's.
const RUNS_RANDOM: u32 = 10;

/// Set by ctrl-C.
pub static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Races, prints, and says how it ended.
pub fn race(args: &RaceArgs) -> Result<Exit, Error> {
    let mut plan = match &args.plan_file {
        Some(file) => read_plan(file)?,
        None => {
            let world = if args.live { World::Live } else { World::Virtual };
            make_plan(&args.plan, world)?
        }
    };
    plan.seal()?;
    let dir = args.out.clone().unwrap_or_else(|| default_dir(&plan));
    let collected = lab::pages::collect(&plan.pages, plan.pages_max);
    collected.problems.iter().for_each(|problem| print::complain(problem));
    if collected.pages.is_empty() {
        print::complain(&"there is no page to race");
        return Ok(Exit::Partly);
    }
    let track = Track::prepare(plan.world)?;
    listen_for_ctrl_c();
    let (summary, seconds) = watch(args, &plan, &collected, &dir, &track)?;
    let report = if args.no_report { None } else { Some(report::write(&dir)?) };
    if args.json {
        print::out(&String::from_utf8_lossy(&lab::folder::json(&summary)));
    } else if !args.quiet {
        print::out(&print::summary(&summary, &dir, report.as_deref(), seconds));
    }
    let refused = collected.problems.len();
    if refused > 0 {
        let what = if refused == 1 { "one input" } else { &format!("{refused} inputs") };
        print::complain(&format!("{what} could not be raced, as said above; the rest was"));
    }
    Ok(match (summary.loads < summary.loads_planned, refused) {
        (true, _) => Exit::Interrupted,
        (false, 0) => Exit::Well,
        (false, _) => Exit::Partly,
    })
}

/// The race itself, with a progress bar where somebody is there to see it; and how many seconds it took.
fn watch(
    args: &RaceArgs,
    plan: &Plan,
    collected: &Collected,
    dir: &Path,
    track: &Track,
) -> Result<(lab::summary::Summary, f64), Error> {
    // Draws nothing unless standard error is a terminal.
    let bar = if args.quiet || args.json { ProgressBar::hidden() } else { ProgressBar::no_length() };
    let style = "{bar:40} {pos} of {len} loads, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).expect("a valid template"));
    bar.set_length(lab::run::Jobs::new(plan, &collected.pages).len());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let summary = lab::race::race(
        plan,
        collected,
        lab::race::Options {
            dir,
            resume: args.resume,
            track,
            // In the live world loads would disturb each other.
            threads: args.threads.map_or(if plan.world == World::Live { 1 } else { cores }, |n| n as usize),
            environment: &environment(cores),
            cancel: &INTERRUPTED,
            progress: &|done| bar.set_position(done),
        },
    )?;
    bar.finish_and_clear();
    Ok((summary, bar.elapsed().as_secs_f64()))
}

/// The first ctrl-C ends the race after the loads that have begun; the second ends the program.
pub fn listen_for_ctrl_c() {
    let heard = || {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    // Without a handler ctrl-C ends the program at once, and --resume still goes on from there.
    let _ = ctrlc::set_handler(heard);
}

fn read_plan(file: &Path) -> Result<Plan, Error> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|source| Error::Io {
        action: "cannot read",
        path: file.to_owned(),
        source,
    })?;
    Plan::parse(&text, &name)
}

pub fn make_plan(args: &PlanArgs, world: World) -> Result<Plan, Error> {
    let overrides = args.settings.overrides();
    let mut networks = Vec::new();
    for name in &args.networks {
        let mut network = Network::named(name)?;
        network.apply(&overrides)?;
        networks.push(network);
    }
    let random = world == World::Live || networks.iter().any(Network::is_random);
    let plan = Plan {
        format: FORMAT,
        world,
        seed: args.seed,
        runs: args.runs.unwrap_or(if random { RUNS_RANDOM } else { 1 }),
        transports: args.transports.iter().map(ToString::to_string).collect(),
        pages: args.source.pages.clone(),
        pages_max: args.source.pages_max,
        techniques: args.techniques.clone(),
        state: args.state.as_deref().map(|file| StateFile::new(&file.to_string_lossy())),
        networks,
    };
    plan.check().map_err(Error::Asked)?;
    Ok(plan)
}

/// `runs/PAGES-NETWORK-HASH`: two plans never share it, and one plan always has the same.
pub fn default_dir(plan: &Plan) -> PathBuf {
    let pages = plan.pages[0].trim_end_matches(['/', '.']);
    let pages = pages.rsplit('/').next().unwrap_or(pages).trim_end_matches(".gz").trim_end_matches(".har");
    let safe = |s: &str| -> String {
        let safe = s.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' });
        safe.take(40).collect::<String>().trim_matches(['-', '.']).to_owned()
    };
    let network = safe(&plan.networks[0].name);
    Path::new("runs").join(format!("{}-{network}-{}", safe(pages), plan.short_hash()))
}

pub fn environment(cores: usize) -> Environment {
    let known = |s: &str| (!s.is_empty()).then(|| s.to_owned());
    Environment {
        note: Environment::NOTE.to_owned(),
        velodrome: env!("CARGO_PKG_VERSION").to_owned(),
        commit: known(env!("VELODROME_COMMIT")),
        rustc: known(env!("VELODROME_RUSTC")),
        target: env!("VELODROME_TARGET").to_owned(),
        cores: cores as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_folder_is_named_after_pages_network_and_plan() {
        let mut plan = Plan {
            format: FORMAT,
            world: World::Virtual,
            seed: 1,
            runs: 1,
            transports: vec!["http1".into()],
            pages: vec!["../some where/www.a.org.har.gz".into()],
            pages_max: None,
            techniques: Vec::new(),
            state: None,
            networks: vec![Network::named("2000/386/100/0").unwrap()],
        };
        let dir = default_dir(&plan);
        assert_eq!(dir, Path::new("runs").join(format!("www.a.org-2000-386-100-0-{}", plan.short_hash())));
        plan.seed = 2;
        assert_ne!(default_dir(&plan), dir);
        plan.pages = vec!["corpus:2012:5".into()];
        assert!(default_dir(&plan).to_string_lossy().starts_with("runs/corpus-2012-5-2000-386-100-0-"));
    }
}
