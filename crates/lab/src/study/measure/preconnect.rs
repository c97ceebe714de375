//! What connections before they are asked for gain, and how many there are.

use super::{ArmLoads, Figure, Measured, Series, Shape, gain_pct, mean, pairs, plt};

/// Arms: none, learned, blind two; networks are links by round trips.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [none, learned, blind] = arms else { return Default::default() };
    let networks = 0..none.arm.networks.len();
    let gain = |arm: &ArmLoads, n: usize| gain_pct(&pairs(&none.each(n, 0, plt), &arm.each(n, 0, plt)));
    let far = networks.clone().filter(|n| none.rtt(*n) > 50.0).map(|n| gain(learned, n));
    let near = networks.clone().filter(|n| none.rtt(*n) == 0.0).map(|n| gain(learned, n));
    let connections = |arm: &ArmLoads| mean(arm.samples.iter().map(|s| f64::from(s.connections)));
    let unused = |arm: &ArmLoads| mean(arm.samples.iter().map(|s| f64::from(s.unused)));
    let measured = vec![
        ("gain_near_pct", mean(near)),
        ("gain_far_pct", mean(far)),
        ("learned_per_none", connections(learned) / connections(none)),
        ("blind_per_none", connections(blind) / connections(none)),
        ("blind_unused_more", unused(blind) - unused(none)),
    ];
    let link = |n: usize| none.arm.networks[n].rsplitn(2, '/').last().unwrap_or_default().to_owned();
    let lines = |arm: &ArmLoads| {
        let mut series: Vec<Series> = Vec::new();
        for n in networks.clone() {
            let point = (none.rtt(n), gain(arm, n));
            match series.iter_mut().find(|s| s.name == link(n)) {
                Some(line) => line.points.push(point),
                None => series.push(Series { name: link(n), points: vec![point] }),
            }
        }
        series
    };
    let figure = |arm: &ArmLoads, what: &str| Figure {
        caption: format!(
            "{what}: mean gain in page load time over {} pages, a line a link (kbit/s down/up). {:.1} connections a load instead of {:.1}.",
            arm.pages,
            connections(arm),
            connections(none)
        ),
        x: "round-trip time, ms".into(),
        y: "gain, %".into(),
        shape: Shape::Lines,
        series: lines(arm),
    };
    (measured, vec![figure(learned, "Learned preconnect"), figure(blind, "Two connections to every host")])
}
