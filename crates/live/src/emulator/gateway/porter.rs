//! Opens ports at the far end, connects outside, and forgets both.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use base::{Duration, Instant};
use mio::net::{TcpListener, TcpStream, UdpSocket};

use super::opens;
use super::tcp::{self, Pair, Turn};
use crate::namespace::{Block, HEADER, Net, Tun};
use crate::timer::Policy;
use crate::{Reactor, Waker};

/// Addresses and ports that may have a listener at once, for TCP and UDP each. Of more, the one that was used least recently goes.
const LISTENERS: usize = 256;

/// Conversations of UDP that may go on at once. A datagram that would begin one more is lost.
const FLOWS: usize = 1_024;

/// SYNs that may wait for one connection outside.
const HELD: usize = 64;

/// UDP without a word for so long is over (RFC 4787 section 4.3 wants two minutes at least of a NAT); so is a connection that was
/// made for a SYN which never became one at the far end.
const SILENCE: Duration = Duration::from_secs(120);

/// Largest UDP datagram.
const DATAGRAM: usize = 65_535;

pub(super) struct Porter {
    block: Block,
    resolver: IpAddr,
    far: Net,
    device: Arc<Tun>,
    reactor: Reactor,
    /// What is registered. The reactor's token is twice the index, and one more for a pair's outer connection.
    things: Vec<Option<Thing>>,
    free: Vec<usize>,
    /// Listeners, and the attempts to see whether there may be one, by what they stand for.
    tcp: BTreeMap<SocketAddrV4, usize>,
    udp: BTreeMap<SocketAddrV4, usize>,
    /// Conversations, by listener and the near end's address.
    flows: BTreeMap<(usize, SocketAddr), usize>,
    /// Connections outside that wait for theirs at the far end.
    spare: Vec<(SocketAddrV4, TcpStream, Instant)>,
    /// Pairs that have had their turn and could go on.
    again: Vec<usize>,
    datagram: Box<[u8]>,
}

enum Thing {
    /// With the address outside that answered when the port was opened.
    Listener {
        listener: TcpListener,
        port: SocketAddrV4,
        target: SocketAddr,
        used: Instant,
    },
    /// With the packets that wait for it, and what to try next.
    Attempt {
        stream: TcpStream,
        port: SocketAddrV4,
        target: SocketAddr,
        next: Vec<SocketAddr>,
        held: Vec<Vec<u8>>,
    },
    Pair(Box<Pair>, SocketAddrV4),
    Udp {
        socket: UdpSocket,
        port: SocketAddrV4,
        used: Instant,
    },
    Flow {
        socket: UdpSocket,
        at: usize,
        peer: SocketAddr,
        used: Instant,
    },
}

impl Porter {
    pub fn new(block: Block, resolver: IpAddr, far: Net, device: Arc<Tun>) -> io::Result<Self> {
        Ok(Self {
            block,
            resolver,
            far,
            device,
            // The only deadlines here are those of silence.
            reactor: Reactor::with_policy(Policy::Economical, Duration::ZERO)?,
            things: Vec::new(),
            free: Vec::new(),
            tcp: BTreeMap::new(),
            udp: BTreeMap::new(),
            flows: BTreeMap::new(),
            spare: Vec::new(),
            again: Vec::new(),
            datagram: vec![0; DATAGRAM].into(),
        })
    }

    pub fn waker(&self) -> Waker {
        self.reactor.waker()
    }

    /// Works until it is told to stop.
    pub fn run(mut self, knocks: &Receiver<Vec<u8>>, stop: &AtomicBool) {
        let mut look = Instant::ZERO;
        while !stop.load(Ordering::SeqCst) {
            let deadline = if !self.again.is_empty() {
                Some(Instant::ZERO)
            } else if self.flows.is_empty() && self.spare.is_empty() {
                None
            } else {
                Some(look)
            };
            if self.reactor.wait(deadline).is_err() {
                return;
            }
            let mut ready: Vec<_> = self.reactor.ready().map(|ready| ready.token / 2).collect();
            ready.append(&mut self.again);
            ready.dedup();
            ready.into_iter().for_each(|index| self.on_ready(index));
            knocks.try_iter().for_each(|packet| self.on_knock(packet));
            let now = self.reactor.now();
            if now >= look {
                self.forget_the_silent(now);
                look = now + Duration::from_secs(1);
            }
        }
    }

    /// A packet stands at the door.
    fn on_knock(&mut self, packet: Vec<u8>) {
        match opens(self.block, packet.get(HEADER..).unwrap_or_default()) {
            Some((6, port)) => {
                let thing = self.tcp.get(&port).and_then(|index| self.things[*index].as_mut());
                match thing {
                    Some(Thing::Attempt { held, .. }) if held.len() < HELD => held.push(packet),
                    Some(Thing::Attempt { .. }) => {} // It will be sent again.
                    Some(_) => self.write(&packet),
                    None => self.attempt(port, self.targets(port), vec![packet]),
                }
            }
            Some((_, port)) => {
                if self.udp.contains_key(&port) || self.listen_udp(port).is_ok() {
                    self.write(&packet);
                }
            }
            None => self.write(&packet),
        }
    }

    /// Writes a packet at the far end. The kernel may refuse it, as any it gets.
    fn write(&self, packet: &[u8]) {
        let _ = self.device.write(packet);
    }

    /// Where an address leads outside. Many a server for developers listens on one loopback address only, of either family.
    fn targets(&self, port: SocketAddrV4) -> Vec<SocketAddr> {
        let to = |ip: IpAddr| SocketAddr::new(ip, port.port());
        match *port.ip() {
            ip if ip == self.block.host() => {
                vec![to(Ipv4Addr::LOCALHOST.into()), to(Ipv6Addr::LOCALHOST.into())]
            }
            ip if ip == self.block.dns() => vec![to(self.resolver)],
            ip => vec![to(ip.into())],
        }
    }

    /// Connects outside, to see whether a port may be open at the far end.
    fn attempt(&mut self, port: SocketAddrV4, mut targets: Vec<SocketAddr>, held: Vec<Vec<u8>>) {
        while !targets.is_empty() {
            let target = targets.remove(0);
            let Ok(stream) = tcp::connect(target) else { continue };
            let (next, held) = (targets.clone(), held.clone());
            if let Ok(index) = self.keep(Thing::Attempt { stream, port, target, next, held }) {
                self.tcp.insert(port, index);
                return;
            }
        }
        // The port stays shut.
        held.iter().for_each(|packet| self.write(packet));
    }

    /// A connection outside was made, or was refused.
    fn on_attempt(&mut self, index: usize) {
        let Some(Thing::Attempt { stream, .. }) = &self.things[index] else { return };
        let made = match tcp::is_made(stream) {
            Ok(false) => return,
            made => made.is_ok(),
        };
        let Some(Thing::Attempt { stream, port, target, next, held }) = self.forget(index) else { return };
        if !made && !next.is_empty() {
            self.attempt(port, next, held);
            return;
        }
        if made && self.listen_tcp(port, target).is_ok() {
            self.spare.push((port, stream, self.reactor.now()));
        }
        // With a listener the kernel at the far end accepts, without one it refuses.
        held.iter().for_each(|packet| self.write(packet));
    }

    fn listen_tcp(&mut self, port: SocketAddrV4, target: SocketAddr) -> io::Result<()> {
        let listener = self.far.run(|| TcpListener::bind(port.into()))?;
        let index = self.keep(Thing::Listener { listener, port, target, used: self.reactor.now() })?;
        self.tcp.insert(port, index);
        if let Some(oldest) = oldest(&self.things, &self.tcp) {
            self.forget(oldest);
        }
        Ok(())
    }

    fn listen_udp(&mut self, port: SocketAddrV4) -> io::Result<()> {
        let socket = self.far.run(|| UdpSocket::bind(port.into()))?;
        let index = self.keep(Thing::Udp { socket, port, used: self.reactor.now() })?;
        self.udp.insert(port, index);
        if let Some(oldest) = oldest(&self.things, &self.udp) {
            self.forget(oldest);
        }
        Ok(())
    }

    fn on_ready(&mut self, index: usize) {
        match self.things.get(index) {
            Some(Some(Thing::Listener { .. })) => self.accept(index),
            Some(Some(Thing::Attempt { .. })) => self.on_attempt(index),
            Some(Some(Thing::Pair(..))) => self.pump(index),
            Some(Some(Thing::Udp { .. })) => self.ask(index),
            Some(Some(Thing::Flow { .. })) => self.answer(index),
            _ => {}
        }
    }

    /// Takes connections at the far end, each with one outside.
    fn accept(&mut self, index: usize) {
        loop {
            let now = self.reactor.now();
            let Some(Thing::Listener { listener, port, target, used }) = &mut self.things[index] else {
                return;
            };
            let Ok((far, _)) = listener.accept() else { return };
            *used = now;
            let (port, target) = (*port, *target);
            let waiting = self.spare.iter().position(|(for_port, ..)| *for_port == port);
            let outer = match waiting {
                Some(at) => Ok(self.spare.remove(at).1),
                None => tcp::connect(target),
            };
            let Ok(outer) = outer else {
                tcp::reset(&far);
                self.forget(index);
                return;
            };
            if let Ok(pair) = Pair::new(far, outer)
                && let Ok(index) = self.keep(Thing::Pair(Box::new(pair), port))
            {
                self.again.push(index);
            }
        }
    }

    fn pump(&mut self, index: usize) {
        let Some(Thing::Pair(pair, port)) = &mut self.things[index] else { return };
        let port = *port;
        match pair.pump() {
            Turn::Waits => {}
            Turn::Over => self.again.push(index),
            Turn::Ended => drop(self.forget(index)),
            Turn::Refused => {
                self.forget(index);
                // The server outside is gone. The next SYN will be asked for anew.
                if let Some(listener) = self.tcp.get(&port) {
                    self.forget(*listener);
                }
            }
        }
    }

    /// Datagrams have come from the near end.
    fn ask(&mut self, index: usize) {
        loop {
            let now = self.reactor.now();
            let Some(Thing::Udp { socket, port, used }) = &mut self.things[index] else { return };
            let (len, peer) = match socket.recv_from(&mut self.datagram) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => continue, // what an ICMP message said of an earlier one
                Ok(received) => received,
            };
            *used = now;
            let port = *port;
            let Some(flow) = self.flow(index, port, peer) else { continue };
            if let Some(Thing::Flow { socket, used, .. }) = &mut self.things[flow] {
                *used = now;
                let _ = socket.send(&self.datagram[..len]);
            }
        }
    }

    /// The conversation of `peer`, new or not; `None` if there can be none.
    fn flow(&mut self, at: usize, port: SocketAddrV4, peer: SocketAddr) -> Option<usize> {
        if let Some(flow) = self.flows.get(&(at, peer)) {
            return Some(*flow);
        }
        if self.flows.len() >= FLOWS {
            return None;
        }
        let target = *self.targets(port).first()?;
        let any =
            if target.is_ipv4() { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
        socket.connect(target).ok()?;
        let index = self.keep(Thing::Flow { socket, at, peer, used: self.reactor.now() }).ok()?;
        self.flows.insert((at, peer), index);
        Some(index)
    }

    /// Datagrams have come from outside.
    fn answer(&mut self, index: usize) {
        let now = self.reactor.now();
        loop {
            let Some(Thing::Flow { socket, at, peer, used }) = &mut self.things[index] else { return };
            let (at, peer) = (*at, *peer);
            let len = match socket.recv(&mut self.datagram) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => continue, // what an ICMP message said of an earlier one
                Ok(len) => len,
            };
            *used = now;
            if let Some(Some(Thing::Udp { socket, .. })) = self.things.get(at) {
                let _ = socket.send_to(&self.datagram[..len], peer);
            }
        }
    }

    /// Ends conversations, and connections that nobody came for, after long silence.
    fn forget_the_silent(&mut self, now: Instant) {
        self.spare.retain(|(_, _, since)| now.since(*since) < SILENCE);
        let things = &self.things;
        let silent = |index: &&usize| matches!(&things[**index], Some(Thing::Flow { used, .. }) if now.since(*used) >= SILENCE);
        let silent: Vec<_> = self.flows.values().filter(silent).copied().collect();
        silent.into_iter().for_each(|index| drop(self.forget(index)));
    }

    /// Keeps a thing and has its readiness reported.
    fn keep(&mut self, mut thing: Thing) -> io::Result<usize> {
        let index = self.free.pop().unwrap_or_else(|| {
            self.things.push(None);
            self.things.len() - 1
        });
        let registered = match &mut thing {
            Thing::Listener { listener, .. } => self.reactor.register_readable(listener, 2 * index),
            Thing::Attempt { stream, .. } => self.reactor.register(stream, 2 * index),
            Thing::Pair(pair, _) => self
                .reactor
                .register(&mut pair.far, 2 * index)
                .and_then(|()| self.reactor.register(&mut pair.outer, 2 * index + 1)),
            Thing::Udp { socket, .. } | Thing::Flow { socket, .. } => {
                self.reactor.register_readable(socket, 2 * index)
            }
        };
        match registered {
            Ok(()) => self.things[index] = Some(thing),
            Err(_) => self.free.push(index),
        }
        registered.map(|()| index)
    }

    /// Forgets a thing, and what depends on it.
    fn forget(&mut self, index: usize) -> Option<Thing> {
        let mut thing = self.things[index].take()?;
        self.free.push(index);
        // What is closed is reported no more; what is given back may be registered again.
        match &mut thing {
            Thing::Listener { port, .. } => drop(self.tcp.remove(port)),
            Thing::Attempt { stream, port, .. } => {
                self.tcp.remove(port);
                let _ = self.reactor.deregister(stream);
            }
            Thing::Pair(..) => {}
            Thing::Udp { port, .. } => {
                self.udp.remove(port);
                let flows: Vec<_> =
                    self.flows.range((index, any())..).map(|(key, flow)| (*key, *flow)).collect();
                for ((_, _), flow) in flows.into_iter().filter(|((at, _), _)| *at == index) {
                    self.forget(flow);
                }
            }
            Thing::Flow { at, peer, .. } => drop(self.flows.remove(&(*at, *peer))),
        }
        Some(thing)
    }
}

/// The least of all socket addresses.
fn any() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0)
}

/// The listener that has not been used for longest, if there are too many.
fn oldest(things: &[Option<Thing>], listeners: &BTreeMap<SocketAddrV4, usize>) -> Option<usize> {
    if listeners.len() <= LISTENERS {
        return None;
    }
    let used = |index: &&usize| match &things[**index] {
        Some(Thing::Listener { used, .. } | Thing::Udp { used, .. }) => *used,
        _ => Instant::MAX,
    };
    listeners.values().min_by_key(used).copied()
}
