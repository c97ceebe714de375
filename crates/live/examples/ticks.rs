//! Wakes a thousand times, a millisecond apart, and says how late the wakes were.
//!
//! `cargo run --release -p velodrome-live --example ticks`

use base::{Duration, Instant};
use live::Reactor;

fn main() -> std::io::Result<()> {
    let mut reactor = Reactor::new()?;
    let period = Duration::from_millis(1);
    let mut late: Vec<u64> = Vec::new();
    let mut due: Instant = reactor.now() + period;
    for _ in 0..1_000 {
        reactor.wait(Some(due))?;
        late.push(reactor.now().since(due).as_nanos() / 1_000);
        due += period;
    }
    late.sort_unstable();
    println!("late by {} µs (median), {} µs (99 %), {} µs (worst)", late[500], late[990], late[999]);
    Ok(())
}
