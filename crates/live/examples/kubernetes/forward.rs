//! Port-forward, both sides: `portforward.k8s.io`.
//!
//! For each connection at the near end the client opens two streams with the same `requestid`: one for errors, which it
//! ends at once, and one for data. The server connects to the `port`, and says on the error stream if that fails.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};

use base::{Duration, Fields, Instant};
use bytes::Bytes;
use live::Reactor;
use live::streams::{ACCEPTED_PROTOCOLS, Connection, Event, Handler};
use mio::net::{TcpListener, TcpStream};
use spdy::{Opening, Status, StreamId};

use crate::pump::{Outlet, Poured, pour};

/// The protocol spoken above SPDY.
pub const PROTOCOL: &str = "portforward.k8s.io";

/// How long the second stream of a pair may be missing: the kubelet's DefaultStreamCreationTimeout.
const PAIR_TIMEOUT: Duration = Duration::from_secs(30);

/// A TCP connection and the stream that it is joined to.
struct Joint {
    tcp: TcpStream,
    connected: bool,
    /// From the stream to the connection.
    queue: Outlet,
    /// The stream's end was passed on.
    shut: bool,
    /// The connection's end was.
    ended: bool,
}

impl Joint {
    fn new(tcp: TcpStream, connected: bool) -> Self {
        Self { tcp, connected, queue: Outlet::default(), shut: false, ended: false }
    }

    /// Whether TCP is there.
    fn is_connected(&mut self) -> io::Result<bool> {
        if !self.connected {
            self.tcp.take_error()?.map_or(Ok(()), Err)?;
            match self.tcp.peer_addr() {
                Ok(_) => self.connected = true,
                Err(e) if e.kind() == io::ErrorKind::NotConnected => {}
                Err(e) => return Err(e),
            }
        }
        Ok(self.connected)
    }

    /// Moves what can be moved, both ways. Gives whether that was anything.
    fn pump(&mut self, id: StreamId, connection: &mut Connection) -> io::Result<bool> {
        if !self.is_connected()? {
            return Ok(false);
        }
        let mut moved = self.queue.drain(id, &mut self.tcp, connection)?;
        if self.queue.is_over() && !self.shut {
            self.tcp.flush()?;
            self.tcp.shutdown(Shutdown::Write)?;
            self.shut = true;
            moved = true;
        }
        if !self.ended {
            let poured = pour(&mut self.tcp, id, connection)?;
            self.ended = poured == Poured::End;
            moved |= poured != Poured::Nothing;
        }
        Ok(moved)
    }
}

/// A pair of streams at the server.
struct Pair {
    port: u16,
    error: Option<StreamId>,
    data: Option<StreamId>,
    since: Instant,
    joint: Option<Joint>,
    /// What came before there was a connection to give it to.
    early: Outlet,
}

/// The server's side.
pub struct Server {
    /// Where every connection goes; `None` for the port that is asked for, on this machine.
    target: Option<SocketAddr>,
    /// By `requestid`.
    pairs: BTreeMap<Bytes, Pair>,
}

impl Server {
    pub fn new(target: Option<SocketAddr>) -> Self {
        Self { target, pairs: BTreeMap::new() }
    }

    /// Reads what a stream is for; says why not.
    fn opened(
        &mut self,
        id: StreamId,
        fields: &Fields,
        connection: &mut Connection,
        reactor: &Reactor,
    ) -> Result<(), String> {
        let port = fields.get_str("port").ok_or("\"port\" header is required")?;
        let port = port.parse::<u16>().ok().filter(|port| *port > 0);
        let port = port.ok_or("unable to parse the port")?;
        let kind = fields.get_str("streamtype").ok_or("\"streamType\" header is required")?;
        let is_error = match kind {
            "error" => true,
            "data" => false,
            other => return Err(format!("invalid stream type {other:?}")),
        };
        let request = match fields.get("requestid") {
            Some(request) => request.clone(),
            // Clients of 2015 have none, and open the data stream right after the other.
            None => Bytes::from((id.as_u32() - if is_error { 0 } else { 2 }).to_string()),
        };
        let since = reactor.now();
        let pair = self.pairs.entry(request.clone()).or_insert_with(|| Pair {
            port,
            error: None,
            data: None,
            since,
            joint: None,
            early: Outlet::default(),
        });
        let place = if is_error { &mut pair.error } else { &mut pair.data };
        if place.is_some() {
            return Err(format!("error processing stream for request: {kind} stream already assigned"));
        }
        connection.accept(id, &Fields::new(), false).map_err(|e| e.to_string())?;
        *place = Some(id);
        if pair.error.is_some() && pair.data.is_some() {
            let target = self.target.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, pair.port).into());
            let opened = TcpStream::connect(target).and_then(|mut tcp| {
                reactor.register(&mut tcp, connection.token())?;
                Ok(tcp)
            });
            match opened {
                Ok(tcp) => {
                    let queue = std::mem::take(&mut pair.early);
                    pair.joint = Some(Joint { queue, ..Joint::new(tcp, false) });
                }
                Err(e) => self.fail(&request, &e.to_string(), connection),
            }
        }
        Ok(())
    }

    /// Says on the error stream what went wrong, and ends both.
    fn fail(&mut self, request: &Bytes, why: &str, connection: &mut Connection) {
        let Some(mut pair) = self.pairs.remove(request) else { return };
        let why = format!("error forwarding port {}: {why}", pair.port);
        eprintln!("{why}");
        if let Some(id) = pair.error {
            let _ = connection.send(id, why.into(), true);
        }
        if let Some(id) = pair.data {
            let queue = pair.joint.as_mut().map_or(&mut pair.early, |joint| &mut joint.queue);
            queue.abandon(id, connection);
            if !pair.joint.is_some_and(|joint| joint.ended) {
                let _ = connection.send(id, Bytes::new(), true);
            }
        }
    }

    /// The pair whose data stream this is.
    fn pair(&mut self, id: StreamId) -> Option<(&Bytes, &mut Pair)> {
        self.pairs.iter_mut().find(|(_, pair)| pair.data == Some(id))
    }
}

impl Handler for Server {
    fn event(&mut self, event: Event, connection: &mut Connection, reactor: &Reactor) {
        match event {
            Event::Asked { protocols, .. } => {
                let answered = match protocols.iter().any(|p| p == PROTOCOL) {
                    true => connection.grant(Some(PROTOCOL)),
                    false => {
                        let mut fields = Fields::new();
                        fields.push("Content-Type", "text/plain; charset=utf-8");
                        fields.push(ACCEPTED_PROTOCOLS, PROTOCOL);
                        let offered = protocols.join(", ");
                        let why = format!(
                            "no protocol in common: client offers [{offered}], server takes {PROTOCOL}"
                        );
                        connection.refuse(403, fields, format!("unable to upgrade: {why}\n").into())
                    }
                };
                debug_assert_eq!(answered, Ok(()), "a request waits for its answer");
            }
            Event::Opened { id, fields, .. } => {
                if let Err(why) = self.opened(id, &fields, connection, reactor) {
                    eprintln!("stream rejected: {why}");
                    connection.reset(id, Status::CANCEL);
                }
            }
            Event::Data { id, bytes, fin } => match self.pair(id) {
                Some((_, pair)) => {
                    let queue = pair.joint.as_mut().map_or(&mut pair.early, |joint| &mut joint.queue);
                    queue.push(bytes, fin);
                }
                None => connection.consume(id, bytes.len()),
            },
            // The client wants no more of it. What it has sent before is still passed on, as far as that goes at once.
            Event::Reset { id, .. } => {
                let Some((request, pair)) = self.pair(id) else { return };
                let request = request.clone();
                if let Some(joint) = &mut pair.joint {
                    let _ = joint.queue.drain(id, &mut joint.tcp, connection);
                    joint.queue.abandon(id, connection);
                }
                pair.early.abandon(id, connection);
                if let Some(error) = pair.error {
                    let _ = connection.send(error, Bytes::new(), true);
                }
                self.pairs.remove(&request);
            }
            Event::GoingAway { .. } => connection.close(),
            Event::Closed(Err(e)) => eprintln!("{e}"),
            _ => {}
        }
    }

    fn pump(&mut self, connection: &mut Connection, reactor: &Reactor) -> bool {
        let now = reactor.now();
        let mut moved = false;
        let mut over = Vec::new();
        let mut failed = Vec::new();
        for (request, pair) in &mut self.pairs {
            let (Some(joint), Some(data)) = (&mut pair.joint, pair.data) else {
                if pair.since + PAIR_TIMEOUT <= now {
                    failed.push((request.clone(), "timed out waiting for streams".to_owned()));
                }
                continue;
            };
            let had_ended = joint.ended;
            match joint.pump(data, connection) {
                Ok(some) => moved |= some,
                Err(e) => {
                    failed.push((request.clone(), e.to_string()));
                    continue;
                }
            }
            if joint.ended && !had_ended {
                let _ = connection.send(data, Bytes::new(), true);
                if let Some(error) = pair.error {
                    let _ = connection.send(error, Bytes::new(), true);
                }
            }
            if joint.ended && joint.shut {
                over.push(request.clone());
            }
        }
        moved |= !failed.is_empty();
        for (request, why) in failed {
            self.fail(&request, &why, connection);
        }
        for request in over {
            self.pairs.remove(&request);
        }
        moved
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.pairs.values().filter(|pair| pair.joint.is_none()).map(|pair| pair.since + PAIR_TIMEOUT).min()
    }
}

/// A connection at the client.
struct Link {
    error: StreamId,
    /// What the server says on it.
    message: Vec<u8>,
    error_ended: bool,
    data: StreamId,
    accepted: bool,
    /// The near end, until it is served.
    joint: Option<Joint>,
}

/// Bytes of a server's message that are kept.
const MESSAGE_MAX: usize = 4096;

/// The client's side.
pub struct Client {
    /// Ports at the near end, each with the one at the far end.
    ports: Vec<(TcpListener, u16)>,
    granted: bool,
    requests: u64,
    links: Vec<Link>,
    /// Why the connection ended, once it has.
    pub end: Option<Result<(), String>>,
}

impl Client {
    /// Forwards from each listener to the port beside it.
    pub fn new(ports: Vec<(TcpListener, u16)>) -> Self {
        Self { ports, granted: false, requests: 0, links: Vec::new(), end: None }
    }

    fn granted(
        &mut self,
        protocol: Option<&str>,
        connection: &mut Connection,
        reactor: &Reactor,
    ) -> Result<(), String> {
        if protocol != Some(PROTOCOL) {
            let other = protocol.unwrap_or("no protocol that it names");
            return Err(format!("the server speaks {other}, not {PROTOCOL}"));
        }
        for (listener, _) in &mut self.ports {
            reactor.register_readable(listener, connection.token()).map_err(|e| e.to_string())?;
        }
        self.granted = true;
        Ok(())
    }

    /// Takes a connection at the near end.
    fn join(
        &mut self,
        mut tcp: TcpStream,
        port: u16,
        connection: &mut Connection,
        reactor: &Reactor,
    ) -> Result<(), String> {
        reactor.register(&mut tcp, connection.token()).map_err(|e| e.to_string())?;
        let mut open = |kind: &'static str| {
            let mut fields = Fields::new();
            fields.push("streamtype", kind);
            fields.push("port", port.to_string());
            fields.push("requestid", self.requests.to_string());
            connection.open(&fields, Opening::default()).map_err(|e| e.to_string())
        };
        let (error, data) = (open("error")?, open("data")?);
        self.requests += 1;
        let joint = Some(Joint::new(tcp, true));
        self.links.push(Link {
            error,
            message: Vec::new(),
            error_ended: false,
            data,
            accepted: false,
            joint,
        });
        Ok(())
    }

    fn link(&mut self, id: StreamId) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.data == id || link.error == id)
    }

    /// A stream brings no more.
    fn ended(&mut self, id: StreamId, by_reset: bool, connection: &mut Connection) {
        let Some(link) = self.link(id) else { return };
        if id == link.error {
            link.error_ended = true;
            if !link.message.is_empty() {
                eprintln!("an error occurred forwarding: {}", String::from_utf8_lossy(&link.message).trim());
            }
        } else if let Some(joint) = &mut link.joint {
            joint.queue.push(Bytes::new(), true);
            // The kubelet reads no more from here on, and would stop reading anything if we went on sending.
            joint.ended = true;
            if !by_reset {
                connection.reset(id, Status::CANCEL);
            }
        }
    }
}

impl Handler for Client {
    fn event(&mut self, event: Event, connection: &mut Connection, reactor: &Reactor) {
        match event {
            Event::Granted { protocol, .. } => {
                if let Err(why) = self.granted(protocol.as_deref(), connection, reactor) {
                    self.end = Some(Err(why));
                    connection.close();
                }
            }
            Event::Accepted { id, fin, .. } => {
                if let Some(link) = self.link(id) {
                    if id == link.error {
                        // Nothing is ever said on it from here.
                        let _ = connection.send(id, Bytes::new(), true);
                    } else {
                        link.accepted = true;
                    }
                }
                if fin {
                    self.ended(id, false, connection);
                }
            }
            Event::Opened { id, .. } => connection.reset(id, Status::REFUSED_STREAM),
            Event::Data { id, bytes, fin } => {
                match self.link(id) {
                    Some(Link { data, joint: Some(joint), .. }) if *data == id => {
                        joint.queue.push(bytes, false)
                    }
                    other => {
                        connection.consume(id, bytes.len());
                        if let Some(link) = other.filter(|link| link.error == id) {
                            let room = MESSAGE_MAX - link.message.len();
                            link.message.extend_from_slice(&bytes[..bytes.len().min(room)]);
                        }
                    }
                }
                if fin {
                    self.ended(id, false, connection);
                }
            }
            Event::Headers { id, fin: true, .. } => self.ended(id, false, connection),
            Event::Reset { id, .. } => self.ended(id, true, connection),
            Event::GoingAway { .. } => connection.close(),
            Event::Closed(end) => {
                self.end.get_or_insert(end.map_err(|e| e.to_string()));
            }
            _ => {}
        }
    }

    fn pump(&mut self, connection: &mut Connection, reactor: &Reactor) -> bool {
        if !self.granted || self.end.is_some() {
            return false;
        }
        let mut moved = false;
        let mut taken = Vec::new();
        for (listener, port) in &self.ports {
            while let Ok((tcp, _)) = listener.accept() {
                taken.push((tcp, *port));
            }
        }
        for (tcp, port) in taken {
            moved = true;
            // What cannot be forwarded is closed.
            if let Err(why) = self.join(tcp, port, connection, reactor) {
                eprintln!("not forwarded to {port}: {why}");
            }
        }
        for link in &mut self.links {
            let Some(joint) = link.joint.as_mut().filter(|joint| link.accepted || joint.ended) else {
                continue;
            };
            let had_ended = joint.ended;
            match joint.pump(link.data, connection) {
                Ok(some) => moved |= some,
                Err(_) => {
                    // The near end is gone.
                    joint.queue.abandon(link.data, connection);
                    connection.reset(link.data, Status::CANCEL);
                    link.joint = None;
                    moved = true;
                    continue;
                }
            }
            if joint.ended && !had_ended {
                let _ = connection.send(link.data, Bytes::new(), true);
            }
            if joint.ended && joint.shut {
                link.joint = None;
            }
        }
        self.links.retain(|link| link.joint.is_some() || !link.error_ended);
        moved
    }
}
