//! The page about what a client has learned: for each page its hosts, what the next visit opens, and what the last ones cost and
//! brought. Static, drawn here, without a script.

mod plot;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use lab::Error;
use lab::topology::{Estimate, HostView, PageView, Topology};

use crate::html::{STATIC_END, escape, static_page};

const STYLE: &str = "\
td{text-align:right}th{text-align:right;vertical-align:bottom}td:first-child,th:first-child{text-align:left}\
h2{margin-top:2.6rem;font-size:1.25rem;overflow-wrap:anywhere}p.how{color:var(--soft)}";

/// Draws what a client has learned, on `conditions`, and writes the page to a file, whose folder is made.
///
/// A page that is already there is replaced as a whole or not at all.
pub fn write(path: &Path, topology: &Topology, conditions: &[String]) -> Result<(), Error> {
    let refused = |source| Error::Io { action: "cannot write", path: path.to_owned(), source };
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        fs::create_dir_all(dir).map_err(refused)?;
    }
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    fs::write(&part, render(topology, conditions)).and_then(|()| fs::rename(&part, path)).map_err(refused)
}

/// The page. `conditions` say how the client learned, a sentence each; there may be none.
pub fn render(topology: &Topology, conditions: &[String]) -> String {
    let mut html = static_page("Topology", "What the client has learned", STYLE);
    let _ = writeln!(html, "<p>{}</p>", escape(INTRODUCTION));
    for condition in conditions {
        let _ = writeln!(html, "<p class=\"how\">{}</p>", escape(condition));
    }
    overview(&mut html, topology);
    if topology.knows_pipelining() {
        let _ = writeln!(html, "<p>{}</p>", escape(PIPELINING));
    }
    for (n, page) in topology.pages.iter().enumerate() {
        section(&mut html, n, page, topology.knows_pipelining());
    }
    html.push_str(STATIC_END);
    html
}

const INTRODUCTION: &str = "For every page, known by its document's origin, the hosts that its visits used; what is expected of the next \
    visit; what that opens before its document is there, on the page's own host with the one that the document takes; and what was opened \
    ahead of need in earlier visits. A connection is used if it carried a request, wasted if it carried none.";

const PIPELINING: &str = "How far pipelining trusts a host: red not until it has paid off what it owes, of which good answers and time pay a \
    point each; yellow with one trial; green as it has passed one, and without a bound of its own if it has proven itself from the third \
    place or deeper. A class of requests may owe by itself. What was learned last is shown, whichever page it was learned of.";

fn overview(html: &mut String, topology: &Topology) {
    html.push_str(
        "<table><tr><th>page</th><th>visits</th><th>hosts</th><th>resources<br>a visit</th><th>opened ahead</th><th>used</th><th>wasted</th></tr>\n",
    );
    for (n, page) in topology.pages.iter().enumerate() {
        let sum = |figure: fn(&HostView) -> u64| page.hosts.iter().map(figure).sum::<u64>();
        let _ = writeln!(
            html,
            "<tr><td><a href=\"#page-{n}\">{}</a></td><td>{}</td><td>{}</td><td>{:.1}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&page.page),
            page.visits,
            page.hosts.len(),
            page.hosts.iter().map(|h| h.resources).sum::<f64>(),
            sum(|h| h.made),
            sum(|h| h.used),
            sum(|h| h.wasted)
        );
    }
    html.push_str("</table>\n");
}

fn section(html: &mut String, n: usize, page: &PageView, pipelines: bool) {
    let visits = if page.visits == 1 { "visit" } else { "visits" };
    let _ = write!(
        html,
        "<h2 id=\"page-{n}\">{}</h2>\n<p>{} {visits}. {}</p>\n",
        escape(&page.page),
        page.visits,
        escape(&needs(page))
    );
    plot::hosts(html, page);
    plot::visits(html, page);
    html.push_str("<table><tr><th>host</th><th>resources<br>a visit</th><th>connections<br>a visit</th><th>expected</th><th>next visit opens</th><th>opened ahead</th><th>used</th><th>wasted</th>");
    html.push_str(if pipelines { "<th>pipelining</th></tr>\n" } else { "</tr>\n" });
    for host in &page.hosts {
        let list = |what: fn(&Estimate) -> String| {
            let all: Vec<_> = host.estimates.iter().map(what).collect();
            if all.is_empty() { "forgotten".to_owned() } else { all.join("<br>") }
        };
        let pipelining = pipelines.then(|| format!("<td>{}</td>", escape(&host.pipelining_in_words())));
        let _ = writeln!(
            html,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>{}</tr>",
            escape(&host.host),
            host.resources,
            host.carried,
            list(Estimate::in_words),
            list(Estimate::next_in_words),
            host.made,
            host.used,
            host.wasted,
            pipelining.unwrap_or_default()
        );
    }
    html.push_str("</table>\n");
}

/// "A visit needed 33 resources from a, 71 from b and 5 from c."
fn needs(page: &PageView) -> String {
    let mut hosts: Vec<_> = page.hosts.iter().filter(|h| h.resources > 0.0).collect();
    hosts.sort_by(|a, b| b.resources.total_cmp(&a.resources));
    let rest = hosts.len().saturating_sub(3);
    let name = |h: &HostView| h.host.split("://").last().unwrap_or_default().to_owned();
    let few: Vec<_> = hosts.iter().take(3).map(|h| format!("{} from {}", h.resources, name(h))).collect();
    match (few.is_empty(), rest) {
        (true, _) => "No visit got anywhere.".to_owned(),
        (false, 0) => format!("A visit needed, of resources: {}.", few.join(", ")),
        (false, 1) => format!("A visit needed, of resources: {}, and some of one host more.", few.join(", ")),
        (false, n) => {
            format!("A visit needed, of resources: {}, and some of {n} hosts more.", few.join(", "))
        }
    }
}

#[cfg(test)]
mod tests;
