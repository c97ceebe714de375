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

/// Nothing may be fetched, and nothing runs.
const STATIC_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// How pages look that are drawn here and have no script.
const STATIC_STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1a1a1a;--soft:#666;--line:#bbb;--paper:#fff}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e6e6;--soft:#9a9a9a;--line:#555;--paper:#161616}}\
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:64rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.5rem 0 1.5rem}\
th,td{padding:.15rem .9rem .15rem 0;border-bottom:1px solid var(--line);font-weight:400}th{color:var(--soft)}\
figure{display:inline-block;margin:0 2rem 1rem 0;vertical-align:top}\
figcaption{color:var(--soft);max-width:26.5rem}svg text{fill:var(--ink);font:12px system-ui,sans-serif}\
.axis{stroke:var(--line);fill:none}.id{stroke:#c0392b;fill:none}.curve{fill:none;stroke-width:2}";

/// Told apart without colour vision, on light and on dark (Okabe and Ito, 2008).
pub(crate) const COLOURS: [&str; 6] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"];

/// A page without a script, as far as its heading; `style` is what it has of its own. [`STATIC_END`] ends it.
pub(crate) fn static_page(title: &str, heading: &str, style: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{STATIC_POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} – Velodrome</title>\n<link rel=\"icon\" href=\"data:,\">\n\
         <style>{STATIC_STYLE}{style}</style>\n</head>\n<body>\n<h1>{}</h1>\n",
        escape(title),
        escape(heading)
    )
}

/// The end of a page that [`static_page`] began.
pub(crate) const STATIC_END: &str = "</body>\n</html>\n";

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
