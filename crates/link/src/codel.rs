//! CoDel, RFC 8289. Names follow its pseudocode (section 5).

use base::{Duration, Instant};

use crate::queue::{Fifo, Queued};

/// Acceptable standing delay (RFC 8289 section 4.4: 5 to 10 % of the interval).
pub(crate) const TARGET: Duration = Duration::from_millis(5);
/// The time over which the delay must not stay above the target: a worst-case round trip (section 4.3).
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);

/// The state of the controller.
#[derive(Clone, Debug)]
pub(crate) struct CoDel {
    /// When it will have been above the target for an interval; `None` while below.
    first_above: Option<Instant>,
    drop_next: Instant,
    /// Packets dropped since this drop state began, and when it began.
    count: u32,
    last_count: u32,
    dropping: bool,
    /// The largest packet seen. With no more than that in the queue the line would soon idle, so nothing is dropped.
    max_packet: u32,
}

impl CoDel {
    pub fn new() -> Self {
        Self {
            first_above: None,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
            max_packet: 0,
        }
    }

    /// Takes note of a packet's size on entry.
    pub fn see(&mut self, len: u32) {
        self.max_packet = self.max_packet.max(len);
    }

    /// The packet to send at `now` (section 5.5, `dequeue`).
    pub fn pop<P>(&mut self, fifo: &mut Fifo<P>, now: Instant, dropped: &mut u64) -> Option<Queued<P>> {
        let (mut packet, mut ok_to_drop) = self.take(fifo, now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            // A large backlog may ask for several drops at once, hence a loop.
            while self.dropping && now >= self.drop_next {
                *dropped += 1;
                self.count += 1;
                (packet, ok_to_drop) = self.take(fifo, now);
                if ok_to_drop {
                    self.drop_next = control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            *dropped += 1;
            (packet, _) = self.take(fifo, now);
            self.dropping = true;
            // Soon after the last drop state, go on at about the rate that controlled the queue then.
            let delta = self.count - self.last_count;
            let recent = now.since(self.drop_next) < INTERVAL * 16;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = control_law(now, self.count);
            self.last_count = self.count;
        }
        packet
    }

    /// Takes the head, and says whether it has been above the target for an interval (section 5.6, `dodequeue`).
    fn take<P>(&mut self, fifo: &mut Fifo<P>, now: Instant) -> (Option<Queued<P>>, bool) {
        let Some(packet) = fifo.pop() else {
            self.first_above = None;
            return (None, false);
        };
        if now.since(packet.at) < TARGET || fifo.bytes <= u64::from(self.max_packet) {
            self.first_above = None;
            return (Some(packet), false);
        }
        let first_above = *self.first_above.get_or_insert(now + INTERVAL);
        (Some(packet), now >= first_above)
    }
}

/// The time of the next drop: the interval shrinks with the square root of the number of drops, which lowers the
/// throughput of a TCP linearly (section 4.5... of the control law).
fn control_law(t: Instant, count: u32) -> Instant {
    t + INTERVAL.mul_f64(1.0 / f64::from(count).sqrt())
}
