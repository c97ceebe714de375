use super::*;

fn read(version: Version, raw: &[u8]) -> Result<Vec<(String, String)>, Status> {
    let mut out = Vec::new();
    let text = |b: Bytes| String::from_utf8_lossy(&b).into_owned();
    parse(version, &Bytes::copy_from_slice(raw), &Limits::default(), |n, v| out.push((text(n), text(v))))?;
    Ok(out)
}

fn write(version: Version, pairs: &[(&str, &[&str])]) -> Result<Vec<u8>, BadHead> {
    let mut block = Block::default();
    block.start(version);
    for (name, values) in pairs {
        block.pair(name.as_bytes(), values.iter().map(|v| v.as_bytes()))?;
    }
    block.finish()?;
    let pieces: Vec<u8> = block.pieces().flat_map(|(_, bytes)| bytes.to_vec()).collect();
    assert_eq!(pieces, block.bytes(), "the pieces are the block");
    Ok(block.bytes().to_vec())
}

/// §2.6.10; SPDY/2, "Name/Value header block format".
#[test]
fn counts_and_lengths_are_16_bits_in_version_2_and_32_in_3() {
    let pairs: &[(&str, &[&str])] = &[("Ab", &["c"]), ("d", &[""])];
    assert_eq!(write(Version::V2, pairs).unwrap(), b"\0\x02\0\x02ab\0\x01c\0\x01d\0\0");
    let wide = write(Version::V3_1, pairs).unwrap();
    assert_eq!(wide, b"\0\0\0\x02\0\0\0\x02ab\0\0\0\x01c\0\0\0\x01d\0\0\0\0");
    let expected = [("ab", "c"), ("d", "")].map(|(n, v)| (n.to_owned(), v.to_owned()));
    assert_eq!(read(Version::V3, &wide), Ok(expected.to_vec()));
}

#[test]
fn several_values_travel_in_one_pair_joined_by_nul() {
    let raw = write(Version::V3, &[("a", &["1", "", "2"]), ("b", &["", "3"])]).unwrap();
    assert_eq!(raw, b"\0\0\0\x02\0\0\0\x01a\0\0\0\x031\x002\0\0\0\x01b\0\0\0\x013");
    let pairs = read(Version::V3, &raw).unwrap();
    let expected = [("a", "1"), ("a", "2"), ("b", "3")].map(|(n, v)| (n.to_owned(), v.to_owned()));
    assert_eq!(pairs, expected);
}

#[test]
fn what_a_pair_may_not_hold_is_refused_in_both_directions() {
    for name in ["", "a b", "a\0", "\u{e9}", "a\r"] {
        assert_eq!(write(Version::V3, &[(name, &["v"])]), Err(BadHead::Name), "{name:?}");
    }
    for value in ["a\nb", "a\r", "\0"] {
        assert_eq!(write(Version::V3, &[("n", &[value])]), Err(BadHead::Value), "{value:?}");
    }
    assert_eq!(write(Version::V2, &[("n", &[&"v".repeat(65_536)])]), Err(BadHead::TooLarge));
    let raw = |name: &[u8], value: &[u8]| {
        let lengths = [name.len() as u8, value.len() as u8];
        [b"\0\x01\0", &lengths[..1], name, b"\0", &lengths[1..], value].concat()
    };
    assert!(read(Version::V2, &raw(b"n", b"v\0w")).is_ok());
    let bad: [(&[u8], &[u8]); 9] = [
        (b"", b"v"),
        (b"N", b"v"),
        (b"a b", b"v"),
        (b"\xe9", b"v"),
        (b"n", b"\0v"),
        (b"n", b"v\0"),
        (b"n", b"v\0\0w"),
        (b"n", b"v\r\nevil: 1"),
        (b"n", b"\0"),
    ];
    for (name, value) in bad {
        assert_eq!(read(Version::V2, &raw(name, value)), Err(Status::PROTOCOL_ERROR), "{name:?} {value:?}");
    }
}

/// "Duplicate header names are not allowed", among few names and among many.
#[test]
fn a_name_that_comes_twice_is_an_error() {
    for n in [2_u8, 200] {
        let mut raw = vec![0, n];
        for i in 0..n {
            raw.extend([0, 2, b'a' + (i % (n - 1)) / 26, b'a' + (i % (n - 1)) % 26, 0, 0]);
        }
        assert_eq!(read(Version::V2, &raw), Err(Status::PROTOCOL_ERROR), "{n} names");
        raw.truncate(raw.len() - 6);
        raw[1] -= 1;
        assert!(read(Version::V2, &raw).is_ok(), "{n} names");
    }
}

#[test]
fn every_truncation_is_an_error() {
    let raw = write(Version::V3, &[("name", &["value", "other"]), ("n", &[""])]).unwrap();
    for len in 0..raw.len() {
        assert_eq!(read(Version::V3, &raw[..len]), Err(Status::PROTOCOL_ERROR), "{len} bytes");
    }
}

#[test]
fn values_are_classed_as_secret_shared_or_cookie() {
    let mut block = Block::default();
    block.start(Version::V3);
    for (name, value) in [(":path", "/p"), ("Cookie", "c"), (":host", "h"), ("accept", "a"), ("x", "")] {
        block.pair(name.as_bytes(), std::iter::once(value.as_bytes())).unwrap();
    }
    block.finish().unwrap();
    let apart: Vec<(Class, &[u8])> = block.pieces().filter(|(class, _)| *class != Class::Shared).collect();
    assert_eq!(apart, [(Class::Private, &b"/p"[..]), (Class::Cookie, b"c")]);
    assert_eq!(block.pieces().count(), 5, "neighbours of one class are one piece");
}
