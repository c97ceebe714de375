//! HTTP heads over header blocks (SPDY/3.1 §3.2 and §3.3; SPDY/2, "HTTP Layering over SPDY").
//!
//! Version 3 gives the start line names of its own, with a colon. Version 2 uses plain words (`method`, `url`,
//! `status`, …), so a field that bears one of them cannot be sent; it is left out, as are the fields that a
//! connection owns.

use std::fmt::Write as _;

use base::{Fields, RequestHead, ResponseHead};
use bytes::Bytes;

use crate::block::Block;
use crate::{BadHead, Version};

/// Neither sent nor passed on (SPDY/3.1 §3.2.1, §3.2.2).
fn is_forbidden(version: Version, name: &[u8]) -> bool {
    const OWNED: [&str; 4] = ["connection", "keep-alive", "proxy-connection", "transfer-encoding"];
    const RESERVED_IN_2: [&str; 6] = ["method", "url", "scheme", "host", "version", "status"];
    let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
    let reserved: &[&str] = if version == Version::V2 { &RESERVED_IN_2 } else { &["host"] };
    OWNED.iter().chain(reserved).any(|other| is(other))
}

fn fields(version: Version, fields: &Fields, block: &mut Block) -> Result<(), BadHead> {
    block.fields(fields, |name| match name.starts_with(b":") {
        true => Err(BadHead::Name),
        false => Ok(!is_forbidden(version, name)),
    })
}

fn one(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::once(value)
}

/// Writes a request's block.
pub(crate) fn put_request(version: Version, head: &RequestHead, block: &mut Block) -> Result<(), BadHead> {
    block.start(version);
    put_target(version, head, block)?;
    let (method, http) = if version == Version::V2 { ("method", "version") } else { (":method", ":version") };
    block.pair(method.as_bytes(), one(&head.method))?;
    block.pair(http.as_bytes(), one(b"HTTP/1.1"))?;
    fields(version, &head.fields, block)?;
    block.finish()
}

/// Writes a response's block.
pub(crate) fn put_response(version: Version, head: &ResponseHead, block: &mut Block) -> Result<(), BadHead> {
    block.start(version);
    put_status(version, head, block)?;
    fields(version, &head.fields, block)?;
    block.finish()
}

/// Writes a push's block: the request's target and the response (§3.3.1).
pub(crate) fn put_push(
    version: Version,
    head: &RequestHead,
    response: &ResponseHead,
    block: &mut Block,
) -> Result<(), BadHead> {
    block.start(version);
    if version == Version::V2 {
        // Nothing is inherited from the associated request, so the URL is absolute.
        let url = [&head.scheme[..], b"://", &head.authority, &head.path].concat();
        is_complete(head)?;
        block.pair(b"url", one(&url))?;
    } else {
        put_target(version, head, block)?;
    }
    put_status(version, response, block)?;
    fields(version, &response.fields, block)?;
    block.finish()
}

/// Writes the block of a HEADERS frame.
pub(crate) fn put_fields(version: Version, more: &Fields, block: &mut Block) -> Result<(), BadHead> {
    block.start(version);
    fields(version, more, block)?;
    block.finish()
}

/// Where the resource is. Version 2 says it as Chrome did: the path alone as `url`, and `host` beside it.
fn put_target(version: Version, head: &RequestHead, block: &mut Block) -> Result<(), BadHead> {
    is_complete(head)?;
    let [path, host, scheme] =
        if version == Version::V2 { ["url", "host", "scheme"] } else { [":path", ":host", ":scheme"] };
    block.pair(host.as_bytes(), one(&head.authority))?;
    block.pair(path.as_bytes(), one(&head.path))?;
    block.pair(scheme.as_bytes(), one(&head.scheme))
}

fn is_complete(head: &RequestHead) -> Result<(), BadHead> {
    let parts = [&head.method, &head.scheme, &head.authority, &head.path];
    if parts.iter().any(|p| p.is_empty()) { Err(BadHead::Value) } else { Ok(()) }
}

fn put_status(version: Version, head: &ResponseHead, block: &mut Block) -> Result<(), BadHead> {
    let (status, http) = if version == Version::V2 { ("status", "version") } else { (":status", ":version") };
    let mut line = String::new();
    let _ = write!(line, "{}", head.status);
    if let Some(reason) = reason(head.status) {
        let _ = write!(line, " {reason}");
    }
    block.pair(status.as_bytes(), one(line.as_bytes()))?;
    block.pair(http.as_bytes(), one(b"HTTP/1.1"))
}

/// The phrases that version 3's dictionary holds, and two that are as common.
fn reason(status: u16) -> Option<&'static str> {
    Some(match status {
        200 => "OK",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => return None,
    })
}

/// What a block holds, sorted into the special pairs and the others.
#[derive(Default, Debug)]
pub(crate) struct Parts {
    method: Option<Bytes>,
    path: Option<Bytes>,
    scheme: Option<Bytes>,
    host: Option<Bytes>,
    version: Option<Bytes>,
    status: Option<Bytes>,
    pub(crate) fields: Fields,
    /// What it holds in memory, in bytes.
    pub(crate) cost: u32,
}

impl Parts {
    /// Takes in one pair.
    pub(crate) fn push(&mut self, version: Version, name: Bytes, value: Bytes) {
        let slot = match (version, &name[..]) {
            (Version::V2, b"method") | (Version::V3 | Version::V3_1, b":method") => &mut self.method,
            (Version::V2, b"url") | (Version::V3 | Version::V3_1, b":path") => &mut self.path,
            (Version::V2, b"scheme") | (Version::V3 | Version::V3_1, b":scheme") => &mut self.scheme,
            (Version::V2, b"host") | (Version::V3 | Version::V3_1, b":host") => &mut self.host,
            (Version::V2, b"version") | (Version::V3 | Version::V3_1, b":version") => &mut self.version,
            (Version::V2, b"status") | (Version::V3 | Version::V3_1, b":status") => &mut self.status,
            (_, name) if name.starts_with(b":") || is_forbidden(version, name) => return,
            _ => return self.fields.push(name, value),
        };
        *slot = Some(value);
    }

    /// The request, or `None` if a part is missing: the server must answer 400.
    pub(crate) fn request(mut self) -> Option<RequestHead> {
        self.version.take().filter(|v| !v.is_empty())?;
        let method = self.method.take().filter(|m| !m.is_empty())?;
        let (scheme, authority, path) = self.target()?;
        Some(RequestHead { method, scheme, authority, path, fields: self.fields })
    }

    pub(crate) fn has_status(&self) -> bool {
        self.status.is_some()
    }

    /// The response, or `None` if its status or version is missing or no status: the client must reset.
    pub(crate) fn response(self) -> Option<ResponseHead> {
        self.version.filter(|v| !v.is_empty())?;
        Some(ResponseHead { status: status(&self.status?)?, fields: self.fields })
    }

    /// The request that a push answers, and the response if it is there already. `None` if the target is missing.
    pub(crate) fn push_of(mut self) -> Option<(RequestHead, Option<ResponseHead>)> {
        let (scheme, authority, path) = self.target()?;
        let method = Bytes::from_static(b"GET");
        let head = RequestHead { method, scheme, authority, path, fields: Fields::new() };
        let status = self.status.and_then(|s| status(&s));
        Some((head, status.map(|status| ResponseHead { status, fields: self.fields })))
    }

    /// Scheme, authority and path. Version 2's `url` may be absolute, and then is the authority on all three.
    fn target(&mut self) -> Option<(Bytes, Bytes, Bytes)> {
        let path = self.path.take().filter(|p| !p.is_empty())?;
        if let Some(at) = path.windows(3).position(|w| w == b"://").filter(|_| !path.starts_with(b"/")) {
            let rest = &path[at + 3..];
            let slash = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
            let (authority, tail) = rest.split_at(slash);
            let tail = if tail.is_empty() { Bytes::from_static(b"/") } else { path.slice_ref(tail) };
            return Some((path.slice_ref(&path[..at]), path.slice_ref(authority), tail))
                .filter(|(s, a, _)| !s.is_empty() && !a.is_empty());
        }
        let scheme = self.scheme.take().filter(|s| !s.is_empty())?;
        let authority = self.host.take().filter(|h| !h.is_empty())?;
        Some((scheme, authority, path))
    }
}

/// `200` or `200 OK`.
fn status(value: &[u8]) -> Option<u16> {
    let (digits, rest) = value.split_first_chunk::<3>()?;
    if !digits.iter().all(u8::is_ascii_digit) || rest.first().is_some_and(|b| *b != b' ') {
        return None;
    }
    let status = digits.iter().fold(0, |n, d| n * 10 + u16::from(d - b'0'));
    (status >= 100).then_some(status)
}

#[cfg(test)]
mod tests;
