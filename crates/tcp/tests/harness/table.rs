//! The table of closed forms that the documentation shows.

use std::fmt::Write;

use base::{Bitrate, Duration, Instant};
use tcp::CwndGrowth;

use super::closed_form::{SIZES, Transfer, ack_clock};
use super::{Path, World};

const HEAD: &str = "From the client's SYN to the arrival of the last byte, in ms; the difference in times of one segment. \
The formula counts round trips of slow start until the pipe is full, and then the rate; it was derived without the simulator.

| down / up kbit/s, RTT ms | bytes | IW 3, Linux 2010: formula | simulated | IW 10, today: formula | simulated | difference |
|---|---:|---:|---:|---:|---:|---:|
";

/// How long a transfer takes in the simulator.
pub fn simulate(t: &Transfer, checks: bool) -> Duration {
    let path = Path { down: Some(t.down), up: Some(t.up), rtt: t.rtt };
    let mut world = World::new(t.config(), t.config(), &path);
    world.checks = checks;
    world.server.to_write = t.size;
    world.run_while(Instant::MAX, |world| world.client.read < t.size);
    let stats = world.server.tcp.stats();
    assert_eq!(
        stats.retransmits + stats.timeouts,
        0,
        "nothing is sent twice on a clean link: {t:?}: {stats:?}"
    );
    world.now.since(Instant::ZERO)
}

/// As Markdown.
pub fn closed_forms() -> String {
    let mut out = HEAD.to_owned();
    for (down, up, rtt) in [(2_000, 386, 100), (10_000, 1_000, 20), (100_000, 20_000, 200)] {
        for size in SIZES {
            let today = Transfer {
                down: Bitrate::from_kbps(down).expect("not zero"),
                up: Bitrate::from_kbps(up).expect("not zero"),
                rtt: Duration::from_millis(rtt),
                size,
                initial_cwnd: 10,
                growth: CwndGrowth::PerSegment,
                delayed_ack: Duration::from_millis(40),
                quick: 16,
                timestamps: true,
            };
            let then = Transfer { initial_cwnd: 3, growth: CwndGrowth::PerAck, quick: 2, ..today.clone() };
            let [(f3, s3), (f10, s10)] = [&then, &today].map(|t| (ack_clock(t), simulate(t, false)));
            let off = [(f3, s3), (f10, s10)].map(|(f, s)| f.max(s) - f.min(s)).into_iter().max();
            let off = off.unwrap_or_default().as_millis_f64() / today.segment_time().as_millis_f64();
            let [f3, s3, f10, s10] = [f3, s3, f10, s10].map(Duration::as_millis_f64);
            writeln!(
                out,
                "| {down} / {up}, {rtt} | {size} | {f3:.3} | {s3:.3} | {f10:.3} | {s10:.3} | {off:.3} |"
            )
            .expect("a string takes all");
        }
    }
    out
}
