//! Our client in the matrix: the library's own [`live::fetch`], and what it has to have done.
//!
//! Both directions of every connection are also read by the passive decoder, which so meets every peer's bytes, and whose
//! frames are the evidence: that GOAWAY came before the response's end, that a reset went out.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::{Duration, Instant};
use bytes::Bytes;
use live::fetch::{self, Direction, Event, Exchange, Observer, Outcome, Protocol, Request, Url};
use live::tls;
use spdy::frame::Control;
use spdy::trace::{self, Decoder};
use spdy::{Limits, Status, Version};

use crate::contract::{
    self, ANSWER_MS, Check, ENDLESS_MAX, HUGE, LARGE, PARALLEL, PARALLEL_BASE, PUSHED, Scenario, Wanted,
};

/// Frames that are kept to be shown when a cell fails.
const FRAMES_KEPT: usize = 24;

/// Whom to talk to, and how.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Where it listens, on loopback.
    pub port: u16,
    /// What to speak.
    pub version: Version,
    /// Under TLS by ALPN, else by prior knowledge.
    pub tls: bool,
    /// The settings of the session.
    pub spdy: fn(Version) -> spdy::Config,
}

impl Target {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }
}

/// How a scenario went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// What was achieved, or what was not.
    pub result: Result<String, String>,
    /// The last frames, both ways, oldest first.
    pub frames: Vec<String>,
}

/// Runs one scenario of HTTP's against a server.
pub fn run(target: Target, scenario: Scenario) -> Report {
    let mut watch = Watch::default();
    let result = scenario_of(target, scenario, &mut watch);
    Report { result, frames: watch.frames.into() }
}

fn scenario_of(target: Target, scenario: Scenario, watch: &mut Watch) -> Result<String, String> {
    let small = || (get(target, "/small"), Wanted::Exactly(Bytes::from_static(contract::SMALL)));
    let bytes = |n| (get(target, &format!("/bytes/{n}")), Wanted::Pattern(n));
    match scenario {
        Scenario::Small => whole(target, vec![small()], watch),
        Scenario::Get400k => whole(target, vec![bytes(LARGE)], watch),
        Scenario::Post400k => {
            let body = contract::body(LARGE);
            let receipt = contract::receipt(LARGE, crc32fast::hash(&body));
            let request = Request { method: "POST".into(), body, ..get(target, "/upload") };
            whole(target, vec![(request, Wanted::Exactly(receipt.into()))], watch)?;
            Ok(format!("{LARGE} bytes sent"))
        }
        Scenario::Parallel100 => {
            let total = whole(target, (0..PARALLEL).map(|i| bytes(PARALLEL_BASE + i)).collect(), watch)?;
            match watch.open_max {
                1 => Err("never more than one stream was open".into()),
                n => Ok(format!("{total}, {n} streams at once")),
            }
        }
        Scenario::Push => push(target, watch),
        Scenario::Cancel => cancel(target, small(), watch),
        Scenario::GoAway => goaway(target, small(), watch),
        Scenario::GoAwayClient => {
            let config = fetch::Config { goaway: true, ..config(target) };
            ask(&config, vec![bytes(HUGE)], watch)?;
            match (watch.goaway_sent, watch.first_end) {
                (Some(said), Some(end)) if said < end => {
                    Ok(format!("{HUGE} bytes, {} of them after GOAWAY", HUGE - watch.data_before_goaway))
                }
                _ => Err("GOAWAY was not sent before the response was complete".into()),
            }
        }
        Scenario::Exec | Scenario::PortForward => Err(format!("{scenario} is not HTTP's")),
    }
}

/// Whole answers, all on one connection at the first try.
fn whole(target: Target, asked: Vec<(Request, Wanted)>, watch: &mut Watch) -> Result<String, String> {
    let exchanges = ask(&config(target), asked, watch)?;
    for exchange in &exchanges {
        if exchange.attempts != 1 || exchange.connection != Some(0) {
            return Err(format!(
                "{} took {} attempts, the last on connection {:?}",
                exchange.request.url.path(),
                exchange.attempts,
                exchange.connection
            ));
        }
    }
    Ok(format!("{} bytes", exchanges.iter().map(|e| e.body_len).sum::<u64>()))
}

fn push(target: Target, watch: &mut Watch) -> Result<String, String> {
    watch.pushes.push(Wanted::Pattern(PUSHED));
    let pusher = Wanted::Exactly(Bytes::from_static(contract::PUSHER));
    let exchanges = ask(&config(target), vec![(get(target, "/push"), pusher)], watch)?;
    let Some(pushed) = exchanges.iter().find(|e| e.pushed_with == Some(0)) else {
        return Err("nothing was pushed".into());
    };
    match pushed.request.url.path() {
        "/pushed" => Ok(format!("{PUSHED} bytes pushed")),
        other => Err(format!("pushed {other}")),
    }
}

/// One stream is reset after its first data; the next, on the same connection, is answered.
fn cancel(target: Target, small: (Request, Wanted), watch: &mut Watch) -> Result<String, String> {
    // Far more than `/small` has, far less than the other.
    let config = fetch::Config { cancel_after: Some(1_000), concurrent: 1, ..config(target) };
    let endless = (get(target, "/endless"), Wanted::Pattern(ENDLESS_MAX));
    watch.cancelled = Some(0);
    let exchanges = ask(&config, vec![endless, small], watch)?;
    let [endless, small, ..] = &exchanges[..] else {
        return Err("there are fewer exchanges than asked".into());
    };
    if small.connection != endless.connection || small.attempts != 1 {
        return Err("the session did not outlive the reset of one stream".into());
    }
    if !watch.reset_sent {
        return Err("RST_STREAM with CANCEL was not sent".into());
    }
    Ok(format!("cancelled after {} bytes, then /small", endless.body_len))
}

/// The server says GOAWAY amid the first answer; the second request goes elsewhere at once, the first is answered whole.
fn goaway(target: Target, small: (Request, Wanted), watch: &mut Watch) -> Result<String, String> {
    let config = fetch::Config { concurrent: 1, ..config(target) };
    let exchanges = ask(&config, vec![(get(target, "/goaway"), Wanted::Pattern(LARGE)), small], watch)?;
    let [first, second, ..] = &exchanges[..] else {
        return Err("there are fewer exchanges than asked".into());
    };
    match (watch.goaway_received, watch.first_end) {
        (Some(said), Some(end)) if said < end => {}
        _ => return Err("GOAWAY did not come before the response was complete".into()),
    }
    if (first.attempts, second.attempts) != (1, 1) || first.connection == second.connection {
        return Err("the request behind GOAWAY was not asked, once, on another connection".into());
    }
    Ok(format!("{LARGE} bytes past GOAWAY, further streams elsewhere"))
}

fn get(target: Target, path: &str) -> Request {
    let scheme = if target.tls { "https" } else { "http" };
    let text = format!("{scheme}://{HOST}:{}{path}", target.port);
    Request::get(Url::parse(&text).unwrap_or_else(|e| unreachable!("{text}: {e}")))
}

/// The name that is asked for; what it stands for is said in [`config`], so that no resolver is.
const HOST: &str = "localhost";

fn config(target: Target) -> fetch::Config {
    let mut config = fetch::Config::new(tls::Trust::Anybody);
    config.protocols = vec![Protocol::Spdy(target.version)];
    config.tls.common.offer = tls::Offer::Alpn;
    config.spdy = target.spdy;
    config.resolve = vec![(HOST.into(), None, IpAddr::V4(Ipv4Addr::LOCALHOST))];
    config.idle_timeout = Duration::from_millis(ANSWER_MS);
    config
}

/// Fetches, and checks all that came.
fn ask(
    config: &fetch::Config,
    asked: Vec<(Request, Wanted)>,
    watch: &mut Watch,
) -> Result<Vec<Exchange>, String> {
    let (requests, wanted): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
    for (i, (request, wanted)) in requests.iter().zip(wanted).enumerate() {
        watch.checks.insert(i, Check::new(request.url.path(), wanted));
    }
    let exchanges = fetch::fetch(requests, config, watch).map_err(|e| e.to_string())?;
    if let Some(fault) = &watch.undecoded {
        return Err(fault.clone());
    }
    for (i, exchange) in exchanges.iter().enumerate() {
        let path = exchange.request.url.path();
        let check = watch.checks.get(&i).ok_or_else(|| format!("{path} was pushed, and not expected"))?;
        let progress = || format!("after {} bytes", check.seen());
        if let Some(fault) = check.fault() {
            return Err(fault.to_owned());
        }
        match &exchange.outcome {
            Outcome::Complete => check.end().map(|_| ())?,
            Outcome::Cancelled if watch.cancelled == Some(i) => {}
            Outcome::Failed(why) => return Err(format!("{path}: {why}, {}", progress())),
            other => return Err(format!("{path}: {other:?}, {}", progress())),
        }
        match exchange.response.as_ref().map(|r| r.status) {
            Some(200) => {}
            Some(status) => return Err(format!("{path}: status {status}")),
            None => return Err(format!("{path}: no status")),
        }
    }
    if watch.cancelled.is_some_and(|i| exchanges[i].outcome != Outcome::Cancelled) {
        return Err("the response ended before it was cancelled".into());
    }
    Ok(exchanges)
}

/// Watches a fetch.
#[derive(Default)]
struct Watch {
    /// What each answer has to be.
    checks: BTreeMap<usize, Check>,
    /// What pushes have to be, in their order.
    pushes: Vec<Wanted>,
    /// The exchange that is to be cancelled.
    cancelled: Option<usize>,
    /// Passive readers of each connection, up and down.
    decoders: BTreeMap<usize, [Decoder; 2]>,
    frames: VecDeque<String>,
    /// What a passive reader could not read.
    undecoded: Option<String>,
    /// Frames that were seen, on all connections and both ways.
    count: u64,
    /// The number of the first GOAWAY among them.
    goaway_sent: Option<u64>,
    goaway_received: Option<u64>,
    /// The number of the last frame of the first request's answer.
    first_end: Option<u64>,
    data_before_goaway: u64,
    reset_sent: bool,
    /// Streams of ours that are open, and the most there were.
    open: u64,
    open_max: u64,
}

impl Observer for Watch {
    fn event(&mut self, _: Instant, event: &Event<'_>, exchanges: &[Exchange]) {
        match event {
            Event::Speaking { connection, protocol: Protocol::Spdy(version) } => {
                let decoder = || Decoder::new(*version, Limits::default());
                self.decoders.insert(*connection, [decoder(), decoder()]);
            }
            Event::Wire { connection, direction, bytes } => self.wire(*connection, *direction, bytes),
            Event::Sent { .. } => {
                self.open += 1;
                self.open_max = self.open_max.max(self.open);
            }
            Event::Pushed { exchange } if !self.pushes.is_empty() => {
                let path = exchanges[*exchange].request.url.path();
                self.checks.insert(*exchange, Check::new(path, self.pushes.remove(0)));
            }
            Event::Data { exchange, bytes } => {
                if let Some(check) = self.checks.get_mut(exchange) {
                    check.take(bytes);
                }
            }
            Event::Done { .. } => self.open = self.open.saturating_sub(1),
            _ => {}
        }
    }
}

impl Watch {
    fn wire(&mut self, connection: usize, direction: Direction, bytes: &[u8]) {
        let Some(decoders) = self.decoders.get_mut(&connection) else { return };
        decoders[direction as usize].handle_input(Bytes::copy_from_slice(bytes).into());
        while let Some(decoders) = self.decoders.get_mut(&connection) {
            match decoders[direction as usize].poll_frame() {
                Ok(Some(frame)) => {
                    let arrow = if direction == Direction::Up { '>' } else { '<' };
                    if self.frames.len() == FRAMES_KEPT {
                        self.frames.pop_front();
                    }
                    self.frames.push_back(format!("{connection}{arrow} {frame:#}"));
                    self.note(connection, direction, &frame);
                }
                Ok(None) => return,
                Err(why) => {
                    let end = if direction == Direction::Up { "we" } else { "the server" };
                    self.undecoded.get_or_insert(format!("what {end} sent cannot be decoded: {why}"));
                    return;
                }
            }
        }
    }

    fn note(&mut self, connection: usize, direction: Direction, frame: &trace::Frame) {
        self.count += 1;
        let count = self.count;
        match (&frame.content, direction) {
            (trace::Content::Data { id: 1, fin: true, .. }, Direction::Down) if connection == 0 => {
                self.first_end = Some(count);
            }
            (trace::Content::Control(Control::GoAway { .. }), Direction::Down) => {
                self.goaway_received.get_or_insert(count);
            }
            (trace::Content::Control(Control::GoAway { .. }), Direction::Up)
                if self.goaway_sent.is_none() =>
            {
                self.goaway_sent = Some(count);
                self.data_before_goaway = self.checks.get(&0).map_or(0, Check::seen);
            }
            (trace::Content::Control(Control::RstStream { status: Status::CANCEL, .. }), Direction::Up) => {
                self.reset_sent = true;
            }
            _ => {}
        }
    }
}
