//! What a page is: resources, sizes, header fields, hosts, dependencies, computation.
//!
//! A [`Page`] holds all that a loader, an origin and a network model need to load it again under other conditions: no
//! bodies, but their sizes; no timings, but what the network does not explain of them ([`Resource::think`],
//! [`Resource::exec`], the delays of [`Cause`]). Its resources form a tree, parents first; [`Page::validate`] states
//! the invariants that everything above relies on.
//!
//! Pages come from recordings ([`har::read`]), which is where the assumptions are made, or from a seeded generator
//! ([`corpus::generate`]). They go out as HAR again ([`har::write`]).
//!
//! ```
//! let pages = page::corpus::generate("2012", 300, 1)?;
//! let requests: usize = pages.iter().map(|p| p.resources.len()).sum();
//! assert!((80..90).contains(&(requests / 300)));
//! # Ok::<(), page::Error>(())
//! ```
//!
//! To see what a recording is taken to be: `cargo run -p velodrome-page --example summary -- -v FILE.har`.

pub mod cache;
pub mod corpus;
pub mod error;
pub mod har;
pub mod hint;
mod model;

pub use error::{Error, Fault};
pub use model::{
    Assumption, Cause, Host, Invalid, Kind, Page, Priority, Recorded, Resource, ResourceId, ScriptMode,
    Source,
};
