//! One body, two arms: the same scenarios over virtual TCP and over the kernel's.
//!
//! A [`Scenario`](conformance::scenario::Scenario) is a network, two ends' TCP and what their applications say to each other. One arm
//! runs it in virtual time; the other with sockets in two network namespaces, packets between them passing in real time
//! through the same model of a link. Both leave a note of every packet, and what is compared is read off these notes.
//!
//! The tests compare what no load of the machine moves by itself: segments a flight, where a flight is what one round trip caused;
//! retransmissions, timeouts and the trips that an answer took. A load can still make a timer of the kernel's fire
//! early; so a scenario may run a few times, and once must agree. Milliseconds stand in a table, to be had by
//!
//! ```sh
//! cargo test -p velodrome-live --test conformance -- --ignored --nocapture
//! ```
//!
//! on an idle machine, or as root under `chrt -f 20`. `ONLY=words` takes the scenarios whose names have them, `STORIES=directory` writes
//! every packet of both arms there. Without the rights to make networks the kernel's arm says that it is skipped.
#![cfg(target_os = "linux")]

mod conformance {
    pub mod catalogue;
    pub mod kernel_arm;
    pub mod scenario;
    pub mod track;
    pub mod virtual_arm;
}

use std::fmt::Debug;

use base::{Duration, Instant};
use conformance::scenario::{Network, Outcome, Scenario};
use conformance::track::{Client, Server};
use conformance::{catalogue, kernel_arm, virtual_arm};

/// Runs of the kernel's arm of which one must agree.
const ATTEMPTS: usize = 6;

/// Both arms have the same of something.
fn agree<T: PartialEq + Debug>(scenarios: &[Scenario], what: impl Fn(&Outcome) -> T) {
    for scenario in scenarios {
        let expected = in_all_phases(scenario);
        let mut wanted: Vec<_> = expected.iter().map(&what).collect();
        wanted.dedup();
        let mut seen = Vec::new();
        for attempt in 1..=ATTEMPTS {
            let Some(outcome) = kernel_arm::run(scenario) else { return };
            let got = what(&outcome);
            if wanted.contains(&got) {
                break;
            }
            seen.push(got);
            let (name, story) = (&scenario.name, (expected[0].story(), outcome.story()));
            assert!(
                attempt < ATTEMPTS,
                "{name}: virtual {wanted:?}, kernel {seen:?}\nvirtual, the first:\n{}\nkernel:\n{}",
                story.0,
                story.1
            );
        }
    }
}

/// What virtual time makes of a scenario that begins so many milliseconds behind a step of the wheel on which timers of about a
/// second lie, 32 ms: nobody knows when the kernel's arm begins, and it may decide which of two timers is sooner.
fn in_all_phases(scenario: &Scenario) -> Vec<Outcome> {
    let start = |ms| Instant::ZERO + Duration::from_millis(ms);
    (0..32).map(|ms| virtual_arm::run_from(scenario, start(ms))).collect()
}

/// Round trip by round trip the kernel sends as many segments, and an answer is there after as many trips.
#[test]
fn flights_are_as_long_as_the_kernels() {
    agree(&catalogue::flights(), |outcome| {
        let connections = 0..outcome.connections();
        connections.map(|c| (outcome.flights(c), outcome.trips(c))).collect::<Vec<_>>()
    });
}

/// By fast recovery, tail-loss probe or timeout, whichever the kernel takes.
#[test]
fn losses_are_repaired_as_by_the_kernel() {
    agree(&catalogue::losses(), |outcome| (outcome.resent(), outcome.timeouts(), outcome.trips(0)));
}

/// As many SYNs in the same seconds. If the SYN/ACK was lost, a second or a second and a third one come, whichever timer is sooner.
#[test]
fn lost_handshakes_are_repeated_as_by_the_kernel() {
    agree(&catalogue::handshakes(), |outcome| {
        let syns = outcome.notes.iter().filter(|note| note.header.syn);
        syns.map(|note| (note.from, note.sent.since(outcome.notes[0].sent).as_nanos() / 1_000_000_000))
            .collect::<Vec<_>>()
    });
}

/// What one phase of the timers leaves to chance the others show: a SYN/ACK that is lost is repeated once or, for both ends, twice,
/// and then the window begins with one segment.
#[test]
fn the_phase_of_the_timers_decides_how_often_a_lost_syn_ack_is_repeated() {
    let lost = catalogue::handshakes().pop().expect("the last is the one");
    let syn_acks = |outcome: &Outcome| {
        let syns = outcome.notes.iter().filter(|note| note.header.syn && note.from == Server);
        (syns.count(), outcome.flights(0)[0])
    };
    let mut seen: Vec<_> = in_all_phases(&lost).iter().map(syn_acks).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [(2, 4), (3, 1)]);
}

/// Congestion window and its restart (RFC 2861): how many segments each flight after the pause has.
#[test]
fn a_pause_costs_as_much_of_cwnd_as_in_the_kernel() {
    agree(&catalogue::pauses(), |outcome| (outcome.flights(0), outcome.trips(0)));
}

/// The first request is acknowledged by itself before it is answered, the second with the answer.
#[test]
fn requests_are_acknowledged_as_by_the_kernel() {
    let scenario = Scenario::one("two requests", Network::new(0, 0, 60), 3_000).then(10, 3_000);
    agree(&[scenario], |outcome| {
        let of_server = outcome.notes.iter().filter(|note| note.from == Server);
        let mut said: Vec<_> =
            of_server.map(|note| (note.header.syn, note.header.ack, note.header.len)).collect();
        let last = said.iter().rposition(|(.., len)| *len > 0).expect("it answers");
        said.truncate(last + 1);
        said
    });
}

/// The client's SYN, its request, the answer's first and last flight: half a round trip each but for the flights between.
#[test]
fn virtual_times_are_those_of_arithmetic() {
    for (segments, flights) in [(1, 1), (10, 1), (11, 2), (30, 2), (31, 3), (70, 3)] {
        for rtt_ms in [20, 100, 300] {
            let outcome = virtual_arm::run(&Scenario::one("", Network::new(0, 0, rtt_ms), 1_448 * segments));
            let answer = outcome.answers(0)[0];
            let rtt = Duration::from_millis(rtt_ms);
            assert_eq!(
                (answer.first, answer.last),
                (rtt * 2, rtt * (1 + flights)),
                "{segments}, {rtt_ms} ms"
            );
            assert_eq!(u64::from(answer.trips), 2 * (1 + flights), "{segments}, {rtt_ms} ms");
        }
    }
}

/// A packet that is to be lost is, and no other; nothing arrives before its time.
#[test]
fn both_arms_have_the_network_that_was_asked_for() {
    let network = Network::new(2_000, 386, 60).losing([2, 4]);
    let scenario = Scenario::one("two lost", network, 10_000);
    for outcome in [Some(virtual_arm::run(&scenario)), kernel_arm::run(&scenario)].into_iter().flatten() {
        let data = |note: &&conformance::track::Note| note.from == Server && note.header.len > 0;
        let lost: Vec<_> =
            (0..).zip(outcome.notes.iter().filter(data)).filter(|(_, note)| note.arrived.is_none()).collect();
        assert_eq!(lost.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [2, 4], "{}", outcome.story());
        let mut free = Instant::ZERO;
        for note in outcome.notes.iter().filter(|note| note.from == Server) {
            let Some(arrived) = note.arrived else { continue };
            let wire_len = if note.header.syn { 60 } else { note.header.len + 52 };
            free = free.max(note.sent) + base::Bitrate::from_kbps(2_000).unwrap().time_to_send(wire_len);
            assert!(arrived >= free + Duration::from_millis(30), "{}", outcome.story());
        }
        assert!(outcome.notes.iter().any(|note| note.from == Client && note.header.sacks > 0));
    }
}

#[test]
#[ignore = "a measurement: how long every scenario takes in both arms; two minutes"]
fn table_of_milliseconds() {
    const RUNS: usize = 5;
    let all = [
        catalogue::transfers(),
        catalogue::flights(),
        catalogue::losses(),
        catalogue::handshakes(),
        catalogue::pauses(),
    ];
    println!(
        "| scenario | virtual, ms | kernel, ms (median of {RUNS}) | from–to | difference, % | sent again: virtual, kernel |"
    );
    println!("|---|---:|---:|---|---:|---|");
    let only = std::env::var("ONLY").unwrap_or_default();
    for scenario in all.iter().flatten().filter(|scenario| scenario.name.contains(&only)) {
        let ours = virtual_arm::run(scenario);
        let mut kernel: Vec<_> = (0..RUNS).map_while(|_| kernel_arm::run(scenario)).collect();
        kernel.sort_by_key(Outcome::end);
        let [first, .., last] = &kernel[..] else { return };
        let median = &kernel[kernel.len() / 2];
        let ms = |outcome: &Outcome| outcome.end().as_millis_f64();
        println!(
            "| {} | {:.1} | {:.1} | {:.1}–{:.1} | {:+.1} | {}, {} |",
            scenario.name,
            ms(&ours),
            ms(median),
            ms(first),
            ms(last),
            (ms(&ours) / ms(median) - 1.0) * 100.0,
            ours.resent(),
            median.resent(),
        );
        if let Some(stories) = std::env::var_os("STORIES") {
            let file =
                |arm| std::path::Path::new(&stories).join(scenario.name.replace(['/', ' '], "-") + arm);
            std::fs::write(file(".virtual"), ours.story()).expect("a directory");
            std::fs::write(file(".kernel"), median.story()).expect("a directory");
        }
    }
}
