//! What is pushed with what: rules in a small text form, and the limits that hold for pushes from any source.
//!
//! A rule is a line `WHEN -> PATH...`: with the answer to a GET of `WHEN` go those of the paths, in order, from the same
//! host. In `WHEN` a `*` stands for any characters, and without a `?` in it the query does not matter. Empty lines and what
//! follows a `#` at a line's beginning, or after a blank, are ignored.
//!
//! ```text
//! /            -> /style.css /app.js   # the front page
//! /articles/*  -> /article.css
//! ```

use std::fmt;
use std::str::FromStr;

use page::Kind;
use spdy::Priority;

/// The most pushes that go with one answer: as many streams as clients usually allow.
pub const PUSHES_MAX: usize = 100;
/// The most rules.
const RULES_MAX: usize = 1_000;

/// Push rules.
///
/// ```
/// let rules: origin::PushRules = "/ -> /a.css /b.js\n/*.html -> /a.css".parse()?;
/// assert_eq!(rules.pushes(b"/?utm_source=x").collect::<Vec<_>>(), ["/a.css", "/b.js"]);
/// assert_eq!(rules.pushes(b"/news/1.html").collect::<Vec<_>>(), ["/a.css"]);
/// assert!("/ /a.css".parse::<origin::PushRules>().is_err());
/// # Ok::<(), origin::BadPushRule>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PushRules(Vec<PushRule>);

/// One rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PushRule {
    /// The paths that it is for; `*` stands for any characters.
    pub when: String,
    /// The paths to push, in order.
    pub push: Vec<String>,
}

/// A push rule that cannot be followed: its author's fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadPushRule {
    /// The rule as it was given.
    pub rule: String,
    /// What is wrong with it.
    pub fault: PushRuleFault,
}

/// What is wrong with a push rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PushRuleFault {
    /// There is no ` -> ` between two sides, or nothing on one of them.
    Shape,
    /// This does not begin with a `/`.
    NotAPath(String),
    /// More paths than [`PUSHES_MAX`].
    TooManyPaths(usize),
    /// It is one rule more than are allowed.
    TooManyRules,
    /// The site has nothing that the rule is for.
    MatchesNothing,
    /// The site has no such thing to push.
    Missing(String),
}

impl fmt::Display for BadPushRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "push rule `{}`: ", self.rule)?;
        match &self.fault {
            PushRuleFault::Shape => write!(f, "not of the form `/PATH -> /PATH...`"),
            PushRuleFault::NotAPath(what) => {
                write!(f, "{what} is no path: write it as it is asked for, from the first / of the URL")
            }
            PushRuleFault::TooManyPaths(n) => write!(f, "{n} paths are more than {PUSHES_MAX}"),
            PushRuleFault::TooManyRules => write!(f, "there are more than {RULES_MAX} rules"),
            PushRuleFault::MatchesNothing => {
                write!(f, "the site has nothing of this path; `*` stands for any characters")
            }
            PushRuleFault::Missing(path) => write!(f, "the site has no {path} on the same host"),
        }
    }
}

impl std::error::Error for BadPushRule {}

impl FromStr for PushRule {
    type Err = BadPushRule;
    fn from_str(text: &str) -> Result<Self, BadPushRule> {
        let bad = |fault| Err(BadPushRule { rule: text.trim().into(), fault });
        let Some((when, push)) = text.split_once("->") else { return bad(PushRuleFault::Shape) };
        let (when, push) = (when.trim(), push.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        if when.is_empty() || when.contains(char::is_whitespace) || push.is_empty() {
            return bad(PushRuleFault::Shape);
        }
        if push.len() > PUSHES_MAX {
            return bad(PushRuleFault::TooManyPaths(push.len()));
        }
        let no_path = |p: &&str| !p.starts_with('/') && (*p != when || !p.starts_with('*'));
        if let Some(what) = std::iter::once(when).chain(push.iter().map(String::as_str)).find(no_path) {
            return bad(PushRuleFault::NotAPath(what.into()));
        }
        Ok(Self { when: when.into(), push })
    }
}

impl fmt::Display for PushRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.when, self.push.join(" "))
    }
}

impl PushRule {
    /// Whether it is for this path (and query).
    pub fn is_for(&self, path: &[u8]) -> bool {
        let query_matters = self.when.contains('?');
        let path = if query_matters { path } else { crate::matching::split(path).0 };
        is_like(self.when.as_bytes(), path)
    }

    pub(crate) fn bad(&self, fault: PushRuleFault) -> BadPushRule {
        BadPushRule { rule: self.to_string(), fault }
    }
}

impl FromStr for PushRules {
    type Err = BadPushRule;
    fn from_str(text: &str) -> Result<Self, BadPushRule> {
        let mut rules = Vec::new();
        for line in text.lines() {
            let comment = line.find(" #").or(line.find("\t#")).or(line.starts_with('#').then_some(0));
            let line = &line[..comment.unwrap_or(line.len())];
            if line.trim().is_empty() {
                continue;
            }
            let rule: PushRule = line.parse()?;
            if rules.len() == RULES_MAX {
                return Err(rule.bad(PushRuleFault::TooManyRules));
            }
            rules.push(rule);
        }
        Ok(Self(rules))
    }
}

impl PushRules {
    /// The rules, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, PushRule> {
        self.0.iter()
    }

    /// What to push with the answer to a GET of this path (and query): of all rules that are for it, in order, each path
    /// once, [`PUSHES_MAX`] at most.
    pub fn pushes(&self, path: &[u8]) -> impl Iterator<Item = &str> {
        let mut paths: Vec<&str> = Vec::new();
        for wanted in self.0.iter().filter(|r| r.is_for(path)).flat_map(|r| &r.push) {
            if paths.len() < PUSHES_MAX && !paths.contains(&wanted.as_str()) {
                paths.push(wanted);
            }
        }
        paths.into_iter()
    }

    /// Checks that there is everything that is to be pushed, for a site of one host that can tell.
    ///
    /// # Errors
    /// The first rule with a path that `has` denies.
    pub fn check(&self, has: impl Fn(&str) -> bool) -> Result<(), BadPushRule> {
        for rule in &self.0 {
            if let Some(path) = rule.push.iter().find(|p| !has(p)) {
                return Err(rule.bad(PushRuleFault::Missing(path.clone())));
            }
        }
        Ok(())
    }
}

/// The priority of a push: what a browser that found out by itself would ask with.
pub fn push_priority(kind: Kind) -> Priority {
    Priority::new(match kind {
        Kind::Document => 0,
        Kind::Style | Kind::Script | Kind::Font => 1,
        Kind::Xhr | Kind::Media | Kind::Other => 2,
        Kind::Image => 3,
    })
}

/// Whether `text` is what `pattern` says, in which `*` stands for any bytes. On a mismatch the last `*` takes one byte more,
/// which is enough, as an earlier one can gain nothing by it.
fn is_like(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut last_star = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            last_star = Some((p, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            (p, t) = (p + 1, t + 1);
        } else if let Some((star, taken)) = last_star {
            last_star = Some((star, taken + 1));
            (p, t) = (star + 1, taken + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushes(rules: &str, path: &str) -> Vec<String> {
        let rules: PushRules = rules.parse().expect("sound rules");
        rules.pushes(path.as_bytes()).map(str::to_owned).collect()
    }

    #[test]
    fn rules_are_lines_and_comments_are_none() {
        let text = "# all\n/ -> /a /b # two\n\n\t#x\n/c?x=# -> /d\n";
        let rules: PushRules = text.parse().unwrap();
        let shown: Vec<String> = rules.iter().map(PushRule::to_string).collect();
        assert_eq!(shown, ["/ -> /a /b", "/c?x=# -> /d"]);
        assert_eq!(shown.join("\n").parse(), Ok(rules), "what is shown can be read");
    }

    #[test]
    fn all_rules_for_a_path_apply_each_push_once() {
        assert_eq!(pushes("/ -> /a /b\n/* -> /b /c", "/"), ["/a", "/b", "/c"]);
        assert_eq!(pushes("/ -> /a", "/?x"), ["/a"], "no query is named");
        assert_eq!(pushes("/?x=1 -> /a", "/?x=2"), [""; 0]);
        assert_eq!(pushes("/?x=* -> /a", "/?x=2"), ["/a"]);
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, text, is) in [
            ("/a*c", "/abc", true),
            ("/a*c", "/ac", true),
            ("/a*c", "/abcd", false),
            ("*.html", "/x/y.html", true),
            ("*a*b", "/aab", true),
            ("*aab", "/aaab", true),
            ("/**", "/", true),
            ("/a", "/ab", false),
            ("/ab", "/a", false),
            ("*", "", true),
        ] {
            assert_eq!(is_like(pattern.as_bytes(), text.as_bytes()), is, "{pattern} {text}");
        }
        let long = "a".repeat(5_000);
        assert!(!is_like("*a*a*a*a*a*a*b".as_bytes(), long.as_bytes()), "and in bounded time");
    }

    #[test]
    fn a_bad_rule_is_named_with_its_fault() {
        let many = format!("/ -> {}", "/a ".repeat(PUSHES_MAX + 1));
        for (text, what) in [
            ("/ /a", "not of the form"),
            ("/ ->", "not of the form"),
            ("-> /a", "not of the form"),
            ("/ /b -> /a", "not of the form"),
            ("/ -> a.css", "a.css is no path"),
            ("/ -> *", "* is no path"),
            ("index.html -> /a", "index.html is no path"),
            (&many, "101 paths are more than 100"),
        ] {
            let error = text.parse::<PushRules>().unwrap_err();
            let shown = error.to_string();
            assert!(shown.contains(what) && shown.contains(text.trim()), "{shown}");
        }
        let too_many = "/ -> /a\n".repeat(RULES_MAX + 1);
        assert_eq!(too_many.parse::<PushRules>().unwrap_err().fault, PushRuleFault::TooManyRules);
        let rules: PushRules = "/ -> /a /b".parse().unwrap();
        assert_eq!(rules.check(|path| path == "/a").unwrap_err().fault, PushRuleFault::Missing("/b".into()));
        assert_eq!(rules.check(|_| true), Ok(()));
    }
}
