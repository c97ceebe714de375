//! Round-trip times and the retransmission timeout (RFC 6298).

use base::Duration;

/// The longest timeout (RFC 6298 §2.5 allows any from 60 s on; Linux has 120 s).
const RTO_MAX: Duration = Duration::from_secs(120);

/// RFC 6298's estimator, with one thing of Linux's: the *variance term* has the floor, not the sum. A timeout is
/// never below SRTT + `rto_min`, however steady the path. (Linux also keeps the greatest deviation of each round trip,
/// which reacts faster and forgets slower; that is left out.)
#[derive(Clone, Debug)]
pub(crate) struct Rtt {
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// The least sample so far.
    pub min: Duration,
    /// The newest sample.
    pub latest: Duration,
    var: Duration,
    /// Without back-off.
    base: Duration,
    /// `rto()` is `base` doubled so many times.
    back_off: u32,
    rto_min: Duration,
}

impl Rtt {
    /// An estimator without a sample, whose timeout is `initial`.
    pub fn new(initial: Duration, rto_min: Duration) -> Self {
        let zero = Duration::ZERO;
        Self { srtt: None, min: Duration::MAX, latest: zero, var: zero, base: initial, back_off: 0, rto_min }
    }

    /// Takes a measurement, which must not be ambiguous (§3, Karn's algorithm). Ends the back-off.
    pub fn sample(&mut self, rtt: Duration) {
        self.min = self.min.min(rtt);
        self.latest = rtt;
        let srtt = match self.srtt {
            None => {
                self.var = rtt / 2; // §2.2
                rtt
            }
            Some(srtt) => {
                // §2.3, α = 1/8 and β = 1/4.
                let deviation = srtt.max(rtt) - srtt.min(rtt);
                self.var = self.var - self.var / 4 + deviation / 4;
                srtt - srtt / 8 + rtt / 8
            }
        };
        self.srtt = Some(srtt);
        self.base = (srtt + (self.var * 4).max(self.rto_min)).min(RTO_MAX);
        self.back_off = 0;
    }

    /// The timeout as it is now.
    pub fn rto(&self) -> Duration {
        (self.base * (1 << self.back_off)).min(RTO_MAX)
    }

    /// A timer fired: the next one takes twice as long (§5.5).
    pub fn back_off(&mut self) {
        self.back_off = (self.back_off + 1).min(16);
    }

    /// The peer answered, so what looked like silence was not.
    pub fn end_back_off(&mut self) {
        self.back_off = 0;
    }

    /// §5.7: a handshake that lost its SYN and measured nothing starts with at least 3 s.
    pub fn distrust(&mut self) {
        if self.srtt.is_none() {
            self.base = self.base.max(Duration::from_secs(3));
            self.back_off = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// RFC 6298 §2.2 and §2.3 worked by hand: R = 100 gives SRTT 100, RTTVAR 50, RTO 300; R' = 180 then gives
    /// RTTVAR 37.5 + 20 and SRTT 87.5 + 22.5.
    #[test]
    fn the_timeout_follows_the_rfc() {
        let mut rtt = Rtt::new(ms(1000), ms(200));
        assert_eq!(rtt.rto(), ms(1000));
        rtt.sample(ms(100));
        assert_eq!((rtt.srtt, rtt.rto()), (Some(ms(100)), ms(300)));
        rtt.sample(ms(180));
        assert_eq!(rtt.srtt, Some(ms(110)));
        assert_eq!(rtt.rto(), Duration::from_millis_f64(110.0 + 4.0 * 57.5));
    }

    #[test]
    fn a_steady_path_still_has_the_floor_above_its_srtt() {
        let mut rtt = Rtt::new(ms(1000), ms(200));
        for _ in 0..100 {
            rtt.sample(ms(40));
        }
        let excess = rtt.rto() - rtt.srtt.unwrap();
        assert_eq!(excess, ms(200));
    }

    /// RFC 6298 §5.5 and §2.5; Karn's algorithm in the form of §3: only a sample ends the back-off.
    #[test]
    fn back_off_doubles_up_to_the_bound_and_ends_with_a_sample() {
        let mut rtt = Rtt::new(ms(3000), ms(200));
        let seen: Vec<_> = std::iter::repeat_with(|| {
            rtt.back_off();
            rtt.rto().as_micros() / 1_000_000
        })
        .take(7)
        .collect();
        assert_eq!(seen, [6, 12, 24, 48, 96, 120, 120]);
        rtt.sample(ms(100));
        assert_eq!(rtt.rto(), ms(300));
    }
}
