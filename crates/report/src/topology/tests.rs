use lab::topology::{HostRecord, PageRecord, State, Tally, VisitRecord};

use super::*;

fn topology(host: &str) -> Topology {
    let tally = Tally { carried: 3, made: 4, used: 2 };
    let host = HostRecord { host: host.to_owned(), resources: 71, tally };
    let last = vec![VisitRecord { plt_us: 1_000, tally }; 3];
    let page = PageRecord { page: "http://www.a.example".into(), visits: 1, hosts: vec![host], last };
    Topology::of(&State { pages: vec![page], ..State::default() })
}

#[test]
fn the_page_shows_what_a_visit_needed_and_what_was_opened_used_and_wasted() {
    let html = render(&topology("http://i.a.example"), &["over http1".into()]);
    assert!(html.contains("A visit needed, of resources: 71 from i.a.example."), "{html}");
    let row = "<td>http://i.a.example</td><td>71</td><td>3</td><td>forgotten</td><td>forgotten</td><td>4</td><td>2</td><td>2</td>";
    assert!(html.contains(row), "{html}");
    assert_eq!(html.matches(crate::html::COLOURS[1]).count(), 3, "a wasted part a visit");
    assert!(html.contains("over http1"));
}

#[test]
fn how_far_hosts_are_trusted_with_pipelines_has_a_column_if_anything_is_known_of_it() {
    let known = |standings: &str| {
        let (format, field) = match standings {
            "" => (1, String::new()),
            rows => (2, format!("\"pipelining\": [{rows}], ")),
        };
        let page = r#"{"page": "http://www.a.example", "visits": 1, "last": [],
            "hosts": [{"host": "http://i.a.example", "resources": 1, "carried": 1, "made": 0, "used": 0}]}"#;
        let text = format!(
            r#"{{"format": {format}, "rounds": 1, "learned": [], "successor": [], "checked": [], {field}"pages": [{page}]}}"#
        );
        render(&Topology::of(&lab::topology::file::parse(text.as_bytes()).unwrap()), &[])
    };
    assert!(!known("").contains("pipelin"));
    let row = r#"{"host": "http://i.a.example:8080", "standing": "green", "proven": true, "penalty": 0, "class_penalties": [0, 0, 0, 5, 0]}"#;
    let html = known(row);
    assert!(
        html.contains("<th>pipelining</th>") && html.contains("<td>green, proven; image owes 5</td>"),
        "{html}"
    );
}

#[test]
fn nothing_from_a_recording_is_html_and_nothing_is_fetched() {
    let html = render(&topology("http://<script>alert(1)</script>"), &[]);
    assert!(!html.contains("<script"), "{html}");
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn a_client_that_knows_nothing_has_a_page_too() {
    let html = render(&Topology::of(&State::default()), &[]);
    assert!(html.ends_with(STATIC_END));
}
