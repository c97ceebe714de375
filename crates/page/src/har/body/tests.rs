//! Bodies as recorders write them, and what is sent for each.

use std::io::Read;

use serde_json::{Value, json};

use super::*;
use crate::har::{Bodies, parse, parse_with_bodies};
use crate::{Error, Page};

fn entry(path: &str, kind: &str, coding: &str, content: Value) -> Value {
    let mut headers = vec![json!({"name": "Content-Type", "value": kind})];
    if !coding.is_empty() {
        headers.push(json!({"name": "Content-Encoding", "value": coding}));
    }
    json!({
        "startedDateTime": "2013-05-01T10:00:00.000Z", "time": 10,
        "request": {"method": "GET", "url": format!("http://a.example/{path}"), "headers": []},
        "response": {"status": 200, "bodySize": 100, "headers": headers, "content": content},
        "timings": {"wait": 10},
    })
}

/// A page of a document without a body and `entry`.
fn har(entry: Value) -> String {
    let root = self::entry("", "text/html", "", json!({"size": 100}));
    json!({"log": {"entries": [root, entry]}}).to_string()
}

fn read(entry: Value) -> Result<(Page, Bodies), Error> {
    parse_with_bodies(har(entry).as_bytes(), "test.har").map(|mut pages| pages.remove(0))
}

fn body(entry: Value) -> (Body, Vec<String>) {
    let (page, mut bodies) = read(entry).unwrap();
    assert!(!bodies.contains_key(&0), "the document was recorded without a body");
    let kinds =
        page.assumptions.into_iter().map(|a| a.kind).filter(|k| k.contains("encoded") || k.contains("body"));
    (bodies.remove(&1).expect("a body"), kinds.collect())
}

#[test]
fn a_body_without_coding_is_served_as_it_was_recorded() {
    let (text, notes) = body(entry("a.css", "text/css", "", json!({"size": 4, "text": "p {}"})));
    assert_eq!((&text.bytes[..], notes), (&b"p {}"[..], vec![]));
    for encoded in ["AP+A/w==", "AP+A\r\n /w==\n", "AP+A/w"] {
        let content = json!({"size": 4, "text": encoded, "encoding": "base64"});
        let (binary, notes) = body(entry("a.png", "image/png", "", content));
        assert_eq!((&binary.bytes[..], notes), (&[0, 0xff, 0x80, 0xff][..], vec![]), "{encoded:?}");
    }
}

#[test]
fn a_coding_is_applied_again() {
    let text = "body { color: red } ".repeat(50);
    for coding in ["gzip", "x-gzip", "deflate", "GZIP"] {
        let (body, notes) = body(entry("a.css", "text/css", coding, json!({"text": text})));
        let mut inflated = String::new();
        if coding == "deflate" {
            flate2::read::ZlibDecoder::new(&body.bytes[..]).read_to_string(&mut inflated).unwrap();
        } else {
            flate2::read::GzDecoder::new(&body.bytes[..]).read_to_string(&mut inflated).unwrap();
        }
        assert_eq!(inflated, text);
        assert_eq!(body.response.get_str("content-encoding"), Some(coding));
        assert_eq!(notes, ["re-encoded"]);
    }
}

#[test]
fn a_coding_that_is_not_written_here_becomes_gzip() {
    for coding in ["br", "zstd", "gzip, br", "sdch, gzip"] {
        let (body, notes) = body(entry("a.js", "text/javascript", coding, json!({"text": "f()"})));
        let mut inflated = String::new();
        flate2::read::GzDecoder::new(&body.bytes[..]).read_to_string(&mut inflated).unwrap();
        assert_eq!(inflated, "f()");
        assert_eq!(body.response.get_str("content-encoding"), Some("gzip"));
        assert_eq!(notes, ["re-encoded-gzip"]);
    }
}

#[test]
fn text_that_was_recorded_as_unicode_says_utf_8() {
    for (recorded, served) in [
        ("text/html; charset=ISO-8859-1", "text/html; charset=utf-8"),
        ("text/html", "text/html; charset=utf-8"),
        ("text/css; a=b; charset=x", "text/css; a=b; charset=utf-8"),
        ("application/json", "application/json"),
    ] {
        let (body, _) = body(entry("a", recorded, "", json!({"text": "ä"})));
        assert_eq!(body.response.get_str("content-type"), Some(served));
        assert_eq!(body.bytes, "ä".as_bytes());
    }
    let (ascii, notes) = body(entry("a", "text/html; charset=ISO-8859-1", "", json!({"text": "a"})));
    assert_eq!(ascii.response.get_str("content-type"), Some("text/html; charset=ISO-8859-1"));
    assert_eq!(notes, [""; 0]);
}

#[test]
fn what_cannot_be_read_is_not_recorded_and_its_entry_named() {
    for (text, encoding, why) in [
        ("MANUALLY REMOVED", "base64", "not base64: "), // as in a published recording
        ("AA!A", "base64", "not base64: Invalid symbol 33, offset 2"),
        ("AA", "uuencode", "encoded with \"uuencode\"; only base64 is known"),
    ] {
        let content = json!({"text": text, "encoding": encoding});
        let (page, bodies) = read(entry("a.png", "image/png", "", content)).unwrap();
        assert!(bodies.is_empty());
        let said = page.assumptions.iter().find(|a| a.kind == "body-unreadable").expect("an assumption");
        assert!(said.detail.contains("entry 1: ") && said.detail.contains(why), "{said}");
    }
}

#[test]
fn pages_are_the_same_with_and_without_bodies_but_for_the_assumptions() {
    let text = har(entry("a.css", "text/css", "gzip", json!({"size": 4, "text": "p {}"})));
    let alone = parse(text.as_bytes(), "test.har").unwrap().remove(0);
    let (page, _) = parse_with_bodies(text.as_bytes(), "test.har").unwrap().remove(0);
    assert!(page.assumptions.len() > alone.assumptions.len());
    assert_eq!(Page { assumptions: alone.assumptions.clone(), ..page }, alone);
}
