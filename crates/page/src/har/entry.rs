//! One entry, checked: times in milliseconds, sizes in bytes, header fields as on a cold load.

use base::Fields;

use crate::error::Fault;
use crate::har::body::{self, Decoded};
use crate::har::initiator::{Initiator, Place};
use crate::har::notes::Notes;
use crate::har::record::{self, Header, Number};
use crate::har::size::Sizes;
use crate::har::times::{self, Times};
use crate::har::url::{NoUrl, Url};
use crate::har::{kind, size};
use crate::model::{Kind, Priority};

/// The most that HTTP implementations are bound to carry in a signed 32-bit length.
const BYTES_MAX: u64 = i32::MAX as u64;
/// More than any server accepts in one head (the usual bound is 8–64 KiB).
const HEAD_BYTES_MAX: usize = 256 * 1024;

/// A fault and the field that has it.
pub(crate) type Bad = (&'static str, Fault);

/// A completed exchange over HTTP.
pub(crate) struct Load {
    /// Index in `log.entries`.
    pub index: usize,
    pub url: Url,
    pub method: String,
    /// As recorded; 304 stays 304 here.
    pub status: u16,
    pub times: Times,
    /// Identifies the transport connection; empty if unknown.
    pub connection: String,
    pub address: Option<String>,
    pub kind: Kind,
    pub sizes: Sizes,
    pub request: Fields,
    pub request_body_len: u64,
    pub response: Fields,
    pub referer: Option<Url>,
    /// What the response redirects to.
    pub location: Option<Url>,
    pub initiator: Option<Initiator>,
    pub priority: Option<Priority>,
    /// Whether the browser said that the parser or rendering waits for it.
    pub blocking: Option<bool>,
    /// The body of a document, if it was recorded whole.
    pub text: Option<String>,
    /// The body, if it was recorded and is wanted.
    pub body: Option<Decoded>,
}

/// Why an entry is no [`Load`].
pub(crate) enum Skip {
    /// `data:`, `about:`, `blob:`, `ws:`, …
    Scheme,
    /// Aborted, blocked or failed: it has no response.
    NoResponse,
    /// Wrong.
    Bad(Bad),
}

impl From<Bad> for Skip {
    fn from(bad: Bad) -> Skip {
        Skip::Bad(bad)
    }
}

/// How a file's entries are read.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    /// WebPageTest wrote them.
    pub webpagetest: bool,
    /// Bodies are wanted.
    pub bodies: bool,
}

/// Checks one entry. `start` stands in for a missing `startedDateTime`.
pub(crate) fn check(
    index: usize,
    mut entry: record::Entry,
    start: f64,
    reading: Reading,
    notes: &mut Notes,
) -> Result<Load, Skip> {
    let request = entry.request.take().unwrap_or_default();
    let response = entry.response.take().unwrap_or_default();
    let url = match Url::parse(&request.url) {
        Ok(url) => url,
        Err(_) if request.url.trim().is_empty() => return Err(("request.url", Fault::Missing).into()),
        Err(NoUrl::Scheme) => return Err(Skip::Scheme),
        Err(NoUrl::Malformed(why)) => return Err(("request.url", Fault::NotAUrl(why.into())).into()),
    };
    let times = times::read(&entry, url.tls, start, reading.webpagetest)?;
    if entry.time == Number::Absent && entry.timings.is_none() {
        notes.add("no-timings", "no time and no timings; taken as instantaneous");
    }
    let sizes = size::read(&response)?;
    let status = status(&response.status)?;
    let request_body_len = request_body_len(&request)?;
    if !(200..=999).contains(&status) {
        return Err(Skip::NoResponse);
    }
    let method = method(&request.method)?;
    // Chrome writes the time that its cache took as if it were the network's.
    let cached = sizes.body == Some(0) && sizes.content.is_some_and(|c| c > 0) && status != 304;
    let fields = request.headers.unwrap_or_default();
    let location = header(response.headers.as_deref().unwrap_or_default(), "location")
        .or(Some(&*response.redirect_url))
        .filter(|l| !l.trim().is_empty() && (300..400).contains(&status))
        .and_then(|l| url.resolve(l));
    let referer = header(&fields, "referer").and_then(|r| Url::parse(r).ok());
    let response_fields = response.headers.unwrap_or_default();
    let content = response.content.unwrap_or_default();
    let kind = kind::of(
        &kind::Evidence {
            resource_type: &entry.resource_type,
            request: &fields,
            mime_type: if content.mime_type.is_empty() {
                header(&response_fields, "content-type").unwrap_or("")
            } else {
                &content.mime_type
            },
            url: &url,
            status,
        },
        notes,
    );
    let initiator = Initiator::read(
        entry.initiator,
        entry.initiator_detail,
        Place { line: entry.initiator_line.get(), column: entry.initiator_column.get() },
        &entry.initiator_type,
    );
    let body = if reading.bodies { body::decode(index, &content, notes) } else { None };
    let text = (kind == Kind::Document && content.encoding.is_empty())
        .then_some(content.text.0)
        .filter(|t| !t.is_empty() && Some(t.len() as u64) == sizes.content);
    Ok(Load {
        index,
        times: Times { wait: times.wait.filter(|_| !cached), ..times },
        connection: [&*entry.connection, &*entry.socket]
            .into_iter()
            .find(|c| !c.is_empty())
            .unwrap_or("")
            .into(),
        address: address(&entry.server_ip_address),
        sizes,
        kind,
        request: request_fields(&fields, notes)?,
        request_body_len: if matches!(&*method, "GET" | "HEAD") { 0 } else { request_body_len },
        response: response_fields_of(&response_fields, notes)?,
        referer,
        location,
        initiator,
        priority: priority(&entry.initial_priority).or_else(|| priority(&entry.priority)),
        blocking: blocking(&entry.render_blocking),
        text,
        body,
        method,
        status,
        url,
    })
}

/// A size in bytes; `None` if it is missing or negative. (−1 says "unknown"; WebInspector subtracts the head's size
/// from a transfer size of zero.)
pub(crate) fn size_of(number: &Number, field: &'static str) -> Result<Option<u64>, Bad> {
    match number {
        Number::Absent => Ok(None),
        Number::Not(what) => Err((field, Fault::NotANumber(what.clone()))),
        Number::Is(bytes) if *bytes > BYTES_MAX as f64 => {
            Err((field, Fault::LargeSize { bytes: *bytes, bytes_max: BYTES_MAX }))
        }
        Number::Is(bytes) => Ok((*bytes >= 0.0).then_some(*bytes as u64)),
    }
}

/// The first field called `name`.
pub(crate) fn header<'a>(headers: &'a [Header], name: &str) -> Option<&'a str> {
    headers.iter().find(|h| h.name.trim().eq_ignore_ascii_case(name)).map(|h| &*h.value)
}

/// The status, or 0 for an entry that has none.
fn status(number: &Number) -> Result<u16, Bad> {
    match number {
        Number::Not(what) => Err(("response.status", Fault::NotANumber(what.clone()))),
        Number::Is(n) if (100.0..1000.0).contains(n) => Ok(*n as u16),
        _ => Ok(0),
    }
}

fn request_body_len(request: &record::Request) -> Result<u64, Bad> {
    let recorded = size_of(&request.body_size, "request.bodySize")?.filter(|n| *n > 0);
    let headers = request.headers.as_deref().unwrap_or_default();
    let declared = || header(headers, "content-length")?.trim().parse().ok().filter(|n| *n <= BYTES_MAX);
    let posted = || request.post_data.as_ref().map(|p| p.text.len() as u64);
    Ok(recorded.or_else(declared).or_else(posted).unwrap_or(0))
}

fn method(text: &str) -> Result<String, Bad> {
    let text = text.trim();
    if text.is_empty() {
        return Ok("GET".into());
    }
    if text.len() > 40 || !text.bytes().all(is_token) {
        let shown = format!("{:?}: not a method", crate::har::shortened(text, 40));
        return Err(("request.method", Fault::Shape(shown)));
    }
    Ok(text.to_owned())
}

/// RFC 9110 §5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Fields that a connection owns (RFC 9110 §7.6.1 and its list of old ones), or that are no fields: HTTP/2's and
/// SPDY's pseudo-fields.
fn is_connections(name: &str, nominated: &str) -> bool {
    const OWNED: [&str; 9] = [
        "connection",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "http2-settings",
        "host",
    ];
    name.starts_with(':')
        || OWNED.iter().any(|o| name.eq_ignore_ascii_case(o))
        || nominated.split(',').any(|n| n.trim().eq_ignore_ascii_case(name))
}

fn request_fields(headers: &[Header], notes: &mut Notes) -> Result<Fields, Bad> {
    // The engines write the request's own length; a cold load has nothing to make conditional.
    let mut conditional = false;
    let fields = fields(headers, "request.headers", |name| {
        let if_field = ["if-none-match", "if-modified-since"].iter().any(|n| name.eq_ignore_ascii_case(n));
        conditional |= if_field;
        !if_field && !name.eq_ignore_ascii_case("content-length")
    })?;
    if conditional {
        notes.add("conditional", "conditional request made unconditional, as on a cold load");
    }
    if headers.is_empty() {
        notes.add("no-request-fields", "no request header fields recorded; none are sent");
    }
    Ok(fields)
}

fn response_fields_of(headers: &[Header], notes: &mut Notes) -> Result<Fields, Bad> {
    if headers.is_empty() {
        notes.add("no-response-fields", "no response header fields recorded; none are sent");
    }
    fields(headers, "response.headers", |_| true)
}

/// The fields that are kept. Chrome joins fields of one name with a line feed: they are parted again. What no engine
/// could write (an empty name, a control character in a value) is left out.
fn fields(
    headers: &[Header],
    field: &'static str,
    mut keep: impl FnMut(&str) -> bool,
) -> Result<Fields, Bad> {
    let nominated = header(headers, "connection").unwrap_or("").to_owned();
    let mut bytes = 0;
    let mut out = Fields::new();
    for h in headers {
        let name = h.name.trim();
        if name.is_empty() || is_connections(name, &nominated) || !name.bytes().all(is_token) || !keep(name) {
            continue;
        }
        for value in h.value.split('\n') {
            let value = value.trim();
            if value.bytes().any(|b| b < b' ' && b != b'\t' || b == 0x7f) {
                continue;
            }
            bytes += name.len() + value.len();
            if bytes > HEAD_BYTES_MAX {
                return Err((
                    field,
                    Fault::LargeSize { bytes: bytes as f64, bytes_max: HEAD_BYTES_MAX as u64 },
                ));
            }
            out.push(name.to_owned(), value.to_owned());
        }
    }
    Ok(out)
}

fn address(text: &str) -> Option<String> {
    let text = text.trim().trim_start_matches('[').trim_end_matches(']');
    text.parse::<std::net::IpAddr>().ok().map(|a| a.to_string())
}

/// Chrome's names, and those of its network stack, which WebPageTest records one step off: Blink's `High` is the
/// network's `MEDIUM`, and so on down.
fn priority(text: &str) -> Option<Priority> {
    Some(match text {
        "VeryHigh" | "HIGHEST" => Priority::VeryHigh,
        "High" | "MEDIUM" => Priority::High,
        "Medium" | "LOW" => Priority::Medium,
        "Low" | "LOWEST" => Priority::Low,
        "VeryLow" | "IDLE" | "THROTTLED" => Priority::VeryLow,
        _ => return None,
    })
}

/// Chrome's `renderBlocking` of its trace events.
fn blocking(text: &str) -> Option<bool> {
    match text {
        "blocking" | "in_body_parser_blocking" | "potentially_blocking" => Some(true),
        "non_blocking" | "dynamically_injected_non_blocking" => Some(false),
        _ => None,
    }
}
