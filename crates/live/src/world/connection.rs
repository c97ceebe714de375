//! One of the browser's connections.

use std::io;
use std::net::{IpAddr, SocketAddr};

use base::{Chunk, Instant};
use bytes::BytesMut;
use client::ConnectionId;
use mio::net::TcpStream;
use socket2::{Domain, Protocol, Socket, Type};

use browser::Browser;

use crate::socket::{pace, pacing_rate};
use crate::tls::{Connector, Session, TlsStream};
use crate::{Reactor, Stream, Wire, Written, prepare, tcp_stats};

enum State {
    /// TCP shakes hands.
    Connecting(TcpStream),
    /// It has, and TLS waits for its turn.
    ExpectTurn(TcpStream),
    /// TLS shakes hands.
    Securing(Box<TlsStream>),
    Open(Wire),
    Closed,
}

/// How a connection of a host is secured.
#[derive(Clone)]
pub(super) struct Secured {
    pub connector: Connector,
    pub name: String,
    /// The protocol that must come of the handshake, as ALPN names it.
    pub protocol: &'static str,
    /// The handshake waits with the server's certificate until the browser has asked about it.
    pub verify: bool,
}

pub(super) struct Connection {
    id: ConnectionId,
    /// Index of the host that it is to.
    pub host: u32,
    state: State,
    secured: Option<Secured>,
    /// Its TLS handshake may begin, and with this session if there is one.
    turn: Option<Option<Session>>,
    /// The browser has been told that there is a session to resume.
    pub resumable: bool,
    /// Our own address and the server's, by which the servers know it.
    pub ends: Option<(SocketAddr, SocketAddr)>,
    pub stats: tcp::Stats,
    /// The rate that its socket says it is paced at most at, in bytes a second.
    pub pacing_rate: Option<u64>,
    /// It has written its share and can go on.
    pub again: bool,
}

impl Connection {
    /// Goes on with a socket that [dials](dial) `to`. An error at this point is told like one that comes later.
    pub fn connect(
        reactor: &Reactor,
        id: ConnectionId,
        host: u32,
        (tcp, to): (io::Result<TcpStream>, SocketAddr),
        secured: Option<Secured>,
        paced: bool,
    ) -> Result<Self, String> {
        let opened = tcp.and_then(|mut tcp| {
            prepare(&tcp)?;
            if paced {
                pace(&tcp)?;
            }
            reactor.register(&mut tcp, id as usize)?;
            let rate = if paced { pacing_rate(&tcp)? } else { None };
            Ok((tcp, rate))
        });
        let (tcp, pacing_rate) = opened.map_err(|e| e.to_string())?;
        let ends = tcp.local_addr().ok().map(|local| (local, to));
        Ok(Self { state: State::Connecting(tcp), secured, ends, pacing_rate, ..Self::failed(id, host) })
    }

    /// One that never came about.
    pub fn failed(id: ConnectionId, host: u32) -> Self {
        Self {
            id,
            host,
            state: State::Closed,
            secured: None,
            turn: None,
            resumable: false,
            ends: None,
            stats: tcp::Stats::default(),
            pacing_rate: None,
            again: false,
        }
    }

    /// Goes as far as the socket lets it, and tells the browser.
    pub fn go_on(&mut self, now: Instant, browser: &mut Browser<'_>) {
        self.again = false;
        if let Err(why) = self.advance(now, browser) {
            self.note_stats();
            self.state = State::Closed;
            browser.handle_failed(now, self.id, &why);
        }
    }

    fn advance(&mut self, now: Instant, browser: &mut Browser<'_>) -> Result<(), String> {
        loop {
            match std::mem::replace(&mut self.state, State::Closed) {
                State::Connecting(tcp) => match is_connected(&tcp) {
                    Ok(true) => {
                        browser.handle_connected(now, self.id);
                        self.state = match self.secured {
                            None => State::Open(Wire::new(Stream::Clear(tcp))),
                            Some(_) => State::ExpectTurn(tcp),
                        };
                    }
                    Ok(false) => {
                        self.state = State::Connecting(tcp);
                        return Ok(());
                    }
                    Err(e) => return Err(e.to_string()),
                },
                State::ExpectTurn(tcp) => match self.turn.take() {
                    Some(session) => self.begin(tcp, session)?,
                    None => {
                        self.state = State::ExpectTurn(tcp);
                        return Ok(());
                    }
                },
                State::Securing(mut tls) => match tls.handshake() {
                    Ok(()) => {
                        self.check(&tls)?;
                        self.state = State::Open(Wire::new(Stream::Tls(tls)));
                        browser.handle_secured(now, self.id);
                    }
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                        if tls.poll_certificate() {
                            browser.handle_certificate(now, self.id);
                        }
                        self.state = State::Securing(tls);
                        return Ok(());
                    }
                    Err(e) => return Err(e.to_string()),
                },
                State::Open(wire) => {
                    self.state = State::Open(wire);
                    self.read(now, browser)?;
                    return self.write(now, browser);
                }
                State::Closed => return Ok(()),
            }
        }
    }

    fn begin(&mut self, tcp: TcpStream, session: Option<Session>) -> Result<(), String> {
        let Some(Secured { connector, name, verify, .. }) = &self.secured else {
            unreachable!("only a connection that is secured waits for its turn")
        };
        let tls = connector.connect(name, tcp, session.as_ref());
        let mut tls = Box::new(tls.map_err(|e| e.to_string())?);
        if *verify {
            tls.hold_certificate();
        }
        self.state = State::Securing(tls);
        Ok(())
    }

    /// Its TLS handshake may begin, and resume a session if it is given one, when it goes on.
    pub fn secure(&mut self, session: Option<Session>) {
        self.turn = Some(session);
    }

    /// All has been asked about the server's certificate, and its handshake may go on.
    pub fn verified(&mut self) {
        if let State::Securing(tls) = &mut self.state {
            tls.verified();
        }
    }

    /// Whether it is secured and nobody knows of a session yet that it has left; and whether it has resumed one itself.
    pub fn may_leave_session(&mut self) -> Option<bool> {
        match &mut self.state {
            State::Open(wire) if !self.resumable => wire.stream().negotiated().map(|tls| tls.resumed),
            _ => None,
        }
    }

    /// Whether the handshake agreed on what the load is to be made over.
    fn check(&self, tls: &TlsStream) -> Result<(), String> {
        let agreed = tls.negotiated().protocol.map(|(protocol, _)| protocol);
        let wanted = self.secured.as_ref().map(|s| s.protocol);
        if agreed.as_deref() == wanted {
            return Ok(());
        }
        Err(format!("the handshake agreed on {}", agreed.as_deref().unwrap_or("no protocol")))
    }

    fn read(&mut self, now: Instant, browser: &mut Browser<'_>) -> Result<(), String> {
        while let State::Open(wire) = &mut self.state {
            if !browser.wants_input(self.id) {
                break; // it waits in the kernel, whose window closes
            }
            match wire.read() {
                Ok(None) => break,
                Ok(Some(bytes)) if bytes.is_empty() => {
                    self.close();
                    browser.handle_eof(now, self.id);
                }
                Ok(Some(bytes)) => browser.handle_input(now, self.id, Chunk::Bytes(bytes)),
                Err(e) => return Err(e.to_string()),
            }
        }
        Ok(())
    }

    /// Writes what the browser has for it.
    fn write(&mut self, now: Instant, browser: &mut Browser<'_>) -> Result<(), String> {
        let State::Open(wire) = &mut self.state else { return Ok(()) };
        let id = self.id;
        let written = wire
            .write(Wire::SHARE, |max, out| fill(browser, id, now, max, out))
            .map_err(|e| e.to_string())?;
        self.again = written == Written::Share;
        Ok(())
    }

    /// Ends it from our side. What the server still sends is not wanted.
    pub fn close(&mut self) {
        self.note_stats();
        if let State::Open(mut wire) = std::mem::replace(&mut self.state, State::Closed) {
            // The server may be gone already; then there is nobody to tell.
            let _ = wire.stream().close();
        }
    }

    /// Ends it as a kernel does that of a process which is gone: by a reset.
    pub fn abort(&mut self) {
        self.note_stats();
        let mut state = std::mem::replace(&mut self.state, State::Closed);
        let tcp: &TcpStream = match &mut state {
            State::Connecting(tcp) | State::ExpectTurn(tcp) => tcp,
            State::Securing(tls) => tls.tcp(),
            State::Open(wire) => wire.stream().tcp(),
            State::Closed => return,
        };
        // A connection of which the kernel has been told that it is over needs no reset.
        let _ = rustix::net::sockopt::set_socket_linger(tcp, Some(std::time::Duration::ZERO));
    }

    /// Takes down what the kernel has counted.
    pub fn note_stats(&mut self) {
        let stats = match &mut self.state {
            State::Connecting(tcp) | State::ExpectTurn(tcp) => tcp_stats(tcp),
            State::Securing(tls) => tcp_stats(tls.tcp()),
            State::Open(wire) => tcp_stats(wire.stream().tcp()),
            State::Closed => return,
        };
        // A socket that cannot tell has nothing to tell of.
        self.stats = stats.unwrap_or_default();
    }
}

/// Begins to connect from a port of this address; `before` the first packet it is shown where from.
pub(super) fn dial(from: IpAddr, to: SocketAddr, before: impl FnOnce(SocketAddr)) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    before(socket.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?);
    match socket.connect(&to.into()) {
        Err(e) if e.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => Err(e),
        _ => Ok(TcpStream::from_std(socket.into())),
    }
}

/// Whether TCP's handshake is over; an error if it failed.
fn is_connected(tcp: &TcpStream) -> io::Result<bool> {
    if let Some(e) = tcp.take_error()? {
        return Err(e);
    }
    match tcp.peer_addr() {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotConnected => Ok(false),
        Err(e) => Err(e),
    }
}

/// Takes about `max` bytes from the browser. Of a request's body nothing but the length is known: zeros stand for it.
fn fill(browser: &mut Browser<'_>, id: ConnectionId, now: Instant, max: usize, out: &mut BytesMut) {
    let full = out.len() + max;
    while out.len() < full {
        match browser.poll_transmit(now, id, (full - out.len()) as u64) {
            Some(Chunk::Bytes(bytes)) => out.extend_from_slice(&bytes),
            Some(Chunk::Body(range)) => out.resize(out.len() + range.len as usize, 0),
            None => break,
        }
    }
}
