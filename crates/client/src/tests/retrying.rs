//! What is done about answers that do not come.

use super::*;
use base::BodyRange;

fn trying(retry: Retry) -> Client {
    let config = Config { retry, ..Config::new(Transport::Http1) };
    Client::new(config, vec![Host { name: "a.example".into(), tls: false }])
}

/// A client whose request 0, of `priority`, is on its way on connection 0.
fn sent_once(retry: Retry, priority: Priority) -> Client {
    let mut client = trying(retry);
    client.fetch(at(0), 0, 0, head(), 0, priority);
    client.handle_resolved(at(0), 0, true);
    assert_eq!(connects(&mut client), [0]);
    client.handle_connected(at(10), 0);
    assert!(!sent(&mut client, 0).is_empty());
    client
}

fn input(client: &mut Client, now: Instant, connection: ConnectionId, head: &str, body: Option<(u64, u64)>) {
    client.handle_input(now, connection, Chunk::Bytes(Bytes::from(head.to_owned())));
    if let Some((start, len)) = body {
        client.handle_input(now, connection, Chunk::Body(BodyRange { source: 0, start, len }));
    }
}

/// Lets connections that were asked for come about and requests go out on them.
fn connect(client: &mut Client, now: Instant) -> ConnectionId {
    let opened = connects(client);
    assert_eq!(opened.len(), 1);
    client.handle_connected(now, opened[0]);
    assert!(!sent(client, opened[0]).is_empty());
    opened[0]
}

#[test]
fn a_subresource_that_failed_is_sent_again_after_a_pause_that_doubles() {
    let mut client = sent_once(Retry::RELOADING, priority::IMAGE);
    client.handle_failed(at(20), 0, "reset");
    for (due, again) in [(270, 280), (780, 790), (1_790, 1_800)] {
        assert_eq!(events(&mut client), []);
        assert_eq!(client.poll_timeout(), Some(at(due)));
        client.handle_timeout(at(due));
        let connection = connect(&mut client, at(again - 5));
        client.handle_failed(at(again), connection, "reset");
    }
    let error = Error::ConnectionLost("reset".into());
    assert_eq!(events(&mut client), [Event::Failed { id: 0, error: error.clone() }]);
    assert_eq!(client.missing().collect::<Vec<_>>(), [(0, &error)]);
    assert_eq!(client.retries(), 3);
}

#[test]
fn all_retries_together_keep_to_the_budget() {
    let mut client = trying(Retry { budget: 2, ..Retry::RELOADING });
    (0..5).for_each(|id| client.fetch(at(0), id, 0, head(), 0, priority::IMAGE));
    client.handle_resolved(at(0), 0, true);
    for connection in connects(&mut client) {
        client.handle_failed(at(10), connection, "refused");
    }
    assert_eq!(events(&mut client).len(), 3);
    assert_eq!(client.retries(), 2);
}

#[test]
fn bystanders_of_a_session_that_breaks_cost_one_try_together_and_have_tries_left_while_anything_moves() {
    let config = Config {
        retry: Retry { budget: 6, ..Retry::RELOADING },
        ..Config::new(Transport::Spdy(spdy::Version::V3_1))
    };
    let mut client = Client::new(config, vec![Host { name: "a.example".into(), tls: false }]);
    (0..20).for_each(|id| client.fetch(at(0), id, 0, head(), 0, priority::IMAGE));
    client.handle_resolved(at(0), 0, true);
    let mut now = 0;
    for round in 0..6 {
        let opened = connects(&mut client);
        assert_eq!(opened.len(), 1, "round {round}");
        client.handle_connected(at(now), opened[0]);
        let mut server = spdy::Session::server(spdy::Config::chrome_2013(spdy::Version::V3_1));
        carry(&mut client, opened[0], &mut server);
        let asked = std::iter::from_fn(|| server.poll_event()).find_map(|event| match event {
            spdy::Event::Request { id, .. } => Some(id),
            _ => None,
        });
        let ok = ResponseHead { status: 200, fields: Fields::new() };
        server.respond(asked.expect("all are asked for again"), &ok, true).unwrap();
        carry(&mut client, opened[0], &mut server);
        client.handle_failed(at(now + 100), opened[0], "reset");
        now += 5_000;
        client.handle_timeout(at(now));
    }
    let told = events(&mut client);
    let whole = told.iter().filter(|event| matches!(event, Event::Complete { .. })).count();
    assert_eq!(
        (whole, client.retries()),
        (6, 6),
        "one a round, and none is given up as long as there is budget"
    );
    assert!(!told.iter().any(|event| matches!(event, Event::Failed { .. })));
}

#[test]
fn a_document_is_sent_again_only_if_asked_for_and_what_is_not_safe_to_repeat_never() {
    for (documents, fails) in [(false, 1), (true, 0)] {
        let mut client = sent_once(Retry { documents, ..Retry::RELOADING }, priority::DOCUMENT);
        client.handle_failed(at(20), 0, "reset");
        assert_eq!(events(&mut client).len(), fails);
    }
    let mut client = trying(Retry::RELOADING);
    let post = RequestHead { method: "POST".into(), ..head() };
    client.fetch(at(0), 0, 0, post, 0, priority::IMAGE);
    client.handle_resolved(at(0), 0, true);
    client.handle_failed(at(5), 0, "refused");
    assert_eq!(events(&mut client).len(), 1);
}

#[test]
fn a_name_that_was_not_found_is_looked_up_again() {
    let mut client = trying(Retry::RELOADING);
    client.fetch(at(0), 0, 0, head(), 0, priority::IMAGE);
    actions(&mut client);
    client.handle_resolved(at(10), 0, false);
    client.handle_timeout(at(260));
    assert_eq!(actions(&mut client), [Action::Resolve { host: 0 }]);
    client.handle_resolved(at(270), 0, true);
    assert_eq!(connects(&mut client), [0]);
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nETag: \"a\"\r\n\r\n";

/// A client whose answer was cut off after 60 of 100 bytes, and who has asked again on the connection returned.
fn cut_off() -> (Client, ConnectionId) {
    let mut client = sent_once(Retry::RELOADING, priority::IMAGE);
    input(&mut client, at(15), 0, HEAD, Some((0, 60)));
    assert_eq!(events(&mut client).len(), 2);
    client.handle_failed(at(20), 0, "reset");
    client.handle_timeout(at(270));
    let connection = connect(&mut client, at(280));
    (client, connection)
}

#[test]
fn a_body_that_was_cut_off_is_fetched_again_and_what_was_delivered_is_skipped() {
    let (mut client, connection) = cut_off();
    input(&mut client, at(290), connection, HEAD, Some((0, 100)));
    let rest = BodyRange { source: 0, start: 60, len: 40 };
    let told = events(&mut client);
    assert_eq!(told, [Event::Data { id: 0, chunk: Chunk::Body(rest) }, Event::Complete { id: 0 }]);
    assert_eq!(client.request(0).unwrap().timing.head, Some(at(15)), "the page had it then");
}

const IN_PARTS: &str =
    "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nETag: \"a\"\r\nAccept-Ranges: bytes\r\n\r\n";

/// A client whose answer was cut off after 60 of 100 bytes of `head`, and what it asks for then.
fn asked_again(head: &str) -> (Client, ConnectionId, String) {
    let mut client = sent_once(Retry::RELOADING, priority::IMAGE);
    input(&mut client, at(15), 0, head, Some((0, 60)));
    assert_eq!(events(&mut client).len(), 2);
    client.handle_failed(at(20), 0, "reset");
    client.handle_timeout(at(270));
    let opened = connects(&mut client);
    client.handle_connected(at(280), opened[0]);
    let request = sent(&mut client, opened[0]);
    (client, opened[0], request)
}

/// RFC 9110 §13.1.5, §14.2.
#[test]
fn what_is_missing_alone_is_asked_for_where_the_server_takes_ranges_and_names_a_version() {
    let (mut client, connection, request) = asked_again(IN_PARTS);
    assert!(request.contains("Range: bytes=60-\r\nIf-Range: \"a\"\r\n"), "{request}");
    let part = "HTTP/1.1 206 Partial Content\r\nContent-Length: 40\r\nETag: \"a\"\r\nContent-Range: bytes 60-99/100\r\n\r\n";
    input(&mut client, at(290), connection, part, Some((60, 40)));
    let rest = BodyRange { source: 0, start: 60, len: 40 };
    assert_eq!(
        events(&mut client),
        [Event::Data { id: 0, chunk: Chunk::Body(rest) }, Event::Complete { id: 0 }]
    );
    for head in [HEAD, &IN_PARTS.replace("\"a\"", "W/\"a\"")] {
        let (.., request) = asked_again(head);
        assert!(!request.contains("Range:"), "{request}");
    }
}

#[test]
fn a_range_that_is_ignored_is_skipped_and_one_that_was_not_asked_for_is_refused() {
    let (mut client, connection, _) = asked_again(IN_PARTS);
    input(&mut client, at(290), connection, IN_PARTS, Some((0, 100)));
    let rest = BodyRange { source: 0, start: 60, len: 40 };
    assert_eq!(
        events(&mut client),
        [Event::Data { id: 0, chunk: Chunk::Body(rest) }, Event::Complete { id: 0 }]
    );
    let (mut client, connection, _) = asked_again(IN_PARTS);
    let other = "HTTP/1.1 206 Partial Content\r\nContent-Length: 50\r\nETag: \"a\"\r\nContent-Range: bytes 50-99/100\r\n\r\n";
    input(&mut client, at(290), connection, other, Some((50, 50)));
    assert_eq!(events(&mut client), [Event::Failed { id: 0, error: Error::Changed("content-range") }]);
}

#[test]
fn another_run_of_the_application_goes_on_from_what_the_first_one_had() {
    let mut first = sent_once(Retry::RELOADING, priority::IMAGE);
    input(&mut first, at(15), 0, IN_PARTS, Some((0, 60)));
    let Some(Left::Answer(known)) = first.leaves(0) else { panic!("a plain answer to a GET") };
    assert_eq!((known.body_len, known.whole), (60, false));
    let mut second = trying(Retry::RELOADING);
    second.ask(at(0), 0, Ask { resume: Some(known), ..Ask::new(0, head(), priority::IMAGE) });
    second.handle_resolved(at(0), 0, true);
    assert_eq!(connects(&mut second), [0]);
    second.handle_connected(at(10), 0);
    assert!(sent(&mut second, 0).contains("Range: bytes=60-"));
    let mut first = sent_once(Retry::RELOADING, priority::IMAGE);
    let secret = IN_PARTS.replace("ETag", "Cache-Control: private, no-store\r\nETag");
    input(&mut first, at(15), 0, &secret, Some((0, 60)));
    assert_eq!(first.leaves(0), None, "RFC 9111 §5.2.2.5");
    let mut first = trying(Retry::RELOADING);
    first.fetch(at(0), 0, 0, RequestHead { method: "POST".into(), ..head() }, 0, priority::IMAGE);
    first.handle_resolved(at(0), 0, true);
    assert_eq!(first.leaves(0), None, "it may still be sent");
    assert_eq!(connects(&mut first), [0]);
    first.handle_connected(at(10), 0);
    assert!(!sent(&mut first, 0).is_empty());
    assert_eq!(first.leaves(0), Some(Left::Sent), "and now it may not, as it may have been applied");
    let mut browser = sent_once(Retry::CHROME, priority::IMAGE);
    input(&mut browser, at(15), 0, IN_PARTS, Some((0, 60)));
    assert_eq!(browser.leaves(0), None);
}

/// RFC 9110 §9.2.2.
#[test]
fn a_post_that_may_have_been_applied_is_not_replayed_on_a_stale_connection_and_chrome_replays_it() {
    for (rule, fails) in [(Retry::CHROME, 0), (Retry::RELOADING, 1)] {
        let mut client = sent_once(rule, priority::IMAGE);
        input(&mut client, at(20), 0, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", None);
        events(&mut client);
        client.fetch(at(1_000), 1, 0, RequestHead { method: "POST".into(), ..head() }, 0, priority::IMAGE);
        assert!(!sent(&mut client, 0).is_empty(), "on the idle connection");
        client.handle_failed(at(1_001), 0, "reset");
        assert_eq!(events(&mut client).len(), fails, "{rule:?}");
    }
}

#[test]
fn a_host_that_cannot_be_reached_time_after_time_is_given_up_with_all_that_waits_for_it() {
    let mut client = trying(Retry::RELOADING);
    (0..20).for_each(|id| client.fetch(at(0), id, 0, head(), 0, priority::IMAGE));
    client.handle_resolved(at(0), 0, true);
    let mut now = 0;
    for round in 0..4 {
        now += 10_000;
        let opened = connects(&mut client);
        assert!(!opened.is_empty(), "round {round}");
        opened.into_iter().for_each(|connection| client.handle_failed(at(now), connection, "no answer"));
        client.handle_timeout(at(now + 1_000));
    }
    let failed: Vec<_> = events(&mut client);
    assert_eq!(failed.len(), 20, "those that were never tried too");
    assert!(failed.iter().all(|e| matches!(e, Event::Failed { error: Error::NotConnected(_), .. })));
    client.fetch(at(now + 2_000), 20, 0, head(), 0, priority::IMAGE);
    assert_eq!(events(&mut client).len(), 1);
    client.handle_network_change(at(now + 3_000));
    client.fetch(at(now + 4_000), 21, 0, head(), 0, priority::IMAGE);
    client.handle_resolved(at(now + 4_000), 0, true);
    assert_eq!(connects(&mut client).len(), 1, "it may be reached from there");
}

#[test]
fn what_befell_a_request_is_kept_though_it_came_in_the_end() {
    let mut client = sent_once(Retry::RELOADING, priority::IMAGE);
    client.handle_failed(at(20), 0, "reset");
    client.handle_timeout(at(270));
    let opened = connects(&mut client);
    client.handle_failed(at(280), opened[0], "refused");
    let failures = &client.request(0).unwrap().failures;
    let told: Vec<_> = failures.iter().map(|f| (f.at, f.connection, f.error.to_string())).collect();
    assert_eq!(told[0], (at(20), Some(0), "connection lost: reset".to_owned()));
    assert_eq!(told[1], (at(280), None, "not connected: refused".to_owned()));
}

#[test]
fn answers_that_a_change_of_networks_cut_off_are_resumed_at_once_and_cost_no_budget() {
    let mut client = sent_once(Retry { budget: 0, ..Retry::RELOADING }, priority::IMAGE);
    input(&mut client, at(15), 0, IN_PARTS, Some((0, 60)));
    assert_eq!(events(&mut client).len(), 2);
    client.handle_network_change(at(20));
    assert_eq!(events(&mut client), []);
    client.handle_resolved(at(30), 0, true);
    let opened = connects(&mut client);
    client.handle_connected(at(40), opened[0]);
    assert!(sent(&mut client, opened[0]).contains("Range: bytes=60-"));
}

#[test]
fn connections_of_a_network_that_was_left_are_given_up_though_they_are_in_use_if_so_asked() {
    let mut client = sent_once(Retry::RELOADING, priority::IMAGE);
    client.handle_network_change(at(20));
    assert_eq!(actions(&mut client), [Action::Close { connection: 0 }, Action::Resolve { host: 0 }]);
    assert_eq!(events(&mut client), [], "it waits for the name");
}

#[test]
fn an_answer_that_has_changed_in_between_is_not_put_together_from_two() {
    let (mut client, connection) = cut_off();
    let other = HEAD.replace("\"a\"", "\"b\"");
    input(&mut client, at(290), connection, &other, Some((0, 100)));
    assert_eq!(events(&mut client), [Event::Failed { id: 0, error: Error::Changed("etag") }]);
}

#[test]
fn chrome_fails_what_died_unsent_on_a_fresh_connection_and_firefox_sends_it_again() {
    for (rule, fails) in [(Retry::CHROME, 1), (Retry::FIREFOX, 0)] {
        let mut client = trying(rule);
        client.fetch(at(0), 0, 0, head(), 0, priority::IMAGE);
        client.handle_resolved(at(0), 0, true);
        client.handle_connected(at(10), 0);
        client.handle_failed(at(11), 0, "reset"); // before anything was taken to be sent
        assert_eq!(events(&mut client).len(), fails, "{rule:?}");
    }
}

/// A client whose request 1 went out at 1000 ms on a connection that had answered request 0.
fn reused(retry: Retry) -> Client {
    let mut client = sent_once(retry, priority::IMAGE);
    input(&mut client, at(20), 0, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", None);
    assert_eq!(completed(&mut client), [0]);
    client.fetch(at(1_000), 1, 0, head(), 0, priority::IMAGE);
    assert!(!sent(&mut client, 0).is_empty());
    client
}

const TIMED_OUT: &str = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

#[test]
fn a_408_within_a_second_on_a_reused_connection_is_not_the_requests() {
    let mut client = reused(Retry::FIREFOX);
    input(&mut client, at(1_999), 0, TIMED_OUT, None);
    assert_eq!(events(&mut client), []);
    connect(&mut client, at(2_010));
    assert_eq!(client.request(1).unwrap().attempts, 2);
}

#[test]
fn a_408_after_a_second_or_on_a_fresh_connection_or_with_chrome_is_an_answer() {
    let mut late = reused(Retry::FIREFOX);
    input(&mut late, at(2_000), 0, TIMED_OUT, None);
    assert_eq!(completed(&mut late), [1]);
    let mut fresh = sent_once(Retry::FIREFOX, priority::IMAGE);
    input(&mut fresh, at(20), 0, TIMED_OUT, None);
    assert_eq!(completed(&mut fresh), [0]);
    let mut chrome = reused(Retry::CHROME);
    input(&mut chrome, at(1_010), 0, TIMED_OUT, None);
    assert_eq!(completed(&mut chrome), [1]);
}

#[test]
fn when_the_network_changes_idle_connections_and_those_being_made_are_closed_and_those_in_use_left() {
    let mut client = trying(Retry::CHROME);
    (0..3).for_each(|id| client.fetch(at(0), id, 0, head(), 0, priority::IMAGE));
    client.handle_resolved(at(0), 0, true);
    assert_eq!(connects(&mut client), [0, 1, 2]);
    client.handle_connected(at(10), 0);
    client.handle_connected(at(10), 1);
    answer(&mut client, at(20), 0, "");
    answer(&mut client, at(21), 1, "");
    client.fetch(at(30), 3, 0, head(), 0, priority::IMAGE); // on connection 1
    answer(&mut client, at(31), 0, "");
    client.handle_network_change(at(40));
    assert_eq!(actions(&mut client), [Action::Close { connection: 0 }, Action::Close { connection: 2 }]);
    client.fetch(at(50), 4, 0, head(), 0, priority::IMAGE);
    assert_eq!(actions(&mut client), [Action::Resolve { host: 0 }], "names may have other addresses here");
}

#[test]
fn when_the_network_changes_sessions_go_away_and_unanswered_requests_are_sent_again() {
    let (mut client, mut server) = session(2, spdy::Config::chrome_2013(spdy::Version::V3_1));
    carry(&mut client, 0, &mut server);
    let first = std::iter::from_fn(|| server.poll_event()).find_map(|e| match e {
        spdy::Event::Request { id, .. } => Some(id),
        _ => None,
    });
    let ok = ResponseHead { status: 200, fields: Fields::new() };
    server.respond(first.unwrap(), &ok, false).unwrap();
    carry(&mut client, 0, &mut server);
    assert_eq!(events(&mut client).len(), 1);
    client.handle_network_change(at(10));
    assert_eq!(events(&mut client), [Event::Failed { id: 0, error: Error::NetworkChanged }]);
    assert_eq!(actions(&mut client), [Action::Close { connection: 0 }, Action::Resolve { host: 0 }]);
    client.handle_resolved(at(20), 0, true);
    client.handle_connected(at(30), 1);
    assert_eq!(client.request(1).unwrap().attempts, 2);
}
