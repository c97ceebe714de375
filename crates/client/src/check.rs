//! What a client asks about a server's certificate before it lets the handshake end.
//!
//! A certificate may have been revoked, and a server may have left out the certificate of its issuer. A client that cares asks the
//! authority: whether it is still good (OCSP, RFC 6960), and for the issuer's certificate, at the address that the server's one names
//! (RFC 5280 §4.2.2.1, "CA Issuers"). These are ordinary requests, with look-ups and connections of their own, by HTTP in the clear;
//! and the request for whose sake the connection is made waits for all of them, one after the other.
//!
//! Each answer is good for the client's life, whoever asked first; those who come while it is under way wait for it too. Who may be
//! done without is done without after [`Config::check_patience`](crate::Config::check_patience): browsers "fail soft", since a captive
//! portal or a broken responder would otherwise take the web away.

use std::collections::{BTreeMap, VecDeque};

use base::{Duration, Instant, RequestHead};

use crate::connection::{ConnectionId, State};
use crate::timer::Timer;
use crate::{Action, Ask, Client, RequestId, priority};

/// How long Chrome waited for an OCSP response or an issuer's certificate: `kNetworkFetchTimeoutInSecs` (nss_ocsp.cc).
pub const CHECK_PATIENCE_CHROME: Duration = Duration::from_secs(15);

/// How long Firefox waits for an OCSP response that it can do without: `OCSP_TIMEOUT_MILLISECONDS_SOFT_DEFAULT`
/// (nsNSSComponent.cpp).
pub const CHECK_PATIENCE_FIREFOX: Duration = Duration::from_millis(2_000);

/// Something to ask an authority; see [`Client::set_checks`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// The number that the request for it will have.
    pub request: RequestId,
    /// Index of the authority's host.
    pub host: u32,
    /// What is asked.
    pub head: RequestHead,
    /// Whether there is no certificate to check without it: the issuer's. Else its failure is let pass.
    pub is_needed: bool,
    /// The answer is known from before.
    pub is_known: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Unknown,
    Asking,
    Good,
    Failed,
}

/// All that may be asked, and who waits for it.
#[derive(Default)]
pub(crate) struct Checks {
    list: Vec<(Check, Answer)>,
    /// Connections whose certificate is being checked, and how many of their host's checks are behind them.
    waiting: BTreeMap<ConnectionId, usize>,
    /// Requests that have ended and whether they had an answer, to be looked at.
    ended: Vec<(RequestId, bool)>,
    verified: VecDeque<ConnectionId>,
}

impl Checks {
    fn of_request(&self, id: RequestId) -> Option<usize> {
        self.list.iter().position(|(check, _)| check.request == id)
    }

    /// A request has ended, well or badly.
    pub(crate) fn note_end(&mut self, id: RequestId, good: bool) {
        if self.of_request(id).is_some() {
            self.ended.push((id, good));
        }
    }

    pub(crate) fn forget(&mut self, id: ConnectionId) {
        self.waiting.remove(&id);
    }
}

impl Client {
    /// Says what there is to be asked of authorities; which of it a host's certificate needs, and in which order, is in
    /// [`HostFacts::checks`](crate::HostFacts::checks). Of use before the first request.
    pub fn set_checks(&mut self, checks: Vec<Check>) {
        let answer = |check: Check| {
            let known = if check.is_known { Answer::Good } else { Answer::Unknown };
            (check, known)
        };
        self.checks.list = checks.into_iter().map(answer).collect();
    }

    /// Requests to authorities that have been answered, now or before.
    pub fn checked(&self) -> impl Iterator<Item = RequestId> {
        let good = self.checks.list.iter().filter(|(_, answer)| *answer == Answer::Good);
        good.map(|(check, _)| check.request)
    }

    /// A server's certificate has arrived, and its handshake waits until [`Client::poll_verified`] names the connection.
    pub fn handle_certificate(&mut self, now: Instant, id: ConnectionId) {
        if self.connections[id as usize].state != State::Connecting {
            return; // it crossed our close
        }
        self.checks.waiting.insert(id, 0);
        self.verify(now, id);
    }

    /// The next connection whose certificate is as good as it gets: its handshake may go on.
    pub fn poll_verified(&mut self) -> Option<ConnectionId> {
        loop {
            let id = self.checks.verified.pop_front()?;
            if self.connections[id as usize].state == State::Connecting {
                return Some(id);
            }
        }
    }

    /// Goes on with a certificate as far as answers are known.
    fn verify(&mut self, now: Instant, id: ConnectionId) {
        while let Some(&done) = self.checks.waiting.get(&id) {
            let host = self.connections[id as usize].record.host;
            let Some(&check) = self.pools[host as usize].checks.get(done) else {
                self.checks.waiting.remove(&id);
                return self.checks.verified.push_back(id);
            };
            let (Check { is_needed, request, host, head, .. }, answer) = &mut self.checks.list[check];
            match answer {
                Answer::Asking => return,
                Answer::Unknown => {
                    *answer = Answer::Asking;
                    let (request, ask) = (*request, Ask::new(*host, head.clone(), priority::DOCUMENT));
                    self.timers.set(Timer::Check(request), now + self.config.check_patience);
                    return self.ask(now, request, ask); // which may end in here again
                }
                Answer::Failed if *is_needed => {
                    self.checks.waiting.remove(&id);
                    self.actions.push_back(Action::Close { connection: id });
                    return self.lose(now, id, "the certificate of its issuer is not to be had");
                }
                Answer::Good | Answer::Failed => self.checks.waiting.insert(id, done + 1),
            };
        }
    }

    /// Looks at requests to authorities that have ended, and lets those go on who waited for them.
    pub(crate) fn settle_checks(&mut self, now: Instant) {
        while let Some((request, good)) = self.checks.ended.pop() {
            self.timers.cancel(Timer::Check(request));
            self.answer_check(now, request, good);
        }
    }

    /// An authority has kept us waiting for too long. Its answer counts if it comes later, for those who come later.
    pub(crate) fn give_up_check(&mut self, now: Instant, request: RequestId) {
        self.answer_check(now, request, false);
    }

    fn answer_check(&mut self, now: Instant, request: RequestId, good: bool) {
        let Some(check) = self.checks.of_request(request) else { return };
        self.checks.list[check].1 = if good { Answer::Good } else { Answer::Failed };
        let waiting: Vec<ConnectionId> = self.checks.waiting.keys().copied().collect();
        for id in waiting {
            self.verify(now, id);
        }
    }
}
