//! A session's knobs, and the settings of real clients and servers.

use base::Duration;
use mux::{Fairness, WindowPolicy};

use crate::frame::Setting;
use crate::{Compression, Limits, Policy, Version};

/// The window every stream and session begins with (SPDY/3.1 §2.6.8).
pub const DEFAULT_WINDOW: u32 = 65_536;

/// What flow control a session keeps. The version decides; some peers disagree with theirs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowControl {
    /// None: version 2. Also what Go's spdystream expects of version 3, as it never sends a WINDOW_UPDATE.
    None,
    /// A window a stream: version 3.
    Streams,
    /// A window a stream and one for all: version 3.1. node-spdy does this in version 2, too.
    StreamsAndSession,
}

/// What a session carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mapping {
    /// HTTP (§3): clients [request](crate::Session::request), servers [respond](crate::Session::respond) and
    /// [push](crate::Session::push).
    Http,
    /// Streams that mean whatever their fields say (§2.3): either end [opens](crate::Session::open) and
    /// [accepts](crate::Session::accept) them. What Kubernetes carries exec, attach and port-forward in.
    Streams,
}

/// How the peer learns of a stream window other than 64 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Announce {
    /// By INITIAL_WINDOW_SIZE in the first SETTINGS: Chrome, nginx.
    InSettings,
    /// By a WINDOW_UPDATE after each SYN_STREAM: Firefox.
    OnEachStream,
}

/// PINGs on a quiet connection, to learn that it is dead before TCP does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// Nothing heard for this long while streams are open: send a PING.
    pub idle: Duration,
    /// Nothing heard for this long after it: [`Event::Unresponsive`](crate::Event::Unresponsive).
    pub give_up: Duration,
}

/// A session's knobs.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Which SPDY.
    pub version: Version,
    /// What it carries.
    pub mapping: Mapping,
    /// Which flow control.
    pub flow_control: FlowControl,
    /// Receive window of each stream.
    pub stream_window: WindowPolicy,
    /// How the peer learns its size.
    pub announce: Announce,
    /// Receive window of the session (3.1).
    pub session_window: WindowPolicy,
    /// Streams that the peer may have open: requests if this is a server, pushes if it is a client, where 0 refuses
    /// them; with [`Mapping::Streams`], whatever it opens. Sent as MAX_CONCURRENT_STREAMS if
    /// [`announce_streams`](Self::announce_streams) says so.
    pub max_concurrent_streams: u32,
    /// Whether to send it.
    pub announce_streams: bool,
    /// Streams that this end opens at most while the peer has not stated a limit. The text has none (§2.6.4).
    pub assumed_streams: u32,
    /// Most bytes of payload in a DATA frame sent; 1 – 2²⁴ − 1. A frame holds the connection until it is out, so a
    /// smaller one lets a more urgent stream in sooner, at 8 bytes each.
    pub max_data_frame: u32,
    /// Whether low priorities may starve.
    pub fairness: Fairness,
    /// How header blocks are compressed.
    pub compression: Compression,
    /// What the peer may make this end hold or do.
    pub limits: Limits,
    /// Further entries of the first SETTINGS frame. A client puts here what
    /// [`persisted`](crate::Session::persisted_settings) gave at the end of the last session with the same server; a
    /// server, what it wants kept, flagged [`Setting::PERSIST`].
    pub settings: Vec<Setting>,
    /// PINGs on a quiet connection; `None` sends none.
    pub keep_alive: Option<KeepAlive>,
}

impl Config {
    /// Sound choices of today: 1 MiB a stream and 16 MiB a session, returned by halves; 100 streams of the peer's; DATA
    /// frames of 16 KiB; no starvation; headers compressed without leaking cookies.
    pub fn new(version: Version) -> Self {
        Self {
            version,
            mapping: Mapping::Http,
            flow_control: match version {
                Version::V2 => FlowControl::None,
                Version::V3 => FlowControl::Streams,
                Version::V3_1 => FlowControl::StreamsAndSession,
            },
            stream_window: WindowPolicy::half(1 << 20),
            announce: Announce::InSettings,
            session_window: WindowPolicy::half(16 << 20),
            max_concurrent_streams: 100,
            announce_streams: true,
            assumed_streams: 100,
            max_data_frame: 16 * 1024,
            fairness: Fairness::Bounded { turns: 32 },
            compression: Compression { policy: Policy::CookiesApart, window_bits: 15 },
            limits: Limits::default(),
            settings: Vec::new(),
            keep_alive: None,
        }
    }

    /// Chrome before mid-2012: 64 KB windows returned by 32 KB, strict priorities, headers compressed in full with a
    /// window of 2 KB (SpdyFramer: level 9, window bits 11), DATA frames that fill two segments (2 × 1430 − 8). Sent no
    /// limit of streams, and assumed 100.
    pub fn chrome_2012(version: Version) -> Self {
        Self {
            stream_window: WindowPolicy::FIXED_64K,
            session_window: WindowPolicy::FIXED_64K,
            max_concurrent_streams: 1_000,
            announce_streams: false,
            max_data_frame: 2_852,
            fairness: Fairness::Strict,
            compression: Compression { policy: Policy::Full, window_bits: 11 },
            ..Self::new(version)
        }
    }

    /// Chrome of 2013: 10 MiB windows announced at once, stream credit by halves, session credit past 32 KiB, cookies
    /// kept apart. PING after 10 s of silence, given up after 10 s more.
    pub fn chrome_2013(version: Version) -> Self {
        let seconds = Duration::from_secs(10);
        Self {
            stream_window: WindowPolicy::half(10 << 20),
            session_window: WindowPolicy { size: 10 << 20, ..WindowPolicy::FIXED_64K },
            announce_streams: true,
            compression: Compression { policy: Policy::CookiesApart, window_bits: 11 },
            keep_alive: Some(KeepAlive { idle: seconds, give_up: seconds }),
            ..Self::chrome_2012(version)
        }
    }

    /// Firefox: 256 MiB for each stream, given after its SYN_STREAM; requests not compressed.
    pub fn firefox(version: Version) -> Self {
        Self {
            stream_window: WindowPolicy::FIREFOX_256M,
            announce: Announce::OnEachStream,
            session_window: WindowPolicy::FIREFOX_256M,
            compression: Compression { policy: Policy::Stored, window_bits: 15 },
            ..Self::new(version)
        }
    }

    /// nginx 1.9.4: everything the peer may send at once, 100 streams, chunks of 8 KiB, no compression. It said so after its
    /// first SYN_REPLY; here it comes first, which no client can tell but by the time.
    pub fn nginx(version: Version) -> Self {
        let all = WindowPolicy::half(i32::MAX as u32);
        Self {
            stream_window: all,
            session_window: all,
            max_data_frame: 8 * 1024,
            fairness: Fairness::Strict,
            compression: Compression { policy: Policy::Stored, window_bits: 15 },
            ..Self::new(version)
        }
    }

    /// What suits Go's `moby/spdystream`, and so Kubernetes, at the other end: bare streams and no flow control, as it
    /// neither sends WINDOW_UPDATE nor heeds one. It calls itself `SPDY/3.1`, keeps no limit of streams and reads no
    /// SETTINGS. What nobody has read yet is held back by the transport alone: stop giving input when the reader of a
    /// stream falls behind.
    pub fn spdystream() -> Self {
        Self {
            mapping: Mapping::Streams,
            flow_control: FlowControl::None,
            max_concurrent_streams: 1_000,
            announce_streams: false,
            assumed_streams: 1_000,
            ..Self::new(Version::V3_1)
        }
    }
}
