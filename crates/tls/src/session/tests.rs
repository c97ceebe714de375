//! Two sessions over a pipe with a round-trip time, in virtual time.

use std::collections::VecDeque;

use base::{BodyRange, Chunk, ChunkQueue, Duration, Instant, Rng};
use bytes::Bytes;
use proptest::prelude::*;

use crate::*;

const RTT: Duration = Duration::from_millis(100);
const MODES: [Mode; 4] = [Mode::Tls12Full, Mode::Tls12Resumed, Mode::Tls13Full, Mode::Tls13Resumed];

/// A client and a server with a lossless pipe between them that takes half an RTT, however much is sent.
struct Pair {
    client: Session,
    server: Session,
    now: Instant,
    /// Chunks on their way, with the time of arrival and whether they go up.
    wire: VecDeque<(Instant, bool, Chunk)>,
    /// Bytes that each end sent at one moment; `true` is the client's.
    flights: Vec<(bool, u64)>,
    /// Everything sent, up and down.
    sent: [ChunkQueue; 2],
    /// Everything read, by the server and by the client, and when the first of it was.
    read: [ChunkQueue; 2],
    first_read: [Option<Instant>; 2],
    /// Cuts what is sent and what is delivered into random pieces.
    cut: Option<Rng>,
}

impl Pair {
    fn new(config: &Config) -> Self {
        let now = Instant::ZERO;
        Self {
            client: Session::client(config.clone(), now),
            server: Session::server(config.clone(), now),
            now,
            wire: VecDeque::new(),
            flights: Vec::new(),
            sent: Default::default(),
            read: Default::default(),
            first_read: [None; 2],
            cut: None,
        }
    }

    /// A pair whose handshake is over.
    fn established(config: &Config) -> Self {
        let mut pair = Self::new(config);
        pair.run();
        assert!(!pair.client.is_handshaking() && !pair.server.is_handshaking());
        pair
    }

    fn piece(&mut self, most: u64) -> u64 {
        self.cut.as_mut().map_or(most, |rng| 1 + rng.below(most.min(2_000)))
    }

    /// Sends all there is to send.
    fn transmit(&mut self) {
        for up in [true, false] {
            let mut bytes = 0;
            loop {
                let max = self.piece(u64::MAX);
                let end = if up { &mut self.client } else { &mut self.server };
                let Some(chunk) = end.poll_transmit(self.now, max) else { break };
                assert!((1..=max).contains(&chunk.len()));
                bytes += chunk.len();
                self.sent[usize::from(!up)].push(chunk.clone());
                self.wire.push_back((self.now + RTT / 2, up, chunk));
            }
            if bytes > 0 {
                self.flights.push((up, bytes));
            }
        }
    }

    fn deliver(&mut self, up: bool, mut chunk: Chunk) {
        while !chunk.is_empty() {
            let piece = self.piece(chunk.len()).min(chunk.len());
            let end = if up { &mut self.server } else { &mut self.client };
            end.handle_input(self.now, chunk.split_to(piece)).unwrap();
            while let Some(chunk) = end.read() {
                self.read[usize::from(!up)].push(chunk);
                self.first_read[usize::from(!up)].get_or_insert(self.now);
            }
        }
    }

    /// Runs until nothing is on the wire and nothing is held back.
    fn run(&mut self) {
        loop {
            self.transmit();
            let timers = [self.client.poll_timeout(), self.server.poll_timeout()];
            let arrival = self.wire.front().map(|(at, ..)| *at);
            let Some(next) = timers.into_iter().flatten().chain(arrival).min() else { return };
            self.now = next;
            while self.wire.front().is_some_and(|(at, ..)| *at <= next) {
                let (_, up, chunk) = self.wire.pop_front().expect("just seen");
                self.deliver(up, chunk);
            }
        }
    }
}

fn body(len: u64) -> Chunk {
    BodyRange { source: 1, start: 0, len }.into()
}

/// Plaintext lengths of the records of application data in a stream, whose headers must add up.
fn data_records(mut stream: ChunkQueue, mode: Mode) -> Vec<u64> {
    let mut out = Vec::new();
    while !stream.is_empty() {
        let header = stream.take_bytes(5).unwrap();
        let mut len = u64::from(u16::from_be_bytes([header[3], header[4]]));
        let expansion = if mode.is_tls13() { 17 } else { 24 };
        let mut is_data = header[0] == 23;
        let mut rest = ChunkQueue::new();
        while len > 0 {
            let chunk = stream.pop(len).expect("a record is complete");
            len -= chunk.len();
            rest.push(chunk);
        }
        let plaintext = rest.len().saturating_sub(expansion);
        if is_data && mode.is_tls13() {
            is_data = super::byte_at(&rest, plaintext) == Some(23);
        }
        if is_data {
            out.push(plaintext);
        }
    }
    out
}

#[test]
fn round_trips_before_the_first_byte_are_those_of_the_specifications() {
    let with = |mode, false_start| Config { false_start, ..Config::new(mode) };
    // Round trips before the request leaves, TCP's own not counted: RFC 5246 section 7.3, RFC 7918 section 1,
    // RFC 8446 section 2.
    for (config, round_trips) in [
        (with(Mode::Tls12Full, false), 2),
        (with(Mode::Tls12Full, true), 1),
        (with(Mode::Tls12Resumed, false), 1),
        (with(Mode::Tls12Resumed, true), 1),
        (with(Mode::Tls13Full, false), 1),
        (with(Mode::Tls13Full, true), 1),
        (with(Mode::Tls13Resumed, false), 1),
        (Config { early_data: true, ..Config::new(Mode::Tls13Resumed) }, 0),
    ] {
        let mut pair = Pair::new(&config);
        pair.client.write(body(100));
        pair.run();
        let expected = Instant::ZERO + RTT * round_trips + RTT / 2;
        assert_eq!(pair.first_read[0], Some(expected), "{config:?}");
        assert!(!pair.client.is_handshaking() && !pair.server.is_handshaking());
    }
}

/// From the client?, its messages, its bytes.
type Flight = (bool, &'static str, u64);

/// The flights of each handshake under [`Config::new`]; the table in the crate's essay is printed from this one.
const FLIGHTS: [(&str, Mode, bool, &[Flight]); 5] = [
    (
        "TLS 1.2, full",
        Mode::Tls12Full,
        false,
        &[
            (true, "ClientHello", 227),
            (false, "ServerHello · Certificate · ServerKeyExchange · ServerHelloDone", 4_449),
            (true, "ClientKeyExchange · ChangeCipherSpec · Finished", 93),
            (false, "NewSessionTicket · ChangeCipherSpec · Finished", 242),
        ],
    ),
    (
        "TLS 1.2, resumed",
        Mode::Tls12Resumed,
        false,
        &[
            (true, "ClientHello", 435),
            (false, "ServerHello · ChangeCipherSpec · Finished", 156),
            (true, "ChangeCipherSpec · Finished", 51),
        ],
    ),
    (
        "TLS 1.3, full",
        Mode::Tls13Full,
        false,
        &[
            (true, "ClientHello", 264),
            (
                false,
                "ServerHello · ChangeCipherSpec · EncryptedExtensions, Certificate, CertificateVerify, Finished",
                4_526,
            ),
            (true, "ChangeCipherSpec · Finished", 64),
            (false, "NewSessionTicket, NewSessionTicket", 488),
        ],
    ),
    (
        "TLS 1.3, resumed",
        Mode::Tls13Resumed,
        false,
        &[
            (true, "ClientHello", 519),
            (false, "ServerHello · ChangeCipherSpec · EncryptedExtensions, Finished", 218),
            (true, "ChangeCipherSpec · Finished", 64),
            (false, "NewSessionTicket", 255),
        ],
    ),
    (
        "TLS 1.3, early data",
        Mode::Tls13Resumed,
        true,
        &[
            (true, "ClientHello · ChangeCipherSpec", 529),
            (false, "ServerHello · ChangeCipherSpec · EncryptedExtensions, Finished", 222),
            (true, "EndOfEarlyData · Finished", 84),
            (false, "NewSessionTicket", 263),
        ],
    ),
];

#[test]
fn flights_have_the_bytes_of_the_table_in_the_essay() {
    let essay = include_str!("../lib.rs");
    for (name, mode, early_data, flights) in FLIGHTS {
        let pair = Pair::established(&Config { early_data, ..Config::new(mode) });
        let expected: Vec<_> = flights.iter().map(|(up, _, bytes)| (*up, *bytes)).collect();
        assert_eq!(pair.flights, expected, "{name}");
        let mut first = name;
        for (up, messages, bytes) in flights {
            let row = format!(
                "//! | {first} | {} | {messages} | {bytes} |\n",
                if *up { "client" } else { "server" }
            );
            assert!(essay.contains(&row), "the essay lacks {row}");
            first = "";
        }
        for (end, sent, received) in [(&pair.client, 0, 1), (&pair.server, 1, 0)] {
            let stats = end.stats();
            assert_eq!(
                (stats.bytes_sent, stats.handshake_sent),
                (pair.sent[sent].len(), pair.sent[sent].len())
            );
            assert_eq!(
                (stats.bytes_received, stats.handshake_received),
                (pair.sent[received].len(), stats.bytes_received)
            );
        }
    }
}

/// What `openssl s_client -msg -servername www.example.com` printed, OpenSSL 3.0.19 at both ends with certificates
/// from `openssl req -x509`: an RSA-2048 one of 793 bytes with `-alpn http/1.1`, an ECDSA one of 398 bytes with
/// `-status`. The TLS 1.3 rows are for `TLS_AES_128_GCM_SHA256`, with the other default suites still offered.
#[test]
fn messages_have_the_sizes_that_openssl_sends() {
    use Message::*;
    let rsa = |mode| Config { chain_len: 793, chain_certs: 1, ..Config::new(mode) };
    let ecdsa = |mode, key_exchange| Config {
        chain_len: 398,
        signature: Signature::EcdsaP256,
        key_exchange,
        alpn: &[],
        ..rsa(mode)
    };
    let (x25519, p256) = (KeyExchange::X25519, KeyExchange::P256);
    let cases: [(Config, &[(Message, u32)]); 6] = [
        (
            rsa(Mode::Tls12Full),
            &[
                (ClientHello, 222),
                (ServerHello, 80),
                (Certificate, 803),
                (ServerKeyExchange, 300),
                (ServerHelloDone, 4),
                (ClientKeyExchange, 37),
                (ChangeCipherSpec, 1),
                (Finished, 16),
                (NewSessionTicket, 186),
            ],
        ),
        (rsa(Mode::Tls12Resumed), &[(ClientHello, 430), (ServerHello, 100), (Finished, 16)]),
        (
            rsa(Mode::Tls13Full),
            &[
                (ClientHello, 259),
                (ServerHello, 122),
                (EncryptedExtensions, 21),
                (Certificate, 806),
                (CertificateVerify, 264),
                (Finished, 36),
                (NewSessionTicket, 233),
            ],
        ),
        (rsa(Mode::Tls13Resumed), &[(ClientHello, 514), (ServerHello, 128), (EncryptedExtensions, 21)]),
        (
            ecdsa(Mode::Tls12Full, p256),
            &[(Certificate, 408), (ServerKeyExchange, 148), (ClientKeyExchange, 70)],
        ),
        (
            ecdsa(Mode::Tls13Full, x25519),
            &[(EncryptedExtensions, 6), (Certificate, 411), (CertificateVerify, 79)],
        ),
    ];
    for (config, messages) in cases {
        for (message, len) in messages {
            assert_eq!(config.message_len(*message), *len, "{:?} {message:?}", config.mode);
        }
    }
    assert_eq!(ecdsa(Mode::Tls13Full, p256).message_len(ServerHello), 155);
    // A client that asks for a stapled response, of which that server had none.
    let asks = Config { ocsp_len: 471, ..ecdsa(Mode::Tls13Full, x25519) };
    assert_eq!(asks.message_len(ClientHello), 253);
    assert_eq!(asks.message_len(Certificate), 411 + 4 + 4 + 471, "RFC 8446 section 4.4.2.1");
    assert_eq!(Config { mode: Mode::Tls12Full, ..asks.clone() }.message_len(CertificateStatus), 4 + 4 + 471);
    assert_eq!(Config { client_hello_min: 512, ..asks }.message_len(ClientHello), 512, "RFC 7685");
}

/// The server's first flight grows by what the chain grows, and by a record's overhead when it outgrows one.
#[test]
fn a_longer_chain_adds_exactly_its_bytes() {
    for (mode, overhead) in [(Mode::Tls12Full, 5), (Mode::Tls13Full, 22)] {
        let packed = Config { packing: Packing::Coalesced, chain_len: 2_000, ..Config::new(mode) };
        let flight = |config: Config| Pair::established(&config).flights[1].1;
        let with = |chain_len| flight(Config { chain_len, ..packed.clone() });
        let base = with(2_000);
        assert_eq!(with(2_001), base + 1);
        assert_eq!(with(5_609), base + 3_609);
        assert_eq!(with(102_000), base + 100_000 + 6 * overhead, "seven records");
        let small = flight(Config { record_size: 1_369, ..packed.clone() });
        let record = base - if mode.is_tls13() { 127 + 6 + 22 } else { 5 };
        assert_eq!(small, base + (record.div_ceil(1_369) - 1) * overhead);
    }
}

/// Of four messages that one record can hold OpenSSL makes four records, and BoringSSL four if they are not enciphered.
#[test]
fn a_flight_has_as_many_records_as_its_server_makes() {
    use Packing::{Coalesced, CoalescedIfEnciphered, PerMessage};
    for (mode, overhead, of_boringssl) in [(Mode::Tls12Full, 5, PerMessage), (Mode::Tls13Full, 22, Coalesced)]
    {
        let flight = |packing| Pair::established(&Config { packing, ..Config::new(mode) }).flights[1].1;
        assert_eq!(flight(PerMessage), flight(Coalesced) + 3 * overhead);
        assert_eq!(flight(CoalescedIfEnciphered), flight(of_boringssl));
    }
}

/// What is in a record can be read when that record is whole: a certificate that has one to itself does not wait for the rest of the flight.
#[test]
fn a_certificate_in_a_record_of_its_own_is_there_before_the_flight() {
    for (packing, waits) in [(Packing::Coalesced, true), (Packing::CoalescedIfEnciphered, false)] {
        let config = Config { packing, verify: true, ..Config::new(Mode::Tls12Full) };
        let mut pair = Pair::new(&config);
        while let Some(chunk) = pair.client.poll_transmit(pair.now, u64::MAX) {
            pair.server.handle_input(pair.now, chunk).unwrap();
        }
        let mut flight = ChunkQueue::new();
        while let Some(chunk) = pair.server.poll_transmit(pair.now, u64::MAX) {
            flight.push(chunk);
        }
        let mut deliver = |keep: u64| {
            while flight.len() > keep {
                let chunk = flight.pop(flight.len() - keep).unwrap();
                pair.client.handle_input(pair.now, chunk).unwrap();
            }
            pair.client.poll_certificate()
        };
        assert_eq!(deliver(1), !waits, "the last byte is missing, {packing:?}");
        assert_eq!(deliver(0), waits, "it has come, {packing:?}");
    }
}

#[test]
fn false_start_sends_data_in_the_flight_of_the_clients_finished() {
    let mut pair = Pair::new(&Config { false_start: true, ..Config::new(Mode::Tls12Full) });
    pair.client.write(body(100));
    pair.run();
    // RFC 7918 section 3: the data follows the client's own Finished.
    assert_eq!(pair.flights[2], (true, 93 + 29 + 100));
    assert_eq!(pair.client.established_at(), Some(Instant::ZERO + RTT * 2));
    assert_eq!(pair.server.established_at(), Some(Instant::ZERO + RTT + RTT / 2));
}

#[test]
fn early_data_goes_with_the_client_hello_and_is_answered_with_the_servers_finished() {
    let mut pair = Pair::new(&Config { early_data: true, ..Config::new(Mode::Tls13Resumed) });
    pair.client.write(body(100));
    pair.server.write(body(1_000));
    pair.run();
    assert_eq!(pair.flights[0], (true, 529 + 22 + 100));
    assert_eq!(pair.flights[1], (false, 222 + 22 + 1_000));
    assert_eq!(pair.first_read, [Some(Instant::ZERO + RTT / 2), Some(Instant::ZERO + RTT)]);
}

#[test]
fn a_computation_holds_its_flight_back_and_nothing_else() {
    let (client_compute, server_compute) = (Duration::from_millis(3), Duration::from_millis(20));
    for (mode, established) in
        [(Mode::Tls12Full, 223), (Mode::Tls12Resumed, 123), (Mode::Tls13Full, 123), (Mode::Tls13Resumed, 123)]
    {
        let config = Config { client_compute, server_compute, ..Config::new(mode) };
        let mut pair = Pair::established(&config);
        let at = Instant::ZERO + Duration::from_millis(established);
        // TLS 1.2, full: the client's own Finished is the 123rd, the server's answer takes another round trip.
        let client_done =
            if mode == Mode::Tls12Full { at } else { Instant::ZERO + Duration::from_millis(123) };
        assert_eq!(pair.client.established_at(), Some(client_done), "{mode:?}");
        assert_eq!(pair.client.poll_timeout(), None);
        pair.client.write(body(1));
        assert!(pair.client.poll_transmit(pair.now, 100).is_some(), "data waits for no computation");
    }
    let mut server = Session::server(Config { server_compute, ..Config::default() }, Instant::ZERO);
    let mut client = Session::client(Config::default(), Instant::ZERO);
    while let Some(chunk) = client.poll_transmit(Instant::ZERO, u64::MAX) {
        server.handle_input(Instant::ZERO, chunk).unwrap();
    }
    let at = Instant::ZERO + server_compute;
    assert_eq!(server.poll_timeout(), Some(at));
    assert_eq!(server.poll_transmit(Instant::from_nanos(at.as_nanos() - 1), u64::MAX), None);
    server.handle_timeout(at);
    assert_eq!(server.poll_timeout(), None);
    assert!(server.poll_transmit(at, u64::MAX).is_some());
}

#[test]
fn data_is_cut_into_records_of_the_size_asked_for() {
    for mode in MODES {
        for (record_size, expected) in [
            (16_384, vec![16_384, 16_384, 7_232]),
            (99_999, vec![16_384, 16_384, 7_232]),
            (15_000, vec![15_000, 15_000, 10_000]),
        ] {
            let mut pair = Pair::established(&Config { record_size, ..Config::new(mode) });
            pair.server.write(body(40_000));
            pair.run();
            assert_eq!(data_records(pair.sent[1].clone(), mode), expected);
            assert_eq!(pair.read[1].pop(u64::MAX), Some(body(40_000)), "ranges are handed through");
            assert_eq!(pair.client.stats().records_received, 3);
            assert_eq!((pair.server.stats().data_sent, pair.client.stats().data_received), (40_000, 40_000));
        }
    }
}

/// A record is made when it is asked for, for the room there is, of what is written by then.
#[test]
fn a_record_is_decided_as_late_as_possible() {
    for (mode, overhead) in [(Mode::Tls12Full, 29), (Mode::Tls13Full, 22)] {
        let mut pair = Pair::established(&Config::new(mode));
        let server = &mut pair.server;
        let take = |server: &mut Session, room: u64| {
            let mut record = ChunkQueue::new();
            while record.len() < room
                && let Some(chunk) = server.poll_transmit(pair.now, room - record.len())
            {
                record.push(chunk);
            }
            record
        };
        assert_eq!(server.wants(Instant::ZERO, 2_896), 2_896 - overhead);
        assert_eq!(server.wants(Instant::ZERO, u64::MAX), 16_384);
        server.write(body(1_000));
        assert_eq!(server.wants(Instant::ZERO, 2_896), 2_896 - overhead - 1_000);
        server.write(body(99_000));
        assert_eq!(server.wants(Instant::ZERO, 2_896), 0);
        let record = take(server, 2_896);
        assert_eq!((record.len(), data_records(record, mode)), (2_896, vec![2_896 - overhead]));
        // A record is not made tiny; one that does not fit goes out in parts.
        let mut record = take(server, 100);
        assert_eq!(
            server.wants(Instant::ZERO, u64::MAX),
            0,
            "while one is on its way out, the next need not be decided"
        );
        assert_eq!(record.len(), 100);
        record.extend(take(server, 1_024 + overhead - 100).iter().cloned());
        assert_eq!(data_records(record, mode), [1_024]);
        server.set_record_size(500);
        let record = take(server, 500 + overhead);
        assert_eq!(data_records(record, mode), [500]);
        assert_eq!(server.queued(), 100_000 - (2_896 - overhead) - 1_024 - 500);
    }
}

#[test]
fn only_a_complete_record_gives_its_plaintext() {
    for mode in MODES {
        let mut pair = Pair::established(&Config::new(mode));
        pair.server.write(body(10_000));
        let mut wire = ChunkQueue::new();
        while let Some(chunk) = pair.server.poll_transmit(pair.now, u64::MAX) {
            wire.push(chunk);
        }
        for left in (1..=wire.len()).rev() {
            assert_eq!(pair.client.read(), None, "{left} bytes are missing");
            pair.client.handle_input(pair.now, wire.pop(1).unwrap()).unwrap();
        }
        assert_eq!(pair.client.read(), Some(body(10_000)));
    }
}

#[test]
fn data_written_early_is_held_and_not_wanted() {
    let mut pair = Pair::new(&Config::new(Mode::Tls12Full));
    pair.client.write(body(100));
    assert_eq!(
        (pair.client.queued(), pair.client.wants(pair.now, 2_000), pair.client.can_send()),
        (100, 0, false)
    );
    pair.run();
    assert_eq!(pair.client.queued(), 0);
    assert_eq!(pair.read[0].len(), 100);
}

/// A plaintext record.
fn record(record_type: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![record_type, 3, 3];
    out.extend((content.len() as u16).to_be_bytes());
    out.extend(content);
    out
}

#[test]
fn a_peer_that_errs_is_told_apart() {
    let unexpected = |got, expected| Error::UnexpectedMessage { got, expected: Some(expected) };
    let cases = [
        (vec![1, 3, 3, 0, 1, 0], Error::RecordType(1)),
        (b"GET / HTTP/1.1\r\n".to_vec(), Error::RecordType(b'G')),
        (vec![22, 2, 0, 0, 1, 0], Error::RecordVersion(0x0200)),
        (vec![22, 3, 1, 0x40, 1], Error::RecordTooLong(0x4001)),
        (vec![23, 3, 3, 0, 16], Error::RecordTooShort(16)),
        (record(22, &[]), Error::UnexpectedRecord(22)),
        (record(20, &[1]), Error::UnexpectedRecord(20)),
        (record(23, &[0; 17]), Error::RecordType(0)),
        (record(23, &[[23; 1].as_slice(), &[0; 16]].concat()), Error::UnexpectedRecord(23)),
        (record(21, &[2, 40]), Error::Alert(40)),
        (record(21, &[2]), Error::UnexpectedRecord(21)),
        (record(22, &[2, 0, 0, 0]), unexpected(2, Message::ClientHello)),
        (record(22, &[1, 0xff, 0, 0]), Error::MessageTooLong(0xff_0000)),
        // Data in the middle of a handshake message (RFC 8446 section 5.1).
        ([record(22, &[1, 0, 0, 9]), record(20, &[1])].concat(), Error::UnexpectedRecord(20)),
        // A second ClientHello.
        (record(22, &[1, 0, 0, 0, 1, 0, 0, 0]), unexpected(1, Message::Finished)),
    ];
    for (input, error) in cases {
        let mut server = Session::server(Config::new(Mode::Tls13Full), Instant::ZERO);
        assert_eq!(server.handle_input(Instant::ZERO, input.clone().into()), Err(error), "{input:?}");
        assert_eq!(server.handle_input(Instant::ZERO, body(1)), Err(error), "for good");
    }
    let mut server = Session::server(Config::default(), Instant::ZERO);
    assert_eq!(server.handle_input(Instant::ZERO, body(5)), Err(Error::Unreadable));
}

#[test]
fn a_message_under_the_wrong_protection_is_refused() {
    // A Finished in the clear, where only a protected one may come.
    let mut pair = Pair::new(&Config::new(Mode::Tls13Resumed));
    pair.transmit();
    while let Some((_, up, chunk)) = pair.wire.pop_front() {
        pair.deliver(up, chunk);
    }
    let finished = record(22, &[20, 0, 0, 0]);
    assert_eq!(pair.server.clone().handle_input(pair.now, finished.into()), Err(Error::UnexpectedRecord(22)));
    // One that begins in the clear and ends protected (RFC 8446 section 5.1).
    let begun = record(22, &[20]);
    let ended = record(23, &[&[0, 0, 0, 22][..], &[0; 16]].concat());
    assert_eq!(pair.server.handle_input(pair.now, begun.into()), Ok(()));
    assert_eq!(pair.server.handle_input(pair.now, ended.into()), Err(Error::UnexpectedRecord(22)));
}

#[test]
fn a_peer_may_say_that_it_closes() {
    let mut pair = Pair::established(&Config::new(Mode::Tls13Full));
    let alert = [&[23, 3, 3, 0, 19, 1, 0, 21][..], &[0; 16]].concat();
    assert_eq!(pair.client.handle_input(pair.now, alert.into()), Ok(()));
    assert!(pair.client.is_closed());
}

/// The same bytes without ranges: what stands for nothing becomes zeros.
fn materialise(stream: &ChunkQueue) -> Vec<u8> {
    let mut out = Vec::new();
    for chunk in stream.iter() {
        match chunk {
            Chunk::Bytes(bytes) => out.extend_from_slice(bytes),
            Chunk::Body(range) => out.resize(out.len() + range.len as usize, 0),
        }
    }
    out
}

fn arbitrary_config() -> impl Strategy<Value = Config> {
    let mode = proptest::sample::select(MODES.to_vec());
    let packing = [Packing::Coalesced, Packing::CoalescedIfEnciphered, Packing::PerMessage];
    let flags = (any::<bool>(), any::<bool>(), proptest::sample::select(packing.to_vec()));
    (mode, flags, 1u32..20_000, 0u32..40_000, 0u32..3_000, 0u64..2_000).prop_map(
        |(mode, (false_start, early_data, packing), record_size, chain_len, ocsp_len, compute_us)| Config {
            false_start,
            early_data,
            packing,
            record_size,
            chain_len,
            ocsp_len,
            client_compute: Duration::from_micros(compute_us),
            server_compute: Duration::from_micros(compute_us / 2),
            ..Config::new(mode)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// However the transport cuts the stream, the handshake ends, and what is written is what is read.
    #[test]
    fn cuts_change_nothing(
        config in arbitrary_config(),
        seed in any::<u64>(),
        lens in proptest::collection::vec(1u64..30_000, 0..6),
    ) {
        let config = Config { record_size: config.record_size.max(50), ..config };
        let run = |cut: Option<Rng>| {
            let mut pair = Pair::new(&config);
            pair.cut = cut;
            let mut start = 0;
            for len in &lens {
                pair.client.write(Bytes::from_static(b"a head").into());
                pair.client.write(BodyRange { source: 7, start, len: *len }.into());
                pair.server.write(BodyRange { source: 8, start, len: *len }.into());
                start += len;
            }
            pair.run();
            assert!(!pair.client.is_handshaking() && !pair.server.is_handshaking());
            let ends = [pair.client.established_at(), pair.server.established_at()];
            (pair.read, ends)
        };
        let (whole, cut) = (run(None), run(Some(Rng::new(seed))));
        prop_assert_eq!(whole.1, cut.1);
        let total: u64 = lens.iter().sum();
        prop_assert_eq!(whole.0[1].len(), total);
        for (mut whole, mut cut) in whole.0.into_iter().zip(cut.0) {
            prop_assert_eq!(whole.len(), cut.len());
            // Same content, whatever the pieces.
            while let Some(mut piece) = cut.pop(u64::MAX) {
                while !piece.is_empty() {
                    let expected = whole.pop(piece.len()).unwrap();
                    prop_assert_eq!(&piece.split_to(expected.len()), &expected);
                }
            }
        }
    }

    /// Real bytes in place of ranges are as good.
    #[test]
    fn a_stream_of_nothing_but_bytes_is_understood(config in arbitrary_config()) {
        let pair = Pair::established(&config);
        let mut server = Session::server(config.clone(), Instant::ZERO);
        // The server must have had its say before the client's second flight.
        let up = materialise(&pair.sent[0]);
        let first = pair.flights[0].1 as usize;
        server.handle_input(Instant::ZERO, up[..first].to_vec().into()).unwrap();
        server.handle_timeout(Instant::MAX);
        server.handle_input(Instant::ZERO, up[first..].to_vec().into()).unwrap();
        prop_assert!(!server.is_handshaking());
    }

    /// Whatever comes, whenever it comes, the answer is `Ok` or an error that stays.
    #[test]
    fn no_input_makes_a_session_panic(
        config in arbitrary_config(),
        is_client in any::<bool>(),
        valid_bytes in 0usize..6_000,
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        noise in proptest::collection::vec(any::<u8>(), 0..200),
        cut in 1usize..300,
    ) {
        // A true stream, cut short, altered here and there, and continued with noise.
        let pair = Pair::established(&config);
        let mut input = materialise(&pair.sent[usize::from(is_client)]);
        input.truncate(valid_bytes);
        for (at, byte) in edits {
            if !input.is_empty() {
                *at.get_mut(&mut input) = byte;
            }
        }
        input.extend(noise);
        let mut session = match is_client {
            true => Session::client(config, Instant::ZERO),
            false => Session::server(config, Instant::ZERO),
        };
        let mut error = None;
        for piece in input.chunks(cut) {
            let result = session.handle_input(Instant::ZERO, piece.to_vec().into());
            prop_assert!(error.is_none() || result.err() == error);
            error = result.err();
            session.handle_timeout(Instant::MAX);
            while session.poll_transmit(Instant::ZERO, u64::MAX).is_some() {}
            while session.read().is_some() {}
        }
    }
}

/// The client's flight waits behind the server's certificate until it is accepted, and no other handshake waits at all.
#[test]
fn a_certificate_that_is_verified_holds_the_clients_flight_back_until_it_is_accepted() {
    for mode in MODES {
        let config = Config { verify: true, ..Config::new(mode) };
        let mut pair = Pair::new(&config);
        pair.run();
        assert_eq!(pair.client.poll_certificate(), mode.has_certificate(), "{mode:?}");
        assert_eq!(pair.client.is_handshaking(), mode.has_certificate(), "{mode:?}");
        assert!(!pair.client.poll_certificate(), "it is said once");
        pair.now += Duration::from_secs(1);
        pair.client.verified(pair.now);
        pair.run();
        assert!(!pair.client.is_handshaking() && !pair.server.is_handshaking(), "{mode:?}");
        if mode.has_certificate() {
            assert!(pair.client.established_at() >= Some(Instant::ZERO + Duration::from_secs(1)));
        }
    }
}
