//! The world's parts and its course. What goes on at an end of a connection is in `world/end.rs`.

mod end;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use base::{Duration, Instant, Rng};
use browser::Browser;
use client::{Action, Family};
use link::Path;
use load::{Load, Outcome, Setup};
use page::Page;

use crate::connection::{Connection, End};
use crate::fault::Past;
use crate::names::{Names, Query, Step, answer_len, question_len};
use crate::queue::{Alarm, Event, EventQueue, Side};
use crate::tap::Tap;

/// A segment on its way, with the connection it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Packet {
    pub(crate) connection: u32,
    /// Its number at the tap, if there is one.
    number: u32,
    segment: tcp::Segment,
    /// It is one of IPv6.
    ipv6: bool,
}

/// What the header of IPv6 has more than that of IPv4, which TCP counts on: 40 bytes (RFC 8200 §3) and 20 (RFC 791 §3.1). Segments have
/// as much less room in a packet.
const IPV6_MORE: u16 = 20;

/// What crosses the access link.
#[derive(Clone, Copy)]
pub(crate) enum Crossing {
    Tcp(Packet),
    /// A question for the name of a host, or its answer, and its bytes.
    Name {
        query: Query,
        len: u32,
    },
}

impl link::Packet for Crossing {
    fn wire_len(&self) -> u32 {
        match self {
            Crossing::Tcp(packet) => {
                packet.segment.wire_len() + if packet.ipv6 { u32::from(IPV6_MORE) } else { 0 }
            }
            Crossing::Name { len, .. } => *len,
        }
    }

    fn flow(&self) -> u64 {
        match self {
            Crossing::Tcp(packet) => u64::from(packet.connection),
            // All from one port to one port, as a resolver's are.
            Crossing::Name { .. } => u64::MAX,
        }
    }
}

/// A host besides its connections: whose server it has, and the packets between it and the access link.
pub(crate) struct Host {
    pub(crate) server: usize,
    /// The first host that has its address.
    address: u32,
    tls: bool,
    protocol: origin::Protocol,
    /// Connections that clients have tried to make.
    dialled: u32,
    /// When it goes away for good.
    pub(crate) vanishes: Option<Instant>,
    /// Between the access link and the server: with its own address, and with that of IPv6 if it has one.
    ways: [Way; 2],
}

/// How packets to and from one address of a host go.
#[derive(Default)]
struct Way {
    /// One way between the access link and the server.
    distance: Duration,
    /// They do not arrive.
    lost: bool,
    /// On that way, in order: all take the same time, so that each event finds its packet in front.
    to_server: VecDeque<Packet>,
    to_link: VecDeque<Packet>,
}

impl Way {
    fn all(extra: Duration, ipv6: Option<&load::Ipv6>) -> [Self; 2] {
        let (detour, lost) = match ipv6.map(|ipv6| ipv6.route) {
            Some(load::Route::Longer(detour)) => (detour, false),
            Some(load::Route::Lost) => (Duration::ZERO, true),
            Some(load::Route::Same | load::Route::Refused) | None => (Duration::ZERO, false),
        };
        let own = Self { distance: extra / 2, ..Self::default() };
        [own, Self { distance: (extra + detour) / 2, lost, ..Self::default() }]
    }
}

pub(crate) struct World<'p> {
    pub(crate) page: &'p Page,
    pub(crate) setup: &'p Setup,
    pub(crate) now: Instant,
    pub(crate) events: EventQueue,
    pub(crate) browser: Browser<'p>,
    pub(crate) browser_alarm: Alarm,
    pub(crate) hosts: Vec<Host>,
    pub(crate) servers: Vec<origin::Server<'p>>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) names: Names,
    pub(crate) down: Path<Crossing>,
    pub(crate) up: Path<Crossing>,
    pub(crate) faults: origin::Faults,
    pub(crate) rng: Rng,
    /// What is left of what is over: an application that has ended, a network that was left.
    pub(crate) past: Past,
    /// What it sees is kept, if it was asked for.
    tap: Option<Tap>,
    /// The first thing that went wrong between the engines.
    fault: Option<String>,
}

impl<'p> World<'p> {
    pub(crate) fn new(page: &'p Page, setup: &'p Setup, seed: u64) -> Self {
        let rng = Rng::new(seed);
        let faults = origin::Faults::new(setup.faults.hosts.clone(), rng.substream("faults"));
        let addresses = setup.addresses(page);
        let shared = setup.servers(page);
        let hosts = (0..).zip(&page.hosts).zip(setup.distances(page)).map(|((id, host), extra)| Host {
            server: shared.iter().position(|hosts| hosts.contains(&id)).expect("each host has a server"),
            address: addresses[id as usize],
            tls: setup.secures(host),
            protocol: setup.protocol(page, host),
            dialled: 0,
            vanishes: faults.vanishes(&host.name),
            ways: Way::all(extra, setup.ipv6.as_ref()),
        });
        let hosts = hosts.collect();
        let servers = shared.into_iter().map(|hosts| {
            let behaviour = setup.servers.behaviour(&page.hosts[hosts[0] as usize].name);
            let server = match hosts[..] {
                [host] => origin::Server::new(page, host, setup.think),
                _ => origin::Server::of_hosts(page, hosts, setup.think),
            };
            let server = server.with_faults(faults.clone()).with_behaviour(behaviour);
            server.with_kept_cwnd(setup.techniques.kept_cwnd).map_site(|site| setup.foresee(site))
        });
        Self {
            page,
            setup,
            now: Instant::ZERO,
            events: EventQueue::default(),
            browser: browser(page, setup),
            browser_alarm: Alarm::default(),
            hosts,
            servers: servers.collect(),
            connections: Vec::new(),
            names: Names::new(setup.dns, setup.up.delay + setup.down.delay, page.hosts.len()),
            down: Path::new(&setup.down, rng.substream("link.down")),
            up: Path::new(&setup.up, rng.substream("link.up")),
            faults,
            rng,
            past: Past::default(),
            tap: Tap::of(setup),
            fault: None,
        }
    }

    /// Runs the world until the page is loaded, nothing is left to happen, or it is time to give up.
    pub(crate) fn run(mut self) -> Load {
        self.browser.start(self.now);
        self.pump();
        self.expect_faults();
        while !self.browser.is_finished() {
            let Some((at, event)) = self.events.pop() else { break };
            if at.since(Instant::ZERO) > self.setup.give_up {
                self.now = Instant::ZERO + self.setup.give_up;
                break;
            }
            self.now = at;
            self.handle(event);
        }
        self.into_load()
    }

    fn handle(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Down => {
                while let Some(crossing) = self.down.pop(now) {
                    match crossing {
                        Crossing::Tcp(packet) => self.arrive(packet, Side::Client),
                        Crossing::Name { query, .. } => {
                            let Query { host, family } = query;
                            let address = self.address_of(query);
                            self.note(load::Sighting::Answer { at: now, host, family, address });
                            self.answered(query);
                        }
                    }
                }
                self.events.arm_down(self.down.next_time());
            }
            Event::Up => {
                while let Some(crossing) = self.up.pop(now) {
                    match crossing {
                        Crossing::Tcp(packet) => self.cross_to_server(packet),
                        Crossing::Name { query, .. } => {
                            self.events.push(self.names.answer_at(now), Event::NameServer(query));
                        }
                    }
                }
                self.events.arm_up(self.up.next_time());
            }
            Event::AtServer { host, ipv6 } => {
                let way = &mut self.hosts[host as usize].ways[usize::from(ipv6)];
                let packet = way.to_server.pop_front().expect("a packet an event");
                self.arrive(packet, Side::Server);
            }
            Event::AtLink { host, ipv6 } => {
                let way = &mut self.hosts[host as usize].ways[usize::from(ipv6)];
                let packet = way.to_link.pop_front().expect("a packet an event");
                self.enter_down(Crossing::Tcp(packet));
            }
            Event::End { connection, side } => {
                let end = self.connections[connection as usize].end(side);
                if end.alarm.goes_off(now) {
                    end.tcp.handle_timeout(now);
                    if let Some(tls) = &mut end.tls {
                        tls.handle_timeout(now);
                    }
                    self.service(connection, side);
                }
            }
            Event::Origin { connection } => {
                let entry = &mut self.connections[connection as usize];
                if entry.origin_alarm.goes_off(now) {
                    self.servers[self.hosts[entry.host as usize].server].handle_timeout(now, entry.at_server);
                    self.service(connection, Side::Server);
                }
            }
            Event::Browser => {
                if self.browser_alarm.goes_off(now) {
                    self.browser.handle_timeout(now);
                    self.pump();
                }
            }
            // It goes to whoever has asked: an address that the client has had is nobody's.
            Event::NameServer(query) if !self.names.is_asked(query) => {}
            Event::NameServer(query) => {
                let address = self.address_of(query);
                let len = answer_len(&self.page.hosts[query.host as usize].name, address);
                self.enter_down(Crossing::Name { query, len });
            }
            Event::Lookup(query) => {
                let step = self.names.go_on(self.now, query);
                self.look_up(query, step);
                self.pump();
            }
            Event::Resolved(query) => self.answered(query),
            Event::NetworkChange => self.change_network(),
            Event::Restart => self.restart(),
        }
    }

    /// Carries out what the browser has decided, until it has no more to say.
    pub(crate) fn pump(&mut self) {
        loop {
            let mut quiet = true;
            // Requests first: what a connection that is there can take goes out before another is opened.
            while let Some(connection) = self.browser.poll_dirty() {
                self.send(self.past.world_id(connection), Side::Client);
                quiet = false;
            }
            while let Some(action) = self.browser.poll_action() {
                self.act(action);
                quiet = false;
            }
            while let Some(connection) = self.browser.poll_readable() {
                self.service(self.past.world_id(connection), Side::Client);
                quiet = false;
            }
            while let Some(client::Secure { connection, resume }) = self.browser.poll_secure() {
                self.secure(self.past.world_id(connection), resume);
                quiet = false;
            }
            while let Some(connection) = self.browser.poll_verified() {
                self.go_on_securing(connection);
                quiet = false;
            }
            if quiet {
                break;
            }
        }
        self.events.arm(&mut self.browser_alarm, self.browser.poll_timeout(), Event::Browser);
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Resolve { host } => {
                let families: &[Family] =
                    if self.setup.ipv6.is_some() { &[Family::V6, Family::V4] } else { &[Family::V4] };
                for family in families {
                    let query = Query { host, family: *family };
                    let step = self.names.begin(self.now, query);
                    self.look_up(query, step);
                }
            }
            Action::Connect { connection, host, resume } => {
                let ipv6 = self.setup.ipv6.is_some() && self.goes_to_ipv6(connection);
                let connection = self.past.world_id(connection);
                debug_assert_eq!(connection as usize, self.connections.len());
                let entry = self.open(host, resume, ipv6);
                self.connections.push(entry);
                self.send(connection, Side::Client);
            }
            Action::Close { connection } => {
                let connection = self.past.world_id(connection);
                self.connections[connection as usize].client.closing = true;
                self.send(connection, Side::Client);
            }
        }
    }

    fn look_up(&mut self, query: Query, step: Step) {
        match step {
            Step::Ask(again) => {
                let Query { host, family } = query;
                let len = question_len(&self.page.hosts[host as usize].name);
                self.note(load::Sighting::Question { at: self.now, host, family });
                self.enter_up(Crossing::Name { query, len });
                self.events.push(again, Event::Lookup(query));
            }
            Step::Known(at) => self.events.push(at, Event::Resolved(query)),
            Step::GiveUp => self.tell(query, None),
            Step::Done => {}
        }
    }

    /// The address of a family that a host has.
    fn address_of(&self, Query { host, family }: Query) -> Option<IpAddr> {
        match family {
            Family::V6 => self.setup.ipv6_address(self.page, host).map(IpAddr::from),
            Family::V4 => Some(address(self.hosts[host as usize].address).into()),
        }
    }

    /// Tells the browser what has come of a look-up.
    fn tell(&mut self, Query { host, family }: Query, address: Option<IpAddr>) {
        match self.setup.ipv6 {
            Some(_) => self.browser.handle_addresses(self.now, host, family, address.as_slice()),
            None => self.browser.handle_resolved(self.now, host, address.is_some()),
        }
    }

    /// Tells the tap, if there is one.
    fn note(&mut self, sighting: load::Sighting) {
        if let Some(tap) = &mut self.tap {
            tap.saw(sighting);
        }
    }

    fn answered(&mut self, query: Query) {
        if self.names.take(query) {
            let address = self.address_of(query);
            self.tell(query, address);
            self.pump();
        }
    }

    /// Whether the client has chosen an address of IPv6 for a connection.
    fn goes_to_ipv6(&self, connection: u32) -> bool {
        let record = self.browser.connections().nth(connection as usize);
        record.and_then(|record| record.address).is_some_and(|address| address.is_ipv6())
    }

    fn open(&mut self, host: u32, resume: bool, ipv6: bool) -> Connection {
        let [client, server] = self.tls(host, resume);
        let tcp = [&self.setup.client_tcp, &self.setup.server_tcp].map(|config| tcp::Config {
            mss: config.mss.saturating_sub(if ipv6 { IPV6_MORE } else { 0 }).max(1),
            ..config.clone()
        });
        let [client_tcp, server_tcp] = tcp;
        let entry = &mut self.hosts[host as usize];
        let mut connection = Connection {
            host,
            at_server: self.servers[entry.server].accept_at(self.now, &entry.protocol),
            client: End::new(tcp::Endpoint::connect(client_tcp, self.now), client),
            server: End::new(tcp::Endpoint::accept(server_tcp, self.now), server),
            origin_alarm: Alarm::default(),
            ipv6,
        };
        let waits = self.setup.techniques.handshakes == client::Handshakes::WaitForSession;
        let nobody = ipv6 && self.setup.ipv6.as_ref().is_some_and(|ipv6| ipv6.route == load::Route::Refused);
        if nobody || self.faults.refuses(&self.page.hosts[host as usize].name, entry.dialled) {
            connection.server.over = true;
            connection.server.tcp.abort(); // it answers every segment with a RST now
        }
        entry.dialled += 1;
        connection.client.held = waits && entry.tls;
        connection
    }

    /// Both ends of a TLS handshake with a host, if it is secured.
    fn tls(&self, host: u32, resume: bool) -> [Option<tls::Session>; 2] {
        let tls = self.setup.tls.as_ref().filter(|_| self.hosts[host as usize].tls);
        let Some(config) = tls.cloned() else { return [None, None] };
        let config = if resume { config.resumed() } else { config };
        [tls::Session::client(config.clone(), self.now), tls::Session::server(config, self.now)].map(Some)
    }

    /// A TLS handshake may begin. Those that were not held back have been begun with their connection.
    fn secure(&mut self, id: u32, resume: bool) {
        let entry = &self.connections[id as usize];
        if !entry.client.held {
            return;
        }
        let [client, server] = self.tls(entry.host, resume);
        let entry = &mut self.connections[id as usize];
        entry.client.held = false;
        (entry.client.tls, entry.server.tls) = (client, server);
        self.send(id, Side::Client);
    }

    /// A server's certificate is accepted.
    fn go_on_securing(&mut self, id: u32) {
        if let Some(tls) = &mut self.connections[id as usize].client.tls {
            tls.verified(self.now);
        }
        self.send(id, Side::Client);
    }

    /// A packet has reached an end of its connection.
    fn arrive(&mut self, packet: Packet, side: Side) {
        if let Some(tap) = &mut self.tap {
            tap.arrived(self.now, packet.number);
        }
        let end = self.connections[packet.connection as usize].end(side);
        end.tcp.handle_segment(self.now, &packet.segment);
        self.service(packet.connection, side);
    }

    fn enter_up(&mut self, crossing: Crossing) {
        if self.past.is_stranded(&crossing) {
            return;
        }
        self.up.push(self.now, crossing);
        self.events.arm_up(self.up.next_time());
    }

    fn enter_down(&mut self, crossing: Crossing) {
        if self.past.is_stranded(&crossing) {
            return;
        }
        self.down.push(self.now, crossing);
        self.events.arm_down(self.down.next_time());
    }

    fn cross_to_server(&mut self, packet: Packet) {
        let Connection { host, ipv6, .. } = self.connections[packet.connection as usize];
        let entry = &mut self.hosts[host as usize];
        let gone = entry.is_gone(self.now);
        let way = &mut entry.ways[usize::from(ipv6)];
        if gone || way.lost {
            return;
        }
        if way.distance.is_zero() {
            return self.arrive(packet, Side::Server);
        }
        way.to_server.push_back(packet);
        self.events.push(self.now + way.distance, Event::AtServer { host, ipv6 });
    }

    fn cross_to_link(&mut self, packet: Packet) {
        let Connection { host, ipv6, .. } = self.connections[packet.connection as usize];
        let entry = &mut self.hosts[host as usize];
        if entry.is_gone(self.now) {
            return;
        }
        let way = &mut entry.ways[usize::from(ipv6)];
        if way.distance.is_zero() {
            return self.enter_down(Crossing::Tcp(packet));
        }
        way.to_link.push_back(packet);
        self.events.push(self.now + way.distance, Event::AtLink { host, ipv6 });
    }

    fn into_load(mut self) -> Load {
        self.browser.finish_visit();
        let past = &self.past.application;
        let connections =
            past.records(&self.browser).zip(&self.connections).map(|(record, entry)| load::Connection {
                address: record.address.map_or_else(
                    || address(self.hosts[record.host as usize].address).to_string(),
                    |address| address.to_string(),
                ),
                record,
                client: entry.client.tcp.stats().clone(),
                server: entry.server.tcp.stats().clone(),
            });
        let missing = self.fault.clone().or_else(|| self.browser.missing(self.now));
        let (packets, wire) = self.tap.take().map_or_else(Default::default, Tap::into_parts);
        Load {
            outcome: missing.map_or(Outcome::Complete, Outcome::Incomplete),
            moments: *self.browser.moments(),
            requests: past.requests(&self.browser),
            behind: self.browser.behind().collect(),
            connections: connections.collect(),
            lookups: past.lookups(&self.browser),
            down: self.past.down.and_then(self.down.stats()),
            up: self.past.up.and_then(self.up.stats()),
            computed: past.computed(&self.browser),
            ended: self.now,
            unread_max: self.browser.client().unread_max(),
            ahead: self.browser.ahead_tally(),
            progress: self.browser.client().progress().copied().collect(),
            packets,
            wire,
            memory: self.setup.remembered(&self.browser),
            troubles: past.troubles(&self.browser),
            repeated: self.servers.iter().flat_map(origin::Server::repeats).collect(),
        }
    }
}

/// A browser that begins with nothing.
pub(crate) fn browser<'p>(page: &'p Page, setup: &'p Setup) -> Browser<'p> {
    let addresses = setup.addresses(page);
    setup.browser(page, |host| Some(address(addresses[host as usize]).into()))
}

/// The virtual address of a host: 10.0.0.0/8 by its index.
fn address(host: u32) -> Ipv4Addr {
    Ipv4Addr::from(10 << 24 | ((host + 1) & 0xff_ffff))
}
