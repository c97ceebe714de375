//! A deflate encoder for header blocks: RFC 1950 and 1951, with a preset dictionary, one stream for a whole
//! connection.
//!
//! Why not a library: no general one can say of a byte "nobody may match this" or "match this cookie whole or not at
//! all", and that is what keeps a compressed header from telling its secrets (see [`crate::Policy`]). Two
//! properties of header blocks keep the encoder small:
//!
//! * They are short and mostly matches, so that codes made to measure hardly pay: with the fixed Huffman codes (RFC 1951
//!   §3.2.6) alone, recorded requests of 2012 come out 4 % smaller than from zlib as Chrome set it up, and 7 % larger than
//!   from zlib at its best. And a fixed code has no memory: how long one field's literals come out says nothing about
//!   another field.
//! * A context lives as long as a connection, and there are many connections: it starts as a copy of a primed one and
//!   its memory grows with what is sent, where zlib clears a quarter of a megabyte first.
//!
//! The window holds 16-bit symbols: a byte that must not be matched carries a mark above its eight bits, so that it
//! equals no byte that is looked for.

use std::collections::VecDeque;

use crate::dictionary::Dictionary;

const HASH_BITS: u32 = 12;
const MIN_MATCH: usize = 3;
const MAX_MATCH: usize = 258;
/// Candidates tried for one position. With a third of them, recorded headers come out 1 to 2 % larger.
const CHAIN_MAX: u32 = 48;
/// A match this long is taken without a look at the next position.
const GOOD_MATCH: usize = 16;
/// A match of three bytes from farther away costs more bits than three literals.
const TOO_FAR: usize = 8_192;
/// Marks a symbol that must not be matched.
const PRIVATE: u16 = 0x100;
/// Recent cookies that may be matched whole.
const CRUMBS_MAX: usize = 64;

/// Code and length of each byte (RFC 1951 §3.2.6): 8 bits up to 143, 9 above; codes go out most significant bit first.
static LITERALS: [(u16, u8); 256] = {
    let mut literals = [(0, 0); 256];
    let mut byte = 0;
    while byte < 256 {
        let code = byte as u16;
        literals[byte] = match byte {
            0..=143 => ((0x30 + code).reverse_bits() >> 8, 8),
            _ => ((0x190 + code - 144).reverse_bits() >> 7, 9),
        };
        byte += 1;
    }
    literals
};

/// One direction's compression context.
#[derive(Clone)]
pub(crate) struct Deflater {
    dictionary: &'static Dictionary,
    window_bits: u8,
    /// Dictionary and everything after it, less what was trimmed.
    window: Vec<u16>,
    /// For each symbol in the window, the distance to the one before it with the same hash; 0 ends the chain.
    chain: Vec<u16>,
    /// By hash, one more than the last position with it; 0 is none.
    heads: Box<[u32; 1 << HASH_BITS]>,
    /// Positions below this are in the chains.
    indexed: usize,
    /// Stream position of the window's first symbol.
    base: u64,
    /// Stream position and length of recent cookies.
    crumbs: VecDeque<(u64, usize)>,
    bits: u64,
    bit_count: u32,
    started: bool,
}

impl Deflater {
    /// A context that starts from `dictionary`, with a window of 2^`window_bits` bytes (9–15).
    pub(crate) fn new(dictionary: &'static Dictionary, window_bits: u8) -> Self {
        let mut deflater = Self {
            dictionary,
            window_bits,
            window: dictionary.bytes.iter().map(|b| u16::from(*b)).collect(),
            chain: Vec::new(),
            heads: Box::new([0; 1 << HASH_BITS]),
            indexed: 0,
            base: 0,
            crumbs: VecDeque::new(),
            bits: 0,
            bit_count: 0,
            started: false,
        };
        deflater.index_to(dictionary.bytes.len());
        deflater
    }

    /// A copy with a window of 2^`window_bits` bytes.
    pub(crate) fn with_window(&self, window_bits: u8) -> Self {
        Self { window_bits, ..self.clone() }
    }

    /// Begins a block of fields: the zlib header if it is the first, and the header of a block of fixed codes.
    pub(crate) fn begin(&mut self, out: &mut Vec<u8>) {
        self.header(out);
        self.trim();
        self.put(0b010, 3, out);
    }

    /// Bytes that may match and be matched.
    pub(crate) fn shared(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let begin = self.window.len();
        self.window.extend(bytes.iter().map(|b| u16::from(*b)));
        let (mut at, end) = (begin, self.window.len());
        self.index_to(at);
        let mut here = self.longest(at, end, 0);
        while at < end {
            let (len, distance) = here;
            // A longer match that begins one later is worth a literal.
            let mut next = (0, 0);
            if len < GOOD_MATCH {
                self.index_to(at + 1);
                next = self.longest(at + 1, end, len);
            }
            if len < MIN_MATCH || next.0 > len {
                self.literal(bytes[at - begin], out);
                at += 1;
                here = next;
            } else {
                self.copy(len, distance, out);
                at += len;
                self.index_to(at);
                here = self.longest(at, end, 0);
            }
        }
    }

    /// Bytes that neither match nor are matched.
    pub(crate) fn private(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for byte in bytes {
            self.literal(*byte, out);
        }
        self.append_private(bytes);
    }

    /// A cookie: copied whole from an equal one before it, or else literal.
    pub(crate) fn crumb(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let reach = 1 << self.window_bits;
        let end = self.base + self.window.len() as u64;
        self.crumbs.retain(|(at, _)| end - at <= reach);
        let earlier = self.crumbs.iter().position(|(at, len)| {
            let at = (at - self.base) as usize;
            *len == bytes.len()
                && self.window[at..at + len].iter().zip(bytes).all(|(s, b)| *s == PRIVATE | u16::from(*b))
        });
        match earlier.and_then(|i| self.crumbs.remove(i)) {
            Some((at, mut left)) if left >= MIN_MATCH => {
                while left > 0 {
                    // The last piece must be a match too.
                    let len = if left > MAX_MATCH { (left - MIN_MATCH).min(MAX_MATCH) } else { left };
                    self.copy(len, (end - at) as usize, out);
                    left -= len;
                }
            }
            _ => bytes.iter().for_each(|b| self.literal(*b, out)),
        }
        self.append_private(bytes);
        self.crumbs.push_back((end, bytes.len()));
        if self.crumbs.len() > CRUMBS_MAX {
            self.crumbs.pop_front();
        }
    }

    /// Ends a block of fields and flushes: the end-of-block code and an empty stored block, as zlib's SYNC_FLUSH.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) {
        self.put(0, 7, out);
        self.stored_block(&[], out);
    }

    /// A whole block of fields, not compressed, and the flush after it: zlib at level 0.
    pub(crate) fn stored(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.header(out);
        for piece in bytes.chunks(usize::from(u16::MAX)) {
            self.stored_block(piece, out);
        }
        self.stored_block(&[], out);
    }

    /// RFC 1950 §2.2: FLEVEL 2, FDICT, and the dictionary's checksum.
    fn header(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        let cmf = 8 | (u16::from(self.window_bits) - 8) << 4;
        let level_and_fdict = 0b1010_0000;
        let check = 31 - ((cmf << 8) | level_and_fdict) % 31;
        out.extend_from_slice(&[cmf as u8, (level_and_fdict + check) as u8]);
        out.extend_from_slice(&self.dictionary.adler32.to_be_bytes());
    }

    /// RFC 1951 §3.2.4.
    fn stored_block(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.put(0b000, 3, out);
        self.put(0, (8 - self.bit_count % 8) % 8, out);
        while self.bit_count > 0 {
            out.push(self.bits as u8);
            self.bits >>= 8;
            self.bit_count -= 8;
        }
        let len = bytes.len() as u16;
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&(!len).to_le_bytes());
        out.extend_from_slice(bytes);
    }

    fn append_private(&mut self, bytes: &[u8]) {
        self.window.extend(bytes.iter().map(|b| PRIVATE | u16::from(*b)));
        self.chain.resize(self.window.len(), 0);
        self.indexed = self.window.len();
    }

    /// Forgets what is out of reach, now and then.
    fn trim(&mut self) {
        let reach = 1_usize << self.window_bits;
        if self.window.len() < 2 * reach {
            return;
        }
        self.index_to(self.window.len());
        let cut = self.window.len() - reach;
        self.window.drain(..cut);
        self.chain.drain(..cut);
        self.indexed = self.indexed.saturating_sub(cut);
        self.base += cut as u64;
        for head in self.heads.iter_mut() {
            *head = head.saturating_sub(cut as u32);
        }
    }

    /// Puts the positions before `at` into the chains; those whose three symbols are not all there wait.
    fn index_to(&mut self, at: usize) {
        let end = at.min(self.window.len().saturating_sub(MIN_MATCH - 1));
        self.chain.resize(self.chain.len().max(end), 0);
        let from = self.indexed.min(end);
        let threes = self.window[from..].windows(MIN_MATCH);
        for ((position, link), three) in (from as u32..).zip(&mut self.chain[from..end]).zip(threes) {
            let head = &mut self.heads[hash(three)];
            let distance = if *head == 0 { 0 } else { position + 1 - *head };
            *link = u16::try_from(distance).unwrap_or(0);
            *head = position + 1;
        }
        self.indexed = self.indexed.max(end);
    }

    /// The longest match for `at` that is longer than `beat`, as length and distance, or `(0, 0)`. All positions
    /// before `at` that can be are indexed.
    fn longest(&self, at: usize, end: usize, beat: usize) -> (usize, usize) {
        let max = MAX_MATCH.min(end - at.min(end));
        let (mut best, mut distance) = (beat.max(MIN_MATCH - 1), 0);
        if max <= best {
            return (0, 0);
        }
        let reach = 1 << self.window_bits;
        let mut candidate = self.heads[hash(&self.window[at..at + MIN_MATCH])] as usize;
        let target = &self.window[at..at + max];
        for _ in 0..CHAIN_MAX {
            if candidate == 0 || at - (candidate - 1) > reach {
                break;
            }
            let from = candidate - 1;
            if self.window[from + best] == target[best] {
                let same = common(&self.window[from..], target);
                if same > best && (same > MIN_MATCH || at - from <= TOO_FAR) {
                    (best, distance) = (same, at - from);
                    if same == max {
                        break;
                    }
                }
            }
            let step = usize::from(self.chain[from]);
            // A chain may lead to what was trimmed.
            candidate = if step == 0 { 0 } else { candidate.saturating_sub(step) };
        }
        if distance == 0 { (0, 0) } else { (best, distance) }
    }

    fn literal(&mut self, byte: u8, out: &mut Vec<u8>) {
        let (code, bits) = LITERALS[usize::from(byte)];
        self.put(u32::from(code), u32::from(bits), out);
    }

    /// RFC 1951 §3.2.5 and §3.2.6: a length of 3–258 and a distance of 1–32768.
    fn copy(&mut self, len: usize, distance: usize, out: &mut Vec<u8>) {
        let (symbol, extra, extra_bits) = match len as u32 {
            258 => (285, 0, 0),
            len => {
                let (symbol, extra, bits) = logarithmic(len - 3, 4);
                (257 + symbol, extra, bits)
            }
        };
        match symbol {
            256..=279 => self.put((symbol - 256_u32).reverse_bits() >> 25, 7, out),
            _ => self.put((0xc0 + symbol - 280).reverse_bits() >> 24, 8, out),
        }
        self.put(extra, extra_bits, out);
        let (symbol, extra, extra_bits) = logarithmic(distance as u32 - 1, 2);
        self.put(symbol.reverse_bits() >> 27, 5, out);
        self.put(extra, extra_bits, out);
    }

    fn put(&mut self, value: u32, bits: u32, out: &mut Vec<u8>) {
        self.bits |= u64::from(value) << self.bit_count;
        self.bit_count += bits;
        if self.bit_count >= 32 {
            out.extend_from_slice(&(self.bits as u32).to_le_bytes());
            self.bits >>= 32;
            self.bit_count -= 32;
        }
    }
}

/// The pattern behind both tables of RFC 1951 §3.2.5: the first 2 × `steps` values have a symbol each; after that each
/// power of two is cut into `steps` symbols. Gives symbol, extra bits' value, number of extra bits.
fn logarithmic(value: u32, steps: u32) -> (u32, u32, u32) {
    if value < 2 * steps {
        return (value, 0, 0);
    }
    let bits = value.ilog2() - steps.ilog2();
    (steps * bits + (value >> bits), value & ((1 << bits) - 1), bits)
}

/// Length of the common beginning; `a` is at least as long as `b`.
fn common(a: &[u16], b: &[u16]) -> usize {
    // Eight symbols compare as fast as one.
    let eights =
        a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0).take_while(|(a, b)| a == b).count() * 8;
    eights + a[eights..].iter().zip(&b[eights..]).take_while(|(a, b)| a == b).count()
}

fn hash(symbols: &[u16]) -> usize {
    let key = u32::from(symbols[0]) << 16 ^ u32::from(symbols[1]) << 8 ^ u32::from(symbols[2]);
    (key.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::Decompressor;
    use crate::dictionary;
    use crate::{Limits, Misbehaviour, Version};

    /// RFC 1951 §3.2.5: all lengths, and distances around every change of symbol, through the decoder.
    #[test]
    fn every_length_and_distance_has_its_code() {
        let text: Vec<u8> = (0..40_000_u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
        let near = |d: usize| [d.saturating_sub(1), d, d + 1];
        let distances: Vec<usize> = (0..16)
            .flat_map(|bit| [near(1 << bit), near(3 << bit >> 1)])
            .flatten()
            .filter(|d| *d > 0)
            .collect();
        for len in MIN_MATCH..=MAX_MATCH {
            for distance in distances.iter().filter(|d| **d <= 32_768) {
                if len > MIN_MATCH && len < MAX_MATCH && distance % 5 != len % 5 {
                    continue; // a fifth of the square, and all of its edge
                }
                let mut deflater = Deflater::new(&dictionary::V3, 15);
                let mut out = Vec::new();
                deflater.begin(&mut out);
                text.iter().for_each(|b| deflater.literal(*b, &mut out));
                deflater.copy(len, *distance, &mut out);
                deflater.end(&mut out);
                let mut decompressor = Decompressor::new(Version::V3);
                let read = decompressor.inflate(&out, &Limits::default()).unwrap();
                let expected: Vec<u8> =
                    text[text.len() - distance..].iter().cycle().take(len).copied().collect();
                assert_eq!(read[text.len()..], expected, "length {len}, distance {distance}");
            }
        }
    }

    #[test]
    fn a_distance_to_before_the_dictionary_is_the_peers_error() {
        let mut deflater = Deflater::new(&dictionary::V3, 15);
        let mut out = Vec::new();
        deflater.begin(&mut out);
        deflater.copy(3, 1_424, &mut out);
        deflater.end(&mut out);
        let read = Decompressor::new(Version::V3).inflate(&out, &Limits::default());
        assert_eq!(read, Err(Misbehaviour::BadCompression));
    }
}
