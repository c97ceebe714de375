//! What becomes of a page when something breaks, by what its client does about it.
//!
//! An arm's name says what it is: `FAULT, PAGES, CLIENT`.

use super::{ArmLoads, Figure, Measured, Sample, Series, Shape, mean, plt};
use crate::stats;

/// The client that does what "reload" is pressed for.
const OURS: &str = "ours";
const STYLES: &str = "32 style sheets";
const CORPUS: &str = "pages of 2012";

/// Faults that take one style sheet of 32, for as long as nobody asks again or for good.
const ONE_OF_32: [&str; 4] = ["refuse", "hang", "reset", "vanish"];

struct Cell<'a> {
    fault: &'a str,
    pages: &'a str,
    client: &'a str,
    loads: &'a [Sample],
}

pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let cells: Vec<Cell<'_>> = arms.iter().filter_map(Cell::new).collect();
    let of = |pick: &dyn Fn(&Cell<'_>) -> bool| -> Vec<&Sample> {
        cells.iter().filter(|cell| pick(cell)).flat_map(|cell| cell.loads).collect()
    };
    let pct = |loads: &[&Sample], hit: fn(&Sample) -> bool| {
        100.0 * mean(loads.iter().map(|s| f64::from(u8::from(hit(s)))))
    };
    let one_of_32 = |cell: &Cell<'_>| cell.pages == STYLES && ONE_OF_32.contains(&cell.fault);
    let theirs = of(&|cell| one_of_32(cell) && cell.client != OURS);
    let ours = of(&|cell| cell.client == OURS);
    let passing = of(&|cell| cell.client == OURS && cell.pages == STYLES && cell.fault != "vanish");
    let doubled = |loads: &[&Sample]| loads.iter().map(|s| u64::from(s.fate.doubled)).sum::<u64>() as f64;
    let measured = vec![
        ("browsers_not_whole_pct", pct(&theirs, |s| plt(s).is_none())),
        ("ours_shown_pct", pct(&passing, |s| !s.fate.broken)),
        ("ours_whole_or_told_pct", pct(&ours, |s| plt(s).is_some() || s.fate.told)),
        ("ours_doubled", doubled(&ours)),
    ];
    let mut figures = Vec::new();
    for pages in [STYLES, CORPUS] {
        let here: Vec<&Cell<'_>> = cells.iter().filter(|cell| cell.pages == pages).collect();
        let loads = here.first().map_or(0, |cell| cell.loads.len());
        figures.push(bars(
            &here,
            "% of loads whole",
            &format!("{pages}: loads that end whole, of {loads} each."),
            |cell| Some(cell.share(|s| plt(s).is_some())),
        ));
        let caption = format!("{pages}: loads that lack what the page cannot be shown without.");
        figures.push(bars(&here, "% of loads broken", &caption, |cell| Some(cell.share(|s| s.fate.broken))));
        let caption = format!("{pages}: what is missing, resources a load on average.");
        figures.push(bars(&here, "resources missing", &caption, |cell| {
            Some(mean(cell.loads.iter().map(|s| f64::from(s.fate.missing))))
        }));
        let caption =
            format!("{pages}: median time until a load that ends whole is so; none where none does.");
        figures.push(bars(&here, "s until whole", &caption, |cell| cell.seconds_until_whole()));
        let caption = format!(
            "{pages}: bytes towards the client in loads that end whole, beyond those of the undisturbed load."
        );
        figures.push(bars(&here, "% more bytes", &caption, |cell| cell.more_bytes(&here)));
    }
    let caption = format!("{STYLES}: loads in which the page's POST reached its server twice.");
    let here: Vec<&Cell<'_>> = cells.iter().filter(|cell| cell.pages == STYLES).collect();
    figures.push(bars(&here, "% of loads", &caption, |cell| Some(cell.share(|s| s.fate.doubled > 0))));
    (measured, figures.into_iter().map(Into::into).collect())
}

impl<'a> Cell<'a> {
    fn new(arm: &'a ArmLoads) -> Option<Self> {
        let mut parts = arm.arm.name.split(", ");
        Some(Self { fault: parts.next()?, pages: parts.next()?, client: parts.next()?, loads: &arm.samples })
    }

    fn share(&self, hit: fn(&Sample) -> bool) -> f64 {
        100.0 * mean(self.loads.iter().map(|s| f64::from(u8::from(hit(s)))))
    }

    fn seconds_until_whole(&self) -> Option<f64> {
        let times: Vec<f64> = self.loads.iter().filter_map(plt).collect();
        stats::median(&times).map(|ms| ms / 1e3)
    }

    /// Against the load of the same page, run and transport of this client where nothing breaks.
    fn more_bytes(&self, all: &[&Cell<'_>]) -> Option<f64> {
        let plain = all.iter().find(|cell| cell.fault == "nothing" && cell.client == self.client)?;
        let both = self.loads.iter().zip(plain.loads).filter(|(a, b)| plt(a).is_some() && plt(b).is_some());
        let more: Vec<f64> = both
            .map(|(with, without)| {
                100.0 * (with.fate.bytes_down as f64 / without.fate.bytes_down as f64 - 1.0)
            })
            .collect();
        (!more.is_empty()).then(|| mean(more))
    }
}

fn bars(cells: &[&Cell<'_>], x: &str, caption: &str, figure: impl Fn(&Cell<'_>) -> Option<f64>) -> Figure {
    let series = cells.iter().map(|cell| Series {
        name: format!("{}: {}", cell.fault, cell.client),
        points: figure(cell).map(|value| (value, 0.0)).into_iter().collect(),
    });
    Figure {
        caption: caption.to_owned(),
        x: x.to_owned(),
        y: String::new(),
        shape: Shape::Bars,
        series: series.collect(),
    }
}
