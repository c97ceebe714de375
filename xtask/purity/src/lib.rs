//! A whole page load as one WebAssembly function.
//!
//! `cargo xtask wasm` builds this for a target that has no operating system. Whatever the load reaches for outside
//! itself, be it a clock, entropy or a file, would stand among the module's imports; there must be none. The
//! function is exported so that the linker has to keep everything that it reaches.

use base::{Bitrate, Duration};
use client::Transport;
use load::{Setup, TlsScope};
use spdy::Version;

/// Loads a built-in page over HTTP/1.1, SPDY/3.1 and SPDY/3.1 over TLS, on a slow path that loses packets; the sum of
/// the three page load times in microseconds.
// SAFETY: no other symbol of this name is linked into the module.
#[unsafe(no_mangle)]
pub extern "C" fn plt_us(seed: u64) -> u64 {
    let pages = page::corpus::generate("2012", 1, seed).expect("a built-in corpus");
    let spdy = Transport::Spdy(Version::V3_1);
    let setups = [(Transport::Http1, false), (spdy, false), (spdy, true)];
    let plts = setups.map(|(transport, secure)| {
        let mut setup = Setup::new(transport);
        for path in [&mut setup.down, &mut setup.up] {
            path.rate = link::Rate::Constant(Bitrate::from_kbps(2_000).expect("not zero"));
            path.delay = Duration::from_millis(50);
            path.loss = link::LossConfig::Bernoulli { p: 0.01 };
        }
        setup.tls = secure.then(tls::Config::default);
        setup.tls_scope = TlsScope::Everywhere;
        sim::load(&pages[0], &setup, seed).plt().map_or(0, Duration::as_micros)
    });
    plts.iter().sum()
}
