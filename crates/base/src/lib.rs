//! What every floor of Velodrome stands on.
//!
//! * [`time`]: [`Instant`] and [`Duration`] in whole nanoseconds, and [`Bitrate`], which turns bytes into time.
//!   Nobody here reads a clock: time is always an argument.
//! * [`rng`]: the seeded generator. A substream is named, so that a draw added in one place moves no other.
//! * [`chunk`]: bytes in flight. A [`Chunk`] is either real bytes (heads, frames) or a *range* of a body that is
//!   never materialised, which is what lets a virtual load of megabytes cost what its headers cost.
//! * [`message`]: request and response heads as the engines exchange them with what is above.

pub mod chunk;
pub mod message;
pub mod rng;
pub mod time;

pub use chunk::{BodyRange, Chunk, ChunkQueue};
pub use message::{Field, Fields, RequestHead, ResponseHead};
pub use rng::Rng;
pub use time::{Bitrate, Duration, Instant};
