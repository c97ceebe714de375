//! From a run folder to the page, without a browser.

mod common;

use std::fs;
use std::path::Path;

use common::{Dir, HOSTILE, REQUESTS, TRANSPORTS, page_id, plt_us, run_folder, unpack};
use serde_json::json;

fn draw(dir: &Dir) -> String {
    report::read(dir.path()).expect("a run folder").render()
}

/// Replaces `from` by `to` in a file of the folder.
fn edit(dir: &Dir, file: &str, from: &str, to: &str) {
    let path = dir.path().join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{file} has no {from}");
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

fn error(dir: &Dir) -> String {
    report::read(dir.path()).err().expect("a broken folder").to_string()
}

#[test]
fn a_page_is_a_function_of_its_folder_alone() {
    let (a, b) = (run_folder("pure-a", 3), run_folder("pure-b", 3));
    let path = report::write(a.path()).unwrap();
    assert_eq!(path, a.path().join("report.html"));
    assert_eq!(fs::read_to_string(&path).unwrap(), draw(&b));
    assert_eq!(
        fs::read_to_string(report::write(a.path()).unwrap()).unwrap(),
        draw(&b),
        "nor of what was there"
    );
}

#[test]
fn a_median_is_over_the_complete_loads_of_a_page() {
    let overview = unpack(&draw(&run_folder("medians", 2)), "overview");
    let http = &overview["cells"][0][0];
    assert_eq!(http["loads"], json!([3, 3]));
    assert_eq!(http["complete"], json!([3, 2]), "page 1 failed once");
    let median_of_two = (plt_us(1, "http1", 1) + plt_us(1, "http1", 2)) / 2;
    assert_eq!(http["medians"]["plt_us"], json!([plt_us(0, "http1", 2), median_of_two]));
    assert_eq!(http["medians"]["connections"], json!([3, 3]));
    assert_eq!(overview["cells"][0][1]["medians"]["connections"], json!([1, 1]));
    assert_eq!(overview["seed"], "9007199254740993", "to the last digit");
}

#[test]
fn the_load_shown_is_the_complete_one_nearest_to_the_median() {
    let html = draw(&run_folder("nearest", 2));
    let page = unpack(&html, "page-0");
    assert_eq!(page["shown"].as_array().unwrap().len(), TRANSPORTS.len());
    assert_eq!(page["shown"][0]["load"]["run"], 2);
    // The median of two is as far from either: the earlier one is shown, and not the incomplete run 0.
    let page = unpack(&html, "page-1");
    assert_eq!(page["shown"][0]["load"]["run"], 1);
    assert_eq!(page["shown"][0]["runs"][0], json!([0, null]));
    assert_eq!(page["shown"][1]["load"]["run"], 2);
}

#[test]
fn a_request_keeps_its_times_to_a_tenth_of_a_millisecond() {
    let page = unpack(&draw(&run_folder("times", 1)), "page-0");
    let requests = &page["shown"][0]["requests"];
    assert_eq!(requests["resource"].as_array().unwrap().len(), REQUESTS as usize);
    assert_eq!(requests["discovered"], json!([0, 3_000, 3_000, 3_000, 3_000]), "differences, in 0.1 ms");
    let first: Vec<_> =
        requests["times"].as_array().unwrap().iter().map(|column| column[0].clone()).collect();
    // DNS from 0 to 30 ms, connect to 130, no TLS, sent at once, first byte at 250, complete at 400, used at 420.
    assert_eq!(json!(first), json!([0, 300, 0, 1_000, null, 0, 1_200, 1_500, 200]));
    assert_eq!(
        page["resources"]["url"].as_array().unwrap().len(),
        REQUESTS as usize,
        "once for both transports"
    );
}

#[test]
fn rows_of_loads_that_are_not_shown_take_no_room() {
    let few = run_folder("few", 1);
    let page = unpack(&draw(&few), "page-0");
    let rows = fs::read_to_string(few.path().join("requests.jsonl")).unwrap();
    // A load that was stopped in the middle leaves requests and no row of its own.
    fs::write(few.path().join("requests.jsonl"), rows.replace("\"run\":0", "\"run\":77")).unwrap();
    assert_eq!(unpack(&draw(&few), "page-0"), page);
}

#[test]
fn a_hostile_title_is_never_html() {
    let html = draw(&run_folder("hostile", 2));
    assert!(!html.contains(HOSTILE) && !html.contains("dataset.hostile"));
    // Data blocks for the overview and two pages, and the front end.
    assert_eq!(html.matches("<script").count(), 4);
    assert_eq!(html.matches("</script>").count(), 4);
    assert_eq!(unpack(&html, "overview")["pages"]["title"][0], HOSTILE);
}

#[test]
fn a_page_asks_for_nothing_outside_itself() {
    let html = draw(&run_folder("alone", 1));
    assert!(html.contains("default-src 'none'"));
    let head = &html[..html.find("<script").unwrap()];
    for outside in ["http:", "https:", "src=", "@import", "url(//", "<link rel=\"stylesheet\""] {
        assert!(!head.contains(outside), "{outside}");
    }
}

#[test]
fn a_missing_file_is_named() {
    for file in
        ["summary.json", "plan.toml", "environment.json", "pages.jsonl", "loads.jsonl", "requests.jsonl"]
    {
        let dir = run_folder(&format!("missing-{file}"), 1);
        fs::remove_file(dir.path().join(file)).unwrap();
        let message = error(&dir);
        assert!(message.starts_with("cannot read ") && message.contains(file), "{message}");
        assert_eq!(message.lines().count(), 1);
    }
    let message = report::write(Path::new("/nonexistent")).unwrap_err().to_string();
    assert!(message.contains("/nonexistent/summary.json"), "{message}");
}

#[test]
fn a_broken_row_is_named_by_file_and_line() {
    let dir = run_folder("broken-row", 1);
    let path = dir.path().join("connections.jsonl");
    let mut lines: Vec<String> = fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
    lines[2] = lines[2].replace("\"opened_us\":30000", "\"opened_us\":\"soon\"");
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let message = error(&dir);
    assert!(message.contains("connections.jsonl:3: ") && message.contains("soon"), "{message}");
    assert_eq!(message.lines().count(), 1);
}

#[test]
fn a_broken_summary_is_named_by_file_and_line() {
    let dir = run_folder("broken-summary", 1);
    edit(&dir, "summary.json", "\"runs\":3", "\"runs\":\n-3");
    let message = error(&dir);
    assert!(message.contains("summary.json:2: "), "{message}");
}

#[test]
fn a_load_that_the_run_does_not_list_is_refused() {
    let dir = run_folder("stray", 1);
    edit(&dir, "loads.jsonl", "\"transport\":\"http1\"", "\"transport\":\"gopher\"");
    let message = error(&dir);
    let what = format!("loads.jsonl has a load of {} on seed over gopher", page_id(0));
    assert!(message.contains(&what), "{message}");
}
