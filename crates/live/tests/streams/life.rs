//! How connections begin and end.

use std::io::{Read, Write};
use std::net::SocketAddr;

use base::{Duration, Fields};
use bytes::Bytes;
use live::streams::{Config, Connection, Error, Event};
use spdy::Opening;

use crate::common::*;
use crate::echo::{Caller, Echo, config};

#[test]
fn a_peer_that_vanishes_is_an_error_if_streams_were_open() {
    for streams in [0, 3] {
        let peer = Peer::serving(move |mut tcp| {
            read_head(&mut tcp);
            tcp.write_all(GRANT.as_bytes()).unwrap();
            if streams > 0 {
                assert_ne!(tcp.read(&mut [0; 1]).unwrap(), 0);
            }
        });
        let mut host = host();
        let log = Log::default();
        let told = log.clone();
        host.connect(
            request(peer.address),
            &[peer.address],
            None,
            config(),
            on(move |event, connection: &mut Connection| {
                told.borrow_mut().push(event.clone());
                if let Event::Granted { .. } = event {
                    for _ in 0..streams {
                        connection.open(&Fields::new(), Opening::default()).unwrap();
                    }
                }
            }),
        );
        until_over(&mut host, 1);
        peer.join();
        let end = log.borrow().last().cloned();
        let expected = match (streams, &end) {
            (0, Some(Event::Closed(Ok(())))) => true,
            // It may have closed with our frames unread, which TCP tells by a reset.
            (3, Some(Event::Closed(Err(Error::Interrupted(3) | Error::Transport(_))))) => true,
            _ => false,
        };
        assert!(expected, "{streams}: {end:?}");
    }
}

#[test]
fn an_idle_connection_is_left_in_order_and_a_mute_peer_given_up() {
    let short = Some(Duration::from_millis(30));
    let idle = Config { idle: short, ping: Some(Duration::from_millis(5)), ..config() };
    let mut host = host();
    let address = listen(&mut host, &config(), || Actor::new(Echo::default()));
    let log = connect_and_log(&mut host, address, idle);
    until_over(&mut host, 2);
    assert_eq!(log.borrow().last(), Some(&Event::Closed(Ok(()))));
    let pongs = log.borrow().iter().filter(|event| matches!(event, Event::Pong { .. })).count();
    assert!(pongs > 0, "PINGs are answered, and keep nothing alive");

    let mute = Config { ping: Some(Duration::from_millis(5)), give_up: short, ..config() };
    let peer = Peer::serving(|mut tcp| {
        read_head(&mut tcp);
        tcp.write_all(GRANT.as_bytes()).unwrap();
        let mut heard = Vec::new();
        tcp.read_to_end(&mut heard).unwrap();
        assert_eq!(heard[..8], [0x80, 3, 0, 6, 0, 0, 0, 4], "a PING");
    });
    let log = connect_and_log(&mut host, peer.address, mute);
    until_over(&mut host, 1);
    peer.join();
    assert_eq!(log.borrow().last(), Some(&Event::Closed(Err(Error::Unresponsive))));
}

#[test]
fn a_peer_that_does_not_finish_the_handshake_is_left() {
    let config = Config { handshake: Duration::from_millis(50), ..config() };
    let peer = Peer::serving(|mut tcp| {
        read_head(&mut tcp);
        assert_eq!(tcp.read(&mut [0; 1]).unwrap(), 0, "the client leaves");
    });
    let mut host = host();
    let log = connect_and_log(&mut host, peer.address, config.clone());
    let of_server = Log::default();
    let served = of_server.clone();
    let address = listen(&mut host, &config, move || logger(served.clone()));
    let caller = Peer::calling(address, |mut tcp| {
        tcp.write_all(b"GET / HT").unwrap();
        assert_eq!(tcp.read(&mut [0; 1]).unwrap(), 0, "the server leaves");
    });
    until_over(&mut host, 2);
    peer.join();
    caller.join();
    let late = Event::Closed(Err(Error::Timeout("the upgrade to SPDY")));
    assert_eq!((log.borrow().last(), of_server.borrow().last()), (Some(&late), Some(&late)));
}

#[test]
fn the_next_address_is_tried_when_one_takes_no_connection() {
    let nobody: SocketAddr = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let mut host = host();
    let address = listen(&mut host, &config(), || Actor::new(Echo::default()));
    let caller = Caller::new(vec![Bytes::from_static(b"here")]);
    host.connect(request(nobody), &[nobody, address], None, config(), Actor::new(caller));
    let over = until_over(&mut host, 2);
    let caller = over.into_iter().find_map(Actor::into::<Caller>).unwrap();
    assert_eq!(caller.streams[0].back, b"here");
    let log = connect_and_log(&mut host, nobody, config());
    until_over(&mut host, 1);
    let end = log.borrow().last().cloned();
    assert!(matches!(&end, Some(Event::Closed(Err(Error::Transport(_))))), "{end:?}");
}

#[test]
fn connections_beyond_the_limit_wait_for_a_place() {
    let mut host = host();
    let handler = || Actor::new(Echo::default());
    let local = "127.0.0.1:0".parse().unwrap();
    let address = host.listen(local, None, config(), 3, move |_| handler()).unwrap();
    for i in 0..8 {
        let caller = Caller::new(vec![pattern(1_000 * i)]);
        host.connect(request(address), &[address], None, config(), Actor::new(caller));
    }
    let over = until_over(&mut host, 16);
    let callers: Vec<Caller> = over.into_iter().filter_map(Actor::into::<Caller>).collect();
    assert_eq!(callers.len(), 8);
    for caller in &callers {
        assert!(caller.streams[0].back == caller.bodies[0]);
    }
}

/// spdystream closes so: it says that it goes, and does not read what we still say, which TCP tells by a reset.
#[test]
fn a_reset_behind_goaway_is_no_error() {
    let peer = Peer::serving(|mut tcp| {
        read_head(&mut tcp);
        tcp.write_all(GRANT.as_bytes()).unwrap();
        assert_ne!(tcp.peek(&mut [0; 1]).unwrap(), 0, "the client opens a stream, which stays unread");
        tcp.write_all(&[0x80, 3, 0, 7, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    });
    let mut host = host();
    let log = Log::default();
    let told = log.clone();
    let opens = on(move |event, connection: &mut Connection| {
        told.borrow_mut().push(event.clone());
        if let Event::Granted { .. } = event {
            connection.open(&Fields::new(), Opening::default()).unwrap();
        }
    });
    host.connect(request(peer.address), &[peer.address], None, config(), opens);
    until_over(&mut host, 1);
    peer.join();
    let log = log.borrow();
    assert!(
        matches!(log[..], [Event::Granted { .. }, Event::GoingAway { .. }, Event::Closed(Ok(()))]),
        "{log:?}"
    );
}

#[test]
fn a_host_that_is_closed_takes_leave_of_everybody_and_lets_nobody_in() {
    let mut host = host();
    let of_server = Log::default();
    let told = of_server.clone();
    let address =
        listen(&mut host, &config(), move || Actor::new(Echo { log: told.clone(), ..Echo::default() }));
    let logs: Vec<Log> = (0..3).map(|_| connect_and_log(&mut host, address, config())).collect();
    let is_granted = |log: &Log| matches!(log.borrow().first(), Some(Event::Granted { .. }));
    until(&mut host, |_, _| (logs.iter().all(is_granted), None));
    host.close();
    let late =
        connect_and_log(&mut host, address, Config { handshake: Duration::from_millis(50), ..config() });
    until_over(&mut host, 7);
    assert!(host.is_empty());
    for log in &logs {
        assert_eq!(log.borrow().last(), Some(&Event::Closed(Ok(()))));
    }
    let closed = of_server.borrow().iter().filter(|event| **event == Event::Closed(Ok(()))).count();
    assert_eq!(closed, 3);
    let end = late.borrow().last().cloned();
    assert_eq!(end, Some(Event::Closed(Err(Error::Timeout("the upgrade to SPDY")))));
}
