//! A small run folder, made of the lab's own rows.

#![allow(dead_code, reason = "each test file uses a part")]

use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use lab::result::{
    AssumptionRow, ConnectionRow, Key, LoadOutcome, LoadRow, PageRow, Phases, ProblemRow, RequestOutcome,
    RequestRow, emit,
};
use lab::stats::Estimate;
use lab::summary::{
    Comparison, NetworkSummary, PagePair, PhaseMean, Published, Summary, TransportSummary, Unit,
};
use serde::Serialize;

pub const NETWORK: &str = "seed";
pub const TRANSPORTS: [&str; 2] = ["http1", "spdy3.1"];
pub const RUNS: u32 = 3;
/// Requests of every load.
pub const REQUESTS: u32 = 5;

/// What would run if a title ever became HTML.
pub const HOSTILE: &str = "</script><script>document.documentElement.dataset.hostile = 1</script>\
                           <img src=x onerror=\"document.documentElement.dataset.hostile = 1\">";

/// A folder below the system's temporary one; removed when dropped.
pub struct Dir(PathBuf);

impl Dir {
    /// A new, empty folder. `name` tells tests of one process apart.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("velodrome-report-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the temporary folder can be written");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A run of `pages` pages over both transports. Page 0 has a hostile title; page 1 failed once over HTTP/1.1.
pub fn run_folder(name: &str, pages: u32) -> Dir {
    let dir = Dir::new(name);
    let (mut loads, mut requests, mut connections, mut page_rows) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for page in 0..pages {
        emit(&page_row(page), &mut page_rows);
        for transport in TRANSPORTS {
            for run in 0..RUNS {
                let key =
                    Key { page: page_id(page), network: NETWORK.into(), transport: transport.into(), run };
                emit(&load_row(page, &key), &mut loads);
                (0..REQUESTS).for_each(|i| emit(&request_row(&key, i), &mut requests));
                let opened = if transport == "http1" { 3 } else { 1 };
                (0..opened).for_each(|i| emit(&connection_row(&key, i), &mut connections));
            }
        }
    }
    let write = |file: &str, bytes: &[u8]| std::fs::write(dir.path().join(file), bytes).expect("writable");
    write("loads.jsonl", &loads);
    write("requests.jsonl", &requests);
    write("connections.jsonl", &connections);
    write("pages.jsonl", &page_rows);
    write("plan.toml", b"seed = 7\n");
    write("environment.json", b"{\"velodrome\":\"0.1.0\"}");
    write("summary.json", &json(&summary(pages)));
    dir
}

pub fn page_id(page: u32) -> String {
    format!("page-{page}")
}

/// PLT of a load of a page; runs differ, and SPDY takes three quarters.
pub fn plt_us(page: u32, transport: &str, run: u32) -> u64 {
    let http = 2_000_000 + 100_000 * u64::from(page) + [70_000, 0, 20_000][run as usize];
    if transport == "http1" { http } else { http * 3 / 4 }
}

fn page_row(page: u32) -> PageRow {
    PageRow {
        page: page_id(page),
        title: if page == 0 { HOSTILE.into() } else { format!("Page {page}") },
        url: if page == 0 { "javascript:alert(1)".into() } else { format!("http://www{page}.example/") },
        hosts: 2,
        requests: REQUESTS,
        bytes: 120_000,
        on_load_us: Some(2_500_000),
        source: "recorded.har".into(),
        fingerprint: "0123456789abcdef".into(),
        assumptions: vec![assumption()],
    }
}

fn assumption() -> AssumptionRow {
    AssumptionRow { kind: "size".into(), detail: "sizes are those of the content".into(), count: 3 }
}

fn load_row(page: u32, key: &Key) -> LoadRow {
    let failed = page == 1 && key.transport == "http1" && key.run == 0;
    let plt = plt_us(page, &key.transport, key.run);
    LoadRow {
        key: key.clone(),
        seed: "00000000000000ff".into(),
        outcome: if failed { LoadOutcome::Incomplete } else { LoadOutcome::Complete },
        reason: failed.then(|| "1 request failed".into()),
        plt_us: Some(plt),
        first_paint_us: Some(plt / 2),
        parsed_us: Some(plt * 3 / 4),
        first_byte_us: Some(250_000),
        finished_us: Some(plt + 100_000),
        requests: REQUESTS,
        failed: u32::from(failed),
        connections: if key.transport == "http1" { 3 } else { 1 },
        lookups: 2,
        bytes_down: 130_000,
        bytes_up: 5_000,
        packets_down: 100,
        packets_up: 60,
        lost_down: 0,
        lost_up: 0,
        overflow_down: 1,
        overflow_up: 0,
        retransmits: 1,
        timeouts: 0,
        compute_us: 90_000,
        queue_max_down_bytes: 20_000,
        critical: (!failed).then(|| Phases {
            wait_us: plt / 2,
            receive_us: plt - plt / 2,
            ..Phases::default()
        }),
        ahead: None,
        unasked: None,
    }
}

fn request_row(key: &Key, index: u32) -> RequestRow {
    let start = 300_000 * u64::from(index);
    let first = index == 0;
    RequestRow {
        key: key.clone(),
        index,
        parent: (!first).then_some(0),
        url: format!("http://www.example/{index}"),
        kind: ["document", "style", "script", "image", "image"][index as usize].into(),
        host: if index < 3 { "www.example".into() } else { "img.example".into() },
        connection: Some(if key.transport == "http1" { index % 3 } else { 0 }),
        status: Some(200),
        outcome: RequestOutcome::Complete,
        reason: None,
        discovered_us: start,
        dns_start_us: first.then_some(start),
        dns_end_us: first.then_some(start + 30_000),
        connect_start_us: first.then_some(start + 30_000),
        connect_end_us: first.then_some(start + 130_000),
        tls_end_us: None,
        sent_us: Some(start + 130_000),
        first_byte_us: Some(start + 250_000),
        complete_us: Some(start + 400_000),
        used_us: Some(start + 420_000),
        priority: 2,
        head_up_bytes: 400,
        head_down_bytes: 300,
        body_bytes: 24_000,
        cache: None,
        ahead: None,
        needed_us: None,
        after_load: false,
    }
}

fn connection_row(key: &Key, connection: u32) -> ConnectionRow {
    ConnectionRow {
        key: key.clone(),
        connection,
        host: "www.example".into(),
        address: "10.0.0.1".into(),
        protocol: if key.transport == "http1" { "http/1.1".into() } else { "spdy/3.1".into() },
        opened_us: 30_000,
        connected_us: Some(130_000),
        secured_us: None,
        closed_us: None,
        requests: if connection == 2 { 0 } else { 2 },
        bytes_up: 800,
        bytes_down: 48_000,
        segments_down: 40,
        retransmits: 0,
        timeouts: 0,
        // One was opened for nothing.
        purpose: (connection == 2).then(|| "speculative".into()),
    }
}

fn summary(pages: u32) -> Summary {
    let estimate = |value: f64| Some(Estimate { value, low: Some(value - 1.0), high: Some(value + 1.0) });
    let loads = u64::from(pages * RUNS);
    let transport = |name: &str, plt_ms: f64| TransportSummary {
        transport: name.into(),
        loads,
        complete: loads,
        requests_failed: 1,
        plt_ms: estimate(plt_ms),
        first_paint_ms: estimate(plt_ms / 2.0),
        connections: 3.0,
        bytes_down: 130_000.0,
        bytes_up: 5_000.0,
        retransmits: 1.0,
        timeouts: 0.0,
        overflows: 1.0,
        troubles: None,
        unasked: None,
        ahead: None,
        phases: ["wait", "receive"].map(|p| PhaseMean { phase: p.into(), ms: plt_ms / 2.0 }).into(),
    };
    let pair =
        PagePair { page: page_id(0), run: None, first_ms: 2_020.0, other_ms: 1_515.0, speedup_pct: 25.0 };
    let comparison = Comparison {
        first: TRANSPORTS[0].into(),
        other: TRANSPORTS[1].into(),
        pairs: pages,
        faster: pages,
        slower: 0,
        mean_speedup_pct: estimate(25.0),
        median_speedup_pct: estimate(25.0),
        sign_test_p: Some(0.25),
        gains: vec![pair.clone()],
        losses: vec![pair],
        why: vec!["505 ms less waiting for a connection".into()],
        published: Some(Published {
            source: "an experiment".into(),
            figure: "about 40 %".into(),
            mean_speedup_pct: 40.0,
            differs: vec!["other pages".into()],
        }),
    };
    Summary {
        // One more than JavaScript's numbers hold exactly.
        seed: (1 << 53) + 1,
        runs: RUNS,
        transports: TRANSPORTS.map(str::to_owned).into(),
        pages,
        loads: 2 * loads,
        loads_planned: 2 * loads + 1,
        unit: Unit::Page,
        assumptions: vec![assumption()],
        problems: vec![ProblemRow {
            file: "bad.har".into(),
            entry: Some(4),
            field: None,
            what: "truncated".into(),
        }],
        networks: vec![NetworkSummary {
            network: NETWORK.into(),
            conditions: vec!["2000/386 kbit/s down/up, 100 ms round trip".into()],
            transports: vec![transport(TRANSPORTS[0], 2_000.0), transport(TRANSPORTS[1], 1_500.0)],
            comparisons: vec![comparison],
            accounts: vec!["http1: of 3 connections a load 1 was opened ahead of need".into()],
        }],
        notes: vec!["a note".into()],
    }
}

pub fn json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("serialises")
}

/// What the block called `id` of a page holds.
pub fn unpack(html: &str, id: &str) -> serde_json::Value {
    let open = format!("<script type=\"text/plain\" id=\"data-{id}\">");
    let from = html.find(&open).expect("the block is there") + open.len();
    let to = from + html[from..].find('<').expect("the block ends");
    let deflated = base64::engine::general_purpose::STANDARD.decode(&html[from..to]).expect("Base64");
    let mut text = String::new();
    flate2::read::ZlibDecoder::new(&deflated[..]).read_to_string(&mut text).expect("deflated text");
    serde_json::from_str(&text).expect("JSON")
}
