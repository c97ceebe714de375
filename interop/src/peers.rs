//! `peers.toml`: who the peers are, how each is started, and what each is known to get wrong.

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use spdy::Version;

use crate::contract::{Scenario, VERSIONS, version_name};

/// Which part a peer plays.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Our client asks it.
    Server,
    /// It asks our server.
    Client,
}

/// What carries the session, and how it is agreed on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Clear text: by prior knowledge, or for Kubernetes by `Upgrade`.
    Tcp,
    /// TLS, with ALPN: for SPDY, or for the HTTP/1.1 whose upgrade Kubernetes asks for.
    Tls,
}

/// What the session carries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mapping {
    /// HTTP.
    Http,
    /// Bare streams, as Kubernetes has them.
    Kubernetes,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Role::Server => "server",
            Role::Client => "client",
        })
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Transport::Tcp => "tcp",
            Transport::Tls => "tls",
        })
    }
}

/// A foreign implementation.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Its name in the matrix.
    pub name: String,
    /// What it is, with its version.
    pub about: String,
    /// The programs without which it cannot be built.
    pub needs: Vec<String>,
    /// What `setup.sh` makes last of what it needs.
    pub built: String,
    /// How it is started; paths are relative to the folder of `peers.toml`.
    pub command: Vec<String>,
    /// What it carries.
    pub mapping: Mapping,
    /// The parts it plays.
    pub roles: Vec<Role>,
    /// The versions it speaks, as [`version_name`] has them.
    pub versions: Vec<String>,
    /// What it speaks them over.
    pub transports: Vec<Transport>,
}

impl Peer {
    /// The versions it speaks.
    pub fn versions(&self) -> impl Iterator<Item = Version> + '_ {
        VERSIONS.into_iter().filter(|v| self.versions.iter().any(|name| name == version_name(*v)))
    }
}

/// Some cells of one peer, and why they are as they are.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Whose.
    pub peer: String,
    /// In which part.
    pub role: Role,
    /// Speaking which versions.
    pub versions: Vec<String>,
    /// Over what; either, if it is left out.
    #[serde(default = "either")]
    pub transports: Vec<Transport>,
    /// In which scenarios.
    pub scenarios: Vec<String>,
    /// Why, with the evidence.
    pub reason: String,
}

/// Some cells of two peers, where neither alone is to blame. One of the two may be [`OURS`].
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Who serves.
    pub server: String,
    /// Who fetches.
    pub client: String,
    /// Speaking which versions.
    pub versions: Vec<String>,
    /// Over what; either, if it is left out.
    #[serde(default = "either")]
    pub transports: Vec<Transport>,
    /// In which scenarios.
    pub scenarios: Vec<String>,
    /// Why, with the evidence.
    pub reason: String,
}

fn either() -> Vec<Transport> {
    vec![Transport::Tcp, Transport::Tls]
}

/// What we are called in [`Pair`].
pub const OURS: &str = "velodrome";

/// The scenarios of each mapping, by name.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenarios {
    http: Vec<String>,
    kubernetes: Vec<String>,
}

/// All of `peers.toml`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peers {
    scenarios: Scenarios,
    /// Whom we meet.
    #[serde(rename = "peer")]
    pub all: Vec<Peer>,
    /// What a peer has no means for.
    #[serde(default)]
    pub cannot: Vec<Entry>,
    /// What a peer gets wrong.
    #[serde(default, rename = "fault")]
    pub faults: Vec<Entry>,
    /// What goes wrong between two.
    #[serde(default, rename = "pair")]
    pub pairs: Vec<Pair>,
}

/// One square of the matrix, but for its colour.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place<'p> {
    /// The peer's name.
    pub peer: &'p str,
    /// Its part.
    pub role: Role,
    /// What is spoken.
    pub version: Version,
    /// Over what.
    pub transport: Transport,
    /// What is tried.
    pub scenario: Scenario,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (version, transport) = (version_name(self.version), self.transport);
        match self.role {
            Role::Server => write!(f, "us → {} {version} {transport} {}", self.peer, self.scenario),
            Role::Client => write!(f, "{} → us {version} {transport} {}", self.peer, self.scenario),
        }
    }
}

/// What `peers.toml` says of a square.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Listed<'p> {
    /// Nothing: it has to go well.
    Nothing,
    /// The peer has no means for it.
    Cannot(&'p str),
    /// The peer gets it wrong.
    Fault(&'p str),
}

impl Peers {
    /// Reads the file.
    ///
    /// # Errors
    /// If it cannot be read, is not understood, or speaks of a peer, version or scenario that is not.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Self::parse(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let peers: Self = toml::from_str(text).map_err(|e| e.to_string())?;
        peers.check()?;
        Ok(peers)
    }

    /// Every name means something, so that an entry cannot go stale by a slip of the pen.
    fn check(&self) -> Result<(), String> {
        let known = |name: &str| name == OURS || self.all.iter().any(|p| p.name == name);
        let mut versions: Vec<&String> = self.all.iter().flat_map(|p| &p.versions).collect();
        let mut scenarios: Vec<&String> =
            self.scenarios.http.iter().chain(&self.scenarios.kubernetes).collect();
        let mut names = Vec::new();
        for entry in self.cannot.iter().chain(&self.faults) {
            names.push(&entry.peer);
            versions.extend(&entry.versions);
            scenarios.extend(&entry.scenarios);
        }
        for pair in &self.pairs {
            names.extend([&pair.server, &pair.client]);
            versions.extend(&pair.versions);
            scenarios.extend(&pair.scenarios);
        }
        if let Some(name) = names.iter().find(|name| !known(name)) {
            return Err(format!("no peer is called {name}"));
        }
        if let Some(version) = versions.iter().find(|v| !VERSIONS.iter().any(|w| version_name(*w) == **v)) {
            return Err(format!("there is no version {version}"));
        }
        match scenarios.iter().find(|s| Scenario::from_name(s).is_none()) {
            Some(scenario) => Err(format!("there is no scenario {scenario}")),
            None => Ok(()),
        }
    }

    /// The scenarios that a mapping has, in the order of the matrix.
    pub fn scenarios(&self, mapping: Mapping) -> Vec<Scenario> {
        let names = match mapping {
            Mapping::Http => &self.scenarios.http,
            Mapping::Kubernetes => &self.scenarios.kubernetes,
        };
        names.iter().filter_map(|name| Scenario::from_name(name)).collect()
    }

    /// What is listed of a square.
    pub fn listed(&self, place: Place<'_>) -> Listed<'_> {
        let has = |versions: &[String], transports: &[Transport], scenarios: &[String]| {
            versions.iter().any(|v| v == version_name(place.version))
                && transports.contains(&place.transport)
                && scenarios.iter().any(|s| s == place.scenario.name())
        };
        let of = |entry: &&Entry| {
            let whose = entry.peer == place.peer && entry.role == place.role;
            whose && has(&entry.versions, &entry.transports, &entry.scenarios)
        };
        let [server, client] = match place.role {
            Role::Server => [place.peer, OURS],
            Role::Client => [OURS, place.peer],
        };
        let between = |pair: &&Pair| {
            let whose = pair.server == server && pair.client == client;
            whose && has(&pair.versions, &pair.transports, &pair.scenarios)
        };
        if let Some(entry) = self.cannot.iter().find(of) {
            return Listed::Cannot(&entry.reason);
        }
        let fault = self.faults.iter().find(of).map(|entry| &entry.reason);
        match fault.or_else(|| self.pairs.iter().find(between).map(|pair| &pair.reason)) {
            Some(reason) => Listed::Fault(reason),
            None => Listed::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: &str = r#"
        [scenarios]
        http = ["small", "push"]
        kubernetes = ["exec"]
        [[peer]]
        name = "a"
        about = "a 1.0"
        needs = ["sh"]
        built = "a"
        command = ["a"]
        mapping = "http"
        roles = ["server"]
        versions = ["2", "3.1"]
        transports = ["tcp"]
    "#;

    fn place(role: Role, version: Version, scenario: Scenario) -> Place<'static> {
        Place { peer: "a", role, version, transport: Transport::Tcp, scenario }
    }

    #[test]
    fn what_is_listed_is_found_and_nothing_else() {
        let text = format!(
            "{PEER}\n[[fault]]\npeer = \"a\"\nrole = \"server\"\nversions = [\"2\"]\nscenarios = [\"push\"]\nreason = \"r\"\n\
             [[cannot]]\npeer = \"a\"\nrole = \"client\"\nversions = [\"2\"]\nscenarios = [\"push\"]\nreason = \"c\"\n\
             [[pair]]\nserver = \"velodrome\"\nclient = \"a\"\nversions = [\"3.1\"]\nscenarios = [\"small\"]\nreason = \"p\"\n"
        );
        let peers = Peers::parse(&text).unwrap();
        let listed = |role, version, scenario| peers.listed(place(role, version, scenario));
        assert_eq!(listed(Role::Server, Version::V2, Scenario::Push), Listed::Fault("r"));
        assert_eq!(listed(Role::Server, Version::V3_1, Scenario::Push), Listed::Nothing);
        assert_eq!(listed(Role::Server, Version::V2, Scenario::Small), Listed::Nothing);
        assert_eq!(listed(Role::Client, Version::V2, Scenario::Push), Listed::Cannot("c"));
        assert_eq!(listed(Role::Client, Version::V3_1, Scenario::Small), Listed::Fault("p"));
        assert_eq!(listed(Role::Server, Version::V3_1, Scenario::Small), Listed::Nothing);
        assert_eq!(peers.all[0].versions().collect::<Vec<_>>(), [Version::V2, Version::V3_1]);
    }

    #[test]
    fn a_name_that_means_nothing_is_an_error() {
        let entry = |peer: &str, version: &str, scenario: &str| {
            let text = format!(
                "{PEER}\n[[fault]]\npeer = \"{peer}\"\nrole = \"server\"\nversions = [\"{version}\"]\n\
                 scenarios = [\"{scenario}\"]\nreason = \"r\"\n"
            );
            Peers::parse(&text).map(|_| ())
        };
        assert_eq!(entry("a", "2", "push"), Ok(()));
        assert_eq!(entry("b", "2", "push"), Err("no peer is called b".into()));
        assert_eq!(entry("a", "4", "push"), Err("there is no version 4".into()));
        assert_eq!(entry("a", "2", "pushes"), Err("there is no scenario pushes".into()));
    }

    #[test]
    fn the_list_in_the_tree_is_understood() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers.toml");
        let peers = Peers::read(&path).unwrap();
        assert!(peers.all.iter().all(|p| p.versions().count() == p.versions.len()));
    }
}
