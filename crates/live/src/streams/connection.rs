//! One end of a connection: from its socket to its streams.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;

use base::{Chunk, Fields, Instant};
use bytes::{Bytes, BytesMut};
use mio::net::TcpStream;
use spdy::{OpenError, Opening, Session, Status, StreamId};

use super::upgrade::{Asked, Asking, chosen};
use super::{Config, Error, Event, Request, SendError};
use crate::tls::{Acceptor, Connector};
use crate::{Reactor, Stream, Wire, Written, prepare};

/// Reads before others get their turn, and before what came is given away.
const READS: usize = 16;

/// Events waiting at which reading pauses, too.
const EVENTS: usize = 64;

enum State {
    /// Client: TCP shakes hands.
    Connecting(TcpStream),
    /// TLS does, if there is any.
    Securing(Stream),
    Open(Wire, Engine),
    /// All is said; the peer's own end is awaited, that no reset overtakes the last bytes (RFC 9112 §9.6).
    Leaving(Wire),
    Closed,
}

enum Engine {
    /// Client: the request is out or on its way.
    Asking(Box<Asking>),
    /// Server: the request is awaited, or its answer is on its way.
    Asked(Box<Asked>),
    Streams(Box<Streams>),
}

struct Streams {
    session: Session,
    /// What HTTP still had to send goes first.
    before: BytesMut,
    /// Streams that bytes were queued on and may still be.
    queued: BTreeSet<StreamId>,
    /// The peer has said that it goes.
    going_away: bool,
    /// The last GOAWAY is queued.
    farewell: bool,
}

/// A client's way to its server.
struct Plan {
    request: Request,
    addresses: VecDeque<SocketAddr>,
    connector: Option<Connector>,
}

enum Step {
    /// Until the socket or the clock says more.
    Wait(State),
    Next(State),
    /// It is over; in order if nothing was found before.
    Over,
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
            State::Connecting(_) => "connecting",
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
    /// If nothing is asked, or the protocol's name cannot stand in a field.
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
    /// If nothing is asked, or the answer cannot be sent as it stands.
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
    /// As [`spdy::Session::accept`].
    pub fn accept(&mut self, id: StreamId, fields: &Fields, fin: bool) -> Result<(), spdy::SendError> {
        self.active = self.now;
        self.streams().ok_or(spdy::SendError::NotOpen)?.session.accept(id, fields, fin)
    }

    /// Bytes that [`send`](Self::send) takes on a stream now. It may have grown whenever the connection was driven.
    pub fn room(&self, id: StreamId) -> usize {
        let State::Open(_, Engine::Streams(streams)) = &self.state else { return 0 };
        self.config.queue.saturating_sub(streams.session.queued(id) as usize)
    }

    /// Queues bytes on a stream; with `fin` they are the last.
    ///
    /// # Errors
    /// If there is no [`room`](Self::room) for all of them, or as [`spdy::Session::send`].
    pub fn send(&mut self, id: StreamId, bytes: Bytes, fin: bool) -> Result<(), SendError> {
        if bytes.len() > self.room(id) {
            return Err(SendError::Full);
        }
        self.active = self.now;
        let streams = self.streams().ok_or(SendError::Stream(spdy::SendError::NotOpen))?;
        streams.session.send(id, bytes.into(), fin).map_err(SendError::Stream)?;
        streams.queued.insert(id);
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

    /// Goes as far as the socket and the clock let it, or a fair share of the thread's time.
    pub fn drive(&mut self, reactor: &Reactor) {
        self.now = reactor.now();
        self.busy = false;
        loop {
            let stepped = match std::mem::replace(&mut self.state, State::Closed) {
                State::Connecting(tcp) => self.connecting(tcp, reactor),
                State::Securing(stream) => self.securing(stream),
                State::Open(wire, engine) => self.carry(wire, engine),
                State::Leaving(wire) => self.await_end(wire),
                State::Closed => return,
            };
            match stepped {
                Ok(Step::Next(state)) => self.state = state,
                Ok(Step::Over) => return self.finish(Ok(())),
                Err(e) => return self.finish(Err(e)),
                Ok(Step::Wait(state)) => {
                    self.state = state;
                    if self.busy || self.poll_timeout().is_none_or(|due| due > self.now) {
                        return;
                    }
                    if self.leaving.is_some() {
                        return self.finish(Ok(()));
                    }
                    if let Err(e) = self.timed_out(reactor) {
                        return self.finish(Err(e));
                    }
                }
            }
        }
    }

    /// The time has come that [`poll_timeout`](Self::poll_timeout) names.
    fn timed_out(&mut self, reactor: &Reactor) -> Result<(), Error> {
        let what = match &self.state {
            State::Open(_, Engine::Streams(_)) => return self.probe(),
            State::Connecting(_) => {
                self.state = self.dial(reactor, Error::Timeout("connecting"))?;
                return Ok(());
            }
            State::Securing(_) => "the TLS handshake",
            _ => "the upgrade to SPDY",
        };
        Err(Error::Timeout(what))
    }

    /// A peer that is silent is asked whether it lives, one that is idle is left.
    fn probe(&mut self) -> Result<(), Error> {
        let (now, paused) = (self.now, self.is_paused());
        if self.config.idle.is_some_and(|idle| self.active + idle <= now) {
            self.leave_with(Ok(()));
        } else if let Some(e) = &self.unwritable {
            return Err(e.clone());
        } else if self.probing.is_some() && !paused {
            return Err(Error::Unresponsive);
        } else {
            self.ping();
            // While nothing is read, no answer can be seen.
            (self.silent, self.probing) = (now, (!paused && self.config.give_up.is_some()).then_some(now));
        }
        Ok(())
    }

    /// Tries the next address; if there is none, fails with `why`.
    fn dial(&mut self, reactor: &Reactor, mut why: Error) -> Result<State, Error> {
        self.since = self.now;
        while let Some(address) = self.plan.as_mut().and_then(|plan| plan.addresses.pop_front()) {
            let dialled = TcpStream::connect(address).and_then(|mut tcp| {
                reactor.register(&mut tcp, self.token)?;
                Ok(tcp)
            });
            match dialled {
                Ok(tcp) => return Ok(State::Connecting(tcp)),
                Err(e) => why = Error::Transport(format!("{address}: {e}")),
            }
        }
        Err(why)
    }

    fn connecting(&mut self, tcp: TcpStream, reactor: &Reactor) -> Result<Step, Error> {
        let failed = tcp.take_error().and_then(|e| e.map_or(Ok(()), Err));
        match failed.and_then(|()| tcp.peer_addr()) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotConnected => {
                return Ok(Step::Wait(State::Connecting(tcp)));
            }
            Err(e) => return self.dial(reactor, Error::Transport(e.to_string())).map(Step::Next),
        }
        prepare(&tcp).map_err(broken)?;
        let Some(plan) = &self.plan else { unreachable!("only a client connects") };
        let name = plan.request.url.host_str().unwrap_or_default();
        Ok(Step::Next(State::Securing(match &plan.connector {
            None => Stream::Clear(tcp),
            Some(connector) => {
                let tls = connector.connect(name, tcp, None).map_err(|e| Error::Transport(e.to_string()))?;
                Stream::Tls(Box::new(tls))
            }
        })))
    }

    fn securing(&mut self, mut stream: Stream) -> Result<Step, Error> {
        match stream.handshake() {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                return Ok(Step::Wait(State::Securing(stream)));
            }
            Err(e) => return Err(broken(e)),
        }
        let engine = match &self.plan {
            Some(plan) => Engine::Asking(Box::new(Asking::new(&plan.request)?)),
            None => Engine::Asked(Box::new(Asked::new(self.scheme))),
        };
        Ok(Step::Next(State::Open(Wire::new(stream), engine)))
    }

    /// Whether the peer is left to wait because what it said is not consumed.
    fn is_paused(&self) -> bool {
        self.unread >= self.config.unread && self.leaving.is_none()
    }

    /// Reads what may be read and writes what fits.
    fn carry(&mut self, mut wire: Wire, mut engine: Engine) -> Result<Step, Error> {
        let mut eof = false;
        let mut reads = 0;
        while !eof && !self.is_paused() && engine.wants_input(self.leaving.is_some()) {
            if reads == READS || self.events.len() >= EVENTS {
                self.busy = true;
                break;
            }
            reads += 1;
            match wire.read().map_err(broken)? {
                None => break,
                Some(bytes) if bytes.is_empty() => eof = true,
                Some(bytes) => self.handle_input(&mut engine, bytes)?,
            }
        }
        if eof {
            return self.handle_eof(engine);
        }
        let before = wire.stats().sent;
        let written = match self.unwritable.is_some() {
            true => Written::All,
            false => wire.write(|max, out| engine.transmit(self.now, max, out)).unwrap_or_else(|e| {
                self.unwritable = Some(broken(e));
                Written::All
            }),
        };
        self.busy |= written == Written::Share;
        if self.leaving.is_none() {
            return Ok(Step::Wait(State::Open(wire, engine)));
        }
        if self.unwritable.is_some() {
            return Ok(Step::Over);
        }
        if wire.stats().sent > before {
            self.since = self.now;
        }
        if written != Written::All || !engine.is_flushed() {
            return Ok(Step::Wait(State::Open(wire, engine)));
        }
        if engine.say_farewell() {
            return Ok(Step::Next(State::Open(wire, engine)));
        }
        // A peer that is gone need not hear of the end.
        let _ = wire.stream().close();
        self.since = self.now;
        Ok(Step::Next(State::Leaving(wire)))
    }

    /// Takes input. What is wrong with it ends the connection, at once or when the peer was told.
    fn handle_input(&mut self, engine: &mut Engine, bytes: Bytes) -> Result<(), Error> {
        self.silent = self.now;
        self.probing = None;
        match engine {
            Engine::Asking(asking) => {
                let Some(switch) = asking.handle_input(self.now, bytes)? else { return Ok(()) };
                let session = Session::client(self.config.session.clone());
                let protocol = chosen(&switch.said);
                self.events.push_back(Event::Granted { head: switch.said, protocol });
                self.active = self.now;
                let mut streams = Streams::new(session, BytesMut::new());
                for bytes in switch.rest {
                    self.read_streams(&mut streams, bytes);
                }
                *engine = Engine::Streams(Box::new(streams));
            }
            Engine::Asked(asked) => match asked.handle_input(self.now, bytes) {
                Ok(None) => {}
                Ok(Some((head, protocols))) => self.events.push_back(Event::Asked { head, protocols }),
                Err(e) => self.leave_with(Err(e)),
            },
            Engine::Streams(streams) => self.read_streams(streams, bytes),
        }
        Ok(())
    }

    fn read_streams(&mut self, streams: &mut Streams, bytes: Bytes) {
        let read = streams.session.handle_input(self.now, bytes.into());
        self.take_events(streams);
        if let Err(e) = read {
            self.leave_with(Err(Error::Spdy(e)));
        }
    }

    /// Translates what the session tells; while leaving, nobody wants to know.
    fn take_events(&mut self, streams: &mut Streams) {
        while let Some(event) = streams.session.poll_event() {
            use spdy::Event as Told;
            let told = match event {
                Told::Data { id, chunk: Chunk::Bytes(bytes), fin } if self.leaving.is_none() => {
                    self.unread += bytes.len();
                    Event::Data { id, bytes, fin }
                }
                Told::Data { id, chunk, .. } => {
                    streams.session.consume(id, chunk.len());
                    continue;
                }
                Told::Opened { id, fields, opening, .. } => Event::Opened { id, fields, opening },
                Told::Accepted { id, fields, fin, .. } => Event::Accepted { id, fields, fin },
                Told::Headers { id, fields, fin } => Event::Headers { id, fields, fin },
                Told::Reset { id, status, by } => Event::Reset { id, status, by },
                Told::GoAway { unprocessed, .. } => {
                    streams.going_away = true;
                    Event::GoingAway { unprocessed }
                }
                Told::Pong { rtt } => Event::Pong { rtt },
                // The rest is HTTP's, or nothing to a caller.
                _ => continue,
            };
            if !matches!(told, Event::Pong { .. }) {
                self.active = self.now;
            }
            if self.leaving.is_none() {
                self.events.push_back(told);
            }
        }
    }

    /// The peer has closed its end, and SPDY has no half of a connection.
    fn handle_eof(&mut self, engine: Engine) -> Result<Step, Error> {
        match engine {
            Engine::Asking(mut asking) => Err(asking.handle_eof()),
            Engine::Asked(_) => Err(Error::Transport("the client closed before it had an answer".into())),
            Engine::Streams(streams) => match streams.session.open_streams() {
                open if open > 0 && !streams.going_away => Err(Error::Interrupted(open)),
                _ => Ok(Step::Over),
            },
        }
    }

    /// Reads and forgets until the peer ends, too.
    fn await_end(&mut self, mut wire: Wire) -> Result<Step, Error> {
        for _ in 0..READS {
            match wire.read() {
                Ok(None) => return Ok(Step::Wait(State::Leaving(wire))),
                Ok(Some(bytes)) if !bytes.is_empty() => {}
                _ => return Ok(Step::Over),
            }
        }
        self.busy = self.now < self.since + self.config.linger;
        Ok(if self.busy { Step::Wait(State::Leaving(wire)) } else { Step::Over })
    }
}

fn broken(e: io::Error) -> Error {
    Error::Transport(e.to_string())
}

impl Engine {
    fn wants_input(&self, leaving: bool) -> bool {
        match self {
            Engine::Asking(_) => true,
            Engine::Asked(asked) => asked.wants_input() && !leaving,
            Engine::Streams(_) => true,
        }
    }

    /// Appends about `max` bytes to send.
    fn transmit(&mut self, now: Instant, max: usize, out: &mut BytesMut) {
        let full = out.len() + max;
        if let Engine::Streams(streams) = self
            && !streams.before.is_empty()
        {
            out.extend_from_slice(&streams.before.split());
        }
        while out.len() < full {
            let left = (full - out.len()) as u64;
            let chunk = match self {
                Engine::Asking(asking) => asking.transmit(left),
                Engine::Asked(asked) => asked.transmit(left),
                Engine::Streams(streams) => streams.session.poll_transmit(now, left),
            };
            let Some(Chunk::Bytes(bytes)) = chunk else { break };
            out.extend_from_slice(&bytes);
        }
    }

    /// Whether nothing waits but what the peer's windows hold back; then not even that.
    fn is_flushed(&mut self) -> bool {
        let Engine::Streams(streams) = self else { return true };
        let session = &streams.session;
        streams.queued.retain(|id| session.queued(*id) > 0);
        streams.queued.is_empty()
    }

    /// Queues the GOAWAY that goes last: spdystream reads nothing behind it. Gives whether it was still to be said.
    fn say_farewell(&mut self) -> bool {
        let Engine::Streams(streams) = self else { return false };
        streams.session.goaway();
        !std::mem::replace(&mut streams.farewell, true)
    }
}

impl Streams {
    fn new(session: Session, before: BytesMut) -> Self {
        Self { session, before, queued: BTreeSet::new(), going_away: false, farewell: false }
    }
}
