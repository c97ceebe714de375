//! A client and a server that talk to each other, the bytes between them cut at random.

mod fuzz;

use fuzz::{Exchange, pair};
use proptest::prelude::*;

fn exchange() -> impl Strategy<Value = Exchange> {
    let body = || (prop_oneof![Just(0u16), 1..20u16, 1..5_000u16], any::<bool>());
    (
        prop::sample::select(vec!["GET", "HEAD", "POST", "PUT", "OPTIONS"]),
        body(),
        prop::sample::select(vec![200u16, 204, 206, 304, 404]),
        body(),
        any::<bool>(),
    )
        .prop_map(|(method, request_body, status, response_body, interim)| Exchange {
            method,
            request_body,
            status,
            response_body,
            interim,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_sent_down_a_pipeline_arrives_in_order_and_whole(
        exchanges in prop::collection::vec(exchange(), 0..8),
        seed: u64,
    ) {
        pair(&exchanges, seed);
    }
}

#[test]
fn a_pipeline_of_a_hundred_passes_through_both_limits() {
    let x = Exchange {
        method: "GET",
        request_body: (0, true),
        status: 200,
        response_body: (9, true),
        interim: false,
    };
    pair(&vec![x; 100], 4);
}
