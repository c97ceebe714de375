//! What the client asks of the world, and what it tells whoever asked it for something.

use std::fmt;

use base::{Chunk, ResponseHead};

use crate::{ConnectionId, RequestId};

/// What the world must do for the client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Resolve the name of this host, then call [`Client::handle_resolved`](crate::Client::handle_resolved).
    Resolve {
        /// Index of a host with this name.
        host: u32,
    },
    /// Open a connection, to its record's [`address`](crate::ConnectionRecord::address) if there is one, then call
    /// [`Client::handle_connected`](crate::Client::handle_connected) and, for TLS,
    /// [`Client::handle_secured`](crate::Client::handle_secured).
    Connect {
        /// The connection's number.
        connection: ConnectionId,
        /// The host to connect to.
        host: u32,
        /// Whether an earlier handshake with this host is complete, so that this one may resume its session.
        resume: bool,
    },
    /// Close a connection, or stop making it. The peer may have ended it already.
    Close {
        /// The connection's number.
        connection: ConnectionId,
    },
}

/// What happened to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The response's head has arrived.
    Head {
        /// The request.
        id: RequestId,
        /// The response.
        head: ResponseHead,
        /// Bytes that the head took on the wire.
        wire_len: u64,
    },
    /// A piece of the response's body has arrived.
    Data {
        /// The request.
        id: RequestId,
        /// The piece.
        chunk: Chunk,
    },
    /// The response is complete.
    Complete {
        /// The request.
        id: RequestId,
    },
    /// There will be no (complete) response.
    Failed {
        /// The request.
        id: RequestId,
        /// Why.
        error: Error,
    },
}

/// Why a request failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// The host's name did not resolve.
    NameNotResolved,
    /// No connection could be made: what the transport says.
    NotConnected(String),
    /// The connection ended before the response was complete: what the transport says.
    ConnectionLost(String),
    /// The peer broke the protocol: what the engine says.
    Protocol(String),
    /// The peer ended the stream: the SPDY status.
    StreamReset(String),
    /// The machine's network changed while the response was coming.
    NetworkChanged,
    /// The response was cut off, and when it was fetched again it was another: in which respect.
    Changed(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NameNotResolved => f.write_str("name not resolved"),
            Error::NotConnected(why) => write!(f, "not connected: {why}"),
            Error::ConnectionLost(why) => write!(f, "connection lost: {why}"),
            Error::Protocol(why) => write!(f, "protocol violated: {why}"),
            Error::StreamReset(why) => write!(f, "stream reset: {why}"),
            Error::NetworkChanged => f.write_str("the network changed"),
            Error::Changed(how) => write!(f, "changed between its parts: {how}"),
        }
    }
}

impl std::error::Error for Error {}
