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
