//! Sessions that serve several hosts, and hosts that speak different protocols.

use super::*;

const SPDY: Transport = Transport::Spdy(spdy::Version::V3_1);

/// A client of two secured SPDY hosts of one address; the second shows certificate `certificate`, the first 1.
fn sharing(certificate: u32) -> Client {
    let config = Config { pooling: true, ..Config::new(SPDY) };
    let hosts = (0..2).map(|i| Host { name: format!("host{i}.example"), tls: true });
    let mut client = Client::new(config, hosts.collect());
    for (host, certificate) in [(0, 1), (1, certificate)] {
        let addresses = vec!["192.0.2.1".parse().unwrap()];
        client
            .describe(host, HostFacts { addresses, certificate: Some(certificate), ..HostFacts::default() });
    }
    client
}

/// The same, with host 0's session ready and host 1 asked for request 1.
fn asked(mut client: Client) -> Client {
    client.fetch(at(0), 0, 0, head(), 0, priority::IMAGE);
    client.handle_resolved(at(1), 0, true);
    client.handle_connected(at(2), 0);
    client.handle_secured(at(3), 0);
    actions(&mut client);
    client.fetch(at(4), 1, 1, head(), 0, priority::IMAGE);
    assert_eq!(actions(&mut client), [Action::Resolve { host: 1 }], "its address has to be known first");
    client.handle_resolved(at(5), 1, true);
    client
}

#[test]
fn a_session_serves_a_host_of_the_same_address_and_certificate() {
    let mut client = asked(sharing(1));
    assert_eq!(client.request(1).unwrap().connection, Some(0));
    assert!(client.request(1).unwrap().pooled);
    assert_eq!(actions(&mut client), []);
}

#[test]
fn a_host_of_another_certificate_gets_a_session_of_its_own() {
    assert_eq!(connects(&mut asked(sharing(2))), [1]);
}

#[test]
fn a_host_of_another_address_gets_a_session_of_its_own() {
    let mut client = sharing(1);
    let addresses = vec!["192.0.2.2".parse().unwrap()];
    client.describe(1, HostFacts { addresses, certificate: Some(1), ..HostFacts::default() });
    assert_eq!(connects(&mut asked(client)), [1]);
}

#[test]
fn without_pooling_every_host_gets_a_session_of_its_own() {
    let mut client = sharing(1);
    client.config.pooling = false;
    assert_eq!(connects(&mut asked(client)), [1]);
}

#[test]
fn a_session_that_is_ready_takes_what_waits_for_another_which_is_closed_when_it_comes() {
    let mut client = sharing(1);
    for host in 0..2 {
        client.fetch(at(0), host, host, head(), 0, priority::IMAGE);
        client.handle_resolved(at(1), host, true);
        client.handle_connected(at(2), host);
    }
    actions(&mut client);
    client.handle_secured(at(3), 0);
    assert_eq!(client.request(1).unwrap().connection, Some(0));
    client.handle_secured(at(4), 1);
    assert_eq!(actions(&mut client), [Action::Close { connection: 1 }]);
}

/// Answers the oldest request that a server has with `status`.
fn respond(client: &mut Client, connection: ConnectionId, server: &mut spdy::Session, status: u16) {
    carry(client, connection, server);
    let asked = std::iter::from_fn(|| server.poll_event()).find_map(|e| match e {
        spdy::Event::Request { id, .. } => Some(id),
        _ => None,
    });
    server.respond(asked.expect("a request"), &ResponseHead { status, fields: Fields::new() }, true).unwrap();
    carry(client, connection, server);
}

#[test]
fn a_misdirected_request_is_sent_once_more_on_a_session_of_its_hosts_own() {
    let mut client = asked(sharing(1));
    let mut server = spdy::Session::server(spdy::Config::chrome_2013(spdy::Version::V3_1));
    respond(&mut client, 0, &mut server, 200);
    assert_eq!(completed(&mut client), [0]);
    respond(&mut client, 0, &mut server, 421);
    assert_eq!(events(&mut client), [], "the page hears nothing of it");
    assert_eq!(connects(&mut client), [1]);
    client.handle_connected(at(7), 1);
    client.handle_secured(at(8), 1);
    assert_eq!(client.request(1).unwrap().connection, Some(1));
    let mut own = spdy::Session::server(spdy::Config::chrome_2013(spdy::Version::V3_1));
    respond(&mut client, 1, &mut own, 421);
    let heads = events(&mut client).into_iter().filter(|e| matches!(e, Event::Head { id: 1, .. }));
    assert_eq!(heads.count(), 1, "once");
}

#[test]
fn hosts_that_do_not_speak_it_yet_are_asked_over_http1() {
    let mut client = client(SPDY, 2);
    client.describe(1, HostFacts { transport: Some(Transport::Http1), ..HostFacts::default() });
    for id in 0..8 {
        client.fetch(at(0), id, id % 2, head(), 0, priority::IMAGE);
    }
    client.handle_resolved(at(1), 0, true);
    client.handle_resolved(at(1), 1, true);
    let hosts: Vec<_> = client.connections().map(|c| c.host).collect();
    assert_eq!(hosts, [0, 1, 1, 1, 1]);
}
