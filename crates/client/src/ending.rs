//! How requests and connections come to their ends, and what that lets others do.

use base::Instant;

use crate::connection::{Active, Connection, ConnectionId, Purpose, State};
use crate::retry::{Charged, Cut};
use crate::timer::Timer;
use crate::{Client, Error, Event, Transport};

impl Client {
    /// Passes on what an engine said after input.
    pub(crate) fn after_input(&mut self, now: Instant, id: ConnectionId, outcome: Result<(), String>) {
        let host = self.connections[id as usize].record.host;
        let mut heard = false;
        while let Some(event) = self.connections[id as usize].poll_event() {
            heard |= !matches!(event, Event::Data { .. });
            if self.pipelines(host) {
                self.watch_event(now, id, &event);
            }
            self.pass_on(now, event);
        }
        if let Err(why) = outcome {
            self.break_pipeline(now, id, &why, true);
            for active in std::mem::take(&mut self.connections[id as usize].active) {
                self.interrupt(now, active.request, Error::Protocol(why.clone()), Cut::Refused);
            }
            return self.close_and_go_on(now, id);
        }
        if std::mem::take(&mut self.connections[id as usize].wants_to_send) {
            self.mark_dirty(id);
        }
        let returned = std::mem::take(&mut self.connections[id as usize].returned);
        let mut changed = !returned.is_empty();
        for (request, why) in returned {
            self.interrupt(now, request, why, Cut::Returned);
        }
        changed |= !self.restless.is_empty();
        let connection = &mut self.connections[id as usize];
        let spent = connection.is_spent();
        if connection.is_idle() {
            connection.idle_since = now;
        }
        if spent {
            return self.close_and_go_on(now, id);
        }
        self.limit_idle(now, id);
        if self.pipelines(host) {
            self.watch_end(id);
            self.time_pipeline(id);
            changed |= heard; // a head may have opened a pipeline, and an answer made room in one
        }
        let connection = &self.connections[id as usize];
        // Most input is a piece of a body, and moves no request.
        changed |= connection.can_take_request() || !connection.will_take_requests();
        if changed {
            self.go_on(now, host);
            self.service_stalled_if_idle(now, id);
        }
    }

    /// Closes a connection, and lets those go on who may have waited for its place.
    pub(crate) fn close_and_go_on(&mut self, now: Instant, id: ConnectionId) {
        let host = self.connections[id as usize].record.host;
        self.close(now, id);
        self.go_on(now, host);
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
        self.break_pipeline(now, id, why, false);
        let connection = &mut self.connections[id as usize];
        let unsent = connection.unsent();
        let active = std::mem::take(&mut connection.active);
        self.losing = Some(Charged(false));
        let sent = active.len().saturating_sub(unsent);
        for (at, Active { request, .. }) in active.into_iter().enumerate() {
            let error = Error::ConnectionLost(why.to_owned());
            self.interrupt(now, request, error, Cut::Lost { unsent: at >= sent });
        }
        self.forget(now, id);
        if was_connecting {
            self.miss(now, id, why);
        }
        self.losing = None;
        self.go_on(now, host);
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
        while let Some((.., request)) = self.pools[host as usize].waiting.pop_first() {
            self.interrupt(now, request, Error::NotConnected(why.to_owned()), Cut::Refused);
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
        self.timers.cancel(Timer::Silence(id));
        self.watch_end(id);
        self.end_handshake(now, id);
        self.checks.forget(id);
        self.pools[host as usize].connections.retain(|c| *c != id);
    }
}
