//! Any bytes are the script by which a client and a server talk.
#![no_main]

#[path = "../../crates/http1/tests/fuzz/mod.rs"]
mod fuzz;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::pair_script(data));
