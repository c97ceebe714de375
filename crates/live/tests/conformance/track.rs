//! The two directions between the ends, and a note of every packet: what a link does is the same in both arms, and what
//! happened is told from the packets, not by the ends.

use base::{Duration, Instant, Rng};
use link::{Packet, Path};
use live::emulator::link;

use crate::conformance::scenario::{Drop, Network};

/// Which end sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Client,
    Server,
}
pub use Side::{Client, Server};

/// What a TCP header says. Sequence numbers count from the SYN, which is 0.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Header {
    pub syn: bool,
    pub fin: bool,
    pub rst: bool,
    pub psh: bool,
    pub seq: u64,
    /// 0 without ACK.
    pub ack: u64,
    pub window: u64,
    pub len: u64,
    /// Ranges of selective acknowledgements.
    pub sacks: usize,
}

/// A packet that an end sent.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    /// Connections are numbered as their first SYN was sent.
    pub connection: usize,
    pub from: Side,
    pub header: Header,
    pub sent: Instant,
    /// `None`: lost, or on its way when all was over.
    pub arrived: Option<Instant>,
    /// Carries bytes that had been sent before.
    pub again: bool,
    /// It was sent when this many one-way trips had been made, one caused by the other: the SYN's is 0, the SYN/ACK's 1. Timers do
    /// not count, so that no load of the machine changes it.
    pub depth: u32,
}

/// What is on its way.
struct Parcel<P> {
    note: usize,
    len: u32,
    load: P,
}

impl<P> Packet for Parcel<P> {
    fn wire_len(&self) -> u32 {
        self.len
    }
}

/// One direction.
struct Way<P> {
    path: Path<Parcel<P>>,
    drops: Vec<Drop>,
    syns: u64,
    data: u64,
}

/// Both directions.
pub struct Track<P> {
    up: Way<P>,
    down: Way<P>,
    pub notes: Vec<Note>,
    /// By connection and end: how far has been sent, and the longest chain of trips it has seen the end of.
    ends: Vec<[End; 2]>,
}

#[derive(Clone, Copy, Default)]
struct End {
    sent_to: u64,
    trips: u32,
}

impl<P> Track<P> {
    pub fn new(network: &Network) -> Self {
        let way = |config, drops: &[Drop], name| Way {
            path: Path::new(config, Rng::new(network.seed).substream(name)),
            drops: drops.to_vec(),
            syns: 0,
            data: 0,
        };
        Self {
            up: way(&network.up, &network.drop_up, "up"),
            down: way(&network.down, &network.drop_down, "down"),
            notes: Vec::new(),
            ends: Vec::new(),
        }
    }

    fn way(&mut self, from: Side) -> &mut Way<P> {
        if from == Client { &mut self.up } else { &mut self.down }
    }

    /// An end sends a packet of `len` bytes.
    pub fn send(&mut self, now: Instant, connection: usize, from: Side, header: Header, len: u32, load: P) {
        if self.ends.len() <= connection {
            self.ends.resize(connection + 1, Default::default());
        }
        let end = &mut self.ends[connection][from as usize];
        let to = header.seq + header.len + u64::from(header.syn) + u64::from(header.fin);
        let again = to > header.seq && header.seq < end.sent_to;
        end.sent_to = end.sent_to.max(to);
        let depth = end.trips;
        self.notes.push(Note { connection, from, header, sent: now, arrived: None, again, depth });
        let note = self.notes.len() - 1;
        let way = self.way(from);
        let drop = match (header.syn, header.len > 0) {
            (true, _) => Some(Drop::Syn(next(&mut way.syns))),
            (_, true) => Some(Drop::Data(next(&mut way.data))),
            _ => None,
        };
        if !drop.is_some_and(|drop| way.drops.contains(&drop)) {
            way.path.push(now, Parcel { note, len, load });
        }
    }

    /// When the next packet arrives.
    pub fn next_time(&self) -> Option<Instant> {
        self.up.path.next_time().into_iter().chain(self.down.path.next_time()).min()
    }

    /// A packet that has arrived by `now`: of which connection, who sent it, and the packet.
    pub fn deliver(&mut self, now: Instant) -> Option<(usize, Side, P)> {
        // In order of time, which matters to one who comes late.
        let first =
            [Client, Server].into_iter().filter_map(|from| Some((self.way(from).path.next_time()?, from)));
        let first: Vec<_> = first.collect();
        let (_, from) = first.into_iter().filter(|(at, _)| *at <= now).min_by_key(|(at, _)| *at)?;
        let parcel = self.way(from).path.pop(now)?;
        let note = &mut self.notes[parcel.note];
        note.arrived = Some(now);
        let (connection, depth) = (note.connection, note.depth);
        let to = 1 - from as usize;
        let end = &mut self.ends[connection][to];
        end.trips = end.trips.max(depth + 1);
        Some((connection, from, parcel.load))
    }
}

/// Counts.
fn next(count: &mut u64) -> u64 {
    *count += 1;
    *count - 1
}

/// The time since the connection's first SYN.
pub fn since(notes: &[Note], connection: usize, at: Instant) -> Duration {
    let first = notes.iter().find(|note| note.connection == connection).expect("a connection has a SYN");
    at.since(first.sent)
}
