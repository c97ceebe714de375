//! What else uses the access link while a page loads: a transfer that takes all it can get, or a video whose player takes its time.
//!
//! It is of a host of its own, over HTTP/1.1 in the clear and the same TCP as everybody's, and begins with the navigation. The page
//! waits for none of it, and its load ends without it.

use base::Duration;
use page::{Cause, Host, Kind, Resource};

/// The host's name (RFC 2606: nobody has it).
pub(crate) const HOST: &str = "beside.traffic.example";

/// Bytes of a bulk transfer: more than any load lasts for.
const BULK_LEN: u64 = 1 << 40;

/// Bytes that the video's player asks for at a time. YouTube's servers of 2011 sent a video in blocks of 64 KB (Alcock and Nelson,
/// "Application flow control in YouTube video streams", CCR 41(2)).
const BLOCK_LEN: u64 = 64 * 1024;

/// From one block to the next: a video of 1 Mbit/s, sent 1.25 times as fast as it plays, as there. That it is 1 Mbit/s is ours.
const BLOCK_EVERY: Duration = Duration::from_nanos(BLOCK_LEN * 8 * 1_000_000_000 / 1_250_000);

/// Something beside the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traffic {
    /// One transfer without end.
    Bulk,
    /// A video in the middle of its playing: a block whenever it is time for the next. One that the line cannot carry in time has
    /// blocks side by side, as far as connections to one host go.
    Video,
}

impl Traffic {
    /// What it asks for, of a host that is the page's `host`-th, in a load of at most `give_up`; and when.
    pub(crate) fn resources(self, host: u32, give_up: Duration) -> Vec<(Duration, Resource)> {
        let ask = |at, path: String, body_len| {
            let resource = Resource::get(path, Kind::Media, Cause::Beside);
            (at, Resource { host, body_len, after_load: true, ..resource })
        };
        match self {
            Traffic::Bulk => vec![ask(Duration::ZERO, "/bulk".into(), BULK_LEN)],
            Traffic::Video => {
                let blocks = give_up.as_nanos().div_ceil(BLOCK_EVERY.as_nanos()).min(10_000);
                (0..blocks).map(|n| ask(BLOCK_EVERY * n, format!("/video/{n}"), BLOCK_LEN)).collect()
            }
        }
    }

    pub(crate) fn host() -> Host {
        Host::new(HOST)
    }
}
