//! What a client learns of pages and their hosts by visiting them, kept between runs: `velodrome topology`.
//!
//! [`learn`] visits pages in the virtual world, round after round, with one memory for all. A round is one run of the browser: what
//! is learned decays once when it is over, as Chrome's did when it was saved, so that one page learned here and the visits
//! of [`crate::technique`] come to the same. A [`State`] is that memory with a record of what came of it: what was opened
//! ahead of need, used and wasted. [`mod@file`] reads and writes it; [`Topology`] is what of it is shown.
//!
//! Pages are known by the origin of their document, as Chrome's predictors knew them: two pages of one origin are one. Of more
//! than a hundred pages, and of more than ten hosts a page, a predictor forgets those used longest ago or least; they have no
//! estimate here any more, but their counts stay.
//!
//! What pipelining has learned of hosts is kept too, as the visits of [`crate::technique`] keep it. Firefox forgot it when it ended; a
//! client that is asked what it knows, and taken up again, would have nothing to say.

pub mod file;
mod view;

use std::sync::atomic::{AtomicBool, Ordering};

use client::{Preconnect, Purpose, Standing};
use load::{Load, Memory, Setup};
use page::Page;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::plan::Plan;
use crate::technique::{self, Technique};

pub(crate) use view::known;
pub use view::{
    Estimate, HostView, KnownHost, KnownRow, PageView, Predictor, StandingView, Topology, VisitView,
};

/// The most pages of whose hosts counts are kept: as many as the predictors know.
const PAGES_MAX: usize = 100;

/// The most hosts of a page of which counts are kept.
const HOSTS_MAX: usize = 250;

/// The most visits of a page that are remembered one by one: the last.
const VISITS_MAX: usize = 200;

/// The most hosts whose standing is kept.
const STANDINGS_MAX: usize = 5_000;

/// A [`Standing`], as files have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Colour {
    /// Not trusted.
    Red,
    /// Trusted with one trial.
    Yellow,
    /// Trusted.
    Green,
}

impl Colour {
    /// As files have it.
    pub fn name(self) -> &'static str {
        match self {
            Colour::Red => "red",
            Colour::Yellow => "yellow",
            Colour::Green => "green",
        }
    }
}

impl From<Standing> for Colour {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::Red => Colour::Red,
            Standing::Yellow => Colour::Yellow,
            Standing::Green => Colour::Green,
        }
    }
}

impl From<Colour> for Standing {
    fn from(colour: Colour) -> Self {
        match colour {
            Colour::Red => Standing::Red,
            Colour::Yellow => Standing::Yellow,
            Colour::Green => Standing::Green,
        }
    }
}

/// What a client keeps between runs.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct State {
    /// What its predictors know.
    pub memory: Memory,
    /// Rounds of visits so far.
    pub rounds: u32,
    /// What came of the visits, a page after the other, that visited longest ago first.
    pub pages: Vec<PageRecord>,
}

/// What came of the visits to a page.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PageRecord {
    /// The origin of its document, as the predictors write it.
    pub page: String,
    /// Visits.
    pub visits: u32,
    /// What they cost and brought, host by host, in the order in which the page first used them.
    pub hosts: Vec<HostRecord>,
    /// The last visits, the oldest first.
    pub last: Vec<VisitRecord>,
}

/// What came of the visits to a page at one host.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HostRecord {
    /// Its origin, as the predictors write it.
    pub host: String,
    /// Resources that it was asked for.
    pub resources: u64,
    /// What became of connections to it.
    pub tally: Tally,
}

/// One visit.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct VisitRecord {
    /// Page load time, µs; 0 if the load was not whole.
    pub plt_us: u64,
    /// What became of its connections.
    pub tally: Tally,
}

/// Connections.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// That carried a request, however they were opened.
    pub carried: u64,
    /// Opened ahead of need.
    pub made: u64,
    /// Of those, that carried a request.
    pub used: u64,
}

impl Tally {
    /// Opened ahead of need, for nothing.
    pub fn wasted(self) -> u64 {
        self.made - self.used
    }

    fn count(&mut self, connection: &load::Connection) {
        let carried = u64::from(connection.record.requests > 0);
        let ahead = u64::from(connection.record.purpose == Purpose::Speculative);
        self.carried += carried;
        self.made += ahead;
        self.used += ahead * carried;
    }
}

/// Visits all `pages` in turn, `rounds` times, as `plan` says: its only network, its only transport, its techniques. Ends early, after
/// a whole round, when `cancel` is set; `progress` hears of each visit.
///
/// # Errors
/// If the plan has no technique that learns, or more than one network or transport.
pub fn learn(
    plan: &Plan,
    pages: &[Page],
    rounds: u32,
    state: &mut State,
    cancel: &AtomicBool,
    progress: &dyn Fn(),
) -> Result<(), Error> {
    let setup = setup(plan)?;
    for _ in 0..rounds {
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        for page in pages {
            visit(plan, page, &setup, state);
            progress();
        }
        technique::keep(&mut state.memory);
        // Those of which something was learned longest ago are first.
        let surplus = state.memory.pipelining.len().saturating_sub(STANDINGS_MAX);
        state.memory.pipelining.drain(..surplus);
        state.rounds = state.rounds.saturating_add(1);
    }
    Ok(())
}

fn setup(plan: &Plan) -> Result<Setup, Error> {
    let transports = plan.transports();
    let ([network], [transport]) = (plan.networks.as_slice(), transports.as_slice()) else {
        return Err(Error::Asked("a client learns on one network, over one transport".to_owned()));
    };
    let setup = crate::record::setup(network, *transport, &plan.techniques)?;
    match setup.techniques.preconnect {
        Preconnect::Learned | Preconnect::Successor => Ok(setup),
        _ if setup.techniques.pipelining.is_some() => Ok(setup),
        Preconnect::None | Preconnect::BlindTwo => Err(Error::Asked(format!(
            "nothing learns: there is {}, {} and pipelining (--with)",
            Technique::Preconnect(Preconnect::Learned),
            Technique::Preconnect(Preconnect::Successor)
        ))),
    }
}

fn visit(plan: &Plan, page: &Page, setup: &Setup, state: &mut State) {
    let seed = technique::visit_seed(plan.load_seed(&page.id, &plan.networks[0].name, 0), state.rounds);
    let setup = Setup { memory: std::mem::take(&mut state.memory), ..setup.clone() };
    let load = sim::load(page, &setup, seed);
    record(state, page, &setup, &load);
    state.memory = load.memory;
    // A load speaks of its own page's authorities only.
    state.memory.checked.extend(setup.memory.checked);
}

/// The origin of a host, as the predictors write it.
fn origin(setup: &Setup, page: &Page, host: u32) -> String {
    let host = &page.hosts[host as usize];
    format!("{}://{}", if setup.secures(host) { "https" } else { "http" }, host.name)
}

fn record(state: &mut State, page: &Page, setup: &Setup, load: &Load) {
    let origin = |host: u32| origin(setup, page, host);
    let mut tally = Tally::default();
    let entry = state.page(&origin(page.resources[0].host));
    for (request, resource) in load.requests.iter().zip(&page.resources) {
        if request.timing.is_some()
            && let Some(host) = entry.host(&origin(resource.host))
        {
            host.resources += 1;
        }
    }
    for connection in &load.connections {
        tally.count(connection);
        if let Some(host) = entry.host(&origin(connection.record.host)) {
            host.tally.count(connection);
        }
    }
    let whole = load.outcome == load::Outcome::Complete;
    let plt_us = load.plt().filter(|_| whole).map_or(0, |plt| plt.as_micros());
    entry.visits = entry.visits.saturating_add(1);
    entry.last.push(VisitRecord { plt_us, tally });
    let surplus = entry.last.len().saturating_sub(VISITS_MAX);
    entry.last.drain(..surplus);
}

impl State {
    /// The record of a page, made if there is none; that of the page visited longest ago may go for it.
    fn page(&mut self, origin: &str) -> &mut PageRecord {
        let there = self.pages.iter().position(|p| p.page == origin).map(|n| self.pages.remove(n));
        if there.is_none() && self.pages.len() >= PAGES_MAX {
            self.pages.remove(0);
        }
        let new = || PageRecord { page: origin.to_owned(), ..PageRecord::default() };
        self.pages.push(there.unwrap_or_else(new));
        self.pages.last_mut().expect("it was just put there")
    }
}

impl PageRecord {
    /// The record of a host, made if there is none and there is room.
    fn host(&mut self, origin: &str) -> Option<&mut HostRecord> {
        let there = self.hosts.iter().position(|h| h.host == origin);
        if there.is_none() && self.hosts.len() < HOSTS_MAX {
            self.hosts.push(HostRecord { host: origin.to_owned(), ..HostRecord::default() });
            return self.hosts.last_mut();
        }
        there.map(|n| &mut self.hosts[n])
    }
}

#[cfg(test)]
mod tests;
