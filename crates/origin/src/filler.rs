//! Bytes for bodies that were not recorded.
//!
//! A recording without bodies still says how long each was, and where in a document each reference stood. That is enough
//! for a page that a real browser can load: a document is a skeleton that refers to what its parser found, each reference
//! at its recorded place; style sheets, scripts and the rest of documents are comments, images one pixel, JSON is an empty
//! object. Whatever its coding was, a filler has none, so that as many bytes travel as were recorded.
//!
//! What it cannot do: a filler runs no script and styles nothing, so that what scripts and style sheets asked for is
//! not asked for. A document is longer than recorded if its references alone are.
//!
//! A filler is a list of pieces, each at its place, and a text that fills all gaps; its bytes are a pure function of
//! their place, made when they are sent.

use std::fmt::Write;
use std::ops::Range;

use base::{Field, Fields};
use bytes::{BufMut, Bytes, BytesMut};
use page::{Cause, Kind, Page, Resource, ResourceId, ScriptMode};

/// What fills comments. It must not end one: no `--`, no `*/`.
const TEXT: &[u8; 64] = b"These bytes fill in for a body that the recording does not have\n";
/// What fills where white space is allowed and nothing else.
const BLANK: &[u8; 64] = b"                                                               \n";

/// An image of one transparent pixel (GIF89a). Browsers tell an image's format by its first bytes whatever its type says,
/// and ignore what follows its end.
const PIXEL: &[u8] =
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff\x21\xf9\x04\x01\x00\x00\x00\x00\x2c\
    \x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00\x3b";

const HTML: &str = "<!DOCTYPE html><meta charset=\"utf-8\"><title>A recorded page</title>";

/// A body of which nothing but the length was recorded, and for a document what it refers to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filler {
    len: u64,
    /// Where each begins; in order, and none reaches into the next.
    pieces: Vec<(u64, Bytes)>,
    /// What stands between them, by place.
    gap: &'static [u8; 64],
}

impl Filler {
    /// `len` bytes for a resource of this kind and media type that refers to nothing.
    pub fn new(kind: Kind, media_type: &str, len: u64) -> Self {
        let media_type = media_type.to_ascii_lowercase();
        let is = |what: &str| media_type.contains(what);
        match kind {
            Kind::Document => Self::enclosed(&format!("{HTML}<!--"), "-->", len),
            Kind::Style | Kind::Script => Self::enclosed("/*", "*/", len),
            _ if is("json") => Self { len, pieces: Self::fitting(b"{}", len), gap: BLANK },
            _ if is("html") => Self::enclosed(&format!("{HTML}<!--"), "-->", len),
            _ if is("svg") => Self::enclosed("<svg xmlns=\"http://www.w3.org/2000/svg\"/><!--", "-->", len),
            _ if is("javascript") || is("text/css") => Self::enclosed("/*", "*/", len),
            Kind::Image => Self { len, pieces: Self::fitting(PIXEL, len), gap: TEXT },
            Kind::Font | Kind::Xhr | Kind::Media | Kind::Other => Self { len, pieces: Vec::new(), gap: TEXT },
        }
    }

    /// A comment, or blanks where none fits.
    fn enclosed(open: &str, close: &str, len: u64) -> Self {
        let close_at = len.saturating_sub(close.len() as u64);
        if close_at < open.len() as u64 {
            return Self { len, pieces: Vec::new(), gap: BLANK };
        }
        let pieces = vec![
            (0, Bytes::copy_from_slice(open.as_bytes())),
            (close_at, Bytes::copy_from_slice(close.as_bytes())),
        ];
        Self { len, pieces, gap: TEXT }
    }

    fn fitting(piece: &'static [u8], len: u64) -> Vec<(u64, Bytes)> {
        if piece.len() as u64 <= len { vec![(0, Bytes::from_static(piece))] } else { Vec::new() }
    }

    /// The document `id` of `page`: a skeleton that refers to what its parser found, each at about its recorded place.
    ///
    /// Only what was asked for with GET can be referred to. What an inline script inserted stands in the markup, where the
    /// preload scanner sees it earlier than it did.
    ///
    /// # Panics
    /// If there is no such resource.
    pub fn document(page: &Page, id: ResourceId) -> Self {
        let document = &page.resources[id as usize];
        let mut found: Vec<(u64, &Resource, ScriptMode)> = page
            .resources
            .iter()
            .filter_map(|r| match r.cause {
                Cause::Parser { parent, offset, script } if parent == id && r.method == "GET" => {
                    Some((offset, r, script))
                }
                _ => None,
            })
            .collect();
        found.sort_by_key(|(offset, ..)| *offset); // stable: recorded order stays
        if found.is_empty() {
            return Self::new(Kind::Document, "", document.body_len);
        }
        let mut pieces = vec![(0, Bytes::from(format!("{HTML}<!--")))];
        let mut end = pieces[0].1.len() as u64;
        for (offset, resource, script) in found {
            let piece = Bytes::from(format!("-->{}<!--", reference(page, document, resource, script)));
            let at = end.max(offset);
            end = at + piece.len() as u64;
            pieces.push((at, piece));
        }
        let close = Bytes::from_static(b"-->");
        let at = end.max(document.body_len.saturating_sub(close.len() as u64));
        let len = at + close.len() as u64;
        pieces.push((at, close));
        Self { len, pieces, gap: TEXT }
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends the bytes of a range; what of it lies beyond the end is left out.
    pub fn read(&self, range: Range<u64>, out: &mut BytesMut) {
        let (mut at, end) = (range.start, range.end.min(self.len));
        let mut next = self.pieces.partition_point(|(start, piece)| start + piece.len() as u64 <= at);
        while at < end {
            let Some((start, piece)) = self.pieces.get(next) else {
                return self.fill(at..end, out);
            };
            if at < *start {
                self.fill(at..end.min(*start), out);
                at = end.min(*start);
                continue;
            }
            let from = (at - start) as usize;
            let upto = piece.len().min((end - start) as usize);
            out.put_slice(&piece[from..upto]);
            at = start + upto as u64;
            next += 1;
        }
    }

    fn fill(&self, range: Range<u64>, out: &mut BytesMut) {
        let period = self.gap.len() as u64;
        let mut at = range.start;
        while at < range.end {
            let from = (at % period) as usize;
            let n = (self.gap.len() - from).min((range.end - at) as usize);
            out.put_slice(&self.gap[from..from + n]);
            at += n as u64;
        }
    }
}

/// The element by which a document refers to a resource.
fn reference(page: &Page, document: &Resource, resource: &Resource, script: ScriptMode) -> String {
    let url = url(page, document, resource);
    match resource.kind {
        Kind::Style => format!("<link rel=\"stylesheet\" href=\"{url}\">"),
        Kind::Script => match script {
            ScriptMode::Sync => format!("<script src=\"{url}\"></script>"),
            ScriptMode::Async => format!("<script async src=\"{url}\"></script>"),
            ScriptMode::Defer => format!("<script defer src=\"{url}\"></script>"),
        },
        Kind::Image => format!("<img alt=\"\" src=\"{url}\">"),
        Kind::Document => format!("<iframe src=\"{url}\"></iframe>"),
        Kind::Font => format!("<link rel=\"preload\" as=\"font\" crossorigin href=\"{url}\">"),
        Kind::Media => format!("<video preload=\"auto\" src=\"{url}\"></video>"),
        Kind::Xhr => format!("<link rel=\"preload\" as=\"fetch\" crossorigin href=\"{url}\">"),
        Kind::Other => format!("<link rel=\"prefetch\" href=\"{url}\">"),
    }
}

/// A resource's URL as an attribute's value in a document: as short as it can be, so that a page can be served from
/// another port and with another scheme than it was recorded.
fn url(page: &Page, document: &Resource, resource: &Resource) -> String {
    let (from, to) = (page.host(document), page.host(resource));
    let mut url = String::new();
    if document.host != resource.host || resource.path.starts_with(b"//") {
        if from.scheme_tls != to.scheme_tls {
            let _ = write!(url, "{}:", to.scheme());
        }
        let _ = write!(url, "//{}", to.authority());
    }
    for byte in &resource.path {
        let _ = match byte {
            b'&' => url.write_str("&amp;"),
            b'"' | b'<' | b'>' | 0x80.. => write!(url, "%{byte:02X}"),
            _ => url.write_char(char::from(*byte)),
        };
    }
    url
}

/// A recorded response's fields, for a filler: without coding, as it has none; and without a policy that would keep a
/// skeleton from what it refers to, as it lacks the nonces of the recorded markup.
pub(crate) fn fields(recorded: &Fields) -> Fields {
    const NOT: [&str; 3] =
        ["content-encoding", "content-security-policy", "content-security-policy-report-only"];
    let keep = |f: &&Field| !NOT.iter().any(|n| f.name.eq_ignore_ascii_case(n.as_bytes()));
    recorded.iter().filter(keep).cloned().collect()
}

#[cfg(test)]
mod tests;
