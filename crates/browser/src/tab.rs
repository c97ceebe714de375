//! One of the pages that a browser loads: its loader, and how its resources and hosts are numbered at the client.

use base::{Instant, RequestHead};
use client::{Ask, RequestId};
use page::{Cause, Page, ResourceId};

use crate::{Config, Loader, Progress, Record, priority};

pub(crate) struct Tab<'p> {
    pub(crate) page: &'p Page,
    pub(crate) loader: Loader<'p>,
    pub(crate) started: Option<Instant>,
    /// The client's numbers of its hosts.
    hosts: Vec<u32>,
    /// The client's number of its first resource; the others follow.
    pub(crate) first: RequestId,
}

impl<'p> Tab<'p> {
    pub(crate) fn new(page: &'p Page, config: Config, hosts: Vec<u32>, first: RequestId) -> Self {
        Self { loader: Loader::new(page, config), started: None, hosts, first, page }
    }

    /// The client's number of a resource's host.
    pub(crate) fn host(&self, resource: &page::Resource) -> u32 {
        self.hosts[resource.host as usize]
    }

    /// The resource that a request is for, if it is one of its own.
    pub(crate) fn resource(&self, id: RequestId) -> Option<&'p page::Resource> {
        self.page.resources.get(id.checked_sub(self.first)? as usize)
    }

    /// Whether a request is for one of its resources.
    pub(crate) fn holds(&self, id: RequestId) -> bool {
        (self.first..self.first + self.page.resources.len() as RequestId).contains(&id)
    }

    /// Begins its load, if it has not begun.
    pub(crate) fn start(&mut self, now: Instant) {
        if self.started.is_none() {
            self.started = Some(now);
            self.loader.start(now);
        }
    }

    /// The next resource to ask for. `hosts` says of each of the client's hosts whether its connections are secured, and how a URL
    /// names it.
    pub(crate) fn poll_ask(&mut self, hosts: &[(bool, bytes::Bytes)]) -> Option<(RequestId, Ask)> {
        let id = self.loader.poll_fetch()?;
        Some((self.first + id, self.ask(id, hosts)))
    }

    /// What a resource is asked for with, by its number in the page.
    pub(crate) fn ask(&self, id: ResourceId, hosts: &[(bool, bytes::Bytes)]) -> Ask {
        let resource = &self.page.resources[id as usize];
        let host = self.host(resource);
        let (secured, authority) = &hosts[host as usize];
        let head = RequestHead {
            method: resource.method.clone(),
            scheme: if *secured { "https" } else { "http" }.into(),
            authority: authority.clone(),
            path: resource.path.clone(),
            fields: resource.request.clone(),
        };
        let ask = Ask::new(host, head, priority(resource.kind));
        Ask { body_len: resource.request_body_len, ..ask }
    }

    /// What a request is to pipelining, where that is on: of an XHR the head does not say that it is one.
    pub(crate) fn classed(&self, policy: Option<client::Pipelining>, id: RequestId, ask: Ask) -> Ask {
        let Some(policy) = policy else { return ask };
        let id = id - self.first;
        let xhr = self.page.resources[id as usize].kind == page::Kind::Xhr;
        let class = (xhr && !policy.xhr).then_some(client::Class::Solo);
        Ask { blocks: self.loader.is_in_head(id), class, ..ask }
    }

    /// What became of one of its resources.
    pub(crate) fn record(&self, id: RequestId) -> &Record {
        self.loader.record(id - self.first)
    }

    /// Whether the page is broken without one of its resources; see [`Loader::blocks`].
    pub(crate) fn blocks(&self, id: RequestId) -> bool {
        self.loader.blocks(id - self.first)
    }

    /// One of its resources will not be asked for: why.
    pub(crate) fn fail(&mut self, now: Instant, id: RequestId, why: &str) {
        self.loader.handle_failed(now, id - self.first, why.to_owned());
    }

    /// An earlier run of the application has left so much of an answer; whether that is all of it.
    pub(crate) fn tell_kept(&mut self, now: Instant, id: RequestId, known: &client::Interrupted) -> bool {
        let id = id - self.first;
        self.loader.handle_head(now, id);
        self.loader.handle_data(now, id, known.body_len);
        if known.whole {
            self.loader.handle_complete(now, id);
        }
        known.whole
    }

    /// The body of one of its resources is kept.
    pub(crate) fn complete_from_cache(&mut self, now: Instant, id: RequestId) {
        let id = id - self.first;
        let bytes = self.page.resources[id as usize].body_len;
        if bytes > 0 {
            self.loader.handle_data(now, id, bytes);
        }
        self.loader.handle_complete(now, id);
    }

    /// Something has happened to one of its requests.
    pub(crate) fn tell(&mut self, now: Instant, event: client::Event) {
        let first = self.first;
        match event {
            client::Event::Head { id, .. } => self.loader.handle_head(now, id - first),
            client::Event::Data { id, chunk } => self.loader.handle_data(now, id - first, chunk.len()),
            client::Event::Complete { id } => self.loader.handle_complete(now, id - first),
            client::Event::Failed { id, error } => {
                self.loader.handle_failed(now, id - first, error.to_string());
            }
        }
    }

    /// Why its load is not complete, if it is not.
    pub(crate) fn missing(&self, now: Instant) -> Option<String> {
        let records = (0..self.page.resources.len() as ResourceId).map(|id| (id, self.loader.record(id)));
        let failed = records.clone().find_map(|(id, record)| match &record.progress {
            Progress::Failed(why) => Some(format!("{}: {why}", self.page.resource_url(id))),
            _ => None,
        });
        if failed.is_some() || self.loader.is_finished() {
            return failed;
        }
        let own = records.filter(|(id, _)| self.page.resources[*id as usize].cause != Cause::Beside);
        let (all, open) = (own.clone().count(), own.filter(|(_, record)| record.used.is_none()).count());
        let after = now.since(Instant::ZERO).as_secs_f64();
        Some(format!("given up after {after} s with {open} of {all} resources not loaded"))
    }
}
