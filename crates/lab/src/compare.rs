//! Two transports, pair by pair.
//!
//! A pair is one page over both transports on one network, each with the median of its runs; or, where there is only
//! one page, one run over both. Both loads of a run had the same seed. A load in which something is missing leaves its
//! whole run out.

use std::collections::BTreeMap;

use crate::result::{AheadRow, LoadOutcome, LoadRow, PageRow, Phases, UnaskedRow};
use crate::stats::{mean_estimate, median, median_estimate, round, sign_test};
use crate::summary::{Comparison, PagePair, Unit};

/// What a comparison needs of a load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Load {
    /// Index of its page.
    page: u32,
    run: u32,
    /// Everything was fetched, and `onload` fired.
    pub complete: bool,
    pub plt_us: u64,
    pub first_paint_us: Option<u64>,
    pub failed: u32,
    pub connections: u32,
    pub bytes_down: u64,
    pub bytes_up: u64,
    pub retransmits: u64,
    pub timeouts: u64,
    pub overflows: u64,
    pub critical: Phases,
    pub ahead: Option<AheadRow>,
    pub unasked: Option<UnaskedRow>,
}

impl Load {
    /// The load of the `page`-th page that `row` tells of.
    pub fn new(page: u32, row: &LoadRow) -> Self {
        Self {
            page,
            run: row.key.run,
            complete: row.outcome == LoadOutcome::Complete && row.plt_us.is_some(),
            plt_us: row.plt_us.unwrap_or_default(),
            first_paint_us: row.first_paint_us,
            failed: row.failed,
            connections: row.connections,
            bytes_down: row.bytes_down,
            bytes_up: row.bytes_up,
            retransmits: row.retransmits,
            timeouts: row.timeouts,
            overflows: row.overflow_down + row.overflow_up,
            critical: row.critical.unwrap_or_default(),
            ahead: row.ahead,
            unasked: row.unasked,
        }
    }
}

/// How many pages are named as gaining or losing most.
const EXTREMES: usize = 5;

/// A figure of `loads` in milliseconds, one an observation.
pub(crate) fn page_medians(loads: &[&Load], unit: Unit, figure: &dyn Fn(&Load) -> Option<u64>) -> Vec<f64> {
    observations(loads.iter().filter_map(|l| Some((**l, figure(l)? as f64 / 1e3))), unit)
        .into_values()
        .collect()
}

/// The median of each observation: a page, or a run of one page.
fn observations(figures: impl Iterator<Item = (Load, f64)>, unit: Unit) -> BTreeMap<(u32, u32), f64> {
    let mut all: BTreeMap<(u32, u32), Vec<f64>> = BTreeMap::new();
    for (load, figure) in figures {
        let run = if unit == Unit::Run { load.run } else { 0 };
        all.entry((load.page, run)).or_default().push(figure);
    }
    all.into_iter().filter_map(|(key, values)| Some((key, median(&values)?))).collect()
}

/// Compares the loads of two transports, named in the same order. Sentences are left to the caller.
pub(crate) fn compare(
    names: (&str, &str),
    (first, other): (&[Load], &[Load]),
    pages: &[PageRow],
    unit: Unit,
) -> Comparison {
    let complete = |loads: &[Load]| -> BTreeMap<(u32, u32), Load> {
        loads.iter().filter(|l| l.complete).map(|l| ((l.page, l.run), *l)).collect()
    };
    let (first, other) = (complete(first), complete(other));
    let both = |a: &BTreeMap<(u32, u32), Load>, b: &BTreeMap<(u32, u32), Load>| {
        let common = a.iter().filter(|(key, _)| b.contains_key(key));
        observations(common.map(|(_, l)| (*l, l.plt_us as f64 / 1e3)), unit)
    };
    let other_ms = both(&other, &first);
    let pairs: Vec<PagePair> = both(&first, &other)
        .into_iter()
        .zip(other_ms.into_values())
        .map(|(((page, run), first_ms), other_ms)| PagePair {
            page: pages[page as usize].page.clone(),
            run: (unit == Unit::Run).then_some(run),
            first_ms: round(first_ms, 3),
            other_ms: round(other_ms, 3),
            speedup_pct: if first_ms > 0.0 { (first_ms - other_ms) / first_ms * 100.0 } else { 0.0 },
        })
        .collect();
    let speedups: Vec<f64> = pairs.iter().map(|p| p.speedup_pct).collect();
    let faster = speedups.iter().filter(|s| **s > 0.0).count() as u32;
    let slower = speedups.iter().filter(|s| **s < 0.0).count() as u32;
    let (gains, losses) = extremes(&pairs);
    Comparison {
        first: names.0.to_owned(),
        other: names.1.to_owned(),
        pairs: pairs.len() as u32,
        faster,
        slower,
        mean_speedup_pct: mean_estimate(&speedups).map(|e| e.rounded(3)),
        median_speedup_pct: median_estimate(&speedups).map(|e| e.rounded(3)),
        sign_test_p: sign_test(faster, slower).map(significant),
        gains,
        losses,
        why: Vec::new(),
        published: None,
    }
}

/// Those that gained most and those that lost most; nobody who lost is among the gains.
fn extremes(pairs: &[PagePair]) -> (Vec<PagePair>, Vec<PagePair>) {
    let mut sorted: Vec<PagePair> = pairs.to_vec();
    // Equal gains stay in the plan's order.
    sorted.sort_by(|a, b| b.speedup_pct.total_cmp(&a.speedup_pct));
    for pair in &mut sorted {
        pair.speedup_pct = round(pair.speedup_pct, 3);
    }
    let gains = sorted.iter().filter(|p| p.speedup_pct > 0.0).take(EXTREMES).cloned().collect();
    let losses = sorted.iter().rev().filter(|p| p.speedup_pct < 0.0).take(EXTREMES).cloned().collect();
    (gains, losses)
}

/// Three significant digits: a probability may be tiny, and its last bits differ between machines.
fn significant(p: f64) -> f64 {
    if p <= 0.0 {
        return 0.0;
    }
    format!("{p:.2e}").parse().unwrap_or(p)
}
