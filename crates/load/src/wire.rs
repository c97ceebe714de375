//! What the packets of a load had in them, and the order in which either end saw them: what a capture file is made of.

use std::net::IpAddr;
use std::ops::Range;

use base::{Chunk, Instant};
use client::Family;

/// What crossed between the client and its servers.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Wire {
    /// What was written on each connection: by the client, and by the server. Those that wrote nothing may be missing at the end.
    pub streams: Vec<[Stream; 2]>,
    /// What was seen, in the order in which it happened: causes before effects where both are of one moment.
    pub sightings: Vec<Sighting>,
}

/// A packet passes an end of its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sighting {
    /// A segment leaves its sender; an index into [`Load::packets`](crate::Load::packets).
    Left(u32),
    /// A segment has reached its receiver; an index into the same.
    Arrived(u32),
    /// The client sends a question for the name of a host of the [furnished](crate::Setup::furnish) page.
    Question {
        /// When.
        at: Instant,
        /// The host.
        host: u32,
        /// What it asks for.
        family: Family,
    },
    /// Its answer reaches the client.
    Answer {
        /// When.
        at: Instant,
        /// The host.
        host: u32,
        /// What was asked for.
        family: Family,
        /// What it says; `None` if that there is none.
        address: Option<IpAddr>,
    },
}

/// What one end of a connection has written to its TCP.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Stream {
    /// With the offset of each.
    chunks: Vec<(u64, Chunk)>,
    len: u64,
}

impl Stream {
    /// Appends what was written.
    pub fn push(&mut self, chunk: Chunk) {
        let from = self.len;
        self.len += chunk.len();
        self.chunks.push((from, chunk));
    }

    /// Bytes written.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing was.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of `range`, as far as they were written, each piece with its offset in the stream.
    pub fn range(&self, range: Range<u64>) -> impl Iterator<Item = (u64, Chunk)> {
        let first = self.chunks.partition_point(|(from, chunk)| from + chunk.len() <= range.start);
        self.chunks[first..].iter().take_while(move |(from, _)| *from < range.end).map(
            move |(from, chunk)| {
                let start = range.start.max(*from);
                let end = range.end.min(from + chunk.len());
                let mut chunk = chunk.clone();
                chunk.split_to(start - from);
                (start, chunk.split_to(end - start))
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use base::BodyRange;

    use super::*;

    #[test]
    fn a_range_is_cut_out_of_the_pieces_it_lies_in() {
        let bytes = |text: &str| Chunk::from(text.as_bytes().to_vec());
        let mut stream = Stream::default();
        stream.push(bytes("head"));
        stream.push(BodyRange { source: 3, start: 10, len: 100 }.into());
        stream.push(bytes("tail"));
        let all: Vec<_> = stream.range(2..106).collect();
        let body = |start, len| Chunk::Body(BodyRange { source: 3, start, len });
        assert_eq!(all, [(2, bytes("ad")), (4, body(10, 100)), (104, bytes("ta"))]);
        assert_eq!(stream.range(50..60).collect::<Vec<_>>(), [(50, body(56, 10))]);
        assert_eq!(stream.range(107..900).collect::<Vec<_>>(), [(107, bytes("l"))]);
        assert_eq!((stream.range(108..109).count(), stream.range(4..4).count(), stream.len()), (0, 0, 108));
    }
}
