//! `velodrome capture`: the packets of one load, in a file.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use clap::Args;
use client::Transport;
use lab::Error;
use lab::capture::{Capture, Counts, End};
use lab::network::Network;
use lab::plan::{FORMAT, Plan, StateFile};
use lab::setting::World;
use lab::technique::Technique;
use serde::Serialize;

use crate::args::SettingArgs;
use crate::{Exit, print};

const SIZE: &str = "\
The load is that of `velodrome race` with the same page, network, transport, techniques and seed, its first run. The file has every byte \
that crossed at that end: about as many as the table of a race says, and 16 more a packet. It cannot be longer than what the link \
carries until the load is given up (--give-up). Bodies, and what TLS would compute, are filler: docs/model.md says what else is made up.\n\n\
Where packets were lost, Wireshark reads what is above TCP with its preference tcp.reassemble_out_of_order (tshark -o \
tcp.reassemble_out_of_order:TRUE).";

/// `velodrome capture`.
#[derive(Args, Debug)]
#[command(after_help = SIZE)]
pub struct CaptureArgs {
    /// A HAR file (.har, .har.gz), a folder with one of them, or `corpus:NAME[:COUNT[:SEED]]` (built in). Of several pages, see --page.
    #[arg(value_name = "PAGE", required = true)]
    source: Vec<String>,
    /// Which of several pages: its number, from 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    page: Option<u32>,
    /// What carries the requests.
    #[arg(long, value_name = "NAME", default_value = "http1")]
    transport: Transport,
    /// The network: a name (see `velodrome networks`), or DOWN/UP/RTT/LOSS in kbit/s, kbit/s, ms and % each way.
    #[arg(long, value_name = "NETWORK", default_value = "seed")]
    network: String,
    /// Where packets are seen: client, or server (all servers together). What was lost is in its sender's capture only.
    #[arg(long, value_name = "END", default_value = "client")]
    at: End,
    /// The file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// The seed from which all chance derives.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=lab::plan::SEED_MAX))]
    seed: u64,
    /// A technique of the browser; see `velodrome race --help`. May be given several times.
    #[arg(long = "with", value_name = "TECHNIQUE")]
    techniques: Vec<Technique>,
    /// What the browser remembers before the load: a file that `velodrome topology --state` has written.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Print what the file holds as JSON, and nothing else.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: SettingArgs,
}

/// What is said of a capture.
#[derive(Serialize)]
struct Said<'a> {
    file: &'a str,
    page: &'a str,
    transport: &'a str,
    network: &'a str,
    at: String,
    seed: u64,
    #[serde(flatten)]
    counts: Counts,
}

/// Loads, writes, counts.
pub fn capture(args: &CaptureArgs) -> Result<Exit, Error> {
    let plan = plan(args)?;
    let collected = lab::pages::collect(&plan.pages, None);
    collected.problems.iter().for_each(|problem| print::complain(problem));
    let page = one(&collected.pages, args.page)?;
    let capture = Capture::make(&plan, page)?;
    let failed = |source| Error::Io { action: "cannot write", path: args.out.clone(), source };
    let file = File::create(&args.out).map_err(failed)?;
    let counts = capture.write(args.at, BufWriter::new(file)).map_err(failed)?;
    let said = Said {
        file: &args.out.to_string_lossy(),
        page: &page.id,
        transport: &plan.transports[0],
        network: &plan.networks[0].name,
        at: args.at.to_string(),
        seed: args.seed,
        counts,
    };
    if args.json {
        print::out(&String::from_utf8_lossy(&lab::folder::json(&said)));
    } else {
        print::out(&text(&said));
    }
    if let load::Outcome::Incomplete(why) = &capture.load().outcome {
        print::complain(&format!("the page was not whole: {why}"));
    }
    Ok(if collected.problems.is_empty() { Exit::Well } else { Exit::Partly })
}

fn plan(args: &CaptureArgs) -> Result<Plan, Error> {
    let mut network = Network::named(&args.network)?;
    network.apply(&args.settings.overrides())?;
    let mut plan = Plan {
        format: FORMAT,
        world: World::Virtual,
        seed: args.seed,
        runs: 1,
        transports: vec![args.transport.to_string()],
        pages: args.source.clone(),
        pages_max: None,
        techniques: args.techniques.clone(),
        state: args.state.as_deref().map(|file| StateFile::new(&file.to_string_lossy())),
        networks: vec![network],
    };
    plan.seal()?;
    plan.check().map_err(Error::Asked)?;
    Ok(plan)
}

fn one(pages: &[page::Page], number: Option<u32>) -> Result<&page::Page, Error> {
    let count = pages.len();
    match number {
        _ if count == 0 => Err(Error::Asked("there is no page to load".to_owned())),
        None if count > 1 => {
            Err(Error::Asked(format!("a capture is of one page, and here are {count}: --page says which")))
        }
        None => Ok(&pages[0]),
        Some(number) => pages.get(number as usize - 1).ok_or_else(|| {
            Error::Asked(format!("--page {number}: there is no such page, the last one is {count}"))
        }),
    }
}

fn text(said: &Said<'_>) -> String {
    let Counts { packets, bytes, connections, duration_us, .. } = said.counts;
    let of = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    format!(
        "{}: {}, {}, {}, {:.3} s; sent again at the {}: {}, and of what came to it {}\n",
        said.file,
        of(packets, "packet"),
        of(bytes, "byte"),
        of(connections, "connection"),
        duration_us as f64 / 1e6,
        said.at,
        said.counts.retransmissions_sent,
        said.counts.retransmissions_received,
    )
}
