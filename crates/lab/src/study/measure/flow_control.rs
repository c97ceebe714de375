//! What small SPDY windows cost on a long fat path.

use super::{ArmLoads, Figure, Measured, Series, Shape, plt};

/// Arms: small images under each client's windows, A and B; then with large ones, A and B, from the smallest size on.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [small_a, small_b, large @ ..] = arms else { return Default::default() };
    let time = |arm: &ArmLoads| arm.samples.first().and_then(plt).unwrap_or(f64::NAN);
    let spans = |arm: &ArmLoads| arm.samples.first().map(|s| s.spans.clone()).unwrap_or_default();
    let largest = |arm: &ArmLoads| spans(arm).iter().map(|s| s.bytes).max().unwrap_or(0) as f64 / 1e3;
    let ratios: Vec<(f64, f64)> =
        large.chunks_exact(2).map(|pair| (largest(&pair[0]), time(&pair[0]) / time(&pair[1]))).collect();
    // The size in the middle stands for "large": it was chosen before anything was measured.
    let middle = large.chunks_exact(2).nth(ratios.len() / 2);
    let Some([large_a, large_b]) = middle else { return Default::default() };
    let measured = vec![
        ("small_ratio", time(small_a) / time(small_b)),
        ("large_b_ms", time(large_b)),
        ("large_ratio", time(large_a) / time(large_b)),
        ("turns_at_kb", crossing(&ratios, 2.0).unwrap_or(f64::NAN)),
    ];
    let line = |name: &str, arm: &ArmLoads| {
        let mut done: Vec<_> = spans(arm).iter().map(|s| (s.complete, s.bytes)).collect();
        done.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut sum = 0;
        let points = done.into_iter().map(|(at, bytes)| {
            sum += bytes;
            (at, sum as f64 / 1e3)
        });
        Series { name: name.to_owned(), points: std::iter::once((0.0, 0.0)).chain(points).collect() }
    };
    let over_time = Figure {
        caption: format!(
            "Kilobytes of resources that are complete, over time; large images of {:.0} kB.",
            largest(large_a)
        ),
        x: "ms".into(),
        y: "kB complete".into(),
        shape: Shape::Steps,
        series: vec![line("A: windows of 64 KiB", large_a), line("B: windows of 10 MiB", large_b)],
    };
    let over_size = Figure {
        caption: "A's time for one of B's, by the size of the large images.".into(),
        x: "kB an image".into(),
        y: "A / B".into(),
        shape: Shape::Lines,
        series: vec![Series { name: String::new(), points: ratios }],
    };
    (measured, vec![over_time.into(), over_size.into()])
}

/// Where a line first reaches a height, between its points.
fn crossing(points: &[(f64, f64)], height: f64) -> Option<f64> {
    let steps = points.windows(2).map(|pair| (pair[0], pair[1]));
    let mut hits = steps.filter(|(a, b)| a.1 <= height && height <= b.1 && a.1 < b.1);
    hits.next().map(|(a, b)| a.0 + (b.0 - a.0) * (height - a.1) / (b.1 - a.1))
}
