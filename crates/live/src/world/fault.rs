//! What breaks in a live load. Answers are broken by the servers, as in the virtual world; connections by the emulator, which is told of
//! each that is to be, before its first packet: so the n-th connection to a host is the n-th that the browser opens, in both worlds.

use std::io;
use std::net::{IpAddr, SocketAddr};

use base::{Instant, Rng};
use load::{Route, Setup};
use mio::net::TcpStream;
use origin::{Fault, FaultKind, Faults};

use super::connection::dial;
use crate::emulator::{Fate, Flow, Handle, Link};
use crate::namespace::NEAR_V6;

/// What goes wrong at the servers, drawn as in the virtual world.
pub(super) fn of(setup: &Setup, seed: u64) -> Faults {
    Faults::new(setup.faults.hosts.clone(), Rng::new(seed).substream("faults"))
}

/// What goes wrong with connections.
pub(super) struct Misfortune {
    faults: Faults,
    /// Connections that the browser has tried to make, by host.
    dialled: Vec<u32>,
    /// When the navigation began, on the emulator's clock.
    start: Instant,
    /// Nothing that is sent over IPv6 arrives.
    loses_ipv6: bool,
}

impl Misfortune {
    pub fn new(setup: &Setup, faults: Faults, hosts: usize) -> Self {
        let loses_ipv6 = setup.ipv6.as_ref().is_some_and(|ipv6| ipv6.route == Route::Lost);
        Self { faults, dialled: vec![0; hosts], start: Instant::ZERO, loses_ipv6 }
    }

    /// The navigation begins.
    pub fn begin(&mut self, emulator: &Handle) {
        self.start = emulator.clock().now();
    }

    /// What becomes of the next connection to a host, by its index and name, at this address.
    fn fate(&mut self, (host, name): (u32, &str), to: IpAddr) -> Fate {
        let n = &mut self.dialled[host as usize];
        let refused = self.faults.refuses(name, *n);
        *n += 1;
        let vanishes = self.faults.vanishes(name).map(|at| self.start + at.since(Instant::ZERO));
        let gone = if self.loses_ipv6 && to.is_ipv6() { Some(Instant::ZERO) } else { vanishes };
        Fate { refused, gone }
    }

    /// Begins to connect to a host.
    pub fn dial(&mut self, link: &Link, host: (u32, &str), to: SocketAddr) -> io::Result<TcpStream> {
        let near = if to.is_ipv6() { NEAR_V6.into() } else { link.block().near().into() };
        match self.fate(host, to.ip()) {
            fate if fate == Fate::default() => TcpStream::connect(to),
            fate => dial(near, to, |near| link.handle().destine(Flow { near, far: to }, fate)),
        }
    }
}

/// What of a setup's faults this world cannot do, in words.
pub(super) fn unmet(setup: &Setup) -> Vec<String> {
    let any = |hit: &dyn Fn(&Fault) -> bool| setup.faults.hosts.iter().any(hit);
    let cases = [
        (
            any(&|f| matches!(f.kind, FaultKind::Reset { .. })),
            "a reset takes along what the kernel had not sent yet",
        ),
        (setup.faults.network_change.is_some(), "the network does not change"),
        (setup.faults.restart.is_some(), "the browser does not end and start again"),
    ];
    cases.into_iter().filter(|(is_asked, _)| *is_asked).map(|(_, what)| what.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use base::Duration;
    use client::Transport;
    use origin::{Often, Whom};

    use super::*;

    fn fault(kind: FaultKind, often: Often) -> Fault {
        Fault { kind, whom: Whom::Host("a.example".into()), often }
    }

    #[test]
    fn what_a_live_load_cannot_break_it_says() {
        let mut setup = Setup::new(Transport::Http1);
        assert!(unmet(&setup).is_empty());
        setup.faults.hosts = vec![
            fault(FaultKind::Hang, Often::Once),
            fault(FaultKind::Refuse, Often::Share(0.5)),
            fault(FaultKind::Vanish { at: Duration::ZERO }, Often::Always),
        ];
        assert!(unmet(&setup).is_empty(), "these it can");
        setup.faults.hosts = vec![fault(FaultKind::Reset { after: None }, Often::Once)];
        setup.faults.restart = Some(Duration::ZERO);
        assert_eq!(unmet(&setup).len(), 2);
    }

    #[test]
    fn the_nth_connection_to_a_host_meets_what_is_drawn_for_it_from_the_navigation_on() {
        let at = Duration::from_millis(300);
        let faults =
            vec![fault(FaultKind::Refuse, Often::Share(0.5)), fault(FaultKind::Vanish { at }, Often::Always)];
        let faults = Faults::new(faults, Rng::new(1));
        let (v4, v6) = ("100.66.0.2".parse().unwrap(), "2001:db8::1".parse().unwrap());
        let mut setup = Setup::new(Transport::Http1);
        let mut misfortune = Misfortune::new(&setup, faults.clone(), 2);
        misfortune.start = Instant::from_nanos(7);
        for n in 0..20 {
            let fate = misfortune.fate((1, "a.example"), v4);
            assert_eq!(fate.refused, faults.refuses("a.example", n));
            assert_eq!(fate.gone, Some(Instant::from_nanos(300_000_007)));
            assert_eq!(misfortune.fate((0, "b.example"), v6), Fate::default());
        }
        setup.ipv6 = Some(load::Ipv6 { which: load::Which::Share(1.0), route: Route::Lost });
        let mut misfortune = Misfortune::new(&setup, Faults::new(Vec::new(), Rng::new(1)), 1);
        let lost = Fate { gone: Some(Instant::ZERO), refused: false };
        assert_eq!(
            (misfortune.fate((0, "b.example"), v6), misfortune.fate((0, "b.example"), v4)),
            (lost, Fate::default())
        );
    }
}
