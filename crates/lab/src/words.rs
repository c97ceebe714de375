//! What figures mean, in sentences: conditions, reasons, warnings. Every sentence is made from the plan or from measured
//! values; none is an outcome that was known before.

use std::collections::BTreeSet;

use crate::network::{Network, PROFILES};
use crate::plan::Plan;
use crate::result::PageRow;
use crate::setting::{Compute, HostRtt, Line, Pacing, RecordSizing, Stack, Think, Tls, WindowScaling, World};
use crate::summary::{NetworkSummary, Summary, TransportSummary, Unit};

/// A network's conditions, one line for the link, one for the stacks, one for the rest, and one for what was changed
/// in a profile.
pub(crate) fn conditions(n: &Network) -> Vec<String> {
    let lines = match (&n.down, &n.up) {
        (Line::Kbps(down), Line::Kbps(up)) => format!("{down}/{up} kbit/s down/up"),
        (down, up) => format!("{down} down, {up} up"),
    };
    let jitter = if n.jitter_ms > 0.0 { format!(" + jitter to {} ms", n.jitter_ms) } else { String::new() };
    let loss = match (n.loss_down_pct, n.loss_up_pct) {
        (0.0, 0.0) => "no random loss".to_owned(),
        (down, up) if down == up => format!("{down} % loss each way"),
        (down, up) => format!("{down}/{up} % loss down/up"),
    };
    let burst = if n.loss_burst_packets > 1.0 {
        format!(" in runs of {} packets", n.loss_burst_packets)
    } else {
        String::new()
    };
    let link = format!(
        "{lines}, {} ms round trip{jitter}, {loss}{burst}, {} queues of {}/{} bytes",
        n.rtt_ms, n.queue_discipline, n.queue_down_bytes, n.queue_up_bytes
    );
    let stack = match n.stack {
        Stack::Linux2010 => "TCP of Linux 2010",
        Stack::Today => "TCP of Linux today",
    };
    let records = match n.record_sizing {
        RecordSizing::Fixed => format!("{}-byte records", n.record_bytes),
        rule => format!("records by '{rule}'"),
    };
    let windows = if n.window_scaling == WindowScaling::Off { ", no window scaling" } else { "" };
    let paced = if n.pacing == Pacing::On { ", paced" } else { "" };
    let tls = match n.tls {
        Tls::None => "no TLS".to_owned(),
        mode => format!("TLS {mode} ({}; {}-byte chain, {records})", n.tls_scope, n.cert_chain_bytes),
    };
    let stacks = format!(
        "{stack}: initial cwnd {}, initial receive window {} bytes, SYN timeout {} ms, {}{windows}{paced}; {tls}; \
         SPDY as {}; at most {} HTTP/1.1 connections a host",
        n.initial_cwnd, n.initial_rwnd_bytes, n.syn_timeout_ms, n.congestion, n.spdy, n.connections_per_host
    );
    let think = match n.think {
        Think::Recorded => "servers think as recorded".to_owned(),
        Think::None => "servers answer at once".to_owned(),
        Think::FixedMs(ms) => format!("servers think {ms} ms"),
    };
    let compute = match n.compute {
        Compute(1.0) => "the browser computes as recorded".to_owned(),
        Compute(0.0) => "the browser computes nothing".to_owned(),
        Compute(factor) => format!("the browser computes {factor} times as recorded"),
    };
    let hosts = match n.host_rtt {
        HostRtt::Equal => "hosts equally far".to_owned(),
        HostRtt::Recorded => "hosts further by what was recorded".to_owned(),
        HostRtt::SpreadMs(ms) => format!("hosts up to {ms} ms further"),
    };
    let mut out = vec![link, stacks, format!("name look-up {} ms, {think}, {compute}, {hosts}", n.dns_ms)];
    let changed = changed(n);
    if !changed.is_empty() {
        out.push(format!("changed in profile {}: {}", n.name, changed.join(", ")));
    }
    out
}

/// What differs from the profile whose name the network bears: `initial_cwnd 10 (profile: 3)`.
pub(crate) fn changed(n: &Network) -> Vec<String> {
    if PROFILES.iter().all(|p| p.name != n.name) {
        return Vec::new();
    }
    let table = |n: &Network| toml::Table::try_from(n).expect("a network is a table");
    let own = Network::named(&n.name).expect("a profile's name");
    let own = table(&own);
    let plain = |v: &toml::Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    // TOML tables order their keys by name.
    table(n)
        .iter()
        .filter(|(key, value)| own.get(*key) != Some(value))
        .map(|(key, value)| {
            format!("{key} {} (profile: {})", plain(value), own.get(key).map_or_else(String::new, plain))
        })
        .collect()
}

/// What a transport's page load time was spent on, in words that follow "ms less" or "ms more".
const SPENT_ON: [(&str, &str); 7] = [
    ("dns", "on name look-ups"),
    ("connect", "on TCP handshakes"),
    ("tls", "on TLS handshakes"),
    ("queued", "waiting for a connection that is free"),
    ("wait", "between a request and the first byte of its response"),
    ("receive", "receiving"),
    ("compute", "computing"),
];

/// A share of the page load time below which a difference is not worth a sentence.
const WORTH_SAYING: f64 = 0.01;

/// A share of the page load time from which on it is worth saying that a part of it cannot be gained.
const FLOOR: f64 = 0.25;

/// Why one transport is faster or slower than another: the parts of the mean page load time that differ, largest
/// first, and what else differs with them.
pub(crate) fn why(network: &Network, first: &TransportSummary, other: &TransportSummary) -> Vec<String> {
    let total = |t: &TransportSummary| t.phases.iter().map(|p| p.ms).sum::<f64>();
    let (before, after) = (total(first), total(other));
    if first.complete == 0 || other.complete == 0 || before <= 0.0 {
        return Vec::new();
    }
    let (a, b) = (&first.transport, &other.transport);
    let mut out =
        vec![format!("on the critical path, {before:.0} ms with {a} become {after:.0} ms with {b} (means):")];
    let mut parts: Vec<_> = SPENT_ON
        .iter()
        .zip(first.phases.iter().zip(&other.phases))
        .map(|((_, words), (p, q))| (*words, p.ms, q.ms))
        .filter(|(_, p, q)| (q - p).abs() >= WORTH_SAYING * before)
        .collect();
    parts.sort_by(|x, y| (y.2 - y.1).abs().total_cmp(&(x.2 - x.1).abs()));
    for (words, p, q) in parts {
        let (by, way) = ((q - p).abs(), if q < p { "less" } else { "more" });
        out.push(format!("{by:.0} ms {way} {words} ({p:.0} → {q:.0})"));
    }
    let differs = |p: f64, q: f64, least: f64| (q - p).abs() >= least.max(0.1 * p.max(q));
    if differs(first.connections, other.connections, 1.0) {
        out.push(format!("{:.1} → {:.1} connections opened a load", first.connections, other.connections));
    }
    if differs(first.bytes_up, other.bytes_up, 1_000.0) {
        out.push(format!("{:.1} → {:.1} kB sent up a load", first.bytes_up / 1e3, other.bytes_up / 1e3));
    }
    for (p, q, what) in [
        (first.retransmits, other.retransmits, "segments sent again a load"),
        (first.timeouts, other.timeouts, "retransmission timeouts a load"),
        (first.overflows, other.overflows, "packets dropped by a full queue a load"),
    ] {
        if differs(p, q, 0.5) {
            out.push(format!("{p:.1} → {q:.1} {what}"));
        }
    }
    let line_ms =
        network.down.bitrate().map(|rate| rate.time_to_send(other.bytes_down as u64).as_millis_f64());
    if let Some(line_ms) = line_ms.filter(|ms| *ms >= FLOOR * after) {
        out.push(format!(
            "what {b} sends down takes the link {line_ms:.0} ms at its rate, whatever carries it: no more than the rest \
             can be gained"
        ));
    }
    let compute = first.phases.iter().find(|p| p.phase == "compute").map_or(0.0, |p| p.ms);
    if compute >= 0.1 * before {
        out.push(format!(
            "{:.0} % of {a}'s time is computation, which no transport shortens",
            100.0 * compute / before
        ));
    }
    out
}

/// What a transport's loads opened and asked for ahead of need, and what of it was of use.
pub(crate) fn accounts(t: &TransportSummary) -> Vec<String> {
    let mut out = Vec::new();
    let name = &t.transport;
    if let Some(u) = t.unasked {
        for (made, used, how) in [
            (u.speculative, u.speculative_used, "ahead of need"),
            (u.spare, u.spare_used, "beside one that took long"),
            (u.alternate, u.alternate_used, "to another address beside one that took long"),
        ] {
            if made > 0.0 {
                out.push(format!(
                    "{name}: of {:.1} connections a load {made:.1} were opened {how}; {used:.1} of them carried a request, {:.1} were wasted",
                    t.connections,
                    made - used
                ));
            }
        }
    }
    if let Some(a) = t.ahead {
        let what = match (a.asked > 0.0, a.pushed > 0.0) {
            (true, true) => format!(
                "{:.1} requests a load were made ahead of need and {:.1} responses pushed",
                a.asked, a.pushed
            ),
            (true, false) => format!("{:.1} requests a load were made ahead of need", a.asked),
            (false, _) => format!("{:.1} responses a load were pushed", a.pushed),
        };
        out.push(format!(
            "{name}: {what}; {:.1} were of use, and {:.1} kB came for nothing",
            a.used,
            a.wasted_bytes / 1e3
        ));
    }
    out
}

/// What a reader should know before using a figure.
pub(crate) fn notes(plan: &Plan, pages: &[PageRow], summary: &Summary) -> Vec<String> {
    let mut out = Vec::new();
    if summary.loads < summary.loads_planned {
        out.push(format!("{} of {} loads are done; --resume goes on", summary.loads, summary.loads_planned));
    }
    let incomplete = |n: &NetworkSummary| n.transports.iter().map(|t| t.loads - t.complete).sum::<u64>();
    for n in summary.networks.iter().filter(|n| incomplete(n) > 0) {
        out.push(format!(
            "{}: {} loads are incomplete and left out, with those they would be paired with; loads.jsonl has the reasons",
            n.network,
            incomplete(n)
        ));
    }
    let sites = sites(pages);
    if summary.unit == Unit::Page && pages.len() > 1 && sites * 2 <= pages.len() {
        out.push(format!(
            "the {} pages are of {sites} sites; pages of one site are alike, so the intervals, which take pages for \
             independent, are too narrow",
            pages.len()
        ));
    }
    if !plan.techniques.is_empty() {
        let all: Vec<_> = plan.techniques.iter().map(|t| format!("{t} ({})", t.about())).collect();
        out.push(format!("with {}", all.join("; with ")));
    }
    for n in &plan.networks {
        match (plan.is_random_on(n), plan.runs) {
            (false, 2..) => out.push(format!("{}: nothing is random, so its runs are all alike", n.name)),
            (true, 1) if plan.world == World::Live => {
                out.push(format!("{}: no two live loads are alike, and each page was loaded once", n.name))
            }
            (true, 1) => {
                let what = if n.is_random() { "loss or jitter is" } else { "what breaks is" };
                out.push(format!("{}: {what} random, and each page was loaded once", n.name))
            }
            _ => {}
        }
    }
    out
}

/// What a live run says of itself.
pub(crate) fn live_notes((unmet, late): crate::agree::Notes) -> Vec<String> {
    let mut out =
        vec!["loads were live: over the kernel's TCP and an emulated link, in real time".to_owned()];
    if let Some([median, worst]) = late {
        out.push(format!(
            "99 of 100 packets were delivered within {median} µs of their time in the median load, within {worst} µs in the worst"
        ));
    }
    out.extend(
        unmet.into_iter().map(|(what, loads)| format!("not as the plan says, in {loads} loads: {what}")),
    );
    out
}

/// The sites that pages are of, as far as the registrable domain of their first host tells.
pub(crate) fn sites(pages: &[PageRow]) -> usize {
    let site = |p: &PageRow| {
        let rest = p.url.split_once("://").map_or(p.url.as_str(), |(_, rest)| rest);
        let host = rest.split(['/', ':', '?', '#']).next().unwrap_or(rest);
        client::registrable_domain(host).to_owned()
    };
    pages.iter().map(site).collect::<BTreeSet<_>>().len()
}
