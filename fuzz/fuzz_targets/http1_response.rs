//! A client reads any bytes as responses.
#![no_main]

#[path = "../../crates/http1/tests/fuzz/mod.rs"]
mod fuzz;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::response(data));
