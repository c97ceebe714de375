//! What each study measures on its loads, and what it draws of them.

use base::{Duration, Instant};

use super::Arm;
use crate::run::Job;
use crate::stats;

/// What a study keeps of a load.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Sample {
    /// Index of the page in its arm.
    pub page: usize,
    /// Index of the network in its arm.
    pub network: usize,
    /// Index of the transport in its arm.
    pub transport: usize,
    /// `None` if the load was not whole.
    pub plt_ms: Option<f64>,
    pub first_paint_ms: Option<f64>,
    pub connections: u32,
    /// Connections that carried nothing.
    pub unused: u32,
    /// The page's requests, in the arms that have one page.
    pub spans: Vec<Span>,
}

/// A request's phases, in milliseconds from the navigation.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Span {
    pub connect: Option<[f64; 2]>,
    pub tls: Option<[f64; 2]>,
    pub sent: f64,
    pub head: f64,
    pub complete: f64,
    pub bytes: u64,
}

impl Sample {
    pub fn new(page: usize, job: &Job<'_>, load: &load::Load, detailed: bool) -> Self {
        let whole = load.outcome == load::Outcome::Complete;
        let spans = if detailed { load.requests.iter().filter_map(Span::new).collect() } else { Vec::new() };
        Self {
            page,
            network: job.network,
            transport: job.transport,
            plt_ms: load.plt().filter(|_| whole).map(Duration::as_millis_f64),
            first_paint_ms: load.moments.first_paint.filter(|_| whole).map(ms),
            connections: load.connections.len() as u32,
            unused: load.connections.iter().filter(|c| c.record.requests == 0).count() as u32,
            spans,
        }
    }
}

impl Span {
    fn new(request: &browser::Request) -> Option<Self> {
        let t = request.timing?;
        let span = |(from, to): (Instant, Instant)| [ms(from), ms(to)];
        Some(Self {
            connect: t.connect.map(span),
            tls: t.tls.map(span),
            sent: ms(t.sent?),
            head: ms(t.head?),
            complete: ms(request.record.complete?),
            bytes: request.body_bytes,
        })
    }
}

fn ms(at: Instant) -> f64 {
    at.since(Instant::ZERO).as_millis_f64()
}

/// An arm and its loads, by page, network, run and transport.
pub(super) struct ArmLoads {
    pub arm: Arm,
    pub pages: usize,
    pub samples: Vec<Sample>,
}

impl ArmLoads {
    /// A figure of each load on a network over a transport, by page; `None` for those that have none.
    fn each(&self, network: usize, transport: usize, figure: fn(&Sample) -> Option<f64>) -> Vec<Option<f64>> {
        let of = self.samples.iter().filter(|s| s.network == network && s.transport == transport);
        of.map(figure).collect()
    }

    fn rtt(&self, network: usize) -> f64 {
        self.arm.networks[network].split('/').nth(2).and_then(|rtt| rtt.parse().ok()).unwrap_or(f64::NAN)
    }
}

fn plt(sample: &Sample) -> Option<f64> {
    sample.plt_ms
}

fn first_paint(sample: &Sample) -> Option<f64> {
    sample.first_paint_ms
}

/// Pairs that both have a figure.
fn pairs(a: &[Option<f64>], b: &[Option<f64>]) -> Vec<(f64, f64)> {
    a.iter().zip(b).filter_map(|(a, b)| Some(((*a)?, (*b)?))).collect()
}

fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut n) = (0.0, 0.0);
    for value in values {
        sum += value;
        n += 1.0;
    }
    stats::round(sum / n, 6)
}

/// Mean over pairs of how much less the second is, percent of the first.
fn gain_pct(pairs: &[(f64, f64)]) -> f64 {
    mean(pairs.iter().map(|(a, b)| 100.0 * (a - b) / a))
}

/// What is worth drawing.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// What it shows, in a sentence or two.
    pub caption: String,
    /// What is along.
    pub x: String,
    /// What is up.
    pub y: String,
    /// How it is drawn.
    pub shape: Shape,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// How a figure is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Points, both axes logarithmic, with the line on which both are equal.
    Scatter,
    /// A line a series.
    Lines,
    /// A line a series that keeps its height until the next point.
    Steps,
    /// A row a series; points are spans, from along to up.
    Spans,
}

/// Points under one name.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// What they are.
    pub name: String,
    /// Along, up.
    pub points: Vec<(f64, f64)>,
}

type Measured = (Vec<(&'static str, f64)>, Vec<Figure>);

/// What the study called `name` measures.
pub(super) fn measure(name: &str, arms: &[ArmLoads]) -> Measured {
    match name {
        "spdy-vs-http" => spdy_vs_http(arms),
        "spdy-real-sites" => spdy_real_sites(arms),
        "false-start" => false_start(arms),
        "connection-retry" => connection_retry(arms),
        "preconnect" => preconnect(arms),
        "initial-window" => initial_window(arms),
        "tls-record-size" => tls_record_size(arms),
        "flow-control" => flow_control(arms),
        "bufferbloat" => bufferbloat(arms),
        _ => Default::default(),
    }
}

/// Arms: the published network; the same link over round trips.
fn spdy_vs_http(arms: &[ArmLoads]) -> Measured {
    let [seed, trips] = arms else { return Default::default() };
    let scatter = pairs(&seed.each(0, 0, plt), &seed.each(0, 1, plt));
    let faster = scatter.iter().filter(|(http, spdy)| spdy < http).count();
    let line = |name: &str, figure: fn(&Sample) -> Option<f64>| Series {
        name: name.to_owned(),
        points: (0..trips.arm.networks.len())
            .map(|n| (trips.rtt(n), gain_pct(&pairs(&trips.each(n, 0, figure), &trips.each(n, 1, figure)))))
            .collect(),
    };
    let measured = vec![
        ("speedup_pct", gain_pct(&scatter)),
        ("faster_pct", 100.0 * faster as f64 / scatter.len() as f64),
    ];
    let figures = vec![
        Figure {
            caption: "A point a page. Below the red line SPDY is faster.".into(),
            x: "HTTP page load time, ms".into(),
            y: "SPDY, ms".into(),
            shape: Shape::Scatter,
            series: vec![Series { name: String::new(), points: scatter }],
        },
        Figure {
            caption: format!(
                "SPDY's mean gain over {} pages at other round-trip times of the same link: the size of the gain is the conditions'.",
                trips.pages
            ),
            x: "round-trip time, ms".into(),
            y: "gain, %".into(),
            shape: Shape::Lines,
            series: vec![line("page load time", plt), line("first paint", first_paint)],
        },
    ];
    (measured, figures)
}

/// Arms: one exchange without and with; pages without and with.
fn false_start(arms: &[ArmLoads]) -> Measured {
    let [one_without, one_with, without, with] = arms else { return Default::default() };
    let span = |arm: &ArmLoads| arm.samples.first().and_then(|s| s.spans.first()).cloned();
    let (Some(late), Some(early)) = (span(one_without), span(one_with)) else { return Default::default() };
    let pages = pairs(&without.each(0, 0, plt), &with.each(0, 0, plt));
    let measured = vec![
        ("sent_with_ms", early.sent),
        ("head_with_ms", early.head),
        ("sent_without_ms", late.sent),
        ("saved_ms", late.sent - early.sent),
        ("saved_page_ms", mean(pages.iter().map(|(a, b)| a - b))),
    ];
    let spans = |name: &str, pick: fn(&Span) -> [f64; 2]| {
        let point = |span: &Span| (pick(span)[0], pick(span)[1]);
        [(format!("{name}, without"), &late), (format!("{name}, with"), &early)]
            .map(|(name, span)| Series { name, points: vec![point(span)] })
    };
    let rows = [
        spans("TCP handshake", |s| s.connect.unwrap_or_default()),
        spans("TLS handshake", |s| s.tls.unwrap_or_default()),
        spans("request to first byte", |s| [s.sent, s.head]),
    ];
    let figure = Figure {
        caption: "One connection at a round trip of 83 ms, without False Start and with it.".into(),
        x: "ms".into(),
        y: String::new(),
        shape: Shape::Spans,
        series: rows.into_iter().flatten().collect(),
    };
    (measured, vec![figure])
}

/// A wait for the connection from which on a SYN must have waited for its first timeout of 3 s.
const STALL_MS: f64 = 2_900.0;

/// Arms: without, with.
fn connection_retry(arms: &[ArmLoads]) -> Measured {
    let [without, with] = arms else { return Default::default() };
    let waits = |arm: &ArmLoads| -> Vec<f64> {
        arm.samples.iter().filter_map(|s| s.spans.first()).map(|span| span.sent).collect()
    };
    let one_in = |waits: &[f64]| {
        let stalls = waits.iter().filter(|wait| **wait >= STALL_MS).count();
        waits.len() as f64 / stalls as f64
    };
    let line = |name: &str, waits: &[f64]| {
        let beyond = |limit: f64| waits.iter().filter(|w| **w > limit).count() as f64 / waits.len() as f64;
        let limits = (0..=70).map(|n| f64::from(n) * 50.0);
        Series { name: name.to_owned(), points: limits.map(|at| (at, 1e6 * beyond(at))).collect() }
    };
    let (a, b) = (waits(without), waits(with));
    let measured = vec![
        ("without_one_in", one_in(&a)),
        ("with_one_in", one_in(&b)),
        ("with_one_in_independent", one_in(&b)),
    ];
    let tail = |s: Series| Series { points: s.points.into_iter().filter(|p| p.0 >= 150.0).collect(), ..s };
    let figure = Figure {
        caption: format!(
            "How many of a million requests wait longer than so much for a connection ({} requests each; the round trip is 100 ms).",
            a.len()
        ),
        x: "ms waited".into(),
        y: "requests in a million".into(),
        shape: Shape::Steps,
        series: vec![tail(line("without", &a)), tail(line("racing after 250 ms", &b))],
    };
    (measured, vec![figure])
}

/// Arms: none, learned, blind two; networks are links by round trips.
fn preconnect(arms: &[ArmLoads]) -> Measured {
    let [none, learned, blind] = arms else { return Default::default() };
    let networks = 0..none.arm.networks.len();
    let gain = |arm: &ArmLoads, n: usize| gain_pct(&pairs(&none.each(n, 0, plt), &arm.each(n, 0, plt)));
    let far = networks.clone().filter(|n| none.rtt(*n) > 50.0).map(|n| gain(learned, n));
    let near = networks.clone().filter(|n| none.rtt(*n) == 0.0).map(|n| gain(learned, n));
    let connections = |arm: &ArmLoads| mean(arm.samples.iter().map(|s| f64::from(s.connections)));
    let unused = |arm: &ArmLoads| mean(arm.samples.iter().map(|s| f64::from(s.unused)));
    let measured = vec![
        ("gain_near_pct", mean(near)),
        ("gain_far_pct", mean(far)),
        ("learned_per_none", connections(learned) / connections(none)),
        ("blind_per_none", connections(blind) / connections(none)),
        ("blind_unused_more", unused(blind) - unused(none)),
    ];
    let link = |n: usize| none.arm.networks[n].rsplitn(2, '/').last().unwrap_or_default().to_owned();
    let lines = |arm: &ArmLoads| {
        let mut series: Vec<Series> = Vec::new();
        for n in networks.clone() {
            let point = (none.rtt(n), gain(arm, n));
            match series.iter_mut().find(|s| s.name == link(n)) {
                Some(line) => line.points.push(point),
                None => series.push(Series { name: link(n), points: vec![point] }),
            }
        }
        series
    };
    let figure = |arm: &ArmLoads, what: &str| Figure {
        caption: format!(
            "{what}: mean gain in page load time over {} pages, a line a link (kbit/s down/up). {:.1} connections a load instead of {:.1}.",
            arm.pages,
            connections(arm),
            connections(none)
        ),
        x: "round-trip time, ms".into(),
        y: "gain, %".into(),
        shape: Shape::Lines,
        series: lines(arm),
    };
    (measured, vec![figure(learned, "Learned preconnect"), figure(blind, "Two connections to every host")])
}

/// Arms: by server window, each with the client's small window, then its large one; transports are HTTP and SPDY.
fn initial_window(arms: &[ArmLoads]) -> Measured {
    let mut windows = Vec::new();
    for pair in arms.chunks_exact(2) {
        let cwnd = f64::from(pair[0].arm.set.initial_cwnd.unwrap_or_default());
        let cost = |transport: usize, network: usize| {
            let both = pairs(&pair[0].each(network, transport, plt), &pair[1].each(network, transport, plt));
            mean(both.iter().map(|(small, large)| small - large))
        };
        windows.push((cwnd, cost(0, 0), cost(1, 0)));
    }
    let at = |cwnd: f64| windows.iter().find(|w| w.0 == cwnd).copied().unwrap_or((cwnd, f64::NAN, f64::NAN));
    let above: Vec<_> = windows.iter().filter(|w| w.0 > 4.0).collect();
    let measured = vec![
        ("cost_below_ms", mean([at(2.0).1, at(4.0).1])),
        ("cost_above_ms", mean(above.iter().map(|w| w.1))),
        ("spdy_cost_above_ms", mean(above.iter().map(|w| w.2))),
        ("spdy_more_ms", mean(above.iter().map(|w| w.2 - w.1))),
    ];
    let line = |name: &str, pick: fn(&(f64, f64, f64)) -> f64| Series {
        name: name.to_owned(),
        points: windows.iter().map(|w| (w.0, pick(w))).collect(),
    };
    let figure = Figure {
        caption: "What a client's first window of 6 KB costs beside one of 64 KB, by the server's first window; mean over the pages."
            .into(),
        x: "server's initial cwnd, segments".into(),
        y: "page load time more, ms".into(),
        shape: Shape::Lines,
        series: vec![line("HTTP", |w| w.1), line("SPDY", |w| w.2)],
    };
    (measured, vec![figure])
}

/// Arms: by record size, the largest first; networks are links.
fn tls_record_size(arms: &[ArmLoads]) -> Measured {
    let [large, small @ ..] = arms else { return Default::default() };
    let networks = large.arm.networks.len();
    let saved = |arm: &ArmLoads, n: usize, figure: fn(&Sample) -> Option<f64>| {
        mean(pairs(&large.each(n, 0, figure), &arm.each(n, 0, figure)).iter().map(|(a, b)| a - b))
    };
    let over = |figure: fn(&Sample) -> Option<f64>| {
        let best = (0..networks)
            .map(|n| small.iter().map(|a| saved(a, n, figure)).fold(f64::NEG_INFINITY, f64::max));
        best.collect::<Vec<_>>()
    };
    let (paint, whole) = (over(first_paint), over(plt));
    let measured = vec![
        ("paint_saved_ms", paint.first().copied().unwrap_or(f64::NAN)),
        ("paint_more_than_plt_ms", paint.first().zip(whole.first()).map_or(f64::NAN, |(p, w)| p - w)),
    ];
    let line = |name: &str, n: usize, figure: fn(&Sample) -> Option<f64>| Series {
        name: name.to_owned(),
        points: small
            .iter()
            .rev()
            .map(|arm| (f64::from(arm.arm.set.record_bytes.unwrap_or_default()), saved(arm, n, figure)))
            .collect(),
    };
    let figure = |n: usize| Figure {
        caption: format!(
            "What smaller records save beside {} bytes, mean over {} pages on {} (kbit/s down/up, ms).",
            large.arm.set.record_bytes.unwrap_or_default(),
            large.pages,
            large.arm.networks[n]
        ),
        x: "bytes a record".into(),
        y: "ms saved".into(),
        shape: Shape::Lines,
        series: vec![line("first paint", n, first_paint), line("page load time", n, plt)],
    };
    (measured, (0..networks).map(figure).collect())
}

/// Arms: small images under each client's windows, A and B; then with large ones, A and B, from the smallest size on.
fn flow_control(arms: &[ArmLoads]) -> Measured {
    let [small_a, small_b, large @ ..] = arms else { return Default::default() };
    let time = |arm: &ArmLoads| arm.samples.first().and_then(plt).unwrap_or(f64::NAN);
    let spans = |arm: &ArmLoads| arm.samples.first().map(|s| s.spans.clone()).unwrap_or_default();
    let largest = |arm: &ArmLoads| spans(arm).iter().map(|s| s.bytes).max().unwrap_or(0) as f64 / 1e3;
    let ratios: Vec<(f64, f64)> =
        large.chunks_exact(2).map(|pair| (largest(&pair[0]), time(&pair[0]) / time(&pair[1]))).collect();
    // The size in the middle stands for "large": it was chosen before anything was measured.
    let middle = large.chunks_exact(2).nth(ratios.len() / 2);
    let Some([large_a, large_b]) = middle else { return Default::default() };
    let measured = vec![
        ("small_ratio", time(small_a) / time(small_b)),
        ("large_b_ms", time(large_b)),
        ("large_ratio", time(large_a) / time(large_b)),
        ("turns_at_kb", crossing(&ratios, 2.0).unwrap_or(f64::NAN)),
    ];
    let line = |name: &str, arm: &ArmLoads| {
        let mut done: Vec<_> = spans(arm).iter().map(|s| (s.complete, s.bytes)).collect();
        done.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut sum = 0;
        let points = done.into_iter().map(|(at, bytes)| {
            sum += bytes;
            (at, sum as f64 / 1e3)
        });
        Series { name: name.to_owned(), points: std::iter::once((0.0, 0.0)).chain(points).collect() }
    };
    let over_time = Figure {
        caption: format!(
            "Kilobytes of resources that are complete, over time; large images of {:.0} kB.",
            largest(large_a)
        ),
        x: "ms".into(),
        y: "kB complete".into(),
        shape: Shape::Steps,
        series: vec![line("A: windows of 64 KiB", large_a), line("B: windows of 10 MiB", large_b)],
    };
    let over_size = Figure {
        caption: "A's time for one of B's, by the size of the large images.".into(),
        x: "kB an image".into(),
        y: "A / B".into(),
        shape: Shape::Lines,
        series: vec![Series { name: String::new(), points: ratios }],
    };
    (measured, vec![over_time, over_size])
}

/// Where a line first reaches a height, between its points.
fn crossing(points: &[(f64, f64)], height: f64) -> Option<f64> {
    let steps = points.windows(2).map(|pair| (pair[0], pair[1]));
    let mut hits = steps.filter(|(a, b)| a.1 <= height && height <= b.1 && a.1 < b.1);
    hits.next().map(|(a, b)| a.0 + (b.0 - a.0) * (height - a.1) / (b.1 - a.1))
}

/// Arms: HTTP in the clear, HTTP over TLS, SPDY on the page's host alone, SPDY everywhere; networks are links.
fn spdy_real_sites(arms: &[ArmLoads]) -> Measured {
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
    (measured, vec![figure])
}

/// What is sent from then on are the images; by then a bulk transfer has filled whatever queue there is.
const BULK_ALONE_MS: f64 = 4_000.0;

/// Arms: the page alone, then beside a bulk transfer under drop-tail queues from short to long, then CoDel and FQ-CoDel in the
/// longest.
fn bufferbloat(arms: &[ArmLoads]) -> Measured {
    let [alone, tails @ .., codel, fq_codel] = arms else { return Default::default() };
    let time = |arm: &ArmLoads| {
        let spans = arm.samples.first().map(|s| s.spans.as_slice()).unwrap_or_default();
        let late = || spans.iter().filter(|s| s.sent >= BULK_ALONE_MS);
        late().map(|s| s.complete).fold(0.0, f64::max) - late().map(|s| s.sent).fold(f64::INFINITY, f64::min)
    };
    let queue = |arm: &ArmLoads| arm.arm.set.queue_ms.unwrap_or_default();
    let (Some(short), Some(long)) = (tails.first(), tails.last()) else { return Default::default() };
    let measured = vec![
        ("long_per_short", time(long) / time(short)),
        ("long_per_alone", time(long) / time(alone)),
        ("codel_per_long", time(codel) / time(long)),
        ("fq_codel_per_alone", time(fq_codel) / time(alone)),
    ];
    let flat = |name: &str, arm: &ArmLoads| Series {
        name: name.to_owned(),
        points: [short, long].map(|end| (queue(end), time(arm))).to_vec(),
    };
    let tail = Series {
        name: "drop-tail".into(),
        points: tails.iter().map(|arm| (queue(arm), time(arm))).collect(),
    };
    let figure = Figure {
        caption: format!(
            "What 40 images take beside a bulk transfer that has filled the queue, by the length of the queue (CoDel and FQ-CoDel: in the one of {} ms).",
            queue(long)
        ),
        x: "queue, ms of the line".into(),
        y: "first request to last byte, ms".into(),
        shape: Shape::Lines,
        series: vec![
            tail,
            flat("CoDel", codel),
            flat("FQ-CoDel", fq_codel),
            flat("without the transfer", alone),
        ],
    };
    (measured, vec![figure])
}
