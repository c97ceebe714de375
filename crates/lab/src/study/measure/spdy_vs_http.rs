//! SPDY against HTTP/1.1: a point a page, and the gain over round trips.

use super::{ArmLoads, Figure, Measured, Sample, Series, Shape, first_paint, gain_pct, pairs, plt};

/// Arms: the published network; the same link over round trips.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [seed, trips] = arms else { return Default::default() };
    let scatter = pairs(&seed.each(0, 0, plt), &seed.each(0, 1, plt));
    let faster = scatter.iter().filter(|(http, spdy)| spdy < http).count();
    let line = |name: &str, figure: fn(&Sample) -> Option<f64>| Series {
        name: name.to_owned(),
        points: (0..trips.arm.networks.len())
            .map(|n| (trips.rtt(n), gain_pct(&pairs(&trips.each(n, 0, figure), &trips.each(n, 1, figure)))))
            .collect(),
    };
    let measured = vec![
        ("speedup_pct", gain_pct(&scatter)),
        ("faster_pct", 100.0 * faster as f64 / scatter.len() as f64),
    ];
    let figures = vec![
        Figure {
            caption: "A point a page. Below the red line SPDY is faster.".into(),
            x: "HTTP page load time, ms".into(),
            y: "SPDY, ms".into(),
            shape: Shape::Scatter,
            series: vec![Series { name: String::new(), points: scatter }],
        },
        Figure {
            caption: format!(
                "SPDY's mean gain over {} pages at other round-trip times of the same link: the size of the gain is the conditions'.",
                trips.pages
            ),
            x: "round-trip time, ms".into(),
            y: "gain, %".into(),
            shape: Shape::Lines,
            series: vec![line("page load time", plt), line("first paint", first_paint)],
        },
    ];
    (measured, figures)
}
