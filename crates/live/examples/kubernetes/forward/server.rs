//! Port-forward, the kubelet's side.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use base::{Duration, Fields, Instant};
use bytes::Bytes;
use live::Reactor;
use live::streams::{ACCEPTED_PROTOCOLS, Connection, Event, Handler};
use mio::net::TcpStream;
use spdy::{Status, StreamId};

use super::{Joint, PROTOCOL};
use crate::pump::Outlet;

/// How long the second stream of a pair may be missing: the kubelet's DefaultStreamCreationTimeout.
const PAIR_TIMEOUT: Duration = Duration::from_secs(30);

/// A pair of streams. One of them is there at least, so that pairs are bounded as streams are.
struct Pair {
    port: u16,
    error: Option<StreamId>,
    data: Option<StreamId>,
    since: Instant,
    joint: Option<Joint>,
    /// What came before there was a connection to give it to.
    early: Outlet,
}

impl Pair {
    /// What waits for the connection.
    fn queue(&mut self) -> &mut Outlet {
        self.joint.as_mut().map_or(&mut self.early, |joint| &mut joint.queue)
    }
}

/// The server's side of one connection.
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
        let known = self.pairs.get(&request);
        if known.is_some_and(|pair| if is_error { pair.error.is_some() } else { pair.data.is_some() }) {
            return Err(format!("error processing stream for request: {kind} stream already assigned"));
        }
        connection.accept(id, &Fields::new(), false).map_err(|e| e.to_string())?;
        let (since, early) = (reactor.now(), Outlet::default());
        let pair = Pair { port, error: None, data: None, since, joint: None, early };
        let pair = self.pairs.entry(request.clone()).or_insert(pair);
        *(if is_error { &mut pair.error } else { &mut pair.data }) = Some(id);
        if pair.error.is_some() && pair.data.is_some() {
            let target = self.target.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, pair.port).into());
            let opened = TcpStream::connect(target).and_then(|mut tcp| {
                reactor.register(&mut tcp, connection.token())?;
                Ok(tcp)
            });
            match opened {
                Ok(tcp) => pair.joint = Some(Joint::new(tcp, false, std::mem::take(&mut pair.early))),
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
            pair.queue().abandon(id, connection);
            if !pair.joint.is_some_and(|joint| joint.ended) {
                let _ = connection.send(id, Bytes::new(), true);
            }
        }
    }

    /// The pair whose data stream this is.
    fn pair(&mut self, id: StreamId) -> Option<&mut Pair> {
        self.pairs.values_mut().find(|pair| pair.data == Some(id))
    }

    /// The client wants no more of a pair. What it has sent before is still passed on, as far as that goes at once.
    fn reset(&mut self, id: StreamId, connection: &mut Connection) {
        let of = |pair: &Pair| pair.data == Some(id) || pair.error == Some(id);
        let request = self.pairs.iter().find(|(_, pair)| of(pair)).map(|(request, _)| request.clone());
        let Some(mut pair) = request.and_then(|request| self.pairs.remove(&request)) else { return };
        if let Some(data) = pair.data {
            if let Some(joint) = &mut pair.joint {
                let _ = joint.queue.drain(data, &mut joint.tcp, connection);
            }
            pair.queue().abandon(data, connection);
        }
        for other in [pair.error, pair.data].into_iter().flatten().filter(|other| *other != id) {
            // Unless it has been already.
            let _ = connection.send(other, Bytes::new(), true);
        }
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
                            "no protocol in common: client offers [{offered}], server takes [{PROTOCOL}]"
                        );
                        connection.refuse(403, fields, format!("unable to upgrade: {why}\n").into())
                    }
                };
                // Otherwise its time is up, and there is nobody to tell.
                if answered.is_err() {
                    connection.close();
                }
            }
            Event::Opened { id, fields, .. } => {
                if let Err(why) = self.opened(id, &fields, connection, reactor) {
                    eprintln!("stream rejected: {why}");
                    connection.reset(id, Status::CANCEL);
                }
            }
            Event::Data { id, bytes, fin } => match self.pair(id) {
                Some(pair) => pair.queue().push(bytes, fin),
                None => connection.consume(id, bytes.len()),
            },
            Event::Reset { id, .. } => self.reset(id, connection),
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

#[cfg(test)]
impl Server {
    /// How many there are.
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }
}
