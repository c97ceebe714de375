//! What breaks, as switches: `fault=…`, `blackhole=…`, `network-change=…`, `restart=…`.
//!
//! They are no techniques, but what techniques are against. They stand beside them in a plan because a race with
//! them is told by the same words, and because what a browser does about a fault is a technique.

use std::fmt;

use base::{Duration, Instant};
use origin::{Fault, FaultKind, Often, Whom};
use page::Page;

use crate::error::Error;
use crate::network::Network;
use crate::setting::ms;

/// Bytes of a body before a reset at most: more than any page has.
const BYTES_MAX: u64 = 1 << 40;

/// The latest moment and the longest time of a fault, milliseconds: ten minutes, by when every load is given up.
const MS_MAX: f64 = 600_000.0;

/// A fault's kinds as they are written.
const KINDS: [&str; 4] = ["refuse", "hang", "reset", "vanish"];

/// `KIND[:WHOM][:OFTEN][@AT]`: `refuse:cdn.example`, `reset:0.01@20000`, `hang:/app.js:once`, `vanish:a.example@2000`. `None` if it
/// is none.
pub(super) fn read(text: &str) -> Option<Fault> {
    let (text, at) = match text.split_once('@') {
        Some((text, at)) => (text, Some(at)),
        None => (text, None),
    };
    let mut parts = text.split(':');
    let kind = parts.next()?;
    let (mut whom, mut often) = (None, None);
    for part in parts {
        match read_often(part) {
            Some(read) => often.replace(read).map_or(Some(()), |_| None)?,
            None => whom.replace(read_whom(part)?).map_or(Some(()), |_| None)?,
        }
    }
    let bytes = |at: &str| at.parse().ok().filter(|bytes| *bytes <= BYTES_MAX);
    let kind = match (kind, at) {
        ("refuse", None) => FaultKind::Refuse,
        ("hang", None) => FaultKind::Hang,
        ("reset", at) => FaultKind::Reset { after: at.map(|at| bytes(at).ok_or(())).transpose().ok()? },
        ("vanish", at) => FaultKind::Vanish { at: at.map_or(Some(Duration::ZERO), read_ms)? },
        _ => return None,
    };
    // Whole hosts refuse and vanish; one that is gone is gone.
    let of_host = matches!(kind, FaultKind::Refuse | FaultKind::Vanish { .. });
    let vanishes = matches!(kind, FaultKind::Vanish { .. });
    match (&whom, often) {
        (Some(Whom::Resource(..)), _) if of_host => None,
        (_, Some(Often::Once)) if vanishes => None,
        _ => Some(Fault { kind, whom: whom.unwrap_or(Whom::All), often: often.unwrap_or(Often::Always) }),
    }
}

fn read_often(text: &str) -> Option<Often> {
    match text.parse::<f64>() {
        _ if text == "once" => Some(Often::Once),
        Ok(share) if share > 0.0 && share <= 1.0 => Some(Often::Share(share)),
        _ => None,
    }
}

fn read_whom(text: &str) -> Option<Whom> {
    let is_host = |host: &str| host.contains('.') && host.parse::<f64>().is_err();
    match text.split_once('/') {
        Some(("", path)) => Some(Whom::Resource(None, format!("/{path}"))),
        Some((host, path)) if is_host(host) => {
            Some(Whom::Resource(Some(host.to_ascii_lowercase()), format!("/{path}")))
        }
        None if is_host(text) => Some(Whom::Host(text.to_ascii_lowercase())),
        _ => None,
    }
}

/// Milliseconds, without a unit.
pub(super) fn read_ms(text: &str) -> Option<Duration> {
    text.parse().ok().filter(|time| (0.0..=MS_MAX).contains(time)).map(ms)
}

/// `FROM+FOR`.
pub(super) fn read_span(text: &str) -> Option<(Duration, Duration)> {
    let (from, lasts) = text.split_once('+')?;
    Some((read_ms(from)?, read_ms(lasts).filter(|lasts| !lasts.is_zero())?))
}

/// A fault as [`read`] takes it.
pub(super) struct Written<'a>(pub &'a Fault);

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { kind, whom, often } = self.0;
        let (name, at) = match kind {
            FaultKind::Refuse => (KINDS[0], None),
            FaultKind::Hang => (KINDS[1], None),
            FaultKind::Reset { after } => (KINDS[2], after.map(|bytes| bytes.to_string())),
            FaultKind::Vanish { at } => (KINDS[3], (!at.is_zero()).then(|| at.as_millis_f64().to_string())),
        };
        f.write_str(name)?;
        match whom {
            Whom::All => {}
            Whom::Host(host) => write!(f, ":{host}")?,
            Whom::Resource(host, path) => write!(f, ":{}{path}", host.as_deref().unwrap_or_default())?,
        }
        match often {
            Often::Always => {}
            Often::Once => f.write_str(":once")?,
            Often::Share(share) => write!(f, ":{share}")?,
        }
        at.map_or(Ok(()), |at| write!(f, "@{at}"))
    }
}

/// What of a setup's links and faults these are.
pub(super) fn blackhole(setup: &mut load::Setup, from: Duration, lasts: Duration) {
    let outage = link::Outage { from: Instant::ZERO + from, lasts };
    let faults = &mut setup.faults;
    let after = faults.network_change.iter_mut().flat_map(|change| [&mut change.down, &mut change.up]);
    for path in [&mut setup.down, &mut setup.up].into_iter().chain(after) {
        path.outages.push(outage);
    }
}

/// The network that a change leads to, on which a name costs what it costs there.
pub(super) fn network_change(at: Duration, to: &str) -> Result<load::NetworkChange, Error> {
    let network = Network::named(to)?;
    let (down, up) = network.paths()?;
    Ok(load::NetworkChange { at, down, up, dns: ms(network.dns_ms) })
}

/// Whether one of these pages has what a fault is meant for.
pub(super) fn befalls(fault: &Fault, pages: &[Page]) -> bool {
    let named = |host: &Option<String>, page: &Page, id: u32| {
        host.as_ref().is_none_or(|host| page.hosts[id as usize].name.eq_ignore_ascii_case(host))
    };
    pages.iter().any(|page| match &fault.whom {
        Whom::All => true,
        Whom::Host(host) => page.hosts.iter().any(|h| h.name.eq_ignore_ascii_case(host)),
        Whom::Resource(host, path) => {
            page.resources.iter().any(|r| r.path == path.as_bytes() && named(host, page, r.host))
        }
    })
}
