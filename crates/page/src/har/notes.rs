//! What was assumed, counted.

use crate::model::Assumption;

/// Assumptions of one page, by kind.
#[derive(Default)]
pub(crate) struct Notes {
    single: Vec<Assumption>,
    tallies: Vec<Tally>,
}

/// How often each of several sources decided one question.
struct Tally {
    kind: &'static str,
    question: &'static str,
    sources: Vec<(&'static str, u32)>,
}

impl Notes {
    /// Counts one more of `kind`; the first one's detail stays.
    pub fn add(&mut self, kind: &'static str, detail: impl Into<String>) {
        match self.single.iter_mut().find(|a| a.kind == kind) {
            Some(known) => known.count += 1,
            None => self.single.push(Assumption { kind: kind.to_owned(), detail: detail.into(), count: 1 }),
        }
    }

    /// Counts one more answer to `question` that came from `source`. All answers to one question are one assumption.
    pub fn tally(&mut self, kind: &'static str, question: &'static str, source: &'static str) {
        let at = self.tallies.iter().position(|t| t.kind == kind).unwrap_or_else(|| {
            self.tallies.push(Tally { kind, question, sources: Vec::new() });
            self.tallies.len() - 1
        });
        let sources = &mut self.tallies[at].sources;
        match sources.iter_mut().find(|(s, _)| *s == source) {
            Some((_, count)) => *count += 1,
            None => sources.push((source, 1)),
        }
    }

    /// Most frequent first; of equals, the first one seen first.
    pub fn finish(self) -> Vec<Assumption> {
        let mut out = self.single;
        for mut tally in self.tallies {
            tally.sources.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            let sources: Vec<String> = tally.sources.iter().map(|(s, n)| format!("{s} ({n})")).collect();
            out.push(Assumption {
                kind: tally.kind.to_owned(),
                detail: format!("{} {}", tally.question, sources.join(", ")),
                count: tally.sources.iter().map(|(_, count)| count).sum(),
            });
        }
        out.sort_by_key(|a| std::cmp::Reverse(a.count));
        out
    }
}
