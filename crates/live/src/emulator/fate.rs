//! What becomes of single flows at the far end, beyond what the link does to all packets: a server that refuses a connection, or one
//! that is heard of no more.
//!
//! A flow is known by its addresses and ports, so that one connection of a host can be refused and the next not. What is to become of
//! it must be said before its first packet is sent. The emulator looks where the far end is: behind the link and the way to the server
//! for packets that go up, before both for those that come down.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use base::Instant;

use super::Direction;
use super::packet::{Addresses, Packet, transport};
use crate::namespace::HEADER;

/// A TCP connection by the addresses and ports of its ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Flow {
    /// At the near end.
    pub near: SocketAddr,
    /// At the far end.
    pub far: SocketAddr,
}

/// What becomes of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Fate {
    /// Each of its segments is answered with a RST, as by a host where nobody listens on the port (RFC 9293 §3.10.7.1).
    pub refused: bool,
    /// From this moment of the emulator's [clock](super::Handle::clock) on nothing of it reaches its server and nothing comes from there:
    /// what has not left the link by then is lost, and what has not entered it.
    pub gone: Option<Instant>,
}

/// The fates of all flows that have one.
#[derive(Debug, Default)]
pub(super) struct Fates {
    any: AtomicBool,
    flows: Mutex<BTreeMap<Flow, Fate>>,
}

impl Fates {
    pub fn set(&self, flow: Flow, fate: Fate) {
        self.flows.lock().unwrap_or_else(|e| e.into_inner()).insert(flow, fate);
        self.any.store(true, Ordering::SeqCst);
    }

    /// What becomes of a packet's flow.
    fn of(&self, packet: &Packet, direction: Direction) -> Fate {
        if !self.any.load(Ordering::SeqCst) {
            return Fate::default();
        }
        let flow = flow(&packet.addresses(), direction);
        let flows = self.flows.lock().unwrap_or_else(|e| e.into_inner());
        flow.and_then(|flow| flows.get(&flow).copied()).unwrap_or_default()
    }

    /// Whether the packet's server is gone when the packet is between it and the link, at `at`.
    pub fn is_gone(&self, packet: &Packet, direction: Direction, at: Instant) -> bool {
        self.of(packet, direction).gone.is_some_and(|gone| gone <= at)
    }

    /// Whether a packet that has come to the far end is not taken there.
    pub fn is_refused(&self, packet: &Packet) -> bool {
        self.of(packet, Direction::Up).refused
    }
}

/// The flow of a packet of TCP.
fn flow(addresses: &Addresses, direction: Direction) -> Option<Flow> {
    let Addresses { protocol: TCP, from, to, from_port, to_port } = *addresses else { return None };
    let (from, to) = (SocketAddr::new(from, from_port), SocketAddr::new(to, to_port));
    Some(match direction {
        Direction::Up => Flow { near: from, far: to },
        Direction::Down => Flow { near: to, far: from },
    })
}

/// TCP's number in IP's header.
const TCP: u8 = 6;

/// Bytes of the headers of IPv4, IPv6 and TCP without options.
const V4_LEN: usize = 20;
const V6_LEN: usize = 40;
const TCP_LEN: usize = 20;

/// Hops that a packet may make (RFC 1700, "IP time to live").
const HOPS: u8 = 64;

/// Bits of TCP's header (RFC 9293 §3.1).
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// What a host answers to a segment of a connection that it knows nothing of, as a device takes it (RFC 9293 §3.10.7.1); nothing to a RST,
/// and to what is no TCP.
///
/// "If the ACK bit is off, sequence number zero is used, `<SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>`. If the ACK bit is on,
/// `<SEQ=SEG.ACK><CTL=RST>`."
pub(super) fn reset(packet: &Packet) -> Option<Vec<u8>> {
    let ip = packet.ip();
    let (protocol, at) = transport(ip)?;
    let is_v4 = ip[0] >> 4 == 4;
    let length = |at: usize| usize::from(u16::from_be_bytes([ip[at], ip[at + 1]]));
    let total = if is_v4 { length(2) } else { V6_LEN + length(4) };
    let tcp = ip.get(at..total).filter(|tcp| protocol == TCP && tcp.len() >= TCP_LEN)?;
    let (flags, number) =
        (tcp[13], |at: usize| u32::from_be_bytes([tcp[at], tcp[at + 1], tcp[at + 2], tcp[at + 3]]));
    if flags & RST != 0 {
        return None;
    }
    let payload = tcp.len().checked_sub(usize::from(tcp[12] >> 4) * 4)? as u32;
    let len = payload + u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
    let (seq, ack, control) = match flags & ACK {
        0 => (0, number(4).wrapping_add(len), RST | ACK),
        _ => (number(8), 0, RST),
    };
    let (mut head, addresses) = if is_v4 { back_v4(ip) } else { back_v6(ip) };
    let mut body = [0; TCP_LEN];
    body[..2].copy_from_slice(&tcp[2..4]);
    body[2..4].copy_from_slice(&tcp[..2]);
    body[4..8].copy_from_slice(&seq.to_be_bytes());
    body[8..12].copy_from_slice(&ack.to_be_bytes());
    body[12..14].copy_from_slice(&[(TCP_LEN as u8 / 4) << 4, control]);
    // The pseudo header, of which the zeros count for nothing: addresses, the protocol, the length of the segment (RFC 9293 §3.1, RFC
    // 8200 §8.1).
    let pseudo = [0, TCP, 0, TCP_LEN as u8];
    let check = !sum(&[&head[addresses], &pseudo, &body]);
    body[16..18].copy_from_slice(&check.to_be_bytes());
    head.extend_from_slice(&body);
    Some([&[0; HEADER][..], &head].concat())
}

/// The header of a packet back to where one of IPv4 came from, with TCP's header alone; and where in it the addresses are.
fn back_v4(ip: &[u8]) -> (Vec<u8>, std::ops::Range<usize>) {
    let mut head = vec![0; V4_LEN];
    head[0] = 0x45;
    head[2..4].copy_from_slice(&((V4_LEN + TCP_LEN) as u16).to_be_bytes());
    head[6] = 0x40; // it must not be cut
    head[8..10].copy_from_slice(&[HOPS, TCP]);
    head[12..16].copy_from_slice(&ip[16..20]);
    head[16..20].copy_from_slice(&ip[12..16]);
    let sum = !sum(&[&head]);
    head[10..12].copy_from_slice(&sum.to_be_bytes());
    (head, 12..20)
}

/// The same of IPv6.
fn back_v6(ip: &[u8]) -> (Vec<u8>, std::ops::Range<usize>) {
    let mut head = vec![0; V6_LEN];
    head[0] = 0x60;
    head[4..6].copy_from_slice(&(TCP_LEN as u16).to_be_bytes());
    head[6..8].copy_from_slice(&[TCP, HOPS]);
    head[8..24].copy_from_slice(&ip[24..40]);
    head[24..40].copy_from_slice(&ip[8..24]);
    (head, 8..40)
}

/// The sum of RFC 1071 over pieces of even length.
fn sum(pieces: &[&[u8]]) -> u16 {
    let words = pieces.iter().flat_map(|piece| piece.chunks_exact(2));
    let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (folded + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends, of one family and of the other.
    fn ends() -> [(SocketAddr, SocketAddr); 2] {
        let read = |(near, far): (&str, &str)| (near.parse().unwrap(), far.parse().unwrap());
        [("100.64.0.2:40000", "100.66.0.7:80"), ("[2001:db8:ffff::2]:40000", "[2001:db8::7]:80")].map(read)
    }

    /// A segment as a device gives it.
    fn segment(from: SocketAddr, to: SocketAddr, flags: u8, payload: usize) -> Packet {
        let tcp_len = TCP_LEN + payload;
        let mut ip = match (from, to) {
            (SocketAddr::V4(from), SocketAddr::V4(to)) => {
                let mut ip = vec![0; V4_LEN];
                (ip[0], ip[9]) = (0x45, TCP);
                ip[2..4].copy_from_slice(&((V4_LEN + tcp_len) as u16).to_be_bytes());
                ip[12..16].copy_from_slice(&from.ip().octets());
                ip[16..20].copy_from_slice(&to.ip().octets());
                ip
            }
            (SocketAddr::V6(from), SocketAddr::V6(to)) => {
                let mut ip = vec![0; V6_LEN];
                (ip[0], ip[6]) = (0x60, TCP);
                ip[4..6].copy_from_slice(&(tcp_len as u16).to_be_bytes());
                ip[8..24].copy_from_slice(&from.ip().octets());
                ip[24..40].copy_from_slice(&to.ip().octets());
                ip
            }
            _ => panic!("ends of one family"),
        };
        let mut tcp = vec![0; tcp_len];
        tcp[..2].copy_from_slice(&from.port().to_be_bytes());
        tcp[2..4].copy_from_slice(&to.port().to_be_bytes());
        tcp[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
        tcp[8..12].copy_from_slice(&77u32.to_be_bytes());
        (tcp[12], tcp[13]) = (5 << 4, flags);
        ip.extend_from_slice(&tcp);
        of_ip(&ip)
    }

    fn of_ip(ip: &[u8]) -> Packet {
        let data = [&[0; HEADER][..], ip].concat();
        let len = data.len();
        Packet::new(data.into(), len, 0, Instant::ZERO)
    }

    /// What the answer has, the same over either family: sequence number, acknowledgement, bits.
    fn answer(flags: u8, payload: usize) -> Option<(u32, u32, u8)> {
        let answers = ends().map(|(near, far)| {
            let packet = of_ip(&reset(&segment(near, far, flags, payload))?[HEADER..]);
            assert_eq!(flow(&packet.addresses(), Direction::Down), Some(Flow { near, far }));
            let ip = packet.ip();
            let (addresses, len) = if near.is_ipv4() { (12..20, V4_LEN) } else { (8..40, V6_LEN) };
            let (head, body) = ip.split_at(len);
            assert_eq!(body.len(), TCP_LEN);
            if near.is_ipv4() {
                assert_eq!(sum(&[head]), 0xffff, "what is summed with its checksum gives all ones");
                assert_eq!(usize::from(head[3]), ip.len());
            } else {
                assert_eq!(usize::from(head[5]), body.len());
            }
            assert_eq!(sum(&[&head[addresses], &[0, TCP, 0, TCP_LEN as u8], body]), 0xffff);
            let number = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().unwrap());
            Some((number(4), number(8), body[13]))
        });
        assert_eq!(answers[0], answers[1]);
        answers[0]
    }

    /// RFC 9293 §3.10.7.1, with sequence numbers that wrap.
    #[test]
    fn who_does_not_listen_answers_a_segment_with_a_reset_that_is_taken() {
        assert_eq!(answer(SYN, 0), Some((0, 0, RST | ACK)));
        assert_eq!(answer(SYN, 100), Some((0, 100, RST | ACK)), "data on a SYN");
        assert_eq!(answer(SYN | ACK, 0), Some((77, 0, RST)));
        assert_eq!(answer(FIN | ACK, 5), Some((77, 0, RST)));
        assert_eq!(answer(RST, 0), None);
        assert_eq!(answer(RST | ACK, 0), None);
    }

    #[test]
    fn what_is_no_tcp_is_not_answered_however_it_is_cut() {
        // The family and the protocol are other ones, and lengths that there are not.
        let v4 = [(0, 0x65), (9, 17), (0, 0x4f), (32, 0xf0), (2, 0xff)];
        let v6 = [(0, 0x45), (6, 17), (6, 0), (52, 0xf0), (4, 0xff)];
        for ((near, far), changes) in ends().into_iter().zip([v4, v6]) {
            let syn = segment(near, far, SYN, 0);
            let ip = syn.ip();
            (0..ip.len()).for_each(|len| assert_eq!(reset(&of_ip(&ip[..len])), None));
            for (at, value) in changes {
                let mut ip = ip.to_vec();
                ip[at] = value;
                assert_eq!(reset(&of_ip(&ip)), None, "{at}");
            }
        }
    }

    #[test]
    fn a_fate_is_that_of_one_flow_both_ways_and_from_its_moment_on() {
        for (near, far) in ends() {
            let (fates, at) = (Fates::default(), Instant::from_nanos(5));
            let (up, down) = (segment(near, far, SYN, 0), segment(far, near, SYN | ACK, 0));
            assert!(!fates.is_refused(&up) && !fates.is_gone(&up, Direction::Up, Instant::MAX));
            fates.set(Flow { near, far }, Fate { refused: true, gone: Some(at) });
            let before = Instant::from_nanos(4);
            for (packet, direction) in [(&up, Direction::Up), (&down, Direction::Down)] {
                assert!(fates.is_gone(packet, direction, at) && !fates.is_gone(packet, direction, before));
            }
            assert!(fates.is_refused(&up));
            let other = SocketAddr::new(near.ip(), near.port() + 1);
            assert!(!fates.is_refused(&segment(other, far, SYN, 0)));
        }
    }
}
