//! Connections on one thread, each with what it is for.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;

use base::Instant;
use mio::net::TcpListener;

use super::{Config, Connection, Event, Request};
use crate::Reactor;
use crate::tls::{Acceptor, Connector};

/// Turns of one connection before others get theirs.
const TURNS: usize = 16;

/// What a connection is for.
///
/// It may have sockets and pipes of its own: register them with the connection's [token](Connection::token), and they
/// bring it a [`pump`](Self::pump) when they are ready.
pub trait Handler {
    /// Something happened on the connection.
    fn event(&mut self, event: Event, connection: &mut Connection, reactor: &Reactor);

    /// Anything may have become possible: reading from or writing to the handler's own sources, or to a stream. Do what can be
    /// done, and say whether that was anything, a command to the connection included; you are asked until it is not.
    fn pump(&mut self, connection: &mut Connection, reactor: &Reactor) -> bool {
        let _ = (connection, reactor);
        false
    }

    /// When to be asked although nothing is ready.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

impl<H: Handler + ?Sized> Handler for Box<H> {
    fn event(&mut self, event: Event, connection: &mut Connection, reactor: &Reactor) {
        (**self).event(event, connection, reactor);
    }

    fn pump(&mut self, connection: &mut Connection, reactor: &Reactor) -> bool {
        (**self).pump(connection, reactor)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (**self).poll_timeout()
    }
}

/// A port where connections come in.
struct Port<H> {
    listener: TcpListener,
    acceptor: Option<Acceptor>,
    config: Config,
    connections_max: usize,
    /// Of those that it took, how many are not over.
    open: usize,
    welcome: Box<dyn FnMut(SocketAddr) -> H>,
}

/// A connection and what it is for.
struct Seat<H> {
    connection: Connection,
    handler: H,
    /// The port that it came in at.
    port: Option<usize>,
}

impl<H: Handler> Seat<H> {
    fn poll_timeout(&self) -> Option<Instant> {
        [self.connection.poll_timeout(), self.handler.poll_timeout()].into_iter().flatten().min()
    }
}

/// Any number of connections on one thread.
pub struct Host<H> {
    reactor: Reactor,
    ports: Vec<Port<H>>,
    connections: BTreeMap<usize, Seat<H>>,
    /// Token of the next connection; those below are used up.
    next: usize,
    /// Connections that used up their turns.
    busy: BTreeSet<usize>,
}

impl<H> std::fmt::Debug for Host<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("connections", &self.connections.len()).finish_non_exhaustive()
    }
}

/// The token of every listener.
const PORTS: usize = 0;

impl<H: Handler> Host<H> {
    /// A host without connections.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            reactor: Reactor::new()?,
            ports: Vec::new(),
            connections: BTreeMap::new(),
            next: PORTS + 1,
            busy: BTreeSet::new(),
        })
    }

    /// Its reactor, and with it the time.
    pub fn reactor(&self) -> &Reactor {
        &self.reactor
    }

    /// Connections that are not over.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether there is no connection.
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Takes connections, under TLS if there is an acceptor; each gets a handler from `welcome`. Beyond `connections_max` they
    /// wait in the kernel's queue. Gives the address, for port 0 is any.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub fn listen(
        &mut self,
        address: SocketAddr,
        acceptor: Option<Acceptor>,
        config: Config,
        connections_max: usize,
        welcome: impl FnMut(SocketAddr) -> H + 'static,
    ) -> io::Result<SocketAddr> {
        let mut listener = TcpListener::bind(address)?;
        self.reactor.register_readable(&mut listener, PORTS)?;
        let address = listener.local_addr()?;
        let welcome = Box::new(welcome);
        self.ports.push(Port { listener, acceptor, config, connections_max, open: 0, welcome });
        Ok(address)
    }

    /// Connects as a client; see [`Connection::client`].
    pub fn connect(
        &mut self,
        request: Request,
        addresses: &[SocketAddr],
        connector: Option<Connector>,
        config: Config,
        handler: H,
    ) {
        let token = self.token();
        let connection = Connection::client(request, addresses, connector, token, &self.reactor, config);
        self.connections.insert(token, Seat { connection, handler, port: None });
        self.busy.insert(token);
    }

    /// Takes no more connections, and [closes](Connection::close) those that there are: [turn](Self::turn) it until it
    /// [is empty](Self::is_empty), which takes each as long as [`Config::linger`] allows.
    pub fn close(&mut self) {
        for port in &mut self.ports {
            port.connections_max = 0;
        }
        for (token, seat) in &mut self.connections {
            seat.connection.close();
            self.busy.insert(*token);
        }
    }

    fn token(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    /// Sleeps until something is ready or `deadline` has come, and does what there is to do. Gives the handlers whose
    /// connections are over; they have had [`Event::Closed`].
    ///
    /// # Errors
    /// If the system cannot wait.
    pub fn turn(&mut self, deadline: Option<Instant>) -> io::Result<Vec<H>> {
        let deadline = match self.busy.is_empty() {
            true => self.connections.values().filter_map(Seat::poll_timeout).chain(deadline).min(),
            false => Some(Instant::ZERO),
        };
        self.reactor.wait(deadline)?;
        let now = self.reactor.now();
        let mut turns = std::mem::take(&mut self.busy);
        turns.extend(self.reactor.ready().map(|ready| ready.token));
        let overdue =
            self.connections.iter().filter(|(_, seat)| seat.poll_timeout().is_some_and(|at| at <= now));
        turns.extend(overdue.map(|(token, _)| *token));
        turns.extend(self.take_in());
        Ok(turns.into_iter().filter_map(|token| self.go_on(token)).collect())
    }

    /// Accepts what waits at the ports.
    fn take_in(&mut self) -> Vec<usize> {
        let mut taken = Vec::new();
        for (index, port) in self.ports.iter_mut().enumerate() {
            while port.open < port.connections_max {
                let (tcp, address) = match port.listener.accept() {
                    Ok(accepted) => accepted,
                    // One that is gone already is no reason to stop; when descriptors are short, the next turn may have more.
                    Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => continue,
                    Err(_) => break,
                };
                let token = self.next;
                self.next += 1;
                let (acceptor, config) = (port.acceptor.as_ref(), port.config.clone());
                // One that cannot be set up is dropped, and its client sees that.
                if let Ok(connection) = Connection::server(tcp, acceptor, token, &self.reactor, config) {
                    let handler = (port.welcome)(address);
                    self.connections.insert(token, Seat { connection, handler, port: Some(index) });
                    port.open += 1;
                    taken.push(token);
                }
            }
        }
        taken
    }

    /// Lets a connection and its handler do what they can. Gives the handler if that was the last of it.
    fn go_on(&mut self, token: usize) -> Option<H> {
        let Seat { connection, handler, port } = self.connections.get_mut(&token)?;
        for _ in 0..TURNS {
            connection.drive(&self.reactor);
            let mut moved = false;
            while let Some(event) = connection.poll_event() {
                moved = true;
                let over = matches!(event, Event::Closed(_));
                handler.event(event, connection, &self.reactor);
                if over {
                    if let Some(port) = *port {
                        self.ports[port].open -= 1;
                        // Somebody may have waited for the place.
                        self.busy.insert(PORTS);
                    }
                    return self.connections.remove(&token).map(|seat| seat.handler);
                }
            }
            moved |= handler.pump(connection, &self.reactor);
            if !moved {
                return None;
            }
        }
        self.busy.insert(token);
        None
    }
}
