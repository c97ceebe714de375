//! Port-forward, kubectl's side.

use base::{Fields, Instant};
use bytes::Bytes;
use live::Reactor;
use live::streams::{Connection, Event, Handler};
use mio::net::{TcpListener, TcpStream};
use spdy::{Opening, Status, StreamId};

use super::{Joint, PROTOCOL};
use crate::pump::Outlet;
use crate::signals::Signals;

/// A connection at the near end.
struct Link {
    port: u16,
    request: u64,
    error: StreamId,
    /// What the server says on it.
    message: Vec<u8>,
    error_ended: bool,
    /// Opened when the other is accepted, as kubectl does: spdystream may otherwise take them in any order.
    data: Option<StreamId>,
    accepted: bool,
    /// The near end, until it is served.
    joint: Option<Joint>,
}

impl Link {
    fn open(
        kind: &'static str,
        port: u16,
        request: u64,
        connection: &mut Connection,
    ) -> Result<StreamId, String> {
        let mut fields = Fields::new();
        fields.push("streamtype", kind);
        fields.push("port", port.to_string());
        fields.push("requestid", request.to_string());
        connection.open(&fields, Opening::default()).map_err(|e| e.to_string())
    }

    /// It is not to be served: its near end is closed.
    fn give_up(&mut self, why: &str, connection: &mut Connection) {
        eprintln!("not forwarded to {}: {why}", self.port);
        self.joint = None;
        self.error_ended = true;
        connection.reset(self.error, Status::CANCEL);
    }
}

/// Bytes of a server's message that are kept.
const MESSAGE_MAX: usize = 4096;

/// The client's side of one connection.
pub struct Client {
    /// Ports at the near end, each with the one at the far end.
    ports: Vec<(TcpListener, u16)>,
    granted: bool,
    requests: u64,
    links: Vec<Link>,
    signals: Signals,
    /// Why the connection ended, once it has.
    pub end: Option<Result<(), String>>,
}

impl Client {
    /// Forwards from each listener to the port beside it, until `signals` say to stop.
    pub fn new(ports: Vec<(TcpListener, u16)>, signals: Signals) -> Self {
        Self { ports, granted: false, requests: 0, links: Vec::new(), signals, end: None }
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
        let request = self.requests;
        let error = Link::open("error", port, request, connection)?;
        self.requests += 1;
        let joint = Some(Joint::new(tcp, true, Outlet::default()));
        let (message, error_ended, data, accepted) = (Vec::new(), false, None, false);
        self.links.push(Link { port, request, error, message, error_ended, data, accepted, joint });
        Ok(())
    }

    fn link(&mut self, id: StreamId) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.data == Some(id) || link.error == id)
    }

    fn accepted(&mut self, id: StreamId, connection: &mut Connection) {
        let Some(link) = self.link(id) else { return };
        if id != link.error {
            link.accepted = true;
            return;
        }
        // Nothing is ever said on it from here.
        let _ = connection.send(id, Bytes::new(), true);
        match Link::open("data", link.port, link.request, connection) {
            Ok(id) => link.data = Some(id),
            Err(why) => link.give_up(&why, connection),
        }
    }

    /// A stream brings no more.
    fn ended(&mut self, id: StreamId, by_reset: bool, connection: &mut Connection) {
        let Some(link) = self.link(id) else { return };
        if id == link.error {
            link.error_ended = true;
            if !link.message.is_empty() {
                eprintln!("an error occurred forwarding: {}", String::from_utf8_lossy(&link.message).trim());
            }
            if link.data.is_none() {
                link.give_up("the server wants no stream for it", connection);
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

    /// Takes the connections that wait at the near end.
    fn take_in(&mut self, connection: &mut Connection, reactor: &Reactor) -> bool {
        let mut taken = Vec::new();
        for (listener, port) in &self.ports {
            while let Ok((tcp, _)) = listener.accept() {
                taken.push((tcp, *port));
            }
        }
        let any = !taken.is_empty();
        for (tcp, port) in taken {
            // What cannot be forwarded is closed.
            if let Err(why) = self.join(tcp, port, connection, reactor) {
                eprintln!("not forwarded to {port}: {why}");
            }
        }
        any
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
                self.accepted(id, connection);
                if fin {
                    self.ended(id, false, connection);
                }
            }
            Event::Opened { id, .. } => connection.reset(id, Status::REFUSED_STREAM),
            Event::Data { id, bytes, fin } => {
                match self.link(id) {
                    Some(Link { data, joint: Some(joint), .. }) if *data == Some(id) => {
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
        if self.end.is_some() {
            return false;
        }
        if self.signals.stop() {
            self.end = Some(Ok(()));
            connection.close();
            return true;
        }
        self.signals.take_resized();
        if !self.granted {
            return false;
        }
        let mut moved = self.take_in(connection, reactor);
        for link in &mut self.links {
            let Some(id) = link.data else { continue };
            let Some(joint) = link.joint.as_mut().filter(|joint| link.accepted || joint.ended) else {
                continue;
            };
            let had_ended = joint.ended;
            match joint.pump(id, connection) {
                Ok(some) => moved |= some,
                Err(_) => {
                    // The near end is gone.
                    joint.queue.abandon(id, connection);
                    connection.reset(id, Status::CANCEL);
                    link.joint = None;
                    moved = true;
                    continue;
                }
            }
            if joint.ended && !had_ended {
                let _ = connection.send(id, Bytes::new(), true);
            }
            if joint.ended && joint.shut {
                link.joint = None;
            }
        }
        self.links.retain(|link| link.joint.is_some() || !link.error_ended);
        moved
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (self.end.is_none() && self.signals.are_pending()).then_some(Instant::ZERO)
    }
}
