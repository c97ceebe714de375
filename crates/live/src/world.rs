//! The live world: one page load over the kernel's TCP and real TLS, across an emulated link.
//!
//! [`load`] does what the virtual world's `sim::load` does, with the same [`Setup`], and gives the same [`Load`]. The browser, the
//! client, the origins and their engines are the same code; what carries their bytes is real:
//!
//! ```text
//!  near network                        emulator                    far network
//!  browser::Browser                                                 serve::Server: every host an address of its own
//!  kernel TCP, BoringSSL ── TUN ── link::Path both ways ── TUN ── kernel TCP, BoringSSL
//!  stub resolver                       + each host's distance       name server
//! ```
//!
//! Networks, servers and certificates are made for the load and gone after it, so that no cached route metric, ticket or connection
//! of one load helps another. Three threads: browser, servers, emulator.
//!
//! # What is not as the setup says
//!
//! The kernel is what it is. What of a [`tcp::Config`] it has no knob for is listed in [`Run::unmet`], load by load; what it has
//! one for is set, read back and given as [`Run::kernel`]. Besides:
//!
//! * TLS takes the processor time that it takes, which is not the setup's.
//! * A look-up is a UDP query across the link; the name server adds what the setup's look-up time exceeds the round trip by. A setup
//!   whose look-ups cost nothing has its names known beforehand.
//! * What a plan breaks is broken as in the virtual world, which connection or answer being drawn likewise: by the servers what is theirs,
//!   and by the emulator what is the network's; it refuses a connection at the server's end of the link. A reset takes along what the
//!   server's kernel had not sent yet. When the network changes the near end's device gets other addresses; what is sent to the old ones or
//!   comes from them the emulator drops. An application that ends is another browser in the same process.
//! * The n-th packet is lost as in the virtual world only as long as it is the same packet: the kernel's acknowledgements are its
//!   own. Under loss, compare medians.
//!
//! # What is not known of the load
//!
//! Of each connection's [`tcp::Stats`] what `TCP_INFO` (tcp(7)) tells: segments, bytes, retransmissions, timeouts, the round-trip
//! time, cwnd and ssthresh. The other counters stay zero.

mod connection;
mod dns;
mod driver;
mod fault;
mod kernel;
mod prime;
mod stage;
mod upkeep;

use std::fmt;
use std::io;
use std::sync::OnceLock;

use load::{Load, Setup};
use page::Page;

use crate::emulator::Check;
use crate::namespace::{self, Privilege};
use crate::tls::{self, Authority};

pub use kernel::{Kernel, Knob};
pub use upkeep::Upkeep;

/// What lives longer than a load: the right to make networks, and whose certificates are believed.
#[derive(Debug)]
pub struct World {
    privilege: Privilege,
    /// Made when it is first needed.
    authority: OnceLock<Authority>,
}

/// A load, and what is known of how it was made.
#[derive(Debug)]
pub struct Run {
    /// What came of it.
    pub load: Load,
    /// What the emulated link was asked for and did.
    pub link: Check,
    /// What the kernel was asked for and had.
    pub kernel: Kernel,
    /// How the browser's side and the servers had the processor.
    pub upkeep: [Upkeep; 2],
    /// What of the setup this world could not do, each once, in words.
    pub unmet: Vec<String>,
}

/// Why there was no load: nothing that a page or a network could do, but the machine.
#[derive(Debug)]
pub enum Error {
    /// No network could be made.
    Network(namespace::Error),
    /// TLS could not be set up.
    Tls(tls::Error),
    /// A socket, a thread or a device failed.
    Machine {
        /// What was to be done.
        what: &'static str,
        /// What the system answered.
        source: io::Error,
    },
}

impl Error {
    fn machine(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Machine { what, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Network(e) => e.fmt(f),
            Error::Tls(e) => e.fmt(f),
            Error::Machine { what, source } => write!(f, "cannot {what}: {source}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<namespace::Error> for Error {
    fn from(e: namespace::Error) -> Self {
        Self::Network(e)
    }
}

impl From<tls::Error> for Error {
    fn from(e: tls::Error) -> Self {
        Self::Tls(e)
    }
}

impl World {
    /// A world for loads, given the right to make networks.
    pub fn new(privilege: Privilege) -> Self {
        Self { privilege, authority: OnceLock::new() }
    }

    /// Loads `page`, which must be valid, and what the setup has behind and beside it, and says what came of it. Takes the time that the load takes, and some 50 ms more. Several
    /// loads may go on at once, on threads of their own: they share nothing but the processor.
    ///
    /// # Errors
    /// If the machine does not let it; a page that cannot be loaded is no error, but an incomplete load.
    pub fn load(&self, page: &Page, setup: &Setup, seed: u64) -> Result<Run, Error> {
        let authority = match &setup.tls {
            None => None,
            Some(tls) => Some(self.authority(tls.signature)?),
        };
        let whole = setup.furnish(page);
        let stage = stage::Stage::build(self.privilege, &whole, setup, seed, authority)?;
        let driven = driver::Driver::setup(setup, &stage);
        let near = driver::Driver::new(&whole, &driven, &stage).run()?;
        stage.strike(near)
    }

    fn authority(&self, signature: ::tls::Signature) -> Result<&Authority, Error> {
        if self.authority.get().is_none() {
            // Another load may have been faster; then its authority is as good.
            let _ = self.authority.set(Authority::new(signature)?);
        }
        Ok(self.authority.get().expect("it has just been set"))
    }
}

#[cfg(test)]
mod tests;
