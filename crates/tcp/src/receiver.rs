//! The half of a connection that receives: puts segments in order, decides when to acknowledge, opens the window.
//!
//! Acknowledgements follow Linux. Every segment is acknowledged at once while quick acknowledgements are left, when it makes
//! the window grow, when it is out of order, a duplicate or fills a gap, or when it is more than one full segment after the last
//! acknowledgement; else within `delayed_ack`. An endpoint that answers data with data is taken for interactive and
//! loses its quick acknowledgements until a delayed one had to be sent.

use std::ops::Range;

use base::{Duration, Instant};

use crate::Config;
use crate::segment::{SackBlocks, Segment};
use crate::wheel::Wheel;
use crate::window::ReceiveWindow;

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// RCV.NXT: the next sequence number expected.
    nxt: u64,
    /// The first byte that the application has not read.
    read: u64,
    /// The highest sequence number that the sender was ever allowed to reach. It never moves back (RFC 9293 §3.8.6).
    edge: u64,
    window: ReceiveWindow,
    /// What arrived beyond `nxt`, the newest first, as RFC 2018 §4 wants it listed. Never adjacent, never overlapping.
    islands: Vec<Range<u64>>,
    /// What arrived twice, to be reported once (RFC 2883 §4).
    duplicate: Option<Range<u64>>,
    /// The peer's FIN takes this number.
    fin: Option<u64>,
    mss: u64,
    sack: bool,
    delay: Duration,
    wheel: Wheel,
    /// Send an acknowledgement at the next opportunity.
    ack_now: bool,
    /// Send one at this moment at the latest.
    ack_by: Option<Instant>,
    /// RCV.NXT in the last acknowledgement sent.
    acked: u64,
    /// Quick acknowledgements left; `None` before the first data.
    quick: Option<u32>,
    quick_max: u32,
    /// The application answers data with data.
    interactive: bool,
    /// A segment that was not full came since the last acknowledgement: the end of a message, probably.
    message_end: bool,
    last_data: Instant,
    /// The timestamp to echo (RFC 7323 §4.3).
    echo: u32,
    /// The echo of our own timestamp that last gave a round trip.
    measured: u32,
}

/// What a segment brought.
#[derive(Clone, Copy, Default)]
pub(crate) struct Received {
    /// Bytes now readable that were not before.
    pub bytes: u64,
    /// The FIN is now in order.
    pub fin: bool,
}

impl Receiver {
    /// The handshake is over. `peer_edge` is what our own SYN allowed, `echo` the peer's timestamp.
    pub fn new(config: &Config, agreed: &Agreed, now: Instant, echo: u32) -> Self {
        Self {
            nxt: 1,
            read: 1,
            edge: 1 + ReceiveWindow::in_syn(config),
            window: ReceiveWindow::new(config, agreed.window_scaling, u64::from(agreed.mss), now),
            islands: Vec::new(),
            duplicate: None,
            fin: None,
            mss: u64::from(agreed.mss),
            sack: agreed.sack,
            delay: config.delayed_ack,
            wheel: Wheel::new(config.timer_tick),
            ack_now: false,
            ack_by: None,
            acked: 1,
            quick: None,
            quick_max: config.quickack,
            interactive: false,
            message_end: false,
            last_data: now,
            echo,
            measured: 0,
        }
    }

    /// In-order bytes that wait for the application. A FIN is not one of them.
    pub fn readable(&self) -> u64 {
        self.nxt - u64::from(self.finished()) - self.read
    }

    /// The FIN arrived and everything before it.
    pub fn finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.nxt > fin)
    }

    pub fn ack_by(&self) -> Option<Instant> {
        self.ack_by
    }

    pub fn ack_now(&self) -> bool {
        self.ack_now
    }

    pub fn echo(&self) -> u32 {
        self.echo
    }

    /// A segment of an open connection arrived.
    pub fn handle(&mut self, now: Instant, segment: &Segment, rtt: Option<Duration>) -> Received {
        if let Some(timestamps) = segment.timestamps
            && segment.seq <= self.acked
        {
            // RFC 7323 §4.3: the timestamp of the segment that will be acknowledged first, so that a delayed
            // acknowledgement counts into the round trip.
            self.echo = timestamps.value;
        }
        let end = segment.end();
        if end == segment.seq {
            // A pure acknowledgement; one from the past is a window probe and wants an answer (RFC 9293 §3.8.6.1).
            self.ack_now |= segment.seq < self.nxt;
            return Received::default();
        }
        if end <= self.nxt {
            self.duplicate = Some(segment.seq..end);
            self.ack_at_once();
            return Received::default();
        }
        if segment.seq > self.edge {
            self.ack_now = true; // RFC 9293 §3.10.7.4: not acceptable, answered with an acknowledgement.
            return Received::default();
        }
        if segment.flags.fin {
            self.fin = Some(end - 1);
        }
        let len = u64::from(segment.len);
        // Without SACK, a duplicate acknowledgement must not move the window (RFC 5681 §2).
        let unread = self.readable();
        let grows = (self.sack || segment.seq <= self.nxt) && self.window.on_data(len, unread);
        self.last_data = now;
        if let (Some(rtt), Some(timestamps)) = (rtt, segment.timestamps)
            && len >= self.mss
            && timestamps.echo != self.measured
        {
            // One sample an acknowledgement of ours: those that follow in the same burst only measure the burst.
            self.measured = timestamps.echo;
            self.window.on_rtt(rtt);
        }
        let room = self.edge.saturating_sub(self.nxt);
        let quick = self.quick.get_or_insert_with(|| quick_acks(room, self.mss, self.quick_max));
        if grows && self.quick_max > 0 {
            *quick |= 1; // Linux (`tcp_grow_window`): the sender is to hear of it
        }
        if segment.seq > self.nxt {
            self.keep(segment.seq..end);
            self.ack_at_once();
            return Received::default();
        }
        self.advance(now, end, len, rtt.is_some())
    }

    /// The next bytes expected arrived.
    fn advance(&mut self, now: Instant, end: u64, len: u64, timestamps: bool) -> Received {
        let (before, had_islands) = (self.nxt, !self.islands.is_empty());
        self.nxt = end;
        if had_islands {
            let mut nxt = self.nxt;
            // An island may end where another begins only if they were merged, so one pass over each is enough.
            self.islands.retain(|island| {
                let joined = island.start <= nxt;
                nxt = if joined { nxt.max(island.end) } else { nxt };
                !joined
            });
            self.nxt = nxt;
        }
        if !timestamps {
            self.window.on_advance(now, self.nxt);
        }
        self.message_end |= len < self.mss;
        let fin = self.finished();
        let quick = self.quick.is_some_and(|left| left > 0) && !self.interactive;
        // Linux acknowledges a FIN at once; a gap filled, at once (RFC 5681 §4.2).
        if had_islands || quick || fin || self.delay.is_zero() || self.nxt - self.acked > self.mss {
            self.ack_now = true;
        } else {
            self.ack_by.get_or_insert(self.wheel.due(now, now + self.delay));
        }
        Received { bytes: self.nxt - before - u64::from(fin), fin }
    }

    /// Something is amiss: tell the sender at once, and for a while after (Linux: `tcp_enter_quickack_mode`).
    fn ack_at_once(&mut self) {
        self.ack_now = true;
        self.interactive = false;
        self.quick = Some(quick_acks(self.edge.saturating_sub(self.nxt), self.mss, self.quick_max));
    }

    /// Remembers a range that arrived out of order.
    fn keep(&mut self, mut range: Range<u64>) {
        if let Some(island) = self.islands.iter().find(|i| i.start <= range.start && range.end <= i.end) {
            let island = island.clone();
            self.duplicate = Some(range);
            range = island; // the island it fell into comes first now
        }
        self.islands.retain(|island| {
            let joined = island.start <= range.end && range.start <= island.end;
            if joined {
                range = range.start.min(island.start)..range.end.max(island.end);
            }
            !joined
        });
        self.islands.insert(0, range);
    }

    /// The application took `n` bytes. Linux (`tcp_cleanup_rbuf`) acknowledges then if the end of a message has been
    /// read and nobody is about to answer it, or if the window has opened to twice what the sender knows of.
    ///
    /// # Panics
    /// If it took more than there are.
    pub fn read(&mut self, now: Instant, n: u64) {
        assert!(n <= self.readable(), "read({n}) of {} readable bytes", self.readable());
        self.read += n;
        self.window.on_read(now, self.read);
        let message_read =
            self.message_end && !self.interactive && self.readable() == 0 && self.nxt > self.acked;
        let (known, could) = (self.edge.saturating_sub(self.nxt), self.window());
        if message_read || could >= self.mss.min(self.window.clamp()) && could >= 2 * known {
            self.ack_now = true;
        }
    }

    /// The window to offer now, from `nxt` on.
    fn window(&self) -> u64 {
        let edge = self.nxt + self.window.size(self.readable());
        // RFC 9293 §3.8.6.2.2: the edge moves in steps worth a segment, or not at all; it never moves back.
        let worth = edge >= self.edge + self.mss.min(self.window.clamp() / 2);
        (if worth { edge } else { self.edge }).saturating_sub(self.nxt)
    }

    /// The data that the endpoint sends now may be the answer to what it received.
    pub fn on_data_sent(&mut self, now: Instant) {
        if self.quick.is_some() && now.since(self.last_data) < self.delay {
            self.interactive = true;
        }
    }

    /// The acknowledgement is due.
    pub fn handle_timeout(&mut self) {
        self.ack_now = true;
        self.ack_by = None;
        self.interactive = false;
    }

    /// The SACK option for the next segment.
    pub fn sack_blocks(&self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if !self.sack || (self.islands.is_empty() && self.duplicate.is_none()) {
            return blocks;
        }
        let ranges = self.duplicate.iter().chain(&self.islands);
        for range in ranges {
            if !blocks.push(range.clone()) {
                break;
            }
        }
        blocks
    }

    /// Fills in what every segment of an open connection says about this half, except SACK blocks: whether there is room
    /// for them, the caller knows.
    pub fn fill(&mut self, segment: &mut Segment) {
        segment.ack = self.nxt;
        segment.flags.ack = true;
        segment.window = self.window();
        self.edge = self.nxt + segment.window;
    }

    /// A segment with all that there is to say goes out, so no other needs to.
    pub fn acknowledged(&mut self) {
        if self.ack_by.is_some() || self.ack_now {
            self.quick = self.quick.map(|left| left.saturating_sub(1));
        }
        self.acked = self.nxt;
        (self.ack_now, self.ack_by, self.message_end, self.duplicate) = (false, None, false, None);
    }

    /// Whether there is something to say that only a SACK option can say.
    pub fn needs_sack(&self) -> bool {
        self.sack && (self.duplicate.is_some() || !self.islands.is_empty())
    }

    /// The peer sent its SYN/ACK again: it has not heard the end of the handshake.
    pub fn on_syn(&mut self, segment: &Segment) {
        self.ack_now = true;
        self.echo = segment.timestamps.map_or(self.echo, |timestamps| timestamps.value);
    }
}

/// How many segments in a row are acknowledged at once: enough for the sender to fill half of the window (Linux:
/// `tcp_incr_quickack`), at least 2 if any.
fn quick_acks(window: u64, mss: u64, max: u32) -> u32 {
    ((window / (2 * mss)) as u32).max(2).min(max)
}

/// What both ends agreed upon in the handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreed {
    /// Bytes of payload in a full segment.
    pub mss: u32,
    pub sack: bool,
    pub timestamps: bool,
    pub window_scaling: bool,
}
