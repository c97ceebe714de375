//! What a long queue costs beside a bulk transfer.

use super::{ArmLoads, Figure, Measured, Series, Shape, Span, mean};

/// What is sent from then on are the images; by then a bulk transfer has filled whatever queue there is.
const BULK_ALONE_MS: f64 = 4_000.0;

/// Bytes of an image; a block of the video has others.
const IMAGE_BYTES: u64 = 10_000;

/// Arms: the page alone, then beside a bulk transfer under drop-tail queues from short to long, then CoDel and FQ-CoDel in the
/// longest; a limited transfer, and a video, in the longest drop-tail queue.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [alone, tails @ .., codel, fq_codel, limited, video] = arms else { return Default::default() };
    let time = |arm: &ArmLoads| {
        let spans = arm.samples.first().map(|s| s.spans.as_slice()).unwrap_or_default();
        let late = || images(spans);
        late().map(|s| s.complete).fold(0.0, f64::max) - late().map(|s| s.sent).fold(f64::INFINITY, f64::min)
    };
    let queue = |arm: &ArmLoads| arm.arm.set.queue_ms.unwrap_or_default();
    let (Some(short), Some(long)) = (tails.first(), tails.last()) else { return Default::default() };
    let measured = vec![
        ("long_per_short", time(long) / time(short)),
        ("long_per_alone", time(long) / time(alone)),
        ("codel_per_long", time(codel) / time(long)),
        ("fq_codel_per_alone", time(fq_codel) / time(alone)),
        ("limited_per_long", time(limited) / time(long)),
        ("video_per_alone", time(video) / time(alone)),
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
            "What 40 images take beside a bulk transfer that has filled the queue, by the length of the queue (drop-tail; all else: in the one of {} ms).",
            queue(long)
        ),
        x: "queue, ms of the line".into(),
        y: "first request to last byte, ms".into(),
        shape: Shape::Lines,
        series: vec![
            tail,
            flat("CoDel", codel),
            flat("FQ-CoDel", fq_codel),
            flat("64 KB in flight", limited),
            flat("beside a paced video", video),
            flat("without the transfer", alone),
        ],
    };
    let waits = [
        ("drop-tail", long),
        ("CoDel", codel),
        ("FQ-CoDel", fq_codel),
        ("64 KB in flight", limited),
        ("beside a paced video", video),
        ("without the transfer", alone),
    ];
    let waits = Figure {
        caption: format!(
            "How long each image waits for its first byte, which is what the queue costs it; in the queue of {} ms.",
            queue(long)
        ),
        x: "ms since the first was asked for".into(),
        y: "request to first byte, ms".into(),
        shape: Shape::Lines,
        series: waits.map(|(name, arm)| Series { name: name.into(), points: wait(arm) }).to_vec(),
    };
    (measured, vec![figure.into(), waits.into()])
}

/// When each late request of the page was sent, and how long it waited; the mean of those sent at one moment.
fn wait(arm: &ArmLoads) -> Vec<(f64, f64)> {
    let spans = arm.samples.first().map(|s| s.spans.as_slice()).unwrap_or_default();
    let mut waits: Vec<_> = images(spans).map(|s| (s.sent, s.head - s.sent)).collect();
    waits.sort_by(|a, b| a.0.total_cmp(&b.0));
    let first = waits.first().map_or(0.0, |first| first.0);
    let moments = waits.chunk_by(|a, b| a.0 == b.0);
    moments.map(|at| (at[0].0 - first, mean(at.iter().map(|(_, wait)| *wait)))).collect()
}

/// What is timed: what the page asks for once a transfer has filled the queue, and nothing beside it.
fn images(spans: &[Span]) -> impl Iterator<Item = &Span> {
    spans.iter().filter(|s| s.sent >= BULK_ALONE_MS && s.bytes == IMAGE_BYTES)
}
