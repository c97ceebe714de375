//! What a peer may make this end hold or do.

/// Bounds on what a peer may make this end hold or do, and what exceeding each gets.
///
/// | bound | exceeded |
/// |---|---|
/// | `control_frame` | session error: the block in it was not inflated |
/// | `block`, `inflate_ratio` | session error: the block was not inflated to its end |
/// | `headers`, `header_field` | RST_STREAM with FRAME_TOO_LARGE (version 2: PROTOCOL_ERROR) |
/// | `settings` | session error |
/// | `answers` | session error |
/// | [`Config::max_concurrent_streams`](crate::Config::max_concurrent_streams) | RST_STREAM with REFUSED_STREAM |
/// | a stream's window | RST_STREAM with FLOW_CONTROL_ERROR |
/// | the session's window | session error |
///
/// A session error is a GOAWAY with PROTOCOL_ERROR and [`Error::PeerMisbehaved`](crate::Error::PeerMisbehaved).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Payload of a control frame, in bytes. SPDY/3.1 §2.2.1 asks for 8192 at least. Frames of unknown type are skipped
    /// as they arrive and may have any length.
    pub control_frame: u32,
    /// An inflated header block, in bytes.
    pub block: u32,
    /// How many times its size a header block may inflate to, once it is past 64 KiB. Deflate reaches 1032.
    pub inflate_ratio: u32,
    /// Fields in a header block. 1000 is what Go's SPDY settled on after CVE-2026-35469.
    pub headers: u32,
    /// A field's name or value, in bytes; 1 MiB for the same reason.
    pub header_field: u32,
    /// Entries of a SETTINGS frame; and entries that a server may have kept, more of which are not. Eight ids are defined.
    pub settings: u32,
    /// Bytes of frames waiting to be sent that only answer the peer's: PING, RST_STREAM, WINDOW_UPDATE, refusals.
    pub answers: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            control_frame: 1 << 20,
            block: 2 << 20,
            inflate_ratio: 200,
            headers: 1_000,
            header_field: 1 << 20,
            settings: 256,
            answers: 1 << 20,
        }
    }
}

impl Limits {
    /// Whether `inflated` bytes out of `compressed` are too many to be a header block's.
    pub(crate) fn is_bomb(&self, compressed: u64, inflated: u64) -> bool {
        inflated > 64 * 1024 && inflated > compressed.saturating_mul(u64::from(self.inflate_ratio))
    }
}
