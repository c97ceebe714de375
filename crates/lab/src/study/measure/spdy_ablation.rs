//! What SPDY's features are worth, by leaving each out; and what a stream that nobody reads costs without flow control.

use super::{ArmLoads, Figure, Measured, Sample, Series, Shape, counted, mean, pairs, plt};
use crate::network::Network;

/// The networks from this one on are mobile.
const MOBILE: usize = 2;

/// Arms: everything; without multiplexing, priorities, compression, flow control, SETTINGS, pooling; with push; with a kept cwnd; with heads compressed in
/// full; then a stalled stream under a window, killed, buffered and stalling all others; then everything, and a kept cwnd, where FQ-CoDel
/// divides the line. Networks: two wired, then two mobile.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [all, rest @ .., full, window, kill, buffer, block, _, _] = arms else { return Default::default() };
    let [serial, others @ ..] = rest else { return Default::default() };
    let [_, uncompressed, unbounded, _, apart, _, warm] = others else { return Default::default() };
    let networks = 0..all.arm.networks.len();
    let (wired, mobile) = (networks.start..MOBILE, MOBILE..networks.end);
    let longer_pct = |with, without| {
        mean(mobile.clone().map(|n| mean(costs(with, without, n).into_iter().map(|c| c.pct))))
    };
    let cost_pct = |arm| longer_pct(all, arm);
    let cost_ms = |arm, n: std::ops::Range<usize>| mean(n.flat_map(|n| costs(all, arm, n)).map(|c| c.ms));
    let ratio = |arm| cost_ms(arm, mobile.clone()) / cost_ms(arm, wired.clone());
    let heads = |arm: &ArmLoads| mean(arm.samples.iter().map(|s| s.head_bytes_up as f64));
    let connections = |arm: &ArmLoads| mean(arm.samples.iter().map(|s| f64::from(s.connections)));
    let measured = vec![
        ("compression_mobile_pct", cost_pct(uncompressed)),
        ("compression_mobile_ratio", ratio(uncompressed)),
        ("compression_bytes_pct", 100.0 * (1.0 - heads(full) / heads(uncompressed))),
        ("pooling_mobile_pct", cost_pct(apart)),
        ("pooling_mobile_ratio", ratio(apart)),
        ("pooling_connections", connections(apart) / connections(all)),
        ("flow_mobile_pct", cost_pct(unbounded)),
        ("cwnd_mobile_pct", longer_pct(warm, all)),
        (
            "kill_bytes",
            mean(each(kill, |s| s.fate.bytes_down as f64)) / mean(each(window, |s| s.fate.bytes_down as f64)),
        ),
        (
            "buffer_held",
            mean(each(buffer, |s| s.unread_max as f64)) / mean(each(window, |s| s.unread_max as f64)),
        ),
        ("block_ratio", mean(pairs(&whole(window), &whole(block)).iter().map(|(a, b)| b / a))),
    ];
    let mut figures: Vec<Figure> = networks.clone().map(|n| by_feature(all, others, n)).collect();
    figures.push(by_network(all, serial));
    figures.push(saved([full, all, uncompressed]));
    figures.push(opened(all, apart));
    let answers = [window, kill, buffer, block];
    figures.push(stalled(&answers, "Page load time while the video is paused", "ms", |s| s.plt_ms));
    figures.push(stalled(&answers, "Bytes that had come and nobody had read, at most", "kB", |s| {
        Some(s.unread_max as f64 / 1e3)
    }));
    (measured, figures.into_iter().map(Into::into).collect())
}

/// By network; and what a kept cwnd costs by whether connections share a queue.
pub(in crate::study) fn turns(arms: &[ArmLoads]) -> Vec<String> {
    let [all, serial, _, uncompressed, _, _, apart, _, warm, .., fair, fair_warm] = arms else {
        return Vec::new();
    };
    let longer = |all, arm, n| mean(costs(all, arm, n).into_iter().map(|c| c.pct));
    let of = |(n, network): (usize, &Network)| {
        format!(
            "At {} down, {} up and {} ms pages take {:.1} % longer without compression, {:.1} % without pooling, {:.0} % without multiplexing. \
             A kept cwnd changes their time by {:+.1} %, and by {:+.1} where FQ-CoDel gives each connection a queue of its own.",
            network.down,
            network.up,
            network.rtt_ms,
            longer(all, uncompressed, n),
            longer(all, apart, n),
            longer(all, serial, n),
            longer(all, warm, n),
            longer(fair, fair_warm, n)
        )
    };
    all.networks.iter().enumerate().map(of).collect()
}

/// What leaving something out costs a page.
struct Cost {
    pct: f64,
    ms: f64,
}

fn costs(all: &ArmLoads, without: &ArmLoads, network: usize) -> Vec<Cost> {
    let pairs = pairs(&all.each(network, 0, plt), &without.each(network, 0, plt));
    pairs
        .into_iter()
        .map(|(with, without)| Cost { pct: 100.0 * (without - with) / with, ms: without - with })
        .collect()
}

fn each(arm: &ArmLoads, figure: fn(&Sample) -> f64) -> impl Iterator<Item = f64> {
    arm.samples.iter().map(figure)
}

/// The page load times of an arm, on all its networks.
fn whole(arm: &ArmLoads) -> Vec<Option<f64>> {
    arm.samples.iter().map(plt).collect()
}

/// The quartiles and the mean of some figures, as a row of dots.
fn row(name: String, mut values: Vec<f64>) -> Series {
    let mean = mean(values.iter().copied());
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1) as f64;
    let quartile = |q: f64| values.get((q * last).round() as usize).copied().unwrap_or(f64::NAN);
    Series { name, points: vec![(quartile(0.25), quartile(0.75)), (mean, mean)] }
}

fn by_feature(all: &ArmLoads, rest: &[ArmLoads], network: usize) -> Figure {
    let series = rest.iter().map(|arm| {
        let costs = costs(all, arm, network).into_iter().map(|c| c.pct).collect();
        row(arm.arm.name.clone(), costs)
    });
    Figure {
        caption: format!(
            "{}: how much longer pages load without a feature, or with one more. Dots are means over {}, bars reach from the first quartile to the third.",
            all.arm.networks[network],
            counted(all.pages, "page")
        ),
        x: "page load time longer by, %".into(),
        y: String::new(),
        shape: Shape::Dots,
        series: series.collect(),
    }
}

/// What multiplexing is worth is another order of magnitude.
fn by_network(all: &ArmLoads, without: &ArmLoads) -> Figure {
    let series = (0..).zip(&all.arm.networks).map(|(n, network)| {
        row(network.clone(), costs(all, without, n).into_iter().map(|c| c.pct).collect())
    });
    Figure {
        caption: "How much longer pages load without multiplexing, by network: means and quartiles.".into(),
        x: "page load time longer by, %".into(),
        y: String::new(),
        shape: Shape::Dots,
        series: series.collect(),
    }
}

fn saved(arms: [&ArmLoads; 3]) -> Figure {
    let names = ["compressed in full, as in 2012", "cookies kept apart, as in 2013", "not compressed"];
    let kb = |arm: &ArmLoads| each(arm, |s| s.head_bytes_up as f64 / 1e3).collect();
    Figure {
        caption: "Bytes of request heads that a load sends: means and quartiles over pages.".into(),
        x: "kB".into(),
        y: String::new(),
        shape: Shape::Dots,
        series: names.into_iter().zip(arms).map(|(name, arm)| row(name.into(), kb(arm))).collect(),
    }
}

fn opened(all: &ArmLoads, apart: &ArmLoads) -> Figure {
    let count = |arm: &ArmLoads| each(arm, |s| f64::from(s.connections)).collect();
    Figure {
        caption: "Connections that a load opens: means and quartiles over pages.".into(),
        x: "connections".into(),
        y: String::new(),
        shape: Shape::Dots,
        series: vec![row("pooling".into(), count(all)), row("no pooling".into(), count(apart))],
    }
}

/// A figure of each answer to a stalled stream, a dot a network.
fn stalled(answers: &[&ArmLoads], what: &str, unit: &str, figure: fn(&Sample) -> Option<f64>) -> Figure {
    let series = answers.iter().map(|arm| {
        let values: Vec<f64> = arm.samples.iter().filter_map(figure).collect();
        let ends = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
        let dots = values.iter().map(|v| (*v, *v));
        Series { name: arm.arm.name.clone(), points: std::iter::once(ends).chain(dots).collect() }
    });
    let networks = answers.first().map(|arm| arm.arm.networks.join(", ")).unwrap_or_default();
    Figure {
        caption: format!(
            "A stream that nobody reads. {what}, by what the client does about it; a dot a network ({networks})."
        ),
        x: unit.into(),
        y: String::new(),
        shape: Shape::Dots,
        series: series.collect(),
    }
}
