//! A server reads any bytes as requests, and httparse reads the first head.
#![no_main]

#[path = "../../crates/http1/tests/fuzz/mod.rs"]
mod fuzz;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::request(data));
