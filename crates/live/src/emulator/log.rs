//! Every packet's fate, one line of comma-separated values each, written by a thread of its own.
//!
//! A packet is logged when its fate is known; so lines are in order of that, and each holds all moments of the packet's life, in
//! nanoseconds since the emulator's start. A moment that never came is empty.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use base::Instant;
use link::{DropCause, Dropped};

use super::Direction;
use super::packet::Packet;

/// The first line.
pub(super) const HEAD: &str = "way,number,flow,protocol,from,to,bytes,queue_bytes,enqueue_ns,dequeue_ns,sent_ns,due_ns,delivered_ns,fate\n";

/// Bytes handed to the thread at a time.
const PIECE: usize = 64 * 1024;
/// Pieces that may wait for the disk.
const PIECES: usize = 256;

/// A log that is being written.
#[derive(Debug)]
pub struct Log {
    piece: Vec<u8>,
    rows: u64,
    lost: u64,
    sender: SyncSender<Vec<u8>>,
    thread: JoinHandle<io::Result<()>>,
}

/// What became of a log.
#[derive(Debug)]
pub struct LogSummary {
    /// Lines written.
    pub rows: u64,
    /// Lines that were not, because the disk was too slow.
    pub lost: u64,
    /// What went wrong, if something did: then some lines are missing.
    pub error: Option<io::Error>,
}

impl Log {
    /// Creates the file.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut file = File::create(path)?;
        file.write_all(HEAD.as_bytes())?;
        let (sender, receiver) = sync_channel::<Vec<u8>>(PIECES);
        let write = move || receiver.iter().try_for_each(|piece| file.write_all(&piece));
        let thread = std::thread::Builder::new().name("log".into()).spawn(write)?;
        Ok(Self { piece: Vec::with_capacity(2 * PIECE), rows: 0, lost: 0, sender, thread })
    }

    pub(super) fn delivered(&mut self, direction: Direction, packet: &Packet, at: Instant) {
        self.row(
            direction,
            packet,
            [Some(packet.line), Some(packet.sent), Some(packet.due), Some(at)],
            "delivered",
        );
    }

    /// A packet was lost or dropped. When, is its `dequeue`.
    pub(super) fn dropped(&mut self, direction: Direction, dropped: &Dropped<Packet>) {
        let fate = match dropped.why {
            DropCause::Loss => "lost",
            DropCause::Outage => "outage",
            DropCause::Full => "full",
            DropCause::Discipline => "aqm",
        };
        self.row(direction, &dropped.packet, [Some(dropped.at), None, None, None], fate);
    }

    /// A packet's server was gone. When that was found, is its `due`.
    pub(super) fn gone(&mut self, direction: Direction, packet: &Packet, at: Instant) {
        self.row(direction, packet, [Some(packet.line), Some(packet.sent), Some(at), None], "gone");
    }

    /// A packet was still on the way when the emulator stopped.
    pub(super) fn inside(&mut self, direction: Direction, packet: &Packet) {
        self.row(direction, packet, [Some(packet.line), Some(packet.sent), Some(packet.due), None], "inside");
    }

    fn row(&mut self, direction: Direction, packet: &Packet, times: [Option<Instant>; 4], fate: &str) {
        let piece = &mut self.piece;
        let len = link::Packet::wire_len(packet);
        let (flow, addresses) = (link::Packet::flow(packet), packet.addresses());
        // Writing to a vector does not fail.
        let _ = write!(
            piece,
            "{},{},{flow:016x},{addresses},{len},{},{}",
            direction.name(),
            packet.number,
            packet.queue_bytes,
            packet.entered.as_nanos()
        );
        for time in times {
            let _ = match time {
                Some(time) => write!(piece, ",{}", time.as_nanos()),
                None => write!(piece, ","),
            };
        }
        let _ = writeln!(piece, ",{fate}");
        self.rows += 1;
        if self.piece.len() >= PIECE {
            self.flush();
        }
    }

    /// Hands over what there is. The emulator does not wait for a disk.
    fn flush(&mut self) {
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(2 * PIECE));
        if let Err(TrySendError::Full(piece) | TrySendError::Disconnected(piece)) =
            self.sender.try_send(piece)
        {
            let rows = piece.iter().filter(|b| **b == b'\n').count() as u64;
            self.rows -= rows;
            self.lost += rows;
        }
    }

    /// Writes what is left, now waiting for the disk.
    pub(super) fn finish(mut self) -> LogSummary {
        let piece = std::mem::take(&mut self.piece);
        let _ = self.sender.send(piece);
        drop(self.sender);
        let error = match self.thread.join() {
            Ok(done) => done.err(),
            Err(panic) => std::panic::resume_unwind(panic),
        };
        LogSummary { rows: self.rows, lost: self.lost, error }
    }
}
