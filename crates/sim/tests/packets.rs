//! The tap: what it keeps of a load's packets, and that it changes nothing.

use base::{Duration, Instant};
use client::Transport;
use load::{Carried, Load, Packet, Setup, Sighting};
use page::{Cause, Host, Kind, Page, Resource};
use tls::Message;

/// A document of 20,000 bytes, 83 ms away, over TLS 1.2.
fn tapped(transport: Transport, change: impl FnOnce(&mut Setup)) -> Load {
    let document = Resource { body_len: 20_000, ..Resource::get("/", Kind::Document, Cause::Root) };
    let host = Host { scheme_tls: true, port: 443, ..Host::new("a.example") };
    let page = Page::new("page", vec![host], vec![document]).expect("a valid page");
    let mut setup = Setup::new(transport);
    setup.tls = Some(tls::Config::new(tls::Mode::Tls12Full));
    for path in [&mut setup.down, &mut setup.up] {
        path.delay = Duration::from_micros(41_500);
    }
    setup.keeps_packets = true;
    change(&mut setup);
    sim::load(&page, &setup, 1)
}

fn sent_from(load: &Load, up: bool) -> Vec<&Packet> {
    load.packets.iter().filter(|p| p.up == up).collect()
}

#[test]
fn every_segment_is_kept_with_its_times_and_what_it_carries() {
    for transport in [Transport::Http1, Transport::Spdy(spdy::Version::V3_1)] {
        let load = tapped(transport, |_| ());
        let (up, down) = (sent_from(&load, true), sent_from(&load, false));
        let tcp = &load.connections[0];
        assert_eq!(up.len() as u64, tcp.client.segments_sent, "{transport}");
        assert_eq!(down.len() as u64, tcp.server.segments_sent);
        assert!(up[0].segment.flags.syn && up[0].carries.is_empty() && up[0].left == Instant::ZERO);
        for packet in load.packets.iter().filter(|p| p.arrived.is_some()) {
            assert_eq!(packet.arrived.map(|at| at.since(packet.left)), Some(Duration::from_micros(41_500)));
        }
        let all = |packets: &[&Packet]| packets.iter().flat_map(|p| p.carries.clone()).collect::<Vec<_>>();
        let hello = Carried::Handshake(Message::ClientHello);
        let at = |wanted: Carried, of: &[Carried]| of.iter().position(|c| *c == wanted);
        let (asked, answered) = (all(&up), all(&down));
        assert_eq!(asked[0], hello);
        assert!(
            at(Carried::Handshake(Message::Finished), &asked) < at(Carried::Request, &asked),
            "{asked:?}"
        );
        assert!(at(Carried::ResponseHead, &answered) < at(Carried::Body, &answered), "{answered:?}");
        let is_spdy = transport != Transport::Http1;
        assert_eq!(answered.contains(&Carried::Control), is_spdy, "{answered:?}");
    }
}

#[test]
fn what_is_sent_again_is_told_again_and_what_is_lost_has_not_arrived() {
    let load = tapped(Transport::Http1, |setup| setup.down.loss = link::LossConfig::Bernoulli { p: 0.2 });
    let lost: Vec<_> = load.packets.iter().filter(|p| !p.up && p.arrived.is_none()).collect();
    assert_eq!(lost.len() as u64, load.down.dropped_loss);
    let payload = lost.iter().find(|p| p.segment.len > 0).expect("a fifth is lost");
    let again = load
        .packets
        .iter()
        .filter(|p| !p.up && p.segment.seq == payload.segment.seq && p.left > payload.left);
    assert!(again.clone().count() > 0);
    assert!(again.clone().any(|p| p.carries.first() == payload.carries.first()));
}

#[test]
fn a_load_is_the_same_with_and_without_the_tap() {
    let with = tapped(Transport::Http1, |_| ());
    let without = tapped(Transport::Http1, |setup| setup.keeps_packets = false);
    assert!(without.packets.is_empty() && !with.packets.is_empty());
    assert_eq!(Load { packets: Vec::new(), ..with.clone() }, without);
    let bytes = tapped(Transport::Http1, |setup| (setup.keeps_packets, setup.keeps_bytes) = (false, true));
    let wire = bytes.wire.as_ref().expect("it was asked for");
    let seen = bytes.packets.iter().map(|p| 1 + usize::from(p.arrived.is_some())).sum::<usize>();
    assert_eq!(
        wire.sightings.iter().filter(|s| matches!(s, Sighting::Left(_) | Sighting::Arrived(_))).count(),
        seen
    );
    let written = wire.streams.iter().flatten().map(load::Stream::len).sum::<u64>();
    let arrived = bytes.connections.iter().map(|c| c.client.bytes_received + c.server.bytes_received);
    assert_eq!(written, arrived.sum::<u64>(), "nothing was lost, and all was read");
    assert_eq!(Load { wire: None, ..bytes }, with);
}
