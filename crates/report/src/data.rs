//! What the page shows, taken out of a run folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use lab::Error;
use lab::folder::KNOWN;
use lab::result::{AssumptionRow, ConnectionRow, Key, LoadOutcome, LoadRow, PageRow, RequestRow, rows};
use lab::summary::{Summary, Unit};
use lab::topology::{KnownHost, KnownRow};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::columns::{Connections, Requests};

/// What the page shows of a run.
pub struct Report {
    pub(crate) overview: Overview,
    /// One a page, in the overview's order.
    pub(crate) details: Vec<PageDetail>,
}

/// What is unpacked when the report opens.
#[derive(Serialize)]
pub(crate) struct Overview {
    pub summary: Summary,
    /// As text: a seed may be larger than what JavaScript's numbers hold exactly.
    seed: String,
    plan: String,
    environment: serde_json::Value,
    pages: Pages,
    /// By network, then transport, in the summary's order.
    cells: Vec<Vec<Cell>>,
}

#[derive(Serialize)]
struct Pages {
    id: Vec<String>,
    title: Vec<String>,
    url: Vec<String>,
    source: Vec<String>,
    hosts: Vec<u32>,
    requests: Vec<u32>,
    bytes: Vec<u64>,
    on_load_us: Vec<Option<u64>>,
}

/// One transport on one network; every list has one element a page.
#[derive(Serialize)]
struct Cell {
    loads: Vec<u32>,
    complete: Vec<u32>,
    /// Medians over the complete loads of a page.
    medians: Figures,
    /// The loads one by one, where a run is what the lab pairs and not a page.
    by_run: Option<ByRun>,
}

type Figures = BTreeMap<&'static str, Vec<Option<u64>>>;

/// Complete loads; every list has one element a load.
#[derive(Serialize)]
struct ByRun {
    page: Vec<usize>,
    run: Vec<u32>,
    figures: Figures,
}

/// What is unpacked when a page is opened.
#[derive(Serialize)]
pub(crate) struct PageDetail {
    assumptions: Vec<AssumptionRow>,
    resources: Resources,
    shown: Vec<Shown>,
}

/// What a page consists of, whatever carries it.
#[derive(Default, Serialize)]
struct Resources {
    index: Vec<u32>,
    parent: Vec<Option<u32>>,
    url: Vec<String>,
    kind: Vec<String>,
    host: Vec<String>,
    after_load: Vec<bool>,
    #[serde(skip)]
    known: BTreeMap<(u32, Option<u32>, String), u32>,
}

/// The one load whose requests are shown, of one page, on one network, over one transport.
#[derive(Serialize)]
struct Shown {
    network: usize,
    transport: usize,
    load: LoadRow,
    /// Run and PLT of all, without one where the load is incomplete.
    runs: Vec<(u32, Option<u64>)>,
    requests: Requests,
    connections: Connections,
    /// What the browser knew of the page's hosts, if it goes by that.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<Vec<KnownHost>>,
}

type Figure = fn(&LoadRow) -> Option<u64>;

/// The figures of a load that the pictures can show.
const FIGURES: [(&str, Figure); 16] = [
    ("plt_us", |l| l.plt_us),
    ("first_byte_us", |l| l.first_byte_us),
    ("first_paint_us", |l| l.first_paint_us),
    ("parsed_us", |l| l.parsed_us),
    ("finished_us", |l| l.finished_us),
    ("compute_us", |l| Some(l.compute_us)),
    ("connections", |l| Some(l.connections.into())),
    ("lookups", |l| Some(l.lookups.into())),
    ("bytes_down", |l| Some(l.bytes_down)),
    ("bytes_up", |l| Some(l.bytes_up)),
    ("packets_down", |l| Some(l.packets_down)),
    ("packets_up", |l| Some(l.packets_up)),
    ("retransmits", |l| Some(l.retransmits)),
    ("timeouts", |l| Some(l.timeouts)),
    ("overflow", |l| Some(l.overflow_down + l.overflow_up)),
    ("queue_max_down_bytes", |l| Some(l.queue_max_down_bytes)),
];

/// Takes what the page shows out of the run folder `run_dir`: `summary.json`, `plan.toml`, `environment.json`, and the
/// rows of pages, loads, requests and connections, and of what the browser knew where there are any.
///
/// Of requests and connections only those of the loads shown are held; the files may be larger than memory.
pub fn read(run_dir: &Path) -> Result<Report, Error> {
    let summary: Summary = json(&run_dir.join("summary.json"))?;
    let environment = json(&run_dir.join("environment.json"))?;
    let plan = text(&run_dir.join("plan.toml"))?;
    let page_rows = rows(&run_dir.join("pages.jsonl"))?.collect::<Result<Vec<PageRow>, _>>()?;
    let index = Index::new(&summary, &page_rows);
    let mut loads = Vec::new();
    loads.resize_with(index.cells(), Vec::new);
    for row in rows(&run_dir.join("loads.jsonl"))? {
        let row: LoadRow = row?;
        let cell = index.cell(&row.key).ok_or_else(|| stray(run_dir, "loads.jsonl", &row.key))?;
        loads[cell].push(row);
    }
    let cells = index.by_cell(|cells| Cell::new(&loads[cells], summary.unit));
    let mut details = Details::new(&index, page_rows.iter().map(|p| p.assumptions.clone()), loads);
    for row in rows(&run_dir.join("requests.jsonl"))? {
        details.push_request(&index, row?);
    }
    for row in rows(&run_dir.join("connections.jsonl"))? {
        details.push_connection(&index, row?);
    }
    let known = run_dir.join(KNOWN);
    if known.exists() {
        for row in rows(&known)? {
            details.push_known(&index, row?);
        }
    }
    let overview = Overview {
        seed: summary.seed.to_string(),
        summary,
        plan,
        environment,
        pages: Pages::new(page_rows),
        cells,
    };
    Ok(Report { overview, details: details.pages })
}

/// Where a load belongs: networks × transports × pages, in this order.
struct Index {
    networks: BTreeMap<String, usize>,
    transports: BTreeMap<String, usize>,
    pages: BTreeMap<String, usize>,
}

impl Index {
    fn new(summary: &Summary, pages: &[PageRow]) -> Self {
        fn numbered<'a>(names: impl Iterator<Item = &'a String>) -> BTreeMap<String, usize> {
            names.enumerate().map(|(i, name)| (name.clone(), i)).collect()
        }
        Self {
            networks: numbered(summary.networks.iter().map(|n| &n.network)),
            transports: numbered(summary.transports.iter()),
            pages: numbered(pages.iter().map(|p| &p.page)),
        }
    }

    fn cells(&self) -> usize {
        self.networks.len() * self.transports.len() * self.pages.len()
    }

    fn cell(&self, key: &Key) -> Option<usize> {
        let network = self.networks.get(&key.network)?;
        let transport = self.transports.get(&key.transport)?;
        Some((network * self.transports.len() + transport) * self.pages.len() + self.pages.get(&key.page)?)
    }

    /// `make` of every network and transport; it is given the range of their cells, one a page.
    fn by_cell<T>(&self, make: impl Fn(std::ops::Range<usize>) -> T) -> Vec<Vec<T>> {
        let (transports, pages) = (self.transports.len(), self.pages.len());
        let range = |n: usize, t: usize| (n * transports + t) * pages..(n * transports + t + 1) * pages;
        (0..self.networks.len()).map(|n| (0..transports).map(|t| make(range(n, t))).collect()).collect()
    }
}

impl Pages {
    fn new(rows: Vec<PageRow>) -> Self {
        let mut pages = Self {
            id: Vec::new(),
            title: Vec::new(),
            url: Vec::new(),
            source: Vec::new(),
            hosts: Vec::new(),
            requests: Vec::new(),
            bytes: Vec::new(),
            on_load_us: Vec::new(),
        };
        for row in rows {
            pages.id.push(row.page);
            pages.title.push(row.title);
            pages.url.push(row.url);
            pages.source.push(row.source);
            pages.hosts.push(row.hosts);
            pages.requests.push(row.requests);
            pages.bytes.push(row.bytes);
            pages.on_load_us.push(row.on_load_us);
        }
        pages
    }
}

impl Cell {
    /// `pages` has the loads of one page in each element.
    fn new(pages: &[Vec<LoadRow>], unit: Unit) -> Self {
        let complete: Vec<Vec<&LoadRow>> =
            pages.iter().map(|loads| loads.iter().filter(|l| is_complete(l)).collect()).collect();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let median_of =
            |loads: &[&LoadRow], figure: Figure| median(loads.iter().filter_map(|l| figure(l)).collect());
        Self {
            loads: pages.iter().map(|loads| count(loads.len())).collect(),
            complete: complete.iter().map(|loads| count(loads.len())).collect(),
            medians: figures(|figure| complete.iter().map(|loads| median_of(loads, figure)).collect()),
            by_run: (unit == Unit::Run).then(|| ByRun::new(&complete)),
        }
    }
}

impl ByRun {
    fn new(pages: &[Vec<&LoadRow>]) -> Self {
        let loads: Vec<(usize, &LoadRow)> = pages
            .iter()
            .enumerate()
            .flat_map(|(page, loads)| loads.iter().map(move |l| (page, *l)))
            .collect();
        Self {
            page: loads.iter().map(|(page, _)| *page).collect(),
            run: loads.iter().map(|(_, load)| load.key.run).collect(),
            figures: figures(|figure| loads.iter().map(|(_, load)| figure(load)).collect()),
        }
    }
}

/// Every figure by its name.
fn figures(column: impl Fn(Figure) -> Vec<Option<u64>>) -> Figures {
    FIGURES.iter().map(|(name, figure)| (*name, column(*figure))).collect()
}

fn is_complete(load: &LoadRow) -> bool {
    load.outcome == LoadOutcome::Complete
}

/// The middle value, or the mean of the two in the middle, rounded down.
fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    let upper = *values.get(values.len() / 2)?;
    Some(if values.len() % 2 == 1 { upper } else { values[values.len() / 2 - 1].midpoint(upper) })
}

/// Which load to show: of the complete ones that whose PLT is nearest to their median, the earliest of equals; the first
/// load where none is complete.
fn nearest_to_median(loads: &[LoadRow]) -> Option<usize> {
    let plt = |l: &LoadRow| l.plt_us.filter(|_| is_complete(l));
    let Some(median) = median(loads.iter().filter_map(plt).collect()) else {
        return (!loads.is_empty()).then_some(0);
    };
    let distance = |l: &LoadRow| plt(l).map(|plt| (plt.abs_diff(median), l.key.run));
    let nearest = loads.iter().enumerate().filter_map(|(i, l)| Some((distance(l)?, i))).min();
    nearest.map(|(_, i)| i)
}

/// The details of every page, and where each cell's load is within its page.
struct Details {
    pages: Vec<PageDetail>,
    /// By cell: the run shown and its place in `PageDetail::shown`.
    slots: Vec<Option<(u32, usize)>>,
}

impl Details {
    fn new(
        index: &Index,
        assumptions: impl Iterator<Item = Vec<AssumptionRow>>,
        loads: Vec<Vec<LoadRow>>,
    ) -> Self {
        let detail = |a| PageDetail { assumptions: a, resources: Resources::default(), shown: Vec::new() };
        let mut pages: Vec<PageDetail> = assumptions.map(detail).collect();
        let mut slots = Vec::with_capacity(loads.len());
        for (cell, mut loads) in loads.into_iter().enumerate() {
            let shown = &mut pages[cell % index.pages.len()].shown;
            slots.push(nearest_to_median(&loads).map(|i| {
                let cell = cell / index.pages.len();
                let runs = loads.iter().map(|l| (l.key.run, l.plt_us.filter(|_| is_complete(l)))).collect();
                let load = loads.swap_remove(i);
                let slot = (load.key.run, shown.len());
                shown.push(Shown {
                    network: cell / index.transports.len(),
                    transport: cell % index.transports.len(),
                    load,
                    runs,
                    requests: Requests::default(),
                    connections: Connections::default(),
                    known: None,
                });
                slot
            }));
        }
        Self { pages, slots }
    }

    /// The page and the shown load that a row belongs to, if it is of a load that is shown. A row without a load is one
    /// that a run was stopped in the middle of.
    fn find(&mut self, index: &Index, key: &Key) -> Option<(&mut Resources, &mut Shown)> {
        let (run, slot) = self.slots[index.cell(key)?]?;
        let page = self.pages.get_mut(*index.pages.get(&key.page)?)?;
        (run == key.run).then(|| (&mut page.resources, &mut page.shown[slot]))
    }

    fn push_request(&mut self, index: &Index, row: RequestRow) {
        if let Some((resources, shown)) = self.find(index, &row.key) {
            shown.requests.push(resources.intern(&row), row);
        }
    }

    fn push_known(&mut self, index: &Index, row: KnownRow) {
        if let Some((_, shown)) = self.find(index, &row.key) {
            shown.known = Some(row.hosts);
        }
    }

    fn push_connection(&mut self, index: &Index, row: ConnectionRow) {
        if let Some((_, shown)) = self.find(index, &row.key) {
            shown.connections.push(row);
        }
    }
}

impl Resources {
    /// The number of the resource that a request is for. A resource that another load met by another way counts again.
    fn intern(&mut self, row: &RequestRow) -> u32 {
        let next = u32::try_from(self.index.len()).expect("fewer rows than 2^32 fit in memory");
        let number = *self.known.entry((row.index, row.parent, row.url.clone())).or_insert(next);
        if number == next {
            self.index.push(row.index);
            self.parent.push(row.parent);
            self.url.push(row.url.clone());
            self.kind.push(row.kind.clone());
            self.host.push(row.host.clone());
            self.after_load.push(row.after_load);
        }
        number
    }
}

fn text(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::Io {
        action: "cannot read",
        path: path.to_owned(),
        source,
    })
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let bad = |e: serde_json::Error| Error::Row {
        file: path.to_owned(),
        line: u64::try_from(e.line()).unwrap_or(0),
        what: e.to_string(),
    };
    serde_json::from_str(&text(path)?).map_err(bad)
}

fn stray(dir: &Path, file: &str, key: &Key) -> Error {
    let Key { page, network, transport, .. } = key;
    let what =
        format!("{file} has a load of {page} on {network} over {transport}, which the run does not list");
    Error::Folder { dir: dir.to_owned(), what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_of_two_is_between_them_and_of_none_is_none() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![5]), Some(5));
        assert_eq!(median(vec![9, 4]), Some(6), "rounded down");
        assert_eq!(median(vec![3, 1, 2]), Some(2));
        assert_eq!(median(vec![u64::MAX, u64::MAX]), Some(u64::MAX), "without overflow");
    }
}
