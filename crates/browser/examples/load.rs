//! Loads a built-in page over a network in which everything takes 100 ms and nothing queues.

use base::{Duration, Instant};
use browser::{Config, Loader};

fn main() {
    let pages = page::corpus::generate("2012", 1, 1).expect("a built-in corpus");
    let page = &pages[0];
    let mut loader = Loader::new(page, Config::default());
    let mut arrivals = std::collections::BTreeSet::new();
    let mut now = Instant::ZERO;
    loader.start(now);
    loop {
        while let Some(id) = loader.poll_fetch() {
            arrivals.insert((now + Duration::from_millis(100), id));
        }
        let arrival = arrivals.first().map(|(at, _)| *at);
        let Some(next) = [arrival, loader.poll_timeout()].into_iter().flatten().min() else { break };
        now = next;
        if Some(now) == arrival {
            let (_, id) = arrivals.pop_first().expect("just seen");
            loader.handle_head(now, id);
            loader.handle_data(now, id, page.resources[id as usize].body_len);
            loader.handle_complete(now, id);
        } else {
            loader.handle_timeout(now);
        }
    }
    println!("{}: {} requests, {:#?}", page.url, page.resources.len(), loader.moments());
}
