//! What a timer trades for what, and what the machine runs on.

use std::fmt;
use std::fs;
use std::path::Path;

use base::{Duration, Instant};

use crate::Clock;

/// How a timer trades precision for energy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// At the deadline, as exactly as the machine can, spinning if need be.
    Precise,
    /// At the first whole millisecond from the deadline on: up to [`GRID`] late, with at most a thousand wake-ups a second.
    Economical,
}

/// What lies between two moments at which economical timers fire.
pub const GRID: Duration = Duration::from_millis(1);

impl Policy {
    /// Economical on battery, else precise; and what the machine runs on, which is to be stated.
    pub fn choose() -> (Self, Power) {
        let power = Power::read(Path::new("/sys/class/power_supply"));
        let policy = match power {
            Power::Battery { .. } => Policy::Economical,
            Power::Mains | Power::Unknown => Policy::Precise,
        };
        (policy, power)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Policy::Precise => "precise",
            Policy::Economical => "economical",
        })
    }
}

/// What the machine runs on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Power {
    /// The mains, or a battery that is not being emptied.
    Mains,
    /// A battery that is being emptied.
    Battery {
        /// The kernel's name for it.
        name: String,
    },
    /// The kernel knows of no power supply, as on most servers and virtual machines.
    Unknown,
}

impl Power {
    /// Reads what the kernel says of the power supplies (Documentation/ABI/testing/sysfs-class-power). Batteries of devices, of a
    /// mouse say, do not count.
    fn read(dir: &Path) -> Self {
        let mut supplies: Vec<_> =
            fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
        supplies.sort();
        let mut power = Power::Unknown;
        for supply in supplies {
            let read = |file: &str| fs::read_to_string(supply.join(file)).unwrap_or_default();
            if read("scope").trim() == "Device" {
                continue;
            }
            if read("type").trim() == "Battery" && read("status").trim() == "Discharging" {
                let name = supply.file_name().unwrap_or_default().to_string_lossy().into_owned();
                return Power::Battery { name };
            }
            power = Power::Mains;
        }
        power
    }
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Power::Mains => f.write_str("on mains"),
            Power::Battery { name } => write!(f, "on battery ({name})"),
            Power::Unknown => f.write_str("no battery known"),
        }
    }
}

/// The first moment of the grid at or after `at`. The grid lies on the kernel's scale, so that all processes share it.
pub(crate) fn on_grid(clock: Clock, at: Instant) -> Instant {
    let kernel = clock.to_kernel(at);
    let past = kernel.tv_nsec as u64 % GRID.as_nanos();
    if past == 0 { at } else { at + (GRID - Duration::from_nanos(past)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Dir(std::path::PathBuf);

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_battery_that_is_being_emptied_makes_the_difference_and_a_mouses_does_not() {
        let dir = Dir(std::env::temp_dir().join(format!("velodrome-power-{}", std::process::id())));
        let set = |supply: &str, file: &str, text: &str| {
            fs::create_dir_all(dir.0.join(supply)).unwrap();
            fs::write(dir.0.join(supply).join(file), format!("{text}\n")).unwrap();
        };
        assert_eq!(Power::read(&dir.0), Power::Unknown);
        set("hidpp_battery_0", "type", "Battery");
        set("hidpp_battery_0", "scope", "Device");
        set("hidpp_battery_0", "status", "Discharging");
        assert_eq!(Power::read(&dir.0), Power::Unknown);
        set("AC", "type", "Mains");
        set("BAT0", "type", "Battery");
        set("BAT0", "status", "Charging");
        assert_eq!(Power::read(&dir.0), Power::Mains);
        set("BAT0", "status", "Discharging");
        assert_eq!(Power::read(&dir.0), Power::Battery { name: "BAT0".into() });
    }

    #[test]
    fn the_grid_is_the_kernels_and_never_early() {
        let clock = Clock::start();
        for us in [0, 1, 400, 999, 1_000, 123_456] {
            let at = Instant::from_nanos(us * 1_000);
            let grid = on_grid(clock, at);
            assert!(grid >= at && grid.since(at) < GRID);
            assert_eq!(clock.to_kernel(grid).tv_nsec as u64 % GRID.as_nanos(), 0);
        }
    }
}
