//! The emulator's parts in virtual time.

use std::net::Ipv4Addr;

use link::{LossConfig, QueueConfig, Rate};

use super::packet::Addresses;
use super::*;

/// An IPv4 packet with ports, as a device gives it.
fn packet(from: Ipv4Addr, to: Ipv4Addr, len: usize, number: u64, at: Instant) -> Packet {
    let mut data = vec![0; HEADER + len];
    let ip = &mut data[HEADER..];
    ip[0] = 0x45;
    ip[9] = 17;
    ip[12..16].copy_from_slice(&from.octets());
    ip[16..20].copy_from_slice(&to.octets());
    ip[20..24].copy_from_slice(&[0x12, 0x34, 0, 80]);
    Packet::new(data.into(), HEADER + len, number, at)
}

const NEAR: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 2);
const FAR: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(100, 66, 0, 7);

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn path(kbps: u64, delay_ms: u64) -> PathConfig {
    let rate = Rate::Constant(base::Bitrate::from_kbps(kbps).unwrap());
    PathConfig { rate, delay: Duration::from_millis(delay_ms), ..PathConfig::default() }
}

fn rules() -> Vec<DelayTo> {
    let rule = |address: Ipv4Addr, prefix, delay_ms| DelayTo {
        network: address.into(),
        prefix,
        delay: Duration::from_millis(delay_ms),
    };
    vec![rule(Ipv4Addr::new(100, 66, 0, 0), 15, 40), rule(SERVER, 32, 25), rule(Ipv4Addr::UNSPECIFIED, 0, 7)]
}

#[test]
fn a_packet_tells_who_talks_to_whom() {
    let packet = packet(NEAR, FAR, 100, 3, ms(0));
    assert_eq!(packet.addresses().to_string(), "17,100.64.0.2:4660,100.64.0.1:80");
    assert_eq!((link::Packet::wire_len(&packet), packet.number), (100, 3));
    let mut ip = packet.ip().to_vec();
    ip[7] = 1; // a later fragment: its first bytes are no ports
    assert_eq!(Addresses::read(&ip).to_port, 0);
    let mut v6 = vec![0u8; 44];
    (v6[0], v6[6], v6[7], v6[23], v6[39], v6[43]) = (0x60, 6, 64, 1, 2, 80);
    assert_eq!(Addresses::read(&v6).to_string(), "6,[::1]:0,[::2]:80");
}

/// An IPv6 packet from ::1 to ::2 with `headers` before a UDP header from port 9 to 80.
fn v6(first: u8, headers: &[u8]) -> Vec<u8> {
    let mut ip = vec![0; 40];
    (ip[0], ip[6], ip[23], ip[39]) = (0x60, first, 1, 2);
    ip.extend_from_slice(headers);
    ip.extend_from_slice(&[0, 9, 0, 80, 0, 8, 0, 0]);
    ip
}

/// RFC 8200 section 4: what stands between the IPv6 header and the one that has the ports is gone past.
#[test]
fn extension_headers_of_ipv6_are_gone_past_and_fragments_have_one_protocol() {
    let plain = Addresses::read(&v6(17, &[]));
    assert_eq!(plain.to_string(), "17,[::1]:9,[::2]:80");
    let hop_by_hop = [60, 0, 1, 4, 0, 0, 0, 0];
    let options = [[51; 1].as_slice(), &[1], &[0; 14]].concat();
    let authentication = [[17; 1].as_slice(), &[1], &[0; 10]].concat();
    let all = [&hop_by_hop[..], &options, &authentication].concat();
    assert_eq!(Addresses::read(&v6(0, &all)), plain);
    let fragment = |offset: u8| [17, 0, 0, offset << 3 | 1, 0, 0, 0, 7];
    assert_eq!(Addresses::read(&v6(44, &fragment(0))), plain, "the first has the ports");
    let later = Addresses::read(&v6(44, &fragment(1)));
    assert_eq!((later.protocol, later.to_port), (17, 0), "its first bytes are no ports");
    // One after the other without end, cut anywhere, and of any first header, it is read without complaint.
    let endless = v6(0, &[0; 8].repeat(200));
    assert_eq!(Addresses::read(&endless).to_port, 0);
    for first in 0..=255 {
        let ip = v6(first, &all);
        (0..=ip.len()).for_each(|len| assert!(Addresses::read(&ip[..len]).to_port <= 80 << 8));
    }
}

#[test]
fn flows_differ_by_any_of_their_five_parts_and_anything_may_come() {
    let base = packet(NEAR, FAR, 60, 0, ms(0));
    let mut hashes = std::collections::BTreeSet::new();
    for byte in [9, 12, 16, 20, 22] {
        let mut ip = base.ip().to_vec();
        ip[byte] ^= if byte == 9 { 23 } else { 1 }; // TCP for UDP
        hashes.insert(Addresses::read(&ip).hash());
    }
    hashes.insert(base.addresses().hash());
    assert_eq!(hashes.len(), 6);
    // Cut anywhere, with any first byte, it is read without complaint.
    for first in [0x45, 0x4f, 0x60, 0x00, 0xff] {
        let mut ip = base.ip().to_vec();
        ip[0] = first;
        (0..ip.len()).for_each(|len| assert!(Addresses::read(&ip[..len]).protocol <= ip[9]));
    }
}

/// The most specific rule counts, by destination on the way up and by source on the way down.
#[test]
fn the_longest_prefix_decides_the_extra_delay() {
    for (far, extra_ms) in [(SERVER, 25), (Ipv4Addr::new(100, 67, 1, 1), 40), (FAR, 7)] {
        let up = packet(NEAR, far, 60, 0, ms(0)).extra_delay(&rules(), Direction::Up);
        let down = packet(far, NEAR, 60, 0, ms(0)).extra_delay(&rules(), Direction::Down);
        assert_eq!((up, down), (Duration::from_millis(extra_ms), Duration::from_millis(extra_ms)), "{far}");
    }
    assert_eq!(packet(NEAR, SERVER, 60, 0, ms(0)).extra_delay(&[], Direction::Up), Duration::ZERO);
}

/// Two packets at once, the first to a server that is 25 ms further away. Each takes 12 ms on the line and 10 ms of delay.
fn two_ways(detour_first: bool) -> Vec<(u64, Instant)> {
    let mut way = Way::new(&path(1_000, 10), Rng::new(1), detour_first);
    for (number, extra) in [(0, 25), (1, 0)] {
        let mut packet = packet(NEAR, SERVER, 1_500, number, ms(0));
        packet.extra = Duration::from_millis(extra);
        way.receive(ms(0), packet);
    }
    let mut out = Vec::new();
    while let Some(at) = way.next_time() {
        while let Some(packet) = way.deliver(at) {
            assert_eq!(packet.due, at, "due when it is delivered");
            out.push((packet.number, at));
        }
    }
    out
}

#[test]
fn the_detour_lies_behind_the_queue_on_the_way_up_and_before_it_on_the_way_down() {
    assert_eq!(
        two_ways(false),
        [(1, ms(34)), (0, ms(47))],
        "both went over the line first, one after the other"
    );
    assert_eq!(two_ways(true), [(1, ms(22)), (0, ms(47))], "only one of them came at once");
}

/// On the way up the path comes first, on the way down it comes last.
#[test]
fn what_is_on_a_link_is_lost_with_it_and_what_has_left_it_for_its_server_arrives() {
    for detour_first in [false, true] {
        let mut way = Way::new(&path(1_000, 10), Rng::new(1), detour_first);
        for number in 0..3 {
            let mut packet = packet(NEAR, SERVER, 1_500, number, ms(0));
            packet.extra = Duration::from_millis(if number == 0 { 25 } else { 0 });
            way.receive(ms(0), packet);
        }
        assert!(way.deliver(ms(23)).is_none_or(|packet| packet.number == 1), "due after 22 ms");
        let lost = way.change(&path(1_000, 1), Rng::new(1));
        let mut lost: Vec<_> = lost.into_iter().map(|packet| packet.number).collect();
        lost.sort_unstable();
        let arrives = way.deliver(ms(1_000)).map(|packet| (packet.number, packet.due));
        match detour_first {
            // The first had left the link when the others were on its line.
            false => assert_eq!((lost, arrives), (vec![1, 2], Some((0, ms(47))))),
            true => assert_eq!((lost, arrives), (vec![0, 2], None)),
        }
        let before = way.stats().packets_in;
        way.receive(ms(1_000), packet(NEAR, SERVER, 1_500, 3, ms(1_000)));
        assert_eq!(
            way.deliver(ms(1_013)).map(|packet| packet.number),
            Some(3),
            "12 ms of line and 1 of delay"
        );
        assert_eq!(way.stats().packets_in, before + 1, "counts go on");
    }
}

/// A way that is looked at late moves packets at the moments at which it should have.
#[test]
fn lateness_is_not_carried_on() {
    let mut way = Way::new(&path(1_000, 10), Rng::new(1), true);
    for number in 0..3 {
        let mut packet = packet(NEAR, SERVER, 1_500, number, ms(0));
        packet.extra = Duration::from_millis(5 * number);
        way.receive(ms(0), packet);
    }
    let out: Vec<_> = std::iter::from_fn(|| way.deliver(ms(1_000))).map(|p| (p.number, p.due)).collect();
    assert_eq!(out, [(0, ms(22)), (1, ms(34)), (2, ms(46))]);
}

#[test]
fn the_check_measures_rate_and_delay_by_the_clock_and_not_by_the_model() {
    let config = path(1_000, 10);
    let mut way = Way::new(&config, Rng::new(1), false);
    let mut check = WayCheck::new(&config);
    (0..100).for_each(|n| way.receive(ms(0), packet(NEAR, FAR, 1_500, n, ms(0))));
    // Written 1 % too slowly, as a broken emulator would.
    while let Some(due) = way.next_time() {
        let packet = way.deliver(due).unwrap();
        check.delivered(&packet, Instant::from_nanos(due.as_nanos() / 100 * 101));
    }
    check.path = way.stats();
    let rate = check.rate_bps().unwrap();
    assert!((rate / 1e6 - 1.0 / 1.01).abs() < 1e-6, "{rate}");
    let (asked, achieved) = check.delay().unwrap();
    assert_eq!(asked, Duration::from_millis(10));
    assert!(achieved > Duration::from_millis(16), "{achieved:?}");
    let late = check.lateness().unwrap();
    assert!((late.max.as_millis_f64() - 12.1).abs() < 0.02, "{late:?}");
    assert_eq!(late.over_1ms_pct, 93.0, "all but those due before 100 ms");
}

#[test]
fn losses_in_bursts_have_a_wider_interval() {
    let interval = |loss: LossConfig| {
        let mut check = WayCheck::new(&PathConfig { loss, ..PathConfig::default() });
        check.path.packets_in = 10_000;
        check.path.dropped_loss = 210;
        let (share, (low, high)) = check.loss().unwrap();
        assert_eq!(share, 0.021);
        high - low
    };
    let single = interval(LossConfig::Bernoulli { p: 0.02 });
    assert!((single - 2.0 * 1.96 * (0.02f64 * 0.98 / 1e4).sqrt()).abs() < 1e-9);
    assert!(interval(LossConfig::burst(0.02, 5.0).unwrap()) > 2.5 * single);
}

#[test]
fn runs_of_losses_are_counted_as_one() {
    let mut check = WayCheck::new(&PathConfig::default());
    [0, 1, 2, 5, 7, 8].iter().for_each(|n| check.dropped(link::DropCause::Loss, *n));
    assert_eq!(check.loss_runs, 3);
    check.dropped(link::DropCause::Full, 9);
    assert_eq!((check.full, check.aqm), (1, 0));
}

#[test]
fn memory_for_packets_is_bounded_and_used_again() {
    let mut buffers = Buffers::new(1_500);
    buffers.left = 2;
    let (a, b) = (buffers.take().unwrap(), buffers.take());
    assert!(b.is_some() && buffers.take().is_none());
    buffers.free.push(a);
    assert!(buffers.take().is_some() && buffers.take().is_none());
}

/// One line a packet, whatever became of it.
#[test]
fn the_log_tells_every_packets_fate() {
    let file = std::env::temp_dir().join(format!("velodrome-log-{}.csv", std::process::id()));
    let mut log = Log::create(&file).unwrap();
    let config = PathConfig { queue: QueueConfig::drop_tail(1_500), ..path(1_000, 10) };
    let mut way = Way::new(&config, Rng::new(1), false);
    (0..3).for_each(|n| way.receive(ms(0), packet(NEAR, FAR, 1_500, n, ms(0))));
    let dropped = way.poll_dropped().unwrap();
    log.dropped(Direction::Up, &dropped);
    log.delivered(Direction::Up, &way.deliver(ms(22)).unwrap(), Instant::from_nanos(22_000_123));
    way.drain(&mut |packet| log.inside(Direction::Up, &packet));
    let summary = log.finish();
    assert!((summary.rows, summary.lost) == (3, 0) && summary.error.is_none());
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let flow = format!("{:016x},17,100.64.0.2:4660,100.64.0.1:80", dropped.packet.addresses().hash());
    let expected = [
        log::HEAD.trim_end().to_owned(),
        format!("up,2,{flow},1500,0,0,0,,,,full"),
        format!("up,0,{flow},1500,0,0,0,12000000,22000000,22000123,delivered"),
        format!("up,1,{flow},1500,0,0,12000000,24000000,34000000,,inside"),
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

/// What the kernel leaves to be cut counts as what it is cut into.
#[test]
fn a_piece_of_several_segments_counts_as_those() {
    let mut data = packet(NEAR, FAR, 40 + 3_000, 0, ms(0)).into_buffer();
    data[1] = 1; // VIRTIO_NET_HDR_GSO_TCPV4
    data[4..6].copy_from_slice(&1_460u16.to_ne_bytes());
    data[HEADER + 9] = 6;
    data[HEADER + 20 + 12] = 5 << 4;
    let len = data.len();
    let piece = Packet::new(data, len, 0, ms(0));
    assert_eq!(piece.on_wire(), (3, 3 * 40 + 3_000));
    assert_eq!(packet(NEAR, FAR, 1_500, 0, ms(0)).on_wire(), (1, 1_500));
    let mut check = WayCheck::new(&PathConfig::default());
    check.received(&piece);
    check.delivered(&piece, ms(0));
    assert_eq!((check.received, check.delivered), (Count { packets: 3, bytes: 3_120 }, check.received));
}

fn config(up: PathConfig, down: PathConfig) -> Config {
    Config { up, down, ..Config::perfect() }
}

/// Runs what needs networks of its own, or says why not.
fn with_link(config: &Config, test: impl FnOnce(&Link)) -> Option<Check> {
    run(test, |ends| ends.join(config, None))
}

/// The same with a gateway to the network of the tests.
fn with_gateway(config: &Config, test: impl FnOnce(&Link)) -> Option<Check> {
    run(test, |ends| ends.join_outside(config, None))
}

fn run(
    test: impl FnOnce(&Link),
    join: impl FnOnce(Ends) -> Result<Link, crate::namespace::Error>,
) -> Option<Check> {
    let privilege = crate::namespace::tests::privilege()?;
    let link = join(Ends::new(privilege, crate::namespace::Block::WHOLE).unwrap()).unwrap();
    test(&link);
    Some(link.finish().unwrap().0)
}

/// A datagram from the near end to one of the servers' addresses, 5 ms and 3 of detour away, and one back that takes 7 and 3.
fn question_and_answer(link: &Link, near: IpAddr, server: IpAddr) {
    use std::net::{Ipv6Addr, UdpSocket};
    let any: IpAddr =
        if near.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let at_far = link.far().run(|| UdpSocket::bind((server, 53))).unwrap();
    let at_near = link.near().run(|| UdpSocket::bind((any, 0))).unwrap();
    for socket in [&at_far, &at_near] {
        socket.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    }
    let clock = Clock::start();
    at_near.send_to(b"who?", (server, 53)).unwrap();
    let mut buffer = [0; 16];
    let (len, from) = at_far.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..len], from.ip()), (&b"who?"[..], near));
    assert!(clock.now() >= ms(8), "5 ms and 3 of detour, one way");
    at_far.send_to(b"me", from).unwrap();
    assert_eq!(at_near.recv_from(&mut buffer).unwrap(), (2, (server, 53).into()));
    assert!(clock.now() >= ms(18), "both ways");
}

/// Through the kernel: a question to one of the servers' addresses, and its answer; neither comes early.
#[test]
fn a_datagram_crosses_the_link_and_takes_its_time() {
    let mut asked = config(path(10_000, 5), path(10_000, 7));
    let server: Ipv4Addr = "100.66.1.2".parse().unwrap();
    asked.delays = vec![DelayTo { network: server.into(), prefix: 32, delay: Duration::from_millis(3) }];
    let check = with_link(&asked, |link| question_and_answer(link, NEAR.into(), server.into()));
    if let Some(check) = check {
        assert_eq!((check.up.delivered.packets, check.up.delivered.bytes), (1, 32));
        assert_eq!((check.down.delivered.packets, check.down.path.dropped_loss), (1, 0));
        assert_eq!(check.up.lateness().map(|late| late.max > Duration::ZERO), Some(true));
    }
}

/// Over IPv6 a datagram has 40 + 8 bytes before it and the link carries no packet but what was sent: nobody asks for neighbours, routers or
/// groups.
#[test]
fn the_link_carries_ipv6_byte_for_byte_and_nothing_that_was_not_sent() {
    use std::net::Ipv6Addr;
    let Some(privilege) = crate::namespace::tests::privilege() else { return };
    let mut ends = Ends::new(privilege, crate::namespace::Block::WHOLE).unwrap();
    if let Err(e) = ends.carry_ipv6() {
        return println!("skipped: {e}");
    }
    let server: Ipv6Addr = "2001:db8::7".parse().unwrap();
    ends.far().own(server).unwrap();
    let mut asked = config(path(10_000, 5), path(10_000, 7));
    asked.delays = vec![DelayTo { network: server.into(), prefix: 128, delay: Duration::from_millis(3) }];
    let link = ends.join(&asked, None).unwrap();
    question_and_answer(&link, crate::namespace::NEAR_V6.into(), server.into());
    let check = link.finish().unwrap().0;
    assert_eq!(check.up.received, Count { packets: 1, bytes: 48 + 4 });
    assert_eq!((check.up.delivered, check.up.refused), (check.up.received, 0));
    assert_eq!(check.down.received, Count { packets: 1, bytes: 48 + 2 });
}

/// A link that does nothing to single packets carries TCP in large pieces, and no byte is lost or moved; one that does, does not.
#[test]
fn tcp_crosses_the_link_whole_or_cut_and_arrives_as_it_was() {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    const LEN: usize = 4 << 20;
    for each_packet in [false, true] {
        let asked = Config { each_packet, ..config(PathConfig::default(), PathConfig::default()) };
        let check = with_link(&asked, |link| {
            let listener = link.far().run(|| TcpListener::bind((FAR, 80))).unwrap();
            let mut stream = link.near().run(|| TcpStream::connect((FAR, 80))).unwrap();
            let sent: Vec<u8> = (0..LEN as u32)
                .flat_map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8..=255)
                .take(LEN)
                .collect();
            std::thread::scope(|scope| {
                let reader = scope.spawn(|| {
                    let mut read = Vec::new();
                    listener.accept().unwrap().0.read_to_end(&mut read).unwrap();
                    read
                });
                stream.write_all(&sent).unwrap();
                drop(stream);
                assert!(reader.join().unwrap() == sent);
            });
        });
        if let Some(Check { up, .. }) = check {
            let pieces = up.path.packets_in;
            assert!(up.received.packets as usize > LEN / 1_500, "{up:?}");
            assert_eq!(up.received.packets == pieces, each_packet, "{pieces} pieces of {:?}", up.received);
        }
    }
}

/// Servers on the machine's loopback address are reached through [`Block::host`], with all their ends and refusals.
#[test]
fn the_gateway_reaches_servers_of_the_machine_and_refuses_where_there_is_none() {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    const LEN: usize = 1 << 20;
    let check = with_gateway(&config(path(100_000, 1), path(100_000, 1)), |link| {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(server) = TcpListener::bind(local) else { continue }; // no IPv6 here
            let port = server.local_addr().unwrap().port();
            let host = (link.block().host(), port);
            // The first connection finds no listener at the far end yet, the second does.
            for round in 0..2u8 {
                let mut client = link.near().run(|| TcpStream::connect(host)).unwrap();
                let (mut served, _) = server.accept().unwrap();
                let echo = std::thread::spawn(move || {
                    let mut bytes = Vec::new();
                    served.read_to_end(&mut bytes).unwrap();
                    served.write_all(&bytes).unwrap();
                });
                client.write_all(&vec![round; LEN]).unwrap();
                client.shutdown(Shutdown::Write).unwrap();
                let mut answer = Vec::new();
                client.read_to_end(&mut answer).unwrap();
                assert!(answer == vec![round; LEN], "{local}, {round}: {} bytes", answer.len());
                echo.join().unwrap();
            }
            drop(server);
            // There is still a listener at the far end; it finds nobody outside, and is gone thereafter.
            let late =
                link.near().run(|| TcpStream::connect(host)).and_then(|mut stream| stream.read(&mut [0; 8]));
            assert!(late.is_err(), "{late:?}");
            let refused = link.near().run(|| TcpStream::connect(host)).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        }
    });
    assert!(check.is_none_or(|check| check.down.received.bytes as usize > 2 * LEN));
}

/// Each asker gets the answers to what it asked, from the address that it asked.
#[test]
fn the_gateway_carries_datagrams_there_and_back() {
    use std::net::UdpSocket;
    with_gateway(&config(path(100_000, 1), path(100_000, 1)), |link| {
        let wait =
            |socket: &UdpSocket| socket.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let host = (link.block().host(), server.local_addr().unwrap().port());
        let clients: Vec<_> =
            (0..3).map(|_| link.near().run(|| UdpSocket::bind("0.0.0.0:0")).unwrap()).collect();
        clients.iter().chain([&server]).for_each(wait);
        for round in 0..3u8 {
            for (number, client) in (0u8..).zip(&clients) {
                client.send_to(&[round, number], host).unwrap();
                let mut question = [0; 8];
                let (len, from) = server.recv_from(&mut question).unwrap();
                assert_eq!(question[..len], [round, number]);
                server.send_to(&[number, round, 7], from).unwrap();
            }
            for (number, client) in (0u8..).zip(&clients) {
                let mut answer = [0; 8];
                let (len, from) = client.recv_from(&mut answer).unwrap();
                assert_eq!((&answer[..len], from), (&[number, round, 7][..], host.into()));
            }
        }
    });
}
