//! What goes on at an end of a connection: what has arrived goes from TCP through TLS to the application, and what that says goes down, as
//! far as there is room.

use base::Chunk;

use super::{Crossing, Packet, World};
use crate::queue::{Event, Side};
use crate::tap::Speaks;

impl World<'_> {
    /// Lets one end of a connection do all that it can do now: tell, read, write, transmit.
    pub(super) fn service(&mut self, connection: u32, side: Side) {
        while let Some(event) = self.connections[connection as usize].end(side).tcp.poll_event() {
            self.handle_tcp(connection, side, event);
        }
        self.receive(connection, side);
        if side == Side::Client {
            self.pump();
        }
        self.send(connection, side);
    }

    fn handle_tcp(&mut self, id: u32, side: Side, event: tcp::Event) {
        let end = self.connections[id as usize].end(side);
        match event {
            tcp::Event::Connected => {
                if end.tls.is_none() {
                    end.open = true;
                }
                if let Some(id) = self.at_browser(id, side) {
                    self.browser.handle_connected(self.now, id);
                }
            }
            tcp::Event::PeerClosed => end.eof = true,
            tcp::Event::Failed(error) => {
                end.over = true;
                if let Some(id) = self.at_browser(id, side) {
                    self.browser.handle_failed(self.now, id, &error.to_string());
                }
            }
            tcp::Event::Closed => end.over = true,
            tcp::Event::Readable | tcp::Event::Writable => {}
        }
    }

    /// Takes what has arrived in order and hands it up.
    fn receive(&mut self, id: u32, side: Side) {
        if self.at_browser(id, side).is_some_and(|id| !self.browser.wants_input(id)) {
            return; // it waits in TCP, whose window closes
        }
        let end = self.connections[id as usize].end(side);
        let mut left = end.tcp.readable();
        if left > 0 {
            end.tcp.read(self.now, left);
        }
        while left > 0 {
            let (end, peer) = self.connections[id as usize].ends(side);
            let secured = end.tls.is_some();
            let chunk = peer.content.pop(left).expect("TCP delivers what was written and no more");
            left -= chunk.len();
            if secured {
                self.decrypt(id, side, chunk);
            } else {
                self.hand_up(id, side, chunk);
            }
        }
        let end = self.connections[id as usize].end(side);
        if std::mem::take(&mut end.eof) {
            // Nobody here goes on sending to a peer that has finished.
            end.closing = true;
            if let Some(id) = self.at_browser(id, side) {
                self.browser.handle_eof(self.now, id);
            }
        }
    }

    fn decrypt(&mut self, id: u32, side: Side, chunk: Chunk) {
        let end = self.connections[id as usize].end(side);
        let Some(tls) = &mut end.tls else { unreachable!("the connection is secured") };
        if let Err(error) = tls.handle_input(self.now, chunk) {
            unreachable!("our own TLS model misread its peer: {error}");
        }
        if tls.poll_certificate()
            && let Some(id) = self.at_browser(id, side)
        {
            self.browser.handle_certificate(self.now, id);
        }
        self.note_secured(id, side);
        loop {
            let tls = self.connections[id as usize].end(side).tls.as_mut();
            let Some(chunk) = tls.and_then(tls::Session::read) else { return };
            self.hand_up(id, side, chunk);
        }
    }

    /// Opens an end to its application once its handshake has come far enough.
    fn note_secured(&mut self, id: u32, side: Side) {
        let end = self.connections[id as usize].end(side);
        if !end.open && !end.held && end.tls.as_ref().is_some_and(|t| t.can_send()) {
            end.open = true;
            if let Some(id) = self.at_browser(id, side) {
                self.browser.handle_secured(self.now, id);
            }
        }
        let end = self.connections[id as usize].end(side);
        if end.open && !end.resumable && end.tls.as_ref().is_some_and(|t| t.has_ticket()) {
            end.resumable = true;
            if let Some(id) = self.at_browser(id, side) {
                self.browser.handle_session(self.now, id);
            }
        }
    }

    fn hand_up(&mut self, id: u32, side: Side, chunk: Chunk) {
        match side {
            Side::Client => {
                if let Some(id) = self.at_browser(id, side) {
                    self.browser.handle_input(self.now, id, chunk);
                }
            }
            Side::Server => {
                let entry = &mut self.connections[id as usize];
                let server = &mut self.servers[self.hosts[entry.host as usize].server];
                if let Err(error) = server.handle_input(self.now, entry.at_server, chunk) {
                    // A recorded request that no engine should have let out. The load must say so, and go on.
                    let host = &self.page.hosts[entry.host as usize].name;
                    self.fault.get_or_insert_with(|| format!("{host} refused what the client sent: {error}"));
                    entry.server.over = true;
                    entry.server.tcp.abort();
                } else if let Some(segments) = server.take_cwnd(entry.at_server) {
                    entry.server.tcp.start_with(segments);
                }
            }
        }
    }

    /// Lets an end write what it has to say, as far as TCP has room, and transmits what TCP lets go.
    pub(crate) fn send(&mut self, id: u32, side: Side) {
        self.note_secured(id, side);
        loop {
            // Again before each segment: sending makes room, and a window wider than that room must not cut it short.
            self.write(id, side);
            let Some(segment) = self.connections[id as usize].end(side).tcp.poll_transmit(self.now) else {
                break;
            };
            let number = self.tap.as_mut().map_or(0, |tap| tap.left(self.now, id, side, segment));
            let ipv6 = self.connections[id as usize].ipv6;
            let packet = Packet { connection: id, number, segment, ipv6 };
            match side {
                Side::Client => self.enter_up(Crossing::Tcp(packet)),
                Side::Server => self.cross_to_link(packet),
            }
        }
        let entry = &mut self.connections[id as usize];
        if side == Side::Server {
            let deadline = self.servers[self.hosts[entry.host as usize].server].poll_timeout(entry.at_server);
            self.events.arm(&mut entry.origin_alarm, deadline, Event::Origin { connection: id });
        }
        let end = self.connections[id as usize].end(side);
        let deadline = end.poll_timeout();
        self.events.arm(&mut end.alarm, deadline, Event::End { connection: id, side });
    }

    fn write(&mut self, id: u32, side: Side) {
        let at_browser = self.at_browser(id, Side::Client);
        loop {
            let entry = &mut self.connections[id as usize];
            let server = self.hosts[entry.host as usize].server;
            let at_server = entry.at_server;
            let end = entry.end(side);
            let room = end.tcp.writable();
            if end.over || end.held || room == 0 {
                return;
            }
            let mut application = |max: u64| match side {
                Side::Client => self.browser.poll_transmit(self.now, at_browser?, max),
                Side::Server => self.servers[server].poll_transmit(self.now, at_server, max),
            };
            let chunk = match &mut end.tls {
                None if end.open => application(room),
                None => None,
                Some(tls) => {
                    while end.open && tls.wants(self.now, room) > 0 {
                        let Some(chunk) = application(tls.wants(self.now, room)) else { break };
                        tls.write(chunk);
                    }
                    tls.poll_transmit(self.now, room)
                }
            };
            let Some(chunk) = chunk else {
                if side == Side::Server && self.setup.techniques.kept_cwnd.is_some() {
                    let (cwnd, in_flight) = (end.tcp.stats().cwnd, end.tcp.segments_in_flight());
                    if self.servers[server].note_cwnd(at_server, cwnd, in_flight) {
                        continue; // it says so
                    }
                }
                break;
            };
            if let Some(tap) = &mut self.tap {
                let host = &self.page.hosts[entry.host as usize];
                let spdy = self.setup.host_transport(self.page, host) != client::Transport::Http1;
                let end = entry.end(side);
                let tls13 =
                    end.tls.is_some().then(|| self.setup.tls.as_ref().is_some_and(|c| c.mode.is_tls13()));
                tap.wrote(id, side, Speaks { tls13, spdy }, &chunk);
            }
            entry.end(side).write(chunk);
        }
        if side == Side::Server && !self.faults.is_empty() {
            self.reset_if_broken(id);
        }
        let entry = &mut self.connections[id as usize];
        let server = &self.servers[self.hosts[entry.host as usize].server];
        let wants_close = side == Side::Server && server.wants_close(entry.at_server);
        let end = entry.end(side);
        if (end.closing || wants_close) && !end.over {
            end.closing = false;
            end.over = true;
            end.tcp.close();
        }
    }
}
