//! Bytes for what has none in the virtual world: bodies, and what TLS would compute.
//!
//! A byte depends on the resource and on where in its body it stands, so that what is sent again is the same, and the same body is
//! so in every capture.

use base::BodyRange;

/// Bytes of a line.
const LINE: u64 = 64;

/// Appends the filler for a range of a body: lines that say where they stand. What TLS would compute is zeros.
pub(super) fn write(range: BodyRange, out: &mut Vec<u8>) {
    if range.source == BodyRange::FILLER {
        out.resize(out.len() + range.len as usize, 0);
        return;
    }
    let end = range.start + range.len;
    let mut at = range.start;
    while at < end {
        let line = line(range.source, at / LINE);
        let from = at % LINE;
        let len = (LINE - from).min(end - at);
        out.extend_from_slice(&line[from as usize..(from + len) as usize]);
        at += len;
    }
}

/// A line says of what body it is, and where in it.
fn line(source: u32, number: u64) -> [u8; LINE as usize] {
    let text = format!("resource {source} from byte {}: filler, nobody recorded it", number * LINE);
    let mut out = [b' '; LINE as usize];
    let text = &text.as_bytes()[..text.len().min(LINE as usize - 1)];
    out[..text.len()].copy_from_slice(text);
    out[LINE as usize - 1] = b'\n';
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_the_same_however_it_is_cut() {
        let range = |start, len| BodyRange { source: 7, start, len };
        let cut = |parts: &[(u64, u64)]| {
            let mut out = Vec::new();
            parts.iter().for_each(|(start, len)| write(range(*start, *len), &mut out));
            out
        };
        let whole = cut(&[(0, 1_000)]);
        assert_eq!(whole.len(), 1_000);
        assert_eq!(cut(&[(0, 1), (1, 63), (64, 65), (129, 871)]), whole);
        assert!(whole.starts_with(b"resource 7 from byte 0: filler"));
        assert!(whole[64..].starts_with(b"resource 7 from byte 64: "));
        assert_eq!(whole[63], b'\n');
    }
}
