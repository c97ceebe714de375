//! What is asked for before the page comes to it: because a document's head hints at it ([`page::hint`]), or because the page needed
//! it when it was last visited.
//!
//! It is asked for as it would be anyway: with its own priority, of the same host, within the same limits, and of the cache first. When
//! the page comes to it, what has come of it is there and the rest follows; it is never asked for twice, and if it has failed, it has
//! failed. What the page never comes to is wasted. That may be something that the page does not have (any more): then the server has the
//! word on it.
//!
//! What is remembered of a visit is what Chrome's predictor of 2012 kept (`resource_prefetch_predictor.cc`): style sheets, scripts, images
//! and fonts that were asked for with GET before `onload` and whose answers were not `no-store`. Crude: Chrome waited until it had
//! seen something twice, and in most of the visits; here the last visit counts.

use std::collections::BTreeMap;

use base::{Instant, RequestHead, ResponseHead};
use client::{Ask, Event, RequestId};
use page::cache::Reuse;
use page::hint::{Form, Target};
use page::{Cause, Kind, Resource};

use crate::{Browser, Progress, Record, priority};

/// The most that is asked for because of an earlier visit.
const PREFETCHES_MAX: usize = 1_000;

/// Why something was asked for before the page came to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Foresight {
    /// A document's head hinted at it.
    Hint,
    /// The page needed it when it was last visited.
    Prefetch,
}

/// What is known of a request that was made before the page came to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ahead {
    /// Why.
    pub by: Foresight,
    /// When it was made.
    pub asked: Instant,
    /// When the page came to it; `None` if it did not.
    pub needed: Option<Instant>,
}

/// Something that a page needed when it was visited.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// Its URL.
    pub url: String,
    /// What it was.
    pub kind: Kind,
}

/// What foresight has cost and brought: the client's, and that of servers who push.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AheadTally {
    /// Requests made before the page came to them.
    pub asked: u32,
    /// Pushes.
    pub pushed: u32,
    /// Of these requests, those that the page came to, and of the pushes those that answered a request.
    pub used: u32,
    /// Bytes of the others, as far as they have come: heads on the wire, and bodies.
    pub wasted_bytes: u64,
}

/// What was asked for ahead of need.
#[derive(Default)]
pub(crate) struct Foreseen {
    /// Hints that are heeded.
    form: Option<Form>,
    /// What the page needed when it was last visited.
    known: Vec<Known>,
    early: BTreeMap<RequestId, Early>,
    /// What the page does not have, and bytes of the answer's body; by its number less that of the first.
    strangers: Vec<u64>,
}

struct Early {
    ahead: Ahead,
    /// What has come of it and the page does not know yet.
    held: Vec<Event>,
}

impl Foreseen {
    /// What a document's request says of hints.
    pub(crate) fn mark(&self, kind: Kind, head: &mut RequestHead) {
        let field = self.form.and_then(Form::request_field).filter(|_| kind == Kind::Document);
        if let Some((name, value)) = field {
            head.fields.push(name, value);
        }
    }

    /// Keeps what has come of something that the page has not come to; gives back what is to be told.
    pub(crate) fn hold(&mut self, id: RequestId, event: Event) -> Option<Event> {
        match self.early.get_mut(&id) {
            Some(early) if early.ahead.needed.is_none() => {
                early.held.push(event);
                None
            }
            _ => Some(event),
        }
    }

    /// The page comes to something: what has come of it, if it was asked for ahead.
    pub(crate) fn need(&mut self, now: Instant, id: RequestId) -> Option<Vec<Event>> {
        let early = self.early.get_mut(&id)?;
        early.ahead.needed = Some(now);
        Some(std::mem::take(&mut early.held))
    }

    pub(crate) fn ahead(&self, id: RequestId) -> Option<Ahead> {
        self.early.get(&id).map(|early| early.ahead)
    }
}

impl Browser<'_> {
    /// Asks for what documents' heads hint at, in this form; to be said before the start.
    pub fn heed_hints(&mut self, form: Option<Form>) {
        self.foreseen.form = form;
    }

    /// Asks with the document for what the page in front needed when it was last visited, in this order; to be said before the start. Hosts
    /// that the page does not have are passed over.
    pub fn prefetch(&mut self, mut known: Vec<Known>) {
        known.truncate(PREFETCHES_MAX);
        self.foreseen.known = known;
    }

    /// What the page in front has needed, and might be asked for with its document at the next visit, in the order in which it came to
    /// it; see the module `foresight` for what is remembered.
    pub fn needed(&self) -> Vec<Known> {
        let loader = &self.tabs[0].loader;
        let onload = loader.moments().load.unwrap_or(Instant::MAX);
        let page = self.page;
        let mut needed: Vec<_> = (0..).zip(&page.resources).filter(|(_, r)| is_kept(r)).collect();
        needed.retain(|(id, _)| loader.record(*id).discovered.is_some_and(|at| at <= onload));
        needed.sort_by_key(|(id, _)| (loader.record(*id).discovered, *id));
        let mut out: Vec<Known> = Vec::new();
        for (_, resource) in needed {
            let (secured, authority) = &self.hosts[resource.host as usize];
            let (scheme, path) = (scheme(*secured), String::from_utf8_lossy(&resource.path));
            let url = format!("{scheme}://{}{path}", String::from_utf8_lossy(authority));
            if out.iter().all(|known| known.url != url) {
                out.push(Known { url, kind: resource.kind });
            }
        }
        out
    }

    /// What foresight has cost and brought so far.
    pub fn ahead_tally(&self) -> AheadTally {
        let pushes = self.client.push_tally();
        let mut tally = AheadTally {
            asked: 0,
            pushed: pushes.pushed,
            used: pushes.claimed,
            wasted_bytes: pushes.unclaimed_bytes,
        };
        let head = |id: RequestId| self.client.request(id).map_or(0, |request| request.head_bytes_down);
        for (id, early) in &self.foreseen.early {
            tally.asked += 1;
            match early.ahead.needed {
                Some(_) => tally.used += 1,
                None => tally.wasted_bytes += head(*id) + self.body_bytes[*id as usize],
            }
        }
        for (id, body_bytes) in (self.page.resources.len() as RequestId..).zip(&self.foreseen.strangers) {
            tally.asked += 1;
            tally.wasted_bytes += head(id) + body_bytes;
        }
        tally
    }

    /// The document is asked for: so is what the page needed last time.
    pub(crate) fn begin_prefetches(&mut self, now: Instant) {
        for known in std::mem::take(&mut self.foreseen.known) {
            if let Some(target) = Target::parse(&known.url) {
                self.ask_ahead(now, 0, &target, Foresight::Prefetch, known.kind);
            }
        }
    }

    /// A document's head has arrived: what it hints at is asked for.
    pub(crate) fn heed(&mut self, now: Instant, id: RequestId, head: &ResponseHead) {
        let Some(form) = self.foreseen.form else { return };
        let tab = self.tab_of(id);
        let Some(resource) = self.tabs[tab].resource(id).filter(|r| r.kind == Kind::Document) else { return };
        let (secured, authority) = &self.hosts[self.tabs[tab].host(resource) as usize];
        let own = [scheme(*secured).as_bytes(), b"://", authority, &resource.path].concat();
        for target in form.parse(&head.fields, &String::from_utf8_lossy(&own)) {
            self.ask_ahead(now, tab, &target, Foresight::Hint, Kind::Other);
        }
    }

    /// Asks for something that a tab's page has not come to, unless it is there or under way. `kind` is what it is taken for if the page
    /// does not have it.
    fn ask_ahead(&mut self, now: Instant, tab: usize, target: &Target, by: Foresight, kind: Kind) {
        let named = |(secured, authority): &(bool, bytes::Bytes)| {
            target.scheme == scheme(*secured) && authority.eq_ignore_ascii_case(target.authority.as_bytes())
        };
        let front = &self.tabs[tab];
        let is_it = |resource: &Resource| {
            resource.method == "GET"
                && resource.cause != Cause::Beside
                && resource.path == target.path
                && named(&self.hosts[front.host(resource) as usize])
        };
        let all = (front.first..).zip(&front.page.resources).filter(|(_, resource)| is_it(resource));
        let mut ids = all.map(|(id, _)| id).peekable();
        if ids.peek().is_none() {
            let host = self.hosts.iter().position(named);
            return host.map_or((), |host| self.ask_stranger(now, host as u32, target, kind));
        }
        let untouched = |id: &RequestId| {
            front.record(*id).progress == Progress::Unknown
                && self.client.request(*id).is_none()
                && !self.kept.contains_key(id)
                && self.cache.get(*id as usize) != Some(&Reuse::Fresh)
        };
        let Some(id) = ids.find(untouched) else { return };
        let ask = front.ask(id - front.first, &self.hosts);
        let ahead = Ahead { by, asked: now, needed: None };
        self.foreseen.early.insert(id, Early { ahead, held: Vec::new() });
        self.ask(now, tab, id, ask);
    }

    /// Asks for something that the page does not have. Its number is behind those of all that it has.
    fn ask_stranger(&mut self, now: Instant, host: u32, target: &Target, kind: Kind) {
        let id = (self.page.resources.len() + self.foreseen.strangers.len()) as RequestId;
        self.foreseen.strangers.push(0);
        let head = RequestHead {
            method: "GET".into(),
            scheme: target.scheme.into(),
            authority: self.hosts[host as usize].1.clone(),
            path: target.path.clone().into(),
            fields: base::Fields::new(),
        };
        self.client.ask(now, id, Ask::new(host, head, priority(kind)));
    }

    /// Whether a request is for something that the page does not have; its bytes are counted, and nobody else hears of it.
    pub(crate) fn take_stranger(&mut self, id: RequestId, event: &Event) -> bool {
        let Some(n) = (id as usize).checked_sub(self.page.resources.len()) else { return false };
        if let (Event::Data { chunk, .. }, Some(bytes)) = (event, self.foreseen.strangers.get_mut(n)) {
            *bytes += chunk.len();
        }
        true
    }

    /// What became of a resource that was asked for ahead: it was discovered when it was asked for, and complete when it was, not when
    /// the page heard of it.
    pub(crate) fn foreseen_record(&self, id: RequestId, ahead: Ahead) -> Record {
        let record = self.record(id);
        let request = self.client.request(id);
        let complete = request.and_then(|r| r.timing.complete);
        let progress = match (ahead.needed, request) {
            (Some(_), _) | (None, None) => record.progress,
            (None, Some(_)) if complete.is_some() => Progress::Arrived,
            (None, Some(client::Request { error: Some(error), .. })) => Progress::Failed(error.to_string()),
            (None, Some(_)) => Progress::Asked,
        };
        Record { progress, discovered: Some(ahead.asked), complete, used: record.used }
    }
}

fn scheme(secured: bool) -> &'static str {
    if secured { "https" } else { "http" }
}

/// Whether something that a page has needed is remembered.
fn is_kept(resource: &Resource) -> bool {
    matches!(resource.kind, Kind::Style | Kind::Script | Kind::Image | Kind::Font)
        && resource.method == "GET"
        && resource.status == 200
        && resource.cause != Cause::Beside
        && !page::cache::is_no_store(resource)
}
