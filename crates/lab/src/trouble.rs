//! What loads could not have at the first try, or not at all: a line a load in `troubles.jsonl`, and what they come to.
//!
//! Written where a plan breaks things, or says how a browser tries again. Every resource that is missing is in it, with what was
//! tried and what happened; so is what came in the end all the same.

use std::collections::BTreeMap;
use std::path::Path;

use browser::End;
use page::Page;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::folder;
use crate::result::{Key, rows};

/// The troubles of one load.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TroublesRow {
    /// Which load.
    #[serde(flatten)]
    pub key: Key,
    /// Whether the page can be shown as it should be: no document at the navigation's end, style sheet or script that the parser waits
    /// for is missing.
    pub shown: bool,
    /// Resources that were not had at the first try, or not at all, in the page's order.
    pub troubles: Vec<TroubleRow>,
    /// Requests that reached their servers more often than the page makes them. Empty in the live world, where nobody knows.
    pub repeated: Vec<RepeatedRow>,
}

/// One resource of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TroubleRow {
    /// The resource's index in its page.
    pub index: u32,
    /// Its kind, as in `requests.jsonl`.
    pub kind: String,
    /// Host, and port if it is not the scheme's own.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// Whether the page cannot be shown as it should be without it.
    pub blocks: bool,
    /// `whole`, `failed`, `unfinished` or `never asked`.
    pub end: String,
    /// Why it failed for good.
    pub reason: Option<String>,
    /// Bytes of its body that had come when the load was given up.
    pub body_bytes: Option<u64>,
    /// How often it was sent.
    pub attempts: u32,
    /// What happened, in order.
    pub failures: Vec<FailureRow>,
}

/// One thing that happened to it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FailureRow {
    /// When.
    pub at_us: u64,
    /// On which connection, if it had been sent.
    pub connection: Option<u32>,
    /// What.
    pub what: String,
}

/// A request that reached its server too often.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RepeatedRow {
    /// The resource's index in its page.
    pub index: u32,
    /// Its method.
    pub method: String,
    /// How many times too often.
    pub times: u32,
}

/// What the troubles of one transport on one network come to.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Troubles {
    /// Loads that lack something.
    pub incomplete: u64,
    /// Of those, loads whose page cannot be shown as it should be.
    pub broken: u64,
    /// Resources that came in the end though something had happened to them, over all loads.
    pub recovered: u64,
    /// Requests whose method is not idempotent that reached their servers too often, over all loads.
    pub doubled: u64,
    /// What is missing most often, the most first, up to [`LISTED`].
    pub missing: Vec<Missing>,
    /// How many other resources are missing.
    pub others: u64,
}

/// A resource that loads lack.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Missing {
    /// Its page.
    pub page: String,
    /// Host, and port if it is not the scheme's own.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// Its kind.
    pub kind: String,
    /// Whether the page cannot be shown as it should be without it.
    pub blocks: bool,
    /// Loads that lack it.
    pub loads: u64,
    /// How often it was sent, in the first of them.
    pub attempts: u32,
    /// What happened to it, in the first of them; one after the other.
    pub what: Vec<String>,
}

/// The most resources that a summary lists, a transport and network.
pub const LISTED: usize = 10;

/// The row of a load.
pub(crate) fn row(key: &Key, page: &Page, load: &load::Load) -> TroublesRow {
    let troubles: Vec<_> = load.troubles.iter().map(trouble).collect();
    let repeated = load.repeated.iter().map(|(id, times)| RepeatedRow {
        index: *id,
        method: String::from_utf8_lossy(&page.resources[*id as usize].method).into_owned(),
        times: *times,
    });
    TroublesRow {
        key: key.clone(),
        shown: !load.troubles.iter().any(|t| t.blocks && t.is_missing()),
        troubles,
        repeated: repeated.collect(),
    }
}

fn trouble(t: &browser::Trouble) -> TroubleRow {
    let (end, reason, body_bytes) = match &t.end {
        End::Whole => ("whole", None, None),
        End::Failed(why) => ("failed", Some(why.clone()), None),
        End::Unfinished(bytes) => ("unfinished", None, Some(*bytes)),
        End::NeverAsked => ("never asked", None, None),
    };
    let failure = |f: &client::Failure| FailureRow {
        at_us: f.at.as_micros(),
        connection: f.connection,
        what: f.error.to_string(),
    };
    TroubleRow {
        index: t.resource,
        kind: t.kind.name().to_owned(),
        host: t.host.clone(),
        path: t.path.clone(),
        blocks: t.blocks,
        end: end.to_owned(),
        reason,
        body_bytes,
        attempts: t.attempts,
        failures: t.failures.iter().map(failure).collect(),
    }
}

impl TroubleRow {
    fn is_missing(&self) -> bool {
        self.end != "whole"
    }

    /// What happened, in words; what only ended says how.
    fn what(&self) -> Vec<String> {
        let mut out: Vec<String> = self.failures.iter().map(|f| f.what.clone()).collect();
        match (&self.reason, self.body_bytes) {
            (Some(reason), _) if out.last() != Some(reason) => out.push(reason.clone()),
            (None, Some(0)) => out.push("nothing had come when the load was given up".to_owned()),
            (None, Some(bytes)) => out.push(format!("{bytes} bytes had come when the load was given up")),
            (None, None) => out.push("never asked for: what leads to it is missing".to_owned()),
            _ => {}
        }
        out
    }
}

/// Methods that may be applied twice (RFC 9110 §9.2.2).
const IDEMPOTENT: [&str; 6] = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];

impl Troubles {
    /// What the loads with these rows come to.
    pub(crate) fn of<'a>(rows: impl Iterator<Item = &'a TroublesRow>) -> Self {
        let mut out = Self::default();
        let mut missing: BTreeMap<(String, u32), Missing> = BTreeMap::new();
        for row in rows {
            out.incomplete += u64::from(row.troubles.iter().any(TroubleRow::is_missing));
            out.broken += u64::from(!row.shown);
            out.recovered += row.troubles.iter().filter(|t| !t.is_missing()).count() as u64;
            let unsafe_ = row.repeated.iter().filter(|r| !IDEMPOTENT.contains(&r.method.as_str()));
            out.doubled += unsafe_.map(|r| u64::from(r.times)).sum::<u64>();
            for t in row.troubles.iter().filter(|t| t.is_missing()) {
                let first = || Missing {
                    page: row.key.page.clone(),
                    host: t.host.clone(),
                    path: t.path.clone(),
                    kind: t.kind.clone(),
                    blocks: t.blocks,
                    loads: 0,
                    attempts: t.attempts,
                    what: t.what(),
                };
                missing.entry((row.key.page.clone(), t.index)).or_insert_with(first).loads += 1;
            }
        }
        let mut all: Vec<Missing> = missing.into_values().collect();
        all.sort_by_key(|m| (std::cmp::Reverse(m.loads), !m.blocks)); // stable: then by page and index
        out.others = all.len().saturating_sub(LISTED) as u64;
        all.truncate(LISTED);
        out.missing = all;
        out
    }

    /// The same in sentences: one for all, and one a resource.
    pub(crate) fn say(&self, of: &str) -> Vec<String> {
        if *self == Self::default() {
            return Vec::new();
        }
        let lack = match self.incomplete {
            0 => "every load is whole".to_owned(),
            n => format!(
                "{} something, {} of them what the page cannot be shown without",
                if n == 1 { "1 load lacks".to_owned() } else { format!("{n} loads lack") },
                self.broken
            ),
        };
        let mut out = vec![format!(
            "{of}: {lack}; {} resources came in the end after something had happened to them; {} requests that are not \
             idempotent were doubled",
            self.recovered, self.doubled
        )];
        for m in &self.missing {
            let blocks = if m.blocks { ", which the page cannot be shown without" } else { "" };
            out.push(format!(
                "{of}: missing in {} of {}: {}{} ({}{blocks}), {}: {}",
                if m.loads == 1 { "1 load".to_owned() } else { format!("{} loads", m.loads) },
                m.page,
                m.host,
                m.path,
                m.kind,
                match m.attempts {
                    0 => "never sent".to_owned(),
                    1 => "sent once".to_owned(),
                    n => format!("sent {n} times"),
                },
                m.what.join("; then ")
            ));
        }
        if self.others > 0 {
            out.push(format!("{of}: {} more resources are missing; troubles.jsonl has them", self.others));
        }
        out
    }
}

/// The rows of a run folder, if it has any.
pub(crate) fn read(dir: &Path) -> Result<Vec<TroublesRow>, Error> {
    let path = dir.join(folder::TROUBLES);
    if path.exists() { rows(&path)?.collect() } else { Ok(Vec::new()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(run: u32, troubles: &[(u32, &str, bool)]) -> TroublesRow {
        let key = Key { page: "p".into(), network: "n".into(), transport: "http1".into(), run };
        let trouble = |(index, end, blocks): &(u32, &str, bool)| TroubleRow {
            index: *index,
            kind: "style".into(),
            host: "a.example".into(),
            path: format!("/{index}.css"),
            blocks: *blocks,
            end: (*end).into(),
            reason: (*end == "failed").then(|| "not connected: refused".into()),
            body_bytes: (*end == "unfinished").then_some(7),
            attempts: 2,
            failures: vec![FailureRow { at_us: 1, connection: None, what: "reset".into() }],
        };
        let troubles: Vec<_> = troubles.iter().map(trouble).collect();
        let shown = !troubles.iter().any(|t| t.blocks && t.is_missing());
        TroublesRow { key, shown, troubles, repeated: Vec::new() }
    }

    #[test]
    fn what_is_missing_is_said_by_how_often_with_what_was_tried_and_what_happened() {
        let loads = [
            row(0, &[(1, "failed", true), (2, "whole", true)]),
            row(1, &[(1, "failed", true), (3, "unfinished", false)]),
            row(2, &[(4, "whole", false)]),
        ];
        let all = Troubles::of(loads.iter());
        assert_eq!((all.incomplete, all.broken, all.recovered, all.doubled), (2, 2, 2, 0));
        let said = all.say("seed over http1");
        assert!(said[0].starts_with("seed over http1: 2 loads lack something, 2 of them"), "{}", said[0]);
        assert_eq!(
            said[1],
            "seed over http1: missing in 2 loads of p: a.example/1.css (style, which the page cannot be shown without), \
             sent 2 times: reset; then not connected: refused"
        );
        assert!(
            said[2].ends_with("sent 2 times: reset; then 7 bytes had come when the load was given up"),
            "{}",
            said[2]
        );
        assert!(Troubles::of(loads[..0].iter()).say("x").is_empty());
    }

    #[test]
    fn only_what_is_not_idempotent_counts_as_doubled_and_long_lists_are_cut() {
        let mut load = row(0, &(0..13).map(|n| (n, "failed", false)).collect::<Vec<_>>());
        load.repeated = ["GET", "POST", "PUT"]
            .map(|method| RepeatedRow { index: 0, method: method.into(), times: 2 })
            .into();
        let all = Troubles::of([load].iter());
        assert_eq!((all.doubled, all.missing.len(), all.others, all.broken), (2, LISTED, 3, 0));
    }
}
