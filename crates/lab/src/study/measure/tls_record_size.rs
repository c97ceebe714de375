//! What smaller TLS records save.

use super::{ArmLoads, Figure, Measured, Sample, Series, Shape, counted, first_paint, mean, pairs, plt};

/// Arms: the proxy's; then by record size, the largest first; then by rule. Networks are links.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [proxy, others @ ..] = arms else { return Default::default() };
    let saved = |arm: &ArmLoads, n: usize, figure: fn(&Sample) -> Option<f64>| {
        mean(pairs(&proxy.each(n, 0, figure), &arm.each(n, 0, figure)).iter().map(|(a, b)| a - b))
    };
    let (fixed, rules): (Vec<_>, Vec<_>) = others.iter().partition(|arm| arm.arm.set.record_bytes.is_some());
    let bytes = |arm: &ArmLoads| f64::from(arm.arm.set.record_bytes.unwrap_or_default());
    // The claim's are those of 1500 to 3000 bytes.
    let small = || fixed.iter().filter(|arm| bytes(arm) <= 3_000.0);
    let best = |figure: fn(&Sample) -> Option<f64>| {
        small().map(|arm| saved(arm, 0, figure)).reduce(f64::max).unwrap_or(f64::NAN)
    };
    let (paint, whole) = (best(first_paint), best(plt));
    let measured = vec![("paint_saved_ms", paint), ("paint_more_than_plt_ms", paint - whole)];
    let line = |name: &str, n: usize, figure: fn(&Sample) -> Option<f64>| Series {
        name: name.to_owned(),
        points: fixed.iter().rev().map(|arm| (bytes(arm), saved(arm, n, figure))).collect(),
    };
    let figure = |n: usize| {
        let ends = [fixed.last(), fixed.first()].map(|arm| arm.map_or(0.0, |arm| bytes(arm)));
        let flat = |arm: &&ArmLoads| Series {
            name: format!("first paint, {}", arm.arm.name),
            points: ends.map(|end| (end, saved(arm, n, first_paint))).to_vec(),
        };
        let mut series = vec![
            line("first paint, records of one size", n, first_paint),
            line("page load time, records of one size", n, plt),
        ];
        series.extend(rules.iter().map(flat));
        Figure {
            caption: format!(
                "What other records save beside {}, mean over {} on {} (kbit/s down/up, ms).",
                proxy.arm.name,
                counted(proxy.pages, "page"),
                proxy.arm.networks[n]
            ),
            x: "bytes a record".into(),
            y: "ms saved".into(),
            shape: Shape::Lines,
            series,
        }
    };
    (measured, (0..proxy.arm.networks.len()).map(|n| figure(n).into()).collect())
}
