//! What the client stops waiting for, and when.

use super::*;
use base::Duration;

/// A client with Chrome's timeouts and one host.
fn patient(transport: Transport, tls: bool) -> Client {
    let config = Config { timeouts: Timeouts::CHROME, ..Config::new(transport) };
    let mut client = Client::new(config, vec![Host { name: "a.example".into(), tls }]);
    client.fetch(at(0), 0, 0, head(), 0, priority::IMAGE);
    client.handle_resolved(at(10), 0, true);
    assert_eq!(connects(&mut client), [0]);
    client
}

/// Lets the client do what is due, which must be at `due`.
fn wake(client: &mut Client, due: Instant) {
    assert_eq!(client.poll_timeout(), Some(due));
    client.handle_timeout(due);
}

#[test]
fn without_limits_the_client_waits_for_nothing_by_the_clock() {
    let mut client = waiting(7);
    for connection in connects(&mut client) {
        client.handle_connected(at(50), connection);
    }
    answer(&mut client, at(60), 0, "");
    assert_eq!(client.poll_timeout(), None);
}

#[test]
fn a_connection_that_is_not_made_within_240_s_is_given_up_and_fails_its_request() {
    let mut client = patient(Transport::Http1, false);
    client.handle_timeout(at(100));
    assert_eq!(actions(&mut client), [], "a call too early is harmless");
    wake(&mut client, at(240_010));
    assert_eq!(actions(&mut client), [Action::Close { connection: 0 }]);
    let error = Error::NotConnected("no connection after 240 s".into());
    assert_eq!(events(&mut client), [Event::Failed { id: 0, error }]);
    assert_eq!(client.poll_timeout(), None);
}

#[test]
fn a_tls_handshake_has_30_s_from_when_tcp_is_connected() {
    let mut client = patient(Transport::Spdy(spdy::Version::V3_1), true);
    client.handle_connected(at(200), 0);
    wake(&mut client, at(30_200));
    let error = Error::NotConnected("no TLS session after 30 s".into());
    assert_eq!(events(&mut client), [Event::Failed { id: 0, error }]);
}

#[test]
fn a_used_connection_is_closed_after_300_s_of_rest_and_each_use_begins_them_anew() {
    let mut client = patient(Transport::Http1, false);
    client.handle_connected(at(50), 0);
    assert_eq!(client.poll_timeout(), None, "it is busy");
    answer(&mut client, at(1_000), 0, "");
    client.fetch(at(200_000), 1, 0, head(), 0, priority::IMAGE);
    assert_eq!(client.poll_timeout(), None);
    answer(&mut client, at(201_000), 0, "");
    wake(&mut client, at(501_000));
    assert_eq!(actions(&mut client), [Action::Close { connection: 0 }]);
    client.fetch(at(501_001), 2, 0, head(), 0, priority::IMAGE);
    assert_eq!(connects(&mut client), [1]);
}

#[test]
fn a_connection_that_was_never_used_is_closed_after_60_s() {
    let config = Config { timeouts: Timeouts::CHROME, ..Config::new(Transport::Http1) };
    let mut client = Client::new(config, vec![Host { name: "a.example".into(), tls: false }]);
    (0..2).for_each(|id| client.fetch(at(0), id, 0, head(), 0, priority::IMAGE));
    client.handle_resolved(at(10), 0, true);
    client.handle_connected(at(50), 0);
    answer(&mut client, at(60), 0, "");
    answer(&mut client, at(70), 0, "");
    client.handle_connected(at(80), 1); // bound late: nothing is left for it
    actions(&mut client);
    wake(&mut client, at(60_080));
    assert_eq!(actions(&mut client), [Action::Close { connection: 1 }]);
    assert_eq!(client.poll_timeout(), Some(at(300_070)));
}

#[test]
fn an_idle_session_is_not_closed() {
    let mut client = patient(Transport::Spdy(spdy::Version::V3_1), false);
    client.handle_connected(at(50), 0);
    let mut server = spdy::Session::server(spdy::Config::chrome_2013(spdy::Version::V3_1));
    carry(&mut client, 0, &mut server);
    let Some(spdy::Event::Request { id, .. }) =
        std::iter::from_fn(|| server.poll_event()).find(|e| matches!(e, spdy::Event::Request { .. }))
    else {
        panic!("the request has arrived")
    };
    server.respond(id, &ResponseHead { status: 200, fields: Fields::new() }, true).unwrap();
    carry(&mut client, 0, &mut server);
    assert_eq!(completed(&mut client), [0]);
    assert_eq!(client.poll_timeout(), None);
}

#[test]
fn a_connection_given_up_makes_room_for_a_host_that_waits_for_it() {
    let timeouts = Timeouts { connect: Some(Duration::from_millis(500)), ..Timeouts::NONE };
    let config = Config { connections_max: 1, timeouts, ..Config::new(Transport::Http1) };
    let hosts = (0..2).map(|i| Host { name: format!("host{i}.example"), tls: false });
    let mut client = Client::new(config, hosts.collect());
    for host in 0..2 {
        client.fetch(at(0), host, host, head(), 0, priority::IMAGE);
        client.handle_resolved(at(10), host, true);
    }
    assert_eq!(connects(&mut client), [0]);
    wake(&mut client, at(510));
    let next = Action::Connect { connection: 1, host: 1, resume: false };
    assert_eq!(actions(&mut client), [Action::Close { connection: 0 }, next]);
}

/// A client with limits on silence whose requests 0 and 1 are on their way on two connections.
fn reloading() -> Client {
    let config =
        Config { timeouts: Timeouts::RELOADING, retry: Retry::RELOADING, ..Config::new(Transport::Http1) };
    let mut client = Client::new(config, vec![Host { name: "a.example".into(), tls: false }]);
    (0..2).for_each(|id| client.fetch(at(0), id, 0, head(), 0, priority::IMAGE));
    client.handle_resolved(at(0), 0, true);
    for connection in connects(&mut client) {
        client.handle_connected(at(0), connection);
        assert!(!sent(&mut client, connection).is_empty());
    }
    client
}

#[test]
fn a_connection_that_is_silent_for_10_s_is_given_up_and_its_request_sent_again_and_then_has_20_s() {
    let mut client = reloading();
    let part = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc";
    client.handle_input(at(0), 1, Chunk::Bytes(part.into()));
    assert_eq!(events(&mut client).len(), 2);
    client.handle_timeout(at(9_999));
    assert_eq!(actions(&mut client), []);
    wake(&mut client, at(10_000));
    assert_eq!(actions(&mut client), [Action::Close { connection: 0 }, Action::Close { connection: 1 }]);
    assert_eq!(events(&mut client), []);
    let said = client.request(0).unwrap().failures[0].error.to_string();
    assert_eq!(said, "connection lost: silent for 10 s");
    wake(&mut client, at(10_250));
    assert_eq!(connects(&mut client), [2, 3]);
    client.handle_connected(at(10_260), 2);
    assert!(!sent(&mut client, 2).is_empty());
    client.handle_timeout(at(30_259));
    assert_eq!(client.request(0).unwrap().failures.len(), 1);
    client.handle_timeout(at(30_260));
    let said = client.request(0).unwrap().failures[1].error.to_string();
    assert_eq!(said, "connection lost: silent for 20 s");
}

#[test]
fn as_long_as_others_bring_something_a_silent_connection_has_four_times_as_long() {
    let mut client = reloading();
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n";
    client.handle_input(at(100), 1, Chunk::Bytes(head.into()));
    for second in (5..45).step_by(5) {
        client.handle_timeout(at(second * 1_000));
        let closed = actions(&mut client);
        assert_eq!(closed.is_empty(), second < 40, "{second} s: {closed:?}");
        client.handle_input(at(second * 1_000), 1, Chunk::Bytes("abc".into()));
    }
    let said = client.request(0).unwrap().failures[0].error.to_string();
    assert_eq!(said, "connection lost: silent for 40 s");
}

#[test]
fn a_connection_without_requests_may_be_silent() {
    let mut client = reloading();
    for connection in [0, 1] {
        client.handle_input(
            at(100),
            connection,
            Chunk::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".into()),
        );
    }
    client.handle_timeout(at(50_000));
    assert_eq!(actions(&mut client), []);
    assert_eq!(completed(&mut client), [0, 1]);
}

#[test]
fn who_tries_again_waits_longer_for_a_connection_too() {
    let mut client = reloading();
    client.handle_failed(at(100), 0, "reset");
    client.handle_failed(at(100), 1, "reset");
    client.handle_timeout(at(350));
    assert_eq!(connects(&mut client).len(), 2);
    client.handle_timeout(at(20_349));
    assert_eq!(actions(&mut client), []);
    client.handle_timeout(at(20_350));
    assert_eq!(actions(&mut client).len(), 2);
    let said = client.request(0).unwrap().failures[1].error.to_string();
    assert_eq!(said, "not connected: no connection after 20 s");
}
