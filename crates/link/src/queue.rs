//! What waits before the line, and the disciplines that choose from it.

use std::collections::VecDeque;

use base::{Instant, Rng};

use crate::codel::CoDel;
use crate::fq_codel::FqCoDel;
use crate::{Discipline, Packet, QueueConfig};

/// A packet that waits.
#[derive(Clone, Debug)]
pub(crate) struct Queued<P> {
    /// When it entered.
    pub at: Instant,
    /// Its length in bytes, asked for once.
    pub len: u32,
    pub packet: P,
}

/// First in, first out, and a count of its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Fifo<P> {
    packets: VecDeque<Queued<P>>,
    pub bytes: u64,
}

impl<P> Fifo<P> {
    pub fn new() -> Self {
        Self { packets: VecDeque::new(), bytes: 0 }
    }

    pub fn push(&mut self, packet: Queued<P>) {
        self.bytes += u64::from(packet.len);
        self.packets.push_back(packet);
    }

    pub fn pop(&mut self) -> Option<Queued<P>> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.len);
        Some(packet)
    }

    pub fn len(&self) -> usize {
        self.packets.len()
    }
}

/// The queue of a bottleneck. An enum and not a trait object, because this is the inner loop of every simulation.
#[derive(Clone, Debug)]
pub(crate) enum Queue<P> {
    DropTail(Fifo<P>),
    CoDel(Fifo<P>, CoDel),
    FqCoDel(Box<FqCoDel<P>>),
}

impl<P: Packet> Queue<P> {
    pub fn new(discipline: Discipline, rng: Rng) -> Self {
        match discipline {
            Discipline::DropTail => Queue::DropTail(Fifo::new()),
            Discipline::CoDel => Queue::CoDel(Fifo::new(), CoDel::new()),
            Discipline::FqCoDel => Queue::FqCoDel(Box::new(FqCoDel::new(rng))),
        }
    }

    /// Appends a packet; what that costs for want of room, maybe this one, goes to `full`.
    pub fn push(&mut self, packet: Queued<P>, limit: &QueueConfig, full: &mut impl FnMut(P)) {
        let bytes = self.bytes() + u64::from(packet.len);
        let fits = bytes <= limit.limit_bytes && limit.limit_packets.is_none_or(|n| self.len() < n as usize);
        match self {
            Queue::FqCoDel(fq) => fq.push(packet, limit, full),
            _ if !fits => full(packet.packet),
            Queue::DropTail(fifo) => fifo.push(packet),
            Queue::CoDel(fifo, codel) => {
                codel.see(packet.len);
                fifo.push(packet);
            }
        }
    }

    /// The packet to send at `now`; what the discipline drops on the way goes to `drop`.
    pub fn pop(&mut self, now: Instant, drop: &mut impl FnMut(P)) -> Option<Queued<P>> {
        match self {
            Queue::DropTail(fifo) => fifo.pop(),
            Queue::CoDel(fifo, codel) => codel.pop(fifo, now, drop),
            Queue::FqCoDel(fq) => fq.pop(now, drop),
        }
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> u64 {
        match self {
            Queue::DropTail(fifo) | Queue::CoDel(fifo, _) => fifo.bytes,
            Queue::FqCoDel(fq) => fq.bytes(),
        }
    }

    /// Packets that wait.
    pub fn len(&self) -> usize {
        match self {
            Queue::DropTail(fifo) | Queue::CoDel(fifo, _) => fifo.len(),
            Queue::FqCoDel(fq) => fq.len(),
        }
    }
}
