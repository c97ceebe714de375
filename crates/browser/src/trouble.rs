//! What a load could not have at the first try: which resources, what was tried, and what happened.

use client::Failure;
use page::{Kind, ResourceId};

/// A resource that was not had at the first try, or not at all.
#[derive(Clone, PartialEq, Debug)]
pub struct Trouble {
    /// Which.
    pub resource: ResourceId,
    /// What it is.
    pub kind: Kind,
    /// Host, and port if it is not the scheme's own.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// Whether what the page is, or what holds its rendering back, is concerned: the document at the navigation's end, a style sheet
    /// or a script that the parser waits for.
    pub blocks: bool,
    /// How often it was sent.
    pub attempts: u32,
    /// What happened, in order.
    pub failures: Vec<Failure>,
    /// What became of it.
    pub end: End,
}

/// What became of a resource that made trouble.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// It arrived all the same.
    Whole,
    /// It was given up: why.
    Failed(String),
    /// It had not arrived when the load was given up, after so many bytes of its body.
    Unfinished(u64),
    /// It was never asked for: what would have caused it is missing, or had not come so far.
    NeverAsked,
}

impl Trouble {
    /// Whether the page lacks it.
    pub fn is_missing(&self) -> bool {
        self.end != End::Whole
    }
}
