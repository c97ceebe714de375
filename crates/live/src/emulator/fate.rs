//! What becomes of single flows at the far end, beyond what the link does to all packets: a server that refuses a connection, or one
//! that is heard of no more.
//!
//! A flow is known by its addresses and ports, so that one connection of a host can be refused and the next not. What is to become of
//! it must be said before its first packet is sent. The emulator looks where the far end is: behind the link and the way to the server
//! for packets that go up, before both for those that come down.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddrV4};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use base::Instant;

use super::Direction;
use super::packet::{Addresses, Packet};
use crate::namespace::HEADER;

/// A TCP connection by the addresses and ports of its ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Flow {
    /// At the near end.
    pub near: SocketAddrV4,
    /// At the far end.
    pub far: SocketAddrV4,
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

/// The flow of a packet of TCP over IPv4.
fn flow(addresses: &Addresses, direction: Direction) -> Option<Flow> {
    let Addresses { protocol: TCP, from: IpAddr::V4(from), to: IpAddr::V4(to), .. } = *addresses else {
        return None;
    };
    let from = SocketAddrV4::new(from, addresses.from_port);
    let to = SocketAddrV4::new(to, addresses.to_port);
    Some(match direction {
        Direction::Up => Flow { near: from, far: to },
        Direction::Down => Flow { near: to, far: from },
    })
}

/// TCP's number in IP's header.
const TCP: u8 = 6;

/// Bytes of IPv4's and of TCP's header without options.
const IP_LEN: usize = 20;
const TCP_LEN: usize = 20;

/// Bits of TCP's header (RFC 9293 §3.1).
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// What a host answers to a segment of a connection that it knows nothing of, as a device takes it (RFC 9293 §3.10.7.1); nothing to a RST,
/// and to what is no TCP over IPv4.
///
/// "If the ACK bit is off, sequence number zero is used, `<SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>`. If the ACK bit is on,
/// `<SEQ=SEG.ACK><CTL=RST>`."
pub(super) fn reset(packet: &Packet) -> Option<Vec<u8>> {
    let ip = packet.ip();
    let is_tcp = ip.first().is_some_and(|first| first >> 4 == 4) && ip.get(9) == Some(&TCP);
    let ip_len = usize::from(ip.first()? & 0x0f) * 4;
    let total = usize::from(u16::from_be_bytes([*ip.get(2)?, *ip.get(3)?]));
    let tcp = ip.get(ip_len..total).filter(|tcp| is_tcp && tcp.len() >= TCP_LEN)?;
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
    let mut answer = vec![0; HEADER + IP_LEN + TCP_LEN];
    let (head, body) = answer[HEADER..].split_at_mut(IP_LEN);
    head[..2].copy_from_slice(&[0x45, 0]);
    head[2..4].copy_from_slice(&((IP_LEN + TCP_LEN) as u16).to_be_bytes());
    head[6] = 0x40; // it must not be cut
    head[8..10].copy_from_slice(&[64, TCP]);
    head[12..16].copy_from_slice(&ip[16..20]);
    head[16..20].copy_from_slice(&ip[12..16]);
    body[..2].copy_from_slice(&tcp[2..4]);
    body[2..4].copy_from_slice(&tcp[..2]);
    body[4..8].copy_from_slice(&seq.to_be_bytes());
    body[8..12].copy_from_slice(&ack.to_be_bytes());
    body[12..14].copy_from_slice(&[(TCP_LEN as u8 / 4) << 4, control]);
    let sum = !sum(&[head]);
    head[10..12].copy_from_slice(&sum.to_be_bytes());
    // The pseudo header (RFC 9293 §3.1): addresses, a zero, the protocol, the length of the segment.
    let pseudo = [0, TCP, 0, TCP_LEN as u8];
    let check = !self::sum(&[&head[12..20], &pseudo, body]);
    body[16..18].copy_from_slice(&check.to_be_bytes());
    Some(answer)
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
    use std::net::Ipv4Addr;

    use super::*;

    const NEAR: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(100, 64, 0, 2), 40_000);
    const FAR: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(100, 66, 0, 7), 80);

    /// A segment as a device gives it.
    fn segment(from: SocketAddrV4, to: SocketAddrV4, flags: u8, payload: usize) -> Packet {
        let mut data = vec![0; HEADER + IP_LEN + TCP_LEN + payload];
        let len = data.len();
        let ip = &mut data[HEADER..];
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&((len - HEADER) as u16).to_be_bytes());
        ip[9] = TCP;
        ip[12..16].copy_from_slice(&from.ip().octets());
        ip[16..20].copy_from_slice(&to.ip().octets());
        ip[20..22].copy_from_slice(&from.port().to_be_bytes());
        ip[22..24].copy_from_slice(&to.port().to_be_bytes());
        ip[24..28].copy_from_slice(&u32::MAX.to_be_bytes());
        ip[28..32].copy_from_slice(&77u32.to_be_bytes());
        (ip[32], ip[33]) = (5 << 4, flags);
        Packet::new(data.into(), len, 0, Instant::ZERO)
    }

    /// What the answer has: sequence number, acknowledgement, bits.
    fn answer(flags: u8, payload: usize) -> Option<(u32, u32, u8)> {
        let data = reset(&segment(NEAR, FAR, flags, payload))?;
        let len = data.len();
        let packet = Packet::new(data.into(), len, 0, Instant::ZERO);
        assert_eq!(flow(&packet.addresses(), Direction::Down), Some(Flow { near: NEAR, far: FAR }));
        let (head, body) = packet.ip().split_at(IP_LEN);
        assert_eq!(sum(&[head]), 0xffff, "what is summed with its checksum gives all ones");
        assert_eq!(sum(&[&head[12..20], &[0, TCP, 0, TCP_LEN as u8], body]), 0xffff);
        let number = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().unwrap());
        Some((number(4), number(8), body[13]))
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
        let syn = segment(NEAR, FAR, SYN, 0);
        let ip = syn.ip();
        for len in 0..ip.len() {
            let data: Vec<u8> = [&[0; HEADER][..], &ip[..len]].concat();
            assert_eq!(reset(&Packet::new(data.into(), HEADER + len, 0, Instant::ZERO)), None);
        }
        for (at, value) in [(0, 0x65), (9, 17), (0, 0x4f), (32, 0xf0)] {
            let mut data: Vec<u8> = syn.bytes().to_vec();
            data[HEADER + at] = value;
            let len = data.len();
            assert_eq!(reset(&Packet::new(data.into(), len, 0, Instant::ZERO)), None, "{at}");
        }
    }

    #[test]
    fn a_fate_is_that_of_one_flow_both_ways_and_from_its_moment_on() {
        let (fates, at) = (Fates::default(), Instant::from_nanos(5));
        let (up, down) = (segment(NEAR, FAR, SYN, 0), segment(FAR, NEAR, SYN | ACK, 0));
        assert!(!fates.is_refused(&up) && !fates.is_gone(&up, Direction::Up, Instant::MAX));
        fates.set(Flow { near: NEAR, far: FAR }, Fate { refused: true, gone: Some(at) });
        let before = Instant::from_nanos(4);
        for (packet, direction) in [(&up, Direction::Up), (&down, Direction::Down)] {
            assert!(fates.is_gone(packet, direction, at) && !fates.is_gone(packet, direction, before));
        }
        assert!(fates.is_refused(&up));
        let other = SocketAddrV4::new(*NEAR.ip(), NEAR.port() + 1);
        assert!(!fates.is_refused(&segment(other, FAR, SYN, 0)));
    }
}
