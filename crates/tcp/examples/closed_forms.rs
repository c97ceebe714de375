//! Prints, as Markdown, how long transfers over a clean link take by arithmetic and in the simulator.
//!
//!     cargo run --release -p velodrome-tcp --example closed_forms

#[path = "../tests/harness/mod.rs"]
mod harness;

fn main() {
    print!("{}", harness::table::closed_forms());
}
