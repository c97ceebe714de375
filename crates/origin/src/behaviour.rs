//! Servers that are not good at HTTP/1.1: at pipelines, and at connections that nobody uses. What clients have to put up with,
//! on purpose and in a controlled dose. SPDY is not affected.

use base::{Chunk, Duration, Instant};
use bytes::Bytes;

use crate::Site;
use crate::connection::{Connection, Exchange, State};

/// What a server does with a request that comes while another has no answer yet.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Pipelines {
    /// It answers in order, as RFC 9112 §9.3.2 asks.
    #[default]
    Well,
    /// It takes this much longer for each of them.
    Stalling(Duration),
    /// It answers it before the one that came before, where both have the same method: each client takes the other's answer
    /// for its own.
    Reordering,
    /// It sends nonsense in the place of its answer, and closes.
    Corrupting,
    /// It throws it away, and closes after the answer before.
    Refusing,
    /// It throws it away, and says nothing: it does not know of pipelines at all, and reads a request at a time.
    Ignoring,
}

/// What a server does with a connection on which nothing happens.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Idle {
    /// It keeps it.
    #[default]
    Kept,
    /// It closes it after this time.
    Closed(Duration),
    /// It sends a 408 after this time (RFC 9110 §15.5.9), and closes it.
    Answered408(Duration),
}

/// How a server behaves.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Behaviour {
    /// At pipelines.
    pub pipelines: Pipelines,
    /// At idle connections; one that was never used is idle from when it was accepted.
    pub idle: Idle,
    /// After how many answers it closes a connection without a word beforehand. At least 1.
    pub closes_after: Option<u32>,
}

/// What a 408 is to a client that asked for nothing.
const TIMED_OUT: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// A connection's behaviour, and where it stands.
pub(crate) struct Conduct {
    behaviour: Behaviour,
    answers: u32,
    idle_since: Instant,
    /// To be sent after all that the engine has to send.
    last_words: Option<Bytes>,
    /// Nothing more is taken.
    pub(crate) cut: bool,
    /// Nothing more is answered, and nothing said about it.
    mute: bool,
}

impl Conduct {
    pub(crate) fn take_last_words(&mut self) -> Option<Chunk> {
        self.last_words.take().map(Chunk::Bytes)
    }

    fn idle_limit(&self) -> Option<(Duration, Option<Bytes>)> {
        match self.behaviour.idle {
            Idle::Kept => None,
            Idle::Closed(after) => Some((after, None)),
            Idle::Answered408(after) => Some((after, Some(Bytes::from_static(TIMED_OUT)))),
        }
    }
}

impl<S: Site> Connection<S> {
    /// The same, behaving as told from `now` on, when it was accepted.
    pub fn with_behaviour(mut self, now: Instant, behaviour: Behaviour) -> Self {
        let conduct =
            Conduct { behaviour, answers: 0, idle_since: now, last_words: None, cut: false, mute: false };
        self.conduct = Some(conduct);
        self.drained = true; // there is nothing to send yet
        self
    }

    /// Whether what comes is not looked at any more.
    pub(crate) fn is_deaf(&self) -> bool {
        self.conduct.as_ref().is_some_and(|c| c.cut || c.mute)
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.conduct.as_ref().is_some_and(|c| c.cut)
    }

    /// Something has happened on the connection.
    pub(crate) fn stir(&mut self, now: Instant) {
        if let Some(conduct) = &mut self.conduct {
            conduct.idle_since = now;
        }
    }

    /// The youngest request is complete.
    pub(crate) fn misorder(&mut self) {
        let Some(conduct) = &self.conduct else { return };
        let [.., before, youngest] = self.exchanges.make_contiguous() else { return };
        let State::Think { until, .. } = &mut youngest.state else { return };
        match conduct.behaviour.pipelines {
            Pipelines::Stalling(longer) => *until += longer,
            Pipelines::Reordering if before.request.method == youngest.request.method => {
                std::mem::swap(before, youngest);
            }
            _ => {}
        }
    }

    /// An answer is about to be given; whether it is withheld, for good.
    pub(crate) fn withhold(&mut self, exchange: &Exchange<S::Upload>) -> bool {
        let Some(conduct) = &self.conduct else { return false };
        match conduct.behaviour.pipelines {
            Pipelines::Corrupting if exchange.follows => {
                self.cut(Some(Bytes::from_static(b"\0corrupted\r\n\r\n")));
            }
            Pipelines::Refusing if exchange.follows => self.cut(None),
            Pipelines::Ignoring if exchange.follows => self.mute(),
            _ => return false,
        }
        true
    }

    /// An answer was given.
    pub(crate) fn count_answer(&mut self, now: Instant) {
        self.stir(now);
        let Some(conduct) = &mut self.conduct else { return };
        conduct.answers += 1;
        if conduct.behaviour.closes_after.is_some_and(|most| conduct.answers >= most) {
            self.cut(None);
        }
    }

    /// Answers nothing more, and closes when all is sent.
    fn cut(&mut self, last_words: Option<Bytes>) {
        self.exchanges.clear();
        let conduct = self.conduct.as_mut().expect("only what has a behaviour is cut");
        (conduct.cut, conduct.last_words) = (true, last_words);
        self.drained = false;
    }

    /// Answers nothing more, and stays.
    fn mute(&mut self) {
        self.exchanges.clear();
        self.conduct.as_mut().expect("only what has a behaviour falls silent").mute = true;
    }

    /// When an idle connection is to be ended.
    pub(crate) fn idle_deadline(&self) -> Option<Instant> {
        let conduct = self.conduct.as_ref().filter(|c| !c.cut)?;
        let (after, _) = conduct.idle_limit()?;
        self.exchanges.is_empty().then(|| conduct.idle_since + after)
    }

    pub(crate) fn mind_idleness(&mut self, now: Instant) {
        if self.idle_deadline().is_some_and(|due| due <= now) {
            let limit = self.conduct.as_ref().and_then(Conduct::idle_limit);
            self.cut(limit.and_then(|(_, last_words)| last_words));
        }
    }
}

#[cfg(test)]
mod tests;
