//! What SPDY, HTTP/2 and HTTP/3 share once their framing is taken away: which directions of a stream are still
//! open ([`Lifecycle`]), how much of it may be sent ([`SendWindow`], [`RecvWindow`], [`WindowPolicy`]) and who sends
//! next ([`Scheduler`]).
//!
//! None of the three knows a frame, a stream table or the other two. An engine keeps a `Lifecycle`, a `SendWindow`
//! and a `RecvWindow` in each of its streams and one `Scheduler` of stream ids beside its table. Positions are
//! absolute (bytes since the stream began), as in HTTP/3; the protocols that speak in increments take differences.
//!
//! Read first: RFC 9113 §5.1 and §5.2 (HTTP/2 states and windows; SPDY's are their ancestors), RFC 9000 §3 and §4,
//! RFC 9218 §10 (what a server may do with priorities).
//!
//! ```
//! use base::{Duration, Instant};
//! use mux::{Fairness, RecvWindow, Scheduler, SendWindow, WindowPolicy};
//!
//! let mut ready = Scheduler::new(Fairness::Strict);
//! ready.push(3, "image");
//! ready.push(0, "document");
//! assert_eq!(ready.pop(), Some("document"));
//!
//! let mut theirs = SendWindow::new(65_536);
//! let mut ours = RecvWindow::new(WindowPolicy::FIXED_64K, 65_536);
//! theirs.take(40_000);
//! ours.receive(40_000).unwrap();
//! let credit = ours.consume(Instant::ZERO, 40_000, None).expect("more than 32 KB were read");
//! theirs.credit(credit, i64::from(i32::MAX)).unwrap();
//! assert_eq!(theirs.available(), 65_536);
//! ```

mod life;
mod sched;
mod window;

pub use life::Lifecycle;
pub use sched::{Fairness, LEVELS, Scheduler};
pub use window::{Exceeded, Overflow, RecvWindow, SendWindow, Threshold, WindowPolicy};
