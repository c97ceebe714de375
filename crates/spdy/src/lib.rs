//! SPDY, versions 2, 3 and 3.1: a sans-IO engine, client and server.
//!
//! A [`Session`] is one end of a connection. It takes bytes, commands and the time, and gives back bytes and events;
//! it opens no socket, reads no clock and starts nothing, so that a simulator, a socket, a fuzzer and a table of test
//! vectors can all drive it. The same engine speaks all three versions: what differs is in [`frame`], in the
//! dictionaries, and in which [`FlowControl`] a version has.
//!
//! # How to drive it
//!
//! 1. Give it a command ([`request`](Session::request), [`respond`](Session::respond), [`send`](Session::send), …) or
//!    input ([`handle_input`](Session::handle_input)).
//! 2. Take events with [`poll_event`](Session::poll_event) until there are none. Data that was read is handed back
//!    with [`consume`](Session::consume): credit returns to the peer only then.
//! 3. While the transport takes bytes, ask [`poll_transmit`](Session::poll_transmit) for them. It decides at that
//!    moment whose data goes next, so hand over no more at a time than the transport will send soon.
//!
//! ```
//! use base::{Fields, Instant, RequestHead, ResponseHead};
//! use spdy::{Config, Event, Priority, Session, Version};
//!
//! let now = Instant::ZERO;
//! let mut client = Session::client(Config::new(Version::V3_1));
//! let mut server = Session::server(Config::new(Version::V3_1));
//! let head = RequestHead {
//!     method: "GET".into(),
//!     scheme: "https".into(),
//!     authority: "example.org".into(),
//!     path: "/".into(),
//!     fields: Fields::new(),
//! };
//! let id = client.request(&head, Priority::new(0), true).unwrap();
//! while let Some(chunk) = client.poll_transmit(now, 1_400) {
//!     server.handle_input(now, chunk).unwrap();
//! }
//! let asked = std::iter::from_fn(|| server.poll_event()).find_map(|event| match event {
//!     Event::Request { id, head, .. } => Some((id, head)),
//!     _ => None,
//! });
//! assert_eq!(asked, Some((id, head)));
//! server.respond(id, &ResponseHead { status: 204, fields: Fields::new() }, true).unwrap();
//! while let Some(chunk) = server.poll_transmit(now, 1_400) {
//!     client.handle_input(now, chunk).unwrap();
//! }
//! let answered = std::iter::from_fn(|| client.poll_event())
//!     .any(|event| matches!(event, Event::Response { head, fin: true, .. } if head.status == 204));
//! assert!(answered);
//! ```
//!
//! # Streams without HTTP
//!
//! With [`Mapping::Streams`] a stream is what its fields say, and either end [opens](Session::open) and
//! [accepts](Session::accept) it. [`Config::spdystream`] is what Kubernetes' exec, attach and port-forward want.
//!
//! # Bodies nobody looks at
//!
//! A chunk is bytes or a *range* of a body that is never materialised ([`base::BodyRange`]). Ranges go out as the
//! payload of DATA frames, are accepted there, and are an error anywhere else. So a simulated load of megabytes costs
//! what its headers cost.
//!
//! # Looking at frames
//!
//! [`trace`] reads either direction of a connection without being an end of it, and prints every frame.
//!
//! # What to read first
//!
//! The drafts: [SPDY/2], [SPDY/3] (draft-mbelshe-httpbis-spdy-00) and [SPDY/3.1]; sections cited in this crate are the last
//! one's unless it says otherwise. Where implementations and texts disagree, this follows the implementations and says
//! so at the place. The list of what a peer can do wrong and gets for it is in [`Limits`] and [`Misbehaviour`].
//!
//! [SPDY/2]: https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft2
//! [SPDY/3]: https://datatracker.ietf.org/doc/html/draft-mbelshe-httpbis-spdy-00
//! [SPDY/3.1]: https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1

mod block;
mod compress;
mod config;
mod deflate;
pub mod dictionary;
mod error;
mod event;
mod feature;
pub mod frame;
mod framer;
mod http;
mod limits;
mod session;
pub mod trace;

/// The README's example runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

use std::fmt;
use std::str::FromStr;

use mux::Lifecycle;

pub use compress::{Compression, Policy};
pub use config::{Announce, Config, DEFAULT_WINDOW, FlowControl, KeepAlive, Mapping};
pub use error::{BadHead, Error, Misbehaviour, OpenError, SendError};
pub use event::{By, Event, Stats};
pub use feature::{Feature, UnknownFeature};
pub use limits::Limits;
pub use mux::{Fairness, Threshold, WindowPolicy};
pub use session::Session;

/// A version of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Version {
    /// SPDY/2 (2010).
    V2,
    /// SPDY/3 (2012): flow control by stream.
    V3,
    /// SPDY/3.1 (2013): flow control by stream and session.
    V3_1,
}

impl Version {
    /// The version in control frames; 3.1 writes 3 (§2.2.1).
    pub const fn on_wire(self) -> u16 {
        match self {
            Version::V2 => 2,
            Version::V3 | Version::V3_1 => 3,
        }
    }

    /// The name by which ALPN and NPN know it.
    pub const fn protocol_id(self) -> &'static str {
        match self {
            Version::V2 => "spdy/2",
            Version::V3 => "spdy/3",
            Version::V3_1 => "spdy/3.1",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.protocol_id())
    }
}

/// A string is no [`Version::protocol_id`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownVersion;

impl fmt::Display for UnknownVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not spdy/2, spdy/3 or spdy/3.1")
    }
}

impl std::error::Error for UnknownVersion {}

impl FromStr for Version {
    type Err = UnknownVersion;
    fn from_str(s: &str) -> Result<Self, UnknownVersion> {
        let all = [Version::V2, Version::V3, Version::V3_1];
        all.into_iter().find(|v| v.protocol_id() == s).ok_or(UnknownVersion)
    }
}

/// A stream's number: odd for those the client opens, even for the server's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(u32);

impl StreamId {
    /// As on the wire.
    pub const fn as_u32(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A stream's priority: 0 is the most urgent, 7 the least.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Priority(u8);

impl Priority {
    /// The most urgent.
    pub const HIGHEST: Priority = Priority(0);
    /// The least urgent.
    pub const LOWEST: Priority = Priority(7);

    /// Priority `level`; past 7 it is 7.
    pub const fn new(level: u8) -> Self {
        if level > 7 { Self::LOWEST } else { Self(level) }
    }

    /// 0–7.
    pub const fn level(self) -> u8 {
        self.0
    }

    /// The upper three bits in version 3, the upper two in version 2, which has every other level. Version 2's text calls 3
    /// the highest; Chrome and spdylay wrote 0 for it, and so does everyone.
    const fn to_wire(self, version: Version) -> u8 {
        match version {
            Version::V2 => self.0 >> 1 << 6,
            Version::V3 | Version::V3_1 => self.0 << 5,
        }
    }

    const fn from_wire(version: Version, byte: u8) -> Self {
        match version {
            Version::V2 => Self(byte >> 6 << 1),
            Version::V3 | Version::V3_1 => Self(byte >> 5),
        }
    }
}

/// How a stream is opened, but for its fields (§2.6.1). The default is independent, most urgent, and open both ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opening {
    /// How urgent its creator thinks it.
    pub priority: Priority,
    /// The stream that it belongs to, whatever that means to the two ends.
    pub associated: Option<StreamId>,
    /// Its creator sends nothing but what opened it.
    pub fin: bool,
    /// Its recipient sends nothing, not even a reply.
    pub unidirectional: bool,
}

impl Default for Opening {
    fn default() -> Self {
        Self { priority: Priority::HIGHEST, associated: None, fin: false, unidirectional: false }
    }
}

impl Opening {
    const fn life_of_creator(self) -> Lifecycle {
        let mut life = Lifecycle::BOTH;
        if self.fin {
            life.end_send();
        }
        if self.unidirectional {
            life.end_receive();
        }
        life
    }

    const fn life_of_recipient(self) -> Lifecycle {
        Opening { fin: self.unidirectional, unidirectional: self.fin, ..self }.life_of_creator()
    }
}

/// Why a stream was reset (§2.6.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(pub u32);

macro_rules! names {
    ($type:ident: $($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        impl $type {
            $($(#[$doc])* pub const $name: $type = $type($code);)*

            /// The name in the specification, if it has one.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}({})", stringify!($type), self.0),
                }
            }
        }
    };
}

names! { Status:
    /// Anything that has no code of its own.
    PROTOCOL_ERROR = 1,
    /// A frame for a stream that is not active.
    INVALID_STREAM = 2,
    /// Refused before anything was done: safe to ask again.
    REFUSED_STREAM = 3,
    /// The version is not spoken here.
    UNSUPPORTED_VERSION = 4,
    /// No longer wanted.
    CANCEL = 5,
    /// The implementation failed.
    INTERNAL_ERROR = 6,
    /// More was sent than the window allows.
    FLOW_CONTROL_ERROR = 7,
    /// A second SYN_REPLY (version 3).
    STREAM_IN_USE = 8,
    /// A frame after the stream was half closed (version 3).
    STREAM_ALREADY_CLOSED = 9,
    /// The client's certificate is not accepted (version 3, not 3.1).
    INVALID_CREDENTIALS = 10,
    /// A frame larger than is supported (version 3).
    FRAME_TOO_LARGE = 11,
}

impl Status {
    /// Whether the stream was not processed at all, so that the request may be sent again whatever its method.
    pub const fn is_unprocessed(self) -> bool {
        self.0 == Self::REFUSED_STREAM.0
    }

    /// The nearest code that `version` has.
    const fn on(self, version: Version) -> Self {
        match version {
            Version::V2 if self.0 > Self::FLOW_CONTROL_ERROR.0 => Self::PROTOCOL_ERROR,
            _ => self,
        }
    }
}

/// Why a session goes away (§2.6.6).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoAwayStatus(pub u32);

names! { GoAwayStatus:
    /// A normal end; all that version 2 can say.
    OK = 0,
    /// The peer broke the protocol.
    PROTOCOL_ERROR = 1,
    /// The implementation failed. (Version 3's text says 11, which 3.1 corrects.)
    INTERNAL_ERROR = 2,
}
