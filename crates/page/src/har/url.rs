//! The little of URLs that a HAR needs: taking them apart, comparing them, resolving a `Location`. RFC 3986; like
//! browsers, lenient about bytes that should have been percent-encoded.

use std::fmt;

/// An `http` or `https` URL without user and fragment.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Url {
    pub tls: bool,
    /// Lower case; an IPv6 literal with its brackets.
    pub host: String,
    pub port: u16,
    /// Path and query, from the first `/`; printable ASCII only.
    pub path: String,
}

/// Why a string is no [`Url`].
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum NoUrl {
    /// Another scheme: `data:`, `blob:`, `about:`, `ws:`, …
    Scheme,
    /// `http` or `https`, and malformed.
    Malformed(&'static str),
}

impl Url {
    pub fn parse(text: &str) -> Result<Url, NoUrl> {
        let text = text.trim();
        let (scheme, rest) = text.split_once(':').ok_or(NoUrl::Scheme)?;
        let tls = match scheme {
            s if s.eq_ignore_ascii_case("http") => false,
            s if s.eq_ignore_ascii_case("https") => true,
            _ => return Err(NoUrl::Scheme),
        };
        let rest = rest.strip_prefix("//").ok_or(NoUrl::Malformed("no // after the scheme"))?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let authority = authority.rsplit_once('@').map_or(authority, |(_, a)| a);
        let own = if tls { 443 } else { 80 };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, "")) => (host, own),
            Some((host, port)) if !port.contains(']') => {
                (host, port.parse().map_err(|_| NoUrl::Malformed("the port is no number below 65536"))?)
            }
            _ => (authority, own),
        };
        if host.is_empty() {
            return Err(NoUrl::Malformed("no host"));
        }
        if host.len() > 255 || !host.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(NoUrl::Malformed("the host is longer than 255 characters, or not ASCII"));
        }
        Ok(Url { tls, host: host.to_ascii_lowercase(), port, path: clean_path(path) })
    }

    /// The URL that `reference` means when it stands in a document at this one (RFC 3986 §5.2).
    pub fn resolve(&self, reference: &str) -> Option<Url> {
        let reference = reference.trim();
        let scheme_len = reference.find([':', '/', '?', '#']).filter(|i| reference.as_bytes()[*i] == b':');
        if scheme_len.is_some_and(|n| n > 0) {
            return Url::parse(reference).ok();
        }
        if reference.starts_with("//") {
            let scheme = if self.tls { "https:" } else { "http:" };
            return Url::parse(&format!("{scheme}{reference}")).ok();
        }
        let path = self.path.split('?').next().unwrap_or("/");
        let joined = if reference.starts_with('/') {
            reference.to_owned()
        } else if reference.is_empty() || reference.starts_with('#') {
            self.path.clone()
        } else if reference.starts_with('?') {
            format!("{path}{reference}")
        } else {
            let folder = path.rfind('/').map_or("/", |i| &path[..=i]);
            format!("{folder}{reference}")
        };
        Some(Url { path: clean_path(&without_dots(&joined)), ..self.clone() })
    }

    pub fn same_origin(&self, other: &Url) -> bool {
        (self.tls, &self.host, self.port) == (other.tls, &other.host, other.port)
    }

    /// The path's last extension in lower case, if it looks like one.
    pub fn extension(&self) -> Option<String> {
        let path = self.path.split('?').next()?;
        let (_, extension) = path.rsplit('/').next()?.rsplit_once('.')?;
        (1..=5).contains(&extension.len()).then(|| extension.to_ascii_lowercase())
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, own) = if self.tls { ("https", 443) } else { ("http", 80) };
        write!(f, "{scheme}://{}", self.host)?;
        if self.port != own {
            write!(f, ":{}", self.port)?;
        }
        write!(f, "{}", self.path)
    }
}

/// Cuts the fragment, adds the first `/`, and percent-encodes what no request line can carry.
fn clean_path(path: &str) -> String {
    let path = path.split('#').next().unwrap_or_default();
    let mut out = String::with_capacity(path.len() + 1);
    if !path.starts_with('/') {
        out.push('/');
    }
    for byte in path.bytes() {
        if byte.is_ascii_graphic() {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// RFC 3986 §5.2.4, on the path before the query.
fn without_dots(path: &str) -> String {
    let (path, query) = path.find(['?', '#']).map_or((path, ""), |i| path.split_at(i));
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." if last => kept.push(""),
            "." => {}
            ".." => {
                kept.pop();
                if last {
                    kept.push("");
                }
            }
            s => kept.push(s),
        }
    }
    format!("/{}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> String {
        Url::parse(text).unwrap().to_string()
    }

    #[test]
    fn urls_are_taken_apart_as_browsers_do() {
        assert_eq!(url("HTTP://User:pw@EXAMPLE.org:80/a b?ü#x"), "http://example.org/a%20b?%C3%BC");
        assert_eq!(url("https://example.org:8443?q"), "https://example.org:8443/?q");
        assert_eq!(url("http://[::1]/"), "http://[::1]/");
        assert_eq!(url("http://[::1]:81/"), "http://[::1]:81/");
        assert_eq!(Url::parse("data:text/css,"), Err(NoUrl::Scheme));
        assert_eq!(Url::parse("about:blank"), Err(NoUrl::Scheme));
        assert!(matches!(Url::parse("http://"), Err(NoUrl::Malformed(_))));
        assert!(matches!(Url::parse("http://a:99999/"), Err(NoUrl::Malformed(_))));
        assert_eq!(Url::parse("http://a/x/y.min.JS?v=1.png").unwrap().extension().unwrap(), "js");
    }

    /// The examples of RFC 3986 §5.4 that a `Location` can hold.
    #[test]
    fn references_resolve_as_rfc_3986_has_it() {
        let base = Url::parse("http://a/b/c/d;p?q").unwrap();
        for (reference, target) in [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("https://x/y?u=http://z", "https://x/y?u=http://z"),
        ] {
            assert_eq!(base.resolve(reference).unwrap().to_string(), target, "{reference}");
        }
        assert_eq!(base.resolve("mailto:x"), None);
    }
}
