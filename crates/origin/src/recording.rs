//! A recorded page as a site: which recorded response answers a request.
//!
//! What its bodies are made of is in `recording/content.rs`, what is pushed in `recording/pushes.rs`, what is hinted at in
//! `recording/hints.rs`, parts of bodies in `recording/range.rs`, what is answered with 304 in `recording/conditional.rs`.

mod conditional;
mod content;
mod hints;
mod pushes;
mod range;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Deref;

use base::{BodyRange, RequestHead, ResponseHead};
use page::{Host, Page, Resource, ResourceId};

use crate::matching::{Fit, Query, split};
use crate::{Answer, Faults, Matching, Site, Think, Tier};
use content::Content;
use hints::Hints;

/// A recorded page, or one host of it, as a [`Site`].
///
/// A request is recognised by host, method, path and query, as far from the recorded ones as its [`Matching`] allows.
/// Where a page asked for the same thing several times, its responses are given in their recorded order, and the last
/// one from then on. Anything else gets 404. A request that shows the recorded `ETag`, or without one the recorded `Last-Modified`, gets
/// 304: a recording does not change.
///
/// As it is made, it is for the virtual world: a body is a [`BodyRange`] whose source is the resource's number, and the
/// fields are the recorded ones less `Content-Length`. [Give it bodies](Self::with_bodies), and it is for the live world.
pub struct Recording<P> {
    page: P,
    served: Served,
    think: Think,
    matching: Matching,
    /// By host, path and method, then in recorded order.
    entries: Vec<Entry>,
    /// In the live world.
    content: Option<Content>,
    /// What goes with a resource's answer.
    pushes: BTreeMap<ResourceId, Vec<ResourceId>>,
    hints: Option<Hints>,
    /// What breaks, and how often each resource was asked for.
    faults: Option<(Faults, BTreeMap<ResourceId, u32>)>,
}

/// Which of the page's hosts are served.
enum Served {
    /// All, told apart by the authority, scheme and port as far as that goes.
    All,
    /// This one, whatever authority is asked for.
    One(u32),
    /// These, told apart by the authority.
    Sharing(Vec<u32>),
}

impl Served {
    fn has(&self, host: u32) -> bool {
        match self {
            Served::All => true,
            Served::One(one) => *one == host,
            Served::Sharing(hosts) => hosts.contains(&host),
        }
    }
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
    /// The recorded one.
    pub resource: ResourceId,
    /// How it was found.
    pub tier: Tier,
}

/// What entries are ordered by. The path first: a query is looked for among those of its path.
type Key<'a> = (u32, &'a [u8], &'a [u8]);

fn key(resource: &Resource) -> Key<'_> {
    (resource.host, &resource.path, &resource.method)
}

impl<P: Deref<Target = Page>> Recording<P> {
    /// All hosts of `page`, told apart by the request's authority.
    ///
    /// A port that was not recorded is ignored, and so is the scheme if the host was recorded with the other one only:
    /// a recording may be served from any port, in the clear or over TLS. An IP address, `localhost` or nothing means the
    /// page's own host. Other authorities than the recorded ones get 404.
    pub fn new(page: P, think: Think, matching: Matching) -> Self {
        Self::with(page, Served::All, think, matching)
    }

    /// Host number `host` of `page`, whatever authority is asked for, and exactly what was recorded.
    pub fn of_host(page: P, host: u32, think: Think) -> Self {
        Self::with(page, Served::One(host), think, Matching::Exact)
    }

    /// These hosts of `page`, which share a server, and exactly what was recorded. Who asks for another is answered 421 (RFC 9110
    /// §15.5.20).
    pub fn of_hosts(page: P, hosts: Vec<u32>, think: Think) -> Self {
        Self::with(page, Served::Sharing(hosts), think, Matching::Exact)
    }

    fn with(page: P, served: Served, think: Think, matching: Matching) -> Self {
        let resources = (0..).zip(&page.resources).filter(|(_, r)| served.has(r.host));
        let mut entries: Vec<_> = resources.map(|(resource, _)| Entry { resource, given: 0 }).collect();
        let of = |entry: &Entry| key(&page.resources[entry.resource as usize]);
        entries.sort_by(|a, b| of(a).cmp(&of(b))); // stable: recorded order stays
        let pushes = BTreeMap::new();
        Self { page, served, think, matching, entries, content: None, pushes, hints: None, faults: None }
    }

    /// The same, with answers that break.
    pub fn with_faults(mut self, faults: Faults) -> Self {
        self.faults = (!faults.is_empty()).then(|| (faults, BTreeMap::new()));
        self
    }

    /// What was asked for more often than it was recorded, and how many times more.
    pub fn repeats(&self) -> impl Iterator<Item = (ResourceId, u32)> {
        let of = |entry: &Entry| key(&self.page.resources[entry.resource as usize]);
        self.entries.chunk_by(move |a, b| of(a) == of(b)).filter_map(|same| {
            let more = same[0].given.saturating_sub(same.len() as u32);
            (more > 0).then_some((same[0].resource, more))
        })
    }

    /// The page served.
    pub fn page(&self) -> &Page {
        &self.page
    }

    /// The recorded response that a request gets; if it was recorded several times, the next in turn.
    pub fn find(&mut self, request: &RequestHead) -> Option<Found> {
        let host = match &self.served {
            Served::One(host) => *host,
            Served::All => host_of(&self.page, &request.scheme, &request.authority)?,
            Served::Sharing(_) => self.sharing(&request.authority)?,
        };
        if let Some(resource) = self.next((host, &request.path, &request.method)) {
            return Some(Found { resource, tier: Tier::Exact });
        }
        if self.matching == Matching::Exact {
            return None;
        }
        let head = request.method == "HEAD";
        self.find_close(host, &request.path, &request.method)
            .or_else(|| head.then(|| self.find_close(host, &request.path, b"GET")).flatten())
    }

    /// Of the hosts that share a server, the one that is meant.
    fn sharing(&self, authority: &[u8]) -> Option<u32> {
        let Served::Sharing(hosts) = &self.served else { return None };
        let named =
            |h: &&u32| self.page.hosts[**h as usize].authority().as_bytes().eq_ignore_ascii_case(authority);
        hosts.iter().find(named).copied()
    }

    /// The entry of this key whose turn it is.
    fn next(&mut self, wanted: Key<'_>) -> Option<ResourceId> {
        let to = |e: &Entry| key(&self.page.resources[e.resource as usize]).cmp(&wanted);
        let first = self.entries.partition_point(|e| to(e) == Ordering::Less);
        let count = self.entries[first..].iter().take_while(|e| to(e) == Ordering::Equal).count();
        if count == 0 {
            return None;
        }
        let given = self.entries[first].given as usize;
        self.entries[first].given += 1;
        Some(self.entries[first + given.min(count - 1)].resource)
    }

    /// The best fit among the recorded requests of the same path.
    fn find_close(&mut self, host: u32, path: &[u8], method: &[u8]) -> Option<Found> {
        let (bare, query) = split(path);
        let asked = Query::new(query.unwrap_or_default());
        let mut best: Option<(Fit, ResourceId)> = None;
        let entries = &self.entries;
        let resource = |e: &Entry| &self.page.resources[e.resource as usize];
        // A path with a query stands apart from the same without one, but behind it.
        let first = entries.partition_point(|e| (resource(e).host, &*resource(e).path) < (host, bare));
        let candidates = entries[first..].iter().take_while(|e| {
            let r = resource(e);
            r.host == host && r.path.starts_with(bare)
        });
        for entry in candidates.filter(|e| resource(e).method == method) {
            let (recorded, query) = split(&resource(entry).path);
            if recorded != bare {
                continue;
            }
            let fit = asked.fit(&Query::new(query.unwrap_or_default()));
            let better = best.as_ref().is_none_or(|(so_far, id)| {
                fit.is_better(so_far) || (!so_far.is_better(&fit) && entry.resource < *id)
            });
            if better {
                best = Some((fit, entry.resource));
            }
        }
        let (Fit { tier, .. }, resource) = best?;
        let recorded = self.page.resources[resource as usize].path.clone();
        let resource = self.next((host, &recorded, method))?;
        Some(Found { resource, tier })
    }

    /// The answer that was recorded as this resource.
    fn recorded(&self, resource: ResourceId) -> Answer {
        let recorded = &self.page.resources[resource as usize];
        let think = match self.think {
            Think::Recorded => recorded.think,
            Think::Fixed(time) => time,
        };
        let (fields, body) = match &self.content {
            Some(content) => content.answer(resource, recorded),
            None => {
                // What was recorded may be the length of another representation, or absent: the engine writes the
                // true one.
                let is_length = |name: &[u8]| name.eq_ignore_ascii_case(b"content-length");
                let fields = recorded.response.iter().filter(|f| !is_length(&f.name)).cloned();
                (fields.collect(), BodyRange { source: resource, start: 0, len: recorded.body_len }.into())
            }
        };
        Answer { think, ..Answer::new(ResponseHead { status: recorded.status, fields }, body) }
    }
}

impl<P: Deref<Target = Page>> Site for Recording<P> {
    type Upload = Option<Found>;

    fn begin(&mut self, request: &RequestHead) -> Option<Found> {
        self.find(request)
    }

    fn answer(&mut self, request: &RequestHead, found: Option<Found>) -> Answer {
        let Some(Found { resource, tier }) = found else {
            let shares = matches!(self.served, Served::Sharing(_));
            let misdirected = shares && self.sharing(&request.authority).is_none();
            return Answer::bare(if misdirected { 421 } else { 404 });
        };
        let pushes = if request.method == "GET" { self.pushes_with(resource, request) } else { Vec::new() };
        let whole = self.recorded(resource);
        // RFC 9110 §13.2.2: these conditions go before the range.
        let mut answer = if conditional::is_unmodified(request, &self.page.resources[resource as usize]) {
            let head = ResponseHead { status: 304, fields: conditional::fields(&whole.head.fields) };
            Answer { head, body: BodyRange::filler(0).into(), ..whole }
        } else {
            range::part(request, whole)
        };
        self.hint(resource, request, &mut answer);
        if let Some((faults, asked)) = &mut self.faults {
            let n = asked.entry(resource).or_default();
            answer.broken = faults.answer(&self.page, resource, &answer.body, *n);
            *n += 1;
        }
        Answer { matched: Some(tier), pushes, ..answer }
    }
}

/// The recorded host that a request's authority means.
fn host_of(page: &Page, scheme: &[u8], authority: &[u8]) -> Option<u32> {
    let authority = std::str::from_utf8(authority).ok()?;
    let (name, port) = match authority.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port.parse().ok()),
        _ => (authority, None),
    };
    let tls = scheme == b"https";
    let port = port.unwrap_or(if tls { 443 } else { 80 });
    let rank = |h: &Host| (h.port == port && h.scheme_tls == tls, h.scheme_tls == tls, h.port == port);
    let named = (0..).zip(&page.hosts).filter(|(_, h)| h.name.eq_ignore_ascii_case(name));
    // Of equals the first: `max_by_key` would take the last.
    let best = named.reduce(|a, b| if rank(b.1) > rank(a.1) { b } else { a });
    best.map(|(id, _)| id)
        .or_else(|| is_local(name).then(|| page.resources.first().map(|r| r.host)).flatten())
}

/// Whether a name is none that a page could mean by another site.
fn is_local(name: &str) -> bool {
    let address = name.trim_start_matches('[').trim_end_matches(']');
    let lower = name.to_ascii_lowercase();
    name.is_empty()
        || address.parse::<IpAddr>().is_ok()
        || lower == "localhost"
        || lower.ends_with(".localhost")
}

#[cfg(test)]
mod tests;
