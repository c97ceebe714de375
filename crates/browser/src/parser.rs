//! A document's parser: where it stands, and what holds it up.

use base::Instant;
use page::{Cause, Kind, Page, ResourceId, ScriptMode};

use crate::chain::Chains;
use crate::main_thread::Task;
use crate::{Loader, Progress};

/// A document that is being parsed.
pub(crate) struct Document {
    /// What the document refers to, in the order of the references.
    references: Vec<(u64, ResourceId)>,
    len: u64,
    received: u64,
    /// The scanner has seen this many references, the parser has passed that many.
    scanned: usize,
    passed: usize,
    /// The parser has parsed this many bytes.
    parsed: u64,
    /// A parsing task is waiting or running.
    parsing: bool,
    /// Style sheets passed that are not applied yet.
    styles: Vec<ResourceId>,
    /// Deferred scripts passed, in order, that have not run yet.
    deferred: std::collections::VecDeque<ResourceId>,
    /// References before the first one to something that is shown, and the bytes up to there.
    head: (usize, u64),
    /// No more will arrive, although not all has.
    cut: bool,
    ended: bool,
}

impl Document {
    pub(crate) fn new(page: &Page, chains: &Chains, id: ResourceId) -> Self {
        let mut references: Vec<_> = (0..)
            .zip(&page.resources)
            .filter_map(|(child, resource)| match resource.cause {
                Cause::Parser { parent, offset, .. } if parent == id => Some((offset, child)),
                _ => None,
            })
            .collect();
        references.sort(); // by offset, then as recorded
        let len = page.resources[id as usize].body_len;
        let kind = |child: ResourceId| page.resources[chains.last(child) as usize].kind;
        let is_shown = |child: ResourceId| {
            matches!(kind(child), Kind::Image | Kind::Media | Kind::Document)
                && !page.resources[child as usize].scripted
        };
        // What stands before the first style sheet is no content but a tracker's pixel in the head.
        let styled = references.iter().position(|(_, child)| kind(*child) == Kind::Style).unwrap_or(0);
        let first = (styled..references.len()).find(|at| is_shown(references[*at].1));
        let head = first.map_or((references.len(), len), |at| (at, references[at].0));
        Self {
            references,
            len,
            received: 0,
            scanned: 0,
            passed: 0,
            parsed: 0,
            parsing: false,
            styles: Vec::new(),
            deferred: Default::default(),
            head,
            cut: false,
            ended: false,
        }
    }

    /// Whether it refers to a resource before anything that is shown.
    pub(crate) fn has_in_head(&self, id: ResourceId) -> bool {
        self.references[..self.head.0].iter().any(|(_, child)| *child == id)
    }

    pub(crate) fn receive(&mut self, bytes: u64) {
        self.received = (self.received + bytes).min(self.len);
    }

    pub(crate) fn receive_all(&mut self) {
        self.received = self.len;
    }

    pub(crate) fn cut(&mut self) {
        self.cut = true;
    }

    /// Whether the parser has passed all that will ever arrive.
    fn is_parsed(&self) -> bool {
        self.parsed == if self.cut { self.received } else { self.len }
    }

    /// The next reference within the bytes received that the scanner has not seen.
    pub(crate) fn next_scanned(&mut self) -> Option<ResourceId> {
        let (offset, child) = *self.references.get(self.scanned)?;
        (offset <= self.received).then(|| {
            self.scanned += 1;
            child
        })
    }

    /// The next reference, if the parser stands at it.
    fn reached(&self) -> Option<ResourceId> {
        let (offset, child) = *self.references.get(self.passed)?;
        (offset <= self.parsed).then_some(child)
    }

    pub(crate) fn forget_style(&mut self, id: ResourceId) {
        self.styles.retain(|style| *style != id);
    }

    /// How far the parser can go before the next reference or the end of what has arrived, and which share of the
    /// document that is.
    fn next_stretch(&self) -> (u64, f64) {
        let reference = self.references.get(self.passed).map_or(self.len, |(offset, _)| *offset);
        let to = self.received.min(reference);
        (to, (to - self.parsed) as f64 / self.len.max(1) as f64)
    }
}

impl Loader<'_> {
    fn document(&mut self, id: ResourceId) -> &mut Document {
        self.documents[id as usize].as_mut().expect("a document")
    }

    /// Moves a document's parser as far as it can go without computing.
    pub(crate) fn advance(&mut self, now: Instant, id: ResourceId) {
        let Some(document) = &self.documents[id as usize] else { return };
        if document.parsing || document.ended || document.received == 0 && document.len > 0 {
            return;
        }
        while let Some(child) = self.document(id).reached() {
            if !self.pass(now, id, child) {
                return;
            }
            self.document(id).passed += 1;
        }
        let document = self.document(id);
        if document.next_stretch().0 > document.parsed {
            document.parsing = true;
            self.main_thread.enqueue(Task::Parse(id));
        } else if document.is_parsed()
            && matches!(self.records[id as usize].progress, Progress::Arrived | Progress::Failed(_))
        {
            self.end(now, id);
        }
    }

    /// Takes the parser past a reference, or says that it must wait there.
    fn pass(&mut self, now: Instant, id: ResourceId, child: ResourceId) -> bool {
        let resource = &self.page.resources[child as usize];
        if resource.scripted {
            if !self.document(id).styles.is_empty() {
                return false; // the inline script that writes it waits for them
            }
            self.discover(now, child);
        }
        let Cause::Parser { script, .. } = self.chains.place(self.page, child) else {
            unreachable!("a parser's reference")
        };
        let child = self.chains.last(child);
        let ended = self.is_over(child);
        match (self.page.resources[child as usize].kind, script) {
            (Kind::Style, _) if !ended => self.document(id).styles.push(child),
            (Kind::Script, ScriptMode::Sync) if !ended => {
                self.run_in_turn(id, child);
                return false;
            }
            (Kind::Script, ScriptMode::Defer) if !ended => self.document(id).deferred.push_back(child),
            _ => {}
        }
        true
    }

    /// Whether nothing more will come of a resource that a document waits for.
    fn is_over(&self, id: ResourceId) -> bool {
        let progress = &self.records[id as usize].progress;
        matches!(progress, Progress::Used | Progress::Failed(_) | Progress::Missing)
    }

    /// Runs a script on which the document waits, once it is there and no style sheet holds it back.
    fn run_in_turn(&mut self, id: ResourceId, script: ResourceId) {
        let held_back = !self.document(id).styles.is_empty();
        let task = Task::Use(script);
        if !held_back
            && self.records[script as usize].progress == Progress::Arrived
            && !self.main_thread.has(task)
        {
            self.main_thread.enqueue(task);
        }
    }

    /// All bytes that came are parsed: runs deferred scripts, and ends the document behind the last of them.
    fn end(&mut self, now: Instant, id: ResourceId) {
        while let Some(&script) = self.document(id).deferred.front() {
            if !self.is_over(script) {
                return self.run_in_turn(id, script);
            }
            self.document(id).deferred.pop_front();
        }
        self.document(id).ended = true;
        if id == self.main {
            self.moments.parsed = Some(now);
        }
        if self.records[id as usize].progress == Progress::Arrived {
            self.finish_use(now, id);
        }
    }

    /// The main thread begins to parse: how much of the document's computation that takes.
    pub(crate) fn begin_parse(&mut self, id: ResourceId) -> (u64, f64) {
        self.document(id).next_stretch()
    }

    /// The main thread has parsed up to `to`.
    pub(crate) fn finish_parse(&mut self, now: Instant, id: ResourceId, to: u64) {
        let document = self.document(id);
        document.parsing = false;
        document.parsed = to;
        self.advance(now, id);
    }

    /// Whether there is something to show.
    pub(crate) fn can_paint(&self) -> bool {
        let Some(document) = &self.documents[self.main as usize] else { return false };
        let (references, bytes) = document.head;
        let reached = document.received > 0 && document.parsed >= bytes && document.passed >= references;
        (reached || document.ended) && document.styles.is_empty()
    }
}
