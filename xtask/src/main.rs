//! The project's own checks, run by `make test`.

fn main() {}
