//! A client's memory on the disk: one JSON file.
//!
//! It is read as bytes from outside are: bounded in length and number, and refused with a reason that names the field. It is replaced
//! as a whole or not at all: written beside its place, and then moved there.
//!
//! An estimate is written as the shortest decimal that reads back as the same number, and as text, since JSON's readers differ
//! in the last bit. So a client that is kept and taken up again learns what it would have learned without a break.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use client::{Class, HostState, LearnedRow, SuccessorRow};
use load::{HostStanding, Memory};
use serde::{Deserialize, Serialize};

use super::{
    Colour, HOSTS_MAX, HostRecord, PAGES_MAX, PageRecord, STANDINGS_MAX, State, Tally, VISITS_MAX,
    VisitRecord,
};
use crate::error::Error;

/// The version of the format.
pub const FORMAT: u32 = 2;

/// The version before it, which knew nothing of pipelining. It is read, and written where there is nothing else to say: a plan knows the
/// memory that it goes by by its bytes.
const FORMAT_WITHOUT_PIPELINING: u32 = 1;

/// The longest file that is read, in bytes: four times what the bounds below can fill.
pub const LEN_MAX: u64 = 32 << 20;

/// The longest origin: a scheme, a name of RFC 1035 and a port.
const ORIGIN_MAX: usize = 8 + 255 + 6;

/// The longest URL of what an authority is asked.
const URL_MAX: usize = 1_000;

/// Rows of either predictor: a hundred pages of ten, and of fifty hosts, are what they keep.
const ROWS_MAX: usize = 5_000;

/// The largest count; so that sums have room.
const COUNT_MAX: u64 = 1_000_000_000;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    format: u32,
    rounds: u32,
    learned: Vec<Learned>,
    successor: Vec<Successor>,
    /// What authorities have said of certificates, by its URL.
    checked: BTreeSet<String>,
    /// What pipelining has learned of hosts; format 1 has no such field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pipelining: Option<Vec<Pipelined>>,
    pages: Vec<Page>,
}

/// What tells the version of a file, whatever else is in it.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Learned {
    page: String,
    page_loads: u32,
    host: String,
    navigations: u32,
    preconnects: u32,
    preresolves: u32,
    expected: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Successor {
    page: String,
    host: String,
    hits: u32,
    misses: u32,
    misses_in_a_row: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pipelined {
    host: String,
    standing: Colour,
    /// It has answered well from the third place or deeper.
    proven: bool,
    penalty: u32,
    /// Of the classes, in the order of [`Class::ALL`].
    class_penalties: [u32; Class::ALL.len()],
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    page: String,
    visits: u32,
    hosts: Vec<Host>,
    /// PLT in µs, carried, made, used.
    last: Vec<[u64; 4]>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Host {
    host: String,
    resources: u64,
    carried: u64,
    made: u64,
    used: u64,
}

/// Reads a state; `None` if there is no such file.
pub fn read(path: &Path) -> Result<Option<State>, Error> {
    let file = match File::open(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|e| Error::io("cannot read", path, e))?,
    };
    let mut text = Vec::new();
    file.take(LEN_MAX + 1).read_to_end(&mut text).map_err(|e| Error::io("cannot read", path, e))?;
    parse(&text).map(Some).map_err(|what| Error::Asked(format!("{}: {what}", path.display())))
}

/// Reads what [`emit`] wrote; the error says what is wrong, in one line.
pub fn parse(text: &[u8]) -> Result<State, String> {
    if text.len() as u64 > LEN_MAX {
        return Err(format!("is longer than {LEN_MAX} bytes; no client's memory is"));
    }
    let no = |e: serde_json::Error| format!("is no client's memory: {}", e.to_string().replace('\n', " "));
    let Version { format } = serde_json::from_slice(text).map_err(no)?;
    if ![FORMAT_WITHOUT_PIPELINING, FORMAT].contains(&format) {
        return Err(format!(
            "format {format} is not {FORMAT_WITHOUT_PIPELINING} or {FORMAT}, those that this version reads; name a file that is not there, \
             to learn anew"
        ));
    }
    let whole: Whole = serde_json::from_slice(text).map_err(no)?;
    if whole.pipelining.is_some() != (format == FORMAT) {
        return Err(format!("format {format} and its field 'pipelining' contradict each other"));
    }
    whole.check()?;
    let learned = whole.learned.into_iter().map(Learned::row).collect::<Result<_, _>>()?;
    let successor = whole.successor.into_iter().map(Successor::row).collect();
    Ok(State {
        memory: Memory {
            learned,
            successor,
            checked: whole.checked,
            pipelining: whole.pipelining.into_iter().flatten().map(Pipelined::standing).collect(),
            ..Memory::default()
        },
        rounds: whole.rounds,
        pages: whole.pages.into_iter().map(Page::record).collect(),
    })
}

/// The state as a file has it: equal states give equal bytes.
pub fn emit(state: &State) -> Vec<u8> {
    let learned = state.memory.learned.iter().map(|r| Learned {
        page: r.page.clone(),
        page_loads: r.page_loads,
        host: r.host.clone(),
        navigations: r.navigations,
        preconnects: r.preconnects,
        preresolves: r.preresolves,
        expected: r.expected.to_string(),
    });
    let successor = state.memory.successor.iter().map(|r| Successor {
        page: r.page.clone(),
        host: r.host.clone(),
        hits: r.hits,
        misses: r.misses,
        misses_in_a_row: r.misses_in_a_row,
    });
    let host = |h: &HostRecord| {
        let Tally { carried, made, used } = h.tally;
        Host { host: h.host.clone(), resources: h.resources, carried, made, used }
    };
    let visit = |v: &VisitRecord| [v.plt_us, v.tally.carried, v.tally.made, v.tally.used];
    let pages = state.pages.iter().map(|p| Page {
        page: p.page.clone(),
        visits: p.visits,
        hosts: p.hosts.iter().map(host).collect(),
        last: p.last.iter().map(visit).collect(),
    });
    let pipelining: Vec<_> = state.memory.pipelining.iter().map(Pipelined::new).collect();
    crate::folder::json(&Whole {
        format: if pipelining.is_empty() { FORMAT_WITHOUT_PIPELINING } else { FORMAT },
        rounds: state.rounds,
        learned: learned.collect(),
        successor: successor.collect(),
        checked: state.memory.checked.clone(),
        pipelining: Some(pipelining).filter(|hosts| !hosts.is_empty()),
        pages: pages.collect(),
    })
}

/// Writes a state, as a whole or not at all.
pub fn write(path: &Path, state: &State) -> Result<(), Error> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let written = File::create(&part)
        .and_then(|mut file| file.write_all(&emit(state)).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&part, path));
    written.map_err(|e| Error::io("cannot write", path, e))
}

impl Whole {
    fn check(&self) -> Result<(), String> {
        bounded("learned", self.learned.len(), ROWS_MAX)?;
        bounded("successor", self.successor.len(), ROWS_MAX)?;
        bounded("pages", self.pages.len(), PAGES_MAX)?;
        bounded("checked", self.checked.len(), ROWS_MAX)?;
        let pipelined = || self.pipelining.iter().flatten();
        bounded("pipelining", pipelined().count(), STANDINGS_MAX)?;
        unique("pipelining", pipelined().map(|p| (&p.host, &p.host)))?;
        for p in pipelined() {
            p.class_penalties
                .iter()
                .chain([&p.penalty])
                .try_for_each(|n| count("pipelining", (*n).into()))?;
        }
        if let Some(url) = self.checked.iter().find(|u| u.len() > URL_MAX || u.chars().any(char::is_control))
        {
            return Err(format!("checked: '{}' is no URL of an authority", clip(url)));
        }
        count("rounds", self.rounds.into())?;
        unique("learned", self.learned.iter().map(|r| (&r.page, &r.host)))?;
        unique("successor", self.successor.iter().map(|r| (&r.page, &r.host)))?;
        unique("pages", self.pages.iter().map(|p| (&p.page, &p.page)))?;
        for r in &self.learned {
            for n in [r.page_loads, r.navigations, r.preconnects, r.preresolves] {
                count("learned", n.into())?;
            }
        }
        for r in &self.successor {
            [r.hits, r.misses, r.misses_in_a_row].iter().try_for_each(|n| count("successor", (*n).into()))?;
            // What no visit has used or left unused would be a share of nothing.
            if r.hits == 0 && r.misses == 0 {
                return Err(format!("successor: no visit of {} has met {}", r.page, r.host));
            }
        }
        self.pages.iter().try_for_each(Page::check)
    }
}

impl Learned {
    fn row(self) -> Result<LearnedRow, String> {
        let Self { page, page_loads, host, navigations, preconnects, preresolves, expected: text } = self;
        // No visit takes more connections than a browser has.
        let expected = text.parse().ok().filter(|e| (0.0..=1e3).contains(e));
        let expected = expected
            .ok_or_else(|| format!("learned: expected '{}' of {host} is not within 0–1000", clip(&text)))?;
        Ok(LearnedRow { page, page_loads, host, navigations, preconnects, preresolves, expected })
    }
}

impl Successor {
    fn row(self) -> SuccessorRow {
        let Self { page, host, hits, misses, misses_in_a_row } = self;
        SuccessorRow { page, host, hits, misses, misses_in_a_row }
    }
}

impl Pipelined {
    fn new(known: &HostStanding) -> Self {
        let state = &known.state;
        Self {
            host: known.host.clone(),
            standing: state.standing().into(),
            proven: state.is_proven(),
            penalty: state.penalty(),
            class_penalties: Class::ALL.map(|class| state.class_penalty(class)),
        }
    }

    fn standing(self) -> HostStanding {
        let classes = Class::ALL.into_iter().zip(self.class_penalties);
        HostStanding {
            host: self.host,
            state: HostState::restored(self.standing.into(), self.proven, self.penalty, classes),
        }
    }
}

impl Page {
    fn check(&self) -> Result<(), String> {
        bounded("hosts", self.hosts.len(), HOSTS_MAX)?;
        bounded("last", self.last.len(), VISITS_MAX)?;
        count("visits", self.visits.into())?;
        unique("hosts", self.hosts.iter().map(|h| (&self.page, &h.host)))?;
        let hosts = self.hosts.iter().map(|h| [h.resources, h.carried, h.made, h.used]);
        for counts in hosts.clone().chain(self.last.iter().copied()) {
            counts.iter().try_for_each(|n| count("pages", *n))?;
        }
        let mut pairs = hosts.chain(self.last.iter().copied()).map(|[.., made, used]| (made, used));
        match pairs.find(|(made, used)| used > made) {
            Some((made, used)) => {
                Err(format!("pages: {used} of {made} connections were used, of {}", self.page))
            }
            None => Ok(()),
        }
    }

    fn record(self) -> PageRecord {
        let host = |Host { host, resources, carried, made, used }| HostRecord {
            host,
            resources,
            tally: Tally { carried, made, used },
        };
        let visit = |[plt_us, carried, made, used]: [u64; 4]| VisitRecord {
            plt_us,
            tally: Tally { carried, made, used },
        };
        PageRecord {
            page: self.page,
            visits: self.visits,
            hosts: self.hosts.into_iter().map(host).collect(),
            last: self.last.into_iter().map(visit).collect(),
        }
    }
}

fn bounded(field: &str, len: usize, most: usize) -> Result<(), String> {
    if len <= most { Ok(()) } else { Err(format!("{field}: {len} rows, of {most} at most")) }
}

fn count(field: &str, n: u64) -> Result<(), String> {
    if n <= COUNT_MAX { Ok(()) } else { Err(format!("{field}: {n} is not within 0–{COUNT_MAX}")) }
}

/// No pair of origins comes twice, and each is one.
fn unique<'a>(field: &str, pairs: impl Iterator<Item = (&'a String, &'a String)>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for (page, host) in pairs {
        for origin in [page, host] {
            let has_scheme = origin.starts_with("http://") || origin.starts_with("https://");
            if !has_scheme || origin.len() > ORIGIN_MAX || origin.chars().any(char::is_control) {
                return Err(format!("{field}: '{}' is no origin", clip(origin)));
            }
        }
        if !seen.insert((page, host)) {
            return Err(format!("{field}: {host} of {page} comes twice"));
        }
    }
    Ok(())
}

/// So much of a text as an error shows, in one line.
fn clip(text: &str) -> String {
    text.chars().take(60).map(|c| if c.is_control() { '?' } else { c }).collect()
}
