//! Answers that the page does not read for a while: a video that is paused.
//!
//! What has come of one waits here until the page goes on. How much that is, is for the protocol to bound. Over HTTP/1.1 the client
//! stops reading the connection, on which nothing else waits. A SPDY stream has a window (SPDY/3 §2.6.8): its bytes are not consumed,
//! so the server runs out of credit, and all other streams go on. Without flow control there is no good way, and three bad ones:
//! [`Stalled`].

use base::Instant;

use crate::connection::ConnectionId;
use crate::retry::Cut;
use crate::{Client, Error, RequestId};

/// What is done about a stream that nobody reads, on a session without flow control.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Stalled {
    /// What comes is kept, however much it is.
    #[default]
    Buffer,
    /// The stream is ended once more waits than [`Stalled::KILL_AT`], and asked for again when its reader goes on: from where it was
    /// ended if the server takes ranges, else from its beginning, which is skipped.
    Kill,
    /// The connection is not read, and so none of its streams.
    Block,
}

impl Stalled {
    /// Bytes: what a stream's window would have let come (SPDY/3 §2.6.8).
    pub const KILL_AT: u64 = spdy::DEFAULT_WINDOW as u64;
}

impl Client {
    /// The page reads no more of an answer until [`Client::resume`]. Of no effect on one that is complete.
    ///
    /// # Panics
    /// If there is no such request.
    pub fn pause(&mut self, id: RequestId) {
        let Some(connection) = self.request_mut(id).connection else { return };
        self.connections[connection as usize].pause(id);
    }

    /// The page reads an answer on.
    ///
    /// # Panics
    /// If there is no such request.
    pub fn resume(&mut self, now: Instant, id: RequestId) {
        let request = self.request_mut(id);
        let Some(connection) = request.connection.filter(|_| !request.done) else { return };
        let entry = &mut self.connections[connection as usize];
        let could_read = entry.wants_input();
        let killed = entry.resume(id);
        if !could_read && entry.wants_input() {
            self.readable.push_back(connection);
        }
        while let Some(event) = self.connections[connection as usize].poll_event() {
            self.pass_on(now, event);
        }
        self.mark_dirty(connection); // credit
        let host = self.request_mut(id).host;
        if killed {
            // Nothing but the client's own choice stood in the way of the rest.
            let error = Error::StreamReset("nobody read it".to_owned());
            self.interrupt(now, id, error, Cut::Unpipelined);
        }
        self.go_on(now, host);
    }

    /// Whether to read from a connection's transport. When that changes from no to yes, [`Client::poll_readable`] says so.
    pub fn wants_input(&self, id: ConnectionId) -> bool {
        self.connections[id as usize].wants_input()
    }

    /// A connection that is to be read on.
    pub fn poll_readable(&mut self) -> Option<ConnectionId> {
        self.readable.pop_front()
    }

    /// Bytes of answers that had come and nobody had read, at most: those of one connection.
    pub fn unread_max(&self) -> u64 {
        self.connections.iter().map(|c| c.unread_max).max().unwrap_or(0)
    }
}
