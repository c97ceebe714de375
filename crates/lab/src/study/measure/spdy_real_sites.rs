//! SPDY on some of a page's hosts.

use super::{ArmLoads, Figure, Measured, Series, Shape, gain_pct, pairs, plt};

/// Arms: HTTP in the clear, HTTP over TLS, SPDY on the page's host alone, SPDY everywhere; networks are links.
pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let [clear, secured, partly, fully] = arms else { return Default::default() };
    let networks = 0..clear.arm.networks.len();
    let all = |from: &ArmLoads, to: &ArmLoads| {
        let of = |n| pairs(&from.each(n, 0, plt), &to.each(n, 0, plt));
        networks.clone().flat_map(of).collect::<Vec<_>>()
    };
    let from_http = all(secured, partly);
    let slower = from_http.iter().filter(|(http, spdy)| spdy > http).count();
    let measured = vec![
        ("partly_from_https_pct", gain_pct(&from_http)),
        ("partly_from_http_pct", gain_pct(&all(clear, partly))),
        ("fully_from_https_pct", gain_pct(&all(secured, fully))),
        ("fully_from_partly_pct", gain_pct(&all(partly, fully))),
        ("slower_pct", 100.0 * slower as f64 / from_http.len() as f64),
    ];
    let figure = Figure {
        caption: "A point a page on a network. Below the red line the page is faster with SPDY on its own host alone.".into(),
        x: "HTTP over TLS, page load time, ms".into(),
        y: "SPDY on the page's host, ms".into(),
        shape: Shape::Scatter,
        series: vec![Series { name: String::new(), points: from_http }],
    };
    (measured, vec![figure.into()])
}
