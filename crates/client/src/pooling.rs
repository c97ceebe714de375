//! Sessions that serve several hosts: those that share an address and whose certificate is good for all of them.
//!
//! SPDY/3 §2.6.9 asks for the same address and port, and a certificate that is valid for both. Chrome and Firefox look for
//! such a session once the name is resolved, and again when a session of the host's own is ready, which is then closed. A
//! server that is asked for a host it does not serve says 421 (RFC 9110 §15.5.20): the request is sent once more on a
//! session of the host's own, and that host shares none any more.

use base::Instant;

use crate::connection::{Connection, ConnectionId, State};
use crate::{Client, Transport};

impl Client {
    /// Whether a connection may carry the requests of `host`.
    fn serves(&self, connection: &Connection, host: u32) -> bool {
        let own = connection.record.host;
        if own == host {
            return true;
        }
        let (a, b) = (&self.pools[own as usize], &self.pools[host as usize]);
        let same_certificate = a.certificate.is_some() && a.certificate == b.certificate;
        let secured = self.hosts[own as usize].tls && self.hosts[host as usize].tls;
        let alike = self.transport(own) == self.transport(host) && a.port == b.port;
        same_certificate && secured && alike && !b.unshared && self.share_address(connection, host)
    }

    fn share_address(&self, connection: &Connection, host: u32) -> bool {
        let of_host = self.resolver.addresses(host);
        match connection.record.address {
            Some(address) => of_host.contains(&address),
            None => false,
        }
    }

    /// Sessions of other hosts that are ready and serve this one.
    fn shared_sessions(&self, host: u32) -> impl Iterator<Item = &Connection> {
        let shares = self.transport(host) != Transport::Http1;
        let ready = move |c: &&Connection| {
            shares && c.state == State::Ready && c.record.host != host && c.will_take_requests()
        };
        self.connections.iter().filter(ready).filter(move |c| self.serves(c, host))
    }

    /// A session of another host that can take a request of this one.
    pub(crate) fn free_shared_session(&self, host: u32) -> Option<ConnectionId> {
        if !self.config.pooling {
            return None;
        }
        self.shared_sessions(host).find(|c| c.can_take_request()).map(|c| c.record.id)
    }

    /// Whether a session of another host serves this one, now or when it has room.
    pub(crate) fn has_shared_session(&self, host: u32) -> bool {
        self.config.pooling && self.shared_sessions(host).next().is_some()
    }

    /// Serves a host, and whoever else has something to gain: hosts whose requests came back, and those that may share
    /// its sessions.
    pub(crate) fn go_on(&mut self, now: Instant, host: u32) {
        self.service(now, host);
        while let Some(host) = self.restless.pop() {
            self.service(now, host);
        }
        if self.config.pooling {
            for other in 0..self.hosts.len() as u32 {
                self.service(now, other);
            }
        }
        self.settle_checks(now);
    }
}
