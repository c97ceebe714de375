//! What share of the frames each priority level gets while all of them have data, under three rules.

use mux::{Fairness, LEVELS, Scheduler};

fn main() {
    let rules = [Fairness::Strict, Fairness::Bounded { turns: 32 }, Fairness::Bounded { turns: 8 }];
    for fairness in rules {
        let mut ready = Scheduler::new(fairness);
        (0..LEVELS as u8).for_each(|level| ready.push(level, level));
        let mut frames = [0_u32; LEVELS];
        for _ in 0..10_000 {
            let level = ready.pop().expect("everyone always has data");
            frames[usize::from(level)] += 1;
            ready.push(level, level);
        }
        let shares: Vec<String> = frames.iter().map(|n| format!("{:5.1} %", f64::from(*n) / 100.0)).collect();
        println!("{:28} {}", format!("{fairness:?}"), shares.join(" "));
    }
}
