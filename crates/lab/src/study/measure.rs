//! What each study measures on its loads, and what it draws of them: a module each, and what they share.

pub(super) mod bufferbloat;
pub(super) mod connection_retry;
pub(super) mod false_start;
pub(super) mod flow_control;
pub(super) mod initial_window;
pub(super) mod mobile_tls;
pub(super) mod pipelining;
pub(super) mod preconnect;
pub(super) mod reload;
pub(super) mod spdy_ablation;
pub(super) mod spdy_grid;
pub(super) mod spdy_real_sites;
pub(super) mod spdy_vs_http;
pub(super) mod tab_priority;
pub(super) mod tls_record_size;

use std::collections::BTreeSet;

use base::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::packets::{Moment, PacketLine, TimeLine, TimeLines};
use super::{Arm, Grid};
use crate::network::Network;
use crate::run::Job;
use crate::stats;

/// What a study keeps of a load.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Sample {
    /// Index of the page in its arm.
    pub page: usize,
    /// Index of the network in its arm.
    pub network: usize,
    /// Index of the transport in its arm.
    pub transport: usize,
    /// `None` if the load was not whole.
    pub plt_ms: Option<f64>,
    /// The first byte of the document's response.
    pub first_byte_ms: Option<f64>,
    pub first_paint_ms: Option<f64>,
    pub connections: u32,
    /// Connections that carried nothing.
    pub unused: u32,
    /// TLS handshakes that had a session of an earlier one of the load to resume, and those that had none.
    pub handshakes_resumed: u32,
    pub handshakes_full: u32,
    /// Hosts that one was made with.
    pub hosts_secured: u32,
    /// Bytes of all request heads, as they went out.
    pub head_bytes_up: u64,
    /// Bytes that had come and nobody had read, at most.
    pub unread_max: u64,
    /// Requests, and how many of them went to hosts that speak SPDY.
    pub requests: u32,
    pub over_spdy: u32,
    /// Of the largest resource's stream, at each of its pieces: when it came, bytes received and the window's edge; in the arms that
    /// are traced.
    pub progress: Vec<(f64, u64, u64)>,
    /// The page's requests, in the arms that have one page.
    pub spans: Vec<Span>,
    /// Its connections, there too, if there are several.
    pub lines: Vec<Line>,
    /// Its packets, in the arms that keep them.
    #[serde(default)]
    pub packets: Vec<PacketLine>,
    /// What became of it where things break.
    pub fate: Fate,
    /// When each page behind it was loaded, from the start of the one in front.
    pub behind_ms: Vec<f64>,
}

/// A connection's life, in milliseconds from the navigation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Line {
    pub opened: f64,
    /// It could carry requests.
    pub ready: Option<f64>,
    pub spare: bool,
    /// Its end, or that of the load.
    pub ended: f64,
    /// Its requests, from their sending to their end.
    pub requests: Vec<(f64, f64)>,
}

/// What became of a load where things break.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Fate {
    /// Something is missing without which the page cannot be shown as it should be.
    pub broken: bool,
    /// Resources that are missing.
    pub missing: u32,
    /// What is missing is named, each resource with what happened to it or to what leads to it, and nothing else is.
    pub told: bool,
    /// Requests that are not idempotent which reached their servers too often.
    pub doubled: u32,
    pub bytes_down: u64,
}

/// [`client::SentOn`], as it is kept.
#[derive(Serialize, Deserialize)]
#[serde(remote = "client::SentOn")]
enum SentOn {
    Fresh,
    Idle,
    Pipelined,
    Session,
}

/// A request's phases, in milliseconds from the navigation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Span {
    pub asked: f64,
    pub dns: Option<[f64; 2]>,
    pub connect: Option<[f64; 2]>,
    pub tls: Option<[f64; 2]>,
    pub sent: f64,
    pub head: f64,
    pub complete: f64,
    pub bytes: u64,
    /// It had to wait for a connection in use.
    pub queued: bool,
    /// From when it was made, or its name was known, to when it was handed to its connection.
    pub queue_ms: f64,
    /// From when it was made to the first byte of the answer.
    pub transaction_ms: f64,
    #[serde(with = "SentOn")]
    pub sent_on: client::SentOn,
}

impl Sample {
    pub fn new(page: usize, job: &Job<'_>, setup: &load::Setup, load: &load::Load, detailed: bool) -> Self {
        let asked = || load.requests.iter().zip(&job.page.resources).filter(|(r, _)| r.timing.is_some());
        let is_spdy = |host: u32| {
            let host = &job.page.hosts[host as usize];
            setup.host_transport(job.page, host) != client::Transport::Http1
        };
        let whole = load.outcome == load::Outcome::Complete;
        let spans = if detailed { load.requests.iter().filter_map(Span::new).collect() } else { Vec::new() };
        let lines = if detailed && load.connections.len() > 1 { Line::all(load) } else { Vec::new() };
        let handshakes = || load.connections.iter().map(|c| &c.record).filter(|c| c.handshake.is_some());
        let handshakes_resumed = handshakes().filter(|c| c.resumes).count();
        Self {
            page,
            network: job.network,
            transport: job.transport,
            plt_ms: load.plt().filter(|_| whole).map(Duration::as_millis_f64),
            first_byte_ms: load.moments.first_byte.filter(|_| whole).map(ms),
            first_paint_ms: load.moments.first_paint.filter(|_| whole).map(ms),
            connections: load.connections.len() as u32,
            handshakes_resumed: handshakes_resumed as u32,
            handshakes_full: (handshakes().count() - handshakes_resumed) as u32,
            hosts_secured: handshakes().map(|c| c.host).collect::<BTreeSet<_>>().len() as u32,
            unused: load.connections.iter().filter(|c| c.record.requests == 0).count() as u32,
            head_bytes_up: load.requests.iter().map(|r| r.head_bytes_up).sum(),
            unread_max: load.unread_max,
            requests: asked().count() as u32,
            over_spdy: asked().filter(|(_, resource)| is_spdy(resource.host)).count() as u32,
            progress: progress(load),
            spans,
            lines,
            packets: PacketLine::all(load),
            fate: Fate::new(job.page, load),
            behind_ms: load.behind.iter().filter_map(|tab| tab.moments.load).map(ms).collect(),
        }
    }
}

impl Line {
    fn all(load: &load::Load) -> Vec<Self> {
        let of = |c: &load::Connection| {
            let record = &c.record;
            let own = load.requests.iter().filter(|r| r.connection == Some(record.id));
            let span = |r: &browser::Request| Some((ms(r.timing?.sent?), ms(r.record.complete?)));
            Self {
                opened: ms(record.opened),
                ready: record.secured.or(record.connected).map(ms),
                spare: record.purpose == client::Purpose::Spare,
                ended: ms(record.closed.unwrap_or(load.ended)),
                requests: own.filter_map(span).collect(),
            }
        };
        load.connections.iter().map(of).collect()
    }
}

impl Fate {
    fn new(page: &page::Page, load: &load::Load) -> Self {
        let own = |id: page::ResourceId| page.resources.get(id as usize);
        let missing = || load.troubles.iter().filter(|t| t.is_missing());
        // Counted apart from what the client says of itself: by what the page could use.
        let unused = load.requests.iter().filter(|r| r.record.used.is_none()).count();
        let explained = |t: &browser::Trouble| match &t.end {
            browser::End::Failed(why) => !why.is_empty(),
            browser::End::NeverAsked => own(t.resource).is_some_and(|r| r.cause.parent().is_some()),
            browser::End::Whole | browser::End::Unfinished(_) => false,
        };
        let posts = load.repeated.iter().filter(|(id, _)| own(*id).is_some_and(|r| r.method == "POST"));
        Self {
            broken: missing().any(|t| t.blocks),
            missing: missing().count() as u32,
            told: missing().count() == unused && missing().all(explained),
            doubled: posts.map(|(_, times)| times).sum(),
            bytes_down: load.down.bytes_in,
        }
    }
}

impl Span {
    fn new(request: &browser::Request) -> Option<Self> {
        let t = request.timing?;
        let span = |(from, to): (Instant, Instant)| [ms(from), ms(to)];
        Some(Self {
            asked: ms(t.queued),
            dns: t.dns.map(span),
            connect: t.connect.map(span),
            tls: t.tls.map(span),
            sent: ms(t.sent?),
            head: ms(t.head?),
            complete: ms(request.record.complete?),
            bytes: request.body_bytes,
            queued: request.queued,
            queue_ms: ms(t.sent?) - ms(t.dns.map_or(t.queued, |(_, known)| known.max(t.queued))),
            transaction_ms: ms(t.head?) - ms(t.queued),
            sent_on: request.sent_on?,
        })
    }
}

/// The way of the largest resource, the first of equals.
fn progress(load: &load::Load) -> Vec<(f64, u64, u64)> {
    let sizes = (0..).zip(&load.requests).map(|(id, r)| (r.body_bytes, std::cmp::Reverse(id)));
    let Some((_, std::cmp::Reverse(largest))) = sizes.max() else { return Vec::new() };
    let of_it = load.progress.iter().filter(|p| p.request == largest);
    of_it.map(|p| (ms(p.at), p.received, p.edge)).collect()
}

fn ms(at: Instant) -> f64 {
    at.since(Instant::ZERO).as_millis_f64()
}

/// An arm and its loads, by page, network, run and transport.
pub(super) struct ArmLoads {
    pub arm: Arm,
    /// The axes of its networks, if they are a grid.
    pub grid: Option<Grid>,
    /// The networks, in the order of [`Sample::network`].
    pub networks: Vec<Network>,
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
        self.networks[network].rtt_ms
    }
}

fn plt(sample: &Sample) -> Option<f64> {
    sample.plt_ms
}

fn first_byte(sample: &Sample) -> Option<f64> {
    sample.first_byte_ms
}

fn first_paint(sample: &Sample) -> Option<f64> {
    sample.first_paint_ms
}

/// Pairs that both have a figure.
fn pairs(a: &[Option<f64>], b: &[Option<f64>]) -> Vec<(f64, f64)> {
    a.iter().zip(b).filter_map(|(a, b)| Some(((*a)?, (*b)?))).collect()
}

/// So many of something, in words.
fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut n) = (0.0, 0.0);
    for value in values {
        sum += value;
        n += 1.0;
    }
    stats::round(sum / n, 6)
}

/// How much less the mean of the second is, percent of the mean of the first: what is saved of all that was waited.
fn gain_of_means_pct(pairs: &[(f64, f64)]) -> f64 {
    let (a, b) = means(pairs);
    100.0 * (a - b) / a
}

/// The mean of the first, and of the second.
fn means(pairs: &[(f64, f64)]) -> (f64, f64) {
    (mean(pairs.iter().map(|p| p.0)), mean(pairs.iter().map(|p| p.1)))
}

/// Mean over pairs of how much less the second is, percent of the first.
fn gain_pct(pairs: &[(f64, f64)]) -> f64 {
    mean(pairs.iter().map(|(a, b)| 100.0 * (a - b) / a))
}

/// What is worth drawing.
#[derive(Clone, PartialEq, Debug)]
pub enum Picture {
    /// One plot.
    Figure(Figure),
    /// Many, to be compared.
    Panels(Panels),
    /// Packets of connections, to be compared.
    TimeLines(TimeLines),
    /// Words and figures.
    Table(Table),
}

impl From<Table> for Picture {
    fn from(table: Table) -> Self {
        Picture::Table(table)
    }
}

/// A published table made again, with ours beside what was published.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Table {
    /// What it has, in a sentence or two.
    pub caption: String,
    /// What the columns are.
    pub head: Vec<String>,
    /// A cell a column: the first in words, the others figures.
    pub rows: Vec<Vec<String>>,
}

impl From<Figure> for Picture {
    fn from(figure: Figure) -> Self {
        Picture::Figure(figure)
    }
}

impl From<Panels> for Picture {
    fn from(panels: Panels) -> Self {
        Picture::Panels(panels)
    }
}

/// Small multiples: panels in rows and columns that have their axes in common. What has one name has one colour in all of them.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Panels {
    /// What it shows, in a sentence or two.
    pub caption: String,
    /// What is along, in each panel.
    pub x: String,
    /// What is up, in each panel.
    pub y: String,
    /// What the columns are, from left to right.
    pub columns: Vec<String>,
    /// The rows, from top to bottom.
    pub rows: Vec<Row>,
}

/// A row of panels.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// A panel a column.
    pub panels: Vec<Panel>,
}

/// One of many plots.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Panel {
    /// Lines with names: those of the legend.
    pub lines: Vec<Series>,
    /// Lines behind them, faint and without names: what those sum up. The axis has room for most of their points; the others are cut off.
    pub behind: Vec<Series>,
}

/// A plot.
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
    /// A row a series: a bar from nought to its one point, along. What has no point has no bar.
    Bars,
    /// A row a series; points are spans, from along to up. The first is a life, drawn as a frame; the second how long it took to come
    /// about, in grey; the others are what filled it.
    Lives,
    /// A row a series; the first point is a span, the others are dots along it.
    Dots,
}

/// Points under one name.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// What they are.
    pub name: String,
    /// Along, up.
    pub points: Vec<(f64, f64)>,
}

/// Figures by the keys of [`super::Published`], and what is worth drawing.
pub(super) type Measured = (Vec<(&'static str, f64)>, Vec<Picture>);
