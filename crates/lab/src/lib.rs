//! Plans, runs, paired statistics and result files.
//!
//! * [`result`]: the rows of a run folder.
//! * [`summary`]: what a run says, in one value.

pub mod error;
pub mod result;
pub mod stats;
pub mod summary;

pub use error::Error;

#[cfg(test)]
mod scratch;
