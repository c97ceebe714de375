//! `velodrome study NAME` and `--all`: published experiments, made again in the virtual world.

use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use lab::Error;
use lab::study::{Findings, Options, Study};

use crate::args::{PublishedArgs, StudyArgs};
use crate::race::{INTERRUPTED, listen_for_ctrl_c};
use crate::{Exit, print};

/// Makes one study.
pub fn one(name: &str, args: &PublishedArgs) -> Result<Exit, Error> {
    let study = lab::study::named(name)?;
    listen_for_ctrl_c();
    let Some(findings) = make(study, args)? else { return Ok(Exit::Interrupted) };
    print::out(&report::studies::markdown_section(&findings));
    let page = report::studies::write(&args.out, &[findings])?;
    print::out(&format!("\npictures: {}\n", page.display()));
    Ok(Exit::Well)
}

/// Makes all, one after the other.
pub fn all(args: &StudyArgs) -> Result<Exit, Error> {
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
