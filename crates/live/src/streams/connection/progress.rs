//! How a connection gets on: from TCP over TLS and the upgrade to streams, and to the end.

use std::io;
use std::net::SocketAddr;

use base::Chunk;
use bytes::{Bytes, BytesMut};
use mio::net::TcpStream;
use spdy::Session;

use super::engine::{Engine, Streams};
use super::{Connection, State};
use crate::streams::upgrade::{Asked, Asking, chosen};
use crate::streams::{Error, Event};
use crate::{Reactor, Stream, Wire, Written, prepare};

/// Reads before others get their turn, and before what came is given away.
const READS: usize = 16;

/// Events waiting at which reading pauses, too.
const EVENTS: usize = 64;

/// Data of fewer bytes is copied out of what was read with it, which it would otherwise keep as long as it waits: 64 KiB for
/// a byte, if a peer wants it so.
const COPIED: usize = 4096;

enum Step {
    /// Until the socket or the clock says more.
    Wait(State),
    Next(State),
    /// It is over; in order if nothing was found before.
    Over,
}

impl Connection {
    /// Goes as far as the socket and the clock let it, or a fair share of the thread's time.
    pub fn drive(&mut self, reactor: &Reactor) {
        self.now = reactor.now();
        self.busy = false;
        loop {
            let stepped = match std::mem::replace(&mut self.state, State::Closed) {
                State::Connecting(tcp, address) => self.connecting(tcp, address, reactor),
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
            State::Connecting(..) => {
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
    pub(super) fn dial(&mut self, reactor: &Reactor, mut why: Error) -> Result<State, Error> {
        self.since = self.now;
        while let Some(address) = self.plan.as_mut().and_then(|plan| plan.addresses.pop_front()) {
            let dialled = TcpStream::connect(address).and_then(|mut tcp| {
                reactor.register(&mut tcp, self.token)?;
                Ok(tcp)
            });
            match dialled {
                Ok(tcp) => return Ok(State::Connecting(tcp, address)),
                Err(e) => why = Error::Transport(format!("{address}: {e}")),
            }
        }
        Err(why)
    }

    fn connecting(&mut self, tcp: TcpStream, address: SocketAddr, reactor: &Reactor) -> Result<Step, Error> {
        let failed = tcp.take_error().and_then(|e| e.map_or(Ok(()), Err));
        match failed.and_then(|()| tcp.peer_addr()) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotConnected => {
                return Ok(Step::Wait(State::Connecting(tcp, address)));
            }
            Err(e) => {
                let why = Error::Transport(format!("{address}: {e}"));
                return self.dial(reactor, why).map(Step::Next);
            }
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
            match wire.read() {
                Ok(None) => break,
                Ok(Some(bytes)) if bytes.is_empty() => eof = true,
                Ok(Some(bytes)) => self.handle_input(&mut engine, bytes)?,
                // spdystream closes with our last frames unread, which TCP tells by a reset.
                Err(_) if engine.is_left() => eof = true,
                Err(e) => return Err(broken(e)),
            }
        }
        if eof {
            return self.handle_eof(engine);
        }
        let before = wire.stats().sent;
        let written = match self.unwritable.is_some() {
            true => Written::All,
            false => {
                wire.write(Wire::SHARE, |max, out| engine.transmit(self.now, max, out)).unwrap_or_else(|e| {
                    self.unwritable = Some(broken(e));
                    Written::All
                })
            }
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

    pub(super) fn read_streams(&mut self, streams: &mut Streams, bytes: Bytes) {
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
                    let bytes = if bytes.len() < COPIED { Bytes::copy_from_slice(&bytes) } else { bytes };
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
