//! The interval plot: every interval between two firings a dot, over the firing's number, on a logarithmic scale of interval over
//! period. A good timer is a thin line at 1. One column a period, one row a timer; idle and loaded differ in colour.

use std::fmt::Write as _;

use super::Measured;

const WIDTH: f64 = 280.0;
const HEIGHT: f64 = 120.0;
const LEFT: f64 = 110.0;
const TOP: f64 = 70.0;
const GAP: f64 = 14.0;
/// Intervals outside 1/16 to 16 periods lie on the border.
const OCTAVES: f64 = 4.0;
const COLOURS: [(&str, &str); 2] = [("idle", "#1f77b4"), ("under load", "#d62728")];

/// The picture, self-contained.
pub fn intervals(measured: &[Measured]) -> String {
    let mut periods: Vec<_> = measured.iter().map(|m| m.firings.period).collect();
    periods.dedup();
    periods.sort_unstable();
    periods.dedup();
    let mut sources = Vec::new();
    for m in measured {
        if !sources.contains(&m.source) {
            sources.push(m.source);
        }
    }
    let width = LEFT + periods.len() as f64 * (WIDTH + GAP);
    let height = TOP + sources.len() as f64 * (HEIGHT + GAP) + 20.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"15\">Intervals between firings, as multiples of the period</text>\n"
    );
    for (i, (name, colour)) in COLOURS.iter().enumerate() {
        let x = LEFT + 110.0 * i as f64;
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"40\" fill=\"{colour}\">● {name}</text>");
    }
    for (column, period) in periods.iter().enumerate() {
        let x = LEFT + column as f64 * (WIDTH + GAP);
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{}\">{} ms</text>", TOP - 8.0, period.as_millis_f64());
        for (row, source) in sources.iter().enumerate() {
            let y = TOP + row as f64 * (HEIGHT + GAP);
            if column == 0 {
                let _ = writeln!(svg, "<text x=\"4\" y=\"{}\">{source}</text>", y + HEIGHT / 2.0 + 4.0);
            }
            frame(&mut svg, x, y, column == 0);
            let here = measured.iter().filter(|m| m.source == *source && m.firings.period == *period);
            here.for_each(|m| dots(&mut svg, m, x, y));
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn frame(svg: &mut String, x: f64, y: f64, labelled: bool) {
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#999\"/>"
    );
    for (ratio, label) in [(0.25, "¼"), (1.0, "1"), (4.0, "4")] {
        let at = y + place(ratio);
        let _ = writeln!(svg, "<path d=\"M{x} {at:.1}h{WIDTH}\" stroke=\"#ddd\"/>");
        if labelled {
            let (x, at) = (x - 6.0, at + 4.0);
            let _ = writeln!(svg, "<text x=\"{x}\" y=\"{at:.1}\" text-anchor=\"end\">{label}</text>");
        }
    }
}

/// How far below the top of its frame a ratio of interval to period lies.
fn place(ratio: f64) -> f64 {
    let octaves = libm::log2(ratio.max(1e-9)).clamp(-OCTAVES, OCTAVES);
    HEIGHT * (0.5 - octaves / (2.0 * OCTAVES))
}

/// One path of dots: a line of no length with round ends is a dot.
fn dots(svg: &mut String, m: &Measured, x: f64, y: f64) {
    let colour = COLOURS[usize::from(m.loaded)].1;
    let (n, period) = (m.firings.at.len().max(1) as f64, m.firings.period.as_millis_f64());
    let mut path = String::new();
    for (i, interval) in m.firings.intervals().enumerate() {
        let (dx, dy) = (WIDTH * (i as f64 + 0.5) / n, place(interval.as_millis_f64() / period));
        let _ = write!(path, "M{:.1} {:.1}h0", x + dx, y + dy);
    }
    let _ = writeln!(
        svg,
        "<path d=\"{path}\" stroke=\"{colour}\" stroke-width=\"1.6\" stroke-linecap=\"round\" stroke-opacity=\"0.5\"/>"
    );
}
