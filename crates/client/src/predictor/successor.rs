//! What Chrome has done since (chrome/browser/predictors, the loading predictor): for each page host, the origins that its
//! pages used, with how often they did and did not.

use std::collections::BTreeMap;

use super::Expected;

/// `kMinOriginConfidenceToTriggerPreresolve`: from this on a name is looked up.
const PRERESOLVE_FROM: f64 = 0.2;
/// `kMinOriginConfidenceToTriggerPreconnect`: above this, one connection is made.
const PRECONNECT_ABOVE: f64 = 0.75;
/// `max_consecutive_misses`: after so many visits in a row without it an origin is forgotten.
const MISSES_MAX: u32 = 3;
/// `max_origins_per_entry`.
const ORIGINS_MAX: usize = 50;
/// `max_hosts_to_track`.
const PAGES_MAX: usize = 100;

/// One line of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SuccessorRow {
    /// The page's origin.
    pub page: String,
    /// The origin that it uses.
    pub host: String,
    /// Visits that used it.
    pub hits: u32,
    /// Visits that did not.
    pub misses: u32,
    /// Of those, the last ones in a row.
    pub misses_in_a_row: u32,
}

#[derive(Clone, Copy, Default, Debug)]
struct Value {
    hits: u32,
    misses: u32,
    misses_in_a_row: u32,
}

impl Value {
    fn confidence(self) -> f64 {
        f64::from(self.hits) / (f64::from(self.hits) + f64::from(self.misses))
    }
}

#[derive(Clone, Default, Debug)]
struct Page {
    last_used: u64,
    origins: BTreeMap<String, Value>,
}

/// Which origins pages use, and how surely, as Chrome's loading predictor counts it.
#[derive(Clone, Default, Debug)]
pub struct Successor {
    pages: BTreeMap<String, Page>,
    uses: u64,
}

impl Successor {
    /// Nothing learned yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was learned before: rows as [`Successor::rows`] gave them.
    pub fn from_rows(rows: impl IntoIterator<Item = SuccessorRow>) -> Self {
        let mut successor = Self::default();
        for SuccessorRow { page, host, hits, misses, misses_in_a_row } in rows {
            // A row of which nothing is known would have no confidence.
            let value = Value { hits: hits.max(1), misses, misses_in_a_row };
            successor.page(&page).origins.insert(host, value);
        }
        successor
    }

    /// The table, a page after the other, that used longest ago first.
    pub fn rows(&self) -> impl Iterator<Item = SuccessorRow> {
        let mut pages: Vec<_> = self.pages.iter().collect();
        pages.sort_by_key(|(_, page)| page.last_used);
        pages.into_iter().flat_map(|(name, page)| {
            page.origins.iter().map(|(host, value)| SuccessorRow {
                page: name.clone(),
                host: host.clone(),
                hits: value.hits,
                misses: value.misses,
                misses_in_a_row: value.misses_in_a_row,
            })
        })
    }

    /// A page is visited: what it is expected to need, the surest first.
    pub fn visit(&mut self, page_host: &str) -> Vec<Expected> {
        let Some(page) = self.pages.get(page_host) else { return Vec::new() };
        let mut origins: Vec<_> = page.origins.iter().map(|(host, v)| (v.confidence(), host)).collect();
        origins.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        let worth = origins.into_iter().filter(|(confidence, _)| *confidence >= PRERESOLVE_FROM);
        let expected = |(confidence, host): (f64, &String)| Expected {
            host: host.clone(),
            connections: u32::from(confidence > PRECONNECT_ABOVE),
        };
        worth.map(expected).collect()
    }

    /// A visit is over, and used these origins.
    pub fn finish<'a>(&mut self, page_host: &str, used: impl Iterator<Item = &'a str>) {
        let page = self.page(page_host);
        for value in page.origins.values_mut() {
            value.misses += 1;
            value.misses_in_a_row += 1;
        }
        for host in used {
            let value = page.origins.entry(host.to_owned()).or_default();
            // The miss just counted for it was none.
            (value.hits, value.misses) = (value.hits + 1, value.misses.saturating_sub(1));
            value.misses_in_a_row = 0;
        }
        page.origins.retain(|_, value| value.misses_in_a_row < MISSES_MAX);
        while page.origins.len() > ORIGINS_MAX {
            let least = page.origins.iter().min_by(|a, b| a.1.confidence().total_cmp(&b.1.confidence()));
            let least = least.map(|(host, _)| host.clone()).expect("there are too many");
            page.origins.remove(&least);
        }
    }

    fn page(&mut self, page_host: &str) -> &mut Page {
        self.uses += 1;
        if !self.pages.contains_key(page_host) && self.pages.len() >= PAGES_MAX {
            let oldest = self.pages.iter().min_by_key(|(_, page)| page.last_used);
            let oldest = oldest.map(|(name, _)| name.clone()).expect("there are a hundred");
            self.pages.remove(&oldest);
        }
        let page = self.pages.entry(page_host.to_owned()).or_default();
        page.last_used = self.uses;
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(hits: u32, misses: u32) -> Successor {
        Successor::from_rows([SuccessorRow {
            page: "p".into(),
            host: "h".into(),
            hits,
            misses,
            misses_in_a_row: 0,
        }])
    }

    #[test]
    fn from_0_2_a_name_is_looked_up_and_above_0_75_one_connection_made() {
        let connections = |hits, misses| learned(hits, misses).visit("p").first().map(|e| e.connections);
        assert_eq!(connections(1, 0), Some(1));
        assert_eq!(connections(76, 24), Some(1));
        assert_eq!(connections(75, 25), Some(0));
        assert_eq!(connections(20, 80), Some(0));
        assert_eq!(connections(19, 81), None);
    }

    #[test]
    fn an_origin_missed_three_times_in_a_row_is_forgotten() {
        let mut successor = learned(50, 0);
        successor.finish("p", ["g"].into_iter());
        successor.finish("p", ["g"].into_iter());
        assert_eq!(successor.rows().filter(|r| r.host == "h").count(), 1);
        successor.finish("p", ["g"].into_iter());
        assert_eq!(successor.rows().filter(|r| r.host == "h").count(), 0);
    }

    #[test]
    fn hits_and_misses_are_counted_a_visit() {
        let mut successor = learned(1, 0);
        successor.finish("p", ["h"].into_iter());
        successor.finish("p", [].into_iter());
        successor.finish("p", ["h"].into_iter());
        let row = successor.rows().next().unwrap();
        assert_eq!((row.hits, row.misses, row.misses_in_a_row), (3, 1, 0));
        assert_eq!(Successor::from_rows([row.clone()]).rows().next(), Some(row));
    }

    #[test]
    fn fifty_origins_a_page_and_a_hundred_pages_are_kept() {
        let mut successor = Successor::new();
        let origins: Vec<_> = (0..60).map(|i| format!("h{i}")).collect();
        successor.finish("p", origins.iter().map(String::as_str));
        assert_eq!(successor.rows().count(), 50);
        (0..100).for_each(|i| successor.finish(&format!("q{i}"), ["h"].into_iter()));
        assert_eq!(successor.rows().count(), 100);
        assert!(successor.visit("p").is_empty(), "it was the oldest");
    }
}
