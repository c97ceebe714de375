//! The self-check: what was asked for beside what was achieved, in each direction, and whether that is the same thing.
//!
//! Everything achieved was measured by the clock where packets leave the emulator, or counted; nothing is taken from the model. What there
//! was too little traffic for is said to be unknown.

use std::fmt::Write as _;

use live::emulator::link::{LossConfig, Rate};
use live::emulator::{Check, LogSummary, WayCheck};
use serde::Serialize;

use super::shape;

/// A rate is as asked for within this, percent.
const RATE_PCT: f64 = 1.0;

/// And a delay if 99 of 100 packets were less late than this, ms.
const LATE_MS: f64 = 1.0;

/// What is said of a link at its end.
#[derive(Serialize, Debug)]
pub struct Report {
    pub seconds: f64,
    pub seed: u64,
    pub policy: String,
    /// How the emulator's thread was scheduled.
    pub scheduled: String,
    pub down: Way,
    pub up: Way,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogRows>,
}

/// Whether a value is as asked for.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    AsAsked,
    Off,
    /// There was not enough traffic to tell.
    Unknown,
}

impl Verdict {
    fn of(as_asked: bool) -> Self {
        if as_asked { Verdict::AsAsked } else { Verdict::Off }
    }

    fn mark(self) -> &'static str {
        match self {
            Verdict::AsAsked => "as asked",
            Verdict::Off => "OFF",
            Verdict::Unknown => "unknown",
        }
    }
}

#[derive(Serialize, Debug)]
pub struct Way {
    pub asked: String,
    pub rate: RateRow,
    pub delay: DelayRow,
    pub loss: LossRow,
    pub packets_in: u64,
    pub bytes_in: u64,
    pub packets_out: u64,
    pub bytes_out: u64,
    pub dropped_full: u64,
    pub dropped_by_discipline: u64,
    pub dropped_no_memory: u64,
    pub refused: u64,
    pub queue_bytes_most: u64,
}

#[derive(Serialize, Debug)]
pub struct RateRow {
    pub asked_kbps: Option<f64>,
    pub achieved_kbps: Option<f64>,
    pub verdict: Verdict,
}

#[derive(Serialize, Debug)]
pub struct DelayRow {
    pub asked_ms: f64,
    /// Means over all packets, jitter and detours included, from leaving the line.
    pub due_ms: Option<f64>,
    pub achieved_ms: Option<f64>,
    pub late_p50_ms: Option<f64>,
    pub late_p99_ms: Option<f64>,
    pub late_worst_ms: Option<f64>,
    pub verdict: Verdict,
}

#[derive(Serialize, Debug)]
pub struct LossRow {
    pub asked_pct: f64,
    pub achieved_pct: Option<f64>,
    /// Where 95 of 100 links that lose as asked would be, with so many packets.
    pub interval_pct: Option<[f64; 2]>,
    pub verdict: Verdict,
}

#[derive(Serialize, Debug)]
pub struct LogRows {
    pub rows: u64,
    pub lost: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Report {
    pub fn new(check: &Check, log: Option<&LogSummary>, seed: u64, policy: String) -> Self {
        let log = log.map(|log| LogRows {
            rows: log.rows,
            lost: log.lost,
            error: log.error.as_ref().map(ToString::to_string),
        });
        let seconds = check.span.as_secs_f64();
        let scheduled = check.turn.to_string();
        Self { seconds, seed, policy, scheduled, down: Way::new(&check.down), up: Way::new(&check.up), log }
    }

    /// For people: a heading, and three lines a direction.
    pub fn text(&self) -> String {
        let mut out = format!(
            "velodrome: link ran {:.1} s, seed {}, {}, scheduled {}\n",
            self.seconds, self.seed, self.policy, self.scheduled
        );
        for (name, way) in [("down", &self.down), ("up", &self.up)] {
            let _ = writeln!(out, "{name:>6}  {}", way.asked);
            let _ = writeln!(out, "        rate   {}", way.rate_text());
            let _ = writeln!(out, "        delay  {}", way.delay_text());
            let _ = writeln!(out, "        loss   {}", way.loss_text());
        }
        if let Some(log) = &self.log {
            let _ = writeln!(
                out,
                "        log: {} packets, {} left out because the disk was slow",
                log.rows, log.lost
            );
            if let Some(error) = &log.error {
                let _ = writeln!(out, "        the log is not complete: {error}");
            }
        }
        out
    }
}

impl Way {
    pub fn new(way: &WayCheck) -> Self {
        Self {
            asked: shape::describe(&way.asked),
            rate: rate(way),
            delay: delay(way),
            loss: loss(way),
            packets_in: way.received.packets,
            bytes_in: way.received.bytes,
            packets_out: way.delivered.packets,
            bytes_out: way.delivered.bytes,
            dropped_full: way.full,
            dropped_by_discipline: way.aqm,
            dropped_no_memory: way.no_memory,
            refused: way.refused,
            queue_bytes_most: way.path.queue_bytes_max,
        }
    }

    fn rate_text(&self) -> String {
        let carried = format!("{} packets, {} bytes came out", self.packets_out, self.bytes_out);
        match (self.rate.asked_kbps, self.rate.achieved_kbps) {
            (Some(asked), Some(achieved)) => format!(
                "{}: {achieved:.2} kbit/s while it was busy ({:+.2} %); {carried}",
                self.rate.verdict.mark(),
                (achieved / asked - 1.0) * 100.0
            ),
            (Some(_), None) => format!("unknown: the line was not busy for long enough; {carried}"),
            (None, _) => format!("not constant, so not compared; {carried}"),
        }
    }

    fn delay_text(&self) -> String {
        match (self.delay.due_ms, self.delay.achieved_ms, self.delay.late_p50_ms, self.delay.late_p99_ms) {
            (Some(due), Some(achieved), Some(p50), Some(p99)) => format!(
                "{}: {achieved:.3} ms on average for {due:.3}; late by {p50:.3} ms (half), {p99:.3} (99 %), {:.3} (worst)",
                self.delay.verdict.mark(),
                self.delay.late_worst_ms.unwrap_or_default(),
            ),
            _ => "unknown: no packet came".to_owned(),
        }
    }

    fn loss_text(&self) -> String {
        let mut text = match (self.loss.achieved_pct, self.loss.interval_pct) {
            (Some(achieved), Some([low, high])) => format!(
                "{}: {achieved:.3} % of {} for {:.3} % (95 of 100 such links: {low:.3}–{high:.3})",
                self.loss.verdict.mark(),
                self.packets_in,
                self.loss.asked_pct
            ),
            _ => format!("unknown: {} packets are too few for {} %", self.packets_in, self.loss.asked_pct),
        };
        let others = [
            (self.dropped_full, "found the queue full"),
            (self.dropped_by_discipline, "dropped by the queue's discipline"),
            (self.dropped_no_memory, "DROPPED FOR WANT OF MEMORY"),
            (self.refused, "REFUSED by the kernel at the other end"),
        ];
        for (n, what) in others.into_iter().filter(|(n, _)| *n > 0) {
            let _ = write!(text, "; {n} {what}");
        }
        text
    }
}

fn rate(way: &WayCheck) -> RateRow {
    let asked_kbps = match &way.asked.rate {
        Rate::Constant(rate) => Some(rate.as_bps() as f64 / 1e3),
        Rate::Unlimited | Rate::Trace(_) => None,
    };
    let achieved_kbps = way.rate_bps().map(|bps| bps / 1e3);
    let verdict = match (asked_kbps, achieved_kbps) {
        (Some(asked), Some(achieved)) => Verdict::of((achieved / asked - 1.0).abs() * 100.0 <= RATE_PCT),
        _ => Verdict::Unknown,
    };
    RateRow { asked_kbps, achieved_kbps, verdict }
}

fn delay(way: &WayCheck) -> DelayRow {
    let (means, late) = (way.delay(), way.lateness());
    DelayRow {
        asked_ms: way.asked.delay.as_millis_f64(),
        due_ms: means.map(|(due, _)| due.as_millis_f64()),
        achieved_ms: means.map(|(_, achieved)| achieved.as_millis_f64()),
        late_p50_ms: late.map(|late| late.median.as_millis_f64()),
        late_p99_ms: late.map(|late| late.p99.as_millis_f64()),
        late_worst_ms: late.map(|late| late.max.as_millis_f64()),
        verdict: late.map_or(Verdict::Unknown, |late| Verdict::of(late.p99.as_millis_f64() <= LATE_MS)),
    }
}

fn loss(way: &WayCheck) -> LossRow {
    let asked_pct = way.asked.loss.mean() * 100.0;
    let row = LossRow { asked_pct, achieved_pct: None, interval_pct: None, verdict: Verdict::Unknown };
    let Some((share, (low, high))) = way.loss() else { return row };
    // The normal approximation wants a handful of losses; without any asked for, one is too many.
    let enough = way.asked.loss == LossConfig::None || way.path.packets_in as f64 * asked_pct / 100.0 >= 5.0;
    if !enough {
        return row;
    }
    LossRow {
        achieved_pct: Some(share * 100.0),
        interval_pct: Some([low * 100.0, high * 100.0]),
        verdict: Verdict::of((low..=high).contains(&share)),
        ..row
    }
}

/// One line while it runs.
pub fn counters(check: &Check) -> String {
    let way = |name: &str, way: &WayCheck| {
        format!(
            "{name} {} packets in, {} out, {} lost, {} dropped, {} on the way",
            way.received.packets,
            way.delivered.packets,
            way.path.dropped_loss,
            way.full + way.aqm + way.no_memory,
            way.path
                .packets_in
                .saturating_sub(way.path.packets_out + way.path.dropped_loss + way.path.dropped_queue),
        )
    };
    format!("{:.1} s: {}; {}", check.span.as_secs_f64(), way("down", &check.down), way("up", &check.up))
}
