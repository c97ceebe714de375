//! Chrome's predictor of 2010–2016 (chrome/browser/net/predictor.cc and referrer.cc).
//!
//! For each page host and each host that its pages use there is an estimate E of the connections that a visit needs. A visit
//! makes it E × 0.66, and each connection that the page then uses adds 0.34, so that it tends to the connections a visit.

use std::collections::BTreeMap;

use super::Expected;

/// `kWeightingForOldExpectedValue`.
const WEIGHT_OF_OLD: f64 = 0.66;
/// `kInitialExpectedValue`: what a host first seen starts from.
const INITIAL: f64 = 2.0;
/// `kPreconnectWorthyExpectedValue`: more than this is worth connections.
const PRECONNECT_ABOVE: f64 = 0.8;
/// `kDNSPreresolutionWorthyExpectedValue`: more than this is worth a look-up.
const PRERESOLVE_ABOVE: f64 = 0.1;
/// `kDiscardableExpectedValue`: not more than this is forgotten.
const DISCARD_TO: f64 = 0.05;
/// `kReferrerTrimRatio`, the 24th root of ½: an hour of uptime.
const DECAY: f64 = 0.97153;
/// `kMaxSuggestions`: hosts a page.
const HOSTS_MAX: usize = 10;
/// `kMaxReferrers`: pages.
const PAGES_MAX: usize = 100;
/// `kStartupResolutionCount`: hosts of a start that are remembered for the next.
const STARTUP_MAX: usize = 10;
/// Connections to a page's host of which nothing is known (PrepareFrameSubresources).
const TO_UNKNOWN: u32 = 2;

/// One line of the table: what is known of one host that a page uses.
#[derive(Clone, PartialEq, Debug)]
pub struct LearnedRow {
    /// The page's origin.
    pub page: String,
    /// Visits to pages of that origin since it is known.
    pub page_loads: u32,
    /// The origin that it uses.
    pub host: String,
    /// Connections to it that visits used.
    pub navigations: u32,
    /// Visits that opened connections to it ahead of need.
    pub preconnects: u32,
    /// Visits that looked its name up ahead of need.
    pub preresolves: u32,
    /// Connections that the next visit is expected to need.
    pub expected: f64,
}

#[derive(Clone, Default, Debug)]
struct Value {
    navigations: u32,
    preconnects: u32,
    preresolves: u32,
    expected: f64,
}

#[derive(Clone, Default, Debug)]
struct Page {
    loads: u32,
    last_used: u64,
    hosts: BTreeMap<String, Value>,
}

/// Estimates of the connections that pages need, as Chrome made them in 2010–2016.
#[derive(Clone, Default, Debug)]
pub struct Learned {
    pages: BTreeMap<String, Page>,
    /// Counts what moves a page to the front of those last used.
    uses: u64,
    /// The first hosts of the last run, and of this one.
    last_start: Vec<String>,
    this_start: Vec<String>,
}

impl Learned {
    /// Nothing learned yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was learned before: rows as [`Learned::rows`] gave them, and the hosts of [`Learned::startup`].
    pub fn from_rows(rows: impl IntoIterator<Item = LearnedRow>, startup: Vec<String>) -> Self {
        let mut learned = Self { last_start: startup, ..Self::default() };
        learned.last_start.truncate(STARTUP_MAX);
        for row in rows {
            learned.suggest(&row.page, &row.host);
            let page = learned.pages.get_mut(&row.page).expect("it was suggested");
            page.loads = row.page_loads;
            let expected = if row.expected.is_finite() { row.expected.max(0.0) } else { 0.0 };
            let LearnedRow { host, navigations, preconnects, preresolves, .. } = row;
            page.hosts.insert(host, Value { navigations, preconnects, preresolves, expected });
        }
        learned
    }

    /// The table, a page after the other, that used longest ago first.
    pub fn rows(&self) -> impl Iterator<Item = LearnedRow> {
        let mut pages: Vec<_> = self.pages.iter().collect();
        pages.sort_by_key(|(_, page)| page.last_used);
        pages.into_iter().flat_map(|(name, page)| {
            page.hosts.iter().map(|(host, value)| LearnedRow {
                page: name.clone(),
                page_loads: page.loads,
                host: host.clone(),
                navigations: value.navigations,
                preconnects: value.preconnects,
                preresolves: value.preresolves,
                expected: value.expected,
            })
        })
    }

    /// The first hosts of this run, whose names the next will look up when it starts.
    pub fn startup(&self) -> &[String] {
        &self.this_start
    }

    /// The hosts of the last start, which this one takes.
    pub(crate) fn take_last_start(&mut self) -> Vec<String> {
        std::mem::take(&mut self.last_start)
    }

    /// A host is asked for something.
    pub(crate) fn note_start(&mut self, host: &str) {
        if self.this_start.len() < STARTUP_MAX && !self.this_start.iter().any(|h| h == host) {
            self.this_start.push(host.to_owned());
        }
    }

    /// A page is visited: what it is expected to need, its hosts in the order of their names.
    pub fn visit(&mut self, page_host: &str) -> Vec<Expected> {
        let Some(page) = self.pages.get_mut(page_host) else {
            return vec![Expected { host: page_host.to_owned(), connections: TO_UNKNOWN }];
        };
        self.uses += 1;
        page.last_used = self.uses;
        page.loads += 1;
        let mut expected = Vec::new();
        for (host, value) in &mut page.hosts {
            let estimate = value.expected;
            value.expected *= WEIGHT_OF_OLD; // what is used will be added
            if estimate > PRECONNECT_ABOVE {
                value.preconnects += 1;
                // The document itself is no sub-resource, and wants a connection too.
                let own = u32::from(host == page_host);
                expected.push(Expected { host: host.clone(), connections: estimate.ceil() as u32 + own });
            } else if estimate > PRERESOLVE_ABOVE {
                value.preresolves += 1;
                expected.push(Expected { host: host.clone(), connections: 0 });
            }
        }
        expected
    }

    /// A visit uses a connection to `host` for what the page refers to.
    pub fn used(&mut self, page_host: &str, host: &str) {
        let value = self.suggest(page_host, host);
        value.navigations += 1;
        value.expected += 1.0 - WEIGHT_OF_OLD;
    }

    /// The estimate for a host of a page, made if there is none.
    fn suggest(&mut self, page_host: &str, host: &str) -> &mut Value {
        self.uses += 1;
        if !self.pages.contains_key(page_host) && self.pages.len() >= PAGES_MAX {
            let oldest = self.pages.iter().min_by_key(|(_, page)| page.last_used);
            let oldest = oldest.map(|(name, _)| name.clone()).expect("there are a hundred");
            self.pages.remove(&oldest);
        }
        let new = Page { loads: 1, ..Page::default() };
        let page = self.pages.entry(page_host.to_owned()).or_insert(new);
        page.last_used = self.uses;
        if !page.hosts.contains_key(host) && page.hosts.len() >= HOSTS_MAX {
            let least = page.hosts.iter().min_by(|a, b| a.1.expected.total_cmp(&b.1.expected));
            let least = least.map(|(name, _)| name.clone()).expect("there are ten");
            page.hosts.remove(&least);
        }
        let first_seen = Value { expected: INITIAL, ..Value::default() };
        page.hosts.entry(host.to_owned()).or_insert(first_seen)
    }

    /// An hour has passed; Chrome also did this once whenever it saved the table (TrimReferrersNow).
    pub fn decay(&mut self) {
        for page in self.pages.values_mut() {
            page.hosts.retain(|_, value| {
                value.expected *= DECAY;
                value.expected > DISCARD_TO
            });
        }
        self.pages.retain(|_, page| !page.hosts.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(learned: &Learned, host: &str) -> f64 {
        learned.rows().find(|r| r.host == host).expect("it is known").expected
    }

    fn visits(learned: &mut Learned, page: &str, host: &str, connections: u32, times: u32) {
        for _ in 0..times {
            learned.visit(page);
            (0..connections).for_each(|_| learned.used(page, host));
        }
    }

    #[test]
    fn a_host_first_seen_starts_at_two_and_has_2_34_after_it() {
        let mut learned = Learned::new();
        learned.used("p", "h");
        assert!((expected(&learned, "h") - 2.34).abs() < 1e-12);
    }

    #[test]
    fn the_estimate_tends_to_the_connections_of_a_visit() {
        for connections in 0..8 {
            let mut learned = Learned::new();
            learned.used("p", "h");
            visits(&mut learned, "p", "h", connections, 40);
            assert!((expected(&learned, "h") - f64::from(connections)).abs() < 1e-6, "{connections}");
        }
    }

    #[test]
    fn above_0_8_connections_are_made_above_0_1_the_name_is_looked_up_below_nothing() {
        let row = |expected| LearnedRow {
            page: "p".into(),
            page_loads: 1,
            host: "h".into(),
            navigations: 1,
            preconnects: 0,
            preresolves: 0,
            expected,
        };
        let connections = |estimate: f64| {
            let mut learned = Learned::from_rows([row(estimate)], Vec::new());
            learned.visit("p").first().map(|e| e.connections)
        };
        assert_eq!(connections(2.34), Some(3));
        assert_eq!(connections(0.81), Some(1));
        assert_eq!(connections(0.8), Some(0));
        assert_eq!(connections(0.11), Some(0));
        assert_eq!(connections(0.1), None);
    }

    #[test]
    fn a_page_never_seen_gets_two_connections_to_itself() {
        let expected = Learned::new().visit("p");
        assert_eq!(expected, [Expected { host: "p".into(), connections: 2 }]);
    }

    #[test]
    fn the_pages_own_host_gets_one_connection_more_for_the_document() {
        let mut learned = Learned::new();
        learned.used("p", "p");
        learned.used("p", "q");
        let expected: Vec<_> = learned.visit("p").into_iter().map(|e| e.connections).collect();
        assert_eq!(expected, [4, 3]);
    }

    #[test]
    fn of_more_than_ten_hosts_the_one_used_least_is_forgotten() {
        let mut learned = Learned::new();
        (0..10).for_each(|i| learned.used("p", &format!("h{i}")));
        (0..10).filter(|i| *i != 4).for_each(|i| learned.used("p", &format!("h{i}")));
        learned.used("p", "new");
        let hosts: Vec<_> = learned.rows().map(|r| r.host).collect();
        assert_eq!(hosts.len(), 10);
        assert!(!hosts.contains(&"h4".to_owned()) && hosts.contains(&"new".to_owned()));
    }

    #[test]
    fn of_more_than_a_hundred_pages_the_one_used_longest_ago_is_forgotten() {
        let mut learned = Learned::new();
        (0..100).for_each(|i| learned.used(&format!("p{i}"), "h"));
        learned.visit("p0");
        learned.used("new", "h");
        let pages: Vec<_> = learned.rows().map(|r| r.page).collect();
        assert_eq!(pages.len(), 100);
        assert!(pages.contains(&"p0".to_owned()) && !pages.contains(&"p1".to_owned()));
    }

    #[test]
    fn an_estimate_halves_in_24_hours_and_below_0_05_is_dropped() {
        let mut learned = Learned::new();
        learned.used("p", "h");
        (0..24).for_each(|_| learned.decay());
        assert!((expected(&learned, "h") - 1.17).abs() < 1e-3);
        (0..109).for_each(|_| learned.decay());
        assert!(expected(&learned, "h") > 0.05);
        learned.decay();
        assert_eq!(learned.rows().count(), 0);
    }

    #[test]
    fn what_is_written_down_is_read_back() {
        let mut learned = Learned::new();
        visits(&mut learned, "q", "h", 2, 3);
        visits(&mut learned, "p", "g", 1, 2);
        (0..20).for_each(|i| learned.note_start(&format!("h{}", i % 12)));
        assert_eq!(learned.startup().len(), 10);
        let rows: Vec<_> = learned.rows().collect();
        assert_eq!(rows.iter().map(|r| &*r.page).collect::<Vec<_>>(), ["q", "p"], "the oldest first");
        let mut again = Learned::from_rows(rows.clone(), learned.startup().to_vec());
        assert_eq!(again.rows().collect::<Vec<_>>(), rows);
        assert_eq!(again.take_last_start(), learned.startup());
    }
}
