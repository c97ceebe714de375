//! How much may be sent: flow-control windows, and when credit goes back.

use base::{Duration, Instant};

/// What the peer allows this end to send, on one stream or on the whole connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendWindow {
    /// Position that may not be passed. Signed, as lowering the initial size can put it below zero.
    limit: i64,
    sent: i64,
}

/// A window grew past what the protocol allows (SPDY, HTTP/2: 2³¹ − 1): the peer's fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overflow;

/// The peer sent more than it was allowed to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exceeded;

impl SendWindow {
    /// A window of `initial` bytes.
    pub fn new(initial: u32) -> Self {
        Self { limit: i64::from(initial), sent: 0 }
    }

    /// Bytes that may be sent now; 0 also while the window is negative.
    pub fn available(&self) -> u64 {
        u64::try_from(self.limit - self.sent).unwrap_or(0)
    }

    /// `n` bytes are sent.
    ///
    /// # Panics
    /// If they are more than are available: the caller's own arithmetic is wrong.
    pub fn take(&mut self, n: u64) {
        assert!(n <= self.available(), "sent {n} into a window of {}", self.available());
        self.sent += n as i64;
    }

    /// The peer allows `delta` bytes more, in all not more than `max` ahead of what is sent. On overflow nothing
    /// changes.
    pub fn credit(&mut self, delta: u64, max: i64) -> Result<(), Overflow> {
        self.shift(i64::try_from(delta).map_err(|_| Overflow)?, max)
    }

    /// The peer changed the initial size of all its windows by `delta`; the window may become negative (RFC 9113
    /// §6.9.2, SPDY/3.1 §2.6.8). On overflow past `max` nothing changes.
    pub fn shift(&mut self, delta: i64, max: i64) -> Result<(), Overflow> {
        let limit = self.limit.checked_add(delta).ok_or(Overflow)?;
        if limit - self.sent > max {
            return Err(Overflow);
        }
        self.limit = limit;
        Ok(())
    }

    /// The peer allows bytes up to the absolute position `limit`; a lower one than before is ignored (RFC 9000 §4.1).
    pub fn raise_to(&mut self, limit: u64) {
        self.limit = self.limit.max(i64::try_from(limit).unwrap_or(i64::MAX));
    }
}

/// How large a receive window is and when credit is returned, as data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowPolicy {
    /// Size in bytes: how far the peer may run ahead of the reader. At most 2³¹ − 1 in SPDY and HTTP/2.
    pub size: u32,
    /// How much credit is collected before it is returned.
    pub update: Threshold,
    /// Credit is returned at once, however little, while the peer has no more than this many bytes left to send.
    pub eager_below: u32,
    /// Grow towards the measured bandwidth-delay product, up to this many bytes; 0: never grow.
    pub autotune_max: u32,
}

/// How much credit is collected before it is returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Threshold {
    /// This many bytes.
    Bytes(u32),
    /// Half the window's size.
    Half,
    /// A quarter of it.
    Quarter,
}

impl WindowPolicy {
    /// 64 KB, returned by 32 KB: Chrome in 2012.
    pub const FIXED_64K: WindowPolicy =
        WindowPolicy { size: 65_536, update: Threshold::Bytes(32_768), eager_below: 0, autotune_max: 0 };

    /// 256 MiB, returned by 64 KiB, or by the byte while 1 MiB or less is left: Firefox.
    pub const FIREFOX_256M: WindowPolicy = WindowPolicy {
        size: 1 << 28,
        update: Threshold::Bytes(65_536),
        eager_below: 1 << 20,
        autotune_max: 0,
    };

    /// `size` bytes, returned once half of them are consumed: Chrome from 2013, with 10 MiB.
    pub const fn half(size: u32) -> Self {
        Self { size, update: Threshold::Half, eager_below: 0, autotune_max: 0 }
    }

    /// `start` bytes, growing to twice the measured bandwidth-delay product, at most `max`. Returned by quarters, so that
    /// at least three quarters of a window arrive in a round trip that only the window limits, and it is seen to.
    pub const fn autotuned(start: u32, max: u32) -> Self {
        Self { size: start, update: Threshold::Quarter, eager_below: 0, autotune_max: max }
    }
}

/// What this end allows the peer to send, on one stream or on the whole connection.
///
/// Credit follows *consumption*: bytes that lie unread keep the window closed. Autotuning measures what arrives in
/// a round trip, which is the bandwidth-delay product as far as the window lets it through; when that is more than
/// two thirds of the window, the window becomes twice as large as the sample, as in gRPC. It never shrinks.
#[derive(Clone, Debug)]
pub struct RecvWindow {
    policy: WindowPolicy,
    /// The size now: the policy's, or what autotuning made of it.
    size: u64,
    /// Position up to which the peer has been given credit.
    limit: u64,
    /// What the peer may overshoot because it has not yet heard that its initial window is smaller.
    slack: u64,
    received: u64,
    consumed: u64,
    /// When the present sample began, and what had been received then.
    sample: Option<(Instant, u64)>,
}

impl RecvWindow {
    /// A window under `policy`, of which the peer assumes `initial` bytes until it is told otherwise. If the
    /// protocol tells it the policy's size as a setting, `initial` only serves to forgive what is already under way.
    pub fn new(policy: WindowPolicy, initial: u32) -> Self {
        let size = u64::from(policy.size);
        let slack = u64::from(initial).saturating_sub(size);
        Self { policy, size, limit: size, slack, received: 0, consumed: 0, sample: None }
    }

    /// As [`new`](Self::new), for a window whose size no setting announces: the peer has `initial` bytes, and the
    /// second value is the credit that brings it to the policy's size, if that is more.
    pub fn granting(policy: WindowPolicy, initial: u32) -> (Self, Option<u64>) {
        let mut window = Self::new(policy, initial);
        let initial = u64::from(initial);
        // A window cannot be taken back by credit: it closes to its size by returning none at first.
        window.limit = window.limit.max(initial);
        window.slack = 0;
        let credit = window.size.saturating_sub(initial);
        (window, (credit > 0).then_some(credit))
    }

    /// The size now, in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Absolute position up to which the peer may send (HTTP/3's MAX_DATA).
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes received.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Bytes received and not consumed.
    pub fn unconsumed(&self) -> u64 {
        self.received - self.consumed
    }

    /// `n` bytes arrived. When they are more than was allowed they are not counted.
    pub fn receive(&mut self, n: u64) -> Result<(), Exceeded> {
        let received = self.received.checked_add(n).ok_or(Exceeded)?;
        if received > self.limit + self.slack {
            return Err(Exceeded);
        }
        self.received = received;
        Ok(())
    }

    /// `n` bytes were consumed (or discarded); more than lie unconsumed count as all of them. Gives the credit to
    /// return now, in bytes, or `None` to wait. `rtt` is the connection's round-trip time; without it nothing is tuned.
    pub fn consume(&mut self, now: Instant, n: u64, rtt: Option<Duration>) -> Option<u64> {
        self.consumed += n.min(self.unconsumed());
        if self.policy.autotune_max > 0 {
            self.tune(now, rtt);
        }
        let credit = (self.consumed + self.size).saturating_sub(self.limit);
        let left = self.limit.saturating_sub(self.received);
        let wanted = match self.policy.update {
            _ if left <= u64::from(self.policy.eager_below) => 1,
            Threshold::Bytes(bytes) => u64::from(bytes).clamp(1, self.size.max(1)),
            Threshold::Half => (self.size / 2).max(1),
            Threshold::Quarter => (self.size / 4).max(1),
        };
        if credit < wanted {
            return None;
        }
        self.limit += credit;
        Some(credit)
    }

    /// Ends a sample that has lasted a round trip, and grows if it filled the window.
    fn tune(&mut self, now: Instant, rtt: Option<Duration>) {
        let Some(rtt) = rtt else { return };
        let Some((since, base)) = self.sample else {
            self.sample = Some((now, self.received));
            return;
        };
        let lasted = now.since(since);
        if lasted < rtt || lasted.is_zero() {
            return;
        }
        let arrived = u128::from(self.received - base);
        let product = arrived * u128::from(rtt.as_nanos()) / u128::from(lasted.as_nanos());
        if product * 3 >= u128::from(self.size) * 2 {
            let grown = u64::try_from(product * 2).unwrap_or(u64::MAX);
            self.size = self.size.max(grown.min(u64::from(self.policy.autotune_max)));
        }
        self.sample = Some((now, self.received));
    }
}

#[cfg(test)]
mod tests;
