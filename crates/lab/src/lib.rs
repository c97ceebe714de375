//! Plans, runs, paired statistics and result files.
//!
//! A [`plan::Plan`] says what is raced over what; with the files it names it determines every byte of the results. A race
//! is a folder ([`folder`]): the plan, what ran it, one row a load, one a request, one a connection ([`result`]), and what
//! they say together ([`summary`]).
//!
//! * [`network`] and [`setting`]: what a plan holds of a network, profiles with names, and how all of it is written.
//! * [`technique`]: what the browser does beyond the rules of its time, as switches.
//! * [`pages`]: pages from files, folders and generators.
//! * [`race`]: a plan from beginning to end; [`run`]: its loads on several threads, in order; [`folder`]: what was
//!   finished survives an interruption.
//! * [`agree`]: how far the virtual world is from the live one; [`world`]: both behind one door.
//! * [`capture`]: one load as a packet capture.
//! * [`topology`]: what a client learns by visiting pages, kept between runs.
//! * [`critical`]: where a page load time went. [`stats`]: medians, means, and how sure they are.
//!
//! # What is paired
//!
//! Two transports are compared page by page, and run by run under one seed: [`plan::Plan::load_seed`] has no transport in
//! it. What is drawn is thereby the same for both as far as that has a meaning: the n-th packet to enter the link in
//! one direction is lost for both or for neither, though it carries something else. Pages, hosts, thinking times and
//! computation are the same anyway. The crate `sim` says more.
//!
//! # Reading
//!
//! Lessons of other labs that this one obeys: keep the queue explicit, the stacks equal and printed, the loss seeded and
//! shared (Mahimahi, USENIX ATC 2015, has none of the three); define the page load time exactly, pair it and give its
//! interval; leave computation and dependencies in (Wang et al., "How Speedy is SPDY?", NSDI 2014).

pub mod agree;
pub mod capture;
mod compare;
pub mod critical;
pub mod error;
pub mod folder;
pub mod network;
pub mod pages;
pub mod plan;
mod published;
pub mod race;
mod record;
pub mod result;
pub mod run;
pub mod setting;
pub mod stats;
pub mod study;
pub mod summary;
pub mod technique;
pub mod topology;
pub mod trouble;
mod words;
pub mod world;

pub use error::Error;

#[cfg(test)]
mod scratch;
