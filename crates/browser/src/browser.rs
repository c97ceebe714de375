//! A page loader on its network stack.

use base::{Chunk, Duration, Instant, RequestHead};
use client::{Action, Client, ConnectionId, ConnectionRecord, Left};
use page::cache::{Reuse, reuse};
use page::{Cause, Page, ResourceId};

use crate::{Config, End, Loader, Moments, Progress, Record, Trouble, priority};

/// One resource of a page in one load.
#[derive(Clone, PartialEq, Debug)]
pub struct Request {
    /// How far it came, and when it was discovered, complete and used.
    pub record: Record,
    /// Phases of its last attempt; `None` if it was never asked for.
    pub timing: Option<client::Timing>,
    /// Priority asked for.
    pub priority: client::Priority,
    /// The connection that carried it.
    pub connection: Option<ConnectionId>,
    /// Bytes that its head took on the wire.
    pub head_bytes_up: u64,
    /// Bytes that the response's head took on the wire.
    pub head_bytes_down: u64,
    /// Bytes of the response's body that arrived.
    pub body_bytes: u64,
    /// What the cache had of it, if that was used.
    pub cached: Option<Cached>,
    /// How it went out; `None` if it was never asked for.
    pub sent_on: Option<client::SentOn>,
    /// Whether it had to wait for a connection in use; see [`client::Request::queued`].
    pub queued: bool,
}

/// How a response came out of the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cached {
    /// It was fresh: nothing was asked for.
    Fresh,
    /// The server was asked and said that it has not changed (304).
    Validated,
}

/// Why a request is not sent that an earlier run of the application had sent.
const SENT_BEFORE: &str = "it was sent before the application ended, and may have been applied";

/// A browser that loads one page: a [`Loader`] and a [`Client`], each of which hears at once what the other has to say.
///
/// What is left to the caller is what the client leaves to it. Call [`Browser::start`] or a `handle_*`; then, until neither has
/// any more, [`Browser::poll_dirty`] with [`Browser::poll_transmit`] for each connection that it names, and
/// [`Browser::poll_action`]. Come back at [`Browser::poll_timeout`].
pub struct Browser<'p> {
    page: &'p Page,
    loader: Loader<'p>,
    client: Client,
    /// For every host, whether its connections are secured, and its name with the port that a URL would show.
    hosts: Vec<(bool, bytes::Bytes)>,
    body_bytes: Vec<u64>,
    /// What an earlier run of the application has left of the same load.
    kept: std::collections::BTreeMap<ResourceId, Left>,
    /// What an earlier visit has left of each resource; empty if there was none.
    cache: Vec<Reuse>,
    cached: Vec<Option<Cached>>,
    pipelining: Option<client::Pipelining>,
    /// What is asked for beside the page, and when, the next one last.
    beside: Vec<(Instant, ResourceId)>,
}

impl<'p> Browser<'p> {
    /// A browser about to load `page`, which must be valid; `secured` says for each of its hosts whether its connections are.
    ///
    /// # Panics
    /// If `secured` has not one entry a host.
    pub fn new(page: &'p Page, config: Config, client: client::Config, secured: Vec<bool>) -> Self {
        assert_eq!(secured.len(), page.hosts.len(), "an entry a host");
        let names = page.hosts.iter().zip(&secured);
        let names = names.map(|(host, tls)| client::Host { name: host.name.clone(), tls: *tls });
        let authorities = page.hosts.iter().map(|host| host.authority().into());
        Self {
            loader: Loader::new(page, config),
            pipelining: client.pipelining,
            client: Client::new(client, names.collect()),
            hosts: secured.iter().copied().zip(authorities).collect(),
            body_bytes: vec![0; page.resources.len()],
            kept: Default::default(),
            cache: Vec::new(),
            cached: vec![None; page.resources.len()],
            beside: Vec::new(),
            page,
        }
    }

    /// Tells what is known of a host besides its name, before the start; see [`Client::describe`].
    ///
    /// # Panics
    /// If the page has no such host.
    pub fn describe(&mut self, host: u32, facts: client::HostFacts) {
        self.client.describe(host, facts);
    }

    /// Says what there is to be asked about certificates, before the start; see [`Client::set_checks`]. The numbers of these requests
    /// are those of the page's resources that are [`page::Cause::Beside`].
    pub fn set_checks(&mut self, checks: Vec<client::Check>) {
        self.client.set_checks(checks);
    }

    /// Has a resource that is [`page::Cause::Beside`] asked for, at a moment of the load; to be said before the start.
    pub fn fetch_beside(&mut self, at: base::Duration, id: ResourceId) {
        self.beside.push((Instant::ZERO + at, id));
        self.beside.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// What earlier visits have taught, before the start; see [`Client::set_learned`], [`Client::set_successor`].
    pub fn remember(&mut self, learned: client::Learned, successor: client::Successor) {
        self.client.set_learned(learned);
        self.client.set_successor(successor);
    }

    /// What another run of the application has left of this load, before the start: whole answers are not asked for again, others
    /// are fetched from where they ended, and what must not be sent twice is missing.
    pub fn resume(&mut self, kept: impl IntoIterator<Item = (ResourceId, Left)>) {
        self.kept = kept.into_iter().collect();
    }

    /// What another run of the application is to know, if this one ends now; nothing without [`client::Retry::resume`].
    pub fn kept(&self) -> Vec<(ResourceId, Left)> {
        let ids = 0..self.page.resources.len() as ResourceId;
        let earlier = |id: ResourceId| self.kept.get(&id).cloned();
        let own = ids.filter(|id| !self.is_beside(*id));
        own.filter_map(|id| Some((id, self.client.leaves(id).or_else(|| earlier(id))?))).collect()
    }

    /// The machine's addresses have changed; see [`Client::handle_network_change`].
    pub fn handle_network_change(&mut self, now: Instant) {
        self.client.handle_network_change(now);
        self.settle(now);
    }

    /// The page was loaded before, so long ago, and its responses were kept as far as they allow it: see [`page::cache`]. To be said
    /// before the start. Reading from the cache takes no time; a response that is only validated is there when the 304 is. Names,
    /// connections and TLS sessions are not kept, and what goes on beside the page has no cache.
    pub fn revisit(&mut self, after: Duration) {
        let left = |resource: &page::Resource| match resource.cause {
            Cause::Beside => Reuse::Fetch,
            _ => reuse(resource, after),
        };
        self.cache = self.page.resources.iter().map(left).collect();
    }

    /// What pipelining knows of a host, before the start; see [`Client::set_pipelining`].
    ///
    /// # Panics
    /// If the page has no such host.
    pub fn set_pipelining(&mut self, host: u32, state: client::HostState) {
        self.client.set_pipelining(host, state);
    }

    /// Begins the navigation.
    pub fn start(&mut self, now: Instant) {
        self.client.navigate(now, self.page.resources[0].host);
        self.loader.start(now);
        self.begin_beside(now);
        self.settle(now);
    }

    /// The time has come that [`Browser::poll_timeout`] named.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.loader.handle_timeout(now);
        self.client.handle_timeout(now);
        self.begin_beside(now);
        self.settle(now);
    }

    /// When the browser has something to do by itself.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let beside = self.beside.last().map(|(at, _)| *at);
        [self.loader.poll_timeout(), self.client.poll_timeout(), beside].into_iter().flatten().min()
    }

    /// See [`Client::handle_resolved`].
    pub fn handle_resolved(&mut self, now: Instant, host: u32, found: bool) {
        self.client.handle_resolved(now, host, found);
        self.settle(now);
    }

    /// See [`Client::handle_connected`].
    pub fn handle_connected(&mut self, now: Instant, id: ConnectionId) {
        self.client.handle_connected(now, id);
        self.settle(now);
    }

    /// See [`Client::handle_certificate`].
    pub fn handle_certificate(&mut self, now: Instant, id: ConnectionId) {
        self.client.handle_certificate(now, id);
        self.settle(now);
    }

    /// See [`Client::handle_secured`].
    pub fn handle_secured(&mut self, now: Instant, id: ConnectionId) {
        self.client.handle_secured(now, id);
        self.settle(now);
    }

    /// See [`Client::handle_input`].
    pub fn handle_input(&mut self, now: Instant, id: ConnectionId, chunk: Chunk) {
        self.client.handle_input(now, id, chunk);
        self.settle(now);
    }

    /// See [`Client::handle_eof`].
    pub fn handle_eof(&mut self, now: Instant, id: ConnectionId) {
        self.client.handle_eof(now, id);
        self.settle(now);
    }

    /// See [`Client::handle_failed`].
    pub fn handle_failed(&mut self, now: Instant, id: ConnectionId, why: &str) {
        self.client.handle_failed(now, id, why);
        self.settle(now);
    }

    /// The next connection that has something to send; see [`Client::poll_dirty`].
    pub fn poll_dirty(&mut self) -> Option<ConnectionId> {
        self.client.poll_dirty()
    }

    /// What a connection has to send; see [`Client::poll_transmit`].
    pub fn poll_transmit(&mut self, now: Instant, id: ConnectionId, max: u64) -> Option<Chunk> {
        self.client.poll_transmit(now, id, max)
    }

    /// What the caller must do; see [`Client::poll_action`].
    pub fn poll_action(&mut self) -> Option<Action> {
        self.client.poll_action()
    }

    /// The next TLS handshake to begin; see [`Client::poll_secure`].
    pub fn poll_secure(&mut self) -> Option<client::Secure> {
        self.client.poll_secure()
    }

    /// The next TLS handshake to go on with; see [`Client::poll_verified`].
    pub fn poll_verified(&mut self) -> Option<ConnectionId> {
        self.client.poll_verified()
    }

    /// The visit is over: what it used is learned; see [`Client::finish_visit`].
    pub fn finish_visit(&mut self) {
        self.client.finish_visit();
    }

    /// The page that it loads.
    pub fn page(&self) -> &'p Page {
        self.page
    }

    /// The network stack below it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Whether nothing is left to do.
    pub fn is_finished(&self) -> bool {
        self.loader.is_finished()
    }

    /// The moments reached so far.
    pub fn moments(&self) -> &Moments {
        self.loader.moments()
    }

    /// Time for which the main thread was busy so far.
    pub fn computed(&self) -> Duration {
        self.loader.computed()
    }

    /// What is known of every connection opened, in the order of their numbers.
    pub fn connections(&self) -> impl Iterator<Item = &ConnectionRecord> {
        self.client.connections()
    }

    /// Names looked up so far.
    pub fn lookups(&self) -> u32 {
        self.client.lookups()
    }

    /// What became of the page's resources so far, in its order.
    pub fn requests(&self) -> Vec<Request> {
        let request = |(id, resource): (ResourceId, &page::Resource)| {
            let asked = self.client.request(id);
            Request {
                record: self.record(id),
                timing: asked.map(|r| r.timing),
                priority: priority(resource.kind),
                connection: asked.and_then(|r| r.connection),
                head_bytes_up: asked.map_or(0, |r| r.head_bytes_up),
                head_bytes_down: asked.map_or(0, |r| r.head_bytes_down),
                body_bytes: self.body_bytes[id as usize],
                cached: self.cached[id as usize],
                sent_on: asked.filter(|r| r.attempts > 0).map(|r| r.sent_on),
                queued: asked.is_some_and(|r| r.queued),
            }
        };
        (0..).zip(&self.page.resources).map(request).collect()
    }

    /// What was not had at the first try, or is not there when the load is over.
    pub fn troubles(&self) -> Vec<Trouble> {
        let ids = 0..self.page.resources.len() as ResourceId;
        ids.filter_map(|id| self.trouble(id)).collect()
    }

    fn record(&self, id: ResourceId) -> Record {
        if self.is_beside(id) { beside(self.client.request(id)) } else { self.loader.record(id).clone() }
    }

    fn trouble(&self, id: ResourceId) -> Option<Trouble> {
        let (resource, asked) = (&self.page.resources[id as usize], self.client.request(id));
        let failures = asked.map_or(&[][..], |request| &request.failures);
        let end = match &self.record(id).progress {
            // Nobody had a question, or nobody waits for the answer any more.
            Progress::Unknown | Progress::Asked if self.is_beside(id) && failures.is_empty() => return None,
            Progress::Arrived | Progress::Used if failures.is_empty() => return None,
            Progress::Arrived | Progress::Used => End::Whole,
            Progress::Failed(why) => End::Failed(why.clone()),
            Progress::Asked => End::Unfinished(self.body_bytes[id as usize]),
            Progress::Unknown | Progress::Missing => End::NeverAsked,
        };
        Some(Trouble {
            resource: id,
            kind: resource.kind,
            host: self.page.host(resource).authority(),
            path: String::from_utf8_lossy(&resource.path).into_owned(),
            blocks: self.loader.blocks(id),
            attempts: asked.map_or(0, |request| request.attempts),
            failures: failures.to_vec(),
            end,
        })
    }

    /// Why the load is not complete: the first resource that failed, or else how many are missing after `now`. `None` if it is.
    pub fn missing(&self, now: Instant) -> Option<String> {
        let records = (0..self.page.resources.len() as ResourceId).map(|id| (id, self.loader.record(id)));
        let failed = records.clone().find_map(|(id, record)| match &record.progress {
            Progress::Failed(why) => Some(format!("{}: {why}", self.page.resource_url(id))),
            _ => None,
        });
        if failed.is_some() || self.is_finished() {
            return failed;
        }
        let own = records.filter(|(id, _)| !self.is_beside(*id));
        let (all, open) = (own.clone().count(), own.filter(|(_, record)| record.used.is_none()).count());
        let after = now.since(Instant::ZERO).as_secs_f64();
        Some(format!("given up after {after} s with {open} of {all} resources not loaded"))
    }

    fn begin_beside(&mut self, now: Instant) {
        while let Some((_, id)) = self.beside.pop_if(|(at, _)| *at <= now) {
            self.fetch(now, id);
        }
    }

    /// Carries what the loader asks for to the client, and what the client knows to the loader, until both are silent.
    fn settle(&mut self, now: Instant) {
        loop {
            while let Some(id) = self.loader.poll_fetch() {
                self.fetch(now, id);
            }
            let Some(event) = self.client.poll_event() else { break };
            self.tell_loader(now, event);
        }
    }

    fn fetch(&mut self, now: Instant, id: ResourceId) {
        let resource = &self.page.resources[id as usize];
        let mut fields = resource.request.clone();
        match self.cache.get(id as usize) {
            Some(Reuse::Fresh) => {
                self.cached[id as usize] = Some(Cached::Fresh);
                self.loader.handle_head(now, id);
                return self.complete_from_cache(now, id);
            }
            Some(Reuse::Validate(conditions)) => {
                conditions.iter().for_each(|f| fields.push(f.name.clone(), f.value.clone()));
            }
            Some(Reuse::Fetch) | None => {}
        }
        let (secured, authority) = &self.hosts[resource.host as usize];
        let head = RequestHead {
            method: resource.method.clone(),
            scheme: if *secured { "https" } else { "http" }.into(),
            authority: authority.clone(),
            path: resource.path.clone(),
            fields,
        };
        let priority = priority(resource.kind);
        let resume = match self.kept.get(&id) {
            None => None,
            Some(Left::Sent) => return self.loader.handle_failed(now, id, SENT_BEFORE.to_owned()),
            Some(Left::Answer(known)) => {
                self.body_bytes[id as usize] = known.body_len;
                self.loader.handle_head(now, id);
                self.loader.handle_data(now, id, known.body_len);
                if known.whole {
                    return self.loader.handle_complete(now, id);
                }
                Some(known.clone())
            }
        };
        let body_len = resource.request_body_len;
        let ask = client::Ask { body_len, resume, ..client::Ask::new(resource.host, head, priority) };
        self.client.ask(now, id, self.classed(id, ask));
    }

    fn is_beside(&self, id: ResourceId) -> bool {
        self.page.resources[id as usize].cause == Cause::Beside
    }

    /// Gives the loader a body that is kept.
    fn complete_from_cache(&mut self, now: Instant, id: ResourceId) {
        let bytes = self.page.resources[id as usize].body_len;
        if bytes > 0 {
            self.loader.handle_data(now, id, bytes);
        }
        self.loader.handle_complete(now, id);
    }

    /// What a request is to pipelining, where that is on: of an XHR the head does not say that it is one.
    fn classed(&self, id: ResourceId, ask: client::Ask) -> client::Ask {
        let Some(policy) = self.pipelining else { return ask };
        let xhr = self.page.resources[id as usize].kind == page::Kind::Xhr;
        let class = (xhr && !policy.xhr).then_some(client::Class::Solo);
        client::Ask { blocks: self.loader.is_in_head(id), class, ..ask }
    }

    fn tell_loader(&mut self, now: Instant, event: client::Event) {
        match event {
            client::Event::Head { id, .. } | client::Event::Complete { id } if self.is_beside(id) => {}
            client::Event::Failed { id, .. } if self.is_beside(id) => {}
            client::Event::Data { id, chunk } if self.is_beside(id) => {
                self.body_bytes[id as usize] += chunk.len()
            }
            client::Event::Head { id, head, .. } => {
                // RFC 9111 §4.3.3: what is kept is used. To a request without conditions a 304 is an answer like others.
                let conditional = matches!(self.cache.get(id as usize), Some(Reuse::Validate(_)));
                self.cached[id as usize] = (conditional && head.status == 304).then_some(Cached::Validated);
                self.loader.handle_head(now, id);
            }
            client::Event::Data { id, chunk } => {
                self.body_bytes[id as usize] += chunk.len();
                self.loader.handle_data(now, id, chunk.len());
            }
            client::Event::Complete { id } if self.cached[id as usize].is_some() => {
                self.complete_from_cache(now, id);
            }
            client::Event::Complete { id } => self.loader.handle_complete(now, id),
            client::Event::Failed { id, error } => self.loader.handle_failed(now, id, error.to_string()),
        }
    }
}

/// What became of a request that the loader knows nothing of.
fn beside(request: Option<&client::Request>) -> Record {
    let progress = match request {
        None => Progress::Unknown,
        Some(r) if r.timing.complete.is_some() => Progress::Used,
        Some(client::Request { error: Some(error), .. }) => Progress::Failed(error.to_string()),
        Some(_) => Progress::Asked,
    };
    let complete = request.and_then(|r| r.timing.complete);
    Record { progress, discovered: request.map(|r| r.timing.queued), complete, used: complete }
}
