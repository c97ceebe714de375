//! Things that break at a server, as data: which connections are refused, which requests never get an answer, which answers are
//! cut off, which hosts go away.
//!
//! What is hit is drawn from the seed by *name*, not by what happened before: the n-th connection to a host, the n-th time that a
//! resource is asked for. So two transports under one seed lose the same answers, and what is hit at some chance is hit at every
//! higher one. A host that refuses its first two connections does hurt them differently: HTTP/1.1 has more of them to lose.

use base::{Chunk, Duration, Instant, Rng};
use page::{Page, ResourceId};

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The host answers a connection's SYN with a RST (RFC 9293 §3.10.7.1): nobody listens.
    Refuse,
    /// The request is read and never answered. Over HTTP/1.1 what was pipelined behind it waits too; over SPDY the other streams of
    /// the session go on.
    Hang,
    /// The connection is reset once so much of the answer's body has arrived: so many bytes, or half of it. It takes along what
    /// else was on it. Bodies that are no longer than that are whole; so are empty ones.
    Reset {
        /// Bytes of the body; half of it if there are none said.
        after: Option<u64>,
    },
    /// From this moment on no packet reaches the host and none comes from it, for good.
    Vanish {
        /// Since the navigation began.
        at: Duration,
    },
}

/// Whom it befalls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Whom {
    /// Every host, or every resource.
    All,
    /// The host of this name; its resources.
    Host(String),
    /// What has this path and query: on this host, or on any.
    Resource(Option<String>, String),
}

/// How often.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Often {
    /// Each time.
    Always,
    /// The first connection to a host; the first time that a resource is asked for.
    Once,
    /// Each time by this chance, 0 to 1, whatever happened before. Of hosts that vanish: each host by this chance.
    Share(f64),
}

/// One thing that goes wrong.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// Whom it befalls.
    pub whom: Whom,
    /// How often.
    pub often: Often,
}

/// What becomes of an answer that is not given as it should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// It never comes.
    Hang,
    /// The connection is reset after so many bytes of its body.
    Reset(u64),
}

/// The faults of one load.
#[derive(Clone, Debug)]
pub struct Faults {
    faults: Vec<Fault>,
    rng: Rng,
}

impl Faults {
    /// These, drawn from `rng`.
    pub fn new(faults: Vec<Fault>, rng: Rng) -> Self {
        Self { faults, rng }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// Whether the `n`-th connection to the host called `name`, from 0, is refused.
    pub fn refuses(&self, name: &str, n: u32) -> bool {
        let kind = |kind: &FaultKind| *kind == FaultKind::Refuse;
        self.hits(name, None, n, &format!("connection {n} to {name}")).any(|fault| kind(&fault.kind))
    }

    /// When the host called `name` goes away, if it does.
    pub fn vanishes(&self, name: &str) -> Option<Instant> {
        let at = |fault: &Fault| match fault.kind {
            FaultKind::Vanish { at } => Some(Instant::ZERO + at),
            _ => None,
        };
        self.hits(name, None, 0, &format!("host {name}")).filter_map(at).min()
    }

    /// What becomes of the answer when `resource` of `page` is asked for, for the `n`-th time, from 0. The first fault that hits
    /// it counts.
    pub fn answer(&self, page: &Page, resource: ResourceId, body: &Chunk, n: u32) -> Option<Broken> {
        let resource = &page.resources[resource as usize];
        let name = &page.hosts[resource.host as usize].name;
        let path = std::str::from_utf8(&resource.path).unwrap_or_default();
        let broken = |fault: &Fault| match fault.kind {
            FaultKind::Hang => Some(Broken::Hang),
            FaultKind::Reset { after } => {
                let after = after.unwrap_or(body.len() / 2);
                (after < body.len()).then_some(Broken::Reset(after))
            }
            FaultKind::Refuse | FaultKind::Vanish { .. } => None,
        };
        self.hits(name, Some(path), n, &format!("answer {n} to {name}{path}")).find_map(broken)
    }

    /// The faults that hit something of a host; `path` is that of a resource, `occasion` what a chance is drawn for.
    fn hits<'a>(
        &'a self,
        name: &'a str,
        path: Option<&'a str>,
        n: u32,
        occasion: &'a str,
    ) -> impl Iterator<Item = &'a Fault> {
        let hits = move |(i, fault): &(usize, &Fault)| {
            let meant = match (&fault.whom, path) {
                (Whom::All, _) => true,
                (Whom::Host(host), _) => host.eq_ignore_ascii_case(name),
                (Whom::Resource(host, wanted), Some(path)) => {
                    host.as_ref().is_none_or(|host| host.eq_ignore_ascii_case(name)) && wanted == path
                }
                (Whom::Resource(..), None) => false,
            };
            meant
                && match fault.often {
                    Often::Always => true,
                    Often::Once => n == 0,
                    Often::Share(p) => {
                        self.rng.substream(&format!("fault {i}")).substream(occasion).chance(p)
                    }
                }
        };
        self.faults.iter().enumerate().filter(hits).map(|(_, fault)| fault)
    }
}

#[cfg(test)]
mod tests;
