//! A link in real time: what one TUN device sends goes through a [`link::Path`] and comes out of another.
//!
//! ```text
//! near ── up: Path ── detour ──▶ far        A packet is read, and enters the path at that moment. The path says when it is
//! near ◀── Path ── detour :down ── far      due at the other end; then, or as soon after as the machine lets us, it is written.
//! ```
//!
//! The model is that of virtual time, to the letter: `link` learns the time from its caller and catches up exactly however late it
//! is called, so that the emulator's own lateness is never carried from one packet to the next and no rate is off because of it.
//! What is left is the delay between the kernel's sending a packet and our reading it, and between its being due and our
//! writing it; both are waking times, which [`timer`](crate::timer) keeps short, and the second is measured for every packet
//! ([`WayCheck`]).
//!
//! One thread does it all ([`Emulator::run`]): it reads what has come in small batches, writes what is due, and sleeps until
//! the next packet comes or is due. Packets lie in buffers that are used again, so that nothing is allocated for one.
//!
//! * `way`: one direction: the path, and the longer way to some destinations. Knows no clock.
//! * `packet`: a packet and its addresses.
//! * `change`: another link in its place.
//! * `fate`: single connections that are refused, or heard of no more.
//! * `check`: what was asked for beside what was achieved.
//! * `log`: every packet's fate, for `--log`.
//! * `gateway`: the way from the far end to the machine's own network.
//! * [`study`]: measures all this from outside.
//! * `ends`: the two networks, their devices and the emulator on its thread, as most users want them.

mod change;
mod check;
mod ends;
mod fate;
mod gateway;
mod log;
mod packet;
pub mod study;
mod way;

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use base::{Duration, Instant, Rng};
use link::{LossConfig, Outage, PathConfig, Rate};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::Clock;
use crate::namespace::{Block, HEADER, Net, Tun, Turn};
use crate::timer::{Lead, NoSlack, Policy, on_grid};

/// The model: what [`Config`] is made of.
pub use link;

pub use change::NewLink;
pub use check::{Check, Count, Lateness, WayCheck};
pub use ends::{Beyond, DEVICE, Ends, Link, MTU, Outcome, Running, Uplink};
pub use fate::{Fate, Flow};
pub use gateway::Gateway;
pub use log::{Log, LogSummary};

use fate::Fates;
use gateway::{Door, Passage};
use packet::Packet;
use way::Way;

/// A direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the near end to the far one.
    Up,
    /// From the far end to the near one.
    Down,
}

impl Direction {
    /// `up` or `down`.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Up => "up",
            Direction::Down => "down",
        }
    }
}

/// More delay for some addresses at the far end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayTo {
    /// Their common beginning.
    pub network: IpAddr,
    /// Its length in bits. Of several that fit, the longest counts.
    pub prefix: u8,
    /// Delay in each direction, beyond the link's own: behind the link's queue on the way up, before it on the way down.
    pub delay: Duration,
}

/// What is emulated, and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// From the near end to the far one.
    pub up: PathConfig,
    /// From the far end to the near one.
    pub down: PathConfig,
    /// Destinations that are further away.
    pub delays: Vec<DelayTo>,
    /// The seed of loss and jitter.
    pub seed: u64,
    /// How exactly packets keep to their time.
    pub policy: Policy,
    /// For how long it may spin before a packet is due, if the policy is precise.
    pub spin: Duration,
    /// Packets are wanted one by one, for a log say, even where nothing is done to them.
    pub each_packet: bool,
}

impl Config {
    /// A link without delay, limit or loss, as exact as can be without spinning.
    pub fn perfect() -> Self {
        Self {
            up: PathConfig::default(),
            down: PathConfig::default(),
            delays: Vec::new(),
            seed: 1,
            policy: Policy::Precise,
            spin: Duration::ZERO,
            each_packet: false,
        }
    }

    /// Whether TCP segments may pass in one direction as the large pieces that the kernel hands over by itself, up to 64 KiB. They may
    /// where nothing is done to single packets: there is no rate, no loss and no jitter. They are cut in the kernel at the other end.
    pub fn carries_whole(&self, direction: Direction) -> bool {
        let path = match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        };
        !self.each_packet
            && path.rate == Rate::Unlimited
            && path.loss == LossConfig::None
            && path.jitter == Duration::ZERO
    }
}

/// Most bytes of packets on both ways together. What comes beyond them is dropped, and counted as that.
pub const MEMORY_MAX: usize = 512 << 20;

/// Packets read at once before what is due is written.
const BATCH: usize = 16;

/// Asks a running [`Emulator`], from any thread.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    clock: Clock,
    wake: OwnedFd,
    /// Whether there is something to look at below.
    asked: AtomicBool,
    stop: AtomicBool,
    questions: Mutex<Vec<Sender<Check>>>,
    /// Up and down.
    outages: Mutex<Option<[Vec<Outage>; 2]>>,
    fates: Fates,
    change: Mutex<Option<change::Asked>>,
}

impl Handle {
    /// Ends [`Emulator::run`]. Packets on the way are lost.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// What was counted so far. The answer comes when the emulator gets to it, or never if it has ended.
    pub fn check(&self) -> Receiver<Check> {
        let (sender, receiver) = channel();
        self.0.questions.lock().unwrap_or_else(|e| e.into_inner()).push(sender);
        self.wake();
        receiver
    }

    /// The emulator's clock.
    pub fn clock(&self) -> Clock {
        self.0.clock
    }

    /// Settles what becomes of a flow. It holds for packets that are sent once this has returned.
    pub fn destine(&self, flow: Flow, fate: Fate) {
        self.0.fates.set(flow, fate);
    }

    /// Lets nothing in at these times, counted from when the emulator gets to hear of it, and at no others.
    pub fn set_outages(&self, up: Vec<Outage>, down: Vec<Outage>) {
        *self.0.outages.lock().unwrap_or_else(|e| e.into_inner()) = Some([up, down]);
        self.wake();
    }

    fn wake(&self) {
        self.0.asked.store(true, Ordering::SeqCst);
        let _ = rustix::io::write(&self.0.wake, &1u64.to_ne_bytes());
    }
}

/// Two devices with a link between them.
#[derive(Debug)]
pub struct Emulator {
    clock: Clock,
    policy: Policy,
    lead: Lead,
    turn: Turn,
    up: Side,
    down: Side,
    delays: Vec<DelayTo>,
    /// Addresses that the near end has had.
    left: Vec<IpAddr>,
    buffers: Buffers,
    log: Option<Log>,
    door: Option<Door>,
    shared: Arc<Shared>,
    started: Instant,
}

/// One direction with the devices at its ends.
#[derive(Debug)]
struct Side {
    direction: Direction,
    from: Arc<Tun>,
    to: Arc<Tun>,
    way: Way,
    check: WayCheck,
    packets: u64,
}

/// Memory for packets.
#[derive(Debug)]
struct Buffers {
    free: Vec<Box<[u8]>>,
    len: usize,
    /// How many more may be made.
    left: usize,
}

impl Buffers {
    /// Buffers for packets of at most that many bytes.
    fn new(packet_max: usize) -> Self {
        let len = HEADER + packet_max;
        Self { free: Vec::new(), len, left: MEMORY_MAX / len }
    }

    /// A buffer; `None` if all are in use and there may be no more.
    fn take(&mut self) -> Option<Box<[u8]>> {
        if let Some(buffer) = self.free.pop() {
            return Some(buffer);
        }
        self.left = self.left.checked_sub(1)?;
        Some(vec![0; self.len].into_boxed_slice())
    }
}

impl Emulator {
    /// An emulator between two devices, which must have one MTU, and give large pieces only where [they may
    /// pass](Config::carries_whole). It does nothing until it [runs](Emulator::run).
    pub fn new(config: &Config, near: Tun, far: Tun, log: Option<Log>) -> io::Result<Self> {
        let (near, far) = (Arc::new(near), Arc::new(far));
        let rng = Rng::new(config.seed);
        let clock = Clock::start();
        let shared = Shared {
            clock,
            wake: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
            asked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            questions: Mutex::new(Vec::new()),
            outages: Mutex::new(None),
            fates: Fates::default(),
            change: Mutex::new(None),
        };
        let side = |direction, from: &Arc<Tun>, to: &Arc<Tun>, path: &PathConfig| Side {
            direction,
            from: from.clone(),
            to: to.clone(),
            way: Way::new(path, rng.substream(Direction::name(direction)), direction == Direction::Down),
            check: WayCheck::new(path),
            packets: 0,
        };
        Ok(Self {
            clock,
            policy: config.policy,
            lead: Lead::up_to(config.spin),
            turn: Turn::Ordinary,
            up: side(Direction::Up, &near, &far, &config.up),
            down: side(Direction::Down, &far, &near, &config.down),
            delays: config.delays.clone(),
            left: Vec::new(),
            buffers: Buffers::new(near.packet_max().max(far.packet_max())),
            log,
            door: None,
            shared: Arc::new(shared),
            started: clock.now(),
        })
    }

    /// Opens a way from the far end to the network of the calling thread; `far` is the network of the far device, and `block` the addresses that
    /// are its own or the near end's. All others must be routed to the far end's loopback device as its own.
    pub fn open_gateway(&mut self, block: Block, far: &Net) -> io::Result<Gateway> {
        let (gateway, door) = Gateway::open(block, far, self.up.to.clone())?;
        self.door = Some(door);
        Ok(gateway)
    }

    /// The emulator's clock, which the log's times are of.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// A handle on it.
    pub fn handle(&self) -> Handle {
        Handle(self.shared.clone())
    }

    /// Carries packets until it is [stopped](Handle::stop), on a thread that is to do nothing else: if the policy is precise and
    /// packets have to wait for anything, it gets the [soonest turn](Turn::soonest) that it may have. Then gives what was counted, and the log's summary if there is a log.
    pub fn run(mut self) -> io::Result<(Check, Option<LogSummary>)> {
        // Slack and turn are the thread's.
        let _slack = match self.policy {
            Policy::Precise => {
                // Where there is nothing to be on time for, packets had better come in batches.
                let is_timed = self.up.is_timed() || self.down.is_timed() || !self.delays.is_empty();
                self.turn = if is_timed { Turn::soonest() } else { Turn::short() };
                Some(NoSlack::set()?)
            }
            Policy::Economical => None,
        };
        self.started = self.clock.now();
        loop {
            let mut idle = true;
            for direction in [Direction::Up, Direction::Down] {
                idle &= !self.receive(direction)?;
                self.deliver(direction)?;
            }
            if self.shared.asked.load(Ordering::Relaxed) && !self.answer() {
                break;
            }
            if idle {
                self.sleep()?;
            }
        }
        let log = self.log.take().map(|mut log| {
            for side in [&mut self.up, &mut self.down] {
                side.way.drain(&mut |packet| log.inside(side.direction, &packet));
            }
            log.finish()
        });
        Ok((self.check(), log))
    }

    fn side(&mut self, direction: Direction) -> &mut Side {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }

    /// Reads what has come, up to a batch; whether there was anything.
    fn receive(&mut self, direction: Direction) -> io::Result<bool> {
        for n in 0..BATCH {
            let Some(mut data) = self.buffers.take() else {
                // Read it all the same, lest the device's queue is full of what came long ago.
                let (mut scrap, side) = ([0; 4_096], self.side(direction));
                match side.from.read(&mut scrap) {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(n > 0),
                    read => read?,
                };
                side.check.no_memory += 1;
                continue;
            };
            match self.side(direction).from.read(&mut data) {
                Ok(len) => self.enter(direction, data, len),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.buffers.free.push(data);
                    return Ok(n > 0);
                }
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }

    /// A packet of so many bytes, with what goes before it, comes from an end.
    fn enter(&mut self, direction: Direction, data: Box<[u8]>, len: usize) {
        let Self { clock, buffers, log, delays, left, shared, .. } = self;
        let side = match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        };
        let now = clock.now();
        let mut packet = Packet::new(data, len, side.packets, now);
        side.packets += 1;
        packet.extra = packet.extra_delay(delays, side.direction);
        packet.queue_bytes = side.way.queue_bytes();
        side.check.received(&packet);
        let is_of_left = !left.is_empty() && Self::is_of_left(left, &packet.addresses(), direction);
        if is_of_left || (direction == Direction::Down && shared.fates.is_gone(&packet, direction, now)) {
            return side.lose(packet, now, buffers, log);
        }
        side.way.receive(now, packet);
        side.collect_dropped(buffers, log);
    }

    /// Writes what is due.
    fn deliver(&mut self, direction: Direction) -> io::Result<()> {
        let Self { clock, buffers, log, door, shared, .. } = self;
        let (side, door) = match direction {
            Direction::Up => (&mut self.up, door.as_ref()),
            Direction::Down => (&mut self.down, None),
        };
        if side.way.next_time().is_none() {
            return Ok(());
        }
        let (is_up, mut answers) = (direction == Direction::Up, Vec::new());
        while let Some(packet) = side.way.deliver(clock.now()) {
            // When it left the link for its server.
            let left = Instant::ZERO + packet.due.since(Instant::ZERO + packet.extra);
            if is_up && shared.fates.is_gone(&packet, direction, left) {
                side.lose(packet, left, buffers, log);
                continue;
            }
            let refused = is_up && shared.fates.is_refused(&packet);
            let done = match door.map_or(Passage::Free, |door| door.pass(packet.bytes())) {
                _ if refused => true,
                Passage::Free => side.to.write(packet.bytes()).is_ok(),
                Passage::Taken => true,
                Passage::Lost => false,
            };
            let now = clock.now();
            // The kernel takes no malformed packet. It gave us this one, but it also let a program send it.
            if done {
                side.check.delivered(&packet, now);
            } else {
                side.check.refused += 1;
            }
            if let Some(log) = log {
                log.delivered(side.direction, &packet, now);
            }
            answers.extend(refused.then(|| fate::reset(&packet)).flatten());
            buffers.free.push(packet.into_buffer());
        }
        side.collect_dropped(buffers, log);
        for answer in answers {
            self.answer_with(&answer);
        }
        Ok(())
    }

    /// The far end says this.
    fn answer_with(&mut self, answer: &[u8]) {
        match self.buffers.take() {
            Some(mut data) => {
                data[..answer.len()].copy_from_slice(answer);
                self.enter(Direction::Down, data, answer.len());
            }
            None => self.down.check.no_memory += 1,
        }
    }

    /// Sleeps until something comes or is due, or spins if the latter is soon.
    fn sleep(&mut self) -> io::Result<()> {
        let next = self.up.way.next_time().into_iter().chain(self.down.way.next_time()).min();
        let now = self.clock.now();
        let (wake, precise) = match (next, self.policy) {
            (None, _) => (None, false),
            (Some(next), Policy::Economical) => (Some(on_grid(self.clock, next)), false),
            (Some(next), Policy::Precise) => {
                (Some(Instant::ZERO + next.since(Instant::ZERO + self.lead.get())), true)
            }
        };
        if wake.is_some_and(|wake| wake <= now) {
            std::hint::spin_loop();
            return Ok(());
        }
        let timeout = wake.map(|wake| timespec(wake.since(now)));
        let mut fds = [
            PollFd::new(&*self.up.from, PollFlags::IN),
            PollFd::new(&*self.down.from, PollFlags::IN),
            PollFd::new(&self.shared.wake, PollFlags::IN),
        ];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) => {
                if let (Some(wake), true) = (wake, precise) {
                    self.lead.learn(self.clock.now().since(wake));
                }
                Ok(())
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Answers whoever has asked; whether to go on.
    fn answer(&mut self) -> bool {
        self.shared.asked.store(false, Ordering::SeqCst);
        let _ = rustix::io::read(&self.shared.wake, &mut [0u8; 8]);
        let questions: Vec<_> = {
            let mut questions = self.shared.questions.lock().unwrap_or_else(|e| e.into_inner());
            questions.drain(..).collect()
        };
        if !questions.is_empty() {
            let check = self.check();
            questions.iter().for_each(|question| drop(question.send(check.clone())));
        }
        let outages = self.shared.outages.lock().unwrap_or_else(|e| e.into_inner()).take();
        for (side, outages) in [&mut self.up, &mut self.down].into_iter().zip(outages.into_iter().flatten()) {
            let now = self.clock.now().since(Instant::ZERO);
            let later = |outage: Outage| Outage { from: outage.from + now, ..outage };
            side.way.set_outages(outages.into_iter().map(later).collect());
        }
        let change = self.shared.change.lock().unwrap_or_else(|e| e.into_inner()).take();
        if let Some(change) = change {
            self.change(change);
        }
        !self.shared.stop.load(Ordering::SeqCst)
    }

    fn check(&mut self) -> Check {
        let span = self.clock.now().since(self.started);
        let mut way = |direction| {
            let side = self.side(direction);
            side.check.path = side.way.stats();
            side.check.clone()
        };
        Check {
            up: way(Direction::Up),
            down: way(Direction::Down),
            span,
            lead: self.lead.get(),
            turn: self.turn,
        }
    }
}

impl Side {
    /// Whether packets are due at some other time than at once.
    fn is_timed(&self) -> bool {
        let asked = &self.check.asked;
        asked.rate != Rate::Unlimited || asked.delay + asked.jitter > Duration::ZERO
    }

    /// A packet meets nobody where the link and the way to its server join.
    fn lose(&mut self, packet: Packet, at: Instant, buffers: &mut Buffers, log: &mut Option<Log>) {
        self.check.gone += 1;
        if let Some(log) = log {
            log.gone(self.direction, &packet, at);
        }
        buffers.free.push(packet.into_buffer());
    }

    /// Takes back what the way has dropped.
    fn collect_dropped(&mut self, buffers: &mut Buffers, log: &mut Option<Log>) {
        while let Some(dropped) = self.way.poll_dropped() {
            self.check.dropped(dropped.why, dropped.packet.number);
            if let Some(log) = log {
                log.dropped(self.direction, &dropped);
            }
            buffers.free.push(dropped.packet.into_buffer());
        }
    }
}

fn timespec(span: Duration) -> Timespec {
    let nanos = span.as_nanos();
    Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as _ }
}

#[cfg(test)]
mod tests;
