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

fn answer(site: &mut Recording<&Page>, url: &'static str) -> Answer {
    let asked = request("GET", url);
    let found = site.begin(&asked);
    site.answer(&asked, found)
}

/// The paths pushed with the answer to a URL.
fn pushed(site: &mut Recording<&Page>, url: &'static str) -> Vec<String> {
    let path = |p: &crate::Push| String::from_utf8(p.request.path.to_vec()).expect("text");
    answer(site, url).pushes.iter().map(path).collect()
}

fn rules(text: &str) -> crate::PushRules {
    text.parse().expect("sound rules")
}

#[test]
fn rules_push_what_was_recorded_on_the_same_host() {
    let css = Resource { kind: Kind::Style, body_len: 7, ..get("/a.css") };
    let page =
        page([css, get("/b.js"), Resource { host: 1, ..get("/") }, Resource { host: 1, ..get("/c.js") }]);
    let rules = rules("/ -> /a.css /c.js\n/b* -> /a.css");
    let mut site = closest(&page).with_pushes(&rules).expect("all is there");
    assert_eq!(pushed(&mut site, "http://a.example/"), ["/a.css"]);
    assert_eq!(pushed(&mut site, "https://a.example/"), ["/c.js"]);
    assert_eq!(pushed(&mut site, "http://a.example/b.js"), ["/a.css"]);
    assert_eq!(pushed(&mut site, "http://a.example/a.css"), [""; 0]);
    let push = answer(&mut site, "http://a.example/?x=1").pushes.remove(0);
    assert_eq!((&push.request.authority[..], push.body.len()), (&b"a.example"[..], 7));
    assert_eq!(push.priority, crate::push_priority(Kind::Style));
    let head = request("HEAD", "http://a.example/");
    let found = site.begin(&head);
    assert_eq!(site.answer(&head, found).pushes, []);
}

#[test]
fn a_rule_for_what_was_not_recorded_is_refused_by_name() {
    let page = page([get("/a.css")]);
    for (text, fault) in [
        ("/ -> /a.css /b.css", "push rule `/ -> /a.css /b.css`: the site has no /b.css on the same host"),
        ("/index.html -> /a.css", "push rule `/index.html -> /a.css`: the site has nothing of this path"),
    ] {
        let refused = closest(&page).with_pushes(&rules(text)).err().expect("refused").to_string();
        assert!(refused.starts_with(fault), "{refused}");
    }
}

#[test]
fn automatic_pushes_are_what_the_markup_and_its_style_sheets_ask_the_same_host_for() {
    let parser = |parent| Cause::Parser { parent, offset: 0, script: page::ScriptMode::Sync };
    let after = |parent| Cause::Completion { parent, delay: Duration::ZERO };
    let of = |path, kind, cause| Resource { kind, cause, ..get(path) };
    let page = page([
        of("/a.css", Kind::Style, parser(0)),
        of("/a.js", Kind::Script, parser(0)),
        of("/font", Kind::Font, after(1)),
        of("/by-script", Kind::Image, after(2)),
        of("/frame", Kind::Document, parser(0)),
        of("/in-frame", Kind::Image, parser(5)),
        Resource { host: 1, ..of("/elsewhere", Kind::Image, parser(0)) },
        Resource { scripted: true, ..of("/inserted", Kind::Image, parser(0)) },
        Resource { after_load: true, ..of("/late", Kind::Image, parser(0)) },
        Resource { status: 404, ..of("/missing", Kind::Image, parser(0)) },
        of("/a.css", Kind::Style, parser(0)),
    ]);
    let mut site = closest(&page).with_automatic_pushes();
    assert_eq!(pushed(&mut site, "http://a.example/"), ["/a.css", "/a.js", "/font"]);
    assert_eq!(pushed(&mut site, "http://a.example/frame"), ["/in-frame"]);
    let many = super::tests::page(
        (0..200).map(|i| Resource { path: format!("/{i}").into(), ..of("/", Kind::Image, parser(0)) }),
    );
    assert_eq!(
        pushed(&mut closest(&many).with_automatic_pushes(), "http://a.example/").len(),
        crate::PUSHES_MAX
    );
}

/// What a live client gets: status line's fields as text, and the body's bytes.
fn served(site: &mut Recording<&Page>, url: &'static str) -> (Fields, Vec<u8>) {
    let Answer { head, body, .. } = answer(site, url);
    let bytes = match body {
        base::Chunk::Bytes(bytes) => bytes.to_vec(),
        base::Chunk::Body(range) => {
            let mut out = bytes::BytesMut::new();
            site.read(range, &mut out);
            out.to_vec()
        }
    };
    (head.fields, bytes)
}

#[test]
fn with_bodies_what_was_recorded_is_served_and_what_was_not_is_filled_in() {
    let mut response = Fields::new();
    for (name, value) in [
        ("Content-Type", "text/css"),
        ("Content-Encoding", "gzip"),
        ("Content-Length", "9999"),
        ("Alt-Svc", "h3=\":443\""),
        ("Content-Security-Policy", "default-src 'none'"),
    ] {
        response.push(name, value);
    }
    let style = |path| Resource { kind: Kind::Style, response: response.clone(), body_len: 300, ..get(path) };
    let mut document = page([style("/a.css"), style("/b.css")]);
    document.resources[0].body_len = 500;
    document.resources[1].cause = Cause::Parser { parent: 0, offset: 100, script: page::ScriptMode::Sync };
    let body = page::har::Body { bytes: "recorded".into(), response };
    let mut site = closest(&document).with_bodies([(1, body)].into());

    let (fields, bytes) = served(&mut site, "http://a.example/a.css");
    assert_eq!(bytes, b"recorded");
    assert_eq!(fields.get_str("content-length"), Some("8"));
    assert_eq!(fields.get_str("content-encoding"), Some("gzip"));
    assert_eq!(fields.get_str("alt-svc"), None, "it would lead the client elsewhere");
    assert!(fields.get_str("content-security-policy").is_some());

    let (fields, bytes) = served(&mut site, "http://a.example/b.css");
    assert!(bytes.len() == 300 && bytes.starts_with(b"/*") && bytes.ends_with(b"*/"));
    assert_eq!(fields.get_str("content-length"), Some("300"));
    assert_eq!(fields.get_str("content-encoding"), None, "a filler is not coded");
    assert_eq!(fields.get_str("content-type"), Some("text/css"));

    let (_, bytes) = served(&mut site, "http://a.example/");
    let html = String::from_utf8(bytes).expect("text");
    assert!(html.len() == 500 && html.contains("<link rel=\"stylesheet\" href=\"/a.css\">"), "{html}");
}
