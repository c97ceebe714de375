//! Hosts with addresses of two families, over the kernel's IPv4 and IPv6. The rules are those of `sim/tests/families.rs`; a busy machine may
//! make anything later, so that what is held is who was tried, who won and what cannot have been earlier.

use client::{HappyEyeballs, Purpose};
use load::{Ipv6, Load, Route, Which};
use page::{Cause, Host, Kind, Resource};

use super::*;
use crate::namespace::Net;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A world that has IPv6; where there is none, that is said.
pub(super) fn world_of_both() -> Option<World> {
    let privilege = crate::namespace::tests::privilege()?;
    match Net::new(privilege).unwrap().allow_ipv6() {
        Ok(()) => Some(World::new(privilege)),
        Err(e) => {
            println!("skipped: {e}");
            None
        }
    }
}

/// A page of one resource at `a.example`, and another at `b.example`.
fn page_of_two() -> Page {
    let resource =
        |host, cause, body_len| Resource { host, body_len, ..Resource::get("/", Kind::Document, cause) };
    let image = Cause::Parser { parent: 0, offset: 100, script: page::ScriptMode::Sync };
    let resources = vec![resource(0, Cause::Root, 40_000), resource(1, image, 20_000)];
    Page::new("two", vec![Host::new("a.example"), Host::new("b.example")], resources).expect("a valid page")
}

fn setup_of(route: Route, rule: Option<HappyEyeballs>) -> Setup {
    let mut setup = setup(Transport::Http1);
    setup.ipv6 = Some(Ipv6 { which: Which::Hosts(vec!["a.example".into()]), route });
    setup.techniques.happy_eyeballs = rule;
    setup
}

/// The address that carried the document.
fn carried_by(load: &Load) -> &str {
    let id = load.requests[0].connection.expect("it was sent");
    &load.connections[id as usize].address
}

fn tried(load: &Load, host: u32) -> Vec<&str> {
    let of_host = load.connections.iter().filter(|c| c.record.host == host);
    of_host.map(|c| c.address.as_str()).collect()
}

const V6: &str = "2001:db8::1";
const V4: &str = "100.66.0.2";

/// The first host is reached over IPv6 and the second, which has no such address, over IPv4; all bytes come.
#[test]
fn a_host_with_an_address_of_ipv6_is_loaded_over_it_and_another_is_not() {
    let Some(world) = world_of_both() else { return };
    for transport in [Transport::Http1, Transport::Spdy(spdy::Version::V3_1)] {
        let setup = Setup { transport, ..setup_of(Route::Same, None) };
        let run = world.load(&page_of_two(), &setup, 1).unwrap();
        assert_complete(&page_of_two(), &run);
        let load = &run.load;
        assert_eq!((tried(load, 0)[0], tried(load, 1)[0]), (V6, "100.66.0.3"));
        // And a question and an answer for each name and family.
        let segments: u64 = load.connections.iter().map(|c| c.client.segments_received).sum();
        assert!(load.down.packets_out >= segments + 4, "{:?}, {segments}", load.down);
        assert_eq!(run.link.up.gone, 0);
    }
}

/// A host that is named by an address of one family has a server of that family, though its server has the other, too.
#[test]
fn a_host_that_is_named_by_its_address_is_of_that_family() {
    let Some(world) = world_of_both() else { return };
    for (name, address) in [("[2001:db8:7::7]", V6), ("192.0.2.7", V4)] {
        let mut page = page_of_two();
        page.hosts[0].name = name.into();
        let mut setup = setup_of(Route::Same, None);
        setup.ipv6 = Some(Ipv6 { which: Which::Share(1.0), route: Route::Same });
        let run = world.load(&page, &setup, 1).unwrap();
        assert_complete(&page, &run);
        assert_eq!(carried_by(&run.load), address);
    }
}

#[test]
fn a_route_to_ipv6_has_the_tcp_of_the_setup_too() {
    let Some(world) = world_of_both() else { return };
    let mut setup = setup_of(Route::Same, None);
    setup.server_tcp.initial_cwnd = 3;
    let run = world.load(&page_of_two(), &setup, 1).unwrap();
    let got = |name: &str| run.kernel.knobs.iter().find(|k| (k.end, k.name.as_str()) == ("server", name));
    assert_eq!(got("initcwnd").map(|k| k.got.as_str()), Some("3"));
    assert_eq!(got("ipv6 initcwnd").map(|k| k.got.as_str()), Some("3"));
    setup.ipv6 = None;
    let run = world.load(&page_of_two(), &setup, 1).unwrap();
    assert!(run.kernel.knobs.iter().all(|k| !k.name.starts_with("ipv6")), "and where there is none, none");
    assert_eq!((tried(&run.load, 0)[0], &run.load.outcome), (V4, &Outcome::Complete));
}

/// RFC 8305 §5: the next address after the Connection Attempt Delay. What is lost has crossed the link.
#[test]
fn a_family_that_is_lost_is_left_for_the_other_when_the_attempt_delay_is_over() {
    let Some(world) = world_of_both() else { return };
    for rule in [HappyEyeballs::RFC_8305, HappyEyeballs::CHROME] {
        let run = world.load(&page_of_two(), &setup_of(Route::Lost, Some(rule)), 1).unwrap();
        assert_eq!((&run.load.outcome, &run.unmet), (&Outcome::Complete, &vec![]));
        let load = &run.load;
        assert_eq!((tried(load, 0), carried_by(load)), (vec![V6, V4], V4));
        let [first, second] = [&load.connections[0].record, &load.connections[1].record];
        assert_eq!((first.connected, second.purpose), (None, Purpose::Alternate));
        assert!(second.opened.since(first.opened) >= rule.attempt_delay);
        assert!(run.link.up.gone >= 1 && run.link.up.refused == 0, "{:?}", run.link.up);
    }
}

#[test]
fn without_the_rule_a_family_that_is_lost_takes_the_page_along() {
    let Some(world) = world_of_both() else { return };
    let setup = Setup { give_up: ms(1_500), ..setup_of(Route::Lost, None) };
    let run = world.load(&page_of_two(), &setup, 1).unwrap();
    assert!(matches!(run.load.outcome, Outcome::Incomplete(_)), "{:?}", run.load.outcome);
    assert!(tried(&run.load, 0).iter().all(|address| *address == V6));
}

#[test]
fn a_family_that_is_farther_takes_its_way_and_loses_once_it_is_farther_than_the_delay() {
    let Some(world) = world_of_both() else { return };
    let patient = HappyEyeballs { attempt_delay: Duration::from_secs(10), ..HappyEyeballs::RFC_8305 };
    let near = world.load(&page_of_two(), &setup_of(Route::Longer(ms(100)), Some(patient)), 1).unwrap();
    assert_complete(&page_of_two(), &near);
    assert_eq!((tried(&near.load, 0), carried_by(&near.load)), (vec![V6], V6));
    let record = &near.load.connections[0].record;
    assert!(record.connected.expect("it came about").since(record.opened) >= ms(120));
    let rule = Some(HappyEyeballs::RFC_8305);
    let far = world.load(&page_of_two(), &setup_of(Route::Longer(ms(3_000)), rule), 1).unwrap();
    assert_eq!((tried(&far.load, 0), carried_by(&far.load)), (vec![V6, V4], V4));
    let closed = far.load.connections[0].record.closed.expect("the loser is closed");
    assert_eq!(Some(closed), far.load.connections[1].record.connected);
}

/// Nobody listens: the kernel says so over either family, and the second is tried as soon as the first has failed.
#[test]
fn a_host_that_refuses_refuses_both_families() {
    use origin::{Fault, FaultKind, Often, Whom};
    let Some(world) = world_of_both() else { return };
    let patient = HappyEyeballs { attempt_delay: Duration::from_secs(10), ..HappyEyeballs::RFC_8305 };
    let mut setup = setup_of(Route::Same, Some(patient));
    let whom = Whom::Host("a.example".into());
    setup.faults.hosts = vec![Fault { kind: FaultKind::Refuse, whom, often: Often::Always }];
    let run = world.load(&page_of_two(), &setup, 1).unwrap();
    assert!(matches!(run.load.outcome, Outcome::Incomplete(_)), "{:?}", run.load.outcome);
    assert_eq!(tried(&run.load, 0)[..2], [V6, V4]);
    let [first, second] = [&run.load.connections[0].record, &run.load.connections[1].record];
    assert_eq!(Some(second.opened), first.closed, "at once");
}

/// The emulator answers for hosts that do not listen at their address of IPv6: a round trip, and the other is tried at once.
#[test]
fn a_family_that_is_refused_costs_a_round_trip() {
    let Some(world) = world_of_both() else { return };
    let patient = HappyEyeballs { attempt_delay: Duration::from_secs(10), ..HappyEyeballs::RFC_8305 };
    let run = world.load(&page_of_two(), &setup_of(Route::Refused, Some(patient)), 1).unwrap();
    assert_complete(&page_of_two(), &run);
    assert_eq!((tried(&run.load, 0), carried_by(&run.load)), (vec![V6, V4], V4));
    let [first, second] = [&run.load.connections[0].record, &run.load.connections[1].record];
    assert!(second.opened.since(first.opened) >= ms(20));
    assert_eq!((first.connected, Some(second.opened)), (None, first.closed));
}

/// What one host answers once is answered once, by whichever address it is asked.
#[test]
fn a_host_of_two_addresses_is_one_server() {
    use origin::{Fault, FaultKind, Often, Whom};
    let Some(world) = world_of_both() else { return };
    let mut setup = setup_of(Route::Same, Some(HappyEyeballs::RFC_8305));
    setup.techniques.retry = client::Retry::RELOADING;
    let kind = FaultKind::Reset { after: None };
    setup.faults.hosts = vec![Fault { kind, whom: Whom::Host("a.example".into()), often: Often::Once }];
    let run = world.load(&page_of_two(), &setup, 1).unwrap();
    assert_eq!(run.load.outcome, Outcome::Complete, "{:?}", run.load.troubles);
    assert_eq!(run.load.troubles.iter().map(|t| t.failures.len()).sum::<usize>(), 1);
}

/// Sessions are had before the load over IPv4, and are good at either address.
#[cfg(feature = "tls")]
#[test]
fn a_session_is_resumed_over_ipv6() {
    let Some(world) = world_of_both() else { return };
    let mut setup = setup_of(Route::Same, None);
    setup.tls = Some(::tls::Config::new(::tls::Mode::Tls13Resumed));
    setup.tls_scope = load::TlsScope::Everywhere;
    let run = world.load(&page_of_two(), &setup, 1).unwrap();
    assert_complete(&page_of_two(), &run);
    assert_eq!(carried_by(&run.load), V6);
    let bytes: u64 = run.load.connections.iter().map(|c| c.client.bytes_received).sum();
    let bodies: u64 = page_of_two().resources.iter().map(|r| r.body_len).sum();
    let chain = u64::from(setup.tls.expect("set").chain_len);
    assert!(bytes < bodies + chain, "no certificate came: {bytes}");
}
