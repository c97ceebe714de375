//! What a long queue costs beside a bulk transfer.

use super::{ArmLoads, Figure, Measured, Series, Shape};

/// What is sent from then on are the images; by then a bulk transfer has filled whatever queue there is.
const BULK_ALONE_MS: f64 = 4_000.0;

/// Arms: the page alone, then beside a bulk transfer under drop-tail queues from short to long, then CoDel and FQ-CoDel in the
/// longest.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [alone, tails @ .., codel, fq_codel] = arms else { return Default::default() };
    let time = |arm: &ArmLoads| {
        let spans = arm.samples.first().map(|s| s.spans.as_slice()).unwrap_or_default();
        let late = || spans.iter().filter(|s| s.sent >= BULK_ALONE_MS);
        late().map(|s| s.complete).fold(0.0, f64::max) - late().map(|s| s.sent).fold(f64::INFINITY, f64::min)
    };
    let queue = |arm: &ArmLoads| arm.arm.set.queue_ms.unwrap_or_default();
    let (Some(short), Some(long)) = (tails.first(), tails.last()) else { return Default::default() };
    let measured = vec![
        ("long_per_short", time(long) / time(short)),
        ("long_per_alone", time(long) / time(alone)),
        ("codel_per_long", time(codel) / time(long)),
        ("fq_codel_per_alone", time(fq_codel) / time(alone)),
    ];
    let flat = |name: &str, arm: &ArmLoads| Series {
        name: name.to_owned(),
        points: [short, long].map(|end| (queue(end), time(arm))).to_vec(),
    };
    let tail = Series {
        name: "drop-tail".into(),
        points: tails.iter().map(|arm| (queue(arm), time(arm))).collect(),
    };
    let figure = Figure {
        caption: format!(
            "What 40 images take beside a bulk transfer that has filled the queue, by the length of the queue (CoDel and FQ-CoDel: in the one of {} ms).",
            queue(long)
        ),
        x: "queue, ms of the line".into(),
        y: "first request to last byte, ms".into(),
        shape: Shape::Lines,
        series: vec![
            tail,
            flat("CoDel", codel),
            flat("FQ-CoDel", fq_codel),
            flat("without the transfer", alone),
        ],
    };
    (measured, vec![figure.into()])
}
