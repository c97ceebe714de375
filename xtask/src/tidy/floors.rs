//! The floors: a crate depends on lower floors only.

use toml::Table;

use super::{File, crate_of};
use crate::Fault;

/// Every crate and its floor, as in ARCHITECTURE.md.
pub(crate) const FLOORS: &[(&str, u8)] = &[
    ("base", 0),
    ("link", 1),
    ("page", 1),
    ("mux", 1),
    ("spdy", 2),
    ("http1", 2),
    ("http2", 2),
    ("http3", 2),
    ("tcp", 2),
    ("tls", 2),
    ("client", 3),
    ("origin", 3),
    ("browser", 4),
    ("load", 5),
    ("sim", 6),
    ("live", 6),
    ("lab", 7),
    ("report", 8),
    ("cli", 9),
];

/// Arrows that only tests draw and that do not lead down: from, to, why.
const TEST_ARROWS: &[(&str, &str, &str)] =
    &[("tls", "tcp", "flights are checked against the window of the TCP that carries them")];

/// Crates that may draw from the operating system's entropy or any generator but `base::Rng`.
const WORLDLY: &[&str] = &["live", "cli"];

/// Dependencies that draw entropy.
const ENTROPY: &[&str] =
    &["rand", "rand_core", "getrandom", "fastrand", "oorandom", "nanorand", "uuid", "ahash"];

/// The crates that a virtual page load is made of: the floors up to `sim`, less the real world.
pub(crate) fn pure_crates() -> impl Iterator<Item = &'static str> {
    FLOORS.iter().filter(|(name, floor)| *floor <= 6 && *name != "live").map(|(name, _)| *name)
}

fn floor(name: &str) -> Option<u8> {
    FLOORS.iter().find(|(n, _)| *n == name).map(|(_, floor)| *floor)
}

pub(super) fn check(files: &[File]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut used = vec![false; TEST_ARROWS.len()];
    for file in files.iter().filter(|f| f.path.ends_with("/Cargo.toml")) {
        let Some(name) = crate_of(&file.path).filter(|c| file.path == format!("crates/{c}/Cargo.toml"))
        else {
            continue;
        };
        let Some(own) = floor(name) else {
            faults.push(Fault::file(
                &file.path,
                "this crate has no floor: give it one in FLOORS of xtask and in ARCHITECTURE.md",
            ));
            continue;
        };
        for (dependency, for_tests) in dependencies(file, &mut faults) {
            let line = 1 + file.text.lines().position(|l| l.starts_with(dependency.as_str())).unwrap_or(0);
            if ENTROPY.contains(&dependency.as_str()) && !for_tests && !WORLDLY.contains(&name) {
                faults.push(Fault::line(
                    &file.path,
                    line,
                    format!("{dependency} draws entropy: take a base::Rng as an argument"),
                ));
            }
            let Some(target) = dependency.strip_prefix("velodrome-") else { continue };
            if floor(target).is_some_and(|floor| floor < own) {
                continue;
            }
            let arrow =
                TEST_ARROWS.iter().position(|(from, to, _)| for_tests && (*from, *to) == (name, target));
            match arrow {
                Some(i) => used[i] = true,
                None => faults.push(Fault::line(
                    &file.path,
                    line,
                    format!("{name} (floor {own}) may not depend on {target}: move what both need to a lower floor"),
                )),
            }
        }
    }
    for ((from, to, _), _) in TEST_ARROWS.iter().zip(used).filter(|(_, used)| !used) {
        let place = format!("crates/{from}/Cargo.toml");
        faults.push(Fault::file(
            &place,
            format!("no test needs {to} any more: take the arrow out of TEST_ARROWS of xtask"),
        ));
    }
    faults
}

/// Names of all dependencies in a manifest, and whether only tests see them.
fn dependencies(file: &File, faults: &mut Vec<Fault>) -> Vec<(String, bool)> {
    let manifest: Table = match file.text.parse() {
        Ok(manifest) => manifest,
        Err(e) => {
            faults.push(Fault::file(&file.path, e.to_string()));
            return Vec::new();
        }
    };
    let per_target = manifest.get("target").and_then(|t| t.as_table()).into_iter().flatten();
    let tables = std::iter::once(&manifest).chain(per_target.filter_map(|(_, t)| t.as_table()));
    let mut out = Vec::new();
    for table in tables {
        for (kind, for_tests) in
            [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)]
        {
            let entries = table.get(kind).and_then(|d| d.as_table()).into_iter().flatten();
            // A renamed dependency is known by its package.
            let name = |(key, value): (&String, &toml::Value)| {
                value.get("package").and_then(|p| p.as_str()).unwrap_or(key).to_string()
            };
            out.extend(entries.map(|entry| (name(entry), for_tests)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(name: &str, manifest: &str) -> Vec<String> {
        let tls = File {
            path: "crates/tls/Cargo.toml".into(),
            text: "[dev-dependencies]\nvelodrome-tcp.workspace = true".into(),
        };
        let file = File { path: format!("crates/{name}/Cargo.toml"), text: manifest.into() };
        check(&[tls, file]).into_iter().map(|f| f.place).collect()
    }

    #[test]
    fn arrows_lead_down() {
        assert!(
            faults("spdy", "[dependencies]\nvelodrome-base.workspace = true\nvelodrome-mux = {}").is_empty()
        );
        let same = "[dependencies]\nvelodrome-base.workspace = true\nvelodrome-spdy.workspace = true";
        assert_eq!(faults("http1", same), ["crates/http1/Cargo.toml:3"]);
        assert_eq!(faults("mux", "[dev-dependencies]\nvelodrome-spdy = {}"), ["crates/mux/Cargo.toml:2"]);
        assert_eq!(faults("mux", "[build-dependencies]\nvelodrome-cli = {}"), ["crates/mux/Cargo.toml:2"]);
        assert_eq!(
            faults("mux", "[target.'cfg(unix)'.dependencies]\nx = { package = \"velodrome-cli\" }").len(),
            1
        );
        assert_eq!(faults("client", "[dependencies]\nvelodrome-origin = {}").len(), 1);
    }

    #[test]
    fn a_crate_without_a_floor_and_a_stale_arrow_are_faults() {
        assert_eq!(faults("attic", ""), ["crates/attic/Cargo.toml"]);
        assert_eq!(check(&[]).len(), TEST_ARROWS.len());
    }

    #[test]
    fn entropy_is_for_live_and_cli() {
        assert_eq!(faults("sim", "[dependencies]\nrand = \"1\""), ["crates/sim/Cargo.toml:2"]);
        assert!(faults("cli", "[dependencies]\nrand = \"1\"").is_empty());
    }
}
