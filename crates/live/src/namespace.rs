//! Networks of one's own, without root.
//!
//! A Linux network namespace is a network stack with its own devices, addresses, routes and sockets (network_namespaces(7)). This
//! module makes them, joins them by TUN devices, and runs programs inside:
//!
//! * [`Privilege`] is the right to make them: root has it, and anybody else gets it in a *user namespace* (user_namespaces(7)) that
//!   maps them to themselves, if the system allows.
//! * [`Net`] is a network namespace. One process may hold several; [`Net::run`] does something inside one.
//! * [`Tun`] is a network device whose wire is this program.
//! * [`Keeper`] runs programs in such a namespace, as children of an init process of their own; [`Signals`] is what they and this
//!   process are told by others meanwhile.
//!
//! Nothing has a name outside the process that made it: namespaces and devices are held by file descriptors, programs by an init
//! that dies with the process that started it, and all that an init has started dies with the init (pid_namespaces(7)). So
//! nothing is left behind, however the process ends.

mod families;
mod keeper;
mod mounts;
mod netlink;
mod signals;
mod sys;
#[cfg(test)]
pub(crate) mod tests;
mod tun;
pub(crate) mod turn;

use std::fmt;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sched::{CloneFlags, setns, unshare};
use rustix::thread::{CapabilitySet, capabilities};

pub use families::{FAR_V6, NEAR_AFTER_V6, NEAR_V6, SERVERS_V6};
pub use keeper::{Inside, Keeper, Order, Report};
pub use netlink::{DeviceCounts, Route, TcpMetrics};
pub use signals::{Event, Signals};
pub(crate) use sys::received_at;
pub use tun::{HEADER, Tun, TunConfig};
pub use turn::Turn;

/// Why there is no namespace, in one line that says whose fault it is and what helps.
#[derive(Debug)]
pub enum Error {
    /// The system refuses user namespaces to this user.
    NoUserNamespaces {
        /// What the kernel answered.
        source: io::Error,
        /// What to change.
        remedy: String,
    },
    /// The system has no TUN devices, or refuses them.
    NoTun {
        /// What the kernel answered.
        source: io::Error,
    },
    /// The system has no IPv6, or has it switched off and lets nobody switch it on.
    NoIpv6 {
        /// What to change.
        remedy: &'static str,
    },
    /// There is a device of that name.
    Taken,
    /// The caller has started threads already, and the kernel gives a process of several threads no user namespace.
    Threads,
    /// The kernel refused something else.
    Refused {
        /// What.
        what: &'static str,
        /// What it answered.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn refused(what: &'static str) -> impl Fn(io::Error) -> Error {
        move |source| Error::Refused { what, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoUserNamespaces { source, remedy } => {
                write!(f, "this system refuses user namespaces ({source}): {remedy}")
            }
            Error::NoTun { source } if source.kind() == io::ErrorKind::NotFound => f.write_str(
                "there is no /dev/net/tun: load the kernel's module `tun`, or give the container that device",
            ),
            Error::NoTun { source } => {
                write!(
                    f,
                    "/dev/net/tun gives no device ({source}): everybody must be allowed to read and write it"
                )
            }
            Error::NoIpv6 { remedy } => write!(f, "this kernel has IPv6 switched off: {remedy}"),
            Error::Taken => f.write_str("there is a network device of that name"),
            Error::Threads => f.write_str("a user namespace must be made before any thread is started"),
            Error::Refused { what, source } => write!(f, "cannot {what}: {source}"),
        }
    }
}

impl std::error::Error for Error {}

/// The right to make network namespaces.
#[derive(Clone, Copy, Debug)]
pub struct Privilege {
    rootless: bool,
}

impl Privilege {
    /// Takes the right if this process has it; else enters a new user namespace, in which it has. There, users and groups other
    /// than the caller's own show as `nobody`; outside, nothing changes.
    ///
    /// To be called before any thread is started.
    pub fn acquire() -> Result<Self, Error> {
        let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
        let held = capabilities(None).map_err(|e| Error::refused("read capabilities")(e.into()))?.effective;
        if held.contains(needed) {
            return Ok(Self { rootless: false });
        }
        if !is_alone() {
            return Err(Error::Threads);
        }
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let refused = |source: io::Error| Error::NoUserNamespaces { remedy: remedy(), source };
        unshare(CloneFlags::CLONE_NEWUSER).map_err(|e| refused(e.into()))?;
        // Whoever may not set groups may not leave one that denies something: without this the group map is refused.
        fs::write("/proc/self/setgroups", "deny").map_err(refused)?;
        fs::write("/proc/self/uid_map", format!("{uid} {uid} 1")).map_err(refused)?;
        fs::write("/proc/self/gid_map", format!("{gid} {gid} 1")).map_err(refused)?;
        Ok(Self { rootless: true })
    }

    /// Whether it took a user namespace.
    pub fn is_rootless(self) -> bool {
        self.rootless
    }
}

/// Whether the calling process may add devices to the network it is in.
pub fn may_configure_network() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::NET_ADMIN))
}

/// Whether this process has one thread. One that has been joined may still be on its way out of the kernel, and gets a moment for it.
fn is_alone() -> bool {
    let clock = crate::Clock::start();
    loop {
        if fs::read_dir("/proc/self/task").map_or(1, Iterator::count) == 1 {
            return true;
        }
        if clock.now() > base::Instant::ZERO + base::Duration::from_millis(100) {
            return false;
        }
        std::thread::yield_now();
    }
}

/// Which of the system's settings forbids user namespaces.
fn remedy() -> String {
    let setting = |path: &str| fs::read_to_string(path).ok().map(|s| s.trim().to_owned());
    let forbids = |path: &str, value: &str| setting(path).as_deref() == Some(value);
    if forbids("/proc/sys/user/max_user_namespaces", "0") {
        "set the sysctl user.max_user_namespaces above 0, or be root".into()
    } else if forbids("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "set the sysctl kernel.unprivileged_userns_clone to 1, or be root".into()
    } else if forbids("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "set the sysctl kernel.apparmor_restrict_unprivileged_userns to 0, or be root".into()
    } else {
        "in a container, start it with the capabilities SYS_ADMIN and NET_ADMIN, or with a seccomp profile that allows unshare"
            .into()
    }
}

/// A network namespace. It lives until this, everything made in it and every process in it is gone.
#[derive(Debug)]
pub struct Net {
    namespace: OwnedFd,
}

impl Net {
    /// A new one, with nothing in it but the loopback device, which is up. Ports below 1024 are for everybody in it.
    pub fn new(_: Privilege) -> Result<Self, Error> {
        let net = on_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Self::here()
        })
        .map_err(Error::refused("make a network namespace"))?;
        net.run(|| {
            let mut netlink = netlink::Netlink::open()?;
            let lo = netlink.index_of("lo")?;
            netlink.set_link(lo, None, None)?;
            // A network that forbids this (an old kernel) still works.
            let _ = fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
            Ok(())
        })
        .map_err(Error::refused("set a network namespace up"))?;
        Ok(net)
    }

    /// The one that the calling thread is in.
    pub fn current() -> Result<Self, Error> {
        Self::here().map_err(Error::refused("open this network namespace"))
    }

    fn here() -> io::Result<Self> {
        Ok(Self { namespace: fs::File::open("/proc/thread-self/ns/net")?.into() })
    }

    /// The same one again.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { namespace: self.namespace.try_clone()? })
    }

    /// Does something inside, on a thread of its own unless the calling one is there. What it makes there (sockets, devices) stays there
    /// wherever it is used.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        // To enter takes a right over the network that one may have no more for where one is.
        if self.identity()? == Self::here()?.identity()? {
            return f();
        }
        on_a_thread(|| {
            setns(&self.namespace, CloneFlags::CLONE_NEWNET)?;
            f()
        })
    }

    /// What tells one namespace from another (namespaces(7)).
    fn identity(&self) -> io::Result<(u64, u64)> {
        let stat = rustix::fs::fstat(&self.namespace)?;
        Ok((stat.st_dev, stat.st_ino))
    }

    /// Moves the calling thread inside, for good: what it makes from now on (sockets, devices) is made there.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.namespace, CloneFlags::CLONE_NEWNET)?)
    }

    /// Lets it have IPv6, and be silent about it: devices that are made in it from now on get no address that they are not given, and
    /// ask nobody for one.
    ///
    /// # Errors
    /// [`Error::NoIpv6`] if the system has none.
    pub fn allow_ipv6(&self) -> Result<(), Error> {
        self.run(|| Ok(families::allow(&["default", "lo"])))
            .map_err(Error::refused("enter a network namespace"))?
    }

    /// Gives its loopback device an address: whoever listens on all addresses listens on this one, and others may listen on it alone.
    pub fn own(&self, address: Ipv6Addr) -> Result<(), Error> {
        self.run(|| {
            let mut netlink = netlink::Netlink::open()?;
            let lo = netlink.index_of("lo")?;
            netlink.add_address(lo, address.into(), address.into())
        })
        .map_err(Error::refused("give a network an address"))
    }

    /// Makes a TUN device in it: addressed, and up. An [`Error::Taken`] if there is one of that name.
    pub fn tun(&self, config: &TunConfig) -> Result<Tun, Error> {
        self.run(|| Ok(tun::open(config))).map_err(Error::refused("enter a network namespace"))?
    }

    /// Gives a device other addresses in the place of those that it has, each old one with its new one. Routes over it stay. What is sent from
    /// an old one has no way any more or is nobody's, and sockets are not told.
    pub fn readdress(&self, device: &str, addresses: &[(IpAddr, IpAddr)]) -> Result<(), Error> {
        let readdress = || {
            let mut netlink = netlink::Netlink::open()?;
            let index = netlink.index_of(device)?;
            // The new one first: with its last address a device loses its routes. And as its own peer: with a common one it would be the
            // old one's secondary, and go with it.
            addresses.iter().try_for_each(|(old, new)| {
                netlink.add_address(index, *new, *new)?;
                netlink.delete_address(index, *old)
            })
        };
        self.run(readdress).map_err(Error::refused("give a device another address"))
    }

    /// Adds a route, or replaces the one to the same addresses: that to the other end of a [`Tun`] is there with the device.
    pub fn route(&self, route: &Route) -> Result<(), Error> {
        self.run(|| netlink::Netlink::open()?.add_route(route)).map_err(Error::refused("add a route"))
    }

    /// How TCP in it talks to an address, and from one of its own if that is given, as the kernel has it.
    pub fn tcp_to(&self, address: IpAddr, from: Option<IpAddr>) -> Result<TcpMetrics, Error> {
        self.run(|| netlink::Netlink::open()?.tcp_to(address, from)).map_err(Error::refused("read a route"))
    }

    /// Sets one of its settings, by its path below `/proc/sys/net`: `ipv4/tcp_congestion_control`, say.
    pub fn set(&self, setting: &str, value: &str) -> io::Result<()> {
        self.run(|| fs::write(setting_path(setting)?, value))
    }

    /// Reads one of its settings back; see [`set`](Self::set).
    pub fn setting(&self, setting: &str) -> io::Result<String> {
        self.run(|| Ok(fs::read_to_string(setting_path(setting)?)?.trim().to_owned()))
    }

    /// Lets it pass packets on from one device to another.
    pub fn forward(&self) -> Result<(), Error> {
        self.run(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1"))
            .map_err(Error::refused("forward packets"))
    }

    /// What a device has counted.
    pub fn counts(&self, device: &str) -> Result<DeviceCounts, Error> {
        self.run(|| netlink::Netlink::open()?.counts(device))
            .map_err(Error::refused("read a device's counters"))
    }

    /// Ports on which TCP servers listen in it, on any IPv4 or IPv6 address but those of the loopback.
    pub fn listening(&self) -> Result<Vec<u16>, Error> {
        self.run(listening).map_err(Error::refused("see who listens"))
    }
}

impl AsFd for Net {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }
}

fn on_a_thread<T: Send>(f: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("namespace".into()).spawn_scoped(scope, f)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The path of a setting, which must not lead out of the network's.
fn setting_path(setting: &str) -> io::Result<std::path::PathBuf> {
    let path = std::path::Path::new(setting);
    if !path.components().all(|part| matches!(part, std::path::Component::Normal(_))) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a path below /proc/sys/net"));
    }
    Ok(std::path::Path::new("/proc/sys/net").join(path))
}

/// Reads the tables of TCP sockets (proc_pid_net(5)): local address and port in hexadecimal, state 0A for those that listen.
fn listening() -> io::Result<Vec<u16>> {
    let mut ports = Vec::new();
    for (table, loopback) in [("tcp", "0100007F"), ("tcp6", "00000000000000000000000001000000")] {
        let text = match fs::read_to_string(format!("/proc/thread-self/net/{table}")) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue, // no IPv6
            text => text?,
        };
        for line in text.lines().skip(1) {
            let mut fields = line.split_ascii_whitespace().skip(1);
            let (Some(local), Some(_), Some("0A")) = (fields.next(), fields.next(), fields.next()) else {
                continue;
            };
            let Some((address, port)) = local.split_once(':') else { continue };
            if address != loopback {
                ports.extend(u16::from_str_radix(port, 16));
            }
        }
    }
    ports.sort_unstable();
    ports.dedup();
    Ok(ports)
}

/// A block of addresses and how its first ones are used. All lie in 100.64.0.0/10, which RFC 6598 sets aside for what is between
/// a customer and the world, so that they are nobody's at either end.
///
/// A link within a link takes a part of the block of the link around it, so that addresses differ all the way:
/// the first sixteenth of a block is the link's own, the others are for links inside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    base: u32,
    /// Length of the prefix, bits.
    prefix: u8,
}

impl Block {
    /// The whole of it: that of a link that is not within another.
    pub const WHOLE: Block = Block { base: 0x6440_0000, prefix: 10 };

    /// Links inside a link, and inside each of those.
    const CHILDREN: u32 = 15;
    const DEPTH_BITS: u8 = 4;
    /// Each link needs this many bits of addresses for itself.
    const OWN_BITS: u8 = 8;

    /// The `n`-th block (from 1) for links inside; `None` if there are so many no more.
    pub fn child(self, n: u32) -> Option<Block> {
        let prefix = self.prefix + Self::DEPTH_BITS;
        let room = 32u8.checked_sub(prefix)? >= Self::OWN_BITS + Self::DEPTH_BITS;
        (room && (1..=Self::CHILDREN).contains(&n))
            .then(|| Block { base: self.base + (n << (32 - prefix)), prefix })
    }

    /// The block as address and length of the prefix.
    pub fn range(self) -> (Ipv4Addr, u8) {
        (self.address(0), self.prefix)
    }

    /// Whether an address is of the block.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        (u32::from(address) ^ self.base) >> (32 - self.prefix) == 0
    }

    /// All addresses that are not of the block, as few ranges.
    pub fn others(self) -> impl Iterator<Item = (Ipv4Addr, u8)> {
        (1..=self.prefix).map(move |len| {
            let shift = 32 - u32::from(len);
            (Ipv4Addr::from(((self.base >> shift) ^ 1) << shift), len)
        })
    }

    /// Addresses of servers, all at the far end: the upper half of the link's own sixteenth.
    pub fn servers(self) -> (Ipv4Addr, u8) {
        let prefix = self.prefix + Self::DEPTH_BITS + 1;
        (self.address(1 << (32 - prefix)), prefix)
    }

    /// The far end.
    pub fn far(self) -> Ipv4Addr {
        self.address(1)
    }

    /// The near end, where the command runs.
    pub fn near(self) -> Ipv4Addr {
        self.address(2)
    }

    /// The near end after it has gone over to another network.
    pub fn near_after(self) -> Ipv4Addr {
        self.address(6)
    }

    /// Stands for the loopback address of the machine outside.
    pub fn host(self) -> Ipv4Addr {
        self.address(3)
    }

    /// The two ends of the wire between the network around the link and its far end, if the link is inside another: that at the
    /// other link first.
    pub fn uplink(self) -> (Ipv4Addr, Ipv4Addr) {
        (self.address(4), self.address(5))
    }

    /// Stands for the name server of the machine outside.
    pub fn dns(self) -> Ipv4Addr {
        self.address(53)
    }

    fn address(self, n: u32) -> Ipv4Addr {
        Ipv4Addr::from(self.base + n)
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address(0), self.prefix)
    }
}

impl std::str::FromStr for Block {
    type Err = ();
    fn from_str(s: &str) -> Result<Self, ()> {
        let (base, prefix) = s.split_once('/').ok_or(())?;
        let base: Ipv4Addr = base.parse().map_err(|_| ())?;
        let prefix: u8 = prefix.parse().map_err(|_| ())?;
        (10..=20).contains(&prefix).then_some(Block { base: base.into(), prefix }).ok_or(())
    }
}
