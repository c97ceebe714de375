//! FQ-CoDel, RFC 8290: flows are hashed to queues, each with its own CoDel, and served by deficit round robin in
//! which a flow that has just begun to send goes before those with a backlog.

use std::collections::VecDeque;

use base::{Instant, Rng};

use crate::codel::CoDel;
use crate::queue::{Fifo, Queued};
use crate::{Packet, QueueConfig};

/// Number of queues that flows are hashed to (RFC 8290 section 5.2.2... "flows").
const FLOWS: u64 = 1_024;
/// Bytes a flow may send in a round (section 5.2.4: the MTU plus the Ethernet header).
const QUANTUM: i64 = 1_514;

#[derive(Clone, Debug)]
pub(crate) struct FqCoDel<P> {
    flows: Vec<Flow<P>>,
    /// Indices of flows that have begun to send, and of those that have had a turn.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    salt: u64,
    bytes: u64,
    packets: usize,
}

#[derive(Clone, Debug)]
struct Flow<P> {
    fifo: Fifo<P>,
    codel: CoDel,
    /// Bytes the flow may still send in this round.
    deficit: i64,
    /// Whether the flow is on one of the lists.
    listed: bool,
}

impl<P: Packet> FqCoDel<P> {
    /// The salt of the hash comes from `rng`, so that which flows collide is a matter of the seed.
    pub fn new(mut rng: Rng) -> Self {
        let flow = |_| Flow { fifo: Fifo::new(), codel: CoDel::new(), deficit: 0, listed: false };
        Self {
            flows: (0..FLOWS).map(flow).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            salt: rng.next_u64(),
            bytes: 0,
            packets: 0,
        }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn len(&self) -> usize {
        self.packets
    }

    /// Appends a packet to its flow's queue and returns how many packets had to be dropped to make room, from the
    /// head of the queue with the most bytes (section 4.1).
    pub fn push(&mut self, packet: Queued<P>, limit: &QueueConfig) -> u64 {
        let index = self.flow_of(packet.packet.flow());
        let flow = &mut self.flows[index as usize];
        self.bytes += u64::from(packet.len);
        self.packets += 1;
        flow.codel.see(packet.len);
        flow.fifo.push(packet);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = QUANTUM;
            self.new.push_back(index);
        }
        let mut dropped = 0;
        while self.bytes > limit.limit_bytes || limit.limit_packets.is_some_and(|n| self.packets > n as usize)
        {
            let fattest = self.flows.iter_mut().max_by_key(|f| f.fifo.bytes).expect("there are flows");
            let Some(victim) = fattest.fifo.pop() else { break };
            self.bytes -= u64::from(victim.len);
            self.packets -= 1;
            dropped += 1;
        }
        dropped
    }

    /// The packet to send at `now` (section 4.2).
    pub fn pop(&mut self, now: Instant, dropped: &mut u64) -> Option<Queued<P>> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += QUANTUM;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let (bytes, packets) = (flow.fifo.bytes, flow.fifo.len());
            let packet = flow.codel.pop(&mut flow.fifo, now, dropped);
            self.bytes -= bytes - flow.fifo.bytes;
            self.packets -= packets - flow.fifo.len();
            if let Some(packet) = packet {
                flow.deficit -= i64::from(packet.len);
                return Some(packet);
            }
            // An emptied new flow waits among the old ones for a round, lest it come back as new at once and
            // starve them.
            list.pop_front();
            if is_new && !self.old.is_empty() {
                self.old.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }

    fn flow_of(&self, id: u64) -> u32 {
        // One round of a 64-bit finaliser (Stafford's 13th variant of MurmurHash3's), enough to spread small ids.
        let mut h = id ^ self.salt;
        h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((h ^ (h >> 31)) % FLOWS) as u32
    }
}
