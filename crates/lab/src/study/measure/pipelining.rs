//! Browsing sessions with and without pipelining: who waits for a connection, what carries requests, how long answers take.

use client::SentOn;

use super::{ArmLoads, Figure, Measured, Picture, Series, Shape, Span, Table, mean};

/// A line of the published tables: what was found with pipelining and without.
struct Line {
    /// Which session on which network, as our figures are called too.
    name: &'static str,
    keys: [&'static str; 6],
    /// Share of requests that were queued, %.
    queued: [f64; 2],
    queue_ms: [f64; 2],
    /// New, idle, pipelined, %.
    with: [f64; 3],
    /// New, idle, %.
    without: [f64; 2],
    transaction_ms: [f64; 2],
    /// Within so many ms: how many, %.
    within: &'static [(f64, f64, f64)],
}

macro_rules! keys {
    ($session:literal) => {
        [
            concat!($session, "_queued_without_pct"),
            concat!($session, "_queued_with_pct"),
            concat!($session, "_queue_ratio"),
            concat!($session, "_pipelined_pct"),
            concat!($session, "_new_without_pct"),
            concat!($session, "_latency_ratio"),
        ]
    };
}

/// As published. Of Amazon at moderate latency the two shares without add up to 109 %, as they were printed.
const PUBLISHED: [Line; 10] = [
    Line {
        name: "Facebook, moderate",
        keys: keys!("facebook_moderate"),
        queued: [0.0, 79.1],
        queue_ms: [29.0, 1630.0],
        with: [2.0, 13.0, 85.0],
        without: [4.0, 96.0],
        transaction_ms: [702.0, 1906.0],
        within: &[(1500.0, 97.0, 45.0), (1200.0, 91.0, 38.0), (900.0, 75.0, 32.0)],
    },
    Line {
        name: "Facebook, low",
        keys: keys!("facebook_low"),
        queued: [0.0, 78.6],
        queue_ms: [6.0, 285.0],
        with: [2.0, 13.0, 84.0],
        without: [3.0, 97.0],
        transaction_ms: [341.0, 346.0],
        within: &[(1000.0, 99.0, 99.0), (700.0, 92.0, 91.0), (400.0, 61.0, 61.0)],
    },
    Line {
        name: "Amazon, moderate",
        keys: keys!("amazon_moderate"),
        queued: [0.0, 54.4],
        queue_ms: [116.0, 791.0],
        with: [12.0, 20.0, 68.0],
        without: [13.0, 96.0],
        transaction_ms: [635.0, 1083.0],
        within: &[(1200.0, 91.0, 77.0), (900.0, 79.0, 69.0), (600.0, 62.0, 61.0)],
    },
    Line {
        name: "Amazon, low",
        keys: keys!("amazon_low"),
        queued: [0.0, 39.8],
        queue_ms: [12.0, 136.0],
        with: [6.0, 28.0, 66.0],
        without: [13.0, 87.0],
        transaction_ms: [266.0, 204.0],
        within: &[(1000.0, 93.0, 99.0), (700.0, 90.0, 94.0), (400.0, 84.0, 85.0)],
    },
    Line {
        name: "Flickr, moderate",
        keys: keys!("flickr_moderate"),
        queued: [0.0, 57.0],
        queue_ms: [43.0, 814.0],
        with: [10.0, 19.0, 71.0],
        without: [27.0, 73.0],
        transaction_ms: [859.0, 1091.0],
        within: &[(2000.0, 95.0, 88.0), (1500.0, 87.0, 74.0), (1000.0, 67.0, 60.0)],
    },
    Line {
        name: "Flickr, low",
        keys: keys!("flickr_low"),
        queued: [0.0, 57.0],
        queue_ms: [7.0, 211.0],
        with: [12.0, 19.0, 69.0],
        without: [27.0, 73.0],
        transaction_ms: [291.0, 366.0],
        within: &[(1000.0, 99.0, 98.0), (700.0, 97.0, 93.0), (400.0, 72.0, 71.0)],
    },
    Line {
        name: "AsiaNewsPhoto, moderate",
        keys: keys!("asianewsphoto_moderate"),
        queued: [0.0, 44.0],
        queue_ms: [21.0, 726.0],
        with: [16.0, 33.0, 51.0],
        without: [7.0, 93.0],
        transaction_ms: [1310.0, 1248.0],
        within: &[(2000.0, 84.0, 82.0), (1500.0, 82.0, 76.0), (1000.0, 52.0, 54.0)],
    },
    Line {
        name: "AsiaNewsPhoto, low",
        keys: keys!("asianewsphoto_low"),
        queued: [0.0, 38.0],
        queue_ms: [31.0, 400.0],
        with: [11.0, 33.0, 56.0],
        without: [8.0, 92.0],
        transaction_ms: [752.0, 689.0],
        within: &[(1500.0, 88.0, 84.0), (1000.0, 82.0, 82.0), (500.0, 46.0, 57.0)],
    },
    Line {
        name: "MapQuest, moderate",
        keys: keys!("mapquest_moderate"),
        queued: [0.0, 42.0],
        queue_ms: [52.0, 381.0],
        with: [12.0, 30.0, 58.0],
        without: [16.0, 84.0],
        transaction_ms: [677.0, 732.0],
        within: &[(1500.0, 96.0, 96.0), (1200.0, 87.0, 83.0), (900.0, 76.0, 70.0)],
    },
    Line {
        name: "MapQuest, low",
        keys: keys!("mapquest_low"),
        queued: [0.0, 44.0],
        queue_ms: [10.0, 198.0],
        with: [11.0, 32.0, 57.0],
        without: [14.0, 86.0],
        transaction_ms: [260.0, 500.0],
        within: &[(900.0, 99.0, 87.0), (600.0, 95.0, 75.0), (300.0, 65.0, 40.0)],
    },
];

/// What one session was like.
struct Session<'a> {
    spans: Vec<&'a Span>,
}

impl Session<'_> {
    fn share(&self, of: impl Fn(&Span) -> bool) -> f64 {
        mean(self.spans.iter().map(|span| if of(span) { 100.0 } else { 0.0 }))
    }

    fn queued(&self) -> f64 {
        self.share(|span| span.queued)
    }

    fn queue_ms(&self) -> f64 {
        mean(self.spans.iter().map(|span| span.queue_ms))
    }

    fn sent_on(&self, how: SentOn) -> f64 {
        self.share(|span| span.sent_on == how)
    }

    fn transaction_ms(&self) -> f64 {
        mean(self.spans.iter().map(|span| span.transaction_ms))
    }

    fn within(&self, limit_ms: f64) -> f64 {
        self.share(|span| span.transaction_ms <= limit_ms)
    }
}

/// With and without, in the order of [`PUBLISHED`]. Arms: four sites without and with, AsiaNewsPhoto without and with, and
/// [`BURSTS`]; the four are Facebook, Amazon, Flickr, MapQuest; networks are moderate, low.
fn sessions(arms: &[ArmLoads]) -> Option<Vec<[Session<'_>; 2]>> {
    let [without, with, asia_without, asia_with, ..] = arms else { return None };
    let (four, asia) = ([with, without], [asia_with, asia_without]);
    let order = [(four, 0), (four, 1), (four, 2), (asia, 0), (four, 3)];
    let all = order.into_iter().flat_map(|(arms, page)| [0, 1].map(|network| (arms, page, network)));
    Some(all.map(|(arms, page, network)| arms.map(|arm| session(arm, page, network))).collect())
}

fn session(arm: &ArmLoads, page: usize, network: usize) -> Session<'_> {
    let samples = arm.samples.iter().filter(|s| s.page == page && s.network == network);
    Session { spans: samples.flat_map(|s| &s.spans).collect() }
}

pub(in crate::study) fn measure(arms: &[ArmLoads]) -> Measured {
    let Some(sessions) = sessions(arms) else { return Default::default() };
    let mut measured = Vec::new();
    for (line, [with, without]) in PUBLISHED.iter().zip(&sessions) {
        let figures = [
            without.queued(),
            with.queued(),
            with.queue_ms() / without.queue_ms(),
            with.sent_on(SentOn::Pipelined),
            without.sent_on(SentOn::Fresh),
            with.transaction_ms() / without.transaction_ms(),
        ];
        measured.extend(line.keys.into_iter().zip(figures));
    }
    let curve = |name: &str, session: &Session<'_>| {
        let limits = (0..=60).map(|n| f64::from(n) * 50.0);
        Series { name: name.to_owned(), points: limits.map(|at| (at, session.within(at))).collect() }
    };
    let figure = |n: usize| Figure {
        caption: format!(
            "{} latency: the share of responses whose first byte is there within so many ms.",
            PUBLISHED[n].name
        ),
        x: "ms since the request was made".into(),
        y: "% of responses".into(),
        shape: Shape::Lines,
        series: vec![curve("with pipelining", &sessions[n][0]), curve("without", &sessions[n][1])],
    };
    let figures = [0, 1].map(figure).into_iter().chain(bursts(arms)).map(Picture::from);
    (measured, tables(&sessions).into_iter().map(Picture::from).chain(figures).collect())
}

/// The size of bursts.
pub(in crate::study) fn turns(arms: &[ArmLoads]) -> Vec<String> {
    let Some(Figure { series, .. }) = bursts(arms) else { return Vec::new() };
    let line = |s: &Series| {
        let list = s.points.iter().map(|(requests, gain)| format!("{gain:.0} % at {requests:.0}"));
        format!(
            "{}: pipelining shortens the mean transaction of Facebook's by {} requests a page.",
            s.name,
            list.collect::<Vec<_>>().join(", ")
        )
    };
    series.iter().map(line).collect()
}

/// Pages over which the last two arms, without and with, spread the same number of requests.
const BURSTS: [f64; 4] = [56.0, 28.0, 14.0, 7.0];

/// What the size of bursts makes of it.
fn bursts(arms: &[ArmLoads]) -> Option<Figure> {
    let [.., without, with] = arms else { return None };
    let line = |name: &str, network: usize| {
        let points = BURSTS.iter().enumerate().map(|(page, pages)| {
            let [with, without] = [with, without].map(|arm| session(arm, page, network));
            let gain = 100.0 * (1.0 - with.transaction_ms() / without.transaction_ms());
            (with.spans.len() as f64 / pages, gain)
        });
        Series { name: name.to_owned(), points: points.collect() }
    };
    Some(Figure {
        caption: "Facebook's transactions spread over 56, 28, 14 and 7 pages: by how much pipelining shortens the mean transaction, \
                  by requests a page."
            .into(),
        x: "requests a page".into(),
        y: "gain, %".into(),
        shape: Shape::Lines,
        series: vec![line("moderate latency", 0), line("low latency", 1)],
    })
}

/// Both published tables, ours beneath theirs.
fn tables(sessions: &[[Session<'_>; 2]]) -> [Table; 2] {
    let lines = || PUBLISHED.iter().zip(sessions);
    let list = |values: &[f64]| values.iter().map(|v| format!("{v:.0}")).collect::<Vec<_>>().join(" / ");
    let mut rows = Vec::new();
    for (line, [with, without]) in lines() {
        rows.push(vec![
            line.name.to_owned(),
            "published".to_owned(),
            list(&line.queued),
            list(&line.queue_ms),
            list(&line.with),
            list(&line.without),
            list(&line.transaction_ms),
        ]);
        let kinds = [SentOn::Fresh, SentOn::Idle, SentOn::Pipelined];
        rows.push(vec![
            String::new(),
            "ours".to_owned(),
            list(&[with.queued(), without.queued()]),
            list(&[with.queue_ms(), without.queue_ms()]),
            list(&kinds.map(|kind| with.sent_on(kind))),
            list(&[SentOn::Fresh, SentOn::Idle].map(|kind| without.sent_on(kind))),
            list(&[with.transaction_ms(), without.transaction_ms()]),
        ]);
    }
    let head = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    let first = Table {
        caption: "How requests went out, and how long they and their answers took, with pipelining / without. Moderate latency is low \
                  latency and 200 ms."
            .into(),
        head: head(&[
            "session",
            "",
            "queued, %",
            "queue, ms",
            "with: new / idle / pipelined, %",
            "without: new / idle, %",
            "transaction, ms",
        ]),
        rows,
    };
    let within = lines().flat_map(|(line, [with, without])| {
        let row = |n: usize, (limit, theirs_with, theirs_without): (f64, f64, f64)| {
            vec![
                if n == 0 { line.name.to_owned() } else { String::new() },
                format!("{limit:.0}"),
                list(&[theirs_with, theirs_without]),
                list(&[with.within(limit), without.within(limit)]),
            ]
        };
        line.within.iter().enumerate().map(|(n, limit)| row(n, *limit)).collect::<Vec<_>>()
    });
    let second = Table {
        caption:
            "Share of responses whose first byte was there within so many ms, %, with pipelining / without."
                .into(),
        head: head(&["session", "within, ms", "published", "ours"]),
        rows: within.collect(),
    };
    [first, second]
}
