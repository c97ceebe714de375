//! Names and their look-ups: each name is asked for once and remembered for the client's life; addresses never are.

use base::Instant;

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

pub(crate) struct Resolver {
    /// For every host, the first host with the same name; states are kept there.
    first: Vec<u32>,
    states: Vec<State>,
    lookups: u32,
}

impl Resolver {
    pub(crate) fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let names: Vec<&str> = names.collect();
        let mut seen = std::collections::BTreeMap::new();
        let first: Vec<u32> =
            names.iter().enumerate().map(|(i, name)| *seen.entry(*name).or_insert(i as u32)).collect();
        let state = |name: &&str| if is_address(name) { State::Found } else { State::Unknown };
        Self { states: names.iter().map(state).collect(), first, lookups: 0 }
    }

    pub(crate) fn lookups(&self) -> u32 {
        self.lookups
    }

    pub(crate) fn same_name(&self, a: u32, b: u32) -> bool {
        self.first[a as usize] == self.first[b as usize]
    }

    /// The answer for `host`. [`Answer::Ask`] is given once a name.
    pub(crate) fn ask(&mut self, now: Instant, host: u32) -> Answer {
        let state = &mut self.states[self.first[host as usize] as usize];
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

    /// Notes the answer and returns when it was asked for.
    pub(crate) fn finish(&mut self, host: u32, found: bool) -> Instant {
        let state = &mut self.states[self.first[host as usize] as usize];
        let since = if let State::Asking { since } = *state { since } else { Instant::MAX };
        *state = if found { State::Found } else { State::Missing };
        since
    }
}

/// Whether a host's name is an address already (RFC 3986 §3.2.2: one of IPv6 stands in brackets).
fn is_address(name: &str) -> bool {
    name.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok()
}
