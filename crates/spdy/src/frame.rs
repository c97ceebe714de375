//! Frames of every version (SPDY/3.1 §2.2 and §2.6; SPDY/2, "Control frames").
//!
//! A control frame is `1 | version:15 | type:16 | flags:8 | length:24`, a data frame `0 | stream id:31 | flags:8 |
//! length:24`. 3.1 writes version 3. What differs between the versions is all here: where priorities sit, the unused
//! bytes before a block, the byte order of SETTINGS, the length of GOAWAY.
//!
//! Reserved bits and undefined flags are ignored. Lengths must fit the type, with what peers do beyond it let pass:
//! RST_STREAM may trail an explanation, version 2's GOAWAY a status (node-spdy sends both).

use bytes::{Buf, BufMut, Bytes};

use crate::{GoAwayStatus, Limits, Misbehaviour, Priority, Status, Version};

/// Bytes in the header of any frame.
pub const HEADER_LEN: usize = 8;

const CONTROL: u32 = 1 << 31;
const MAX_ID: u32 = CONTROL - 1;
const FIN: u8 = 1;
const UNIDIRECTIONAL: u8 = 2;
/// Of data frames, in the text of version 3 alone; nobody wrote it.
const COMPRESS: u8 = 2;
const CLEAR: u8 = 1;

/// The types of control frames.
pub mod kind {
    #![allow(missing_docs, reason = "the names are the specification's")]
    pub const SYN_STREAM: u16 = 1;
    pub const SYN_REPLY: u16 = 2;
    pub const RST_STREAM: u16 = 3;
    pub const SETTINGS: u16 = 4;
    pub const NOOP: u16 = 5;
    pub const PING: u16 = 6;
    pub const GOAWAY: u16 = 7;
    pub const HEADERS: u16 = 8;
    pub const WINDOW_UPDATE: u16 = 9;
    pub const CREDENTIAL: u16 = 10;
}

/// The first eight bytes of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Head {
    /// Of a data frame.
    Data {
        /// The stream.
        id: u32,
        /// Whether it is the sender's last frame on the stream.
        fin: bool,
        /// Whether the COMPRESS flag is set, which means something in version 3 alone (SPDY/3 §2.2.2).
        compress: bool,
        /// Bytes of payload.
        len: u32,
    },
    /// Of a control frame.
    Control {
        /// The version as written on the wire.
        version: u16,
        /// The type; see [`kind`].
        kind: u16,
        /// Flags.
        flags: u8,
        /// Bytes of payload.
        len: u32,
    },
}

impl Head {
    /// Reads a header. Every eight bytes are one.
    pub fn parse(bytes: [u8; HEADER_LEN]) -> Self {
        let [a, b, c, d, flags, len @ ..] = bytes;
        let word = u32::from_be_bytes([a, b, c, d]);
        let len = u32::from_be_bytes([0, len[0], len[1], len[2]]);
        if word & CONTROL == 0 {
            let (fin, compress) = (flags & FIN != 0, flags & COMPRESS != 0);
            return Head::Data { id: word, fin, compress, len };
        }
        Head::Control { version: (word >> 16) as u16 & 0x7fff, kind: word as u16, flags, len }
    }

    /// The header's bytes; a length past 2²⁴ − 1 is cut.
    pub fn emit(self) -> [u8; HEADER_LEN] {
        let (word, flags, len) = match self {
            Head::Data { id, fin, compress, len } => {
                let flags = if fin { FIN } else { 0 } | if compress { COMPRESS } else { 0 };
                (id & MAX_ID, flags, len)
            }
            Head::Control { version, kind, flags, len } => {
                (CONTROL | u32::from(version & 0x7fff) << 16 | u32::from(kind), flags, len)
            }
        };
        let [a, b, c, d] = word.to_be_bytes();
        let [_, e, f, g] = len.to_be_bytes();
        [a, b, c, d, flags, e, f, g]
    }
}

/// One entry of a SETTINGS frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Which setting; 24 bits.
    pub id: u32,
    /// [`PERSIST`](Self::PERSIST) or [`PERSISTED`](Self::PERSISTED).
    pub flags: u8,
    /// Its value.
    pub value: u32,
}

impl Setting {
    /// Expected upload bandwidth in kilobytes a second.
    pub const UPLOAD_BANDWIDTH: u32 = 1;
    /// Expected download bandwidth in kilobytes a second.
    pub const DOWNLOAD_BANDWIDTH: u32 = 2;
    /// Expected round-trip time in milliseconds.
    pub const ROUND_TRIP_TIME: u32 = 3;
    /// Streams that the recipient may have open.
    pub const MAX_CONCURRENT_STREAMS: u32 = 4;
    /// The sender's TCP congestion window in segments.
    pub const CURRENT_CWND: u32 = 5;
    /// Retransmitted share of the bytes sent, in percent.
    pub const DOWNLOAD_RETRANS_RATE: u32 = 6;
    /// Window of a new stream in bytes.
    pub const INITIAL_WINDOW_SIZE: u32 = 7;
    /// Size of the client certificate vector (version 3).
    pub const CLIENT_CERTIFICATE_VECTOR_SIZE: u32 = 8;

    /// Flag from server to client: keep this and send it next time.
    pub const PERSIST: u8 = 1;
    /// Flag from client to server: kept from last time.
    pub const PERSISTED: u8 = 2;

    /// The name in the specification, if it has one.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.id {
            Self::UPLOAD_BANDWIDTH => "UPLOAD_BANDWIDTH",
            Self::DOWNLOAD_BANDWIDTH => "DOWNLOAD_BANDWIDTH",
            Self::ROUND_TRIP_TIME => "ROUND_TRIP_TIME",
            Self::MAX_CONCURRENT_STREAMS => "MAX_CONCURRENT_STREAMS",
            Self::CURRENT_CWND => "CURRENT_CWND",
            Self::DOWNLOAD_RETRANS_RATE => "DOWNLOAD_RETRANS_RATE",
            Self::INITIAL_WINDOW_SIZE => "INITIAL_WINDOW_SIZE",
            Self::CLIENT_CERTIFICATE_VECTOR_SIZE => "CLIENT_CERTIFICATE_VECTOR_SIZE",
            _ => return None,
        })
    }

    /// An entry without flags.
    pub const fn new(id: u32, value: u32) -> Self {
        Self { id, flags: 0, value }
    }
}

/// A control frame. `B` holds its header block, compressed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the fields are the specification's")]
pub enum Control<B> {
    /// Opens a stream.
    SynStream {
        id: u32,
        /// The stream that a push belongs to; 0 for none.
        associated: u32,
        priority: Priority,
        /// Index of a client certificate (version 3); unused in the others.
        slot: u8,
        fin: bool,
        unidirectional: bool,
        block: B,
    },
    /// Answers one.
    SynReply { id: u32, fin: bool, block: B },
    /// Ends one at once.
    RstStream { id: u32, status: Status },
    /// States how to talk.
    Settings { clear: bool, entries: Vec<Setting> },
    /// Nothing (version 2).
    Noop,
    /// Asks for itself back, or is what was asked for.
    Ping { id: u32 },
    /// No more streams.
    GoAway { last_good_id: u32, status: GoAwayStatus },
    /// More fields of a stream.
    Headers { id: u32, fin: bool, block: B },
    /// More room to send; stream 0 is the session.
    WindowUpdate { id: u32, delta: u32 },
    /// A client certificate (version 3, §2.6.9): where it is to be kept, the proof that the client has its key, and the
    /// chain as it stands on the wire, each certificate after its length in 32 bits. A session makes nothing of it.
    Credential { slot: u16, proof: Bytes, certificates: Bytes },
    /// A type that the version does not define.
    Unknown { kind: u16, len: u32 },
}

/// Whether a frame of this type means something in this version, and so must be read whole.
pub(crate) fn is_known(version: Version, kind: u16) -> bool {
    match kind {
        kind::SYN_STREAM..=kind::SETTINGS | kind::PING..=kind::HEADERS => true,
        // Never implemented in version 2, except by node-spdy, which does mean it.
        kind::WINDOW_UPDATE => true,
        kind::NOOP => version == Version::V2,
        kind::CREDENTIAL => version == Version::V3,
        _ => false,
    }
}

/// Whether a frame of this type has a header block or a certificate, which are kept and not copied.
pub(crate) const fn is_bulky(kind: u16) -> bool {
    matches!(kind, kind::SYN_STREAM | kind::SYN_REPLY | kind::HEADERS | kind::CREDENTIAL)
}

impl Control<Bytes> {
    /// Reads the payload of a control frame whose header says `kind` and `flags`, and a version that has been checked. An
    /// error is a length that does not fit the type, or more SETTINGS than `limits` allows.
    pub fn parse(
        version: Version,
        kind: u16,
        flags: u8,
        mut payload: Bytes,
        limits: &Limits,
    ) -> Result<Self, Misbehaviour> {
        if !is_bulky(kind) || !is_known(version, kind) {
            return Self::parse_small(version, kind, flags, &payload, limits);
        }
        let len = payload.len() as u32;
        let fault = Misbehaviour::FrameLength { kind, len };
        let at_least = |n: u32| if len >= n { Ok(()) } else { Err(fault) };
        let fin = flags & FIN != 0;
        if kind == kind::SYN_STREAM {
            at_least(10)?;
            let id = payload.get_u32() & MAX_ID;
            let associated = payload.get_u32() & MAX_ID;
            let priority = Priority::from_wire(version, payload.get_u8());
            let slot = payload.get_u8();
            let unidirectional = flags & UNIDIRECTIONAL != 0;
            let block = payload;
            return Ok(Control::SynStream { id, associated, priority, slot, fin, unidirectional, block });
        }
        if kind == kind::CREDENTIAL {
            at_least(6)?;
            let slot = payload.get_u16();
            let (proof, certificates) = parse_credential(payload).ok_or(fault)?;
            return Ok(Control::Credential { slot, proof, certificates });
        }
        let unused = if version == Version::V2 { 2 } else { 0 };
        at_least(4 + unused)?;
        let id = payload.get_u32() & MAX_ID;
        payload.advance(unused as usize);
        Ok(match kind {
            kind::SYN_REPLY => Control::SynReply { id, fin, block: payload },
            _ => Control::Headers { id, fin, block: payload },
        })
    }
}

impl<B> Control<B> {
    /// As [`parse`](Control::parse), of a type that is unknown or holds nothing worth keeping.
    pub(crate) fn parse_small(
        version: Version,
        kind: u16,
        flags: u8,
        mut payload: &[u8],
        limits: &Limits,
    ) -> Result<Self, Misbehaviour> {
        let len = payload.len() as u32;
        let at_least = |n: u32| if len >= n { Ok(()) } else { Err(Misbehaviour::FrameLength { kind, len }) };
        let exactly =
            |n: u64| if u64::from(len) == n { Ok(()) } else { Err(Misbehaviour::FrameLength { kind, len }) };
        if !is_known(version, kind) {
            return Ok(Control::Unknown { kind, len });
        }
        Ok(match kind {
            kind::RST_STREAM => {
                at_least(8)?;
                Control::RstStream { id: payload.get_u32() & MAX_ID, status: Status(payload.get_u32()) }
            }
            kind::SETTINGS => {
                at_least(4)?;
                let count = payload.get_u32();
                if count > limits.settings {
                    return Err(Misbehaviour::TooManySettings(count));
                }
                exactly(4 + 8 * u64::from(count))?;
                let entries = (0..count).map(|_| parse_setting(version, &mut payload)).collect();
                Control::Settings { clear: flags & CLEAR != 0, entries }
            }
            kind::NOOP => Control::Noop,
            kind::PING => {
                exactly(4)?;
                Control::Ping { id: payload.get_u32() }
            }
            kind::GOAWAY => {
                at_least(if version == Version::V2 { 4 } else { 8 })?;
                let last_good_id = payload.get_u32() & MAX_ID;
                let status = if len >= 8 { payload.get_u32() } else { 0 };
                Control::GoAway { last_good_id, status: GoAwayStatus(status) }
            }
            kind::WINDOW_UPDATE => {
                exactly(8)?;
                Control::WindowUpdate { id: payload.get_u32() & MAX_ID, delta: payload.get_u32() & MAX_ID }
            }
            _ => unreachable!("is_known and not bulky"),
        })
    }

    /// The same frame with what `change` makes of its header block, if it has one.
    pub(crate) fn try_map<C, E>(self, change: impl FnOnce(B) -> Result<C, E>) -> Result<Control<C>, E> {
        Ok(match self {
            Control::SynStream { id, associated, priority, slot, fin, unidirectional, block } => {
                let block = change(block)?;
                Control::SynStream { id, associated, priority, slot, fin, unidirectional, block }
            }
            Control::SynReply { id, fin, block } => Control::SynReply { id, fin, block: change(block)? },
            Control::Headers { id, fin, block } => Control::Headers { id, fin, block: change(block)? },
            Control::RstStream { id, status } => Control::RstStream { id, status },
            Control::Settings { clear, entries } => Control::Settings { clear, entries },
            Control::Noop => Control::Noop,
            Control::Ping { id } => Control::Ping { id },
            Control::GoAway { last_good_id, status } => Control::GoAway { last_good_id, status },
            Control::WindowUpdate { id, delta } => Control::WindowUpdate { id, delta },
            Control::Credential { slot, proof, certificates } => {
                Control::Credential { slot, proof, certificates }
            }
            Control::Unknown { kind, len } => Control::Unknown { kind, len },
        })
    }
}

/// Version 3: flags, then a 24-bit id. Version 2 had them the other way round, and the id little-endian: the first
/// implementation's bug, which the text then adopted.
fn parse_setting(version: Version, payload: &mut &[u8]) -> Setting {
    let (flags, id) = match version {
        Version::V2 => {
            let word = payload.get_u32_le();
            ((word >> 24) as u8, word & 0xff_ffff)
        }
        Version::V3 | Version::V3_1 => {
            let word = payload.get_u32();
            ((word >> 24) as u8, word & 0xff_ffff)
        }
    };
    Setting { id, flags, value: payload.get_u32() }
}

/// The proof and the certificates of a CREDENTIAL, past its slot; `None` if their lengths do not add up.
fn parse_credential(mut payload: Bytes) -> Option<(Bytes, Bytes)> {
    let proof_len = payload.try_get_u32().ok()? as usize;
    if proof_len > payload.len() {
        return None;
    }
    let proof = payload.split_to(proof_len);
    let mut rest = &payload[..];
    while !rest.is_empty() {
        let (len, after) = rest.split_first_chunk()?;
        rest = after.get(u32::from_be_bytes(*len) as usize..)?;
    }
    Some((proof, payload))
}

impl<B: AsRef<[u8]>> Control<B> {
    /// Appends the frame. `Unknown` has no contents to send and comes out as zeros of its length.
    ///
    /// # Panics
    /// If the payload is longer than 2²⁴ − 1 bytes; a session checks blocks before it compresses them.
    pub fn emit(&self, version: Version, out: &mut impl BufMut) {
        let mut flags = 0;
        let mut fixed = [0; 10];
        let (kind, fixed_len, block): (u16, usize, &[u8]) = match self {
            Control::SynStream { id, associated, priority, slot, fin, unidirectional, block } => {
                flags = if *fin { FIN } else { 0 } | if *unidirectional { UNIDIRECTIONAL } else { 0 };
                put(&mut fixed, 0, *id);
                put(&mut fixed, 4, *associated);
                fixed[8] = priority.to_wire(version);
                fixed[9] = *slot;
                (kind::SYN_STREAM, 10, block.as_ref())
            }
            Control::SynReply { id, fin, block } | Control::Headers { id, fin, block } => {
                flags = if *fin { FIN } else { 0 };
                put(&mut fixed, 0, *id);
                let reply = matches!(self, Control::SynReply { .. });
                let kind = if reply { kind::SYN_REPLY } else { kind::HEADERS };
                (kind, if version == Version::V2 { 6 } else { 4 }, block.as_ref())
            }
            Control::RstStream { id, status } => {
                put(&mut fixed, 0, *id);
                put(&mut fixed, 4, status.0);
                (kind::RST_STREAM, 8, &[])
            }
            Control::Settings { clear, entries } => return emit_settings(version, *clear, entries, out),
            Control::Noop => (kind::NOOP, 0, &[]),
            Control::Ping { id } => {
                put(&mut fixed, 0, *id);
                (kind::PING, 4, &[])
            }
            Control::GoAway { last_good_id, status } => {
                put(&mut fixed, 0, *last_good_id);
                put(&mut fixed, 4, status.0);
                (kind::GOAWAY, if version == Version::V2 { 4 } else { 8 }, &[])
            }
            Control::WindowUpdate { id, delta } => {
                put(&mut fixed, 0, *id);
                put(&mut fixed, 4, *delta);
                (kind::WINDOW_UPDATE, 8, &[])
            }
            Control::Credential { slot, proof, certificates } => {
                start(version, kind::CREDENTIAL, flags, 6 + proof.len() + certificates.len(), out);
                out.put_u16(*slot);
                out.put_u32(proof.len() as u32);
                out.put_slice(proof);
                return out.put_slice(certificates);
            }
            Control::Unknown { kind, len } => {
                start(version, *kind, flags, *len as usize, out);
                return out.put_bytes(0, *len as usize);
            }
        };
        start(version, kind, flags, fixed_len + block.len(), out);
        out.put_slice(&fixed[..fixed_len]);
        out.put_slice(block);
    }
}

fn put(fixed: &mut [u8; 10], at: usize, value: u32) {
    fixed[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

/// Appends the header of a control frame.
fn start(version: Version, kind: u16, flags: u8, len: usize, out: &mut impl BufMut) {
    assert!(len < 1 << 24, "a control frame of {len} bytes");
    let head = Head::Control { version: version.on_wire(), kind, flags, len: len as u32 };
    out.put_slice(&head.emit());
}

fn emit_settings(version: Version, clear: bool, entries: &[Setting], out: &mut impl BufMut) {
    start(version, kind::SETTINGS, if clear { CLEAR } else { 0 }, 4 + 8 * entries.len(), out);
    out.put_u32(entries.len() as u32);
    for entry in entries {
        let word = u32::from(entry.flags) << 24 | entry.id & 0xff_ffff;
        let word = if version == Version::V2 { word.to_le_bytes() } else { word.to_be_bytes() };
        out.put_slice(&word);
        out.put_u32(entry.value);
    }
}

#[cfg(test)]
mod tests;
