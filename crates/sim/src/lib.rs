//! The virtual world: one page load in virtual time, with no privileges and no clock.
//!
//! [`load()`] builds a client, a server for every host of the page, and one access link that all of them share, and
//! runs events until the page is loaded. The same page, setup and seed give the same [`Load`], on any machine.
//!
//! ```text
//!            +--------- access link ---------+     +-- the host's own share of the round trip --+
//!   client --| up:   loss, queue, rate, delay |-----| delay only                                 |-- server
//!            | down: loss, queue, rate, delay |     |                                            |
//! ```
//!
//! # What is modelled, and how far
//!
//! * Each host has its own address and its own server, unless the setup lets hosts of one party share theirs; every connection is its own pair of TCP endpoints. All share
//!   the access link, whose queues are the only ones.
//! * A name is looked up once; question and answer cross the access link. The name server stands at its far end.
//! * Servers are never short of processor time: a response is ready after its own thinking time, whatever else the
//!   server does. TLS costs the time that its configuration says.
//! * A connection is torn down with FIN when a rule of the client or server says so; at the end of the load, open
//!   connections are left as they are.
//!
//! # Common random numbers
//!
//! The seed does not depend on the transport, so that two transports are compared under the same luck: the n-th
//! packet to enter the link in either direction is lost for both or for neither; hosts have the same round trips,
//! look-ups and thinking times, the page the same computation. What is *not* the same is what the n-th packet
//! carries, since the transports send different packets.

mod connection;
mod fault;
mod names;
mod queue;
mod tap;
mod world;

use load::{Load, Setup};
use page::Page;

/// Loads `page`, which must be valid, and says what came of it.
pub fn load(page: &Page, setup: &Setup, seed: u64) -> Load {
    world::World::new(&setup.furnish(page), setup, seed).run()
}
