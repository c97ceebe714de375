//! The bodies of the fuzz targets on the committed corpus and on seeded inputs, so that they run wherever the tests do and
//! what fuzzing reached stays reached.

mod fuzz;

use base::Rng;

/// Seeded inputs a target.
const ROUNDS: u64 = 300;

/// Inputs that were chosen from hours of fuzzing because between them they reach most of what it reached.
fn corpus(target: &str, body: fn(&[u8])) {
    let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 100, "{} inputs of {target}", paths.len());
    for path in paths {
        body(&std::fs::read(path).unwrap());
    }
}

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
    corpus("spdy_input", fuzz::input);
    replay("input", fuzz::input, ROUNDS);
}

#[test]
fn any_frames_are_obeyed_or_refused() {
    corpus("spdy_frames", fuzz::frames);
    replay("frames", fuzz::frames, ROUNDS);
}

#[test]
fn any_two_engines_agree() {
    corpus("spdy_pair", fuzz::pair);
    replay("pair", fuzz::pair, ROUNDS);
}
