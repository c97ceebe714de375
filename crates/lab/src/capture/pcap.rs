//! Capture files: libpcap's format (draft-ietf-opsawg-pcap) with nanoseconds, packets that begin with their IP header, and the headers
//! around a payload. `etherparse` lays out the headers; the order of TCP's options is Linux's.
//!
//! Nothing is kept: a packet is written when it is told.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

use base::Instant;
use etherparse::{IpNumber, Ipv4Header, Ipv6Header, TcpHeader, TcpOptionElement, UdpHeader};

/// The magic number of files with nanoseconds, version 2.4, two reserved words, the longest packet, LINKTYPE_RAW.
const HEADER: [u32; 6] = [0xa1b2_3c4d, 2 | 4 << 16, 0, 0, 1 << 18, 101];

/// Hops that a packet has left: what Linux begins with.
const HOPS: u8 = 64;

/// A capture file being written.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    packets: u64,
    bytes: u64,
    packet: Vec<u8>,
}

/// What a TCP header says besides the ports.
#[derive(Clone, Default, Debug)]
pub struct Segment {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number, if there is one.
    pub ack: Option<u32>,
    /// The window field.
    pub window: u16,
    /// Control bits.
    pub syn: bool,
    /// See `syn`.
    pub fin: bool,
    /// See `syn`.
    pub rst: bool,
    /// See `syn`.
    pub psh: bool,
    /// Options.
    pub options: Options,
}

/// A TCP header's options.
#[derive(Clone, Default, Debug)]
pub struct Options {
    /// What a SYN offers, and by how much its sender shifts windows.
    pub syn: Option<(tcp::SynOptions, u8)>,
    /// The timestamps option.
    pub timestamps: Option<tcp::Timestamps>,
    /// Ranges that were received beyond the acknowledgement number; no more than three beside timestamps, four without.
    pub sack: Vec<(u32, u32)>,
}

impl Options {
    /// In Linux's order (`tcp_options_write`), which fills the gaps with SACK-permitted where it can.
    fn elements(&self) -> Vec<TcpOptionElement> {
        use TcpOptionElement::{MaximumSegmentSize, Noop, SelectiveAcknowledgementPermitted, WindowScale};
        let mut out = Vec::new();
        let sack_permitted = self.syn.is_some_and(|(syn, _)| syn.sack_permitted);
        if let Some((syn, _)) = &self.syn {
            out.push(MaximumSegmentSize(syn.mss));
        }
        match (self.timestamps, sack_permitted) {
            (Some(_), true) => out.push(SelectiveAcknowledgementPermitted),
            (Some(_), false) => out.extend([Noop, Noop]),
            (None, true) => out.extend([Noop, Noop, SelectiveAcknowledgementPermitted]),
            (None, false) => {}
        }
        if let Some(timestamps) = self.timestamps {
            out.push(TcpOptionElement::Timestamp(timestamps.value, timestamps.echo));
        }
        if let Some((_, shift)) = self.syn.filter(|(syn, _)| syn.window_scaling) {
            out.extend([Noop, WindowScale(shift)]);
        }
        if let [first, rest @ ..] = self.sack.as_slice() {
            let rest = [0, 1, 2].map(|n| rest.get(n).copied());
            out.extend([Noop, Noop, TcpOptionElement::SelectiveAcknowledgement(*first, rest)]);
        }
        out
    }
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// Those of `out`, here and below.
    pub fn new(mut out: W) -> io::Result<Self> {
        for word in HEADER {
            out.write_all(&word.to_le_bytes())?;
        }
        Ok(Self { out, packets: 0, bytes: 0, packet: Vec::new() })
    }

    /// Adds a segment.
    ///
    /// # Errors
    /// Those of `out`; and if the addresses are of two families, or the segment is longer than a packet can be.
    pub fn tcp(
        &mut self,
        at: Instant,
        from: SocketAddr,
        to: SocketAddr,
        segment: &Segment,
        payload: &[u8],
    ) -> io::Result<()> {
        let mut header = TcpHeader::new(from.port(), to.port(), segment.seq, segment.window);
        header.acknowledgment_number = segment.ack.unwrap_or(0);
        header.ack = segment.ack.is_some();
        (header.syn, header.fin, header.rst, header.psh) =
            (segment.syn, segment.fin, segment.rst, segment.psh);
        header.set_options(&segment.options.elements()).map_err(|e| invalid(&e))?;
        header.checksum = match (from.ip(), to.ip()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => header.calc_checksum_ipv4_raw(a.octets(), b.octets(), payload),
            (IpAddr::V6(a), IpAddr::V6(b)) => header.calc_checksum_ipv6_raw(a.octets(), b.octets(), payload),
            _ => return Err(invalid(&"addresses of two families")),
        }
        .map_err(|e| invalid(&e))?;
        self.packet(at, from.ip(), to.ip(), IpNumber::TCP, &header.to_bytes(), payload)
    }

    /// Adds a datagram.
    ///
    /// # Errors
    /// As [`tcp`](Self::tcp).
    pub fn udp(&mut self, at: Instant, from: SocketAddr, to: SocketAddr, payload: &[u8]) -> io::Result<()> {
        let (source, target) = (from.port(), to.port());
        let header = match (from.ip(), to.ip()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                let ip = ip_v4(a, b, IpNumber::UDP, 0)?;
                UdpHeader::with_ipv4_checksum(source, target, &ip, payload)
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                UdpHeader::with_ipv6_checksum(source, target, &ip_v6(a, b, IpNumber::UDP, 0)?, payload)
            }
            _ => return Err(invalid(&"addresses of two families")),
        }
        .map_err(|e| invalid(&e))?;
        self.packet(at, from.ip(), to.ip(), IpNumber::UDP, &header.to_bytes(), payload)
    }

    fn packet(
        &mut self,
        at: Instant,
        from: IpAddr,
        to: IpAddr,
        carries: IpNumber,
        header: &[u8],
        payload: &[u8],
    ) -> io::Result<()> {
        let len = header.len() + payload.len();
        self.packet.clear();
        match (from, to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                self.packet.extend(ip_v4(from, to, carries, len)?.to_bytes())
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                self.packet.extend(ip_v6(from, to, carries, len)?.to_bytes())
            }
            _ => return Err(invalid(&"addresses of two families")),
        }
        self.packet.extend_from_slice(header);
        self.packet.extend_from_slice(payload);
        let (ns, len) = (at.since(Instant::ZERO).as_nanos(), self.packet.len() as u32);
        for word in [(ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32, len, len] {
            self.out.write_all(&word.to_le_bytes())?;
        }
        self.packets += 1;
        self.bytes += u64::from(len);
        self.out.write_all(&self.packet)
    }

    /// Ends the file: how many packets it has, and their bytes.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish(mut self) -> io::Result<(u64, u64)> {
        self.out.flush()?;
        Ok((self.packets, self.bytes))
    }
}

/// Without identification: fragments are forbidden (RFC 6864 §4.1).
fn ip_v4(
    from: std::net::Ipv4Addr,
    to: std::net::Ipv4Addr,
    carries: IpNumber,
    len: usize,
) -> io::Result<Ipv4Header> {
    let len = u16::try_from(len).map_err(|e| invalid(&e))?;
    let mut header =
        Ipv4Header::new(len, HOPS, carries, from.octets(), to.octets()).map_err(|e| invalid(&e))?;
    header.dont_fragment = true;
    header.header_checksum = header.calc_header_checksum();
    Ok(header)
}

fn ip_v6(
    from: std::net::Ipv6Addr,
    to: std::net::Ipv6Addr,
    carries: IpNumber,
    len: usize,
) -> io::Result<Ipv6Header> {
    Ok(Ipv6Header {
        payload_length: u16::try_from(len).map_err(|e| invalid(&e))?,
        next_header: carries,
        hop_limit: HOPS,
        source: from.octets(),
        destination: to.octets(),
        ..Ipv6Header::default()
    })
}

fn invalid(what: &impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what.to_string())
}
