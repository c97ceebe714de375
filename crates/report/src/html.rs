//! The page around the data.

use std::fmt::Write as _;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;

use crate::Report;

/// What `web/` builds.
const SCRIPT: &str = include_str!("../../../web/dist/report.js");
const STYLE: &str = include_str!("../../../web/dist/report.css");

/// Nothing may be fetched, from anywhere: whoever opens a report can see that it is whole.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// How hard to deflate. Fixed, as the page is a pure function of its folder; above 6 it is hardly smaller.
const LEVEL: Compression = Compression::new(6);

impl Report {
    /// The page.
    pub fn render(&self) -> String {
        let summary = &self.overview.summary;
        let pages = if summary.pages == 1 { "page" } else { "pages" };
        let title = format!("{}: {} {pages}", summary.transports.join(" / "), summary.pages);
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{} – Velodrome</title>\n<link rel=\"icon\" href=\"data:,\">\n\
             <style>\n{STYLE}</style>\n</head>\n<body>\n\
             <noscript>This report draws itself: it needs JavaScript, and nothing else.</noscript>\n\
             <div id=\"app\"></div>\n",
            escape(&title)
        );
        block(&mut html, "overview", &self.overview);
        for (i, page) in self.details.iter().enumerate() {
            block(&mut html, &format!("page-{i}"), page);
        }
        let _ = write!(html, "<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
        html
    }
}

/// Appends a value as a block that the front end finds by its id.
fn block<T: Serialize>(html: &mut String, id: &str, value: &T) {
    let mut deflated = ZlibEncoder::new(Vec::new(), LEVEL);
    serde_json::to_writer(&mut deflated, value).expect("string keys and finite numbers, into a vector");
    deflated.flush().expect("a vector takes every byte");
    let deflated = deflated.finish().expect("a vector takes every byte");
    let _ = write!(html, "<script type=\"text/plain\" id=\"data-{id}\">");
    STANDARD.encode_string(deflated, html);
    html.push_str("</script>\n");
}

/// Text as HTML.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_end_the_element_or_attribute_it_stands_in() {
        assert_eq!(escape("</title><b a=\"1\">&"), "&lt;/title&gt;&lt;b a=&quot;1&quot;&gt;&amp;");
    }

    #[test]
    fn the_front_end_cannot_end_its_own_element() {
        for text in [SCRIPT, STYLE] {
            let lower = text.to_ascii_lowercase();
            assert!(!lower.contains("</script") && !lower.contains("</style") && !lower.contains("<!--"));
        }
    }
}
