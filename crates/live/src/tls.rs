//! TLS by BoringSSL, which is what Chrome uses and the one library left that speaks NPN and still does False Start.
//!
//! * Protocols are agreed on by ALPN (RFC 7301), by NPN (draft-agl-tls-nextprotoneg-04; TLS 1.2 and earlier), or by either.
//! * [`Acceptor`] and [`Connector`] hold what all connections share; a [`TlsStream`] is one of them and never blocks.
//! * A build without the feature `tls` has the same names; nothing can be made of them, and the error says what to build.
//! * With a [`KeyLog`] every secret is written in the format of RFC 9850, for packet analysers.

#[cfg(not(feature = "tls"))]
mod absent;
#[cfg(feature = "tls")]
mod present;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

#[cfg(not(feature = "tls"))]
pub use absent::{Acceptor, Authority, Connector, Identity, Session, TlsStream};
#[cfg(feature = "tls")]
pub use present::{Acceptor, Authority, Connector, Identity, Session, TlsStream};

/// Whether this build has TLS: the feature `tls`.
pub const PRESENT: bool = cfg!(feature = "tls");

/// How the protocol above TLS is agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer {
    /// By ALPN: the client lists, the server chooses.
    Alpn,
    /// By NPN: the server lists, the client chooses, under encryption. Holds TLS down to 1.2.
    Npn,
    /// By whichever the peer knows; BoringSSL prefers ALPN.
    Both,
}

/// Versions of TLS allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Versions {
    /// 1.2 and 1.3.
    Tls12To13,
    /// 1.2 alone: what False Start and NPN need.
    Tls12,
    /// 1.3 alone.
    Tls13,
}

/// What both ends are configured with.
#[derive(Clone, Debug)]
pub struct Common {
    /// Protocols above TLS, preferred first: `spdy/3.1`, `http/1.1`.
    pub protocols: Vec<String>,
    /// How they are agreed on.
    pub offer: Offer,
    /// Versions of TLS allowed.
    pub versions: Versions,
    /// Bytes of plaintext a record holds at most: 512 to 16384, which is the default.
    pub record_size: Option<u16>,
    /// By what rule a server cuts records.
    pub sizing: ::tls::Sizing,
    /// How keys are agreed on, preferred first: names of groups with colons between, `X25519:P-256`. The library's own choice begins
    /// with a post-quantum hybrid, whose keys add 1.2 kB to either hello.
    pub groups: Option<String>,
    /// Where secrets are written.
    pub key_log: Option<KeyLog>,
}

impl Common {
    /// These protocols by ALPN or NPN, TLS 1.2 and 1.3, records as large as may be, the library's groups, no key log.
    pub fn new(protocols: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            protocols: protocols.into_iter().map(Into::into).collect(),
            offer: Offer::Both,
            versions: Versions::Tls12To13,
            record_size: None,
            sizing: ::tls::Sizing::Fixed,
            groups: None,
            key_log: None,
        }
    }
}

/// A server's configuration.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// What both ends have.
    pub common: Common,
    /// Certificate and key.
    pub identity: Identity,
    /// Whether sessions can be resumed by ticket (RFC 5077; RFC 8446 §4.6.1).
    pub tickets: bool,
    /// A DER-encoded OCSP response to staple (RFC 6066 §8), for clients that ask.
    pub ocsp: Option<Vec<u8>>,
}

/// Whom a client believes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trust {
    /// The system's roots.
    System,
    /// The certificates of a PEM file, and nobody else.
    File(PathBuf),
    /// These certificates, in PEM, and nobody else.
    Roots(Vec<u8>),
    /// Anybody: for servers whose certificate was made on the spot.
    Anybody,
}

/// A client's configuration.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// What both ends have.
    pub common: Common,
    /// Whom to believe.
    pub trust: Trust,
    /// Whether data may follow the client's Finished without waiting for the server's (RFC 7918). BoringSSL does so under
    /// TLS 1.2 with forward secrecy, an AEAD cipher and a protocol agreed on by ALPN or NPN.
    pub false_start: bool,
    /// Whether to ask for a stapled OCSP response.
    pub ocsp: bool,
}

/// A file to which secrets are appended, one line each (RFC 9850, the format of `SSLKEYLOGFILE`).
#[derive(Clone, Debug)]
pub struct KeyLog(
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "there are no secrets"))] Arc<Mutex<File>>,
);

impl KeyLog {
    /// Opens or makes the file.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(Arc::new(Mutex::new(OpenOptions::new().create(true).append(true).open(path)?))))
    }
}

/// TLS could not be set up; says what and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// By what extension a protocol was agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// Application-Layer Protocol Negotiation.
    Alpn,
    /// Next Protocol Negotiation.
    Npn,
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            By::Alpn => "ALPN",
            By::Npn => "NPN",
        })
    }
}

/// What a handshake agreed on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Negotiated {
    /// The protocol above TLS, and how it was agreed on.
    pub protocol: Option<(String, By)>,
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite's name.
    pub cipher: String,
    /// An earlier session was resumed.
    pub resumed: bool,
    /// The server stapled an OCSP response.
    pub stapled: bool,
}
