//! The page in a browser: headless Chromium draws it, without one error on its console.
//!
//! Where no Chromium is found the tests say so and pass; with `CI` set they fail, for there one must be. `CHROMIUM`
//! names one that is not on the path.

mod common;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use common::{Dir, NETWORK, REQUESTS, RUNS, TRANSPORTS, page_id, run_folder};
use lab::result::Key;
use lab::topology::{Colour, Estimate, KnownHost, KnownRow, Predictor, StandingView};

/// How long a browser may take, starting included.
const TIME_MAX: Duration = Duration::from_secs(60);

/// A document as a browser left it, and what it said on its console.
struct Drawn {
    dom: String,
    console: Vec<String>,
}

impl Drawn {
    fn count(&self, what: &str) -> usize {
        self.dom.matches(what).count()
    }

    /// Nothing went wrong, and nothing of a title ran.
    fn assert_whole(&self) {
        assert!(self.console.is_empty(), "{:#?}", self.console);
        let root = &self.dom[..self.dom.find("<head").expect("a document")];
        assert!(root.contains("data-ready"), "{root}");
        assert!(!root.contains("data-error") && !root.contains("data-hostile"), "{root}");
    }
}

fn chromium() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = || {
        let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
        std::env::split_paths(&path).flat_map(|dir| names.map(|n| dir.join(n))).find(|p| p.is_file())
    };
    let found = named.or_else(on_path);
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "no Chromium found, and CI must have one");
        eprintln!("skipped: no Chromium found; set CHROMIUM to its path");
    }
    found
}

/// Opens `address`; `None` where there is no browser.
fn open(address: &str) -> Option<Drawn> {
    let profile = Dir::new(&format!("profile-{:x}", fingerprint(address)));
    let mut child = Command::new(chromium()?)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args([
            "--window-size=1400,1000",
            "--virtual-time-budget=20000",
            "--enable-logging=stderr",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Chromium starts");
    let (sender, both) = mpsc::channel();
    let stdout = child.stdout.take().expect("piped");
    let stderr = child.stderr.take().expect("piped");
    let read = |sender: mpsc::Sender<(bool, String)>, mut from: Box<dyn Read + Send>, dom: bool| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = from.read_to_end(&mut bytes);
            let _ = sender.send((dom, String::from_utf8_lossy(&bytes).into_owned()));
        });
    };
    read(sender.clone(), Box::new(stdout), true);
    read(sender, Box::new(stderr), false);
    let mut drawn = Drawn { dom: String::new(), console: Vec::new() };
    for _ in 0..2 {
        match both.recv_timeout(TIME_MAX) {
            Ok((true, dom)) => drawn.dom = dom,
            Ok((false, log)) => {
                drawn.console = log.lines().filter(|l| l.contains("CONSOLE")).map(str::to_owned).collect()
            }
            Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                panic!("Chromium did not draw {address} within {TIME_MAX:?}");
            }
        }
    }
    child.wait().expect("a child");
    Some(drawn)
}

/// Tells the profiles of tests that run side by side apart.
fn fingerprint(address: &str) -> u64 {
    address.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

fn url(path: &Path, fragment: &str) -> String {
    format!("file://{}{fragment}", path.display())
}

#[test]
fn the_overview_has_a_point_and_a_row_for_every_page() {
    let dir = run_folder("overview", 12);
    let Some(drawn) = open(&url(&report::write(dir.path()).unwrap(), "")) else { return };
    drawn.assert_whole();
    assert_eq!(drawn.count("<tr data-page="), 12);
    // Both the point and the row of a page lead to it.
    assert_eq!(drawn.count("href=\"#page=page-3&amp;network=seed\""), 2);
    assert!(drawn.dom.contains("9007199254740993"), "the seed, to its last digit");
    assert!(drawn.dom.contains("&lt;/script&gt;&lt;script&gt;"), "a hostile title is text");
    assert!(drawn.dom.contains("bad.har: entry 4"), "what could not be raced");
    assert!(drawn.dom.contains("1 was opened ahead of need"), "what was done unasked");
    assert!(!drawn.dom.contains("javascript:alert(1)\""), "no address of a recording is a link");
}

#[test]
fn a_link_leads_to_a_page_and_a_network() {
    let dir = run_folder("link", 3);
    let path = report::write(dir.path()).unwrap();
    let Some(drawn) = open(&url(&path, "#page=page-2&network=seed")) else { return };
    drawn.assert_whole();
    assert!(drawn.dom.contains("data-ready=\"page\"") && drawn.dom.contains("<h1>Page 2</h1>"));
    assert!(drawn.dom.contains("data-view=\"waterfall\"") && drawn.dom.contains("data-view=\"connections\""));
    assert_eq!(drawn.count("class=\"connection unasked wasted\""), 1, "one that was opened for nothing");
    assert!(drawn.dom.contains("no request had asked for it"), "and the legend says what that is");
    assert!(!drawn.dom.contains("id=\"known\""), "nobody goes by what was learned");
}

#[test]
fn what_the_browser_knew_stands_beside_what_it_opened() {
    let dir = run_folder("known", 1);
    let mut known = Vec::new();
    for transport in TRANSPORTS {
        for run in 0..RUNS {
            let key = Key { page: page_id(0), network: NETWORK.into(), transport: transport.into(), run };
            let learned = Estimate { by: Predictor::Learned, expected: 1.7, opens: 2, resolves: true };
            let trust = StandingView {
                standing: Colour::Red,
                is_proven: false,
                penalty: 60,
                classes: [("image".to_owned(), 250)].into(),
            };
            let host = KnownHost {
                host: "http://www.example".into(),
                estimates: vec![learned],
                pipelining: (transport == "http1").then_some(trust),
            };
            lab::result::emit(&KnownRow { key, hosts: vec![host] }, &mut known);
        }
    }
    fs::write(dir.path().join(lab::folder::KNOWN), known).unwrap();
    let Some(drawn) = open(&url(&report::write(dir.path()).unwrap(), "#page=page-0&network=seed")) else {
        return;
    };
    drawn.assert_whole();
    let row = drawn.dom.split("id=\"known\"").nth(1).expect("the table").split("<tbody>").nth(1).unwrap();
    let row = row.split("</tbody>").next().unwrap();
    let cells: Vec<_> = row.split("<td class=\"n\">").skip(1).map(|c| c.split('<').next().unwrap()).collect();
    let http1 = ["1.70", "2", "1", "0", "red, owes 60; image owes 250"];
    assert_eq!(cells, [http1, ["1.70", "2", "0", "0", "not tried"]].concat(), "one was opened, for nothing");
}

#[test]
fn an_address_of_nothing_leads_to_the_overview() {
    let dir = run_folder("nowhere", 2);
    let path = report::write(dir.path()).unwrap();
    let Some(drawn) = open(&url(&path, "#page=page-99&network=moon&metric=luck&x=%E0")) else { return };
    drawn.assert_whole();
    assert!(drawn.dom.contains("data-ready=\"overview\""));
}

#[test]
fn a_reader_sorts_filters_clicks_and_walks() {
    let dir = run_folder("reader", 4);
    let html = report::read(dir.path()).unwrap().render();
    let path = dir.path().join("used.html");
    let script = format!("<script>{}</script></body>", include_str!("interact.js"));
    fs::write(&path, html.replace("</body>", &script)).unwrap();
    let Some(drawn) = open(&url(&path, "")) else { return };
    drawn.assert_whole();
    let facts = facts(&drawn.dom);
    assert_eq!(facts["error"], serde_json::Value::Null);
    assert_eq!((&facts["points"], &facts["identity"], &facts["curves"]), (&4.into(), &1.into(), &2.into()));
    // By speed-up, which is less where HTTP/1.1 lost its slowest run. Then by PLT, the longest first.
    assert_eq!(facts["rows"], serde_json::json!(["page-0", "page-2", "page-3", "page-1"]));
    assert_eq!(facts["sorted"], serde_json::json!(["page-3", "page-2", "page-1", "page-0"]));
    assert_eq!(facts["filtered"], serde_json::json!(["page-2"]));
    assert_eq!((&facts["opened"], &facts["title"]), (&"#page=page-1&network=seed".into(), &"Page 1".into()));
    assert_eq!(facts["bars"], 2 * REQUESTS, "a request a transport");
    assert_eq!(facts["connections"], 3 + 1, "three over HTTP/1.1, one over SPDY");
    assert_eq!(facts["marks"], 2 * REQUESTS);
    let tip = facts["tip"].as_str().unwrap();
    assert!(tip.starts_with("#1 http://www.example/1") && tip.contains("asked for by #0"), "{tip}");
    assert!(facts["picked"].as_str().unwrap().contains("#0 http://www.example/0"));
    assert_eq!((&facts["arrows"], &facts["arrowsToInitiator"]), (&0.into(), &2.into()), "one in each panel");
    assert_eq!((&facts["closed"], &facts["next"]), (&true.into(), &true.into()));
    assert_eq!(facts["row"], "#page=page-3&network=seed");
}

#[test]
fn a_damaged_report_says_that_it_is() {
    let dir = run_folder("damaged", 2);
    let html = report::read(dir.path()).unwrap().render();
    let path = dir.path().join("damaged.html");
    let block = "id=\"data-overview\">";
    fs::write(&path, html.replace(block, &format!("{block}AAAA"))).unwrap();
    let Some(drawn) = open(&url(&path, "")) else { return };
    assert!(drawn.dom.contains("data-error=") && drawn.dom.contains("This report could not be drawn"));
}

/// What `interact.js` left behind.
fn facts(dom: &str) -> serde_json::Value {
    let open = "<output id=\"facts\">";
    let from = dom.find(open).expect("facts") + open.len();
    let text = &dom[from..from + dom[from..].find('<').expect("an end")];
    serde_json::from_str(&decode(text)).expect("JSON")
}

/// Undoes `encodeURIComponent`.
fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = (first == b'%').then(|| std::str::from_utf8(&tail[..2]).expect("two digits"));
        bytes.push(hex.map_or(first, |hex| u8::from_str_radix(hex, 16).expect("two digits")));
        rest = &tail[if hex.is_some() { 2 } else { 0 }..];
    }
    String::from_utf8(bytes).expect("UTF-8")
}
