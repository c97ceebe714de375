//! The same overload under each queue discipline: who waits, and for how long.
//!
//! A bulk flow offers 12 Mbit/s to a line of 10, and beside it a second flow sends a small packet each 20 ms.
//!
//! ```text
//! cargo run -p velodrome-link --example disciplines
//! ```

use base::{Bitrate, Duration, Instant, Rng};
use link::{Discipline, Packet, Path, PathConfig, QueueConfig, Rate};

struct Datagram {
    sent: Instant,
    len: u32,
    flow: u64,
}

impl Packet for Datagram {
    fn wire_len(&self) -> u32 {
        self.len
    }
    fn flow(&self) -> u64 {
        self.flow
    }
}

const BULK: u64 = 1;
const SPARSE: u64 = 2;

fn main() {
    let rate = Rate::Constant(Bitrate::from_kbps(10_000).expect("not zero"));
    let delay = Duration::from_millis(50);
    println!("discipline  Mbit/s  dropped  mean wait  longest wait of the sparse flow");
    for discipline in [Discipline::DropTail, Discipline::CoDel, Discipline::FqCoDel] {
        let queue = QueueConfig { discipline, ..QueueConfig::drop_tail(250_000) };
        let mut path =
            Path::new(&PathConfig { rate: rate.clone(), delay, queue, ..PathConfig::default() }, Rng::new(1));
        let mut sparse_max = Duration::ZERO;
        let mut receive = |path: &mut Path<Datagram>, until: Instant| {
            while let Some(at) = path.next_time().filter(|at| *at <= until) {
                while let Some(datagram) = path.pop(at) {
                    if datagram.flow == SPARSE {
                        sparse_max = sparse_max.max(at.since(datagram.sent) - delay);
                    }
                }
            }
        };
        for ms in 0..10_000 {
            let now = Instant::ZERO + Duration::from_millis(ms);
            receive(&mut path, now);
            path.push(now, Datagram { sent: now, len: 1_500, flow: BULK });
            if ms % 20 == 10 {
                path.push(now, Datagram { sent: now, len: 100, flow: SPARSE });
            }
        }
        receive(&mut path, Instant::MAX);
        let s = path.stats();
        println!(
            "{:<10}  {:>6.2}  {:>7}  {:>6.1} ms  {:>6.1} ms",
            format!("{discipline:?}"),
            s.bytes_out as f64 * 8e-6 / s.busy.as_secs_f64(),
            s.dropped_queue,
            (s.wait_sum / s.packets_out).as_millis_f64(),
            sparse_max.as_millis_f64(),
        );
    }
}
