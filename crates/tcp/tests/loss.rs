//! Whatever the path loses, a transfer ends, every byte arrives once and in order, and nobody waits for ever.
//!
//! The checks are the harness's own: on every segment that leaves, that it stays within the peer's window and, if
//! new, within cwnd; on every segment that arrives, that exactly the bytes in order are readable.

mod harness;

use base::{Bitrate, Duration, Instant, Rng};
use harness::{Client, Path, Rule, Server, World};
use tcp::{Config, Congestion, Event, LossDetection, Reduction};

fn configs() -> Vec<(&'static str, Config)> {
    let today = Config { syn_retries: 40, data_retries: 40, ..Config::linux_today() };
    let old = Config { syn_retries: 40, data_retries: 40, ..Config::linux_2010() };
    let plain = Config { sack: false, timestamps: false, window_scaling: false, ..today.clone() };
    let small = Config { initial_rwnd: 2000, rwnd_max: 6000, rwnd_autotune: false, ..today.clone() };
    vec![
        ("today", today.clone()),
        ("2010", old.clone()),
        ("reno", Config { congestion: Congestion::Reno, ..today.clone() }),
        ("newreno", plain.clone()),
        ("newreno halving", Config { reduction: Reduction::AtOnce, ..plain }),
        ("sack without rack", Config { loss_detection: LossDetection::Sack, ..today.clone() }),
        ("rack without probes", Config { tail_loss_probe: false, ..today.clone() }),
        ("sack without timestamps", Config { timestamps: false, ..today }),
        ("tiny window", small),
        ("no delay", Config { delayed_ack: Duration::ZERO, ..old }),
    ]
}

fn lossy(rng: &Rng, name: &str, p: f64) -> Rule {
    let mut rng = rng.substream(name);
    Box::new(move |_, _| rng.chance(p))
}

/// One transfer of `down` and `up` bytes, both ends closing when they have written all.
fn transfer(config: &Config, seed: u64, p: f64, down: u64, up: u64) -> World {
    let rng = Rng::new(seed);
    let mut draw = rng.substream("path");
    let path = Path {
        down: Bitrate::from_kbps(500 + draw.below(20_000)),
        up: Bitrate::from_kbps(100 + draw.below(5_000)),
        rtt: Duration::from_millis(1 + draw.below(300)),
    };
    let mut world = World::new(config.clone(), config.clone(), &path);
    world.server.wire.lose = lossy(&rng, "down", p);
    world.client.wire.lose = lossy(&rng, "up", p);
    (world.server.to_write, world.client.to_write) = (down, up);
    (world.server.close_after_writing, world.client.close_after_writing) = (true, true);
    let limit = Instant::ZERO + Duration::from_secs(if p > 0.1 { 36_000 } else { 600 });
    let mut silent_since = Instant::ZERO;
    while world.next_time().is_some() {
        let (before, steps) = (world.now, world.trace.len());
        world.step();
        if world.trace.len() > steps {
            silent_since = world.now;
        }
        // 120 s is the longest timeout; acknowledgements need a little more to arrive.
        let quiet = world.now.since(silent_since).max(world.now.since(before));
        world.require(
            quiet <= Duration::from_secs(121),
            "nobody is silent for longer than the longest timeout",
        );
        world.require(world.now <= limit, "it ends in time");
        world.require(world.trace.len() < 200_000, "it does not chatter");
    }
    world
}

#[test]
fn every_transfer_ends_whole_and_in_order_whatever_is_lost() {
    for (name, config) in configs() {
        for seed in 0..60 {
            let p = [0.0, 0.01, 0.05, 0.1, 0.2, 0.3][seed as usize % 6];
            let down = [1, 1448, 20_000, 150_000][seed as usize % 4];
            let up = [0, 700, 30_000][seed as usize % 3];
            let world = transfer(&config, seed, p, down, up);
            let what = format!("{name}, seed {seed}, loss {p}: {down} and {up} bytes arrive");
            let whole = world.client.read == down && world.server.read == up;
            world.require(whole && world.client.in_order() == down && world.server.in_order() == up, &what);
            for side in [Client, Server] {
                let closed = world.when(side, Event::Closed).is_some();
                world.require(closed, &format!("{name}, seed {seed}: {side:?} closes"));
            }
        }
    }
}

/// RFC 8985: with RACK little more is sent again than what was lost, also on a path without a rate, where whole windows leave
/// and arrive in one instant.
#[test]
fn little_more_is_sent_again_than_was_lost() {
    for kbps in [None, Bitrate::from_kbps(10_000)] {
        for p in [0.002, 0.01, 0.05] {
            let config = Config::linux_today();
            let path = Path { down: kbps, up: kbps, rtt: Duration::from_millis(50) };
            let mut world = World::new(config.clone(), config, &path);
            world.server.wire.lose = lossy(&Rng::new(9), "down", p);
            world.server.to_write = 5_000_000;
            world.run_while(Instant::MAX, |world| world.client.read < 5_000_000);
            let lost = world.trace.iter().filter(|(.., lost)| *lost).count() as f64;
            let again = world.server.tcp.stats().retransmits as f64;
            assert!(again <= 1.03 * lost + 3.0, "{again} sent again, {lost} lost of p = {p}");
        }
    }
}

/// RFC 9293 §3.8.6.1: an application that reads now and then closes the window again and again.
#[test]
fn a_reader_that_dawdles_gets_everything_in_spite_of_losses() {
    for (name, config) in configs() {
        for seed in 0..12 {
            let p = [0.0, 0.05, 0.2][seed as usize % 3];
            let rng = Rng::new(seed);
            let path = Path {
                down: Bitrate::from_kbps(4_000),
                up: Bitrate::from_kbps(1_000),
                rtt: Duration::from_millis(40),
            };
            let mut world = World::new(config.clone(), config.clone(), &path);
            world.client.reads = false;
            world.server.to_write = 300_000;
            world.server.wire.lose = lossy(&rng, "down", p);
            world.client.wire.lose = lossy(&rng, "up", p);
            let mut next_read = Instant::ZERO;
            while world.client.read < 300_000 {
                if world.next_time().is_none_or(|at| at > next_read) {
                    world.now = next_read;
                    let n = world.client.tcp.readable();
                    world.client.tcp.read(next_read, n);
                    world.client.read += n;
                    world.drain(Client);
                    next_read += Duration::from_millis(700);
                } else {
                    world.step();
                }
                let limit = Instant::ZERO + Duration::from_secs(if p > 0.1 { 36_000 } else { 900 });
                world.require(world.now < limit, &format!("{name}, seed {seed}: it ends"));
            }
        }
    }
}
