//! Kubernetes' exec, attach and port-forward over SPDY/3.1, client and server, against `kubectl`, a cluster, or itself:
//!
//! ```text
//! kubernetes serve exec -- sh -c 'cat; exit 3'
//! kubernetes exec --stdin http://127.0.0.1:PORT/exec -- cat
//! kubernetes serve portforward
//! kubernetes portforward http://127.0.0.1:PORT/portforward 8080:80
//! ```
//!
//! What is spoken, and how to try it against a cluster, is in `docs/kubernetes.md`.

mod exec;
mod forward;
mod pump;
mod remote;
mod status;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use clap::{Args, Parser, Subcommand};
use live::streams::{Config, Handler, Host, Request, Url};
use live::tls::{Acceptor, ClientConfig, Common, Connector, Identity, ServerConfig, Trust};

use exec::Commands;
use status::Outcome;

/// Connections served at a time.
const CONNECTIONS_MAX: usize = 64;

/// Kubernetes' exec, attach and port-forward over SPDY/3.1.
#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serves, as the kubelet does.
    #[command(subcommand)]
    Serve(Serve),
    /// Runs a command there, with its input, output and exit code here; without COMMAND, attaches to what the URL names.
    Exec {
        #[command(flatten)]
        server: Server,
        /// Passes standard input on.
        #[arg(short = 'i', long)]
        stdin: bool,
        /// http[s]://HOST/api/v1/namespaces/NAMESPACE/pods/POD/exec or /attach; a query is kept.
        url: Url,
        /// The command and its arguments.
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Forwards local ports to ports there, until the connection ends.
    Portforward {
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
}

#[derive(Debug, Subcommand)]
enum Serve {
    /// Exec and attach: a command for each connection.
    Exec {
        /// Where to listen. Whoever can connect can run commands.
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
        /// Runs what the client asks for, instead of COMMAND.
        #[arg(long, conflicts_with = "command", required_unless_present = "command")]
        any_command: bool,
        #[command(flatten)]
        secure: Secure,
        /// The command and its arguments, whatever the client asks for.
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Port-forward.
    Portforward {
        /// Where to listen. Whoever can connect can reach every port of this machine, or the target.
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
        /// HOST:PORT to which all connections go, instead of the port that is asked for on 127.0.0.1.
        #[arg(long)]
        target: Option<String>,
        #[command(flatten)]
        secure: Secure,
    },
}

/// TLS, for a server that is to have it.
#[derive(Debug, Args)]
struct Secure {
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
    #[arg(long)]
    token: Option<String>,
    /// A PEM file with the certificates to believe, instead of the system's.
    #[arg(long, conflicts_with = "insecure")]
    ca: Option<PathBuf>,
    /// Believes any certificate.
    #[arg(long)]
    insecure: bool,
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

fn main() -> ExitCode {
    let done = match Line::parse().verb {
        Verb::Serve(Serve::Exec { listen, any_command, secure, command }) => {
            let commands = Rc::new(if any_command { Commands::Any } else { Commands::Fixed(command) });
            serve(listen, &secure, move || exec::Exec::new(commands.clone()))
        }
        Verb::Serve(Serve::Portforward { listen, target, secure }) => {
            let target = target.map(|target| address(&target)).transpose();
            target.and_then(|target| serve(listen, &secure, move || forward::Server::new(target)))
        }
        Verb::Exec { server, stdin, url, command } => exec(&server, stdin, url, &command),
        Verb::Portforward { server, address, url, ports } => portforward(&server, address, url, &ports),
    };
    done.unwrap_or_else(|why| {
        eprintln!("{why}");
        ExitCode::FAILURE
    })
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let mut found = text.to_socket_addrs().map_err(|e| format!("{text}: {e}"))?;
    found.next().ok_or_else(|| format!("{text} has no address"))
}

fn serve<H: Handler>(
    listen: SocketAddr,
    secure: &Secure,
    mut handler: impl FnMut() -> H + 'static,
) -> Result<ExitCode, String> {
    let mut host = Host::new().map_err(|e| e.to_string())?;
    let acceptor = secure.acceptor()?;
    let address = host.listen(listen, acceptor, Config::default(), CONNECTIONS_MAX, move |_| handler());
    println!("listening {}", address.map_err(|e| format!("{listen}: {e}"))?);
    loop {
        host.turn(None).map_err(|e| e.to_string())?;
    }
}

impl Secure {
    fn acceptor(&self) -> Result<Option<Acceptor>, String> {
        let (Some(cert), Some(key)) = (&self.cert, &self.key) else { return Ok(None) };
        let identity = Identity::read(cert, key).map_err(|e| e.to_string())?;
        let common = Common::new(["http/1.1"]);
        let config = ServerConfig { common, identity, tickets: true, ocsp: None };
        Acceptor::new(&config).map(Some).map_err(|e| e.to_string())
    }
}

/// Connects, and gives the handler back when all is over.
fn connect<H: Handler>(server: &Server, mut request: Request, handler: H) -> Result<H, String> {
    if let Some(token) = &server.token {
        request.fields.push("Authorization", format!("Bearer {token}"));
    }
    let addresses = request.url.socket_addrs(|| None).map_err(|e| format!("{}: {e}", request.url))?;
    let connector = match request.url.scheme() {
        "https" => Some(server.connector()?),
        "http" => None,
        other => return Err(format!("{other}: give an http or https URL")),
    };
    let mut host = Host::new().map_err(|e| e.to_string())?;
    host.connect(request, &addresses, connector, Config::default(), handler);
    loop {
        if let Some(handler) = host.turn(None).map_err(|e| e.to_string())?.pop() {
            return Ok(handler);
        }
    }
}

impl Server {
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

fn exec(server: &Server, stdin: bool, mut url: Url, command: &[String]) -> Result<ExitCode, String> {
    let mut query = url.query_pairs_mut();
    for argument in command {
        query.append_pair("command", argument);
    }
    for (name, wanted) in [("stdin", stdin), ("stdout", true), ("stderr", true)] {
        if wanted {
            query.append_pair(name, "true");
        }
    }
    drop(query);
    let pipes = || {
        let stdin = if stdin { Some(pump::relay_from(std::io::stdin())?) } else { None };
        Ok((stdin, pump::relay_to(std::io::stdout())?, pump::relay_to(std::io::stderr())?))
    };
    let (stdin, stdout, stderr) = pipes().map_err(|e: std::io::Error| format!("pipes: {e}"))?;
    let remote = remote::Remote::new(stdin, stdout, stderr);
    match connect(server, Request::new(url, &[exec::PROTOCOL]), remote)?.finish() {
        Outcome::Exit(code) => Ok(ExitCode::from(code)),
        Outcome::Failed(why) => Err(why),
    }
}

fn portforward(server: &Server, address: IpAddr, url: Url, ports: &[Ports]) -> Result<ExitCode, String> {
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
    let client = connect(server, Request::new(url, &[forward::PROTOCOL]), forward::Client::new(ports))?;
    client.end.unwrap_or(Ok(()))?;
    Err("the server closed the connection".into())
}
