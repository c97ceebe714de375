//! Signals to this process, read one after the other instead of interrupting it.

use std::io;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};

use super::{Keeper, Report};

/// What the process is asked by signals, which are held back from doing what they otherwise do: SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1
/// and SIGUSR2.
#[derive(Debug)]
pub struct Signals(SignalFd);

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Somebody sent this process a signal that the command may want. Those of a terminal are not among them, as the command gets
    /// them itself.
    Signal(i32),
    /// SIGUSR1 came.
    Asked,
    /// Init told something.
    Report(Report),
    /// Init is gone, without a last word.
    Gone,
}

/// What a signal's `si_code` says if the kernel sent it: for a terminal, say (sigaction(2)).
const SI_KERNEL: i32 = 0x80;

impl Signals {
    /// Holds signals back, from the calling thread and all that it starts from now on.
    pub fn hold() -> io::Result<Self> {
        let held: SigSet = [
            Signal::SIGINT,
            Signal::SIGQUIT,
            Signal::SIGTERM,
            Signal::SIGHUP,
            Signal::SIGUSR1,
            Signal::SIGUSR2,
        ]
        .into_iter()
        .collect();
        held.thread_block()?;
        Ok(Self(SignalFd::with_flags(&held, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?))
    }

    /// The next signal that has come, if one has; a terminal's too.
    pub fn now(&self) -> io::Result<Option<i32>> {
        Ok(self.0.read_signal()?.map(|signal| signal.ssi_signo as i32))
    }

    /// Waits for a signal, or for a report from `keeper`.
    pub fn wait(&self, keeper: &Keeper) -> io::Result<Event> {
        loop {
            while let Some(signal) = self.0.read_signal()? {
                match signal.ssi_signo as i32 {
                    number if number == Signal::SIGUSR1 as i32 => return Ok(Event::Asked),
                    number if signal.ssi_code != SI_KERNEL => return Ok(Event::Signal(number)),
                    _ => {}
                }
            }
            let mut fds = [PollFd::new(&self.0, PollFlags::IN), PollFd::new(keeper, PollFlags::IN)];
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => continue,
                done => done?,
            };
            if !fds[1].revents().is_empty() {
                return Ok(keeper.report().map_or(Event::Gone, Event::Report));
            }
        }
    }
}
