//! Whether a plan has a use for its techniques: one that is named twice, that another contradicts, or that nothing in the plan has a use
//! for is refused, with what would help.

use client::{Preconnect, Transport};
use page::Page;
use spdy::Feature;

use super::{CertChecks, RetryRule, Technique, fault, feature};
use crate::error::Error;
use crate::network::Network;
use crate::plan::Plan;
use crate::setting::Tls;

/// What is wrong with a plan's techniques: one named twice, or one that nothing in the plan has a use for.
pub(crate) fn check(plan: &Plan) -> Result<(), String> {
    let switch = |t: &Technique| std::mem::discriminant(t);
    for (i, technique) in plan.techniques.iter().enumerate() {
        let repeatable = matches!(technique, Technique::Fault(_) | Technique::Blackhole(..));
        let contradicts = |other: &&Technique| match repeatable {
            true => *other == technique,
            false => switch(other) == switch(technique),
        };
        if let Some(other) = plan.techniques[..i].iter().find(contradicts) {
            return Err(format!("'{technique}' contradicts '{other}': each switch is set once"));
        }
        Case { plan, technique }.check()?;
    }
    let visits = |t: &&Technique| matches!(t, Technique::Prefetch | Technique::KeptCwnd(_));
    if let Some(technique) = plan.techniques.iter().find(|t| plan.state.is_some() && visits(t)) {
        return Err(format!(
            "'{technique}' goes by a visit of its own, of which a client's memory says nothing: leave one of the two out"
        ));
    }
    if plan.state.is_some() && !plan.techniques.iter().any(Technique::learns) {
        return Err(
            "nothing goes by a client's memory without preconnect=learned, preconnect=successor or pipelining".into()
        );
    }
    Ok(())
}

/// One of a plan's techniques.
struct Case<'a> {
    plan: &'a Plan,
    technique: &'a Technique,
}

impl Case<'_> {
    fn check(&self) -> Result<(), String> {
        self.tls()?;
        self.http1()?;
        self.spdy()?;
        self.visits_and_tabs()?;
        self.network()
    }

    fn useless(&self, lacking: &str) -> Result<(), String> {
        Err(format!("'{}' has nothing to act on: {lacking}", self.technique))
    }

    /// There is no use for it if a network's TLS does not do: which one, and what it lacks.
    fn needs_tls(&self, does: fn(Tls) -> bool, lacking: &str) -> Result<(), String> {
        match self.plan.networks.iter().find(|n| !does(n.tls)) {
            Some(n) => self.useless(&format!("network '{}' has TLS '{}'{lacking}", n.name, n.tls)),
            None => Ok(()),
        }
    }

    fn any(&self, other: impl Fn(&Technique) -> bool) -> bool {
        self.plan.techniques.iter().any(other)
    }

    fn pipelines(&self) -> bool {
        self.any(|t| matches!(t, Technique::Pipelining(_)))
    }

    /// What is about handshakes and certificates.
    fn tls(&self) -> Result<(), String> {
        let shows_certificate = |tls: Tls| matches!(tls, Tls::Tls12 | Tls::Tls13);
        let asks = |t: &Technique| matches!(t, Technique::CertChecks(_));
        let asks_status = |t: &Technique| asks(t) && *t != Technique::CertChecks(CertChecks::Chain);
        match self.technique {
            Technique::FalseStart => self.needs_tls(
                |tls| tls == Tls::Tls12,
                "; only full handshakes of TLS 1.2 can start falsely (--tls 1.2)",
            ),
            Technique::TlsWait => {
                self.needs_tls(shows_certificate, "; it needs full handshakes (--tls 1.2 or 1.3)")
            }
            Technique::CertChecks(_) => self.needs_tls(
                shows_certificate,
                ", under which no server shows a certificate (--tls 1.2 or 1.3)",
            ),
            Technique::CertTimeoutMs(_) | Technique::Pinned if !self.any(asks) => {
                self.useless("nobody asks about certificates (--with cert-checks=ocsp)")
            }
            Technique::Stapling if !self.any(asks_status) => {
                self.useless("nobody asks whether a certificate is good (--with cert-checks=ocsp)")
            }
            _ => Ok(()),
        }
    }

    /// What is for HTTP/1.1 alone.
    fn http1(&self) -> Result<(), String> {
        let speaks = self.plan.transports().contains(&Transport::Http1);
        match self.technique {
            Technique::PipeliningXhr | Technique::GreenHosts | Technique::BadPipeliners(_)
                if !self.pipelines() =>
            {
                self.useless("nobody pipelines (--with pipelining)")
            }
            Technique::ServerIdle(_)
            | Technique::Pipelining(_)
            | Technique::Preconnect(Preconnect::BlindTwo)
                if !speaks =>
            {
                self.useless("it is for HTTP/1.1 (--transports http1)")
            }
            _ => Ok(()),
        }
    }

    /// What is for SPDY alone.
    fn spdy(&self) -> Result<(), String> {
        let speaks = self.plan.transports().iter().any(|t| *t != Transport::Http1);
        let without = |feature| self.any(|t| t.is_without(feature));
        match self.technique {
            Technique::SpdyHosts(_)
            | Technique::SpdyWithout(_)
            | Technique::Push
            | Technique::Pooling
            | Technique::KeptCwnd(_)
                if !speaks =>
            {
                self.useless("no transport is SPDY (--transports spdy3.1)")
            }
            Technique::SpdyWithout(features) => features
                .iter()
                .try_for_each(|f| feature::lacks(self.plan, *f))
                .or_else(|lacking| self.useless(&lacking)),
            Technique::Push if without(Feature::Multiplexing) => {
                Err("'push' contradicts 'spdy-without=multiplexing': what is pushed comes beside an answer"
                    .into())
            }
            Technique::KeptCwnd(_) if without(Feature::Settings) => {
                Err(format!("'{}' contradicts 'spdy-without=settings': it is kept in them", self.technique))
            }
            Technique::Pooling => self.needs_tls(
                |tls| tls != Tls::None,
                "; hosts share a session by their certificate (--tls 1.2)",
            ),
            Technique::Owners(_) if !self.any(Technique::asks_for_owners) => {
                self.useless("nobody asks whose a host is (--with pooling, or --with spdy-hosts=first-party)")
            }
            Technique::Stalled(_) if !self.any(|t| matches!(t, Technique::PausedMedia(_))) => {
                self.useless("everything is read as it comes (--with paused-media=60)")
            }
            Technique::Stalled(_) if !feature::has_unbounded_sessions(self.plan) => {
                self.useless("no transport is SPDY without flow control (--with spdy-without=flow-control)")
            }
            _ => Ok(()),
        }
    }

    /// What is remembered of earlier visits, and what is loaded beside the page.
    fn visits_and_tabs(&self) -> Result<(), String> {
        let learns =
            |t: &Technique| matches!(t, Technique::Preconnect(Preconnect::Learned | Preconnect::Successor));
        let remembers = |t: &Technique| {
            let of_a_visit = Technique::Prefetch == *t || matches!(t, Technique::KeptCwnd(_));
            learns(t) || of_a_visit || matches!(t, Technique::CertChecks(_))
        };
        match self.technique {
            Technique::Visits(_) if !self.pipelines() && !self.any(remembers) => self.useless(
                "nothing learns from visits without preconnect=learned, preconnect=successor, prefetch, \
                 kept-cwnd, pipelining or cert-checks",
            ),
            Technique::Tabs(..) => {
                let other = |t: &&Technique| learns(t) || matches!(t, Technique::SpdyHosts(_));
                match self.plan.techniques.iter().find(other) {
                    Some(other) => {
                        Err(format!("'{}' contradicts '{other}', which is about one page", self.technique))
                    }
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Addresses, limits and other networks.
    fn network(&self) -> Result<(), String> {
        match self.technique {
            Technique::HappyEyeballs(_) if !self.any(|t| matches!(t, Technique::Ipv6(_))) => {
                self.useless("no host has addresses of two families (--with ipv6=lost, say)")
            }
            Technique::Timeouts if self.any(|t| *t == Technique::Retry(RetryRule::Reloading)) => self
                .useless(
                    "retry=reloading has limits of its own, which are shorter; leave one of the two out",
                ),
            Technique::NetworkChange(_, to) => {
                Network::named(to).map(|_| ()).map_err(|e| format!("'{}': {e}", self.technique))
            }
            _ => Ok(()),
        }
    }
}

/// What is wrong with a plan's faults, once its pages are known: they are meant for what no page has.
pub(crate) fn check_pages(plan: &Plan, pages: &[Page]) -> Result<(), Error> {
    let lost = |t: &&Technique| matches!(t, Technique::Fault(fault) if !fault::befalls(fault, pages));
    match plan.techniques.iter().find(lost) {
        Some(technique) => Err(Error::Asked(format!(
            "techniques: '{technique}' has nothing to act on: no page has such a host or resource"
        ))),
        None => Ok(()),
    }
}
