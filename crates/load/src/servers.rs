//! What is particular about some of a page's servers: those that are no good at pipelines, and those that have a second address,
//! and where it leads.
//!
//! Which servers these are is said by name, or by a share of all: then a host is among them by its name alone, so that it is the same
//! in every load of every page.

use base::{Duration, Rng};
use origin::{Behaviour, Idle, Pipelines};

/// Some of the servers.
#[derive(Clone, PartialEq, Debug)]
pub enum Which {
    /// So many of all, 0–1.
    Share(f64),
    /// Those of these names.
    Hosts(Vec<String>),
}

/// Servers that do something with pipelines that they should not.
#[derive(Clone, PartialEq, Debug)]
pub struct BadPipeliners {
    /// What they do.
    pub pipelines: Pipelines,
    /// Which they are. Of kinds that are given by their shares each has servers of its own.
    pub which: Which,
}

/// How the servers of a page treat HTTP/1.1 connections.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Servers {
    /// Who is no good at pipelines; all others are.
    pub bad_pipeliners: Vec<BadPipeliners>,
    /// What all do with connections that nobody uses.
    pub idle: Idle,
}

impl Servers {
    /// How the server of this name behaves.
    pub fn behaviour(&self, name: &str) -> Behaviour {
        let draw = draw(name, "pipelines");
        let mut below = 0.0;
        let among = self.bad_pipeliners.iter().find(|bad| match &bad.which {
            Which::Hosts(names) => names.iter().any(|n| n.eq_ignore_ascii_case(name)),
            Which::Share(share) => {
                below += share;
                draw < below
            }
        });
        let pipelines = among.map_or(Pipelines::Well, |bad| bad.pipelines);
        Behaviour { pipelines, idle: self.idle, ..Behaviour::default() }
    }
}

/// Servers that have an address of IPv6 beside their own, which their name resolves to first (RFC 6724), and where it leads.
#[derive(Clone, PartialEq, Debug)]
pub struct Ipv6 {
    /// Which have one.
    pub which: Which,
    /// How the network carries it.
    pub route: Route,
}

/// How a network carries one family of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// As the other.
    Same,
    /// With a round trip that is so much longer.
    Longer(Duration),
    /// Nowhere: what is sent is lost, and nobody says so.
    Lost,
    /// As the other, but the servers do not listen there: their hosts answer with a RST.
    Refused,
}

impl Ipv6 {
    /// Whether the server of this name is one of them.
    pub fn has(&self, name: &str) -> bool {
        match &self.which {
            Which::Hosts(names) => names.iter().any(|n| n.eq_ignore_ascii_case(name)),
            Which::Share(share) => draw(name, "ipv6") < *share,
        }
    }
}

/// A number in 0–1 for a name.
fn draw(name: &str, what: &str) -> f64 {
    Rng::new(0).substream(what).substream(name).unit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad(pipelines: Pipelines, which: Which) -> BadPipeliners {
        BadPipeliners { pipelines, which }
    }

    #[test]
    fn servers_are_bad_by_name_or_by_their_share_and_of_one_kind_each() {
        let servers = Servers {
            bad_pipeliners: vec![
                bad(Pipelines::Refusing, Which::Hosts(vec!["a.example".into()])),
                bad(Pipelines::Reordering, Which::Share(0.25)),
                bad(Pipelines::Corrupting, Which::Share(0.25)),
            ],
            idle: Idle::Kept,
        };
        assert_eq!(servers.behaviour("A.example").pipelines, Pipelines::Refusing);
        let of = |kind| {
            let names = (0..1_000).map(|n| format!("host{n}.example"));
            names.filter(|name| servers.behaviour(name).pipelines == kind).count()
        };
        for kind in [Pipelines::Reordering, Pipelines::Corrupting] {
            assert!((200..300).contains(&of(kind)), "{}", of(kind));
        }
        assert!((450..550).contains(&of(Pipelines::Well)));
    }

    #[test]
    fn who_has_a_second_address_has_it_by_name_or_by_share() {
        let ipv6 = |which| Ipv6 { which, route: Route::Lost };
        assert!(ipv6(Which::Hosts(vec!["a.example".into()])).has("a.example"));
        assert!(ipv6(Which::Share(1.0)).has("b.example"));
        assert!(!ipv6(Which::Share(0.0)).has("b.example"));
    }
}
