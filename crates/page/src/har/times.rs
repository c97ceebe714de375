//! When an entry's request was asked for and answered.

use crate::error::Fault;
use crate::har::clock;
use crate::har::entry::Bad;
use crate::har::record::{Entry, Number};

/// A day. Nothing that a page load waits for takes longer, and sums of such times stay exact.
const MS_MAX: f64 = 86_400_000.0;

/// Moments in milliseconds since 1970, spans in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
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
}

/// Reads and bounds every time of an entry. `start` stands in for a missing `startedDateTime`.
pub(crate) fn read(entry: &Entry, tls: bool, start: f64, webpagetest: bool) -> Result<Times, Bad> {
    let none = Default::default();
    let timings = entry.timings.as_ref().unwrap_or(&none);
    let blocked = time(&timings.blocked, "timings.blocked")?;
    let dns = time(&timings.dns, "timings.dns")?;
    let connect = time(&timings.connect, "timings.connect")?;
    let send = time(&timings.send, "timings.send")?;
    let wait = time(&timings.wait, "timings.wait")?;
    let receive = time(&timings.receive, "timings.receive")?;
    let ssl = time(&timings.ssl, "timings.ssl")?;
    let queued = time(&timings.queued, "timings._queued")?;
    let created = time(&entry.created, "_created")?;
    let total = time(&entry.time, "time")?;

    let started = moment(&entry.started_date_time, "startedDateTime")?.unwrap_or(start);
    let lead = match (queued, created, entry.load_start.get()) {
        (Some(queued), ..) => queued,
        (None, Some(created), Some(sent)) if webpagetest => (sent - created).clamp(0.0, MS_MAX),
        _ if webpagetest => webpagetest_lead(entry),
        _ => 0.0,
    };
    let exchange = send.unwrap_or(0.0) + wait.unwrap_or(0.0) + receive.unwrap_or(0.0);
    let setup = blocked.unwrap_or(0.0) + dns.unwrap_or(0.0) + connect.unwrap_or(0.0);
    let end = match total {
        // Its start comes after the connection's set-up, which its `time` counts all the same.
        _ if webpagetest => started + exchange,
        Some(total) => started + total,
        None => started + setup + exchange,
    };
    let connect = connect.filter(|c| *c > 0.0).map(|c| match ssl.filter(|s| *s > 0.0 && *s <= c) {
        Some(ssl) => (c - ssl, true),
        // TLS is in it, of at least one round trip.
        None if tls => (c / 2.0, false),
        None => (c, dns.is_some_and(|d| d > 0.0) || webpagetest),
    });
    Ok(Times {
        start: started - lead,
        first_byte: end - receive.unwrap_or(0.0),
        end,
        wait,
        dns,
        connect,
        queue_unknown: blocked.is_none() && created.is_none(),
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

/// How long before WebPageTest's start stamp the connection was begun that the request waited for: its look-up, or its
/// handshake. A connection that was ready more than 20 ms earlier was opened ahead of need and is no part of this
/// request.
fn webpagetest_lead(entry: &Entry) -> f64 {
    let (sent, begun, ready) = (entry.load_start.get(), entry.connect_start.get(), entry.connect_end.get());
    let (Some(sent), Some(begun), Some(ready)) = (sent, begun, ready) else { return 0.0 };
    let ready = ready.max(entry.ssl_end.get().unwrap_or(0.0));
    if ready <= 0.0 || begun < 0.0 || !(-5.0..=20.0).contains(&(sent - ready)) {
        return 0.0;
    }
    match (entry.dns_start.get(), entry.dns_end.get()) {
        (Some(asked), Some(answered)) if asked >= 0.0 && (-5.0..=30.0).contains(&(begun - answered)) => {
            (sent - asked).clamp(0.0, MS_MAX)
        }
        _ => (sent - begun).clamp(0.0, MS_MAX),
    }
}
