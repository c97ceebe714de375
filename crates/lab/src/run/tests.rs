//! The rows here are made up from the key, so that these tests show what the files do, whatever a load is.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use super::*;
use crate::folder::{self, Environment};
use crate::network::Network;
use crate::pages::Collected;
use crate::plan::FORMAT;
use crate::scratch::Dir;

fn plan() -> Plan {
    Plan {
        format: FORMAT,
        world: crate::setting::World::Virtual,
        seed: 7,
        runs: 3,
        transports: vec!["http1".into(), "spdy3.1".into()],
        pages: vec!["made up".into()],
        pages_max: None,
        techniques: Vec::new(),
        state: None,
        networks: vec![Network::named("seed").unwrap(), Network::named("dsl").unwrap()],
    }
}

fn pages(n: usize) -> Collected {
    let pages = (0..n).map(|i| crate::scratch::page(&format!("p{i}"))).collect();
    Collected { pages, fingerprints: (0..n as u64).collect(), problems: Vec::new() }
}

fn environment() -> Environment {
    Environment {
        note: Environment::NOTE.into(),
        velodrome: "0".into(),
        commit: None,
        rustc: None,
        target: "none".into(),
        cores: 1,
    }
}

/// Rows that depend on the load alone: it has as many requests as its run, plus one, and one connection.
fn made_up(jobs: Jobs<'_>, job: &Job<'_>) -> Rendered {
    let key = jobs.key(job);
    // Some loads take longer than others, so that threads finish out of order.
    let spin = base::rng::derive(u64::from(job.run), key.page.as_bytes()) % 50_000;
    (0..spin).for_each(|n| {
        std::hint::black_box(n);
    });
    crate::scratch::rows(&key, job.run + 1, Some(1_000_000 + spin))
}

fn race(dir: &Path, threads: usize, stop_after: u64) -> Result<(), Error> {
    let (plan, collected) = (plan(), pages(5));
    let jobs = Jobs::new(&plan, &collected.pages);
    let mut folder = if dir.join(folder::PLAN).exists() {
        Folder::resume(dir, &plan, &collected, &environment(), jobs.keys())?
    } else {
        Folder::create(dir, &plan, &collected, &environment())?
    };
    let cancel = AtomicBool::new(false);
    let progress = |done| {
        if done >= stop_after {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    run(jobs, &mut folder, threads, &cancel, &|job| Ok(made_up(jobs, job)), &progress)
}

fn bytes(dir: &Path) -> Vec<Vec<u8>> {
    [folder::PLAN, folder::PAGES, folder::PROBLEMS, folder::LOADS, folder::REQUESTS, folder::CONNECTIONS]
        .map(|name| fs::read(dir.join(name)).unwrap())
        .into()
}

#[test]
fn one_thread_and_many_write_the_same_bytes() {
    let (one, many) = (Dir::new("one-thread"), Dir::new("many-threads"));
    race(one.path(), 1, u64::MAX).unwrap();
    race(many.path(), 4, u64::MAX).unwrap();
    assert_eq!(bytes(one.path())[3].iter().filter(|b| **b == b'\n').count(), 5 * 2 * 3 * 2);
    assert_eq!(bytes(one.path()), bytes(many.path()));
}

#[test]
fn a_run_that_was_stopped_ends_like_one_that_was_not() {
    let whole = Dir::new("whole");
    race(whole.path(), 2, u64::MAX).unwrap();
    for stop_after in [1, 13, 59] {
        let dir = Dir::new("stopped");
        race(dir.path(), 2, stop_after).unwrap();
        let done = fs::read_to_string(dir.path().join(folder::LOADS)).unwrap().lines().count() as u64;
        assert!(done >= stop_after && done < 60 || stop_after == 59, "{done}");
        race(dir.path(), 2, u64::MAX).unwrap();
        assert_eq!(bytes(dir.path()), bytes(whole.path()), "stopped after {stop_after}");
    }
}

/// Whatever is cut off at whatever byte: a lost process, a full disk.
#[test]
fn a_run_whose_files_were_cut_off_ends_like_one_whose_were_not() {
    let whole = Dir::new("uncut");
    race(whole.path(), 2, u64::MAX).unwrap();
    let mut rng = base::Rng::new(1);
    for name in [folder::LOADS, folder::REQUESTS, folder::CONNECTIONS].repeat(5) {
        let file = whole.path().join(name);
        let text = fs::read(&file).unwrap();
        fs::write(&file, &text[..rng.below(text.len() as u64) as usize]).unwrap();
        race(whole.path(), 2, u64::MAX).unwrap();
        assert_eq!(fs::read(&file).unwrap(), text, "{name}");
    }
}

#[test]
fn a_folder_that_holds_something_else_is_left_alone_and_says_what() {
    let (plan, collected, env) = (plan(), pages(2), environment());
    let jobs = Jobs::new(&plan, &collected.pages);
    let dir = Dir::new("folders");
    let resume = |plan: &Plan, pages: &Collected, env: &Environment| {
        Folder::resume(dir.path(), plan, pages, env, jobs.keys()).unwrap_err().to_string()
    };
    assert!(resume(&plan, &collected, &env).ends_with("holds no run to resume"));
    fs::write(dir.path().join("letter.txt"), "dear").unwrap();
    let error = Folder::create(dir.path(), &plan, &collected, &env).unwrap_err().to_string();
    assert!(error.contains("is not empty and holds no run"), "{error}");
    fs::remove_file(dir.path().join("letter.txt")).unwrap();

    Folder::create(dir.path(), &plan, &collected, &env).unwrap();
    Folder::create(dir.path(), &plan, &collected, &env).unwrap();
    let other = Plan { seed: 8, ..plan.clone() };
    let error = Folder::create(dir.path(), &other, &collected, &env).unwrap_err().to_string();
    assert!(error.contains("holds the run of another plan"), "{error}");
    assert!(resume(&other, &collected, &env).contains("another plan"));
    assert!(resume(&plan, &pages(3), &env).contains("a recording has changed since"));
    let newer = Environment { velodrome: "1".into(), ..env };
    let error = resume(&plan, &collected, &newer);
    assert!(error.contains("was begun by velodrome 0, and this is 1"), "{error}");
}

#[test]
fn a_load_that_panics_ends_the_run_and_is_named() {
    let (plan, collected) = (plan(), pages(5));
    let jobs = Jobs::new(&plan, &collected.pages);
    let dir = Dir::new("panic");
    let mut folder = Folder::create(dir.path(), &plan, &collected, &environment()).unwrap();
    let load = |job: &Job<'_>| {
        assert!(job.page.id != "p3", "this panic is the test's own");
        Ok(made_up(jobs, job))
    };
    let cancel = AtomicBool::new(false);
    let error = run(jobs, &mut folder, 3, &cancel, &load, &|_| {}).unwrap_err().to_string();
    assert!(error.starts_with("p3: its load over http1 on seed, run 0, broke"), "{error}");
    assert_eq!(folder.done(), 3 * 12, "what comes before it is kept");
}

#[test]
fn no_more_loads_wait_to_be_written_than_a_few_a_thread() {
    let (plan, collected) = (Plan { runs: 100, ..plan() }, pages(1));
    let jobs = Jobs::new(&plan, &collected.pages);
    let dir = Dir::new("window");
    let mut folder = Folder::create(dir.path(), &plan, &collected, &environment()).unwrap();
    let (begun, written, most) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let load = |job: &Job<'_>| {
        let ahead = begun.fetch_add(1, Ordering::SeqCst) + 1 - written.load(Ordering::SeqCst);
        most.fetch_max(ahead, Ordering::SeqCst);
        Ok(made_up(jobs, job))
    };
    let progress = |done| written.store(done, Ordering::SeqCst);
    run(jobs, &mut folder, 2, &AtomicBool::new(false), &load, &progress).unwrap();
    assert!(most.into_inner() <= 2 * WINDOW);
}
