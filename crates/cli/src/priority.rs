//! `velodrome study tab-priority --live`: what a benchmark in front scores while a program computes behind it, by the operating system's
//! priority of that program.
//!
//! The folder gets `priority.json`: the machine, and every figure.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::Ordering;

use base::Duration;
use lab::Error;
use lab::stats::median;
use live::priority::{Rival, Slice, Standing, autogroups, measure as slice, own};
use serde::Serialize;

use crate::print;
use crate::race::INTERRUPTED;

/// Slices of the benchmark beside each rival, and the length of one.
const ROUNDS: u32 = 9;
const SLICE: Duration = Duration::from_millis(500);

/// What was published: scores alone, with priorities, without.
const PUBLISHED: [(&str, f64); 3] = [
    ("alone", 1333.0),
    ("a computing tab behind, of lower priority", 1345.0),
    ("a computing tab behind, of the same priority", 762.0),
];

#[derive(Serialize)]
struct Results {
    kernel: String,
    processors: usize,
    /// Programs that wanted a processor, on average over the last minute, when the study began.
    load_average: String,
    /// Whether the kernel makes a group of each session.
    autogroups: Option<bool>,
    /// How the benchmark itself is scheduled: its policy, its nice value, and that of its session's group.
    own: Own,
    published: [(&'static str, f64); 3],
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Own {
    policy: String,
    nice: i32,
    group_nice: Option<i32>,
    /// Whether that is what a program has that somebody starts by hand.
    ordinary: bool,
    #[serde(skip)]
    words: String,
}

impl From<Standing> for Own {
    fn from(own: Standing) -> Self {
        let (ordinary, words) = (own.is_ordinary(), own.to_string());
        Self { policy: own.policy, nice: own.nice, group_nice: own.group_nice, ordinary, words }
    }
}

#[derive(Serialize)]
struct Row {
    rival: String,
    /// Computations a second.
    score: Option<f64>,
    /// Of the score alone.
    of_alone_pct: Option<f64>,
    /// Of the processor time that both had.
    share_pct: Option<f64>,
    /// Why there is none.
    left_out: Option<String>,
}

/// Measures, writes the folder, and says what came of it.
pub fn measure(dir: &Path) -> Result<String, Error> {
    let read = |path: &str| std::fs::read_to_string(path).map(|s| s.trim().to_owned()).unwrap_or_default();
    let load_average = read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned();
    let groups = autogroups();
    let own = own().map_err(|e| Error::Live(format!("how this program is scheduled: {e}")))?;
    let mut slices: Vec<(Rival, Result<Vec<Slice>, String>)> = Rival::ALL
        .into_iter()
        .map(|rival| match groups {
            Some(true) => (rival, Ok(Vec::new())),
            _ if rival.is_far() => (rival, Err("the kernel makes no groups of sessions here".to_owned())),
            _ => (rival, Ok(Vec::new())),
        })
        .collect();
    for _ in 0..ROUNDS {
        for (rival, got) in &mut slices {
            if INTERRUPTED.load(Ordering::Relaxed) {
                break;
            }
            if let Ok(list) = got {
                match slice(*rival, SLICE) {
                    Ok(slice) => list.push(slice),
                    Err(e) => *got = Err(e.to_string()),
                }
            }
        }
    }
    let middle = |got: &Result<Vec<Slice>, String>, figure: fn(&Slice) -> f64| {
        median(&got.as_ref().map(|list| list.iter().map(figure).collect::<Vec<_>>()).unwrap_or_default())
    };
    let alone = middle(&slices[0].1, |s| s.score);
    let round = |value: Option<f64>, decimals| value.map(|v| lab::stats::round(v, decimals));
    let rows = slices.iter().map(|(rival, got)| {
        let score = middle(got, |s| s.score);
        Row {
            rival: rival.to_string(),
            score: round(score, 0),
            of_alone_pct: round(score.zip(alone).map(|(score, alone)| 100.0 * score / alone), 1),
            share_pct: round(middle(got, |s| 100.0 * s.share), 1),
            left_out: got.as_ref().err().cloned(),
        }
    });
    let results = Results {
        kernel: read("/proc/sys/kernel/osrelease"),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        load_average,
        autogroups: groups,
        own: own.into(),
        published: PUBLISHED,
        rows: rows.collect(),
    };
    std::fs::create_dir_all(dir).map_err(|source| Error::Io {
        action: "cannot make",
        path: dir.to_owned(),
        source,
    })?;
    lab::folder::write(dir, "priority.json", &lab::folder::json(&results))?;
    Ok(text(&results))
}

/// What is said where the benchmark has a precedence of its own, or gives one.
const NOT_ORDINARY: &str = "NOTE: these are not the figures of an ordinary session. What the benchmark keeps beside others goes by its own nice value and that of its \
     session's group, and both are 0 where somebody starts a program by hand. `echo 0 > /proc/self/autogroup` in the shell gives the group that.";

fn text(results: &Results) -> String {
    let mut out = String::new();
    let groups = match results.autogroups {
        Some(true) => "on: nice says nothing between sessions",
        Some(false) => "off",
        None => "not there",
    };
    let _ = writeln!(
        out,
        "A benchmark in front, a shell that counts behind, both on one processor; Linux {}, load average {}; groups of sessions (autogroup) are {groups}.\n\
         Medians of {ROUNDS} slices of {} ms each, in turn. The benchmark is {}.",
        results.kernel,
        results.load_average,
        SLICE.as_millis_f64(),
        results.own.words
    );
    if !results.own.ordinary {
        let _ = writeln!(out, "{NOT_ORDINARY}");
    }
    out.push('\n');
    let mut table = print::table(1, &["behind", "score", "of alone, %", "share of both, %", ""]);
    let figure = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
    for row in &results.rows {
        table.add_row(vec![
            row.rival.clone(),
            figure(row.score),
            figure(row.of_alone_pct),
            figure(row.share_pct),
            row.left_out.as_ref().map(|why| format!("left out: {why}")).unwrap_or_default(),
        ]);
    }
    let _ = writeln!(out, "{}\npublished:", print::lines(&table));
    for (what, score) in PUBLISHED {
        let _ = writeln!(out, "  {what}: {score}, {:.0} % of alone", 100.0 * score / PUBLISHED[0].1);
    }
    let _ = writeln!(
        out,
        "\nscore: computations a second, each the same; share: of the processor time that the benchmark and what is behind it had, which other \
         programs do not change\n"
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(group_nice: i32) -> String {
        let own = Standing { policy: "SCHED_OTHER".into(), nice: 0, group_nice: Some(group_nice) };
        text(&Results {
            kernel: "6.18".into(),
            processors: 2,
            load_average: "0.10".into(),
            autogroups: Some(true),
            own: own.into(),
            published: PUBLISHED,
            rows: Vec::new(),
        })
    }

    #[test]
    fn figures_of_a_session_with_precedence_say_so() {
        let plain = said(0);
        assert!(
            plain.contains("The benchmark is SCHED_OTHER, nice 0, in a session whose group has nice 0."),
            "{plain}"
        );
        assert!(!plain.contains("NOTE"));
        assert!(
            said(-15)
                .contains("group has nice -15.\nNOTE: these are not the figures of an ordinary session.")
        );
    }
}
