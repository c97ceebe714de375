//! Our engines among the peers that still speak SPDY: foreign programs that share one command line ([`contract`],
//! `interop/README.md`), each in the part of the server and of the client.
//!
//! * [`contract`]: what both ends of a cell agree on: resources, bodies, scenarios.
//! * [`peers`]: `peers.toml`: who the peers are, and what each is known to get wrong.
//! * [`child`]: peers as child processes, none of which outlives this program.
//! * [`client`], [`site`]: our client and our server of HTTP's mapping.
//! * [`kubernetes`], [`example`]: ours of Kubernetes' streams: the library, and its example program.
//! * [`capture`]: a conversation as a capture file, for packet analysers.
//! * [`run`]: the run; what each square is worth.
//! * [`matrix`]: what people read of it.

pub mod capture;
pub mod child;
pub mod client;
pub mod contract;
pub mod example;
pub mod kubernetes;
pub mod matrix;
pub mod peers;
pub mod run;
pub mod site;
