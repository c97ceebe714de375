//! Authorities that are asked about certificates over real sockets, while the handshake that brought them waits.

use ::tls::{Config, Mode};
use base::Instant;
use load::{Certificates, OCSP_LEN, TlsScope};
use origin::{Fault, FaultKind, Often, Whom};
use page::{Cause, Host, Kind, Resource};

use super::*;

const TRIP: Duration = Duration::from_millis(20);

/// A document of one host.
fn one() -> Page {
    let document = Resource { body_len: 4_000, ..Resource::get("/", Kind::Document, Cause::Root) };
    Page::new("one", vec![Host::new("www.a.example")], vec![document]).expect("a valid page")
}

fn asking(mode: Mode, certificates: Certificates) -> Setup {
    let mut setup = setup(Transport::Http1);
    let mut tls = Config::new(mode);
    certificates.apply(&mut tls);
    setup.tls = Some(tls);
    setup.tls_scope = TlsScope::Everywhere;
    setup.techniques.certificates = certificates;
    setup
}

const ALL: Certificates = Certificates { ocsp: true, chain: true, ..Certificates::UNASKED };

fn secured(load: &Load) -> Option<Instant> {
    load.connections[0].record.secured
}

/// The issuer's certificate from one host, then two answers from another that closes after each: every one is asked for when the one
/// before is whole, over the link, with the look-ups that a name takes, and the handshake that waits goes on when all are there.
#[test]
fn a_handshake_waits_for_authorities_that_are_asked_one_after_the_other() {
    let (Some(world), page) = (world(), one()) else { return };
    for mode in [Mode::Tls12Full, Mode::Tls13Full] {
        let setup = asking(mode, ALL);
        let run = world.load(&page, &setup, 1).unwrap();
        assert_eq!((&run.load.outcome, run.unmet), (&Outcome::Complete, vec![]), "{mode:?}");
        let load = run.load;
        let chain = setup.tls.as_ref().unwrap().chain_len;
        let lengths: Vec<u64> = load.requests.iter().map(|r| r.body_bytes).collect();
        assert_eq!(lengths, [4_000, chain.into(), OCSP_LEN.into(), OCSP_LEN.into()]);
        let record = &load.connections[0].record;
        let mut before = record.connected.expect("connected") + TRIP;
        for (request, trips) in load.requests[1..].iter().zip([3, 3, 2]) {
            let timing = request.timing.expect("it was asked");
            let complete = timing.complete.expect("it was answered");
            assert!(timing.queued >= before, "{mode:?}: {timing:?}");
            assert!(complete.since(timing.queued) >= TRIP * trips, "{mode:?}: {timing:?}");
            before = complete;
        }
        assert!(record.secured.expect("secured") >= before);
        assert_eq!((load.lookups, load.connections.len()), (3, 4));
        assert_eq!(load.memory.checked.len(), 3, "and all is known the next time");
    }
}

/// As in the virtual world: nobody waits for an answer that comes with the handshake, is in the program, or was had before.
#[test]
fn staples_pins_and_what_is_remembered_spare_the_questions() {
    let (Some(world), page) = (world(), one()) else { return };
    let first = world.load(&page, &asking(Mode::Tls12Full, ALL), 1).unwrap();
    let stapled = Certificates { stapled: true, ..Certificates { chain: false, ..ALL } };
    let remembering = Setup { memory: first.load.memory, ..asking(Mode::Tls12Full, ALL) };
    for (what, setup) in [
        ("stapled", asking(Mode::Tls12Full, stapled)),
        ("pinned", asking(Mode::Tls12Full, Certificates { pinned: true, ..ALL })),
        ("known", remembering),
        ("resumed", asking(Mode::Tls12Resumed, ALL)),
    ] {
        let run = world.load(&page, &setup, 1).unwrap();
        assert_eq!((&run.load.outcome, run.unmet), (&Outcome::Complete, vec![]), "{what}");
        let asked = run.load.requests.iter().filter(|r| r.timing.is_some()).count();
        assert_eq!((asked, run.load.connections.len()), (1, 1), "{what}");
        let staple = u64::from(setup.tls.as_ref().unwrap().ocsp_len);
        assert!(run.load.connections[0].client.bytes_received >= 4_000 + staple);
    }
}

/// Nobody listens at one of the authority's hosts: what can be done without is, and what cannot ends the load.
#[test]
fn an_authority_that_is_not_there_matters_if_it_has_the_issuers_certificate() {
    let (Some(world), page) = (world(), one()) else { return };
    let whole = asking(Mode::Tls12Full, ALL);
    let hosts = whole.furnish(&page).hosts.clone();
    let without = |service: &str| {
        let name = hosts.iter().map(|h| &h.name).find(|n| n.starts_with(service)).expect("an authority's");
        let mut setup = whole.clone();
        let whom = Whom::Host(name.clone());
        setup.faults.hosts = vec![Fault { kind: FaultKind::Refuse, whom, often: Often::Always }];
        world.load(&page, &setup, 1).unwrap().load
    };
    let softly = without("ocsp-");
    assert_eq!(softly.outcome, Outcome::Complete);
    assert!(secured(&softly).is_some() && softly.memory.checked.len() == 1, "only the issuer's is known");
    let hard = without("aia-");
    assert!(matches!(hard.outcome, Outcome::Incomplete(_)), "{:?}", hard.outcome);
    assert_eq!(secured(&hard), None);
    let said: Vec<_> = hard.troubles.iter().flat_map(|t| &t.failures).map(|f| f.error.to_string()).collect();
    assert!(said.iter().any(|what| what.contains("of its issuer is not to be had")), "{said:?}");
}
