//! What a load costs, against what the network's arithmetic says it must cost; and what two loads have in common.

mod common;

use base::{Bitrate, Duration, Instant};
use client::Transport;
use common::{RTT_MS, fast};
use load::{HostRtt, Load, Outcome, Setup, TlsScope};
use page::{Cause, Host, Kind, Page, Resource, ScriptMode};

const SPDY: Transport = Transport::Spdy(spdy::Version::V3_1);

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn image(host: u32, number: usize, body_len: u64) -> Resource {
    let cause = Cause::Parser { parent: 0, offset: 100, script: ScriptMode::Sync };
    Resource { host, body_len, ..Resource::get(format!("/{number}"), Kind::Image, cause) }
}

/// A document of `len` bytes with images of the given hosts and lengths.
fn page(len: u64, images: &[(u32, u64)]) -> Page {
    let hosts = images.iter().map(|(host, _)| host + 1).max().unwrap_or(1);
    let document = Resource { body_len: len, ..Resource::get("/0", Kind::Document, Cause::Root) };
    let rest = (1..).zip(images).map(|(n, (host, len))| image(*host, n, *len));
    let hosts = (0..hosts).map(|i| Host::new(format!("host{i}.example"))).collect();
    Page::new("test", hosts, std::iter::once(document).chain(rest).collect()).expect("a valid page")
}

/// 2 Mbit/s down, 386 kbit/s up.
fn slow(transport: Transport, loss: f64) -> Setup {
    let mut setup = fast(transport);
    setup.down.rate = link::Rate::Constant(Bitrate::from_kbps(2_000).expect("not zero"));
    setup.up.rate = link::Rate::Constant(Bitrate::from_kbps(386).expect("not zero"));
    for path in [&mut setup.down, &mut setup.up] {
        path.queue.limit_bytes = 25_000;
        path.loss = link::LossConfig::Bernoulli { p: loss };
    }
    setup
}

fn complete(load: &Load) -> f64 {
    assert_eq!(load.outcome, Outcome::Complete);
    load.plt().expect("a complete load").as_millis_f64()
}

/// Round trips, to within the little that a terabit link takes.
fn assert_round_trips(load: &Load, expected: f64) {
    let trips = complete(load) / RTT_MS as f64;
    assert!((trips - expected).abs() < 0.01, "{trips} round trips instead of {expected}");
}

#[test]
fn a_small_page_costs_a_handshake_and_an_exchange() {
    for transport in [Transport::Http1, SPDY] {
        assert_round_trips(&sim::load(&page(1_000, &[]), &fast(transport), 1), 2.0);
    }
}

#[test]
fn a_look_up_a_thinking_server_and_computation_add_up() {
    let mut page = page(1_000, &[]);
    page.resources[0].think = ms(30);
    page.resources[0].exec = ms(7);
    page.tail = ms(3);
    let setup = Setup { dns: ms(40), ..fast(Transport::Http1) };
    assert_round_trips(&sim::load(&page, &setup, 1), 2.8);
}

#[test]
fn a_document_beyond_the_initial_window_costs_a_round_trip_more() {
    let mut setup = fast(Transport::Http1);
    setup.server_tcp.initial_cwnd = 3;
    let payload = u64::from(setup.server_tcp.mss);
    assert_round_trips(&sim::load(&page(2 * payload, &[]), &setup, 1), 2.0);
    assert_round_trips(&sim::load(&page(4 * payload, &[]), &setup, 1), 3.0);
}

#[test]
fn http1_opens_six_connections_a_host_and_spdy_one() {
    let page = page(1_000, &[(0, 100); 20]);
    let http = sim::load(&page, &fast(Transport::Http1), 1);
    // The document: 2. Then one image on the warm connection while five more connect, for 1; then the rest.
    assert_eq!(http.connections.len(), 6);
    let spdy = sim::load(&page, &fast(SPDY), 1);
    assert_eq!(spdy.connections.len(), 1);
    assert_round_trips(&spdy, 3.0);
    assert!(complete(&http) > complete(&spdy));
}

#[test]
fn every_tls_mode_costs_its_round_trips() {
    use tls::Mode;
    let cases = [
        (Mode::Tls12Full, false, 4.0),
        (Mode::Tls12Full, true, 3.0),
        (Mode::Tls12Resumed, false, 3.0),
        (Mode::Tls13Full, false, 3.0),
        (Mode::Tls13Resumed, false, 3.0),
    ];
    for (mode, false_start, trips) in cases {
        let mut setup = fast(SPDY);
        setup.tls = Some(tls::Config { mode, false_start, ..tls::Config::default() });
        setup.tls_scope = TlsScope::Everywhere;
        assert_round_trips(&sim::load(&page(1_000, &[]), &setup, 1), trips);
    }
}

#[test]
fn a_certificate_chain_that_outgrows_the_initial_window_costs_its_round_trip() {
    let mut setup = fast(SPDY);
    setup.server_tcp.initial_cwnd = 3;
    setup.tls_scope = TlsScope::Everywhere;
    for (chain_len, trips) in [(2_000, 4.0), (6_000, 5.0)] {
        setup.tls = Some(tls::Config { mode: tls::Mode::Tls12Full, chain_len, ..tls::Config::default() });
        assert_round_trips(&sim::load(&page(1_000, &[]), &setup, 1), trips);
    }
}

/// The second of two connections that are opened together begins its handshake when the first has left a ticket: with the server's Finished,
/// which is a round trip after a False Start, and in TLS 1.3 a round trip after the handshake.
#[test]
fn a_handshake_that_waits_for_a_session_waits_for_its_ticket() {
    let mut page = page(1_000, &[]);
    page.resources[0].think = ms(1_000);
    for (mode, false_start, after) in [
        (tls::Mode::Tls12Full, false, [200.0, 200.0]),
        (tls::Mode::Tls12Full, true, [100.0, 200.0]),
        (tls::Mode::Tls13Full, false, [100.0, 200.0]),
    ] {
        let mut setup = fast(Transport::Http1);
        setup.tls = Some(tls::Config { mode, false_start, ..tls::Config::default() });
        setup.tls_scope = TlsScope::Everywhere;
        setup.techniques.preconnect = client::Preconnect::BlindTwo;
        setup.techniques.handshakes = client::Handshakes::WaitForSession;
        let load = sim::load(&page, &setup, 1);
        let [first, second] = [0, 1].map(|i: usize| load.connections[i].record.clone());
        let connected = first.connected.expect("connected");
        let since = |at: Option<Instant>| at.expect("it came").since(connected).as_millis_f64();
        for (at, ms) in [first.secured, second.handshake].into_iter().zip(after) {
            assert!((since(at) - ms).abs() < 1.0, "{mode:?}, {false_start}: {} for {ms}", since(at));
        }
        assert!(second.resumes);
    }
}

#[test]
fn a_second_connection_to_a_host_resumes_the_session_of_the_first() {
    let mut setup = fast(Transport::Http1);
    setup.tls = Some(tls::Config { mode: tls::Mode::Tls12Full, ..tls::Config::default() });
    setup.tls_scope = TlsScope::Everywhere;
    let mut page = page(1_000, &[(0, 100); 2]);
    page.resources[1].think = ms(1_000); // so that the other image needs a connection of its own
    let load = sim::load(&page, &setup, 1);
    let handshake = |i: usize| {
        let record = &load.connections[i].record;
        record.secured.expect("secured").since(record.connected.expect("connected")).as_millis_f64()
    };
    assert!((handshake(0) - 200.0).abs() < 1.0 && (handshake(1) - 100.0).abs() < 1.0);
}

#[test]
fn a_far_host_adds_its_own_share_of_the_round_trip() {
    let mut page = page(1_000, &[(1, 100)]);
    page.hosts[0].rtt = Some(ms(20));
    page.hosts[1].rtt = Some(ms(70));
    let setup = Setup { host_rtt: HostRtt::Recorded, ..fast(Transport::Http1) };
    assert_round_trips(&sim::load(&page, &setup, 1), 2.0 + 2.0 * 1.5);
}

#[test]
fn every_byte_of_every_body_arrives_once_whatever_is_lost() {
    let page = page(30_000, &[(0, 20_000), (1, 1), (0, 150_000), (2, 0), (1, 70_000), (0, 3_000)]);
    for transport in Transport::ALL {
        for loss in [0.0, 0.02, 0.1] {
            for seed in 0..10 {
                let load = sim::load(&page, &slow(transport, loss), seed);
                assert_eq!(load.outcome, Outcome::Complete, "{transport}, {loss}, seed {seed}");
                let arrived: Vec<u64> = load.requests.iter().map(|r| r.body_bytes).collect();
                assert_eq!(arrived, page.resources.iter().map(|r| r.body_len).collect::<Vec<_>>());
            }
        }
    }
}

/// RFC 9111: what is fresh costs nothing, what is stale a round trip without a body, and what may not be kept all that it did.
#[test]
fn a_second_visit_pays_for_what_the_cache_may_not_give() {
    let kept =
        [("Cache-Control", "max-age=60"), ("Cache-Control", "no-cache"), ("Cache-Control", "no-store")];
    let mut page = page(1_000, &[(0, 20_000), (0, 30_000), (0, 40_000)]);
    for (resource, (name, value)) in page.resources[1..].iter_mut().zip(kept) {
        resource.response.push(name, value);
        resource.response.push("ETag", "\"1\"");
    }
    for transport in [Transport::Http1, SPDY] {
        let mut setup = fast(transport);
        setup.techniques.revisit = Some(Duration::from_secs(59));
        let load = sim::load(&page, &setup, 1);
        complete(&load);
        let bytes: Vec<u64> = load.requests.iter().map(|r| r.body_bytes).collect();
        assert_eq!(bytes, [1_000, 0, 0, 40_000], "{transport}");
        let cached: Vec<_> = load.requests.iter().map(|r| r.cached).collect();
        let (fresh, validated) = (Some(browser::Cached::Fresh), Some(browser::Cached::Validated));
        assert_eq!(cached, [None, fresh, validated, None]);
        let took = |n: usize| {
            load.requests[n].record.complete.unwrap().since(load.requests[n].record.discovered.unwrap())
        };
        assert!(took(1).is_zero() && took(2) >= ms(RTT_MS));
        // A minute later the first is stale as well.
        setup.techniques.revisit = Some(Duration::from_secs(60));
        assert_eq!(sim::load(&page, &setup, 1).requests[1].cached, validated);
    }
}

#[test]
fn a_page_that_is_wholly_in_the_cache_needs_no_network() {
    let mut page = page(1_000, &[(0, 20_000)]);
    page.resources.iter_mut().for_each(|r| r.response.push("Cache-Control", "max-age=60"));
    let mut setup = fast(SPDY);
    setup.techniques.revisit = Some(Duration::ZERO);
    let load = sim::load(&page, &setup, 1);
    assert_eq!((complete(&load), load.connections.len(), load.up.packets_in), (0.0, 0, 0));
}

#[test]
fn the_same_page_setup_and_seed_give_the_same_load() {
    let page = page(30_000, &[(0, 20_000), (1, 9_000), (0, 150_000)]);
    for transport in [Transport::Http1, SPDY] {
        let setup = slow(transport, 0.02);
        assert_eq!(sim::load(&page, &setup, 3), sim::load(&page, &setup, 3));
        assert_ne!(sim::load(&page, &setup, 3).plt(), sim::load(&page, &setup, 4).plt());
    }
}

#[test]
fn style_sheets_overtake_images_on_a_spdy_session() {
    let mut page = page(1_000, &[(0, 100_000), (0, 100_000), (0, 20_000)]);
    page.resources[3].kind = Kind::Style;
    let load = sim::load(&page, &slow(SPDY, 0.0), 1);
    let done = |id: usize| load.requests[id].record.complete.expect("complete");
    assert!(done(3) < done(1) && done(3) < done(2));
}

#[test]
fn a_saturated_link_carries_its_rate() {
    let load = sim::load(&page(10_000_000, &[]), &slow(SPDY, 0.0), 1);
    let first = load.moments.first_byte.expect("a first byte");
    let took = load.moments.load.expect("loaded").since(first);
    let busy = load.down.busy.as_secs_f64() / took.as_secs_f64();
    assert!(busy > 0.97, "the link was busy for {busy} of the transfer");
}

#[test]
fn a_load_that_takes_too_long_is_given_up_and_says_what_is_missing() {
    let mut setup = slow(Transport::Http1, 0.0);
    setup.give_up = ms(500);
    let load = sim::load(&page(1_000_000, &[(0, 10)]), &setup, 1);
    let Outcome::Incomplete(why) = &load.outcome else { panic!("it cannot be complete") };
    assert_eq!(why, "given up after 0.5 s with 1 of 2 resources not loaded");
    assert_eq!(load.ended, Instant::ZERO + ms(500));
}

#[test]
fn a_network_that_loses_everything_ends_in_a_named_failure() {
    let load = sim::load(&page(1_000, &[]), &slow(SPDY, 1.0), 1);
    let Outcome::Incomplete(why) = &load.outcome else { panic!("it cannot be complete") };
    assert!(why.starts_with("http://host0.example/0: not connected"), "{why}");
}

#[test]
fn strange_recorded_requests_never_stop_the_world() {
    let mut page = page(1_000, &[(0, 10), (0, 20), (1, 30)]);
    page.resources[1].path = "/a|b^`{}\"\u{e9}".into();
    page.resources[2].method = "G@T".into();
    page.validate().expect("the page is valid all the same");
    for transport in Transport::ALL {
        let load = sim::load(&page, &fast(transport), 1);
        assert!(load.plt().is_some(), "{transport}: {:?}", load.outcome);
    }
}

#[test]
fn a_window_wider_than_the_send_buffers_room_is_used_whole() {
    let mut setup = fast(Transport::Http1);
    setup.server_tcp.initial_cwnd = 40;
    setup.server_tcp.notsent_lowat = 4_000;
    setup.client_tcp.initial_rwnd = 1 << 20;
    assert_round_trips(&sim::load(&page(50_000, &[]), &setup, 1), 2.0);
}

#[test]
fn what_is_asked_for_at_one_moment_enters_the_link_in_that_order_requests_before_handshakes() {
    let page = page(1_000, &[(0, 100), (0, 100), (0, 100), (0, 100), (1, 100)]);
    let mut setup = slow(Transport::Http1, 0.0);
    // Slow enough that the uplink's order shows.
    setup.up.rate = link::Rate::Constant(Bitrate::from_kbps(20).expect("not zero"));
    let load = sim::load(&page, &setup, 1);
    complete(&load);
    let connected: Vec<_> = load.connections.iter().map(|c| c.record.connected).collect();
    assert_eq!(connected.len(), 5);
    assert!(connected.is_sorted(), "{connected:?}");
    let first = load.requests[1].timing.expect("asked for").head.expect("answered");
    assert!(Some(first) < connected[1], "the image on the warm connection went before the other's SYN");
}
