//! One end of a connection.
//!
//! The states of RFC 9293 §3.3.2 after the handshake are the product of two questions, which the halves answer: has
//! our FIN been acknowledged, has the peer's arrived? There is no TIME-WAIT: an endpoint that is kept goes on
//! acknowledging a repeated FIN for as long as it is kept.

mod input;
mod output;

use std::fmt;

use base::{Duration, Instant};

use crate::config::Config;
use crate::receiver::{Agreed, Receiver};
use crate::segment::Segment;
use crate::sender::Sender;
use crate::stats::Stats;
use crate::wheel::Wheel;

/// What the application wants to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The handshake is over.
    Connected,
    /// There is more to read, in order.
    Readable,
    /// The peer will send no more; all it sent is readable.
    PeerClosed,
    /// After a shortage, [`Endpoint::writable`] has room again for half of `notsent_lowat` at least.
    Writable,
    /// Both ends have closed and our peer has everything. Keep polling until nothing is left to transmit.
    Closed,
    /// It is over, and not in good order.
    Failed(Error),
}

/// Why a connection failed. All three are the peer's doing, or the path's; what a caller can do wrong panics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The peer answered our SYN with a RST: nobody listens.
    Refused,
    /// The peer sent a RST on an open connection.
    Reset,
    /// Nothing came back, however often we sent (`syn_retries`, `data_retries`).
    TimedOut,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Refused => "connection refused by the peer",
            Error::Reset => "connection reset by the peer",
            Error::TimedOut => "connection timed out: the peer did not answer",
        })
    }
}

impl std::error::Error for Error {}

/// One end of a TCP connection that carries counts of bytes. The bytes themselves stay with the caller: as they
/// arrive in order, the n-th byte read at one end is the n-th written at the other.
///
/// Commands and `handle_*` change it; drain `poll_event` and `poll_transmit` after each, as the crate's documentation
/// shows, then come back at `poll_timeout`.
#[derive(Clone, Debug)]
pub struct Endpoint {
    config: Config,
    state: State,
    /// Written before the handshake is over.
    early: u64,
    early_close: bool,
    /// Answer with a RST.
    reset: Option<Segment>,
    pending: Pending,
    /// The application found too little room to write.
    short: bool,
    stats: Stats,
}

#[derive(Clone, Debug)]
enum State {
    ExpectSyn,
    ExpectSynAck(Handshake),
    ExpectAck(Handshake, Offer),
    Open(Box<Open>),
    Closed(Box<Open>),
    Failed,
}

/// A SYN or SYN/ACK is on its way.
#[derive(Clone, Debug)]
struct Handshake {
    /// When it was sent last.
    sent: Instant,
    /// When to send it again; the first is sent at once.
    again: Instant,
    rto: Duration,
    retries: u32,
    /// It waits to be sent.
    due: bool,
    /// When a SYN that came again was answered last.
    answered: Option<Instant>,
    wheel: Wheel,
}

/// What the peer's SYN said.
#[derive(Clone, Copy, Debug)]
struct Offer {
    agreed: Agreed,
    window: u64,
    timestamp: u32,
}

#[derive(Clone, Debug)]
struct Open {
    sender: Sender,
    receiver: Receiver,
    /// The last segment of the handshake goes out by itself, before any data, as the kernel sends it before the
    /// application wakes.
    finish_handshake: bool,
    /// An acknowledgement that became due by itself goes out before what the application wrote from this sequence number on: the
    /// kernel sends it before the application hears of anything.
    ack_before: Option<u64>,
}

impl Open {
    /// What just happened may have made an acknowledgement due.
    fn note_ack(&mut self) {
        if self.receiver.ack_now() {
            self.ack_before.get_or_insert(self.sender.written());
        }
    }
}

/// Events not yet polled. They come in the order of the fields, whatever the order in which they arose.
#[derive(Clone, Copy, Default, Debug)]
struct Pending {
    connected: bool,
    readable: bool,
    peer_closed: bool,
    writable: bool,
    closed: bool,
    failed: Option<Error>,
}

impl Handshake {
    fn new(now: Instant, config: &Config) -> Self {
        let wheel = Wheel::new(config.timer_tick);
        let rto = config.syn_rto;
        Self {
            sent: now,
            again: wheel.due(now, now + rto),
            rto,
            retries: 0,
            due: true,
            answered: None,
            wheel,
        }
    }

    fn repeat(&mut self, now: Instant) {
        self.retries += 1;
        self.again = self.wheel.due(now, now + self.rto);
        self.due = true;
    }
}

impl Endpoint {
    /// Opens a connection: the SYN is the first thing to transmit.
    pub fn connect(config: Config, now: Instant) -> Self {
        let handshake = Handshake::new(now, &config);
        Self::new(config, State::ExpectSynAck(handshake))
    }

    /// Waits for a SYN.
    pub fn accept(config: Config, _now: Instant) -> Self {
        Self::new(config, State::ExpectSyn)
    }

    fn new(config: Config, state: State) -> Self {
        Self {
            config,
            state,
            early: 0,
            early_close: false,
            reset: None,
            pending: Pending::default(),
            short: false,
            stats: Stats::default(),
        }
    }

    // Getters.

    /// Counters, and the state that a trace wants.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Segments in flight as RFC 6675 §4 counts them (*pipe*): sent, neither acknowledged nor SACKed nor deemed lost.
    pub fn segments_in_flight(&self) -> u32 {
        self.open().map_or(0, |open| open.sender.board.in_flight())
    }

    /// Bytes sent and not acknowledged, a FIN counted as one.
    pub fn bytes_in_flight(&self) -> u64 {
        self.open().map_or(0, |open| open.sender.nxt - open.sender.una)
    }

    /// Bytes that the peer's window still takes.
    pub fn peer_window(&self) -> u64 {
        self.open().map_or(0, |open| open.sender.edge.saturating_sub(open.sender.nxt))
    }

    /// The retransmission timeout as it is now, back-off included.
    pub fn rto(&self) -> Duration {
        match &self.state {
            State::ExpectSynAck(handshake) | State::ExpectAck(handshake, _) => handshake.rto,
            _ => self.open().map_or(self.config.syn_rto, |open| open.sender.rtt.rto()),
        }
    }

    /// Bytes written and not yet sent.
    pub fn unsent(&self) -> u64 {
        self.open().map_or(self.early, |open| open.sender.unsent())
    }

    /// Bytes that the application may hand over now without letting more than `notsent_lowat` wait unsent, or more
    /// than `sndbuf` unacknowledged. Zero once closed.
    pub fn writable(&self) -> u64 {
        let (unsent, queued, closed) = match &self.state {
            State::Open(open) => (open.sender.unsent(), open.sender.queued(), open.sender.closed()),
            State::Closed(_) | State::Failed => return 0,
            _ => (self.early, self.early, self.early_close),
        };
        if closed {
            return 0;
        }
        let config = &self.config;
        config.notsent_lowat.saturating_sub(unsent).min(config.sndbuf.saturating_sub(queued))
    }

    /// Bytes that wait to be read.
    pub fn readable(&self) -> u64 {
        self.open().map_or(0, |open| open.receiver.readable())
    }

    fn open(&self) -> Option<&Open> {
        match &self.state {
            State::Open(open) | State::Closed(open) => Some(open),
            _ => None,
        }
    }

    // Commands.

    /// Takes `n` more bytes from the application; before the handshake is over they wait. It is not an error to hand
    /// over more than [`writable`](Self::writable): they are queued. On a failed connection they are dropped.
    ///
    /// # Panics
    /// After [`close`](Self::close), unless `n` is 0.
    pub fn write(&mut self, n: u64) {
        if n == 0 {
            return;
        }
        match &mut self.state {
            State::Open(open) => {
                assert!(!open.sender.closed(), "write after close");
                open.sender.write(n);
            }
            State::Closed(_) => panic!("write after close"),
            State::Failed => return,
            _ => {
                assert!(!self.early_close, "write after close");
                self.early += n;
            }
        }
        self.short |= self.writable() < self.wake_at();
    }

    /// Takes `n` bytes from the in-order bytes; `now` lets the receive window follow the reader. That may open the
    /// window or release an acknowledgement: poll for it.
    ///
    /// # Panics
    /// If `n` exceeds [`readable`](Self::readable).
    pub fn read(&mut self, now: Instant, n: u64) {
        match &mut self.state {
            State::Open(open) | State::Closed(open) => {
                open.receiver.read(now, n);
                open.note_ack();
            }
            _ => assert!(n == 0, "read({n}) of 0 readable bytes"),
        }
    }

    /// Widens the congestion window to `segments`, as if the connection had begun with so many ([`Config::initial_cwnd`]), unless a segment
    /// was lost before or the handshake is not over. Linux lets no application do so; Google's servers did.
    pub fn start_with(&mut self, segments: u32) {
        if let State::Open(open) = &mut self.state {
            open.sender.start_with(segments);
            self.stats.cwnd = open.sender.cwnd;
        }
    }

    /// No more will be written: a FIN follows the last byte. The other direction stays open.
    pub fn close(&mut self) {
        match &mut self.state {
            State::Open(open) => open.sender.close(),
            State::Closed(_) | State::Failed => {}
            _ => self.early_close = true,
        }
    }

    /// Drops the connection: the peer gets a RST, what was not read or acknowledged is gone. No event follows.
    pub fn abort(&mut self) {
        if let State::Open(open) = &mut self.state {
            let mut segment = Segment { seq: open.sender.nxt, ..Segment::default() };
            open.receiver.fill(&mut segment);
            segment.flags.rst = true;
            self.reset = Some(segment);
        }
        self.state = State::Failed;
        self.pending = Pending::default();
    }

    fn wake_at(&self) -> u64 {
        (self.config.notsent_lowat.min(self.config.sndbuf) / 2).max(1)
    }

    fn note_writable(&mut self) {
        if self.short && self.writable() >= self.wake_at() {
            self.short = false;
            self.pending.writable = true;
        }
    }

    fn fail(&mut self, error: Error) {
        self.state = State::Failed;
        self.pending = Pending { failed: Some(error), ..Pending::default() };
    }
}
