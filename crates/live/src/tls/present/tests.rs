use std::io::ErrorKind;
use std::time::Duration;

use super::*;

/// Two ends of a loopback connection.
fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    for socket in [&client, &server] {
        socket.set_nonblocking(true).unwrap();
        socket.set_nodelay(true).unwrap();
    }
    (TcpStream::from_std(client), TcpStream::from_std(server))
}

fn identity() -> Identity {
    Identity::self_signed(&["localhost".into(), "127.0.0.1".into()]).unwrap()
}

fn server(offer: Offer, versions: Versions, protocols: &[&str]) -> ServerConfig {
    let common = Common { offer, versions, ..Common::new(protocols.iter().copied()) };
    ServerConfig { common, identity: identity(), tickets: true, ocsp: None }
}

fn client(offer: Offer, versions: Versions, protocols: &[&str]) -> ClientConfig {
    let common = Common { offer, versions, ..Common::new(protocols.iter().copied()) };
    ClientConfig { common, trust: Trust::Anybody, false_start: false, ocsp: false }
}

/// Waits for what the other end of a loopback socket has written to arrive: it is there or nearly so.
fn turn(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(false),
        Err(e) => Err(e),
    }
}

/// Steps both ends until both handshakes are done.
fn shake(client: &mut TlsStream, server: &mut TlsStream) -> io::Result<()> {
    let deadline = crate::Clock::start();
    loop {
        let (a, b) = (turn(client.handshake())?, turn(server.handshake())?);
        if a && b {
            return Ok(());
        }
        assert!(deadline.now().as_nanos() < 10_000_000_000, "no handshake within ten seconds");
    }
}

fn read_all(stream: &mut TlsStream, n: usize) -> Vec<u8> {
    let (mut out, mut buffer) = (Vec::new(), [0; 4096]);
    let deadline = crate::Clock::start();
    while out.len() < n {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => out.extend_from_slice(&buffer[..n]),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => panic!("{e}"),
        }
        assert!(deadline.now().as_nanos() < 10_000_000_000, "{} of {n} bytes within ten seconds", out.len());
    }
    out
}

fn connect(client: &ClientConfig, server: &ServerConfig) -> io::Result<(TlsStream, TlsStream)> {
    let (a, b) = tcp_pair();
    let mut client = Connector::new(client).unwrap().connect("localhost", a, None).unwrap();
    let mut server = Acceptor::new(server).unwrap().accept(b).unwrap();
    shake(&mut client, &mut server).map(|()| (client, server))
}

#[test]
fn alpn_takes_the_servers_first_choice_that_the_client_lists() {
    let (client, server) = connect(
        &client(Offer::Alpn, Versions::Tls12To13, &["http/1.1", "spdy/3", "spdy/3.1"]),
        &server(Offer::Both, Versions::Tls12To13, &["spdy/3.1", "spdy/3", "http/1.1"]),
    )
    .unwrap();
    let expected = Some(("spdy/3.1".to_owned(), By::Alpn));
    assert_eq!(client.negotiated().protocol, expected);
    assert_eq!(server.negotiated().protocol, expected);
    assert_eq!(client.negotiated().version, "TLSv1.3");
}

#[test]
fn npn_takes_the_clients_first_choice_that_the_server_offers_and_holds_tls_at_1_2() {
    let (client, server) = connect(
        &client(Offer::Npn, Versions::Tls12To13, &["spdy/3", "spdy/3.1", "http/1.1"]),
        &server(Offer::Both, Versions::Tls12To13, &["spdy/3.1", "spdy/3", "http/1.1"]),
    )
    .unwrap();
    let expected = Some(("spdy/3".to_owned(), By::Npn));
    assert_eq!(client.negotiated().protocol, expected);
    assert_eq!(server.negotiated().protocol, expected);
    assert_eq!(client.negotiated().version, "TLSv1.2");
}

#[test]
fn npn_without_a_common_protocol_falls_back_to_the_clients_last() {
    let (client, _) = connect(
        &client(Offer::Npn, Versions::Tls12, &["spdy/2", "http/1.1"]),
        &server(Offer::Npn, Versions::Tls12, &["spdy/3.1"]),
    )
    .unwrap();
    assert_eq!(client.negotiated().protocol, Some(("http/1.1".to_owned(), By::Npn)));
}

#[test]
fn a_server_without_a_common_protocol_says_nothing_in_alpn() {
    let (client, _) = connect(
        &client(Offer::Alpn, Versions::Tls12To13, &["spdy/2"]),
        &server(Offer::Alpn, Versions::Tls12To13, &["spdy/3.1"]),
    )
    .unwrap();
    assert_eq!(client.negotiated().protocol, None);
}

#[test]
fn npn_with_tls_1_3_alone_is_refused_with_the_remedy() {
    let config = client(Offer::Npn, Versions::Tls13, &["spdy/3.1"]);
    assert_eq!(Connector::new(&config).unwrap_err().to_string(), "NPN needs TLS 1.2: allow it, or use ALPN");
}

#[test]
fn false_start_sends_before_the_servers_finished() {
    let mut config = client(Offer::Alpn, Versions::Tls12, &["spdy/3.1"]);
    config.false_start = true;
    let (a, b) = tcp_pair();
    let mut client = Connector::new(&config).unwrap().connect("localhost", a, None).unwrap();
    let acceptor = Acceptor::new(&server(Offer::Alpn, Versions::Tls12, &["spdy/3.1"])).unwrap();
    let mut server = acceptor.accept(b).unwrap();
    // One flight each way; the server then does not get to answer the client's second flight.
    let clock = crate::Clock::start();
    while !turn(client.handshake()).unwrap() {
        if !client.is_false_started() {
            let _ = turn(server.handshake()).unwrap();
        }
        assert!(clock.now().as_nanos() < 10_000_000_000, "no False Start within ten seconds");
    }
    assert!(client.is_false_started());
    assert_eq!(client.write(b"early").unwrap(), 5);
    shake(&mut client, &mut server).unwrap();
    assert_eq!(read_all(&mut server, 5), b"early");
}

#[test]
fn tickets_resume_in_both_versions() {
    for versions in [Versions::Tls12, Versions::Tls13] {
        let connector = Connector::new(&client(Offer::Alpn, versions, &["spdy/3.1"])).unwrap();
        let acceptor = Acceptor::new(&server(Offer::Alpn, versions, &["spdy/3.1"])).unwrap();
        let mut session = None;
        for resumed in [false, true] {
            let (a, b) = tcp_pair();
            let mut client = connector.connect("localhost", a, session.as_ref()).unwrap();
            let mut server = acceptor.accept(b).unwrap();
            shake(&mut client, &mut server).unwrap();
            assert_eq!(client.negotiated().resumed, resumed, "{versions:?}");
            // Tickets of TLS 1.3 come behind the handshake, and not with the first data.
            let deadline = crate::Clock::start();
            while session.is_none() {
                turn(client.read(&mut [0]).map(|_| ())).unwrap();
                session = connector.take_session();
                assert!(deadline.now().as_nanos() < 10_000_000_000, "{versions:?}: no ticket in ten seconds");
            }
        }
    }
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused_and_the_error_says_so() {
    let mut config = client(Offer::Alpn, Versions::Tls12To13, &["spdy/3.1"]);
    config.trust = Trust::System;
    let error = connect(&config, &server(Offer::Alpn, Versions::Tls12To13, &["spdy/3.1"])).unwrap_err();
    assert!(error.to_string().starts_with("TLS: certificate not accepted: self"), "{error}");
}

#[test]
fn a_certificate_is_trusted_by_file_and_only_for_its_names() {
    let server = server(Offer::Alpn, Versions::Tls12To13, &["spdy/3.1"]);
    let file = std::env::temp_dir().join(format!("velodrome-trust-{}.pem", std::process::id()));
    std::fs::write(&file, server.identity.certificate_pem().unwrap()).unwrap();
    let config = ClientConfig {
        trust: Trust::File(file.clone()),
        ..client(Offer::Alpn, Versions::Tls12To13, &["spdy/3.1"])
    };
    let connector = Connector::new(&config);
    std::fs::remove_file(&file).unwrap();
    let connector = connector.unwrap();
    for (name, trusted) in [("localhost", true), ("127.0.0.1", true), ("example.org", false)] {
        let (a, b) = tcp_pair();
        let mut client = connector.connect(name, a, None).unwrap();
        let mut server = Acceptor::new(&server).unwrap().accept(b).unwrap();
        assert_eq!(shake(&mut client, &mut server).is_ok(), trusted, "{name}");
    }
}

#[test]
fn a_stapled_response_reaches_the_client_that_asks() {
    let mut stapling = server(Offer::Alpn, Versions::Tls12To13, &["spdy/3.1"]);
    stapling.ocsp = Some(b"whatever an authority signed".to_vec());
    for asks in [true, false] {
        let config = ClientConfig { ocsp: asks, ..client(Offer::Alpn, Versions::Tls12To13, &["spdy/3.1"]) };
        let (client, _) = connect(&config, &stapling).unwrap();
        assert_eq!(client.negotiated().stapled, asks);
    }
}

#[test]
fn records_hold_no_more_than_they_may() {
    let mut small = server(Offer::Alpn, Versions::Tls12, &["spdy/3.1"]);
    small.common.record_size = Some(1_000);
    let (mut client, mut server) =
        connect(&client(Offer::Alpn, Versions::Tls12, &["spdy/3.1"]), &small).unwrap();
    assert_eq!(server.write(&[7; 4_000]).unwrap(), 1_000, "a partial write is one record");
    let mut first = [0; 5];
    client
        .tcp()
        .peek(&mut first)
        .or_else(|_| {
            std::thread::park_timeout(Duration::from_millis(50));
            client.tcp().peek(&mut first)
        })
        .unwrap();
    let len = u16::from_be_bytes([first[3], first[4]]);
    assert!((1_000..1_100).contains(&len), "a record of {len} bytes with its overhead");
    let bad = Common { record_size: Some(100), ..Common::new(["spdy/3.1"]) };
    let error =
        Connector::new(&ClientConfig { common: bad, trust: Trust::Anybody, false_start: false, ocsp: false })
            .unwrap_err();
    assert_eq!(error.to_string(), "record size 100: TLS records hold 512 to 16384 bytes here");
}

#[test]
fn secrets_are_logged_in_the_analysers_format() {
    let file = std::env::temp_dir().join(format!("velodrome-keys-{}.txt", std::process::id()));
    let mut config = client(Offer::Alpn, Versions::Tls12, &["spdy/3.1"]);
    config.common.key_log = Some(KeyLog::open(&file).unwrap());
    connect(&config, &server(Offer::Alpn, Versions::Tls12, &["spdy/3.1"])).unwrap();
    let log = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(log.starts_with("CLIENT_RANDOM "), "{log}");
}

#[test]
fn files_that_are_no_certificate_or_not_the_key_are_named() {
    let dir = std::env::temp_dir().join(format!("velodrome-identity-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (certificate, key) = (dir.join("c.pem"), dir.join("k.pem"));
    std::fs::write(&certificate, identity().certificate_pem().unwrap()).unwrap();
    let other = identity();
    std::fs::write(&key, other.key_pem().unwrap()).unwrap();
    let mismatch = Identity::read(&certificate, &key).unwrap_err().to_string();
    let missing = Identity::read(&dir.join("none.pem"), &key).unwrap_err().to_string();
    std::fs::write(&certificate, "nothing").unwrap();
    let empty = Identity::read(&certificate, &key).unwrap_err().to_string();
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(mismatch.contains("is not the key of"), "{mismatch}");
    assert!(missing.contains("none.pem"), "{missing}");
    assert!(empty.contains("c.pem"), "{empty}");
}

/// The library's own choice begins with a hybrid whose public key takes more than a kilobyte.
#[test]
fn keys_are_agreed_on_in_the_groups_that_are_asked_for() {
    let hello = |groups: Option<&str>| {
        let versions = Versions::Tls13;
        let (client, server) = (client(Offer::Alpn, versions, &["a"]), server(Offer::Alpn, versions, &["a"]));
        let common = Common { groups: groups.map(str::to_owned), ..client.common.clone() };
        let (mut a, _b) = connect(&ClientConfig { common, ..client }, &server).unwrap();
        crate::tcp_stats(a.tcp()).unwrap().bytes_sent
    };
    assert!(hello(Some("X25519")) < 700);
    assert!(hello(None) > 1_184);
    let common = Common { groups: Some("no group".into()), ..Common::new(["a"]) };
    let config = ClientConfig { common, ..client(Offer::Alpn, Versions::Tls13, &["a"]) };
    assert!(Connector::new(&config).unwrap_err().to_string().contains("no group"));
}

/// Steps both ends until the client's handshake has its server's certificate and waits.
fn shake_to_certificate(client: &mut TlsStream, server: &mut TlsStream) {
    let deadline = crate::Clock::start();
    while !client.poll_certificate() {
        assert!(!turn(client.handshake()).unwrap(), "it was to wait");
        turn(server.handshake()).unwrap();
        assert!(deadline.now().as_nanos() < 10_000_000_000, "no certificate within ten seconds");
    }
}

#[test]
fn a_client_that_asks_about_certificates_waits_until_all_is_asked() {
    for versions in [Versions::Tls12, Versions::Tls13] {
        let (a, b) = tcp_pair();
        let config = client(Offer::Alpn, versions, &["http/1.1"]);
        let mut client = Connector::new(&config).unwrap().connect("localhost", a, None).unwrap();
        let config = server(Offer::Alpn, versions, &["http/1.1"]);
        let mut server = Acceptor::new(&config).unwrap().accept(b).unwrap();
        client.hold_certificate();
        client.verified(); // too early: of no effect
        shake_to_certificate(&mut client, &mut server);
        for _ in 0..3 {
            assert!(!turn(client.handshake()).unwrap() && !turn(server.handshake()).unwrap());
            assert!(!client.poll_certificate(), "once");
        }
        client.verified();
        shake(&mut client, &mut server).unwrap();
    }
}

/// What is asked comes before the library's own check, and not in its place.
#[test]
fn a_certificate_that_was_asked_about_is_checked_all_the_same() {
    let authority = Authority::new(::tls::Signature::EcdsaP256).unwrap();
    let names = ["localhost".to_owned()];
    for (alone, knows_issuer, is_good) in [(false, false, true), (true, true, true), (true, false, false)] {
        let (identity, _) = authority.issue(&names, 2_016, alone).unwrap();
        let config = ServerConfig { identity, ..server(Offer::Alpn, Versions::Tls12, &["http/1.1"]) };
        let mut trusted = authority.root_pem().unwrap();
        if knows_issuer {
            trusted.extend(authority.intermediate_pem().unwrap());
        }
        let trust = Trust::Roots(trusted);
        let client = ClientConfig { trust, ..client(Offer::Alpn, Versions::Tls12, &["http/1.1"]) };
        let (a, b) = tcp_pair();
        let mut client = Connector::new(&client).unwrap().connect("localhost", a, None).unwrap();
        let mut server = Acceptor::new(&config).unwrap().accept(b).unwrap();
        client.hold_certificate();
        shake_to_certificate(&mut client, &mut server);
        client.verified();
        let done = shake(&mut client, &mut server).map_err(|e| e.to_string());
        assert_eq!(done.is_ok(), is_good, "{done:?}");
    }
}

/// Thirty records that are there at once fill segments, whatever their size; on the loopback a segment holds them all.
#[cfg(target_os = "linux")]
#[test]
fn records_that_are_there_at_once_share_segments() {
    let mut small = server(Offer::Alpn, Versions::Tls12, &["http/1.1"]);
    small.common.record_size = Some(512);
    let (mut client, server) = connect(&client(Offer::Alpn, Versions::Tls12, &["http/1.1"]), &small).unwrap();
    let mut wire = crate::Wire::new(crate::Stream::Tls(Box::new(server)));
    let sent = |wire: &mut crate::Wire| crate::tcp_stats(wire.stream().tcp()).unwrap().segments_sent;
    let before = sent(&mut wire);
    let mut left = 30 * 512;
    let written = wire.write(u64::MAX, |max, out| {
        let n = left.min(max);
        out.resize(out.len() + n, 0);
        left -= n;
    });
    assert_eq!(written.unwrap(), crate::Written::All);
    assert_eq!(read_all(&mut client, 30 * 512).len(), 30 * 512);
    let segments = sent(&mut wire) - before;
    assert!((1..15).contains(&segments), "{segments} segments for 30 records");
}
