//! One client: from the first byte, which tells what it speaks, to the last.

use std::io;

use base::{Chunk, Duration, Instant};
use bytes::BytesMut;
use mio::net::TcpStream;
use origin::{Behaviour, Connection, Protocol, Sniffed, Stats};

use super::{Config, Content, Event};
use crate::socket::tcp_flight;
use crate::{Reactor, Stream, Wire, Written, tcp_stats};

/// The first byte of a TLS handshake record (RFC 8446 §5.1).
const TLS_HANDSHAKE: u8 = 22;

/// How far it has come.
enum State<C: Content> {
    /// Nothing is known of it.
    Fresh(TcpStream),
    /// TLS shakes hands.
    Securing(Stream),
    Open(Box<Open<C>>),
    /// All is sent; the client's own end is awaited, that no reset overtakes the last bytes (RFC 9112 §9.6).
    Leaving(Wire, &'static str),
    Gone,
}

struct Open<C: Content> {
    wire: Wire,
    connection: Connection<C>,
    /// The client has ended its stream.
    ended: bool,
    /// Why it is to be closed, if the client broke the protocol.
    fault: Option<String>,
    /// When it last took or gave a byte, or an answer was made for it.
    moved: Instant,
    /// The client keeps the connection's congestion window, of which the kernel tells only who asks.
    keeps_cwnd: bool,
    /// When to look at that again: all that was sent may have arrived by then.
    look: Option<Instant>,
}

/// What a client needs next.
pub(super) enum Next {
    /// Its socket, or this time.
    Wait(Option<Instant>),
    /// Another turn.
    Again,
    /// Nothing: it is gone.
    Closed(String),
}

/// What stands in the way.
enum Stop {
    Block,
    End(String),
}

impl From<io::Error> for Stop {
    fn from(e: io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Stop::Block,
            _ => Stop::End(e.to_string()),
        }
    }
}

pub(super) struct Client<C: Content> {
    pub number: u64,
    state: State<C>,
    since: Instant,
    stats: Stats,
    /// What the kernel had counted when the connection ended.
    pub tcp: tcp::Stats,
    shutting_down: bool,
    behaviour: Behaviour,
}

impl<C: Content> Client<C> {
    pub fn new(number: u64, tcp: TcpStream, now: Instant, behaviour: Behaviour) -> Self {
        let (stats, counted) = (Stats::default(), tcp::Stats::default());
        let state = State::Fresh(tcp);
        Self { number, state, since: now, stats, tcp: counted, shutting_down: false, behaviour }
    }

    /// Takes down what the kernel has counted so far.
    pub fn note_tcp(&mut self) {
        let counted = match &mut self.state {
            State::Fresh(tcp) => tcp_stats(tcp),
            State::Securing(stream) => tcp_stats(stream.tcp()),
            State::Open(open) => tcp_stats(open.wire.stream().tcp()),
            State::Leaving(wire, _) => tcp_stats(wire.stream().tcp()),
            State::Gone => return,
        };
        self.tcp = counted.unwrap_or_default();
    }

    /// Counts of what was asked and answered.
    pub fn stats(&self) -> Stats {
        match &self.state {
            State::Open(open) => open.connection.stats(),
            _ => self.stats,
        }
    }

    /// Lets it finish what it is being served.
    pub fn shut_down(&mut self) {
        self.shutting_down = true;
        if let State::Open(open) = &mut self.state {
            open.connection.shutdown();
        }
    }

    /// When it must be looked at again although its socket is silent.
    pub fn deadline(&self, config: &Config) -> Option<Instant> {
        match &self.state {
            State::Fresh(_) | State::Securing(_) => Some(self.since + config.handshake_timeout),
            State::Open(open) => {
                let silent = open.moved + config.idle_timeout;
                [open.connection.poll_timeout(), open.look, Some(silent)].into_iter().flatten().min()
            }
            State::Leaving(..) => Some(self.since + config.grace),
            State::Gone => None,
        }
    }

    /// Goes as far as the socket, or a fair share of time, lets it.
    pub fn go_on(
        &mut self,
        reactor: &Reactor,
        config: &Config,
        site: &mut C,
        log: &mut dyn FnMut(Instant, &Event<'_>),
    ) -> Next {
        let now = reactor.now();
        loop {
            let stop = match std::mem::replace(&mut self.state, State::Gone) {
                State::Fresh(tcp) => self.greet(tcp, config, now),
                State::Securing(stream) => self.secure(stream, config, now, log),
                State::Open(open) => match self.carry(open, config, now, site, log) {
                    Ok(true) => return Next::Again,
                    Ok(false) => Ok(()),
                    Err(stop) => Err(stop),
                },
                State::Leaving(wire, why) => self.leave(wire, why),
                State::Gone => Err(Stop::End("it was gone".into())),
            };
            match stop {
                Ok(()) => {}
                Err(Stop::End(why)) => return Next::Closed(why),
                Err(Stop::Block) => {
                    let deadline = self.deadline(config);
                    return match &self.state {
                        State::Open(_) => Next::Wait(deadline),
                        State::Leaving(_, why) if deadline.is_some_and(|at| at <= now) => {
                            Next::Closed((*why).into())
                        }
                        State::Fresh(_) | State::Securing(_) if deadline.is_some_and(|at| at <= now) => {
                            Next::Closed("it did not say in time what it speaks".into())
                        }
                        // Nothing is under way that a shutdown would have to let finish.
                        State::Fresh(_) if self.shutting_down => Next::Closed("the server shut down".into()),
                        _ => Next::Wait(deadline),
                    };
                }
            }
        }
    }

    /// Looks at the first bytes without taking them.
    fn greet(&mut self, tcp: TcpStream, config: &Config, now: Instant) -> Result<(), Stop> {
        let mut first = [0; 2];
        let seen = match tcp.peek(&mut first) {
            Ok(n) => n,
            Err(e) => {
                self.state = State::Fresh(tcp);
                return Err(e.into());
            }
        };
        if seen == 0 {
            return Err(Stop::End("it said nothing".into()));
        }
        if first[0] == TLS_HANDSHAKE {
            let Some(acceptor) = &config.tls else {
                return Err(Stop::End("it speaks TLS, which is not served here".into()));
            };
            let tls = acceptor.accept(tcp).map_err(|e| Stop::End(e.to_string()))?;
            self.state = State::Securing(Stream::Tls(Box::new(tls)));
            return Ok(());
        }
        if !config.clear {
            return Err(Stop::End("it does not speak TLS, and nothing else is served here".into()));
        }
        let protocol = match Protocol::sniff(&first[..seen]) {
            None => {
                // A lone first byte of SPDY; the next one brings news.
                self.state = State::Fresh(tcp);
                return Err(Stop::Block);
            }
            Some(Sniffed::Http1) => {
                let upgrade = config.upgrade.then(|| config.spdy.make(spdy::Version::V3_1));
                Protocol::Http1 { upgrade }
            }
            Some(Sniffed::Spdy2) => Protocol::Spdy(config.spdy.make(spdy::Version::V2)),
            Some(Sniffed::Spdy3) => Protocol::Spdy(config.spdy.make(config.version_3)),
        };
        self.open(Stream::Clear(tcp), &protocol, "http", config, now);
        Ok(())
    }

    fn secure(
        &mut self,
        mut stream: Stream,
        config: &Config,
        now: Instant,
        log: &mut dyn FnMut(Instant, &Event<'_>),
    ) -> Result<(), Stop> {
        if let Err(e) = stream.handshake() {
            let stop = Stop::from(e);
            if matches!(stop, Stop::Block) {
                self.state = State::Securing(stream);
            }
            return Err(stop);
        }
        let negotiated = stream.negotiated().expect("TLS was spoken");
        log(now, &Event::Secured { client: self.number, negotiated: &negotiated });
        let version = negotiated.protocol.as_ref().and_then(|(id, _)| id.parse().ok());
        let protocol = match version {
            Some(version) => Protocol::Spdy(config.spdy.make(version)),
            None => Protocol::HTTP1,
        };
        self.open(stream, &protocol, "https", config, now);
        Ok(())
    }

    fn open(
        &mut self,
        stream: Stream,
        protocol: &Protocol,
        scheme: &'static str,
        config: &Config,
        now: Instant,
    ) {
        let mut connection = Connection::new(protocol, scheme.into()).with_log();
        let keeps_cwnd = config.kept_cwnd.is_some();
        if let Some(most) = config.kept_cwnd {
            connection = connection.with_kept_cwnd(most);
        }
        if self.behaviour != Behaviour::default() {
            connection = connection.with_behaviour(now, self.behaviour);
        }
        if self.shutting_down {
            connection.shutdown();
        }
        let chunk = stream.chunk();
        let wire = Wire::new(stream).in_chunks(chunk);
        let open = Open { wire, connection, ended: false, fault: None, moved: now, keeps_cwnd, look: None };
        self.state = State::Open(Box::new(open));
    }

    /// Reads what there is and may be read, and writes what fits, until neither moves. Gives whether another turn is due.
    fn carry(
        &mut self,
        mut open: Box<Open<C>>,
        config: &Config,
        now: Instant,
        site: &mut C,
        log: &mut dyn FnMut(Instant, &Event<'_>),
    ) -> Result<bool, Stop> {
        if open.connection.poll_timeout().is_some_and(|at| at <= now) {
            open.connection.handle_timeout(now, site);
        }
        let before = open.wire.stats();
        let result = open.exchange(now, site);
        if result.is_err() {
            self.tcp = tcp_stats(open.wire.stream().tcp()).unwrap_or_default();
        }
        while let Some(record) = open.connection.poll_record() {
            open.moved = now;
            log(now, &Event::Answered { client: self.number, record: &record });
        }
        self.stats = open.connection.stats();
        let written = result.map_err(|e| Stop::End(open.fault.take().unwrap_or_else(|| e.to_string())))?;
        if open.wire.stats() != before {
            open.moved = now;
        } else if open.moved + config.idle_timeout <= now {
            if !open.connection.is_idle() || self.shutting_down {
                return Err(Stop::End("it took nothing for too long".into()));
            }
            open.connection.shutdown();
            open.moved = now;
            self.state = State::Open(open);
            return Ok(true);
        }
        if open.connection.wants_reset() && open.wire.is_flushed() {
            // The kernel sends a RST at once, and no more of what it still had to send (socket(7), SO_LINGER).
            let abrupt = Some(std::time::Duration::ZERO);
            let _ = rustix::net::sockopt::set_socket_linger(open.wire.stream().tcp(), abrupt);
            return Err(Stop::End("an answer was cut off".into()));
        }
        if open.connection.wants_close() && open.wire.is_flushed() {
            if let Some(fault) = open.fault {
                return Err(Stop::End(fault));
            }
            let why = if open.ended { "it closed" } else { "all was said" };
            // A peer that is gone need not hear of the end.
            let _ = open.wire.stream().close();
            self.tcp = tcp_stats(open.wire.stream().tcp()).unwrap_or_default();
            self.since = now;
            self.state = State::Leaving(open.wire, why);
            return Ok(false);
        }
        self.state = State::Open(open);
        match written {
            Written::Share => Ok(true),
            Written::All | Written::Blocked => Err(Stop::Block),
        }
    }

    /// Reads and forgets until the client ends, too.
    fn leave(&mut self, mut wire: Wire, why: &'static str) -> Result<(), Stop> {
        loop {
            let more = match wire.read() {
                Ok(None) => {
                    self.state = State::Leaving(wire, why);
                    return Err(Stop::Block);
                }
                Ok(Some(bytes)) => !bytes.is_empty() && wire.stats().received <= LEAVING_BYTES_MAX,
                Err(_) => false,
            };
            if !more {
                // Only now has everything left the kernel.
                self.tcp = tcp_stats(wire.stream().tcp()).unwrap_or_default();
                return Err(Stop::End(why.into()));
            }
        }
    }
}

/// What a connection may have brought in all before its leave is no longer waited for.
const LEAVING_BYTES_MAX: u64 = 64 << 20;

/// How soon the kernel is asked again whether all has arrived, at least.
const LOOK_MIN: Duration = Duration::from_millis(1);

/// Reads before other clients get their turn; with all of them it has one [`Wire::SHARE`] to write.
const EXCHANGES: usize = 16;

impl<C: Content> Open<C> {
    fn exchange(&mut self, now: Instant, site: &mut C) -> io::Result<Written> {
        self.look = None; // whoever is blocked is woken by the socket
        let end = self.wire.stats().sent + Wire::SHARE;
        for _ in 0..EXCHANGES {
            let read = self.read(now, site)?;
            let mut written = self.write(end.saturating_sub(self.wire.stats().sent), now, site)?;
            if written == Written::All && self.tell_cwnd(now) {
                written = self.write(end.saturating_sub(self.wire.stats().sent), now, site)?;
            }
            // What was sent may make room for reading on, and what was read may have made something to send.
            if !read || written == Written::Share {
                return Ok(written);
            }
        }
        Ok(Written::Share)
    }

    /// Has the client keep the congestion window, if it does and there is news of it; whether there is something to send then.
    fn tell_cwnd(&mut self, now: Instant) -> bool {
        if !self.keeps_cwnd {
            return false;
        }
        // A socket that does not tell has no news.
        let Ok((stats, in_flight)) = tcp_flight(self.wire.stream().tcp()) else { return false };
        if in_flight > 0 {
            self.look = Some(now + stats.srtt.unwrap_or_default().max(LOOK_MIN));
        }
        self.connection.note_cwnd(stats.cwnd, in_flight)
    }

    /// Reads once, if the connection wants input. Gives whether anything came.
    fn read(&mut self, now: Instant, site: &mut C) -> io::Result<bool> {
        let wanted = !self.ended && self.fault.is_none() && self.connection.wants_input();
        if wanted && let Some(bytes) = self.wire.read()? {
            let taken = match bytes.is_empty() {
                true => {
                    self.ended = true;
                    self.connection.handle_eof(now, site)
                }
                false => self.connection.handle_input(now, bytes.into(), site),
            };
            self.fault = taken.err().map(|e| e.to_string());
            return Ok(true);
        }
        Ok(false)
    }

    fn write(&mut self, share: u64, now: Instant, site: &mut C) -> io::Result<Written> {
        let mut unreadable = None;
        let connection = &mut self.connection;
        let written = self.wire.write(share, |max, out| {
            unreadable = unreadable.take().or(fill(connection, site, now, max, out).err());
        })?;
        unreadable.map_or(Ok(written), Err)
    }
}

/// Takes about `max` bytes from a connection; bodies are read from the site.
fn fill<C: Content>(
    connection: &mut Connection<C>,
    site: &mut C,
    now: Instant,
    max: usize,
    out: &mut BytesMut,
) -> io::Result<()> {
    let full = out.len() + max;
    while out.len() < full {
        match connection.poll_transmit(now, (full - out.len()) as u64) {
            Some(Chunk::Bytes(bytes)) => out.extend_from_slice(&bytes),
            Some(Chunk::Body(range)) => site.read(range, out)?,
            None => break,
        }
    }
    Ok(())
}
