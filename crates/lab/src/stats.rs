//! Medians, means and how sure they are.
//!
//! Intervals are the textbook's (Le Boudec, *Performance Evaluation of Computer and Communication Systems*, EPFL
//! Press 2010, §2.2): for a median the order statistics that a binomial law gives, which assumes only that
//! observations are independent and alike; for a mean Student's t. Pages of one site are not independent: whoever
//! shows an interval says how many sites stand behind it.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

/// A value and its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower end of the interval; `None` where there are too few observations for one.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

/// What each tail outside an interval holds at most.
const TAIL: f64 = 0.025;

/// The middle value, or the mean of the two middle ones; `None` for no values.
pub fn median(values: &[f64]) -> Option<f64> {
    middle(&sorted(values))
}

/// The median with the interval between two order statistics. Below six observations no pair of them makes 95 %.
pub fn median_estimate(values: &[f64]) -> Option<Estimate> {
    let sorted = sorted(values);
    let value = middle(&sorted)?;
    // The interval from the (k+1)th smallest to the (k+1)th largest misses the median with 2·P(B ≤ k), where B counts
    // the observations on one side of it.
    let law = Binomial::new(0.5, sorted.len() as u64).expect("½ is a probability");
    let outside = (0..sorted.len() / 2).take_while(|k| law.cdf(*k as u64) <= TAIL).last();
    let low = outside.map(|k| sorted[k]);
    let high = outside.map(|k| sorted[sorted.len() - 1 - k]);
    Some(Estimate { value, low, high })
}

/// The mean with Student's interval, for which two observations are the least.
pub fn mean_estimate(values: &[f64]) -> Option<Estimate> {
    let value = mean(values)?;
    let n = values.len() as f64;
    if values.len() < 2 {
        return Some(Estimate { value, low: None, high: None });
    }
    let variance = values.iter().map(|v| (v - value).powi(2)).sum::<f64>() / (n - 1.0);
    let law = StudentsT::new(0.0, 1.0, n - 1.0).expect("at least one degree of freedom");
    let half = law.inverse_cdf(1.0 - TAIL) * (variance / n).sqrt();
    Some(Estimate { value, low: Some(value - half), high: Some(value + half) })
}

/// The mean; `None` for no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The two-sided sign test (Conover, *Practical Nonparametric Statistics*, 3rd ed., §3.4): the probability of a split
/// at least as uneven as `plus` against `minus` if both signs were equally likely. Ties are left out by the caller;
/// without any pair the test says nothing.
pub fn sign_test(plus: u32, minus: u32) -> Option<f64> {
    let n = u64::from(plus) + u64::from(minus);
    if n == 0 {
        return None;
    }
    let law = Binomial::new(0.5, n).expect("½ is a probability");
    Some((2.0 * law.cdf(u64::from(plus.min(minus)))).min(1.0))
}

impl Estimate {
    /// The estimate with every figure rounded to `decimals` places. Results are compared byte by byte between machines,
    /// whose mathematical libraries differ in the last bit.
    pub fn rounded(self, decimals: i32) -> Self {
        let Self { value, low, high } = self;
        Self {
            value: round(value, decimals),
            low: low.map(|v| round(v, decimals)),
            high: high.map(|v| round(v, decimals)),
        }
    }
}

/// `value` to so many decimal places; never a negative zero.
pub fn round(value: f64, decimals: i32) -> f64 {
    let scale = 10f64.powi(decimals);
    (value * scale).round() / scale + 0.0
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    let upper = *sorted.get(n / 2)?;
    Some(if n % 2 == 1 { upper } else { (sorted[n / 2 - 1] + upper) / 2.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up_to(n: u32) -> Vec<f64> {
        (1..=n).rev().map(f64::from).collect()
    }

    /// As tabulated by Le Boudec, appendix A, for those n whose tightest pair is symmetric; ours always is.
    #[test]
    fn the_interval_of_a_median_is_the_tables() {
        for (n, low, high) in
            [(6, 1., 6.), (7, 1., 7.), (9, 2., 8.), (10, 2., 9.), (20, 6., 15.), (50, 18., 33.)]
        {
            let e = median_estimate(&up_to(n)).unwrap();
            assert_eq!((e.low, e.high), (Some(low), Some(high)), "n = {n}");
            assert_eq!(e.value, (1.0 + f64::from(n)) / 2.0);
        }
    }

    #[test]
    fn too_few_observations_have_no_interval() {
        assert_eq!(median_estimate(&[]), None);
        assert_eq!(median_estimate(&up_to(5)), Some(Estimate { value: 3.0, low: None, high: None }));
        assert_eq!(mean_estimate(&[7.0]), Some(Estimate { value: 7.0, low: None, high: None }));
        assert_eq!(sign_test(0, 0), None);
    }

    /// t(0.975; 9 degrees of freedom) = 2.262157; the variance of 1…10 is 55/6.
    #[test]
    fn the_interval_of_a_mean_is_students() {
        let e = mean_estimate(&up_to(10)).unwrap();
        let half = 2.262_157 * (55.0 / 6.0 / 10.0f64).sqrt();
        assert_eq!(e.value, 5.5);
        assert!((e.high.unwrap() - 5.5 - half).abs() < 1e-5 && (5.5 - e.low.unwrap() - half).abs() < 1e-5);
    }

    /// Eight of nine: one tail of the law for nine tosses is (1 + 9) / 512.
    #[test]
    fn the_sign_test_counts_the_tails_of_a_fair_coin() {
        assert!((sign_test(8, 1).unwrap() - 2.0 * 10.0 / 512.0).abs() < 1e-12);
        assert_eq!(sign_test(1, 8), sign_test(8, 1));
        assert_eq!(sign_test(4, 4), Some(1.0));
    }

    #[test]
    fn rounding_leaves_no_negative_zero() {
        assert_eq!(round(-0.0001, 2).to_bits(), 0.0f64.to_bits());
        assert_eq!(round(12.345_6, 2), 12.35);
    }
}
