//! Things break, and a load still ends whole, or says exactly what is missing: whole loads over both transports.

use base::{Bitrate, Duration, Instant};
use browser::End;
use client::{Retry, Timeouts, Transport};
use load::{Load, NetworkChange, Outcome, Setup};
use origin::{Fault, FaultKind, Often, Whom};
use page::{Cause, Host, Kind, Page, Resource, ScriptMode};

const SPDY: Transport = Transport::Spdy(spdy::Version::V3_1);
const BOTH: [Transport; 2] = [Transport::Http1, SPDY];

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A document with eight style sheets of 20 kB on each of two hosts.
fn page() -> Page {
    with_posts(0)
}

/// The same, and so many POSTs to the first.
fn with_posts(posts: usize) -> Page {
    let cause = Cause::Parser { parent: 0, offset: 100, script: ScriptMode::Sync };
    let style = |n: usize| {
        let mut style = Resource {
            host: n as u32 % 2,
            body_len: 20_000,
            ..Resource::get(format!("/{n}.css"), Kind::Style, cause)
        };
        style.response.push("ETag", format!("\"{n}\""));
        style.response.push("Accept-Ranges", "bytes");
        style
    };
    let post = |n: usize| Resource {
        method: "POST".into(),
        request_body_len: 300,
        body_len: 20_000,
        ..Resource::get(format!("/count/{n}"), Kind::Xhr, cause)
    };
    let root = Resource { body_len: 10_000, ..Resource::get("/", Kind::Document, Cause::Root) };
    let hosts = vec![Host::new("a.example"), Host::new("b.example")];
    let rest = (1..=16).map(style).chain((0..posts).map(post));
    Page::new("test", hosts, std::iter::once(root).chain(rest).collect()).expect("a valid page")
}

/// 4 Mbit/s and 60 ms, with the rules of a browser.
fn browser(transport: Transport) -> Setup {
    let mut setup = Setup::new(transport);
    setup.dns = ms(60);
    setup.techniques.timeouts = Timeouts::CHROME;
    for path in [&mut setup.down, &mut setup.up] {
        path.delay = ms(30);
        path.rate = link::Rate::Constant(Bitrate::from_kbps(4_000).expect("not zero"));
        path.queue.limit_bytes = 60_000;
    }
    setup
}

/// The same with a client that does what "reload" is pressed for.
fn reloading(transport: Transport) -> Setup {
    let mut setup = browser(transport);
    (setup.techniques.retry, setup.techniques.timeouts) = (Retry::RELOADING, Timeouts::RELOADING);
    setup
}

fn with(mut setup: Setup, kind: FaultKind, whom: Whom, often: Often) -> Setup {
    setup.faults.hosts.push(Fault { kind, whom, often });
    setup
}

fn path(path: &str) -> Whom {
    Whom::Resource(None, path.into())
}

fn load(setup: &Setup) -> Load {
    sim::load(&page(), setup, 1)
}

fn seconds(load: &Load) -> f64 {
    load.ended.since(Instant::ZERO).as_secs_f64()
}

fn assert_whole(load: &Load, what: &str) {
    assert_eq!(load.outcome, Outcome::Complete, "{what}: {:?}", load.troubles);
    assert!(load.troubles.iter().all(|t| t.end == End::Whole && !t.failures.is_empty()), "{what}");
    let page = page();
    for (request, resource) in load.requests.iter().zip(&page.resources) {
        assert_eq!(request.body_bytes, resource.body_len, "{what}: each byte reached the page once");
    }
}

#[test]
fn nothing_that_breaks_leaves_no_trouble_behind() {
    for transport in BOTH {
        let plain = load(&browser(transport));
        assert_whole(&plain, "plain");
        assert_eq!((plain.troubles.len(), plain.repeated.len()), (0, 0));
        assert_eq!(
            load(&reloading(transport)).plt(),
            plain.plt(),
            "limits that nothing reaches cost nothing"
        );
    }
}

#[test]
fn a_host_that_refuses_once_breaks_a_browsers_page_and_not_ours() {
    for transport in BOTH {
        let refuse = |setup| with(setup, FaultKind::Refuse, Whom::Host("b.example".into()), Often::Once);
        let broken = load(&refuse(browser(transport)));
        let lost: Vec<_> = broken.troubles.iter().filter(|t| t.is_missing()).collect();
        assert!(!lost.is_empty() && matches!(broken.outcome, Outcome::Incomplete(_)));
        assert!(lost.iter().all(|t| t.blocks && t.host == "b.example" && t.attempts == 0));
        assert!(format!("{:?}", lost[0].failures).contains("connection refused by the peer"));
        // Each of HTTP/1.1's connections is for one request; a session is for all that wait for it.
        assert_eq!(lost.len(), if transport == SPDY { 8 } else { 1 });
        let ours = load(&refuse(reloading(transport)));
        assert_whole(&ours, "ours");
        assert_eq!(ours.troubles.len(), lost.len(), "the same were hit");
    }
}

#[test]
fn what_is_missing_for_good_is_named_with_what_was_tried_how_often_and_what_happened() {
    for transport in BOTH {
        let down = Whom::Host("b.example".into());
        let load = load(&with(reloading(transport), FaultKind::Refuse, down, Often::Always));
        assert!(seconds(&load) < 10.0, "{}", seconds(&load));
        let missing: Vec<_> = load.troubles.iter().filter(|t| t.is_missing()).collect();
        assert_eq!(missing[0].failures.len(), 4);
        let paths: Vec<&str> = missing.iter().map(|t| t.path.as_str()).collect();
        let odd = (1..=16).filter(|n| n % 2 == 1).map(|n| format!("/{n}.css")).collect::<Vec<_>>();
        assert_eq!(paths, odd);
        for trouble in missing {
            assert_eq!(trouble.host, "b.example");
            assert!(
                (1..=4).contains(&trouble.failures.len()),
                "once, and three times again, or given up with its host"
            );
            assert_eq!(trouble.end, End::Failed("not connected: connection refused by the peer".into()));
        }
        let Outcome::Incomplete(first) = &load.outcome else { panic!("something is missing") };
        assert!(first.contains("http://b.example/1.css: not connected"), "{first}");
    }
}

#[test]
fn an_answer_that_is_cut_off_is_fetched_from_where_it_ended() {
    for transport in BOTH {
        let cut = FaultKind::Reset { after: Some(15_000) };
        let whole = load(&reloading(transport));
        let broken = load(&with(browser(transport), cut, path("/3.css"), Often::Once));
        let lost = broken.troubles.iter().filter(|t| t.is_missing()).map(|t| t.path.as_str());
        assert!(lost.collect::<Vec<_>>().contains(&"/3.css"), "{transport}");
        let ours = load(&with(reloading(transport), cut, path("/3.css"), Often::Once));
        assert_whole(&ours, transport.name());
        let trouble = ours.troubles.iter().find(|t| t.path == "/3.css").expect("it was cut off");
        assert!(format!("{:?}", trouble.failures).contains("connection reset by the peer"));
        assert_eq!(trouble.attempts, 2);
        let more = ours.down.bytes_in as f64 - whole.down.bytes_in as f64;
        // Over HTTP/1.1 that one; over SPDY whatever shared the session, each but from where it was.
        assert!(more < 10_000.0, "{transport}: {more} bytes more, of 20,000 that were cut off at 15,000");
    }
}

#[test]
fn what_a_server_takes_no_ranges_of_is_fetched_again_and_the_page_gets_each_byte_once() {
    for transport in BOTH {
        let mut page = page();
        page.resources[3].response = Default::default();
        let cut = FaultKind::Reset { after: Some(15_000) };
        let load = sim::load(&page, &with(reloading(transport), cut, path("/3.css"), Often::Once), 1);
        assert_whole(&load, transport.name());
        assert!(load.repeated.contains(&(3, 1)));
    }
}

#[test]
fn a_request_that_is_never_answered_is_sent_again_when_its_connection_has_been_silent() {
    for transport in BOTH {
        let hang = |setup, often| with(setup, FaultKind::Hang, path("/3.css"), often);
        let forever = load(&hang(browser(transport), Often::Once));
        assert_eq!(forever.moments.load, None, "a browser waits until its user does not");
        let trouble = &forever.troubles[0];
        assert_eq!((trouble.path.as_str(), &trouble.end), ("/3.css", &End::Unfinished(0)));
        let ours = load(&hang(reloading(transport), Often::Once));
        assert_whole(&ours, transport.name());
        assert!((10.0..13.0).contains(&seconds(&ours)), "{}", seconds(&ours));
        let never = load(&hang(reloading(transport), Often::Always));
        let trouble = never.troubles.iter().find(|t| t.is_missing()).expect("it is missing");
        assert_eq!(trouble.path, "/3.css");
        let said: Vec<_> = trouble.failures.iter().map(|f| f.error.to_string()).collect();
        assert!(said[0].starts_with("connection lost: silent for 10"), "{said:?}");
        assert!(said[3].starts_with("connection lost: silent for 20"), "{said:?}");
    }
}

/// What breaks something in a setup.
type Breaker<'a> = &'a dyn Fn(&mut Setup);

/// RFC 9110 §9.2.2.
#[test]
fn a_post_that_may_have_been_applied_is_not_sent_again_whatever_breaks_and_is_said_to_be_missing() {
    let cut = FaultKind::Reset { after: Some(1_000) };
    let outage = link::Outage { from: Instant::ZERO + ms(250), lasts: ms(30_000) };
    let broken: [(&str, Breaker<'_>); 5] = [
        ("cut off", &|s| s.faults.hosts.push(Fault { kind: cut, whom: Whom::All, often: Often::Once })),
        ("hang", &|s| {
            s.faults.hosts.push(Fault { kind: FaultKind::Hang, whom: Whom::All, often: Often::Once })
        }),
        ("blackhole", &|s| [&mut s.up, &mut s.down].into_iter().for_each(|path| path.outages.push(outage))),
        ("another network", &to_3g),
        ("restart", &|s| s.faults.restart = Some(ms(330))),
    ];
    let page = with_posts(3);
    for transport in BOTH {
        for (what, break_it) in broken {
            let mut setup = reloading(transport);
            break_it(&mut setup);
            let load = sim::load(&page, &setup, 1);
            let posted = |id: &u32| page.resources[*id as usize].method == "POST";
            assert!(load.repeated.iter().all(|(id, _)| !posted(id)), "{transport}, {what}");
            let lost = load.troubles.iter().filter(|t| t.is_missing());
            assert!(lost.clone().all(|t| posted(&t.resource) && t.attempts <= 1), "{transport}, {what}");
            // Over HTTP/1.1 what is less urgent has not been sent yet when all stops.
            assert!(lost.count() > 0 || transport == Transport::Http1, "{transport}, {what}");
        }
    }
}

#[test]
fn a_host_that_vanishes_is_given_up_and_all_that_it_had_is_named() {
    for transport in BOTH {
        let gone = FaultKind::Vanish { at: ms(300) };
        let load = load(&with(reloading(transport), gone, Whom::Host("b.example".into()), Often::Always));
        let missing = load.troubles.iter().filter(|t| t.is_missing());
        assert!(missing.clone().count() > 0 && missing.clone().all(|t| t.host == "b.example"));
        assert!(missing.clone().all(|t| !t.failures.is_empty() && matches!(t.end, End::Failed(_))));
        let tried = missing.map(|t| t.failures.len()).max();
        assert!(tried >= Some(4), "once, and three times again");
        assert!(seconds(&load) < 200.0, "{} s", seconds(&load));
    }
}

#[test]
fn a_blackhole_is_outlasted() {
    for transport in BOTH {
        for lasts in [500, 5_000, 30_000] {
            let mut setup = reloading(transport);
            for path in [&mut setup.down, &mut setup.up] {
                path.outages.push(link::Outage { from: Instant::ZERO + ms(300), lasts: ms(lasts) });
            }
            let load = load(&setup);
            assert_whole(&load, &format!("{transport}, {lasts} ms"));
            assert!(load.down.dropped_outage + load.up.dropped_outage > 0);
            assert!(seconds(&load) < 0.3 + 3.5 * lasts as f64 / 1e3 + 2.0, "{} s", seconds(&load));
        }
    }
}

#[test]
fn names_that_nobody_answered_are_asked_for_again() {
    for transport in BOTH {
        let blind = |mut setup: Setup| {
            for path in [&mut setup.down, &mut setup.up] {
                path.outages.push(link::Outage { from: Instant::ZERO + ms(200), lasts: ms(6_000) });
            }
            load(&setup)
        };
        let theirs = blind(browser(transport));
        let unknown = theirs.troubles.iter().filter(|t| t.end == End::Failed("name not resolved".into()));
        assert_eq!(unknown.count(), 8, "all that the other host has");
        let ours = blind(reloading(transport));
        assert_whole(&ours, transport.name());
        assert!(seconds(&ours) < 20.0, "{}", seconds(&ours));
    }
}

/// A line so slow, and with so long a queue, that each connection waits for seconds while others are served.
#[test]
fn a_very_slow_network_is_not_taken_for_a_dead_one() {
    for transport in BOTH {
        let slow = |mut setup: Setup| {
            for path in [&mut setup.down, &mut setup.up] {
                path.delay = ms(500);
                path.rate = link::Rate::Constant(Bitrate::from_kbps(60).expect("not zero"));
                path.queue.limit_bytes = 45_000;
            }
            load(&setup)
        };
        let (theirs, ours) = (slow(browser(transport)), slow(reloading(transport)));
        assert_whole(&ours, transport.name());
        assert_eq!((ours.plt(), ours.troubles.len()), (theirs.plt(), 0), "{transport}");
        assert!(seconds(&ours) > 40.0, "{}", seconds(&ours));
    }
}

fn to_3g(setup: &mut Setup) {
    let mut path = setup.down.clone();
    path.delay = ms(150);
    path.rate = link::Rate::Constant(Bitrate::from_kbps(1_600).expect("not zero"));
    setup.faults.network_change =
        Some(NetworkChange { at: ms(400), down: path.clone(), up: path, dns: ms(300) });
}

#[test]
fn a_change_of_networks_is_survived_at_the_cost_of_new_connections() {
    for transport in BOTH {
        let mut setup = reloading(transport);
        to_3g(&mut setup);
        let ours = load(&setup);
        assert_whole(&ours, transport.name());
        assert!(seconds(&ours) < 5.0, "{} s: it knew, and did not wait", seconds(&ours));
        let after = |c: &&load::Connection| c.record.opened >= Instant::ZERO + ms(400);
        assert!(ours.connections.iter().filter(after).count() > 0);
        assert!(ours.lookups >= 3, "names are looked up anew");
    }
    let mut setup = browser(Transport::Http1);
    to_3g(&mut setup);
    let theirs = load(&setup);
    assert_eq!(theirs.moments.load, None, "connections in use die silently, and nobody notices");
    assert!(theirs.troubles.iter().any(|t| matches!(t.end, End::Unfinished(_))));
}

#[test]
fn an_application_that_ended_goes_on_where_it_was_and_fetches_nothing_twice() {
    for transport in BOTH {
        let plain = load(&reloading(transport));
        let half = ms((plain.ended.since(Instant::ZERO).as_micros() / 2_000).max(300));
        let ended = |mut setup: Setup| {
            setup.faults.restart = Some(half);
            load(&setup)
        };
        let (anew, ours) = (ended(browser(transport)), ended(reloading(transport)));
        assert_eq!((&anew.outcome, &ours.outcome), (&Outcome::Complete, &Outcome::Complete));
        let kept = ours.requests.iter().filter(|r| r.timing.is_none()).count();
        assert!(kept > 0, "{transport}: what was complete is not asked for");
        assert_eq!(anew.requests.iter().filter(|r| r.timing.is_none()).count(), 0);
        assert!(ours.down.bytes_in < anew.down.bytes_in, "{transport}");
        let page = page();
        for (request, resource) in ours.requests.iter().zip(&page.resources) {
            assert_eq!(request.body_bytes, resource.body_len);
        }
        let own = ours.connections.iter().map(|c| c.record.id).collect::<Vec<_>>();
        assert_eq!(own, (0..own.len() as u32).collect::<Vec<_>>(), "one numbering for both lives");
    }
}

/// Over SPDY each answer that is cut off takes the session along, and all that was on it.
#[test]
fn bystanders_of_many_answers_that_are_cut_off_come_all_the_same() {
    for transport in BOTH {
        let cut = FaultKind::Reset { after: None };
        let load = load(&with(reloading(transport), cut, Whom::All, Often::Once));
        assert_whole(&load, transport.name());
        assert_eq!(load.troubles.len(), 17, "each was hit");
    }
}

#[test]
fn both_transports_meet_the_same_misfortune_and_one_seed_gives_one_course() {
    let hit = |transport| {
        let cut = FaultKind::Hang;
        let load = load(&with(browser(transport), cut, Whom::All, Often::Share(0.3)));
        let open =
            load.troubles.into_iter().filter(|t| matches!(t.end, End::Unfinished(0)) && t.attempts > 0);
        open.map(|t| t.path).collect::<Vec<_>>()
    };
    let (http, spdy) = (hit(Transport::Http1), hit(SPDY));
    assert!(!spdy.is_empty());
    // Over HTTP/1.1 six that hang on a host keep others from being asked for.
    assert!(http.iter().all(|path| spdy.contains(path)), "{http:?} {spdy:?}");
    for transport in BOTH {
        let cut = FaultKind::Reset { after: None };
        let setup = with(reloading(transport), cut, Whom::All, Often::Share(0.2));
        assert_eq!(load(&setup), load(&setup));
    }
}
