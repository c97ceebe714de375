//! The pictures of a page's topology: what is expected of its hosts, and what came of what was opened ahead of need.

use std::fmt::Write as _;

use lab::topology::{HostView, PageView};

use crate::html::{COLOURS, escape};

const NAMES: f64 = 250.0;
const BARS: f64 = 190.0;
const ROW: f64 = 20.0;

/// Columns and height of the picture of visits.
const VISITS: f64 = 330.0;
const HEIGHT: f64 = 120.0;
const LEFT: f64 = 34.0;

/// The longest name that the column takes.
const NAME_MAX: usize = 36;

/// A row a host: bars of the connections that the next visit is expected to need, what it opens, and what a visit took.
pub(super) fn hosts(html: &mut String, page: &PageView) {
    let estimate = |h: &HostView| h.estimates.first().map_or(0.0, |e| e.expected);
    let opens = |h: &HostView| h.estimates.first().map_or(0, |e| e.opens);
    let most = page.hosts.iter().map(|h| estimate(h).max(h.carried).max(f64::from(opens(h))));
    let scale = BARS / most.fold(1.0, f64::max);
    let height = ROW * page.hosts.len() as f64 + 44.0;
    let caption = "Connections by host: bars, expected of the next visit; rings, what it opens ahead of need; crosses, those that carried something, a visit.";
    let _ = write!(
        html,
        "<figure><svg width=\"{}\" height=\"{height}\" role=\"img\"><title>{caption}</title>",
        NAMES + BARS + 24.0
    );
    let most = (BARS / scale).floor() as u32;
    for tick in (0..=most).step_by(most.div_ceil(8).max(1) as usize) {
        let x = NAMES + scale * f64::from(tick);
        let _ = write!(
            html,
            "<path class=\"axis\" d=\"M{x:.1} 4v{:.1}\" stroke-dasharray=\"2 5\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{tick}</text>",
            height - 34.0,
            height - 14.0
        );
    }
    for (n, host) in page.hosts.iter().enumerate() {
        let middle = 14.0 + ROW * n as f64;
        let name = host.host.split("://").last().unwrap_or_default();
        let short: String = match name.chars().count() {
            0..=NAME_MAX => name.to_owned(),
            _ => name.chars().take(NAME_MAX - 1).chain(['…']).collect(),
        };
        let _ = write!(
            html,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><rect x=\"{NAMES}\" y=\"{:.1}\" width=\"{:.1}\" height=\"10\" fill=\"{}\"/>",
            NAMES - 6.0,
            middle + 4.0,
            escape(&short),
            middle - 5.0,
            scale * estimate(host),
            COLOURS[4]
        );
        if opens(host) > 0 {
            let _ = write!(
                html,
                "<circle cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"4\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>",
                NAMES + scale * f64::from(opens(host)),
                COLOURS[0]
            );
        }
        let _ = write!(
            html,
            "<path d=\"M{:.1} {:.1}l6 6m0 -6l-6 6\" stroke=\"{}\" stroke-width=\"2\"/>",
            NAMES + scale * host.carried - 3.0,
            middle - 3.0,
            COLOURS[5]
        );
    }
    let _ = writeln!(html, "</svg><figcaption>{caption}</figcaption></figure>");
}

/// A column a visit: connections opened ahead of need, used below and wasted above; with the connections that carried something.
pub(super) fn visits(html: &mut String, page: &PageView) {
    let most = page.last.iter().map(|v| v.made.max(v.carried)).max().unwrap_or(0).max(1);
    let y = |n: u64| 8.0 + HEIGHT * (1.0 - n as f64 / most as f64);
    let step = (VISITS / page.last.len().max(1) as f64).min(40.0);
    let caption = "Visit by visit, the oldest first: connections opened ahead of need that were used (blue) and wasted (orange); the line is all that carried something.";
    let _ = write!(
        html,
        "<figure><svg width=\"{}\" height=\"{}\" role=\"img\"><title>{caption}</title>\
         <path class=\"axis\" d=\"M{LEFT} 8v{HEIGHT}h{VISITS}\"/>",
        LEFT + VISITS + 10.0,
        HEIGHT + 40.0
    );
    for tick in (0..=most).step_by(most.div_ceil(5).max(1) as usize) {
        let _ = write!(
            html,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
            LEFT - 6.0,
            y(tick) + 4.0
        );
    }
    let mut line = String::new();
    for (n, visit) in page.last.iter().enumerate() {
        let x = LEFT + step * n as f64;
        for (from, to, colour) in [(0, visit.used, COLOURS[0]), (visit.used, visit.made, COLOURS[1])] {
            if to > from {
                let _ = write!(
                    html,
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
                    x + step * 0.1,
                    y(to),
                    step * 0.8,
                    y(from) - y(to)
                );
            }
        }
        let _ = write!(line, "{}{:.1} {:.1}h{step:.1}", if n == 0 { "M" } else { "L" }, x, y(visit.carried));
    }
    let _ = write!(html, "<path class=\"curve\" stroke=\"{}\" d=\"{line}\"/>", COLOURS[5]);
    let first = u64::from(page.visits).saturating_sub(page.last.len() as u64) + 1;
    let _ = writeln!(
        html,
        "<text x=\"{:.1}\" y=\"{:.1}\">visits {first} to {}</text></svg><figcaption>{caption}</figcaption></figure>",
        LEFT,
        HEIGHT + 28.0,
        page.visits
    );
}
