//! A second connection for one that takes too long.

use super::*;
use base::Duration;

fn racer(racing: Racing, tls: bool) -> Client {
    let config = Config { racing, ..Config::new(Transport::Http1) };
    Client::new(config, vec![Host { name: "a.example".into(), tls }])
}

/// A client whose one request waits for connection 0, which was begun at 10 ms.
fn slow(racing: Racing, tls: bool) -> Client {
    let mut client = racer(racing, tls);
    client.fetch(at(0), 0, 0, head(), 0, priority::IMAGE);
    client.handle_resolved(at(10), 0, true);
    assert_eq!(connects(&mut client), [0]);
    client
}

#[test]
fn a_connection_that_is_not_there_after_250_ms_gets_one_spare() {
    let mut client = slow(Racing::FIREFOX, false);
    assert_eq!(client.poll_timeout(), Some(at(260)), "from the start of connecting, not of the look-up");
    client.handle_timeout(at(260));
    assert_eq!(connects(&mut client), [1]);
    assert_eq!(client.poll_timeout(), None, "a spare gets no spare");
    assert_eq!(client.connections().nth(1).unwrap().purpose, Purpose::Spare);
}

#[test]
fn the_delay_is_the_callers_and_zero_opens_no_spare() {
    let mut client = slow(Racing::OFF, false);
    assert_eq!(client.poll_timeout(), None);
    client = slow(Racing { delay: Duration::from_millis(100), ..Racing::FIREFOX }, false);
    assert_eq!(client.poll_timeout(), Some(at(110)));
}

#[test]
fn a_connection_made_in_time_gets_no_spare() {
    let mut client = slow(Racing::FIREFOX, false);
    client.handle_connected(at(200), 0);
    assert_eq!(client.poll_timeout(), None);
}

#[test]
fn whichever_is_ready_first_takes_the_request_and_the_other_is_there_for_the_next() {
    let mut client = slow(Racing::FIREFOX, false);
    client.handle_timeout(at(260));
    client.handle_connected(at(300), 1);
    assert_eq!(client.request(0).unwrap().connection, Some(1));
    client.handle_connected(at(3_010), 0);
    client.fetch(at(3_020), 1, 0, head(), 0, priority::IMAGE);
    assert_eq!(client.request(1).unwrap().connection, Some(0));
    assert_eq!(client.request(1).unwrap().timing.connect, None, "it is spared the round trip");
}

#[test]
fn the_loser_finishes_its_tls_handshake_before_it_is_idle() {
    let mut client = slow(Racing::FIREFOX, true);
    client.handle_timeout(at(260));
    client.handle_connected(at(300), 1);
    client.handle_secured(at(400), 1);
    client.handle_connected(at(3_010), 0);
    client.fetch(at(3_020), 1, 0, head(), 0, priority::IMAGE);
    assert_eq!(client.request(1).unwrap().connection, None, "not before it is secured");
    client.handle_secured(at(3_110), 0);
    assert_eq!(client.request(1).unwrap().connection, Some(0));
}

#[test]
fn a_first_connection_that_fails_leaves_the_request_to_its_spare() {
    let mut client = slow(Racing::FIREFOX, false);
    client.handle_timeout(at(260));
    connects(&mut client);
    client.handle_failed(at(300), 0, "refused");
    assert_eq!(events(&mut client), []);
    assert_eq!(connects(&mut client), [], "the spare is under way");
    client.handle_failed(at(310), 1, "refused");
    let error = Error::NotConnected("refused".into());
    assert_eq!(events(&mut client), [Event::Failed { id: 0, error }]);
}

#[test]
fn a_spare_that_fails_takes_nothing_along() {
    let mut client = slow(Racing::FIREFOX, false);
    client.handle_timeout(at(260));
    client.handle_failed(at(300), 1, "refused");
    assert_eq!(events(&mut client), []);
    client.handle_connected(at(310), 0);
    assert_eq!(client.request(0).unwrap().connection, Some(0));
}

#[test]
fn firefoxs_spare_goes_to_ipv4_and_is_not_counted_at_its_host() {
    let mut client = racer(Racing::FIREFOX, false);
    let addresses = vec!["2001:db8::1".parse().unwrap(), "192.0.2.1".parse().unwrap()];
    client.describe(0, HostFacts { addresses, ..HostFacts::default() });
    (0..6).for_each(|id| client.fetch(at(0), id, 0, head(), 0, priority::IMAGE));
    client.handle_resolved(at(10), 0, true);
    assert_eq!(connects(&mut client).len(), 6);
    client.handle_timeout(at(260));
    assert_eq!(connects(&mut client).len(), 6);
    let addresses: Vec<_> = client.connections().map(|c| c.address.unwrap().to_string()).collect();
    assert_eq!((&*addresses[0], &*addresses[6]), ("2001:db8::1", "192.0.2.1"));
}

#[test]
fn chromes_timer_is_the_hosts_and_begins_anew_during_the_look_up() {
    let mut client = racer(Racing::CHROME, false);
    client.fetch(at(0), 0, 0, head(), 0, priority::IMAGE);
    client.fetch(at(0), 1, 0, head(), 0, priority::IMAGE);
    client.handle_timeout(at(250));
    assert_eq!(actions(&mut client), [Action::Resolve { host: 0 }]);
    client.handle_resolved(at(300), 0, true);
    assert_eq!(connects(&mut client), [0, 1]);
    assert_eq!(client.poll_timeout(), Some(at(500)));
    client.handle_timeout(at(500));
    assert_eq!(connects(&mut client), [2], "one a host, 200 ms after the others");
    assert_eq!(client.poll_timeout(), None);
}

#[test]
fn chromes_timer_begins_anew_at_the_limit_of_the_host_which_counts_the_spare() {
    let mut client = racer(Racing::CHROME, false);
    (0..6).for_each(|id| client.fetch(at(0), id, 0, head(), 0, priority::IMAGE));
    client.handle_resolved(at(10), 0, true);
    assert_eq!(connects(&mut client).len(), 6);
    client.handle_timeout(at(250));
    assert_eq!(connects(&mut client), []);
    client.handle_failed(at(260), 5, "refused");
    assert_eq!(client.poll_timeout(), Some(at(500)));
    client.handle_timeout(at(500));
    assert_eq!(connects(&mut client), [6]);
    client.fetch(at(510), 6, 0, head(), 0, priority::IMAGE);
    assert_eq!(connects(&mut client), [], "six are there, with the spare");
}

#[test]
fn of_two_sessions_that_raced_the_second_is_closed() {
    let config = Config { racing: Racing::FIREFOX, ..Config::new(Transport::Spdy(spdy::Version::V3_1)) };
    let mut client = Client::new(config, vec![Host { name: "a.example".into(), tls: false }]);
    client.fetch(at(0), 0, 0, head(), 0, priority::IMAGE);
    client.handle_resolved(at(10), 0, true);
    client.handle_timeout(at(260));
    assert_eq!(connects(&mut client), [0, 1]);
    client.handle_connected(at(300), 1);
    client.handle_connected(at(310), 0);
    assert_eq!(actions(&mut client), [Action::Close { connection: 0 }]);
    assert_eq!(client.request(0).unwrap().connection, Some(1));
}
