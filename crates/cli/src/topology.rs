//! `velodrome topology`: what a client learns of pages by visiting them, shown, and kept between runs.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use anstyle::Style;
use clap::Args;
use client::{Preconnect, Transport};
use indicatif::{ProgressBar, ProgressStyle};
use lab::Error;
use lab::network::Network;
use lab::plan::{FORMAT, Plan};
use lab::setting::World;
use lab::technique::Technique;
use lab::topology::{Estimate, HostView, PageView, State, Topology, file, learn};

use crate::args::{SettingArgs, SourceArgs};
use crate::race::{INTERRUPTED, listen_for_ctrl_c};
use crate::{Exit, print};

const BOLD: Style = Style::new().bold();

/// `velodrome topology`.
#[derive(Args, Debug)]
#[command(mut_arg("pages", |pages| pages.required_unless_present("state")))]
pub struct TopologyArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Visits of each page, one after the other in rounds; a round is one run of the browser.
    #[arg(long, value_name = "N", default_value_t = lab::technique::VISITS, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    visits: u32,
    /// What the client kept of earlier runs, and keeps of this one. Without pages it is only shown.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// What carries the requests.
    #[arg(long, value_name = "NAME", default_value = "http1")]
    transport: Transport,
    /// The network: a name (see `velodrome networks`), or DOWN/UP/RTT/LOSS in kbit/s, kbit/s, ms and % each way.
    #[arg(long, value_name = "NETWORK", default_value = "seed")]
    network: String,
    /// The seed from which all chance derives.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=lab::plan::SEED_MAX))]
    seed: u64,
    /// A technique of the browser; see `velodrome race --help` (preconnect=learned unless another predictor is named).
    #[arg(long = "with", value_name = "TECHNIQUE")]
    techniques: Vec<Technique>,
    /// Write a page with pictures to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print what is known as JSON, and nothing else.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: SettingArgs,
}

/// Learns, keeps, shows.
pub fn topology(args: &TopologyArgs) -> Result<Exit, Error> {
    let mut state = match &args.state {
        Some(path) => file::read(path)?,
        None => None,
    };
    if let (None, Some(path), []) = (&state, &args.state, args.source.pages.as_slice()) {
        return Err(Error::Asked(format!(
            "{}: there is no such file, and no page to learn from",
            path.display()
        )));
    }
    let mut exit = Exit::Well;
    let mut conditions = Vec::new();
    let mut known = state.take().unwrap_or_default();
    if !args.source.pages.is_empty() {
        let plan = plan(args)?;
        exit = visit(args, &plan, &mut known)?;
        conditions.push(said(&plan));
        if let Some(path) = &args.state {
            file::write(path, &known)?;
        }
    }
    let topology = Topology::of(&known);
    if let Some(path) = &args.html {
        report::topology::write(path, &topology, &conditions)?;
    }
    if args.json {
        print::out(&String::from_utf8_lossy(&lab::folder::json(&topology)));
    } else {
        print::out(&text(&topology, args));
    }
    Ok(exit)
}

fn plan(args: &TopologyArgs) -> Result<Plan, Error> {
    let mut network = Network::named(&args.network)?;
    network.apply(&args.settings.overrides())?;
    network.seal()?;
    let mut techniques = args.techniques.clone();
    if techniques.iter().any(|t| matches!(t, Technique::Visits(_))) {
        return Err(Error::Asked("visits are said by --visits here".to_owned()));
    }
    if !techniques.iter().any(|t| matches!(t, Technique::Preconnect(_))) {
        techniques.push(Technique::Preconnect(Preconnect::Learned));
    }
    let plan = Plan {
        format: FORMAT,
        world: World::Virtual,
        seed: args.seed,
        runs: 1,
        transports: vec![args.transport.to_string()],
        pages: args.source.pages.clone(),
        pages_max: args.source.pages_max,
        techniques,
        state: None,
        networks: vec![network],
    };
    plan.check().map_err(Error::Asked)?;
    Ok(plan)
}

fn said(plan: &Plan) -> String {
    let techniques: Vec<_> = plan.techniques.iter().map(ToString::to_string).collect();
    format!(
        "Last learned in the virtual world over {} on network {}, with {}; seed {}.",
        plan.transports[0],
        plan.networks[0].name,
        techniques.join(" and "),
        plan.seed
    )
}

/// Visits the pages, with a progress bar where somebody is there to see it.
fn visit(args: &TopologyArgs, plan: &Plan, state: &mut State) -> Result<Exit, Error> {
    let collected = lab::pages::collect(&plan.pages, plan.pages_max);
    collected.problems.iter().for_each(|problem| print::complain(problem));
    if collected.pages.is_empty() {
        print::complain(&"there is no page to visit");
        return Ok(Exit::Partly);
    }
    listen_for_ctrl_c();
    let bar = if args.json { ProgressBar::hidden() } else { ProgressBar::no_length() };
    let style = "{bar:40} {pos} of {len} visits, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).expect("a valid template"));
    bar.set_length(collected.pages.len() as u64 * u64::from(args.visits));
    let done = AtomicU64::new(0);
    let progress = || bar.set_position(done.fetch_add(1, Ordering::Relaxed) + 1);
    learn(plan, &collected.pages, args.visits, state, &INTERRUPTED, &progress)?;
    bar.finish_and_clear();
    Ok(match (INTERRUPTED.load(Ordering::Relaxed), collected.problems.is_empty()) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Well,
        (false, false) => Exit::Partly,
    })
}

fn text(topology: &Topology, args: &TopologyArgs) -> String {
    let mut out = String::new();
    let rounds = if topology.rounds == 1 { "run" } else { "runs" };
    let _ = writeln!(out, "learned in {} {rounds} of the browser", topology.rounds);
    let pipelines = topology.knows_pipelining();
    topology.pages.iter().for_each(|page| write_page(&mut out, page, pipelines));
    out.push_str(
        "\na visit: means; expected: connections of the next visit (learned), or the share of visits that used the host \
         (successor); ahead: opened before anything was asked for, in all visits\n",
    );
    if pipelines {
        out.push_str(
            "pipelining: red is not trusted until it has paid off what it owes, yellow with one trial, green has passed one; proven, from \
             the third place or deeper\n",
        );
    }
    for (what, path) in [("state", &args.state), ("page", &args.html)] {
        if let Some(path) = path {
            let _ = writeln!(out, "{what}: {}", path.display());
        }
    }
    out
}

fn write_page(out: &mut String, page: &PageView, pipelines: bool) {
    let visits = if page.visits == 1 { "visit" } else { "visits" };
    let _ = writeln!(out, "\n{BOLD}{}{BOLD:#}, {} {visits}", page.page, page.visits);
    let mut header =
        vec!["host", "resources a visit", "connections", "expected", "next opens", "ahead", "used", "wasted"];
    header.extend(pipelines.then_some("pipelining"));
    let mut table = print::table(1, &header);
    for host in &page.hosts {
        let list = |what: fn(&Estimate) -> String| {
            let all: Vec<_> = host.estimates.iter().map(what).collect();
            if all.is_empty() { "forgotten".to_owned() } else { all.join(" / ") }
        };
        let HostView { host: name, resources, carried, made, used, wasted, .. } = host;
        let mut row = vec![
            name.clone(),
            format!("{resources:.1}"),
            format!("{carried:.1}"),
            list(Estimate::in_words),
            list(Estimate::next_in_words),
            made.to_string(),
            used.to_string(),
            wasted.to_string(),
        ];
        row.extend(pipelines.then(|| host.pipelining_in_words()));
        table.add_row(row);
    }
    let _ = write!(out, "{}", print::lines(&table));
}
