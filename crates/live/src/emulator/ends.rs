//! Two networks with an emulated link between them, in this process.
//!
//! ```text
//! ┌ near ─────────────┐                          ┌ far ────────────────────────────┐
//! │ 100.64.0.2  link0 ├─ TUN ─ Emulator ─ TUN ─┤ link0  100.64.0.1               │
//! │ default ─▶ link0  │                          │ lo     any more, for servers    │
//! └───────────────────┘                          └─────────────────────────────────┘
//! ```
//!
//! Addresses are those of a [`Block`]; [`Ends`] is made first, while the process may still fork
//! ([`Keeper`](crate::namespace::Keeper)), and [`Link`] is the same with the emulator running on a thread of its own.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::thread::JoinHandle;

use crate::namespace::{
    Block, Error, FAR_V6, NEAR_AFTER_V6, NEAR_V6, Net, Privilege, Route, SERVERS_V6, Tun, TunConfig,
};

use super::{Check, Config, Emulator, Gateway, Handle, Log, LogSummary};

/// The name of the link's device at either end.
pub const DEVICE: &str = "link0";

/// Bytes of the largest IP packet on the link: Ethernet's.
pub const MTU: u32 = 1_500;

/// A near and a far network, not joined yet.
#[derive(Debug)]
pub struct Ends {
    near: Net,
    far: Net,
    block: Block,
    ipv6: bool,
}

impl Ends {
    /// Two new networks.
    pub fn new(privilege: Privilege, block: Block) -> Result<Self, Error> {
        Ok(Self { near: Net::new(privilege)?, far: Net::new(privilege)?, block, ipv6: false })
    }

    /// Has the link between them carry IPv6, too: both ends get an address ([`NEAR_V6`], [`FAR_V6`]), and those of [`SERVERS_V6`] are at the
    /// far end, once it [owns](Net::own) them.
    ///
    /// # Errors
    /// [`Error::NoIpv6`] if the system has none; then the link carries IPv4.
    pub fn carry_ipv6(&mut self) -> Result<(), Error> {
        self.near.allow_ipv6()?;
        self.far.allow_ipv6()?;
        self.ipv6 = true;
        Ok(())
    }

    /// Whether the link is to carry IPv6.
    pub fn carries_ipv6(&self) -> bool {
        self.ipv6
    }

    /// Where the client is.
    pub fn near(&self) -> &Net {
        &self.near
    }

    /// Where the servers are.
    pub fn far(&self) -> &Net {
        &self.far
    }

    /// The addresses in use.
    pub fn block(&self) -> Block {
        self.block
    }

    /// The addresses that the near end has at first.
    pub fn near_addresses(&self) -> Vec<IpAddr> {
        [self.block.near().into()].into_iter().chain(self.ipv6.then_some(NEAR_V6.into())).collect()
    }

    /// Those that it has once it is [readdressed](Self::readdress), in the same order.
    pub fn near_after(&self) -> Vec<IpAddr> {
        let v6 = self.ipv6.then_some(NEAR_AFTER_V6.into());
        [self.block.near_after().into()].into_iter().chain(v6).collect()
    }

    /// Gives the near end other addresses in the place of those that it has had from the beginning, as if it were in another network.
    pub fn readdress(&self) -> Result<(), Error> {
        let pairs: Vec<_> = self.near_addresses().into_iter().zip(self.near_after()).collect();
        self.near.readdress(DEVICE, &pairs)
    }

    /// The devices at both ends, near first: addressed, up, and with a route from the near end to everywhere. The block's addresses that
    /// are nobody's lie behind the near end, as those of a link inside this one do.
    ///
    /// For whoever wants an [`Emulator`] of their own between them; others [join](Self::join).
    pub fn devices(&self, config: &Config) -> Result<(Tun, Tun), Error> {
        let (near, far) = (self.block.near(), self.block.far());
        let [near_v6, far_v6] = [NEAR_V6, FAR_V6].map(|address| self.ipv6.then_some(address));
        let tun = |address, peer, ipv6, direction| {
            let (name, offload) = (DEVICE.to_owned(), config.carries_whole(direction));
            TunConfig { name, address, peer, ipv6, mtu: MTU, offload }
        };
        let near_tun = self.near.tun(&tun(near, far, near_v6, super::Direction::Up))?;
        let far_tun = self.far.tun(&tun(far, near, far_v6, super::Direction::Down))?;
        self.near.route(&Route::new((Ipv4Addr::UNSPECIFIED, 0), DEVICE))?;
        self.far.route(&Route::new(self.block.range(), DEVICE))?;
        self.far.route(&Route::new(self.block.servers(), "lo").local())?;
        if self.ipv6 {
            self.near.route(&Route::new((FAR_V6, 128), DEVICE))?;
            self.near.route(&Route::new(SERVERS_V6, DEVICE))?;
            self.far.route(&Route::new((NEAR_V6, 128), DEVICE))?;
        }
        Ok((near_tun, far_tun))
    }

    /// Joins them by a link, which runs from now on.
    pub fn join(self, config: &Config, log: Option<Log>) -> Result<Link, Error> {
        let (near, far) = self.devices(config)?;
        let refused = Error::refused("start the emulator");
        let emulator = Emulator::new(config, near, far, log).map_err(&refused)?;
        Link::run(self, emulator, Beyond::Nothing).map_err(&refused)
    }

    /// Joins them by a link inside another one; these ends must have been made with [`Uplink::block`]. The far end passes packets on to the
    /// near end of the link around, as a router does.
    pub fn join_within(self, config: &Config, log: Option<Log>, uplink: Uplink) -> Result<Link, Error> {
        let (near, far) = self.devices(config)?;
        let (peer, address) = self.block.uplink();
        let (name, ipv6) = (OUTSIDE.to_owned(), None);
        let inner = self.far.tun(&TunConfig { name, address, peer, ipv6, mtu: MTU, offload: true })?;
        self.far.route(&Route::new((Ipv4Addr::UNSPECIFIED, 0), OUTSIDE))?;
        self.far.forward()?;
        let refused = Error::refused("start the emulator");
        let emulator = Emulator::new(config, near, far, log).map_err(&refused)?;
        let perfect = Config { policy: config.policy, ..Config::perfect() };
        let wire = Emulator::new(&perfect, inner, uplink.device, None).map_err(&refused)?;
        let wire = Running::start(wire, "uplink").map_err(&refused)?;
        Link::run(self, emulator, Beyond::Wire(wire)).map_err(&refused)
    }

    /// Joins them by a link, and lets the near end talk TCP and UDP to the network that the calling thread is in; see [`Gateway`].
    pub fn join_outside(self, config: &Config, log: Option<Log>) -> Result<Link, Error> {
        let (near, far) = self.devices(config)?;
        let block = self.block;
        for range in block.others().chain([(block.host(), 32), (block.dns(), 32)]) {
            self.far.route(&Route::new(range, "lo").local())?;
        }
        let refused = Error::refused("start the emulator");
        let mut emulator = Emulator::new(config, near, far, log).map_err(&refused)?;
        let gateway = emulator.open_gateway(block, &self.far).map_err(&refused)?;
        Link::run(self, emulator, Beyond::Gateway(gateway)).map_err(&refused)
    }
}

/// Where a link inside another is tied to that one's near end: a wire without any impairment, over which packets pass as they are.
#[derive(Debug)]
pub struct Uplink {
    device: Tun,
    block: Block,
}

impl Uplink {
    /// Ties it to the network that the calling thread is in, which must be the near end of a link with the addresses of `around` and which
    /// this process must [be allowed to configure](crate::namespace::may_configure_network). To be done before
    /// [`Privilege::acquire`]; that may take the right away.
    ///
    /// `None` if there are as many links inside that one as there can be, or it is itself as deep inside others as can be.
    pub fn tie(around: Block) -> Result<Option<Self>, Error> {
        let here = Net::current()?;
        for n in 1.. {
            let Some(block) = around.child(n) else { break };
            let (address, peer) = block.uplink();
            let name = format!("inner{n}");
            let device =
                match here.tun(&TunConfig { name, address, peer, ipv6: None, mtu: MTU, offload: true }) {
                    Err(Error::Taken) => continue,
                    device => device?,
                };
            here.route(&Route::new(block.range(), device.name()))?;
            here.forward()?;
            return Ok(Some(Self { device, block }));
        }
        Ok(None)
    }

    /// Addresses for the link inside.
    pub fn block(&self) -> Block {
        self.block
    }
}

/// The name of the far end's device on the way to the link around this one.
const OUTSIDE: &str = "outside";

/// What lies beyond the far end.
#[derive(Debug)]
pub enum Beyond {
    /// Nothing.
    Nothing,
    /// The network of this process, by sockets.
    Gateway(Gateway),
    /// The near end of another link, by a wire.
    Wire(Running),
}

/// An emulator on a thread of its own, until this is dropped.
#[derive(Debug)]
pub struct Running {
    handle: Handle,
    thread: Option<JoinHandle<Outcome>>,
}

/// What an emulator leaves: what was counted, and the log's summary if there is a log.
pub type Outcome = io::Result<(Check, Option<LogSummary>)>;

impl Running {
    fn start(emulator: Emulator, name: &str) -> io::Result<Self> {
        let handle = emulator.handle();
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || emulator.run())?;
        Ok(Self { handle, thread: Some(thread) })
    }

    fn finish(mut self) -> Outcome {
        self.handle.stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Err(io::Error::other("the emulator has ended")),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A near and a far network with a link between them that runs until this is [finished](Link::finish) or dropped.
#[derive(Debug)]
pub struct Link {
    ends: Ends,
    emulator: Running,
    /// Ends when this is dropped.
    _beyond: Beyond,
}

impl Link {
    /// Runs an emulator between the devices of `ends`, and keeps what lies beyond the far end.
    pub fn run(ends: Ends, emulator: Emulator, beyond: Beyond) -> io::Result<Self> {
        Ok(Self { ends, emulator: Running::start(emulator, "emulator")?, _beyond: beyond })
    }

    /// The networks.
    pub fn ends(&self) -> &Ends {
        &self.ends
    }

    /// Where the client is.
    pub fn near(&self) -> &Net {
        &self.ends.near
    }

    /// Where the servers are. Every address of [`Block::servers`] is there.
    pub fn far(&self) -> &Net {
        &self.ends.far
    }

    /// The addresses in use.
    pub fn block(&self) -> Block {
        self.ends.block
    }

    /// A handle on the emulator.
    pub fn handle(&self) -> Handle {
        self.emulator.handle.clone()
    }

    /// Stops the emulator, and gives what was counted. Packets on the way are lost.
    pub fn finish(self) -> Outcome {
        self.emulator.finish()
    }
}
