//! How the congestion window grows after slow start and by how much a loss cuts it. Everything is in segments, as Linux
//! counts: a window of ten is ten segments, short ones too.
//!
//! Slow start itself, recovery and idle restart belong to the sender: they are the same for both.

use base::{Duration, Instant};

use crate::hystart::{HyStart, Sample};

/// Which algorithm governs the congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Congestion {
    /// RFC 5681: one segment a round trip, half after a loss.
    Reno,
    /// RFC 9438 as Linux has it, whose default it is since 2.6.19.
    Cubic,
}

/// The state of either. Copied whole, so that a spurious timeout can be undone.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Controller {
    Reno(Reno),
    Cubic(Cubic),
}

/// What an acknowledgement says, for congestion avoidance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack {
    pub now: Instant,
    /// Segments it newly acknowledged that slow start did not already use up.
    pub segments: u32,
}

impl Controller {
    pub fn new(which: Congestion, hystart: bool) -> Self {
        match which {
            Congestion::Reno => Controller::Reno(Reno::default()),
            Congestion::Cubic => Controller::Cubic(Cubic::new(hystart)),
        }
    }

    /// How long an acknowledgement took; whether slow start is to end at the present window.
    pub fn on_delay(&mut self, sample: &Sample) -> bool {
        match self {
            Controller::Reno(_) => false,
            Controller::Cubic(cubic) => cubic.on_delay(sample),
        }
    }

    /// A loss: gives the new `ssthresh`.
    pub fn on_loss(&mut self, cwnd: u32) -> u32 {
        match self {
            // RFC 5681 §3.1 equation 4, of cwnd and not of what is in flight, as Linux does: growth is already
            // bound to use.
            Controller::Reno(_) => (cwnd / 2).max(2),
            Controller::Cubic(cubic) => cubic.on_loss(cwnd),
        }
    }

    /// A timeout: gives the new `ssthresh`. What was learned about the path is forgotten (RFC 9438 §4.8).
    pub fn on_timeout(&mut self, cwnd: u32) -> u32 {
        let ssthresh = self.on_loss(cwnd);
        match self {
            Controller::Reno(reno) => *reno = Reno::default(),
            Controller::Cubic(cubic) => *cubic = Cubic::new(cubic.hystart.is_some()),
        }
        ssthresh
    }

    /// Congestion avoidance: gives the new `cwnd`.
    pub fn avoid(&mut self, cwnd: u32, ack: Ack) -> u32 {
        match self {
            Controller::Reno(reno) => reno.avoid(cwnd, ack.segments),
            Controller::Cubic(cubic) => cubic.avoid(cwnd, ack),
        }
    }

    /// The sender was idle for `gap`: that time must not count as time in which CUBIC grew (RFC 9438 §5.8).
    pub fn on_idle(&mut self, gap: Duration) {
        if let Controller::Cubic(Cubic { epoch: Some(epoch), .. }) = self {
            epoch.start += gap;
        }
    }
}

/// RFC 5681 §3.1: one segment for every window acknowledged.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Reno {
    acked: u32,
}

impl Reno {
    fn avoid(&mut self, cwnd: u32, segments: u32) -> u32 {
        self.acked += segments;
        let grow = self.acked / cwnd;
        self.acked -= grow * cwnd;
        cwnd + grow
    }
}

/// RFC 9438 §4.1: C, in segments a second cubed.
const C: f64 = 0.4;
/// RFC 9438 §4.6: what is left of the window after a loss.
const BETA: f64 = 0.7;
/// RFC 9438 §4.3: the growth of a Reno flow that also keeps `BETA` and has the same average window.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Linux: before any loss the window grows by at least 1/20 a round trip, as the curve alone would take too long to
/// find out what there is.
const GROWTH_MIN: f64 = 1.0 / 20.0;

/// RFC 9438. Floating point, but only +, −, × and ÷, whose results IEEE 754 fixes: every machine computes the same.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Cubic {
    /// The window before the last reduction; 0 when there was none.
    w_max: f64,
    epoch: Option<Epoch>,
    /// The least delay of the path.
    delay_min: Option<Duration>,
    hystart: Option<HyStart>,
}

/// One stretch of congestion avoidance, from a reduction to the next.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// Seconds from the start until the curve is back at its plateau.
    k: f64,
    plateau: f64,
    /// What Reno would have by now.
    w_est: f64,
    /// Parts of a segment that `cwnd` has earned and not yet got.
    fraction: f64,
}

impl Cubic {
    fn new(hystart: bool) -> Self {
        Self { hystart: hystart.then(HyStart::default), ..Self::default() }
    }

    fn on_delay(&mut self, sample: &Sample) -> bool {
        // Linux: what is measured right after a reduction is a queue that drains.
        if self.epoch.is_some_and(|epoch| sample.now.since(epoch.start) < Duration::from_secs(1)) {
            return false;
        }
        let least = self.delay_min.map_or(sample.delay, |least| least.min(sample.delay));
        self.delay_min = Some(least);
        self.hystart.as_mut().is_some_and(|hystart| hystart.on_ack(sample, least))
    }

    fn on_loss(&mut self, cwnd: u32) -> u32 {
        let w = f64::from(cwnd);
        // §4.7, fast convergence: a flow that lost below its former maximum lets go of more.
        self.w_max = if w < self.w_max { w * (1.0 + BETA) / 2.0 } else { w };
        self.epoch = None;
        ((w * BETA) as u32).max(2)
    }

    fn avoid(&mut self, cwnd: u32, ack: Ack) -> u32 {
        let w = f64::from(cwnd);
        let w_max = self.w_max;
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(ack.now, w, w_max));
        // §4.2: the curve, one round trip ahead (Linux: the shortest), and no more than half a window above cwnd. Growth is in segments for
        // each one acknowledged.
        let t = (ack.now.since(epoch.start) + self.delay_min.unwrap_or_default()).as_secs_f64() - epoch.k;
        let curve = (epoch.plateau + C * t * t * t - w) / w; // §4.4, §4.5
        let curve = if w_max == 0.0 { curve.max(GROWTH_MIN) } else { curve };
        // §4.3: towards what Reno would have, if that is more. (§4.3 gives it Reno's own slope once it is back where the reduction
        // began; Linux does not.)
        let segments = f64::from(ack.segments);
        epoch.w_est += ALPHA * segments / w;
        let reno = (epoch.w_est.floor() - w) / w;
        epoch.fraction += segments * curve.max(reno).clamp(0.0, 0.5);
        let grow = epoch.fraction as u32;
        epoch.fraction -= f64::from(grow);
        cwnd + grow
    }
}

impl Epoch {
    fn new(start: Instant, cwnd: f64, w_max: f64) -> Self {
        // §4.2 figure 2; above the old maximum, or without one, the curve starts at its plateau (§4.8).
        let k = if cwnd < w_max { cube_root((w_max - cwnd) / C) } else { 0.0 };
        Self { start, k, plateau: cwnd.max(w_max), w_est: cwnd, fraction: 0.0 }
    }
}

/// The cube root of `a` ≥ 0 by Newton's method: `f64::cbrt` may differ in the last bit from one machine to another.
fn cube_root(a: f64) -> f64 {
    let mut x = 1.0;
    while x * x * x < a {
        x *= 2.0;
    }
    // From within a factor of two above (for a ≥ 1/8), seven steps reach the last bits.
    for _ in 0..7 {
        x -= (x - a / (x * x)) / 3.0;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a window a round trip for `seconds` and gives the window after each.
    fn grow(cc: &mut Controller, mut cwnd: u32, rtt: Duration, seconds: f64) -> Vec<u32> {
        let rounds = (seconds / rtt.as_secs_f64()) as u64;
        cc.on_delay(&Sample { now: Instant::ZERO, una: 1, nxt: 1, cwnd, slow_start: false, delay: rtt });
        let mut seen = Vec::new();
        for round in 0..rounds {
            let window = cwnd;
            for _ in 0..window {
                cwnd = cc.avoid(cwnd, Ack { now: Instant::ZERO + rtt * round, segments: 1 });
            }
            seen.push(cwnd);
        }
        seen
    }

    /// RFC 5681 §3.1.
    #[test]
    fn reno_halves_and_then_gains_a_segment_a_round_trip() {
        let mut cc = Controller::new(Congestion::Reno, false);
        assert_eq!(cc.on_loss(20), 10);
        assert_eq!(cc.on_loss(3), 2);
        let seen = grow(&mut cc, 10, Duration::from_millis(100), 1.0);
        assert!(seen[9] == 19 || seen[9] == 20, "{seen:?}");
    }

    /// RFC 9438 §4.2: after a loss at 1000 segments the curve is back at 1000 after K = ∛(300 / 0.4) = 9.09 s, flat
    /// there, and beyond it after 2 K − ε it has gained what it had lost.
    #[test]
    fn cubic_is_back_at_its_plateau_after_k_seconds() {
        let mut cc = Controller::new(Congestion::Cubic, true);
        let cwnd = cc.on_loss(1000);
        assert_eq!(cwnd, 700);
        let seen = grow(&mut cc, cwnd, Duration::from_millis(100), 18.0);
        assert!((990..=1001).contains(&seen[90]), "{}", seen[90]);
        let early = seen[20] - seen[10];
        let flat = seen[95] - seen[85];
        assert!(flat * 10 < early, "steep first ({early} in a second), flat at the plateau ({flat})");
        assert!((1250..1320).contains(&seen[179]), "{}", seen[179]);
    }

    /// RFC 9438 §4.3: with small windows and short round trips CUBIC is no slower than a Reno that halves no more than it does: α a
    /// round trip.
    #[test]
    fn cubic_keeps_up_with_reno_on_a_short_path() {
        let mut cc = Controller::new(Congestion::Cubic, true);
        let cwnd = cc.on_loss(20);
        let rtt = Duration::from_millis(10);
        let seen = grow(&mut cc, cwnd, rtt, 0.2);
        let expected = 14.0 + 20.0 * ALPHA;
        assert!((f64::from(seen[19]) - expected).abs() <= 2.0, "{seen:?} against {expected}");
    }

    /// The curve alone, C t³, would have gained a quarter of a segment after this second.
    #[test]
    fn before_any_loss_cubic_gains_a_twentieth_a_round_trip() {
        let mut cc = Controller::new(Congestion::Cubic, true);
        let seen = grow(&mut cc, 100, Duration::from_millis(100), 1.0);
        let expected = 100.0 * 1.05f64.powi(10);
        assert!((f64::from(seen[9]) - expected).abs() <= 6.0, "{seen:?} against {expected}");
    }

    /// RFC 9438 §4.7.
    #[test]
    fn a_second_loss_below_the_first_lowers_the_plateau() {
        let mut cubic = Cubic::default();
        cubic.on_loss(100);
        assert_eq!(cubic.w_max, 100.0);
        cubic.on_loss(80);
        assert_eq!(cubic.w_max, 68.0);
    }

    /// RFC 9438 §5.8.
    #[test]
    fn idle_time_does_not_count_as_growth() {
        let rtt = Duration::from_millis(100);
        let ack = |now| Ack { now, segments: 1 };
        let mut cc = Controller::new(Congestion::Cubic, true);
        let cwnd = cc.on_loss(100);
        cc.avoid(cwnd, ack(Instant::ZERO));
        let mut idle = cc;
        idle.on_idle(Duration::from_secs(60));
        let later = Instant::ZERO + Duration::from_secs(60) + rtt;
        assert_eq!(idle.avoid(cwnd, ack(later)), cc.avoid(cwnd, ack(Instant::ZERO + rtt)));
    }

    #[test]
    fn cube_roots_are_right() {
        for a in [0.0, 0.5, 1.0, 8.0, 750.0, 1e6, 2.5e9] {
            let x = cube_root(a);
            assert!((x * x * x - a).abs() <= 1e-9 * a.max(1.0) || a < 0.125 && x < 0.1, "{a}: {x}");
        }
    }
}
