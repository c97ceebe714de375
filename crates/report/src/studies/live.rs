//! The page about a study in the live world, beside the virtual one on the same loads; and the same as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use lab::Error;
use lab::study::live::{ArmReport, Cut, Findings};
use lab::study::{Published, rounded};

use crate::html::{STATIC_END, escape, static_page};

/// The name of the page within its folder.
pub const FILE: &str = "live.html";

/// Draws findings and writes the page to a folder, which is made; gives the page's path. `also` is what else was measured, as text.
pub fn write(dir: &Path, findings: &Findings, also: &str) -> Result<PathBuf, Error> {
    let path = dir.join(FILE);
    let refused = |source| Error::Io { action: "cannot write", path: path.clone(), source };
    fs::create_dir_all(dir).map_err(refused)?;
    fs::write(&path, render(findings, also)).map_err(refused)?;
    Ok(path)
}

/// Whether a figure is within the range that was set for it.
fn holds(p: &Published, figure: Option<f64>) -> bool {
    figure.is_some_and(|figure| (p.low..=p.high).contains(&figure))
}

fn figure(p: &Published, figure: Option<f64>) -> String {
    let mark = if holds(p, figure) { '✓' } else { '✗' };
    figure.map_or_else(|| "none was seen".to_owned(), |f| format!("{} {mark}", rounded(f)))
}

/// What the figures are of.
fn made_of(f: &Findings) -> String {
    let cut = match f.cut {
        None => "",
        Some(Cut::Interrupt) => "Interrupted: ",
        Some(Cut::Time) => "Cut, as its time was up: ",
    };
    format!(
        "{cut}{} of {} planned live loads were made, over the kernel's TCP and an emulated link, in real time; \"virtual\" is the \
         virtual world on the same loads. Figures of live loads differ from run to run and from machine to machine.",
        f.made, f.planned
    )
}

/// How an arm was carried out, without markup.
fn carried_out(arm: &ArmReport) -> String {
    let cut = match (arm.made < arm.planned, arm.measured < arm.made) {
        (false, false) => String::new(),
        (_, false) => format!(", of {} planned", arm.planned),
        (_, true) => {
            format!(", of {} planned, {} made; what not all arms have is not counted", arm.planned, arm.made)
        }
    };
    format!(
        "{} of {} loads{cut}{}{}",
        arm.measured,
        arm.whole,
        if arm.repeats > 1 { format!(", each the median of {}", arm.repeats) } else { String::new() },
        if arm.incomplete > 0 { format!("; {} not whole", arm.incomplete) } else { String::new() },
    )
}

/// What the live world did not have as the study says, each once, and in which arms.
fn unmet(f: &Findings) -> Vec<String> {
    let mut by_what: BTreeMap<&str, Vec<(&str, u64)>> = BTreeMap::new();
    for arm in &f.arms {
        for (what, loads) in &arm.unmet {
            by_what.entry(what).or_default().push((&arm.name, *loads));
        }
    }
    let told = by_what.into_iter().map(|(what, arms)| {
        let loads: u64 = arms.iter().map(|(_, loads)| loads).sum();
        match arms.len() == f.arms.len() {
            true => format!("in {loads} loads, of all arms: {what}"),
            false => {
                let names: Vec<_> = arms.iter().map(|(name, _)| *name).collect();
                format!("in {loads} loads, of {}: {what}", names.join("; "))
            }
        }
    });
    told.collect()
}

fn ms(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |ms| format!("{ms:.0}"))
}

fn waited(arm: &ArmReport) -> String {
    arm.waited_ms.map_or_else(|| "–".to_owned(), |ms| ms.to_string())
}

/// The page.
pub fn render(f: &Findings, also: &str) -> String {
    const STYLE: &str = "\
td,th{text-align:left;vertical-align:top}td.n{text-align:right;white-space:nowrap}li{color:var(--soft)}\
pre{font:13px/1.4 ui-monospace,monospace;white-space:pre-wrap}h2{margin-top:2.6rem;font-size:1.25rem}";
    let mut html = static_page(&f.study.name, &format!("{}, live", f.study.title), STYLE);
    let _ = write!(html, "<p>{}</p>\n<p>{}</p>\n", escape(&f.study.claim), escape(&made_of(f)));
    html.push_str("<table><tr><th></th><th>published</th><th>virtual</th><th>live</th><th>counts as the same</th></tr>\n");
    for (n, p) in f.study.published.iter().enumerate() {
        let _ = writeln!(
            html,
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{} to {}</td></tr>",
            escape(&p.what),
            escape(&p.figure),
            figure(p, f.modelled[n]),
            figure(p, f.live[n]),
            p.low,
            p.high
        );
    }
    html.push_str("</table>\n");
    if !also.is_empty() {
        let _ = writeln!(html, "<pre>{}</pre>", escape(also));
    }
    for (pictures, world) in f.pictures.iter().zip(["The virtual world", "The live world"]) {
        let _ = write!(html, "<h2>{world}</h2>\n<div>");
        pictures.iter().for_each(|picture| super::draw(&mut html, picture));
        html.push_str("</div>\n");
    }
    html.push_str("<h2>How the arms were carried out</h2>\n<table><tr><th>arm</th><th>median PLT, ms:<br>virtual</th><th><br>live</th><th>late, µs</th><th>waited, ms</th><th></th></tr>\n");
    for arm in &f.arms {
        let _ = writeln!(
            html,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
            escape(&arm.name),
            ms(arm.plt_ms[0]),
            ms(arm.plt_ms[1]),
            ms(arm.late_us),
            waited(arm),
            escape(&carried_out(arm))
        );
    }
    let _ = writeln!(html, "</table>\n<p>{LATE}</p>");
    let unmet = unmet(f);
    if !unmet.is_empty() {
        let list: String = unmet.iter().map(|what| format!("<li>{}</li>", escape(what))).collect();
        let _ = writeln!(html, "<p>{UNMET}</p>\n<ul>{list}</ul>");
    }
    html.push_str(STATIC_END);
    html
}

const LATE: &str = "Late: by how much the emulator delivered 99 of 100 packets late at most; waited: for how long browser and servers together were \
     ready to run while other programs had the processor; both in the median load.";

const UNMET: &str = "What the live world did not have as the study says:";

/// The findings as Markdown, without pictures.
pub fn markdown(f: &Findings) -> String {
    let mut out = format!("## {}, live\n\n{}\n\n", f.study.name, made_of(f));
    out.push_str("| figure | published | virtual | live | counts as the same |\n|---|---|---:|---:|---|\n");
    for (n, p) in f.study.published.iter().enumerate() {
        let (modelled, live) = (figure(p, f.modelled[n]), figure(p, f.live[n]));
        let _ =
            writeln!(out, "| {} | {} | {modelled} | {live} | {} to {} |", p.what, p.figure, p.low, p.high);
    }
    out.push_str("\n| arm | PLT virtual, ms | PLT live, ms | late, µs | waited, ms | |\n|---|---:|---:|---:|---:|---|\n");
    for arm in &f.arms {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            arm.name,
            ms(arm.plt_ms[0]),
            ms(arm.plt_ms[1]),
            ms(arm.late_us),
            waited(arm),
            carried_out(arm)
        );
    }
    let _ = writeln!(out, "\nPLT: medians over the loads measured. {LATE}");
    let unmet = unmet(f);
    if !unmet.is_empty() {
        let _ = writeln!(out, "\n{UNMET}\n\n- {}", unmet.join("\n- "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Findings {
        let study = lab::study::named("false-start").unwrap();
        let ours = vec![None; study.published.len()];
        let arm = |name: &str| ArmReport {
            name: name.into(),
            whole: 60,
            planned: 2,
            made: 2,
            measured: 2,
            repeats: 1,
            ..Default::default()
        };
        let without = |what: &[(&str, u64)], name| ArmReport {
            unmet: what.iter().map(|(what, loads)| ((*what).into(), *loads)).collect(),
            ..arm(name)
        };
        Findings {
            modelled: ours.clone(),
            live: std::iter::once(Some(170.0)).chain(ours[1..].iter().copied()).collect(),
            pictures: Default::default(),
            arms: vec![
                without(&[("no <such> TCP", 2), ("no SYN", 1)], "with"),
                without(&[("no <such> TCP", 2)], "without"),
            ],
            planned: 4,
            made: 3,
            cut: Some(Cut::Interrupt),
            study,
        }
    }

    #[test]
    fn each_figure_stands_beside_the_virtual_and_the_published_one() {
        let text = markdown(&findings());
        assert!(text.contains("| 176 | none was seen | 170 ✓ | 166 to 186 |"), "{text}");
        assert!(text.contains("Interrupted: 3 of 4 planned"));
    }

    #[test]
    fn a_study_that_was_cut_says_so_and_what_it_has_of_each_arm() {
        let mut cut = Findings { cut: Some(Cut::Time), ..findings() };
        cut.arms[0] = ArmReport { planned: 5, made: 3, ..cut.arms[0].clone() };
        let text = markdown(&cut);
        assert!(text.contains("Cut, as its time was up: 3 of 4 planned live loads"), "{text}");
        assert!(
            text.contains("2 of 60 loads, of 5 planned, 3 made; what not all arms have is not counted |"),
            "{text}"
        );
        cut.arms[0].measured = 3;
        assert!(markdown(&cut).contains("3 of 60 loads, of 5 planned |"));
    }

    #[test]
    fn what_the_live_world_did_not_have_is_said_of_each_arm() {
        let text = markdown(&findings());
        assert!(text.contains("| 2 of 60 loads |"), "{text}");
        assert!(text.contains("- in 4 loads, of all arms: no <such> TCP"), "{text}");
        assert!(text.contains("- in 1 loads, of with: no SYN"), "{text}");
        assert!(render(&findings(), "a < b").contains("no &lt;such&gt; TCP"));
        assert!(render(&findings(), "a < b").contains("<pre>a &lt; b</pre>"));
    }
}
