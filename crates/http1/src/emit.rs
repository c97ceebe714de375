//! Heads and bodies as they are sent.

use std::fmt::Write;

use base::{Chunk, ChunkQueue, Fields, RequestHead, ResponseHead};
use bytes::{BufMut, Bytes, BytesMut};

use crate::head::{elements, is_authority, is_target, is_token, is_value};
use crate::{CallerError, Framing, Stats};

/// The sending half of a connection: heads in, bodies in, one stream of chunks out.
#[derive(Default, Debug)]
pub(crate) struct Output {
    queue: ChunkQueue,
    /// Heads and chunk lines are written here and split off, so that one allocation serves many.
    scratch: BytesMut,
    body: Sending,
    pub stats: Stats,
}

/// The body being sent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Sending {
    /// None, or all of it is queued.
    #[default]
    Nothing,
    /// So many bytes are still to come.
    Length(u64),
    Chunked,
    /// As it comes, until the caller says it is over.
    Raw,
    /// The message has no body although one may be given, as to a HEAD; it goes nowhere.
    Discard,
}

impl Output {
    /// Whether the body of the last message is still to come, in part or in whole.
    pub fn is_sending(&self) -> bool {
        matches!(self.body, Sending::Length(_) | Sending::Chunked | Sending::Raw)
    }

    /// Whether everything queued has been taken.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes taken so far.
    pub fn taken(&self) -> u64 {
        self.stats.bytes_out - self.queue.len()
    }

    pub fn poll(&mut self, max: u64) -> Option<Chunk> {
        self.queue.pop(max)
    }

    /// Queues the head that `write` writes; nothing if it fails.
    pub fn head(
        &mut self,
        body: Framing,
        write: impl FnOnce(&mut BytesMut) -> Result<(), CallerError>,
    ) -> Result<(), CallerError> {
        self.scratch.reserve(512);
        if let Err(e) = write(&mut self.scratch) {
            self.scratch.clear();
            return Err(e);
        }
        self.stats.head_bytes_out += self.scratch.len() as u64;
        self.push_scratch();
        self.body = match body {
            Framing::Empty => Sending::Discard,
            Framing::Length(0) => Sending::Nothing,
            Framing::Length(n) => Sending::Length(n),
            Framing::Chunked => Sending::Chunked,
            Framing::UntilClose | Framing::Tunnel => Sending::Raw,
        };
        Ok(())
    }

    /// The body to come leads nowhere: the peer has answered for good, or the connection is over.
    pub fn discard_body(&mut self) {
        if self.is_sending() {
            self.body = Sending::Discard;
        }
    }

    /// What is sent from here on goes out as it is.
    pub fn tunnel(&mut self) {
        self.body = Sending::Raw;
    }

    pub fn body(&mut self, chunk: Chunk) -> Result<(), CallerError> {
        let len = chunk.len();
        if len == 0 {
            return Ok(());
        }
        match &mut self.body {
            Sending::Discard => return Ok(()),
            Sending::Nothing => return Err(CallerError::BodyTooLong),
            Sending::Length(left) if len > *left => return Err(CallerError::BodyTooLong),
            Sending::Length(left) => {
                *left -= len;
                if *left == 0 {
                    self.body = Sending::Nothing;
                }
                self.push(chunk);
            }
            Sending::Raw => self.push(chunk),
            Sending::Chunked => {
                let _ = write!(self.scratch, "{len:x}\r\n");
                self.push_scratch();
                self.push(chunk);
                self.push(Chunk::Bytes(Bytes::from_static(b"\r\n")));
            }
        }
        self.stats.body_bytes_out += len;
        Ok(())
    }

    pub fn finish(&mut self) -> Result<(), CallerError> {
        match self.body {
            Sending::Nothing | Sending::Discard => return Ok(()),
            Sending::Length(missing) => return Err(CallerError::BodyTooShort { missing }),
            Sending::Raw => {}
            Sending::Chunked => self.push(Chunk::Bytes(Bytes::from_static(b"0\r\n\r\n"))),
        }
        self.body = Sending::Nothing;
        Ok(())
    }

    fn push_scratch(&mut self) {
        let bytes = self.scratch.split().freeze();
        self.push(Chunk::Bytes(bytes));
    }

    fn push(&mut self, chunk: Chunk) {
        self.stats.bytes_out += chunk.len();
        self.queue.push(chunk);
    }
}

/// A request's head; `Host` first, as RFC 9110 §7.2 asks.
pub(crate) fn request(out: &mut BytesMut, head: &RequestHead, framing: Framing) -> Result<(), CallerError> {
    let connect = head.method == "CONNECT";
    let target = if connect { &head.authority } else { &head.path };
    let is_path = connect || head.path.starts_with(b"/") || (head.path == "*" && head.method == "OPTIONS");
    if !is_token(&head.method) || !is_path || !is_target(target) || !is_authority(&head.authority) {
        return Err(CallerError::BadRequestLine);
    }
    put(out, &[&head.method, b" ", target, b" HTTP/1.1\r\nHost: ", &head.authority, b"\r\n"]);
    fields(out, &head.fields, |name| is_framing(name) || name.eq_ignore_ascii_case(b"host"))?;
    if head.fields.get("upgrade").is_some() && !has_option(&head.fields, "upgrade") {
        out.put_slice(b"Connection: Upgrade\r\n");
    }
    match framing {
        Framing::Length(_) | Framing::Chunked => announce(out, framing),
        // RFC 9110 §8.6: say so where the method makes one expect a body.
        _ if matches!(&head.method[..], b"POST" | b"PUT" | b"PATCH") => {
            out.put_slice(b"Content-Length: 0\r\n")
        }
        _ => {}
    }
    out.put_slice(b"\r\n");
    Ok(())
}

/// A response's head. `announced` is the framing that it states, which to a HEAD is that of a body that does not
/// follow; `connection` is what it says about the connection instead of what its fields say.
pub(crate) fn response(
    out: &mut BytesMut,
    head: &ResponseHead,
    announced: Framing,
    connection: Option<&'static str>,
) -> Result<(), CallerError> {
    let _ = write!(out, "HTTP/1.1 {:03} {}\r\n", head.status, reason(head.status));
    fields(out, &head.fields, |name| is_framing(name) || (connection.is_some() && is_connection(name)))?;
    announce(out, announced);
    if let Some(option) = connection {
        put(out, &[b"Connection: ", option.as_bytes(), b"\r\n"]);
    }
    out.put_slice(b"\r\n");
    Ok(())
}

/// Whether the fields' `Connection` has this option.
pub(crate) fn has_option(fields: &Fields, option: &str) -> bool {
    fields
        .iter()
        .filter(|f| f.name.eq_ignore_ascii_case(b"connection"))
        .any(|f| elements(&f.value).any(|o| o.eq_ignore_ascii_case(option.as_bytes())))
}

/// How a message is framed is ours to say: two opinions are what smuggling is made of.
fn is_framing(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"content-length") || name.eq_ignore_ascii_case(b"transfer-encoding")
}

fn is_connection(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"connection") || name.eq_ignore_ascii_case(b"keep-alive")
}

fn announce(out: &mut BytesMut, framing: Framing) {
    match framing {
        Framing::Length(n) => {
            let _ = write!(out, "Content-Length: {n}\r\n");
        }
        Framing::Chunked => out.put_slice(b"Transfer-Encoding: chunked\r\n"),
        _ => {}
    }
}

/// The fields in order, but for those of which `skip` is true.
fn fields(out: &mut BytesMut, fields: &Fields, skip: impl Fn(&[u8]) -> bool) -> Result<(), CallerError> {
    for field in fields.iter().filter(|f| !skip(&f.name)) {
        if !is_token(&field.name) || !is_value(&field.value) {
            return Err(CallerError::BadField);
        }
        put(out, &[&field.name, b": ", &field.value, b"\r\n"]);
    }
    Ok(())
}

fn put(out: &mut BytesMut, parts: &[&[u8]]) {
    for part in parts {
        out.put_slice(part);
    }
}

/// The reason phrase (RFC 9110 §15); empty for a status not listed there.
fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        305 => "Use Proxy",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}
