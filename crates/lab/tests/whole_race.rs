//! Races through the virtual world, with every crate below in it.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use lab::folder::{self, Environment};
use lab::network::{Network, Overrides};
use lab::plan::{FORMAT, Plan};
use lab::result::{ConnectionRow, LoadOutcome, LoadRow, rows};
use lab::setting::Compute;
use lab::summary::Summary;
use lab::topology::KnownRow;

struct Raced {
    dir: PathBuf,
    summary: Summary,
}

impl Raced {
    fn loads(&self) -> Vec<LoadRow> {
        rows(&self.dir.join(folder::LOADS)).unwrap().collect::<Result<_, _>>().unwrap()
    }
}

impl Drop for Raced {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn race(name: &str, networks: &[&str], runs: u32, overrides: &Overrides) -> Raced {
    race_with(name, networks, runs, overrides, (&[], 2))
}

/// The same with techniques, on so many threads.
fn race_with(
    name: &str,
    networks: &[&str],
    runs: u32,
    overrides: &Overrides,
    (techniques, threads): (&[&str], usize),
) -> Raced {
    let named = |name: &&str| {
        let mut network = Network::named(name).unwrap();
        network.apply(overrides).unwrap();
        network
    };
    let plan = Plan {
        world: lab::setting::World::Virtual,
        format: FORMAT,
        seed: 1,
        runs,
        transports: vec!["http1".into(), "spdy3.1".into()],
        pages: vec!["corpus:2012:8".into(), "corpus:today:4".into()],
        pages_max: None,
        techniques: techniques.iter().map(|t| t.parse().unwrap()).collect(),
        state: None,
        networks: networks.iter().map(named).collect(),
    };
    let environment = Environment {
        note: Environment::NOTE.into(),
        velodrome: String::new(),
        commit: None,
        rustc: None,
        target: String::new(),
        cores: 2,
    };
    let dir = std::env::temp_dir().join(format!("velodrome-race-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let options = lab::race::Options {
        track: &lab::world::Track::VIRTUAL,
        dir: &dir,
        resume: false,
        threads,
        environment: &environment,
        cancel: &AtomicBool::new(false),
        progress: &|_| {},
    };
    let summary = lab::race::race(&plan, &lab::pages::collect(&plan.pages, None), options).unwrap();
    Raced { dir, summary }
}

/// The parts of a page load time add up to it, whatever is lost on the way.
#[test]
fn every_microsecond_of_a_page_load_time_is_accounted_for() {
    let raced = race("sum", &["seed", "3g", "2000/386/100/2"], 2, &Overrides::default());
    let loads = raced.loads();
    assert_eq!(loads.len(), 12 * 3 * 2 * 2);
    for load in loads {
        assert_eq!(load.outcome, LoadOutcome::Complete, "{:?}", load.key);
        assert_eq!(load.critical.unwrap().total_us(), load.plt_us.unwrap(), "{:?}", load.key);
    }
}

/// A browser that computes nothing never keeps a load waiting: all of its critical path is the network's.
#[test]
fn without_computation_nothing_is_put_down_to_it() {
    let overrides = Overrides { compute: Some(Compute(0.0)), ..Overrides::default() };
    let raced = race("no-compute", &["seed", "2000/386/100/2"], 1, &overrides);
    for load in raced.loads() {
        assert_eq!(load.critical.unwrap().compute_us, 0, "{:?}", load.key);
    }
}

/// Both transports of a run share a seed, and no two other loads do.
#[test]
fn the_loads_of_a_pair_share_their_seed() {
    let loads = race("seeds", &["2000/386/100/2", "seed"], 2, &Overrides::default()).loads();
    for pair in loads.chunks(2) {
        assert_eq!(pair[0].seed, pair[1].seed);
        assert_ne!(pair[0].key.transport, pair[1].key.transport);
    }
    let mut seeds: Vec<_> = loads.iter().map(|l| l.seed.clone()).collect();
    seeds.sort();
    seeds.dedup();
    assert_eq!(seeds.len(), loads.len() / 2);
}

/// Without loss, two runs differ in nothing but their number and seed.
#[test]
fn runs_are_alike_where_nothing_is_random() {
    let raced = race("alike", &["seed"], 2, &Overrides::default());
    for runs in raced.loads().chunks(4) {
        for (first, second) in [(&runs[0], &runs[2]), (&runs[1], &runs[3])] {
            let mut second = second.clone();
            second.key.run = 0;
            second.seed.clone_from(&first.seed);
            assert_eq!(*first, second);
        }
    }
    assert_eq!(raced.summary.notes, ["seed: nothing is random, so its runs are all alike"]);
}

/// What is missing is in a file of its own, a line a load, in the summary and in its notes; the same whatever the number of threads.
#[test]
fn a_race_in_which_things_break_says_what_is_missing_and_why() {
    let broken = &["fault=refuse:0.1", "fault=reset:0.05@2000", "blackhole=900+700"];
    let raced =
        |name: &str, threads| race_with(name, &["cable"], 1, &Overrides::default(), (broken, threads));
    let (one, two) = (raced("broken-1", 1), raced("broken-2", 2));
    let read = |raced: &Raced| std::fs::read_to_string(raced.dir.join(folder::TROUBLES)).unwrap();
    assert_eq!(read(&one), read(&two));
    assert_eq!(read(&one).lines().count(), one.loads().len());
    let troubles = one.summary.networks[0].transports[0].troubles.clone().expect("things broke");
    let incomplete = one
        .loads()
        .into_iter()
        .filter(|load| load.key.transport == "http1" && load.outcome == LoadOutcome::Incomplete);
    assert_eq!(troubles.incomplete, incomplete.count() as u64);
    assert!(troubles.broken > 0 && !troubles.missing.is_empty());
    let said = one.summary.notes.join("\n");
    assert!(
        said.contains(&troubles.missing[0].path) && said.contains("connection refused by the peer"),
        "{said}"
    );
    let reloading = [&broken[..], &["retry=reloading"]].concat();
    let ours = race_with("broken-ours", &["cable"], 1, &Overrides::default(), (&reloading, 2));
    assert!(
        ours.loads().iter().all(|load| load.outcome == LoadOutcome::Complete),
        "{:?}",
        ours.summary.notes
    );
    assert!(
        race("unbroken", &["cable"], 1, &Overrides::default()).summary.networks[0].transports[0]
            .troubles
            .is_none()
    );
}

#[test]
fn a_fault_that_no_page_can_have_is_refused_with_what_it_was() {
    let asked = std::panic::catch_unwind(|| {
        race_with("nobody", &["cable"], 1, &Overrides::default(), (&["fault=hang:nobody.example"], 1))
    });
    let said = asked.err().and_then(|e| e.downcast::<String>().ok()).expect("refused");
    assert!(said.contains("'fault=hang:nobody.example' has nothing to act on"), "{said}");
}

/// A browser that goes by what it has learned says before each load what that is, and opens as much.
#[test]
fn what_a_browser_knew_stands_beside_what_it_opened() {
    let techniques = ["preconnect=learned", "pipelining", "visits=3"];
    let raced = race_with("known", &["seed"], 1, &Overrides::default(), (&techniques, 2));
    let known: Vec<KnownRow> =
        rows(&raced.dir.join(folder::KNOWN)).unwrap().collect::<Result<_, _>>().unwrap();
    let connections = rows(&raced.dir.join(folder::CONNECTIONS)).unwrap();
    let connections: Vec<ConnectionRow> = connections.collect::<Result<_, _>>().unwrap();
    assert!(raced.loads().iter().map(|load| &load.key).eq(known.iter().map(|row| &row.key)), "one a load");
    for KnownRow { key, hosts } in &known {
        let [document, ..] = &hosts[..] else { panic!("{key:?}: three visits have taught it nothing") };
        let opens = document.estimates[0].opens;
        let host = document.host.split_once("://").unwrap().1;
        let own = connections.iter().filter(|c| c.key == *key && c.host == host);
        let before =
            own.filter(|c| c.opened_us < 300_000 && c.purpose.as_deref() == Some("speculative")).count();
        // The document takes one of them. One session is enough, whatever is expected.
        let as_known = if key.transport == "http1" { before == opens as usize - 1 } else { before <= 1 };
        assert!(as_known, "{key:?}: {before} opened, for {opens}");
        let trusted = hosts.iter().filter(|host| host.pipelining.is_some()).count();
        assert_eq!(trusted > 0, key.transport == "http1", "{key:?}: {trusted} hosts were trusted or not");
    }
    let plain = race("unknown", &["seed"], 1, &Overrides::default());
    assert!(!plain.dir.join(folder::KNOWN).exists());
}

/// What is said of connections that nobody had asked for is what their own rows say.
#[test]
fn connections_that_no_request_had_asked_for_are_accounted_for() {
    let techniques = ["preconnect=learned", "prefetch", "visits=2"];
    let raced = race_with("unasked", &["seed"], 1, &Overrides::default(), (&techniques, 2));
    let rows = rows(&raced.dir.join(folder::CONNECTIONS)).unwrap();
    let rows: Vec<ConnectionRow> = rows.collect::<Result<_, _>>().unwrap();
    for transport in &raced.summary.networks[0].transports {
        let own = rows.iter().filter(|row| row.key.transport == transport.transport);
        let ahead: Vec<_> = own.filter(|row| row.purpose.as_deref() == Some("speculative")).collect();
        let used = ahead.iter().filter(|row| row.requests > 0).count();
        let mean = |n: usize| lab::stats::round(n as f64 / transport.complete as f64, 2);
        let said = transport.unasked.expect("a page is known from its second visit on");
        assert_eq!((said.speculative, said.speculative_used), (mean(ahead.len()), mean(used)));
        assert!(used > 0 && (said.spare, said.alternate) == (0.0, 0.0));
        assert!(transport.ahead.expect("so are its resources").asked > 0.0);
        let accounts = &raced.summary.networks[0].accounts;
        let own = accounts.iter().filter(|a| a.starts_with(&format!("{}: ", transport.transport)));
        assert_eq!(own.count(), 2, "one of connections, one of requests: {accounts:?}");
    }
    let plain = race("asked", &["seed"], 1, &Overrides::default());
    assert_eq!(plain.summary.networks[0].accounts, [""; 0]);
    assert!(plain.loads().iter().all(|load| load.unasked.is_none() && load.ahead.is_none()));
}
