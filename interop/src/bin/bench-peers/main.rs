//! `bench-peers`: SPDY/3.1 beside Go's framer and Node's engine in one run, and `velodrome serve` beside node-spdy's server.
//!
//! What competes takes turns, round after round, so that whatever else the machine does disturbs all alike; the median of
//! the rounds counts. The loads are the same everywhere: `interop/bench/heads.json`, `interop/go/bench`,
//! `interop/node/bench.js`, and [`memory`] here. Build it with `--release`, and `velodrome` beside it.

mod memory;
mod serve;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Parser;
use comfy_table::{CellAlignment, Table, presets};
use interop::child;
use serde::{Deserialize, Serialize};

/// SPDY beside Go's and Node's.
#[derive(Debug, Parser)]
#[command(name = "bench-peers")]
struct Args {
    /// How often each has its turn.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Requests to each server a turn.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..))]
    requests: u32,
    /// Prints one JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

/// What passes through a pair of engines a second.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Rates {
    /// DATA frames of 100 bytes.
    frames: f64,
    /// Header blocks, each compressed and inflated.
    blocks: f64,
    /// Bytes of DATA, in frames of 16 KiB.
    bytes: f64,
}

/// One of those that compete, with what it achieved.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Entry<T> {
    name: &'static str,
    median: T,
    rounds: Vec<T>,
}

/// All of it.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Results {
    memory: Vec<Entry<Rates>>,
    servers: Vec<serve::Results>,
}

fn main() -> ExitCode {
    match bench(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("bench-peers: {why}");
            ExitCode::FAILURE
        }
    }
}

fn bench(args: &Args) -> Result<(), String> {
    if cfg!(debug_assertions) {
        return Err("this is a build for debugging: run `make bench-peers`".into());
    }
    child::kill_on_signal()?;
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let memory = in_memory(&folder, args.rounds)?;
    let servers = serve::bench(&folder, args.rounds, args.requests)?;
    let results = Results { memory, servers };
    if args.json {
        println!("{}", serde_json::to_string(&results).map_err(|e| e.to_string())?);
        return Ok(());
    }
    println!("{}\n\n{}", memory_table(&results.memory), serve::table_of(&results.servers));
    Ok(())
}

/// The middle of the values; of two, the upper.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

type Run<'r> = Box<dyn Fn() -> Result<Rates, String> + 'r>;

fn in_memory(folder: &Path, rounds: u16) -> Result<Vec<Entry<Rates>>, String> {
    let heads = memory::Heads::read(&folder.join("bench/heads.json"))?;
    let peer = |program: &str, words: &[&str]| -> Result<Rates, String> {
        let output = Command::new(program).args(words).arg("bench/heads.json").current_dir(folder).output();
        let output = output.map_err(|e| format!("{program}: {e}: run interop/setup.sh"))?;
        let said = || format!("{program}: {}", String::from_utf8_lossy(&output.stderr));
        if !output.status.success() {
            return Err(said());
        }
        serde_json::from_slice(&output.stdout).map_err(|e| format!("{}: {e}", said()))
    };
    let go = folder.join("target/go/bench").display().to_string();
    let all: [(&str, Run<'_>); 3] = [
        ("velodrome, two sessions", Box::new(|| Ok(memory::run(&heads)))),
        ("Go spdystream, framer alone", Box::new(|| peer(&go, &[]))),
        (
            "Node spdy-transport, two connections",
            Box::new(|| peer("node", &["--no-deprecation", "node/bench.js"])),
        ),
    ];
    let mut runs = vec![Vec::new(); all.len()];
    for round in 0..rounds {
        for ((name, run), runs) in all.iter().zip(&mut runs) {
            eprintln!("round {} of {rounds}: {name}", round + 1);
            runs.push(run()?);
        }
    }
    let entry = |((name, _), rounds): ((&'static str, Run<'_>), Vec<Rates>)| {
        let of = |value: fn(&Rates) -> f64| median(rounds.iter().map(value));
        let median = Rates { frames: of(|r| r.frames), blocks: of(|r| r.blocks), bytes: of(|r| r.bytes) };
        Entry { name, median, rounds }
    };
    Ok(all.into_iter().zip(runs).map(entry).collect())
}

/// A table whose columns but the first are numbers.
fn table(header: Vec<String>, rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(header);
    rows.into_iter().for_each(|row| {
        table.add_row(row);
    });
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table
}

fn memory_table(entries: &[Entry<Rates>]) -> Table {
    let header = ["in memory", "frames/s", "header blocks/s", "MB/s of DATA"].map(String::from).to_vec();
    table(
        header,
        entries.iter().map(|entry| {
            let Rates { frames, blocks, bytes } = entry.median;
            vec![
                entry.name.into(),
                format!("{frames:.0}"),
                format!("{blocks:.0}"),
                format!("{:.0}", bytes / 1e6),
            ]
        }),
    )
}
