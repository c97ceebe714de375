//! When TLS handshakes begin: at once, or after one that is under way with the same host has left a session to resume.
//!
//! A full handshake costs the server a key exchange and the client a round trip more than one that resumes. Several
//! connections that are opened together have no session yet: let one go first, and the others need not pay.

use base::Instant;

use crate::Client;
use crate::connection::{ConnectionId, State};

/// How handshakes of several connections to one host go.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Handshakes {
    /// Each as soon as its TCP connection is there. Those that begin before one is complete are full.
    #[default]
    Parallel,
    /// If no session with the host is known, the first proceeds, and the others wait for its [session](Client::handle_session) and
    /// resume, as Chrome's SSLConnectJobMessenger had it in 2014 (ssl_client_socket_pool.cc, `enable_ssl_connect_job_waiting`). If it
    /// fails, the next one goes first; set [`Timeouts::tls`](crate::Timeouts::tls), so that one that hangs fails.
    WaitForSession,
}

/// A TLS handshake that is to begin; see [`Client::poll_secure`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Secure {
    /// The connection, whose TCP handshake is complete.
    pub connection: ConnectionId,
    /// Whether an earlier handshake with its host is far enough along or has left a session, so that this one may resume it.
    pub resume: bool,
}

impl Client {
    /// The next TLS handshake to begin. Under [`Handshakes::Parallel`] a world may do without: it begins one as soon as
    /// its connection is there, with the `resume` of [`Action::Connect`](crate::Action::Connect), which is the same.
    /// Under [`Handshakes::WaitForSession`] it must wait for this.
    pub fn poll_secure(&mut self) -> Option<Secure> {
        loop {
            let secure = self.secures.pop_front()?;
            if self.connections[secure.connection as usize].state == State::Connecting {
                return Some(secure);
            }
        }
    }

    /// A connection that is to be secured has its TCP handshake.
    pub(crate) fn secure(&mut self, now: Instant, id: ConnectionId) {
        let connection = &self.connections[id as usize];
        let (host, resume) = (connection.record.host, connection.resume);
        let pool = &mut self.pools[host as usize];
        match self.config.handshakes {
            Handshakes::Parallel => self.begin_handshake(now, id, resume),
            Handshakes::WaitForSession if pool.has_ticket => self.begin_handshake(now, id, true),
            Handshakes::WaitForSession if pool.handshake.is_some() => {
                pool.held.push(id);
                self.limit_connecting(now, id, None); // the one it waits for has its limit
            }
            Handshakes::WaitForSession => {
                pool.handshake = Some(id);
                self.begin_handshake(now, id, false);
            }
        }
    }

    /// A connection's server has given what resumes its session. Under TLS 1.2 that comes with the server's Finished, and so later than
    /// [`Client::handle_secured`] after a False Start; Chrome waited for it (`SetHandshakeCompletionCallback`, ssl_client_socket.h). Under
    /// TLS 1.3 it comes when the server has the client's Finished (RFC 8446 §4.6.1), a round trip later. Of no effect but under
    /// [`Handshakes::WaitForSession`].
    pub fn handle_session(&mut self, now: Instant, id: ConnectionId) {
        let host = self.connections[id as usize].record.host;
        self.pools[host as usize].has_ticket = true;
        self.end_handshake(now, id);
    }

    fn begin_handshake(&mut self, now: Instant, connection: ConnectionId, resume: bool) {
        let record = &mut self.connections[connection as usize].record;
        (record.handshake, record.resumes) = (Some(now), resume);
        self.secures.push_back(Secure { connection, resume });
        let host = self.connections[connection as usize].record.host;
        self.limit_connecting(now, connection, self.limit_for(host, self.config.timeouts.tls));
    }

    /// A handshake that others may wait for has left a session, or has failed; or one of those that wait is gone.
    pub(crate) fn end_handshake(&mut self, now: Instant, id: ConnectionId) {
        let host = self.connections[id as usize].record.host;
        let pool = &mut self.pools[host as usize];
        if pool.handshake != Some(id) {
            return pool.held.retain(|held| *held != id);
        }
        pool.handshake = None;
        for held in std::mem::take(&mut pool.held) {
            self.secure(now, held);
        }
    }
}
