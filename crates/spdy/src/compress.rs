//! Header compression: one zlib stream a direction a connection, flushed after each block (SPDY/3.1 §2.6.10.1).
//!
//! Both contexts are made when the first block needs them. The decoder is miniz_oxide, which is safe Rust; the encoder is
//! our own, for the reason in [`crate::deflate`].

use std::sync::LazyLock;

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_HAS_MORE_INPUT, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

use crate::block::{Block, Class};
use crate::deflate::Deflater;
use crate::dictionary::{self, Dictionary};
use crate::{Limits, Misbehaviour, Version};

/// How header blocks are compressed. The choice is the sender's alone: every receiver understands all of them.
///
/// A compressed block's length tells an eavesdropper how much of it repeats what came before; whoever can make the
/// client send chosen bytes beside a secret can so guess the secret piece by piece (CRIME, 2012).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Everything may match everything, as all did until 2012. Smallest, and leaks cookies.
    Full,
    /// Chrome's answer. A cookie matches an equal one as a whole or not at all, so that guessing a part gains nothing;
    /// names, lengths and the few values that are the same for every request (host, method, scheme, version,
    /// accept…, user-agent) match each other; all other values are coded on their own.
    CookiesApart,
    /// Nothing is compressed, in stored blocks. What Firefox did for requests and, as zlib's level 0, nginx by default:
    /// on the wire the two are the same.
    Stored,
}

/// A sender's choice of compression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compression {
    /// What may match what.
    pub policy: Policy,
    /// Binary logarithm of the window in bytes, 9–15; other values are brought into that range. Chrome used 11, which
    /// holds two or three requests and saves memory; 15 sends a third less.
    pub window_bits: u8,
}

fn dictionary(version: Version) -> &'static Dictionary {
    match version {
        Version::V2 => &dictionary::V2,
        Version::V3 | Version::V3_1 => &dictionary::V3,
    }
}

/// One direction's compressor.
pub(crate) struct Compressor {
    version: Version,
    compression: Compression,
    deflater: Option<Box<Deflater>>,
}

impl Compressor {
    pub(crate) fn new(version: Version, compression: Compression) -> Self {
        let window_bits = compression.window_bits.clamp(9, 15);
        Self { version, compression: Compression { window_bits, ..compression }, deflater: None }
    }

    /// Appends `block`, compressed, to `out`.
    pub(crate) fn compress(&mut self, block: &Block, out: &mut Vec<u8>) {
        let deflater = self.deflater.get_or_insert_with(|| {
            // Chaining up the dictionary costs more than copying its chains.
            static PRIMED: LazyLock<[Deflater; 2]> =
                LazyLock::new(|| [&dictionary::V2, &dictionary::V3].map(|d| Deflater::new(d, 15)));
            let primed = &PRIMED[usize::from(self.version != Version::V2)];
            Box::new(primed.with_window(self.compression.window_bits))
        });
        match self.compression.policy {
            Policy::Stored => return deflater.stored(block.bytes(), out),
            Policy::Full => {
                deflater.begin(out);
                deflater.shared(block.bytes(), out);
            }
            Policy::CookiesApart => {
                deflater.begin(out);
                for (class, bytes) in block.pieces() {
                    match class {
                        Class::Shared => deflater.shared(bytes, out),
                        Class::Private => deflater.private(bytes, out),
                        Class::Cookie => crumbs(bytes).for_each(|c| deflater.crumb(c, out)),
                    }
                }
            }
        }
        deflater.end(out);
    }
}

/// The single cookies of a `cookie` field. Each but the first begins with the separator, so that a cookie matches
/// itself wherever it stands, except in the first place.
fn crumbs(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.chunk_by(|_, next| *next != b';')
}

/// Bytes of history that a decoder must keep (RFC 1951 §3.2.5).
const HISTORY: usize = 32 * 1024;
/// The buffer grows by this much when a block does not fit.
const STEP: usize = 16 * 1024;

/// One direction's decompressor.
pub(crate) struct Decompressor {
    dictionary: &'static Dictionary,
    state: Option<Box<DecompressorOxide>>,
    /// History, then the block being inflated, then room.
    buffer: Vec<u8>,
    /// Where history ends.
    at: usize,
}

impl Decompressor {
    pub(crate) fn new(version: Version) -> Self {
        Self { dictionary: dictionary(version), state: None, buffer: Vec::new(), at: 0 }
    }

    /// Inflates one whole block. After an error the context is lost, and with it the session.
    pub(crate) fn inflate(&mut self, mut block: &[u8], limits: &Limits) -> Result<&[u8], Misbehaviour> {
        let compressed = block.len() as u64;
        if self.state.is_none() {
            block = self.start(block)?;
        }
        let Some(state) = &mut self.state else { unreachable!("just started") };
        if self.at > 2 * HISTORY {
            self.buffer.copy_within(self.at - HISTORY..self.at, 0);
            self.buffer.truncate(HISTORY + STEP);
            self.at = HISTORY;
        }
        let begin = self.at;
        loop {
            let flags = TINFL_FLAG_HAS_MORE_INPUT | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
            let (status, read, written) = decompress(state, block, &mut self.buffer, self.at, flags);
            block = &block[read..];
            self.at += written;
            let inflated = (self.at - begin) as u64;
            if inflated > u64::from(limits.block) || limits.is_bomb(compressed, inflated) {
                return Err(Misbehaviour::BlockTooLarge);
            }
            match status {
                TINFLStatus::NeedsMoreInput if block.is_empty() => break,
                TINFLStatus::HasMoreOutput => self.buffer.resize(self.buffer.len() + STEP, 0),
                _ => return Err(Misbehaviour::BadCompression),
            }
        }
        Ok(&self.buffer[begin..self.at])
    }

    /// Reads the zlib header, which stands before the first block, and lays out the dictionary.
    fn start<'a>(&mut self, block: &'a [u8]) -> Result<&'a [u8], Misbehaviour> {
        let [cmf, flg, rest @ ..] = block else { return Err(Misbehaviour::BadCompression) };
        let checked = u16::from_be_bytes([*cmf, *flg]) % 31 == 0;
        if cmf & 0x0f != 8 || cmf >> 4 > 7 || !checked {
            return Err(Misbehaviour::BadCompression);
        }
        let (rest, dictionary) = if flg & 0x20 == 0 {
            (rest, &[][..])
        } else {
            let Some((id, rest)) = rest.split_first_chunk() else { return Err(Misbehaviour::BadCompression) };
            if u32::from_be_bytes(*id) != self.dictionary.adler32 {
                return Err(Misbehaviour::BadCompression);
            }
            (rest, self.dictionary.bytes)
        };
        self.buffer = Vec::with_capacity(dictionary.len() + 4_096);
        self.buffer.extend_from_slice(dictionary);
        self.buffer.resize(dictionary.len() + 4_096, 0);
        self.at = dictionary.len();
        self.state = Some(Box::default());
        Ok(rest)
    }
}

#[cfg(test)]
mod tests;
