//! Verbs and flags, each defined once: the parser, `--help`, the manual page and the shells' completions are all made
//! from here.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use lab::network::Overrides;
use lab::setting::{
    Compute, Congestion, Discipline, HostRtt, Pacing, RecordSizing, Spdy, Stack, Think, Tls, TlsScope,
    WindowScaling,
};

/// A track for web pages: which transport is faster, by how much, how sure, and why.
#[derive(Parser, Debug)]
#[command(name = "velodrome", version, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

const EXIT_CODES: &str = "\
Exit codes: 0 all went well; 1 some input could not be raced (the rest was); 2 the command could not be carried out; \
130 interrupted (what was finished is kept).";

fn techniques() -> String {
    format!("Techniques:\n{}\n\n{EXIT_CODES}", lab::technique::help())
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Verb {
    /// Load pages over several transports on several networks and compare.
    Race(Box<RaceArgs>),
    /// Load pages in both worlds, virtual and live, and say how far they are apart.
    Agree(Box<AgreeArgs>),
    /// List the networks that have names.
    Networks,
    /// Show what is read from recordings, and what has to be assumed.
    Pages(PagesArgs),
    /// Re-run a published experiment and print its figures beside ours.
    Study(StudyArgs),
    /// Show what a client learns of pages and their hosts by visiting them, and keep it between runs.
    Topology(Box<crate::topology::TopologyArgs>),
    /// Load one page and write its packets to a file that Wireshark opens.
    Capture(Box<crate::capture::CaptureArgs>),
    /// Run a command behind an emulated link, in networks of its own, without root.
    #[cfg(target_os = "linux")]
    Link(Box<crate::link::LinkArgs>),
    /// Fetch URLs over HTTP/1.1 and SPDY; with -v, every frame both ways.
    Fetch(Box<crate::fetch::FetchArgs>),
    /// Serve a folder or a recorded page over HTTP/1.1 and SPDY, in clear text and under TLS, on one port.
    Serve(Box<crate::serve::ServeArgs>),
    /// Print the manual page.
    Man,
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// `velodrome study`.
#[derive(Args, Debug)]
#[command(arg_required_else_help = true, args_conflicts_with_subcommands = true)]
pub struct StudyArgs {
    /// List the studies there are.
    #[arg(long)]
    pub list: bool,
    /// Make every study of the virtual world.
    #[arg(long)]
    pub all: bool,
    /// With --all: write the findings to this Markdown file too.
    #[arg(long, value_name = "FILE", requires = "all")]
    pub doc: Option<PathBuf>,
    /// With --all: fail unless this Markdown file has these findings.
    #[arg(long, value_name = "FILE", requires = "all", conflicts_with = "doc")]
    pub check: Option<PathBuf>,
    #[command(flatten)]
    pub run: PublishedArgs,
    #[command(subcommand)]
    pub study: Option<Study>,
}

/// A published experiment, made again.
#[derive(Args, Debug)]
pub struct PublishedArgs {
    /// The folder for the page with the pictures.
    #[arg(long, value_name = "DIR", default_value = "runs/studies")]
    pub out: PathBuf,
    /// Threads; the findings are the same with any number (default: one a core).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    #[command(flatten)]
    pub live: LiveStudyArgs,
}

/// A study in the live world.
#[derive(Args, Debug)]
pub struct LiveStudyArgs {
    /// Make as many of its loads as there is time for in the live world, beside the same loads in the virtual one (Linux; for TLS a
    /// build with `--features tls`).
    #[arg(long)]
    pub live: bool,
    /// With --live: how many minutes it may take. A load that has begun by then is finished; what was made counts as far as all arms
    /// have it.
    #[arg(long, value_name = "N", default_value_t = 5.0, requires = "live", value_parser = minutes)]
    pub minutes: f64,
    /// With --live: loads made at once. They share the processor: more than a few disturb each other on fast links.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "live", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub at_once: u32,
    /// With --live: go on with what the folder holds of the same command.
    #[arg(long, requires = "live")]
    pub resume: bool,
}

fn minutes(s: &str) -> Result<f64, String> {
    let within = s.parse().ok().filter(|minutes| (0.01..=10_000.0).contains(minutes));
    within.ok_or_else(|| "not within 0.01–10000 minutes".to_owned())
}

/// The studies.
#[derive(Subcommand, Debug)]
pub enum Study {
    /// How fast, precise and reliable timers are: ours beside the operating system's sleep and an async runtime's.
    Timers(crate::timers::TimersArgs),
    /// How exact the emulator is on this machine: delay, rate, loss and throughput, measured from outside.
    #[cfg(target_os = "linux")]
    Link(crate::link::study::LinkStudyArgs),
    /// SPDY against HTTP/1.1 over the top 300 sites: "almost always faster", by 40 %.
    SpdyVsHttp(PublishedArgs),
    /// The SPDY whitepaper's tables: DSL and cable, loss up to 2.5 %, round trips from 20 to 200 ms.
    SpdyGrid(PublishedArgs),
    /// SPDY on the page's own host alone, and on all: 4.5 % and 5 to 20 % faster than HTTP over TLS.
    SpdyRealSites(PublishedArgs),
    /// SPDY without each of its features, and a stream that nobody reads.
    SpdyAblation(PublishedArgs),
    /// TLS False Start: a round trip saved on each connection.
    FalseStart(PublishedArgs),
    /// One cold connection over 3G, step by step: what asking about its certificate costs.
    MobileTls(PublishedArgs),
    /// A second connection when the first takes 250 ms: stalls of 3 s in 400 requests, or in 16,000.
    ConnectionRetry(PublishedArgs),
    /// Learned preconnect, two to every host and today's successor beside none: 7 to 9 % over 50 ms.
    Preconnect(PublishedArgs),
    /// A client's first receive window of 6 KB against the server's first congestion window.
    InitialWindow(PublishedArgs),
    /// Large TLS records against small ones: 100 ms of the first paint.
    TlsRecordSize(PublishedArgs),
    /// SPDY receive windows of 64 KB against large ones.
    FlowControl(PublishedArgs),
    /// A page beside a bulk transfer: long queues, CoDel and FQ-CoDel.
    Bufferbloat(PublishedArgs),
    /// A client that reloads by itself what failed: the page whole, or what is missing.
    Reload(PublishedArgs),
    /// Pipelining in a browser over five sessions: nobody waits for a connection, where 38 to 79 % did.
    Pipelining(PublishedArgs),
    /// Tabs behind the one in front: all at once, of lower priority, or afterwards.
    TabPriority(PublishedArgs),
}

impl Study {
    /// The published experiment that it is, and how it is run; `None` for those of their own kind.
    pub fn published(&self) -> Option<(&'static str, &PublishedArgs)> {
        match self {
            Study::Timers(_) => None,
            #[cfg(target_os = "linux")]
            Study::Link(_) => None,
            Study::SpdyVsHttp(args) => Some(("spdy-vs-http", args)),
            Study::SpdyGrid(args) => Some(("spdy-grid", args)),
            Study::SpdyAblation(args) => Some(("spdy-ablation", args)),
            Study::SpdyRealSites(args) => Some(("spdy-real-sites", args)),
            Study::FalseStart(args) => Some(("false-start", args)),
            Study::MobileTls(args) => Some(("mobile-tls", args)),
            Study::ConnectionRetry(args) => Some(("connection-retry", args)),
            Study::Preconnect(args) => Some(("preconnect", args)),
            Study::InitialWindow(args) => Some(("initial-window", args)),
            Study::TlsRecordSize(args) => Some(("tls-record-size", args)),
            Study::FlowControl(args) => Some(("flow-control", args)),
            Study::Bufferbloat(args) => Some(("bufferbloat", args)),
            Study::Reload(args) => Some(("reload", args)),
            Study::Pipelining(args) => Some(("pipelining", args)),
            Study::TabPriority(args) => Some(("tab-priority", args)),
        }
    }
}

/// `velodrome pages`.
#[derive(Args, Debug)]
#[command(mut_arg("pages", |pages| pages.required(true)))]
pub struct PagesArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    /// Print one JSON object a page.
    #[arg(long)]
    pub json: bool,
}

/// Where pages come from.
#[derive(Args, Debug)]
pub struct SourceArgs {
    /// A HAR file (.har, .har.gz), a folder of them, or `corpus:NAME[:COUNT[:SEED]]` (built in).
    #[arg(value_name = "PAGE")]
    pub pages: Vec<String>,
    /// Take the first N pages only.
    #[arg(long = "pages", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub pages_max: Option<u32>,
}

/// `velodrome race`.
#[derive(Args, Debug)]
#[command(after_help = techniques(), mut_arg("pages", |pages| pages.required_unless_present("plan_file")))]
pub struct RaceArgs {
    /// Carry out this plan (a plan.toml) instead of one made from flags.
    #[arg(long = "plan", value_name = "FILE", conflicts_with_all = ["PlanArgs", "SourceArgs", "SettingArgs"])]
    pub plan_file: Option<PathBuf>,
    /// The run folder (default: runs/NAME, the name following from the plan).
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with the run that the folder holds, if it holds one.
    #[arg(long)]
    pub resume: bool,
    /// Threads; the results are the same with any number (default: one a core).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Print the summary as JSON, and nothing else.
    #[arg(long)]
    pub json: bool,
    /// Print nothing but what goes wrong.
    #[arg(long, short)]
    pub quiet: bool,
    /// Write no report.html.
    #[arg(long)]
    pub no_report: bool,
    /// Load over the kernel's TCP and real TLS, across an emulated link, in real time (Linux; for TLS a build with `--features tls`).
    #[arg(long, conflicts_with = "plan_file")]
    pub live: bool,
    #[command(flatten)]
    pub plan: PlanArgs,
}

/// `velodrome agree`.
#[derive(Args, Debug)]
#[command(after_help = techniques(), mut_arg("pages", |pages| pages.required(true)))]
pub struct AgreeArgs {
    /// The folder of both runs and of what they say together (default: runs/agree-NAME, the name following from the plan).
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with the runs that the folder holds, if it holds any.
    #[arg(long)]
    pub resume: bool,
    /// Live loads made at once. They share the processor: more than a few disturb each other on fast links.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub at_once: u32,
    /// Print the agreement as JSON, and nothing else.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub plan: PlanArgs,
}

/// Flags from which a plan is made.
#[derive(Args, Debug)]
pub struct PlanArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    /// Transports to race; the others are compared with the first.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "http1,spdy3.1")]
    pub transports: Vec<client::Transport>,
    /// A network: a name (see `velodrome networks`), DOWN/UP/RTT/LOSS in kbit/s, kbit/s, ms and % each way, or
    /// trace:DOWNFILE,UPFILE/RTT/LOSS with Mahimahi traces. May be given several times.
    #[arg(long = "network", value_name = "NETWORK", default_value = "seed")]
    pub networks: Vec<String>,
    /// Loads of each page over each transport on each network (default: 10 if loss makes them differ, else 1).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(lab::plan::RUNS_MAX)))]
    pub runs: Option<u32>,
    /// The seed from which all chance derives.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=lab::plan::SEED_MAX))]
    pub seed: u64,
    /// A technique that the browser has beyond the rules of its time; see below. May be given several times.
    #[arg(long = "with", value_name = "TECHNIQUE")]
    pub techniques: Vec<lab::technique::Technique>,
    /// What the browser remembers before each load: a file that `velodrome topology --state` has written.
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    #[command(flatten)]
    pub settings: SettingArgs,
}

/// Flags that replace what a network's name brings.
#[derive(Args, Debug)]
#[command(next_help_heading = "Settings of the networks (their names bring others)")]
pub struct SettingArgs {
    /// Bytes of the queue in either direction.
    #[arg(long, value_name = "BYTES", conflicts_with = "queue_ms")]
    queue_bytes: Option<u64>,
    /// The queue in either direction, as the time that its link takes to send it.
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    queue_ms: Option<f64>,
    /// droptail, codel or fq-codel.
    #[arg(long, value_name = "NAME")]
    queue_discipline: Option<Discipline>,
    /// Extra delay each way, drawn for each packet from 0 to this.
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    jitter: Option<f64>,
    /// How many packets a loss takes on the mean, one after the other; as many are lost in all (1 unless set).
    #[arg(long, value_name = "PACKETS")]
    loss_burst: Option<f64>,
    /// TCP constants of an era: 2010 or today. The next six flags change single ones.
    #[arg(long, value_name = "ERA")]
    stack: Option<Stack>,
    /// Segments that a sender may have in flight at first.
    #[arg(long, value_name = "SEGMENTS")]
    initial_cwnd: Option<u32>,
    /// The client's receive window at first.
    #[arg(long, value_name = "BYTES")]
    initial_rwnd: Option<u32>,
    /// When a lost SYN is sent again.
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    syn_timeout: Option<f64>,
    /// cubic or reno.
    #[arg(long, value_name = "NAME")]
    congestion: Option<Congestion>,
    /// off: no window above 65,535 bytes, and so no more in flight.
    #[arg(long, value_name = "SWITCH")]
    window_scaling: Option<WindowScaling>,
    /// on: senders spread their segments over the round trip, as Linux does where it is asked to.
    #[arg(long, value_name = "SWITCH")]
    pacing: Option<Pacing>,
    /// Settings of both ends of a SPDY session: chrome-2012 or chrome-2013.
    #[arg(long, value_name = "NAME")]
    spdy: Option<Spdy>,
    /// none, 1.2, 1.2-resumed, 1.3 or 1.3-resumed.
    #[arg(long, value_name = "MODE")]
    tls: Option<Tls>,
    /// recorded: TLS for hosts recorded with https; everywhere: for all.
    #[arg(long, value_name = "SCOPE")]
    tls_scope: Option<TlsScope>,
    /// The servers' certificate chains.
    #[arg(long, value_name = "BYTES")]
    cert_chain: Option<u32>,
    /// Plain text in a full TLS record.
    #[arg(long, value_name = "BYTES")]
    record_size: Option<u32>,
    /// How servers cut TLS records: fixed (to the record size), packet, ats, h2o, cloudflare or proxy-40k.
    #[arg(long, value_name = "RULE")]
    record_sizing: Option<RecordSizing>,
    /// What the first look-up of a name costs.
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    dns: Option<f64>,
    /// What servers take to answer: recorded, none, or milliseconds.
    #[arg(long, value_name = "TIME")]
    think: Option<Think>,
    /// What the browser computes: recorded, none, or a factor.
    #[arg(long, value_name = "FACTOR")]
    compute: Option<Compute>,
    /// Where hosts are: equal, recorded, or spread:MS.
    #[arg(long, value_name = "WHERE")]
    host_rtt: Option<HostRtt>,
    /// HTTP/1.1 connections to one host.
    #[arg(long, value_name = "N")]
    connections_per_host: Option<u32>,
    /// When a load that is not done is given up.
    #[arg(long, value_name = "S")]
    give_up: Option<u32>,
}

impl SettingArgs {
    /// What the flags replace.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            queue_bytes: self.queue_bytes,
            queue_ms: self.queue_ms,
            queue_discipline: self.queue_discipline,
            jitter_ms: self.jitter,
            loss_burst_packets: self.loss_burst,
            stack: self.stack,
            initial_cwnd: self.initial_cwnd,
            initial_rwnd_bytes: self.initial_rwnd,
            syn_timeout_ms: self.syn_timeout,
            congestion: self.congestion,
            window_scaling: self.window_scaling,
            pacing: self.pacing,
            spdy: self.spdy,
            tls: self.tls,
            tls_scope: self.tls_scope,
            cert_chain_bytes: self.cert_chain,
            record_bytes: self.record_size,
            record_sizing: self.record_sizing,
            dns_ms: self.dns,
            think: self.think,
            compute: self.compute,
            host_rtt: self.host_rtt,
            connections_per_host: self.connections_per_host,
            give_up_ms: self.give_up.map(|seconds| f64::from(seconds) * 1e3),
        }
    }
}

fn milliseconds(s: &str) -> Result<f64, String> {
    let most = lab::setting::MS_MAX;
    s.parse()
        .ok()
        .filter(|ms| (0.0..=most).contains(ms))
        .ok_or_else(|| format!("not within 0–{most} milliseconds"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        super::Cli::command().debug_assert();
    }

    #[test]
    fn every_study_that_there_is_can_be_asked_for_by_its_name() {
        use clap::Parser;
        for study in lab::study::all() {
            let cli = super::Cli::parse_from(["velodrome", "study", &study.name]);
            let super::Verb::Study(args) = cli.verb else { panic!("{}", study.name) };
            let named = args.study.as_ref().and_then(super::Study::published).map(|(name, _)| name);
            assert_eq!(named, Some(study.name.as_str()));
        }
    }
}
