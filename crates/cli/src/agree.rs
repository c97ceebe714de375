//! `velodrome agree`: the same plan in both worlds, and how far they are apart.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anstyle::Style;
use indicatif::{ProgressBar, ProgressStyle};
use lab::Error;
use lab::agree::{AGREEMENT, Agreement, Group, LIVE, PHASES, VIRTUAL};
use lab::pages::Collected;
use lab::plan::Plan;
use lab::setting::World;
use lab::world::Track;

use crate::args::AgreeArgs;
use crate::race::{INTERRUPTED, default_dir, environment, listen_for_ctrl_c, make_plan};
use crate::{Exit, print};

const BOLD: Style = Style::new().bold();

/// Live runs of a page where loss makes them differ and nobody said how many: enough that their median is steady.
const RUNS_RANDOM: u32 = 20;

/// And where nothing is random but the machine.
const RUNS: u32 = 3;

/// Races in both worlds, compares, prints.
pub fn agree(args: &AgreeArgs) -> Result<Exit, Error> {
    let mut plan = make_plan(&args.plan, World::Virtual)?;
    let random = plan.networks.iter().any(lab::network::Network::is_random);
    let runs = args.plan.runs.unwrap_or(if random { RUNS_RANDOM } else { RUNS });
    plan.seal()?;
    // Without chance one virtual load is as good as many.
    let plan = Plan { runs: if random { runs } else { 1 }, ..plan };
    let live = Plan { world: World::Live, runs, ..plan.clone() };
    let track = Track::prepare(World::Live)?;
    let collected = lab::pages::collect(&plan.pages, plan.pages_max);
    collected.problems.iter().for_each(|problem| print::complain(problem));
    if collected.pages.is_empty() {
        print::complain(&"there is no page to load");
        return Ok(Exit::Partly);
    }
    let dir = args.out.clone().unwrap_or_else(|| named(&live));
    listen_for_ctrl_c();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    race(args, &plan, &collected, &dir.join(VIRTUAL), &Track::VIRTUAL, cores)?;
    race(args, &live, &collected, &dir.join(LIVE), &track, args.at_once as usize)?;
    if INTERRUPTED.load(Ordering::Relaxed) {
        print::complain(&"interrupted: the same command with --resume goes on");
        return Ok(Exit::Interrupted);
    }
    let agreement = lab::agree::compare(&dir)?;
    lab::folder::write(&dir, AGREEMENT, &lab::folder::json(&agreement))?;
    let page = report::agree::write(&dir, &agreement)?;
    if args.json {
        print::out(&String::from_utf8_lossy(&lab::folder::json(&agreement)));
    } else {
        print::out(&text(&agreement, &dir, &page));
    }
    Ok(if collected.problems.is_empty() && agreement.incomplete.is_empty() {
        Exit::Well
    } else {
        Exit::Partly
    })
}

fn named(plan: &Plan) -> PathBuf {
    let dir = default_dir(plan);
    let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    dir.with_file_name(format!("agree-{name}"))
}

fn race(
    args: &AgreeArgs,
    plan: &Plan,
    collected: &Collected,
    dir: &Path,
    track: &Track,
    threads: usize,
) -> Result<(), Error> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        return Ok(());
    }
    let bar = if args.json { ProgressBar::hidden() } else { ProgressBar::no_length() };
    let style = "{prefix:>7} {bar:40} {pos} of {len} loads, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).expect("a valid template"));
    bar.set_prefix(plan.world.name());
    bar.set_length(lab::run::Jobs::new(plan, &collected.pages).len());
    let options = lab::race::Options {
        dir,
        resume: args.resume,
        track,
        threads,
        environment: &environment(std::thread::available_parallelism().map_or(1, usize::from)),
        cancel: &INTERRUPTED,
        progress: &|done| bar.set_position(done),
    };
    lab::race::race(plan, collected, options)?;
    bar.finish_and_clear();
    Ok(())
}

fn text(a: &Agreement, dir: &Path, page: &Path) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{BOLD}virtual against live: {} cells, medians of {} and {} loads{BOLD:#}\n",
        a.cells.len(),
        a.runs[0],
        a.runs[1]
    );
    let header =
        ["network", "transport", "cells", "bias, %", "median, %", "95th, %", "largest, %", "first byte, %"];
    let mut table = print::table(2, &header);
    for group in &a.groups {
        let [network, transport] = name(group);
        table.add_row([
            network,
            transport,
            group.cells.to_string(),
            format!("{:+.1}", group.bias_pct),
            format!("{:.1}", group.median_pct),
            format!("{:.1}", group.p95_pct),
            format!("{:.1}", group.max_pct),
            format!("{:.1}", group.first_byte_median_pct),
        ]);
    }
    out.push_str(&print::lines(&table));
    out.push_str("  (errors of the virtual page load time; absolute but for the bias)\n");
    let faster = a.faster;
    let _ = writeln!(
        out,
        "\nboth worlds agree on the faster transport in {} of {} pairs in which it is faster by more than 5 % live",
        faster.agree, faster.clear
    );
    let header: Vec<&str> = ["network", "transport"].into_iter().chain(PHASES).collect();
    let mut table = print::table(2, &header);
    for group in &a.groups {
        table.add_row(name(group).into_iter().chain(group.parts_ms.map(|ms| format!("{ms:+.0}"))));
    }
    let _ = writeln!(
        out,
        "\nwhere they part: ms that the virtual critical path has more (+) or less (-)\n\n{}",
        print::lines(&table)
    );
    if let Some([median, worst]) = a.late_p99_us {
        let _ = writeln!(
            out,
            "the emulator was late by {median:.0} µs (99th percentile) in the median load, {worst:.0} µs in the worst"
        );
    }
    for (what, loads) in &a.unmet {
        let _ = writeln!(out, "note: in {loads} live loads {what}");
    }
    for what in &a.incomplete {
        let _ = writeln!(out, "note: not compared: {what}");
    }
    let _ = writeln!(out, "\nresults: {}\nreport:  {}", dir.display(), page.display());
    out
}

fn name(group: &Group) -> [String; 2] {
    match (&group.network, &group.transport) {
        (Some(network), Some(transport)) => [network.clone(), transport.clone()],
        _ => ["all".to_owned(), report::agree::overflow(group).to_owned()],
    }
}
