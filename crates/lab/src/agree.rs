//! How far the virtual world is from the live one, on the pages at hand.
//!
//! The same plan is raced in both. A *cell* is one page on one network over one transport; each world is represented in it by the
//! median of its runs. What is compared, cell by cell: the page load time, the first byte, connections, bytes; where on the
//! critical path the time went; and which transport is faster. What is compared request by request: the phases of each, of runs
//! of one number.
//!
//! The live world is what is right: errors are of the virtual one, positive where it is slower.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::folder;
use crate::plan::Plan;
use crate::result::{LiveRow, LoadOutcome, LoadRow, Phases, RequestRow, rows};
use crate::setting::World;
use crate::stats::{mean, median, round};

/// The folder of the virtual world's run, in the folder of a comparison.
pub const VIRTUAL: &str = "virtual";
/// The live world's.
pub const LIVE: &str = "live";
/// The [`Agreement`].
pub const AGREEMENT: &str = "agree.json";

/// Transports are taken to differ where the live world says that one is faster by more than this, percent.
pub const CLEARLY_PCT: f64 = 5.0;

/// How far two worlds are apart.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Agreement {
    /// The transports, in the plan's order.
    pub transports: Vec<String>,
    /// Loads of each page on each network over each transport: in the virtual world, and in the live one.
    pub runs: [u32; 2],
    /// Cells that one world or the other did not complete: they are not compared.
    pub incomplete: Vec<String>,
    /// All cells, in the plan's order.
    pub cells: Vec<Cell>,
    /// All cells together; those in which no queue overflowed in either world, and the others; then those of each network and
    /// transport.
    pub groups: Vec<Group>,
    /// Which transport is faster.
    pub faster: Faster,
    /// Phases of requests.
    pub requests: Vec<PhaseError>,
    /// What of the plan the live world could not do, and in how many loads.
    pub unmet: Vec<(String, u32)>,
    /// How late the live world's emulator delivered packets: the median load's 99th percentile, and the worst load's; µs.
    pub late_p99_us: Option<[f64; 2]>,
}

/// One page on one network over one transport: the virtual world's figure, then the live one's.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// The page's id.
    pub page: String,
    /// The network's name.
    pub network: String,
    /// The transport.
    pub transport: String,
    /// Page load time, ms.
    pub plt_ms: [f64; 2],
    /// The smallest and the largest page load time of the live runs, ms.
    pub live_range_ms: [f64; 2],
    /// First byte of the main document, ms.
    pub first_byte_ms: [f64; 2],
    /// Connections opened.
    pub connections: [f64; 2],
    /// IP kilobytes towards the client.
    pub kb_down: [f64; 2],
    /// Packets dropped by full queues.
    pub overflows: [f64; 2],
    /// Segments sent again.
    pub retransmits: [f64; 2],
    /// Where the time went: ms of each phase of [`PHASES`].
    pub critical_ms: [[f64; PHASES.len()]; 2],
}

/// Parts of a page load time, as [`crate::critical`] splits it.
pub const PHASES: [&str; 7] = ["dns", "connect", "tls", "queued", "wait", "receive", "compute"];

impl Cell {
    /// What the virtual world's page load time is off by, percent of the live one's.
    pub fn error_pct(&self) -> f64 {
        100.0 * (self.plt_ms[0] / self.plt_ms[1] - 1.0)
    }
}

/// Errors of some cells.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Group {
    /// The network; `None` for all.
    pub network: Option<String>,
    /// The transport; `None` for all.
    pub transport: Option<String>,
    /// Whether a queue overflowed in the median load of either world, which makes a load chaotic; `None` for all.
    pub overflowed: Option<bool>,
    /// How many cells.
    pub cells: u32,
    /// Mean error with its sign, percent: what the virtual world is biased by.
    pub bias_pct: f64,
    /// Median of the absolute errors of the page load time, percent.
    pub median_pct: f64,
    /// Their 95th percentile.
    pub p95_pct: f64,
    /// The largest.
    pub max_pct: f64,
    /// Median of the absolute errors of the first byte, percent.
    pub first_byte_median_pct: f64,
    /// Where the virtual world spends more (positive) or less time than the live one, ms a load, phase by phase.
    pub parts_ms: [f64; PHASES.len()],
    /// Cells of live runs whose range holds the virtual world's figure; of those with more than one live run.
    pub within_range: Option<[u32; 2]>,
}

/// Whether both worlds agree on which transport is faster: pairs of cells of one page and network, the first transport's and another's.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Faster {
    /// Pairs.
    pub pairs: u32,
    /// Pairs in which one is faster by more than [`CLEARLY_PCT`] in the live world.
    pub clear: u32,
    /// Of these, pairs in which it is the faster one in the virtual world, too.
    pub agree: u32,
}

/// How far one phase of requests is apart.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PhaseError {
    /// `discovered`, `dns`, `connect`, `tls`, `queued`, `wait` or `receive`.
    pub phase: String,
    /// Requests that have it in both worlds.
    pub requests: u32,
    /// Mean in both worlds, ms.
    pub mean_ms: [f64; 2],
    /// Median of the absolute differences, ms.
    pub median_ms: f64,
    /// Their 95th percentile, ms.
    pub p95_ms: f64,
}

/// Compares the two runs in `dir`.
///
/// # Errors
/// If one is not there, or they are not of one plan but for the world and the number of runs.
pub fn compare(dir: &Path) -> Result<Agreement, Error> {
    let dirs = [dir.join(VIRTUAL), dir.join(LIVE)];
    let plans = [read_plan(&dirs[0])?, read_plan(&dirs[1])?];
    let alike = Plan { world: World::Virtual, runs: plans[0].runs, ..plans[1].clone() };
    if plans[1].world != World::Live || alike != plans[0] {
        let what = "does not hold the same plan in both worlds; choose another folder with --out".to_owned();
        return Err(Error::Folder { dir: dir.to_owned(), what });
    }
    let loads = [Loads::read(&dirs[0])?, Loads::read(&dirs[1])?];
    let (cells, incomplete) = cells(&loads);
    let (unmet, late_p99_us) = live_notes(&dirs[1])?;
    let plan = &plans[0];
    let mut groups: Vec<Group> =
        [None, Some(false), Some(true)].map(|o| Group::of(None, None, o, &cells)).into();
    for network in &plan.networks {
        for transport in &plan.transports {
            groups.push(Group::of(Some(&network.name), Some(transport), None, &cells));
        }
    }
    groups.retain(|group| group.cells > 0);
    Ok(Agreement {
        transports: plan.transports.clone(),
        runs: [plans[0].runs, plans[1].runs],
        faster: faster(&plan.transports, &cells),
        requests: requests(&dirs)?,
        incomplete,
        cells,
        groups,
        unmet,
        late_p99_us,
    })
}

fn read_plan(dir: &Path) -> Result<Plan, Error> {
    let text = String::from_utf8_lossy(&folder::read(dir, folder::PLAN)?).into_owned();
    Plan::parse(&text, &dir.join(folder::PLAN).display().to_string())
}

/// Page, network and transport, with a number that keeps the plan's order.
type CellKey = (String, String, String);

/// The loads of one world, cell by cell in their order.
struct Loads {
    order: Vec<CellKey>,
    rows: BTreeMap<CellKey, Vec<LoadRow>>,
}

impl Loads {
    fn read(dir: &Path) -> Result<Self, Error> {
        let mut loads = Self { order: Vec::new(), rows: BTreeMap::new() };
        for row in rows::<LoadRow>(&dir.join(folder::LOADS))? {
            let row = row?;
            let key = (row.key.page.clone(), row.key.network.clone(), row.key.transport.clone());
            let entry = loads.rows.entry(key.clone()).or_default();
            if entry.is_empty() {
                loads.order.push(key);
            }
            entry.push(row);
        }
        Ok(loads)
    }
}

fn cells(loads: &[Loads; 2]) -> (Vec<Cell>, Vec<String>) {
    let (mut cells, mut incomplete) = (Vec::new(), Vec::new());
    for key in &loads[1].order {
        let Some(both) = loads[0].rows.get(key).map(|rows| [rows, &loads[1].rows[key]]) else { continue };
        let whole = |row: &&LoadRow| row.outcome == LoadOutcome::Complete && row.plt_us.is_some();
        let complete = both.map(|rows| rows.iter().filter(whole).collect::<Vec<_>>());
        let (page, network, transport) = key.clone();
        for (world, (complete, all)) in ["virtual", "live"].iter().zip(complete.iter().zip(both)) {
            if complete.len() < all.len() {
                let why = all.iter().find_map(|row| row.reason.clone()).unwrap_or_default();
                let (of, all) = (all.len() - complete.len(), all.len());
                incomplete.push(format!(
                    "{page} on {network} over {transport}: {of} of {all} {world} loads incomplete: {why}"
                ));
            }
        }
        if complete.iter().all(|rows| !rows.is_empty()) {
            cells.push(cell((page, network, transport), &complete));
        }
    }
    (cells, incomplete)
}

fn cell((page, network, transport): CellKey, loads: &[Vec<&LoadRow>; 2]) -> Cell {
    let of = |figure: &dyn Fn(&LoadRow) -> f64| {
        [0, 1].map(|world| {
            let figures: Vec<f64> = loads[world].iter().map(|row| figure(row)).collect();
            round(median(&figures).unwrap_or_default(), 3)
        })
    };
    let ms = |us: Option<u64>| us.unwrap_or_default() as f64 / 1e3;
    let plt = || loads[1].iter().map(|row| ms(row.plt_us));
    let parts = [0, 1].map(|world| {
        [0, 1, 2, 3, 4, 5, 6].map(|i| {
            let part = |row: &&LoadRow| row.critical.map(|critical| phases_ms(&critical)[i]);
            round(mean(&loads[world].iter().filter_map(part).collect::<Vec<_>>()).unwrap_or_default(), 3)
        })
    });
    Cell {
        page,
        network,
        transport,
        plt_ms: of(&|row| ms(row.plt_us)),
        live_range_ms: [plt().fold(f64::INFINITY, f64::min), plt().fold(0.0, f64::max)],
        first_byte_ms: of(&|row| ms(row.first_byte_us)),
        connections: of(&|row| f64::from(row.connections)),
        kb_down: of(&|row| row.bytes_down as f64 / 1e3),
        overflows: of(&|row| (row.overflow_down + row.overflow_up) as f64),
        retransmits: of(&|row| row.retransmits as f64),
        critical_ms: parts,
    }
}

fn phases_ms(p: &Phases) -> [f64; PHASES.len()] {
    [p.dns_us, p.connect_us, p.tls_us, p.queued_us, p.wait_us, p.receive_us, p.compute_us]
        .map(|us| us as f64 / 1e3)
}

impl Group {
    fn of(network: Option<&str>, transport: Option<&str>, overflowed: Option<bool>, cells: &[Cell]) -> Self {
        let fits = |cell: &&Cell| {
            network.is_none_or(|n| cell.network == n)
                && transport.is_none_or(|t| cell.transport == t)
                && overflowed.is_none_or(|o| o == cell.overflows.iter().any(|drops| *drops > 0.0))
        };
        let cells: Vec<&Cell> = cells.iter().filter(fits).collect();
        let signed: Vec<f64> = cells.iter().map(|cell| cell.error_pct()).collect();
        let errors = sorted(signed.iter().map(|e| e.abs()).collect());
        let first_byte =
            cells.iter().map(|cell| 100.0 * (cell.first_byte_ms[0] / cell.first_byte_ms[1] - 1.0).abs());
        let parts_ms = [0, 1, 2, 3, 4, 5, 6].map(|i| {
            let difference = |cell: &&Cell| cell.critical_ms[0][i] - cell.critical_ms[1][i];
            round(mean(&cells.iter().map(difference).collect::<Vec<_>>()).unwrap_or_default(), 1)
        });
        let ranged = cells.iter().filter(|cell| cell.live_range_ms[0] < cell.live_range_ms[1]);
        let held = |cell: &&&Cell| (cell.live_range_ms[0]..=cell.live_range_ms[1]).contains(&cell.plt_ms[0]);
        let within = [ranged.clone().filter(held).count() as u32, ranged.count() as u32];
        Self {
            network: network.map(str::to_owned),
            transport: transport.map(str::to_owned),
            overflowed,
            cells: cells.len() as u32,
            bias_pct: round(mean(&signed).unwrap_or_default(), 2),
            median_pct: round(median(&errors).unwrap_or_default(), 2),
            p95_pct: round(percentile(&errors, 0.95), 2),
            max_pct: round(errors.last().copied().unwrap_or_default(), 2),
            first_byte_median_pct: round(median(&first_byte.collect::<Vec<_>>()).unwrap_or_default(), 2),
            parts_ms,
            within_range: (within[1] > 0).then_some(within),
        }
    }
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The smallest value that is not exceeded by this share of the sorted `values`; 0 if there are none.
fn percentile(values: &[f64], share: f64) -> f64 {
    let at = (share * values.len() as f64).ceil() as usize;
    values.get(at.saturating_sub(1)).copied().unwrap_or_default()
}

fn faster(transports: &[String], cells: &[Cell]) -> Faster {
    let mut faster = Faster::default();
    let first = cells.iter().filter(|cell| Some(&cell.transport) == transports.first());
    for a in first {
        let rivals = cells
            .iter()
            .filter(|b| (&b.page, &b.network) == (&a.page, &a.network) && b.transport != a.transport);
        for b in rivals {
            // How much less time b takes than a, percent.
            let gain = |world: usize| 100.0 * (1.0 - b.plt_ms[world] / a.plt_ms[world]);
            faster.pairs += 1;
            if gain(1).abs() > CLEARLY_PCT {
                faster.clear += 1;
                faster.agree += u32::from(gain(0).is_sign_positive() == gain(1).is_sign_positive());
            }
        }
    }
    faster
}

/// Requests that wait for a phase in one world and not in the other are counted with 0 in the other.
fn requests(dirs: &[std::path::PathBuf; 2]) -> Result<Vec<PhaseError>, Error> {
    type RequestKey = (String, String, String, u32, u32);
    let key = |row: &RequestRow| -> RequestKey {
        (row.key.page.clone(), row.key.network.clone(), row.key.transport.clone(), row.key.run, row.index)
    };
    let mut virtually = BTreeMap::new();
    for row in rows::<RequestRow>(&dirs[0].join(folder::REQUESTS))? {
        let row = row?;
        virtually.insert(key(&row), request_phases(&row));
    }
    let mut pairs: [Vec<[f64; 2]>; REQUEST_PHASES.len()] = Default::default();
    for row in rows::<RequestRow>(&dirs[1].join(folder::REQUESTS))? {
        let row = row?;
        let Some(ours) = virtually.get(&key(&row)) else { continue };
        for (pairs, (a, b)) in pairs.iter_mut().zip(ours.iter().zip(request_phases(&row))) {
            if a.is_some() || b.is_some() {
                pairs.push([a.unwrap_or_default(), b.unwrap_or_default()]);
            }
        }
    }
    let phase = |(name, pairs): (&&str, Vec<[f64; 2]>)| {
        let apart = sorted(pairs.iter().map(|[a, b]| (a - b).abs()).collect());
        let of = |world: usize| {
            round(mean(&pairs.iter().map(|pair| pair[world]).collect::<Vec<_>>()).unwrap_or_default(), 2)
        };
        PhaseError {
            phase: (*name).to_owned(),
            requests: pairs.len() as u32,
            mean_ms: [of(0), of(1)],
            median_ms: round(median(&apart).unwrap_or_default(), 2),
            p95_ms: round(percentile(&apart, 0.95), 2),
        }
    };
    Ok(REQUEST_PHASES.iter().zip(pairs).map(phase).collect())
}

/// What a request's life is split into, in order; the first is the moment of its discovery.
const REQUEST_PHASES: [&str; 7] = ["discovered", "dns", "connect", "tls", "queued", "wait", "receive"];

fn request_phases(row: &RequestRow) -> [Option<f64>; REQUEST_PHASES.len()] {
    let ms = |from: Option<u64>, to: Option<u64>| Some((to? as f64 - from? as f64) / 1e3);
    let known = [
        ms(row.dns_start_us, row.dns_end_us),
        ms(row.connect_start_us, row.connect_end_us),
        ms(row.connect_end_us, row.tls_end_us),
    ];
    let spent: f64 = known.iter().flatten().sum();
    let queued = ms(Some(row.discovered_us), row.sent_us).map(|total| (total - spent).max(0.0));
    [
        Some(row.discovered_us as f64 / 1e3),
        known[0],
        known[1],
        known[2],
        queued,
        ms(row.sent_us, row.first_byte_us),
        ms(row.first_byte_us, row.complete_us),
    ]
}

pub(crate) type Notes = (Vec<(String, u32)>, Option<[f64; 2]>);

/// What a live run says of itself: what could not be done as asked, with the number of loads; and how late packets were.
pub(crate) fn live_notes(dir: &Path) -> Result<Notes, Error> {
    let (mut unmet, mut late) = (BTreeMap::<String, u32>::new(), Vec::new());
    for row in rows::<LiveRow>(&dir.join(folder::LIVE))? {
        let row = row?;
        for what in row.unmet {
            *unmet.entry(what).or_default() += 1;
        }
        late.extend(row.down.late_p99_us);
    }
    let late = sorted(late);
    let late = late.last().map(|worst| [round(median(&late).unwrap_or_default(), 1), *worst]);
    Ok((unmet.into_iter().collect(), late))
}

#[cfg(test)]
mod tests;
