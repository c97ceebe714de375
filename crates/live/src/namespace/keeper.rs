//! Programs at both ends, as children of an init of their own.
//!
//! ```text
//! this process ── keeper ── init (process 1 of a new process namespace) ── the programs
//! ```
//!
//! Each dies with the one to its left: the kernel kills keeper and init when their parent is gone (`PR_SET_PDEATHSIG`), and with
//! an init all of its namespace. The keeper is there because the kernel puts the *children* of whoever makes a process namespace
//! into it, and because making one forbids a process to start threads, which this one will.
//!
//! Both are copies of this process (fork), made while it has one thread, and so need no program file. They are told what to do,
//! and tell what happened, over a socket; once that is closed at the other end they leave.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{self, SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::set_parent_process_death_signal;
use rustix::thread::{CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities};

use super::{Error, Net, Privilege, mounts, sys};

/// What is to run.
#[derive(Clone, Debug, Default)]
pub struct Inside {
    /// The command at the near end: a program and its arguments.
    pub command: Vec<OsString>,
    /// Commands at the far end, each for `/bin/sh`. They read nothing, and what they print is printed to standard error.
    pub far: Vec<String>,
    /// Files that are to read differently for all of them: path and text. One that does not exist outside does not inside.
    pub files: Vec<(&'static str, String)>,
    /// Variables in the environment of all of them.
    pub variables: Vec<(&'static str, String)>,
    /// A variable that only `command` has.
    pub near_variable: (&'static str, String),
}

/// What init can be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Start the commands at the far end.
    Far,
    /// Start the command at the near end. There is no far end after that.
    Near,
    /// Send the command this signal.
    Signal(i32),
}

/// What init tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Report {
    /// The command has started.
    Started,
    /// A command cannot be run; if it was the near one, all ends with this exit code, the shell's: 127 if it was not found, else 126.
    NotRun {
        /// Why, in one line.
        why: String,
        /// The exit code.
        code: u8,
    },
    /// A far command, counted from 0, has ended; the others go on.
    FarEnded {
        /// Which.
        index: usize,
        /// Its exit code, or 128 and the number of the signal that ended it.
        code: u8,
    },
    /// The command has ended, and all that it or the far end has left running with it.
    Ended {
        /// Its exit code, or 128 and the number of the signal that ended it.
        code: u8,
    },
}

/// The process between this one and init.
#[derive(Debug)]
pub struct Keeper {
    pid: i32,
    socket: Socket,
}

/// One end of a pair that carries messages, each whole, and tells when the other end is gone.
#[derive(Debug)]
struct Socket(OwnedFd);

/// Longer messages are cut.
const MESSAGE: usize = 4_096;

impl Socket {
    fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self(a), Self(b)))
    }

    /// Sends a message. If the other end is gone, nobody hears.
    fn tell(&self, message: &impl fmt::Display) {
        let text = message.to_string();
        let _ = rustix::io::write(&self.0, &text.as_bytes()[..text.len().min(MESSAGE)]);
    }

    /// The next message; `None` once the other end is gone.
    fn hear(&self) -> Option<String> {
        let mut buffer = [0; MESSAGE];
        loop {
            match rustix::io::read(&self.0, &mut buffer) {
                Err(rustix::io::Errno::INTR) => continue,
                Ok(0) | Err(_) => return None,
                Ok(n) => return Some(String::from_utf8_lossy(&buffer[..n]).into_owned()),
            }
        }
    }
}

impl Keeper {
    /// Starts keeper and init, which wait for orders. To be called while this process has one thread.
    pub fn start(privilege: Privilege, inside: &Inside, near: &Net, far: &Net) -> Result<Self, Error> {
        let refused = Error::refused("start an init process");
        let (ours, theirs) = Socket::pair().map_err(&refused)?;
        let _ = io::stdout().flush(); // or the copies would print what is not yet printed once more
        match sys::fork().map_err(&refused)? {
            Some(pid) => Ok(Self { pid, socket: ours }),
            None => {
                drop(ours);
                std::process::exit(keep(theirs, privilege, inside, near, far))
            }
        }
    }

    /// Gives init an order. If it is gone, nobody hears.
    pub fn order(&self, order: Order) {
        self.socket.tell(&order);
    }

    /// The next thing that happened; `None` once init is gone.
    pub fn report(&self) -> Option<Report> {
        loop {
            let message = self.socket.hear()?;
            if let Some(report) = Report::read(&message) {
                return Some(report);
            }
        }
    }

    /// The next thing that has happened by now; `None` if there is nothing, or init is gone.
    pub fn report_now(&self) -> Option<Report> {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut fds = [PollFd::new(self, PollFlags::IN)];
        (poll(&mut fds, Some(&now)) == Ok(1)).then(|| self.report()).flatten()
    }

    /// Waits until keeper and init are gone.
    pub fn wait(&self) {
        while waitpid(Pid::from_raw(self.pid), None) == Err(Errno::EINTR) {}
    }
}

impl AsFd for Keeper {
    /// Readable when there is a report, or init is gone.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.0.as_fd()
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Far => f.write_str("far"),
            Order::Near => f.write_str("near"),
            Order::Signal(number) => write!(f, "signal {number}"),
        }
    }
}

impl Order {
    fn read(line: &str) -> Option<Self> {
        match line {
            "far" => Some(Order::Far),
            "near" => Some(Order::Near),
            _ => line.strip_prefix("signal ")?.parse().ok().map(Order::Signal),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Report::Started => f.write_str("started"),
            Report::NotRun { why, code } => write!(f, "not-run {code} {}", why.replace('\n', " ")),
            Report::FarEnded { index, code } => write!(f, "far-ended {index} {code}"),
            Report::Ended { code } => write!(f, "ended {code}"),
        }
    }
}

impl Report {
    fn read(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let two = || rest.split_once(' ');
        match word {
            "started" => Some(Report::Started),
            "ended" => rest.parse().ok().map(|code| Report::Ended { code }),
            "far-ended" => {
                let (index, code) = two()?;
                Some(Report::FarEnded { index: index.parse().ok()?, code: code.parse().ok()? })
            }
            "not-run" => {
                let (code, why) = two()?;
                Some(Report::NotRun { code: code.parse().ok()?, why: why.to_owned() })
            }
            _ => None,
        }
    }
}

/// The keeper: makes init, and leaves when it does.
fn keep(socket: Socket, privilege: Privilege, inside: &Inside, near: &Net, far: &Net) -> i32 {
    // Those that a terminal sends to a whole group of processes are the command's business.
    let _ = SigSet::all().thread_block();
    let start = || -> io::Result<Option<i32>> {
        set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS)?;
        sys::fork()
    };
    match start() {
        Ok(Some(init)) => {
            drop(socket);
            while waitpid(Pid::from_raw(init), None) == Err(Errno::EINTR) {}
            0
        }
        Ok(None) => Init { socket, near: None, far: Vec::new() }.run(privilege, inside, near, far),
        Err(e) => {
            let why = format!("cannot make a process namespace: {e}");
            socket.tell(&Report::NotRun { why, code: 126 });
            0
        }
    }
}

/// How long what was left running may take to end by itself.
const GRACE: Duration = Duration::from_millis(300);

/// Process 1.
struct Init {
    socket: Socket,
    near: Option<i32>,
    /// Process numbers of the far commands, 0 once ended.
    far: Vec<i32>,
}

impl Init {
    fn run(mut self, privilege: Privilege, inside: &Inside, near: &Net, far: &Net) -> i32 {
        if let Err(e) = self.serve(privilege, inside, near, far) {
            self.tell(&Report::NotRun { why: format!("cannot set the namespaces up: {e}"), code: 126 });
        }
        0
    }

    fn tell(&self, report: &Report) {
        self.socket.tell(report);
    }

    fn serve(&mut self, privilege: Privilege, inside: &Inside, near: &Net, far: &Net) -> io::Result<()> {
        set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        let signals = SignalFd::with_flags(
            &SigSet::from(Signal::SIGCHLD),
            SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC,
        )?;
        mounts::make_private()?;
        let _ = mounts::proc();
        mounts::replace(&inside.files)?;
        if privilege.is_rootless() {
            pass_capabilities_on()?;
        }
        far.enter()?;
        // From here on, whoever was to hear of our parent's death has: if it came before, the socket is closed.
        loop {
            let mut fds = [PollFd::new(&self.socket.0, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => continue,
                done => done?,
            };
            let (asked, ended) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
            if asked {
                let Some(order) = self.socket.hear() else { return Ok(()) };
                if let Some(order) = Order::read(&order)
                    && !self.obey(order, inside, near)?
                {
                    return Ok(());
                }
            }
            if ended {
                while signals.read_signal()?.is_some() {}
            }
            // After an order too: what ended while a command was started has sent its signal to nobody.
            if let Some(code) = self.reap() {
                end_all();
                self.tell(&Report::Ended { code });
                return Ok(());
            }
        }
    }

    /// Does as told; whether there is anything left to do.
    fn obey(&mut self, order: Order, inside: &Inside, near: &Net) -> io::Result<bool> {
        match order {
            Order::Far => {
                for text in &inside.far {
                    let mut command = Command::new("/bin/sh");
                    command
                        .arg("-c")
                        .arg(text)
                        .stdin(Stdio::null())
                        .stdout(io::stderr().as_fd().try_clone_to_owned()?);
                    // Ctrl-C is for the near end.
                    command.process_group(0).env_remove(inside.near_variable.0);
                    command.envs(inside.variables.iter().cloned());
                    match spawn(&mut command) {
                        Ok(child) => self.far.push(child.id() as i32),
                        Err(e) => {
                            self.tell(&Report::NotRun {
                                why: format!("cannot run '{text}' at the far end: {e}"),
                                code: 126,
                            });
                            return Ok(false);
                        }
                    }
                }
            }
            Order::Near => {
                near.enter()?;
                let Some((program, arguments)) = inside.command.split_first() else { return Ok(false) };
                let (name, value) = &inside.near_variable;
                let mut command = Command::new(program);
                command.args(arguments).env(name, value).envs(inside.variables.iter().cloned());
                match spawn(&mut command) {
                    Ok(child) => {
                        self.near = Some(child.id() as i32);
                        self.tell(&Report::Started);
                    }
                    Err(e) => {
                        let name = program.to_string_lossy();
                        let (why, code) = match e.kind() {
                            io::ErrorKind::NotFound => (format!("command not found: {name}"), 127),
                            _ => (format!("cannot run {name}: {e}"), 126),
                        };
                        self.tell(&Report::NotRun { why, code });
                        return Ok(false);
                    }
                }
            }
            Order::Signal(number) => {
                if let (Some(pid), Ok(signal)) = (self.near, Signal::try_from(number)) {
                    let _ = signal::kill(Pid::from_raw(pid), signal);
                }
            }
        }
        Ok(true)
    }

    /// Takes note of all processes that have ended; the command's exit code if it was among them.
    fn reap(&mut self) -> Option<u8> {
        loop {
            let (pid, code) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid.as_raw(), code as u8),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid.as_raw(), 128 + signal as u8),
                Ok(WaitStatus::StillAlive) | Err(_) => return None,
                Ok(_) => continue,
            };
            if self.near == Some(pid) {
                return Some(code);
            }
            if let Some(index) = self.far.iter().position(|p| *p == pid) {
                self.far[index] = 0;
                self.tell(&Report::FarEnded { index, code });
            }
        }
    }
}

/// Starts a command with no signal blocked; those that are blocked here are no business of its.
fn spawn(command: &mut Command) -> io::Result<std::process::Child> {
    let ours = SigSet::thread_get_mask()?;
    SigSet::empty().thread_set_mask()?;
    let spawned = command.spawn();
    ours.thread_set_mask()?;
    spawned
}

/// Asks everything in this process namespace to end, and gives it a moment. What does not, ends with init.
fn end_all() {
    let _ = signal::kill(Pid::from_raw(-1), Signal::SIGTERM);
    let _ = signal::kill(Pid::from_raw(-1), Signal::SIGCONT);
    let Ok(signals) =
        SignalFd::with_flags(&SigSet::from(Signal::SIGCHLD), SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
    else {
        return;
    };
    let clock = crate::Clock::start();
    loop {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Err(_) => return, // nobody is left
                Ok(WaitStatus::StillAlive) => break,
                Ok(_) => {}
            }
        }
        let left = (GRACE.as_nanos() as u64).saturating_sub(clock.now().as_nanos());
        if left == 0 {
            return;
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: left as _ };
        let _ = poll(&mut [PollFd::new(&signals, PollFlags::IN)], Some(&timeout));
        while matches!(signals.read_signal(), Ok(Some(_))) {}
    }
}

/// Lets programs in a user namespace configure their network, open raw sockets and bind low ports, though they are not root: all
/// of it in their own network only.
fn pass_capabilities_on() -> io::Result<()> {
    let passed = [CapabilitySet::NET_ADMIN, CapabilitySet::NET_RAW, CapabilitySet::NET_BIND_SERVICE];
    let mut sets = capabilities(None)?;
    passed.iter().for_each(|capability| sets.inheritable |= *capability);
    set_capabilities(None, sets)?;
    for capability in passed {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_reports_read_as_they_are_written() {
        for order in [Order::Far, Order::Near, Order::Signal(15)] {
            assert_eq!(Order::read(&order.to_string()), Some(order));
        }
        let why = "command not found: a b".to_owned();
        for report in [
            Report::Started,
            Report::NotRun { why, code: 127 },
            Report::FarEnded { index: 1, code: 143 },
            Report::Ended { code: 3 },
        ] {
            assert_eq!(Report::read(&report.to_string()), Some(report));
        }
        assert_eq!((Order::read("signal x"), Report::read("ended 300")), (None, None));
    }
}
