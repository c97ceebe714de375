//! Questions for names and their answers (RFC 1035 §4), as long as the virtual world has them: one question for an address, one answer.

use std::net::Ipv4Addr;

/// The resolver that the client asks: where the access link ends.
pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 1);
pub(super) const PORT: u16 = 53;
/// Below the ports of connections.
pub(super) const CLIENT_PORT: u16 = 49_151;

/// Seconds for which an answer holds: no load is so long.
const TTL: u32 = 3_600;

/// Recursion desired; in an answer also response, and recursion available.
const QUESTION: u16 = 0x0100;
const ANSWER: u16 = 0x8180;

/// The message with the question for a name, or with its answer. `None` for what is no name: a label is 1–63 bytes (§2.3.4).
pub(super) fn message(id: u16, name: &str, answer: Option<Ipv4Addr>) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(64);
    let flags = if answer.is_some() { ANSWER } else { QUESTION };
    for word in [id, flags, 1, u16::from(answer.is_some()), 0, 0] {
        out.extend(word.to_be_bytes());
    }
    for label in name.split('.') {
        let len = u8::try_from(label.len()).ok().filter(|len| (1..=63).contains(len))?;
        out.push(len);
        out.extend_from_slice(label.as_bytes());
    }
    // The root; an address (A), of the Internet.
    out.extend([0, 0, 1, 0, 1]);
    if let Some(address) = answer {
        // The name at byte 12.
        out.extend([0xc0, 12, 0, 1, 0, 1]);
        out.extend(TTL.to_be_bytes());
        out.extend([0, 4]);
        out.extend(address.octets());
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_as_long_as_the_link_has_them() {
        let name = "www.example.org";
        // 20 of IPv4 and 8 of UDP are around them; sim::names has the sums.
        assert_eq!(message(1, name, None).unwrap().len(), 12 + 2 + 4 + name.len());
        let answer = message(1, name, Some(Ipv4Addr::LOCALHOST)).unwrap();
        assert_eq!(answer.len(), 12 + 2 + 4 + name.len() + 16);
        assert!(answer.ends_with(&[0, 4, 127, 0, 0, 1]));
        assert_eq!(message(1, "a..b", None), None);
    }
}
