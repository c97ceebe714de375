//! Loads over the kernel, each within a fraction of a second. They need a namespace; where there is none they say so.

use base::{Bitrate, Duration};
use client::Transport;
use load::{HostRtt, Outcome, Setup};
use page::{Page, corpus};

use super::*;

#[cfg(feature = "tls")]
mod certificates;
mod families;
mod faults;
#[cfg(feature = "tls")]
mod handshakes;
mod servers;

fn world() -> Option<World> {
    crate::namespace::tests::privilege().map(World::new)
}

fn page() -> Page {
    let mut pages = corpus::generate("2012", 1, 3).expect("built in");
    pages.remove(0)
}

/// 8 Mbit/s, 20 ms, no loss, and nothing but the network takes time.
fn setup(transport: Transport) -> Setup {
    let path = link::PathConfig {
        rate: link::Rate::Constant(Bitrate::from_kbps(8_000).unwrap()),
        delay: Duration::from_millis(10),
        ..link::PathConfig::default()
    };
    Setup {
        down: path.clone(),
        up: path,
        dns: Duration::from_millis(20),
        think: origin::Think::Fixed(Duration::ZERO),
        compute_scale: 0.0,
        give_up: Duration::from_secs(20),
        ..Setup::new(transport)
    }
}

fn assert_complete(page: &Page, run: &Run) {
    assert_eq!(run.load.outcome, Outcome::Complete, "{:?}", run.unmet);
    for (resource, request) in page.resources.iter().zip(&run.load.requests) {
        assert_eq!(request.body_bytes, resource.body_len);
    }
    let bytes: u64 = run.load.connections.iter().map(|c| c.client.bytes_received).sum();
    assert!(bytes >= page.resources.iter().map(|r| r.body_len).sum());
    assert!(run.load.down.bytes_out >= bytes && run.load.down.dropped_loss == 0);
    // The kernel counts a FIN as a byte received.
    for connection in &run.load.connections {
        assert!(connection.server.bytes_sent + 1 >= connection.client.bytes_received, "{connection:?}");
    }
    assert_eq!(run.unmet, [""; 0], "today's kernel can do all of it");
}

/// A year later nothing is fresh any more, and the origin answers every validator that it recorded with 304.
#[test]
fn a_second_visit_is_spared_what_has_not_changed() {
    let (Some(world), page) = (world(), page()) else { return };
    for transport in [Transport::Http1, Transport::Spdy(spdy::Version::V3_1)] {
        let mut setup = setup(transport);
        setup.techniques.revisit = Some(Duration::from_secs(365 * 86_400));
        let run = world.load(&page, &setup, 1).unwrap();
        assert_eq!((&run.load.outcome, run.unmet), (&Outcome::Complete, vec![]));
        let validated = |r: &browser::Request| r.cached == Some(browser::Cached::Validated);
        let spared = page.resources.iter().zip(&run.load.requests).filter(|(_, r)| validated(r));
        assert!(spared.clone().count() > page.resources.len() / 2);
        for (resource, request) in page.resources.iter().zip(&run.load.requests) {
            let arrives = if validated(request) { 0 } else { resource.body_len };
            assert_eq!(request.body_bytes, arrives, "{transport}");
        }
    }
}

#[test]
fn a_page_arrives_whole_over_every_transport() {
    let (Some(world), page) = (world(), page()) else { return };
    for transport in
        [Transport::Http1, Transport::Spdy(spdy::Version::V3_1), Transport::Spdy(spdy::Version::V2)]
    {
        let run = world.load(&page, &setup(transport), 1).unwrap();
        assert_complete(&page, &run);
    }
}

/// A recording may name a host by its address. That is nobody's here; a server with an address of ours stands for it.
#[test]
fn a_host_that_is_named_by_its_address_is_there_without_a_look_up() {
    let (Some(world), mut page) = (world(), page()) else { return };
    page.hosts[1].name = "192.0.2.7".into();
    let run = world.load(&page, &setup(Transport::Http1), 1).unwrap();
    assert_complete(&page, &run);
    for (resource, request) in page.resources.iter().zip(&run.load.requests) {
        assert!(resource.host != 1 || request.timing.expect("asked for").dns.is_none());
    }
}

/// A look-up and a handshake cross the link: neither is faster than its round trips.
#[test]
fn the_link_is_between_the_browser_and_everything_else() {
    let (Some(world), page) = (world(), page()) else { return };
    let mut setup = setup(Transport::Http1);
    setup.host_rtt = HostRtt::Spread(Duration::from_millis(30));
    let distances = setup.host_rtt.extra(&page);
    let run = world.load(&page, &setup, 1).unwrap();
    assert_complete(&page, &run);
    let first = run.load.requests[0].timing.expect("asked for");
    let (from, to) = first.dns.expect("looked up");
    assert!(to.since(from) >= Duration::from_millis(20));
    for connection in &run.load.connections {
        let record = &connection.record;
        let took = record.connected.expect("it came about").since(record.opened);
        assert!(took >= Duration::from_millis(20) + distances[record.host as usize]);
    }
}

#[test]
fn what_a_setup_says_of_tcp_is_what_the_kernel_has_or_is_said_to_be_unmet() {
    let (Some(world), page) = (world(), page()) else { return };
    let mut setup = setup(Transport::Http1);
    setup.server_tcp =
        tcp::Config { initial_cwnd: 3, congestion: tcp::Congestion::Reno, sack: false, ..setup.server_tcp };
    setup.client_tcp = tcp::Config { initial_rwnd: 4 * 1460, window_scaling: false, ..setup.client_tcp };
    let run = world.load(&page, &setup, 1).unwrap();
    assert_complete(&page, &run);
    let got = |end: &str, name: &str| {
        let knob = run.kernel.knobs.iter().find(|k| (k.end, k.name.as_str()) == (end, name));
        knob.map(|k| k.got.clone()).unwrap_or_default()
    };
    assert_eq!((got("server", "initcwnd"), got("server", "congctl")), ("3".into(), "reno".into()));
    assert_eq!((got("server", "ipv4/tcp_sack"), got("client", "ipv4/tcp_sack")), ("0".into(), "1".into()));
    assert_eq!(
        (got("client", "initrwnd"), got("client", "ipv4/tcp_window_scaling")),
        ("4".into(), "0".into())
    );
    setup.server_tcp.syn_rto = Duration::from_secs(3);
    let run = world.load(&page, &setup, 1).unwrap();
    assert!(
        run.unmet.iter().any(|what| what.contains("a lost SYN is sent again after 1 s")),
        "{:?}",
        run.unmet
    );
}

#[test]
fn both_ends_have_the_turn_that_they_may_have_and_say_what_they_waited() {
    let (Some(world), page) = (world(), page()) else { return };
    let may = std::thread::spawn(crate::namespace::Turn::soon).join().unwrap();
    let run = world.load(&page, &setup(Transport::Http1), 1).unwrap();
    assert_eq!(run.upkeep.map(|end| end.turn), [may; 2]);
    let is_counted = std::fs::exists("/proc/thread-self/schedstat").unwrap();
    assert_eq!(run.upkeep.map(|end| end.waited.is_some()), [is_counted; 2]);
}

/// Nothing crosses the link for the first 300 ms; the kernel repeats its SYNs, and the resolver its questions, after a second.
#[test]
fn a_blackhole_begins_with_the_navigation_and_is_outlasted() {
    let (Some(world), page) = (world(), page()) else { return };
    let mut setup = setup(Transport::Http1);
    for path in [&mut setup.up, &mut setup.down] {
        path.outages.push(link::Outage { from: base::Instant::ZERO, lasts: Duration::from_millis(300) });
    }
    let run = world.load(&page, &setup, 1).unwrap();
    assert_eq!(run.load.outcome, Outcome::Complete);
    assert!(run.load.up.dropped_outage > 0 && run.load.up.dropped_loss == 0);
    assert!(run.load.plt().expect("complete") >= Duration::from_secs(1));
    assert_eq!(run.unmet, [""; 0]);
}

/// As the servers of the virtual world do: the second time is the time.
#[test]
fn what_is_cut_off_or_never_answered_is_had_by_a_client_that_tries_again() {
    use origin::{Fault, FaultKind, Often, Whom};
    let (Some(world), page) = (world(), page()) else { return };
    for transport in [Transport::Http1, Transport::Spdy(spdy::Version::V3_1)] {
        let mut setup = setup(transport);
        setup.techniques.retry = client::Retry::RELOADING;
        // What is silent for so long is dead on a link of 20 ms.
        let silence = Some(Duration::from_millis(500));
        setup.techniques.timeouts = client::Timeouts { silence, ..client::Timeouts::RELOADING };
        let fault = |kind, share| Fault { kind, whom: Whom::All, often: Often::Share(share) };
        setup.faults.hosts = vec![fault(FaultKind::Reset { after: None }, 0.1), fault(FaultKind::Hang, 0.05)];
        let run = world.load(&page, &setup, 1).unwrap();
        assert_eq!(run.load.outcome, Outcome::Complete, "{:?}", run.load.troubles);
        let said: Vec<_> =
            run.load.troubles.iter().flat_map(|t| &t.failures).map(|f| f.error.to_string()).collect();
        assert!(said.iter().any(|what| what.contains("silent for")), "{transport}: {said:?}");
        assert!(
            said.iter().any(|what| what.contains("reset") || what.contains("closed")),
            "{transport}: {said:?}"
        );
        for (resource, request) in page.resources.iter().zip(&run.load.requests) {
            assert_eq!(request.body_bytes, resource.body_len, "each byte reached the page once");
        }
    }
}

#[cfg(feature = "tls")]
mod tls {
    use ::tls::{Config, Mode};
    use load::TlsScope;

    use super::*;

    fn secured(transport: Transport, tls: Config) -> Setup {
        Setup { tls: Some(tls), tls_scope: TlsScope::Everywhere, ..setup(transport) }
    }

    /// Round trips between TCP's handshake and the first request: 2 for TLS 1.2 in full, 1 for the others.
    #[test]
    fn handshakes_take_the_round_trips_that_they_take() {
        let (Some(world), page) = (world(), page()) else { return };
        let trip = Duration::from_millis(20);
        let false_start = Config { false_start: true, ..Config::new(Mode::Tls12Full) };
        for (tls, trips) in [
            (Config::new(Mode::Tls12Full), 2),
            (false_start, 1),
            (Config::new(Mode::Tls12Resumed), 1),
            (Config::new(Mode::Tls13Full), 1),
            (Config::new(Mode::Tls13Resumed), 1),
        ] {
            let transport = Transport::Spdy(spdy::Version::V3_1);
            let run = world.load(&page, &secured(transport, tls.clone()), 1).unwrap();
            assert_complete(&page, &run);
            let record = &run.load.connections[0].record;
            let took = record.secured.expect("secured").since(record.connected.expect("connected"));
            assert!(took >= trip * trips, "{tls:?} took {took:?}");
            // One more round trip would show: processors are slow today, but not by that much in all five.
            let sent: u64 = run.load.connections.iter().map(|c| c.client.bytes_received).sum();
            let chain = u64::from(tls.chain_len) * run.load.connections.len() as u64;
            let bodies: u64 = page.resources.iter().map(|r| r.body_len).sum();
            let resumed = matches!(tls.mode, Mode::Tls12Resumed | Mode::Tls13Resumed);
            assert_eq!(sent >= bodies + chain, !resumed, "a resumed handshake brings no certificates");
        }
    }
}

/// As in the virtual world: one session for a party's hosts, which have one address; and what a document is sure to need comes unasked.
#[test]
fn hosts_of_one_party_share_a_session_and_what_is_pushed_is_not_asked_for() {
    let (Some(world), page) = (world(), page()) else { return };
    let mut setup = setup(Transport::Spdy(spdy::Version::V3_1));
    setup.tls = Some(::tls::Config::new(::tls::Mode::Tls12Full));
    setup.tls_scope = load::TlsScope::Everywhere;
    let requests = |run: &Run| run.load.connections.iter().map(|c| c.record.requests).sum::<u32>();
    let apart = world.load(&page, &setup, 1).unwrap();
    setup.techniques.pooling = true;
    let shared = world.load(&page, &setup, 1).unwrap();
    assert_eq!(shared.load.outcome, Outcome::Complete);
    assert!(shared.load.connections.len() < apart.load.connections.len());
    setup.techniques.push = true;
    let pushed = world.load(&page, &setup, 1).unwrap();
    assert_eq!(pushed.load.outcome, Outcome::Complete);
    assert!(requests(&pushed) < requests(&shared), "{} {}", requests(&pushed), requests(&shared));
}

/// As in the virtual world: with the document's head, or with the document itself at a second visit, and each thing once.
#[test]
fn what_is_hinted_at_or_known_is_asked_for_early_and_once() {
    let (Some(world), page) = (world(), page()) else { return };
    let sent = |run: &Run| run.load.connections.iter().map(|c| c.record.requests).sum::<u32>();
    for transport in [Transport::Http1, Transport::Spdy(spdy::Version::V2)] {
        let setup = setup(transport);
        for form in [page::hint::Form::Subresources, page::hint::Form::Preload] {
            let mut hinting = setup.clone();
            hinting.techniques.hints = Some(form);
            let run = world.load(&page, &hinting, 1).unwrap();
            assert_complete(&page, &run);
            let head = run.load.requests[0].timing.and_then(|t| t.head).expect("the document's");
            let hinted: Vec<_> = run.load.requests.iter().filter_map(|r| r.ahead).collect();
            assert!(hinted.len() > 5 && hinted.iter().all(|ahead| ahead.asked >= head));
            assert_eq!((run.load.ahead.used, sent(&run)), (hinted.len() as u32, page.resources.len() as u32));
        }
        let mut knowing = setup;
        knowing.techniques.prefetch = true;
        let first = world.load(&page, &knowing, 1).unwrap();
        assert_eq!(first.load.ahead, browser::AheadTally::default());
        knowing.memory = first.load.memory;
        let run = world.load(&page, &knowing, 1).unwrap();
        assert_complete(&page, &run);
        let asked = run.load.requests[0].timing.expect("asked for").queued;
        let known: Vec<_> = run.load.requests.iter().filter_map(|r| r.ahead).collect();
        assert!(known.len() > 5 && known.iter().all(|ahead| ahead.asked == asked));
        assert_eq!(sent(&run), page.resources.len() as u32);
    }
}

/// What the servers told at one visit they begin with at the next, each at its own address, and the kernel says so; a server of which nothing
/// was kept begins as all do.
#[test]
fn a_window_that_was_kept_is_begun_with_where_it_was() {
    let (Some(world), page) = (world(), page()) else { return };
    let mut setup = setup(Transport::Spdy(spdy::Version::V3_1));
    setup.techniques.kept_cwnd = Some(64);
    let first = world.load(&page, &setup, 1).unwrap();
    assert_eq!((&first.load.outcome, first.unmet), (&Outcome::Complete, vec![]));
    let told = first.load.memory.settings;
    assert!(told.len() > 1, "{told:?}");
    setup.memory.settings = told[..1].to_vec();
    setup.memory.settings[0].settings[0].value = 40;
    let (kept, other) = (&told[0].host, &told[1].host);
    let run = world.load(&page, &setup, 1).unwrap();
    assert_eq!((&run.load.outcome, &run.unmet), (&Outcome::Complete, &vec![]));
    let knobs = run.kernel.knobs.iter().filter(|k| k.name.starts_with("initcwnd from "));
    assert_eq!(
        knobs.map(|k| (&*k.asked, &*k.got)).collect::<Vec<_>>(),
        [("40", "40"); 2],
        "in either network"
    );
    let cwnd = |run: &Run, url: &str| {
        let of = |c: &&load::Connection| url.ends_with(&*page.hosts[c.record.host as usize].authority());
        run.load.connections.iter().find(of).expect("it was connected to").server.cwnd
    };
    assert!(cwnd(&run, kept) >= 40, "{}", cwnd(&run, kept));
    let initial = setup.server_tcp.initial_cwnd;
    assert!(initial < 40 && cwnd(&run, other) >= initial);
    setup.techniques.kept_cwnd = Some(20);
    let bounded = world.load(&page, &setup, 1).unwrap();
    assert!(bounded.kernel.knobs.iter().any(|k| k.name.starts_with("initcwnd from ") && k.got == "20"));
}

/// While a session is not read nothing of it comes, and then all does.
#[test]
fn a_stream_that_nobody_reads_stalls_all_others_where_there_is_no_flow_control() {
    let Some(world) = world() else { return };
    let at = page::Cause::Parser { parent: 0, offset: 1, script: page::ScriptMode::Sync };
    let resource = |path: String, kind, body_len, cause| page::Resource {
        body_len,
        after_load: kind == page::Kind::Media,
        ..page::Resource::get(path, kind, cause)
    };
    let root = resource("/".into(), page::Kind::Document, 1_000, page::Cause::Root);
    let video = resource("/video".into(), page::Kind::Media, 400_000, at);
    let images = (0..10).map(|n| resource(format!("/{n}"), page::Kind::Image, 10_000, at));
    let page = Page::new(
        "test",
        vec![page::Host::new("www.a.example")],
        [root, video].into_iter().chain(images).collect(),
    )
    .expect("a valid page");
    let mut setup = setup(Transport::Spdy(spdy::Version::V3));
    setup.spdy = spdy::Config::chrome_2012(spdy::Version::V3).without(spdy::Feature::FlowControl);
    setup.spdy.keep_alive = None;
    let length = Duration::from_millis(1_500);
    setup.techniques.pause = Some(browser::Pause { after: 65_536, length });
    setup.techniques.stalled = client::Stalled::Block;
    let run = world.load(&page, &setup, 1).unwrap();
    assert_eq!(run.load.outcome, Outcome::Complete);
    assert!(run.load.plt().expect("complete") > length);
}
