//! A stream that nobody reads: a video that is paused beside a page, and what that costs.

use base::{Bitrate, Duration};
use client::{Stalled, Transport};
use load::{Load, Outcome, Setup};
use page::{Cause, Host, Kind, Page, Resource, ScriptMode};
use spdy::{Feature, Version};

const VIDEO: u64 = 2_000_000;
const IMAGES: u64 = 20;
const IMAGE: u64 = 20_000;
const PAUSE_MS: f64 = 20_000.0;

/// A video that `onload` does not wait for, and images.
fn page() -> Page {
    let at = Cause::Parser { parent: 0, offset: 1, script: ScriptMode::Sync };
    let document = Resource { body_len: 1_000, ..Resource::get("/", Kind::Document, Cause::Root) };
    let video = Resource { body_len: VIDEO, after_load: true, ..Resource::get("/video", Kind::Media, at) };
    let image = |n| Resource { body_len: IMAGE, ..Resource::get(format!("/{n}"), Kind::Image, at) };
    let resources = [document, video].into_iter().chain((0..IMAGES).map(image));
    Page::new("test", vec![Host::new("www.a.example")], resources.collect()).expect("a valid page")
}

/// 4 Mbit/s and 50 ms; SPDY/3 with windows of 64 KiB.
fn setup(transport: Transport) -> Setup {
    let mut setup = Setup::new(transport);
    setup.spdy = spdy::Config::chrome_2012(transport.spdy_version().unwrap_or(Version::V3));
    for path in [&mut setup.down, &mut setup.up] {
        path.delay = Duration::from_millis(25);
        path.rate = link::Rate::Constant(Bitrate::from_kbps(4_000).expect("not zero"));
    }
    let length = Duration::from_millis_f64(PAUSE_MS);
    setup.techniques.pause = Some(browser::Pause { after: 65_536, length });
    setup
}

fn load(setup: &Setup) -> Load {
    let load = sim::load(&page(), setup, 1);
    assert_eq!(load.outcome, Outcome::Complete);
    assert_eq!(load.requests[1].body_bytes, VIDEO, "the page reads it whole, each byte once");
    load
}

fn stalled(stalled: Stalled) -> Load {
    let mut setup = setup(Transport::Spdy(Version::V3));
    setup.spdy = setup.spdy.without(Feature::FlowControl);
    setup.techniques.stalled = stalled;
    load(&setup)
}

fn plt(load: &Load) -> f64 {
    load.plt().unwrap().as_millis_f64()
}

#[test]
fn a_window_holds_back_what_nobody_reads_and_nothing_else() {
    let windowed = load(&setup(Transport::Spdy(Version::V3)));
    assert!(windowed.unread_max <= u64::from(spdy::DEFAULT_WINDOW), "{}", windowed.unread_max);
    assert!(plt(&windowed) < 2_000.0, "{}", plt(&windowed));
    let video = windowed.requests[1].record.complete.unwrap();
    assert!(
        video.since(base::Instant::ZERO).as_millis_f64() > PAUSE_MS,
        "nor is it whole before the pause ends"
    );
}

#[test]
fn without_one_it_is_kept_whole_and_takes_the_line_from_all_others() {
    let (windowed, kept) = (load(&setup(Transport::Spdy(Version::V3))), stalled(Stalled::Buffer));
    assert!(kept.unread_max > VIDEO - 200_000, "{}", kept.unread_max);
    // Media are more urgent than images, and the server knows of no reader who has stopped.
    assert!(plt(&kept) > 2.0 * plt(&windowed), "{} {}", plt(&kept), plt(&windowed));
}

#[test]
fn or_it_is_ended_and_comes_twice() {
    let (windowed, killed) = (load(&setup(Transport::Spdy(Version::V3))), stalled(Stalled::Kill));
    assert!(killed.unread_max < 200_000);
    let twice = killed.down.bytes_out - windowed.down.bytes_out;
    assert!((65_536..600_000).contains(&twice), "{twice}");
    assert!(plt(&killed) < 2.0 * plt(&windowed));
}

#[test]
fn or_all_others_wait_with_it() {
    let blocked = stalled(Stalled::Block);
    assert!(plt(&blocked) > PAUSE_MS, "{}", plt(&blocked));
    assert!(blocked.unread_max < 200_000, "what is not read waits in TCP: {}", blocked.unread_max);
}

/// Nothing else waits on the connection.
#[test]
fn over_http1_only_its_own_connection_stands_still() {
    let http = load(&setup(Transport::Http1));
    assert!(plt(&http) < 2_000.0);
    assert_eq!(http.unread_max, 0);
}

/// SPDY/3 §2.6.8: 64 KiB to begin with; then what was read comes back by 32 KiB.
#[test]
fn progress_is_kept_if_asked_for_and_stays_below_the_windows_edge() {
    let mut setup = setup(Transport::Spdy(Version::V3));
    setup.techniques.pause = None;
    assert!(load(&setup).progress.is_empty());
    setup.keeps_progress = true;
    let load = load(&setup);
    let video: Vec<_> = load.progress.iter().filter(|p| p.request == 1).collect();
    assert!(video.iter().all(|p| p.received <= p.edge && p.edge <= p.received + 65_536));
    assert!(video.windows(2).all(|w| w[0].at <= w[1].at && w[0].received <= w[1].received));
    assert_eq!(video.last().unwrap().received, VIDEO);
}
