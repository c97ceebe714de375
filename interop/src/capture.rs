//! A capture file of a conversation whose bytes are known: what a packet analyser would have seen of it, written without
//! capturing, which needs privileges.
//!
//! Around the real payload TCP is made up: a handshake, segments of [`SEGMENT`] bytes in the order of the record, acknowledged at
//! once, and a FIN from either end. The file is written as those of `velodrome capture` are.

use std::net::SocketAddrV4;

use base::{Duration, Instant};
use lab::capture::pcap::{Segment, Writer};

/// Bytes of payload in a packet: frames cross packets, and packets hold several.
pub const SEGMENT: usize = 1_400;
/// Time between packets.
const STEP: Duration = Duration::from_millis(1);

/// A capture file being written.
#[derive(Debug)]
pub struct Capture {
    file: Writer<Vec<u8>>,
    now: Instant,
}

/// One end of a conversation.
struct End {
    address: SocketAddrV4,
    /// The sequence number of its next byte.
    next: u32,
}

impl Default for Capture {
    /// No packets yet.
    fn default() -> Self {
        Self { file: Writer::new(Vec::new()).expect("a vector takes every byte"), now: Instant::ZERO }
    }
}

impl Capture {
    /// Adds a connection from `client` to `server`: `true` marks what the client said.
    pub fn connection<'b>(
        &mut self,
        client: SocketAddrV4,
        server: SocketAddrV4,
        said: impl IntoIterator<Item = (bool, &'b [u8])>,
    ) {
        let mut ends = [End { address: client, next: 1_000 }, End { address: server, next: 2_000_000 }];
        let (syn, fin) =
            (Segment { syn: true, ..Segment::default() }, Segment { fin: true, ..Segment::default() });
        self.segment(&mut ends, 0, syn.clone(), &[]);
        self.acknowledge(&mut ends, 1, syn, &[]);
        self.acknowledge(&mut ends, 0, Segment::default(), &[]);
        for (up, bytes) in said {
            let from = usize::from(!up);
            for part in bytes.chunks(SEGMENT) {
                self.acknowledge(&mut ends, from, Segment { psh: true, ..Segment::default() }, part);
                self.acknowledge(&mut ends, 1 - from, Segment::default(), &[]);
            }
        }
        self.acknowledge(&mut ends, 0, fin.clone(), &[]);
        self.acknowledge(&mut ends, 1, fin, &[]);
        self.acknowledge(&mut ends, 0, Segment::default(), &[]);
    }

    /// The file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.file.into_inner()
    }

    fn acknowledge(&mut self, ends: &mut [End; 2], from: usize, segment: Segment, payload: &[u8]) {
        let ack = Some(ends[1 - from].next);
        self.segment(ends, from, Segment { ack, ..segment }, payload);
    }

    fn segment(&mut self, ends: &mut [End; 2], from: usize, segment: Segment, payload: &[u8]) {
        let segment = Segment { seq: ends[from].next, window: u16::MAX, ..segment };
        let [source, target] = [&ends[from], &ends[1 - from]].map(|end| end.address.into());
        let written = self.file.tcp(self.now, source, target, &segment, payload);
        written.expect("a vector takes every byte, and segments are short");
        self.now += STEP;
        ends[from].next += payload.len() as u32 + u32::from(segment.syn || segment.fin);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn every_byte_is_there_amid_segments_that_are_acknowledged() {
        let mut capture = Capture::default();
        let [client, server] = [40_000, 80].map(|port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
        capture.connection(client, server, [(true, &b"odd"[..]), (false, &[7; 3_000][..])]);
        let bytes = capture.into_bytes();
        let (mut at, mut payload, mut packets) = (24, 0, 0);
        while at < bytes.len() {
            let len = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
            payload += len - 40;
            packets += 1;
            at += 16 + len;
        }
        // Four segments, each acknowledged, between three packets of beginning and three of end.
        assert_eq!((payload, packets), (3_003, 14));
    }
}
