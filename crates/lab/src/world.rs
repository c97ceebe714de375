//! The two worlds, behind one door.

use load::{Load, Setup};
use page::Page;

use crate::error::Error;
use crate::result::{Key, KnobRow, LiveRow, LiveWayRow};
use crate::setting::World;

/// A world, ready for loads.
#[derive(Debug)]
pub struct Track(Kind);

#[derive(Debug)]
enum Kind {
    Virtual,
    #[cfg(target_os = "linux")]
    Live(live::world::World),
}

impl Track {
    /// The virtual world, which needs nothing.
    pub const VIRTUAL: Track = Track(Kind::Virtual);

    /// Makes a world ready. To be called before the process starts any thread: who is not root gets networks of their own in a user
    /// namespace, and the kernel gives that to processes of one thread.
    ///
    /// # Errors
    /// If the machine has no live world, in one line that says what helps.
    pub fn prepare(world: World) -> Result<Self, Error> {
        match world {
            World::Virtual => Ok(Self::VIRTUAL),
            #[cfg(target_os = "linux")]
            World::Live => {
                let privilege =
                    live::namespace::Privilege::acquire().map_err(|e| Error::Live(e.to_string()))?;
                Ok(Self(Kind::Live(live::world::World::new(privilege))))
            }
            #[cfg(not(target_os = "linux"))]
            World::Live => {
                Err(Error::Live("the live world needs Linux: its network namespaces and TUN devices".into()))
            }
        }
    }

    /// Which it is.
    pub fn world(&self) -> World {
        match self.0 {
            Kind::Virtual => World::Virtual,
            #[cfg(target_os = "linux")]
            Kind::Live(_) => World::Live,
        }
    }

    /// Loads a page; and how the load was made, if that was in the live world.
    pub(crate) fn load(
        &self,
        page: &Page,
        setup: &Setup,
        seed: u64,
        key: &Key,
    ) -> Result<(Load, Option<LiveRow>), Error> {
        match &self.0 {
            Kind::Virtual => {
                let _ = key;
                Ok((sim::load(page, setup, seed), None))
            }
            #[cfg(target_os = "linux")]
            Kind::Live(world) => {
                let run =
                    world.load(page, setup, seed).map_err(|e| Error::Live(format!("{}: {e}", key.page)))?;
                let live = row(key, &run);
                Ok((run.load, Some(live)))
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn row(key: &Key, run: &live::world::Run) -> LiveRow {
    let knob = |k: &live::world::Knob| KnobRow {
        end: k.end.into(),
        name: k.name.clone(),
        asked: k.asked.clone(),
        got: k.got.clone(),
    };
    let waited = |end: usize| run.upkeep[end].waited.map(|d| crate::stats::round(d.as_millis_f64(), 3));
    let way = |way: &live::emulator::WayCheck| {
        let late = way.lateness();
        let us = |figure: fn(&live::emulator::Lateness) -> base::Duration| {
            late.as_ref().map(|late| crate::stats::round(figure(late).as_millis_f64() * 1e3, 1))
        };
        LiveWayRow {
            packets: way.delivered.packets,
            late_median_us: us(|l| l.median),
            late_p99_us: us(|l| l.p99),
            late_max_us: us(|l| l.max),
        }
    };
    LiveRow {
        key: key.clone(),
        unmet: run.unmet.clone(),
        kernel: run.kernel.knobs.iter().map(knob).collect(),
        browser_waited_ms: waited(0),
        servers_waited_ms: waited(1),
        up: way(&run.link.up),
        down: way(&run.link.down),
    }
}
