//! Handshakes of connections that are opened together, over real sockets.

use ::tls::{Config, Mode};
use client::{Handshakes, Preconnect};
use load::{Load, TlsScope};
use page::{Cause, Host, Kind, Resource};

use super::*;

const TRIP: Duration = Duration::from_millis(20);

/// A document that a server thinks about for so long that all handshakes are over.
fn slow() -> Page {
    let think = Duration::from_millis(400);
    let document = Resource { body_len: 1_000, think, ..Resource::get("/", Kind::Document, Cause::Root) };
    Page::new("slow", vec![Host::new("www.a.example")], vec![document]).expect("a valid page")
}

/// Two connections at once, of which one carries the request.
fn load(world: &World, tls: &Config, handshakes: Handshakes) -> Load {
    let mut setup = Setup { think: origin::Think::Recorded, ..setup(Transport::Http1) };
    setup.tls = Some(tls.clone());
    setup.tls_scope = TlsScope::Everywhere;
    (setup.techniques.preconnect, setup.techniques.handshakes) = (Preconnect::BlindTwo, handshakes);
    let run = world.load(&slow(), &setup, 1).unwrap();
    assert_eq!((&run.load.outcome, run.unmet), (&Outcome::Complete, vec![]), "{tls:?}");
    assert_eq!(run.load.connections.len(), 2);
    run.load
}

/// Certificates came on so many connections: each is longer than a document and all else of a handshake.
fn full(load: &Load, tls: &Config) -> usize {
    load.connections.iter().filter(|c| c.client.bytes_received > tls.chain_len.into()).count()
}

/// As in the virtual world: until the ticket is there, which after a False Start and in TLS 1.3 takes a round trip more than to be secured.
#[test]
fn the_second_of_two_handshakes_waits_for_the_ticket_of_the_first_and_resumes() {
    let Some(world) = world() else { return };
    let false_start = Config { false_start: true, ..Config::new(Mode::Tls12Full) };
    for (tls, later) in [
        (Config::new(Mode::Tls12Full), Duration::ZERO),
        (false_start, TRIP),
        (Config::new(Mode::Tls13Full), TRIP),
    ] {
        let parallel = load(&world, &tls, Handshakes::Parallel);
        assert_eq!(full(&parallel, &tls), 2, "{tls:?}");
        assert!(parallel.connections.iter().all(|c| c.record.handshake == c.record.connected));
        let waiting = load(&world, &tls, Handshakes::WaitForSession);
        assert_eq!(full(&waiting, &tls), 1, "{tls:?}");
        let [first, second] = [0, 1].map(|i: usize| &waiting.connections[i].record);
        let (secured, begun) = (first.secured.expect("secured"), second.handshake.expect("begun"));
        assert!(begun.since(secured) >= later, "{tls:?}: {secured:?} and {begun:?}");
        assert!(second.resumes && second.secured.is_some());
    }
}

/// All handshakes resume a session of before, and the second still waits for the first, as the client knows of none.
#[test]
fn a_handshake_that_resumes_lets_others_go_on() {
    let Some(world) = world() else { return };
    for mode in [Mode::Tls12Resumed, Mode::Tls13Resumed] {
        let tls = Config::new(mode);
        let load = load(&world, &tls, Handshakes::WaitForSession);
        assert_eq!(full(&load, &tls), 0, "{mode:?}");
        let [first, second] = [0, 1].map(|i: usize| &load.connections[i].record);
        assert!(second.handshake >= first.secured && second.secured.is_some(), "{mode:?}");
    }
}
