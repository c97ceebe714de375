//! How large a server's records are. Nothing of a record can be used before its last byte is there, and a record costs bytes and
//! computation by itself: small ones are for the start of an answer, large ones for the bulk.

use base::{Duration, Instant};

use crate::record::MAX_PLAINTEXT;

/// By what rule a server cuts its records.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Sizing {
    /// As full as [`Config::record_size`](crate::Config::record_size) and what there is to send allow.
    #[default]
    Fixed,
    /// One to a segment of an Ethernet MTU with timestamps: 1,448 bytes with what the record adds, so 1,419 bytes of plaintext in
    /// TLS 1.2, as those set HAProxy's `tune.ssl.maxrecord` who follow its manual.
    Packet,
    /// Apache Traffic Server with dynamic records: 1,300 bytes until 1,000,000 are sent, then 16,383; from the start after a second
    /// without writing (`SSL_DEF_TLS_RECORD_SIZE`, `SSL_MAX_TLS_RECORD_SIZE` and the thresholds beside them).
    Ats,
    /// H2O: 1,400 bytes with what the record adds until 64 KiB are sent, then full. That it puts no more than cwnd into the kernel on
    /// round trips of 50 ms and more is no matter of records; here all servers leave little unsent there.
    H2o,
    /// Cloudflare's patch of nginx: 40 records of 1,369 bytes, 40 of 4,229, then full ones; from the start after a second without
    /// writing (`ssl_dyn_rec_size_lo`, `_hi`, `_threshold`, `_timeout`).
    Cloudflare,
    /// A proxy that reads [`Sizing::PROXY_CHUNK`] bytes at a time from its backend and hands them to TLS at once, so that they leave in
    /// as full records as TLS has: none holds more than 16,384 bytes (RFC 5246 §6.2.1), so three a piece. Nothing can come between the
    /// records of a piece.
    Proxy,
}

impl Sizing {
    /// Bytes that [`Sizing::Proxy`] reads at a time.
    pub const PROXY_CHUNK: u64 = 40 * 1024;

    /// How many bytes are decided on at a time: the next are not asked for before all of these have left. `None` where each record is decided on
    /// when there is room for it.
    pub fn chunk(self) -> Option<u64> {
        (self == Self::Proxy).then_some(Self::PROXY_CHUNK)
    }
}

/// A second without writing begins anew: ATS's `SSL_DEF_TLS_RECORD_MSEC_THRESHOLD`, Cloudflare's `ssl_dyn_rec_timeout`.
const IDLE: Duration = Duration::from_secs(1);

/// One end's records: what was sent so far, and so how large the next may be.
#[derive(Clone, Debug)]
pub struct Sizer {
    sizing: Sizing,
    fixed: u32,
    /// Bytes and records since the start, or since the last pause.
    bytes: u64,
    records: u32,
    last: Option<Instant>,
}

impl Sizer {
    /// A sizer by `sizing`; `fixed` is the size for [`Sizing::Fixed`] and the most for all, 1 to 16,384.
    pub fn new(sizing: Sizing, fixed: u32) -> Self {
        Self { sizing, fixed: fixed.clamp(1, MAX_PLAINTEXT), bytes: 0, records: 0, last: None }
    }

    /// Bytes of plaintext that the next record may hold, if it is begun now; `overhead` is what a record adds to them.
    pub fn limit(&self, now: Instant, overhead: u32) -> u32 {
        let restarts = matches!(self.sizing, Sizing::Ats | Sizing::Cloudflare);
        let rested = restarts && self.last.is_some_and(|last| now.since(last) > IDLE);
        let (bytes, records) = if rested { (0, 0) } else { (self.bytes, self.records) };
        let limit = match self.sizing {
            Sizing::Fixed | Sizing::Proxy => MAX_PLAINTEXT,
            Sizing::Packet => 1_448 - overhead,
            Sizing::Ats if bytes < 1_000_000 => 1_300,
            Sizing::Ats => 16_383,
            Sizing::H2o if bytes < 64 * 1024 => 1_400 - overhead,
            Sizing::Cloudflare if records < 40 => 1_369,
            Sizing::Cloudflare if records < 80 => 4_229,
            Sizing::H2o | Sizing::Cloudflare => MAX_PLAINTEXT,
        };
        limit.min(self.fixed)
    }

    /// A record of `len` bytes of plaintext was begun.
    pub fn note(&mut self, now: Instant, len: u64) {
        if self.last.is_some_and(|last| now.since(last) > IDLE) && self.sizing != Sizing::H2o {
            (self.bytes, self.records) = (0, 0);
        }
        self.bytes += len;
        self.records = self.records.saturating_add(1);
        self.last = Some(now);
    }

    /// The rule.
    pub fn sizing(&self) -> Sizing {
        self.sizing
    }

    pub(crate) fn set_fixed(&mut self, fixed: u32) {
        self.fixed = fixed.clamp(1, MAX_PLAINTEXT);
    }

    pub(crate) fn is_proxy(&self) -> bool {
        self.sizing == Sizing::Proxy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVERHEAD: u32 = 29;

    /// The sizes of `n` records that are as full as may be, sent at once.
    fn sizes(sizer: &mut Sizer, now: Instant, n: usize) -> Vec<u32> {
        let one = |_| {
            let len = sizer.limit(now, OVERHEAD);
            sizer.note(now, len.into());
            len
        };
        (0..n).map(one).collect()
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn ats_grows_after_a_million_bytes_and_begins_anew_after_a_second() {
        let mut sizer = Sizer::new(Sizing::Ats, MAX_PLAINTEXT);
        let first = sizes(&mut sizer, at(0), 771);
        assert_eq!(
            (first[769], first[770]),
            (1_300, 16_383),
            "770 × 1300 is the first multiple past 1,000,000"
        );
        assert_eq!(sizer.limit(at(1_000), OVERHEAD), 16_383);
        assert_eq!(sizes(&mut sizer, at(1_001), 1), [1_300]);
    }

    #[test]
    fn cloudflare_sends_forty_small_ones_forty_larger_ones_and_then_full_ones() {
        let mut sizer = Sizer::new(Sizing::Cloudflare, MAX_PLAINTEXT);
        let first = sizes(&mut sizer, at(0), 81);
        assert_eq!(
            [first[0], first[39], first[40], first[79], first[80]],
            [1_369, 1_369, 4_229, 4_229, 16_384]
        );
        assert_eq!(sizes(&mut sizer, at(2_000), 1), [1_369]);
    }

    #[test]
    fn h2o_grows_after_64_kib_for_good() {
        let mut sizer = Sizer::new(Sizing::H2o, MAX_PLAINTEXT);
        let first = sizes(&mut sizer, at(0), 49);
        assert_eq!((first[0], first[47], first[48]), (1_371, 1_371, 16_384));
        assert_eq!(sizes(&mut sizer, at(10_000), 1), [16_384]);
    }

    #[test]
    fn one_to_a_packet_fills_a_segment() {
        let mut sizer = Sizer::new(Sizing::Packet, MAX_PLAINTEXT);
        assert_eq!(sizes(&mut sizer, at(0), 2), [1_419, 1_419]);
    }
}
