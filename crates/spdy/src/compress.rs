//! Header compression: one zlib stream a direction a connection, flushed after each block (SPDY/3.1 §2.6.10.1).
//!
//! Both contexts are made when the first block needs them. The decoder is zlib-rs: it knows preset dictionaries, and
//! keeps the tables of the fixed codes, which safe decoders build anew for each block at ten times the cost of reading a
//! header. The encoder is our own, for the reason in [`crate::deflate`].

use std::sync::LazyLock;

use bytes::Bytes;
use zlib_rs::{Inflate, InflateError, InflateFlush, Status as Progress};

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
    /// only who guesses all of it, and can set a cookie beside it, learns that he was right. Names, lengths and the few
    /// values that are the same for every request (host, method, scheme, version, accept…, user-agent) match each other;
    /// all other values are coded on their own.
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

/// The single cookies of a `cookie` field, or of several in one. Each but the first begins with the separator, so that a
/// cookie matches itself wherever it stands, except in the first place.
fn crumbs(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.chunk_by(|_, next| !matches!(next, b';' | 0))
}

/// The buffer for an inflated block grows by doubling, from this.
const ROOM: usize = 4 * 1024;
/// A larger buffer is not kept for the next block.
const KEPT: usize = 64 * 1024;

/// One direction's decompressor.
pub(crate) struct Decompressor {
    dictionary: &'static Dictionary,
    inflate: Option<Inflate>,
    /// Room to inflate in.
    buffer: Vec<u8>,
}

impl Decompressor {
    pub(crate) fn new(version: Version) -> Self {
        Self { dictionary: dictionary(version), inflate: None, buffer: Vec::new() }
    }

    /// Inflates one whole block. After an error the context is lost, and with it the session.
    pub(crate) fn inflate(&mut self, mut block: &[u8], limits: &Limits) -> Result<Bytes, Misbehaviour> {
        let inflate = self.inflate.get_or_insert_with(|| Inflate::new(true, 15));
        let compressed = block.len() as u64;
        let mut len = 0;
        loop {
            if self.buffer.len() == len {
                // One byte more than is allowed tells that it is too much.
                self.buffer.resize((2 * len).max(ROOM).min((limits.block as usize).saturating_add(1)), 0);
            }
            let (read, written) = (inflate.total_in(), inflate.total_out());
            let outcome = inflate.decompress(block, &mut self.buffer[len..], InflateFlush::SyncFlush);
            block = &block[(inflate.total_in() - read) as usize..];
            len += (inflate.total_out() - written) as usize;
            if len as u64 > u64::from(limits.block) || limits.is_bomb(compressed, len as u64) {
                return Err(Misbehaviour::BlockTooLarge);
            }
            match outcome {
                Err(InflateError::NeedDict { dict_id }) if dict_id == self.dictionary.adler32 => {
                    inflate
                        .set_dictionary(self.dictionary.bytes)
                        .map_err(|_| Misbehaviour::BadCompression)?;
                }
                // Nothing left to read, and what was read has had room.
                Ok(Progress::Ok | Progress::BufError) if block.is_empty() && len < self.buffer.len() => break,
                Ok(Progress::Ok) => {}
                // The stream's end is the connection's: a peer has no reason to end it before.
                Ok(Progress::StreamEnd | Progress::BufError) | Err(_) => {
                    return Err(Misbehaviour::BadCompression);
                }
            }
        }
        let inflated = Bytes::copy_from_slice(&self.buffer[..len]);
        if self.buffer.len() > KEPT {
            self.buffer = Vec::new();
        }
        Ok(inflated)
    }
}

#[cfg(test)]
mod tests;
