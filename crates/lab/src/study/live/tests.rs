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
    let options =
        Options { track: &Track::VIRTUAL, dir, resume, minutes, at_once: 1, cancel, progress: &progress };
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
    let cancel = AtomicBool::new(false);
    let dir = parts.path();
    let options = Options {
        track: &Track::VIRTUAL,
        dir,
        resume: true,
        minutes: 2.0,
        at_once: 1,
        cancel: &cancel,
        progress: &|_, _| (),
    };
    let other = run(named("false-start").unwrap(), options).unwrap_err().to_string();
    assert!(other.contains("holds live loads of another run"), "{other}");
}

#[test]
fn pages_come_before_runs_and_no_arm_has_more_rounds_than_loads() {
    let study = named("spdy-vs-http").unwrap();
    let arm = (plan(&study, &study.arms[0]).unwrap(), collect(&study, &study.arms[0]).unwrap());
    let (runs, transports) = (u64::from(arm.0.runs), arm.0.transports.len() as u64);
    assert_eq!(loads(&arm, 1)[0], runs * transports * arm.0.networks.len() as u64);
    assert!(loads(&arm, runs * PAGES_MAX).is_empty());
}
