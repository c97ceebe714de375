//! What a browser may keep of a response, and what that is worth when the page is loaded again: the rules of RFC 9111 for a private
//! cache, as far as a recording tells.
//!
//! Explicit lifetimes first (`max-age`, then `Expires`), else a tenth of the time since `Last-Modified`, which §4.2.2 suggests and
//! browsers take. What is stale is validated if it has a validator.
//!
//! # What is crude
//! The page has not changed in between, and neither has what requests say, so that `Vary` matches unless it is `*`. Nothing has been evicted.
//! A response is as old when it is stored as its `Age` says; what it took to arrive is not added. `stale-while-revalidate` is not known.

use base::{Duration, Fields};

use crate::har::moment;
use crate::model::Resource;

/// What a cache is worth to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reuse {
    /// Nothing: the response was not to be kept, or there is no way to ask whether it has changed.
    Fetch,
    /// It saves the body, if these fields in the request show the server that what is kept is still what it has.
    Validate(Fields),
    /// It saves the request.
    Fresh,
}

/// What a browser that has loaded `resource` so long ago has left of it.
pub fn reuse(resource: &Resource, after: Duration) -> Reuse {
    let Resource { response, status, .. } = resource;
    let control = Control::of(response);
    let varies = response.iter().any(|f| f.name.eq_ignore_ascii_case(b"vary") && f.value.contains(&b'*'));
    let explicit = explicit_lifetime(&control, response);
    let kept = explicit.is_some() || control.no_cache || HEURISTIC.contains(status);
    // §3: what may be stored. §4.1: a Vary of `*` always fails to match.
    if resource.method != "GET" || control.no_store || varies || !kept {
        return Reuse::Fetch;
    }
    let lifetime = if control.no_cache { 0.0 } else { explicit.unwrap_or_else(|| tenth_of_age(response)) };
    let stored_at = response.get_str("age").and_then(seconds).unwrap_or(0.0);
    if lifetime > stored_at + after.as_secs_f64() {
        return Reuse::Fresh;
    }
    let mut validators = Fields::new();
    for (validator, condition) in [("etag", "If-None-Match"), ("last-modified", "If-Modified-Since")] {
        if let Some(value) = response.get(validator) {
            validators.push(condition, value.clone());
        }
    }
    if validators.is_empty() || *status != 200 { Reuse::Fetch } else { Reuse::Validate(validators) }
}

/// Whether a browser must keep nothing of a response, whatever else it says (RFC 9111 §5.2.2.5).
pub fn is_no_store(resource: &Resource) -> bool {
    Control::of(&resource.response).no_store
}

/// Statuses that may be kept without a word about it (RFC 9110 §15.1), but for 206, which no recording of a whole page has.
const HEURISTIC: [u16; 10] = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414];

/// What `Cache-Control` says to a private cache; RFC 9111 §5.2.2.
#[derive(Default)]
struct Control {
    no_store: bool,
    no_cache: bool,
    max_age: Option<f64>,
}

impl Control {
    fn of(response: &Fields) -> Self {
        let mut out = Self::default();
        for field in response.iter().filter(|f| f.name.eq_ignore_ascii_case(b"cache-control")) {
            for directive in String::from_utf8_lossy(&field.value).split(',') {
                let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
                match name.trim().to_ascii_lowercase().as_str() {
                    "no-store" => out.no_store = true,
                    // With a list of fields, the rest may be reused; to validate then too is allowed, and what browsers do.
                    "no-cache" => out.no_cache = true,
                    // §4.2.1: an invalid lifetime counts as stale.
                    "max-age" => out.max_age = Some(seconds(value.trim().trim_matches('"')).unwrap_or(0.0)),
                    _ => {}
                }
            }
        }
        out
    }
}

/// §4.2.1, in seconds. An invalid `Expires`, `0` most of all, is a time in the past (§5.3).
fn explicit_lifetime(control: &Control, response: &Fields) -> Option<f64> {
    control.max_age.or_else(|| {
        let expires = response.get_str("expires")?;
        let date = response.get_str("date").and_then(moment);
        Some(moment(expires).zip(date).map_or(0.0, |(expires, date)| (expires - date) / 1e3))
    })
}

/// §4.2.2.
fn tenth_of_age(response: &Fields) -> f64 {
    let at = |name| response.get_str(name).and_then(moment);
    at("date").zip(at("last-modified")).map_or(0.0, |(date, modified)| (date - modified).max(0.0) / 1e4)
}

/// Delta-seconds, §1.2.2: what is too large counts as very large.
fn seconds(text: &str) -> Option<f64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse::<f64>().map_or(f64::MAX, |s| s.min(2_147_483_648.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Cause, Kind};

    const DAY: Duration = Duration::from_secs(86_400);

    fn with(status: u16, fields: &[(&str, &str)]) -> Resource {
        let mut response = Fields::new();
        fields.iter().for_each(|(name, value)| response.push(name.to_string(), value.to_string()));
        Resource { status, response, ..Resource::get("/a", Kind::Image, Cause::Root) }
    }

    fn says(resource: &Resource, after: Duration) -> &'static str {
        match reuse(resource, after) {
            Reuse::Fetch => "fetch",
            Reuse::Validate(_) => "validate",
            Reuse::Fresh => "fresh",
        }
    }

    const DATE: (&str, &str) = ("Date", "Tue, 18 Sep 2012 09:42:15 GMT");
    const ETAG: (&str, &str) = ("ETag", "\"x\"");

    /// RFC 9111 §4.2.1: max-age before Expires; §4.2.3: Age counts.
    #[test]
    fn a_lifetime_is_max_age_or_expires_less_the_age_at_which_it_came() {
        let max_age = ("Cache-Control", "public, Max-Age=86401");
        assert_eq!(says(&with(200, &[max_age]), DAY), "fresh");
        assert_eq!(says(&with(200, &[max_age, ETAG]), Duration::from_secs(86_401)), "validate");
        assert_eq!(says(&with(200, &[max_age, ("Age", "2"), ETAG]), DAY), "validate");
        let later = ("Expires", "Wed, 19 Sep 2012 09:42:16 GMT");
        assert_eq!(says(&with(200, &[DATE, later]), DAY), "fresh");
        assert_eq!(says(&with(200, &[DATE, later, ("Cache-Control", "max-age=0"), ETAG]), DAY), "validate");
        assert_eq!(says(&with(302, &[max_age]), DAY), "fresh", "said to be kept, whatever its status");
    }

    /// RFC 9111 §5.3: invalid dates, "0" among them, are in the past.
    #[test]
    fn an_invalid_lifetime_is_over() {
        for expires in ["0", "-1", "soon"] {
            assert_eq!(says(&with(200, &[DATE, ("Expires", expires), ETAG]), Duration::ZERO), "validate");
        }
        assert_eq!(says(&with(200, &[("Cache-Control", "max-age=1d"), ETAG]), Duration::ZERO), "validate");
        assert_eq!(says(&with(200, &[("Cache-Control", "max-age=99999999999999999999")]), DAY), "fresh");
    }

    /// RFC 9111 §4.2.2: a tenth of the time since the last change.
    #[test]
    fn without_a_lifetime_it_is_a_tenth_of_the_time_since_the_last_change() {
        let old = with(200, &[DATE, ("Last-Modified", "Mon, 27 Aug 2012 09:42:15 GMT")]); // 22 days
        assert_eq!(says(&old, DAY), "fresh");
        assert_eq!(says(&old, DAY * 3), "validate");
        assert_eq!(says(&Resource { status: 302, ..old }, DAY), "fetch");
    }

    /// RFC 9111 §3, §4.1, §5.2.2.
    #[test]
    fn what_may_not_be_kept_or_cannot_be_validated_is_fetched() {
        let max_age = ("Cache-Control", "max-age=99");
        assert_eq!(
            says(&with(200, &[max_age, ("Cache-Control", "no-store"), ETAG]), Duration::ZERO),
            "fetch"
        );
        assert_eq!(says(&with(200, &[max_age, ("Vary", "*"), ETAG]), Duration::ZERO), "fetch");
        assert_eq!(
            says(&with(200, &[("Cache-Control", "no-cache, max-age=99"), ETAG]), Duration::ZERO),
            "validate"
        );
        assert_eq!(says(&with(200, &[("Cache-Control", "no-cache")]), Duration::ZERO), "fetch");
        let post = Resource { method: "POST".into(), ..with(200, &[max_age]) };
        assert_eq!(says(&post, Duration::ZERO), "fetch");
    }

    /// RFC 9110 §13.1.2, §13.1.3: the conditions are made of both validators.
    #[test]
    fn a_validation_shows_the_server_both_validators() {
        let modified = ("Last-Modified", "Mon, 27 Aug 2012 09:42:15 GMT");
        let Reuse::Validate(fields) = reuse(&with(200, &[ETAG, modified]), DAY) else {
            panic!("no date, so stale")
        };
        assert_eq!(fields.get_str("if-none-match"), Some("\"x\""));
        assert_eq!(fields.get_str("if-modified-since"), Some(modified.1));
    }

    /// Fields come from recordings, which anybody may have written.
    #[test]
    fn whatever_fields_say_there_is_an_answer() {
        const PIECES: [&str; 16] = [
            "max-age",
            "=",
            ",",
            "\"",
            "no-cache",
            "-1",
            "99999999999999999999",
            "Sun, ",
            "06 Nov",
            " 1994 ",
            "08:49:37",
            " GMT",
            "W/",
            "*",
            "é",
            "0",
        ];
        let mut rng = base::Rng::new(1);
        let mut answers = std::collections::BTreeSet::new();
        for _ in 0..5_000 {
            let mut text = || (0..rng.below(6)).map(|_| PIECES[rng.below(16) as usize]).collect::<String>();
            let names = ["Cache-Control", "Expires", "Date", "Last-Modified", "Age", "Vary", "ETag"];
            let fields = names.map(|name| (name, text()));
            let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
            answers.insert(says(&with(200, &fields), DAY));
        }
        assert_eq!(answers.into_iter().collect::<Vec<_>>(), ["fetch", "fresh", "validate"]);
    }
}
