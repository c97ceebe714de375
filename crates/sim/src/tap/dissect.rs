//! One direction of a connection, read as Wireshark would: TLS records (RFC 5246 §6.2, RFC 8446 §5) and the messages of their
//! handshake, then HTTP/1.1 or SPDY. Bytes come in pieces of any size, and bodies as ranges that nobody looks into.
//!
//! In this world what is protected is not enciphered, so that the inside of a protected record can be read, behind the nonce of TLS 1.2.

use base::Chunk;
use load::Carried;
use spdy::frame::{HEADER_LEN as FRAME_HEADER, Head, kind};

use super::Speaks;

const RECORD_HEADER: usize = 5;
const MESSAGE_HEADER: usize = 4;
/// Bytes of TLS 1.2's explicit nonce, and of AES-GCM's tag (RFC 5288 §3).
const NONCE: u64 = 8;
const TAG: u64 = 16;

/// Types of records.
const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

/// A part of a stream, by its offsets.
#[derive(Clone, Copy)]
struct Mark {
    from: u64,
    to: u64,
    what: Carried,
}

/// What the bytes so far were.
#[derive(Default)]
struct Marks {
    /// Bytes read.
    offset: u64,
    all: Vec<Mark>,
}

/// One direction of a connection.
pub(super) struct Stream {
    marks: Marks,
    /// `None` in the clear.
    records: Option<Records>,
    application: Application,
}

/// Some bytes of a stream, or a range of a body.
#[derive(Clone, Copy)]
enum Piece<'a> {
    Bytes(&'a [u8]),
    Range(u64),
}

impl<'a> Piece<'a> {
    fn len(self) -> u64 {
        match self {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::Range(len) => len,
        }
    }

    /// At most `n` from its front, and the rest.
    fn split(self, n: u64) -> (Self, Self) {
        let n = n.min(self.len());
        match self {
            Piece::Bytes(bytes) => {
                let (front, rest) = bytes.split_at(n as usize);
                (Piece::Bytes(front), Piece::Bytes(rest))
            }
            Piece::Range(len) => (Piece::Range(n), Piece::Range(len - n)),
        }
    }

    fn bytes(self) -> &'a [u8] {
        match self {
            Piece::Bytes(bytes) => bytes,
            Piece::Range(_) => &[],
        }
    }
}

impl Marks {
    /// The next `len` bytes are of this: of a new one, or more of the last.
    fn note(&mut self, what: Carried, len: u64, is_new: bool) {
        let (from, to) = (self.offset, self.offset + len);
        self.offset = to;
        match self.all.last_mut() {
            Some(last) if last.what == what && !is_new => last.to = to,
            _ => self.all.push(Mark { from, to, what }),
        }
    }

    /// The next `len` bytes are nothing worth a name.
    fn skip(&mut self, len: u64) {
        self.offset += len;
    }
}

impl Stream {
    pub fn new(up: bool, speaks: Speaks) -> Self {
        let application = match (speaks.spdy, up) {
            (true, _) => Application::Spdy(Frames::default()),
            (false, true) => Application::Requests { open: false, ends: 0 },
            (false, false) => Application::Responses { in_head: false, matched: 0 },
        };
        Self { marks: Marks::default(), records: speaks.tls13.map(Records::new), application }
    }

    pub fn feed(&mut self, chunk: &Chunk) {
        let mut piece = match chunk {
            Chunk::Bytes(bytes) => Piece::Bytes(bytes),
            Chunk::Body(range) => Piece::Range(range.len),
        };
        match &mut self.records {
            None => self.application.feed(&mut self.marks, piece),
            Some(records) => {
                while piece.len() > 0 {
                    let (front, rest) = piece.split(records.wants(piece));
                    records.step(&mut self.marks, &mut self.application, front);
                    piece = rest;
                }
            }
        }
    }

    /// What the bytes `from..to` have a part of.
    pub fn carried(&self, from: u64, to: u64) -> Vec<Carried> {
        let first = self.marks.all.partition_point(|mark| mark.to <= from);
        self.marks.all[first..].iter().take_while(|mark| mark.from < to).map(|mark| mark.what).collect()
    }
}

/// A header that is not all there yet.
#[derive(Clone, Copy)]
struct Partial<const N: usize> {
    bytes: [u8; N],
    have: usize,
}

impl<const N: usize> Default for Partial<N> {
    fn default() -> Self {
        Self { bytes: [0; N], have: 0 }
    }
}

impl<const N: usize> Partial<N> {
    fn missing(&self) -> u64 {
        (N - self.have) as u64
    }

    /// Takes no more than is missing; the header once it is whole.
    fn take(&mut self, piece: Piece<'_>) -> Option<[u8; N]> {
        if let Piece::Bytes(bytes) = piece {
            self.bytes[self.have..self.have + bytes.len()].copy_from_slice(bytes);
        }
        self.have += piece.len() as usize;
        (self.have == N).then(|| std::mem::take(self).bytes)
    }
}

/// The record layer.
struct Records {
    tls13: bool,
    /// TLS 1.2: what follows is protected.
    sealed: bool,
    at: At,
    /// The handshake message that has begun: its header, what it is, and the bytes that are to come of it.
    header: Partial<MESSAGE_HEADER>,
    message: Option<Carried>,
    message_left: u64,
}

/// Where in a record.
enum At {
    Header(Partial<RECORD_HEADER>),
    Nonce { left: u64, record: Record },
    Content(Record),
    After { left: u64 },
}

/// What is known of a record's inside.
#[derive(Clone, Copy)]
struct Record {
    /// `None` until the first byte of what TLS 1.3 protects is there.
    kind: Option<Inside>,
    left: u64,
    /// Bytes between its content and the next record.
    after: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Inside {
    Handshake,
    ChangeCipherSpec,
    Alert,
    Data,
}

impl Records {
    fn new(tls13: bool) -> Self {
        let (header, message) = (Partial::default(), None);
        Self { tls13, sealed: false, at: At::Header(Partial::default()), header, message, message_left: 0 }
    }

    /// How much of `piece` the next step takes: not beyond what begins next.
    fn wants(&self, piece: Piece<'_>) -> u64 {
        match &self.at {
            At::Header(header) => header.missing(),
            At::Nonce { left, .. } | At::After { left } => *left,
            At::Content(record) => match self.inside(record, piece) {
                Inside::Handshake if self.message_left > 0 => record.left.min(self.message_left),
                Inside::Handshake => record.left.min(self.header.missing()),
                _ => record.left,
            },
        }
    }

    /// What a record has inside. TLS 1.3 says it behind the content: here its first byte tells, which is the type of a message in the
    /// handshake (RFC 8446 §4), and in the first byte of a head or frame is not.
    fn inside(&self, record: &Record, piece: Piece<'_>) -> Inside {
        record.kind.unwrap_or_else(|| match piece.bytes().first() {
            Some(4 | 5 | 8 | 11 | 15 | 20) => Inside::Handshake,
            _ => Inside::Data,
        })
    }

    fn step(&mut self, marks: &mut Marks, application: &mut Application, piece: Piece<'_>) {
        match &mut self.at {
            At::Header(header) => {
                marks.skip(piece.len());
                if let Some(header) = header.take(piece) {
                    self.begin(application, header);
                }
            }
            At::Nonce { left, record } => {
                marks.skip(piece.len());
                *left -= piece.len();
                if *left == 0 {
                    self.at = At::Content(*record);
                }
            }
            At::Content(record) => {
                let mut record = *record;
                let inside = self.inside(&record, piece);
                record.kind = Some(inside);
                record.left -= piece.len();
                match inside {
                    Inside::Data => application.feed(marks, piece),
                    Inside::Alert => marks.note(Carried::Alert, piece.len(), true),
                    Inside::ChangeCipherSpec => {
                        self.sealed = !self.tls13;
                        marks.note(Carried::Handshake(tls::Message::ChangeCipherSpec), piece.len(), true);
                    }
                    Inside::Handshake => self.handshake(marks, piece),
                }
                self.at = match (record.left, record.after) {
                    (0, 0) => At::Header(Partial::default()),
                    (0, left) => At::After { left },
                    _ => At::Content(record),
                };
            }
            At::After { left } => {
                marks.skip(piece.len());
                *left -= piece.len();
                if *left == 0 {
                    self.at = At::Header(Partial::default());
                }
            }
        }
    }

    /// A record begins.
    fn begin(&mut self, application: &Application, header: [u8; RECORD_HEADER]) {
        let len = u64::from(u16::from_be_bytes([header[3], header[4]]));
        let kind = match header[0] {
            CHANGE_CIPHER_SPEC => Some(Inside::ChangeCipherSpec),
            ALERT => Some(Inside::Alert),
            HANDSHAKE => Some(Inside::Handshake),
            // In the middle of a frame or head any byte may be the first.
            _ if self.tls13 && !application.is_amid() => None,
            _ => Some(Inside::Data),
        };
        let sealed =
            if self.tls13 { !matches!(header[0], CHANGE_CIPHER_SPEC | HANDSHAKE) } else { self.sealed };
        let (before, after) = match (sealed, self.tls13) {
            (false, _) => (0, 0),
            (true, true) => (0, 1 + TAG),
            (true, false) => (NONCE, TAG),
        };
        let record = Record { kind, left: len.saturating_sub(before + after), after };
        self.at = match before {
            0 if len == 0 => At::Header(Partial::default()),
            0 => At::Content(record),
            left => At::Nonce { left, record },
        };
    }

    fn handshake(&mut self, marks: &mut Marks, piece: Piece<'_>) {
        if self.message_left > 0 {
            self.message_left -= piece.len();
            return match self.message {
                Some(what) => marks.note(what, piece.len(), false),
                None => marks.skip(piece.len()),
            };
        }
        let is_new = self.header.have == 0;
        if is_new {
            let kind = piece.bytes().first().copied();
            self.message = kind.and_then(tls::Message::of_wire_type).map(Carried::Handshake);
        }
        match self.message {
            Some(what) => marks.note(what, piece.len(), is_new),
            None => marks.skip(piece.len()),
        }
        if let Some([_, a, b, c]) = self.header.take(piece) {
            self.message_left = u64::from(u32::from_be_bytes([0, a, b, c]));
        }
    }
}

/// What is above TLS, or above TCP.
enum Application {
    /// HTTP/1.1 from the client: whether a request is open, and bytes of the empty line that ends its head.
    Requests {
        open: bool,
        ends: usize,
    },
    /// HTTP/1.1 from the server: within a head, the same; within a body, bytes of what begins a head.
    Responses {
        in_head: bool,
        matched: usize,
    },
    Spdy(Frames),
}

/// Frames of SPDY.
#[derive(Default)]
struct Frames {
    header: Partial<FRAME_HEADER>,
    what: Option<Carried>,
    left: u64,
}

const END_OF_HEAD: &[u8] = b"\r\n\r\n";
const STATUS_LINE: &[u8] = b"HTTP/";

/// How many bytes of `pattern` are matched after one more. All patterns here begin anew with their first byte alone.
fn matched(pattern: &[u8], so_far: usize, byte: u8) -> usize {
    if byte == pattern[so_far] { so_far + 1 } else { usize::from(byte == pattern[0]) }
}

impl Application {
    /// Whether something has begun that is not at its end.
    fn is_amid(&self) -> bool {
        match self {
            Application::Requests { open, .. } => *open,
            Application::Responses { in_head, .. } => *in_head,
            Application::Spdy(frames) => frames.left > 0 || frames.header.have > 0,
        }
    }

    fn feed(&mut self, marks: &mut Marks, piece: Piece<'_>) {
        match self {
            Application::Requests { open, ends } => requests(marks, piece, open, ends),
            Application::Responses { in_head, matched } => responses(marks, piece, in_head, matched),
            Application::Spdy(frames) => frames.feed(marks, piece),
        }
    }
}

fn requests(marks: &mut Marks, piece: Piece<'_>, open: &mut bool, ends: &mut usize) {
    if let Piece::Range(len) = piece {
        return marks.note(Carried::Request, len, false); // its body
    }
    for byte in piece.bytes() {
        marks.note(Carried::Request, 1, !*open);
        *open = true;
        *ends = matched(END_OF_HEAD, *ends, *byte);
        if *ends == END_OF_HEAD.len() {
            (*open, *ends) = (false, 0);
        }
    }
}

fn responses(marks: &mut Marks, piece: Piece<'_>, in_head: &mut bool, so_far: &mut usize) {
    if let Piece::Range(len) = piece {
        (*in_head, *so_far) = (false, 0);
        return marks.note(Carried::Body, len, false);
    }
    for byte in piece.bytes() {
        if *in_head {
            marks.note(Carried::ResponseHead, 1, false);
            *so_far = matched(END_OF_HEAD, *so_far, *byte);
            if *so_far == END_OF_HEAD.len() {
                (*in_head, *so_far) = (false, 0);
            }
            continue;
        }
        *so_far = matched(STATUS_LINE, *so_far, *byte);
        if *so_far == 0 {
            marks.note(Carried::Body, 1, false); // what frames a body of pieces
        } else {
            // It looks like a status line; what frames a body has no such letters.
            marks.note(Carried::ResponseHead, 1, *so_far == 1);
        }
        if *so_far == STATUS_LINE.len() {
            (*in_head, *so_far) = (true, 0);
        }
    }
}

impl Frames {
    fn feed(&mut self, marks: &mut Marks, mut piece: Piece<'_>) {
        while piece.len() > 0 {
            let is_header = self.left == 0;
            let (front, rest) = piece.split(if is_header { self.header.missing() } else { self.left });
            piece = rest;
            if !is_header {
                self.left -= front.len();
                marks.note(self.what.unwrap_or(Carried::Control), front.len(), false);
                continue;
            }
            let Some(header) = self.header.take(front) else {
                marks.skip(front.len()); // what it is its whole header says
                continue;
            };
            let (what, len) = match Head::parse(header) {
                Head::Data { len, .. } => (Carried::Body, len),
                Head::Control { kind: kind::SYN_STREAM, len, .. } => (Carried::Request, len),
                Head::Control { kind: kind::SYN_REPLY, len, .. } => (Carried::ResponseHead, len),
                Head::Control { len, .. } => (Carried::Control, len),
            };
            marks.offset -= FRAME_HEADER as u64 - front.len(); // it is of the frame from its first byte
            marks.note(what, FRAME_HEADER as u64, matches!(what, Carried::Request | Carried::ResponseHead));
            (self.what, self.left) = (Some(what), u64::from(len));
        }
    }
}

#[cfg(test)]
mod tests;
