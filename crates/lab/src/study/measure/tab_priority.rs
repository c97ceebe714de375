//! What tabs behind cost the one in front, and when they are loaded themselves.

use super::{ArmLoads, Figure, Measured, Sample, Series, Shape, counted, mean, plt};

/// Arms: the page alone; with others behind it, all alike, of lower priority, after it, and one after the other. Transports are
/// HTTP and SPDY.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [alone, at_once, classes, first, one_by_one] = arms else { return Default::default() };
    // The mean of ratios would be moved by few small pages; it is what a page's time is multiplied by that is asked for.
    let times = |arm: &ArmLoads, transport: usize| {
        let both = super::pairs(&alone.each(0, transport, plt), &arm.each(0, transport, plt));
        mean(both.iter().map(|(alone, with)| with / alone))
    };
    let measured = vec![
        ("at_once_http", times(at_once, 0)),
        ("at_once_spdy", times(at_once, 1)),
        ("classes_http", times(classes, 0)),
        ("classes_spdy", times(classes, 1)),
        ("first_http", times(first, 0)),
        ("first_spdy", times(first, 1)),
    ];
    let line = |name: &str, arm: &ArmLoads, transport: usize| {
        let samples = arm.samples.iter().filter(|s| s.transport == transport && s.plt_ms.is_some());
        let samples: Vec<&Sample> = samples.collect();
        let tabs = samples.first().map_or(0, |s| s.behind_ms.len());
        let of = |tab: usize| mean(samples.iter().filter_map(|s| time(s, tab)));
        Series { name: name.to_owned(), points: (0..=tabs).map(|tab| (tab as f64, of(tab))).collect() }
    };
    let figure = |name: &str, transport: usize| Figure {
        caption: format!(
            "When each tab is loaded, over {name}: tab 0 is the one in front; means over {}. A page alone takes {:.0} ms.",
            counted(alone.pages, "session"),
            mean(alone.each(0, transport, plt).into_iter().flatten())
        ),
        x: "tab".into(),
        y: "ms from the start of the browser".into(),
        shape: Shape::Lines,
        series: vec![
            line("all at once", at_once, transport),
            line("all at once, of lower priority behind", classes, transport),
            line("the one in front, then the others", first, transport),
            line("one by one", one_by_one, transport),
        ],
    };
    (measured, vec![figure("HTTP/1.1", 0).into(), figure("SPDY/3.1", 1).into()])
}

/// When a tab was loaded.
fn time(sample: &Sample, tab: usize) -> Option<f64> {
    match tab.checked_sub(1) {
        None => sample.plt_ms,
        Some(behind) => sample.behind_ms.get(behind).copied(),
    }
}
