//! What goes over streams, and comes back.

use std::cell::RefCell;
use std::rc::Rc;

use base::{Duration, Fields};
use bytes::Bytes;
use live::Reactor;
use live::streams::{Config, Connection, Event, Handler, SendError};
use spdy::{By, Opening, Status, StreamId};

use crate::common::*;
use crate::echo::{Caller, Echo, config, echoed, windowed};

#[test]
fn what_is_sent_comes_back_and_both_ends_close_in_order() {
    let (caller, of_server) = echoed(&config(), vec![Bytes::from_static(b"hello")]);
    assert_eq!(caller.streams[0].back, b"hello");
    let log = caller.log.borrow();
    assert!(
        matches!(&log[0], Event::Granted { head, protocol: Some(p) } if head.status == 101 && p == "test.velodrome")
    );
    let accepted = fields(&[("streamtype", "data"), ("number", "0")]);
    assert!(matches!(&log[1], Event::Accepted { fields, fin: false, .. } if *fields == accepted));
    assert_eq!(log.last(), Some(&Event::Closed(Ok(()))));
    let of_server = of_server.borrow();
    let Event::Asked { head, protocols } = &of_server[0] else { panic!("{:?}", of_server[0]) };
    assert_eq!((&head.method[..], &head.path[..]), (&b"POST"[..], &b"/path?a=b"[..]));
    assert_eq!(protocols, &["test.velodrome", "other"]);
    assert!(
        of_server.iter().any(|event| matches!(event, Event::GoingAway { .. })),
        "GOAWAY goes before the end"
    );
    assert_eq!(of_server.last(), Some(&Event::Closed(Ok(()))));
}

#[test]
fn megabytes_go_both_ways_with_and_without_flow_control() {
    for config in [config(), windowed()] {
        let body = pattern(4_000_000);
        let (caller, _) = echoed(&config, vec![body.clone()]);
        assert!(caller.streams[0].back == body, "{} bytes came back", caller.streams[0].back.len());
    }
}

#[test]
fn a_hundred_streams_at_once_keep_their_bytes_apart() {
    for config in [config(), windowed()] {
        let bodies: Vec<Bytes> = (0..100).map(|i| pattern(5_000 + 131 * i).slice(i..)).collect();
        let (caller, _) = echoed(&config, bodies.clone());
        assert_eq!(caller.streams.len(), 100);
        for (call, body) in caller.streams.iter().zip(&bodies) {
            assert!(call.back == *body, "stream {}", call.id);
        }
    }
}

/// Answers the first stream, which says nothing, with a body.
struct Answer {
    body: Bytes,
    id: Option<StreamId>,
}

impl Handler for Answer {
    fn event(&mut self, event: Event, connection: &mut Connection, _: &Reactor) {
        match event {
            Event::Asked { .. } => connection.grant(None).unwrap(),
            Event::Opened { id, opening, .. } => {
                assert!(opening.fin, "the client said all by opening it");
                connection.accept(id, &Fields::new(), false).unwrap();
                self.id = Some(id);
            }
            _ => {}
        }
    }

    fn pump(&mut self, connection: &mut Connection, _: &Reactor) -> bool {
        let Some(id) = self.id else { return false };
        let n = connection.room(id).min(self.body.len());
        if n > 0 {
            let part = self.body.split_to(n);
            connection.send(id, part, self.body.is_empty()).unwrap();
        }
        n > 0
    }
}

/// The client has nothing to say any more, and still hears all of the answer.
#[test]
fn half_a_stream_stays_open() {
    let mut host = host();
    let answer = pattern(300_000);
    let (log, expected) = (Log::default(), answer.clone());
    let address = listen(&mut host, &config(), move || Actor::new(Answer { body: answer.clone(), id: None }));
    let of_client = log.clone();
    host.connect(
        request(address),
        &[address],
        None,
        config(),
        on(move |event, connection: &mut Connection| {
            of_client.borrow_mut().push(event.clone());
            match event {
                Event::Granted { .. } => {
                    let opening = Opening { fin: true, ..Opening::default() };
                    connection.open(&Fields::new(), opening).unwrap();
                }
                Event::Data { id, bytes, fin } => {
                    connection.consume(id, bytes.len());
                    if fin {
                        connection.close();
                    }
                }
                _ => {}
            }
        }),
    );
    until_over(&mut host, 2);
    let log = log.borrow();
    let granted = matches!(&log[0], Event::Granted { protocol: None, .. });
    assert!(granted, "a server need not choose a protocol: {:?}", log[0]);
    assert!(data_of(&log) == expected);
}

#[test]
fn either_end_resets_a_stream_and_the_others_go_on() {
    let mut host = host();
    let (of_server, of_client) = (Log::default(), Log::default());
    let log = of_server.clone();
    let address = listen(&mut host, &config(), move || {
        let log = log.clone();
        on(move |event, connection: &mut Connection| {
            log.borrow_mut().push(event.clone());
            match event {
                Event::Asked { .. } => connection.grant(Some("test.velodrome")).unwrap(),
                Event::Opened { id, fields, .. } if fields.get_str("n") == Some("0") => {
                    connection.reset(id, Status::REFUSED_STREAM);
                }
                Event::Opened { id, .. } => {
                    connection.accept(id, &Fields::new(), false).unwrap();
                    connection.send(id, Bytes::from_static(b"welcome"), false).unwrap();
                }
                Event::Data { id, bytes, fin } => {
                    connection.consume(id, bytes.len());
                    connection.send(id, bytes, fin).unwrap();
                }
                _ => {}
            }
        })
    });
    let log = of_client.clone();
    let mut ids = Vec::new();
    host.connect(
        request(address),
        &[address],
        None,
        config(),
        on(move |event, connection: &mut Connection| {
            log.borrow_mut().push(event.clone());
            match event {
                Event::Granted { .. } => {
                    for n in ["0", "1", "2"] {
                        ids.push(connection.open(&fields(&[("n", n)]), Opening::default()).unwrap());
                    }
                }
                Event::Data { id, bytes, fin } => {
                    connection.consume(id, bytes.len());
                    if id == ids[1] {
                        connection.reset(id, Status::CANCEL);
                        connection.send(ids[2], Bytes::from_static(b"!"), true).unwrap();
                        let late = connection.send(id, Bytes::from_static(b"late"), true);
                        assert_eq!(late, Err(SendError::Stream(spdy::SendError::NotOpen)));
                    }
                    if fin {
                        connection.close();
                    }
                }
                _ => {}
            }
        }),
    );
    until_over(&mut host, 2);
    let resets = |log: &Log| {
        let log = log.borrow();
        let of = |event: &Event| match event {
            Event::Reset { id, status, by } => Some((id.as_u32(), *status, *by)),
            _ => None,
        };
        log.iter().filter_map(of).collect::<Vec<_>>()
    };
    assert_eq!(resets(&of_client), [(1, Status::REFUSED_STREAM, By::Peer)]);
    assert_eq!(resets(&of_server), [(3, Status::CANCEL, By::Peer)]);
    assert_eq!(of_client.borrow().last(), Some(&Event::Closed(Ok(()))));
}

#[test]
fn a_server_opens_streams_too() {
    let mut host = host();
    let log = Log::default();
    let of_server = log.clone();
    let address = listen(&mut host, &config(), move || {
        let log = of_server.clone();
        on(move |event, connection: &mut Connection| {
            log.borrow_mut().push(event.clone());
            match event {
                Event::Asked { .. } => {
                    connection.grant(None).unwrap();
                    connection.open(&fields(&[("from", "server")]), Opening::default()).unwrap();
                }
                Event::Data { bytes, fin: true, .. } => {
                    assert_eq!(bytes, "as you wish");
                    connection.close();
                }
                _ => {}
            }
        })
    });
    host.connect(
        request(address),
        &[address],
        None,
        config(),
        on(|event, connection: &mut Connection| {
            if let Event::Opened { id, fields, .. } = event {
                assert_eq!((id.as_u32(), fields.get_str("from")), (2, Some("server")));
                connection.accept(id, &Fields::new(), false).unwrap();
                connection.send(id, Bytes::from_static(b"as you wish"), true).unwrap();
            }
        }),
    );
    until_over(&mut host, 2);
    assert!(log.borrow().iter().any(|event| matches!(event, Event::Accepted { .. })));
    assert_eq!(log.borrow().last(), Some(&Event::Closed(Ok(()))));
}

/// Nothing is consumed, so reading stops; then all is, and everything arrives.
#[test]
fn what_waits_is_bounded_at_both_ends_and_goes_on_when_it_is_read() {
    let mut host = host();
    let blocked = Rc::new(RefCell::new(true));
    let config = Config { unread: 100_000, queue: 30_000, ..config() };
    let held = Rc::new(RefCell::new(0));
    let of_server = (blocked.clone(), held.clone());
    let address = listen(&mut host, &config, move || {
        let (blocked, held_max) = of_server.clone();
        Actor::new(Echo { blocked, held_max, ..Echo::default() })
    });
    // More than the kernel's buffers take on loopback.
    let body = pattern(24_000_000);
    let caller = Caller::new(vec![body.clone(), Bytes::from_static(b"x")]);
    let log = caller.log.clone();
    host.connect(request(address), &[address], None, config, Actor::new(caller));
    let (mut before, mut still) = (0, 0);
    let over = until(&mut host, |host, over| {
        let now = *held.borrow();
        still = if now == before { still + 1 } else { 0 };
        before = now;
        // The server has stopped reading, and the client got no further for a while.
        if now > 0 && still == 100 {
            *blocked.borrow_mut() = false;
        }
        let nudge = host.reactor().now() + Duration::from_micros(100);
        (over == 2, Some(nudge))
    });
    let caller = over.into_iter().find_map(Actor::into::<Caller>).unwrap();
    let held = *held.borrow();
    assert!((100_000..100_000 + 65_536).contains(&held), "the server held {held} bytes");
    assert!(caller.streams[0].back == body);
    assert_eq!(caller.streams[1].back, b"x");
    assert_eq!(log.borrow().last(), Some(&Event::Closed(Ok(()))));
}

#[test]
fn more_than_there_is_room_for_is_not_taken() {
    let mut host = host();
    let config = Config { queue: 1_000, ..config() };
    let address = listen(&mut host, &config, || Actor::new(Echo::default()));
    let seen = Rc::new(RefCell::new(Vec::new()));
    let tried = seen.clone();
    host.connect(
        request(address),
        &[address],
        None,
        config,
        on(move |event, connection: &mut Connection| match event {
            Event::Granted { .. } => {
                connection.open(&Fields::new(), Opening::default()).unwrap();
            }
            Event::Accepted { id, .. } => {
                let mut tried = tried.borrow_mut();
                tried.push((connection.room(id), connection.send(id, pattern(1_001), false)));
                tried.push((connection.room(id), connection.send(id, pattern(999), false)));
                tried.push((connection.room(id), connection.send(id, pattern(2), true)));
                connection.close();
                tried.push((connection.room(id), Ok(())));
            }
            _ => {}
        }),
    );
    until_over(&mut host, 2);
    let full = Err(SendError::Full);
    assert_eq!(*seen.borrow(), [(1_000, full), (1_000, Ok(())), (1, full), (0, Ok(()))]);
}

#[cfg(feature = "tls")]
#[test]
fn the_same_goes_over_tls() {
    use live::tls::{Acceptor, ClientConfig, Common, Connector, Identity, ServerConfig, Trust};
    let common = Common::new(["http/1.1"]);
    let identity = Identity::self_signed(&["127.0.0.1".into()]).unwrap();
    let acceptor =
        Acceptor::new(&ServerConfig { common: common.clone(), identity, tickets: true, ocsp: None }).unwrap();
    let trust = Trust::Anybody;
    let connector = Connector::new(&ClientConfig { common, trust, false_start: false, ocsp: false }).unwrap();
    let mut host = host();
    let local = "127.0.0.1:0".parse().unwrap();
    let welcome = |_| Actor::new(Echo::default());
    let address = host.listen(local, Some(acceptor), config(), 8, welcome).unwrap();
    let body = pattern(400_000);
    let mut request = request(address);
    request.url.set_scheme("https").unwrap();
    let caller = Actor::new(Caller::new(vec![body.clone()]));
    host.connect(request.clone(), &[address], Some(connector), config(), caller);
    let over = until_over(&mut host, 2);
    let caller = over.into_iter().find_map(Actor::into::<Caller>).unwrap();
    assert!(caller.streams[0].back == body);

    let log = Log::default();
    host.connect(request, &[address], None, config(), logger(log.clone()));
    until_over(&mut host, 1);
    let end =
        Event::Closed(Err(live::streams::Error::Transport("an https URL needs a TLS connector".into())));
    assert_eq!(*log.borrow(), [end]);
}
