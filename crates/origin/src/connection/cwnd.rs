//! A congestion window that the client keeps for the server between two sessions: SPDY's SETTINGS_CURRENT_CWND (SPDY/3 §2.6.4).
//!
//! The server says what its window is, flagged to be persisted; the client brings it back, flagged as persisted, in the first SETTINGS of
//! its next session, and there the server begins with it instead of probing. Google's servers did so, and Chrome (`spdy_session.cc`,
//! SendSettings, 2011–2013) and Firefox (`nsHttpConnectionMgr.cpp`, ReportSpdyCWNDSetting) carried the figure. A server has only the client's
//! word for it, of a path that may be another by now; so HTTP/2 dropped it (httpwg/http2-spec issue 66, J. Padhye's "HTTP/2 and TCP CWND"
//! of April 2013), and so there is a most that is taken from it.

use spdy::frame::Setting;

use super::{Connection, Engine};
use crate::Site;

/// What is known of it on one connection.
#[derive(Clone, Copy)]
pub(super) struct KeptCwnd {
    /// The most segments that a client's word is good for.
    most: u32,
    /// What the client was told last, and after how many requests.
    told: Option<(u32, u64)>,
    /// What the client has brought back, until it is taken.
    brought: Option<u32>,
}

impl KeptCwnd {
    /// The client's SETTINGS have come.
    pub(super) fn read(&mut self, settings: &[Setting]) {
        let persisted = |s: &&Setting| s.id == Setting::CURRENT_CWND && s.flags & Setting::PERSISTED != 0;
        if let Some(entry) = settings.iter().find(persisted) {
            self.brought = Some(entry.value.min(self.most));
        }
    }
}

impl<S: Site> Connection<S> {
    /// The same, having SPDY clients keep the congestion window of the transport below, and taking their word for `most` segments of it.
    /// Whoever has that transport tells of it by [`note_cwnd`](Self::note_cwnd), and asks by [`take_cwnd`](Self::take_cwnd).
    pub fn with_kept_cwnd(mut self, most: u32) -> Self {
        self.kept_cwnd = Some(KeptCwnd { most, told: None, brought: None });
        self
    }

    /// The transport's congestion window is `segments` wide; `in_flight` of them are not acknowledged. If that is news, the client is told
    /// with the end of what it has asked for, when nothing else is under way, and again when all of that has arrived. Whether it is told now:
    /// there is something to send then.
    pub fn note_cwnd(&mut self, segments: u32, in_flight: u32) -> bool {
        let idle = self.kept_cwnd.is_some() && self.stats.requests > 0 && self.is_idle();
        let (Some(kept), Engine::Spdy(session)) = (&mut self.kept_cwnd, &mut self.engine) else {
            return false;
        };
        let news = kept.told.is_none_or(|(told, requests)| {
            told != segments && (in_flight == 0 || requests != self.stats.requests)
        });
        if !idle || !news || session.is_going_away() {
            return false;
        }
        kept.told = Some((segments, self.stats.requests));
        session.persist(Setting::CURRENT_CWND, segments);
        self.drained = false;
        true
    }

    /// With how many segments the transport may begin, by the word of its client, bounded; once.
    pub fn take_cwnd(&mut self) -> Option<u32> {
        self.kept_cwnd.as_mut()?.brought.take()
    }
}
