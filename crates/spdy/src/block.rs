//! The name/value header block (SPDY/3.1 §2.6.10): a count, then pairs of length-prefixed names and values. All
//! integers are 32 bits wide in version 3 and 16 in version 2.

use std::collections::BTreeSet;

use base::Fields;
use bytes::Bytes;

use crate::{BadHead, Limits, Status, Version};

/// What compression may do with a piece of a block; see [`crate::Policy::CookiesApart`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Shared,
    Private,
    Cookie,
}

/// Fields whose values are no secret and do not repeat what a request said. Requests: Chrome's list. Responses, which
/// Chrome never sent: those that describe the resource and the server; not `location`, `set-cookie` and whatever an
/// application may put a token in.
#[rustfmt::skip]
const SHARED: [&[u8]; 31] = [
    b":host", b":method", b":scheme", b":status", b":version", b"accept", b"accept-charset", b"accept-encoding",
    b"accept-language", b"accept-ranges", b"age", b"cache-control", b"content-encoding", b"content-language",
    b"content-length", b"content-type", b"date", b"expires", b"host", b"last-modified", b"method", b"p3p", b"pragma",
    b"scheme", b"server", b"status", b"user-agent", b"vary", b"version", b"via", b"x-powered-by",
];

/// A block under construction; its memory is used again for the next.
#[derive(Default)]
pub(crate) struct Block {
    wide: bool,
    count: usize,
    bytes: Vec<u8>,
    /// Where each piece ends, in order; neighbours differ in class.
    pieces: Vec<(usize, Class)>,
}

impl Block {
    /// Begins a block.
    pub(crate) fn start(&mut self, version: Version) {
        self.wide = version != Version::V2;
        self.count = 0;
        self.bytes.clear();
        self.pieces.clear();
        self.bytes.resize(self.width(), 0);
    }

    /// Appends a pair; several values are joined with NUL. The name is made lower-case.
    pub(crate) fn pair<'a>(
        &mut self,
        name: &[u8],
        values: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), BadHead> {
        self.number(name.len())?;
        let name_at = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.bytes[name_at..].make_ascii_lowercase();
        let name = &self.bytes[name_at..];
        if !is_name(name) {
            return Err(BadHead::Name);
        }
        let class = match name {
            b"cookie" => Class::Cookie,
            name if SHARED.contains(&name) => Class::Shared,
            _ => Class::Private,
        };
        let length_at = self.bytes.len();
        self.number(0)?;
        let value_at = self.bytes.len();
        for value in values {
            if !is_value(value) || holds(value, 0) {
                return Err(BadHead::Value);
            }
            // Neither end of a value is NUL, and no part but a sole one is empty.
            if self.bytes.len() > value_at && !value.is_empty() {
                self.bytes.push(0);
            }
            self.bytes.extend_from_slice(value);
        }
        let end = self.bytes.len();
        self.patch(length_at, end - value_at)?;
        self.piece(value_at, Class::Shared);
        self.piece(end, class);
        self.count += 1;
        Ok(())
    }

    /// Appends the fields that `keep` lets pass, all of one name as one pair, in the place of the first.
    pub(crate) fn fields(
        &mut self,
        fields: &Fields,
        keep: impl Fn(&[u8]) -> Result<bool, BadHead>,
    ) -> Result<(), BadHead> {
        for (i, field) in fields.iter().enumerate() {
            let same = |other: &&base::Field| other.name.eq_ignore_ascii_case(&field.name);
            if !keep(&field.name)? || fields.iter().take(i).any(|f| same(&f)) {
                continue;
            }
            self.pair(&field.name, fields.iter().skip(i).filter(same).map(|f| &f.value[..]))?;
        }
        Ok(())
    }

    /// Ends the block.
    pub(crate) fn finish(&mut self) -> Result<(), BadHead> {
        // Fixed codes make nine bits of some bytes, and the frame must hold the result.
        if self.bytes.len() > (1 << 24) / 8 * 7 {
            return Err(BadHead::TooLarge);
        }
        let end = self.bytes.len();
        self.piece(end, Class::Shared);
        self.patch(0, self.count)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The block cut by class.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (Class, &[u8])> {
        let starts = std::iter::once(0).chain(self.pieces.iter().map(|(end, _)| *end));
        starts.zip(&self.pieces).map(|(start, (end, class))| (*class, &self.bytes[start..*end]))
    }

    fn piece(&mut self, end: usize, class: Class) {
        match self.pieces.last_mut() {
            Some(last) if last.1 == class || last.0 == end => last.0 = end,
            _ => self.pieces.push((end, class)),
        }
    }

    fn width(&self) -> usize {
        if self.wide { 4 } else { 2 }
    }

    fn number(&mut self, n: usize) -> Result<(), BadHead> {
        let at = self.bytes.len();
        self.bytes.resize(at + self.width(), 0);
        self.patch(at, n)
    }

    fn patch(&mut self, at: usize, n: usize) -> Result<(), BadHead> {
        // A frame cannot carry more than 2^24 − 1 bytes, whatever the lengths could say.
        let max = if self.wide { (1 << 24) - 1 } else { usize::from(u16::MAX) };
        if n > max {
            return Err(BadHead::TooLarge);
        }
        let width = self.width();
        self.bytes[at..at + width].copy_from_slice(&(n as u32).to_be_bytes()[4 - width..]);
        Ok(())
    }
}

/// Reads an inflated block and hands over its pairs, values with several parts as several pairs. The error is what the
/// stream is reset with; the block was inflated, so the session goes on.
pub(crate) fn parse(
    version: Version,
    whole: &Bytes,
    limits: &Limits,
    mut sink: impl FnMut(Bytes, Bytes),
) -> Result<(), Status> {
    let mut reader = Reader { rest: whole, wide: version != Version::V2 };
    let count = reader.number()?;
    if count > limits.headers {
        return Err(Status::FRAME_TOO_LARGE);
    }
    // A value with several parts becomes as many fields.
    let mut room = limits.headers;
    let mut take = |name, value| {
        room = room.checked_sub(1).ok_or(Status::FRAME_TOO_LARGE)?;
        sink(name, value);
        Ok(())
    };
    let mut seen = Seen::default();
    for _ in 0..count {
        let name = reader.string(limits)?;
        let value = reader.string(limits)?;
        if !is_name(name) || !is_value(value) || !seen.insert(name) {
            return Err(Status::PROTOCOL_ERROR);
        }
        let name = whole.slice_ref(name);
        if !holds(value, 0) {
            take(name, whole.slice_ref(value))?;
            continue;
        }
        for part in value.split(|b| *b == 0) {
            if part.is_empty() {
                return Err(Status::PROTOCOL_ERROR);
            }
            take(name.clone(), whole.slice_ref(part))?;
        }
    }
    if reader.rest.is_empty() { Ok(()) } else { Err(Status::PROTOCOL_ERROR) }
}

/// Names are ASCII without upper case, and not empty.
fn is_name(name: &[u8]) -> bool {
    // No early end: these loops are what the machine does sixteen bytes at a time.
    let bad = |b: &u8| !b.is_ascii_graphic() | b.is_ascii_uppercase();
    !name.is_empty() && !name.iter().fold(false, |any, b| any | bad(b))
}

/// A line break would become a field of its own where the head is forwarded over HTTP/1.
fn is_value(value: &[u8]) -> bool {
    !holds(value, b'\r') && !holds(value, b'\n')
}

fn holds(bytes: &[u8], byte: u8) -> bool {
    bytes.iter().fold(false, |any, b| any | (*b == byte))
}

/// The names met so far. Few are compared one by one; many would make that a peer's weapon.
#[derive(Default)]
struct Seen<'a> {
    few: [&'a [u8]; 24],
    count: usize,
    many: BTreeSet<&'a [u8]>,
}

impl<'a> Seen<'a> {
    /// False if the name was there.
    fn insert(&mut self, name: &'a [u8]) -> bool {
        if self.few[..self.count].contains(&name) {
            return false;
        }
        if let Some(place) = self.few.get_mut(self.count) {
            *place = name;
            self.count += 1;
            return true;
        }
        self.many.insert(name)
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    wide: bool,
}

impl<'a> Reader<'a> {
    fn number(&mut self) -> Result<u32, Status> {
        let number = if self.wide {
            self.rest.split_first_chunk().map(|(n, rest)| (u32::from_be_bytes(*n), rest))
        } else {
            self.rest.split_first_chunk().map(|(n, rest)| (u32::from(u16::from_be_bytes(*n)), rest))
        };
        let (number, rest) = number.ok_or(Status::PROTOCOL_ERROR)?;
        self.rest = rest;
        Ok(number)
    }

    fn string(&mut self, limits: &Limits) -> Result<&'a [u8], Status> {
        let len = self.number()?;
        if len > limits.header_field {
            return Err(Status::FRAME_TOO_LARGE);
        }
        let (string, rest) = self.rest.split_at_checked(len as usize).ok_or(Status::PROTOCOL_ERROR)?;
        self.rest = rest;
        Ok(string)
    }
}

#[cfg(test)]
mod tests;
