//! The client against scripted connections: tests say what the world does and look at what the client asks of it.

use base::{Fields, Instant, ResponseHead};
use bytes::Bytes;

use super::*;

mod addresses;
mod checks;
mod handshakes;
mod loads;
mod pipelines;
mod preconnect;
mod push;
mod racing;
mod retrying;
mod sharing;
mod timeouts;
mod unread;

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn head() -> RequestHead {
    RequestHead {
        method: "GET".into(),
        scheme: "http".into(),
        authority: "a.example".into(),
        path: "/".into(),
        fields: Fields::new(),
    }
}

fn client(transport: Transport, hosts: usize) -> Client {
    let hosts = (0..hosts).map(|i| Host { name: format!("host{i}.example"), tls: false });
    Client::new(Config::new(transport), hosts.collect())
}

/// All that the client wants done, in order.
fn actions(client: &mut Client) -> Vec<Action> {
    std::iter::from_fn(|| client.poll_action()).collect()
}

/// The connections that the client wants opened.
fn connects(client: &mut Client) -> Vec<ConnectionId> {
    let opened = actions(client).into_iter().filter_map(|action| match action {
        Action::Connect { connection, .. } => Some(connection),
        _ => None,
    });
    opened.collect()
}

fn sent(client: &mut Client, connection: ConnectionId) -> String {
    let mut out = Vec::new();
    while let Some(chunk) = client.poll_transmit(Instant::ZERO, connection, u64::MAX) {
        let Chunk::Bytes(bytes) = chunk else { panic!("a request's head is bytes") };
        out.extend_from_slice(&bytes);
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Sends what is to be sent on a connection and answers it.
fn answer(client: &mut Client, now: Instant, connection: ConnectionId, more_fields: &str) {
    assert!(!sent(client, connection).is_empty(), "there is a request to answer on {connection}");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{more_fields}\r\n");
    client.handle_input(now, connection, Chunk::Bytes(Bytes::from(head)));
}

fn events(client: &mut Client) -> Vec<Event> {
    std::iter::from_fn(|| client.poll_event()).collect()
}

fn completed(client: &mut Client) -> Vec<RequestId> {
    let ended = events(client).into_iter().filter_map(|event| match event {
        Event::Complete { id } => Some(id),
        _ => None,
    });
    ended.collect()
}

/// A client of HTTP/1.1 with `requests` waiting at one host whose name is known.
fn waiting(requests: u32) -> Client {
    let mut client = client(Transport::Http1, 1);
    for id in 0..requests {
        client.fetch(at(0), id, 0, head(), 0, priority::IMAGE);
    }
    assert_eq!(actions(&mut client), [Action::Resolve { host: 0 }]);
    client.handle_resolved(at(10), 0, true);
    client
}

#[test]
fn a_name_is_looked_up_once_and_every_request_that_waited_says_so() {
    let mut client = client(Transport::Http1, 1);
    client.fetch(at(0), 0, 0, head(), 0, priority::IMAGE);
    client.fetch(at(4), 1, 0, head(), 0, priority::IMAGE);
    client.handle_resolved(at(10), 0, true);
    client.fetch(at(20), 2, 0, head(), 0, priority::IMAGE);
    assert_eq!(client.lookups(), 1);
    let dns = |id| client.request(id).unwrap().timing.dns;
    assert_eq!(dns(0), Some((at(0), at(10))));
    assert_eq!(dns(1), Some((at(4), at(10))));
    assert_eq!(dns(2), None);
}

#[test]
fn hosts_that_differ_only_in_scheme_share_a_look_up() {
    let named = |tls| Host { name: "a.example".into(), tls };
    let mut client = Client::new(Config::new(Transport::Http1), vec![named(false), named(true)]);
    client.fetch(at(0), 0, 0, head(), 0, priority::IMAGE);
    client.fetch(at(0), 1, 1, head(), 0, priority::IMAGE);
    assert_eq!(actions(&mut client), [Action::Resolve { host: 0 }]);
    client.handle_resolved(at(1), 0, true);
    assert_eq!(connects(&mut client), [0, 1]);
}

#[test]
fn a_name_without_an_address_fails_its_requests() {
    let mut client = client(Transport::Http1, 1);
    client.fetch(at(0), 0, 0, head(), 0, priority::IMAGE);
    client.handle_resolved(at(10), 0, false);
    assert_eq!(events(&mut client), [Event::Failed { id: 0, error: Error::NameNotResolved }]);
}

#[test]
fn http1_opens_a_connection_a_request_and_six_at_most() {
    assert_eq!(connects(&mut waiting(3)).len(), 3);
    assert_eq!(connects(&mut waiting(20)).len(), 6);
}

#[test]
fn sockets_are_bound_late_whichever_is_ready_first_takes_the_first_request() {
    let mut client = waiting(3);
    assert_eq!(connects(&mut client), [0, 1, 2]);
    client.handle_connected(at(50), 2);
    client.handle_connected(at(60), 0);
    assert_eq!(client.request(0).unwrap().connection, Some(2));
    assert_eq!(client.request(1).unwrap().connection, Some(0));
    assert_eq!(client.request(2).unwrap().connection, None);
    assert_eq!(client.request(0).unwrap().timing.connect, Some((at(10), at(50))));
}

#[test]
fn urgent_requests_overtake_those_that_wait_and_age_decides_among_equals() {
    let mut client = waiting(8);
    for connection in connects(&mut client) {
        client.handle_connected(at(50), connection);
    }
    client.fetch(at(60), 8, 0, head(), 0, priority::SCRIPT);
    answer(&mut client, at(70), 3, "");
    answer(&mut client, at(80), 4, "");
    assert_eq!(client.request(8).unwrap().connection, Some(3));
    assert_eq!(client.request(6).unwrap().connection, Some(4));
    assert_eq!(client.request(7).unwrap().connection, None);
}

#[test]
fn an_idle_connection_is_reused_the_most_recently_used_one_first() {
    let mut client = waiting(2);
    for connection in connects(&mut client) {
        client.handle_connected(at(50), connection);
    }
    answer(&mut client, at(60), 1, "");
    answer(&mut client, at(70), 0, "");
    assert_eq!(completed(&mut client), [1, 0]);
    client.fetch(at(80), 2, 0, head(), 0, priority::IMAGE);
    assert_eq!(client.request(2).unwrap().connection, Some(0));
    assert_eq!(client.request(2).unwrap().timing.connect, None, "it waited for no connection");
    assert!(actions(&mut client).is_empty());
}

#[test]
fn a_response_that_ends_its_connection_makes_room_for_another() {
    let mut client = waiting(7);
    for connection in connects(&mut client) {
        client.handle_connected(at(50), connection);
    }
    answer(&mut client, at(60), 0, "Connection: close\r\n");
    let expected =
        [Action::Close { connection: 0 }, Action::Connect { connection: 6, host: 0, resume: false }];
    assert_eq!(actions(&mut client), expected);
}

#[test]
fn a_request_on_a_reused_connection_that_was_dead_is_sent_again_once() {
    let mut client = waiting(1);
    connects(&mut client);
    client.handle_connected(at(50), 0);
    answer(&mut client, at(60), 0, "");
    assert_eq!(completed(&mut client), [0]);
    client.fetch(at(70), 1, 0, head(), 0, priority::IMAGE);
    sent(&mut client, 0);
    client.handle_eof(at(80), 0);
    assert_eq!(events(&mut client), []);
    assert_eq!(connects(&mut client), [1]);
    client.handle_connected(at(90), 1);
    assert_eq!(client.request(1).unwrap().attempts, 2);
    sent(&mut client, 1);
    client.handle_failed(at(95), 1, "reset");
    assert_eq!(events(&mut client), [Event::Failed { id: 1, error: Error::ConnectionLost("reset".into()) }]);
}

#[test]
fn a_request_on_a_fresh_connection_that_dies_fails() {
    let mut client = waiting(1);
    connects(&mut client);
    client.handle_connected(at(50), 0);
    sent(&mut client, 0);
    client.handle_failed(at(60), 0, "reset");
    assert_eq!(events(&mut client), [Event::Failed { id: 0, error: Error::ConnectionLost("reset".into()) }]);
}

#[test]
fn a_connection_that_cannot_be_made_fails_the_one_request_it_was_opened_for() {
    let mut client = waiting(2);
    connects(&mut client);
    client.handle_failed(at(60), 0, "refused");
    let refused = |id| Event::Failed { id, error: Error::NotConnected("refused".into()) };
    assert_eq!(events(&mut client), [refused(0)]);
    assert_eq!(connects(&mut client), [], "one connection is under way for the one that still waits");
    client.handle_failed(at(60), 1, "refused");
    assert_eq!(events(&mut client), [refused(1)]);
}

#[test]
fn a_session_that_cannot_be_made_fails_all_that_wait_for_it() {
    let mut client = client(Transport::Spdy(spdy::Version::V3_1), 1);
    (0..3).for_each(|id| client.fetch(at(0), id, 0, head(), 0, priority::IMAGE));
    client.handle_resolved(at(1), 0, true);
    connects(&mut client);
    client.handle_failed(at(60), 0, "timed out");
    assert_eq!(events(&mut client).len(), 3);
    assert_eq!(connects(&mut client), []);
}

#[test]
fn at_the_limit_on_all_connections_the_longest_idle_one_of_another_host_goes() {
    let config = Config { connections_max: 2, ..Config::new(Transport::Http1) };
    let hosts = (0..3).map(|i| Host { name: format!("host{i}.example"), tls: false });
    let mut client = Client::new(config, hosts.collect());
    for host in 0..2 {
        client.fetch(at(0), host, host, head(), 0, priority::IMAGE);
        client.handle_resolved(at(1), host, true);
        client.handle_connected(at(2), host);
        answer(&mut client, at(3 + u64::from(host)), host, "");
    }
    actions(&mut client);
    client.fetch(at(10), 2, 2, head(), 0, priority::IMAGE);
    client.handle_resolved(at(11), 2, true);
    let asked = actions(&mut client);
    assert_eq!(
        asked[1..],
        [Action::Close { connection: 0 }, Action::Connect { connection: 2, host: 2, resume: false }]
    );
}

#[test]
fn a_malformed_response_fails_its_request_and_closes_the_connection() {
    let mut client = waiting(1);
    connects(&mut client);
    client.handle_connected(at(50), 0);
    sent(&mut client, 0);
    client.handle_input(at(60), 0, Chunk::Bytes(Bytes::from_static(b"SSH-2.0-x\r\n\r\n")));
    assert!(matches!(events(&mut client)[..], [Event::Failed { id: 0, error: Error::Protocol(_) }]));
    assert_eq!(actions(&mut client), [Action::Close { connection: 0 }]);
}

#[test]
fn spdy_opens_one_session_a_host_and_requests_share_it() {
    let mut client = client(Transport::Spdy(spdy::Version::V3_1), 1);
    for id in 0..20 {
        client.fetch(at(0), id, 0, head(), 0, priority::IMAGE);
    }
    client.handle_resolved(at(10), 0, true);
    assert_eq!(connects(&mut client), [0]);
    client.handle_connected(at(50), 0);
    assert!((0..20).all(|id| client.request(id).unwrap().connection == Some(0)));
    assert_eq!(client.poll_dirty(), Some(0));
}

#[test]
fn a_second_handshake_with_a_host_may_resume_the_first_ones_session() {
    let hosts = vec![Host { name: "a.example".into(), tls: true }];
    let mut client = Client::new(Config::new(Transport::Http1), hosts);
    client.fetch(at(0), 0, 0, head(), 0, priority::IMAGE);
    client.handle_resolved(at(1), 0, true);
    client.handle_connected(at(2), 0);
    client.fetch(at(2), 1, 0, head(), 0, priority::IMAGE);
    client.handle_secured(at(3), 0);
    client.fetch(at(4), 2, 0, head(), 0, priority::IMAGE);
    let resumed = actions(&mut client).into_iter().filter_map(|action| match action {
        Action::Connect { resume, .. } => Some(resume),
        _ => None,
    });
    assert_eq!(resumed.collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(client.request(0).unwrap().timing.tls, Some((at(2), at(3))));
}

#[test]
fn transports_are_asked_for_by_name() {
    for transport in Transport::ALL {
        assert_eq!(transport.name().parse(), Ok(transport));
    }
    let unknown = "spdy4".parse::<Transport>().unwrap_err();
    assert_eq!(unknown.to_string(), "unknown transport 'spdy4'; known are http1, spdy2, spdy3, spdy3.1");
}

#[test]
fn a_host_stalled_by_the_limit_goes_on_as_soon_as_another_hosts_connection_is_idle() {
    let config = Config { connections_max: 1, ..Config::new(Transport::Http1) };
    let hosts = (0..3).map(|i| Host { name: format!("host{i}.example"), tls: false });
    let mut client = Client::new(config, hosts.collect());
    for (host, priority) in [(0, priority::IMAGE), (1, priority::IMAGE), (2, priority::SCRIPT)] {
        client.fetch(at(0), host, host, head(), 0, priority);
        client.handle_resolved(at(1), host, true);
    }
    assert_eq!(connects(&mut client), [0]);
    client.handle_connected(at(2), 0);
    answer(&mut client, at(3), 0, "");
    let expected =
        [Action::Close { connection: 0 }, Action::Connect { connection: 1, host: 2, resume: false }];
    assert_eq!(actions(&mut client), expected, "the more urgent request's host goes first");
    client.handle_connected(at(4), 1);
    answer(&mut client, at(5), 1, "");
    assert_eq!(connects(&mut client), [2]);
}

#[test]
fn an_address_needs_no_look_up() {
    let hosts = ["10.0.0.1", "[::1]"].map(|name| Host { name: name.into(), tls: false });
    let mut client = Client::new(Config::new(Transport::Http1), hosts.into());
    client.fetch(at(0), 0, 0, head(), 0, priority::IMAGE);
    client.fetch(at(0), 1, 1, head(), 0, priority::IMAGE);
    assert_eq!(connects(&mut client), [0, 1]);
    assert_eq!(client.lookups(), 0);
}

#[test]
fn connections_are_to_be_served_in_the_order_in_which_they_got_something_to_send() {
    let mut client = waiting(3);
    for connection in connects(&mut client) {
        client.handle_connected(at(50), connection);
    }
    assert_eq!([client.poll_dirty(), client.poll_dirty(), client.poll_dirty()], [Some(0), Some(1), Some(2)]);
}

#[test]
fn a_request_that_waited_for_a_busy_connection_did_not_wait_for_it_to_connect() {
    let mut client = waiting(7);
    for connection in connects(&mut client) {
        client.handle_connected(at(50), connection);
    }
    answer(&mut client, at(80), 0, "");
    assert_eq!(client.request(0).unwrap().timing.connect, Some((at(10), at(50))));
    assert_eq!(client.request(6).unwrap().timing.sent, Some(at(80)));
    assert_eq!(client.request(6).unwrap().timing.connect, None);
}

#[test]
fn a_connection_that_lay_idle_unused_counts_as_a_reused_one() {
    let mut client = waiting(2);
    connects(&mut client);
    client.handle_connected(at(50), 0);
    answer(&mut client, at(60), 0, "");
    answer(&mut client, at(65), 0, "");
    assert_eq!(completed(&mut client), [0, 1]);
    client.handle_connected(at(70), 1); // bound late: its request has gone out on the first
    assert!(sent(&mut client, 1).is_empty());
    client.fetch(at(90), 2, 0, head(), 0, priority::IMAGE);
    assert_eq!(client.request(2).unwrap().connection, Some(1));
    client.handle_eof(at(95), 1);
    assert_eq!(events(&mut client), [], "it is sent again");
    assert_eq!(client.request(2).unwrap().connection, Some(0));
}

/// A client of SPDY whose session with a real server is ready, `requests` of it on their way.
fn session(requests: u32, config: spdy::Config) -> (Client, spdy::Session) {
    let transport = Transport::Spdy(config.version);
    let mut client = client(transport, 1);
    for id in 0..requests {
        client.fetch(at(0), id, 0, head(), 0, priority::IMAGE);
    }
    client.handle_resolved(at(1), 0, true);
    assert_eq!(connects(&mut client), [0]);
    client.handle_connected(at(2), 0);
    (client, spdy::Session::server(config))
}

/// Carries to and fro between connection `id` and its server until both are silent.
fn carry(client: &mut Client, id: ConnectionId, server: &mut spdy::Session) {
    loop {
        let up = client.poll_transmit(at(3), id, u64::MAX);
        let down = if up.is_none() { server.poll_transmit(at(3), u64::MAX) } else { None };
        match (up, down) {
            (Some(chunk), _) => server.handle_input(at(3), chunk).unwrap(),
            (None, Some(chunk)) => client.handle_input(at(3), id, chunk),
            (None, None) => return,
        }
    }
}

#[test]
fn streams_that_a_server_refuses_are_asked_for_again_when_there_is_room() {
    let config = spdy::Config { max_concurrent_streams: 2, ..spdy::Config::chrome_2013(spdy::Version::V3_1) };
    let (mut client, mut server) = session(5, config);
    carry(&mut client, 0, &mut server);
    let mut asked = Vec::new();
    while let Some(event) = server.poll_event() {
        let spdy::Event::Request { id, .. } = event else { continue };
        asked.push(id.as_u32());
        let head = ResponseHead { status: 200, fields: Fields::new() };
        server.respond(id, &head, true).unwrap();
        carry(&mut client, 0, &mut server);
    }
    assert_eq!(completed(&mut client), [0, 1, 2, 3, 4], "in the order in which they were made");
    assert_eq!(asked, [1, 3, 11, 13, 15], "5, 7 and 9 were refused");
}

#[test]
fn requests_that_a_session_going_away_returns_go_out_on_the_next_one_in_their_order() {
    let (mut client, mut server) = session(4, spdy::Config::chrome_2013(spdy::Version::V3_1));
    server.goaway();
    carry(&mut client, 0, &mut server);
    assert_eq!(events(&mut client), []);
    let next = Action::Connect { connection: 1, host: 0, resume: false };
    assert_eq!(actions(&mut client), [Action::Close { connection: 0 }, next]);
    client.handle_connected(at(9), 1);
    let mut server = spdy::Session::server(spdy::Config::chrome_2013(spdy::Version::V3_1));
    carry(&mut client, 1, &mut server);
    let requests =
        std::iter::from_fn(|| server.poll_event()).filter(|e| matches!(e, spdy::Event::Request { .. }));
    assert_eq!(requests.count(), 4);
    assert!((0..4).all(|id| client.request(id).unwrap().attempts == 2));
}

#[test]
fn whatever_the_limit_and_the_course_of_connections_every_request_is_answered() {
    for seed in 0..300 {
        let mut rng = base::Rng::new(seed);
        let connections_max = 1 + rng.below(4) as usize;
        let config = Config { connections_max, ..Config::new(Transport::Http1) };
        let hosts = (0..4).map(|i| Host { name: format!("host{i}.example"), tls: false });
        let mut client = Client::new(config, hosts.collect());
        let (mut made, mut done, mut names, mut connecting, mut open) = (0, 0, vec![], vec![], vec![]);
        for step in 0.. {
            assert!(step < 10_000, "seed {seed}: {done} of {made} requests answered, and nothing goes on");
            for action in actions(&mut client) {
                match action {
                    Action::Resolve { host } => names.push(host),
                    Action::Connect { connection, .. } => connecting.push(connection),
                    Action::Close { connection } => open.retain(|c| *c != connection),
                }
            }
            assert!(connecting.len() + open.len() <= connections_max, "seed {seed}");
            done += completed(&mut client).len();
            if done == 40 {
                break;
            }
            let now = at(step);
            match rng.below(4) {
                0 if made < 40 => {
                    client.fetch(now, made, rng.below(4) as u32, head(), 0, rng.below(4) as u8);
                    made += 1;
                }
                1 if !names.is_empty() => client.handle_resolved(now, names.remove(0), true),
                2 if !connecting.is_empty() => {
                    let id = connecting.remove(rng.below(connecting.len() as u64) as usize);
                    open.push(id);
                    client.handle_connected(now, id);
                }
                _ if !open.is_empty() => {
                    let id = open[rng.below(open.len() as u64) as usize];
                    if !sent(&mut client, id).is_empty() {
                        let answer = Bytes::from_static(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                        client.handle_input(now, id, Chunk::Bytes(answer));
                    }
                }
                _ => {}
            }
        }
    }
}
