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
            corked: false,
        }
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
            while self.pending.len() < PIECE {
                let before = self.pending.len();
                next(PIECE - before, &mut self.pending);
                if self.pending.len() == before {
                    break;
                }
            }
            if self.pending.is_empty() {
                self.cork(false);
                return Ok(Written::All);
            }
            // More will follow: a piece must not end in a short segment.
            if self.pending.len() >= PIECE {
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
