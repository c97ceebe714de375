//! One connection of a fetch: from its addresses to its last byte.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use base::Instant;
use bytes::Bytes;
use mio::net::TcpStream;

use super::engine::Engine;
use super::{Config, Direction, Protocol};
use crate::tls::{Connector, Negotiated};
use crate::{Reactor, Stream, Wire, Written, prepare};

/// How far it has come.
enum State {
    /// TCP shakes hands.
    Connecting(TcpStream),
    /// TLS does.
    Securing(Stream),
    /// Requests can be sent.
    Open(Wire, Box<Engine>),
    Closed,
}

/// When its phases were.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Phases {
    pub dns: Option<(Instant, Instant)>,
    pub begun: Instant,
    pub connected: Option<Instant>,
    pub secured: Option<Instant>,
}

/// What a step of a connection came to.
#[derive(Debug)]
pub(super) enum Step {
    /// Nothing until the socket or the clock says more.
    Wait,
    Connecting(SocketAddr),
    NotConnected(SocketAddr, String),
    Connected,
    Secured(Negotiated, bool),
    Speaking(Protocol),
    /// It has written its share and can go on.
    Again,
    /// It is over, for this reason.
    Closed(String),
}

pub(super) struct Connection {
    /// Its number, and its token.
    pub number: usize,
    /// Index of the origin.
    pub origin: usize,
    name: String,
    connector: Option<Connector>,
    addresses: VecDeque<SocketAddr>,
    address: Option<SocketAddr>,
    state: State,
    pub phases: Phases,
    /// When something last came from the server, or was asked of it after silence.
    pub heard: Instant,
    /// Requests sent on it.
    pub asked: usize,
    /// Responses that came on it whole.
    pub answered: usize,
}

impl Connection {
    /// A connection to the first of `addresses` that takes one; secured by `connector`, if there is one, for `name`.
    pub fn new(
        number: usize,
        origin: usize,
        name: &str,
        connector: Option<Connector>,
        addresses: &[SocketAddr],
        phases: Phases,
    ) -> Self {
        Self {
            number,
            origin,
            name: name.to_owned(),
            connector,
            addresses: addresses.iter().copied().collect(),
            address: None,
            state: State::Closed,
            heard: phases.begun,
            phases,
            asked: 0,
            answered: 0,
        }
    }

    /// Tries the next address.
    pub fn connect(&mut self, reactor: &Reactor) -> Step {
        let Some(address) = self.addresses.pop_front() else {
            return Step::Closed("no address could be connected to".into());
        };
        self.address = Some(address);
        self.heard = reactor.now();
        let opened = TcpStream::connect(address).and_then(|mut tcp| {
            reactor.register(&mut tcp, self.number)?;
            Ok(tcp)
        });
        match opened {
            Ok(tcp) => {
                self.state = State::Connecting(tcp);
                Step::Connecting(address)
            }
            Err(e) => Step::NotConnected(address, e.to_string()),
        }
    }

    pub fn engine(&mut self) -> Option<&mut Engine> {
        match &mut self.state {
            State::Open(_, engine) => Some(engine),
            _ => None,
        }
    }

    /// Lets another engine go on, with what the first one did not read as its own.
    pub fn switch(&mut self, mut engine: Engine, now: Instant, rest: Vec<Bytes>) -> Result<(), String> {
        for bytes in rest {
            engine.handle_input(now, bytes)?;
        }
        if let State::Open(_, before) = &mut self.state {
            **before = engine;
        }
        Ok(())
    }

    /// Says that nothing more will be written, and is done with it.
    pub fn close(&mut self) {
        if let State::Open(mut wire, _) = std::mem::replace(&mut self.state, State::Closed) {
            // The peer may be gone already; then there is nobody to tell.
            let _ = wire.stream().close();
        }
    }

    pub fn poll_timeout(&self, config: &Config) -> Option<Instant> {
        match &self.state {
            State::Closed => None,
            State::Connecting(_) | State::Securing(_) => Some(self.heard + config.connect_timeout),
            State::Open(_, engine) => {
                let silent = engine.is_waiting().then(|| self.heard + config.idle_timeout);
                [silent, engine.poll_timeout()].into_iter().flatten().min()
            }
        }
    }

    /// The time has come that [`poll_timeout`](Self::poll_timeout) named, or another.
    pub fn handle_timeout(&mut self, now: Instant, config: &Config) -> Step {
        if let State::Open(_, engine) = &mut self.state {
            engine.handle_timeout(now);
        }
        if self.poll_timeout(config).is_none_or(|due| due > now) {
            return Step::Wait;
        }
        match self.state {
            State::Connecting(_) => {
                self.state = State::Closed;
                let address = self.address.expect("it is being connected to");
                Step::NotConnected(address, "no answer in time".into())
            }
            State::Securing(_) => Step::Closed("the TLS handshake took too long".into()),
            _ => Step::Closed("nothing came from the server for too long".into()),
        }
    }

    /// Goes as far as the socket lets it, one thing at a time: ask again until it gives [`Step::Wait`] or
    /// [`Step::Closed`]. `watch` is shown all plaintext.
    pub fn step(
        &mut self,
        reactor: &Reactor,
        config: &Config,
        watch: &mut dyn FnMut(Direction, &[u8]),
    ) -> Step {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Connecting(tcp) => self.connecting(tcp, reactor),
            State::Securing(stream) => self.securing(stream, reactor, config),
            State::Open(wire, engine) => self.carry(wire, engine, reactor, watch),
            State::Closed => Step::Wait,
        }
    }

    fn connecting(&mut self, tcp: TcpStream, reactor: &Reactor) -> Step {
        let failed = tcp.take_error().and_then(|e| e.map_or(Ok(()), Err));
        match failed.and_then(|()| tcp.peer_addr()) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotConnected => {
                self.state = State::Connecting(tcp);
                return Step::Wait;
            }
            Err(e) => {
                return Step::NotConnected(self.address.expect("it is being connected to"), e.to_string());
            }
        }
        if let Err(e) = prepare(&tcp) {
            return Step::Closed(format!("socket options: {e}"));
        }
        let now = reactor.now();
        self.phases.connected = Some(now);
        self.heard = now;
        let stream = match &self.connector {
            None => Ok(Stream::Clear(tcp)),
            Some(connector) => connector.connect(&self.name, tcp, None).map(|tls| Stream::Tls(Box::new(tls))),
        };
        match stream {
            Ok(stream) => self.state = State::Securing(stream),
            Err(e) => return Step::Closed(e.to_string()),
        }
        Step::Connected
    }

    fn securing(&mut self, mut stream: Stream, reactor: &Reactor, config: &Config) -> Step {
        match stream.handshake() {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.state = State::Securing(stream);
                return Step::Wait;
            }
            Err(e) => return Step::Closed(e.to_string()),
        }
        let now = reactor.now();
        let negotiated = stream.negotiated();
        if let (Some(negotiated), None) = (&negotiated, self.phases.secured) {
            let step = Step::Secured(negotiated.clone(), stream.is_false_started());
            self.phases.secured = Some(now);
            self.heard = now;
            self.state = State::Securing(stream);
            return step;
        }
        let protocol = match choose(negotiated.as_ref(), config) {
            Ok(protocol) => protocol,
            Err(why) => return Step::Closed(why),
        };
        let engine = match protocol {
            Protocol::Http1 => Engine::http1(config.pipeline),
            Protocol::Spdy(version) => Engine::spdy(config.session(version), config.concurrent),
        };
        self.state = State::Open(Wire::new(stream), Box::new(engine));
        Step::Speaking(protocol)
    }

    /// Reads all there is and writes all that fits.
    fn carry(
        &mut self,
        mut wire: Wire,
        mut engine: Box<Engine>,
        reactor: &Reactor,
        watch: &mut dyn FnMut(Direction, &[u8]),
    ) -> Step {
        let mut over = None;
        let now = reactor.now();
        while over.is_none() {
            match wire.read() {
                Ok(None) => break,
                Ok(Some(bytes)) if bytes.is_empty() => {
                    let end = engine.handle_eof();
                    over = Some(end.map_or_else(|e| e, |()| "the server closed the connection".into()));
                }
                Ok(Some(bytes)) => {
                    self.heard = now;
                    watch(Direction::Down, &bytes);
                    over = engine.handle_input(now, bytes).err();
                }
                Err(e) => over = Some(e.to_string()),
            }
        }
        let written = wire.write(Wire::SHARE, |max, out| {
            let before = out.len();
            engine.transmit(now, max, out);
            if out.len() > before {
                watch(Direction::Up, &out[before..]);
            }
        });
        self.state = State::Open(wire, engine);
        match (over, written) {
            (Some(why), _) => Step::Closed(why),
            (None, Err(e)) => Step::Closed(e.to_string()),
            (None, Ok(Written::Share)) => Step::Again,
            (None, Ok(Written::All | Written::Blocked)) => Step::Wait,
        }
    }
}

/// What is spoken, after the handshake if there was one.
fn choose(negotiated: Option<&Negotiated>, config: &Config) -> Result<Protocol, String> {
    let ours = &config.protocols;
    let Some(negotiated) = negotiated else {
        return Ok(if config.upgrade { Protocol::Http1 } else { ours[0] });
    };
    let chosen = match &negotiated.protocol {
        Some((id, _)) => Protocol::from_id(id),
        // A server that says nothing speaks HTTP/1.1 (RFC 7301 §3.1 leaves it to the server).
        None => Some(Protocol::Http1),
    };
    chosen.filter(|p| ours.contains(p)).ok_or_else(|| {
        let offered: Vec<_> = ours.iter().map(|p| p.id()).collect();
        format!("the server takes none of {}", offered.join(", "))
    })
}
