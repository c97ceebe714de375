//! Bytes in flight.
//!
//! The engines work on real bytes: heads, frame headers, header blocks. A *body* is different: nobody between the
//! origin and the page looks inside it, so in the virtual world it travels as a range of a numbered source and
//! costs the same whether it is one byte or ten megabytes. In the live world every chunk is bytes.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

/// A piece of a byte stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Chunk {
    /// Bytes that somebody will look at, or that came from a socket.
    Bytes(Bytes),
    /// Bytes that nobody looks at: a part of a body.
    Body(BodyRange),
}

/// `len` bytes of the body `source`, from `start`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BodyRange {
    /// Which body. The world that makes the range gives the number its meaning; in a page load it is the
    /// resource's index.
    pub source: u32,
    /// Offset of the first byte.
    pub start: u64,
    /// Number of bytes.
    pub len: u64,
}

impl BodyRange {
    /// The source of bytes that stand for nothing but their length: ciphertext overhead, certificates, padding.
    pub const FILLER: u32 = u32::MAX;

    /// `len` bytes that stand for nothing but their length.
    pub const fn filler(len: u64) -> Self {
        Self { source: Self::FILLER, start: 0, len }
    }
}

impl Chunk {
    /// Number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Chunk::Bytes(b) => b.len() as u64,
            Chunk::Body(r) => r.len,
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the first `n` bytes away and returns them.
    ///
    /// # Panics
    /// If `n` exceeds the length: the caller's own arithmetic is wrong.
    pub fn split_to(&mut self, n: u64) -> Chunk {
        assert!(n <= self.len(), "split_to({n}) of a chunk of {}", self.len());
        match self {
            Chunk::Bytes(b) => Chunk::Bytes(b.split_to(n as usize)),
            Chunk::Body(r) => {
                let head = BodyRange { len: n, ..*r };
                r.start += n;
                r.len -= n;
                Chunk::Body(head)
            }
        }
    }
}

impl From<Bytes> for Chunk {
    fn from(b: Bytes) -> Self {
        Chunk::Bytes(b)
    }
}

impl From<Vec<u8>> for Chunk {
    fn from(b: Vec<u8>) -> Self {
        Chunk::Bytes(b.into())
    }
}

impl From<BodyRange> for Chunk {
    fn from(r: BodyRange) -> Self {
        Chunk::Body(r)
    }
}

/// A first-in, first-out stream of chunks.
#[derive(Clone, Default, Debug)]
pub struct ChunkQueue {
    chunks: VecDeque<Chunk>,
    len: u64,
}

impl ChunkQueue {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of bytes queued.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a chunk; an empty one is dropped, and a range that continues the last one is merged with it.
    pub fn push(&mut self, chunk: Chunk) {
        if chunk.is_empty() {
            return;
        }
        self.len += chunk.len();
        if let (Some(Chunk::Body(last)), Chunk::Body(next)) = (self.chunks.back_mut(), &chunk)
            && last.source == next.source
            && (last.start + last.len == next.start || last.source == BodyRange::FILLER)
        {
            last.len += next.len;
            return;
        }
        self.chunks.push_back(chunk);
    }

    /// Takes at most `max` bytes from the front, in one piece: the whole first chunk or a part of it. `None` when
    /// nothing is queued or `max` is 0.
    pub fn pop(&mut self, max: u64) -> Option<Chunk> {
        if max == 0 {
            return None;
        }
        let first = self.chunks.front_mut()?;
        let out = if first.len() <= max { self.chunks.pop_front()? } else { first.split_to(max) };
        self.len -= out.len();
        Some(out)
    }

    /// Whether the first byte queued belongs to a body range, which nobody may look into.
    pub fn starts_with_body(&self) -> bool {
        matches!(self.chunks.front(), Some(Chunk::Body(_)))
    }

    /// Copies the first `N` bytes without taking them; `None` if fewer are queued or one of them belongs to a body.
    pub fn peek<const N: usize>(&self) -> Option<[u8; N]> {
        let mut out = [0; N];
        let mut filled = 0;
        for chunk in &self.chunks {
            if filled == N {
                break;
            }
            let Chunk::Bytes(b) = chunk else { return None };
            let n = b.len().min(N - filled);
            out[filled..filled + n].copy_from_slice(&b[..n]);
            filled += n;
        }
        (filled == N).then_some(out)
    }

    /// Copies the first bytes into all of `out` and takes them; false, and nothing taken, if fewer are queued or one of
    /// them belongs to a body. For a few bytes this is cheaper than a shared piece.
    pub fn take_into(&mut self, out: &mut [u8]) -> bool {
        match self.chunks.front_mut() {
            Some(Chunk::Bytes(first)) if first.len() > out.len() => {
                first.copy_to_slice(out);
                self.len -= out.len() as u64;
                true
            }
            _ => match self.take_bytes(out.len()) {
                Some(bytes) => {
                    out.copy_from_slice(&bytes);
                    true
                }
                None => false,
            },
        }
    }

    /// Takes the first `n` bytes as contiguous bytes, without a copy when one chunk holds them all; `None`, and
    /// nothing taken, if fewer are queued or one of them belongs to a body.
    pub fn take_bytes(&mut self, n: usize) -> Option<Bytes> {
        if n == 0 {
            return Some(Bytes::new());
        }
        if self.len < n as u64 {
            return None;
        }
        if let Some(Chunk::Bytes(first)) = self.chunks.front_mut()
            && first.len() > n
        {
            self.len -= n as u64;
            return Some(first.split_to(n));
        }
        let mut need = n;
        for chunk in &self.chunks {
            let Chunk::Bytes(b) = chunk else { return None };
            need = need.saturating_sub(b.len());
            if need == 0 {
                break;
            }
        }
        if let Some(Chunk::Bytes(first)) = self.chunks.front()
            && first.len() == n
        {
            self.len -= n as u64;
            let Some(Chunk::Bytes(b)) = self.chunks.pop_front() else { unreachable!("just seen") };
            return Some(b);
        }
        let mut out = BytesMut::with_capacity(n);
        while out.len() < n {
            let Some(Chunk::Bytes(b)) = self.chunks.front_mut() else { unreachable!("checked above") };
            let take = b.len().min(n - out.len());
            out.extend_from_slice(&b[..take]);
            b.advance(take);
            if b.is_empty() {
                self.chunks.pop_front();
            }
        }
        self.len -= n as u64;
        Some(out.freeze())
    }

    /// Forgets everything queued.
    pub fn clear(&mut self) {
        self.chunks.clear();
        self.len = 0;
    }

    /// The queued chunks from the front.
    pub fn iter(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter()
    }
}

impl Extend<Chunk> for ChunkQueue {
    fn extend<T: IntoIterator<Item = Chunk>>(&mut self, chunks: T) {
        for chunk in chunks {
            self.push(chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(s: &'static str) -> Chunk {
        Chunk::Bytes(Bytes::from_static(s.as_bytes()))
    }

    #[test]
    fn bytes_are_copied_out_whole_or_not_at_all() {
        let mut q = ChunkQueue::new();
        q.extend([bytes("abc"), bytes("def"), BodyRange { source: 1, start: 0, len: 9 }.into()]);
        let mut two = [0; 2];
        assert!(q.take_into(&mut two) && two == *b"ab" && q.len() == 13);
        assert!(q.take_into(&mut two) && two == *b"cd" && q.len() == 11);
        assert!(!q.take_into(&mut [0; 3]) && q.len() == 11, "the third is a body's");
        assert!(q.take_into(&mut two) && two == *b"ef" && q.starts_with_body());
        assert!(!q.take_into(&mut two) && q.len() == 9);
        assert!(q.take_into(&mut []) && !ChunkQueue::new().take_into(&mut two));
    }

    #[test]
    fn bytes_are_taken_across_chunks_and_never_out_of_a_body() {
        let mut q = ChunkQueue::new();
        q.extend([bytes("ab"), bytes("cde"), BodyRange { source: 1, start: 0, len: 9 }.into()]);
        assert_eq!(q.len(), 14);
        assert_eq!(q.peek::<4>(), Some(*b"abcd"));
        assert_eq!(q.peek::<6>(), None);
        assert_eq!(q.take_bytes(6), None);
        assert_eq!(q.len(), 14, "a refused take leaves the queue as it was");
        assert_eq!(q.take_bytes(4).unwrap(), "abcd");
        assert_eq!(q.take_bytes(1).unwrap(), "e");
        assert!(q.starts_with_body());
        assert_eq!(q.take_bytes(1), None);
        assert_eq!(q.pop(4), Some(BodyRange { source: 1, start: 0, len: 4 }.into()));
        assert_eq!(q.pop(100), Some(BodyRange { source: 1, start: 4, len: 5 }.into()));
        assert!(q.is_empty());
        assert_eq!(q.pop(1), None);
    }

    #[test]
    fn ranges_that_follow_one_another_merge() {
        let mut q = ChunkQueue::new();
        q.push(BodyRange { source: 3, start: 0, len: 5 }.into());
        q.push(BodyRange { source: 3, start: 5, len: 5 }.into());
        q.push(BodyRange { source: 3, start: 11, len: 5 }.into());
        assert_eq!(q.iter().count(), 2);
        assert_eq!(q.len(), 15);
    }

    #[test]
    #[should_panic(expected = "split_to(3)")]
    fn splitting_past_the_end_is_the_callers_fault() {
        bytes("ab").split_to(3);
    }
}
