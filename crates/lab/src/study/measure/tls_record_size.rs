//! What smaller TLS records save.

use super::{ArmLoads, Figure, Measured, Sample, Series, Shape, first_paint, mean, pairs, plt};

/// Arms: by record size, the largest first; networks are links.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [large, small @ ..] = arms else { return Default::default() };
    let networks = large.arm.networks.len();
    let saved = |arm: &ArmLoads, n: usize, figure: fn(&Sample) -> Option<f64>| {
        mean(pairs(&large.each(n, 0, figure), &arm.each(n, 0, figure)).iter().map(|(a, b)| a - b))
    };
    let over = |figure: fn(&Sample) -> Option<f64>| {
        let best = (0..networks)
            .map(|n| small.iter().map(|a| saved(a, n, figure)).fold(f64::NEG_INFINITY, f64::max));
        best.collect::<Vec<_>>()
    };
    let (paint, whole) = (over(first_paint), over(plt));
    let measured = vec![
        ("paint_saved_ms", paint.first().copied().unwrap_or(f64::NAN)),
        ("paint_more_than_plt_ms", paint.first().zip(whole.first()).map_or(f64::NAN, |(p, w)| p - w)),
    ];
    let line = |name: &str, n: usize, figure: fn(&Sample) -> Option<f64>| Series {
        name: name.to_owned(),
        points: small
            .iter()
            .rev()
            .map(|arm| (f64::from(arm.arm.set.record_bytes.unwrap_or_default()), saved(arm, n, figure)))
            .collect(),
    };
    let figure = |n: usize| Figure {
        caption: format!(
            "What smaller records save beside {} bytes, mean over {} pages on {} (kbit/s down/up, ms).",
            large.arm.set.record_bytes.unwrap_or_default(),
            large.pages,
            large.arm.networks[n]
        ),
        x: "bytes a record".into(),
        y: "ms saved".into(),
        shape: Shape::Lines,
        series: vec![line("first paint", n, first_paint), line("page load time", n, plt)],
    };
    (measured, (0..networks).map(|n| figure(n).into()).collect())
}
