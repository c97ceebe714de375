//! Pictures of studies: points, lines, steps, spans and rows of dots, as SVG.

mod rows;

use std::fmt::Write as _;

use lab::study::{Figure, Series, Shape, rounded};

use crate::html::{COLOURS, escape};

const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 58.0;
const TOP: f64 = 12.0;

/// An axis: its bounds, as they are drawn, and whether it is logarithmic.
pub(super) struct Axis {
    pub low: f64,
    pub high: f64,
    log: bool,
}

impl Axis {
    /// One that holds all values; a linear one begins at zero unless some are below.
    pub fn over(values: impl Iterator<Item = f64> + Clone, log: bool) -> Option<Self> {
        let values = values.filter(|v| v.is_finite() && (!log || *v > 0.0));
        let (low, high) =
            (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max));
        if low > high {
            return None;
        }
        Some(if log {
            Self { low: libm::log10(low) - 0.03, high: libm::log10(high) + 0.03, log }
        } else {
            let (low, high) = (low.min(0.0), high.max(0.0));
            let high = if high > low { high } else { low + 1.0 };
            Self { low, high: high + (high - low) * 0.05, log }
        })
    }

    /// Where a value stands, from 0 to 1.
    pub fn at(&self, value: f64) -> f64 {
        let value = if self.log { libm::log10(value.max(1e-9)) } else { value };
        (value - self.low) / (self.high - self.low)
    }

    fn ticks(&self) -> Vec<f64> {
        if self.log {
            let decades = self.low.floor() as i32..=self.high.ceil() as i32;
            let all = decades.flat_map(|d| [1.0, 2.0, 5.0].map(|n| n * 10f64.powi(d)));
            return all.filter(|v| (self.low..=self.high).contains(&libm::log10(*v))).collect();
        }
        self.ticks_of(5.0)
    }

    /// Round figures along a linear axis, about `count` of them at most.
    pub fn ticks_of(&self, count: f64) -> Vec<f64> {
        let rough = (self.high - self.low) / count.max(1.0);
        let decade = 10f64.powi(libm::log10(rough).floor() as i32);
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|n| n * decade).into_iter().find(|s| *s >= rough).unwrap_or(rough);
        let (first, last) = ((self.low / step).ceil() as i64, (self.high / step).floor() as i64);
        (first..=last).map(|n| n as f64 * step).collect()
    }
}

/// Draws a figure; nothing if it has nothing to show.
pub(super) fn draw(html: &mut String, figure: &Figure) {
    if matches!(figure.shape, Shape::Bars | Shape::Lives) {
        return rows::draw(html, figure);
    }
    let points = || figure.series.iter().flat_map(|s| s.points.iter().copied());
    let spans = matches!(figure.shape, Shape::Spans | Shape::Dots);
    let log = figure.shape == Shape::Scatter;
    let along = Axis::over(points().flat_map(|(x, y)| if spans { vec![x, y] } else { vec![x] }), log);
    let up = Axis::over(points().map(|(_, y)| y), log);
    let (Some(mut along), Some(mut up)) = (along, up) else { return };
    if log {
        // One scale, so that the line of equals is the diagonal.
        (along.low, along.high) = (along.low.min(up.low), along.high.max(up.high));
        (up.low, up.high) = (along.low, along.high);
    }
    if figure.shape == Shape::Dots {
        along.low -= (along.high - along.low) * 0.04; // a dot has a width
    }
    let legend = if spans || figure.series.len() < 2 { 0.0 } else { 16.0 * figure.series.len() as f64 };
    let _ = write!(
        html,
        "<figure><svg width=\"{}\" height=\"{}\" role=\"img\"><title>{}</title>",
        LEFT + WIDTH + 10.0,
        TOP + HEIGHT + 40.0 + legend,
        escape(&figure.caption)
    );
    axes(html, figure, &along, (!spans).then_some(&up));
    match figure.shape {
        Shape::Spans => bars(html, &figure.series, &along),
        Shape::Dots => rows(html, &figure.series, &along),
        Shape::Scatter => scatter(html, &figure.series, &along, &up),
        Shape::Lines | Shape::Steps => curves(html, figure, &along, &up),
        Shape::Bars | Shape::Lives => unreachable!("drawn by the row"),
    }
    if legend > 0.0 {
        names(html, &figure.series);
    }
    let _ = writeln!(html, "</svg><figcaption>{}</figcaption></figure>", escape(&figure.caption));
}

fn x(axis: &Axis, value: f64) -> f64 {
    LEFT + WIDTH * axis.at(value)
}

fn y(axis: &Axis, value: f64) -> f64 {
    TOP + HEIGHT * (1.0 - axis.at(value))
}

/// The frame, and the axis along it with its name.
fn along_axis(html: &mut String, figure: &Figure, along: &Axis, (left, height): (f64, f64)) {
    let _ =
        write!(html, "<rect class=\"axis\" x=\"{left}\" y=\"{TOP}\" width=\"{WIDTH}\" height=\"{height}\"/>");
    for tick in along.ticks() {
        let at = left + WIDTH * along.at(tick);
        let _ = write!(
            html,
            "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text><path class=\"axis\" d=\"M{at:.1} {TOP}v{height}\" stroke-dasharray=\"2 5\"/>",
            TOP + height + 15.0,
            label(tick)
        );
    }
    let _ = write!(
        html,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        left + WIDTH / 2.0,
        TOP + height + 33.0,
        escape(&figure.x)
    );
}

fn axes(html: &mut String, figure: &Figure, along: &Axis, up: Option<&Axis>) {
    along_axis(html, figure, along, (LEFT, HEIGHT));
    for (tick, at) in up.iter().flat_map(|up| up.ticks().into_iter().map(|tick| (tick, y(up, tick)))) {
        let _ = write!(
            html,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><path class=\"axis\" d=\"M{LEFT} {at:.1}h{WIDTH}\" stroke-dasharray=\"2 5\"/>",
            LEFT - 5.0,
            at + 4.0,
            label(tick)
        );
    }
    let _ = write!(
        html,
        "<text transform=\"translate(12 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        TOP + HEIGHT / 2.0,
        escape(&figure.y)
    );
}

/// A tick's figure, without noughts behind the point.
pub(super) fn label(tick: f64) -> String {
    let tick = if tick == 0.0 { 0.0 } else { tick };
    if tick == tick.round() {
        format!("{tick:.0}")
    } else {
        format!("{tick:.2}").trim_end_matches('0').to_owned()
    }
}

fn scatter(html: &mut String, series: &[Series], along: &Axis, up: &Axis) {
    let _ = write!(html, "<path class=\"id\" d=\"M{LEFT} {:.1}L{:.1} {TOP}\"/>", TOP + HEIGHT, LEFT + WIDTH);
    for (i, s) in series.iter().enumerate() {
        for (px, py) in &s.points {
            let _ = write!(
                html,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\" fill=\"{}\" fill-opacity=\".6\"/>",
                x(along, *px),
                y(up, *py),
                COLOURS[i % COLOURS.len()]
            );
        }
    }
}

fn curves(html: &mut String, figure: &Figure, along: &Axis, up: &Axis) {
    for (i, series) in figure.series.iter().enumerate() {
        let mut path = String::new();
        for (px, py) in series.points.iter().filter(|(_, y)| y.is_finite()) {
            let (px, py) = (x(along, *px), y(up, *py));
            let _ = match (path.is_empty(), figure.shape) {
                (true, _) => write!(path, "M{px:.1} {py:.1}"),
                (false, Shape::Steps) => write!(path, "H{px:.1}V{py:.1}"),
                (false, _) => write!(path, "L{px:.1} {py:.1}"),
            };
        }
        let _ =
            write!(html, "<path class=\"curve\" stroke=\"{}\" d=\"{path}\"/>", COLOURS[i % COLOURS.len()]);
    }
}

fn bars(html: &mut String, series: &[Series], along: &Axis) {
    let row = HEIGHT / series.len() as f64;
    for (i, s) in series.iter().enumerate() {
        let at = TOP + row * i as f64;
        for (from, to) in &s.points {
            let _ = write!(
                html,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\" fill-opacity=\".75\"/>",
                x(along, *from),
                at + row * 0.55,
                (x(along, *to) - x(along, *from)).max(1.0),
                row * 0.4,
                COLOURS[i / 2 % COLOURS.len()]
            );
            let _ = write!(
                html,
                "<text x=\"{:.1}\" y=\"{:.1}\">{}: {}–{} ms</text>",
                LEFT + 6.0,
                at + row * 0.45,
                escape(&s.name),
                rounded(*from),
                rounded(*to)
            );
        }
    }
}

/// A row a series: its span as a bar, its dots on it, its name above.
fn rows(html: &mut String, series: &[Series], along: &Axis) {
    let row = HEIGHT / series.len() as f64;
    for (i, s) in series.iter().enumerate() {
        let at = TOP + row * (i as f64 + 0.72);
        let Some(((from, to), dots)) = s.points.split_first() else { continue };
        let colour = COLOURS[0];
        let _ = write!(
            html,
            "<path stroke=\"{colour}\" stroke-width=\"5\" stroke-opacity=\".35\" d=\"M{:.1} {at:.1}H{:.1}\"/>",
            x(along, *from),
            x(along, *to).max(x(along, *from) + 1.0),
        );
        for (dot, _) in dots {
            let _ = write!(
                html,
                "<circle cx=\"{:.1}\" cy=\"{at:.1}\" r=\"3.5\" fill=\"{colour}\"/>",
                x(along, *dot)
            );
        }
        let said = match dots {
            [(dot, _)] => format!(": {}", rounded(*dot)),
            _ => String::new(),
        };
        let _ = write!(
            html,
            "<text x=\"{:.1}\" y=\"{:.1}\">{}{said}</text>",
            LEFT + 6.0,
            TOP + row * (i as f64 + 0.42),
            escape(&s.name)
        );
    }
}

fn names(html: &mut String, series: &[Series]) {
    for (i, s) in series.iter().enumerate() {
        let at = TOP + HEIGHT + 50.0 + 16.0 * i as f64;
        let _ = write!(
            html,
            "<path stroke=\"{}\" stroke-width=\"3\" d=\"M{LEFT} {:.1}h16\"/><text x=\"{:.1}\" y=\"{at:.1}\">{}</text>",
            COLOURS[i % COLOURS.len()],
            at - 4.0,
            LEFT + 22.0,
            escape(&s.name)
        );
    }
}
