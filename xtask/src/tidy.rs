//! `cargo xtask tidy`: what every file and every crate must keep to.

mod crates;
mod floors;
mod sources;
mod text;

use std::path::Path;
use std::process::Command;

pub(crate) use floors::pure_crates;

use crate::{Fault, report};

/// A file of the tree that is text.
pub(crate) struct File {
    /// Path from the root, with `/`.
    pub path: String,
    pub text: String,
}

/// Runs every check; whether all are content.
pub(crate) fn run(root: &Path) -> Result<bool, String> {
    let files = read_tree(root)?;
    let checks: [(&str, &str, Vec<Fault>); 9] = [
        ("floors", "each crate depends on lower floors only", floors::check(&files)),
        ("crates", "README, essay, lints and example in each", crates::check(&files)),
        ("entropy", "no clock, no sleep, no generator but our own", sources::bans(&files)),
        ("order", "no hash map", sources::hash_maps(&files)),
        ("rounding", "no function whose last bit is the platform's", sources::platform_maths(&files)),
        ("length", "files of at most 600 lines of code", sources::lengths(&files)),
        ("allowances", "each says its reason", sources::allowances(&files)),
        ("ignored", "each test skipped says its reason", sources::ignored(&files)),
        ("text", "no path of one machine, no registry's address", text::check(&files)),
    ];
    Ok(checks.iter().fold(true, |content, (name, rule, faults)| report(name, rule, faults) && content))
}

/// The files that are tracked or about to be, but for those that are not text.
fn read_tree(root: &Path) -> Result<Vec<File>, String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root)
        .output()
        .map_err(|e| format!("git, which lists the files to check, does not run: {e}"))?;
    if !listed.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&listed.stderr).trim()));
    }
    let paths = String::from_utf8(listed.stdout).map_err(|e| format!("a file name is not UTF-8: {e}"))?;
    let mut files = Vec::new();
    for path in paths.split_terminator('\0') {
        // What is not text, or tracked but deleted, cannot be read so.
        if let Ok(text) = std::fs::read_to_string(root.join(path)) {
            files.push(File { path: path.into(), text });
        }
    }
    Ok(files)
}

/// The crate that a file belongs to: `base` for `crates/base/src/lib.rs`.
fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split('/').next()
}

/// An exception to a rule for one file, and why.
type Exception = (&'static str, &'static str);

/// Takes the faults that `exceptions` excuse out of `faults`, and adds one for each exception that excuses nothing.
fn excuse(faults: Vec<Fault>, exceptions: &[Exception], table: &str) -> Vec<Fault> {
    let file = |f: &Fault| f.place.split(':').next().unwrap_or_default().to_string();
    let stale = exceptions
        .iter()
        .filter(|(path, _)| !faults.iter().any(|f| file(f) == *path))
        .map(|(path, _)| {
            Fault::file(path, format!("this exception is no longer needed: take it out of {table}"))
        })
        .collect::<Vec<_>>();
    let mut left: Vec<_> =
        faults.into_iter().filter(|f| !exceptions.iter().any(|(path, _)| file(f) == *path)).collect();
    left.extend(stale);
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_excuses_its_file_and_fails_when_it_excuses_nothing() {
        let faults = || vec![Fault::line("a.rs", 3, "x"), Fault::file("b.rs", "x")];
        assert_eq!(excuse(faults(), &[("a.rs", "why")], "T"), [Fault::file("b.rs", "x")]);
        let left = excuse(faults(), &[("a.rs", "why"), ("b.rs", "why"), ("c.rs", "why")], "T");
        assert!(left.len() == 1 && left[0].place == "c.rs", "{left:?}");
    }
}
