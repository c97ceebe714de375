//! A run folder, drawn: one HTML page that needs no network.
//!
//! The page is a pure function of the folder. [`read`] takes what the page shows out of the folder's files, and no
//! more; [`Report::render`] packs that beside the front end, which `web/` builds and which is compiled in. The same
//! folder gives the same bytes.
//!
//! * `data`: what is taken. Figures over a whole run come from the run's own summary; here are only the medians of
//!   single pages, so that the pictures can be drawn. Of several loads of one page, on one network, over one
//!   transport, the page shows the request times of one: the load nearest to their median PLT.
//! * `columns`: requests and connections as columns, because a column of like numbers packs far better than rows.
//! * [`agree`]: the page about the virtual and the live world.
//! * [`studies`]: the page about published experiments.
//! * [`topology`]: the page about what a client has learned.
//! * `html`: the page around it. The data are deflated and in Base64, one block for the overview and one a recorded
//!   page, so that opening the report unpacks only what is looked at, and no text from a recording is ever HTML.

pub mod agree;
mod columns;
mod data;
mod html;
pub mod studies;
pub mod topology;

use std::fs;
use std::path::{Path, PathBuf};

pub use data::{Report, read};
/// What can be wrong with a run folder. `Display` is one line that names file and line.
pub use lab::Error;

/// The name of the page within its run folder.
pub const FILE: &str = "report.html";

/// Draws the run in `run_dir` and writes `report.html` beside its results; gives the page's path.
///
/// A page that is already there is replaced as a whole or not at all.
pub fn write(run_dir: &Path) -> Result<PathBuf, Error> {
    let html = read(run_dir)?.render();
    let path = run_dir.join(FILE);
    let part = run_dir.join("report.html.part");
    let refused = |source| Error::Io { action: "cannot write", path: path.clone(), source };
    fs::write(&part, html).and_then(|()| fs::rename(&part, &path)).map_err(refused)?;
    Ok(path)
}
