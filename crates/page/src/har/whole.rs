//! What one entry leaves open and another one of the file may tell.

use std::collections::BTreeMap;

use crate::har::entry::Load;
use crate::har::url::Url;

/// Connect times below this, in milliseconds, are doubted.
const CONNECT_MS_MIN: f64 = 5.0;
/// Of a host's times to first byte, this share is taken to be below what a round trip and an idle server take: pushed,
/// prefetched, or delivered late to the recorder with the body.
const LOW_SHARE: usize = 4;

/// Scheme, name and port.
type Origin = (bool, String, u16);

fn origin(url: &Url) -> Origin {
    (url.tls, url.host.clone(), url.port)
}

pub(crate) struct WholeFile {
    transferred: BTreeMap<Url, (u64, Option<f64>)>,
    rtt: BTreeMap<Origin, f64>,
    rtt_median: Option<f64>,
    /// Each origin's low time to first byte.
    wait_low: BTreeMap<Origin, f64>,
}

impl WholeFile {
    pub fn new<'a>(loads: impl Iterator<Item = &'a Load>) -> Self {
        let mut transferred = BTreeMap::new();
        let mut connects: BTreeMap<_, Vec<(f64, bool)>> = BTreeMap::new();
        let mut waits: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        for load in loads {
            if load.status == 200
                && let Some(size) = load.sizes.transferred()
            {
                transferred.entry(load.url.clone()).or_insert((size, load.times.wait));
            }
            if let Some(connect) = load.times.connect {
                connects.entry(origin(&load.url)).or_default().push(connect);
            }
            if let Some(wait) = load.times.wait.filter(|w| *w > 0.0) {
                waits.entry(origin(&load.url)).or_default().push(wait);
            }
        }
        let low = |mut all: Vec<f64>| {
            all.sort_by(f64::total_cmp);
            all[all.len() / LOW_SHARE]
        };
        let wait_low: BTreeMap<_, f64> = waits.into_iter().map(|(o, all)| (o, low(all))).collect();
        let mut rtt = BTreeMap::new();
        for (origin, connects) in connects {
            let wait = wait_low.get(&origin).copied().unwrap_or(f64::INFINITY);
            // A request may be given a connection that another one opened, or that was opened ahead of need: it then
            // shows the rest of the handshake. So a short time counts only if it is known to be whole, or if answers
            // come as fast. A long one may hold a lost packet: no answer comes within less than a round trip.
            let counts =
                |(ms, whole): &&(f64, bool)| *whole || *ms >= CONNECT_MS_MIN || wait < 2.0 * CONNECT_MS_MIN;
            if let Some(least) = connects.iter().filter(counts).map(|c| c.0).min_by(f64::total_cmp) {
                rtt.insert(origin, least.min(wait));
            }
        }
        let mut all: Vec<f64> = rtt.values().copied().collect();
        all.sort_by(f64::total_cmp);
        WholeFile { transferred, rtt_median: all.get(all.len() / 2).copied(), rtt, wait_low }
    }

    /// Size and time to first byte of a URL, where it was transferred.
    pub fn transferred(&self, url: &Url) -> Option<(u64, Option<f64>)> {
        self.transferred.get(url).copied()
    }

    /// The round trip to a URL's host in milliseconds, if a handshake with it was measured.
    pub fn measured_rtt(&self, url: &Url) -> Option<f64> {
        self.rtt.get(&origin(url)).copied()
    }

    /// The round trip as well as the file tells: measured, else the smaller of the host's low time to first byte and
    /// the other hosts' median.
    pub fn rtt(&self, url: &Url) -> f64 {
        let origin = origin(url);
        let low = self.wait_low.get(&origin).copied();
        match (self.rtt.get(&origin), low, self.rtt_median) {
            (Some(rtt), ..) => *rtt,
            (None, Some(wait), Some(median)) => wait.min(median),
            (None, wait, median) => wait.or(median).unwrap_or(0.0),
        }
    }
}
