//! Acknowledgements and windows: when they are sent, how they open, what they hold back.

mod harness;

use base::{Bitrate, Duration, Instant};
use harness::script::{Script, WIDE, ack, data, fin, syn};
use harness::{Client, Path, World};
use tcp::{Config, CwndGrowth, Endpoint, Event, Segment, Timestamps};

/// No quick acknowledgements.
fn delayed() -> Config {
    Config { quickack: 0, ..Config::linux_today() }
}

fn world(config: &Config, kbps: u64, rtt_ms: u64) -> World {
    let rate = Bitrate::from_kbps(kbps);
    let path = Path { down: rate, up: rate, rtt: Duration::from_millis(rtt_ms) };
    World::new(config.clone(), config.clone(), &path)
}

fn after_ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// RFC 5681 §4.2: at least every second full segment, the others within the delay (500 ms there, 40 ms here).
#[test]
fn every_second_segment_is_acknowledged_at_once_and_a_single_one_after_the_delay() {
    let mut s = Script::client(delayed());
    s.get(200, data(1..1461, 1));
    s.silent(230);
    s.get(230, data(1461..2921, 1));
    s.send(230, ". seq 1 ack 2921");
    s.get(300, data(2921..4381, 1));
    s.silent(339);
    s.send(340, ". seq 1 ack 4381");
    s.silent(10_000);
}

/// RFC 5681 §4.2: out of order, at once; filling a gap, at once. RFC 2018 §4: the newest block first. RFC 2883 §4: a
/// duplicate is reported first.
#[test]
fn disorder_is_acknowledged_at_once_with_sack() {
    let mut s = Script::client(delayed());
    s.get(200, data(1461..2921, 1));
    s.send(200, ". seq 1 ack 1 win 67160 sack [1461..2921]");
    s.get(201, data(4381..5841, 1));
    s.send(201, ". seq 1 ack 1 win 70080 sack [4381..5841, 1461..2921]");
    s.get(202, data(4381..5841, 1));
    s.send(202, ". seq 1 ack 1 win 73000 sack [4381..5841, 4381..5841, 1461..2921]");
    s.get(203, data(1..1461, 1));
    s.send(203, ". seq 1 ack 2921 win 75920 sack [4381..5841]");
    s.get(204, data(2921..4381, 1));
    s.send(204, ". seq 1 ack 5841 win 76080");
    s.get(205, data(1..1461, 1));
    s.send(205, ". seq 1 ack 5841 win 76080 sack [1..1461]");
    s.check("readable", s.tcp.readable(), 5840);
}

/// RFC 5681 §4.2: a gap is filled by however little, the acknowledgement is not delayed.
#[test]
fn filling_a_small_gap_is_acknowledged_at_once() {
    let mut s = Script::client(delayed());
    s.get(200, data(101..201, 1));
    s.send(200, ". seq 1 ack 1 win 64240 sack [101..201]");
    s.get(201, data(1..101, 1));
    s.send(201, ". seq 1 ack 201");
}

/// RFC 7323 §4.3 (2): a delayed acknowledgement echoes the first segment that it covers, so the peer measures the delay
/// too; one of disorder echoes what was echoed last, so a loss shortens no measurement.
#[test]
fn the_echo_is_that_of_the_first_segment_acknowledged() {
    let stamped = |mut segment: Segment, value| {
        segment.timestamps = Some(Timestamps { value, echo: 0 });
        segment
    };
    let mut s = Script::new(Endpoint::connect(delayed(), Instant::ZERO));
    s.send_any(0);
    let mut answer = Segment { ack: 1, ..stamped(syn(WIDE), 1) };
    answer.flags.ack = true;
    s.get(100, answer);
    s.send_any(100);
    for (ms, range, value, echo) in [
        (200, 1..1449, 2, None),
        (210, 1449..2897, 3, Some(2)),
        (300, 4345..5793, 4, Some(2)),
        (301, 2897..4345, 5, Some(5)),
    ] {
        s.get(ms, stamped(data(range, 1), value));
        let echoed = s.take_sent().first().and_then(|(_, segment)| segment.timestamps).map(|t| t.echo);
        s.check(&format!("the echo at {ms}"), echoed, echo);
    }
}

/// Linux: the first acknowledgements are not delayed, as many as let the sender fill half of the window; nor is any
/// if the application answers data with data. RFC 5681 §4.2 allows it.
#[test]
fn the_first_segments_are_acknowledged_one_by_one() {
    let narrow = Config { initial_rwnd: 8 * 1460, rwnd_start: 8 * 1460, ..Config::linux_today() };
    let mut s = Script::client(narrow);
    for i in 0..4 {
        s.get(200 + i, data(1 + 1460 * i..1461 + 1460 * i, 1));
        s.send(200 + i, &format!(". seq 1 ack {}", 1461 + 1460 * i));
    }
    s.get(210, data(5841..7301, 1));
    s.silent(249);
    s.send(250, ". seq 1 ack 7301");

    let mut s = Script::client(Config::linux_today());
    s.get(200, data(1..101, 1));
    s.send(200, ". seq 1 ack 101");
    s.read(201);
    s.write(210, 50); // an answer: interactive from here on
    s.send(210, "P. seq 1..51 (50) ack 101");
    s.get(310, data(101..1561, 51));
    s.silent(349);
    s.send(350, ". seq 51 ack 1561");
}

/// Linux sends an acknowledgement that is due when it has taken the segment in, before the application hears of it: what that writes
/// takes none along. What was written before does.
#[test]
fn an_acknowledgement_that_is_due_does_not_wait_for_the_answer() {
    let mut s = Script::server(Config::linux_today());
    s.tcp.handle_segment(s.now, &data(1..301, 1));
    s.does(100, "reads and answers at once", |tcp, now| {
        tcp.read(now, 300);
        tcp.write(500);
    });
    s.send(100, ". seq 1 ack 301");
    s.send(100, "P. seq 1..501 (500) ack 301");
    // Now it is interactive, and the answer takes the acknowledgement along.
    s.tcp.handle_segment(s.now, &data(301..601, 501));
    s.does(100, "reads and answers at once", |tcp, now| {
        tcp.read(now, 300);
        tcp.write(500);
    });
    s.send(100, "P. seq 501..1001 (500) ack 601");
    s.silent(200);

    let mut s = Script::server(Config::linux_today());
    s.tcp.write(500);
    s.get(100, data(1..301, 1));
    s.send(100, "P. seq 1..501 (500) ack 301");
    s.silent(110);
}

/// Linux (`tcp_grow_window`): as long as the window grows, each segment is acknowledged, so that the sender hears of it.
#[test]
fn a_segment_that_makes_the_window_grow_is_acknowledged_at_once() {
    // Room for quick acknowledgements of 2 segments, and for the window to grow twice.
    let config = Config { initial_rwnd: 4 * 1460, rwnd_start: 9 * 1460, ..Config::linux_today() };
    let mut s = Script::client(config);
    let mut acknowledged = Vec::new();
    for i in 0..9 {
        s.get(200 + i, data(1 + 1460 * i..1461 + 1460 * i, 1));
        s.read(200 + i);
        acknowledged.extend(s.take_sent().iter().map(|(_, segment)| (segment.ack - 1) / 1460));
    }
    // Two that grow it, two quick ones, and then every second.
    s.check("acknowledged", acknowledged, vec![1, 2, 3, 4, 6, 8]);
}

/// Linux (`tcp_cleanup_rbuf`): when the application has read the end of a message, a segment that is not full, the
/// acknowledgement need not wait for a second one.
#[test]
fn the_end_of_a_message_is_acknowledged_when_it_is_read() {
    let mut s = Script::client(delayed());
    s.get(200, data(1..501, 1));
    s.silent(210);
    s.read(210);
    s.send(210, ". seq 1 ack 501");
}

/// RFC 9293 §3.10.7.4, eighth: a FIN is acknowledged; Linux does so at once.
#[test]
fn a_fin_is_acknowledged_at_once() {
    let mut s = Script::client(delayed());
    s.get(200, fin(1, 1));
    s.send(200, ". seq 1 ack 2");
    let event = s.tcp.poll_event();
    s.check("event", event, Some(Event::PeerClosed));
}

/// Linux before 2.6.39 (RFC 2414's window): a client that offers four segments holds back a server that could send ten; one
/// round trip later its window has grown. A larger offer saves that round trip.
#[test]
fn a_small_first_receive_window_costs_one_round_trip() {
    let time = |initial_rwnd| {
        let config = Config { initial_rwnd, ..Config::linux_today() };
        let mut world = world(&config, 100_000, 100);
        world.server.to_write = 14_000;
        world.run_while(after_ms(10_000), |world| world.client.read < 14_000);
        world.now.since(Instant::ZERO).as_micros() / 1000
    };
    let (small, large) = (time(4 * 1460), time(64_240));
    assert!((98..=102).contains(&(small - large)), "{small} ms against {large} ms");
}

/// RFC 9293 §3.8.6.1: a closed window is probed with back-off until it opens; the application's reading opens it.
#[test]
fn a_closed_window_is_probed_until_it_opens() {
    let mut s = Script::server(Config::linux_today());
    s.write(200, 4 * 1460);
    s.send_full(200, 1..5841);
    s.get(300, Segment { window: 0, ..ack(5841) });
    s.write(300, 3_000);
    // SRTT 100 + 200: after 300, 600, 1200 ms.
    for ms in [600, 1_200, 2_400] {
        s.send(ms, ". seq 5840 ack 1");
        s.get(ms + 100, Segment { window: 0, ..ack(5841) });
    }
    s.get(2_600, Segment { window: 2_000, ..ack(5841) });
    s.send(2_600, ". seq 5841..7301");
    s.check("the back-off is over", s.tcp.rto(), Duration::from_millis(300));
    s.get(2_700, Segment { window: 540, ..ack(7301) });
    // 540 bytes are too few for the 1540 that wait: the silly window is filled by the timer only.
    s.silent(2_990);
    let (_, rest) = (s.wait(3_010), s.take_sent());
    s.check("the rest of the window", rest.first().map(|(_, segment)| segment.len), Some(540));
    s.check("probes", s.tcp.stats().window_probes, 4);
}

/// RFC 9293 §3.8.6.2.2, and Linux's `tcp_cleanup_rbuf`: a reader that comes late closes the window; when it reads, the
/// window opens at once, and not by crumbs. If that segment is lost, the probe finds out.
#[test]
fn reading_reopens_the_window_and_a_lost_opening_is_mended_by_a_probe() {
    for lost in [false, true] {
        let config =
            Config { rwnd_max: 20_000, rwnd_autotune: false, initial_rwnd: 20_000, ..Config::linux_today() };
        let mut world = world(&config, 10_000, 50);
        world.client.reads = false;
        world.server.to_write = 60_000;
        world.run_until(after_ms(3_000));
        let full = world.client.tcp.readable();
        world.require((18_540..=20_000).contains(&full), &format!("the buffer is full: {full}"));
        world.client.wire.lose = Box::new(move |_, _| lost);
        world.client.reads = true;
        world.drain(Client);
        world.client.wire.lose = Box::new(|_, _| false);
        let opened = world.now;
        world.run_while(after_ms(60_000), |world| world.client.read < 60_000);
        let probes = world.server.tcp.stats().window_probes;
        world.require(probes > 0, "it was probed");
        let took = world.now.since(opened).as_millis_f64();
        world.require((took < 300.0) != lost, &format!("{took} ms from the reading to the end"));
    }
}

/// Linux's dynamic right-sizing: a path that needs 1.25 MB in flight gets it within a few round trips of a window of
/// 64 KB, with timestamps or without, and the time lost is about one of them.
#[test]
fn autotuning_keeps_ahead_of_slow_start() {
    for timestamps in [true, false] {
        let auto = Config { timestamps, ..Config::linux_today() };
        let wide = Config { initial_rwnd: 1 << 30, rwnd_max: 1 << 30, rwnd_autotune: false, ..auto.clone() };
        let time = |config: &Config| {
            let mut world = world(config, 100_000, 100);
            world.checks = false;
            world.server.to_write = 10_000_000;
            world.run_while(after_ms(60_000), |world| world.client.read < 10_000_000);
            world.now.since(Instant::ZERO).as_millis_f64()
        };
        let (auto, wide) = (time(&auto), time(&wide));
        assert!(auto < wide + 150.0, "{auto} ms against {wide} ms with a wide window");
    }
}

/// Linux since 5.10: the buffer grows as soon as a round trip has brought more than ten segments, not only more than the first window.
#[test]
fn the_buffer_grows_with_the_third_flight_of_slow_start() {
    let mut world = world(&Config::linux_today(), 100_000, 100);
    world.server.to_write = 3_000_000;
    // 20 segments come in the third round trip, and when the fourth begins they have been read.
    world.run_until(after_ms(390));
    assert_eq!(world.client.tcp.stats().bytes_received, 30 * 1_448);
    world.run_until(after_ms(430));
    let most = world
        .trace
        .iter()
        .filter(|(_, side, ..)| *side == Client)
        .map(|(.., segment, _)| segment.window)
        .max();
    world.require(most.is_some_and(|most| most > 170_000), &format!("{most:?}"));
}

/// And without autotuning the window stays where it is, and with it the rate.
#[test]
fn a_fixed_buffer_bounds_the_rate() {
    let fixed = Config { rwnd_max: 65_535, rwnd_autotune: false, ..Config::linux_today() };
    let mut world = world(&fixed, 100_000, 100);
    world.server.to_write = 3_000_000;
    world.run_while(after_ms(60_000), |world| world.client.read < 3_000_000);
    let rate = 3_000_000.0 / world.now.since(Instant::ZERO).as_secs_f64();
    assert!((0.85..1.0).contains(&(rate / 651_600.0)), "{rate} B/s: 45 segments a round trip"); // 45 × 1448 / 0.1
}

/// RFC 2861 §3.1 (Linux: `tcp_slow_start_after_idle`): after a pause the window halves for each timeout that passed, no
/// lower than it began; RFC 5681 §4.1 would go there at once.
#[test]
fn an_idle_connection_restarts_from_a_smaller_window() {
    for (idle_restart, burst) in [(true, 10), (false, 40)] {
        let mut s = Script::server(Config { idle_restart, ..Config::linux_today() });
        let mut sent = 0;
        let mut ms = 200;
        for segments in [10, 20, 16] {
            s.write(ms, segments * 1460);
            ms += 100;
            sent += segments * 1460;
            s.get(ms, ack(1 + sent));
        }
        s.check("cwnd", s.tcp.stats().cwnd, 40);
        s.take_sent();
        s.write(ms + 5_000, 100 * 1460);
        let at_once = s.take_sent().len();
        s.check("sent at once after the pause", at_once, burst);
        s.check("ssthresh", s.tcp.stats().ssthresh, None);
    }
}

/// RFC 7661 §4.1 in Linux's form (`tcp_is_cwnd_limited`): a window that is not used does not grow.
#[test]
fn cwnd_grows_only_while_it_is_used() {
    let mut s = Script::server(Config::linux_today());
    for i in 0..50 {
        s.write(200 + 100 * i, 1460);
        s.get(300 + 100 * i, ack(1 + 1460 * (i + 1)));
    }
    s.check("cwnd", s.tcp.stats().cwnd, 10);
}

/// RFC 2861 §3.2: a window of which a part is not used for a timeout moves half-way to that part, and `ssthresh`
/// remembers three quarters of it; never below the initial window.
#[test]
fn an_unused_part_of_cwnd_decays() {
    let mut s = Script::server(Config::linux_today());
    s.write(200, 60 * 1460);
    for i in 1..=30 {
        s.get(300, ack(1 + i * 1460));
    }
    s.check("cwnd", s.tcp.stats().cwnd, 40);
    s.get(400, ack(1 + 60 * 1460));
    let grown = s.tcp.stats().cwnd;
    let mut sent = 60 * 1460;
    for i in 0..10 {
        s.write(500 + 100 * i, 1460);
        sent += 1460;
        s.get(590 + 100 * i, ack(1 + sent));
    }
    let decayed = s.tcp.stats().cwnd;
    s.check("half-way to ten, more than once", decayed > 10 && decayed <= (grown + 30) / 4, true);
}

/// In slow start half of cwnd is use enough (Linux: `tcp_is_cwnd_limited`): an answer of 21 segments uses a window of 40, and
/// one of 6 within a timeout after it costs none of what that has become.
#[test]
fn a_window_half_used_in_slow_start_does_not_decay() {
    let mut s = Script::server(Config::linux_today());
    s.write(200, 30 * 1460);
    s.get(300, ack(1 + 10 * 1460));
    s.get(400, ack(1 + 30 * 1460));
    s.check("cwnd", s.tcp.stats().cwnd, 40);
    s.write(500, 21 * 1460);
    s.get(600, ack(1 + 51 * 1460));
    s.check("cwnd", s.tcp.stats().cwnd, 61);
    s.write(700, 6 * 1460);
    s.get(800, ack(1 + 57 * 1460));
    s.check("cwnd, 500 ms after all of it was in use", s.tcp.stats().cwnd, 61);
}

/// RFC 5681 §3.1 and RFC 3465's reason: counting acknowledgements, a receiver that delays them halves the growth.
#[test]
fn slow_start_counts_acknowledgements_then_and_segments_today() {
    for (cwnd_growth, cwnd) in [(CwndGrowth::PerAck, 15), (CwndGrowth::PerSegment, 20)] {
        let mut s = Script::server(Config { cwnd_growth, ..Config::linux_today() });
        s.write(200, 100_000);
        for i in 1..=5 {
            s.get(300 + i, ack(1 + 2 * i * 1460));
        }
        s.check("cwnd after a round trip", s.tcp.stats().cwnd, cwnd);
    }
}

/// The scheduler above is asked late: no more than `notsent_lowat` waits unsent, and `Writable` says when half of it is
/// free again.
#[test]
fn the_application_is_asked_for_more_only_when_little_waits() {
    let mut s = Script::server(Config { notsent_lowat: 20_000, ..Config::linux_today() });
    s.check("room", s.tcp.writable(), 20_000);
    s.write(200, 20_000);
    s.check("ten segments went, 5,400 bytes wait", (s.tcp.unsent(), s.tcp.writable()), (5_400, 14_600));
    let event = s.tcp.poll_event();
    s.check("more than half is free", event, Some(Event::Writable));
    s.write(200, 12_000); // that is not all the room, but too little is left to be worth a word
    for i in 1..=3 {
        let event = s.tcp.poll_event();
        s.check("less than half is free", event, None);
        s.get(300 + i, ack(1 + i * 1460)); // releases two
    }
    let event = s.tcp.poll_event();
    s.check("half is free again", (event, s.tcp.unsent()), (Some(Event::Writable), 8_640));
    let event = s.tcp.poll_event();
    s.check("it is said once", event, None);
}

/// A link that is kept busy delivers its rate, headers counted.
#[test]
fn a_saturated_link_carries_its_rate() {
    for config in [Config::linux_2010(), Config::linux_today()] {
        for (kbps, rtt_ms) in [(2_000, 100), (10_000, 20), (50_000, 100)] {
            let mut world = world(&config, kbps, rtt_ms);
            world.checks = false;
            let size = kbps * 1000 / 8 * 20; // 20 s of it
            world.server.to_write = size;
            world.run_while(after_ms(60_000), |world| world.client.read < size / 4);
            let (then, had) = (world.now, world.client.read);
            world.run_while(after_ms(60_000), |world| world.client.read < size);
            let wire = (world.client.read - had) as f64 * 1500.0 / 1448.0;
            let share = wire * 8.0 / world.now.since(then).as_secs_f64() / (kbps * 1000) as f64;
            assert!((0.99..=1.001).contains(&share), "{kbps} kbit/s, {rtt_ms} ms: {share}");
        }
    }
}

/// RFC 9293 §3.8.6: nothing is sent beyond the window, whatever is written. (The harness checks it in every other test.)
#[test]
fn the_peers_window_is_never_exceeded() {
    let mut s = Script::server(Config::linux_today());
    s.get(150, Segment { window: 4_000, ..ack(1) });
    s.write(200, 100_000);
    s.send_full(200, 1..2921);
    s.silent(250);
    s.get(300, Segment { window: WIDE, ..ack(2921) });
    s.send_full(300, 2921..4381);
}

/// RFC 9293 §3.4: a FIN takes a number, so a window that the data fill keeps it back.
#[test]
fn a_fin_waits_for_room_in_the_window() {
    let mut s = Script::server(Config::linux_today());
    s.get(150, Segment { window: 1_000, ..ack(1) });
    s.does(200, "writes 1000 and closes", |tcp, _| {
        tcp.write(1_000);
        tcp.close();
    });
    s.send(200, "P. seq 1..1001 (1000)");
    s.silent(290);
    s.get(300, Segment { window: 1, ..ack(1_001) });
    s.send(300, "F. seq 1001");
}
