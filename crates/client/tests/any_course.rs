//! Whatever the switches and whatever the network does, every request is answered exactly once, with the bytes that its
//! server sent and none twice; and the client comes to rest.

mod net;

use client::{
    Client, Config, Handshakes, Host, HostFacts, HostState, Pipelining, Preconnect, Racing, Retry, Timeouts,
    Transport,
};
use net::Net;
use proptest::prelude::*;

/// What a course begins with. Zeros mean today's defaults.
#[derive(Clone, Debug)]
struct Start {
    transport: u8,
    tls: bool,
    hosts: u8,
    connections_max: u8,
    per_host: u8,
    timeouts: bool,
    racing: u8,
    eyeballs: u8,
    preconnect: u8,
    handshakes: bool,
    pooling: bool,
    mixed: bool,
    retry: u8,
    pipelining: u8,
    /// Host and priority of each request, and before which step of the course it is made.
    requests: Vec<(u8, u8, u8)>,
    /// What the network does, two bytes a step.
    course: Vec<u8>,
}

fn start() -> impl Strategy<Value = Start> {
    let pools = (0..4u8, any::<bool>(), 1..5u8, 1..9u8, 1..7u8);
    let switches = (any::<bool>(), 0..3u8, 0..3u8, 0..4u8, any::<bool>());
    let rules = (any::<bool>(), any::<bool>(), 0..3u8, 0..3u8);
    let requests = prop::collection::vec((any::<u8>(), 0..5u8, 0..200u8), 1..24);
    let course = prop::collection::vec(any::<u8>(), 0..400);
    (pools, switches, rules, requests, course).prop_map(|(pools, switches, rules, requests, course)| Start {
        transport: pools.0,
        tls: pools.1,
        hosts: pools.2,
        connections_max: pools.3,
        per_host: pools.4,
        timeouts: switches.0,
        racing: switches.1,
        eyeballs: switches.2,
        preconnect: switches.3,
        handshakes: switches.4,
        pooling: rules.0,
        mixed: rules.1,
        retry: rules.2,
        pipelining: rules.3,
        requests,
        course,
    })
}

fn client(start: &Start) -> Client {
    let transport = Transport::ALL[usize::from(start.transport)];
    let config = Config {
        connections_max: start.connections_max.into(),
        connections_per_host: start.per_host.into(),
        timeouts: match (start.timeouts, start.retry) {
            (false, _) => Timeouts::NONE,
            (true, 2) => Timeouts::RELOADING,
            (true, _) => Timeouts::CHROME,
        },
        racing: [Racing::OFF, Racing::FIREFOX, Racing::CHROME][usize::from(start.racing)],
        happy_eyeballs: [None, Some(client::HappyEyeballs::RFC_8305), Some(client::HappyEyeballs::CHROME)]
            [usize::from(start.eyeballs)],
        preconnect: [Preconnect::None, Preconnect::BlindTwo, Preconnect::Learned, Preconnect::Successor]
            [usize::from(start.preconnect)],
        handshakes: if start.handshakes { Handshakes::WaitForSession } else { Handshakes::Parallel },
        pooling: start.pooling,
        retry: [Retry::CHROME, Retry::FIREFOX, Retry::RELOADING][usize::from(start.retry)],
        pipelining: (start.pipelining > 0).then_some(Pipelining::FIREFOX),
        ..Config::new(transport)
    };
    let hosts = (0..start.hosts).map(|i| Host { name: format!("host{i}.example"), tls: start.tls });
    let mut client = Client::new(config, hosts.collect());
    for host in 0..u32::from(start.hosts) {
        // Hosts 0 and 3 are one machine; some hosts have no address that is known.
        let v4 = format!("192.0.2.{}", host % 3 + 1).parse().unwrap();
        let v6 = format!("2001:db8::{}", host % 3 + 1).parse().unwrap();
        let addresses = [vec![v4], vec![v6, v4], vec![]][host as usize % 3].clone();
        let transport = (start.mixed && host % 2 == 1).then_some(Transport::Http1);
        if start.pipelining > 1 {
            client.set_pipelining(host, HostState::green());
        }
        let facts = HostFacts { addresses, transport, certificate: Some(1), ..HostFacts::default() };
        client.describe(host, facts);
    }
    client
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_answered_once_and_whole(start in start()) {
        let mut net = Net::new(client(&start), start.course.clone(), start.connections_max.into());
        let mut requests: Vec<_> = start.requests.iter().collect();
        requests.sort_by_key(|r| r.2);
        for (id, (host, priority, after)) in (0..).zip(requests) {
            net.run_until(usize::from(*after));
            if id % 5 == 0 {
                net.navigate(u32::from(host % start.hosts));
            }
            net.fetch(id, u32::from(host % start.hosts), *priority);
        }
        net.run_to_rest();
    }
}
