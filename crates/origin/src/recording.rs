//! A recorded page as a site: which recorded response answers a request.

use std::cmp::Ordering;
use std::ops::Deref;

use base::{BodyRange, RequestHead, ResponseHead};
use page::{Page, Resource, ResourceId};

use crate::{Answer, Site, Think};

/// How a request was recognised among the recorded ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Tier {
    /// Method, path and query are the recorded ones.
    Exact,
}

/// A recorded page, or one host of it, as a [`Site`].
///
/// Where a page asked for the same thing several times, its responses are given in their recorded order, and the last
/// one from then on. The answer's body is a [`BodyRange`] whose source is the resource's number.
pub struct Recording<P> {
    page: P,
    think: Think,
    /// By path and method, then in recorded order.
    entries: Vec<Entry>,
}

/// One recorded response.
struct Entry {
    resource: ResourceId,
    /// In the first of several answers to the same request: how many of them were given.
    given: u32,
}

/// A recorded response that was found for a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    resource: ResourceId,
    tier: Tier,
}

impl<P: Deref<Target = Page>> Recording<P> {
    /// Host number `host` of `page`, whatever authority is asked for.
    pub fn of_host(page: P, host: u32, think: Think) -> Self {
        let resources = (0..).zip(&page.resources).filter(|(_, r)| r.host == host);
        let mut entries: Vec<_> = resources.map(|(resource, _)| Entry { resource, given: 0 }).collect();
        let key = |entry: &Entry| &page.resources[entry.resource as usize];
        entries.sort_by(|a, b| compare(key(a), &key(b).method, &key(b).path)); // stable: recorded order stays
        Self { page, think, entries }
    }

    fn find(&mut self, method: &[u8], path: &[u8]) -> Option<Found> {
        let to = |e: &Entry| compare(&self.page.resources[e.resource as usize], method, path);
        let first = self.entries.partition_point(|e| to(e) == Ordering::Less);
        let count = self.entries[first..].iter().take_while(|e| to(e) == Ordering::Equal).count();
        if count == 0 {
            return None;
        }
        let given = self.entries[first].given as usize;
        self.entries[first].given += 1;
        let entry = &self.entries[first + given.min(count - 1)];
        Some(Found { resource: entry.resource, tier: Tier::Exact })
    }
}

fn compare(resource: &Resource, method: &[u8], path: &[u8]) -> Ordering {
    (&*resource.path, &*resource.method).cmp(&(path, method))
}

impl<P: Deref<Target = Page>> Site for Recording<P> {
    type Upload = Option<Found>;

    fn begin(&mut self, request: &RequestHead) -> Option<Found> {
        self.find(&request.method, &request.path)
    }

    fn answer(&mut self, _: &RequestHead, found: Option<Found>) -> Answer {
        let Some(Found { resource, tier }) = found else { return Answer::bare(404) };
        let recorded = &self.page.resources[resource as usize];
        // What was recorded may be the length of another representation, or absent: the engine writes the true one.
        let fields =
            recorded.response.iter().filter(|f| !f.name.eq_ignore_ascii_case(b"content-length")).cloned();
        let head = ResponseHead { status: recorded.status, fields: fields.collect() };
        let body = BodyRange { source: resource, start: 0, len: recorded.body_len };
        let think = match self.think {
            Think::Recorded => recorded.think,
            Think::Fixed(time) => time,
        };
        Answer { think, matched: Some(tier), ..Answer::new(head, body.into()) }
    }
}
