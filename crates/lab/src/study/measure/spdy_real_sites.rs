//! SPDY on some of a page's hosts.

use super::{ArmLoads, Figure, Measured, Sample, Series, Shape, gain_pct, mean, pairs, plt};
use crate::network::Network;

/// Arms: HTTP in the clear, HTTP over TLS, SPDY on the page's host alone, on the first party's, everywhere; then the claim's three pages
/// over TLS, with SPDY on the page's host, and on the first party's. Networks are links.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [clear, secured, partly, fully, everywhere, three @ ..] = arms else { return Default::default() };
    let [three_secured, three_partly, three_fully] = three else { return Default::default() };
    let from_http = all(secured, partly);
    let slower = from_http.iter().filter(|(http, spdy)| spdy > http).count();
    let left = partly.samples.iter().zip(&fully.samples).map(|(partly, fully)| {
        100.0 * f64::from(fully.over_spdy - partly.over_spdy) / f64::from(fully.over_spdy)
    });
    let measured = vec![
        ("partly_from_https_pct", gain_pct(&from_http)),
        ("partly_from_http_pct", gain_pct(&all(clear, partly))),
        ("fully_from_https_pct", gain_pct(&all(secured, fully))),
        ("fully_from_partly_pct", gain_pct(&all(partly, fully))),
        ("everywhere_from_https_pct", gain_pct(&all(secured, everywhere))),
        ("slower_pct", 100.0 * slower as f64 / from_http.len() as f64),
        ("left_on_http_pct", mean(left)),
        ("three_fully_pct", gain_pct(&all(three_secured, three_fully))),
    ];
    let scatter = Figure {
        caption: "A point a page on a network. Below the red line the page is faster with SPDY on its own host alone, or on all of the first party's.".into(),
        x: "HTTP over TLS, page load time, ms".into(),
        y: "SPDY, ms".into(),
        shape: Shape::Scatter,
        series: vec![
            Series { name: "page's host".into(), points: from_http },
            Series { name: "first party".into(), points: all(secured, fully) },
        ],
    };
    (measured, vec![scatter.into(), pages([three_secured, three_partly, three_fully]).into()])
}

/// By network.
pub(in crate::study) fn turns(arms: &[ArmLoads]) -> Vec<String> {
    let [_, secured, partly, fully, ..] = arms else { return Vec::new() };
    let gain = |arm: &ArmLoads, n: usize| gain_pct(&pairs(&secured.each(n, 0, plt), &arm.each(n, 0, plt)));
    let of = |(n, network): (usize, &Network)| {
        format!(
            "At {} ms and {}, the page's host upgraded gains {:.1} %, all of the first party's {:.1} %.",
            network.rtt_ms,
            network.down,
            gain(partly, n),
            gain(fully, n)
        )
    };
    secured.networks.iter().enumerate().map(of).collect()
}

/// The page load times of two arms, by load.
fn all(from: &ArmLoads, to: &ArmLoads) -> Vec<(f64, f64)> {
    let of = |n| pairs(&from.each(n, 0, plt), &to.each(n, 0, plt));
    (0..from.arm.networks.len()).flat_map(of).collect()
}

/// How a page's resources are carried: over SPDY and over HTTP with one host upgraded, and how many of the latter the first party's.
fn accounts(page: usize, partly: &ArmLoads, fully: &ArmLoads) -> String {
    let of = |arm: &ArmLoads| arm.samples.iter().find(|s| s.page == page).cloned();
    let (Some(Sample { requests, over_spdy, .. }), Some(fully)) = (of(partly), of(fully)) else {
        return String::new();
    };
    format!(
        "{}: {over_spdy} over SPDY, {} over HTTP, {} of them the first party's.",
        name(partly, page),
        requests - over_spdy,
        fully.over_spdy - over_spdy
    )
}

fn name(arm: &ArmLoads, page: usize) -> &str {
    arm.arm.pages.get(page).map(|p| p.trim_start_matches("page:")).unwrap_or_default()
}

/// What the three pages gain from upgrading one host, and the first party's: a row each.
fn pages([secured, partly, fully]: [&ArmLoads; 3]) -> Figure {
    let row = |page: usize, what: &str, arm: &ArmLoads| {
        let times =
            |arm: &ArmLoads| arm.samples.iter().filter(|s| s.page == page).map(plt).collect::<Vec<_>>();
        let gains: Vec<f64> =
            pairs(&times(secured), &times(arm)).iter().map(|(a, b)| 100.0 * (a - b) / a).collect();
        let ends = gains.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), g| (a.min(*g), b.max(*g)));
        let dots = gains.iter().map(|g| (*g, *g));
        let points = std::iter::once(ends).chain(dots).collect();
        Series { name: format!("{}, {what}", name(secured, page)), points }
    };
    let rows = (0..secured.pages).flat_map(|page| {
        [row(page, "page's host upgraded", partly), row(page, "first party upgraded", fully)]
    });
    let accounts: Vec<_> = (0..secured.pages).map(|page| accounts(page, partly, fully)).collect();
    Figure {
        caption: format!(
            "Three pages built from what is known of them: gain in page load time from HTTP over TLS, a dot a network ({}). Resources with the page's host upgraded: {}",
            secured.arm.networks.join(", "),
            accounts.join(" ")
        ),
        x: "gain, %".into(),
        y: String::new(),
        shape: Shape::Dots,
        series: rows.collect(),
    }
}
