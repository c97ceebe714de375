//! What a record costs the simulator.

use base::{BodyRange, Instant};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tls::{Config, Mode, Session};

fn pump(from: &mut Session, to: &mut Session) {
    while let Some(chunk) = from.poll_transmit(Instant::ZERO, 2_896) {
        to.handle_input(Instant::ZERO, chunk).unwrap();
    }
}

fn benches(c: &mut Criterion) {
    let mut group = c.benchmark_group("tls");
    group.measurement_time(std::time::Duration::from_secs(2));
    group.warm_up_time(std::time::Duration::from_millis(500));
    for mode in [Mode::Tls12Full, Mode::Tls13Full] {
        let connect = || {
            let config = Config::new(mode);
            let mut client = Session::client(config.clone(), Instant::ZERO);
            let mut server = Session::server(config, Instant::ZERO);
            for _ in 0..2 {
                pump(&mut client, &mut server);
                pump(&mut server, &mut client);
            }
            (client, server)
        };
        group.throughput(Throughput::Elements(1));
        group.bench_function(format!("handshake, both ends, {mode:?}"), |b| b.iter(connect));
        let (client, server) = connect();
        // 1 MB in records of 2,867 or 2,874 bytes, each from a frame header and a part of a body.
        const RECORDS: u64 = 350;
        group.throughput(Throughput::Elements(RECORDS));
        group.bench_function(format!("records, both ends, {mode:?}"), |b| {
            b.iter(|| {
                let (mut client, mut server) = (client.clone(), server.clone());
                for i in 0..RECORDS {
                    server.write(bytes::Bytes::from_static(b"12345678").into());
                    server.write(BodyRange { source: 0, start: i * 2_800, len: 2_800 }.into());
                    pump(&mut server, &mut client);
                    while client.read().is_some() {}
                }
                client
            });
        });
    }
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
