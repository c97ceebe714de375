//! Pipelining: what goes where, and what becomes of a pipeline that fails.

use super::*;
use base::BodyRange;

/// Requests for images, so that they share a class.
fn image(path: &str) -> RequestHead {
    RequestHead { path: Bytes::from(format!("/{path}.png")), ..head() }
}

fn piped(state: HostState, per_host: usize) -> Client {
    let config = Config {
        pipelining: Some(Pipelining::FIREFOX),
        connections_per_host: per_host,
        ..Config::new(Transport::Http1)
    };
    let mut client = Client::new(config, vec![Host { name: "10.0.0.1".into(), tls: false }]);
    client.set_pipelining(0, state);
    client
}

fn ok(fields: &str, len: u64) -> Chunk {
    Chunk::Bytes(Bytes::from(format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n{fields}\r\n")))
}

/// A client with one connection per host that has answered request 0 at 20 ms and is idle, 10 ms away.
fn warm(state: HostState) -> Client {
    let mut client = piped(state, 1);
    client.fetch(at(0), 0, 0, image("0"), 0, priority::IMAGE);
    assert_eq!(connects(&mut client), [0]);
    client.handle_connected(at(10), 0);
    sent(&mut client, 0);
    client.handle_input(at(20), 0, ok("", 0));
    assert_eq!(completed(&mut client), [0]);
    client
}

/// The same, with requests 1 to `n` made at 30 ms.
fn deep(state: HostState, n: u32) -> Client {
    let mut client = warm(state);
    (1..=n).for_each(|id| client.fetch(at(30), id, 0, image(&id.to_string()), 0, priority::IMAGE));
    client
}

fn under_way(client: &Client, ids: std::ops::RangeInclusive<u32>) -> Vec<RequestId> {
    ids.filter(|id| client.request(*id).unwrap().timing.sent.is_some()).collect()
}

#[test]
fn nothing_is_pipelined_unless_it_is_switched_on() {
    let mut client = deep(HostState::green(), 1);
    client.config.pipelining = None;
    client.fetch(at(30), 2, 0, image("2"), 0, priority::IMAGE);
    assert_eq!(under_way(&client, 1..=2), [1]);
}

/// nsHttpConnection.cpp, Init: what its first answer says is not waited for.
#[test]
fn a_fresh_connection_is_trusted_as_far_as_its_host() {
    let mut red = HostState::green();
    red.hear(at(0), crate::pipeline::Feedback::BannedServer, Class::Image);
    let yellow = HostState::new();
    for (state, sent) in [(HostState::green(), 3), (yellow, 2), (red, 1)] {
        let mut client = piped(state, 1);
        (0..3).for_each(|id| client.fetch(at(0), id, 0, image("x"), 0, priority::IMAGE));
        connects(&mut client);
        client.handle_connected(at(10), 0);
        assert_eq!(under_way(&client, 0..=2).len(), sent);
    }
}

/// nsHttpConnectionMgr.cpp, IsUnderPressure: with all but two connections of a host busy a pipeline is joined, of the optimistic
/// depth; beyond that other ways are tried first.
#[test]
fn under_pressure_pipelines_of_four_are_joined_before_a_connection_is_opened() {
    let mut client = deep(HostState::green(), 4);
    client.config.connections_per_host = 3;
    assert!((1..=4).all(|id| client.request(id).unwrap().connection == Some(0)));
    client.fetch(at(30), 5, 0, image("5"), 0, priority::IMAGE);
    assert_eq!(connects(&mut client), [1], "the fifth has one opened for it");
    assert_eq!(client.request(5).unwrap().connection, None);
    assert!(!client.request(5).unwrap().queued);
}

#[test]
fn a_class_that_has_three_connections_joins_one_of_them() {
    let mut client = piped(HostState::green(), 8);
    (0..3).for_each(|id| client.fetch(at(0), id, 0, image("x"), 0, priority::IMAGE));
    assert_eq!(connects(&mut client), [0, 1, 2]);
    (0..3).for_each(|id| client.handle_connected(at(10), id));
    client.fetch(at(20), 3, 0, image("3"), 0, priority::IMAGE);
    assert_eq!(client.request(3).unwrap().sent_on, SentOn::Pipelined);
    client.fetch(at(20), 4, 0, RequestHead { path: "/feed".into(), ..head() }, 0, priority::SUBRESOURCE);
    assert_eq!(connects(&mut client), [3], "another class has none yet");
}

#[test]
fn without_pressure_an_idle_connection_goes_before_a_pipeline_and_the_shortest_pipeline_is_joined() {
    let mut client = piped(HostState::green(), 8);
    let script = || RequestHead { path: "/a.js".into(), ..head() };
    (0..2).for_each(|id| client.fetch(at(0), id, 0, script(), 0, priority::SCRIPT));
    connects(&mut client);
    (0..2).for_each(|id| client.handle_connected(at(10), id));
    answer(&mut client, at(20), 1, "");
    client.fetch(at(30), 2, 0, script(), 0, priority::SCRIPT);
    assert_eq!(
        (client.request(2).unwrap().connection, client.request(2).unwrap().sent_on),
        (Some(1), SentOn::Idle)
    );
    (3..5).for_each(|id| client.fetch(at(30), id, 0, script(), 0, priority::SCRIPT));
    assert_eq!([3, 4].map(|id| client.request(id).unwrap().connection), [Some(0), Some(1)]);
}

#[test]
fn a_request_is_queued_if_it_waits_for_a_connection_in_use_and_not_if_one_is_made_for_it() {
    let mut client = client(Transport::Http1, 1);
    (0..8).for_each(|id| client.fetch(at(0), id, 0, head(), 0, priority::IMAGE));
    client.handle_resolved(at(5), 0, true);
    client.fetch(at(6), 8, 0, head(), 0, priority::SCRIPT);
    let queued = |client: &Client| (0..=8).map(|id| client.request(id).unwrap().queued).collect::<Vec<_>>();
    assert_eq!(queued(&client), [false, false, false, false, false, false, true, true, false]);
    connects(&mut client);
    client.fetch(at(6), 9, 0, head(), 0, priority::PREFETCH);
    assert!(client.request(9).unwrap().queued);
}

#[test]
fn a_yellow_host_gets_one_trial_of_two_and_is_green_when_that_went_well() {
    let mut client = deep(HostState::new(), 4);
    assert_eq!(under_way(&client, 1..=4), [1, 2]);
    sent(&mut client, 0);
    client.handle_input(at(50), 0, ok("", 0));
    assert_eq!(under_way(&client, 1..=4), [1, 2], "until it is over");
    client.handle_input(at(51), 0, ok("", 0));
    assert_eq!(client.pipelining(0).standing(), Standing::Green);
    assert_eq!(under_way(&client, 1..=4), [1, 2, 3, 4]);
    assert_eq!(client.request(4).unwrap().sent_on, SentOn::Pipelined);
}

#[test]
fn a_green_host_has_pipelines_of_six_and_a_good_answer_from_the_third_place_lifts_that_to_32() {
    let mut client = deep(HostState::green(), 60);
    assert_eq!(
        under_way(&client, 1..=60).len(),
        6,
        "four because connections are scarce, then all others failed"
    );
    sent(&mut client, 0);
    for _ in 0..3 {
        client.handle_input(at(50), 0, ok("", 0));
    }
    assert_eq!(completed(&mut client), [1, 2, 3]);
    assert_eq!(under_way(&client, 4..=60).len(), 32);
}

#[test]
fn classes_do_not_mix_and_solo_goes_alone() {
    let mut client = deep(HostState::green(), 1);
    let script = RequestHead { path: "/a.js".into(), ..head() };
    client.fetch(at(30), 2, 0, script, 0, priority::SCRIPT);
    let post = RequestHead { method: "POST".into(), ..image("p") };
    client.fetch(at(30), 3, 0, post, 0, priority::IMAGE);
    client.fetch(at(30), 4, 0, image("d"), 0, priority::DOCUMENT);
    client.ask(at(30), 5, Ask { class: Some(Class::Solo), ..Ask::new(0, image("xhr"), priority::IMAGE) });
    client.fetch(at(30), 6, 0, image("6"), 0, priority::IMAGE);
    assert_eq!(under_way(&client, 1..=6), [1, 6]);
}

#[test]
fn with_connections_to_spare_a_new_one_is_opened_before_a_pipeline_is_joined() {
    let mut client = piped(HostState::green(), 6);
    client.fetch(at(0), 0, 0, image("0"), 0, priority::IMAGE);
    connects(&mut client);
    client.handle_connected(at(10), 0);
    answer(&mut client, at(20), 0, "");
    client.fetch(at(30), 1, 0, image("1"), 0, priority::IMAGE);
    client.fetch(at(30), 2, 0, image("2"), 0, priority::IMAGE);
    assert_eq!(connects(&mut client), [1]);
    assert_eq!(client.request(2).unwrap().connection, None);
}

#[test]
fn scripts_join_a_pipeline_rather_than_wait_for_a_new_connection() {
    let mut client = piped(HostState::green(), 6);
    let script = |path: &'static str| RequestHead { path: path.into(), ..head() };
    client.fetch(at(0), 0, 0, script("/0.js"), 0, priority::SCRIPT);
    connects(&mut client);
    client.handle_connected(at(10), 0);
    answer(&mut client, at(20), 0, "");
    client.fetch(at(30), 1, 0, script("/1.js"), 0, priority::SCRIPT);
    client.fetch(at(30), 2, 0, script("/2.js"), 0, priority::SCRIPT);
    assert_eq!(connects(&mut client), []);
    assert_eq!(client.request(2).unwrap().sent_on, SentOn::Pipelined);
}

#[test]
fn while_scripts_of_the_head_are_under_way_other_requests_of_the_load_wait() {
    let mut client = piped(HostState::green(), 6);
    let script = RequestHead { path: "/0.js".into(), ..head() };
    client.ask(at(0), 0, Ask { blocks: true, ..Ask::new(0, script, priority::SCRIPT) });
    client.fetch(at(0), 1, 0, image("1"), 0, priority::IMAGE);
    client.ask(at(0), 2, Ask { load: 1, ..Ask::new(0, image("2"), priority::IMAGE) });
    assert_eq!(connects(&mut client).len(), 2, "one for the script and one for the other load");
    client.handle_connected(at(10), 0);
    client.handle_connected(at(10), 1);
    assert_eq!(under_way(&client, 0..=2), [0, 2]);
    answer(&mut client, at(20), 0, "");
    assert_eq!(client.request(1).unwrap().connection, Some(0));
}

#[test]
fn a_revalidation_that_brings_a_body_lets_no_more_revalidations_behind_it() {
    let revalidation = |path: &'static str| {
        let mut fields = Fields::new();
        fields.push("If-None-Match", "\"a\"");
        RequestHead { path: path.into(), fields, ..head() }
    };
    for (first, joins) in
        [("HTTP/1.1 304 Not Modified\r\n\r\n", true), ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", false)]
    {
        let mut client = piped(HostState::green(), 1);
        client.fetch(at(0), 0, 0, revalidation("/0"), 0, priority::IMAGE);
        connects(&mut client);
        client.handle_connected(at(10), 0);
        answer(&mut client, at(20), 0, "");
        client.fetch(at(30), 1, 0, revalidation("/1"), 0, priority::IMAGE);
        client.fetch(at(30), 2, 0, revalidation("/2"), 0, priority::IMAGE);
        sent(&mut client, 0);
        client.handle_input(at(40), 0, Chunk::Bytes(Bytes::from_static(first.as_bytes())));
        client.fetch(at(50), 3, 0, revalidation("/3"), 0, priority::IMAGE);
        assert_eq!(client.request(3).unwrap().timing.sent.is_some(), joins);
    }
}

#[test]
fn after_1500_ms_of_silence_what_waits_behind_the_first_is_sent_elsewhere_unpipelined() {
    let mut client = deep(HostState::green(), 3);
    client.config.connections_per_host = 4;
    sent(&mut client, 0);
    assert_eq!(client.poll_timeout(), Some(at(1_530)));
    client.handle_timeout(at(1_530));
    assert_eq!(connects(&mut client).len(), 2);
    assert_eq!(events(&mut client), []);
    assert_eq!((client.pipelining(0).standing(), client.pipelining(0).penalty()), (Standing::Red, 60));
    for connection in 1..3 {
        client.handle_connected(at(1_540), connection);
    }
    client.handle_input(at(1_600), 0, ok("", 0)); // the first is answered where it was
    assert_eq!(completed(&mut client), [1]);
    assert_eq!(
        actions(&mut client),
        [Action::Close { connection: 0 }],
        "the rest of what it brings is not read"
    );
    assert_eq!(under_way(&client, 1..=3), [1, 2, 3]);
    assert!((2..=3).all(|id| client.request(id).unwrap().sent_on == SentOn::Fresh));
}

#[test]
fn after_30_s_of_silence_the_first_is_given_up_too_and_sent_again() {
    let mut client = deep(HostState::green(), 2);
    sent(&mut client, 0);
    client.handle_timeout(at(1_530));
    assert_eq!(client.poll_timeout(), Some(at(30_030)));
    client.handle_timeout(at(30_030));
    assert_eq!(actions(&mut client)[0], Action::Close { connection: 0 });
    assert_eq!(events(&mut client), []);
    assert_eq!(client.requests.iter().flatten().filter(|r| r.done).count(), 1);
}

/// nsHttpConnection.cpp, Activate: a pipeline that is fed is not a pipeline that answers.
#[test]
fn what_joins_a_pipeline_does_not_begin_its_silence_anew() {
    let mut client = deep(HostState::green(), 2);
    sent(&mut client, 0);
    client.fetch(at(1_000), 3, 0, image("3"), 0, priority::IMAGE);
    assert_eq!(client.request(3).unwrap().sent_on, SentOn::Pipelined);
    assert_eq!(client.poll_timeout(), Some(at(1_530)));
}

/// nsHttpTransaction.cpp, Close: what was pipelined and is begun again is feedback too, or a server that answers one request a
/// connection would pass its trial.
#[test]
fn a_trial_whose_second_request_is_dropped_has_failed() {
    let mut client = deep(HostState::new(), 2);
    sent(&mut client, 0);
    client.handle_input(at(50), 0, ok("", 0));
    client.handle_eof(at(51), 0);
    assert_eq!((client.pipelining(0).standing(), client.pipelining(0).penalty()), (Standing::Red, 60));
    assert_eq!(completed(&mut client), [1]);
    assert_eq!(connects(&mut client), [1], "for the second");
}

#[test]
fn slow_reads_cost_their_class_five_or_25_and_cancel() {
    // The round trip is 10 ms: 400 ms beyond it are suffered, 1500 ms beyond two are too many.
    for (silence, penalty) in [(410, 0), (411, 5), (1_519, 5), (1_520, 25)] {
        let mut client = deep(HostState::green(), 1);
        sent(&mut client, 0);
        client.handle_input(at(30 + silence), 0, Chunk::Bytes(Bytes::from_static(b"H")));
        assert_eq!(client.pipelining(0).class_penalty(Class::Image), penalty, "{silence} ms");
    }
    let mut client = deep(HostState::green(), 2);
    sent(&mut client, 0);
    client.handle_input(at(30 + 1_520), 0, Chunk::Bytes(Bytes::from_static(b"H")));
    assert_eq!(client.request(2).unwrap().connection, Some(0), "it waits for another connection");
    assert_eq!(client.pools[0].waiting.len(), 1);
}

#[test]
fn an_answer_beyond_300_000_bytes_lets_nothing_wait_behind_it() {
    for (len, cancelled) in [(300_000, false), (300_001, true)] {
        let mut client = deep(HostState::green(), 2);
        sent(&mut client, 0);
        client.handle_input(at(40), 0, ok("", len));
        assert_eq!(!client.pools[0].waiting.is_empty(), cancelled, "{len}");
        let owed = if cancelled { 119 } else { 0 }; // of 120, its own good head has paid one
        assert!(client.pipelining(0).class_penalty(Class::Image).abs_diff(owed) <= 1);
    }
}

#[test]
fn an_answer_of_unknown_length_is_large_once_more_than_300_000_bytes_have_come() {
    let mut client = deep(HostState::green(), 2);
    sent(&mut client, 0);
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n49400\r\n"; // 300,032
    client.handle_input(at(40), 0, Chunk::Bytes(Bytes::from_static(head.as_bytes())));
    client.handle_input(at(41), 0, Chunk::Bytes(Bytes::from(vec![b'x'; 300_000])));
    assert!(client.pools[0].waiting.is_empty());
    client.handle_input(at(42), 0, Chunk::Bytes(Bytes::from_static(b"x")));
    assert_eq!(client.pools[0].waiting.len(), 1);
    assert_eq!(client.pipelining(0).class_penalty(Class::Image), 120);
}

/// nsHttpConnection.cpp, SupportsPipelining: by how the field begins.
#[test]
fn servers_that_are_known_to_fail_are_banned_by_name() {
    let banned = [
        "EFAServer/1",
        "Microsoft-IIS/4.0",
        "Microsoft-IIS/5.1",
        "Netscape-Enterprise/3.6",
        "Netscape-Enterprise/4.1",
        "Netscape-Enterprise/5.0",
        "Netscape-Enterprise/6.0",
        "WebLogic 3.1",
        "WebLogic 4.0",
        "WebLogic 5.1",
        "WebLogic 6.1",
        "Winstone Servlet Engine v0.9",
    ];
    let sound =
        ["Microsoft-IIS/6.0", "Apache", "Netscape-Enterprise/2.0", "WebLogic Server 7.0", "my EFAServer/1"];
    for (server, penalty) in banned.iter().map(|s| (s, 7_000)).chain(sound.iter().map(|s| (s, 0))) {
        let mut client = deep(HostState::green(), 1);
        sent(&mut client, 0);
        client.handle_input(at(40), 0, ok(&format!("Server: {server}\r\n"), 0));
        assert_eq!(client.pipelining(0).penalty(), penalty, "{server}");
    }
}

#[test]
fn a_body_cut_off_in_a_pipeline_is_fetched_again_and_what_was_delivered_is_skipped() {
    let mut client = deep(HostState::green(), 2);
    sent(&mut client, 0);
    client.handle_input(at(40), 0, ok("", 100));
    let body = |start, len| Chunk::Body(BodyRange { source: 1, start, len });
    client.handle_input(at(41), 0, body(0, 60));
    assert_eq!(events(&mut client).len(), 2);
    client.handle_failed(at(50), 0, "reset");
    assert_eq!(events(&mut client), [], "nobody has lost anything");
    assert_eq!(client.pipelining(0).penalty(), 7_060, "corrupt, and cancelled");
    let again = connects(&mut client);
    client.handle_connected(at(60), again[0]);
    sent(&mut client, again[0]);
    client.handle_input(at(70), again[0], ok("", 100));
    client.handle_input(at(71), again[0], body(0, 100));
    assert_eq!(events(&mut client), [Event::Data { id: 1, chunk: body(60, 40) }, Event::Complete { id: 1 }]);
    assert_eq!(client.request(2).unwrap().connection, Some(again[0]));
}

#[test]
fn nonsense_in_a_pipeline_makes_the_host_red_and_its_requests_go_again() {
    let mut client = deep(HostState::green(), 2);
    sent(&mut client, 0);
    client.handle_input(at(40), 0, Chunk::Bytes(Bytes::from_static(b"\xffx\r\n\r\n")));
    assert_eq!(events(&mut client), []);
    assert_eq!((client.pipelining(0).standing(), client.pipelining(0).penalty()), (Standing::Red, 7_060));
    assert_eq!(connects(&mut client).len(), 1);
}

#[test]
fn an_old_version_a_banned_server_an_unframed_answer_and_an_unannounced_close_cost_their_price() {
    let answers = [
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", 1_000, 0),
        ("HTTP/1.1 200 OK\r\nServer: Microsoft-IIS/5.0\r\nContent-Length: 0\r\n\r\n", 7_000, 0),
        ("HTTP/1.1 200 OK\r\nServer: Microsoft-IIS/6.0\r\nContent-Length: 0\r\n\r\n", 0, 0),
        ("HTTP/1.1 200 OK\r\n\r\n", 0, 7_000),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 0, 250),
    ];
    for (answer, host, class) in answers {
        let mut client = deep(HostState::green(), 1);
        sent(&mut client, 0);
        client.handle_input(at(40), 0, Chunk::Bytes(Bytes::from_static(answer.as_bytes())));
        let state = client.pipelining(0);
        assert_eq!((state.penalty(), state.class_penalty(Class::Image)), (host, class), "{answer}");
    }
}

#[test]
fn a_script_of_the_head_that_fails_as_it_is_asked_for_holds_nobody_up() {
    let config = Config { pipelining: Some(Pipelining::FIREFOX), ..Config::new(Transport::Http1) };
    let hosts = ["gone.example", "10.0.0.1"].map(|name| Host { name: name.into(), tls: false });
    let mut client = Client::new(config, hosts.into());
    client.ask(at(0), 0, Ask { blocks: true, ..Ask::new(0, image("0"), priority::SCRIPT) });
    client.fetch(at(0), 1, 1, image("1"), 0, priority::IMAGE);
    client.handle_resolved(at(1), 0, false);
    assert_eq!(connects(&mut client), [0]);
    client.ask(at(2), 2, Ask { blocks: true, ..Ask::new(0, image("2"), priority::SCRIPT) });
    client.fetch(at(2), 3, 1, image("3"), 0, priority::IMAGE);
    assert_eq!(connects(&mut client), [1]);
}

/// nsHttpConnection.cpp: a session is never a pipeline, however many of its streams wait.
#[test]
fn the_streams_of_a_session_are_no_pipeline() {
    for pipelining in [None, Some(Pipelining::FIREFOX)] {
        let (mut client, mut server) = session(3, spdy::Config::chrome_2013(spdy::Version::V3_1));
        client.config.pipelining = pipelining;
        carry(&mut client, 0, &mut server);
        // Silence that would be the end of a pipeline, and of the patience with its server.
        while let Some(due) = client.poll_timeout().filter(|due| *due < at(60_000)) {
            client.handle_timeout(due);
        }
        let on_it =
            |client: &Client| (0..3).filter(|id| client.request(*id).unwrap().connection == Some(0)).count();
        assert_eq!((on_it(&client), connects(&mut client).len()), (3, 0));
        assert_eq!(client.pipelining(0), &HostState::default());
        // A SYN_REPLY that no inflater can read fails all streams, and nothing is sent again as if it had only shared a pipeline.
        let reply = b"\x80\x03\x00\x02\x00\x00\x00\x08\x00\x00\x00\x01\xff\xff\xff\xff";
        client.handle_input(at(60_000), 0, Chunk::Bytes(Bytes::from_static(reply)));
        let failed = events(&mut client).into_iter().filter(|e| matches!(e, Event::Failed { .. })).count();
        assert_eq!((failed, connects(&mut client).len()), (3, 0));
        assert_eq!(client.pipelining(0), &HostState::default());
    }
}
