//! A capture file of a conversation whose bytes are known: what a packet analyser would have seen of it, written without
//! capturing, which needs privileges.
//!
//! The format is libpcap's (draft-ietf-opsawg-pcap, nanosecond timestamps, LINKTYPE_RAW: packets begin with their IPv4
//! header). Around the real payload TCP is made up: a handshake, segments of [`SEGMENT`] bytes in the order of the record,
//! acknowledged at once, and a FIN from either end.

use std::net::{Ipv4Addr, SocketAddrV4};

/// Bytes of payload in a packet: frames cross packets, and packets hold several.
pub const SEGMENT: usize = 1_400;
/// Time between packets, in nanoseconds.
const STEP_NS: u64 = 1_000_000;

const FIN: u8 = 1;
const SYN: u8 = 2;
const PSH: u8 = 8;
const ACK: u8 = 16;

/// A capture file being written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capture {
    file: Vec<u8>,
    packets: u64,
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
        let mut file = Vec::new();
        // Magic with nanoseconds, version 2.4, two reserved words, snapshot length, link type.
        for word in [0xa1b2_3c4d_u32, 2 | 4 << 16, 0, 0, 1 << 18, 101] {
            file.extend(word.to_le_bytes());
        }
        Self { file, packets: 0 }
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
        self.segment(&mut ends, 0, SYN, &[]);
        self.segment(&mut ends, 1, SYN | ACK, &[]);
        self.segment(&mut ends, 0, ACK, &[]);
        for (up, bytes) in said {
            let from = usize::from(!up);
            for part in bytes.chunks(SEGMENT) {
                self.segment(&mut ends, from, PSH | ACK, part);
                self.segment(&mut ends, 1 - from, ACK, &[]);
            }
        }
        self.segment(&mut ends, 0, FIN | ACK, &[]);
        self.segment(&mut ends, 1, FIN | ACK, &[]);
        self.segment(&mut ends, 0, ACK, &[]);
    }

    /// The file.
    pub fn bytes(&self) -> &[u8] {
        &self.file
    }

    /// The TCP header is RFC 9293 §3.1, IPv4's RFC 791 §3.1.
    fn segment(&mut self, ends: &mut [End; 2], from: usize, flags: u8, payload: &[u8]) {
        let [source, target] = [&ends[from], &ends[1 - from]];
        let (source_ip, target_ip) = (*source.address.ip(), *target.address.ip());
        let acknowledged = if flags & ACK == 0 { 0 } else { target.next };
        let mut tcp = Vec::with_capacity(20 + payload.len());
        tcp.extend(source.address.port().to_be_bytes());
        tcp.extend(target.address.port().to_be_bytes());
        tcp.extend(source.next.to_be_bytes());
        tcp.extend(acknowledged.to_be_bytes());
        tcp.extend([5 << 4, flags]);
        // The window; the checksum, which comes below; no urgent pointer.
        tcp.extend([0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend(payload);
        let sum = checksum(&pseudo_header(source_ip, target_ip, tcp.len() as u16), &tcp);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());

        let mut ip = vec![0x45, 0];
        ip.extend((20 + tcp.len() as u16).to_be_bytes());
        // No identification, do not fragment, 64 hops, TCP; the checksum, which comes below.
        ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        ip.extend(source_ip.octets());
        ip.extend(target_ip.octets());
        let sum = checksum(&ip, &[]);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        ip.extend(tcp);

        ends[from].next += payload.len() as u32 + u32::from(flags & (SYN | FIN) != 0);
        let at = self.packets * STEP_NS;
        self.packets += 1;
        for word in [at / 1_000_000_000, at % 1_000_000_000, ip.len() as u64, ip.len() as u64] {
            self.file.extend((word as u32).to_le_bytes());
        }
        self.file.extend(ip);
    }
}

/// What TCP's checksum covers besides TCP (RFC 9293 §3.1).
fn pseudo_header(source: Ipv4Addr, target: Ipv4Addr, len: u16) -> Vec<u8> {
    let mut header = Vec::from(source.octets());
    header.extend(target.octets());
    header.extend([0, 6]);
    header.extend(len.to_be_bytes());
    header
}

/// The Internet checksum (RFC 1071) of both together; the first has an even length.
fn checksum(first: &[u8], second: &[u8]) -> u16 {
    let words = first.chunks(2).chain(second.chunks(2));
    let sum: u32 = words.map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_summed_with_its_checksum_gives_zero() {
        let mut capture = Capture::default();
        let [client, server] = [40_000, 80].map(|port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
        capture.connection(client, server, [(true, &b"odd"[..]), (false, &[7; 3_000][..])]);
        let (mut at, mut payload, mut packets) = (24, 0, 0);
        while at < capture.bytes().len() {
            let len = u32::from_le_bytes(capture.bytes()[at + 8..at + 12].try_into().unwrap()) as usize;
            let packet = &capture.bytes()[at + 16..at + 16 + len];
            let (ip, tcp) = packet.split_at(20);
            assert_eq!(checksum(ip, &[]), 0);
            let pseudo = pseudo_header(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, tcp.len() as u16);
            assert_eq!(checksum(&pseudo, tcp), 0);
            payload += tcp.len() - 20;
            packets += 1;
            at += 16 + len;
        }
        // Four segments, each acknowledged, between three packets of beginning and three of end.
        assert_eq!((payload, packets), (3_003, 14));
    }
}
