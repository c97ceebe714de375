//! What no file of the tree may mention: it would be true on one machine only.

use super::{Exception, File, excuse};
use crate::Fault;
use crate::rust::line_of;

/// Beginnings of absolute paths, behind their first `/`.
const ROOTS: &[&str] = &["work/", "home/", "root/", "Users/", "tmp/target"];

/// Hosts of package registries: which one is used is for each machine's own configuration.
const REGISTRIES: &[&str] = &[
    "index.crates.io",
    "static.crates.io",
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "files.pythonhosted.org",
    "proxy.golang.org",
];

/// Files that may.
const EXCEPTIONS: &[Exception] = &[("xtask/src/tidy/text.rs", "it says what is banned")];

pub(super) fn check(files: &[File]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for file in files {
        for path in ROOTS.iter().map(|root| format!("/{root}")) {
            // Behind a host's name or a folder's it is not absolute.
            let absolute = |at: &usize| {
                !file.text[..*at].ends_with(|c: char| c.is_alphanumeric() || "._-~}>)*".contains(c))
            };
            let found = file.text.match_indices(&path).map(|(at, _)| at).filter(absolute);
            faults.extend(found.map(|at| {
                Fault::line(
                    &file.path,
                    line_of(&file.text, at),
                    format!("`{path}` is a path of one machine: make it relative"),
                )
            }));
        }
        for host in REGISTRIES {
            faults.extend(file.text.match_indices(host).map(|(at, _)| {
                Fault::line(
                    &file.path,
                    line_of(&file.text, at),
                    format!("`{host}` ties the tree to a registry: leave it out"),
                )
            }));
        }
    }
    excuse(faults, EXCEPTIONS, "EXCEPTIONS of xtask")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_and_registries_are_found_with_their_line() {
        let own = File { path: "xtask/src/tidy/text.rs".into(), text: REGISTRIES[0].into() };
        let [root, registry] = [ROOTS[0], REGISTRIES[2]];
        let text = format!("a\n(/{root}b)\nhttp://example.com/{root}b\nsrc/{root}b\nhttps://{registry}/x\n");
        let file = File { path: "README.md".into(), text };
        let places: Vec<_> = check(&[own, file]).into_iter().map(|f| f.place).collect();
        assert_eq!(places, ["README.md:2", "README.md:5"]);
    }
}
