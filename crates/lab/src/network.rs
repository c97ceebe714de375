//! Networks: profiles by name, `DOWN/UP/RTT/LOSS`, traces; each with everything that decides how a load goes on it.
//!
//! A [`Network`] is complete: no value in it is "the default", so that a plan which holds it says all. Names bring the
//! defaults of their era. The 2010 ones re-create published experiments, in which pages were replayed from one place:
//! servers that answer at once, and in the clear.

use link::{LossConfig, PathConfig, QueueConfig, Rate};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::record::preset;
use crate::setting::{
    Compute, Congestion, Discipline, HostRtt, Line, MS_MAX, Pacing, RecordSizing, Spdy, Stack, Think, Tls,
    TlsScope, Unknown, WindowScaling, figure, is_default, ms,
};

/// Everything around a page that decides how it loads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// What rows and tables call it.
    pub name: String,
    /// The access link's rate towards the client.
    pub down: Line,
    /// The access link's rate towards the servers.
    pub up: Line,
    /// Round-trip time between client and servers without any queue.
    pub rtt_ms: f64,
    /// Extra delay each way, drawn for each packet from 0 to this.
    pub jitter_ms: f64,
    /// Share of packets lost at random on the way down, percent.
    pub loss_down_pct: f64,
    /// Share of packets lost at random on the way up, percent.
    pub loss_up_pct: f64,
    /// Mean number of packets lost in a row; 1 for losses independent of each other.
    pub loss_burst_packets: f64,
    /// Bytes that may wait for the link towards the client.
    pub queue_down_bytes: u64,
    /// Bytes that may wait for the link towards the servers.
    pub queue_up_bytes: u64,
    /// What those queues do when they fill.
    pub queue_discipline: Discipline,
    /// Whose TCP constants hold, but for the next six.
    pub stack: Stack,
    /// Segments a sender may have in flight at first.
    pub initial_cwnd: u32,
    /// The receive window that the client advertises at first, bytes.
    pub initial_rwnd_bytes: u32,
    /// When a lost SYN is sent again first.
    pub syn_timeout_ms: f64,
    /// Congestion control.
    pub congestion: Congestion,
    /// Whether windows may exceed 65,535 bytes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub window_scaling: WindowScaling,
    /// Whether senders spread their segments over the round trip.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pacing: Pacing,
    /// Whose settings both ends of a SPDY session have.
    pub spdy: Spdy,
    /// What secures connections.
    pub tls: Tls,
    /// Which of them.
    pub tls_scope: TlsScope,
    /// Bytes of a server's certificate chain.
    pub cert_chain_bytes: u32,
    /// Bytes of plain text in a full record.
    pub record_bytes: u32,
    /// By what rule servers cut records.
    #[serde(default, skip_serializing_if = "is_default")]
    pub record_sizing: RecordSizing,
    /// What looking up a name costs that is not in the cache.
    pub dns_ms: f64,
    /// What servers take to answer.
    pub think: Think,
    /// How long the browser computes.
    pub compute: Compute,
    /// How far away each host is.
    pub host_rtt: HostRtt,
    /// HTTP/1.1 connections to one host at most.
    pub connections_per_host: u32,
    /// When a load that has not reached `onload` is given up.
    pub give_up_ms: f64,
}

/// A network that has a name.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// Rate towards the client.
    pub down_kbps: u64,
    /// Rate towards the servers.
    pub up_kbps: u64,
    /// Round-trip time.
    pub rtt_ms: u32,
    /// Loss each way.
    pub loss_pct: f64,
    /// The era whose TCP, TLS and servers it brings.
    pub stack: Stack,
    /// Who published the figures.
    pub source: &'static str,
}

const CHART: &str = "the scatter of SPDY against HTTP over the top 300 sites, by SPDY's authors";
const WHITEPAPER: &str = "\"SPDY: An experimental protocol for a faster web\", Chromium, 2009; \
                          it gives no round-trip time for its main table: 100 ms is ours";
const WEBPAGETEST: &str = "WebPageTest, connectivity profiles";
const LIGHTHOUSE: &str = "Lighthouse, simulated slow 4G";

const fn profile(
    (name, down_kbps, up_kbps, rtt_ms): (&'static str, u64, u64, u32),
    loss_pct: f64,
    stack: Stack,
    source: &'static str,
) -> Profile {
    Profile { name, down_kbps, up_kbps, rtt_ms, loss_pct, stack, source }
}

/// Every profile. All rates are in kbit/s, towards the client first.
pub const PROFILES: [Profile; 13] = [
    profile(("seed", 2_000, 386, 100), 0.0, Stack::Linux2010, CHART),
    profile(("whitepaper-dsl", 2_000, 375, 100), 1.0, Stack::Linux2010, WHITEPAPER),
    profile(("whitepaper-cable", 4_000, 1_000, 100), 1.0, Stack::Linux2010, WHITEPAPER),
    profile(("cable", 5_000, 1_000, 28), 0.0, Stack::Today, WEBPAGETEST),
    profile(("dsl", 1_500, 384, 50), 0.0, Stack::Today, WEBPAGETEST),
    profile(("fios", 20_000, 5_000, 4), 0.0, Stack::Today, WEBPAGETEST),
    profile(("dial", 49, 30, 120), 0.0, Stack::Today, WEBPAGETEST),
    profile(("3g", 1_600, 768, 300), 0.0, Stack::Today, WEBPAGETEST),
    profile(("3g-fast", 1_600, 768, 150), 0.0, Stack::Today, WEBPAGETEST),
    profile(("3g-slow", 400, 400, 400), 0.0, Stack::Today, WEBPAGETEST),
    profile(("4g", 9_000, 9_000, 170), 0.0, Stack::Today, WEBPAGETEST),
    profile(("lte", 12_000, 12_000, 70), 0.0, Stack::Today, WEBPAGETEST),
    profile(("lighthouse-mobile", 1_638, 675, 150), 0.0, Stack::Today, LIGHTHOUSE),
];

/// Settings that replace those a network's name brings.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs, reason = "each is the field of `Network` with its name")]
pub struct Overrides {
    /// Bytes of either queue.
    pub queue_bytes: Option<u64>,
    /// Either queue as the time its link takes to send it.
    pub queue_ms: Option<f64>,
    pub queue_discipline: Option<Discipline>,
    pub jitter_ms: Option<f64>,
    pub loss_burst_packets: Option<f64>,
    pub stack: Option<Stack>,
    pub initial_cwnd: Option<u32>,
    pub initial_rwnd_bytes: Option<u32>,
    pub syn_timeout_ms: Option<f64>,
    pub congestion: Option<Congestion>,
    pub window_scaling: Option<WindowScaling>,
    pub pacing: Option<Pacing>,
    pub spdy: Option<Spdy>,
    pub tls: Option<Tls>,
    pub tls_scope: Option<TlsScope>,
    pub cert_chain_bytes: Option<u32>,
    pub record_bytes: Option<u32>,
    pub record_sizing: Option<RecordSizing>,
    pub dns_ms: Option<f64>,
    pub think: Option<Think>,
    pub compute: Option<Compute>,
    pub host_rtt: Option<HostRtt>,
    pub connections_per_host: Option<u32>,
    pub give_up_ms: Option<f64>,
}

impl Network {
    /// The network that `asked` stands for: a profile's name, `DOWN/UP/RTT[/LOSS]` in kbit/s, kbit/s, ms and percent
    /// each way, or `trace:DOWNFILE,UPFILE/RTT[/LOSS]`. Only profiles of 2010 bring the stack of 2010.
    pub fn named(asked: &str) -> Result<Self, Error> {
        if let Some(p) = PROFILES.iter().find(|p| p.name == asked) {
            let (down, up) = (Line::Kbps(p.down_kbps), Line::Kbps(p.up_kbps));
            return Self::new(p.name, (down, up), f64::from(p.rtt_ms), p.loss_pct, p.stack);
        }
        let unknown = || {
            let names: Vec<_> = PROFILES.iter().map(|p| p.name).collect();
            let names = names.join(", ");
            Error::Asked(format!(
                "unknown network '{asked}'; known are {names}, DOWN/UP/RTT/LOSS (kbit/s, kbit/s, ms, %) and \
                 trace:DOWNFILE,UPFILE/RTT/LOSS"
            ))
        };
        let (lines, rtt_ms, loss_pct) = match asked.strip_prefix("trace:") {
            Some(rest) => {
                let (files, rtt_ms, loss_pct) = split_trace(rest).ok_or_else(unknown)?;
                let (down, up) = files.split_once(',').ok_or_else(unknown)?;
                let line = |path: &str| Line::Trace { path: path.to_owned(), fingerprint: None };
                ((line(down), line(up)), rtt_ms, loss_pct)
            }
            None => {
                let parts: Vec<_> = asked.split('/').collect();
                let ([down, up, rtt] | [down, up, rtt, _]) = parts[..] else { return Err(unknown()) };
                let bad = |what: String| Error::Asked(format!("network '{asked}': {what}"));
                let part = |what, s: &str, max| {
                    figure(s, max).ok_or_else(|| bad(format!("{what} '{s}' is not within 0–{max}")))
                };
                let line = |s: &str| s.parse().map_err(|e: Unknown| bad(e.to_string()));
                let loss = parts.get(3).map_or(Ok(0.0), |s| part("loss", s, LOSS_PCT_MAX))?;
                ((line(down)?, line(up)?), part("round-trip time", rtt, MS_MAX)?, loss)
            }
        };
        Self::new(asked, lines, rtt_ms, loss_pct, Stack::Today)
    }

    /// A network with the other settings of its era, and the customary queues.
    fn new(
        name: &str,
        (mut down, mut up): (Line, Line),
        rtt_ms: f64,
        loss_pct: f64,
        stack: Stack,
    ) -> Result<Self, Error> {
        seal(&mut down)?;
        seal(&mut up)?;
        let queue =
            |line: &Line| Ok::<_, Error>(QueueConfig::sized_for(&rate(line)?.0, ms(rtt_ms)).limit_bytes);
        let then = stack == Stack::Linux2010;
        let tls = tls::Config::new(tls::Mode::Tls13Full);
        let mut network = Network {
            name: name.to_owned(),
            queue_down_bytes: queue(&down)?,
            queue_up_bytes: queue(&up)?,
            down,
            up,
            rtt_ms,
            jitter_ms: 0.0,
            loss_down_pct: loss_pct,
            loss_up_pct: loss_pct,
            loss_burst_packets: 1.0,
            queue_discipline: Discipline::DropTail,
            stack,
            initial_cwnd: 0,
            initial_rwnd_bytes: 0,
            syn_timeout_ms: 0.0,
            congestion: Congestion::Cubic,
            window_scaling: WindowScaling::On,
            pacing: Pacing::Off,
            spdy: Spdy::Chrome2013,
            tls: if then { Tls::None } else { Tls::Tls13 },
            tls_scope: TlsScope::Recorded,
            cert_chain_bytes: tls.chain_len,
            record_bytes: tls.record_size,
            record_sizing: RecordSizing::Fixed,
            // One round trip to a resolver that knows the answer. Nearer resolvers are asked for with a setting.
            dns_ms: rtt_ms,
            think: if then { Think::None } else { Think::Recorded },
            compute: Compute(1.0),
            host_rtt: HostRtt::Equal,
            connections_per_host: 6,
            give_up_ms: 300_000.0,
        };
        network.adopt(stack);
        Ok(network)
    }

    /// Takes over the TCP constants of `stack`, and the SPDY settings of its time.
    fn adopt(&mut self, stack: Stack) {
        let tcp = preset(stack);
        self.stack = stack;
        self.initial_cwnd = tcp.initial_cwnd;
        self.initial_rwnd_bytes = tcp.initial_rwnd as u32;
        self.syn_timeout_ms = tcp.syn_rto.as_millis_f64();
        self.congestion = match tcp.congestion {
            tcp::Congestion::Cubic => Congestion::Cubic,
            tcp::Congestion::Reno => Congestion::Reno,
        };
        self.spdy = match stack {
            Stack::Linux2010 => Spdy::Chrome2012,
            Stack::Today => Spdy::Chrome2013,
        };
    }

    /// Replaces settings. A stack brings its own constants first.
    pub fn apply(&mut self, o: &Overrides) -> Result<(), Error> {
        fn set<T: Clone>(value: &mut T, to: &Option<T>) {
            if let Some(to) = to {
                value.clone_from(to);
            }
        }
        if let Some(stack) = o.stack {
            self.adopt(stack);
        }
        if let Some(bytes) = o.queue_bytes {
            (self.queue_down_bytes, self.queue_up_bytes) = (bytes, bytes);
        }
        if let Some(span) = o.queue_ms {
            (self.queue_down_bytes, self.queue_up_bytes) =
                (self.queue_of(&self.down, span)?, self.queue_of(&self.up, span)?);
        }
        set(&mut self.queue_discipline, &o.queue_discipline);
        set(&mut self.jitter_ms, &o.jitter_ms);
        set(&mut self.loss_burst_packets, &o.loss_burst_packets);
        set(&mut self.initial_cwnd, &o.initial_cwnd);
        set(&mut self.initial_rwnd_bytes, &o.initial_rwnd_bytes);
        set(&mut self.syn_timeout_ms, &o.syn_timeout_ms);
        set(&mut self.congestion, &o.congestion);
        set(&mut self.window_scaling, &o.window_scaling);
        set(&mut self.pacing, &o.pacing);
        set(&mut self.spdy, &o.spdy);
        set(&mut self.tls, &o.tls);
        set(&mut self.tls_scope, &o.tls_scope);
        set(&mut self.cert_chain_bytes, &o.cert_chain_bytes);
        set(&mut self.record_bytes, &o.record_bytes);
        set(&mut self.record_sizing, &o.record_sizing);
        set(&mut self.dns_ms, &o.dns_ms);
        set(&mut self.think, &o.think);
        set(&mut self.compute, &o.compute);
        set(&mut self.host_rtt, &o.host_rtt);
        set(&mut self.connections_per_host, &o.connections_per_host);
        set(&mut self.give_up_ms, &o.give_up_ms);
        Ok(())
    }

    /// Bytes of a queue that its line takes `span_ms` to send.
    fn queue_of(&self, line: &Line, span_ms: f64) -> Result<u64, Error> {
        let Some(rate) = rate(line)?.0.mean() else { return Ok(u64::MAX) };
        let bytes = rate.bytes_in(ms(span_ms));
        if (bytes as f64) < QUEUE_BYTES_MIN {
            let least = rate.time_to_send(QUEUE_BYTES_MIN as u64).as_millis_f64().ceil();
            return Err(Error::Asked(format!(
                "network '{}': in {span_ms} ms its line of {line} sends {bytes} bytes, and a queue that holds less than a packet holds none: \
                 --queue-ms {least} or more",
                self.name
            )));
        }
        Ok(bytes)
    }

    /// Whether two runs of one load can differ. Where hosts are is drawn once and for all, from their names.
    pub fn is_random(&self) -> bool {
        self.loss_down_pct > 0.0 || self.loss_up_pct > 0.0 || self.jitter_ms > 0.0
    }

    /// The field that is out of its bounds, and what they are.
    pub fn check(&self) -> Result<(), String> {
        let within = |field: &str, value: f64, low: f64, high: f64| {
            let fits = (low..=high).contains(&value);
            fits.then_some(()).ok_or_else(|| format!("{field} {value} is not within {low}–{high}"))
        };
        if self.name.is_empty() || self.name.len() > 200 || self.name.chars().any(char::is_control) {
            return Err("name is empty, too long, or holds a control character".to_owned());
        }
        within("rtt_ms", self.rtt_ms, 0.0, MS_MAX)?;
        within("jitter_ms", self.jitter_ms, 0.0, MS_MAX)?;
        within("loss_down_pct", self.loss_down_pct, 0.0, LOSS_PCT_MAX)?;
        within("loss_up_pct", self.loss_up_pct, 0.0, LOSS_PCT_MAX)?;
        within("loss_burst_packets", self.loss_burst_packets, 1.0, 1e6)?;
        within("queue_down_bytes", self.queue_down_bytes as f64, QUEUE_BYTES_MIN, QUEUE_BYTES_MAX)?;
        within("queue_up_bytes", self.queue_up_bytes as f64, QUEUE_BYTES_MIN, QUEUE_BYTES_MAX)?;
        within("initial_cwnd", f64::from(self.initial_cwnd), 1.0, 1_000.0)?;
        within("initial_rwnd_bytes", f64::from(self.initial_rwnd_bytes), 1_460.0, (1u64 << 30) as f64)?;
        within("syn_timeout_ms", self.syn_timeout_ms, 1.0, MS_MAX)?;
        within("cert_chain_bytes", f64::from(self.cert_chain_bytes), 0.0, 1_048_576.0)?;
        within("record_bytes", f64::from(self.record_bytes), 1.0, 16_384.0)?;
        if self.record_sizing != RecordSizing::Fixed {
            self.check_sizing()?;
        }
        within("dns_ms", self.dns_ms, 0.0, MS_MAX)?;
        within("connections_per_host", f64::from(self.connections_per_host), 1.0, 256.0)?;
        within("give_up_ms", self.give_up_ms, 1.0, 86_400_000.0)?;
        self.loss(self.loss_down_pct).and(self.loss(self.loss_up_pct)).map(|_| ()).map_err(|e| e.to_string())
    }

    /// A rule for records needs records, and room to choose.
    fn check_sizing(&self) -> Result<(), String> {
        let Self { record_sizing: rule, record_bytes, .. } = self;
        if self.tls == Tls::None {
            return Err(format!("record_sizing '{rule}' has nothing to act on: TLS is 'none' (--tls 1.3)"));
        }
        if *record_bytes != tls::Config::new(tls::Mode::Tls13Full).record_size {
            return Err(format!(
                "record_sizing '{rule}' contradicts record_bytes {record_bytes}: only 'fixed' has one size"
            ));
        }
        Ok(())
    }

    fn loss(&self, pct: f64) -> Result<LossConfig, link::ConfigError> {
        let p = pct / 100.0;
        if p == 0.0 {
            Ok(LossConfig::None)
        } else if self.loss_burst_packets > 1.0 {
            LossConfig::burst(p, self.loss_burst_packets)
        } else {
            Ok(LossConfig::Bernoulli { p })
        }
    }

    /// Enters the fingerprints of its traces; an error if it has other ones.
    pub fn seal(&mut self) -> Result<(), Error> {
        seal(&mut self.down)?;
        seal(&mut self.up)
    }

    /// The access link, towards the client and towards the servers. Reads the traces, if it has any.
    pub fn paths(&self) -> Result<(PathConfig, PathConfig), Error> {
        let discipline = match self.queue_discipline {
            Discipline::DropTail => link::Discipline::DropTail,
            Discipline::CoDel => link::Discipline::CoDel,
            Discipline::FqCoDel => link::Discipline::FqCoDel,
        };
        let queue = |limit_bytes| QueueConfig { limit_bytes, limit_packets: None, discipline };
        let loss = |pct| self.loss(pct).map_err(|e| Error::Asked(format!("network '{}': {e}", self.name)));
        let (loss_down, loss_up) = (loss(self.loss_down_pct)?, loss(self.loss_up_pct)?);
        let delay = ms(self.rtt_ms) / 2;
        let jitter = ms(self.jitter_ms);
        let path = |rate, loss, bytes| PathConfig {
            rate,
            delay,
            jitter,
            loss,
            queue: queue(bytes),
            outages: Vec::new(),
        };
        Ok((
            path(rate(&self.down)?.0, loss_down, self.queue_down_bytes),
            path(rate(&self.up)?.0, loss_up, self.queue_up_bytes),
        ))
    }
}

/// Less than a full packet may never pass.
const QUEUE_BYTES_MIN: f64 = 1_500.0;

/// More than any memory.
const QUEUE_BYTES_MAX: f64 = (1u64 << 40) as f64;

/// Loss above which nothing that deserves to be called a load can happen.
const LOSS_PCT_MAX: f64 = 90.0;

/// `FILES/RTT` or `FILES/RTT/LOSS`; file names may hold slashes.
fn split_trace(s: &str) -> Option<(&str, f64, f64)> {
    let (rest, last) = s.rsplit_once('/')?;
    if let Some((files, rtt)) = rest.rsplit_once('/')
        && let (Some(rtt), Some(loss)) = (figure(rtt, MS_MAX), figure(last, LOSS_PCT_MAX))
    {
        return Some((files, rtt, loss));
    }
    Some((rest, figure(last, MS_MAX)?, 0.0))
}

fn seal(line: &mut Line) -> Result<(), Error> {
    let (_, print) = rate(line)?;
    if let Line::Trace { fingerprint, .. } = line {
        *fingerprint = print;
    }
    Ok(())
}

/// The rate of a line, and the fingerprint of its trace, which is read and must be the one it was.
fn rate(line: &Line) -> Result<(Rate, Option<u64>), Error> {
    match line {
        Line::Kbps(_) => Ok((line.bitrate().map_or(Rate::Unlimited, Rate::Constant), None)),
        Line::Trace { path, fingerprint } => {
            let file = std::path::Path::new(path);
            let text = std::fs::read(file).map_err(|e| Error::io("cannot read", file, e))?;
            let print = base::rng::derive(0, &text);
            if fingerprint.is_some_and(|f| f != print) {
                let what = "this trace is not the one that the plan was made with";
                return Err(Error::Asked(format!("{path}: {what}")));
            }
            let trace = link::Trace::parse(&String::from_utf8_lossy(&text))
                .map_err(|e| Error::Asked(format!("{path}: {e}")))?;
            Ok((Rate::Trace(std::sync::Arc::new(trace)), Some(print)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The queue holds one bandwidth-delay product, or 50 ms if that is more.
    #[test]
    fn the_seed_network_is_that_of_the_published_chart() {
        let n = Network::named("seed").unwrap();
        assert_eq!((&n.down, &n.up), (&Line::Kbps(2_000), &Line::Kbps(386)));
        assert_eq!((n.rtt_ms, n.loss_down_pct, n.loss_up_pct), (100.0, 0.0, 0.0));
        assert_eq!(
            (n.tls, n.stack, n.initial_cwnd, n.syn_timeout_ms),
            (Tls::None, Stack::Linux2010, 3, 3_000.0)
        );
        assert_eq!((n.queue_down_bytes, n.queue_up_bytes), (25_000, 4_825));
        assert_eq!(Network::named("fios").unwrap().queue_down_bytes, 125_000);
        assert!(!n.is_random());
    }

    #[test]
    fn every_profile_is_within_its_bounds_and_named_once() {
        for (i, p) in PROFILES.iter().enumerate() {
            Network::named(p.name).unwrap().check().unwrap();
            assert!(PROFILES[..i].iter().all(|q| q.name != p.name));
        }
    }

    #[test]
    fn a_network_can_be_spelled_out() {
        let n = Network::named("2000/386/100/0.5").unwrap();
        assert_eq!((n.name.as_str(), n.loss_down_pct, n.stack), ("2000/386/100/0.5", 0.5, Stack::Today));
        assert!(n.is_random());
        assert_eq!(Network::named("2000/386/100").unwrap().loss_up_pct, 0.0);
    }

    #[test]
    fn an_unknown_network_is_answered_with_the_known_ones_in_one_line() {
        for (asked, says) in [
            ("tin-can", "unknown network 'tin-can'; known are seed, whitepaper-dsl"),
            ("1/2", "unknown network '1/2'; known are"),
            ("2000/0/100/0", "network '2000/0/100/0': '0' is no rate"),
            ("2000/386/-5/0", "network '2000/386/-5/0': round-trip time '-5' is not within 0–60000"),
            ("2000/386/100/100", "loss '100' is not within 0–90"),
            ("trace:a/100", "unknown network 'trace:a/100'"),
            ("trace:/none/a,/none/b/100", "cannot read /none/a: "),
        ] {
            let error = Network::named(asked).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_trace_is_sealed_with_what_its_file_held() {
        let dir = crate::scratch::Dir::new("trace");
        let file = dir.path().join("a.trace");
        let name = format!("trace:{0},{0}/80/1", file.display());
        std::fs::write(&file, "0\n1\n2\n").unwrap();
        let mut network = Network::named(&name).unwrap();
        assert_eq!((network.rtt_ms, network.loss_up_pct), (80.0, 1.0));
        // Three opportunities in 2 ms are 18 Mbit/s; one bandwidth-delay product of 80 ms.
        assert_eq!(network.queue_down_bytes, 180_000);
        network.paths().unwrap();
        std::fs::write(&file, "0\n1\n3\n").unwrap();
        let error = network.paths().unwrap_err().to_string();
        assert!(error.contains("a.trace: this trace is not the one that the plan was made with"), "{error}");
        network.seal().unwrap_err();
        std::fs::write(&file, "0\n1\nx\n").unwrap();
        let error = Network::named(&name).unwrap_err().to_string();
        assert!(error.contains("a.trace: line 3: not a whole number"), "{error}");
    }

    #[test]
    fn settings_replace_those_of_the_profile_after_those_of_the_stack() {
        let mut n = Network::named("seed").unwrap();
        n.apply(&Overrides {
            stack: Some(Stack::Today),
            syn_timeout_ms: Some(250.0),
            ..Overrides::default()
        })
        .unwrap();
        assert_eq!((n.initial_cwnd, n.syn_timeout_ms, n.tls), (10, 250.0, Tls::None));
        n.apply(&Overrides { queue_ms: Some(200.0), ..Overrides::default() }).unwrap();
        assert_eq!((n.queue_down_bytes, n.queue_up_bytes), (50_000, 9_650));
        let short = n.apply(&Overrides { queue_ms: Some(30.0), ..Overrides::default() }).unwrap_err();
        assert!(short.to_string().ends_with("holds none: --queue-ms 32 or more"), "{short}");
        n.loss_burst_packets = 3.0;
        n.loss_down_pct = 1.0;
        assert!(matches!(n.paths().unwrap().0.loss, LossConfig::GilbertElliott { .. }));
        n.queue_up_bytes = 10;
        assert_eq!(n.check().unwrap_err(), "queue_up_bytes 10 is not within 1500–1099511627776");
    }
}
