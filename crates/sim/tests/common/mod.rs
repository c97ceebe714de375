//! A network for tests that hold a load against arithmetic.

use base::{Bitrate, Duration};
use client::Transport;
use load::Setup;

/// The round trip of [`fast`], in milliseconds.
pub const RTT_MS: u64 = 100;

/// [`RTT_MS`] on a link so fast that only round trips take time.
pub fn fast(transport: Transport) -> Setup {
    let mut setup = Setup::new(transport);
    for path in [&mut setup.down, &mut setup.up] {
        path.delay = Duration::from_millis(RTT_MS / 2);
        path.rate = link::Rate::Constant(Bitrate::from_kbps(1_000_000_000).expect("not zero"));
        path.queue.limit_bytes = 1 << 30;
    }
    setup
}
