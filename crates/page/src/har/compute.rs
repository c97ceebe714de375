//! Computation: what the network does not explain. The module above says how, and what is crude about it.

use crate::har::cause::{Causes, Edge, Moments};
use crate::har::entry::Load;
use crate::har::notes::Notes;
use crate::model::Kind;

/// A script that asks for something within this time of being ready, or within [`RUN_NS_MAX`] for each of its bytes,
/// is taken to have computed until then; one that asks later, to have waited for something else, such as a timer.
const RUN_MS_MIN: f64 = 50.0;
/// Nanoseconds a decoded byte: several times what the slowest scripts take on a desktop.
const RUN_NS_MAX: f64 = 1_000.0;
/// The longest wait that is kept on an edge.
const WAIT_MS_MAX: f64 = 60_000.0;
/// The longest parse, or computation before `onload`, that is kept.
const PARSE_MS_MAX: f64 = 10_000.0;
/// A connection that was freed this shortly before a request was what the request waited for.
const FREED_MS: f64 = 10.0;
/// Only a parser's start this long after its document is there counts as computation.
const LAG_MS_MAX: f64 = 250.0;
/// A resource that outlives `onload` by more than stamps can differ did not hold it back.
const OUTLIVES_MS: f64 = 50.0;

/// Nanoseconds a decoded byte, where nothing recorded says more. A guess at a desktop of the time: published
/// measurements range over a factor of ten with device and code.
struct Costs {
    script: f64,
    style: f64,
    document: f64,
}

const COSTS_2012: Costs = Costs { script: 150.0, style: 50.0, document: 200.0 };
const COSTS_TODAY: Costs = Costs { script: 50.0, style: 20.0, document: 100.0 };

/// All in milliseconds.
pub(crate) struct Computation {
    /// A load.
    pub exec: Vec<f64>,
    /// A load: from its parent's use to its start.
    pub delay: Vec<f64>,
    /// A load: whether `onload` did not wait for it.
    pub after_load: Vec<bool>,
    pub tail: f64,
}

pub(crate) fn find(
    loads: &[Load],
    causes: &Causes,
    moments: Moments,
    year: i64,
    notes: &mut Notes,
) -> Computation {
    let mut after_load = vec![false; loads.len()];
    if let Some(loaded) = moments.loaded {
        for (i, load) in loads.iter().enumerate().skip(causes.main + 1) {
            let outlives = load.times.start <= loaded && load.times.end > loaded + OUTLIVES_MS;
            after_load[i] = load.times.start > loaded || outlives;
            if outlives {
                notes.add(
                    "outlives-load",
                    "asked for before onload and still loading after it: onload does not wait for it",
                );
            }
        }
    }
    let queued = queued(loads);
    let mut work = Work {
        loads,
        causes,
        queued: &queued,
        costs: if year < 2014 { COSTS_2012 } else { COSTS_TODAY },
        first_child: vec![f64::INFINITY; loads.len()],
        used: causes.ready.clone(),
        exec: vec![0.0; loads.len()],
    };
    work.run_scripts(notes);
    if let Some(parsed) = moments.content_loaded {
        work.run_last_script(parsed);
        work.parse_document(parsed);
        notes.add(
            "parse-time",
            "the document's parse time is what the network leaves unexplained before DOMContentLoaded",
        );
    }
    let delay = work.delays(moments, notes);
    let last = loads
        .iter()
        .enumerate()
        .filter(|(i, _)| !after_load[*i])
        .map(|(i, l)| l.times.end.max(work.used[i]))
        .fold(moments.content_loaded.unwrap_or(f64::NEG_INFINITY), f64::max);
    let tail = moments.loaded.map_or(0.0, |m| (m - last).clamp(0.0, PARSE_MS_MAX));
    Computation { exec: work.exec, delay, after_load, tail }
}

/// Loads that waited for a connection of which the recorder does not tell: it was busy with another request until
/// just before, and with nothing else.
fn queued(loads: &[Load]) -> Vec<bool> {
    let mut free_at: std::collections::BTreeMap<&str, f64> = Default::default();
    let mut out = vec![false; loads.len()];
    for (i, load) in loads.iter().enumerate().filter(|(_, l)| !l.connection.is_empty()) {
        let free = free_at.entry(&load.connection).or_insert(f64::NEG_INFINITY);
        out[i] = load.times.queue_unknown && (-1.0..=FREED_MS).contains(&(load.times.start - *free));
        *free = free.max(load.times.end);
    }
    out
}

struct Work<'a> {
    loads: &'a [Load],
    causes: &'a Causes,
    queued: &'a [bool],
    costs: Costs,
    /// When the first request was made that waited for each resource's completion.
    first_child: Vec<f64>,
    /// When each resource's use was over.
    used: Vec<f64>,
    exec: Vec<f64>,
}

impl Work<'_> {
    /// One thread runs all scripts, in the order in which they are ready.
    fn run_scripts(&mut self, notes: &mut Notes) {
        for (i, edge) in self.causes.edges.iter().enumerate() {
            if let Edge::Completion(parent) = *edge
                && !self.queued[i]
            {
                self.first_child[parent] = self.first_child[parent].min(self.loads[i].times.start);
            }
        }
        let ready = &self.causes.ready;
        let mut order: Vec<usize> = (0..self.loads.len()).collect();
        order.sort_by(|a, b| ready[*a].total_cmp(&ready[*b]).then(a.cmp(b)));
        let mut busy = f64::NEG_INFINITY;
        for i in order {
            let decoded = self.decoded(i);
            match self.loads[i].kind {
                Kind::Script => {
                    let begin = ready[i].max(busy);
                    let gap = self.first_child[i] - begin;
                    self.exec[i] = if gap <= self.run_max(i) {
                        notes.tally(
                            "computation",
                            "a script's run time from",
                            "the gap before what it asked for",
                        );
                        gap.max(0.0)
                    } else {
                        notes.tally("computation", "a script's run time from", "its size, a guess");
                        decoded * self.costs.script / 1e6
                    };
                    self.used[i] = begin + self.exec[i];
                    busy = busy.max(self.used[i]);
                }
                Kind::Style => {
                    self.exec[i] = decoded * self.costs.style / 1e6;
                    self.used[i] = ready[i] + self.exec[i];
                }
                Kind::Document => self.exec[i] = decoded * self.costs.document / 1e6,
                _ => {}
            }
        }
    }

    fn decoded(&self, i: usize) -> f64 {
        let sizes = &self.loads[i].sizes;
        sizes.content.or(sizes.body).unwrap_or(0) as f64
    }

    /// The longest that a script is taken to run.
    fn run_max(&self, i: usize) -> f64 {
        RUN_MS_MIN.max(self.decoded(i) * RUN_NS_MAX / 1e6)
    }

    /// The style sheets and scripts whose use was over when the document was parsed.
    fn used_until(&self, parsed: f64) -> impl Iterator<Item = usize> + '_ {
        let kinds = [Kind::Style, Kind::Script];
        (self.causes.main + 1..self.loads.len())
            .filter(move |i| kinds.contains(&self.loads[*i].kind) && self.used[*i] <= parsed)
    }

    /// The last script that the parser waited for runs until the document is parsed, less what others ran meanwhile.
    fn run_last_script(&mut self, parsed: f64) {
        let blocking = |i: &usize| self.causes.blocking[*i];
        let last = self.used_until(parsed).filter(blocking);
        let Some(i) = last.max_by(|a, b| self.used[*a].total_cmp(&self.used[*b])) else { return };
        let begin = self.used[i] - self.exec[i];
        let after = self.used_until(parsed).filter(|j| self.used[*j] > self.used[i]);
        let others: f64 = after.map(|j| self.exec[j]).sum();
        let run = (parsed - begin - others).min(self.run_max(i)).min(self.first_child[i] - begin);
        if run > self.exec[i] {
            self.exec[i] = run;
            self.used[i] = begin + run;
        }
    }

    /// The main document: the parser's late start, and what was left to do when the last style sheet or script
    /// before `DOMContentLoaded` had been used.
    fn parse_document(&mut self, parsed: f64) {
        let main = self.causes.main;
        let end = self.loads[main].times.end;
        let last = self.used_until(parsed).map(|i| self.used[i]).fold(end, f64::max);
        let first = (main + 1..self.loads.len())
            .filter(|i| matches!(self.causes.edges[*i], Edge::Parser { parent, .. } if parent == main))
            .map(|i| self.loads[i].times.start)
            .fold(f64::INFINITY, f64::min);
        let lag = if last > end { (first - end).clamp(0.0, LAG_MS_MAX) } else { 0.0 };
        self.exec[main] = (lag + (parsed - last).max(0.0)).min(PARSE_MS_MAX);
    }

    fn delays(&self, moments: Moments, notes: &mut Notes) -> Vec<f64> {
        let delay = |(i, edge): (usize, &Edge)| {
            let start = self.loads[i].times.start;
            let wait = match *edge {
                Edge::Completion(parent) if !self.queued[i] => start - self.used[parent],
                Edge::Load => start - moments.loaded.unwrap_or(start),
                _ => 0.0,
            };
            if self.queued[i] && matches!(edge, Edge::Completion(_)) {
                notes.add(
                    "queued",
                    "waited for a connection for an unknown time: no delay beyond its parent assumed",
                );
            }
            if wait > WAIT_MS_MAX {
                notes.add("wait-cut", "asked for more than a minute after its cause: taken as one minute");
            }
            wait.clamp(0.0, WAIT_MS_MAX)
        };
        self.causes.edges.iter().enumerate().map(delay).collect()
    }
}
