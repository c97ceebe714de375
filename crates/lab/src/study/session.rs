//! Browsing sessions: several pages of a site one after another in one browser, made up after a description.
//!
//! The loader knows one page, so a session is one: the first document is the navigation, each other one is what the document before
//! causes when it has been parsed and read for a while. So connections, names and what is learned of hosts stay from page to page, as
//! in a browser. A cache stays too, in what is written down: counts are of transactions, and what a cache answers is none; what it has
//! to ask about is a conditional request that is answered 304.
//!
//! Everything that a description leaves open is drawn from a generator that is seeded by its name: sizes, think times, which host,
//! where in the document a reference stands.

use base::{Duration, Rng};
use page::{Cause, Host, Kind, Page, Resource, ResourceId, ScriptMode};
use serde::Deserialize;

use crate::setting::ms;

/// A session, as a study's file describes it.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionSpec {
    /// Its name; arms name it `session:ID`.
    pub id: String,
    /// Requests in all, documents included.
    pub transactions: u32,
    /// Pages visited.
    pub pages: u32,
    /// Share of the requests that each host gets, but for documents, which are the first host's.
    pub hosts: Vec<f64>,
    /// Shares of scripts, style sheets, images and XHR among what is no document.
    pub kinds: Kinds,
    /// Of images, scripts and style sheets, the share that the cache has and asks about.
    pub revalidated: f64,
    /// Bytes of a document.
    pub document_bytes: u64,
    /// Median bytes of an image. Sizes are log-normal.
    pub image_bytes: f64,
    /// XHR are asked for in bursts of so many, after the document, a second apart.
    pub xhr_burst: u32,
}

/// Shares of kinds; they add up to 1.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kinds {
    /// Scripts.
    pub script: f64,
    /// Style sheets.
    pub style: f64,
    /// Images.
    pub image: f64,
    /// Requests of scripts.
    pub xhr: f64,
}

/// From the end of a document's parsing to the next navigation: so long, and up to so much more.
const READING: [f64; 2] = [8_000.0, 4_000.0];

/// What servers think about documents, and about everything else: from, to.
const THINK_DOCUMENT: [f64; 2] = [100.0, 300.0];
const THINK: [f64; 2] = [10.0, 70.0];

/// Median bytes of scripts, style sheets and answers to XHR.
const SCRIPT: f64 = 12_000.0;
const STYLE: f64 = 8_000.0;
const XHR: f64 = 3_000.0;

/// Standard deviation of a size's logarithm.
const SIGMA: f64 = 0.8;

/// Bytes of cookies with each request, so that its head has some 700 (the SPDY whitepaper: 700–800 B with cookies).
const COOKIE: usize = 450;

impl SessionSpec {
    /// The session as a page.
    pub(super) fn build(&self) -> Result<Page, String> {
        let mut rng = Rng::new(0).substream("session").substream(&self.id);
        let hosts = (0..self.hosts.len()).map(|n| Host::new(format!("h{n}.{}.example", self.id)));
        let mut resources: Vec<Resource> = Vec::new();
        let mut before: Option<ResourceId> = None;
        for page in 0..self.pages {
            let cause = match before {
                None => Cause::Root,
                Some(parent) => Cause::Completion { parent, delay: ms(READING[0] + READING[1] * rng.unit()) },
            };
            let document = resources.len() as ResourceId;
            let path = format!("/page/{page}");
            let body_len = self.document_bytes;
            let think = between(&mut rng, THINK_DOCUMENT);
            resources.push(Resource { body_len, think, ..self.get(path, Kind::Document, cause) });
            // The requests that are left, spread over the pages that are left.
            let left = self.transactions - resources.len() as u32 - (self.pages - page - 1);
            for n in 0..left / (self.pages - page) {
                let resource = self.draw(&mut rng, document, n, resources.len());
                resources.push(resource);
            }
            before = Some(document);
        }
        Page::new(self.id.clone(), hosts.collect(), resources)
            .map_err(|e| format!("session '{}': {e}", self.id))
    }

    /// The `n`-th sub-resource of a document.
    fn draw(&self, rng: &mut Rng, document: ResourceId, n: u32, number: usize) -> Resource {
        let Kinds { script, style, image, xhr } = self.kinds;
        let shares = [(Kind::Script, script), (Kind::Style, style), (Kind::Image, image), (Kind::Xhr, xhr)];
        let kind = shares[rng.weighted(&shares.map(|(_, share)| share))].0;
        let (suffix, median) = match kind {
            Kind::Script => (".js", SCRIPT),
            Kind::Style => (".css", STYLE),
            Kind::Image => (".png", self.image_bytes),
            _ => ("", XHR),
        };
        let cause = match kind {
            Kind::Xhr => {
                let burst = n / self.xhr_burst.max(1);
                Cause::Completion { parent: document, delay: Duration::from_secs(u64::from(burst)) }
            }
            // What styles and runs a page is referred to from its head, the rest from all over it.
            Kind::Style | Kind::Script => self.reference(document, (self.document_bytes / 10).min(2_000)),
            _ => {
                let offset = (self.document_bytes as f64 * rng.unit()) as u64;
                self.reference(document, offset)
            }
        };
        let host = rng.weighted(&self.hosts) as u32;
        let body_len = (median * libm::exp(SIGMA * rng.normal())) as u64;
        let mut resource = Resource {
            host,
            body_len,
            think: between(rng, THINK),
            ..self.get(format!("/{number}{suffix}"), kind, cause)
        };
        if kind != Kind::Xhr && rng.unit() < self.revalidated {
            resource.request.push("If-None-Match", format!("\"{number}\""));
            (resource.status, resource.body_len) = (304, 0);
        }
        resource
    }

    fn reference(&self, parent: ResourceId, offset: u64) -> Cause {
        Cause::Parser { parent, offset, script: ScriptMode::Async }
    }

    fn get(&self, path: String, kind: Kind, cause: Cause) -> Resource {
        let mut resource = Resource::get(path, kind, cause);
        resource.request.push("Cookie", "c".repeat(COOKIE));
        resource
    }
}

fn between(rng: &mut Rng, [from, to]: [f64; 2]) -> Duration {
    ms(from + (to - from) * rng.unit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> SessionSpec {
        let kinds = Kinds { script: 0.1, style: 0.05, image: 0.75, xhr: 0.1 };
        SessionSpec {
            id: "test".into(),
            transactions: 211,
            pages: 4,
            hosts: vec![0.75, 0.25],
            kinds,
            revalidated: 0.2,
            document_bytes: 30_000,
            image_bytes: 5_000.0,
            xhr_burst: 5,
        }
    }

    #[test]
    fn a_session_has_its_transactions_pages_and_shares_and_is_always_the_same() {
        let page = spec().build().unwrap();
        assert_eq!(page, spec().build().unwrap());
        assert_eq!(page.resources.len(), 211);
        let count = |wanted: &dyn Fn(&Resource) -> bool| page.resources.iter().filter(|r| wanted(r)).count();
        assert_eq!(count(&|r| r.kind == Kind::Document), 4);
        assert!((130..175).contains(&count(&|r| r.kind == Kind::Image)));
        assert!((35..70).contains(&count(&|r| r.host == 1)));
        assert!((20..60).contains(&count(&|r| r.status == 304)));
    }

    #[test]
    fn a_page_is_asked_for_when_the_one_before_has_been_read() {
        let page = spec().build().unwrap();
        let load = sim::load(&page, &load::Setup::new(client::Transport::Http1), 1);
        assert_eq!(load.outcome, load::Outcome::Complete);
        let documents: Vec<_> =
            page.resources.iter().zip(&load.requests).filter(|(r, _)| r.kind == Kind::Document).collect();
        for pair in documents.windows(2) {
            let waited = pair[1].1.record.discovered.unwrap().since(pair[0].1.record.used.unwrap());
            assert!(waited >= ms(READING[0]) && waited <= ms(READING[0] + READING[1]));
        }
        assert!(load.connections.len() <= 12, "the connections of two hosts serve all pages");
    }
}
