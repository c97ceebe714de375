//! What a browser may do beyond the rules of its time, and what it remembers of earlier visits.

use std::collections::BTreeSet;

use base::Duration;
use client::{
    Deployment, Handshakes, HappyEyeballs, HostState, LearnedRow, Ownership, Pipelining, Preconnect, Racing,
    Retry, Stalled, SuccessorRow, Timeouts, Transport,
};
use page::Page;

use crate::certificate::is_beside;
use crate::{Certificates, Traffic};

/// The client's techniques. Whether TLS starts falsely is its own configuration's: [`tls::Config::false_start`].
#[derive(Clone, PartialEq, Debug)]
pub struct Techniques {
    /// What is opened before it is asked for.
    pub preconnect: Preconnect,
    /// Whether a connection that takes long gets a second one beside it.
    pub racing: Racing,
    /// How a host with addresses of both families is connected to.
    pub happy_eyeballs: Option<HappyEyeballs>,
    /// How TLS handshakes of several connections to one host go.
    pub handshakes: Handshakes,
    /// Whether requests follow each other on HTTP/1.1 connections.
    pub pipelining: Option<Pipelining>,
    /// What is done about answers that do not come.
    pub retry: Retry,
    /// How long the client waits for a peer, and keeps what nobody uses.
    pub timeouts: Timeouts,
    /// Which hosts speak the transport; the others speak HTTP/1.1.
    pub deployment: Deployment,
    /// What is asked about servers' certificates. The handshakes' part in it is [`Certificates::apply`]'s.
    pub certificates: Certificates,
    /// How long before this load the page was loaded into the browser's cache; `None` for a first visit. See
    /// [`browser::Browser::revisit`].
    pub revisit: Option<Duration>,
    /// What else uses the access link.
    pub traffic: Option<Traffic>,
    /// Whether a party's hosts share an address and a certificate, and the client a session for them where they also share a port
    /// and TLS (SPDY/3 §2.6.9). Whose a host is, [`Techniques::owners`] says.
    pub pooling: bool,
    /// Hosts that are one party's, beside those of one registrable domain.
    pub owners: Ownership,
    /// Whether SPDY servers push with a document what it is sure to need of its host:
    /// [`origin::Recording::with_automatic_pushes`].
    pub push: bool,
    /// Whether servers name, in the head of a document, what it will need of its party's hosts, in which field, and the client asks for
    /// it at once: [`Setup::foresee`](crate::Setup::foresee).
    pub hints: Option<page::hint::Form>,
    /// Whether the client asks, with a document, for what it knows of an earlier visit that it needs: [`Memory::pages`].
    pub prefetch: bool,
    /// Whether SPDY servers have the client keep their congestion window and begin the next session with it, and with how many segments
    /// at most: [`origin::Connection::with_kept_cwnd`].
    pub kept_cwnd: Option<u32>,
    /// Whether the page stops reading what it plays.
    pub pause: Option<browser::Pause>,
    /// What the client does about that on a SPDY session without flow control.
    pub stalled: Stalled,
}

impl Default for Techniques {
    /// None: what [`client::Config::new`] has.
    fn default() -> Self {
        Self {
            preconnect: Preconnect::None,
            racing: Racing::OFF,
            happy_eyeballs: None,
            handshakes: Handshakes::Parallel,
            pipelining: None,
            retry: Retry::CHROME,
            timeouts: Timeouts::NONE,
            deployment: Deployment::Everywhere,
            certificates: Certificates::UNASKED,
            revisit: None,
            traffic: None,
            pooling: false,
            owners: Ownership::default(),
            push: false,
            hints: None,
            prefetch: false,
            kept_cwnd: None,
            pause: None,
            stalled: Stalled::default(),
        }
    }
}

impl Techniques {
    /// Puts them into a client's configuration. Which hosts are upgraded is not in it: see [`Techniques::transport`]; nor is the cache, which is
    /// the browser's.
    pub fn apply(&self, config: &mut client::Config) {
        config.preconnect = self.preconnect;
        config.racing = self.racing;
        config.happy_eyeballs = self.happy_eyeballs;
        config.handshakes = self.handshakes;
        config.pipelining = self.pipelining;
        config.retry = self.retry;
        config.timeouts = self.timeouts;
        config.check_patience = self.certificates.patience;
        config.pooling = self.pooling;
        config.stalled = self.stalled;
    }

    /// What carries the requests of a host of `page` in a load over `transport`.
    pub fn transport(&self, page: &Page, host: &page::Host, transport: Transport) -> Transport {
        let main = page.resources.first().map_or("", |r| page.hosts[r.host as usize].name.as_str());
        let upgraded = self.deployment.includes(main, &host.name) && !is_beside(host);
        if upgraded { transport } else { Transport::Http1 }
    }
}

/// What a browser keeps of a visit for the next.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Memory {
    /// What [`Preconnect::Learned`] goes by.
    pub learned: Vec<LearnedRow>,
    /// What [`Preconnect::Successor`] goes by.
    pub successor: Vec<SuccessorRow>,
    /// What authorities have answered, by its URL: it is good for days (RFC 6960 §2.4), and browsers keep it as long.
    pub checked: BTreeSet<String>,
    /// What pipelining goes by: hosts that it knows something of.
    pub pipelining: Vec<HostStanding>,
    /// What [`Techniques::prefetch`] goes by: what pages needed when they were last visited, a row a page, in the order of first visits.
    /// Kept only where it is on.
    pub pages: Vec<KnownPage>,
    /// What SPDY servers have had the client keep, a row a host: nothing without [`Techniques::kept_cwnd`].
    pub settings: Vec<KeptSettings>,
}

/// What a SPDY server has had the client keep (SPDY/3 §2.6.4).
#[derive(Clone, PartialEq, Debug)]
pub struct KeptSettings {
    /// Scheme, name and port, as a URL shows them.
    pub host: String,
    /// As the next session brings it back.
    pub settings: Vec<spdy::frame::Setting>,
}

/// What a page needed when it was last visited.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownPage {
    /// Its URL, where the navigation began.
    pub url: String,
    /// URLs, in the order in which they were needed.
    pub resources: Vec<browser::Known>,
}

/// What pipelining has learned of a host.
#[derive(Clone, PartialEq, Debug)]
pub struct HostStanding {
    /// Scheme, name and port, as a URL shows them.
    pub host: String,
    /// What it has learned.
    pub state: HostState,
}

impl HostStanding {
    /// A host of which nothing but good is known: it has passed its trial.
    pub fn green(host: &page::Host) -> Self {
        Self { host: crate::setup::origin_of(host), state: HostState::green() }
    }
}
