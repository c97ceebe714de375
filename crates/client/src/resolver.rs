//! Names and their look-ups: each name is asked for once and remembered for the client's life; addresses never are.

use std::net::IpAddr;

use base::Instant;

use crate::dial::Family;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unknown,
    Asking { since: Instant },
    Found,
    Missing,
}

pub(crate) enum Answer {
    Found,
    Missing,
    Asking,
    /// Nobody has asked yet: the caller must.
    Ask,
}

/// What is known of one name.
struct Name {
    state: State,
    /// As given, or in the order in which the families came, IPv6 before IPv4.
    addresses: Vec<IpAddr>,
    /// Families that have answered.
    families: Vec<Family>,
    is_address: bool,
}

pub(crate) struct Resolver {
    /// For every host, the first host with the same name; names are kept there.
    first: Vec<u32>,
    names: Vec<Name>,
    lookups: u32,
}

impl Resolver {
    pub(crate) fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let names: Vec<&str> = names.collect();
        let mut seen = std::collections::BTreeMap::new();
        let first: Vec<u32> =
            names.iter().enumerate().map(|(i, name)| *seen.entry(*name).or_insert(i as u32)).collect();
        let name = |name: &&str| {
            let address = literal(name);
            let state = if address.is_some() { State::Found } else { State::Unknown };
            let (is_address, addresses) = (address.is_some(), address.into_iter().collect());
            Name { state, addresses, families: Vec::new(), is_address }
        };
        Self { names: names.iter().map(name).collect(), first, lookups: 0 }
    }

    pub(crate) fn lookups(&self) -> u32 {
        self.lookups
    }

    /// The host that stands for all with this one's name.
    pub(crate) fn name(&self, host: u32) -> u32 {
        self.first[host as usize]
    }

    pub(crate) fn same_name(&self, a: u32, b: u32) -> bool {
        self.name(a) == self.name(b)
    }

    fn entry(&self, host: u32) -> &Name {
        &self.names[self.name(host) as usize]
    }

    fn entry_mut(&mut self, host: u32) -> &mut Name {
        let name = self.name(host);
        &mut self.names[name as usize]
    }

    /// The answer for `host`. [`Answer::Ask`] is given once a name.
    pub(crate) fn ask(&mut self, now: Instant, host: u32) -> Answer {
        let state = &mut self.entry_mut(host).state;
        match state {
            State::Found => Answer::Found,
            State::Missing => Answer::Missing,
            State::Asking { .. } => Answer::Asking,
            State::Unknown => {
                *state = State::Asking { since: now };
                self.lookups += 1;
                Answer::Ask
            }
        }
    }

    pub(crate) fn is_found(&self, host: u32) -> bool {
        self.entry(host).state == State::Found
    }

    pub(crate) fn is_asking(&self, host: u32) -> bool {
        matches!(self.entry(host).state, State::Asking { .. })
    }

    /// Notes the answer and returns when it was asked for.
    pub(crate) fn finish(&mut self, host: u32, found: bool) -> Instant {
        let state = &mut self.entry_mut(host).state;
        let since = if let State::Asking { since } = *state { since } else { Instant::MAX };
        *state = if found { State::Found } else { State::Missing };
        since
    }

    /// A name is to be looked up anew when it is next wanted.
    pub(crate) fn forget(&mut self, host: u32) {
        let name = self.entry_mut(host);
        if matches!(name.state, State::Found | State::Missing) && !name.is_address {
            name.state = State::Unknown;
            name.families.clear();
        }
    }

    /// All names are.
    pub(crate) fn forget_all(&mut self) {
        for host in 0..self.first.len() as u32 {
            self.forget(host);
        }
    }

    /// A name that one family has answered for is asked for again as far as that goes: it is open until the other has. False if both have,
    /// or none has been asked by itself.
    pub(crate) fn await_more(&mut self, now: Instant, host: u32) -> bool {
        let name = self.entry_mut(host);
        let is_half = name.families.len() == 1;
        if is_half && name.state == State::Found {
            name.state = State::Asking { since: now };
        }
        is_half
    }

    /// One of the addresses that are known is good: nobody [waits](Self::await_more) for more.
    pub(crate) fn settle(&mut self, host: u32) {
        let name = self.entry_mut(host);
        if name.families.len() == 1 {
            name.state = State::Found;
        }
    }

    /// A name's addresses, as far as they are known: none if the world keeps them to itself.
    pub(crate) fn addresses(&self, host: u32) -> &[IpAddr] {
        &self.entry(host).addresses
    }

    /// Says beforehand which addresses a look-up will find.
    pub(crate) fn set_addresses(&mut self, host: u32, addresses: &[IpAddr]) {
        self.entry_mut(host).addresses = addresses.to_vec();
    }

    /// Notes the addresses of one family; whether both have answered now.
    pub(crate) fn add(&mut self, host: u32, family: Family, addresses: &[IpAddr]) -> bool {
        let name = self.entry_mut(host);
        if name.families.is_empty() {
            name.addresses.clear(); // those of an earlier look-up
        }
        let at = if family == Family::V6 { 0 } else { name.addresses.len() };
        name.addresses.splice(at..at, addresses.iter().copied());
        if !name.families.contains(&family) {
            name.families.push(family);
        }
        name.families.len() == 2
    }
}

/// The address that a host's name already is (RFC 3986 §3.2.2: one of IPv6 stands in brackets). Such a host is never looked up.
pub fn literal(name: &str) -> Option<IpAddr> {
    name.trim_matches(['[', ']']).parse().ok()
}
