//! Techniques that made browsers faster, as switches: how each is written in a plan and on a command line, what it needs, and
//! what it makes of a load's setup.
//!
//! A plan without any is a browser with the rules of its time. What a switch means is the crates' that have the technique:
//! `client`, `load` for certificates, `spdy` for its features, `origin` for what is pushed, and `tls` for False Start; their
//! documentation cites the sources of the constants.
//!
//! # What a browser remembers
//!
//! A predictor that has seen nothing predicts nothing, so a load with one is not the page's first: the page has been visited
//! [`VISITS`] times before, or as often as `visits=N` says. Each of those visits is a load in the virtual world, cold but for
//! what the predictor has learned, with a seed that follows from the measured load's. So what is remembered depends on the page,
//! the network, the transport and the seed alone, and on neither the order of loads nor the number of threads; and it is the
//! same for a live load as for a virtual one. Nothing breaks at those visits.
//!
//! Each visit is of a run of the browser of its own: what is learned decays once when it is kept, as Chrome's did when it was saved.
//! Without that a host that takes one connection at every visit would have two, as the estimate comes down to one from above, and
//! is rounded up. The names of the last start, which Chrome looked up too, are left out.
//!
//! Two other things are remembered if `visits=N` says that there were earlier visits, but do not make any by themselves: what was
//! learned of hosts that pipeline (`green-hosts` is what is known before the first visit: that every host has passed its trial), and
//! what authorities have said of certificates, which Windows keeps on disk, and so the system's browsers.
//!
//! What a page needed is remembered too, where it is to be prefetched, and what servers had the client keep of their congestion windows:
//! of the last visit, and of one unless `visits=N` says otherwise.
//!
//! The cache is another thing: those visits find it as the measured load does, empty, or with `revisit` as an earlier visit left it.
//!
//! A plan may name the memory of a client instead ([`crate::plan::Plan::state`]): one that `velodrome topology` has kept, of visits to
//! these pages or to others. Then there are no visits before the measured load, unless `visits=N` asks for them.

mod check;
mod fault;
mod feature;
mod servers;
mod switch;
mod tabs;

use std::fmt;
use std::str::FromStr;

use base::Duration;
use browser::TabOrder;
use client::{
    Deployment, Handshakes, HappyEyeballs, Ownership, Pipelining, Preconnect, Racing, Retry, Stalled,
    Timeouts,
};
use load::Traffic;
use page::Page;
use page::hint::Form;
use serde::{Deserialize, Serialize};
use spdy::Feature;

use crate::error::Error;
pub(crate) use tabs::Behind;
pub use tabs::TABS_MAX;

use crate::setting::{MS_MAX, Unknown, figure, ms};

pub(crate) use check::{check, check_pages};
pub(crate) use feature::without;
use switch::{SWITCHES, Switch};

/// Visits before the one that is measured. After ten the first guess of [`client::Learned`] weighs (0.66 × 0.97)¹⁰ = 1 %.
pub const VISITS: u32 = 10;

/// The most visits before the measured one.
pub const VISITS_MAX: u32 = 100;

/// The longest time between two visits, hours: a year, which is what RFC 2616 §14.21 had servers say for "never expires".
pub const REVISIT_HOURS_MAX: f64 = 8_760.0;

/// One technique, switched on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Technique {
    /// Requests follow the client's Finished at once (RFC 7918).
    FalseStart,
    /// Connections are opened before they are asked for. Never [`Preconnect::None`].
    Preconnect(Preconnect),
    /// How often the page was visited before; see the module.
    Visits(u32),
    /// A second connection beside one that takes so long, in milliseconds.
    RacingMs(f64),
    /// TLS handshakes of one host wait for the first of them, and resume.
    TlsWait,
    /// Requests follow each other on HTTP/1.1 connections, at most so many.
    Pipelining(u32),
    /// XHR too may be pipelined.
    PipeliningXhr,
    /// Every host has passed its trial of pipelining before.
    GreenHosts,
    /// Some servers are no good at pipelines. Never empty.
    BadPipeliners(Vec<load::BadPipeliners>),
    /// Servers end connections that nobody uses. Never [`origin::Idle::Kept`].
    ServerIdle(origin::Idle),
    /// Addresses of two families race.
    HappyEyeballs(EyeballRule),
    /// Servers have addresses of IPv6 beside their own.
    Ipv6(load::Ipv6),
    /// Requests that failed are sent again.
    Retry(RetryRule),
    /// Chrome's limits on connecting, securing and idling.
    Timeouts,
    /// The page was loaded so many hours before, and its responses are in the cache as far as they allow it.
    RevisitHours(f64),
    /// Only these hosts speak SPDY.
    SpdyHosts(Upgraded),
    /// SPDY is spoken without these features, each named once.
    SpdyWithout(Vec<Feature>),
    /// SPDY servers push with a document what it is sure to need of its host.
    Push,
    /// Documents' heads name what they will need, in this field, and the client asks for it at once.
    Hints(Form),
    /// What the page needed when it was last visited is asked for with its document.
    Prefetch,
    /// SPDY servers have clients keep their congestion window, and begin the next session with so many segments of it at most.
    KeptCwnd(u32),
    /// Hosts of one party share an address and a certificate, and so SPDY sessions.
    Pooling,
    /// Domains that are one party's, a list a party; every other registrable domain is a party's own.
    Owners(Vec<Vec<String>>),
    /// Media are paused after their first [`PAUSED_AFTER`] bytes, for so many seconds.
    PausedMedia(u32),
    /// What the client does about a stream that nobody reads, where it has no window.
    Stalled(Stalled),
    /// Certificates are asked about before a handshake ends.
    CertChecks(CertChecks),
    /// How long an authority may take to answer, in milliseconds.
    CertTimeoutMs(f64),
    /// Servers staple what an authority would answer.
    Stapling,
    /// The client carries the certificate of the page's host.
    Pinned,
    /// Something breaks at the servers.
    Fault(origin::Fault),
    /// Nothing gets through: from when, and for how long.
    Blackhole(Duration, Duration),
    /// The machine goes over to another network: when, and which.
    NetworkChange(Duration, String),
    /// The application ends, and is started again.
    Restart(Duration),
    /// Something else uses the access link.
    CrossTraffic(Traffic),
    /// So many pages behind the one in front, and when they are loaded.
    Tabs(u32, TabOrder),
}

/// What is asked about a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CertChecks {
    /// Whether it is still good.
    Ocsp,
    /// The certificate of its issuer, which servers leave out.
    Chain,
    /// Both.
    OcspAndChain,
}

/// Whose rules of racing addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EyeballRule {
    /// [`HappyEyeballs::RFC_8305`].
    Rfc8305,
    /// [`HappyEyeballs::CHROME`].
    Chrome,
}

/// What is read of media before they are paused, in bytes: what a stream's first window lets come.
pub const PAUSED_AFTER: u64 = 65_536;

/// The most segments that a server begins with because a client says so, unless set: what Firefox cut it to (`nsHttpConnectionMgr.cpp`,
/// ReportSpdyCWNDSetting). Of Google's servers no bound is published; Chrome passed on what it had been told.
pub const KEPT_CWND: u32 = 128;
/// The most that may be set: more than any path here holds.
const KEPT_CWND_MAX: u32 = 10_000;

/// The longest pause, in seconds.
const PAUSE_MAX: u32 = 240;

/// Which hosts speak SPDY.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Upgraded {
    /// The page's own.
    Page,
    /// Those of the page host's party.
    FirstParty,
    /// These.
    Hosts(Vec<String>),
}

/// Whose rules of sending again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RetryRule {
    /// [`Retry::FIREFOX`].
    Firefox,
    /// [`Retry::RELOADING`].
    Reloading,
}

/// The switches, a line each: `preconnect=learned|…  what it does`.
pub fn help() -> String {
    let usage = |s: &Switch| format!("{}{}", s.name, s.values);
    let width = SWITCHES.iter().map(|s| usage(s).chars().count()).max().unwrap_or(0);
    let line = |s: &Switch| format!("  {:width$}  {}", usage(s), s.about);
    SWITCHES.iter().map(line).collect::<Vec<_>>().join("\n")
}

impl Technique {
    /// What it does, in a few words.
    pub fn about(&self) -> &'static str {
        let text = self.to_string();
        let name = text.split('=').next().unwrap_or_default();
        SWITCHES.iter().find(|s| s.name == name).map_or("", |s| s.about)
    }
}

impl fmt::Display for Technique {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Technique::FalseStart => f.write_str("false-start"),
            Technique::Preconnect(policy) => write!(f, "preconnect={}", policy_name(*policy)),
            Technique::Visits(n) => write!(f, "visits={n}"),
            Technique::RacingMs(delay) => write!(f, "racing={delay}"),
            Technique::TlsWait => f.write_str("tls-wait"),
            Technique::Pipelining(depth) => write!(f, "pipelining={depth}"),
            Technique::PipeliningXhr => f.write_str("pipelining-xhr"),
            Technique::GreenHosts => f.write_str("green-hosts"),
            Technique::BadPipeliners(kinds) => {
                write!(f, "bad-pipeliners={}", servers::pipeliners_text(kinds))
            }
            Technique::ServerIdle(idle) => write!(f, "server-idle={}", servers::idle_text(*idle)),
            Technique::HappyEyeballs(EyeballRule::Rfc8305) => f.write_str("happy-eyeballs=rfc8305"),
            Technique::HappyEyeballs(EyeballRule::Chrome) => f.write_str("happy-eyeballs=chrome"),
            Technique::Ipv6(ipv6) => write!(f, "ipv6={}", servers::ipv6_text(ipv6)),
            Technique::Retry(RetryRule::Firefox) => f.write_str("retry=firefox"),
            Technique::Retry(RetryRule::Reloading) => f.write_str("retry=reloading"),
            Technique::Timeouts => f.write_str("timeouts"),
            Technique::CertChecks(CertChecks::Ocsp) => f.write_str("cert-checks=ocsp"),
            Technique::CertChecks(CertChecks::Chain) => f.write_str("cert-checks=chain"),
            Technique::CertChecks(CertChecks::OcspAndChain) => f.write_str("cert-checks=ocsp+chain"),
            Technique::CertTimeoutMs(limit) => write!(f, "cert-timeout={limit}"),
            Technique::Stapling => f.write_str("stapling"),
            Technique::Pinned => f.write_str("pinned"),
            Technique::Fault(fault) => write!(f, "fault={}", fault::Written(fault)),
            Technique::Blackhole(from, lasts) => {
                write!(f, "blackhole={}+{}", from.as_millis_f64(), lasts.as_millis_f64())
            }
            Technique::NetworkChange(at, to) => write!(f, "network-change={}:{to}", at.as_millis_f64()),
            Technique::Restart(at) => write!(f, "restart={}", at.as_millis_f64()),
            Technique::RevisitHours(hours) => write!(f, "revisit={hours}"),
            Technique::CrossTraffic(Traffic::Bulk) => f.write_str("cross-traffic=bulk"),
            Technique::CrossTraffic(Traffic::Video) => f.write_str("cross-traffic=video"),
            Technique::Tabs(behind, order) => write!(f, "tabs={behind}:{}", tabs::order_name(*order)),
            Technique::SpdyHosts(Upgraded::Page) => f.write_str("spdy-hosts=page"),
            Technique::SpdyHosts(Upgraded::FirstParty) => f.write_str("spdy-hosts=first-party"),
            Technique::SpdyHosts(Upgraded::Hosts(hosts)) => write!(f, "spdy-hosts={}", hosts.join(",")),
            Technique::SpdyWithout(features) => {
                let names: Vec<_> = features.iter().map(|feature| feature.name()).collect();
                write!(f, "spdy-without={}", names.join(","))
            }
            Technique::Push => f.write_str("push"),
            Technique::Hints(Form::Subresources) => f.write_str("hints=subresources"),
            Technique::Hints(Form::Preload) => f.write_str("hints=preload"),
            Technique::Prefetch => f.write_str("prefetch"),
            Technique::KeptCwnd(most) => write!(f, "kept-cwnd={most}"),
            Technique::PausedMedia(seconds) => write!(f, "paused-media={seconds}"),
            Technique::Stalled(Stalled::Buffer) => f.write_str("stalled=buffer"),
            Technique::Stalled(Stalled::Kill) => f.write_str("stalled=kill"),
            Technique::Stalled(Stalled::Block) => f.write_str("stalled=block"),
            Technique::Pooling => f.write_str("pooling"),
            Technique::Owners(owners) => {
                let lists: Vec<_> = owners.iter().map(|domains| domains.join("+")).collect();
                write!(f, "owners={}", lists.join(","))
            }
        }
    }
}

fn policy_name(policy: Preconnect) -> &'static str {
    match policy {
        Preconnect::None => "none",
        Preconnect::BlindTwo => "blind-two",
        Preconnect::Learned => "learned",
        Preconnect::Successor => "successor",
    }
}

/// No switch has this name: the one that was meant, if two letters tell them apart, or else all.
fn unknown(name: &str) -> Unknown {
    let distance = |s: &Switch| strsim::osa_distance(name, s.name);
    let near = SWITCHES.iter().filter(|s| distance(s) <= 2).min_by_key(|s| distance(s));
    Unknown(match near {
        Some(Switch { name: meant, values, .. }) => {
            format!("'{name}' is no switch; '{meant}{values}' is one")
        }
        None => {
            let known: Vec<_> = SWITCHES.iter().map(|s| s.name).collect();
            format!("'{name}' is no switch; there are {} (velodrome race --help)", known.join(", "))
        }
    })
}

impl FromStr for Technique {
    type Err = Unknown;

    fn from_str(s: &str) -> Result<Self, Unknown> {
        let (name, value) = s.split_once('=').map_or((s, None), |(name, value)| (name, Some(value)));
        let Some(switch) = SWITCHES.iter().find(|switch| switch.name == name) else {
            return Err(unknown(name));
        };
        read(name, value).ok_or_else(|| {
            Unknown(format!("'{s}' is not how {name} is switched: {}{}", switch.name, switch.values))
        })
    }
}

/// A switch's value; `None` if it takes no such value.
fn read(name: &str, value: Option<&str>) -> Option<Technique> {
    let number = |default, max: u32| match value {
        None => default,
        Some(text) => text.parse().ok().filter(|n| (1..=max).contains(n)),
    };
    let span = |text: &str| text.parse().ok().filter(|ms| (1.0..=MS_MAX).contains(ms));
    match (name, value) {
        ("false-start", None) => Some(Technique::FalseStart),
        ("preconnect", Some("learned")) => Some(Technique::Preconnect(Preconnect::Learned)),
        ("preconnect", Some("successor")) => Some(Technique::Preconnect(Preconnect::Successor)),
        ("preconnect", Some("blind-two")) => Some(Technique::Preconnect(Preconnect::BlindTwo)),
        ("visits", _) => number(None, VISITS_MAX).map(Technique::Visits),
        ("racing", None) => Some(Technique::RacingMs(250.0)),
        ("racing", Some(text)) => span(text).map(Technique::RacingMs),
        ("tls-wait", None) => Some(Technique::TlsWait),
        // No deeper than the engine keeps.
        ("pipelining", _) => number(Some(Pipelining::FIREFOX.depth_max), 64).map(Technique::Pipelining),
        ("pipelining-xhr", None) => Some(Technique::PipeliningXhr),
        ("green-hosts", None) => Some(Technique::GreenHosts),
        ("bad-pipeliners", Some(text)) => servers::read_pipeliners(text).map(Technique::BadPipeliners),
        ("server-idle", Some(text)) => servers::read_idle(text).map(Technique::ServerIdle),
        ("happy-eyeballs", None | Some("rfc8305")) => Some(Technique::HappyEyeballs(EyeballRule::Rfc8305)),
        ("happy-eyeballs", Some("chrome")) => Some(Technique::HappyEyeballs(EyeballRule::Chrome)),
        ("ipv6", Some(text)) => servers::read_ipv6(text).map(Technique::Ipv6),
        ("retry", Some("firefox")) => Some(Technique::Retry(RetryRule::Firefox)),
        ("retry", Some("reloading")) => Some(Technique::Retry(RetryRule::Reloading)),
        ("timeouts", None) => Some(Technique::Timeouts),
        ("revisit", None) => Some(Technique::RevisitHours(0.0)),
        ("revisit", Some(hours)) => figure(hours, REVISIT_HOURS_MAX).map(Technique::RevisitHours),
        ("spdy-hosts", Some("page")) => Some(Technique::SpdyHosts(Upgraded::Page)),
        ("spdy-hosts", Some("first-party")) => Some(Technique::SpdyHosts(Upgraded::FirstParty)),
        ("spdy-hosts", Some(list)) => names(list, ',').map(Upgraded::Hosts).map(Technique::SpdyHosts),
        ("spdy-without", Some(list)) => {
            let features: Vec<Feature> =
                list.split(',').map(|name| name.parse().ok()).collect::<Option<_>>()?;
            let once = (1..features.len()).all(|i| !features[..i].contains(&features[i]));
            once.then_some(Technique::SpdyWithout(features))
        }
        ("push", None) => Some(Technique::Push),
        ("hints", None | Some("subresources")) => Some(Technique::Hints(Form::Subresources)),
        ("hints", Some("preload")) => Some(Technique::Hints(Form::Preload)),
        ("prefetch", None) => Some(Technique::Prefetch),
        ("kept-cwnd", _) => number(Some(KEPT_CWND), KEPT_CWND_MAX).map(Technique::KeptCwnd),
        ("paused-media", _) => number(None, PAUSE_MAX).map(Technique::PausedMedia),
        ("stalled", Some("buffer")) => Some(Technique::Stalled(Stalled::Buffer)),
        ("stalled", Some("kill")) => Some(Technique::Stalled(Stalled::Kill)),
        ("stalled", Some("block")) => Some(Technique::Stalled(Stalled::Block)),
        ("pooling", None) => Some(Technique::Pooling),
        ("owners", Some(lists)) => {
            lists.split(',').map(|list| names(list, '+')).collect::<Option<_>>().map(Technique::Owners)
        }
        ("cert-checks", Some("ocsp")) => Some(Technique::CertChecks(CertChecks::Ocsp)),
        ("cert-checks", Some("chain")) => Some(Technique::CertChecks(CertChecks::Chain)),
        ("cert-checks", Some("ocsp+chain")) => Some(Technique::CertChecks(CertChecks::OcspAndChain)),
        ("cert-timeout", Some(text)) => span(text).map(Technique::CertTimeoutMs),
        ("stapling", None) => Some(Technique::Stapling),
        ("pinned", None) => Some(Technique::Pinned),
        ("fault", Some(text)) => fault::read(text).map(Technique::Fault),
        ("blackhole", Some(text)) => {
            fault::read_span(text).map(|(from, lasts)| Technique::Blackhole(from, lasts))
        }
        ("network-change", Some(text)) => {
            let (at, to) = text.split_once(':')?;
            Some(Technique::NetworkChange(fault::read_ms(at)?, to.to_owned()))
        }
        ("restart", Some(text)) => fault::read_ms(text).map(Technique::Restart),
        ("cross-traffic", Some("bulk")) => Some(Technique::CrossTraffic(Traffic::Bulk)),
        ("cross-traffic", Some("video")) => Some(Technique::CrossTraffic(Traffic::Video)),
        ("tabs", Some(text)) => tabs::read(text).map(|(behind, order)| Technique::Tabs(behind, order)),
        _ => None,
    }
}

/// Names of hosts or domains, each with a dot in it.
fn names(list: &str, between: char) -> Option<Vec<String>> {
    let names: Vec<String> = list.split(between).map(str::to_ascii_lowercase).collect();
    names.iter().all(|name| name.contains('.')).then_some(names)
}

impl TryFrom<String> for Technique {
    type Error = Unknown;
    fn try_from(s: String) -> Result<Self, Unknown> {
        s.parse()
    }
}

impl From<Technique> for String {
    fn from(technique: Technique) -> String {
        technique.to_string()
    }
}

impl Technique {
    fn is_without(&self, feature: Feature) -> bool {
        matches!(self, Technique::SpdyWithout(features) if features.contains(&feature))
    }

    fn asks_for_owners(&self) -> bool {
        matches!(self, Technique::Pooling | Technique::SpdyHosts(Upgraded::FirstParty))
    }

    /// Whether it makes two runs of one load differ.
    pub(crate) fn is_random(&self) -> bool {
        matches!(self, Technique::Fault(origin::Fault { often: origin::Often::Share(share), .. }) if *share < 1.0)
    }

    /// Whether a race with it is to say, load by load, what was missing and what was tried.
    pub(crate) fn makes_trouble(&self) -> bool {
        matches!(
            self,
            Technique::Fault(_)
                | Technique::Blackhole(..)
                | Technique::NetworkChange(..)
                | Technique::Restart(_)
                | Technique::Retry(_)
        )
    }

    /// Whether a browser with it goes by what it has learned of hosts.
    pub(crate) fn learns(&self) -> bool {
        matches!(
            self,
            Technique::Preconnect(Preconnect::Learned | Preconnect::Successor) | Technique::Pipelining(_)
        )
    }
}

/// Puts what breaks into a load's setup.
pub(crate) fn break_things(setup: &mut load::Setup, techniques: &[Technique]) -> Result<(), Error> {
    for technique in techniques {
        match technique {
            Technique::Fault(fault) => setup.faults.hosts.push(fault.clone()),
            Technique::NetworkChange(at, to) => {
                setup.faults.network_change = Some(fault::network_change(*at, to)?);
            }
            Technique::Restart(at) => setup.faults.restart = Some(*at),
            _ => {}
        }
    }
    for technique in techniques {
        if let Technique::Blackhole(from, lasts) = technique {
            fault::blackhole(setup, *from, *lasts);
        }
    }
    Ok(())
}

/// What a load's setup has of `techniques`, but for TLS, what SPDY does without and what breaks.
pub(crate) fn of(techniques: &[Technique]) -> load::Techniques {
    let mut out = load::Techniques::default();
    let owners = techniques.iter().find_map(|t| match t {
        Technique::Owners(owners) => Some(Ownership { owners: owners.clone() }),
        _ => None,
    });
    out.owners = owners.unwrap_or_default();
    for technique in techniques {
        match technique {
            Technique::FalseStart
            | Technique::Visits(_)
            | Technique::GreenHosts
            | Technique::Tabs(..)
            | Technique::PipeliningXhr => {}
            Technique::BadPipeliners(_) | Technique::ServerIdle(_) | Technique::Ipv6(_) => {} // see `servers`
            Technique::Fault(_)
            | Technique::Blackhole(..)
            | Technique::NetworkChange(..)
            | Technique::Restart(_) => {} // see `break_things`
            Technique::HappyEyeballs(EyeballRule::Rfc8305) => {
                out.happy_eyeballs = Some(HappyEyeballs::RFC_8305);
            }
            Technique::HappyEyeballs(EyeballRule::Chrome) => out.happy_eyeballs = Some(HappyEyeballs::CHROME),
            Technique::SpdyWithout(_) | Technique::Owners(_) => {}
            Technique::Push => out.push = true,
            Technique::Hints(form) => out.hints = Some(*form),
            Technique::Prefetch => out.prefetch = true,
            Technique::KeptCwnd(most) => out.kept_cwnd = Some(*most),
            Technique::PausedMedia(seconds) => {
                let length = Duration::from_secs(u64::from(*seconds));
                out.pause = Some(browser::Pause { after: PAUSED_AFTER, length });
            }
            Technique::Stalled(stalled) => out.stalled = *stalled,
            Technique::Pooling => out.pooling = true,
            Technique::Preconnect(policy) => out.preconnect = *policy,
            Technique::RacingMs(delay) => out.racing = Racing { delay: ms(*delay), ..Racing::FIREFOX },
            Technique::TlsWait => out.handshakes = Handshakes::WaitForSession,
            Technique::Pipelining(depth_max) => {
                let xhr = techniques.contains(&Technique::PipeliningXhr);
                out.pipelining = Some(Pipelining { depth_max: *depth_max, xhr, ..Pipelining::FIREFOX });
            }
            Technique::Retry(RetryRule::Firefox) => out.retry = Retry::FIREFOX,
            Technique::Retry(RetryRule::Reloading) => {
                (out.retry, out.timeouts) = (Retry::RELOADING, Timeouts::RELOADING);
            }
            Technique::Timeouts => out.timeouts = Timeouts::CHROME,
            Technique::CertChecks(asked) => {
                out.certificates.ocsp = *asked != CertChecks::Chain;
                out.certificates.chain = *asked != CertChecks::Ocsp;
            }
            Technique::CertTimeoutMs(limit) => out.certificates.patience = ms(*limit),
            Technique::Stapling => out.certificates.stapled = true,
            Technique::Pinned => out.certificates.pinned = true,
            Technique::RevisitHours(hours) => out.revisit = Some(ms(hours * 3.6e6)),
            Technique::CrossTraffic(traffic) => out.traffic = Some(*traffic),
            Technique::SpdyHosts(Upgraded::Page) => out.deployment = Deployment::PageHost,
            Technique::SpdyHosts(Upgraded::FirstParty) => {
                out.deployment = Deployment::FirstParty(out.owners.clone());
            }
            Technique::SpdyHosts(Upgraded::Hosts(hosts)) => out.deployment = Deployment::Hosts(hosts.clone()),
        }
    }
    out
}

/// What a load's setup has of `techniques` that is the servers'.
pub(crate) fn servers(techniques: &[Technique]) -> (load::Servers, Option<load::Ipv6>) {
    let (mut out, mut ipv6) = (load::Servers::default(), None);
    for technique in techniques {
        match technique {
            Technique::BadPipeliners(kinds) => out.bad_pipeliners.clone_from(kinds),
            Technique::ServerIdle(idle) => out.idle = *idle,
            Technique::Ipv6(of) => ipv6 = Some(of.clone()),
            _ => {}
        }
    }
    (out, ipv6)
}

/// `setup` with what the browser has learned of `page` before a load with this seed; see the module.
pub(crate) fn remembering(
    setup: &load::Setup,
    techniques: &[Technique],
    page: &Page,
    seed: u64,
) -> load::Setup {
    let mut setup = setup.clone();
    if techniques.contains(&Technique::GreenHosts) {
        setup.memory.pipelining = page.hosts.iter().map(load::HostStanding::green).collect();
    }
    let learns = matches!(setup.techniques.preconnect, Preconnect::Learned | Preconnect::Successor);
    let asked = techniques.iter().find_map(|t| match t {
        Technique::Visits(n) => Some(*n),
        _ => None,
    });
    let knows = !setup.memory.learned.is_empty() || !setup.memory.successor.is_empty();
    let unset = match &setup.techniques {
        _ if learns && !knows => VISITS,
        // What a page needs it needs at every visit; what is kept of a window is the last one's.
        load::Techniques { prefetch: true, .. } | load::Techniques { kept_cwnd: Some(_), .. } => 1,
        _ => 0,
    };
    for visit in 0..asked.unwrap_or(unset) {
        let mut whole = load::Setup { faults: load::Faults::default(), ..setup.clone() };
        (whole.up.outages, whole.down.outages) = Default::default();
        setup.memory = sim::load(page, &whole, visit_seed(seed, visit)).memory;
        keep(&mut setup.memory);
    }
    setup
}

/// The seed of the `visit`-th visit before a load with the seed `load`.
pub(crate) fn visit_seed(load: u64, visit: u32) -> u64 {
    base::Rng::new(load).substream(&format!("visit {visit}")).seed()
}

/// A run of the browser is over, and its memory is kept.
pub(crate) fn keep(memory: &mut load::Memory) {
    let mut learned = client::Learned::from_rows(std::mem::take(&mut memory.learned), Vec::new());
    learned.decay();
    memory.learned = learned.rows().collect();
}

#[cfg(test)]
mod tests;
