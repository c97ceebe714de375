//! `velodrome study link`: how exact the emulator is on this machine, measured from outside it.
//!
//! The folder gets `link.json`: the machine, and every figure beside its bound.

use std::fmt::Write as _;
use std::path::PathBuf;

use base::{Bitrate, Duration};
use clap::Args;
use lab::Error;
use live::emulator::link::LossConfig;
use live::emulator::study::{Bench, Delays, Lost, Rated};
use live::namespace::{Privilege, Turn};
use live::timer::Lead;
use serde::Serialize;

use super::Timing;
use crate::{Exit, print};

/// `velodrome study link`.
#[derive(Args, Debug)]
pub struct LinkStudyArgs {
    /// precise, economical, or auto.
    #[arg(long, value_name = "NAME", default_value = "precise")]
    policy: Timing,
    /// For how long to spin at most before a packet is due.
    #[arg(long, value_name = "MICROSECONDS", default_value_t = Lead::MOST.as_micros(), value_parser = clap::value_parser!(u64).range(..=10_000))]
    spin: u64,
    /// Seconds for which a rate or a throughput is measured.
    #[arg(long, value_name = "SECONDS", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// The seed of loss.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Where results go.
    #[arg(long, value_name = "DIR", default_value = "runs/study-link")]
    out: PathBuf,
    /// Print the results as JSON, and nothing else.
    #[arg(long)]
    json: bool,
}

/// The bounds that the emulator is to keep.
const IDLE_P99_MS: f64 = 0.2;
const LOADED_P99_MS: f64 = 1.0;
const RATE_PCT: f64 = 1.0;
const THROUGHPUT_GBPS: f64 = 3.0;

#[derive(Serialize)]
struct Results {
    processors: usize,
    kernel: String,
    /// Programs that wanted a processor, on average over the last minute, when the study began: what it shares the machine with.
    load_average: String,
    policy: String,
    spin_us: u64,
    /// How the emulator's thread is scheduled if the policy is precise.
    scheduled: String,
    seed: u64,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    what: String,
    asked: String,
    achieved: String,
    bound: String,
    /// Absent for what is shown without a bound.
    kept: Option<bool>,
    /// The figures behind the text.
    figures: serde_json::Value,
}

/// Measures, prints, and writes the folder.
pub fn study(args: &LinkStudyArgs) -> Result<Exit, Error> {
    let asked = |e: &dyn std::fmt::Display| Error::Asked(e.to_string());
    let (policy, timing) = args.policy.choose();
    let privilege = Privilege::acquire().map_err(|e| asked(&e))?;
    let bench = Bench { privilege, policy, spin: Duration::from_micros(args.spin), seed: args.seed };
    let load = read_trimmed("/proc/loadavg");
    // As the emulator will be: on a thread that is not used for anything else.
    let scheduled = std::thread::spawn(Turn::soonest).join().unwrap_or(Turn::Ordinary);
    let rows = measure(&bench, Duration::from_secs(args.seconds)).map_err(|e| asked(&e))?;
    let results = Results {
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        kernel: read_trimmed("/proc/sys/kernel/osrelease"),
        load_average: load.split(' ').next().unwrap_or_default().to_owned(),
        policy: timing,
        spin_us: args.spin,
        scheduled: scheduled.to_string(),
        seed: args.seed,
        rows,
    };
    let json = lab::folder::json(&results);
    let file = args.out.join("link.json");
    let refused = |source| Error::Io { action: "cannot write", path: file.clone(), source };
    std::fs::create_dir_all(&args.out).and_then(|()| std::fs::write(&file, &json)).map_err(refused)?;
    if args.json {
        print::out(&String::from_utf8_lossy(&json));
    } else {
        print::out(&text(&results));
    }
    Ok(Exit::Well)
}

fn measure(bench: &Bench, span: Duration) -> std::io::Result<Vec<Row>> {
    let ms = Duration::from_millis;
    let mut rows = vec![
        delays("delay, idle: 20 ms", IDLE_P99_MS, bench.delay(ms(20), 500, 100, ms(10))?),
        delays(
            "delay at 100 Mbit/s: 20 ms",
            LOADED_P99_MS,
            bench.delay(ms(20), 25_000, 1_500, Duration::from_micros(120))?,
        ),
    ];
    for kbps in [50, 1_000, 10_000, 100_000, 1_000_000] {
        let asked = Bitrate::from_kbps(kbps).expect("not zero");
        rows.push(rate(bench.rate(asked, span)?));
    }
    let burst = LossConfig::burst(0.02, 5.0).expect("a chain that exists");
    for (name, asked) in [
        ("loss: none", LossConfig::None),
        ("loss: 1 %", LossConfig::Bernoulli { p: 0.01 }),
        ("loss: 5 %", LossConfig::Bernoulli { p: 0.05 }),
        ("loss: 2 % in runs of 5", burst),
    ] {
        rows.push(loss(name, bench.loss(asked, 20_000)?));
    }
    rows.push(throughput(
        "one TCP connection, nothing emulated",
        Some(THROUGHPUT_GBPS),
        bench.throughput(span, false)?,
    ));
    rows.push(throughput("the same, packet by packet", None, bench.throughput(span, true)?));
    Ok(rows)
}

fn delays(what: &str, bound_ms: f64, d: Delays) -> Row {
    let (p50, p99, worst) = (d.median.as_millis_f64(), d.p99.as_millis_f64(), d.worst.as_millis_f64());
    Row {
        what: what.to_owned(),
        asked: format!("{} packets", d.packets),
        achieved: format!("off by {p50:.3} ms (half), {p99:.3} (99 %), {worst:.3} (worst)"),
        bound: format!("99 % within {bound_ms} ms"),
        kept: Some(p99 <= bound_ms),
        figures: serde_json::json!({
            "packets": d.packets, "p50_ms": p50, "p99_ms": p99, "worst_ms": worst,
            "p99_as_read_ms": d.p99_read.as_millis_f64(),
        }),
    }
}

fn rate(r: Rated) -> Row {
    let off_pct = (r.achieved_bps / r.asked_bps - 1.0) * 100.0;
    let enough = r.offered_bps >= r.asked_bps * 1.02;
    let late = r.lateness.p99.as_millis_f64();
    let note = if enough { "" } else { "; the sender was too slow for this to say anything" };
    Row {
        what: "rate".to_owned(),
        asked: format!("{} kbit/s", r.asked_bps / 1e3),
        achieved: format!(
            "{:.2} kbit/s ({off_pct:+.2} %), packets late by {late:.3} ms (99 %){note}",
            r.achieved_bps / 1e3
        ),
        bound: format!("within {RATE_PCT} %"),
        kept: enough.then_some(off_pct.abs() <= RATE_PCT),
        figures: serde_json::json!({
            "asked_bps": r.asked_bps, "achieved_bps": r.achieved_bps, "offered_bps": r.offered_bps,
            "off_pct": off_pct, "late_p99_ms": late,
        }),
    }
}

fn loss(what: &str, l: Lost) -> Row {
    let share = l.lost as f64 / l.sent.max(1) as f64;
    let (low, high) = l.interval;
    Row {
        what: what.to_owned(),
        asked: format!("{} packets", l.sent),
        achieved: format!("{:.3} %", share * 100.0),
        bound: format!("{:.3}–{:.3} % (95 of 100)", low * 100.0, high * 100.0),
        kept: Some((low..=high).contains(&share)),
        figures: serde_json::json!({
            "sent": l.sent, "lost": l.lost, "asked": l.asked, "low": low, "high": high,
        }),
    }
}

fn throughput(what: &str, bound_gbps: Option<f64>, bps: f64) -> Row {
    let gbps = bps / 1e9;
    Row {
        what: what.to_owned(),
        asked: "unlimited".to_owned(),
        achieved: format!("{gbps:.2} Gbit/s"),
        bound: bound_gbps.map_or_else(|| "–".to_owned(), |bound| format!("at least {bound} Gbit/s")),
        kept: bound_gbps.map(|bound| gbps >= bound),
        figures: serde_json::json!({ "bps": bps }),
    }
}

fn read_trimmed(path: &str) -> String {
    std::fs::read_to_string(path).map(|s| s.trim().to_owned()).unwrap_or_default()
}

fn text(results: &Results) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} processors, Linux {}, load average {} at the start; {}, spinning for up to {} µs, scheduled {}\n",
        results.processors,
        results.kernel,
        results.load_average,
        results.policy,
        results.spin_us,
        results.scheduled
    );
    let mut table = print::table(5, &["what", "asked", "achieved", "bound", "kept"]);
    for row in &results.rows {
        let kept = match row.kept {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "–",
        };
        table.add_row(vec![
            row.what.clone(),
            row.asked.clone(),
            row.achieved.clone(),
            row.bound.clone(),
            kept.to_owned(),
        ]);
    }
    out.push_str(&print::lines(&table));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_that_was_too_slow_proves_nothing() {
        let lateness = live::emulator::Lateness {
            median: Duration::ZERO,
            p99: Duration::ZERO,
            max: Duration::ZERO,
            over_1ms_pct: 0.0,
        };
        let rated =
            |achieved_bps, offered_bps| rate(Rated { asked_bps: 1e6, achieved_bps, offered_bps, lateness });
        assert_eq!(rated(1.005e6, 1.1e6).kept, Some(true));
        assert_eq!(rated(0.98e6, 1.1e6).kept, Some(false));
        assert_eq!(rated(0.98e6, 0.98e6).kept, None);
    }

    #[test]
    fn a_loss_outside_its_interval_is_not_kept() {
        let lost = |lost| loss("", Lost { sent: 1_000, lost, asked: 0.01, interval: (0.004, 0.016) });
        assert_eq!((lost(10).kept, lost(17).kept, lost(3).kept), (Some(true), Some(false), Some(false)));
    }
}
