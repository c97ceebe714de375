//! Where in a document's body a reference to a child stands.
//!
//! Best evidence first: the body itself, if it was recorded whole (the initiator's line, else the place where the
//! child's URL is written); the initiator's line over the highest line that any child names; else the children are
//! spread evenly in the order of their starts. What is not exact is cut at the bytes that had arrived when the child
//! started: a reference cannot be read before it is there.

use crate::har::cause::Edge;
use crate::har::entry::Load;
use crate::har::notes::Notes;
use crate::model::{Kind, ScriptMode};

/// Lines say something about a place only if there are a few.
const LINES_MIN: u32 = 8;
/// A body is searched for its children as long as that is soon done: bytes times children.
const SEARCH_MAX: usize = 500_000_000;

/// One child's place.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place {
    /// As a share of the body, 0–1.
    pub share: f64,
    /// What the tag says, if the body was recorded.
    pub mode: Option<ScriptMode>,
}

/// The place of every parser's child; others get the default.
pub(crate) fn places(loads: &[Load], edges: &[Edge], notes: &mut Notes) -> Vec<Place> {
    let mut out = vec![Place::default(); loads.len()];
    let mut by_document: std::collections::BTreeMap<usize, Vec<(usize, Option<u32>)>> = Default::default();
    for (i, edge) in edges.iter().enumerate() {
        if let Edge::Parser { parent, line, .. } = *edge {
            by_document.entry(parent).or_default().push((i, line));
        }
    }
    for (parent, children) in by_document {
        let document = &loads[parent];
        let text = document.text.as_deref().filter(|t| t.len().saturating_mul(children.len()) <= SEARCH_MAX);
        let lines = children.iter().filter_map(|(_, line)| *line).max().filter(|l| *l >= LINES_MIN);
        for (k, (i, line)) in children.iter().enumerate() {
            const QUESTION: &str = "place in the document from";
            if let Some(found) = text.and_then(|t| in_text(t, *line, &loads[*i])) {
                notes.tally("places", QUESTION, "the recorded body");
                out[*i] = found;
                continue;
            }
            let share = match (line, lines) {
                (Some(line), Some(lines)) => {
                    notes.tally("places", QUESTION, "the initiator's line");
                    f64::from(*line) / f64::from(lines + 1)
                }
                _ => {
                    notes.tally("places", QUESTION, "the order of starts, spread evenly");
                    (k as f64 + 0.5) / children.len() as f64
                }
            };
            out[*i].share = share.min(arrived(document, loads[*i].times.start));
        }
    }
    out
}

/// The share of a body that was there at `moment`, taking it to arrive evenly from its first byte to its last.
fn arrived(document: &Load, moment: f64) -> f64 {
    let span = document.times.end - document.times.first_byte;
    if span <= 0.0 {
        return if moment >= document.times.end { 1.0 } else { 0.0 };
    }
    ((moment - document.times.first_byte) / span).clamp(0.0, 1.0)
}

fn in_text(text: &str, line: Option<u32>, child: &Load) -> Option<Place> {
    let url = child.url.to_string();
    let mut found = None;
    let spellings = [
        url.clone(),
        url.replace('&', "&amp;"),
        url.split_once(':').map(|(_, rest)| rest.to_owned())?,
        child.url.path.clone(),
        child.url.path.replace('&', "&amp;"),
    ];
    for spelling in spellings.iter().filter(|s| s.len() > 1) {
        found = text.find(spelling.as_str());
        if found.is_some() {
            break;
        }
    }
    // The last part of a path is a weaker sign: it has to be long enough not to be a word.
    let name = child.url.path.split('?').next().and_then(|p| p.rsplit('/').next()).unwrap_or("");
    let found = found.or_else(|| if name.len() > 5 { text.find(name) } else { None });
    let mode = found.filter(|_| child.kind == Kind::Script).map(|at| tag_mode(text, at));
    let at = match line {
        Some(line) => start_of_line(text, line).or(found),
        None => found,
    }?;
    Some(Place { share: at as f64 / text.len() as f64, mode })
}

fn start_of_line(text: &str, line: u32) -> Option<usize> {
    if line <= 1 {
        return None;
    }
    text.match_indices('\n').nth(line as usize - 2).map(|(i, _)| i + 1)
}

/// What the tag around `at` says of a script.
fn tag_mode(text: &str, at: usize) -> ScriptMode {
    let start = text[..at].rfind('<').unwrap_or(at);
    let end = text[at..].find('>').map_or(text.len(), |i| at + i);
    let tag = text[start..end].to_ascii_lowercase();
    let has = |word: &str| {
        tag.split([' ', '\t', '\n', '\r', '/', '"', '\'']).any(|w| w.split('=').next() == Some(word))
    };
    if has("async") {
        ScriptMode::Async
    } else if has("defer") || tag.contains("type=\"module\"") {
        ScriptMode::Defer
    } else {
        ScriptMode::Sync
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_tells_how_its_script_is_run() {
        let page = "<p>x</p><script async src=\"/a.js\"></script><script src='/b.js' defer></script><script src=/c.js>";
        let mode = |name: &str| tag_mode(page, page.find(name).unwrap());
        assert_eq!(mode("/a.js"), ScriptMode::Async);
        assert_eq!(mode("/b.js"), ScriptMode::Defer);
        assert_eq!(mode("/c.js"), ScriptMode::Sync);
        assert_eq!(start_of_line("a\nbc\nd", 3), Some(5));
        assert_eq!(start_of_line("a\nbc\nd", 9), None);
    }
}
