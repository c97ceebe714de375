//! Serves pages, recorded or other, over HTTP/1.1 and SPDY. Like everything below the worlds it does no input or output
//! of its own.
//!
//! * [`Connection`] is one client's connection. It drives an engine, asks a [`Site`] for answers, waits as long as the
//!   site says that a server would think, pushes, upgrades, shuts down, and keeps a log. It is the same in the virtual
//!   world and over sockets.
//! * [`Site`] is what is served: [`Recording`] is a recorded page; a folder of files is another.
//! * [`Server`] is one origin of a recorded page in the virtual world: a recording and its clients' connections.
//! * [`Behaviour`] is how an HTTP/1.1 server fails its clients, if it is to: at pipelines and at idle connections.
//! * [`Faults`] are what breaks whatever is spoken: connections that are refused, answers that never come or are cut off, hosts that
//!   go away.
//!
//! The `User-Agent` is never looked at.
//!
//! # A site of one's own
//!
//! ```
//! use base::{Chunk, Fields, Instant, RequestHead, ResponseHead};
//! use origin::{Answer, Connection, Protocol, Push, Site};
//!
//! /// Greets whoever asks, and pushes the style sheet that the greeting needs.
//! struct Greeter;
//!
//! fn ok(kind: &'static str) -> ResponseHead {
//!     let mut fields = Fields::new();
//!     fields.push("Content-Type", kind);
//!     ResponseHead { status: 200, fields }
//! }
//!
//! impl Site for Greeter {
//!     type Upload = u64; // bytes of the request's body
//!
//!     fn begin(&mut self, _: &RequestHead) -> u64 {
//!         0
//!     }
//!
//!     fn upload(&mut self, bytes: &mut u64, chunk: &Chunk) {
//!         *bytes += chunk.len();
//!     }
//!
//!     fn answer(&mut self, request: &RequestHead, bytes: u64) -> Answer {
//!         if request.path != "/" {
//!             return Answer::bare(404);
//!         }
//!         let style = RequestHead { path: "/style.css".into(), ..request.clone() };
//!         let push = Push {
//!             request: style,
//!             head: ok("text/css"),
//!             body: b"p { color: red }".to_vec().into(),
//!             priority: spdy::Priority::new(2),
//!         };
//!         let text = format!("<link rel=stylesheet href=/style.css><p>Thank you for {bytes} bytes.");
//!         Answer { pushes: vec![push], ..Answer::new(ok("text/html"), text.into_bytes().into()) }
//!     }
//! }
//!
//! let now = Instant::ZERO;
//! let mut connection = Connection::new(&Protocol::HTTP1, "http".into()).with_log();
//! let request = b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nhi";
//! connection.handle_input(now, request.to_vec().into(), &mut Greeter)?;
//! let mut sent = Vec::new();
//! while let Some(Chunk::Bytes(bytes)) = connection.poll_transmit(now, 1_400) {
//!     sent.extend_from_slice(&bytes);
//! }
//! assert!(sent.ends_with(b"<p>Thank you for 2 bytes."));
//! assert_eq!(connection.poll_record().unwrap().status, 200);
//! assert!(connection.is_idle() && !connection.wants_close());
//! # Ok::<(), origin::PeerMisbehaved>(())
//! ```
//!
//! # What one connection may cost
//!
//! The engines' limits hold for heads, header blocks, outstanding requests and streams. Beyond them, while 1 MiB of
//! answers waits for a transport that does not take it, [`Connection::wants_input`] says to read no more. What a site
//! keeps of an upload is the site's to bound.

mod behaviour;
mod connection;
mod fault;
mod filler;
mod matching;
mod protocol;
mod push;
mod record;
mod recording;
mod server;
mod site;

pub use behaviour::{Behaviour, Idle, Pipelines};
pub use connection::Connection;
pub use fault::{Broken, Fault, FaultKind, Faults, Often, Whom};
pub use filler::Filler;
pub use matching::{Matching, Tier};
pub use protocol::{PeerMisbehaved, Protocol, Sniffed};
pub use push::{BadPushRule, PUSHES_MAX, PushRule, PushRuleFault, PushRules, push_priority};
pub use record::{Record, Stats};
pub use recording::{Found, Recording};
pub use server::{ConnectionId, Server, Think};
pub use site::{Answer, Push, Site};

#[cfg(test)]
mod tests;
