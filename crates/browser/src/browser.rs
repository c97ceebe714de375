//! Page loaders on one network stack.

use std::collections::VecDeque;

use base::{Chunk, Duration, Instant};
use client::{Action, Client, ConnectionId, ConnectionRecord, Left, LoadClass};
use page::cache::{Reuse, reuse};
use page::{Cause, Kind, Page, ResourceId};

use crate::foresight::{Ahead, Foreseen};
use crate::tab::Tab;
use crate::{Config, End, Moments, Pause, Progress, Record, Trouble, priority};

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
    /// Whether it was asked for before the page came to it.
    pub ahead: Option<Ahead>,
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

/// When a browser loads the pages behind the one in front.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum TabOrder {
    /// With it, as if somebody looked at all of them.
    #[default]
    AtOnce,
    /// With it, as loads in the background: [`LoadClass::Background`].
    Classes,
    /// All of them when the one in front has had its `onload`, as loads in the background.
    ForegroundFirst,
    /// Each when the one before it has had its `onload`, as loads in the background.
    OneByOne,
}

/// A page behind the one in front, and what became of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Behind {
    /// The page's id.
    pub page: String,
    /// When its load began; `None` if it did not come to that.
    pub started: Option<Instant>,
    /// The moments of its load, on the browser's clock, which began with the page in front.
    pub moments: Moments,
}

/// A browser that loads one page, or one in front and others behind it: a [`Loader`](crate::Loader) for each and one [`Client`], each of
/// which hears at once what the other has to say.
///
/// What is left to the caller is what the client leaves to it. Call [`Browser::start`] or a `handle_*`; then, until neither has
/// any more, [`Browser::poll_dirty`] with [`Browser::poll_transmit`] for each connection that it names, and
/// [`Browser::poll_action`]. Come back at [`Browser::poll_timeout`].
///
/// Every page computes on a thread of its own, as if there were a processor for each.
pub struct Browser<'p> {
    pub(crate) page: &'p Page,
    /// The one in front first.
    pub(crate) tabs: Vec<Tab<'p>>,
    order: TabOrder,
    config: Config,
    pub(crate) client: Client,
    /// For every host, whether its connections are secured, and its name with the port that a URL would show.
    pub(crate) hosts: Vec<(bool, bytes::Bytes)>,
    pub(crate) body_bytes: Vec<u64>,
    /// What an earlier run of the application has left of the same load.
    pub(crate) kept: std::collections::BTreeMap<ResourceId, Left>,
    /// What an earlier visit has left of each resource; empty if there was none.
    pub(crate) cache: Vec<Reuse>,
    cached: Vec<Option<Cached>>,
    pipelining: Option<client::Pipelining>,
    /// What is asked for beside the page, and when, the next one last.
    beside: Vec<(Instant, ResourceId)>,
    pause: Option<Pause>,
    /// Media that are paused, and until when; in the order in which they go on.
    paused: VecDeque<(Instant, ResourceId)>,
    pub(crate) foreseen: Foreseen,
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
            tabs: vec![Tab::new(page, config, (0..page.hosts.len() as u32).collect(), 0)],
            order: TabOrder::default(),
            config,
            pipelining: client.pipelining,
            client: Client::new(client, names.collect()),
            hosts: secured.iter().copied().zip(authorities).collect(),
            body_bytes: vec![0; page.resources.len()],
            kept: Default::default(),
            cache: Vec::new(),
            cached: vec![None; page.resources.len()],
            beside: Vec::new(),
            pause: config.pause,
            paused: VecDeque::new(),
            foreseen: Foreseen::default(),
            page,
        }
    }

    /// Puts a page behind the one in front, before the start. The page in front has its hosts and, as [`page::Cause::Beside`] and in one
    /// piece, its resources: `hosts` says which each host is, `first` where the resources begin.
    ///
    /// # Panics
    /// If `hosts` has not one entry a host, or there is no room for the resources.
    pub fn open(&mut self, page: &'p Page, hosts: Vec<u32>, first: ResourceId) {
        assert_eq!(hosts.len(), page.hosts.len(), "an entry a host");
        assert!(first as usize + page.resources.len() <= self.page.resources.len(), "a number a resource");
        self.tabs.push(Tab::new(page, self.config, hosts, first));
    }

    /// Says when the pages behind are loaded, before the start.
    pub fn set_order(&mut self, order: TabOrder) {
        self.order = order;
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

    /// What a host's server has had the client keep, before the start; see [`Client::set_kept_settings`].
    ///
    /// # Panics
    /// If the page has no such host.
    pub fn set_kept_settings(&mut self, host: u32, settings: Vec<spdy::frame::Setting>) {
        self.client.set_kept_settings(host, settings);
    }

    /// What pipelining knows of a host, before the start; see [`Client::set_pipelining`].
    ///
    /// # Panics
    /// If the page has no such host.
    pub fn set_pipelining(&mut self, host: u32, state: client::HostState) {
        self.client.set_pipelining(host, state);
    }

    /// Begins the navigation. What the client does ahead of need, it does for the page in front.
    pub fn start(&mut self, now: Instant) {
        if self.order != TabOrder::AtOnce {
            for tab in 1..self.tabs.len() as u32 {
                self.client.set_load(now, tab, LoadClass::Background);
            }
        }
        self.client.navigate(now, self.page.resources[0].host);
        self.tabs[0].start(now);
        self.begin_beside(now);
        self.settle(now);
        self.begin_prefetches(now);
        self.settle(now);
    }

    /// The time has come that [`Browser::poll_timeout`] named.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.tabs.iter_mut().for_each(|tab| tab.loader.handle_timeout(now));
        self.client.handle_timeout(now);
        self.begin_beside(now);
        while let Some((_, id)) = self.paused.pop_front_if(|(until, _)| *until <= now) {
            self.client.resume(now, id);
        }
        self.settle(now);
    }

    /// When the browser has something to do by itself.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let loaders = self.tabs.iter().filter_map(|tab| tab.loader.poll_timeout());
        let beside = self.beside.last().map(|(at, _)| *at);
        let goes_on = self.paused.front().map(|(until, _)| *until);
        loaders.chain(self.client.poll_timeout()).chain(beside).chain(goes_on).min()
    }

    /// See [`Client::handle_resolved`].
    pub fn handle_resolved(&mut self, now: Instant, host: u32, found: bool) {
        self.client.handle_resolved(now, host, found);
        self.settle(now);
    }

    /// See [`Client::handle_addresses`].
    pub fn handle_addresses(
        &mut self,
        now: Instant,
        host: u32,
        family: client::Family,
        addresses: &[std::net::IpAddr],
    ) {
        self.client.handle_addresses(now, host, family, addresses);
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

    /// See [`Client::handle_session`].
    pub fn handle_session(&mut self, now: Instant, id: ConnectionId) {
        self.client.handle_session(now, id);
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

    /// Whether to read from a connection; see [`Client::wants_input`].
    pub fn wants_input(&self, id: ConnectionId) -> bool {
        self.client.wants_input(id)
    }

    /// A connection that is to be read on; see [`Client::poll_readable`].
    pub fn poll_readable(&mut self) -> Option<ConnectionId> {
        self.client.poll_readable()
    }

    /// The visit is over: what it used is learned; see [`Client::finish_visit`].
    pub fn finish_visit(&mut self) {
        self.client.finish_visit();
    }

    /// The page that it loads: the one in front.
    pub fn page(&self) -> &'p Page {
        self.page
    }

    /// The network stack below it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Whether nothing is left to do.
    pub fn is_finished(&self) -> bool {
        self.tabs.iter().all(|tab| tab.loader.is_finished())
    }

    /// The moments reached so far of the page in front.
    pub fn moments(&self) -> &Moments {
        self.tabs[0].loader.moments()
    }

    /// What became of the pages behind it so far, in their order.
    pub fn behind(&self) -> impl Iterator<Item = Behind> {
        self.tabs[1..].iter().map(|tab| Behind {
            page: tab.page.id.clone(),
            started: tab.started,
            moments: *tab.loader.moments(),
        })
    }

    /// Time for which the main thread of the page in front was busy so far.
    pub fn computed(&self) -> Duration {
        self.tabs[0].loader.computed()
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
            let (asked, ahead) = (self.client.request(id), self.foreseen.ahead(id));
            Request {
                record: ahead.map_or_else(|| self.record(id), |ahead| self.foreseen_record(id, ahead)),
                timing: asked.map(|r| r.timing),
                priority: priority(resource.kind),
                connection: asked.and_then(|r| r.connection),
                head_bytes_up: asked.map_or(0, |r| r.head_bytes_up),
                head_bytes_down: asked.map_or(0, |r| r.head_bytes_down),
                body_bytes: self.body_bytes[id as usize],
                cached: self.cached[id as usize],
                sent_on: asked.filter(|r| r.attempts > 0).map(|r| r.sent_on),
                queued: asked.is_some_and(|r| r.queued),
                ahead,
            }
        };
        (0..).zip(&self.page.resources).map(request).collect()
    }

    /// What was not had at the first try, or is not there when the load is over.
    pub fn troubles(&self) -> Vec<Trouble> {
        let ids = 0..self.page.resources.len() as ResourceId;
        ids.filter_map(|id| self.trouble(id)).collect()
    }

    pub(crate) fn record(&self, id: ResourceId) -> Record {
        match self.tab_of(id) {
            0 if self.is_beside(id) => beside(self.client.request(id)),
            tab => self.tabs[tab].record(id).clone(),
        }
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
            blocks: self.tabs[self.tab_of(id)].blocks(id),
            attempts: asked.map_or(0, |request| request.attempts),
            failures: failures.to_vec(),
            end,
        })
    }

    /// Why the load is not complete: the first resource that failed, or else how many are missing after `now`. `None` if it is.
    pub fn missing(&self, now: Instant) -> Option<String> {
        self.tabs.iter().find_map(|tab| tab.missing(now))
    }

    fn begin_beside(&mut self, now: Instant) {
        while let Some((_, id)) = self.beside.pop_if(|(at, _)| *at <= now) {
            let ask = self.tabs[0].ask(id, &self.hosts);
            let ask = self.tabs[0].classed(self.pipelining, id, ask);
            self.client.ask(now, id, ask);
        }
    }

    /// Carries what the loaders ask for to the client, and what the client knows to the loaders, until all are silent.
    fn settle(&mut self, now: Instant) {
        loop {
            self.begin(now);
            for tab in 0..self.tabs.len() {
                while let Some((id, ask)) = self.tabs[tab].poll_ask(&self.hosts) {
                    match self.foreseen.need(now, id) {
                        Some(held) => held.into_iter().for_each(|event| self.tell_tab(now, tab, event)),
                        None => self.ask(now, tab, id, ask),
                    }
                }
            }
            let Some(event) = self.client.poll_event() else { break };
            self.tell_loader(now, event);
        }
    }

    /// Asks the client for one of a tab's resources, as far as it is not there.
    pub(crate) fn ask(&mut self, now: Instant, tab: usize, id: ResourceId, mut ask: client::Ask) {
        let (load, tab) = (tab as u32, &mut self.tabs[tab]);
        match self.cache.get(id as usize) {
            Some(Reuse::Fresh) => {
                self.cached[id as usize] = Some(Cached::Fresh);
                tab.loader.handle_head(now, id - tab.first);
                return tab.complete_from_cache(now, id);
            }
            Some(Reuse::Validate(conditions)) => {
                let fields = &mut ask.head.fields;
                conditions.iter().for_each(|f| fields.push(f.name.clone(), f.value.clone()));
            }
            Some(Reuse::Fetch) | None => {}
        }
        let resume = match self.kept.get(&id) {
            None => None,
            Some(Left::Sent) => return tab.fail(now, id, SENT_BEFORE),
            Some(Left::Answer(known)) => {
                self.body_bytes[id as usize] = known.body_len;
                if tab.tell_kept(now, id, known) {
                    return;
                }
                Some(known.clone())
            }
        };
        if let Some(resource) = tab.resource(id) {
            self.foreseen.mark(resource.kind, &mut ask.head);
        }
        let ask = tab.classed(self.pipelining, id, client::Ask { load, resume, ..ask });
        self.client.ask(now, id, ask);
    }

    /// Begins the loads behind whose turn has come.
    fn begin(&mut self, now: Instant) {
        for n in 1..self.tabs.len() {
            let loaded = |tab: &Tab<'_>| tab.loader.moments().load.is_some();
            let turn = match self.order {
                TabOrder::AtOnce | TabOrder::Classes => self.tabs[0].started.is_some(),
                TabOrder::ForegroundFirst => loaded(&self.tabs[0]),
                TabOrder::OneByOne => loaded(&self.tabs[n - 1]),
            };
            if turn {
                self.tabs[n].start(now);
            }
        }
    }

    fn is_beside(&self, id: ResourceId) -> bool {
        self.page.resources[id as usize].cause == Cause::Beside
    }

    /// Whose request it is: a page's behind, or else the one's in front, to whom everything beside pages is reckoned too.
    pub(crate) fn tab_of(&self, id: ResourceId) -> usize {
        let behind = self.tabs.iter().skip(1).position(|tab| tab.holds(id));
        behind.map_or(0, |n| n + 1)
    }

    /// Stops reading what is played, as it passes the byte at which it is paused.
    fn pause_media(&mut self, now: Instant, id: ResourceId, before: u64) {
        let is_media = self.page.resources.get(id as usize).is_some_and(|r| r.kind == Kind::Media);
        let Some(pause) = self.pause.filter(|_| is_media) else { return };
        if before < pause.after && self.body_bytes[id as usize] >= pause.after {
            self.client.pause(id);
            self.paused.push_back((now + pause.length, id));
        }
    }

    fn tell_loader(&mut self, now: Instant, event: client::Event) {
        let (client::Event::Head { id, .. }
        | client::Event::Data { id, .. }
        | client::Event::Complete { id }
        | client::Event::Failed { id, .. }) = event;
        if self.take_stranger(id, &event) {
            return;
        }
        if let client::Event::Data { chunk, .. } = &event {
            let before = self.body_bytes[id as usize];
            self.body_bytes[id as usize] += chunk.len();
            self.pause_media(now, id, before);
        }
        let tab = self.tab_of(id);
        if tab == 0 && self.is_beside(id) {
            return; // the loader knows nothing of it
        }
        if let client::Event::Head { head, .. } = &event {
            // RFC 9111 §4.3.3: what is kept is used. To a request without conditions a 304 is an answer like others.
            let conditional = matches!(self.cache.get(id as usize), Some(Reuse::Validate(_)));
            self.cached[id as usize] = (conditional && head.status == 304).then_some(Cached::Validated);
            self.heed(now, id, head);
        }
        if let Some(event) = self.foreseen.hold(id, event) {
            self.tell_tab(now, tab, event);
        }
    }

    /// Tells a loader what has come of a request of its own.
    fn tell_tab(&mut self, now: Instant, tab: usize, event: client::Event) {
        match event {
            client::Event::Complete { id } if self.cached[id as usize].is_some() => {
                self.tabs[tab].complete_from_cache(now, id);
            }
            event => self.tabs[tab].tell(now, event),
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

#[cfg(test)]
mod tests;
