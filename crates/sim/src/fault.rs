//! What breaks: connections that are cut off, a network that is left, an application that ends and begins again.

use base::{Duration, Instant};
use client::ConnectionId;
use link::{Path, PathStats};

use crate::names::Names;
use crate::queue::{Event, Side};
use crate::world::{Crossing, Host, World, browser};

/// What is over, and must still be counted, or be told from what is there.
#[derive(Default)]
pub(crate) struct Past {
    /// What the application has done that has ended.
    pub(crate) application: load::Past,
    /// Connections below this number are over a network that was left.
    stranded: u32,
    /// What the links of the network that was left have counted.
    pub(crate) down: PathStats,
    pub(crate) up: PathStats,
}

impl Past {
    /// The number in the world of what the running application knows by `id`.
    pub(crate) fn world_id(&self, id: ConnectionId) -> u32 {
        self.application.in_all(id)
    }

    /// Whether this goes to an address that the client has no more, or comes from it.
    pub(crate) fn is_stranded(&self, crossing: &Crossing) -> bool {
        matches!(crossing, Crossing::Tcp(packet) if packet.connection < self.stranded)
    }
}

impl Host {
    /// Whether no packet reaches it any more.
    pub(crate) fn is_gone(&self, now: Instant) -> bool {
        self.vanishes.is_some_and(|at| at <= now)
    }
}

impl World<'_> {
    /// Asks for the moments at which something is to happen.
    pub(crate) fn expect_faults(&mut self) {
        if let Some(change) = &self.setup.faults.network_change {
            self.events.push(Instant::ZERO + change.at, Event::NetworkChange);
        }
        if let Some(at) = self.setup.faults.restart {
            self.events.push(Instant::ZERO + at, Event::Restart);
        }
    }

    /// A connection's number at the browser that runs; `None` at the server's end, and if its browser is gone.
    pub(crate) fn at_browser(&self, id: u32, side: Side) -> Option<ConnectionId> {
        match side {
            Side::Client => self.past.application.at_browser(id),
            Side::Server => None,
        }
    }

    /// Resets a connection whose answer is cut off, once the client has what there is of it.
    pub(crate) fn reset_if_broken(&mut self, id: u32) {
        let entry = &mut self.connections[id as usize];
        let server = &self.servers[self.hosts[entry.host as usize].server];
        let tcp = &mut entry.server.tcp;
        let all_there = tcp.unsent() == 0 && tcp.bytes_in_flight() == 0;
        if !entry.server.over && all_there && server.wants_reset(entry.at_server) {
            entry.server.over = true;
            tcp.abort();
        }
    }

    /// The client has another address: what is on the old link never arrives, and connections of old carry nothing any more.
    pub(crate) fn change_network(&mut self) {
        let Some(change) = &self.setup.faults.network_change else { return };
        let rng = self.rng.substream("network after");
        let fresh = |config, name| Path::new(config, rng.substream(name));
        let before = std::mem::replace(&mut self.down, fresh(&change.down, "link.down"));
        self.past.down = *before.stats();
        let before = std::mem::replace(&mut self.up, fresh(&change.up, "link.up"));
        self.past.up = *before.stats();
        self.past.stranded = self.connections.len() as u32;
        let names = std::mem::replace(&mut self.names, Names::new(change.dns, Duration::ZERO, 0));
        self.names = names.moved(change.dns, change.up.delay + change.down.delay);
        self.browser.handle_network_change(self.now);
        self.pump();
    }

    /// The application is gone, and so are its connections; another one begins with what it has left.
    pub(crate) fn restart(&mut self) {
        let next = browser(self.page, self.setup);
        self.past.application.end(self.now, &mut self.browser, next);
        self.names.forget_all();
        for id in 0..self.connections.len() as u32 {
            let end = &mut self.connections[id as usize].client;
            if !end.over {
                end.over = true;
                end.tcp.abort();
                self.send(id, Side::Client);
            }
        }
        self.browser.start(self.now);
        self.pump();
    }
}
