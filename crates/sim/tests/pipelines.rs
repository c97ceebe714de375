//! Pipelining in a whole load: at servers that are good at it and at those that are not, and from one visit to the next. Whatever
//! a server does, the load is whole; what it cost and what was learned of the host differs.

use base::{Bitrate, Duration};
use client::{Class, Pipelining, SentOn, Standing, Transport};
use load::{BadPipeliners, HostStanding, Load, Outcome, Setup, Which};
use origin::{Idle, Pipelines};
use page::{Cause, Host, Kind, Page, Resource, ScriptMode};

const RTT: Duration = Duration::from_millis(100);

/// A document and as many images, each of which is another length.
fn page(images: u64) -> Page {
    let document = Resource { body_len: 10_000, ..Resource::get("/", Kind::Document, Cause::Root) };
    let image = |n: u64| Resource {
        body_len: 1_000 + n,
        think: Duration::from_millis(20), // so that requests that follow each other find each other unanswered
        ..Resource::get(
            format!("/{n}.png"),
            Kind::Image,
            Cause::Parser { parent: 0, offset: 100, script: ScriptMode::Sync },
        )
    };
    let resources = std::iter::once(document).chain((0..images).map(image)).collect();
    Page::new("test", vec![Host::new("a.example")], resources).expect("a valid page")
}

/// On a fast line, with pipelining, from what the host is known as.
fn setup(page: &Page, green: bool) -> Setup {
    let mut setup = Setup::new(Transport::Http1);
    for path in [&mut setup.down, &mut setup.up] {
        path.delay = RTT / 2;
        path.rate = link::Rate::Constant(Bitrate::from_kbps(100_000).expect("not zero"));
        path.queue.limit_bytes = 1 << 24;
    }
    setup.techniques.pipelining = Some(Pipelining::FIREFOX);
    if green {
        setup.memory.pipelining = page.hosts.iter().map(HostStanding::green).collect();
    }
    setup
}

fn bad(page: &Page, pipelines: Pipelines) -> Setup {
    let mut setup = setup(page, true);
    setup.servers.bad_pipeliners = vec![BadPipeliners { pipelines, which: Which::Share(1.0) }];
    setup
}

fn whole(page: &Page, setup: &Setup) -> Load {
    let load = sim::load(page, setup, 1);
    assert_eq!(load.outcome, Outcome::Complete);
    load
}

fn count(load: &Load, how: SentOn) -> usize {
    load.requests.iter().filter(|r| r.sent_on == Some(how)).count()
}

/// Every body has the length that its resource has.
fn assert_sound(page: &Page, load: &Load) {
    for (resource, request) in page.resources.iter().zip(&load.requests) {
        assert_eq!(request.body_bytes, resource.body_len);
    }
}

fn standing(load: &Load) -> (Standing, u32) {
    let known = &load.memory.pipelining;
    assert_eq!(known.len(), 1);
    assert_eq!(known[0].host, "http://a.example");
    (known[0].state.standing(), known[0].state.penalty())
}

#[test]
fn at_a_good_server_a_green_host_saves_the_round_trips_of_whoever_waits() {
    let page = page(60);
    let with = whole(&page, &setup(&page, true));
    let mut plain = setup(&page, false);
    plain.techniques.pipelining = None;
    let without = whole(&page, &plain);
    let saved = without.plt().unwrap() - with.plt().unwrap();
    assert!(saved > RTT * 5, "60 images over six connections are ten turns: {saved:?}");
    assert!(count(&with, SentOn::Pipelined) > 40 && count(&without, SentOn::Pipelined) == 0);
    assert!(without.requests.iter().filter(|r| r.queued).count() > 50);
    assert_sound(&page, &with);
    assert_eq!(standing(&with), (Standing::Green, 0));
}

#[test]
fn what_the_first_visit_learned_the_second_knows() {
    let page = page(60);
    let mut setup = setup(&page, false);
    let first = whole(&page, &setup);
    assert_eq!(standing(&first), (Standing::Green, 0), "its trial went well");
    setup.memory = first.memory.clone();
    let second = whole(&page, &setup);
    assert!(second.plt() < first.plt(), "no trial holds it up");
    assert!(second.memory.pipelining[0].state.is_proven());
}

#[test]
fn hosts_of_other_pages_stay_in_memory() {
    let page = page(5);
    let mut setup = setup(&page, true);
    let other = HostStanding::green(&Host::new("b.example"));
    setup.memory.pipelining.push(other.clone());
    let load = whole(&page, &setup);
    assert_eq!(load.memory.pipelining.len(), 2);
    assert!(load.memory.pipelining.contains(&other));
}

#[test]
fn a_server_that_stalls_costs_a_cancelled_pipeline_and_is_red() {
    let page = page(30);
    let good = whole(&page, &setup(&page, true));
    let load = whole(&page, &bad(&page, Pipelines::Stalling(Duration::from_secs(2))));
    assert_sound(&page, &load);
    assert_eq!(standing(&load).0, Standing::Red);
    let lost = load.plt().unwrap() - good.plt().unwrap();
    assert!(lost > Duration::from_millis(1_000) && lost < Duration::from_secs(6), "{lost:?}");
}

#[test]
fn a_server_that_closes_costs_its_requests_another_way_and_is_red() {
    let page = page(30);
    let good = whole(&page, &setup(&page, true));
    let load = whole(&page, &bad(&page, Pipelines::Refusing));
    assert_sound(&page, &load);
    let (standing, penalty) = standing(&load);
    assert!(standing == Standing::Red && penalty > 0 && penalty < 7_000, "cancelled: {penalty}");
    assert!(load.plt() > good.plt() && load.connections.len() > good.connections.len());
}

#[test]
fn a_server_that_corrupts_is_red_for_long() {
    let page = page(30);
    let load = whole(&page, &bad(&page, Pipelines::Corrupting));
    assert_sound(&page, &load);
    let (standing, penalty) = standing(&load);
    assert!(standing == Standing::Red && penalty >= 6_900, "{penalty}");
}

#[test]
fn a_server_that_knows_no_pipelines_is_waited_for_and_given_up() {
    let page = page(30);
    let load = whole(&page, &bad(&page, Pipelines::Ignoring));
    assert_sound(&page, &load);
    assert_eq!(standing(&load).0, Standing::Red);
    assert!(
        load.plt().unwrap() > Duration::from_secs(30),
        "the first in a silent pipeline waits for the read timeout"
    );
}

/// As with Firefox: an answer in another's place looks like any.
#[test]
fn nobody_can_tell_that_a_server_reorders() {
    let page = page(30);
    let load = whole(&page, &bad(&page, Pipelines::Reordering));
    assert_eq!(standing(&load).0, Standing::Green);
    let wrong = page.resources.iter().zip(&load.requests).filter(|(r, got)| got.body_bytes != r.body_len);
    assert!(wrong.count() > 5, "lengths tell it here, and nothing in a browser");
}

#[test]
fn a_bad_server_fails_its_trial_once_and_costs_nothing_after() {
    let page = page(30);
    let mut setup = bad(&page, Pipelines::Refusing);
    setup.memory = Default::default();
    let first = whole(&page, &setup);
    assert_eq!(standing(&first).0, Standing::Red);
    setup.memory = first.memory.clone();
    let second = whole(&page, &setup);
    assert_eq!(count(&second, SentOn::Pipelined), 0);
    assert!(second.plt() < first.plt());
}

#[test]
fn without_pipelining_a_bad_pipeliner_is_as_good_as_any() {
    let page = page(30);
    let mut plain = bad(&page, Pipelines::Corrupting);
    plain.techniques.pipelining = None;
    let load = whole(&page, &plain);
    plain.servers = Default::default();
    assert_eq!(load, whole(&page, &plain));
}

/// XHR are not pipelined unless that is asked for (nsXMLHttpRequest.cpp), nor is a document.
#[test]
fn xhr_and_documents_go_alone() {
    let mut page = page(40);
    page.resources[1..].iter_mut().for_each(|r| r.kind = Kind::Xhr);
    let mut setup = setup(&page, true);
    assert_eq!(count(&whole(&page, &setup), SentOn::Pipelined), 0);
    setup.techniques.pipelining = Some(Pipelining { xhr: true, ..Pipelining::FIREFOX });
    assert!(count(&whole(&page, &setup), SentOn::Pipelined) > 20);
    page.resources[1..].iter_mut().for_each(|r| r.kind = Kind::Document);
    assert_eq!(count(&whole(&page, &setup), SentOn::Pipelined), 0);
}

/// LOAD_AS_BLOCKING: images wait for the style sheet of the head.
#[test]
fn what_the_head_waits_for_goes_before_everything_else() {
    let mut page = page(10);
    (page.resources[1].kind, page.resources[1].path) = (Kind::Style, "/0.css".into());
    page.resources[1].cause = Cause::Parser { parent: 0, offset: 10, script: ScriptMode::Sync };
    page.resources[1].think = Duration::from_millis(500);
    let load = whole(&page, &setup(&page, true));
    let head = load.requests[1].timing.unwrap().complete.unwrap();
    assert!(load.requests[2..].iter().all(|r| r.timing.unwrap().sent.unwrap() >= head));
    assert!(load.requests[2..].iter().all(|r| !r.queued), "they do not wait for a connection");
}

#[test]
fn a_server_may_end_connections_that_nobody_uses() {
    let mut page = page(2);
    page.resources[1].cause = Cause::Completion { parent: 0, delay: Duration::ZERO };
    page.resources[2].cause = Cause::Completion { parent: 1, delay: Duration::from_secs(8) };
    let mut plain = setup(&page, false);
    plain.techniques.pipelining = None;
    assert_eq!(whole(&page, &plain).connections.len(), 1);
    for idle in [Idle::Closed(Duration::from_secs(5)), Idle::Answered408(Duration::from_secs(5))] {
        plain.servers.idle = idle;
        assert_eq!(whole(&page, &plain).connections.len(), 2, "{idle:?}");
    }
}

#[test]
fn a_class_that_is_shut_out_is_remembered() {
    let mut page = page(30);
    page.resources[5].body_len = 400_000;
    let load = whole(&page, &setup(&page, true));
    assert!(load.memory.pipelining[0].state.class_penalty(Class::Image) > 0, "an answer was too large");
}
