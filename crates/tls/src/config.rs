//! What a handshake is made of.

use base::Duration;

use crate::record::MAX_PLAINTEXT;
use crate::{Message, Sizing};

/// Everything about a connection's TLS that costs bytes, round trips or time. Both ends of a connection are given
/// the same one.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Which handshake.
    pub mode: Mode,
    /// Whether a client sends application data right after its Finished, without the server's (RFC 7918). Matters in
    /// [`Mode::Tls12Full`] only.
    ///
    /// Clients do so on conditions that are the caller's to check: BoringSSL asks for ECDHE, an AEAD cipher and
    /// a negotiated application protocol.
    pub false_start: bool,
    /// Whether a client sends application data right after its ClientHello (0-RTT, RFC 8446 section 2.3), and a
    /// server right after its Finished. Matters in [`Mode::Tls13Resumed`] only; the server always accepts.
    pub early_data: bool,
    /// Bytes of the server's certificates, DER, without the root. Of the chains of popular sites, 5 % take less than
    /// 2,308 bytes, half less than 4,032, and 5 % more than 5,609 (benchmarks of draft-ietf-tls-cert-abridge, 2023).
    pub chain_len: u32,
    /// How many certificates these are; each has a length of its own on the wire.
    pub chain_certs: u32,
    /// Bytes of the stapled OCSP response; 0 for none.
    pub ocsp_len: u32,
    /// Whether a client holds its flight back behind a certificate until it is told to go on
    /// ([`Session::verified`](crate::Session::verified)): it asks about the certificate first. So does BoringSSL under
    /// `SSL_set_custom_verify`.
    pub verify: bool,
    /// How the key is agreed on.
    pub key_exchange: KeyExchange,
    /// What the server signs with.
    pub signature: Signature,
    /// Bytes of the server's name in the ClientHello; 0 leaves the extension out.
    pub server_name_len: u16,
    /// Application protocols that the client offers (ALPN, RFC 7301); the server takes the first. None leaves the
    /// extension out.
    pub alpn: &'static [&'static str],
    /// A shorter ClientHello is padded to this many bytes (RFC 7685); 0 pads none. Chrome pads to 512 what would
    /// be longer than 255.
    pub client_hello_min: u32,
    /// Most plaintext bytes in a record, 1 to 16,384; other values are taken as the nearest of these.
    pub record_size: u32,
    /// By what rule a server cuts records of data; a client's are as full as may be.
    pub sizing: Sizing,
    /// How handshake messages are put in records.
    pub packing: Packing,
    /// What a client computes between the server's flight and its own: checking the chain and the signature,
    /// agreeing on a key. The flight is held back for so long.
    ///
    /// For the size of it: OpenSSL 3.0 on one core of a server of 2023 signs with RSA-2048 in 0.21 ms and checks in
    /// 0.01 ms, signs with ECDSA P-256 in 0.01 ms and checks in 0.04 ms, and agrees on a key over X25519 in 0.02 ms
    /// (`openssl speed`).
    pub client_compute: Duration,
    /// What a server computes between the ClientHello and its own first flight: making a key, signing. That flight
    /// is held back for so long.
    pub server_compute: Duration,
}

/// Which handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// TLS 1.2 with ECDHE and a ticket for the next time (RFC 5246 figure 1, RFC 8422, RFC 5077 figure 1).
    Tls12Full,
    /// TLS 1.2 from a ticket (RFC 5246 figure 2, RFC 5077 figure 2, but the ticket is not renewed).
    Tls12Resumed,
    /// TLS 1.3 with a certificate and two tickets for later (RFC 8446 figure 1).
    Tls13Full,
    /// TLS 1.3 from a ticket, with a fresh key exchange (RFC 8446 figure 3) and one new ticket.
    Tls13Resumed,
}

impl Mode {
    /// Whether this is TLS 1.3.
    pub const fn is_tls13(self) -> bool {
        matches!(self, Mode::Tls13Full | Mode::Tls13Resumed)
    }

    /// Whether the server shows a certificate.
    pub const fn has_certificate(self) -> bool {
        matches!(self, Mode::Tls12Full | Mode::Tls13Full)
    }
}

/// How the key is agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyExchange {
    /// Public keys of 32 bytes (RFC 7748).
    X25519,
    /// Public keys of 65 bytes: an uncompressed point (RFC 8422 section 5.4.1).
    P256,
}

/// What the server signs with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signature {
    /// Signatures of 256 bytes.
    Rsa2048,
    /// DER-encoded signatures of 70 to 72 bytes, as the top bits of two random numbers fall; taken as 71.
    EcdsaP256,
}

/// How handshake messages are put in records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packing {
    /// As few records as possible, as NSS does.
    Coalesced,
    /// As few records as possible for messages that are enciphered, which in TLS 1.2 is only Finished; a record, or several, for each of the
    /// others: as BoringSSL does, and so the live world.
    CoalescedIfEnciphered,
    /// A record, or several, a message, as OpenSSL does.
    PerMessage,
}

impl Default for Config {
    /// TLS 1.3, full; see [`Config::new`].
    fn default() -> Self {
        Self::new(Mode::Tls13Full)
    }
}

impl Config {
    /// A handshake over X25519 with an RSA-2048 certificate in a chain of two that takes 4,032 bytes, no OCSP response,
    /// a server's name of 15 bytes, one application protocol (`http/1.1`), full records, and no computation.
    pub const fn new(mode: Mode) -> Self {
        Self {
            mode,
            false_start: false,
            early_data: false,
            chain_len: 4_032,
            chain_certs: 2,
            ocsp_len: 0,
            verify: false,
            key_exchange: KeyExchange::X25519,
            signature: Signature::Rsa2048,
            server_name_len: 15,
            alpn: &["http/1.1"],
            client_hello_min: 0,
            record_size: MAX_PLAINTEXT,
            sizing: Sizing::Fixed,
            packing: Packing::CoalescedIfEnciphered,
            client_compute: Duration::ZERO,
            server_compute: Duration::ZERO,
        }
    }

    /// The same for a client that has a ticket from an earlier connection.
    pub const fn resumed(self) -> Self {
        let mode = if self.mode.is_tls13() { Mode::Tls13Resumed } else { Mode::Tls12Resumed };
        Self { mode, ..self }
    }

    /// Whether data may go with the ClientHello.
    pub(crate) fn is_early(&self) -> bool {
        self.early_data && self.mode == Mode::Tls13Resumed
    }

    /// Behind which of the server's messages a client that [verifies](Self::verify) asks, without waiting for the rest of the flight: with BoringSSL
    /// the certificate, or the stapled response that follows it, and in TLS 1.3 the proof that the certificate is the server's.
    pub(crate) fn verifies_behind(&self) -> Option<Message> {
        let message = match self.mode {
            Mode::Tls12Full if self.ocsp_len > 0 => Message::CertificateStatus,
            Mode::Tls12Full => Message::Certificate,
            Mode::Tls13Full => Message::CertificateVerify,
            Mode::Tls12Resumed | Mode::Tls13Resumed => return None,
        };
        self.verify.then_some(message)
    }

    /// Whether a client speaks before the server's Finished.
    pub(crate) fn is_false_start(&self) -> bool {
        self.false_start && self.mode == Mode::Tls12Full
    }
}
