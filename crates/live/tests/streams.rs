//! Streams over real sockets, our client against our server, and either against peers that misbehave. All on loopback, on one
//! thread but for the peers without manners; every wait has a deadline.

#[path = "streams/common.rs"]
mod common;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::rc::Rc;

use base::{Duration, Fields};
use bytes::Bytes;
use common::*;
use live::Reactor;
use live::streams::{ACCEPTED_PROTOCOLS, Config, Connection, Error, Event, Handler, SendError};
use spdy::{By, Opening, Status, StreamId};

/// Sends back what comes, in order, as far as there is room; ends each stream when its peer has.
#[derive(Default)]
struct Echo {
    queues: BTreeMap<StreamId, (Vec<u8>, bool)>,
    /// The most bytes that were here at a time.
    held_max: Rc<RefCell<usize>>,
    log: Log,
    /// Nothing is sent back before this is taken.
    blocked: Rc<RefCell<bool>>,
}

impl Handler for Echo {
    fn event(&mut self, event: Event, connection: &mut Connection, _: &Reactor) {
        self.log.borrow_mut().push(event.clone());
        match event {
            Event::Asked { protocols, .. } => connection.grant(protocols.first().map(|p| &**p)).unwrap(),
            Event::Opened { id, fields, opening } => {
                connection.accept(id, &fields, false).unwrap();
                self.queues.insert(id, (Vec::new(), opening.fin));
            }
            Event::Data { id, bytes, fin } => {
                let (queue, ended) = self.queues.get_mut(&id).unwrap();
                queue.extend_from_slice(&bytes);
                *ended |= fin;
                let held = self.queues.values().map(|(queue, _)| queue.len()).sum();
                let mut held_max = self.held_max.borrow_mut();
                *held_max = held_max.max(held);
            }
            Event::Reset { id, .. } => {
                let (queue, _) = self.queues.remove(&id).unwrap();
                connection.consume(id, queue.len());
            }
            _ => {}
        }
    }

    fn pump(&mut self, connection: &mut Connection, _: &Reactor) -> bool {
        let mut moved = false;
        if *self.blocked.borrow() {
            return false;
        }
        self.queues.retain(|id, (queue, ended)| {
            let n = connection.room(*id).min(queue.len());
            let fin = *ended && n == queue.len();
            if n == 0 && !fin {
                return true;
            }
            connection.send(*id, queue.drain(..n).collect(), fin).unwrap();
            connection.consume(*id, n);
            moved = true;
            !fin
        });
        moved
    }
}

/// Opens streams, sends a body on each, and keeps what comes back.
struct Caller {
    /// What to send on each stream; `None` once it is all queued.
    bodies: Vec<Bytes>,
    streams: Vec<Call>,
    log: Log,
    /// Whether to close when every stream has ended both ways.
    closes: bool,
}

struct Call {
    id: StreamId,
    accepted: bool,
    sent: usize,
    done: bool,
    back: Vec<u8>,
    ended: bool,
}

impl Caller {
    fn new(bodies: Vec<Bytes>) -> Self {
        Self { bodies, streams: Vec::new(), log: Log::default(), closes: true }
    }
}

impl Handler for Caller {
    fn event(&mut self, event: Event, connection: &mut Connection, _: &Reactor) {
        self.log.borrow_mut().push(event.clone());
        match event {
            Event::Granted { .. } => {
                for i in 0..self.bodies.len() {
                    let fields = fields(&[("streamType", "data"), ("number", &i.to_string())]);
                    let id = connection.open(&fields, Opening::default()).unwrap();
                    let call =
                        Call { id, accepted: false, sent: 0, done: false, back: Vec::new(), ended: false };
                    self.streams.push(call);
                }
            }
            Event::Accepted { id, .. } => {
                self.streams.iter_mut().find(|call| call.id == id).unwrap().accepted = true;
            }
            Event::Data { id, bytes, fin } => {
                connection.consume(id, bytes.len());
                let call = self.streams.iter_mut().find(|call| call.id == id).unwrap();
                call.back.extend_from_slice(&bytes);
                call.ended |= fin;
            }
            _ => {}
        }
    }

    fn pump(&mut self, connection: &mut Connection, _: &Reactor) -> bool {
        let mut moved = false;
        for (call, body) in self.streams.iter_mut().zip(&self.bodies) {
            let n = connection.room(call.id).min(body.len() - call.sent);
            let fin = call.sent + n == body.len();
            if call.accepted && !call.done && (n > 0 || fin) {
                connection.send(call.id, body.slice(call.sent..call.sent + n), fin).unwrap();
                call.sent += n;
                call.done = fin;
                moved = true;
            }
        }
        if self.closes && !self.streams.is_empty() && self.streams.iter().all(|call| call.done && call.ended)
        {
            self.closes = false;
            connection.close();
            moved = true;
        }
        moved
    }
}

/// Runs calls against an echo; gives back what it has seen and held at most.
fn echoed(config: &Config, bodies: Vec<Bytes>) -> (Caller, Log) {
    let mut host = host();
    let log = Log::default();
    let of_server = log.clone();
    let address =
        listen(&mut host, config, move || Actor::new(Echo { log: of_server.clone(), ..Echo::default() }));
    host.connect(request(address), &[address], None, config.clone(), Actor::new(Caller::new(bodies)));
    let over = until_over(&mut host, 2);
    let caller = over.into_iter().find_map(Actor::into::<Caller>).expect("the client is over");
    (caller, log)
}

fn config() -> Config {
    Config { linger: Duration::from_millis(500), ..Config::default() }
}

/// As SPDY/3.1 has it, with windows, for peers other than spdystream.
fn windowed() -> Config {
    let session = spdy::Config {
        mapping: spdy::Mapping::Streams,
        stream_window: spdy::WindowPolicy::FIXED_64K,
        ..spdy::Config::new(spdy::Version::V3_1)
    };
    Config { session, ..config() }
}

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
    // More than the kernel's buffers take on loopback, by far.
    let body = pattern(64_000_000);
    let caller = Caller::new(vec![body.clone(), Bytes::from_static(b"x")]);
    let log = caller.log.clone();
    host.connect(request(address), &[address], None, config, Actor::new(caller));
    let mut rounds = 0;
    let over = until(&mut host, |host, over| {
        rounds += 1;
        // The client gets no further when the server has stopped for a while: then nothing is ready any more.
        if *blocked.borrow() && rounds > 2_000 {
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
            }
            _ => {}
        }),
    );
    until_over(&mut host, 2);
    let full = Err(SendError::Full);
    assert_eq!(*seen.borrow(), [(1_000, full), (1_000, Ok(())), (1, full)]);
}

#[test]
fn a_refusal_comes_with_its_status_fields_and_reason() {
    let mut host = host();
    let address = listen(&mut host, &config(), || {
        on(|event, connection: &mut Connection| {
            if let Event::Asked { .. } = event {
                let accepted = fields(&[(ACCEPTED_PROTOCOLS, "v9")]);
                connection.refuse(403, accepted, Bytes::from_static(b"unable to negotiate\n")).unwrap();
            }
        })
    });
    let log = connect_and_log(&mut host, address, config());
    until_over(&mut host, 2);
    let [Event::Closed(Err(e))] = &log.borrow()[..] else { panic!("{:?}", log.borrow()) };
    let text = "the server refused the upgrade to SPDY/3.1 with status 403: unable to negotiate";
    assert_eq!(e.to_string(), text);
    let Error::Refused { fields, .. } = e else { panic!("{e:?}") };
    assert_eq!(fields.get_str(ACCEPTED_PROTOCOLS), Some("v9"));
}

/// Whatever a server may say instead of 101, the client ends with an error that tells it.
#[test]
fn answers_other_than_101_are_reported() {
    let long = format!("HTTP/1.1 500 No\r\nContent-Length: 100000\r\n\r\n{}", "x".repeat(50_000));
    let cases = [
        ("HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\ngone", "SPDY/3.1 with status 404: gone"),
        ("HTTP/1.1 200 OK\r\n\r\nuntil the end", "SPDY/3.1 with status 200: until the end"),
        ("HTTP/1.1 302 No\r\nContent-Length: 9\r\n\r\ncut", "SPDY/3.1 with status 302: cut"),
        (&long, "SPDY/3.1 with status 500: xxxx"),
        (
            "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            "the server changes to websocket instead of SPDY/3.1",
        ),
        ("HTTP/1.1 101 Yes\r\n\r\n", "the server changes the protocol and does not say to which"),
        ("SSH-2.0-OpenSSH_9.9\r\n", "HTTP/1.1 before the upgrade: peer"),
        ("", "HTTP/1.1 before the upgrade: peer: closed before the response"),
    ];
    for (answer, expected) in cases {
        let answer = answer.to_owned();
        let peer = Peer::serving(move |mut tcp| {
            read_head(&mut tcp);
            tcp.write_all(answer.as_bytes()).unwrap();
        });
        let mut host = host();
        let log = connect_and_log(&mut host, peer.address, config());
        until_over(&mut host, 1);
        let end = log.borrow().last().cloned();
        let Some(Event::Closed(Err(e))) = end else { panic!("{expected}: {end:?}") };
        assert!(e.to_string().contains(expected), "{e}");
        peer.join();
    }
}

#[test]
fn a_request_that_asks_for_nothing_like_it_gets_400() {
    for request in [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: SPDY/3.1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 1\r\n\r\nx",
        "nonsense\r\n\r\n",
    ] {
        let mut host = host();
        let log = Log::default();
        let of_server = log.clone();
        let address = listen(&mut host, &config(), move || logger(of_server.clone()));
        let peer = Peer::calling(address, move |mut tcp| {
            tcp.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            tcp.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 400 "), "{request:?} got {answer:?}");
        });
        until_over(&mut host, 1);
        peer.join();
        let end = log.borrow().last().cloned();
        let expected = matches!(end, Some(Event::Closed(Err(Error::NotAsked | Error::Http(_)))));
        assert!(expected, "{request:?}: {end:?}");
        assert_eq!(log.borrow().len(), 1, "the handler was asked nothing");
    }
}

const ASK: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";
const GRANT: &str = "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";

/// The header of a GOAWAY of version 3, which is the last of `bytes` but for its payload, and its status.
fn goaway_at_end(bytes: &[u8]) -> Option<u8> {
    let frame = bytes.len().checked_sub(16).map(|at| &bytes[at..])?;
    (frame[..8] == [0x80, 3, 0, 7, 0, 0, 0, 8]).then_some(frame[15])
}

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

/// What a client sends before it has its 101 is not lost; and what is queued goes out before the GOAWAY of the end.
#[test]
fn spdy_begins_with_the_byte_behind_the_head_and_ends_with_goaway() {
    let mut early = spdy::Session::client(spdy::Config::spdystream());
    early.open(&fields(&[("a", "b")]), Opening::default()).unwrap();
    let mut bytes = ASK.as_bytes().to_vec();
    while let Some(base::Chunk::Bytes(more)) = early.poll_transmit(base::Instant::ZERO, 1 << 20) {
        bytes.extend_from_slice(&more);
    }
    let mut host = host();
    let address = listen(&mut host, &config(), || {
        on(|event, connection: &mut Connection| match event {
            Event::Asked { .. } => connection.grant(None).unwrap(),
            Event::Opened { id, .. } => {
                connection.accept(id, &Fields::new(), false).unwrap();
                connection.send(id, pattern(60_000), true).unwrap();
                connection.close();
            }
            _ => {}
        })
    });
    let peer = Peer::calling(address, move |mut tcp| {
        tcp.write_all(&bytes).unwrap();
        read_head(&mut tcp);
        let mut rest = Vec::new();
        tcp.read_to_end(&mut rest).unwrap();
        assert_eq!(goaway_at_end(&rest), Some(0));
        early.handle_input(base::Instant::ZERO, rest.into()).unwrap();
        let mut length = 0;
        while let Some(event) = early.poll_event() {
            if let spdy::Event::Data { chunk, .. } = event {
                length += chunk.len();
            }
        }
        assert_eq!(length, 60_000);
    });
    until_over(&mut host, 1);
    peer.join();
}

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
    let end = Event::Closed(Err(Error::Transport("an https URL needs a TLS connector".into())));
    assert_eq!(*log.borrow(), [end]);
}
