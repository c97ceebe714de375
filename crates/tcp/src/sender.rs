//! The half of a connection that sends: what may go now, and what an acknowledgement changes.
//!
//! It is in one of three phases, called as Linux calls them. *Open*: nothing is known to be lost. *Recovery*: a loss
//! was noticed from acknowledgements (RFC 6675, RFC 8985, or RFC 6582 without SACK) and is being repaired. *Loss*: a
//! timeout fired, and everything starts from a window of one. Recovery and Loss end when what had been sent at their
//! beginning is acknowledged.
//!
//! `poll` decides what to send, `on_ack` and `on_timer` what has changed; the loss detection is in `recovery.rs`.

use base::{Duration, Instant};

use crate::config::{Config, CwndGrowth};
use crate::congestion::{Ack, Controller};
use crate::hystart::Sample;
use crate::pacing::Pacer;
use crate::receiver::Agreed;
use crate::recovery::{Phase, Recovery};
use crate::rtt::Rtt;
use crate::scoreboard::{Delivery, Scoreboard, Sent};
use crate::segment::Segment;
use crate::stats::Stats;
use crate::wheel::Wheel;

/// No slow-start threshold yet.
pub(crate) const INFINITE: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(crate) config: Config,
    pub(crate) agreed: Agreed,
    /// SND.UNA: the oldest sequence number not acknowledged.
    pub(crate) una: u64,
    /// SND.NXT: the next to send.
    pub(crate) nxt: u64,
    /// Where the bytes end that the application has written.
    end: u64,
    /// The application has written all.
    closed: bool,
    /// The FIN has been sent.
    fin_sent: bool,
    /// The first sequence number beyond the peer's window.
    pub(crate) edge: u64,
    pub(crate) board: Scoreboard,
    pub(crate) rtt: Rtt,
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    pub(crate) cc: Controller,
    pub(crate) recovery: Recovery,
    timer: Option<(Instant, Timer)>,
    wheel: Wheel,
    /// Timeouts in a row without an answer.
    silent: u32,
    /// A window probe is due.
    probe_window: bool,
    /// Whether cwnd, and not the application or the peer, held the sender back, and how many segments were out at
    /// most, in the window that ends at `usage_end` (RFC 7661 has the reasons).
    cwnd_limited: bool,
    out_max: u32,
    usage_end: u64,
    /// When a segment with new data was last sent, and since when less than cwnd has been in use.
    last_sent: Instant,
    unused_since: Instant,
    /// Segments out at most since then.
    out_since: u32,
    /// What was sent last has not been noted as use of cwnd.
    unnoted: bool,
    /// When the next segment may go, if segments are spread.
    pacer: Option<Pacer>,
}

/// What the one timer waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    /// RFC 6298 §5.
    Retransmit,
    /// RFC 8985 §7.
    TailLossProbe,
    /// RFC 8985 §6.3.
    Reorder,
    /// RFC 9293 §3.8.6.1.
    Persist,
}

/// What to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub seq: u64,
    pub len: u32,
    pub fin: bool,
    /// Nothing waits behind it.
    pub last: bool,
    /// Sent before.
    pub again: bool,
}

/// The peer has been silent for too long.
pub(crate) struct TimedOut;

impl Sender {
    /// The handshake is over. `edge` is the end of the first window that the peer offered; a handshake in which more
    /// than one SYN was lost starts with a window of one segment.
    pub fn new(config: &Config, agreed: Agreed, edge: u64, rtt: Rtt, retries: u32, now: Instant) -> Self {
        Self {
            config: config.clone(),
            agreed,
            una: 1,
            nxt: 1,
            end: 1,
            closed: false,
            fin_sent: false,
            edge,
            board: Scoreboard::default(),
            rtt,
            // RFC 5681 §3.1 says so of one lost SYN; Linux, since its first timeout is 1 s, of two.
            cwnd: if retries > 1 { 1 } else { config.initial_cwnd.max(1) },
            ssthresh: INFINITE,
            cc: Controller::new(config.congestion, config.hystart),
            recovery: Recovery::default(),
            timer: None,
            wheel: Wheel::new(config.timer_tick),
            silent: 0,
            probe_window: false,
            cwnd_limited: false,
            out_max: 0,
            usage_end: 1,
            last_sent: now,
            unused_since: now,
            out_since: 0,
            unnoted: false,
            pacer: config.pacing.then(Pacer::default),
        }
    }

    /// Begins with a wider window than configured. A handshake that lost SYNs, or a loss since, knows better.
    pub fn start_with(&mut self, segments: u32) {
        let unharmed = self.ssthresh == INFINITE && self.recovery.phase == Phase::Open;
        if unharmed && self.cwnd >= self.config.initial_cwnd {
            self.cwnd = self.cwnd.max(segments);
        }
    }

    pub fn write(&mut self, n: u64) {
        self.end += n;
    }

    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Whether the application has written all.
    pub fn closed(&self) -> bool {
        self.closed
    }

    /// Bytes written and not sent.
    pub fn unsent(&self) -> u64 {
        self.end.saturating_sub(self.nxt)
    }

    /// Where the bytes end that the application has written.
    pub fn written(&self) -> u64 {
        self.end
    }

    /// Whether all before `end` has been sent, and nothing is to be sent again.
    pub fn sent_all_before(&self, end: u64) -> bool {
        self.nxt >= end && !self.board.must_resend()
    }

    /// Bytes written and not acknowledged.
    pub fn queued(&self) -> u64 {
        self.end.saturating_sub(self.una)
    }

    /// The peer has everything, the FIN too.
    pub fn finished(&self) -> bool {
        self.fin_sent && self.board.is_empty()
    }

    pub fn timer(&self) -> Option<Instant> {
        let timer = self.timer.map(|(at, _)| at);
        [timer, self.pacer.as_ref().and_then(Pacer::wakes)].into_iter().flatten().min()
    }

    /// The next segment to send, with at most `room` bytes of payload, or `None`.
    pub fn poll(&mut self, now: Instant, room: u32, stats: &mut Stats) -> Option<Piece> {
        if self.recovery.take_probe() && !self.board.is_empty() {
            return self.poll_probe(now, room, stats);
        }
        let in_flight = self.board.in_flight();
        if self.board.must_resend() {
            if in_flight >= self.cwnd && !self.recovery.force {
                return None;
            }
            if self.is_held(now) {
                return None;
            }
            return self.resend(now, stats);
        }
        if self.unsent() == 0 && (!self.closed || self.fin_sent) {
            return None;
        }
        if std::mem::take(&mut self.probe_window) {
            return Some(self.window_probe(now, stats));
        }
        if self.board.is_empty() {
            self.restart_if_idle(now);
        }
        if in_flight >= self.cwnd || self.is_held(now) {
            return None;
        }
        let piece = self.next_piece(room);
        if piece.is_none() && self.board.is_empty() && self.timer.is_none() {
            self.arm(now, self.rtt.rto(), Timer::Persist);
        }
        self.send_new(now, piece?);
        piece
    }

    /// Whether the next segment is to be sent later, for the sake of an even pace.
    fn is_held(&mut self, now: Instant) -> bool {
        self.pacer.as_mut().is_some_and(|pacer| pacer.is_held(now))
    }

    /// A segment with so many bytes leaves.
    fn pace(&mut self, now: Instant, len: u32) {
        let Some(pacer) = &mut self.pacer else { return };
        let cwnd = self.cwnd.max(self.board.in_flight());
        let is_slow_start = self.cwnd < self.ssthresh / 2;
        pacer.note(now, len, u64::from(cwnd) * u64::from(self.agreed.mss), is_slow_start, self.rtt.srtt);
    }

    /// The next new segment if the peer's window holds it whole: half-empty segments into the rest of a window would
    /// be the silly window syndrome (RFC 9293 §3.8.6.2.1, with Nagle's algorithm off).
    fn next_piece(&self, room: u32) -> Option<Piece> {
        let unsent = self.unsent();
        let len = unsent.min(u64::from(room));
        let last = len == unsent;
        let fits = self.nxt + len <= self.edge;
        let fin = last && self.closed && !self.fin_sent && self.nxt + len < self.edge;
        (fits && (len > 0 || fin)).then_some(Piece {
            seq: self.nxt,
            len: len as u32,
            fin,
            last,
            again: false,
        })
    }

    fn send_new(&mut self, now: Instant, piece: Piece) {
        if now > self.last_sent {
            self.note_usage();
        }
        let len = piece.len + u32::from(piece.fin);
        self.board.push(self.nxt, len, piece.fin, now);
        self.nxt += u64::from(len);
        self.fin_sent |= piece.fin;
        self.recovery.on_sent();
        self.last_sent = now;
        self.unnoted = true;
        self.pace(now, piece.len);
        if !matches!(self.timer, Some((_, Timer::Retransmit | Timer::Reorder))) {
            self.set_timer(now);
        }
    }

    fn resend(&mut self, now: Instant, stats: &mut Stats) -> Option<Piece> {
        let first = self.board.front().map(|first| first.seq);
        let sent = self.board.resend(now)?;
        self.recovery.force = false;
        self.recovery.on_sent();
        self.recovery.note_resent(now);
        stats.retransmits += 1;
        self.pace(now, sent.len);
        if first == Some(sent.seq) || self.timer.is_none() {
            self.arm(now, self.rtt.rto(), Timer::Retransmit);
        }
        Some(again(&sent))
    }

    /// A probe for a lost tail (RFC 8985 §7.3): new data if there is some and the peer's window takes it, else the
    /// last segment once more. It may exceed cwnd by one.
    fn poll_probe(&mut self, now: Instant, room: u32, stats: &mut Stats) -> Option<Piece> {
        stats.tlp_probes += 1;
        let piece = match self.next_piece(room) {
            Some(new) => {
                self.send_new(now, new);
                new
            }
            None => {
                let last = self.board.resend_last(now)?;
                stats.retransmits += 1;
                again(&last)
            }
        };
        self.recovery.probed(self.nxt, piece.again);
        self.arm(now, self.rtt.rto(), Timer::Retransmit);
        Some(piece)
    }

    /// What the window still takes, or, if it takes nothing, an empty segment from the past, which the peer must
    /// answer (so does Linux, where RFC 9293 §3.8.6.1 would send one byte).
    fn window_probe(&mut self, now: Instant, stats: &mut Stats) -> Piece {
        stats.window_probes += 1;
        let room = self.edge.saturating_sub(self.nxt).min(u64::from(self.agreed.mss));
        if let Some(piece) = self.next_piece(room as u32) {
            self.timer = None;
            self.send_new(now, piece);
            return piece;
        }
        self.arm(now, self.rtt.rto(), Timer::Persist);
        Piece { seq: self.una - 1, len: 0, fin: false, last: false, again: true }
    }

    /// An acknowledgement of something between SND.UNA and SND.NXT arrived; says whether it advanced SND.UNA.
    pub fn on_ack(
        &mut self,
        now: Instant,
        segment: &Segment,
        echo: Option<Duration>,
        stats: &mut Stats,
    ) -> bool {
        let ack = segment.ack;
        if ack > self.nxt || ack < self.una {
            return false;
        }
        self.note_usage();
        let edge = ack + segment.window;
        let moved = edge != self.edge;
        self.edge = edge;
        self.silent = 0;
        let advanced = ack > self.una;
        if !advanced && self.board.is_empty() {
            if moved {
                self.on_window_open();
            }
            return false;
        }
        let mut delivery = Delivery::new(self.believable(now));
        if !segment.sack.is_empty() {
            self.board.sack(&segment.sack, ack, &mut delivery);
        }
        if advanced {
            self.una = ack;
            self.board.acknowledge(ack, &mut delivery);
        }
        self.measure(now, echo, &delivery);
        let duplicate = !advanced && !moved && segment.len == 0 && !segment.flags.fin;
        self.recover(now, segment, advanced, duplicate, &mut delivery, stats);
        if advanced || self.recovery.look_again.is_some() || self.queue_drains(&delivery) {
            self.set_timer(now);
        } else if delivery.segments > 0 && matches!(self.timer, Some((_, Timer::TailLossProbe))) {
            self.arm(now, self.rtt.rto(), Timer::Retransmit);
        }
        advanced
    }

    /// A SACK of something sent before the first segment was (again) shows that the answer to that one is still on its
    /// way, behind a queue perhaps longer than any timeout: so the timer starts afresh, as in Linux (`tcp_clean_rtx_queue`).
    fn queue_drains(&self, delivery: &Delivery) -> bool {
        matches!((delivery.sacked_sent, self.board.front()), (Some(sent), Some(first)) if sent < first.at)
    }

    fn believable(&self, now: Instant) -> Instant {
        if self.rtt.min == Duration::MAX {
            now
        } else {
            Instant::ZERO + (now.since(Instant::ZERO) - self.rtt.min)
        }
    }

    /// RFC 6298 §3 with Linux's preferences: the oldest segment acknowledged, so that the peer's delay is part of it;
    /// else a SACKed one; else the timestamp's echo, which is unambiguous even for what was sent again.
    fn measure(&mut self, now: Instant, echo: Option<Duration>, delivery: &Delivery) {
        let sent = if delivery.ambiguous { None } else { delivery.acked_sent }.or(delivery.sacked_sent);
        let rtt = sent.map(|at| now.since(at)).or(if delivery.acked > 0 { echo } else { None });
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt);
        }
        let newest = if delivery.ambiguous { None } else { delivery.acked_last };
        if let Some(at) = delivery.sacked_last.or(newest) {
            let sample = Sample {
                now,
                una: self.una,
                nxt: self.nxt,
                cwnd: self.cwnd,
                slow_start: self.cwnd < self.ssthresh,
                delay: now.since(at),
            };
            if self.cc.on_delay(&sample) {
                self.ssthresh = self.cwnd;
            }
        }
    }

    fn on_window_open(&mut self) {
        if self.edge > self.nxt && matches!(self.timer, Some((_, Timer::Persist))) {
            self.rtt.end_back_off();
            self.timer = None;
        }
    }

    /// Slow start and congestion avoidance over `segments` newly acknowledged (RFC 5681 §3.1).
    pub(crate) fn grow(&mut self, now: Instant, segments: u32) {
        // RFC 7661 §4.1's reason: a window that was not used says nothing about the path.
        if !self.is_cwnd_used() {
            return;
        }
        let slow_start = self.cwnd < self.ssthresh;
        let per_ack = self.config.cwnd_growth == CwndGrowth::PerAck;
        let mut segments = segments;
        if slow_start {
            let step = if per_ack { segments.min(1) } else { segments };
            let taken = step.min(self.ssthresh - self.cwnd);
            self.cwnd += taken;
            segments = step - taken;
        } else if per_ack && matches!(self.cc, Controller::Reno(_)) {
            segments = segments.min(1); // CUBIC follows the clock, whatever an acknowledgement covers
        }
        if segments > 0 {
            self.cwnd = self.cc.avoid(self.cwnd, Ack { now, segments });
        }
    }

    /// Whether the last window used cwnd, by Linux's rule: all of it, or in slow start half.
    fn is_cwnd_used(&self) -> bool {
        self.cwnd_limited || (self.cwnd < self.ssthresh && self.cwnd < 2 * self.out_max)
    }

    /// Linux's `tcp_cwnd_validate`: remembers, window by window, how much of cwnd was in use. It looks at a burst as a whole; so this
    /// is called before anything follows the burst.
    fn note_usage(&mut self) {
        if !std::mem::take(&mut self.unnoted) {
            return;
        }
        let now = self.last_sent;
        let limited = self.board.in_flight() >= self.cwnd;
        let out = self.board.len();
        if self.una >= self.usage_end || limited || (!self.cwnd_limited && out > self.out_max) {
            (self.cwnd_limited, self.out_max, self.usage_end) = (limited, out, self.nxt);
        }
        if self.is_cwnd_used() {
            (self.unused_since, self.out_since) = (now, 0);
            return;
        }
        self.out_since = self.out_since.max(out);
        if self.config.idle_restart && now.since(self.unused_since) >= self.rtt.rto() {
            // RFC 2861 §3.2: half-way to what was used, once a timeout.
            if self.recovery.phase == Phase::Open {
                let used = self.out_since.max(self.config.initial_cwnd);
                if used < self.cwnd {
                    self.ssthresh = self.current_ssthresh();
                    self.cwnd = (self.cwnd + used) / 2;
                }
                self.out_since = 0;
            }
            self.unused_since = now;
        }
    }

    /// Nothing is in flight: after a pause the window halves for each timeout that passed, down to the initial one
    /// (RFC 5681 §4.1 in the gentler form of RFC 2861 §3.1, as Linux has it).
    fn restart_if_idle(&mut self, now: Instant) {
        let (mut idle, rto) = (now.since(self.last_sent), self.rtt.rto());
        if idle <= rto {
            return;
        }
        self.cc.on_idle(idle);
        self.last_sent = now;
        let floor = self.config.initial_cwnd.min(self.cwnd);
        if !self.config.idle_restart {
            return;
        }
        self.ssthresh = self.current_ssthresh();
        while idle > rto && self.cwnd > floor {
            self.cwnd /= 2;
            idle = idle - rto;
        }
        self.cwnd = self.cwnd.max(floor);
        self.unused_since = now;
    }

    fn current_ssthresh(&self) -> u32 {
        self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4)
    }

    /// Arms the one timer for what is in flight (RFC 6298 §5.1–5.3, RFC 8985 §7.2).
    pub(crate) fn set_timer(&mut self, now: Instant) {
        let rto = self.rtt.rto();
        if self.board.is_empty() {
            self.timer = None;
        } else if let Some(at) = self.recovery.look_again {
            self.arm(now, at.since(now), Timer::Reorder);
        } else if let Some(pto) = self.probe_timeout() {
            self.arm(now, pto.min(rto), Timer::TailLossProbe);
        } else {
            self.arm(now, rto, Timer::Retransmit);
        }
    }

    fn arm(&mut self, now: Instant, span: Duration, timer: Timer) {
        self.timer = Some((self.wheel.due(now, now + span), timer));
    }

    /// RFC 8985 §7.2: two round trips, and the longest delay of an acknowledgement if only one segment is out to
    /// cause one (Linux takes its least timeout, 200 ms, for it). `None` where §7.2 allows no probe.
    fn probe_timeout(&self) -> Option<Duration> {
        let allowed = self.config.tail_loss_probe
            && self.agreed.sack
            && self.recovery.phase == Phase::Open
            && self.board.sacked() == 0
            && !self.recovery.probing();
        let delayed = if self.board.len() == 1 { self.config.rto_min } else { Duration::ZERO };
        allowed.then(|| self.rtt.srtt.map_or(Duration::from_secs(1), |srtt| srtt * 2 + delayed))
    }

    /// The moment that `timer` gave has come.
    pub fn on_timer(&mut self, now: Instant, stats: &mut Stats) -> Result<(), TimedOut> {
        let Some((at, timer)) = self.timer else { return Ok(()) }; // a pace needs no more than to be asked for segments
        if now < at {
            return Ok(());
        }
        self.timer = None;
        match timer {
            Timer::TailLossProbe => self.recovery.probe_due(),
            Timer::Reorder => self.on_reorder_timer(now, stats),
            Timer::Persist => {
                self.count_silence()?;
                self.rtt.back_off();
                self.probe_window = true;
            }
            Timer::Retransmit => {
                self.count_silence()?;
                stats.timeouts += 1;
                self.on_timeout();
                self.rtt.back_off();
                self.arm(now, self.rtt.rto(), Timer::Retransmit);
            }
        }
        Ok(())
    }

    fn count_silence(&mut self) -> Result<(), TimedOut> {
        self.silent += 1;
        if self.silent > self.config.data_retries { Err(TimedOut) } else { Ok(()) }
    }
}

fn again(sent: &Sent) -> Piece {
    Piece { seq: sent.seq, len: sent.len - u32::from(sent.fin), fin: sent.fin, last: false, again: true }
}
