//! One end of a connection: what it is asked and told. How it gets on is [`progress`].

mod engine;
mod progress;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use base::{Fields, Instant};
use bytes::Bytes;
use mio::net::TcpStream;
use spdy::{OpenError, Opening, Session, Status, StreamId};

use self::engine::{Engine, Streams};
use super::upgrade::Asked;
use super::{Config, Error, Event, Request, SendError};
use crate::tls::{Acceptor, Connector};
use crate::{Reactor, Stream, Wire, prepare};

enum State {
    /// Client: TCP shakes hands with this address.
    Connecting(TcpStream, SocketAddr),
    /// TLS does, if there is any.
    Securing(Stream),
    Open(Wire, Engine),
    /// All is said; the peer's own end is awaited, that no reset overtakes the last bytes (RFC 9112 §9.6).
    Leaving(Wire),
    Closed,
}

/// A client's way to its server.
struct Plan {
    request: Request,
    addresses: VecDeque<SocketAddr>,
    connector: Option<Connector>,
}

/// One end of a connection that carries SPDY streams. See the [module's page](super).
///
/// [`drive`](Self::drive) it, then take its events until there are none and answer them by commands, and again until
/// neither brings anything; the next time its socket is ready, [`poll_timeout`](Self::poll_timeout) has come, or a command was
/// given. A [`Host`](super::Host) does so.
pub struct Connection {
    config: Config,
    token: usize,
    plan: Option<Plan>,
    scheme: &'static str,
    state: State,
    /// As of the last drive.
    now: Instant,
    /// When the handshake began; while it leaves, when anything last left.
    since: Instant,
    /// Since when the peer is silent, or was last sent a PING.
    silent: Instant,
    /// When anything but PINGs last happened.
    active: Instant,
    /// When a PING was sent that nothing has answered.
    probing: Option<Instant>,
    events: VecDeque<Event>,
    /// Bytes delivered and not consumed.
    unread: usize,
    /// There may be more to do at once.
    busy: bool,
    /// The socket takes nothing more, ever; what the peer said before may still be there to read.
    unwritable: Option<Error>,
    /// How it will have ended, once all is said.
    leaving: Option<Result<(), Error>>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match &self.state {
            State::Connecting(..) => "connecting",
            State::Securing(_) => "securing",
            State::Open(_, Engine::Streams(_)) => "streams",
            State::Open(..) => "upgrading",
            State::Leaving(_) => "leaving",
            State::Closed => "closed",
        };
        f.debug_struct("Connection")
            .field("state", &state)
            .field("unread", &self.unread)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// A client's end. It connects to the first of `addresses` that takes it, under TLS if the URL says `https`, for which
    /// `connector` must then be there and offer nothing but `http/1.1`. Its socket is registered with `reactor` as `token`.
    pub fn client(
        request: Request,
        addresses: &[SocketAddr],
        connector: Option<Connector>,
        token: usize,
        reactor: &Reactor,
        config: Config,
    ) -> Self {
        let secure = request.url.scheme() == "https";
        let connector = connector.filter(|_| secure);
        let (addresses, why) = match secure && connector.is_none() {
            true => (VecDeque::new(), "an https URL needs a TLS connector"),
            false => (addresses.iter().copied().collect(), "no address to connect to"),
        };
        let mut connection = Self::new(config, "http", token, reactor.now());
        connection.plan = Some(Plan { request, addresses, connector });
        match connection.dial(reactor, Error::Transport(why.into())) {
            Ok(state) => connection.state = state,
            Err(e) => connection.finish(Err(e)),
        }
        connection
    }

    /// A server's end of a connection that was just accepted.
    ///
    /// # Errors
    /// If the system or the TLS library does not play along.
    pub fn server(
        mut tcp: TcpStream,
        acceptor: Option<&Acceptor>,
        token: usize,
        reactor: &Reactor,
        config: Config,
    ) -> io::Result<Self> {
        prepare(&tcp)?;
        reactor.register(&mut tcp, token)?;
        let (stream, scheme) = match acceptor {
            None => (Stream::Clear(tcp), "http"),
            Some(acceptor) => {
                (Stream::Tls(Box::new(acceptor.accept(tcp).map_err(io::Error::other)?)), "https")
            }
        };
        let mut connection = Self::new(config, scheme, token, reactor.now());
        connection.state = State::Securing(stream);
        Ok(connection)
    }

    fn new(config: Config, scheme: &'static str, token: usize, now: Instant) -> Self {
        Self {
            config,
            token,
            plan: None,
            scheme,
            state: State::Closed,
            now,
            since: now,
            silent: now,
            active: now,
            probing: None,
            events: VecDeque::new(),
            unread: 0,
            busy: false,
            unwritable: None,
            leaving: None,
        }
    }

    /// What its socket is registered as.
    pub fn token(&self) -> usize {
        self.token
    }

    /// What happened next.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to [`drive`](Self::drive) it although its socket is silent.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let config = &self.config;
        match &self.state {
            State::Closed => None,
            _ if self.busy => Some(Instant::ZERO),
            _ if self.leaving.is_some() => Some(self.since + config.linger),
            State::Open(_, Engine::Streams(_)) => {
                let idle = config.idle.map(|idle| self.active + idle);
                [idle, self.next_probe()].into_iter().flatten().min()
            }
            _ => Some(self.since + config.handshake),
        }
    }

    fn next_probe(&self) -> Option<Instant> {
        match self.probing {
            Some(since) => self.config.give_up.map(|give_up| since + give_up),
            None => self.config.ping.map(|ping| self.silent + ping),
        }
    }

    /// Server: answers [`Event::Asked`] with 101; streams follow. `protocol` is the choice among those offered.
    ///
    /// # Errors
    /// If nothing is asked or the time for it is up, or the protocol's name cannot stand in a field.
    pub fn grant(&mut self, protocol: Option<&str>) -> Result<(), http1::Error> {
        let switch = self.asked()?.grant(protocol)?;
        let mut streams = Streams::new(Session::server(self.config.session.clone()), switch.said);
        for bytes in switch.rest {
            self.read_streams(&mut streams, bytes);
        }
        if let State::Open(_, engine) = &mut self.state {
            *engine = Engine::Streams(Box::new(streams));
        }
        Ok(())
    }

    /// Server: answers [`Event::Asked`] with another status (400 to 599, say), and closes.
    ///
    /// # Errors
    /// If nothing is asked or the time for it is up, or the answer cannot be sent as it stands.
    pub fn refuse(&mut self, status: u16, fields: Fields, body: Bytes) -> Result<(), http1::Error> {
        self.asked()?.refuse(status, fields, body)?;
        self.leave_with(Ok(()));
        Ok(())
    }

    fn asked(&mut self) -> Result<&mut Asked, http1::Error> {
        match &mut self.state {
            State::Open(_, Engine::Asked(asked)) if self.leaving.is_none() => Ok(asked),
            _ => Err(http1::CallerError::NothingToAnswer.into()),
        }
    }

    /// Opens a stream. Send on it when [`Event::Accepted`] is there: spdystream drops what comes earlier.
    ///
    /// # Errors
    /// As [`spdy::Session::open`]; [`OpenError::Ended`] before streams are granted and after the end.
    pub fn open(&mut self, fields: &Fields, opening: Opening) -> Result<StreamId, OpenError> {
        self.active = self.now;
        self.streams().ok_or(OpenError::Ended)?.session.open(fields, opening)
    }

    /// Accepts a stream of the peer's; with `fin` this end sends nothing on it.
    ///
    /// # Errors
    /// As [`spdy::Session::accept`]; so, too, if the connection is over although its events are not all taken.
    pub fn accept(&mut self, id: StreamId, fields: &Fields, fin: bool) -> Result<(), spdy::SendError> {
        self.active = self.now;
        self.streams().ok_or(spdy::SendError::NotOpen)?.session.accept(id, fields, fin)
    }

    /// Bytes that [`send`](Self::send) takes now on a stream that is open; none when the connection is being left. It may have
    /// grown whenever the connection was driven.
    pub fn room(&self, id: StreamId) -> usize {
        match &self.state {
            State::Open(_, Engine::Streams(streams)) if self.leaving.is_none() => {
                self.config.queue.saturating_sub(streams.session.queued(id) as usize)
            }
            _ => 0,
        }
    }

    /// Queues bytes on a stream; with `fin` they are the last.
    ///
    /// # Errors
    /// If there is no [`room`](Self::room) for all of them, or as [`spdy::Session::send`].
    pub fn send(&mut self, id: StreamId, bytes: Bytes, fin: bool) -> Result<(), SendError> {
        let room = self.room(id);
        let streams = self.streams().ok_or(SendError::Stream(spdy::SendError::NotOpen))?;
        if bytes.len() > room {
            return Err(SendError::Full);
        }
        streams.session.send(id, bytes.into(), fin).map_err(SendError::Stream)?;
        streams.queued.insert(id);
        self.active = self.now;
        Ok(())
    }

    /// Ends a stream at once, both ways; of what was queued nothing more is sent, of what came nothing more is told.
    pub fn reset(&mut self, id: StreamId, status: Status) {
        let unread = &mut self.unread;
        self.events.retain(|event| match event {
            Event::Data { id: of, bytes, .. } if *of == id => {
                *unread -= bytes.len();
                false
            }
            Event::Accepted { id: of, .. } | Event::Headers { id: of, .. } | Event::Reset { id: of, .. } => {
                *of != id
            }
            _ => true,
        });
        if let Some(streams) = self.streams() {
            streams.session.reset(id, status);
        }
    }

    /// `n` bytes of [`Event::Data`] are dealt with, and others may be read.
    pub fn consume(&mut self, id: StreamId, n: usize) {
        self.unread = self.unread.saturating_sub(n);
        if let Some(streams) = self.streams() {
            streams.session.consume(id, n as u64);
        }
    }

    /// Asks for an echo: [`Event::Pong`].
    pub fn ping(&mut self) {
        let now = self.now;
        if let Some(streams) = self.streams() {
            streams.session.ping(now);
        }
    }

    /// Sends what is queued, then GOAWAY, and closes; nothing more is told but [`Event::Closed`]. Before streams are granted
    /// it closes at once.
    pub fn close(&mut self) {
        match &self.state {
            State::Open(_, Engine::Streams(_)) => self.leave_with(Ok(())),
            State::Open(..) if self.leaving.is_some() => {}
            State::Leaving(_) | State::Closed => {}
            _ => self.finish(Ok(())),
        }
    }

    fn streams(&mut self) -> Option<&mut Streams> {
        match &mut self.state {
            State::Open(_, Engine::Streams(streams)) if self.leaving.is_none() => Some(streams),
            _ => None,
        }
    }

    /// From here on it only gets rid of what is queued.
    fn leave_with(&mut self, outcome: Result<(), Error>) {
        if self.leaving.is_none() {
            if outcome.is_ok() {
                self.events.clear();
            }
            self.leaving = Some(outcome);
            self.since = self.now;
        }
    }

    fn finish(&mut self, outcome: Result<(), Error>) {
        let outcome = self.leaving.take().unwrap_or(outcome);
        self.state = State::Closed;
        self.busy = false;
        self.events.push_back(Event::Closed(outcome));
    }
}
