//! Generated pages.

use crate::error::{Error, Fault};
use crate::page::Page;

/// The corpora there are.
pub const NAMES: [&str; 3] = ["2012", "today", "bench"];

/// The first `count` pages of the corpus `name`. Page n depends on the seed and n alone.
pub fn generate(name: &str, count: usize, seed: u64) -> Result<Vec<Page>, Error> {
    let _ = (count, seed);
    if !NAMES.contains(&name) {
        return Err(Error {
            file: format!("corpus:{name}"),
            entry: None,
            url: None,
            field: None,
            fault: Fault::UnknownCorpus,
        });
    }
    Ok(Vec::new())
}
