//! Kubernetes' exec, attach and port-forward over SPDY/3.1, client and server, against `kubectl`, a cluster, or itself:
//!
//! ```text
//! kubernetes serve exec -- sh -c 'cat; exit 3'
//! kubernetes exec --stdin http://127.0.0.1:PORT/exec -- cat
//! kubernetes serve port-forward
//! kubernetes port-forward http://127.0.0.1:PORT/portforward 8080:80
//! kubernetes trace 127.0.0.1:PORT
//! ```
//!
//! What is spoken, and how to try it against a cluster, is in `docs/kubernetes.md`.

mod channel;
mod exec;
mod forward;
mod process;
mod pump;
mod remote;
mod signals;
mod status;
#[cfg(test)]
mod tests;
mod trace;

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use clap::{Args, Parser, Subcommand};
use live::streams::{Config, Handler, Host, Request, Url};
use live::tls::{Acceptor, ClientConfig, Common, Connector, Identity, ServerConfig, Trust};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use channel::{Size, Version};
use exec::Commands;
use remote::{Ends, Remote};
use signals::Signals;
use status::Outcome;

/// Connections served at a time.
const CONNECTIONS_MAX: usize = 64;

/// What a shell gives a command that SIGINT ended.
const INTERRUPTED: u8 = 130;

/// Kubernetes' exec, attach and port-forward over SPDY/3.1.
#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serves on loopback, as the kubelet does: commands of this machine, or its ports.
    #[command(subcommand)]
    Serve(Serve),
    /// Runs a command there, with its input, output and exit code here.
    Exec {
        #[command(flatten)]
        server: Server,
        #[command(flatten)]
        joined: Joined,
        /// http[s]://HOST/api/v1/namespaces/NAMESPACE/pods/POD/exec; a query (`?container=NAME`) is kept.
        url: Url,
        /// The command and its arguments.
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Joins what runs there already.
    Attach {
        #[command(flatten)]
        server: Server,
        #[command(flatten)]
        joined: Joined,
        /// http[s]://HOST/api/v1/namespaces/NAMESPACE/pods/POD/attach; a query (`?container=NAME`) is kept.
        url: Url,
    },
    /// Forwards local ports to ports there, until the connection ends or SIGINT comes.
    #[command(alias = "portforward")]
    PortForward {
        #[command(flatten)]
        server: Server,
        /// The address to listen on.
        #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
        address: IpAddr,
        /// http[s]://HOST/api/v1/namespaces/NAMESPACE/pods/POD/portforward
        url: Url,
        /// [[LOCAL]:]REMOTE; a LOCAL that is empty or 0 is any free port.
        #[arg(required = true)]
        ports: Vec<Ports>,
    },
    /// Passes on connections in clear text, and prints their HTTP heads and SPDY frames.
    Trace {
        /// Where to listen.
        #[arg(long, default_value = "127.0.0.1:0", value_parser = loopback)]
        listen: SocketAddr,
        /// HOST:PORT of the server.
        target: String,
    },
}

#[derive(Debug, Subcommand)]
enum Serve {
    /// Exec and attach: a command for each connection.
    Exec {
        #[command(flatten)]
        listening: Listening,
        /// Runs what the client asks for, instead of COMMAND.
        #[arg(long, conflicts_with = "command", required_unless_present = "command")]
        any_command: bool,
        /// The command and its arguments, whatever the client asks for.
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Port-forward.
    #[command(alias = "portforward")]
    PortForward {
        #[command(flatten)]
        listening: Listening,
        /// A loopback ADDRESS:PORT to which all connections go, instead of the port that is asked for on 127.0.0.1.
        #[arg(long, value_parser = loopback)]
        target: Option<SocketAddr>,
    },
}

/// Where and how to serve.
#[derive(Debug, Args)]
struct Listening {
    /// A loopback address to listen on. Whoever can connect can do all that is served.
    #[arg(long, default_value = "127.0.0.1:0", value_parser = loopback)]
    listen: SocketAddr,
    /// A PEM file with the certificate chain; without it, clear text is served.
    #[arg(long, requires = "key")]
    cert: Option<PathBuf>,
    /// A PEM file with its key.
    #[arg(long, requires = "cert")]
    key: Option<PathBuf>,
}

/// How to talk to the server.
#[derive(Debug, Args)]
struct Server {
    /// A bearer token, sent as `Authorization`; other users of this machine can see it.
    #[arg(long, conflicts_with = "token_file")]
    token: Option<String>,
    /// A file with the token.
    #[arg(long)]
    token_file: Option<PathBuf>,
    /// A PEM file with the certificates to believe, instead of the system's.
    #[arg(long, conflicts_with = "insecure")]
    ca: Option<PathBuf>,
    /// Believes any certificate.
    #[arg(long)]
    insecure: bool,
}

/// What of here a command there is joined to.
#[derive(Clone, Copy, Debug, Args)]
struct Joined {
    /// Passes standard input on.
    #[arg(short = 'i', long)]
    stdin: bool,
    /// Gives it a terminal, as large as standard output is; standard input, if it is one, passes every key on.
    #[arg(short = 't', long)]
    tty: bool,
}

#[derive(Clone, Copy, Debug)]
struct Ports {
    local: u16,
    remote: u16,
}

impl std::str::FromStr for Ports {
    type Err = String;

    fn from_str(ports: &str) -> Result<Self, String> {
        let (local, remote) = ports.split_once(':').unwrap_or((ports, ports));
        let number = |port: &str| port.parse::<u16>().map_err(|e| format!("{port:?}: {e}"));
        let local = if local.is_empty() { 0 } else { number(local)? };
        match number(remote)? {
            0 => Err("the remote port must not be 0".into()),
            remote => Ok(Self { local, remote }),
        }
    }
}

fn loopback(address: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = address.parse().map_err(|e| format!("{e}: give ADDRESS:PORT"))?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err("this is an example, without authentication: give a loopback address".into()),
    }
}

fn main() -> ExitCode {
    let done = match Line::parse().verb {
        Verb::Serve(Serve::Exec { listening, any_command, command }) => {
            let commands = Rc::new(if any_command { Commands::Any } else { Commands::Fixed(command) });
            serve(&listening, move || exec::Exec::new(commands.clone()))
        }
        Verb::Serve(Serve::PortForward { listening, target }) => {
            serve(&listening, move || forward::Server::new(target))
        }
        Verb::Exec { server, joined, url, command } => run(&server, joined, url, &command),
        Verb::Attach { server, joined, url } => run(&server, joined, url, &[]),
        Verb::PortForward { server, address, url, ports } => port_forward(&server, address, url, &ports),
        Verb::Trace { listen, target } => trace(listen, &target),
    };
    done.unwrap_or_else(|why| {
        eprintln!("{why}");
        ExitCode::FAILURE
    })
}

/// Serves until it is told to stop, then takes leave.
fn serve<H: Handler>(
    listening: &Listening,
    mut handler: impl FnMut() -> H + 'static,
) -> Result<ExitCode, String> {
    let mut host = Host::new().map_err(|e| e.to_string())?;
    let signals = Signals::listen(host.reactor().waker()).map_err(|e| format!("signals: {e}"))?;
    let (listen, acceptor) = (listening.listen, listening.acceptor()?);
    let address = host.listen(listen, acceptor, Config::default(), CONNECTIONS_MAX, move |_| handler());
    println!("listening {}", address.map_err(|e| format!("{listen}: {e}"))?);
    while !signals.stop() {
        host.turn(None).map_err(|e| e.to_string())?;
    }
    host.close();
    while !host.is_empty() {
        host.turn(None).map_err(|e| e.to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Connects, and gives the handler back when all is over, with what came in between.
fn connect<H: Handler>(
    server: &Server,
    mut request: Request,
    handler: impl FnOnce(Signals) -> H,
) -> Result<(H, Signals), String> {
    if let Some(token) = server.token()? {
        request.fields.push("Authorization", format!("Bearer {token}"));
    }
    let connector = match request.url.scheme() {
        "https" => Some(server.connector()?),
        "http" => None,
        other => return Err(format!("{other}: give an http or https URL")),
    };
    let name = request.url.host_str().unwrap_or_default().to_owned();
    let addresses = request.url.socket_addrs(|| None).map_err(|e| format!("{name}: {e}"))?;
    let mut host = Host::new().map_err(|e| e.to_string())?;
    let signals = Signals::listen(host.reactor().waker()).map_err(|e| format!("signals: {e}"))?;
    host.connect(request, &addresses, connector, Config::default(), handler(signals.clone()));
    loop {
        if let Some(handler) = host.turn(None).map_err(|e| e.to_string())?.pop() {
            return Ok((handler, signals));
        }
    }
}

impl Listening {
    fn acceptor(&self) -> Result<Option<Acceptor>, String> {
        let (Some(cert), Some(key)) = (&self.cert, &self.key) else { return Ok(None) };
        let identity = Identity::read(cert, key).map_err(|e| e.to_string())?;
        let common = Common::new(["http/1.1"]);
        let config = ServerConfig { common, identity, tickets: true, ocsp: None };
        Acceptor::new(&config).map(Some).map_err(|e| e.to_string())
    }
}

impl Server {
    fn token(&self) -> Result<Option<String>, String> {
        let Some(file) = &self.token_file else { return Ok(self.token.clone()) };
        let token = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(Some(token.trim().to_owned()))
    }

    fn connector(&self) -> Result<Connector, String> {
        let trust = match &self.ca {
            Some(path) => Trust::File(path.clone()),
            None if self.insecure => Trust::Anybody,
            None => Trust::System,
        };
        // What is upgraded must be HTTP/1.1.
        let common = Common::new(["http/1.1"]);
        let config = ClientConfig { common, trust, false_start: false, ocsp: false };
        Connector::new(&config).map_err(|e| e.to_string())
    }
}

/// Exec, or attach if there is no command.
fn run(server: &Server, joined: Joined, mut url: Url, command: &[String]) -> Result<ExitCode, String> {
    let mut query = url.query_pairs_mut();
    for argument in command {
        query.append_pair("command", argument);
    }
    let wanted = [("stdin", joined.stdin), ("stdout", true), ("stderr", !joined.tty), ("tty", joined.tty)];
    for (name, _) in wanted.iter().filter(|(_, is_wanted)| *is_wanted) {
        query.append_pair(name, "true");
    }
    drop(query);
    let ends = || {
        let stdin = if joined.stdin { Some(pump::relay_from(std::io::stdin())?) } else { None };
        let stderr = if joined.tty { None } else { Some(pump::relay_to(std::io::stderr())?) };
        let terminal = joined.tty.then_some(window_size as fn() -> _);
        Ok(Ends { stdin, stdout: pump::relay_to(std::io::stdout())?, stderr, terminal })
    };
    let ends = ends().map_err(|e: std::io::Error| format!("pipes: {e}"))?;
    let keys = if joined.tty && joined.stdin { Keys::take()? } else { None };
    let request = Request::new(url, &Version::ALL.map(Version::name));
    let (remote, signals) = connect(server, request, |signals| Remote::new(ends, signals))?;
    let outcome = remote.finish();
    drop(keys);
    match outcome {
        Outcome::Exit(code) => Ok(ExitCode::from(code)),
        Outcome::Failed(why) if signals.stop() => {
            eprintln!("{why}");
            Ok(ExitCode::from(INTERRUPTED))
        }
        Outcome::Failed(why) => Err(why),
    }
}

fn window_size() -> Option<Size> {
    let size = tcgetwinsize(std::io::stdout()).ok()?;
    Some(Size { columns: size.ws_col, rows: size.ws_row })
}

/// The terminal that standard input is passes every key on, until this is dropped.
struct Keys {
    terminal: OwnedFd,
    before: Termios,
}

impl Keys {
    /// None if it is no terminal.
    fn take() -> Result<Option<Self>, String> {
        let stdin = std::io::stdin();
        if !stdin.is_terminal() {
            return Ok(None);
        }
        let set = || {
            let terminal = rustix::io::dup(&stdin)?;
            let before = tcgetattr(&terminal)?;
            let mut raw = before.clone();
            raw.make_raw();
            tcsetattr(&terminal, OptionalActions::Now, &raw)?;
            Ok(Some(Self { terminal, before }))
        };
        set().map_err(|e: rustix::io::Errno| format!("terminal: {e}"))
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // A terminal that is gone needs no repair.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

fn port_forward(server: &Server, address: IpAddr, url: Url, ports: &[Ports]) -> Result<ExitCode, String> {
    let listen = |ports: &Ports| {
        let listener = TcpListener::bind((address, ports.local)).and_then(|listener| {
            listener.set_nonblocking(true)?;
            println!("forwarding {} to {}", listener.local_addr()?, ports.remote);
            Ok(listener)
        });
        let listener = listener.map_err(|e| format!("{address}, port {}: {e}", ports.local))?;
        Ok::<_, String>((mio::net::TcpListener::from_std(listener), ports.remote))
    };
    let ports = ports.iter().map(listen).collect::<Result<_, _>>()?;
    let request = Request::new(url, &[forward::PROTOCOL]);
    let (client, signals) = connect(server, request, |signals| forward::Client::new(ports, signals))?;
    client.end.unwrap_or(Ok(()))?;
    match signals.stop() {
        true => Ok(ExitCode::SUCCESS),
        false => Err("the server closed the connection".into()),
    }
}

fn trace(listen: SocketAddr, target: &str) -> Result<ExitCode, String> {
    let mut found = target.to_socket_addrs().map_err(|e| format!("{target}: {e}: give HOST:PORT"))?;
    let target = found.next().ok_or_else(|| format!("{target} has no address"))?;
    trace::run(listen, target).map_err(|e| format!("{listen}: {e}"))?;
    Ok(ExitCode::SUCCESS)
}
