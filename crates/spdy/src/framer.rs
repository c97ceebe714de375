//! Cuts what a transport delivers into frames, wherever it was cut before. Control frames come out whole, data frames as
//! their payload arrives.

use base::{Chunk, ChunkQueue};
use bytes::{Bytes, BytesMut};

use crate::frame::{self, Control, HEADER_LEN, Head};
use crate::{Limits, Misbehaviour, Version};

/// A payload that is read without being kept: those of PING, RST_STREAM, GOAWAY and WINDOW_UPDATE.
const SMALL: u32 = 8;

/// What comes next.
pub(crate) enum Piece {
    /// A data frame begins.
    Data { id: u32, fin: bool, compress: bool, len: u32 },
    /// A part of its payload; `fin` if it is the last of one that has the flag.
    Payload { id: u32, chunk: Chunk, fin: bool },
    /// A control frame with `len` bytes of payload. One of unknown type comes as soon as its header is there.
    Control { frame: Control<Bytes>, len: u32 },
}

/// What the input must go on with.
#[derive(Clone, Copy, Default, Debug)]
enum Reading {
    #[default]
    Head,
    Control {
        kind: u16,
        flags: u8,
        len: u32,
    },
    Data {
        id: u32,
        left: u32,
        fin: bool,
    },
    Skipped {
        left: u32,
    },
}

/// One direction of a connection, on its way into frames.
#[derive(Default)]
pub(crate) struct Framer {
    input: ChunkQueue,
    /// The beginning of a frame's header or of a control frame's payload.
    partial: BytesMut,
    reading: Reading,
}

impl Framer {
    pub(crate) fn push(&mut self, chunk: Chunk) {
        self.input.push(chunk);
    }

    /// Forgets what is not read yet.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether a frame has begun and not ended.
    pub(crate) fn is_amid_frame(&self) -> bool {
        !matches!(self.reading, Reading::Head) || !self.partial.is_empty() || !self.input.is_empty()
    }

    /// The next piece; `None` until there is more input. After an error there is no telling where a frame begins.
    pub(crate) fn next(&mut self, version: Version, limits: &Limits) -> Result<Option<Piece>, Misbehaviour> {
        loop {
            match self.reading {
                Reading::Head => {
                    let mut bytes = [0; HEADER_LEN];
                    if !self.take_into(&mut bytes)? {
                        return Ok(None);
                    }
                    if let Some(piece) = self.head(Head::parse(bytes), version, limits)? {
                        return Ok(Some(piece));
                    }
                }
                Reading::Control { kind, flags, len } if len <= SMALL && !frame::is_bulky(kind) => {
                    let mut payload = [0; SMALL as usize];
                    let payload = &mut payload[..len as usize];
                    if !self.take_into(payload)? {
                        return Ok(None);
                    }
                    self.reading = Reading::Head;
                    let frame = Control::parse_small(version, kind, flags, payload, limits)?;
                    return Ok(Some(Piece::Control { frame, len }));
                }
                Reading::Control { kind, flags, len } => {
                    let Some(payload) = self.take(len as usize)? else { return Ok(None) };
                    self.reading = Reading::Head;
                    let frame = Control::parse(version, kind, flags, payload, limits)?;
                    return Ok(Some(Piece::Control { frame, len }));
                }
                Reading::Skipped { left } => {
                    let Some(chunk) = self.input.pop(u64::from(left)) else { return Ok(None) };
                    let left = left - chunk.len() as u32;
                    self.reading = if left == 0 { Reading::Head } else { Reading::Skipped { left } };
                }
                Reading::Data { id, left, fin } => {
                    let Some(chunk) = self.input.pop(u64::from(left)) else { return Ok(None) };
                    let left = left - chunk.len() as u32;
                    self.reading = if left == 0 { Reading::Head } else { Reading::Data { id, left, fin } };
                    return Ok(Some(Piece::Payload { id, chunk, fin: fin && left == 0 }));
                }
            }
        }
    }

    /// A header is there; what can be told of its frame without the rest.
    fn head(&mut self, head: Head, version: Version, limits: &Limits) -> Result<Option<Piece>, Misbehaviour> {
        let (reading, piece) = match head {
            Head::Data { id, fin, compress, len } => {
                let reading = if len > 0 { Reading::Data { id, left: len, fin } } else { Reading::Head };
                (reading, Some(Piece::Data { id, fin, compress, len }))
            }
            Head::Control { kind, len, .. } if !frame::is_known(version, kind) => {
                let reading = if len > 0 { Reading::Skipped { left: len } } else { Reading::Head };
                (reading, Some(Piece::Control { frame: Control::Unknown { kind, len }, len }))
            }
            Head::Control { version: written, .. } if written != version.on_wire() => {
                return Err(Misbehaviour::Version(written));
            }
            Head::Control { kind, len, .. } if len > limits.control_frame => {
                return Err(Misbehaviour::FrameTooLarge { kind, len });
            }
            Head::Control { kind, flags, len, .. } => (Reading::Control { kind, flags, len }, None),
        };
        self.reading = reading;
        Ok(piece)
    }

    /// As many real bytes as `out` holds, copied; see [`take`](Self::take). Most frames have few, and a shared piece of the
    /// input costs more than these bytes do.
    fn take_into(&mut self, out: &mut [u8]) -> Result<bool, Misbehaviour> {
        if self.partial.is_empty() && self.input.take_into(out) {
            return Ok(true);
        }
        let Some(bytes) = self.take(out.len())? else { return Ok(false) };
        out.copy_from_slice(&bytes);
        Ok(true)
    }

    /// `n` real bytes, if they are there; else what is there is set aside in one piece, as a peer may send a frame byte
    /// by byte.
    fn take(&mut self, n: usize) -> Result<Option<Bytes>, Misbehaviour> {
        if self.partial.is_empty()
            && let Some(bytes) = self.input.take_bytes(n)
        {
            return Ok(Some(bytes));
        }
        while self.partial.len() < n {
            match self.input.pop((n - self.partial.len()) as u64) {
                Some(Chunk::Bytes(bytes)) => self.partial.extend_from_slice(&bytes),
                Some(Chunk::Body(_)) => return Err(Misbehaviour::BodyInsteadOfFrame),
                None => return Ok(None),
            }
        }
        Ok(Some(std::mem::take(&mut self.partial).freeze()))
    }
}
