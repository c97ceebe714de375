//! What a page is: resources, sizes, header fields, hosts, dependencies, computation.

pub mod corpus;
pub mod error;
pub mod har;
mod model;

pub use error::{Error, Fault};
pub use model::{
    Assumption, Cause, Host, Invalid, Kind, Page, Priority, Recorded, Resource, ResourceId, ScriptMode,
    Source,
};
