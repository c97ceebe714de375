//! `velodrome fetch`: URLs over HTTP/1.1 and SPDY, and what went over the wire.
//!
//! A body goes to standard output if there is one URL and no other place was named; everything else that people read, to
//! standard error, so that a pipe gets the body alone.

mod output;
mod trace;

use std::net::IpAddr;
use std::path::PathBuf;

use base::{Duration, Fields, Instant};
use clap::Args;
use live::fetch::{Config, Event, Exchange, Observer, Outcome, Protocol, Request, Url};
use live::tls;

use crate::{Exit, print};
use output::Bodies;
use trace::Trace;

/// `velodrome fetch`.
#[derive(Args, Debug)]
pub struct FetchArgs {
    /// What to fetch. URLs of one origin share its connection.
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    /// Where bodies go: a file, or with several URLs a folder, which is made. `-` is standard output.
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Print what happens, and every frame both ways, to standard error.
    #[arg(long, short)]
    verbose: bool,
    /// Print when each phase of each exchange was.
    #[arg(long)]
    timing: bool,
    /// Print one JSON object an exchange to standard output (then bodies go nowhere without --output).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    request: RequestArgs,
    #[command(flatten)]
    protocol: ProtocolArgs,
    #[command(flatten)]
    secure: SecureArgs,
}

/// What is asked.
#[derive(Args, Debug)]
#[command(next_help_heading = "Requests")]
struct RequestArgs {
    /// The method (default: GET, or POST with --data).
    #[arg(long, short = 'X', value_name = "METHOD")]
    method: Option<String>,
    /// A field of every request. May be given several times.
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// The body of every request; `@FILE` is a file's contents.
    #[arg(long, short, value_name = "TEXT")]
    data: Option<String>,
    /// Priorities, 0 (most urgent) to 7: one for all URLs, or one for each in their order.
    #[arg(long, short, value_name = "LIST", value_delimiter = ',', default_value = "3",
          value_parser = clap::value_parser!(u8).range(0..=7))]
    priority: Vec<u8>,
    /// Cancel each response after this many bytes.
    #[arg(long, value_name = "BYTES")]
    cancel_after: Option<u64>,
}

/// What is spoken.
#[derive(Args, Debug)]
#[command(next_help_heading = "Protocols")]
struct ProtocolArgs {
    /// What may be spoken, preferred first: spdy/3.1, spdy/3, spdy/2, http/1.1. TLS negotiates; in clear text the first
    /// is spoken by prior knowledge (default there: http/1.1).
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = protocol)]
    protocols: Vec<Protocol>,
    /// In clear text: ask for SPDY/3.1 by an HTTP/1.1 `Upgrade`, as Kubernetes does.
    #[arg(long)]
    upgrade: bool,
    /// Whose settings a SPDY session has.
    #[arg(long, value_enum, default_value = "velodrome", value_name = "WHOSE")]
    spdy: Settings,
    /// Refuse pushes.
    #[arg(long)]
    no_push: bool,
    /// HTTP/1.1 requests sent before earlier responses are there.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pipeline: u16,
    /// Send GOAWAY once everything is asked; what is open goes on.
    #[arg(long)]
    goaway: bool,
    /// Take this address for a name: HOST:ADDRESS or HOST:PORT:ADDRESS. May be given several times.
    #[arg(long, value_name = "HOST:ADDRESS", value_parser = resolve)]
    resolve: Vec<(String, Option<u16>, IpAddr)>,
    /// Longest time for one address to accept a connection, and for a TLS handshake.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    connect_timeout: f64,
    /// Longest silence of a server that something is asked of.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds)]
    idle_timeout: f64,
}

/// How TLS is done.
#[derive(Args, Debug)]
#[command(next_help_heading = "TLS")]
struct SecureArgs {
    /// How the protocol is agreed on; npn holds TLS at 1.2.
    #[arg(long, value_enum, default_value = "both", value_name = "HOW")]
    negotiate: Negotiate,
    /// The only version of TLS to speak (default: 1.2 and 1.3).
    #[arg(long, value_enum, value_name = "VERSION")]
    tls: Option<TlsVersion>,
    /// Believe the certificates of this PEM file, and no others.
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Believe anybody: for servers whose certificate was made on the spot.
    #[arg(long, short = 'k', conflicts_with = "cacert")]
    insecure: bool,
    /// Wait for the server's Finished before sending.
    #[arg(long)]
    no_false_start: bool,
    /// Bytes of plaintext a record holds at most, 512 to 16384.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(512..=16384))]
    record_size: Option<u16>,
    /// Append every secret here, for packet analysers.
    #[arg(long, value_name = "FILE", env = "SSLKEYLOGFILE")]
    key_log: Option<PathBuf>,
}

/// Settings of a SPDY session.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum Settings {
    /// Sound choices of today: windows of 1 MiB and 16 MiB, headers that leak no cookies.
    Velodrome,
    /// Chrome before mid-2012: 64 KB windows, headers compressed in full.
    #[value(name = "chrome-2012")]
    Chrome2012,
    /// Chrome of 2013: 10 MiB windows, headers that leak no cookies.
    #[value(name = "chrome-2013")]
    Chrome2013,
    /// Firefox: 256 MiB windows, headers not compressed.
    Firefox,
    /// nginx 1.9.4: all the window there is, headers not compressed.
    Nginx,
}

impl Settings {
    /// What makes a session's configuration.
    pub fn maker(self) -> fn(spdy::Version) -> spdy::Config {
        match self {
            Settings::Velodrome => spdy::Config::new,
            Settings::Chrome2012 => spdy::Config::chrome_2012,
            Settings::Chrome2013 => spdy::Config::chrome_2013,
            Settings::Firefox => spdy::Config::firefox,
            Settings::Nginx => spdy::Config::nginx,
        }
    }
}

/// How a protocol is agreed on.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum Negotiate {
    /// By either; ALPN wins.
    Both,
    /// By ALPN (RFC 7301).
    Alpn,
    /// By NPN, its predecessor.
    Npn,
}

impl From<Negotiate> for tls::Offer {
    fn from(how: Negotiate) -> Self {
        match how {
            Negotiate::Both => tls::Offer::Both,
            Negotiate::Alpn => tls::Offer::Alpn,
            Negotiate::Npn => tls::Offer::Npn,
        }
    }
}

/// A version of TLS.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[value(name = "1.2")]
    Tls12,
    /// TLS 1.3.
    #[value(name = "1.3")]
    Tls13,
}

impl TlsVersion {
    /// The versions allowed.
    pub fn only(version: Option<Self>) -> tls::Versions {
        match version {
            None => tls::Versions::Tls12To13,
            Some(TlsVersion::Tls12) => tls::Versions::Tls12,
            Some(TlsVersion::Tls13) => tls::Versions::Tls13,
        }
    }
}

/// A protocol by its ALPN name, or by velodrome's own for races.
pub fn protocol(name: &str) -> Result<Protocol, String> {
    let known = || Protocol::ALL.map(Protocol::id).join(", ");
    let id = match name {
        "http1" => "http/1.1",
        "spdy2" => "spdy/2",
        "spdy3" => "spdy/3",
        "spdy3.1" => "spdy/3.1",
        id => id,
    };
    Protocol::from_id(id).ok_or_else(|| format!("known are {}", known()))
}

fn resolve(text: &str) -> Result<(String, Option<u16>, IpAddr), String> {
    let (host, rest) = text.split_once(':').ok_or("give HOST:ADDRESS or HOST:PORT:ADDRESS")?;
    if let Ok(address) = rest.trim_matches(['[', ']']).parse() {
        return Ok((host.to_owned(), None, address));
    }
    let (port, address) = rest.split_once(':').ok_or("give HOST:ADDRESS or HOST:PORT:ADDRESS")?;
    let port = port.parse().map_err(|_| format!("'{port}' is no port"))?;
    let address = address.trim_matches(['[', ']']);
    Ok((host.to_owned(), Some(port), address.parse().map_err(|_| format!("'{address}' is no IP address"))?))
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "give seconds".to_owned())?;
    if seconds > 0.0 && seconds <= 86_400.0 {
        Ok(seconds)
    } else {
        Err("give more than 0 and at most 86400".into())
    }
}

/// Carries the verb out.
pub fn fetch(args: &FetchArgs) -> Result<Exit, String> {
    let requests = requests(args)?;
    let config = config(args, &requests)?;
    let bodies = Bodies::new(args.output.as_deref(), args.json, &requests)?;
    let trace = args.verbose.then(Trace::default);
    let mut watcher = Watcher { bodies, trace, unwritten: None };
    let exchanges = live::fetch::fetch(requests, &config, &mut watcher).map_err(|e| e.to_string())?;
    if let Some(why) = watcher.unwritten {
        return Err(why);
    }
    if args.json {
        print::out(&output::json(&exchanges));
    }
    if args.timing {
        print::err(&output::timing(&exchanges));
    } else if exchanges.len() > 1 && !args.json {
        print::err(&output::overview(&exchanges));
    }
    let mut whole = true;
    for exchange in &exchanges {
        if let Outcome::Failed(why) = &exchange.outcome {
            whole = false;
            print::complain(&format!("{}: {why}", exchange.request.url));
        }
    }
    Ok(if whole { Exit::Well } else { Exit::Partly })
}

fn requests(args: &FetchArgs) -> Result<Vec<Request>, String> {
    let RequestArgs { method, headers, data, priority, .. } = &args.request;
    if priority.len() > 1 && priority.len() != args.urls.len() {
        return Err(format!(
            "--priority: {} given for {} URLs: give one, or one each",
            priority.len(),
            args.urls.len()
        ));
    }
    let mut fields = Fields::new();
    for header in headers {
        let (name, value) =
            header.split_once(':').ok_or_else(|| format!("--header '{header}': give NAME: VALUE"))?;
        fields.push(name.trim().to_owned(), value.trim().to_owned());
    }
    let body = match data.as_deref().map(|d| (d, d.strip_prefix('@'))) {
        None => Vec::new(),
        Some((_, Some(file))) => std::fs::read(file).map_err(|e| format!("--data {file}: {e}"))?,
        Some((text, None)) => text.as_bytes().to_vec(),
    };
    let body = bytes::Bytes::from(body);
    let method = method.clone().unwrap_or_else(|| if data.is_some() { "POST" } else { "GET" }.to_owned());
    let parse = |(i, url): (usize, &String)| {
        // As a browser's address bar does.
        let with_scheme = if url.contains("://") { url.clone() } else { format!("http://{url}") };
        let url = Url::parse(&with_scheme).map_err(|e| format!("{url}: {e}"))?;
        let priority = priority[if priority.len() > 1 { i } else { 0 }];
        let (method, fields, body) = (method.clone().into(), fields.clone(), body.clone());
        Ok(Request { url, method, fields, body, priority })
    };
    args.urls.iter().enumerate().map(parse).collect()
}

fn config(args: &FetchArgs, requests: &[Request]) -> Result<Config, String> {
    let ProtocolArgs { protocols, upgrade, spdy, no_push, pipeline, goaway, resolve, .. } = &args.protocol;
    let secure = &args.secure;
    let trust = match &secure.cacert {
        Some(file) => tls::Trust::File(file.clone()),
        None if secure.insecure => tls::Trust::Anybody,
        None => tls::Trust::System,
    };
    let mut config = Config::new(trust);
    let clear = requests.iter().any(|r| r.url.scheme() == "http");
    config.protocols = match &protocols[..] {
        [] if *upgrade => vec![Protocol::Spdy(spdy::Version::V3_1)],
        [] if clear && requests.iter().any(|r| r.url.scheme() == "https") => {
            return Err("http and https URLs together: say what to speak with --protocols".into());
        }
        [] if clear => vec![Protocol::Http1],
        [] => Protocol::ALL.to_vec(),
        some => some.to_vec(),
    };
    config.upgrade = *upgrade;
    config.spdy = spdy.maker();
    config.push = !no_push;
    config.pipeline = (*pipeline).into();
    config.goaway = *goaway;
    config.resolve = resolve.clone();
    let span = |seconds: f64| Duration::from_millis_f64(seconds * 1e3);
    config.connect_timeout = span(args.protocol.connect_timeout);
    config.idle_timeout = span(args.protocol.idle_timeout);
    config.cancel_after = args.request.cancel_after;
    config.tls.false_start = !secure.no_false_start;
    config.tls.common.offer = secure.negotiate.into();
    config.tls.common.versions = TlsVersion::only(secure.tls);
    config.tls.common.record_size = secure.record_size;
    config.tls.common.key_log = open_key_log(secure.key_log.as_deref())?;
    Ok(config)
}

/// Opens the file that secrets go to, if one was named.
pub fn open_key_log(file: Option<&std::path::Path>) -> Result<Option<tls::KeyLog>, String> {
    let open = |file| tls::KeyLog::open(file).map_err(|e| format!("--key-log {}: {e}", file.display()));
    file.map(open).transpose()
}

/// Keeps bodies and prints what happens.
struct Watcher {
    bodies: Bodies,
    trace: Option<Trace>,
    /// The first thing that could not be written.
    unwritten: Option<String>,
}

impl Observer for Watcher {
    fn event(&mut self, now: Instant, event: &Event<'_>, exchanges: &[Exchange]) {
        if let Some(trace) = &mut self.trace {
            trace.event(now, event, exchanges);
        }
        if let Event::Data { exchange, bytes } = event
            && let Err(why) = self.bodies.write(*exchange, &exchanges[*exchange], bytes)
        {
            self.unwritten.get_or_insert(why);
        }
    }
}
