//! Published experiments, made again: a plan as data, the loads, our figures beside the published ones, and a verdict.
//!
//! A study is a TOML file in `studies/`, built in: *arms* (plans that differ in what the experiment varies) and *published*
//! figures, each with the range in which ours counts as the same. What is measured on the arms is the study's own code
//! (`measure`, a module each); everything else is common. No outcome is written down anywhere: the verdict is counted from the figures,
//! and what a site owner should take from it is chosen by the verdict.
//!
//! A study runs in the virtual world. The same file gives the same findings, on any machine and with any number of threads. [`live`]
//! makes as many of its loads as there is time for in the live world too, and those again in the virtual one.

mod grid;
pub mod live;
mod measure;
mod packets;
mod runner;
mod session;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::Error;
use crate::network::Overrides;
use crate::technique::Technique;
use measure::{ArmLoads, Measured};

pub use grid::{CELLS_MAX, Grid};
pub use measure::{Figure, Panel, Panels, Picture, Row, Series, Shape, Table};
pub use packets::{Layer, Moment, PacketLine, TimeLine, TimeLines};
pub use runner::{Options, run};
pub use session::{Kinds, SessionSpec};

/// A verdict names no more figures than this; the table has them all.
const LISTED_MAX: usize = 8;

/// A study that is built in.
struct BuiltIn {
    /// Its name: the file's.
    name: &'static str,
    /// What its file has.
    file: &'static str,
    /// What it measures on its arms.
    measure: fn(&[ArmLoads]) -> Measured,
    /// Under which conditions that becomes another thing, if it tries several.
    turns: Option<Turns>,
}

/// Sentences, with figures of a study's arms.
type Turns = fn(&[ArmLoads]) -> Vec<String>;

/// Every study, in the order in which they are read best.
const STUDIES: &[BuiltIn] = &[
    BuiltIn {
        name: "spdy-vs-http",
        file: include_str!("../../../studies/spdy-vs-http.toml"),
        measure: measure::spdy_vs_http::measure,
        turns: Some(measure::spdy_vs_http::turns),
    },
    BuiltIn {
        name: "spdy-grid",
        file: include_str!("../../../studies/spdy-grid.toml"),
        measure: measure::spdy_grid::measure,
        turns: Some(measure::spdy_grid::turns),
    },
    BuiltIn {
        name: "spdy-ablation",
        file: include_str!("../../../studies/spdy-ablation.toml"),
        measure: measure::spdy_ablation::measure,
        turns: Some(measure::spdy_ablation::turns),
    },
    BuiltIn {
        name: "spdy-real-sites",
        file: include_str!("../../../studies/spdy-real-sites.toml"),
        measure: measure::spdy_real_sites::measure,
        turns: Some(measure::spdy_real_sites::turns),
    },
    BuiltIn {
        name: "false-start",
        file: include_str!("../../../studies/false-start.toml"),
        measure: measure::false_start::measure,
        turns: Some(measure::false_start::turns),
    },
    BuiltIn {
        name: "mobile-tls",
        file: include_str!("../../../studies/mobile-tls.toml"),
        measure: measure::mobile_tls::measure,
        turns: None,
    },
    BuiltIn {
        name: "connection-retry",
        file: include_str!("../../../studies/connection-retry.toml"),
        measure: measure::connection_retry::measure,
        turns: Some(measure::connection_retry::turns),
    },
    BuiltIn {
        name: "preconnect",
        file: include_str!("../../../studies/preconnect.toml"),
        measure: measure::preconnect::measure,
        turns: Some(measure::preconnect::turns),
    },
    BuiltIn {
        name: "pipelining",
        file: include_str!("../../../studies/pipelining.toml"),
        measure: measure::pipelining::measure,
        turns: Some(measure::pipelining::turns),
    },
    BuiltIn {
        name: "initial-window",
        file: include_str!("../../../studies/initial-window.toml"),
        measure: measure::initial_window::measure,
        turns: None,
    },
    BuiltIn {
        name: "tls-record-size",
        file: include_str!("../../../studies/tls-record-size.toml"),
        measure: measure::tls_record_size::measure,
        turns: None,
    },
    BuiltIn {
        name: "flow-control",
        file: include_str!("../../../studies/flow-control.toml"),
        measure: measure::flow_control::measure,
        turns: None,
    },
    BuiltIn {
        name: "bufferbloat",
        file: include_str!("../../../studies/bufferbloat.toml"),
        measure: measure::bufferbloat::measure,
        turns: None,
    },
    BuiltIn {
        name: "reload",
        file: include_str!("../../../studies/reload.toml"),
        measure: measure::reload::measure,
        turns: None,
    },
    BuiltIn {
        name: "tab-priority",
        file: include_str!("../../../studies/tab-priority.toml"),
        measure: measure::tab_priority::measure,
        turns: None,
    },
];

/// A study as its file has it.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Its name: the file's.
    #[serde(skip)]
    pub name: String,
    /// What is claimed, in a few words.
    pub title: String,
    /// What was published, and how it was found.
    pub claim: String,
    /// Whether loads that are not whole are what it counts; they are left out otherwise.
    #[serde(default)]
    pub counts_incomplete: bool,
    /// How our experiment differs from the published one, and what it leaves out.
    pub differs: Vec<String>,
    /// What a site owner should take from it.
    pub lesson: Lesson,
    /// Pages made for it; arms name them `page:ID`.
    #[serde(default, rename = "page")]
    pub pages: Vec<PageSpec>,
    /// Grids of networks; arms name them.
    #[serde(default, rename = "grid")]
    pub grids: BTreeMap<String, Grid>,
    /// Browsing sessions made for it; arms name them `session:ID`.
    #[serde(default, rename = "session")]
    pub sessions: Vec<SessionSpec>,
    /// What is compared.
    #[serde(rename = "arm")]
    pub arms: Vec<Arm>,
    /// The published figures.
    pub published: Vec<Published>,
}

/// What to take from a study, by its verdict.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lesson {
    /// If every figure is reproduced, or some are.
    pub holds: String,
    /// If none is.
    pub fails: String,
}

/// A page of one document and what its first byte refers to.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageSpec {
    /// Its name.
    pub id: String,
    /// Bytes of the document.
    pub document_bytes: u64,
    /// How long after the document is used the images are asked for; 0: as its first byte arrives.
    #[serde(default)]
    pub images_after_ms: f64,
    /// Images: how many, and the bytes of each.
    #[serde(default)]
    pub images: Vec<[u64; 2]>,
    /// Style sheets: how many, and the bytes of each.
    #[serde(default)]
    pub styles: Vec<[u64; 2]>,
    /// How many of them, the last, are on a host of their own, `cdn.study.example`.
    #[serde(default)]
    pub styles_elsewhere: u64,
    /// POSTs of 300 bytes.
    #[serde(default)]
    pub posts: u64,
    /// The page's host; one that stands for any, if none is named.
    #[serde(default)]
    pub host: Option<String>,
    /// Images of other hosts, among the page's own in turn: the host, how many, and the bytes of each.
    #[serde(default)]
    pub elsewhere: Vec<(String, u64, u64)>,
    /// Bytes of a transfer that begins with the page, and that `onload` does not wait for; 0 for none.
    #[serde(default)]
    pub bulk_bytes: u64,
}

/// One plan of a study.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Its name.
    pub name: String,
    /// As [`crate::plan::Plan::pages`]; or `page:ID`.
    pub pages: Vec<String>,
    /// As [`crate::network::Network::named`] takes them.
    #[serde(default)]
    pub networks: Vec<String>,
    /// Instead: the name of one of the study's grids.
    #[serde(default)]
    pub grid: Option<String>,
    /// As [`crate::plan::Plan::transports`].
    pub transports: Vec<String>,
    /// Whether everything of a page is served by its first host, as if its site had moved it there.
    #[serde(default)]
    pub one_domain: bool,
    /// Loads of each page.
    #[serde(default = "one")]
    pub runs: u32,
    /// As [`crate::plan::Plan::techniques`].
    #[serde(default)]
    pub techniques: Vec<Technique>,
    /// What is changed in the networks.
    #[serde(default)]
    pub set: Overrides,
    /// Whether it is noted how far streams had come and might go on.
    #[serde(default)]
    pub trace: bool,
    /// Whether packets are kept, as the virtual world knows them.
    #[serde(default)]
    pub packets: bool,
}

fn one() -> u32 {
    1
}

/// A published figure.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// What the study's code calls it.
    pub key: String,
    /// What it is, with its unit.
    pub what: String,
    /// As published.
    pub figure: String,
    /// Ours is the same if it is not below this,
    pub low: f64,
    /// nor above this.
    pub high: f64,
}

/// What a study found.
#[derive(Clone, PartialEq, Debug)]
pub struct Findings {
    /// The study.
    pub study: Study,
    /// Our figures, in the order of [`Study::published`]; `None` where there was nothing to measure.
    pub ours: Vec<Option<f64>>,
    /// Under which conditions it turns, in sentences with figures; none where one condition was all.
    pub turns: Vec<String>,
    /// What is worth drawing.
    pub pictures: Vec<Picture>,
    /// Loads made.
    pub loads: u64,
    /// Of those, loads that were not whole and are left out.
    pub incomplete: u64,
}

/// What our figures say of the published ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All are within their ranges.
    Reproduced,
    /// Some are.
    Partly,
    /// None is.
    Not,
}

impl Findings {
    /// Whether the `n`-th published figure is reproduced.
    pub fn holds(&self, n: usize) -> bool {
        let Published { low, high, .. } = &self.study.published[n];
        self.ours[n].is_some_and(|ours| (*low..=*high).contains(&ours))
    }

    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        match (0..self.ours.len()).filter(|n| self.holds(*n)).count() {
            0 => Verdict::Not,
            held if held == self.ours.len() => Verdict::Reproduced,
            _ => Verdict::Partly,
        }
    }

    /// The verdict in words.
    pub fn says(&self) -> String {
        let word = match self.verdict() {
            Verdict::Reproduced => "Reproduced",
            Verdict::Partly => "Reproduced in part",
            Verdict::Not => "Not reproduced",
        };
        let list = |wanted: bool| {
            let held = (0..self.ours.len()).filter(|n| self.holds(*n) == wanted);
            let names: Vec<_> = held.map(|n| self.study.published[n].what.as_str()).collect();
            match names.len() {
                ..=LISTED_MAX => names.join("; "),
                n => format!("{}; and {} more", names[..LISTED_MAX].join("; "), n - LISTED_MAX),
            }
        };
        let of = format!(
            "{} of {} figures",
            (0..self.ours.len()).filter(|n| self.holds(*n)).count(),
            self.ours.len()
        );
        match self.verdict() {
            Verdict::Partly => format!("{word}: {of}. Not within range: {}.", list(false)),
            _ => format!("{word}: {of}."),
        }
    }

    /// What a site owner should take from it.
    pub fn lesson(&self) -> &str {
        match self.verdict() {
            Verdict::Not => &self.study.lesson.fails,
            _ => &self.study.lesson.holds,
        }
    }
}

/// All studies, in their order.
///
/// # Panics
/// Never: a test reads every file.
pub fn all() -> Vec<Study> {
    let read = |BuiltIn { name, file, .. }: &BuiltIn| {
        let study = toml::from_str(file).unwrap_or_else(|e| panic!("studies/{name}.toml: {e}"));
        Study { name: (*name).to_owned(), ..study }
    };
    STUDIES.iter().map(read).collect()
}

/// The study called `name`.
pub fn named(name: &str) -> Result<Study, Error> {
    all().into_iter().find(|study| study.name == name).ok_or_else(|| {
        let known: Vec<_> = STUDIES.iter().map(|study| study.name).collect();
        Error::Asked(format!("there is no study '{name}'; there are {}", known.join(", ")))
    })
}

/// A figure as people read it: three digits or so.
pub fn rounded(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests;
