//! What a session costs.

fn main() {}
