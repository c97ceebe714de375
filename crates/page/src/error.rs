//! What can be wrong with a page's source, and where.

use std::fmt;

use crate::model::Invalid;

/// What is wrong with a recording or a corpus name: always the source's fault, never the program's.
///
/// Its `Display` is one line that names file, entry and field as far as they are known.
#[derive(Clone, PartialEq, Debug)]
pub struct Error {
    /// The file as it was named, or `corpus:NAME`.
    pub file: String,
    /// Index in `log.entries`, from 0.
    pub entry: Option<usize>,
    /// The entry's URL, cut at 120 characters.
    pub url: Option<Box<str>>,
    /// The field within the entry (`response.bodySize`), or within the file (`log.entries`).
    pub field: Option<Box<str>>,
    /// What is wrong there.
    pub fault: Fault,
}

/// What is wrong.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// The file cannot be read; the operating system's words.
    Io(String),
    /// The file does not inflate.
    Gzip(String),
    /// The file holds more bytes, inflated, than this.
    FileTooLarge(u64),
    /// The file is no JSON, or ends too early.
    Json {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What the parser found.
        what: String,
    },
    /// A value has the wrong JSON type.
    Shape(String),
    /// There is no `log` object.
    NotHar,
    /// `log.entries` is missing or empty.
    NoEntries,
    /// No entry is a completed request over HTTP.
    NothingLoaded,
    /// A page has more entries than a page may have.
    TooManyEntries {
        /// How many.
        count: usize,
        /// The bound.
        max: usize,
    },
    /// A field that nothing can stand in for is missing or empty.
    Missing,
    /// A number is expected.
    NotANumber(String),
    /// A time is below zero, and not the −1 that says "not applicable". Milliseconds.
    NegativeTime(f64),
    /// A time is beyond the bound. Milliseconds.
    LongTime {
        /// The time recorded.
        ms: f64,
        /// The bound.
        ms_max: f64,
    },
    /// A size is beyond the bound. Bytes.
    LargeSize {
        /// The size recorded.
        bytes: f64,
        /// The bound.
        bytes_max: u64,
    },
    /// A moment that is not written as ISO 8601 has it.
    NotATime(String),
    /// An HTTP URL that cannot be taken apart.
    NotAUrl(String),
    /// Entries that name one another as initiators, in a circle. Indices in `log.entries`.
    CyclicInitiator(Vec<usize>),
    /// There is no corpus of this name.
    UnknownCorpus,
    /// The page breaks an invariant.
    Invalid(Invalid),
}

impl Error {
    pub(crate) fn of_file(file: &str, fault: Fault) -> Error {
        Error { file: file.to_owned(), entry: None, url: None, field: None, fault }
    }

    pub(crate) fn of_field(file: &str, field: impl Into<Box<str>>, fault: Fault) -> Error {
        Error { field: Some(field.into()), ..Error::of_file(file, fault) }
    }
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
            Fault::Gzip(what) => write!(f, "does not inflate: {what}; compress it again"),
            Fault::FileTooLarge(max) => write!(f, "larger than {max} bytes; split it by page"),
            Fault::Json { line, column, what } => {
                write!(f, "line {line}, column {column}: {what}; the file is cut short or is no JSON")
            }
            Fault::Shape(what) => write!(f, "{what}"),
            Fault::NotHar => write!(f, "no object of this name; is it a HAR?"),
            Fault::NoEntries => write!(f, "no entries; record the page again"),
            Fault::NothingLoaded => {
                write!(f, "no completed request over HTTP: all were aborted, or have another scheme")
            }
            Fault::TooManyEntries { count, max } => write!(f, "{count} in one page: more than {max}"),
            Fault::Missing => write!(f, "missing"),
            Fault::NotANumber(what) => write!(f, "{what}: not a number"),
            Fault::NegativeTime(ms) => {
                write!(f, "{ms} ms: a time is not negative (-1 alone says \"not applicable\")")
            }
            Fault::LongTime { ms, ms_max } => write!(f, "{ms} ms: longer than {ms_max}"),
            Fault::LargeSize { bytes, bytes_max } => write!(f, "{bytes} bytes: larger than {bytes_max}"),
            Fault::NotATime(what) => write!(f, "{what}: not a time such as 2012-09-18T09:42:15.281Z"),
            Fault::NotAUrl(what) => write!(f, "{what}"),
            Fault::CyclicInitiator(entries) => {
                let entries: Vec<String> = entries.iter().map(usize::to_string).collect();
                write!(f, "entries {} name one another in a circle; remove one of these", entries.join(" → "))
            }
            Fault::UnknownCorpus => {
                write!(f, "no such corpus; there are {}", crate::corpus::NAMES.join(", "))
            }
            Fault::Invalid(invalid) => write!(f, "{invalid}"),
        }
    }
}

impl std::error::Error for Error {}
