//! What a load runs on: two networks with a link between them, the servers of the page's hosts and a name server.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use base::{Duration, Instant, Rng};
use load::Setup;
use origin::{Faults, Recording};
use page::Page;

use super::connection::Secured;
use super::dns::{self, Addresses, Zone};
use super::driver::Near;
use super::fault;
use super::kernel::{self, Kernel, Knob};
use super::upkeep::Upkeep;
use super::{Error, Run};
use crate::emulator::{Config, DelayTo, Ends, Link};
use crate::namespace::{self, Block, Privilege, Turn};
use crate::serve::{self, Event, Server};
use crate::timer::{Lead, Policy};
use crate::tls::{
    Acceptor, Authority, ClientConfig, Common, Connector, Offer, ServerConfig, Session, Trust, Versions,
};

/// What servers know of each connection when it is over, by the client's address and the server's: a client's port may serve several
/// connections, to one server each.
type ServerStats = Arc<Mutex<BTreeMap<(SocketAddr, SocketAddr), tcp::Stats>>>;

/// What the servers know when a load is over: how they had the processor, and what was asked for more often than the page does.
type Served = (Upkeep, Vec<(page::ResourceId, u32)>);

pub(super) struct Stage {
    link: Link,
    zone: Zone,
    /// For every host, how its connections are secured.
    secured: Vec<Option<Secured>>,
    sessions: Vec<Option<Session>>,
    /// Every handshake resumes a session.
    resumes: bool,
    faults: Faults,
    /// That of the link after a change of networks.
    seed_after: u64,
    kernel: Kernel,
    unmet: Vec<String>,
    servers: serve::Handle,
    servers_thread: JoinHandle<std::io::Result<Served>>,
    name_server: (dns::Handle, JoinHandle<std::io::Result<()>>),
    stats: ServerStats,
}

impl Stage {
    /// Builds it; the link is empty and all servers listen when this returns.
    pub fn build(
        privilege: Privilege,
        page: &Page,
        setup: &Setup,
        seed: u64,
        authority: Option<&Authority>,
    ) -> Result<Self, Error> {
        let block = Block::WHOLE;
        let mut ends = Ends::new(privilege, block)?;
        let mut unmet = fault::unmet(setup);
        if setup.ipv6.is_some() {
            match ends.carry_ipv6() {
                Err(e @ namespace::Error::NoIpv6 { .. }) => {
                    unmet.push(format!("no host has an address of IPv6, so that no families race: {e}"));
                }
                carried => carried?,
            }
        }
        let zone = addresses(page, setup, &ends);
        for v6 in zone.values().filter_map(|addresses| addresses.v6).collect::<BTreeSet<_>>() {
            ends.far().own(v6)?;
        }
        // Outages begin with the navigation, which the emulator's clock does not: the driver tells it.
        let lasting = |path: &link::PathConfig| link::PathConfig { outages: Vec::new(), ..path.clone() };
        let config = Config {
            up: lasting(&setup.up),
            down: lasting(&setup.down),
            delays: distances(page, setup, &zone),
            seed,
            policy: Policy::Precise,
            spin: Lead::MOST,
            each_packet: true,
        };
        let link = ends.join(&config, None)?;
        let (mut kernel, of_kernel) = kernel::set(&link, &setup.client_tcp, &setup.server_tcp)?;
        unmet.extend(of_kernel);
        let tls = match (&setup.tls, authority) {
            (Some(tls), Some(authority)) => Some(secure(page, setup, tls, authority, &mut unmet)?),
            _ => None,
        };
        let (acceptor, secured) = tls.unzip();
        let stats = ServerStats::default();
        let (servers, servers_thread, pacing) =
            serve(&Arc::new(page.clone()), setup, seed, &link, &zone, acceptor, stats.clone())?;
        kernel.knobs.extend(pacing);
        begin_with_kept_windows(page, setup, &zone, &link, &mut kernel, &mut unmet)?;
        let name_server = serve_names(setup, &link, &zone, &mut unmet)?;
        let none = || page.hosts.iter().map(|_| None);
        let mut stage = Self {
            link,
            zone,
            secured: secured.unwrap_or_else(|| none().collect()),
            sessions: page.hosts.iter().map(|_| None).collect(),
            resumes: setup.tls.as_ref().is_some_and(|t| is_resumed(t.mode)),
            faults: fault::of(setup, seed),
            seed_after: Rng::new(seed).substream("network after").seed(),
            kernel,
            unmet,
            servers,
            servers_thread,
            name_server,
            stats,
        };
        if stage.resumes {
            stage.sessions = super::prime::sessions(page, &stage)?;
        }
        Ok(stage)
    }

    pub fn link(&self) -> &Link {
        &self.link
    }

    pub fn name_server(&self) -> Ipv4Addr {
        name_server(self.link.block())
    }

    /// Look-ups take `dns` from now on, over a link with this round trip.
    pub fn set_look_up(&self, dns: Duration, round_trip: Duration) {
        self.name_server.0.set_think(dns.saturating_sub(round_trip));
    }

    /// A host's address where the client does not choose one.
    pub fn address(&self, name: &str) -> Option<IpAddr> {
        self.addresses(name)?.all().next()
    }

    pub fn addresses(&self, name: &str) -> Option<Addresses> {
        self.zone.get(name).copied()
    }

    pub fn secured(&self, host: u32) -> Option<Secured> {
        self.secured[host as usize].clone()
    }

    pub fn sessions(&self) -> &[Option<Session>] {
        &self.sessions
    }

    pub fn resumes(&self) -> bool {
        self.resumes
    }

    /// What goes wrong at the servers.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The seed of the link after a change of networks.
    pub fn seed_after(&self) -> u64 {
        self.seed_after
    }

    /// Ends everything, and puts together what each part knows.
    pub fn strike(self, near: Near) -> Result<Run, Error> {
        self.servers.shut_down();
        let join = Error::machine("serve the page");
        let served = self.servers_thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (servers, repeated) = served.map_err(join)?;
        self.name_server.0.stop();
        let join = Error::machine("serve names");
        self.name_server.1.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(join)?;
        let (check, _) = self.link.finish().map_err(Error::machine("emulate the link"))?;
        let Near { mut load, ends, pacing, upkeep: browser } = near;
        let mut kernel = self.kernel;
        kernel.knobs.extend(pacing);
        let mut stats = self.stats.lock().unwrap_or_else(|e| e.into_inner());
        for (connection, ends) in load.connections.iter_mut().zip(ends) {
            connection.server = ends.and_then(|ends| stats.remove(&ends)).unwrap_or_default();
        }
        (load.up, load.down, load.repeated) = (check.up.path, check.down.path, repeated);
        let upkeep = [browser, servers];
        Ok(Run { load, link: check, kernel, upkeep, unmet: self.unmet })
    }
}

/// The servers of which the browser has kept a congestion window begin with it, each by a route of its own. The kernel lets nobody set it
/// once a connection is there, so that it is known beforehand what the browser will bring.
fn begin_with_kept_windows(
    page: &Page,
    setup: &Setup,
    zone: &Zone,
    link: &Link,
    kernel: &mut Kernel,
    unmet: &mut Vec<String>,
) -> Result<(), Error> {
    for hosts in setup.servers(page) {
        let hosts = || hosts.iter().map(|&host| &page.hosts[host as usize]);
        let kept: BTreeSet<u32> = hosts().filter_map(|host| setup.brings_cwnd(page, host)).collect();
        let (Some(&segments), Some(host)) = (kept.last(), hosts().next()) else { continue };
        if kept.len() > 1 {
            unmet
                .push("a server of several hosts begins with the widest window that was kept for one".into());
        }
        if setup.secures(host) {
            unmet.push("a kept window is there from the TLS handshake on, before SETTINGS bring it".into());
        }
        let Addresses { v4, v6 } = zone[&host.name];
        let segments = segments.max(setup.server_tcp.initial_cwnd);
        for address in [Some(v4.into()), v6.map(IpAddr::from)].into_iter().flatten() {
            match kernel::begin_with(link, address, segments, &setup.server_tcp, kernel) {
                Ok(other) => unmet.extend(other),
                Err(e) => unmet.push(format!("no server begins with the window that SETTINGS kept: {e}")),
            }
        }
    }
    unmet.sort();
    unmet.dedup();
    Ok(())
}

fn is_resumed(mode: tls::Mode) -> bool {
    matches!(mode, tls::Mode::Tls12Resumed | tls::Mode::Tls13Resumed)
}

/// An address for every name: the block's servers, from the second on; the first is the name server's. Hosts of one name share one,
/// and so do those that the setup lets share it. Those of IPv6, if the link carries it, are the setup's.
fn addresses(page: &Page, setup: &Setup, ends: &Ends) -> Zone {
    let mut zone = Zone::new();
    let (first, _) = ends.block().servers();
    for ((id, host), at) in (0..).zip(&page.hosts).zip(setup.addresses(page)) {
        let next = Ipv4Addr::from(u32::from(first) + 2 + zone.len() as u32);
        let shared = zone.get(&page.hosts[at as usize].name).map(|addresses| addresses.v4);
        let v6 = setup.ipv6_address(page, id).filter(|_| ends.carries_ipv6());
        zone.entry(host.name.clone()).or_insert(Addresses { v4: shared.unwrap_or(next), v6 });
    }
    zone
}

/// What lies beyond the link, each way, where that is anything: hosts have their distances, and IPv6 may take a longer way.
fn distances(page: &Page, setup: &Setup, zone: &Zone) -> Vec<DelayTo> {
    let detour = match setup.ipv6.as_ref().map(|ipv6| ipv6.route) {
        Some(load::Route::Longer(detour)) => detour,
        Some(load::Route::Same | load::Route::Lost | load::Route::Refused) | None => Duration::ZERO,
    };
    let mut delays = Vec::new();
    for (host, extra) in page.hosts.iter().zip(setup.distances(page)) {
        let Addresses { v4, v6 } = zone[&host.name];
        delays.push(DelayTo { network: v4.into(), prefix: 32, delay: extra / 2 });
        let delay = (extra + detour) / 2;
        delays.extend(v6.map(|v6| DelayTo { network: v6.into(), prefix: 128, delay }));
    }
    delays.retain(|to| !to.delay.is_zero());
    delays
}

fn name_server(block: Block) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(block.servers().0) + 1)
}

/// Both ends of TLS: one acceptor for all names, a connector for each host, so that tickets do not mix.
fn secure(
    page: &Page,
    setup: &Setup,
    tls: &tls::Config,
    authority: &Authority,
    unmet: &mut Vec<String>,
) -> Result<(Acceptor, Vec<Option<Secured>>), Error> {
    let upgraded = setup.transport.protocol();
    let protocol = |host: &page::Host| setup.host_transport(page, host).protocol();
    let mut protocols = vec![upgraded];
    if page.hosts.iter().any(|host| protocol(host) != upgraded) {
        protocols.push(client::Transport::Http1.protocol());
    }
    let common = Common {
        offer: Offer::Alpn,
        versions: if tls.mode.is_tls13() { Versions::Tls13 } else { Versions::Tls12 },
        record_size: Some(tls.record_size.clamp(512, 16_384) as u16),
        sizing: tls.sizing,
        groups: Some(match tls.key_exchange {
            tls::KeyExchange::X25519 => "X25519".to_owned(),
            tls::KeyExchange::P256 => "P-256".to_owned(),
        }),
        ..Common::new(protocols)
    };
    let names: Vec<String> = page.hosts.iter().map(|h| h.name.clone()).collect();
    // A server that leaves its issuer's certificate out: what the browser fetches has that one's length. Its bytes are the client's from
    // the beginning, and are of use to it when it has asked.
    let alone = tls.chain_certs == 1;
    let (identity, chain_len) = authority.issue(&names, tls.chain_len, alone)?;
    if chain_len != tls.chain_len {
        unmet.push(format!("the certificate chain takes {chain_len} bytes, not {}", tls.chain_len));
    }
    if tls.early_data {
        unmet.push("TLS 1.3 sends no early data".into());
    }
    let ocsp = (tls.ocsp_len > 0).then(|| vec![0; tls.ocsp_len as usize]);
    let acceptor = Acceptor::new(&ServerConfig { common: common.clone(), identity, tickets: true, ocsp })?;
    let mut trusted = authority.root_pem()?;
    if alone {
        trusted.extend(authority.intermediate_pem()?);
    }
    let trust = Trust::Roots(trusted);
    let client = |protocol: &str| ClientConfig {
        common: Common { protocols: vec![protocol.to_owned()], ..common.clone() },
        trust: trust.clone(),
        false_start: tls.false_start,
        ocsp: tls.ocsp_len > 0,
    };
    let secured = page.hosts.iter().map(|host| {
        if !setup.secures(host) {
            return Ok(None);
        }
        let protocol = protocol(host);
        let connector = Connector::new(&client(protocol))?;
        Ok(Some(Secured { connector, name: host.name.clone(), protocol, verify: tls.verify }))
    });
    Ok((acceptor, secured.collect::<Result<_, Error>>()?))
}

/// The running servers, and what their sockets say of being paced, if they were to be.
type Servers = (serve::Handle, JoinHandle<std::io::Result<Served>>, Option<Knob>);

/// Starts the servers of all hosts on one thread.
fn serve(
    page: &Arc<Page>,
    setup: &Setup,
    seed: u64,
    link: &Link,
    zone: &Zone,
    acceptor: Option<Acceptor>,
    stats: ServerStats,
) -> Result<Servers, Error> {
    let (mut places, mut sites, mut behaviours) = (Vec::<Vec<SocketAddr>>::new(), Vec::new(), Vec::new());
    for hosts in setup.servers(page) {
        let host = &page.hosts[hosts[0] as usize];
        let mut listen: BTreeSet<IpAddr> = [zone[&host.name].v4.into()].into();
        listen.extend(hosts.iter().flat_map(|host| zone[&page.hosts[*host as usize].name].all()));
        let listen: Vec<_> = listen.into_iter().map(|address| SocketAddr::new(address, host.port)).collect();
        // Of two servers that differ in the scheme alone the first is there.
        let is_taken = places.iter().flatten().any(|address| listen.contains(address));
        if !is_taken {
            places.push(listen);
            let site = match hosts[..] {
                [host] => Recording::of_host(page.clone(), host, setup.think),
                _ => Recording::of_hosts(page.clone(), hosts, setup.think),
            };
            let site = site.with_faults(fault::of(setup, seed));
            sites.push(setup.foresee(site));
            behaviours.push(setup.servers.behaviour(&host.name));
        }
    }
    let spdy = setup.spdy.clone();
    let config = serve::Config {
        tls: acceptor,
        version_3: setup.transport.spdy_version().unwrap_or(spdy::Version::V3_1),
        upgrade: false,
        spdy: (move |_| spdy.clone()).into(),
        idle_timeout: setup.give_up + setup.give_up,
        handshake_timeout: setup.give_up + setup.give_up,
        behaviours,
        clients_max: usize::MAX,
        grace: Duration::ZERO,
        paced: setup.server_tcp.pacing,
        kept_cwnd: setup.techniques.kept_cwnd,
        ..serve::Config::default()
    };
    let bind = || Server::bind_places(&places, config);
    let server = link.far().run(bind).map_err(Error::machine("listen at the far end"))?;
    let rate = server.pacing_rate().map_err(Error::machine("read the servers' pacing back"))?;
    let pacing = setup.server_tcp.pacing.then(|| Knob::pacing("server", rate));
    let handle = server.handle();
    let thread = std::thread::Builder::new().name("servers".into()).spawn(move || {
        let mut addresses = BTreeMap::new();
        let mut log = |_: Instant, event: &Event<'_>| match event {
            Event::Accepted { client, address, to } => {
                addresses.extend(to.map(|to| (*client, (*address, to))));
            }
            Event::Closed { client, tcp, .. } => {
                if let Some(address) = addresses.remove(client) {
                    stats.lock().unwrap_or_else(|e| e.into_inner()).insert(address, (*tcp).clone());
                }
            }
            Event::Secured { .. } | Event::Answered { .. } => {}
        };
        let upkeep = Upkeep::begin();
        server.run_each(&mut sites, &mut log)?;
        Ok((upkeep.end(), sites.iter().flat_map(Recording::repeats).collect()))
    });
    Ok((handle, thread.map_err(Error::machine("start a thread"))?, pacing))
}

/// Starts the name server. A look-up takes a round trip of the link and what the server adds.
fn serve_names(
    setup: &Setup,
    link: &Link,
    zone: &Zone,
    unmet: &mut Vec<String>,
) -> Result<(dns::Handle, JoinHandle<std::io::Result<()>>), Error> {
    let round_trip = setup.up.delay + setup.down.delay;
    let after = setup.faults.network_change.as_ref();
    let after = after.map(|change| (change.dns, change.up.delay + change.down.delay));
    for (dns, round_trip) in [(setup.dns, round_trip)].into_iter().chain(after) {
        if !dns.is_zero() && dns < round_trip {
            let ms = |d: Duration| d.as_millis_f64();
            unmet.push(format!("a look-up takes a round trip of {} ms, not {}", ms(round_trip), ms(dns)));
        }
    }
    let (address, zone) = (name_server(link.block()), zone.clone());
    let think = setup.dns.saturating_sub(round_trip);
    let bind = || dns::Server::bind(address, zone, think);
    let (server, stop) = link.far().run(bind).map_err(Error::machine("serve names at the far end"))?;
    let thread = std::thread::Builder::new().name("names".into()).spawn(|| {
        Turn::soon();
        server.run()
    });
    Ok((stop, thread.map_err(Error::machine("start a thread"))?))
}
