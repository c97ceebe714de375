//! What every crate must have.

use super::File;
use super::floors::FLOORS;
use crate::Fault;

pub(super) fn check(files: &[File]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (name, _) in FLOORS {
        let folder = format!("crates/{name}/");
        let own: Vec<_> = files.iter().filter(|f| f.path.starts_with(&folder)).collect();
        let find = |path: &str| own.iter().find(|f| f.path[folder.len()..] == *path);
        let Some(manifest) = find("Cargo.toml") else { continue };
        let mut must = |holds: bool, path: &str, what: &str| {
            if !holds {
                faults.push(Fault::file(&format!("{folder}{path}"), what));
            }
        };
        must(
            find("README.md").is_some(),
            "README.md",
            "missing: say what the crate is, with an example and its limits",
        );
        let root = find("src/lib.rs").or(find("src/main.rs"));
        let essay = root.map_or(0, |f| f.text.lines().take_while(|l| l.starts_with("//!")).count());
        must(
            essay >= 3,
            "src/lib.rs",
            "the essay at the top has fewer than 3 lines: say what this is and what to read first",
        );
        let lints = manifest.text.contains("[lints]\nworkspace = true");
        must(lints, "Cargo.toml", "add `[lints]` with `workspace = true`");
        let example =
            own.iter().any(|f| f.path[folder.len()..].starts_with("examples/") && f.path.ends_with(".rs"));
        must(example || *name == "cli", "examples/", "missing: add an example that runs");
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_missing_is_named() {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        let mut files =
            vec![file("crates/base/Cargo.toml", ""), file("crates/base/src/lib.rs", "//! a\n//! b\n")];
        let places: Vec<_> = check(&files).into_iter().map(|f| f.place).collect();
        assert_eq!(
            places,
            [
                "crates/base/README.md",
                "crates/base/src/lib.rs",
                "crates/base/Cargo.toml",
                "crates/base/examples/"
            ]
        );
        files = vec![
            file("crates/base/Cargo.toml", "[lints]\nworkspace = true\n"),
            file("crates/base/src/lib.rs", "//! a\n//!\n//! b\n"),
            file("crates/base/README.md", "# base"),
            file("crates/base/examples/a.rs", ""),
        ];
        assert!(check(&files).is_empty());
    }
}
