//! `velodrome study NAME` and `--all`: published experiments, made again in the virtual world, and one by one in the live one.

use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use lab::Error;
use lab::setting::World;
use lab::study::live::Cut;
use lab::study::{Findings, Options, Study};
use lab::world::Track;

use crate::args::{LiveStudyArgs, PublishedArgs, StudyArgs};
#[cfg(target_os = "linux")]
use crate::priority;
use crate::race::{INTERRUPTED, listen_for_ctrl_c};
use crate::{Exit, print};

/// Makes one study.
pub fn one(name: &str, args: &PublishedArgs) -> Result<Exit, Error> {
    let study = lab::study::named(name)?;
    if args.live.live {
        return live(study, args);
    }
    listen_for_ctrl_c();
    let Some(findings) = make(study, args)? else { return Ok(Exit::Interrupted) };
    print::out(&report::studies::markdown_section(&findings));
    let page = report::studies::write(&args.out, &[findings])?;
    print::out(&format!("\npictures: {}\n", page.display()));
    Ok(Exit::Well)
}

/// Makes one study in the live world.
fn live(study: Study, args: &PublishedArgs) -> Result<Exit, Error> {
    let LiveStudyArgs { minutes, at_once, resume, .. } = args.live;
    // Before there is any thread.
    let track = Track::prepare(World::Live)?;
    listen_for_ctrl_c();
    let dir = args.out.join(format!("{}-live", study.name));
    #[cfg(target_os = "linux")]
    let also = if study.name == "tab-priority" { priority::measure(&dir)? } else { String::new() };
    #[cfg(not(target_os = "linux"))]
    let also = String::new();
    print::out(&also);
    // Draws nothing unless standard error is a terminal.
    let bar = ProgressBar::no_length();
    let style = "{msg:17} {bar:40} {pos} of {len} live loads, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).expect("a valid template"));
    bar.set_message(study.name.clone());
    let clock = live::Clock::start();
    let findings = lab::study::live::run(
        study,
        lab::study::live::Options {
            track: &track,
            dir: &dir,
            resume,
            minutes,
            is_over: &|| clock.now().since(base::Instant::ZERO).as_secs_f64() >= minutes * 60.0,
            at_once: at_once as usize,
            cancel: &INTERRUPTED,
            progress: &|done, total| {
                bar.set_length(total);
                bar.set_position(done);
            },
        },
    );
    bar.finish_and_clear();
    let findings = findings?;
    print::out(&report::studies::live::markdown(&findings));
    let page = report::studies::live::write(&dir, &findings, &also)?;
    print::out(&format!("\npictures: {}\n", page.display()));
    match findings.cut {
        Some(Cut::Interrupt) => {
            print::complain(&"interrupted: the same command with --resume goes on");
            return Ok(Exit::Interrupted);
        }
        Some(Cut::Time) => print::complain(&format!(
            "cut after {minutes} minutes, as it was told: the same command with --resume goes on for as long again"
        )),
        None => {}
    }
    Ok(Exit::Well)
}

/// Makes all, one after the other.
pub fn all(args: &StudyArgs) -> Result<Exit, Error> {
    if args.run.live.live {
        return Err(Error::Asked(
            "--live is for one study at a time: `velodrome study NAME --live`".to_owned(),
        ));
    }
    listen_for_ctrl_c();
    let mut findings = Vec::new();
    for study in lab::study::all() {
        let Some(found) = make(study, &args.run)? else { return Ok(Exit::Interrupted) };
        print::out(&format!("{:<17} {}\n", found.study.name, found.says()));
        findings.push(found);
    }
    let page = report::studies::write(&args.run.out, &findings)?;
    print::out(&format!("\nreport: {}\n", page.display()));
    let text = report::studies::markdown(&findings);
    let io = |action, path: &Path| {
        let path = path.to_owned();
        move |source| Error::Io { action, path, source }
    };
    if let Some(path) = &args.doc {
        std::fs::write(path, &text).map_err(io("cannot write", path))?;
    }
    if let Some(path) = &args.check {
        let committed = std::fs::read_to_string(path).map_err(io("cannot read", path))?;
        if committed != text {
            let path = path.display();
            return Err(Error::Asked(format!(
                "{path} has other findings; `velodrome study --all --doc {path}` writes these"
            )));
        }
    }
    Ok(Exit::Well)
}

/// A study, with a progress bar where somebody is there to see it; `None` if ctrl-C ended it.
fn make(study: Study, args: &PublishedArgs) -> Result<Option<Findings>, Error> {
    // Draws nothing unless standard error is a terminal.
    let bar = ProgressBar::no_length();
    let style = "{msg:17} {bar:40} {pos} of {len} loads, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).expect("a valid template"));
    bar.set_message(study.name.clone());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let findings = lab::study::run(
        study,
        Options {
            threads: args.threads.map_or(cores, |n| n as usize),
            cancel: &INTERRUPTED,
            progress: &|done, total| {
                bar.set_length(total);
                bar.set_position(done);
            },
        },
    );
    bar.finish_and_clear();
    findings
}
