//! From flags to a link: a network by name, and single values that replace its own.

use std::fmt::Display;
use std::net::Ipv4Addr;
use std::str::FromStr;

use base::Duration;
use clap::Args;
use lab::network::Network;
use lab::setting::{Discipline, Line, MS_MAX};
use live::emulator::link::{self, LossConfig, PathConfig, QueueConfig, Rate};
use live::emulator::{Config, DelayTo};
use live::timer::Policy;

/// One value for both directions, or `DOWN,UP`.
#[derive(Clone, PartialEq, Debug)]
pub struct Both<T> {
    down: T,
    up: T,
}

impl<T: FromStr<Err: Display> + Clone> FromStr for Both<T> {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let one = |s: &str| s.trim().parse().map_err(|e: T::Err| e.to_string());
        match s.split_once(',') {
            Some((down, up)) => Ok(Self { down: one(down)?, up: one(up)? }),
            None => one(s).map(|value| Self { down: value.clone(), up: value }),
        }
    }
}

impl<T> Both<T> {
    fn of(&self, is_down: bool) -> &T {
        if is_down { &self.down } else { &self.up }
    }
}

/// A figure within bounds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Within<const MOST: u64>(f64);

impl<const MOST: u64> FromStr for Within<MOST> {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let figure = s.parse().ok().filter(|figure| (0.0..=MOST as f64).contains(figure));
        figure.map(Self).ok_or_else(|| format!("'{s}' is not within 0–{MOST}"))
    }
}

type Milliseconds = Within<{ MS_MAX as u64 }>;
type Percent = Within<100>;

/// A rate: kbit/s, `unlimited`, or `trace:FILE`.
#[derive(Clone, PartialEq, Debug)]
pub struct Speed(Option<Line>);

impl FromStr for Speed {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        if s == "unlimited" {
            return Ok(Self(None));
        }
        s.parse()
            .map(|line| Self(Some(line)))
            .map_err(|e: lab::setting::Unknown| format!("{e}, or unlimited"))
    }
}

/// `ADDRESS[/LENGTH]=MS`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Further(DelayTo);

impl FromStr for Further {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let bad = || format!("'{s}' is not ADDRESS[/LENGTH]=MS");
        let (network, ms) = s.split_once('=').ok_or_else(bad)?;
        let (address, prefix) = match network.split_once('/') {
            Some((address, prefix)) => (address, prefix.parse().ok().filter(|p| *p <= 32).ok_or_else(bad)?),
            None => (network, 32),
        };
        let address: Ipv4Addr = address.parse().map_err(|_| bad())?;
        let Within(ms) = ms.parse::<Milliseconds>()?;
        Ok(Self(DelayTo { network: address.into(), prefix, delay: Duration::from_millis_f64(ms) }))
    }
}

/// What the link is like.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "The link (a value for both directions, or DOWN,UP)")]
pub struct ShapeArgs {
    /// Rate: kbit/s, unlimited, or trace:FILE, the moments at which a packet may leave, as Mahimahi records them.
    #[arg(long, value_name = "RATE")]
    rate: Option<Both<Speed>>,
    /// Rates from Mahimahi traces.
    #[arg(long, value_name = "FILE", conflicts_with = "rate")]
    trace: Option<Both<String>>,
    /// Delay of each direction, behind the queue; half of the network's round-trip time if not given.
    #[arg(long, value_name = "MS")]
    delay: Option<Both<Milliseconds>>,
    /// More delay, drawn for each packet from 0 to this. Packets keep their order.
    #[arg(long, value_name = "MS")]
    jitter: Option<Both<Milliseconds>>,
    /// Packets lost at random.
    #[arg(long, value_name = "PERCENT")]
    loss: Option<Both<Percent>>,
    /// Losses come in runs of so many packets on average.
    #[arg(long, value_name = "PACKETS")]
    burst: Option<Both<Within<1_000_000>>>,
    /// Bytes that may wait in the queue (default: what the line sends in a round-trip time, or in 50 ms if that is more).
    #[arg(long, value_name = "BYTES")]
    queue: Option<Both<Within<{ 1 << 40 }>>>,
    /// What the queue does when it fills: droptail, codel or fq-codel.
    #[arg(long, value_name = "NAME")]
    queue_discipline: Option<Both<Discipline>>,
    /// More delay, each way, to and from these addresses at the far end. May be given several times; the longest prefix counts.
    #[arg(long, value_name = "ADDRESS[/LENGTH]=MS")]
    delay_to: Vec<Further>,
    /// The seed of loss and jitter: the same packets by number meet the same fate.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl ShapeArgs {
    /// The link that is asked for. Reads traces.
    pub fn config(&self, network: Option<&str>, policy: Policy, spin: Duration) -> Result<Config, String> {
        let network = network.map(Network::named).transpose().map_err(|e| e.to_string())?;
        let (mut down, mut up) = match &network {
            Some(network) => network.paths().map_err(|e| e.to_string())?,
            None => (PathConfig::default(), PathConfig::default()),
        };
        (down.rate, up.rate) = self.rates((down.rate, up.rate))?;
        for (path, is_down) in [(&mut down, true), (&mut up, false)] {
            let ms = |both: &Both<Milliseconds>| Duration::from_millis_f64(both.of(is_down).0);
            path.delay = self.delay.as_ref().map_or(path.delay, ms);
            path.jitter = self.jitter.as_ref().map_or(path.jitter, ms);
            path.loss = self.losses(path.loss, is_down)?;
        }
        let rtt = down.delay + up.delay;
        for (path, is_down) in [(&mut down, true), (&mut up, false)] {
            path.queue = self.queue(path, rtt, is_down);
        }
        let delays = self.delay_to.iter().map(|further| further.0).collect();
        Ok(Config { up, down, delays, seed: self.seed, policy, spin, each_packet: false })
    }

    /// The rates down and up, where flags replace those of the network.
    fn rates(&self, (down, up): (Rate, Rate)) -> Result<(Rate, Rate), String> {
        let trace = |path: &String| Speed(Some(Line::Trace { path: path.clone(), fingerprint: None }));
        let traces = self.trace.as_ref().map(|files| Both { down: trace(&files.down), up: trace(&files.up) });
        let Some(asked) = self.rate.as_ref().or(traces.as_ref()) else { return Ok((down, up)) };
        // A network reads traces; this one has nothing but its lines.
        let mut lines = Network::named("1/1/0").map_err(|e| e.to_string())?;
        let lines_of = |speed: &Speed, line: &mut Line| {
            if let Some(asked) = &speed.0 {
                line.clone_from(asked);
            }
        };
        lines_of(&asked.down, &mut lines.down);
        lines_of(&asked.up, &mut lines.up);
        let (down, up) = lines.paths().map_err(|e| e.to_string())?;
        let limited = |speed: &Speed, path: PathConfig| match speed.0 {
            Some(_) => path.rate,
            None => Rate::Unlimited,
        };
        Ok((limited(&asked.down, down), limited(&asked.up, up)))
    }

    fn losses(&self, loss: LossConfig, is_down: bool) -> Result<LossConfig, String> {
        if self.loss.is_none() && self.burst.is_none() {
            return Ok(loss);
        }
        let p = self.loss.as_ref().map_or(loss.mean(), |both| both.of(is_down).0 / 100.0);
        match self.burst.as_ref().map(|both| both.of(is_down).0) {
            _ if p == 0.0 => Ok(LossConfig::None),
            Some(run) if run != 1.0 => LossConfig::burst(p, run).map_err(|e| e.to_string()),
            _ => Ok(LossConfig::Bernoulli { p }),
        }
    }

    /// The queue of a path that has its rate.
    fn queue(&self, path: &PathConfig, rtt: Duration, is_down: bool) -> QueueConfig {
        let is_new = self.rate.is_some() || self.trace.is_some() || self.delay.is_some();
        let mut queue = if is_new { QueueConfig::sized_for(&path.rate, rtt) } else { path.queue };
        queue.limit_bytes = self.queue.as_ref().map_or(queue.limit_bytes, |both| both.of(is_down).0 as u64);
        if let Some(both) = &self.queue_discipline {
            queue.discipline = match both.of(is_down) {
                Discipline::DropTail => link::Discipline::DropTail,
                Discipline::CoDel => link::Discipline::CoDel,
                Discipline::FqCoDel => link::Discipline::FqCoDel,
            };
        }
        queue
    }
}

/// One direction in a line: `1600 kbit/s, 150 ms, queue 60000 bytes (droptail)`.
pub fn describe(path: &PathConfig) -> String {
    let mut parts = vec![rate(&path.rate), format!("{} ms", path.delay.as_millis_f64())];
    if path.jitter > Duration::ZERO {
        parts.push(format!("jitter 0–{} ms", path.jitter.as_millis_f64()));
    }
    match path.loss {
        LossConfig::None => {}
        LossConfig::GilbertElliott { to_good, .. } => {
            parts.push(format!("loss {} % in runs of {}", percent(path.loss.mean()), round(1.0 / to_good)));
        }
        LossConfig::Bernoulli { p } => parts.push(format!("loss {} %", percent(p))),
    }
    if path.rate != Rate::Unlimited {
        let limit = match path.queue.limit_bytes {
            u64::MAX => "without limit".to_owned(),
            bytes => format!("{bytes} bytes"),
        };
        let discipline = match path.queue.discipline {
            link::Discipline::DropTail => "droptail",
            link::Discipline::CoDel => "codel",
            link::Discipline::FqCoDel => "fq-codel",
        };
        parts.push(format!("queue {limit} ({discipline})"));
    }
    parts.join(", ")
}

/// A rate as text.
pub fn rate(rate: &Rate) -> String {
    match rate {
        Rate::Unlimited => "unlimited".to_owned(),
        Rate::Constant(rate) => format!("{} kbit/s", round(rate.as_bps() as f64 / 1e3)),
        Rate::Trace(trace) => {
            format!("trace, {} kbit/s on average", round(trace.mean_rate().as_bps() as f64 / 1e3))
        }
    }
}

fn percent(share: f64) -> String {
    round(share * 100.0)
}

/// A figure with three decimals at most.
fn round(figure: f64) -> String {
    let text = format!("{figure:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Shape {
        network: Option<String>,
        #[command(flatten)]
        shape: ShapeArgs,
    }

    fn shape(arguments: &[&str]) -> Result<Config, String> {
        let all = ["link"].iter().chain(arguments);
        let asked = Shape::try_parse_from(all).map_err(|e| e.to_string())?;
        asked.shape.config(asked.network.as_deref(), Policy::Precise, Duration::ZERO)
    }

    #[test]
    fn a_network_by_name_is_that_of_a_race() {
        let (down, up) = Network::named("3g").unwrap().paths().unwrap();
        let config = shape(&["3g"]).unwrap();
        assert_eq!((&config.down, &config.up), (&down, &up));
        assert_eq!(describe(&config.up), "768 kbit/s, 150 ms, queue 28800 bytes (droptail)");
        let config = shape(&["2000/386/100/1"]).unwrap();
        assert_eq!(describe(&config.down), "2000 kbit/s, 50 ms, loss 1 %, queue 25000 bytes (droptail)");
    }

    #[test]
    fn a_flag_replaces_one_value_in_both_directions_or_in_each() {
        let config =
            shape(&["3g", "--loss", "2,0", "--burst", "4", "--queue-discipline", "codel,fq-codel"]).unwrap();
        assert_eq!(
            describe(&config.down),
            "1600 kbit/s, 150 ms, loss 2 % in runs of 4, queue 60000 bytes (codel)"
        );
        assert_eq!(describe(&config.up), "768 kbit/s, 150 ms, queue 28800 bytes (fq-codel)");
        let config = shape(&["--rate", "unlimited,8000", "--delay", "5,15", "--jitter", "1"]).unwrap();
        assert_eq!(describe(&config.down), "unlimited, 5 ms, jitter 0–1 ms");
        // 50 ms of it, as the round-trip time is shorter.
        assert_eq!(describe(&config.up), "8000 kbit/s, 15 ms, jitter 0–1 ms, queue 50000 bytes (droptail)");
        let config = shape(&["3g", "--queue", "3000"]).unwrap();
        assert_eq!((config.down.queue.limit_bytes, config.up.queue.limit_bytes), (3_000, 3_000));
        assert_eq!(shape(&[]).unwrap().up, PathConfig::default());
    }

    #[test]
    fn addresses_may_be_further_away() {
        let config = shape(&["--delay-to", "100.66.0.0/15=40", "--delay-to", "100.66.0.7=2.5"]).unwrap();
        let far: Vec<_> =
            config.delays.iter().map(|d| (d.network.to_string(), d.prefix, d.delay.as_micros())).collect();
        assert_eq!(far, [("100.66.0.0".to_owned(), 15, 40_000), ("100.66.0.7".to_owned(), 32, 2_500)]);
    }

    #[test]
    fn what_means_nothing_is_answered_with_what_would() {
        for (arguments, says) in [
            (vec!["tin-can"], "unknown network 'tin-can'; known are seed"),
            (vec!["--rate", "fast"], "'fast' is no rate; there are 1–"),
            (vec!["--loss", "101"], "'101' is not within 0–100"),
            (vec!["--loss", "80", "--burst", "1,1.5"], "cannot come in runs of"),
            (vec!["--delay-to", "example.org=5"], "is not ADDRESS[/LENGTH]=MS"),
            (vec!["--delay-to", "100.66.0.0/33=5"], "is not ADDRESS[/LENGTH]=MS"),
            (vec!["--queue-discipline", "red"], "red"),
            (vec!["--trace", "/none"], "cannot read /none: "),
        ] {
            let error = shape(&arguments).unwrap_err();
            assert!(error.contains(says), "{arguments:?}: {error}");
        }
    }
}
