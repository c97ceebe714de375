//! CoDel, RFC 8289. Names follow its pseudocode (section 5).

use base::{Duration, Instant};

use crate::queue::{Fifo, Queued};

/// Acceptable standing delay (RFC 8289 section 4: 5 to 10 % of the interval).
pub(crate) const TARGET: Duration = Duration::from_millis(5);
/// The time over which the delay must not stay above the target: a worst-case round trip (section 4).
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

    /// The packet to send at `now` (section 5.5, `dequeue`); what is dropped goes to `drop`.
    pub fn pop<P>(
        &mut self,
        fifo: &mut Fifo<P>,
        now: Instant,
        drop: &mut impl FnMut(P),
    ) -> Option<Queued<P>> {
        let (mut packet, mut ok_to_drop) = self.take(fifo, now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            // A large backlog may ask for several drops at once, hence a loop.
            while self.dropping && now >= self.drop_next {
                packet.into_iter().for_each(|victim| drop(victim.packet));
                self.count += 1;
                (packet, ok_to_drop) = self.take(fifo, now);
                if ok_to_drop {
                    self.drop_next = control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            packet.into_iter().for_each(|victim| drop(victim.packet));
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

/// The time of the next drop. The interval shrinks with the square root of the number of drops, because a TCP's
/// throughput falls with the square root of its loss: so the throughput falls linearly (section 3.3).
fn control_law(t: Instant, count: u32) -> Instant {
    t + INTERVAL.mul_f64(1.0 / f64::from(count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// A queue whose head has always waited for `sojourn`, taken from once a millisecond over `span_ms`; returns
    /// the milliseconds at which something was dropped.
    fn drops(codel: &mut CoDel, sojourn: Duration, span_ms: std::ops::Range<u64>) -> Vec<u64> {
        let mut out = Vec::new();
        for t in span_ms {
            let mut fifo = Fifo::new();
            for _ in 0..50 {
                fifo.push(Queued {
                    at: Instant::from_nanos(ms(t).as_nanos() - sojourn.as_nanos()),
                    len: 1_500,
                    packet: (),
                });
                codel.see(1_500);
            }
            let mut dropped = 0;
            codel.pop(&mut fifo, ms(t), &mut |()| dropped += 1).unwrap();
            out.extend((0..dropped).map(|_| t));
        }
        out
    }

    /// RFC 8289 section 5.5: the first drop after an interval above the target, the n-th an interval / √n after the
    /// one before.
    #[test]
    fn drops_come_at_the_times_of_the_control_law() {
        let mut codel = CoDel::new();
        let measured = drops(&mut codel, Duration::from_millis(50), 1_000..2_000);
        let mut expected = vec![1_100];
        let mut next = 1_100.0;
        for n in 1.. {
            next += 100.0 / f64::from(n).sqrt();
            if next > 1_999.0 {
                break;
            }
            expected.push(f64::ceil(next - 1e-6) as u64);
        }
        assert_eq!(measured, expected);
        assert!(measured.len() > 20);
    }

    #[test]
    fn nothing_is_dropped_below_the_target_nor_before_an_interval_has_passed() {
        let mut codel = CoDel::new();
        assert_eq!(drops(&mut codel, Duration::from_micros(4_999), 1_000..5_000), []);
        assert_eq!(drops(&mut codel, Duration::from_millis(5), 5_000..5_100), []);
        // One packet below the target starts the interval anew.
        drops(&mut codel, Duration::ZERO, 5_100..5_101);
        assert_eq!(drops(&mut codel, Duration::from_millis(5), 5_101..5_202), [5_201]);
    }

    /// RFC 8289 section 5.6: no drops with a packet or less behind the head, however long it waited.
    #[test]
    fn the_last_packet_is_never_dropped() {
        let mut codel = CoDel::new();
        codel.see(1_500);
        let mut dropped = 0;
        for t in 1_000..3_000 {
            let mut fifo = Fifo::new();
            for _ in 0..2 {
                fifo.push(Queued { at: Instant::ZERO, len: 1_500, packet: () });
            }
            codel.pop(&mut fifo, ms(t), &mut |()| dropped += 1);
        }
        assert_eq!(dropped, 0);
    }

    /// RFC 8289 section 5.5: dropping resumes at the rate that was needed last, if that is not long ago.
    #[test]
    fn a_drop_state_entered_again_soon_goes_on_where_the_last_one_stopped() {
        let gap = |pause_ms: u64| {
            let mut codel = CoDel::new();
            drops(&mut codel, Duration::from_millis(50), 1_000..2_000);
            drops(&mut codel, Duration::ZERO, 2_000..2_001);
            let again = 2_000 + pause_ms;
            let times = drops(&mut codel, Duration::from_millis(50), again..again + 1_000);
            times[1] - times[0]
        };
        assert!(gap(100) < 25, "{} ms", gap(100));
        assert_eq!(gap(3_000), 100);
    }
}
