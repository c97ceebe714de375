//! Pages behind the one in front, in one client.

use std::sync::Arc;

use base::{Bitrate, Duration, Instant};
use browser::TabOrder;
use client::Transport;
use load::{Load, Outcome, Setup, Tabs};
use page::Page;

const TRANSPORTS: [Transport; 2] = [Transport::Http1, Transport::Spdy(spdy::Version::V3_1)];

fn pages() -> Vec<Page> {
    page::corpus::generate("2012", 5, 1).expect("a built-in corpus")
}

/// `pages` over a line of 5 Mbit/s and 50 ms, the first in front; `None` leaves it alone.
fn load(pages: &[Page], transport: Transport, order: Option<TabOrder>) -> Load {
    let mut setup = Setup::new(transport);
    for path in [&mut setup.down, &mut setup.up] {
        path.delay = Duration::from_millis(25);
        path.rate = link::Rate::Constant(Bitrate::from_kbps(5_000).expect("not 0"));
    }
    setup.dns = Duration::from_millis(50);
    if let Some(order) = order {
        setup.tabs = Tabs { behind: pages[1..].iter().cloned().map(Arc::new).collect(), order };
    }
    let load = sim::load(&pages[0], &setup, 7);
    assert_eq!(load.outcome, Outcome::Complete);
    assert_eq!(load.behind.len(), setup.tabs.behind.len());
    assert!(load.behind.iter().all(|tab| tab.moments.load.is_some()));
    load
}

#[test]
fn a_page_in_front_that_is_loaded_first_is_loaded_as_if_it_were_alone() {
    let pages = pages();
    for transport in TRANSPORTS {
        let alone = load(&pages, transport, None);
        for order in [TabOrder::ForegroundFirst, TabOrder::OneByOne] {
            let first = load(&pages, transport, Some(order));
            assert_eq!(first.moments.load, alone.moments.load);
            let others: usize = pages[1..].iter().map(|page| page.resources.len()).sum();
            assert_eq!(first.requests.len(), alone.requests.len() + others);
            assert!(first.requests.iter().all(|request| request.record.used.is_some()));
            assert!(first.behind.iter().all(|tab| tab.started >= alone.moments.load));
        }
    }
}

#[test]
fn all_at_once_costs_the_one_in_front_and_a_lower_priority_helps_where_requests_meet_at_a_host() {
    let pages = pages();
    let of_one_host = vec![pages[0].clone(); 4];
    let times = |pages: &[Page], transport| {
        [None, Some(TabOrder::Classes), Some(TabOrder::AtOnce)]
            .map(|order| load(pages, transport, order).plt())
    };
    for transport in TRANSPORTS {
        let [alone, classes, at_once] = times(&pages, transport);
        assert!(alone < classes && classes <= at_once, "{transport}: {alone:?} {classes:?} {at_once:?}");
        let [alone, classes, at_once] = times(&of_one_host, transport);
        assert!(alone < classes && classes < at_once, "{transport}: {alone:?} {classes:?} {at_once:?}");
    }
}

#[test]
fn all_at_once_begin_together_and_one_by_one_each_begins_when_the_one_before_is_loaded() {
    let pages = pages();
    let together = load(&pages, Transport::Http1, Some(TabOrder::AtOnce));
    assert!(together.behind.iter().all(|tab| tab.started == Some(Instant::ZERO)));
    let load = load(&pages, Transport::Http1, Some(TabOrder::OneByOne));
    let mut before = load.moments.load;
    for tab in &load.behind {
        assert_eq!(tab.started, before);
        before = tab.moments.load;
    }
    let named: Vec<_> = load.behind.iter().map(|tab| tab.page.as_str()).collect();
    assert_eq!(named, pages[1..].iter().map(|p| p.id.as_str()).collect::<Vec<_>>());
}

#[test]
fn pages_of_one_host_share_its_connections() {
    let mut pages = pages();
    pages.truncate(1);
    let alone = load(&pages, Transport::Http1, None);
    pages.push(pages[0].clone());
    let both = load(&pages, Transport::Http1, Some(TabOrder::OneByOne));
    assert_eq!(both.connections.len(), alone.connections.len(), "what is behind finds them idle");
    assert_eq!(both.lookups, alone.lookups);
}

#[test]
fn a_page_behind_that_is_not_whole_leaves_the_load_incomplete() {
    let mut pages = pages();
    pages.truncate(2);
    // A body that its server never sends whole within the time.
    pages[1].resources[1].body_len = 1 << 40;
    let mut setup = Setup::new(Transport::Http1);
    setup.down.rate = link::Rate::Constant(Bitrate::from_kbps(50_000).expect("not 0"));
    setup.give_up = Duration::from_secs(20);
    setup.tabs = Tabs { behind: vec![Arc::new(pages[1].clone())], order: TabOrder::ForegroundFirst };
    let load = sim::load(&pages[0], &setup, 7);
    assert!(load.moments.load.is_some() && load.behind[0].moments.load.is_none());
    assert!(matches!(load.outcome, Outcome::Incomplete(why) if why.contains("given up after 20 s")));
}
