//! What both ends of a cell agree on: resources, bodies, scenarios. In words it is `interop/README.md`; the foreign peers
//! have it in `node/contract.js`, `java/…/Contract.java` and `go/internal/contract`.

use std::fmt;

use bytes::{Bytes, BytesMut};
use spdy::Version;

/// Byte i of a body is i % 251, so that no shift by a power of two goes unseen.
pub const MODULUS: u64 = 251;
/// Bytes of the large bodies.
pub const LARGE: u64 = 400_000;
/// Bytes of the body during which a client says GOAWAY: more than any peer's window.
pub const HUGE: u64 = 30_000_000;
/// Bytes of what is pushed beside `/push`.
pub const PUSHED: u64 = 1_000;
/// Bytes after which `/endless` ends all the same.
pub const ENDLESS_MAX: u64 = 64 << 20;
/// `/small`.
pub const SMALL: &[u8] = b"hello, spdy\n";
/// `/push`.
pub const PUSHER: &[u8] = b"pusher\n";
/// Streams of `parallel100`; stream i asks for [`PARALLEL_BASE`] + i bytes.
pub const PARALLEL: u64 = 100;
/// Bytes of the shortest of them.
pub const PARALLEL_BASE: u64 = 5_000;
/// Milliseconds that one answer may be silent before it is given up.
pub const ANSWER_MS: u64 = 8_000;
/// Milliseconds that one cell may take.
pub const CELL_MS: u64 = 40_000;

/// Every version, oldest first.
pub const VERSIONS: [Version; 3] = [Version::V2, Version::V3, Version::V3_1];

/// The version as the peers' command line has it: `2`, `3`, `3.1`.
pub fn version_name(version: Version) -> &'static str {
    version.protocol_id().trim_start_matches("spdy/")
}

/// Appends the pattern's bytes `from`, …, `from + len - 1`.
pub fn pattern(from: u64, len: u64, out: &mut BytesMut) {
    let period: [u8; MODULUS as usize] = std::array::from_fn(|i| i as u8);
    out.reserve(len as usize);
    let mut at = (from % MODULUS) as usize;
    let mut left = len as usize;
    while left > 0 {
        let piece = left.min(period.len() - at);
        out.extend_from_slice(&period[at..at + piece]);
        (at, left) = (0, left - piece);
    }
}

/// The pattern's first `len` bytes.
pub fn body(len: u64) -> Bytes {
    let mut out = BytesMut::new();
    pattern(0, len, &mut out);
    out.freeze()
}

/// What an upload is answered: its length and its CRC-32/IEEE.
pub fn receipt(len: u64, crc: u32) -> String {
    format!("{len} {crc:08x}")
}

/// What a body has to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// The pattern, of this length.
    Pattern(u64),
    /// These bytes.
    Exactly(Bytes),
}

impl Wanted {
    /// Its length.
    pub fn len(&self) -> u64 {
        match self {
            Wanted::Pattern(len) => *len,
            Wanted::Exactly(bytes) => bytes.len() as u64,
        }
    }

    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn byte(&self, at: u64) -> Option<u8> {
        match self {
            Wanted::Pattern(len) => (at < *len).then_some((at % MODULUS) as u8),
            Wanted::Exactly(bytes) => bytes.get(at as usize).copied(),
        }
    }
}

/// Compares a body with what it has to be, as it comes: a fault is found at its first byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    what: String,
    wanted: Wanted,
    seen: u64,
    fault: Option<String>,
}

impl Check {
    /// Nothing of `what` has come yet.
    pub fn new(what: impl Into<String>, wanted: Wanted) -> Self {
        Self { what: what.into(), wanted, seen: 0, fault: None }
    }

    /// More of it has come.
    pub fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let wanted = self.wanted.byte(self.seen);
            if wanted != Some(*byte) && self.fault.is_none() {
                let (what, at) = (&self.what, self.seen);
                self.fault = Some(match wanted {
                    Some(wanted) => format!("{what}: byte {at} is {byte}, not {wanted}"),
                    None => format!("{what}: more than {at} bytes"),
                });
            }
            self.seen += 1;
        }
    }

    /// Bytes that have come.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// What is wrong so far.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// It has ended.
    ///
    /// # Errors
    /// If it is not what it has to be.
    pub fn end(&self) -> Result<u64, String> {
        match &self.fault {
            Some(fault) => Err(fault.clone()),
            None if self.seen < self.wanted.len() => {
                Err(format!("{}: ended after {} of {} bytes", self.what, self.seen, self.wanted.len()))
            }
            None => Ok(self.seen),
        }
    }
}

/// What is tried in a cell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Scenario {
    /// A GET of 12 bytes.
    Small,
    /// A GET of 400,000 bytes: more than any first window.
    Get400k,
    /// A POST of 400,000 bytes.
    Post400k,
    /// 100 GETs at once on one connection.
    Parallel100,
    /// A GET beside which something is pushed.
    Push,
    /// A GET that is reset in the middle; the session goes on.
    Cancel,
    /// The server says GOAWAY in the middle of a response, which then comes whole.
    GoAway,
    /// The client says GOAWAY in the middle of a response, which then comes whole.
    GoAwayClient,
    /// Kubernetes: stdin, stdout, stderr and the exit of a command.
    Exec,
    /// Kubernetes: two TCP connections through a pod's port.
    PortForward,
}

impl Scenario {
    /// All of them, in the order of the matrix.
    pub const ALL: [Scenario; 10] = [
        Scenario::Small,
        Scenario::Get400k,
        Scenario::Post400k,
        Scenario::Parallel100,
        Scenario::Push,
        Scenario::Cancel,
        Scenario::GoAway,
        Scenario::GoAwayClient,
        Scenario::Exec,
        Scenario::PortForward,
    ];

    /// As the peers' command line and `peers.toml` have it.
    pub fn name(self) -> &'static str {
        match self {
            Scenario::Small => "small",
            Scenario::Get400k => "get400k",
            Scenario::Post400k => "post400k",
            Scenario::Parallel100 => "parallel100",
            Scenario::Push => "push",
            Scenario::Cancel => "cancel",
            Scenario::GoAway => "goaway",
            Scenario::GoAwayClient => "goaway-client",
            Scenario::Exec => "exec",
            Scenario::PortForward => "portforward",
        }
    }

    /// The scenario of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name() == name)
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_is_the_same_however_it_is_cut() {
        let mut cut = BytesMut::new();
        for (from, len) in [(0, 1), (1, 250), (251, 0), (251, 700), (951, 49)] {
            pattern(from, len, &mut cut);
        }
        assert_eq!(cut, body(1_000));
        assert!(cut.iter().enumerate().all(|(i, b)| *b as usize == i % 251));
    }

    #[test]
    fn a_check_finds_the_first_wrong_byte_a_missing_end_and_too_much() {
        let mut right = Check::new("x", Wanted::Pattern(600));
        right.take(&body(600));
        assert_eq!(right.end(), Ok(600));
        right.take(b"!");
        assert_eq!(right.end(), Err("x: more than 600 bytes".into()));
        let mut wrong = Check::new("x", Wanted::Exactly(Bytes::from_static(b"abc")));
        wrong.take(b"aXX");
        assert_eq!(wrong.end(), Err("x: byte 1 is 88, not 98".into()));
        let mut short = Check::new("x", Wanted::Pattern(10));
        short.take(&body(9));
        assert_eq!(short.end(), Err("x: ended after 9 of 10 bytes".into()));
    }

    #[test]
    fn scenarios_are_known_by_their_names() {
        assert!(Scenario::ALL.iter().all(|s| Scenario::from_name(s.name()) == Some(*s)));
    }
}
