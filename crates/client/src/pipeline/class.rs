//! Classes of requests. A pipeline carries one, so that a long answer holds up only its like.

use base::RequestHead;

/// What a request is to pipelining (nsHttpTransaction.cpp, Classify).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// Never pipelined.
    Solo,
    /// Conditional: likely to be answered by a head alone.
    Revalidation,
    /// A script or style sheet.
    Script,
    /// An image.
    Image,
    /// Anything else.
    General,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 5] =
        [Class::Solo, Class::Revalidation, Class::Script, Class::Image, Class::General];

    /// The class of a request by its head, if its method may be sent again and it has no body; [`Class::Solo`] if not.
    pub fn of(head: &RequestHead, body_len: u64) -> Self {
        let has = |name| head.fields.get(name).is_some();
        let accepts = |start: &str| head.fields.get_str("accept").is_some_and(|a| a.starts_with(start));
        let path = head.path.split(|b| *b == b'?').next().unwrap_or_default();
        let ends = |suffixes: &[&str]| suffixes.iter().any(|s| path.ends_with(s.as_bytes()));
        if !is_repeatable(&head.method) || body_len > 0 || has("upgrade") {
            Class::Solo
        } else if has("if-modified-since") || has("if-none-match") {
            Class::Revalidation
        } else if accepts("text/css") || ends(&[".js", ".css"]) {
            Class::Script
        } else if accepts("image/") || ends(&[".png", ".gif", ".jpg", ".jpeg", ".webp", ".ico"]) {
            Class::Image
        } else {
            Class::General
        }
    }
}

/// Whether a method may be sent again if its pipeline breaks, so that it may be in one (nsHttpChannel.cpp,
/// SetupTransaction).
fn is_repeatable(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"PROPFIND" | b"PROPPATCH")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Fields;

    fn class(method: &'static str, path: &'static str, field: Option<(&'static str, &'static str)>) -> Class {
        let mut fields = Fields::new();
        if let Some((name, value)) = field {
            fields.push(name, value);
        }
        let (scheme, authority) = ("http".into(), "a.example".into());
        Class::of(&RequestHead { method: method.into(), scheme, authority, path: path.into(), fields }, 0)
    }

    #[test]
    fn requests_are_classed_by_what_they_ask_for() {
        assert_eq!(class("GET", "/a", Some(("If-None-Match", "\"x\""))), Class::Revalidation);
        assert_eq!(class("GET", "/a.js?v=1", None), Class::Script);
        assert_eq!(class("GET", "/a", Some(("Accept", "text/css,*/*"))), Class::Script);
        assert_eq!(class("GET", "/a", Some(("Accept", "image/png,image/*"))), Class::Image);
        assert_eq!(class("GET", "/a.gif", None), Class::Image);
        assert_eq!(class("GET", "/feed", None), Class::General);
    }

    #[test]
    fn only_methods_that_may_be_repeated_are_pipelined() {
        for method in ["GET", "HEAD", "OPTIONS", "PROPFIND", "PROPPATCH"] {
            assert_ne!(class(method, "/", None), Class::Solo);
        }
        for method in ["POST", "PUT", "DELETE", "CONNECT"] {
            assert_eq!(class(method, "/", None), Class::Solo);
        }
    }
}
