//! Which request goes where, if requests may follow each other (nsHttpConnectionMgr.cpp, TryDispatchTransaction).

use base::Instant;

use super::Class;
use crate::connection::{ConnectionId, Purpose, State};
use crate::{Client, RequestId, Transport, priority};

/// So many connections of a class are enough: the next request of it joins one.
const SAME_CLASS: usize = 3;
/// So many connections of a host are kept for classes that have none.
const SPARE: usize = 2;

impl Client {
    /// Moves a host's waiting requests on, each in the first of these ways that is open to it: into a pipeline, if
    /// connections are getting scarce; on an idle connection; into a pipeline, for what is quickly answered; on a new
    /// connection, when that comes about; into any pipeline. One that counts on a connection that is being made is not put
    /// into a pipeline after all because another was ready first (nsHttpConnectionMgr.cpp, OnOutputStreamReady).
    pub(crate) fn service_pipelined(&mut self, now: Instant, host: u32) {
        let policy = self.config.pipelining.expect("it is on");
        // Connections being made, each of which some request waits for: the first requests that go no other way.
        let mut awaited = self.count_connecting(host);
        for place in self.pools[host as usize].waiting.clone() {
            let (.., id) = place;
            if self.is_blocked(id) {
                continue;
            }
            let counts_on_one = awaited > 0 && self.request_mut(id).looked_at;
            let class = self.class_of(id);
            let pressed = !counts_on_one && self.is_pressed(host, class);
            if pressed && self.join(now, host, id, policy.optimistic_depth) {
                continue;
            }
            if let Some(connection) = self.free_connection(host) {
                self.pools[host as usize].waiting.remove(&place);
                self.dispatch(now, id, connection);
                continue;
            }
            let quick = !counts_on_one && matches!(class, Class::Revalidation | Class::Script);
            if quick && !pressed && self.join(now, host, id, policy.optimistic_depth) {
                continue;
            }
            let is_awaited = awaited > 0;
            if is_awaited {
                awaited -= 1;
            } else if self.count_open(host) < self.config.connections_per_host {
                if self.make_room(now, host) {
                    self.open(now, host, Purpose::Request);
                    self.request_mut(id).looked_at = true;
                    continue;
                }
                self.stalled.insert(host);
            }
            let joined = !is_awaited && self.join(now, host, id, policy.depth_max);
            let request = self.request_mut(id);
            request.queued |= !joined && !is_awaited && !request.looked_at;
            request.looked_at = true;
        }
    }

    /// Whether connections are scarce, or a class has enough of them, so that it should rather share one (IsUnderPressure).
    fn is_pressed(&self, host: u32, class: Class) -> bool {
        let busy = || self.entries(host).filter(|c| c.state == State::Ready && !c.active.is_empty());
        busy().count() + SPARE >= self.config.connections_per_host
            || busy().filter(|c| c.pipe.class == class).count() >= SAME_CLASS
    }

    /// Puts a request at the end of the shortest pipeline of its class (AddToShortestPipeline); false if there is none
    /// that it may join.
    fn join(&mut self, now: Instant, host: u32, id: RequestId, depth_max: u32) -> bool {
        let class = self.class_of(id);
        if class == Class::Solo {
            return false;
        }
        let depth = self.pools[host as usize].pipelining.depth(now, class).min(depth_max);
        let open = self.entries(host).filter(|c| c.can_pipeline(class, depth as usize));
        let Some(shortest) = open.min_by_key(|c| c.active.len()) else { return false };
        let connection = shortest.record.id;
        self.pools[host as usize].pipelining.begin(connection);
        let place = self.place_of(id);
        self.pools[host as usize].waiting.remove(&place);
        self.dispatch(now, id, connection);
        true
    }

    /// The class of a request now. Documents are never pipelined, nor is what was in a pipeline that broke.
    pub(crate) fn class_of(&self, id: RequestId) -> Class {
        let request = self.requests[id as usize].as_ref().expect("a request that was made");
        if request.solo || request.priority == priority::DOCUMENT { Class::Solo } else { request.class }
    }

    /// Whether a request has to wait for scripts and style sheets of its load.
    fn is_blocked(&self, id: RequestId) -> bool {
        let request = self.requests[id as usize].as_ref().expect("a request that was made");
        let exempt = request.blocks || request.priority == priority::DOCUMENT;
        !exempt && self.loads.get(&request.load).is_some_and(|load| load.blockers > 0)
    }

    /// A request is over: what waited for it may go on.
    pub(crate) fn unblock(&mut self, id: RequestId) {
        let request = self.request_mut(id);
        let load = request.load;
        if !std::mem::take(&mut request.blocks) {
            return;
        }
        let entry = self.loads.entry(load).or_default();
        entry.blockers -= 1;
        if entry.blockers == 0 && self.config.pipelining.is_some() {
            let waiting = (0..).zip(&self.pools).filter(|(_, p)| !p.waiting.is_empty()).map(|(host, _)| host);
            self.restless.extend(waiting);
        }
    }

    /// Whether requests to a host may follow each other.
    pub(crate) fn pipelines(&self, host: u32) -> bool {
        self.config.pipelining.is_some() && self.transport(host) == Transport::Http1
    }

    /// A request is about to be sent on a connection.
    pub(crate) fn enter_pipeline(&mut self, now: Instant, id: RequestId, connection: ConnectionId) {
        let class = self.class_of(id);
        let entry = &mut self.connections[connection as usize];
        if entry.active.is_empty() {
            entry.pipe.class = class;
            entry.pipe.last_read = now;
        }
    }

    /// A request was sent on a connection: it has a place there, and may have made a pipeline of what was alone.
    pub(crate) fn note_positions(&mut self, connection: ConnectionId) {
        let active = &self.connections[connection as usize].active;
        let ends = [active.first().copied(), active.last().copied()];
        for active in ends.into_iter().flatten().filter(|a| a.position > 0) {
            self.request_mut(active.request).position = active.position;
        }
    }
}
