//! Whole frames with anything in them are obeyed or refused.
#![no_main]

#[path = "../../crates/spdy/tests/fuzz/mod.rs"]
mod fuzz;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::frames(data));
