//! Medians, means and how sure they are.

use serde::{Deserialize, Serialize};

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
