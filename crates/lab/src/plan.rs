//! A plan: what is raced, over what, how often. A plan and the files it names determine every byte of the results.

use client::Preconnect;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::network::Network;
use crate::setting::World;
use crate::technique::{self, Technique};

/// A plan, as its TOML file has it. Paths are relative to the working folder.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Version of this format; [`FORMAT`].
    pub format: u32,
    /// Where loads are made; a plan that does not say means the virtual world.
    #[serde(skip_serializing_if = "World::is_virtual", default)]
    pub world: World,
    /// Every other seed derives from this one.
    pub seed: u64,
    /// Loads of each page on each network over each transport.
    pub runs: u32,
    /// Names of [`client::Transport`]s; the others are compared with the first.
    pub transports: Vec<String>,
    /// Where the pages come from, as [`crate::pages::collect`] reads it.
    pub pages: Vec<String>,
    /// Take only so many pages, the first.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pages_max: Option<u32>,
    /// What the browser does beyond the rules of its time; see [`crate::technique`].
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub techniques: Vec<Technique>,
    /// What the browser remembers of earlier visits, if not of its own; see [`crate::topology`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub state: Option<StateFile>,
    /// On what; each complete.
    #[serde(rename = "network")]
    pub networks: Vec<Network>,
}

/// A client's memory, by its file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateFile {
    /// The file, as [`crate::topology::file`] writes it.
    pub file: String,
    /// Its content's fingerprint, once it was read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fingerprint: Option<u32>,
}

impl StateFile {
    /// A file that has not been read yet.
    pub fn new(file: &str) -> Self {
        Self { file: file.to_owned(), fingerprint: None }
    }

    /// What the file holds, with its fingerprint. It must be there, and be the one that it was.
    pub fn read(&self) -> Result<(crate::topology::State, u32), Error> {
        let path = std::path::Path::new(&self.file);
        let state = crate::topology::file::read(path)?.ok_or_else(|| {
            Error::Asked(format!(
                "{}: there is no such file; `velodrome topology --state` writes it",
                self.file
            ))
        })?;
        // TOML's integers have a sign: 32 bits are enough to notice another file.
        let print = (base::rng::derive(0, &crate::topology::file::emit(&state)) >> 32) as u32;
        if self.fingerprint.is_some_and(|f| f != print) {
            let what = "this client's memory is not the one that the plan was made with";
            return Err(Error::Asked(format!("{}: {what}", self.file)));
        }
        Ok((state, print))
    }
}

/// The version of the format.
pub const FORMAT: u32 = 1;

/// The most loads of one page: what an index of 32 bits and a patient user bear.
pub const RUNS_MAX: u32 = 100_000;

/// The largest seed: TOML's integers have a sign.
pub const SEED_MAX: u64 = i64::MAX as u64;

impl Plan {
    /// Reads a plan; `name` stands for the file in errors.
    pub fn parse(text: &str, name: &str) -> Result<Self, Error> {
        let at = |line, what: String| Error::Plan { file: name.to_owned(), line, what };
        let plan: Plan = toml::from_str(text).map_err(|e| {
            let line = e.span().map(|span| text[..span.start].matches('\n').count() + 1);
            at(line, e.message().replace('\n', "; "))
        })?;
        plan.check().map_err(|what| at(None, what))?;
        Ok(plan)
    }

    /// The plan as TOML, in one canonical order: equal plans give equal text.
    pub fn emit(&self) -> String {
        toml::to_string(self).expect("a plan holds nothing that TOML cannot")
    }

    /// Fingerprints what files the plan names, but for the pages; those already fingerprinted must be the ones that they were.
    pub fn seal(&mut self) -> Result<(), Error> {
        self.networks.iter_mut().try_for_each(Network::seal)?;
        if let Some(state) = &mut self.state {
            state.fingerprint = Some(state.read()?.1);
        }
        Ok(())
    }

    /// What the browser remembers before a load, but for visits of its own.
    pub(crate) fn memory(&self) -> Result<load::Memory, Error> {
        let Some(file) = &self.state else { return Ok(load::Memory::default()) };
        let memory = file.read()?.0.memory;
        let nothing = |t: &&Technique| match t {
            Technique::Preconnect(Preconnect::Learned) => memory.learned.is_empty(),
            Technique::Preconnect(Preconnect::Successor) => memory.successor.is_empty(),
            _ => false,
        };
        let pipelines = self.techniques.iter().find(|t| matches!(t, Technique::Pipelining(_)));
        if pipelines.is_some()
            && !memory.pipelining.is_empty()
            && self.techniques.contains(&Technique::GreenHosts)
        {
            return Err(Error::Asked(format!(
                "{}: knows how far hosts are to be trusted, which green-hosts contradicts; leave one of them out",
                file.file
            )));
        }
        // Beside a predictor, pipelining may begin with nothing.
        let alone =
            pipelines.filter(|_| !self.techniques.iter().any(|t| matches!(t, Technique::Preconnect(_))));
        if let Some(technique) = alone.filter(|_| memory.pipelining.is_empty()) {
            return Err(Error::Asked(format!("{}: holds nothing that {technique} goes by", file.file)));
        }
        match self.techniques.iter().find(nothing) {
            Some(technique) => {
                Err(Error::Asked(format!("{}: holds nothing that {technique} goes by", file.file)))
            }
            None => Ok(memory),
        }
    }

    /// Whether two loads of one page on one network over one transport may differ.
    pub fn is_random_on(&self, network: &Network) -> bool {
        let random = self.techniques.iter().any(Technique::is_random);
        self.world == World::Live || network.is_random() || random
    }

    /// The transports.
    ///
    /// # Panics
    /// If the plan was not checked.
    pub fn transports(&self) -> Vec<client::Transport> {
        self.transports.iter().map(|t| t.parse().expect("checked")).collect()
    }

    /// What is wrong with it, in one line that names the field.
    pub fn check(&self) -> Result<(), String> {
        if self.format != FORMAT {
            return Err(format!("format {} is not {FORMAT}, the one this version reads", self.format));
        }
        if !(1..=RUNS_MAX).contains(&self.runs) {
            return Err(format!("runs {} is not within 1–{RUNS_MAX}", self.runs));
        }
        if self.seed > SEED_MAX {
            return Err(format!("seed {} is not within 0–{SEED_MAX}", self.seed));
        }
        for (i, transport) in self.transports.iter().enumerate() {
            transport.parse::<client::Transport>().map_err(|e| format!("transports: {e}"))?;
            if self.transports[..i].contains(transport) {
                return Err(format!("transports: '{transport}' is named twice"));
            }
        }
        for (i, network) in self.networks.iter().enumerate() {
            network.check().map_err(|what| format!("network '{}': {what}", network.name))?;
            if self.networks[..i].iter().any(|n| n.name == network.name) {
                return Err(format!("network '{}' is named twice", network.name));
            }
        }
        for (empty, what) in [
            (self.transports.is_empty(), "transports"),
            (self.networks.is_empty(), "network"),
            (self.pages.is_empty(), "pages"),
        ] {
            if empty {
                return Err(format!("{what}: there is none"));
            }
        }
        technique::check(self).map_err(|what| format!("techniques: {what}"))
    }

    /// The seed of a load. The transport has no part in it: what is drawn for one transport is drawn for all, so that
    /// their difference is not chance.
    pub fn load_seed(&self, page: &str, network: &str, run: u32) -> u64 {
        let page = base::Rng::new(self.seed).substream(&format!("page {page}"));
        page.substream(&format!("network {network}")).substream(&format!("run {run}")).seed()
    }

    /// A short name that differs between plans: 32 bits of a fingerprint over its text.
    pub fn short_hash(&self) -> String {
        format!("{:08x}", base::rng::derive(0, self.emit().as_bytes()) >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            format: FORMAT,
            world: World::Virtual,
            seed: SEED_MAX,
            runs: 3,
            transports: vec!["http1".into(), "spdy3.1".into()],
            pages: vec!["a \"quoted\" name.har".into(), "corpus:2012:5".into()],
            pages_max: None,
            techniques: Vec::new(),
            state: None,
            networks: vec![Network::named("seed").unwrap(), Network::named("1000/500/12.5/0.25").unwrap()],
        }
    }

    #[test]
    fn a_plan_survives_its_file_and_its_text_is_canonical() {
        let text = plan().emit();
        assert_eq!(Plan::parse(&text, "p").unwrap(), plan());
        assert_eq!(Plan::parse(&text, "p").unwrap().emit(), text);
    }

    #[test]
    fn what_a_plan_gets_wrong_is_said_in_one_line_with_file_and_field() {
        let text = plan().emit();
        let cases = [
            (text.replace("runs = 3", "runs = 3\ncolour = 1"), "p.toml:4: unknown field `colour`"),
            (text.replace("rtt_ms = 12.5", "rtt_ms = -1"), "p.toml: network '1000/500/12.5/0.25': rtt_ms -1"),
            (text.replace("rtt_ms = 12.5\n", ""), "missing field `rtt_ms`"),
            (
                text.replace("stack = \"2010\"", "stack = \"2011\""),
                "'2011' is no TCP stack; there are 2010, today",
            ),
            (text.replace("spdy3.1", "spdy9"), "p.toml: transports: unknown transport 'spdy9'"),
            (text.replace("spdy3.1", "http1"), "p.toml: transports: 'http1' is named twice"),
            (text.replace("runs = 3", "runs = 0"), "p.toml: runs 0 is not within"),
            (text.replace("format = 1", "format = 2"), "p.toml: format 2 is not 1"),
            (text.replace("runs = 3", "runs = "), "p.toml:3:"),
        ];
        for (text, says) in cases {
            let error = Plan::parse(&text, "p.toml").unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_seed_depends_on_page_network_and_run_and_on_nothing_else() {
        let p = plan();
        let seed = p.load_seed("a", "seed", 0);
        for other in [p.load_seed("b", "seed", 0), p.load_seed("a", "x", 0), p.load_seed("a", "seed", 1)] {
            assert_ne!(seed, other);
        }
        let mut q = plan();
        q.transports.reverse();
        q.runs = 100;
        q.networks.truncate(1);
        assert_eq!(q.load_seed("a", "seed", 0), seed);
    }
}
