//! Published figures to set beside ours, with what differs. A small table: what an experiment was, never what ours
//! should give.

use crate::network::Network;
use crate::result::PageRow;
use crate::summary::{Comparison, Published};
use crate::words::{changed, sites};

struct Claim {
    /// The profile that stands for its network.
    network: &'static str,
    /// What was compared, by the beginnings of transports' names.
    transports: (&'static str, &'static str),
    source: &'static str,
    figure: &'static str,
    mean_speedup_pct: f64,
    pages: &'static str,
    /// What differs whatever the plan says.
    differs: &'static [&'static str],
}

const CLAIMS: [Claim; 3] = [
    Claim {
        network: "seed",
        transports: ("http1", "spdy"),
        source: "SPDY's authors, scatter of SPDY against HTTP",
        figure: "SPDY almost always faster, about 40 % on average",
        mean_speedup_pct: 40.0,
        pages: "the top 300 sites, as static copies",
        differs: &[
            "theirs was Chrome with its own computation, on servers with an initial cwnd of 2–3",
            "theirs does not give its queues",
        ],
    },
    Claim {
        network: "whitepaper-dsl",
        transports: ("http1", "spdy"),
        source: "the SPDY whitepaper, Chromium, 2009",
        figure: "3111.9 ms over HTTP, 2242.8 ms over SPDY to several domains: 27.93 % less",
        mean_speedup_pct: 27.93,
        pages: "25 of the top 100 sites, 10 runs",
        differs: WHITEPAPER,
    },
    Claim {
        network: "whitepaper-cable",
        transports: ("http1", "spdy"),
        source: "the SPDY whitepaper, Chromium, 2009",
        figure: "2348.2 ms over HTTP, 1325.5 ms over SPDY to several domains: 43.55 % less",
        mean_speedup_pct: 43.55,
        pages: "25 of the top 100 sites, 10 runs",
        differs: WHITEPAPER,
    },
];

const WHITEPAPER: &[&str] = &[
    "theirs is the gain in the mean of page load times, ours the mean of the pages' gains",
    "theirs gives neither its round-trip time (100 ms is taken) nor its queues",
];

/// What was published for this network and these transports, if anything.
pub(crate) fn published(network: &Network, comparison: &Comparison, pages: &[PageRow]) -> Option<Published> {
    let (first, other) = (comparison.first.as_str(), comparison.other.as_str());
    let claim = CLAIMS.iter().find(|c| {
        c.network == network.name && first.starts_with(c.transports.0) && other.starts_with(c.transports.1)
    })?;
    let generated = pages.iter().all(|p| p.source.starts_with("corpus:"));
    let ours = if generated { "generated".to_owned() } else { format!("of {} sites", sites(pages)) };
    let mut differs = vec![format!("their pages: {}; ours: {}, {ours}", claim.pages, pages.len())];
    if other != "spdy2" {
        differs.push(format!("theirs spoke the SPDY of its time, 2 at most; ours is {other}"));
    }
    differs.extend(claim.differs.iter().map(|s| (*s).to_owned()));
    differs.extend(changed(network).into_iter().map(|what| format!("ours was changed: {what}")));
    Some(Published {
        source: claim.source.to_owned(),
        figure: claim.figure.to_owned(),
        mean_speedup_pct: claim.mean_speedup_pct,
        differs,
    })
}
