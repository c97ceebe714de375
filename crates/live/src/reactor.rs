//! Sleeps until a socket is ready or a deadline comes.
//!
//! `epoll_wait` counts milliseconds, which is too coarse to pace packets. So deadlines go to a timer of the kernel (`timerfd`)
//! that takes absolute nanoseconds, knows no slack and wakes the same wait. How exactly deadlines are kept, and at what cost, is
//! the [`Policy`] of [`timer`](crate::timer).

use std::io;
use std::sync::Arc;

use base::{Duration, Instant};
use mio::event::Source;
use mio::{Events, Interest, Poll, Token};

use crate::Clock;
use crate::timer::{Lead, Policy, on_grid};

/// What became ready, and for what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ready {
    /// As given to [`Reactor::register`].
    pub token: usize,
    /// Reading, or seeing the end, will not block.
    pub readable: bool,
    /// Writing, or seeing that it has failed, will not block.
    pub writable: bool,
}

/// Ends a [`Reactor`]'s sleep from another thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<mio::Waker>);

impl Waker {
    /// Ends the sleep that goes on, or else the next.
    pub fn wake(&self) -> io::Result<()> {
        self.0.wake()
    }
}

/// Readiness and deadlines of one thread.
#[derive(Debug)]
pub struct Reactor {
    poll: Poll,
    events: Events,
    clock: Clock,
    alarm: alarm::Alarm,
    waker: Waker,
    policy: Policy,
    lead: Lead,
}

const WAKER: Token = Token(usize::MAX);
const ALARM: Token = Token(usize::MAX - 1);

impl Reactor {
    /// Tokens are below this.
    pub const TOKENS: usize = usize::MAX - 1;

    /// A reactor with nothing registered; its clock starts now. Its deadlines are economical on battery and else precise, without
    /// spinning.
    pub fn new() -> io::Result<Self> {
        Self::with_policy(Policy::choose().0, Duration::ZERO)
    }

    /// The same under a certain policy. If it is precise, a wait may spin for up to `spin` before its deadline, and still sees what
    /// becomes ready.
    pub fn with_policy(policy: Policy, spin: Duration) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker(Arc::new(mio::Waker::new(poll.registry(), WAKER)?));
        let alarm = alarm::Alarm::new(poll.registry(), ALARM)?;
        let (events, clock) = (Events::with_capacity(256), Clock::start());
        Ok(Self { poll, events, clock, alarm, waker, policy, lead: Lead::up_to(spin) })
    }

    /// The reactor's clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The time now.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// How its deadlines are kept.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// A handle that ends a sleep from another thread.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Reports on `source`, both for reading and for writing, once at each change (edge-triggered): use it until it would
    /// block.
    ///
    /// # Panics
    /// If `token` is not below [`Reactor::TOKENS`].
    pub fn register(&self, source: &mut impl Source, token: usize) -> io::Result<()> {
        assert!(token < Self::TOKENS, "the last tokens are the reactor's own");
        self.poll.registry().register(source, Token(token), Interest::READABLE | Interest::WRITABLE)
    }

    /// Reports on `source` when it can be read, as for [`register`](Self::register): for listeners.
    pub fn register_readable(&self, source: &mut impl Source, token: usize) -> io::Result<()> {
        assert!(token < Self::TOKENS, "the last tokens are the reactor's own");
        self.poll.registry().register(source, Token(token), Interest::READABLE)
    }

    /// Reports on `source` no more.
    pub fn deregister(&self, source: &mut impl Source) -> io::Result<()> {
        self.poll.registry().deregister(source)
    }

    /// Sleeps until something is ready, [`Waker::wake`] was called or `deadline` has come; then [`ready`](Self::ready) tells
    /// what. Without a deadline it may sleep for ever.
    pub fn wait(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        let Some(deadline) = deadline else {
            self.alarm.set(self.clock, None)?;
            return self.poll(None);
        };
        let wake = match self.policy {
            Policy::Economical => on_grid(self.clock, deadline),
            Policy::Precise => Instant::ZERO + deadline.since(Instant::ZERO + self.lead.get()),
        };
        if self.now() < wake {
            let timeout = self.alarm.set(self.clock, Some(wake))?;
            self.poll(timeout)?;
            let now = self.now();
            if now < wake {
                return Ok(()); // something is ready, or somebody wakes us
            }
            self.lead.learn(now.since(wake));
        } else {
            self.poll(Some(std::time::Duration::ZERO))?;
        }
        while self.events.iter().all(|e| e.token() == ALARM) && self.now() < deadline {
            self.poll(Some(std::time::Duration::ZERO))?;
        }
        Ok(())
    }

    fn poll(&mut self, timeout: Option<std::time::Duration>) -> io::Result<()> {
        loop {
            match self.poll.poll(&mut self.events, timeout) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                done => return done,
            }
        }
    }

    /// What the last [`wait`](Self::wait) found.
    pub fn ready(&self) -> impl Iterator<Item = Ready> {
        self.events.iter().filter(|e| e.token() != WAKER && e.token() != ALARM).map(|e| Ready {
            token: e.token().0,
            readable: e.is_readable() || e.is_read_closed() || e.is_error(),
            writable: e.is_writable() || e.is_write_closed() || e.is_error(),
        })
    }
}

#[cfg(target_os = "linux")]
mod alarm {
    //! One absolute timer of the kernel.

    use std::io;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::time::Duration;

    use base::Instant;
    use mio::unix::SourceFd;
    use mio::{Interest, Registry, Token};
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };

    use crate::Clock;

    #[derive(Debug)]
    pub struct Alarm {
        timer: OwnedFd,
        is_set: bool,
    }

    impl Alarm {
        pub fn new(registry: &Registry, token: Token) -> io::Result<Self> {
            let timer =
                timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
            registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
            Ok(Self { timer, is_set: false })
        }

        /// Sets the timer and gives what the wait itself must add: nothing.
        pub fn set(&mut self, clock: Clock, at: Option<Instant>) -> io::Result<Option<Duration>> {
            // A timer that has fired is set again even for the same moment: setting clears its readiness.
            if at.is_some() || self.is_set {
                let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
                let it_value = at.map_or(zero, |at| clock.to_kernel(at));
                let spec = Itimerspec { it_interval: zero, it_value };
                timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &spec)?;
                self.is_set = at.is_some();
            }
            Ok(None)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod alarm {
    //! Where the kernel has no `timerfd` the wait's own timeout serves, in whole milliseconds.

    use std::io;
    use std::time::Duration;

    use base::Instant;
    use mio::{Registry, Token};

    use crate::Clock;

    #[derive(Debug)]
    pub struct Alarm;

    impl Alarm {
        pub fn new(_: &Registry, _: Token) -> io::Result<Self> {
            Ok(Self)
        }

        pub fn set(&mut self, clock: Clock, at: Option<Instant>) -> io::Result<Option<Duration>> {
            Ok(at.map(|at| Duration::from_nanos(at.since(clock.now()).as_nanos())))
        }
    }
}

#[cfg(test)]
mod tests {
    use base::Duration;

    use super::*;

    fn reactors() -> impl Iterator<Item = Reactor> {
        let all = [(Policy::Precise, 0), (Policy::Precise, 80), (Policy::Economical, 0)];
        all.into_iter().map(|(policy, us)| Reactor::with_policy(policy, Duration::from_micros(us)).unwrap())
    }

    #[test]
    fn a_deadline_ends_the_sleep_and_never_early() {
        for mut reactor in reactors() {
            for us in [0, 50, 300, 1_500] {
                let deadline = reactor.now() + Duration::from_micros(us);
                reactor.wait(Some(deadline)).unwrap();
                assert!(reactor.now() >= deadline, "{}: woken before {us} µs were over", reactor.policy());
                assert_eq!(reactor.ready().count(), 0);
            }
        }
    }

    #[test]
    fn a_deadline_that_is_the_same_twice_ends_both_sleeps() {
        for mut reactor in reactors() {
            let deadline = reactor.now() + Duration::from_micros(200);
            reactor.wait(Some(deadline)).unwrap();
            reactor.wait(Some(deadline)).unwrap();
            assert!(reactor.now() >= deadline);
        }
    }

    /// What is ready ends a wait at once, also while it would sleep towards its deadline or spin.
    #[test]
    fn what_is_ready_ends_a_wait_before_its_deadline() {
        for mut reactor in reactors() {
            let mut listener = mio::net::TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            reactor.register_readable(&mut listener, 7).unwrap();
            let _peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let deadline = reactor.now() + Duration::from_secs(60);
            reactor.wait(Some(deadline)).unwrap();
            assert!(reactor.now() < deadline);
            assert_eq!(reactor.ready().map(|r| r.token).collect::<Vec<_>>(), [7]);
        }
    }

    #[test]
    fn a_waker_ends_a_sleep_without_a_deadline() {
        let mut reactor = Reactor::new().unwrap();
        let waker = reactor.waker();
        let other = std::thread::spawn(move || waker.wake().unwrap());
        reactor.wait(None).unwrap();
        other.join().unwrap();
        assert_eq!(reactor.ready().count(), 0, "the waker is no socket");
    }
}
