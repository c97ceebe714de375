//! A loader with a network of fixed latency: every resource's head and last byte arrive so long after it was asked for.

use base::{Duration, Instant};
use page::{Cause, Host, Kind, Page, Resource, ScriptMode};

use super::*;

const LATENCY: Duration = Duration::from_millis(100);

fn resource(kind: Kind, cause: Cause) -> Resource {
    Resource { body_len: 1_000, ..Resource::get("/", kind, cause) }
}

fn parsed(kind: Kind, offset: u64) -> Resource {
    resource(kind, Cause::Parser { parent: 0, offset, script: ScriptMode::Sync })
}

fn script(offset: u64, script: ScriptMode) -> Resource {
    resource(Kind::Script, Cause::Parser { parent: 0, offset, script })
}

fn caused(kind: Kind, parent: ResourceId, delay_ms: u64) -> Resource {
    resource(kind, Cause::Completion { parent, delay: Duration::from_millis(delay_ms) })
}

fn exec(resource: Resource, ms: u64) -> Resource {
    Resource { exec: Duration::from_millis(ms), ..resource }
}

/// A page of a document and `rest`.
fn page(rest: impl IntoIterator<Item = Resource>) -> Page {
    let resources = std::iter::once(resource(Kind::Document, Cause::Root)).chain(rest).collect();
    Page::new("test", vec![Host::new("a.example")], resources).unwrap()
}

/// Loads `page`; resource `slow.0` takes `slow.1` ms, those in `broken` fail, all others take the latency.
fn load<'p>(page: &'p Page, slow: (ResourceId, u64), broken: &[ResourceId]) -> Loader<'p> {
    let mut loader = Loader::new(page, Config::default());
    let mut arrivals = std::collections::BTreeSet::new();
    let mut now = Instant::ZERO;
    loader.start(now);
    for _ in 0..10_000 {
        while let Some(id) = loader.poll_fetch() {
            let latency = if id == slow.0 { Duration::from_millis(slow.1) } else { LATENCY };
            arrivals.insert((now + latency, id));
        }
        let arrival = arrivals.first().map(|(at, _)| *at);
        let Some(next) = [arrival, loader.poll_timeout()].into_iter().flatten().min() else { break };
        now = next;
        if Some(now) == arrival {
            let (_, id) = arrivals.pop_first().unwrap();
            if broken.contains(&id) {
                loader.handle_failed(now, id, "refused".into());
            } else {
                loader.handle_head(now, id);
                loader.handle_data(now, id, page.resources[id as usize].body_len);
                loader.handle_complete(now, id);
            }
        } else {
            loader.handle_timeout(now);
        }
    }
    assert!(loader.is_finished(), "the load never ended: {:?}", loader.records);
    loader
}

fn ms(at: Option<Instant>) -> f64 {
    at.expect("the moment was reached").since(Instant::ZERO).as_millis_f64()
}

#[test]
fn onload_waits_for_every_resource_known_by_then() {
    let page = page([parsed(Kind::Image, 100), parsed(Kind::Image, 200)]);
    let loader = load(&page, (2, 700), &[]);
    assert_eq!(ms(loader.moments().load), 800.0);
    assert_eq!(ms(loader.moments().parsed), 100.0);
    assert_eq!(ms(loader.moments().first_byte), 100.0);
}

#[test]
fn images_never_hold_the_parser_up() {
    let page = page([parsed(Kind::Image, 100), script(200, ScriptMode::Sync)]);
    assert_eq!(ms(load(&page, (1, 5_000), &[]).moments().parsed), 200.0);
}

#[test]
fn a_synchronous_script_stops_the_parser_but_not_the_scanner() {
    let page = page([exec(script(100, ScriptMode::Sync), 50), parsed(Kind::Image, 900)]);
    let loader = load(&page, (9, 0), &[]);
    assert_eq!(ms(loader.record(2).discovered), 100.0, "the scanner saw the image behind the script");
    assert_eq!(ms(loader.record(1).used), 250.0);
    assert_eq!(ms(loader.moments().parsed), 250.0);
}

#[test]
fn what_an_inline_script_writes_is_seen_by_the_parser_only() {
    let written = Resource { scripted: true, ..parsed(Kind::Image, 900) };
    let page = page([script(100, ScriptMode::Sync), written]);
    assert_eq!(ms(load(&page, (9, 0), &[]).record(2).discovered), 200.0);
}

#[test]
fn a_pending_style_sheet_holds_scripts_and_the_first_paint_back() {
    let page = page([parsed(Kind::Style, 50), script(100, ScriptMode::Sync), parsed(Kind::Image, 500)]);
    let loader = load(&page, (1, 400), &[]);
    assert_eq!(ms(loader.record(2).complete), 200.0);
    assert_eq!(ms(loader.record(2).used), 500.0);
    assert_eq!(ms(loader.moments().first_paint), 500.0);
}

#[test]
fn what_the_head_fetches_is_no_content_to_paint() {
    let page = page([
        parsed(Kind::Font, 10),
        parsed(Kind::Image, 20),
        parsed(Kind::Style, 50),
        parsed(Kind::Image, 500),
    ]);
    assert_eq!(ms(load(&page, (3, 400), &[]).moments().first_paint), 500.0);
}

#[test]
fn a_style_sheet_behind_a_script_does_not_hold_it_back() {
    let page = page([script(100, ScriptMode::Sync), parsed(Kind::Style, 200)]);
    assert_eq!(ms(load(&page, (2, 900), &[]).record(1).used), 200.0);
}

#[test]
fn deferred_scripts_run_in_order_when_the_document_is_parsed() {
    let page = page([
        script(100, ScriptMode::Defer),
        script(200, ScriptMode::Defer),
        exec(script(300, ScriptMode::Sync), 30),
    ]);
    let loader = load(&page, (1, 500), &[]);
    assert_eq!(ms(loader.record(1).used), 600.0);
    assert_eq!(ms(loader.record(2).used), 600.0);
    assert_eq!(ms(loader.record(3).used), 230.0);
    assert_eq!(ms(loader.moments().parsed), 600.0);
}

#[test]
fn asynchronous_scripts_run_on_arrival_and_do_not_hold_the_parser_up() {
    let page = page([script(100, ScriptMode::Async), exec(parsed(Kind::Style, 200), 10)]);
    let loader = load(&page, (1, 500), &[]);
    assert_eq!(ms(loader.moments().parsed), 100.0);
    assert_eq!(ms(loader.record(1).used), 600.0);
    assert_eq!(ms(loader.moments().load), 600.0);
}

#[test]
fn the_main_thread_does_one_thing_at_a_time() {
    let page = page([exec(script(100, ScriptMode::Async), 300), exec(script(200, ScriptMode::Async), 300)]);
    let loader = load(&page, (9, 0), &[]);
    assert_eq!(ms(loader.record(1).used), 500.0);
    assert_eq!(ms(loader.record(2).used), 800.0);
    assert_eq!(loader.computed(), Duration::from_millis(600));
}

#[test]
fn a_documents_computation_is_spread_over_its_bytes() {
    let mut page = page([script(250, ScriptMode::Sync), parsed(Kind::Image, 600)]);
    page.resources[0].exec = Duration::from_millis(400);
    let loader = load(&page, (1, 700), &[]);
    // A quarter before the script; the rest once it has come at 800 ms.
    assert_eq!(ms(loader.record(1).used), 800.0);
    assert_eq!(ms(loader.moments().parsed), 1_100.0);
    assert_eq!(
        ms(loader.moments().first_paint),
        940.0,
        "the parser reaches the image after 60 % of the bytes"
    );
}

#[test]
fn what_a_script_causes_follows_it_after_the_recorded_delay() {
    let page = page([script(100, ScriptMode::Sync), caused(Kind::Xhr, 1, 40), caused(Kind::Image, 2, 0)]);
    let loader = load(&page, (9, 0), &[]);
    assert_eq!(ms(loader.record(2).discovered), 240.0);
    assert_eq!(ms(loader.record(3).discovered), 340.0);
    assert_eq!(ms(loader.moments().load), 440.0, "onload waits for what was recorded before it");
}

#[test]
fn redirections_are_followed_and_the_last_document_is_the_main_one() {
    let mut page = page([resource(Kind::Document, Cause::Redirect(0)), parsed(Kind::Image, 0)]);
    page.resources[0].status = 301;
    page.resources[2].cause = Cause::Parser { parent: 1, offset: 500, script: ScriptMode::Sync };
    let loader = load(&page, (9, 0), &[]);
    assert_eq!(ms(loader.moments().first_byte), 200.0);
    assert_eq!(ms(loader.moments().load), 300.0);
}

#[test]
fn frames_are_documents_of_their_own_and_onload_waits_for_them() {
    let mut page = page([parsed(Kind::Document, 100), parsed(Kind::Image, 0)]);
    page.resources[2].cause = Cause::Parser { parent: 1, offset: 10, script: ScriptMode::Sync };
    let loader = load(&page, (9, 0), &[]);
    assert_eq!(ms(loader.record(2).discovered), 200.0);
    assert_eq!(ms(loader.moments().parsed), 100.0);
    assert_eq!(ms(loader.moments().load), 300.0);
}

#[test]
fn onload_does_not_wait_for_what_was_recorded_after_it() {
    let beacon = resource(Kind::Image, Cause::Load { delay: Duration::from_millis(20) });
    let late = Resource { after_load: true, ..parsed(Kind::Image, 900) };
    let page = page([beacon, late, caused(Kind::Image, 2, 0)]);
    let loader = load(&page, (2, 700), &[]);
    assert_eq!(ms(loader.moments().load), 100.0);
    assert_eq!(ms(loader.record(1).discovered), 120.0);
    assert_eq!(ms(loader.moments().finished), 900.0, "and what a late resource causes is late as well");
}

#[test]
fn the_closing_computation_comes_before_onload() {
    let mut page = page([parsed(Kind::Image, 100)]);
    page.tail = Duration::from_millis(70);
    assert_eq!(ms(load(&page, (9, 0), &[]).moments().load), 270.0);
}

#[test]
fn a_failed_script_lets_the_parser_go_on_and_takes_along_what_it_would_have_caused() {
    let page = page([script(100, ScriptMode::Sync), caused(Kind::Xhr, 1, 0), parsed(Kind::Image, 900)]);
    let loader = load(&page, (9, 0), &[1]);
    assert_eq!(loader.record(1).progress, Progress::Failed("refused".into()));
    assert_eq!(loader.record(2).progress, Progress::Missing);
    assert_eq!(loader.record(3).progress, Progress::Used);
    assert_eq!(ms(loader.moments().load), 200.0);
}

#[test]
fn a_failed_document_ends_the_load() {
    let page = page([parsed(Kind::Image, 100), caused(Kind::Image, 1, 0)]);
    let loader = load(&page, (9, 0), &[0]);
    assert_eq!(loader.record(2).progress, Progress::Missing);
    assert_eq!(ms(loader.moments().load), 100.0);
}

#[test]
fn without_computation_only_the_network_is_left() {
    let mut page = page([exec(script(100, ScriptMode::Sync), 50), caused(Kind::Xhr, 1, 40)]);
    page.resources[0].exec = Duration::from_millis(400);
    page.tail = Duration::from_millis(70);
    let mut loader = Loader::new(&page, Config { compute_scale: 0.0, ..Config::default() });
    loader.start(Instant::ZERO);
    for id in 0..3 {
        assert_eq!(loader.poll_fetch(), Some(id));
        loader.handle_data(Instant::ZERO, id, 1_000);
        loader.handle_complete(Instant::ZERO, id);
    }
    assert_eq!(loader.computed(), Duration::ZERO);
    assert_eq!(loader.moments().load, Some(Instant::ZERO));
}

#[test]
fn the_parser_waits_for_the_script_at_the_end_of_its_redirections() {
    let moved = resource(Kind::Script, Cause::Redirect(1));
    let page = page([script(100, ScriptMode::Sync), moved, parsed(Kind::Style, 50)]);
    let loader = load(&page, (3, 900), &[]);
    assert_eq!(ms(loader.record(2).discovered), 200.0, "a redirection waits for no style sheet");
    assert_eq!(ms(loader.record(2).complete), 300.0);
    assert_eq!(ms(loader.record(2).used), 1_000.0, "but the script does");
    assert_eq!(ms(loader.moments().parsed), 1_000.0);
}

#[test]
fn a_redirected_style_sheet_holds_back_what_it_would_hold_back_in_place() {
    let moved = resource(Kind::Style, Cause::Redirect(1));
    let page = page([parsed(Kind::Style, 50), moved, script(100, ScriptMode::Sync)]);
    let loader = load(&page, (2, 500), &[]);
    assert_eq!(ms(loader.record(3).used), 700.0);
    assert_eq!(ms(loader.moments().first_paint), 700.0);
}

#[test]
fn a_script_whose_redirection_fails_lets_the_parser_go_on() {
    for mode in [ScriptMode::Sync, ScriptMode::Defer] {
        let page = page([script(100, mode), resource(Kind::Script, Cause::Redirect(1))]);
        for broken in [1, 2] {
            let loader = load(&page, (9, 0), &[broken]);
            assert_eq!(ms(loader.moments().parsed), 100.0 + 100.0 * f64::from(broken));
        }
    }
}

#[test]
fn what_is_found_in_a_redirections_body_is_loaded() {
    let page = page([resource(Kind::Document, Cause::Redirect(0)), parsed(Kind::Image, 10)]);
    assert_eq!(ms(load(&page, (9, 0), &[]).record(2).used), 200.0);
}

#[test]
fn of_a_document_that_is_cut_short_the_deferred_scripts_run_all_the_same() {
    let page = page([script(100, ScriptMode::Defer), parsed(Kind::Image, 900)]);
    let mut loader = Loader::new(&page, Config::default());
    loader.start(Instant::ZERO);
    loader.handle_data(Instant::ZERO, 0, 500);
    assert_eq!((loader.poll_fetch(), loader.poll_fetch(), loader.poll_fetch()), (Some(0), Some(1), None));
    loader.handle_complete(Instant::ZERO, 1);
    loader.handle_failed(Instant::ZERO, 0, "cut short".into());
    assert_eq!(loader.record(1).progress, Progress::Used);
    assert_eq!(loader.record(2).progress, Progress::Missing);
    assert!(loader.is_finished());
}

#[test]
fn an_empty_document_paints_at_its_end() {
    let mut page = page([]);
    page.resources[0].body_len = 0;
    assert_eq!(ms(load(&page, (9, 0), &[]).moments().first_paint), 100.0);
}

#[test]
fn onload_waits_for_the_main_document_whatever_was_recorded() {
    let mut page = page([resource(Kind::Document, Cause::Redirect(0))]);
    page.resources.iter_mut().for_each(|r| r.after_load = true);
    assert_eq!(ms(load(&page, (9, 0), &[]).moments().load), 200.0);
}
