//! Paths in virtual time: what goes in, comes out when and where the configuration says.

use std::sync::Arc;

use base::{Bitrate, Duration, Instant, Rng};
use proptest::prelude::*;

use crate::*;

/// The n-th packet of a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Datagram {
    number: u64,
    len: u32,
    flow: u64,
}

impl Packet for Datagram {
    fn wire_len(&self) -> u32 {
        self.len
    }
    fn flow(&self) -> u64 {
        self.flow
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn constant(kbps: u64) -> Rate {
    Rate::Constant(Bitrate::from_kbps(kbps).unwrap())
}

fn trace(text: &str) -> Rate {
    Rate::Trace(Arc::new(Trace::parse(text).unwrap()))
}

fn packet(number: u64, len: u32) -> Datagram {
    Datagram { number, len, flow: 0 }
}

/// Takes what is on a node, each packet at the moment the node names.
fn drain<P>(node: &mut impl Node<P>) -> Vec<(Instant, P)> {
    let mut out = Vec::new();
    while let Some(at) = node.next_time() {
        if let Some(packet) = node.pop(at) {
            out.push((at, packet));
        }
    }
    out
}

/// Pushes `packets` and pops each at the moment the path names, in order of time; a packet enters last at its
/// moment.
fn drive<P>(node: &mut impl Node<P>, packets: impl IntoIterator<Item = (Instant, P)>) -> Vec<(Instant, P)> {
    let mut out = Vec::new();
    for (at, packet) in packets {
        while let Some(next) = node.next_time().filter(|next| *next <= at) {
            out.extend(node.pop(next).map(|p| (next, p)));
        }
        node.push(at, packet);
    }
    out.extend(drain(node));
    out
}

#[test]
fn a_packet_takes_its_time_on_the_line_and_then_the_delay() {
    let config = PathConfig { rate: constant(2_000), delay: ms(50), ..PathConfig::default() };
    let mut path = Path::new(&config, Rng::new(1));
    for n in 0..3 {
        path.push(Instant::ZERO, packet(n, 1_500));
    }
    let times: Vec<_> = drain(&mut path).iter().map(|(at, _)| at.as_micros()).collect();
    assert_eq!(times, [56_000, 62_000, 68_000]);
    assert_eq!(path.stats().busy, ms(18));
    assert_eq!((path.stats().wait_sum, path.stats().wait_max), (ms(6 + 12), ms(12)));
    assert_eq!(path.stats().queue_bytes_max, 3_000, "the packet on the line does not wait");
}

#[test]
fn without_a_rate_there_is_no_queue() {
    let config = PathConfig { delay: ms(10), queue: QueueConfig::drop_tail(0), ..PathConfig::default() };
    let mut path = Path::new(&config, Rng::new(1));
    for n in 0..100 {
        path.push(Instant::ZERO, packet(n, 1_500));
    }
    assert!(drain(&mut path).iter().all(|(at, _)| at.as_micros() == 10_000));
    assert_eq!((path.stats().dropped_queue, path.stats().queue_bytes_max), (0, 0));
}

#[test]
fn drop_tail_counts_what_waits_in_bytes_and_in_packets() {
    let room = |limit_bytes, limit_packets| {
        let queue = QueueConfig { limit_packets, ..QueueConfig::drop_tail(limit_bytes) };
        let config = PathConfig { rate: constant(2_000), queue, ..PathConfig::default() };
        let mut path = Path::new(&config, Rng::new(1));
        for n in 0..10 {
            path.push(Instant::ZERO, packet(n, 1_500));
        }
        assert_eq!(path.stats().dropped_queue as usize + path.len(), 10);
        path.len()
    };
    assert_eq!(room(0, None), 1, "an idle line needs no queue");
    assert_eq!(room(4_499, None), 3, "one on the line, two in the queue");
    assert_eq!(room(4_500, None), 4);
    assert_eq!(room(u64::MAX, Some(5)), 6);
}

/// At the moment the line becomes free its next packet leaves the queue, and then a new one may enter.
#[test]
fn at_one_moment_the_line_goes_before_the_newcomer() {
    let config =
        PathConfig { rate: constant(2_000), queue: QueueConfig::drop_tail(1_500), ..PathConfig::default() };
    let mut path = Path::new(&config, Rng::new(1));
    path.push(Instant::ZERO, packet(0, 1_500));
    path.push(Instant::ZERO, packet(1, 1_500));
    path.push(Instant::ZERO + ms(6), packet(2, 1_500));
    assert_eq!(path.stats().dropped_queue, 0);
}

#[test]
fn a_saturated_link_delivers_its_rate() {
    for discipline in [Discipline::DropTail, Discipline::CoDel, Discipline::FqCoDel] {
        let queue = QueueConfig { discipline, ..QueueConfig::drop_tail(100_000) };
        let config = PathConfig { rate: constant(2_000), delay: ms(50), queue, ..PathConfig::default() };
        let mut path = Path::new(&config, Rng::new(1));
        // 1,500 bytes each 5 ms: 2.4 Mbit/s for ten seconds.
        let offered = (0..2_000).map(|n| (Instant::ZERO + ms(5) * n, packet(n, 1_500)));
        let out = drive(&mut path, offered);
        let window = Instant::ZERO + ms(1_000)..Instant::ZERO + ms(9_000);
        let bytes: u64 =
            out.iter().filter(|(at, _)| window.contains(at)).map(|(_, p)| u64::from(p.len)).sum();
        let share = bytes as f64 / 2_000_000.0;
        assert!((0.999..=1.001).contains(&share), "{discipline:?} delivers {share} of the rate");
    }
}

/// A sender that behaves as TCP does over 20 s at 10 Mbit/s: it keeps a window of packets in flight, which grows by
/// one a round trip and halves, at most once a round trip, when a packet is dropped. Returns the path's counters over
/// the last 15 s.
fn congestion_controlled(queue: QueueConfig) -> PathStats {
    let config = PathConfig { rate: constant(10_000), delay: ms(40), queue, ..PathConfig::default() };
    let mut path = Path::new(&config, Rng::new(1));
    let (mut window, mut in_flight, mut number, mut dropped) = (10.0, 0u64, 0, 0);
    let (mut now, mut hold) = (Instant::ZERO, Instant::ZERO);
    let mut at_5_s = None;
    while now < Instant::ZERO + ms(20_000) {
        while (in_flight as f64) < window {
            path.push(now, packet(number, 1_500));
            (number, in_flight) = (number + 1, in_flight + 1);
            let drops = path.stats().dropped_queue;
            if drops > dropped {
                in_flight -= drops - dropped;
                dropped = drops;
                if now >= hold {
                    window = f64::max(2.0, window / 2.0);
                    hold = now + ms(80);
                }
            }
        }
        now = path.next_time().unwrap();
        while path.pop(now).is_some() {
            in_flight -= 1;
            window += 1.0 / window;
        }
        if now >= Instant::ZERO + ms(5_000) && at_5_s.is_none() {
            at_5_s = Some(*path.stats());
        }
    }
    let (begin, mut end) = (at_5_s.unwrap(), *path.stats());
    end.packets_out -= begin.packets_out;
    end.wait_sum = end.wait_sum - begin.wait_sum;
    end
}

/// RFC 8289 section 1: the standing queue is kept near the target, and the line busy. The same sender fills
/// whatever a drop-tail queue offers.
#[test]
fn codel_keeps_the_standing_queue_near_its_target_and_drop_tail_does_not() {
    let wait = |discipline| {
        let stats = congestion_controlled(QueueConfig { discipline, ..QueueConfig::drop_tail(250_000) });
        // 12,500 packets fill 15 s; a single flow that halves its window cannot keep a short queue from running dry.
        assert!(stats.packets_out > 10_625, "{discipline:?} delivered {} packets", stats.packets_out);
        (stats.wait_sum / stats.packets_out).as_millis_f64()
    };
    let (drop_tail, codel, fq_codel) =
        (wait(Discipline::DropTail), wait(Discipline::CoDel), wait(Discipline::FqCoDel));
    assert!(drop_tail > 100.0, "{drop_tail} ms of 200 ms behind drop-tail");
    assert!(codel < 15.0, "{codel} ms behind CoDel");
    assert!(fq_codel < 15.0, "{fq_codel} ms behind FQ-CoDel");
}

/// A packet each 20 ms beside a flow that fills the queue: under FQ-CoDel it waits for the packet on the line and
/// for nothing else, under drop-tail for the whole queue.
#[test]
fn fq_codel_isolates_a_sparse_flow() {
    let worst = |discipline| {
        let queue = QueueConfig { discipline, ..QueueConfig::drop_tail(60_000) };
        let config = PathConfig { rate: constant(10_000), queue, ..PathConfig::default() };
        let mut path = Path::new(&config, Rng::new(1));
        let bulk =
            (0..5_000).map(|n| (Instant::ZERO + ms(1) * n, Datagram { number: n, len: 1_500, flow: 1 }));
        // The bulk flow is new itself at first.
        let offset = Duration::from_micros(100_300);
        let sparse = (0..240)
            .map(|n| (Instant::ZERO + ms(20) * n + offset, Datagram { number: n, len: 100, flow: 2 }));
        let mut offered: Vec<_> = bulk.chain(sparse).collect();
        offered.sort_by_key(|(at, _)| *at);
        let out = drive(&mut path, offered);
        let sent = |n| Instant::ZERO + ms(20) * n + offset;
        let waits: Vec<_> =
            out.iter().filter(|(_, p)| p.flow == 2).map(|(at, p)| at.since(sent(p.number))).collect();
        (waits.len(), waits.into_iter().max().unwrap())
    };
    let one_packet = Duration::from_micros(1_200 + 80);
    let (arrived, wait) = worst(Discipline::FqCoDel);
    assert_eq!(arrived, 240, "none is dropped");
    assert!(wait <= one_packet, "{wait:?}");
    let (_, wait) = worst(Discipline::DropTail);
    assert!(wait > ms(40), "{wait:?}");
}

#[test]
fn a_trace_delivers_1500_bytes_an_opportunity_and_loses_what_is_not_used() {
    let config = PathConfig { rate: trace("10\n20\n20\n30\n40\n"), ..PathConfig::default() };
    let mut path = Path::new(&config, Rng::new(1));
    // Three small ones share an opportunity, as far as it goes; the third ends with the fourth.
    let lens = [600, 600, 600, 1_500];
    for (n, len) in (0..).zip(lens) {
        path.push(Instant::ZERO, packet(n, len));
    }
    // One that comes at the moment of an opportunity is too late for it; the one at 30 ms went unused.
    let mut out = drain(&mut path);
    path.push(Instant::ZERO + ms(30), packet(4, 100));
    out.extend(drain(&mut path));
    // In the second period.
    path.push(Instant::ZERO + ms(41), packet(5, 1_501));
    out.extend(drain(&mut path));
    let times: Vec<_> = out.iter().map(|(at, p)| (p.number, at.as_micros() / 1_000)).collect();
    assert_eq!(times, [(0, 10), (1, 10), (2, 20), (3, 20), (4, 40), (5, 60)]);
    assert_eq!(path.stats().busy, ms(20 + 10 + 19));
}

#[test]
fn jitter_never_reorders_and_stays_in_its_bounds() {
    let config = PathConfig { delay: ms(50), jitter: ms(20), ..PathConfig::default() };
    let run = |gap: Duration| {
        let mut path = Path::new(&config, Rng::new(3));
        let out = drive(&mut path, (0..20_000).map(|n| (Instant::ZERO + gap * n, packet(n, 1_500))));
        assert!(out.iter().map(|(_, p)| p.number).eq(0..20_000));
        out.iter().map(|(at, p)| at.since(Instant::ZERO + gap * p.number).as_millis_f64()).collect::<Vec<_>>()
    };
    let mean = |delays: &[f64]| delays.iter().sum::<f64>() / delays.len() as f64;
    let apart = run(ms(20));
    assert!(apart.iter().all(|d| (50.0..=70.0).contains(d)));
    assert!((mean(&apart) - 60.0).abs() < 0.2, "uniform from 50 to 70 ms: {}", mean(&apart));
    let dense = run(Duration::from_micros(100));
    assert!(dense.iter().all(|d| (50.0..=70.0).contains(d)));
    assert!(mean(&dense) > 65.0, "most wait for a slow one: {}", mean(&dense));
}

/// Two transports send different packets at different times over different networks; under one seed they lose the
/// same numbers.
#[test]
fn the_nth_packet_shares_its_fate_whatever_the_transport() {
    let lost = |config: PathConfig, gap: Duration, len: u32| {
        let mut path = Path::new(&config, Rng::new(42));
        let out = drive(&mut path, (0..5_000).map(|n| (Instant::ZERO + gap * n, packet(n, len))));
        let arrived: Vec<_> = out.iter().map(|(_, p)| p.number).collect();
        (0..5_000).filter(|n| arrived.binary_search(n).is_err()).collect::<Vec<_>>()
    };
    for loss in [LossConfig::Bernoulli { p: 0.02 }, LossConfig::burst(0.02, 3.0).unwrap()] {
        let config = PathConfig { loss, ..PathConfig::default() };
        let other = PathConfig { rate: constant(10_000), delay: ms(3), jitter: ms(9), ..config.clone() };
        let first = lost(config, ms(1), 40);
        assert!(first.len() > 50);
        assert_eq!(first, lost(other, ms(2), 1_500));
    }
}

fn arbitrary_config() -> impl Strategy<Value = PathConfig> {
    let rate = prop_oneof![
        Just(Rate::Unlimited),
        (1u64..20_000).prop_map(constant),
        Just(trace("1\n2\n2\n5\n9\n9\n9\n30\n")),
    ];
    let loss = prop_oneof![
        Just(LossConfig::None),
        (0.0..0.3).prop_map(|p| LossConfig::Bernoulli { p }),
        (0.0..0.3, 1.0..5.0).prop_map(|(p, burst)| LossConfig::burst(p, burst).unwrap()),
    ];
    let discipline =
        prop_oneof![Just(Discipline::DropTail), Just(Discipline::CoDel), Just(Discipline::FqCoDel)];
    let queue = (0u64..60_000, proptest::option::of(0u32..40), discipline).prop_map(
        |(limit_bytes, limit_packets, discipline)| QueueConfig { limit_bytes, limit_packets, discipline },
    );
    (rate, 0u64..80_000, 0u64..5_000, loss, queue).prop_map(|(rate, delay_us, jitter_us, loss, queue)| {
        PathConfig {
            rate,
            delay: Duration::from_micros(delay_us),
            jitter: Duration::from_micros(jitter_us),
            loss,
            queue,
            outages: Vec::new(),
        }
    })
}

/// Up to 300 packets of six flows, each a few hundred microseconds after the one before, some at the same moment.
fn arbitrary_packets() -> impl Strategy<Value = Vec<(Instant, Datagram)>> {
    proptest::collection::vec((0u64..900, 1u32..3_000, 0u64..6), 0..300).prop_map(|packets| {
        let mut at = Instant::ZERO;
        let mut offered = Vec::new();
        for (number, (gap_us, len, flow)) in (0..).zip(packets) {
            at += Duration::from_micros(gap_us.saturating_sub(200));
            offered.push((at, Datagram { number, len, flow }));
        }
        offered
    })
}

#[test]
fn an_outage_takes_what_enters_while_it_lasts_and_moves_no_draw_of_the_loss() {
    let outages = vec![Outage { from: Instant::ZERO + ms(100), lasts: ms(50) }];
    let loss = LossConfig::Bernoulli { p: 0.2 };
    let lossy = PathConfig { loss, ..PathConfig::default() };
    let out = PathConfig { outages, ..lossy.clone() };
    let packets = || (0..200).map(|n| (Instant::ZERO + ms(n), packet(n, 100)));
    let numbers = |config: &PathConfig| -> Vec<u64> {
        drive(&mut Path::new(config, Rng::new(3)), packets()).into_iter().map(|(_, p)| p.number).collect()
    };
    let without = numbers(&lossy);
    assert!(without.len() < 190);
    let expected: Vec<u64> = without.into_iter().filter(|n| !(100..150).contains(n)).collect();
    assert_eq!(numbers(&out), expected);
    let mut path = Path::new(&out, Rng::new(3));
    packets().for_each(|(at, packet)| path.push(at, packet));
    assert_eq!(path.stats().dropped_outage, 50, "those that chance would have taken, too");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_goes_in_comes_out_or_is_counted(config in arbitrary_config(), packets in arbitrary_packets()) {
        let mut path = Path::new(&config, Rng::new(5));
        for (at, packet) in &packets {
            path.push(*at, *packet);
            let s = path.stats();
            prop_assert_eq!(s.packets_in, s.packets_out + s.dropped_loss + s.dropped_queue + path.len() as u64);
            prop_assert!(path.queue_bytes() <= config.queue.limit_bytes);
        }
        let out = drain(&mut path);
        let s = path.stats();
        prop_assert!(path.is_empty());
        prop_assert_eq!(s.packets_in, s.packets_out + s.dropped_loss + s.dropped_queue);
        prop_assert_eq!(s.packets_in, packets.len() as u64);
        prop_assert_eq!(s.bytes_in, packets.iter().map(|(_, p)| u64::from(p.len)).sum::<u64>());
        prop_assert_eq!(s.packets_out, out.len() as u64);
        prop_assert_eq!(s.bytes_out, out.iter().map(|(_, p)| u64::from(p.len)).sum::<u64>());
        prop_assert!(s.queue_bytes_max <= config.queue.limit_bytes);
    }

    #[test]
    fn order_is_kept_in_time_and_within_a_flow(config in arbitrary_config(), packets in arbitrary_packets()) {
        let out = drive(&mut Path::new(&config, Rng::new(5)), packets.clone());
        prop_assert!(out.is_sorted_by_key(|(at, _)| *at));
        let fair = config.queue.discipline == Discipline::FqCoDel;
        for flow in 0..6 {
            let flow = out.iter().filter(|(_, p)| !fair || p.flow == flow);
            prop_assert!(flow.map(|(_, p)| p.number).is_sorted());
        }
        for (at, p) in &out {
            prop_assert!(at.since(packets[p.number as usize].0) >= config.delay);
        }
    }

    /// Over any window of time that ends with a packet, no more is sent than the rate allows.
    #[test]
    fn the_rate_is_never_exceeded(kbps in 1u64..1_000_000, packets in arbitrary_packets()) {
        let config = PathConfig { rate: constant(kbps), ..PathConfig::default() };
        let out = drive(&mut Path::new(&config, Rng::new(5)), packets);
        let rate = Bitrate::from_kbps(kbps).unwrap();
        for (i, (begin, _)) in out.iter().enumerate() {
            let mut bytes = 0;
            for (at, p) in &out[i + 1..] {
                bytes += u64::from(p.len);
                prop_assert!(bytes <= rate.bytes_in(at.since(*begin)));
            }
        }
    }

    /// A path that is called late catches up exactly: pushing everything without a look in between, popping at each
    /// moment named, and popping far too often give the same packets at the same times. So does the chain of nodes,
    /// each driven by itself.
    #[test]
    fn when_it_is_asked_changes_nothing(config in arbitrary_config(), packets in arbitrary_packets()) {
        let path = Path::new(&config, Rng::new(5));
        let on_time = drive(&mut path.clone(), packets.clone());

        let mut late = path.clone();
        for (at, packet) in &packets {
            late.push(*at, *packet);
        }
        prop_assert_eq!(&drain(&mut late), &on_time);
        prop_assert_eq!(drive(&mut path.clone(), packets.clone()), on_time.clone(), "determinism");

        let rng = Rng::new(5);
        let lossy = drive(&mut Loss::new(config.loss, rng.substream("loss")), packets);
        let mut bottleneck = Bottleneck::new(&config.rate, &config.queue, rng.substream("flows"));
        let sent = drive(&mut bottleneck, lossy);
        let mut delay = Delay::new(config.delay, config.jitter, rng.substream("jitter"));
        prop_assert_eq!(drive(&mut delay, sent), on_time);
    }

    #[test]
    fn any_text_is_a_trace_or_a_fault_that_names_a_line(text in "[0-9 \n.x-]{0,60}") {
        match Trace::parse(&text) {
            Ok(trace) => prop_assert!(trace.period() > Duration::ZERO),
            Err(error) => prop_assert!(error.line <= text.lines().count()),
        }
    }
}

/// A packet that writes down what it is told.
#[derive(Clone, Debug)]
struct Diary(u32, Vec<(Mark, Instant)>);

impl Packet for Diary {
    fn wire_len(&self) -> u32 {
        self.0
    }
    fn mark(&mut self, mark: Mark, at: Instant) {
        self.1.push((mark, at));
    }
}

/// 1500 bytes take 12 ms at 1 Mbit/s: the second packet waits for the first.
#[test]
fn a_packet_is_told_the_moments_of_its_life() {
    let at = |n| Instant::ZERO + ms(n);
    for rate in [constant(1_000), trace("12\n")] {
        let config = PathConfig { rate, delay: ms(30), ..PathConfig::default() };
        let mut path = Path::new(&config, Rng::new(1));
        path.push(at(0), Diary(1_500, Vec::new()));
        path.push(at(0), Diary(1_500, Vec::new()));
        let out = drain(&mut path);
        assert_eq!(out.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [at(42), at(54)]);
        // A trace delivers a whole packet at one opportunity, which is when it goes on the line too.
        let line = if matches!(config.rate, Rate::Trace(_)) { [at(12), at(24)] } else { [at(0), at(12)] };
        for (i, (arrives, Diary(_, told))) in out.iter().enumerate() {
            let sent = at(12 * (i as u64 + 1));
            assert_eq!(*told, [(Mark::Line, line[i]), (Mark::Sent, sent), (Mark::Arrives, *arrives)]);
        }
    }
}

#[test]
fn what_is_dropped_is_handed_back_with_the_cause_and_the_moment() {
    let lossy = PathConfig { loss: LossConfig::Bernoulli { p: 1.0 }, ..PathConfig::default() };
    let mut path = Path::new(&lossy, Rng::new(1));
    path.push(Instant::ZERO, packet(0, 100));
    assert!(path.poll_dropped().is_none(), "nobody asked");
    path.keep_dropped();
    path.push(Instant::ZERO + ms(5), packet(1, 100));
    let lost = path.poll_dropped().unwrap();
    assert_eq!((lost.at, lost.packet.number, lost.why), (Instant::ZERO + ms(5), 1, DropCause::Loss));

    // The first goes on the line, the second waits, the third finds the queue full.
    let queue = QueueConfig::drop_tail(1_500);
    let mut path =
        Path::new(&PathConfig { rate: constant(1_000), queue, ..PathConfig::default() }, Rng::new(1));
    path.keep_dropped();
    (0..3).for_each(|n| path.push(Instant::ZERO, packet(n, 1_500)));
    let full = path.poll_dropped().unwrap();
    assert_eq!((full.at, full.packet.number, full.why), (Instant::ZERO, 2, DropCause::Full));
    assert!(path.poll_dropped().is_none());

    // Of 100 packets at once, CoDel drops the first after 100 ms above its target.
    let queue = QueueConfig { discipline: Discipline::CoDel, ..QueueConfig::UNLIMITED };
    let mut path =
        Path::new(&PathConfig { rate: constant(1_000), queue, ..PathConfig::default() }, Rng::new(1));
    path.keep_dropped();
    (0..100).for_each(|n| path.push(Instant::ZERO, packet(n, 1_500)));
    let arrived = drain(&mut path).len();
    let dropped: Vec<_> = std::iter::from_fn(|| path.poll_dropped()).collect();
    assert_eq!(arrived + dropped.len(), 100);
    assert_eq!((dropped[0].at, dropped[0].why), (Instant::ZERO + ms(120), DropCause::Discipline));
    assert_eq!(path.stats().dropped_queue, dropped.len() as u64);
}

#[test]
fn what_two_paths_have_counted_is_added_up_and_of_waits_and_queues_the_greater_counts() {
    let count = |n: u64| PathStats {
        packets_in: n,
        dropped_loss: n,
        queue_bytes_max: 10 - n,
        wait_max: Duration::from_millis(n),
        wait_sum: Duration::from_millis(n),
        ..PathStats::default()
    };
    let both = count(3).and_then(&count(4));
    assert_eq!((both.packets_in, both.dropped_loss, both.queue_bytes_max), (7, 7, 7));
    assert_eq!((both.wait_max, both.wait_sum), (Duration::from_millis(4), Duration::from_millis(7)));
    assert_eq!(PathStats::default().and_then(&count(3)), count(3));
}
