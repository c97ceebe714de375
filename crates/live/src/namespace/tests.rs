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
fn an_error_names_the_remedy_in_one_line() {
    let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
    let errors = [
        Error::NoUserNamespaces { source: denied(), remedy: remedy() },
        Error::NoTun { source: io::ErrorKind::NotFound.into() },
        Error::NoTun { source: denied() },
        Error::Threads,
        Error::Refused { what: "add a route", source: denied() },
    ];
    for error in errors {
        let text = error.to_string();
        assert!(text.len() > 20 && !text.contains('\n'), "{text}");
    }
}
