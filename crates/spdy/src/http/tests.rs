use base::Field;

use super::*;
use crate::{Limits, block};

fn head() -> RequestHead {
    let field = |name: &'static str, value: &'static str| Field { name: name.into(), value: value.into() };
    let fields = [
        field("Accept", "text/html"),
        field("Connection", "keep-alive"),
        field("Host", "elsewhere"),
        field("X-A", "1"),
        field("accept", "*/*"),
        field("Transfer-Encoding", "chunked"),
    ];
    RequestHead {
        method: "POST".into(),
        scheme: "https".into(),
        authority: "example.org:8443".into(),
        path: "/a?b=c".into(),
        fields: fields.into_iter().collect(),
    }
}

fn pairs(version: Version, block: &Block) -> Vec<String> {
    let mut out = Vec::new();
    let text = |b: &Bytes| String::from_utf8_lossy(b).into_owned();
    let sink = |n: Bytes, v: Bytes| out.push(format!("{}={}", text(&n), text(&v)));
    block::parse(version, &Bytes::copy_from_slice(block.bytes()), &Limits::default(), sink).unwrap();
    out
}

fn parts(version: Version, fields: &[(&'static str, &'static str)]) -> Parts {
    let mut parts = Parts::default();
    for (name, value) in fields {
        parts.push(version, Bytes::from_static(name.as_bytes()), Bytes::from_static(value.as_bytes()));
    }
    parts
}

/// §3.2.1; SPDY/2, "Request".
#[test]
fn a_request_unfolds_into_each_versions_names_without_what_a_connection_owns() {
    let mut block = Block::default();
    let rest = ["accept=text/html", "accept=*/*", "x-a=1"];
    put_request(Version::V3_1, &head(), &mut block).unwrap();
    let three =
        [":host=example.org:8443", ":path=/a?b=c", ":scheme=https", ":method=POST", ":version=HTTP/1.1"];
    assert_eq!(pairs(Version::V3_1, &block), [&three[..], &rest].concat());
    put_request(Version::V2, &head(), &mut block).unwrap();
    let two = ["host=example.org:8443", "url=/a?b=c", "scheme=https", "method=POST", "version=HTTP/1.1"];
    assert_eq!(pairs(Version::V2, &block), [&two[..], &rest].concat());
}

#[test]
fn heads_come_back_as_they_were_sent() {
    for version in [Version::V2, Version::V3, Version::V3_1] {
        let mut block = Block::default();
        let mut sent = head();
        let read = |block: &Block| {
            let mut parts = Parts::default();
            let sink = |name, value| parts.push(version, name, value);
            block::parse(version, &Bytes::copy_from_slice(block.bytes()), &Limits::default(), sink).unwrap();
            parts
        };
        put_request(version, &sent, &mut block).unwrap();
        let heard = read(&block).request().unwrap();
        let values = |fields: &Fields| {
            let mut all: Vec<_> =
                fields.iter().map(|f| (f.name.to_ascii_lowercase(), f.value.clone())).collect();
            all.retain(|(name, _)| !matches!(&name[..], b"connection" | b"host" | b"transfer-encoding"));
            all.sort();
            all
        };
        assert_eq!(values(&heard.fields), values(&sent.fields));
        sent.fields = heard.fields.clone();
        assert_eq!(heard, sent);

        for status in [100, 200, 299, 304, 404, 999] {
            let response = ResponseHead { status, fields: Fields::new() };
            put_response(version, &response, &mut block).unwrap();
            assert_eq!(read(&block).response(), Some(response));
        }

        sent = RequestHead { method: "GET".into(), fields: Fields::new(), ..sent };
        let response = ResponseHead { status: 200, fields: Fields::new() };
        put_push(version, &sent, &response, &mut block).unwrap();
        assert_eq!(read(&block).push_of(), Some((sent, Some(response))));
    }
}

/// Chrome reads a version 2 push's URL from `url` alone.
#[test]
fn version_2_pushes_an_absolute_url() {
    let mut block = Block::default();
    let response = ResponseHead { status: 200, fields: Fields::new() };
    put_push(Version::V2, &head(), &response, &mut block).unwrap();
    let expected = ["url=https://example.org:8443/a?b=c", "status=200 OK", "version=HTTP/1.1"];
    assert_eq!(pairs(Version::V2, &block), expected);
}

/// A response with a `Status` field of its own (common in 2012) must not overwrite version 2's.
#[test]
fn version_2_leaves_out_fields_that_bear_its_own_names() {
    let mut fields = Fields::new();
    fields.push("Status", "500 Oops");
    fields.push("Version", "7");
    fields.push("Age", "1");
    let mut block = Block::default();
    put_response(Version::V2, &ResponseHead { status: 200, fields }, &mut block).unwrap();
    assert_eq!(pairs(Version::V2, &block), ["status=200 OK", "version=HTTP/1.1", "age=1"]);
}

#[test]
fn a_request_that_lacks_a_part_is_none() {
    let all =
        [(":method", "GET"), (":path", "/"), (":version", "HTTP/1.1"), (":host", "h"), (":scheme", "https")];
    assert!(parts(Version::V3, &all).request().is_some());
    for missing in 0..all.len() {
        let mut some = all.to_vec();
        some.remove(missing);
        assert_eq!(parts(Version::V3, &some).request(), None, "without {}", all[missing].0);
        some.push((all[missing].0, ""));
        assert_eq!(parts(Version::V3, &some).request(), None, "with empty {}", all[missing].0);
    }
}

#[test]
fn a_version_2_url_may_be_absolute() {
    let target = |url: &'static str| {
        let rest =
            [("method", "GET"), ("version", "HTTP/1.1"), ("url", url), ("host", "h"), ("scheme", "http")];
        let head = parts(Version::V2, &rest).request()?;
        let text = |b: Bytes| String::from_utf8(b.to_vec()).unwrap();
        Some([head.scheme, head.authority, head.path].map(text).join(" "))
    };
    assert_eq!(target("https://a.example/x?y").as_deref(), Some("https a.example /x?y"));
    assert_eq!(target("https://a.example").as_deref(), Some("https a.example /"));
    assert_eq!(target("/go?to=http://b/").as_deref(), Some("http h /go?to=http://b/"));
    assert_eq!(target("*").as_deref(), Some("http h *"));
    assert_eq!(target("://x/"), None);
    assert_eq!(target("https:///x"), None);
}

#[test]
fn a_status_is_three_digits_and_perhaps_a_phrase() {
    assert_eq!(status(b"200"), Some(200));
    assert_eq!(status(b"200 OK"), Some(200));
    assert_eq!(status(b"404 "), Some(404));
    for bad in [&b""[..], b"20", b"2000", b"099", b"2x0", b"OK 200", b"-20"] {
        assert_eq!(status(bad), None, "{bad:?}");
    }
    for version in [(Version::V3, ":status", ":version"), (Version::V2, "status", "version")] {
        let (version, status, http) = version;
        assert!(parts(version, &[(status, "200"), (http, "HTTP/1.1")]).response().is_some());
        assert!(parts(version, &[(status, "200")]).response().is_none());
        assert!(parts(version, &[(http, "HTTP/1.1")]).response().is_none());
    }
}

#[test]
fn a_head_that_cannot_be_sent_is_the_callers_error() {
    let mut block = Block::default();
    let put = |head: RequestHead, block: &mut Block| put_request(Version::V3, &head, block);
    assert_eq!(put(RequestHead { path: "".into(), ..head() }, &mut block), Err(BadHead::Value));
    assert_eq!(put(RequestHead { method: "".into(), ..head() }, &mut block), Err(BadHead::Value));
    let mut smuggled = head();
    smuggled.fields.push(":path", "/other");
    assert_eq!(put(smuggled, &mut block), Err(BadHead::Name));
    assert_eq!(put(head(), &mut block), Ok(()));
}
