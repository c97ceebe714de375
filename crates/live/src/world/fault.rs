//! What breaks in a live load. Answers are broken by the servers, as in the virtual world; connections by the emulator, which is told of
//! each that is to be, before its first packet: so the n-th connection to a host is the n-th that the browser opens, in both worlds.

use std::io;
use std::net::SocketAddr;

use base::{Instant, Rng};
use link::Outage;
use load::{NetworkChange, Route, Setup};
use mio::net::TcpStream;
use origin::{Fault, FaultKind, Faults};

use super::Error;
use super::connection::{Connection, dial};
use super::dns::Resolver;
use super::driver::{Driver, RESOLVER, Running, browser};
use super::stage::Stage;
use crate::emulator::{Fate, Flow, NewLink};

/// What goes wrong at the servers, drawn as in the virtual world.
pub(super) fn of(setup: &Setup, seed: u64) -> Faults {
    Faults::new(setup.faults.hosts.clone(), Rng::new(seed).substream("faults"))
}

/// What goes wrong with connections and with the network.
pub(super) struct Misfortune<'s> {
    stage: &'s Stage,
    faults: Faults,
    /// Connections that the browser has tried to make, by host.
    dialled: Vec<u32>,
    /// When the navigation began, on the emulator's clock.
    start: Instant,
    /// How the network carries IPv6.
    ipv6: Option<Route>,
    /// The client has gone over to another network.
    moved: bool,
    /// The change of networks that is to come.
    network_change: Option<&'s NetworkChange>,
    /// When the application is to end.
    restart: Option<Instant>,
}

impl<'s> Misfortune<'s> {
    pub fn new(stage: &'s Stage, setup: &'s Setup, hosts: usize) -> Self {
        Self {
            stage,
            faults: stage.faults().clone(),
            dialled: vec![0; hosts],
            start: Instant::ZERO,
            ipv6: setup.ipv6.as_ref().map(|ipv6| ipv6.route),
            moved: false,
            network_change: setup.faults.network_change.as_ref(),
            restart: setup.faults.restart.map(|at| Instant::ZERO + at),
        }
    }

    /// The navigation begins.
    pub fn begin(&mut self) {
        self.start = self.stage.link().handle().clock().now();
    }

    /// When something is to happen next, counted as the browser does.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let change = self.network_change.map(|change| Instant::ZERO + change.at);
        change.into_iter().chain(self.restart).min()
    }

    /// Begins to connect to a host, by its index and name.
    pub fn dial(&mut self, (host, name): (u32, &str), to: SocketAddr) -> io::Result<TcpStream> {
        let n = &mut self.dialled[host as usize];
        let route = self.ipv6.filter(|_| to.is_ipv6()).unwrap_or(Route::Same);
        let fate = fate(&self.faults, name, *n, self.start, route);
        *n += 1;
        // Where anything can be hit all are told of, lest one has the port of another that was.
        if self.faults.is_empty() && matches!(self.ipv6, None | Some(Route::Same | Route::Longer(_))) {
            return TcpStream::connect(to);
        }
        let link = self.stage.link();
        let own = if self.moved { link.ends().near_after() } else { link.ends().near_addresses() };
        let own = own.into_iter().find(|own| own.is_ipv6() == to.is_ipv6());
        dial(own.ok_or(io::ErrorKind::AddrNotAvailable)?, to, |near| {
            link.handle().destine(Flow { near, far: to }, fate);
        })
    }

    /// The client goes over to another network: its link becomes another, and so do its addresses.
    fn change_network(&mut self, change: &NetworkChange, seed: u64) -> Result<(), Error> {
        let link = self.stage.link();
        let on_emulators_clock = |path: &link::PathConfig| {
            let later = |o: &Outage| Outage { from: self.start + o.from.since(Instant::ZERO), ..*o };
            link::PathConfig { outages: path.outages.iter().map(later).collect(), ..path.clone() }
        };
        let (up, down) = (on_emulators_clock(&change.up), on_emulators_clock(&change.down));
        let left = link.ends().near_addresses();
        let changed = link.handle().change_link(NewLink { up, down, left, seed });
        // Nothing may be sent from the new addresses before: the old link would lose it.
        let gone = |_| Error::machine("change the link")(io::Error::other("the emulator has ended"));
        changed.recv().map_err(gone)?;
        link.ends().readdress()?;
        self.moved = true;
        self.stage.set_look_up(change.dns, change.up.delay + change.down.delay);
        Ok(())
    }
}

/// What becomes of the `n`-th connection to the host called `name`, where the navigation began at `start` and its family's way is `route`.
fn fate(faults: &Faults, name: &str, n: u32, start: Instant, route: Route) -> Fate {
    let gone = faults.vanishes(name).map(|at| start + at.since(Instant::ZERO));
    let fate = Fate { refused: faults.refuses(name, n), gone };
    match route {
        Route::Same | Route::Longer(_) => fate,
        Route::Lost => Fate { gone: Some(Instant::ZERO), ..fate },
        Route::Refused => Fate { refused: true, ..fate },
    }
}

impl Running<'_, '_> {
    /// Lets happen what the setup has for this moment.
    pub fn break_what_is_due(&mut self) -> Result<(), Error> {
        let now = self.now();
        let is_due = |change: &mut &NetworkChange| Instant::ZERO + change.at <= now;
        if let Some(change) = self.misfortune.network_change.take_if(is_due) {
            self.change_network(change)?;
        }
        if self.misfortune.restart.take_if(|at| *at <= now).is_some() {
            self.restart()?;
        }
        Ok(())
    }

    fn change_network(&mut self, change: &NetworkChange) -> Result<(), Error> {
        self.misfortune.change_network(change, self.driver.stage.seed_after())?;
        self.ask_anew(change.dns.is_zero())?;
        let now = self.now();
        self.driver.browser.handle_network_change(now);
        Ok(())
    }

    /// Names are asked for on the network that there is now.
    fn ask_anew(&mut self, all_known: bool) -> Result<(), Error> {
        let server = self.driver.stage.name_server();
        self.all_known = all_known;
        match &mut self.resolver {
            Some(resolver) => resolver.change_network(&self.reactor, RESOLVER, server),
            None if all_known => Ok(()),
            None => Resolver::new(&self.reactor, RESOLVER, server).map(|new| self.resolver = Some(new)),
        }
        .map_err(Error::machine("make the resolver's socket"))?;
        if all_known {
            self.addresses = self.driver.known_addresses(true);
        }
        Ok(())
    }

    /// The application is gone: the kernel resets its connections, and no name or session of it is left. Another one begins with what it
    /// was allowed to keep.
    fn restart(&mut self) -> Result<(), Error> {
        let now = self.now();
        let Driver { page, setup, stage, .. } = self.driver;
        let next = browser(page, setup, stage);
        self.past.done.end(now, &mut self.driver.browser, next);
        self.connections.iter_mut().for_each(Connection::abort);
        self.past.connections.append(&mut self.connections);
        self.sessions = stage.sessions().to_vec();
        for secured in (0..page.hosts.len() as u32).filter_map(|host| stage.secured(host)) {
            while secured.connector.take_session().is_some() {} // what was left for the first to take
        }
        self.resolver = None; // its socket is closed before there is another, which has its token
        self.ask_anew(self.all_known)?;
        self.addresses = self.driver.known_addresses(self.all_known);
        self.driver.browser.start(now);
        Ok(())
    }
}

/// What of a setup's faults this world cannot do, in words.
pub(super) fn unmet(setup: &Setup) -> Vec<String> {
    let any = |hit: &dyn Fn(&Fault) -> bool| setup.faults.hosts.iter().any(hit);
    let cases = [(
        any(&|f| matches!(f.kind, FaultKind::Reset { .. })),
        "a reset takes along what the kernel had not sent yet",
    )];
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
        setup.faults.restart = Some(Duration::ZERO);
        assert!(unmet(&setup).is_empty(), "these it can");
        setup.faults.hosts = vec![fault(FaultKind::Reset { after: None }, Often::Once)];
        assert_eq!(unmet(&setup).len(), 1);
    }

    #[test]
    fn the_nth_connection_to_a_host_meets_what_is_drawn_for_it_from_the_navigation_on() {
        let at = Duration::from_millis(300);
        let faults =
            vec![fault(FaultKind::Refuse, Often::Share(0.5)), fault(FaultKind::Vanish { at }, Often::Always)];
        let faults = Faults::new(faults, Rng::new(1));
        let start = Instant::from_nanos(7);
        for n in 0..20 {
            let gone = Some(Instant::from_nanos(300_000_007));
            let refused = faults.refuses("a.example", n);
            assert_eq!(fate(&faults, "a.example", n, start, Route::Same), Fate { refused, gone });
            assert_eq!(fate(&faults, "a.example", n, start, Route::Refused), Fate { refused: true, gone });
            assert_eq!(fate(&faults, "b.example", n, start, Route::Longer(at)), Fate::default());
            let lost = Fate { refused: false, gone: Some(Instant::ZERO) };
            assert_eq!(fate(&faults, "b.example", n, start, Route::Lost), lost);
        }
    }
}
