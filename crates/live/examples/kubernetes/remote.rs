//! The client's side of exec and attach, as kubectl's: `channel.k8s.io`.

use std::io::{self, Write};
use std::thread::JoinHandle;

use base::{Fields, Instant};
use bytes::Bytes;
use live::Reactor;
use live::streams::{Connection, Event, Handler};
use mio::unix::pipe;
use spdy::{Opening, Status, StreamId};

use crate::channel::{Kind, Size, Version};
use crate::pump::{Outlet, Poured, pour};
use crate::signals::Signals;
use crate::status::Outcome;

/// Bytes of the error stream that are kept; a status has some hundred.
const ERROR_MAX: usize = 64 * 1024;

/// Where an output of the remote command goes: a pipe, and who writes what it carries.
pub type Sink = (pipe::Sender, JoinHandle<io::Result<()>>);

/// What the remote command is joined to.
pub struct Ends {
    /// Its standard input, if it is to have one.
    pub stdin: Option<pipe::Receiver>,
    pub stdout: Sink,
    /// None with a terminal, which has one output.
    pub stderr: Option<Sink>,
    /// It has a terminal; gives the size of ours, if we have one.
    pub terminal: Option<fn() -> Option<Size>>,
}

/// One of the remote command's outputs.
struct Output {
    kind: Kind,
    id: Option<StreamId>,
    queue: Outlet,
    to: Option<pipe::Sender>,
    thread: JoinHandle<io::Result<()>>,
}

/// One command, somewhere else.
pub struct Remote {
    version: Version,
    stdin: Option<pipe::Receiver>,
    stdin_id: Option<StreamId>,
    /// Its stdout and stderr.
    outputs: Vec<Output>,
    terminal: Option<fn() -> Option<Size>>,
    resize_id: Option<StreamId>,
    error_id: Option<StreamId>,
    error: Vec<u8>,
    error_ended: bool,
    /// Streams that the server has not accepted.
    awaited: Vec<StreamId>,
    signals: Signals,
    outcome: Option<Outcome>,
}

impl Remote {
    /// A command that is left when `signals` say so.
    pub fn new(ends: Ends, signals: Signals) -> Self {
        let output = |kind, (to, thread): Sink| {
            let (id, queue) = (None, Outlet::default());
            Output { kind, id, queue, to: Some(to), thread }
        };
        let stderr = ends.stderr.map(|sink| output(Kind::Stderr, sink));
        Self {
            version: Version::V4,
            stdin: ends.stdin,
            stdin_id: None,
            outputs: [output(Kind::Stdout, ends.stdout)].into_iter().chain(stderr).collect(),
            terminal: ends.terminal,
            resize_id: None,
            error_id: None,
            error: Vec::new(),
            error_ended: false,
            awaited: Vec::new(),
            signals,
            outcome: None,
        }
    }

    /// Opens all streams. Nothing is sent before the server has accepted them all, as its command does not run before.
    fn open(&mut self, connection: &mut Connection, reactor: &Reactor) -> Result<(), String> {
        let mut open = |kind: Kind| {
            let mut fields = Fields::new();
            fields.push("streamtype", kind.name());
            let opened = connection.open(&fields, Opening::default());
            let id = opened.map_err(|e| format!("{}: {e}", kind.name()))?;
            self.awaited.push(id);
            Ok::<_, String>(Some(id))
        };
        self.error_id = open(Kind::Error)?;
        if self.stdin.is_some() {
            self.stdin_id = open(Kind::Stdin)?;
        }
        for output in &mut self.outputs {
            output.id = open(output.kind)?;
        }
        if self.terminal.is_some() && self.version.has_resize() {
            self.resize_id = open(Kind::Resize)?;
        }
        let token = connection.token();
        let mut registered = self.stdin.as_mut().map_or(Ok(()), |pipe| reactor.register(pipe, token));
        for pipe in self.outputs.iter_mut().filter_map(|output| output.to.as_mut()) {
            registered = registered.and_then(|()| reactor.register(pipe, token));
        }
        registered.map_err(|e| format!("pipes: {e}"))
    }

    fn fail(&mut self, why: String, connection: &mut Connection) {
        self.outcome.get_or_insert(Outcome::Failed(why));
        connection.close();
    }

    /// A stream brings no more.
    fn ended(&mut self, id: StreamId) {
        if self.error_id == Some(id) {
            self.error_ended = true;
        }
        if self.stdin_id == Some(id) {
            // The command wants no more.
            self.stdin = None;
        }
        if let Some(output) = self.outputs.iter_mut().find(|output| output.id == Some(id)) {
            output.queue.push(Bytes::new(), true);
        }
    }

    /// How the command ended, when all it said is written.
    pub fn finish(self) -> Outcome {
        let mut outcome =
            self.outcome.unwrap_or_else(|| Outcome::Failed("nothing is known of its end".into()));
        for output in self.outputs {
            if let Some(mut to) = output.to {
                let _ = to.set_nonblocking(false);
                // A reader that has left misses nothing that it wants.
                let _ = output.queue.into_rest().try_for_each(|bytes| to.write_all(&bytes));
            }
            match output.thread.join() {
                Ok(Err(e)) if e.kind() != io::ErrorKind::BrokenPipe => {
                    outcome = Outcome::Failed(format!("its output cannot be written: {e}"));
                }
                _ => {}
            }
        }
        outcome
    }

    fn pump_stdin(&mut self, connection: &mut Connection) -> bool {
        let (Some(id), Some(from)) = (self.stdin_id, &mut self.stdin) else { return false };
        let poured = pour(from, id, connection);
        let is_open = matches!(poured, Ok(Poured::Nothing | Poured::Some));
        if !is_open {
            self.stdin = None;
            // If the server has reset it, it knows.
            let _ = connection.send(id, Bytes::new(), true);
        }
        !is_open || matches!(poured, Ok(Poured::Some))
    }

    fn pump_outputs(&mut self, connection: &mut Connection) -> bool {
        let mut moved = false;
        for output in &mut self.outputs {
            let (Some(id), Some(to)) = (output.id, &mut output.to) else { continue };
            match output.queue.drain(id, to, connection) {
                Ok(drained) => moved |= drained,
                Err(_) => {
                    // Whoever read it has left, as `head` does.
                    output.queue.abandon(id, connection);
                    connection.reset(id, Status::CANCEL);
                    moved = true;
                }
            }
            if output.queue.is_over() {
                output.to = None;
            }
        }
        moved
    }

    /// Tells the size of our terminal.
    fn resize(&self, connection: &mut Connection) {
        let (Some(id), Some(size)) = (self.resize_id, self.terminal.and_then(|size| size())) else { return };
        // A server that takes none does without.
        let _ = connection.send(id, size.emit().into(), false);
    }
}

impl Handler for Remote {
    fn event(&mut self, event: Event, connection: &mut Connection, reactor: &Reactor) {
        match event {
            Event::Granted { protocol, .. } => {
                // Who names none has the first.
                let name = protocol.unwrap_or_else(|| Version::V1.name().into());
                match Version::named(&name) {
                    Some(version) => {
                        self.version = version;
                        if let Err(why) = self.open(connection, reactor) {
                            self.fail(why, connection);
                        }
                    }
                    None => self.fail(format!("the server speaks {name}, which was not offered"), connection),
                }
            }
            Event::Accepted { id, fin, .. } => {
                self.awaited.retain(|awaited| *awaited != id);
                if fin {
                    self.ended(id);
                }
                if self.awaited.is_empty() {
                    self.resize(connection);
                }
            }
            Event::Opened { id, .. } => connection.reset(id, Status::REFUSED_STREAM),
            Event::Data { id, bytes, fin } => {
                let output = self.outputs.iter_mut().find(|output| output.id == Some(id));
                match output.filter(|output| output.to.is_some()) {
                    Some(output) => output.queue.push(bytes, false),
                    None => {
                        connection.consume(id, bytes.len());
                        if self.error_id == Some(id) && self.error.len() + bytes.len() <= ERROR_MAX {
                            self.error.extend_from_slice(&bytes);
                        }
                    }
                }
                if fin {
                    self.ended(id);
                }
            }
            Event::Headers { id, fin: true, .. } => self.ended(id),
            Event::Reset { id, .. } if self.awaited.contains(&id) => {
                self.fail("the server refused a stream".into(), connection);
            }
            Event::Reset { id, .. } => self.ended(id),
            // The order in which Go takes its streams down leaves nothing to wait for behind this.
            Event::Closed(end) => {
                let said = self.error_ended || !self.error.is_empty();
                self.outcome.get_or_insert_with(|| match end {
                    _ if said => Outcome::parse(&self.error, self.version),
                    Ok(()) => {
                        Outcome::Failed("the server closed before it told how the command ended".into())
                    }
                    Err(e) => Outcome::Failed(e.to_string()),
                });
            }
            _ => {}
        }
    }

    fn pump(&mut self, connection: &mut Connection, _: &Reactor) -> bool {
        if self.outcome.is_some() {
            return false;
        }
        if self.signals.stop() {
            self.fail("interrupted; the command may go on".into(), connection);
            return true;
        }
        let is_resized = self.signals.take_resized();
        if !self.awaited.is_empty() || self.error_id.is_none() {
            return false;
        }
        if is_resized {
            self.resize(connection);
        }
        let moved = is_resized | self.pump_stdin(connection) | self.pump_outputs(connection);
        if self.error_ended && self.outputs.iter().all(|output| output.to.is_none()) {
            self.outcome = Some(Outcome::parse(&self.error, self.version));
            connection.close();
            return true;
        }
        moved
    }

    fn poll_timeout(&self) -> Option<Instant> {
        // Once interrupted, the rest is the connection's.
        (self.outcome.is_none() && self.signals.are_pending()).then_some(Instant::ZERO)
    }
}
