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
