//! FQ-CoDel, RFC 8290: flows are hashed to queues, each with its own CoDel, and served by deficit round robin in
//! which a flow that has just begun to send goes before those with a backlog.
//!
//! As in the RFC, a flow's CoDel looks at the flow's own backlog only; Linux has it look at that of all flows.

use std::collections::VecDeque;

use base::{Instant, Rng};

use crate::codel::CoDel;
use crate::queue::{Fifo, Queued};
use crate::{Packet, QueueConfig};

/// Number of queues that flows are hashed to (RFC 8290 section 5.2).
const FLOWS: u64 = 1_024;
/// Bytes a flow may send in a round (section 5.2): the MTU plus the Ethernet header.
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

    /// Appends a packet to its flow's queue; what has to be dropped to make room, from the head of the queue with the
    /// most bytes (section 4.1), goes to `full`.
    pub fn push(&mut self, packet: Queued<P>, limit: &QueueConfig, full: &mut impl FnMut(P)) {
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
        while self.bytes > limit.limit_bytes || limit.limit_packets.is_some_and(|n| self.packets > n as usize)
        {
            let fattest = self.flows.iter_mut().max_by_key(|f| f.fifo.bytes).expect("there are flows");
            let Some(victim) = fattest.fifo.pop() else { break };
            self.bytes -= u64::from(victim.len);
            self.packets -= 1;
            full(victim.packet);
        }
    }

    /// The packet to send at `now` (section 4.2); what the flow's CoDel drops goes to `drop`.
    pub fn pop(&mut self, now: Instant, drop: &mut impl FnMut(P)) -> Option<Queued<P>> {
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
            let packet = flow.codel.pop(&mut flow.fifo, now, drop);
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Datagram(u64);

    impl Packet for Datagram {
        fn wire_len(&self) -> u32 {
            unreachable!("the queue is told the length")
        }
        fn flow(&self) -> u64 {
            self.0
        }
    }

    fn packet(flow: u64, len: u32) -> Queued<Datagram> {
        Queued { at: Instant::ZERO, len, packet: Datagram(flow) }
    }

    fn queue() -> FqCoDel<Datagram> {
        FqCoDel::new(Rng::new(1))
    }

    fn push(fq: &mut FqCoDel<Datagram>, packet: Queued<Datagram>) {
        fq.push(packet, &QueueConfig::UNLIMITED, &mut |_| panic!("there is room"));
    }

    fn pop(fq: &mut FqCoDel<Datagram>) -> Option<(u64, u32)> {
        fq.pop(Instant::ZERO, &mut |_| ()).map(|p| (p.packet.0, p.len))
    }

    /// RFC 8290 section 4.2: each flow may send a quantum of bytes in its turn, so small packets are not at a
    /// disadvantage.
    #[test]
    fn flows_with_a_backlog_share_bytes_and_not_packets() {
        let mut fq = queue();
        for _ in 0..300 {
            push(&mut fq, packet(1, 1_500));
            push(&mut fq, packet(2, 300));
        }
        let mut bytes = [0; 2];
        for _ in 0..200 {
            let (flow, len) = pop(&mut fq).unwrap();
            bytes[flow as usize - 1] += i64::from(len);
        }
        assert!((bytes[0] - bytes[1]).abs() <= 2 * QUANTUM, "{bytes:?}");
    }

    #[test]
    fn a_flow_that_begins_goes_before_flows_with_a_backlog() {
        let mut fq = queue();
        for _ in 0..10 {
            push(&mut fq, packet(1, 1_500));
            push(&mut fq, packet(2, 1_500));
        }
        for _ in 0..4 {
            pop(&mut fq);
        }
        push(&mut fq, packet(3, 100));
        assert_eq!(pop(&mut fq), Some((3, 100)));
    }

    /// RFC 8290 section 4.2: an emptied new queue goes to the old ones and not off the lists, or a flow that sends
    /// one packet whenever its queue is empty would always be the first.
    #[test]
    fn a_flow_that_keeps_beginning_waits_for_its_turn() {
        let mut fq = queue();
        for _ in 0..20 {
            push(&mut fq, packet(1, 300));
        }
        // Six packets are its first turn; of the next one 928 bytes are left, good for four more.
        let before: Vec<_> = (0..7).map(|_| pop(&mut fq).unwrap().0).collect();
        assert_eq!(before, [1; 7]);
        let mut after = Vec::new();
        for _ in 0..3 {
            push(&mut fq, packet(2, 100));
            after.extend([pop(&mut fq).unwrap().0, pop(&mut fq).unwrap().0]);
        }
        assert_eq!(after, [2, 1, 1, 1, 1, 2], "once as a new flow, and then in its turn");
    }

    /// RFC 8290 section 4.1.
    #[test]
    fn room_is_made_at_the_head_of_the_fattest_flow() {
        let mut fq = queue();
        let limit = QueueConfig::drop_tail(10_000);
        for len in 1_000..1_006 {
            fq.push(packet(1, len), &limit, &mut |_| panic!("there is room"));
        }
        fq.push(packet(2, 3_900), &limit, &mut |_| panic!("there is room"));
        let mut dropped = Vec::new();
        fq.push(packet(2, 100), &limit, &mut |victim| dropped.push(victim.0));
        assert_eq!(dropped, [1], "10,015 bytes are too many");
        assert_eq!((fq.bytes(), fq.len()), (9_015, 7));
        let mut left: Vec<_> = std::iter::from_fn(|| pop(&mut fq)).collect();
        left.sort_unstable();
        let first: Vec<_> = (1_001..1_006).map(|len| (1, len)).collect();
        assert_eq!(left, [first, vec![(2, 100), (2, 3_900)]].concat());
        assert_eq!((fq.bytes(), fq.len()), (0, 0));
    }

    #[test]
    fn flows_spread_over_the_queues() {
        let fq = queue();
        let used: std::collections::BTreeSet<_> = (0..100).map(|flow| fq.flow_of(flow)).collect();
        // Of 100 flows on 1,024 queues, 4.7 share one with an earlier flow on average.
        assert!(used.len() >= 88, "{} queues for 100 flows", used.len());
    }
}
