//! Bodies as they arrive: length, chunked, until close (RFC 9112 §6.3, §7.1).

use base::{Chunk, Fields};
use bytes::{Buf, Bytes};

use crate::head::{Lines, Section, is_value};
use crate::{Framing, Limits, PeerError};

/// Where we are in a body that is arriving.
#[derive(Debug)]
pub(crate) struct Body {
    expect: Expect,
    /// Bytes of chunk extensions so far.
    extensions: usize,
}

#[derive(Debug)]
enum Expect {
    Data { left: u64 },
    ChunkLine,
    ChunkData { left: u64 },
    ChunkEnd { cr: bool },
    Trailers,
    Close,
}

/// What a piece of input led to.
pub(crate) enum Step {
    /// The input is used up.
    More,
    /// Body bytes.
    Data(Chunk),
    /// The body is complete; the trailer fields, if it had a trailer section.
    Done(Fields),
}

impl Body {
    /// A body to come; `None` if there is none to wait for.
    pub fn new(framing: Framing) -> Option<Self> {
        let expect = match framing {
            Framing::Empty | Framing::Length(0) => return None,
            Framing::Length(left) => Expect::Data { left },
            Framing::Chunked => Expect::ChunkLine,
            Framing::UntilClose | Framing::Tunnel => Expect::Close,
        };
        Some(Self { expect, extensions: 0 })
    }

    /// Takes one step on `input`.
    pub fn step(
        &mut self,
        input: &mut Chunk,
        lines: &mut Lines,
        limits: &Limits,
        strict: bool,
    ) -> Result<Step, PeerError> {
        loop {
            match &mut self.expect {
                Expect::Close if input.is_empty() => return Ok(Step::More),
                Expect::Close => return Ok(Step::Data(input.split_to(input.len()))),
                Expect::Data { left: 0 } => return Ok(Step::Done(Fields::new())),
                Expect::ChunkData { left: 0 } => self.expect = Expect::ChunkEnd { cr: false },
                _ if input.is_empty() => return Ok(Step::More),
                Expect::Data { left } | Expect::ChunkData { left } => {
                    let n = input.len().min(*left);
                    *left -= n;
                    return Ok(Step::Data(input.split_to(n)));
                }
                Expect::ChunkLine | Expect::ChunkEnd { .. } | Expect::Trailers => {
                    let Chunk::Bytes(bytes) = input else { return Err(PeerError::BodyRangeInFraming) };
                    if let Some(trailers) = self.framing(bytes, lines, limits, strict)? {
                        return Ok(Step::Done(trailers));
                    }
                }
            }
        }
    }

    /// Reads chunk framing; the trailer fields once the body is over.
    fn framing(
        &mut self,
        bytes: &mut Bytes,
        lines: &mut Lines,
        limits: &Limits,
        strict: bool,
    ) -> Result<Option<Fields>, PeerError> {
        match self.expect {
            Expect::ChunkEnd { cr } => {
                self.expect = match (cr, bytes.get_u8()) {
                    (false, b'\r') => Expect::ChunkEnd { cr: true },
                    (true, b'\n') => Expect::ChunkLine,
                    _ => return Err(PeerError::BadChunk),
                };
            }
            Expect::Trailers => {
                if let Some(section) = lines.take(bytes, Section::Trailers, limits, strict)? {
                    return Ok(Some(lines.fields(&section, 0, strict)?.0));
                }
            }
            // A bare LF is refused by client and server alike: RFC 9112 §2.2 allows it in a head only.
            _ => {
                if let Some(line) = lines.take(bytes, Section::ChunkLine, limits, true)? {
                    let (size, extensions) = chunk_line(&line[lines.line(&line, 0)], strict)?;
                    self.extensions += extensions;
                    if self.extensions > limits.extension_bytes {
                        return Err(PeerError::ChunkLineTooLong);
                    }
                    self.expect = if size == 0 { Expect::Trailers } else { Expect::ChunkData { left: size } };
                }
            }
        }
        Ok(None)
    }

    /// The connection ended here: whether the body did too.
    pub fn eof(&self) -> Result<(), PeerError> {
        match self.expect {
            Expect::Close => Ok(()),
            Expect::Data { left } | Expect::ChunkData { left } => {
                Err(PeerError::BodyTruncated { missing: left })
            }
            _ => Err(PeerError::BodyTruncated { missing: 0 }),
        }
    }
}

/// The size of a chunk and the bytes of its extensions, which mean nothing to us (RFC 9112 §7.1.1). Old servers pad
/// the size with blanks; a server does not put up with that.
fn chunk_line(line: &[u8], strict: bool) -> Result<(u64, usize), PeerError> {
    let digits = line.iter().position(|b| !b.is_ascii_hexdigit()).unwrap_or(line.len());
    let (size, rest) = line.split_at(digits);
    let padding = rest.trim_ascii_start();
    let ends_well = rest.is_empty() || padding.first() == Some(&b';') || (padding.is_empty() && !strict);
    if size.is_empty() || !ends_well || !is_value(rest) {
        return Err(PeerError::BadChunk);
    }
    let size = size.iter().try_fold(0u64, |n, d| n.checked_mul(16)?.checked_add(hex(*d)));
    Ok((size.ok_or(PeerError::BadChunk)?, rest.len()))
}

fn hex(digit: u8) -> u64 {
    u64::from(match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    })
}
