//! Races through the virtual world, with every crate below in it.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use lab::folder::{self, Environment};
use lab::network::{Network, Overrides};
use lab::plan::{FORMAT, Plan};
use lab::result::{LoadOutcome, LoadRow, rows};
use lab::setting::Compute;
use lab::summary::Summary;

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
        techniques: Vec::new(),
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
        threads: 2,
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
