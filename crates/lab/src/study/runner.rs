//! The loads of a study: every arm's plan in the virtual world, on several threads, in order.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use page::{Cause, Host, Kind, Page, Resource, ScriptMode};

use super::measure::{ArmLoads, Sample};
use super::{Arm, Findings, PageSpec, STUDIES, Study};
use crate::error::Error;
use crate::network::Network;
use crate::plan::{FORMAT, Plan};
use crate::run::Jobs;
use crate::setting::{World, ms};
use crate::{pages, record, technique};

/// How a study is carried out; none of it shows in the findings.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Threads.
    pub threads: usize,
    /// Set from elsewhere to end it early.
    pub cancel: &'a AtomicBool,
    /// Hears how many of how many loads are done.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
}

/// Of arms with no more pages than this every request is kept.
const DETAILED_MAX: usize = 4;

/// Every study has this seed: nobody shall look for a better one.
const SEED: u64 = 1;

/// Carries a study out. `None` if it was cancelled.
pub fn run(study: Study, options: Options<'_>) -> Result<Option<Findings>, Error> {
    let mut arms = Vec::new();
    for arm in &study.arms {
        arms.push((plan(&study, arm)?, collect(&study, arm)?));
    }
    let total = arms.iter().map(|(plan, pages)| Jobs::new(plan, pages).len()).sum();
    let done = AtomicU64::new(0);
    let mut loads = Vec::new();
    for ((plan, pages), arm) in arms.iter().zip(&study.arms) {
        let samples = load_all(plan, pages, arm, options, &|| {
            (options.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, total);
        })?;
        let Some(samples) = samples else { return Ok(None) };
        let grid = arm.grid.as_ref().and_then(|name| study.grids.get(name)).cloned();
        let networks = plan.networks.clone();
        loads.push(ArmLoads { arm: arm.clone(), grid, networks, pages: pages.len(), samples });
    }
    let all = loads.iter().flat_map(|arm| &arm.samples);
    let left_out = |sample: &&Sample| sample.plt_ms.is_none() && !study.counts_incomplete;
    let incomplete = all.filter(left_out).count() as u64;
    let built_in = STUDIES.iter().find(|built_in| built_in.name == study.name);
    let (measured, pictures) = built_in.map(|built_in| (built_in.measure)(&loads)).unwrap_or_default();
    let figure = |key: &str| measured.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
    let ours = study.published.iter().map(|p| figure(&p.key).filter(|v| v.is_finite())).collect();
    let turns = built_in.and_then(|built_in| built_in.turns).map(|turns| turns(&loads)).unwrap_or_default();
    Ok(Some(Findings { study, ours, turns, pictures, loads: total, incomplete }))
}

/// The names of an arm's networks.
fn networks(study: &Study, arm: &Arm) -> Result<Vec<String>, Error> {
    let wrong = |what: String| Error::Asked(format!("arm '{}': {what}", arm.name));
    match &arm.grid {
        None if arm.networks.is_empty() => Err(wrong("it has neither networks nor a grid".into())),
        None => Ok(arm.networks.clone()),
        Some(_) if !arm.networks.is_empty() => {
            Err(wrong("it has both networks and a grid; leave one out".into()))
        }
        Some(name) => {
            let known = || study.grids.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let grid = study.grids.get(name);
            let grid =
                grid.ok_or_else(|| wrong(format!("there is no grid '{name}'; there are {}", known())))?;
            grid.networks().map_err(|e| wrong(format!("grid '{name}': {e}")))
        }
    }
}

pub(super) fn plan(study: &Study, arm: &Arm) -> Result<Plan, Error> {
    let mut networks = Vec::new();
    for name in self::networks(study, arm)? {
        let mut network = Network::named(&name)?;
        network.apply(&arm.set)?;
        networks.push(network);
    }
    let plan = Plan {
        format: FORMAT,
        world: World::Virtual,
        seed: SEED,
        runs: arm.runs,
        transports: arm.transports.clone(),
        pages: arm.pages.clone(),
        pages_max: None,
        techniques: arm.techniques.clone(),
        state: None,
        networks,
    };
    plan.check().map_err(|what| Error::Asked(format!("arm '{}': {what}", arm.name)))?;
    Ok(plan)
}

pub(super) fn collect(study: &Study, arm: &Arm) -> Result<Vec<Page>, Error> {
    let mut out = Vec::new();
    for source in &arm.pages {
        if let Some(id) = source.strip_prefix("page:") {
            let spec = study.pages.iter().find(|spec| spec.id == id);
            let spec = spec.ok_or_else(|| Error::Asked(format!("arm '{}': no page '{id}'", arm.name)))?;
            out.push(build(spec)?);
            continue;
        }
        if let Some(id) = source.strip_prefix("session:") {
            let spec = study.sessions.iter().find(|spec| spec.id == id);
            let spec = spec.ok_or_else(|| Error::Asked(format!("arm '{}': no session '{id}'", arm.name)))?;
            out.push(spec.build().map_err(Error::Asked)?);
            continue;
        }
        let collected = pages::collect(std::slice::from_ref(source), None);
        if let Some(problem) = collected.problems.first() {
            return Err(Error::Asked(format!("arm '{}': {problem}", arm.name)));
        }
        out.extend(collected.pages);
    }
    if arm.one_domain {
        out.iter_mut().for_each(move_to_one_domain);
    }
    Ok(out)
}

/// Serves all of a page from its first host. Paths that several hosts have stay apart.
fn move_to_one_domain(page: &mut Page) {
    for resource in &mut page.resources {
        if resource.host > 0 {
            let path = String::from_utf8_lossy(&resource.path);
            resource.path = format!("/{}{path}", page.hosts[resource.host as usize].name).into();
            resource.host = 0;
        }
    }
    page.hosts.truncate(1);
}

/// A page: the document, and what its first byte refers to, hosts in turn.
fn build(spec: &PageSpec) -> Result<Page, Error> {
    let root = Resource { body_len: spec.document_bytes, ..Resource::get("/", Kind::Document, Cause::Root) };
    let cause = Cause::Parser { parent: 0, offset: 1.min(spec.document_bytes), script: ScriptMode::Sync };
    let host = |name: &str| Host { scheme_tls: true, port: 443, ..Host::new(name) };
    let mut hosts = vec![host(spec.host.as_deref().unwrap_or("www.study.example"))];
    if spec.styles_elsewhere > 0 {
        hosts.push(host("cdn.study.example"));
    }
    // Number at its host, host, and bytes; the n-th of each host before the n+1-th of any.
    let own = spec.images.iter().flat_map(|[count, bytes]| std::iter::repeat_n(*bytes, *count as usize));
    let own = (0..).zip(own).map(|(n, bytes)| (n, 0, bytes));
    let of_host = |(host, (_, count, bytes)): (u32, &(String, u64, u64))| {
        let bytes = *bytes;
        (0..*count).map(move |n| (n, host, bytes))
    };
    let mut images: Vec<(u64, u32, u64)> =
        own.chain((hosts.len() as u32..).zip(&spec.elsewhere).flat_map(of_host)).collect();
    images.sort_by_key(|(n, ..)| *n); // stable
    let late = Cause::Completion { parent: 0, delay: ms(spec.images_after_ms) };
    let when = if spec.images_after_ms > 0.0 { late } else { cause };
    let image = |(n, (_, host, body_len)): (usize, (u64, u32, u64))| Resource {
        host,
        body_len,
        ..Resource::get(format!("/image/{n}.png"), Kind::Image, when)
    };
    let bulk = (spec.bulk_bytes > 0).then(|| Resource {
        body_len: spec.bulk_bytes,
        after_load: true,
        ..Resource::get("/bulk", Kind::Media, cause)
    });
    let images = images.into_iter().enumerate().map(image);
    let resources = std::iter::once(root).chain(bulk).chain(styles(spec, cause)).chain(images);
    hosts.extend(spec.elsewhere.iter().map(|(name, ..)| host(name)));
    Page::new(spec.id.clone(), hosts, resources.collect())
        .map_err(|e| Error::Asked(format!("page '{}': {e}", spec.id)))
}

/// A page's style sheets, some of them elsewhere, and its POSTs.
fn styles(spec: &PageSpec, cause: Cause) -> impl Iterator<Item = Resource> {
    let sizes: Vec<u64> = spec.styles.iter().flat_map(|[count, bytes]| (0..*count).map(|_| *bytes)).collect();
    let at_home = (sizes.len() as u64).saturating_sub(spec.styles_elsewhere);
    let style = move |(n, body_len): (u64, u64)| {
        let mut style = Resource {
            host: u32::from(n >= at_home),
            body_len,
            ..Resource::get(format!("/style/{n}.css"), Kind::Style, cause)
        };
        style.response.push("ETag", format!("\"{n}\""));
        style.response.push("Accept-Ranges", "bytes");
        style
    };
    let post = move |n| Resource {
        method: "POST".into(),
        request_body_len: 300,
        body_len: 20,
        ..Resource::get(format!("/count/{n}"), Kind::Xhr, cause)
    };
    (0..).zip(sizes).map(style).chain((0..spec.posts).map(post))
}

/// The loads of an arm, each of which can be made by its number.
pub(super) struct Course<'a> {
    plan: &'a Plan,
    pages: &'a [Page],
    setups: Vec<load::Setup>,
    behind: technique::Behind,
    pub jobs: Jobs<'a>,
}

impl<'a> Course<'a> {
    pub fn new(plan: &'a Plan, pages: &'a [Page], arm: &Arm) -> Result<Self, Error> {
        let mut setups = Vec::new();
        for network in &plan.networks {
            for transport in plan.transports() {
                let setup = record::setup(network, transport, &plan.techniques)?;
                setups.push(load::Setup { keeps_progress: arm.trace, keeps_packets: arm.packets, ..setup });
            }
        }
        let behind = technique::Behind::new(&plan.techniques, pages)?;
        Ok(Self { plan, pages, setups, behind, jobs: Jobs::new(plan, pages) })
    }

    /// What the `n`-th load is made with, and its seed.
    pub fn setup(&self, n: u64) -> (load::Setup, u64) {
        let job = self.jobs.get(n);
        let seed = self.plan.load_seed(&job.page.id, &self.plan.networks[job.network].name, job.run);
        let setup = &self.setups[job.network * self.plan.transports.len() + job.transport];
        let mut setup = technique::remembering(setup, &self.plan.techniques, job.page, seed);
        self.behind.put(&mut setup, job.page);
        (setup, seed)
    }

    /// What the study keeps of the `n`-th load.
    pub fn sample(&self, n: u64, load: &load::Load) -> Sample {
        let page = n / (self.jobs.len() / self.pages.len() as u64);
        let job = self.jobs.get(n);
        let setup = &self.setups[job.network * self.plan.transports.len() + job.transport];
        Sample::new(page as usize, &job, setup, load, self.is_detailed())
    }

    /// Whether every request is kept.
    pub fn is_detailed(&self) -> bool {
        self.pages.len() <= DETAILED_MAX
    }
}

/// The loads of a plan, in its order; `None` if cancelled.
fn load_all(
    plan: &Plan,
    pages: &[Page],
    arm: &Arm,
    options: Options<'_>,
    progress: &(dyn Fn() + Sync),
) -> Result<Option<Vec<Sample>>, Error> {
    let course = Course::new(plan, pages, arm)?;
    let jobs = &course.jobs;
    let one = |n: u64| {
        let (setup, seed) = course.setup(n);
        course.sample(n, &sim::load(jobs.get(n).page, &setup, seed))
    };
    let next = AtomicU64::new(0);
    let out: Mutex<Vec<(u64, Sample)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..options.threads.max(1) {
            scope.spawn(|| {
                let mut mine = Vec::new();
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= jobs.len() || options.cancel.load(Ordering::Relaxed) {
                        break;
                    }
                    mine.push((n, one(n)));
                    progress();
                }
                out.lock().unwrap_or_else(|e| e.into_inner()).extend(mine);
            });
        }
    });
    let mut out = out.into_inner().unwrap_or_else(|e| e.into_inner());
    out.sort_by_key(|(n, _)| *n);
    let whole = out.len() as u64 == jobs.len();
    Ok(whole.then(|| out.into_iter().map(|(_, sample)| sample).collect()))
}
