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

    /// What it was written to.
    pub fn into_inner(self) -> W {
        self.out
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

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    /// The Internet checksum (RFC 1071), by its definition.
    fn sum(parts: &[&[u8]]) -> u16 {
        let bytes: Vec<u8> = parts.concat();
        let words = bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0)));
        let sum = words.fold(0, |sum, word| (sum + word) % 0xffff);
        !(sum as u16)
    }

    /// The only packet of a file, behind its record's header.
    fn packet(write: impl FnOnce(&mut Writer<&mut Vec<u8>>) -> io::Result<()>) -> Vec<u8> {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file).unwrap();
        write(&mut writer).unwrap();
        let (packets, bytes) = writer.finish().unwrap();
        assert_eq!((packets, bytes as usize), (1, file.len() - 40));
        assert_eq!(file[..4], [0x4d, 0x3c, 0xb2, 0xa1]);
        assert_eq!((file[20], &file[24..28], &file[28..32]), (101, &[3, 0, 0, 0][..], &[7, 0, 0, 0][..]));
        file.split_off(40)
    }

    fn at() -> Instant {
        Instant::ZERO + base::Duration::from_nanos(3_000_000_007)
    }

    fn ends(ip: impl Into<IpAddr>) -> [SocketAddr; 2] {
        let ip = ip.into();
        [SocketAddr::new(ip, 50_000), SocketAddr::new(ip, 80)]
    }

    #[test]
    fn a_header_has_its_fields_where_they_belong_and_sums_to_nothing() {
        let [from, to] = ends(Ipv4Addr::LOCALHOST);
        let segment = Segment { seq: 0x0102_0304, ack: Some(9), window: 77, fin: true, ..Segment::default() };
        let packet = packet(|w| w.tcp(at(), from, to, &segment, b"odd"));
        let (ip, tcp) = packet.split_at(20);
        assert_eq!(ip[..10], [0x45, 0, 0, 43, 0, 0, 0x40, 0, 64, 6]);
        assert_eq!(sum(&[ip]), 0xffff, "what is summed with its checksum gives zero");
        assert_eq!(tcp[..16], [0xc3, 0x50, 0, 80, 1, 2, 3, 4, 0, 0, 0, 9, 0x50, 0x11, 0, 77]);
        assert_eq!(&tcp[20..], b"odd");
        assert_eq!(sum(&[&ip[12..], &[0, 6, 0, tcp.len() as u8], tcp]), 0xffff);
    }

    #[test]
    fn the_checksums_of_ipv6_and_of_datagrams_hold() {
        let [from, to] = ends(Ipv6Addr::LOCALHOST);
        let packet6 = packet(|w| w.tcp(at(), from, to, &Segment::default(), b"even"));
        assert_eq!(packet6[..8], [0x60, 0, 0, 0, 0, 24, 6, 64]);
        assert_eq!(sum(&[&packet6[8..40], &[0, 0, 0, 24, 0, 0, 0, 6], &packet6[40..]]), 0xffff);
        let [from, to] = ends(Ipv4Addr::LOCALHOST);
        let packet4 = packet(|w| w.udp(at(), from, to, b"odd"));
        assert_eq!(packet4.len(), 31);
        assert_eq!(sum(&[&packet4[12..20], &[0, 17, 0, 11], &packet4[20..]]), 0xffff);
    }

    #[test]
    fn options_are_laid_out_as_linux_has_them_and_as_long_as_the_model_counts() {
        let syn =
            |sack_permitted, window_scaling| tcp::SynOptions { mss: 1_460, sack_permitted, window_scaling };
        let timestamps = Some(tcp::Timestamps { value: 1, echo: 2 });
        let [from, to] = ends(Ipv4Addr::LOCALHOST);
        for timestamps in [timestamps, None] {
            for offer in [None, Some(syn(true, true)), Some(syn(true, false)), Some(syn(false, true))] {
                let model = tcp::Segment { timestamps, syn_options: offer, ..tcp::Segment::default() };
                let options = Options { syn: offer.map(|o| (o, 7)), timestamps, sack: Vec::new() };
                let segment = Segment { options, ..Segment::default() };
                let packet = packet(|w| w.tcp(at(), from, to, &segment, &[]));
                assert_eq!(packet.len() as u32, model.wire_len(), "{model:?} {offer:?}");
            }
        }
        let options = Options { syn: Some((syn(true, true), 7)), timestamps, sack: Vec::new() };
        let whole = packet(|w| w.tcp(at(), from, to, &Segment { options, ..Segment::default() }, &[]));
        let wanted = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 3, 3, 7];
        assert_eq!(whole[40..], wanted);
        let options = Options { timestamps, sack: vec![(1, 2), (3, 4), (5, 6)], ..Options::default() };
        let sack = packet(|w| w.tcp(at(), from, to, &Segment { options, ..Segment::default() }, &[]));
        assert_eq!((sack.len(), &sack[52..64]), (80, &[1, 1, 5, 26, 0, 0, 0, 1, 0, 0, 0, 2][..]));
    }
}
