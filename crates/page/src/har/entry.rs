//! One entry, checked: times in milliseconds, sizes in bytes, header fields as on a cold load.

use base::Fields;

use crate::error::Fault;
use crate::har::initiator::{Initiator, Place};
use crate::har::notes::Notes;
use crate::har::record::{self, Header, Number};
use crate::har::size::Sizes;
use crate::har::url::{NoUrl, Url};
use crate::har::{clock, kind, size};
use crate::model::{Kind, Priority};

/// A day. Nothing that a page load waits for takes longer, and sums of such times stay exact.
const MS_MAX: f64 = 86_400_000.0;
/// The most that HTTP implementations are bound to carry in a signed 32-bit length.
const BYTES_MAX: u64 = i32::MAX as u64;
/// More than any server accepts in one head (the usual bound is 8–64 KiB).
const HEAD_BYTES_MAX: usize = 256 * 1024;

/// A fault and the field that has it.
pub(crate) type Bad = (&'static str, Fault);

/// A completed exchange over HTTP. Times are milliseconds since 1970.
pub(crate) struct Load {
    /// Index in `log.entries`.
    pub index: usize,
    pub url: Url,
    pub method: String,
    /// As recorded; 304 stays 304 here.
    pub status: u16,
    /// When the browser asked for it. It may then have queued.
    pub start: f64,
    pub first_byte: f64,
    pub end: f64,
    /// From the request's last byte to the response's first; `None` when it came from a cache.
    pub wait: Option<f64>,
    pub dns: Option<f64>,
    /// TCP's handshake alone, if a connection was opened, and whether the whole of it was measured.
    pub connect: Option<(f64, bool)>,
    /// The recorder does not say how long the request queued for a connection.
    pub queue_unknown: bool,
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

/// Checks one entry. `start` stands in for a missing `startedDateTime`.
pub(crate) fn check(
    index: usize,
    entry: record::Entry,
    start: f64,
    webpagetest: bool,
    notes: &mut Notes,
) -> Result<Load, Skip> {
    let request = entry.request.unwrap_or_default();
    let response = entry.response.unwrap_or_default();
    let url = match Url::parse(&request.url) {
        Ok(url) => url,
        Err(_) if request.url.trim().is_empty() => return Err(("request.url", Fault::Missing).into()),
        Err(NoUrl::Scheme) => return Err(Skip::Scheme),
        Err(NoUrl::Malformed(why)) => return Err(("request.url", Fault::NotAUrl(why.into())).into()),
    };
    let timings = entry.timings.as_ref();
    let phase = |number: Option<&Number>, field| number.map_or(Ok(None), |n| time(n, field));
    let blocked = phase(timings.map(|t| &t.blocked), "timings.blocked")?;
    let dns = phase(timings.map(|t| &t.dns), "timings.dns")?;
    let connect = phase(timings.map(|t| &t.connect), "timings.connect")?;
    let send = phase(timings.map(|t| &t.send), "timings.send")?;
    let wait = phase(timings.map(|t| &t.wait), "timings.wait")?;
    let receive = phase(timings.map(|t| &t.receive), "timings.receive")?;
    let ssl = phase(timings.map(|t| &t.ssl), "timings.ssl")?;
    let queued = phase(timings.map(|t| &t.queued), "timings._queued")?;
    let created = time(&entry.created, "_created")?;
    let total = time(&entry.time, "time")?;
    let sizes = size::read(&response)?;
    let request_size = size_of(&request.body_size, "request.bodySize")?;
    let status = status(&response.status)?;
    if !(200..=999).contains(&status) {
        return Err(Skip::NoResponse);
    }
    let method = method(&request.method)?;

    let started = moment(&entry.started_date_time, "startedDateTime")?.unwrap_or(start);
    // WebPageTest stamps the moment at which the request was sent, connection set-up being over, and counts that
    // set-up in `time` all the same. Its start is put back to the look-up or handshake that led up to it.
    let lead = if let Some(queued) = queued {
        queued
    } else if let (true, Some(created), Some(sent)) = (webpagetest, created, entry.load_start.get()) {
        (sent - created).clamp(0.0, MS_MAX)
    } else if webpagetest {
        webpagetest_lead(&Setup {
            load_start: entry.load_start.get(),
            dns: (entry.dns_start.get(), entry.dns_end.get()),
            connect: (entry.connect_start.get(), entry.connect_end.get()),
            ssl_end: entry.ssl_end.get(),
        })
    } else {
        0.0
    };
    let exchange = send.unwrap_or(0.0) + wait.unwrap_or(0.0) + receive.unwrap_or(0.0);
    let setup = blocked.unwrap_or(0.0) + dns.unwrap_or(0.0) + connect.unwrap_or(0.0);
    let end = match total {
        _ if webpagetest => started + exchange,
        Some(total) => started + total,
        None => started + setup + exchange,
    };
    if total.is_none() && timings.is_none() {
        notes.add("no-timings", "no time and no timings; taken as instantaneous");
    }

    let tcp = connect.filter(|c| *c > 0.0).map(|c| {
        let tls = ssl.filter(|s| *s > 0.0 && *s <= c);
        match tls {
            Some(tls) => (c - tls, true),
            // TLS is in it, of at least one round trip.
            None if url.tls => (c / 2.0, false),
            None => (c, dns.is_some_and(|d| d > 0.0) || webpagetest),
        }
    });
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
    let request_body_len = request_size
        .filter(|n| *n > 0)
        .or_else(|| header(&fields, "content-length")?.trim().parse().ok().filter(|n| *n <= BYTES_MAX))
        .or_else(|| request.post_data.map(|p| p.text.len() as u64))
        .unwrap_or(0);
    let text = (kind == Kind::Document && content.encoding.is_empty())
        .then_some(content.text.0)
        .filter(|t| !t.is_empty() && Some(t.len() as u64) == sizes.content);
    Ok(Load {
        index,
        start: started - lead,
        first_byte: end - receive.unwrap_or(0.0),
        end,
        wait: wait.filter(|_| !cached),
        dns,
        connect: tcp,
        queue_unknown: blocked.is_none() && created.is_none(),
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
        method,
        status,
        url,
    })
}

/// A moment in milliseconds since 1970; `None` if it is missing.
pub(crate) fn moment(text: &str, field: &'static str) -> Result<Option<f64>, Bad> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let shown = || Fault::NotATime(format!("{:?}", crate::har::shortened(text, 40)));
    clock::parse(text).map(Some).ok_or_else(|| (field, shown()))
}

/// A time in milliseconds; `None` if it is missing or −1, which HAR 1.2 has for "does not apply".
///
/// Recorders compute phases by subtracting floating-point stamps, so that a phase of no length may come out a hair
/// below zero: that is zero.
pub(crate) fn time(number: &Number, field: &'static str) -> Result<Option<f64>, Bad> {
    match number {
        Number::Absent => Ok(None),
        Number::Not(what) => Err((field, Fault::NotANumber(what.clone()))),
        Number::Is(ms) if *ms > MS_MAX => Err((field, Fault::LongTime { ms: *ms, ms_max: MS_MAX })),
        Number::Is(ms) if *ms >= 0.0 => Ok(Some(*ms)),
        Number::Is(ms) if *ms > -0.5 => Ok(Some(0.0)),
        Number::Is(ms) if *ms >= -1.001 => Ok(None),
        Number::Is(ms) => Err((field, Fault::NegativeTime(*ms))),
    }
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

struct Setup {
    load_start: Option<f64>,
    dns: (Option<f64>, Option<f64>),
    connect: (Option<f64>, Option<f64>),
    ssl_end: Option<f64>,
}

/// How long before WebPageTest's start stamp the connection was begun that the request waited for. A connection
/// that was ready more than 20 ms earlier was opened ahead of need and is no part of this request.
fn webpagetest_lead(s: &Setup) -> f64 {
    let (Some(load_start), Some(begun), Some(ready)) = (s.load_start, s.connect.0, s.connect.1) else {
        return 0.0;
    };
    let ready = ready.max(s.ssl_end.unwrap_or(0.0));
    if ready <= 0.0 || begun < 0.0 || !(-5.0..=20.0).contains(&(load_start - ready)) {
        return 0.0;
    }
    match s.dns {
        (Some(asked), Some(answered)) if asked >= 0.0 && (-5.0..=30.0).contains(&(begun - answered)) => {
            (load_start - asked).clamp(0.0, MS_MAX)
        }
        _ => (load_start - begun).clamp(0.0, MS_MAX),
    }
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
