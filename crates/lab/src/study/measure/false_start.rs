//! What False Start saves on one connection, and on pages.

use super::{
    ArmLoads, Figure, Measured, Moment, Picture, Sample, Series, Shape, Span, TimeLine, TimeLines, mean,
    pairs, plt,
};

/// The moments of the published time line, in milliseconds: with False Start a request leaves and its response begins; without it, a
/// request leaves.
const SENT_WITH: f64 = 176.0;
const HEAD_WITH: f64 = 275.0;
const SENT_WITHOUT: f64 = 269.0;

/// Arms: one exchange without and with; pages without and with.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [one_without, one_with, without, with] = arms else { return Default::default() };
    let first =
        |arm: &'_ ArmLoads| arm.samples.first().and_then(|s| Some((s.clone(), s.spans.first()?.clone())));
    let (Some((late_load, late)), Some((early_load, early))) = (first(one_without), first(one_with)) else {
        return Default::default();
    };
    let pages = pairs(&without.each(0, 0, plt), &with.each(0, 0, plt));
    let measured = vec![
        ("sent_with_ms", early.sent),
        ("head_with_ms", early.head),
        ("sent_without_ms", late.sent),
        ("saved_ms", late.sent - early.sent),
        ("saved_page_ms", mean(pages.iter().map(|(a, b)| a - b))),
    ];
    let lines = [
        time_line("without False Start", &late_load, &late, &[(SENT_WITHOUT, "request leaves")]),
        time_line(
            "with False Start",
            &early_load,
            &early,
            &[(SENT_WITH, "request leaves"), (HEAD_WITH, "response begins")],
        ),
    ];
    let mut pictures = Vec::new();
    if lines.iter().all(|line| !line.packets.is_empty()) {
        pictures.push(Picture::TimeLines(TimeLines {
            caption: "The packets of one connection at a round trip of 83 ms, as a tap at both ends sees them: time runs down, a line \
                a packet from the moment it left to the moment it arrived. Beside the client, when ours did what was published, and \
                when the published time line has it."
                .into(),
            lines: lines.into(),
        }));
    }
    pictures.push(phases(&late, &early).into());
    (measured, pictures)
}

/// The document's connection, with the moments that were published.
fn time_line(name: &str, load: &Sample, span: &Span, published: &[(f64, &str)]) -> TimeLine {
    let published = published.iter().map(|(at_ms, says)| (*at_ms, *says, true));
    let moments = published.chain([(span.head, "response begins", false)]);
    let moment =
        |(at_ms, says, is_published): (f64, &str, bool)| Moment { at_ms, says: says.into(), is_published };
    TimeLine {
        name: name.into(),
        packets: load.packets.iter().filter(|packet| packet.connection == 0).cloned().collect(),
        moments: moments.map(moment).collect(),
    }
}

/// What both worlds know of it.
fn phases(late: &Span, early: &Span) -> Figure {
    let spans = |name: &str, pick: fn(&Span) -> [f64; 2]| {
        let point = |span: &Span| (pick(span)[0], pick(span)[1]);
        [(format!("{name}, without"), late), (format!("{name}, with"), early)]
            .map(|(name, span)| Series { name, points: vec![point(span)] })
    };
    let rows = [
        spans("TCP handshake", |s| s.connect.unwrap_or_default()),
        spans("TLS handshake", |s| s.tls.unwrap_or_default()),
        spans("request to first byte", |s| [s.sent, s.head]),
    ];
    Figure {
        caption: "Its phases, without False Start and with it.".into(),
        x: "ms".into(),
        y: String::new(),
        shape: Shape::Spans,
        series: rows.into_iter().flatten().collect(),
    }
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
