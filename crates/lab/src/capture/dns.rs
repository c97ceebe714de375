//! Questions for names and their answers (RFC 1035 §4), as long as the virtual world has them: a question for addresses of
//! one family, and one or none in its answer.

use std::net::{IpAddr, Ipv4Addr};

use client::Family;

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

/// Which message of the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Says {
    /// The question.
    Question,
    /// Its answer: an address, or that there is none.
    Answer(Option<IpAddr>),
}

/// Set in the number of a question for addresses of IPv6, so that it is not that of the other one.
const ID_V6: u16 = 0x8000;

/// The message with the question for a name, or with its answer. `None` for what is no name: a label is 1–63 bytes (§2.3.4).
pub(super) fn message(id: u16, name: &str, family: Family, says: Says) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(64);
    let (flags, answer) = match says {
        Says::Question => (QUESTION, None),
        Says::Answer(address) => (ANSWER, address),
    };
    // An address: A, or AAAA (RFC 3596 §2.1).
    let (id, kind) = match family {
        Family::V4 => (id, 1),
        Family::V6 => (id | ID_V6, 28),
    };
    for word in [id, flags, 1, u16::from(answer.is_some()), 0, 0] {
        out.extend(word.to_be_bytes());
    }
    for label in name.split('.') {
        let len = u8::try_from(label.len()).ok().filter(|len| (1..=63).contains(len))?;
        out.push(len);
        out.extend_from_slice(label.as_bytes());
    }
    // The root; what is asked for, of the Internet.
    out.extend([0, 0, kind, 0, 1]);
    if let Some(address) = answer {
        // The name at byte 12.
        out.extend([0xc0, 12, 0, kind, 0, 1]);
        out.extend(TTL.to_be_bytes());
        match address {
            IpAddr::V4(address) => {
                out.extend([0, 4]);
                out.extend(address.octets());
            }
            IpAddr::V6(address) => {
                out.extend([0, 16]);
                out.extend(address.octets());
            }
        }
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
        let question = 12 + 2 + 4 + name.len();
        assert_eq!(message(1, name, Family::V4, Says::Question).unwrap().len(), question);
        let answer = message(1, name, Family::V4, Says::Answer(Some(Ipv4Addr::LOCALHOST.into()))).unwrap();
        assert_eq!(answer.len(), question + 16);
        assert!(answer.ends_with(&[0, 4, 127, 0, 0, 1]));
        let v6 = |says| message(1, name, Family::V6, says).unwrap();
        assert_eq!(v6(Says::Answer(Some(std::net::Ipv6Addr::LOCALHOST.into()))).len(), question + 28);
        let none = v6(Says::Answer(None));
        assert_eq!((none.len(), &none[..2], none[7]), (question, &[0x80, 1][..], 0));
        assert_eq!(message(1, "a..b", Family::V4, Says::Question), None);
    }
}
