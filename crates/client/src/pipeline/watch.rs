//! What is seen of pipelines: answers as they should be, silence, size, ends; and what is done then (nsHttpConnection.cpp,
//! OnHeadersAvailable, OnSocketReadable, ReadTimeoutTick; nsHttpPipeline.cpp, CancelPipeline).
//!
//! Firefox looked for silence once a second; here a deadline stands exactly where the rule has it.

use base::{Duration, Instant, ResponseHead};

use super::{Class, Feedback, HostState};
use crate::connection::{ConnectionId, Framed, State};
use crate::retry::Cut;
use crate::timer::Timer;
use crate::{Client, Error, Event, RequestId};

/// Silence that is longer than this, beyond a round trip, is the server's doing.
const SLOW: Duration = Duration::from_millis(400);

/// Servers known to fail, by how their `Server` field begins (nsHttpConnection.cpp, SupportsPipelining).
const BANNED: [&str; 12] = [
    "EFAServer/",
    "Microsoft-IIS/4.",
    "Microsoft-IIS/5.",
    "Netscape-Enterprise/3.",
    "Netscape-Enterprise/4.",
    "Netscape-Enterprise/5.",
    "Netscape-Enterprise/6.",
    "WebLogic 3.",
    "WebLogic 4.",
    "WebLogic 5.",
    "WebLogic 6.",
    "Winstone Servlet Engine v0.",
];

impl Client {
    /// What pipelining has learned of a host.
    pub fn pipelining(&self, host: u32) -> &HostState {
        &self.pools[host as usize].pipelining
    }

    /// Begins with what was learned of a host before; see [`HostState::for_later`].
    pub fn set_pipelining(&mut self, host: u32, state: HostState) {
        self.pools[host as usize].pipelining = state;
    }

    /// Tells a host's state what was seen on a connection.
    fn report(&mut self, now: Instant, id: ConnectionId, feedback: Feedback) {
        let connection = &self.connections[id as usize];
        let (host, class) = (connection.record.host, connection.pipe.class);
        self.pools[host as usize].pipelining.hear(now, feedback, class);
    }

    /// Bytes are about to be read from a connection: how long that took is looked at.
    pub(crate) fn watch_read(&mut self, now: Instant, id: ConnectionId) {
        let Some(policy) = self.config.pipelining else { return };
        let connection = &mut self.connections[id as usize];
        let host = connection.record.host;
        if connection.active.is_empty() || !self.pipelines(host) {
            return;
        }
        let connection = &mut self.connections[id as usize];
        let rtt = connection.record.connected.map_or(Duration::ZERO, |c| c.since(connection.record.opened));
        let silence = now.since(connection.pipe.last_read) - rtt;
        connection.pipe.last_read = now;
        if silence >= rtt + policy.reschedule_after {
            self.report(now, id, Feedback::SlowReadMajor);
            self.cancel_pipeline(now, id);
        } else if silence > SLOW {
            self.report(now, id, Feedback::SlowReadMinor);
        }
        self.time_pipeline(id);
    }

    /// Sets the deadline by which something is to be heard on a connection, if requests wait for each other there.
    pub(crate) fn time_pipeline(&mut self, id: ConnectionId) {
        let Some(policy) = self.config.pipelining else { return };
        let connection = &self.connections[id as usize];
        if !self.pipelines(connection.record.host) {
            return;
        }
        let limit = match &connection.active[..] {
            [_, _, ..] => policy.reschedule_after.min(policy.read_timeout),
            [one] if one.position > 0 => policy.read_timeout,
            _ => return self.timers.cancel(Timer::Pipeline(id)),
        };
        self.timers.set(Timer::Pipeline(id), connection.pipe.last_read + limit);
    }

    /// Nothing was heard on a connection for too long.
    pub(crate) fn watch_silence(&mut self, now: Instant, id: ConnectionId) {
        let policy = self.config.pipelining.expect("deadlines are set only if it is on");
        let connection = &self.connections[id as usize];
        let host = connection.record.host;
        if now.since(connection.pipe.last_read) < policy.read_timeout {
            self.cancel_pipeline(now, id);
            self.time_pipeline(id);
            return self.go_on(now, host);
        }
        let seconds = policy.read_timeout.as_secs_f64();
        self.actions.push_back(crate::Action::Close { connection: id });
        self.lose(now, id, &format!("silent for {seconds} s"));
    }

    /// Keeps the answer that is first in a connection's pipeline, and sends the others' requests elsewhere, unpipelined.
    /// The connection is not used again.
    fn cancel_pipeline(&mut self, now: Instant, id: ConnectionId) {
        let connection = &mut self.connections[id as usize];
        if connection.active.len() < 2 {
            return;
        }
        connection.retire();
        connection.pipe.class = Class::Solo;
        let others = connection.active.split_off(1);
        self.report(now, id, Feedback::CanceledPipeline);
        for other in others {
            self.leave_pipeline(now, other.request, "its pipeline was cancelled");
        }
    }

    fn leave_pipeline(&mut self, now: Instant, id: RequestId, why: &str) {
        self.request_mut(id).solo = true;
        self.interrupt(now, id, Error::ConnectionLost(why.to_owned()), Cut::Unpipelined);
    }

    /// A connection is gone, or was found to talk nonsense: takes care of what was pipelined on it; whether something was. The streams
    /// of a session are no pipeline.
    pub(crate) fn break_pipeline(
        &mut self,
        now: Instant,
        id: ConnectionId,
        why: &str,
        corrupt: bool,
    ) -> bool {
        if !self.pipelines(self.connections[id as usize].record.host) {
            return false;
        }
        let connection = &mut self.connections[id as usize];
        let deep = connection.active.len() > 1;
        if !deep && connection.active.first().is_none_or(|a| a.position == 0) {
            return false;
        }
        let active = std::mem::take(&mut connection.active);
        // Firefox takes an answer that is cut off for a corrupt one too.
        let cut_off = active.first().is_some_and(|a| self.request_mut(a.request).answered);
        if corrupt || cut_off {
            self.report(now, id, Feedback::CorruptedContent);
        } else {
            // For the first, which is begun again (nsHttpTransaction.cpp, Close); so a trial fails at a server that closes.
            self.report(now, id, Feedback::CanceledPipeline);
        }
        if deep {
            self.report(now, id, Feedback::CanceledPipeline);
        }
        for active in active {
            self.leave_pipeline(now, active.request, why);
        }
        true
    }

    /// An engine reports something of a request on a connection that may be a pipeline.
    pub(crate) fn watch_event(&mut self, now: Instant, id: ConnectionId, event: &Event) {
        match event {
            Event::Head { id: request, head, .. } => {
                let framed = self.connections[id as usize].framed;
                self.watch_head(now, id, *request, head, framed);
            }
            Event::Data { id: request, chunk } => {
                let most = self.config.pipelining.expect("it is on").object_max;
                let request = self.request_mut(*request);
                let before = request.received;
                request.received += chunk.len();
                if before <= most && request.received > most && request.announced.is_none() {
                    self.refuse_large(now, id);
                }
            }
            Event::Complete { id: request } => {
                let position = std::mem::take(&mut self.request_mut(*request).position);
                if position > 0 {
                    self.report(now, id, Feedback::CompletedOk(position));
                }
            }
            Event::Failed { .. } => {}
        }
    }

    fn watch_head(
        &mut self,
        now: Instant,
        id: ConnectionId,
        request: RequestId,
        head: &ResponseHead,
        framed: Framed,
    ) {
        let server = head.fields.get_str("server").unwrap_or_default();
        let banned = BANNED.iter().any(|b| server.starts_with(b));
        if framed.is_http10 {
            self.report(now, id, Feedback::VersionTooLow);
        } else if framed.until_close {
            self.report(now, id, Feedback::InsufficientFraming);
        } else if !framed.persists {
            self.report(now, id, Feedback::ExplicitClose);
        } else if banned {
            self.report(now, id, Feedback::BannedServer);
        } else {
            self.report(now, id, Feedback::ExpectedOk);
        }
        let length = head.fields.get_str("content-length").and_then(|l| l.parse::<u64>().ok());
        let asked = self.request_mut(request);
        asked.announced = length;
        asked.received = 0;
        let connection = &mut self.connections[id as usize];
        let host = connection.record.host;
        connection.pipe.supports = !framed.is_http10 && framed.persists && !banned;
        if connection.pipe.class == Class::Revalidation && head.status != 304 {
            connection.pipe.class = Class::General; // no more revalidations behind what has a body
        }
        let solo = connection.pipe.class == Class::Solo;
        if !solo && length.is_some_and(|l| l > self.config.pipelining.expect("it is on").object_max) {
            self.refuse_large(now, id);
        }
        if self.pools[host as usize].pipelining.standing() == super::Standing::Red {
            self.connections[id as usize].pipe.supports = false;
        }
    }

    /// An answer is larger than anybody should have to wait for.
    fn refuse_large(&mut self, now: Instant, id: ConnectionId) {
        if self.connections[id as usize].pipe.class != Class::Solo {
            self.report(now, id, Feedback::UnexpectedLarge);
            self.cancel_pipeline(now, id);
        }
    }

    /// A connection may have nothing under way any more.
    pub(crate) fn watch_end(&mut self, id: ConnectionId) {
        let connection = &self.connections[id as usize];
        let host = connection.record.host;
        if connection.active.is_empty() || connection.state == State::Closed {
            self.pools[host as usize].pipelining.end(id);
            self.timers.cancel(Timer::Pipeline(id));
        }
    }
}
