use std::sync::atomic::AtomicBool;

use super::*;
use crate::folder::{Environment, Folder};
use crate::pages::Collected;
use crate::plan::FORMAT;
use crate::run::{Jobs, run};
use crate::scratch;

/// Races pages whose times are `plt_ms(page, transport, run)`; `None` is a load that something is missing in.
fn race(
    network: Network,
    pages: usize,
    runs: u32,
    plt_ms: impl Fn(usize, usize, u32) -> Option<u64> + Sync,
) -> Summary {
    let dir = scratch::Dir::new(&format!("summary-{}-{pages}-{runs}", network.name.replace('/', "-")));
    let plan = Plan {
        format: FORMAT,
        world: crate::setting::World::Virtual,
        seed: 1,
        runs,
        transports: vec!["http1".into(), "spdy3.1".into()],
        pages: vec!["made up".into()],
        pages_max: None,
        techniques: Vec::new(),
        state: None,
        networks: vec![network],
    };
    let mut collected = Collected::default();
    for i in 0..pages {
        collected.pages.push(scratch::page(&format!("p{i}")));
        collected.fingerprints.push(0);
    }
    let jobs = Jobs::new(&plan, &collected.pages);
    let environment = Environment {
        note: Environment::NOTE.into(),
        velodrome: "0".into(),
        commit: None,
        rustc: None,
        target: "none".into(),
        cores: 1,
    };
    let mut folder = Folder::create(dir.path(), &plan, &collected, &environment).unwrap();
    let load = |job: &crate::run::Job<'_>| {
        let page = job.page.id[1..].parse().unwrap();
        Ok(scratch::rows(&jobs.key(job), 1, plt_ms(page, job.transport, job.run).map(|ms| ms * 1_000)))
    };
    run(jobs, &mut folder, 1, &AtomicBool::new(false), &load, &|_| {}).unwrap();
    summarise(dir.path()).unwrap()
}

fn seed() -> Network {
    Network::named("seed").unwrap()
}

#[test]
fn pages_are_paired_and_the_speed_up_is_over_the_first_transport() {
    // Ten pages of 1000 ms become 900, 800, … 0 ms faster; the last is slower.
    let s = race(seed(), 10, 1, |page, transport, _| {
        Some(if transport == 0 {
            1_000
        } else {
            [900, 800, 700, 600, 500, 400, 300, 200, 1_000, 1_100][page]
        })
    });
    let n = &s.networks[0];
    assert_eq!(
        n.transports[0].plt_ms,
        Some(Estimate { value: 1_000.0, low: Some(1_000.0), high: Some(1_000.0) })
    );
    let c = &n.comparisons[0];
    assert_eq!((c.pairs, c.faster, c.slower), (10, 8, 1));
    assert_eq!(c.mean_speedup_pct.unwrap().value, 35.0);
    assert_eq!(c.median_speedup_pct.unwrap(), Estimate { value: 35.0, low: Some(0.0), high: Some(70.0) });
    assert_eq!(c.sign_test_p, Some(0.0391));
    assert_eq!(c.gains.iter().map(|p| p.page.as_str()).collect::<Vec<_>>(), ["p7", "p6", "p5", "p4", "p3"]);
    assert_eq!(
        c.losses.iter().map(|p| (p.page.as_str(), p.speedup_pct)).collect::<Vec<_>>(),
        [("p9", -10.0)]
    );
    assert_eq!(c.published.as_ref().unwrap().mean_speedup_pct, 40.0);
    assert_eq!(c.why[0], "on the critical path, 1000 ms with http1 become 650 ms with spdy3.1 (means):");
    assert_eq!(c.why[1], "350 ms less receiving (1000 → 650)");
}

#[test]
fn a_load_in_which_something_is_missing_takes_its_pair_with_it() {
    // Run 1 of page 0 is missing over the other transport: its first-transport time of 9 s does not count either.
    let lossy = Network::named("2000/386/100/1").unwrap();
    let s = race(lossy, 2, 3, |page, transport, run| match (page, transport, run) {
        (0, 1, 1) => None,
        (0, 0, 1) => Some(9_000),
        (0, 0, _) => Some(1_000),
        _ => Some(500),
    });
    let c = &s.networks[0].comparisons[0];
    assert_eq!((c.pairs, c.faster, c.slower), (2, 1, 0));
    assert_eq!((c.gains[0].first_ms, c.gains[0].other_ms), (1_000.0, 500.0));
    assert_eq!((s.networks[0].transports[1].loads, s.networks[0].transports[1].complete), (6, 5));
    assert!(s.notes[0].contains("1 loads are incomplete and left out"), "{:?}", s.notes);
    assert!(c.published.is_none());
}

#[test]
fn a_single_page_is_compared_run_by_run() {
    let lossy = Network::named("2000/386/100/1").unwrap();
    let s = race(lossy, 1, 8, |_, transport, run| Some(1_000 + u64::from(run) - 100 * transport as u64));
    assert_eq!(s.unit, Unit::Run);
    let c = &s.networks[0].comparisons[0];
    assert_eq!((c.pairs, c.faster), (8, 8));
    assert_eq!(c.gains[0].run, Some(0));
    assert_eq!(s.networks[0].transports[0].plt_ms.unwrap().low, Some(1_000.0));
}

#[test]
fn runs_that_cannot_differ_are_one_observation_and_no_evidence() {
    let s = race(seed(), 1, 20, |_, transport, _| Some(1_000 - 100 * transport as u64));
    assert_eq!(s.unit, Unit::Page);
    let c = &s.networks[0].comparisons[0];
    assert_eq!((c.pairs, c.faster, c.sign_test_p), (1, 1, Some(1.0)));
    assert_eq!(s.networks[0].transports[0].plt_ms.unwrap().low, None, "one observation has no interval");
}

#[test]
fn a_reader_is_warned_of_runs_that_are_all_alike_and_of_chance_that_was_tried_once() {
    let notes = race(seed(), 1, 2, |_, _, _| Some(1)).notes;
    assert_eq!(notes, ["seed: nothing is random, so its runs are all alike"]);
    let lossy = Network::named("2000/386/100/1").unwrap();
    let notes = race(lossy, 1, 1, |_, _, _| Some(1)).notes;
    assert_eq!(notes, ["2000/386/100/1: loss or jitter is random, and each page was loaded once"]);
}

#[test]
fn what_was_changed_in_a_profile_is_said_beside_its_name_and_beside_what_was_published() {
    let mut network = seed();
    network.initial_cwnd = 10;
    network.tls = crate::setting::Tls::Tls13;
    let s = race(network, 1, 1, |_, _, _| Some(1));
    let n = &s.networks[0];
    let changed = "initial_cwnd 10 (profile: 3), tls 1.3 (profile: none)";
    assert_eq!(n.conditions[3], format!("changed in profile seed: {changed}"));
    let differs = &n.comparisons[0].published.as_ref().unwrap().differs;
    assert!(differs.contains(&"ours was changed: initial_cwnd 10 (profile: 3)".to_owned()), "{differs:?}");
}

#[test]
fn pages_of_few_sites_are_called_that() {
    let page = |url: &str| PageRow {
        page: String::new(),
        title: String::new(),
        url: url.to_owned(),
        hosts: 0,
        requests: 0,
        bytes: 0,
        on_load_us: None,
        source: String::new(),
        fingerprint: String::new(),
        assumptions: Vec::new(),
    };
    let urls = ["http://a.org/x", "http://www.a.org:80/y", "https://b.a.org?q", "http://c.org", "no url"];
    assert_eq!(words::sites(&urls.map(page)), 3);
}

#[test]
fn assumptions_are_summed_without_the_numbers_of_one_page() {
    assert_eq!(without_numbers("from mimeType (44), Accept (5)"), "from mimeType, Accept");
    assert_eq!(without_numbers("as (in a draft) (3) or (4x)"), "as (in a draft) or (4x)");
}
