//! How requests and connections come to their ends, and what that lets others do.

use base::Instant;

use crate::connection::{Active, Connection, ConnectionId, Purpose, State};
use crate::timer::Timer;
use crate::{Client, Error, Event, RequestId, Transport};

impl Client {
    pub(crate) fn fail(&mut self, id: RequestId, error: Error) {
        self.request_mut(id).done = true;
        self.events.push_back(Event::Failed { id, error });
    }

    /// Passes on what an engine said after input.
    pub(crate) fn after_input(&mut self, now: Instant, id: ConnectionId, outcome: Result<(), String>) {
        while let Some(event) = self.connections[id as usize].poll_event() {
            self.note(now, &event);
            self.events.push_back(event);
        }
        if let Err(why) = outcome {
            for active in std::mem::take(&mut self.connections[id as usize].active) {
                self.fail(active.request, Error::Protocol(why.clone()));
            }
            return self.close_and_go_on(now, id);
        }
        if std::mem::take(&mut self.connections[id as usize].wants_to_send) {
            self.mark_dirty(id);
        }
        let returned = std::mem::take(&mut self.connections[id as usize].returned);
        let mut changed = !returned.is_empty();
        for (request, why) in returned {
            if self.may_send_again(request) {
                self.enqueue(request);
            } else {
                self.fail(request, why);
            }
        }
        let connection = &mut self.connections[id as usize];
        let (host, spent) = (connection.record.host, connection.is_spent());
        if connection.is_idle() {
            connection.idle_since = now;
        }
        if spent {
            return self.close_and_go_on(now, id);
        }
        self.limit_idle(now, id);
        let connection = &self.connections[id as usize];
        // Most input is a piece of a body, and moves no request.
        changed |= connection.can_take_request() || !connection.will_take_requests();
        if changed {
            self.service(now, host);
            self.service_stalled_if_idle(now, id);
        }
    }

    /// Whether sending a request again can neither repeat what the page has seen nor go on for ever.
    pub(crate) fn may_send_again(&mut self, id: RequestId) -> bool {
        let attempts_max = self.config.attempts_max;
        let request = self.request_mut(id);
        !request.answered && request.attempts < attempts_max
    }

    fn note(&mut self, now: Instant, event: &Event) {
        match event {
            Event::Head { id, wire_len, .. } => {
                let request = self.request_mut(*id);
                request.timing.head = Some(now);
                request.head_bytes_down = *wire_len;
                request.answered = true;
            }
            Event::Data { id, .. } => self.request_mut(*id).answered = true,
            Event::Complete { id } => {
                let request = self.request_mut(*id);
                request.timing.complete = Some(now);
                request.done = true;
            }
            Event::Failed { id, .. } => self.request_mut(*id).done = true,
        }
    }

    /// Closes a connection, and lets those go on who may have waited for its place.
    pub(crate) fn close_and_go_on(&mut self, now: Instant, id: ConnectionId) {
        let host = self.connections[id as usize].record.host;
        self.close(now, id);
        self.service(now, host);
        self.service_stalled(now);
    }

    /// A connection is gone, by the peer's doing or the network's: requests on it are sent again or fail.
    pub(crate) fn lose(&mut self, now: Instant, id: ConnectionId, why: &str) {
        let connection = &mut self.connections[id as usize];
        if connection.state == State::Closed {
            return;
        }
        let was_connecting = connection.state == State::Connecting;
        let host = connection.record.host;
        for Active { request, .. } in std::mem::take(&mut connection.active) {
            if self.request_mut(request).reused && self.may_send_again(request) {
                self.enqueue(request);
            } else {
                self.fail(request, Error::ConnectionLost(why.to_owned()));
            }
        }
        self.forget(now, id);
        if was_connecting {
            self.miss(now, id, why);
        }
        self.service(now, host);
        self.service_stalled(now);
    }

    /// A connection could not be made. If another goes on in its place, nobody has lost anything yet.
    fn miss(&mut self, now: Instant, id: ConnectionId, why: &str) {
        let Connection { role, record, .. } = &self.connections[id as usize];
        let (role, host) = (*role, record.host);
        if self.redial(now, id) || role != Purpose::Request || self.promote(host) {
            return;
        }
        // It was opened for one HTTP/1.1 request, as in Chrome, or for all that wait for a session.
        while let Some((_, _, request)) = self.pools[host as usize].waiting.pop_first() {
            self.fail(request, Error::NotConnected(why.to_owned()));
            if self.transport(host) == Transport::Http1 {
                break;
            }
        }
    }

    /// Gives the place of a connection that could not be made to one that was opened beside it or ahead of need; false
    /// if there is none.
    fn promote(&mut self, host: u32) -> bool {
        let substitute = self.pools[host as usize].connections.iter().find(|id| {
            let connection = &self.connections[**id as usize];
            connection.state == State::Connecting
                && matches!(connection.role, Purpose::Spare | Purpose::Speculative)
        });
        let Some(&id) = substitute else { return false };
        self.connections[id as usize].role = Purpose::Request;
        true
    }

    pub(crate) fn forget(&mut self, now: Instant, id: ConnectionId) {
        let connection = &mut self.connections[id as usize];
        connection.state = State::Closed;
        connection.record.closed = Some(now);
        let host = connection.record.host;
        self.open -= 1;
        self.limit_connecting(now, id, None);
        self.timers.cancel(Timer::Idle(id));
        self.timers.cancel(Timer::Race(id));
        self.end_handshake(now, id);
        self.pools[host as usize].connections.retain(|c| *c != id);
    }
}
