//! What an endpoint counts.

use base::Duration;

/// Counters since the endpoint was made, and the state that a trace wants beside them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Segments of any kind handed out.
    pub segments_sent: u64,
    /// Segments of any kind taken in.
    pub segments_received: u64,
    /// Bytes of payload sent, those sent again included.
    pub bytes_sent: u64,
    /// Bytes of payload that arrived for the first time and in order.
    pub bytes_received: u64,
    /// Segments with data or FIN sent again, tail-loss probes included; SYNs too.
    pub retransmits: u64,
    /// Retransmission timeouts, those of a SYN included.
    pub timeouts: u64,
    /// Tail-loss probes (RFC 8985 §7).
    pub tlp_probes: u64,
    /// Probes of a closed window (RFC 9293 §3.8.6.1).
    pub window_probes: u64,
    /// Times that fast recovery began.
    pub fast_recoveries: u64,
    /// Timeouts found to have been spurious and undone (RFC 3522).
    pub spurious_timeouts: u64,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Congestion window in segments; 0 before the handshake is over.
    pub cwnd: u32,
    /// Slow-start threshold in segments; `None` as long as there has been no loss.
    pub ssthresh: Option<u32>,
}
