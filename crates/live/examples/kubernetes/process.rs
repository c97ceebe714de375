//! A command of the server's: a process on pipes, or on a terminal.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::rc::Rc;

use live::Reactor;
use mio::unix::SourceFd;
use pty_process::blocking::Pty;
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::channel::Size;

/// What a terminal takes for the end of input.
const END_OF_FILE: &[u8] = b"\x04";

/// Which of its streams are wanted, and on what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    pub stdin: bool,
    pub stdout: bool,
    pub stderr: bool,
    /// They are a terminal, whose output is `stdout`.
    pub tty: bool,
}

/// A command that runs, or has ended and not been reported.
pub struct Process {
    child: Child,
    /// Becomes ready when the child ends; kept for that.
    end: Option<OwnedFd>,
    status: Option<ExitStatus>,
    terminal: Option<Terminal>,
    pub stdin: Option<Box<dyn Write>>,
    pub stdout: Option<Box<dyn Read>>,
    pub stderr: Option<Box<dyn Read>>,
}

impl Process {
    /// Starts it; whatever happens to it makes `token` ready.
    pub fn start(command: &[String], wanted: Wanted, token: usize, reactor: &Reactor) -> io::Result<Self> {
        if wanted.tty {
            Self::on_terminal(command, wanted, token, reactor)
        } else {
            Self::on_pipes(command, wanted, token, reactor)
        }
    }

    fn on_pipes(command: &[String], wanted: Wanted, token: usize, reactor: &Reactor) -> io::Result<Self> {
        let piped = |wanted| if wanted { Stdio::piped() } else { Stdio::null() };
        // A group of its own, so that what it starts can be ended with it.
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .process_group(0)
            .stdin(piped(wanted.stdin))
            .stdout(piped(wanted.stdout))
            .stderr(piped(wanted.stderr))
            .spawn()?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut process = Self::of(child, token, reactor)?;
        for pipe in [
            stdin.as_ref().map(AsFd::as_fd),
            stdout.as_ref().map(AsFd::as_fd),
            stderr.as_ref().map(AsFd::as_fd),
        ] {
            let Some(pipe) = pipe else { continue };
            ioctl_fionbio(pipe, true)?;
            reactor.register(&mut SourceFd(&pipe.as_raw_fd()), token)?;
        }
        process.stdin = stdin.map(|pipe: ChildStdin| Box::new(pipe) as Box<dyn Write>);
        process.stdout = stdout.map(|pipe| Box::new(pipe) as Box<dyn Read>);
        process.stderr = stderr.map(|pipe| Box::new(pipe) as Box<dyn Read>);
        Ok(process)
    }

    fn on_terminal(command: &[String], wanted: Wanted, token: usize, reactor: &Reactor) -> io::Result<Self> {
        let (pty, pts) = pty_process::blocking::open().map_err(io::Error::other)?;
        ioctl_fionbio(&pty, true)?;
        reactor.register(&mut SourceFd(&pty.as_raw_fd()), token)?;
        // It leads a session, and so a group.
        let child = pty_process::blocking::Command::new(&command[0]).args(&command[1..]).spawn(pts);
        let terminal = Terminal(Rc::new(pty));
        let mut process = Self::of(child.map_err(io::Error::other)?, token, reactor)?;
        process.stdin = wanted.stdin.then(|| Box::new(terminal.clone()) as Box<dyn Write>);
        process.stdout = Some(Box::new(terminal.clone()));
        process.terminal = Some(terminal);
        Ok(process)
    }

    fn of(child: Child, token: usize, reactor: &Reactor) -> io::Result<Self> {
        let (end, status, terminal) = (None, None, None);
        let mut process = Self { child, end, status, terminal, stdin: None, stdout: None, stderr: None };
        // From here on an error ends the child, too.
        let end = pidfd_open(Pid::from_child(&process.child), PidfdFlags::NONBLOCK)?;
        reactor.register_readable(&mut SourceFd(&end.as_raw_fd()), token)?;
        process.end = Some(end);
        Ok(process)
    }

    /// Its input is over.
    pub fn end_stdin(&mut self) {
        if let (Some(mut stdin), Some(_)) = (self.stdin.take(), &self.terminal) {
            // A terminal so full that it takes no byte is not being read, either.
            let _ = stdin.write(END_OF_FILE);
        }
    }

    pub fn resize(&self, size: Size) {
        if let Some(terminal) = &self.terminal {
            // One that is gone has no size.
            let _ = terminal.0.resize(pty_process::Size::new(size.rows, size.columns));
        }
    }

    /// Its exit code, once it has ended and its outputs are read; 128 and the signal's number if one ended it, as shells
    /// have it.
    pub fn exit_code(&mut self) -> Option<u8> {
        if self.stdout.is_some() || self.stderr.is_some() {
            return None;
        }
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        let status = self.status?;
        Some(status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(255) as u8)
    }
}

/// What still runs when the client is gone ends.
impl Drop for Process {
    fn drop(&mut self) {
        if self.status.is_none() {
            // Until it is waited for, its id is nobody else's. If it has ended, this finds what it left behind.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// The near side of a terminal. Clones share it.
#[derive(Clone)]
struct Terminal(Rc<Pty>);

impl Read for Terminal {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match (&*self.0).read(buffer) {
            // Nobody has the far side open any more.
            Err(e) if e.raw_os_error() == Some(Errno::IO.raw_os_error()) => Ok(0),
            read => read,
        }
    }
}

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
