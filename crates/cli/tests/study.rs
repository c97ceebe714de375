//! Techniques as switches of a race, and published experiments, as a user meets them.

use std::fs;

mod common;

use common::{Dir, stderr, stdout, velodrome};

/// A race of two pages with these further arguments, whose rows of connections it gives.
fn connections(dir: &Dir, name: &str, arguments: &[&str]) -> String {
    let race = ["race", "corpus:2012:2", "--network", "5000/1000/100", "--no-report", "--out", name];
    let out = velodrome(dir, &[&race[..], arguments].concat());
    assert_eq!((out.status.code(), stderr(&out)), (Some(0), ""));
    fs::read_to_string(dir.0.join(name).join("connections.jsonl")).unwrap()
}

#[test]
fn what_is_learned_is_the_same_with_any_number_of_threads_and_from_a_plan() {
    let dir = Dir::new("with");
    let learned = |name, threads| {
        connections(&dir, name, &["--with", "preconnect=learned", "--with", "visits=2", "--threads", threads])
    };
    let one = learned("one", "1");
    assert!(one.contains("\"purpose\":\"speculative\""));
    assert_eq!(one, learned("many", "3"));
    assert!(!connections(&dir, "without", &[]).contains("purpose"), "rows of old are as they were");
    let plan = fs::read_to_string(dir.0.join("one/plan.toml")).unwrap();
    assert!(plan.contains("techniques = [\"preconnect=learned\", \"visits=2\"]"), "{plan}");
    dir.write("plan.toml", &plan);
    let again = velodrome(&dir, &["race", "--plan", "plan.toml", "--no-report", "--out", "again"]);
    assert_eq!((again.status.code(), stderr(&again)), (Some(0), ""));
    assert_eq!(one, fs::read_to_string(dir.0.join("again/connections.jsonl")).unwrap());
}

#[test]
fn a_switch_that_is_unknown_or_has_nothing_to_act_on_is_refused_by_name() {
    let dir = Dir::new("with-bad");
    let cases = [
        (&["--with", "warp"][..], "'warp' is no switch; there are false-start, preconnect, "),
        (&["--with", "racing=0"], "'racing=0' is not how racing is switched: racing[=MS]"),
        (&["--with", "false-start"], "network 'seed' has TLS 'none'"),
        (&["--with", "racing=100", "--with", "racing"], "'racing=250' contradicts 'racing=100'"),
    ];
    for (arguments, says) in cases {
        let out = velodrome(&dir, &[&["race", "corpus:2012:1"], arguments].concat());
        assert_eq!(out.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&out).lines().next().is_some_and(|line| line.contains(says)), "{}", stderr(&out));
    }
    let help = velodrome(&dir, &["race", "--help"]);
    assert!(stdout(&help).contains("spdy-hosts=page|first-party|HOST,HOST…"));
}

#[test]
fn a_study_prints_both_figures_and_a_verdict_and_draws_a_page() {
    let dir = Dir::new("study");
    let study = |threads| velodrome(&dir, &["study", "flow-control", "--threads", threads, "--out", "s"]);
    let out = study("1");
    assert_eq!((out.status.code(), stderr(&out)), (Some(0), ""));
    for says in ["eproduced", "| published | ours |", "< 2000", "**To take from it.**", "s/studies.html"] {
        assert!(stdout(&out).contains(says), "{says}: {}", stdout(&out));
    }
    let page = fs::read(dir.0.join("s/studies.html")).unwrap();
    assert_eq!(stdout(&out), stdout(&study("3")));
    assert_eq!(page, fs::read(dir.0.join("s/studies.html")).unwrap());
    assert!(String::from_utf8(page).unwrap().contains("<svg"));
    let list = velodrome(&dir, &["study", "--list"]);
    assert!(stdout(&list).contains("connection-retry  "));
}

#[test]
fn what_a_client_learns_is_kept_shown_and_raced_with() {
    let dir = Dir::new("topology");
    let learn = ["topology", "corpus:2012:2", "--network", "5000/1000/100", "--state", "state.json"];
    let out = velodrome(&dir, &[&learn[..], &["--visits", "3", "--html", "out/topology.html"]].concat());
    assert_eq!((out.status.code(), stderr(&out)), (Some(0), ""));
    assert!(stdout(&out).contains(", 3 visits\n"), "{}", stdout(&out));
    let html = fs::read_to_string(dir.0.join("out/topology.html")).unwrap();
    assert!(html.contains("Last learned in the virtual world over http1 on network 5000/1000/100"));
    let shown = velodrome(&dir, &["topology", "--state", "state.json", "--json"]);
    assert!(stdout(&shown).contains("\"rounds\": 3"));
    let with = connections(&dir, "with", &["--with", "preconnect=learned", "--state", "state.json"]);
    assert!(with.contains("\"purpose\":\"speculative\""));
    let plan = fs::read_to_string(dir.0.join("with/plan.toml")).unwrap();
    assert!(plan.contains("file = \"state.json\"\nfingerprint = "), "{plan}");
    dir.write("state.json", "{}");
    let broken = velodrome(&dir, &learn);
    assert_eq!(broken.status.code(), Some(2));
    assert!(stderr(&broken).contains("state.json: is no client's memory: missing field `format`"));
    let gone = velodrome(&dir, &["topology", "--state", "none.json"]);
    assert!(stderr(&gone).contains("none.json: there is no such file, and no page to learn from"));
}
