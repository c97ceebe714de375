//! Server hints: a response's head names what its document will need, so that the client can ask for it before the parser comes to it.
//!
//! Two fields have been used for it. `X-Subresources` is Google's of 2009 (the SPDY whitepaper and "X-Subresources", both on
//! chromium.org): `type; URI; type; URI…`, to a client that has sent `X-Subresource: enabled`. `Link` with the relation `preload` is
//! today's (RFC 8288 §3, HTML "Link type preload"): `<URI>; rel=preload; as=style, …`. In either, what is listed is asked for in its
//! order and with the priority that it would have anyway.

use base::Fields;
use bytes::Bytes;

use crate::har::Url;
use crate::model::Kind;

/// The longest value of a field with hints, in bytes: what would make it longer is left out. Ours: the whole of a head that servers and
/// proxies take is bounded by a few times this, and SPDY/2 counts a value's bytes in 16 bits.
pub const VALUE_BYTES_MAX: usize = 16_384;

/// The most things that one document's fields name for a client: as many as streams are usually allowed. The rest is not looked at.
pub const TARGETS_MAX: usize = 100;

/// Which field names what a document needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// `X-Subresources`.
    Subresources,
    /// `Link`, with the relation `preload`.
    Preload,
}

/// What a hint names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Target {
    /// `http` or `https`.
    pub scheme: &'static str,
    /// Host, and port if it is not the scheme's own.
    pub authority: String,
    /// Path and query.
    pub path: String,
}

impl Form {
    /// The response's field.
    pub fn field_name(self) -> &'static str {
        match self {
            Form::Subresources => "X-Subresources",
            Form::Preload => "Link",
        }
    }

    /// What the client says in its request for a document, if it has to say that it wants hints.
    pub fn request_field(self) -> Option<(&'static str, &'static str)> {
        match self {
            Form::Subresources => Some(("X-Subresource", "enabled")),
            Form::Preload => None,
        }
    }

    /// Whether the client that has sent `request` wants hints.
    pub fn is_wanted(self, request: &Fields) -> bool {
        self.request_field().is_none_or(|(name, value)| request.get_str(name) == Some(value))
    }

    /// The field's value that names these, by their URIs as seen from the document; `None` if there is nothing to name. What the form
    /// cannot write (a `;` in the URI for one, a `>` for the other) and what makes the value too long is left out.
    pub fn emit<'a>(self, hints: impl IntoIterator<Item = (&'a str, Kind)>) -> Option<Bytes> {
        let mut out = String::new();
        for (uri, kind) in hints {
            let item = match self {
                Form::Subresources if !uri.contains(';') => format!("{}; {uri}", mime_type(kind)),
                Form::Preload if !uri.contains('>') => match destination(kind) {
                    Some(destination) => format!("<{uri}>; rel=preload; as={destination}"),
                    None => continue,
                },
                _ => continue,
            };
            let between = match self {
                _ if out.is_empty() => "",
                Form::Subresources => "; ",
                Form::Preload => ", ",
            };
            if out.len() + between.len() + item.len() <= VALUE_BYTES_MAX {
                out.push_str(between);
                out.push_str(&item);
            }
        }
        (!out.is_empty()).then(|| out.into())
    }

    /// What a response's fields name, in order and each once, [`TARGETS_MAX`] at most, as seen from a document at `url`. What is malformed, or
    /// of another scheme than HTTP's, names nothing.
    pub fn parse(self, fields: &Fields, url: &str) -> Vec<Target> {
        let Ok(base) = Url::parse(url) else { return Vec::new() };
        let named = fields.iter().filter(|f| f.name.eq_ignore_ascii_case(self.field_name().as_bytes()));
        let mut targets: Vec<Target> = Vec::new();
        for field in named {
            let text = String::from_utf8_lossy(&field.value);
            let uris = match self {
                Form::Subresources => text.split(';').skip(1).step_by(2).map(str::to_owned).collect(),
                Form::Preload => preloads(&text),
            };
            for url in uris.iter().filter(|uri| !uri.trim().is_empty()).filter_map(|uri| base.resolve(uri)) {
                let target = Target::of(&url);
                if targets.len() == TARGETS_MAX {
                    return targets;
                }
                if !targets.contains(&target) {
                    targets.push(target);
                }
            }
        }
        targets
    }
}

impl Target {
    /// What an absolute URL names; `None` if it is no `http` or `https` URL.
    pub fn parse(url: &str) -> Option<Self> {
        Url::parse(url).ok().map(|url| Self::of(&url))
    }

    fn of(url: &Url) -> Self {
        let (scheme, own) = if url.tls { ("https", 443) } else { ("http", 80) };
        let port = if url.port == own { String::new() } else { format!(":{}", url.port) };
        Self { scheme, authority: format!("{}{port}", url.host), path: url.path.clone() }
    }
}

/// The URIs of a `Link` field that are to be preloaded. RFC 8288 §3: between links stands a comma, and so may one within `<>`.
fn preloads(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((uri, parameters)) = rest.split_once('<').and_then(|(_, rest)| rest.split_once('>')) {
        let next = parameters.find('<').unwrap_or(parameters.len());
        let is_preload = |parameter: &str| {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = value.trim().trim_end_matches(',').trim_matches('"');
            name.trim().eq_ignore_ascii_case("rel")
                && value.split_ascii_whitespace().any(|relation| relation.eq_ignore_ascii_case("preload"))
        };
        if parameters[..next].split(';').any(is_preload) {
            out.push(uri.to_owned());
        }
        rest = &parameters[next..];
    }
    out
}

/// What a server that looks at the kind alone takes a resource for.
fn mime_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Document => "text/html",
        Kind::Style => "text/css",
        Kind::Script => "text/javascript",
        Kind::Image => "image/*",
        Kind::Font => "font/woff",
        Kind::Xhr => "application/json",
        Kind::Media => "video/*",
        Kind::Other => "application/octet-stream",
    }
}

/// What the Fetch standard calls a kind; `None` for what cannot be preloaded.
fn destination(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Style => Some("style"),
        Kind::Script => Some("script"),
        Kind::Image => Some("image"),
        Kind::Font => Some("font"),
        Kind::Xhr => Some("fetch"),
        Kind::Media => Some("video"),
        Kind::Document | Kind::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Form; 2] = [Form::Subresources, Form::Preload];

    fn read(form: Form, value: &str) -> Vec<String> {
        let mut fields = Fields::new();
        fields.push(form.field_name().to_ascii_lowercase(), value.to_owned());
        let urls = form.parse(&fields, "https://a.example/dir/page?q");
        urls.iter().map(|t| format!("{}://{}{}", t.scheme, t.authority, t.path)).collect()
    }

    #[test]
    fn what_is_written_is_read_again_in_its_order_and_once() {
        let hints = [
            ("/a.css", Kind::Style),
            ("http://b.example:8080/b,c.js?x=1", Kind::Script),
            ("/a.css", Kind::Style),
        ];
        for form in BOTH {
            let value = form.emit(hints).unwrap();
            let read = read(form, std::str::from_utf8(&value).unwrap());
            assert_eq!(read, ["https://a.example/a.css", "http://b.example:8080/b,c.js?x=1"]);
            assert_eq!(form.emit([]), None);
        }
        assert_eq!(Form::Subresources.emit(hints).unwrap()[..20], b"text/css; /a.css; te"[..]);
        assert_eq!(Form::Preload.emit(hints).unwrap()[..32], b"</a.css>; rel=preload; as=style,"[..]);
    }

    /// The example of "X-Subresources", which has no spaces where ours has some.
    #[test]
    fn the_published_example_is_read() {
        let value = "text/css; http://www.foo.com/styles/foo.css;\nimage/gif;/images/img1.gif";
        assert_eq!(
            read(Form::Subresources, value),
            ["http://www.foo.com/styles/foo.css", "https://a.example/images/img1.gif"]
        );
    }

    #[test]
    fn links_of_other_relations_are_no_hints() {
        let value = r#"</x>; rel=next, <y.css>; as=style; rel="Preload foo", <data:,>; rel=preload, <z"#;
        assert_eq!(read(Form::Preload, value), ["https://a.example/dir/y.css"]);
    }

    #[test]
    fn what_cannot_be_written_or_is_too_much_is_left_out() {
        assert_eq!(Form::Subresources.emit([("/a;b", Kind::Image)]), None);
        assert_eq!(Form::Preload.emit([("/a>b", Kind::Image), ("/frame", Kind::Document)]), None);
        let long = format!("/{}", "x".repeat(9_000));
        for form in BOTH {
            let value =
                form.emit([(&long[..], Kind::Image), (&long[..], Kind::Image), ("/y", Kind::Image)]).unwrap();
            assert!(value.len() <= VALUE_BYTES_MAX);
            assert_eq!(
                read(form, std::str::from_utf8(&value).unwrap()).len(),
                2,
                "the second is left out, not the third"
            );
        }
    }

    #[test]
    fn a_document_names_no_more_than_is_looked_at() {
        for form in BOTH {
            let uris: Vec<String> = (0..TARGETS_MAX + 50).map(|n| format!("/{n}")).collect();
            let value = form.emit(uris.iter().map(|uri| (&uri[..], Kind::Image))).unwrap();
            assert_eq!(read(form, std::str::from_utf8(&value).unwrap()).len(), TARGETS_MAX);
        }
    }

    /// What `fuzz/fuzz_targets/hint.rs` tries for longer.
    #[test]
    fn any_value_names_what_can_be_asked_for_or_nothing() {
        let mut rng = base::Rng::new(1);
        let pieces = [
            "<",
            ">",
            ";",
            ",",
            "/",
            "//",
            "http://a",
            "é",
            "rel=preload",
            "\"",
            "\0",
            "..",
            "?",
            "#",
            ":",
            " ",
            "x",
        ];
        let mut named = 0;
        for _ in 0..20_000 {
            let value: String =
                (0..rng.below(24)).map(|_| pieces[rng.below(pieces.len() as u64) as usize]).collect();
            for form in BOTH {
                let mut fields = Fields::new();
                fields.push(form.field_name(), value.clone());
                for Target { authority, path, .. } in form.parse(&fields, "https://a.example/dir/page?q") {
                    assert!(path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic()), "{value}");
                    assert!(!authority.is_empty() && !authority.contains('/'), "{value}");
                    named += 1;
                }
            }
        }
        assert!(named > 1_000, "{named}");
    }

    #[test]
    fn subresources_are_for_those_who_ask_for_them() {
        let mut request = Fields::new();
        assert!(!Form::Subresources.is_wanted(&request) && Form::Preload.is_wanted(&request));
        let (name, value) = Form::Subresources.request_field().unwrap();
        request.push(name, value);
        assert!(Form::Subresources.is_wanted(&request));
    }
}
