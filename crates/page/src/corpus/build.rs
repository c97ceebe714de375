//! One page, drawn from a profile.

use base::{Duration, Rng};
use bytes::Bytes;

use crate::corpus::head::{self, Answer};
use crate::corpus::{Group, Profile};
use crate::model::{Cause, Host, Kind, Page, Recorded, Resource, ResourceId, ScriptMode, Source};

/// A size is at most this often its kind's mean: the tail of a log-normal has no end, a page does.
const TAIL_MAX: f64 = 30.0;
/// Where a document's head ends, as a share of its bytes.
const HEAD_SHARE: f64 = 0.08;

/// Page `n` of a corpus.
pub(super) fn page(profile: &Profile, corpus: &str, n: usize, rng: &Rng) -> Page {
    let rng = rng.substream(&format!("page {n}"));
    let weight = lognormal(&mut rng.substream("weight"), profile.weight_sigma).clamp(0.2, 4.0);
    let mut counts = rng.substream("counts");
    let mut draw = |mean: f64| {
        let count = mean * weight;
        (count + counts.unit()) as usize
    };
    let shape = Shape {
        shards: draw(profile.shards),
        third_parties: draw(profile.third_parties),
        frames: draw(profile.frames.count),
        styles: draw(profile.styles.count).max(1),
        scripts: draw(profile.scripts.count).max(1),
        images: draw(profile.images.count),
        fonts: draw(profile.fonts.count),
        xhrs: draw(profile.xhrs.count),
        media: draw(profile.media.count),
        other: draw(profile.other.count),
        redirects: draw(profile.redirects.count),
        beacons: draw(profile.beacons.count),
        root_redirect: counts.chance(profile.root_redirect),
    };
    Builder::new(profile, corpus, n, &rng, weight).build(&shape)
}

/// The page that benchmarks load.
pub(super) fn bench(profile: &Profile, n: usize) -> Page {
    const BYTES: u64 = 1_500_000;
    const SEED: u64 = 3;
    let shape = Shape {
        shards: 2,
        third_parties: 12,
        frames: 3,
        styles: 5,
        scripts: 18,
        images: 61,
        fonts: 1,
        xhrs: 2,
        media: 0,
        other: 2,
        redirects: 2,
        beacons: 3,
        root_redirect: false,
    };
    // Of the first few seeds, the one that gives a document of about the mean size.
    let rng = Rng::new(SEED).substream("bench");
    let mut page = Builder::new(profile, "bench", n, &rng, 1.0).build(&shape);
    let scale = BYTES as f64 / page.body_bytes() as f64;
    for resource in &mut page.resources {
        resource.body_len = (resource.body_len as f64 * scale) as u64;
    }
    // What rounding left over.
    let largest = (0..page.resources.len()).max_by_key(|i| page.resources[*i].body_len).unwrap_or(0);
    page.resources[largest].body_len += BYTES - page.body_bytes();
    let lens: Vec<u64> = page.resources.iter().map(|r| r.body_len).collect();
    for resource in &mut page.resources {
        if let Cause::Parser { parent, offset, .. } = &mut resource.cause {
            *offset = ((*offset as f64 * scale) as u64).min(lens[*parent as usize]);
        }
    }
    page
}

/// How many of what a page has.
struct Shape {
    shards: usize,
    third_parties: usize,
    frames: usize,
    styles: usize,
    scripts: usize,
    images: usize,
    fonts: usize,
    xhrs: usize,
    media: usize,
    other: usize,
    redirects: usize,
    beacons: usize,
    root_redirect: bool,
}

/// Whose a resource is.
#[derive(Clone, Copy, PartialEq)]
enum Owner {
    Site,
    Third,
}

struct Builder<'a> {
    profile: &'a Profile,
    /// Streams of their own, so that more of one thing moves no other.
    size: Rng,
    place: Rng,
    time: Rng,
    text: Rng,
    page: Page,
    main: ResourceId,
    /// Cookies the browser holds, by host.
    cookies: Vec<String>,
    shards: usize,
    third_parties: usize,
    /// Images of third parties that are still to be placed.
    framed: usize,
}

impl<'a> Builder<'a> {
    fn new(profile: &'a Profile, corpus: &str, n: usize, rng: &Rng, weight: f64) -> Self {
        let page = Page {
            id: format!("{corpus}-{n:04}"),
            title: format!("Page {n} of the corpus {corpus}"),
            url: String::new(),
            source: Source { file: format!("corpus:{corpus}"), page: n.to_string() },
            hosts: Vec::new(),
            resources: Vec::new(),
            tail: Duration::from_millis_f64(20.0 * weight),
            recorded: Recorded { recorder: "Velodrome's corpus".into(), ..Recorded::default() },
            assumptions: Vec::new(),
        };
        Builder {
            profile,
            size: rng.substream("size"),
            place: rng.substream("place"),
            time: rng.substream("time"),
            text: rng.substream("text"),
            page,
            main: 0,
            cookies: Vec::new(),
            shards: 0,
            third_parties: 0,
            framed: 0,
        }
    }

    fn build(mut self, shape: &Shape) -> Page {
        self.hosts(shape);
        self.navigation(shape.root_redirect);
        let scripts = self.markup(shape);
        self.styles_ask(shape);
        self.scripts_ask(shape, &scripts);
        self.after_load(shape.beacons);
        self.drop_unused_hosts();
        self.page.url = self.page.resource_url(0);
        self.page
    }

    /// The site's hosts first, then those of third parties.
    fn hosts(&mut self, shape: &Shape) {
        self.shards = shape.shards;
        let site = format!("site-{:04x}.example", self.text.below(1 << 16));
        for i in 0..1 + shape.shards + shape.third_parties {
            let third = i > shape.shards;
            let name = match i {
                0 => format!("www.{site}"),
                _ if third => format!("t{}.third-{}.example", i - shape.shards, self.text.below(40)),
                _ => format!("static{i}.{site}"),
            };
            let rtt = 35.0 * lognormal(&mut self.time, 0.6).clamp(0.25, 5.0);
            let dns = 30.0 * lognormal(&mut self.time, 0.8);
            let cookie = match i {
                0 => 600.0,
                _ if third && self.text.chance(0.4) => 150.0,
                _ if !third && self.text.chance(0.6) => 400.0,
                _ => 0.0,
            } * lognormal(&mut self.text, 0.7);
            self.cookies.push(if cookie >= 8.0 {
                format!("s={}", head::token(&mut self.text, cookie as usize))
            } else {
                String::new()
            });
            self.page.hosts.push(Host {
                name,
                scheme_tls: self.profile.tls,
                port: if self.profile.tls { 443 } else { 80 },
                rtt: Some(Duration::from_millis_f64(rtt)),
                dns: Some(Duration::from_millis_f64(dns)),
                address: None,
            });
        }
    }

    fn navigation(&mut self, redirected: bool) {
        let len = self.len(&self.profile.document);
        if redirected {
            self.push(Kind::Document, 0, Cause::Root, 0, true);
            self.main = self.push(Kind::Document, 0, Cause::Redirect(0), len, true);
            self.redirect(0, self.main);
        } else {
            self.push(Kind::Document, 0, Cause::Root, len, true);
        }
    }

    /// What the document's markup names, in its order. Returns the scripts of the site and of third parties.
    fn markup(&mut self, shape: &Shape) -> Vec<ResourceId> {
        let p = self.profile;
        // Where each stands, what it is, and whose.
        let mut items: Vec<(f64, Kind, Owner)> = Vec::new();
        for _ in 0..shape.styles {
            items.push((self.place.unit() * HEAD_SHARE * 0.5, Kind::Style, Owner::Site));
        }
        let mut chained = 0;
        for _ in 0..shape.scripts {
            let third = self.place.chance(p.scripts_third);
            if third && self.place.chance(p.scripts_chained) {
                chained += 1;
                continue;
            }
            let owner = if third { Owner::Third } else { Owner::Site };
            let head = self.place.chance(0.4);
            let at = self.place.unit();
            let at = if head { at * HEAD_SHARE } else { HEAD_SHARE + at * (1.0 - HEAD_SHARE) };
            items.push((at, Kind::Script, owner));
        }
        let styled = (shape.images as f64 * p.images_styled) as usize;
        for _ in styled..shape.images {
            if self.place.chance(p.images_third) {
                self.framed += 1;
                continue;
            }
            items.push((HEAD_SHARE + self.place.unit() * (1.0 - HEAD_SHARE), Kind::Image, Owner::Site));
        }
        for kind in
            std::iter::repeat_n(Kind::Media, shape.media).chain(std::iter::repeat_n(Kind::Other, shape.other))
        {
            items.push((HEAD_SHARE + self.place.unit() * (1.0 - HEAD_SHARE), kind, Owner::Site));
        }
        items.sort_by(|a, b| a.0.total_cmp(&b.0));
        let len = self.page.resources[self.main as usize].body_len;
        let mut scripts = Vec::new();
        for (at, kind, owner) in items {
            let script = if kind == Kind::Script { self.script_mode(owner) } else { ScriptMode::Sync };
            let cause = Cause::Parser { parent: self.main, offset: (at * len as f64) as u64, script };
            let id = self.push_of(kind, owner, cause);
            if kind == Kind::Script {
                scripts.push(id);
            }
        }
        for _ in 0..chained {
            let cause = self.after_one_of(&scripts, Kind::Script);
            let id = self.push_of(Kind::Script, Owner::Third, cause);
            scripts.push(id);
        }
        scripts
    }

    fn script_mode(&mut self, owner: Owner) -> ScriptMode {
        let third = if owner == Owner::Third { 1.5 } else { 0.75 };
        let (a, d) = (self.profile.scripts_async * third, self.profile.scripts_defer);
        [ScriptMode::Async, ScriptMode::Defer, ScriptMode::Sync]
            [self.place.weighted(&[a, d, (1.0 - a - d).max(0.0)])]
    }

    /// Background images and fonts.
    fn styles_ask(&mut self, shape: &Shape) {
        let styles = self.of_kind(Kind::Style);
        let images = (shape.images as f64 * self.profile.images_styled) as usize;
        for _ in 0..images {
            let cause = self.after_one_of(&styles, Kind::Image);
            self.push_of(Kind::Image, Owner::Site, cause);
        }
        for _ in 0..shape.fonts {
            let cause = self.after_one_of(&styles, Kind::Font);
            let owner = if self.place.chance(0.4) { Owner::Third } else { Owner::Site };
            self.push_of(Kind::Font, owner, cause);
        }
    }

    /// Data, frames with what they name, and pixels.
    fn scripts_ask(&mut self, shape: &Shape, scripts: &[ResourceId]) {
        for _ in 0..shape.xhrs {
            let owner = if self.place.chance(0.4) { Owner::Third } else { Owner::Site };
            let cause = self.after_one_of(scripts, Kind::Xhr);
            self.push_of(Kind::Xhr, owner, cause);
        }
        for _ in 0..shape.frames {
            let cause = self.after_one_of(scripts, Kind::Document);
            self.push_of(Kind::Document, Owner::Third, cause);
        }
        // Other parties' images stand in frames, or a script makes them.
        let frames: Vec<ResourceId> =
            self.of_kind(Kind::Document).into_iter().filter(|id| *id > self.main).collect();
        for _ in 0..self.framed {
            let cause = self.in_one_of(&frames, scripts);
            self.push_of(Kind::Image, Owner::Third, cause);
        }
        for _ in 0..shape.redirects {
            let cause = self.in_one_of(&frames, scripts);
            let host = self.third_party();
            let from = self.push(Kind::Image, host, cause, 0, true);
            let host = self.third_party();
            let to = self.push(Kind::Image, host, Cause::Redirect(from), 43, true);
            self.redirect(from, to);
        }
    }

    /// Named by the markup of one of `frames`, or asked for by one of `scripts`.
    fn in_one_of(&mut self, frames: &[ResourceId], scripts: &[ResourceId]) -> Cause {
        if frames.is_empty() || self.place.chance(0.4) {
            return self.after_one_of(scripts, Kind::Image);
        }
        let parent = frames[self.place.below(frames.len() as u64) as usize];
        let len = self.page.resources[parent as usize].body_len;
        Cause::Parser { parent, offset: (self.place.unit() * len as f64) as u64, script: ScriptMode::Sync }
    }

    fn after_load(&mut self, beacons: usize) {
        for _ in 0..beacons {
            let delay = Duration::from_millis_f64(30.0 * lognormal(&mut self.time, 1.0));
            let host = self.third_party();
            let id = self.push(Kind::Image, host, Cause::Load { delay }, 43, true);
            self.page.resources[id as usize].after_load = true;
        }
    }

    fn of_kind(&self, kind: Kind) -> Vec<ResourceId> {
        (0..)
            .zip(&self.page.resources)
            .filter(|(_, r)| r.kind == kind && r.status == 200)
            .map(|(id, _)| id)
            .collect()
    }

    /// Asked for by one of `parents`, or by the document if there are none.
    fn after_one_of(&mut self, parents: &[ResourceId], kind: Kind) -> Cause {
        let mean = match kind {
            Kind::Image | Kind::Font => 8.0,
            _ => 15.0,
        };
        // One in ten waits for a timer.
        let mean = if self.time.chance(0.1) { 150.0 } else { mean };
        let delay = Duration::from_millis_f64(mean * lognormal(&mut self.time, 0.8));
        let parent = match parents.len() as u64 {
            0 => self.main,
            n => parents[self.place.below(n) as usize],
        };
        Cause::Completion { parent, delay }
    }

    fn push_of(&mut self, kind: Kind, owner: Owner, cause: Cause) -> ResourceId {
        let p = self.profile;
        let group = match kind {
            Kind::Document => p.frames,
            Kind::Style => p.styles,
            Kind::Script => p.scripts,
            Kind::Image => p.images,
            Kind::Font => p.fonts,
            Kind::Xhr => p.xhrs,
            Kind::Media => p.media,
            Kind::Other => p.other,
        };
        let len = self.len(&group);
        let host = match owner {
            Owner::Third => self.third_party(),
            Owner::Site => self.own_host(kind),
        };
        let dynamic =
            matches!(kind, Kind::Document | Kind::Xhr) || owner == Owner::Third && kind == Kind::Script;
        self.push(kind, host, cause, len, dynamic)
    }

    /// Data comes from the first host, files from one of the site's.
    fn own_host(&mut self, kind: Kind) -> u32 {
        if kind == Kind::Xhr || self.shards == 0 {
            return 0;
        }
        // Sites that have shards put most files there.
        if self.place.chance(0.25) { 0 } else { 1 + self.place.below(self.shards as u64) as u32 }
    }

    /// A third party's host: each once, then any.
    fn third_party(&mut self) -> u32 {
        let first = 1 + self.shards;
        let all = self.page.hosts.len() - first;
        if all == 0 {
            return 0;
        }
        let at = if self.third_parties < all {
            self.third_parties += 1;
            self.third_parties - 1
        } else {
            self.place.below(all as u64) as usize
        };
        (first + at) as u32
    }

    /// Makes `from` send the browser on to `to`.
    fn redirect(&mut self, from: ResourceId, to: ResourceId) {
        let location = self.page.resource_url(to);
        let resource = &mut self.page.resources[from as usize];
        let tls = self.profile.tls;
        let answer = Answer { kind: resource.kind, tls, body_len: 0, dynamic: true, location: &location };
        resource.status = 302;
        resource.response = head::response(&answer, &mut self.text);
    }

    fn push(&mut self, kind: Kind, host: u32, cause: Cause, body_len: u64, dynamic: bool) -> ResourceId {
        let p = self.profile;
        let id = self.page.resources.len() as ResourceId;
        let think = match kind {
            Kind::Document if id <= self.main + 1 && host == 0 => p.think_document,
            _ if dynamic => p.think_dynamic,
            _ => p.think_static,
        };
        let ns = match kind {
            Kind::Document => p.document_ns,
            Kind::Style => p.style_ns,
            Kind::Script => p.script_ns,
            _ => 0.0,
        };
        let think = think * lognormal(&mut self.time, 0.6);
        let exec = body_len as f64 * ns / 1e6 * lognormal(&mut self.time, 0.7);
        let referer = match (id, cause) {
            (0, _) => String::new(),
            (_, Cause::Parser { parent, .. }) => self.page.resource_url(parent),
            _ => self.page.resource_url(self.main.min(id - 1)),
        };
        let answer = Answer { kind, tls: p.tls, body_len, dynamic, location: "" };
        let resource = Resource {
            host,
            method: Bytes::from_static(b"GET"),
            path: self.path(id, kind, dynamic).into(),
            kind,
            request: head::request(kind, p.tls, &referer, &self.cookies[host as usize]),
            response: head::response(&answer, &mut self.text),
            status: 200,
            request_body_len: 0,
            body_len,
            think: Duration::from_millis_f64(think),
            cause,
            exec: Duration::from_millis_f64(exec),
            after_load: false,
            scripted: false,
            priority: None,
        };
        self.page.resources.push(resource);
        id
    }

    fn path(&mut self, id: ResourceId, kind: Kind, dynamic: bool) -> String {
        if id <= self.main && kind == Kind::Document {
            return if id == 0 { "/".into() } else { "/home".into() };
        }
        let (folder, extension) = match kind {
            Kind::Document => ("frame", "html"),
            Kind::Style => ("css", "css"),
            Kind::Script => ("js", "js"),
            Kind::Image => ("images", "jpg"),
            Kind::Font => ("fonts", "woff"),
            Kind::Xhr => ("api", "json"),
            Kind::Media => ("media", "mp4"),
            Kind::Other => ("files", "bin"),
        };
        let name = head::token(&mut self.text, 10);
        let query = if dynamic { format!("?v={}", head::token(&mut self.text, 40)) } else { String::new() };
        format!("/{folder}/{id}-{name}.{extension}{query}")
    }

    /// A size about the group's mean.
    fn len(&mut self, group: &Group) -> u64 {
        if group.sigma == 0.0 {
            return group.bytes as u64;
        }
        let factor = lognormal(&mut self.size, group.sigma).min(TAIL_MAX);
        (group.bytes * factor).max(35.0) as u64
    }

    fn drop_unused_hosts(&mut self) {
        let mut used = vec![false; self.page.hosts.len()];
        for resource in &self.page.resources {
            used[resource.host as usize] = true;
        }
        let mut kept = 0;
        let number: Vec<u32> = used
            .iter()
            .map(|used| {
                kept += u32::from(*used);
                kept.saturating_sub(1)
            })
            .collect();
        for resource in &mut self.page.resources {
            resource.host = number[resource.host as usize];
        }
        let mut used = used.into_iter();
        self.page.hosts.retain(|_| used.next().unwrap_or(false));
    }
}

/// A log-normal deviate of mean 1 whose logarithm has the standard deviation `sigma`.
fn lognormal(rng: &mut Rng, sigma: f64) -> f64 {
    libm::exp(sigma * rng.normal() - sigma * sigma / 2.0)
}
