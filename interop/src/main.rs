//! `velodrome-interop`: runs the interop matrix, tells how each square went, and fails if one did not go as it has to.
//!
//! A square that fails without a reason in `peers.toml` is an error, and so is one that has a reason and does not fail.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

use clap::Parser;
use interop::contract::{Scenario, VERSIONS, version_name};
use interop::matrix;
use interop::peers::{Peer, Peers, Role, Transport};
use interop::run::{self, Filter, Ground, is_there};
use interop::{child, example};
use live::Clock;
use spdy::Version;

/// Our client and our server against the peers that still speak SPDY.
#[derive(Debug, Parser)]
#[command(name = "velodrome-interop")]
struct Args {
    /// This peer alone; may be given several times.
    #[arg(long, value_name = "PEER")]
    only: Vec<String>,
    /// This scenario alone; may be given several times.
    #[arg(long, value_name = "S", value_parser = scenario)]
    scenario: Vec<Scenario>,
    /// The squares in which the peer plays this part: server or client.
    #[arg(long, value_name = "PART", value_parser = role)]
    role: Option<Role>,
    /// 2, 3 or 3.1.
    #[arg(long, value_name = "V", value_parser = version)]
    version: Option<Version>,
    /// tcp or tls.
    #[arg(long, value_name = "T", value_parser = transport)]
    transport: Option<Transport>,
    /// How many rows of the matrix are run side by side; most of a run is waiting.
    #[arg(long, value_name = "N", default_value_t = 2)]
    abreast: usize,
    /// Runs everything this often: a square has to be the same each time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeat: usize,
    /// Prints a line of JSON a square on standard output, and nothing else there.
    #[arg(long)]
    json: bool,
    /// Lists the peers and whether they are here; runs nothing.
    #[arg(long)]
    list: bool,
    /// Puts the tables into this document, between its markers.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["only", "scenario", "role", "version", "transport"])]
    write: Option<PathBuf>,
    /// Fails if the tables in this document are not those of this run.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scenario", "role", "version", "transport", "write"])]
    check: Option<PathBuf>,
}

fn scenario(name: &str) -> Result<Scenario, String> {
    Scenario::from_name(name)
        .ok_or_else(|| format!("give one of {}", Scenario::ALL.map(Scenario::name).join(", ")))
}

fn role(name: &str) -> Result<Role, String> {
    [Role::Server, Role::Client]
        .into_iter()
        .find(|r| r.to_string() == name)
        .ok_or("give server or client".into())
}

fn version(name: &str) -> Result<Version, String> {
    VERSIONS.into_iter().find(|v| version_name(*v) == name).ok_or("give 2, 3 or 3.1".into())
}

fn transport(name: &str) -> Result<Transport, String> {
    [Transport::Tcp, Transport::Tls]
        .into_iter()
        .find(|t| t.to_string() == name)
        .ok_or("give tcp or tls".into())
}

fn main() -> ExitCode {
    match matrix_run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("velodrome-interop: {why}");
            ExitCode::from(2)
        }
    }
}

/// Whether a peer can be run.
enum Presence<'p> {
    Here,
    /// There is no such program, without which it cannot be built.
    Skipped(&'p str),
    /// It could be built, and was not.
    Unbuilt,
}

fn presence<'p>(peer: &'p Peer, folder: &Path) -> Presence<'p> {
    let runs = peer.command.first().is_some_and(|program| is_there(program, folder));
    if runs && folder.join(&peer.built).exists() {
        return Presence::Here;
    }
    match peer.needs.iter().find(|program| !is_there(program, folder)) {
        Some(program) => Presence::Skipped(program),
        None => Presence::Unbuilt,
    }
}

/// The peers that are here. With CI set, all have to be.
fn here<'p>(peers: &'p Peers, args: &Args, folder: &Path) -> Result<Vec<&'p Peer>, String> {
    if let Some(name) = args.only.iter().find(|name| !peers.all.iter().any(|p| p.name == **name)) {
        let names: Vec<_> = peers.all.iter().map(|p| &*p.name).collect();
        return Err(format!("there is no peer {name}; there are {}", names.join(", ")));
    }
    let mut here = Vec::new();
    for peer in peers.all.iter().filter(|p| args.only.is_empty() || args.only.contains(&p.name)) {
        match presence(peer, folder) {
            Presence::Here => here.push(peer),
            Presence::Unbuilt => return Err(format!("{} is not built: run interop/setup.sh", peer.name)),
            Presence::Skipped(program) if std::env::var_os("CI").is_some() => {
                return Err(format!("{} cannot be built without {program}, and CI runs all", peer.name));
            }
            Presence::Skipped(program) => eprintln!("interop: {} skipped: there is no {program}", peer.name),
        }
    }
    Ok(here)
}

fn list(peers: &Peers, folder: &Path) {
    for peer in &peers.all {
        let presence = match presence(peer, folder) {
            Presence::Here => "here",
            Presence::Skipped(_) => "skipped",
            Presence::Unbuilt => "not built",
        };
        let [roles, transports] = [
            peer.roles.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            peer.transports.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        ];
        println!("{:<12} {presence:<10} {}; {roles}; {transports}", peer.name, peer.versions.join(", "));
        println!("{:<12} {}", "", peer.about);
    }
}

fn matrix_run(args: &Args) -> Result<bool, String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let peers = Peers::read(&folder.join("peers.toml"))?;
    if args.list {
        list(&peers, &folder);
        return Ok(true);
    }
    let here = here(&peers, args, &folder)?;
    if here.is_empty() {
        // Each was named; with CI set that was an error.
        return Ok(true);
    }
    let partial = here.len() < peers.all.len();
    if partial && args.write.is_some() {
        return Err("not all peers are here: a part of the matrix is not written".into());
    }
    example::program()?;
    child::kill_on_signal()?;
    let ground = Ground { folder, peers: &peers };
    ground.make_certificate()?;
    let filter = Filter {
        role: args.role,
        version: args.version,
        transport: args.transport,
        scenarios: args.scenario.clone(),
    };
    let clock = Clock::start();
    let mut good = true;
    let mut cells = Vec::new();
    for _ in 0..args.repeat.max(1) {
        let progress = Progress::new(args.json, run::squares(&ground, &here, &filter));
        cells = run::run(&ground, &here, &filter, args.abreast, &|cell| progress.done(cell));
        good &= cells.iter().all(|cell| cell.verdict.is_expected());
    }
    if cells.is_empty() {
        return Err("nothing of the matrix is that".into());
    }
    if !args.json {
        let seconds = clock.now().as_nanos() / 1_000_000_000;
        println!("\n{} {seconds} s", matrix::terminal(&peers, &cells));
    }
    if let (Some(path), true) = (&args.write, good) {
        matrix::write(path, &peers, &cells)?;
    }
    if let (Some(path), true) = (&args.check, good) {
        matrix::check(path, &peers, &cells, partial)?;
    }
    Ok(good)
}

/// Tells of each square as it ends: in full where lines are kept, on one line that is overwritten on a terminal, where only
/// what is not as it should be stays.
struct Progress {
    json: bool,
    terminal: bool,
    total: usize,
    done: Mutex<usize>,
}

impl Progress {
    fn new(json: bool, total: usize) -> Self {
        Self { json, terminal: std::io::stderr().is_terminal(), total, done: Mutex::new(0) }
    }

    fn done(&self, cell: &run::Cell<'_>) {
        let mut done = self.done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *done += 1;
        if self.json {
            println!("{}", matrix::json(cell));
        }
        let line = matrix::line(cell);
        let mut err = std::io::stderr().lock();
        // Whoever does not listen misses nothing that the exit code does not say.
        let _ = match (self.terminal, cell.verdict.is_expected()) {
            (true, true) => write!(err, "\r\x1b[K{}/{} {}", done, self.total, cell.place),
            (true, false) => writeln!(err, "\r\x1b[K{line}"),
            (false, _) if self.json => Ok(()),
            (false, _) => writeln!(err, "{line}"),
        };
        if self.terminal && *done == self.total {
            let _ = write!(err, "\r\x1b[K");
        }
    }
}
