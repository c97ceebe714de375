//! Brings requests to connections and what happens on them to exchanges.

use std::collections::{BTreeMap, VecDeque};
use std::net::{SocketAddr, ToSocketAddrs};

use base::{Instant, RequestHead};
use bytes::Bytes;

use super::connection::{Connection, Phases, Step};
use super::engine::{Engine, Happening};
use super::{Config, Direction, Error, Event, Exchange, Observer, Outcome, Protocol, Request, Timing, Url};
use crate::Reactor;
use crate::tls::{Common, Connector};

/// A scheme, name and port, with what is still to be asked of it.
struct Origin {
    url: Url,
    /// Exchanges to send.
    queue: VecDeque<usize>,
    addresses: Vec<SocketAddr>,
    dns: Option<(Instant, Instant)>,
    /// The connection that is in use.
    connection: Option<usize>,
}

struct Fetcher<'f, O> {
    config: &'f Config,
    observer: &'f mut O,
    reactor: Reactor,
    connector: Option<Connector>,
    origins: Vec<Origin>,
    exchanges: Vec<Exchange>,
    /// Those not closed, by number.
    connections: BTreeMap<usize, Connection>,
    opened: usize,
}

/// Fetches all of `requests` and gives what became of each, in their order, and behind them the pushes that came along.
///
/// # Errors
/// If nothing can be fetched at all. What goes wrong with one request is its [`Outcome`].
pub fn fetch(
    requests: Vec<Request>,
    config: &Config,
    observer: &mut impl Observer,
) -> Result<Vec<Exchange>, Error> {
    check(&requests, config)?;
    let connector = match requests.iter().any(|r| r.url.scheme() == "https") {
        true => {
            let protocols = config.protocols.iter().map(|p| p.id());
            let offer = Common::new(protocols).protocols;
            let common = Common { protocols: offer, ..config.tls.common.clone() };
            Some(Connector::new(&crate::tls::ClientConfig { common, ..config.tls.clone() })?)
        }
        false => None,
    };
    let reactor = Reactor::new().map_err(|e| Error::System(e.to_string()))?;
    let mut fetcher = Fetcher {
        config,
        observer,
        connector,
        origins: Vec::new(),
        exchanges: Vec::new(),
        connections: BTreeMap::new(),
        opened: 0,
        reactor,
    };
    fetcher.queue(requests);
    fetcher.run()?;
    Ok(fetcher.exchanges)
}

fn check(requests: &[Request], config: &Config) -> Result<(), Error> {
    for request in requests {
        if !matches!(request.url.scheme(), "http" | "https") || !request.url.has_host() {
            return Err(Error::Url(request.url.to_string()));
        }
    }
    if config.protocols.is_empty() {
        return Err(Error::Config("no protocol to speak: allow one"));
    }
    if config.upgrade && requests.iter().any(|r| r.url.scheme() == "https") {
        return Err(Error::Config("an upgrade is for clear text: over TLS protocols are negotiated"));
    }
    Ok(())
}

impl<O: Observer> Fetcher<'_, O> {
    /// Sorts the requests by origin; within one, by urgency and then in their order.
    fn queue(&mut self, requests: Vec<Request>) {
        let now = self.reactor.now();
        for request in requests {
            let url = &request.url;
            let same = |o: &Origin| {
                o.url.scheme() == url.scheme()
                    && o.url.host_str() == url.host_str()
                    && o.url.port_or_known_default() == url.port_or_known_default()
            };
            let origin = self.origins.iter().position(same).unwrap_or_else(|| {
                self.origins.push(Origin {
                    url: url.clone(),
                    queue: VecDeque::new(),
                    addresses: Vec::new(),
                    dns: None,
                    connection: None,
                });
                self.origins.len() - 1
            });
            let exchange = Exchange {
                request,
                pushed_with: None,
                answered_by: None,
                connection: None,
                stream: None,
                response: None,
                head_len: 0,
                body_len: 0,
                attempts: 0,
                timing: Timing { queued: now, ..Timing::default() },
                outcome: Outcome::Pending,
            };
            self.origins[origin].queue.push_back(self.exchanges.len());
            self.exchanges.push(exchange);
        }
        for origin in &mut self.origins {
            let exchanges = &self.exchanges;
            origin.queue.make_contiguous().sort_by_key(|e| exchanges[*e].request.priority);
        }
    }

    fn run(&mut self) -> Result<(), Error> {
        loop {
            for origin in 0..self.origins.len() {
                if self.origins[origin].connection.is_none() && !self.origins[origin].queue.is_empty() {
                    self.open(origin);
                }
            }
            if self.exchanges.iter().all(|e| e.outcome != Outcome::Pending) {
                self.leave();
                return Ok(());
            }
            let deadline = self.connections.values().filter_map(|c| c.poll_timeout(self.config)).min();
            let waited = match self.connections.is_empty() {
                true => Ok(()),
                false => self.reactor.wait(deadline),
            };
            waited.map_err(|e| Error::System(e.to_string()))?;
            let now = self.reactor.now();
            let numbers: Vec<usize> = self.connections.keys().copied().collect();
            for number in numbers {
                let due = self.connections.get(&number).and_then(|c| c.poll_timeout(self.config));
                if due.is_some_and(|due| due <= now)
                    && let Some(connection) = self.connections.get_mut(&number)
                {
                    let step = connection.handle_timeout(now, self.config);
                    self.stepped(number, step);
                }
            }
            let ready: Vec<usize> = self.reactor.ready().map(|r| r.token).collect();
            for number in ready {
                self.drive(number);
            }
        }
    }

    /// Takes leave of every server, as far as the sockets take it at once.
    fn leave(&mut self) {
        for number in self.connections.keys().copied().collect::<Vec<_>>() {
            if let Some(engine) = self.connections.get_mut(&number).and_then(Connection::engine) {
                engine.goaway();
            }
            self.drive(number);
            self.closed(number, "all is fetched");
        }
    }

    /// Resolves and connects. What cannot be connected to fails with everything that is asked of it.
    fn open(&mut self, origin: usize) {
        let now = self.reactor.now();
        if self.origins[origin].addresses.is_empty() {
            match resolve(&self.origins[origin].url, self.config) {
                Ok(addresses) => self.origins[origin].addresses = addresses,
                Err(why) => return self.fail_queue(origin, &why),
            }
            let Origin { url, addresses, .. } = &self.origins[origin];
            let host = url.host_str().unwrap_or_default();
            let done = self.reactor.now();
            self.observer.event(done, &Event::Resolved { host, addresses }, &self.exchanges);
            self.origins[origin].dns = Some((now, done));
        }
        let Origin { url, addresses, dns, .. } = &mut self.origins[origin];
        // Later connections need no look-up.
        let phases = Phases { dns: dns.take(), begun: self.reactor.now(), ..Phases::default() };
        let number = self.opened;
        self.opened += 1;
        let connector = self.connector.clone().filter(|_| url.scheme() == "https");
        let name = url.host_str().unwrap_or_default();
        let mut connection = Connection::new(number, origin, name, connector, addresses, phases);
        let step = connection.connect(&self.reactor);
        self.connections.insert(number, connection);
        self.origins[origin].connection = Some(number);
        self.stepped(number, step);
    }

    fn fail_queue(&mut self, origin: usize, why: &str) {
        while let Some(exchange) = self.origins[origin].queue.pop_front() {
            self.finish(exchange, Outcome::Failed(why.to_owned()));
        }
    }

    /// Lets a connection do all that it can.
    fn drive(&mut self, number: usize) {
        loop {
            let Some(connection) = self.connections.get_mut(&number) else { return };
            let (now, observer, exchanges) = (self.reactor.now(), &mut *self.observer, &self.exchanges);
            let mut watch = |direction, bytes: &[u8]| {
                observer.event(now, &Event::Wire { connection: number, direction, bytes }, exchanges);
            };
            let step = connection.step(&self.reactor, self.config, &mut watch);
            let waits = matches!(step, Step::Wait);
            let told = self.listen(number);
            self.stepped(number, step);
            let sent = self.dispatch(number);
            if waits && !told && !sent {
                return self.release(number);
            }
        }
    }

    /// What a step of a connection means for everybody else.
    fn stepped(&mut self, number: usize, mut step: Step) {
        loop {
            let now = self.reactor.now();
            let tell = |event: &Event<'_>, s: &mut Self| s.observer.event(now, event, &s.exchanges);
            match step {
                Step::Wait | Step::Again => return,
                Step::Connecting(address) => {
                    return tell(&Event::Connecting { connection: number, address }, self);
                }
                Step::Connected => return tell(&Event::Connected { connection: number }, self),
                Step::Secured(negotiated, false_start) => {
                    let event = Event::Secured { connection: number, negotiated: &negotiated, false_start };
                    return tell(&event, self);
                }
                Step::Speaking(protocol) => {
                    return tell(&Event::Speaking { connection: number, protocol }, self);
                }
                Step::NotConnected(address, why) => {
                    tell(&Event::NotConnected { connection: number, address, why: &why }, self);
                    let Some(connection) = self.connections.get_mut(&number) else { return };
                    step = match connection.connect(&self.reactor) {
                        Step::Closed(_) => Step::Closed(format!("{address}: {why}")),
                        step => step,
                    };
                }
                Step::Closed(why) => return self.closed(number, &why),
            }
        }
    }

    /// Hands requests to a connection as long as it takes them. Gives whether any was.
    fn dispatch(&mut self, number: usize) -> bool {
        let mut sent = false;
        while let Some(connection) = self.connections.get_mut(&number)
            && self.origins[connection.origin].connection == Some(number)
        {
            let (origin, phases, asked) = (connection.origin, connection.phases, connection.asked);
            let Some(engine) = connection.engine().filter(|e| e.takes_requests()) else { break };
            let Some(exchange) = self.origins[origin].queue.pop_front() else {
                if self.config.goaway && asked > 0 {
                    engine.goaway();
                    self.origins[origin].connection = None;
                    sent = true;
                }
                break;
            };
            if let Some(push) = find_push(&self.exchanges, exchange) {
                self.exchanges[exchange].answered_by = Some(push);
                self.answer_from(push);
                continue;
            }
            let upgrade = self.config.upgrade && asked == 0;
            let waiting = engine.is_waiting();
            let stream = match engine.send(exchange, &self.exchanges[exchange].request, upgrade) {
                Ok(stream) => stream,
                Err(why) => {
                    self.finish(exchange, Outcome::Failed(why));
                    continue;
                }
            };
            let now = self.reactor.now();
            connection.asked += 1;
            if !waiting {
                connection.heard = now;
            }
            sent = true;
            let entry = &mut self.exchanges[exchange];
            (entry.connection, entry.stream) = (Some(number), stream);
            entry.attempts += 1;
            entry.timing.sent = Some(now);
            if entry.timing.queued <= phases.begun {
                let connected = phases.connected.unwrap_or(now);
                entry.timing.dns = phases.dns;
                entry.timing.connect = Some((phases.begun, connected));
                entry.timing.tls = phases.secured.map(|done| (connected, done));
            }
            self.observer.event(now, &Event::Sent { exchange }, &self.exchanges);
        }
        sent
    }

    /// Takes what an engine tells. Gives whether it told anything.
    fn listen(&mut self, number: usize) -> bool {
        let mut told = false;
        while let Some(connection) = self.connections.get_mut(&number)
            && let Some(happening) = connection.engine().and_then(Engine::poll)
        {
            told = true;
            self.happened(number, happening);
        }
        told
    }

    fn happened(&mut self, number: usize, happening: Happening) {
        let now = self.reactor.now();
        match happening {
            Happening::Head { exchange, head, wire_len } => {
                let entry = &mut self.exchanges[exchange];
                entry.timing.head = Some(now);
                entry.head_len = wire_len;
                entry.response = Some(head);
                self.observer.event(now, &Event::Head { exchange }, &self.exchanges);
            }
            Happening::Data { exchange, bytes } => self.data(number, exchange, &bytes),
            Happening::Complete { exchange } => {
                if let Some(connection) = self.connections.get_mut(&number) {
                    connection.answered += 1;
                }
                self.finish(exchange, Outcome::Complete);
            }
            Happening::Failed { exchange, why, again } => self.failed(exchange, &why, again),
            Happening::Pushed { .. } => self.pushed(number, happening),
            Happening::GoAway { unprocessed } => {
                let event = Event::GoAway { connection: number, unprocessed };
                self.observer.event(now, &event, &self.exchanges);
            }
            Happening::Upgraded { exchange, rest } => self.upgraded(number, exchange, rest),
        }
    }

    fn data(&mut self, number: usize, exchange: usize, bytes: &Bytes) {
        let entry = &mut self.exchanges[exchange];
        if entry.outcome != Outcome::Pending {
            return;
        }
        entry.body_len += bytes.len() as u64;
        let enough = self.config.cancel_after.is_some_and(|max| entry.body_len >= max);
        self.observer.event(self.reactor.now(), &Event::Data { exchange, bytes }, &self.exchanges);
        if enough {
            let engine = self.connections.get_mut(&number).and_then(Connection::engine);
            let alone = engine.is_some_and(|e| e.cancel(exchange));
            self.finish(exchange, Outcome::Cancelled);
            if !alone {
                self.closed(number, "a response was cancelled");
            }
        }
    }

    /// A push of the connection's own origin is taken; others are refused, as Chrome and Firefox do.
    fn pushed(&mut self, number: usize, happening: Happening) {
        let Happening::Pushed { stream, beside, head, response, fin, priority } = happening else { return };
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let origin = &self.origins[connection.origin].url;
        let url = url_of(&head).filter(|url| self.config.push && url.origin() == origin.origin());
        let Some(engine) = connection.engine() else { return };
        let (Some(url), Some(beside)) = (url, beside) else { return engine.refuse(stream) };
        let exchange = self.exchanges.len();
        if !fin {
            engine.adopt(stream, exchange);
        }
        let now = self.reactor.now();
        let head_there = response.is_some();
        self.exchanges.push(Exchange {
            request: Request { priority, ..Request::get(url) },
            pushed_with: Some(beside),
            answered_by: None,
            connection: Some(number),
            stream: Some(stream.as_u32()),
            response,
            head_len: 0,
            body_len: 0,
            attempts: 0,
            timing: Timing { queued: now, head: head_there.then_some(now), ..Timing::default() },
            outcome: Outcome::Pending,
        });
        self.observer.event(now, &Event::Pushed { exchange }, &self.exchanges);
        if head_there {
            self.observer.event(now, &Event::Head { exchange }, &self.exchanges);
        }
        if fin {
            self.finish(exchange, Outcome::Complete);
        }
    }

    /// The server speaks SPDY from here on. What asked for it is asked again, as a stream: the 101 was no answer.
    fn upgraded(&mut self, number: usize, exchange: usize, rest: Vec<Bytes>) {
        let now = self.reactor.now();
        let Some(connection) = self.connections.get_mut(&number) else { return };
        self.exchanges[exchange].attempts -= 1;
        self.origins[connection.origin].queue.push_front(exchange);
        let version = spdy::Version::V3_1;
        let event = Event::Speaking { connection: number, protocol: Protocol::Spdy(version) };
        self.observer.event(now, &event, &self.exchanges);
        // They were shown with the 101, as a part of HTTP/1.1; now it is known what they are.
        for bytes in &rest {
            let event = Event::Wire { connection: number, direction: Direction::Down, bytes };
            self.observer.event(now, &event, &self.exchanges);
        }
        let switched =
            connection.switch(Engine::spdy(self.config.session(version), self.config.concurrent), now, rest);
        if let Err(why) = switched {
            self.closed(number, &why);
        }
    }

    /// A request has no response; it is sent again if that can do no harm, and not for ever.
    fn failed(&mut self, exchange: usize, why: &str, again: bool) {
        let entry = &mut self.exchanges[exchange];
        if entry.outcome != Outcome::Pending {
            return;
        }
        if !again || entry.pushed_with.is_some() || entry.attempts >= self.config.attempts_max {
            return self.finish(exchange, Outcome::Failed(why.to_owned()));
        }
        entry.response = None;
        let origin = entry.connection.and_then(|n| self.connections.get(&n)).map(|c| c.origin);
        let url = &entry.request.url;
        let origin = origin.or_else(|| self.origins.iter().position(|o| o.url.origin() == url.origin()));
        let origin = origin.expect("every request has its origin");
        let urgent =
            |e: &usize| self.exchanges[*e].request.priority <= self.exchanges[exchange].request.priority;
        let place = self.origins[origin].queue.iter().take_while(|e| urgent(e)).count();
        self.origins[origin].queue.insert(place, exchange);
        self.observer.event(self.reactor.now(), &Event::Again { exchange, why }, &self.exchanges);
    }

    /// A connection is over; what was asked of it fails, or is asked elsewhere.
    fn closed(&mut self, number: usize, why: &str) {
        let Some(mut connection) = self.connections.remove(&number) else { return };
        let outstanding = connection.engine().map_or_else(Vec::new, |e| e.outstanding());
        let (origin, asked, answered) = (connection.origin, connection.asked, connection.answered);
        connection.close();
        let event = Event::Closed { connection: number, why };
        self.observer.event(self.reactor.now(), &event, &self.exchanges);
        if self.origins[origin].connection == Some(number) {
            self.origins[origin].connection = None;
        }
        for exchange in outstanding {
            let entry = &self.exchanges[exchange];
            // RFC 9110 §9.2.2: a server may close a connection that it takes for idle while a request is on its way.
            let idempotent =
                matches!(&*entry.request.method, b"GET" | b"HEAD" | b"PUT" | b"DELETE" | b"OPTIONS");
            let again = idempotent && answered > 0 && entry.response.is_none();
            self.failed(exchange, why, again);
        }
        if asked == 0 {
            self.fail_queue(origin, why);
        }
    }

    /// Leaves a connection that takes no more requests, and closes it when it has given all responses.
    fn release(&mut self, number: usize) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let origin = connection.origin;
        let Some(engine) = connection.engine().filter(|e| e.is_finished()) else { return };
        let waiting = engine.is_waiting();
        if self.origins[origin].connection == Some(number) {
            self.origins[origin].connection = None;
        }
        if !waiting {
            self.closed(number, "nothing more is asked of it");
        }
    }

    fn finish(&mut self, exchange: usize, outcome: Outcome) {
        let entry = &mut self.exchanges[exchange];
        if entry.outcome != Outcome::Pending {
            return;
        }
        entry.timing.complete = Some(self.reactor.now());
        entry.outcome = outcome;
        self.observer.event(self.reactor.now(), &Event::Done { exchange }, &self.exchanges);
        self.answer_from(exchange);
    }

    /// A push that is complete completes the requests that wait for it; one that failed lets them be sent after all.
    fn answer_from(&mut self, push: usize) {
        let outcome = self.exchanges[push].outcome.clone();
        if self.exchanges[push].pushed_with.is_none() || outcome == Outcome::Pending {
            return;
        }
        for waiting in 0..self.exchanges.len() {
            if self.exchanges[waiting].answered_by != Some(push)
                || self.exchanges[waiting].outcome != Outcome::Pending
            {
                continue;
            }
            if outcome == Outcome::Complete {
                let Exchange { response, body_len, head_len, connection, stream, timing, .. } =
                    self.exchanges[push].clone();
                let entry = &mut self.exchanges[waiting];
                *entry = Exchange { response, body_len, head_len, connection, stream, ..entry.clone() };
                entry.timing.head = timing.head;
                self.finish(waiting, Outcome::Complete);
            } else {
                self.exchanges[waiting].answered_by = None;
                self.failed(waiting, "the push that was to answer it failed", true);
            }
        }
    }
}

/// The push that answers a request: a GET of the same URL without conditions.
fn find_push(exchanges: &[Exchange], exchange: usize) -> Option<usize> {
    let wanted = &exchanges[exchange].request;
    let answers = |e: &Exchange| {
        e.pushed_with.is_some()
            && matches!(e.outcome, Outcome::Pending | Outcome::Complete)
            && e.request.url == wanted.url
    };
    if &*wanted.method != b"GET" {
        return None;
    }
    exchanges.iter().position(answers)
}

fn url_of(head: &RequestHead) -> Option<Url> {
    let text = [&head.scheme[..], b"://", &head.authority, &head.path].concat();
    Url::parse(std::str::from_utf8(&text).ok()?).ok()
}

fn resolve(url: &Url, config: &Config) -> Result<Vec<SocketAddr>, String> {
    let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(80));
    let given = |(name, of, _): &&(String, Option<u16>, _)| {
        name.eq_ignore_ascii_case(host) && of.is_none_or(|of| of == port)
    };
    let given: Vec<_> =
        config.resolve.iter().filter(given).map(|(_, _, ip)| SocketAddr::new(*ip, port)).collect();
    if !given.is_empty() {
        return Ok(given);
    }
    let name = host.trim_matches(['[', ']']);
    match (name, port).to_socket_addrs() {
        Ok(found) => Ok(found.collect()),
        Err(e) => Err(format!("{host} cannot be resolved: {e}")),
    }
}
