//! HAR 1.2 in and out.

mod cause;
mod clock;
mod compute;
mod entry;
mod initiator;
mod kind;
mod notes;
mod offset;
mod record;
mod size;
mod url;
mod write;

mod assemble;

#[cfg(test)]
mod tests;

pub use write::{Measured, Timing, write};

use std::io::Read;
use std::path::Path;

use crate::error::{Error, Fault};
use crate::model::Page;

/// The most bytes that a file may hold once inflated.
const FILE_BYTES_MAX: u64 = 512 << 20;
/// The most entries that a page may have. The largest pages crawled have some thousand requests.
const ENTRIES_MAX: usize = 10_000;

/// Reads the pages of a `.har` or `.har.gz` file.
pub fn read(path: &Path) -> Result<Vec<Page>, Error> {
    let name = path.display().to_string();
    let io = |e: std::io::Error| Error::of_file(&name, Fault::Io(e.to_string()));
    let file = std::fs::File::open(path).map_err(io)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(io)?;
    parse(&bytes, &name)
}

/// Reads the pages of a HAR; `name` stands for the file in pages and errors.
pub fn parse(bytes: &[u8], name: &str) -> Result<Vec<Page>, Error> {
    let too_large = || Error::of_file(name, Fault::FileTooLarge(FILE_BYTES_MAX));
    let inflated;
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut out = Vec::new();
        let gzip = flate2::read::MultiGzDecoder::new(bytes);
        gzip.take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut out)
            .map_err(|e| Error::of_file(name, Fault::Gzip(e.to_string())))?;
        inflated = out;
        &inflated
    } else {
        bytes
    };
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(too_large());
    }
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let file: record::File = serde_json::from_slice(bytes).map_err(|e| explain(bytes, &e, name))?;
    let log = file.log.ok_or_else(|| Error::of_field(name, "log", Fault::NotHar))?;
    assemble::pages(log, name)
}

/// What serde says, and the field at which it says it: `log.entries[12].request` becomes entry 12, `request`.
fn explain(bytes: &[u8], error: &serde_json::Error, name: &str) -> Error {
    use serde_json::error::Category;
    let what = error.to_string();
    let what = what.split(" at line ").next().unwrap_or(&what).to_owned();
    if error.classify() != Category::Data {
        return Error::of_file(name, Fault::Json { line: error.line(), column: error.column(), what });
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let path = match serde_path_to_error::deserialize::<_, record::File>(&mut json) {
        Err(e) => e.path().to_string(),
        Ok(_) => String::new(),
    };
    let what = format!("{what} (line {}, column {})", error.line(), error.column());
    let in_entry = path.strip_prefix("log.entries[").and_then(|rest| rest.split_once(']'));
    match in_entry.and_then(|(index, field)| Some((index.parse().ok()?, field.trim_start_matches('.')))) {
        Some((entry, field)) => {
            let mut error = Error::of_file(name, Fault::Shape(what));
            error.entry = Some(entry);
            error.field = Some(field).filter(|f| !f.is_empty()).map(Into::into);
            error
        }
        None => Error {
            field: Some(path).filter(|p| p.len() > 1).map(Into::into),
            ..Error::of_file(name, Fault::Shape(what))
        },
    }
}

/// The first `max` characters, with an ellipsis if there are more, and nothing that breaks a line.
fn shortened(text: &str, max: usize) -> String {
    let mut out: String =
        text.chars().take(max).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(max).is_some() {
        out.push('…');
    }
    out
}
