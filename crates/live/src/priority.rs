//! What a program in front keeps of a processor while another computes behind it: the operating system's priorities between processes.
//!
//! The program in front is a thread of this process that does a fixed computation again and again: its *score* is how often a second. The rival
//! behind is a shell that counts, a process of its own, on the same processor. What differs is how the rival is scheduled, and whether
//! it is in a session of its own.
//!
//! # Sessions
//!
//! Where `/proc/sys/kernel/sched_autogroup_enabled` is 1, Linux makes a group of each session (setsid(2)), and shares the processor between
//! groups first (sched(7), "The autogroup feature"). `nice` then says something between programs of one session only: a rival
//! of nice 19 in another session, as one started from another terminal or by a desktop is, takes as much as one of nice 0. What says
//! something between sessions is the group's own nice value, in `/proc/PID/autogroup`. So each rival is measured both ways where there
//! are such groups. None of it holds of programs that a cgroup's CPU controller has: the cgroup has precedence.
//!
//! The one in front is subject to all of this itself: [`own`] says how it is scheduled, as scores beside rivals of other sessions are
//! those of an ordinary session only where its group and itself have a nice value of 0.
//!
//! # Other programs
//!
//! They take their part of both. Rivals are measured in turn, for a short time each and again and again, and medians taken, so that a
//! change on the machine meets all alike; and beside the score there is the share that the one in front had of what both had, which what others
//! take does not change.

use std::fmt;
use std::fs;
use std::hint::black_box;
use std::io;
use std::process::{Child, Command, Stdio};
use std::thread;

use base::{Duration, Instant};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Clock;
use crate::clock::thread_cpu;
use crate::namespace::turn;

/// How a rival is scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// As the program in front.
    Same,
    /// With a nice value of 19, the least.
    Nice,
    /// As `SCHED_IDLE` (sched(7)).
    Idle,
}

/// What is behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rival {
    /// Nothing.
    None,
    /// A program in the same session.
    Near(Class),
    /// A program in a session of its own, where sessions are groups.
    Far(Class),
    /// The same of nice 19, whose group has a nice value of 19 too.
    FarNiceGroup,
}

impl Rival {
    /// All, in the order in which they are measured.
    pub const ALL: [Rival; 8] = [
        Rival::None,
        Rival::Near(Class::Same),
        Rival::Near(Class::Nice),
        Rival::Near(Class::Idle),
        Rival::Far(Class::Same),
        Rival::Far(Class::Nice),
        Rival::Far(Class::Idle),
        Rival::FarNiceGroup,
    ];

    fn class(self) -> Class {
        match self {
            Rival::None => Class::Same,
            Rival::Near(class) | Rival::Far(class) => class,
            Rival::FarNiceGroup => Class::Nice,
        }
    }

    /// Whether it is in a session of its own.
    pub fn is_far(self) -> bool {
        matches!(self, Rival::Far(_) | Rival::FarNiceGroup)
    }
}

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match self.class() {
            Class::Same => "same priority",
            Class::Nice => "nice 19",
            Class::Idle => "SCHED_IDLE",
        };
        match self {
            Rival::None => f.pad("alone"),
            Rival::Near(_) => f.pad(class),
            Rival::Far(_) => f.pad(&format!("{class}, another session")),
            Rival::FarNiceGroup => f.pad(&format!("{class}, another session of nice 19")),
        }
    }
}

/// One slice of the benchmark.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Slice {
    /// Computations done a second.
    pub score: f64,
    /// Processor time of the one in front, as a share of what it and its rival had.
    pub share: f64,
}

/// What the machine says of groups of sessions: whether there are any; `None` if its kernel has none to switch.
pub fn autogroups() -> Option<bool> {
    let text = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").ok()?;
    Some(text.trim() == "1")
}

/// How a process is scheduled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Its policy, as sched(7) names it.
    pub policy: String,
    /// Its nice value, −20 to 19.
    pub nice: i32,
    /// That of its session's group; `None` where sessions are no groups, or its own is none.
    pub group_nice: Option<i32>,
}

impl Standing {
    /// Whether it is scheduled as what somebody starts by hand is.
    pub fn is_ordinary(&self) -> bool {
        self.policy == policy(0) && self.nice == 0 && self.group_nice.unwrap_or(0) == 0
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, nice {}", self.policy, self.nice)?;
        match self.group_nice {
            Some(nice) => write!(f, ", in a session whose group has nice {nice}"),
            None => f.write_str(", in no group of a session"),
        }
    }
}

/// How this process is scheduled, and with it the one in front.
///
/// # Errors
/// If `/proc` does not say it as proc_pid_stat(5) and sched(7) have it.
pub fn own() -> io::Result<Standing> {
    let not_so = |path: &str| io::Error::other(format!("{path} is not as the manual has it"));
    let stat = fs::read_to_string("/proc/self/stat")?;
    let stat = Stat::parse(&stat).ok_or_else(|| not_so("/proc/self/stat"))?;
    // A kernel without groups has no such file. One whose groups are switched off has it, and heeds it not.
    let text = match autogroups() {
        Some(true) => fs::read_to_string("/proc/self/autogroup").unwrap_or_default(),
        _ => String::new(),
    };
    let group_nice = group_nice(&text).ok_or_else(|| not_so("/proc/self/autogroup"))?;
    Ok(Standing { policy: policy(stat.policy), nice: stat.nice, group_nice })
}

/// The nice value in `/autogroup-25 nice 0`, and `Some(None)` if the text is empty: that is a session which is no group, as the one in which
/// the machine began is none.
fn group_nice(text: &str) -> Option<Option<i32>> {
    if text.is_empty() {
        return Some(None);
    }
    let (group, nice) = text.trim().rsplit_once(" nice ")?;
    let nice = nice.parse().ok().filter(|nice| (-20..=19).contains(nice))?;
    group.starts_with("/autogroup-").then_some(Some(nice))
}

/// What sched(7) calls a policy, by its number in linux/sched.h.
fn policy(number: u64) -> String {
    match number {
        0 => "SCHED_OTHER".to_owned(),
        1 => "SCHED_FIFO".to_owned(),
        2 => "SCHED_RR".to_owned(),
        3 => "SCHED_BATCH".to_owned(),
        5 => "SCHED_IDLE".to_owned(),
        6 => "SCHED_DEADLINE".to_owned(),
        7 => "SCHED_EXT".to_owned(),
        other => format!("policy {other}"),
    }
}

/// Lets the benchmark run for `time` beside `rival`. Both are bound to one processor, the first that this process may use.
///
/// # Errors
/// If the rival cannot be started or scheduled so, or the system does not say what it took.
pub fn measure(rival: Rival, time: Duration) -> io::Result<Slice> {
    let bench = thread::Builder::new().name("in front".into()).spawn(move || {
        bind()?;
        let behind = (rival != Rival::None).then(|| Behind::start(rival)).transpose()?;
        // A shell takes a moment to begin.
        run(Duration::from_millis(50));
        let before = behind.as_ref().map(Behind::cpu).transpose()?;
        let own = thread_cpu();
        let score = run(time);
        let own = (thread_cpu() - own).as_secs_f64();
        let its = match (&behind, before) {
            (Some(behind), Some(before)) => (behind.cpu()? - before).as_secs_f64(),
            _ => 0.0,
        };
        Ok(Slice { score, share: own / (own + its) })
    })?;
    bench.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Binds the calling thread, and what it starts, to one processor.
fn bind() -> io::Result<()> {
    let may = sched_getaffinity(None)?;
    let first = (0..CpuSet::MAX_CPU).find(|cpu| may.is_set(*cpu));
    let mut one = CpuSet::new();
    one.set(first.ok_or_else(|| io::Error::other("there is no processor"))?);
    Ok(sched_setaffinity(None, &one)?)
}

/// Computes for `time`; gives the score.
fn run(time: Duration) -> f64 {
    let clock = Clock::start();
    let mut done = 0_u64;
    loop {
        compute();
        done += 1;
        let now = clock.now();
        if now >= Instant::ZERO + time {
            return done as f64 / now.since(Instant::ZERO).as_secs_f64();
        }
    }
}

/// The fixed computation: some 50 µs of arithmetic and of table look-ups, in a table that the first cache holds.
fn compute() {
    let mut table = [0_u64; 512];
    let mut x = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..20_000 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        let slot = &mut table[(x % 512) as usize];
        *slot = slot.wrapping_mul(31).wrapping_add(x);
    }
    black_box(table);
}

/// The rival; ended when dropped.
struct Behind(Child);

/// Counts, and looks from time to time whether whoever started it is still there.
const SPINNER: &str =
    "while kill -0 \"$PPID\" 2>/dev/null; do i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done";

impl Behind {
    /// Starts it from a thread that is scheduled as it is to be, which programs inherit.
    fn start(rival: Rival) -> io::Result<Self> {
        let start = move || {
            match rival.class() {
                Class::Same => {}
                Class::Nice => rustix::process::setpriority_process(None, 19)?,
                Class::Idle => turn::idle()?,
            }
            let mut command = if rival.is_far() {
                let mut command = Command::new("setsid");
                command.arg("sh");
                command
            } else {
                Command::new("sh")
            };
            command.args(["-c", SPINNER]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn()
        };
        let child = thread::scope(|scope| {
            let thread = thread::Builder::new().spawn_scoped(scope, start)?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let behind = Self(child?);
        if rival.is_far() {
            behind.wait_for_session()?;
        }
        if rival == Rival::FarNiceGroup {
            fs::write(format!("/proc/{}/autogroup", behind.0.id()), "19")?;
        }
        Ok(behind)
    }

    /// Waits until it has left this session.
    fn wait_for_session(&self) -> io::Result<()> {
        let clock = Clock::start();
        while self.stat()?.session != self.0.id() {
            if clock.now() > Instant::ZERO + Duration::from_secs(2) {
                return Err(io::Error::other("setsid makes no session"));
            }
            thread::yield_now();
        }
        Ok(())
    }

    /// Processor time that it has had, as exact as the kernel counts it for others: in hundredths of a second.
    fn cpu(&self) -> io::Result<Duration> {
        Ok(self.stat()?.cpu)
    }

    fn stat(&self) -> io::Result<Stat> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        Stat::parse(&text).ok_or_else(|| io::Error::other("/proc/PID/stat is not as proc_pid_stat(5) has it"))
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What of `/proc/PID/stat` is of use.
#[derive(PartialEq, Debug)]
struct Stat {
    session: u32,
    cpu: Duration,
    nice: i32,
    policy: u64,
}

impl Stat {
    /// Fields are counted behind the name, which stands in brackets and may hold anything (proc_pid_stat(5)).
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
        let field = |n: usize| fields.get(n - 3).map(|field| field.trim_end());
        let number = |n: usize| field(n)?.parse::<u64>().ok();
        let ticks = number(14)? + number(15)?;
        let a_second = rustix::param::clock_ticks_per_second().max(1);
        let cpu = Duration::from_secs(1).mul_f64(ticks as f64 / a_second as f64);
        Some(Self { session: number(6)? as u32, cpu, nice: field(19)?.parse().ok()?, policy: number(41)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_and_processor_time_are_read_behind_a_name_that_holds_anything() {
        let times = "105 0 0 0 150 50 0 0 39 19 1 0 12345 0 0";
        let line =
            format!("4242 (a) b ( c) R 1 4242 99 0 -1 4194304 {times} {}17 3 0 5 0\n", "0 ".repeat(13));
        let cpu = Duration::from_secs(1).mul_f64(200.0 / rustix::param::clock_ticks_per_second() as f64);
        assert_eq!(Stat::parse(&line), Some(Stat { session: 99, cpu, nice: 19, policy: 5 }));
        assert_eq!(Stat::parse("4242 (a"), None);
        assert_eq!(Stat::parse(line.split_once(" 5 0").unwrap().0), None, "the policy is missing");
    }

    #[test]
    fn a_groups_nice_value_is_read_and_nothing_else_is_taken_for_one() {
        for (text, nice) in [
            ("/autogroup-526 nice 0\n", Some(Some(0))),
            ("/autogroup-7 nice -15\n", Some(Some(-15))),
            ("/autogroup-7 nice 19", Some(Some(19))),
            ("/autogroup-7 nice 20\n", None),
            ("/autogroup-7 nice \n", None),
            ("/user.slice nice 3\n", None),
            ("\n", None),
            // The session in which the machine began.
            ("", Some(None)),
        ] {
            assert_eq!(group_nice(text), nice, "{text:?}");
        }
    }

    #[test]
    fn only_what_has_no_precedence_and_gives_none_is_ordinary() {
        let plain = Standing { policy: policy(0), nice: 0, group_nice: Some(0) };
        assert!(plain.is_ordinary() && Standing { group_nice: None, ..plain.clone() }.is_ordinary());
        assert!(!Standing { group_nice: Some(-12), ..plain.clone() }.is_ordinary());
        assert!(!Standing { nice: 5, ..plain.clone() }.is_ordinary());
        assert!(!Standing { policy: policy(3), ..plain.clone() }.is_ordinary());
        assert_eq!(plain.to_string(), "SCHED_OTHER, nice 0, in a session whose group has nice 0");
    }

    /// What `/proc` says of this process is what the system calls say.
    #[test]
    fn this_process_knows_its_own_standing() {
        let own = own().unwrap();
        assert_eq!(own.nice, rustix::process::getpriority_process(None).unwrap());
        assert!(own.policy.starts_with("SCHED_"), "{own}");
        let group = fs::read_to_string("/proc/self/autogroup").unwrap_or_default();
        assert_eq!(own.group_nice.is_some(), autogroups() == Some(true) && !group.is_empty());
    }

    #[test]
    fn every_rival_starts_is_scheduled_as_it_says_and_is_gone_afterwards() {
        let own = rustix::process::getpriority_process(None).unwrap().to_string();
        for rival in Rival::ALL.into_iter().filter(|r| *r != Rival::None && *r != Rival::FarNiceGroup) {
            let behind = Behind::start(rival).unwrap();
            let id = behind.0.id();
            let text = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
            let fields: Vec<&str> = text.rsplit_once(") ").unwrap().1.split(' ').collect();
            // Nice value and policy: fields 19 and 41.
            let scheduled = (fields[19 - 3], fields[41 - 3]);
            match rival.class() {
                Class::Same => assert_eq!(scheduled, (own.as_str(), "0"), "{rival}"),
                Class::Nice => assert_eq!(scheduled, ("19", "0"), "{rival}"),
                Class::Idle => assert_eq!(scheduled.1, "5", "{rival}"),
            }
            assert_eq!(Stat::parse(&text).unwrap().session == id, rival.is_far());
            drop(behind);
            assert!(!fs::exists(format!("/proc/{id}")).unwrap());
        }
    }
}
