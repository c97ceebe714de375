//! A tap at both ends of every connection: which segments left, when they arrived, and what they carried.
//!
//! It stands outside of what it looks at. What a segment carries it reads from the stream's bytes, as they are handed to TCP
//! ([`dissect`]), and from the segment's own numbers; no engine is asked. A load without it does nothing more than look whether it is there.

mod dissect;

use base::{Chunk, Instant};
use load::{Packet, Setup, Sighting, Wire};

use crate::queue::Side;
use dissect::Stream;

/// What was seen so far.
#[derive(Default)]
pub(crate) struct Tap {
    packets: Vec<Packet>,
    /// Both streams of each connection that has written something.
    streams: Vec<Option<[Stream; 2]>>,
    /// The bytes and the order of things, if they were asked for.
    wire: Option<Wire>,
}

/// What its streams have, of a connection.
#[derive(Clone, Copy)]
pub(crate) struct Speaks {
    /// Under TLS, and whether that is TLS 1.3.
    pub tls13: Option<bool>,
    pub spdy: bool,
}

impl Tap {
    /// A tap, if the setup wants one.
    pub fn of(setup: &Setup) -> Option<Self> {
        let wire = setup.keeps_bytes.then(Wire::default);
        (setup.keeps_packets || setup.keeps_bytes).then(|| Self { wire, ..Self::default() })
    }

    /// An end of a connection hands bytes to TCP.
    pub fn wrote(&mut self, connection: u32, side: Side, speaks: Speaks, chunk: &Chunk) {
        let index = connection as usize;
        if self.streams.len() <= index {
            self.streams.resize_with(index + 1, || None);
        }
        let streams =
            self.streams[index].get_or_insert_with(|| [true, false].map(|up| Stream::new(up, speaks)));
        streams[side as usize].feed(chunk);
        if let Some(wire) = &mut self.wire {
            wire.streams.resize_with(wire.streams.len().max(index + 1), Default::default);
            wire.streams[index][side as usize].push(chunk.clone());
        }
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
        let number = self.packets.len() as u32 - 1;
        self.saw(Sighting::Left(number));
        number
    }

    /// A segment has reached the other end.
    pub fn arrived(&mut self, at: Instant, number: u32) {
        self.packets[number as usize].arrived = Some(at);
        self.saw(Sighting::Arrived(number));
    }

    /// Something happens that is told in its order.
    pub fn saw(&mut self, sighting: Sighting) {
        if let Some(wire) = &mut self.wire {
            wire.sightings.push(sighting);
        }
    }

    /// What was seen, in the order in which it left; and its bytes.
    pub fn into_parts(self) -> (Vec<Packet>, Option<Wire>) {
        (self.packets, self.wire)
    }
}
