//! Where bodies go, and what is printed of exchanges.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use base::{Duration, Instant};
use live::fetch::{Exchange, Outcome, Request};
use serde_json::json;

use crate::print;

/// Where the bodies go.
#[derive(Debug)]
enum Place {
    Nowhere,
    Stdout,
    File(PathBuf),
    Folder(PathBuf),
}

/// Writes bodies as they come.
#[derive(Debug)]
pub struct Bodies {
    place: Place,
    /// By exchange.
    files: BTreeMap<usize, (PathBuf, File)>,
    /// Names given in the folder.
    names: BTreeSet<String>,
}

impl Bodies {
    /// Decides where bodies go.
    pub fn new(output: Option<&Path>, json: bool, requests: &[Request]) -> Result<Self, String> {
        let alone = requests.len() == 1;
        let place = match output {
            None if alone && !json => Place::Stdout,
            None => Place::Nowhere,
            Some(path) if path == "-" => Place::Stdout,
            Some(path) if alone && !path.is_dir() => Place::File(path.to_owned()),
            Some(path) => {
                std::fs::create_dir_all(path).map_err(|e| format!("--output {}: {e}", path.display()))?;
                Place::Folder(path.to_owned())
            }
        };
        Ok(Self { place, files: BTreeMap::new(), names: BTreeSet::new() })
    }

    /// Writes a part of an exchange's body. Pushes go to folders only.
    pub fn write(&mut self, index: usize, exchange: &Exchange, bytes: &[u8]) -> Result<(), String> {
        let pushed = exchange.pushed_with.is_some();
        match &self.place {
            Place::Nowhere => return Ok(()),
            Place::Stdout | Place::File(_) if pushed => return Ok(()),
            Place::Stdout => {
                return match std::io::stdout().write_all(bytes) {
                    Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                        Err(format!("standard output: {e}"))
                    }
                    _ => Ok(()),
                };
            }
            Place::File(_) | Place::Folder(_) => {}
        }
        let (path, file) = match self.files.entry(index) {
            Entry::Occupied(file) => file.into_mut(),
            Entry::Vacant(vacant) => {
                let path = match &self.place {
                    Place::Folder(folder) => {
                        folder.join(unused(&mut self.names, exchange.request.url.path()))
                    }
                    Place::File(path) => path.clone(),
                    Place::Nowhere | Place::Stdout => unreachable!("they need no file"),
                };
                let file = File::create(&path).map_err(|e| format!("{}: {e}", path.display()))?;
                vacant.insert((path, file))
            }
        };
        file.write_all(bytes).map_err(|e| format!("{}: {e}", path.display()))
    }
}

/// The last part of a URL's path as a file's name, with a number before it if there is one such already.
fn unused(names: &mut BTreeSet<String>, path: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = path.rsplit('/').next().unwrap_or_default().chars().map(safe).take(150).collect();
    let name = if name.trim_matches('.').is_empty() { "index.html".to_owned() } else { name };
    let numbered = (2_u32..).map(|n| format!("{n}-{name}"));
    let name = std::iter::once(name.clone()).chain(numbered).find(|n| !names.contains(n));
    let name = name.expect("numbers do not end");
    names.insert(name.clone());
    name
}

/// A line for each exchange.
pub fn overview(exchanges: &[Exchange]) -> String {
    let mut table = print::table(1, &["", "status", "bytes", "ms"]);
    for exchange in exchanges {
        let total = exchange.timing.complete.map(|at| ms(at.since(exchange.timing.queued)));
        table.add_row([
            name(exchange),
            status(exchange),
            exchange.body_len.to_string(),
            total.unwrap_or_default(),
        ]);
    }
    print::lines(&table)
}

/// A line for each exchange with all its phases in milliseconds.
pub fn timing(exchanges: &[Exchange]) -> String {
    let header = [
        "",
        "status",
        "conn",
        "stream",
        "queued at",
        "dns",
        "connect",
        "tls",
        "blocked",
        "wait",
        "receive",
        "total",
        "bytes",
    ];
    let mut table = print::table(1, &header);
    for exchange in exchanges {
        let t = &exchange.timing;
        let phases = Phases::of(exchange);
        let number = |n: Option<usize>| n.map(|n| n.to_string()).unwrap_or_default();
        let span = |d: Option<Duration>| d.map(ms).unwrap_or_default();
        table.add_row([
            name(exchange),
            status(exchange),
            number(exchange.connection),
            exchange.stream.map(|s| s.to_string()).unwrap_or_default(),
            ms(t.queued.since(Instant::ZERO)),
            span(phases.dns),
            span(phases.connect),
            span(phases.tls),
            span(phases.blocked),
            span(phases.wait),
            span(phases.receive),
            span(t.complete.map(|at| at.since(t.queued))),
            exchange.body_len.to_string(),
        ]);
    }
    format!(
        "milliseconds; 'blocked' is until the request was sent, beyond dns, connect and tls\n{}",
        print::lines(&table)
    )
}

/// How long each phase took, as in a HAR.
struct Phases {
    dns: Option<Duration>,
    connect: Option<Duration>,
    tls: Option<Duration>,
    /// Until it was sent, beyond the phases before.
    blocked: Option<Duration>,
    /// From then to the response's head.
    wait: Option<Duration>,
    /// From then to its end.
    receive: Option<Duration>,
}

impl Phases {
    fn of(exchange: &Exchange) -> Self {
        let t = &exchange.timing;
        let span = |phase: Option<(Instant, Instant)>| phase.map(|(from, to)| to.since(from));
        let (dns, connect, tls) = (span(t.dns), span(t.connect), span(t.tls));
        let before = [dns, connect, tls].into_iter().flatten().fold(Duration::ZERO, |sum, d| sum + d);
        let until_sent = t.sent.map(|at| at.since(t.queued).as_nanos().saturating_sub(before.as_nanos()));
        let began = t.sent.unwrap_or(t.queued);
        Self {
            dns,
            connect,
            tls,
            blocked: until_sent.map(Duration::from_nanos),
            wait: t.head.map(|at| at.since(began)),
            receive: t.head.zip(t.complete).map(|(head, end)| end.since(head)),
        }
    }
}

/// One JSON object a line.
pub fn json(exchanges: &[Exchange]) -> String {
    let mut out = String::new();
    for exchange in exchanges {
        let t = &exchange.timing;
        let phases = Phases::of(exchange);
        let span = |d: Option<Duration>| d.map(|d| d.as_nanos() as f64 / 1e6);
        let fields: Option<Vec<_>> = exchange.response.as_ref().map(|r| {
            let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
            r.fields.iter().map(|f| [text(&f.name), text(&f.value)]).collect()
        });
        let error = match &exchange.outcome {
            Outcome::Failed(why) => Some(why.as_str()),
            Outcome::Cancelled => Some("cancelled"),
            Outcome::Complete | Outcome::Pending => None,
        };
        let row = json!({
            "url": exchange.request.url.as_str(),
            "status": exchange.response.as_ref().map(|r| r.status),
            "error": error,
            "connection": exchange.connection,
            "stream": exchange.stream,
            "priority": exchange.request.priority,
            "pushed_with": exchange.pushed_with,
            "answered_by": exchange.answered_by,
            "attempts": exchange.attempts,
            "head_bytes": exchange.head_len,
            "body_bytes": exchange.body_len,
            "queued_ms": t.queued.as_nanos() as f64 / 1e6,
            "dns_ms": span(phases.dns),
            "connect_ms": span(phases.connect),
            "tls_ms": span(phases.tls),
            "blocked_ms": span(phases.blocked),
            "wait_ms": span(phases.wait),
            "receive_ms": span(phases.receive),
            "total_ms": span(t.complete.map(|at| at.since(t.queued))),
            "fields": fields,
        });
        out += &format!("{row}\n");
    }
    out
}

fn name(exchange: &Exchange) -> String {
    let pushed = if exchange.pushed_with.is_some() { "pushed: " } else { "" };
    format!("{pushed}{}", exchange.request.url)
}

fn status(exchange: &Exchange) -> String {
    match (&exchange.outcome, &exchange.response) {
        (Outcome::Failed(_), _) => "failed".into(),
        (Outcome::Cancelled, _) => "cancelled".into(),
        (_, Some(response)) => response.status.to_string(),
        (_, None) => String::new(),
    }
}

fn ms(span: Duration) -> String {
    format!("{:.1}", span.as_nanos() as f64 / 1e6)
}
