//! A network whose every move is read from a script, and kind once the script has ended. It looks at what the client
//! tells its page, and objects.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use base::{BodyRange, Chunk, Duration, Fields, Instant, RequestHead, ResponseHead};
use bytes::Bytes;
use client::{Action, Ask, Client, ConnectionId, Event, Family, LoadClass, RequestId};

/// More steps than any course takes.
const STEPS_MAX: usize = 20_000;

/// Bytes of the body that answers a request.
fn body_len(id: RequestId) -> u64 {
    [0, 10, 5_000, 400_000][id as usize % 4]
}

enum Peer {
    Http1(Box<http1::server::Connection>),
    Spdy(Box<spdy::Session>),
}

#[derive(PartialEq)]
enum Phase {
    Connecting,
    /// The client has not yet said that the TLS handshake may begin.
    Held,
    Securing,
    Open,
}

struct Link {
    host: u32,
    tls: bool,
    phase: Phase,
    peer: Peer,
    /// On their way to the client.
    down: VecDeque<Chunk>,
    /// What was delivered last ended inside a message.
    inside: bool,
}

/// What the page has seen of a request.
#[derive(Default)]
struct Seen {
    head: bool,
    bytes: u64,
    over: bool,
}

pub struct Net {
    pub client: Client,
    now: Instant,
    course: VecDeque<u8>,
    steps: usize,
    connections_max: usize,
    /// Look-ups under way; of some, only the answer for IPv6 is still to come.
    names: VecDeque<(u32, bool)>,
    links: BTreeMap<ConnectionId, Link>,
    /// Ended by the server; the client may still close its own half.
    ended: BTreeSet<ConnectionId>,
    seen: Vec<Seen>,
    /// What happened, for whoever has to find out why.
    log: Vec<String>,
}

impl Net {
    pub fn new(client: Client, course: Vec<u8>, connections_max: usize) -> Self {
        Self {
            client,
            now: Instant::ZERO,
            course: course.into(),
            steps: 0,
            connections_max,
            names: VecDeque::new(),
            links: BTreeMap::new(),
            ended: BTreeSet::new(),
            seen: Vec::new(),
            log: Vec::new(),
        }
    }

    pub fn fetch(&mut self, id: RequestId, host: u32, priority: u8) {
        let scheme = "http";
        let head = RequestHead {
            method: "GET".into(),
            scheme: scheme.into(),
            authority: format!("host{host}.example").into(),
            path: format!("/{id}{}", ["", ".png", ".js"][priority as usize % 3]).into(),
            fields: Fields::new(),
        };
        self.seen.push(Seen::default());
        let ask = Ask { load: id % 3, blocks: id % 7 == 3, ..Ask::new(host, head, priority) };
        self.client.set_load(
            self.now,
            1,
            if id % 4 < 2 { LoadClass::Background } else { LoadClass::Foreground },
        );
        self.client.ask(self.now, id, ask);
        self.drain();
    }

    pub fn navigate(&mut self, host: u32) {
        self.client.navigate(self.now, host);
        self.drain();
    }

    pub fn run_until(&mut self, step: usize) {
        while self.steps < step && !self.course.is_empty() && self.step() {}
    }

    pub fn run_to_rest(&mut self) {
        while self.seen.iter().any(|s| !s.over) {
            assert!(self.steps < STEPS_MAX, "it goes on for ever\n{}", self.tail());
            assert!(self.step(), "nothing is left to happen, and requests wait\n{}", self.tail());
        }
    }

    fn tail(&self) -> String {
        let from = self.log.len().saturating_sub(80);
        let open: Vec<_> = self.seen.iter().enumerate().filter(|(_, s)| !s.over).map(|(i, _)| i).collect();
        let links: Vec<_> = self.links.iter().map(|(id, l)| (id, l.down.len())).collect();
        let log = self.log[from..].join("\n");
        format!(
            "{log}\nwaiting: {open:?}; chunks to come on each connection: {links:?}; steps {}",
            self.steps
        )
    }

    fn note(&mut self, what: String) {
        self.log.push(format!("{:?} {what}", self.now));
    }

    /// The next byte of the script; `kind` once it has ended.
    fn next(&mut self, kind: u8) -> u8 {
        self.course.pop_front().unwrap_or(kind)
    }

    /// Lets one thing happen; false if nothing can.
    fn step(&mut self) -> bool {
        self.steps += 1;
        // What lies idle may be touched by a script, which may end it, and is left alone by a kind network.
        let scripted = !self.course.is_empty();
        let waits = |l: &Link| !matches!(l.phase, Phase::Open | Phase::Held) || !l.down.is_empty();
        let moves = |l: &Link| scripted || waits(l);
        let links: Vec<ConnectionId> =
            self.links.iter().filter(|(_, l)| moves(l)).map(|(id, _)| *id).collect();
        let (pick, how) = (usize::from(self.next(0)), self.next(255));
        self.now += Duration::from_millis(if how < 32 { u64::from(how) * 40 } else { 1 });
        let choices = self.names.len() + links.len();
        if choices == 0 {
            let Some(due) = self.client.poll_timeout() else { return false };
            self.now = self.now.max(due);
        } else if scripted && how == 201 {
            self.note("the network changes".into());
            self.client.handle_network_change(self.now);
        } else if pick % choices < self.names.len() {
            let (host, late) = self.names.remove(pick % choices).expect("one of them");
            let found = how % 16 != 0;
            self.note(format!("resolved {host} {found} {late}"));
            let v6: &[IpAddr] = if found { &["2001:db8::9".parse().unwrap()] } else { &[] };
            if late {
                self.client.handle_addresses(self.now, host, Family::V6, v6);
            } else if how % 16 < 3 {
                let v4: &[IpAddr] = if found { &["192.0.2.9".parse().unwrap()] } else { &[] };
                self.client.handle_addresses(self.now, host, Family::V4, v4);
                self.names.push_back((host, true));
            } else {
                self.client.handle_resolved(self.now, host, found);
            }
        } else {
            let id = links[pick % choices - self.names.len()];
            self.move_link(id, how);
        }
        if self.client.poll_timeout().is_some_and(|due| due <= self.now) {
            self.note("timeout".into());
            self.client.handle_timeout(self.now);
            let next = self.client.poll_timeout();
            assert!(next.is_none_or(|t| t > self.now), "a deadline that has passed stays\n{}", self.tail());
        }
        self.drain();
        true
    }

    fn move_link(&mut self, id: ConnectionId, how: u8) {
        let now = self.now;
        let link = self.links.get_mut(&id).expect("one of them");
        match how % 16 {
            0 => {
                self.note(format!("failed {id}"));
                self.links.remove(&id);
                return self.client.handle_failed(now, id, "reset");
            }
            1 if link.phase == Phase::Open => {
                self.note(format!("eof {id}"));
                self.links.remove(&id);
                self.ended.insert(id);
                return self.client.handle_eof(now, id);
            }
            // Not inside a message, where it might be taken for a part of it.
            2 if link.phase == Phase::Open && !link.inside => {
                // To SPDY, a frame of a version that there never was.
                let garbage: &[u8] = match link.peer {
                    Peer::Http1(_) => b"\xffgarbage\r\n\r\n",
                    Peer::Spdy(_) => &[0x80, 9, 0, 1, 0, 0, 0, 0],
                };
                let garbage = Bytes::from_static(garbage);
                self.note(format!("garbage {id}"));
                return self.client.handle_input(now, id, Chunk::Bytes(garbage));
            }
            3 if link.phase == Phase::Open && matches!(link.peer, Peer::Spdy(_)) => {
                let Peer::Spdy(session) = &mut link.peer else { unreachable!("just seen") };
                session.goaway();
                self.note(format!("goaway {id}"));
                return self.exchange(id);
            }
            _ => {}
        }
        match link.phase {
            Phase::Connecting => {
                link.phase = if link.tls { Phase::Held } else { Phase::Open };
                self.note(format!("connected {id}"));
                self.client.handle_connected(now, id);
            }
            Phase::Held => {}
            Phase::Securing => {
                link.phase = Phase::Open;
                self.note(format!("secured {id}"));
                self.client.handle_secured(now, id);
                self.client.handle_session(now, id);
            }
            Phase::Open => {
                let Some(mut chunk) = link.down.pop_front() else { return };
                if how % 16 == 4 && chunk.len() > 1 {
                    let first = chunk.split_to(chunk.len() / 2);
                    link.down.push_front(chunk);
                    chunk = first;
                    link.inside = true;
                } else {
                    link.inside = matches!(link.down.front(), Some(Chunk::Body(_)));
                }
                self.note(format!("bytes to {id}: {}", chunk.len()));
                self.client.handle_input(now, id, chunk);
            }
        }
    }

    /// Does what the client wants, and hears what it tells the page.
    fn drain(&mut self) {
        loop {
            let mut quiet = true;
            while let Some(event) = self.client.poll_event() {
                self.see(event);
                quiet = false;
            }
            while let Some(action) = self.client.poll_action() {
                self.act(action);
                quiet = false;
            }
            while let Some(secure) = self.client.poll_secure() {
                if let Some(link) = self.links.get_mut(&secure.connection) {
                    assert!(link.phase == Phase::Held, "secured before it is connected, or twice");
                    link.phase = Phase::Securing;
                }
                quiet = false;
            }
            while let Some(id) = self.client.poll_dirty() {
                self.exchange(id);
                quiet = false;
            }
            if quiet {
                return;
            }
        }
    }

    fn act(&mut self, action: Action) {
        self.note(format!("{action:?}"));
        match action {
            Action::Resolve { host } => self.names.push_back((host, false)),
            Action::Connect { connection, host, .. } => {
                let peer = match self.client.transport(host).spdy_version() {
                    None => Peer::Http1(Box::new(http1::server::Connection::new())),
                    Some(version) => Peer::Spdy(Box::new(spdy::Session::server(spdy::Config {
                        max_concurrent_streams: 3,
                        ..spdy::Config::chrome_2013(version)
                    }))),
                };
                let tls = self.client.is_secured(host);
                let link =
                    Link { host, tls, phase: Phase::Connecting, peer, down: VecDeque::new(), inside: false };
                assert!(self.links.insert(connection, link).is_none(), "numbers are not used twice");
                assert!(self.links.len() <= self.connections_max, "more than the limit\n{}", self.tail());
            }
            Action::Close { connection } => {
                let known = self.links.remove(&connection).is_some() || self.ended.remove(&connection);
                assert!(known, "{connection} is not open\n{}", self.tail());
            }
        }
    }

    /// Carries what the client sends to the server, which answers at once; the answer has yet to travel.
    fn exchange(&mut self, id: ConnectionId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        while let Some(chunk) = self.client.poll_transmit(self.now, id, u64::MAX) {
            assert!(link.phase == Phase::Open, "it sends on {id}, which is not there yet");
            match &mut link.peer {
                Peer::Http1(http) => http.handle_input(self.now, chunk).expect("our own requests"),
                Peer::Spdy(session) => session.handle_input(self.now, chunk).expect("our own frames"),
            }
        }
        // Every other session serves no host but its own.
        let own = format!("host{}.example", link.host);
        answer(&mut link.peer, id.is_multiple_of(2).then_some(&*own));
        loop {
            let chunk = match &mut link.peer {
                Peer::Http1(http) => http.poll_transmit(u64::MAX),
                Peer::Spdy(session) => session.poll_transmit(self.now, 100_000),
            };
            let Some(chunk) = chunk else { return };
            link.down.push_back(chunk);
        }
    }

    fn see(&mut self, event: Event) {
        self.note(format!("{event:?}").chars().take(120).collect());
        let tail = self.tail();
        let (Event::Head { id, .. }
        | Event::Data { id, .. }
        | Event::Complete { id }
        | Event::Failed { id, .. }) = event;
        let seen = &mut self.seen[id as usize];
        assert!(!seen.over, "{id} was over before\n{tail}");
        match event {
            Event::Head { head, .. } => {
                assert!(!seen.head, "a second head for {id}\n{tail}");
                assert_eq!(head.status, 200);
                seen.head = true;
            }
            Event::Data { chunk, .. } => {
                let Chunk::Body(range) = chunk else { panic!("a body is a range\n{tail}") };
                assert!(seen.head && range.source == id, "the body of {} for {id}\n{tail}", range.source);
                assert_eq!(range.start, seen.bytes, "bytes of {id} twice or left out\n{tail}");
                seen.bytes += range.len;
            }
            Event::Complete { .. } => {
                assert!(seen.head && seen.bytes == body_len(id), "{id} is not whole\n{tail}");
                seen.over = true;
            }
            Event::Failed { .. } => seen.over = true,
        }
    }
}

/// Lets a server answer all that it was asked; 421 to what is not for the only host that it serves.
fn answer(peer: &mut Peer, only: Option<&str>) {
    let reply = |head: &RequestHead| {
        let path = std::str::from_utf8(&head.path[1..]).unwrap();
        let id: RequestId = path.split('.').next().unwrap().parse().unwrap();
        let body = Chunk::Body(BodyRange { source: id, start: 0, len: body_len(id) });
        let misdirected = only.is_some_and(|own| head.authority != own);
        let status = if misdirected { 421 } else { 200 };
        (ResponseHead { status, fields: Fields::new() }, body)
    };
    match peer {
        Peer::Http1(http) => {
            while let Some(event) = http.poll_event() {
                let http1::server::Event::Request { head, .. } = event else { continue };
                let (head, body) = reply(&head);
                http.respond(&head, Some(body.len())).unwrap();
                http.send_body(body).unwrap();
                http.finish().unwrap();
            }
        }
        Peer::Spdy(session) => {
            while let Some(event) = session.poll_event() {
                let spdy::Event::Request { id, head, .. } = event else { continue };
                let (head, body) = reply(&head);
                session.respond(id, &head, body.is_empty()).unwrap();
                if !body.is_empty() {
                    session.send(id, body, true).unwrap();
                }
            }
        }
    }
}
