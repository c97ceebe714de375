//! What SPDY clients keep for their servers: [`Techniques::kept_cwnd`](crate::Techniques::kept_cwnd).

use page::Page;
use spdy::frame::Setting;

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

    /// With how many segments the server of a host of `page` is to begin by what its client has kept and brings back, no more than its word
    /// is good for; `None` if it brings nothing.
    pub fn brings_cwnd(&self, page: &Page, host: &page::Host) -> Option<u32> {
        let most = self.techniques.kept_cwnd?;
        if self.host_transport(page, host) == client::Transport::Http1 {
            return None;
        }
        let kept = self.memory.settings.iter().find(|kept| kept.host == origin_of(host))?;
        let setting = kept.settings.iter().find(|setting| setting.id == Setting::CURRENT_CWND)?;
        Some(setting.value.min(most))
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
