//! From a plan's words to the virtual world's setup, and from what came of a load to its rows.

use base::Instant;
use browser::Progress;
use client::Transport;
use page::Page;

use crate::critical;
use crate::error::Error;
use crate::folder::Rendered;
use crate::network::Network;
use crate::result::{
    AheadRow, ConnectionRow, Key, LoadOutcome, LoadRow, RequestOutcome, RequestRow, UnaskedRow, emit,
};
use crate::setting::{
    Congestion, HostRtt, Pacing, RecordSizing, Spdy, Stack, Think, Tls, TlsScope, WindowScaling, ms,
};
use crate::technique::{self, Technique};
use crate::topology;
use crate::trouble;

/// What the virtual world is set up with for `network`. Reads its traces, if it has any.
pub fn setup(
    network: &Network,
    transport: Transport,
    techniques: &[Technique],
) -> Result<load::Setup, Error> {
    let (down, up) = network.paths()?;
    let mut tcp = preset(network.stack);
    tcp.initial_cwnd = network.initial_cwnd;
    tcp.syn_rto = ms(network.syn_timeout_ms);
    tcp.congestion = match network.congestion {
        Congestion::Cubic => tcp::Congestion::Cubic,
        Congestion::Reno => tcp::Congestion::Reno,
    };
    tcp.window_scaling = network.window_scaling == WindowScaling::On;
    tcp.pacing = network.pacing == Pacing::On;
    let client_tcp = tcp::Config { initial_rwnd: u64::from(network.initial_rwnd_bytes), ..tcp.clone() };
    let beyond = technique::of(techniques);
    let tls = |mode| {
        let mut tls = tls::Config {
            false_start: techniques.contains(&Technique::FalseStart),
            chain_len: network.cert_chain_bytes,
            record_size: network.record_bytes,
            sizing: match network.record_sizing {
                RecordSizing::Fixed => tls::Sizing::Fixed,
                RecordSizing::Packet => tls::Sizing::Packet,
                RecordSizing::Ats => tls::Sizing::Ats,
                RecordSizing::H2o => tls::Sizing::H2o,
                RecordSizing::Cloudflare => tls::Sizing::Cloudflare,
                RecordSizing::Proxy => tls::Sizing::Proxy,
            },
            ..tls::Config::new(mode)
        };
        beyond.certificates.apply(&mut tls);
        tls
    };
    let (servers, ipv6) = technique::servers(techniques);
    let version = transport.spdy_version().unwrap_or(spdy::Version::V3_1);
    let mut setup = load::Setup {
        transport,
        spdy: technique::without(techniques, spdy(network, version)),
        down,
        up,
        host_rtt: match network.host_rtt {
            HostRtt::Equal => load::HostRtt::Equal,
            HostRtt::Recorded => load::HostRtt::Recorded,
            HostRtt::SpreadMs(most) => load::HostRtt::Spread(ms(most)),
        },
        client_tcp,
        server_tcp: tcp,
        tls: match network.tls {
            Tls::None => None,
            Tls::Tls12 => Some(tls(tls::Mode::Tls12Full)),
            Tls::Tls12Resumed => Some(tls(tls::Mode::Tls12Resumed)),
            Tls::Tls13 => Some(tls(tls::Mode::Tls13Full)),
            Tls::Tls13Resumed => Some(tls(tls::Mode::Tls13Resumed)),
        },
        tls_scope: match network.tls_scope {
            TlsScope::Recorded => load::TlsScope::Recorded,
            TlsScope::Everywhere => load::TlsScope::Everywhere,
        },
        dns: ms(network.dns_ms),
        think: match network.think {
            Think::Recorded => origin::Think::Recorded,
            Think::None => origin::Think::Fixed(base::Duration::ZERO),
            Think::FixedMs(time) => origin::Think::Fixed(ms(time)),
        },
        compute_scale: network.compute.0,
        give_up: ms(network.give_up_ms),
        connections_per_host: network.connections_per_host as usize,
        techniques: beyond.clone(),
        memory: load::Memory::default(),
        keeps_progress: false,
        keeps_packets: false,
        keeps_bytes: false,
        faults: load::Faults::default(),
        servers,
        ipv6,
        tabs: load::Tabs::default(),
    };
    technique::break_things(&mut setup, techniques)?;
    Ok(setup)
}

/// What both ends of a SPDY session are set to.
pub(crate) fn spdy(network: &Network, version: spdy::Version) -> spdy::Config {
    let config = match network.spdy {
        Spdy::Chrome2012 => spdy::Config::chrome_2012(version),
        Spdy::Chrome2013 => spdy::Config::chrome_2013(version),
    };
    spdy::Config { keep_alive: None, ..config }
}

/// The constants of an era.
pub(crate) fn preset(stack: Stack) -> tcp::Config {
    match stack {
        Stack::Linux2010 => tcp::Config::linux_2010(),
        Stack::Today => tcp::Config::linux_today(),
    }
}

/// The rows of a load of `page`, furnished or not.
pub fn render(key: &Key, seed: u64, setup: &load::Setup, page: &Page, load: &load::Load) -> Rendered {
    let page = &*setup.furnish(page); // what was asked beside it has rows too
    let requests = requests(key, page, load);
    let mut out = Rendered::default();
    emit(&trouble::row(key, page, load), &mut out.troubles);
    emit(&topology::known(key, setup, page), &mut out.known);
    emit(&load_row(key, seed, page, load, &requests), &mut out.load);
    requests.iter().for_each(|row| emit(row, &mut out.requests));
    for connection in &load.connections {
        emit(&connection_row(key, setup, page, connection), &mut out.connections);
    }
    out
}

fn us(at: Instant) -> u64 {
    at.as_micros()
}

fn load_row(key: &Key, seed: u64, page: &Page, load: &load::Load, requests: &[RequestRow]) -> LoadRow {
    let m = &load.moments;
    let (outcome, reason) = match &load.outcome {
        load::Outcome::Complete => (LoadOutcome::Complete, None),
        load::Outcome::Incomplete(why) => (LoadOutcome::Incomplete, Some(why.clone())),
    };
    let plt_us = m.load.map(us);
    let tcp = |figure: fn(&tcp::Stats) -> u64| {
        load.connections.iter().map(|c| figure(&c.client) + figure(&c.server)).sum::<u64>()
    };
    LoadRow {
        key: key.clone(),
        seed: format!("{seed:016x}"),
        outcome,
        reason,
        plt_us,
        first_paint_us: m.first_paint.map(us),
        parsed_us: m.parsed.map(us),
        first_byte_us: m.first_byte.map(us),
        finished_us: m.finished.map(us),
        requests: requests.len() as u32,
        failed: requests.iter().filter(|r| r.outcome == RequestOutcome::Failed).count() as u32,
        connections: load.connections.len() as u32,
        lookups: load.lookups,
        bytes_down: load.down.bytes_in,
        bytes_up: load.up.bytes_in,
        packets_down: load.down.packets_in,
        packets_up: load.up.packets_in,
        lost_down: load.down.dropped_loss,
        lost_up: load.up.dropped_loss,
        overflow_down: load.down.dropped_queue,
        overflow_up: load.up.dropped_queue,
        retransmits: tcp(|s| s.retransmits),
        timeouts: tcp(|s| s.timeouts),
        compute_us: load.computed.as_micros(),
        queue_max_down_bytes: load.down.queue_bytes_max,
        critical: plt_us
            .filter(|_| outcome == LoadOutcome::Complete)
            .and_then(|plt_us| critical::split(page, requests, plt_us)),
        ahead: (load.ahead != browser::AheadTally::default()).then_some(AheadRow {
            asked: load.ahead.asked,
            pushed: load.ahead.pushed,
            used: load.ahead.used,
            wasted_bytes: load.ahead.wasted_bytes,
        }),
        unasked: unasked(&load.connections),
    }
}

/// The connections that no waiting request had asked for.
fn unasked(connections: &[load::Connection]) -> Option<UnaskedRow> {
    let mut row = UnaskedRow::default();
    for load::Connection { record, .. } in connections {
        let (made, used) = match record.purpose {
            client::Purpose::Request => continue,
            client::Purpose::Speculative => (&mut row.speculative, &mut row.speculative_used),
            client::Purpose::Spare => (&mut row.spare, &mut row.spare_used),
            client::Purpose::Alternate => (&mut row.alternate, &mut row.alternate_used),
        };
        *made += 1;
        *used += u32::from(record.requests > 0);
    }
    (row != UnaskedRow::default()).then_some(row)
}

/// One row for every resource that was asked for.
fn requests(key: &Key, page: &Page, load: &load::Load) -> Vec<RequestRow> {
    let asked = (0..).zip(load.requests.iter().zip(&page.resources));
    let asked = asked.filter_map(|(id, (request, resource))| {
        let (outcome, reason) = match &request.record.progress {
            Progress::Used => (RequestOutcome::Complete, None),
            Progress::Failed(why) => (RequestOutcome::Failed, Some(why.clone())),
            Progress::Arrived if is_wasted(request) => (RequestOutcome::Complete, None),
            _ => (RequestOutcome::Pending, None),
        };
        let t = request.timing.unwrap_or_default();
        Some(RequestRow {
            key: key.clone(),
            index: id,
            parent: resource.cause.parent(),
            url: page.resource_url(id),
            kind: resource.kind.name().to_owned(),
            host: page.host(resource).authority(),
            connection: request.connection,
            status: t.head.map(|_| resource.status),
            outcome,
            reason,
            discovered_us: us(request.record.discovered?),
            dns_start_us: t.dns.map(|(start, _)| us(start)),
            dns_end_us: t.dns.map(|(_, end)| us(end)),
            connect_start_us: t.connect.map(|(start, _)| us(start)),
            connect_end_us: t.connect.map(|(_, end)| us(end)),
            tls_end_us: t.tls.map(|(_, end)| us(end)),
            sent_us: t.sent.map(us),
            first_byte_us: t.head.map(us),
            complete_us: request.record.complete.map(us),
            used_us: request.record.used.map(us),
            priority: request.priority,
            head_up_bytes: request.head_bytes_up,
            head_down_bytes: request.head_bytes_down,
            body_bytes: request.body_bytes,
            cache: request.cached.map(|cached| match cached {
                browser::Cached::Fresh => "fresh".to_owned(),
                browser::Cached::Validated => "validated".to_owned(),
            }),
            ahead: request.ahead.map(|ahead| match ahead.by {
                browser::Foresight::Hint => "hint".to_owned(),
                browser::Foresight::Prefetch => "prefetch".to_owned(),
            }),
            needed_us: request.ahead.and_then(|ahead| ahead.needed).map(us),
            after_load: resource.after_load,
        })
    });
    asked.collect()
}

/// Whether a request was made ahead of need, and the page never came to it.
fn is_wasted(request: &browser::Request) -> bool {
    request.ahead.is_some_and(|ahead| ahead.needed.is_none())
}

fn connection_row(
    key: &Key,
    setup: &load::Setup,
    page: &Page,
    connection: &load::Connection,
) -> ConnectionRow {
    let load::Connection { record, address, client, server } = connection;
    let host = &page.hosts[record.host as usize];
    ConnectionRow {
        key: key.clone(),
        connection: record.id,
        host: host.authority(),
        address: address.clone(),
        protocol: setup.host_transport(page, host).protocol().to_owned(),
        opened_us: us(record.opened),
        connected_us: record.connected.map(us),
        secured_us: record.secured.map(us),
        closed_us: record.closed.map(us),
        requests: record.requests,
        bytes_up: server.bytes_received,
        bytes_down: client.bytes_received,
        segments_down: server.segments_sent,
        retransmits: client.retransmits + server.retransmits,
        timeouts: client.timeouts + server.timeouts,
        purpose: match record.purpose {
            client::Purpose::Request => None,
            client::Purpose::Spare => Some("spare".to_owned()),
            client::Purpose::Alternate => Some("alternate".to_owned()),
            client::Purpose::Speculative => Some("speculative".to_owned()),
        },
    }
}
