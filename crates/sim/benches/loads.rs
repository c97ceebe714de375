//! Page loads a second on one core: a page of 100 requests, 1.5 MB and 15 hosts, on the network of the 2012 claims.

use base::{Bitrate, Duration};
use client::Transport;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use load::Setup;

fn loads(c: &mut Criterion) {
    let pages = page::corpus::generate("bench", 1, 1).expect("a built-in corpus");
    let mut group = c.benchmark_group("load");
    group.throughput(Throughput::Elements(1));
    for transport in [Transport::Http1, Transport::Spdy(spdy::Version::V3_1)] {
        for loss in [0.0, 0.01] {
            let mut setup = Setup::new(transport);
            setup.down.rate = link::Rate::Constant(Bitrate::from_kbps(2_000).expect("not zero"));
            setup.up.rate = link::Rate::Constant(Bitrate::from_kbps(386).expect("not zero"));
            for path in [&mut setup.down, &mut setup.up] {
                path.delay = Duration::from_millis(50);
                path.queue.limit_bytes = 25_000;
                path.loss = link::LossConfig::Bernoulli { p: loss };
            }
            group.bench_function(format!("{transport}/loss {loss}"), |b| {
                b.iter(|| sim::load(&pages[0], &setup, 1));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, loads);
criterion_main!(benches);
