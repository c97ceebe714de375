//! Several pages in one client, as when a browser starts with the tabs that it had: the one that somebody looks at, and those behind.

use std::borrow::Cow;
use std::sync::Arc;

use browser::TabOrder;
use page::{Cause, Host, Page, Resource, ResourceId};

use crate::Setup;

/// The pages behind the one that is loaded: they share its client, its link, and the servers of the hosts that they have in common.
///
/// A load with such is over when all are loaded, and complete if all are. Each page computes on a thread of its own. Where hosts have
/// recorded distances, these are counted from the nearest of all pages. What two pages ask the same host for by the same path is answered
/// in the order of asking.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Tabs {
    /// The pages, in the order of their tabs.
    pub behind: Vec<Arc<Page>>,
    /// When they are loaded.
    pub order: TabOrder,
}

impl Setup {
    /// `page` with the pages behind it beside it: their hosts behind its own, and their resources behind its own, as
    /// [`Cause::Beside`]. As it is, if there are none, or if something is beside it already.
    pub fn with_tabs<'p>(&self, page: &'p Page) -> Cow<'p, Page> {
        if self.tabs.behind.is_empty() || first_beside(page).is_some() {
            return Cow::Borrowed(page);
        }
        let mut whole = page.clone();
        for other in &self.tabs.behind {
            let hosts: Vec<u32> = other.hosts.iter().map(|host| place(&mut whole.hosts, host)).collect();
            let resource = |r: &Resource| Resource {
                host: hosts[r.host as usize],
                cause: Cause::Beside,
                after_load: true,
                ..r.clone()
            };
            whole.resources.extend(other.resources.iter().map(resource));
        }
        Cow::Owned(whole)
    }

    /// Puts the pages behind into a browser that is about to load `page`, which has them beside it.
    ///
    /// # Panics
    /// If it has not.
    pub(crate) fn open_tabs<'p>(&'p self, browser: &mut browser::Browser<'p>, page: &'p Page) {
        if self.tabs.behind.is_empty() {
            return;
        }
        let mut first = first_beside(page).expect("a page with what is behind it");
        let mut known = page.hosts.clone();
        for other in &self.tabs.behind {
            browser.open(other, other.hosts.iter().map(|host| place(&mut known, host)).collect(), first);
            first += other.resources.len() as ResourceId;
        }
        browser.set_order(self.tabs.order);
    }
}

/// The first resource of a page that is no part of it.
fn first_beside(page: &Page) -> Option<ResourceId> {
    page.resources.iter().position(|r| r.cause == Cause::Beside).map(|n| n as ResourceId)
}

/// Where among `known` a host is, to which it is added if it is not there.
fn place(known: &mut Vec<Host>, host: &Host) -> u32 {
    let same = |h: &Host| (h.scheme_tls, &h.name, h.port) == (host.scheme_tls, &host.name, host.port);
    let there = known.iter().position(same);
    let place = there.unwrap_or_else(|| {
        known.push(host.clone());
        known.len() - 1
    });
    place as u32
}
