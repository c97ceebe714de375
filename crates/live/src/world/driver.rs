//! The browser's side: carries out what a [`Browser`] decides, on the near network's sockets.

use std::net::{IpAddr, SocketAddr};

use base::{Duration, Instant};
use browser::Browser;
use client::{Action, Family};
use load::Setup;
use page::Page;

use super::Error;
use super::connection::Connection;
use super::dns::{Addresses, Ended, Resolver};
use super::fault::Misfortune;
use super::kernel::Knob;
use super::stage::Stage;
use super::upkeep::Upkeep;
use crate::tls::Session;
use crate::{Reactor, timer::Policy};

/// The resolver's token; connections' are their numbers.
pub(super) const RESOLVER: usize = Reactor::TOKENS - 1;

/// What the browser's side knows when a load is over.
pub(super) struct Near {
    /// Everything but the servers' and the link's parts.
    pub load: load::Load,
    /// Both addresses of each connection, in their order.
    pub ends: Vec<Option<(SocketAddr, SocketAddr)>>,
    /// What its sockets say of being paced, if they were to be.
    pub pacing: Option<Knob>,
    /// How the browser's side had the processor.
    pub upkeep: Upkeep,
}

pub(super) struct Driver<'s, 'p> {
    pub setup: &'p Setup,
    pub stage: &'s Stage,
    pub browser: Browser<'p>,
    pub page: &'p Page,
}

/// The same while it runs, on its own thread in the near network.
pub(super) struct Running<'s, 'p> {
    pub driver: Driver<'s, 'p>,
    pub reactor: Reactor,
    /// The moment on the reactor's clock at which the navigation began.
    start: Instant,
    pub misfortune: Misfortune<'s>,
    /// None as long as no name is to be asked for.
    pub resolver: Option<Resolver>,
    /// Look-ups cost nothing: all addresses are known.
    pub all_known: bool,
    /// For every host, its address where the client does not choose one, if it is known.
    pub addresses: Vec<Option<IpAddr>>,
    pub sessions: Vec<Option<Session>>,
    /// Those of the application that runs.
    pub connections: Vec<Connection>,
    pub past: Past,
}

/// What is over with an application that has ended.
#[derive(Default)]
pub(super) struct Past {
    pub done: load::Past,
    pub connections: Vec<Connection>,
}

/// A browser that begins with nothing.
pub(super) fn browser<'p>(page: &'p Page, setup: &'p Setup, stage: &Stage) -> Browser<'p> {
    let address = |host: u32| stage.addresses(&page.hosts[host as usize].name).map(|a| a.v4.into());
    setup.browser(page, address)
}

impl<'s, 'p: 's> Driver<'s, 'p> {
    /// A driver about to load `page`, which has the pages behind it beside it.
    pub fn new(page: &'p Page, setup: &'p Setup, stage: &'s Stage) -> Self {
        Self { setup, stage, browser: browser(page, setup, stage), page }
    }

    /// What of a setup the browser is made with here: addresses are of the families that the link carries; the stage says so.
    pub fn setup(setup: &Setup, stage: &Stage) -> Setup {
        let ipv6 = setup.ipv6.clone().filter(|_| stage.link().ends().carries_ipv6());
        Setup { ipv6, ..setup.clone() }
    }

    /// Loads the page, on a thread of its own.
    pub fn run(self) -> Result<Near, Error> {
        let near = self.stage.link().near();
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("browser".into());
            let thread = thread.spawn_scoped(scope, || {
                let upkeep = Upkeep::begin();
                near.enter().map_err(Error::machine("enter the near network"))?;
                let near = self.prepare()?.run()?;
                Ok(Near { upkeep: upkeep.end(), ..near })
            });
            let thread = thread.map_err(Error::machine("start a thread"))?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn prepare(self) -> Result<Running<'s, 'p>, Error> {
        let reactor = Reactor::with_policy(Policy::Precise, Duration::ZERO)
            .map_err(Error::machine("make an event queue"))?;
        let known = self.setup.dns.is_zero();
        let resolver = (!known).then(|| Resolver::new(&reactor, RESOLVER, self.stage.name_server()));
        let resolver = resolver.transpose().map_err(Error::machine("make the resolver's socket"))?;
        let hosts = self.page.hosts.len();
        Ok(Running {
            addresses: self.known_addresses(known),
            sessions: self.stage.sessions().to_vec(),
            start: Instant::ZERO,
            misfortune: Misfortune::new(self.stage, self.setup, hosts),
            reactor,
            resolver,
            all_known: known,
            connections: Vec::new(),
            past: Past::default(),
            driver: self,
        })
    }
}

impl Driver<'_, '_> {
    /// The addresses of all hosts, or of those that are named by theirs.
    pub fn known_addresses(&self, all: bool) -> Vec<Option<IpAddr>> {
        let address =
            |host: &page::Host| match (client::literal(&host.name), self.stage.addresses(&host.name)?) {
                (Some(IpAddr::V6(_)), Addresses { v6: Some(v6), .. }) => Some(v6.into()),
                (Some(_), Addresses { v4, .. }) => Some(v4.into()),
                (None, _) => self.stage.address(&host.name).filter(|_| all),
            };
        self.page.hosts.iter().map(address).collect()
    }

    /// Tells the browser what has come of a look-up; what it does not want to know is noted by host.
    fn take_answer(&mut self, now: Instant, ended: &Ended, known: &mut [Option<IpAddr>]) {
        let (hosts, host) = (&self.page.hosts, ended.host);
        let first = ended.addresses.first().copied();
        for (known, other) in known.iter_mut().zip(hosts) {
            if other.name == hosts[host as usize].name && ended.family == Family::V4 {
                *known = first;
            }
        }
        match self.setup.ipv6 {
            Some(_) => self.browser.handle_addresses(now, host, ended.family, &ended.addresses),
            None => self.browser.handle_resolved(now, host, first.is_some()),
        }
    }
}

impl Running<'_, '_> {
    fn run(mut self) -> Result<Near, Error> {
        let setup = self.driver.setup;
        if !setup.up.outages.is_empty() || !setup.down.outages.is_empty() {
            let link = self.driver.stage.link().handle();
            link.set_outages(setup.up.outages.clone(), setup.down.outages.clone());
        }
        self.start = self.reactor.now();
        self.misfortune.begin();
        self.driver.browser.start(Instant::ZERO);
        let give_up = Instant::ZERO + self.driver.setup.give_up;
        loop {
            self.pump();
            if self.driver.browser.is_finished() || self.now() >= give_up {
                break;
            }
            let resolver = self.resolver.as_ref().and_then(Resolver::poll_timeout);
            let waits = self.driver.browser.poll_timeout().map(|at| self.on_reactor(at));
            let breaks = self.misfortune.poll_timeout().map(|at| self.on_reactor(at));
            let end = Some(self.on_reactor(give_up));
            let deadline = [waits, resolver, breaks, end].into_iter().flatten().min();
            let deadline =
                if self.connections.iter().any(|c| c.again) { Some(Instant::ZERO) } else { deadline };
            self.reactor.wait(deadline).map_err(Error::machine("wait for events"))?;
            self.take_events();
            self.break_what_is_due()?;
        }
        Ok(self.finish())
    }

    pub fn now(&self) -> Instant {
        Instant::ZERO + self.reactor.now().since(self.start)
    }

    fn on_reactor(&self, at: Instant) -> Instant {
        self.start + at.since(Instant::ZERO)
    }

    fn take_events(&mut self) {
        let ready: Vec<usize> = self.reactor.ready().map(|r| r.token).collect();
        if let Some(resolver) = &mut self.resolver {
            for ended in resolver.go_on(self.reactor.now()) {
                let now = Instant::ZERO + self.reactor.now().since(self.start);
                self.driver.take_answer(now, &ended, &mut self.addresses);
            }
        }
        let again = self.connections.iter().enumerate().filter(|(_, c)| c.again).map(|(i, _)| i);
        let mut turns: Vec<usize> = ready.into_iter().filter(|t| *t != RESOLVER).chain(again).collect();
        turns.dedup();
        for index in turns {
            self.go_on(index);
        }
        let now = self.now();
        if self.driver.browser.poll_timeout().is_some_and(|at| at <= now) {
            self.driver.browser.handle_timeout(now);
        }
    }

    /// Carries out what the browser has decided, until it has no more to say. Requests first, as in the virtual world.
    fn pump(&mut self) {
        loop {
            let now = self.now();
            if let Some(id) = self.driver.browser.poll_dirty() {
                self.go_on(id as usize);
            } else if let Some(id) = self.driver.browser.poll_readable() {
                self.go_on(id as usize);
            } else if let Some(action) = self.driver.browser.poll_action() {
                self.act(now, action);
            } else if let Some(secure) = self.driver.browser.poll_secure() {
                self.secure(secure);
            } else if let Some(id) = self.driver.browser.poll_verified() {
                self.connections[id as usize].verified();
                self.go_on(id as usize);
            } else {
                return;
            }
        }
    }

    /// Lets a connection go as far as it can, if there is such a one.
    fn go_on(&mut self, index: usize) {
        let now = self.now();
        if let Some(connection) = self.connections.get_mut(index) {
            connection.go_on(now, &mut self.driver.browser);
            self.note_session(now, index);
        }
    }

    /// Keeps the session that a connection has left, if it has, and tells the browser.
    fn note_session(&mut self, now: Instant, index: usize) {
        let Some(resumed) = self.connections[index].may_leave_session() else { return };
        if self.take_session(self.connections[index].host) || resumed {
            self.connections[index].resumable = true;
            self.driver.browser.handle_session(now, index as client::ConnectionId);
        }
    }

    /// Takes the newest session that a host's server has given; whether there was one.
    fn take_session(&mut self, host: u32) -> bool {
        let given = self.driver.stage.secured(host).and_then(|secured| secured.connector.take_session());
        let is_new = given.is_some();
        if is_new {
            self.sessions[host as usize] = given;
        }
        is_new
    }

    /// Begins a TLS handshake.
    fn secure(&mut self, client::Secure { connection, resume }: client::Secure) {
        let host = self.connections[connection as usize].host;
        self.take_session(host);
        let may = resume || self.driver.stage.resumes();
        let session = self.sessions[host as usize].clone().filter(|_| may);
        self.connections[connection as usize].secure(session);
        self.go_on(connection as usize);
    }

    fn act(&mut self, now: Instant, action: Action) {
        match action {
            Action::Resolve { host } => {
                let name = &self.driver.page.hosts[host as usize].name;
                let families: &[Family] =
                    if self.driver.setup.ipv6.is_some() { &[Family::V6, Family::V4] } else { &[Family::V4] };
                let asked_at = self.reactor.now();
                let asked = match &mut self.resolver {
                    Some(resolver) if !self.all_known => {
                        families.iter().all(|family| resolver.ask(asked_at, host, name, *family))
                    }
                    _ => false,
                };
                if !asked {
                    let found = self.addresses[host as usize].is_some();
                    self.driver.browser.handle_resolved(now, host, found);
                }
            }
            Action::Connect { connection, host, .. } => self.connect(now, connection, host),
            Action::Close { connection } => self.connections[connection as usize].close(),
        }
    }

    fn connect(&mut self, now: Instant, id: client::ConnectionId, host: u32) {
        let secured = self.driver.stage.secured(host);
        let port = self.driver.page.hosts[host as usize].port;
        let chosen = self.driver.browser.connections().nth(id as usize).and_then(|record| record.address);
        let opened = match self.address(host, chosen) {
            None => Err("its address is not known".to_owned()),
            Some(ip) => {
                let (to, paced) = (SocketAddr::new(ip, port), self.driver.setup.client_tcp.pacing);
                let name = &self.driver.page.hosts[host as usize].name;
                let tcp = self.misfortune.dial((host, name), to);
                Connection::connect(&self.reactor, id, host, (tcp, to), secured, paced)
            }
        };
        match opened {
            Ok(connection) => self.connections.push(connection),
            Err(why) => {
                self.connections.push(Connection::failed(id, host));
                self.driver.browser.handle_failed(now, id, &why);
            }
        }
    }

    /// Where a host's server is: at the address that the client has chosen, where it knows several. What is in a name is the recording's;
    /// here another stands for it.
    fn address(&self, host: u32, chosen: Option<IpAddr>) -> Option<IpAddr> {
        let known = self.addresses[host as usize];
        match client::literal(&self.driver.page.hosts[host as usize].name) {
            Some(_) => known,
            None => chosen.or(known),
        }
    }

    fn finish(mut self) -> Near {
        self.connections.iter_mut().for_each(Connection::note_stats);
        self.driver.browser.finish_visit();
        let (ended, browser, past) = (self.now(), &self.driver.browser, &self.past.done);
        let all = || self.past.connections.iter().chain(&self.connections);
        let connections = past.records(browser).zip(all()).map(|(record, connection)| {
            let address = self.address(record.host, record.address);
            let address = address.map(|a| a.to_string()).unwrap_or_default();
            let (client, server) = (connection.stats.clone(), tcp::Stats::default());
            load::Connection { record, address, client, server }
        });
        let load = load::Load {
            outcome: browser.missing(ended).map_or(load::Outcome::Complete, load::Outcome::Incomplete),
            moments: *browser.moments(),
            requests: past.requests(browser),
            behind: browser.behind().collect(),
            connections: connections.collect(),
            lookups: past.lookups(browser),
            down: link::PathStats::default(),
            up: link::PathStats::default(),
            computed: past.computed(browser),
            ended,
            unread_max: browser.client().unread_max(),
            ahead: browser.ahead_tally(),
            progress: browser.client().progress().copied().collect(),
            packets: Vec::new(),
            wire: None,
            memory: self.driver.setup.remembered(browser),
            troubles: past.troubles(browser),
            repeated: Vec::new(),
        };
        let ends = all().map(|c| c.ends).collect();
        let opened = all().filter(|c| c.ends.is_some());
        let rate = opened.map(|c| c.pacing_rate).min().flatten();
        let pacing = self.driver.setup.client_tcp.pacing.then(|| Knob::pacing("client", rate));
        Near { load, ends, pacing, upkeep: Upkeep::default() }
    }
}
