//! Virtual TCP at segment level.

mod config;
mod congestion;
mod endpoint;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod stats;
mod window;

pub use config::{Config, Congestion, CwndGrowth, LossDetection, Reduction};
pub use endpoint::{Endpoint, Error, Event};
pub use segment::{Flags, SackBlocks, Segment, SynOptions, Timestamps};
pub use stats::Stats;
