//! Response bodies, for whoever serves a recording to a real client.
//!
//! A HAR holds a body after content decoding, and text of any charset as Unicode (`content.text`; in base64 where
//! `content.encoding` says so). What is served is coded again as recorded: `gzip` and `deflate` are; for codings that are
//! not written here, `br` and `zstd` above all, `gzip` stands in and the field says so. Each is an assumption, as the
//! length differs from what the recorded server sent.

use std::collections::BTreeMap;
use std::io::Write;

use base::{Field, Fields};
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, Engine};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use crate::har::notes::Notes;
use crate::har::record::Content;
use crate::model::ResourceId;

/// A response's body as it is to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Body {
    /// After content coding. Its length is near [`Resource::body_len`](crate::Resource::body_len), seldom equal.
    pub bytes: Bytes,
    /// The response's fields that fit these bytes: the recorded ones, but for `Content-Encoding` and the charset of
    /// `Content-Type` where the bytes are coded otherwise. `Content-Length` is the recorder's.
    pub response: Fields,
}

/// The recorded bodies of a page. A resource that is not here was recorded without.
pub type Bodies = BTreeMap<ResourceId, Body>;

/// A body as the HAR has it: without content coding.
#[derive(Debug)]
pub(crate) struct Decoded {
    bytes: Bytes,
    /// Whether it was recorded as text, which is UTF-8 now.
    text: bool,
}

/// Some recorders leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The body that entry number `index` holds, if it holds one that can be read. People who pass recordings on put words
/// in place of bodies and leave the encoding as it was, so that a bad body is no reason to refuse a file.
pub(crate) fn decode(index: usize, content: &Content, notes: &mut Notes) -> Option<Decoded> {
    if content.text.is_empty() {
        return None;
    }
    let encoding = content.encoding.trim();
    if encoding.is_empty() {
        return Some(Decoded { bytes: content.text.0.clone().into_bytes().into(), text: true });
    }
    let unpacked = if encoding.eq_ignore_ascii_case("base64") {
        let packed: Vec<u8> = content.text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
        BASE64.decode(packed).map_err(|e| format!("not base64: {e}"))
    } else {
        Err(format!("encoded with {:?}; only base64 is known", crate::har::shortened(encoding, 40)))
    };
    match unpacked {
        Ok(bytes) => Some(Decoded { bytes: bytes.into(), text: false }),
        Err(why) => {
            let why = why.trim_end_matches('.');
            notes.add(
                "body-unreadable",
                format!("body taken as not recorded; the first is entry {index}: {why}"),
            );
            None
        }
    }
}

impl Decoded {
    /// Codes the body as `response` says it was, or as near to that as can be.
    pub fn encode(self, response: &Fields, notes: &mut Notes) -> Body {
        let mut response = response.clone();
        if self.text && !self.bytes.is_ascii() && has_charset(&response) {
            response = with_charset(&response);
            notes.add("body-charset", "text was recorded as Unicode: served as UTF-8");
        }
        let codings = codings(&response);
        let bytes = match codings.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] => self.bytes,
            ["gzip" | "x-gzip"] => {
                notes.add("re-encoded", "body recorded decoded; coded with gzip again, its length differs");
                gzip(&self.bytes)
            }
            ["deflate"] => {
                notes
                    .add("re-encoded", "body recorded decoded; coded with deflate again, its length differs");
                deflate(&self.bytes)
            }
            _ => {
                notes.add("re-encoded-gzip", format!("coded with {}; served with gzip", codings.join(", ")));
                response.remove("content-encoding");
                response.push("Content-Encoding", "gzip");
                gzip(&self.bytes)
            }
        };
        Body { bytes, response }
    }
}

/// The content codings in lower case, in the order in which they were applied (RFC 9110 §8.4).
fn codings(fields: &Fields) -> Vec<String> {
    let values = fields.iter().filter(|f| f.name.eq_ignore_ascii_case(b"content-encoding"));
    let tokens = values.flat_map(|f| f.value.split(|b| *b == b','));
    let tokens = tokens.map(|t| String::from_utf8_lossy(t.trim_ascii()).to_ascii_lowercase());
    tokens.filter(|t| !t.is_empty() && t != "identity").collect()
}

/// Whether the charset matters to how a client reads the body. JSON is UTF-8 whatever its type says (RFC 8259 §8.1).
fn has_charset(fields: &Fields) -> bool {
    let kind = fields.get_str("content-type").unwrap_or("").to_ascii_lowercase();
    kind.starts_with("text/") || kind.contains("javascript") || kind.contains("xml")
}

/// The same fields, with `charset=utf-8` in `Content-Type`.
fn with_charset(fields: &Fields) -> Fields {
    let fix = |field: &Field| {
        let mut field = field.clone();
        if field.name.eq_ignore_ascii_case(b"content-type") {
            let value = String::from_utf8_lossy(&field.value).into_owned();
            let is_charset = |p: &&str| p.trim_start().to_ascii_lowercase().starts_with("charset=");
            let kept: Vec<_> = value.split(';').filter(|p| !is_charset(p)).collect();
            field.value = format!("{}; charset=utf-8", kept.join(";").trim_end()).into();
        }
        field
    };
    fields.iter().map(fix).collect()
}

fn gzip(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.expect("a vector takes all").into()
}

/// HTTP's deflate is zlib's format (RFC 9110 §8.4.1.2).
fn deflate(bytes: &[u8]) -> Bytes {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.expect("a vector takes all").into()
}

#[cfg(test)]
mod tests;
