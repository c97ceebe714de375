//! Serves a site over real sockets: HTTP/1.1 and SPDY, in clear text and under TLS, all on one port.
//!
//! The first bytes of a connection tell what it is: a TLS handshake, in which ALPN or NPN choose the protocol; a SPDY
//! control frame of a client with prior knowledge; or HTTP/1.1, which may be upgraded to SPDY/3.1. From there the
//! connection is [`origin::Connection`], the same as in the virtual world. One thread serves all.

mod client;
mod folder;

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::{BodyRange, Duration, Instant};
use bytes::BytesMut;
use mio::net::{TcpListener, TcpStream};
use origin::{Behaviour, Record, Recording, Site};
use page::Page;

use crate::tls::{Acceptor, Negotiated};
use crate::{Reactor, Waker};
use client::{Client, Next};

pub use folder::{Folder, Uploads};

/// A site whose bodies can be read.
pub trait Content: Site {
    /// Appends the bytes of a part of one of its bodies, all of them.
    ///
    /// # Errors
    /// If they cannot be had any more: a file has become shorter. The connection that was to carry them is closed.
    fn read(&mut self, range: BodyRange, out: &mut BytesMut) -> io::Result<()>;
}

impl<P: Deref<Target = Page>> Content for Recording<P> {
    fn read(&mut self, range: BodyRange, out: &mut BytesMut) -> io::Result<()> {
        Recording::read(self, range, out);
        Ok(())
    }
}

/// Makes the settings of a SPDY session of some version.
#[derive(Clone)]
pub struct SpdyConfigs(Arc<dyn Fn(spdy::Version) -> spdy::Config + Send + Sync>);

impl<F: Fn(spdy::Version) -> spdy::Config + Send + Sync + 'static> From<F> for SpdyConfigs {
    fn from(make: F) -> Self {
        Self(Arc::new(make))
    }
}

impl SpdyConfigs {
    fn make(&self, version: spdy::Version) -> spdy::Config {
        (self.0)(version)
    }
}

impl fmt::Debug for SpdyConfigs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SpdyConfigs")
    }
}

/// How to serve.
#[derive(Clone, Debug)]
pub struct Config {
    /// TLS, for clients that begin with it; without it they are refused.
    pub tls: Option<Acceptor>,
    /// Whether clients may speak without TLS.
    pub clear: bool,
    /// What a SPDY session of prior knowledge is taken for that writes version 3: 3 or 3.1.
    pub version_3: spdy::Version,
    /// Whether HTTP/1.1 may be upgraded to SPDY/3.1.
    pub upgrade: bool,
    /// The settings of a SPDY session.
    pub spdy: SpdyConfigs,
    /// How long a TLS handshake, or the first byte in clear text, may take.
    pub handshake_timeout: Duration,
    /// How long a client may ask for nothing before it is told to go; and how long it may take nothing that is sent to it
    /// before it is cut off.
    pub idle_timeout: Duration,
    /// How each [place's](Server::bind_places) HTTP/1.1 connections are treated, in the order of the places; those beyond the last, well.
    pub behaviours: Vec<Behaviour>,
    /// Clients served at a time; more wait in the kernel's queue.
    pub clients_max: usize,
    /// How long those that are being served may take to finish when the server shuts down.
    pub grace: Duration,
    /// Whether the kernel spreads what a connection sends over its round trip.
    pub paced: bool,
    /// Whether SPDY clients are to keep their connection's congestion window: [`origin::Connection::with_kept_cwnd`], with the most
    /// segments that their word is good for. They are told; to begin with what they bring is a matter of routes.
    pub kept_cwnd: Option<u32>,
}

impl Default for Config {
    /// Clear text, SPDY/3.1 by prior knowledge or upgrade; 10 s to shake hands, 2 minutes idle, 1000 clients, 10 s to leave.
    fn default() -> Self {
        Self {
            tls: None,
            clear: true,
            version_3: spdy::Version::V3_1,
            upgrade: true,
            spdy: spdy::Config::new.into(),
            handshake_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(120),
            behaviours: Vec::new(),
            clients_max: 1_000,
            grace: Duration::from_secs(10),
            paced: false,
            kept_cwnd: None,
        }
    }
}

/// What happened, for a log.
#[derive(Clone, Debug)]
pub enum Event<'e> {
    /// A client connected.
    Accepted {
        /// Its number, from 0 in the order of connecting.
        client: u64,
        /// Its address.
        address: SocketAddr,
        /// The server's, to which it connected; `None` if it was gone before anybody could ask.
        to: Option<SocketAddr>,
    },
    /// TLS is there.
    Secured {
        /// The client.
        client: u64,
        /// What was agreed on.
        negotiated: &'e Negotiated,
    },
    /// An answer was handed to the engine.
    Answered {
        /// The client.
        client: u64,
        /// A line of the access log.
        record: &'e Record,
    },
    /// A client is gone.
    Closed {
        /// The client.
        client: u64,
        /// Why.
        why: &'e str,
        /// What the kernel had counted on its connection, as far as it tells.
        tcp: &'e tcp::Stats,
    },
}

/// Shuts a server down from another thread, or from a signal's handler thread.
#[derive(Clone, Debug)]
pub struct Handle {
    stop: Arc<AtomicBool>,
    waker: Waker,
}

impl Handle {
    /// Takes no more clients, lets those that are being served finish (SPDY hears of it by GOAWAY), then ends
    /// [`Server::run`].
    pub fn shut_down(&self) {
        self.stop.store(true, Ordering::SeqCst);
        // A reactor that is gone needs no waking.
        let _ = self.waker.wake();
    }
}

/// Counts of a server's life.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Summary {
    /// Clients that connected.
    pub clients: u64,
    /// Answers given, pushes not counted.
    pub answers: u64,
    /// Pushes sent.
    pub pushes: u64,
    /// Clients that were cut off when the grace was over.
    pub cut_off: u64,
}

/// A server on its ports.
#[derive(Debug)]
pub struct Server {
    config: Config,
    reactor: Reactor,
    listeners: Vec<TcpListener>,
    /// For each listener, its place.
    places: Vec<usize>,
    stop: Arc<AtomicBool>,
}

/// Connections that one listener's readiness may bring before clients get their turn.
const ACCEPTS: usize = 64;

impl Server {
    /// Takes the ports; port 0 takes any that is free, see [`addresses`](Self::addresses).
    ///
    /// # Errors
    /// With the address that could not be had, and why.
    pub fn bind(addresses: &[SocketAddr], config: Config) -> io::Result<Self> {
        let places: Vec<_> = addresses.iter().map(|address| vec![*address]).collect();
        Self::bind_places(&places, config)
    }

    /// The same where one site may be at several addresses: a place is all addresses of a site.
    ///
    /// # Errors
    /// As of [`bind`](Self::bind).
    pub fn bind_places(places: &[Vec<SocketAddr>], config: Config) -> io::Result<Self> {
        let reactor = Reactor::new()?;
        let (mut listeners, mut of_listener) = (Vec::new(), Vec::new());
        let addresses = (0..).zip(places).flat_map(|(place, all)| all.iter().map(move |a| (place, a)));
        for (place, address) in addresses {
            let named = |e: io::Error| io::Error::new(e.kind(), format!("{address}: {e}"));
            let mut listener = TcpListener::bind(*address).map_err(named)?;
            if config.paced {
                crate::socket::pace(&listener).map_err(named)?;
            }
            reactor.register_readable(&mut listener, listeners.len())?;
            listeners.push(listener);
            of_listener.push(place);
        }
        Ok(Self { config, reactor, listeners, places: of_listener, stop: Arc::default() })
    }

    /// Where it listens.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(TcpListener::local_addr).collect()
    }

    /// The rate that its connections are paced at most at, in bytes a second, as its sockets say; `None` if they are not paced.
    #[cfg(target_os = "linux")]
    pub(crate) fn pacing_rate(&self) -> io::Result<Option<u64>> {
        let rates = self.listeners.iter().map(crate::socket::pacing_rate);
        Ok(rates.collect::<io::Result<Vec<_>>>()?.into_iter().min().flatten())
    }

    /// What shuts it down.
    pub fn handle(&self) -> Handle {
        Handle { stop: self.stop.clone(), waker: self.reactor.waker() }
    }

    /// Serves until it is shut down. `log` hears of everything.
    pub fn run<C: Content>(
        self,
        site: &mut C,
        log: &mut dyn FnMut(Instant, &Event<'_>),
    ) -> io::Result<Summary> {
        self.run_sites(std::slice::from_mut(site), log)
    }

    /// The same with a site for each of the server's [places](Self::bind_places), in their order.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn run_each<C: Content>(
        self,
        sites: &mut [C],
        log: &mut dyn FnMut(Instant, &Event<'_>),
    ) -> io::Result<Summary> {
        assert!(self.places.iter().all(|place| *place < sites.len()), "a site for each place");
        self.run_sites(sites, log)
    }

    /// `sites` is one for all places, or one for each.
    fn run_sites<C: Content>(
        self,
        sites: &mut [C],
        log: &mut dyn FnMut(Instant, &Event<'_>),
    ) -> io::Result<Summary> {
        let Self { config, reactor, listeners, places: of_listener, stop } = self;
        let places = Vec::new();
        let mut track = Track {
            config: &config,
            reactor,
            listeners,
            of_listener,
            sites,
            log,
            places,
            open: 0,
            free: Vec::new(),
            accepting: VecDeque::new(),
            turns: VecDeque::new(),
            deadlines: BTreeSet::new(),
            summary: Summary::default(),
        };
        track.run(&stop)
    }
}

/// A client in its place, with the deadline it is listed under.
struct Place<C: Content> {
    client: Client<C>,
    /// Index of the site that it is served.
    site: usize,
    deadline: Option<Instant>,
    /// Whether it waits for a turn.
    queued: bool,
}

/// A running server.
struct Track<'t, C: Content> {
    config: &'t Config,
    reactor: Reactor,
    listeners: Vec<TcpListener>,
    /// For each listener, the place that it is of.
    of_listener: Vec<usize>,
    sites: &'t mut [C],
    log: &'t mut dyn FnMut(Instant, &Event<'_>),
    /// Clients; a token is a place's index behind the listeners'.
    places: Vec<Option<Place<C>>>,
    open: usize,
    free: Vec<usize>,
    /// Listeners that may have more clients.
    accepting: VecDeque<usize>,
    /// Clients that can go on.
    turns: VecDeque<usize>,
    deadlines: BTreeSet<(Instant, usize)>,
    summary: Summary,
}

impl<C: Content> Track<'_, C> {
    fn run(&mut self, stop: &AtomicBool) -> io::Result<Summary> {
        while !stop.load(Ordering::SeqCst) {
            self.turn(None)?;
        }
        self.listeners.clear();
        self.accepting.clear();
        let end = self.reactor.now() + self.config.grace;
        for index in 0..self.places.len() {
            if let Some(place) = &mut self.places[index] {
                place.client.shut_down();
                self.queue(index);
            }
        }
        while self.open > 0 && self.reactor.now() < end {
            self.turn(Some(end))?;
        }
        self.cut_off();
        Ok(self.summary)
    }

    /// Ends those that the grace was not enough for.
    fn cut_off(&mut self) {
        self.summary.cut_off = self.open as u64;
        for place in self.places.drain(..).flatten() {
            let mut client = place.client;
            client.note_tcp();
            let why = "the server shut down";
            let closed = Event::Closed { client: client.number, why, tcp: &client.tcp };
            (self.log)(self.reactor.now(), &closed);
        }
        self.open = 0;
    }

    /// Sleeps if nobody can go on, then lets everybody who can.
    fn turn(&mut self, end: Option<Instant>) -> io::Result<()> {
        let deadline = match self.turns.is_empty() && self.may_not_accept() {
            true => [self.deadlines.first().map(|(at, _)| *at), end].into_iter().flatten().min(),
            false => Some(Instant::ZERO),
        };
        self.reactor.wait(deadline)?;
        let ready: Vec<usize> = self.reactor.ready().map(|r| r.token).collect();
        for token in ready {
            match token.checked_sub(LISTENERS_MAX) {
                Some(index) => self.queue(index),
                None if !self.accepting.contains(&token) => self.accepting.push_back(token),
                None => {}
            }
        }
        let now = self.reactor.now();
        while let Some(&(at, index)) = self.deadlines.first()
            && at <= now
        {
            self.deadlines.remove(&(at, index));
            if let Some(place) = &mut self.places[index] {
                place.deadline = None;
            }
            self.queue(index);
        }
        self.accept();
        for _ in 0..self.turns.len() {
            let Some(index) = self.turns.pop_front() else { break };
            self.go_on(index);
        }
        Ok(())
    }

    fn may_not_accept(&self) -> bool {
        self.accepting.is_empty() || self.open >= self.config.clients_max
    }

    fn queue(&mut self, index: usize) {
        if let Some(Some(place)) = self.places.get_mut(index)
            && !std::mem::replace(&mut place.queued, true)
        {
            self.turns.push_back(index);
        }
    }

    /// Takes clients, a few at a time.
    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            if self.may_not_accept() {
                return;
            }
            let Some(&listener) = self.accepting.front() else { return };
            match self.listeners[listener].accept() {
                Ok((tcp, address)) => self.welcome(tcp, address, listener),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.accepting.pop_front();
                }
                // The client is gone already, or descriptors are short: the next may do better.
                Err(_) => self.accepting.rotate_left(1),
            }
        }
    }

    fn welcome(&mut self, mut tcp: TcpStream, address: SocketAddr, listener: usize) {
        let now = self.reactor.now();
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        let number = self.summary.clients;
        self.summary.clients += 1;
        (self.log)(now, &Event::Accepted { client: number, address, to: tcp.local_addr().ok() });
        let registered =
            crate::prepare(&tcp).and_then(|()| self.reactor.register(&mut tcp, LISTENERS_MAX + index));
        if let Err(e) = registered {
            let tcp = tcp::Stats::default();
            (self.log)(now, &Event::Closed { client: number, why: &e.to_string(), tcp: &tcp });
            return self.free.push(index);
        }
        let place = self.of_listener[listener];
        let behaviour = self.config.behaviours.get(place).copied().unwrap_or_default();
        let client = Client::new(number, tcp, now, behaviour);
        let site = place.min(self.sites.len() - 1);
        self.places[index] = Some(Place { client, site, deadline: None, queued: false });
        self.open += 1;
        self.queue(index);
    }

    fn go_on(&mut self, index: usize) {
        let Some(place) = &mut self.places[index] else { return };
        place.queued = false;
        let next = place.client.go_on(&self.reactor, self.config, &mut self.sites[place.site], self.log);
        let deadline = match next {
            Next::Wait(deadline) => deadline,
            Next::Again => {
                place.queued = true;
                self.turns.push_back(index);
                place.client.deadline(self.config)
            }
            Next::Closed(why) => {
                let stats = place.client.stats();
                self.summary.answers += stats.answers;
                self.summary.pushes += stats.pushes;
                let closed = Event::Closed { client: place.client.number, why: &why, tcp: &place.client.tcp };
                (self.log)(self.reactor.now(), &closed);
                if let Some(at) = place.deadline {
                    self.deadlines.remove(&(at, index));
                }
                self.places[index] = None;
                self.free.push(index);
                self.open -= 1;
                return;
            }
        };
        if place.deadline != deadline {
            if let Some(at) = place.deadline.take() {
                self.deadlines.remove(&(at, index));
            }
            self.deadlines.extend(deadline.map(|at| (at, index)));
            place.deadline = deadline;
        }
    }
}

/// Tokens below this are listeners'.
const LISTENERS_MAX: usize = 1 << 16;
