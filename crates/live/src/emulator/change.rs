//! Another link in the place of the one that there was, while the emulator runs: the near end has gone over to another network.

use std::net::IpAddr;
use std::sync::mpsc::{Receiver, Sender, channel};

use base::Rng;
use link::PathConfig;

use super::packet::Addresses;
use super::{Direction, Emulator, Handle};

/// The link that there is from now on, and what is over with the old one.
#[derive(Clone, Debug)]
pub struct NewLink {
    /// From the near end to the far one. Times of its outages are of the emulator's [clock](Handle::clock), here and below.
    pub up: PathConfig,
    /// From the far end to the near one.
    pub down: PathConfig,
    /// The addresses that the near end had: what comes from them or goes to them arrives nowhere any more.
    pub left: Vec<IpAddr>,
    /// The seed of loss and jitter.
    pub seed: u64,
}

/// A change that is asked for, and who waits for it.
#[derive(Debug)]
pub(super) struct Asked {
    link: NewLink,
    done: Sender<()>,
}

impl Handle {
    /// Takes another link in the place of the one that there is. What is on that is lost, and between it and its servers what is to
    /// enter it. The answer comes when it is done, or never if the emulator has ended.
    pub fn change_link(&self, link: NewLink) -> Receiver<()> {
        let (done, receiver) = channel();
        *self.0.change.lock().unwrap_or_else(|e| e.into_inner()) = Some(Asked { link, done });
        self.wake();
        receiver
    }
}

impl Emulator {
    pub(super) fn change(&mut self, asked: Asked) {
        let NewLink { up, down, left, seed } = asked.link;
        let rng = Rng::new(seed);
        self.left.extend(left);
        let Self { clock, buffers, log, .. } = self;
        for (side, config) in [(&mut self.up, &up), (&mut self.down, &down)] {
            for packet in side.way.change(config, rng.substream(side.direction.name())) {
                side.lose(packet, clock.now(), buffers, log);
            }
            side.check.changed(config);
        }
        // Who does not wait any more need not hear of it.
        let _ = asked.done.send(());
    }

    /// Whether a packet is of an address that the near end has no more.
    pub(super) fn is_of_left(left: &[IpAddr], addresses: &Addresses, direction: Direction) -> bool {
        left.contains(match direction {
            Direction::Up => &addresses.from,
            Direction::Down => &addresses.to,
        })
    }
}
