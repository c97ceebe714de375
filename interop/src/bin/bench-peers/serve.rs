//! Servers over real sockets: 100 streams in parallel on one connection of SPDY/3.1 in clear text, from one and the same
//! load generator, which is our client; it shares the machine with the server. What counts beside requests a second is the
//! server's own processor time, which the generator does not touch.
//!
//! `velodrome serve` reads its answer from a file each time; node-spdy has it in memory.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use base::Duration;
use comfy_table::Table;
use interop::child::Child;
use interop::contract;
use live::fetch::{self, Outcome, Protocol, Request, Url};
use live::{Clock, tls};
use serde::Serialize;
use spdy::Version;

use crate::{Entry, median, table};

/// Streams under way at a time.
const PARALLEL: usize = 100;
/// Bytes of an answer.
const SIZES: [u64; 2] = [1_024, 16_384];
/// Milliseconds that a server may take to start.
const START_MS: u64 = 20_000;

/// What one server achieved.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Load {
    /// Answers a second.
    requests: f64,
    /// Processor time of the server, user's and system's, in microseconds an answer.
    cpu_us: f64,
}

/// All servers at one size of answer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Results {
    bytes: u64,
    servers: Vec<Entry<Load>>,
}

/// A server that runs.
struct Serving {
    child: Child,
    port: u16,
}

impl Serving {
    /// Starts it; `port` finds its port in the line in which it says so.
    fn start(words: &[String], folder: &Path, port: fn(&str) -> Option<u16>) -> Result<Self, String> {
        let child = Child::start(words, folder).map_err(|e| format!("{}: {e}", words[0]))?;
        let line = child.line_that(START_MS, |line| port(line).is_some());
        let found = line.as_deref().and_then(port);
        let port = found.ok_or_else(|| format!("{} does not listen: {}", words[0], child.complaints()))?;
        Ok(Self { child, port })
    }

    /// Its processor time so far, in microseconds (proc_pid_stat(5): utime and stime).
    fn cpu_us(&self) -> Result<f64, String> {
        let path = format!("/proc/{}/stat", self.child.id());
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
        // Behind the program's name, which may hold anything, the third field comes first.
        let fields: Vec<_> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = [11, 12].map(|at| fields.get(at).and_then(|f| f.parse::<f64>().ok()));
        let [Some(user), Some(system)] = ticks else { return Err(format!("{path}: {text}")) };
        Ok((user + system) * 1e6 / rustix::param::clock_ticks_per_second() as f64)
    }

    /// One turn under load.
    fn load(&self, bytes: u64, requests: u32) -> Result<Load, String> {
        let url = Url::parse(&format!("http://localhost:{}/bytes/{bytes}", self.port));
        let url = url.map_err(|e| e.to_string())?;
        let asked = vec![Request::get(url); requests as usize];
        let mut config = fetch::Config::new(tls::Trust::Anybody);
        config.protocols = vec![Protocol::Spdy(Version::V3_1)];
        config.resolve = vec![("localhost".into(), None, IpAddr::V4(Ipv4Addr::LOCALHOST))];
        config.concurrent = PARALLEL;
        config.idle_timeout = Duration::from_secs(20);
        let before = self.cpu_us()?;
        let clock = Clock::start();
        let start = clock.now();
        let exchanges = fetch::fetch(asked, &config, &mut ()).map_err(|e| e.to_string())?;
        let seconds = clock.now().since(start).as_nanos() as f64 / 1e9;
        let cpu_us = (self.cpu_us()? - before) / f64::from(requests);
        for exchange in &exchanges {
            let status = exchange.response.as_ref().map(|r| r.status);
            let whole = exchange.outcome == Outcome::Complete && exchange.body_len == bytes;
            if status != Some(200) || !whole || exchange.connection != Some(0) {
                let (outcome, len) = (&exchange.outcome, exchange.body_len);
                return Err(format!("an answer has status {status:?}, {len} bytes, and is {outcome:?}"));
            }
        }
        Ok(Load { requests: f64::from(requests) / seconds, cpu_us })
    }
}

/// All servers in turn, round after round.
///
/// # Errors
/// If one does not start or answers wrongly.
pub fn bench(folder: &Path, rounds: u16, requests: u32) -> Result<Vec<Results>, String> {
    let own = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
    let velodrome = own.with_file_name("velodrome");
    if !velodrome.is_file() {
        return Err("no velodrome beside this program: run `make bench-peers`".into());
    }
    let site = folder.join("target/site");
    std::fs::create_dir_all(site.join("bytes")).map_err(|e| format!("interop/target/site: {e}"))?;
    for bytes in SIZES {
        let path = site.join(format!("bytes/{bytes}"));
        std::fs::write(&path, contract::body(bytes)).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let [velodrome, site] = [velodrome, site].map(|path| path.display().to_string());
    let ours = words(&[&velodrome, "serve", &site, "--listen", "127.0.0.1:0", "--json", "--quiet"]);
    let node = words(&["node", "--no-deprecation", "node/peer.js", "serve", "--version", "3.1"]);
    let servers = [
        (
            "velodrome serve",
            Serving::start(&ours, folder, |line| {
                let said: serde_json::Value = serde_json::from_str(line).ok()?;
                said["listening"].as_str()?.parse().ok().map(|address: SocketAddr| address.port())
            })?,
        ),
        ("node-spdy", Serving::start(&node, folder, |line| line.strip_prefix("listening ")?.parse().ok())?),
    ];
    let mut results = Vec::new();
    for bytes in SIZES {
        let mut runs = vec![Vec::new(); servers.len()];
        for (_, server) in &servers {
            // What is loaded or compiled at first is not what counts.
            server.load(bytes, requests / 10)?;
        }
        for round in 0..rounds {
            for ((name, server), runs) in servers.iter().zip(&mut runs) {
                eprintln!("round {} of {rounds}: {name}, {bytes} bytes", round + 1);
                runs.push(server.load(bytes, requests)?);
            }
        }
        let entry = |((name, _), rounds): (&(&'static str, Serving), Vec<Load>)| {
            let of = |value: fn(&Load) -> f64| median(rounds.iter().map(value));
            let median = Load { requests: of(|l| l.requests), cpu_us: of(|l| l.cpu_us) };
            Entry { name, median, rounds }
        };
        results.push(Results { bytes, servers: servers.iter().zip(runs).map(entry).collect() });
    }
    Ok(results)
}

/// The medians.
pub fn table_of(results: &[Results]) -> Table {
    let header = ["100 streams, one connection", "bytes", "requests/s", "server's CPU, µs a request"];
    let rows = results.iter().flat_map(|result| {
        result.servers.iter().map(|entry| {
            let Load { requests, cpu_us } = entry.median;
            vec![
                entry.name.into(),
                result.bytes.to_string(),
                format!("{requests:.0}"),
                format!("{cpu_us:.0}"),
            ]
        })
    });
    table(header.map(String::from).to_vec(), rows)
}
