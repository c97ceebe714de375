//! What can go wrong around a run, each said in one line.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::result::Key;

/// What went wrong. Its `Display` is one line that names the file, the line or the field.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    Io {
        /// What was tried: "cannot read".
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A row of a result file is not one. The file's fault.
    Row {
        /// The file.
        file: PathBuf,
        /// From 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// A plan is not one. The fault of whoever wrote it.
    Plan {
        /// The plan's file, or "plan" for one that was never written.
        file: String,
        /// From 1.
        line: Option<usize>,
        /// What is wrong.
        what: String,
    },
    /// The caller asked for something that there is not: a network, a transport, a setting.
    Asked(String),
    /// The folder holds something else than the caller thinks.
    Folder {
        /// The folder.
        dir: PathBuf,
        /// What it holds, and what to do.
        what: String,
    },
    /// The machine does not let a load be made in the live world: why, and what helps.
    Live(String),
    /// A load panicked: an invariant of our own does not hold, which is our fault.
    Invariant(Key),
}

impl Error {
    /// An error of the operating system.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Error::Io { action, path: path.to_owned(), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { action, path, source } => write!(f, "{action} {}: {source}", path.display()),
            Error::Row { file, line, what } => write!(f, "{}:{line}: {what}", file.display()),
            Error::Plan { file, line: Some(line), what } => write!(f, "{file}:{line}: {what}"),
            Error::Plan { file, line: None, what } => write!(f, "{file}: {what}"),
            Error::Asked(what) | Error::Live(what) => f.write_str(what),
            Error::Folder { dir, what } => write!(f, "{}: {what}", dir.display()),
            Error::Invariant(Key { page, network, transport, run }) => write!(
                f,
                "{page}: its load over {transport} on {network}, run {run}, broke one of our own invariants; \
                 please report it with the page and the plan"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
