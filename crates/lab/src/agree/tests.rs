use std::fs;

use super::*;
use crate::network::Network;
use crate::plan::FORMAT;
use crate::result::{Key, LiveWayRow, emit};
use crate::scratch::{Dir, load_row};

/// A run of three pages over two transports, with these page load times in ms by page, then transport, then run.
fn write(dir: &Path, world: World, plts: [[&[u64]; 2]; 3]) {
    let runs = plts[0][0].len() as u32;
    let plan = Plan {
        format: FORMAT,
        world,
        seed: 1,
        runs,
        transports: vec!["http1".into(), "spdy3.1".into()],
        pages: vec!["made up".into()],
        pages_max: None,
        techniques: Vec::new(),
        state: None,
        networks: vec![Network::named("seed").unwrap()],
    };
    fs::create_dir_all(dir).unwrap();
    let (mut loads, mut live) = (Vec::new(), Vec::new());
    for (page, plts) in plts.iter().enumerate() {
        for (transport, plts) in plan.transports.iter().zip(plts) {
            for (run, plt) in (0..).zip(*plts) {
                let key = Key {
                    page: format!("p{page}"),
                    network: "seed".into(),
                    transport: transport.clone(),
                    run,
                };
                let mut row = load_row(&key, 0, (*plt > 0).then_some(plt * 1_000));
                row.critical = Some(Phases { wait_us: plt * 1_000, ..Phases::default() });
                emit(&row, &mut loads);
                let way = |late| LiveWayRow {
                    packets: 1,
                    late_median_us: Some(1.0),
                    late_p99_us: Some(late),
                    late_max_us: Some(late),
                };
                let unmet = if page == 0 { vec!["the moon".into()] } else { Vec::new() };
                emit(
                    &LiveRow {
                        key,
                        unmet,
                        kernel: Vec::new(),
                        browser_waited_ms: None,
                        servers_waited_ms: None,
                        up: way(1.0),
                        down: way(*plt as f64),
                    },
                    &mut live,
                );
            }
        }
    }
    fs::write(dir.join(folder::PLAN), plan.emit()).unwrap();
    fs::write(dir.join(folder::LOADS), loads).unwrap();
    fs::write(dir.join(folder::REQUESTS), b"").unwrap();
    if world == World::Live {
        fs::write(dir.join(folder::LIVE), live).unwrap();
    }
}

fn compared(virtually: [[&[u64]; 2]; 3], lively: [[&[u64]; 2]; 3]) -> Agreement {
    // Tests of one process must not share it.
    let dir = Dir::new(&format!("agree-{:?}", std::thread::current().id()));
    write(&dir.path().join(VIRTUAL), World::Virtual, virtually);
    write(&dir.path().join(LIVE), World::Live, lively);
    compare(dir.path()).unwrap()
}

#[test]
fn each_cell_is_the_median_of_its_runs_and_errors_are_the_virtual_worlds() {
    let live: [[&[u64]; 2]; 3] =
        [[&[90, 100, 400], &[50, 50, 50]], [&[100; 3], &[100; 3]], [&[100; 3], &[97; 3]]];
    let agreement = compared([[&[110], &[50]], [&[100], &[103]], [&[100], &[120]]], live);
    assert_eq!(agreement.runs, [1, 3]);
    assert_eq!(agreement.cells[0].plt_ms, [110.0, 100.0]);
    assert_eq!(agreement.cells[0].live_range_ms, [90.0, 400.0]);
    let all = &agreement.groups[0];
    assert_eq!((all.cells, all.median_pct, all.max_pct), (6, 1.5, 23.71));
    assert_eq!(all.within_range, Some([1, 1]), "only one cell's live runs differ, and 110 is among them");
    assert_eq!(all.parts_ms[4], round((110.0 - 590.0 / 3.0 + 0.0 + 0.0 + 3.0 + 0.0 + 23.0) / 6.0, 1));
    assert_eq!(agreement.groups.len(), 4, "all, those without drops, and one a transport");
    assert_eq!((agreement.groups[1].overflowed, agreement.groups[1].cells), (Some(false), 6));
    assert_eq!(agreement.unmet, [("the moon".to_owned(), 6)]);
    assert_eq!(agreement.late_p99_us, Some([100.0, 400.0]));
}

/// The first pair is clear and agreed on, the second not clear, the third clear in the virtual world alone.
#[test]
fn worlds_agree_on_the_faster_transport_where_the_live_one_is_clear() {
    let live: [[&[u64]; 2]; 3] = [[&[100], &[50]], [&[100], &[96]], [&[100], &[97]]];
    let agreement = compared([[&[100], &[99]], [&[100], &[104]], [&[100], &[200]]], live);
    assert_eq!(agreement.faster, Faster { pairs: 3, clear: 1, agree: 1 });
    let agreement = compared([[&[100], &[101]], [&[100], &[104]], [&[100], &[200]]], live);
    assert_eq!(agreement.faster, Faster { pairs: 3, clear: 1, agree: 0 });
}

#[test]
fn loads_that_are_not_whole_are_named_and_not_compared() {
    let live: [[&[u64]; 2]; 3] = [[&[100], &[0]], [&[100], &[96]], [&[100], &[95]]];
    let agreement = compared([[&[100], &[99]], [&[100], &[104]], [&[100], &[200]]], live);
    assert_eq!(agreement.cells.len(), 5);
    assert_eq!(agreement.incomplete, ["p0 on seed over spdy3.1: 1 of 1 live loads incomplete: made up"]);
}

#[test]
fn two_plans_are_not_compared() {
    let dir = Dir::new("agree-two-plans");
    let plts: [[&[u64]; 2]; 3] = [[&[1], &[1]]; 3];
    write(&dir.path().join(VIRTUAL), World::Virtual, plts);
    write(&dir.path().join(LIVE), World::Virtual, plts);
    let error = compare(dir.path()).unwrap_err().to_string();
    assert!(error.contains("does not hold the same plan in both worlds"), "{error}");
}
