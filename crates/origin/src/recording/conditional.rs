//! Conditional requests to a recorded page: what a client has kept is still what was recorded, if it shows the recorded validator.

use base::{Fields, RequestHead};
use page::Resource;

/// Whether the answer is 304: a GET or HEAD of what was recorded with 200 shows that it has this. RFC 9110 §13.1.2: `If-None-Match`
/// compares weakly, and where it stands, `If-Modified-Since` is not looked at. §13.1.3 compares dates; here it is the recorded date or not,
/// as many servers do it, and as a recording has only one.
pub(super) fn is_unmodified(request: &RequestHead, recorded: &Resource) -> bool {
    if recorded.status != 200 || !matches!(&request.method[..], b"GET" | b"HEAD") {
        return false;
    }
    match request.fields.get("if-none-match") {
        Some(tags) => recorded.response.get("etag").is_some_and(|own| matches(tags, own)),
        None => request
            .fields
            .get("if-modified-since")
            .is_some_and(|since| recorded.response.get("last-modified") == Some(since)),
    }
}

fn matches(tags: &[u8], own: &[u8]) -> bool {
    let strong = |tag: &[u8]| tag.trim_ascii().strip_prefix(b"W/").unwrap_or(tag.trim_ascii()).to_vec();
    tags.trim_ascii() == b"*" || tags.split(|b| *b == b',').any(|tag| strong(tag) == strong(own))
}

/// The fields of a 304: those of the 200 without what describes a body that does not come (RFC 9110 §15.4.5).
pub(super) fn fields(of_200: &Fields) -> Fields {
    let of_body = |name: &[u8]| {
        let name = name.to_ascii_lowercase();
        matches!(&name[..], b"accept-ranges" | b"last-modified")
            || (name.starts_with(b"content-") && name != b"content-location")
    };
    of_200.iter().filter(|f| !of_body(&f.name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use page::{Cause, Kind};

    use super::*;

    fn resource(fields: &[(&'static str, &'static str)]) -> Resource {
        let mut resource = Resource::get("/a", Kind::Image, Cause::Root);
        fields.iter().for_each(|(name, value)| resource.response.push(*name, *value));
        resource
    }

    fn unmodified(recorded: &Resource, method: &'static str, asked: &[(&'static str, &'static str)]) -> bool {
        let mut fields = Fields::new();
        asked.iter().for_each(|(name, value)| fields.push(*name, *value));
        let head = RequestHead {
            method: method.into(),
            scheme: "http".into(),
            authority: "a.example".into(),
            path: "/a".into(),
            fields,
        };
        is_unmodified(&head, recorded)
    }

    const MODIFIED: &str = "Mon, 27 Aug 2012 14:07:31 GMT";

    /// RFC 9110 §13.1.2.
    #[test]
    fn an_entity_tag_compares_weakly_and_goes_before_the_date() {
        let own = resource(&[("ETag", "W/\"x\""), ("Last-Modified", MODIFIED)]);
        for (tags, says) in [("\"x\"", true), ("\"y\", W/\"x\"", true), ("*", true), ("\"y\"", false)] {
            assert_eq!(unmodified(&own, "GET", &[("If-None-Match", tags)]), says, "{tags}");
        }
        let both = [("If-None-Match", "\"y\""), ("If-Modified-Since", MODIFIED)];
        assert!(!unmodified(&own, "GET", &both));
    }

    /// RFC 9110 §13.1.3.
    #[test]
    fn the_recorded_date_is_enough_where_there_is_no_tag() {
        let own = resource(&[("Last-Modified", MODIFIED)]);
        assert!(unmodified(&own, "HEAD", &[("If-Modified-Since", MODIFIED)]));
        assert!(!unmodified(&own, "GET", &[("If-Modified-Since", "Mon, 27 Aug 2012 14:07:30 GMT")]));
    }

    #[test]
    fn without_a_condition_or_a_200_the_answer_is_as_recorded() {
        let own = resource(&[("ETag", "\"x\""), ("Last-Modified", MODIFIED)]);
        let shown = [("If-None-Match", "\"x\"")];
        assert!(!unmodified(&own, "GET", &[]) && !unmodified(&own, "POST", &shown));
        assert!(!unmodified(&Resource { status: 404, ..own }, "GET", &shown));
        assert!(!unmodified(&resource(&[]), "GET", &shown), "nothing to compare with");
    }

    /// RFC 9110 §15.4.5.
    #[test]
    fn a_304_does_not_describe_the_body_that_it_spares() {
        let own = resource(&[
            ("Date", "Tue, 18 Sep 2012 09:42:15 GMT"),
            ("Content-Type", "image/png"),
            ("Content-Length", "7"),
            ("ETag", "\"x\""),
            ("Cache-Control", "max-age=0"),
        ]);
        let left = fields(&own.response);
        let names: Vec<_> = left.iter().map(|f| String::from_utf8_lossy(&f.name).into_owned()).collect();
        assert_eq!(names, ["Date", "ETag", "Cache-Control"]);
    }
}
