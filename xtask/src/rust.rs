//! Just enough of Rust's syntax to look at code without its comments, strings and tests.

/// Rust source with comments and literals blanked; lines and columns stay where they are.
pub(crate) fn blank(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = bytes.to_vec();
    let mut i = 0;
    while i < bytes.len() {
        let literal = match bytes[i] {
            b'/' if bytes[i..].starts_with(b"//") => Some(find(bytes, i, b"\n")),
            b'/' if bytes[i..].starts_with(b"/*") => Some(block_comment(bytes, i)),
            b'"' => Some(string(bytes, i)),
            b'r' if !in_word(bytes, i) || bytes[i - 1] == b'b' => raw_string(bytes, i),
            b'\'' => character(bytes, i),
            _ => None,
        };
        let Some(end) = literal else {
            i += 1;
            continue;
        };
        out[i..end].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
        i = end;
    }
    // Whole literals and comments were blanked, so that no character was cut.
    String::from_utf8(out).expect("still UTF-8")
}

fn in_word(bytes: &[u8], i: usize) -> bool {
    i > 0 && (bytes[i - 1].is_ascii_alphanumeric() || bytes[i - 1] == b'_')
}

/// Where `what` begins at or after `from`, or the end.
fn find(bytes: &[u8], from: usize, what: &[u8]) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    rest.windows(what.len()).position(|w| w == what).map_or(bytes.len(), |at| from + at)
}

fn block_comment(bytes: &[u8], start: usize) -> usize {
    let (mut i, mut depth) = (start, 0);
    while i < bytes.len() {
        if bytes[i..].starts_with(b"/*") {
            (i, depth) = (i + 2, depth + 1);
        } else if bytes[i..].starts_with(b"*/") {
            (i, depth) = (i + 2, depth - 1);
            if depth == 0 {
                return i;
            }
        } else {
            i += 1;
        }
    }
    bytes.len()
}

fn string(bytes: &[u8], start: usize) -> usize {
    let mut i = start + 1;
    while i < bytes.len() && bytes[i] != b'"' {
        i += if bytes[i] == b'\\' { 2 } else { 1 };
    }
    bytes.len().min(i + 1)
}

fn raw_string(bytes: &[u8], start: usize) -> Option<usize> {
    let hashes = bytes[start + 1..].iter().take_while(|b| **b == b'#').count();
    let open = start + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let close = [b"\"", "#".repeat(hashes).as_bytes()].concat();
    Some((find(bytes, open + 1, &close) + close.len()).min(bytes.len()))
}

/// Where a character literal ends; `None` for a lifetime.
fn character(bytes: &[u8], start: usize) -> Option<usize> {
    let first = *bytes.get(start + 1)?;
    if first == b'\\' {
        return Some((find(bytes, start + 3, b"'") + 1).min(bytes.len()));
    }
    let len = if first.is_ascii() { 1 } else { first.leading_ones() as usize };
    (bytes.get(start + 1 + len) == Some(&b'\'')).then_some(start + 2 + len)
}

/// Blanks each item of already [`blank`]ed code that only tests see.
pub(crate) fn without_tests(code: &str) -> String {
    let mut out = code.to_string();
    while let Some(start) = out.find("#[cfg(test)]") {
        let rest = &out[start..];
        let body = rest.find(['{', ';']).unwrap_or(rest.len());
        let len =
            if rest[body..].starts_with('{') { body + balanced(&rest[body..], '{', '}') } else { body + 1 };
        let end = (start + len).min(out.len());
        let blanked: String = out[start..end].chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
        out.replace_range(start..end, &blanked);
    }
    out
}

/// The length of the bracketed text that `text` begins with, brackets included.
fn balanced(text: &str, open: char, close: char) -> usize {
    let mut depth = 0;
    for (i, c) in text.char_indices() {
        depth += i32::from(c == open) - i32::from(c == close);
        if depth == 0 {
            return i + c.len_utf8();
        }
    }
    text.len()
}

/// The attributes of [`blank`]ed code: the line each stands on, and what is between its brackets.
pub(crate) fn attributes(code: &str) -> Vec<(usize, &str)> {
    let starts = code.match_indices("#[").chain(code.match_indices("#!["));
    let read = |(at, mark): (usize, &str)| {
        let open = at + mark.len() - 1;
        let len = balanced(&code[open..], '[', ']');
        (line_of(code, at), &code[open + 1..(open + len).saturating_sub(1).max(open + 1)])
    };
    starts.map(read).collect()
}

/// The places of `word` in `code` where it is not a part of a longer name, as line numbers.
pub(crate) fn lines_with(code: &str, word: &str) -> Vec<usize> {
    code.match_indices(word)
        .filter(|(at, _)| is_whole(code, *at, word.len()))
        .map(|(at, _)| line_of(code, at))
        .collect()
}

/// Whether `code` has `word`, not as a part of a longer name.
pub(crate) fn has_word(code: &str, word: &str) -> bool {
    !lines_with(code, word).is_empty()
}

fn is_whole(code: &str, at: usize, len: usize) -> bool {
    let part_of_name = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let bytes = code.as_bytes();
    !part_of_name(at.checked_sub(1).and_then(|i| bytes.get(i))) && !part_of_name(bytes.get(at + len))
}

/// The number of the line that byte `at` is on.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].bytes().filter(|b| *b == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_code_stays_in_place() {
        let rows = [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("x\"y", 'z', '\'', 'é', b'"')"#, "f(      ,    ,     ,     , b   )"),
            (r##"let r = r#"a"b"#;"##, "let r =         ;"),
            ("fn f<'a>(x: &'a str) -> &'a str", "fn f<'a>(x: &'a str) -> &'a str"),
            ("b\"ab\" br\"c\" for r#in in s", "b     b     for r#in in s"),
        ];
        for (source, expected) in rows {
            assert_eq!(blank(source), expected);
        }
    }

    #[test]
    fn tests_are_cut_out_with_their_braces() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { if x {} }\n}\nfn c() {}\n#[cfg(test)]\nmod more;\nfn d() {}";
        let kept: Vec<_> =
            without_tests(code).lines().map(str::trim).filter(|l| !l.is_empty()).map(String::from).collect();
        assert_eq!(kept, ["fn a() {}", "fn c() {}", "fn d() {}"]);
    }

    #[test]
    fn attributes_are_found_with_their_lines() {
        let code = "#![allow(a)]\n\n#[cfg_attr(x, expect(b, reason = \"\"))]\nfn f(v: &[u8]) {}";
        assert_eq!(attributes(code), [(3, "cfg_attr(x, expect(b, reason = \"\"))"), (1, "allow(a)")]);
    }

    #[test]
    fn a_word_is_not_found_inside_a_longer_name() {
        assert_eq!(lines_with("MyHashMap\nHashMap<A>\nHashMaps", "HashMap"), [2]);
    }
}
