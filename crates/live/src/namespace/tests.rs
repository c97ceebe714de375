//! Blocks of addresses. What needs the kernel's leave is tested through the program, in `crates/cli/tests`.

use super::*;

fn block(text: &str) -> Block {
    text.parse().unwrap()
}

#[test]
fn the_whole_block_is_that_of_rfc_6598() {
    assert_eq!(Block::WHOLE.to_string(), "100.64.0.0/10");
    assert_eq!(block("100.64.0.0/10"), Block::WHOLE);
    assert_eq!(Block::WHOLE.near().to_string(), "100.64.0.2");
    assert_eq!(Block::WHOLE.servers(), ("100.66.0.0".parse().unwrap(), 15));
}

/// The own part of a block and the blocks of its children do not overlap, at any depth.
#[test]
fn links_within_links_have_addresses_of_their_own() {
    fn ranges(block: Block, out: &mut Vec<(u32, u32)>) -> u32 {
        let own = 1u32 << (32 - block.prefix - Block::DEPTH_BITS);
        out.push((block.base, block.base + own));
        let (servers, prefix) = block.servers();
        let end = u32::from(servers) + (1 << (32 - prefix));
        assert!(u32::from(servers) > u32::from(block.dns()) && end <= block.base + own);
        1 + (1..=15).filter_map(|n| block.child(n)).map(|child| ranges(child, out)).max().unwrap_or(0)
    }
    let mut all = Vec::new();
    assert_eq!(ranges(Block::WHOLE, &mut all), 3, "a link in a link in a link");
    all.sort_unstable();
    assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    assert!(all.iter().all(|(from, to)| *from >= 0x6440_0000 && *to <= 0x6480_0000));
    assert_eq!((Block::WHOLE.child(0), Block::WHOLE.child(16)), (None, None));
}

#[test]
fn what_is_not_of_a_block_is_all_the_rest() {
    for block in
        [Block::WHOLE, Block::WHOLE.child(3).unwrap(), Block::WHOLE.child(15).unwrap().child(1).unwrap()]
    {
        let others: Vec<_> = block.others().collect();
        let size: u64 = others.iter().map(|(_, prefix)| 1u64 << (32 - prefix)).sum();
        assert_eq!(size + (1 << (32 - block.range().1)), 1 << 32);
        for (base, prefix) in others {
            let last = Ipv4Addr::from(u32::from(base) | ((1u64 << (32 - prefix)) - 1) as u32);
            assert!(!block.contains(base) && !block.contains(last), "{base}/{prefix}");
        }
        assert!(block.contains(block.near()) && block.contains(block.dns()));
    }
}

#[test]
fn an_error_names_the_remedy_in_one_line() {
    let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
    let errors = [
        Error::NoUserNamespaces { source: denied(), remedy: remedy() },
        Error::NoTun { source: io::ErrorKind::NotFound.into() },
        Error::NoTun { source: denied() },
        Error::Threads,
        Error::Taken,
        Error::NoIpv6 { remedy: "boot it otherwise" },
        Error::Refused { what: "add a route", source: denied() },
    ];
    for error in errors {
        let text = error.to_string();
        assert!(text.len() > 20 && !text.contains('\n'), "{text}");
    }
}

/// The right to make networks; `None` where this system does not give it, which is said, and in CI is a failure. In a user's own
/// namespace the test harness, which has threads, does not get it; the same is then tested through the program only.
pub(crate) fn privilege() -> Option<Privilege> {
    match Privilege::acquire() {
        Ok(privilege) => Some(privilege),
        Err(e) => {
            let why = format!("this needs the capabilities SYS_ADMIN and NET_ADMIN: {e}");
            assert!(std::env::var_os("CI").is_none(), "in CI this has to run: {why}");
            println!("skipped: {why}");
            None
        }
    }
}

/// Runs what needs a network of one's own, if there can be one.
fn with_privilege(test: impl FnOnce(Privilege)) {
    if let Some(privilege) = privilege() {
        test(privilege);
    }
}

#[test]
fn a_route_says_how_tcp_begins_and_the_kernel_says_it_back() {
    with_privilege(|privilege| {
        let net = Net::new(privilege).unwrap();
        let address: IpAddr = "100.66.0.7".parse().unwrap();
        let tcp = TcpMetrics {
            initial_cwnd: Some(32),
            initial_rwnd: Some(44),
            window: Some(100_000),
            congestion: Some("reno".to_owned()),
            rto_min: Some(base::Duration::from_millis(40)),
            quick_ack: true,
        };
        let device = TunConfig {
            name: "t%d".to_owned(),
            address: "100.64.0.2".parse().unwrap(),
            peer: "100.64.0.1".parse().unwrap(),
            ipv6: None,
            mtu: 1_500,
            offload: false,
        };
        let tun = net.tun(&device).unwrap();
        net.route(&Route::new((address, 32), tun.name()).with_tcp(tcp.clone())).unwrap();
        assert_eq!(net.tcp_to(address, None).unwrap(), tcp);
        assert_eq!(net.tcp_to(device.peer.into(), None).unwrap(), TcpMetrics::default());
        // The route to the peer came with the device and is replaced.
        let slow_start = TcpMetrics { initial_cwnd: Some(3), ..TcpMetrics::default() };
        net.route(&Route::new((device.peer, 32), tun.name()).with_tcp(slow_start.clone())).unwrap();
        assert_eq!(net.tcp_to(device.peer.into(), None).unwrap(), slow_start);
        // One of the network's own addresses may have a route of its own; asked for again, it is replaced.
        for segments in [30, 40] {
            let wide = TcpMetrics { initial_cwnd: Some(segments), ..TcpMetrics::default() };
            let route = Route::new((device.peer, 32), tun.name()).with_tcp(wide.clone());
            net.route(&route.only_from(device.address.into())).unwrap();
            assert_eq!(net.tcp_to(device.peer.into(), Some(device.address.into())).unwrap(), wide);
        }
        assert_eq!(net.tcp_to(device.peer.into(), None).unwrap(), slow_start);
    });
}

#[test]
fn a_setting_is_the_networks_own_and_no_path_leads_out() {
    with_privilege(|privilege| {
        let (one, other) = (Net::new(privilege).unwrap(), Net::new(privilege).unwrap());
        let name = "ipv4/tcp_slow_start_after_idle";
        one.set(name, "0").unwrap();
        other.set(name, "1").unwrap();
        assert_eq!((one.setting(name).unwrap(), other.setting(name).unwrap()), ("0".into(), "1".into()));
        assert!(one.set("../kernel/hostname", "x").is_err());
        assert!(one.setting("ipv4/no_such_thing").is_err());
    });
}
