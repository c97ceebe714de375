//! Heads: where one ends, and what its lines say (RFC 9112 §2–§5).
//!
//! A head is looked at twice. [`Lines`] finds its end as bytes arrive, each byte once however they are cut, and
//! notes where its lines end; a head that arrived in one piece is never copied. Then the lines are read, and
//! what decides framing and persistence goes to [`Meta`] instead of the fields.
//!
//! The parser is our own because finding the end already yields the lines, and because the libraries for it end a
//! line at a bare LF, which a server had better not.

use base::{Field, Fields};
use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;
use std::ops::Range;

use crate::{Limits, PeerError};

/// What [`Lines`] collects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    /// A first line, fields and an empty line; empty lines before it are skipped (RFC 9112 §2.2).
    Head,
    /// Fields and an empty line.
    Trailers,
    /// One line.
    ChunkLine,
}

/// Collects the lines of one section.
#[derive(Default, Debug)]
pub(crate) struct Lines {
    /// The section so far, if it began in an earlier input.
    buf: BytesMut,
    /// Where each line ends, just past its LF. Offsets here count from the section's first byte.
    ends: Vec<usize>,
    /// Where the line begins that has not ended.
    open: usize,
    /// Where the first line begins, after the empty lines skipped.
    start: usize,
    /// Whether the section is complete and the next one begins afresh.
    done: bool,
    /// Room for the fields until their number is known, so that they are allocated once.
    fields: Vec<Field>,
}

impl Lines {
    /// Whether a section has begun and not ended; empty lines before a head begin nothing.
    pub fn is_open(&self) -> bool {
        !self.done && self.buf.len() > self.start
    }

    /// Takes the rest of a section from `input`; `None`, and `input` empty, if it does not end there.
    pub fn take(
        &mut self,
        input: &mut Bytes,
        section: Section,
        limits: &Limits,
        strict: bool,
    ) -> Result<Option<Bytes>, PeerError> {
        if self.done {
            self.ends.clear();
            (self.open, self.start, self.done) = (0, 0, false);
        }
        let before = self.buf.len();
        let (max, max_lines) = match section {
            Section::Head => (limits.head_bytes, limits.fields.saturating_add(1)),
            Section::Trailers => (limits.trailer_bytes, limits.fields),
            Section::ChunkLine => (limits.chunk_line_bytes, 1),
        };
        let mut from = 0;
        while let Some(found) = memchr(b'\n', &input[from..]) {
            let (lf, at) = (from + found, before + from + found);
            if at >= max {
                return Err(self.too_long(section));
            }
            let cr = if lf > 0 { input[lf - 1] == b'\r' } else { self.buf.last() == Some(&b'\r') };
            if strict && !cr {
                return Err(PeerError::BareLf);
            }
            let empty = at - usize::from(cr) == self.open;
            self.open = at + 1;
            from = lf + 1;
            if empty && section == Section::Head && self.ends.is_empty() {
                self.start = self.open;
                continue;
            }
            if !empty || section == Section::ChunkLine {
                if self.ends.len() == max_lines {
                    return Err(PeerError::TooManyFields);
                }
                self.ends.push(self.open);
            }
            if empty || section == Section::ChunkLine {
                self.done = true;
                return Ok(Some(self.cut(input, from)));
            }
        }
        if before + input.len() >= max {
            return Err(self.too_long(section));
        }
        self.buf.extend_from_slice(input);
        input.clear();
        Ok(None)
    }

    /// The section that ends `n` bytes into `input`.
    fn cut(&mut self, input: &mut Bytes, n: usize) -> Bytes {
        if self.buf.is_empty() {
            return input.split_to(n);
        }
        self.buf.extend_from_slice(&input[..n]);
        input.advance(n);
        self.buf.split().freeze()
    }

    fn too_long(&self, section: Section) -> PeerError {
        match section {
            Section::Head if self.ends.is_empty() => PeerError::StartLineTooLong,
            Section::Head => PeerError::HeadTooLarge,
            Section::Trailers => PeerError::TrailersTooLarge,
            Section::ChunkLine => PeerError::ChunkLineTooLong,
        }
    }

    /// Bytes of the empty lines before the section.
    pub fn skipped(&self) -> usize {
        self.start
    }

    /// Where line `i` of the complete section `head` lies, without its end.
    pub fn line(&self, head: &[u8], i: usize) -> Range<usize> {
        let start = if i == 0 { self.start } else { self.ends[i - 1] };
        let end = self.ends[i] - 1;
        start..end - usize::from(end > start && head[end - 1] == b'\r')
    }

    /// Reads the fields of the complete section `head` from line `first` on. The fields that a connection owns
    /// (RFC 9110 §7.6.1) and `Host` become [`Meta`]; `Content-Length` and `Upgrade` are in both.
    pub fn fields(&mut self, head: &Bytes, first: usize, strict: bool) -> Result<(Fields, Meta), PeerError> {
        let mut meta = Meta::default();
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        let is_blank = |i| self.ends.len() > i && matches!(head[self.ends[i - 1]], b' ' | b'\t');
        let mut i = first;
        while i < self.ends.len() {
            let begun = i;
            i += 1;
            while is_blank(i) {
                i += 1;
            }
            let field = if i == begun + 1 {
                let line = self.line(head, begun);
                let (name, value) = split_field(&head[line.clone()], strict)?;
                field(head, line.start, name, value)
            } else if strict {
                return Err(PeerError::FoldedField);
            } else {
                let line = self.unfold(head, begun..i);
                let (name, value) = split_field(&line, strict)?;
                field(&line, 0, name, value)
            };
            if meta.note(&field.name, &field.value) {
                fields.push(field);
            }
        }
        let all = fields.drain(..).collect();
        self.fields = fields;
        Ok((all, meta))
    }

    /// The lines as one, a blank in place of each fold (RFC 9112 §5.2).
    fn unfold(&self, head: &[u8], lines: Range<usize>) -> Bytes {
        let mut out = Vec::new();
        for i in lines {
            out.extend_from_slice(&head[self.line(head, i)]);
            out.push(b' ');
        }
        out.into()
    }
}

fn field(source: &Bytes, at: usize, name: usize, value: Range<usize>) -> Field {
    Field { name: source.slice(at..at + name), value: source.slice(at + value.start..at + value.end) }
}

/// The length of the name and the place of the value in a field line (RFC 9112 §5).
fn split_field(line: &[u8], strict: bool) -> Result<(usize, Range<usize>), PeerError> {
    let name = line.iter().position(|b| !is_token_byte(*b)).ok_or(PeerError::BadField)?;
    let mut colon = name;
    if !strict {
        while matches!(line.get(colon), Some(b' ' | b'\t')) {
            colon += 1;
        }
    }
    if name == 0 || line.get(colon) != Some(&b':') {
        return Err(PeerError::BadField);
    }
    let rest = &line[colon + 1..];
    // Before trimming, which would hide a stray CR at the end.
    if !is_value(rest) {
        return Err(PeerError::BadField);
    }
    let start = line.len() - rest.trim_ascii_start().len();
    let value = rest.trim_ascii();
    Ok((name, start..start + value.len()))
}

/// HTTP/1.0 or a later 1.x, which is read as 1.1 (RFC 9110 §2.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Version {
    Http10,
    Http11,
}

fn version(text: &[u8]) -> Result<Version, PeerError> {
    match text {
        b"HTTP/1.1" => Ok(Version::Http11),
        b"HTTP/1.0" => Ok(Version::Http10),
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0'..=b'9'] => Ok(Version::Http11),
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => Err(PeerError::BadVersion),
        _ => Err(PeerError::BadStartLine),
    }
}

/// Method, target and version of a request line: exactly two blanks (RFC 9112 §3).
pub(crate) fn request_line(line: &Bytes) -> Result<(Bytes, Bytes, Version), PeerError> {
    let first = memchr(b' ', line).ok_or(PeerError::BadStartLine)?;
    let second = first + 1 + memchr(b' ', &line[first + 1..]).ok_or(PeerError::BadStartLine)?;
    let (method, target) = (line.slice(..first), line.slice(first + 1..second));
    if !is_token(&method) || !is_target(&target) {
        return Err(PeerError::BadStartLine);
    }
    Ok((method, target, version(&line[second + 1..])?))
}

/// Version and status of a status line (RFC 9112 §4). The reason may be missing, and the blank before it.
pub(crate) fn status_line(line: &[u8]) -> Result<(Version, u16), PeerError> {
    let (text, rest) = line.split_at_checked(8).ok_or(PeerError::BadStartLine)?;
    let version = version(text)?;
    match rest {
        [b' ', a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', reason @ ..]
            if matches!(reason, [] | [b' ', ..]) && is_value(reason) =>
        {
            let digit = |d: &u8| u16::from(d - b'0');
            Ok((version, digit(a) * 100 + digit(b) * 10 + digit(c)))
        }
        _ => Err(PeerError::BadStartLine),
    }
}

/// What a head says about the message and the connection.
#[derive(Default, Debug)]
pub(crate) struct Meta {
    pub length: Length,
    /// Whether there is a `Transfer-Encoding`.
    pub coded: bool,
    /// How often it says chunked.
    chunked: u32,
    /// Whether chunked is its last coding.
    chunked_last: bool,
    /// Whether it has another coding.
    pub other_coding: bool,
    /// Options of `Connection`.
    pub close: bool,
    pub keep_alive: bool,
    pub upgrade_option: bool,
    /// Whether there is an `Upgrade`.
    pub upgrade: bool,
    pub host: Option<Bytes>,
    pub hosts: u32,
    pub expects_continue: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Length {
    #[default]
    Absent,
    Is(u64),
    Invalid,
}

impl Meta {
    /// Whether the body is chunked, and properly so: once and last (RFC 9112 §6.1).
    pub fn is_chunked(&self) -> bool {
        self.chunked == 1 && self.chunked_last
    }

    /// Whether chunked occurs where it must not: twice.
    pub fn is_chunked_twice(&self) -> bool {
        self.chunked > 1
    }

    /// Takes note of a field; whether it also belongs to the message above.
    fn note(&mut self, name: &[u8], value: &Bytes) -> bool {
        match name.len() {
            2 if name.eq_ignore_ascii_case(b"te") => return false,
            4 if name.eq_ignore_ascii_case(b"host") => {
                self.host = Some(value.clone());
                self.hosts += 1;
                return false;
            }
            6 if name.eq_ignore_ascii_case(b"expect") => {
                self.expects_continue |= value.eq_ignore_ascii_case(b"100-continue");
            }
            7 if name.eq_ignore_ascii_case(b"upgrade") => self.upgrade = true,
            10 if name.eq_ignore_ascii_case(b"connection") => {
                self.note_options(value);
                return false;
            }
            10 if name.eq_ignore_ascii_case(b"keep-alive") => return false,
            14 if name.eq_ignore_ascii_case(b"content-length") => self.note_length(value),
            16 if name.eq_ignore_ascii_case(b"proxy-connection") => return false,
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                self.note_codings(value);
                // Another coding than chunked is for the caller to undo, who must see it.
                return self.other_coding;
            }
            _ => {}
        }
        true
    }

    fn note_options(&mut self, value: &[u8]) {
        for option in elements(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            self.upgrade_option |= option.eq_ignore_ascii_case(b"upgrade");
        }
    }

    /// A list is accepted if its members are the same number (RFC 9112 §6.3, fifth rule).
    fn note_length(&mut self, value: &[u8]) {
        for element in elements(value) {
            self.length = match (self.length, decimal(element)) {
                (Length::Absent, Some(n)) => Length::Is(n),
                (Length::Is(old), Some(n)) if old == n => self.length,
                _ => Length::Invalid,
            };
        }
    }

    fn note_codings(&mut self, value: &[u8]) {
        self.coded = true;
        for coding in elements(value).filter(|c| !c.is_empty()) {
            self.chunked_last = coding.eq_ignore_ascii_case(b"chunked");
            self.chunked += u32::from(self.chunked_last);
            self.other_coding |= !self.chunked_last;
        }
    }
}

/// The members of a list (RFC 9110 §5.6.1), empty ones too.
pub(crate) fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|b| *b == b',').map(<[u8]>::trim_ascii)
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |n, d| {
        d.is_ascii_digit().then_some(())?;
        n.checked_mul(10)?.checked_add(u64::from(d - b'0'))
    })
}

/// `tchar` of RFC 9110 §5.6.2.
const fn is_tchar(b: u8) -> bool {
    b.is_ascii_alphanumeric()
        || matches!(
            b,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

static TCHAR: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 256 {
        table[b] = is_tchar(b as u8);
        b += 1;
    }
    table
};

fn is_token_byte(b: u8) -> bool {
    TCHAR[b as usize]
}

/// A non-empty token.
pub(crate) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|b| is_token_byte(*b))
}

/// No control byte but the tab (RFC 9110 §5.5). Looks at every byte, since that vectorises and a search does not.
pub(crate) fn is_value(text: &[u8]) -> bool {
    !text.iter().fold(false, |bad, &b| bad | (((b < 0x20) & (b != b'\t')) | (b == 0x7f)))
}

/// Not empty, no blank and no control byte. More is for whoever looks the resource up.
pub(crate) fn is_target(text: &[u8]) -> bool {
    !text.is_empty() & !text.iter().fold(false, |bad, &b| bad | (b <= b' ') | (b == 0x7f))
}

/// Host and port, or nothing (RFC 9110 §7.2): the bytes that may stand in them, not their grammar.
pub(crate) fn is_authority(text: &[u8]) -> bool {
    text.iter().all(|b| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%:[]".contains(b))
}
