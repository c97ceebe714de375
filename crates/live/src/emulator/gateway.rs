//! The far end's way out, without rights over any network but its own.
//!
//! Packets cannot be passed on to the machine's network: that takes a device and a route in it, and so root. What can be passed on is what
//! they say. To every address that is not the link's own, the far end stands in for whoever has it: it ends TCP connections
//! there and carries their bytes over connections of its own, made where this process is, and the same for UDP datagrams. What the command
//! at the near end meets is the kernel's TCP at the far end of the link, as if the server stood right there.
//!
//! ```text
//!  near ══ link ══ far (any address, any port) ── Gateway ── socket of this process ──▶ 127.0.0.1, or the world
//! ```
//!
//! A port is open at the far end only if it is open outside. So the first SYN to an address and port waits at the [`Door`] until a
//! connection outside is made: then there is a listener when it goes on, and if the connection is refused there is none, and
//! the kernel refuses in turn.
//!
//! [`Block::host`] stands for the machine's loopback address, so that servers which listen on nothing else are reached, and
//! [`Block::dns`] for its name server.
//!
//! * `porter`: opens ports, connects, and forgets.
//! * `tcp`: two connections and the bytes between them.

mod porter;
mod tcp;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::packet::Addresses;
use crate::Waker;
use crate::namespace::{Block, HEADER, Net, Tun};

use porter::Porter;

/// Packets that may wait at the door.
const KNOCKS: usize = 1_024;

/// What stands at the far end before a packet is written there.
#[derive(Debug)]
pub(super) struct Door {
    block: Block,
    sender: SyncSender<Vec<u8>>,
    waker: Waker,
}

/// What the door did with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Passage {
    /// Nothing; it may be written.
    Free,
    /// It took it, and will see to its being written.
    Taken,
    /// It had to take it, and there was no room.
    Lost,
}

impl Door {
    /// Takes a packet for whose sake something must be opened at the far end first.
    pub fn pass(&self, packet: &[u8]) -> Passage {
        if opens(self.block, packet.get(HEADER..).unwrap_or_default()).is_none() {
            return Passage::Free;
        }
        let sent = self.sender.try_send(packet.to_vec()).is_ok() && self.waker.wake().is_ok();
        if sent { Passage::Taken } else { Passage::Lost }
    }
}

/// What must be open before a packet is written at the far end: a port for TCP (6) or UDP (17).
fn opens(block: Block, ip: &[u8]) -> Option<(u8, SocketAddrV4)> {
    let ends = Addresses::read(ip);
    let IpAddr::V4(to) = ends.to else { return None };
    let outside = !block.contains(to) || to == block.host() || to == block.dns();
    if !outside || to.is_multicast() || to.is_broadcast() || ends.to_port == 0 {
        return None;
    }
    let port = SocketAddrV4::new(to, ends.to_port);
    match ends.protocol {
        17 => Some((17, port)),
        // RFC 9293 section 3.1: the flags are in the 14th byte; SYN without ACK begins a connection.
        6 => {
            let flags = ip.get(usize::from(ip[0] & 0x0f) * 4 + 13)?;
            (flags & 0x12 == 0x02).then_some((6, port))
        }
        _ => None,
    }
}

/// The far end's way out, on a thread of its own, until this is dropped.
#[derive(Debug)]
pub struct Gateway {
    waker: Waker,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Gateway {
    /// Opens the door of the far end `far`, at which packets are written to `device`. Sockets outside are made where the calling thread
    /// is.
    pub(super) fn open(block: Block, far: &Net, device: Arc<Tun>) -> io::Result<(Self, Door)> {
        let (sender, knocks) = sync_channel(KNOCKS);
        let porter = Porter::new(block, resolver(), far.try_clone()?, device)?;
        let waker = porter.waker();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("gateway".into())
            .spawn(move || porter.run(&knocks, &stopped))?;
        Ok((Self { waker: waker.clone(), stop, thread: Some(thread) }, Door { block, sender, waker }))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The machine's name server: the first that resolv.conf(5) names, or the machine itself.
fn resolver() -> IpAddr {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    first_nameserver(&text).unwrap_or(Ipv4Addr::LOCALHOST.into())
}

fn first_nameserver(text: &str) -> Option<IpAddr> {
    text.lines().find_map(|line| line.strip_prefix("nameserver")?.trim().parse().ok())
}

#[cfg(test)]
mod tests;
