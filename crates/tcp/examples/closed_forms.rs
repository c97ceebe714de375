//! Prints, as Markdown, how long transfers over a clean link take by arithmetic and in the simulator.
//!
//!     cargo run --release -p velodrome-tcp --example closed_forms

#[path = "../tests/harness/mod.rs"]
mod harness;

use base::{Bitrate, Duration, Instant};
use harness::closed_form::{SIZES, Transfer, ack_clock};
use harness::{Path, World};
use tcp::CwndGrowth;

fn simulate(t: &Transfer) -> Duration {
    let path = Path { down: Some(t.down), up: Some(t.up), rtt: t.rtt };
    let mut world = World::new(t.config(), t.config(), &path);
    world.checks = false;
    world.server.to_write = t.size;
    world.run_while(Instant::MAX, |world| world.client.read < t.size);
    world.now.since(Instant::ZERO)
}

fn main() {
    println!(
        "From the client's SYN to the arrival of the last byte, in ms; the difference in segment times.\n"
    );
    println!(
        "| down / up kbit/s, RTT ms | bytes | IW 3, then: formula | simulated | IW 10, today: formula | simulated | difference |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for (down, up, rtt) in [(2_000, 386, 100), (10_000, 1_000, 20), (100_000, 20_000, 200)] {
        for size in SIZES {
            let base = Transfer {
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
            let old = Transfer { initial_cwnd: 3, growth: CwndGrowth::PerAck, quick: 2, ..base.clone() };
            let times = [&old, &base].map(|t| (ack_clock(t), simulate(t)));
            let off = times.map(|(formula, simulated)| formula.max(simulated) - formula.min(simulated));
            let off = off[0].max(off[1]).as_millis_f64() / base.segment_time().as_millis_f64();
            let [(f3, s3), (f10, s10)] = times.map(|(f, s)| (f.as_millis_f64(), s.as_millis_f64()));
            println!(
                "| {down} / {up}, {rtt} | {size} | {f3:.3} | {s3:.3} | {f10:.3} | {s10:.3} | {off:.3} |"
            );
        }
    }
}
