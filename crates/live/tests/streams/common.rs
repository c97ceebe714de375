//! What tests of streams share: handlers that can be asked for afterwards, loops that end, and peers without manners.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::any::Any;
use std::cell::RefCell;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::thread::JoinHandle;

use base::{Duration, Fields, Instant};
use bytes::Bytes;
use live::Reactor;
use live::streams::{Config, Connection, Event, Handler, Host, Request};

/// How long anything may take: a bound, not a measure.
const PATIENCE: Duration = Duration::from_secs(60);

/// Everything that a handler was told.
pub type Log = Rc<RefCell<Vec<Event>>>;

/// Any handler.
pub struct Actor(Box<dyn Role>);

trait Role: Handler + Any {}
impl<H: Handler + Any> Role for H {}

impl Actor {
    pub fn new(handler: impl Handler + 'static) -> Self {
        Self(Box::new(handler))
    }

    /// The handler, if it is of this type.
    pub fn into<T: 'static>(self) -> Option<T> {
        let any: Box<dyn Any> = self.0;
        any.downcast().ok().map(|handler| *handler)
    }
}

impl Handler for Actor {
    fn event(&mut self, event: Event, connection: &mut Connection, reactor: &Reactor) {
        self.0.event(event, connection, reactor);
    }

    fn pump(&mut self, connection: &mut Connection, reactor: &Reactor) -> bool {
        self.0.pump(connection, reactor)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout()
    }
}

struct On<F>(F);

impl<F: FnMut(Event, &mut Connection)> Handler for On<F> {
    fn event(&mut self, event: Event, connection: &mut Connection, _: &Reactor) {
        (self.0)(event, connection);
    }
}

/// Reacts to events alone.
pub fn on(react: impl FnMut(Event, &mut Connection) + 'static) -> Actor {
    Actor::new(On(react))
}

/// Only writes down what happens.
pub fn logger(log: Log) -> Actor {
    on(move |event, _| log.borrow_mut().push(event))
}

pub fn host() -> Host<Actor> {
    Host::new().unwrap()
}

/// Serves on a free port.
pub fn listen(
    host: &mut Host<Actor>,
    config: &Config,
    mut handler: impl FnMut() -> Actor + 'static,
) -> SocketAddr {
    let local = "127.0.0.1:0".parse().unwrap();
    host.listen(local, None, config.clone(), 8, move |_| handler()).unwrap()
}

pub fn request(address: SocketAddr) -> Request {
    let url = format!("http://{address}/path?a=b").parse().unwrap();
    Request::new(url, &["test.velodrome", "other"])
}

/// A client that only writes down what happens.
pub fn connect_and_log(host: &mut Host<Actor>, address: SocketAddr, config: Config) -> Log {
    let log = Log::default();
    host.connect(request(address), &[address], None, config, logger(log.clone()));
    log
}

/// Runs until so many connections are over, which gives their handlers.
pub fn until_over(host: &mut Host<Actor>, connections: usize) -> Vec<Actor> {
    until(host, |_, over| (over >= connections, None))
}

/// Runs until `done` says so, told how many connections are over; it also says until when to wait for the next thing.
pub fn until(
    host: &mut Host<Actor>,
    mut done: impl FnMut(&Host<Actor>, usize) -> (bool, Option<Instant>),
) -> Vec<Actor> {
    let deadline = host.reactor().now() + PATIENCE;
    let mut over = Vec::new();
    loop {
        let (done, next) = done(host, over.len());
        if done {
            return over;
        }
        assert!(
            host.reactor().now() < deadline,
            "no end after {PATIENCE:?}, {} connections over",
            over.len()
        );
        over.extend(host.turn(Some(next.unwrap_or(deadline))).unwrap());
    }
}

pub fn fields(pairs: &[(&str, &str)]) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in pairs {
        fields.push((*name).to_owned(), (*value).to_owned());
    }
    fields
}

/// Bytes of which no part is like another nearby.
pub fn pattern(len: usize) -> Bytes {
    (0..len).map(|i| (i % 251) as u8 ^ (i / 251) as u8).collect()
}

/// All bytes that came.
pub fn data_of(log: &[Event]) -> Vec<u8> {
    let data = log.iter().filter_map(|event| match event {
        Event::Data { bytes, .. } => Some(&bytes[..]),
        _ => None,
    });
    data.collect::<Vec<_>>().concat()
}

/// A peer of few words, on a thread of its own. Whatever it waits for, it waits so long at most.
pub struct Peer {
    pub address: SocketAddr,
    thread: JoinHandle<()>,
}

impl Peer {
    /// Takes one connection.
    pub fn serving(talk: impl FnOnce(TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || talk(bounded(listener.accept().unwrap().0)));
        Self { address, thread }
    }

    /// Makes one.
    pub fn calling(address: SocketAddr, talk: impl FnOnce(TcpStream) + Send + 'static) -> Self {
        let thread = std::thread::spawn(move || talk(bounded(TcpStream::connect(address).unwrap())));
        Self { address, thread }
    }

    /// Waits for its end, and fails if it did.
    pub fn join(self) {
        if let Err(panic) = self.thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

fn bounded(tcp: TcpStream) -> TcpStream {
    let patience = std::time::Duration::from_nanos(PATIENCE.as_nanos());
    tcp.set_read_timeout(Some(patience)).unwrap();
    tcp.set_write_timeout(Some(patience)).unwrap();
    tcp
}

/// Reads a head, and nothing behind it.
pub fn read_head(tcp: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        tcp.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

pub const ASK: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";

pub const GRANT: &str = "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";

/// The header of a GOAWAY of version 3, which is the last of `bytes` but for its payload, and its status.
pub fn goaway_at_end(bytes: &[u8]) -> Option<u8> {
    let frame = bytes.len().checked_sub(16).map(|at| &bytes[at..])?;
    (frame[..8] == [0x80, 3, 0, 7, 0, 0, 0, 8]).then_some(frame[15])
}
