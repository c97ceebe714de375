//! Prints what a recording is taken to be: `cargo run -p velodrome-page --example summary -- [-v] FILE…`
//!
//! One paragraph a page; with `-v` one line a resource as well.

use std::path::Path;
use std::process::ExitCode;

use page::{Cause, Kind, Page, ResourceId};

fn main() -> ExitCode {
    let mut verbose = false;
    let mut failed = false;
    for argument in std::env::args().skip(1) {
        if argument == "-v" {
            verbose = true;
            continue;
        }
        let pages = match argument.strip_prefix("corpus:") {
            Some(name) => page::corpus::generate(name, 3, 1),
            None => page::har::read(Path::new(&argument)),
        };
        match pages {
            Ok(pages) => pages.iter().for_each(|p| print_page(p, verbose)),
            Err(error) => {
                eprintln!("{error}");
                failed = true;
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn print_page(page: &Page, verbose: bool) {
    println!("{}  {}", page.id, page.url);
    let bytes = page.body_bytes();
    println!("  {} requests, {} hosts, {bytes} bytes", page.resources.len(), page.hosts.len());
    for kind in Kind::ALL {
        let of_kind = || page.resources.iter().filter(|r| r.kind == kind);
        if of_kind().next().is_none() {
            continue;
        }
        let (mut parser, mut completion, mut load) = (0, 0, 0);
        for resource in of_kind() {
            match resource.cause {
                Cause::Root | Cause::Redirect(_) | Cause::Beside => {}
                Cause::Parser { .. } => parser += 1,
                Cause::Completion { .. } => completion += 1,
                Cause::Load { .. } => load += 1,
            }
        }
        println!(
            "  {kind:<9}{:>4} × {:>7} bytes; cause: parser {parser}, completion {completion}, load {load}; {:.0} ms of computation",
            of_kind().count(),
            of_kind().map(|r| r.body_len).sum::<u64>() / of_kind().count() as u64,
            of_kind().map(|r| r.exec.as_millis_f64()).sum::<f64>(),
        );
    }
    let ms = |d: Option<base::Duration>| d.map_or("-".into(), |d| format!("{:.0}", d.as_millis_f64()));
    println!(
        "  recorded: parsed {} ms, onload {} ms, first paint {} ms; tail {:.0} ms; by {} ({})",
        ms(page.recorded.on_content_load),
        ms(page.recorded.on_load),
        ms(page.recorded.first_paint),
        page.tail.as_millis_f64(),
        page.recorded.recorder,
        page.recorded.browser,
    );
    for assumption in &page.assumptions {
        println!("  {:>4} {}: {}", assumption.count, assumption.kind, assumption.detail);
    }
    if verbose {
        for id in 0..page.resources.len() {
            print_resource(page, id as ResourceId);
        }
    }
    println!();
}

fn print_resource(page: &Page, id: ResourceId) {
    let resource = &page.resources[id as usize];
    let cause = match resource.cause {
        Cause::Root => "root".to_owned(),
        Cause::Redirect(from) => format!("redirect {from}"),
        Cause::Parser { parent, offset, script } => format!("parser {parent}@{offset} {script:?}"),
        Cause::Completion { parent, delay } => format!("after {parent} +{:.0}", delay.as_millis_f64()),
        Cause::Load { delay } => format!("load +{:.0}", delay.as_millis_f64()),
        Cause::Beside => "beside".to_owned(),
    };
    println!(
        "  {id:>4} {:<8} {} {:>7} B think {:>4.0} exec {:>4.0} {}{} {cause:<24} {}",
        resource.kind,
        resource.status,
        resource.body_len,
        resource.think.as_millis_f64(),
        resource.exec.as_millis_f64(),
        if resource.after_load { "L" } else { " " },
        if resource.scripted { "s" } else { " " },
        page.resource_url(id).chars().take(100).collect::<String>(),
    );
}
