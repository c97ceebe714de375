//! One connection: two TCP endpoints, and the bytes between them.
//!
//! Segments carry numbers only. The bytes themselves wait at the end that sent them until the other end's TCP says
//! that they have arrived in order; that is the only moment at which anybody needs them.

use base::{Chunk, ChunkQueue, Instant};

use crate::queue::{Alarm, Side};

/// One end of a connection.
pub(crate) struct End {
    pub(crate) tcp: tcp::Endpoint,
    pub(crate) tls: Option<tls::Session>,
    /// Handed to this end's TCP and not yet read at the other end.
    pub(crate) content: ChunkQueue,
    pub(crate) alarm: Alarm,
    /// The client holds its TLS handshake back, to resume a session that another connection is about to leave.
    pub(crate) held: bool,
    /// The application above has been told that the end may carry its data.
    pub(crate) open: bool,
    /// It has been told that there is a session to resume.
    pub(crate) resumable: bool,
    /// The peer's FIN has arrived, and the application has yet to be told.
    pub(crate) eof: bool,
    /// The application asked for the end to be closed once all is sent.
    pub(crate) closing: bool,
    /// Closed by us, or failed: nothing more to do.
    pub(crate) over: bool,
}

impl End {
    pub(crate) fn new(tcp: tcp::Endpoint, tls: Option<tls::Session>) -> Self {
        Self {
            tcp,
            tls,
            content: ChunkQueue::new(),
            alarm: Alarm::default(),
            held: false,
            open: false,
            resumable: false,
            eof: false,
            closing: false,
            over: false,
        }
    }

    /// Hands `chunk` to TCP.
    pub(crate) fn write(&mut self, chunk: Chunk) {
        self.tcp.write(chunk.len());
        self.content.push(chunk);
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let tls = self.tls.as_ref().and_then(|t| t.poll_timeout());
        [self.tcp.poll_timeout(), tls].into_iter().flatten().min()
    }
}

/// A connection of the client to the server of `host`.
pub(crate) struct Connection {
    pub(crate) host: u32,
    /// It goes to the host's address of IPv6.
    pub(crate) ipv6: bool,
    /// The connection's number at its server.
    pub(crate) at_server: origin::ConnectionId,
    pub(crate) client: End,
    pub(crate) server: End,
    /// The server's thinking.
    pub(crate) origin_alarm: Alarm,
}

impl Connection {
    pub(crate) fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// This end and the other one.
    pub(crate) fn ends(&mut self, side: Side) -> (&mut End, &mut End) {
        match side {
            Side::Client => (&mut self.client, &mut self.server),
            Side::Server => (&mut self.server, &mut self.client),
        }
    }
}
