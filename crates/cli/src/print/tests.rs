use lab::result::ProblemRow;
use lab::summary::{PhaseMean, Published, TransportSummary};

use super::*;

fn estimate(value: f64, low: f64, high: f64) -> Option<Estimate> {
    Some(Estimate { value, low: Some(low), high: Some(high) })
}

fn transport(name: &str, plt: f64, connections: f64) -> TransportSummary {
    TransportSummary {
        transport: name.into(),
        loads: 7,
        complete: 7,
        requests_failed: 0,
        plt_ms: estimate(plt, plt - 100.0, plt + 100.0),
        first_paint_ms: Some(Estimate { value: 400.0, low: None, high: None }),
        connections,
        bytes_down: 1_234_567.0,
        bytes_up: 54_321.0,
        retransmits: 0.5,
        timeouts: 0.0,
        overflows: 0.5,
        troubles: None,
        unasked: None,
        ahead: None,
        phases: vec![PhaseMean { phase: "receive".into(), ms: plt }],
    }
}

fn raced() -> Summary {
    let pair = |page: &str, first_ms, other_ms, speedup_pct| PagePair {
        page: page.into(),
        run: None,
        first_ms,
        other_ms,
        speedup_pct,
    };
    let comparison = Comparison {
        first: "http1".into(),
        other: "spdy3.1".into(),
        pairs: 7,
        faster: 6,
        slower: 1,
        mean_speedup_pct: estimate(-12.34, -30.0, 5.0),
        median_speedup_pct: estimate(20.0, 10.0, 30.0),
        sign_test_p: Some(0.125),
        gains: vec![pair("a.example", 1_000.4, 500.0, 50.0)],
        losses: vec![pair("\u{e4}.example", 100.0, 150.0, -50.0)],
        why: vec!["on the critical path:".into(), "100 ms less receiving".into()],
        published: Some(Published {
            source: "somebody".into(),
            figure: "faster".into(),
            mean_speedup_pct: 40.0,
            differs: vec!["their pages were theirs".into()],
        }),
    };
    Summary {
        seed: 1,
        runs: 1,
        transports: vec!["http1".into(), "spdy3.1".into()],
        pages: 7,
        loads: 14,
        loads_planned: 14,
        unit: Unit::Page,
        assumptions: vec![AssumptionRow {
            kind: "size".into(),
            detail: "size taken from elsewhere".into(),
            count: 12,
        }],
        problems: vec![ProblemRow { file: "b.har".into(), entry: None, field: None, what: "bad".into() }],
        networks: vec![NetworkSummary {
            network: "seed".into(),
            conditions: vec!["2000/386 kbit/s".into()],
            transports: vec![transport("http1", 1_000.0, 32.04), transport("spdy3.1", 800.0, 15.0)],
            comparisons: vec![comparison],
            accounts: vec!["http1: 2.0 were opened".into(), "http1: 1.0 came for nothing".into()],
        }],
        notes: vec!["pages are alike".into()],
    }
}

#[test]
fn a_summary_reads_like_this() {
    let text = summary(&raced(), Path::new("runs/x"), Some(Path::new("runs/x/report.html")), 1.25);
    let plain = anstream::adapter::strip_str(&text).to_string();
    assert_eq!(plain, include_str!("summary.txt"));
    assert!(text.contains(&format!("{SLOWER}12.3 % slower{SLOWER:#}")));
}

#[test]
fn long_addresses_are_clipped_by_characters() {
    assert_eq!(clip("äöüß", 4), "äöüß");
    assert_eq!(clip("äöüßx", 4), "äöü…");
}
