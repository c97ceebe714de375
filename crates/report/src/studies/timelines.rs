//! Packets as time lines: rails for client and server, time down, a slanting line a packet; several of them on one axis of time, so
//! that what is later in one is lower in it. What a packet carries stands outside of the rails, on the side of its sender; packets that
//! leave together have one label, and labels that would touch are moved down, with a thin line to where they belong.

use std::fmt::Write as _;

use lab::study::{Layer, PacketLine, TimeLine, TimeLines};

use super::plot::{Axis, label};
use crate::html::{COLOURS, escape};

/// Of the figure, if it has two time lines: as wide as a page of 1000 pixels has room for.
const WIDTH: f64 = 940.0;
/// Left of all: figures of the axis.
const LEFT: f64 = 40.0;
/// One time line with its labels.
const COLUMN: f64 = (WIDTH - LEFT) / 2.0;
/// Labels of the client and of the server have this much, as far as the rails.
const NAMES: f64 = 138.0;
/// Between labels and rail.
const GAP: f64 = 8.0;
/// A line of text.
const LINE: f64 = 14.0;
/// Letters in a line of a label.
const LETTERS: usize = 21;
/// Above the rails: legend, what it is of, whose the rails are.
const TOP: f64 = 64.0;
/// The axis: pixels a millisecond, and its bounds.
const SCALE: f64 = 1.9;
const HEIGHT_MIN: f64 = 260.0;
const HEIGHT_MAX: f64 = 1_000.0;
/// Packets that leave within so many pixels have one label.
const TOGETHER: f64 = 7.0;

/// A label: where it belongs, its lines, and whether it is a published moment.
struct Note {
    at: f64,
    lines: Vec<String>,
    class: &'static str,
}

/// Draws time lines; nothing if they have no packet.
pub(super) fn draw(html: &mut String, picture: &TimeLines) {
    let packets = || picture.lines.iter().flat_map(|line| &line.packets);
    let moments = picture.lines.iter().flat_map(|line| &line.moments).map(|m| m.at_ms);
    let times = packets().flat_map(|p| [Some(p.left_ms), p.arrived_ms]).flatten().chain(moments);
    let Some(axis) =
        Axis::over(times.collect::<Vec<_>>().into_iter(), false).filter(|_| packets().next().is_some())
    else {
        return;
    };
    let height = ((axis.high - axis.low) * SCALE).clamp(HEIGHT_MIN, HEIGHT_MAX);
    let y = |at: f64| TOP + height * axis.at(at);
    let columns: Vec<_> =
        picture.lines.iter().map(|line| [true, false].map(|up| notes(line, up, &y))).collect();
    let lowest =
        columns.iter().flatten().filter_map(|notes| notes.last()).map(|(top, note)| top + note.height());
    let end = lowest.fold(TOP + height, f64::max) + 6.0;
    let width = LEFT + COLUMN * picture.lines.len() as f64;
    let _ = write!(
        html,
        "<figure class=\"panels timelines\"><svg viewBox=\"0 0 {width} {end:.0}\" width=\"{width}\" role=\"img\"><title>{}</title>",
        escape(&picture.caption)
    );
    legend(html);
    for tick in axis.ticks_of(height / 50.0).into_iter().filter(|tick| *tick >= 0.0) {
        text(html, "", (LEFT - 6.0, y(tick) + 4.0), "end", &label(tick));
        let _ = write!(html, "<path class=\"grid\" d=\"M{LEFT} {:.1}H{width}\"/>", y(tick));
    }
    text(html, "soft", (LEFT - 6.0, TOP - 8.0), "end", "ms");
    for (n, (line, notes)) in picture.lines.iter().zip(&columns).enumerate() {
        column(html, LEFT + COLUMN * n as f64, line, notes, (&y, TOP + height));
    }
    let _ = writeln!(html, "</svg><figcaption>{}</figcaption></figure>", escape(&picture.caption));
}

/// One time line, from `left` on.
fn column(
    html: &mut String,
    left: f64,
    line: &TimeLine,
    notes: &[Vec<(f64, Note)>; 2],
    (y, bottom): (&dyn Fn(f64) -> f64, f64),
) {
    let rails = [left + NAMES, left + COLUMN - NAMES];
    let _ = write!(
        html,
        "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        left + COLUMN / 2.0,
        TOP - 26.0,
        escape(&line.name)
    );
    for (x, name) in rails.into_iter().zip(["client", "server"]) {
        text(html, "soft", (x, TOP - 8.0), "middle", name);
        let _ = write!(html, "<path class=\"axis\" d=\"M{x} {TOP}V{bottom:.1}\"/>");
    }
    for moment in &line.moments {
        let (x, at) = (rails[0], y(moment.at_ms));
        let class = if moment.is_published { "published" } else { "own-moment" };
        let _ = write!(
            html,
            "<path class=\"{class}\" d=\"M{:.1} {at:.1}l5 -5l5 5l-5 5z\"/><path class=\"{class}\" stroke-dasharray=\"3 3\" d=\"M{:.1} {at:.1}H{:.1}\"/>",
            x - 5.0,
            x + 5.0,
            rails[1]
        );
    }
    for packet in &line.packets {
        slant(html, packet, rails, y);
    }
    for (side, notes) in notes.iter().enumerate() {
        let (x, outwards, anchor) =
            if side == 0 { (rails[0], -1.0, "end") } else { (rails[1], 1.0, "start") };
        for (top, note) in notes {
            let middle = top + note.height() / 2.0;
            if (middle - note.at).abs() > 4.0 {
                let _ = write!(
                    html,
                    "<path class=\"leader\" d=\"M{x:.1} {:.1}L{:.1} {middle:.1}\"/>",
                    note.at,
                    x + outwards * (GAP - 2.0)
                );
            }
            for (n, said) in note.lines.iter().enumerate() {
                text(html, note.class, (x + outwards * GAP, top + LINE * (n as f64 + 0.8)), anchor, said);
            }
        }
    }
}

/// A packet: a line with its head where it arrives; one that is lost ends half-way in a cross, one that was on its way at the end in nothing.
fn slant(html: &mut String, packet: &PacketLine, rails: [f64; 2], y: &dyn Fn(f64) -> f64) {
    let [from, to] = if packet.up { rails } else { [rails[1], rails[0]] };
    let start = (from, y(packet.left_ms));
    let colour = colour(packet.layer);
    let faint = if packet.layer == Layer::Acknowledgement { " stroke-opacity=\".6\"" } else { "" };
    let Some(arrived) = packet.arrived_ms else {
        let (x, at) = (f64::midpoint(from, to), start.1 + 12.0);
        let cross = if packet.is_lost { "m-4 -4l8 8m-8 0l8 -8" } else { "" };
        let _ = write!(
            html,
            "<path class=\"packet\" stroke=\"{colour}\" d=\"M{:.1} {:.1}L{x:.1} {at:.1}{cross}\"/>",
            start.0, start.1
        );
        return;
    };
    let end = (to, y(arrived));
    let (along, down) = (end.0 - start.0, end.1 - start.1);
    let length = libm::hypot(along, down).max(1.0);
    let (dx, dy) = (along / length * 6.0, down / length * 6.0);
    let _ = write!(
        html,
        "<path class=\"packet\" stroke=\"{colour}\"{faint} d=\"M{:.1} {:.1}L{:.1} {:.1}m{:.1} {:.1}L{:.1} {:.1}l{:.1} {:.1}\"/>",
        start.0,
        start.1,
        end.0,
        end.1,
        -dx - dy * 0.45,
        -dy + dx * 0.45,
        end.0,
        end.1,
        -dx + dy * 0.45,
        -dy - dx * 0.45
    );
}

fn colour(layer: Layer) -> &'static str {
    match layer {
        Layer::Acknowledgement => "currentColor",
        Layer::Connection => COLOURS[1],
        Layer::Handshake => COLOURS[0],
        Layer::Application => COLOURS[2],
    }
}

const LEGEND: [(Layer, &str); 4] = [
    (Layer::Connection, "opens or ends the connection"),
    (Layer::Handshake, "TLS handshake"),
    (Layer::Application, "request and answer"),
    (Layer::Acknowledgement, "acknowledges alone"),
];

fn legend(html: &mut String) {
    let mut x = LEFT;
    for (layer, name) in LEGEND {
        let _ = write!(
            html,
            "<path class=\"packet\" stroke=\"{}\" stroke-width=\"3\" d=\"M{x} 10h16\"/>",
            colour(layer)
        );
        text(html, "", (x + 22.0, 14.0), "start", name);
        x += 22.0 + 7.2 * name.chars().count() as f64 + 12.0;
    }
}

/// What is to be read beside a rail, each with where it begins.
fn notes(line: &TimeLine, up: bool, y: &dyn Fn(f64) -> f64) -> Vec<(f64, Note)> {
    let mut out: Vec<Note> = Vec::new();
    let sent = line.packets.iter().filter(|p| p.up == up && p.layer != Layer::Acknowledgement);
    let sent: Vec<_> = sent.collect();
    for together in sent.chunk_by(|a, b| y(b.left_ms) - y(a.left_ms) < TOGETHER) {
        let mut says: Vec<&str> = together.iter().flat_map(|p| &p.says).map(String::as_str).collect();
        says.dedup();
        let count =
            if together.len() > 1 { format!(" ({}\u{a0}packets)", together.len()) } else { String::new() };
        let words = format!("{}{count}, {:.0}\u{a0}ms", says.join(", "), together[0].left_ms);
        out.push(Note { at: y(together[0].left_ms), lines: wrapped(&words), class: "" });
    }
    for moment in line.moments.iter().filter(|_| up) {
        let (class, whose) = if moment.is_published { ("published", "published: ") } else { ("soft", "") };
        let words = format!("{whose}{}, {:.0}\u{a0}ms", moment.says, moment.at_ms);
        out.push(Note { at: y(moment.at_ms), lines: wrapped(&words), class });
    }
    out.sort_by(|a, b| a.at.total_cmp(&b.at));
    let mut free = TOP - LINE / 2.0;
    let place = |note: Note| {
        let top = (note.at - note.height() / 2.0).max(free);
        free = top + note.height() + 3.0;
        (top, note)
    };
    out.into_iter().map(place).collect()
}

impl Note {
    fn height(&self) -> f64 {
        LINE * self.lines.len() as f64
    }
}

/// Words in lines of no more than [`LETTERS`], if no word is longer.
fn wrapped(words: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= LETTERS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn text(html: &mut String, class: &str, (x, y): (f64, f64), anchor: &str, says: &str) {
    let _ = write!(
        html,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        escape(says)
    );
}

#[cfg(test)]
mod tests {
    use lab::study::Moment;

    use super::*;

    fn packet(up: bool, left_ms: f64, says: &[&str]) -> PacketLine {
        let layer = if says.is_empty() { Layer::Acknowledgement } else { Layer::Handshake };
        let says = says.iter().map(|s| s.to_string()).collect();
        PacketLine {
            connection: 0,
            up,
            left_ms,
            arrived_ms: Some(left_ms + 41.5),
            is_lost: false,
            layer,
            says,
        }
    }

    fn exchange() -> TimeLine {
        let lost = PacketLine { arrived_ms: None, is_lost: true, ..packet(true, 83.5, &["ClientHello"]) };
        TimeLine {
            name: "a<b".into(),
            packets: vec![
                packet(true, 0.0, &["SYN"]),
                packet(false, 41.5, &["SYN-ACK"]),
                packet(true, 83.0, &[]),
                lost,
                packet(false, 125.0, &["ServerHello", "Certificate"]),
                packet(false, 126.0, &["Certificate", "ServerHelloDone"]),
                packet(false, 131.0, &["body"]),
            ],
            moments: vec![
                Moment { at_ms: 84.0, says: "request leaves".into(), is_published: true },
                Moment { at_ms: 85.0, says: "response begins".into(), is_published: false },
            ],
        }
    }

    fn drawn(lines: Vec<TimeLine>) -> String {
        let mut html = String::new();
        draw(&mut html, &TimeLines { caption: "What <it> shows".into(), lines });
        html
    }

    #[test]
    fn labels_beside_a_rail_do_not_touch_and_are_where_they_belong_if_there_is_room() {
        for up in [true, false] {
            let placed = notes(&exchange(), up, &|ms| TOP + ms);
            for pair in placed.windows(2) {
                assert!(
                    pair[0].0 + pair[0].1.height() < pair[1].0,
                    "{:?} {:?}",
                    pair[0].1.lines,
                    pair[1].1.lines
                );
            }
            let first = &placed[0];
            assert_eq!(first.0 + first.1.height() / 2.0, first.1.at);
        }
    }

    #[test]
    fn what_leaves_together_has_one_label_and_an_acknowledgement_has_none() {
        let said = |up| notes(&exchange(), up, &|ms| TOP + ms).into_iter().map(|(_, n)| n.lines.join(" "));
        let server: Vec<_> = said(false).collect();
        assert_eq!(
            server[1],
            "ServerHello, Certificate, ServerHelloDone, body (3\u{a0}packets), 125\u{a0}ms"
        );
        let client: Vec<_> = said(true).collect();
        assert_eq!(
            client,
            [
                "SYN, 0\u{a0}ms",
                "ClientHello, 84\u{a0}ms",
                "published: request leaves, 84\u{a0}ms",
                "response begins, 85\u{a0}ms"
            ]
        );
        assert!(wrapped(&server[1]).iter().all(|line| line.chars().count() <= LETTERS));
    }

    #[test]
    fn time_lines_share_their_axis_and_each_packet_is_a_line() {
        let html = drawn(vec![exchange(), exchange()]);
        assert_eq!(html.matches("<svg").count(), 1);
        assert_eq!(html.matches("class=\"packet\"").count(), LEGEND.len() + 2 * 7);
        assert_eq!(html.matches("m-4 -4l8 8").count(), 2, "a lost packet has a cross");
        assert!(html.contains("a&lt;b") && !html.contains("<it>") && !html.contains("NaN"));
    }

    #[test]
    fn nothing_is_drawn_of_no_packet() {
        assert_eq!(drawn(vec![TimeLine { packets: Vec::new(), ..exchange() }]), "");
    }
}
