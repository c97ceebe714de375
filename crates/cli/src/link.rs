//! `velodrome link`: runs a command behind an emulated link, in networks of its own, without root.
//!
//! The command is at the near end. Commands given by `--far` are at the far end, and so is the way out: to servers of this machine and
//! of the world. The command's standard streams, terminal and exit code are ours; what this program says itself goes to standard
//! error. What is emulated, and what is not, is in docs/emulator.md.
//!
//! * `shape`: flags to a link.
//! * `check`: the self-check at the end.
//! * `study`: `velodrome study link`, which measures the emulator from outside.

mod check;
mod shape;
pub mod study;

use std::ffi::OsString;
use std::path::PathBuf;

use base::{Duration, Instant};
use clap::Args;
use live::Clock;
use live::emulator::{Config, Ends, Link, Log, Uplink};
use live::namespace::{
    Block, Event, Inside, Keeper, Order, Privilege, Report, Signals, may_configure_network,
};
use live::timer::{Lead, Policy};

use crate::{Exit, print};

/// `velodrome link`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct LinkArgs {
    /// The network: a name (see `velodrome networks`), DOWN/UP/RTT/LOSS in kbit/s, kbit/s, ms and % each way, or
    /// trace:DOWNFILE,UPFILE/RTT/LOSS with Mahimahi traces. Without one, the link does only what flags ask for.
    #[arg(value_name = "NETWORK")]
    network: Option<String>,
    /// The command and its arguments (default: a shell).
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    #[command(flatten)]
    shape: shape::ShapeArgs,
    #[command(flatten)]
    run: RunArgs,
}

const AFTER_HELP: &str = "\
Inside, `near`, `far` and `host` are names: the command's own address, the far end's, and one that leads to this machine's loopback \
address. They are also in VELODROME_NEAR, VELODROME_FAR and VELODROME_HOST.

SIGUSR1 has the counters printed. Exit codes: the command's; 128 and the signal's number if it died by one; 127 and 126 if it was not \
found or cannot be run; 125 if there is no link.";

/// How it runs.
#[derive(Args, Debug)]
#[command(next_help_heading = "How it runs")]
struct RunArgs {
    /// Run this at the far end too, by /bin/sh; the command starts once somebody listens there. May be given several times.
    #[arg(long, value_name = "COMMAND")]
    far: Vec<String>,
    /// For how long at most to wait until somebody listens at the far end.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(..=3_600))]
    wait: u32,
    /// Let nothing out of the far end: there is nothing but the two ends.
    #[arg(long)]
    isolated: bool,
    /// Write every packet's fate to this file, one line of comma-separated values each.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// precise, economical, or auto: economical on battery, when packets may be a millisecond late.
    #[arg(long, value_name = "NAME", default_value = "auto")]
    policy: Timing,
    /// For how long to spin at most before a packet is due, if the policy is precise.
    #[arg(long, value_name = "MICROSECONDS", default_value_t = Lead::MOST.as_micros(), value_parser = clap::value_parser!(u64).range(..=10_000))]
    spin: u64,
    /// Print the self-check as JSON.
    #[arg(long)]
    json: bool,
    /// Print no self-check.
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
}

/// A policy, or whichever suits.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Timing {
    Precise,
    Economical,
    Auto,
}

impl Timing {
    /// The policy, and how to say why.
    fn choose(self) -> (Policy, String) {
        match self {
            Timing::Precise => (Policy::Precise, Policy::Precise.to_string()),
            Timing::Economical => (Policy::Economical, Policy::Economical.to_string()),
            Timing::Auto => {
                let (policy, power) = Policy::choose();
                (policy, format!("{policy} ({power})"))
            }
        }
    }
}

/// The variable by which a link learns that it is within another: that one's addresses.
const AROUND: &str = "VELODROME_LINK";

/// This program's own failures, as those of env(1) and timeout(1) are told.
const NO_LINK: u8 = 125;

/// Runs the command; its exit code.
pub fn link(args: &LinkArgs) -> Exit {
    run(args).map_or_else(
        |error| {
            print::complain(&error);
            Exit::Code(NO_LINK)
        },
        Exit::Code,
    )
}

fn run(args: &LinkArgs) -> Result<u8, String> {
    let said = |e: live::namespace::Error| e.to_string();
    let (policy, timing) = args.run.policy.choose();
    let mut config =
        args.shape.config(args.network.as_deref(), policy, Duration::from_micros(args.run.spin))?;
    config.each_packet = args.run.log.is_some();
    // The order matters from here on: a tie to the link around before rights are changed, rights before there are threads, and the
    // ancestor of all commands before there are threads too.
    let around = Around::find(args.run.isolated)?;
    let privilege = Privilege::acquire().map_err(said)?;
    let ends = Ends::new(privilege, around.block()).map_err(said)?;
    let signals = Signals::hold().map_err(|e| format!("cannot hold signals: {e}"))?;
    let inside = inside(args, &around);
    let keeper = Keeper::start(privilege, &inside, ends.near(), ends.far()).map_err(said)?;
    let log = args
        .run
        .log
        .as_deref()
        .map(|file| Log::create(file).map_err(|e| format!("cannot write {}: {e}", file.display())));
    let link = around.join(ends, &config, log.transpose()?).map_err(said)?;
    if !args.run.far.is_empty() {
        keeper.order(Order::Far);
        if let Some(signal) = wait_for_servers(&link, &keeper, &signals, args.run.wait)? {
            return Ok((128 + signal) as u8);
        }
    }
    keeper.order(Order::Near);
    let code = attend(&link, &keeper, &signals)?;
    keeper.wait();
    let (check, log) = link.finish().map_err(|e| format!("the emulator failed: {e}"))?;
    if !args.run.quiet {
        let report = check::Report::new(&check, log.as_ref(), config.seed, timing);
        print::err(&if args.run.json { line(&report) } else { report.text() });
    }
    if let Some(error) = log.and_then(|log| log.error) {
        print::complain(&format!("the log is not complete: {error}"));
    }
    Ok(code)
}

/// One line of JSON.
fn line(report: &impl serde::Serialize) -> String {
    serde_json::to_string(report).map(|json| json + "\n").unwrap_or_default()
}

/// What is around the link.
enum Around {
    /// The machine's network, to which sockets lead.
    Machine,
    /// Nothing is to be reached.
    Nothing,
    /// Another link.
    Link(Uplink),
}

impl Around {
    fn find(isolated: bool) -> Result<Self, String> {
        if isolated {
            return Ok(Around::Nothing);
        }
        let Some(block) = std::env::var(AROUND).ok().and_then(|block| block.parse::<Block>().ok()) else {
            return Ok(Around::Machine);
        };
        if !may_configure_network() {
            return Err("inside another link, this needs the capability NET_ADMIN that programs have there; something has dropped it".to_owned());
        }
        match Uplink::tie(block).map_err(|e| e.to_string())? {
            Some(uplink) => Ok(Around::Link(uplink)),
            None => {
                Err("there are as many links inside that one as can be, or they are three deep".to_owned())
            }
        }
    }

    fn block(&self) -> Block {
        match self {
            Around::Machine | Around::Nothing => Block::WHOLE,
            Around::Link(uplink) => uplink.block(),
        }
    }

    fn join(self, ends: Ends, config: &Config, log: Option<Log>) -> Result<Link, live::namespace::Error> {
        match self {
            Around::Machine => ends.join_outside(config, log),
            Around::Nothing => ends.join(config, log),
            Around::Link(uplink) => ends.join_within(config, log, uplink),
        }
    }
}

/// What ends a line of /etc/hosts that is ours.
const OURS: &str = "# velodrome link";

/// What is to run, and what it is to see.
fn inside(args: &LinkArgs, around: &Around) -> Inside {
    let block = around.block();
    // There is one machine, however many links are around.
    let host = Block::WHOLE.host();
    let names = [("near", block.near()), ("far", block.far()), ("host", host)];
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let mut hosts: String =
        hosts.lines().filter(|line| !line.ends_with(OURS)).map(|line| format!("{line}\n")).collect();
    for (name, address) in names {
        hosts.push_str(&format!("{address} {name} {OURS}\n"));
    }
    let mut files = vec![("/etc/hosts", hosts)];
    if matches!(around, Around::Machine) {
        files.push(("/etc/resolv.conf", resolver(block)));
    }
    let mut command = args.command.clone();
    if command.is_empty() {
        command.push(std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into()));
    }
    Inside {
        command,
        far: args.run.far.clone(),
        files,
        variables: vec![
            ("VELODROME_NEAR", block.near().to_string()),
            ("VELODROME_FAR", block.far().to_string()),
            ("VELODROME_HOST", host.to_string()),
        ],
        near_variable: (AROUND, block.to_string()),
    }
}

/// The machine's resolv.conf(5), with the far end's stand-in for its name servers.
fn resolver(block: Block) -> String {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let others = text.lines().filter(|line| !line.starts_with("nameserver"));
    others.map(|line| format!("{line}\n")).collect::<String>() + &format!("nameserver {}\n", block.dns())
}

/// Waits until a TCP server listens at the far end. None may ever, or only for UDP, and then the command starts after a while. If a
/// signal ends the wait, that.
fn wait_for_servers(
    link: &Link,
    keeper: &Keeper,
    signals: &Signals,
    seconds: u32,
) -> Result<Option<i32>, String> {
    let failed = |e: std::io::Error| format!("cannot wait for the far end: {e}");
    let mut timer = live::timer::Timer::new(Clock::start(), Policy::Economical).map_err(failed)?;
    let listening = || link.far().listening().map_err(|e| e.to_string());
    for n in 1..=u64::from(seconds) * 100 {
        if !listening()?.is_empty() {
            return Ok(None);
        }
        match keeper.report_now() {
            Some(Report::NotRun { why, .. }) => return Err(why),
            Some(Report::FarEnded { index, code }) => {
                return Err(format!("far command {} has ended already, with exit code {code}", index + 1));
            }
            Some(Report::Started | Report::Ended { .. }) | None => {}
        }
        if let Some(signal) = signals.now().map_err(failed)? {
            return Ok(Some(signal));
        }
        timer.wait_until(Instant::ZERO + Duration::from_millis(10) * n).map_err(failed)?;
    }
    if seconds > 0 {
        let what = "nobody listens at the far end";
        print::complain(&format!("{what} after {seconds} s; the command starts all the same"));
    }
    Ok(None)
}

/// Passes signals on, and tells what happens, until the command has ended; its exit code.
fn attend(link: &Link, keeper: &Keeper, signals: &Signals) -> Result<u8, String> {
    loop {
        match signals.wait(keeper).map_err(|e| format!("cannot wait: {e}"))? {
            Event::Asked => {
                if let Ok(check) = link.handle().check().recv() {
                    print::complain(&check::counters(&check));
                }
            }
            Event::Signal(number) => keeper.order(Order::Signal(number)),
            Event::Report(Report::Started) => {}
            Event::Report(Report::FarEnded { index, code }) => {
                print::complain(&format!("far command {} has ended with exit code {code}", index + 1));
            }
            Event::Report(Report::NotRun { why, code }) => {
                print::complain(&why);
                return Ok(code);
            }
            Event::Report(Report::Ended { code }) => return Ok(code),
            Event::Gone => return Err("the command's ancestor was killed, and all with it".to_owned()),
        }
    }
}
