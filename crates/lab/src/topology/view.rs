//! What of a client's memory is shown: for each page its hosts, what the next visit will open, and what the last ones cost and
//! brought.

use std::collections::BTreeMap;

use client::{Class, Expected, HostState, Learned, Standing, Successor};
use load::{Memory, Setup};
use page::Page;
use serde::{Deserialize, Serialize};

use super::{Colour, HostRecord, PageRecord, State, origin};
use crate::result::Key;
use crate::stats::round;

/// What a client has learned, for people and programs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Topology {
    /// Rounds of visits so far.
    pub rounds: u32,
    /// The pages that it knows, in the order of their names.
    pub pages: Vec<PageView>,
}

/// A page.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PageView {
    /// The origin of its document.
    pub page: String,
    /// Visits.
    pub visits: u32,
    /// Its hosts: the page's own first, then those with most resources.
    pub hosts: Vec<HostView>,
    /// The last visits, the oldest first.
    pub last: Vec<VisitView>,
}

/// A host of a page.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HostView {
    /// Its origin.
    pub host: String,
    /// Resources that a visit needed from it, in the mean.
    pub resources: f64,
    /// Connections to it that carried something, a visit.
    pub carried: f64,
    /// What each predictor knows of it; there is none of what it has forgotten.
    pub estimates: Vec<Estimate>,
    /// How far pipelining trusts it; none if it knows nothing of it. Of several ports of one name, the one trusted least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipelining: Option<StandingView>,
    /// Connections opened to it ahead of need, in all visits.
    pub made: u64,
    /// Of those, that carried a request.
    pub used: u64,
    /// The others.
    pub wasted: u64,
}

/// What a browser knew of a page's hosts when a load of it began: `known.jsonl`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct KnownRow {
    /// Which load.
    #[serde(flatten)]
    pub key: Key,
    /// The hosts of which it knew anything, in the page's order.
    pub hosts: Vec<KnownHost>,
}

/// What a browser knew of a host when a load began.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct KnownHost {
    /// Its origin.
    pub host: String,
    /// What each predictor knew of it, and was about to do.
    pub estimates: Vec<Estimate>,
    /// How far pipelining trusted it; left out if it knew nothing of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pipelining: Option<StandingView>,
}

/// How far pipelining trusts a host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StandingView {
    /// `red`: not at all; `yellow`: with one trial; `green`: it has passed one.
    pub standing: Colour,
    /// Whether it has answered well from the third place or deeper while green: then pipelines are as deep as is configured.
    pub is_proven: bool,
    /// What it has to pay off before it is tried again: good answers and time pay a point each.
    pub penalty: u32,
    /// Classes of requests that are not pipelined to it until they have paid off as much.
    pub classes: BTreeMap<String, u32>,
}

/// Which predictor, as the switches call them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Predictor {
    /// Chrome's of 2010.
    Learned,
    /// What Chrome has had since.
    Successor,
}

/// What a predictor makes of a host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Estimate {
    /// Whose estimate it is.
    pub by: Predictor,
    /// `learned`: connections that a visit is expected to need; `successor`: the share of visits that used the host.
    pub expected: f64,
    /// Connections that the next visit opens before its document is there, on the page's own host with the one that the document
    /// takes; 0 with [`Estimate::resolves`]: the name alone is looked up.
    pub opens: u32,
    /// Whether the next visit looks the name up ahead of need.
    pub resolves: bool,
}

/// A visit.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct VisitView {
    /// Page load time, ms; none if the load was not whole.
    pub plt_ms: Option<f64>,
    /// Connections that carried something.
    pub carried: u64,
    /// Opened ahead of need.
    pub made: u64,
    /// Of those, that carried a request.
    pub used: u64,
    /// The others.
    pub wasted: u64,
}

impl Topology {
    /// What of `state` is shown.
    pub fn of(state: &State) -> Self {
        let mut pages: Vec<_> = state.pages.iter().map(|record| page(state, record)).collect();
        pages.sort_by(|a, b| a.page.cmp(&b.page));
        Self { rounds: state.rounds, pages }
    }
}

/// What the browser knows of the hosts of `page`, when a load with this setup begins.
pub(crate) fn known(key: &Key, setup: &Setup, page: &Page) -> KnownRow {
    let memory = &setup.memory;
    if memory.learned.is_empty() && memory.successor.is_empty() && memory.pipelining.is_empty() {
        return KnownRow { key: key.clone(), hosts: Vec::new() };
    }
    let document = origin(setup, page, page.resources[0].host);
    let next = Next::of(memory, &document);
    let hosts = (0..page.hosts.len() as u32).map(|n| {
        let host = origin(setup, page, n);
        let (estimates, pipelining) = (next.estimates(memory, &document, &host), standing(memory, &host));
        KnownHost { host, estimates, pipelining }
    });
    let hosts = hosts.filter(|host| !host.estimates.is_empty() || host.pipelining.is_some());
    KnownRow { key: key.clone(), hosts: hosts.collect() }
}

/// What a visit to a page opens, by either predictor.
struct Next([Vec<Expected>; 2]);

impl Next {
    fn of(memory: &Memory, page: &str) -> Self {
        let mut learned = Learned::from_rows(memory.learned.iter().cloned(), Vec::new());
        let mut successor = Successor::from_rows(memory.successor.iter().cloned());
        Self([learned.visit(page), successor.visit(page)])
    }

    /// What is known of one of the page's hosts.
    fn estimates(&self, memory: &Memory, page: &str, host: &str) -> Vec<Estimate> {
        let learned = memory.learned.iter().find(|r| r.page == page && r.host == host);
        let successor = memory.successor.iter().find(|r| r.page == page && r.host == host);
        let learned = learned.map(|r| (Predictor::Learned, r.expected));
        let share = |hits: u32, misses: u32| f64::from(hits) / f64::from(hits + misses);
        let successor = successor.map(|r| (Predictor::Successor, share(r.hits, r.misses)));
        let estimates = [learned, successor].into_iter().zip(&self.0).filter_map(|(known, next)| {
            let (by, expected) = known?;
            let next = next.iter().find(|e| e.host == host);
            let opens = next.map_or(0, |e| e.connections);
            Some(Estimate { by, expected: round(expected, 3), opens, resolves: next.is_some() })
        });
        estimates.collect()
    }
}

fn page(state: &State, record: &PageRecord) -> PageView {
    let next = Next::of(&state.memory, &record.page);
    let mut hosts: Vec<_> = record.hosts.iter().map(|h| host(state, record, h, &next)).collect();
    hosts.sort_by(|a, b| {
        let own = |h: &HostView| h.host != record.page;
        own(a).cmp(&own(b)).then(b.resources.total_cmp(&a.resources)).then(a.host.cmp(&b.host))
    });
    let last = record.last.iter().map(|v| VisitView {
        plt_ms: (v.plt_us > 0).then_some(v.plt_us as f64 / 1e3),
        carried: v.tally.carried,
        made: v.tally.made,
        used: v.tally.used,
        wasted: v.tally.wasted(),
    });
    PageView { page: record.page.clone(), visits: record.visits, hosts, last: last.collect() }
}

fn host(state: &State, page: &PageRecord, record: &HostRecord, next: &Next) -> HostView {
    let HostRecord { host, resources, tally } = record;
    let a_visit = |n: u64| round(n as f64 / f64::from(page.visits.max(1)), 2);
    HostView {
        host: host.clone(),
        resources: a_visit(*resources),
        carried: a_visit(tally.carried),
        estimates: next.estimates(&state.memory, &page.page, host),
        pipelining: standing(&state.memory, host),
        made: tally.made,
        used: tally.used,
        wasted: tally.wasted(),
    }
}

/// A standing is known by scheme, name and port as a URL has them, a record by name and by whether it is secured.
fn standing(memory: &Memory, host: &str) -> Option<StandingView> {
    let name = |origin: &str| {
        let authority = origin.split_once("://").map_or(origin, |(_, authority)| authority);
        let port = authority.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
        port.map_or(authority, |(name, _)| name).to_owned()
    };
    let trust = |state: &HostState| match state.standing() {
        Standing::Red => (0, u32::MAX - state.penalty()),
        Standing::Yellow => (1, 0),
        Standing::Green => (2, u32::from(state.is_proven())),
    };
    let known = memory.pipelining.iter().filter(|known| name(&known.host) == name(host));
    let state = &known.min_by_key(|known| trust(&known.state))?.state;
    let owes = Class::ALL.into_iter().map(|class| (class_name(class).to_owned(), state.class_penalty(class)));
    Some(StandingView {
        standing: state.standing().into(),
        is_proven: state.is_proven(),
        penalty: state.penalty(),
        classes: owes.filter(|(_, penalty)| *penalty > 0).collect(),
    })
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Solo => "solo",
        Class::Revalidation => "revalidation",
        Class::Script => "script",
        Class::Image => "image",
        Class::General => "general",
    }
}

impl Topology {
    /// Whether pipelining knows anything of a host of these pages.
    pub fn knows_pipelining(&self) -> bool {
        self.pages.iter().flat_map(|page| &page.hosts).any(|host| host.pipelining.is_some())
    }
}

impl HostView {
    /// What pipelining knows of it: "green, proven", "red, owes 60", "yellow; image owes 250".
    pub fn pipelining_in_words(&self) -> String {
        let Some(StandingView { standing, is_proven, penalty, classes }) = &self.pipelining else {
            return "not tried".to_owned();
        };
        let proven = if *is_proven { ", proven" } else { "" };
        let penalty = if *penalty > 0 { format!(", owes {penalty}") } else { String::new() };
        let classes = classes.iter().map(|(class, penalty)| format!("; {class} owes {penalty}"));
        format!("{}{proven}{penalty}{}", standing.name(), classes.collect::<String>())
    }
}

impl Estimate {
    /// What is expected: "1.7" connections, or in "90 %" of visits.
    pub fn in_words(&self) -> String {
        if self.by == Predictor::Learned {
            format!("{:.2}", self.expected)
        } else {
            format!("in {:.0} % of visits", 100.0 * self.expected)
        }
    }

    /// What the next visit opens.
    pub fn next_in_words(&self) -> String {
        match (self.opens, self.resolves) {
            (0, false) => "nothing".to_owned(),
            (0, true) => "the name".to_owned(),
            (n, _) => n.to_string(),
        }
    }
}
