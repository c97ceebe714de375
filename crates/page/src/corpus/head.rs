//! Header fields as browsers and servers of the time sent them.

use base::{Fields, Rng};

use crate::model::Kind;

const AGENT_2012: &str = "Mozilla/5.0 (Windows NT 6.1; WOW64) AppleWebKit/537.4 (KHTML, like Gecko) Chrome/22.0.1229.79 Safari/537.4";
const AGENT_TODAY: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36";
const SERVERS: [&str; 5] = ["Apache", "nginx", "Apache/2.2.15 (CentOS)", "Microsoft-IIS/7.5", "cloudflare"];

/// The request's fields. `referer` is empty for a navigation, `cookie` for a host that has set none.
pub(super) fn request(kind: Kind, tls: bool, referer: &str, cookie: &str) -> Fields {
    let mut fields = Fields::new();
    if tls {
        fields.push(
            "sec-ch-ua",
            "\"Google Chrome\";v=\"131\", \"Chromium\";v=\"131\", \"Not_A Brand\";v=\"24\"",
        );
        fields.push("sec-ch-ua-mobile", "?0");
        fields.push("sec-ch-ua-platform", "\"Windows\"");
    }
    let agent = if tls { AGENT_TODAY } else { AGENT_2012 };
    fields.push("User-Agent", agent);
    fields.push("Accept", accept(kind, tls));
    if tls {
        fields.push("sec-fetch-site", if referer.is_empty() { "none" } else { "cross-site" });
        fields.push("sec-fetch-mode", if kind == Kind::Document { "navigate" } else { "no-cors" });
        fields.push("sec-fetch-dest", destination(kind));
    }
    if !referer.is_empty() {
        fields.push("Referer", referer.to_owned());
    }
    fields.push("Accept-Encoding", if tls { "gzip, deflate, br, zstd" } else { "gzip,deflate,sdch" });
    fields.push("Accept-Language", "en-US,en;q=0.8");
    if !tls {
        fields.push("Accept-Charset", "ISO-8859-1,utf-8;q=0.7,*;q=0.3");
    }
    if !cookie.is_empty() {
        fields.push("Cookie", cookie.to_owned());
    }
    fields
}

fn accept(kind: Kind, tls: bool) -> &'static str {
    match kind {
        Kind::Document => "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        Kind::Style => "text/css,*/*;q=0.1",
        Kind::Image if tls => "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
        _ => "*/*",
    }
}

fn destination(kind: Kind) -> &'static str {
    match kind {
        Kind::Document => "document",
        Kind::Style => "style",
        Kind::Script => "script",
        Kind::Image => "image",
        Kind::Font => "font",
        Kind::Media => "video",
        Kind::Xhr | Kind::Other => "empty",
    }
}

/// What a response's fields follow from.
pub(super) struct Answer<'a> {
    pub kind: Kind,
    pub tls: bool,
    pub body_len: u64,
    /// Made for this request rather than a file.
    pub dynamic: bool,
    /// What it redirects to; empty if it does not.
    pub location: &'a str,
}

/// The response's fields.
pub(super) fn response(answer: &Answer<'_>, rng: &mut Rng) -> Fields {
    let mut fields = Fields::new();
    fields.push("Date", "Tue, 18 Sep 2012 09:42:15 GMT");
    fields.push("Server", SERVERS[rng.below(SERVERS.len() as u64) as usize]);
    if !answer.location.is_empty() {
        fields.push("Location", answer.location.to_owned());
    }
    fields.push("Content-Type", mime_type(answer.kind, answer.tls, rng));
    fields.push("Content-Length", answer.body_len.to_string());
    if matches!(answer.kind, Kind::Document | Kind::Style | Kind::Script | Kind::Xhr) && answer.body_len > 200
    {
        fields.push("Content-Encoding", if answer.tls && rng.chance(0.5) { "br" } else { "gzip" });
        fields.push("Vary", "Accept-Encoding");
    }
    if answer.dynamic {
        fields.push("Cache-Control", "private, no-cache, no-store, must-revalidate");
        fields.push("Expires", "Thu, 01 Jan 1970 00:00:00 GMT");
        if !answer.tls && rng.chance(0.4) {
            fields.push("P3P", "CP=\"NOI DSP COR NID CUR ADMa DEVa TAIa PSAa PSDa OUR IND UNI COM NAV INT\"");
        }
        if rng.chance(0.5) {
            let value = token(rng, 24);
            fields.push("Set-Cookie", format!("id={value}; path=/; expires=Wed, 18 Sep 2013 09:42:15 GMT"));
        }
    } else {
        fields.push("Last-Modified", "Mon, 27 Aug 2012 14:07:31 GMT");
        fields.push("ETag", format!("\"{}\"", token(rng, 16)));
        fields.push("Cache-Control", "public, max-age=31536000");
        fields.push("Accept-Ranges", "bytes");
    }
    if answer.tls {
        fields.push("strict-transport-security", "max-age=31536000; includeSubDomains; preload");
        fields.push("x-content-type-options", "nosniff");
        fields.push("access-control-allow-origin", "*");
        fields.push("alt-svc", "h3=\":443\"; ma=86400");
    }
    if rng.chance(0.4) {
        fields.push("X-Cache", "HIT");
        fields.push("Age", rng.below(100_000).to_string());
    }
    fields
}

fn mime_type(kind: Kind, tls: bool, rng: &mut Rng) -> &'static str {
    match kind {
        Kind::Document => "text/html; charset=utf-8",
        Kind::Style => "text/css",
        Kind::Script if tls => "text/javascript; charset=utf-8",
        Kind::Script => "application/x-javascript",
        Kind::Image if tls => "image/webp",
        Kind::Image => ["image/jpeg", "image/png", "image/gif"][rng.weighted(&[0.5, 0.3, 0.2])],
        Kind::Font if tls => "font/woff2",
        Kind::Font => "application/x-font-woff",
        Kind::Xhr => "application/json",
        Kind::Media => "video/mp4",
        Kind::Other if tls => "application/manifest+json",
        Kind::Other => "application/x-shockwave-flash",
    }
}

/// `len` characters that do not compress: hexadecimal digits.
pub(super) fn token(rng: &mut Rng, len: usize) -> String {
    let mut out = String::with_capacity(len + 16);
    while out.len() < len {
        out.push_str(&format!("{:016x}", rng.next_u64()));
    }
    out.truncate(len);
    out
}
