//! Names that are looked up before anybody asks for their hosts: few at once, and not at all if that takes too long
//! (chrome/browser/net/predictor.cc, StartSomeQueuedResolutions).

use std::collections::{BTreeSet, VecDeque};

use base::{Duration, Instant};

use crate::resolver::Answer;
use crate::{Action, Client};

/// `kMaxSpeculativeParallelResolves`.
const PARALLEL_MAX: usize = 3;
/// `kMaxSpeculativeResolveQueueDelayMs`: eight look-ups of 500 ms, three at once.
const WAIT_MAX: Duration = Duration::from_millis(500 * 8 / 3);

#[derive(Default)]
pub(crate) struct Lookahead {
    /// Hosts, with when they were queued.
    queue: VecDeque<(Instant, u32)>,
    /// Names under way, by their first hosts.
    under_way: BTreeSet<u32>,
}

impl Client {
    /// Looks a host's name up when there is time for it.
    pub(crate) fn look_ahead(&mut self, now: Instant, host: u32) {
        self.lookahead.queue.push_back((now, host));
        self.start_lookups(now);
    }

    fn start_lookups(&mut self, now: Instant) {
        while self.lookahead.under_way.len() < PARALLEL_MAX {
            let Some((queued, host)) = self.lookahead.queue.pop_front() else { return };
            if now.since(queued) >= WAIT_MAX {
                // What has waited so long holds up what is urgent: the whole queue is dropped.
                self.lookahead.queue.clear();
                return;
            }
            if let Answer::Ask = self.resolver.ask(now, host) {
                self.pools[host as usize].preresolved = true;
                self.lookahead.under_way.insert(self.resolver.name(host));
                self.actions.push_back(Action::Resolve { host });
            }
        }
    }

    /// A look-up has ended, perhaps one of these.
    pub(crate) fn looked_up(&mut self, now: Instant, host: u32) {
        if self.lookahead.under_way.remove(&self.resolver.name(host)) {
            self.start_lookups(now);
        }
    }
}
