//! A connection between a scripted client and a site that answers by the path.

use base::{BodyRange, Duration};
use spdy::{Config, Version};

use super::*;
use crate::Sniffed;

/// Answers what its path names: `/think` after 10 ms, `/push` with two pushes, `/large` with 2 MiB, `/none` with 204,
/// `/bad` with a head that cannot be written, anything else with the bytes uploaded.
#[derive(Default)]
struct Echo {
    begun: Vec<Bytes>,
}

impl Site for Echo {
    type Upload = Vec<u8>;

    fn begin(&mut self, request: &RequestHead) -> Vec<u8> {
        self.begun.push(request.path.clone());
        Vec::new()
    }

    fn upload(&mut self, upload: &mut Vec<u8>, chunk: &Chunk) {
        let Chunk::Bytes(bytes) = chunk else { panic!("a client of bytes") };
        upload.extend_from_slice(bytes);
    }

    fn answer(&mut self, request: &RequestHead, upload: Vec<u8>) -> Answer {
        let mut answer = Answer::bare(200);
        match &request.path[..] {
            b"/think" => answer.think = Duration::from_millis(10),
            b"/push" => {
                answer.body = b"refers to /a and /b".to_vec().into();
                answer.pushes = [("/a", 0), ("/b", 5)]
                    .map(|(path, level)| Push {
                        request: RequestHead { path: path.into(), ..request.clone() },
                        head: ResponseHead { status: 200, fields: Fields::new() },
                        body: path.as_bytes().to_vec().into(),
                        priority: Priority::new(level),
                    })
                    .into();
            }
            b"/large" => answer.body = BodyRange::filler(2 << 20).into(),
            b"/none" => answer.head.status = 204,
            b"/bad" => {
                answer.head.fields.push("X", "a\nb");
                answer.body = b"lost".to_vec().into();
            }
            _ => answer.body = upload.into(),
        }
        answer
    }
}

/// A connection with its site and the time.
struct World {
    now: Instant,
    site: Echo,
    connection: Connection<Echo>,
}

impl World {
    fn new(protocol: &Protocol) -> Self {
        let connection = Connection::new(protocol, "http".into()).with_log();
        Self { now: Instant::ZERO, site: Echo::default(), connection }
    }

    fn http1() -> Self {
        Self::new(&Protocol::Http1 { upgrade: Some(Config::new(Version::V3_1)) })
    }

    fn pass(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
        self.connection.handle_timeout(self.now, &mut self.site);
    }

    fn tell(&mut self, bytes: impl Into<Vec<u8>>) -> Result<(), PeerMisbehaved> {
        self.connection.handle_input(self.now, Chunk::from(bytes.into()), &mut self.site)
    }

    /// Asks for a path over HTTP/1.1, with these further lines.
    fn get(&mut self, path: &str, lines: &str) {
        self.tell(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{lines}\r\n")).expect("a sound request");
    }

    /// All that is sent now, as bytes.
    fn sent(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        while let Some(chunk) = self.connection.poll_transmit(self.now, 1_000) {
            match chunk {
                Chunk::Bytes(bytes) => out.extend_from_slice(&bytes),
                Chunk::Body(range) => out.resize(out.len() + range.len as usize, b'.'),
            }
        }
        out
    }

    fn text(&mut self) -> String {
        String::from_utf8(self.sent()).expect("text")
    }

    fn log(&mut self) -> Vec<Record> {
        std::iter::from_fn(|| self.connection.poll_record()).collect()
    }

    /// Carries bytes between a SPDY client and the connection until neither has more to say.
    fn talk(&mut self, client: &mut Session) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let mut quiet = true;
            while let Some(chunk) = client.poll_transmit(self.now, 1_000) {
                self.connection.handle_input(self.now, chunk, &mut self.site).expect("sound frames");
                quiet = false;
            }
            for byte in self.sent() {
                client.handle_input(self.now, vec![byte].into()).expect("sound frames");
                quiet = false;
            }
            while let Some(event) = client.poll_event() {
                if let Event::Data { id, chunk, .. } = &event {
                    client.consume(*id, chunk.len());
                }
                events.push(event);
            }
            if quiet {
                return events;
            }
        }
    }
}

fn spdy() -> (World, Session) {
    let config = Config::new(Version::V3_1);
    (World::new(&Protocol::Spdy(config.clone())), Session::client(config))
}

fn head(method: &'static str, path: &'static str) -> RequestHead {
    let [method, scheme, authority, path] = [method, "http", "a", path].map(Bytes::from);
    RequestHead { method, scheme, authority, path, fields: Fields::new() }
}

/// Who was sent data or an end, in order, each once in a row.
fn order(events: &[Event]) -> Vec<u32> {
    let data = events.iter().filter(|e| matches!(e, Event::Data { .. }));
    let mut ids: Vec<u32> = data.filter_map(|e| e.stream()).map(StreamId::as_u32).collect();
    ids.dedup();
    ids
}

#[test]
fn uploads_reach_the_site_in_order_and_the_answer_waits_for_their_end() {
    let mut world = World::http1();
    world.tell("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab").unwrap();
    assert_eq!(world.sent(), b"");
    world.tell("cd").unwrap();
    assert!(world.text().ends_with("\r\n\r\nabcd"));

    let (mut world, mut client) = spdy();
    let id = client.request(&head("POST", "/"), Priority::new(1), false).unwrap();
    client.send(id, vec![b'x'; 300_000].into(), true).unwrap();
    let events = world.talk(&mut client);
    let echoed: u64 =
        events.iter().map(|e| if let Event::Data { chunk, .. } = e { chunk.len() } else { 0 }).sum();
    assert_eq!(echoed, 300_000, "credit for the upload was returned");
}

#[test]
fn pushes_are_announced_before_the_answer_and_sent_after_it() {
    let (mut world, mut client) = spdy();
    client.request(&head("GET", "/push"), Priority::new(2), true).unwrap();
    let events = world.talk(&mut client);
    let heads: Vec<_> = events
        .iter()
        .filter_map(|e| match e {
            Event::Pushed { id, priority, head, .. } => {
                Some((id.as_u32(), priority.level(), head.path.clone()))
            }
            Event::Response { id, .. } => Some((id.as_u32(), 0, "".into())),
            _ => None,
        })
        .collect();
    // The first was to be more urgent than the answer: it gets one level less than that, and the second keeps its distance
    // as far as there are levels.
    assert_eq!(heads, [(2, 3, "/a".into()), (4, 7, "/b".into()), (1, 0, Bytes::new())]);
    assert_eq!(order(&events), [1, 2, 4]);
    let log = world.log();
    let lines: Vec<_> = log.iter().map(|r| (&r.path[..], r.pushed, r.body_len, r.protocol)).collect();
    let expected: [(&[u8], _, _, _); 3] =
        [(b"/a", true, 2, "spdy/3.1"), (b"/b", true, 2, "spdy/3.1"), (b"/push", false, 19, "spdy/3.1")];
    assert_eq!(lines, expected);
}

#[test]
fn a_client_that_takes_no_pushes_gets_none() {
    let config = Config { max_concurrent_streams: 0, ..Config::new(Version::V3_1) };
    let (mut world, _) = spdy();
    let mut client = Session::client(config);
    client.request(&head("GET", "/push"), Priority::new(2), true).unwrap();
    let events = world.talk(&mut client);
    assert!(!events.iter().any(|e| matches!(e, Event::Pushed { .. } | Event::Reset { .. })));
    assert_eq!(order(&events), [1]);
    assert_eq!((world.connection.stats().pushes, world.connection.stats().pushes_withheld), (0, 2));

    let mut world = World::http1();
    world.get("/push", "");
    assert!(world.text().ends_with("\r\n\r\nrefers to /a and /b"));
    assert_eq!(world.log().len(), 1);
}

#[test]
fn an_answers_priority_overrides_the_clients() {
    struct Urgent;
    impl Site for Urgent {
        type Upload = bool;
        fn begin(&mut self, request: &RequestHead) -> bool {
            request.path == "/urgent"
        }
        fn answer(&mut self, _: &RequestHead, urgent: bool) -> Answer {
            let priority = urgent.then_some(Priority::HIGHEST);
            Answer { priority, body: vec![0; 10].into(), ..Answer::bare(200) }
        }
    }
    let (_, mut client) = spdy();
    let mut connection = Connection::new(&Protocol::Spdy(Config::new(Version::V3_1)), "http".into());
    client.request(&head("GET", "/"), Priority::new(1), true).unwrap();
    client.request(&head("GET", "/urgent"), Priority::new(7), true).unwrap();
    while let Some(chunk) = client.poll_transmit(Instant::ZERO, 1_000) {
        connection.handle_input(Instant::ZERO, chunk, &mut Urgent).unwrap();
    }
    while let Some(chunk) = connection.poll_transmit(Instant::ZERO, 1_000) {
        client.handle_input(Instant::ZERO, chunk).unwrap();
    }
    let events: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
    assert_eq!(order(&events), [3, 1]);
}

#[test]
fn a_head_that_cannot_be_written_is_the_servers_error_and_shifts_no_answer() {
    let mut world = World::http1();
    world.get("/bad", "");
    world.tell("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok").unwrap();
    let text = world.text();
    assert!(text.starts_with("HTTP/1.1 500 ") && text.ends_with("\r\n\r\nok"), "{text}");
    assert_eq!(world.log().iter().map(|r| (r.status, r.body_len)).collect::<Vec<_>>(), [(500, 0), (200, 2)]);

    let (mut world, mut client) = spdy();
    client.request(&head("GET", "/bad"), Priority::new(1), true).unwrap();
    let events = world.talk(&mut client);
    let is_500 = |e: &Event| matches!(e, Event::Response { head, fin: true, .. } if head.status == 500);
    assert!(events.iter().any(is_500), "{events:?}");
    assert_eq!(world.log()[0].status, 500);
}

const OFFER: &str = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n";

#[test]
fn an_upgrade_is_answered_with_101_and_spdy_begins_with_the_next_byte() {
    let mut world = World::http1();
    // Kubernetes' client: a POST without a body, then frames at once.
    let mut client = Session::client(Config::new(Version::V3_1));
    client.request(&head("GET", "/push"), Priority::new(2), true).unwrap();
    let mut bytes =
        format!("POST /exec HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n{OFFER}\r\n").into_bytes();
    while let Some(Chunk::Bytes(frames)) = client.poll_transmit(world.now, 1_000) {
        bytes.extend_from_slice(&frames);
    }
    world.tell(bytes).unwrap();
    let sent = world.sent();
    let end = sent.windows(4).position(|w| w == b"\r\n\r\n").expect("a head") + 4;
    let head = std::str::from_utf8(&sent[..end]).unwrap();
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("Upgrade: SPDY/3.1\r\n"), "{head}");
    assert!(head.contains("Connection: Upgrade\r\n"), "{head}");
    assert_eq!(Protocol::sniff(&sent[end..]), Some(Sniffed::Spdy3));
    client.handle_input(world.now, sent[end..].to_vec().into()).unwrap();
    let events: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
    assert_eq!(order(&events), [1, 2, 4], "stream 1 is the client's first, not the request that asked");
    assert_eq!(world.site.begun, ["/push"]);
    let log: Vec<_> = world.log().into_iter().map(|r| (r.status, r.protocol)).collect();
    assert_eq!(log[..2], [(101, "http/1.1"), (200, "spdy/3.1")]);
    assert_eq!(world.connection.protocol(), "spdy/3.1");
}

#[test]
fn an_upgrade_waits_for_the_answers_before_it() {
    let mut world = World::http1();
    world.get("/think", "");
    world.get("/", OFFER);
    assert_eq!(world.sent(), b"");
    world.pass(10);
    let sent = world.sent();
    let text = String::from_utf8_lossy(&sent);
    let (ok, switching) = (text.find("HTTP/1.1 200 ").unwrap(), text.find("HTTP/1.1 101 ").unwrap());
    assert!(ok < switching, "{text}");
}

#[test]
fn an_offer_that_is_not_allowed_or_not_meant_for_us_is_ignored() {
    for (protocol, lines) in [
        (Protocol::HTTP1, OFFER),
        (Protocol::Http1 { upgrade: Some(Config::new(Version::V3)) }, OFFER),
        (Protocol::Http1 { upgrade: Some(Config::new(Version::V3_1)) }, "Upgrade: SPDY/3.1\r\n"),
    ] {
        let mut world = World::new(&protocol);
        world.get("/", lines);
        assert!(world.text().starts_with("HTTP/1.1 200 "), "{protocol:?}");
        world.get("/", "");
        assert!(world.text().starts_with("HTTP/1.1 200 "), "the connection goes on");
    }
}

#[test]
fn a_client_that_waits_for_a_100_gets_it_when_its_turn_comes() {
    let mut world = World::http1();
    world.get("/think", "");
    world.tell("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n").unwrap();
    assert_eq!(world.text(), "", "responses keep their order");
    world.pass(10);
    let text = world.text();
    assert!(text.starts_with("HTTP/1.1 200 ") && text.ends_with("HTTP/1.1 100 Continue\r\n\r\n"), "{text}");
    world.tell("ok").unwrap();
    assert!(world.text().ends_with("\r\n\r\nok"));
}

#[test]
fn shutdown_over_http1_answers_what_is_here_and_says_close() {
    let mut world = World::http1();
    world.get("/think", "");
    world.get("/think", "");
    world.connection.shutdown();
    assert!(!world.connection.wants_input() && !world.connection.wants_close());
    world.pass(10);
    let text = world.text();
    assert_eq!(text.matches("HTTP/1.1 200 ").count(), 2);
    assert_eq!(text.matches("Connection: close").count(), 1, "{text}");
    assert!(text.rfind("HTTP/1.1 200").unwrap() < text.find("Connection: close").unwrap());
    assert!(world.connection.wants_close());

    let mut idle = World::http1();
    idle.connection.shutdown();
    assert_eq!(idle.sent(), b"");
    assert!(idle.connection.wants_close());
}

#[test]
fn shutdown_over_spdy_says_goaway_and_finishes_the_streams() {
    let (mut world, mut client) = spdy();
    let id = client.request(&head("GET", "/think"), Priority::new(2), true).unwrap();
    world.talk(&mut client);
    world.connection.shutdown();
    let events = world.talk(&mut client);
    assert!(events.iter().any(|e| matches!(e, Event::GoAway { last_good_id: 1, .. })), "{events:?}");
    assert!(!world.connection.wants_close(), "a stream is open");
    world.pass(10);
    let events = world.talk(&mut client);
    assert!(events.iter().any(|e| matches!(e, Event::Response { fin: true, .. }) && e.stream() == Some(id)));
    assert!(world.connection.wants_close());
}

#[test]
fn a_request_that_the_client_takes_back_is_not_answered() {
    let (mut world, mut client) = spdy();
    let id = client.request(&head("GET", "/think"), Priority::new(2), true).unwrap();
    world.talk(&mut client);
    client.reset(id, spdy::Status::CANCEL);
    world.talk(&mut client);
    assert_eq!(world.connection.poll_timeout(), None);
    world.pass(10);
    assert_eq!(world.log(), []);
    let stats = world.connection.stats();
    assert_eq!((stats.requests, stats.answers, stats.cancelled), (1, 0, 1));
    assert!(!world.connection.is_idle(), "the time passed; whether there is something to send is not known");
    assert_eq!(world.sent(), b"");
    assert!(world.connection.is_idle());
}

#[test]
fn a_client_that_takes_no_answers_is_not_read_from() {
    let mut world = World::http1();
    world.get("/large", "");
    assert!(!world.connection.wants_input());
    let sent = world.sent().len() as u64;
    assert!(world.connection.wants_input());
    assert_eq!(world.connection.stats().bytes_out, sent);

    // Streams that end at once are bounded by no number of streams.
    let (mut world, _) = spdy();
    let mut client = Session::client(Config { assumed_streams: 10_000, ..Config::new(Version::V3_1) });
    let asked = (0..10_000).take_while(|_| {
        client.request(&head("GET", "/none"), Priority::new(2), true).unwrap();
        while let Some(chunk) = client.poll_transmit(world.now, 1_000) {
            world.connection.handle_input(world.now, chunk, &mut world.site).unwrap();
        }
        world.connection.wants_input()
    });
    assert_eq!(asked.count(), 1_023);
    world.sent();
    assert!(world.connection.wants_input());
}

#[test]
fn more_pipelined_requests_than_the_engine_holds_are_all_answered() {
    let mut world = World::http1();
    let many = http1::Limits::default().outstanding + 10;
    world.tell("GET /think HTTP/1.1\r\nHost: a\r\n\r\n".repeat(many)).unwrap();
    for _ in 0..2 {
        world.pass(10);
    }
    assert_eq!(world.text().matches("HTTP/1.1 200 ").count(), many);
    assert!(world.connection.is_idle());
}

#[test]
fn what_came_before_a_fault_is_answered_and_the_fault_refused() {
    let mut world = World::http1();
    assert!(world.tell("GET /think HTTP/1.1\r\nHost: a\r\n\r\nnonsense\r\n\r\n").is_err());
    assert!(!world.connection.wants_input() && !world.connection.wants_close());
    world.pass(10);
    let text = world.text();
    assert!(text.starts_with("HTTP/1.1 200 ") && text.contains("HTTP/1.1 400 "), "{text}");
    assert!(world.connection.wants_close());

    // In the middle of an upload.
    let mut world = World::http1();
    world.tell("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    assert!(world.tell("nonsense\r\n").is_err());
    assert!(world.text().starts_with("HTTP/1.1 400 "));
    assert!(world.connection.wants_close());

    let (mut world, _) = spdy();
    assert!(world.tell([0x80, 3, 0, 9, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
    assert!(!world.connection.wants_close(), "a GOAWAY is to be sent");
    assert!(!world.sent().is_empty());
    assert!(world.connection.wants_close());
}

#[test]
fn the_clients_end_lets_http1_finish_and_ends_spdy() {
    let mut world = World::http1();
    world.get("/think", "");
    world.connection.handle_eof(world.now, &mut world.site).unwrap();
    assert!(!world.connection.wants_close());
    world.pass(10);
    assert!(world.text().starts_with("HTTP/1.1 200 "));
    assert!(world.connection.wants_close());

    let mut world = World::http1();
    world.tell("GET / HT").unwrap();
    assert!(world.connection.handle_eof(world.now, &mut world.site).is_err());

    let (mut world, mut client) = spdy();
    client.request(&head("GET", "/think"), Priority::new(2), true).unwrap();
    world.talk(&mut client);
    world.connection.handle_eof(world.now, &mut world.site).unwrap();
    assert!(world.connection.wants_close());
    assert_eq!(world.connection.stats().cancelled, 1);
}

#[test]
fn a_silent_peer_of_a_session_that_pings_is_given_up() {
    let config =
        Config { keep_alive: Config::chrome_2013(Version::V3_1).keep_alive, ..Config::new(Version::V3_1) };
    let mut world = World::new(&Protocol::Spdy(config.clone()));
    let mut client = Session::client(config);
    let id = client.request(&head("POST", "/"), Priority::new(2), false).unwrap();
    world.talk(&mut client);
    assert!(id.as_u32() == 1 && world.connection.poll_timeout().is_some());
    world.pass(10_000);
    assert!(!world.sent().is_empty(), "a PING");
    assert!(!world.connection.wants_close());
    world.pass(10_000);
    assert!(world.connection.wants_close());
}

#[test]
fn prior_knowledge_shows_in_the_first_two_bytes() {
    for (bytes, sniffed) in [
        (&b""[..], None),
        (b"\x80", None),
        (b"\x80\x02", Some(Sniffed::Spdy2)),
        (b"\x80\x03\x00\x01", Some(Sniffed::Spdy3)),
        (b"\x80\x04", Some(Sniffed::Http1)),
        (b"G", Some(Sniffed::Http1)),
        (b"\x16\x03", Some(Sniffed::Http1)), // TLS: HTTP/1.1 will say what is wrong with it
    ] {
        assert_eq!(Protocol::sniff(bytes), sniffed, "{bytes:?}");
    }
    for version in [Version::V2, Version::V3, Version::V3_1] {
        let mut client = Session::client(Config::new(version));
        client.request(&head("GET", "/"), Priority::new(0), true).unwrap();
        let Some(Chunk::Bytes(first)) = client.poll_transmit(Instant::ZERO, 8) else { panic!("frames") };
        let sniffed = Protocol::sniff(&first);
        assert_eq!(sniffed == Some(Sniffed::Spdy2), version == Version::V2, "{version}");
        assert_ne!(sniffed, Some(Sniffed::Http1));
    }
}

/// SPDY/3 §2.6.4, both ways: what the last session's server said comes back with the first SETTINGS of the next, for as many segments as
/// the server takes a client's word for.
#[test]
fn a_client_keeps_the_congestion_window_and_brings_it_back() {
    for version in [Version::V2, Version::V3, Version::V3_1] {
        let config = Config::new(version);
        let world = || {
            let mut world = World::new(&Protocol::Spdy(config.clone()));
            world.connection =
                Connection::new(&Protocol::Spdy(config.clone()), "http".into()).with_kept_cwnd(32);
            world
        };
        let (mut first, mut client) = (world(), Session::client(config.clone()));
        first.talk(&mut client);
        assert!(!first.connection.note_cwnd(10, 0), "nobody has asked for anything");
        client.request(&head("GET", "/think"), Priority::new(1), true).unwrap();
        first.talk(&mut client);
        assert!(!first.connection.note_cwnd(10, 0), "an answer is under way");
        first.pass(10);
        first.talk(&mut client);
        assert!(first.connection.note_cwnd(10, 3), "with its end");
        first.talk(&mut client);
        assert!(!first.connection.note_cwnd(11, 2) && !first.connection.note_cwnd(10, 0));
        assert!(first.connection.note_cwnd(40, 0), "when all has arrived");
        first.talk(&mut client);
        assert_eq!(first.connection.take_cwnd(), None, "this client had kept nothing");

        let kept = client.persisted_settings().to_vec();
        assert_eq!(kept.iter().map(|s| s.value).collect::<Vec<_>>(), [40]);
        let mut second = world();
        second.talk(&mut Session::client(Config { settings: kept.clone(), ..config.clone() }));
        assert_eq!(second.connection.take_cwnd(), Some(32), "no more than its word is good for");
        assert_eq!(second.connection.take_cwnd(), None, "once");
        let mut claimed = world();
        let settings = vec![spdy::frame::Setting { flags: 0, ..kept[0] }];
        claimed.talk(&mut Session::client(Config { settings, ..config.clone() }));
        assert_eq!(
            claimed.connection.take_cwnd(),
            None,
            "what was not kept for the server is none of its business"
        );
    }
}
