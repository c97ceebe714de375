//! What people read on a terminal. Colour only where standard output is one, and `NO_COLOR` is obeyed (anstream).

use std::fmt::{Display, Write as _};
use std::io::Write as _;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, ContentArrangement, Table};
use lab::network::PROFILES;
use lab::result::{AssumptionRow, PageRow};
use lab::stats::Estimate;
use lab::summary::{Comparison, NetworkSummary, PagePair, Summary, Unit};

const BOLD: Style = Style::new().bold();
const FASTER: Style = AnsiColor::Green.on_default().bold();
const SLOWER: Style = AnsiColor::Red.on_default().bold();

/// Prints to standard output. Whoever reads it may stop reading (`| head`), which is not an error; anything else that
/// stops it ends the program.
pub fn out(text: &str) {
    match anstream::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            complain(&format!("cannot write to standard output: {e}"));
            std::process::exit(2);
        }
        _ => {}
    }
}

/// Prints to standard error. Nobody may be reading; what matters is told by the exit code.
pub fn err(text: &str) {
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// One line on standard error.
pub fn complain(what: &dyn Display) {
    let what = what.to_string().replace(['\n', '\r'], " ");
    let _ = writeln!(anstream::stderr(), "velodrome: {what}");
}

/// A table without lines: left-aligned text first, then right-aligned figures.
pub fn table(text_columns: usize, header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().copied());
    for column in table.column_iter_mut() {
        column.set_padding((2, 0));
        if column.index >= text_columns {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The table as text, without trailing blanks.
pub fn lines(table: &Table) -> String {
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The summary of a race.
pub fn summary(s: &Summary, dir: &Path, report: Option<&Path>, seconds: f64) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{BOLD}{} page{}, {} run{} each, seed {}: {} loads in {seconds:.1} s{BOLD:#}",
        s.pages,
        plural(s.pages),
        s.runs,
        plural(s.runs),
        s.seed,
        s.loads
    );
    for network in &s.networks {
        write_network(&mut out, network, s.unit);
    }
    write_assumptions(&mut out, &s.assumptions);
    for note in &s.notes {
        let _ = writeln!(out, "\nnote: {note}");
    }
    let _ = writeln!(out, "\nresults: {}", dir.display());
    if let Some(report) = report {
        let _ = writeln!(out, "report:  {}", report.display());
    }
    out
}

fn write_network(out: &mut String, n: &NetworkSummary, unit: Unit) {
    let _ = writeln!(out, "\n{BOLD}{}{BOLD:#}", n.network);
    for line in &n.conditions {
        let _ = writeln!(out, "  {line}");
    }
    let header = [
        "transport",
        "PLT, ms",
        "95 %",
        "first paint, ms",
        "95 %",
        "connections",
        "kB down",
        "kB up",
        "resent",
    ];
    let mut t = table(1, &header);
    for transport in &n.transports {
        let plt = transport.plt_ms;
        let paint = transport.first_paint_ms;
        t.add_row(vec![
            transport.transport.clone(),
            value(plt, 0),
            interval(plt, 0),
            value(paint, 0),
            interval(paint, 0),
            format!("{:.1}", transport.connections),
            format!("{:.0}", transport.bytes_down / 1e3),
            format!("{:.1}", transport.bytes_up / 1e3),
            format!("{:.1}", transport.retransmits),
        ]);
    }
    let of = if unit == Unit::Page { "pages" } else { "runs" };
    let _ = writeln!(out, "\n{}  (medians of {of} with intervals; then means a load)", lines(&t));
    for (i, account) in n.accounts.iter().enumerate() {
        let _ = writeln!(out, "{}  {account}", if i == 0 { "\n" } else { "" });
    }
    for comparison in &n.comparisons {
        write_comparison(out, comparison, of);
    }
}

fn write_comparison(out: &mut String, c: &Comparison, of: &str) {
    let (Some(mean), Some(median)) = (c.mean_speedup_pct, c.median_speedup_pct) else {
        let _ = writeln!(out, "\n{} against {}: no pair of complete loads", c.other, c.first);
        return;
    };
    let (style, word) = if mean.value < 0.0 { (SLOWER, "slower") } else { (FASTER, "faster") };
    let sure = match c.sign_test_p {
        Some(p) if p < 0.001 => format!(" (sign test: p = {p:e})"),
        Some(p) => format!(" (sign test: p = {p})"),
        None => String::new(),
    };
    let _ = writeln!(
        out,
        "\n{} is {style}{:.1} % {word}{style:#} than {} on average\n  \
         speed-up: mean {:.1} % {}, median {:.1} % {}; faster for {} and slower for {} of {} {of}{sure}",
        c.other,
        mean.value.abs(),
        c.first,
        mean.value,
        interval(Some(mean), 1),
        median.value,
        interval(Some(median), 1),
        c.faster,
        c.slower,
        c.pairs
    );
    for (i, why) in c.why.iter().enumerate() {
        let _ = writeln!(out, "{}{why}", if i == 0 { "  " } else { "    · " });
    }
    if c.pairs > 1 {
        write_pairs(out, "gained most", &c.gains, c);
        write_pairs(out, "lost most", &c.losses, c);
    }
    if let Some(published) = &c.published {
        let _ = writeln!(
            out,
            "\n  published: {} % ({}: {}); ours: {:.1} %",
            published.mean_speedup_pct, published.source, published.figure, mean.value
        );
        for differs in &published.differs {
            let _ = writeln!(out, "    · {differs}");
        }
    }
}

fn write_pairs(out: &mut String, what: &str, pairs: &[PagePair], c: &Comparison) {
    if pairs.is_empty() {
        return;
    }
    let mut t = table(1, &[what, &format!("{}, ms", c.first), &format!("{}, ms", c.other), "speed-up, %"]);
    for p in pairs {
        let name = p.run.map_or_else(|| p.page.clone(), |run| format!("run {run}"));
        t.add_row(vec![
            name,
            format!("{:.0}", p.first_ms),
            format!("{:.0}", p.other_ms),
            format!("{:.1}", p.speedup_pct),
        ]);
    }
    let _ = write!(out, "\n{}", lines(&t));
}

fn write_assumptions(out: &mut String, assumptions: &[AssumptionRow]) {
    if assumptions.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{BOLD}assumed, as the recordings do not say{BOLD:#}");
    let widest = assumptions[0].count.to_string().len();
    for a in assumptions {
        let _ = writeln!(out, "  {:>widest$} × {}", a.count, a.detail);
    }
}

/// The networks that have names.
pub fn networks() -> String {
    let header = ["network", "stack", "down, kbit/s", "up, kbit/s", "RTT, ms", "loss, %"];
    let mut t = table(2, &header);
    for p in &PROFILES {
        t.add_row(vec![
            p.name.to_owned(),
            p.stack.to_string(),
            p.down_kbps.to_string(),
            p.up_kbps.to_string(),
            p.rtt_ms.to_string(),
            p.loss_pct.to_string(),
        ]);
    }
    let era = "Stack 2010: TCP constants of Linux 2010, no TLS, servers that answer at once (recordings were replayed).\n\
               Stack today: those of today, TLS 1.3 for https, servers that think as recorded.\n\
               `velodrome race` prints every condition; a run's plan.toml has them all.\n";
    let mut sources: Vec<&str> = PROFILES.iter().map(|p| p.source).collect();
    sources.dedup();
    let mut out = format!("{}\n{era}\n", lines(&t));
    for source in sources {
        let of: Vec<_> = PROFILES.iter().filter(|p| p.source == source).map(|p| p.name).collect();
        let _ = writeln!(out, "{}: {source}", of.join(", "));
    }
    out
}

/// What was read from recordings.
pub fn pages(rows: &[PageRow]) -> String {
    let header = ["page", "url", "hosts", "requests", "kB", "recorded onload, ms", "assumed"];
    let mut t = table(2, &header);
    for row in rows {
        t.add_row(vec![
            row.page.clone(),
            clip(&row.url, 60),
            row.hosts.to_string(),
            row.requests.to_string(),
            format!("{:.0}", row.bytes as f64 / 1e3),
            row.on_load_us.map_or_else(|| "–".to_owned(), |us| (us / 1_000).to_string()),
            row.assumptions.iter().map(|a| u64::from(a.count)).sum::<u64>().to_string(),
        ]);
    }
    let mut out = lines(&t);
    write_assumptions(&mut out, &lab::summary::assumptions(rows));
    out
}

fn clip(s: &str, most: usize) -> String {
    if s.chars().count() <= most {
        return s.to_owned();
    }
    s.chars().take(most - 1).chain(['…']).collect()
}

fn plural(n: u32) -> &'static str {
    if n == 1 { "" } else { "s" }
}

fn value(e: Option<Estimate>, decimals: usize) -> String {
    e.map_or_else(|| "–".to_owned(), |e| format!("{:.decimals$}", e.value))
}

fn interval(e: Option<Estimate>, decimals: usize) -> String {
    match e {
        Some(Estimate { low: Some(low), high: Some(high), .. }) => {
            format!("[{low:.decimals$}, {high:.decimals$}]")
        }
        _ => "[–]".to_owned(),
    }
}

#[cfg(test)]
mod tests;
