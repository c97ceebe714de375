//! The bodies of the fuzz targets on seeded inputs, so that they run wherever the tests do; and what fuzzing found.

mod fuzz;

use base::Rng;

/// Seeded inputs a target.
const ROUNDS: u64 = 300;

fn replay(name: &str, body: fn(&[u8]), rounds: u64) {
    for round in 0..rounds {
        let mut rng = Rng::new(round).substream(name);
        let len = rng.below(3_000);
        // Half of the inputs are made of few values, as scripts are.
        let values = if round % 2 == 0 { 256 } else { 24 };
        let data: Vec<u8> = (0..len).map(|_| rng.below(values) as u8).collect();
        body(&data);
    }
}

#[test]
fn any_bytes_are_read_or_refused() {
    replay("input", fuzz::input, ROUNDS);
}

#[test]
fn any_frames_are_obeyed_or_refused() {
    replay("frames", fuzz::frames, ROUNDS);
}

#[test]
fn any_two_engines_agree() {
    replay("pair", fuzz::pair, ROUNDS);
}
