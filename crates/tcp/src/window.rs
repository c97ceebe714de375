//! How much the receiver lets the sender send.
//!
//! Two things bound the window, as in Linux. The *limit* starts at `initial_rwnd` and grows by twice what arrives, so
//! a small first window costs a sender that could have sent more one round trip, and no later one. The *clamp* is
//! the buffer. With autotuning it starts at `rwnd_start` and follows the application: when it has read N bytes in a round
//! trip, more than ten segments and more than ever before, the buffer becomes at least 2 N and more while N still grows (Linux's
//! dynamic right-sizing, after Fisk and Feng, 2001, as Linux 6.18 has it; older kernels grew it less).
//!
//! Simpler than Linux: bytes are counted, not the memory that buffers them, so no fraction of the buffer is lost to
//! overhead, small segments cost no more than large ones, and windows are not rounded to the scale factor.

use base::{Duration, Instant};

use crate::Config;

/// The largest window a header holds without scaling.
const UNSCALED_MAX: u64 = 65_535;

/// Segments with fewer bytes leave the limit where it is (Linux: `tcp_event_data_recv`).
const LEN_MIN: u64 = 128;

#[derive(Clone, Debug)]
pub(crate) struct ReceiveWindow {
    limit: u64,
    clamp: u64,
    max: u64,
    autotune: bool,
    mss: u64,
    /// The round trip as the receiver sees it; zero while unknown.
    rtt: Duration,
    /// What was read in the last full round trip, and where and when the next one began.
    copied: u64,
    mark: (u64, Instant),
    /// Without timestamps: when this sequence number arrives, a window has passed since that moment.
    probe: (u64, Instant),
}

impl ReceiveWindow {
    pub fn new(config: &Config, scaling: bool, mss: u64, now: Instant) -> Self {
        let max = if scaling { config.rwnd_max } else { config.rwnd_max.min(UNSCALED_MAX) };
        let clamp =
            if config.rwnd_autotune { max.min(config.rwnd_start.max(config.initial_rwnd)) } else { max };
        let limit = config.initial_rwnd.min(clamp);
        Self {
            limit,
            clamp,
            max,
            autotune: config.rwnd_autotune,
            mss,
            rtt: Duration::ZERO,
            copied: limit.min(10 * mss),
            mark: (1, now),
            probe: (1 + limit, now),
        }
    }

    /// The first window, as a SYN carries it: without scaling (RFC 7323 §2.2).
    pub fn in_syn(config: &Config) -> u64 {
        config.initial_rwnd.min(config.rwnd_max).min(UNSCALED_MAX)
    }

    /// Bytes that may be outstanding beyond what arrived in order, when `unread` of that wait for the application.
    pub fn size(&self, unread: u64) -> u64 {
        self.limit.min(self.clamp.saturating_sub(unread))
    }

    /// The buffer's size.
    pub fn clamp(&self) -> u64 {
        self.clamp
    }

    /// `len` bytes arrived, in order or not, behind `unread` ones; whether the limit grows. It grows into the room that is
    /// left beside all of them. (Linux: `tcp_grow_window`.)
    pub fn on_data(&mut self, len: u64, unread: u64) -> bool {
        let room = self.clamp.saturating_sub(unread + len);
        let grows = self.limit < room && len >= LEN_MIN;
        if grows {
            self.limit = (self.limit + 2 * len.min(self.mss)).min(room);
        }
        grows
    }

    /// A round trip measured by the echo of a timestamp on a full segment.
    pub fn on_rtt(&mut self, rtt: Duration) {
        let least = self.rtt.is_zero() || rtt < self.rtt;
        self.rtt = if least { rtt } else { self.rtt - self.rtt / 8 + rtt / 8 };
    }

    /// Without timestamps: a window that was opened at some moment has been filled since, so a round trip is no
    /// longer than that. The least such time counts. `nxt` is the next byte expected.
    pub fn on_advance(&mut self, now: Instant, nxt: u64) {
        let (end, opened) = self.probe;
        if nxt < end {
            return;
        }
        let took = now.since(opened);
        if self.rtt.is_zero() || took < self.rtt {
            self.rtt = took;
        }
        self.probe = (nxt + self.size(0), now);
    }

    /// The application has read up to sequence number `read`. (Linux: `tcp_rcv_space_adjust`.)
    pub fn on_read(&mut self, now: Instant, read: u64) {
        let (from, since) = self.mark;
        if !self.autotune || self.rtt.is_zero() || now.since(since) < self.rtt {
            return;
        }
        self.mark = (read, now);
        let copied = read - from;
        if copied <= self.copied {
            return;
        }
        // Twice, because the sender may double its rate each round trip; and twice the growth on top, because what was read now was
        // sent a round trip ago.
        let window = 2 * copied;
        let growth = window as u128 * u128::from(copied - self.copied) / u128::from(self.copied.max(1));
        let window = window.saturating_add(2 * u64::try_from(growth).unwrap_or(u64::MAX / 2));
        self.copied = copied;
        self.clamp = self.clamp.max(window.min(self.max));
    }
}
