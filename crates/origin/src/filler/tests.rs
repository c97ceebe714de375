//! What fills in for each kind of resource, byte by byte and as a whole.

use base::Duration;
use page::Host;

use super::*;

fn bytes(filler: &Filler, range: Range<u64>) -> Vec<u8> {
    let mut out = BytesMut::new();
    filler.read(range, &mut out);
    out.to_vec()
}

fn text(filler: &Filler) -> String {
    String::from_utf8(bytes(filler, 0..filler.len())).expect("text")
}

/// Parts read on their own are what they are in the whole, wherever they are cut.
fn check_parts(filler: &Filler) {
    let whole = bytes(filler, 0..filler.len());
    assert_eq!(whole.len() as u64, filler.len());
    for step in [1, 7, 64, 1_000] {
        let mut at = 0;
        let mut parts = Vec::new();
        while at < filler.len() {
            parts.extend(bytes(filler, at..(at + step).min(filler.len())));
            at += step;
        }
        assert_eq!(parts, whole, "in steps of {step}");
    }
    assert_eq!(bytes(filler, 0..u64::MAX), whole, "there is nothing beyond the end");
    assert_eq!(bytes(filler, filler.len()..filler.len() + 1), b"");
}

#[test]
fn every_kind_has_its_length_and_is_the_same_in_parts() {
    for kind in Kind::ALL {
        for media_type in
            ["", "text/html", "image/svg+xml", "application/json", "text/javascript", "text/css"]
        {
            for len in [0, 1, 2, 3, 4, 5, 42, 43, 44, 73, 74, 75, 76, 77, 200, 3_000] {
                let filler = Filler::new(kind, media_type, len);
                assert_eq!(filler.len(), len);
                check_parts(&filler);
            }
        }
    }
}

#[test]
fn what_it_is_is_what_its_kind_can_be_read_as() {
    let of = |kind, media_type, len| text(&Filler::new(kind, media_type, len));
    for kind in [Kind::Style, Kind::Script] {
        let comment = of(kind, "", 500);
        assert!(comment.starts_with("/*") && comment.find("*/") == Some(498), "{comment}");
        assert_eq!(of(kind, "", 3).trim(), "", "no room for a comment");
    }
    let html = of(Kind::Document, "text/html", 500);
    assert!(html.starts_with("<!DOCTYPE html>") && html.find("-->") == Some(497), "{html}");
    assert_eq!(of(Kind::Xhr, "application/json; charset=x", 100).trim(), "{}");
    let svg = of(Kind::Image, "image/svg+xml", 500);
    assert!(svg.starts_with("<svg ") && svg.ends_with("-->"), "{svg}");
    assert!(bytes(&Filler::new(Kind::Image, "image/png", 500), 0..43) == PIXEL);
    assert!(TEXT.windows(2).all(|w| w != b"--" && w != b"*/") && !TEXT.contains(&b'>'));
}

fn page(len: u64, children: impl IntoIterator<Item = (&'static str, u64, Kind)>) -> Page {
    let hosts = vec![Host::new("a.example"), Host { scheme_tls: true, port: 8443, ..Host::new("b.example") }];
    let root = Resource { body_len: len, ..Resource::get("/", Kind::Document, Cause::Root) };
    let child = |(url, offset, kind): (&'static str, _, _)| {
        let cause = Cause::Parser { parent: 0, offset, script: ScriptMode::Defer };
        let (host, path) = url.strip_prefix("b:").map_or((0, url), |path| (1, path));
        Resource { host, ..Resource::get(path, kind, cause) }
    };
    let resources = std::iter::once(root).chain(children.into_iter().map(child)).collect();
    Page::new("test", hosts, resources).expect("a valid page")
}

/// The markup without its comments.
fn markup(document: &str) -> String {
    let mut out = String::new();
    let mut rest = document;
    while let Some((before, comment)) = rest.split_once("<!--") {
        out += before;
        rest = comment.split_once("-->").expect("every comment ends").1;
    }
    out + rest
}

#[test]
fn a_document_refers_to_what_its_parser_found_at_its_place() {
    let page = page(
        5_000,
        [
            ("/late.png", 3_000, Kind::Image),
            ("/a.css", 300, Kind::Style),
            ("b:/x.js?a=1&b=2", 1_000, Kind::Script),
            ("/f", 4_000, Kind::Document),
        ],
    );
    let filler = Filler::document(&page, 0);
    assert_eq!(filler.len(), 5_000);
    check_parts(&filler);
    let document = text(&filler);
    let expected = "<link rel=\"stylesheet\" href=\"/a.css\">\
        <script defer src=\"https://b.example:8443/x.js?a=1&amp;b=2\"></script>\
        <img alt=\"\" src=\"/late.png\"><iframe src=\"/f\"></iframe>";
    assert_eq!(markup(&document).strip_prefix(HTML), Some(expected));
    for (what, at) in [("/a.css", 300), ("x.js", 1_000), ("/late.png", 3_000), ("/f", 4_000)] {
        let found = document.find(what).expect("it is there");
        assert!((at..at + 50).contains(&found), "{what} at {found}");
    }
}

#[test]
fn references_that_need_more_room_than_was_recorded_get_it() {
    let page = page(50, [("/a.png", 50, Kind::Image), ("/b.png", 50, Kind::Image)]);
    let filler = Filler::document(&page, 0);
    assert!(filler.len() > 50);
    check_parts(&filler);
    assert!(markup(&text(&filler)).ends_with("src=\"/a.png\"><img alt=\"\" src=\"/b.png\">"));
}

#[test]
fn urls_are_quoted_and_cannot_be_taken_for_another_hosts() {
    let page = page(
        9_000,
        [
            ("/\"><script>alert(1)</script>", 0, Kind::Image),
            ("//evil.example/x", 0, Kind::Image),
            ("/it's", 0, Kind::Image),
        ],
    );
    let markup = markup(&text(&Filler::document(&page, 0)));
    assert!(markup.contains("src=\"/%22%3E%3Cscript%3Ealert(1)%3C/script%3E\""), "{markup}");
    assert!(markup.contains("src=\"//a.example//evil.example/x\""), "{markup}");
    assert!(markup.contains("src=\"/it's\""), "{markup}");
}

#[test]
fn what_cannot_be_referred_to_is_not() {
    let mut page = page(900, [("/post", 10, Kind::Xhr), ("/seen", 20, Kind::Image)]);
    page.resources[1].method = "POST".into();
    page.resources.push(Resource::get(
        "/c",
        Kind::Image,
        Cause::Completion { parent: 2, delay: Duration::ZERO },
    ));
    let markup = markup(&text(&Filler::document(&page, 0)));
    assert!(markup.ends_with("</title><img alt=\"\" src=\"/seen\">"), "{markup}");
}
