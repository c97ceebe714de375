//! SPDY against HTTP/1.1: a point a page, and the stack of charts over bandwidth, round trip, loss and metric.

use super::{
    ArmLoads, Figure, Measured, Panel, Panels, Row, Sample, Series, Shape, Table, counted, first_byte,
    first_paint, gain_pct, mean, means, pairs, plt,
};
use crate::setting::Line;
use crate::stats;
use crate::study::{Grid, rounded};

/// Arms: the published network; a grid, on first visits and on second ones; the published network with something changed.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [seed, first, second, changed @ ..] = arms else { return Default::default() };
    let Some(grid) = &first.grid else { return Default::default() };
    let scatter = pairs(&seed.each(0, 0, plt), &seed.each(0, 1, plt));
    let faster = scatter.iter().filter(|(http, spdy)| spdy < http).count();
    let measured = vec![
        ("speedup_pct", gain_pct(&scatter)),
        ("faster_pct", 100.0 * faster as f64 / scatter.len() as f64),
    ];
    let chart = Figure {
        caption: "A point a page. Below the red line SPDY is faster.".into(),
        x: "HTTP page load time, ms".into(),
        y: "SPDY, ms".into(),
        shape: Shape::Scatter,
        series: vec![Series { name: String::new(), points: scatter }],
    };
    (measured, vec![chart.into(), conditions(seed, changed).into(), stack(grid, first, second).into()])
}

/// What of HTTP's time the line does not need for SPDY's bytes, percent, mean over pages: nothing that takes HTTP's place can gain more.
fn room_pct(arm: &ArmLoads) -> f64 {
    let Line::Kbps(kbps) = arm.networks[0].down else { return f64::NAN };
    let both = pairs(&arm.each(0, 0, plt), &arm.each(0, 1, |s| Some(s.fate.bytes_down as f64)));
    mean(both.iter().map(|(http, bytes)| 100.0 * (1.0 - bytes * 8.0 / kbps as f64 / http)))
}

/// What SPDY gains on an arm's first network.
fn gain(arm: &ArmLoads) -> f64 {
    gain_pct(&pairs(&arm.each(0, 0, plt), &arm.each(0, 1, plt)))
}

/// The line's share, the condition that moves the gain most, and the ends of the stack.
pub(in crate::study) fn turns(arms: &[ArmLoads]) -> Vec<String> {
    let [seed, first, _, changed @ ..] = arms else { return Vec::new() };
    let mut out = vec![format!(
        "On the published network SPDY's bytes take the line for all but {:.0} % of HTTP's time: no transport can gain more there.",
        room_pct(seed)
    )];
    if let Some(most) = changed.iter().max_by(|a, b| gain(a).total_cmp(&gain(b))) {
        out.push(format!(
            "Of what was changed, most comes of \"{}\": {:.1} % instead of {:.1}, where the line leaves room for {:.0} %.",
            most.arm.name,
            gain(most),
            gain(seed),
            room_pct(most)
        ));
    }
    let Some(grid) = &first.grid else { return out };
    let mut cells: Vec<(f64, &str)> = first
        .networks
        .iter()
        .enumerate()
        .map(|(n, cell)| (median_gain(first, plt, n), &*cell.name))
        .collect();
    cells.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let [low, .., high] = cells[..] {
        out.push(format!(
            "Over the stack's {} conditions the median page gains from {:.1} % ({}) to {:.1} % ({}; kbit/s down / up / ms / % lost); SPDY is the slower one in {}.",
            grid.links_kbps.len() * grid.rtts_ms.len() * grid.losses_pct.len(),
            low.0,
            low.1,
            high.0,
            high.1,
            cells.iter().filter(|(gain, _)| *gain < 0.0).count()
        ));
    }
    out
}

/// The median page's gain in one cell: a first packet that is lost costs a page seconds, so that with means few loads would speak
/// for all.
fn median_gain(arm: &ArmLoads, figure: fn(&Sample) -> Option<f64>, cell: usize) -> f64 {
    let both = pairs(&arm.each(cell, 0, figure), &arm.each(cell, 1, figure));
    let gains: Vec<f64> = both.iter().map(|pair| gain_pct(&[*pair])).collect();
    stats::median(&gains).unwrap_or(f64::NAN)
}

/// What becomes of the gain if something of the conditions is changed, a row each.
fn conditions(seed: &ArmLoads, changed: &[ArmLoads]) -> Table {
    let row = |name: &str, arm: &ArmLoads| {
        let both = pairs(&arm.each(0, 0, plt), &arm.each(0, 1, plt));
        let (http, spdy) = means(&both);
        let faster = both.iter().filter(|(http, spdy)| spdy < http).count();
        let faster = 100.0 * faster as f64 / both.len() as f64;
        let figures = [http, spdy, gain_pct(&both), faster, room_pct(arm)].map(rounded);
        std::iter::once(name.to_owned()).chain(figures).collect()
    };
    let rows = changed.iter().map(|arm| row(&arm.arm.name, arm));
    Table {
        caption: "What the gain depends on: the published conditions, and the same with something changed; means over pages. The last column is what the line \
                  leaves: the part of HTTP's time in which it is not needed for SPDY's bytes."
            .into(),
        head: ["", "HTTP, ms", "SPDY, ms", "gain, %", "pages faster, %", "room for a gain, %"].map(str::to_owned).to_vec(),
        rows: std::iter::once(row("as published", seed)).chain(rows).collect(),
    }
}

/// A row a metric, a column a loss, a line a link.
fn stack(grid: &Grid, first: &ArmLoads, second: &ArmLoads) -> Panels {
    type Metric<'a> = (&'a str, &'a ArmLoads, fn(&Sample) -> Option<f64>);
    let metrics: [Metric<'_>; 4] = [
        ("page load time, first visit", first, plt),
        ("page load time, second visit", second, plt),
        ("first render, first visit", first, first_paint),
        ("first byte, first visit", first, first_byte),
    ];
    let panel = |arm: &ArmLoads, figure: fn(&Sample) -> Option<f64>, loss: usize| Panel {
        lines: (0..grid.links_kbps.len())
            .map(|link| Series {
                name: grid.link_name(link),
                points: grid.over_rtt(link, loss, |n| median_gain(arm, figure, n)),
            })
            .collect(),
        behind: Vec::new(),
    };
    let row = |(name, arm, figure): &Metric<'_>| Row {
        name: (*name).to_owned(),
        panels: (0..grid.losses_pct.len()).map(|loss| panel(arm, *figure, loss)).collect(),
    };
    Panels {
        caption: format!(
            "What SPDY gains on HTTP, median of {}, {} each: bandwidth by round-trip time by loss by metric. The size of the gain, and its sign, are the conditions'.",
            counted(first.pages, "page"),
            counted(first.arm.runs as usize, "load")
        ),
        x: "round-trip time, ms".into(),
        y: "gain, %".into(),
        columns: grid.losses_pct.iter().map(|pct| format!("{pct} % loss")).collect(),
        rows: metrics.iter().map(row).collect(),
    }
}
