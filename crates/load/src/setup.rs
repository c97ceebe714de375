//! What a load is made with.

use base::{Duration, Rng};
use client::Transport;
use page::Page;

use crate::certificate::is_beside;
use crate::{Faults, HostStanding, Ipv6, Memory, Servers, Tabs, Techniques};

/// Everything that a load depends on, besides the page and the seed.
#[derive(Clone, PartialEq, Debug)]
pub struct Setup {
    /// What carries the requests.
    pub transport: Transport,
    /// The access link towards the client.
    pub down: link::PathConfig,
    /// The access link from the client.
    pub up: link::PathConfig,
    /// The settings of both ends of a SPDY session; of no effect on HTTP/1.1. PINGs that keep a session alive are not
    /// supported here.
    pub spdy: spdy::Config,
    /// What hosts add to the access link's round trip.
    pub host_rtt: HostRtt,
    /// The client's TCP.
    pub client_tcp: tcp::Config,
    /// The servers' TCP.
    pub server_tcp: tcp::Config,
    /// How connections are secured; `None` leaves all in the clear, whatever their URLs say.
    pub tls: Option<tls::Config>,
    /// Which hosts `tls` applies to.
    pub tls_scope: TlsScope,
    /// What the look-up of a name costs the first time.
    pub dns: Duration,
    /// How long servers think.
    pub think: origin::Think,
    /// Factor on the page's computation.
    pub compute_scale: f64,
    /// When a load is given up.
    pub give_up: Duration,
    /// HTTP/1.1 connections a host at most.
    pub connections_per_host: usize,
    /// What the client does beyond the rules of its time.
    pub techniques: Techniques,
    /// What the client remembers of earlier visits.
    pub memory: Memory,
    /// What breaks.
    pub faults: Faults,
    /// How the servers treat HTTP/1.1 connections.
    pub servers: Servers,
    /// Who has an address of IPv6, too.
    pub ipv6: Option<Ipv6>,
    /// What is loaded beside the page.
    pub tabs: Tabs,
    /// Whether [`Load::progress`](crate::Load::progress) is kept. No unless set: it is large.
    pub keeps_progress: bool,
    /// Whether [`Load::packets`](crate::Load::packets) is kept. No unless set: it is large.
    pub keeps_packets: bool,
    /// Whether [`Load::wire`](crate::Load::wire) is kept, and [`Load::packets`](crate::Load::packets) with it. No unless set.
    pub keeps_bytes: bool,
}

impl Setup {
    /// `transport` over a perfect network, in the clear, with TCP of today, Chrome's SPDY of 2013, recorded thinking times and computation.
    /// A base to change fields of.
    pub fn new(transport: Transport) -> Self {
        let version = transport.spdy_version().unwrap_or(spdy::Version::V3_1);
        Self {
            transport,
            spdy: spdy::Config { keep_alive: None, ..spdy::Config::chrome_2013(version) },
            down: link::PathConfig::default(),
            up: link::PathConfig::default(),
            host_rtt: HostRtt::Equal,
            client_tcp: tcp::Config::linux_today(),
            server_tcp: tcp::Config::linux_today(),
            tls: None,
            tls_scope: TlsScope::Recorded,
            dns: Duration::ZERO,
            think: origin::Think::Recorded,
            compute_scale: 1.0,
            give_up: Duration::from_secs(300),
            connections_per_host: 6,
            techniques: Techniques::default(),
            memory: Memory::default(),
            faults: Faults::default(),
            servers: Servers::default(),
            ipv6: None,
            tabs: Tabs::default(),
            keeps_progress: false,
            keeps_packets: false,
            keeps_bytes: false,
        }
    }
}

/// Which hosts are secured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TlsScope {
    /// Those whose URLs say `https`.
    Recorded,
    /// All.
    Everywhere,
}

/// What a host adds to the access link's round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostRtt {
    /// Nothing: all hosts are equally far.
    Equal,
    /// What its recorded round trip exceeds the smallest recorded one of the page by.
    Recorded,
    /// Up to this much, uniformly, by the host's name alone: the same in every load of every page.
    Spread(Duration),
}

impl Setup {
    /// Whether the connections to `host` are secured.
    pub fn secures(&self, host: &page::Host) -> bool {
        self.tls.is_some() && !is_beside(host) && (host.scheme_tls || self.tls_scope == TlsScope::Everywhere)
    }

    /// The client that the setup asks for.
    pub fn client(&self) -> client::Config {
        let mut config = client::Config {
            connections_per_host: self.connections_per_host,
            spdy: self.spdy.clone(),
            keeps_progress: self.keeps_progress,
            ..client::Config::new(self.transport)
        };
        self.techniques.apply(&mut config);
        config
    }

    /// For every host of `page`, the first host that has its address: itself, unless [`Techniques::pooling`] is on.
    pub fn addresses(&self, page: &Page) -> Vec<u32> {
        (0..page.hosts.len() as u32).map(|id| self.address(page, id)).collect()
    }

    fn address(&self, page: &Page, id: u32) -> u32 {
        let host = &page.hosts[id as usize];
        let earlier = (0..id).zip(&page.hosts);
        let is_one =
            |(_, other): &(u32, &page::Host)| self.techniques.owners.are_one(&other.name, &host.name);
        earlier.filter(|_| self.techniques.pooling).find(is_one).map_or(id, |(other, _)| other)
    }

    /// What each host of `page` adds to the access link's round trip: hosts of one address are in one place.
    pub fn distances(&self, page: &Page) -> Vec<Duration> {
        let extra = self.host_rtt.extra(page);
        self.addresses(page).into_iter().map(|at| extra[at as usize]).collect()
    }

    /// The servers of `page`: the hosts of each, of one address, port and scheme. A host of its own has one of its own.
    pub fn servers(&self, page: &Page) -> Vec<Vec<u32>> {
        let addresses = self.addresses(page);
        let place = |id: u32| {
            let host = &page.hosts[id as usize];
            (addresses[id as usize], host.port, self.secures(host))
        };
        let mut servers: Vec<Vec<u32>> = Vec::new();
        for id in 0..page.hosts.len() as u32 {
            match servers.iter_mut().find(|hosts| place(hosts[0]) == place(id)) {
                Some(hosts) => hosts.push(id),
                None => servers.push(vec![id]),
            }
        }
        servers
    }

    /// The browser that the setup asks for, about to load `page`, which must be [furnished](Setup::furnish); `address` is that of IPv4
    /// of a host, asked only where hosts share one or have one of IPv6, too.
    pub fn browser<'p>(
        &'p self,
        page: &'p Page,
        address: impl Fn(u32) -> Option<std::net::IpAddr>,
    ) -> browser::Browser<'p> {
        let secured = page.hosts.iter().map(|host| self.secures(host));
        let config = browser::Config { compute_scale: self.compute_scale, pause: self.techniques.pause };
        let mut browser = browser::Browser::new(page, config, self.client(), secured.collect());
        self.open_tabs(&mut browser, page);
        let certificates = self.techniques.pooling.then(|| self.addresses(page));
        let (checks, mut of_host) = self.checks(page);
        for (id, host) in (0..).zip(&page.hosts) {
            let transport = Some(self.host_transport(page, host)).filter(|t| *t != self.transport);
            let certificate = certificates.as_ref().map(|c| c[id as usize]);
            let checks = of_host.get_mut(id as usize).map(std::mem::take).unwrap_or_default();
            let mut addresses = Vec::from_iter(self.ipv6_address(page, id).map(std::net::IpAddr::from));
            if !addresses.is_empty() || certificate.is_some() {
                addresses.extend(address(id));
            }
            let aside = is_beside(host);
            let shares = certificate.is_some();
            if transport.is_some() || shares || !checks.is_empty() || !addresses.is_empty() || aside {
                // Of one address and certificate, ports still tell apart.
                let port = certificate.map(|_| host.port);
                let facts = client::HostFacts { transport, checks, addresses, port, certificate, aside };
                browser.describe(id, facts);
            }
            if let Some(known) = self.memory.pipelining.iter().find(|known| known.host == origin_of(host)) {
                browser.set_pipelining(id, known.state.clone());
            }
        }
        browser.set_checks(checks);
        if let Some(after) = self.techniques.revisit {
            browser.revisit(after);
        }
        self.traffic(page).into_iter().for_each(|(at, id)| browser.fetch_beside(at, id));
        self.prepare(&mut browser, page);
        self.bring_settings(&mut browser, page);
        let Memory { learned, successor, .. } = self.memory.clone();
        browser.remember(
            client::Learned::from_rows(learned, Vec::new()),
            client::Successor::from_rows(successor),
        );
        browser
    }

    /// The address of IPv6 of a host of `page`, if it has one. It is made up of the number of the first host that has it, counted from 1,
    /// and for documentation only (RFC 3849): 2001:db8::1 and on.
    pub fn ipv6_address(&self, page: &Page, id: u32) -> Option<std::net::Ipv6Addr> {
        let host = &page.hosts[id as usize];
        self.ipv6.as_ref().filter(|ipv6| ipv6.has(&host.name))?;
        let (first, _) = (0..).zip(&page.hosts).find(|(_, other)| other.name == host.name)?;
        let n = self.address(page, first) + 1;
        Some(std::net::Ipv6Addr::from(0x2001_0db8_u128 << 96 | u128::from(n)))
    }

    /// What `browser`, which this setup has made, remembers; to be asked for after [`browser::Browser::finish_visit`].
    pub fn remembered(&self, browser: &browser::Browser<'_>) -> Memory {
        let client = browser.client();
        let hosts = || (0..).zip(&browser.page().hosts);
        let elsewhere = self
            .memory
            .pipelining
            .iter()
            .filter(|known| hosts().all(|(_, host)| origin_of(host) != known.host));
        let here = hosts().map(|(id, host)| (origin_of(host), client.pipelining(id).for_later()));
        let here = here.filter(|(_, state)| *state != client::HostState::new());
        Memory {
            learned: client.learned().rows().collect(),
            successor: client.successor().rows().collect(),
            checked: client.checked().map(|id| browser.page().resource_url(id)).collect(),
            pipelining: elsewhere
                .cloned()
                .chain(here.map(|(host, state)| HostStanding { host, state }))
                .collect(),
            pages: self.known_pages(browser),
            settings: self.kept_settings(browser),
        }
    }

    /// What carries the requests of a host of `page`.
    pub fn host_transport(&self, page: &Page, host: &page::Host) -> Transport {
        self.techniques.transport(page, host, self.transport)
    }

    /// What the server of a host of `page` speaks.
    pub fn protocol(&self, page: &Page, host: &page::Host) -> origin::Protocol {
        match self.host_transport(page, host) {
            Transport::Http1 => origin::Protocol::HTTP1,
            Transport::Spdy(_) => origin::Protocol::Spdy(self.spdy.clone()),
        }
    }
}

/// What a host is remembered by.
pub(crate) fn origin_of(host: &page::Host) -> String {
    format!("{}://{}", host.scheme(), host.authority())
}

impl HostRtt {
    /// The extra round trip of every host of `page`, in the order of its hosts.
    pub fn extra(self, page: &Page) -> Vec<Duration> {
        let nearest = page.hosts.iter().filter_map(|h| h.rtt).min().unwrap_or(Duration::ZERO);
        let extra = page.hosts.iter().map(|host| match self {
            HostRtt::Equal => Duration::ZERO,
            HostRtt::Recorded => host.rtt.map_or(Duration::ZERO, |rtt| rtt - nearest),
            HostRtt::Spread(most) => most.mul_f64(Rng::new(0).substream(&host.name).unit()),
        });
        extra.collect()
    }
}
