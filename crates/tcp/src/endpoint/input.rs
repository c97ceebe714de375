//! `handle_segment` and `handle_timeout`.

use base::{Duration, Instant};

use super::{Endpoint, Error, Handshake, Offer, Open, State};
use crate::Config;
use crate::receiver::{Agreed, Receiver};
use crate::rtt::Rtt;
use crate::segment::{Segment, SynOptions, TIMESTAMPS_LEN};
use crate::sender::{INFINITE, Sender};

impl Endpoint {
    /// A segment of this connection has arrived. The path must not reorder: nothing here looks for old segments
    /// behind new ones, beyond ignoring what is out of the window.
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment) {
        self.stats.segments_received += 1;
        match &mut self.state {
            State::Open(_) => self.handle_open(now, segment),
            State::ExpectSyn => self.handle_syn(now, segment),
            State::ExpectSynAck(_) => self.handle_syn_ack(now, segment),
            State::ExpectAck(..) => self.handle_first_ack(now, segment),
            // The last acknowledgement was lost: RFC 9293 §3.10.7.4, TIME-WAIT.
            State::Closed(open) if !segment.flags.rst => {
                open.receiver.handle(now, segment, None);
            }
            State::Closed(_) => {}
            State::Failed => self.reset = segment.refusal(),
        }
    }

    /// RFC 9293 §3.10.7.2.
    fn handle_syn(&mut self, now: Instant, segment: &Segment) {
        match &segment.syn_options {
            Some(options) if segment.flags.syn && !segment.flags.ack => {
                let offer = offer(&self.config, segment, options);
                self.state = State::ExpectAck(Handshake::new(now, &self.config), offer);
            }
            _ => self.reset = segment.refusal(),
        }
    }

    /// RFC 9293 §3.10.7.3. A simultaneous open is not modelled: a SYN without an ACK is ignored.
    fn handle_syn_ack(&mut self, now: Instant, segment: &Segment) {
        let State::ExpectSynAck(handshake) = &self.state else { return };
        if segment.flags.rst {
            self.fail(Error::Refused);
        } else if segment.flags.syn
            && segment.flags.ack
            && let Some(options) = &segment.syn_options
        {
            let (handshake, offer) = (handshake.clone(), offer(&self.config, segment, options));
            self.establish(now, &handshake, &offer, segment, true);
        }
    }

    /// RFC 9293 §3.10.7.4, SYN-RECEIVED.
    fn handle_first_ack(&mut self, now: Instant, segment: &Segment) {
        let State::ExpectAck(handshake, offer) = &mut self.state else { return };
        if segment.flags.rst {
            self.fail(Error::Reset);
        } else if segment.flags.syn {
            // The peer did not see our answer, or our timer was sooner than its SYN: Linux answers that SYN too, but one in
            // 500 ms (`tcp_invalid_ratelimit`). If both happen at once, which only timers without ticks can do, one is enough.
            let recently = |at: Instant| now.since(at) < Duration::from_millis(500);
            if !handshake.due && handshake.sent < now && !handshake.answered.is_some_and(recently) {
                handshake.answered = Some(now);
                handshake.repeat(now);
            }
        } else if segment.flags.ack && segment.ack == 1 {
            let (handshake, offer) = (handshake.clone(), *offer);
            self.establish(now, &handshake, &offer, segment, false);
            self.handle_open(now, segment);
        }
    }

    fn establish(
        &mut self,
        now: Instant,
        handshake: &Handshake,
        offer: &Offer,
        segment: &Segment,
        client: bool,
    ) {
        let (config, agreed) = (&self.config, offer.agreed);
        let mut rtt = Rtt::new(config.syn_rto, config.rto_min);
        let measured = match echo(now, segment) {
            Some(echo) if agreed.timestamps => Some(echo),
            _ => (handshake.retries == 0).then(|| now.since(handshake.sent)),
        };
        match measured {
            Some(sample) => rtt.sample(sample),
            None => rtt.distrust(),
        }
        let receiver = Receiver::new(config, &agreed, now, offer.timestamp);
        let mut sender = Sender::new(config, agreed, 1 + offer.window, rtt, handshake.retries, now);
        sender.write(self.early);
        if self.early_close {
            sender.close();
        }
        self.short |= self.early > 0;
        self.state =
            State::Open(Box::new(Open { sender, receiver, finish_handshake: client, ack_before: None }));
        self.pending.connected = true;
        self.note_writable();
        self.show();
    }

    /// RFC 9293 §3.10.7.4.
    fn handle_open(&mut self, now: Instant, segment: &Segment) {
        let State::Open(open) = &mut self.state else { return };
        if segment.flags.rst {
            return self.fail(Error::Reset);
        }
        if segment.flags.syn {
            return open.receiver.on_syn(segment);
        }
        let echo = if open.sender.agreed.timestamps { echo(now, segment) } else { None };
        if segment.flags.ack {
            open.sender.on_ack(now, segment, echo, &mut self.stats);
        }
        let received = open.receiver.handle(now, segment, echo);
        open.note_ack();
        self.stats.bytes_received += received.bytes;
        self.pending.readable |= received.bytes > 0;
        self.pending.peer_closed |= received.fin;
        self.note_writable();
        self.note_closed();
        self.show();
    }

    fn note_closed(&mut self) {
        let State::Open(open) = &self.state else { return };
        if open.sender.finished() && open.receiver.finished() {
            let State::Open(open) = std::mem::replace(&mut self.state, State::Failed) else {
                unreachable!("just seen")
            };
            self.state = State::Closed(open);
            self.pending.closed = true;
        }
    }

    /// Copies into the statistics what a trace wants.
    fn show(&mut self) {
        let State::Open(open) = &self.state else { return };
        let sender = &open.sender;
        self.stats.srtt = sender.rtt.srtt;
        self.stats.cwnd = sender.cwnd;
        self.stats.ssthresh = (sender.ssthresh != INFINITE).then_some(sender.ssthresh);
    }

    /// The moment that [`poll_timeout`](Self::poll_timeout) gave has come. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        let client = matches!(self.state, State::ExpectSynAck(_));
        match &mut self.state {
            State::ExpectSynAck(handshake) | State::ExpectAck(handshake, _) => {
                if now < handshake.again {
                    return;
                }
                let linear = if client { self.config.syn_linear_timeouts } else { 0 };
                if handshake.retries >= self.config.syn_retries + linear {
                    return self.fail(Error::TimedOut);
                }
                self.stats.timeouts += 1;
                if handshake.retries >= linear {
                    handshake.rto = handshake.rto * 2;
                }
                handshake.repeat(now);
            }
            State::Open(open) => {
                if open.receiver.ack_by().is_some_and(|by| now >= by) {
                    open.receiver.handle_timeout();
                    open.note_ack();
                }
                if open.sender.on_timer(now, &mut self.stats).is_err() {
                    return self.fail(Error::TimedOut);
                }
                self.show();
            }
            State::Closed(open) => {
                if open.receiver.ack_by().is_some_and(|by| now >= by) {
                    open.receiver.handle_timeout();
                }
            }
            State::ExpectSyn | State::Failed => {}
        }
    }
}

/// What a SYN says, and what follows from it and our own options.
fn offer(config: &Config, segment: &Segment, options: &SynOptions) -> Offer {
    let timestamps = config.timestamps && segment.timestamps.is_some();
    let mss = u32::from(config.mss.min(options.mss)).max(MSS_MIN);
    let agreed = Agreed {
        mss: if timestamps { mss - TIMESTAMPS_LEN } else { mss },
        sack: config.sack && options.sack_permitted,
        timestamps,
        window_scaling: config.window_scaling && options.window_scaling,
    };
    Offer { agreed, window: segment.window, timestamp: segment.timestamps.map_or(0, |t| t.value) }
}

/// Room for timestamps, three SACK blocks and some payload. Linux: `TCP_MIN_MSS`, 88, with its reasons.
const MSS_MIN: u32 = 88;

/// The round trip that the echo of a timestamp shows.
fn echo(now: Instant, segment: &Segment) -> Option<Duration> {
    let timestamps = segment.timestamps.filter(|_| segment.flags.ack)?;
    let us = (now.as_micros() as u32).wrapping_sub(timestamps.echo);
    Some(Duration::from_micros(u64::from(us)))
}
