//! A server that sends back what comes, and a client that checks it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use base::Duration;
use bytes::Bytes;
use live::Reactor;
use live::streams::{Config, Connection, Event, Handler};
use spdy::{Opening, StreamId};

use crate::common::*;

/// Sends back what comes, in order, as far as there is room; ends each stream when its peer has.
#[derive(Default)]
pub struct Echo {
    pub queues: BTreeMap<StreamId, (Vec<u8>, bool)>,
    /// The most bytes that were here at a time.
    pub held_max: Rc<RefCell<usize>>,
    pub log: Log,
    /// Nothing is sent back before this is taken.
    pub blocked: Rc<RefCell<bool>>,
}

impl Handler for Echo {
    fn event(&mut self, event: Event, connection: &mut Connection, _: &Reactor) {
        self.log.borrow_mut().push(event.clone());
        match event {
            Event::Asked { protocols, .. } => connection.grant(protocols.first().map(|p| &**p)).unwrap(),
            Event::Opened { id, fields, opening } => {
                connection.accept(id, &fields, false).unwrap();
                self.queues.insert(id, (Vec::new(), opening.fin));
            }
            Event::Data { id, bytes, fin } => {
                let (queue, ended) = self.queues.get_mut(&id).unwrap();
                queue.extend_from_slice(&bytes);
                *ended |= fin;
                let held = self.queues.values().map(|(queue, _)| queue.len()).sum();
                let mut held_max = self.held_max.borrow_mut();
                *held_max = held_max.max(held);
            }
            Event::Reset { id, .. } => {
                let (queue, _) = self.queues.remove(&id).unwrap();
                connection.consume(id, queue.len());
            }
            _ => {}
        }
    }

    fn pump(&mut self, connection: &mut Connection, _: &Reactor) -> bool {
        let mut moved = false;
        if *self.blocked.borrow() {
            return false;
        }
        self.queues.retain(|id, (queue, ended)| {
            let n = connection.room(*id).min(queue.len());
            let fin = *ended && n == queue.len();
            if n == 0 && !fin {
                return true;
            }
            connection.send(*id, queue.drain(..n).collect(), fin).unwrap();
            connection.consume(*id, n);
            moved = true;
            !fin
        });
        moved
    }
}

/// Opens streams, sends a body on each, and keeps what comes back.
pub struct Caller {
    /// What to send on each stream; `None` once it is all queued.
    pub bodies: Vec<Bytes>,
    pub streams: Vec<Call>,
    pub log: Log,
    /// Whether to close when every stream has ended both ways.
    pub closes: bool,
}

pub struct Call {
    pub id: StreamId,
    pub accepted: bool,
    pub sent: usize,
    pub done: bool,
    pub back: Vec<u8>,
    pub ended: bool,
}

impl Caller {
    pub fn new(bodies: Vec<Bytes>) -> Self {
        Self { bodies, streams: Vec::new(), log: Log::default(), closes: true }
    }
}

impl Handler for Caller {
    fn event(&mut self, event: Event, connection: &mut Connection, _: &Reactor) {
        self.log.borrow_mut().push(event.clone());
        match event {
            Event::Granted { .. } => {
                for i in 0..self.bodies.len() {
                    let fields = fields(&[("streamType", "data"), ("number", &i.to_string())]);
                    let id = connection.open(&fields, Opening::default()).unwrap();
                    let call =
                        Call { id, accepted: false, sent: 0, done: false, back: Vec::new(), ended: false };
                    self.streams.push(call);
                }
            }
            Event::Accepted { id, .. } => {
                self.streams.iter_mut().find(|call| call.id == id).unwrap().accepted = true;
            }
            Event::Data { id, bytes, fin } => {
                connection.consume(id, bytes.len());
                let call = self.streams.iter_mut().find(|call| call.id == id).unwrap();
                call.back.extend_from_slice(&bytes);
                call.ended |= fin;
            }
            _ => {}
        }
    }

    fn pump(&mut self, connection: &mut Connection, _: &Reactor) -> bool {
        let mut moved = false;
        for (call, body) in self.streams.iter_mut().zip(&self.bodies) {
            let n = connection.room(call.id).min(body.len() - call.sent);
            let fin = call.sent + n == body.len();
            if call.accepted && !call.done && (n > 0 || fin) {
                connection.send(call.id, body.slice(call.sent..call.sent + n), fin).unwrap();
                call.sent += n;
                call.done = fin;
                moved = true;
            }
        }
        if self.closes && !self.streams.is_empty() && self.streams.iter().all(|call| call.done && call.ended)
        {
            self.closes = false;
            connection.close();
            moved = true;
        }
        moved
    }
}

/// Runs calls against an echo; gives back what it has seen and held at most.
pub fn echoed(config: &Config, bodies: Vec<Bytes>) -> (Caller, Log) {
    let mut host = host();
    let log = Log::default();
    let of_server = log.clone();
    let address =
        listen(&mut host, config, move || Actor::new(Echo { log: of_server.clone(), ..Echo::default() }));
    host.connect(request(address), &[address], None, config.clone(), Actor::new(Caller::new(bodies)));
    let over = until_over(&mut host, 2);
    let caller = over.into_iter().find_map(Actor::into::<Caller>).expect("the client is over");
    (caller, log)
}

pub fn config() -> Config {
    Config { linger: Duration::from_millis(500), ..Config::default() }
}

/// As SPDY/3.1 has it, with windows, for peers other than spdystream.
pub fn windowed() -> Config {
    let session = spdy::Config {
        mapping: spdy::Mapping::Streams,
        stream_window: spdy::WindowPolicy::FIXED_64K,
        ..spdy::Config::new(spdy::Version::V3_1)
    };
    Config { session, ..config() }
}
