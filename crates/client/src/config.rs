//! What the client is told before it begins: rules and constants, and the hosts it may talk to.

use base::Duration;

use crate::{
    CHECK_PATIENCE_CHROME, Handshakes, HappyEyeballs, Pipelining, Preconnect, Racing, Retry, Stalled,
    Timeouts, Transport,
};

/// What the client is configured with.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// What carries the requests of every host.
    pub transport: Transport,
    /// HTTP/1.1 connections a host at most. Browsers since 2008: 6.
    pub connections_per_host: usize,
    /// Connections in all at most. Chrome: 256.
    pub connections_max: usize,
    /// How often a request is sent at most, counting the first time. Chrome: 2. At least 1.
    pub attempts_max: u32,
    /// The SPDY session's own settings, where SPDY is spoken. PINGs that keep a session alive are not supported here.
    pub spdy: spdy::Config,
    /// How long it waits for a peer, and keeps what nobody uses. [`Timeouts::NONE`] unless set; browsers':
    /// [`Timeouts::CHROME`].
    pub timeouts: Timeouts,
    /// Whether a connection that takes long gets a second one beside it. [`Racing::OFF`] unless set.
    pub racing: Racing,
    /// How a host of which the client knows several addresses is connected to. `None`, unless set: at the first one.
    pub happy_eyeballs: Option<HappyEyeballs>,
    /// What is opened before it is asked for. Nothing unless set; see [`Client::navigate`](crate::Client::navigate).
    pub preconnect: Preconnect,
    /// How TLS handshakes of several connections to one host go. In parallel unless set.
    pub handshakes: Handshakes,
    /// Whether a session serves other hosts that share its address and certificate; see [`HostFacts`]. No unless set.
    pub pooling: bool,
    /// What is done about answers that do not come. [`Retry::CHROME`] unless set.
    pub retry: Retry,
    /// Whether requests follow each other on HTTP/1.1 connections. No unless set.
    pub pipelining: Option<Pipelining>,
    /// How long an authority may take to answer about a certificate; see [`Check`](crate::Check).
    /// [`CHECK_PATIENCE_CHROME`] unless set.
    pub check_patience: Duration,
    /// What is done about a stream that nobody reads, on a session without flow control.
    pub stalled: Stalled,
    /// Whether [`Client::progress`](crate::Client::progress) is kept. No unless set.
    pub keeps_progress: bool,
}

impl Config {
    /// Chrome's constants of around 2012 for `transport`.
    pub fn new(transport: Transport) -> Self {
        let version = transport.spdy_version().unwrap_or(spdy::Version::V3_1);
        Self {
            transport,
            connections_per_host: 6,
            connections_max: 256,
            attempts_max: 2,
            spdy: spdy::Config { keep_alive: None, ..spdy::Config::chrome_2013(version) },
            timeouts: Timeouts::NONE,
            racing: Racing::OFF,
            happy_eyeballs: None,
            preconnect: Preconnect::None,
            handshakes: Handshakes::Parallel,
            pooling: false,
            retry: Retry::CHROME,
            pipelining: None,
            check_patience: CHECK_PATIENCE_CHROME,
            stalled: Stalled::default(),
            keeps_progress: false,
        }
    }
}

/// A host that requests may name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// The name to resolve. Hosts that differ only in scheme or port share a look-up.
    pub name: String,
    /// Whether its connections are secured by TLS.
    pub tls: bool,
}

/// What may be known of a host besides its name; see [`Client::describe`](crate::Client::describe).
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HostFacts {
    /// The addresses that its name has, in the order of preference (RFC 6724). Hosts with one name share them.
    pub addresses: Vec<std::net::IpAddr>,
    /// What carries its requests, if that is not [`Config::transport`].
    pub transport: Option<Transport>,
    /// Its port, if hosts that differ in it alone are to be told apart in what is learned.
    pub port: Option<u16>,
    /// A number for its certificate: hosts with one number show one certificate, good for all of them.
    pub certificate: Option<u32>,
    /// What is to be asked about its certificate, in this order: places in the list given to
    /// [`Client::set_checks`](crate::Client::set_checks).
    pub checks: Vec<usize>,
    /// It is none of the page's: nothing is expected of it, and nothing learned about it.
    pub aside: bool,
}
