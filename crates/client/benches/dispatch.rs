//! What it costs to send a hundred requests over six connections of a host and to take their answers, one at a time on each, or one
//! behind the other. Bytes go from engine to engine through memory, a segment at a time; no time passes.

use std::collections::VecDeque;
use std::hint::black_box;

use base::{BodyRange, Chunk, Duration, Fields, Instant, RequestHead, ResponseHead};
use client::{Action, Client, Config, Host, HostState, Pipelining, Transport, priority};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use http1::server;

const REQUESTS: u32 = 100;
const SEGMENT: u64 = 1_460;

fn image(n: u32) -> RequestHead {
    let mut fields = Fields::new();
    fields.push("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:12.0) Gecko/20100101 Firefox/12.0");
    fields.push("Accept", "image/png,image/*;q=0.8,*/*;q=0.5");
    let (scheme, authority) = ("http".into(), "10.0.0.1".into());
    RequestHead { method: "GET".into(), scheme, authority, path: format!("/{n}.png").into(), fields }
}

fn client(pipelining: Option<Pipelining>) -> Client {
    let config = Config { pipelining, ..Config::new(Transport::Http1) };
    let mut client = Client::new(config, vec![Host { name: "10.0.0.1".into(), tls: false }]);
    if pipelining.is_some() {
        client.set_pipelining(0, HostState::green());
    }
    client
}

/// Answers whatever a server has been asked.
fn answer(server: &mut server::Connection, response: &ResponseHead) {
    let body = Chunk::Body(BodyRange { source: 0, start: 0, len: 7_000 });
    while let Some(event) = server.poll_event() {
        if matches!(event, server::Event::RequestComplete) {
            server.respond(response, Some(body.len())).expect("a request waits");
            server.send_body(body.clone()).expect("as announced");
            server.finish().expect("it is whole");
        }
    }
}

/// Has all requests answered, and says how many answers were complete.
fn exchange(mut client: Client, heads: &[RequestHead], response: &ResponseHead) -> u32 {
    let mut now = Instant::ZERO;
    for (id, head) in (0..).zip(heads) {
        client.fetch(now, id, 0, head.clone(), 0, priority::IMAGE);
    }
    let mut servers: Vec<server::Connection> = Vec::new();
    let mut down: VecDeque<(u32, Chunk)> = VecDeque::new();
    let mut complete = 0;
    while complete < heads.len() as u32 {
        now += Duration::from_micros(100);
        while let Some(action) = client.poll_action() {
            if let Action::Connect { connection, .. } = action {
                servers.push(server::Connection::new());
                client.handle_connected(now, connection);
            }
        }
        while let Some(id) = client.poll_dirty() {
            while let Some(chunk) = client.poll_transmit(now, id, SEGMENT) {
                servers[id as usize].handle_input(now, chunk).expect("a sound request");
            }
        }
        // A segment a connection in turn, as they would come over one link.
        for (id, server) in (0..).zip(&mut servers) {
            answer(server, response);
            down.extend(server.poll_transmit(SEGMENT).map(|chunk| (id, chunk)));
        }
        while let Some((id, chunk)) = down.pop_front() {
            client.handle_input(now, id, chunk);
        }
        while let Some(event) = client.poll_event() {
            complete += u32::from(matches!(black_box(event), client::Event::Complete { .. }));
        }
    }
    complete
}

fn bench(c: &mut Criterion) {
    let heads: Vec<_> = (0..REQUESTS).map(image).collect();
    let mut response = ResponseHead { status: 200, fields: Fields::new() };
    response.fields.push("Content-Type", "image/png");
    response.fields.push("Server", "Apache/2.2.16");
    let mut group = c.benchmark_group("dispatch");
    group.throughput(Throughput::Elements(REQUESTS.into()));
    for (name, pipelining) in [("one at a time", None), ("pipelined", Some(Pipelining::FIREFOX))] {
        group.bench_function(format!("100 requests over six connections, {name}"), |b| {
            b.iter_batched(
                || client(pipelining),
                |client| assert_eq!(exchange(client, &heads, &response), REQUESTS),
                criterion::BatchSize::SmallInput,
            );
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
