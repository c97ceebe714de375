//! Figures that are as high as they have rows: bars, and lives with what filled them.

use std::fmt::Write as _;

use lab::study::{Figure, Series, Shape, rounded};

use super::{Axis, TOP, WIDTH, along_axis};
use crate::html::{COLOURS, escape};

const NAME: f64 = 190.0;
const ROW: f64 = 17.0;

/// Rows whose names have the same beginning up to this have a group, and its colour stands for what comes after.
const GROUP: &str = ": ";

pub(super) fn draw(html: &mut String, figure: &Figure) {
    let ends = figure.series.iter().flat_map(|s| &s.points).flat_map(|(x, y)| match figure.shape {
        Shape::Lives => [*x, *y],
        _ => [*x, 0.0],
    });
    let ends: Vec<f64> = ends.collect();
    let Some(along) = Axis::over(ends.into_iter(), false) else { return };
    let height = ROW * figure.series.len() as f64;
    let _ = write!(
        html,
        "<figure><svg width=\"{}\" height=\"{}\" role=\"img\"><title>{}</title>",
        NAME + WIDTH + 60.0,
        TOP + height + 40.0,
        escape(&figure.caption)
    );
    along_axis(html, figure, &along, (NAME, height));
    for (i, series) in figure.series.iter().enumerate() {
        let top = TOP + ROW * i as f64;
        let _ = write!(
            html,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            NAME - 6.0,
            top + 12.0,
            escape(&series.name)
        );
        match figure.shape {
            Shape::Lives => life(html, series, &along, top, group(figure, series)),
            _ => bar(html, series, &along, top, colour(figure, series)),
        }
    }
    let _ = writeln!(html, "</svg><figcaption>{}</figcaption></figure>", escape(&figure.caption));
}

fn at(along: &Axis, value: f64) -> f64 {
    NAME + WIDTH * along.at(value)
}

/// One colour for each group.
fn group(figure: &Figure, series: &Series) -> &'static str {
    let name = |s: &Series| s.name.split(GROUP).next().unwrap_or_default().to_owned();
    let mut groups: Vec<String> = figure.series.iter().map(name).collect();
    groups.dedup();
    let own = groups.iter().position(|g| *g == name(series)).unwrap_or(0);
    COLOURS[own % COLOURS.len()]
}

/// One colour for each of what comes after the group's name.
fn colour(figure: &Figure, series: &Series) -> &'static str {
    let member = |s: &Series| s.name.split_once(GROUP).map_or(String::new(), |(_, member)| member.to_owned());
    let mut members: Vec<String> = figure.series.iter().map(member).collect();
    members.sort();
    members.dedup();
    let own = members.iter().position(|m| *m == member(series)).unwrap_or(0);
    COLOURS[own % COLOURS.len()]
}

fn bar(html: &mut String, series: &Series, along: &Axis, top: f64, colour: &str) {
    let Some((value, _)) = series.points.first() else {
        let _ = write!(html, "<text x=\"{:.1}\" y=\"{:.1}\">none</text>", NAME + 4.0, top + 12.0);
        return;
    };
    let (from, to) = (at(along, value.min(0.0)), at(along, value.max(0.0)));
    let _ = write!(
        html,
        "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\" fill-opacity=\".75\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        top + 3.0,
        (to - from).max(1.0),
        ROW - 5.0,
        to + 4.0,
        top + 12.0,
        rounded(*value)
    );
}

fn life(html: &mut String, series: &Series, along: &Axis, top: f64, colour: &str) {
    for (i, (from, to)) in series.points.iter().enumerate() {
        let (x, width) = (at(along, *from), (at(along, *to) - at(along, *from)).max(1.0));
        let (inset, look) = match i {
            0 => (2.0, "fill=\"none\" stroke=\"currentColor\" stroke-opacity=\".6\"".to_owned()),
            1 => (5.0, "fill=\"currentColor\" fill-opacity=\".15\"".to_owned()),
            _ => (5.0, format!("fill=\"{colour}\" fill-opacity=\".75\"")),
        };
        let _ = write!(
            html,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" {look}/>",
            top + inset,
            ROW - 2.0 * inset
        );
    }
}
