//! From a log to pages: which entries belong together, what the file as a whole tells about each host and URL, and
//! the page itself.

use std::collections::{BTreeMap, BTreeSet};

use base::Duration;

use crate::error::{Error, Fault};
use crate::har::body::Bodies;
use crate::har::cause::{self, Causes, Edge, Moments};
use crate::har::compute::{self, Computation};
use crate::har::entry::{self, Load, Reading, Skip};
use crate::har::notes::Notes;
use crate::har::offset::{self, Place};
use crate::har::record::{Entry, Log, Number, PageRecord, Program};
use crate::har::whole::WholeFile;
use crate::har::{ENTRIES_MAX, clock, shortened, times, write};
use crate::model::{Cause, Host, Kind, Page, Recorded, Resource, ResourceId, Source};

/// A page's record and its entries, as yet unchecked.
struct Group {
    record: PageRecord,
    start: Option<f64>,
    entries: Vec<(usize, Entry)>,
}

/// A page whose entries are checked and sorted.
struct Draft {
    record: PageRecord,
    /// What the page's own times count from: its `startedDateTime`.
    zero: f64,
    loads: Vec<Load>,
    notes: Notes,
}

/// Turns a log into pages, with their bodies if these are wanted.
pub(crate) fn pages(log: Log, file: &str, bodies: bool) -> Result<Vec<(Page, Bodies)>, Error> {
    let entries = log.entries.unwrap_or_default();
    if entries.is_empty() {
        return Err(Error::of_field(file, "log.entries", Fault::NoEntries));
    }
    let recorder = program(log.creator.as_ref());
    let browser = program(log.browser.as_ref());
    let lower = recorder.to_ascii_lowercase();
    let flavour = Flavour {
        reading: Reading { webpagetest: lower.contains("webpagetest"), bodies },
        webinspector: lower.contains("webinspector"),
    };
    let mut drafts = Vec::new();
    let mut empty = Vec::new();
    let mut own = Vec::new();
    for group in groups(log.pages.unwrap_or_default(), entries, file)? {
        if group.record.velodrome.is_some() {
            own.push((write::read_back(group.record, group.entries, file)?, Bodies::new()));
            continue;
        }
        let (id, count) = (group.record.id.0.clone(), group.entries.len());
        match draft(group, flavour, file)? {
            Some(draft) => drafts.push(draft),
            None => empty.push((id, count)),
        }
    }
    let Some(first) = drafts.first_mut() else {
        if !own.is_empty() {
            return Ok(own);
        }
        return Err(Error::of_field(file, "log.entries", Fault::NothingLoaded));
    };
    for (id, _) in empty.iter().filter(|(_, count)| *count > 0) {
        let detail = format!("page {:?} of the same file is left out: none of its requests completed", id);
        first.notes.add("page-skipped", detail);
    }
    let several = drafts.len() > 1;
    let whole = WholeFile::new(drafts.iter().flat_map(|d| &d.loads));
    let mut names = BTreeSet::new();
    let mut out = own;
    for draft in drafts {
        let id = page_id(file, &draft.record.id, several, &mut names);
        let (mut page, bodies) = page(draft, &whole, file, id)?;
        page.recorded.recorder.clone_from(&recorder);
        page.recorded.browser.clone_from(&browser);
        out.push((page, bodies));
    }
    Ok(out)
}

fn program(program: Option<&Program>) -> String {
    program.map(|p| shortened(format!("{} {}", &*p.name, &*p.version).trim(), 100)).unwrap_or_default()
}

/// Parts the entries by page: by `pageref`; else by the page that was the last to start before the entry; else to the
/// first page.
fn groups(pages: Vec<PageRecord>, entries: Vec<Entry>, file: &str) -> Result<Vec<Group>, Error> {
    let mut groups = Vec::with_capacity(pages.len().max(1));
    for (i, record) in pages.into_iter().enumerate() {
        let start = times::moment(&record.started_date_time, "startedDateTime")
            .map_err(|(field, fault)| Error::of_field(file, format!("log.pages[{i}].{field}"), fault))?;
        groups.push(Group { record, start, entries: Vec::new() });
    }
    if groups.is_empty() {
        groups.push(Group { record: PageRecord::default(), start: None, entries: Vec::new() });
    }
    let by_id: BTreeMap<String, usize> =
        groups.iter().enumerate().rev().map(|(i, g)| (g.record.id.0.clone(), i)).collect();
    for (index, entry) in entries.into_iter().enumerate() {
        let named = if entry.pageref.is_empty() { None } else { by_id.get(&*entry.pageref).copied() };
        let before = || {
            let start = clock::parse(&entry.started_date_time)?;
            let started = |g: &Group| g.start.filter(|s| *s <= start);
            (0..groups.len())
                .filter(|i| started(&groups[*i]).is_some())
                .max_by(|a, b| started(&groups[*a]).partial_cmp(&started(&groups[*b])).expect("finite"))
        };
        let at = named.or_else(before).unwrap_or(0);
        groups[at].entries.push((index, entry));
        if groups[at].entries.len() > ENTRIES_MAX {
            let fault = Fault::TooManyEntries { count: groups[at].entries.len(), max: ENTRIES_MAX };
            return Err(Error::of_field(file, "log.entries", fault));
        }
    }
    Ok(groups)
}

/// Whose habits a file has.
#[derive(Clone, Copy)]
struct Flavour {
    reading: Reading,
    webinspector: bool,
}

fn sort(loads: &mut [Load]) {
    loads.sort_by(|a, b| a.times.start.total_cmp(&b.times.start).then(a.index.cmp(&b.index)));
}

/// WebInspector writes entries in the order in which they were asked for, and stamps each with the moment at which the
/// network stack took it up, which with a busy main thread is up to half a second later. So each was asked for no
/// later than any that follows it. (Redirections stand elsewhere in the file; their stamps are kept.)
fn by_file_order(loads: &mut [Load], notes: &mut Notes) {
    /// No queue is this long: such a stamp is of another clock.
    const WRONG_MS: f64 = 10_000.0;
    let from = cause::redirects(loads);
    let to = cause::targets(&from);
    let mut order: Vec<usize> = (0..loads.len()).filter(|i| from[*i].is_none() && to[*i].is_none()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(loads[*i].index));
    let mut least = f64::INFINITY;
    for i in order {
        let load = &mut loads[i];
        least = least.min(load.times.start);
        let early = load.times.start - least;
        if early > WRONG_MS {
            notes.add(
                "start-moved",
                "startedDateTime more than 10 s later than that of the entry after it; moved there",
            );
            load.times.first_byte -= early;
            load.times.end -= early;
        } else if early > 0.0 {
            notes.add(
                "start-order",
                "asked for no later than the entry after it: WebInspector stamps the end of a queue",
            );
        }
        load.times.start = least;
    }
    sort(loads);
}

/// Checks a group's entries and sorts them by start. `None` if no request completed.
fn draft(group: Group, flavour: Flavour, file: &str) -> Result<Option<Draft>, Error> {
    let mut notes = Notes::default();
    let mut loads: Vec<Load> = Vec::with_capacity(group.entries.len());
    let mut last_start = group.start.unwrap_or(0.0);
    for (index, entry) in group.entries {
        let url = entry.request.as_ref().map(|r| shortened(&r.url, 120)).filter(|u| !u.is_empty());
        if entry.started_date_time.trim().is_empty() {
            notes.add("no-start", "no startedDateTime; taken as started with the entry before");
        }
        match entry::check(index, entry, last_start, flavour.reading, &mut notes) {
            Ok(load) => {
                last_start = load.times.start;
                loads.push(load);
            }
            Err(Skip::Scheme) => {
                notes.add("skipped-scheme", "data:, about: and the like: no request, left out")
            }
            Err(Skip::NoResponse) => notes.add("skipped-failed", "request without response, left out"),
            Err(Skip::Bad((field, fault))) => {
                let entry = Some(index);
                let url = url.map(Into::into);
                return Err(Error { file: file.into(), entry, url, field: Some(field.into()), fault });
            }
        }
    }
    sort(&mut loads);
    if flavour.webinspector {
        by_file_order(&mut loads, &mut notes);
    }
    if let Some(circle) = cause::cycle(&loads) {
        let entries: Vec<usize> = circle.iter().take(10).map(|i| loads[*i].index).collect();
        let first = &loads[circle[0]];
        return Err(Error {
            file: file.into(),
            entry: Some(first.index),
            url: Some(shortened(&first.url.to_string(), 120).into()),
            field: Some("_initiator".into()),
            fault: Fault::CyclicInitiator(entries),
        });
    }
    drop_before_navigation(&mut loads, &mut notes);
    let Some(first) = loads.first() else { return Ok(None) };
    let zero = group.start.filter(|s| (first.times.start - s).abs() < 60_000.0).unwrap_or(first.times.start);
    Ok(Some(Draft { record: group.record, zero, loads, notes }))
}

/// Makes the navigation the first load: the first request for a document, or for what redirects to one. What was
/// asked for before it, or before the document that it redirects to, belongs to the page before.
fn drop_before_navigation(loads: &mut Vec<Load>, notes: &mut Notes) {
    let redirects = cause::redirects(loads);
    let targets = cause::targets(&redirects);
    // A redirection is of the kind of what it leads to.
    for i in (0..loads.len()).rev() {
        if let Some(to) = targets[i] {
            loads[i].kind = loads[to].kind;
        }
    }
    let root = (0..loads.len()).find(|i| loads[*i].kind == Kind::Document && redirects[*i].is_none());
    let mut chain = vec![root.unwrap_or(0)];
    while let Some(next) = chain.last().and_then(|at| *targets.get(*at)?) {
        chain.push(next);
    }
    let main = chain.last().copied().unwrap_or(0);
    let mut position = 0;
    loads.retain(|_| {
        let keep = position >= main || chain.contains(&position);
        if !keep {
            notes.add("before-navigation", "asked for before the page's document, left out");
        }
        position += 1;
        keep
    });
    for load in loads.iter_mut().take(chain.len()) {
        if load.kind != Kind::Document {
            notes.add("root-kind", "the first request is for no HTML; taken as the document all the same");
            load.kind = Kind::Document;
        }
    }
}

/// The longest think time that is kept.
const THINK_MS_MAX: f64 = 60_000.0;

fn page(draft: Draft, whole: &WholeFile, file: &str, id: String) -> Result<(Page, Bodies), Error> {
    let Draft { record, zero, mut loads, mut notes } = draft;
    let start = loads[0].times.start;
    let (recorded, moments) = moments(&record, zero, start, file)?;
    let causes = cause::find(&loads, moments, &mut notes);
    let places = offset::places(&loads, &causes.edges, &mut notes);
    let computation = compute::find(&loads, &causes, moments, clock::year(start), &mut notes);
    if record.cached.get() == Some(1.0) {
        notes.add(
            "repeat-view",
            "a repeat view: what the browser's cache held was not recorded and is missing",
        );
    }
    let mut hosts = Vec::new();
    let mut bodies = Bodies::new();
    let mut resources: Vec<Resource> = Vec::with_capacity(loads.len());
    for i in 0..loads.len() {
        let host = host(&loads[i], whole, &mut hosts);
        let cause = resource_cause(i, &loads, &causes, &places, &computation, &resources, &mut notes);
        resources.push(resource(&mut loads[i], whole, host, cause, &mut notes));
        if let Some(body) = loads[i].body.take() {
            bodies.insert(i as ResourceId, body.encode(&resources[i].response, &mut notes));
        }
        resources[i].exec = Duration::from_millis_f64(computation.exec[i]);
        resources[i].after_load = computation.after_load[i];
        resources[i].scripted = matches!(causes.edges[i], Edge::Parser { scripted: true, .. });
    }
    let mut page = Page {
        id,
        title: shortened(&record.title, 200),
        url: String::new(),
        source: Source { file: file.to_owned(), page: record.id.0 },
        hosts,
        resources,
        tail: Duration::from_millis_f64(computation.tail),
        recorded,
        assumptions: notes.finish(),
    };
    page.url = page.resource_url(0);
    page.validate().map_err(|invalid| Error::of_file(file, Fault::Invalid(invalid)))?;
    Ok((page, bodies))
}

/// The page's own times: as spans since navigation, and as moments. They count from `zero`, which lies before the
/// first request's start (the page's own start), or after it: chrome-har's, if the first requests were redirected.
fn moments(record: &PageRecord, zero: f64, start: f64, file: &str) -> Result<(Recorded, Moments), Error> {
    let read = |number: &Number, field: &'static str| {
        times::time(number, field).map_err(|(field, fault)| {
            Error::of_field(file, format!("page {:?}: {field}", shortened(&record.id, 40)), fault)
        })
    };
    let default = Default::default();
    let timings = record.page_timings.as_ref().unwrap_or(&default);
    // Zero is what recorders write for an event that has not happened yet.
    let positive = |ms: Option<f64>| ms.filter(|ms| *ms > 0.0);
    let loaded = positive(read(&timings.on_load, "pageTimings.onLoad")?);
    let content = positive(read(&timings.on_content_load, "pageTimings.onContentLoad")?)
        .or(positive(read(&record.dom_content_loaded, "_domContentLoadedEventStart")?))
        .filter(|c| loaded.is_none_or(|l| *c <= l));
    let mut painted = None;
    for (number, field) in [
        (&timings.first_paint, "pageTimings._firstPaint"),
        (&timings.first_contentful_paint, "pageTimings._firstContentfulPaint"),
        (&record.first_paint, "_firstPaint"),
        (&timings.start_render, "pageTimings._startRender"),
    ] {
        painted = painted.or(positive(read(number, field)?));
    }
    let since = |ms: f64| Duration::from_millis_f64(zero + ms - zero.min(start));
    let recorded = Recorded {
        on_load: loaded.map(since),
        on_content_load: content.map(since),
        first_paint: painted.map(Duration::from_millis_f64),
        ..Recorded::default()
    };
    Ok((recorded, Moments { content_loaded: content.map(|c| zero + c), loaded: loaded.map(|l| zero + l) }))
}

fn host(load: &Load, whole: &WholeFile, hosts: &mut Vec<Host>) -> u32 {
    let url = &load.url;
    let same = |h: &Host| (h.scheme_tls, &h.name, h.port) == (url.tls, &url.host, url.port);
    let at = hosts.iter().position(same).unwrap_or_else(|| {
        hosts.push(Host {
            name: url.host.clone(),
            scheme_tls: url.tls,
            port: url.port,
            rtt: whole.measured_rtt(url).map(Duration::from_millis_f64),
            dns: None,
            address: None,
        });
        hosts.len() - 1
    });
    let host = &mut hosts[at];
    if host.address.is_none() {
        host.address.clone_from(&load.address);
    }
    if let Some(dns) = load.times.dns.filter(|d| *d > 0.0) {
        let dns = Duration::from_millis_f64(dns);
        host.dns = Some(host.dns.map_or(dns, |d| d.max(dns)));
    }
    at as u32
}

fn resource(load: &mut Load, whole: &WholeFile, host: u32, cause: Cause, notes: &mut Notes) -> Resource {
    let elsewhere = whole.transferred(&load.url);
    let body_len = load.sizes.cold(&load.method, load.status, elsewhere.map(|e| e.0), notes);
    let wait = load.times.wait.or_else(|| {
        notes.add(
            "think-unknown",
            "answered from a cache: think time taken from the same URL elsewhere in the file, else none",
        );
        elsewhere?.1
    });
    let think = wait.map_or(0.0, |w| (w - whole.rtt(&load.url)).clamp(0.0, THINK_MS_MAX));
    if load.status == 304 {
        notes.add("revalidated", "304 taken as 200, as on a cold load");
    }
    Resource {
        host,
        method: std::mem::take(&mut load.method).into(),
        path: load.url.path.clone().into(),
        kind: load.kind,
        request: std::mem::take(&mut load.request),
        response: std::mem::take(&mut load.response),
        status: if load.status == 304 { 200 } else { load.status },
        request_body_len: load.request_body_len,
        body_len,
        think: Duration::from_millis_f64(think),
        cause,
        exec: Duration::ZERO,
        after_load: false,
        scripted: false,
        priority: load.priority,
    }
}

fn resource_cause(
    i: usize,
    loads: &[Load],
    causes: &Causes,
    places: &[Place],
    computation: &Computation,
    before: &[Resource],
    notes: &mut Notes,
) -> Cause {
    let delay = Duration::from_millis_f64(computation.delay[i]);
    match causes.edges[i] {
        Edge::Root => Cause::Root,
        Edge::Redirect(from) => Cause::Redirect(from as ResourceId),
        Edge::Parser { parent, scripted, .. } => {
            let len = before[parent].body_len;
            let offset = ((places[i].share * len as f64).round() as u64).min(len);
            let recorded = cause::script_mode(&loads[i], scripted, notes);
            let script = if scripted { recorded } else { places[i].mode.unwrap_or(recorded) };
            Cause::Parser { parent: parent as ResourceId, offset, script }
        }
        Edge::Completion(parent) => Cause::Completion { parent: parent as ResourceId, delay },
        Edge::Load => Cause::Load { delay },
    }
}

/// A name that is unique in the file and safe as a file name: the file's, and the page's if there are several.
fn page_id(file: &str, page: &str, several: bool, taken: &mut BTreeSet<String>) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let name = name.strip_suffix(".har").unwrap_or(name);
    let name = if several { format!("{name}-{page}") } else { name.to_owned() };
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let mut id: String = name.trim_start_matches('.').chars().map(safe).take(90).collect();
    if id.is_empty() {
        id.push_str("page");
    }
    let mut unique = id.clone();
    let mut n = 1;
    while !taken.insert(unique.clone()) {
        n += 1;
        unique = format!("{id}.{n}");
    }
    unique
}
