//! Hosts with addresses of two families, on networks that do not carry both alike (RFC 8305).

use base::Duration;
use client::{HappyEyeballs, Purpose, Transport};
use load::{Ipv6, Load, Outcome, Route, Setup, Which};
use page::{Cause, Host, Kind, Page, Resource};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A page of one resource, 100 ms away; its time, in ms, and the load.
fn load(route: Route, rule: Option<HappyEyeballs>) -> (f64, Load) {
    let document = Resource { body_len: 1_000, ..Resource::get("/", Kind::Document, Cause::Root) };
    let page = Page::new("test", vec![Host::new("a.example")], vec![document]).expect("a valid page");
    let mut setup = Setup::new(Transport::Http1);
    (setup.down.delay, setup.up.delay) = (ms(50), ms(50));
    setup.ipv6 = Some(Ipv6 { which: Which::Share(1.0), route });
    setup.techniques.happy_eyeballs = rule;
    let load = sim::load(&page, &setup, 1);
    (load.plt().map_or(f64::INFINITY, Duration::as_millis_f64), load)
}

fn carried_by(load: &Load) -> &str {
    let id = load.requests[0].connection.expect("it was sent");
    &load.connections[id as usize].address
}

#[test]
fn a_family_that_is_as_near_is_used_and_nobody_races() {
    let (plt, load) = load(Route::Same, Some(HappyEyeballs::RFC_8305));
    assert!((plt - 200.0).abs() < 1.0, "{plt}");
    assert_eq!((load.connections.len(), carried_by(&load)), (1, "2001:db8::1"));
}

/// RFC 8305 §5: the next address after the Connection Attempt Delay of 250 ms.
#[test]
fn a_family_that_is_lost_costs_the_attempt_delay_and_no_more() {
    let (plt, load) = load(Route::Lost, Some(HappyEyeballs::RFC_8305));
    assert!((plt - 450.0).abs() < 1.0, "{plt}");
    assert_eq!((load.connections.len(), carried_by(&load)), (2, "10.0.0.1"));
    assert_eq!(load.connections[1].record.purpose, Purpose::Alternate);
    let (chrome, _) = self::load(Route::Lost, Some(HappyEyeballs::CHROME));
    assert!((chrome - 500.0).abs() < 1.0, "kIPv6FallbackTimerInMs is 300 ms: {chrome}");
}

#[test]
fn without_the_rule_a_family_that_is_lost_takes_the_page_along() {
    let (_, load) = load(Route::Lost, None);
    assert!(matches!(load.outcome, Outcome::Incomplete(_)), "{:?}", load.outcome);
    assert!(load.connections.iter().all(|c| c.address == "2001:db8::1"));
}

#[test]
fn a_family_that_is_refused_costs_a_round_trip_with_the_rule_and_the_page_without() {
    let (plt, load) = load(Route::Refused, Some(HappyEyeballs::RFC_8305));
    assert!((plt - 300.0).abs() < 1.0, "{plt}");
    assert_eq!((load.connections.len(), carried_by(&load)), (2, "10.0.0.1"));
    let (_, without) = self::load(Route::Refused, None);
    assert!(matches!(without.outcome, Outcome::Incomplete(_)), "{:?}", without.outcome);
}

#[test]
fn a_family_that_is_farther_loses_once_it_is_farther_than_the_delay() {
    let (plt, near) = load(Route::Longer(ms(100)), Some(HappyEyeballs::RFC_8305));
    assert!((plt - 400.0).abs() < 1.0, "two longer round trips: {plt}");
    assert_eq!(carried_by(&near), "2001:db8::1");
    let (plt, far) = load(Route::Longer(ms(400)), Some(HappyEyeballs::RFC_8305));
    assert!((plt - 450.0).abs() < 1.0, "{plt}");
    assert_eq!(carried_by(&far), "10.0.0.1");
    let closed = far.connections[0].record.closed.expect("the loser is closed");
    assert_eq!(Some(closed), far.connections[1].record.connected);
}

/// A document of 100 kB at a name that is looked up, over a link that only takes time; with addresses of both families, or not.
fn large(ipv6: bool, rule: Option<HappyEyeballs>) -> Load {
    let document = Resource { body_len: 100_000, ..Resource::get("/", Kind::Document, Cause::Root) };
    let page = Page::new("test", vec![Host::new("a.example")], vec![document]).expect("a valid page");
    let mut setup = Setup::new(Transport::Http1);
    (setup.down.delay, setup.up.delay, setup.dns) = (ms(50), ms(50), ms(100));
    setup.ipv6 = ipv6.then_some(Ipv6 { which: Which::Share(1.0), route: Route::Same });
    setup.techniques.happy_eyeballs = rule;
    setup.keeps_packets = true;
    sim::load(&page, &setup, 1)
}

/// RFC 8200 §3: a header of 40 bytes, where RFC 791 §3.1 has 20. The packet stays 1500 bytes long, and so holds 20 less.
#[test]
fn packets_of_ipv6_have_20_bytes_more_before_what_they_carry_and_hold_20_less() {
    let (v4, v6) = (large(false, None), large(true, None));
    let most = |load: &Load| load.packets.iter().map(|p| p.segment.len).max();
    assert_eq!((most(&v4), most(&v6)), (Some(1_448), Some(1_428)));
    let segments = |load: &Load, up| -> u64 {
        load.packets.iter().filter(|p| p.up == up).map(|p| u64::from(p.segment.wire_len())).sum()
    };
    let count = |load: &Load, up| load.packets.iter().filter(|p| p.up == up).count() as u64;
    // A name's question is 55 bytes long (`sim::names`); its answers are 16 and 28 more.
    let (question, answers) = (55, [55 + 16, 55 + 28]);
    assert_eq!(v4.up.bytes_in, segments(&v4, true) + question);
    assert_eq!(v4.down.bytes_in, segments(&v4, false) + answers[0]);
    assert_eq!(v6.up.bytes_in, segments(&v6, true) + 20 * count(&v6, true) + 2 * question);
    assert_eq!(v6.down.bytes_in, segments(&v6, false) + 20 * count(&v6, false) + answers[0] + answers[1]);
}

/// RFC 8305 §3: both are asked for at once, so that nobody waits for the second.
#[test]
fn both_families_are_asked_for_at_once_and_a_name_is_looked_up_once() {
    let took = |load: &Load| {
        let (from, to) = load.requests[0].timing.and_then(|t| t.dns).expect("looked up");
        to.since(from)
    };
    for rule in [None, Some(HappyEyeballs::RFC_8305), Some(HappyEyeballs::CHROME)] {
        let load = large(true, rule);
        assert_eq!((took(&load), load.lookups, carried_by(&load)), (ms(100), 1, "2001:db8::1"), "{rule:?}");
        assert_eq!(load.connections.len(), 1);
    }
}
