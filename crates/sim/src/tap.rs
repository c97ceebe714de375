//! A tap at both ends of every connection: which segments left, when they arrived, and what they carried.
//!
//! It stands outside of what it looks at. What a segment carries it reads from the stream's bytes, as they are handed to TCP
//! ([`dissect`]), and from the segment's own numbers; no engine is asked. A load without it does nothing more than look whether it is there.

mod dissect;

use base::{Chunk, Instant};
use load::Packet;

use crate::queue::Side;
use dissect::Stream;

/// What was seen so far.
#[derive(Default)]
pub(crate) struct Tap {
    packets: Vec<Packet>,
    /// Both streams of each connection that has written something.
    streams: Vec<Option<[Stream; 2]>>,
}

/// What its streams have, of a connection.
#[derive(Clone, Copy)]
pub(crate) struct Speaks {
    /// Under TLS, and whether that is TLS 1.3.
    pub tls13: Option<bool>,
    pub spdy: bool,
}

impl Tap {
    /// An end of a connection hands bytes to TCP.
    pub fn wrote(&mut self, connection: u32, side: Side, speaks: Speaks, chunk: &Chunk) {
        let index = connection as usize;
        if self.streams.len() <= index {
            self.streams.resize_with(index + 1, || None);
        }
        let streams =
            self.streams[index].get_or_insert_with(|| [true, false].map(|up| Stream::new(up, speaks)));
        streams[side as usize].feed(chunk);
    }

    /// A segment leaves; its number here.
    pub fn left(&mut self, at: Instant, connection: u32, side: Side, segment: tcp::Segment) -> u32 {
        let up = side == Side::Client;
        let streams = self.streams.get(connection as usize).and_then(Option::as_ref);
        let carries = streams.map_or_else(Vec::new, |streams| {
            // The SYN is number 0, byte `i` of the stream number `1 + i`.
            let from = segment.seq.saturating_sub(1);
            streams[side as usize].carried(from, from + u64::from(segment.len))
        });
        self.packets.push(Packet { connection, up, left: at, arrived: None, segment, carries });
        self.packets.len() as u32 - 1
    }

    /// A segment has reached the other end.
    pub fn arrived(&mut self, at: Instant, number: u32) {
        self.packets[number as usize].arrived = Some(at);
    }

    /// What was seen, in the order in which it left.
    pub fn into_packets(self) -> Vec<Packet> {
        self.packets
    }
}
