//! `velodrome`: thin verbs over `lab`.
//!
//! * [`args`]: verbs and flags.
//! * [`race`]: `velodrome race`.
//! * [`agree`]: `velodrome agree`.
//! * [`capture`]: `velodrome capture`.
//! * `link`: `velodrome link` (Linux).
//! * [`timers`]: `velodrome study timers`; [`mod@study`]: the studies of published experiments.
//! * [`topology`]: `velodrome topology`.
//! * `priority`: of `velodrome study tab-priority --live`, the part that is about processes (Linux).
//! * [`fetch`]: `velodrome fetch`.
//! * [`serve`]: `velodrome serve`.
//! * [`mod@print`]: what people read on a terminal.
//!
//! Results go to standard output; progress, and everything that went wrong, to standard error, one line each.

mod agree;
mod args;
mod capture;
mod fetch;
#[cfg(target_os = "linux")]
mod link;
mod print;
#[cfg(target_os = "linux")]
mod priority;
mod race;
mod serve;
mod study;
mod timers;
mod topology;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Cli, PagesArgs, Study, StudyArgs, Verb};

/// How the program ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Exit {
    Well,
    /// Some input could not be raced; the rest was.
    Partly,
    /// The command could not be carried out.
    Refused,
    /// By ctrl-C; what was finished is kept.
    Interrupted,
    /// As the command ended that it ran.
    #[cfg(target_os = "linux")]
    Code(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Well => 0,
            Exit::Partly => 1,
            Exit::Refused => 2,
            Exit::Interrupted => 130,
            #[cfg(target_os = "linux")]
            Exit::Code(code) => code,
        })
    }
}

fn main() -> ExitCode {
    let said = |e: lab::Error| e.to_string();
    let exit = match Cli::parse().verb {
        Verb::Race(args) => race::race(&args).map_err(said),
        Verb::Agree(args) => agree::agree(&args).map_err(said),
        Verb::Networks => Ok(networks()),
        Verb::Pages(args) => Ok(pages(&args)),
        Verb::Study(args) => study(&args).map_err(said),
        Verb::Topology(args) => topology::topology(&args).map_err(said),
        Verb::Capture(args) => capture::capture(&args).map_err(said),
        #[cfg(target_os = "linux")]
        Verb::Link(args) => Ok(link::link(&args)),
        Verb::Fetch(args) => fetch::fetch(&args),
        Verb::Serve(args) => serve::serve(&args),
        Verb::Man => Ok(man()),
        Verb::Completions { shell } => Ok(completions(shell)),
    };
    exit.unwrap_or_else(|error| {
        print::complain(&error);
        Exit::Refused
    })
    .into()
}

fn networks() -> Exit {
    print::out(&print::networks());
    Exit::Well
}

fn pages(args: &PagesArgs) -> Exit {
    let collected = lab::pages::collect(&args.source.pages, args.source.pages_max);
    collected.problems.iter().for_each(|problem| print::complain(problem));
    if args.json {
        let mut rows = Vec::new();
        collected.rows().for_each(|row| lab::result::emit(&row, &mut rows));
        print::out(&String::from_utf8_lossy(&rows));
    } else {
        print::out(&print::pages(&collected.rows().collect::<Vec<_>>()));
    }
    if collected.problems.is_empty() { Exit::Well } else { Exit::Partly }
}

fn study(args: &StudyArgs) -> Result<Exit, lab::Error> {
    match &args.study {
        Some(Study::Timers(timers)) if !args.list => timers::study(timers),
        #[cfg(target_os = "linux")]
        Some(Study::Link(link)) if !args.list => link::study::study(link),
        Some(published) if !args.list && published.published().is_some() => {
            let (name, run) = published.published().expect("it is one");
            study::one(name, run)
        }
        None if args.all && !args.list => study::all(args),
        _ => {
            let command = Cli::command();
            let studies = command.find_subcommand("study").map(clap::Command::get_subcommands);
            for study in studies.into_iter().flatten() {
                let about = study.get_about().map(ToString::to_string).unwrap_or_default();
                print::out(&format!("{:<17} {about}\n", study.get_name()));
            }
            Ok(Exit::Well)
        }
    }
}

/// The program's page, and behind it those of the verbs that have flags.
fn man() -> Exit {
    let mut command = Cli::command();
    command.build();
    let verbs = command.get_subcommands().filter(|verb| {
        ["race", "agree", "pages", "topology", "capture", "link", "fetch", "serve"].contains(&verb.get_name())
    });
    let mut text = Vec::new();
    for command in std::iter::once(&command).chain(verbs) {
        clap_mangen::Man::new(command.clone()).render(&mut text).expect("a vector takes every byte");
    }
    print::out(&String::from_utf8_lossy(&text));
    Exit::Well
}

fn completions(shell: clap_complete::Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "velodrome", &mut script);
    print::out(&String::from_utf8_lossy(&script));
    Exit::Well
}
