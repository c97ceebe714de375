//! Packets of a load as a time line: two rails, client and server, time down, a slanting line a packet. What carries a name is told by
//! it, so that the parts of a handshake and the request behind it can be seen to leave and to arrive.

use base::Instant;
use load::Carried;
use serde::{Deserialize, Serialize};

/// Time lines beside each other, on one axis of time.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct TimeLines {
    /// What they show, in a sentence or two.
    pub caption: String,
    /// What is compared, from left to right; there is room for two on a page.
    pub lines: Vec<TimeLine>,
}

/// The packets of a connection.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct TimeLine {
    /// What it is of.
    pub name: String,
    /// In the order in which they left.
    pub packets: Vec<PacketLine>,
    /// Moments at the client that are worth a mark.
    pub moments: Vec<Moment>,
}

/// A moment at the client.
#[derive(Clone, PartialEq, Debug)]
pub struct Moment {
    /// When, ms.
    pub at_ms: f64,
    /// What happens, in a word or two.
    pub says: String,
    /// Whether it is what was published, and not ours.
    pub is_published: bool,
}

/// A packet. Times are in milliseconds from the navigation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PacketLine {
    /// Its connection, by the order of their opening.
    pub connection: u32,
    /// Whether the client sent it.
    pub up: bool,
    /// When its sender's TCP let it go.
    pub left_ms: f64,
    /// When the other TCP had it; `None` if it did not come.
    pub arrived_ms: Option<f64>,
    /// Whether it is lost: it did not come, and what left after it did. What did not come and is not lost was on its way at the end.
    pub is_lost: bool,
    /// What it belongs to.
    pub layer: Layer,
    /// What it carries, by the names of its specification; nothing if it only acknowledges.
    pub says: Vec<String>,
}

/// What a packet belongs to, by the uppermost of what it carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Layer {
    /// It only acknowledges.
    Acknowledgement,
    /// It opens or ends the connection.
    Connection,
    /// It carries a TLS handshake, or an alert.
    Handshake,
    /// It carries requests or answers.
    Application,
}

impl PacketLine {
    /// Those of a load whose packets were kept.
    pub(super) fn all(load: &load::Load) -> Vec<Self> {
        let came_after = |n: usize, packet: &load::Packet| {
            let later = load.packets[n + 1..].iter().filter(|p| p.arrived.is_some() && p.left > packet.left);
            later.map(|p| (p.connection, p.up)).any(|way| way == (packet.connection, packet.up))
        };
        let one = |(n, packet): (usize, &load::Packet)| Self {
            is_lost: packet.arrived.is_none() && came_after(n, packet),
            ..Self::new(packet)
        };
        load.packets.iter().enumerate().map(one).collect()
    }

    fn new(packet: &load::Packet) -> Self {
        let ms = |at: Instant| at.since(Instant::ZERO).as_millis_f64();
        let flags = packet.segment.flags;
        let opens = match (flags.syn, flags.ack) {
            (true, true) => Some("SYN-ACK"),
            (true, false) => Some("SYN"),
            _ => None,
        };
        let ends = [(flags.fin, "FIN"), (flags.rst, "RST")].into_iter().filter(|f| f.0).map(|f| f.1);
        let is_handshake = |c: &Carried| matches!(c, Carried::Handshake(_) | Carried::Alert);
        let layer = match &packet.carries[..] {
            [] if opens.is_some() || flags.fin || flags.rst => Layer::Connection,
            [] => Layer::Acknowledgement,
            carries if carries.iter().all(is_handshake) => Layer::Handshake,
            _ => Layer::Application,
        };
        let says = opens.map(str::to_owned).into_iter();
        let says = says.chain(packet.carries.iter().map(name)).chain(ends.map(str::to_owned));
        Self {
            connection: packet.connection,
            up: packet.up,
            left_ms: ms(packet.left),
            arrived_ms: packet.arrived.map(ms),
            is_lost: false,
            layer,
            says: says.collect(),
        }
    }
}

fn name(carried: &Carried) -> String {
    match carried {
        Carried::Handshake(message) => format!("{message:?}"),
        Carried::Alert => "alert".to_owned(),
        Carried::Request => "request".to_owned(),
        Carried::ResponseHead => "response".to_owned(),
        Carried::Body => "body".to_owned(),
        Carried::Control => "session".to_owned(),
    }
}
