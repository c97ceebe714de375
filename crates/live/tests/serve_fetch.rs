//! The server and the client of this crate over loopback, in every way in which a protocol can be agreed on.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::JoinHandle;

use base::{BodyRange, Chunk, Duration, Fields, Instant, RequestHead, ResponseHead};
use bytes::{Bytes, BytesMut};
use live::fetch::{self, Event, Exchange, Observer, Outcome, Protocol, Request, Url, fetch};
use live::serve::{self, Content, Server};
use live::tls;
use origin::{Answer, Push, Site};
use spdy::{Priority, Version};

/// The byte at an offset of every body.
fn pattern(at: u64) -> u8 {
    (at % 251) as u8
}

/// `/bytes/N` has N bytes; `/slow/N` the same, 200 ms later; `/push` pushes `/pushed`; what is posted comes back as its length.
struct TestSite;

impl Site for TestSite {
    type Upload = Vec<u8>;

    fn begin(&mut self, _: &RequestHead) -> Vec<u8> {
        Vec::new()
    }

    fn upload(&mut self, upload: &mut Vec<u8>, chunk: &Chunk) {
        let Chunk::Bytes(bytes) = chunk else { panic!("sockets bring bytes") };
        upload.extend_from_slice(bytes);
    }

    fn answer(&mut self, request: &RequestHead, upload: Vec<u8>) -> Answer {
        let path = std::str::from_utf8(&request.path).unwrap();
        let ok = || ResponseHead { status: 200, fields: Fields::new() };
        let range = |n: &str| BodyRange { source: 0, start: 0, len: n.parse().unwrap() };
        match path.split('/').collect::<Vec<_>>()[..] {
            ["", "bytes", n] => Answer::new(ok(), range(n).into()),
            ["", "slow", n] => {
                Answer { think: Duration::from_millis(200), ..Answer::new(ok(), range(n).into()) }
            }
            ["", "upload"] => {
                let whole = (0..).zip(&upload).all(|(at, byte)| *byte == pattern(at));
                Answer::new(ok(), format!("{} {whole}", upload.len()).into_bytes().into())
            }
            ["", "push"] => {
                let push = Push {
                    request: RequestHead { path: "/bytes/1000".into(), ..request.clone() },
                    head: ok(),
                    body: range("1000").into(),
                    priority: Priority::new(4),
                };
                Answer { pushes: vec![push], ..Answer::new(ok(), b"pusher".to_vec().into()) }
            }
            _ => Answer::bare(404),
        }
    }
}

impl Content for TestSite {
    fn read(&mut self, range: BodyRange, out: &mut BytesMut) -> std::io::Result<()> {
        out.extend((range.start..range.start + range.len).map(pattern));
        Ok(())
    }
}

/// A server in a thread of its own; dropping it shuts it down.
struct Running {
    address: SocketAddr,
    handle: serve::Handle,
    thread: Option<JoinHandle<serve::Summary>>,
}

impl Running {
    fn start(config: serve::Config) -> Self {
        let server = Server::bind(&["127.0.0.1:0".parse().unwrap()], config).unwrap();
        let (address, handle) = (server.addresses().unwrap()[0], server.handle());
        let thread = std::thread::spawn(move || server.run(&mut TestSite, &mut |_, _| {}).unwrap());
        Self { address, handle, thread: Some(thread) }
    }

    fn url(&self, scheme: &str, path: &str) -> Url {
        Url::parse(&format!("{scheme}://{}{path}", self.address)).unwrap()
    }

    fn stop(&mut self) -> serve::Summary {
        self.handle.shut_down();
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop();
        }
    }
}

/// Gathers bodies and what connections did.
#[derive(Default)]
struct Gathered {
    bodies: BTreeMap<usize, Vec<u8>>,
    spoken: Vec<Protocol>,
    secured: Vec<tls::Negotiated>,
    again: usize,
    goaways: usize,
    closed: Vec<String>,
    /// Called at the first data.
    at_first_head: Option<serve::Handle>,
}

impl Observer for Gathered {
    fn event(&mut self, _: Instant, event: &Event<'_>, _: &[Exchange]) {
        match event {
            Event::Data { exchange, bytes } => {
                self.bodies.entry(*exchange).or_default().extend_from_slice(bytes)
            }
            Event::Speaking { protocol, .. } => self.spoken.push(*protocol),
            Event::Secured { negotiated, .. } => self.secured.push((*negotiated).clone()),
            Event::Again { .. } => self.again += 1,
            Event::GoAway { .. } => self.goaways += 1,
            Event::Closed { why, .. } => self.closed.push((*why).to_owned()),
            Event::Head { .. } => {
                if let Some(handle) = self.at_first_head.take() {
                    handle.shut_down();
                }
            }
            _ => {}
        }
    }
}

impl Gathered {
    fn check(&self, exchange: usize, len: u64) {
        let empty = Vec::new();
        let body = self.bodies.get(&exchange).unwrap_or(&empty);
        assert_eq!(body.len() as u64, len, "exchange {exchange}");
        assert!((0..).zip(body).all(|(at, byte)| *byte == pattern(at)), "exchange {exchange} is corrupt");
    }
}

fn client(protocol: Protocol) -> fetch::Config {
    fetch::Config { protocols: vec![protocol], ..fetch::Config::new(tls::Trust::Anybody) }
}

fn get(url: Url, priority: u8) -> Request {
    Request { priority, ..Request::get(url) }
}

fn body(n: u64) -> Bytes {
    (0..n).map(pattern).collect()
}

/// A small GET, a large one, a large POST and a hundred at once, all on one connection.
fn exchange_everything(server: &Running, scheme: &str, config: &fetch::Config) -> Gathered {
    let mut requests =
        vec![get(server.url(scheme, "/bytes/12"), 0), get(server.url(scheme, "/bytes/400000"), 0)];
    let post =
        Request { method: "POST".into(), body: body(400_000), ..get(server.url(scheme, "/upload"), 0) };
    requests.push(post);
    requests
        .extend((0..100).map(|i| get(server.url(scheme, &format!("/bytes/{}", 5_000 + i)), (i % 8) as u8)));
    requests.push(get(server.url(scheme, "/none"), 7));
    let mut gathered = Gathered::default();
    let exchanges = fetch(requests, config, &mut gathered).unwrap();
    for (i, exchange) in exchanges.iter().enumerate() {
        assert_eq!(exchange.outcome, Outcome::Complete, "{i}: {}", exchange.request.url);
        assert_eq!(exchange.attempts, 1, "{i}");
        assert_eq!(exchange.connection, Some(0), "{i}");
    }
    gathered.check(0, 12);
    gathered.check(1, 400_000);
    assert_eq!(gathered.bodies[&2], b"400000 true");
    (0..100).for_each(|i| gathered.check(3 + i, 5_000 + i as u64));
    assert_eq!(exchanges[103].response.as_ref().unwrap().status, 404);
    gathered
}

const SPDY: [Version; 3] = [Version::V2, Version::V3, Version::V3_1];

#[test]
fn http1_in_clear_text() {
    let server = Running::start(serve::Config::default());
    let gathered = exchange_everything(&server, "http", &client(Protocol::Http1));
    assert_eq!(gathered.spoken, [Protocol::Http1]);
    let config = fetch::Config { pipeline: 8, ..client(Protocol::Http1) };
    exchange_everything(&server, "http", &config);
}

#[test]
fn every_spdy_by_prior_knowledge() {
    for version in SPDY {
        let version_3 = if version == Version::V3 { Version::V3 } else { Version::V3_1 };
        let server = Running::start(serve::Config { version_3, ..serve::Config::default() });
        let gathered = exchange_everything(&server, "http", &client(Protocol::Spdy(version)));
        assert_eq!(gathered.spoken, [Protocol::Spdy(version)]);
    }
}

#[test]
fn spdy_by_upgrade_asks_again_as_a_stream() {
    let server = Running::start(serve::Config::default());
    let config = fetch::Config { upgrade: true, ..client(Protocol::Spdy(Version::V3_1)) };
    let gathered = exchange_everything(&server, "http", &config);
    assert_eq!(gathered.spoken, [Protocol::Http1, Protocol::Spdy(Version::V3_1)]);
}

#[test]
fn a_server_that_does_not_upgrade_is_spoken_http1_with() {
    let server = Running::start(serve::Config { upgrade: false, ..serve::Config::default() });
    let config = fetch::Config { upgrade: true, ..client(Protocol::Spdy(Version::V3_1)) };
    let gathered = exchange_everything(&server, "http", &config);
    assert_eq!(gathered.spoken, [Protocol::Http1]);
}

/// A server for all protocols over TLS.
#[cfg(feature = "tls")]
fn secure() -> serve::Config {
    let config = tls::ServerConfig {
        common: tls::Common::new(Protocol::ALL.map(Protocol::id)),
        identity: tls::Identity::self_signed(&["localhost".into(), "127.0.0.1".into()]).unwrap(),
        tickets: true,
        ocsp: None,
    };
    serve::Config { tls: Some(tls::Acceptor::new(&config).unwrap()), ..serve::Config::default() }
}

#[cfg(feature = "tls")]
#[test]
fn every_protocol_by_alpn_and_by_npn() {
    let server = Running::start(secure());
    for offer in [tls::Offer::Alpn, tls::Offer::Npn] {
        for protocol in Protocol::ALL {
            let mut config = client(protocol);
            config.tls.common.offer = offer;
            let gathered = exchange_everything(&server, "https", &config);
            assert_eq!(gathered.spoken, [protocol], "{offer:?}");
            let by = if offer == tls::Offer::Alpn { tls::By::Alpn } else { tls::By::Npn };
            assert_eq!(gathered.secured[0].protocol, Some((protocol.id().to_owned(), by)));
        }
    }
}

#[cfg(feature = "tls")]
#[test]
fn clear_text_and_tls_share_a_port() {
    let server = Running::start(secure());
    exchange_everything(&server, "http", &client(Protocol::Spdy(Version::V3_1)));
    exchange_everything(&server, "https", &client(Protocol::Spdy(Version::V3_1)));
}

#[cfg(feature = "tls")]
#[test]
fn small_records_carry_everything() {
    let server = Running::start(secure());
    let mut config = client(Protocol::Spdy(Version::V3_1));
    config.tls.common.record_size = Some(600);
    exchange_everything(&server, "https", &config);
}

#[test]
fn a_push_is_taken_and_answers_a_request_that_was_not_sent() {
    // With one stream at a time the second request waits, and finds the push when its turn comes.
    let one_stream = |version| spdy::Config { max_concurrent_streams: 1, ..spdy::Config::new(version) };
    let server = Running::start(serve::Config { spdy: one_stream.into(), ..serve::Config::default() });
    for version in [Version::V2, Version::V3_1] {
        let config = fetch::Config {
            spdy: |version| spdy::Config { assumed_streams: 1, ..spdy::Config::new(version) },
            ..client(Protocol::Spdy(version))
        };
        let requests = vec![get(server.url("http", "/push"), 0), get(server.url("http", "/bytes/1000"), 1)];
        let mut gathered = Gathered::default();
        let exchanges = fetch(requests, &config, &mut gathered).unwrap();
        assert_eq!(exchanges[2].pushed_with, Some(0));
        assert_eq!(exchanges[2].outcome, Outcome::Complete);
        gathered.check(2, 1_000);
        assert_eq!(gathered.bodies[&0], b"pusher");
        assert_eq!(exchanges[1].answered_by, Some(2));
        assert_eq!((exchanges[1].attempts, exchanges[1].body_len), (0, 1_000));
        assert_eq!(exchanges[1].outcome, Outcome::Complete);
    }
}

#[test]
fn a_client_without_pushes_gets_none() {
    let mut server = Running::start(serve::Config::default());
    let config = fetch::Config { push: false, ..client(Protocol::Spdy(Version::V3_1)) };
    let requests = vec![get(server.url("http", "/push"), 0)];
    let exchanges = fetch(requests, &config, &mut ()).unwrap();
    assert_eq!(exchanges.len(), 1);
    assert_eq!(exchanges[0].outcome, Outcome::Complete);
    assert_eq!(server.stop().pushes, 0, "MAX_CONCURRENT_STREAMS 0 was heeded");
}

#[test]
fn a_cancelled_response_leaves_the_session_to_others() {
    let server = Running::start(serve::Config::default());
    let config = fetch::Config { cancel_after: Some(100_000), ..client(Protocol::Spdy(Version::V3_1)) };
    let requests =
        vec![get(server.url("http", "/bytes/900000000"), 0), get(server.url("http", "/bytes/5000"), 1)];
    let mut gathered = Gathered::default();
    let exchanges = fetch(requests, &config, &mut gathered).unwrap();
    assert_eq!(exchanges[0].outcome, Outcome::Cancelled);
    assert_eq!(exchanges[1].outcome, Outcome::Complete);
    gathered.check(1, 5_000);
    assert_eq!(exchanges[1].connection, Some(0));
}

#[test]
fn a_server_that_shuts_down_finishes_what_it_was_asked() {
    for protocol in [Protocol::Http1, Protocol::Spdy(Version::V3_1)] {
        let mut server = Running::start(serve::Config::default());
        let requests =
            vec![get(server.url("http", "/bytes/3000000"), 0), get(server.url("http", "/slow/10"), 0)];
        let mut gathered = Gathered { at_first_head: Some(server.handle.clone()), ..Gathered::default() };
        let config = fetch::Config { attempts_max: 1, pipeline: 2, ..client(protocol) };
        let exchanges = fetch(requests, &config, &mut gathered).unwrap();
        for exchange in &exchanges {
            assert_eq!(
                exchange.outcome,
                Outcome::Complete,
                "{protocol}: {gathered:?}",
                gathered = gathered.closed
            );
        }
        gathered.check(0, 3_000_000);
        gathered.check(1, 10);
        let summary = server.stop();
        assert_eq!((summary.answers, summary.cut_off), (2, 0), "{protocol}");
        if protocol != Protocol::Http1 {
            assert_eq!(gathered.goaways, 1);
        }
    }
}

#[test]
fn a_client_that_goes_away_gets_what_it_asked_for() {
    let server = Running::start(serve::Config::default());
    for version in [Version::V2, Version::V3_1] {
        let config = fetch::Config { goaway: true, ..client(Protocol::Spdy(version)) };
        let mut gathered = Gathered::default();
        let exchanges =
            fetch(vec![get(server.url("http", "/bytes/400000"), 0)], &config, &mut gathered).unwrap();
        assert_eq!(exchanges[0].outcome, Outcome::Complete);
        gathered.check(0, 400_000);
    }
}

#[test]
fn requests_wait_for_each_other_if_they_are_told_to() {
    let server = Running::start(serve::Config::default());
    for (concurrent, at_once) in [(1, 1), (3, 3), (usize::MAX, 9)] {
        let config = fetch::Config { concurrent, ..client(Protocol::Spdy(Version::V3_1)) };
        let requests = (0..9).map(|_| get(server.url("http", "/push"), 0)).collect();
        let exchanges = fetch(requests, &config, &mut ()).unwrap();
        assert!(exchanges.iter().all(|e| e.outcome == Outcome::Complete));
        let under_way = |at: Instant| {
            let asked = exchanges.iter().filter(|e| e.pushed_with.is_none()).map(|e| e.timing);
            asked.filter(|t| t.sent.unwrap() <= at && at < t.complete.unwrap()).count()
        };
        let most = exchanges.iter().filter_map(|e| e.timing.sent).map(under_way).max();
        assert_eq!(most, Some(at_once), "{concurrent}");
    }
}

#[test]
fn what_cannot_be_connected_to_says_so() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = Url::parse(&format!("http://{address}/")).unwrap();
    let exchanges = fetch(vec![Request::get(url)], &client(Protocol::Http1), &mut ()).unwrap();
    let Outcome::Failed(why) = &exchanges[0].outcome else { panic!("{:?}", exchanges[0].outcome) };
    assert!(why.contains("refused"), "{why}");
    let url = Url::parse("http://name.invalid/").unwrap();
    let exchanges = fetch(vec![Request::get(url)], &client(Protocol::Http1), &mut ()).unwrap();
    let Outcome::Failed(why) = &exchanges[0].outcome else { panic!("{:?}", exchanges[0].outcome) };
    assert!(why.starts_with("name.invalid cannot be resolved"), "{why}");
}

#[test]
fn a_folder_serves_what_is_in_it_and_nothing_else() {
    let root: PathBuf = std::env::temp_dir().join(format!("velodrome-folder-{}", std::process::id()));
    std::fs::create_dir_all(root.join("in/side")).unwrap();
    std::fs::write(root.join("secret"), "outside").unwrap();
    std::fs::write(root.join("in/index.html"), "<p>hello").unwrap();
    std::fs::write(root.join("in/side/a b.css"), "p{}").unwrap();
    std::fs::write(root.join("in/large"), body(300_000)).unwrap();
    std::os::unix::fs::symlink("../secret", root.join("in/link")).unwrap();
    let server = Server::bind(&["127.0.0.1:0".parse().unwrap()], serve::Config::default()).unwrap();
    let (address, handle) = (server.addresses().unwrap()[0], server.handle());
    let mut folder = serve::Folder::new(&root.join("in"), serve::Uploads::Counted).unwrap();
    let thread = std::thread::spawn(move || server.run(&mut folder, &mut |_, _| {}).unwrap());
    let paths = ["/", "/side/a%20b.css?x=1", "/large", "/link", "/%2e%2e/secret", "/side", "/none"];
    let mut requests: Vec<_> =
        paths.iter().map(|p| Request::get(Url::parse(&format!("http://{address}{p}")).unwrap())).collect();
    requests.push(Request { method: "POST".into(), body: body(100_000), ..requests[0].clone() });
    let mut gathered = Gathered::default();
    let exchanges = fetch(requests, &client(Protocol::Spdy(Version::V3_1)), &mut gathered);
    handle.shut_down();
    thread.join().unwrap();
    std::fs::remove_dir_all(&root).unwrap();
    let exchanges = exchanges.unwrap();
    let statuses: Vec<_> = exchanges.iter().map(|e| e.response.as_ref().unwrap().status).collect();
    assert_eq!(statuses, [200, 200, 200, 404, 404, 404, 404, 200]);
    assert_eq!(gathered.bodies[&0], b"<p>hello");
    assert_eq!(gathered.bodies[&1], b"p{}");
    gathered.check(2, 300_000);
    let kind =
        |i: usize| exchanges[i].response.as_ref().unwrap().fields.get_str("content-type").unwrap().to_owned();
    assert_eq!((kind(0), kind(1)), ("text/html".to_owned(), "text/css".to_owned()));
    let crc = crc32fast::hash(&body(100_000));
    assert_eq!(gathered.bodies[&7], format!("100000 {crc:08x}\n").as_bytes());
}
