//! Peers that mean no good: what they say is bounded, and costs their own connection at most.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::rc::Rc;

use base::{Chunk, Fields, Instant};
use bytes::Bytes;
use live::streams::{Connection, Error, Event};
use spdy::{By, Misbehaviour, Opening, Session, Status};

use crate::common::*;
use crate::echo::config;

#[test]
fn garbage_after_the_upgrade_ends_with_goaway_at_either_end() {
    let bad_block = [&[0x80, 3, 0, 1, 0, 0, 0, 18, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], b"not zlib"].concat();
    let cases = [
        // A SYN_STREAM too short for its id, one that says it is huge, PING of version 2, DATA on stream 0, and a block.
        vec![0x80, 3, 0, 1, 0, 0, 0, 1, 0],
        vec![0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff, 0, 0, 0, 1],
        vec![0x80, 2, 0, 6, 0, 0, 0, 4],
        vec![0, 0, 0, 0, 0, 0, 0, 1, 0],
        bad_block,
    ];
    for garbage in cases {
        let again = garbage.clone();
        let mut host = host();
        let peer = Peer::serving(move |mut tcp| {
            read_head(&mut tcp);
            tcp.write_all(GRANT.as_bytes()).unwrap();
            tcp.write_all(&garbage).unwrap();
            let mut rest = Vec::new();
            tcp.read_to_end(&mut rest).unwrap();
            assert_eq!(goaway_at_end(&rest), Some(1), "{rest:?}");
        });
        let log = connect_and_log(&mut host, peer.address, config());
        let of_server = Log::default();
        let served = of_server.clone();
        let address = listen(&mut host, &config(), move || {
            let log = served.clone();
            on(move |event, connection: &mut Connection| {
                log.borrow_mut().push(event.clone());
                if let Event::Asked { .. } = event {
                    connection.grant(None).unwrap();
                }
            })
        });
        let caller = Peer::calling(address, move |mut tcp| {
            tcp.write_all(ASK.as_bytes()).unwrap();
            read_head(&mut tcp);
            tcp.write_all(&again).unwrap();
            let mut rest = Vec::new();
            tcp.read_to_end(&mut rest).unwrap();
            assert_eq!(goaway_at_end(&rest), Some(1), "{rest:?}");
        });
        until_over(&mut host, 2);
        peer.join();
        caller.join();
        for log in [log, of_server] {
            let end = log.borrow().last().cloned();
            assert!(matches!(end, Some(Event::Closed(Err(Error::Spdy(_))))), "{end:?}");
        }
    }
}

/// Not all garbage is an error: it may look like frames for streams that are not there, or of unknown types. It is answered
/// or skipped, none of it is kept, and the connection ends when its sender is done.
#[test]
fn garbage_that_looks_like_frames_ends_with_its_sender() {
    for byte in [0xff, 0x55, 0x01] {
        let peer = Peer::serving(move |mut tcp| {
            read_head(&mut tcp);
            tcp.write_all(GRANT.as_bytes()).unwrap();
            // The client may have had enough before this is all written.
            let _ = tcp.write_all(&vec![byte; 3_000_000]);
        });
        let mut host = host();
        let log = connect_and_log(&mut host, peer.address, config());
        until_over(&mut host, 1);
        peer.join();
        assert!(matches!(log.borrow()[..], [Event::Granted { .. }, Event::Closed(_)]), "{:?}", log.borrow());
    }
}

/// A client that asks for streams, gets them, and says whatever `say` likes.
fn intruder(address: std::net::SocketAddr, say: impl FnOnce(TcpStream, Session) + Send + 'static) -> Peer {
    Peer::calling(address, |mut tcp| {
        tcp.write_all(ASK.as_bytes()).unwrap();
        read_head(&mut tcp);
        let limitless = spdy::Config { assumed_streams: 1 << 20, ..spdy::Config::spdystream() };
        say(tcp, Session::client(limitless));
    })
}

/// A server that grants, accepts and consumes everything. It may be told of streams when their connection is over already.
fn obliging(log: Log) -> Actor {
    on(move |event, connection: &mut Connection| {
        match &event {
            Event::Asked { .. } => connection.grant(None).unwrap(),
            Event::Opened { id, .. } => drop(connection.accept(*id, &Fields::new(), false)),
            Event::Data { id, bytes, .. } => connection.consume(*id, bytes.len()),
            _ => {}
        }
        log.borrow_mut().push(event);
    })
}

fn write(session: &mut Session, tcp: &mut TcpStream) {
    while let Some(Chunk::Bytes(bytes)) = session.poll_transmit(Instant::ZERO, 1 << 14) {
        tcp.write_all(&bytes).unwrap();
    }
}

/// Reads until so many things were told, or the server has closed.
fn read(session: &mut Session, tcp: &mut TcpStream, events: usize) -> Vec<spdy::Event> {
    let (mut told, mut buffer) = (Vec::new(), [0; 4096]);
    while told.len() < events {
        let n = tcp.read(&mut buffer).unwrap();
        if n == 0 {
            break;
        }
        session.handle_input(Instant::ZERO, Bytes::copy_from_slice(&buffer[..n]).into()).unwrap();
        told.extend(std::iter::from_fn(|| session.poll_event()));
    }
    told
}

#[test]
fn a_head_without_end_is_given_up_at_either_end() {
    let endless = |start: &str, mut tcp: TcpStream| {
        let _ = tcp.write_all(start.as_bytes());
        let line = format!("X-Padding: {}\r\n", "x".repeat(1_000));
        // 10 MB, unless the other has had enough.
        (0..10_000).take_while(|_| tcp.write_all(line.as_bytes()).is_ok()).count()
    };
    let mut host = host();
    let peer = Peer::serving(move |mut tcp| {
        read_head(&mut tcp);
        let lines = endless("HTTP/1.1 101 Yes\r\n", tcp);
        assert!(lines < 10_000, "the client took it all");
    });
    let of_client = connect_and_log(&mut host, peer.address, config());
    let of_server = Log::default();
    let served = of_server.clone();
    let address = listen(&mut host, &config(), move || logger(served.clone()));
    let caller = Peer::calling(address, move |tcp| {
        endless("POST / HTTP/1.1\r\nHost: a\r\n", tcp);
    });
    until_over(&mut host, 2);
    peer.join();
    caller.join();
    for log in [of_client, of_server] {
        assert!(matches!(log.borrow()[..], [Event::Closed(Err(Error::Http(_)))]), "{:?}", log.borrow());
    }
}

#[test]
fn streams_beyond_the_limit_are_refused_and_the_others_go_on() {
    let mut host = host();
    let log = Log::default();
    let of_server = log.clone();
    let address = listen(&mut host, &config(), move || obliging(of_server.clone()));
    let peer = intruder(address, |mut tcp, mut session| {
        for _ in 0..3_000 {
            session.open(&fields(&[("streamtype", "data")]), Opening::default()).unwrap();
        }
        write(&mut session, &mut tcp);
        let told = read(&mut session, &mut tcp, 3_000);
        let refused = |event: &&spdy::Event| {
            matches!(event, spdy::Event::Reset { status: Status::REFUSED_STREAM, by: By::Peer, .. })
        };
        assert_eq!(told.iter().filter(refused).count(), 2_000);
        assert_eq!(told.iter().filter(|e| matches!(e, spdy::Event::Accepted { .. })).count(), 1_000);
    });
    until_over(&mut host, 1);
    peer.join();
    let opened = log.borrow().iter().filter(|event| matches!(event, Event::Opened { .. })).count();
    assert_eq!(opened, 1_000);
}

#[test]
fn too_many_fields_cost_the_stream_and_a_huge_one_the_connection() {
    let mut host = host();
    let log = Log::default();
    let of_server = log.clone();
    let address = listen(&mut host, &config(), move || obliging(of_server.clone()));
    let peer = intruder(address, |mut tcp, mut session| {
        let mut many = Fields::new();
        (0..101).for_each(|i| many.push(format!("n{i}"), "x"));
        let reset = session.open(&many, Opening::default()).unwrap();
        session.open(&fields(&[("streamtype", "data")]), Opening::default()).unwrap();
        // What does not compress: the frame itself is too large.
        let noise: Vec<u8> =
            (0..40_000_u32).map(|i| b'!' + ((i.wrapping_mul(2_654_435_761) >> 16) % 90) as u8).collect();
        let mut huge = Fields::new();
        huge.push("noise", Bytes::from(noise));
        session.open(&huge, Opening::default()).unwrap();
        write(&mut session, &mut tcp);
        let told = read(&mut session, &mut tcp, usize::MAX);
        let expected = |event: &spdy::Event| matches!(event, spdy::Event::Reset { id, status: Status::FRAME_TOO_LARGE, .. } if *id == reset);
        assert!(told.iter().any(expected), "{told:?}");
    });
    until_over(&mut host, 1);
    peer.join();
    let log = log.borrow();
    assert_eq!(log.iter().filter(|event| matches!(event, Event::Opened { .. })).count(), 1);
    let Some(Event::Closed(Err(Error::Spdy(spdy::Error::PeerMisbehaved(why))))) = log.last() else {
        panic!("{:?}", log.last())
    };
    assert!(matches!(why, Misbehaviour::FrameTooLarge { .. }), "{why:?}");
}

/// It asks, and never takes the answers.
#[test]
fn a_flood_of_pings_that_are_not_read_back_ends_the_connection() {
    let mut host = host();
    let log = Log::default();
    let of_server = log.clone();
    let address = listen(&mut host, &config(), move || obliging(of_server.clone()));
    let (stop, stopped) = std::sync::mpsc::channel();
    let peer = intruder(address, move |mut tcp, _| {
        let pings: Vec<u8> = (0..5_000_u32)
            .flat_map(|i| [&[0x80, 3, 0, 6, 0, 0, 0, 4][..], &(2 * i + 1).to_be_bytes()].concat())
            .collect();
        let floods = (0..1_000).take_while(|_| tcp.write_all(&pings).is_ok()).count();
        assert!(floods > 0);
        // Open until the server has seen enough.
        let _ = stopped.recv();
    });
    until_over(&mut host, 1);
    stop.send(()).unwrap();
    peer.join();
    let end = Error::Spdy(spdy::Error::PeerMisbehaved(Misbehaviour::TooManyAnswers));
    assert_eq!(log.borrow().last(), Some(&Event::Closed(Err(end))));
}

/// One stream's reader stalls, another's does not: a byte for the first must not hold the 16 KB read with it.
#[test]
fn a_byte_that_waits_keeps_nothing_but_itself() {
    let mut host = host();
    let waiting = Rc::new(RefCell::new(Vec::new()));
    let kept = waiting.clone();
    let address = listen(&mut host, &config(), move || {
        let kept = kept.clone();
        on(move |event, connection: &mut Connection| match event {
            Event::Asked { .. } => connection.grant(None).unwrap(),
            Event::Opened { id, .. } => drop(connection.accept(id, &Fields::new(), false)),
            Event::Data { id, bytes, .. } if id.as_u32() == 1 => kept.borrow_mut().push(bytes),
            Event::Data { id, bytes, .. } => connection.consume(id, bytes.len()),
            _ => {}
        })
    });
    let peer = intruder(address, |mut tcp, mut session| {
        let [stalls, flows] = [(); 2].map(|()| session.open(&Fields::new(), Opening::default()).unwrap());
        write(&mut session, &mut tcp);
        for _ in 0..100 {
            session.send(flows, pattern(10_000).into(), false).unwrap();
            session.send(stalls, pattern(1).into(), false).unwrap();
            write(&mut session, &mut tcp);
        }
        // Closing with the server's replies unread would take back what is still on its way.
        tcp.shutdown(std::net::Shutdown::Write).unwrap();
        tcp.read_to_end(&mut Vec::new()).unwrap();
    });
    until_over(&mut host, 1);
    peer.join();
    let waiting = waiting.borrow();
    assert_eq!(waiting.len(), 100);
    assert!(waiting.iter().all(Bytes::is_unique), "a byte shares its memory with what came with it");
}
