//! Loads side by side: the page in front, and those behind it.
//!
//! A load's class weighs before a request's priority: whatever the page in front wants goes before anything that one behind
//! it wants, on every host and at every limit.

use base::Instant;

use crate::{Client, Priority, RequestId};

/// A load's number; the caller chooses it. What says nothing of its load belongs to load 0.
pub type LoadId = u32;

/// Whether somebody is looking at a load.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum LoadClass {
    /// Somebody is.
    #[default]
    Foreground,
    /// Nobody is: a tab behind, an update, a prefetch of pages.
    Background,
}

impl LoadClass {
    /// The SPDY priority of a request of `priority` in such a load. The levels below those of [`priority`](crate::priority),
    /// 5–7, are for loads in the background; what they want goes in three steps, so that they have an order too. SPDY/2
    /// has four levels only, so that background shares the last two.
    pub(crate) fn spdy_priority(self, priority: Priority) -> Priority {
        match self {
            LoadClass::Foreground => priority,
            LoadClass::Background => 5 + priority.min(4) / 2,
        }
    }
}

/// What is known of a load.
#[derive(Clone, Copy, Default)]
pub(crate) struct Load {
    pub(crate) class: LoadClass,
    /// Requests that others of the load have to wait for.
    pub(crate) blockers: u32,
}

impl Client {
    /// Says whether somebody is looking at a load; so it was for all until told. Requests that wait take their new places.
    /// One that is on its way stays as it is: SPDY knows no change of priority.
    pub fn set_load(&mut self, now: Instant, load: LoadId, class: LoadClass) {
        let entry = self.loads.entry(load).or_default();
        if std::mem::replace(&mut entry.class, class) == class {
            return;
        }
        for host in 0..self.hosts.len() as u32 {
            let waiting = std::mem::take(&mut self.pools[host as usize].waiting);
            waiting.into_iter().for_each(|(.., id)| self.enqueue(id));
        }
        self.service_stalled(now);
    }

    /// The class of the load that a request belongs to.
    pub(crate) fn load_class(&self, id: RequestId) -> LoadClass {
        let load = self.requests[id as usize].as_ref().expect("a request that was made").load;
        self.loads.get(&load).map_or(LoadClass::Foreground, |l| l.class)
    }
}
