//! Things break on real sockets as in the virtual world, and a load still ends whole, or says exactly what is missing.

use base::Instant;
use browser::End;
use client::{Retry, Timeouts};
use load::Load;
use origin::{Fault, FaultKind, Faults, Often, Whom};
use page::{Cause, Host, Kind, Resource, ScriptMode};

use super::*;

const SPDY: Transport = Transport::Spdy(spdy::Version::V3_1);
const BOTH: [Transport; 2] = [Transport::Http1, SPDY];

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A document with eight style sheets of 20 kB on each of two hosts.
fn styles() -> Page {
    let cause = Cause::Parser { parent: 0, offset: 100, script: ScriptMode::Sync };
    let style = |n: u32| {
        let path = format!("/{n}.css");
        let mut style = Resource { host: n % 2, body_len: 20_000, ..Resource::get(path, Kind::Style, cause) };
        style.response.push("ETag", format!("\"{n}\""));
        style.response.push("Accept-Ranges", "bytes");
        style
    };
    let root = Resource { body_len: 10_000, ..Resource::get("/", Kind::Document, Cause::Root) };
    let hosts = vec![Host::new("a.example"), Host::new("b.example")];
    Page::new("styles", hosts, std::iter::once(root).chain((1..=16).map(style)).collect())
        .expect("a valid page")
}

/// With the rules of a browser.
fn browser(transport: Transport) -> Setup {
    let mut setup = setup(transport);
    setup.techniques.timeouts = Timeouts::CHROME;
    setup
}

/// With a client that does what "reload" is pressed for.
fn reloading(transport: Transport) -> Setup {
    let mut setup = setup(transport);
    (setup.techniques.retry, setup.techniques.timeouts) = (Retry::RELOADING, Timeouts::RELOADING);
    setup
}

fn with(mut setup: Setup, kind: FaultKind, whom: Whom, often: Often) -> Setup {
    setup.faults.hosts.push(Fault { kind, whom, often });
    setup
}

fn b() -> Whom {
    Whom::Host("b.example".into())
}

fn load(world: &World, setup: &Setup) -> Load {
    let run = world.load(&styles(), setup, 1).unwrap();
    assert_eq!(run.unmet, [""; 0]);
    run.load
}

fn assert_whole(load: &Load, what: &str) {
    assert_eq!(load.outcome, Outcome::Complete, "{what}: {:?}", load.troubles);
    assert!(load.troubles.iter().all(|t| t.end == End::Whole && !t.failures.is_empty()), "{what}");
    for (request, resource) in load.requests.iter().zip(&styles().resources) {
        assert_eq!(request.body_bytes, resource.body_len, "{what}: each byte reached the page once");
    }
}

#[test]
fn a_host_that_refuses_once_breaks_a_browsers_page_and_not_ours() {
    let Some(world) = world() else { return };
    for transport in BOTH {
        let refuse = |setup| with(setup, FaultKind::Refuse, b(), Often::Once);
        let broken = load(&world, &refuse(browser(transport)));
        let lost: Vec<_> = broken.troubles.iter().filter(|t| t.is_missing()).collect();
        assert!(matches!(broken.outcome, Outcome::Incomplete(_)));
        assert!(lost.iter().all(|t| t.blocks && t.host == "b.example" && t.attempts == 0));
        assert!(format!("{:?}", lost[0].failures).contains("refused"), "{:?}", lost[0].failures);
        // Each of HTTP/1.1's connections is for one request; a session is for all that wait for it.
        assert_eq!(lost.len(), if transport == SPDY { 8 } else { 1 });
        let ours = load(&world, &refuse(reloading(transport)));
        assert_whole(&ours, "ours");
        assert_eq!(ours.troubles.len(), lost.len(), "the same were hit");
    }
}

/// Which they are says the seed, by the host's name and the connection's number, and not the network.
#[test]
fn connections_are_refused_that_are_drawn_and_no_others() {
    let Some(world) = world() else { return };
    let setup = with(reloading(Transport::Http1), FaultKind::Refuse, Whom::All, Often::Share(0.4));
    let load = load(&world, &setup);
    assert_whole(&load, "ours");
    let faults = Faults::new(setup.faults.hosts.clone(), base::Rng::new(1).substream("faults"));
    let mut hit = 0;
    for (host, name) in [(0, "a.example"), (1, "b.example")] {
        let opened = load.connections.iter().filter(|c| c.record.host == host);
        for (n, connection) in (0..).zip(opened) {
            let refused = faults.refuses(name, n);
            assert!(!refused || connection.record.connected.is_none(), "{name}, {n}");
            hit += u32::from(refused);
        }
    }
    assert!(hit > 0);
    let refusals = load.troubles.iter().flat_map(|t| &t.failures);
    assert!(
        refusals.clone().count() > 0 && refusals.clone().all(|f| f.error.to_string().contains("refused"))
    );
}

/// The SYN goes all the way to the host and the answer comes all the way back.
#[test]
fn to_be_refused_takes_a_round_trip() {
    let Some(world) = world() else { return };
    let mut setup = with(browser(SPDY), FaultKind::Refuse, b(), Often::Always);
    setup.host_rtt = HostRtt::Spread(ms(30));
    let load = load(&world, &setup);
    let trip = ms(20) + setup.host_rtt.extra(&styles())[1];
    let connection = load.connections.iter().find(|c| c.record.host == 1).expect("it was dialled");
    let failed = load.troubles.iter().filter(|t| t.host == "b.example").flat_map(|t| &t.failures);
    assert!(failed.clone().count() >= 8 && failed.clone().all(|f| f.at >= connection.record.opened + trip));
    assert!(load.connections.iter().filter(|c| c.record.host == 0).all(|c| c.record.connected.is_some()));
}

#[test]
fn what_reached_its_server_twice_is_known() {
    let Some(world) = world() else { return };
    for transport in BOTH {
        assert_eq!(load(&world, &reloading(transport)).repeated, []);
        let cut = FaultKind::Reset { after: Some(15_000) };
        let setup = with(reloading(transport), cut, Whom::Resource(None, "/3.css".into()), Often::Once);
        let load = world.load(&styles(), &setup, 1).unwrap().load;
        assert_whole(&load, transport.name());
        assert!(load.repeated.contains(&(3, 1)), "{:?}", load.repeated);
    }
}

#[test]
fn a_host_that_vanishes_is_not_heard_of_any_more_and_all_that_it_had_is_named() {
    let Some(world) = world() else { return };
    for transport in BOTH {
        // Before its first SYN: no connection to it comes about. Three seconds later the load is given up.
        let mut setup = with(browser(transport), FaultKind::Vanish { at: ms(0) }, b(), Often::Always);
        setup.give_up = ms(3_000);
        let gone = load(&world, &setup);
        let missing: Vec<_> = gone.troubles.iter().filter(|t| t.is_missing()).collect();
        assert!(missing.len() == 8 && missing.iter().all(|t| t.host == "b.example"), "{missing:?}");
        for connection in &gone.connections {
            assert_eq!(connection.record.connected.is_some(), connection.record.host == 0);
        }
        let whole = &gone.requests[2].body_bytes;
        assert_eq!(*whole, 20_000, "the other host is as it was");
    }
}

/// Amid its answers: what had come by then is there, and nothing more comes than what was on the link.
#[test]
fn a_host_that_vanishes_later_had_been_there() {
    let Some(world) = world() else { return };
    let mut setup = with(browser(SPDY), FaultKind::Vanish { at: ms(1_000) }, b(), Often::Always);
    for path in [&mut setup.down, &mut setup.up] {
        path.rate = link::Rate::Constant(Bitrate::from_kbps(1_000).expect("not zero")); // 330 kB take 2.6 s
        path.queue.limit_bytes = 30_000; // 0.24 s
    }
    setup.give_up = ms(6_000);
    let gone = load(&world, &setup);
    let at_once = |c: &load::Connection| c.record.connected.is_some_and(|at| at < Instant::ZERO + ms(1_000));
    assert!(gone.connections.iter().filter(|c| c.record.host == 1).any(at_once));
    let missing = gone.troubles.iter().filter(|t| t.is_missing());
    assert!(missing.clone().count() > 0 && missing.clone().all(|t| t.host == "b.example"));
    let page = styles();
    let of_b = gone.requests.iter().zip(&page.resources).filter(|(_, r)| r.host == 1);
    let complete = of_b.filter_map(|(r, _)| r.timing.and_then(|t| t.complete)).max();
    assert!(complete < Some(Instant::ZERO + ms(3_000)), "nothing of what its kernel sent again arrived");
}

/// To a network of 300 ms, amid the answers: 330 kB take 660 ms on the first.
fn to_3g(setup: &mut Setup) {
    for path in [&mut setup.down, &mut setup.up] {
        path.rate = link::Rate::Constant(Bitrate::from_kbps(4_000).expect("not zero"));
    }
    let mut path = setup.down.clone();
    path.delay = ms(150);
    path.rate = link::Rate::Constant(Bitrate::from_kbps(1_600).expect("not zero"));
    let change = load::NetworkChange { at: ms(400), down: path.clone(), up: path, dns: ms(300) };
    setup.faults.network_change = Some(change);
}

/// The client is told, and does not wait: it asks for names and connects anew, from another address and over the other link.
#[test]
fn a_change_of_networks_is_survived_at_the_cost_of_new_connections() {
    let Some(world) = world() else { return };
    for transport in BOTH {
        let mut setup = reloading(transport);
        to_3g(&mut setup);
        let run = world.load(&styles(), &setup, 1).unwrap();
        assert_eq!((run.unmet.len(), run.link.up.changes, run.link.down.changes), (0, 1, 1));
        let ours = run.load;
        assert_whole(&ours, transport.name());
        let change = Instant::ZERO + ms(400);
        let (after, before): (Vec<_>, Vec<_>) =
            ours.connections.iter().partition(|c| c.record.opened >= change);
        let made = after.iter().filter_map(|c| Some(c.record.connected?.since(c.record.opened)));
        assert!(
            made.clone().count() > 0 && made.clone().all(|took| took >= ms(300)),
            "{transport}: {after:?}"
        );
        let is_left = |c: &&load::Connection| c.record.closed.is_some();
        assert!(!before.is_empty() && before.iter().all(is_left), "{transport}: {before:?}");
        assert!(ours.lookups >= 3, "names are looked up anew");
        assert!(ours.down.packets_out > 330_000 / 1_500, "what both links carried");
    }
}

/// Both addresses of the client are others then.
#[test]
fn a_change_of_networks_takes_both_families() {
    let Some(world) = families::world_of_both() else { return };
    let mut setup = reloading(SPDY);
    let which = load::Which::Hosts(vec!["a.example".into()]);
    setup.ipv6 = Some(load::Ipv6 { which, route: load::Route::Same });
    to_3g(&mut setup);
    let ours = load(&world, &setup);
    assert_whole(&ours, "both families");
    let made =
        |c: &&load::Connection| c.record.opened >= Instant::ZERO + ms(400) && c.record.connected.is_some();
    let after: Vec<_> = ours.connections.iter().filter(made).map(|c| c.address.contains(':')).collect();
    assert!(after.contains(&true) && after.contains(&false), "{:?}", ours.connections);
}

/// In use, they are left to TCP, which is not told of anything either.
#[test]
fn connections_of_a_network_that_was_left_carry_nothing_and_nobody_says_so() {
    let Some(world) = world() else { return };
    let mut setup = browser(Transport::Http1);
    to_3g(&mut setup);
    setup.give_up = ms(3_000);
    let theirs = load(&world, &setup);
    assert_eq!(theirs.moments.load, None, "they die silently, and nobody notices");
    assert!(theirs.troubles.iter().any(|t| matches!(t.end, End::Unfinished(_))), "{:?}", theirs.troubles);
}

/// What had come whole is not asked for again by a client that keeps it, and of what had not only the rest.
#[test]
fn an_application_that_ended_goes_on_where_it_was_and_fetches_nothing_twice() {
    let Some(world) = world() else { return };
    let at = ms(400);
    for transport in BOTH {
        let ended = |mut setup: Setup| {
            for path in [&mut setup.down, &mut setup.up] {
                path.rate = link::Rate::Constant(Bitrate::from_kbps(4_000).expect("not zero")); // 330 kB take 660 ms
            }
            setup.faults.restart = Some(at);
            load(&world, &setup)
        };
        let (anew, ours) = (ended(browser(transport)), ended(reloading(transport)));
        assert_eq!((&anew.outcome, &ours.outcome), (&Outcome::Complete, &Outcome::Complete));
        for load in [&anew, &ours] {
            let own = load.connections.iter().map(|c| c.record.id).collect::<Vec<_>>();
            assert_eq!(own, (0..own.len() as u32).collect::<Vec<_>>(), "one numbering for both lives");
            let (first, second): (Vec<_>, Vec<_>) =
                load.connections.iter().partition(|c| c.record.opened < Instant::ZERO + at);
            assert!(
                first.iter().all(|c| c.record.closed.is_some()) && !first.is_empty() && !second.is_empty()
            );
            assert!(first.iter().any(|c| c.client.bytes_received > 0), "what the kernel counted is kept");
            let last = load.requests.iter().filter_map(|r| r.connection).max();
            assert!(last >= second.first().map(|c| c.record.id), "requests name the load's connections");
        }
        let unasked = |load: &Load| load.requests.iter().filter(|r| r.timing.is_none()).count();
        assert!(unasked(&ours) > 0, "{transport}: what was complete is not asked for");
        assert_eq!(unasked(&anew), 0);
        let fetched = |load: &Load| load.connections.iter().map(|c| c.client.bytes_received).sum::<u64>();
        assert!(fetched(&ours) < fetched(&anew), "{transport}: {} {}", fetched(&ours), fetched(&anew));
        for (request, resource) in ours.requests.iter().zip(&styles().resources) {
            assert_eq!(request.body_bytes, resource.body_len);
        }
    }
}

/// A full handshake again where every one is full, and names are asked for anew.
#[cfg(feature = "tls")]
#[test]
fn an_application_that_begins_again_has_no_session_and_no_name_left() {
    let Some(world) = world() else { return };
    for mode in [::tls::Mode::Tls12Full, ::tls::Mode::Tls13Full] {
        let mut setup = reloading(SPDY);
        (setup.tls, setup.tls_scope) = (Some(::tls::Config::new(mode)), load::TlsScope::Everywhere);
        for path in [&mut setup.down, &mut setup.up] {
            path.rate = link::Rate::Constant(Bitrate::from_kbps(2_000).expect("not zero")); // 330 kB take 1.3 s
        }
        setup.faults.restart = Some(ms(800));
        let load = load(&world, &setup);
        assert_eq!(load.outcome, Outcome::Complete, "{:?}", load.troubles);
        assert!(load.lookups >= 3 && load.connections.len() >= 3, "{} {:?}", load.lookups, load.connections);
        assert!(load.connections.iter().all(|c| !c.record.resumes), "{:?}", load.connections);
    }
}
