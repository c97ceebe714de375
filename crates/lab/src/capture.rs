//! One load of one page in the virtual world, written as a packet capture: `velodrome capture`.
//!
//! The file is what a capture at one end of the load's connections would have been ([`pcap`]), packet by packet and in the order in which
//! that end saw them: what it sent, lost or not, when its TCP let it go; what it received when it came. Time begins with the
//! navigation.
//!
//! Headers say what the model's segments say: numbers from an initial sequence number of each connection's own, windows scaled, SACK
//! blocks, timestamps. Heads, frames and header blocks are what the engines wrote. What nobody looks into in the virtual world, bodies and
//! all that TLS computes, is filler. What TLS protects is not enciphered.
//!
//! `docs/model.md` has what else is not as in a capture of the real thing.

pub mod pcap;

mod dns;
mod filler;

use std::fmt;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use base::{Chunk, Instant};
use client::Family;
use load::{Load, Packet, Setup, Sighting};
use page::Page;
use serde::Serialize;

use crate::error::Error;
use crate::plan::Plan;
use crate::technique::{self, Technique};
use pcap::{Options, Segment, Writer};

/// The client's addresses: for private use (RFC 1918), and for documentation (RFC 3849) beside those of the hosts.
const CLIENT_V4: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 2);
const CLIENT_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 2);

/// The first of the ports that clients have, and how many there are (RFC 6335 §6).
const PORTS: (u16, u32) = (49_152, 16_384);

/// Where packets are seen.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum End {
    /// At the client: what it sends, and what reaches it.
    #[default]
    Client,
    /// At the servers, all of them together.
    Server,
}

impl FromStr for End {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        match s {
            "client" => Ok(End::Client),
            "server" => Ok(End::Server),
            _ => Err(format!("'{s}' is no end of a connection; there are client, server")),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            End::Client => "client",
            End::Server => "server",
        })
    }
}

/// What a capture has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Counts {
    /// Packets.
    pub packets: u64,
    /// Bytes of packets, from their IP headers on.
    pub bytes: u64,
    /// Connections of which there is a packet.
    pub connections: u64,
    /// Segments of the end's own that it sent again, lost or not: what its TCP counted.
    pub retransmissions_sent: u64,
    /// Segments of the other end that it sent again and that came.
    pub retransmissions_received: u64,
    /// From the start of the navigation to the last packet, µs.
    pub duration_us: u64,
}

/// A load with all its packets.
#[derive(Debug)]
pub struct Capture {
    page: Page,
    setup: Setup,
    load: Load,
}

impl Capture {
    /// Loads `page` as the first run of `plan` would: on its network, over its transport, with its techniques and seed.
    ///
    /// # Errors
    /// If the plan has more than one network or transport, or a technique that needs other pages or has nothing to act on.
    pub fn make(plan: &Plan, page: &Page) -> Result<Self, Error> {
        let transports = plan.transports();
        let ([network], [transport]) = (plan.networks.as_slice(), transports.as_slice()) else {
            return Err(Error::Asked(
                "a capture is of one load: on one network, over one transport".to_owned(),
            ));
        };
        if let Some(tabs) = plan.techniques.iter().find(|t| matches!(t, Technique::Tabs(..))) {
            return Err(Error::Asked(format!("'{tabs}' needs other pages, and a capture is of one")));
        }
        technique::check_pages(plan, std::slice::from_ref(page))?;
        let setup = crate::record::setup(network, *transport, &plan.techniques)?;
        let setup = Setup { memory: plan.memory()?, ..setup };
        let seed = plan.load_seed(&page.id, &network.name, 0);
        let setup = technique::remembering(&setup, &plan.techniques, page, seed);
        Ok(Self::of(page, Setup { keeps_bytes: true, ..setup }, seed))
    }

    fn of(page: &Page, setup: Setup, seed: u64) -> Self {
        let load = sim::load(page, &setup, seed);
        Self { page: setup.furnish(page).into_owned(), setup, load }
    }

    /// The load.
    pub fn load(&self) -> &Load {
        &self.load
    }

    /// Writes what was seen at `end`, a packet at a time.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, end: End, out: impl Write) -> io::Result<Counts> {
        let mut pen = Pen::new(self, end, Writer::new(out)?);
        let sightings = self.load.wire.iter().flat_map(|wire| &wire.sightings);
        sightings.copied().try_for_each(|sighting| pen.write(sighting))?;
        pen.finish()
    }
}

/// What writing a capture needs to know.
struct Pen<'c, W> {
    capture: &'c Capture,
    end: End,
    out: Writer<W>,
    /// By connection: at the client and at the server.
    ends: Vec<[Socket; 2]>,
    seen: Vec<bool>,
    counts: Counts,
    payload: Vec<u8>,
    last: Instant,
}

/// An end of a connection.
#[derive(Clone, Copy)]
struct Socket {
    address: SocketAddr,
    /// Initial sequence number.
    isn: u32,
    /// What its windows are shifted by, once that is agreed upon (RFC 7323 §2.3).
    shift: u8,
    /// The sequence number behind what it has sent.
    sent: u64,
}

impl<'c, W: Write> Pen<'c, W> {
    fn new(capture: &'c Capture, end: End, out: Writer<W>) -> Self {
        let ends: Vec<_> = (0..).zip(&capture.load.connections).map(|(id, c)| capture.ends(id, c)).collect();
        let seen = vec![false; ends.len()];
        let (counts, payload, last) = (Counts::default(), Vec::new(), Instant::ZERO);
        Self { capture, end, out, ends, seen, counts, payload, last }
    }

    fn write(&mut self, sighting: Sighting) -> io::Result<()> {
        let capture = self.capture;
        let packet = |number: u32| &capture.load.packets[number as usize];
        match sighting {
            Sighting::Left(number) => {
                let packet = packet(number);
                let again = self.note_sent(packet);
                if packet.up == (self.end == End::Client) {
                    self.counts.retransmissions_sent += u64::from(again);
                    self.segment(packet.left, packet)?;
                } else if again && packet.arrived.is_some() {
                    self.counts.retransmissions_received += 1;
                }
            }
            Sighting::Arrived(number) => {
                let packet = packet(number);
                if packet.up == (self.end == End::Server) {
                    self.segment(packet.arrived.unwrap_or(packet.left), packet)?;
                }
            }
            Sighting::Question { at, host, family } if self.end == End::Client => {
                self.name(at, host, family, dns::Says::Question)?;
            }
            Sighting::Answer { at, host, family, address } if self.end == End::Client => {
                self.name(at, host, family, dns::Says::Answer(address))?;
            }
            Sighting::Question { .. } | Sighting::Answer { .. } => {}
        }
        Ok(())
    }

    /// Whether something of a segment was sent before.
    fn note_sent(&mut self, packet: &Packet) -> bool {
        let from = &mut self.ends[packet.connection as usize][usize::from(!packet.up)];
        let (segment, before) = (&packet.segment, from.sent);
        from.sent = before.max(segment.end());
        segment.end() > segment.seq && segment.seq < before
    }

    fn segment(&mut self, at: Instant, packet: &Packet) -> io::Result<()> {
        let id = packet.connection as usize;
        let [from, to] = if packet.up { self.ends[id] } else { [self.ends[id][1], self.ends[id][0]] };
        self.seen[id] = true;
        let segment = &packet.segment;
        self.payload.clear();
        if let Some(wire) = &self.capture.load.wire
            && let Some(streams) = wire.streams.get(id)
        {
            // The SYN is number 0, byte `i` of the stream number `1 + i`.
            let start = segment.seq.saturating_sub(1);
            for (_, chunk) in streams[usize::from(!packet.up)].range(start..start + u64::from(segment.len)) {
                match chunk {
                    Chunk::Bytes(bytes) => self.payload.extend_from_slice(&bytes),
                    Chunk::Body(range) => filler::write(range, &mut self.payload),
                }
            }
        }
        debug_assert_eq!(self.payload.len() as u32, segment.len, "what TCP counts was written");
        let shift = if segment.flags.syn { 0 } else { from.shift };
        let number = |isn: u32, number: u64| isn.wrapping_add(number as u32);
        let options = Options {
            syn: segment.syn_options.map(|syn| (syn, from.shift)),
            timestamps: segment.timestamps,
            sack: segment.sack.iter().map(|r| (number(to.isn, r.start), number(to.isn, r.end))).collect(),
        };
        let header = Segment {
            seq: number(from.isn, segment.seq),
            ack: segment.flags.ack.then(|| number(to.isn, segment.ack)),
            // Linux rounds windows up to what their scale can say.
            window: segment.window.div_ceil(1 << shift).min(u64::from(u16::MAX)) as u16,
            syn: segment.flags.syn,
            fin: segment.flags.fin,
            rst: segment.flags.rst,
            psh: segment.flags.psh,
            options,
        };
        self.last = at;
        self.out.tcp(at, from.address, to.address, &header, &self.payload)
    }

    fn name(&mut self, at: Instant, host: u32, family: Family, says: dns::Says) -> io::Result<()> {
        let name = &self.capture.page.hosts[host as usize].name;
        let Some(message) = dns::message(host as u16, name, family, says) else { return Ok(()) };
        let [client, server] =
            [(CLIENT_V4, dns::CLIENT_PORT), (dns::SERVER, dns::PORT)].map(SocketAddr::from);
        let [from, to] = if says == dns::Says::Question { [client, server] } else { [server, client] };
        self.last = at;
        self.out.udp(at, from, to, &message)
    }

    fn finish(self) -> io::Result<Counts> {
        let (packets, bytes) = self.out.finish()?;
        let connections = self.seen.iter().filter(|seen| **seen).count() as u64;
        let duration_us = self.last.since(Instant::ZERO).as_micros();
        Ok(Counts { packets, bytes, connections, duration_us, ..self.counts })
    }
}

impl Capture {
    fn ends(&self, id: u32, connection: &load::Connection) -> [Socket; 2] {
        let host = &self.page.hosts[connection.record.host as usize];
        // A recorded port is that of the recorded scheme.
        let port = match (host.scheme_tls, self.setup.secures(host)) {
            (true, false) if host.port == 443 => 80,
            (false, true) if host.port == 80 => 443,
            _ => host.port,
        };
        let server: IpAddr = connection.address.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let client: IpAddr = if server.is_ipv6() { CLIENT_V6.into() } else { CLIENT_V4.into() };
        let own = PORTS.0 + (id % PORTS.1) as u16;
        let end = |address, up: bool, tcp: &tcp::Config| Socket {
            address,
            isn: isn(id, up),
            shift: if tcp.window_scaling { shift(tcp.rwnd_max) } else { 0 },
            sent: 0,
        };
        [
            end(SocketAddr::new(client, own), true, &self.setup.client_tcp),
            end(SocketAddr::new(server, port), false, &self.setup.server_tcp),
        ]
    }
}

/// Any number does that differs between connections; a capture must not depend on more than the load (RFC 6528 has what hosts do).
fn isn(connection: u32, up: bool) -> u32 {
    // Knuth's multiplier, the golden ratio in 32 bits.
    (2 * connection + 1 + u32::from(up)).wrapping_mul(0x9e37_79b1)
}

/// The least shift with which a window can be said (RFC 7323 §2.3: no more than 14).
fn shift(window_max: u64) -> u8 {
    (0..14).find(|shift| window_max >> shift <= u64::from(u16::MAX)).unwrap_or(14)
}
