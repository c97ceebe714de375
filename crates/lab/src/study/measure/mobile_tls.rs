//! What the steps of one cold connection cost, and what each way around them saves.

use super::{ArmLoads, Figure, Measured, Series, Shape, Span};

/// The published steps, in their order: key, name, milliseconds.
const STEPS: [(&str, &str, f64); 10] = [
    ("dns_ms", "look-up", 1_334.0),
    ("tcp_ms", "TCP", 240.0),
    ("tls_ms", "TLS to the certificate", 376.0),
    ("chain_ms", "issuer's certificate", 1_011.0),
    ("ca_dns_ms", "look-up of the authority", 300.0),
    ("ca_tcp_ms", "TCP to the authority", 407.0),
    ("ocsp_ms", "OCSP", 598.0),
    ("ca_tcp_again_ms", "TCP to the authority, again", 317.0),
    ("ocsp_again_ms", "OCSP, again", 444.0),
    ("finish_ms", "end of the handshake", 1_270.0),
];

/// Arms: as published; the chain sent; stapled; the certificate carried; resumed.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [published, _, _, carried, _] = arms else { return Default::default() };
    let Some(steps) = steps(spans(published)) else { return Default::default() };
    let mut measured: Vec<_> =
        STEPS.iter().zip(steps).map(|((key, ..), [from, to])| (*key, to - from)).collect();
    let sent = |arm: &ArmLoads| spans(arm).first().map_or(f64::NAN, |span| span.sent);
    measured.push(("carried_saves_ms", sent(published) - sent(carried)));
    let published = STEPS.iter().scan(0.0, |end, (.., took)| {
        let from = *end;
        *end += took;
        Some((from, *end))
    });
    let ours = waterfall("ours", steps.map(|[from, to]| (from, to)));
    (measured, vec![waterfall("as published", published).into(), ours.into(), ways(arms).into()])
}

fn spans(arm: &ArmLoads) -> &[Span] {
    arm.samples.first().map(|s| s.spans.as_slice()).unwrap_or_default()
}

/// From where to where each of [`STEPS`] goes in our load: the document's spans, then those of what was asked meanwhile.
fn steps(spans: &[Span]) -> Option<[[f64; 2]; 10]> {
    let [document, issuer, first, second, ..] = spans else { return None };
    let secured = document.tls?;
    Some([
        document.dns?,
        document.connect?,
        [secured[0], issuer.asked],
        [issuer.asked, issuer.complete],
        first.dns?,
        first.connect?,
        [first.sent, first.complete],
        second.connect?,
        [second.sent, second.complete],
        [second.complete, secured[1]],
    ])
}

/// A row a step.
fn waterfall(whose: &str, spans: impl IntoIterator<Item = (f64, f64)>) -> Figure {
    let row = |((_, name, _), span): (&(&str, &str, f64), (f64, f64))| Series {
        name: (*name).to_owned(),
        points: vec![span],
    };
    Figure {
        caption: format!("The steps of one cold connection over 3G, {whose}."),
        x: "ms".into(),
        y: String::new(),
        shape: Shape::Spans,
        series: STEPS.iter().zip(spans).map(row).collect(),
    }
}

/// All that a request waits for, arm by arm, and the part of it in which authorities are asked.
fn ways(arms: &[ArmLoads]) -> Figure {
    let row = |arm: &ArmLoads| Series {
        name: arm.arm.name.clone(),
        points: spans(arm).first().map(|document| (0.0, document.sent)).into_iter().collect(),
    };
    let asked = |arm: &ArmLoads| {
        let asked = spans(arm).get(1..).unwrap_or_default();
        let span = asked.first().zip(asked.last()).map(|(first, last)| (first.asked, last.complete));
        Series { name: format!("{}: asking", arm.arm.name), points: span.into_iter().collect() }
    };
    let rows = arms.iter().flat_map(|arm| [row(arm), asked(arm)]).filter(|row| !row.points.is_empty());
    Figure {
        caption: "From the navigation until the request leaves, and the part in which authorities are asked: as published, and the ways around it.".into(),
        x: "ms".into(),
        y: String::new(),
        shape: Shape::Spans,
        series: rows.collect(),
    }
}
