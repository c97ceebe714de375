//! What the fuzz targets assert, shared with the tests that replay the committed corpus and seeded inputs.
//!
//! Three bodies: [`input`] gives any bytes to the decoder and to a session at either end; [`frames`] drives one session
//! through any sequence of commands and whole frames; [`pair`] lets two sessions talk over a wire that cuts, delays and,
//! if the script says so, damages what it carries. The input is a script: its first bytes choose versions, mappings,
//! windows and limits, the rest is what happens.

#![allow(dead_code, unused_imports, reason = "each fuzz target uses a part of this")]

#[path = "../common/mod.rs"]
mod common;
mod frames;
mod input;
mod model;
mod pair;

pub use frames::frames;
pub use input::input;
pub use pair::pair;

use base::Duration;
use common::VERSIONS;
use spdy::frame::Setting;
use spdy::{
    Announce, Compression, Config, Fairness, FlowControl, KeepAlive, Limits, Mapping, Policy, WindowPolicy,
};

/// Reads a script off the input; what is past its end is zero.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn number(&mut self) -> u32 {
        (0..4).fold(0, |n, _| n << 8 | u32::from(self.byte()))
    }

    /// A length or a room: small ones as likely as large ones.
    fn squared(&mut self) -> u64 {
        u64::from(self.byte()).pow(2)
    }

    /// A small number mostly, any sometimes.
    fn id(&mut self) -> u32 {
        match self.byte() {
            255 => self.number() & 0x7fff_ffff,
            small => u32::from(small % 16),
        }
    }

    fn bytes(&mut self) -> &'a [u8] {
        let n = usize::from(self.byte()).min(self.0.len());
        let (taken, rest) = self.0.split_at(n);
        self.0 = rest;
        taken
    }

    fn config(&mut self) -> Config {
        let policies = [Policy::Full, Policy::CookiesApart, Policy::Stored];
        let windows = [
            WindowPolicy::FIXED_64K,
            WindowPolicy::FIREFOX_256M,
            WindowPolicy::half(1),
            WindowPolicy::half(1 << 20),
            WindowPolicy::autotuned(5_000, 1 << 20),
        ];
        let flows = [FlowControl::None, FlowControl::Streams, FlowControl::StreamsAndSession];
        let kind = self.byte();
        let bits = self.byte();
        let second = Duration::from_secs(1);
        let base = Config::new(VERSIONS[usize::from(kind % 3)]);
        // Small, that a few kilobytes can reach them; or what everyone has.
        let limits = match kind & 64 {
            0 => Limits {
                control_frame: 8_192,
                block: 16_384,
                headers: 20,
                header_field: 1_000,
                answers: 4_096,
                heads: 64 << 10,
                push_target: 100,
                settings: 4,
                ..Limits::default()
            },
            _ => Limits::default(),
        };
        let kept = Setting { flags: Setting::PERSISTED, ..Setting::new(Setting::CURRENT_CWND, 10) };
        Config {
            mapping: if kind & 128 == 0 { Mapping::Http } else { Mapping::Streams },
            flow_control: flows.get(usize::from(bits & 3)).copied().unwrap_or(base.flow_control),
            stream_window: windows[usize::from(self.byte()) % windows.len()],
            session_window: windows[usize::from(self.byte()) % windows.len()],
            announce: if bits & 4 == 0 { Announce::InSettings } else { Announce::OnEachStream },
            max_concurrent_streams: u32::from(bits >> 4),
            announce_streams: bits & 8 == 0,
            max_data_frame: 1 + 50 * u32::from(self.byte()),
            fairness: if kind & 32 == 0 { Fairness::Bounded { turns: 2 } } else { Fairness::Strict },
            compression: Compression { policy: policies[usize::from(bits % 3)], window_bits: 8 + bits % 9 },
            limits,
            settings: if kind & 16 == 0 { Vec::new() } else { vec![kept] },
            keep_alive: (bits & 64 != 0).then_some(KeepAlive { idle: second, give_up: second }),
            ..base
        }
    }
}
