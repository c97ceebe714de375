//! What a session tells.

use base::{Chunk, Duration, Fields, RequestHead, ResponseHead};

use crate::frame::Setting;
use crate::{GoAwayStatus, Opening, Priority, Status, StreamId};

/// What happened, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Server: a client asks. Answer with [`Session::respond`](crate::Session::respond).
    Request {
        /// The new stream.
        id: StreamId,
        /// What is asked for.
        head: RequestHead,
        /// How urgently.
        priority: Priority,
        /// Whether there is no body.
        fin: bool,
        /// Bytes of the frame that brought it.
        wire_len: u32,
    },
    /// Client: the server answers a request, or states the response of a push.
    Response {
        /// The stream of the request, or of the push.
        id: StreamId,
        /// The answer.
        head: ResponseHead,
        /// Whether there is no body.
        fin: bool,
        /// Bytes of the frame that brought it.
        wire_len: u32,
    },
    /// More fields, or trailers.
    Headers {
        /// The stream.
        id: StreamId,
        /// The fields.
        fields: Fields,
        /// Whether the peer has finished the stream.
        fin: bool,
    },
    /// A part of a body, as it arrived. Hand it back with [`Session::consume`](crate::Session::consume) when it is read.
    Data {
        /// The stream.
        id: StreamId,
        /// The part; empty if there is nothing but the end to tell.
        chunk: Chunk,
        /// Whether the peer has finished the stream.
        fin: bool,
    },
    /// Client: the server sends what was not asked for. To refuse it, [`Session::reset`](crate::Session::reset) it with CANCEL.
    Pushed {
        /// The new stream.
        id: StreamId,
        /// The request beside which it is pushed.
        associated: StreamId,
        /// The request that it answers, without fields: those are the associated one's.
        head: RequestHead,
        /// The answer; if it is not here yet, [`Event::Response`] follows.
        response: Option<ResponseHead>,
        /// How urgent the server thinks it.
        priority: Priority,
        /// Whether there is no body.
        fin: bool,
        /// Bytes of the frame that brought it.
        wire_len: u32,
    },
    /// Bare streams: the peer opens one. Answer with [`Session::accept`](crate::Session::accept), or decline with
    /// [`Session::reset`](crate::Session::reset); a unidirectional one wants no answer.
    Opened {
        /// The new stream.
        id: StreamId,
        /// Its fields, names in lower case.
        fields: Fields,
        /// How it was opened.
        opening: Opening,
        /// Bytes of the frame that brought it.
        wire_len: u32,
    },
    /// Bare streams: the peer accepts one of ours.
    Accepted {
        /// The stream.
        id: StreamId,
        /// The fields of the reply; often none.
        fields: Fields,
        /// Whether the peer sends nothing more.
        fin: bool,
        /// Bytes of the frame that brought it.
        wire_len: u32,
    },
    /// A stream ended before its time and is gone.
    Reset {
        /// The stream.
        id: StreamId,
        /// Why.
        status: Status,
        /// Who ended it.
        by: By,
    },
    /// The peer takes no more streams.
    GoAway {
        /// The last of our streams that it has processed, 0 for none.
        last_good_id: u32,
        /// Why.
        status: GoAwayStatus,
        /// Our streams that it has not processed. They are gone, and may be asked for again on another session
        /// whatever their method; the others go on.
        unprocessed: Vec<StreamId>,
    },
    /// The answer to [`Session::ping`](crate::Session::ping).
    Pong {
        /// Time since the ping.
        rtt: Duration,
    },
    /// The peer's settings, already applied.
    Settings(Vec<Setting>),
    /// The peer closed the connection. The streams that were open are gone; whether they were processed is unknown.
    Closed {
        /// They.
        interrupted: Vec<StreamId>,
    },
    /// Nothing was heard for as long as [`Config::keep_alive`](crate::Config::keep_alive) allows. Nothing else has changed; the connection is
    /// probably dead.
    Unresponsive,
}

/// An end of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// The peer sent RST_STREAM.
    Peer,
    /// The peer broke a rule on this stream, and this end sent RST_STREAM; or, for a push, this end cancelled the
    /// request that it belongs to.
    Us,
}

/// What went over the wire, in both directions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Frames handed to the transport, or waiting for it.
    pub frames_sent: u64,
    /// Frames read.
    pub frames_received: u64,
    /// Bytes of DATA payload sent.
    pub data_sent: u64,
    /// Bytes of DATA payload received.
    pub data_received: u64,
    /// Bytes of frames with a header block sent, frame headers included.
    pub heads_sent: u64,
    /// Bytes of frames with a header block received, frame headers included.
    pub heads_received: u64,
    /// Bytes of the header blocks sent, before compression.
    pub blocks_sent_raw: u64,
    /// Bytes of the header blocks received, after inflating.
    pub blocks_received_raw: u64,
    /// Round-trip time: the least of all answered pings.
    pub rtt_min: Option<Duration>,
}

impl Event {
    /// The stream that the event is of, if it is of one.
    pub fn stream(&self) -> Option<StreamId> {
        match self {
            Event::Request { id, .. }
            | Event::Response { id, .. }
            | Event::Headers { id, .. }
            | Event::Data { id, .. }
            | Event::Pushed { id, .. }
            | Event::Opened { id, .. }
            | Event::Accepted { id, .. }
            | Event::Reset { id, .. } => Some(*id),
            Event::GoAway { .. }
            | Event::Pong { .. }
            | Event::Settings(_)
            | Event::Closed { .. }
            | Event::Unresponsive => None,
        }
    }
}
