//! Names of a page: a name server at the far end, and a stub resolver (RFC 1035) in the browser.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::{Duration, Instant};
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

/// Addresses by name.
pub(super) type Zone = BTreeMap<String, Ipv4Addr>;

/// The address under which the zone has a name, however it is written.
fn look_up(zone: &Zone, name: &Name) -> Option<Ipv4Addr> {
    zone.get(name.to_lowercase().to_utf8().trim_end_matches('.')).copied()
}

/// The name server.
pub(super) struct Server {
    reactor: Reactor,
    socket: UdpSocket,
    zone: Zone,
    /// What it takes to answer.
    think: Duration,
    waiting: Vec<(Instant, SocketAddr, Vec<u8>)>,
    stop: Arc<AtomicBool>,
}

/// Ends a [`Server`] from another thread.
pub(super) struct Stop(Arc<AtomicBool>, Waker);

impl Stop {
    pub fn stop(&self) {
        self.0.store(true, Ordering::SeqCst);
        let _ = self.1.wake();
    }
}

impl Server {
    pub fn bind(address: Ipv4Addr, zone: Zone, think: Duration) -> io::Result<(Self, Stop)> {
        let reactor = Reactor::new()?;
        let mut socket = UdpSocket::bind(SocketAddrV4::new(address, 53).into())?;
        reactor.register(&mut socket, 0)?;
        let stop = Arc::new(AtomicBool::new(false));
        let handle = Stop(stop.clone(), reactor.waker());
        Ok((Self { reactor, socket, zone, think, waiting: Vec::new(), stop }, handle))
    }

    /// Answers until it is stopped.
    pub fn run(mut self) -> io::Result<()> {
        while !self.stop.load(Ordering::SeqCst) {
            // All wait equally long, so that the oldest is the first.
            self.reactor.wait(self.waiting.first().map(|(at, ..)| *at))?;
            let now = self.reactor.now();
            let mut buffer = [0; MESSAGE_MAX];
            while let Ok((len, from)) = self.socket.recv_from(&mut buffer) {
                if let Some(answer) = answer(&self.zone, &buffer[..len]) {
                    self.waiting.push((now + self.think, from, answer));
                }
            }
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
        match look_up(zone, question.name()) {
            Some(address) if question.query_type() == RecordType::A => {
                let data = RData::A(address.into());
                answer.add_answer(Record::from_rdata(question.name().clone(), TTL, data));
            }
            Some(_) => {}
            None => answer.metadata.response_code = ResponseCode::NXDomain,
        }
    }
    answer.to_vec().ok()
}

/// A question on its way.
struct Question {
    host: u32,
    query: Vec<u8>,
    asked: u32,
    again: Instant,
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

    /// Asks for the address of `name`; says whether that is a name at all.
    pub fn ask(&mut self, now: Instant, host: u32, name: &str) -> bool {
        let Ok(name) = Name::from_ascii(format!("{name}.")) else { return false };
        let mut message = Message::new(self.next, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        message.add_query(Query::query(name, RecordType::A));
        let Ok(query) = message.to_vec() else { return false };
        let question = Question { host, query, asked: 1, again: now + PATIENCE };
        // What cannot be sent is as good as lost.
        let _ = self.socket.send(&question.query);
        self.questions.insert(self.next, question);
        self.next = self.next.wrapping_add(1);
        true
    }

    /// When a question is to be asked again.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.questions.values().map(|q| q.again).min()
    }

    /// Takes the answers that have come, and asks again what was not answered in time. Gives each host whose name's look-up has
    /// ended, with its address if it has one.
    pub fn go_on(&mut self, now: Instant) -> Vec<(u32, Option<Ipv4Addr>)> {
        let mut ended = Vec::new();
        let mut buffer = [0; MESSAGE_MAX];
        while let Ok(len) = self.socket.recv(&mut buffer) {
            let Ok(message) = Message::from_vec(&buffer[..len]) else { continue };
            let Some(question) = self.questions.remove(&message.metadata.id) else { continue };
            let address = message.answers.iter().find_map(|record| match &record.data {
                RData::A(address) => Some(address.0),
                _ => None,
            });
            ended.push((question.host, address));
        }
        let Self { questions, socket, .. } = self;
        questions.retain(|_, question| {
            if question.again > now {
                return true;
            }
            if question.asked == TRIES {
                ended.push((question.host, None));
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
        [("a.example".to_owned(), Ipv4Addr::new(100, 64, 8, 1))].into()
    }

    #[test]
    fn names_get_addresses_over_a_socket_however_they_are_written() {
        let think = Duration::ZERO;
        let mut reactor = Reactor::new().unwrap();
        // Any port, as 53 is not ours here.
        let mut socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = socket.local_addr().unwrap();
        let server = Reactor::new().unwrap();
        server.register(&mut socket, 0).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let handle = Stop(stop.clone(), server.waker());
        let server = Server { reactor: server, socket, zone: zone(), think, waiting: Vec::new(), stop };
        let thread = std::thread::spawn(|| server.run());
        let mut ours = UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        ours.connect(address).unwrap();
        reactor.register(&mut ours, 1).unwrap();
        let mut resolver = Resolver { socket: ours, questions: BTreeMap::new(), next: 1 };
        let mut got = BTreeMap::new();
        assert!(resolver.ask(reactor.now(), 0, "A.Example"));
        assert!(resolver.ask(reactor.now(), 1, "b.example"));
        assert!(!resolver.ask(reactor.now(), 2, "no name at all"));
        while got.len() < 2 {
            reactor.wait(resolver.poll_timeout()).unwrap();
            got.extend(resolver.go_on(reactor.now()));
        }
        assert_eq!(got, [(0, Some(Ipv4Addr::new(100, 64, 8, 1))), (1, None)].into());
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

    #[test]
    fn a_question_that_nobody_answers_is_given_up() {
        let reactor = Reactor::new().unwrap();
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let ours = UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        ours.connect(silent.local_addr().unwrap()).unwrap();
        let mut resolver = Resolver { socket: ours, questions: BTreeMap::new(), next: 1 };
        let mut now = reactor.now();
        assert!(resolver.ask(now, 5, "a.example"));
        for _ in 1..TRIES {
            now += PATIENCE;
            assert_eq!(resolver.go_on(now), []);
        }
        assert_eq!(resolver.go_on(now + PATIENCE), [(5, None)]);
        assert_eq!(resolver.poll_timeout(), None);
    }
}
