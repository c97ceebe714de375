//! What an exchange costs, and what chunked framing costs a byte.

use std::hint::black_box;

use base::{BodyRange, Chunk, Fields, Instant, RequestHead, ResponseHead};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use http1::{client, server};

/// Heads of the size browsers and servers exchange: about 400 bytes up, 300 down.
fn heads() -> (RequestHead, ResponseHead) {
    let mut request = RequestHead {
        method: "GET".into(),
        scheme: "http".into(),
        authority: "www.example.com".into(),
        path: "/static/images/header/logo-small.png?v=20120314".into(),
        fields: Fields::new(),
    };
    request.fields.push(
        "User-Agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/535.19 Chrome/18.0.1025.162 Safari/535.19",
    );
    request.fields.push("Accept", "image/png,image/*;q=0.8,*/*;q=0.5");
    request.fields.push("Referer", "http://www.example.com/news/2012/03/14/index.html");
    request.fields.push("Accept-Encoding", "gzip,deflate,sdch");
    request.fields.push("Accept-Language", "en-US,en;q=0.8");
    request.fields.push("Cookie", "session=0123456789abcdef0123456789abcdef; visit=1331683200");
    let mut response = ResponseHead { status: 200, fields: Fields::new() };
    response.fields.push("Date", "Wed, 14 Mar 2012 09:26:53 GMT");
    response.fields.push("Server", "Apache/2.2.16");
    response.fields.push("Last-Modified", "Mon, 12 Mar 2012 18:02:11 GMT");
    response.fields.push("ETag", "\"2a0c3-1b5f-4bb0e8c9d2f40\"");
    response.fields.push("Cache-Control", "max-age=86400");
    response.fields.push("Content-Type", "image/png");
    (request, response)
}

/// One request and its response with a body of `len` bytes, all through both engines.
fn exchange(
    client: &mut client::Connection,
    server: &mut server::Connection,
    (request, response): &(RequestHead, ResponseHead),
    body: (Option<u64>, &[Chunk]),
) {
    client.request(request, None).unwrap();
    while let Some(chunk) = client.poll_transmit(1460) {
        server.handle_input(Instant::ZERO, chunk).unwrap();
    }
    while let Some(event) = server.poll_event() {
        black_box(event);
    }
    server.respond(response, body.0).unwrap();
    for chunk in body.1 {
        server.send_body(chunk.clone()).unwrap();
    }
    server.finish().unwrap();
    while let Some(chunk) = server.poll_transmit(1460) {
        client.handle_input(Instant::ZERO, chunk).unwrap();
        while let Some(event) = client.poll_event() {
            black_box(event);
        }
    }
}

fn bench(c: &mut Criterion) {
    let heads = heads();
    let mut group = c.benchmark_group("http1");
    group.throughput(Throughput::Elements(100));
    group.bench_function("100 exchanges, bodies of 7 kB as ranges", |b| {
        let body = [Chunk::Body(BodyRange { source: 1, start: 0, len: 7_000 })];
        b.iter(|| {
            let (mut client, mut server) = (client::Connection::new(), server::Connection::new());
            for _ in 0..100 {
                exchange(&mut client, &mut server, &heads, (Some(7_000), &body));
            }
        });
    });
    for size in [16_384, 64] {
        let body = vec![Chunk::from(vec![b'x'; size]); (1 << 20) / size];
        group.throughput(Throughput::Bytes(1 << 20));
        group.bench_function(format!("1 MiB in chunks of {size}"), |b| {
            let (mut client, mut server) = (client::Connection::new(), server::Connection::new());
            b.iter(|| exchange(&mut client, &mut server, &heads, (None, &body)));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(std::time::Duration::from_secs(3));
    targets = bench
}
criterion_main!(benches);
