//! The record layer (RFC 5246 section 6.2, RFC 8446 section 5).

use crate::{Error, Mode};

/// Most plaintext bytes in a record.
pub(crate) const MAX_PLAINTEXT: u32 = 1 << 14;

/// Bytes of a record's header.
pub(crate) const HEADER_LEN: usize = 5;
/// Bytes of the nonce that a TLS 1.2 record of AES-GCM carries (RFC 5288 section 3).
pub(crate) const NONCE_LEN: usize = 8;
/// Bytes of the tag of AES-GCM.
const TAG_LEN: usize = 16;

pub(crate) const CHANGE_CIPHER_SPEC: u8 = 20;
pub(crate) const ALERT: u8 = 21;
pub(crate) const HANDSHAKE: u8 = 22;
pub(crate) const APPLICATION_DATA: u8 = 23;

/// How records are protected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seal {
    /// Not at all.
    None,
    /// TLS 1.2, AES-GCM: an explicit nonce before, a tag after.
    Tls12,
    /// TLS 1.3, any AEAD: the true type and a tag after.
    Tls13,
}

impl Seal {
    pub fn of(mode: Mode) -> Self {
        if mode.is_tls13() { Seal::Tls13 } else { Seal::Tls12 }
    }

    /// Bytes between the record's header and its plaintext.
    pub const fn before(self) -> usize {
        if matches!(self, Seal::Tls12) { NONCE_LEN } else { 0 }
    }

    /// Bytes after its plaintext: for TLS 1.3 the type, which is real, and then the tag.
    pub fn after(self, record_type: u8) -> &'static [u8] {
        const TAG: [u8; TAG_LEN] = [0; TAG_LEN];
        const fn typed(t: u8) -> [u8; 1 + TAG_LEN] {
            let mut out = [0; 1 + TAG_LEN];
            out[0] = t;
            out
        }
        const TYPED_HANDSHAKE: [u8; 1 + TAG_LEN] = typed(HANDSHAKE);
        const TYPED_DATA: [u8; 1 + TAG_LEN] = typed(APPLICATION_DATA);
        match (self, record_type) {
            (Seal::None, _) => &[],
            (Seal::Tls12, _) => &TAG,
            (Seal::Tls13, HANDSHAKE) => &TYPED_HANDSHAKE,
            (Seal::Tls13, _) => &TYPED_DATA,
        }
    }

    /// Bytes that a record adds to its plaintext, its header included.
    pub const fn overhead(self) -> u64 {
        HEADER_LEN as u64 + self.expansion() as u64
    }

    /// Bytes that protection adds.
    pub const fn expansion(self) -> usize {
        match self {
            Seal::None => 0,
            Seal::Tls12 => NONCE_LEN + TAG_LEN,
            Seal::Tls13 => 1 + TAG_LEN,
        }
    }
}

/// A record's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub record_type: u8,
    pub version: u16,
    /// Bytes that follow.
    pub len: u16,
}

impl Header {
    pub fn emit(self) -> [u8; HEADER_LEN] {
        let ([v0, v1], [l0, l1]) = (self.version.to_be_bytes(), self.len.to_be_bytes());
        [self.record_type, v0, v1, l0, l1]
    }

    pub fn parse(bytes: [u8; HEADER_LEN], seal: Seal) -> Result<Self, Error> {
        let [record_type, v0, v1, l0, l1] = bytes;
        let header =
            Self { record_type, version: u16::from_be_bytes([v0, v1]), len: u16::from_be_bytes([l0, l1]) };
        if !(CHANGE_CIPHER_SPEC..=APPLICATION_DATA).contains(&record_type) {
            return Err(Error::RecordType(record_type));
        }
        if v0 != 3 {
            return Err(Error::RecordVersion(header.version));
        }
        // RFC 5246 section 6.2.3 and RFC 8446 section 5.2; plaintext records may not expand at all.
        let expansion = match seal {
            Seal::None => 0,
            Seal::Tls12 => 2_048,
            Seal::Tls13 => 256,
        };
        if u32::from(header.len) > MAX_PLAINTEXT + expansion {
            return Err(Error::RecordTooLong(header.len));
        }
        if usize::from(header.len) < seal.expansion() {
            return Err(Error::RecordTooShort(header.len));
        }
        Ok(header)
    }
}
