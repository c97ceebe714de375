//! Hosts with several addresses (RFC 8305).

use std::net::IpAddr;

use super::*;

const V6: [&str; 2] = ["2001:db8::1", "2001:db8::2"];
const V4: [&str; 2] = ["192.0.2.1", "192.0.2.2"];

fn parse(addresses: &[&str]) -> Vec<IpAddr> {
    addresses.iter().map(|a| a.parse().unwrap()).collect()
}

/// A client whose one request waits for the host's name, of which nothing is known yet.
fn asking(policy: HappyEyeballs) -> Client {
    let config = Config { happy_eyeballs: Some(policy), ..Config::new(Transport::Http1) };
    let mut client = Client::new(config, vec![Host { name: "a.example".into(), tls: false }]);
    client.fetch(at(0), 0, 0, head(), 0, priority::IMAGE);
    assert_eq!(actions(&mut client), [Action::Resolve { host: 0 }]);
    client
}

/// The same, with its four addresses known at 0 ms.
fn dialling(policy: HappyEyeballs) -> Client {
    let mut client = asking(policy);
    client.handle_addresses(at(0), 0, Family::V4, &parse(&V4));
    client.handle_addresses(at(0), 0, Family::V6, &parse(&V6));
    client
}

/// The addresses tried so far.
fn tried(client: &Client) -> Vec<String> {
    client.connections().map(|c| c.address.unwrap().to_string()).collect()
}

#[test]
fn addresses_are_tried_250_ms_apart_families_taking_turns() {
    let mut client = dialling(HappyEyeballs::RFC_8305);
    for due in [250, 500, 750] {
        assert_eq!(client.poll_timeout(), Some(at(due)));
        client.handle_timeout(at(due));
    }
    assert_eq!(client.poll_timeout(), None, "there are no more");
    assert_eq!(tried(&client), [V6[0], V4[0], V6[1], V4[1]]);
}

#[test]
fn an_address_that_fails_is_followed_by_the_next_at_once() {
    let mut client = dialling(HappyEyeballs::RFC_8305);
    client.handle_failed(at(30), 0, "unreachable");
    assert_eq!(tried(&client), [V6[0], V4[0]]);
    assert_eq!(events(&mut client), []);
    assert_eq!(client.poll_timeout(), Some(at(280)), "and that one has its 250 ms");
}

#[test]
fn the_first_handshake_that_is_complete_wins_and_the_others_are_closed() {
    let mut client = dialling(HappyEyeballs::RFC_8305);
    client.handle_timeout(at(250));
    assert_eq!(connects(&mut client), [0, 1]);
    client.handle_connected(at(280), 1);
    assert_eq!(actions(&mut client), [Action::Close { connection: 0 }]);
    assert_eq!(client.request(0).unwrap().connection, Some(1));
    assert_eq!(client.poll_timeout(), None);
    client.handle_connected(at(281), 0); // it crossed our close
    assert_eq!(actions(&mut client), []);
}

/// An answer that is lost comes a second later; a refusal takes a round trip.
#[test]
fn a_request_does_not_fail_while_the_other_familys_addresses_may_come() {
    let mut client = asking(HappyEyeballs::RFC_8305);
    client.handle_addresses(at(10), 0, Family::V6, &parse(&V6[..1]));
    client.handle_failed(at(40), 0, "refused");
    assert_eq!(
        (events(&mut client), tried(&client).len()),
        (vec![], 1),
        "and is not tried at random meanwhile"
    );
    client.handle_addresses(at(1_010), 0, Family::V4, &parse(&V4[..1]));
    client.handle_failed(at(1_040), 1, "refused");
    assert_eq!(tried(&client), [V6[0], V6[0], V4[0]]);
    client.handle_connected(at(1_070), 2);
    assert_eq!(client.request(0).unwrap().connection, Some(2));
    // If there are none it is what was said that it fails of.
    let mut client = asking(HappyEyeballs::RFC_8305);
    client.handle_addresses(at(10), 0, Family::V6, &parse(&V6[..1]));
    client.handle_failed(at(40), 0, "refused");
    client.handle_addresses(at(4_000), 0, Family::V4, &[]);
    client.handle_failed(at(4_030), 1, "refused");
    let error = Error::NotConnected("refused".into());
    assert_eq!(events(&mut client), [Event::Failed { id: 0, error }]);
}

/// Of two connections one is refused and the other is not: that one serves, whatever is still awaited.
#[test]
fn a_connection_that_is_made_serves_though_more_addresses_are_awaited() {
    let config = Config { happy_eyeballs: Some(HappyEyeballs::RFC_8305), ..Config::new(Transport::Http1) };
    let mut client = Client::new(config, vec![Host { name: "a.example".into(), tls: false }]);
    client.fetch(at(0), 0, 0, head(), 0, priority::IMAGE);
    client.fetch(at(0), 1, 0, head(), 0, priority::IMAGE);
    client.handle_addresses(at(10), 0, Family::V6, &parse(&V6[..1]));
    assert_eq!(tried(&client).len(), 2);
    client.handle_failed(at(40), 0, "refused");
    client.handle_connected(at(41), 1);
    assert_eq!(
        client.connections().filter(|c| c.requests > 0).count(),
        1,
        "the one that waits has its request"
    );
    // What is being tried when they come may use them.
    client.handle_addresses(at(60), 0, Family::V4, &parse(&V4[..1]));
    let last = client.connections().count() as ConnectionId - 1;
    client.handle_failed(at(70), last, "refused");
    assert_eq!(events(&mut client), []);
    assert_eq!(tried(&client).last().map(String::as_str), Some(V4[0]));
}

#[test]
fn a_request_fails_once_all_addresses_have() {
    let mut client = dialling(HappyEyeballs::RFC_8305);
    client.handle_timeout(at(250));
    for connection in 0..4 {
        assert_eq!(events(&mut client), []);
        client.handle_failed(at(260), connection, "unreachable");
    }
    let error = Error::NotConnected("unreachable".into());
    assert_eq!(events(&mut client), [Event::Failed { id: 0, error }]);
}

#[test]
fn ipv6_addresses_are_used_as_soon_as_they_are_known() {
    let mut client = asking(HappyEyeballs::RFC_8305);
    client.handle_addresses(at(10), 0, Family::V6, &parse(&V6[..1]));
    assert_eq!(tried(&client), [V6[0]]);
    client.handle_addresses(at(20), 0, Family::V4, &parse(&V4[..1]));
    assert_eq!(client.poll_timeout(), Some(at(260)), "addresses that come late join in");
    client.handle_timeout(at(260));
    assert_eq!(tried(&client), [V6[0], V4[0]]);
}

#[test]
fn ipv4_addresses_wait_50_ms_for_those_of_ipv6() {
    let mut client = asking(HappyEyeballs::RFC_8305);
    client.handle_addresses(at(10), 0, Family::V4, &parse(&V4[..1]));
    assert_eq!(client.poll_timeout(), Some(at(60)));
    let mut impatient = asking(HappyEyeballs::RFC_8305);
    impatient.handle_addresses(at(10), 0, Family::V4, &parse(&V4[..1]));
    client.handle_addresses(at(30), 0, Family::V6, &parse(&V6[..1]));
    assert_eq!(tried(&client), [V6[0]]);
    impatient.handle_timeout(at(60));
    assert_eq!(tried(&impatient), [V4[0]]);
}

#[test]
fn a_name_with_addresses_of_neither_family_fails() {
    let mut client = asking(HappyEyeballs::RFC_8305);
    client.handle_addresses(at(10), 0, Family::V6, &[]);
    assert_eq!(events(&mut client), []);
    client.handle_addresses(at(20), 0, Family::V4, &[]);
    assert_eq!(events(&mut client), [Event::Failed { id: 0, error: Error::NameNotResolved }]);
}

#[test]
fn chrome_falls_back_to_ipv4_once_after_300_ms() {
    let mut client = dialling(HappyEyeballs::CHROME);
    assert_eq!(client.poll_timeout(), Some(at(300)));
    client.handle_timeout(at(300));
    assert_eq!(tried(&client), [V6[0], V4[0]]);
    assert_eq!(client.poll_timeout(), None);
}

#[test]
fn without_the_rule_the_first_address_is_the_one() {
    let mut client = client(Transport::Http1, 1);
    client.describe(0, HostFacts { addresses: parse(&V6), ..HostFacts::default() });
    client.fetch(at(0), 0, 0, head(), 0, priority::IMAGE);
    client.handle_resolved(at(1), 0, true);
    client.handle_failed(at(2), 0, "unreachable");
    assert_eq!(tried(&client), [V6[0]]);
    assert_eq!(events(&mut client).len(), 1);
}

#[test]
fn alternatives_are_not_counted_at_their_host() {
    let mut client = dialling(HappyEyeballs::RFC_8305);
    (1..6).for_each(|id| client.fetch(at(100), id, 0, head(), 0, priority::IMAGE));
    assert_eq!(connects(&mut client).len(), 6);
    client.handle_timeout(at(250));
    assert_eq!(connects(&mut client).len(), 1, "the seventh");
}
