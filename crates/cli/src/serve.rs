//! `velodrome serve`: a folder or a recorded page over HTTP/1.1 and SPDY.
//!
//! The addresses and the access log go to standard output, one line each; what goes wrong, to standard error. The first
//! ctrl-C, or SIGTERM, lets clients finish (SPDY's hear of it by GOAWAY); the second ends the program.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use base::{Duration, Instant};
use clap::Args;
use live::fetch::Protocol;
use live::serve::{Config, Content, Event, Folder, Server, Summary, Uploads};
use live::tls;
use origin::{BadPushRule, PushRules, Record, Recording};
use page::hint::Form;
use page::{Page, ResourceId};
use serde_json::json;

use crate::fetch::{Negotiate, Settings, TlsVersion, open_key_log, protocol};
use crate::{Exit, print};

/// `velodrome serve`.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// A folder of files, or a recorded page (.har, .har.gz).
    #[arg(value_name = "DIR|PAGE.har")]
    what: PathBuf,
    /// Where to listen; port 0 takes a free one.
    #[arg(long, short, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = address)]
    listen: Vec<SocketAddr>,
    /// Print one JSON object for each answer instead of a line.
    #[arg(long)]
    json: bool,
    /// Print no access log.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    site: SiteArgs,
    #[command(flatten)]
    protocol: ProtocolArgs,
    #[command(flatten)]
    secure: SecureArgs,
}

/// What is served.
#[derive(Args, Debug)]
#[command(next_help_heading = "The site")]
struct SiteArgs {
    /// What SPDY pushes: a rule (`/ -> /style.css /app.js`; `*` stands for anything), a file of them, or, for a recorded
    /// page, `auto`: what its markup and style sheets ask the document's own host for. May be given several times.
    #[arg(long, value_name = "RULE|FILE|auto")]
    push: Vec<String>,
    /// Recorded page: name in the head of a document's answer what it will need of its own host and caches may keep.
    #[arg(long, value_enum, value_name = "FIELD")]
    hints: Option<Hints>,
    /// Folder: take POST and PUT, and answer with length and CRC-32 of what came.
    #[arg(long)]
    uploads: bool,
    /// Recorded page: which of the recording's pages, from 1.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    page: u32,
    /// Recorded page: how near to a recorded request another must come to get its answer.
    #[arg(long, value_enum, default_value = "closest", value_name = "HOW")]
    matching: Matching,
    /// Recorded page: how long answers take.
    #[arg(long, value_enum, default_value = "recorded", value_name = "HOW")]
    think: Think,
}

/// How near a request must come.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Matching {
    /// Method, path and query are the recorded ones.
    Exact,
    /// The same path, and the recorded query that is nearest.
    Closest,
}

/// Which field names what a document will need.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Hints {
    /// X-Subresources, to clients that send X-Subresource: enabled.
    Subresources,
    /// Link with rel=preload, as browsers heed it today.
    Preload,
}

/// How long answers take.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Think {
    /// As long as the recorded server took.
    Recorded,
    /// No time.
    None,
}

/// What is spoken.
#[derive(Args, Debug)]
#[command(next_help_heading = "Protocols")]
struct ProtocolArgs {
    /// What ALPN and NPN offer, preferred first: spdy/3.1, spdy/3, spdy/2, http/1.1.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = protocol,
          default_value = "spdy/3.1,spdy/3,spdy/2,http/1.1")]
    protocols: Vec<Protocol>,
    /// In clear text, what a client of prior knowledge speaks that writes version 3: spdy/3.1 or spdy/3.
    #[arg(long, value_name = "VERSION", value_parser = version_3, default_value = "spdy/3.1")]
    version_3: spdy::Version,
    /// Whose settings a SPDY session has.
    #[arg(long, value_enum, default_value = "velodrome", value_name = "WHOSE")]
    spdy: Settings,
    /// How long a client may ask for nothing before it is told to go.
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    idle_timeout: u64,
    /// How long clients may take to finish when the server is stopped.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    grace: u64,
    /// Clients served at a time.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    clients_max: u32,
}

/// How TLS is done.
#[derive(Args, Debug)]
#[command(next_help_heading = "TLS (without --tls and --cert: clear text only)")]
struct SecureArgs {
    /// Speak TLS, with a certificate made on the spot. Clear text is served on the same port.
    #[arg(long)]
    tls: bool,
    /// Speak TLS, with this certificate chain (PEM).
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The certificate's key (PEM).
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Names and addresses of a certificate made on the spot (default: localhost, and where it listens; of a recorded
    /// page, its hosts).
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "cert")]
    names: Vec<String>,
    /// Write the certificate (PEM) here, for clients to believe.
    #[arg(long, value_name = "FILE")]
    write_cert: Option<PathBuf>,
    /// Refuse clear text.
    #[arg(long)]
    tls_only: bool,
    /// How the protocol is agreed on.
    #[arg(long, value_enum, default_value = "both", value_name = "HOW")]
    negotiate: Negotiate,
    /// The only version of TLS to speak (default: 1.2 and 1.3; NPN needs 1.2).
    #[arg(long, value_enum, value_name = "VERSION")]
    tls_version: Option<TlsVersion>,
    /// Give no session tickets.
    #[arg(long)]
    no_tickets: bool,
    /// Bytes of plaintext a record holds at most, 512 to 16384.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(512..=16384))]
    record_size: Option<u16>,
    /// An OCSP response (DER) to staple.
    #[arg(long, value_name = "FILE")]
    ocsp: Option<PathBuf>,
    /// Append every secret here, for packet analysers.
    #[arg(long, value_name = "FILE", env = "SSLKEYLOGFILE")]
    key_log: Option<PathBuf>,
}

/// `8080`, `:8080`, `HOST:PORT` with an address for a host.
fn address(text: &str) -> Result<SocketAddr, String> {
    let bare = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = bare.parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    text.parse().map_err(|_| "give ADDRESS:PORT, or a port of 127.0.0.1".to_owned())
}

fn version_3(text: &str) -> Result<spdy::Version, String> {
    match protocol(text) {
        Ok(Protocol::Spdy(version)) if version != spdy::Version::V2 => Ok(version),
        _ => Err("spdy/3.1 or spdy/3".into()),
    }
}

/// What `--push` says.
enum Pushes {
    Automatic,
    Rules(PushRules),
}

/// Carries the verb out.
pub fn serve(args: &ServeArgs) -> Result<Exit, String> {
    let what = args.what.display();
    let said = |e: BadPushRule| format!("--push: {e}");
    let pushes = pushes(&args.site.push)?;
    if args.what.is_dir() {
        if args.site.hints.is_some() {
            return Err("--hints: a folder does not tell what its pages need; serve a recording".into());
        }
        let uploads = if args.site.uploads { Uploads::Counted } else { Uploads::Refused };
        let folder = Folder::new(&args.what, uploads).map_err(|e| format!("{what}: {e}"))?;
        let mut folder = match pushes {
            Pushes::Automatic => {
                return Err("--push auto: a folder does not tell what its pages need; give rules".into());
            }
            Pushes::Rules(rules) => folder.with_pushes(rules).map_err(said)?,
        };
        return run(args, &mut folder, &[]);
    }
    if !args.what.exists() {
        return Err(format!("{what}: no such folder or recording"));
    }
    let mut pages = page::har::read_with_bodies(&args.what).map_err(|e| e.to_string())?;
    let (count, index) = (pages.len(), args.site.page as usize - 1);
    if index >= count {
        return Err(format!("--page {}: {what} has {count}", index + 1));
    }
    let (page, bodies) = pages.swap_remove(index);
    drop(pages);
    describe(args, &page, bodies.len());
    let matching = match args.site.matching {
        Matching::Exact => origin::Matching::Exact,
        Matching::Closest => origin::Matching::Closest,
    };
    let think = match args.site.think {
        Think::Recorded => origin::Think::Recorded,
        Think::None => origin::Think::Fixed(Duration::ZERO),
    };
    let recording = Recording::new(&page, think, matching).with_bodies(bodies);
    let recording = match pushes {
        Pushes::Automatic => recording.with_automatic_pushes(),
        Pushes::Rules(rules) => recording.with_pushes(&rules).map_err(said)?,
    };
    let mut recording = match args.site.hints {
        Some(Hints::Subresources) => recording.with_hints(Form::Subresources, own_path),
        Some(Hints::Preload) => recording.with_hints(Form::Preload, own_path),
        None => recording,
    };
    let hosts: Vec<_> = page.hosts.iter().map(|h| h.name.clone()).collect();
    run(args, &mut recording, &hosts)
}

/// How a document names what its own host has; what others have is not hinted at, as it may be served from elsewhere.
fn own_path(page: &Page, document: ResourceId, id: ResourceId) -> Option<String> {
    let [document, resource] = [document, id].map(|id| &page.resources[id as usize]);
    (document.host == resource.host).then(|| String::from_utf8_lossy(&resource.path).into_owned())
}

fn pushes(given: &[String]) -> Result<Pushes, String> {
    if given == ["auto"] {
        return Ok(Pushes::Automatic);
    }
    let mut text = String::new();
    for rule in given {
        match rule.as_str() {
            "auto" => return Err("--push auto: takes no rules beside it".into()),
            rule if rule.contains("->") => text += rule,
            file => text += &std::fs::read_to_string(file).map_err(|e| format!("--push {file}: {e}"))?,
        }
        text.push('\n');
    }
    text.parse().map(Pushes::Rules).map_err(|e: BadPushRule| format!("--push: {e}"))
}

/// Says what a recording is served as, and how a browser finds it.
fn describe(args: &ServeArgs, page: &Page, bodies: usize) {
    if args.quiet || args.json {
        return;
    }
    let (resources, hosts) = (page.resources.len(), page.hosts.len());
    print::err(&format!("{}: {resources} resources of {hosts} hosts, {bodies} with bodies\n", page.url));
    for assumption in &page.assumptions {
        print::err(&format!("  assumed: {assumption}\n"));
    }
    if let Some(listen) = args.listen.first() {
        print::err(&format!(
            "a browser finds all its hosts here with --host-resolver-rules=\"MAP * {listen}\" (Chrome)\n"
        ));
    }
}

/// Serves until it is stopped. `hosts` are names that a certificate made on the spot should have.
fn run<C: Content>(args: &ServeArgs, site: &mut C, hosts: &[String]) -> Result<Exit, String> {
    let ProtocolArgs { version_3, spdy, idle_timeout, grace, clients_max, .. } = &args.protocol;
    let config = Config {
        tls: acceptor(args, hosts)?,
        clear: !args.secure.tls_only,
        version_3: *version_3,
        spdy: spdy.maker().into(),
        idle_timeout: Duration::from_secs(*idle_timeout),
        grace: Duration::from_secs(*grace),
        clients_max: *clients_max as usize,
        ..Config::default()
    };
    if args.secure.tls_only && config.tls.is_none() {
        return Err("--tls-only: nothing is served without --tls or --cert".into());
    }
    let secure = config.tls.is_some();
    let server = Server::bind(&args.listen, config).map_err(|e| match e.kind() {
        std::io::ErrorKind::AddrInUse => {
            format!("{e}: another program listens there; --listen names another port")
        }
        _ => e.to_string(),
    })?;
    for address in server.addresses().map_err(|e| e.to_string())? {
        announce(args, address, secure);
    }
    let handle = server.handle();
    let stopping = std::sync::atomic::AtomicBool::new(false);
    ctrlc::set_handler(move || {
        if stopping.swap(true, std::sync::atomic::Ordering::SeqCst) {
            std::process::exit(130);
        }
        handle.shut_down();
    })
    .map_err(|e| e.to_string())?;
    let summary = server.run(site, &mut |now, event| log(args, now, event)).map_err(|e| e.to_string())?;
    farewell(args, &summary);
    Ok(Exit::Well)
}

fn announce(args: &ServeArgs, address: SocketAddr, secure: bool) {
    let schemes = match (secure, args.secure.tls_only) {
        (true, true) => format!("https://{address}/"),
        (true, false) => format!("https://{address}/ and http://{address}/"),
        (false, _) => format!("http://{address}/"),
    };
    if args.json {
        print::out(&format!("{}\n", json!({ "listening": address.to_string(), "tls": secure })));
    } else {
        print::out(&format!("{} at {schemes}\n", args.what.display()));
    }
}

fn acceptor(args: &ServeArgs, hosts: &[String]) -> Result<Option<tls::Acceptor>, String> {
    let secure = &args.secure;
    let said = |e: tls::Error| e.to_string();
    let identity = match (&secure.cert, &secure.key) {
        (Some(cert), Some(key)) => tls::Identity::read(cert, key).map_err(said)?,
        _ if secure.tls => tls::Identity::self_signed(&names(args, hosts)).map_err(said)?,
        _ => return Ok(None),
    };
    if let Some(file) = &secure.write_cert {
        let pem = identity.certificate_pem().map_err(said)?;
        std::fs::write(file, pem).map_err(|e| format!("--write-cert {}: {e}", file.display()))?;
    }
    let read = |file: &Path| std::fs::read(file).map_err(|e| format!("--ocsp {}: {e}", file.display()));
    let common = tls::Common {
        offer: secure.negotiate.into(),
        versions: TlsVersion::only(secure.tls_version),
        record_size: secure.record_size,
        key_log: open_key_log(secure.key_log.as_deref())?,
        ..tls::Common::new(args.protocol.protocols.iter().map(|p| p.id()))
    };
    let ocsp = secure.ocsp.as_deref().map(read).transpose()?;
    let config = tls::ServerConfig { common, identity, tickets: !secure.no_tickets, ocsp };
    tls::Acceptor::new(&config).map(Some).map_err(said)
}

/// Whom a certificate made on the spot is for.
fn names(args: &ServeArgs, hosts: &[String]) -> Vec<String> {
    if !args.secure.names.is_empty() {
        return args.secure.names.clone();
    }
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    names.extend(hosts.iter().cloned());
    let addresses = args.listen.iter().map(|a| a.ip()).filter(|ip: &IpAddr| !ip.is_unspecified());
    names.extend(addresses.map(|ip| ip.to_string()));
    names.sort();
    names.dedup();
    names
}

fn log(args: &ServeArgs, now: Instant, event: &Event<'_>) {
    match event {
        Event::Answered { client, record } if !args.quiet => print::out(&answered(args, *client, record)),
        Event::Secured { client, negotiated: n } if !args.quiet && !args.json => {
            let protocol = n.protocol.as_ref().map_or("no protocol".into(), |(p, by)| format!("{p} by {by}"));
            let resumed = if n.resumed { ", resumed" } else { "" };
            print::out(&format!("{:9.3} client {client}: {}, {protocol}{resumed}\n", ms(now), n.version));
        }
        _ => {}
    }
}

fn answered(args: &ServeArgs, client: u64, r: &Record) -> String {
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    let stream = r.stream.map(|s| s.as_u32());
    if args.json {
        let row = json!({
            "client": client, "at_ms": ms(r.received), "think_ms": ms(r.answered) - ms(r.received),
            "protocol": r.protocol, "stream": stream, "pushed": r.pushed, "method": text(&r.method),
            "authority": text(&r.authority), "path": text(&r.path), "status": r.status, "body_bytes": r.body_len,
            "matched": r.matched.map(|tier| tier.name()),
        });
        return format!("{row}\n");
    }
    let stream = stream.map(|s| format!(" stream {s}")).unwrap_or_default();
    let pushed = if r.pushed { "pushed " } else { "" };
    let matched = r.matched.map(|tier| format!(" ({})", tier.name())).unwrap_or_default();
    format!(
        "{:9.3} client {client} {}{stream}: {pushed}{} {}{} → {} {} bytes{matched}\n",
        ms(r.received),
        r.protocol,
        r.method.escape_ascii(),
        r.authority.escape_ascii(),
        r.path.escape_ascii(),
        r.status,
        r.body_len,
    )
}

fn farewell(args: &ServeArgs, summary: &Summary) {
    if args.quiet || args.json {
        return;
    }
    let Summary { clients, answers, pushes, cut_off } = summary;
    let cut_off = if *cut_off > 0 { format!(", {cut_off} clients cut off") } else { String::new() };
    print::err(&format!("{clients} clients, {answers} answers, {pushes} pushes{cut_off}\n"));
}

fn ms(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e6
}
