#![allow(dead_code, reason = "each of the programs that include this file uses a part of it")]

//! What the fuzzer runs. Ordinary tests run the same functions: this file is a module of both.
//!
//! Each function states what must hold for *any* bytes: no panic, no byte invented, the same outcome however the
//! bytes are cut, and for heads the same reading as another parser's.

use std::fmt::Write;

use base::{BodyRange, Chunk, Fields, Instant, RequestHead, ResponseHead, Rng};
use bytes::Bytes;
use http1::{Error, client, server};

/// Events as one line of text, so that two runs compare and a difference can be read.
#[derive(Default)]
pub struct Transcript {
    text: String,
    body: Vec<u8>,
    ranges: u64,
}

impl Transcript {
    fn say(&mut self, what: std::fmt::Arguments<'_>) {
        self.flush();
        if !self.text.is_empty() {
            self.text.push_str(" | ");
        }
        let _ = self.text.write_fmt(what);
    }

    /// Body bytes are joined, since cuts in the input show in them and may.
    fn flush(&mut self) {
        let (body, ranges) = (std::mem::take(&mut self.body), std::mem::take(&mut self.ranges));
        if !body.is_empty() {
            self.say(format_args!("body {}", String::from_utf8_lossy(&body)));
        }
        if ranges > 0 {
            self.say(format_args!("range {ranges}"));
        }
    }

    fn data(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Bytes(b) => self.body.extend_from_slice(b),
            Chunk::Body(r) => self.ranges += r.len,
        }
    }

    fn fields(fields: &Fields) -> String {
        fields.iter().fold(String::new(), |mut out, f| {
            let (name, value) = (String::from_utf8_lossy(&f.name), String::from_utf8_lossy(&f.value));
            let _ = write!(out, " {name}={value}");
            out
        })
    }

    pub fn client(&mut self, event: &client::Event) {
        match event {
            client::Event::Informational(h) => {
                self.say(format_args!("{}{}", h.status, Self::fields(&h.fields)));
            }
            client::Event::Response { head: h, body, .. } => {
                self.say(format_args!("{} {body:?}{}", h.status, Self::fields(&h.fields)));
            }
            client::Event::Body(chunk) => self.data(chunk),
            client::Event::Trailers(f) => self.say(format_args!("trailers{}", Self::fields(f))),
            client::Event::Complete { reusable: true } => self.say(format_args!("done")),
            client::Event::Complete { reusable: false } => self.say(format_args!("last")),
        }
    }

    pub fn server(&mut self, event: &server::Event) {
        match event {
            server::Event::Request { head: h, body, expects_continue, .. } => {
                let text = String::from_utf8_lossy;
                let (method, scheme) = (text(&h.method), text(&h.scheme));
                let (authority, path) = (text(&h.authority), text(&h.path));
                let wait = if *expects_continue { " waits" } else { "" };
                let fields = Self::fields(&h.fields);
                self.say(format_args!("{method} {scheme}://{authority}{path} {body:?}{wait}{fields}"));
            }
            server::Event::Body(chunk) => self.data(chunk),
            server::Event::Trailers(f) => self.say(format_args!("trailers{}", Self::fields(f))),
            server::Event::RequestComplete => self.say(format_args!("done")),
        }
    }

    pub fn end(mut self, result: Result<(), Error>) -> String {
        match result {
            Ok(()) => self.flush(),
            Err(e) => self.say(format_args!("{e:?}")),
        }
        self.text
    }
}

/// A GET for `/` on host `h`, with another method if asked.
pub fn get(method: &str) -> RequestHead {
    RequestHead {
        method: Bytes::copy_from_slice(method.as_bytes()),
        scheme: "http".into(),
        authority: "h".into(),
        path: "/".into(),
        fields: Fields::new(),
    }
}

/// Cuts `wire` into pieces whose lengths `cut` gives.
fn pieces(wire: &Bytes, mut cut: impl FnMut() -> usize) -> Vec<Chunk> {
    let mut rest = wire.clone();
    let mut out = Vec::new();
    while !rest.is_empty() {
        let n = cut().clamp(1, rest.len());
        out.push(Chunk::Bytes(rest.split_to(n)));
    }
    out
}

/// What a client that asked with `methods` makes of the input and of its end. `UPGRADE` is a GET that offers one.
pub fn play_client(methods: &[&str], input: impl IntoIterator<Item = Chunk>) -> String {
    let mut client = client::Connection::new();
    for method in methods {
        let mut head = get(if *method == "UPGRADE" { "GET" } else { method });
        if *method == "UPGRADE" {
            head.fields.push("Upgrade", "spdy/3.1");
        }
        client.request(&head, None).unwrap();
    }
    while client.poll_transmit(u64::MAX).is_some() {}
    let (mut transcript, mut result) = (Transcript::default(), Ok(()));
    let (mut given, mut delivered) = (0, 0);
    for chunk in input {
        given += chunk.len();
        result = client.handle_input(Instant::ZERO, chunk);
        while let Some(event) = client.poll_event() {
            if let client::Event::Body(chunk) = &event {
                assert!(!chunk.is_empty());
                delivered += chunk.len();
            }
            transcript.client(&event);
        }
        if result.is_err() {
            assert_eq!(client.handle_input(Instant::ZERO, Chunk::from(vec![b'x'])), result, "an error stays");
            break;
        }
    }
    assert!(delivered <= given, "no byte is invented");
    if result.is_ok() {
        result = client.handle_eof();
        while let Some(event) = client.poll_event() {
            transcript.client(&event);
        }
    }
    assert!(client.unanswered() <= client.outstanding());
    transcript.end(result)
}

/// What a server makes of the input and of its end, and what it sent once it had all of it and answered with 200.
pub fn play_server(input: impl IntoIterator<Item = Chunk>) -> (String, Vec<u8>) {
    let mut server = server::Connection::new();
    let mut transcript = Transcript::default();
    let mut result = Ok(());
    for chunk in input {
        result = server.handle_input(Instant::ZERO, chunk);
        if result.is_err() {
            break;
        }
    }
    if result.is_ok() {
        result = server.handle_eof();
    }
    let mut out = Vec::new();
    loop {
        while let Some(event) = server.poll_event() {
            transcript.server(&event);
        }
        while let Some(chunk) = server.poll_transmit(7) {
            let Chunk::Bytes(bytes) = chunk else { panic!("no range was sent") };
            out.extend_from_slice(&bytes);
        }
        if server.outstanding() == 0 {
            break;
        }
        server.respond(&ResponseHead { status: 200, fields: Fields::new() }, Some(2)).unwrap();
        server.send_body(Chunk::from(b"ok".to_vec())).unwrap();
        server.finish().unwrap();
    }
    assert!(server.should_close(), "after its client's end a server that owes nothing closes");
    let failure = server.failure().map_or(result, |e| Err(e.into()));
    (transcript.end(failure), out)
}

/// A client reads `data` as responses: whole, byte by byte and in random pieces.
pub fn response(data: &[u8]) {
    let [setup, wire @ ..] = data else { return };
    let methods = ["GET", "HEAD", "POST", "CONNECT", "UPGRADE"];
    // A CONNECT or an upgrade admits nothing after it, so one of them can only be the last.
    let last = methods[*setup as usize % methods.len()];
    let mut asked = vec!["GET", "HEAD", "GET"][..(*setup as usize >> 6) % 4].to_vec();
    asked.push(last);
    let wire = Bytes::copy_from_slice(wire);
    let whole = play_client(&asked, pieces(&wire, || usize::MAX));
    assert_eq!(play_client(&asked, pieces(&wire, || 1)), whole);
    let mut rng = Rng::new(u64::from(*setup));
    assert_eq!(play_client(&asked, pieces(&wire, || rng.below(16) as usize)), whole);
}

/// A server reads `data` as requests: whole, byte by byte and in random pieces; another parser reads the first head.
pub fn request(data: &[u8]) {
    let wire = Bytes::copy_from_slice(data);
    let whole = play_server(pieces(&wire, || usize::MAX));
    // Bytes held back while the limit of outstanding requests is reached depend on the cuts; nothing else does.
    if data.len() < 64 * 1024 {
        assert_eq!(play_server(pieces(&wire, || 1)), whole);
        let mut rng = Rng::new(data.len() as u64);
        assert_eq!(play_server(pieces(&wire, || rng.below(16) as usize)), whole);
    }
    compare_head(&wire);
}

/// Whether httparse reads the first head of `wire` as we do, if we take it at all and it can read it.
fn compare_head(wire: &Bytes) {
    let mut server = server::Connection::new();
    let _ = server.handle_input(Instant::ZERO, Chunk::Bytes(wire.clone()));
    let Some(server::Event::Request { head, head_len, .. }) = server.poll_event() else { return };
    let mut room = [httparse::EMPTY_HEADER; 256];
    let mut theirs = httparse::Request::new(&mut room);
    let start = wire.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
    match theirs.parse(&wire[start..]) {
        Ok(httparse::Status::Complete(n)) => assert_eq!(n as u64, head_len),
        Ok(httparse::Status::Partial) => panic!("a head ended too early"),
        // It knows no HTTP/1.2 and is stricter about the target.
        Err(httparse::Error::Version | httparse::Error::Token) => return,
        Err(e) => panic!("we took what httparse refuses: {e}"),
    }
    assert_eq!(theirs.method.map(str::as_bytes), Some(&head.method[..]));
    let mut ours = head.fields.iter();
    for header in theirs.headers {
        let owned = ["host", "te", "connection", "keep-alive", "proxy-connection", "transfer-encoding"];
        if owned.iter().any(|o| header.name.eq_ignore_ascii_case(o)) {
            continue;
        }
        let field = ours.next().expect("as many fields");
        assert_eq!((header.name.as_bytes(), header.value), (&field.name[..], &field.value[..]));
    }
    assert!(ours.next().is_none());
}

/// One request and its response.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub method: &'static str,
    /// Length, and whether it is announced rather than chunked. Half of a body is real bytes.
    pub request_body: (u16, bool),
    pub status: u16,
    pub response_body: (u16, bool),
    /// Whether a 103 comes first.
    pub interim: bool,
}

/// Reads a script for [`pair`] from bytes, five to an exchange, and runs it.
pub fn pair_script(data: &[u8]) {
    let [seed, rest @ ..] = data else { return };
    let exchanges: Vec<_> = rest
        .chunks_exact(5)
        .take(64)
        .map(|b| Exchange {
            method: ["GET", "POST", "HEAD", "PUT", "OPTIONS"][b[0] as usize % 5],
            request_body: (u16::from(b[1]), b[0] & 8 == 0),
            status: [200, 204, 304, 404, 500][b[2] as usize % 5],
            response_body: (u16::from_le_bytes([b[3], b[4] & 0x0f]), b[4] & 0x80 == 0),
            interim: b[2] & 0x40 != 0,
        })
        .collect();
    pair(&exchanges, u64::from(*seed));
}

/// A body in at most two pieces: real bytes, then a range that stands for the rest.
fn body_of(index: usize, len: u16) -> Vec<Chunk> {
    let real = len / 2;
    let range = BodyRange { source: index as u32, start: u64::from(real), len: u64::from(len - real) };
    vec![Chunk::from(vec![index as u8; usize::from(real)]), Chunk::Body(range)]
}

/// Collects a body and checks it against [`body_of`].
#[derive(Default)]
struct Received(u64);

impl Received {
    fn take(&mut self, index: usize, len: u16, chunk: &Chunk) {
        let real = u64::from(len / 2);
        match chunk {
            Chunk::Bytes(b) => {
                assert!(self.0 + b.len() as u64 <= real && b.iter().all(|b| *b == index as u8));
            }
            Chunk::Body(r) => assert_eq!((r.source as usize, r.start), (index, self.0)),
        }
        self.0 += chunk.len();
    }
}

/// A client sends all exchanges down one pipeline, a server answers them; the order of steps and the cuts follow from
/// `seed`. What arrives must be what was sent, in order, and nothing may remain.
pub fn pair(exchanges: &[Exchange], seed: u64) {
    let (mut client, mut server) = (client::Connection::new(), server::Connection::new());
    let mut rng = Rng::new(seed);
    let (mut asked, mut read, mut answered, mut done) = (0, 0, 0, 0);
    let (mut up, mut down) = (Received::default(), Received::default());
    let mut steps = 0;
    while done < exchanges.len() {
        steps += 1;
        assert!(steps < 1_000_000, "stuck: asked {asked}, read {read}, answered {answered}, done {done}");
        let now = Instant::from_nanos(steps);
        match rng.below(4) {
            0 if asked < exchanges.len() && client.can_request() => {
                ask(&mut client, &exchanges[asked], asked);
                asked += 1;
            }
            1 if answered < read => {
                answer(&mut server, &exchanges[answered], answered);
                answered += 1;
            }
            2 if server.wants_input() => {
                let Some(chunk) = client.poll_transmit(1 + rng.below(200)) else { continue };
                server.handle_input(now, chunk).unwrap();
            }
            3 => {
                let Some(chunk) = server.poll_transmit(1 + rng.below(200)) else { continue };
                client.handle_input(now, chunk).unwrap();
            }
            _ => {}
        }
        while let Some(event) = server.poll_event() {
            let Some(x) = exchanges.get(read) else { panic!("more requests than sent") };
            match event {
                server::Event::Request { head, .. } => assert_eq!(head, request_head(x, read)),
                server::Event::Body(chunk) => up.take(read, x.request_body.0, &chunk),
                server::Event::Trailers(_) => panic!("none were sent"),
                server::Event::RequestComplete => {
                    assert_eq!(std::mem::take(&mut up).0, u64::from(x.request_body.0));
                    read += 1;
                }
            }
        }
        while let Some(event) = client.poll_event() {
            let Some(x) = exchanges.get(done) else { panic!("more responses than sent") };
            match event {
                client::Event::Informational(head) => assert!(x.interim && head.status == 103),
                client::Event::Response { head, .. } => assert_eq!(head.status, x.status),
                client::Event::Body(chunk) => down.take(done, x.response_body.0, &chunk),
                client::Event::Trailers(_) => panic!("none were sent"),
                client::Event::Complete { reusable } => {
                    assert!(reusable);
                    let bare = x.method == "HEAD" || matches!(x.status, 204 | 304);
                    let len = if bare { 0 } else { x.response_body.0 };
                    assert_eq!(std::mem::take(&mut down).0, u64::from(len));
                    done += 1;
                }
            }
        }
    }
    assert_eq!((client.poll_transmit(1), server.poll_transmit(1)), (None, None));
    assert_eq!((client.outstanding(), server.outstanding()), (0, 0));
    let (c, s) = (client.stats(), server.stats());
    assert_eq!((c.bytes_out, c.bytes_in), (s.bytes_in, s.bytes_out));
    assert_eq!((c.body_bytes_out, c.body_bytes_in), (s.body_bytes_in, s.body_bytes_out));
    assert_eq!((c.head_bytes_out, c.head_bytes_in), (s.head_bytes_in, s.head_bytes_out));
    client.handle_eof().unwrap();
    server.handle_eof().unwrap();
    assert!(server.should_close());
}

fn request_head(x: &Exchange, index: usize) -> RequestHead {
    let mut head = get(x.method);
    head.path = format!("/{index}").into();
    head.fields.push("X-Index", index.to_string());
    if x.request_body.1 && (x.request_body.0 > 0 || matches!(x.method, "POST" | "PUT")) {
        // Where the engine puts it, so that what arrives equals what was asked.
        head.fields.push("Content-Length", x.request_body.0.to_string());
    }
    head
}

fn ask(client: &mut client::Connection, x: &Exchange, index: usize) {
    let head = request_head(x, index);
    let (len, announced) = x.request_body;
    if announced { client.request(&head, Some(len.into())) } else { client.request_chunked(&head) }.unwrap();
    for chunk in body_of(index, len) {
        client.send_body(chunk).unwrap();
    }
    client.finish().unwrap();
}

fn answer(server: &mut server::Connection, x: &Exchange, index: usize) {
    if x.interim {
        server.inform(&ResponseHead { status: 103, fields: Fields::new() }).unwrap();
    }
    let (len, announced) = x.response_body;
    let head = ResponseHead { status: x.status, fields: Fields::new() };
    server.respond(&head, announced.then_some(len.into())).unwrap();
    for chunk in body_of(index, len) {
        server.send_body(chunk).unwrap();
    }
    server.finish().unwrap();
}
