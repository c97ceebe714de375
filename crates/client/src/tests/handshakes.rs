//! TLS handshakes that wait for a session.

use super::*;

/// A client of one secured host whose three connections have their TCP handshakes at 20, 30 and 40 ms.
fn connected(handshakes: Handshakes) -> Client {
    let config = Config { handshakes, timeouts: Timeouts::CHROME, ..Config::new(Transport::Http1) };
    let mut client = Client::new(config, vec![Host { name: "a.example".into(), tls: true }]);
    (0..3).for_each(|id| client.fetch(at(0), id, 0, head(), 0, priority::IMAGE));
    client.handle_resolved(at(10), 0, true);
    assert_eq!(connects(&mut client), [0, 1, 2]);
    (0..3).for_each(|id| client.handle_connected(at(20 + 10 * u64::from(id)), id));
    client
}

fn secures(client: &mut Client) -> Vec<(ConnectionId, bool)> {
    std::iter::from_fn(|| client.poll_secure()).map(|s| (s.connection, s.resume)).collect()
}

#[test]
fn handshakes_in_parallel_are_all_full() {
    let mut client = connected(Handshakes::Parallel);
    assert_eq!(secures(&mut client), [(0, false), (1, false), (2, false)]);
}

#[test]
fn without_a_session_the_first_proceeds_and_the_others_wait_and_resume() {
    let mut client = connected(Handshakes::WaitForSession);
    assert_eq!(secures(&mut client), [(0, false)]);
    client.handle_secured(at(150), 0);
    assert_eq!(
        secures(&mut client),
        [],
        "it has started falsely: the ticket comes with the server's Finished"
    );
    client.handle_session(at(200), 0);
    assert_eq!(secures(&mut client), [(1, true), (2, true)]);
    let begun: Vec<_> = client.connections().map(|c| c.handshake).collect();
    assert_eq!(begun, [Some(at(20)), Some(at(200)), Some(at(200))]);
}

#[test]
fn with_a_session_nobody_waits() {
    let mut client = connected(Handshakes::WaitForSession);
    client.handle_secured(at(200), 0);
    client.handle_session(at(200), 0);
    secures(&mut client);
    client.handle_failed(at(210), 1, "reset");
    client.fetch(at(210), 3, 0, head(), 0, priority::IMAGE);
    connects(&mut client);
    client.handle_connected(at(220), 3);
    assert_eq!(secures(&mut client), [(3, true)]);
}

#[test]
fn if_the_first_fails_the_next_goes_first() {
    let mut client = connected(Handshakes::WaitForSession);
    secures(&mut client);
    client.handle_failed(at(100), 0, "bad certificate");
    assert_eq!(secures(&mut client), [(1, false)]);
    client.handle_failed(at(110), 2, "reset"); // one of those that wait
    client.handle_secured(at(200), 1);
    client.handle_session(at(200), 1);
    assert_eq!(secures(&mut client), []);
}

#[test]
fn if_the_first_is_lost_before_it_has_left_a_session_the_next_goes_first() {
    let mut client = connected(Handshakes::WaitForSession);
    secures(&mut client);
    client.handle_secured(at(100), 0);
    client.handle_failed(at(150), 0, "reset");
    assert_eq!(secures(&mut client), [(1, false)]);
}

#[test]
fn one_that_waits_is_not_timed_until_its_turn() {
    let mut client = connected(Handshakes::WaitForSession);
    assert_eq!(client.poll_timeout(), Some(at(30_020)));
    client.handle_timeout(at(30_020));
    assert_eq!(client.poll_timeout(), Some(at(60_020)), "the second has its own 30 s");
}
