//! What is served: the border between a connection, which speaks, and a site, which knows the answers.

use base::{BodyRange, Chunk, Duration, Fields, RequestHead, ResponseHead};
use spdy::Priority;

use crate::{Broken, Tier};

/// What stands behind a connection and knows the answers.
///
/// A [`Connection`](crate::Connection) calls [`begin`](Site::begin) when a request's head has come, then
/// [`upload`](Site::upload) for each part of its body, then [`answer`](Site::answer) when it is complete; for a GET at
/// once. A client that goes away, or resets its stream, drops the upload without an answer.
pub trait Site {
    /// A request whose body is arriving: what `begin` found out, what `upload` has gathered.
    type Upload;

    /// A request has begun. What depends on the order of requests is decided here.
    fn begin(&mut self, request: &RequestHead) -> Self::Upload;

    /// A part of the request's body, in order; by default it is ignored. Nobody but the site bounds what it keeps: the
    /// connection gives the peer credit for every part.
    fn upload(&mut self, upload: &mut Self::Upload, chunk: &Chunk) {
        let _ = (upload, chunk);
    }

    /// The request is complete: what is the answer?
    fn answer(&mut self, request: &RequestHead, upload: Self::Upload) -> Answer;
}

/// What a client is to get.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// Status, 200–999, and fields. A head that cannot be written becomes a 500 without fields or body. HTTP/1.1's engine writes `Content-Length` itself, in place of what is here; SPDY's
    /// writes none, and lets one through. `Connection: close` ends an HTTP/1.1 connection.
    pub head: ResponseHead,
    /// The body. It is dropped where none can follow: HEAD, 204, 304.
    pub body: Chunk,
    /// How long the server takes from the request's end until the answer goes out.
    pub think: Duration,
    /// What else the client will need. SPDY announces it before the answer; HTTP/1.1 cannot, and does not.
    pub pushes: Vec<Push>,
    /// What the answer is worth on a SPDY session, in place of what the client asked for.
    pub priority: Option<Priority>,
    /// If the answer was recorded: how the request was recognised. It goes into the [`Record`](crate::Record).
    pub matched: Option<Tier>,
    /// If it is not to be given as it should be: what becomes of it.
    pub broken: Option<Broken>,
}

impl Answer {
    /// This head and body, at once.
    pub fn new(head: ResponseHead, body: Chunk) -> Self {
        let (think, pushes) = (Duration::ZERO, Vec::new());
        Self { head, body, think, pushes, priority: None, matched: None, broken: None }
    }

    /// This status, without fields or body, at once.
    pub fn bare(status: u16) -> Self {
        Self::new(ResponseHead { status, fields: Fields::new() }, BodyRange::filler(0).into())
    }
}

/// What is sent though nobody asked (SPDY/3.1 §3.3).
#[derive(Clone, PartialEq, Debug)]
pub struct Push {
    /// The GET that it answers. Clients take pushes of the answer's own scheme and authority only.
    pub request: RequestHead,
    /// Its answer's status and fields.
    pub head: ResponseHead,
    /// Its answer's body.
    pub body: Chunk,
    /// How urgent it is. The connection moves all pushes of an answer down by as much as puts the most urgent of them one
    /// level below the answer, if it is not there already, so that they take no bandwidth from what was asked for.
    pub priority: Priority,
}
