//! What Rust sources must not contain, and how long they may be.

use super::{Exception, File, crate_of, excuse};
use crate::Fault;
use crate::rust::{attributes, blank, has_word, lines_with, without_tests};

/// Lines of code that a file may have; blank lines, comments and tests do not count.
const LINES_MAX: usize = 600;

/// Files that may be longer.
const LONG: &[Exception] = &[];

/// Crates that read clocks: floor 5's real world, and the program.
const WORLDLY: &[&str] = &["live", "cli"];

/// Rust files of crates and of this program.
fn rust(files: &[File]) -> impl Iterator<Item = &File> {
    files.iter().filter(|f| f.path.ends_with(".rs"))
}

/// Of them, what is compiled into a crate, with its crate's name.
fn sources(files: &[File]) -> impl Iterator<Item = (&str, &File)> {
    rust(files)
        .filter_map(|f| crate_of(&f.path).map(|name| (name, f)))
        .filter(|(_, f)| f.path.contains("/src/"))
}

/// No clock and no sleep outside `live` and `cli`, in tests neither.
pub(super) fn bans(files: &[File]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for file in rust(files).filter(|f| crate_of(&f.path).is_some_and(|name| !WORLDLY.contains(&name))) {
        let code = blank(&file.text);
        for (what, remedy) in [
            ("Instant::now", "time is an argument: take a base::Instant"),
            ("SystemTime::now", "time is an argument: take a base::Instant"),
            ("thread::sleep", "nothing sleeps: move virtual time"),
        ] {
            faults.extend(
                lines_with(&code, what).into_iter().map(|line| Fault::line(&file.path, line, remedy)),
            );
        }
    }
    faults
}

/// No map whose order is drawn from entropy.
pub(super) fn hash_maps(files: &[File]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (_, file) in sources(files) {
        let code = blank(&file.text);
        for what in ["HashMap", "HashSet", "RandomState"] {
            let remedy =
                format!("{what} iterates in an order drawn from entropy: use a BTreeMap or an index");
            faults.extend(
                lines_with(&code, what).into_iter().map(|line| Fault::line(&file.path, line, &remedy)),
            );
        }
    }
    faults
}

/// No function of the platform's mathematics library: its last bit differs from one to the next, and so would results.
pub(super) fn platform_maths(files: &[File]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (_, file) in sources(files) {
        let code = blank(&file.text);
        for what in ["ln()", "log10()", "log2()", "exp()", "powf(", "cbrt()", "sin()", "cos()", "tanh()"] {
            let remedy = format!("{what} rounds as the platform likes: use the function of the `libm` crate");
            faults.extend(
                lines_with(&code, what).into_iter().map(|line| Fault::line(&file.path, line, &remedy)),
            );
        }
    }
    faults
}

pub(super) fn lengths(files: &[File]) -> Vec<Fault> {
    let is_test = |path: &str| path.ends_with("/tests.rs") || path.contains("/tests/");
    let mut faults = Vec::new();
    for file in rust(files).filter(|f| f.path.contains("src/") && !is_test(&f.path)) {
        let lines = without_tests(&blank(&file.text)).lines().filter(|l| !l.trim().is_empty()).count();
        if lines > LINES_MAX {
            faults.push(Fault::file(
                &file.path,
                format!("{lines} lines of code: split it by what it is about"),
            ));
        }
    }
    excuse(faults, LONG, "LONG of xtask")
}

pub(super) fn allowances(files: &[File]) -> Vec<Fault> {
    attributes_that(files, |content| {
        let allows = ["allow", "expect"].iter().any(|word| has_word(content, word) && content.contains('('));
        (allows && !has_word(content, "reason"))
            .then_some("an allowance without `reason = \"…\"`: say why, or mend it")
    })
}

pub(super) fn ignored(files: &[File]) -> Vec<Fault> {
    attributes_that(files, |content| {
        (has_word(content, "ignore") && !content.contains('='))
            .then_some("a test skipped without `#[ignore = \"…\"]`: say why, or mend it")
    })
}

fn attributes_that(files: &[File], fault: impl Fn(&str) -> Option<&'static str>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for file in rust(files) {
        let code = blank(&file.text);
        let found = attributes(&code).into_iter().filter_map(|(line, content)| Some((line, fault(content)?)));
        faults.extend(found.map(|(line, what)| Fault::line(&file.path, line, what)));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(check: fn(&[File]) -> Vec<Fault>, path: &str, text: &str) -> Vec<String> {
        check(&[File { path: path.into(), text: text.into() }]).into_iter().map(|f| f.place).collect()
    }

    #[test]
    fn clocks_are_found_in_code_and_only_there() {
        let code = "// Instant::now\nlet s = \"Instant::now\";\nlet t = std::time::Instant::now();\n";
        assert_eq!(places(bans, "crates/sim/src/a.rs", code), ["crates/sim/src/a.rs:3"]);
        assert_eq!(places(bans, "crates/sim/tests/a.rs", "thread::sleep(x)"), ["crates/sim/tests/a.rs:1"]);
        assert!(places(bans, "crates/cli/src/a.rs", code).is_empty());
    }

    #[test]
    fn hash_maps_are_found() {
        assert_eq!(
            places(hash_maps, "crates/cli/src/a.rs", "\nuse std::HashMap;"),
            ["crates/cli/src/a.rs:2"]
        );
        assert!(places(hash_maps, "crates/cli/src/a.rs", "BTreeMap // HashMap").is_empty());
    }

    #[test]
    fn functions_that_round_as_the_platform_likes_are_found() {
        let path = "crates/lab/src/a.rs";
        assert_eq!(places(platform_maths, path, "x.sqrt();\ny.ln();"), ["crates/lab/src/a.rs:2"]);
        assert!(places(platform_maths, path, "libm::log(y) // y.ln()").is_empty());
    }

    #[test]
    fn only_code_counts_towards_a_files_length() {
        let full = "a();\n".repeat(LINES_MAX);
        let padding = "// b\n\n/* c\nd */\n#[cfg(test)]\nmod tests {\n    e();\n}\n";
        assert!(places(lengths, "crates/a/src/b.rs", &format!("{full}{padding}")).is_empty());
        assert_eq!(places(lengths, "crates/a/src/b.rs", &format!("{full}f();")), ["crates/a/src/b.rs"]);
        assert!(places(lengths, "crates/a/src/b/tests.rs", &format!("{full}f();")).is_empty());
    }

    #[test]
    fn exceptions_in_code_carry_a_reason() {
        let text = "#[allow(x)]\n#[allow(x, reason = \"y\")]\n#[cfg_attr(z, expect(x))]\nv.expect(w);\n#![expect(x)]\n";
        let path = "crates/a/src/b.rs";
        assert_eq!(
            places(allowances, path, text),
            ["crates/a/src/b.rs:1", "crates/a/src/b.rs:3", "crates/a/src/b.rs:5"]
        );
        assert_eq!(
            places(ignored, path, "#[ignore]\n#[ignore = \"y\"]\n#[cfg_attr(miri, ignore)]"),
            ["crates/a/src/b.rs:1", "crates/a/src/b.rs:3"]
        );
    }
}
