//! An independent decoder reads what we send: `tshark` dissects whole sessions of ours, in SPDY/3 and 3.1, without a
//! malformed frame, and sees frame for frame what our own passive decoder sees.
//!
//! The bytes are those of real sessions over loopback sockets, and of two engines for the frames that no HTTP server sends
//! (HEADERS, PING); the packets around them are made up ([`interop::capture`]), as capturing takes privileges. Without
//! `tshark` the tests say so and check nothing; with CI set they fail.
//!
//! What its dissector cannot do (read in the source of Wireshark 4.0, packet-spdy.c): it remembers inflated blocks by stream
//! and type for the whole file, so each connection has a file of its own here, and a stream one HEADERS frame; it takes
//! HEADERS for the server's, so no client sends any; and it knows nothing of version 2, of which it shows the types alone.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::Command;

use base::{Chunk, Duration, Fields, Instant, RequestHead, ResponseHead};
use bytes::Bytes;
use interop::capture::Capture;
use interop::contract::{self, LARGE, PARALLEL, PARALLEL_BASE};
use interop::site::Running;
use live::fetch::{self, Direction, Event, Exchange, Observer, Outcome, Protocol, Request, Url};
use live::{serve, tls};
use spdy::trace::{Content, Decoder};
use spdy::{Config, Limits, Priority, Session, Version};

/// What was said on one connection: whether by the client, and the bytes.
type Said = Vec<(bool, Vec<u8>)>;

/// Keeps every byte of every connection.
#[derive(Default)]
struct Recorder(BTreeMap<usize, Said>);

impl Observer for Recorder {
    fn event(&mut self, _: Instant, event: &Event<'_>, _: &[Exchange]) {
        if let Event::Wire { connection, direction, bytes } = event {
            self.0.entry(*connection).or_default().push((*direction == Direction::Up, bytes.to_vec()));
        }
    }
}

/// A session of our client with our server with everything that HTTP has: GET, POST, 100 streams at once, a push, a reset,
/// GOAWAY in mid-flight.
fn session_over_sockets(version: Version) -> Vec<Said> {
    let server = Running::start(version, serve::Config::default()).unwrap();
    let get =
        |path: &str| Request::get(Url::parse(&format!("http://localhost:{}{path}", server.port())).unwrap());
    let mut requests = vec![get("/small"), get(&format!("/bytes/{LARGE}")), get("/push"), get("/endless")];
    requests.push(Request { method: "POST".into(), body: contract::body(LARGE), ..get("/upload") });
    requests.extend((0..PARALLEL).map(|i| get(&format!("/bytes/{}", PARALLEL_BASE + i))));
    requests.push(get("/goaway"));
    let mut config = fetch::Config::new(tls::Trust::Anybody);
    config.protocols = vec![Protocol::Spdy(version)];
    config.resolve = vec![("localhost".into(), None, IpAddr::V4(Ipv4Addr::LOCALHOST))];
    // /endless alone is longer.
    config.cancel_after = Some(LARGE + 1);
    config.goaway = true;
    // Its windows are small: they need WINDOW_UPDATE.
    config.spdy = Config::chrome_2012;
    config.idle_timeout = Duration::from_secs(20);
    let mut recorder = Recorder::default();
    let exchanges = fetch::fetch(requests, &config, &mut recorder).unwrap();
    for exchange in &exchanges {
        let wanted = match exchange.request.url.path() {
            "/endless" => Outcome::Cancelled,
            _ => Outcome::Complete,
        };
        assert_eq!(exchange.outcome, wanted, "{}", exchange.request.url);
    }
    assert!(exchanges.iter().any(|exchange| exchange.pushed_with.is_some()));
    recorder.0.into_values().collect()
}

/// Two engines in memory: PING either way, HEADERS in the middle of one stream and at the end of another.
fn session_in_memory(version: Version) -> Said {
    let config = Config { max_data_frame: 1_000, ..Config::new(version) };
    let [mut client, mut server] = [Session::client(config.clone()), Session::server(config)];
    let fields = |name: &'static str| {
        let mut fields = Fields::new();
        fields.push(name, "x");
        fields
    };
    let head = RequestHead {
        method: "GET".into(),
        scheme: "http".into(),
        authority: "localhost".into(),
        path: "/".into(),
        fields: fields("x-request"),
    };
    let ids = [0, 1].map(|_| client.request(&head, Priority::new(0), true).unwrap());
    client.ping(Instant::ZERO);
    let mut said = Said::new();
    exchange(&mut client, &mut server, &mut said);
    for (id, last) in ids.into_iter().zip([false, true]) {
        server.respond(id, &ResponseHead { status: 200, fields: fields("x-response") }, false).unwrap();
        server.send(id, Bytes::from(vec![7; 5_000]).into(), false).unwrap();
        server.send_headers(id, &fields("x-more"), last).unwrap();
    }
    server.send(ids[0], Bytes::from(vec![8; 5_000]).into(), true).unwrap();
    server.ping(Instant::ZERO);
    exchange(&mut client, &mut server, &mut said);
    server.goaway();
    exchange(&mut client, &mut server, &mut said);
    said
}

/// The same connection, left amid its last frame of data.
fn cut_short(mut said: Said) -> Said {
    while said.pop_if(|(up, bytes)| *up || bytes.len() < 1_000).is_some() {}
    let (_, last) = said.last_mut().expect("it has data");
    last.truncate(500);
    said
}

/// Carries all that either end has to say, and records it.
fn exchange(client: &mut Session, server: &mut Session, said: &mut Said) {
    loop {
        let before = said.len();
        for up in [true, false] {
            let (from, to) = if up { (&mut *client, &mut *server) } else { (&mut *server, &mut *client) };
            while let Some(chunk) = from.poll_transmit(Instant::ZERO, 16_384) {
                let Chunk::Bytes(bytes) = &chunk else { unreachable!("only bytes were sent") };
                said.push((up, bytes.to_vec()));
                to.handle_input(Instant::ZERO, chunk).unwrap();
            }
            while to.poll_event().is_some() {}
        }
        if said.len() == before {
            return;
        }
    }
}

/// A frame as both decoders tell it: its direction and length, and of a control frame its type; its stream, if the type has
/// one; the names and values of its fields.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Seen {
    up: bool,
    kind: Option<u16>,
    len: u32,
    stream: Option<u32>,
    fields: Vec<(String, String)>,
}

/// What our own decoder sees of a connection, each direction in its order.
fn ours(version: Version, said: &Said) -> Vec<Seen> {
    let mut seen = Vec::new();
    for up in [true, false] {
        let mut decoder = Decoder::new(version, Limits::default());
        let mut len = 0;
        for (_, bytes) in said.iter().filter(|(by_client, _)| *by_client == up) {
            decoder.handle_input(Bytes::copy_from_slice(bytes).into());
            len += bytes.len() as u64;
        }
        while let Some(frame) = decoder.poll_frame().unwrap() {
            // The client leaves when it has what it wants, maybe amid the rest of what it cancelled. We know such a frame by
            // its head, a dissector only when it is whole.
            if frame.offset + u64::from(frame.wire_len) <= len {
                seen.push(one(up, frame.wire_len - 8, frame.fields(), &frame.content));
            }
        }
        // The client has no such excuse.
        assert!(!up || !decoder.is_amid_frame());
    }
    seen
}

fn one(up: bool, len: u32, fields: Option<&Fields>, content: &Content) -> Seen {
    use spdy::frame::Control;
    let (kind, stream) = match content {
        Content::Data { id, .. } => (None, Some(*id)),
        Content::Control(control) => match control {
            Control::SynStream { id, .. } => (Some(1), Some(*id)),
            Control::SynReply { id, .. } => (Some(2), Some(*id)),
            Control::RstStream { id, .. } => (Some(3), Some(*id)),
            Control::Settings { .. } => (Some(4), None),
            Control::Ping { .. } => (Some(6), None),
            Control::GoAway { .. } => (Some(7), None),
            Control::Headers { id, .. } => (Some(8), Some(*id)),
            Control::WindowUpdate { id, .. } => (Some(9), Some(*id)),
            other => panic!("no session of ours has {other:?}"),
        },
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields = fields.into_iter().flat_map(Fields::iter).map(|f| (text(&f.name), text(&f.value))).collect();
    Seen { up, kind, len, stream, fields }
}

/// `tshark`, if it is here; with CI set it has to be.
fn tshark() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("tshark")).find(|p| p.is_file());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "CI checks this with tshark: xtask/tools.sh installs it");
        eprintln!("skipped: there is no tshark to read our sessions; install your system's tshark package");
    }
    found
}

/// The ends of every capture.
const PORTS: [u16; 2] = [50_000, 40_080];

/// Writes a connection into a file.
fn captured(version: Version, number: usize, said: &Said) -> PathBuf {
    let mut capture = Capture::default();
    let [client, server] = PORTS.map(|port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
    capture.connection(client, server, said.iter().map(|(up, bytes)| (*up, &bytes[..])));
    let name = format!("{}-{number}.pcap", version.protocol_id().replace('/', "-"));
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, capture.into_bytes()).unwrap();
    file
}

/// What `tshark` says of a file with these arguments.
fn dissected(tshark: &Path, file: &Path, arguments: &[&str]) -> String {
    let decode_as = format!("tcp.port=={},spdy", PORTS[1]);
    let output = Command::new(tshark)
        // -n: no names are looked up.
        .args(["-n", "-d", &decode_as, "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-r"])
        .arg(file)
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The frames in `tshark`'s JSON of a whole connection, each direction in its order.
fn theirs(json: &serde_json::Value) -> Vec<Seen> {
    let mut seen = [Vec::new(), Vec::new()];
    for packet in json.as_array().unwrap() {
        let layers = packet["_source"]["layers"].as_object().unwrap();
        let number = |value: &serde_json::Value| value.as_str().unwrap().parse::<u32>().unwrap();
        let up = number(&layers["tcp"]["tcp.srcport"]) == u32::from(PORTS[0]);
        let frames = match layers.get("spdy") {
            None => continue,
            // `--no-duplicate-keys` makes an array of what is several times in a packet.
            Some(serde_json::Value::Array(frames)) => frames.iter().collect(),
            Some(frame) => vec![frame],
        };
        seen[usize::from(!up)].extend(frames.into_iter().map(|frame| frame_of(up, frame)));
    }
    let [up, down] = seen;
    up.into_iter().chain(down).collect()
}

fn frame_of(up: bool, frame: &serde_json::Value) -> Seen {
    let number = |key: &str| {
        let value = frame.get(key)?.as_str()?;
        match value.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => value.parse().ok(),
        }
    };
    let fields = match frame.get("spdy.header") {
        None => Vec::new(),
        Some(serde_json::Value::Array(fields)) => fields.iter().collect(),
        Some(field) => vec![field],
    };
    let text = |field: &serde_json::Value, key: &str| field[key].as_str().unwrap_or_default().to_owned();
    Seen {
        up,
        kind: number("spdy.type").map(|kind| kind as u16),
        len: number("spdy.length").unwrap_or_else(|| panic!("no length: {frame}")),
        stream: number("spdy.streamid"),
        fields: fields
            .into_iter()
            .map(|field| (text(field, "spdy.header.name"), text(field, "spdy.header.value")))
            .collect(),
    }
}

/// Everything by which `tshark` marks what it cannot read, or read otherwise than it was written.
const FAULTS: &str = "_ws.malformed || _ws.expert.severity == error || spdy.malformed.frame_data \
    || spdy.malformed.setting_frame || spdy.inflation_failed || spdy.rst_stream.invalid || spdy.goaway.invalid \
    || spdy.type.invalid || tcp.analysis.flags || ip.checksum.status == 0 || tcp.checksum.status == 0";

fn reads(version: Version) {
    let Some(tshark) = tshark() else { return };
    let mut connections = session_over_sockets(version);
    connections.push(session_in_memory(version));
    connections.push(cut_short(session_in_memory(version)));
    let mut kinds = BTreeMap::new();
    for (i, said) in connections.iter().enumerate() {
        let file = captured(version, i, said);
        assert_eq!(dissected(&tshark, &file, &["-Y", FAULTS]), "", "malformed on connection {i}");
        let json = dissected(&tshark, &file, &["-T", "json", "--no-duplicate-keys", "-J", "tcp spdy"]);
        let [ours, theirs] = [ours(version, said), theirs(&serde_json::from_str(&json).unwrap())];
        for (at, (our, their)) in ours.iter().zip(&theirs).enumerate() {
            assert_eq!(our, their, "frame {at} of connection {i}");
        }
        assert_eq!(ours.len(), theirs.len(), "frames of connection {i}");
        ours.iter().for_each(|seen| *kinds.entry(seen.kind).or_insert(0) += 1);
    }
    // Every type of frame was among them: DATA, then by number, but for NOOP and CREDENTIAL, which are never sent.
    let all: Vec<_> = [None].into_iter().chain([1, 2, 3, 4, 6, 7, 8, 9].map(Some)).collect();
    assert_eq!(kinds.keys().copied().collect::<Vec<_>>(), all, "{kinds:?}");
    println!("{}: {} frames, {kinds:?}", version.protocol_id(), kinds.values().sum::<i32>());
}

#[test]
fn tshark_reads_every_frame_of_version_3() {
    reads(Version::V3);
}

#[test]
fn tshark_reads_every_frame_of_version_3_1() {
    reads(Version::V3_1);
}
