//! What people and programs read of a run: the tables of `docs/interop.md`, the same on a terminal, and JSON lines.
//!
//! What the documentation has is a function of outcomes alone, no timings, so that `--check` can hold a run to it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use base::Duration;
use comfy_table::{Table, presets};
use serde::Serialize;

use crate::contract::{Scenario, version_name};
use crate::peers::{Entry, Listed, Mapping, Pair, Peers, Role, Transport};
use crate::run::{Cell, Outcome, Verdict};

/// What stands before and behind the generated part of a document.
pub const MARKERS: [&str; 2] = ["<!-- matrix: begin -->", "<!-- matrix: end -->"];

/// A table: all rows of one mapping in which the peers play one part.
struct Section<'p> {
    title: &'static str,
    role: Role,
    scenarios: Vec<Scenario>,
    rows: Vec<Row<'p>>,
}

/// The squares of one peer and version, over what goes the same.
struct Row<'p> {
    peer: &'p str,
    version: &'static str,
    transports: Vec<Transport>,
    marks: Vec<String>,
}

impl Row<'_> {
    fn cells(&self) -> Vec<String> {
        let names: Vec<_> = self.transports.iter().map(ToString::to_string).collect();
        let mut cells = vec![self.peer.to_owned(), self.version.to_owned(), names.join(", ")];
        cells.extend(self.marks.iter().cloned());
        cells
    }
}

/// All tables, in order.
fn sections<'p>(peers: &Peers, cells: &[Cell<'p>]) -> Vec<Section<'p>> {
    let all = [
        ("Our client, their server", Mapping::Http, Role::Server),
        ("Their client, our server", Mapping::Http, Role::Client),
        ("Kubernetes' streams: our client, their server", Mapping::Kubernetes, Role::Server),
        ("Kubernetes' streams: their client, our server", Mapping::Kubernetes, Role::Client),
    ];
    let made = all.map(|(title, mapping, role)| {
        let scenarios = peers.scenarios(mapping);
        let rows = rows(peers, cells, mapping, role, &scenarios);
        Section { title, role, scenarios, rows }
    });
    made.into_iter().filter(|section| !section.rows.is_empty()).collect()
}

fn rows<'p>(
    peers: &Peers,
    cells: &[Cell<'p>],
    mapping: Mapping,
    role: Role,
    scenarios: &[Scenario],
) -> Vec<Row<'p>> {
    let mut rows: Vec<Row<'p>> = Vec::new();
    for peer in peers.all.iter().filter(|peer| peer.mapping == mapping) {
        let mut lanes = BTreeMap::new();
        for cell in cells.iter().filter(|c| c.place.peer == peer.name && c.place.role == role) {
            let lane = (version_name(cell.place.version), cell.place.transport);
            let marks =
                lanes.entry(lane).or_insert_with(|| (cell.place.peer, vec![String::new(); scenarios.len()]));
            if let Some(at) = scenarios.iter().position(|s| *s == cell.place.scenario) {
                marks.1[at] = mark(peers, cell);
            }
        }
        for ((version, transport), (peer, marks)) in lanes {
            match rows.last_mut() {
                Some(last) if (last.peer, last.version, &last.marks) == (peer, version, &marks) => {
                    last.transports.push(transport);
                }
                _ => rows.push(Row { peer, version, transports: vec![transport], marks }),
            }
        }
    }
    rows
}

/// A square: its colour, and the number of the note that says why.
fn mark(peers: &Peers, cell: &Cell<'_>) -> String {
    let note = match peers.listed(cell.place) {
        Listed::Nothing => String::new(),
        Listed::Cannot(reason) | Listed::Fault(reason) => {
            let number = notes(peers).iter().position(|note| note.reason == reason);
            number.map_or_else(String::new, |number| format!(" [{}]", number + 1))
        }
    };
    match cell.verdict {
        Verdict::Pass => "✓".into(),
        Verdict::Fault => format!("✗{note}"),
        Verdict::Cannot => format!("–{note}"),
        Verdict::Fail => "FAILED".into(),
        Verdict::Stale => format!("PASSED{note}"),
    }
}

/// An entry of the list, as it is told.
struct Note<'p> {
    whose: String,
    versions: &'p [String],
    transports: &'p [Transport],
    scenarios: &'p [String],
    reason: &'p str,
}

/// All entries, in the order of the file: their numbers do not depend on what was run.
fn notes<'p>(peers: &'p Peers) -> Vec<Note<'p>> {
    let of = |entry: &'p Entry| {
        let Entry { peer, role, versions, transports, scenarios, reason } = entry;
        Note { whose: format!("{peer}, {role}"), versions, transports, scenarios, reason }
    };
    let between = |pair: &'p Pair| {
        let Pair { server, client, versions, transports, scenarios, reason } = pair;
        Note { whose: format!("{client} → {server}"), versions, transports, scenarios, reason }
    };
    let entries = peers.cannot.iter().chain(&peers.faults).map(of);
    entries.chain(peers.pairs.iter().map(between)).collect()
}

/// The rows of the tables, as the documentation has them.
fn markdown_row(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

fn header(section: &Section<'_>) -> Vec<String> {
    let mut names = vec![section.role.to_string(), "version".into(), "over".into()];
    names.extend(section.scenarios.iter().map(ToString::to_string));
    names
}

/// The generated part of the documentation: the tables and the notes.
pub fn markdown(peers: &Peers, cells: &[Cell<'_>]) -> String {
    let mut text = String::new();
    for section in sections(peers, cells) {
        let names = header(&section);
        let rule = vec!["---".to_owned(); names.len()];
        let _ =
            writeln!(text, "\n### {}\n\n{}\n{}", section.title, markdown_row(&names), markdown_row(&rule));
        for row in &section.rows {
            let _ = writeln!(text, "{}", markdown_row(&row.cells()));
        }
    }
    let _ = writeln!(text, "\n{}\n", counts(cells));
    for (number, note) in notes(peers).iter().enumerate() {
        let (versions, scenarios) = (note.versions.join(", "), note.scenarios.join(", "));
        let over = match note.transports {
            [only] => format!(" over {only}"),
            _ => String::new(),
        };
        let reason = note.reason.split_whitespace().collect::<Vec<_>>().join(" ");
        let what = format!("{versions}{over}; {scenarios}");
        let _ = writeln!(text, "{}. **{}** ({what}): {reason}", number + 1, note.whose);
    }
    text
}

/// How many squares went how.
pub fn counts(cells: &[Cell<'_>]) -> String {
    let count = |verdict| cells.iter().filter(|c| c.verdict == verdict).count();
    let all = cells.len();
    let [pass, fault, cannot] = [Verdict::Pass, Verdict::Fault, Verdict::Cannot].map(count);
    let mut text = format!(
        "{all} squares: {pass} as they should be, {fault} faults of peers, {cannot} that a peer has no means for"
    );
    for (verdict, what) in [(Verdict::Fail, "failed"), (Verdict::Stale, "no longer faults")] {
        match count(verdict) {
            0 => {}
            n => {
                let _ = write!(text, ", {n} {what}");
            }
        }
    }
    text + "."
}

/// The same for a terminal.
pub fn terminal(peers: &Peers, cells: &[Cell<'_>]) -> String {
    let mut text = String::new();
    for section in sections(peers, cells) {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(header(&section));
        for row in &section.rows {
            table.add_row(row.cells());
        }
        let _ = writeln!(text, "{}\n{table}\n", section.title);
    }
    text + &counts(cells)
}

/// A square, for programs.
#[derive(Serialize)]
struct Line<'c> {
    peer: &'c str,
    role: String,
    version: &'static str,
    transport: String,
    scenario: &'static str,
    verdict: &'static str,
    detail: &'c str,
    #[serde(skip_serializing_if = "Option::is_none")]
    listed: Option<&'c str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    evidence: &'c [String],
    ms: u64,
}

/// A square as one line of JSON.
pub fn json(cell: &Cell<'_>) -> String {
    let (Outcome::Passed(detail) | Outcome::Failed(detail) | Outcome::Cannot(detail)) = &cell.outcome;
    let line = Line {
        peer: cell.place.peer,
        role: cell.place.role.to_string(),
        version: version_name(cell.place.version),
        transport: cell.place.transport.to_string(),
        scenario: cell.place.scenario.name(),
        verdict: match cell.verdict {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Fault => "fault",
            Verdict::Cannot => "cannot",
            Verdict::Stale => "stale",
        },
        detail,
        listed: cell.listed,
        evidence: &cell.evidence,
        ms: cell.ms,
    };
    serde_json::to_string(&line).unwrap_or_else(|e| unreachable!("strings and numbers: {e}"))
}

/// One square in a line, with the evidence below it if it is not as it has to be.
pub fn line(cell: &Cell<'_>) -> String {
    let (Outcome::Passed(detail) | Outcome::Failed(detail) | Outcome::Cannot(detail)) = &cell.outcome;
    let word = match cell.verdict {
        Verdict::Pass => "ok    ",
        Verdict::Fault => "fault ",
        Verdict::Cannot => "cannot",
        Verdict::Fail => "FAILED",
        Verdict::Stale => "STALE ",
    };
    let seconds = Duration::from_millis(cell.ms).as_nanos() as f64 / 1e9;
    let mut text = format!("{word} {}: {detail} ({seconds:.1} s)", cell.place);
    if cell.verdict == Verdict::Stale {
        let reason = cell.listed.unwrap_or_default();
        let _ = write!(text, "\n       listed in peers.toml, and no longer so: {reason}");
    }
    if cell.verdict == Verdict::Fail {
        for evidence in &cell.evidence {
            let _ = write!(text, "\n       {evidence}");
        }
    }
    text
}

/// A document with its generated part replaced.
///
/// # Errors
/// If it cannot be read or has no markers.
fn replaced(path: &Path, part: &str) -> Result<(String, String), String> {
    let old = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let [begin, end] = MARKERS;
    let places = old.find(begin).map(|at| at + begin.len()).zip(old.find(end));
    let Some((from, to)) = places.filter(|(from, to)| from <= to) else {
        return Err(format!("{}: no lines {begin} and {end}", path.display()));
    };
    let new = format!("{}\n{}\n{}", &old[..from], part.trim(), &old[to..]);
    Ok((old, new))
}

/// Puts the tables into a document.
///
/// # Errors
/// If it cannot be read or written, or has no markers.
pub fn write(path: &Path, peers: &Peers, cells: &[Cell<'_>]) -> Result<(), String> {
    let (_, new) = replaced(path, &markdown(peers, cells))?;
    std::fs::write(path, new).map_err(|e| format!("{}: {e}", path.display()))
}

/// Compares a document with the run. If not all peers were there (`partial`), only the rows that were run are compared.
///
/// # Errors
/// With the lines that differ.
pub fn check(path: &Path, peers: &Peers, cells: &[Cell<'_>], partial: bool) -> Result<(), String> {
    let (old, new) = replaced(path, &markdown(peers, cells))?;
    let is_there = |line: &str| old.lines().any(|other| other == line);
    let counted = counts(cells);
    let relevant = |line: &&str| !partial || *line != counted;
    let missing: Vec<_> = new.lines().filter(relevant).filter(|line| !is_there(line)).collect();
    if !partial && old != new || !missing.is_empty() {
        let remedy = "write it anew with `make interop-docs`";
        return Err(format!("{} is not what was found: {remedy}\n{}", path.display(), missing.join("\n")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::VERSIONS;
    use crate::peers::Place;

    fn list() -> Peers {
        Peers::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("peers.toml")).unwrap()
    }

    /// Every square of node-spdy's as a client, which all pass but for one.
    fn cells(peers: &Peers, odd: Transport) -> Vec<Cell<'_>> {
        let mut cells = Vec::new();
        for version in VERSIONS {
            for transport in [Transport::Tcp, Transport::Tls] {
                for scenario in peers.scenarios(Mapping::Http) {
                    let place =
                        Place { peer: &peers.all[0].name, role: Role::Client, version, transport, scenario };
                    let fault = (transport, scenario) == (odd, Scenario::Push);
                    let verdict = if fault { Verdict::Fault } else { Verdict::Pass };
                    let outcome = Outcome::Passed(String::new());
                    cells.push(Cell { place, outcome, verdict, listed: None, evidence: Vec::new(), ms: 1 });
                }
            }
        }
        cells
    }

    #[test]
    fn transports_share_a_row_if_they_go_the_same() {
        let peers = list();
        let mut cells = cells(&peers, Transport::Tls);
        let rows = |cells: &[Cell<'_>]| markdown(&peers, cells).matches("| node-spdy |").count();
        assert_eq!(rows(&cells), 6);
        cells.iter_mut().for_each(|cell| cell.verdict = Verdict::Pass);
        assert_eq!(rows(&cells), 3);
        assert!(markdown(&peers, &cells).contains("48 squares: 48 as they should be, 0 faults"));
    }

    #[test]
    fn a_document_is_held_to_the_run_and_the_run_to_the_document() {
        let peers = list();
        let path = std::env::temp_dir().join(format!("velodrome-matrix-{}.md", std::process::id()));
        let [begin, end] = MARKERS;
        std::fs::write(&path, format!("before\n{begin}\n{end}\nbehind\n")).unwrap();
        let (written, other) = (cells(&peers, Transport::Tls), cells(&peers, Transport::Tcp));
        write(&path, &peers, &written).unwrap();
        let results = [
            check(&path, &peers, &written, false),
            check(&path, &peers, &written[..16], true),
            check(&path, &peers, &written[..16], false),
            check(&path, &peers, &other, true),
        ];
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(text.starts_with("before\n") && text.ends_with("\nbehind\n"), "{text}");
        assert_eq!(results.map(|r| r.is_ok()), [true, true, false, false]);
    }
}
