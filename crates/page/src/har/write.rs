//! HAR out, and back in without loss.
//!
//! Every program that reads HAR 1.2 can show what is written here. What HAR has no field for goes into objects called
//! `_velodrome`, one a page and one an entry; where they are found, reading restores the page from them exactly
//! instead of inferring it.

use base::{Duration, Fields};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{Error, Fault};
use crate::har::clock;
use crate::har::record::{Entry, Header, PageRecord};
use crate::har::url::Url;
use crate::model::{
    Assumption, Cause, Host, Kind, Page, Priority, Recorded, Resource, ResourceId, ScriptMode, Source,
};

/// What a load of a page measured. All spans count from the navigation's start.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Measured {
    /// Navigation start to `DOMContentLoaded`.
    pub on_content_load: Option<Duration>,
    /// Navigation start to `onload`.
    pub on_load: Option<Duration>,
    /// One a resource, in the page's order. Missing ones are written as if they had taken no time.
    pub requests: Vec<Timing>,
}

/// When one request reached each stage, since the navigation's start. `None`: never, or not for this request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Timing {
    /// The loader asked for it.
    pub asked: Duration,
    /// Name look-up that it waited for: start and end.
    pub dns: Option<(Duration, Duration)>,
    /// TCP handshake that it waited for: start and end.
    pub connect: Option<(Duration, Duration)>,
    /// End of the TLS handshake that it waited for; it began when TCP's ended.
    pub tls_end: Option<Duration>,
    /// First byte of the request handed to the transport.
    pub sent: Option<Duration>,
    /// First byte of the response.
    pub first_byte: Option<Duration>,
    /// Last byte of the response.
    pub complete: Option<Duration>,
    /// Number of the connection that carried it.
    pub connection: Option<u32>,
}

/// A HAR 1.2 of one page. The page is said to have started with the year 2000.
pub fn write(page: &Page, measured: &Measured) -> Value {
    let ms = |d: Option<Duration>| d.map_or(json!(-1), |d| json!(d.as_millis_f64()));
    let entries: Vec<Value> = (0..page.resources.len())
        .map(|i| entry(page, i as ResourceId, measured.requests.get(i).copied().unwrap_or_default()))
        .collect();
    json!({"log": {
        "version": "1.2",
        "creator": {"name": "Velodrome", "version": env!("CARGO_PKG_VERSION")},
        "pages": [{
            "id": page.id,
            "startedDateTime": clock::format(0.0),
            "title": if page.title.is_empty() { &page.url } else { &page.title },
            "pageTimings": {"onContentLoad": ms(measured.on_content_load), "onLoad": ms(measured.on_load)},
            "_velodrome": OwnPage::from(page),
        }],
        "entries": entries,
    }})
}

fn entry(page: &Page, id: ResourceId, timing: Timing) -> Value {
    let resource = &page.resources[id as usize];
    let host = page.host(resource);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = |fields: &Fields| -> Vec<Value> {
        fields.iter().map(|f| json!({"name": text(&f.name), "value": text(&f.value)})).collect()
    };
    let initiator = match resource.cause {
        Cause::Parser { parent, .. } => json!({"type": "parser", "url": page.resource_url(parent)}),
        Cause::Completion { parent, .. } => json!({"type": "script", "url": page.resource_url(parent)}),
        Cause::Redirect(parent) => json!({"type": "redirect", "url": page.resource_url(parent)}),
        Cause::Root | Cause::Load { .. } | Cause::Beside => json!({"type": "other"}),
    };
    let mime_type = resource.response.get_str("content-type").unwrap_or("");
    json!({
        "pageref": page.id,
        "startedDateTime": clock::format(timing.asked.as_millis_f64()),
        "time": timing.complete.map_or(Duration::ZERO, |c| c - timing.asked).as_millis_f64(),
        "request": {
            "method": text(&resource.method),
            "url": page.resource_url(id),
            "httpVersion": "",
            "cookies": [],
            "headers": headers(&resource.request),
            "queryString": [],
            "headersSize": -1,
            "bodySize": resource.request_body_len,
        },
        "response": {
            "status": resource.status,
            "statusText": "",
            "httpVersion": "",
            "cookies": [],
            "headers": headers(&resource.response),
            "content": {"size": resource.body_len, "mimeType": mime_type},
            "redirectURL": resource.response.get_str("location").unwrap_or(""),
            "headersSize": -1,
            "bodySize": resource.body_len,
        },
        "cache": {},
        "timings": phases(&timing),
        "serverIPAddress": host.address.as_deref().unwrap_or(""),
        "connection": timing.connection.map(|c| c.to_string()).unwrap_or_default(),
        "_resourceType": resource_type(resource.kind),
        "_initiator": initiator,
        "_priority": resource.priority.map(priority_name),
        "_velodrome": OwnEntry::from(resource),
    })
}

/// HAR's phases, which add up to the whole; TLS counts in `connect` as well.
fn phases(t: &Timing) -> Value {
    let end = t.complete.unwrap_or(t.asked);
    let sent = t.sent.unwrap_or(end);
    let first_byte = t.first_byte.unwrap_or(end);
    let dns = t.dns.map(|(from, to)| to - from);
    let connect = t.connect.map(|(from, to)| t.tls_end.unwrap_or(to) - from);
    let tls = t.connect.and_then(|(_, to)| t.tls_end.map(|tls_end| tls_end - to));
    let busy = dns.unwrap_or(Duration::ZERO) + connect.unwrap_or(Duration::ZERO);
    let ms = |d: Duration| d.as_millis_f64();
    let or_none = |d: Option<Duration>| d.map_or(-1.0, ms);
    json!({
        "blocked": ms((sent - t.asked) - busy),
        "dns": or_none(dns),
        "connect": or_none(connect),
        "ssl": or_none(tls),
        "send": 0.0,
        "wait": ms(first_byte - sent),
        "receive": ms(end - first_byte),
    })
}

#[derive(Serialize, Deserialize)]
struct OwnPage {
    id: String,
    title: String,
    file: String,
    page: String,
    hosts: Vec<OwnHost>,
    tail_ns: u64,
    on_load_ns: Option<u64>,
    on_content_load_ns: Option<u64>,
    first_paint_ns: Option<u64>,
    recorder: String,
    browser: String,
    assumptions: Vec<(String, String, u32)>,
}

#[derive(Serialize, Deserialize)]
struct OwnHost {
    name: String,
    tls: bool,
    port: u16,
    rtt_ns: Option<u64>,
    dns_ns: Option<u64>,
    address: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct OwnEntry {
    kind: String,
    cause: OwnCause,
    think_ns: u64,
    exec_ns: u64,
    after_load: bool,
    scripted: bool,
    priority: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OwnCause {
    Root,
    Redirect { parent: u32 },
    Parser { parent: u32, offset: u64, script: String },
    Completion { parent: u32, delay_ns: u64 },
    Load { delay_ns: u64 },
    Beside,
}

impl From<&Page> for OwnPage {
    fn from(page: &Page) -> Self {
        let ns = |d: Option<Duration>| d.map(Duration::as_nanos);
        let host = |h: &Host| OwnHost {
            name: h.name.clone(),
            tls: h.scheme_tls,
            port: h.port,
            rtt_ns: ns(h.rtt),
            dns_ns: ns(h.dns),
            address: h.address.clone(),
        };
        OwnPage {
            id: page.id.clone(),
            title: page.title.clone(),
            file: page.source.file.clone(),
            page: page.source.page.clone(),
            hosts: page.hosts.iter().map(host).collect(),
            tail_ns: page.tail.as_nanos(),
            on_load_ns: ns(page.recorded.on_load),
            on_content_load_ns: ns(page.recorded.on_content_load),
            first_paint_ns: ns(page.recorded.first_paint),
            recorder: page.recorded.recorder.clone(),
            browser: page.recorded.browser.clone(),
            assumptions: page
                .assumptions
                .iter()
                .map(|a| (a.kind.clone(), a.detail.clone(), a.count))
                .collect(),
        }
    }
}

impl From<&Resource> for OwnEntry {
    fn from(resource: &Resource) -> Self {
        OwnEntry {
            kind: resource.kind.name().to_owned(),
            cause: match resource.cause {
                Cause::Root => OwnCause::Root,
                Cause::Redirect(parent) => OwnCause::Redirect { parent },
                Cause::Parser { parent, offset, script } => {
                    OwnCause::Parser { parent, offset, script: mode_name(script).to_owned() }
                }
                Cause::Completion { parent, delay } => {
                    OwnCause::Completion { parent, delay_ns: delay.as_nanos() }
                }
                Cause::Load { delay } => OwnCause::Load { delay_ns: delay.as_nanos() },
                Cause::Beside => OwnCause::Beside,
            },
            think_ns: resource.think.as_nanos(),
            exec_ns: resource.exec.as_nanos(),
            after_load: resource.after_load,
            scripted: resource.scripted,
            priority: resource.priority.map(|p| priority_name(p).to_owned()),
        }
    }
}

/// Restores a page that [`write`] wrote.
pub(crate) fn read_back(record: PageRecord, entries: Vec<(usize, Entry)>, file: &str) -> Result<Page, Error> {
    let shape = |e: serde_json::Error| Fault::Shape(e.to_string());
    let own: OwnPage = serde_json::from_value(record.velodrome.unwrap_or_default())
        .map_err(|e| Error::of_field(file, "log.pages[]._velodrome", shape(e)))?;
    let ns = |ns: Option<u64>| ns.map(Duration::from_nanos);
    let mut page = Page {
        id: own.id,
        title: own.title,
        url: String::new(),
        source: Source { file: own.file, page: own.page },
        hosts: own
            .hosts
            .into_iter()
            .map(|h| Host {
                name: h.name,
                scheme_tls: h.tls,
                port: h.port,
                rtt: ns(h.rtt_ns),
                dns: ns(h.dns_ns),
                address: h.address,
            })
            .collect(),
        resources: Vec::with_capacity(entries.len()),
        tail: Duration::from_nanos(own.tail_ns),
        recorded: Recorded {
            on_load: ns(own.on_load_ns),
            on_content_load: ns(own.on_content_load_ns),
            first_paint: ns(own.first_paint_ns),
            recorder: own.recorder,
            browser: own.browser,
        },
        assumptions: own
            .assumptions
            .into_iter()
            .map(|(kind, detail, count)| Assumption { kind, detail, count })
            .collect(),
    };
    for (index, entry) in entries {
        let resource = resource(entry, &page.hosts).map_err(|(field, fault)| Error {
            file: file.into(),
            entry: Some(index),
            url: None,
            field: Some(field.into()),
            fault,
        })?;
        page.resources.push(resource);
    }
    page.validate().map_err(|invalid| Error::of_file(file, Fault::Invalid(invalid)))?;
    page.url = page.resource_url(0);
    Ok(page)
}

fn resource(entry: Entry, hosts: &[Host]) -> Result<Resource, (&'static str, Fault)> {
    let own: OwnEntry = serde_json::from_value(entry.velodrome.unwrap_or_default())
        .map_err(|e| ("_velodrome", Fault::Shape(e.to_string())))?;
    let request = entry.request.unwrap_or_default();
    let response = entry.response.unwrap_or_default();
    let url = Url::parse(&request.url).map_err(|_| ("request.url", Fault::NotAUrl("no HTTP URL".into())))?;
    let here = |h: &Host| (h.scheme_tls, &h.name, h.port) == (url.tls, &url.host, url.port);
    let host = hosts
        .iter()
        .position(here)
        .ok_or(("request.url", Fault::NotAUrl("its host is not among the page's".into())))?;
    let unknown = |what: &str| ("_velodrome", Fault::Shape(format!("{what:?}: not known here")));
    let cause = match own.cause {
        OwnCause::Root => Cause::Root,
        OwnCause::Redirect { parent } => Cause::Redirect(parent),
        OwnCause::Parser { parent, offset, script } => {
            let script = [ScriptMode::Sync, ScriptMode::Async, ScriptMode::Defer]
                .into_iter()
                .find(|m| mode_name(*m) == script)
                .ok_or_else(|| unknown(&script))?;
            Cause::Parser { parent, offset, script }
        }
        OwnCause::Completion { parent, delay_ns } => {
            Cause::Completion { parent, delay: Duration::from_nanos(delay_ns) }
        }
        OwnCause::Load { delay_ns } => Cause::Load { delay: Duration::from_nanos(delay_ns) },
        OwnCause::Beside => Cause::Beside,
    };
    let priority = match &own.priority {
        None => None,
        Some(name) => Some(PRIORITIES.into_iter().find(|p| priority_name(*p) == name).ok_or(unknown(name))?),
    };
    let fields = |headers: Option<Vec<Header>>| {
        let mut fields = Fields::new();
        for header in headers.unwrap_or_default() {
            fields.push(header.name.0, header.value.0);
        }
        fields
    };
    let size = crate::har::entry::size_of;
    Ok(Resource {
        host: host as u32,
        method: request.method.0.into(),
        path: url.path.into(),
        kind: Kind::ALL.into_iter().find(|k| k.name() == own.kind).ok_or_else(|| unknown(&own.kind))?,
        request: fields(request.headers),
        response: fields(response.headers),
        status: response.status.get().unwrap_or(0.0) as u16,
        request_body_len: size(&request.body_size, "request.bodySize")?.unwrap_or(0),
        body_len: size(&response.body_size, "response.bodySize")?.unwrap_or(0),
        think: Duration::from_nanos(own.think_ns),
        cause,
        exec: Duration::from_nanos(own.exec_ns),
        after_load: own.after_load,
        scripted: own.scripted,
        priority,
    })
}

const PRIORITIES: [Priority; 5] =
    [Priority::VeryLow, Priority::Low, Priority::Medium, Priority::High, Priority::VeryHigh];

/// Chrome's names.
fn priority_name(priority: Priority) -> &'static str {
    match priority {
        Priority::VeryLow => "VeryLow",
        Priority::Low => "Low",
        Priority::Medium => "Medium",
        Priority::High => "High",
        Priority::VeryHigh => "VeryHigh",
    }
}

fn mode_name(mode: ScriptMode) -> &'static str {
    match mode {
        ScriptMode::Sync => "sync",
        ScriptMode::Async => "async",
        ScriptMode::Defer => "defer",
    }
}

/// Chrome's names.
fn resource_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Style => "stylesheet",
        kind => kind.name(),
    }
}
