//! SPDY against HTTP/1.1: a point a page, and the stack of charts over bandwidth, round trip, loss and metric.

use super::{
    ArmLoads, Figure, Measured, Panel, Panels, Row, Sample, Series, Shape, first_byte, first_paint, gain_pct,
    pairs, plt,
};
use crate::stats;
use crate::study::Grid;

/// Arms: the published network; a grid, on first visits and on second ones.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [seed, first, second] = arms else { return Default::default() };
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
    (measured, vec![chart.into(), stack(grid, first, second).into()])
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
    // A first packet that is lost costs a page seconds: with means, few loads would speak for all.
    let gain = |arm: &ArmLoads, figure, n| {
        let both = pairs(&arm.each(n, 0, figure), &arm.each(n, 1, figure));
        let gains: Vec<f64> = both.iter().map(|pair| gain_pct(&[*pair])).collect();
        stats::median(&gains).unwrap_or(f64::NAN)
    };
    let panel = |arm: &ArmLoads, figure: fn(&Sample) -> Option<f64>, loss: usize| Panel {
        lines: (0..grid.links_kbps.len())
            .map(|link| Series {
                name: grid.link_name(link),
                points: grid.over_rtt(link, loss, |n| gain(arm, figure, n)),
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
            "What SPDY gains on HTTP, median of {} pages, {} loads each: bandwidth by round-trip time by loss by metric. The size of the gain, and its sign, are the conditions'.",
            first.pages, first.arm.runs
        ),
        x: "round-trip time, ms".into(),
        y: "gain, %".into(),
        columns: grid.losses_pct.iter().map(|pct| format!("{pct} % loss")).collect(),
        rows: metrics.iter().map(row).collect(),
    }
}
