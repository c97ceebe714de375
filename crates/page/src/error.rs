//! What can be wrong with a page's source, and where.

use std::fmt;

use crate::page::Invalid;

/// What is wrong with a recording or a corpus name: always the source's fault, never the program's.
///
/// Its `Display` is one line that names file, entry and field as far as they are known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// The file as it was named, or `corpus:NAME`.
    pub file: String,
    /// Index in `log.entries`, from 0.
    pub entry: Option<usize>,
    /// The entry's URL, cut at 120 characters.
    pub url: Option<String>,
    /// The field within the entry (`response.bodySize`), or within the file (`log.entries`).
    pub field: Option<String>,
    /// What is wrong there.
    pub fault: Fault,
}

/// What is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// The file cannot be read; the operating system's words.
    Io(String),
    /// There is no corpus of this name.
    UnknownCorpus,
    /// The page breaks an invariant.
    Invalid(Invalid),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if let Some(entry) = self.entry {
            write!(f, "entry {entry}")?;
            if let Some(url) = &self.url {
                write!(f, " ({url})")?;
            }
            write!(f, ": ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        write!(f, "{}", self.fault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Io(what) => write!(f, "{what}"),
            Fault::UnknownCorpus => {
                write!(f, "no such corpus; there are {}", crate::corpus::NAMES.join(", "))
            }
            Fault::Invalid(invalid) => write!(f, "{invalid}"),
        }
    }
}

impl std::error::Error for Error {}
