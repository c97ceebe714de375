//! Handshake messages: their order and their sizes.
//!
//! Sizes are those that OpenSSL 3.0 sends with its defaults, item by item, for the cipher suites with AES-128-GCM and
//! SHA-256; `openssl s_client -msg -tls1_2` (and `-tls1_3`) against `openssl s_server` prints the same numbers.

use crate::{Config, KeyExchange, Mode, Signature};

/// A message of the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are those of RFC 5246 section 7.4 and RFC 8446 section 4")]
pub enum Message {
    ClientHello,
    ServerHello,
    EncryptedExtensions,
    Certificate,
    CertificateStatus,
    ServerKeyExchange,
    CertificateVerify,
    ServerHelloDone,
    ClientKeyExchange,
    EndOfEarlyData,
    /// Not a handshake message but a record of its own type; in TLS 1.3 it is there for middleboxes only.
    ChangeCipherSpec,
    Finished,
    NewSessionTicket,
}

use Message::*;

/// Which end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Client,
    Server,
}

/// Who says what, in order.
pub(crate) type Script = &'static [(Role, Message)];

const C: Role = Role::Client;
const S: Role = Role::Server;

const TLS12_FULL: Script = &[
    (C, ClientHello),
    (S, ServerHello),
    (S, Certificate),
    (S, CertificateStatus),
    (S, ServerKeyExchange),
    (S, ServerHelloDone),
    (C, ClientKeyExchange),
    (C, ChangeCipherSpec),
    (C, Finished),
    (S, NewSessionTicket),
    (S, ChangeCipherSpec),
    (S, Finished),
];

const TLS12_RESUMED: Script = &[
    (C, ClientHello),
    (S, ServerHello),
    (S, ChangeCipherSpec),
    (S, Finished),
    (C, ChangeCipherSpec),
    (C, Finished),
];

const TLS13_FULL: Script = &[
    (C, ClientHello),
    (S, ServerHello),
    (S, ChangeCipherSpec),
    (S, EncryptedExtensions),
    (S, Certificate),
    (S, CertificateVerify),
    (S, Finished),
    (C, ChangeCipherSpec),
    (C, Finished),
    (S, NewSessionTicket),
    (S, NewSessionTicket),
];

const TLS13_RESUMED: Script = &[
    (C, ClientHello),
    (S, ServerHello),
    (S, ChangeCipherSpec),
    (S, EncryptedExtensions),
    (S, Finished),
    (C, ChangeCipherSpec),
    (C, Finished),
    (S, NewSessionTicket),
];

/// RFC 8446 figure 4; the ChangeCipherSpec goes before the early data (appendix D.4).
const TLS13_EARLY: Script = &[
    (C, ClientHello),
    (C, ChangeCipherSpec),
    (S, ServerHello),
    (S, ChangeCipherSpec),
    (S, EncryptedExtensions),
    (S, Finished),
    (C, EndOfEarlyData),
    (C, Finished),
    (S, NewSessionTicket),
];

/// The script of a handshake, and how many of its steps the handshake takes: tickets of TLS 1.3 come after it.
pub(crate) fn script(config: &Config) -> (Script, usize) {
    let script = match config.mode {
        Mode::Tls12Full => TLS12_FULL,
        Mode::Tls12Resumed => TLS12_RESUMED,
        Mode::Tls13Full => TLS13_FULL,
        Mode::Tls13Resumed if config.is_early() => TLS13_EARLY,
        Mode::Tls13Resumed => TLS13_RESUMED,
    };
    let after = |(_, message): &(Role, Message)| config.mode.is_tls13() && *message == NewSessionTicket;
    (script, script.iter().position(after).unwrap_or(script.len()))
}

impl Message {
    /// The type in the message's header (RFC 8446 section 4, RFC 5246 section 7.4, RFC 6066 section 8, RFC 5077
    /// section 3.3); `None` for ChangeCipherSpec, which has none.
    pub(crate) const fn wire_type(self) -> Option<u8> {
        Some(match self {
            ClientHello => 1,
            ServerHello => 2,
            NewSessionTicket => 4,
            EndOfEarlyData => 5,
            EncryptedExtensions => 8,
            Certificate => 11,
            ServerKeyExchange => 12,
            ServerHelloDone => 14,
            CertificateVerify => 15,
            ClientKeyExchange => 16,
            Finished => 20,
            CertificateStatus => 22,
            ChangeCipherSpec => return None,
        })
    }

    /// The message with that type in its header; `None` if no script here has one.
    pub fn of_wire_type(wire_type: u8) -> Option<Self> {
        let scripts = [TLS12_FULL, TLS13_FULL, TLS13_EARLY];
        let mut messages = scripts.into_iter().flatten().map(|(_, message)| *message);
        messages.find(|message| message.wire_type() == Some(wire_type))
    }

    /// Whether the message's record ends with it, because the sender's keys change, or the version in the record's
    /// header. Changes that come with a ChangeCipherSpec or at the end of a flight need no mention.
    pub(crate) const fn ends_record(self) -> bool {
        matches!(self, ClientHello | EndOfEarlyData)
    }

    /// Whether the message may be missing.
    pub(crate) const fn is_optional(self) -> bool {
        matches!(self, CertificateStatus | NewSessionTicket)
    }

    /// Whether the message is sent under protection.
    pub(crate) const fn is_sealed(self, mode: Mode) -> bool {
        match mode.is_tls13() {
            true => !matches!(self, ClientHello | ServerHello | ChangeCipherSpec),
            false => matches!(self, Finished),
        }
    }
}

/// Cipher suites that a client offers, two bytes each: OpenSSL's defaults.
const SUITES_TLS12: u32 = 28;
const SUITES_TLS13: u32 = 4;
/// Signature algorithms and groups that it knows, two bytes each.
const SIGNATURES_TLS12: u32 = 20;
const SIGNATURES_TLS13: u32 = 14;
const GROUPS_TLS12: u32 = 5;
const GROUPS_TLS13: u32 = 10;
/// A ticket holds the encrypted session state, so its size is the server's choice.
const TICKET_TLS12: u32 = 176;
const TICKET_TLS13: u32 = 208;
/// Bytes of an extension's type and length.
const EXT: u32 = 4;
/// SHA-256.
const HASH: u32 = 32;
const RANDOM: u32 = 32;
const SESSION_ID: u32 = 32;

impl Config {
    /// Bytes of a handshake message with its four-byte header, or of a ChangeCipherSpec. Zero for a message that is
    /// not sent under this configuration.
    pub fn message_len(&self, message: Message) -> u32 {
        let tls13 = self.mode.is_tls13();
        let resumed = matches!(self.mode, Mode::Tls12Resumed | Mode::Tls13Resumed);
        let body = match message {
            ChangeCipherSpec => return 1,
            CertificateStatus if tls13 || self.ocsp_len == 0 => return 0,
            ClientHello => return self.client_hello_len(),
            ServerHello => {
                let id = if tls13 || resumed { SESSION_ID } else { 0 };
                // Version, random, session id, cipher suite, compression, extensions.
                2 + RANDOM + 1 + id + 2 + 1 + 2 + self.server_hello_extensions()
            }
            EncryptedExtensions => 2 + self.alpn_answer() + if self.is_early() { EXT } else { 0 },
            // Context; the list's length; each certificate's length and extensions, the first with the OCSP response.
            Certificate if tls13 => {
                let status = if self.ocsp_len == 0 { 0 } else { EXT + 1 + 3 + self.ocsp_len };
                1 + 3 + self.chain_certs * (3 + 2) + self.chain_len + status
            }
            Certificate => 3 + self.chain_certs * 3 + self.chain_len,
            CertificateStatus => 1 + 3 + self.ocsp_len,
            // Curve type and name, the key; algorithm, the signature.
            ServerKeyExchange => 1 + 2 + 1 + self.key_len() + 2 + 2 + self.signature_len(),
            CertificateVerify => 2 + 2 + self.signature_len(),
            ServerHelloDone | EndOfEarlyData => 0,
            ClientKeyExchange => 1 + self.key_len(),
            Finished => {
                if tls13 {
                    HASH
                } else {
                    12
                }
            }
            // Life time, age mask, nonce, ticket, extensions.
            NewSessionTicket if tls13 => {
                let early = if self.early_data { EXT + 4 } else { 0 };
                4 + 4 + (1 + 8) + 2 + TICKET_TLS13 + 2 + early
            }
            NewSessionTicket => 4 + 2 + TICKET_TLS12,
        };
        4 + body
    }

    fn client_hello_len(&self) -> u32 {
        let tls13 = self.mode.is_tls13();
        let by_version = |tls12, tls13_| if tls13 { tls13_ } else { tls12 };
        let list = |len: u32| if len == 0 { 0 } else { EXT + len };
        let name = u32::from(self.server_name_len);
        let mut extensions = list(if name == 0 { 0 } else { 2 + 1 + 2 + name })
            + list(1 + 3) // point formats
            + list(2 + 2 * by_version(GROUPS_TLS12, GROUPS_TLS13))
            + EXT // session ticket, empty here
            + list(if self.alpn.is_empty() { 0 } else { 2 + self.alpn.iter().map(|p| 1 + p.len() as u32).sum::<u32>() })
            + EXT // encrypt then MAC
            + EXT // extended master secret
            + list(2 + 2 * by_version(SIGNATURES_TLS12, SIGNATURES_TLS13));
        if self.ocsp_len > 0 {
            extensions += EXT + 5; // status request
        }
        if tls13 {
            extensions += (EXT + 3) + (EXT + 2) + (EXT + 2 + 2 + 2 + self.key_len()); // versions, PSK modes, key share
        }
        // Session id, to look like a resumption to middleboxes (TLS 1.3) or to recognise one (RFC 5077 section 3.4).
        let id = if self.mode == Mode::Tls12Full { 0 } else { SESSION_ID };
        match self.mode {
            Mode::Tls12Resumed => extensions += TICKET_TLS12,
            // The ticket with its age, and the binder.
            Mode::Tls13Resumed => extensions += EXT + 2 + (2 + TICKET_TLS13 + 4) + 2 + (1 + HASH),
            _ => {}
        }
        if self.is_early() {
            extensions += EXT;
        }
        let suites = 2 * by_version(SUITES_TLS12, SUITES_TLS13);
        let len = 4 + 2 + RANDOM + 1 + id + 2 + suites + 1 + 1 + 2 + extensions;
        if len < self.client_hello_min { self.client_hello_min.max(len + EXT) } else { len }
    }

    fn server_hello_extensions(&self) -> u32 {
        match self.mode {
            // Renegotiation info, point formats, session ticket, extended master secret; status request.
            Mode::Tls12Full => {
                (EXT + 1)
                    + (EXT + 4)
                    + EXT
                    + EXT
                    + self.alpn_answer()
                    + if self.ocsp_len > 0 { EXT } else { 0 }
            }
            Mode::Tls12Resumed => (EXT + 1) + EXT + self.alpn_answer(),
            // Version, key share; pre-shared key.
            Mode::Tls13Full => (EXT + 2) + (EXT + 2 + 2 + self.key_len()),
            Mode::Tls13Resumed => (EXT + 2) + (EXT + 2 + 2 + self.key_len()) + (EXT + 2),
        }
    }

    fn alpn_answer(&self) -> u32 {
        self.alpn.first().map_or(0, |protocol| EXT + 2 + 1 + protocol.len() as u32)
    }

    fn key_len(&self) -> u32 {
        match self.key_exchange {
            KeyExchange::X25519 => 32,
            KeyExchange::P256 => 65,
        }
    }

    fn signature_len(&self) -> u32 {
        match self.signature {
            Signature::Rsa2048 => 256,
            Signature::EcdsaP256 => 71,
        }
    }
}
