//! The run: which squares there are, who plays in each, and whether it went as it has to.
//!
//! A *lane* is all scenarios of one peer in one part, version and transport. Lanes run side by side, the squares of a lane
//! one after another. A peer that serves is started once a lane, and again after a square that did not go well; our own
//! server is a new one in each square, a client is in any case.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use live::{Clock, serve, tls};
use spdy::{FlowControl, Version};

use crate::child::Child;
use crate::client::{self, Report, Target};
use crate::contract::{CELL_MS, ENDLESS_MAX, Scenario, version_name};
use crate::peers::{Listed, Mapping, Peer, Peers, Place, Role, Transport};
use crate::site::{Running, Seen};
use crate::{example, kubernetes};

/// Milliseconds that a peer may take to start: a JVM on a busy machine.
const START_MS: u64 = 20_000;
/// Milliseconds that a peer may take to say that it saw a reset.
const CANCELLED_MS: u64 = 8_000;

/// How a square went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Well; what was achieved.
    Passed(String),
    /// Not well; why.
    Failed(String),
    /// The peer has no means for it, as it says itself.
    Cannot(String),
}

/// Whether it went as it has to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It did.
    Pass,
    /// It failed, for which no reason is listed.
    Fail,
    /// It failed for a listed reason, which is the peer's.
    Fault,
    /// The peer has no means for it.
    Cannot,
    /// A reason is listed for it to fail, and it did not.
    Stale,
}

impl Verdict {
    /// Whether the run may succeed with it.
    pub fn is_expected(self) -> bool {
        !matches!(self, Verdict::Fail | Verdict::Stale)
    }

    fn of(outcome: &Outcome, listed: Listed<'_>) -> Self {
        match (outcome, listed) {
            (Outcome::Passed(_), Listed::Nothing) => Verdict::Pass,
            (Outcome::Passed(_), _) => Verdict::Stale,
            (Outcome::Failed(_), Listed::Nothing) => Verdict::Fail,
            (Outcome::Failed(_), Listed::Fault(_)) => Verdict::Fault,
            (Outcome::Failed(_) | Outcome::Cannot(_), Listed::Cannot(_)) => Verdict::Cannot,
            // A square is not dropped for a word that nobody has looked at.
            (Outcome::Cannot(_), _) => Verdict::Fail,
        }
    }
}

/// A square of the matrix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cell<'p> {
    /// Which.
    pub place: Place<'p>,
    /// How it went.
    pub outcome: Outcome,
    /// What that is worth.
    pub verdict: Verdict,
    /// The listed reason, if there is one.
    pub listed: Option<&'p str>,
    /// What both ends saw last, if it did not go well: frames, complaints.
    pub evidence: Vec<String>,
    /// Milliseconds that it took.
    pub ms: u64,
}

/// What of the matrix is run.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Filter {
    /// This part.
    pub role: Option<Role>,
    /// This version.
    pub version: Option<Version>,
    /// This transport.
    pub transport: Option<Transport>,
    /// These scenarios; all if empty.
    pub scenarios: Vec<Scenario>,
}

/// Where things are, and whom to meet.
#[derive(Debug)]
pub struct Ground<'p> {
    /// The folder of `peers.toml`.
    pub folder: PathBuf,
    /// The list.
    pub peers: &'p Peers,
}

impl Ground<'_> {
    /// The certificate of every server.
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("target/cert.pem")
    }

    /// Its key.
    pub fn key(&self) -> PathBuf {
        self.folder.join("target/key.pem")
    }

    /// Makes both, unless they are there.
    ///
    /// # Errors
    /// If they cannot be made or written.
    pub fn make_certificate(&self) -> Result<(), String> {
        let (cert, key) = (self.certificate(), self.key());
        if tls::Identity::read(&cert, &key).is_ok() {
            return Ok(());
        }
        let identity = tls::Identity::self_signed(&["localhost".into(), "127.0.0.1".into()]);
        let pems = identity.and_then(|made| Ok((made.certificate_pem()?, made.key_pem()?)));
        let (certificate, secret) = pems.map_err(|e| e.to_string())?;
        std::fs::create_dir_all(self.folder.join("target")).map_err(|e| format!("interop/target: {e}"))?;
        for (path, pem) in [(&cert, certificate), (&key, secret)] {
            std::fs::write(path, pem).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        Ok(())
    }

    /// How our server shakes hands, for these protocols.
    ///
    /// # Errors
    /// If the certificate is not there or not sound.
    pub fn acceptor(&self, protocols: &[&str], offer: tls::Offer) -> Result<tls::Acceptor, String> {
        let identity = tls::Identity::read(&self.certificate(), &self.key()).map_err(|e| e.to_string())?;
        let common = tls::Common { offer, ..tls::Common::new(protocols.iter().copied()) };
        let config = tls::ServerConfig { common, identity, tickets: true, ocsp: None };
        tls::Acceptor::new(&config).map_err(|e| e.to_string())
    }
}

/// All squares of a peer in one part, version and transport.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Lane<'p> {
    peer: &'p Peer,
    role: Role,
    version: Version,
    transport: Transport,
    scenarios: Vec<Scenario>,
}

fn lanes<'p>(peers: &'p Peers, here: &[&'p Peer], filter: &Filter) -> VecDeque<Lane<'p>> {
    let wants_scenario = |s: &Scenario| filter.scenarios.is_empty() || filter.scenarios.contains(s);
    let mut lanes = VecDeque::new();
    for peer in here {
        let scenarios: Vec<_> = peers.scenarios(peer.mapping).into_iter().filter(wants_scenario).collect();
        for role in peer.roles.iter().copied().filter(|r| filter.role.is_none_or(|f| f == *r)) {
            for version in peer.versions().filter(|v| filter.version.is_none_or(|f| f == *v)) {
                for transport in &peer.transports {
                    if !scenarios.is_empty() && filter.transport.is_none_or(|f| f == *transport) {
                        let (transport, scenarios) = (*transport, scenarios.clone());
                        lanes.push_back(Lane { peer, role, version, transport, scenarios });
                    }
                }
            }
        }
    }
    lanes
}

/// How many squares there are.
pub fn squares(ground: &Ground<'_>, here: &[&Peer], filter: &Filter) -> usize {
    lanes(ground.peers, here, filter).iter().map(|lane| lane.scenarios.len()).sum()
}

/// Runs all squares of `here`, `abreast` lanes at a time, and tells `progress` of each when it is done. They come back in
/// the order of the matrix.
pub fn run<'p>(
    ground: &Ground<'p>,
    here: &[&'p Peer],
    filter: &Filter,
    abreast: usize,
    progress: &(impl Fn(&Cell<'p>) + Sync),
) -> Vec<Cell<'p>> {
    let queue =
        Mutex::new(lanes(ground.peers, here, filter).into_iter().enumerate().collect::<VecDeque<_>>());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..abreast.max(1) {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some((number, lane)) = next else { return };
                    let cells = run_lane(ground, &lane, progress);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((number, cells));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().flat_map(|(_, cells)| cells).collect()
}

fn run_lane<'p>(ground: &Ground<'p>, lane: &Lane<'p>, progress: &impl Fn(&Cell<'p>)) -> Vec<Cell<'p>> {
    let mut server = None;
    let mut cells = Vec::new();
    for scenario in lane.scenarios.iter().copied() {
        let Lane { role, version, transport, peer, .. } = *lane;
        let place = Place { peer: &peer.name, role, version, transport, scenario };
        let clock = Clock::start();
        let (outcome, evidence) = match role {
            Role::Server => {
                let went = ask(ground, lane, scenario, &mut server);
                if !matches!(went.0, Outcome::Passed(_)) {
                    server = None;
                }
                went
            }
            Role::Client => be_asked(ground, lane, scenario),
        };
        let listed = ground.peers.listed(place);
        let verdict = Verdict::of(&outcome, listed);
        let listed = match listed {
            Listed::Nothing => None,
            Listed::Cannot(reason) | Listed::Fault(reason) => Some(reason),
        };
        let ms = clock.now().as_nanos() / 1_000_000;
        let cell = Cell { place, outcome, verdict, listed, evidence, ms };
        progress(&cell);
        cells.push(cell);
    }
    cells
}

/// What a peer needs of us that is not our default.
pub fn session_for(peer: &str) -> fn(Version) -> spdy::Config {
    match peer {
        // It never sends a WINDOW_UPDATE, and heeds none.
        "spdystream" => {
            |version| spdy::Config { flow_control: FlowControl::None, ..spdy::Config::new(version) }
        }
        _ => spdy::Config::new,
    }
}

/// A peer that serves.
struct Serving {
    child: Child,
    port: u16,
}

fn words(ground: &Ground<'_>, lane: &Lane<'_>, verb: &str) -> Vec<String> {
    let mut words = lane.peer.command.clone();
    words.extend([verb, "--version", version_name(lane.version)].map(String::from));
    if lane.transport == Transport::Tls {
        words.push("--tls".into());
        if lane.role == Role::Server {
            for (flag, path) in [("--cert", ground.certificate()), ("--key", ground.key())] {
                words.extend([flag.into(), path.display().to_string()]);
            }
        }
    }
    words
}

fn start(ground: &Ground<'_>, lane: &Lane<'_>) -> Result<Serving, String> {
    let words = words(ground, lane, "serve");
    let child = Child::start(&words, &ground.folder).map_err(|e| format!("{}: {e}", words[0]))?;
    let line = child.line_that(START_MS, |line| line.starts_with("listening "));
    let port = line.as_deref().and_then(|line| line.split(' ').nth(1)).and_then(|port| port.parse().ok());
    match port {
        Some(port) => Ok(Serving { child, port }),
        None => Err(format!("the server did not start: {}", child.complaints())),
    }
}

/// Our client asks the peer's server.
fn ask(
    ground: &Ground<'_>,
    lane: &Lane<'_>,
    scenario: Scenario,
    server: &mut Option<Serving>,
) -> (Outcome, Vec<String>) {
    if server.is_none() {
        match start(ground, lane) {
            Ok(started) => *server = Some(started),
            Err(why) => return (Outcome::Failed(why), Vec::new()),
        }
    }
    let Some(server) = server else { unreachable!("it was started") };
    let target = Target {
        port: server.port,
        version: lane.version,
        tls: lane.transport == Transport::Tls,
        spdy: session_for(&lane.peer.name),
    };
    let (mapping, folder) = (lane.peer.mapping, ground.folder.clone());
    let Report { mut result, frames } = bounded(move || match (mapping, scenario) {
        (Mapping::Http, _) => client::run(target, scenario),
        (Mapping::Kubernetes, Scenario::Exec | Scenario::PortForward) => {
            Report { result: example::ask(target, scenario, &folder), frames: Vec::new() }
        }
        (Mapping::Kubernetes, _) => kubernetes::ask(target, scenario),
    });
    if result.is_ok() && scenario == Scenario::Cancel {
        let heard = server.child.line_that(CANCELLED_MS, |line| line == "cancelled");
        result = result.and_then(|ok| heard.map(|_| ok).ok_or("the server saw no reset".into()));
    }
    match result {
        Ok(ok) => (Outcome::Passed(ok), Vec::new()),
        Err(why) => {
            let complaints = server.child.complaints();
            let evidence = frames.into_iter().chain((!complaints.is_empty()).then_some(complaints));
            (Outcome::Failed(why), evidence.collect())
        }
    }
}

/// Runs what might hang in a thread of its own, and leaves it there if it does.
fn bounded(run: impl FnOnce() -> Report + Send + 'static) -> Report {
    let (say, report) = channel();
    let started = std::thread::Builder::new().spawn(move || say.send(run()));
    let failed = |why: String| Report { result: Err(why), frames: Vec::new() };
    if let Err(e) = started {
        return failed(format!("no thread: {e}"));
    }
    report
        .recv_timeout(Duration::from_millis(CELL_MS))
        .unwrap_or_else(|e| failed(format!("no end within {} s ({e})", CELL_MS / 1000)))
}

/// One of our servers.
enum Ours {
    Http(Running),
    Kubernetes(kubernetes::Running),
    Example(example::Serving),
}

impl Ours {
    fn start(ground: &Ground<'_>, lane: &Lane<'_>, scenario: Scenario) -> Result<Self, String> {
        let secure = lane.transport == Transport::Tls;
        if let Scenario::Exec | Scenario::PortForward = scenario {
            let (cert, key) = (ground.certificate(), ground.key());
            let identity = secure.then_some((&*cert, &*key));
            return example::Serving::start(scenario, identity, &ground.folder).map(Self::Example);
        }
        let protocol = match lane.peer.mapping {
            Mapping::Http => lane.version.protocol_id(),
            Mapping::Kubernetes => "http/1.1",
        };
        let tls = secure.then(|| ground.acceptor(&[protocol], tls::Offer::Alpn)).transpose()?;
        let started = match lane.peer.mapping {
            Mapping::Http => {
                let config =
                    serve::Config { tls, spdy: session_for(&lane.peer.name).into(), ..Default::default() };
                Running::start(lane.version, config).map(Self::Http)
            }
            Mapping::Kubernetes => kubernetes::Running::start(tls).map(Self::Kubernetes),
        };
        started.map_err(|e| format!("our server: {e}"))
    }

    fn port(&self) -> u16 {
        match self {
            Ours::Http(server) => server.port(),
            Ours::Kubernetes(server) => server.port(),
            Ours::Example(server) => server.port(),
        }
    }

    fn stop(self) -> Seen {
        match self {
            Ours::Http(server) => server.stop(),
            Ours::Kubernetes(server) => server.stop(),
            Ours::Example(server) => {
                let closed = Some(server.complaints()).filter(|said| !said.is_empty()).into_iter().collect();
                Seen { closed, ..Seen::default() }
            }
        }
    }
}

/// The peer's client asks our server.
fn be_asked(ground: &Ground<'_>, lane: &Lane<'_>, scenario: Scenario) -> (Outcome, Vec<String>) {
    let server = match Ours::start(ground, lane, scenario) {
        Ok(server) => server,
        Err(why) => return (Outcome::Failed(why), Vec::new()),
    };
    let mut words = words(ground, lane, "fetch");
    words.extend(["--port".into(), server.port().to_string(), scenario.name().into()]);
    let child = match Child::start(&words, &ground.folder) {
        Ok(child) => child,
        Err(e) => return (Outcome::Failed(format!("{}: {e}", words[0])), Vec::new()),
    };
    let mut outcome = verdict_of(&child, START_MS + CELL_MS);
    let complaints = child.complaints();
    drop(child);
    let seen = server.stop();
    if let Outcome::Passed(_) = outcome
        && let Some(fault) = objection(&seen, scenario)
    {
        outcome = Outcome::Failed(fault);
    }
    let mut evidence = Vec::new();
    if let Outcome::Failed(_) = outcome {
        evidence.extend((!complaints.is_empty()).then_some(complaints));
        evidence.extend(seen.faults.iter().chain(&seen.closed).map(|what| format!("our server: {what}")));
    }
    (outcome, evidence)
}

/// What a client says of its scenario, in words and by its exit code.
fn verdict_of(child: &Child, ms: u64) -> Outcome {
    let says = |line: &str| ["ok ", "fail ", "cannot "].iter().any(|word| line.starts_with(word));
    let line = child.line_that(ms, says);
    let code = child.wait(CANCELLED_MS).and_then(|status| status.code());
    let (word, detail) = line.as_deref().and_then(|line| line.split_once(' ')).unwrap_or(("nothing", ""));
    match (word, code) {
        ("ok", Some(0)) => Outcome::Passed(detail.into()),
        ("fail", Some(1)) => Outcome::Failed(detail.into()),
        ("cannot", Some(3)) => Outcome::Cannot(detail.into()),
        _ => Outcome::Failed(format!("the client said {word} and ended with {code:?}")),
    }
}

/// What the server has against a scenario with which its client is content.
fn objection(seen: &Seen, scenario: Scenario) -> Option<String> {
    if let Some(fault) = seen.faults.first() {
        return Some(fault.clone());
    }
    match (scenario, seen.endless) {
        (Scenario::Cancel, 0) => Some("nothing of the cancelled response was asked for".into()),
        (Scenario::Cancel, ENDLESS_MAX..) => Some("the cancelled response was sent to its end".into()),
        _ => None,
    }
}

/// Whether a program is there: a path from `folder`, or a name to be found in `PATH`.
pub fn is_there(program: &str, folder: &Path) -> bool {
    if program.contains('/') {
        return folder.join(program).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_needs_a_reason_for_each_failure_and_a_failure_for_each_reason() {
        let [passed, failed, cannot] =
            [Outcome::Passed, Outcome::Failed, Outcome::Cannot].map(|outcome| outcome(String::new()));
        let rows = [
            (&passed, Listed::Nothing, Verdict::Pass),
            (&passed, Listed::Fault("x"), Verdict::Stale),
            (&passed, Listed::Cannot("x"), Verdict::Stale),
            (&failed, Listed::Nothing, Verdict::Fail),
            (&failed, Listed::Fault("x"), Verdict::Fault),
            (&failed, Listed::Cannot("x"), Verdict::Cannot),
            (&cannot, Listed::Nothing, Verdict::Fail),
            (&cannot, Listed::Fault("x"), Verdict::Fail),
            (&cannot, Listed::Cannot("x"), Verdict::Cannot),
        ];
        for (outcome, listed, verdict) in rows {
            assert_eq!(Verdict::of(outcome, listed), verdict, "{outcome:?} {listed:?}");
        }
    }

    #[test]
    fn a_clients_word_counts_only_with_its_exit_code() {
        let says = |script: &str| {
            let child = Child::start(&["sh", "-c", script].map(String::from), Path::new(".")).unwrap();
            verdict_of(&child, 10_000)
        };
        assert_eq!(says("echo noise; echo ok 12 bytes"), Outcome::Passed("12 bytes".into()));
        assert_eq!(says("echo fail stall; exit 1"), Outcome::Failed("stall".into()));
        assert_eq!(says("echo cannot push; exit 3"), Outcome::Cannot("push".into()));
        assert!(matches!(says("echo ok 12 bytes; exit 1"), Outcome::Failed(_)));
        assert!(matches!(says("exit 0"), Outcome::Failed(_)));
    }
}
