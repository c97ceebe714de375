use super::*;
use crate::scratch::Dir;
use crate::study::named;

/// As a live run goes, with loads of the virtual world in their place: what is chosen, kept and measured is the same.
fn run_virtually(
    study: &str,
    dir: &Path,
    resume: bool,
    minutes: f64,
    cancel: &AtomicBool,
    after: u64,
) -> Findings {
    let progress = |done, _| {
        if done >= after {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    run(named(study).unwrap(), Options { resume, minutes, cancel, progress: &progress, ..options(dir) })
        .unwrap()
}

fn options(dir: &Path) -> Options<'_> {
    static NEVER: AtomicBool = AtomicBool::new(false);
    Options {
        track: &Track::VIRTUAL,
        dir,
        resume: false,
        minutes: 1.0,
        is_over: &|| false,
        at_once: 1,
        cancel: &NEVER,
        progress: &|_, _| (),
    }
}

/// The same, but the time is up after so many loads, counting from what is there already.
fn run_until(study: &str, dir: &Path, resume: bool, loads: u64) -> Findings {
    let made = std::sync::atomic::AtomicU64::new(0);
    let is_over = || made.load(Ordering::Relaxed) >= loads;
    let progress = |done, _| made.store(done, Ordering::Relaxed);
    let options = Options { resume, minutes: 0.01, is_over: &is_over, progress: &progress, ..options(dir) };
    run(named(study).unwrap(), options).unwrap()
}

#[test]
fn the_live_figures_are_measured_as_the_virtual_ones_are_on_the_same_loads() {
    let dir = Dir::new("study-live");
    let found = run_virtually("flow-control", dir.path(), false, 1.0, &AtomicBool::new(false), u64::MAX);
    assert_eq!(found.live, found.modelled);
    assert!(found.live.iter().all(Option::is_some));
    assert_eq!(found.made, found.planned);
    assert!(found.arms.iter().all(|arm| arm.measured == 1 && arm.repeats == REPEATS));
}

#[test]
fn a_study_is_cut_to_the_rounds_that_the_time_holds_and_has_one_in_any_case() {
    let loads = |minutes| {
        let dir = Dir::new("study-live-cut");
        let found = run_virtually("false-start", dir.path(), false, minutes, &AtomicBool::new(false), 1);
        (found.planned, found.arms)
    };
    let (least, arms) = loads(0.001);
    // One exchange, three times, without and with; a page without and with.
    assert_eq!(least, 8);
    assert_eq!(arms.iter().map(|arm| arm.whole).collect::<Vec<_>>(), [1, 1, 60, 60]);
    let (more, _) = loads(1.0);
    assert!(least < more && more < 2 * 3 + 2 * 60, "{more}");
    assert_eq!(loads(1.0).0, more);
}

#[test]
fn what_was_interrupted_is_gone_on_with_and_nothing_is_lost() {
    let (whole, parts) = (Dir::new("study-live-whole"), Dir::new("study-live-parts"));
    let all = run_virtually("false-start", whole.path(), false, 1.0, &AtomicBool::new(false), u64::MAX);
    let some = run_virtually("false-start", parts.path(), false, 1.0, &AtomicBool::new(false), 9);
    assert!(some.made < some.planned);
    // The second round was not whole: what is measured is the first.
    assert_eq!(some.arms[2].measured, 1);
    let kept = parts.path().join("live.jsonl");
    let text = std::fs::read(&kept).unwrap();
    std::fs::write(&kept, &text[..text.len() - 5]).unwrap();
    let rest = run_virtually("false-start", parts.path(), true, 1.0, &AtomicBool::new(false), u64::MAX);
    assert_eq!((rest.made, &rest.live), (all.made, &all.live));
    let lines = |dir: &Dir| std::fs::read_to_string(dir.path().join("live.jsonl")).unwrap().lines().count();
    assert_eq!(lines(&parts), lines(&whole));
    let options = Options { resume: true, minutes: 2.0, ..options(parts.path()) };
    let other = run(named("false-start").unwrap(), options).unwrap_err().to_string();
    assert!(other.contains("holds live loads of another run"), "{other}");
}

/// What each arm has: planned, made, measured, and how often.
fn counts(found: &Findings) -> Vec<(u64, u64, u64, u32)> {
    found.arms.iter().map(|arm| (arm.planned, arm.made, arm.measured, arm.repeats)).collect()
}

/// Fourteen arms of one load, each to be made three times: the first time is whole, the second is not.
#[test]
fn a_round_that_is_longer_than_the_time_is_cut_where_all_arms_have_as_much() {
    let (whole, parts) = (Dir::new("study-live-long"), Dir::new("study-live-cut-short"));
    let found = run_until("flow-control", parts.path(), false, 20);
    assert_eq!((found.planned, found.made, found.cut), (42, 20, Some(Cut::Time)));
    assert_eq!(counts(&found), [(1, 1, 1, 1); 14]);
    assert!(found.live.iter().all(Option::is_some));
    // Resumed, it has what it would have had.
    let rest = run_until("flow-control", parts.path(), true, u64::MAX);
    let all = run_until("flow-control", whole.path(), false, u64::MAX);
    assert_eq!((&rest.live, &rest.arms, rest.made, rest.cut), (&all.live, &all.arms, 42, None));
    assert_eq!(counts(&rest), [(1, 1, 1, 3); 14]);
}

#[test]
fn what_not_all_arms_have_is_kept_and_not_measured() {
    let dir = Dir::new("study-live-first");
    let found = run_until("flow-control", dir.path(), false, 9);
    let expected = [[(1, 1, 0, 0); 9].as_slice(), &[(1, 0, 0, 0); 5]].concat();
    assert_eq!((counts(&found), found.made, found.cut), (expected, 9, Some(Cut::Time)));
    assert!(found.live.iter().all(Option::is_none));
    assert_eq!(std::fs::read_to_string(dir.path().join("live.jsonl")).unwrap().lines().count(), 1 + 9);
}

/// Policies on a grid: each network in turn under all of them. Of the eight arms two have one network.
#[test]
fn of_many_networks_the_first_are_measured_in_all_arms() {
    let dir = Dir::new("study-live-networks");
    let found = run_until("preconnect", dir.path(), false, 8 + 6 + 1);
    let measured: Vec<u64> = found.arms.iter().map(|arm| arm.measured).collect();
    assert_eq!(measured, [2, 2, 2, 2, 2, 2, 1, 1]);
    assert_eq!((found.arms[0].planned, found.arms[0].made, found.arms[1].made), (44, 3, 2));
}

/// A study that was cut at once has no figure, and no picture that needs one.
#[test]
fn no_study_stumbles_over_arms_without_loads() {
    for built_in in STUDIES {
        let study = named(built_in.name).unwrap();
        let none = |arm: &Arm| {
            let grid = arm.grid.as_ref().and_then(|name| study.grids.get(name)).cloned();
            let networks = plan(&study, arm).unwrap().networks;
            ArmLoads { arm: arm.clone(), grid, networks, pages: 0, samples: Vec::new() }
        };
        let (figures, _) = (built_in.measure)(&study.arms.iter().map(none).collect::<Vec<_>>());
        let is_count = |key: &str| key == "ours_doubled";
        assert!(
            figures.iter().all(|(key, v)| !v.is_finite() || is_count(key)),
            "{}: {figures:?}",
            study.name
        );
    }
}

#[test]
fn pages_come_before_runs_and_no_arm_has_more_rounds_than_loads() {
    let study = named("spdy-vs-http").unwrap();
    let arm = (plan(&study, &study.arms[0]).unwrap(), collect(&study, &study.arms[0]).unwrap());
    let (runs, transports) = (u64::from(arm.0.runs), arm.0.transports.len() as u64);
    assert_eq!(loads(&arm, 1)[0], runs * transports * arm.0.networks.len() as u64);
    assert!(loads(&arm, runs * PAGES_MAX).is_empty());
}
