//! `cargo xtask wasm`: the lower floors need nothing from outside.
//!
//! They build for a target without an operating system, and a module that loads whole pages (`xtask/purity`) has no
//! imports. The format is WebAssembly's, Core Specification §5.5: a preamble of eight bytes, then sections, each an id,
//! a length and contents; numbers are LEB128.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tidy::pure_crates;
use crate::{Fault, report};

const TARGET: &str = "wasm32-unknown-unknown";

/// What the module must export, or its lack of imports would show nothing.
const EXPORT: &str = "plt_us";

/// Builds and looks; whether the floors are pure, or the target is absent and this is not CI.
pub(crate) fn run(root: &Path) -> Result<bool, String> {
    if !has_target()? {
        let what = format!("the target is absent: `rustup target add {TARGET}`");
        if std::env::var_os("CI").is_some() {
            return Ok(report("wasm", TARGET, &[Fault::file(TARGET, what)]));
        }
        println!("{:<12} skipped: {what}", "wasm");
        return Ok(true);
    }
    let crates: Vec<_> =
        pure_crates().filter(|name| root.join("crates").join(name).join("Cargo.toml").exists()).collect();
    let target_dir = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).args([
        "build",
        "--quiet",
        "--locked",
        "--target",
        TARGET,
        "--package",
        "velodrome-purity",
    ]);
    cargo.arg("--target-dir").arg(&target_dir);
    for name in &crates {
        cargo.args(["--package", &format!("velodrome-{name}")]);
    }
    if !cargo.status().map_err(|e| format!("cargo does not run: {e}"))?.success() {
        let what = "a crate of the lower floors does not build for it, see above";
        return Ok(report("wasm", &crates.join(" "), &[Fault::file(TARGET, what)]));
    }
    report("wasm", &format!("{} build for {TARGET}", crates.join(" ")), &[]);

    let module = target_dir.join(TARGET).join("debug/purity.wasm");
    let bytes = std::fs::read(&module).map_err(|e| format!("{}: {e}", module.display()))?;
    let names = names(&bytes).ok_or_else(|| format!("{}: not a WebAssembly module", module.display()))?;
    Ok(report("purity", "a module that loads whole pages imports nothing", &faults(&names)))
}

fn has_target() -> Result<bool, String> {
    let libdir = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    let libdir = libdir.map_err(|e| format!("rustc does not run: {e}"))?;
    Ok(libdir.status.success() && Path::new(String::from_utf8_lossy(&libdir.stdout).trim()).exists())
}

fn faults(names: &Names) -> Vec<Fault> {
    let mut faults = Vec::new();
    if names.imports > 0 {
        let (n, first) = (names.imports, &names.first_import);
        let what = format!(
            "{n} imports, the first is `{first}`: a crate below reaches for what its caller should give it"
        );
        faults.push(Fault::file("xtask/purity", what));
    }
    if !names.exports.iter().any(|e| e == EXPORT) {
        faults.push(Fault::file(
            "xtask/purity",
            format!("`{EXPORT}` is not exported, so that nothing is proven"),
        ));
    }
    faults
}

/// What a module needs and gives.
#[derive(Default, PartialEq, Eq, Debug)]
struct Names {
    imports: u32,
    /// As `module.name`.
    first_import: String,
    exports: Vec<String>,
}

/// Reads the import (2) and export (7) sections; `None` if this is no module.
fn names(module: &[u8]) -> Option<Names> {
    let mut rest = module.strip_prefix(b"\0asm\x01\0\0\0")?;
    let mut out = Names::default();
    while let Some((id, after)) = rest.split_first() {
        rest = after;
        let len = number(&mut rest)? as usize;
        let mut section;
        (section, rest) = rest.split_at_checked(len)?;
        match id {
            2 => {
                out.imports = number(&mut section)?;
                if out.imports > 0 {
                    out.first_import = format!("{}.{}", name(&mut section)?, name(&mut section)?);
                }
            }
            7 => {
                for _ in 0..number(&mut section)? {
                    out.exports.push(name(&mut section)?);
                    section = section.get(1..)?; // what kind of thing it is
                    number(&mut section)?;
                }
            }
            _ => {}
        }
    }
    Some(out)
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(value).ok();
        }
    }
    None
}

fn name(bytes: &mut &[u8]) -> Option<String> {
    let len = number(bytes)? as usize;
    let (name, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    String::from_utf8(name.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREAMBLE: &[u8] = b"\0asm\x01\0\0\0";
    /// `(import "env" "now" (func (type 0)))` and `(export "plt_us" (func 0))`, after a custom section.
    const CUSTOM: &[u8] = b"\x00\x03\x01xy";
    const IMPORT: &[u8] = b"\x02\x0b\x01\x03env\x03now\x00\x00";
    const EXPORTED: &[u8] = b"\x07\x0a\x01\x06plt_us\x00\x00";

    #[test]
    fn imports_and_exports_are_read() {
        let both = names(&[PREAMBLE, CUSTOM, IMPORT, EXPORTED].concat()).unwrap();
        assert_eq!((both.imports, both.first_import.as_str()), (1, "env.now"));
        assert_eq!((both.exports.as_slice(), faults(&both).len()), (["plt_us".to_string()].as_slice(), 1));
        assert!(faults(&names(&[PREAMBLE, EXPORTED].concat()).unwrap()).is_empty());
        assert_eq!(faults(&names(PREAMBLE).unwrap()).len(), 1, "without the export nothing is proven");
    }

    #[test]
    fn a_module_cut_short_is_no_module() {
        let whole = [PREAMBLE, IMPORT, EXPORTED].concat();
        let ends = [8, 8 + IMPORT.len(), whole.len()];
        for n in 0..=whole.len() {
            assert_eq!(names(&whole[..n]).is_some(), ends.contains(&n), "{n} bytes");
        }
    }
}
