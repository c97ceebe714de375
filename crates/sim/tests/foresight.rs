//! What an earlier visit or a server knows in advance, against the network's arithmetic: server hints, prefetching, and congestion windows
//! that SPDY clients keep.

mod common;

use base::{Bitrate, Duration};
use browser::{Foresight, Known};
use client::Transport;
use common::{RTT_MS, fast};
use load::{KnownPage, Load, Memory, Outcome, Setup};
use page::hint::Form;
use page::{Cause, Host, Kind, Page, Resource, ScriptMode};

const SPDY: [Transport; 2] = [Transport::Spdy(spdy::Version::V2), Transport::Spdy(spdy::Version::V3_1)];
const ALL: [Transport; 3] = [Transport::Http1, SPDY[0], SPDY[1]];
const FORMS: [Form; 2] = [Form::Subresources, Form::Preload];

/// What a cache may keep for a day.
fn kept(host: u32, path: &str, kind: Kind, cause: Cause) -> Resource {
    let mut resource = Resource { host, body_len: 1_000, ..Resource::get(path.to_owned(), kind, cause) };
    resource.response.push("Cache-Control", "max-age=86400");
    resource
}

fn in_document() -> Cause {
    Cause::Parser { parent: 0, offset: 100, script: ScriptMode::Sync }
}

fn page_of(resources: impl IntoIterator<Item = Resource>) -> Page {
    let document = Resource { body_len: 1_000, ..Resource::get("/", Kind::Document, Cause::Root) };
    let hosts = ["www.a.example", "i.a.example", "www.b.example"].map(Host::new);
    let all = std::iter::once(document).chain(resources).collect();
    Page::new("test", hosts.to_vec(), all).expect("a valid page")
}

/// A document, its style sheet, and the sheet's font.
fn chain() -> Page {
    let font = Cause::Completion { parent: 1, delay: Duration::ZERO };
    page_of([kept(0, "/style.css", Kind::Style, in_document()), kept(0, "/font", Kind::Font, font)])
}

fn hinting(transport: Transport, form: Form) -> Setup {
    let mut setup = fast(transport);
    setup.techniques.hints = Some(form);
    setup
}

/// A browser that has visited `page` before.
fn remembering(page: &Page, transport: Transport) -> Setup {
    let mut setup = fast(transport);
    setup.techniques.prefetch = true;
    setup.memory = load(page, &setup).memory;
    setup
}

fn load(page: &Page, setup: &Setup) -> Load {
    let load = sim::load(page, setup, 1);
    assert_eq!(load.outcome, Outcome::Complete);
    load
}

fn trips(load: &Load) -> f64 {
    (load.plt().expect("loaded").as_millis_f64() / RTT_MS as f64 * 10.0).round() / 10.0
}

/// Requests that went out.
fn sent(load: &Load) -> u32 {
    load.connections.iter().map(|c| c.record.requests).sum()
}

/// A round trip for the connection and one for each link of the chain; with hints, sheet and font are asked for together. An HTTP/1.1
/// connection takes one of them, and the other waits for a second connection, so that it comes to the same.
#[test]
fn a_hint_saves_the_round_trip_in_which_a_style_sheet_would_name_its_font() {
    for form in FORMS {
        for transport in SPDY {
            assert_eq!(trips(&load(&chain(), &fast(transport))), 4.0);
            let load = load(&chain(), &hinting(transport, form));
            assert_eq!(trips(&load), 3.0);
            let ahead = load.requests[2].ahead.expect("asked for ahead");
            assert_eq!(ahead.by, Foresight::Hint);
            assert_eq!(load.requests[2].record.discovered, Some(ahead.asked));
            assert!(ahead.asked < ahead.needed.expect("used"), "the page came to it later");
        }
        assert_eq!(trips(&load(&chain(), &fast(Transport::Http1))), 4.0);
        assert_eq!(trips(&load(&chain(), &hinting(Transport::Http1, form))), 4.0);
    }
}

#[test]
fn what_is_prefetched_comes_with_the_document() {
    for transport in ALL {
        let load = load(&chain(), &remembering(&chain(), transport));
        assert_eq!(trips(&load), 2.0, "{transport:?}");
        assert_eq!((load.ahead.asked, load.ahead.used, load.ahead.wasted_bytes), (2, 2, 0));
    }
}

#[test]
fn prefetch_knows_nothing_at_the_first_visit() {
    for transport in ALL {
        let mut first = fast(transport);
        let without = load(&chain(), &first);
        first.techniques.prefetch = true;
        let with = load(&chain(), &first);
        assert_eq!(without.memory.pages, [], "nothing is remembered that nobody will ask for");
        assert_eq!(with.memory.pages.len(), 1);
        assert_eq!(Load { memory: without.memory.clone(), ..with }, without);
    }
}

/// The page's requests, each once, whoever was first to name it; also where something is named twice, as here by both.
#[test]
fn what_is_asked_for_ahead_is_never_asked_for_twice() {
    for transport in ALL {
        for form in FORMS {
            let mut both = remembering(&chain(), transport);
            both.techniques.hints = Some(form);
            for setup in [hinting(transport, form), both] {
                let load = load(&chain(), &setup);
                assert_eq!((sent(&load), load.ahead.asked, load.ahead.used), (3, 2, 2));
                assert_eq!(load.repeated, []);
                let bodies: Vec<_> = load.requests.iter().map(|r| r.body_bytes).collect();
                assert_eq!(bodies, [1_000; 3]);
            }
        }
    }
}

/// In the clear over HTTP/1.1: name, colon, blank, value and line end of the field. SPDY compresses it.
#[test]
fn a_hint_costs_its_bytes_on_the_wire() {
    let head = |setup: &Setup| load(&chain(), setup).requests[0].head_bytes_down;
    let value = "text/css; /style.css; font/woff; /font";
    let more = |transport, form| head(&hinting(transport, form)) - head(&fast(transport));
    assert_eq!(
        more(Transport::Http1, Form::Subresources),
        ("X-Subresources: \r\n".len() + value.len()) as u64
    );
    let links = "</style.css>; rel=preload; as=style, </font>; rel=preload; as=font";
    assert_eq!(more(Transport::Http1, Form::Preload), ("Link: \r\n".len() + links.len()) as u64);
    for transport in SPDY {
        let compressed = more(transport, Form::Subresources);
        assert!((10..value.len() as u64 + 20).contains(&compressed), "{compressed} bytes");
    }
    let up = |setup: &Setup| load(&chain(), setup).requests[0].head_bytes_up;
    let asks = up(&hinting(Transport::Http1, Form::Subresources)) - up(&fast(Transport::Http1));
    assert_eq!(asks, "X-Subresource: enabled\r\n".len() as u64, "who wants hints says so");
}

#[test]
fn a_server_hints_at_what_is_static_and_its_own_partys() {
    let mut fleeting = kept(0, "/now", Kind::Image, in_document());
    fleeting.response = base::Fields::new();
    let page = page_of([
        kept(0, "/a", Kind::Image, in_document()),
        kept(1, "/b", Kind::Image, in_document()),
        kept(2, "/theirs", Kind::Image, in_document()),
        fleeting,
        Resource { scripted: true, ..kept(0, "/inserted", Kind::Image, in_document()) },
    ]);
    for transport in ALL {
        let load = load(&page, &hinting(transport, Form::Subresources));
        let hinted: Vec<_> = load.requests.iter().map(|r| r.ahead.is_some()).collect();
        assert_eq!(hinted, [false, true, true, false, false, false]);
    }
}

#[test]
fn what_is_asked_for_ahead_keeps_to_the_limit_on_connections() {
    let page = page_of((0..30).map(|i| kept(0, &format!("/{i}"), Kind::Image, in_document())));
    for setup in [remembering(&page, Transport::Http1), hinting(Transport::Http1, Form::Preload)] {
        let load = load(&page, &setup);
        assert_eq!((load.ahead.asked, load.connections.len()), (30, 6));
    }
}

/// Three images and a script are hinted at in this order; on one connection the script goes first, as it would anyway.
#[test]
fn what_is_asked_for_ahead_keeps_its_priority() {
    let page = page_of([
        kept(0, "/1", Kind::Image, in_document()),
        kept(0, "/2", Kind::Image, in_document()),
        kept(0, "/app.js", Kind::Script, in_document()),
    ]);
    let mut setup = hinting(Transport::Http1, Form::Subresources);
    setup.connections_per_host = 1;
    let load = load(&page, &setup);
    let sent = |id: usize| load.requests[id].timing.unwrap().sent.unwrap();
    assert!(sent(3) < sent(1) && sent(1) < sent(2));
}

/// The page has changed since: what it no longer has is asked for all the same, and the server says so.
#[test]
fn what_the_page_never_comes_to_is_wasted() {
    for transport in ALL {
        let mut setup = fast(transport);
        setup.techniques.prefetch = true;
        let known = |path| Known { url: format!("http://www.a.example{path}"), kind: Kind::Image };
        let elsewhere = Known { url: "http://gone.example/".into(), kind: Kind::Image };
        let resources = vec![known("/style.css"), known("/gone.png"), elsewhere];
        setup.memory = Memory {
            pages: vec![KnownPage { url: "http://www.a.example/".into(), resources }],
            ..Memory::default()
        };
        let load = load(&chain(), &setup);
        assert_eq!(
            (load.ahead.asked, load.ahead.used),
            (2, 1),
            "a host that the page does not have is passed over"
        );
        assert!(load.ahead.wasted_bytes > 0);
        assert_eq!(sent(&load), 4);
        let urls =
            |memory: &Memory| memory.pages[0].resources.iter().map(|k| k.url.clone()).collect::<Vec<_>>();
        let needed = ["http://www.a.example/style.css", "http://www.a.example/font"];
        assert_eq!(urls(&load.memory), needed, "the last visit counts");
    }
}

/// A server that pushes does not know what its client has.
#[test]
fn what_is_pushed_and_in_the_cache_is_wasted() {
    for transport in SPDY {
        let mut setup = fast(transport);
        setup.techniques.push = true;
        let first = load(&chain(), &setup).ahead;
        assert_eq!((first.pushed, first.used, first.wasted_bytes), (2, 2, 0));
        setup.techniques.revisit = Some(Duration::ZERO);
        let again = load(&chain(), &setup).ahead;
        assert_eq!((again.pushed, again.used), (2, 0));
        assert!(again.wasted_bytes > 0, "as far as it had come when the page was there");
    }
}

/// The document has to be asked for again; the rest is in the cache, and nothing is fetched ahead.
#[test]
fn what_the_cache_has_is_not_asked_for_ahead() {
    for transport in ALL {
        let mut setup = remembering(&chain(), transport);
        setup.techniques.hints = Some(Form::Preload);
        setup.techniques.revisit = Some(Duration::ZERO);
        let load = load(&chain(), &setup);
        assert_eq!((sent(&load), load.ahead.asked), (1, 0));
    }
}

/// One image of 400 kB, behind slow start.
fn large() -> Page {
    page_of([Resource { body_len: 400_000, ..kept(0, "/large", Kind::Image, in_document()) }])
}

/// A client that a server has told of its window, which was wider than `most` at the end.
fn keeping(transport: Transport, most: u32) -> Setup {
    let mut setup = fast(transport);
    setup.techniques.kept_cwnd = Some(most);
    setup.memory = load(&large(), &setup).memory;
    setup
}

/// As if the server had been configured so; only that SETTINGS and their flags take some bytes, which cost nothing here.
#[test]
fn a_kept_window_is_what_the_next_session_begins_with() {
    for transport in SPDY {
        assert_eq!(trips(&load(&large(), &fast(transport))), 7.0);
        for most in [20, 40, 80] {
            let mut configured = fast(transport);
            configured.server_tcp.initial_cwnd = most;
            let expected = trips(&load(&large(), &configured));
            assert!(expected < 7.0);
            assert_eq!(trips(&load(&large(), &keeping(transport, most))), expected, "{most} segments");
        }
    }
}

#[test]
fn a_kept_window_is_of_no_use_at_the_first_visit_nor_to_http() {
    for transport in ALL {
        let mut first = fast(transport);
        let without = load(&large(), &first);
        assert_eq!(without.memory.settings, [], "nothing is kept that nobody asked for");
        first.techniques.kept_cwnd = Some(128);
        let with = load(&large(), &first);
        assert_eq!(trips(&with), trips(&without));
        let kept = u32::from(transport != Transport::Http1);
        assert_eq!(with.memory.settings.len() as u32, kept);
    }
    assert_eq!(
        trips(&load(&large(), &keeping(Transport::Http1, 128))),
        trips(&load(&large(), &fast(Transport::Http1)))
    );
}

/// What a long answer had made wide is a burst at the head of a short one, of as many segments as the client's first window takes, into a
/// queue of 20: slow start would have let 10, 20 and 39 of them go, as fast as they drain.
#[test]
fn a_kept_window_overflows_a_queue_that_slow_start_would_not() {
    let mut kept_one = keeping(SPDY[1], 80);
    for path in [&mut kept_one.down, &mut kept_one.up] {
        path.rate = link::Rate::Constant(Bitrate::from_kbps(20_000).expect("not zero"));
        path.queue.limit_bytes = 30_000;
    }
    let short = page_of([Resource { body_len: 100_000, ..kept(0, "/short", Kind::Image, in_document()) }]);
    let dropped = |setup: &Setup| load(&short, setup).down.dropped_queue;
    assert!(dropped(&kept_one) > 10);
    assert_eq!(dropped(&Setup { memory: Memory::default(), ..kept_one }), 0);
}
