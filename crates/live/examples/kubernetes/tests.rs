//! The clients against the servers, on loopback and on one thread, with real commands and sockets. Every wait has a deadline.

mod exec;
mod forward;
mod trace;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use base::{Duration, Instant};
use live::Reactor;
use live::streams::{Config, Connection, Event, Handler, Host, Request};

/// How long anything may take: a bound, not a measure.
const PATIENCE: Duration = Duration::from_secs(60);

/// A handler that the test keeps a hold of.
struct Shared<H>(Rc<RefCell<H>>);

impl<H: Handler> Handler for Shared<H> {
    fn event(&mut self, event: Event, connection: &mut Connection, reactor: &Reactor) {
        self.0.borrow_mut().event(event, connection, reactor);
    }

    fn pump(&mut self, connection: &mut Connection, reactor: &Reactor) -> bool {
        self.0.borrow_mut().pump(connection, reactor)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.borrow().poll_timeout()
    }
}

type AnyHost = Host<Box<dyn Handler>>;

fn share<H: Handler + 'static>(handler: H) -> (Rc<RefCell<H>>, Box<dyn Handler>) {
    let shared = Rc::new(RefCell::new(handler));
    (shared.clone(), Box::new(Shared(shared)))
}

/// A host that serves on a free port.
fn serving<H: Handler + 'static>(mut handler: impl FnMut() -> H + 'static) -> (AnyHost, SocketAddr) {
    let mut host = AnyHost::new().unwrap();
    let local = "127.0.0.1:0".parse().unwrap();
    let welcome = move |_| Box::new(handler()) as Box<dyn Handler>;
    let address = host.listen(local, None, Config::default(), 8, welcome).unwrap();
    (host, address)
}

/// Asks for what `query` says; the handler comes back when it is asked for.
fn connect<H: Handler + 'static>(
    host: &mut AnyHost,
    address: SocketAddr,
    query: &str,
    protocols: &[&str],
    handler: H,
) -> Rc<RefCell<H>> {
    let (shared, handler) = share(handler);
    let url = format!("http://{address}/x?{query}").parse().unwrap();
    host.connect(Request::new(url, protocols), &[address], None, Config::default(), handler);
    shared
}

/// Runs until `done` says so.
fn until(host: &mut AnyHost, mut done: impl FnMut(&AnyHost) -> bool) {
    let deadline = host.reactor().now() + PATIENCE;
    while !done(host) {
        assert!(host.reactor().now() < deadline, "no end after {PATIENCE:?}");
        // What happens on other threads is looked for now and then.
        let glance = host.reactor().now() + Duration::from_millis(10);
        host.turn(Some(glance)).unwrap();
    }
}

/// The handler, which nobody else has any more.
fn own<H>(shared: Rc<RefCell<H>>) -> H {
    Rc::try_unwrap(shared).ok().expect("its connection is over").into_inner()
}
