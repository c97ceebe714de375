//! What happens, whatever carries it: a network, two ends' TCP, and what their applications say to each other; and what came of it.

use base::{Bitrate, Duration, Instant};
use link::{PathConfig, QueueConfig, Rate};
use live::emulator::link;

use crate::conformance::track::{Note, Server, Side, since};

/// A packet that is lost, counted from 0 within its direction, over all connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drop {
    /// The n-th SYN or SYN/ACK.
    Syn(u64),
    /// The n-th segment with data, those sent again counted.
    Data(u64),
}

/// Both directions of a link.
#[derive(Clone, Debug)]
pub struct Network {
    pub up: PathConfig,
    pub down: PathConfig,
    pub drop_up: Vec<Drop>,
    pub drop_down: Vec<Drop>,
    pub seed: u64,
}

impl Network {
    /// Rates in kbit/s, 0 for none; a queue of one bandwidth-delay product or 50 ms.
    pub fn new(down_kbps: u64, up_kbps: u64, rtt_ms: u64) -> Self {
        let rtt = Duration::from_millis(rtt_ms);
        let path = |kbps| {
            let rate = Bitrate::from_kbps(kbps).map_or(Rate::Unlimited, Rate::Constant);
            PathConfig {
                queue: QueueConfig::sized_for(&rate, rtt),
                rate,
                delay: rtt / 2,
                ..PathConfig::default()
            }
        };
        Self { up: path(up_kbps), down: path(down_kbps), drop_up: vec![], drop_down: vec![], seed: 1 }
    }

    /// The same with a queue of so many bytes towards the client.
    pub fn queue(mut self, bytes: u64) -> Self {
        self.down.queue = QueueConfig::drop_tail(bytes);
        self
    }

    /// The same, but these segments with data towards the client are lost.
    pub fn losing(mut self, data: impl IntoIterator<Item = u64>) -> Self {
        self.drop_down.extend(data.into_iter().map(Drop::Data));
        self
    }
}

/// A question and its answer.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// The client waits that long before it asks.
    pub pause: Duration,
    pub request: u64,
    pub response: u64,
}

/// A scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: String,
    pub network: Network,
    pub client: tcp::Config,
    pub server: tcp::Config,
    /// What each connection does; they are opened at once.
    pub connections: Vec<Vec<Exchange>>,
}

impl Scenario {
    /// One connection over which the client asks once, in 300 bytes.
    pub fn one(name: &str, network: Network, response: u64) -> Self {
        let today = tcp::Config::linux_today();
        let exchange = Exchange { pause: Duration::ZERO, request: 300, response };
        Self {
            name: name.to_owned(),
            network,
            client: today.clone(),
            server: today,
            connections: vec![vec![exchange]],
        }
    }

    /// The same with both ends' TCP changed.
    pub fn with(mut self, change: impl Fn(&mut tcp::Config)) -> Self {
        change(&mut self.client);
        change(&mut self.server);
        self
    }

    /// The same, and after a pause the client asks again on every connection.
    pub fn then(mut self, pause_ms: u64, response: u64) -> Self {
        let exchange = Exchange { pause: Duration::from_millis(pause_ms), request: 300, response };
        self.connections.iter_mut().for_each(|connection| connection.push(exchange));
        self
    }

    /// The same over so many connections at once.
    pub fn times(mut self, n: usize) -> Self {
        self.connections = vec![self.connections[0].clone(); n];
        self
    }
}

/// What came of a scenario.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Every packet sent.
    pub notes: Vec<Note>,
    /// By connection, what the server's TCP counted.
    pub server: Vec<tcp::Stats>,
    /// What was to be sent.
    asked: Vec<Vec<Exchange>>,
}

/// An answer as it came, since the connection's SYN.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub first: Duration,
    pub last: Duration,
    /// One-way trips until it was complete, one caused by the other.
    pub trips: u32,
}

impl Outcome {
    pub fn new(scenario: &Scenario, notes: Vec<Note>, server: Vec<tcp::Stats>) -> Self {
        Self { notes, server, asked: scenario.connections.clone() }
    }

    fn of(&self, connection: usize, from: Side) -> impl Iterator<Item = &Note> {
        self.notes.iter().filter(move |note| note.connection == connection && note.from == from)
    }

    /// When, and after how many trips, the client's application could read so many bytes in order.
    fn reached(&self, connection: usize, bytes: u64) -> (Instant, u32) {
        let mut arrived: Vec<_> = self.of(connection, Server).filter(|note| note.arrived.is_some()).collect();
        arrived.sort_by_key(|note| note.arrived);
        let (mut islands, mut nxt, mut trips) = (Vec::new(), 1, 0);
        for note in arrived {
            islands.push(note.header.seq..note.header.seq + note.header.len);
            trips = trips.max(note.depth + 1);
            while let Some(i) = islands.iter().position(|island| island.start <= nxt) {
                nxt = nxt.max(islands.swap_remove(i).end);
            }
            if nxt > bytes {
                return (note.arrived.expect("it did"), trips);
            }
        }
        panic!("connection {connection} never got {bytes} bytes\n{}", self.story());
    }

    /// The answers on a connection.
    pub fn answers(&self, connection: usize) -> Vec<Answer> {
        let mut sum = 0;
        let answer = |exchange: &Exchange| {
            let (first, _) = self.reached(connection, sum + 1);
            sum += exchange.response;
            let (last, trips) = self.reached(connection, sum);
            let time = |at| since(&self.notes, connection, at);
            Answer { first: time(first), last: time(last), trips }
        };
        self.asked[connection].iter().map(answer).collect()
    }

    /// When the last answer of all was complete, since the first SYN.
    pub fn end(&self) -> Duration {
        let last = |c: usize| self.reached(c, self.asked[c].iter().map(|e| e.response).sum()).0;
        (0..self.asked.len()).map(last).max().map_or(Duration::ZERO, |at| at.since(self.notes[0].sent))
    }

    /// Segments of the server's sent again, until the last answer was complete.
    pub fn resent(&self) -> usize {
        let end = self.notes[0].sent + self.end();
        self.notes.iter().filter(|note| note.from == Server && note.again && note.sent <= end).count()
    }

    /// Timeouts of the server's.
    pub fn timeouts(&self) -> u64 {
        self.server.iter().map(|stats| stats.timeouts).sum()
    }

    /// Segments with new data that the server sent after each number of trips: the flights of slow start where the link takes no time.
    pub fn flights(&self, connection: usize) -> Vec<usize> {
        let mut flights = std::collections::BTreeMap::new();
        for note in self.of(connection, Server).filter(|note| note.header.len > 0 && !note.again) {
            *flights.entry(note.depth).or_insert(0) += 1;
        }
        flights.into_values().collect()
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.asked.len()
    }

    /// One-way trips that each answer on a connection took, from the SYN on.
    pub fn trips(&self, connection: usize) -> Vec<u32> {
        self.answers(connection).iter().map(|answer| answer.trips).collect()
    }

    /// Every packet, one a line, the server's indented.
    pub fn story(&self) -> String {
        let line = |note: &Note| {
            let h = &note.header;
            let flag = |on, name: &'static str| if on { name } else { "" };
            format!(
                "{:>10.3} {}{}{}{}{} {}..{} ack {} win {}{}{}{}\n",
                since(&self.notes, note.connection, note.sent).as_millis_f64(),
                flag(note.from == Server, "            "),
                note.connection,
                flag(h.syn, "S"),
                flag(h.fin, "F"),
                flag(h.psh, "P"),
                h.seq,
                h.seq + h.len,
                h.ack,
                h.window,
                flag(note.again, " again"),
                flag(h.sacks > 0, " sack"),
                flag(note.arrived.is_none(), " LOST"),
            )
        };
        self.notes.iter().map(line).collect()
    }
}
