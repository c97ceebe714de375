//! Parts of bodies, for clients that have the rest already (RFC 9110 §14).
//!
//! Only of what was recorded as a plain 200 that says `Accept-Ranges: bytes`, and only one range with a beginning and no end, which
//! is what a client asks for that was interrupted. Anything else gets the whole body, as §14.2 lets a server do.

use base::RequestHead;

use crate::Answer;

/// `answer`, or the part of it that `request` asks for.
pub(super) fn part(request: &RequestHead, answer: Answer) -> Answer {
    match wanted(request, &answer) {
        Some(from) => cut(answer, from),
        None => answer,
    }
}

/// The first byte that is wanted, if the request is for a part and the answer may be given in parts.
fn wanted(request: &RequestHead, answer: &Answer) -> Option<u64> {
    if request.method != "GET" || answer.head.status != 200 {
        return None;
    }
    let from = request.fields.get_str("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()?;
    let fields = &answer.head.fields;
    let in_parts = fields.get_str("accept-ranges").is_some_and(|v| v.eq_ignore_ascii_case("bytes"));
    // RFC 9110 §13.1.5: the validator that the client has is compared strongly.
    let fresh = match request.fields.get("if-range") {
        Some(known) => !known.starts_with(b"W/") && fields.get("etag") == Some(known),
        None => true,
    };
    (in_parts && fresh && from < answer.body.len()).then_some(from)
}

/// A 206 with what `answer` has from byte number `from` on (§15.3.7.1).
fn cut(mut answer: Answer, from: u64) -> Answer {
    let len = answer.body.len();
    answer.body.split_to(from);
    answer.head.status = 206;
    answer.head.fields.push("Content-Range", format!("bytes {from}-{}/{len}", len - 1));
    if answer.head.fields.get("content-length").is_some() {
        answer.head.fields.remove("content-length");
        answer.head.fields.push("Content-Length", answer.body.len().to_string());
    }
    answer
}
