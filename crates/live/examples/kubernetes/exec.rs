//! The server's side of exec and attach, as the kubelet's: `channel.k8s.io`.
//!
//! The query says which of stdin, stdout and stderr are wanted; the client opens a stream for each, one for errors, and one for
//! its terminal's size if it has one. When they are there, the command runs. When it has ended and its outputs are read, the
//! error stream gets its [`Outcome`], and the connection is closed.

use std::rc::Rc;

use base::{Duration, Fields, Instant};
use bytes::Bytes;
use live::Reactor;
use live::streams::{ACCEPTED_PROTOCOLS, Connection, Event, Handler};
use spdy::{Status, StreamId};

use crate::channel::{Kind, Size, Version};
use crate::process::{Process, Wanted};
use crate::pump::{Outlet, Poured, pour};
use crate::status::Outcome;

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

/// One connection, and with it one command.
pub struct Exec {
    commands: Rc<Commands>,
    version: Version,
    command: Vec<String>,
    tty: bool,
    /// What the client is to open, and has.
    streams: Vec<(Kind, Option<StreamId>)>,
    /// Until when it must have.
    deadline: Option<Instant>,
    process: Option<Process>,
    /// For the process's input.
    stdin: Outlet,
    /// Of the resize stream, what is not whole yet; and the last that was.
    sizes: Vec<u8>,
    size: Option<Size>,
}

impl Exec {
    pub fn new(commands: Rc<Commands>) -> Self {
        Self {
            commands,
            version: Version::V4,
            command: Vec::new(),
            tty: false,
            streams: Vec::new(),
            deadline: None,
            process: None,
            stdin: Outlet::default(),
            sizes: Vec::new(),
            size: None,
        }
    }

    fn stream(&self, kind: Kind) -> Option<StreamId> {
        self.streams.iter().find(|(of, _)| *of == kind).and_then(|(_, id)| *id)
    }

    fn kind(&self, id: StreamId) -> Option<Kind> {
        self.streams.iter().find(|(_, of)| *of == Some(id)).map(|(kind, _)| *kind)
    }

    /// Reads the request; says why not.
    fn asked(&mut self, path: &[u8], protocols: &[String]) -> Result<(), (u16, String)> {
        let common = protocols.iter().find_map(|name| Version::named(name));
        self.version = common.ok_or_else(|| {
            let (offered, taken) = (protocols.join(", "), Version::ALL.map(Version::name).join(", "));
            (403, format!("no protocol in common: client offers [{offered}], server takes [{taken}]"))
        })?;
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
        // A terminal has one output.
        wanted.retain(|kind| *kind != if self.tty { Kind::Stderr } else { Kind::Resize });
        if !self.version.has_resize() {
            wanted.retain(|kind| *kind != Kind::Resize);
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
        if self.streams.iter().any(|(_, id)| id.is_none()) {
            return;
        }
        self.deadline = None;
        let is_wanted = |kind| self.stream(kind).is_some();
        let wanted = Wanted {
            stdin: is_wanted(Kind::Stdin),
            stdout: is_wanted(Kind::Stdout),
            stderr: is_wanted(Kind::Stderr),
            tty: self.tty && is_wanted(Kind::Stdout),
        };
        match Process::start(&self.command, wanted, connection.token(), reactor) {
            Ok(process) => self.process = Some(process),
            Err(e) => {
                let why = format!("error executing command in container: {}: {e}", self.command[0]);
                self.report(&Outcome::Failed(why), connection);
            }
        }
        self.resize();
    }

    fn resize(&mut self) {
        if let (Some(process), Some(size)) = (&self.process, self.size) {
            process.resize(size);
        }
    }

    /// Says how it ended, and leaves.
    fn report(&mut self, outcome: &Outcome, connection: &mut Connection) {
        for (kind, id) in &self.streams {
            let Some(id) = *id else { continue };
            let said =
                if *kind == Kind::Error { Bytes::from(outcome.emit(self.version)) } else { Bytes::new() };
            // A stream that the client has reset needs no end.
            let _ = connection.send(id, said, true);
        }
        connection.close();
    }

    /// A stream brings no more, and takes none.
    fn reset(&mut self, id: StreamId, connection: &mut Connection) {
        match (self.kind(id), &mut self.process) {
            (Some(Kind::Stdin), _) => self.stdin.push(Bytes::new(), true),
            // Nobody listens: the command gets SIGPIPE.
            (Some(Kind::Stdout), Some(process)) => process.stdout = None,
            (Some(Kind::Stderr), Some(process)) => process.stderr = None,
            (Some(Kind::Resize), _) | (None, _) => {}
            (Some(_), _) => connection.close(),
        }
    }

    /// Moves what can be moved from the client to the command.
    fn pump_input(&mut self, connection: &mut Connection) -> bool {
        let (Some(id), Some(process)) = (self.stream(Kind::Stdin), &mut self.process) else { return false };
        let Some(to) = &mut process.stdin else { return false };
        let drained = self.stdin.drain(id, to, connection);
        if drained.is_err() {
            // It reads no more.
            self.stdin.abandon(id, connection);
        }
        if self.stdin.is_over() {
            process.end_stdin();
        }
        drained.unwrap_or(true)
    }

    /// Moves what can be moved through one of the command's outputs.
    fn pump_output(&mut self, kind: Kind, connection: &mut Connection) -> bool {
        let (Some(id), Some(process)) = (self.stream(kind), &mut self.process) else { return false };
        let output = if kind == Kind::Stderr { &mut process.stderr } else { &mut process.stdout };
        let Some(from) = output else { return false };
        match pour(from, id, connection) {
            Ok(Poured::Nothing) => false,
            Ok(Poured::Some) => true,
            Ok(Poured::End) | Err(_) => {
                *output = None;
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
                        connection.grant(Some(self.version.name()))
                    }
                    Err((status, why)) => {
                        let mut fields = Fields::new();
                        fields.push("Content-Type", "text/plain; charset=utf-8");
                        for version in Version::ALL {
                            fields.push(ACCEPTED_PROTOCOLS, version.name());
                        }
                        connection.refuse(status, fields, format!("unable to upgrade: {why}\n").into())
                    }
                };
                // Otherwise its time is up, and there is nobody to tell.
                if answered.is_err() {
                    connection.close();
                }
            }
            Event::Opened { id, fields, .. } => self.opened(id, &fields, connection, reactor),
            Event::Data { id, bytes, fin } => match self.kind(id) {
                Some(Kind::Stdin) if self.process.as_ref().is_none_or(|process| process.stdin.is_some()) => {
                    self.stdin.push(bytes, fin);
                }
                Some(Kind::Resize) => {
                    self.sizes.extend_from_slice(&bytes);
                    connection.consume(id, bytes.len());
                    self.size = Size::take(&mut self.sizes).or(self.size);
                    self.resize();
                }
                _ => connection.consume(id, bytes.len()),
            },
            Event::Reset { id, .. } => self.reset(id, connection),
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
        let mut moved = self.pump_output(Kind::Stdout, connection);
        moved |= self.pump_output(Kind::Stderr, connection);
        moved |= self.pump_input(connection);
        let Some(code) = self.process.as_mut().and_then(Process::exit_code) else { return moved };
        self.process = None;
        self.report(&Outcome::Exit(code), connection);
        true
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }
}
