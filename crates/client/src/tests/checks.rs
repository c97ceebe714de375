//! Certificates that are asked about before a handshake ends.

use super::*;

/// Two secured hosts with a connection each that has its server's certificate at 30 ms; 2 is the authority's host. The first host's
/// certificate needs its issuer's (request 10) and its own status (11), the second's a status of its own (12) behind the same issuer's.
fn certified() -> Client {
    let config = Config { check_patience: CHECK_PATIENCE_FIREFOX, ..Config::new(Transport::Http1) };
    let host = |name: &str, tls| Host { name: name.into(), tls };
    let hosts = vec![host("a.example", true), host("b.example", true), host("ca.example", false)];
    let mut client = Client::new(config, hosts);
    let check = |request, is_needed| Check { request, host: 2, head: head(), is_needed, is_known: false };
    client.set_checks(vec![check(10, true), check(11, false), check(12, false)]);
    for (host, own) in [(0, 1), (1, 2)] {
        client.describe(host, HostFacts { checks: vec![0, own], ..HostFacts::default() });
        client.fetch(at(0), host, host, head(), 0, priority::DOCUMENT);
        client.handle_resolved(at(10), host, true);
        client.handle_connected(at(20), host);
    }
    actions(&mut client);
    (0..2).for_each(|id| client.handle_certificate(at(30), id));
    client
}

fn verified(client: &mut Client) -> Vec<ConnectionId> {
    std::iter::from_fn(|| client.poll_verified()).collect()
}

/// The authority's connection that is to be opened is there at once, and answers the request that waits for it.
fn let_authority_answer(client: &mut Client, now: Instant) {
    for id in connects(client) {
        client.handle_connected(now, id);
        answer(client, now, id, "Connection: close\r\n");
    }
}

#[test]
fn those_with_one_issuer_ask_for_its_certificate_once_and_then_each_for_itself() {
    let mut client = certified();
    assert_eq!(actions(&mut client), [Action::Resolve { host: 2 }]);
    client.handle_resolved(at(40), 2, true);
    assert_eq!(verified(&mut client), []);
    let_authority_answer(&mut client, at(60));
    assert_eq!(completed(&mut client), [10]);
    assert_eq!(verified(&mut client), [], "each has its own status to ask for");
    let_authority_answer(&mut client, at(80));
    assert_eq!(completed(&mut client), [11, 12]);
    assert_eq!(verified(&mut client), [0, 1]);
    assert_eq!(client.checked().collect::<Vec<_>>(), [10, 11, 12]);
    client.handle_certificate(at(90), 0);
    assert_eq!(verified(&mut client), [0], "what is known is not asked again");
}

/// Firefox's soft failure: after 2 s nobody waits for a status any more.
#[test]
fn a_status_that_does_not_come_is_done_without() {
    let mut client = certified();
    client.handle_resolved(at(40), 2, true);
    let_authority_answer(&mut client, at(60));
    assert_eq!(client.poll_timeout(), Some(at(2_060)));
    client.handle_timeout(at(2_060));
    assert_eq!(verified(&mut client), [0, 1]);
    assert_eq!(client.checked().collect::<Vec<_>>(), [10]);
}

#[test]
fn a_status_that_is_refused_is_done_without_at_once() {
    let mut client = certified();
    client.handle_resolved(at(40), 2, true);
    let_authority_answer(&mut client, at(60));
    for id in connects(&mut client) {
        client.handle_failed(at(70), id, "refused");
    }
    assert_eq!(verified(&mut client), [0, 1]);
}

#[test]
fn without_its_issuer_a_certificate_is_worth_nothing() {
    let mut client = certified();
    actions(&mut client);
    client.handle_resolved(at(40), 2, false);
    assert_eq!(verified(&mut client), []);
    let why = |event| match event {
        Event::Failed { id, error } => Some((id, error.to_string())),
        _ => None,
    };
    let failed: Vec<_> = events(&mut client).into_iter().filter_map(why).collect();
    let unknown = "not connected: the certificate of its issuer is not to be had".to_owned();
    assert_eq!(failed[1..], [(0, unknown.clone()), (1, unknown)]);
}

#[test]
fn a_connection_that_is_lost_meanwhile_waits_for_nothing() {
    let mut client = certified();
    client.handle_failed(at(35), 0, "reset");
    client.handle_resolved(at(40), 2, true);
    let_authority_answer(&mut client, at(60));
    let_authority_answer(&mut client, at(80));
    assert_eq!(verified(&mut client), [1]);
}
