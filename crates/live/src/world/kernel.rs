//! What a setup's TCP is in the kernel's terms: routes and settings, and what it has no word for.

use std::io;
use std::net::IpAddr;

use base::Duration;

use crate::emulator::{DEVICE, Link};
use crate::namespace::{Error, NEAR_V6, Net, Route, SERVERS_V6, TcpMetrics};
use crate::socket::PACED;

/// A setting of the kernel, asked for and read back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Knob {
    /// Which end it is of: `client` or `server`.
    pub end: &'static str,
    /// Its name: a path below `/proc/sys/net`, a metric of the route (ip-route(8)), or an option of the sockets (socket(7)).
    pub name: String,
    /// What it was set to.
    pub asked: String,
    /// What the kernel said afterwards.
    pub got: String,
}

impl Knob {
    /// That an end's sockets are paced, and at what rate they say that they are.
    pub(super) fn pacing(end: &'static str, got: Option<u64>) -> Self {
        let got = got.map_or("none".to_owned(), |rate| rate.to_string());
        Self { end, name: "SO_MAX_PACING_RATE".to_owned(), asked: PACED.to_string(), got }
    }
}

/// What the kernel was asked for and had.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Kernel {
    /// Every setting.
    pub knobs: Vec<Knob>,
}

/// Sets both ends' TCP; says what it could not.
pub(super) fn set(
    link: &Link,
    client: &tcp::Config,
    server: &tcp::Config,
) -> Result<(Kernel, Vec<String>), Error> {
    let (mut kernel, mut unmet) = (Kernel::default(), Vec::new());
    let block = link.block();
    // The routes that packets take: the longest that fit.
    let (servers, prefix) = block.servers();
    let ends = [
        ("client", link.near(), (servers, prefix), SERVERS_V6, client),
        ("server", link.far(), (block.near(), 32), (NEAR_V6, 128), server),
    ];
    for (end, net, to, (to_v6, prefix), config) in ends {
        unmet.extend(kernel.set(end, net, to, config)?);
        if link.ends().carries_ipv6() {
            let before = kernel.knobs.len();
            route(end, net, (to_v6.into(), prefix), config, &mut kernel)?;
            unmet.extend(kernel.unmet(before));
        }
    }
    // The addresses that the client has after a change of networks are talked to as those are that it has now.
    for address in link.ends().near_after() {
        let whole = if address.is_ipv6() { 128 } else { 32 };
        link.far().route(&Route::new((address, whole), DEVICE).with_tcp(metrics(server, address)))?;
    }
    unmet.sort();
    unmet.dedup();
    Ok((kernel, unmet))
}

impl Kernel {
    /// Sets the TCP of one end: that of a whole network, and of the route by which it talks to the other end's addresses. Says, in
    /// words, what of it the kernel does not have or do.
    pub fn set(
        &mut self,
        end: &'static str,
        net: &Net,
        to: (impl Into<IpAddr>, u8),
        config: &tcp::Config,
    ) -> Result<Vec<String>, Error> {
        let to = (to.0.into(), to.1);
        let mut unmet = Vec::new();
        let before = self.knobs.len();
        settings(end, net, config, self, &mut unmet)?;
        route(end, net, to, config, self)?;
        missing(config, &mut unmet);
        unmet.extend(self.unmet(before));
        Ok(unmet)
    }

    /// Of the settings from one on, those that the kernel has otherwise, in words.
    fn unmet(&self, from: usize) -> impl Iterator<Item = String> {
        self.knobs[from..].iter().filter(|k| k.asked != k.got).map(|Knob { end, name, asked, got }| {
            format!("the kernel has {name} {got} at the {end}, not {asked}")
        })
    }
}

fn settings(
    end: &'static str,
    net: &Net,
    config: &tcp::Config,
    kernel: &mut Kernel,
    unmet: &mut Vec<String>,
) -> Result<(), Error> {
    let on = |on: bool| if on { "1" } else { "0" }.to_owned();
    let rack = config.loss_detection == tcp::LossDetection::Rack;
    // The kernel offers five eighths of a buffer as window (measured on Linux 6.18).
    let buffer = config.rwnd_max * 8 / 5;
    let paced = [("ipv4/tcp_pacing_ss_ratio", "200"), ("ipv4/tcp_pacing_ca_ratio", "120")];
    let paced = paced.into_iter().filter(|_| config.pacing).map(|(name, pct)| (name, pct.to_owned()));
    let asked = [
        ("ipv4/tcp_sack", on(config.sack)),
        ("ipv4/tcp_timestamps", on(config.timestamps)),
        ("ipv4/tcp_window_scaling", on(config.window_scaling)),
        ("ipv4/tcp_slow_start_after_idle", on(config.idle_restart)),
        ("ipv4/tcp_moderate_rcvbuf", on(config.rwnd_autotune)),
        ("ipv4/tcp_early_retrans", if config.tail_loss_probe { "3" } else { "0" }.to_owned()),
        ("ipv4/tcp_recovery", on(rack)),
        ("ipv4/tcp_syn_retries", config.syn_retries.to_string()),
        ("ipv4/tcp_syn_linear_timeouts", config.syn_linear_timeouts.to_string()),
        ("ipv4/tcp_synack_retries", config.syn_retries.to_string()),
        ("ipv4/tcp_retries2", config.data_retries.to_string()),
        ("ipv4/tcp_ecn", "0".to_owned()),
        ("ipv4/tcp_frto", "0".to_owned()),
        ("ipv4/tcp_no_metrics_save", "1".to_owned()),
        ("ipv4/tcp_rmem", format!("4096\t131072\t{buffer}")),
        ("ipv4/tcp_wmem", format!("4096\t16384\t{}", config.sndbuf)),
    ];
    for (name, asked) in asked.into_iter().chain(paced) {
        let set = net.set(name, &asked);
        match net.setting(name) {
            Ok(got) if set.is_ok() => kernel.knobs.push(Knob { end, name: name.to_owned(), asked, got }),
            // Some settings are for the machine's owner alone; where it has the right value already, no harm is done.
            Ok(got) if got == asked => kernel.knobs.push(Knob { end, name: name.to_owned(), asked, got }),
            Ok(got) => unmet.push(format!("{name} is {got} at the {end}, and the kernel keeps it so")),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                unmet.push(format!("this kernel has no setting {name}"));
            }
            Err(e) => return Err(Error::Refused { what: "read a network's TCP back", source: e }),
        }
    }
    Ok(())
}

/// Has the server at an address begin with so many segments: a rule and a route of its own. Says, in words, if the kernel has it otherwise.
pub(super) fn begin_with(
    link: &Link,
    from: IpAddr,
    segments: u32,
    config: &tcp::Config,
    kernel: &mut Kernel,
) -> Result<Vec<String>, Error> {
    let before = kernel.knobs.len();
    let now = link.ends().near_addresses();
    let to = now.into_iter().chain(link.ends().near_after()).filter(|to| to.is_ipv4() == from.is_ipv4());
    for to in to {
        let asked = TcpMetrics { initial_cwnd: Some(segments), ..metrics(config, to) };
        let whole = if to.is_ipv6() { 128 } else { 32 };
        let route = Route::new((to, whole), DEVICE).only_from(from).with_tcp(asked.clone());
        link.far().route(&route)?;
        let got = link.far().tcp_to(to, Some(from))?;
        let figure = |tcp: TcpMetrics| tcp.initial_cwnd.map_or("the default".to_owned(), |v| v.to_string());
        let name = format!("initcwnd from {from} to {to}");
        kernel.knobs.push(Knob { end: "server", name, asked: figure(asked), got: figure(got) });
    }
    Ok(kernel.unmet(before).collect())
}

fn route(
    end: &'static str,
    net: &Net,
    to: (IpAddr, u8),
    config: &tcp::Config,
    kernel: &mut Kernel,
) -> Result<(), Error> {
    let (asked, family) = (metrics(config, to.0), if to.0.is_ipv6() { "ipv6 " } else { "" });
    net.route(&Route::new(to, DEVICE).with_tcp(asked.clone()))?;
    let got = net.tcp_to(to.0, None)?;
    let figure = |v: Option<u32>| v.map_or("the default".to_owned(), |v| v.to_string());
    let ms =
        |v: Option<Duration>| v.map_or("the default".to_owned(), |v| format!("{} ms", v.as_millis_f64()));
    let mut note = |name: &str, asked: String, got: String| {
        kernel.knobs.push(Knob { end, name: format!("{family}{name}"), asked, got });
    };
    note("initcwnd", figure(asked.initial_cwnd), figure(got.initial_cwnd));
    note("initrwnd", figure(asked.initial_rwnd), figure(got.initial_rwnd));
    note("rto_min", ms(asked.rto_min), ms(got.rto_min));
    let name = |v: &Option<String>| v.clone().unwrap_or_else(|| "the default".to_owned());
    note("congctl", name(&asked.congestion), name(&got.congestion));
    note("quickack", asked.quick_ack.to_string(), got.quick_ack.to_string());
    Ok(())
}

/// What a route to an address says of an end's TCP.
fn metrics(config: &tcp::Config, to: IpAddr) -> TcpMetrics {
    // Segments hold 20 bytes less where headers have 20 more.
    let mss = if to.is_ipv6() { config.mss.saturating_sub(20) } else { config.mss };
    TcpMetrics {
        initial_cwnd: Some(config.initial_cwnd.max(1)),
        initial_rwnd: Some((config.initial_rwnd / u64::from(mss.max(1))).max(1) as u32),
        rto_min: Some(config.rto_min),
        congestion: Some(congestion(config).to_owned()),
        quick_ack: config.delayed_ack.is_zero(),
        ..TcpMetrics::default()
    }
}

fn congestion(config: &tcp::Config) -> &'static str {
    match config.congestion {
        tcp::Congestion::Cubic => "cubic",
        tcp::Congestion::Reno => "reno",
    }
}

/// What no setting of the kernel brings about.
fn missing(config: &tcp::Config, unmet: &mut Vec<String>) {
    let today = tcp::Config::linux_today();
    if config.cwnd_growth != today.cwnd_growth {
        unmet.push("slow start counts acknowledged segments, not acknowledgements".into());
    }
    if config.reduction != today.reduction {
        unmet.push("cwnd comes down in proportion to what arrives (PRR), not at once".into());
    }
    if config.syn_rto != today.syn_rto {
        let seconds = today.syn_rto.as_secs_f64();
        unmet
            .push(format!("a lost SYN is sent again after {seconds} s, which the kernel has no setting for"));
    }
    if config.hystart != today.hystart && config.congestion == tcp::Congestion::Cubic {
        unmet.push("HyStart is on, as it is for all of the machine".into());
    }
    if config.rwnd_start != today.rwnd_start {
        unmet.push(format!("a receive window begins to grow at {} bytes", today.rwnd_start));
    }
    if config.mss != today.mss {
        unmet.push(format!("the MSS is {}, that of the link's MTU", today.mss));
    }
}
