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

/// A row of the whitepaper's table of means, in milliseconds, at 1 % loss.
pub(crate) struct Mean {
    /// What carried the pages.
    pub what: &'static str,
    pub dsl_ms: f64,
    pub cable_ms: f64,
}

/// The whitepaper's means over 25 of the top 100 sites, plain HTTP first.
pub(crate) const WHITEPAPER_MEANS: [Mean; 7] = [
    Mean { what: "HTTP", dsl_ms: 3_111.9, cable_ms: 2_348.2 },
    Mean { what: "SPDY, several domains, TCP", dsl_ms: 2_242.8, cable_ms: 1_325.5 },
    Mean { what: "SPDY, one domain, TCP", dsl_ms: 1_695.7, cable_ms: 933.8 },
    Mean { what: "SPDY, one domain, TCP, server push", dsl_ms: 1_671.3, cable_ms: 950.8 },
    Mean { what: "SPDY, one domain, TCP, server hint", dsl_ms: 1_608.9, cable_ms: 856.4 },
    Mean { what: "SPDY, one domain, TLS", dsl_ms: 1_899.7, cable_ms: 1_099.4 },
    Mean { what: "SPDY, one domain, TLS, client prefetch", dsl_ms: 1_781.9, cable_ms: 1_047.3 },
];

/// A row of the whitepaper's tables over loss and over round-trip time, in milliseconds.
pub(crate) struct Pair {
    /// Percent of packets, or milliseconds of round trip.
    pub at: f64,
    pub http_ms: f64,
    pub spdy_ms: f64,
}

const fn pair(at: f64, http_ms: f64, spdy_ms: f64) -> Pair {
    Pair { at, http_ms, spdy_ms }
}

/// The whitepaper's means by loss.
pub(crate) const WHITEPAPER_LOSSES: [Pair; 6] = [
    pair(0.0, 1_152.0, 1_016.0),
    pair(0.5, 1_638.0, 1_105.0),
    pair(1.0, 2_060.0, 1_200.0),
    pair(1.5, 2_372.0, 1_394.0),
    pair(2.0, 2_904.0, 1_537.0),
    pair(2.5, 3_028.0, 1_707.0),
];

/// The whitepaper's means by round-trip time.
pub(crate) const WHITEPAPER_RTTS: [Pair; 7] = [
    pair(20.0, 1_240.0, 1_087.0),
    pair(40.0, 1_571.0, 1_279.0),
    pair(60.0, 1_909.0, 1_526.0),
    pair(80.0, 2_268.0, 1_727.0),
    pair(120.0, 2_927.0, 2_240.0),
    pair(160.0, 3_650.0, 2_772.0),
    pair(200.0, 4_498.0, 3_293.0),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_claims_of_the_whitepaper_are_those_of_its_table() {
        let [http, several, ..] = &WHITEPAPER_MEANS;
        let gain = |without: f64, with: f64| 100.0 * (without - with) / without;
        let claimed = |network: &str| {
            CLAIMS.iter().find(|claim| claim.network == network).expect("a claim").mean_speedup_pct
        };
        assert!((gain(http.dsl_ms, several.dsl_ms) - claimed("whitepaper-dsl")).abs() < 0.01);
        assert!((gain(http.cable_ms, several.cable_ms) - claimed("whitepaper-cable")).abs() < 0.01);
    }
}
