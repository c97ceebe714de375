//! The scenarios: transfers over clean links, queues that overflow, losses in chosen places, pauses, several connections.

use crate::conformance::scenario::{Drop, Network, Scenario};

/// 10 Mbit/s down, 1 up, 100 ms.
fn cable() -> Network {
    Network::new(10_000, 1_000, 100)
}

/// No rate and no queue: flights are told apart by nothing but the round trip, which is so long that no stumbling of the machine
/// looks like a loss.
fn bare() -> Network {
    Network::new(0, 0, 300)
}

fn syn_lost(up: u64, down: u64) -> Network {
    let mut network = cable();
    network.drop_up.extend((0..up).map(Drop::Syn));
    network.drop_down.extend((0..down).map(Drop::Syn));
    network
}

fn request_lost(n: u64) -> Network {
    let mut network = cable();
    network.drop_up.push(Drop::Data(n));
    network
}

fn initial_cwnd(segments: u32) -> impl Fn(&mut tcp::Config) {
    move |config| config.initial_cwnd = segments
}

/// Slow start where the link takes no time.
pub fn flights() -> Vec<Scenario> {
    vec![
        Scenario::one("3 segments at first", bare(), 40_000).with(initial_cwnd(3)),
        Scenario::one("10 segments at first", bare(), 100_000),
        Scenario::one("a first receive window of 4 segments", bare(), 40_000)
            .with(|c| c.initial_rwnd = 4 * 1460),
        Scenario::one("without timestamps", bare(), 60_000).with(|c| c.timestamps = false),
        Scenario::one("without SACK", bare(), 60_000).with(|c| c.sack = false),
        Scenario::one("Reno", bare(), 60_000).with(|c| c.congestion = tcp::Congestion::Reno),
        Scenario::one("three connections", bare(), 30_000).times(3),
    ]
}

/// Losses in chosen places.
pub fn losses() -> Vec<Scenario> {
    let ten = 10 * 1_448;
    vec![
        Scenario::one("the 4th of 10 lost", cable().losing([3]), ten),
        Scenario::one("the first of 10 lost", cable().losing([0]), ten),
        Scenario::one("3 of the second flight lost", cable().losing([12, 15, 20]), 65_000),
        Scenario::one("9 of 10 lost", cable().losing(0..9), ten),
        Scenario::one("the last lost", cable().losing([9]), ten),
        Scenario::one("the last 2 lost", cable().losing([8, 9]), ten),
        Scenario::one("the last 4 lost", cable().losing(6..10), ten),
        Scenario::one("all 10 lost", cable().losing(0..10), ten),
        Scenario::one("the only one lost", cable().losing([0]), 1_000),
        Scenario::one("the only one lost twice", cable().losing([0, 1]), 1_000),
        Scenario::one("a retransmission lost", cable().losing([3, 10]), ten),
        Scenario::one("the 2nd of 3 lost", cable().losing([1]), 4_000),
        Scenario::one("the request lost", request_lost(0), 1_000),
        Scenario::one("the second request lost", request_lost(1), 50_000).then(50, 5_000),
        Scenario::one("without SACK, the 4th of 10 lost", cable().losing([3]), ten).with(|c| c.sack = false),
    ]
}

/// SYNs and their answers lost.
pub fn handshakes() -> Vec<Scenario> {
    vec![
        Scenario::one("the SYN lost", syn_lost(1, 0), 5_000),
        Scenario::one("the SYN lost twice", syn_lost(2, 0), 5_000),
        Scenario::one("the SYN lost three times", syn_lost(3, 0), 5_000),
        Scenario::one("the SYN/ACK lost", syn_lost(0, 1), 5_000),
    ]
}

/// Pauses between answers.
pub fn pauses() -> Vec<Scenario> {
    vec![
        Scenario::one("a pause of 100 ms", bare(), 60_000).then(100, 60_000),
        Scenario::one("a pause of 5 s", bare(), 60_000).then(5_000, 60_000),
        Scenario::one("a pause of 5 s, cwnd kept", bare(), 60_000)
            .then(5_000, 60_000)
            .with(|c| c.idle_restart = false),
    ]
}

/// What the table is about beside all of the above: links with a rate, whose queue overflows or not.
pub fn transfers() -> Vec<Scenario> {
    let mut all = Vec::new();
    for (link, down, up) in [
        ("386 kbit/s", 386, 386),
        ("2 Mbit/s", 2_000, 386),
        ("10 Mbit/s", 10_000, 1_000),
        ("50 Mbit/s", 50_000, 10_000),
    ] {
        for rtt in [20, 100, 300] {
            for (size, bytes) in
                [("5 kB", 5_000), ("50 kB", 50_000), ("500 kB", 500_000), ("5 MB", 5_000_000)]
            {
                if bytes <= 1_000 * down {
                    all.push(Scenario::one(
                        &format!("{size}, {link}, {rtt} ms"),
                        Network::new(down, up, rtt),
                        bytes,
                    ));
                }
            }
        }
    }
    let small = || cable().queue(20_000);
    all.extend([
        Scenario::one("500 kB, a queue of 20 kB", small(), 500_000),
        Scenario::one("5 MB, a queue of 20 kB", small(), 5_000_000),
        Scenario::one("500 kB, Reno", cable(), 500_000).with(|c| c.congestion = tcp::Congestion::Reno),
        Scenario::one("500 kB, no SACK", cable(), 500_000).with(|c| c.sack = false),
        Scenario::one("20 kB, 3 segments at first, 386 kbit/s", Network::new(386, 386, 100), 20_000)
            .with(initial_cwnd(3)),
        Scenario::one("50 kB, 3 segments at first", cable(), 50_000).with(initial_cwnd(3)),
        Scenario::one("6 × 30 kB at once", cable(), 30_000).times(6),
        Scenario::one("6 × 30 kB at once, 2 Mbit/s", Network::new(2_000, 386, 100), 30_000).times(6),
        Scenario::one("6 × 200 kB at once", cable(), 200_000).times(6),
        Scenario::one("100 kB, 100 ms later 100 kB", cable(), 100_000).then(100, 100_000),
        Scenario::one("100 kB, 600 ms later 100 kB", cable(), 100_000).then(600, 100_000),
        Scenario::one("100 kB, 3 s later 100 kB", cable(), 100_000).then(3_000, 100_000),
        Scenario::one("30 kB, at once 60 kB, no rate", bare(), 30_000).then(0, 60_000),
        Scenario::one(
            "8 kB, at once 480 kB, 1 Gbit/s, 100 ms",
            Network::new(1_000_000, 1_000_000, 100),
            8_000,
        )
        .then(0, 480_000),
        Scenario::one("five small answers", cable(), 3_000)
            .then(0, 3_000)
            .then(0, 3_000)
            .then(10, 20_000)
            .then(0, 100_000),
    ]);
    all
}
