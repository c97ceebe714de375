//! Loads one built-in page over HTTP/1.1 and SPDY/3.1 on the same network, and says how long each took.

use base::{Bitrate, Duration};
use client::Transport;
use load::Setup;

fn main() {
    let pages = page::corpus::generate("2012", 1, 7).expect("a built-in corpus");
    for transport in [Transport::Http1, Transport::Spdy(spdy::Version::V3_1)] {
        let mut setup = Setup::new(transport);
        setup.down.rate = link::Rate::Constant(Bitrate::from_kbps(2_000).expect("not zero"));
        setup.up.rate = link::Rate::Constant(Bitrate::from_kbps(386).expect("not zero"));
        setup.down.delay = Duration::from_millis(50);
        setup.up.delay = Duration::from_millis(50);
        let load = sim::load(&pages[0], &setup, 1);
        let plt = load.plt().map_or(f64::NAN, Duration::as_millis_f64);
        println!(
            "{transport:8} {plt:7.0} ms over {} connections, {:?}",
            load.connections.len(),
            load.outcome
        );
    }
}
