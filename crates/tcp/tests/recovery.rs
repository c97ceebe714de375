//! What is lost, when the sender notices, and what it does then.

#![allow(clippy::single_range_in_vec_init, reason = "a list of SACK blocks that happens to have one")]

mod harness;

use base::{Bitrate, Duration, Instant};
use harness::script::{Script, ack, sack};
use harness::{Path, World};
use tcp::{Config, Congestion, LossDetection, Reduction};

/// Reno with SACK and nothing newer, so that numbers follow from RFC 5681 and 6675 alone.
fn classic() -> Config {
    Config {
        congestion: Congestion::Reno,
        loss_detection: LossDetection::Sack,
        reduction: Reduction::AtOnce,
        tail_loss_probe: false,
        ..Config::linux_today()
    }
}

fn newreno() -> Config {
    Config { sack: false, ..classic() }
}

/// A server that has written `n` bytes at 200 ms and sent its initial window of ten.
fn sending(config: Config, n: u64) -> Script {
    let mut s = Script::server(config);
    s.write(200, n);
    s.send_full(200, 1..14_601);
    s
}

const FULL: u64 = 1460;

/// The sequence number of the `n`-th full segment, from 0.
fn nth(n: u64) -> u64 {
    1 + n * FULL
}

/// RFC 5681 §3.2, RFC 3042 §2: two duplicates release a new segment each and retransmit nothing, the third
/// retransmits.
#[test]
fn the_third_duplicate_retransmits_and_the_first_two_send_new_data() {
    let mut s = sending(newreno(), 100_000);
    s.get(300, ack(nth(1)));
    s.send_full(300, nth(10)..nth(12));
    s.get(301, ack(nth(1)));
    s.send_full(301, nth(12)..nth(13));
    s.get(302, ack(nth(1)));
    s.send_full(302, nth(13)..nth(14));
    s.get(303, ack(nth(1)));
    s.send_full(303, nth(1)..nth(2));
    s.check("fast recoveries", s.tcp.stats().fast_recoveries, 1);
    s.check("ssthresh", s.tcp.stats().ssthresh, Some(5));
    // Ten more duplicates: inflated by what they say, cwnd lets new data out again when the pipe is below 5.
    s.silent(305);
}

/// RFC 6582 §3.2 steps 3 to 5: a partial acknowledgement retransmits the next hole at once, without waiting for three
/// duplicates more; one hole a round trip.
#[test]
fn newreno_repairs_one_hole_a_round_trip() {
    let mut s = sending(newreno(), 14_600); // lost: 0, 3 and 6
    for i in 0..7 {
        s.get(300 + i, ack(1));
    }
    s.send_full(302, nth(0)..nth(1));
    s.get(402, ack(nth(3)));
    s.send_full(402, nth(3)..nth(4));
    s.get(502, ack(nth(6)));
    s.send_full(502, nth(6)..nth(7));
    s.get(602, ack(nth(10)));
    s.silent(10_000);
    s.check("timeouts", s.tcp.stats().timeouts, 0);
    s.check("retransmits", s.tcp.stats().retransmits, 3);
    s.check("cwnd is ssthresh after recovery", s.tcp.stats().cwnd, 5);
}

/// RFC 6582 §3.2 step 2: after a timeout, the duplicates that its needless retransmissions cause are not a loss.
#[test]
fn newreno_ignores_duplicates_of_what_was_sent_before_the_timeout() {
    let mut s = sending(newreno(), 14_600);
    s.send_full(500, nth(0)..nth(1)); // a timeout, though nothing was lost
    s.get(510, ack(nth(10)));
    s.write(520, 5 * FULL);
    s.take_sent();
    for i in 0..4 {
        s.get(600 + i, ack(nth(10)));
    }
    s.silent(650);
    s.check("fast recoveries", s.tcp.stats().fast_recoveries, 0);
}

/// RFC 2018 §3 and the MTU: a retransmission is as long as the segment was, so what there is to SACK goes by itself.
#[test]
fn a_full_retransmission_leaves_the_sack_option_to_a_pure_acknowledgement() {
    let mut s = sending(classic(), 14_600);
    s.get(300, sack(1, [nth(1)..nth(3)]));
    let mut both = sack(1, [nth(1)..nth(4)]);
    (both.seq, both.len) = (1_001, 500); // the third, and a hole in what the peer sends
    s.get(310, both);
    s.send_full(310, nth(0)..nth(1));
    s.send(310, ". seq 14601 ack 1 win 64240 sack [1001..1501]");
    s.silent(350);
}

/// RFC 6675 §5: with SACK all holes are repaired in the first round trip, in order, and nothing else is sent again.
#[test]
fn sack_repairs_all_holes_in_one_round_trip() {
    for config in
        [classic(), Config { reduction: Reduction::Proportional, ..classic() }, Config::linux_today()]
    {
        let mut s = sending(config, 14_600); // lost: 0, 3 and 6
        s.get(300, sack(1, [nth(1)..nth(2)]));
        s.get(301, sack(1, [nth(1)..nth(3)]));
        s.get(302, sack(1, [nth(4)..nth(5), nth(1)..nth(3)]));
        s.get(303, sack(1, [nth(4)..nth(6), nth(1)..nth(3)]));
        s.get(304, sack(1, [nth(7)..nth(8), nth(4)..nth(6), nth(1)..nth(3)]));
        s.get(305, sack(1, [nth(7)..nth(9), nth(4)..nth(6), nth(1)..nth(3)]));
        s.get(306, sack(1, [nth(7)..nth(10), nth(4)..nth(6), nth(1)..nth(3)]));
        s.wait(399);
        let sent = s.take_sent().iter().map(|(_, segment)| segment.seq).collect();
        s.check("the holes, in order", sent, vec![nth(0), nth(3), nth(6)]);
        s.get(402, sack(nth(3), [nth(7)..nth(10), nth(4)..nth(6)]));
        s.get(403, sack(nth(6), [nth(7)..nth(10)]));
        s.get(404, ack(nth(10)));
        s.silent(10_000);
        s.check("retransmits", s.tcp.stats().retransmits, 3);
        s.check("timeouts", s.tcp.stats().timeouts, 0);
    }
}

/// RFC 6675 §5 step 4 halves at once: one retransmission, then silence until the pipe is below half a window.
/// RFC 6937 §3 sends one segment for about two that arrive. Both leave with cwnd = ssthresh.
#[test]
fn halving_is_silent_first_and_proportional_reduction_is_not() {
    for (reduction, new_at) in [
        // Both: two by limited transmit. 12 are out when the third SACK comes, and the pipe with the retransmission is 9. It
        // is below 5 with the eighth SACK.
        (Reduction::AtOnce, vec![300, 301, 307, 308]),
        // After n SACKs in recovery ⌈n × 5 / 12⌉ may have been sent; the retransmission is the first.
        (Reduction::Proportional, vec![300, 301, 304, 306]),
    ] {
        let mut s = sending(Config { reduction, ..classic() }, 100_000); // lost: 0
        for i in 0..9 {
            s.get(300 + i, sack(1, [nth(1)..nth(2 + i)]));
        }
        let (new, old): (Vec<_>, Vec<_>) =
            s.take_sent().into_iter().partition(|(_, sent)| sent.seq >= nth(10));
        s.check("the retransmission", old.iter().map(|(ms, _)| *ms).collect(), vec![302]);
        s.check("new segments", new.iter().map(|(ms, _)| *ms).collect(), new_at);
        s.get(402, ack(nth(10)));
        s.check("cwnd after recovery", s.tcp.stats().cwnd, 5);
    }
}

/// RFC 6937 §3: when more was lost than the window must shrink by, it grows back towards `ssthresh` by one segment an
/// acknowledgement that advances (the slow-start reduction bound), by none while only SACKs come (the conservative bound). At
/// the end cwnd is `ssthresh`, though the pipe was never that full.
#[test]
fn after_many_losses_proportional_reduction_grows_the_pipe_with_each_advance() {
    let config = Config { reduction: Reduction::Proportional, ..classic() };
    let mut s = sending(config, 14_600); // lost: 0 to 5
    for (ms, end) in [(300, 7), (301, 8), (302, 9)] {
        s.get(ms, sack(1, [nth(6)..nth(end)]));
    }
    s.send_full(302, nth(0)..nth(1));
    s.get(303, sack(1, [nth(6)..nth(10)]));
    s.send_full(303, nth(1)..nth(2));
    s.get(402, sack(nth(1), [nth(6)..nth(10)]));
    s.send_full(402, nth(2)..nth(4));
    s.get(403, sack(nth(2), [nth(6)..nth(10)]));
    s.send_full(403, nth(4)..nth(6));
    s.get(502, ack(nth(10)));
    s.check("cwnd", s.tcp.stats().cwnd, 5);
}

/// RFC 8985 §6.2 step 2: an acknowledgement that comes sooner than any round trip was ever made is that of the original.
/// Were it the retransmission's, all that is in flight would be taken for lost.
#[test]
fn an_early_acknowledgement_does_not_condemn_what_is_in_flight() {
    let mut s = sending(Config::linux_today(), 14_600); // lost: 4 and 5; 0 is late
    for i in 1..4 {
        s.get(299 + i, sack(1, [nth(1)..nth(1 + i)]));
    }
    s.send_full(302, nth(0)..nth(1));
    s.get(305, sack(nth(4), [nth(6)..nth(7)]));
    let again = s.take_sent().len() as u32;
    s.check("7, 8 and 9 are still out", s.tcp.segments_in_flight(), 3 + again);
}

/// Linux (`tcp_remove_reno_sacks`): without SACK, a segment that a duplicate has announced does not count again for slow start
/// when it is acknowledged.
#[test]
fn newreno_counts_each_arrival_once() {
    let mut s = sending(newreno(), 100_000);
    s.get(300, ack(1));
    s.get(301, ack(1));
    s.get(302, ack(nth(10)));
    s.check("cwnd", s.tcp.stats().cwnd, 18);
}

/// RFC 8985 §6.2 against RFC 6675 §4: a retransmission that is lost again is noticed when something sent after it
/// arrives; without RACK, by timeout only.
#[test]
fn rack_notices_the_loss_of_a_retransmission() {
    for (loss_detection, timeouts) in [(LossDetection::Rack, 0), (LossDetection::Sack, 1)] {
        let config = Config { loss_detection, ..classic() };
        let mut s = sending(config, 100_000); // lost: 0, and its retransmission
        for i in 0..9 {
            s.get(300 + i, sack(1, [nth(1)..nth(2 + i)]));
        }
        let new: Vec<_> = s.take_sent().into_iter().filter(|(_, sent)| sent.seq >= nth(10)).collect();
        for i in 0..new.len() as u64 {
            s.get(400 + i, sack(1, [nth(1)..nth(11 + i)]));
        }
        if timeouts == 0 {
            let again = s.take_sent().into_iter().filter(|(_, sent)| sent.seq == 1).count();
            s.check("retransmitted at once", again, 1);
        } else {
            s.wait(5_000);
            s.check("timeouts", s.tcp.stats().timeouts > 0, true);
        }
    }
}

/// RFC 8985 §6.2 step 4 and §6.3: fewer than three SACKs leave a quarter of a round trip for reordering; then the hole
/// is repaired by a timer and not by a timeout.
#[test]
fn rack_repairs_a_hole_near_the_end_after_the_reordering_window() {
    let mut s = sending(Config::linux_today(), 14_600); // lost: 8
    for i in 1..9 {
        s.get(300, ack(nth(i)));
    }
    s.get(300, sack(nth(8), [nth(9)..nth(10)]));
    s.silent(324);
    s.send_full(325, nth(8)..nth(9));
    s.get(425, ack(nth(10)));
    s.silent(5_000);
    s.check("timeouts and probes", (s.tcp.stats().timeouts, s.tcp.stats().tlp_probes), (0, 0));
}

/// RFC 8985 §7.2 and §7.3: two round trips after the last acknowledgement the last segment goes out again, and its SACK
/// reveals the hole. Without a probe it is the timeout: SRTT + 200 ms at least, and a window of one.
#[test]
fn a_lost_tail_is_found_by_a_probe_or_by_timeout() {
    let mut s = sending(Config::linux_today(), 14_600); // lost: 8 and 9
    s.get(300, ack(nth(8)));
    s.send_full(500, nth(9)..nth(10));
    s.get(600, sack(nth(8), [nth(9)..nth(10)]));
    s.send_full(600, nth(8)..nth(9));
    s.get(700, ack(nth(10)));
    s.silent(10_000);
    s.check("timeouts and probes", (s.tcp.stats().timeouts, s.tcp.stats().tlp_probes), (0, 1));

    let mut s = sending(Config { tail_loss_probe: false, ..Config::linux_today() }, 14_600);
    s.get(300, ack(nth(8)));
    s.send_full(600, nth(8)..nth(9));
    s.check("cwnd", s.tcp.stats().cwnd, 1);
    s.get(700, ack(nth(9)));
    s.send_full(700, nth(9)..nth(10));
    s.get(800, ack(nth(10)));
    s.check("timeouts", s.tcp.stats().timeouts, 1);
}

/// RFC 8985 §7.2: with one segment out the peer may be delaying its acknowledgement, so the probe waits for that too, but
/// no longer than the timeout would. On a steady path that is when the timeout would come, and cheaper.
#[test]
fn the_probe_for_a_single_segment_comes_when_the_timeout_would_and_leaves_cwnd_alone() {
    let mut s = Script::server(Config::linux_today());
    s.write(200, 1_000);
    s.send(200, "P. seq 1..1001");
    s.silent(499);
    s.send(500, ". seq 1..1001");
    s.check("cwnd, timeouts", (s.tcp.stats().cwnd, s.tcp.stats().timeouts), (10, 0));
    s.send(800, ". seq 1..1001");
    s.check("cwnd, timeouts", (s.tcp.stats().cwnd, s.tcp.stats().timeouts), (1, 1));
}

/// RFC 8985 §7.2: a probe takes new data when there is some.
#[test]
fn a_probe_prefers_new_data() {
    let config = Config { initial_cwnd: 2, ..Config::linux_today() };
    let mut s = Script::server(config);
    s.write(200, 5 * FULL);
    s.send_full(200, nth(0)..nth(2)); // both lost
    s.send_full(400, nth(2)..nth(3));
    s.get(500, sack(1, [nth(2)..nth(3)]));
    s.send_full(500, nth(0)..nth(1));
}

/// RFC 8985 §7.4: a probe that repaired the loss itself costs cwnd what the loss would have; one that was not needed,
/// as its D-SACK shows (RFC 2883 §4), costs nothing.
#[test]
fn a_probe_that_repaired_a_loss_reduces_cwnd_and_a_needless_one_does_not() {
    for needless in [false, true] {
        let config = Config { congestion: Congestion::Reno, idle_restart: false, ..Config::linux_today() };
        let mut s = sending(config, 14_600);
        s.get(300, ack(nth(9))); // lost: 9, or only its acknowledgement
        s.check("cwnd", s.tcp.stats().cwnd, 19);
        s.send_full(600, nth(9)..nth(10));
        s.write(650, 1_000);
        s.send(650, "P. seq 14601..15601");
        s.get(700, if needless { sack(nth(10), [nth(9)..nth(10)]) } else { ack(nth(10)) });
        s.get(750, ack(15_601));
        if needless {
            s.check("cwnd stays", s.tcp.stats().cwnd >= 19, true);
        } else {
            s.check("cwnd, 20 by then, is halved", s.tcp.stats().cwnd, 10);
        }
    }
}

/// RFC 6298 §5.5: each timeout doubles the next; §5.3 and §3: an acknowledgement of new data ends that.
#[test]
fn timeouts_back_off_exponentially_and_recover() {
    let mut s = sending(classic(), 14_600); // lost: all
    // SRTT 100, RTTVAR 50 from the handshake: 300 ms.
    for (ms, seq) in [(500, 0), (1_100, 0), (2_300, 0), (4_700, 0)] {
        s.send_full(ms, nth(seq)..nth(seq + 1));
    }
    s.check("timeouts", s.tcp.stats().timeouts, 4);
    s.get(4_800, ack(nth(1)));
    s.send_full(4_800, nth(1)..nth(3)); // slow start from one
    s.check("ssthresh", s.tcp.stats().ssthresh, Some(5));
    // Karn: what was sent again measures nothing without timestamps, so the back-off stays.
    s.check("timeout", s.tcp.rto(), Duration::from_millis(4_800));
    s.get(4_900, ack(nth(3)));
    s.get(5_000, ack(nth(10)));
    s.write(5_100, 100);
    s.get(5_200, ack(14_701));
    s.check("timeout after a sample", s.tcp.rto() < Duration::from_millis(400), true);
}

/// RFC 9293 §3.8.3, R2 for data: after `data_retries` timeouts in a row it is over.
#[test]
fn a_peer_that_vanishes_times_out() {
    let mut s = sending(Config { data_retries: 3, ..classic() }, 14_600);
    s.wait(60_000);
    let failed = tcp::Event::Failed(tcp::Error::TimedOut);
    let event = s.tcp.poll_event();
    s.check("event", event, Some(failed));
    s.check("timeouts", s.tcp.stats().timeouts, 3);
}

/// RFC 3522 §3.2: the echo of a timestamp shows that the original was acknowledged, not the retransmission, so nothing
/// was lost and cwnd comes back (RFC 4015).
#[test]
fn a_spurious_timeout_is_undone() {
    for (timestamps, spurious) in [(true, 1), (false, 0)] {
        // HyStart would take the long path for a queue, and end slow start without any loss.
        let config = Config { timestamps, tail_loss_probe: false, hystart: false, ..Config::linux_today() };
        let rate = Bitrate::from_kbps(10_000);
        let path = Path { down: rate, up: rate, rtt: Duration::from_millis(50) };
        let mut world = World::new(config.clone(), config, &path);
        world.server.to_write = 200_000;
        world.run_until(Instant::ZERO + Duration::from_millis(140));
        let before = world.server.tcp.stats().cwnd;
        world.client.wire.delay = Duration::from_millis(900); // the path to the server gets long
        world.run_while(Instant::ZERO + Duration::from_secs(20), |world| world.client.read < 200_000);
        world.run_until(Instant::MAX);
        let stats = world.server.tcp.stats();
        world.require(stats.timeouts >= 1, "the timer fires");
        world.require(stats.spurious_timeouts == spurious, "it is found out with timestamps only");
        let halved = stats.ssthresh.is_some();
        world.require(halved == (spurious == 0), &format!("cwnd was {before} and is {}", stats.cwnd));
    }
}

/// Linux (`tcp_time_to_recover`): what was sent during a recovery, and lost, begins the next one when the first ends, although it has
/// been sent again by then; cwnd pays a second time.
#[test]
fn a_loss_during_recovery_begins_the_next_one() {
    let mut s = sending(Config { reduction: Reduction::Proportional, ..classic() }, 100_000);
    s.get(300, sack(1, [nth(1)..nth(4)]));
    s.get(301, sack(1, [nth(1)..nth(10)]));
    let new = s.take_sent().into_iter().filter(|(_, segment)| segment.seq >= nth(10)).count();
    s.check("new segments", new >= 4, true);
    s.get(350, sack(1, [nth(11)..nth(14), nth(1)..nth(10)]));
    let again = s.take_sent().into_iter().any(|(_, segment)| segment.seq == nth(10));
    s.check("the 11th has been sent again", again, true);
    s.check("recoveries", (s.tcp.stats().fast_recoveries, s.tcp.stats().ssthresh), (1, Some(5)));
    s.get(400, sack(nth(10), [nth(11)..nth(14)]));
    s.check("recoveries", s.tcp.stats().fast_recoveries, 2);
    s.check("cwnd has been cut again", s.tcp.stats().ssthresh < Some(5), true);
}

/// The counterpart: a timeout that was due is not undone.
#[test]
fn a_timeout_that_repaired_a_loss_is_not_undone() {
    let config = Config { tail_loss_probe: false, ..Config::linux_today() };
    let path = Path { down: None, up: None, rtt: Duration::from_millis(50) };
    let mut world = World::new(config.clone(), config, &path);
    world.server.wire.lose = Box::new(|n, _| (8..=10).contains(&n));
    world.server.to_write = 10 * 1448;
    world.run_until(Instant::MAX);
    let stats = world.server.tcp.stats();
    world.require(world.client.read == 14_480, "all arrives");
    world.require((stats.timeouts, stats.spurious_timeouts) == (1, 0), "by one timeout");
    world.require(stats.ssthresh.is_some() && stats.cwnd < 10, "which costs cwnd");
}

/// RFC 5681 §4.2 note: acknowledgements are cumulative, so losing all but the last costs nothing but time.
#[test]
fn lost_acknowledgements_retransmit_nothing() {
    let rate = Bitrate::from_kbps(10_000);
    let config = Config { delayed_ack: Duration::ZERO, ..Config::linux_today() };
    let path = Path { down: rate, up: rate, rtt: Duration::from_millis(50) };
    let mut world = World::new(config.clone(), config, &path);
    world.client.wire.lose = Box::new(|n, _| n >= 3 && n % 10 != 0);
    world.server.to_write = 100_000;
    world.run_while(Instant::ZERO + Duration::from_secs(5), |world| world.client.read < 100_000);
    world.require(world.server.tcp.stats().retransmits == 0, "nothing is sent twice");
}

/// RFC 5681 §3.2: losing the very first data segment costs a round trip, not a timeout, if enough follows it.
#[test]
fn the_first_segment_lost_is_repaired_by_the_nine_behind_it() {
    for (config, initial_cwnd) in [(Config::linux_today(), 10), (classic(), 10)] {
        let rate = Bitrate::from_kbps(10_000);
        let path = Path { down: rate, up: rate, rtt: Duration::from_millis(50) };
        let config = Config { initial_cwnd, ..config };
        let mut world = World::new(config.clone(), config, &path);
        let mut left = 1;
        world.server.wire.lose = Box::new(move |_, segment| {
            let lost = segment.len > 0 && left > 0;
            left -= i32::from(lost);
            lost
        });
        world.server.to_write = 14_000;
        world.run_while(Instant::ZERO + Duration::from_secs(5), |world| world.client.read < 14_000);
        let stats = world.server.tcp.stats();
        world.require(stats.timeouts == 0 && stats.retransmits == 1, "one retransmission, no timeout");
        let rtts = world.now.since(Instant::ZERO).as_millis_f64() / 50.0;
        world.require(rtts < 3.4, &format!("{rtts} round trips: handshake, data, repair"));
    }
}

/// Mathis, Semke, Mahdavi and Ott (1997): a Reno flow that loses a share p of its segments carries about
/// MSS / RTT × √(3/2) / √p; with delayed acknowledgements and counting by segment the constant is the same.
#[test]
fn throughput_under_random_loss_is_close_to_the_square_root_law() {
    for p in [0.000_5, 0.002, 0.01] {
        let config = Config {
            congestion: Congestion::Reno,
            initial_rwnd: 1 << 30,
            rwnd_max: 1 << 30,
            rwnd_autotune: false,
            sndbuf: 1 << 30,
            ..Config::linux_today()
        };
        let rtt = 0.1;
        let path = Path { down: None, up: None, rtt: Duration::from_millis(100) };
        let mut world = World::new(config.clone(), config, &path);
        world.checks = false;
        let mut rng = base::Rng::new(3);
        world.server.wire.lose = Box::new(move |_, _| rng.chance(p));
        world.server.to_write = u64::MAX / 2;
        let (warm, end) = (100, 4_100);
        world.run_until(Instant::ZERO + Duration::from_secs(warm));
        let before = world.client.read;
        world.run_until(Instant::ZERO + Duration::from_secs(end));
        let rate = (world.client.read - before) as f64 / (end - warm) as f64;
        let law = 1448.0 / rtt * (1.5 / p).sqrt();
        let ratio = rate / law;
        println!("p {p}: {:.0} kB/s, {:.2} of the law", rate / 1e3, ratio);
        assert!((0.7..1.3).contains(&ratio), "p {p}: {rate:.0} B/s is {ratio:.2} of the law");
        let timeouts = world.server.tcp.stats().timeouts;
        let recoveries = world.server.tcp.stats().fast_recoveries;
        assert!(timeouts * 20 < recoveries, "{timeouts} timeouts, {recoveries} recoveries");
    }
}
