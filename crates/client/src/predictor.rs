//! Which hosts a page will need, and how many connections to each, before the page has said so.
//!
//! Two ways of learning it, both Chrome's: an estimate of connections a visit ([`Learned`], 2010–2016), and the share of
//! visits that used a host ([`Successor`], since). Both are plain tables without a clock or a file; whoever keeps them
//! between runs writes their rows down and makes them anew from rows.

mod learned;
mod successor;

pub use learned::{Learned, LearnedRow};
pub use successor::{Successor, SuccessorRow};

/// What is opened before it is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Preconnect {
    /// Nothing.
    #[default]
    None,
    /// Two connections to every host as soon as it is first asked for anything, as Internet Explorer 9 did. HTTP/1.1 only.
    BlindTwo,
    /// What [`Learned`] expects.
    Learned,
    /// What [`Successor`] expects.
    Successor,
}

/// What a page is expected to need of one host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    /// The host's origin, as [`Client::origin`](crate::Client::origin) writes it.
    pub host: String,
    /// Connections to open; none means that the name alone is worth looking up.
    pub connections: u32,
}
