//! An application that has ended amid a load, and the one that goes on: what both have done is one load.

use base::{Duration, Instant};
use browser::{Browser, Request, Trouble};
use client::{ConnectionId, ConnectionRecord};

/// What applications that have ended had done by then. Each counts its connections from 0; in the load those of the later ones follow those
/// of the earlier.
#[derive(Clone, Default, Debug)]
pub struct Past {
    records: Vec<ConnectionRecord>,
    lookups: u32,
    computed: Duration,
}

impl Past {
    /// The application ends at `now`: what it has open is closed, and `next` begins with what it has left. That is to be
    /// [started](Browser::start) then.
    pub fn end<'p>(&mut self, now: Instant, browser: &mut Browser<'p>, mut next: Browser<'p>) {
        let closed =
            |record: ConnectionRecord| ConnectionRecord { closed: record.closed.or(Some(now)), ..record };
        let own: Vec<_> = browser.connections().map(|record| closed(self.in_load(record))).collect();
        self.records.extend(own);
        self.lookups += browser.lookups();
        self.computed += browser.computed();
        next.resume(browser.kept());
        *browser = next;
    }

    /// Connections of applications that have ended.
    pub fn connections(&self) -> u32 {
        self.records.len() as u32
    }

    /// The number in the load of what the running application knows by `id`.
    pub fn in_all(&self, id: ConnectionId) -> u32 {
        id + self.connections()
    }

    /// What the running application knows a connection of the load by; `None` if its application has ended.
    pub fn at_browser(&self, id: u32) -> Option<ConnectionId> {
        id.checked_sub(self.connections())
    }

    fn in_load(&self, record: &ConnectionRecord) -> ConnectionRecord {
        ConnectionRecord { id: self.in_all(record.id), ..record.clone() }
    }

    /// All connections of the load, where this application runs.
    pub fn records<'a>(&'a self, browser: &'a Browser<'_>) -> impl Iterator<Item = ConnectionRecord> {
        let own = browser.connections().map(|record| self.in_load(record));
        self.records.iter().cloned().chain(own)
    }

    /// What became of the page's resources, by the load's connections.
    pub fn requests(&self, browser: &Browser<'_>) -> Vec<Request> {
        let mut requests = browser.requests();
        requests.iter_mut().for_each(|r| r.connection = r.connection.map(|id| self.in_all(id)));
        requests
    }

    /// What was not had at the first try, by the load's connections.
    pub fn troubles(&self, browser: &Browser<'_>) -> Vec<Trouble> {
        let mut troubles = browser.troubles();
        let failures = troubles.iter_mut().flat_map(|trouble| &mut trouble.failures);
        failures.for_each(|f| f.connection = f.connection.map(|id| self.in_all(id)));
        troubles
    }

    /// Names looked up by all.
    pub fn lookups(&self, browser: &Browser<'_>) -> u32 {
        self.lookups + browser.lookups()
    }

    /// Time for which the page in front computed in all.
    pub fn computed(&self, browser: &Browser<'_>) -> Duration {
        self.computed + browser.computed()
    }
}
