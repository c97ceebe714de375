//! Losses: how the sender notices them and what it does with cwnd until they are repaired.

use base::{Duration, Instant};

use crate::config::{LossDetection, Reduction};
use crate::congestion::Controller;
use crate::scoreboard::Delivery;
use crate::segment::Segment;
use crate::sender::Sender;
use crate::stats::Stats;

/// RFC 5681 §3.2: so many duplicate acknowledgements mean a loss.
const DUP_THRESH: u32 = 3;

/// Where the sender stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Phase {
    #[default]
    Open,
    Recovery,
    Loss,
}

/// The sender's memory about losses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recovery {
    pub phase: Phase,
    /// SND.NXT when the phase began: when this is acknowledged, the phase is over.
    end: u64,
    /// The first retransmission goes out whatever cwnd says (RFC 6675 §5 step 4.3, RFC 6937 §3).
    pub force: bool,
    prr: Prr,
    /// RACK's reference: the last sent of all that was delivered, by order, and how long it took (RFC 8985 §6.2).
    newest: u64,
    newest_rtt: Duration,
    /// When RACK will give up on something that may only be late.
    pub look_again: Option<Instant>,
    /// What a timeout took, until it is clear that it was not spurious.
    undo: Option<Undo>,
    probe_due: bool,
    /// A tail-loss probe is out: SND.NXT after it, and whether it was a segment sent before (RFC 8985 §7.4).
    probe: Option<(u64, bool)>,
}

/// Proportional Rate Reduction (RFC 6937), in segments.
#[derive(Clone, Copy, Debug, Default)]
struct Prr {
    delivered: u32,
    out: u32,
    /// RecoverFS.
    flight: u32,
}

#[derive(Clone, Copy, Debug)]
struct Undo {
    cwnd: u32,
    ssthresh: u32,
    cc: Controller,
    /// When the first segment was sent again, once it was.
    resent: Option<Instant>,
}

impl Recovery {
    /// A segment was sent.
    pub fn on_sent(&mut self) {
        if self.phase == Phase::Recovery {
            self.prr.out += 1;
        }
    }

    pub fn note_resent(&mut self, now: Instant) {
        if let Some(undo) = &mut self.undo {
            undo.resent.get_or_insert(now);
        }
    }

    pub fn probe_due(&mut self) {
        self.probe_due = true;
    }

    pub fn take_probe(&mut self) -> bool {
        std::mem::take(&mut self.probe_due)
    }

    pub fn probed(&mut self, nxt: u64, again: bool) {
        self.probe = Some((nxt, again));
    }

    pub fn probing(&self) -> bool {
        self.probe.is_some()
    }
}

impl Sender {
    /// What an acknowledgement says about losses, and what that does to cwnd.
    pub(crate) fn recover(
        &mut self,
        now: Instant,
        segment: &Segment,
        advanced: bool,
        duplicate: bool,
        delivery: &mut Delivery,
        stats: &mut Stats,
    ) {
        self.judge_probe(segment, advanced, duplicate, delivery);
        if advanced {
            self.undo_if_spurious(segment, stats);
        }
        if !self.agreed.sack {
            self.count_duplicates(advanced, duplicate, delivery);
        }
        if self.recovery.phase != Phase::Open && self.una >= self.recovery.end {
            self.leave_recovery();
        }
        let newly_lost = self.detect(now, advanced, delivery);
        // Linux: not only when something is newly lost. A recovery ends with what had been sent at its beginning, and what was lost
        // since, though sent again, begins the next one.
        if self.recovery.phase == Phase::Open && self.board.lost() > 0 {
            self.enter_recovery(stats);
        }
        match self.recovery.phase {
            Phase::Recovery => self.reduce(delivery.segments, advanced && newly_lost == 0),
            Phase::Open | Phase::Loss if delivery.acked > 0 => self.grow(now, delivery.segments),
            Phase::Open | Phase::Loss => {}
        }
    }

    /// Marks what is lost; gives how much.
    fn detect(&mut self, now: Instant, advanced: bool, delivery: &Delivery) -> u32 {
        self.recovery.look_again = None;
        if let Some((newest, at)) = delivery.newest
            && newest > self.recovery.newest
        {
            self.recovery.newest = newest;
            self.recovery.newest_rtt = now.since(at);
        }
        if !self.agreed.sack {
            let partial = advanced && self.recovery.phase == Phase::Recovery;
            let three = self.recovery.phase == Phase::Open
                && self.board.sacked() >= DUP_THRESH
                && self.una > self.recovery.end;
            return if partial || three { self.board.lose_first() } else { 0 };
        }
        if self.board.sacked() == 0 && self.board.lost() == 0 {
            return 0; // in order, as nearly always
        }
        match self.config.loss_detection {
            LossDetection::Sack => self.board.lose_by_sacks(),
            LossDetection::Rack => self.lose_by_time(now),
        }
    }

    /// RFC 8985 §6.2. The reordering window of a quarter of a round trip is there only until three segments were
    /// SACKed, as on every path that has never shown reordering; the links here never do.
    fn lose_by_time(&mut self, now: Instant) -> u32 {
        let reordering = if self.recovery.phase != Phase::Open || self.board.sacked() >= DUP_THRESH {
            Duration::ZERO
        } else {
            self.rtt.min.min(self.rtt.srtt.unwrap_or_default()) / 4
        };
        let grace = self.recovery.newest_rtt + reordering;
        let (newly_lost, again) = self.board.lose_by_time(now, self.recovery.newest, grace);
        self.recovery.look_again = again;
        newly_lost
    }

    pub(crate) fn on_reorder_timer(&mut self, now: Instant, stats: &mut Stats) {
        self.recovery.look_again = None;
        let newly_lost = self.lose_by_time(now);
        if self.recovery.phase == Phase::Open && newly_lost > 0 {
            self.enter_recovery(stats);
            self.reduce(0, false);
        }
        self.set_timer(now);
    }

    fn count_duplicates(&mut self, advanced: bool, duplicate: bool, delivery: &mut Delivery) {
        if advanced {
            // What the duplicates had counted must not count twice.
            delivery.segments = delivery.acked.saturating_sub(self.board.sacked()).max(1);
            self.board.forget_duplicates(delivery.acked);
        } else if duplicate && self.recovery.phase != Phase::Loss && self.board.count_duplicate() {
            delivery.segments += 1;
        }
    }

    fn enter_recovery(&mut self, stats: &mut Stats) {
        stats.fast_recoveries += 1;
        let recovery = &mut self.recovery;
        recovery.phase = Phase::Recovery;
        recovery.end = self.nxt;
        recovery.force = true;
        recovery.probe = None;
        recovery.undo = None;
        recovery.prr = Prr { delivered: 0, out: 0, flight: self.board.len() };
        self.ssthresh = self.cc.on_loss(self.cwnd);
    }

    /// cwnd while in recovery.
    fn reduce(&mut self, delivered: u32, safe: bool) {
        if self.config.reduction == Reduction::AtOnce {
            self.cwnd = self.ssthresh; // RFC 6675 §5 step 4.2, RFC 6582 §3.2 step 3
            return;
        }
        let in_flight = self.board.in_flight();
        let prr = &mut self.recovery.prr;
        prr.delivered += delivered;
        let send = if in_flight > self.ssthresh {
            let share = u64::from(prr.delivered) * u64::from(self.ssthresh);
            (share.div_ceil(u64::from(prr.flight.max(1))) as u32).saturating_sub(prr.out)
        } else {
            // RFC 6937 §3's slow-start reduction bound while acknowledgements advance without new losses, else its
            // conservative one: the choice Linux makes, and RFC 9937 §6 after it.
            let bound = prr.delivered.saturating_sub(prr.out).max(delivered) + u32::from(safe);
            bound.min(self.ssthresh - in_flight)
        };
        self.cwnd = in_flight + send;
    }

    fn leave_recovery(&mut self) {
        if self.recovery.phase == Phase::Recovery {
            self.cwnd = self.ssthresh; // RFC 6582 §3.2 step 3; RFC 6937 §3
        }
        self.recovery.phase = Phase::Open;
        self.recovery.force = false;
        self.recovery.undo = None;
    }

    /// The retransmission timer fired (RFC 6298 §5.4–5.6, RFC 5681 §3.1).
    pub(crate) fn on_timeout(&mut self) {
        let recovery = &mut self.recovery;
        // Once a window: a timeout that interrupts recovery, or follows another, finds cwnd reduced already.
        let (cc, ssthresh) = (self.cc, self.cc.on_timeout(self.cwnd));
        if recovery.phase == Phase::Open {
            recovery.undo = Some(Undo { cwnd: self.cwnd, ssthresh: self.ssthresh, cc, resent: None });
            self.ssthresh = ssthresh;
        }
        recovery.phase = Phase::Loss;
        recovery.end = self.nxt;
        recovery.force = false;
        recovery.probe = None;
        recovery.look_again = None;
        self.cwnd = 1;
        if !self.agreed.sack {
            self.board.forget_all_duplicates();
        }
        self.board.lose_all();
    }

    /// Eifel detection (RFC 3522 §3.2): the first acknowledgement after a timeout that answers something sent *before*
    /// the retransmission shows that the timeout was premature. Then nothing was lost, and cwnd is as it was.
    fn undo_if_spurious(&mut self, segment: &Segment, stats: &mut Stats) {
        let Some(undo) = self.recovery.undo else { return };
        let (Some(resent), Some(timestamps)) = (undo.resent, segment.timestamps) else { return };
        self.recovery.undo = None;
        let resent = resent.as_micros() as u32;
        if (timestamps.echo.wrapping_sub(resent) as i32) < 0 {
            stats.spurious_timeouts += 1;
            self.cwnd = self.cwnd.max(undo.cwnd);
            self.ssthresh = undo.ssthresh;
            self.cc = undo.cc;
            self.board.unlose_all();
            self.recovery.phase = Phase::Open;
        }
    }

    /// RFC 8985 §7.4: whether the probe repaired a loss that nobody noticed, in which case cwnd pays for it.
    fn judge_probe(&mut self, segment: &Segment, advanced: bool, duplicate: bool, delivery: &Delivery) {
        let Some((end, again)) = self.recovery.probe else { return };
        if segment.ack < end {
            return;
        }
        let reported = segment.sack.iter().next().is_some_and(|block| block.end <= segment.ack);
        let twice = reported || (!advanced && duplicate && delivery.segments == 0);
        if !again || twice {
            self.recovery.probe = None;
        } else if segment.ack > end {
            self.recovery.probe = None;
            self.ssthresh = self.cc.on_loss(self.cwnd);
            self.cwnd = self.ssthresh;
        }
    }
}
