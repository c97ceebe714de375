//! Pages of which everything may be kept for an hour, loaded again.

use page::{Host, Kind, Resource};

use super::*;

/// A document and an image, on a host of their own.
fn kept_page(host: &str) -> Page {
    let kept = |path, kind, cause| {
        let mut resource = Resource { body_len: 1_000, ..Resource::get(path, kind, cause) };
        resource.response.push("Cache-Control", "max-age=3600");
        resource
    };
    let script = page::ScriptMode::Sync;
    let document = kept("/", Kind::Document, Cause::Root);
    let image = kept("/1", Kind::Image, Cause::Parser { parent: 0, offset: 1, script });
    Page::new("test", vec![Host::new(host)], vec![document, image]).unwrap()
}

/// `page` with `other`'s host and resources beside it.
fn beside(page: &Page, other: &Page) -> Page {
    let mut both = page.clone();
    both.hosts.extend(other.hosts.clone());
    both.resources.extend(other.resources.iter().map(|r| Resource {
        host: 1,
        cause: Cause::Beside,
        after_load: true,
        ..r.clone()
    }));
    both
}

/// The hosts whose names a browser asks for once it has started.
fn asked_for(browser: &mut Browser<'_>) -> Vec<u32> {
    browser.start(Instant::ZERO);
    std::iter::from_fn(|| browser.poll_action())
        .filter_map(|action| match action {
            client::Action::Resolve { host } => Some(host),
            _ => None,
        })
        .collect()
}

fn browser(page: &Page) -> Browser<'_> {
    let client = client::Config::new(client::Transport::Http1);
    Browser::new(page, Config::default(), client, vec![false; page.hosts.len()])
}

/// A page behind has been visited as little as its resources are part of the page in front: without this rule the second visit
/// would find both in the cache, and ask nobody.
#[test]
fn a_second_visit_finds_the_page_in_the_cache_and_nothing_of_the_page_behind() {
    let (front, behind) = (kept_page("front.example"), kept_page("behind.example"));
    let whole = beside(&front, &behind);
    let mut again = browser(&whole);
    again.open(&behind, vec![1], 2);
    again.revisit(Duration::ZERO);
    assert_eq!(asked_for(&mut again), [1]);
    let cached: Vec<_> = again.requests().iter().map(|r| r.cached).collect();
    assert_eq!(cached, [Some(Cached::Fresh), Some(Cached::Fresh), None, None]);
    assert!(again.missing(Instant::ZERO).is_some(), "the one behind is on its way");
}

#[test]
fn what_is_fetched_beside_a_page_is_fetched_at_each_visit() {
    let whole = beside(&kept_page("front.example"), &kept_page("traffic.example"));
    let mut again = browser(&whole);
    again.fetch_beside(Duration::ZERO, 3);
    again.revisit(Duration::ZERO);
    assert_eq!(asked_for(&mut again), [1]);
    assert_eq!(again.requests()[3].cached, None);
}
