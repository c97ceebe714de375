//! The page about published experiments: static, drawn here, without a script; and the same findings as Markdown.

pub mod live;
mod panels;
mod plot;
mod timelines;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use lab::Error;
use lab::study::{Findings, Picture, Table, Verdict, rounded};

use crate::html::{STATIC_END, escape, static_page};

/// The name of the page within its folder.
pub const FILE: &str = "studies.html";

const STYLE: &str = "\
th,td{text-align:left}td.n{text-align:right}p.verdict{font-size:1.1rem}\
h2{margin-top:2.6rem;font-size:1.25rem}li{color:var(--soft)}\
figure.panels{display:block;margin:1rem 0}figure.panels>svg{max-width:100%;height:auto}figure.panels figcaption{max-width:60rem}\
.grid,.behind{fill:none;stroke:var(--line)}.grid{stroke-dasharray:2 5}.behind{opacity:.55}.zero{stroke:var(--soft)}\
.packet{fill:none;stroke-width:1.4}.leader{fill:none;stroke:var(--soft);stroke-width:.7}svg text.soft{fill:var(--soft)}svg text.name{font-weight:600}\
.published{fill:none;stroke:#d55e00}svg text.published{fill:#d55e00}.own-moment{fill:none;stroke:var(--soft)}\
.timelines text{paint-order:stroke;stroke:var(--paper);stroke-width:3px}svg text.published{stroke:var(--paper)}\
.own caption{text-align:left;color:var(--soft);padding-bottom:.3rem}\
@media print{figure{break-inside:avoid}body{margin:0;max-width:none}}";

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
    let heading = "What made browsers fast: published experiments, made again";
    let mut html = static_page("Studies", heading, STYLE);
    let _ = writeln!(html, "<p>{}</p>", escape(INTRODUCTION));
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
    html.push_str(STATIC_END);
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
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td>{} to {}</td><td>{}</td></tr>",
            escape(&p.what),
            escape(&p.figure),
            ours(f, n),
            p.low,
            p.high,
            if f.holds(n) { "✓" } else { "✗" }
        );
    }
    html.push_str("</table>\n");
    if !f.turns.is_empty() {
        let list: String = f.turns.iter().map(|what| format!("<li>{}</li>", escape(what))).collect();
        let _ = writeln!(html, "<p>{TURNS}</p>\n<ul>{list}</ul>");
    }
    html.push_str("<div>");
    f.pictures.iter().for_each(|picture| draw(html, picture));
    html.push_str("</div>\n<p>What differs:</p>\n<ul>\n");
    for what in study.differs.iter().chain(&left_out(f)) {
        let _ = writeln!(html, "<li>{}</li>", escape(what));
    }
    let _ = writeln!(html, "</ul>\n<p><b>To take from it.</b> {}</p>", escape(f.lesson()));
}

fn draw(html: &mut String, picture: &Picture) {
    match picture {
        Picture::Figure(figure) => plot::draw(html, figure),
        Picture::Panels(panels) => panels::draw(html, panels),
        Picture::TimeLines(lines) => timelines::draw(html, lines),
        Picture::Table(table) => tabulate(html, table),
    }
}

/// A table of a study's own.
fn tabulate(html: &mut String, table: &Table) {
    html.push_str("<table class=\"own\"><caption>");
    let _ = write!(html, "{}</caption>\n<tr>", escape(&table.caption));
    table.head.iter().for_each(|cell| {
        let _ = write!(html, "<th>{}</th>", escape(cell));
    });
    for row in &table.rows {
        html.push_str("</tr>\n<tr>");
        for (n, cell) in row.iter().enumerate() {
            let class = if n == 0 { "" } else { " class=\"n\"" };
            let _ = write!(html, "<td{class}>{}</td>", escape(cell));
        }
    }
    html.push_str("</tr>\n</table>\n");
}

/// What the list of [`Findings::turns`] is.
const TURNS: &str = "Under which conditions it turns:";

fn left_out(f: &Findings) -> Option<String> {
    (f.incomplete > 0)
        .then(|| format!("{} of {} loads were not whole and are left out.", f.incomplete, f.loads))
}

/// The first lines of the document that [`markdown`] makes.
const HEAD: &str =
    "# Studies\n\n<!-- Made by `velodrome study --all --doc docs/studies.md`; not edited by hand. -->\n\n";

/// The findings as a document: their tables, but no pictures.
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
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} to {} | {mark} |",
            p.what,
            p.figure,
            ours(f, n),
            p.low,
            p.high
        );
    }
    if !f.turns.is_empty() {
        let _ = writeln!(out, "\n{TURNS}\n\n- {}", f.turns.join("\n- "));
    }
    for picture in &f.pictures {
        if let Picture::Table(table) = picture {
            markdown_table(&mut out, table);
        }
    }
    out.push_str("\nWhat differs:\n\n");
    for what in study.differs.iter().chain(&left_out(f)) {
        let _ = writeln!(out, "- {what}");
    }
    let _ = writeln!(out, "\n**To take from it.** {}", f.lesson());
    out
}

fn markdown_table(out: &mut String, table: &Table) {
    let rule = (0..table.head.len()).map(|n| if n == 0 { "---" } else { "---:" });
    let _ = writeln!(out, "\n{}\n\n| {} |", table.caption, table.head.join(" | "));
    let _ = writeln!(out, "|{}|", rule.collect::<Vec<_>>().join("|"));
    for row in &table.rows {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
}

#[cfg(test)]
mod tests;
