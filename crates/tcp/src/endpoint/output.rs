//! `poll_transmit`, `poll_timeout` and `poll_event`.

use base::Instant;

use super::{Endpoint, Event, Open, State};
use crate::Config;
use crate::segment::{Flags, SackBlocks, Segment, SynOptions, Timestamps};
use crate::window::ReceiveWindow;

impl Endpoint {
    /// The next segment to put on the path, `None` when there is none for now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        if let Some(reset) = self.reset.take() {
            self.stats.segments_sent += 1;
            return Some(reset);
        }
        let segment = match &mut self.state {
            State::ExpectSynAck(handshake) if handshake.due => {
                (handshake.due, handshake.sent) = (false, now);
                self.stats.retransmits += u64::from(handshake.retries > 0);
                syn(&self.config, now)
            }
            State::ExpectAck(handshake, offer) if handshake.due => {
                (handshake.due, handshake.sent) = (false, now);
                self.stats.retransmits += u64::from(handshake.retries > 0);
                let mut segment = syn(&self.config, now);
                (segment.ack, segment.flags.ack) = (1, true);
                // An option is in the answer only if it was in the question (RFC 7323 §1.3, RFC 2018 §2).
                segment.timestamps = segment.timestamps.filter(|_| offer.agreed.timestamps);
                if let Some(timestamps) = &mut segment.timestamps {
                    timestamps.echo = offer.timestamp;
                }
                if let Some(options) = &mut segment.syn_options {
                    options.sack_permitted = offer.agreed.sack;
                    options.window_scaling = offer.agreed.window_scaling;
                }
                segment
            }
            State::Open(_) => self.poll_open(now)?,
            State::Closed(open) if open.receiver.ack_now() => open.pure_ack(now),
            _ => return None,
        };
        self.stats.segments_sent += 1;
        self.stats.bytes_sent += u64::from(segment.len);
        Some(segment)
    }

    fn poll_open(&mut self, now: Instant) -> Option<Segment> {
        let State::Open(open) = &mut self.state else { return None };
        if std::mem::take(&mut open.finish_handshake) {
            return Some(open.pure_ack(now));
        }
        if open.ack_goes_first() {
            return Some(open.pure_ack(now));
        }
        let Some(segment) = open.data(now, &mut self.stats) else {
            return open.receiver.ack_now().then(|| open.pure_ack(now));
        };
        // Sending may restart an idle connection from a smaller window.
        self.stats.cwnd = open.sender.cwnd;
        self.note_writable();
        Some(segment)
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), if nothing else happens before. Ask once
    /// [`poll_transmit`](Self::poll_transmit) has given `None`: transmitting sets timers, and so does finding the
    /// peer's window closed.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::ExpectSynAck(handshake) | State::ExpectAck(handshake, _) => Some(handshake.again),
            State::Open(open) => match (open.sender.timer(), open.receiver.ack_by()) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            State::Closed(open) => open.receiver.ack_by(),
            State::ExpectSyn | State::Failed => None,
        }
    }

    /// The next event, `None` when there is none for now.
    pub fn poll_event(&mut self) -> Option<Event> {
        let pending = &mut self.pending;
        let events = [
            (&mut pending.connected, Event::Connected),
            (&mut pending.readable, Event::Readable),
            (&mut pending.peer_closed, Event::PeerClosed),
            (&mut pending.writable, Event::Writable),
            (&mut pending.closed, Event::Closed),
        ];
        for (flag, event) in events {
            if std::mem::take(flag) {
                return Some(event);
            }
        }
        pending.failed.take().map(Event::Failed)
    }
}

impl Open {
    /// Whether an acknowledgement is due that nothing takes along which was there before it.
    fn ack_goes_first(&mut self) -> bool {
        if !self.receiver.ack_now() {
            self.ack_before = None;
        }
        self.ack_before.take_if(|end| self.sender.sent_all_before(*end)).is_some()
    }

    /// The next segment with data, a FIN or a probe.
    fn data(&mut self, now: Instant, stats: &mut crate::Stats) -> Option<Segment> {
        let mut sack = SackBlocks::default();
        let mut room = self.sender.agreed.mss;
        if self.receiver.needs_sack() {
            sack = self.receiver.sack_blocks();
            room -= sack.option_len();
        }
        let piece = self.sender.poll(now, room, stats)?;
        let mut segment = self.segment(now);
        (segment.seq, segment.len) = (piece.seq, piece.len);
        (segment.flags.fin, segment.flags.psh) = (piece.fin, piece.last && piece.len > 0);
        if piece.again {
            if self.receiver.needs_sack() {
                // It was cut to a full segment when it was first sent, so there may be no room for what an
                // acknowledgement has to say: that still goes by itself.
                self.receiver.fill(&mut segment);
                return Some(segment);
            }
        } else {
            self.receiver.on_data_sent(now);
        }
        segment.sack = sack;
        self.receiver.fill(&mut segment);
        self.receiver.acknowledged();
        Some(segment)
    }

    fn pure_ack(&mut self, now: Instant) -> Segment {
        let mut segment = self.segment(now);
        segment.seq = self.sender.nxt;
        segment.sack = self.receiver.sack_blocks();
        self.receiver.fill(&mut segment);
        self.receiver.acknowledged();
        segment
    }

    fn segment(&self, now: Instant) -> Segment {
        let timestamps = self.sender.agreed.timestamps.then(|| stamp(now, self.receiver.echo()));
        Segment { timestamps, ..Segment::default() }
    }
}

fn stamp(now: Instant, echo: u32) -> Timestamps {
    Timestamps { value: now.as_micros() as u32, echo }
}

fn syn(config: &Config, now: Instant) -> Segment {
    Segment {
        window: ReceiveWindow::in_syn(config),
        timestamps: config.timestamps.then(|| stamp(now, 0)),
        syn_options: Some(SynOptions {
            mss: config.mss,
            sack_permitted: config.sack,
            window_scaling: config.window_scaling,
        }),
        flags: Flags { syn: true, ..Flags::default() },
        ..Segment::default()
    }
}
