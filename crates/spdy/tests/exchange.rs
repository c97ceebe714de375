//! Whole exchanges between two engines, with everything that chance can vary, watched from outside: windows are obeyed,
//! bodies arrive whole and in order, and nothing stalls.

mod common;

use common::*;
use proptest::prelude::*;
use spdy::{
    Announce, Compression, Config, Event, Fairness, Policy, Priority, Status, StreamId, Threshold, Version,
    WindowPolicy,
};

fn windows() -> impl Strategy<Value = WindowPolicy> {
    let update = prop_oneof![(1_u32..70_000).prop_map(Threshold::Bytes), Just(Threshold::Half)];
    let eager = prop_oneof![Just(0), Just(1_u32 << 20)];
    let tuned = prop_oneof![Just(0), Just(1_u32 << 21)];
    let any = (1_u32..300_000, update, eager, tuned).prop_map(|(size, update, eager_below, autotune_max)| {
        WindowPolicy { size, update, eager_below, autotune_max }
    });
    prop_oneof![any, Just(WindowPolicy::FIXED_64K), Just(WindowPolicy::FIREFOX_256M)]
}

prop_compose! {
    fn config(version: Version)(
        stream_window in windows(),
        session_window in windows(),
        on_each in any::<bool>(),
        max_data_frame in prop_oneof![100_u32..500, 1_000_u32..70_000],
        turns in prop_oneof![Just(None), (0_u32..40).prop_map(Some)],
        policy in prop_oneof![Just(Policy::Full), Just(Policy::CookiesApart), Just(Policy::Stored)],
        window_bits in 8_u8..17,
    ) -> Config {
        Config {
            stream_window,
            session_window,
            announce: if on_each { Announce::OnEachStream } else { Announce::InSettings },
            max_data_frame,
            fairness: turns.map_or(Fairness::Strict, |turns| Fairness::Bounded { turns }),
            compression: Compression { policy, window_bits },
            ..Config::new(version)
        }
    }
}

fn configs() -> impl Strategy<Value = (Config, Config)> {
    prop_oneof![Just(Version::V2), Just(Version::V3), Just(Version::V3_1)]
        .prop_flat_map(|v| (config(v), config(v)))
}

/// Sizes of the request's and the response's body, and a priority.
fn exchanges() -> impl Strategy<Value = Vec<(u64, u64, u8)>> {
    let size = prop_oneof![Just(0), 1_u64..2_000, 65_530_u64..65_545, 100_000_u64..110_000];
    proptest::collection::vec((size.clone(), size, 0_u8..8), 1..12)
}

/// Answers new requests once their bodies are here, and reads some of what has arrived.
fn act(pair: &mut Pair, answered: &mut Vec<StreamId>, sizes: &dyn Fn(StreamId) -> u64) -> bool {
    let asked: Vec<StreamId> = pair
        .server_events
        .iter()
        .filter_map(|event| match event {
            Event::Request { id, .. } if !answered.contains(id) => Some(*id),
            _ => None,
        })
        .collect();
    let mut acted = false;
    for id in asked {
        if arrived(&pair.server_events, id).1 {
            pair.answer(id, sizes(id));
            answered.push(id);
            acted = true;
        }
    }
    acted
}

/// A second's worth; `PROPTEST_CASES` asks for more.
fn cases() -> ProptestConfig {
    let default = ProptestConfig::default();
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig { cases: if asked { default.cases } else { 48 }, failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn every_body_arrives_whole_under_any_windows_pieces_and_priorities(
        (client, server) in configs(),
        exchanges in exchanges(),
        seed in any::<u64>(),
        room in prop_oneof![1_u64..600, 1_000_u64..20_000],
        piece in prop_oneof![1_u64..40, 1_000_u64..20_000],
        lazy in any::<bool>(),
    ) {
        let mut pair = Pair::with(client, server);
        pair.rng = base::Rng::new(seed);
        (pair.room, pair.piece, pair.reads) = (room, piece, !lazy);
        let mut sizes = std::collections::BTreeMap::new();
        for (up, down, priority) in &exchanges {
            let id = pair.client.request(&post("/"), Priority::new(*priority), *up == 0).unwrap();
            if *up > 0 {
                pair.client.send(id, body(id.as_u32(), *up), true).unwrap();
            }
            sizes.insert(id, (*up, *down));
        }
        let mut answered = Vec::new();
        loop {
            pair.settle();
            let mut moved = act(&mut pair, &mut answered, &|id| sizes[&id].1);
            if lazy {
                // Whoever reads late reads everything at last.
                for id in sizes.keys() {
                    let before = pair.client_wire.frames.len() + pair.server_wire.frames.len();
                    pair.client.consume(*id, u64::MAX);
                    pair.server.consume(*id, u64::MAX);
                    pair.settle();
                    moved |= pair.client_wire.frames.len() + pair.server_wire.frames.len() > before;
                }
            }
            if !moved {
                break;
            }
        }
        for (id, (up, down)) in &sizes {
            prop_assert_eq!(arrived(&pair.server_events, *id), (*up, true), "request {}", id);
            prop_assert_eq!(arrived(&pair.client_events, *id), (*down, true), "response {}", id);
        }
        prop_assert_eq!((pair.client.open_streams(), pair.server.open_streams()), (0, 0));
        prop_assert_eq!((pair.client_wire.resets(), pair.server_wire.resets()), (vec![], vec![]));
    }

    #[test]
    fn resets_at_any_moment_leave_the_session_sound(
        (client, server) in configs(),
        seed in any::<u64>(),
        piece in prop_oneof![1_u64..40, 1_000_u64..20_000],
    ) {
        let mut pair = Pair::with(client, server);
        let mut rng = base::Rng::new(seed);
        pair.piece = piece;
        let mut open = Vec::new();
        for _ in 0..200 {
            match rng.below(6) {
                0 => {
                    if let Ok(id) = pair.client.request(&post("/"), Priority::new(rng.below(8) as u8), false) {
                        let _ = pair.client.send(id, body(id.as_u32(), rng.below(50_000)), rng.chance(0.5));
                        open.push(id);
                    }
                }
                1 if !open.is_empty() => {
                    let id = open[rng.below(open.len() as u64) as usize];
                    let session = if rng.chance(0.5) { &mut pair.client } else { &mut pair.server };
                    session.reset(id, Status::CANCEL);
                }
                2 if !open.is_empty() => {
                    let id = open[rng.below(open.len() as u64) as usize];
                    let _ = pair.server.respond(id, &response(200), false);
                    let _ = pair.server.send(id, body(id.as_u32(), rng.below(100_000)), rng.chance(0.5));
                }
                _ => {
                    for _ in 0..rng.below(20) {
                        if rng.chance(0.5) { pair.up() } else { pair.down() };
                    }
                }
            }
        }
        pair.settle();
        // Whatever was cut off, the windows are whole: a new stream carries more than any of them.
        for id in open {
            pair.client.reset(id, Status::CANCEL);
        }
        pair.settle();
        let id = pair.client.request(&get("/"), Priority::HIGHEST, true).unwrap();
        pair.settle();
        pair.answer(id, 700_000);
        pair.settle();
        prop_assert_eq!(arrived(&pair.client_events, id), (700_000, true));
    }
}
/// Of what is ready when a frame is chosen, the most urgent goes: checked on the wire against what is left of each body.
#[test]
fn no_frame_of_a_lower_priority_overtakes_a_higher_one_that_could_be_sent() {
    let huge = WindowPolicy::half(i32::MAX as u32);
    let config = Config {
        fairness: Fairness::Strict,
        stream_window: huge,
        session_window: huge,
        ..Config::new(Version::V3_1)
    };
    let mut pair = Pair::with(config.clone(), config);
    let mut rng = base::Rng::new(5);
    let mut left = std::collections::BTreeMap::new();
    for i in 0..60_u32 {
        let priority = rng.below(8) as u8;
        let id = pair.get(&format!("/{i}"), priority);
        while pair.up() {}
        common::drain(&mut pair.server, &mut pair.server_events, true);
        let len = 1 + rng.below(40_000);
        let before = pair.server_wire.frames.len();
        pair.answer(id, len);
        left.insert(id.as_u32(), (priority, len));
        // The frame already being sent is finished; whatever is chosen after it obeys.
        for _ in 0..rng.below(12) {
            pair.down();
        }
        let mut in_flight = true;
        for seen in &pair.server_wire.frames[before..] {
            let Seen::Data { id, len, .. } = seen else { continue };
            let urgent = left.values().filter(|(_, len)| *len > 0).map(|(p, _)| *p).min().unwrap();
            assert!(
                left[id].0 == urgent || in_flight,
                "stream {id} of {} before one of {urgent}",
                left[id].0
            );
            in_flight = false;
            left.get_mut(id).unwrap().1 -= u64::from(*len);
        }
    }
}
