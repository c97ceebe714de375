//! Requests against a recording: which of its responses they get, and how it was found.

use base::{Duration, Fields};
use page::{Cause, Kind};

use super::*;

fn get(path: &'static str) -> Resource {
    Resource::get(path, Kind::Other, Cause::Load { delay: Duration::ZERO })
}

/// The hosts are `http://a.example`, `https://a.example` and `https://b.example:8443`.
fn page(rest: impl IntoIterator<Item = Resource>) -> Page {
    let secure = |name, port| Host { scheme_tls: true, port, ..Host::new(name) };
    let hosts = vec![Host::new("a.example"), secure("a.example", 443), secure("b.example", 8443)];
    let root = Resource { kind: Kind::Document, cause: Cause::Root, ..get("/") };
    Page::new("test", hosts, std::iter::once(root).chain(rest).collect()).expect("a valid page")
}

fn request(method: &'static str, url: &'static str) -> RequestHead {
    let (scheme, rest) = url.split_once("://").expect("a URL");
    let (authority, path) = rest.split_at(rest.find('/').expect("a path"));
    let [method, scheme, authority, path] = [method, scheme, authority, path].map(Into::into);
    RequestHead { method, scheme, authority, path, fields: Fields::new() }
}

/// What a GET of a URL gets: the resource's number and the tier.
fn found(site: &mut Recording<&Page>, url: &'static str) -> Option<(ResourceId, Tier)> {
    site.find(&request("GET", url)).map(|f| (f.resource, f.tier))
}

fn closest(page: &Page) -> Recording<&Page> {
    Recording::new(page, Think::Recorded, Matching::Closest)
}

#[test]
fn the_exact_tier_gives_the_recorded_responses_in_turn() {
    let page = page([get("/x?a=1&b=2"), get("/x?a=1&b=2"), get("/x?b=2&a=1")]);
    let mut site = closest(&page);
    let url = "http://a.example/x?a=1&b=2";
    assert_eq!(found(&mut site, url), Some((1, Tier::Exact)));
    assert_eq!(found(&mut site, url), Some((2, Tier::Exact)));
    assert_eq!(found(&mut site, url), Some((2, Tier::Exact)), "the last is repeated");
    assert_eq!(found(&mut site, "http://a.example/x?b=2&a=1"), Some((3, Tier::Exact)));
}

#[test]
fn the_reordered_tier_takes_the_same_parameters_in_another_order() {
    let page = page([get("/x?c=3&a=1&b=9"), get("/x?b=2&a=1&c=3"), get("/x?b=2&a=1&c=3")]);
    let mut site = closest(&page);
    let url = "http://a.example/x?a=1&b=2&c=3";
    assert_eq!(found(&mut site, url), Some((2, Tier::Reordered)));
    assert_eq!(found(&mut site, url), Some((3, Tier::Reordered)), "in turn, too");
}

#[test]
fn the_cache_buster_tier_overlooks_times_and_random_numbers() {
    let page = page([get("/x?a=1&_=1348043321281"), get("/x?a=2&_=1348043321999")]);
    let mut site = closest(&page);
    assert_eq!(found(&mut site, "http://a.example/x?a=2&_=1348043321281"), Some((2, Tier::CacheBuster)));
}

#[test]
fn the_closest_tier_takes_the_best_fit_of_the_same_path_and_nothing_else() {
    let page = page([get("/x?a=1"), get("/x?a=3&b=2"), get("/xy?a=2&b=2"), get("/x/y"), get("/x")]);
    let mut site = closest(&page);
    assert_eq!(found(&mut site, "http://a.example/x?a=2&b=2"), Some((2, Tier::Closest)));
    assert_eq!(found(&mut site, "http://a.example/x?z"), Some((1, Tier::Closest)), "of equals the first");
    assert_eq!(found(&mut site, "http://a.example/x?"), Some((5, Tier::Exact)), "an empty query is none");
    assert_eq!(found(&mut site, "http://a.example/y?a=2"), None);
    assert_eq!(found(&mut site, "http://a.example/x/"), None);
}

#[test]
fn matching_exactly_knows_the_first_tier_only() {
    let page = page([get("/x?a=1&b=2")]);
    let mut site = Recording::new(&page, Think::Recorded, Matching::Exact);
    assert_eq!(found(&mut site, "http://a.example/x?b=2&a=1"), None);
    assert_eq!(found(&mut site, "http://a.example/x?a=1&b=2"), Some((1, Tier::Exact)));
    assert_eq!(site.find(&request("HEAD", "http://a.example/")), None);
}

#[test]
fn methods_are_told_apart_but_head_means_get() {
    let post = Resource { method: "POST".into(), ..get("/x") };
    let page = page([post, get("/x?a")]);
    let mut site = closest(&page);
    let mut tier = |method| site.find(&request(method, "http://a.example/x")).map(|f| (f.resource, f.tier));
    assert_eq!(tier("POST"), Some((1, Tier::Exact)));
    assert_eq!(tier("HEAD"), Some((2, Tier::Closest)));
    assert_eq!(tier("PUT"), None);
}

#[test]
fn the_authority_decides_the_host() {
    let at = |host, path| Resource { host, ..get(path) };
    let page = page([at(1, "/"), at(2, "/b"), at(0, "/only-http"), at(1, "/only-https")]);
    let mut site = closest(&page);
    for (url, resource) in [
        ("http://a.example/", Some(0)),
        ("https://a.example/", Some(1)),
        ("https://A.EXAMPLE:4433/", Some(1)), // another port than recorded
        ("http://a.example:8080/", Some(0)),
        ("http://b.example/b", Some(2)), // recorded with TLS only
        ("https://b.example:8443/b", Some(2)),
        ("http://127.0.0.1:8080/", Some(0)),
        ("https://[::1]/", Some(0)),
        ("http://localhost:1/", Some(0)),
        ("http://www.localhost/", Some(0)),
        ("http://ads.example/", None),
        ("http:///", Some(0)), // HTTP/1.0
        ("http://a.example/only-https", None),
    ] {
        assert_eq!(found(&mut site, url).map(|f| f.0), resource, "{url}");
    }
    let mut one = Recording::of_host(&page, 2, Think::Recorded);
    assert_eq!(found(&mut one, "http://anything/b"), Some((2, Tier::Exact)));
    assert_eq!(found(&mut one, "http://a.example/"), None);
}

#[test]
fn an_answer_says_how_it_was_found() {
    let page = page([get("/x?a=1")]);
    let mut site = closest(&page);
    for (url, status, matched) in [
        ("http://a.example/x?a=1", 200, Some(Tier::Exact)),
        ("http://a.example/x?a=2", 200, Some(Tier::Closest)),
        ("http://a.example/y", 404, None),
    ] {
        let asked = request("GET", url);
        let found = site.begin(&asked);
        let answer = site.answer(&asked, found);
        assert_eq!((answer.head.status, answer.matched), (status, matched), "{url}");
    }
}
