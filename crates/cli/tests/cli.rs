//! The program as a user meets it: what it prints where, how it ends, and that it says what is wrong in one line.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

mod common;

use common::{Dir, command, stderr, stdout, velodrome};

/// The files of results of the run folder `name`, by name; all but what belongs to the machine.
fn results(dir: &Dir, name: &str) -> Vec<(&'static str, Vec<u8>)> {
    let files = ["plan.toml", "pages.jsonl", "problems.jsonl", "loads.jsonl", "requests.jsonl"];
    let files = files.into_iter().chain(["connections.jsonl", "summary.json"]);
    files.map(|file| (file, fs::read(dir.0.join(name).join(file)).unwrap())).collect()
}

/// A recording of one page with the given entries.
fn har(entries: &[&str]) -> String {
    let page = r#"{"startedDateTime":"2012-05-01T10:00:00.000Z","id":"page_1","title":"A page","pageTimings":{"onLoad":900}}"#;
    format!(
        r#"{{"log":{{"version":"1.2","creator":{{"name":"test","version":"1"}},"pages":[{page}],"entries":[{}]}}}}"#,
        entries.join(",")
    )
}

/// An entry; `bodySize` and `time` are as given.
fn entry(url: &str, size: &str, time: &str) -> String {
    format!(
        r#"{{"pageref":"page_1","startedDateTime":"2012-05-01T10:00:00.010Z","time":{time},
        "request":{{"method":"GET","url":"{url}","httpVersion":"HTTP/1.1","headers":[],"queryString":[],"cookies":[],"headersSize":-1,"bodySize":0}},
        "response":{{"status":200,"statusText":"OK","httpVersion":"HTTP/1.1","headers":[{{"name":"Content-Type","value":"text/html"}}],"cookies":[],"content":{{"size":{size},"mimeType":"text/html"}},"redirectURL":"","headersSize":-1,"bodySize":{size}}},
        "cache":{{}},"timings":{{"blocked":0,"dns":-1,"connect":-1,"send":0,"wait":40,"receive":10}}}}"#
    )
}

fn good() -> String {
    har(&[&entry("http://www.example.org/", "9000", "50")])
}

#[test]
fn a_race_prints_both_transports_and_leaves_a_run_folder() {
    let dir = Dir::new("race");
    let out = velodrome(&dir, &["race", "corpus:2012:3", "--out", "run"]);
    assert_eq!((out.status.code(), stderr(&out)), (Some(0), ""));
    for says in [
        "3 pages, 1 run each, seed 1: 6 loads",
        "2000/386 kbit/s",
        "http1 ",
        "spdy3.1 is ",
        "published: 40 %",
    ] {
        assert!(stdout(&out).contains(says), "{says}: {}", stdout(&out));
    }
    assert!(!stdout(&out).contains('\x1b'), "no colour where there is no terminal");
    for file in ["environment.json", "report.html"] {
        assert!(dir.0.join("run").join(file).exists(), "{file}");
    }
    let loads = fs::read_to_string(dir.0.join("run/loads.jsonl")).unwrap();
    assert_eq!(loads.lines().count(), 6);
    assert!(loads.lines().all(|l| l.contains(r#""outcome":"complete""#)), "{loads}");
}

#[test]
fn threads_and_plan_files_do_not_show_in_the_results() {
    let dir = Dir::new("threads");
    let flags =
        ["race", "corpus:2012:4", "--network", "2000/386/100/1", "--runs", "3", "--seed", "7", "--quiet"];
    for (out, threads) in [("one", "1"), ("two", "2")] {
        let out = velodrome(&dir, &[&flags[..], &["--out", out, "--threads", threads]].concat());
        assert_eq!((out.status.code(), stdout(&out), stderr(&out)), (Some(0), "", ""));
    }
    let out = velodrome(&dir, &["race", "--plan", "one/plan.toml", "--out", "again", "--json"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert_eq!(out.stdout, fs::read(dir.0.join("again/summary.json")).unwrap());
    assert_eq!(results(&dir, "one"), results(&dir, "two"));
    assert_eq!(results(&dir, "one"), results(&dir, "again"));
}

#[cfg(unix)]
#[test]
fn an_interrupted_race_keeps_what_is_finished_and_resume_ends_it() {
    let dir = Dir::new("interrupt");
    let flags = ["race", "corpus:2012:12", "--network", "2000/386/100/1", "--runs", "20", "--no-report"];
    let out = velodrome(&dir, &[&flags[..], &["--out", "whole", "--resume"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));

    let mut child = command(&dir, &[&flags[..], &["--out", "stopped", "--threads", "1"]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = || fs::metadata(dir.0.join("stopped/loads.jsonl")).is_ok_and(|m| m.len() > 0);
    while !begun() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130), "{}", stderr(&out));
    assert!(stdout(&out).contains("of 480 loads are done; --resume goes on"), "{}", stdout(&out));

    let out = velodrome(&dir, &[&flags[..], &["--out", "stopped", "--resume"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert_eq!(results(&dir, "whole"), results(&dir, "stopped"));
}

#[test]
fn one_bad_file_in_a_folder_is_named_and_the_rest_is_raced() {
    let dir = Dir::new("one-bad");
    fs::create_dir(dir.0.join("pages")).unwrap();
    dir.write("pages/a.har", &good());
    dir.write("pages/b.har", &good()[..200]);
    dir.write("pages/readme.txt", "no recording");
    let out = velodrome(&dir, &["race", "pages", "--out", "run"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(stdout(&out).contains("1 page, 1 run each"), "{}", stdout(&out));
    let lines: Vec<_> = stderr(&out).lines().collect();
    assert!(lines[0].starts_with("velodrome: pages/b.har: "), "{lines:?}");
    assert_eq!(lines[1..], ["velodrome: one input could not be raced, as said above; the rest was"]);
    let problems = fs::read_to_string(dir.0.join("run/problems.jsonl")).unwrap();
    assert!(problems.starts_with(r#"{"file":"pages/b.har","#), "{problems}");
}

/// Each of these has nothing to race, and says why in one line that names the file, and the entry and field where
/// there is one.
#[test]
fn bad_recordings_are_refused_in_one_line_each() {
    let dir = Dir::new("bad");
    let cases = [
        ("truncated.har", good()[..400].to_owned(), ""),
        ("nothing.har", String::new(), ""),
        ("array.har", "[1,2]".to_owned(), ""),
        ("no-entries.har", har(&[]), "entries"),
        ("huge.har", har(&[&entry("http://a.org/", "2147483648000", "50")]), "entry 0"),
        ("negative.har", har(&[&entry("http://a.org/", "10", "-50000")]), "entry 0"),
        ("no-url.har", har(&[&entry("gopher:no", "10", "50")]), "log.entries"),
    ];
    for (name, text, says) in cases {
        dir.write(name, &text);
        let out = velodrome(&dir, &["race", name, "--out", "run"]);
        let lines: Vec<_> = stderr(&out).lines().collect();
        assert_eq!((out.status.code(), stdout(&out)), (Some(1), ""), "{name}: {lines:?}");
        assert!(
            lines[0].starts_with(&format!("velodrome: {name}: ")) && lines[0].contains(says),
            "{lines:?}"
        );
        assert_eq!(lines[1..], ["velodrome: there is no page to race"], "{name}");
        assert!(!dir.0.join("run").exists(), "nothing is left behind");
    }
}

#[test]
fn what_cannot_be_done_is_said_in_one_line_and_ends_with_two() {
    let dir = Dir::new("refused");
    dir.write("file", "not a folder");
    dir.write("bad.toml", "format = 1\ncolour = 2\n");
    let race = |arguments: &[&str]| velodrome(&dir, &[&["race"], arguments].concat());
    race(&["corpus:2012:1", "--out", "run", "--quiet"]);
    let cases: [(&[&str], &str); 10] = [
        (
            &["corpus:2012:1", "--network", "tin-can"],
            "unknown network 'tin-can'; known are seed, whitepaper-dsl",
        ),
        (&["corpus:2012:1", "--network", "1/2/3/400"], "network '1/2/3/400': loss '400' is not within 0–90"),
        (&["corpus:2012:1", "--initial-cwnd", "0"], "network 'seed': initial_cwnd 0 is not within 1–1000"),
        (&["corpus:2012:1", "--out", "file/run"], "cannot make file/run: "),
        (&["corpus:2012:1", "--out", "."], ".: is not empty and holds no run"),
        (&["corpus:2012:1", "--seed", "2", "--out", "run"], "run: holds the run of another plan"),
        (&["corpus:2012:1", "--seed", "2", "--resume", "--out", "run"], "run: holds the run of another plan"),
        (&["corpus:2012:1", "--resume", "--out", "."], ".: is not empty and holds no run"),
        (&["--plan", "none.toml"], "cannot read none.toml: "),
        (&["--plan", "bad.toml"], "bad.toml:2: unknown field `colour`"),
    ];
    for (arguments, says) in cases {
        let out = race(arguments);
        assert_eq!((out.status.code(), stdout(&out)), (Some(2), ""), "{arguments:?}");
        assert!(stderr(&out).starts_with(&format!("velodrome: {says}")), "{}", stderr(&out));
        assert_eq!(stderr(&out).lines().count(), 1, "{}", stderr(&out));
    }
    let out = race(&["corpus:2012:1", "--transports", "http1,gopher"]);
    assert!(stderr(&out).contains("unknown transport 'gopher'; known are http1"), "{}", stderr(&out));
    assert_eq!(out.status.code(), Some(2));
}

#[test]
fn an_input_that_is_not_there_is_named_and_the_rest_is_raced() {
    let dir = Dir::new("missing");
    let out = velodrome(&dir, &["race", "none.har", "corpus:2012:1", "--out", "run", "--quiet"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(stderr(&out).starts_with("velodrome: none.har: "), "{}", stderr(&out));
    assert_eq!(fs::read_to_string(dir.0.join("run/loads.jsonl")).unwrap().lines().count(), 2);
}

#[test]
fn the_same_plan_may_be_run_again_in_its_default_folder() {
    let dir = Dir::new("default");
    for _ in 0..2 {
        let out = velodrome(&dir, &["race", "corpus:2012:1", "--no-report"]);
        assert_eq!((out.status.code(), stderr(&out)), (Some(0), ""));
        assert!(stdout(&out).contains("results: runs/corpus-2012-1-seed-"), "{}", stdout(&out));
    }
    assert_eq!(fs::read_dir(dir.0.join("runs")).unwrap().count(), 1);
}

#[test]
fn pages_are_listed_with_what_was_assumed() {
    let dir = Dir::new("pages");
    dir.write("a.har", &good());
    let out = velodrome(&dir, &["pages", "a.har"]);
    assert_eq!((out.status.code(), stderr(&out)), (Some(0), ""));
    assert!(stdout(&out).contains("http://www.example.org/"), "{}", stdout(&out));
    let out = velodrome(&dir, &["pages", "a.har", "--json"]);
    assert!(
        stdout(&out).starts_with(r#"{"page":""#) && stdout(&out).lines().count() == 1,
        "{}",
        stdout(&out)
    );
}

#[test]
fn help_the_manual_and_completions_come_from_one_definition() {
    let dir = Dir::new("help");
    for arguments in [&["race", "--help"][..], &["man"], &["completions", "bash"], &["completions", "zsh"]] {
        let out = velodrome(&dir, arguments);
        assert_eq!((out.status.code(), stderr(&out)), (Some(0), ""));
        let plain = stdout(&out).replace('\\', "");
        assert!(plain.contains("--initial-rwnd"), "{arguments:?}");
    }
    let out = velodrome(&dir, &["networks"]);
    assert!(lab::network::PROFILES.iter().all(|p| stdout(&out).contains(p.name)));
}

/// `velodrome … | head -1`.
#[test]
fn a_reader_that_stops_reading_is_no_error() {
    let dir = Dir::new("pipe");
    let mut child =
        command(&dir, &["networks"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert_eq!((out.status.code(), stderr(&out)), (Some(0), ""));
}

/// The recordings beside the source tree, where there are any.
#[test]
fn recorded_pages_are_raced_whole() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/pages/2012/www.adcash.com.har");
    if !pages.exists() {
        eprintln!("skipped: there are no recordings at {}", pages.display());
        return;
    }
    let dir = Dir::new("recorded");
    let out = velodrome(&dir, &["race", pages.to_str().unwrap(), "--out", "run"]);
    assert_eq!((out.status.code(), stderr(&out)), (Some(0), ""), "{}", stdout(&out));
    let loads = fs::read_to_string(dir.0.join("run/loads.jsonl")).unwrap();
    assert!(loads.lines().all(|l| l.contains(r#""outcome":"complete""#)), "{loads}");
}
