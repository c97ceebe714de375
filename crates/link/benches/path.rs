//! What a packet costs the simulator.

use base::{Bitrate, Duration, Instant, Rng};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use link::{Discipline, LossConfig, Packet, Path, PathConfig, QueueConfig, Rate, Trace};

/// As large as a TCP segment with its SACK blocks.
#[derive(Clone, Copy)]
struct Segment([u64; 16]);

impl Packet for Segment {
    fn wire_len(&self) -> u32 {
        1_500
    }
    fn flow(&self) -> u64 {
        self.0[0]
    }
}

/// A source that keeps 20 packets on the path: one enters for each that arrives.
fn closed_loop(path: &mut Path<Segment>, packets: u64) -> u64 {
    let mut now = Instant::ZERO;
    for i in 0..20 {
        path.push(now, Segment([i % 6; 16]));
    }
    let mut out = 0;
    while out < packets {
        let Some(at) = path.next_time() else { break };
        now = at;
        while path.pop(now).is_some() {
            out += 1;
            path.push(now, Segment([out % 6; 16]));
        }
    }
    out
}

fn benches(c: &mut Criterion) {
    const PACKETS: u64 = 10_000;
    let rate = Rate::Constant(Bitrate::from_kbps(2_000).unwrap());
    let config = |discipline, loss| PathConfig {
        rate: rate.clone(),
        delay: Duration::from_millis(50),
        loss,
        queue: QueueConfig { discipline, ..QueueConfig::drop_tail(100_000) },
        ..PathConfig::default()
    };
    let trace = Rate::Trace(Trace::parse("1\n").unwrap().into());
    let mut group = c.benchmark_group("path");
    group.throughput(Throughput::Elements(PACKETS));
    group.warm_up_time(std::time::Duration::from_millis(500));
    group.measurement_time(std::time::Duration::from_secs(2));
    for (name, config) in [
        ("drop-tail", config(Discipline::DropTail, LossConfig::None)),
        ("drop-tail, drawing loss", config(Discipline::DropTail, LossConfig::Bernoulli { p: 1e-9 })),
        ("codel", config(Discipline::CoDel, LossConfig::None)),
        ("fq-codel", config(Discipline::FqCoDel, LossConfig::None)),
        ("trace, 12 Mbit/s", PathConfig { rate: trace, ..config(Discipline::DropTail, LossConfig::None) }),
        ("unlimited", PathConfig { delay: Duration::from_millis(50), ..PathConfig::default() }),
    ] {
        let path = Path::new(&config, Rng::new(1));
        group.bench_function(name, |b| b.iter(|| closed_loop(&mut path.clone(), PACKETS)));
    }
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
