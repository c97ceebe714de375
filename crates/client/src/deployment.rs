//! Which hosts of a page speak the new protocol, while the others do not: the years in which it spread.
//!
//! "First party" is what a site's owner controls. The registrable domain is a first guess at it, and a poor one: the pictures
//! of `ebay.com` come from `ebayimg.com`. Whoever runs an experiment supplies lists of who owns what; for what is in none of
//! them, the guess holds.

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

/// The domain that was registered for a host: its last two labels, or three where the last is a country's and the one before says
/// for whom names are registered there (`bbc.co.uk`). That is crude: the public suffix list knows thousands of exceptions, so that
/// `a.github.io` and `b.github.io` are taken for one party here. [`Ownership`] sets such cases right. An address is its own.
pub fn registrable_domain(host: &str) -> &str {
    const FOR_WHOM: [&str; 12] =
        ["ac", "co", "com", "edu", "go", "gob", "gov", "ne", "net", "nom", "or", "org"];
    if host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok() {
        return host;
    }
    let mut labels = host.rsplit('.');
    let (last, second) = (labels.next().unwrap_or_default(), labels.next().unwrap_or_default());
    let of_country = last.len() == 2 && FOR_WHOM.iter().any(|w| second.eq_ignore_ascii_case(w));
    let dots = if of_country { 3 } else { 2 };
    host.rmatch_indices('.').nth(dots - 1).map_or(host, |(at, _)| &host[at + 1..])
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

    #[test]
    fn the_registrable_domain_has_two_labels_or_three_under_a_country() {
        for (host, domain) in [
            ("www.cnn.com", "cnn.com"),
            ("cnn.com", "cnn.com"),
            ("i.cdn.turner.com", "turner.com"),
            ("www.bbc.co.uk", "bbc.co.uk"),
            ("bbc.co.uk", "bbc.co.uk"),
            ("a.b.example.de", "example.de"),
            ("localhost", "localhost"),
            ("192.0.2.1", "192.0.2.1"),
            ("[2001:db8::1]", "[2001:db8::1]"),
        ] {
            assert_eq!(registrable_domain(host), domain);
        }
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
