//! Any bytes are the script by which a client and a server act over a wire that cuts and loses.
#![no_main]

#[path = "../../crates/spdy/tests/fuzz/mod.rs"]
mod fuzz;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::pair(data));
