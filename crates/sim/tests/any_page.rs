//! Any valid page ends, whatever the transport, the network and the page: random pages, with what is strange but valid in
//! them (redirections of anything, frames in frames, HEAD, 204, bodies in requests, identical requests), against
//! all transports, TLS modes and losses. What must hold of every load stands in [`check`].

use base::{Bitrate, Duration, Fields, Instant, Rng};
use client::Transport;
use load::{Carried, HostRtt, Load, Outcome, Setup, TlsScope};
use page::{Cause, Host, Kind, Page, Resource, ScriptMode};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// One of `choices`.
fn pick<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.below(choices.len() as u64) as usize]
}

fn cause(rng: &mut Rng, id: u32, before: &[Resource]) -> Cause {
    let parent = rng.below(u64::from(id)) as u32;
    let documents: Vec<u32> = (0..id).filter(|i| before[*i as usize].kind == Kind::Document).collect();
    let delay = ms(pick(rng, &[0, 0, 1, 30]));
    match rng.below(10) {
        0 => Cause::Redirect(parent),
        1 => Cause::Load { delay },
        2 | 3 => Cause::Completion { parent, delay },
        _ => {
            let parent = pick(rng, &documents);
            let offset = rng.below(before[parent as usize].body_len + 1);
            let script = pick(rng, &[ScriptMode::Sync, ScriptMode::Async, ScriptMode::Defer]);
            Cause::Parser { parent, offset, script }
        }
    }
}

fn resource(rng: &mut Rng, id: u32, hosts: u32, before: &[Resource]) -> Resource {
    use Kind::{Document, Font, Image, Media, Other, Script, Style, Xhr};
    let kinds = [Document, Style, Style, Script, Script, Script, Image, Image, Font, Xhr, Media, Other];
    let kind = if id == 0 { Document } else { pick(rng, &kinds) };
    let mut response = Fields::new();
    if rng.below(4) == 0 {
        response.push("Content-Length", "7"); // of another representation: not to be believed
    }
    let mut request = Fields::new();
    if rng.below(8) == 0 {
        request.push("Expect", "100-continue");
    }
    Resource {
        host: rng.below(u64::from(hosts)) as u32,
        method: pick(rng, &["GET", "GET", "GET", "GET", "POST", "HEAD"]).into(),
        path: format!("/{}", rng.below(20)).into(), // some ask for the same thing
        kind,
        request,
        response,
        status: pick(rng, &[200, 200, 200, 200, 204, 301, 304, 404]),
        request_body_len: pick(rng, &[0, 0, 0, 1, 5_000]),
        body_len: pick(rng, &[0, 1, 900, 20_000, 60_000]),
        think: ms(pick(rng, &[0, 0, 20])),
        cause: if id == 0 { Cause::Root } else { cause(rng, id, before) },
        exec: ms(pick(rng, &[0, 0, 5, 40])),
        after_load: id > 0 && rng.below(8) == 0,
        scripted: rng.below(5) == 0,
        priority: None,
    }
}

fn page(rng: &mut Rng) -> Page {
    let hosts = 1 + rng.below(5) as u32;
    let host = |i| Host {
        scheme_tls: i % 2 == 1,
        rtt: Some(ms(u64::from(10 * i))),
        ..Host::new(if i == 4 { "10.9.8.7".into() } else { format!("host{}.example", i / 2) })
    };
    let mut resources = Vec::new();
    for id in 0..1 + rng.below(30) as u32 {
        let next = resource(rng, id, hosts, &resources);
        resources.push(next);
    }
    let page = Page::new("any", (0..hosts).map(host).collect(), resources).expect("a valid page");
    Page { tail: ms(pick(rng, &[0, 15])), ..page }
}

fn setup(rng: &mut Rng) -> Setup {
    use tls::Mode::{Tls12Full, Tls12Resumed, Tls13Full, Tls13Resumed};
    let mut setup = Setup::new(pick(rng, &Transport::ALL));
    let loss = pick(rng, &[0.0, 0.0, 0.02, 0.15]);
    for path in [&mut setup.down, &mut setup.up] {
        path.delay = ms(pick(rng, &[0, 5, 100]));
        path.rate =
            link::Rate::Constant(Bitrate::from_kbps(pick(rng, &[200, 2_000, 50_000])).expect("not 0"));
        path.queue.limit_bytes = pick(rng, &[6_000, 64_000]);
        path.loss = link::LossConfig::Bernoulli { p: loss };
    }
    setup.host_rtt = pick(rng, &[HostRtt::Equal, HostRtt::Recorded, HostRtt::Spread(ms(80))]);
    setup.tls_scope = pick(rng, &[TlsScope::Recorded, TlsScope::Everywhere]);
    setup.tls = pick(rng, &[None, Some(Tls12Full), Some(Tls12Resumed), Some(Tls13Full), Some(Tls13Resumed)])
        .map(|mode| tls::Config { mode, false_start: rng.below(2) == 0, ..tls::Config::default() });
    setup.dns = ms(pick(rng, &[0, 40]));
    setup.think = pick(rng, &[origin::Think::Recorded, origin::Think::Fixed(ms(3))]);
    setup.compute_scale = pick(rng, &[0.0, 1.0, 3.0]);
    setup.connections_per_host = pick(rng, &[1, 2, 6]);
    setup.spdy.max_concurrent_streams = pick(rng, &[1, 3, 100]);
    setup.give_up = pick(rng, &[ms(150), ms(2_000), Duration::from_secs(3_000), Duration::from_secs(3_000)]);
    setup
}

/// Bytes of a body that reach the client: none where HTTP allows none (RFC 9110 §6.4.1).
fn body_len(page: &Page, id: usize) -> Vec<u64> {
    // A server that is asked for the same thing several times answers in the order in which the requests come.
    let asked = &page.resources[id];
    let same = |r: &&Resource| (r.host, &r.path, &r.method) == (asked.host, &asked.path, &asked.method);
    let len = |r: &Resource| {
        let none = asked.method == "HEAD" || matches!(r.status, 204 | 304);
        if none { 0 } else { r.body_len }
    };
    page.resources.iter().filter(same).map(len).collect()
}

/// What holds of every load, complete or not.
fn check(page: &Page, setup: &Setup, load: &Load) {
    let gave_up = load.ended == Instant::ZERO + setup.give_up;
    assert!(gave_up || load.moments.finished.is_some(), "it ends by itself: {:?}", load.outcome);
    if load.moments.finished.is_some() {
        let plt = load.moments.load.expect("a load that is over has a page load time");
        assert!(load.moments.finished >= Some(plt));
        assert!(load.moments.first_byte <= Some(plt) && load.moments.parsed <= Some(plt));
    }
    for (id, request) in load.requests.iter().enumerate() {
        let record = &request.record;
        if let Some(complete) = record.complete {
            assert!(body_len(page, id).contains(&request.body_bytes), "{id}: all bytes, once");
            assert!(record.used.is_none_or(|used| used >= complete), "{id}");
        }
        let Some(t) = request.timing else { continue };
        assert_eq!(record.discovered, Some(t.queued), "{id}");
        let mut moments = vec![Some(t.queued)];
        for phase in [t.dns, t.connect, t.tls] {
            moments.extend([phase.map(|p| p.0), phase.map(|p| p.1)]);
        }
        moments.extend([t.sent, t.head, t.complete, record.used]);
        let moments: Vec<_> = moments.into_iter().flatten().collect();
        assert!(moments.is_sorted(), "{id}: {t:?}, used {:?}", record.used);
        assert_eq!(t.complete, record.complete, "{id}");
        if !is_late(page, id as u32) {
            assert!(load.moments.load.is_none_or(|at| record.used.is_none_or(|used| used <= at)), "{id}");
        }
    }
}

/// What holds of the packets of every load: all are there, and whatever the bytes were, they were read for what they are.
fn check_packets(load: &Load) {
    for (id, connection) in (0..).zip(&load.connections) {
        let own = |up| load.packets.iter().filter(move |p| p.connection == id && p.up == up);
        assert_eq!(own(true).count() as u64, connection.client.segments_sent);
        assert_eq!(own(false).count() as u64, connection.server.segments_sent);
    }
    for p in &load.packets {
        assert!(p.arrived.is_none_or(|at| at >= p.left));
        // Headers and trailers of records may have a packet for themselves.
        assert!(p.segment.len <= 64 || !p.carries.is_empty(), "{p:?}");
        let of_the_other = |c: &Carried| match c {
            Carried::Request => !p.up,
            Carried::ResponseHead => p.up,
            Carried::Handshake(message) => {
                use tls::Message::{
                    Certificate, ClientHello, ClientKeyExchange, ServerHello, ServerHelloDone,
                };
                match message {
                    ClientHello | ClientKeyExchange => !p.up,
                    ServerHello | Certificate | ServerHelloDone => p.up,
                    _ => false,
                }
            }
            Carried::Alert => true,
            Carried::Body | Carried::Control => false,
        };
        assert!(!p.carries.iter().any(of_the_other), "{p:?}");
    }
}

fn is_late(page: &Page, id: u32) -> bool {
    let resource = &page.resources[id as usize];
    let own = resource.after_load || matches!(resource.cause, Cause::Load { .. });
    own || resource.cause.parent().is_some_and(|parent| is_late(page, parent))
}

#[test]
fn any_valid_page_ends_with_every_byte_once_and_its_times_in_order() {
    let count = std::env::var("LOADS").map_or(600, |n| n.parse().expect("LOADS is a number"));
    let first = std::env::var("FIRST").map_or(0, |n| n.parse().expect("FIRST is a number"));
    for seed in first..first + count {
        let mut rng = Rng::new(seed).substream("any page");
        let (page, setup) = (page(&mut rng), setup(&mut rng));
        println!("seed {seed}: {} with {} resources", setup.transport, page.resources.len());
        let load = sim::load(&page, &setup, seed);
        check(&page, &setup, &load);
        if seed % 8 == 0 {
            assert_eq!(load, sim::load(&page, &setup, seed), "the same again");
        }
        if seed % 8 == 1 {
            let tapped = sim::load(&page, &Setup { keeps_packets: true, ..setup.clone() }, seed);
            check_packets(&tapped);
            assert_eq!(load, Load { packets: Vec::new(), ..tapped }, "a tap changes nothing");
        }
        let lossless = setup.down.loss == (link::LossConfig::Bernoulli { p: 0.0 });
        if lossless && setup.give_up > Duration::from_secs(100) {
            // A question is not asked for ever: a queue that is full each time loses a name.
            let unnamed =
                matches!(&load.outcome, Outcome::Incomplete(why) if why.ends_with("name not resolved"));
            let dropped = load.up.dropped_queue + load.down.dropped_queue > 0;
            assert!(load.outcome == Outcome::Complete || unnamed && dropped, "{:?}", load.outcome);
        }
    }
}
