//! How often a request waits for a lost SYN, and what the spare is good for afterwards.

use super::{ArmLoads, Figure, Line, Measured, Sample, Series, Shape, mean};

/// A wait for the connection from which on a SYN must have waited for its first timeout of 3 s.
const STALL_MS: f64 = 2_900.0;

/// Arms: without, with; the same far away, with a second request that comes while the first is being answered; and with, where losses
/// come in bursts.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [without, with, far_without, far_with, ..] = arms else { return Default::default() };
    let line = |name: &str, waits: &[f64]| {
        let beyond = |limit: f64| waits.iter().filter(|w| **w > limit).count() as f64 / waits.len() as f64;
        let limits = (0..=70).map(|n| f64::from(n) * 50.0);
        Series { name: name.to_owned(), points: limits.map(|at| (at, 1e6 * beyond(at))).collect() }
    };
    let (a, b) = (waits(without), waits(with));
    let measured = vec![
        ("without_one_in", one_in(&a)),
        ("with_one_in", one_in(&b)),
        ("with_one_in_independent", one_in(&b)),
        ("spare_saves_rtts", (second_waits(far_without) - second_waits(far_with)) / far_with.rtt(0)),
    ];
    let tail = |s: Series| Series { points: s.points.into_iter().filter(|p| p.0 >= 150.0).collect(), ..s };
    let figure = Figure {
        caption: format!(
            "How many of a million requests wait longer than so much for a connection ({} requests each; the round trip is 100 ms).",
            a.len()
        ),
        x: "ms waited".into(),
        y: "requests in a million".into(),
        shape: Shape::Steps,
        series: vec![tail(line("without", &a)), tail(line("racing after 250 ms", &b))],
    };
    let raced = with.samples.iter().find(|s| s.lines.iter().any(|line| line.spare));
    let far = |arm: &ArmLoads| arm.samples.first().cloned();
    let lives = [
        ("a SYN is lost, raced", raced.cloned()),
        ("300 ms away, without", far(far_without)),
        ("300 ms away, raced", far(far_with)),
    ];
    let lives = Figure {
        caption: "Three loads, connection by connection: from when it is opened to the load's end, grey while it is being made, with its requests in it. \
                  The spare is open, and idle, before its first request."
            .into(),
        x: "ms".into(),
        y: String::new(),
        shape: Shape::Lives,
        series: lives.into_iter().flat_map(|(name, sample)| rows(name, sample)).collect(),
    };
    (measured, vec![figure.into(), lives.into()])
}

/// How long each load waits for its first connection, ms.
fn waits(arm: &ArmLoads) -> Vec<f64> {
    arm.samples.iter().filter_map(|s| s.spans.first()).map(|span| span.sent).collect()
}

/// Of how many waits one is a stall.
fn one_in(waits: &[f64]) -> f64 {
    let stalls = waits.iter().filter(|wait| **wait >= STALL_MS).count();
    waits.len() as f64 / stalls as f64
}

/// Losses that come together.
pub(in crate::study) fn turns(arms: &[ArmLoads]) -> Vec<String> {
    let [_, with, _, _, bursts @ ..] = arms else { return Vec::new() };
    let mut out = vec![format!(
        "Of independent losses, one request in {:.0} stalls though another connection is raced.",
        one_in(&waits(with))
    )];
    out.extend(bursts.iter().map(|arm| {
        let burst = arm.networks[0].loss_burst_packets;
        format!(
            "As many losses, one in {:.0} of which takes the next packet along (bursts of {burst} on the mean): one in {:.0}.",
            1.0 / (1.0 - 1.0 / burst),
            one_in(&waits(arm))
        )
    }));
    out
}

/// How long the second request of a load waits for a connection to be made, on average.
fn second_waits(arm: &ArmLoads) -> f64 {
    let wait = |s: &Sample| Some(s.spans.get(1)?.connect.map_or(0.0, |[from, to]| to - from));
    mean(arm.samples.iter().filter_map(wait))
}

/// A row a connection.
fn rows(name: &str, sample: Option<Sample>) -> Vec<Series> {
    let lines = sample.map(|s| s.lines).unwrap_or_default();
    let row = |(n, line): (usize, &Line)| {
        let spare = if line.spare { " (spare)" } else { "" };
        let making = (line.opened, line.ready.unwrap_or(line.ended));
        let requests = line.requests.iter().copied();
        Series {
            name: format!("{name}: {}{spare}", n + 1),
            points: [(line.opened, line.ended), making].into_iter().chain(requests).collect(),
        }
    };
    lines.iter().enumerate().map(row).collect()
}
