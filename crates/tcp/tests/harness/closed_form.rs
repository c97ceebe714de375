//! How long a transfer over a clean link takes, derived without the simulator.
//!
//! Two derivations. [`rounds`] is the textbook's: slow start proceeds in rounds until a round is long enough to keep
//! the link busy until the next, and from then on the link's rate decides. It holds where every round begins alike: when
//! each segment is acknowledged, or each second one and all windows are even. [`ack_clock`] is the same reasoning one
//! acknowledgement at a time, as a recurrence on departure times, for the windows of odd length, the delayed
//! acknowledgements that time out, and the quick ones at the start. Where both hold they agree.

use base::{Bitrate, Duration, Instant};
use tcp::{Config, CwndGrowth};

/// The server sends `size` bytes as soon as the handshake is over.
#[derive(Clone, Debug)]
pub struct Transfer {
    pub down: Bitrate,
    pub up: Bitrate,
    pub rtt: Duration,
    pub size: u64,
    pub initial_cwnd: u64,
    pub growth: CwndGrowth,
    /// Zero: every segment is acknowledged.
    pub delayed_ack: Duration,
    /// So many acknowledgements at the start are not delayed.
    pub quick: u64,
    pub timestamps: bool,
}

impl Transfer {
    /// An endpoint's configuration that is to behave so: nothing but cwnd and the link limits it.
    pub fn config(&self) -> Config {
        Config {
            initial_cwnd: self.initial_cwnd as u32,
            initial_rwnd: 1 << 30,
            rwnd_max: 1 << 30,
            rwnd_autotune: false,
            cwnd_growth: self.growth,
            delayed_ack: self.delayed_ack,
            quickack: self.quick as u32,
            hystart: false,
            timestamps: self.timestamps,
            sndbuf: 1 << 30,
            ..Config::linux_today()
        }
    }

    fn header(&self) -> u64 {
        if self.timestamps { 52 } else { 40 }
    }

    fn mss(&self) -> u64 {
        1500 - self.header()
    }

    /// A full segment on the down link, an acknowledgement on the up link.
    pub fn segment_time(&self) -> Duration {
        self.down.time_to_send(1500)
    }

    fn ack_time(&self) -> Duration {
        self.up.time_to_send(self.header())
    }

    /// SYN, SYN/ACK and ACK: when the server may begin. A SYN has 20 bytes of options, 12 without timestamps.
    pub fn handshake(&self) -> Duration {
        let syn = if self.timestamps { 60 } else { 52 };
        let one_way = self.rtt / 2;
        self.up.time_to_send(syn)
            + one_way
            + self.down.time_to_send(syn)
            + one_way
            + self.ack_time()
            + one_way
    }

    /// From the end of a segment's transmission to the end of the next flight's first wait.
    fn loop_time(&self) -> Duration {
        self.segment_time() + self.rtt + self.ack_time()
    }
}

/// Serialisation of `bytes` of payload on the down link, in full segments and a rest.
fn burst(t: &Transfer, bytes: u64) -> Duration {
    let (full, rest) = (bytes / t.mss(), bytes % t.mss());
    let rest = if rest > 0 { t.down.time_to_send(rest + t.header()) } else { Duration::ZERO };
    t.segment_time() * full + rest
}

/// From the SYN to the last byte's arrival, by rounds; `None` where rounds are not alike.
pub fn rounds(t: &Transfer) -> Option<Duration> {
    let every = t.delayed_ack.is_zero();
    let pairs = t.quick == 0 && t.initial_cwnd.is_multiple_of(2) && t.growth == CwndGrowth::PerSegment;
    if !every && !pairs {
        return None;
    }
    // A delayed acknowledgement waits for the second segment.
    let round = t.loop_time() + if every { Duration::ZERO } else { t.segment_time() };
    let (mut start, mut window, mut left) = (t.handshake(), t.initial_cwnd, t.size);
    while left > window * t.mss() && t.segment_time() * window < round {
        start += round;
        left -= window * t.mss();
        window *= 2;
    }
    Some(start + burst(t, left) + t.rtt / 2)
}

/// From the SYN to the last byte's arrival, acknowledgement by acknowledgement.
pub fn ack_clock(t: &Transfer) -> Duration {
    let one_way = t.rtt / 2;
    let mut clock = AckClock {
        t,
        line_free: Instant::ZERO,
        up_free: Instant::ZERO,
        waiting: None,
        quick: t.quick,
        acks: Default::default(),
    };
    let (mut now, mut may_send, mut left) = (Instant::ZERO + t.handshake(), t.initial_cwnd, t.size);
    loop {
        while may_send > 0 && left > 0 {
            let len = left.min(t.mss());
            clock.send(now, len);
            left -= len;
            may_send -= 1;
        }
        if left == 0 {
            return (clock.line_free + one_way).since(Instant::ZERO);
        }
        if clock.acks.is_empty() {
            clock.time_out();
        }
        let (at, covers) = clock.acks.pop_front().expect("a segment is always acknowledged");
        now = at;
        may_send += covers + if t.growth == CwndGrowth::PerAck { 1 } else { covers };
    }
}

/// The line, the receiver's delayed acknowledgement and the way back.
struct AckClock<'a> {
    t: &'a Transfer,
    line_free: Instant,
    up_free: Instant,
    /// A segment that arrived then is not yet acknowledged.
    waiting: Option<Instant>,
    quick: u64,
    /// When each acknowledgement reaches the server, and how many segments it covers.
    acks: std::collections::VecDeque<(Instant, u64)>,
}

impl AckClock<'_> {
    fn send(&mut self, now: Instant, len: u64) {
        let took = self.t.down.time_to_send(len + self.t.header());
        self.line_free = self.line_free.max(now) + took;
        let arrives = self.line_free + self.t.rtt / 2;
        if self.waiting.is_some_and(|since| since + self.t.delayed_ack < arrives) {
            self.time_out();
        }
        if self.t.delayed_ack.is_zero() || self.quick > 0 {
            self.ack(arrives, 1);
        } else if self.waiting.take().is_some() {
            self.ack(arrives, 2);
        } else {
            self.waiting = Some(arrives);
        }
    }

    fn time_out(&mut self) {
        if let Some(since) = self.waiting.take() {
            self.ack(since + self.t.delayed_ack, 1);
        }
    }

    fn ack(&mut self, at: Instant, covers: u64) {
        self.quick = self.quick.saturating_sub(1);
        self.up_free = self.up_free.max(at) + self.t.ack_time();
        self.acks.push_back((self.up_free + self.t.rtt / 2, covers));
    }
}

/// 1 byte to 10 MB.
pub const SIZES: [u64; 11] =
    [1, 100, 1_000, 4_380, 10_000, 14_600, 50_000, 100_000, 500_000, 1_000_000, 10_000_000];
