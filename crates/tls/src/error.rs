//! What a peer can do wrong.

use std::fmt;

use crate::Message;

/// Why a session ended. All of these are the peer's fault; the session says the same of all later input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// Bytes that nobody can look at stand where a header should be.
    Unreadable,
    /// A record of an unknown type.
    RecordType(u8),
    /// A record whose version does not begin with 3.
    RecordVersion(u16),
    /// A record longer than RFC 5246 section 6.2.3 or RFC 8446 section 5.2 allow.
    RecordTooLong(u16),
    /// A record too short for what it must hold.
    RecordTooShort(u16),
    /// A record of a type (20 to 23) that has no place at this point of the connection.
    UnexpectedRecord(u8),
    /// A handshake message of a type that has no place at this point of the handshake.
    UnexpectedMessage {
        /// The type that came.
        got: u8,
        /// The message that should have come, if any.
        expected: Option<Message>,
    },
    /// A handshake message of more than 2 MiB.
    MessageTooLong(u32),
    /// The peer gave up, with this alert description (RFC 8446 section 6).
    Alert(u8),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unreadable => write!(f, "no header where the peer's record or message should begin"),
            Error::RecordType(t) => write!(f, "the peer sent a record of the unknown type {t}"),
            Error::RecordVersion(v) => write!(f, "the peer sent a record of version {v:#06x}"),
            Error::RecordTooLong(n) => write!(f, "the peer sent a record of {n} bytes, which is too long"),
            Error::RecordTooShort(n) => write!(f, "the peer sent a record of {n} bytes, which is too short"),
            Error::UnexpectedRecord(t) => write!(f, "the peer sent a record of type {t} out of place"),
            Error::UnexpectedMessage { got, expected: Some(message) } => {
                write!(f, "the peer sent a handshake message of type {got} instead of {message:?}")
            }
            Error::UnexpectedMessage { got, expected: None } => {
                write!(f, "the peer sent a handshake message of type {got} out of place")
            }
            Error::MessageTooLong(n) => write!(f, "the peer sent a handshake message of {n} bytes"),
            Error::Alert(a) => write!(f, "the peer gave up with alert {a}"),
        }
    }
}

impl std::error::Error for Error {}
