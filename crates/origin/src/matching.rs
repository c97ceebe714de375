//! Which recorded request a request means.
//!
//! What scripts ask for differs from load to load: a time or a random number against caches, parameters in the order of
//! some hash map. Replay tools meet this by taking the closest recorded request of the same path: Mahimahi (replayserver)
//! the one with the longest common prefix, Web Page Replay (archive.go) the one that shares most parameters. Here such
//! guesses come in tiers, each less certain than the one before, and an answer says which one found it.

use std::fmt;

/// How far a request may be from what was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Matching {
    /// Not at all: [`Tier::Exact`] or nothing. What the virtual world uses, as its browser asks for what was recorded.
    Exact,
    /// Every tier in turn. A HEAD of which none was recorded means the GET.
    Closest,
}

/// How a request was recognised among the recorded ones, most certain first. The method and the path up to the `?` are the
/// recorded ones in all tiers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Tier {
    /// The query is the recorded one.
    Exact,
    /// The query has the recorded parameters in another order.
    Reordered,
    /// The query has the recorded parameters, but for what looks as if it were to defeat caches: parameters with a name
    /// that says so (`_`, `cb`, `rnd`, …), and values that are a number of nine digits or more, or a fraction such as
    /// `Math.random()` gives.
    CacheBuster,
    /// The query shares more parameters with this recorded one than with any other; of several, more of its beginning;
    /// of several still, the one recorded first.
    Closest,
}

impl Tier {
    /// A lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Exact => "exact",
            Tier::Reordered => "reordered",
            Tier::CacheBuster => "cache-buster",
            Tier::Closest => "closest",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Path, and query if there is one, without the `?`.
pub(crate) fn split(path: &[u8]) -> (&[u8], Option<&[u8]>) {
    match path.iter().position(|b| *b == b'?') {
        Some(at) => (&path[..at], Some(&path[at + 1..])),
        None => (path, None),
    }
}

/// A query, taken apart for comparison.
pub(crate) struct Query<'a> {
    whole: &'a [u8],
    /// Sorted.
    parameters: Vec<&'a [u8]>,
    /// Sorted: without those of a volatile name, and volatile values cut off.
    stable: Vec<&'a [u8]>,
}

impl<'a> Query<'a> {
    /// Of a query without its `?`; empty if there is none.
    pub fn new(whole: &'a [u8]) -> Self {
        let mut parameters: Vec<_> = whole.split(|b| *b == b'&').filter(|p| !p.is_empty()).collect();
        parameters.sort_unstable();
        let mut stable: Vec<_> = parameters.iter().filter_map(|p| stable(p)).collect();
        stable.sort_unstable();
        Self { whole, parameters, stable }
    }

    /// How well this, asked for, fits `recorded`; greater is better.
    pub fn fit(&self, recorded: &Query<'_>) -> Fit {
        let tier = if self.whole == recorded.whole {
            Tier::Exact
        } else if self.parameters == recorded.parameters {
            Tier::Reordered
        } else if self.stable == recorded.stable {
            Tier::CacheBuster
        } else {
            Tier::Closest
        };
        let shared = 2 * common(&self.parameters, &recorded.parameters);
        let all = self.parameters.len() + recorded.parameters.len();
        let prefix = self.whole.iter().zip(recorded.whole).take_while(|(a, b)| a == b).count();
        Fit { tier, shared, all, prefix }
    }
}

/// How well two queries fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    pub tier: Tier,
    /// Parameters that both have, counted in both.
    shared: usize,
    /// Parameters of both.
    all: usize,
    /// Bytes of their common beginning.
    prefix: usize,
}

impl Fit {
    /// Whether this is a better fit than `other` was.
    pub fn is_better(&self, other: &Fit) -> bool {
        // The share of common parameters, as a fraction: shared / all, without dividing.
        let share = (self.shared * other.all.max(1)).cmp(&(other.shared * self.all.max(1)));
        other.tier.cmp(&self.tier).then(share).then(self.prefix.cmp(&other.prefix)).is_gt()
    }
}

/// Number of elements that two sorted lists have in common, each as often as both have it.
fn common(mut a: &[&[u8]], mut b: &[&[u8]]) -> usize {
    let mut count = 0;
    while let ([x, more_a @ ..], [y, more_b @ ..]) = (a, b) {
        match x.cmp(y) {
            std::cmp::Ordering::Less => a = more_a,
            std::cmp::Ordering::Greater => b = more_b,
            std::cmp::Ordering::Equal => (a, b, count) = (more_a, more_b, count + 1),
        }
    }
    count
}

/// What of a parameter is the same at each load: nothing, its name alone, or all of it.
fn stable(parameter: &[u8]) -> Option<&[u8]> {
    const BUSTERS: [&str; 12] = [
        "_",
        "cb",
        "cachebuster",
        "cache_buster",
        "nocache",
        "no_cache",
        "rnd",
        "rand",
        "random",
        "ord",
        "ts",
        "timestamp",
    ];
    let (name, value) = match parameter.iter().position(|b| *b == b'=') {
        Some(at) => (&parameter[..at], &parameter[at + 1..]),
        None => (&b""[..], parameter),
    };
    if BUSTERS.iter().any(|b| name.eq_ignore_ascii_case(b.as_bytes())) {
        return None;
    }
    Some(if is_volatile(value) { name } else { parameter })
}

/// A time in seconds or less, a large random number, or a fraction below one.
fn is_volatile(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"0.").unwrap_or(value);
    digits.len() >= 9 && digits.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tier(asked: &str, recorded: &str) -> Tier {
        Query::new(asked.as_bytes()).fit(&Query::new(recorded.as_bytes())).tier
    }

    #[test]
    fn each_tier_takes_what_the_one_before_leaves() {
        assert_eq!(tier("a=1&b=2", "a=1&b=2"), Tier::Exact);
        assert_eq!(tier("b=2&a=1", "a=1&b=2"), Tier::Reordered);
        assert_eq!(tier("b=2&a=1&_=1", "a=1&b=2&_=2"), Tier::CacheBuster);
        assert_eq!(tier("b=2&a=1&_=1", "a=1&b=2"), Tier::CacheBuster, "one without");
        assert_eq!(tier("a=1", "a=2"), Tier::Closest);
    }

    #[test]
    fn what_defeats_caches_is_told_from_what_means_something() {
        for (a, b) in [
            ("t=1348043321", "t=1348099999"),
            ("x=0.8274652938471", "x=0.1192837465123"),
            ("CB=abc", "cb=def"),
            ("1348043321281", "1348043325555"),
        ] {
            assert_eq!(tier(a, b), Tier::CacheBuster, "{a} {b}");
        }
        for (a, b) in [("id=12345678", "id=12345679"), ("q=cat", "q=dog"), ("t=1348043321", "u=1348043321")] {
            assert_eq!(tier(a, b), Tier::Closest, "{a} {b}");
        }
    }

    #[test]
    fn the_closest_shares_most_parameters_and_then_most_of_the_beginning() {
        let best = |asked: &str, recorded: &[&str]| {
            let asked = Query::new(asked.as_bytes());
            let fits: Vec<_> = recorded.iter().map(|r| asked.fit(&Query::new(r.as_bytes()))).collect();
            (0..fits.len()).reduce(|a, b| if fits[b].is_better(&fits[a]) { b } else { a }).unwrap()
        };
        assert_eq!(best("a=1&b=2&c=3", &["a=1", "c=3&b=2&d=4", "a=9&b=2&c=3&d=4&e=5"]), 1);
        assert_eq!(best("a=15", &["a=20", "a=11"]), 1, "no parameter in common, but the first two bytes");
        assert_eq!(best("a=1", &["b=1", "c=1"]), 0, "nothing in common: the first");
        assert_eq!(best("", &["a=1", "b=1"]), 0);
        assert_eq!(best("a=1&a=1", &["a=1&b=2", "a=1&a=1&b=2"]), 1, "one that is repeated counts as often");
    }
}
