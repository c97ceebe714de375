//! Kubernetes' exec and port-forward in the matrix: the example program of `live`, `kubernetes`, as a child process, as
//! whoever takes it for a beginning would run it. It stands beside this program, where Cargo puts examples.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::child::Child;
use crate::client::Target;
use crate::contract::{self, ANSWER_MS, CELL_MS, Check, LARGE, Scenario, Wanted};

/// What the peers' command says on its standard error when its input has ended.
const DONE: &str = "done";
/// What goes through the command: this line, [`LINES`] times.
const LINE: &str = "the quick brown fox jumps over the lazy dog";
const LINES: usize = 5_000;
/// Milliseconds that the program may take to start.
const START_MS: u64 = 10_000;

/// Where the program is.
///
/// # Errors
/// If it was not built; says how.
pub fn program() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
    // A test runs from a folder below the one where programs are.
    let folders = own.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join("examples/kubernetes")).find(|path| path.is_file());
    found.ok_or(
        "no examples/kubernetes: run `cargo build -p velodrome-live --features tls --example kubernetes`"
            .into(),
    )
}

fn words(first: PathBuf, rest: &[&str]) -> Vec<String> {
    let mut words = vec![first.display().to_string()];
    words.extend(rest.iter().map(|word| (*word).to_owned()));
    words
}

/// Runs exec or port-forward against a peer's server.
///
/// # Errors
/// If it did not go well.
pub fn ask(target: Target, scenario: Scenario, folder: &Path) -> Result<String, String> {
    let scheme = if target.tls { "https" } else { "http" };
    let url = format!("{scheme}://{}/{scenario}", target.address());
    match scenario {
        Scenario::Exec => execute(&url, folder),
        Scenario::PortForward => forward(&url, folder),
        other => Err(format!("{other} is not the example's")),
    }
}

fn execute(url: &str, folder: &Path) -> Result<String, String> {
    let words = words(program()?, &["exec", "--insecure", "--stdin", url, "--", "upper"]);
    let mut child = Child::start(&words, folder).map_err(|e| format!("{}: {e}", words[0]))?;
    let mut input = child.take_input().ok_or("the program has no standard input")?;
    // A program that ends early is told of by what it says.
    let writing = std::thread::spawn(move || {
        let _ = (0..LINES).try_for_each(|_| writeln!(input, "{LINE}"));
    });
    let wanted = LINE.to_uppercase();
    let mut lines = 0;
    let complained = |what: String, child: &Child| match child.complaints() {
        said if said.is_empty() => what,
        said => format!("{what}: {said}"),
    };
    while let Ok(line) = child.line(ANSWER_MS) {
        if line != wanted {
            return Err(format!("line {lines} of stdout is {line:?}"));
        }
        lines += 1;
    }
    let status = child.wait(ANSWER_MS).ok_or_else(|| complained("exec does not end".into(), &child))?;
    // The writer's pipe is broken or empty now.
    let _ = writing.join();
    match (lines, status.code(), child.all_complaints()) {
        (LINES, Some(0), said) if said == DONE => {
            Ok(format!("{} bytes through stdin and stdout", LINES * (LINE.len() + 1)))
        }
        (LINES, Some(0), said) => Err(format!("stderr is {said:?}")),
        (n, code, _) => {
            Err(complained(format!("exec ended with {code:?} after {n} of {LINES} lines"), &child))
        }
    }
}

fn forward(url: &str, folder: &Path) -> Result<String, String> {
    let words = words(program()?, &["portforward", "--insecure", url, "0:80"]);
    let child = Child::start(&words, folder).map_err(|e| format!("{}: {e}", words[0]))?;
    let line = child.line_that(START_MS, |line| line.starts_with("forwarding "));
    let address: Option<SocketAddr> = line.and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let address = address.ok_or_else(|| format!("it does not listen: {}", child.complaints()))?;
    // Twice, as a browser would: each connection is a pair of streams.
    for _ in 0..2 {
        echoed(address).map_err(|e| format!("portforward: {e}"))?;
    }
    Ok(format!("2 × {LARGE} bytes forwarded and back"))
}

/// Sends the large body through a connection, and has it back.
fn echoed(address: SocketAddr) -> Result<(), String> {
    let said = |e: io::Error| e.to_string();
    let mut tcp = TcpStream::connect(address).map_err(said)?;
    tcp.set_read_timeout(Some(Duration::from_millis(ANSWER_MS))).map_err(said)?;
    let mut writer = tcp.try_clone().map_err(said)?;
    let writing = std::thread::spawn(move || {
        let body = contract::body(LARGE);
        writer.write_all(&body).and_then(|()| writer.shutdown(Shutdown::Write))
    });
    let mut check = Check::new("what came back", Wanted::Pattern(LARGE));
    let mut buffer = vec![0; 1 << 16];
    loop {
        match tcp.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => check.take(&buffer[..n]),
            Err(e) => return Err(format!("{e} after {} bytes", check.seen())),
        }
    }
    check.end()?;
    writing.join().map_err(|_| "its writer panicked".to_owned())?.map_err(said)
}

/// The program as a server, with what it forwards to. Dropping it ends both.
#[derive(Debug)]
pub struct Serving {
    child: Child,
    port: u16,
    _echo: Option<Echo>,
}

impl Serving {
    /// Starts it for exec or port-forward; `identity` is certificate and key of a server under TLS.
    ///
    /// # Errors
    /// If it does not come up.
    pub fn start(
        scenario: Scenario,
        identity: Option<(&Path, &Path)>,
        folder: &Path,
    ) -> Result<Self, String> {
        let echo = match scenario {
            Scenario::PortForward => Some(Echo::start().map_err(|e| format!("echo: {e}"))?),
            _ => None,
        };
        let mut words = words(program()?, &["serve", scenario.name()]);
        if let Some((cert, key)) = identity {
            for (flag, path) in [("--cert", cert), ("--key", key)] {
                words.extend([flag.into(), path.display().to_string()]);
            }
        }
        match &echo {
            Some(echo) => words.extend(["--target".into(), echo.address.to_string()]),
            None => {
                let script = format!("tr a-z A-Z; echo {DONE} >&2");
                words.extend(["--".into(), "sh".into(), "-c".into(), script]);
            }
        }
        let child = Child::start(&words, folder).map_err(|e| format!("{}: {e}", words[0]))?;
        let line = child.line_that(START_MS, |line| line.starts_with("listening "));
        let address: Option<SocketAddr> = line.and_then(|line| line.split(' ').nth(1)?.parse().ok());
        match address {
            Some(address) => Ok(Self { child, port: address.port(), _echo: echo }),
            None => Err(format!("the program does not listen: {}", child.complaints())),
        }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What it said on its standard error.
    pub fn complaints(&self) -> String {
        self.child.complaints()
    }
}

/// Gives back what it is sent: the far end of forwarded connections.
#[derive(Debug)]
struct Echo {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let (address, over) = (listener.local_addr()?, Arc::new(AtomicBool::new(false)));
        let told = over.clone();
        let thread = std::thread::Builder::new().name("echo".into()).spawn(move || {
            while let Ok((tcp, _)) = listener.accept() {
                if told.load(Ordering::SeqCst) {
                    return;
                }
                // Each ends with its connection, or when nothing comes for as long as a square may take.
                std::thread::spawn(move || {
                    let _ = tcp.set_read_timeout(Some(Duration::from_millis(CELL_MS)));
                    let _ = io::copy(&mut &tcp, &mut &tcp).and_then(|_| tcp.shutdown(Shutdown::Write));
                });
            }
        })?;
        Ok(Self { address, over, thread: Some(thread) })
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // A connection wakes it; should none be had, it stays until the program ends.
        if TcpStream::connect(self.address).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_gives_back_what_it_is_sent() {
        let echo = Echo::start().unwrap();
        assert_eq!(echoed(echo.address), Ok(()));
    }
}
