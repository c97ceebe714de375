//! Events that nobody has taken yet, and what the heads among them hold.

use std::collections::VecDeque;

use crate::{Event, StreamId};

/// A queue of events. Each head has a cost in bytes, so that what a peer says faster than it is taken can be bounded.
#[derive(Default)]
pub(super) struct Told {
    events: VecDeque<(Event, u32)>,
    heads: u64,
}

impl Told {
    /// Appends what is no head.
    pub(super) fn push(&mut self, event: Event) {
        self.events.push_back((event, 0));
    }

    /// Appends a head that holds `cost` bytes.
    pub(super) fn push_head(&mut self, event: Event, cost: u32) {
        self.events.push_back((event, cost));
        self.heads += u64::from(cost);
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        let (event, cost) = self.events.pop_front()?;
        self.heads -= u64::from(cost);
        Some(event)
    }

    /// Drops what is told of one stream.
    pub(super) fn forget(&mut self, id: StreamId) {
        let heads = &mut self.heads;
        self.events.retain_mut(|(event, cost)| {
            if let Event::GoAway { unprocessed: ids, .. } | Event::Closed { interrupted: ids } = event {
                ids.retain(|of| *of != id);
            }
            let kept = event.stream() != Some(id);
            if !kept {
                *heads -= u64::from(*cost);
            }
            kept
        });
    }

    /// What the heads in the queue hold, in bytes.
    pub(super) fn heads(&self) -> u64 {
        self.heads
    }
}
