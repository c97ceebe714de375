//! Virtual TCP at segment level. An [`Endpoint`] takes segments, commands and the time, and gives back segments, events
//! and its next deadline. It carries *counts* of bytes: the bytes stay with the caller, and since they arrive in order,
//! the n-th byte read at one end is the n-th written at the other.
//!
//! Read RFC 9293 first, then RFC 5681 (congestion control), 6298 (timeout), 6675 (SACK recovery) and 8985 (RACK and the
//! tail-loss probe). Where Linux differs from the RFCs, this follows Linux, and says so at the place: pages were and
//! are served by it. Two sets of constants have names, [`Config::linux_2010`] and [`Config::linux_today`].
//!
//! # Driving it
//!
//! One mutation, then drain. After each call that changes something, and for each segment that arrives, do what `serve` does
//! here; then come back at [`Endpoint::poll_timeout`]. The application is asked again before *each* segment: a sender
//! whose window is large drains its `notsent_lowat` bytes at once, and who fills it only once between two arrivals
//! sends bursts of 16 KB with a short segment at the end of each.
//!
//! ```
//! use base::{Duration, Instant};
//! use tcp::{Config, Endpoint, Event, Segment};
//!
//! fn serve(tcp: &mut Endpoint, now: Instant, to_write: &mut u64, mut send: impl FnMut(Segment)) {
//!     loop {
//!         while let Some(event) = tcp.poll_event() {
//!             assert!(!matches!(event, Event::Failed(_)));
//!         }
//!         tcp.read(now, tcp.readable());
//!         let n = tcp.writable().min(*to_write);
//!         tcp.write(n);
//!         *to_write -= n;
//!         let Some(segment) = tcp.poll_transmit(now) else { break };
//!         send(segment);
//!     }
//! }
//!
//! // A path of 50 ms each way that loses nothing and has no rate: arrivals are in order of sending.
//! let mut now = Instant::ZERO;
//! let mut ends = [Endpoint::connect(Config::linux_today(), now), Endpoint::accept(Config::linux_today(), now)];
//! let mut to_write = [300, 20_000];
//! let mut flying = std::collections::VecDeque::new();
//! serve(&mut ends[0], now, &mut to_write[0], |segment| flying.push_back((now + Duration::from_millis(50), 1, segment)));
//! while let Some((at, to, segment)) = flying.pop_front() {
//!     now = at;
//!     ends[to].handle_segment(now, &segment);
//!     serve(&mut ends[to], now, &mut to_write[to], |segment| {
//!         flying.push_back((now + Duration::from_millis(50), 1 - to, segment));
//!     });
//! }
//! assert_eq!(ends[0].stats().bytes_received, 20_000);
//! ```
//!
//! # What is here
//!
//! | | |
//! |---|---|
//! | `segment` | [`Segment`] and its length on the wire. Sequence numbers are 64 bits wide, start at 0 and never wrap |
//! | `endpoint` | handshake, its repetition, options, RST, the states; input and output |
//! | `receiver` | order, acknowledgements (delayed, quick, immediate), SACK and D-SACK, timestamps to echo |
//! | `window` | the receive window: its small beginning, its growth, autotuning |
//! | `sender` | what may go now: cwnd, the peer's window, slow start, idle restart, the one timer |
//! | `recovery` | loss: duplicates, SACK, RACK, timeout, probe; PRR or halving; spurious timeouts undone |
//! | `scoreboard` | who of the segments in flight arrived, is lost, was sent again |
//! | `congestion` | Reno and CUBIC in congestion avoidance |
//! | `hystart` | when CUBIC leaves slow start |
//! | `rtt` | round-trip times and the timeout |
//! | `wheel` | how late timers are |
//!
//! cwnd is counted in segments, as Linux counts, so a short segment costs as much of it as a full one. Nagle's algorithm is
//! off, as browsers and servers have it off (`TCP_NODELAY`).
//!
//! # What is not
//!
//! *The path must not reorder*; those of `velodrome-link` do not. RACK has its reordering window all the same, because a sender
//! cannot know.
//!
//! Left out, with what it would change: pacing and TSO (Linux without `fq` does not pace CUBIC either), ECN, Fast Open, F-RTO (spurious
//! timeouts are found by timestamps only), adaptive reordering, FACK and the detection of lost retransmissions of 2010, early
//! retransmit (Linux 3.5 to 4.9), cached metrics of earlier connections, simultaneous open, TIME-WAIT and keep-alive, PAWS
//! and all other defences against strangers: both ends are ours.
//!
//! Simpler than in Linux: the timeout's variance (RFC 6298's, with Linux's floor), the delayed acknowledgement (40 ms; Linux
//! adapts it between 40 and 200), interactive mode (from the first answer on), the receive buffer (bytes, not memory),
//! timestamps (microseconds, not milliseconds), the growth of a cwnd that is not used to the full, the clock of 2010's
//! HyStart, halving in 2010 (at once, not over a round trip).
//!
//! How far all this is from the kernel is measured: `docs/model.md` has the table, `crates/live/tests/conformance.rs` the scenarios.

mod config;
mod congestion;
mod endpoint;
mod hystart;
mod pacing;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod stats;
mod wheel;
mod window;

pub use config::{Config, Congestion, CwndGrowth, LossDetection, Reduction};
pub use endpoint::{Endpoint, Error, Event};
pub use segment::{Flags, SackBlocks, Segment, SynOptions, Timestamps};
pub use stats::Stats;
