//! Devices, addresses and routes: the few requests of rtnetlink(7) that are needed, one after the other.

use std::io;
use std::net::IpAddr;

use base::Duration;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// A route: which addresses lie behind which device, and how TCP is to talk to them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// Address and length of the prefix; 0.0.0.0/0 for all of IPv4.
    pub to: (IpAddr, u8),
    /// The device.
    pub device: String,
    /// The addresses are this network's own: whoever listens on all addresses listens on these.
    pub local: bool,
    /// Packets from this address of the network's own take it, and no others.
    pub from: Option<IpAddr>,
    /// How TCP is to talk to these addresses.
    pub tcp: TcpMetrics,
}

impl Route {
    /// A route that leaves TCP as it is.
    pub fn new(to: (impl Into<IpAddr>, u8), device: &str) -> Self {
        let to = (to.0.into(), to.1);
        Self { to, device: device.to_owned(), local: false, from: None, tcp: TcpMetrics::default() }
    }

    /// The same, but to addresses of the network's own.
    pub fn local(self) -> Self {
        Self { local: true, ..self }
    }

    /// The same, but only for packets from this address of the network's own. It needs a kernel with policy routing (ip-rule(8)).
    pub fn only_from(self, address: IpAddr) -> Self {
        Self { from: Some(address), ..self }
    }

    /// The same, but TCP talks to these addresses in this way.
    pub fn with_tcp(self, tcp: TcpMetrics) -> Self {
        Self { tcp, ..self }
    }
}

/// How TCP talks to the addresses of a route, where that differs from what its network has set (ip-route(8)). It concerns what *this*
/// end does: a server's initial congestion window is a matter of the route from the server to the client.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TcpMetrics {
    /// Segments that a connection may have in flight at first.
    pub initial_cwnd: Option<u32>,
    /// Segments that a connection announces as its receive window at first.
    pub initial_rwnd: Option<u32>,
    /// Most bytes that a connection announces as its receive window.
    pub window: Option<u32>,
    /// Congestion control, by the kernel's name.
    pub congestion: Option<String>,
    /// Shortest retransmission timeout, in whole milliseconds.
    pub rto_min: Option<Duration>,
    /// Every segment is acknowledged at once.
    pub quick_ack: bool,
}

/// `RTAX_RTO_MIN` of linux/rtnetlink.h: the kernel heeds that metric only if its bit is among those that are locked.
const RTO_MIN_LOCKED: u32 = 1 << 13;

impl TcpMetrics {
    fn write(&self) -> Vec<RouteMetric> {
        let mut metrics = Vec::new();
        metrics.extend(self.initial_cwnd.map(RouteMetric::InitCwnd));
        metrics.extend(self.initial_rwnd.map(RouteMetric::InitRwnd));
        metrics.extend(self.window.map(RouteMetric::Window));
        metrics.extend(self.congestion.clone().map(RouteMetric::CcAlgo));
        if let Some(rto_min) = self.rto_min {
            let ms = (rto_min.as_nanos() / 1_000_000).min(u64::from(u32::MAX)) as u32;
            metrics.extend([RouteMetric::Lock(RTO_MIN_LOCKED), RouteMetric::RtoMin(ms)]);
        }
        metrics.extend(self.quick_ack.then_some(RouteMetric::QuickAck(1)));
        metrics
    }

    fn read(metrics: Vec<RouteMetric>) -> Self {
        let mut tcp = Self::default();
        for metric in metrics {
            match metric {
                RouteMetric::InitCwnd(segments) => tcp.initial_cwnd = Some(segments),
                RouteMetric::InitRwnd(segments) => tcp.initial_rwnd = Some(segments),
                RouteMetric::Window(bytes) => tcp.window = Some(bytes),
                RouteMetric::CcAlgo(name) => tcp.congestion = Some(name),
                RouteMetric::RtoMin(ms) => tcp.rto_min = Some(Duration::from_millis(u64::from(ms))),
                RouteMetric::QuickAck(on) => tcp.quick_ack = on != 0,
                _ => {}
            }
        }
        tcp
    }
}

/// What the kernel has counted on a device. On a TUN device, "sent" is what it gave us.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DeviceCounts {
    /// Packets received.
    pub received: u64,
    /// Packets that were to be received and were dropped.
    pub received_dropped: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets that were to be sent and were dropped.
    pub sent_dropped: u64,
}

/// The routing table of a network's own addresses (rtnetlink(7), `RT_TABLE_LOCAL`).
const TABLE_LOCAL: u8 = 255;

/// A netlink socket in the calling thread's network namespace.
pub(super) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// The number of the device of this name.
    pub fn index_of(&mut self, device: &str) -> io::Result<u32> {
        Ok(self.link(device)?.header.index)
    }

    /// Brings a device up, its MTU and the number of packets that may wait in it set before if they are given.
    pub fn set_link(&mut self, index: u32, mtu: Option<u32>, queue: Option<u32>) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        link.attributes.extend(mtu.map(LinkAttribute::Mtu));
        link.attributes.extend(queue.map(LinkAttribute::TxQueueLen));
        self.request(RouteNetlinkMessage::SetLink(link), 0).map(|_| ())
    }

    /// Gives a device an address, and the one at the other end of its wire, which may be the same. One of IPv6 may be used at once:
    /// nobody is asked whether it is theirs (RFC 4862 section 5.4).
    pub fn add_address(&mut self, index: u32, local: IpAddr, peer: IpAddr) -> io::Result<()> {
        let mut address = AddressMessage::default();
        (address.header.family, address.header.prefix_len) = family(local);
        address.header.index = index;
        if local.is_ipv6() {
            address.header.flags = AddressHeaderFlags::Nodad;
        }
        address.attributes = vec![AddressAttribute::Local(local), AddressAttribute::Address(peer)];
        self.request(RouteNetlinkMessage::NewAddress(address), NLM_F_CREATE | NLM_F_EXCL).map(|_| ())
    }

    /// Takes an address away that was given with [`add_address`](Self::add_address).
    pub fn delete_address(&mut self, index: u32, local: IpAddr) -> io::Result<()> {
        let mut address = AddressMessage::default();
        (address.header.family, address.header.prefix_len) = family(local);
        address.header.index = index;
        address.attributes = vec![AddressAttribute::Local(local)];
        self.request(RouteNetlinkMessage::DelAddress(address), 0).map(|_| ())
    }

    /// Has packets from an address routed by a table of their own.
    fn add_rule(&mut self, from: IpAddr, table: u32) -> io::Result<()> {
        let mut rule = RuleMessage::default();
        (rule.header.family, rule.header.src_len) = family(from);
        rule.header.action = RuleAction::ToTable;
        rule.attributes = vec![RuleAttribute::Source(from), RuleAttribute::Table(table)];
        match self.request(RouteNetlinkMessage::NewRule(rule), NLM_F_CREATE | NLM_F_EXCL) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
            _ => Ok(()),
        }
    }

    /// Adds a route, or replaces the one to the same addresses.
    pub fn add_route(&mut self, route: &Route) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: family(route.to.0).0,
            destination_prefix_length: route.to.1,
            table: if route.local { TABLE_LOCAL } else { RouteHeader::RT_TABLE_MAIN },
            protocol: RouteProtocol::Static,
            scope: if route.local { RouteScope::Host } else { RouteScope::Link },
            kind: if route.local { RouteType::Local } else { RouteType::Unicast },
            ..message.header
        };
        if let Some(from) = route.from {
            let table = table_of(from);
            self.add_rule(from, table)?;
            message.header.table = RouteHeader::RT_TABLE_UNSPEC;
            message.attributes.push(RouteAttribute::Table(table));
        }
        if route.to.1 > 0 {
            message.attributes.push(RouteAttribute::Destination(route.to.0.into()));
        }
        message.attributes.push(RouteAttribute::Oif(self.index_of(&route.device)?));
        let metrics = route.tcp.write();
        if !metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        self.request(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE).map(|_| ())
    }

    /// How TCP talks to an address, and from one of its own if that is given, as the kernel has it.
    pub fn tcp_to(&mut self, address: IpAddr, from: Option<IpAddr>) -> io::Result<TcpMetrics> {
        let mut message = RouteMessage::default();
        (message.header.address_family, message.header.destination_prefix_length) = family(address);
        if let Some(from) = from {
            message.header.source_prefix_length = family(from).1;
            message.attributes.push(RouteAttribute::Source(from.into()));
        }
        message.attributes.push(RouteAttribute::Destination(address.into()));
        let Some(RouteNetlinkMessage::NewRoute(route)) =
            self.request(RouteNetlinkMessage::GetRoute(message), 0)?
        else {
            return Err(io::Error::other("the kernel does not describe the route"));
        };
        let metrics = route.attributes.into_iter().find_map(|attribute| match attribute {
            RouteAttribute::Metrics(metrics) => Some(metrics),
            _ => None,
        });
        Ok(TcpMetrics::read(metrics.unwrap_or_default()))
    }

    pub fn counts(&mut self, device: &str) -> io::Result<DeviceCounts> {
        let link = self.link(device)?;
        let stats = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::Stats64(s) => Some(DeviceCounts {
                received: s.rx_packets,
                received_dropped: s.rx_dropped,
                sent: s.tx_packets,
                sent_dropped: s.tx_dropped,
            }),
            _ => None,
        });
        stats.ok_or_else(|| io::Error::other("the kernel gives no counters"))
    }

    fn link(&mut self, device: &str) -> io::Result<LinkMessage> {
        let mut link = LinkMessage::default();
        link.attributes.push(LinkAttribute::IfName(device.to_owned()));
        match self.request(RouteNetlinkMessage::GetLink(link), 0)? {
            Some(RouteNetlinkMessage::NewLink(link)) => Ok(link),
            _ => Err(io::Error::other("the kernel does not describe the device")),
        }
    }

    /// Sends a request and waits until the kernel has done it; gives what it answered besides, if anything.
    fn request(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<Option<RouteNetlinkMessage>> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        header.sequence_number = self.sequence;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(message));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut answer = None;
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let message =
                    NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map_err(io::Error::other)?;
                // Messages are aligned to four bytes.
                let len = (message.header.length as usize).next_multiple_of(4);
                rest = rest.get(len..).unwrap_or_default();
                match message.payload {
                    NetlinkPayload::Error(e) if e.code.is_some() => return Err(e.to_io()),
                    NetlinkPayload::Error(_) => return Ok(answer),
                    NetlinkPayload::InnerMessage(inner) => answer = Some(inner),
                    _ => {}
                }
            }
        }
    }
}

/// The number of the routing table that an address has for itself: none of those that the kernel knows (below 256) in any range that
/// servers' addresses are of.
fn table_of(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => u32::from(address),
        IpAddr::V6(address) => u128::from(address) as u32 | 1 << 31,
    }
}

/// The family of an address, and the length of the prefix that is all of it.
fn family(address: IpAddr) -> (AddressFamily, u8) {
    match address {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    }
}
