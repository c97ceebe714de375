//! What comes, or is asked for, before the page's parser comes to it: pushes, server hints, and what the client remembers of an
//! earlier visit.

use std::ops::Deref;

use origin::Recording;
use page::{Page, ResourceId};

use crate::{KnownPage, Setup};

impl Setup {
    /// `site`, one of the page's servers, as it pushes and hints under this setup.
    ///
    /// Hinted at is what [`Recording::with_hints`] finds on hosts of the document's party ([`Techniques::owners`](crate::Techniques)).
    /// What the document's own host has is named by its path, the rest by its URL.
    pub fn foresee<P: Deref<Target = Page>>(&self, site: Recording<P>) -> Recording<P> {
        let site = if self.techniques.push { site.with_automatic_pushes() } else { site };
        match self.techniques.hints {
            Some(form) => site.with_hints(form, |page, document, id| self.hint_uri(page, document, id)),
            None => site,
        }
    }

    /// How a document names what it is to hint at; `None` for what it is not to.
    fn hint_uri(&self, page: &Page, document: ResourceId, id: ResourceId) -> Option<String> {
        let [document, resource] = [document, id].map(|id| &page.resources[id as usize]);
        let [own, host] = [document, resource].map(|resource| page.host(resource));
        if !self.techniques.owners.are_one(&own.name, &host.name) {
            return None;
        }
        let path = String::from_utf8_lossy(&resource.path);
        if document.host == resource.host {
            return Some(path.into_owned());
        }
        let scheme = if self.secures(host) { "https" } else { "http" };
        Some(format!("{scheme}://{}{path}", host.authority()))
    }

    /// Tells a browser that is about to load `page` what it may ask for ahead of need.
    pub(crate) fn prepare(&self, browser: &mut browser::Browser<'_>, page: &Page) {
        browser.heed_hints(self.techniques.hints);
        if self.techniques.prefetch {
            let url = page.resource_url(0);
            let known = self.memory.pages.iter().find(|known| known.url == url);
            browser.prefetch(known.map(|known| known.resources.clone()).unwrap_or_default());
        }
    }

    /// What is known of pages after a visit.
    pub(crate) fn known_pages(&self, browser: &browser::Browser<'_>) -> Vec<KnownPage> {
        let mut pages = self.memory.pages.clone();
        if !self.techniques.prefetch {
            return pages;
        }
        let visited = KnownPage { url: browser.page().resource_url(0), resources: browser.needed() };
        match pages.iter_mut().find(|known| known.url == visited.url) {
            Some(known) => *known = visited,
            None => pages.push(visited),
        }
        pages
    }
}
