//! What made the browser ask for each resource: from what was recorded, else inferred. The module above says how.

use std::collections::BTreeMap;

use crate::har::entry::Load;
use crate::har::initiator::By;
use crate::har::notes::Notes;
use crate::har::url::Url;
use crate::model::{Kind, ScriptMode};

/// After a document's last byte and the parser's start, how long markup may go on naming style sheets and scripts.
/// The preload scanner reads 100 kB in less.
const SCAN_MS: f64 = 100.0;
/// The most that a parser is taken to start late, after its document is there.
const LAG_MS_MAX: f64 = 250.0;
/// Stamps of one recording agree to about this.
const CLOCK_MS: f64 = 1.0;
/// How long after its recorded end a parser may still be seen to ask, if the recorder says that it did.
const PARSED_SLACK_MS: f64 = 50.0;
/// The same if nobody says so: what it asked for last reaches the network stack a little later.
const PARSED_GUESS_MS: f64 = 20.0;

/// Why a resource was asked for. Numbers are positions in the sorted loads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Edge {
    Root,
    Redirect(usize),
    Parser { parent: usize, line: Option<u32>, scripted: bool },
    Completion(usize),
    Load,
}

/// The page's own moments, in milliseconds since 1970.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Moments {
    pub content_loaded: Option<f64>,
    pub loaded: Option<f64>,
}

/// The dependencies of a page.
pub(crate) struct Causes {
    pub edges: Vec<Edge>,
    /// The moment at which the network had brought all that each resource's use waits for.
    pub ready: Vec<f64>,
    /// Whether the parser waited for each: scripts.
    pub blocking: Vec<bool>,
    /// The document that the navigation ended at: the root, or what it redirects to.
    pub main: usize,
}

/// For each load, the one that redirected to it.
pub(crate) fn redirects(loads: &[Load]) -> Vec<Option<usize>> {
    let mut pending: BTreeMap<&Url, Vec<usize>> = BTreeMap::new();
    let mut out = vec![None; loads.len()];
    for (i, load) in loads.iter().enumerate() {
        out[i] = pending.get_mut(&load.url).and_then(Vec::pop);
        if let Some(location) = &load.location {
            pending.entry(location).or_default().push(i);
        }
    }
    out
}

/// For each load, the one that it redirected to: [`redirects`] the other way round.
pub(crate) fn targets(redirects: &[Option<usize>]) -> Vec<Option<usize>> {
    let mut out = vec![None; redirects.len()];
    for (to, from) in redirects.iter().enumerate() {
        if let Some(from) = from {
            out[*from] = Some(to);
        }
    }
    out
}

/// Entries that name one another as initiators in a circle, if there are any: positions. The navigation's own
/// initiator is left out; it is the page before.
pub(crate) fn cycle(loads: &[Load]) -> Option<Vec<usize>> {
    let by_url = positions(loads);
    let next = |i: usize| -> Option<usize> {
        let all = by_url.get(&loads[i].initiator.as_ref()?.url)?;
        if i == 0 {
            return None;
        }
        // An earlier load of that URL can be the one; the graph then points back in time. Else a later one is named.
        // Itself says nothing: a document that loads itself again is recorded so.
        let named = all.iter().rev().find(|j| **j < i).or_else(|| all.first()).copied();
        named.filter(|j| *j != i)
    };
    // 0: not seen, else the number of the walk that saw it.
    let mut seen = vec![0; loads.len()];
    for start in 0..loads.len() {
        let mut at = start;
        while seen[at] == 0 {
            seen[at] = start + 1;
            let Some(to) = next(at) else { break };
            if seen[to] == start + 1 {
                let mut circle = vec![to];
                let mut walk = next(to);
                while let Some(j) = walk.filter(|j| *j != to) {
                    circle.push(j);
                    walk = next(j);
                }
                return Some(circle);
            }
            at = to;
        }
    }
    None
}

fn positions(loads: &[Load]) -> BTreeMap<&Url, Vec<usize>> {
    let mut by_url: BTreeMap<&Url, Vec<usize>> = BTreeMap::new();
    for (i, load) in loads.iter().enumerate() {
        by_url.entry(&load.url).or_default().push(i);
    }
    by_url
}

/// Finds every load's cause. `loads` are sorted by start; the first is the navigation.
pub(crate) fn find(loads: &[Load], moments: Moments, notes: &mut Notes) -> Causes {
    let redirects = redirects(loads);
    let targets = targets(&redirects);
    let mut main = 0;
    while let Some(next) = targets[main] {
        main = next;
    }
    let mut finder = Finder {
        loads,
        moments,
        by_url: positions(loads),
        redirects,
        targets,
        main,
        edges: Vec::with_capacity(loads.len()),
        ready: Vec::with_capacity(loads.len()),
        blocking: vec![false; loads.len()],
        documents: BTreeMap::new(),
    };
    for i in 0..loads.len() {
        let edge = finder.decide(i, notes);
        finder.ready_at(i, edge);
        finder.edges.push(edge);
    }
    Causes { edges: finder.edges, ready: finder.ready, blocking: finder.blocking, main }
}

/// How a script relates to the parser, as far as the recording says.
pub(crate) fn script_mode(load: &Load, scripted: bool, notes: &mut Notes) -> ScriptMode {
    use crate::model::Priority;
    if load.kind != Kind::Script {
        return ScriptMode::Sync;
    }
    if scripted {
        return ScriptMode::Async;
    }
    match (load.blocking, load.priority) {
        (Some(true), _) => ScriptMode::Sync,
        (Some(false), _) => {
            notes.add("script-async", "script taken as async: Chrome recorded that it blocks nothing");
            ScriptMode::Async
        }
        (None, Some(Priority::Low | Priority::VeryLow)) => {
            notes.add(
                "script-async",
                "script taken as async: Chrome asks at this low priority for async and defer only",
            );
            ScriptMode::Async
        }
        _ => ScriptMode::Sync,
    }
}

struct Finder<'a> {
    loads: &'a [Load],
    moments: Moments,
    by_url: BTreeMap<&'a Url, Vec<usize>>,
    redirects: Vec<Option<usize>>,
    targets: Vec<Option<usize>>,
    main: usize,
    edges: Vec<Edge>,
    ready: Vec<f64>,
    blocking: Vec<bool>,
    documents: BTreeMap<usize, DocumentState>,
}

/// What is known of a document's parser.
#[derive(Clone, Copy)]
struct DocumentState {
    /// When markup has named its last style sheet and script.
    scanned: f64,
    /// When the parser is done.
    parsed: f64,
    /// When the last script that the parser waited for could run.
    scripted: f64,
}

impl Finder<'_> {
    fn decide(&mut self, i: usize, notes: &mut Notes) -> Edge {
        const QUESTION: &str = "cause from";
        if i == 0 {
            return Edge::Root;
        }
        if let Some(from) = self.redirects[i] {
            notes.tally("causes", QUESTION, "redirection");
            return Edge::Redirect(from);
        }
        let load = &self.loads[i];
        if let Some(initiator) = load.initiator.as_ref() {
            match self.earlier(&initiator.url, i) {
                Some(parent) => {
                    notes.tally("causes", QUESTION, "the recorded initiator");
                    return self.by_parent(i, parent, initiator.line, initiator.by, notes);
                }
                None => notes.add(
                    "initiator-unknown",
                    "the recorded initiator is not among the page's earlier requests; inferred instead",
                ),
            }
        }
        let referer = load.referer.as_ref().and_then(|r| self.referer(r, i));
        match referer {
            Some(parent) if parent != self.main && self.loads[parent].kind != Kind::Document => {
                notes.tally("causes", QUESTION, "Referer");
                self.by_parent(i, parent, None, By::Unknown, notes)
            }
            Some(document) if document != self.main => {
                notes.tally("causes", QUESTION, "Referer");
                self.in_document(i, document)
            }
            _ => {
                notes.tally("causes", QUESTION, "type and timing");
                self.in_document(i, self.main)
            }
        }
    }

    /// The latest load of `url` before `i` that can ask for others; what it redirected to, if it did. (A page's own
    /// URL is also what an image with an empty `src` asks for.)
    fn earlier(&self, url: &Url, i: usize) -> Option<usize> {
        let before = || self.by_url.get(url).into_iter().flatten().rev().filter(|j| **j < i);
        let asks = |j: &&usize| matches!(self.loads[**j].kind, Kind::Document | Kind::Style | Kind::Script);
        let mut at = before().find(asks).or_else(|| before().next()).copied()?;
        while let Some(next) = self.targets[at].filter(|next| *next < i) {
            at = next;
        }
        Some(at)
    }

    /// The document or style sheet that a `Referer` means. Since browsers cut it to the origin for other sites, an
    /// origin stands for the latest document from there.
    fn referer(&self, referer: &Url, i: usize) -> Option<usize> {
        if let Some(at) = self.earlier(referer, i) {
            return Some(at);
        }
        if referer.path != "/" {
            return None;
        }
        let here = |j: &usize| {
            let load = &self.loads[*j];
            load.kind == Kind::Document && load.location.is_none() && load.url.same_origin(referer)
        };
        if here(&self.main) { Some(self.main) } else { (0..i).rev().find(here) }
    }

    /// The parent is known.
    fn by_parent(&mut self, i: usize, parent: usize, line: Option<u32>, by: By, notes: &mut Notes) -> Edge {
        let load = &self.loads[i];
        if self.loads[parent].kind != Kind::Document {
            // Whichever came last let it go: the parent, or `onload`.
            return match self.moments.loaded {
                Some(loaded) if load.times.start > loaded && self.ready[parent] <= loaded => Edge::Load,
                _ => Edge::Completion(parent),
            };
        }
        let scripted = by == By::Script;
        if scripted && line.is_none() && self.last(i, &[Kind::Script]).is_some() {
            return self.late(i, parent);
        }
        // A place in the markup is believed of a recorder that stamps the end of a queue: it then knows better.
        let queued = load.times.queue_unknown && line.is_some() && !scripted;
        if queued || load.times.start <= self.document(parent).parsed + PARSED_SLACK_MS {
            return Edge::Parser { parent, line, scripted };
        }
        notes.add(
            "late",
            "asked for by a document that was parsed before: taken as asked for by the last script before it, or by onload",
        );
        self.late(i, parent)
    }

    /// Only the document is known, or assumed: the resource's kind and its start decide.
    fn in_document(&mut self, i: usize, parent: usize) -> Edge {
        let load = &self.loads[i];
        let document = self.document(parent);
        let parser = Edge::Parser { parent, line: None, scripted: false };
        let after = |finder: &Self, kinds: &[Kind]| finder.last(i, kinds).map(Edge::Completion);
        if self.moments.loaded.is_some_and(|loaded| load.times.start > loaded)
            && load.times.start > document.parsed
        {
            return self.late(i, parent);
        }
        match load.kind {
            Kind::Style | Kind::Script if load.times.start <= document.scanned => parser,
            Kind::Style => after(self, &[Kind::Style, Kind::Script]).unwrap_or(parser),
            Kind::Script => after(self, &[Kind::Script]).unwrap_or(parser),
            Kind::Document | Kind::Image | Kind::Media | Kind::Other
                if load.times.start <= document.parsed + PARSED_GUESS_MS =>
            {
                parser
            }
            Kind::Document | Kind::Image | Kind::Media | Kind::Other => self.late(i, parent),
            Kind::Font => after(self, &[Kind::Style]).unwrap_or(parser),
            Kind::Xhr => {
                after(self, &[Kind::Script]).unwrap_or(Edge::Parser { parent, line: None, scripted: true })
            }
        }
    }

    /// Asked for after its document was parsed, so that no markup can have named it.
    fn late(&self, i: usize, document: usize) -> Edge {
        let load = &self.loads[i];
        let last = self.last(i, &[Kind::Script, Kind::Style]);
        match (self.moments.loaded, last) {
            (Some(loaded), Some(last)) if load.times.start > loaded && self.ready[last] <= loaded => {
                Edge::Load
            }
            (Some(loaded), None) if load.times.start > loaded => Edge::Load,
            (_, Some(last)) => Edge::Completion(last),
            (_, None) => Edge::Completion(document),
        }
    }

    /// The resource of one of `kinds` that was the last to be usable before load `i` started.
    fn last(&self, i: usize, kinds: &[Kind]) -> Option<usize> {
        let before = self.loads[i].times.start + CLOCK_MS;
        let usable = |j: &usize| {
            let load = &self.loads[*j];
            kinds.contains(&load.kind) && load.status < 300 && self.ready[*j] <= before
        };
        (0..i).filter(usable).max_by(|a, b| self.ready[*a].total_cmp(&self.ready[*b]).then(a.cmp(b)))
    }

    fn document(&mut self, at: usize) -> DocumentState {
        if let Some(known) = self.documents.get(&at) {
            return *known;
        }
        let document = &self.loads[at];
        let named = |load: &&Load| {
            let by = load.initiator.as_ref().map(|i| &i.url).or(load.referer.as_ref());
            matches!(load.kind, Kind::Style | Kind::Script) && by == Some(&document.url)
        };
        let children = || self.loads[at + 1..].iter().filter(named);
        let first = children().map(|c| c.times.start).fold(f64::INFINITY, f64::min);
        let lag = if first.is_finite() { (first - document.times.end).clamp(0.0, LAG_MS_MAX) } else { 0.0 };
        let scanned = document.times.end + lag + SCAN_MS;
        let parsed = match self.moments.content_loaded {
            Some(moment) if at == self.main => moment.max(document.times.first_byte),
            // Not recorded: when all that the markup named and the parser waits for is there.
            _ => {
                children().filter(|c| c.times.start <= scanned).map(|c| c.times.end).fold(scanned, f64::max)
                    + SCAN_MS
            }
        };
        let state = DocumentState { scanned, parsed, scripted: 0.0 };
        self.documents.insert(at, state);
        state
    }

    /// Notes when load `i` could be used: a script that the parser waits for also waits for the scripts before it and
    /// for pending style sheets (HTML, "Interactions of styling and scripting"), which here are those that were on
    /// their way when it arrived.
    fn ready_at(&mut self, i: usize, edge: Edge) {
        let load = &self.loads[i];
        let mut ready = load.times.end;
        if let Edge::Parser { parent, scripted: false, .. } = edge {
            self.document(parent);
            let sync = script_mode(load, false, &mut Notes::default()) == ScriptMode::Sync;
            if let Some(document) = self.documents.get_mut(&parent)
                && load.kind == Kind::Script
                && sync
            {
                let pending = |l: &&Load| {
                    let by_script = l.initiator.as_ref().is_some_and(|i| i.by == By::Script);
                    l.kind == Kind::Style && l.times.start <= load.times.end && !by_script
                };
                let styled = self.loads[parent..].iter().filter(pending).map(|l| l.times.end);
                ready = styled.fold(ready.max(document.scripted), f64::max);
                document.scripted = ready;
                self.blocking[i] = true;
            }
        }
        self.ready.push(ready);
    }
}
