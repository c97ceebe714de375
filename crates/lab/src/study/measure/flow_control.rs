//! What small SPDY windows cost on a long fat path.

use super::{ArmLoads, Figure, Measured, Series, Shape, plt};

/// Arms: small images under each client's windows, A and B; then with large ones, A and B, from the smallest size on; then with those
/// in the middle and push, A and B.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [small_a, small_b, large @ .., push_a, push_b] = arms else { return Default::default() };
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
        ("push_ratio", time(push_a) / time(push_b)),
        ("push_a_ratio", time(push_a) / time(large_a)),
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
    (measured, vec![over_time.into(), edge(large_a, large_b, largest(large_a)).into(), over_size.into()])
}

/// The time–sequence picture of one large image: what had come, and how far the window let the server go.
fn edge(a: &ArmLoads, b: &ArmLoads, whole_kb: f64) -> Figure {
    let way = |arm: &ArmLoads| arm.samples.first().map(|s| s.progress.clone()).unwrap_or_default();
    let line = |name: &str, arm: &ArmLoads, height: fn(&(f64, u64, u64)) -> u64| Series {
        name: name.to_owned(),
        points: way(arm).iter().map(|p| (p.0, (height(p) as f64 / 1e3).min(whole_kb))).collect(),
    };
    Figure {
        caption: format!(
            "One of the large images, of {whole_kb:.0} kB: kilobytes received over time, and above them the edge of the window, which the server may not pass (drawn no higher than the image's end)."
        ),
        x: "ms".into(),
        y: "kB of the image".into(),
        shape: Shape::Steps,
        series: vec![
            line("A: received", a, |p| p.1),
            line("A: the window's edge", a, |p| p.2),
            line("B: received", b, |p| p.1),
            line("B: the window's edge", b, |p| p.2),
        ],
    }
}

/// Where a line first reaches a height, between its points.
fn crossing(points: &[(f64, f64)], height: f64) -> Option<f64> {
    let steps = points.windows(2).map(|pair| (pair[0], pair[1]));
    let mut hits = steps.filter(|(a, b)| a.1 <= height && height <= b.1 && a.1 < b.1);
    hits.next().map(|(a, b)| a.0 + (b.0 - a.0) * (height - a.1) / (b.1 - a.1))
}
