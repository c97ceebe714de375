//! What a client's small first window costs.

use super::{ArmLoads, Figure, Measured, Series, Shape, mean, pairs, plt};

/// Arms: by server window, each with the client's small window, then its large one; transports are HTTP and SPDY.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let mut windows = Vec::new();
    for pair in arms.chunks_exact(2) {
        let cwnd = f64::from(pair[0].arm.set.initial_cwnd.unwrap_or_default());
        let cost = |transport: usize, network: usize| {
            let both = pairs(&pair[0].each(network, transport, plt), &pair[1].each(network, transport, plt));
            mean(both.iter().map(|(small, large)| small - large))
        };
        windows.push((cwnd, cost(0, 0), cost(1, 0)));
    }
    let at = |cwnd: f64| windows.iter().find(|w| w.0 == cwnd).copied().unwrap_or((cwnd, f64::NAN, f64::NAN));
    let above: Vec<_> = windows.iter().filter(|w| w.0 > 4.0).collect();
    let measured = vec![
        ("cost_below_ms", mean([at(2.0).1, at(4.0).1])),
        ("cost_above_ms", mean(above.iter().map(|w| w.1))),
        ("spdy_cost_above_ms", mean(above.iter().map(|w| w.2))),
        ("spdy_more_ms", mean(above.iter().map(|w| w.2 - w.1))),
    ];
    let line = |name: &str, pick: fn(&(f64, f64, f64)) -> f64| Series {
        name: name.to_owned(),
        points: windows.iter().map(|w| (w.0, pick(w))).collect(),
    };
    let figure = Figure {
        caption: "What a client's first window of 6 KB costs beside one of 64 KB, by the server's first window; mean over the pages."
            .into(),
        x: "server's initial cwnd, segments".into(),
        y: "page load time more, ms".into(),
        shape: Shape::Lines,
        series: vec![line("HTTP", |w| w.1), line("SPDY", |w| w.2)],
    };
    (measured, vec![figure.into()])
}
