//! What a session costs: to make, a request and its answer, a frame, a header block, a megabyte of DATA.
//!
//! Two engines in memory, one thread, everything counted at both ends. DATA comes in three kinds: ranges of a body that
//! nobody looks at, real bytes handed over by reference, and real bytes copied once on the way as a socket would.
#![allow(missing_docs, reason = "criterion_group! makes a public function without any")]

use base::{BodyRange, Chunk, Fields, Instant, RequestHead, ResponseHead};
use bytes::{Bytes, BytesMut};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use spdy::frame::Control;
use spdy::trace::Decoder;
use spdy::{Compression, Config, Event, Limits, Policy, Priority, Session, Version};

fn fields(pairs: &[(&'static str, &'static str)]) -> Fields {
    let mut fields = Fields::new();
    pairs.iter().for_each(|(name, value)| fields.push(*name, *value));
    fields
}

/// A request as Chrome sent it in 2012, with a cookie.
fn request(i: usize) -> RequestHead {
    let agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.4 (KHTML, like Gecko) Chrome/22.0.1229.79 Safari/537.4";
    RequestHead {
        method: "GET".into(),
        scheme: "http".into(),
        authority: "www.example.org".into(),
        path: format!("/static/images/{}/thumbnail-{:x}.png", i % 7, i * 7_919).into(),
        fields: fields(&[
            ("accept", "*/*"),
            ("accept-charset", "ISO-8859-1,utf-8;q=0.7,*;q=0.3"),
            ("accept-encoding", "gzip,deflate,sdch"),
            ("accept-language", "en-US,en;q=0.8"),
            ("cookie", "session=9f86d081884c7d659a2feaa0c55ad015; theme=light; visits=12"),
            ("referer", "http://www.example.org/articles/2012/10/index.html"),
            ("user-agent", agent),
        ]),
    }
}

fn response(i: usize) -> ResponseHead {
    let mut fields = fields(&[
        ("date", "Mon, 08 Oct 2012 10:00:00 GMT"),
        ("server", "Apache/2.2.22 (Ubuntu)"),
        ("last-modified", "Tue, 14 Aug 2012 09:12:31 GMT"),
        ("accept-ranges", "bytes"),
        ("cache-control", "max-age=31536000"),
        ("expires", "Tue, 08 Oct 2013 10:00:00 GMT"),
        ("content-type", "image/png"),
    ]);
    fields.push("content-length", (1_000 + i * 37).to_string());
    fields.push("etag", format!("\"{:x}\"", i * 104_729));
    ResponseHead { status: 200, fields }
}

fn pair(policy: Policy) -> (Session, Session) {
    let config =
        Config { compression: Compression { policy, window_bits: 15 }, ..Config::new(Version::V3_1) };
    (Session::client(config.clone()), Session::server(config))
}

/// A way from one end to the other.
type Carry = fn(&mut Session, &mut Session);

/// Hands over what there is, by reference.
fn carry(from: &mut Session, to: &mut Session) {
    while let Some(chunk) = from.poll_transmit(Instant::ZERO, 16_384) {
        to.handle_input(Instant::ZERO, chunk).unwrap();
    }
}

/// Copies what there is into buffers of 64 KiB, as a socket's reader does.
fn copy(from: &mut Session, to: &mut Session) {
    const BUFFER: usize = 64 * 1024;
    loop {
        let mut buffer = BytesMut::with_capacity(BUFFER);
        while let Some(Chunk::Bytes(bytes)) =
            from.poll_transmit(Instant::ZERO, (BUFFER - buffer.len()) as u64)
        {
            buffer.extend_from_slice(&bytes);
        }
        if buffer.is_empty() {
            return;
        }
        to.handle_input(Instant::ZERO, buffer.freeze().into()).unwrap();
    }
}

/// `n` requests, each answered with the body `body` gives, all at once.
fn exchange(
    client: &mut Session,
    server: &mut Session,
    carry: Carry,
    n: usize,
    body: impl Fn() -> Chunk,
) -> usize {
    for i in 0..n {
        client.request(&request(i), Priority::new((i % 8) as u8), true).unwrap();
    }
    let mut ended = 0;
    while ended < n {
        carry(client, server);
        let mut i = 0;
        while let Some(event) = server.poll_event() {
            if let Event::Request { id, .. } = event {
                let body = body();
                server.respond(id, &response(i), body.is_empty()).unwrap();
                if !body.is_empty() {
                    server.send(id, body, true).unwrap();
                }
                i += 1;
            }
        }
        carry(server, client);
        while let Some(event) = client.poll_event() {
            match event {
                Event::Data { id, chunk, fin } => {
                    client.consume(id, chunk.len());
                    ended += usize::from(fin);
                }
                Event::Response { fin, .. } => ended += usize::from(fin),
                _ => {}
            }
        }
    }
    ended
}

fn sessions(c: &mut Criterion) {
    let mut group = c.benchmark_group("session");
    group.sample_size(30).warm_up_time(std::time::Duration::from_millis(500));
    group.measurement_time(std::time::Duration::from_secs(2));
    group.bench_function("new pair", |b| b.iter(|| pair(Policy::Full)));
    group.bench_function("new pair, one exchange", |b| {
        b.iter(|| {
            let (mut client, mut server) = pair(Policy::Full);
            exchange(&mut client, &mut server, carry, 1, || Bytes::new().into())
        });
    });
    group.throughput(Throughput::Elements(200));
    for policy in [Policy::Full, Policy::CookiesApart, Policy::Stored] {
        group.bench_function(format!("header blocks of 100 exchanges, {policy:?}"), |b| {
            let (mut client, mut server) = pair(policy);
            b.iter(|| exchange(&mut client, &mut server, carry, 100, || Bytes::new().into()));
        });
    }
    group.throughput(Throughput::Elements(100));
    group.bench_function("100 exchanges of 15 kB, new pair", |b| {
        let range = || BodyRange { source: 1, start: 0, len: 15_000 }.into();
        b.iter(|| {
            let (mut client, mut server) = pair(Policy::Full);
            exchange(&mut client, &mut server, carry, 100, range)
        });
    });
    group.finish();

    frames(c);
    data(c);
}

/// Small frames, where what a frame costs is all there is.
fn frames(c: &mut Criterion) {
    const FRAMES: usize = 10_000;
    let mut group = c.benchmark_group("frames");
    group.sample_size(20).warm_up_time(std::time::Duration::from_millis(500));
    group.measurement_time(std::time::Duration::from_secs(2));
    group.throughput(Throughput::Elements(FRAMES as u64));
    let mut wire = Vec::new();
    for i in 0..FRAMES as u32 / 2 {
        Control::<&[u8]>::Ping { id: 2 * i }.emit(Version::V3_1, &mut wire);
        Control::<&[u8]>::WindowUpdate { id: 1, delta: 1 + i }.emit(Version::V3_1, &mut wire);
    }
    let wire = Bytes::from(wire);
    group.bench_function("control frames parsed", |b| {
        b.iter(|| {
            let mut decoder = Decoder::new(Version::V3_1, Limits::default());
            decoder.handle_input(wire.clone().into());
            let frames = std::iter::from_fn(|| decoder.poll_frame().unwrap()).count();
            assert_eq!(frames, FRAMES);
        });
    });
    group.bench_function("control frames emitted", |b| {
        let mut out = Vec::new();
        b.iter(|| {
            out.clear();
            for i in 0..FRAMES as u32 {
                Control::<&[u8]>::WindowUpdate { id: 1, delta: 1 + i }.emit(Version::V3_1, &mut out);
            }
            out.len()
        });
    });
    // A window is 1 MiB: 10000 frames of 100 bytes fit.
    group.bench_function("DATA of 100 bytes, from end to end", |b| {
        let config = Config { max_data_frame: 100, ..Config::new(Version::V3_1) };
        let (mut client, mut server) = (Session::client(config.clone()), Session::server(config));
        let body = Bytes::from(vec![7; 100 * FRAMES]);
        b.iter(|| exchange(&mut client, &mut server, copy, 1, || body.clone().into()));
    });
    group.finish();
}

fn data(c: &mut Criterion) {
    let mut group = c.benchmark_group("data");
    group.sample_size(20).warm_up_time(std::time::Duration::from_millis(500));
    group.measurement_time(std::time::Duration::from_secs(2));
    group.throughput(Throughput::Bytes(64 << 20));
    let bytes = Bytes::from(vec![7; 8 << 20]);
    let bodies: [(&str, Carry, Chunk); 3] = [
        ("ranges", carry, BodyRange { source: 1, start: 0, len: 8 << 20 }.into()),
        ("bytes by reference", carry, bytes.clone().into()),
        ("bytes copied once", copy, bytes.into()),
    ];
    for (name, carry, body) in bodies {
        group.bench_function(format!("8 streams of 8 MiB, {name}"), |b| {
            let (mut client, mut server) = pair(Policy::Full);
            b.iter(|| exchange(&mut client, &mut server, carry, 8, || body.clone()));
        });
    }
    group.finish();
}

criterion_group!(benches, sessions);
criterion_main!(benches);
