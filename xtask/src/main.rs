//! The project's own checks: `cargo xtask tidy` and `cargo xtask wasm`.
//!
//! What Clippy cannot see is checked here, over the files of the tree: the floors, the bans, what every crate must
//! have. Each check prints one line; a fault names file and line and says what to do. An exception stands in a
//! table with its reason, and fails once it is no longer needed.

mod rust;
mod tidy;
mod wasm;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// One thing that is wrong, and what to do about it.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    /// Path in the tree, and the line if there is one.
    place: String,
    what: String,
}

impl Fault {
    fn file(path: &str, what: impl Into<String>) -> Self {
        Self { place: path.into(), what: what.into() }
    }

    fn line(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { place: format!("{path}:{line}"), what: what.into() }
    }
}

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf);
    let result = match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy::run(&root),
        Some("wasm") => wasm::run(&root),
        _ => {
            eprintln!("cargo xtask tidy    floors, bans, what every crate must have");
            eprintln!("cargo xtask wasm    the lower floors build for bare WebAssembly and import nothing");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("xtask: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a check's line and its faults; whether there are none.
pub(crate) fn report(check: &str, rule: &str, faults: &[Fault]) -> bool {
    match faults.len() {
        0 => println!("{check:<12} ok: {rule}"),
        1 => println!("{check:<12} 1 fault: {rule}"),
        n => println!("{check:<12} {n} faults: {rule}"),
    }
    for fault in faults {
        println!("  {}: {}", fault.place, fault.what);
    }
    faults.is_empty()
}
