//! What has been sent and not yet acknowledged, segment by segment: who arrived, who is lost, who was sent again.
//!
//! The number in flight is RFC 6675's *pipe*, in segments: sent − SACKed − lost + retransmitted.

use std::collections::VecDeque;

use base::{Duration, Instant};

use crate::segment::SackBlocks;

/// A segment that was sent. Segments are never split or joined afterwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub seq: u64,
    /// What it takes of the sequence space: its bytes, and one for a FIN.
    pub len: u32,
    pub fin: bool,
    pub sacked: bool,
    /// Deemed lost.
    pub lost: bool,
    /// Lost, and its retransmission is under way.
    pub resent: bool,
    /// Sent more than once, so its acknowledgement is ambiguous (RFC 6298 §3).
    pub ambiguous: bool,
    /// When it was sent last, and as the how manieth transmission: within one instant only that tells the order.
    pub at: Instant,
    pub order: u64,
}

impl Sent {
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }
}

/// What one acknowledgement delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// Segments newly known to have arrived.
    pub segments: u32,
    /// Segments that the cumulative acknowledgement took off the board, whether or not SACKed before.
    pub acked: u32,
    /// One of those had been sent more than once.
    pub ambiguous: bool,
    /// When the oldest unambiguous segment taken off was sent.
    pub acked_sent: Option<Instant>,
    /// When the first unambiguous segment newly SACKed was sent.
    pub sacked_sent: Option<Instant>,
    /// When the newest unambiguous segments of either kind were sent.
    pub acked_last: Option<Instant>,
    pub sacked_last: Option<Instant>,
    /// Later transmissions of ambiguous segments are not believed: the acknowledgement came too soon to be theirs
    /// (RFC 8985 §6.2 step 2).
    pub believe_before: Instant,
    /// The last sent of all delivered, by its order, and when that was: RACK's reference (RFC 8985 §6.2).
    pub newest: Option<(u64, Instant)>,
}

impl Delivery {
    pub fn new(believe_before: Instant) -> Self {
        Self {
            segments: 0,
            acked: 0,
            ambiguous: false,
            acked_sent: None,
            sacked_sent: None,
            acked_last: None,
            sacked_last: None,
            believe_before,
            newest: None,
        }
    }

    fn add(&mut self, sent: &Sent) {
        self.segments += 1;
        if !sent.ambiguous || sent.at <= self.believe_before {
            self.newest = self.newest.max(Some((sent.order, sent.at)));
        }
    }
}

/// The segments between SND.UNA and SND.NXT, in order, without a hole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    sent: VecDeque<Sent>,
    /// Segments taken off so far; `taken + i` names the i-th segment for good.
    taken: u64,
    sacked: u32,
    lost: u32,
    resent: u32,
    /// No segment before this one (by name) waits for its retransmission.
    first_lost: u64,
    /// The three highest SACKed sequence numbers: a segment below all of them has `DupThresh` above it.
    highest_sacked: [u64; 3],
    /// Segments before this one (by name) have been judged: each arrived, is lost, or stands in `again`.
    judged: u64,
    /// What was sent again, by name and order: RACK may find it lost once more.
    again: VecDeque<(u64, u64)>,
    /// Transmissions so far.
    order: u64,
    /// The blocks of the last SACK: what they cover need not be visited again.
    seen: SackBlocks,
}

impl Scoreboard {
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub fn len(&self) -> u32 {
        self.sent.len() as u32
    }

    /// RFC 6675 §4, in segments.
    pub fn in_flight(&self) -> u32 {
        (self.len() + self.resent).saturating_sub(self.sacked + self.lost)
    }

    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    pub fn lost(&self) -> u32 {
        self.lost
    }

    pub fn front(&self) -> Option<&Sent> {
        self.sent.front()
    }

    /// A new segment was sent. It must follow the last.
    pub fn push(&mut self, seq: u64, len: u32, fin: bool, at: Instant) {
        debug_assert!(self.sent.back().is_none_or(|last| last.end() == seq));
        let order = self.next_order();
        self.sent.push_back(Sent {
            seq,
            len,
            fin,
            sacked: false,
            lost: false,
            resent: false,
            ambiguous: false,
            at,
            order,
        });
    }

    fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// Everything before `ack` has arrived.
    pub fn acknowledge(&mut self, ack: u64, delivery: &mut Delivery) {
        while let Some(first) = self.sent.front_mut() {
            if first.end() > ack {
                if first.seq < ack {
                    // No receiver of ours takes a part of a segment; but do not lose count if one did.
                    first.len -= (ack - first.seq) as u32;
                    first.seq = ack;
                }
                break;
            }
            let first = *first;
            self.sent.pop_front();
            self.taken += 1;
            delivery.acked += 1;
            self.lost -= u32::from(first.lost);
            self.resent -= u32::from(first.resent);
            if first.sacked {
                self.sacked -= 1;
                continue;
            }
            delivery.add(&first);
            if first.ambiguous {
                delivery.ambiguous = true;
            } else {
                delivery.acked_sent.get_or_insert(first.at);
                delivery.acked_last = Some(first.at);
            }
        }
        while self.again.front().is_some_and(|(name, _)| *name < self.taken) {
            self.again.pop_front();
        }
    }

    /// Everything in `blocks` has arrived. A block at or below `ack` is a D-SACK (RFC 2883) and tells nothing here.
    pub fn sack(&mut self, blocks: &SackBlocks, ack: u64, delivery: &mut Delivery) {
        let seen = std::mem::replace(&mut self.seen, *blocks);
        for block in blocks.iter().filter(|block| block.start >= ack) {
            let mut at = block.start;
            while at < block.end {
                if let Some(old) = seen.iter().find(|old| old.contains(&at)) {
                    at = old.end;
                    continue;
                }
                let i = self.sent.partition_point(|sent| sent.end() <= at);
                let Some(sent) = self.sent.get_mut(i) else { break };
                at = sent.end();
                if sent.sacked || at > block.end {
                    continue;
                }
                sent.sacked = true;
                self.sacked += 1;
                self.lost -= u32::from(std::mem::take(&mut sent.lost));
                self.resent -= u32::from(std::mem::take(&mut sent.resent));
                delivery.add(sent);
                if !sent.ambiguous {
                    delivery.sacked_sent.get_or_insert(sent.at);
                    delivery.sacked_last = delivery.sacked_last.max(Some(sent.at));
                }
                let seq = sent.seq;
                self.note_sacked(seq);
            }
        }
    }

    fn note_sacked(&mut self, seq: u64) {
        let [low, mid, high] = &mut self.highest_sacked;
        if seq > *high {
            (*low, *mid, *high) = (*mid, *high, seq);
        } else if seq > *mid {
            (*low, *mid) = (*mid, seq);
        } else if seq > *low {
            *low = seq;
        }
    }

    /// RFC 6675 §4, `IsLost`: three segments above it arrived. The link never reorders, so it could be said of one;
    /// the real sender cannot know that. Gives the number newly lost. A lost retransmission goes unnoticed.
    pub fn lose_by_sacks(&mut self) -> u32 {
        let before = self.lost;
        while let Some(sent) = self.first_unjudged().filter(|sent| sent.seq < self.highest_sacked[0]) {
            if !sent.sacked && !sent.lost {
                self.lose((self.judged - self.taken) as usize);
            }
            self.judged += 1;
        }
        self.lost - before
    }

    fn first_unjudged(&mut self) -> Option<Sent> {
        self.judged = self.judged.max(self.taken);
        self.sent.get((self.judged - self.taken) as usize).copied()
    }

    /// RFC 8985 §6.2 step 5: lost is what was sent before transmission `newest`, and `grace` ago. Gives the number newly
    /// lost and, if something was sent before but may still come, the moment at which to look again.
    ///
    /// What was sent once is in order because it is in sequence; what was sent again is kept in order apart. So each
    /// transmission is judged once, and the cost is that of what is lost, not of the window.
    pub fn lose_by_time(&mut self, now: Instant, newest: u64, grace: Duration) -> (u32, Option<Instant>) {
        let (mut count, mut look_again) = (0, None);
        while let Some(sent) = self.first_unjudged() {
            if !sent.sacked && !sent.lost && !sent.ambiguous {
                if sent.order >= newest {
                    break;
                }
                if sent.at + grace > now {
                    look_again = Some(sent.at + grace);
                    break;
                }
                self.lose((self.judged - self.taken) as usize);
                count += 1;
            }
            self.judged += 1;
        }
        while let Some(&(name, order)) = self.again.front() {
            let i = name.checked_sub(self.taken).map(|i| i as usize);
            // A later transmission of the same segment stands further behind.
            let open = |sent: &&Sent| !sent.sacked && sent.order == order && (sent.resent || !sent.lost);
            if let Some(i) = i
                && let Some(sent) = self.sent.get(i).filter(open)
            {
                if order >= newest {
                    break;
                }
                let deadline = sent.at + grace;
                if deadline > now {
                    look_again = Some(look_again.map_or(deadline, |other: Instant| other.min(deadline)));
                    break;
                }
                self.lose(i);
                count += 1;
            }
            self.again.pop_front();
        }
        (count, look_again)
    }

    /// NewReno (RFC 6582 §3.2): the first segment is lost. Gives the number newly lost.
    pub fn lose_first(&mut self) -> u32 {
        let newly = self.sent.front().is_some_and(|first| !first.lost);
        if newly {
            self.lose(0);
        }
        u32::from(newly)
    }

    /// After a timeout, all that was not SACKed is lost (RFC 6675 §5.1, RFC 8985 §6.3).
    pub fn lose_all(&mut self) {
        for i in 0..self.sent.len() {
            if !self.sent[i].sacked {
                self.lose(i);
            }
        }
    }

    fn lose(&mut self, i: usize) {
        let sent = &mut self.sent[i];
        self.lost += u32::from(!sent.lost);
        self.resent -= u32::from(sent.resent);
        (sent.lost, sent.resent) = (true, false);
        self.first_lost = self.first_lost.min(self.taken + i as u64);
    }

    /// Nothing was lost after all: a timeout was spurious.
    pub fn unlose_all(&mut self) {
        for sent in &mut self.sent {
            (sent.lost, sent.resent) = (false, false);
        }
        (self.lost, self.resent, self.judged) = (0, 0, 0);
    }

    /// The first lost segment, now sent again; `None` when none waits.
    pub fn resend(&mut self, now: Instant) -> Option<Sent> {
        if self.lost == self.resent {
            self.first_lost = self.taken + self.sent.len() as u64;
            return None;
        }
        self.first_lost = self.first_lost.max(self.taken);
        let order = self.next_order();
        loop {
            let i = (self.first_lost - self.taken) as usize;
            self.first_lost += 1;
            let sent = &mut self.sent[i];
            if sent.lost && !sent.resent {
                (sent.resent, sent.ambiguous, sent.at, sent.order) = (true, true, now, order);
                self.resent += 1;
                self.again.push_back((self.first_lost - 1, order));
                return Some(*sent);
            }
        }
    }

    /// Whether a lost segment waits for its retransmission.
    pub fn must_resend(&self) -> bool {
        self.lost > self.resent
    }

    /// The last segment, now sent again as a probe (RFC 8985 §7.3). It does not count as lost.
    pub fn resend_last(&mut self, now: Instant) -> Option<Sent> {
        let (name, order) = (self.taken + self.sent.len() as u64, self.next_order());
        let last = self.sent.back_mut()?;
        (last.ambiguous, last.at, last.order) = (true, now, order);
        self.again.push_back((name - 1, order));
        Some(*last)
    }

    /// Without SACK, a duplicate acknowledgement says that *some* segment arrived; it is counted as if it were the
    /// SACK of one (as Linux does), so that `in_flight` falls and limited transmit works alike.
    pub fn count_duplicate(&mut self) -> bool {
        let room = self.sacked + self.lost < self.len();
        self.sacked += u32::from(room);
        room
    }

    /// Without SACK: an advance over `acked` segments explains the duplicates that the segments behind the first
    /// hole had caused.
    pub fn forget_duplicates(&mut self, acked: u32) {
        self.sacked =
            self.sacked.saturating_sub(acked.saturating_sub(1)).min(self.len().saturating_sub(self.lost));
    }

    /// Without SACK, after a timeout: duplicates are not counted any more.
    pub fn forget_all_duplicates(&mut self) {
        self.sacked = 0;
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of SACK blocks that happens to have one")]
mod tests;
