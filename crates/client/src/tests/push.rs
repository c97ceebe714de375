//! Pushes that meet the requests they answer, and those that do not.

use super::*;

/// A session that was asked for `/` (request 0), and the server, whose stream that is.
pub(super) fn asked(config: spdy::Config) -> (Client, spdy::Session, spdy::StreamId) {
    let mut client = client(Transport::Spdy(config.version), 1);
    client.config.spdy = config.clone();
    client.fetch(at(0), 0, 0, head(), 0, priority::DOCUMENT);
    client.handle_resolved(at(1), 0, true);
    client.handle_connected(at(2), 0);
    let mut server = spdy::Session::server(config);
    carry(&mut client, 0, &mut server);
    let stream = std::iter::from_fn(|| server.poll_event()).find_map(|e| match e {
        spdy::Event::Request { id, .. } => Some(id),
        _ => None,
    });
    (client, server, stream.expect("a request"))
}

pub(super) fn config() -> spdy::Config {
    spdy::Config::chrome_2013(spdy::Version::V3_1)
}

fn style() -> RequestHead {
    RequestHead { path: "/style.css".into(), ..head() }
}

pub(super) fn ok() -> ResponseHead {
    ResponseHead { status: 200, fields: Fields::new() }
}

/// Pushes the style sheet, `len` bytes of it, all if `fin`.
fn push(server: &mut spdy::Session, with: spdy::StreamId, len: u64, fin: bool) -> spdy::StreamId {
    let pushed = server.push(with, &style(), &ok(), spdy::Priority::new(1)).expect("it may be pushed");
    server.send(pushed, base::BodyRange { source: 0, start: 0, len }.into(), fin).expect("it is open");
    pushed
}

/// What the page is told of a request, and the bytes of its body.
fn told(client: &mut Client, request: RequestId) -> (Vec<&'static str>, u64) {
    let (mut what, mut bytes) = (Vec::new(), 0);
    for event in events(client) {
        match event {
            Event::Head { id, .. } if id == request => what.push("head"),
            Event::Data { id, chunk } if id == request => bytes += chunk.len(),
            Event::Complete { id } if id == request => what.push("complete"),
            _ => {}
        }
    }
    (what, bytes)
}

/// SPDY/3.1 §3.3.2.
#[test]
fn a_request_for_what_was_pushed_is_answered_at_once_and_nothing_is_sent() {
    let (mut client, mut server, root) = asked(config());
    push(&mut server, root, 1_000, true);
    carry(&mut client, 0, &mut server);
    assert_eq!(told(&mut client, 1), (vec![], 0), "nobody has asked");
    client.fetch(at(9), 1, 0, style(), 0, priority::SCRIPT);
    assert_eq!(told(&mut client, 1), (vec!["head", "complete"], 1_000));
    carry(&mut client, 0, &mut server);
    let asked = std::iter::from_fn(|| server.poll_event()).any(|e| matches!(e, spdy::Event::Request { .. }));
    assert!(!asked, "the server hears of no request");
    let timing = client.request(1).unwrap().timing;
    assert_eq!((timing.sent, timing.head, timing.complete), (Some(at(9)), Some(at(9)), Some(at(9))));
    // It answers the first who asks, and no other.
    client.fetch(at(10), 2, 0, style(), 0, priority::SCRIPT);
    carry(&mut client, 0, &mut server);
    let asked = std::iter::from_fn(|| server.poll_event()).any(|e| matches!(e, spdy::Event::Request { .. }));
    assert!(asked);
}

#[test]
fn a_request_for_what_is_being_pushed_gets_what_is_here_and_then_the_rest() {
    let (mut client, mut server, root) = asked(config());
    let pushed = push(&mut server, root, 1_000, false);
    carry(&mut client, 0, &mut server);
    client.fetch(at(9), 1, 0, style(), 0, priority::SCRIPT);
    assert_eq!(told(&mut client, 1), (vec!["head"], 1_000));
    server.send(pushed, base::BodyRange { source: 0, start: 1_000, len: 500 }.into(), true).unwrap();
    carry(&mut client, 0, &mut server);
    assert_eq!(told(&mut client, 1), (vec!["complete"], 500));
}

#[test]
fn a_push_that_the_server_takes_back_fails_who_waits_for_it_and_nobody_else() {
    for asks in [false, true] {
        let (mut client, mut server, root) = asked(config());
        let pushed = push(&mut server, root, 1_000, false);
        carry(&mut client, 0, &mut server);
        let fetch = |client: &mut Client| client.fetch(at(9), 1, 0, style(), 0, priority::SCRIPT);
        if asks {
            fetch(&mut client);
        }
        server.reset(pushed, spdy::Status::INTERNAL_ERROR);
        carry(&mut client, 0, &mut server);
        let failed = events(&mut client).iter().any(|e| matches!(e, Event::Failed { .. }));
        assert_eq!(failed, asks);
        if !asks {
            fetch(&mut client);
            carry(&mut client, 0, &mut server);
            let mut heard = std::iter::from_fn(|| server.poll_event());
            assert!(
                heard.any(|e| matches!(e, spdy::Event::Request { .. })),
                "it is asked for like any other"
            );
        }
    }
}

/// §2.6.8: credit is for what was read.
#[test]
fn what_nobody_has_asked_for_fills_its_window_until_somebody_does() {
    let (mut client, mut server, root) = asked(spdy::Config::chrome_2012(spdy::Version::V3));
    let pushed = push(&mut server, root, 200_000, true);
    carry(&mut client, 0, &mut server);
    assert_eq!(server.queued(pushed), 200_000 - 65_536);
    client.fetch(at(9), 1, 0, style(), 0, priority::SCRIPT);
    carry(&mut client, 0, &mut server);
    assert_eq!(told(&mut client, 1), (vec!["head", "complete"], 200_000));
}

#[test]
fn a_second_push_of_the_same_is_cancelled() {
    let (mut client, mut server, root) = asked(config());
    push(&mut server, root, 1_000, true);
    let second = push(&mut server, root, 1_000_000, false);
    carry(&mut client, 0, &mut server);
    let reset = std::iter::from_fn(|| server.poll_event()).find_map(|e| match e {
        spdy::Event::Reset { id, status, .. } => Some((id, status)),
        _ => None,
    });
    assert_eq!(reset, Some((second, spdy::Status::CANCEL)));
}

/// SPDY/3 §2.6.4: kept for the next session of the same host, until the server clears it.
#[test]
fn what_a_server_has_the_client_keep_goes_to_its_next_session_and_to_no_other_host() {
    use spdy::frame::Setting;
    let (mut client, mut server, _) = asked(config());
    assert_eq!(client.kept_settings(0), []);
    server.persist(Setting::CURRENT_CWND, 30);
    carry(&mut client, 0, &mut server);
    let kept = [Setting { id: Setting::CURRENT_CWND, flags: Setting::PERSISTED, value: 30 }];
    assert_eq!(client.kept_settings(0), kept);

    let mut next = super::client(Transport::Spdy(spdy::Version::V3_1), 2);
    next.config.spdy = config();
    next.set_kept_settings(0, kept.to_vec());
    for host in [0, 1] {
        next.fetch(at(0), host, host, head(), 0, priority::DOCUMENT);
        next.handle_resolved(at(1), host, true);
        next.handle_connected(at(2), host);
        let mut server = spdy::Session::server(config());
        carry(&mut next, host, &mut server);
        let brought = std::iter::from_fn(|| server.poll_event()).find_map(|e| match e {
            spdy::Event::Settings(entries) => Some(entries.iter().filter(|s| kept.contains(s)).count()),
            _ => None,
        });
        assert_eq!(brought, Some(1 - host as usize));
    }
    assert_eq!(next.kept_settings(0), kept, "it is kept on");
}
