//! Small multiples as SVG: panels in rows and columns on common axes, so that any two of them can be compared by eye (Tufte, *The
//! Visual Display of Quantitative Information*, 1983, ch. 8). What belongs to all is drawn once: names of columns above, figures of axes
//! at the edges, one legend. It is as wide as a page of 1000 pixels has room for; where there is less, on paper too, it shrinks as a whole.

use std::fmt::Write as _;

use lab::study::{Panel, Panels, Series};

use super::plot::{Axis, label};
use crate::html::{COLOURS, escape};

const WIDTH: f64 = 940.0;
/// Left of the panels: figures, and what they are of.
const LEFT: f64 = 58.0;
const RIGHT: f64 = 8.0;
/// Between panels.
const GAP: f64 = 12.0;
/// A line of text.
const LINE: f64 = 18.0;
/// What a figure below an axis takes, so that two do not touch.
const FIGURE: f64 = 42.0;
/// What a letter takes; names are short, and a guess that is too large does no harm.
const LETTER: f64 = 6.7;
/// Told apart in black and white too.
const DASHES: [&str; 6] = ["none", "7 3", "2 3", "9 3 2 3", "4 2", "1 2"];

/// Where things are, and the axes that all panels share.
struct Layout<'a> {
    names: Vec<&'a str>,
    along: Axis,
    up: Axis,
    width: f64,
    height: f64,
    /// Where the first row begins, with its name.
    top: f64,
    /// From one row to the next.
    row: f64,
}

/// Draws the panels; nothing if they have nothing to show.
pub(super) fn draw(html: &mut String, panels: &Panels) {
    let Some(layout) = Layout::new(panels) else { return };
    let end = layout.top + layout.row * panels.rows.len() as f64;
    let _ = write!(
        html,
        "<figure class=\"panels\"><svg viewBox=\"0 0 {WIDTH} {:.0}\" width=\"{WIDTH}\" role=\"img\"><title>{}</title>",
        end + 2.0 * LINE,
        escape(&panels.caption)
    );
    legend(html, &layout.names);
    for (n, name) in panels.columns.iter().enumerate() {
        let at = layout.left(n) + layout.width / 2.0;
        text(html, at, layout.top - 6.0, "middle", name);
    }
    for (r, row) in panels.rows.iter().enumerate() {
        let top = layout.top + layout.row * r as f64 + layout.named();
        if layout.named() > 0.0 {
            let _ = write!(
                html,
                "<text x=\"{LEFT}\" y=\"{:.1}\" class=\"name\">{}</text>",
                top - 5.0,
                escape(&row.name)
            );
        }
        for tick in layout.up.ticks_of(layout.height / LINE / 1.5) {
            text(html, LEFT - 5.0, top + layout.y(tick) + 4.0, "end", &label(tick));
        }
        for (c, one) in row.panels.iter().enumerate() {
            panel(html, &layout, one, (layout.left(c), top));
        }
    }
    for c in 0..panels.columns.len() {
        for tick in layout.ticks() {
            let x = layout.x(tick);
            // At a corner, a figure must not reach into the neighbour's.
            let anchor = match (x < GAP, layout.width - x < GAP) {
                (true, _) => "start",
                (_, true) => "end",
                _ => "middle",
            };
            text(html, layout.left(c) + x, end - GAP + 15.0, anchor, &label(tick));
        }
    }
    text(html, LEFT + (WIDTH - LEFT - RIGHT) / 2.0, end + LINE + 6.0, "middle", &panels.x);
    let _ = write!(
        html,
        "<text transform=\"translate(12 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        f64::midpoint(layout.top, end),
        escape(&panels.y)
    );
    let _ = writeln!(html, "</svg><figcaption>{}</figcaption></figure>", escape(&panels.caption));
}

impl<'a> Layout<'a> {
    fn new(panels: &'a Panels) -> Option<Self> {
        let all = || panels.rows.iter().flat_map(|row| &row.panels);
        let lines = || all().flat_map(|panel| &panel.lines);
        let points = || lines().flat_map(|s| &s.points).filter(|(_, y)| y.is_finite());
        let along = Axis::over(points().map(|(x, _)| *x), false)?;
        let behind = all().flat_map(|panel| &panel.behind).flat_map(|s| &s.points).map(|(_, y)| *y);
        let most = most_of(behind.filter(|y| y.is_finite()).collect());
        let mut up = Axis::over(points().map(|(_, y)| *y).chain(most), false)?;
        if up.low < 0.0 {
            up.low -= (up.high - up.low) * 0.05;
        }
        let mut names: Vec<&str> = Vec::new();
        for line in lines() {
            if !line.name.is_empty() && !names.contains(&line.name.as_str()) {
                names.push(&line.name);
            }
        }
        let columns = panels.columns.len().max(1) as f64;
        let width = (WIDTH - LEFT - RIGHT - GAP * (columns - 1.0)) / columns;
        let height = (width * 0.62).clamp(100.0, 190.0);
        let named = if panels.rows.iter().any(|row| !row.name.is_empty()) { LINE } else { 0.0 };
        let top = LINE * (legend_lines(&names) + 1) as f64 + 4.0;
        Some(Self { names, along, up, width, height, top, row: named + height + GAP })
    }

    /// What a row's name takes.
    fn named(&self) -> f64 {
        self.row - self.height - GAP
    }

    fn left(&self, column: usize) -> f64 {
        LEFT + (self.width + GAP) * column as f64
    }

    /// Within a panel.
    fn x(&self, value: f64) -> f64 {
        self.width * self.along.at(value)
    }

    /// Within a panel.
    fn y(&self, value: f64) -> f64 {
        self.height * (1.0 - self.up.at(value))
    }

    fn ticks(&self) -> Vec<f64> {
        self.along.ticks_of((self.width / FIGURE).min(5.0))
    }
}

/// The ends of what is left of values without the lowest and the highest twentieth: a few outliers shall not flatten all the rest.
fn most_of(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    let cut = values.len() / 20;
    let most = &values[cut..values.len() - cut];
    most.first().into_iter().chain(most.last()).copied().collect()
}

/// One panel: an image of its own within the whole, so that nothing leaves it.
fn panel(html: &mut String, layout: &Layout<'_>, panel: &Panel, (left, top): (f64, f64)) {
    let (width, height) = (layout.width, layout.height);
    let _ = write!(
        html,
        "<svg x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><path class=\"grid\" d=\""
    );
    for tick in layout.ticks() {
        let _ = write!(html, "M{:.1} 0V{height:.1}", layout.x(tick));
    }
    for tick in layout.up.ticks_of(height / LINE / 1.5) {
        let _ = write!(html, "M0 {:.1}H{width:.1}", layout.y(tick));
    }
    html.push_str("\"/>");
    if layout.up.low < 0.0 {
        let _ = write!(html, "<path class=\"zero\" d=\"M0 {:.1}H{width:.1}\"/>", layout.y(0.0));
    }
    if !panel.behind.is_empty() {
        html.push_str("<path class=\"behind\" d=\"");
        panel.behind.iter().for_each(|series| path(html, layout, series));
        html.push_str("\"/>");
    }
    for series in &panel.lines {
        let name = layout.names.iter().position(|name| *name == series.name).unwrap_or(0);
        let (colour, dash) = (COLOURS[name % COLOURS.len()], DASHES[name % DASHES.len()]);
        let _ = write!(html, "<path class=\"curve\" stroke=\"{colour}\" stroke-dasharray=\"{dash}\" d=\"");
        path(html, layout, series);
        html.push_str("\"/>");
        for (x, y) in series.points.iter().filter(|(_, y)| y.is_finite()) {
            let (x, y) = (layout.x(*x), layout.y(*y));
            let _ = write!(html, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2\" fill=\"{colour}\"/>");
        }
    }
    let _ = write!(html, "<rect class=\"axis\" width=\"{width:.1}\" height=\"{height:.1}\"/></svg>");
}

/// A line through its points; where one has no figure, it is broken.
fn path(html: &mut String, layout: &Layout<'_>, series: &Series) {
    let mut pen = 'M';
    for (x, y) in &series.points {
        if y.is_finite() {
            let _ = write!(html, "{pen}{:.1} {:.1}", layout.x(*x), layout.y(*y));
            pen = 'L';
        } else {
            pen = 'M';
        }
    }
}

/// Each name's line and place in the legend: its line, and how far from the left.
fn places(names: &[&str]) -> Vec<(usize, f64)> {
    let (mut line, mut at) = (0, LEFT);
    let place = |name: &&str| {
        let width = 32.0 + LETTER * name.chars().count() as f64 + GAP;
        if at + width > WIDTH && at > LEFT {
            (line, at) = (line + 1, LEFT);
        }
        let place = (line, at);
        at += width;
        place
    };
    names.iter().map(place).collect()
}

fn legend_lines(names: &[&str]) -> usize {
    places(names).last().map_or(0, |(line, _)| line + 1)
}

fn legend(html: &mut String, names: &[&str]) {
    for (n, (name, (line, at))) in names.iter().zip(places(names)).enumerate() {
        let y = LINE * line as f64 + 12.0;
        let _ = write!(
            html,
            "<path class=\"curve\" stroke=\"{}\" stroke-dasharray=\"{}\" d=\"M{at:.1} {:.1}h26\"/>",
            COLOURS[n % COLOURS.len()],
            DASHES[n % DASHES.len()],
            y - 4.0
        );
        text(html, at + 32.0, y, "start", name);
    }
}

fn text(html: &mut String, x: f64, y: f64, anchor: &str, what: &str) {
    let _ = write!(html, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escape(what));
}

#[cfg(test)]
mod tests {
    use lab::study::Row;

    use super::*;

    fn line(name: &str, points: &[(f64, f64)]) -> Series {
        Series { name: name.to_owned(), points: points.to_vec() }
    }

    fn two_by_two() -> Panels {
        let panel = |up: f64| Panel {
            lines: vec![line("a<b", &[(0.0, -up), (100.0, up)]), line("c", &[(0.0, 0.0), (100.0, f64::NAN)])],
            behind: vec![line("", &[(0.0, 0.5), (100.0, 0.7)])],
        };
        Panels {
            caption: "What they show".into(),
            x: "round-trip time, ms".into(),
            y: "gain, %".into(),
            columns: vec!["slow".into(), "fast".into()],
            rows: ["first", "second"]
                .map(|name| Row { name: name.into(), panels: vec![panel(1.0), panel(10.0)] })
                .to_vec(),
        }
    }

    fn drawn(panels: &Panels) -> String {
        let mut html = String::new();
        draw(&mut html, panels);
        html
    }

    #[test]
    fn what_belongs_to_all_panels_is_drawn_once_and_at_the_edges() {
        let html = drawn(&two_by_two());
        for once in ["a&lt;b</text>", ">c</text>", ">slow<", ">fast<", ">first<", ">second<", ">gain, %<"] {
            assert_eq!(html.matches(once).count(), 1, "{once}");
        }
        // Figures along stand below each column, figures up beside each row.
        assert_eq!((html.matches(">100</text>").count(), html.matches(">-10</text>").count()), (2, 2));
        assert_eq!((html.matches("<svg").count(), html.matches("class=\"zero\"").count()), (5, 4));
    }

    #[test]
    fn panels_share_their_scale_and_few_outliers_behind_do_not_stretch_it() {
        let mut panels = two_by_two();
        let row = &mut panels.rows[0].panels;
        row[0].behind = vec![line("", &[(0.0, 9_000.0)]), line("", &[(1.0, 15.0); 30])];
        row[1].behind = vec![line("", &[(0.0, -9_000.0)])];
        let layout = Layout::new(&panels).unwrap();
        assert!(layout.up.low < -10.0 && layout.up.high > 15.0 && layout.up.high < 20.0);
        assert!(layout.y(15.0) >= 0.0 && layout.y(-10.0) <= layout.height);
    }

    #[test]
    fn a_line_is_broken_where_it_has_no_figure() {
        let panels = two_by_two();
        let layout = Layout::new(&panels).unwrap();
        let mut html = String::new();
        path(&mut html, &layout, &line("", &[(0.0, 1.0), (10.0, f64::NAN), (20.0, 1.0), (30.0, 1.0)]));
        assert_eq!((html.matches('M').count(), html.matches('L').count()), (2, 1), "{html}");
    }

    #[test]
    fn a_legend_that_is_too_long_for_a_line_goes_on_in_the_next() {
        let long = "x".repeat(60);
        let names = [long.as_str(), "b", long.as_str()];
        let places = places(&names);
        assert_eq!(places.iter().map(|p| p.0).collect::<Vec<_>>(), [0, 0, 1]);
        assert!(places[1].1 > places[0].1 + 60.0 * LETTER);
    }

    #[test]
    fn panels_without_a_point_are_not_drawn() {
        let mut panels = two_by_two();
        panels.rows.iter_mut().flat_map(|row| &mut row.panels).for_each(|panel| panel.lines.clear());
        assert_eq!(drawn(&panels), "");
    }
}
