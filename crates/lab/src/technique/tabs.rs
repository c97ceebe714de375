//! The switch `tabs`: the plan's next pages behind each.

use std::sync::Arc;

use browser::TabOrder;
use page::Page;

use super::Technique;
use crate::error::Error;

/// The most pages behind the one in front.
pub const TABS_MAX: u32 = 50;

/// How many are behind, and when they are loaded: `9:classes`.
pub(super) fn read(text: &str) -> Option<(u32, TabOrder)> {
    let (behind, order) = text.split_once(':')?;
    let orders = [TabOrder::AtOnce, TabOrder::Classes, TabOrder::ForegroundFirst, TabOrder::OneByOne];
    let order = orders.into_iter().find(|o| order_name(*o) == order)?;
    let behind = behind.parse().ok().filter(|n| (1..=TABS_MAX).contains(n))?;
    Some((behind, order))
}

pub(super) fn order_name(order: TabOrder) -> &'static str {
    match order {
        TabOrder::AtOnce => "at-once",
        TabOrder::Classes => "classes",
        TabOrder::ForegroundFirst => "foreground-first",
        TabOrder::OneByOne => "one-by-one",
    }
}

/// What is loaded behind each page of a plan.
pub(crate) struct Behind {
    pages: Vec<Arc<Page>>,
    tabs: usize,
    order: TabOrder,
}

impl Behind {
    /// Nothing, unless a switch says so.
    ///
    /// # Errors
    /// If there are not enough pages.
    pub(crate) fn new(techniques: &[Technique], pages: &[Page]) -> Result<Self, Error> {
        let asked = techniques.iter().find_map(|t| match t {
            Technique::Tabs(behind, order) => Some((t, *behind as usize, *order)),
            _ => None,
        });
        let Some((switch, tabs, order)) = asked else {
            return Ok(Self { pages: Vec::new(), tabs: 0, order: TabOrder::default() });
        };
        if pages.len() <= tabs {
            let (have, need) = (pages.len(), tabs + 1);
            return Err(Error::Asked(format!(
                "'{switch}' needs {need} pages, as each has {tabs} others behind it; there are {have}"
            )));
        }
        Ok(Self { pages: pages.iter().cloned().map(Arc::new).collect(), tabs, order })
    }

    /// Puts those pages behind `page` that follow it in the plan, at whose end it begins anew.
    pub(crate) fn put(&self, setup: &mut load::Setup, page: &Page) {
        let place = self.pages.iter().position(|p| p.id == page.id);
        let others = self.pages.iter().cycle().skip(place.map_or(0, |n| n + 1)).take(self.tabs);
        setup.tabs = load::Tabs { behind: others.cloned().collect(), order: self.order };
    }
}
