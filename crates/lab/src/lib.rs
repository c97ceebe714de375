//! Plans, runs, paired statistics and result files.
//!
//! * [`result`]: the rows of a run folder.
//! * [`summary`]: what a run says, in one value.

mod compare;
pub mod critical;
pub mod error;
pub mod folder;
pub mod network;
pub mod pages;
pub mod plan;
mod published;
pub mod result;
pub mod run;
pub mod setting;
pub mod stats;
pub mod summary;
mod words;

pub use error::Error;

#[cfg(test)]
mod scratch;
