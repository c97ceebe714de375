//! What of a client's memory is shown: for each page its hosts, what the next visit will open, and what the last ones cost and
//! brought.

use client::{Expected, Learned, Successor};
use serde::Serialize;

use super::{HostRecord, PageRecord, State};
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
    /// Connections opened to it ahead of need, in all visits.
    pub made: u64,
    /// Of those, that carried a request.
    pub used: u64,
    /// The others.
    pub wasted: u64,
}

/// What a predictor makes of a host.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Estimate {
    /// Which: `learned` or `successor`, as the switches call them.
    pub by: &'static str,
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

fn page(state: &State, record: &PageRecord) -> PageView {
    let mut learned = Learned::from_rows(state.memory.learned.iter().cloned(), Vec::new());
    let mut successor = Successor::from_rows(state.memory.successor.iter().cloned());
    let next = [learned.visit(&record.page), successor.visit(&record.page)];
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

fn host(state: &State, page: &PageRecord, record: &HostRecord, next: &[Vec<Expected>; 2]) -> HostView {
    let HostRecord { host, resources, tally } = record;
    let learned = state.memory.learned.iter().find(|r| r.page == page.page && r.host == *host);
    let successor = state.memory.successor.iter().find(|r| r.page == page.page && r.host == *host);
    let learned = learned.map(|r| ("learned", r.expected));
    let successor = successor.map(|r| ("successor", f64::from(r.hits) / f64::from(r.hits + r.misses)));
    let estimates = [learned, successor].into_iter().zip(next).filter_map(|(known, next)| {
        let (by, expected) = known?;
        let next = next.iter().find(|e| e.host == *host);
        let opens = next.map_or(0, |e| e.connections);
        Some(Estimate { by, expected: round(expected, 3), opens, resolves: next.is_some() })
    });
    let a_visit = |n: u64| round(n as f64 / f64::from(page.visits.max(1)), 2);
    HostView {
        host: host.clone(),
        resources: a_visit(*resources),
        carried: a_visit(tally.carried),
        estimates: estimates.collect(),
        made: tally.made,
        used: tally.used,
        wasted: tally.wasted(),
    }
}

impl Estimate {
    /// What is expected: "1.7" connections, or in "90 %" of visits.
    pub fn in_words(&self) -> String {
        if self.by == "learned" {
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
