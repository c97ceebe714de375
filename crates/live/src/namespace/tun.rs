//! Network devices whose wire is this program.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;

use super::netlink::Netlink;
use super::{Error, sys};

/// What a TUN device is to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunConfig {
    /// Its name, at most 15 bytes; `%d` stands for a number that is free.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// The address at the other end.
    pub peer: Ipv4Addr,
    /// Its address of IPv6. Without one, IPv6 is off on it; with one, the network must [allow it](super::Net::allow_ipv6).
    pub ipv6: Option<Ipv6Addr>,
    /// Bytes of the largest IP packet.
    pub mtu: u32,
    /// The kernel may give TCP segments in pieces larger than the MTU, to be cut at the other end (TCP segmentation offload).
    pub offload: bool,
}

/// A TUN device. What the kernel sends over it is read here, what is written here the kernel receives. It is gone once this is.
#[derive(Debug)]
pub struct Tun {
    fd: OwnedFd,
    name: String,
    mtu: u32,
    offload: bool,
}

/// Bytes before each packet: the `struct virtio_net_hdr` of the Virtual I/O Device specification, section 5.1.6. It is
/// written as it was read: so checksums may stay undone, and the kernel at the other end takes them for good; and a piece of
/// several TCP segments is one there too.
pub const HEADER: usize = 10;

/// Packets that may wait to be read. More than a program that does not get its turn for a while lets come.
const QUEUE: u32 = 10_000;

pub(super) fn open(config: &TunConfig) -> Result<Tun, Error> {
    let no_tun = |source| Error::NoTun { source };
    let file = File::options().read(true).write(true).open("/dev/net/tun").map_err(no_tun)?;
    let fd = OwnedFd::from(file);
    let name = match sys::make_tun(fd.as_fd(), &config.name, config.offload) {
        // One that another program holds, or one that is no TUN device.
        Err(e) if [Errno::BUSY, Errno::INVAL].contains(&Errno::from_io_error(&e).unwrap_or(Errno::IO)) => {
            return Err(Error::Taken);
        }
        name => name.map_err(no_tun)?,
    };
    let tun = Tun { fd, name, mtu: config.mtu, offload: config.offload };
    tun.set_up(config).map_err(Error::refused("set a TUN device up"))?;
    Ok(tun)
}

impl Tun {
    fn set_up(&self, config: &TunConfig) -> io::Result<()> {
        fcntl_setfl(&self.fd, OFlags::RDWR | OFlags::NONBLOCK)?;
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of(&self.name)?;
        if config.ipv6.is_none() {
            // Without this, IPv6 says hello over every new device, in the middle of whatever is measured.
            let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", self.name), "1");
        }
        netlink.add_address(index, config.address.into(), config.peer.into())?;
        if let Some(address) = config.ipv6 {
            netlink.add_address(index, address.into(), address.into())?;
        }
        netlink.set_link(index, Some(config.mtu), Some(QUEUE))
    }

    /// Its name in its network.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of the largest IP packet.
    pub fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Bytes of the largest IP packet that it gives.
    pub fn packet_max(&self) -> usize {
        if self.offload { usize::from(u16::MAX) } else { self.mtu as usize }
    }

    /// Reads a packet, [`HEADER`] bytes before it, into `buffer`, which must have room; `WouldBlock` if there is none.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(&self.fd, buffer)?)
    }

    /// Writes a packet, [`HEADER`] bytes before it.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        rustix::io::write(&self.fd, packet)?;
        Ok(())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
