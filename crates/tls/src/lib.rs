//! TLS as flights and records: exact bytes and round trips, no cryptography.
//!
//! In the virtual world a secure connection costs what TLS costs a page load: round trips, bytes, the computation of
//! a handshake, and the rule that nothing of a record can be used before all of it has arrived. A [`Session`] is one
//! end of such a connection. Its output is a byte stream with true record headers, true handshake message headers
//! and lengths, and filler where ciphertext, keys and certificates would be; its input is the peer's.
//!
//! Read first: RFC 8446 (TLS 1.3) sections 2 and 5, RFC 5246 (TLS 1.2) section 7.3.

mod config;
mod error;
mod message;
mod record;
mod session;

pub use config::{Config, KeyExchange, Mode, Packing, Signature};
pub use error::Error;
pub use message::Message;
pub use session::{Session, Stats};
