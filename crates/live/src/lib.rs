//! The live world: the only crate with sockets, clocks, entropy and threads.
//!
//! The engines of the lower floors run here as they do in virtual time; what carries their bytes is the kernel's TCP and,
//! with the feature `tls`, BoringSSL. One [`Reactor`] turns readiness and deadlines into the `handle_*` calls that an
//! engine wants, on one thread; nothing is shared.
//!
//! * [`Clock`]: the machine's monotonic time as [`base::Instant`].
//! * [`timer`]: deadlines kept to the microsecond, or on a grid that saves energy; used by all that follows.
//! * [`Reactor`]: sleeps until a socket is ready or a deadline comes, to the nanosecond the kernel can keep.
//! * [`Stream`]: a TCP connection, in clear text or under TLS, never blocking.
//! * [`fetch`]: a client for HTTP/1.1 and SPDY.
//! * [`serve`]: a server for any [`origin::Site`].
//! * `emulator`: a link in real time, between two TUN devices (Linux).
//! * `priority`: what a program in front keeps of a processor beside one that computes behind it (Linux).
//! * `namespace`: networks of one's own without root, and TUN devices between them (Linux).
//! * [`streams`]: SPDY streams without HTTP, client and server, as Kubernetes speaks them.
//! * `world`: a page load over all of this: the live counterpart of the crate `sim` (Linux).
//! * [`tls`]: BoringSSL: ALPN, NPN, False Start, tickets, record sizes, stapling, key log.

mod clock;
#[cfg(target_os = "linux")]
pub mod emulator;
pub mod fetch;
#[cfg(target_os = "linux")]
pub mod namespace;
#[cfg(target_os = "linux")]
pub mod priority;
mod reactor;
pub mod serve;
mod socket;
mod stream;
pub mod streams;
pub mod timer;
pub mod tls;
mod wire;
#[cfg(target_os = "linux")]
pub mod world;

pub use clock::Clock;
pub use reactor::{Reactor, Ready, Waker};
pub use socket::{NOTSENT_LOWAT, prepare, tcp_stats};
pub use stream::Stream;
pub use wire::{Wire, WireStats, Written};
