//! What a page is: resources, sizes, header fields, hosts, dependencies, computation.

pub mod corpus;
pub mod error;
pub mod har;
pub mod page;

pub use error::{Error, Fault};
pub use page::{
    Assumption, Cause, Host, Invalid, Kind, Page, Priority, Recorded, Resource, ResourceId, ScriptMode,
    Source,
};
