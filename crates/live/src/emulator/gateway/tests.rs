//! Which packets the door stops. What happens then is tested through the kernel, in `emulator::tests`.

use super::*;

fn ip(protocol: u8, to: Ipv4Addr, port: u16, flags: u8) -> Vec<u8> {
    let mut ip = vec![0; 40];
    (ip[0], ip[9], ip[33]) = (0x45, protocol, flags);
    ip[12..16].copy_from_slice(&Block::WHOLE.near().octets());
    ip[16..20].copy_from_slice(&to.octets());
    ip[22..24].copy_from_slice(&port.to_be_bytes());
    ip
}

#[test]
fn only_what_begins_something_outside_is_stopped() {
    let block = Block::WHOLE;
    let world = Ipv4Addr::new(192, 0, 2, 1);
    for to in [world, block.host(), block.dns()] {
        let port = SocketAddrV4::new(to, 80);
        assert_eq!(opens(block, &ip(6, to, 80, 0x02)), Some((6, port)), "SYN");
        assert_eq!(opens(block, &ip(6, to, 80, 0xc2)), Some((6, port)), "SYN with ECN");
        assert_eq!(opens(block, &ip(6, to, 80, 0x10)), None, "ACK");
        assert_eq!(opens(block, &ip(6, to, 80, 0x12)), None, "SYN ACK");
        assert_eq!(opens(block, &ip(17, to, 80, 0)), Some((17, port)), "UDP");
        assert_eq!(opens(block, &ip(1, to, 80, 0)), None, "ICMP");
    }
    for to in [block.far(), block.servers().0, Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 251)] {
        assert_eq!(opens(block, &ip(6, to, 80, 0x02)), None, "{to}");
        assert_eq!(opens(block, &ip(17, to, 80, 0)), None, "{to}");
    }
    let whole = ip(6, world, 80, 0x02);
    (0..33).for_each(|len| assert_eq!(opens(block, &whole[..len]), None, "cut at {len}"));
}

#[test]
fn the_name_server_is_the_first_that_is_named() {
    let text = "# made by hand\nsearch a.example\nnameserver\t192.0.2.7 \nnameserver 192.0.2.8\n";
    assert_eq!(first_nameserver(text), Some(Ipv4Addr::new(192, 0, 2, 7).into()));
    assert_eq!(first_nameserver("nameserver ::1\n"), Some(std::net::Ipv6Addr::LOCALHOST.into()));
    assert_eq!(first_nameserver("options edns0\n"), None);
}
