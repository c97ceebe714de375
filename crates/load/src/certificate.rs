//! What a browser asks about servers' certificates, and of whom: the authorities' hosts and what they serve, beside the page.
//!
//! The pages do not tell who certified their hosts. What is taken instead is crude, and stated: one certificate for all hosts of one
//! registrable domain, as a wildcard; issued, by the hash of that domain, through the intermediate of one of [`AUTHORITIES`]; each
//! authority has one host for issuers' certificates and one responder, both as near as the access link's end, which answer at once and
//! close the connection after each answer, as the responder in the published time line of a handshake over 3G did.

use std::borrow::Cow;

use base::{Duration, Fields, RequestHead};
use client::Check;
use page::{Cause, Host, Kind, Page, Resource, ResourceId};

use crate::{Setup, Traffic, traffic};

/// How many authorities share the hosts. A few sold most certificates in 2012; four is a guess.
pub const AUTHORITIES: u64 = 4;

/// Bytes of an OCSP response with the responder's own certificate in it (RFC 6960 §4.2.2.2). A guess: 500 without, 1,000 for that.
pub const OCSP_LEN: u32 = 1_500;

/// Characters of an OCSP request in a GET (RFC 6960 appendix A.1): 83 bytes of DER for SHA-1 and a serial number of 16 bytes, in
/// base64.
const OCSP_PATH_LEN: usize = 112;

/// The end of every authority's names (RFC 2606: nobody has them).
const ZONE: &str = ".authority.example";

/// What is asked about certificates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Certificates {
    /// Whether each certificate below the root is still good, by OCSP.
    pub ocsp: bool,
    /// Whether servers leave their issuer's certificate out, so that it has to be fetched.
    pub chain: bool,
    /// Whether servers staple the answer to each of these questions, so that none is asked (RFC 8446 §4.4.2.1 for every certificate;
    /// before TLS 1.3 RFC 6066 §8 for the server's own and RFC 6961 for all, which few had: the best case).
    pub stapled: bool,
    /// Whether the client carries the certificate of the page's host: nothing is asked about that one.
    pub pinned: bool,
    /// How long an authority may take; see [`client::Config::check_patience`].
    pub patience: Duration,
}

impl Certificates {
    /// Nothing is asked.
    pub const UNASKED: Self = Self {
        ocsp: false,
        chain: false,
        stapled: false,
        pinned: false,
        patience: client::CHECK_PATIENCE_CHROME,
    };

    /// Whether the client looks at certificates before it lets a handshake end.
    pub fn asks(&self) -> bool {
        self.ocsp || self.chain
    }

    /// What of it the handshake itself shows: the servers' chain, staples, and that the client holds its flight back.
    pub fn apply(&self, tls: &mut tls::Config) {
        tls.verify = self.asks();
        if self.stapled {
            tls.ocsp_len = OCSP_LEN * tls.chain_certs;
        }
        if self.chain {
            tls.chain_len -= issuer_len(tls);
            tls.chain_certs = 1;
        }
    }
}

/// Bytes of the issuer's certificate: an equal share of a chain that is complete.
fn issuer_len(tls: &tls::Config) -> u32 {
    tls.chain_len / tls.chain_certs.max(1)
}

/// What there is to ask, and about whom.
#[derive(Default)]
struct Questions {
    /// The hosts that answer, beyond the page's.
    hosts: Vec<Host>,
    /// What they serve, beyond the page's, with whether nothing can be checked without it.
    resources: Vec<(Resource, bool)>,
    /// For every host of the page, its questions in their order: places in `resources`.
    of_host: Vec<Vec<usize>>,
}

impl Questions {
    fn new(setup: &Setup, page: &Page) -> Self {
        let own: Vec<&Host> = page.hosts.iter().filter(|host| !is_beside(host)).collect();
        let mut out = Self { of_host: vec![Vec::new(); own.len()], ..Self::default() };
        let certificates = setup.techniques.certificates;
        let Some(tls) = setup.tls.as_ref().filter(|tls| certificates.asks() && tls.mode.has_certificate())
        else {
            return out;
        };
        let pinned = page
            .resources
            .first()
            .map(|root| client::registrable_domain(&page.hosts[root.host as usize].name));
        for (id, host) in own.into_iter().enumerate() {
            let name = client::registrable_domain(&host.name);
            if !setup.secures(host) || (certificates.pinned && pinned == Some(name)) {
                continue;
            }
            let authority = base::rng::derive(0, name.as_bytes()) % AUTHORITIES;
            if certificates.chain {
                // What the server sends is its own certificate alone; the issuer's is as long.
                out.ask(id, authority, Question::Issuer(tls.chain_len));
            }
            if certificates.ocsp && !certificates.stapled {
                out.ask(id, authority, Question::Status(name));
                out.ask(id, authority, Question::Status("the issuer"));
            }
        }
        out
    }

    fn ask(&mut self, host: usize, authority: u64, question: Question<'_>) {
        let (name, resource, is_needed) = match question {
            Question::Issuer(body_len) => {
                let path = "/issuer.crt".to_owned();
                (
                    format!("aia-{authority}{ZONE}"),
                    Resource { body_len: body_len.into(), ..served(path) },
                    true,
                )
            }
            Question::Status(of) => {
                let path = format!("/{}", identifier(authority, of));
                let body_len = OCSP_LEN.into();
                (format!("ocsp-{authority}{ZONE}"), Resource { body_len, ..served(path) }, false)
            }
        };
        let known = self.hosts.iter().position(|h| h.name == name);
        let at = known.unwrap_or_else(|| {
            self.hosts.push(Host::new(name));
            self.hosts.len() - 1
        });
        let resource = Resource { host: (self.of_host.len() + at) as u32, ..resource };
        let known =
            self.resources.iter().position(|(r, _)| r.host == resource.host && r.path == resource.path);
        let question = known.unwrap_or_else(|| {
            self.resources.push((resource, is_needed));
            self.resources.len() - 1
        });
        self.of_host[host].push(question);
    }
}

/// What an authority is asked.
enum Question<'a> {
    /// For its intermediate certificate, of so many bytes.
    Issuer(u32),
    /// Whether a certificate is still good: whose.
    Status(&'a str),
}

/// An answer of an authority.
fn served(path: String) -> Resource {
    let mut resource = Resource::get(path, Kind::Other, Cause::Beside);
    resource.after_load = true;
    resource.response = Fields::new();
    resource.response.push("Connection", "close");
    resource
}

/// What stands for an OCSP request in a URL: as long as one, and different for each certificate.
fn identifier(authority: u64, certificate: &str) -> String {
    let mut out = String::with_capacity(OCSP_PATH_LEN + 16);
    let mut print = base::rng::derive(authority, certificate.as_bytes());
    while out.len() < OCSP_PATH_LEN {
        out.push_str(&format!("{print:016x}"));
        print = base::rng::derive(print, b"more");
    }
    out.truncate(OCSP_PATH_LEN);
    out
}

impl Setup {
    /// `page` with what this setup adds to it that is no part of it: [the pages behind it](Setup::with_tabs); behind all hosts those of
    /// authorities and of [`Traffic`](crate::Traffic), and behind all resources what these are asked. As it is, if there is nothing of
    /// the kind. A world loads this, and its [`Load`](crate::Load) speaks of it; to furnish a page twice adds nothing.
    pub fn furnish<'p>(&self, page: &'p Page) -> Cow<'p, Page> {
        let traffic = self.techniques.traffic;
        if page.hosts.iter().any(is_beside) {
            return Cow::Borrowed(page);
        }
        let page = self.with_tabs(page);
        let Questions { hosts, resources, .. } = Questions::new(self, &page);
        if resources.is_empty() && traffic.is_none() {
            return page;
        }
        let mut page = page.into_owned();
        page.hosts.extend(hosts);
        page.resources.extend(resources.into_iter().map(|(resource, _)| resource));
        if let Some(traffic) = traffic {
            let asked = traffic.resources(page.hosts.len() as u32, self.give_up);
            page.hosts.push(Traffic::host());
            page.resources.extend(asked.into_iter().map(|(_, resource)| resource));
        }
        Cow::Owned(page)
    }

    /// What a furnished page's traffic asks for, and when: the last of its resources.
    pub(crate) fn traffic(&self, page: &Page) -> Vec<(Duration, ResourceId)> {
        let host = page.hosts.iter().position(|host| host.name == traffic::HOST);
        let Some((host, traffic)) = host.zip(self.techniques.traffic) else { return Vec::new() };
        let asked = traffic.resources(host as u32, self.give_up);
        let first = (page.resources.len() - asked.len()) as ResourceId;
        asked.into_iter().zip(first..).map(|((at, _), id)| (at, id)).collect()
    }

    /// What the client is to ask about the certificates of a furnished page's hosts, and which of it for each host.
    pub(crate) fn checks(&self, page: &Page) -> (Vec<Check>, Vec<Vec<usize>>) {
        let Questions { resources, of_host, .. } = Questions::new(self, page);
        if !page.hosts.iter().any(is_beside) {
            return Default::default(); // nothing is asked, or the page is not furnished
        }
        let first = page.resources.len() - self.traffic(page).len() - resources.len();
        let check = |(id, (resource, is_needed)): (usize, (Resource, bool))| {
            let host = page.host(&resource);
            let head = RequestHead {
                method: resource.method.clone(),
                scheme: host.scheme().into(),
                authority: host.authority().into(),
                path: resource.path.clone(),
                fields: resource.request.clone(),
            };
            let request = (first + id) as ResourceId;
            let is_known = self.memory.checked.contains(&page.resource_url(request));
            Check { request, host: resource.host, head, is_needed, is_known }
        };
        (resources.into_iter().enumerate().map(check).collect(), of_host)
    }
}

/// Whether a host is none of the page's own, but of what a setup adds.
pub(crate) fn is_beside(host: &Host) -> bool {
    host.name.ends_with(ZONE) || host.name == traffic::HOST
}
