//! 10 MB from a server to a client over 50 Mbit/s and 40 ms, both ends and the wires between them included: segments
//! handled a second, where each is counted once, when it arrives.

#![allow(missing_docs, reason = "criterion's macros make public functions without any")]

#[path = "../tests/harness/mod.rs"]
mod harness;

use base::{Bitrate, Duration, Instant, Rng};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use harness::{Path, World};
use tcp::Config;

const SIZE: u64 = 10_000_000;

/// What the path loses.
#[derive(Clone, Copy, Debug)]
enum Loss {
    None,
    /// Each packet with this probability.
    Random(f64),
    /// Each second of a thousand packets, as when slow start overruns a drop-tail queue.
    Overrun,
}

/// Gives the number of segments that arrived at either end.
fn transfer(config: &Config, loss: Loss) -> u64 {
    let path = Path {
        down: Bitrate::from_kbps(50_000),
        up: Bitrate::from_kbps(10_000),
        rtt: Duration::from_millis(40),
    };
    let mut world = World::new(config.clone(), config.clone(), &path);
    world.checks = false;
    let mut rng = Rng::new(1);
    world.server.wire.lose = Box::new(move |n, _| match loss {
        Loss::None => false,
        Loss::Random(p) => rng.chance(p),
        Loss::Overrun => (1500..2500).contains(&n) && n % 2 == 0,
    });
    world.server.to_write = SIZE;
    world.run_while(Instant::MAX, |world| world.client.read < SIZE);
    world.client.tcp.stats().segments_received + world.server.tcp.stats().segments_received
}

fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("10 MB");
    for (name, config) in [("today", Config::linux_today()), ("2010", Config::linux_2010())] {
        for loss in [Loss::None, Loss::Random(0.01), Loss::Overrun] {
            group.throughput(Throughput::Elements(transfer(&config, loss)));
            let name = format!("{name}, {loss:?}");
            group.bench_function(name, |bencher| bencher.iter(|| transfer(&config, loss)));
        }
    }
    group.finish();
}

criterion_group! {
    name = all;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(500))
        .measurement_time(std::time::Duration::from_secs(2));
    targets = benches
}
criterion_main!(all);
