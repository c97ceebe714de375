//! HAR 1.2 in and out.
//!
//! Specification: "HTTP Archive (HAR) format", <https://w3c.github.io/web-performance/specs/HAR/Overview.html>; 1.1 is
//! read as well. Recorders differ from it and from one another: WebInspector (Safari and Chrome of 2012 until Chrome's
//! export of today), chrome-har and Browsertime, Firefox, WebPageTest. A field may be missing, null, −1, a string. What
//! a recording does not say is assumed, and every assumption is counted in [`Page::assumptions`]. What cannot be true
//! is an [`Error`] that names entry and field: a time below zero that is not −1, a size above 2³¹ − 1, initiators
//! that name one another in a circle.
//!
//! A HAR that [`write()`] wrote is read back exactly; nothing of what follows applies to it.
//!
//! # What belongs to a page
//! An entry belongs to the page that its `pageref` names; else to the page that was the last to start before it. Left
//! out are other schemes (`data:`, `about:`, `blob:`, `ws:`), requests without a response, and what was asked for
//! before the page's document, which the page before did. The root is the first request for a document, or for what
//! redirects to one.
//!
//! # A cold load
//! Every page is taken as a first visit. Conditional fields are removed, a 304 becomes a 200. Pseudo-fields, `Host`, a
//! request's `Content-Length` and all that a connection owns (RFC 9110 §7.6.1) are removed; the engines write them.
//! A body's size is `Content-Length` wherever that fits what was seen, as `bodySize` counts heads, records or decoded
//! bytes in some recorders and is 0 or −1 for what a cache answered; else `bodySize`; else the size of the same URL
//! elsewhere in the file; else `_transferSize` less the head; else `content.size` less `content.compression`; else
//! `content.size`, which is too large if a content coding is recorded.
//!
//! # When a request was asked for
//! Not when it was sent: in between it queues for connections, which is what another transport changes. chrome-har's
//! `_queued` is taken off its start. WebInspector stamps the end of the queue, but writes entries in the order of
//! asking: each was asked for no later than any after it. WebPageTest's `_created` says it; older ones stamp the
//! sending, from which the look-up and the handshake that led up to it are taken off.
//!
//! # Dependencies
//! For each resource the first rule that finds something. One assumption says how many each rule decided.
//!
//! 1. *Redirection*: an earlier response redirected (`Location`, else `redirectURL`) to this URL.
//! 2. *Recorded initiator* (`_initiator`, in its three forms, or the innermost frame of `_initiator_detail` that has a
//!    URL): the latest document, style sheet or script of that URL that was asked for before. Is it a document, the
//!    cause is its parser; else its completion. A place of line 1, column 0 says that a script made the element.
//! 3. *`Referer`* of a style sheet, script or frame: its completion, or the frame's parser. Of the page itself it says
//!    nothing, as scripts' requests have it too; a bare origin stands for the latest document from there.
//! 4. *Type and timing*, in the page's document. Style sheets and scripts: the parser, if asked for within 100 ms of
//!    the document's end and the parser's start, as the preload scanner finds what markup names by then; else the
//!    last style sheet or script that was usable before. Images, frames, media: the parser until `DOMContentLoaded`
//!    (without one: until 100 ms after all that the parser waits for); then the last script or style sheet. Fonts: the
//!    last style sheet. Data: the last script.
//!
//! A parser does not ask after its end. What an initiator says it did (rule 2, over 50 ms late) was inserted by a
//! script or loaded lazily: the cause is the last script or style sheet that was usable before. What was asked for
//! after `onload`, by something that was usable before it, is caused by `onload`.
//!
//! A script is taken to block the parser, unless the recorded markup says `async` or `defer`; unless Chrome says that
//! it blocks nothing (`_renderBlocking`) or asked for it at priority Low or less, which it does for those two alone,
//! and which are then both taken as `async`; or unless a script inserted it.
//!
//! *Place in the document*: found in the body if that was recorded whole; else the initiator's line over the highest
//! line that a child names; else the children are spread evenly, in the order of asking. Never beyond what had
//! arrived when the child was asked for.
//!
//! # Computation
//! A script is *ready* when it is there and, if it blocks the parser, when the scripts before it and the style sheets
//! on their way are there too. One thread runs all scripts in the order in which they are ready. From then until
//! the first thing that it asks for, a script computes, if that is within 50 ms or 1 µs a decoded byte: the network
//! does not explain the gap. A later request waited for something else, such as a timer: it keeps its distance from
//! the script as the delay of its [`Cause::Completion`](crate::Cause). A script that asks for nothing, or late,
//! computes 50 ns a decoded byte (150 before 2014); style sheets 20 (50), frames 100 (200): guesses at a desktop.
//! The last script that blocked the parser computes until `DOMContentLoaded`, within the same bound. The main
//! document's parsing is the parser's late start, plus what was left at `DOMContentLoaded` after the last style sheet
//! or script before it. [`Page::tail`] is what was left at `onload` after the last resource that it
//! waited for. If the recorder does not tell the queue and the connection was busy until just before, the delay is
//! unknown and taken as none.
//!
//! *Think time* is the time to first byte less a round trip. That is the smallest connect time of the host in the file
//! (less TLS; half if that was not measured apart), but no more than the lower quartile of its times to first byte.
//! Connect times below 5 ms are doubted unless the look-up or TLS was measured with them, or answers came within
//! 10 ms: they are what was left of a handshake that began earlier. Without one, it is the smaller of that quartile
//! and the other hosts' median. What a cache answered thinks as the same URL elsewhere in the file, else not at all.
//!
//! # What is crude
//! Only one parent: a request that waited for two things keeps the later one's time as a delay. With no initiators,
//! *which* script asked is a guess, *when* it was asked for is not. Run times end at the first request, so that they
//! are lower bounds; timers and event handlers are delays that do not shrink on a faster machine. Bandwidth that
//! responses shared in the recording counts as think time where it delays first bytes.

mod body;
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
mod times;
mod url;
mod whole;
mod write;

mod assemble;

#[cfg(test)]
mod tests;

pub use body::{Bodies, Body};
pub(crate) use clock::parse_http as moment;
pub(crate) use url::Url;
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
    let (bytes, name) = load(path)?;
    parse(&bytes, &name)
}

/// Reads the pages of a `.har` or `.har.gz` file, each with the bodies that were recorded.
pub fn read_with_bodies(path: &Path) -> Result<Vec<(Page, Bodies)>, Error> {
    let (bytes, name) = load(path)?;
    parse_with_bodies(&bytes, &name)
}

/// The file's bytes, and its name in pages and errors.
fn load(path: &Path) -> Result<(Vec<u8>, String), Error> {
    let name = path.display().to_string();
    let io = |e: std::io::Error| Error::of_file(&name, Fault::Io(e.to_string()));
    let file = std::fs::File::open(path).map_err(io)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(io)?;
    Ok((bytes, name))
}

/// Reads the pages of a HAR; `name` stands for the file in pages and errors.
pub fn parse(bytes: &[u8], name: &str) -> Result<Vec<Page>, Error> {
    let pages = assemble::pages(log(bytes, name)?, name, false)?;
    Ok(pages.into_iter().map(|(page, _)| page).collect())
}

/// Reads the pages of a HAR, each with the bodies that were recorded, coded as they are to be sent (see [`Body`]); `name`
/// stands for the file in pages and errors.
///
/// The pages are those that [`parse`] gives, but for assumptions about bodies. What [`write()`] wrote has no bodies.
pub fn parse_with_bodies(bytes: &[u8], name: &str) -> Result<Vec<(Page, Bodies)>, Error> {
    assemble::pages(log(bytes, name)?, name, true)
}

/// The log of a HAR, inflated if it has to be.
fn log(bytes: &[u8], name: &str) -> Result<record::Log, Error> {
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
    file.log.ok_or_else(|| Error::of_field(name, "log", Fault::NotHar))
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
