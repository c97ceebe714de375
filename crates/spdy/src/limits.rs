//! What a peer may make this end hold or do.

use crate::Config;

/// Bounds on what a peer may make this end hold or do.
///
/// | bound | default | exceeded |
/// |---|---|---|
/// | [`control_frame`](Self::control_frame) | 1 MiB | session error `FrameTooLarge`: the block in it was not inflated |
/// | [`block`](Self::block) | 2 MiB | session error `BlockTooLarge`: the block was not inflated to its end |
/// | [`inflate_ratio`](Self::inflate_ratio), past 64 KiB | 200 | session error `BlockTooLarge` |
/// | [`headers`](Self::headers) | 1000 | RST_STREAM with FRAME_TOO_LARGE (version 2: PROTOCOL_ERROR) |
/// | [`header_field`](Self::header_field) | 1 MiB | RST_STREAM with FRAME_TOO_LARGE (version 2: PROTOCOL_ERROR) |
/// | [`settings`](Self::settings) | 256 | session error `TooManySettings`; what more is to be kept is not |
/// | [`answers`](Self::answers) | 1 MiB | session error `TooManyAnswers` |
/// | the same number of bytes, of control frames of any kind | 1 MiB | RST_STREAM with REFUSED_STREAM |
/// | [`heads`](Self::heads) | 4 MiB | session error `TooManyHeads` |
/// | [`push_target`](Self::push_target) | 16 KiB | RST_STREAM with REFUSED_STREAM |
/// | [`Config::max_concurrent_streams`], open | 100 | RST_STREAM with REFUSED_STREAM |
/// | the same number again, ended and not all consumed | 100 | RST_STREAM with REFUSED_STREAM |
/// | a stream's window | 1 MiB | RST_STREAM with FLOW_CONTROL_ERROR |
/// | the session's window (3.1) | 16 MiB | session error `SessionWindowExceeded` |
/// | pings of ours that wait for their echo | 64 | the oldest is forgotten |
///
/// A session error is a GOAWAY with PROTOCOL_ERROR and [`Error::PeerMisbehaved`](crate::Error::PeerMisbehaved) with the
/// [`Misbehaviour`](crate::Misbehaviour) named. [`Config::peer_memory`] says what all bounds come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Payload of a control frame, in bytes. SPDY/3.1 §2.2.1 asks for 8192 at least. Frames of unknown type are skipped
    /// as they arrive and may have any length.
    pub control_frame: u32,
    /// An inflated header block, in bytes.
    pub block: u32,
    /// How many times its size a header block may inflate to, once it is past 64 KiB. Deflate reaches 1032.
    pub inflate_ratio: u32,
    /// Fields in a header block, where each part of a value counts as one. 1000 is what Go's SPDY settled on after
    /// CVE-2026-35469.
    pub headers: u32,
    /// A field's name or value, in bytes; 1 MiB for the same reason.
    pub header_field: u32,
    /// Entries of a SETTINGS frame; and entries that a server may have kept, more of which are not. Eight ids are defined.
    pub settings: u32,
    /// Bytes of frames waiting to be sent that only answer the peer's: PING, RST_STREAM, refusals. While more bytes than
    /// this wait of control frames of any kind, the peer opens no stream: it asks, is answered, and does not read.
    pub answers: u32,
    /// Memory of the heads that were told and not yet taken with [`Session::poll_event`](crate::Session::poll_event), in
    /// bytes: their inflated blocks, and 128 a field.
    pub heads: u32,
    /// Scheme, authority and path of a push together, in bytes: a client keeps them while it is open.
    pub push_target: u32,
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
            heads: 4 << 20,
            push_target: 16 << 10,
        }
    }
}

impl Limits {
    /// Whether `inflated` bytes out of `compressed` are too many to be a header block's.
    pub(crate) fn is_bomb(&self, compressed: u64, inflated: u64) -> bool {
        inflated > 64 * 1024 && inflated > compressed.saturating_mul(u64::from(self.inflate_ratio))
    }
}

/// Both compression contexts and all that does not grow.
const CONTEXTS: u64 = 640 << 10;
/// A stream's place in the table.
const STREAM: u64 = 1 << 10;
/// Fields, and the set that finds doubles among their names.
const FIELD: u64 = 256;
/// An event that carries no head, in a queue that grows by doubling, out of the fewest bytes that cause one.
const EVENT_OF_A_BYTE: u64 = 96;

impl Config {
    /// The most memory in bytes that a peer can make one session hold, whatever it sends, if no input is longer than
    /// `input` bytes and all events are taken after each.
    ///
    /// What is counted: a control frame that is not whole yet, a block while it is inflated, heads and other events until
    /// they are taken, answers that the peer does not read, streams, kept settings, both compression contexts; of what
    /// grows by doubling, old and new together. Not counted, as the caller gave it or has it: bodies queued to be sent,
    /// the heads of streams that are open, streams that this end opened, events already taken, the input's own bytes.
    pub fn peer_memory(&self, input: u64) -> u64 {
        let l = &self.limits;
        // What waits to be sent: heads up to where streams are refused, and as many bytes of refusals.
        let unsent = 2 * u64::from(l.answers);
        let growing = 3 * (u64::from(l.control_frame) + unsent + 256);
        let block = 2 * u64::from(l.block) + FIELD * u64::from(l.headers);
        let stream = STREAM + u64::from(l.push_target);
        let streams = stream.saturating_mul(2 * u64::from(self.max_concurrent_streams));
        let settings = 32 * u64::from(l.settings);
        let parts =
            [growing, block, l.heads.into(), streams, settings, input.saturating_mul(EVENT_OF_A_BYTE)];
        parts.into_iter().fold(CONTEXTS, u64::saturating_add)
    }
}
