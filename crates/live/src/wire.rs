//! Between an engine that gives chunks when asked and a stream that takes bytes when it can.

use std::io;

use bytes::{Buf, BytesMut};

use crate::Stream;
use crate::socket::cork;

/// Bytes asked of an engine at a time: one full TLS record, and no more than the kernel holds unsent.
const PIECE: usize = 16 * 1024;

/// How a [`Wire::write`] ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    /// All there was is with the kernel.
    All,
    /// The stream takes no more for now.
    Blocked,
    /// There may be more, and the stream may take it: write again when others had their turn.
    Share,
}

/// What went over a [`Wire`]: bytes above TLS, calls of the kernel or the TLS library.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WireStats {
    /// Bytes read.
    pub received: u64,
    /// Bytes written.
    pub sent: u64,
}

/// A stream with what it has been given and not yet taken.
#[derive(Debug)]
pub struct Wire {
    stream: Stream,
    /// Taken from the engine, not yet by the stream.
    pending: BytesMut,
    input: BytesMut,
    stats: WireStats,
    /// Bytes asked of the engine at a time, if all of them have to leave before it is asked again.
    chunk: Option<usize>,
    /// The kernel holds back what does not fill a segment.
    corked: bool,
}

impl Wire {
    /// Bytes written before other connections get their turn: some tens of microseconds' worth.
    pub const SHARE: u64 = 16 * PIECE as u64;

    /// A wire with nothing on it.
    pub fn new(stream: Stream) -> Self {
        Self {
            stream,
            pending: BytesMut::new(),
            input: BytesMut::new(),
            stats: WireStats::default(),
            chunk: None,
            corked: false,
        }
    }

    /// The same, but the engine is asked for so many bytes at once, and not again before all of them are with the kernel: as a proxy does
    /// that reads a buffer full and writes it.
    pub fn in_chunks(self, chunk: Option<u64>) -> Self {
        Self { chunk: chunk.map(|bytes| bytes as usize), ..self }
    }

    /// The stream below.
    pub fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// What went over it so far.
    pub fn stats(&self) -> WireStats {
        self.stats
    }

    /// Whether everything taken from the engine is with the kernel.
    pub fn is_flushed(&self) -> bool {
        self.pending.is_empty()
    }

    /// Writes until the stream takes no more, `next` has nothing left, or `share` bytes are written: what is left of the
    /// connection's [`SHARE`](Self::SHARE). `next` appends what it gives to the buffer, about as many bytes as it is told, and is asked
    /// as late as can be, so that priorities act on what has not left yet.
    pub fn write(&mut self, share: u64, mut next: impl FnMut(usize, &mut BytesMut)) -> io::Result<Written> {
        let end = self.stats.sent + share;
        while self.stats.sent < end {
            let piece = match self.chunk {
                Some(_) if !self.pending.is_empty() => 0,
                Some(chunk) => chunk,
                None => PIECE,
            };
            while self.pending.len() < piece {
                let before = self.pending.len();
                next(piece - before, &mut self.pending);
                if self.pending.len() == before {
                    break;
                }
            }
            if self.pending.is_empty() {
                self.cork(false);
                return Ok(Written::All);
            }
            // More will follow: neither a piece nor a record must end in a short segment.
            if self.pending.len() >= PIECE || self.pending.len() > self.stream.record() {
                self.cork(true);
            }
            match self.stream.write(&self.pending) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    self.stats.sent += n as u64;
                    self.pending.advance(n);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Written::Blocked),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Written::Share)
    }

    fn cork(&mut self, on: bool) {
        // Where there is no cork, segments are shorter, and that is all.
        if self.corked != on && cork(self.stream.tcp(), on).is_ok() {
            self.corked = on;
        }
    }

    /// Reads once. `None` when there is nothing yet; empty at the end.
    pub fn read(&mut self) -> io::Result<Option<bytes::Bytes>> {
        if self.input.len() < PIECE {
            self.input.resize(4 * PIECE, 0);
        }
        loop {
            match self.stream.read(&mut self.input) {
                Ok(n) => {
                    self.stats.received += n as u64;
                    return Ok(Some(self.input.split_to(n).freeze()));
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mio::net::TcpStream;

    use super::*;

    /// What an engine that has always more is asked for, with how much it had given that is not with the kernel.
    fn asked(chunk: Option<u64>) -> Vec<(usize, usize)> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let near = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        near.set_nonblocking(true).unwrap();
        let mut wire = Wire::new(Stream::Clear(TcpStream::from_std(near))).in_chunks(chunk);
        let mut asked = Vec::new();
        wire.write(100_000, |max, out| {
            asked.push((max, out.len()));
            out.resize(out.len() + max, 0);
        })
        .unwrap();
        asked
    }

    #[test]
    fn a_chunk_is_asked_for_when_all_of_the_last_has_left() {
        let chunks = asked(Some(40_960));
        assert!(!chunks.is_empty() && chunks.iter().all(|asked| *asked == (40_960, 0)), "{chunks:?}");
        let pieces = asked(None);
        assert!(pieces.iter().all(|(max, held)| max + held == PIECE), "{pieces:?}");
    }
}
