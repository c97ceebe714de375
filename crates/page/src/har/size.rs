//! How many bytes a response's body has on the wire when nothing is cached.
//!
//! Recorders disagree on `bodySize`. Chrome counts an HTTP/2 head in it; its first exporters wrote the decoded size;
//! WebInspector counts TLS records and writes 0 for what came from a cache; WebPageTest wrote 0 for SPDY. The one
//! number that the server itself gave is `Content-Length`, so it decides wherever it fits what was seen. The rules,
//! first match wins:
//!
//! 1. No body can follow (HEAD, 204, 205): 0.
//! 2. `bodySize` and `Content-Length` are there: `Content-Length` if it is the same, smaller by no more than a head
//!    or record framing can be, or larger than a transfer whose content is there whole; else `bodySize`.
//! 3. `bodySize` alone: `content.size` if nothing is encoded and that is smaller; else `bodySize`.
//! 4. Neither was transferred (0, −1, 304, a cache): `Content-Length`; the size of the same URL elsewhere in the
//!    file; `_transferSize` less the head; `content.size` − `content.compression`; `content.size`; 0.

use crate::har::entry::{Bad, header, size_of};
use crate::har::notes::Notes;
use crate::har::record::Response;

/// What the recording says about a body's size. `None`: it does not say.
#[derive(Clone, Default, Debug)]
pub(crate) struct Sizes {
    pub body: Option<u64>,
    pub content: Option<u64>,
    pub compression: Option<u64>,
    pub transfer: Option<u64>,
    pub head: Option<u64>,
    pub content_length: Option<u64>,
    pub coded: bool,
}

/// Reads and bounds every size field of a response.
pub(crate) fn read(response: &Response) -> Result<Sizes, Bad> {
    let headers = response.headers.as_deref().unwrap_or_default();
    let content = response.content.as_ref();
    let of = |number: Option<&_>, field| number.map_or(Ok(None), |n| size_of(n, field));
    Ok(Sizes {
        body: size_of(&response.body_size, "response.bodySize")?,
        content: of(content.map(|c| &c.size), "response.content.size")?,
        compression: of(content.map(|c| &c.compression), "response.content.compression")?,
        transfer: size_of(&response.transfer_size, "response._transferSize")?,
        head: size_of(&response.headers_size, "response.headersSize")?,
        content_length: header(headers, "content-length")
            .and_then(|v| v.trim().parse().ok())
            .filter(|n| *n <= i32::MAX as u64),
        coded: header(headers, "content-encoding")
            .is_some_and(|v| !v.trim().is_empty() && !v.trim().eq_ignore_ascii_case("identity")),
    })
}

/// What a head, or the framing of TLS records, can add to a body at most.
fn framing_max(body: u64) -> u64 {
    4096.max(body / 16)
}

impl Sizes {
    /// The body's size as transferred, if any of it was: rules 2 and 3.
    pub fn transferred(&self) -> Option<u64> {
        let body = self.body.filter(|n| *n > 0)?;
        // The decoded size in place of the transferred one.
        if self.coded && self.compression.is_some_and(|c| c > 0) && self.content == Some(body) {
            return None;
        }
        let whole = |length| match self.content {
            Some(content) if self.coded => content > body,
            Some(content) => content >= length,
            None => false,
        };
        Some(match self.content_length {
            Some(length) if length <= body && body - length <= framing_max(length) => length,
            Some(length) if length > body && whole(length) => length,
            Some(_) => body,
            None => match self.content {
                Some(content) if !self.coded && content < body && body - content <= framing_max(content) => {
                    content
                }
                _ => body,
            },
        })
    }

    /// The body's size on a cold load. `elsewhere` is the size of the same URL where the file has it transferred.
    pub fn cold(&self, method: &str, status: u16, elsewhere: Option<u64>, notes: &mut Notes) -> u64 {
        if method == "HEAD" || matches!(status, 204 | 205) {
            return 0;
        }
        if let Some(size) = self.transferred().filter(|_| status != 304) {
            if self.body != Some(size) {
                notes.add(
                    "size-framing",
                    "bodySize counts more or less than the body; size taken from Content-Length or content.size",
                );
            }
            return size;
        }
        if let Some(length) = self.content_length.filter(|n| *n > 0) {
            notes.add(
                "size-from-content-length",
                "size taken from Content-Length because bodySize was 0, -1 or the decoded size",
            );
            return length;
        }
        if let Some(size) = elsewhere {
            notes.add(
                "size-from-elsewhere",
                "size taken from the same URL elsewhere in the file; cached here",
            );
            return size;
        }
        let content = self.content.filter(|n| *n > 0);
        if let Some(transfer) = self.transfer.filter(|n| *n > 0 && status != 304) {
            let size = transfer.saturating_sub(self.head.unwrap_or(0));
            if size > 0 && content.is_some() {
                notes.add("size-from-transfer", "size taken from _transferSize, which may count the head");
                return size;
            }
        }
        let Some(content) = content else { return 0 };
        if let Some(compression) = self.compression.filter(|c| *c > 0 && *c < content && status != 304) {
            notes.add("size-from-compression", "size taken from content.size less content.compression");
            return content - compression;
        }
        if self.coded {
            notes.add(
                "size-decoded",
                "size taken from content.size, decoded although a content coding is recorded: too large",
            );
        } else {
            notes.add("size-from-content", "size taken from content.size because bodySize was 0 or -1");
        }
        content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cold(sizes: &Sizes, status: u16) -> (u64, Option<String>) {
        let mut notes = Notes::default();
        let size = sizes.cold("GET", status, None, &mut notes);
        (size, notes.finish().pop().map(|a| a.kind))
    }

    fn kind(kind: &str) -> Option<String> {
        Some(kind.to_owned())
    }

    #[test]
    fn content_length_decides_where_it_fits() {
        let sizes = Sizes { body: Some(1000), content_length: Some(1000), ..Sizes::default() };
        assert_eq!(cold(&sizes, 200), (1000, None));
        // HTTP/2 in Chrome: the head is counted.
        let sizes = Sizes { body: Some(1480), content_length: Some(1000), content: Some(4000), ..sizes };
        assert_eq!(cold(&sizes, 200), (1000, kind("size-framing")));
        // A Content-Length of 1 before five kilobytes is a lie.
        let sizes = Sizes { body: Some(5088), content_length: Some(1), ..sizes };
        assert_eq!(cold(&sizes, 200), (5088, None));
        // A coded body of which only the head's worth was transferred, but whose content is whole.
        let sizes =
            Sizes { body: Some(39), content_length: Some(2621), content: Some(22641), coded: true, ..sizes };
        assert_eq!(cold(&sizes, 200), (2621, kind("size-framing")));
        // Cut off on the way.
        let sizes =
            Sizes { body: Some(500), content_length: Some(2621), content: Some(500), coded: false, ..sizes };
        assert_eq!(cold(&sizes, 200), (500, None));
    }

    #[test]
    fn what_a_cache_answered_gets_the_size_of_a_cold_load() {
        let cached = Sizes { body: Some(0), content: Some(900), ..Sizes::default() };
        assert_eq!(cold(&cached, 200), (900, kind("size-from-content")));
        assert_eq!(cold(&Sizes { coded: true, ..cached.clone() }, 200), (900, kind("size-decoded")));
        let length = Sizes { content_length: Some(300), coded: true, ..cached.clone() };
        assert_eq!(cold(&length, 200), (300, kind("size-from-content-length")));
        // A 304's `compression` is what revalidation saved, not what a coding did.
        let revalidated = Sizes { compression: Some(900), transfer: Some(386), ..cached.clone() };
        assert_eq!(cold(&revalidated, 304), (900, kind("size-from-content")));
        let compressed = Sizes { compression: Some(600), ..cached.clone() };
        assert_eq!(cold(&compressed, 200), (300, kind("size-from-compression")));
        let unknown = Sizes { body: None, transfer: Some(400), head: Some(100), ..cached.clone() };
        assert_eq!(cold(&unknown, 200), (300, kind("size-from-transfer")));
        let mut notes = Notes::default();
        assert_eq!(cached.cold("GET", 200, Some(250), &mut notes), 250);
        assert_eq!(cached.cold("HEAD", 200, Some(250), &mut notes), 0);
        assert_eq!(cached.cold("GET", 204, Some(250), &mut notes), 0);
        assert_eq!(Sizes::default().cold("GET", 200, None, &mut notes), 0);
    }

    #[test]
    fn a_decoded_body_size_is_told_from_a_transferred_one() {
        let old_chrome = Sizes {
            body: Some(12311),
            content: Some(12311),
            compression: Some(8279),
            coded: true,
            ..Sizes::default()
        };
        assert_eq!(cold(&old_chrome, 200), (4032, kind("size-from-compression")));
    }
}
