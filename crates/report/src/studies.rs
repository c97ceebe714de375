//! The page about published experiments: static, drawn here, without a script; and the same findings as Markdown.

mod plot;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use lab::Error;
use lab::study::{Findings, Verdict, rounded};

use crate::html::escape;

/// The name of the page within its folder.
pub const FILE: &str = "studies.html";

/// Nothing may be fetched, and nothing runs.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1a1a1a;--soft:#666;--line:#bbb;--paper:#fff}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e6e6;--soft:#9a9a9a;--line:#555;--paper:#161616}}\
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:64rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.5rem 0 1.5rem}\
th,td{text-align:left;padding:.15rem 1rem .15rem 0;border-bottom:1px solid var(--line);font-weight:400}\
th{color:var(--soft)}td.n{text-align:right}p.verdict{font-size:1.1rem}\
figure{display:inline-block;margin:0 2rem 1rem 0;vertical-align:top}\
figcaption{color:var(--soft);max-width:27rem}svg text{fill:var(--ink);font:12px system-ui,sans-serif}\
.axis{stroke:var(--line);fill:none}.id{stroke:#c0392b;fill:none}.curve{fill:none;stroke-width:2}\
h2{margin-top:2.6rem;font-size:1.25rem}li{color:var(--soft)}";

/// Draws findings and writes the page to a folder, which is made; gives the page's path.
pub fn write(dir: &Path, findings: &[Findings]) -> Result<PathBuf, Error> {
    let path = dir.join(FILE);
    let refused = |source| Error::Io { action: "cannot write", path: path.clone(), source };
    fs::create_dir_all(dir).map_err(refused)?;
    fs::write(&path, render(findings)).map_err(refused)?;
    Ok(path)
}

/// The page.
pub fn render(findings: &[Findings]) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Studies – Velodrome</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>What made browsers fast: published experiments, made again</h1>\n<p>{}</p>\n",
        escape(INTRODUCTION)
    );
    html.push_str("<table><tr><th>study</th><th>verdict</th><th>figures</th></tr>\n");
    for f in findings {
        let _ = writeln!(
            html,
            "<tr><td><a href=\"#{0}\">{0}</a> – {1}</td><td>{2}</td><td>{3}</td></tr>",
            f.study.name,
            escape(&f.study.title),
            word(f.verdict()),
            held(f)
        );
    }
    html.push_str("</table>\n");
    findings.iter().for_each(|f| section(&mut html, f));
    html.push_str("</body>\n</html>\n");
    html
}

const INTRODUCTION: &str = "Each experiment was published by the people who built SPDY, Chrome's network stack or Firefox's \
    pipelining. It is made again here in the virtual world: their conditions as far as they are known, our engines. A figure counts \
    as reproduced if ours is within the range beside it. Verdicts are counted from the figures.";

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::Partly => "in part",
        Verdict::Not => "not reproduced",
    }
}

fn held(f: &Findings) -> String {
    format!("{} of {}", (0..f.ours.len()).filter(|n| f.holds(*n)).count(), f.ours.len())
}

/// Our `n`-th figure, or why there is none.
fn ours(f: &Findings, n: usize) -> String {
    f.ours[n].map_or_else(|| "none was seen".to_owned(), rounded)
}

fn section(html: &mut String, f: &Findings) {
    let study = &f.study;
    let _ = write!(
        html,
        "<h2 id=\"{}\">{}</h2>\n<p>{}</p>\n<p class=\"verdict\">{}</p>\n",
        study.name,
        escape(&study.title),
        escape(&study.claim),
        escape(&f.says())
    );
    html.push_str(
        "<table><tr><th></th><th>published</th><th>ours</th><th>counts as the same</th><th></th></tr>\n",
    );
    for (n, p) in study.published.iter().enumerate() {
        let _ = writeln!(
            html,
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td>{}–{}</td><td>{}</td></tr>",
            escape(&p.what),
            escape(&p.figure),
            ours(f, n),
            p.low,
            p.high,
            if f.holds(n) { "✓" } else { "✗" }
        );
    }
    html.push_str("</table>\n<div>");
    f.figures.iter().for_each(|figure| plot::draw(html, figure));
    html.push_str("</div>\n<p>What differs:</p>\n<ul>\n");
    for what in study.differs.iter().chain(&left_out(f)) {
        let _ = writeln!(html, "<li>{}</li>", escape(what));
    }
    let _ = writeln!(html, "</ul>\n<p><b>To take from it.</b> {}</p>", escape(f.lesson()));
}

fn left_out(f: &Findings) -> Option<String> {
    (f.incomplete > 0)
        .then(|| format!("{} of {} loads were not whole and are left out.", f.incomplete, f.loads))
}

/// The first lines of the document that [`markdown`] makes.
const HEAD: &str =
    "# Studies\n\n<!-- Made by `velodrome study --all --doc docs/studies.md`; not edited by hand. -->\n\n";

/// The findings as a document, without pictures.
pub fn markdown(findings: &[Findings]) -> String {
    let mut out = format!("{HEAD}{INTRODUCTION}\n\n| study | verdict | figures |\n|---|---|---|\n");
    for f in findings {
        let _ = writeln!(
            out,
            "| [{0}](#{0}) – {1} | {2} | {3} |",
            f.study.name,
            f.study.title,
            word(f.verdict()),
            held(f)
        );
    }
    for f in findings {
        let _ = write!(out, "\n{}", markdown_section(f));
    }
    out
}

/// One study's findings as Markdown.
pub fn markdown_section(f: &Findings) -> String {
    let study = &f.study;
    let mut out = format!("## {}\n\n{}. {}\n\n**{}**\n\n", study.name, study.title, study.claim, f.says());
    out.push_str("| figure | published | ours | counts as the same | |\n|---|---|---:|---|---|\n");
    for (n, p) in study.published.iter().enumerate() {
        let mark = if f.holds(n) { "✓" } else { "✗" };
        let _ =
            writeln!(out, "| {} | {} | {} | {}–{} | {mark} |", p.what, p.figure, ours(f, n), p.low, p.high);
    }
    out.push_str("\nWhat differs:\n\n");
    for what in study.differs.iter().chain(&left_out(f)) {
        let _ = writeln!(out, "- {what}");
    }
    let _ = writeln!(out, "\n**To take from it.** {}", f.lesson());
    out
}

#[cfg(test)]
mod tests;
