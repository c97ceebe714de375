//! The knobs, and the two sets of them that are worth a name.

use base::Duration;

pub use crate::congestion::Congestion;

/// How an endpoint behaves. Every field that differs between the presets says why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The MSS announced in the SYN: bytes of payload and options. Ethernet's is 1460; with timestamps a full segment
    /// then carries 1448. At least 48, so that every option leaves room for a byte.
    pub mss: u16,
    /// Initial congestion window in segments, 0 counts as 1. RFC 3390 gives 3 for this MSS, RFC 6928 ten (Linux since 2.6.39).
    pub initial_cwnd: u32,
    /// Initial receive window in bytes. It is what the SYN says, so no more than 65,535 count before the handshake is over.
    /// Linux up to 2.6.38 offered 4 × MSS (`tcp_select_initial_window`), then 10 × MSS, and about 64 KB since 4.20.
    pub initial_rwnd: u64,
    /// The largest receive window, in bytes. Above 65,535 only with window scaling.
    pub rwnd_max: u64,
    /// Whether the receive buffer starts at `rwnd_start` and follows the application up to `rwnd_max`; otherwise it is
    /// `rwnd_max` from the start. Either way the window offered starts at `initial_rwnd` and grows by twice what arrives.
    pub rwnd_autotune: bool,
    /// What the receive buffer holds at first, in bytes. Linux of 2010: 64 KB (`tcp_rmem` 87,380, a quarter of it for
    /// overhead); since 4.20 131,072, of which full segments take five eighths (1,448 of 2,304 bytes, measured since 6.6).
    pub rwnd_start: u64,
    /// Offer window scaling (RFC 7323 §2). If either end does not, no window exceeds 65,535 bytes.
    pub window_scaling: bool,
    /// The congestion control algorithm.
    pub congestion: Congestion,
    /// Leave slow start when the path shows that it is nearly full; CUBIC only. Linux has it on since 2.6.29 (CUBIC 2.3), so both
    /// presets have it. Without it slow start ends at a loss.
    pub hystart: bool,
    /// What slow start counts.
    pub cwnd_growth: CwndGrowth,
    /// How losses are noticed when both ends know SACK. Without it, it is NewReno (RFC 6582).
    pub loss_detection: LossDetection,
    /// How cwnd comes down in fast recovery.
    pub reduction: Reduction,
    /// Timeout of the first SYN or SYN/ACK, doubled at each further one: 3 s by RFC 1122 §4.2.3.1 and RFC 2988, 1 s
    /// by RFC 6298 (Linux since 3.1).
    pub syn_rto: Duration,
    /// So many of a SYN's first timeouts are not doubled, and come on top of `syn_retries`. Linux since 6.5: 4
    /// (`tcp_syn_linear_timeouts`), so that a SYN is sent after 1, 2, 3, 4, 5, 7 s and so on.
    pub syn_linear_timeouts: u32,
    /// How often a SYN or SYN/ACK is sent again before the connection fails. Linux: `tcp_syn_retries`.
    pub syn_retries: u32,
    /// The least variance term of the retransmission timeout: it is never below SRTT plus this. Linux: 200 ms.
    pub rto_min: Duration,
    /// How many timeouts in a row, without any answer, fail the connection. Linux: `tcp_retries2`, 15, which takes
    /// at least 924 s.
    pub data_retries: u32,
    /// Probe for a lost tail after two round trips (RFC 8985 §7; Linux since 3.10).
    pub tail_loss_probe: bool,
    /// Timers go by ticks of this length, on a wheel that makes long ones late by up to an eighth (Linux since 4.8, with
    /// CONFIG_HZ = 250: 4 ms). Zero: they are exact, as they were within a tick before.
    pub timer_tick: Duration,
    /// How long an acknowledgement may wait (RFC 5681 §4.2). Linux adapts it between 40 and 200 ms; here it is fixed at
    /// its least. Zero acknowledges every segment at once.
    pub delayed_ack: Duration,
    /// At most so many acknowledgements at the start of a connection are not delayed, fewer if they already let the
    /// sender fill half of the window. Linux: `TCP_MAX_QUICKACKS`, 16. Zero for none.
    pub quickack: u32,
    /// Offer selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Offer timestamps (RFC 7323 §3). They cost 12 bytes a segment, measure round trips of what was sent again, and
    /// unmask spurious timeouts.
    pub timestamps: bool,
    /// Spread a window over the round trip instead of sending it as soon as it may go: at twice cwnd a round trip while cwnd is below
    /// half of `ssthresh`, at 1.2 times after (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`). Linux paces so where a socket asks for it
    /// (`SO_MAX_PACING_RATE`), under the `fq` discipline, and for BBR; it does not by itself.
    pub pacing: bool,
    /// Shrink cwnd while it is not used (RFC 2861). Linux: `tcp_slow_start_after_idle`.
    pub idle_restart: bool,
    /// The application is asked for more only while fewer bytes than this wait unsent. Small, so that what to send
    /// is decided late; servers that leave it at the system's default send megabytes of the wrong stream first.
    pub notsent_lowat: u64,
    /// The most bytes written and not yet acknowledged. Linux grows this with cwnd, so it is large here.
    pub sndbuf: u64,
}

/// What slow start adds to cwnd.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CwndGrowth {
    /// One segment for each acknowledgement, so × 1.5 a round trip against a receiver that delays them (RFC 5681 §3.1 without
    /// byte counting; Linux up to 3.12, `tcp_abc` = 0).
    PerAck,
    /// One segment for each segment acknowledged, so × 2 a round trip (Linux since 3.13).
    PerSegment,
}

/// How losses are noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossDetection {
    /// Three segments above it were SACKed (RFC 6675). The loss of a retransmission is noticed by timeout only.
    Sack,
    /// Something sent later has been delivered (RFC 8985; Linux's default since 4.18).
    Rack,
}

/// How cwnd comes down in fast recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduction {
    /// To `ssthresh` at once, so the sender is silent until enough has left the network (RFC 6675 §5). Linux of 2010
    /// halved the *rate* over a round trip instead; the window after it is the same.
    AtOnce,
    /// In proportion to what arrives (RFC 6937; Linux since 3.2).
    Proportional,
}

impl Config {
    /// Linux 2.6.3x, as servers ran it in 2010. It had CUBIC, SACK, timestamps and window scaling.
    pub fn linux_2010() -> Self {
        Self {
            initial_cwnd: 3,
            initial_rwnd: 4 * 1460,
            // `tcp_rmem` goes up to 4 MB, a quarter of it for overhead (`tcp_adv_win_scale` = 2).
            rwnd_max: 3 << 20,
            rwnd_start: 65_535,
            cwnd_growth: CwndGrowth::PerAck,
            loss_detection: LossDetection::Sack,
            reduction: Reduction::AtOnce,
            syn_rto: Duration::from_secs(3),
            syn_retries: 5,
            syn_linear_timeouts: 0,
            tail_loss_probe: false,
            timer_tick: Duration::ZERO,
            ..Self::linux_today()
        }
    }

    /// Linux 6.x with its defaults.
    pub fn linux_today() -> Self {
        Self {
            mss: 1460,
            initial_cwnd: 10,
            initial_rwnd: 44 * 1460,
            // `tcp_rmem` goes up to 6 MB, half of it for overhead.
            rwnd_max: 3 << 20,
            rwnd_autotune: true,
            rwnd_start: 81_920,
            window_scaling: true,
            congestion: Congestion::Cubic,
            hystart: true,
            cwnd_growth: CwndGrowth::PerSegment,
            loss_detection: LossDetection::Rack,
            reduction: Reduction::Proportional,
            syn_rto: Duration::from_secs(1),
            syn_retries: 6,
            syn_linear_timeouts: 4,
            rto_min: Duration::from_millis(200),
            data_retries: 15,
            tail_loss_probe: true,
            timer_tick: Duration::from_millis(4),
            delayed_ack: Duration::from_millis(40),
            quickack: 16,
            sack: true,
            timestamps: true,
            pacing: false,
            idle_restart: true,
            notsent_lowat: 16_384,
            sndbuf: 4 << 20,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::linux_today()
    }
}
