//! Frames for looking at: what a connection carries in one direction, without being an end of it.
//!
//! A [`Decoder`] is fed one direction's bytes from their beginning (headers are one zlib stream a direction, so there is
//! no starting in the middle) and gives every frame with its header block inflated. It keeps no streams and obeys
//! nothing; it needs no [`Session`](crate::Session) beside it. A command-line client prints both directions of its
//! session with two of them, a proxy or a reader of captures any connection.
//!
//! ```
//! use base::{Fields, Instant};
//! use spdy::trace::Decoder;
//! use spdy::{Config, Limits, Opening, Session, Version};
//!
//! let mut client = Session::client(Config::spdystream());
//! let mut fields = Fields::new();
//! fields.push("streamType", "stdin");
//! client.open(&fields, Opening::default()).unwrap();
//!
//! let mut decoder = Decoder::new(Version::V3_1, Limits::default());
//! while let Some(chunk) = client.poll_transmit(Instant::ZERO, 7) {
//!     decoder.handle_input(chunk);
//! }
//! let frame = decoder.poll_frame().unwrap().unwrap();
//! assert!(frame.to_string().starts_with("SYN_STREAM id=1 pri=0 "));
//! assert_eq!(frame.fields().unwrap().get_str("streamtype"), Some("stdin"));
//! ```

use std::fmt;

use base::{Chunk, Fields};
use bytes::Bytes;

use crate::compress::Decompressor;
use crate::frame::{Control, HEADER_LEN, Setting};
use crate::framer::{Framer, Piece};
use crate::{Limits, Misbehaviour, Status, Version, block};

/// Reads the frames of one direction of a connection.
pub struct Decoder {
    version: Version,
    limits: Limits,
    framer: Framer,
    decompressor: Decompressor,
    /// Where the next frame begins.
    offset: u64,
    failed: Option<Misbehaviour>,
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("version", &self.version)
            .field("offset", &self.offset)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

/// A frame, as it was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Where it begins: bytes of its direction before it.
    pub offset: u64,
    /// Its bytes on the wire, header included.
    pub wire_len: u32,
    /// What it is.
    pub content: Content,
}

/// What a frame is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// The head of a data frame. Its payload is not kept: it is the `len` bytes after the frame's header.
    Data {
        /// The stream.
        id: u32,
        /// Whether it is the sender's last frame on the stream.
        fin: bool,
        /// Whether the COMPRESS flag is set; see [`Head::Data`](crate::frame::Head::Data).
        compress: bool,
        /// Bytes of payload.
        len: u32,
    },
    /// A control frame.
    Control(Control<Block>),
}

/// An inflated header block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Bytes on the wire, compressed.
    pub wire_len: u32,
    /// Bytes after inflating.
    pub raw_len: u32,
    /// The pairs as they came, of a value with several parts each as a pair of its own; all that were read before
    /// `fault`.
    pub fields: Fields,
    /// Why the rest cannot be read: what an end of the connection would reset the stream with.
    pub fault: Option<Status>,
}

impl Decoder {
    /// A decoder of a direction that has carried nothing yet, with the limits that a session would keep.
    pub fn new(version: Version, limits: Limits) -> Self {
        let decompressor = Decompressor::new(version);
        Self { version, limits, framer: Framer::default(), decompressor, offset: 0, failed: None }
    }

    /// Takes what the direction carried next, cut anywhere. It is kept until [`poll_frame`](Self::poll_frame) reads it:
    /// poll before giving more.
    pub fn handle_input(&mut self, chunk: Chunk) {
        if self.failed.is_none() {
            self.framer.push(chunk);
        }
    }

    /// The next frame; `None` until there is more input. A data frame, and one of unknown type, comes as soon as its
    /// header is there, any other when it is whole. An error ends the decoding: it is given again from then on.
    pub fn poll_frame(&mut self) -> Result<Option<Frame>, Misbehaviour> {
        if let Some(why) = self.failed {
            return Err(why);
        }
        let frame = self.read();
        if let Err(why) = frame {
            self.failed = Some(why);
            self.framer.clear();
        }
        frame
    }

    /// Whether the input so far ends in the middle of a frame.
    pub fn is_amid_frame(&self) -> bool {
        self.framer.is_amid_frame()
    }

    fn read(&mut self) -> Result<Option<Frame>, Misbehaviour> {
        loop {
            let (content, len) = match self.framer.next(self.version, &self.limits)? {
                None => return Ok(None),
                Some(Piece::Payload { .. }) => continue,
                Some(Piece::Data { id, fin, compress, len }) => {
                    (Content::Data { id, fin, compress, len }, len)
                }
                Some(Piece::Control { frame, len }) => {
                    (Content::Control(frame.try_map(|compressed| self.inflate(&compressed))?), len)
                }
            };
            let wire_len = HEADER_LEN as u32 + len;
            let offset = self.offset;
            self.offset += u64::from(wire_len);
            return Ok(Some(Frame { offset, wire_len, content }));
        }
    }

    fn inflate(&mut self, compressed: &Bytes) -> Result<Block, Misbehaviour> {
        let raw = self.decompressor.inflate(compressed, &self.limits)?;
        let raw_len = raw.len() as u32;
        let mut fields = Fields::new();
        let read = block::parse(self.version, &raw, &self.limits, |name, value| fields.push(name, value));
        Ok(Block { wire_len: compressed.len() as u32, raw_len, fields, fault: read.err() })
    }
}

impl Frame {
    /// The header block, if it is a frame that has one.
    pub fn block(&self) -> Option<&Block> {
        match &self.content {
            Content::Control(
                Control::SynStream { block, .. }
                | Control::SynReply { block, .. }
                | Control::Headers { block, .. },
            ) => Some(block),
            _ => None,
        }
    }

    /// The fields of its header block, if it is a frame that has one.
    pub fn fields(&self) -> Option<&Fields> {
        self.block().map(|block| &block.fields)
    }
}

/// One line: the frame's name, then what differs from frame to frame as `key=value`, then flags. A header block is shown by
/// its size, `block=compressed/raw`; with `{:#}` its fields follow, one indented line each, with bytes that are not
/// printable ASCII escaped.
impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Content::Data { id, fin, compress, len } => {
                let (fin, compress) = (flag(*fin, "fin"), flag(*compress, "compress"));
                write!(f, "DATA id={id} len={len}{fin}{compress}")?;
            }
            Content::Control(frame) => control(frame, f)?,
        }
        let Some(block) = self.block() else { return Ok(()) };
        write!(f, " block={}/{}", block.wire_len, block.raw_len)?;
        if let Some(fault) = block.fault {
            write!(f, " unreadable={fault:?}")?;
        }
        if f.alternate() {
            for field in &block.fields {
                write!(f, "\n    {}: {}", field.name.escape_ascii(), field.value.escape_ascii())?;
            }
        }
        Ok(())
    }
}

fn flag(is_set: bool, name: &'static str) -> impl fmt::Display {
    fmt::from_fn(move |f| if is_set { write!(f, " {name}") } else { Ok(()) })
}

/// A number that is worth showing only if it is not 0.
fn unless_zero(name: &'static str, value: u32) -> impl fmt::Display {
    fmt::from_fn(move |f| if value != 0 { write!(f, " {name}={value}") } else { Ok(()) })
}

fn control(frame: &Control<Block>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match frame {
        Control::SynStream { id, associated, priority, slot, fin, unidirectional, .. } => {
            let (associated, slot) = (unless_zero("assoc", *associated), unless_zero("slot", (*slot).into()));
            let (fin, unidirectional) = (flag(*fin, "fin"), flag(*unidirectional, "unidirectional"));
            write!(f, "SYN_STREAM id={id}{associated} pri={}{slot}{fin}{unidirectional}", priority.level())
        }
        Control::SynReply { id, fin, .. } => write!(f, "SYN_REPLY id={id}{}", flag(*fin, "fin")),
        Control::Headers { id, fin, .. } => write!(f, "HEADERS id={id}{}", flag(*fin, "fin")),
        Control::RstStream { id, status } => write!(f, "RST_STREAM id={id} status={status:?}"),
        Control::Settings { clear, entries } => {
            write!(f, "SETTINGS{}", flag(*clear, "clear"))?;
            entries.iter().try_for_each(|entry| setting(entry, f))
        }
        Control::Noop => write!(f, "NOOP"),
        Control::Ping { id } => write!(f, "PING id={id}"),
        Control::GoAway { last_good_id, status } => write!(f, "GOAWAY last={last_good_id} status={status:?}"),
        Control::WindowUpdate { id, delta } => write!(f, "WINDOW_UPDATE id={id} delta={delta}"),
        Control::Credential { slot, proof, certificates } => {
            write!(f, "CREDENTIAL slot={slot} proof={} certificates={}", proof.len(), certificates.len())
        }
        Control::Unknown { kind, len } => write!(f, "UNKNOWN type={kind} len={len}"),
    }
}

fn setting(entry: &Setting, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match entry.name() {
        Some(name) => write!(f, " {name}={}", entry.value)?,
        None => write!(f, " {}={}", entry.id, entry.value)?,
    }
    match entry.flags {
        0 => Ok(()),
        Setting::PERSIST => write!(f, "(persist)"),
        Setting::PERSISTED => write!(f, "(persisted)"),
        other => write!(f, "(flags {other})"),
    }
}
