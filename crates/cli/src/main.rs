//! `velodrome`: thin verbs over `lab`.

fn main() {}
