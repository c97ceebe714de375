//! Peers are child processes: a server until its standard input ends, a client until it has said how its scenario went.
//!
//! None outlives this program. A [`Child`] that is dropped is killed; so are all when a signal ends the program
//! ([`kill_on_signal`]); and should the program itself be killed, servers see the end of their standard input, and clients
//! give up by themselves.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{self, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::Instant;
use live::Clock;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// Lines of a child's standard error that are kept: the last ones.
const COMPLAINTS: usize = 8;
/// Milliseconds that the standard error of a child that has ended may take to end: another may hold it.
const COMPLAINTS_MS: u64 = 1_000;
/// Bytes of a line that are read; the rest is another line.
const LINE_MAX: u64 = 4096;

/// Children that were started and not reaped: their numbers are theirs.
static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn running() -> MutexGuard<'static, BTreeSet<i32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills a child unless it was reaped: then its number may have become somebody else's.
fn kill(running: &BTreeSet<i32>, pid: i32) {
    if let (true, Some(pid)) = (running.contains(&pid), Pid::from_raw(pid)) {
        // It may have ended just now, which is as good.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Kills what runs when the program is told to end, and ends it.
///
/// # Errors
/// If the system takes no handler.
pub fn kill_on_signal() -> Result<(), String> {
    let end = || {
        let running = running();
        running.iter().for_each(|pid| kill(&running, *pid));
        process::exit(130);
    };
    ctrlc::set_handler(end).map_err(|e| format!("signals: {e}"))
}

/// A child process with its output.
#[derive(Debug)]
pub struct Child {
    pid: i32,
    /// Its end is what servers end by.
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    complaints: Arc<Mutex<VecDeque<String>>>,
    /// Disconnected once its standard error has ended.
    silent: Receiver<()>,
    end: Receiver<ExitStatus>,
}

impl Child {
    /// Starts `words` in `folder`.
    ///
    /// # Errors
    /// If there is no such program, or the system has no room for it.
    pub fn start(words: &[String], folder: &Path) -> io::Result<Self> {
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut running = running();
        let mut child = process::Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let pid = child.id() as i32;
        running.insert(pid);
        drop(running);
        let stdin = child.stdin.take();
        let (say, lines) = channel();
        read_lines(child.stdout.take(), move |line| say.send(line).is_ok());
        let complaints = Arc::new(Mutex::new(VecDeque::new()));
        let kept = complaints.clone();
        let (speaks, silent) = channel();
        read_lines(child.stderr.take(), move |line| {
            let _speaks: &Sender<()> = &speaks;
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push_back(line);
            if kept.len() > COMPLAINTS {
                kept.pop_front();
            }
            true
        });
        Ok(Self { pid, stdin, lines, complaints, silent, end: reap(child, pid) })
    }

    /// Its process number.
    pub fn id(&self) -> i32 {
        self.pid
    }

    /// The next line of its standard output.
    ///
    /// # Errors
    /// If none comes in time; [`RecvTimeoutError::Disconnected`] if none will.
    pub fn line(&self, ms: u64) -> Result<String, RecvTimeoutError> {
        self.lines.recv_timeout(Duration::from_millis(ms))
    }

    /// Waits for a line that `wanted` likes, and passes over others.
    pub fn line_that(&self, ms: u64, wanted: impl Fn(&str) -> bool) -> Option<String> {
        let clock = Clock::start();
        let end = Instant::ZERO + base::Duration::from_millis(ms);
        loop {
            let left = end.since(clock.now()).as_nanos().div_ceil(1_000_000);
            let line = self.line(left).ok()?;
            if wanted(&line) {
                return Some(line);
            }
        }
    }

    /// Ends its standard input.
    pub fn end_input(&mut self) {
        self.stdin = None;
    }

    /// Its standard input, for who wants to say something.
    pub fn take_input(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// All that it says on its standard error, waiting for the end of that; of a long text the last lines.
    pub fn all_complaints(&self) -> String {
        let _ = self.silent.recv_timeout(Duration::from_millis(COMPLAINTS_MS));
        self.complaints()
    }

    /// Its last complaints so far, on one line.
    pub fn complaints(&self) -> String {
        let kept = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" | ")
    }

    /// Waits for its end. `None` if that does not come in time; it can be had once.
    pub fn wait(&self, ms: u64) -> Option<ExitStatus> {
        self.end.recv_timeout(Duration::from_millis(ms)).ok()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        kill(&running(), self.pid);
    }
}

/// Waits for a child's end in a thread of its own.
fn reap(mut child: process::Child, pid: i32) -> Receiver<ExitStatus> {
    let (say, end) = channel();
    std::thread::spawn(move || {
        if let Some(pid) = Pid::from_raw(pid) {
            // Interrupted is all that this can be; then the wait below does it.
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        }
        // It has ended but keeps its number until it is waited for, and that is done under the lock.
        let mut running = running();
        let status = child.wait();
        running.remove(&pid);
        drop(running);
        if let Ok(status) = status {
            // Nobody may want to know.
            let _ = say.send(status);
        }
    });
    end
}

fn read_lines(
    from: Option<impl Read + Send + 'static>,
    mut take: impl FnMut(String) -> bool + Send + 'static,
) {
    let Some(from) = from else { return };
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        loop {
            let mut line = Vec::new();
            match (&mut from).take(LINE_MAX).read_until(b'\n', &mut line) {
                Ok(n) if n > 0 => {}
                // A child that is gone has no more to say.
                _ => return,
            }
            if !take(String::from_utf8_lossy(&line).trim_end().to_owned()) {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Child {
        let words = ["sh", "-c", script].map(String::from);
        Child::start(&words, Path::new(".")).unwrap()
    }

    #[test]
    fn output_complaints_and_the_end_are_told() {
        let child = shell("echo listening 7; echo a >&2; echo b >&2; echo ok; exit 3");
        assert_eq!(child.line_that(10_000, |l| l.starts_with("ok")).as_deref(), Some("ok"));
        assert_eq!(child.wait(10_000).and_then(|s| s.code()), Some(3));
        assert_eq!(child.line(10_000), Err(RecvTimeoutError::Disconnected));
        assert_eq!(child.all_complaints(), "a | b");
        assert!(!running().contains(&child.id()));
    }

    #[test]
    fn a_server_ends_with_its_input_and_a_dropped_child_is_killed() {
        let mut child = shell("cat >/dev/null; echo end");
        child.end_input();
        assert_eq!(child.line(10_000).as_deref(), Ok("end"));
        let mut stubborn = shell("exec sleep 600");
        let end = std::mem::replace(&mut stubborn.end, channel().1);
        drop(stubborn);
        let status = end.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(status.code(), None, "by a signal");
    }
}
