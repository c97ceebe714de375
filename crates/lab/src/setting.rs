//! The settings of a network that have names: how they are written in a plan, on a command line and in print is one
//! definition each.

use std::fmt;
use std::str::FromStr;

use base::{Bitrate, Duration};
use serde::{Deserialize, Serialize};

/// A word or figure that is no setting. Its `Display` says what would be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unknown(pub(crate) String);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unknown {}

/// Settings are strings in a plan: what `Display` writes, `FromStr` reads.
macro_rules! as_text {
    ($type:ident) => {
        impl TryFrom<String> for $type {
            type Error = Unknown;
            fn try_from(s: String) -> Result<Self, Unknown> {
                s.parse()
            }
        }
        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.to_string()
            }
        }
    };
}

/// A setting that is one of several words.
macro_rules! words {
    ($(#[$doc:meta])* $type:ident, $what:literal: $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub enum $type {
            $($(#[$vdoc])* $variant,)+
        }
        impl $type {
            /// Every value.
            pub const ALL: &[$type] = &[$($type::$variant),+];
            /// How it is written.
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $word,)+
                }
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
        impl FromStr for $type {
            type Err = Unknown;
            fn from_str(s: &str) -> Result<Self, Unknown> {
                Self::ALL.iter().copied().find(|v| v.name() == s).ok_or_else(|| {
                    let known: Vec<_> = Self::ALL.iter().map(|v| v.name()).collect();
                    Unknown(format!("'{s}' is no {}; there are {}", $what, known.join(", ")))
                })
            }
        }
        as_text!($type);
    };
}

words! {
    /// Whose TCP constants hold at both ends.
    Stack, "TCP stack":
    /// Linux of 2010: before initial cwnd 10, the one-second SYN timeout and tail-loss probes.
    Linux2010 = "2010",
    /// Linux of today.
    Today = "today",
}

words! {
    /// Congestion control of the senders.
    Congestion, "congestion control":
    /// RFC 9438.
    Cubic = "cubic",
    /// RFC 5681, RFC 6582.
    Reno = "reno",
}

words! {
    /// Whose settings both ends of a SPDY session have.
    Spdy, "set of SPDY settings":
    /// Chrome's before mid-2012: header blocks compressed in full, which leaks cookies (CRIME); 64 KiB windows.
    Chrome2012 = "chrome-2012",
    /// Chrome's of 2013: cookies compressed apart from everything else; 10 MiB windows.
    Chrome2013 = "chrome-2013",
}

words! {
    /// What the queues at both ends of the access link do when they fill.
    Discipline, "queue discipline":
    /// First in, first out; what does not fit is dropped.
    DropTail = "droptail",
    /// RFC 8289.
    CoDel = "codel",
    /// RFC 8290.
    FqCoDel = "fq-codel",
}

words! {
    /// What secures connections.
    Tls, "TLS mode":
    /// Nothing: `https` is loaded in the clear.
    None = "none",
    /// TLS 1.2, full handshakes.
    Tls12 = "1.2",
    /// TLS 1.2, every session resumed.
    Tls12Resumed = "1.2-resumed",
    /// TLS 1.3, full handshakes.
    Tls13 = "1.3",
    /// TLS 1.3, every session resumed.
    Tls13Resumed = "1.3-resumed",
}

words! {
    /// By what rule servers cut TLS records.
    #[derive(Default)]
    RecordSizing, "rule for TLS records":
    /// As full as the record size of the network allows.
    #[default]
    Fixed = "fixed",
    /// One to a packet.
    Packet = "packet",
    /// As Apache Traffic Server: small until 1 MB.
    Ats = "ats",
    /// As H2O: small until 64 KiB.
    H2o = "h2o",
    /// As Cloudflare's nginx: 40 small ones, 40 of three packets.
    Cloudflare = "cloudflare",
    /// As a proxy that passes on 40 KB at a time.
    Proxy = "proxy-40k",
}

words! {
    /// Whether windows may exceed 65,535 bytes (RFC 7323).
    #[derive(Default)]
    WindowScaling, "window scaling":
    /// They may.
    #[default]
    On = "on",
    /// They may not: no connection has more in flight.
    Off = "off",
}

words! {
    /// Whether senders spread their segments over the round trip.
    #[derive(Default)]
    Pacing, "pacing":
    /// A window leaves as soon as it may.
    #[default]
    Off = "off",
    /// By Linux's rules.
    On = "on",
}

/// Whether a setting is what plans mean that do not mention it.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

words! {
    /// Where loads are made.
    #[derive(Default)]
    World, "world":
    /// In virtual time: deterministic, and without privileges.
    #[default]
    Virtual = "virtual",
    /// Over the kernel's TCP, real TLS and an emulated link, in real time.
    Live = "live",
}

impl World {
    /// Whether it is the one that a plan means when it does not say.
    pub(crate) fn is_virtual(&self) -> bool {
        *self == World::Virtual
    }
}

words! {
    /// Which connections TLS secures, where it is spoken at all.
    TlsScope, "TLS scope":
    /// Those to hosts whose URLs say `https`.
    Recorded = "recorded",
    /// All of them.
    Everywhere = "everywhere",
}

/// What a server takes between a request and its response, beyond the network.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Think {
    /// What each recording tells of each response.
    Recorded,
    /// Nothing.
    None,
    /// The same for every response, milliseconds.
    FixedMs(f64),
}
as_text!(Think);

impl fmt::Display for Think {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Think::Recorded => f.write_str("recorded"),
            Think::None => f.write_str("none"),
            Think::FixedMs(ms) => write!(f, "{ms}"),
        }
    }
}

impl FromStr for Think {
    type Err = Unknown;
    fn from_str(s: &str) -> Result<Self, Unknown> {
        match s {
            "recorded" => Ok(Think::Recorded),
            "none" => Ok(Think::None),
            _ => figure(s, MS_MAX).map(Think::FixedMs).ok_or_else(|| {
                Unknown(format!(
                    "'{s}' is no think time; there are recorded, none, or 0–{MS_MAX} milliseconds"
                ))
            }),
        }
    }
}

/// How long the browser computes, as a factor of what the recording tells.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Compute(pub f64);
as_text!(Compute);

impl fmt::Display for Compute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0.0 => f.write_str("none"),
            1.0 => f.write_str("recorded"),
            factor => write!(f, "{factor}"),
        }
    }
}

impl FromStr for Compute {
    type Err = Unknown;
    fn from_str(s: &str) -> Result<Self, Unknown> {
        match s {
            "recorded" => Ok(Compute(1.0)),
            "none" => Ok(Compute(0.0)),
            _ => figure(s, 1_000.0).map(Compute).ok_or_else(|| {
                Unknown(format!("'{s}' is no computation; there are recorded, none, or a factor of 0–1000"))
            }),
        }
    }
}

/// How far behind the access link each host is.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum HostRtt {
    /// All at the network's round-trip time.
    Equal,
    /// As each recording's connect times tell.
    Recorded,
    /// Up to so many milliseconds further than the network's round-trip time, drawn for each host.
    SpreadMs(f64),
}
as_text!(HostRtt);

impl fmt::Display for HostRtt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostRtt::Equal => f.write_str("equal"),
            HostRtt::Recorded => f.write_str("recorded"),
            HostRtt::SpreadMs(ms) => write!(f, "spread:{ms}"),
        }
    }
}

impl FromStr for HostRtt {
    type Err = Unknown;
    fn from_str(s: &str) -> Result<Self, Unknown> {
        match s {
            "equal" => Ok(HostRtt::Equal),
            "recorded" => Ok(HostRtt::Recorded),
            _ => {
                s.strip_prefix("spread:").and_then(|ms| figure(ms, MS_MAX)).map(HostRtt::SpreadMs).ok_or_else(
                    || Unknown(format!("'{s}' places no hosts; there are equal, recorded, spread:MS")),
                )
            }
        }
    }
}

/// How fast one direction of the access link is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Line {
    /// So many thousand bits a second; not zero.
    Kbps(u64),
    /// The opportunities of a recorded trace, a file in Mahimahi's format.
    Trace {
        /// The file.
        path: String,
        /// FNV-1a and splitmix64 over its bytes, once it has been read: a plan stands for what the file held then.
        fingerprint: Option<u64>,
    },
}
as_text!(Line);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::Kbps(kbps) => write!(f, "{kbps} kbit/s"),
            Line::Trace { path, fingerprint: None } => write!(f, "trace:{path}"),
            Line::Trace { path, fingerprint: Some(print) } => write!(f, "trace:{path}#{print:016x}"),
        }
    }
}

impl FromStr for Line {
    type Err = Unknown;
    fn from_str(s: &str) -> Result<Self, Unknown> {
        if let Some(trace) = s.strip_prefix("trace:") {
            let print = trace.rsplit_once('#').filter(|(_, hex)| hex.len() == 16);
            return Ok(match print.and_then(|(p, hex)| Some((p, u64::from_str_radix(hex, 16).ok()?))) {
                Some((path, print)) => Line::Trace { path: path.to_owned(), fingerprint: Some(print) },
                None => Line::Trace { path: trace.to_owned(), fingerprint: None },
            });
        }
        let kbps = s.strip_suffix("kbit/s").unwrap_or(s).trim();
        kbps.parse()
            .ok()
            .filter(|kbps| (1..=KBPS_MAX).contains(kbps))
            .map(Line::Kbps)
            .ok_or_else(|| Unknown(format!("'{s}' is no rate; there are 1–{KBPS_MAX} kbit/s and trace:FILE")))
    }
}

impl Line {
    /// The rate, if it is constant.
    pub fn bitrate(&self) -> Option<Bitrate> {
        match self {
            Line::Kbps(kbps) => Bitrate::from_kbps(*kbps),
            Line::Trace { .. } => None,
        }
    }
}

/// The fastest line: a terabit a second.
pub const KBPS_MAX: u64 = 1_000_000_000;

/// The longest delay of any kind, milliseconds: a minute, which outlasts every timer that waits for it.
pub const MS_MAX: f64 = 60_000.0;

/// A decimal figure from 0 to `max`.
pub(crate) fn figure(s: &str, max: f64) -> Option<f64> {
    s.parse().ok().filter(|v| (0.0..=max).contains(v))
}

/// Milliseconds as a span.
pub(crate) fn ms(ms: f64) -> Duration {
    Duration::from_millis_f64(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back<T: FromStr<Err = Unknown> + fmt::Display>(words: &[&str]) {
        for word in words {
            assert_eq!(word.parse::<T>().map_err(|e| e.0).unwrap().to_string(), *word);
        }
    }

    #[test]
    fn a_setting_reads_what_it_writes() {
        there_and_back::<Stack>(&["2010", "today"]);
        there_and_back::<Discipline>(&["droptail", "codel", "fq-codel"]);
        there_and_back::<Tls>(&["none", "1.2", "1.2-resumed", "1.3", "1.3-resumed"]);
        there_and_back::<Think>(&["recorded", "none", "12.5"]);
        there_and_back::<Compute>(&["recorded", "none", "0.25"]);
        there_and_back::<HostRtt>(&["equal", "recorded", "spread:40"]);
        there_and_back::<Line>(&["386 kbit/s", "trace:a#b.down", "trace:a.down#00000000000000ff"]);
    }

    #[test]
    fn a_wrong_word_is_answered_with_the_right_ones() {
        let says = |e: Unknown| e.to_string();
        assert_eq!(
            "bbr".parse::<Congestion>().map_err(says).unwrap_err(),
            "'bbr' is no congestion control; there are cubic, reno"
        );
        for bad in ["-1", "NaN", "inf", "60001", "", "1e9"] {
            assert!(bad.parse::<Think>().is_err(), "{bad}");
            assert!(format!("spread:{bad}").parse::<HostRtt>().is_err(), "{bad}");
        }
        for bad in ["0", "-1", "1.5", "1000000001", "fast"] {
            assert!(bad.parse::<Line>().is_err(), "{bad}");
        }
    }
}
