//! Generated pages: as many as an experiment wants, the same on every machine, with nobody's content in them.
//!
//! Page n of a corpus depends on the seed and on n alone. A page is drawn in the order in which it is written: a
//! document with style sheets and scripts in its head, images and scripts through its body; images and fonts that
//! style sheets ask for; scripts that ask for scripts, frames, data and pixels, mostly of third parties; pixels after
//! `onload`. How many of each follows from one *weight* a page (log-normal, so that large pages are large in every
//! respect); sizes are log-normal about the mean of their kind.
//!
//! # `2010`
//! Means: 43 requests, 320 kB, 8.4 hosts, all in the clear: the web that SPDY was measured on. From a crawl of 4.2 billion pages
//! (Google, "Web metrics: Size and number of resources", May 2010): 42.63 requests to 8.39 hosts for pages of the top sites; 320 kB for
//! all pages, of which 206 kB in 29.39 images, 58 kB in 7.09 scripts, 19 kB in 3.22 style sheets. What is left is given to the
//! document and its frames. Shares of third parties, computation and thinking times are those of `2012`, with fewer chains.
//!
//! # `2012`
//! Means: 85 requests, 1.0 MB, 15 hosts, all in the clear. Requests and bytes are those that the HTTP Archive reported
//! in 2012 for the average page: 86 requests and 1,249 kB over 293,000 pages, 100 and 1,114 kB over the top 1,000
//! (November 2012, by websiteoptimization.com, "Average Web Page Size Triples Since 2008"). How the bytes divide over
//! kinds follows its figures for January 2012 (stevesouders.com, "HTTP Archive: 2011 recap": images 59 %, scripts
//! 20 %, Flash 8 %, HTML 4 %, style sheets 4 %). Request heads of 200 B to 2 kB, typically 700–800 B with cookies:
//! the SPDY whitepaper. Counts by kind and the 15 hosts are from memory of the HTTP Archive's charts; a crawl of 2010
//! (Google, "Web metrics: Size and number of resources") found 7–8 hosts a page.
//!
//! # `today`
//! Means: 73 requests, 2.5 MB, 17 hosts, all over TLS. The median desktop page of the Web Almanac 2024 ("Page
//! weight"): 71 requests, 2,652 kB, of which images 1,054 kB in 18, scripts 613 kB in 24, fonts 131 kB, style sheets
//! 78 kB, HTML 18 kB. The corpus has its means where the web has its medians. Third parties on 92 % of pages, in
//! chains 3.4 deep on the median ("Third parties"); the 17 hosts are a guess.
//!
//! # `bench`
//! One page, always the same whatever the seed: 100 requests, 1,500,000 B of bodies, 15 hosts. For benchmarks.
//!
//! # What is a guess
//! Think times, computation and round trips are set by hand, in the range of the recordings that this crate is tried
//! on: desktop computers, servers 10–150 ms away. Nothing is known of how they go together with size.

mod build;
mod head;

use base::Rng;

use crate::error::{Error, Fault};
use crate::model::Page;

/// The corpora there are.
pub const NAMES: [&str; 4] = ["2010", "2012", "today", "bench"];

/// The first `count` pages of the corpus `name`. Page n depends on the seed and n alone.
///
/// # Errors
/// If there is no such corpus.
pub fn generate(name: &str, count: usize, seed: u64) -> Result<Vec<Page>, Error> {
    let rng = Rng::new(seed).substream(name);
    let page = |n: usize| match name {
        "2010" => Some(build::page(&YEAR_2010, name, n, &rng)),
        "2012" => Some(build::page(&YEAR_2012, name, n, &rng)),
        "today" => Some(build::page(&TODAY, name, n, &rng)),
        "bench" => Some(build::bench(&YEAR_2012, n)),
        _ => None,
    };
    let unknown = || Error::of_file(&format!("corpus:{name}"), Fault::UnknownCorpus);
    if !NAMES.contains(&name) {
        return Err(unknown());
    }
    (0..count).map(|n| page(n).ok_or_else(unknown)).collect()
}

/// Resources of one kind in a page of mean weight.
#[derive(Clone, Copy)]
struct Group {
    /// Mean number.
    count: f64,
    /// Mean bytes as transferred.
    bytes: f64,
    /// Standard deviation of the size's logarithm.
    sigma: f64,
}

const fn group(count: f64, bytes: f64, sigma: f64) -> Group {
    Group { count, bytes, sigma }
}

/// What a corpus draws from.
struct Profile {
    tls: bool,
    /// Standard deviation of the logarithm of a page's weight.
    weight_sigma: f64,
    /// Mean number of the site's own hosts beside the first.
    shards: f64,
    /// Mean number of other hosts.
    third_parties: f64,
    /// Chance that the navigation is redirected first.
    root_redirect: f64,
    document: Group,
    frames: Group,
    styles: Group,
    scripts: Group,
    images: Group,
    fonts: Group,
    xhrs: Group,
    media: Group,
    other: Group,
    /// Pixels that a redirection leads to.
    redirects: Group,
    /// Pixels after `onload`.
    beacons: Group,
    /// Shares of the scripts in markup.
    scripts_async: f64,
    scripts_defer: f64,
    /// Share of scripts that come from third parties, and of those, that another script asks for.
    scripts_third: f64,
    scripts_chained: f64,
    /// Share of images that come from third parties, and that style sheets ask for.
    images_third: f64,
    images_styled: f64,
    /// Nanoseconds of computation a transferred byte, means.
    script_ns: f64,
    style_ns: f64,
    document_ns: f64,
    /// Milliseconds, means.
    think_document: f64,
    think_dynamic: f64,
    think_static: f64,
}

const YEAR_2010: Profile = Profile {
    shards: 1.2,
    third_parties: 6.2,
    document: group(1.0, 24_000.0, 0.8),
    frames: group(1.2, 5_000.0, 1.0),
    styles: group(3.2, 5_800.0, 1.1),
    scripts: group(7.1, 8_200.0, 1.2),
    images: group(29.4, 7_000.0, 1.4),
    fonts: group(0.0, 0.0, 0.0),
    xhrs: group(0.3, 3_000.0, 1.0),
    other: group(0.1, 65_000.0, 1.0),
    redirects: group(0.7, 0.0, 0.0),
    beacons: group(0.8, 43.0, 0.0),
    scripts_third: 0.35,
    scripts_chained: 0.3,
    ..YEAR_2012
};

const YEAR_2012: Profile = Profile {
    tls: false,
    weight_sigma: 0.45,
    shards: 2.0,
    third_parties: 12.3,
    root_redirect: 0.2,
    document: group(1.0, 24_000.0, 0.8),
    frames: group(2.5, 5_000.0, 1.0),
    styles: group(4.5, 8_500.0, 1.1),
    scripts: group(15.0, 14_000.0, 1.2),
    images: group(53.0, 11_900.0, 1.4),
    fonts: group(0.5, 30_000.0, 0.6),
    xhrs: group(1.5, 3_000.0, 1.0),
    media: group(0.0, 0.0, 0.0),
    other: group(1.3, 65_000.0, 1.0),
    redirects: group(2.0, 0.0, 0.0),
    beacons: group(2.5, 43.0, 0.0),
    scripts_async: 0.15,
    scripts_defer: 0.02,
    scripts_third: 0.45,
    scripts_chained: 0.4,
    images_third: 0.12,
    images_styled: 0.25,
    script_ns: 700.0,
    style_ns: 200.0,
    document_ns: 2_500.0,
    think_document: 120.0,
    think_dynamic: 40.0,
    think_static: 4.0,
};

const TODAY: Profile = Profile {
    tls: true,
    weight_sigma: 0.45,
    shards: 1.2,
    third_parties: 14.9,
    root_redirect: 0.2,
    document: group(1.0, 32_000.0, 0.9),
    frames: group(2.0, 9_000.0, 1.0),
    styles: group(7.0, 11_500.0, 1.2),
    scripts: group(24.0, 26_000.0, 1.2),
    images: group(21.5, 57_000.0, 1.4),
    fonts: group(4.0, 33_000.0, 0.5),
    xhrs: group(6.0, 6_000.0, 1.3),
    media: group(0.3, 1_100_000.0, 0.7),
    other: group(1.3, 3_000.0, 1.0),
    redirects: group(1.0, 0.0, 0.0),
    beacons: group(3.5, 60.0, 0.0),
    scripts_async: 0.4,
    scripts_defer: 0.2,
    scripts_third: 0.5,
    scripts_chained: 0.55,
    images_third: 0.1,
    images_styled: 0.1,
    script_ns: 250.0,
    style_ns: 100.0,
    document_ns: 1_200.0,
    think_document: 150.0,
    think_dynamic: 40.0,
    think_static: 6.0,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Cause, Kind};

    /// Mean requests, bytes and hosts.
    fn means(pages: &[Page]) -> (f64, f64, f64) {
        let mean = |f: &dyn Fn(&Page) -> f64| pages.iter().map(f).sum::<f64>() / pages.len() as f64;
        (
            mean(&|p| p.resources.len() as f64),
            mean(&|p| p.body_bytes() as f64),
            mean(&|p| p.hosts.len() as f64),
        )
    }

    fn near(what: &str, is: f64, wanted: f64, share: f64) {
        assert!((is / wanted - 1.0).abs() <= share, "{what}: {is}, wanted {wanted}");
    }

    #[test]
    fn three_hundred_pages_have_the_means_that_the_essay_states() {
        for seed in [1, 2] {
            let corpora =
                [("2010", 43.0, 3.2e5, 8.4), ("2012", 85.0, 1.0e6, 15.0), ("today", 73.0, 2.5e6, 17.0)];
            for (name, requests, bytes, hosts) in corpora {
                let pages = generate(name, 300, seed).unwrap();
                let means = means(&pages);
                near("requests", means.0, requests, 0.05);
                near("bytes", means.1, bytes, 0.1);
                near("hosts", means.2, hosts, 0.05);
                for page in &pages {
                    page.validate().unwrap();
                }
            }
        }
    }

    #[test]
    fn a_page_depends_on_the_seed_and_its_number_alone() {
        let many = generate("2012", 20, 7).unwrap();
        assert!(many[..5] == generate("2012", 5, 7).unwrap()[..]);
        assert!(many[0].resources != generate("2012", 1, 8).unwrap()[0].resources);
        assert!(many[0].resources != many[1].resources);
        let mut ids: Vec<&str> = many.iter().map(|p| p.id.as_str()).collect();
        ids.dedup();
        assert_eq!(ids.len(), 20);
    }

    #[test]
    fn the_bench_page_is_what_benchmarks_say_it_is() {
        let pages = generate("bench", 2, 3).unwrap();
        let page = &pages[0];
        assert_eq!((page.resources.len(), page.body_bytes(), page.hosts.len()), (100, 1_500_000, 15));
        page.validate().unwrap();
        assert!(page.resources == pages[1].resources && page.hosts == pages[1].hosts);
        assert_ne!(page.id, pages[1].id);
        assert!(page.resources == generate("bench", 1, 4).unwrap()[0].resources);
    }

    #[test]
    fn pages_have_the_structure_of_pages() {
        for name in ["2012", "today"] {
            let pages = generate(name, 100, 5).unwrap();
            let all = || pages.iter().flat_map(|p| p.resources.iter().map(move |r| (p, r)));
            let fonts_from = |p: &Page, c: Cause| c.parent().map(|at| p.resources[at as usize].kind);
            assert!(
                all()
                    .filter(|(_, r)| r.kind == Kind::Font)
                    .all(|(p, r)| fonts_from(p, r.cause) == Some(Kind::Style))
            );
            assert!(
                all()
                    .filter(|(_, r)| r.kind == Kind::Xhr)
                    .all(|(p, r)| fonts_from(p, r.cause) == Some(Kind::Script))
            );
            assert!(
                all().any(|(_, r)| r.after_load) && all().any(|(_, r)| matches!(r.cause, Cause::Redirect(_)))
            );
            // Style sheets of the page itself stand in its head.
            for page in &pages {
                let main =
                    page.resources.iter().position(|r| r.kind == Kind::Document && r.status == 200).unwrap();
                for resource in page.resources.iter().filter(|r| r.kind == Kind::Style) {
                    if let Cause::Parser { parent, offset, .. } = resource.cause
                        && parent as usize == main
                    {
                        assert!(offset * 5 <= page.resources[main].body_len);
                    }
                }
            }
            let depth = |p: &Page| {
                let mut depths = Vec::with_capacity(p.resources.len());
                for r in &p.resources {
                    depths.push(r.cause.parent().map_or(0, |at| depths[at as usize] + 1));
                }
                depths.into_iter().max().unwrap_or(0)
            };
            assert!(pages.iter().filter(|p| depth(p) >= 3).count() > 50, "{name}");
        }
    }

    #[test]
    fn an_unknown_corpus_is_named_with_those_there_are() {
        let error = generate("1999", 1, 1).unwrap_err();
        assert_eq!(error.to_string(), "corpus:1999: no such corpus; there are 2010, 2012, today, bench");
    }
}
