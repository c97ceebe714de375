//! What the README says, held to the code.

use spdy::{Config, Limits, Version};

const README: &str = include_str!("../README.md");

/// The rows of the table beneath a heading, as cells.
fn table(heading: &str) -> Vec<Vec<&'static str>> {
    let at = README.find(heading).expect("the heading is there");
    let rows = README[at..].lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    rows.take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

/// The names of the tests in a file.
fn tests(source: &'static str) -> Vec<&'static str> {
    let is_test = |lines: &[&'static str]| lines[0] == "#[test]";
    let lines: Vec<&str> = source.lines().collect();
    let names = lines.windows(2).filter(|w| is_test(w)).map(|w| w[1].trim_start_matches("fn "));
    names.map(|name| name.split('(').next().unwrap_or_default()).collect()
}

#[test]
fn every_hard_bug_in_the_table_has_its_test_and_every_test_its_bug() {
    let hard = tests(include_str!("hard_bugs.rs"));
    let crime = tests(include_str!("crime.rs"));
    let rows = table("## Bugs that others had");
    let mut named: Vec<&str> = rows.iter().map(|row| row[1].trim_matches('`')).collect();
    for (row, name) in rows.iter().zip(&named) {
        let tests = if row[0].contains("tests/crime.rs") { &crime } else { &hard };
        assert!(tests.contains(name), "no test is called {name}");
    }
    for name in &hard {
        assert!(named.contains(name), "{name} is not in the table");
    }
    named.sort_unstable();
    named.dedup();
    assert_eq!(named.len(), rows.len(), "a test is in the table twice");
    assert!(hard.len() >= 20);
}

/// `1 MiB`, `256`.
fn written(n: u64) -> String {
    match n {
        n if n >= 1 << 20 && n.is_multiple_of(1 << 20) => format!("{} MiB", n >> 20),
        n if n >= 1 << 14 && n.is_multiple_of(1 << 10) => format!("{} KiB", n >> 10),
        n => n.to_string(),
    }
}

#[test]
fn every_limit_is_in_the_table_with_its_default() {
    let config = Config::new(Version::V3_1);
    // `Limits { name: 1, other: 2 }`
    let text = format!("{:?}", Limits::default());
    let fields = text.trim_start_matches("Limits {").trim_end_matches('}').split(',');
    let mut stated: Vec<(String, u64)> = fields
        .map(|field| field.split_once(':').expect("a name and a value"))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().parse().expect("a number")))
        .collect();
    assert!(stated.len() >= 9);
    stated.push(("Config::max_concurrent_streams".to_owned(), config.max_concurrent_streams.into()));
    stated.push(("Config::stream_window".to_owned(), config.stream_window.size.into()));
    stated.push(("Config::session_window".to_owned(), config.session_window.size.into()));
    let rows = table("## What a peer can make it hold");
    for (name, default) in stated {
        let row = rows.iter().find(|row| row[0].starts_with(&format!("`{name}`")));
        let row = row.unwrap_or_else(|| panic!("{name} is not in the table"));
        assert_eq!(row[1], written(default), "{name}");
    }
}
