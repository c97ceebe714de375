use std::sync::atomic::AtomicBool;

use super::*;

fn found(study: Study, threads: usize) -> Findings {
    let options = Options { threads, cancel: &AtomicBool::new(false), progress: &|_, _| {} };
    run(study, options).unwrap().expect("nobody cancelled it")
}

/// The study with so few pages and runs that an unoptimised build bears it; its figures are not the study's.
fn small(mut study: Study) -> Study {
    for grid in study.grids.values_mut() {
        grid.links_kbps.truncate(1);
        // Where figures are of certain round-trip times all are kept; else the ends and the middle, so that near and far remain.
        if study.name != "spdy-grid" {
            let last = grid.rtts_ms.len() - 1;
            grid.rtts_ms = [0, last / 2, last].map(|n| grid.rtts_ms[n]).to_vec();
        }
    }
    for arm in &mut study.arms {
        // Of a grid once is enough; rare stalls on one page need many.
        arm.runs = arm.runs.min(if arm.grid.is_some() { 1 } else { 20 });
        arm.networks.truncate(6);
        // Where pages are behind each other, there must be enough.
        let tabs = study.name == "tab-priority";
        let corpus = if tabs { "corpus:2012:10" } else { "corpus:2012:2" };
        arm.pages = arm
            .pages
            .iter()
            .map(|p| if p.starts_with("corpus") { corpus.into() } else { p.clone() })
            .collect();
    }
    study
}

fn shows_something(picture: &Picture) -> bool {
    let some = |series: &Series| series.points.iter().any(|(_, y)| y.is_finite());
    match picture {
        Picture::Figure(figure) => figure.series.iter().any(some),
        // Each of them, in each of its columns.
        Picture::Panels(panels) => panels.rows.iter().all(|row| {
            let shown = |panel: &Panel| panel.lines.iter().all(some) && !panel.lines.is_empty();
            row.panels.len() == panels.columns.len() && row.panels.iter().all(shown)
        }),
        Picture::TimeLines(lines) => lines.lines.iter().all(|line| !line.packets.is_empty()),
        Picture::Table(table) => table.rows.iter().all(|row| row.len() == table.head.len()),
    }
}

#[test]
fn every_study_says_what_it_claims_and_can_be_measured() {
    for study in all() {
        let name = study.name.clone();
        assert!(study.published.iter().all(|p| p.low < p.high), "{name}");
        assert!(!study.differs.is_empty() && !study.claim.is_empty(), "{name}");
        let findings = found(small(study), 2);
        let knows = STUDIES.iter().any(|b| b.name == name && b.turns.is_some());
        assert_eq!(!findings.turns.is_empty(), knows, "{name}: {:?}", findings.turns);
        assert!(findings.loads > 0 && findings.incomplete == 0, "{name}: {} incomplete", findings.incomplete);
        assert!(findings.pictures.iter().all(shows_something), "{name}");
        // Rare stalls do not show in so few loads.
        if name != "connection-retry" {
            for (ours, published) in findings.ours.iter().zip(&findings.study.published) {
                assert!(ours.is_some(), "{name}: nothing measures {}", published.key);
            }
        }
    }
}

#[test]
fn findings_do_not_depend_on_the_number_of_threads() {
    let study = || small(named("preconnect").unwrap());
    assert_eq!(found(study(), 1), found(study(), 3));
}

#[test]
fn a_verdict_is_counted_from_the_figures() {
    let study = named("flow-control").unwrap();
    let with = |ours: [f64; 3]| Findings {
        study: study.clone(),
        ours: ours.into_iter().chain([2.5, 1.5, 500.0]).map(Some).collect(),
        turns: Vec::new(),
        pictures: Vec::new(),
        loads: 4,
        incomplete: 0,
    };
    assert_eq!(with([1.0, 1_500.0, 2.0]).verdict(), Verdict::Reproduced);
    assert_eq!(with([1.0, 2_500.0, 2.0]).verdict(), Verdict::Partly);
    let none = Findings { ours: vec![Some(-1.0); 6], ..with([0.0; 3]) };
    assert_eq!((none.verdict(), none.lesson()), (Verdict::Not, study.lesson.fails.as_str()));
    let says = with([1.0, 2_500.0, 2.0]).says();
    assert!(
        says.starts_with(
            "Reproduced in part: 5 of 6 figures. Not within range: with large images: B is done"
        ),
        "{says}"
    );
    let nothing = Findings { ours: vec![None; 6], ..with([0.0; 3]) };
    assert_eq!(nothing.verdict(), Verdict::Not, "what was not measured is not reproduced");
}

/// The published time line, whose two variants are a round trip of 83 ms apart.
#[test]
fn false_start_saves_its_round_trip_on_one_connection() {
    let mut study = named("false-start").unwrap();
    study.arms.iter_mut().for_each(|arm| {
        if arm.pages[0].starts_with("corpus") {
            arm.pages = vec!["corpus:2012:1".into()];
        }
    });
    let findings = found(study, 1);
    let saved = findings.study.published.iter().position(|p| p.key == "saved_ms").unwrap();
    assert!((findings.ours[saved].unwrap() - 83.0).abs() < 2.0, "{:?}", findings.ours);
}

#[test]
fn an_unknown_study_is_answered_with_those_there_are() {
    let says = named("warp").unwrap_err().to_string();
    assert!(
        says.starts_with("there is no study 'warp'; there are spdy-vs-http, spdy-grid, spdy-ablation"),
        "{says}"
    );
}

#[test]
fn an_arm_has_networks_or_a_grid_that_there_is() {
    let says = |change: fn(&mut Arm)| {
        let mut study = named("preconnect").unwrap();
        change(&mut study.arms[0]);
        let options = Options { threads: 1, cancel: &AtomicBool::new(false), progress: &|_, _| {} };
        run(study, options).unwrap_err().to_string()
    };
    assert_eq!(says(|arm| arm.grid = None), "arm 'none': it has neither networks nor a grid");
    assert_eq!(
        says(|arm| arm.networks = vec!["seed".into()]),
        "arm 'none': it has both networks and a grid; leave one out"
    );
    assert_eq!(
        says(|arm| arm.grid = Some("moon".into())),
        "arm 'none': there is no grid 'moon'; there are broadband, one-link"
    );
}
