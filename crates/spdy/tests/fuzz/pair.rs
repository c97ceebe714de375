//! Two sessions and a wire between them.

use std::collections::VecDeque;

use base::{Chunk, Duration, Instant};
use bytes::BytesMut;
use spdy::{Config, Mapping, Opening, Priority, Session, StreamId};

use super::Script;
use super::common::{Checker, fields, get, post, response};
use super::model::{Act, Model};

/// A client and a server that do any sequence of things, over a wire that cuts what it carries into pieces and holds them
/// back. If the script says so it also loses pieces, turns their bits, or ends.
///
/// As long as the wire is whole, neither end may find fault with the other, both keep to their windows, and once both have
/// said all they have to say every stream that nobody broke off has delivered every byte and ended. With a wire that is
/// not, each end comes to an error or goes on; what its events say stays true, and it comes to rest.
pub fn pair(data: &[u8]) {
    let mut script = Script(data);
    let (client, server) = configs(&mut script);
    let mut world = World::new(client, server);
    while !script.0.is_empty() {
        let (op, arg) = (script.byte(), script.byte());
        world.step(op, arg, &mut script);
    }
    world.finish();
}

/// What two ends that speak with each other agree on, they agree on.
fn configs(script: &mut Script<'_>) -> (Config, Config) {
    let (client, server) = (script.config(), script.config());
    let (version, mapping, flow_control) = (client.version, client.mapping, client.flow_control);
    let server = Config { version, mapping, flow_control, ..server };
    // An end that is not let speak must not be found guilty of not reading.
    let patient = |config: Config| {
        let default = spdy::Limits::default();
        let limits = spdy::Limits { answers: default.answers, heads: default.heads, ..config.limits };
        Config { limits: spdy::Limits { settings: default.settings, ..limits }, ..config }
    };
    (patient(client), patient(server))
}

/// One end: a session, what it must be like, what the wire shows of it, and what is on its way to it.
struct End {
    session: Session,
    model: Model,
    wire: Checker,
    inbound: VecDeque<Chunk>,
    has_failed: bool,
    /// Eighths of the data that its user consumes as it comes.
    share: u64,
}

struct World {
    ends: [End; 2],
    mapping: Mapping,
    now: Instant,
    /// Whether something was lost or changed on the way.
    is_damaged: bool,
    /// Bytes of body that may still be queued: no more than the ends can exchange in a few hundred frames.
    budget: u64,
}

impl World {
    fn new(client: Config, server: Config) -> Self {
        let steps =
            [&client, &server].map(|c| c.max_data_frame.min(c.stream_window.size).min(c.session_window.size));
        let mapping = client.mapping;
        let end = |config: Config, make: fn(Config) -> Session| End {
            wire: Checker::new(&config),
            session: make(config),
            model: Model { is_exact: true, ..Model::default() },
            inbound: VecDeque::new(),
            has_failed: false,
            share: 8,
        };
        let ends = [end(client, Session::client), end(server, Session::server)];
        let budget = 500 * u64::from(steps[0].min(steps[1]));
        Self { ends, mapping, now: Instant::ZERO, is_damaged: false, budget }
    }

    fn step(&mut self, op: u8, arg: u8, script: &mut Script<'_>) {
        let at = usize::from(arg & 1);
        let (priority, fin) = (Priority::new(arg >> 5), arg & 16 != 0);
        let end = &mut self.ends[at];
        let ids = &end.model.ids;
        let id = (!ids.is_empty()).then(|| ids[usize::from(arg >> 1) % ids.len()]);
        match (op % 16, id) {
            (0 | 1, _) => _ = self.speak(at, 1 + script.squared(), 1 + u64::from(arg >> 1) * 4),
            (2 | 3, _) => _ = self.deliver(at, usize::from(arg >> 1)),
            (4 | 5, _) => self.open(at, priority, fin, arg & 2 != 0, id),
            (6, Some(id)) => {
                if let Ok(id) = end.session.push(id, &get("/p"), &response(200), priority) {
                    end.model.open(id, true, false);
                }
            }
            (7, _) if op == 0xf7 => end.session.goaway(),
            (7, _) if op == 0xe7 => self.damage(at, arg),
            (7, _) if op & 16 == 0 => {
                self.now += Duration::from_millis(u64::from(arg) * 20);
                end.session.handle_timeout(self.now);
            }
            (7, _) => end.session.ping(self.now),
            (8, Some(id)) => end.session.set_priority(id, priority),
            (9, _) => end.share = u64::from(arg >> 1) % 9,
            (10, Some(id)) => end.model.consume(&mut end.session, id, u64::from(op >> 4)),
            (11.., Some(id)) => {
                let len = script.squared().min(self.budget);
                self.budget -= len;
                end.model.act(&mut end.session, Act { kind: op - 11, id, len, fin: op & 32 != 0 });
            }
            _ => {}
        }
        let end = &mut self.ends[at];
        end.model.drain(&mut end.session, end.share, end.has_failed);
    }

    fn open(&mut self, at: usize, priority: Priority, fin: bool, one_way: bool, beside: Option<StreamId>) {
        let end = &mut self.ends[at];
        let opened = match self.mapping {
            Mapping::Http => {
                let head = if fin { get("/") } else { post("/x") };
                end.session.request(&head, priority, fin).map(|id| (id, false))
            }
            Mapping::Streams => {
                let opening = Opening { priority, associated: beside, fin, unidirectional: one_way };
                end.session.open(&fields(&[("a", "b")]), opening).map(|id| (id, one_way))
            }
        };
        if let Ok((id, heard_out)) = opened {
            end.model.open(id, heard_out, fin);
        }
    }

    /// An end says something, at most `room` bytes, and the wire cuts it into pieces.
    fn speak(&mut self, at: usize, room: u64, piece: u64) -> bool {
        let Some(mut chunk) = self.ends[at].session.poll_transmit(self.now, room) else { return false };
        assert!(!chunk.is_empty() && chunk.len() <= room);
        if !self.is_damaged {
            self.ends[at].wire.sent(chunk.clone());
        }
        while !chunk.is_empty() {
            let n = piece.min(chunk.len());
            self.ends[1 - at].inbound.push_back(chunk.split_to(n));
        }
        true
    }

    /// The next `n` pieces arrive.
    fn deliver(&mut self, at: usize, n: usize) -> bool {
        let end = &mut self.ends[at];
        let n = n.min(end.inbound.len());
        for piece in end.inbound.drain(..n) {
            if end.has_failed {
                continue;
            }
            if !self.is_damaged {
                end.wire.delivered(piece.clone());
            }
            match end.session.handle_input(self.now, piece) {
                Ok(()) => {}
                Err(_) if self.is_damaged => end.has_failed = true,
                Err(e) => panic!("one end finds fault with the other: {e}"),
            }
            end.model.drain(&mut end.session, end.share, end.has_failed);
        }
        n > 0
    }

    /// Something happens to what is on its way to an end.
    fn damage(&mut self, at: usize, arg: u8) {
        self.is_damaged = true;
        self.ends.iter_mut().for_each(|end| end.model.is_damaged = true);
        let inbound = &mut self.ends[at].inbound;
        let i = usize::from(arg >> 3);
        if i >= inbound.len() {
            return;
        }
        match (arg >> 1 & 3, &mut inbound[i]) {
            (0, _) => _ = inbound.remove(i),
            (1, _) => inbound.truncate(i),
            (2, Chunk::Bytes(bytes)) => {
                let mut changed = BytesMut::from(&bytes[..]);
                let at = changed.len() / 2;
                changed[at] ^= 1 << (arg >> 5);
                *bytes = changed.freeze();
            }
            _ => inbound.swap(0, i),
        }
    }

    /// Both ends say all that they have left to say, answer what waits for it, and read; then the connection closes.
    fn finish(mut self) {
        for end in &mut self.ends {
            end.share = 8;
            for id in end.model.ids.clone() {
                end.model.consume(&mut end.session, id, 8);
            }
        }
        // Credit, the last bytes, what they provoke: a body byte may need a frame each way, and a step carries one.
        let mut steps = 200_000_u64;
        loop {
            let mut moved = self.conclude();
            for at in [0, 1] {
                moved |= self.speak(at, 16_384, u64::MAX);
                moved |= self.deliver(at, usize::MAX);
            }
            if !moved {
                break;
            }
            steps = steps.checked_sub(1).expect("two ends that come to rest");
        }
        if !self.is_damaged {
            self.all_is_said();
        }
        for end in &mut self.ends {
            end.model.close(&mut end.session, end.has_failed);
        }
    }

    /// Each end finishes what it can; true if there was something.
    fn conclude(&mut self) -> bool {
        let mut moved = false;
        for end in &mut self.ends {
            end.model.drain(&mut end.session, 8, end.has_failed);
            let waiting = |s: &super::model::Stream| !s.is_over && !s.finished;
            for id in end.model.live.clone() {
                if !end.model.streams.get(&id.as_u32()).is_some_and(waiting) {
                    continue;
                }
                moved = true;
                let reply = if self.mapping == Mapping::Http { 0 } else { 1 };
                for kind in [reply, 2] {
                    if end.model.streams.get(&id.as_u32()).is_some_and(waiting) {
                        end.model.act(&mut end.session, Act { kind, id, len: 0, fin: true });
                    }
                }
            }
            end.model.drain(&mut end.session, 8, end.has_failed);
        }
        moved
    }

    /// Nothing was harmed, so all is well.
    fn all_is_said(&self) {
        let [client, server] = &self.ends;
        for (from, to) in [(client, server), (server, client)] {
            assert_eq!(from.session.open_streams(), 0, "{:?}", from.model.streams);
            assert!(!from.has_failed);
            for (id, said) in &from.model.streams {
                let Some(heard) = to.model.streams.get(id) else {
                    // Refused; of one that is over by then its creator does not hear.
                    assert!(said.is_broken || said.is_one_way, "stream {id} never came");
                    continue;
                };
                assert!(heard.delivered <= said.queued, "stream {id}: more than was sent");
                if !said.is_broken && !heard.is_broken {
                    assert_eq!(heard.delivered, said.queued, "stream {id}: all that was sent");
                }
            }
        }
    }
}
