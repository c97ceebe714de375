//! What may carry requests, and the names by which users ask for it.

use std::fmt;
use std::str::FromStr;

/// What carries the requests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Transport {
    /// Persistent HTTP/1.1 connections, one request at a time on each.
    Http1,
    /// One SPDY session a host.
    Spdy(spdy::Version),
}

impl Transport {
    /// Every transport, in the order in which lists of them are printed.
    pub const ALL: [Transport; 4] = [
        Transport::Http1,
        Transport::Spdy(spdy::Version::V2),
        Transport::Spdy(spdy::Version::V3),
        Transport::Spdy(spdy::Version::V3_1),
    ];

    /// The name by which users ask for it.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Http1 => "http1",
            Transport::Spdy(spdy::Version::V2) => "spdy2",
            Transport::Spdy(spdy::Version::V3) => "spdy3",
            Transport::Spdy(spdy::Version::V3_1) => "spdy3.1",
        }
    }

    /// The version of SPDY, if it is SPDY.
    pub fn spdy_version(self) -> Option<spdy::Version> {
        match self {
            Transport::Http1 => None,
            Transport::Spdy(version) => Some(version),
        }
    }

    /// The protocol's name in ALPN and NPN.
    pub fn protocol(self) -> &'static str {
        match self {
            Transport::Http1 => "http/1.1",
            Transport::Spdy(spdy::Version::V2) => "spdy/2",
            Transport::Spdy(spdy::Version::V3) => "spdy/3",
            Transport::Spdy(spdy::Version::V3_1) => "spdy/3.1",
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A transport's name that is none of [`Transport::ALL`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownTransport(String);

impl fmt::Display for UnknownTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = Transport::ALL.iter().map(|t| t.name()).collect();
        write!(f, "unknown transport '{}'; known are {}", self.0, known.join(", "))
    }
}

impl std::error::Error for UnknownTransport {}

impl FromStr for Transport {
    type Err = UnknownTransport;
    fn from_str(s: &str) -> Result<Self, UnknownTransport> {
        Self::ALL.into_iter().find(|t| t.name() == s).ok_or_else(|| UnknownTransport(s.to_owned()))
    }
}
