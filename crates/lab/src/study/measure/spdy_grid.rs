//! The SPDY whitepaper's tables, row by row: what carried the pages, over loss, and over round-trip time.

use super::{
    ArmLoads, Measured, Panel, Panels, Picture, Row, Series, Table, gain_of_means_pct, mean, means, pairs,
    plt,
};
use crate::published::{Pair, WHITEPAPER_LOSSES, WHITEPAPER_MEANS, WHITEPAPER_RTTS};
use crate::study::{Grid, rounded};

/// The keys of the gains on DSL and on cable of the rows of [`WHITEPAPER_MEANS`] but the first, which is HTTP.
const CARRIERS: [[&str; 2]; WHITEPAPER_MEANS.len() - 1] = [
    ["dsl_several_pct", "cable_several_pct"],
    ["dsl_one_pct", "cable_one_pct"],
    ["dsl_push_pct", "cable_push_pct"],
    ["dsl_hint_pct", "cable_hint_pct"],
    ["dsl_tls_pct", "cable_tls_pct"],
    ["dsl_prefetch_pct", "cable_prefetch_pct"],
];

const LOSS_KEYS: [&str; WHITEPAPER_LOSSES.len()] =
    ["loss_0_pct", "loss_05_pct", "loss_1_pct", "loss_15_pct", "loss_2_pct", "loss_25_pct"];

const RTT_KEYS: [&str; WHITEPAPER_RTTS.len()] =
    ["rtt_20_pct", "rtt_40_pct", "rtt_60_pct", "rtt_80_pct", "rtt_120_pct", "rtt_160_pct", "rtt_200_pct"];

/// Arms: HTTP and SPDY to several domains on DSL and cable; SPDY to one domain; the same over TLS; to one domain with push and with hints;
/// over TLS with prefetch; HTTP and SPDY over losses; SPDY to one domain over the same; HTTP and SPDY over round-trip times; and those
/// of [`turns`]. The grids have cable first.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [several, one, tls, push, hint, prefetch, losses, one_over_losses, trips, ..] = arms else {
        return Default::default();
    };
    let (Some(loss_grid), Some(rtt_grid)) = (&losses.grid, &trips.grid) else { return Default::default() };
    let spdy = |arm: &ArmLoads, n: usize| arm.each(n, usize::from(std::ptr::eq(arm, several)), plt);
    // In the order of the published rows.
    let carriers = [several, one, push, hint, tls, prefetch]
        .map(|arm| [0, 1].map(|n| pairs(&several.each(n, 0, plt), &spdy(arm, n))));
    let on = |arm: &ArmLoads, n: usize| pairs(&arm.each(n, 0, plt), &arm.each(n, 1, plt));
    // By the value, not by its place: a grid may be thinned, and a row without its cell is then not measured.
    let at_loss = |p: &Pair| {
        let loss = loss_grid.losses_pct.iter().position(|pct| *pct == p.at);
        loss.map(|loss| on(losses, loss_grid.cell(0, 0, loss)))
    };
    let at_rtt = |p: &Pair| {
        let rtt = rtt_grid.rtts_ms.iter().position(|ms| *ms == p.at);
        rtt.map(|rtt| on(trips, rtt_grid.cell(0, rtt, 0)))
    };
    let by_loss: Vec<_> = WHITEPAPER_LOSSES.iter().map(at_loss).collect();
    let by_rtt: Vec<_> = WHITEPAPER_RTTS.iter().map(at_rtt).collect();
    let mut measured = Vec::new();
    for (keys, both) in CARRIERS.iter().zip(&carriers) {
        measured.extend(keys.iter().zip(both).map(|(key, both)| (*key, gain_of_means_pct(both))));
    }
    for (keys, rows) in [(&LOSS_KEYS[..], &by_loss), (&RTT_KEYS[..], &by_rtt)] {
        let made = keys.iter().zip(rows).filter_map(|(key, both)| Some((*key, both.as_deref()?)));
        measured.extend(made.map(|(key, both)| (key, gain_of_means_pct(both))));
    }
    let pictures = vec![
        means_table(&carriers).into(),
        pairs_table(
            "Means by loss, on cable at 20 ms, in ms.",
            "loss each way, %",
            &WHITEPAPER_LOSSES,
            &by_loss,
        )
        .into(),
        pairs_table(
            "Means by round-trip time, on cable without loss, in ms.",
            "round-trip time, ms",
            &WHITEPAPER_RTTS,
            &by_rtt,
        )
        .into(),
        over_losses(losses, one_over_losses, loss_grid),
        over_trips(trips, rtt_grid),
    ];
    (measured, pictures)
}

/// How much loss SPDY bears; and the pages and the HTTP of other years. Of [`measure`]'s arms the last three: HTTP and SPDY on pages of
/// 2010, SPDY on these to one domain, and HTTP on these with two connections a host.
pub(in crate::study) fn turns(arms: &[ArmLoads]) -> Vec<String> {
    let [.., losses, one, _, of_2010, one_of_2010, two_of_2010] = arms else { return Vec::new() };
    let Some(grid) = &losses.grid else { return Vec::new() };
    let bears = |rtt: usize, gain: &dyn Fn(usize) -> f64| {
        let gains = grid.over_loss(0, rtt, gain);
        let most = gains.iter().take_while(|(_, gain)| *gain > 0.0).last();
        most.map_or_else(
            || "at none".to_owned(),
            |(loss, gain)| format!("up to {loss} % (by {gain:.0} % there)"),
        )
    };
    let http = |n: usize| losses.each(n, 0, plt);
    let mut out: Vec<String> = (0..grid.rtts_ms.len())
        .map(|rtt| {
            format!(
                "On {} at {} ms, of the losses tried, SPDY to several domains gains {}, to one {}.",
                grid.link_name(0),
                grid.rtts_ms[rtt],
                bears(rtt, &|n| gain_of_means_pct(&pairs(&http(n), &losses.each(n, 1, plt)))),
                bears(rtt, &|n| gain_of_means_pct(&pairs(&http(n), &one.each(n, 0, plt))))
            )
        })
        .collect();
    let gains = |from: &ArmLoads, to: &ArmLoads, transport: usize| {
        let gain = |n| gain_of_means_pct(&pairs(&from.each(n, 0, plt), &to.each(n, transport, plt)));
        format!("{:.0} and {:.0} %", gain(0), gain(1))
    };
    out.push(format!(
        "On pages of 2010, with half as many requests, SPDY gains on DSL and cable {} to several domains, {} to one; beside HTTP with two \
         connections a host, as browsers had until 2008, {} and {}.",
        gains(of_2010, of_2010, 1),
        gains(of_2010, one_of_2010, 0),
        gains(two_of_2010, of_2010, 1),
        gains(two_of_2010, one_of_2010, 0)
    ));
    out
}

/// Page load times without and with SPDY, of every load.
type Both = Vec<(f64, f64)>;

fn means_table(carriers: &[[Both; 2]; CARRIERS.len()]) -> Table {
    let [http, ..] = &WHITEPAPER_MEANS;
    let row = |(n, carried): (usize, &crate::published::Mean)| {
        let link =
            |link: usize, http_ms: f64, ms: f64| match n.checked_sub(1).map(|made| &carriers[made][link]) {
                Some(both) => {
                    let published = rounded(100.0 * (http_ms - ms) / http_ms);
                    [rounded(ms), rounded(means(both).1), published, rounded(gain_of_means_pct(both))]
                }
                None => [rounded(ms), rounded(means(&carriers[0][link]).0), String::new(), String::new()],
            };
        let cells = [link(0, http.dsl_ms, carried.dsl_ms), link(1, http.cable_ms, carried.cable_ms)];
        std::iter::once(carried.what.to_owned()).chain(cells.into_iter().flatten()).collect()
    };
    let columns = [
        "DSL, published",
        "ours",
        "gain, %, published",
        "ours",
        "cable, published",
        "ours",
        "gain, %, published",
        "ours",
    ];
    Table {
        caption: "Mean page load times at 1 % loss, in ms, and what they gain beside HTTP. The whitepaper's pages are not ours: gains can be compared, milliseconds hardly."
            .into(),
        head: std::iter::once("").chain(columns).map(str::to_owned).collect(),
        rows: WHITEPAPER_MEANS.iter().enumerate().map(row).collect(),
    }
}

fn pairs_table(caption: &str, along: &str, published: &[Pair], ours: &[Option<Both>]) -> Table {
    let row = |(p, ours): (&Pair, &Option<Both>)| {
        let (http, spdy, gain) = match ours {
            Some(both) => {
                let (http, spdy) = means(both);
                (rounded(http), rounded(spdy), rounded(gain_of_means_pct(both)))
            }
            None => Default::default(),
        };
        let theirs = rounded(100.0 * (p.http_ms - p.spdy_ms) / p.http_ms);
        vec![p.at.to_string(), rounded(p.http_ms), http, rounded(p.spdy_ms), spdy, theirs, gain]
    };
    let head = [along, "HTTP, published", "ours", "SPDY, published", "ours", "gain, %, published", "ours"];
    Table {
        caption: caption.to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows: published.iter().zip(ours).map(row).collect(),
    }
}

/// Means of an arm's two transports on a cell, in seconds.
fn seconds(arm: &ArmLoads, cell: usize) -> (f64, f64) {
    let (http, spdy) = means(&pairs(&arm.each(cell, 0, plt), &arm.each(cell, 1, plt)));
    (http / 1e3, spdy / 1e3)
}

/// What was published, for the panel whose conditions are nearest to it.
fn as_published(published: &[Pair]) -> [Series; 2] {
    let line = |name: &str, ms: fn(&Pair) -> f64| Series {
        name: name.to_owned(),
        points: published.iter().map(|p| (p.at, ms(p) / 1e3)).collect(),
    };
    [line("HTTP, published", |p| p.http_ms), line("SPDY, published", |p| p.spdy_ms)]
}

fn lines(points: impl Fn(&dyn Fn(usize) -> f64) -> Vec<(f64, f64)>, arm: &ArmLoads) -> Vec<Series> {
    vec![
        Series { name: "HTTP".into(), points: points(&|cell| seconds(arm, cell).0) },
        Series { name: "SPDY".into(), points: points(&|cell| seconds(arm, cell).1) },
    ]
}

fn over_losses(arm: &ArmLoads, one_domain: &ArmLoads, grid: &Grid) -> Picture {
    let panel = |link: usize, rtt: usize| {
        let mut lines = lines(|figure| grid.over_loss(link, rtt, figure), arm);
        let one = |n| mean(one_domain.each(n, 0, plt).into_iter().flatten()) / 1e3;
        lines.push(Series { name: "SPDY, one domain".into(), points: grid.over_loss(link, rtt, one) });
        if (link, rtt) == (0, 0) {
            lines.extend(as_published(&WHITEPAPER_LOSSES));
        }
        Panel { lines, behind: Vec::new() }
    };
    let row = |link: usize| Row {
        name: grid.link_name(link),
        panels: (0..grid.rtts_ms.len()).map(|rtt| panel(link, rtt)).collect(),
    };
    let panels = Panels {
        caption: "Mean page load time over loss, by link and round-trip time. What was published stands in the panel that its own figures point to: its links are stated, its round trips are not."
            .into(),
        x: "packets lost at random each way, %".into(),
        y: "mean page load time, s".into(),
        columns: grid.rtts_ms.iter().map(|ms| format!("{ms} ms")).collect(),
        rows: (0..grid.links_kbps.len()).map(row).collect(),
    };
    panels.into()
}

fn over_trips(arm: &ArmLoads, grid: &Grid) -> Picture {
    let panel = |link: usize| {
        let mut lines = lines(|figure| grid.over_rtt(link, 0, figure), arm);
        if link == 0 {
            lines.extend(as_published(&WHITEPAPER_RTTS));
        }
        Panel { lines, behind: Vec::new() }
    };
    let links = 0..grid.links_kbps.len();
    let panels = Panels {
        caption: "Mean page load time over round-trip time, without loss.".into(),
        x: "round-trip time, ms".into(),
        y: "mean page load time, s".into(),
        columns: links.clone().map(|link| grid.link_name(link)).collect(),
        rows: vec![Row { name: String::new(), panels: links.map(panel).collect() }],
    };
    panels.into()
}
