//! The server's side of exec and attach, as the kubelet's: `v4.channel.k8s.io`.
//!
//! The query says which of stdin, stdout and stderr are wanted; the client opens a stream for each, and one for errors. When
//! they are there, the command runs, on pipes. When it has ended and its pipes are read out, the error stream gets its
//! [`Outcome`], and the connection is closed.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;

use base::{Duration, Fields, Instant};
use bytes::Bytes;
use live::Reactor;
use live::streams::{ACCEPTED_PROTOCOLS, Connection, Event, Handler};
use mio::unix::{SourceFd, pipe};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use spdy::{Status, StreamId};

use crate::pump::{Outlet, Poured, pour};
use crate::status::Outcome;

/// The protocol spoken above SPDY.
pub const PROTOCOL: &str = "v4.channel.k8s.io";

/// How long a client may take to open all streams: the kubelet's DefaultStreamCreationTimeout.
const STREAMS_TIMEOUT: Duration = Duration::from_secs(30);

/// Which command runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Commands {
    /// This one, whatever the client asks for.
    Fixed(Vec<String>),
    /// What the client asks for.
    Any,
}

/// The streams of one command, by `streamtype`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Error,
    Stdin,
    Stdout,
    Stderr,
    Resize,
}

impl Kind {
    fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"error" => Kind::Error,
            b"stdin" => Kind::Stdin,
            b"stdout" => Kind::Stdout,
            b"stderr" => Kind::Stderr,
            b"resize" => Kind::Resize,
            _ => return None,
        })
    }
}

/// One connection, and with it one command.
pub struct Exec {
    commands: Rc<Commands>,
    command: Vec<String>,
    tty: bool,
    /// What the client is to open, and has.
    streams: Vec<(Kind, Option<StreamId>)>,
    /// Until when it must have.
    deadline: Option<Instant>,
    running: Option<Running>,
}

/// A command that runs, or has ended and not been reported.
struct Running {
    child: Child,
    /// Becomes ready when the child ends; kept for that.
    end: Option<OwnedFd>,
    status: Option<ExitStatus>,
    stdin: Option<pipe::Sender>,
    stdin_queue: Outlet,
    stdout: Option<pipe::Receiver>,
    stderr: Option<pipe::Receiver>,
}

impl Exec {
    pub fn new(commands: Rc<Commands>) -> Self {
        Self { commands, command: Vec::new(), tty: false, streams: Vec::new(), deadline: None, running: None }
    }

    fn stream(&self, kind: Kind) -> Option<StreamId> {
        self.streams.iter().find(|(of, _)| *of == kind).and_then(|(_, id)| *id)
    }

    fn kind(&self, id: StreamId) -> Option<Kind> {
        self.streams.iter().find(|(_, of)| *of == Some(id)).map(|(kind, _)| *kind)
    }

    /// Reads the request; says why not.
    fn asked(&mut self, path: &[u8], protocols: &[String]) -> Result<(), (u16, String)> {
        if !protocols.iter().any(|p| p == PROTOCOL) {
            let offered = protocols.join(", ");
            return Err((
                403,
                format!("no protocol in common: client offers [{offered}], server takes {PROTOCOL}"),
            ));
        }
        let query = path.iter().position(|b| *b == b'?').map_or(&b""[..], |at| &path[at + 1..]);
        let mut wanted = vec![Kind::Error];
        let mut command = Vec::new();
        for (name, value) in url::form_urlencoded::parse(query) {
            let is_set = matches!(&*value, "1" | "true");
            // The API server's names, and the kubelet's.
            let kind = match &*name {
                "command" => {
                    command.push(value.into_owned());
                    continue;
                }
                "stdin" | "input" if is_set => Kind::Stdin,
                "stdout" | "output" if is_set => Kind::Stdout,
                "stderr" | "error" if is_set => Kind::Stderr,
                "tty" if is_set => Kind::Resize,
                _ => continue,
            };
            if !wanted.contains(&kind) {
                wanted.push(kind);
            }
        }
        self.tty = wanted.contains(&Kind::Resize);
        if self.tty {
            // A terminal has one output.
            wanted.retain(|kind| *kind != Kind::Stderr);
        }
        if !wanted.iter().any(|kind| matches!(kind, Kind::Stdin | Kind::Stdout | Kind::Stderr)) {
            return Err((400, "you must specify at least 1 of stdin, stdout, stderr".into()));
        }
        self.command = match &*self.commands {
            Commands::Fixed(command) => command.clone(),
            Commands::Any => command,
        };
        if self.command.is_empty() {
            return Err((400, "you must specify at least 1 command for the container".into()));
        }
        self.streams = wanted.into_iter().map(|kind| (kind, None)).collect();
        Ok(())
    }

    fn opened(&mut self, id: StreamId, fields: &Fields, connection: &mut Connection, reactor: &Reactor) {
        let kind = fields.get("streamtype").and_then(|name| Kind::named(name));
        let place = self.streams.iter_mut().find(|(of, taken)| Some(*of) == kind && taken.is_none());
        let Some((_, place)) = place else { return connection.reset(id, Status::REFUSED_STREAM) };
        if connection.accept(id, &Fields::new(), false).is_err() {
            // It opened the stream in one direction only.
            return connection.reset(id, Status::PROTOCOL_ERROR);
        }
        *place = Some(id);
        if self.streams.iter().all(|(_, id)| id.is_some()) {
            self.deadline = None;
            match self.run(connection.token(), reactor) {
                Ok(running) => self.running = Some(running),
                Err(e) => {
                    let why = format!("error executing command in container: {}: {e}", self.command[0]);
                    self.report(&Outcome::Failed(why), connection);
                }
            }
        }
    }

    fn run(&self, token: usize, reactor: &Reactor) -> io::Result<Running> {
        let piped = |kind| if self.stream(kind).is_some() { Stdio::piped() } else { Stdio::null() };
        let mut command = Command::new(&self.command[0]);
        // A group of its own, so that what it starts can be ended with it.
        command.args(&self.command[1..]).process_group(0);
        command.stdin(piped(Kind::Stdin)).stdout(piped(Kind::Stdout)).stderr(piped(Kind::Stderr));
        let mut terminal = None;
        if self.tty && self.stream(Kind::Stdout).is_some() {
            let (read, write) = io::pipe()?;
            command.stdout(write.try_clone()?).stderr(write);
            terminal = Some(pipe::Receiver::from(OwnedFd::from(read)));
        }
        let mut child = command.spawn()?;
        // The writing ends that it holds would keep the output open.
        drop(command);
        let mut running = Running {
            stdin: child.stdin.take().map(pipe::Sender::from),
            stdin_queue: Outlet::default(),
            stdout: terminal.or(child.stdout.take().map(pipe::Receiver::from)),
            stderr: child.stderr.take().map(pipe::Receiver::from),
            child,
            end: None,
            status: None,
        };
        let end = pidfd_open(Pid::from_child(&running.child), PidfdFlags::NONBLOCK)?;
        reactor.register_readable(&mut SourceFd(&end.as_raw_fd()), token)?;
        running.end = Some(end);
        if let Some(pipe) = &mut running.stdin {
            pipe.set_nonblocking(true)?;
            reactor.register(pipe, token)?;
        }
        for pipe in [&mut running.stdout, &mut running.stderr].into_iter().flatten() {
            pipe.set_nonblocking(true)?;
            reactor.register(pipe, token)?;
        }
        Ok(running)
    }

    /// Says how it ended, and leaves.
    fn report(&mut self, outcome: &Outcome, connection: &mut Connection) {
        for (kind, id) in &self.streams {
            let Some(id) = *id else { continue };
            let said = if *kind == Kind::Error { Bytes::from(outcome.emit()) } else { Bytes::new() };
            // A stream that the client has reset needs no end.
            let _ = connection.send(id, said, true);
        }
        connection.close();
    }

    /// Moves what can be moved through one of the command's outputs.
    fn pump_output(
        id: Option<StreamId>,
        pipe: &mut Option<pipe::Receiver>,
        connection: &mut Connection,
    ) -> bool {
        let (Some(id), Some(from)) = (id, pipe.as_mut()) else { return false };
        match pour(from, id, connection) {
            Ok(Poured::Nothing) => false,
            Ok(Poured::Some) => true,
            Ok(Poured::End) | Err(_) => {
                *pipe = None;
                true
            }
        }
    }
}

impl Handler for Exec {
    fn event(&mut self, event: Event, connection: &mut Connection, reactor: &Reactor) {
        match event {
            Event::Asked { head, protocols } => {
                let answered = match self.asked(&head.path, &protocols) {
                    Ok(()) => {
                        self.deadline = Some(reactor.now() + STREAMS_TIMEOUT);
                        connection.grant(Some(PROTOCOL))
                    }
                    Err((status, why)) => {
                        let mut fields = Fields::new();
                        fields.push("Content-Type", "text/plain; charset=utf-8");
                        fields.push(ACCEPTED_PROTOCOLS, PROTOCOL);
                        connection.refuse(status, fields, format!("unable to upgrade: {why}\n").into())
                    }
                };
                debug_assert_eq!(answered, Ok(()), "a request waits for its answer");
            }
            Event::Opened { id, fields, .. } => self.opened(id, &fields, connection, reactor),
            Event::Data { id, bytes, fin } => match (self.kind(id), &mut self.running) {
                (Some(Kind::Stdin), Some(running)) if running.stdin.is_some() => {
                    running.stdin_queue.push(bytes, fin);
                }
                (Some(Kind::Resize), _) => {
                    eprintln!("resized: {}", String::from_utf8_lossy(&bytes).trim());
                    connection.consume(id, bytes.len());
                }
                _ => connection.consume(id, bytes.len()),
            },
            Event::Reset { id, .. } => match (self.kind(id), &mut self.running) {
                (Some(Kind::Stdin), Some(running)) => running.stdin_queue.push(Bytes::new(), true),
                // Nobody listens: the command gets SIGPIPE.
                (Some(Kind::Stdout), Some(running)) => running.stdout = None,
                (Some(Kind::Stderr), Some(running)) => running.stderr = None,
                (Some(_), _) => connection.close(),
                (None, _) => {}
            },
            Event::GoingAway { .. } => connection.close(),
            Event::Closed(Err(e)) => eprintln!("{e}"),
            _ => {}
        }
    }

    fn pump(&mut self, connection: &mut Connection, reactor: &Reactor) -> bool {
        if self.deadline.is_some_and(|at| at <= reactor.now()) {
            eprintln!("timed out waiting for client to create streams");
            self.deadline = None;
            connection.close();
            return true;
        }
        let ids = [Kind::Stdin, Kind::Stdout, Kind::Stderr].map(|kind| self.stream(kind));
        let Some(running) = &mut self.running else { return false };
        let mut moved = Self::pump_output(ids[1], &mut running.stdout, connection);
        moved |= Self::pump_output(ids[2], &mut running.stderr, connection);
        if let (Some(id), Some(to)) = (ids[0], &mut running.stdin) {
            let drained = running.stdin_queue.drain(id, to, connection);
            moved |= drained.as_ref().is_ok_and(|moved| *moved);
            if drained.is_err() {
                running.stdin_queue.abandon(id, connection);
            }
            if running.stdin_queue.is_over() {
                running.stdin = None;
            }
        }
        if running.stdout.is_some() || running.stderr.is_some() || running.status.is_some() {
            return moved;
        }
        running.status = running.child.try_wait().ok().flatten();
        let Some(status) = running.status else { return moved };
        // As shells have it: 128 and the signal's number.
        let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(255);
        self.report(&Outcome::Exit(code as u8), connection);
        true
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }
}

/// What still runs when the client is gone ends.
impl Drop for Running {
    fn drop(&mut self) {
        if self.status.is_none() {
            // Until it is waited for, its id is nobody else's. If it has ended, this finds what it left behind.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}
