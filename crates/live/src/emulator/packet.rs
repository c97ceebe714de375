//! A packet, and what its header tells.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use base::{Duration, Instant};
use link::Mark;

use super::{DelayTo, Direction};
use crate::namespace::HEADER;

/// A packet on its way.
#[derive(Debug)]
pub(super) struct Packet {
    /// [`HEADER`] bytes, the IP packet, and room.
    data: Box<[u8]>,
    len: usize,
    flow: u64,
    /// Its number in its direction, from 0.
    pub number: u64,
    /// Delay beyond the link's.
    pub extra: Duration,
    /// Bytes that waited for the line when it came.
    pub queue_bytes: u64,
    /// When it was read.
    pub entered: Instant,
    /// When it went on the line.
    pub line: Instant,
    /// When its last bit had left the line.
    pub sent: Instant,
    /// When it is to be written.
    pub due: Instant,
}

impl Packet {
    pub fn new(data: Box<[u8]>, len: usize, number: u64, now: Instant) -> Self {
        let flow = Addresses::read(&data[HEADER.min(len)..len]).hash();
        Self {
            data,
            len,
            flow,
            number,
            extra: Duration::ZERO,
            queue_bytes: 0,
            entered: now,
            line: now,
            sent: now,
            due: now,
        }
    }

    /// What is written to a device: header and packet.
    pub fn bytes(&self) -> &[u8] {
        &self.data[..self.len]
    }

    /// The IP packet.
    pub fn ip(&self) -> &[u8] {
        &self.data[HEADER.min(self.len)..self.len]
    }

    pub fn into_buffer(self) -> Box<[u8]> {
        self.data
    }

    /// How many packets it would be on a wire, and their bytes: more than one where the kernel left it uncut (`gso_type` and `gso_size`
    /// of its header, Virtual I/O Device 1.2, section 5.1.6).
    pub fn on_wire(&self) -> (u64, u64) {
        let len = u64::from(link::Packet::wire_len(self));
        let (&[_, kind, _, _, a, b, ..], ip) = (&self.data[..], self.ip()) else { return (1, len) };
        let size = u64::from(u16::from_ne_bytes([a, b]));
        let (true, true, Some((_, tcp))) = (kind != 0, size > 0, transport(ip)) else { return (1, len) };
        let Some(offset) = ip.get(tcp + 12) else { return (1, len) };
        let heads = tcp as u64 + u64::from(offset >> 4) * 4;
        let count = len.saturating_sub(heads).div_ceil(size).max(1);
        (count, len + (count - 1) * heads)
    }

    /// Its addresses and ports.
    pub fn addresses(&self) -> Addresses {
        Addresses::read(self.ip())
    }

    /// The delay that the longest fitting rule adds for the packet's far end.
    pub fn extra_delay(&self, rules: &[DelayTo], direction: Direction) -> Duration {
        if rules.is_empty() {
            return Duration::ZERO;
        }
        let addresses = self.addresses();
        let far = match direction {
            Direction::Up => addresses.to,
            Direction::Down => addresses.from,
        };
        let fitting = rules.iter().filter(|rule| shares_prefix(rule.network, far, rule.prefix));
        fitting.max_by_key(|rule| rule.prefix).map_or(Duration::ZERO, |rule| rule.delay)
    }
}

impl link::Packet for Packet {
    fn wire_len(&self) -> u32 {
        (self.len - HEADER.min(self.len)) as u32
    }

    fn flow(&self) -> u64 {
        self.flow
    }

    fn mark(&mut self, mark: Mark, at: Instant) {
        match mark {
            Mark::Line => self.line = at,
            Mark::Sent => self.sent = at,
            Mark::Arrives => self.due = at,
        }
    }
}

/// Whether two addresses of one family begin with the same `prefix` bits.
fn shares_prefix(a: IpAddr, b: IpAddr, prefix: u8) -> bool {
    let differing = match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        _ => return false,
    };
    differing >= u32::from(prefix)
}

/// Who talks to whom. What is no IP packet has addresses and ports of zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Addresses {
    /// The IP protocol: 6 is TCP, 17 UDP.
    pub protocol: u8,
    pub from: IpAddr,
    pub to: IpAddr,
    /// Zero if the protocol has none, or this is not the first fragment.
    pub from_port: u16,
    pub to_port: u16,
}

impl Addresses {
    /// Reads the headers of an IP packet (RFC 791 section 3.1, RFC 8200 section 3) as far as they go.
    pub fn read(ip: &[u8]) -> Self {
        let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let mut addresses = Addresses { protocol: 0, from: nobody, to: nobody, from_port: 0, to_port: 0 };
        let v4 = |at| ip.get(at..at + 4).and_then(|b| <[u8; 4]>::try_from(b).ok()).map(Ipv4Addr::from);
        let v6 = |at| ip.get(at..at + 16).and_then(|b| <[u8; 16]>::try_from(b).ok()).map(Ipv6Addr::from);
        let ends = match ip.first().map(|b| b >> 4) {
            Some(4) => v4(12).zip(v4(16)).map(|(from, to)| (from.into(), to.into())),
            Some(6) => v6(8).zip(v6(24)).map(|(from, to)| (from.into(), to.into())),
            _ => None,
        };
        let Some((from, to)) = ends else { return addresses };
        (addresses.from, addresses.to) = (from, to);
        let (protocol, ports) = payload(ip);
        addresses.protocol = protocol;
        let ports = ports.and_then(|at| ip.get(at..at + 4));
        if let (6 | 17, Some(&[a, b, c, d])) = (protocol, ports) {
            (addresses.from_port, addresses.to_port) =
                (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        }
        addresses
    }

    /// A number for the flow, the same for every packet of it in this direction.
    pub fn hash(&self) -> u64 {
        let wide = |address: IpAddr| match address {
            IpAddr::V4(v4) => u128::from(v4.to_bits()),
            IpAddr::V6(v6) => v6.to_bits(),
        };
        let (from, to) = (wide(self.from), wide(self.to));
        let ports =
            u64::from(self.protocol) << 32 | u64::from(self.from_port) << 16 | u64::from(self.to_port);
        let parts = [from as u64, (from >> 64) as u64, to as u64, (to >> 64) as u64, ports];
        // Steele, Lea and Flood's splitmix64 finaliser, over each part.
        parts.iter().fold(0, |hash: u64, part| {
            let mut h = (hash ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
            h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            h ^ (h >> 31)
        })
    }
}

impl fmt::Display for Addresses {
    /// `6,10.0.0.1:1234,10.0.0.2:80`, `6,[2001:db8::1]:1234,[2001:db8::2]:80`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (SocketAddr::new(self.from, self.from_port), SocketAddr::new(self.to, self.to_port));
        write!(f, "{},{from},{to}", self.protocol)
    }
}

/// Extension headers of one IPv6 packet that are followed; a packet of more is of the protocol that comes then. RFC 8200 section 4.1 has
/// each but one at most once.
const EXTENSIONS_MAX: usize = 8;

/// What an IP packet that has both its addresses carries: the protocol's number, and where its header begins unless that is in another
/// fragment or beyond what is there to be read.
fn payload(ip: &[u8]) -> (u8, Option<usize>) {
    if ip[0] >> 4 == 4 {
        let offset = u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff;
        return (ip[9], (offset == 0).then_some(usize::from(ip[0] & 0x0f) * 4));
    }
    let (mut next, mut at) = (ip[6], 40);
    for _ in 0..EXTENSIONS_MAX {
        // RFC 8200 sections 4.3 to 4.6 (hop-by-hop, routing, fragment, destination options), RFC 4302 section 2.2 (authentication).
        let is_extension = matches!(next, 0 | 43 | 44 | 51 | 60);
        let (true, Some(&[following, len, a, b])) = (is_extension, ip.get(at..at + 4)) else { break };
        at += match next {
            44 => 8,
            51 => (usize::from(len) + 2) * 4,
            _ => (usize::from(len) + 1) * 8,
        };
        let is_later_fragment = next == 44 && u16::from_be_bytes([a, b]) & !7 != 0;
        next = following;
        if is_later_fragment {
            return (next, None);
        }
    }
    (next, Some(at))
}

/// The protocol that an IP packet carries, and where its header begins; `None` if nothing is known of that.
pub(super) fn transport(ip: &[u8]) -> Option<(u8, usize)> {
    let whole = match ip.first()? >> 4 {
        4 => 20,
        6 => 40,
        _ => return None,
    };
    let (protocol, at) = payload(ip.get(..whole).map(|_| ip)?);
    Some((protocol, at?))
}
