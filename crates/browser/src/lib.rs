//! The page loader: what a browser does between the first byte of a document and its `load` event.
//!
//! A [`Loader`] is told what arrives and says what to fetch. It knows no protocol and no connection; whoever
//! drives it carries [`Loader::poll_fetch`] to a network stack and brings back heads, bytes and ends. A [`Browser`] does so
//! with Velodrome's own stack, [`client::Client`], and is what both worlds drive.
//!
//! # Rules
//!
//! * **Scanner.** References in a document are found as its bytes arrive, wherever the parser stands (the preload
//!   scanner), and fetched at once. It takes no time. It does not see what an inline script writes.
//! * **Parser.** It moves through the bytes that have arrived and takes the document's computation in proportion.
//!   A synchronous script stops it until the script has arrived and run. The end of a document is reached when all its
//!   bytes are parsed and its deferred scripts have run, in order.
//! * **Style sheets** that the parser has passed and that are not applied yet hold back every synchronous, deferred
//!   and inline script behind them, and the first paint.
//! * **Scripts** that are asynchronous, or inserted by another script, run when they arrive.
//! * **Main thread.** Parsing, scripts and style sheets share one thread: a task runs to its end, and the next is the
//!   one that has waited longest. Decoding images costs it nothing.
//! * **Redirections** are followed when their response is complete, at no cost. What waits for a redirected script or
//!   style sheet waits for the one at the end of the redirections, which takes the first one's place in the document.
//! * **Fonts, images, requests** that a style sheet or script causes are asked for when it has been applied or has
//!   run, after the delay that the recording leaves unexplained.
//! * A resource that fails takes what it alone would have caused with it; the load goes on, as in a browser. Of a
//!   document that is cut short, what has arrived is parsed, and its deferred scripts run behind that.
//!
//! # Moments
//!
//! * **First paint**: the first moment when the main document's parser has passed everything before its first
//!   reference in its markup to something that is shown: an image, media or a frame behind its first style sheet (or its
//!   end, if there is none); no style sheet that it has passed is still missing, and the main thread is free.
//! * **Parsed**: the main document has reached its end (`DOMContentLoaded`).
//! * **PLT**, page load time: from [`Loader::start`] to `onload`, which is when every document has reached its end,
//!   every resource that the recording started before its own `onload` has been fetched and used or has failed, and the
//!   page's closing computation is done.
//! * **Finished**: everything else has ended too.

mod browser;
mod chain;
mod foresight;
mod main_thread;
mod parser;
mod tab;
mod trouble;

use std::collections::VecDeque;

use base::{Duration, Instant};
use page::{Cause, Kind, Page, ResourceId, ScriptMode};

pub use browser::{Behind, Browser, Cached, Request, TabOrder};
use chain::Chains;
pub use foresight::{Ahead, AheadTally, Foresight, Known};
use main_thread::{MainThread, Task};
use parser::Document;
pub use trouble::{End, Trouble};

/// How a page is loaded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Factor on all of the page's computation, ≥ 0: 0 leaves the network alone, 2 is a device half as fast.
    pub compute_scale: f64,
    /// Whether the page stops reading what it plays.
    pub pause: Option<Pause>,
}

/// Media are paused: of each nothing more is read for a while, once so much was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pause {
    /// Bytes of the body that are read before.
    pub after: u64,
    /// For how long.
    pub length: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { compute_scale: 1.0, pause: None }
    }
}

/// How far a resource has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Progress {
    /// Nobody has referred to it yet.
    Unknown,
    /// It has been asked for.
    Asked,
    /// It has arrived.
    Arrived,
    /// It has been parsed, run, applied or shown.
    Used,
    /// It could not be fetched: why.
    Failed(String),
    /// It was never asked for, because what would have caused it failed.
    Missing,
}

/// What became of a resource, and when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// How far it has come.
    pub progress: Progress,
    /// When it was asked for.
    pub discovered: Option<Instant>,
    /// When the last byte had arrived.
    pub complete: Option<Instant>,
    /// When it had been parsed, run, applied or shown.
    pub used: Option<Instant>,
}

/// The moments of a load; see the crate's documentation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Moments {
    /// First byte of the main document's response.
    pub first_byte: Option<Instant>,
    /// First paint.
    pub first_paint: Option<Instant>,
    /// `DOMContentLoaded`.
    pub parsed: Option<Instant>,
    /// `onload`.
    pub load: Option<Instant>,
    /// Everything has ended.
    pub finished: Option<Instant>,
}

/// The priority at which Chrome of 2011 asked for a kind of resource.
pub fn priority(kind: Kind) -> client::Priority {
    match kind {
        Kind::Document => client::priority::DOCUMENT,
        Kind::Style | Kind::Script | Kind::Font => client::priority::SCRIPT,
        Kind::Xhr | Kind::Media | Kind::Other => client::priority::SUBRESOURCE,
        Kind::Image => client::priority::IMAGE,
    }
}

/// Loads one page.
///
/// Call [`Loader::start`] or a `handle_*`, then drain [`Loader::poll_fetch`], and come back at
/// [`Loader::poll_timeout`].
pub struct Loader<'p> {
    page: &'p Page,
    config: Config,
    records: Vec<Record>,
    /// What each resource causes by being there: redirections, and what its use leads to.
    followers: Vec<Vec<ResourceId>>,
    /// For every resource that is parsed as a document, its parser.
    documents: Vec<Option<Document>>,
    chains: Chains,
    /// The document that the navigation ends at, behind all redirections.
    main: ResourceId,
    main_thread: MainThread,
    /// What will be asked for at a later moment, by moment and then index.
    delayed: std::collections::BTreeSet<(Instant, ResourceId)>,
    fetches: VecDeque<ResourceId>,
    moments: Moments,
    /// Whether `onload` does not wait for a resource: it was recorded so, or one that caused it was.
    late: Vec<bool>,
    /// Resources that `onload` still waits for, and those that only the end waits for.
    before_load: usize,
    after_load: usize,
    closing: bool,
    computed: Duration,
}

impl<'p> Loader<'p> {
    /// A loader of `page`, which must be valid.
    pub fn new(page: &'p Page, config: Config) -> Self {
        let count = page.resources.len();
        let chains = Chains::new(page);
        let main = chains.last(0);
        let mut followers = vec![Vec::new(); count];
        let mut referenced = vec![false; count];
        let mut late = vec![false; count];
        for (id, resource) in (0..).zip(&page.resources) {
            // There is no `onload` without the main document, whatever was recorded.
            late[id as usize] = chains.last(id) != main
                && (resource.after_load
                    || matches!(resource.cause, Cause::Load { .. })
                    || resource.cause.parent().is_some_and(|parent| late[parent as usize]));
            match resource.cause {
                Cause::Redirect(parent) | Cause::Completion { parent, .. } => {
                    followers[parent as usize].push(id)
                }
                Cause::Parser { parent, .. } => referenced[parent as usize] = true,
                Cause::Root | Cause::Load { .. } | Cause::Beside => {}
            }
        }
        let waiting = |late_ones: bool| {
            let own = late.iter().zip(&page.resources).filter(|(_, r)| r.cause != Cause::Beside);
            own.filter(|(late, _)| **late == late_ones).count()
        };
        let (before_load, after_load) = (waiting(false), waiting(true));
        let documents = (0..).zip(&page.resources).map(|(id, resource)| {
            // A redirection's body is not looked at, unless the recording says that somebody found something there.
            let parsed = (resource.kind == Kind::Document && chains.last(id) == id) || id == main;
            (parsed || referenced[id as usize]).then(|| Document::new(page, &chains, id))
        });
        let unknown = Record { progress: Progress::Unknown, discovered: None, complete: None, used: None };
        Self {
            documents: documents.collect(),
            chains,
            records: vec![unknown; count],
            followers,
            main,
            main_thread: MainThread::default(),
            delayed: Default::default(),
            fetches: VecDeque::new(),
            moments: Moments::default(),
            before_load,
            after_load,
            late,
            closing: false,
            computed: Duration::ZERO,
            page,
            config,
        }
    }

    /// What became of a resource so far.
    ///
    /// # Panics
    /// If the page has no such resource.
    pub fn record(&self, id: ResourceId) -> &Record {
        &self.records[id as usize]
    }

    /// Whether the page cannot be shown as it should be without a resource: the document at the navigation's end and the
    /// redirections to it, style sheets that a document refers to, and scripts that its parser waits for.
    pub fn blocks(&self, id: ResourceId) -> bool {
        let resource = &self.page.resources[id as usize];
        self.chains.last(id) == self.main
            || match (resource.kind, self.chains.place(self.page, id)) {
                (Kind::Style, Cause::Parser { .. }) => true,
                (Kind::Script, Cause::Parser { script, .. }) => script == ScriptMode::Sync,
                _ => false,
            }
    }

    /// Whether a resource is a style sheet or script for which the main document's parser stops, or its scripts wait, before it
    /// comes to anything that is shown.
    pub fn is_in_head(&self, id: ResourceId) -> bool {
        let document = self.documents[self.main as usize].as_ref();
        let resource = &self.page.resources[id as usize];
        let waited_for = match (resource.kind, resource.cause) {
            (Kind::Style, _) => true,
            (Kind::Script, Cause::Parser { script, .. }) => script == ScriptMode::Sync,
            _ => false,
        };
        waited_for && document.is_some_and(|document| document.has_in_head(id))
    }

    /// The moments reached so far.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// Time for which the main thread was busy so far.
    pub fn computed(&self) -> Duration {
        self.computed
    }

    /// Whether nothing is left to do.
    pub fn is_finished(&self) -> bool {
        self.moments.finished.is_some()
    }

    /// Begins the navigation.
    pub fn start(&mut self, now: Instant) {
        self.discover(now, 0);
    }

    /// A response's head has arrived.
    pub fn handle_head(&mut self, now: Instant, id: ResourceId) {
        if id == self.main {
            self.moments.first_byte.get_or_insert(now);
        }
    }

    /// `bytes` more of a response's body have arrived.
    pub fn handle_data(&mut self, now: Instant, id: ResourceId, bytes: u64) {
        if let Some(document) = &mut self.documents[id as usize] {
            document.receive(bytes);
            self.scan(now, id);
            self.advance(now, id);
            self.run(now);
        }
    }

    /// A response is complete.
    pub fn handle_complete(&mut self, now: Instant, id: ResourceId) {
        let record = &mut self.records[id as usize];
        record.complete = Some(now);
        record.progress = Progress::Arrived;
        if let Some(document) = &mut self.documents[id as usize] {
            document.receive_all();
            self.scan(now, id);
            self.advance(now, id);
        } else {
            self.arrive(now, id);
        }
        self.run(now);
    }

    /// There will be no (complete) response: why.
    pub fn handle_failed(&mut self, now: Instant, id: ResourceId, why: String) {
        self.records[id as usize].progress = Progress::Failed(why);
        self.settle(id);
        for child in 0..self.page.resources.len() as ResourceId {
            self.abandon_unless_reachable(child);
        }
        if let Some(document) = &mut self.documents[id as usize] {
            document.cut();
            self.advance(now, id);
        }
        self.unblock(now, self.chains.last(id));
        self.run(now);
    }

    /// The time has come that [`Loader::poll_timeout`] named.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, id)) = self.delayed.first().filter(|(at, _)| *at <= now) {
            self.delayed.remove(&(at, id));
            self.discover(now, id);
        }
        self.run(now);
    }

    /// When the loader has something to do by itself.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let delayed = self.delayed.first().map(|(at, _)| *at);
        [self.main_thread.busy_until(), delayed].into_iter().flatten().min()
    }

    /// The next resource to ask for.
    pub fn poll_fetch(&mut self) -> Option<ResourceId> {
        self.fetches.pop_front()
    }

    fn scaled(&self, time: Duration) -> Duration {
        if self.config.compute_scale == 1.0 { time } else { time.mul_f64(self.config.compute_scale) }
    }

    /// Asks for a resource, unless it has been asked for.
    fn discover(&mut self, now: Instant, id: ResourceId) {
        let record = &mut self.records[id as usize];
        if record.progress == Progress::Unknown {
            record.progress = Progress::Asked;
            record.discovered = Some(now);
            self.fetches.push_back(id);
        }
    }

    /// The scanner: asks for everything to which the bytes that have arrived refer.
    fn scan(&mut self, now: Instant, id: ResourceId) {
        while let Some(child) = self.documents[id as usize].as_mut().and_then(Document::next_scanned) {
            if !self.page.resources[child as usize].scripted {
                self.discover(now, child);
            }
        }
    }

    /// A resource that is no document is complete: what happens to it now?
    fn arrive(&mut self, now: Instant, id: ResourceId) {
        if self.chains.last(id) != id {
            return self.finish_use(now, id);
        }
        let resource = &self.page.resources[id as usize];
        match resource.kind {
            Kind::Script => match self.chains.place(self.page, id) {
                Cause::Parser { parent, script: ScriptMode::Sync | ScriptMode::Defer, .. } => {
                    self.advance(now, parent); // which runs it when its turn comes
                }
                _ => self.main_thread.enqueue(Task::Use(id)),
            },
            _ if resource.exec.is_zero() => self.finish_use(now, id),
            _ => self.main_thread.enqueue(Task::Use(id)),
        }
    }

    /// A resource has been used: what waited for it may go on, and what it causes is asked for.
    fn finish_use(&mut self, now: Instant, id: ResourceId) {
        let record = &mut self.records[id as usize];
        record.progress = Progress::Used;
        record.used = Some(now);
        self.settle(id);
        for follower in std::mem::take(&mut self.followers[id as usize]) {
            let delay = match self.page.resources[follower as usize].cause {
                Cause::Completion { delay, .. } => self.scaled(delay),
                _ => Duration::ZERO,
            };
            if delay.is_zero() {
                self.discover(now, follower);
            } else {
                self.delayed.insert((now + delay, follower));
            }
        }
        if self.chains.last(id) == id {
            self.unblock(now, id);
        }
    }

    /// A document may have waited for this script or style sheet.
    fn unblock(&mut self, now: Instant, id: ResourceId) {
        if let Cause::Parser { parent, .. } = self.chains.place(self.page, id) {
            if let Some(document) = &mut self.documents[parent as usize] {
                document.forget_style(id);
            }
            self.advance(now, parent);
        }
    }

    /// One resource fewer to wait for.
    fn settle(&mut self, id: ResourceId) {
        let waiting = if self.late[id as usize] { &mut self.after_load } else { &mut self.before_load };
        *waiting -= 1;
    }

    /// Gives a resource up if what would have caused it has failed.
    fn abandon_unless_reachable(&mut self, id: ResourceId) {
        let lost = |p: &Progress| matches!(p, Progress::Failed(_) | Progress::Missing);
        let Some(parent) = self.page.resources[id as usize].cause.parent() else { return };
        if self.records[id as usize].progress == Progress::Unknown
            && lost(&self.records[parent as usize].progress)
        {
            self.records[id as usize].progress = Progress::Missing;
            self.settle(id);
        }
    }
}

#[cfg(test)]
mod tests;
