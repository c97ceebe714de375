//! IPv6 in a network: whether there is any, and addresses for it.
//!
//! The kernel does much by itself where IPv6 is on: it makes up a link-local address for each device (RFC 4862 section 5.3), looks
//! whether somebody has it already (section 5.4), asks for routers (RFC 4861 section 6.3.7) and says which groups it listens to (RFC 3810).
//! All of that would cross the link in the middle of whatever is measured. A device whose addresses are not generated has no link-local one;
//! then nobody is asked for a router, and a device without neighbours (a TUN has none) has no groups to tell of.

use std::fs;
use std::io;
use std::net::Ipv6Addr;

use super::Error;

/// The near end, where the browser is. Like all addresses of IPv6 here it is set aside for documentation (RFC 3849), and so nobody's.
pub const NEAR_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 2);

/// The near end after it has gone over to another network.
pub const NEAR_AFTER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 6);

/// The far end.
pub const FAR_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1);

/// Addresses of servers, all at the far end, and the length of their prefix. Those that a [`load::Setup`] makes up are among them.
pub const SERVERS_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 96);

/// What makes IPv6 silent, and the values. The last alone is enough, and has to be there; the others are for whoever adds an address that
/// these do not know of.
const SILENT: [(&str, &str); 5] = [
    ("accept_ra", "0"),
    ("autoconf", "0"),
    ("router_solicitations", "0"),
    ("accept_dad", "0"),
    ("addr_gen_mode", "1"), // IN6_ADDR_GEN_MODE_NONE of linux/if_link.h
];

/// Switches IPv6 on in the calling thread's network, for these devices and silently.
pub(super) fn allow(devices: &[&str]) -> Result<(), Error> {
    allow_in("/proc/sys/net/ipv6/conf", devices)
}

fn allow_in(settings: &str, devices: &[&str]) -> Result<(), Error> {
    for device in devices {
        let path = |name: &str| format!("{settings}/{device}/{name}");
        let is = |name: &str, value: &str| -> io::Result<bool> {
            // Where /proc/sys may not be written the value may be right already.
            let _ = fs::write(path(name), value);
            Ok(fs::read_to_string(path(name))?.trim() == value)
        };
        for (name, value) in SILENT {
            match is(name, value) {
                Err(_) if name == "accept_ra" => {
                    return Err(no("boot it without ipv6.disable=1, with the module `ipv6`"));
                }
                Ok(false) if name == "addr_gen_mode" => {
                    return Err(no(
                        "it would talk on its own, as /proc/sys/net cannot be written here: let it be",
                    ));
                }
                _ => {}
            }
        }
        if !is("disable_ipv6", "0").unwrap_or(false) {
            return Err(no(
                "set the sysctl net.ipv6.conf.default.disable_ipv6 to 0, or let /proc/sys/net be written",
            ));
        }
    }
    Ok(())
}

fn no(remedy: &'static str) -> Error {
    Error::NoIpv6 { remedy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::tests::privilege;
    use crate::namespace::{Net, TunConfig};

    /// Settings of a made-up kernel: a folder for each device.
    fn settings(name: &str, files: &[(&str, &str)]) -> String {
        let root = std::env::temp_dir().join(format!("velodrome-ipv6-{name}-{}", std::process::id()));
        for (file, text) in files {
            let path = root.join("default").join(file);
            fs::create_dir_all(path.parent().expect("a folder")).unwrap();
            fs::write(path, text).unwrap();
        }
        root.to_str().expect("plain").to_owned()
    }

    #[test]
    fn a_kernel_without_ipv6_is_told_from_one_that_has_it() {
        let none = allow_in("/nowhere", &["default"]).unwrap_err().to_string();
        assert!(none.contains("IPv6 switched off") && none.contains("ipv6.disable=1"), "{none}");
        let off = settings("off", &[("disable_ipv6", "1\n"), ("accept_ra", "1\n"), ("addr_gen_mode", "0\n")]);
        allow_in(&off, &["default"]).unwrap();
        let now = |name: &str| fs::read_to_string(format!("{off}/default/{name}")).unwrap();
        assert_eq!((now("disable_ipv6"), now("addr_gen_mode")), ("0".into(), "1".into()));
        fs::remove_dir_all(off).unwrap();
    }

    /// The device is up, has an address of each family, and the kernel has nothing to say over it.
    #[test]
    fn a_device_with_an_address_of_ipv6_is_silent() {
        let Some(privilege) = privilege() else { return };
        let net = Net::new(privilege).unwrap();
        if let Err(e) = net.allow_ipv6() {
            return println!("skipped: {e}");
        }
        let config = TunConfig {
            name: "t%d".to_owned(),
            address: "100.64.0.2".parse().unwrap(),
            peer: "100.64.0.1".parse().unwrap(),
            ipv6: Some(NEAR_V6),
            mtu: 1_500,
            offload: false,
        };
        let tun = net.tun(&config).unwrap();
        let bound = net.run(|| std::net::UdpSocket::bind((NEAR_V6, 0))).unwrap();
        assert!(bound.local_addr().unwrap().is_ipv6(), "the address may be used at once");
        let all = net.run(|| fs::read_to_string("/proc/thread-self/net/if_inet6")).unwrap();
        let of_device: Vec<_> = all.lines().filter(|line| line.ends_with(tun.name())).collect();
        assert_eq!(of_device.len(), 1, "no address but that which it was given: {all}");
        let mut packet = [0; 2_048];
        let read = tun.read(&mut packet).unwrap_err();
        assert_eq!(read.kind(), io::ErrorKind::WouldBlock, "{packet:x?}");
        assert_eq!(net.counts(tun.name()).unwrap().sent, 0);
    }
}
