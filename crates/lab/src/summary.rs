//! What a run says, in one value: the terminal prints it, `--json` prints it, `summary.json` keeps it, the report
//! draws it.

use serde::{Deserialize, Serialize};

use crate::result::{AssumptionRow, ProblemRow};
use crate::stats::Estimate;

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
    /// A run, as there is only one page.
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
}

/// One transport on one network. Means are over complete loads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TransportSummary {
    /// `http1`, `spdy3.1`, …
    pub transport: String,
    /// Loads done.
    pub loads: u64,
    /// Loads that reached `onload`.
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
