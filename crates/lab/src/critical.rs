//! Where a page load time went: the critical path, walked backwards from `onload`.
//!
//! At every moment of a load there is one thing that `onload` was waiting for. The walk starts at `onload` and asks
//! again and again what ended last before it, until it reaches the navigation's start. The stretches add up to the page
//! load time by construction. From the end to the beginning:
//!
//! * **Before `onload`**: the resource that was used last. Between its use and `onload` the browser computed.
//! * **Between its arrival and its use** a resource waited for its own computation, and for the main thread, or for
//!   what must be used before it. If the use of a script, a style sheet or a document lies within (or, for a deferred
//!   script, the arrival of its document), the walk goes on from the last of them, since the main thread does one thing
//!   after the other; what remains is *compute*.
//! * **Between first byte and arrival**: *receive*. **Between request and first byte**: *wait*, which is the round
//!   trip, the server's thinking, and whatever the server sent on the same connection first.
//! * **Between discovery and request**: *dns*, *connect* and *tls* as far as the request waited for them; what
//!   remains is *queued*, waiting for a connection.
//! * **Discovery**: by a document's scanner when the byte arrived that refers to it, so the walk goes on in the
//!   document's *receive*; or some time after a parent's use, which is *compute* (a timer counts as that, too), and the
//!   walk goes on from the parent's use.
//! * What was **asked for ahead** of its discovery and had arrived before it waited for the page to come to it: there the walk goes on as
//!   from a discovery. Otherwise it goes on from when it was asked for.
//!
//! One thing is an approximation: a reference that an inline script wrote is found when the parser gets there, and
//! what the parser waited for on its way (bytes, or scripts) is taken to be the last script or style sheet used before.

use page::{Cause, Kind, Page, ResourceId, ScriptMode};

use crate::result::{Phases, RequestRow};

/// Splits the page load time `plt_us` of a complete load. `rows` are the load's requests, in the order of `page`'s
/// resources; `None` if a row lacks what its `onload` cannot have lacked.
pub fn split(page: &Page, rows: &[RequestRow], plt_us: u64) -> Option<Phases> {
    let mut walk = Walk { page, rows, at: plt_us, phases: Phases::default() };
    let used = |row: &&RequestRow| row.used_us.filter(|used| !row.after_load && *used <= plt_us);
    let last = rows.iter().filter(|row| used(row).is_some()).max_by_key(|row| (used(row), row.index))?;
    let mut step = Step::Used(last.index);
    while walk.at > 0 {
        step = match step {
            Step::Used(id) => walk.used(id)?,
            Step::Arrived(id) => walk.arrived(id)?,
            Step::Discovered(id) => match walk.discovered(id)? {
                Some(step) => step,
                None => break,
            },
        };
    }
    // The navigation's own request is discovered at its start, so this is 0.
    walk.phases.queued_us += walk.at;
    Some(walk.phases)
}

/// Where the walk stands: at the end of a resource's use, within its arrival, or at its discovery.
#[derive(Clone, Copy, Debug)]
enum Step {
    Used(ResourceId),
    Arrived(ResourceId),
    Discovered(ResourceId),
}

struct Walk<'a> {
    page: &'a Page,
    rows: &'a [RequestRow],
    /// Everything after this moment is accounted for.
    at: u64,
    phases: Phases,
}

impl Walk<'_> {
    fn row(&self, id: ResourceId) -> Option<&RequestRow> {
        self.rows.get(id as usize).filter(|row| row.index == id)
    }

    /// Goes back to `to` and returns the stretch.
    fn back(&mut self, to: u64) -> u64 {
        let stretch = self.at.saturating_sub(to);
        self.at -= stretch;
        stretch
    }

    /// From a use back to the arrival, or to the last thing that the use waited for.
    fn used(&mut self, id: ResourceId) -> Option<Step> {
        let row = self.row(id)?;
        let (used, complete) = (row.used_us?, row.complete_us?);
        // What was there before the page came to it waited for the page, as if it had taken no time.
        let needed = row.needed_us.filter(|needed| *needed > complete);
        let awaited = self.awaited(id, needed.unwrap_or(complete), used);
        let (to, step) = match needed {
            _ if awaited.is_some() => awaited?,
            Some(needed) => (needed, Step::Discovered(id)),
            None => (complete, Step::Arrived(id)),
        };
        self.phases.compute_us += self.back(to);
        Some(step)
    }

    /// What ended last after `from` and until `to`, of all that can hold a use back. Things that take no time end at the
    /// same moment: of these, it is the one that arrived last, and after `from`, that let the others go.
    fn awaited(&self, id: ResourceId, from: u64, to: u64) -> Option<(u64, Step)> {
        let used = self.rows.iter().filter(|row| row.index != id && self.on_main_thread(row.index));
        let used = used.filter_map(|row| Some((row.used_us?, row.complete_us?, Step::Used(row.index))));
        let document = match self.page.resources.get(id as usize)?.cause {
            Cause::Parser { parent, script: ScriptMode::Defer, .. } => self.row(parent),
            _ => None,
        };
        let arrived = document.and_then(|row| row.complete_us.map(|at| (at, at, Step::Arrived(row.index))));
        used.chain(arrived)
            .filter(|(at, complete, _)| from < *at && (*at < to || *at == to && from < *complete))
            .max_by_key(|(at, complete, _)| (*at, *complete))
            .map(|(at, _, step)| (at, step))
    }

    /// Whether using this resource takes the main thread, or releases it to somebody.
    fn on_main_thread(&self, id: ResourceId) -> bool {
        let resource = &self.page.resources[id as usize];
        matches!(resource.kind, Kind::Document | Kind::Style | Kind::Script) || !resource.exec.is_zero()
    }

    /// From a moment within a response's arrival back to its request's discovery.
    fn arrived(&mut self, id: ResourceId) -> Option<Step> {
        let row = self.row(id)?;
        if row.sent_us.is_none() && row.cache.is_some() {
            return Some(Step::Discovered(id)); // it was there when it was asked for
        }
        let (sent, first_byte) = (row.sent_us?, row.first_byte_us?);
        let dns = (row.dns_start_us, row.dns_end_us);
        let connect = (row.connect_start_us, row.connect_end_us);
        let discovered = row.discovered_us;
        let tls = (Some(row.connect_end_us.unwrap_or(discovered)), row.tls_end_us);
        self.phases.receive_us += self.back(first_byte);
        self.phases.wait_us += self.back(sent);
        for (phase, (start, end)) in [(2, tls), (1, connect), (0, dns)] {
            let (Some(start), Some(end)) = (start, end) else { continue };
            self.phases.queued_us += self.back(end.max(discovered));
            let stretch = self.back(start.max(discovered));
            *[&mut self.phases.dns_us, &mut self.phases.connect_us, &mut self.phases.tls_us][phase] +=
                stretch;
        }
        self.phases.queued_us += self.back(discovered);
        Some(Step::Discovered(id))
    }

    /// From a discovery to what led to it; `None` within for the navigation.
    fn discovered(&mut self, id: ResourceId) -> Option<Option<Step>> {
        let resource = self.page.resources.get(id as usize)?;
        Some(match resource.cause {
            Cause::Root | Cause::Load { .. } | Cause::Beside => None,
            Cause::Redirect(parent) => Some(Step::Arrived(parent)),
            Cause::Completion { parent, .. } => {
                let used = self.row(parent)?.used_us?;
                self.phases.compute_us += self.back(used);
                Some(Step::Used(parent))
            }
            Cause::Parser { parent, .. } => {
                let row = self.row(parent)?;
                let (first_byte, complete) = (row.first_byte_us?, row.complete_us?);
                if !resource.scripted {
                    self.phases.compute_us += self.back(complete);
                    return Some(Some(Step::Arrived(parent)));
                }
                let from = if complete < self.at { complete } else { first_byte };
                match self.awaited(parent, from, self.at) {
                    Some((to, step)) => {
                        self.phases.compute_us += self.back(to);
                        Some(step)
                    }
                    None => {
                        self.phases.compute_us += self.back(complete);
                        Some(Step::Arrived(parent))
                    }
                }
            }
        })
    }
}

impl Phases {
    /// All parts together.
    pub fn total_us(&self) -> u64 {
        let Self { dns_us, connect_us, tls_us, queued_us, wait_us, receive_us, compute_us } = self;
        dns_us + connect_us + tls_us + queued_us + wait_us + receive_us + compute_us
    }
}

#[cfg(test)]
mod tests;
