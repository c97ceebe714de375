//! Connections ahead of need.

use super::*;

/// A client of hosts 0 to `hosts` − 1, and what it wants when a page of host 0 is visited.
fn visiting(policy: Preconnect, hosts: usize) -> Client {
    let config = Config { preconnect: policy, ..Config::new(Transport::Http1) };
    let hosts = (0..hosts).map(|i| Host { name: format!("host{i}.example"), tls: false });
    Client::new(config, hosts.collect())
}

fn row(host: u32, expected: f64) -> LearnedRow {
    LearnedRow {
        page: "http://host0.example".into(),
        page_loads: 1,
        host: format!("http://host{host}.example"),
        navigations: 1,
        preconnects: 0,
        preresolves: 0,
        expected,
    }
}

/// How many connections to each host are opened when every name resolves.
fn opened(client: &mut Client, hosts: u32) -> Vec<usize> {
    let mut opened = vec![0; hosts as usize];
    loop {
        let wanted = actions(client);
        if wanted.is_empty() {
            return opened;
        }
        for action in wanted {
            match action {
                Action::Resolve { host } => client.handle_resolved(at(10), host, true),
                Action::Connect { host, .. } => opened[host as usize] += 1,
                Action::Close { .. } => {}
            }
        }
    }
}

#[test]
fn nothing_is_opened_ahead_unless_a_policy_says_so() {
    let mut client = visiting(Preconnect::None, 1);
    client.navigate(at(0), 0);
    assert_eq!(actions(&mut client), []);
}

#[test]
fn blind_opens_two_to_every_host_that_is_asked() {
    let mut client = visiting(Preconnect::BlindTwo, 3);
    client.navigate(at(0), 0);
    client.fetch(at(0), 0, 0, head(), 0, priority::DOCUMENT);
    client.fetch(at(0), 1, 1, head(), 0, priority::IMAGE);
    assert_eq!(opened(&mut client, 3), [2, 2, 0]);
    let tally = client.preconnect_tally();
    assert_eq!(tally.iter().map(|t| (t.host, t.made, t.wasted)).collect::<Vec<_>>(), [(0, 1, 1), (1, 1, 1)]);
}

#[test]
fn a_page_never_seen_gets_two_connections_before_its_document_is_asked_for() {
    let mut client = visiting(Preconnect::Learned, 1);
    client.navigate(at(0), 0);
    assert_eq!(opened(&mut client, 1), [2]);
    client.fetch(at(20), 0, 0, head(), 0, priority::DOCUMENT);
    assert_eq!(opened(&mut client, 1), [0], "the document takes one that is under way");
    client.handle_connected(at(30), 0);
    assert_eq!(client.request(0).unwrap().connection, Some(0));
    let tally = client.preconnect_tally()[0];
    assert_eq!((tally.made, tally.used, tally.wasted), (2, 1, 1));
}

#[test]
fn what_was_learned_is_opened_or_looked_up_when_its_page_is_visited() {
    let mut client = visiting(Preconnect::Learned, 4);
    client.set_learned(Learned::from_rows([row(1, 2.5), row(2, 0.5), row(3, 0.05)], vec![]));
    client.navigate(at(0), 0);
    assert_eq!(opened(&mut client, 4), [0, 3, 0, 0]);
    assert_eq!(client.lookups(), 2, "host 1 and host 2");
}

#[test]
fn no_more_than_the_limits_are_opened_ahead_and_nothing_is_closed_for_it() {
    let config =
        Config { connections_max: 4, preconnect: Preconnect::Learned, ..Config::new(Transport::Http1) };
    let hosts = (0..3).map(|i| Host { name: format!("host{i}.example"), tls: false });
    let mut client = Client::new(config, hosts.collect());
    client.set_learned(Learned::from_rows([row(1, 9.0), row(2, 9.0)], vec![]));
    client.navigate(at(0), 0);
    assert_eq!(opened(&mut client, 3), [0, 4, 0]);
}

#[test]
fn a_session_is_opened_once_however_many_connections_are_expected() {
    let config =
        Config { preconnect: Preconnect::Learned, ..Config::new(Transport::Spdy(spdy::Version::V3_1)) };
    let mut client = Client::new(config, vec![Host { name: "host0.example".into(), tls: false }]);
    client.set_learned(Learned::from_rows([row(0, 5.0)], vec![]));
    client.navigate(at(0), 0);
    assert_eq!(opened(&mut client, 1), [1]);
}

#[test]
fn each_connection_that_a_page_uses_is_learned_but_its_document_is_not() {
    let mut client = visiting(Preconnect::Learned, 2);
    client.navigate(at(0), 0);
    client.fetch(at(0), 0, 0, head(), 0, priority::DOCUMENT);
    (1..4).for_each(|id| client.fetch(at(0), id, 1, head(), 0, priority::IMAGE));
    assert_eq!(opened(&mut client, 2), [2, 3]);
    client.handle_connected(at(50), 0);
    for connection in 2..5 {
        client.handle_connected(at(50), connection);
    }
    let learned: Vec<_> = client.learned().rows().collect();
    assert_eq!(learned.len(), 1);
    assert_eq!((&*learned[0].host, learned[0].navigations), ("http://host1.example", 3));
    answer(&mut client, at(60), 0, "");
    client.fetch(at(70), 4, 0, head(), 0, priority::IMAGE);
    assert!(client.request(4).unwrap().connection.is_some());
    assert_eq!(client.learned().rows().count(), 1, "nor is what follows the document on its connection");
    assert_eq!(client.learned().startup(), ["http://host0.example", "http://host1.example"]);
}

#[test]
fn a_connection_opened_ahead_that_fails_fails_no_request() {
    let mut client = visiting(Preconnect::Learned, 1);
    client.navigate(at(0), 0);
    client.fetch(at(0), 0, 0, head(), 0, priority::DOCUMENT);
    client.handle_resolved(at(10), 0, true);
    let opened = connects(&mut client);
    for connection in &opened {
        client.handle_failed(at(20), *connection, "refused");
    }
    let failed = events(&mut client).len();
    assert_eq!(failed, opened.len() - 1, "only the connection that the request asked for counts");
}

#[test]
fn three_names_are_looked_up_ahead_at_once() {
    let mut client = visiting(Preconnect::Learned, 6);
    client.set_learned(Learned::from_rows((1..6).map(|h| row(h, 0.5)), vec![]));
    client.navigate(at(0), 0);
    assert_eq!(actions(&mut client).len(), 3);
    client.handle_resolved(at(100), 2, true);
    assert_eq!(actions(&mut client), [Action::Resolve { host: 4 }]);
}

#[test]
fn names_that_waited_1333_ms_are_dropped_with_the_whole_queue() {
    let mut client = visiting(Preconnect::Learned, 9);
    client.set_learned(Learned::from_rows((1..9).map(|h| row(h, 0.5)), vec![]));
    client.navigate(at(0), 0);
    actions(&mut client);
    client.handle_resolved(at(1_332), 1, true);
    assert_eq!(actions(&mut client).len(), 1);
    client.handle_resolved(at(1_333), 2, true);
    client.handle_resolved(at(1_334), 3, true);
    assert_eq!(actions(&mut client), []);
    client.fetch(at(1_400), 0, 8, head(), 0, priority::IMAGE);
    assert_eq!(actions(&mut client), [Action::Resolve { host: 8 }], "who asks is not kept waiting");
}

#[test]
fn the_first_hosts_of_the_last_start_are_looked_up_at_this_one() {
    let mut client = visiting(Preconnect::Learned, 3);
    client.set_learned(Learned::from_rows([], vec!["http://host2.example".into()]));
    client.navigate(at(0), 0);
    assert_eq!(actions(&mut client)[0], Action::Resolve { host: 2 });
}

#[test]
fn what_was_learned_loses_weight_every_hour() {
    let mut client = visiting(Preconnect::Learned, 2);
    client.set_learned(Learned::from_rows([row(1, 2.0)], vec![]));
    client.navigate(at(0), 0);
    let before = client.learned().rows().next().unwrap().expected;
    for hour in 1..=2 {
        assert_eq!(client.poll_timeout(), Some(at(hour * 3_600_000)));
        client.handle_timeout(at(hour * 3_600_000));
    }
    let after = client.learned().rows().next().unwrap().expected;
    assert!((after - before * 0.97153 * 0.97153).abs() < 1e-12);
}

#[test]
fn the_successor_opens_one_connection_to_what_most_visits_used() {
    let mut client = visiting(Preconnect::Successor, 3);
    for visit in 0..4 {
        client.navigate(at(0), 0);
        client.fetch(at(0), visit * 2, 1, head(), 0, priority::IMAGE);
        if visit % 2 == 0 {
            client.fetch(at(0), visit * 2 + 1, 2, head(), 0, priority::IMAGE);
        }
        opened(&mut client, 3);
        let ready: Vec<_> = client.connections().filter(|c| c.connected.is_none()).map(|c| c.id).collect();
        ready.into_iter().for_each(|c| client.handle_connected(at(1), c));
        client.finish_visit();
    }
    let rows: Vec<_> = client.successor().rows().map(|r| (r.hits, r.misses)).collect();
    assert_eq!(rows, [(4, 0), (2, 2)]);
    let mut next = visiting(Preconnect::Successor, 3);
    next.set_successor(Successor::from_rows(client.successor().rows()));
    next.navigate(at(0), 0);
    assert_eq!(opened(&mut next, 3), [0, 1, 0], "host 2 has a confidence of ½: its name is looked up");
    assert_eq!(next.lookups(), 2);
}
