//! What kind of thing was loaded.
//!
//! Evidence in order of trust: the recorder's `_resourceType`; the request's `Sec-Fetch-Dest`; an `Accept` that only
//! one kind of request has; `mimeType`, unless the status says that it describes an error page; the URL's extension.

use crate::har::entry::header;
use crate::har::notes::Notes;
use crate::har::record::Header;
use crate::har::url::Url;
use crate::model::Kind;

pub(crate) struct Evidence<'a> {
    pub resource_type: &'a str,
    pub request: &'a [Header],
    pub mime_type: &'a str,
    pub url: &'a Url,
    pub status: u16,
}

pub(crate) fn of(e: &Evidence<'_>, notes: &mut Notes) -> Kind {
    let (kind, source) = decide(e);
    let source = match source {
        Source::Recorder => "the recorder or Sec-Fetch-Dest",
        Source::Accept => "Accept",
        Source::MimeType => "mimeType",
        Source::Extension => "the URL's extension",
        Source::Nothing => "nothing (\"other\")",
    };
    notes.tally("kinds", "kind of resource from", source);
    kind
}

#[derive(PartialEq, Debug)]
enum Source {
    Recorder,
    Accept,
    MimeType,
    Extension,
    Nothing,
}

fn decide(e: &Evidence<'_>) -> (Kind, Source) {
    let mime = from_mime_type(e.mime_type);
    let recorded = match e.resource_type.to_ascii_lowercase().as_str() {
        "document" | "subdocument" => Some(Kind::Document),
        "stylesheet" | "css" => Some(Kind::Style),
        "script" => Some(Kind::Script),
        "image" => Some(Kind::Image),
        "font" => Some(Kind::Font),
        "xhr" | "fetch" | "eventsource" | "preflight" => Some(Kind::Xhr),
        "media" => Some(Kind::Media),
        "ping" | "manifest" | "texttrack" | "cspviolationreport" | "websocket" => Some(Kind::Other),
        // "other" is also what a preload is called: better evidence may follow.
        _ => None,
    };
    let dest = || match header(e.request, "sec-fetch-dest")?.trim() {
        "document" | "iframe" | "frame" | "nested-document" => Some(Kind::Document),
        "style" => Some(Kind::Style),
        "script" | "worker" | "sharedworker" | "serviceworker" => Some(Kind::Script),
        "image" => Some(Kind::Image),
        "font" => Some(Kind::Font),
        "audio" | "video" => Some(Kind::Media),
        "empty" => Some(Kind::Xhr),
        _ => None,
    };
    if let Some(kind) = recorded.or_else(dest) {
        return (kind, Source::Recorder);
    }
    let accept = header(e.request, "accept").unwrap_or("").trim();
    let by_script = header(e.request, "x-requested-with").is_some();
    let extension = e.url.extension().and_then(|x| from_extension(&x));
    let by_accept = match accept {
        _ if by_script => Some(Kind::Xhr),
        a if a.starts_with("text/html") => Some(Kind::Document),
        a if a.starts_with("text/css") => Some(Kind::Style),
        a if a.starts_with("image/") => Some(Kind::Image),
        _ => None,
    };
    // A navigation's Accept also asks for a PDF or an image in a frame: what came back is more telling.
    match (by_accept, mime) {
        (Some(Kind::Document), Some(other)) if other != Kind::Document && e.status < 400 => {
            return (other, Source::MimeType);
        }
        (Some(kind), _) => return (kind, Source::Accept),
        (None, _) => {}
    }
    match mime {
        // HTML that nobody asked for as HTML: the error page of another kind, or data for a script.
        Some(Kind::Document) if extension.is_some_and(|x| x != Kind::Document) => {
            (extension.unwrap_or(Kind::Other), Source::Extension)
        }
        Some(Kind::Document) if !accept.is_empty() => (Kind::Xhr, Source::MimeType),
        Some(kind) if e.status < 400 || extension.is_none() => (kind, Source::MimeType),
        _ => match extension {
            Some(kind) => (kind, Source::Extension),
            None => (Kind::Other, Source::Nothing),
        },
    }
}

fn from_mime_type(text: &str) -> Option<Kind> {
    let mime = text.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    let (top, sub) = mime.split_once('/')?;
    Some(match (top, sub) {
        ("text", "html") | ("application", "xhtml+xml") => Kind::Document,
        ("text", "css") => Kind::Style,
        (_, s) if s.contains("javascript") || s.contains("ecmascript") => Kind::Script,
        ("font", _) => Kind::Font,
        (_, s) if s.contains("font") => Kind::Font,
        ("image", _) => Kind::Image,
        ("audio" | "video", _) => Kind::Media,
        ("application", "vnd.apple.mpegurl" | "x-mpegurl" | "dash+xml") => Kind::Media,
        ("application", "manifest+json") => Kind::Other,
        (_, "json" | "xml" | "event-stream" | "x-protobuf") => Kind::Xhr,
        ("application", s) if s.ends_with("+json") || s.ends_with("+xml") => Kind::Xhr,
        _ => return None,
    })
}

fn from_extension(extension: &str) -> Option<Kind> {
    Some(match extension {
        "html" | "htm" | "xhtml" => Kind::Document,
        "css" => Kind::Style,
        "js" | "mjs" => Kind::Script,
        "png" | "gif" | "jpg" | "jpeg" | "webp" | "avif" | "svg" | "ico" | "bmp" => Kind::Image,
        "woff" | "woff2" | "ttf" | "otf" | "eot" => Kind::Font,
        "mp4" | "webm" | "mp3" | "ogg" | "m4a" | "m3u8" | "ts" => Kind::Media,
        "json" | "xml" => Kind::Xhr,
        "swf" => Kind::Other,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::har::record::Text;

    fn kind(path: &str, mime_type: &str, accept: &str, status: u16) -> (Kind, Source) {
        let request = [Header { name: Text("Accept".into()), value: Text(accept.into()) }];
        let url = Url::parse(&format!("http://a.example{path}")).unwrap();
        let request = if accept.is_empty() { &[][..] } else { &request[..] };
        decide(&Evidence { resource_type: "", request, mime_type, url: &url, status })
    }

    #[test]
    fn the_best_evidence_decides_the_kind() {
        use Source::{Accept, Extension, MimeType, Nothing};
        assert_eq!(
            kind("/", "text/html; charset=utf-8", "text/html,*/*;q=0.8", 200),
            (Kind::Document, Accept)
        );
        assert_eq!(kind("/x", "text/html", "*/*", 200), (Kind::Xhr, MimeType));
        assert_eq!(kind("/x", "text/html", "", 200), (Kind::Document, MimeType));
        assert_eq!(kind("/a.png", "text/html", "*/*", 404), (Kind::Image, Extension));
        assert_eq!(kind("/pixel", "text/plain", "image/webp,*/*", 204), (Kind::Image, Accept));
        assert_eq!(kind("/f.woff2?v=1", "application/octet-stream", "*/*", 200), (Kind::Font, Extension));
        assert_eq!(kind("/f", "application/x-font-woff", "*/*", 200), (Kind::Font, MimeType));
        assert_eq!(kind("/d", "application/ld+json", "*/*", 200), (Kind::Xhr, MimeType));
        assert_eq!(kind("/i", "image/png", "text/html,*/*", 200), (Kind::Image, MimeType));
        assert_eq!(kind("/a.js", "image/svg+xml", "*/*", 500), (Kind::Script, Extension));
        assert_eq!(kind("/q", "", "", 200), (Kind::Other, Nothing));
    }
}
