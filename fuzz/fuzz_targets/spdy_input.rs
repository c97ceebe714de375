//! Any bytes, cut anywhere, are read or refused by a client and a server.
#![no_main]

#[path = "../../crates/spdy/tests/fuzz/mod.rs"]
mod fuzz;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::input(data));
