//! Over a clean link a transfer takes what arithmetic says it takes.

mod harness;

use base::{Bitrate, Duration};
use harness::closed_form::{SIZES, Transfer, ack_clock, rounds};
use harness::table::simulate;
use tcp::CwndGrowth;

fn transfers() -> impl Iterator<Item = Transfer> {
    let mut all = Vec::new();
    for (down, up) in [(2_000, 386), (10_000, 1_000), (100_000, 20_000)] {
        for (rtt_ms, initial_cwnd) in [(20, 3), (20, 10), (100, 3), (100, 10), (200, 3), (200, 10)] {
            for (delay_ms, quick) in [(0, 0), (40, 0), (40, 16)] {
                for growth in [CwndGrowth::PerAck, CwndGrowth::PerSegment] {
                    for timestamps in [false, true] {
                        all.push(Transfer {
                            down: Bitrate::from_kbps(down).unwrap(),
                            up: Bitrate::from_kbps(up).unwrap(),
                            rtt: Duration::from_millis(rtt_ms),
                            size: 0,
                            initial_cwnd,
                            growth,
                            delayed_ack: Duration::from_millis(delay_ms),
                            quick,
                            timestamps,
                        });
                    }
                }
            }
        }
    }
    all.into_iter().flat_map(|t| SIZES.map(|size| Transfer { size, ..t.clone() }))
}

#[test]
fn transfer_times_equal_the_closed_form_to_one_segment_time() {
    let mut worst = Duration::ZERO;
    for t in transfers() {
        // The checkers cost more than the rest.
        let (simulated, expected) = (simulate(&t, t.size <= 100_000), ack_clock(&t));
        let off = simulated.max(expected) - simulated.min(expected);
        assert!(off <= t.segment_time(), "{t:?}: simulated {simulated:?}, expected {expected:?}");
        worst = worst.max(off);
    }
    println!("worst {worst:?}");
}

#[test]
fn the_two_derivations_agree_where_both_hold() {
    let mut compared = 0;
    for t in transfers() {
        if let Some(by_rounds) = rounds(&t) {
            let by_acks = ack_clock(&t);
            let off = by_rounds.max(by_acks) - by_rounds.min(by_acks);
            assert!(
                off <= t.segment_time(),
                "{t:?}: by rounds {by_rounds:?}, by acknowledgements {by_acks:?}"
            );
            compared += 1;
        }
    }
    assert!(compared >= 600, "{compared}");
}

#[test]
fn the_table_in_the_documentation_is_the_one_that_is_computed() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/closed-forms.md");
    let text = std::fs::read_to_string(file).expect("docs/closed-forms.md");
    let written = text.split_once("<!-- transfers -->\n").expect("the mark before the table").1;
    let computed = harness::table::closed_forms();
    assert!(
        written.starts_with(&computed),
        "docs/closed-forms.md is not what `cargo run -p velodrome-tcp --example closed_forms` prints: put that in"
    );
}
