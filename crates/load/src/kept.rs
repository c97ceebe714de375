//! What SPDY clients keep for their servers: [`Techniques::kept_cwnd`](crate::Techniques::kept_cwnd).

use page::Page;

use crate::setup::origin_of;
use crate::{KeptSettings, Setup};

impl Setup {
    /// Gives a browser what hosts of `page` had it keep.
    pub(crate) fn bring_settings(&self, browser: &mut browser::Browser<'_>, page: &Page) {
        for (id, host) in (0..).zip(&page.hosts) {
            if let Some(kept) = self.memory.settings.iter().find(|kept| kept.host == origin_of(host)) {
                browser.set_kept_settings(id, kept.settings.clone());
            }
        }
    }

    /// What hosts have had the browser keep.
    pub(crate) fn kept_settings(&self, browser: &browser::Browser<'_>) -> Vec<KeptSettings> {
        let hosts = || (0..).zip(&browser.page().hosts).map(|(id, host)| (id, origin_of(host)));
        let elsewhere = self.memory.settings.iter().filter(|kept| hosts().all(|(_, host)| host != kept.host));
        let here = hosts()
            .map(|(id, host)| KeptSettings { host, settings: browser.client().kept_settings(id).to_vec() });
        elsewhere.cloned().chain(here.filter(|kept| !kept.settings.is_empty())).collect()
    }
}
