//! Which hosts of a page speak the new protocol, while the others do not: the years in which it spread.
//!
//! "First party" is what a site's owner controls. The registrable domain is a first guess at it, and a poor one: the pictures
//! of `ebay.com` come from `ebayimg.com`. Whoever runs an experiment supplies lists of who owns what; for what is in none of
//! them, the guess holds.

use std::borrow::Cow;

/// Domains that belong together.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Ownership {
    /// For each owner, its domains: `google.com` stands for itself and all below it.
    pub owners: Vec<Vec<String>>,
}

impl Ownership {
    /// Which of [`Ownership::owners`] a host belongs to: the one with the longest domain that it is in.
    pub fn owner(&self, host: &str) -> Option<usize> {
        let domains = self.owners.iter().enumerate().flat_map(|(i, o)| o.iter().map(move |d| (i, d)));
        let within = domains.filter(|(_, domain)| is_within(host, domain));
        within.max_by_key(|(i, domain)| (domain.len(), std::cmp::Reverse(*i))).map(|(i, _)| i)
    }

    /// Whether two hosts are one party's: an owner's, or, where neither has one, of one [`registrable_domain`].
    pub fn are_one(&self, a: &str, b: &str) -> bool {
        match (self.owner(a), self.owner(b)) {
            (None, None) => registrable_domain(a).eq_ignore_ascii_case(registrable_domain(b)),
            (a, b) => a == b,
        }
    }
}

/// The domain that was registered for a host: its public suffix and one label more, by the public suffix list
/// (<https://publicsuffix.org/list/>), as it is compiled in. Of a domain that the list does not know, the last label is the suffix. A
/// public suffix, a single label and an address are their own.
///
/// Both parts of the list count: what ICANN's registries hand out (`co.uk`), and what others do below a domain of theirs (`github.io`),
/// since whoever registers a name below either is a party of their own, with their own pages and cookies; it is what browsers call a
/// site. The servers below a private suffix may be one company's all the same: where that matters, [`Ownership`] says so.
pub fn registrable_domain(host: &str) -> &str {
    if host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok() {
        return host;
    }
    // The list is in lower case, and looked up as it is.
    let lower = match host.bytes().any(|b| b.is_ascii_uppercase()) {
        true => Cow::Owned(host.to_ascii_lowercase()),
        false => Cow::Borrowed(host),
    };
    let domain = psl::domain(lower.as_bytes());
    let len = domain.map_or(host.len(), |domain| domain.as_bytes().len());
    host.get(host.len() - len..).unwrap_or(host)
}

/// Whether `host` is `domain` or a name below it.
fn is_within(host: &str, domain: &str) -> bool {
    let Some(at) = host.len().checked_sub(domain.len()) else { return false };
    let Some((above, tail)) = host.split_at_checked(at) else { return false };
    tail.eq_ignore_ascii_case(domain) && (above.is_empty() || above.ends_with('.'))
}

/// Who has upgraded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Deployment {
    /// Everybody.
    Everywhere,
    /// The page's host alone.
    PageHost,
    /// The page host's party; see [`Ownership::are_one`].
    FirstParty(Ownership),
    /// These hosts.
    Hosts(Vec<String>),
}

impl Deployment {
    /// Whether `host` has upgraded, seen from a page of `page_host`.
    pub fn includes(&self, page_host: &str, host: &str) -> bool {
        match self {
            Deployment::Everywhere => true,
            Deployment::PageHost => host.eq_ignore_ascii_case(page_host),
            Deployment::FirstParty(ownership) => ownership.are_one(page_host, host),
            Deployment::Hosts(hosts) => hosts.iter().any(|h| h.eq_ignore_ascii_case(host)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners() -> Ownership {
        let domains = |list: &[&str]| list.iter().map(|d| d.to_string()).collect();
        Ownership {
            owners: vec![domains(&["ebay.com", "ebayimg.com", "ebaystatic.com"]), domains(&["2mdn.net"])],
        }
    }

    #[test]
    fn a_host_belongs_to_the_owner_of_its_domain_and_not_of_one_that_ends_alike() {
        assert_eq!(owners().owner("i.ebayimg.com"), Some(0));
        assert_eq!(owners().owner("EBAY.com"), Some(0));
        assert_eq!(owners().owner("s0.2mdn.net"), Some(1));
        assert_eq!(owners().owner("notebay.com"), None);
        assert_eq!(owners().owner("com"), None);
    }

    #[test]
    fn the_longest_domain_decides() {
        let owners = Ownership { owners: vec![vec!["co.example".into()], vec!["cdn.co.example".into()]] };
        assert_eq!(owners.owner("a.cdn.co.example"), Some(1));
        assert_eq!(owners.owner("www.co.example"), Some(0));
    }

    #[track_caller]
    fn registrable(cases: &[(&str, &str)]) {
        for (host, domain) in cases {
            assert_eq!(registrable_domain(host), *domain);
        }
    }

    #[test]
    fn the_registrable_domain_is_the_public_suffix_and_one_label_more() {
        registrable(&[
            ("www.cnn.com", "cnn.com"),
            ("cnn.com", "cnn.com"),
            ("i.cdn.turner.com", "turner.com"),
            ("a.b.example.de", "example.de"),
            ("www.bbc.co.uk", "bbc.co.uk"),
            ("bbc.co.uk", "bbc.co.uk"),
            ("static.shop.com.au", "shop.com.au"),
            ("WWW.BBC.CO.UK", "BBC.CO.UK"),
            // A rule with a wildcard, and its exception.
            ("a.b.c.ck", "b.c.ck"),
            ("a.www.ck", "www.ck"),
            // What the list does not know has a suffix of one label.
            ("www.site-0001.example", "site-0001.example"),
            // The same rule in the letters of IDNA.
            ("www.a.xn--55qx5d.cn", "a.xn--55qx5d.cn"),
            ("www.example.com.", "example.com."),
        ]);
    }

    #[test]
    fn below_a_private_suffix_everybody_is_a_party_of_their_own() {
        registrable(&[("www.a.github.io", "a.github.io"), ("d111.cloudfront.net", "d111.cloudfront.net")]);
        let nobody = Ownership::default();
        assert!(!nobody.are_one("a.github.io", "b.github.io"));
        assert!(nobody.are_one("www.a.github.io", "a.github.io"));
        let hosted = Ownership { owners: vec![vec!["github.io".into()]] };
        assert!(hosted.are_one("a.github.io", "b.github.io"), "whose list says so");
    }

    #[test]
    fn a_suffix_a_single_label_and_an_address_are_their_own_party() {
        let own = [
            "co.uk",
            "github.io",
            "com",
            "localhost",
            "192.0.2.1",
            "[2001:db8::1]",
            "2001:db8::1",
            "",
            ".",
            "a..b",
        ];
        for host in own {
            assert!(host.ends_with(registrable_domain(host)), "{host:?}");
        }
        registrable(&own[..8].iter().map(|host| (*host, *host)).collect::<Vec<_>>());
        let nobody = Ownership::default();
        assert!(!nobody.are_one("192.0.2.1", "198.51.2.1") && !nobody.are_one("a.co.uk", "b.co.uk"));
    }

    #[test]
    fn hosts_are_one_partys_by_owner_or_else_by_domain() {
        let owners = owners();
        assert!(owners.are_one("i.ebayimg.com", "www.ebay.com"));
        assert!(owners.are_one("a.strangers.example", "B.Strangers.example"));
        assert!(!owners.are_one("a.strangers.example", "www.ebay.com"));
        assert!(!Ownership::default().are_one("i.ebayimg.com", "www.ebay.com"), "no list, no way to know");
    }

    #[test]
    fn first_party_hosts_upgrade_together_and_the_page_host_by_itself() {
        let first_party = Deployment::FirstParty(owners());
        let includes = |deployment: &Deployment, host| deployment.includes("www.ebay.com", host);
        assert!(includes(&first_party, "thumbs.ebaystatic.com") && !includes(&first_party, "s0.2mdn.net"));
        assert!(first_party.includes("nobody.example", "nobody.example"));
        assert!(
            !first_party.includes("nobody.example", "other.example"),
            "without an owner they are strangers"
        );
        assert!(includes(&Deployment::PageHost, "www.ebay.com"));
        assert!(!includes(&Deployment::PageHost, "i.ebayimg.com"));
        assert!(includes(&Deployment::Everywhere, "s0.2mdn.net"));
        assert!(includes(&Deployment::Hosts(vec!["s0.2mdn.net".into()]), "s0.2mdn.net"));
    }
}
