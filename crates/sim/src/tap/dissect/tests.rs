use base::BodyRange;
use load::Carried::{Body, Control, Handshake, Request, ResponseHead};
use tls::Message;

use super::*;

/// A stream's bytes and ranges, fed in pieces of at most `most` bytes.
fn read(up: bool, speaks: Speaks, chunks: &[Chunk], most: u64) -> Stream {
    let mut stream = Stream::new(up, speaks);
    for chunk in chunks {
        let mut chunk = chunk.clone();
        while !chunk.is_empty() {
            let n = most.min(chunk.len());
            stream.feed(&chunk.split_to(n));
        }
    }
    stream
}

fn text(text: &'static str) -> Chunk {
    text.as_bytes().to_vec().into()
}

const CLEAR: Speaks = Speaks { tls13: None, spdy: false };

#[test]
fn a_response_has_a_head_and_a_body_and_the_next_head_is_another_one_however_the_bytes_are_cut() {
    let (head, body) = (text("HTTP/1.1 200 OK\r\n\r\n"), Chunk::from(BodyRange::filler(5_000)));
    let chunked =
        [text("HTTP/1.1 200 OK\r\n\r\n10\r\n"), BodyRange::filler(16).into(), text("\r\n0\r\n\r\n")];
    let chunks: Vec<Chunk> =
        [head.clone(), body].into_iter().chain(chunked).chain([head.clone(), head]).collect();
    for most in [1, 7, 10_000] {
        let stream = read(false, CLEAR, &chunks, most);
        let all = [ResponseHead, Body, ResponseHead, Body, ResponseHead, ResponseHead];
        assert_eq!(stream.carried(0, u64::MAX), all, "in pieces of {most}");
        assert_eq!(stream.carried(19, 1_000), [Body]);
        assert_eq!(stream.carried(18, 20), [ResponseHead, Body]);
    }
}

#[test]
fn each_request_is_one_with_its_body() {
    let chunks =
        [text("POST / HTTP/1.1\r\n\r\n"), BodyRange::filler(300).into(), text("GET / HTTP/1.1\r\n\r\n")];
    for most in [1, 1_000] {
        assert_eq!(read(true, CLEAR, &chunks, most).carried(0, u64::MAX), [Request, Request]);
    }
}

#[test]
fn frames_of_spdy_are_told_by_their_headers() {
    let frame = |head: [u8; 8], payload: u64| [Chunk::from(head.to_vec()), BodyRange::filler(payload).into()];
    let settings = frame([0x80, 3, 0, 4, 0, 0, 0, 20], 20);
    let reply = frame([0x80, 3, 0, 2, 0, 0, 0, 60], 60);
    let data = frame([0, 0, 0, 1, 0, 0, 4, 0], 1_024);
    let ended = [Chunk::from(vec![0, 0, 0, 1, 1, 0, 0, 0])];
    let all: Vec<Chunk> =
        settings.iter().chain(&reply).chain(&data).chain(&ended).chain(&reply).cloned().collect();
    let speaks = Speaks { tls13: None, spdy: true };
    for most in [1, 3, 2_000] {
        assert_eq!(
            read(false, speaks, &all, most).carried(0, u64::MAX),
            [Control, ResponseHead, Body, ResponseHead]
        );
    }
}

/// What a client and a server of our own TLS say to each other, read in pieces.
fn handshake(mode: tls::Mode, most: u64) -> [Vec<Carried>; 2] {
    let config = tls::Config::new(mode);
    let now = base::Instant::ZERO;
    let mut ends = [tls::Session::client(config.clone(), now), tls::Session::server(config, now)];
    let speaks = Speaks { tls13: Some(mode.is_tls13()), spdy: false };
    let mut streams = [true, false].map(|up| Stream::new(up, speaks));
    for _ in 0..8 {
        for from in [0, 1] {
            while let Some(chunk) = ends[from].poll_transmit(now, most) {
                streams[from].feed(&chunk);
                ends[1 - from].handle_input(now, chunk).expect("a peer of its own kind");
            }
        }
    }
    assert!(ends.iter().all(tls::Session::can_send));
    ends[0].write(text("GET / HTTP/1.1\r\n\r\n"));
    while let Some(chunk) = ends[0].poll_transmit(now, most) {
        streams[0].feed(&chunk);
    }
    streams.map(|stream| stream.carried(0, u64::MAX))
}

#[test]
fn a_handshake_of_tls_1_2_is_read_to_its_finished_and_beyond() {
    use Message::*;
    for most in [1, 1_460] {
        let [client, server] = handshake(tls::Mode::Tls12Full, most);
        let own = [ClientHello, ClientKeyExchange, ChangeCipherSpec, Finished].map(Handshake);
        assert_eq!(client, [&own[..], &[Request]].concat());
        let peers = [
            ServerHello,
            Certificate,
            ServerKeyExchange,
            ServerHelloDone,
            NewSessionTicket,
            ChangeCipherSpec,
            Finished,
        ];
        assert_eq!(server, peers.map(Handshake));
    }
}

#[test]
fn a_handshake_of_tls_1_3_is_read_though_its_records_say_that_they_are_data() {
    use Message::*;
    for most in [1, 1_460] {
        let [client, server] = handshake(tls::Mode::Tls13Full, most);
        let own = [ClientHello, ChangeCipherSpec, Finished].map(Handshake);
        assert_eq!(client, [&own[..], &[Request]].concat());
        let peers = [
            ServerHello,
            ChangeCipherSpec,
            EncryptedExtensions,
            Certificate,
            CertificateVerify,
            Finished,
            NewSessionTicket,
            NewSessionTicket,
        ];
        assert_eq!(server, peers.map(Handshake));
    }
}
