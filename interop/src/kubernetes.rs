//! Kubernetes' streams in the matrix: the library's own [`streams`](live::streams), as client and as server of what `interop/README.md`
//! calls `/streams`. Its exec and port-forward are the example program's, see [`crate::example`].

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use base::{Duration, Fields};
use bytes::{Bytes, BytesMut};
use live::streams::{Config, Connection, Event, Handler, Host, Request, Url};
use live::{Reactor, Waker, tls};
use spdy::{Opening, Status, StreamId};

use crate::client::{Report, Target};
use crate::contract::{
    self, ANSWER_MS, Check, ENDLESS_MAX, LARGE, MODULUS, PARALLEL, PARALLEL_BASE, SMALL, Scenario, Wanted,
};
use crate::site::Seen;

/// Runs one scenario against a server's `/streams`.
pub fn ask(target: Target, scenario: Scenario) -> Report {
    Report { result: asked(target, scenario), frames: Vec::new() }
}

fn asked(target: Target, scenario: Scenario) -> Result<String, String> {
    let said = |e: io::Error| e.to_string();
    let (scheme, address) = (if target.tls { "https" } else { "http" }, target.address());
    let url = Url::parse(&format!("{scheme}://{address}/streams")).map_err(|e| e.to_string())?;
    let connector = match target.tls {
        false => None,
        true => {
            let common = tls::Common { offer: tls::Offer::Alpn, ..tls::Common::new(["http/1.1"]) };
            let trust = tls::Trust::Anybody;
            let config = tls::ClientConfig { common, trust, false_start: true, ocsp: false };
            Some(tls::Connector::new(&config).map_err(|e| e.to_string())?)
        }
    };
    let mut host = Host::new().map_err(said)?;
    host.connect(Request::new(url, &[]), &[address], connector, Config::default(), Client::new(scenario));
    let mut silent = host.reactor().now();
    loop {
        let before = silent;
        let over = host.turn(Some(before + Duration::from_millis(ANSWER_MS))).map_err(said)?;
        if let Some(client) = over.into_iter().next() {
            return client
                .outcome
                .unwrap_or_else(|| Err("the connection ended before the scenario did".into()));
        }
        let now = host.reactor().now();
        // A turn that its deadline did not end was ended by something that happened.
        if now >= before + Duration::from_millis(ANSWER_MS) {
            return Err(format!("nothing happened for {} s", ANSWER_MS / 1000));
        }
        silent = now;
    }
}

/// A stream of the client's.
struct Asked {
    check: Check,
    /// Still to be sent, and the end after it.
    body: Bytes,
    ended: bool,
    accepted: bool,
    done: bool,
}

/// The client of one scenario.
struct Client {
    scenario: Scenario,
    streams: BTreeMap<StreamId, Asked>,
    /// The stream that was reset.
    cancelled: Option<StreamId>,
    /// The server was asked to go, and said that it does.
    dismissed: bool,
    going: bool,
    outcome: Option<Result<String, String>>,
}

impl Client {
    fn new(scenario: Scenario) -> Self {
        let streams = BTreeMap::new();
        Self { scenario, streams, cancelled: None, dismissed: false, going: false, outcome: None }
    }

    fn begin(&mut self, connection: &mut Connection) -> Result<(), String> {
        let receipt = || contract::receipt(LARGE, crc32fast::hash(&contract::body(LARGE)));
        match self.scenario {
            Scenario::Small | Scenario::GoAway => self.echo(connection),
            Scenario::Get400k => self.bytes(LARGE, connection),
            Scenario::Post400k => {
                let wanted = Wanted::Exactly(receipt().into());
                self.open("sink", None, contract::body(LARGE), wanted, connection)
            }
            Scenario::Parallel100 => {
                (0..PARALLEL).try_for_each(|i| self.bytes(PARALLEL_BASE + i, connection))
            }
            Scenario::Cancel => {
                self.open("endless", None, Bytes::new(), Wanted::Pattern(ENDLESS_MAX), connection)
            }
            other => Err(format!("{other} is not one of /streams")),
        }
    }

    fn echo(&mut self, connection: &mut Connection) -> Result<(), String> {
        let small = Bytes::from_static(SMALL);
        self.open("echo", None, small.clone(), Wanted::Exactly(small), connection)
    }

    fn bytes(&mut self, n: u64, connection: &mut Connection) -> Result<(), String> {
        self.open("bytes", Some(n), Bytes::new(), Wanted::Pattern(n), connection)
    }

    fn open(
        &mut self,
        kind: &'static str,
        n: Option<u64>,
        body: Bytes,
        wanted: Wanted,
        connection: &mut Connection,
    ) -> Result<(), String> {
        let mut fields = Fields::new();
        fields.push("streamtype", kind);
        if let Some(n) = n {
            fields.push("n", n.to_string());
        }
        let id = connection.open(&fields, Opening::default()).map_err(|e| format!("{kind}: {e}"))?;
        let check = Check::new(kind, wanted);
        self.streams.insert(id, Asked { check, body, ended: false, accepted: false, done: false });
        Ok(())
    }

    fn end(&mut self, outcome: Result<String, String>, connection: &mut Connection) {
        self.outcome.get_or_insert(outcome);
        connection.close();
    }

    fn data(&mut self, id: StreamId, bytes: &[u8], fin: bool, connection: &mut Connection) {
        connection.consume(id, bytes.len());
        let Some(asked) = self.streams.get_mut(&id) else { return };
        asked.check.take(bytes);
        if let Some(fault) = asked.check.fault() {
            let fault = fault.to_owned();
            return self.end(Err(fault), connection);
        }
        if self.scenario == Scenario::Cancel && self.cancelled.is_none() && !bytes.is_empty() {
            self.cancelled = Some(id);
            self.streams.remove(&id);
            connection.reset(id, Status::CANCEL);
            if let Err(why) = self.echo(connection) {
                self.end(Err(why), connection);
            }
        } else if fin {
            asked.done = true;
            if let Err(fault) = asked.check.end() {
                return self.end(Err(fault), connection);
            }
            self.advance(connection);
        }
    }

    /// A stream is complete: is the scenario?
    fn advance(&mut self, connection: &mut Connection) {
        if !self.streams.values().all(|asked| asked.done && asked.ended) {
            return;
        }
        let total: u64 = self.streams.values().map(|asked| asked.check.seen()).sum();
        let achieved = match self.scenario {
            Scenario::GoAway if !self.dismissed => {
                self.dismissed = true;
                if let Err(why) = self.open("goaway", None, Bytes::new(), Wanted::Pattern(0), connection) {
                    self.end(Err(why), connection);
                }
                return;
            }
            Scenario::GoAway => return,
            Scenario::Post400k => format!("{LARGE} bytes sent"),
            Scenario::Cancel => "cancelled, then echo".into(),
            _ => format!("{total} bytes"),
        };
        self.end(Ok(achieved), connection);
    }

    fn closed(&mut self, why: &Result<(), live::streams::Error>) {
        let outcome = match (self.dismissed, self.going, why) {
            (true, true, Ok(())) => Ok("GOAWAY, then the connection closed".into()),
            (true, false, Ok(())) => Err("the connection closed without GOAWAY".into()),
            (false, _, Ok(())) => Err("the server closed the connection".into()),
            (_, _, Err(e)) => Err(e.to_string()),
        };
        self.outcome.get_or_insert(outcome);
    }
}

impl Handler for Client {
    fn event(&mut self, event: Event, connection: &mut Connection, _: &Reactor) {
        match event {
            Event::Granted { .. } => {
                if let Err(why) = self.begin(connection) {
                    self.end(Err(why), connection);
                }
            }
            Event::Accepted { id, .. } => {
                if let Some(asked) = self.streams.get_mut(&id) {
                    asked.accepted = true;
                }
            }
            Event::Data { id, bytes, fin } => self.data(id, &bytes, fin, connection),
            Event::Headers { id, fin: true, .. } => self.data(id, &[], true, connection),
            Event::Reset { id, status, .. } if self.streams.contains_key(&id) && !self.dismissed => {
                self.end(Err(format!("a stream was reset: {status:?}")), connection);
            }
            Event::GoingAway { .. } => self.going = true,
            Event::Closed(why) => self.closed(&why),
            _ => {}
        }
    }

    fn pump(&mut self, connection: &mut Connection, _: &Reactor) -> bool {
        let mut moved = false;
        for (id, asked) in self.streams.iter_mut().filter(|(_, asked)| asked.accepted && !asked.ended) {
            let room = connection.room(*id).min(asked.body.len());
            let part = asked.body.split_to(room);
            if part.is_empty() && !asked.body.is_empty() {
                continue;
            }
            asked.ended = asked.body.is_empty();
            moved = true;
            // A stream that was reset meanwhile says so by its event.
            let _ = connection.send(*id, part, asked.ended);
        }
        if moved {
            self.advance(connection);
        }
        moved
    }
}

/// A stream of the server's.
enum Answering {
    Echo { queue: VecDeque<Bytes>, ended: bool },
    Pattern { at: u64, len: u64 },
    Sink { len: u64, crc: crc32fast::Hasher },
}

/// The server of one connection.
struct Service {
    streams: BTreeMap<StreamId, Answering>,
    seen: Arc<Mutex<Seen>>,
}

impl Service {
    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&mut self, id: StreamId, fields: &Fields, connection: &mut Connection) {
        let n = fields.get_str("n").and_then(|n| n.parse().ok());
        let answering = match (fields.get_str("streamtype"), n) {
            (Some("echo"), _) => Answering::Echo { queue: VecDeque::new(), ended: false },
            (Some("bytes"), Some(len)) if len <= ENDLESS_MAX => Answering::Pattern { at: 0, len },
            (Some("sink"), _) => Answering::Sink { len: 0, crc: crc32fast::Hasher::new() },
            (Some("endless"), _) => Answering::Pattern { at: 0, len: ENDLESS_MAX },
            (Some("goaway"), _) => {
                // The stream may be gone if the client did not wait.
                let _ = connection.accept(id, &Fields::new(), true);
                return connection.close();
            }
            _ => return connection.reset(id, Status::REFUSED_STREAM),
        };
        if connection.accept(id, &Fields::new(), false).is_ok() {
            self.seen().answers += 1;
            self.streams.insert(id, answering);
        }
    }

    fn data(&mut self, id: StreamId, bytes: Bytes, fin: bool, connection: &mut Connection) {
        match self.streams.get_mut(&id) {
            Some(Answering::Echo { queue, ended }) => {
                // Consumed when it is sent on.
                queue.extend((!bytes.is_empty()).then_some(bytes));
                *ended |= fin;
            }
            Some(Answering::Sink { len, crc }) => {
                connection.consume(id, bytes.len());
                let wrong = (*len..).zip(&bytes).find(|(at, byte)| *at % MODULUS != u64::from(**byte));
                *len += bytes.len() as u64;
                crc.update(&bytes);
                let receipt = fin.then(|| contract::receipt(*len, crc.clone().finalize()));
                if let Some((at, _)) = wrong {
                    self.seen().faults.push(format!("byte {at} of an upload is not the pattern's"));
                }
                if let Some(receipt) = receipt {
                    self.streams.remove(&id);
                    // A client that has gone wants no receipt.
                    let _ = connection.send(id, receipt.into(), true);
                }
            }
            _ => connection.consume(id, bytes.len()),
        }
    }
}

impl Handler for Service {
    fn event(&mut self, event: Event, connection: &mut Connection, _: &Reactor) {
        match event {
            Event::Asked { head, .. } => {
                let answered = match &*head.path {
                    b"/streams" => connection.grant(None),
                    _ => connection.refuse(404, Fields::new(), Bytes::new()),
                };
                debug_assert_eq!(answered, Ok(()), "a request waits for its answer");
            }
            Event::Opened { id, fields, .. } => self.opened(id, &fields, connection),
            Event::Data { id, bytes, fin } => self.data(id, bytes, fin, connection),
            Event::Reset { id, .. } => {
                self.streams.remove(&id);
            }
            Event::GoingAway { .. } => connection.close(),
            Event::Closed(why) => {
                let why = why.map_or_else(|e| e.to_string(), |()| "in order".into());
                self.seen().closed.push(why);
            }
            _ => {}
        }
    }

    fn pump(&mut self, connection: &mut Connection, _: &Reactor) -> bool {
        let mut moved = false;
        let mut over = Vec::new();
        for (id, answering) in &mut self.streams {
            let room = connection.room(*id);
            let (part, fin) = match answering {
                Answering::Echo { queue, ended } => match queue.front_mut() {
                    Some(front) => {
                        let part = front.split_to(room.min(front.len()));
                        if front.is_empty() {
                            queue.pop_front();
                        }
                        connection.consume(*id, part.len());
                        (part, *ended && queue.is_empty())
                    }
                    None => (Bytes::new(), *ended),
                },
                Answering::Pattern { at, len } => {
                    let mut part = BytesMut::new();
                    contract::pattern(*at, (*len - *at).min(room as u64), &mut part);
                    *at += part.len() as u64;
                    if *len == ENDLESS_MAX {
                        self.seen.lock().unwrap_or_else(PoisonError::into_inner).endless += part.len() as u64;
                    }
                    (part.freeze(), at == len)
                }
                Answering::Sink { .. } => continue,
            };
            if part.is_empty() && !fin {
                continue;
            }
            moved = true;
            if connection.send(*id, part, fin).is_err() || fin {
                over.push(*id);
            }
        }
        for id in over {
            self.streams.remove(&id);
        }
        moved
    }
}

/// A server of `/streams` in a thread of its own. Dropping it ends it.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    waker: Waker,
    seen: Arc<Mutex<Seen>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts one on a free port of loopback.
    ///
    /// # Errors
    /// If the system has no port or no thread.
    pub fn start(acceptor: Option<tls::Acceptor>) -> io::Result<Self> {
        let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Seen>>::default());
        let (say, told) = std::sync::mpsc::channel();
        let (stopped, sight) = (stop.clone(), seen.clone());
        // A host is made where it runs, as its handlers need not be able to change threads.
        let thread = std::thread::Builder::new().name("streams".into()).spawn(move || {
            let mut host = match listen(acceptor, sight) {
                Ok((host, address)) => {
                    let _ = say.send(Ok((address, host.reactor().waker())));
                    host
                }
                Err(e) => return say.send(Err(e)).unwrap_or_default(),
            };
            while !stopped.load(Ordering::SeqCst) && host.turn(None).is_ok() {}
        })?;
        let (address, waker) = told.recv().map_err(io::Error::other)??;
        Ok(Self { address, stop, waker, seen, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Ends it and tells what it saw.
    pub fn stop(mut self) -> Seen {
        self.shut_down();
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn shut_down(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // A reactor that is gone needs no waking.
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // If it panicked, its client has seen that.
            let _ = thread.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shut_down();
    }
}

fn listen(
    acceptor: Option<tls::Acceptor>,
    seen: Arc<Mutex<Seen>>,
) -> io::Result<(Host<Service>, SocketAddr)> {
    let mut host = Host::new()?;
    let welcome = move |_| Service { streams: BTreeMap::new(), seen: seen.clone() };
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let address = host.listen(any, acceptor, Config::default(), 16, welcome)?;
    Ok((host, address))
}
