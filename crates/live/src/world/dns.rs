//! Names of a page: a name server at the far end, and a stub resolver (RFC 1035) in the browser.
//!
//! Where hosts have addresses of both families the resolver asks for both at once, IPv6 first (RFC 8305 section 3), and tells of each
//! family as its answer comes: what a client makes of it is the client's business.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::{Duration, Instant};
use client::Family;
use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use mio::net::UdpSocket;

use crate::{Reactor, Waker};

/// Bytes of a message at most without extensions (RFC 1035 §4.2.1).
const MESSAGE_MAX: usize = 512;

/// How long the resolver waits for an answer before it asks again (RES_TIMEOUT of glibc is 5 s; browsers' resolvers ask after 1 s).
const PATIENCE: Duration = Duration::from_secs(1);

/// How often it asks.
const TRIES: u32 = 4;

/// Seconds for which an answer holds.
const TTL: u32 = 300;

/// A host's addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Addresses {
    pub v4: Ipv4Addr,
    pub v6: Option<Ipv6Addr>,
}

impl Addresses {
    /// All of them, as the client prefers them (RFC 6724).
    pub fn all(self) -> impl Iterator<Item = IpAddr> {
        self.v6.map(IpAddr::from).into_iter().chain([self.v4.into()])
    }
}

/// Addresses by name.
pub(super) type Zone = BTreeMap<String, Addresses>;

/// The addresses under which the zone has a name, however it is written.
fn look_up(zone: &Zone, name: &Name) -> Option<Addresses> {
    zone.get(name.to_lowercase().to_utf8().trim_end_matches('.')).copied()
}

/// The name server.
pub(super) struct Server {
    reactor: Reactor,
    socket: UdpSocket,
    zone: Zone,
    waiting: Vec<(Instant, SocketAddr, Vec<u8>)>,
    shared: Arc<Shared>,
}

/// What other threads have to say.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// What it takes to answer, nanoseconds.
    think: AtomicU64,
}

/// Tells a [`Server`] something from another thread.
pub(super) struct Handle(Arc<Shared>, Waker);

impl Handle {
    /// Ends it.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::SeqCst);
        let _ = self.1.wake();
    }

    /// What it takes to answer questions that come from now on.
    pub fn set_think(&self, think: Duration) {
        self.0.think.store(think.as_nanos(), Ordering::SeqCst);
    }
}

impl Server {
    pub fn bind(address: Ipv4Addr, zone: Zone, think: Duration) -> io::Result<(Self, Handle)> {
        let reactor = Reactor::new()?;
        let mut socket = UdpSocket::bind(SocketAddrV4::new(address, 53).into())?;
        reactor.register(&mut socket, 0)?;
        let shared = Arc::<Shared>::default();
        let handle = Handle(shared.clone(), reactor.waker());
        handle.set_think(think);
        Ok((Self { reactor, socket, zone, waiting: Vec::new(), shared }, handle))
    }

    /// Answers until it is stopped.
    pub fn run(mut self) -> io::Result<()> {
        while !self.shared.stop.load(Ordering::SeqCst) {
            self.reactor.wait(self.waiting.first().map(|(at, ..)| *at))?;
            let now = self.reactor.now();
            let think = Duration::from_nanos(self.shared.think.load(Ordering::SeqCst));
            let mut buffer = [0; MESSAGE_MAX];
            while let Ok((len, from)) = self.socket.recv_from(&mut buffer) {
                if let Some(answer) = answer(&self.zone, &buffer[..len]) {
                    self.waiting.push((now + think, from, answer));
                }
            }
            self.waiting.sort_by_key(|(at, ..)| *at); // stable: those of one moment in their order
            let due = self.waiting.iter().take_while(|(at, ..)| *at <= now).count();
            for (_, to, answer) in self.waiting.drain(..due) {
                // A datagram that cannot be sent is one that was lost.
                let _ = self.socket.send_to(&answer, to);
            }
        }
        Ok(())
    }
}

/// The answer to a query; none to what is no query.
fn answer(zone: &Zone, query: &[u8]) -> Option<Vec<u8>> {
    let query = Message::from_vec(query).ok().filter(|m| m.metadata.message_type == MessageType::Query)?;
    let mut answer = Message::response(query.metadata.id, query.metadata.op_code);
    answer.metadata.authoritative = true;
    answer.metadata.recursion_desired = query.metadata.recursion_desired;
    for question in &query.queries {
        answer.add_query(question.clone());
        let Some(addresses) = look_up(zone, question.name()) else {
            answer.metadata.response_code = ResponseCode::NXDomain;
            continue;
        };
        let data = match question.query_type() {
            RecordType::A => Some(RData::A(addresses.v4.into())),
            RecordType::AAAA => addresses.v6.map(|v6| RData::AAAA(v6.into())),
            _ => None,
        };
        // A name that has none of the family is a name all the same (RFC 2308 section 2.2).
        if let Some(data) = data {
            answer.add_answer(Record::from_rdata(question.name().clone(), TTL, data));
        }
    }
    answer.to_vec().ok()
}

/// A question on its way.
struct Question {
    host: u32,
    family: Family,
    query: Vec<u8>,
    asked: u32,
    again: Instant,
}

/// A look-up that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Ended {
    pub host: u32,
    /// What was asked for.
    pub family: Family,
    /// What there is of it.
    pub addresses: Vec<IpAddr>,
}

/// The resolver.
pub(super) struct Resolver {
    socket: UdpSocket,
    /// By the message's number, which is the order of asking.
    questions: BTreeMap<u16, Question>,
    next: u16,
}

impl Resolver {
    /// A resolver that asks `server`; it reports to the reactor as `token`. To be made in the near network.
    pub fn new(reactor: &Reactor, token: usize, server: Ipv4Addr) -> io::Result<Self> {
        let mut socket = UdpSocket::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0).into())?;
        socket.connect(SocketAddrV4::new(server, 53).into())?;
        reactor.register(&mut socket, token)?;
        Ok(Self { socket, questions: BTreeMap::new(), next: 1 })
    }

    /// Asks for the addresses of `name` of one family; says whether that is a name at all.
    pub fn ask(&mut self, now: Instant, host: u32, name: &str, family: Family) -> bool {
        let Ok(name) = Name::from_ascii(format!("{name}.")) else { return false };
        let mut message = Message::new(self.next, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        let kind = match family {
            Family::V4 => RecordType::A,
            Family::V6 => RecordType::AAAA,
        };
        message.add_query(Query::query(name, kind));
        let Ok(query) = message.to_vec() else { return false };
        let question = Question { host, family, query, asked: 1, again: now + PATIENCE };
        // What cannot be sent is as good as lost.
        let _ = self.socket.send(&question.query);
        self.questions.insert(self.next, question);
        self.next = self.next.wrapping_add(1);
        true
    }

    /// The machine is in another network: questions that are open are asked there, each when it would have been asked again, and as if it
    /// never had been.
    pub fn change_network(&mut self, reactor: &Reactor, token: usize, server: Ipv4Addr) -> io::Result<()> {
        let next = Self::new(reactor, token, server)?;
        self.socket = next.socket;
        self.questions.values_mut().for_each(|question| question.asked = 0);
        Ok(())
    }

    /// When a question is to be asked again.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.questions.values().map(|q| q.again).min()
    }

    /// Takes the answers that have come, and asks again what was not answered in time. Gives the look-ups that have ended.
    pub fn go_on(&mut self, now: Instant) -> Vec<Ended> {
        let mut ended = Vec::new();
        let mut buffer = [0; MESSAGE_MAX];
        while let Ok(len) = self.socket.recv(&mut buffer) {
            let Ok(message) = Message::from_vec(&buffer[..len]) else { continue };
            let Some(question) = self.questions.remove(&message.metadata.id) else { continue };
            let of_family = |record: &Record| match &record.data {
                RData::A(address) => Some(IpAddr::from(address.0)),
                RData::AAAA(address) => Some(address.0.into()),
                _ => None,
            };
            let mut addresses: Vec<_> = message.answers.iter().filter_map(of_family).collect();
            addresses.retain(|address| Family::of(*address) == question.family);
            ended.push(Ended { host: question.host, family: question.family, addresses });
        }
        let Self { questions, socket, .. } = self;
        questions.retain(|_, question| {
            if question.again > now {
                return true;
            }
            if question.asked == TRIES {
                ended.push(Ended { host: question.host, family: question.family, addresses: Vec::new() });
                return false;
            }
            question.asked += 1;
            question.again = now + PATIENCE;
            let _ = socket.send(&question.query);
            true
        });
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone() -> Zone {
        let addresses = |n, v6| Addresses { v4: Ipv4Addr::new(100, 64, 8, n), v6 };
        let both = addresses(1, Some("2001:db8::1".parse().unwrap()));
        [("a.example".to_owned(), both), ("old.example".to_owned(), addresses(2, None))].into()
    }

    #[test]
    fn names_get_addresses_over_a_socket_however_they_are_written() {
        let mut reactor = Reactor::new().unwrap();
        // Any port, as 53 is not ours here.
        let mut socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = socket.local_addr().unwrap();
        let server = Reactor::new().unwrap();
        server.register(&mut socket, 0).unwrap();
        let shared = Arc::<Shared>::default();
        let handle = Handle(shared.clone(), server.waker());
        let server = Server { reactor: server, socket, zone: zone(), waiting: Vec::new(), shared };
        let thread = std::thread::spawn(|| server.run());
        let mut ours = UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        ours.connect(address).unwrap();
        reactor.register(&mut ours, 1).unwrap();
        let mut resolver = Resolver { socket: ours, questions: BTreeMap::new(), next: 1 };
        let mut got = BTreeMap::new();
        let names = ["A.Example", "b.example", "old.example"];
        for (host, name) in (0..).zip(names) {
            for family in [Family::V6, Family::V4] {
                assert!(resolver.ask(reactor.now(), host, name, family));
            }
        }
        assert!(!resolver.ask(reactor.now(), 3, "no name at all", Family::V4));
        while got.len() < 6 {
            reactor.wait(resolver.poll_timeout()).unwrap();
            let ended = resolver.go_on(reactor.now()).into_iter();
            got.extend(ended.map(|e| ((e.host, e.family), e.addresses)));
        }
        let address = |text: &str| vec![text.parse::<IpAddr>().unwrap()];
        assert_eq!(got[&(0, Family::V6)], address("2001:db8::1"));
        assert_eq!(got[&(0, Family::V4)], address("100.64.8.1"));
        assert_eq!((&got[&(1, Family::V6)], &got[&(1, Family::V4)]), (&vec![], &vec![]));
        assert_eq!((&got[&(2, Family::V6)], &got[&(2, Family::V4)]), (&vec![], &address("100.64.8.2")));
        handle.stop();
        thread.join().unwrap().unwrap();
    }

    #[test]
    fn what_is_no_query_gets_no_answer() {
        assert_eq!(answer(&zone(), b""), None);
        assert_eq!(answer(&zone(), &[0; 11]), None);
        let response = Message::response(7, OpCode::Query).to_vec().unwrap();
        assert_eq!(answer(&zone(), &response), None);
    }

    /// RFC 2308 section 2.2: one says that there is none of that type, the other that there is no such name.
    #[test]
    fn a_name_without_an_address_of_a_family_is_not_a_name_that_is_not_there() {
        let code = |name: &str| {
            let mut query = Message::new(1, MessageType::Query, OpCode::Query);
            query.add_query(Query::query(Name::from_ascii(name).unwrap(), RecordType::AAAA));
            let answer = answer(&zone(), &query.to_vec().unwrap()).unwrap();
            Message::from_vec(&answer).unwrap().metadata.response_code
        };
        assert_eq!(code("old.example."), ResponseCode::NoError);
        assert_eq!(code("b.example."), ResponseCode::NXDomain);
    }

    /// A resolver and the socket that it asks, on which nobody answers.
    fn unanswered() -> (Reactor, Resolver, std::net::UdpSocket) {
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        socket.connect(silent.local_addr().unwrap()).unwrap();
        (Reactor::new().unwrap(), Resolver { socket, questions: BTreeMap::new(), next: 1 }, silent)
    }

    /// As in the virtual world, whose look-ups begin anew with the network but keep their hour.
    #[test]
    fn an_open_question_is_asked_as_often_again_on_another_network() {
        let (reactor, mut resolver, _silent) = unanswered();
        let mut now = reactor.now();
        assert!(resolver.ask(now, 5, "a.example", Family::V6));
        let due = resolver.poll_timeout();
        resolver.change_network(&reactor, 1, Ipv4Addr::LOCALHOST).unwrap();
        assert_eq!(resolver.poll_timeout(), due);
        for _ in 0..TRIES {
            now += PATIENCE;
            assert_eq!(resolver.go_on(now), []);
        }
        let nothing = Ended { host: 5, family: Family::V6, addresses: Vec::new() };
        assert_eq!(resolver.go_on(now + PATIENCE), [nothing]);
    }

    #[test]
    fn a_question_that_nobody_answers_is_given_up() {
        let (reactor, mut resolver, _silent) = unanswered();
        let mut now = reactor.now();
        assert!(resolver.ask(now, 5, "a.example", Family::V6));
        for _ in 1..TRIES {
            now += PATIENCE;
            assert_eq!(resolver.go_on(now), []);
        }
        let nothing = Ended { host: 5, family: Family::V6, addresses: Vec::new() };
        assert_eq!(resolver.go_on(now + PATIENCE), [nothing]);
        assert_eq!(resolver.poll_timeout(), None);
    }
}
