//! What False Start saves on one connection, and on pages.

use super::{ArmLoads, Figure, Measured, Series, Shape, Span, mean, pairs, plt};

/// Arms: one exchange without and with; pages without and with.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [one_without, one_with, without, with] = arms else { return Default::default() };
    let span = |arm: &ArmLoads| arm.samples.first().and_then(|s| s.spans.first()).cloned();
    let (Some(late), Some(early)) = (span(one_without), span(one_with)) else { return Default::default() };
    let pages = pairs(&without.each(0, 0, plt), &with.each(0, 0, plt));
    let measured = vec![
        ("sent_with_ms", early.sent),
        ("head_with_ms", early.head),
        ("sent_without_ms", late.sent),
        ("saved_ms", late.sent - early.sent),
        ("saved_page_ms", mean(pages.iter().map(|(a, b)| a - b))),
    ];
    let spans = |name: &str, pick: fn(&Span) -> [f64; 2]| {
        let point = |span: &Span| (pick(span)[0], pick(span)[1]);
        [(format!("{name}, without"), &late), (format!("{name}, with"), &early)]
            .map(|(name, span)| Series { name, points: vec![point(span)] })
    };
    let rows = [
        spans("TCP handshake", |s| s.connect.unwrap_or_default()),
        spans("TLS handshake", |s| s.tls.unwrap_or_default()),
        spans("request to first byte", |s| [s.sent, s.head]),
    ];
    let figure = Figure {
        caption: "One connection at a round trip of 83 ms, without False Start and with it.".into(),
        x: "ms".into(),
        y: String::new(),
        shape: Shape::Spans,
        series: rows.into_iter().flatten().collect(),
    };
    (measured, vec![figure.into()])
}

/// How many round trips pages save.
pub(in crate::study) fn turns(arms: &[ArmLoads]) -> Vec<String> {
    let [.., without, with] = arms else { return Vec::new() };
    let pages = pairs(&without.each(0, 0, plt), &with.each(0, 0, plt));
    let mut trips: Vec<f64> = pages.iter().map(|(a, b)| (a - b) / without.rtt(0)).collect();
    trips.sort_by(f64::total_cmp);
    let at = |share: f64| trips.get((share * trips.len() as f64) as usize).copied().unwrap_or(f64::NAN);
    vec![format!(
        "What a page saves is its connections one after the other on the critical path: the middle half of {} pages saves {:.1} to {:.1} round trips.",
        trips.len(),
        at(0.25),
        at(0.75)
    )]
}
