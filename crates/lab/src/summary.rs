//! What a run says, in one value: the terminal prints it, `--json` prints it, `summary.json` keeps it, the report
//! draws it. It is a function of the run folder alone.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::compare::{Load, compare, page_medians};
use crate::error::Error;
use crate::folder;
use crate::network::Network;
use crate::plan::Plan;
use crate::result::{AheadRow, AssumptionRow, LoadRow, PageRow, Phases, ProblemRow, UnaskedRow, rows};
use crate::setting::World;
use crate::stats::{Estimate, mean, median_estimate, round};
use crate::technique::Technique;
use crate::trouble::{self, Troubles};
use crate::{agree, published, words};

/// What a run says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// The run's seed.
    pub seed: u64,
    /// Loads of each page on each network over each transport.
    pub runs: u32,
    /// The transports, the one that the others are compared with first.
    pub transports: Vec<String>,
    /// Pages raced.
    pub pages: u32,
    /// Loads done, of `loads_planned`.
    pub loads: u64,
    /// Loads that the plan asks for.
    pub loads_planned: u64,
    /// What one observation is.
    pub unit: Unit,
    /// What the recordings did not say, over all pages, most frequent first.
    pub assumptions: Vec<AssumptionRow>,
    /// What could not be raced.
    pub problems: Vec<ProblemRow>,
    /// One a network, in the plan's order.
    pub networks: Vec<NetworkSummary>,
    /// What a reader should know before using a figure; sentences.
    pub notes: Vec<String>,
}

/// What one observation is, for medians and intervals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A page, with the median over its runs.
    Page,
    /// A run, as there is only one page, and chance makes its runs differ.
    Run,
}

/// The race on one network.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NetworkSummary {
    /// Its name in the plan.
    pub network: String,
    /// Its conditions in words, one line each.
    pub conditions: Vec<String>,
    /// One a transport, in the plan's order.
    pub transports: Vec<TransportSummary>,
    /// Every other transport against the first.
    pub comparisons: Vec<Comparison>,
    /// What was opened and asked for ahead of need, in sentences made from measured means; left out if nothing was.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub accounts: Vec<String>,
}

/// One transport on one network. Means are over complete loads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TransportSummary {
    /// `http1`, `spdy3.1`, …
    pub transport: String,
    /// Loads done.
    pub loads: u64,
    /// Loads in which every resource was fetched and used; the figures below are of these.
    pub complete: u64,
    /// Requests that failed, over all loads.
    pub requests_failed: u64,
    /// Median page load time.
    pub plt_ms: Option<Estimate>,
    /// Median first paint.
    pub first_paint_ms: Option<Estimate>,
    /// Mean connections a load.
    pub connections: f64,
    /// Mean IP bytes towards the client a load.
    pub bytes_down: f64,
    /// Mean IP bytes towards the servers a load.
    pub bytes_up: f64,
    /// Mean segments sent again a load.
    pub retransmits: f64,
    /// Mean retransmission timeouts a load.
    pub timeouts: f64,
    /// Mean packets dropped by a full queue a load, both directions.
    pub overflows: f64,
    /// Where the mean page load time went.
    pub phases: Vec<PhaseMean>,
    /// What was missing or came late, where the plan breaks things or says how a browser tries again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub troubles: Option<Troubles>,
    /// Connections that no waiting request had asked for; left out if there were none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unasked: Option<UnaskedMeans>,
    /// What was asked for before the page came to it, or pushed; left out if nothing was.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ahead: Option<AheadMeans>,
}

/// The means a load of an [`UnaskedRow`]: what was made, and what of it carried a request.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct UnaskedMeans {
    /// Opened ahead of need.
    pub speculative: f64,
    /// Of those, that carried a request.
    pub speculative_used: f64,
    /// Opened beside one that took long.
    pub spare: f64,
    /// Of those, that carried a request.
    pub spare_used: f64,
    /// Opened to another address beside one that took long.
    pub alternate: f64,
    /// Of those, that carried a request.
    pub alternate_used: f64,
}

/// The means a load of an [`AheadRow`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct AheadMeans {
    /// Requests made before the page came to them.
    pub asked: f64,
    /// Pushes.
    pub pushed: f64,
    /// Of both, what was of use.
    pub used: f64,
    /// Bytes of what was not, as far as they came.
    pub wasted_bytes: f64,
}

/// A part of the mean page load time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PhaseMean {
    /// `dns`, `connect`, `tls`, `queued`, `wait`, `receive` or `compute`.
    pub phase: String,
    /// Its mean.
    pub ms: f64,
}

/// One transport against the first, paired by page (or by run, see [`Summary::unit`]). Speed-up is
/// (PLT first − PLT other) / PLT first, in percent: positive when the other is faster.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// What it is compared with.
    pub first: String,
    /// The transport compared.
    pub other: String,
    /// Pairs: observations complete over both.
    pub pairs: u32,
    /// Pairs in which the other is strictly faster.
    pub faster: u32,
    /// Pairs in which it is strictly slower.
    pub slower: u32,
    /// Mean of the pairs' speed-ups, percent.
    pub mean_speedup_pct: Option<Estimate>,
    /// Median of the pairs' speed-ups, percent.
    pub median_speedup_pct: Option<Estimate>,
    /// Two-sided sign test: how likely a split of faster and slower at least as uneven is, if neither were faster.
    pub sign_test_p: Option<f64>,
    /// The pages that gained most, best first.
    pub gains: Vec<PagePair>,
    /// The pages that lost most, worst first.
    pub losses: Vec<PagePair>,
    /// Why, in sentences made from measured means.
    pub why: Vec<String>,
    /// What was published for such conditions, if anything.
    pub published: Option<Published>,
}

/// One page (or run) in a comparison.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PagePair {
    /// The page's id.
    pub page: String,
    /// The run, where a run is the unit.
    pub run: Option<u32>,
    /// PLT over the first transport.
    pub first_ms: f64,
    /// PLT over the other.
    pub other_ms: f64,
    /// Speed-up, percent.
    pub speedup_pct: f64,
}

/// A published figure to set beside ours.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Published {
    /// Who, where, when.
    pub source: String,
    /// The figure in words.
    pub figure: String,
    /// Its mean speed-up, percent.
    pub mean_speedup_pct: f64,
    /// What differs between its conditions and ours; sentences.
    pub differs: Vec<String>,
}

/// What a network's loads were, by transport.
type Loads = Vec<Vec<Load>>;

/// Reads a run folder and says what is in it. A run that was interrupted says what there is.
pub fn summarise(dir: &Path) -> Result<Summary, Error> {
    let name = dir.join(folder::PLAN).display().to_string();
    let plan = Plan::parse(&String::from_utf8_lossy(&folder::read(dir, folder::PLAN)?), &name)?;
    let pages: Vec<PageRow> = rows(&dir.join(folder::PAGES))?.collect::<Result<_, _>>()?;
    let problems = rows(&dir.join(folder::PROBLEMS))?.collect::<Result<_, _>>()?;
    let numbers: BTreeMap<&str, u32> = pages.iter().map(|p| p.page.as_str()).zip(0..).collect();
    let mut networks: Vec<Loads> = vec![vec![Vec::new(); plan.transports.len()]; plan.networks.len()];
    let mut loads = 0;
    for row in rows::<LoadRow>(&dir.join(folder::LOADS))? {
        let row = row?;
        let network = plan.networks.iter().position(|n| n.name == row.key.network);
        let transport = plan.transports.iter().position(|t| *t == row.key.transport);
        let page = numbers.get(row.key.page.as_str());
        if let (Some(network), Some(transport), Some(page)) = (network, transport, page) {
            networks[network][transport].push(Load::new(*page, &row));
            loads += 1;
        }
    }
    // Runs that cannot differ are one observation, however often it is made.
    let runs_differ = plan.runs > 1 && plan.networks.iter().all(|n| plan.is_random_on(n));
    let unit = if pages.len() == 1 && runs_differ { Unit::Run } else { Unit::Page };
    let loads_planned = [pages.len(), plan.networks.len(), plan.transports.len(), plan.runs as usize]
        .iter()
        .product::<usize>();
    let mut summary = Summary {
        seed: plan.seed,
        runs: plan.runs,
        transports: plan.transports.clone(),
        pages: pages.len() as u32,
        loads,
        loads_planned: loads_planned as u64,
        unit,
        assumptions: assumptions(&pages),
        problems,
        networks: plan
            .networks
            .iter()
            .zip(&networks)
            .map(|(n, l)| network(&plan, n, l, &pages, unit))
            .collect(),
        notes: Vec::new(),
    };
    summary.notes = words::notes(&plan, &pages, &summary);
    note_troubles(dir, &plan, &mut summary)?;
    if plan.world == World::Live {
        summary.notes.extend(words::live_notes(agree::live_notes(dir)?));
    }
    Ok(summary)
}

/// Enters what was missing, and says it.
fn note_troubles(dir: &Path, plan: &Plan, summary: &mut Summary) -> Result<(), Error> {
    if !plan.techniques.iter().any(Technique::makes_trouble) {
        return Ok(());
    }
    let rows = trouble::read(dir)?;
    for network in &mut summary.networks {
        for transport in &mut network.transports {
            let own = |row: &&trouble::TroublesRow| {
                row.key.network == network.network && row.key.transport == transport.transport
            };
            let troubles = Troubles::of(rows.iter().filter(own));
            summary.notes.extend(troubles.say(&format!("{} over {}", network.network, transport.transport)));
            transport.troubles = Some(troubles);
        }
    }
    Ok(())
}

fn network(plan: &Plan, network: &Network, loads: &Loads, pages: &[PageRow], unit: Unit) -> NetworkSummary {
    let transports: Vec<_> =
        plan.transports.iter().zip(loads).map(|(name, loads)| transport(name, loads, unit)).collect();
    let comparisons = (1..loads.len()).map(|other| {
        let names = (plan.transports[0].as_str(), plan.transports[other].as_str());
        let mut comparison = compare(names, (&loads[0], &loads[other]), pages, unit);
        comparison.why = words::why(network, &transports[0], &transports[other]);
        comparison.published = published::published(network, &comparison, pages);
        comparison
    });
    NetworkSummary {
        network: network.name.clone(),
        conditions: words::conditions(network),
        comparisons: comparisons.collect(),
        accounts: transports.iter().flat_map(words::accounts).collect(),
        transports,
    }
}

fn transport(name: &str, loads: &[Load], unit: Unit) -> TransportSummary {
    let complete: Vec<&Load> = loads.iter().filter(|l| l.complete).collect();
    let average = |figure: &dyn Fn(&Load) -> u64, decimals: i32, scale: f64| {
        let values: Vec<f64> = complete.iter().map(|l| figure(l) as f64 / scale).collect();
        round(mean(&values).unwrap_or(0.0), decimals)
    };
    let middle = |figure: &dyn Fn(&Load) -> Option<u64>| {
        let values = page_medians(&complete, unit, figure);
        median_estimate(&values).map(|e| e.rounded(3))
    };
    TransportSummary {
        transport: name.to_owned(),
        loads: loads.len() as u64,
        complete: complete.len() as u64,
        requests_failed: loads.iter().map(|l| u64::from(l.failed)).sum(),
        plt_ms: middle(&|l| Some(l.plt_us)),
        first_paint_ms: middle(&|l| l.first_paint_us),
        connections: average(&|l| l.connections.into(), 2, 1.0),
        bytes_down: average(&|l| l.bytes_down, 0, 1.0),
        bytes_up: average(&|l| l.bytes_up, 0, 1.0),
        retransmits: average(&|l| l.retransmits, 2, 1.0),
        timeouts: average(&|l| l.timeouts, 2, 1.0),
        overflows: average(&|l| l.overflows, 2, 1.0),
        phases: PHASES
            .iter()
            .map(|(phase, part)| PhaseMean {
                phase: (*phase).to_owned(),
                ms: average(&|l| part(&l.critical), 3, 1_000.0),
            })
            .collect(),
        troubles: None,
        unasked: complete.iter().any(|l| l.unasked.is_some()).then(|| {
            let of = |figure: fn(&UnaskedRow) -> u32| {
                average(&|l| l.unasked.as_ref().map_or(0, figure).into(), 2, 1.0)
            };
            UnaskedMeans {
                speculative: of(|u| u.speculative),
                speculative_used: of(|u| u.speculative_used),
                spare: of(|u| u.spare),
                spare_used: of(|u| u.spare_used),
                alternate: of(|u| u.alternate),
                alternate_used: of(|u| u.alternate_used),
            }
        }),
        ahead: complete.iter().any(|l| l.ahead.is_some()).then(|| {
            let of = |figure: fn(&AheadRow) -> u64| average(&|l| l.ahead.as_ref().map_or(0, figure), 2, 1.0);
            AheadMeans {
                asked: of(|a| a.asked.into()),
                pushed: of(|a| a.pushed.into()),
                used: of(|a| a.used.into()),
                wasted_bytes: of(|a| a.wasted_bytes),
            }
        }),
    }
}

type Phase = (&'static str, fn(&Phases) -> u64);

/// The parts of a page load time, in the order of a request's life.
const PHASES: [Phase; 7] = [
    ("dns", |p| p.dns_us),
    ("connect", |p| p.connect_us),
    ("tls", |p| p.tls_us),
    ("queued", |p| p.queued_us),
    ("wait", |p| p.wait_us),
    ("receive", |p| p.receive_us),
    ("compute", |p| p.compute_us),
];

/// Sums over all pages, most frequent first. The sentence is that of the page with most of its kind, without the
/// numbers in brackets that are this page's own.
pub fn assumptions(pages: &[PageRow]) -> Vec<AssumptionRow> {
    let mut all: BTreeMap<&str, (u32, &AssumptionRow)> = BTreeMap::new();
    for a in pages.iter().flat_map(|p| &p.assumptions) {
        let (sum, most) = all.entry(&a.kind).or_insert((0, a));
        *sum += a.count;
        if a.count > most.count {
            *most = a;
        }
    }
    let row = |(kind, (count, most)): (&str, (u32, &AssumptionRow))| AssumptionRow {
        kind: kind.to_owned(),
        detail: without_numbers(&most.detail),
        count,
    };
    let mut all: Vec<AssumptionRow> = all.into_iter().map(row).collect();
    all.sort_by_key(|a| std::cmp::Reverse(a.count));
    all
}

/// `from mimeType (44), Accept (5)` → `from mimeType, Accept`.
fn without_numbers(detail: &str) -> String {
    let mut out = String::new();
    for (i, part) in detail.split(" (").enumerate() {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        match part[digits..].strip_prefix(')') {
            Some(rest) if i > 0 && digits > 0 => out.push_str(rest),
            _ if i > 0 => out.extend([" (", part]),
            _ => out.push_str(part),
        }
    }
    out
}

#[cfg(test)]
mod tests;
