//! A host with several addresses: in which order they are tried, and how long each has the field to itself.
//!
//! RFC 8305 ("Happy Eyeballs Version 2") is the rule to read first. A *dial* is one connection that somebody wants; each
//! address it tries is a connection of its own in the world, and the first whose TCP handshake completes is the one (§5);
//! the others are closed. A host with one address, or of which no address is known, is dialled once.

use std::net::IpAddr;

use base::{Duration, Instant};

use crate::connection::{ConnectionId, Purpose, State};
use crate::timer::Timer;
use crate::{Action, Client};

/// How a host with several addresses is connected to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HappyEyeballs {
    /// How long an answer with IPv4 addresses waits for the one with IPv6 addresses, when they come apart.
    pub resolution_delay: Duration,
    /// How long an address is tried before the next is tried beside it. One that fails is followed at once.
    pub attempt_delay: Duration,
    /// How often the next address is tried because time has passed.
    pub timed_attempts: u32,
    /// In which order addresses are tried.
    pub order: AddressOrder,
}

/// In which order addresses are tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressOrder {
    /// Families take turns, beginning with the first address's (RFC 8305 §4).
    Interleaved,
    /// As given. When time has passed it is the other family's turn, if the first address was of IPv6.
    AsGiven,
}

impl HappyEyeballs {
    /// RFC 8305 §8: "Resolution Delay" 50 ms, "Connection Attempt Delay" 250 ms (it must be within 10 ms and 2 s, and
    /// should not be below 100 ms).
    pub const RFC_8305: Self = Self {
        resolution_delay: Duration::from_millis(50),
        attempt_delay: Duration::from_millis(250),
        timed_attempts: u32::MAX,
        order: AddressOrder::Interleaved,
    };

    /// Chrome's: addresses in their order, and once, after `kIPv6FallbackTimerInMs` of 300 ms
    /// (transport_connect_job.h), IPv4 beside IPv6. Its resolver waits for both families.
    pub const CHROME: Self = Self {
        resolution_delay: Duration::MAX,
        attempt_delay: Duration::from_millis(300),
        timed_attempts: 1,
        order: AddressOrder::AsGiven,
    };
}

/// A family of addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Family {
    /// What an AAAA query asks for.
    V6,
    /// What an A query asks for.
    V4,
}

impl Family {
    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv6() { Family::V6 } else { Family::V4 }
    }
}

/// One connection that is wanted, and the addresses it may be had from.
pub(crate) struct Dial {
    host: u32,
    /// What the connection is wanted for; who wins has this role.
    purpose: Purpose,
    /// Not tried yet, the next one last.
    left: Vec<IpAddr>,
    timed_attempts: u32,
    /// Being tried.
    live: Vec<ConnectionId>,
    first: IpAddr,
    /// When an address was last begun with.
    last: Instant,
}

impl Client {
    /// Begins to connect to `host`, at one of its addresses or, in time, at several.
    pub(crate) fn open(&mut self, now: Instant, host: u32, purpose: Purpose) {
        let addresses = self.resolver.addresses(host);
        let ipv4_only = purpose == Purpose::Spare && self.config.racing.spare_prefers_ipv4;
        let pick = |family| addresses.iter().copied().find(|a| Family::of(*a) == family);
        if ipv4_only && let Some(address) = pick(Family::V4) {
            self.connect(now, host, purpose, Some(address), None);
            return;
        }
        let Some(policy) = self.config.happy_eyeballs.filter(|_| !addresses.is_empty()) else {
            let address = addresses.first().copied();
            self.connect(now, host, purpose, address, None);
            return;
        };
        let mut left = match policy.order {
            AddressOrder::Interleaved => interleave(addresses),
            AddressOrder::AsGiven => addresses.to_vec(),
        };
        left.reverse();
        let first = left.pop().expect("there is one");
        let dial = self.dials.len() as u32;
        let timed_attempts = policy.timed_attempts;
        self.dials.push(Dial { host, purpose, left, timed_attempts, live: Vec::new(), first, last: now });
        let id = self.connect(now, host, purpose, Some(first), Some(dial));
        self.dials[dial as usize].live.push(id);
        self.time_next_address(dial);
    }

    /// The next address is tried at the side of those that have not answered yet.
    pub(crate) fn try_beside(&mut self, now: Instant, dial: u32) {
        let Some(at) = self.beside(dial) else { return };
        if self.open < self.config.connections_max {
            self.dials[dial as usize].timed_attempts -= 1;
            let address = self.dials[dial as usize].left.remove(at);
            self.try_address(now, dial, address, Purpose::Alternate);
        } else {
            self.dials[dial as usize].last = now; // another time
        }
        self.time_next_address(dial);
    }

    /// Which of the addresses left is next when time has passed.
    fn beside(&self, dial: u32) -> Option<usize> {
        let Dial { left, first, .. } = &self.dials[dial as usize];
        match self.config.happy_eyeballs.expect("dials need a policy").order {
            AddressOrder::Interleaved => left.len().checked_sub(1),
            AddressOrder::AsGiven if first.is_ipv6() => left.iter().rposition(|a| a.is_ipv4()),
            AddressOrder::AsGiven => None,
        }
    }

    fn time_next_address(&mut self, dial: u32) {
        let entry = &self.dials[dial as usize];
        if entry.timed_attempts > 0 && self.beside(dial).is_some() {
            let delay = self.config.happy_eyeballs.expect("dials need a policy").attempt_delay;
            self.timers.set(Timer::Dial(dial), entry.last + delay);
        }
    }

    fn try_address(&mut self, now: Instant, dial: u32, address: IpAddr, role: Purpose) {
        let host = self.dials[dial as usize].host;
        let id = self.connect(now, host, role, Some(address), Some(dial));
        let entry = &mut self.dials[dial as usize];
        entry.live.push(id);
        entry.last = now;
    }

    /// A connection's TCP handshake is complete: if it was dialled, it has won.
    pub(crate) fn win_dial(&mut self, now: Instant, id: ConnectionId) {
        let Some(dial) = self.connections[id as usize].dial.take() else { return };
        self.timers.cancel(Timer::Dial(dial));
        self.resolver.settle(self.dials[dial as usize].host);
        let entry = &mut self.dials[dial as usize];
        entry.left.clear();
        let purpose = entry.purpose;
        let live = std::mem::take(&mut entry.live);
        // A request may have come to count on what was opened ahead of need.
        let counted = live.iter().any(|c| self.connections[*c as usize].role == Purpose::Request);
        self.connections[id as usize].role = if counted { Purpose::Request } else { purpose };
        let others = live.into_iter().filter(|c| *c != id).collect::<Vec<_>>();
        for other in &others {
            self.close(now, *other);
        }
        if !others.is_empty() {
            self.service_stalled(now);
        }
    }

    /// A connection that was being made has failed, and is closed; whether its dial goes on without it.
    pub(crate) fn redial(&mut self, now: Instant, id: ConnectionId) -> bool {
        let Some(dial) = self.connections[id as usize].dial.take() else { return false };
        let role = self.connections[id as usize].role;
        self.dials[dial as usize].live.retain(|c| *c != id);
        if let Some(address) = self.dials[dial as usize].left.pop() {
            self.timers.cancel(Timer::Dial(dial));
            self.try_address(now, dial, address, role); // in the place of the one that failed
            self.time_next_address(dial);
            return true;
        }
        let Some(&other) = self.dials[dial as usize].live.first() else {
            return self.await_other_family(now, self.dials[dial as usize].host);
        };
        if role != Purpose::Alternate {
            self.connections[other as usize].role = role;
        }
        true
    }

    /// All addresses that a host is known by have failed. If the other family's have not been heard of, whoever waits for the host
    /// waits for them, as for any name; whether that is so.
    fn await_other_family(&mut self, now: Instant, host: u32) -> bool {
        let ready = self.entries(host).any(|connection| connection.state == State::Ready);
        !ready && self.resolver.await_more(now, host)
    }

    /// Nothing will come of the dial that a connection is part of.
    pub(crate) fn give_up_dial(&mut self, id: ConnectionId) {
        let Some(dial) = self.connections[id as usize].dial.take() else { return };
        self.timers.cancel(Timer::Dial(dial));
        let entry = &mut self.dials[dial as usize];
        entry.left.clear();
        entry.live.clear();
    }

    /// More addresses of a host have come to be known: dials that go on may use them.
    fn extend_dials(&mut self, host: u32, addresses: &[IpAddr]) {
        for dial in 0..self.dials.len() {
            if self.dials[dial].live.is_empty() || !self.resolver.same_name(self.dials[dial].host, host) {
                continue;
            }
            let entry = &mut self.dials[dial];
            let waits = !entry.left.is_empty();
            entry.left.splice(0..0, addresses.iter().rev().copied());
            if !waits {
                self.time_next_address(dial as u32);
            }
        }
    }

    /// Addresses of one family have come from a look-up that [`Action::Resolve`] asked for; none means that there are none.
    /// For a world whose look-ups answer a family at a time (RFC 8305 §3): it calls this once a family instead of
    /// [`Client::handle_resolved`]. Without [`Config::happy_eyeballs`](crate::Config::happy_eyeballs) the client waits for
    /// both.
    pub fn handle_addresses(&mut self, now: Instant, host: u32, family: Family, addresses: &[IpAddr]) {
        let late = self.resolver.is_found(host);
        let both = self.resolver.add(host, family, addresses);
        self.extend_dials(host, addresses); // there are some if it is late, or if addresses have failed meanwhile
        if late {
            return;
        }
        let some = !self.resolver.addresses(host).is_empty();
        let delay = self.config.happy_eyeballs.map(|policy| policy.resolution_delay);
        match (family, delay) {
            _ if both => self.handle_resolved(now, host, some),
            // "If a positive AAAA response is received first … the client begins connecting" (§3).
            (Family::V6, Some(delay)) if some && delay < Duration::MAX => {
                self.handle_resolved(now, host, true);
            }
            (Family::V4, Some(delay)) if some && delay < Duration::MAX => {
                self.timers.set(Timer::Resolution(self.resolver.name(host)), now + delay);
            }
            _ => {}
        }
    }

    /// Closes a connection from our side.
    pub(crate) fn close(&mut self, now: Instant, id: ConnectionId) {
        self.actions.push_back(Action::Close { connection: id });
        self.forget(now, id);
    }
}

/// RFC 8305 §4: alternately of one family and the other, "First Address Family Count" 1.
fn interleave(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let (mut first, mut second): (Vec<IpAddr>, Vec<IpAddr>) =
        addresses.iter().partition(|a| a.is_ipv6() == addresses[0].is_ipv6());
    let mut out = Vec::with_capacity(addresses.len());
    first.reverse();
    second.reverse();
    while !first.is_empty() || !second.is_empty() {
        out.extend(first.pop());
        out.extend(second.pop());
    }
    out
}
