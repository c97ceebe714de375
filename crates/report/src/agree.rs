//! The page about two worlds: static, drawn here, without a script.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use lab::Error;
use lab::agree::{Agreement, Cell, Group, PHASES};

use crate::html::{COLOURS, STATIC_END, escape, static_page};

/// The name of the page within its folder.
pub const FILE: &str = "agree.html";

const STYLE: &str = "\
th,td{text-align:right}th{vertical-align:bottom}th.t,td.t{text-align:left}\
p.lead{font-size:1.15rem}h2{margin-top:2.2rem;font-size:1.2rem}.wide{overflow-x:auto}";

/// Draws an agreement and writes it to its folder; gives the page's path.
pub fn write(dir: &Path, agreement: &Agreement) -> Result<PathBuf, Error> {
    let path = dir.join(FILE);
    let refused = |source| Error::Io { action: "cannot write", path: path.clone(), source };
    fs::write(&path, render(agreement)).map_err(refused)?;
    Ok(path)
}

/// The page.
pub fn render(a: &Agreement) -> String {
    let mut html = static_page("Two worlds", "How far the virtual world is from the live one", STYLE);
    lead(&mut html, a);
    let networks = networks(a);
    html.push_str("<div>");
    scatter(&mut html, &a.cells, &networks);
    distribution(&mut html, &a.cells, &networks);
    html.push_str("</div>\n<h2>Errors of the page load time</h2>\n");
    groups(&mut html, &a.groups);
    html.push_str("<h2>Where in the load they part</h2>\n");
    parts(&mut html, &a.groups);
    requests(&mut html, a);
    html.push_str("<h2>The cells furthest apart</h2>\n");
    furthest(&mut html, &a.cells);
    notes(&mut html, a);
    html.push_str(STATIC_END);
    html
}

fn lead(html: &mut String, a: &Agreement) {
    let Some(all) = a.groups.first() else {
        html.push_str("<p class=\"lead\">No load was whole in both worlds.</p>\n");
        return;
    };
    let faster = a.faster;
    let _ = writeln!(
        html,
        "<p class=\"lead\">Over {} cells (a page on a network over a transport) the virtual page load time is off by {} % \
         (median); 95 of 100 cells are off by {} % at most. In {} of {} pairs in which one transport is faster by more than \
         5 % in the live world, the virtual world says the same.</p>",
        all.cells, all.median_pct, all.p95_pct, faster.agree, faster.clear
    );
    let _ = writeln!(
        html,
        "<p>Each cell is the median of {} virtual and {} live load{}. Errors are the virtual world's, positive where it is \
         slower than the kernel's TCP over an emulated link.</p>",
        a.runs[0],
        a.runs[1],
        if a.runs[1] == 1 { "" } else { "s" }
    );
}

fn networks(a: &Agreement) -> Vec<&str> {
    let mut networks: Vec<&str> = Vec::new();
    for cell in &a.cells {
        if !networks.contains(&cell.network.as_str()) {
            networks.push(&cell.network);
        }
    }
    networks
}

fn colour(networks: &[&str], network: &str) -> &'static str {
    COLOURS[networks.iter().position(|n| *n == network).unwrap_or_default() % COLOURS.len()]
}

const SIDE: f64 = 360.0;
const LEFT: f64 = 52.0;
const TOP: f64 = 12.0;

/// Virtual against live, both logarithmic, with the line on which they agree.
fn scatter(html: &mut String, cells: &[Cell], networks: &[&str]) {
    let all = || cells.iter().flat_map(|cell| cell.plt_ms).filter(|ms| *ms > 0.0);
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    if low >= high {
        return;
    }
    let (low, high) = (libm::log10(low) - 0.03, libm::log10(high) + 0.03);
    let along = |ms: f64| SIDE * (libm::log10(ms.max(1e-3)) - low) / (high - low);
    let _ = write!(
        html,
        "<figure><svg width=\"{}\" height=\"{}\" role=\"img\">",
        LEFT + SIDE + 8.0,
        TOP + SIDE + 40.0
    );
    let _ =
        write!(html, "<rect class=\"axis\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{SIDE}\" height=\"{SIDE}\"/>");
    for ms in ticks(low, high) {
        let (x, y) = (LEFT + along(ms), TOP + SIDE - along(ms));
        let _ = write!(
            html,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{ms}</text><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{ms}</text>\
             <path class=\"axis\" d=\"M{x:.1} {:.1}v-5M{LEFT} {y:.1}h5\"/>",
            TOP + SIDE + 15.0,
            LEFT - 5.0,
            y + 4.0,
            TOP + SIDE
        );
    }
    let _ = write!(html, "<path class=\"id\" d=\"M{LEFT} {}L{} {TOP}\"/>", TOP + SIDE, LEFT + SIDE);
    for cell in cells {
        let (x, y) = (LEFT + along(cell.plt_ms[1]), TOP + SIDE - along(cell.plt_ms[0]));
        let _ = write!(
            html,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{}\" fill-opacity=\".7\"><title>{}, {}, {}: {:.0} ms virtual, {:.0} ms live</title></circle>",
            colour(networks, &cell.network),
            escape(&cell.page),
            escape(&cell.network),
            escape(&cell.transport),
            cell.plt_ms[0],
            cell.plt_ms[1]
        );
    }
    let _ = writeln!(
        html,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">live page load time, ms</text></svg>\
         <figcaption>A point a cell; up, the virtual page load time. On the red line both worlds say the same.</figcaption></figure>",
        LEFT + SIDE / 2.0,
        TOP + SIDE + 34.0
    );
}

/// 1, 2 and 5 of each decade within the bounds, which are logarithms.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = low.floor() as i32..=high.ceil() as i32;
    let all = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|n| n * 10f64.powi(decade)));
    all.filter(|ms| (low..=high).contains(&libm::log10(*ms))).collect()
}

/// The errors are shown up to this, percent.
const ERROR_MAX: f64 = 20.0;

/// Share of cells over their absolute error, a curve a network.
fn distribution(html: &mut String, cells: &[Cell], networks: &[&str]) {
    let x = |error: f64| LEFT + SIDE * error.min(ERROR_MAX) / ERROR_MAX;
    let y = |share: f64| TOP + SIDE * (1.0 - share);
    let _ = write!(
        html,
        "<figure><svg width=\"{}\" height=\"{}\" role=\"img\">",
        LEFT + SIDE + 8.0,
        TOP + SIDE + 40.0
    );
    let _ =
        write!(html, "<rect class=\"axis\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{SIDE}\" height=\"{SIDE}\"/>");
    for percent in [0.0, 3.0, 5.0, 10.0, 15.0, 20.0] {
        let _ = write!(
            html,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{percent}</text><path class=\"axis\" d=\"M{:.1} {TOP}v{SIDE}\" stroke-dasharray=\"2 4\"/>",
            x(percent),
            TOP + SIDE + 15.0,
            x(percent)
        );
    }
    for share in [0.0, 0.5, 0.95, 1.0] {
        let _ = write!(
            html,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{} %</text><path class=\"axis\" d=\"M{LEFT} {:.1}h{SIDE}\" stroke-dasharray=\"2 4\"/>",
            LEFT - 5.0,
            y(share) + 4.0,
            share * 100.0,
            y(share)
        );
    }
    for (i, network) in networks.iter().enumerate() {
        let mut errors: Vec<f64> =
            cells.iter().filter(|c| c.network == *network).map(|c| c.error_pct().abs()).collect();
        errors.sort_by(f64::total_cmp);
        let mut path = format!("M{:.1} {:.1}", x(0.0), y(0.0));
        for (n, error) in errors.iter().enumerate() {
            let _ = write!(path, "H{:.1}V{:.1}", x(*error), y((n + 1) as f64 / errors.len() as f64));
        }
        let at = TOP + SIDE - 12.0 - 16.0 * (networks.len() - 1 - i) as f64;
        let _ = write!(
            html,
            "<path class=\"curve\" stroke=\"{0}\" d=\"{path}\"/><path stroke=\"{0}\" stroke-width=\"3\" d=\"M{1} {2:.1}h14\"/><text x=\"{3}\" y=\"{4:.1}\">{5}</text>",
            colour(networks, network),
            LEFT + SIDE - 110.0,
            at - 4.0,
            LEFT + SIDE - 90.0,
            at,
            escape(network)
        );
    }
    let _ = writeln!(
        html,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">absolute error of the page load time, %</text></svg>\
         <figcaption>Share of cells that are off by no more than so much; what is beyond {ERROR_MAX} % stands at the edge.</figcaption></figure>",
        LEFT + SIDE / 2.0,
        TOP + SIDE + 34.0
    );
}

fn name(group: &Group) -> String {
    match (&group.network, &group.transport) {
        (Some(network), Some(transport)) => {
            format!("<td class=\"t\">{}</td><td class=\"t\">{}</td>", escape(network), escape(transport))
        }
        _ => format!("<td class=\"t\">all</td><td class=\"t\">{}</td>", overflow(group)),
    }
}

/// Which cells of all a group has.
pub fn overflow(group: &Group) -> &'static str {
    match group.overflowed {
        None => "",
        Some(false) => "no queue full",
        Some(true) => "a queue full",
    }
}

fn groups(html: &mut String, groups: &[Group]) {
    html.push_str(
        "<div class=\"wide\"><table><tr><th class=\"t\">network</th><th class=\"t\">transport</th><th>cells</th><th>bias, %</th>\
         <th>median, %</th><th>95th percentile, %</th><th>largest, %</th><th>first byte, median, %</th>\
         <th>within the live runs' range</th></tr>\n",
    );
    for group in groups {
        let within = group.within_range.map_or("–".to_owned(), |[held, of]| format!("{held} of {of}"));
        let _ = writeln!(
            html,
            "<tr>{}<td>{}</td><td>{:+.1}</td><td>{:.1}</td><td>{:.1}</td><td>{:.1}</td><td>{:.1}</td><td>{within}</td></tr>",
            name(group),
            group.cells,
            group.bias_pct,
            group.median_pct,
            group.p95_pct,
            group.max_pct,
            group.first_byte_median_pct
        );
    }
    html.push_str("</table></div>\n");
}

fn parts(html: &mut String, groups: &[Group]) {
    html.push_str(
        "<p>What the virtual world spends more (+) or less (−) than the live one on the critical path, ms a load (means).</p>\n\
         <div class=\"wide\"><table><tr><th class=\"t\">network</th><th class=\"t\">transport</th>",
    );
    for phase in PHASES {
        let _ = write!(html, "<th>{phase}</th>");
    }
    html.push_str("</tr>\n");
    for group in groups {
        let _ = write!(html, "<tr>{}", name(group));
        for ms in group.parts_ms {
            let _ = write!(html, "<td>{ms:+.1}</td>");
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table></div>\n");
}

fn requests(html: &mut String, a: &Agreement) {
    if a.requests.iter().all(|phase| phase.requests == 0) {
        return;
    }
    html.push_str(
        "<h2>Request by request</h2>\n<div class=\"wide\"><table><tr><th class=\"t\">phase</th><th>requests</th><th>virtual, mean ms</th>\
         <th>live, mean ms</th><th>apart, median ms</th><th>95th percentile</th></tr>\n",
    );
    for phase in &a.requests {
        let _ = writeln!(
            html,
            "<tr><td class=\"t\">{}</td><td>{}</td><td>{:.1}</td><td>{:.1}</td><td>{:.1}</td><td>{:.1}</td></tr>",
            phase.phase, phase.requests, phase.mean_ms[0], phase.mean_ms[1], phase.median_ms, phase.p95_ms
        );
    }
    html.push_str("</table></div>\n");
}

/// How many cells are listed.
const FURTHEST: usize = 20;

fn furthest(html: &mut String, cells: &[Cell]) {
    let mut cells: Vec<&Cell> = cells.iter().collect();
    cells.sort_by(|a, b| b.error_pct().abs().total_cmp(&a.error_pct().abs()));
    html.push_str(
        "<div class=\"wide\"><table><tr><th class=\"t\">page</th><th class=\"t\">network</th><th class=\"t\">transport</th><th>error, %</th>\
         <th>virtual, ms</th><th>live, ms</th><th>live runs, ms</th><th>connections</th><th>kB down</th><th>dropped</th><th>sent again</th></tr>\n",
    );
    for cell in cells.iter().take(FURTHEST) {
        let both = |figures: [f64; 2]| format!("{:.0} / {:.0}", figures[0], figures[1]);
        let _ = writeln!(
            html,
            "<tr><td class=\"t\">{}</td><td class=\"t\">{}</td><td class=\"t\">{}</td><td>{:+.1}</td><td>{:.0}</td><td>{:.0}</td>\
             <td>{:.0}–{:.0}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&cell.page),
            escape(&cell.network),
            escape(&cell.transport),
            cell.error_pct(),
            cell.plt_ms[0],
            cell.plt_ms[1],
            cell.live_range_ms[0],
            cell.live_range_ms[1],
            both(cell.connections),
            both(cell.kb_down),
            both(cell.overflows),
            both(cell.retransmits)
        );
    }
    html.push_str("</table></div>\n<p>Of two figures the first is the virtual world's.</p>\n");
}

fn notes(html: &mut String, a: &Agreement) {
    html.push_str("<h2>What else to know</h2>\n<ul>\n");
    if let Some([median, worst]) = a.late_p99_us {
        let _ = writeln!(
            html,
            "<li>The live world's emulator delivered 99 of 100 packets within {median:.0} µs of their time in the median load, and \
             within {worst:.0} µs in the worst.</li>"
        );
    }
    for (what, loads) in &a.unmet {
        let _ = writeln!(html, "<li>Not as the plan says, in {loads} live loads: {}.</li>", escape(what));
    }
    for what in &a.incomplete {
        let _ = writeln!(html, "<li>Not compared: {}.</li>", escape(what));
    }
    html.push_str(
        "<li>Where a full queue drops packets, a load is chaotic: a packet that comes microseconds earlier is another's loss. Two live \
         loads of such a cell differ, too; their range is in the table above. Cells without such drops are a line of their own.</li>\n</ul>\n",
    );
}

#[cfg(test)]
mod tests {
    use lab::agree::Faster;

    use super::*;

    fn agreement() -> Agreement {
        let cell = |page: &str, ours: f64, theirs: f64| Cell {
            page: page.into(),
            network: "a<b".into(),
            transport: "http1".into(),
            plt_ms: [ours, theirs],
            live_range_ms: [theirs, theirs],
            first_byte_ms: [1.0, 1.0],
            connections: [6.0, 6.0],
            kb_down: [10.0, 10.0],
            overflows: [0.0, 0.0],
            retransmits: [0.0, 0.0],
            critical_ms: [[0.0; PHASES.len()]; 2],
        };
        Agreement {
            transports: vec!["http1".into()],
            runs: [1, 3],
            incomplete: vec!["<p>".into()],
            cells: vec![cell("<script>", 110.0, 100.0), cell("b", 2_000.0, 2_000.0)],
            groups: Vec::new(),
            faster: Faster::default(),
            requests: Vec::new(),
            unmet: vec![("no & sysctl".into(), 2)],
            late_p99_us: Some([40.0, 900.0]),
        }
    }

    #[test]
    fn the_page_names_the_worst_cell_first_and_no_text_is_html() {
        let html = render(&agreement());
        assert!(!html.contains("<script") && !html.contains("a<b") && !html.contains(">no & sysctl"));
        assert!(html.find("+10.0").unwrap() < html.find("+0.0</td><td>2000").unwrap());
        assert_eq!(html.matches("<circle").count(), 2);
        assert!(html.contains("within 40 µs") && html.contains("Not compared: &lt;p&gt;"));
    }

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(ticks(2.0, 3.4), [100.0, 200.0, 500.0, 1_000.0, 2_000.0]);
    }
}
