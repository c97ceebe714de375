//! TLS as flights and records: exact bytes and round trips, no cryptography.
//!
//! In the virtual world a secure connection costs what TLS costs a page load: round trips, bytes, the computation of
//! a handshake, and the rule that nothing of a record can be used before all of it has arrived. A [`Session`] is one
//! end of such a connection. Its output is a byte stream with true record headers, true handshake message headers
//! and true lengths, and filler where keys, certificates and signatures would be; plaintext goes through as it is, so
//! that a body stays a range. Its input is the peer's output, cut as TCP cuts it.
//!
//! Read first: RFC 8446 (TLS 1.3) sections 2 and 5, RFC 5246 (TLS 1.2) section 7.3.
//!
//! # Flights
//!
//! A handshake under [`Config::new`], whose chain takes 4,032 bytes. Commas join messages that share a record, dots
//! part records. A request leaves the client after two round trips in the first case, or after one with
//! [False Start](Config::false_start); after one in the next three; after none in the last.
//!
//! | handshake | from | messages | bytes |
//! |---|---|---|---|
//! | TLS 1.2, full | client | ClientHello | 227 |
//! |  | server | ServerHello · Certificate · ServerKeyExchange · ServerHelloDone | 4449 |
//! |  | client | ClientKeyExchange · ChangeCipherSpec · Finished | 93 |
//! |  | server | NewSessionTicket · ChangeCipherSpec · Finished | 242 |
//! | TLS 1.2, resumed | client | ClientHello | 435 |
//! |  | server | ServerHello · ChangeCipherSpec · Finished | 156 |
//! |  | client | ChangeCipherSpec · Finished | 51 |
//! | TLS 1.3, full | client | ClientHello | 264 |
//! |  | server | ServerHello · ChangeCipherSpec · EncryptedExtensions, Certificate, CertificateVerify, Finished | 4526 |
//! |  | client | ChangeCipherSpec · Finished | 64 |
//! |  | server | NewSessionTicket, NewSessionTicket | 488 |
//! | TLS 1.3, resumed | client | ClientHello | 519 |
//! |  | server | ServerHello · ChangeCipherSpec · EncryptedExtensions, Finished | 218 |
//! |  | client | ChangeCipherSpec · Finished | 64 |
//! |  | server | NewSessionTicket | 255 |
//! | TLS 1.3, early data | client | ClientHello · ChangeCipherSpec | 529 |
//! |  | server | ServerHello · ChangeCipherSpec · EncryptedExtensions, Finished | 222 |
//! |  | client | EndOfEarlyData · Finished | 84 |
//! |  | server | NewSessionTicket | 263 |
//!
//! Message sizes are OpenSSL's, item by item (see [`Config::message_len`]); a record of data costs 29 bytes beyond
//! its plaintext in TLS 1.2 (AES-GCM: header 5, nonce 8, tag 16) and 22 in TLS 1.3 (header 5, type 1, tag 16).
//!
//! # What is not modelled
//!
//! Cipher suites other than AES-128-GCM with SHA-256, so no CBC; client certificates; HelloRetryRequest and
//! renegotiation; record padding; NPN, whose round trips are ALPN's; key updates; Chrome's GREASE. No `close_notify` is
//! sent, but one that comes is understood. A peer that errs is met with an [`Error`] and not with an alert.

mod config;
mod error;
mod message;
mod record;
mod session;
mod sizing;

pub use config::{Config, KeyExchange, Mode, Packing, Signature};
pub use error::Error;
pub use message::Message;
pub use session::{Session, Stats};
pub use sizing::{Sizer, Sizing};
