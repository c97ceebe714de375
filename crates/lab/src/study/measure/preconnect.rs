//! What connections before they are asked for gain, and how many there are.

use super::{
    ArmLoads, Figure, Measured, Panel, Panels, Row, Sample, Series, Shape, Span, counted, gain_pct, mean,
    pairs, plt,
};
use crate::study::Grid;

/// Arms: none, learned, blind two, successor, on one grid of links by round trips; then blind two over TLS, with handshakes in
/// parallel, and with handshakes that wait for the first one's session; then one page without and with what is learned.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [none, learned, blind, successor, parallel, waiting, page_none, page_learned] = arms else {
        return Default::default();
    };
    let Some(grid) = &none.grid else { return Default::default() };
    let gain = |arm: &ArmLoads, n: usize| gain_pct(&pairs(&none.each(n, 0, plt), &arm.each(n, 0, plt)));
    let networks = 0..none.networks.len();
    let far = networks.clone().filter(|n| none.rtt(*n) > 50.0).map(|n| gain(learned, n));
    let near = networks.filter(|n| none.rtt(*n) == 0.0).map(|n| gain(learned, n));
    let per_load = |arm: &ArmLoads, figure: fn(&Sample) -> u32| {
        mean(arm.samples.iter().map(|sample| f64::from(figure(sample))))
    };
    let connections = |arm| per_load(arm, |s| s.connections);
    let unused = |arm| per_load(arm, |s| s.unused);
    let per_host = |arm: &ArmLoads| per_load(arm, |s| s.handshakes_full) / per_load(arm, |s| s.hosts_secured);
    let measured = vec![
        ("gain_near_pct", mean(near)),
        ("gain_far_pct", mean(far)),
        ("learned_per_none", connections(learned) / connections(none)),
        ("blind_per_none", connections(blind) / connections(none)),
        ("blind_unused_more", unused(blind) - unused(none)),
        ("full_per_host", per_host(waiting)),
    ];
    let policies = [("learned", learned), ("two to every host", blind), ("today's successor", successor)];
    let pictures = vec![
        gains(grid, none, &policies).into(),
        accounts(grid, &[("none", none), policies[0], policies[1], policies[2]]).into(),
        handshakes(parallel, waiting).into(),
        waterfall(page_none, page_learned).into(),
    ];
    (measured, pictures)
}

/// By link, and what is paid.
pub(in crate::study) fn turns(arms: &[ArmLoads]) -> Vec<String> {
    let [none, learned, ..] = arms else { return Vec::new() };
    let Some(grid) = &none.grid else { return Vec::new() };
    let gain = |n: usize| gain_pct(&pairs(&none.each(n, 0, plt), &learned.each(n, 0, plt)));
    let link = |link: usize| {
        let far = grid.over_rtt(link, 0, gain).into_iter().filter(|(rtt, _)| *rtt > 50.0);
        format!("{:.1} % at {}", mean(far.map(|(_, gain)| gain)), grid.link_name(link))
    };
    let links: Vec<_> = (0..grid.links_kbps.len()).map(link).collect();
    let used = |arm: &ArmLoads| mean(arm.samples.iter().map(|s| f64::from(s.connections - s.unused)));
    vec![
        format!("Above 50 ms what is learned gains {}.", links.join(", ")),
        format!(
            "Of the connections that carried something there are {:.1} a load with what is learned, and {:.1} without: what is opened beyond is for nothing.",
            used(learned),
            used(none)
        ),
    ]
}

/// A row a policy: what every page gains, and their mean.
fn gains(grid: &Grid, none: &ArmLoads, policies: &[(&str, &ArmLoads)]) -> Panels {
    let panel = |arm: &ArmLoads, link: usize| {
        let cells: Vec<Vec<Option<f64>>> = (0..grid.rtts_ms.len())
            .map(|rtt| {
                let n = grid.cell(link, rtt, 0);
                let both = none.each(n, 0, plt).into_iter().zip(arm.each(n, 0, plt));
                both.map(|(without, with)| Some(gain_pct(&[(without?, with?)]))).collect()
            })
            .collect();
        let along = |figure: &dyn Fn(&[Option<f64>]) -> f64| {
            grid.rtts_ms.iter().zip(&cells).map(|(rtt, gains)| (*rtt, figure(gains))).collect()
        };
        let mean = along(&|gains| mean(gains.iter().copied().flatten()));
        let page = |page: usize| Series {
            name: String::new(),
            points: along(&|gains| gains.get(page).copied().flatten().unwrap_or(f64::NAN)),
        };
        Panel {
            lines: vec![Series { name: format!("mean of {}", counted(none.pages, "page")), points: mean }],
            behind: (0..none.pages).map(page).collect(),
        }
    };
    let links = 0..grid.links_kbps.len();
    let row = |(name, arm): &(&str, &ArmLoads)| Row {
        name: (*name).to_owned(),
        panels: links.clone().map(|link| panel(arm, link)).collect(),
    };
    Panels {
        caption: format!(
            "What each policy gains in page load time beside none, by round-trip time and link. A faint line a page: {} on {} under each policy.",
            counted(none.pages, "page"),
            counted(none.networks.len(), "network")
        ),
        x: "round-trip time, ms".into(),
        y: "gain, %".into(),
        columns: links.clone().map(|link| grid.link_name(link)).collect(),
        rows: policies.iter().map(row).collect(),
    }
}

/// What is counted of connections.
type Count = (&'static str, fn(&Sample) -> Option<f64>);

const COUNTS: [Count; 3] = [
    ("made", |s| Some(f64::from(s.connections))),
    ("used", |s| Some(f64::from(s.connections - s.unused))),
    ("never used", |s| Some(f64::from(s.unused))),
];

/// Connections made, used and wasted under each policy.
fn accounts(grid: &Grid, policies: &[(&str, &ArmLoads)]) -> Panels {
    let links = 0..grid.links_kbps.len();
    let panel = |count: fn(&Sample) -> Option<f64>, link: usize| Panel {
        lines: policies
            .iter()
            .map(|(name, arm)| Series {
                name: (*name).to_owned(),
                points: grid.over_rtt(link, 0, |n| mean(arm.each(n, 0, count).into_iter().flatten())),
            })
            .collect(),
        behind: Vec::new(),
    };
    let row = |(name, count): &Count| Row {
        name: (*name).to_owned(),
        panels: links.clone().map(|link| panel(*count, link)).collect(),
    };
    Panels {
        caption: "Connections a load, means: how many were made, how many of these carried a request, and how many never did."
            .into(),
        x: "round-trip time, ms".into(),
        y: "connections a load".into(),
        columns: links.clone().map(|link| grid.link_name(link)).collect(),
        rows: COUNTS.iter().map(row).collect(),
    }
}

/// Full and resumed handshakes of two connections to every host at once.
fn handshakes(parallel: &ArmLoads, waiting: &ArmLoads) -> Panels {
    let Some(grid) = &parallel.grid else { return Panels::default() };
    let line = |arm: &ArmLoads, name: &str, count: fn(&Sample) -> Option<f64>| Series {
        name: name.to_owned(),
        points: grid.over_rtt(0, 0, |n| mean(arm.each(n, 0, count).into_iter().flatten())),
    };
    let panel = |arm: &ArmLoads| Panel {
        lines: vec![
            line(arm, "full handshakes", |s| Some(f64::from(s.handshakes_full))),
            line(arm, "resumed", |s| Some(f64::from(s.handshakes_resumed))),
            line(arm, "hosts", |s| Some(f64::from(s.hosts_secured))),
        ],
        behind: Vec::new(),
    };
    Panels {
        caption: format!(
            "TLS handshakes a load with two connections to every host at once, {}: each at once, or waiting for the first one's session.",
            grid.link_name(0)
        ),
        x: "round-trip time, ms".into(),
        y: "handshakes a load".into(),
        columns: vec!["in parallel".into(), "waiting for a session (tls-wait)".into()],
        rows: vec![Row { name: String::new(), panels: vec![panel(parallel), panel(waiting)] }],
    }
}

/// As many requests of a page as a picture has room for.
const WATERFALL_REQUESTS: usize = 24;

/// The beginning of one page, request by request, without preconnect and with it, on one axis.
fn waterfall(without: &ArmLoads, with: &ArmLoads) -> Figure {
    let rows = |(name, arm): (&'static str, &ArmLoads)| {
        let mut spans: Vec<Span> = arm.samples.first().map(|s| s.spans.clone()).unwrap_or_default();
        spans.sort_by(|a, b| a.asked.total_cmp(&b.asked)); // stable: the page's order where there is no other
        let row = move |(n, s): (usize, Span)| Series {
            name: format!("{name}: request {}", n + 1),
            points: vec![(s.asked, s.complete), (s.asked, s.sent), (s.sent, s.complete)],
        };
        spans.into_iter().take(WATERFALL_REQUESTS).enumerate().map(row).collect::<Vec<_>>()
    };
    Figure {
        caption: format!(
            "The first {WATERFALL_REQUESTS} requests of one page, without and with what was learned. Pale: it waits for a name, a connection, or a free one; full: from its sending to its last byte."
        ),
        x: "ms".into(),
        y: String::new(),
        shape: Shape::Lives,
        series: [("none", without), ("learned", with)].into_iter().flat_map(rows).collect(),
    }
}
