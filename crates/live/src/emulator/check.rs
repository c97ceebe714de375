//! What was asked for beside what was achieved.
//!
//! What is achieved is measured where packets leave, by the clock and not by the model: the rate from the moments at which packets
//! were written that the line had sent back to back, the delay from when a packet had left the line until it was written.

use base::{Duration, Instant};
use hdrhistogram::Histogram;
use link::{DropCause, PathConfig, PathStats, Rate};

use super::packet::Packet;
use crate::namespace::Turn;

/// Both directions.
#[derive(Clone, Debug)]
pub struct Check {
    /// From the near end to the far one.
    pub up: WayCheck,
    /// From the far end to the near one.
    pub down: WayCheck,
    /// How long it has been running.
    pub span: Duration,
    /// How much earlier than a packet is due the emulator wakes, as it has learned on this machine.
    pub lead: Duration,
    /// How the emulator's thread is scheduled.
    pub turn: Turn,
}

/// One direction.
#[derive(Clone, Debug)]
pub struct WayCheck {
    /// What was asked for; of the last link, if it was [changed](super::NewLink).
    pub asked: PathConfig,
    /// How often the link was changed. What is counted is of all links together.
    pub changes: u32,
    /// What the model has counted. Pieces of several TCP segments, which pass [whole](super::Config::carries_whole) where nothing is
    /// done to single packets, are one packet each here.
    pub path: PathStats,
    /// What came, in packets and bytes as on a wire.
    pub received: Count,
    /// What was written at the other end, likewise.
    pub delivered: Count,
    /// Packets dropped for want of room in the queue.
    pub full: u64,
    /// Packets dropped by the queue's discipline.
    pub aqm: u64,
    /// Runs of packets lost at random one after the other.
    pub loss_runs: u64,
    /// Packets that came when all memory for packets was in use.
    pub no_memory: u64,
    /// Packets that the kernel at the other end, or the gateway there, did not take.
    pub refused: u64,
    /// Packets to servers that were gone, or from them ([`Fate::gone`](super::Fate::gone)); and those of an address that was
    /// [left](super::NewLink::left).
    pub gone: u64,
    /// How late packets were written.
    late: Histogram<u32>,
    /// Sums over packets that were written: delay behind the line as asked for and as achieved.
    delay_asked: Duration,
    delay_achieved: Duration,
    /// Bits written at the end of gaps in which the line was never idle, and those gaps.
    busy_bits: u64,
    busy_span: Duration,
    /// The packet written last.
    last: Option<Written>,
    last_lost: Option<u64>,
}

/// Packets, and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Count {
    /// IP packets.
    pub packets: u64,
    /// Their bytes, headers included.
    pub bytes: u64,
}

impl Count {
    fn add(&mut self, packet: &Packet) {
        let (packets, bytes) = packet.on_wire();
        self.packets += packets;
        self.bytes += bytes;
    }
}

#[derive(Clone, Copy, Debug)]
struct Written {
    at: Instant,
    sent: Instant,
    extra: Duration,
}

/// How late packets were written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Lateness {
    /// Half were less late.
    pub median: Duration,
    /// 99 of 100 were less late.
    pub p99: Duration,
    /// The latest.
    pub max: Duration,
    /// Share of packets that were more than a millisecond late, percent.
    pub over_1ms_pct: f64,
}

/// Later than that is all the same.
const LATE_MAX_NS: u64 = 60_000_000_000;

impl WayCheck {
    pub(super) fn new(asked: &PathConfig) -> Self {
        Self {
            asked: asked.clone(),
            changes: 0,
            path: PathStats::default(),
            received: Count::default(),
            delivered: Count::default(),
            full: 0,
            aqm: 0,
            loss_runs: 0,
            no_memory: 0,
            refused: 0,
            gone: 0,
            late: Histogram::new_with_bounds(1, LATE_MAX_NS, 3).expect("valid bounds"),
            delay_asked: Duration::ZERO,
            delay_achieved: Duration::ZERO,
            busy_bits: 0,
            busy_span: Duration::ZERO,
            last: None,
            last_lost: None,
        }
    }

    /// The link is another from now on. The rate achieved is that of the last one.
    pub(super) fn changed(&mut self, asked: &PathConfig) {
        self.asked = asked.clone();
        self.changes += 1;
        (self.busy_bits, self.busy_span) = (0, Duration::ZERO);
        (self.last, self.last_lost) = (None, None);
    }

    /// A packet has come.
    pub(super) fn received(&mut self, packet: &Packet) {
        self.received.add(packet);
    }

    /// A packet was written at `now`.
    pub(super) fn delivered(&mut self, packet: &Packet, now: Instant) {
        self.delivered.add(packet);
        self.late.saturating_record(now.since(packet.due).as_nanos());
        self.delay_asked += packet.due.since(packet.sent);
        self.delay_achieved += now.since(packet.sent);
        if let Some(last) = self.last
            && last.sent == packet.line
            && last.extra == packet.extra
        {
            self.busy_bits += 8 * u64::from(link::Packet::wire_len(packet));
            self.busy_span += now.since(last.at);
        }
        self.last = Some(Written { at: now, sent: packet.sent, extra: packet.extra });
    }

    /// The way has dropped a packet.
    pub(super) fn dropped(&mut self, why: DropCause, number: u64) {
        match why {
            DropCause::Full => self.full += 1,
            DropCause::Discipline => self.aqm += 1,
            DropCause::Outage => {} // asked for packet by packet: there is nothing to hold it against
            DropCause::Loss => {
                self.loss_runs += u64::from(self.last_lost != number.checked_sub(1) || number == 0);
                self.last_lost = Some(number);
            }
        }
    }

    /// How late packets were; `None` if there was none.
    pub fn lateness(&self) -> Option<Lateness> {
        if self.late.is_empty() {
            return None;
        }
        let quantile = |q| Duration::from_nanos(self.late.value_at_quantile(q));
        let over = self.late.len() - self.late.count_between(0, 1_000_000);
        Some(Lateness {
            median: quantile(0.5),
            p99: quantile(0.99),
            max: Duration::from_nanos(self.late.max()),
            over_1ms_pct: 100.0 * over as f64 / self.late.len() as f64,
        })
    }

    /// Mean delay behind the line, asked for and achieved; `None` if there was no packet.
    pub fn delay(&self) -> Option<(Duration, Duration)> {
        let n = self.late.len();
        (n > 0).then(|| (self.delay_asked / n, self.delay_achieved / n))
    }

    /// The rate achieved while the line was never idle, bits a second; `None` if that was for less than 50 ms, or the rate is not
    /// constant.
    pub fn rate_bps(&self) -> Option<f64> {
        let measured =
            matches!(self.asked.rate, Rate::Constant(_)) && self.busy_span >= Duration::from_millis(50);
        measured.then(|| self.busy_bits as f64 / self.busy_span.as_secs_f64())
    }

    /// Share of packets lost at random, and the interval in which it lies for 95 of 100 links with the loss asked for, if the number of
    /// packets was what it was; `None` if there was no packet, or the link was changed.
    ///
    /// The interval is the normal one, made wider for losses in bursts: the variance of a mean over a Markov chain is that
    /// over independent draws, times (1 + r) / (1 − r), with r = 1 − (probability of turning bad + probability of turning good).
    pub fn loss(&self) -> Option<(f64, (f64, f64))> {
        let n = self.path.packets_in as f64;
        if n == 0.0 || self.changes > 0 {
            return None;
        }
        let p = self.asked.loss.mean();
        let correlation = match self.asked.loss {
            link::LossConfig::GilbertElliott { to_bad, to_good, .. } => {
                (1.0 - to_bad - to_good).clamp(-0.999, 0.999)
            }
            _ => 0.0,
        };
        let spread = 1.96 * (p * (1.0 - p) / n * (1.0 + correlation) / (1.0 - correlation)).sqrt();
        Some((self.path.dropped_loss as f64 / n, ((p - spread).max(0.0), (p + spread).min(1.0))))
    }
}
