//! The event queue, ordered by time and then by the order in which events were asked for: the order is total, so that a
//! run has exactly one course.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use base::Instant;

use crate::names::Query;

/// Something that happens at a moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Event {
    /// The access link towards the client has a packet ready.
    Down,
    /// The access link from the client has a packet ready.
    Up,
    /// A packet has covered the host's own distance and is at the server.
    AtServer { host: u32, ipv6: bool },
    /// A packet has covered the host's own distance and enters the access link.
    AtLink { host: u32, ipv6: bool },
    /// A timer of one end of a connection.
    End { connection: u32, side: Side },
    /// A server has thought about an answer.
    Origin { connection: u32 },
    /// The browser's timer.
    Browser,
    /// The name server answers.
    NameServer(Query),
    /// The resolver looks whether it must ask again.
    Lookup(Query),
    /// A name is known without a question.
    Resolved(Query),
    /// The client goes over to another network.
    NetworkChange,
    /// The application ends, and is started again.
    Restart,
}

/// An end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Side {
    Client,
    Server,
}

#[derive(Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    /// The link's two events, of which each packet moves one: they are too many, and each too alone, for the heap.
    down: Option<(Instant, u64)>,
    up: Option<(Instant, u64)>,
    pushed: u64,
}

impl EventQueue {
    pub(crate) fn push(&mut self, at: Instant, event: Event) {
        self.heap.push(Reverse((at, self.pushed, event)));
        self.pushed += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<(Instant, Event)> {
        let key = |order: Option<(Instant, u64)>| order.unwrap_or((Instant::MAX, u64::MAX));
        let (down, up) = (key(self.down), key(self.up));
        if let Some(Reverse((at, order, _))) = self.heap.peek()
            && (*at, *order) < down.min(up)
        {
            return self.heap.pop().map(|Reverse((at, _, event))| (at, event));
        }
        let (slot, event) = if down < up { (&mut self.down, Event::Down) } else { (&mut self.up, Event::Up) };
        slot.take().map(|(at, _)| (at, event))
    }

    /// Asks for [`Event::Down`] at `deadline`, unless it comes no later.
    pub(crate) fn arm_down(&mut self, deadline: Option<Instant>) {
        Self::arm_link(&mut self.down, &mut self.pushed, deadline);
    }

    /// Asks for [`Event::Up`] at `deadline`, unless it comes no later.
    pub(crate) fn arm_up(&mut self, deadline: Option<Instant>) {
        Self::arm_link(&mut self.up, &mut self.pushed, deadline);
    }

    fn arm_link(slot: &mut Option<(Instant, u64)>, pushed: &mut u64, deadline: Option<Instant>) {
        if let Some(at) = deadline.filter(|at| slot.is_none_or(|(set, _)| *at < set)) {
            *slot = Some((at, *pushed));
            *pushed += 1;
        }
    }

    /// Asks for `event` at `deadline`, unless `alarm` is set to go off no later.
    pub(crate) fn arm(&mut self, alarm: &mut Alarm, deadline: Option<Instant>, event: Event) {
        let Some(at) = deadline else { return };
        if alarm.set_for.is_none_or(|set| at < set) {
            alarm.set_for = Some(at);
            self.push(at, event);
        }
    }
}

/// One recurring timer. Deadlines move at almost every packet, and mostly to later; so the event that is queued stays where
/// it is, and whoever it wakes looks whether the deadline has really come.
#[derive(Clone, Copy, Default)]
pub(crate) struct Alarm {
    set_for: Option<Instant>,
}

impl Alarm {
    /// Whether an event at `now` is this alarm's; one that an earlier deadline has overtaken is not.
    pub(crate) fn goes_off(&mut self, now: Instant) -> bool {
        self.set_for.take_if(|at| *at <= now).is_some()
    }
}
