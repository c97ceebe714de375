//! `velodrome study timers`: a thousand firings of ours, of the operating system's sleep and of an async runtime's timer, for short
//! and long periods, on an idle machine and on one that computes.
//!
//! The folder gets `timers.json` (the machine, the figures, the published ones) and `intervals.svg`.

mod plot;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use base::Duration;
use clap::Args;
use lab::Error;
use live::timer::Policy;
use live::timer::study::{Firings, Load, Source, fire};
use serde::Serialize;

use crate::{Exit, print};

/// `velodrome study timers`.
#[derive(Args, Debug)]
pub struct TimersArgs {
    /// Firings of each timer, for each period.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    firings: u32,
    /// Periods in milliseconds.
    #[arg(long, value_name = "MS", value_delimiter = ',', default_value = "0.25,1,3.67,15", value_parser = period)]
    periods: Vec<f64>,
    /// Measure on an idle machine only.
    #[arg(long)]
    idle_only: bool,
    /// Where results go.
    #[arg(long, value_name = "DIR", default_value = "runs/study-timers")]
    out: PathBuf,
    /// Print the results as JSON, and nothing else.
    #[arg(long)]
    json: bool,
}

fn period(s: &str) -> Result<f64, String> {
    let within = s.parse().ok().filter(|ms| (0.01..=10_000.0).contains(ms));
    within.ok_or_else(|| "not within 0.01–10000 milliseconds".to_owned())
}

/// What the claim reports; see [`PUBLISHED`].
#[derive(Serialize)]
struct Published {
    what: &'static str,
    figure: &'static str,
}

/// What its author wrote of the timers of his day.
const PUBLISHED: [Published; 3] = [
    Published { what: "operating systems' timers", figure: "each firing ≈ 15 ms after the one before" },
    Published { what: "browsers' timers", figure: "10 ms at least; in Chrome 1 ms, later 4 ms" },
    Published {
        what: "a 3.67 ms timer worth the name",
        figure: "fires every 3.67 ms, over any span of time",
    },
];

#[derive(Serialize)]
struct Results {
    firings: u32,
    processors: usize,
    kernel: String,
    power: String,
    /// What [`Policy::choose`] takes here.
    policy: String,
    published: [Published; 3],
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    timer: String,
    period_ms: f64,
    loaded: bool,
    mean_ms: f64,
    deviation_ms: f64,
    worst_ms: f64,
    drift_ms: f64,
    cpu_pct: f64,
}

/// One timer's firings under one load.
struct Measured {
    source: Source,
    loaded: bool,
    firings: Firings,
}

/// Measures, prints, and writes the folder.
pub fn study(args: &TimersArgs) -> Result<Exit, Error> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let loads: &[bool] = if args.idle_only { &[false] } else { &[false, true] };
    let refused = |e: std::io::Error| Error::Asked(format!("a timer does not run: {e}"));
    let mut measured = Vec::new();
    for &loaded in loads {
        let _load = loaded.then(|| Load::start(processors)).transpose().map_err(refused)?;
        for &ms in &args.periods {
            for &source in Source::ALL {
                let period = Duration::from_millis_f64(ms);
                let firings = fire(source, period, args.firings as usize).map_err(refused)?;
                measured.push(Measured { source, loaded, firings });
            }
        }
    }
    let (policy, power) = Policy::choose();
    let results = Results {
        firings: args.firings,
        processors,
        kernel: read_trimmed("/proc/sys/kernel/osrelease"),
        power: power.to_string(),
        policy: policy.to_string(),
        published: PUBLISHED,
        rows: measured.iter().filter_map(row).collect(),
    };
    let json = lab::folder::json(&results);
    let svg = args.out.join("intervals.svg");
    write(&args.out, &args.out.join("timers.json"), &json)?;
    write(&args.out, &svg, plot::intervals(&measured).as_bytes())?;
    if args.json {
        print::out(&String::from_utf8_lossy(&json));
    } else {
        print::out(&text(&results, &svg));
    }
    Ok(Exit::Well)
}

fn row(m: &Measured) -> Option<Row> {
    let f = m.firings.figures()?;
    Some(Row {
        timer: m.source.to_string(),
        period_ms: m.firings.period.as_millis_f64(),
        loaded: m.loaded,
        mean_ms: f.mean_ms,
        deviation_ms: f.deviation_ms,
        worst_ms: f.worst_ms,
        drift_ms: f.drift_ms,
        cpu_pct: f.cpu_pct,
    })
}

fn read_trimmed(path: &str) -> String {
    std::fs::read_to_string(path).map(|s| s.trim().to_owned()).unwrap_or_default()
}

fn write(dir: &Path, file: &Path, bytes: &[u8]) -> Result<(), Error> {
    let refused = |source| Error::Io { action: "cannot write", path: file.to_owned(), source };
    std::fs::create_dir_all(dir).and_then(|()| std::fs::write(file, bytes)).map_err(refused)
}

fn text(results: &Results, svg: &Path) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} firings of each timer on {} processors, Linux {}; {}: the policy chosen is {}",
        results.firings, results.processors, results.kernel, results.power, results.policy
    );
    for loaded in [false, true] {
        let rows: Vec<_> = results.rows.iter().filter(|r| r.loaded == loaded).collect();
        if rows.is_empty() {
            continue;
        }
        let load = if loaded { "under load, one computing thread a processor" } else { "idle" };
        let _ = writeln!(out, "\n{load}");
        let header = ["timer", "period, ms", "mean", "deviation", "worst", "drift", "CPU, %"];
        let mut table = print::table(1, &header);
        let mut last = 0.0;
        for r in rows {
            if last != 0.0 && r.period_ms != last {
                table.add_row([""; 7]);
            }
            last = r.period_ms;
            table.add_row(vec![
                r.timer.clone(),
                format!("{}", r.period_ms),
                format!("{:.4}", r.mean_ms),
                format!("{:.4}", r.deviation_ms),
                format!("{:.3}", r.worst_ms),
                format!("{:+.3}", r.drift_ms),
                format!("{:.1}", r.cpu_pct),
            ]);
        }
        let _ = writeln!(out, "{}", print::lines(&table));
    }
    out.push_str(
        "mean, deviation, worst: of the intervals, ms; drift: of the last firing, ms\n\npublished\n",
    );
    for p in &results.published {
        let _ = writeln!(out, "  {}: {}", p.what, p.figure);
    }
    let _ = writeln!(out, "\npicture: {}", svg.display());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Instant;

    fn measured(loaded: bool) -> Measured {
        let at = (1..=3).map(|n| Instant::from_nanos(n * 1_100_000)).collect();
        let period = Duration::from_millis(1);
        let firings = Firings { period, start: Instant::ZERO, at, cpu: Duration::ZERO };
        Measured { source: Source::OsSleep, loaded, firings }
    }

    #[test]
    fn a_row_carries_the_figures_of_its_firings() {
        let row = row(&measured(true)).unwrap();
        assert_eq!((row.timer.as_str(), row.period_ms, row.loaded), ("os-sleep", 1.0, true));
        assert!((row.drift_ms - 0.3).abs() < 1e-9 && (row.mean_ms - 1.1).abs() < 1e-9);
    }

    #[test]
    fn the_picture_has_a_point_for_every_interval_and_needs_nothing_from_outside() {
        let svg = plot::intervals(&[measured(false), measured(true)]);
        assert_eq!(svg.matches("h0").count(), 6, "{svg}");
        assert!(!svg.replace("http://www.w3.org/2000/svg", "").contains("http"));
    }
}
