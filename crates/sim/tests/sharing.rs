//! What hosts share when they are one party's, and what servers push: loads of pages made for it.

mod common;

use base::Duration;
use client::{Deployment, Ownership, Transport};
use common::{RTT_MS, fast};
use load::{HostRtt, Load, Outcome, Setup, TlsScope};
use page::{Cause, Host, Kind, Page, Resource, ScriptMode};

const SPDY: Transport = Transport::Spdy(spdy::Version::V3_1);

/// A page of `www.a.example` with a style sheet of it, three images of `i.a.example` and one of `www.b.example`.
fn page() -> Page {
    let at = Cause::Parser { parent: 0, offset: 100, script: ScriptMode::Sync };
    let resource = |host, path: &'static str, kind, cause| Resource {
        host,
        body_len: 1_000,
        ..Resource::get(path, kind, cause)
    };
    let resources = vec![
        resource(0, "/", Kind::Document, Cause::Root),
        resource(0, "/style.css", Kind::Style, at),
        resource(1, "/1", Kind::Image, at),
        resource(1, "/2", Kind::Image, at),
        resource(1, "/3", Kind::Image, at),
        resource(2, "/", Kind::Image, at),
    ];
    let hosts = ["www.a.example", "i.a.example", "www.b.example"];
    let secured = |name: &&str| Host { scheme_tls: true, port: 443, ..Host::new(*name) };
    Page::new("test", hosts.iter().map(secured).collect(), resources).expect("a valid page")
}

/// The [`fast`] link, with TLS where it was recorded.
fn setup(transport: Transport) -> Setup {
    let mut setup = fast(transport);
    setup.tls = Some(tls::Config::new(tls::Mode::Tls13Full));
    setup.tls_scope = TlsScope::Recorded;
    setup
}

fn load(setup: &Setup) -> Load {
    let load = sim::load(&page(), setup, 1);
    assert_eq!(load.outcome, Outcome::Complete);
    load
}

/// For each request, the host that its connection was opened to.
fn carriers(load: &Load) -> Vec<u32> {
    let carrier = |r: &browser::Request| load.connections[r.connection.unwrap() as usize].record.host;
    load.requests.iter().map(carrier).collect()
}

#[test]
fn hosts_of_one_domain_share_a_session_and_others_have_their_own() {
    let mut setup = setup(SPDY);
    assert_eq!(carriers(&load(&setup)), [0, 0, 1, 1, 1, 2]);
    setup.techniques.pooling = true;
    let shared = load(&setup);
    assert_eq!(carriers(&shared), [0, 0, 0, 0, 0, 2]);
    assert_eq!(shared.connections.len(), 2);
    assert_eq!(shared.lookups, 3, "the address has to be known");
}

#[test]
fn a_list_of_owners_joins_what_domains_do_not_tell() {
    let mut setup = setup(SPDY);
    setup.techniques.pooling = true;
    setup.techniques.owners = Ownership { owners: vec![vec!["a.example".into(), "b.example".into()]] };
    let shared = load(&setup);
    assert_eq!(carriers(&shared), [0; 6]);
    assert!(shared.connections.iter().all(|c| c.address == "10.0.0.1"));
}

#[test]
fn over_http1_nothing_is_shared_but_the_address() {
    let mut setup = setup(Transport::Http1);
    setup.techniques.pooling = true;
    let load = load(&setup);
    assert_eq!(carriers(&load), [0, 0, 1, 1, 1, 2]);
    let to = |host| load.connections.iter().find(|c| c.record.host == host).unwrap().address.clone();
    assert_eq!((to(0), to(1)), (to(0), to(0)));
    assert_ne!(to(0), to(2));
}

#[test]
fn hosts_that_have_not_upgraded_share_no_session() {
    let mut setup = setup(SPDY);
    setup.techniques.pooling = true;
    setup.techniques.deployment = Deployment::PageHost;
    assert_eq!(carriers(&load(&setup)), [0, 0, 1, 1, 1, 2]);
    setup.techniques.deployment = Deployment::FirstParty(Ownership::default());
    assert_eq!(carriers(&load(&setup)), [0, 0, 0, 0, 0, 2]);
}

#[test]
fn hosts_of_one_address_are_equally_far() {
    let mut setup = setup(SPDY);
    setup.host_rtt = HostRtt::Spread(Duration::from_millis(80));
    let page = page();
    let apart = setup.distances(&page);
    assert_ne!(apart[0], apart[1]);
    setup.techniques.pooling = true;
    assert_eq!(setup.distances(&page), [apart[0], apart[0], apart[2]]);
}

/// The style sheet is on its way before the document can be read: it comes with it, and nobody asks for it.
#[test]
fn what_a_document_is_sure_to_need_comes_with_it() {
    let mut setup = setup(SPDY);
    let asked = load(&setup);
    setup.techniques.push = true;
    let pushed = load(&setup);
    let complete = |load: &Load| load.requests[1].record.complete.unwrap();
    let earlier = complete(&asked).since(complete(&pushed)).as_millis_f64();
    assert!((earlier - RTT_MS as f64).abs() < 1.0, "{earlier} ms");
    assert_eq!(pushed.requests[1].head_bytes_up, 0);
    let requests = |load: &Load| load.connections.iter().map(|c| c.record.requests).collect::<Vec<_>>();
    assert_eq!(
        (requests(&asked), requests(&pushed)),
        (vec![2, 3, 1], vec![1, 3, 1]),
        "other hosts push nothing"
    );
}
