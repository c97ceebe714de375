//! How often a request waits for a lost SYN.

use super::{ArmLoads, Figure, Measured, Series, Shape};

/// A wait for the connection from which on a SYN must have waited for its first timeout of 3 s.
const STALL_MS: f64 = 2_900.0;

/// Arms: without, with.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [without, with] = arms else { return Default::default() };
    let waits = |arm: &ArmLoads| -> Vec<f64> {
        arm.samples.iter().filter_map(|s| s.spans.first()).map(|span| span.sent).collect()
    };
    let one_in = |waits: &[f64]| {
        let stalls = waits.iter().filter(|wait| **wait >= STALL_MS).count();
        waits.len() as f64 / stalls as f64
    };
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
    (measured, vec![figure])
}
