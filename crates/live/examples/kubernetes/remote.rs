//! The client's side of exec and attach, as kubectl's.

use std::io::{self, Write};
use std::thread::JoinHandle;

use base::Fields;
use live::Reactor;
use live::streams::{Connection, Event, Handler};
use mio::unix::pipe;
use spdy::{Opening, Status, StreamId};

use crate::exec::PROTOCOL;
use crate::pump::{Outlet, Poured, pour};
use crate::status::Outcome;

/// Bytes of the error stream that are kept; a status has some hundred.
const ERROR_MAX: usize = 64 * 1024;

/// Where an output of the remote command goes.
pub type Sink = (pipe::Sender, JoinHandle<io::Result<()>>);

/// One of the remote command's outputs.
struct Output {
    id: Option<StreamId>,
    queue: Outlet,
    to: Option<pipe::Sender>,
    thread: JoinHandle<io::Result<()>>,
}

/// One command, somewhere else.
pub struct Remote {
    stdin: Option<pipe::Receiver>,
    stdin_id: Option<StreamId>,
    /// Its stdout and stderr.
    outputs: Vec<Output>,
    error_id: Option<StreamId>,
    error: Vec<u8>,
    error_ended: bool,
    /// Streams that the server has not accepted.
    awaited: Vec<StreamId>,
    outcome: Option<Outcome>,
}

impl Remote {
    /// A command with these for its standard input, if it is to have one, and its outputs.
    pub fn new(stdin: Option<pipe::Receiver>, stdout: Sink, stderr: Sink) -> Self {
        let output = |(to, thread): Sink| Output { id: None, queue: Outlet::default(), to: Some(to), thread };
        Self {
            stdin,
            stdin_id: None,
            outputs: vec![output(stdout), output(stderr)],
            error_id: None,
            error: Vec::new(),
            error_ended: false,
            awaited: Vec::new(),
            outcome: None,
        }
    }

    /// Opens all streams. Nothing is sent before the server has accepted them all, as its command does not run before.
    fn open(&mut self, connection: &mut Connection, reactor: &Reactor) -> Result<(), String> {
        let mut open = |name: &'static str| {
            let mut fields = Fields::new();
            fields.push("streamtype", name);
            let id = connection.open(&fields, Opening::default()).map_err(|e| format!("{name}: {e}"))?;
            self.awaited.push(id);
            Ok::<_, String>(Some(id))
        };
        self.error_id = open("error")?;
        if self.stdin.is_some() {
            self.stdin_id = open("stdin")?;
        }
        for (output, name) in self.outputs.iter_mut().zip(["stdout", "stderr"]) {
            output.id = open(name)?;
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
            output.queue.push(bytes::Bytes::new(), true);
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
}

impl Handler for Remote {
    fn event(&mut self, event: Event, connection: &mut Connection, reactor: &Reactor) {
        match event {
            Event::Granted { protocol, .. } => match protocol.as_deref() {
                Some(PROTOCOL) => {
                    if let Err(why) = self.open(connection, reactor) {
                        self.fail(why, connection);
                    }
                }
                other => {
                    let other = other.unwrap_or("no protocol that it names");
                    self.fail(format!("the server speaks {other}, not {PROTOCOL}"), connection);
                }
            },
            Event::Accepted { id, fin, .. } => {
                self.awaited.retain(|awaited| *awaited != id);
                if fin {
                    self.ended(id);
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
                    _ if said => Outcome::parse(&self.error),
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
        if !self.awaited.is_empty() || self.error_id.is_none() || self.outcome.is_some() {
            return false;
        }
        let mut moved = false;
        if let (Some(id), Some(from)) = (self.stdin_id, &mut self.stdin) {
            let poured = pour(from, id, connection);
            moved |= poured.as_ref().is_ok_and(|poured| *poured != Poured::Nothing);
            if !matches!(poured, Ok(Poured::Nothing | Poured::Some)) {
                self.stdin = None;
                // If the server has reset it, it knows.
                let _ = connection.send(id, bytes::Bytes::new(), true);
            }
        }
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
        if self.error_ended && self.outputs.iter().all(|output| output.to.is_none()) {
            self.outcome = Some(Outcome::parse(&self.error));
            connection.close();
            moved = true;
        }
        moved
    }
}
