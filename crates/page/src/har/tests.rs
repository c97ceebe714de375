//! HARs made up here, each with one habit of one recorder; then whole files: mutated, written and read back, and real
//! ones where there are any.

use base::Duration;
use serde_json::{Value, json};

use super::*;
use crate::model::{Cause, Kind, Priority, Resource, ScriptMode};

/// An entry that starts `start` ms after the page and takes `time` ms, half of them waiting; 1000 bytes.
fn entry(url: &str, start: u32, time: u32, mime_type: &str) -> Value {
    json!({
        "startedDateTime": format!("2013-05-01T10:00:{:02}.{:03}Z", start / 1000, start % 1000),
        "time": time,
        "request": {"method": "GET", "url": url, "headers": [{"name": "Accept", "value": "*/*"}]},
        "response": {"status": 200, "bodySize": 1000, "headers": [],
            "content": {"size": 1000, "mimeType": mime_type}},
        "timings": {"blocked": 0, "dns": -1, "connect": -1, "send": 0, "wait": time / 2, "receive": time - time / 2},
    })
}

/// The document of most tests: there after 100 ms.
fn document() -> Value {
    let mut entry = entry("http://a.example/", 0, 100, "text/html");
    entry["request"]["headers"][0]["value"] = json!("text/html,*/*");
    entry
}

fn style(name: &str, start: u32, time: u32) -> Value {
    entry(&format!("http://a.example/{name}"), start, time, "text/css")
}

fn script(name: &str, start: u32, time: u32) -> Value {
    entry(&format!("http://a.example/{name}"), start, time, "text/javascript")
}

fn image(name: &str, start: u32, time: u32) -> Value {
    entry(&format!("http://a.example/{name}"), start, time, "image/png")
}

fn with(mut entry: Value, path: &str, value: Value) -> Value {
    let mut at = &mut entry;
    for key in path.split('.') {
        at = &mut at[key];
    }
    *at = value;
    entry
}

fn header(mut entry: Value, side: &str, name: &str, value: &str) -> Value {
    entry[side]["headers"].as_array_mut().unwrap().push(json!({"name": name, "value": value}));
    entry
}

fn har(entries: &[Value]) -> Value {
    json!({"log": {"creator": {"name": "Test", "version": "1"},
        "pages": [{"id": "p", "title": "A page", "startedDateTime": "2013-05-01T10:00:00.000Z",
            "pageTimings": {"onContentLoad": 400, "onLoad": 1000}}],
        "entries": entries}})
}

fn by(mut har: Value, recorder: &str) -> Value {
    har["log"]["creator"]["name"] = json!(recorder);
    har
}

fn read_all(har: &Value) -> Result<Vec<Page>, Error> {
    parse(har.to_string().as_bytes(), "t.har")
}

fn page(entries: &[Value]) -> Page {
    read_all(&har(entries)).unwrap().remove(0)
}

fn error(har: &Value) -> String {
    let line = read_all(har).unwrap_err().to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}

fn assumed(page: &Page, kind: &str) -> u32 {
    page.assumptions.iter().find(|a| a.kind == kind).map_or(0, |a| a.count)
}

fn ms(d: Duration) -> f64 {
    d.as_millis_f64().round()
}

fn after(resource: &Resource) -> (u32, f64) {
    match resource.cause {
        Cause::Completion { parent, delay } => (parent, ms(delay)),
        other => panic!("{other:?}"),
    }
}

mod files {
    use super::*;

    #[test]
    fn compression_and_a_byte_order_mark_change_nothing() {
        use std::io::Write;
        let text = har(&[document()]).to_string();
        let plain = parse(text.as_bytes(), "t.har").unwrap();
        assert_eq!(parse(format!("\u{feff}{text}").as_bytes(), "t.har").unwrap(), plain);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap();
        assert_eq!(parse(&gzip, "t.har").unwrap(), plain);
        let cut = parse(&gzip[..gzip.len() / 2], "t.har.gz").unwrap_err();
        assert!(matches!(cut.fault, Fault::Gzip(_)), "{cut}");
    }

    #[test]
    fn entries_go_to_the_page_they_name_or_the_last_that_started_before_them() {
        let mut har = har(&[
            with(document(), "pageref", json!("q")),
            with(image("1.png", 300, 10), "pageref", json!("q")),
            entry("http://b.example/", 2500, 10, "text/html"),
            with(entry("http://b.example/2.png", 2600, 10, "image/png"), "pageref", json!("no such page")),
        ]);
        har["log"]["pages"] = json!([
            {"id": "q", "startedDateTime": "2013-05-01T10:00:00Z"},
            {"id": "r/2", "startedDateTime": "2013-05-01T10:00:02Z", "pageTimings": null},
        ]);
        let pages = read_all(&har).unwrap();
        let ids: Vec<&str> = pages.iter().map(|p| p.id.as_str()).collect();
        assert_eq!(ids, ["t-q", "t-r_2"]);
        assert_eq!((pages[0].resources.len(), pages[1].resources.len()), (2, 2));
        assert_eq!(pages[1].url, "http://b.example/");
        assert_eq!(pages[1].source.page, "r/2");
        // Without pages there is one.
        har["log"]["pages"] = Value::Null;
        assert_eq!(read_all(&har).unwrap().len(), 1);
    }

    #[test]
    fn a_page_of_which_nothing_completed_is_left_out_if_others_remain() {
        let aborted = with(with(document(), "response.status", json!(0)), "pageref", json!("p"));
        let mut har = har(&[aborted.clone(), with(document(), "pageref", json!("q"))]);
        har["log"]["pages"] = json!([
            {"id": "p", "startedDateTime": "2013-05-01T09:00:00Z"},
            {"id": "q", "startedDateTime": "2013-05-01T10:00:00Z"},
        ]);
        let pages = read_all(&har).unwrap();
        assert_eq!(pages.len(), 1);
        assert_eq!(assumed(&pages[0], "page-skipped"), 1);
        har["log"]["entries"] = json!([aborted]);
        assert_eq!(
            error(&har),
            "t.har: log.entries: no completed request over HTTP: all were aborted, or have another scheme"
        );
    }

    #[test]
    fn what_is_no_request_over_http_is_left_out_and_counted() {
        let page = page(&[
            document(),
            entry("data:image/png;base64,AAAA", 200, 1, "image/png"),
            entry("about:blank", 200, 1, "text/html"),
            entry("blob:http://a.example/1", 200, 1, ""),
            with(image("x.png", 200, 1), "response", Value::Null),
        ]);
        assert_eq!(page.resources.len(), 1);
        assert_eq!((assumed(&page, "skipped-scheme"), assumed(&page, "skipped-failed")), (3, 1));
    }

    #[test]
    fn strings_stand_for_numbers_and_nothing_for_anything() {
        let bare = json!({"request": {"url": "http://a.example/x.png"}, "response": {"status": "200"}});
        let page = page(&[with(document(), "response.status", json!("200")), bare]);
        let resource = &page.resources[1];
        assert_eq!((resource.kind, resource.status, resource.body_len), (Kind::Image, 200, 0));
        assert_eq!((&resource.method[..], &resource.path[..]), (&b"GET"[..], &b"/x.png"[..]));
        assert_eq!((assumed(&page, "no-start"), assumed(&page, "no-timings")), (1, 1));
    }
}

mod faults {
    use super::*;

    #[test]
    fn bad_files_are_told_in_one_line() {
        let text = har(&[document()]).to_string();
        let cut = parse(&text.as_bytes()[..200], "dir/t.har").unwrap_err().to_string();
        assert_eq!(
            cut,
            "dir/t.har: line 1, column 200: EOF while parsing a string; the file is cut short or is no JSON"
        );
        assert_eq!(error(&json!({})), "t.har: log: no object of this name; is it a HAR?");
        assert_eq!(error(&har(&[])), "t.har: log.entries: no entries; record the page again");
        let shape = error(&har(&[document(), with(document(), "response.headers", json!("none"))]));
        assert!(
            shape.starts_with("t.har: entry 1: response.headers: invalid type: string \"none\""),
            "{shape}"
        );
        let missing = read(Path::new("/no/such/file.har")).unwrap_err().to_string();
        assert!(missing.starts_with("/no/such/file.har: "), "{missing}");
    }

    #[test]
    fn a_bad_field_is_named_with_its_entry() {
        for (field, value, told) in [
            ("response.bodySize", json!(4294967296_u64), "4294967296 bytes: larger than 2147483647"),
            ("response.content.size", json!("2147483648"), "2147483648 bytes: larger than 2147483647"),
            ("response._transferSize", json!(1e300), &format!("{} bytes: larger than 2147483647", 1e300)),
            ("request.bodySize", json!([]), "an array: not a number"),
            ("response.status", json!("ok"), "\"ok\": not a number"),
            ("timings.wait", json!(-5), "-5 ms: a time is not negative (-1 alone says \"not applicable\")"),
            ("time", json!(-20.5), "-20.5 ms: a time is not negative (-1 alone says \"not applicable\")"),
            ("timings.dns", json!(1e9), "1000000000 ms: longer than 86400000"),
            (
                "startedDateTime",
                json!("last week"),
                "\"last week\": not a time such as 2012-09-18T09:42:15.281Z",
            ),
            ("request.method", json!("G ET"), "\"G ET\": not a method"),
        ] {
            let told = format!("t.har: entry 1 (http://a.example/x.png): {field}: {told}");
            assert_eq!(error(&har(&[document(), with(image("x.png", 200, 10), field, value)])), told);
        }
        let no_host = error(&har(&[with(document(), "request.url", json!("http:///x"))]));
        assert_eq!(no_host, "t.har: entry 0 (http:///x): request.url: no host");
        let no_url = error(&har(&[with(document(), "request.url", Value::Null)]));
        assert_eq!(no_url, "t.har: entry 0: request.url: missing");
        let mut page_time = har(&[document()]);
        page_time["log"]["pages"][0]["pageTimings"]["onLoad"] = json!(-7);
        assert!(
            error(&page_time).starts_with("t.har: page \"p\": pageTimings.onLoad: -7 ms"),
            "{}",
            error(&page_time)
        );
    }

    #[test]
    fn minus_one_and_rounding_below_zero_are_no_faults() {
        let mut entry = with(image("x.png", 200, 10), "timings.wait", json!(-0.0003));
        for (field, value) in [("timings.blocked", -1.0), ("timings.ssl", -0.9999999), ("time", 10.0)] {
            entry = with(entry, field, json!(value));
        }
        let page = page(&[document(), with(entry, "response.bodySize", json!(-13))]);
        assert_eq!(page.resources[1].body_len, 1000);
    }

    #[test]
    fn entries_that_name_one_another_as_initiators_are_told_apart_from_mere_disorder() {
        let x = with(script("x.js", 200, 10), "_initiator", json!("http://a.example/y.js"));
        let y = with(
            script("y.js", 300, 10),
            "_initiator",
            json!({"type": "script", "url": "http://a.example/x.js"}),
        );
        assert_eq!(
            error(&har(&[document(), x.clone(), y])),
            "t.har: entry 1 (http://a.example/x.js): _initiator: entries 1 → 2 name one another in a circle; \
             remove one of these"
        );
        let own = with(script("x.js", 200, 10), "_initiator", json!("http://a.example/x.js"));
        assert_eq!(assumed(&page(&[document(), own]), "initiator-unknown"), 1);
        // Y did not name X: the initiator is taken to be unknown.
        let page = page(&[document(), x, script("y.js", 300, 10)]);
        assert_eq!(assumed(&page, "initiator-unknown"), 1);
    }

    #[test]
    fn a_page_has_at_most_ten_thousand_entries() {
        let many: Vec<Value> = std::iter::repeat_n(json!({"request": {"url": "data:,"}}), 10_001).collect();
        assert_eq!(error(&har(&many)), "t.har: log.entries: 10001 in one page: more than 10000");
    }
}

mod heads {
    use super::*;

    #[test]
    fn only_what_an_engine_may_write_is_kept() {
        let mut entry = with(document(), "request.method", json!("POST"));
        for (name, value) in [
            (":authority", "a.example"),
            ("Host", "a.example"),
            ("Connection", "keep-alive, X-Hop"),
            ("X-Hop", "1"),
            ("Content-Length", "12"),
            ("If-None-Match", "\"1\""),
            ("bad name", "x"),
            ("X-Bad", "a\u{0}b"),
            ("Cookie", " a=b "),
        ] {
            entry = header(entry, "request", name, value);
        }
        let entry = header(entry, "response", "Set-Cookie", "a=1\nb=2");
        let page = page(&[header(entry, "response", "Transfer-Encoding", "chunked")]);
        let resource = &page.resources[0];
        let names: Vec<String> =
            resource.request.iter().map(|f| String::from_utf8_lossy(&f.name).into_owned()).collect();
        assert_eq!(names, ["Accept", "Cookie"]);
        assert_eq!(resource.request.get_str("cookie"), Some("a=b"));
        assert_eq!(resource.request_body_len, 12);
        assert_eq!(assumed(&page, "conditional"), 1);
        let values: Vec<&[u8]> = resource.response.iter().map(|f| &f.value[..]).collect();
        assert_eq!(values, [b"a=1", b"b=2"]);
    }

    #[test]
    fn a_revalidation_becomes_the_cold_load_it_stands_for() {
        let mut cached = with(image("x.png", 200, 10), "response.status", json!(304));
        cached["response"]["bodySize"] = json!(0);
        let mut other = har(&[document(), header(cached, "request", "If-Modified-Since", "yesterday")]);
        other["log"]["pages"][0]["_cached"] = json!(1);
        let page = &read_all(&other).unwrap()[0];
        assert_eq!((page.resources[1].status, page.resources[1].body_len), (200, 1000));
        assert_eq!((assumed(page, "revalidated"), assumed(page, "repeat-view")), (1, 1));
        assert!(page.resources[1].request.get("if-modified-since").is_none());
    }
}

mod causes {
    use super::*;

    #[test]
    fn a_redirection_leads_to_its_target_and_has_its_kind() {
        let mut root = with(document(), "response.status", json!(301));
        root["response"]["content"]["mimeType"] = json!("text/plain");
        let target = header(
            entry("https://www.a.example/home", 120, 80, "text/html"),
            "request",
            "Accept",
            "text/html",
        );
        let mut pixel = with(image("p?1", 300, 10), "response.status", json!(302));
        pixel["response"]["redirectURL"] = json!("p?2");
        let page = page(&[
            header(root, "response", "Location", "https://www.a.example/home#top"),
            with(target, "request.headers", json!([{"name": "Accept", "value": "text/html"}])),
            pixel,
            image("p?2", 320, 10),
        ]);
        let causes: Vec<Cause> = page.resources.iter().map(|r| r.cause).collect();
        assert_eq!((causes[0], causes[1], causes[3]), (Cause::Root, Cause::Redirect(0), Cause::Redirect(2)));
        assert_eq!(page.resources[0].kind, Kind::Document);
        assert!(matches!(causes[2], Cause::Parser { parent: 1, .. }), "{:?}", causes[2]);
    }

    #[test]
    fn what_came_before_the_document_belongs_to_the_page_before() {
        let mut har = har(&[image("unload.gif", 0, 10), with(document(), "time", json!(90))]);
        har["log"]["entries"][1]["startedDateTime"] = json!("2013-05-01T10:00:00.020Z");
        let page = &read_all(&har).unwrap()[0];
        assert_eq!((page.url.as_str(), assumed(page, "before-navigation")), ("http://a.example/", 1));
    }

    #[test]
    fn without_initiators_kind_and_timing_decide() {
        let page = page(&[
            document(),                                              // there at 100
            style("a.css", 105, 45),                                 // markup: 150
            script("a.js", 105, 95),                                 // markup: 200
            script("late.js", 240, 20),                              // no markup names it so late: after a.js
            entry("http://a.example/f.woff", 300, 9, "font/woff"),   // after a.css
            entry("http://a.example/d", 310, 9, "application/json"), // after the last script
            image("in.png", 390, 9),                                 // the parser still runs until 400
            image("out.png", 600, 9),                                // after the last script
            image("beacon.gif", 1200, 9),                            // after onload
        ]);
        let causes: Vec<Cause> = page.resources.iter().map(|r| r.cause).collect();
        assert!(matches!(causes[1], Cause::Parser { parent: 0, .. }));
        assert!(matches!(causes[2], Cause::Parser { parent: 0, script: ScriptMode::Sync, .. }));
        assert_eq!(after(&page.resources[3]).0, 2);
        assert_eq!(after(&page.resources[4]).0, 1);
        assert_eq!(after(&page.resources[5]).0, 3);
        assert!(matches!(causes[6], Cause::Parser { parent: 0, .. }));
        assert_eq!(after(&page.resources[7]).0, 3);
        assert_eq!(
            (causes[8], page.resources[8].after_load),
            (Cause::Load { delay: Duration::from_millis(200) }, true)
        );
        let line = page.assumptions.iter().find(|a| a.kind == "causes").unwrap().to_string();
        assert_eq!(line, "cause from type and timing (8) (8×)");
    }

    #[test]
    fn initiators_and_referers_go_before_timing() {
        let doc = "http://a.example/";
        let empty_src = with(header(image("", 110, 5), "request", "X", "y"), "_initiator", json!(doc));
        let page = page(&[
            document(),
            with(empty_src, "request.headers", json!([{"name": "Accept", "value": "image/webp,*/*"}])),
            with(style("a.css", 120, 30), "_initiator", json!(doc)),
            with(script("a.js", 121, 30), "_initiator", json!(doc)),
            header(image("bg.png", 170, 9), "request", "Referer", "http://a.example/a.css"),
            with(image("js.png", 180, 9), "_initiator", json!("http://a.example/a.js")),
            with(entry("http://b.example/frame", 190, 20, "text/html"), "request.headers", json!([])),
            header(image("framed.png", 215, 9), "request", "Referer", "http://b.example/frame"),
        ]);
        // An image with an empty `src` asks for the page's own URL, and initiates nothing.
        assert_eq!(page.resources[1].kind, Kind::Image);
        assert!(matches!(page.resources[2].cause, Cause::Parser { parent: 0, .. }));
        assert_eq!(after(&page.resources[4]).0, 2);
        assert_eq!(after(&page.resources[5]).0, 3);
        assert!(matches!(page.resources[7].cause, Cause::Parser { parent: 6, .. }));
    }

    #[test]
    fn lines_place_children_and_arrival_bounds_them() {
        let line = |e: Value, line: u32| {
            with(with(e, "_initiator", json!("http://a.example/")), "_initiator_line", json!(line))
        };
        let slow = with(document(), "timings", json!({"blocked": 0, "wait": 100, "receive": 100}));
        let page = page(&[
            with(slow, "time", json!(200)),
            line(image("1.png", 150, 5), 9),
            line(image("2.png", 210, 5), 49),
            line(image("3.png", 210, 5), 99),
        ]);
        let offset = |i: usize| match page.resources[i].cause {
            Cause::Parser { offset, .. } => offset,
            other => panic!("{other:?}"),
        };
        assert_eq!([offset(1), offset(2), offset(3)], [90, 490, 990]);
        let early = [with(document(), "time", json!(1000)), line(image("1.png", 520, 5), 99)];
        let early = with(
            har(&early),
            "log.entries",
            json!([with(early[0].clone(), "timings", json!({"wait": 500, "receive": 500})), early[1]]),
        );
        let page = &read_all(&early).unwrap()[0];
        // Of the body, 20 of 500 ms' worth had arrived.
        assert!(
            matches!(page.resources[1].cause, Cause::Parser { offset: 40, .. }),
            "{:?}",
            page.resources[1].cause
        );
    }

    #[test]
    fn a_recorded_body_tells_places_and_how_scripts_are_run() {
        let body = format!(
            "<html><head><link href=a.css rel=stylesheet><script src=\"/a.js?x=1&amp;y=2\" defer></script>{}<img \
             src=\"http://a.example/pic.png\"></html>",
            "x".repeat(500)
        );
        let mut doc = with(document(), "response.content.text", json!(body));
        doc["response"]["content"]["size"] = json!(body.len());
        doc["response"]["bodySize"] = json!(body.len());
        let page = page(&[doc, script("a.js?x=1&y=2", 110, 9), image("pic.png", 110, 9)]);
        let at = |needle: &str| body.find(needle).unwrap() as u64;
        assert_eq!(
            page.resources[1].cause,
            Cause::Parser { parent: 0, offset: at("/a.js"), script: ScriptMode::Defer }
        );
        assert_eq!(
            page.resources[2].cause,
            Cause::Parser { parent: 0, offset: at("http://a.example/pic"), script: ScriptMode::Sync }
        );
    }

    #[test]
    fn chromes_priorities_and_blocking_tell_how_scripts_are_run() {
        let low = with(script("low.js", 110, 9), "_priority", json!("Low"));
        let blocking = with(
            with(script("b.js", 111, 9), "_priority", json!("Low")),
            "_renderBlocking",
            json!("blocking"),
        );
        let page =
            page(&[document(), low, blocking, with(script("n.js", 112, 9), "_priority", json!("HIGHEST"))]);
        let mode = |i: usize| match page.resources[i].cause {
            Cause::Parser { script, .. } => script,
            other => panic!("{other:?}"),
        };
        assert_eq!([mode(1), mode(2), mode(3)], [ScriptMode::Async, ScriptMode::Sync, ScriptMode::Sync]);
        assert_eq!(page.resources[3].priority, Some(Priority::VeryHigh));
    }
}

mod times {
    use super::*;

    #[test]
    fn a_script_runs_when_style_sheets_allow_and_the_rest_is_computation() {
        let initiator = |e: Value| with(e, "_initiator", json!("http://a.example/a.js"));
        let page = page(&[
            document(),
            style("a.css", 110, 190),          // there at 300
            script("a.js", 111, 39),           // there at 150, runs from 300
            initiator(image("1.png", 330, 9)), // 30 ms of computation
            initiator(image("2.png", 900, 9)), // and a timer
        ]);
        assert_eq!(ms(page.resources[2].exec), 30.0);
        assert_eq!((after(&page.resources[3]), after(&page.resources[4])), ((2, 0.0), (2, 570.0)));
        // The parser started 10 ms late and was done at 400, 70 ms after the script; onload came 91 ms after the last
        // image.
        assert_eq!(ms(page.resources[0].exec), 80.0);
        assert_eq!(ms(page.tail), 91.0);
    }

    #[test]
    fn think_time_is_what_the_wait_exceeds_a_round_trip_by() {
        let connect = |e: Value, dns: i32, connect: i32, ssl: i32| {
            let e = with(with(e, "timings.dns", json!(dns)), "timings.connect", json!(connect));
            with(e, "timings.ssl", json!(ssl))
        };
        let page = page(&[
            connect(document(), 12, 30, -1),             // waits 50
            connect(image("x.png", 110, 80), -1, 1, -1), // another's connection; waits 40
            connect(entry("https://b.example/y.png", 120, 100, "image/png"), 3, 60, 40), // waits 50
        ]);
        assert_eq!(
            (page.hosts[0].rtt, page.hosts[0].dns),
            (Some(Duration::from_millis(30)), Some(Duration::from_millis(12)))
        );
        assert_eq!(page.hosts[1].rtt, Some(Duration::from_millis(20)));
        let think: Vec<f64> = page.resources.iter().map(|r| ms(r.think)).collect();
        assert_eq!(think, [20.0, 10.0, 30.0]);
        assert_eq!((page.hosts[1].scheme_tls, page.hosts[1].port), (true, 443));
    }

    #[test]
    fn what_outlives_onload_did_not_hold_it_back() {
        let page = page(&[
            document(),
            entry("http://a.example/stream", 300, 5000, "video/mp4"),
            image("x.png", 300, 9),
        ]);
        assert_eq!((page.resources[1].after_load, page.resources[2].after_load), (true, false));
        assert_eq!(assumed(&page, "outlives-load"), 1);
    }

    #[test]
    fn webinspector_writes_in_the_order_of_asking_and_stamps_the_end_of_a_queue() {
        let wrong_clock = with(image("z.png", 0, 20), "startedDateTime", json!("2013-05-01T10:06:00.000Z"));
        let entries = [document(), image("a.png", 500, 20), wrong_clock, image("b.png", 300, 20)];
        let page = &read_all(&by(har(&entries), "WebInspector")).unwrap()[0];
        let parsed = |r: &Resource| matches!(r.cause, Cause::Parser { parent: 0, .. });
        assert!(page.resources[1..].iter().all(parsed), "all before the parser's end at 400");
        assert_eq!((assumed(page, "start-order"), assumed(page, "start-moved")), (1, 1));
        assert!(page.resources.iter().all(|r| !r.after_load));
    }

    #[test]
    fn chrome_har_says_how_long_a_request_queued() {
        let queued = with(image("a.png", 700, 20), "timings._queued", json!(450.5));
        let page = page(&[document(), queued]);
        assert!(matches!(page.resources[1].cause, Cause::Parser { .. }), "asked for at 249.5 ms, before 400");
    }

    #[test]
    fn webpagetest_stamps_the_sending_and_counts_the_connection_all_the_same() {
        let mut doc = with(document(), "_load_start", json!("60"));
        for (field, value) in
            [("_dns_start", 0), ("_dns_end", 20), ("_connect_start", 20), ("_connect_end", 60)]
        {
            doc[field] = json!(value);
        }
        doc["startedDateTime"] = json!("2013-05-01T10:00:00.060Z");
        doc["timings"] =
            json!({"blocked": -1, "dns": 20, "connect": 40, "send": 0, "wait": 90, "receive": 10});
        doc["time"] = json!(160);
        // Its one connection was free at 160, and a script was there at 165: it queued, no one knows how long.
        let no_queue = |e: Value| with(with(e, "timings.blocked", json!(-1)), "_socket", json!(7));
        let entries = [
            doc,
            no_queue(script("a.js", 161, 100)),
            no_queue(with(image("b.png", 265, 90), "_initiator", json!("http://a.example/a.js"))),
            no_queue(with(
                with(image("c.png", 700, 90), "_initiator", json!("http://a.example/")),
                "_initiator_line",
                json!(4),
            )),
        ];
        let page = &read_all(&by(har(&entries), "WebPagetest")).unwrap()[0];
        assert_eq!(ms(page.resources[0].think), 50.0);
        assert_eq!((after(&page.resources[2]), assumed(page, "queued")), ((1, 0.0), 1));
        assert!(matches!(page.resources[3].cause, Cause::Parser { .. }), "its place in the markup is known");
    }
}

mod whole {
    use super::*;
    use base::Rng;

    #[test]
    fn what_is_written_is_read_back_without_loss() {
        let mut pages = crate::corpus::generate("2012", 3, 11).unwrap();
        pages.extend(crate::corpus::generate("today", 3, 11).unwrap());
        pages.push(page(&[
            document(),
            style("a.css", 105, 45),
            script("a.js", 105, 95),
            image("x.png", 1300, 5),
        ]));
        for page in pages {
            let timing = Timing {
                asked: Duration::from_micros(1500),
                dns: Some((Duration::from_millis(2), Duration::from_millis(5))),
                connect: Some((Duration::from_millis(5), Duration::from_millis(9))),
                tls_end: Some(Duration::from_millis(12)),
                sent: Some(Duration::from_millis(12)),
                first_byte: Some(Duration::from_millis(20)),
                complete: Some(Duration::from_millis(30)),
                connection: Some(4),
            };
            let measured = Measured { requests: vec![timing], ..Measured::default() };
            let written = write(&page, &measured);
            let timings = &written["log"]["entries"][0]["timings"];
            assert_eq!(
                timings,
                &json!({"blocked": 0.5, "dns": 3.0, "connect": 7.0, "ssl": 3.0, "send": 0.0, "wait": 8.0, "receive": 10.0})
            );
            let back = parse(written.to_string().as_bytes(), "again.har").unwrap();
            assert!(back == [page]);
        }
    }

    #[test]
    fn a_written_file_that_was_tampered_with_is_refused() {
        let page = page(&[document(), style("a.css", 105, 45)]);
        let written = write(&page, &Measured::default());
        for (path, value, told) in [
            ("entries.1._velodrome.cause", json!({"redirect": {"parent": 1}}), "resource 1: its parent"),
            ("entries.1._velodrome.kind", json!("poem"), "_velodrome: \"poem\": not known here"),
            ("entries.1.response.bodySize", json!(1_u64 << 40), "larger than 2147483647"),
            ("pages.0._velodrome.id", json!("../up"), "not fit for a file name"),
            ("entries.0.request.headers", json!([{"name": "a\r\nb", "value": "1"}]), "is not writable"),
        ] {
            let mut bad = written.clone();
            let pointer = format!("/log/{}", path.replace('.', "/"));
            *bad.pointer_mut(&pointer).unwrap() = value;
            assert!(error(&bad).contains(told), "{}", error(&bad));
        }
    }

    /// Whatever happens to a file, reading it gives valid pages or an error.
    #[test]
    fn no_mutation_of_a_file_makes_the_reader_panic() {
        let entries = [
            document(),
            with(
                style("a.css", 105, 45),
                "_initiator",
                json!({"type": "parser", "url": "http://a.example/", "lineNumber": 3}),
            ),
            header(script("a.js", 105, 95), "request", "Referer", "http://a.example/"),
            with(
                header(script("b.js", 105, 95), "response", "Content-Encoding", "gzip"),
                "response.content",
                json!({"mimeType": "text/javascript", "text": "ZigpOyBmKCk7", "encoding": "base64"}),
            ),
            with(image("x.png", 300, 5), "response.status", json!(302)),
            entry("http://b.example/f.woff2", 400, 5, ""),
        ];
        let text = by(har(&entries), "WebInspector").to_string().into_bytes();
        let values = [
            "-1",
            "null",
            "1e308",
            "\"x\"",
            "[]",
            "{}",
            "99999999999",
            "0.5",
            "true",
            "\"2013-05-01T10:00:00Z\"",
        ];
        let mut rng = Rng::new(5);
        for round in 0..20_000 {
            let mut bytes = text.clone();
            for _ in 0..1 + rng.below(3) {
                let at = rng.below(bytes.len() as u64) as usize;
                match rng.below(4) {
                    0 => bytes[at] = rng.next_u64() as u8,
                    1 => bytes.truncate(at.max(1)),
                    2 => {
                        bytes.remove(at);
                    }
                    // The value after the next colon becomes another one.
                    _ => {
                        let Some(colon) = bytes[at..].iter().position(|b| *b == b':').map(|i| at + i + 1)
                        else {
                            continue;
                        };
                        let end = bytes[colon..]
                            .iter()
                            .position(|b| b",}]".contains(b))
                            .map_or(bytes.len(), |i| colon + i);
                        let value = values[rng.below(values.len() as u64) as usize];
                        bytes.splice(colon..end, value.bytes());
                    }
                }
                if bytes.is_empty() {
                    break;
                }
            }
            match parse_with_bodies(&bytes, "t.har") {
                Ok(pages) => pages.iter().for_each(|(page, bodies)| {
                    page.validate().unwrap();
                    assert!(bodies.keys().all(|id| (*id as usize) < page.resources.len()));
                }),
                Err(e) => assert!(!e.to_string().contains('\n'), "round {round}: {e}"),
            }
        }
    }

    /// Real recordings, where there are any: all are read, and are what their folder says.
    #[test]
    fn recorded_pages_are_read() {
        let up = ["..", "..", "..", "shared", "pages"];
        let folder: std::path::PathBuf = std::iter::once(env!("CARGO_MANIFEST_DIR")).chain(up).collect();
        let mut files: Vec<_> = ["2012", "2015-2024"]
            .iter()
            .filter_map(|f| std::fs::read_dir(folder.join(f)).ok())
            .flat_map(|f| f.filter_map(|e| e.ok().map(|e| e.path())))
            .filter(|p| p.extension().is_some_and(|x| x == "har"))
            .collect();
        files.sort();
        if files.is_empty() {
            eprintln!("skipped: no recorded pages in {}", folder.display());
            return;
        }
        let mut count = 0;
        for file in &files {
            for (page, bodies) in read_with_bodies(file).unwrap_or_else(|e| panic!("{e}")) {
                page.validate().unwrap_or_else(|e| panic!("{}: {e}", page.id));
                count += 1;
                let (requests, hosts) = (page.resources.len(), page.hosts.len());
                assert!(requests < 300 && hosts < 60 && page.body_bytes() < 10_000_000, "{}", page.id);
                // Nobody's page computes for longer than it took to load.
                let exec: f64 =
                    page.resources.iter().filter(|r| !r.after_load).map(|r| r.exec.as_millis_f64()).sum();
                let on_load = page.recorded.on_load.map_or(f64::MAX, |d| d.as_millis_f64());
                assert!(exec <= on_load, "{}: {exec} ms of computation, onload at {on_load} ms", page.id);
                eprintln!(
                    "{:<50} {requests:>4} requests {hosts:>3} hosts {:>8} bytes {:>4} bodies",
                    page.id,
                    page.body_bytes(),
                    bodies.len()
                );
            }
        }
        eprintln!("{} files, {count} pages", files.len());
    }
}
