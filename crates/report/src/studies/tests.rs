use lab::study::{Figure, Series, Shape, Table};

use super::*;

fn findings(ours: Vec<Option<f64>>) -> Findings {
    let figure = |shape, points: Vec<(f64, f64)>| {
        Picture::Figure(Figure {
            caption: "What <it> shows".into(),
            x: "along".into(),
            y: "up".into(),
            shape,
            series: vec![
                Series { name: "a<b".into(), points: points.clone() },
                Series { name: "flat".into(), points },
            ],
        })
    };
    Findings {
        study: lab::study::named("flow-control").unwrap(),
        ours,
        pictures: vec![
            figure(Shape::Scatter, vec![(10.0, 12.0), (1_000.0, 900.0)]),
            figure(Shape::Lines, vec![(0.0, -2.0), (50.0, f64::NAN), (200.0, 8.0)]),
            figure(Shape::Steps, vec![(0.0, 0.0), (1.0, 5.0)]),
            figure(Shape::Spans, vec![(0.0, 83.0)]),
            figure(Shape::Bars, vec![(97.5, 0.0)]),
            figure(Shape::Lives, vec![(0.0, 900.0), (0.0, 100.0), (150.0, 400.0)]),
            figure(Shape::Dots, vec![(-1.0, 4.0), (2.5, 2.5)]),
            figure(Shape::Lines, Vec::new()),
            Picture::Table(Table {
                caption: "A table & more".into(),
                head: vec!["what".into(), "ms".into()],
                rows: vec![vec!["a<b".into(), "12".into()]],
            }),
        ],
        turns: vec!["It turns at 5 < 6 %.".into()],
        loads: 4,
        incomplete: 1,
    }
}

#[test]
fn the_page_shows_both_figures_the_verdict_and_what_was_left_out() {
    let page =
        render(&[findings(vec![Some(1.0), Some(2_500.0), Some(2.0), Some(2.5), Some(1.5), Some(500.0)])]);
    for says in [
        "&lt; 2000",
        "2500",
        "Reproduced in part: 5 of 6",
        "1 of 4 loads were not whole",
        "To take from it",
        "It turns at 5 &lt; 6 %.",
    ] {
        assert!(page.contains(says), "{says}");
    }
    assert!(page.contains(">97.5</text>"), "a bar says how long it is");
    assert_eq!(page.matches("<svg").count(), 7, "what has no points is not drawn");
    assert!(!page.contains("a<b") && !page.contains("<it>") && !page.contains("NaN"));
}

#[test]
fn a_studys_own_table_is_in_the_page_and_in_the_document() {
    let findings = findings(vec![None; 6]);
    let page = render(std::slice::from_ref(&findings));
    assert!(page.contains("A table &amp; more</caption>") && page.contains("<td class=\"n\">12</td>"));
    let text = markdown_section(&findings);
    assert!(text.contains("\nA table & more\n\n| what | ms |\n|---|---:|\n| a<b | 12 |\n"), "{text}");
}

#[test]
fn what_was_not_measured_is_said_and_not_reproduced() {
    let text = markdown(&[findings(vec![None; 6])]);
    assert!(text.contains("none was seen") && text.contains("**Not reproduced: 0 of 6 figures.**"), "{text}");
    assert!(text.contains(&lab::study::named("flow-control").unwrap().lesson.fails));
}

/// The committed document is of these studies: their order, claims, published figures and ranges. That its figures are ours is for
/// `velodrome study --all --check docs/studies.md`.
#[test]
fn the_committed_document_is_of_these_studies() {
    let committed = include_str!("../../../../docs/studies.md");
    assert!(committed.starts_with(HEAD));
    let sections: Vec<_> = committed.lines().filter_map(|l| l.strip_prefix("## ")).collect();
    let studies = lab::study::all();
    assert_eq!(sections, studies.iter().map(|s| s.name.as_str()).collect::<Vec<_>>());
    for study in studies {
        assert!(committed.contains(&study.claim), "{}", study.name);
        for p in &study.published {
            assert!(
                committed.contains(&format!("| {} | {} | ", p.what, p.figure)),
                "{}: {}",
                study.name,
                p.key
            );
            assert!(
                committed.contains(&format!(" | {} to {} | ", p.low, p.high)),
                "{}: {}",
                study.name,
                p.key
            );
        }
    }
}
