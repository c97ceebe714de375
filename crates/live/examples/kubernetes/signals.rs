//! Signals as flags, for whoever is asked between two turns.

use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use live::Waker;
use signal_hook::consts::{SIGINT, SIGTERM, SIGWINCH};

/// What this process was told by signals. Clones share it.
#[derive(Clone, Default, Debug)]
pub struct Signals {
    stop: Arc<AtomicBool>,
    resized: Arc<AtomicBool>,
}

impl Signals {
    /// Listens from now on, and ends a sleep of the reactor's when there is something.
    pub fn listen(waker: Waker) -> io::Result<Self> {
        let signals = Self::default();
        let mut heard = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGWINCH])?;
        let told = signals.clone();
        thread::Builder::new().name("signals".into()).spawn(move || {
            for signal in heard.forever() {
                if signal == SIGWINCH {
                    told.resized.store(true, Ordering::SeqCst);
                } else if told.stop.swap(true, Ordering::SeqCst) {
                    // Asked twice: whoever takes leave takes too long.
                    process::exit(128 + signal);
                }
                // A reactor that is gone sleeps no more.
                let _ = waker.wake();
            }
        })?;
        Ok(signals)
    }

    /// Whether to stop: SIGINT, SIGTERM. (SIGHUP is left to `nohup`.)
    pub fn stop(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Whether the terminal has another size since this was last asked.
    pub fn take_resized(&self) -> bool {
        self.resized.swap(false, Ordering::SeqCst)
    }

    /// Whether there is anything to react to.
    pub fn are_pending(&self) -> bool {
        self.stop() || self.resized.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
impl Signals {
    pub fn raise_stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    pub fn raise_resized(&self) {
        self.resized.store(true, Ordering::SeqCst);
    }
}
